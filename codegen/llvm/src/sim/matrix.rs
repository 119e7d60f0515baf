//! Owns the matrix instructions of a warp: matrices from shared memory, and products.
//!
//! Which lane holds what is written here as the PTX manual has it ("Matrix Fragments for mma", "ldmatrix"), not taken from
//! [`tk_layout::matrix`], so that a mistake there shows.
//!
//! Guarantees sums of f32 that are as exact as an f64 is, rounded once for each instruction: machines leave open in which
//! order and how exactly they add. Sums of f64 are fused multiply-adds in the order of K, sums of integers modulo 2^32.

use tk_layout::matrix::{ALL, Matrix};
use tk_ops::{DType, Scalar};

use super::access::Who;
use super::block::Block;
use super::calls::{MatrixCall, Space};
use super::fault::{FaultKind, Wrong};
use super::grid::Env;

/// Lanes of the warps that have such instructions.
const LANES: u32 = 32;
/// Rows of a matrix that is loaded, and bytes of each.
const ROWS: u32 = 8;
const ROW_BYTES: usize = 16;

/// Words of f64 have 8 bytes, others 4.
fn word_bytes(matrix: &Matrix) -> usize {
    if matrix.sum == DType::F64 { 8 } else { 4 }
}

/// What a lane brings: the address of a row, its memory, where it stands.
#[derive(Clone, Copy)]
struct Brought {
    lane: u32,
    addr: u32,
    room: *mut u8,
    loc: i32,
}

impl Block {
    /// All lanes of a warp have come.
    pub fn matrices(&mut self, number: u32, what: MatrixCall, env: &mut Env<'_>) -> Result<(), Wrong> {
        let size = self.meetings.warp_size;
        if size != LANES {
            let message = format!("a matrix instruction is called in a warp of {size} lanes");
            return Err(Wrong::new(FaultKind::Call, message));
        }
        let lanes = self.lanes.iter().zip(0..).skip((number * size) as usize).take(size as usize);
        let brought: Vec<Brought> = lanes
            .filter_map(|(l, lane)| {
                let w = l.wait?;
                Some(Brought { lane, addr: w.value, room: w.room as *mut u8, loc: w.loc })
            })
            .collect();
        match what {
            MatrixCall::Load { matrices, turned } => self.load_matrices(&brought, matrices, turned, env),
            MatrixCall::Store { matrices } => self.store_matrices(&brought, matrices, env),
            MatrixCall::Multiply { kind, factors } => multiply(&brought, kind, factors),
        }
    }

    fn store_matrices(&mut self, lanes: &[Brought], matrices: i32, env: &mut Env<'_>) -> Result<(), Wrong> {
        if ![1, 2, 4].contains(&matrices) {
            return Err(Wrong::new(FaultKind::Call, format!("{matrices} matrices are stored")));
        }
        let (memory, statistics) = (env.memory, &mut env.statistics);
        for n in 0..matrices as usize {
            let mut rows = [[0u8; ROW_BYTES]; ROWS as usize];
            for (row, of) in rows.iter_mut().zip(lanes.chunks(4)) {
                for (word, from) in row.chunks_mut(4).zip(of) {
                    // SAFETY: the lane waits, and says that a word of each matrix may be read there.
                    let held = unsafe { std::slice::from_raw_parts(from.room.add(4 * n), 4) };
                    word.copy_from_slice(held);
                }
            }
            for (row, to) in rows.iter().zip(lanes.iter().skip(n * ROWS as usize)) {
                let who = Who { lane: to.lane, loc: to.loc };
                let place = (Space::Shared, u64::from(to.addr), ROW_BYTES as i32);
                // SAFETY: the row has so many bytes; `run` has the rest.
                unsafe { self.reach.store(memory, statistics, who, place, row.as_ptr())? };
            }
        }
        Ok(())
    }

    fn load_matrices(
        &mut self,
        lanes: &[Brought],
        matrices: i32,
        turned: bool,
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        if ![1, 2, 4].contains(&matrices) {
            return Err(Wrong::new(FaultKind::Call, format!("{matrices} matrices are loaded")));
        }
        let (memory, statistics) = (env.memory, &mut env.statistics);
        for n in 0..matrices as usize {
            let mut rows = [[0u8; ROW_BYTES]; ROWS as usize];
            for (row, from) in rows.iter_mut().zip(lanes.iter().skip(n * ROWS as usize)) {
                let who = Who { lane: from.lane, loc: from.loc };
                let place = (Space::Shared, u64::from(from.addr), ROW_BYTES as i32);
                // SAFETY: the row has so many bytes; `run` has the rest.
                unsafe { self.reach.load(memory, statistics, who, place, row.as_mut_ptr())? };
            }
            let byte = |row: usize, at: usize| rows.get(row).and_then(|r| r.get(at)).copied().unwrap_or(0);
            for (to, lane) in lanes.iter().zip(0usize..) {
                let (group, within) = (lane / 4, lane % 4);
                let word = if turned {
                    let (a, b) = (2 * within, 2 * within + 1);
                    [byte(a, 2 * group), byte(a, 2 * group + 1), byte(b, 2 * group), byte(b, 2 * group + 1)]
                } else {
                    [0, 1, 2, 3].map(|i| byte(group, 4 * within + i))
                };
                // SAFETY: the lane waits, and says that a word of each matrix may be written there.
                unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), to.room.add(4 * n), 4) };
            }
        }
        Ok(())
    }
}

