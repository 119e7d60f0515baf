//! The random numbers of a program; the generator is in [`crate::philox`].
//!
//! May assume nothing. Guarantees that a number depends on the seed and its own offset only.

use super::EvalError;
use crate::buf::Buf;
use crate::op::RandomOp;
use crate::philox::{normal, unit, words};

/// The results of a random operation, one element for each offset (i32 or u32, its bits count).
pub fn random(op: RandomOp, seed: u64, offsets: &Buf) -> Result<Vec<Buf>, EvalError> {
    let counters: Vec<u32> = match offsets {
        Buf::U32(v) => v.clone(),
        Buf::I32(v) => v.iter().map(|x| *x as u32).collect(),
        other => return Err(EvalError::Unsupported { op: op.name(), dtype: other.dtype() }),
    };
    let drawn: Vec<[u32; 4]> = counters.iter().map(|c| words(seed, *c)).collect();
    // 24 bits: exact in f32.
    let uniform = |word: fn(&[u32; 4]) -> u32| Buf::F32(drawn.iter().map(|w| unit(word(w)) as f32).collect());
    Ok(match op {
        RandomOp::Rand => vec![uniform(|w| w[0])],
        RandomOp::Rand4 => {
            vec![uniform(|w| w[0]), uniform(|w| w[1]), uniform(|w| w[2]), uniform(|w| w[3])]
        }
        RandomOp::Randn => vec![Buf::F32(drawn.iter().map(|[a, b, ..]| normal(*a, *b) as f32).collect())],
        RandomOp::RandInt => vec![Buf::U32(drawn.iter().map(|[a, ..]| *a).collect())],
    })
}
