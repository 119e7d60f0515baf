//! The command `compare`: the logits of a text against those that another program computed.
//!
//! Guarantees that what is not a number never passes, on either side.

use std::path::Path;

use safetensors::Dtype as Stored;

use crate::arguments::Compare;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::generate::load;
use crate::output::{print, tokens};
use crate::setup::{Dtype, Setup};
use crate::stored::{Entry, Weights};

/// Runs the command.
pub fn run(args: &Compare) -> Result<()> {
    let checkpoint = Checkpoint::open(&args.model)?;
    let config = &checkpoint.config;
    let reference = Reference::open(&args.with, config)?;
    let setup = Setup {
        device: args.place.device,
        dtype: Dtype::chosen(args.place.dtype, args.place.device, checkpoint.stored()),
        batch: 1,
        capacity: reference.ids.len(),
    };
    let mut engine = load(&checkpoint, &setup)?;
    let found = engine.logits(&reference.ids)?;
    if found.len() != reference.logits.len() {
        let (found, wanted) = (found.len(), reference.logits.len());
        return Err(Failure::mistake(format!("the engine gave {found} logits, wanted {wanted}")));
    }
    let difference = Difference::of(&found, &reference.logits, config.vocabulary, args.tolerance);
    print(&difference.shown(reference.ids.len()))?;
    difference.judge(args.tolerance)
}

/// What the other program computed.
struct Reference {
    ids: Vec<u32>,
    logits: Vec<f32>,
}

impl Reference {
    fn open(path: &Path, config: &Config) -> Result<Reference> {
        let file = Weights::open(path)?;
        Reference::of(&file, config).map_err(|what| Failure::mistake(format!("{} {what}", path.display())))
    }

    fn of(file: &Weights, config: &Config) -> std::result::Result<Reference, String> {
        let ids = ids(&file.entry("ids").ok_or("has no tensor `ids`")?)?;
        if ids.is_empty() {
            return Err("has no tokens in `ids`".into());
        }
        if ids.len() > config.context {
            let (found, context) = (tokens(ids.len()), tokens(config.context));
            return Err(format!("has {found} in `ids`, but the model's context has {context}"));
        }
        let vocabulary = config.vocabulary;
        let ids: std::result::Result<Vec<u32>, String> = ids
            .iter()
            .map(|id| {
                let token = u32::try_from(*id).ok().filter(|token| (*token as usize) < vocabulary);
                token.ok_or_else(|| format!("has {id} in `ids`, but the model's vocabulary has {vocabulary}"))
            })
            .collect();
        let ids = ids?;
        let entry = file.entry("logits").ok_or("has no tensor `logits`")?;
        let wanted = [ids.len(), vocabulary];
        if entry.dtype != Stored::F32 || entry.shape != wanted {
            let (dtype, shape) = (entry.dtype, entry.shape);
            return Err(format!("has `logits` of {dtype} {shape:?}, wanted F32 {wanted:?}"));
        }
        let (values, _) = entry.bytes.as_chunks::<4>();
        let logits: Vec<f32> = values.iter().map(|value| f32::from_le_bytes(*value)).collect();
        if let Some(value) = logits.iter().find(|value| !value.is_finite()) {
            return Err(format!("has {value} in `logits`, with which nothing can be compared"));
        }
        Ok(Reference { ids, logits })
    }
}

fn ids(entry: &Entry) -> std::result::Result<Vec<i64>, String> {
    let ids = match (entry.dtype, entry.shape.len()) {
        (Stored::I32, 1) => {
            entry.bytes.as_chunks().0.iter().map(|id| i32::from_le_bytes(*id).into()).collect()
        }
        (Stored::I64, 1) => entry.bytes.as_chunks().0.iter().map(|id| i64::from_le_bytes(*id)).collect(),
        (dtype, _) => {
            return Err(format!(
                "has `ids` of {dtype} {:?}, wanted I32 or I64 of one dimension",
                entry.shape
            ));
        }
    };
    Ok(ids)
}

/// How two sets of logits differ.
struct Difference {
    /// The largest absolute difference; not a number if one of the found is none.
    largest: f32,
    /// Rows with another best token.
    other: usize,
    /// Those of them whose two best reference logits are further apart than the tolerance. Where they are closer, both
    /// tokens are right.
    clear: usize,
    /// The first row that is clear, with the best token found and wanted.
    first: Option<(usize, usize, usize)>,
}

impl Difference {
    fn of(found: &[f32], wanted: &[f32], vocabulary: usize, tolerance: f32) -> Difference {
        let mut difference = Difference { largest: 0.0, other: 0, clear: 0, first: None };
        for (f, w) in found.iter().zip(wanted) {
            let off = (f - w).abs();
            // Written so that what is not a number stays.
            if off.is_nan() || off > difference.largest {
                difference.largest = off;
            }
        }
        let rows = found.chunks(vocabulary).zip(wanted.chunks(vocabulary));
        for (row, (found, wanted)) in rows.enumerate() {
            let ((best, _), (right, margin)) = (best(found), best(wanted));
            if best != right {
                difference.other += 1;
                if margin > tolerance {
                    difference.clear += 1;
                    difference.first.get_or_insert((row, best, right));
                }
            }
        }
        difference
    }

    fn shown(&self, rows: usize) -> String {
        let Difference { largest, other, clear, first: _ } = self;
        format!(
            "largest absolute difference: {largest:e}\n\
             rows with another best token: {other} of {rows}, {clear} of them beyond the tolerance\n"
        )
    }

    fn judge(&self, tolerance: f32) -> Result<()> {
        if self.largest.is_nan() {
            return Err(Failure::Differs("some logits are not numbers".into()));
        }
        if let Some((row, found, wanted)) = self.first {
            let more = match self.clear {
                1 => String::new(),
                clear => format!(" (and {} more rows)", clear - 1),
            };
            let sentence =
                format!("after token {row}, the best next token is {found}, wanted {wanted}{more}");
            return Err(Failure::Differs(sentence));
        }
        if self.largest > tolerance {
            let largest = self.largest;
            let sentence =
                format!("the logits differ by up to {largest:e}, beyond the tolerance of {tolerance:e}");
            return Err(Failure::Differs(sentence));
        }
        Ok(())
    }
}

/// The place of the largest value, the first of equals, and how far the next one is below it.
fn best(row: &[f32]) -> (usize, f32) {
    let (mut place, mut most, mut next) = (0, f32::NEG_INFINITY, f32::NEG_INFINITY);
    for (i, value) in row.iter().enumerate() {
        if *value > most {
            (place, next, most) = (i, most, *value);
        } else if *value > next {
            next = *value;
        }
    }
    (place, most - next)
}