/// Elements of the factors as the instruction sees them.
#[derive(Clone, Copy)]
pub(super) enum Element {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
}

/// An element by its bits; more bits above it do not count.
pub(super) fn element(d: DType, bits: u64) -> Element {
    // Of a tf32 the upper 19 bits count.
    let bits = if d == DType::F32 { bits & !0x1FFF } else { bits };
    let x = Scalar::from_bits(d, bits);
    match d {
        DType::I8 => Element::Int(i64::from(bits as u8 as i8)),
        DType::U8 => Element::Int(i64::from(bits as u8)),
        _ => Element::Float(x.as_f64().unwrap_or(f64::NAN)),
    }
}

fn multiply(lanes: &[Brought], kind: i32, factors: [i32; 2]) -> Result<(), Wrong> {
    let wrong = || Wrong::new(FaultKind::Call, "an unknown matrix instruction is called");
    let matrix = usize::try_from(kind).ok().and_then(|k| ALL.get(k)).ok_or_else(wrong)?;
    let dtype = |code: i32| {
        let d = usize::try_from(code).ok().and_then(|c| DType::ALL.get(c)).copied();
        d.filter(|d| matrix.factors.contains(d)).ok_or_else(wrong)
    };
    let [x, y] = [dtype(factors[0])?, dtype(factors[1])?];
    let (m, n, k) = (1usize << matrix.m, 1usize << matrix.n, 1usize << matrix.k);
    let (rows, size) = (m / 8, word_bytes(matrix));
    // Elements of a word; words of a lane.
    let p = (size / x.bytes()).max(1);
    let (of_a, of_b, of_c) = (m * k / 32 / p, k * n / 32 / p, m * n / 32);
    let zero = Element::Int(0);
    let (mut a, mut b) = (vec![zero; m * k], vec![zero; k * n]);
    let read = |lane: &Brought, word: usize| -> u64 {
        let mut bytes = [0; 8];
        // SAFETY: the lane waits, and says that these words may be read there.
        unsafe { std::ptr::copy_nonoverlapping(lane.room.add(word * size), bytes.as_mut_ptr(), size) };
        u64::from_le_bytes(bytes)
    };
    let part = |word: u64, j: usize, d: DType| element(d, word >> (j * 8 * d.bytes()));
    for (lane, number) in lanes.iter().zip(0usize..) {
        let (group, within) = (number / 4, number % 4);
        for (w, j) in (0..of_a).flat_map(|w| (0..p).map(move |j| (w, j))) {
            let (row, column) = (group + 8 * (w % rows), within * p + j + 4 * p * (w / rows));
            a.get_mut(row * k + column).into_iter().for_each(|e| *e = part(read(lane, w), j, x));
        }
        for (w, j) in (0..of_b).flat_map(|w| (0..p).map(move |j| (w, j))) {
            let row = within * p + j + 4 * p * w;
            b.get_mut(row * n + group).into_iter().for_each(|e| *e = part(read(lane, of_a + w), j, y));
        }
    }
    for (lane, number) in lanes.iter().zip(0usize..) {
        let (group, within) = (number / 4, number % 4);
        for i in 0..of_c {
            let (row, column) = (group + 8 * (i / 2), 2 * within + i % 2);
            let word = of_a + of_b + i;
            let factors = (0..k).filter_map(|s| Some((*a.get(row * k + s)?, *b.get(s * n + column)?)));
            let sum = add(matrix.sum, read(lane, word), factors).to_le_bytes();
            // SAFETY: the lane waits, and says that the result may be written there.
            unsafe { std::ptr::copy_nonoverlapping(sum.as_ptr(), lane.room.add(word * size), size) };
        }
    }
    Ok(())
}

/// The bits of an accumulator with products added.
pub(super) fn add(sum: DType, bits: u64, products: impl Iterator<Item = (Element, Element)>) -> u64 {
    let float = |e: Element| match e {
        Element::Float(x) => x,
        Element::Int(x) => x as f64,
    };
    match sum {
        DType::F64 => {
            products.fold(f64::from_bits(bits), |c, (a, b)| float(a).mul_add(float(b), c)).to_bits()
        }
        DType::F32 => {
            let c = f64::from(f32::from_bits(bits as u32));
            let sum = products.fold(c, |c, (a, b)| c + float(a) * float(b)) as f32;
            sum.to_bits().into()
        }
        _ => {
            let whole = |e: Element| if let Element::Int(x) = e { x } else { 0 };
            let sum =
                products.fold(bits as u32 as i32, |c, (a, b)| c.wrapping_add((whole(a) * whole(b)) as i32));
            u64::from(sum.cast_unsigned())
        }
    }
}
