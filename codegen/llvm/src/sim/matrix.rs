//! The matrix instructions of a warp: matrices from shared memory, and products.
//!
//! Which lane owns each element is written here as in the PTX manual ("Matrix Fragments for mma", "ldmatrix") and the
//! manuals of CDNA3, RDNA3 and RDNA4 ("Matrix Arithmetic Instructions", "Wave Matrix Multiply Accumulate"), not taken from
//! [`tk_gpu::target::mma`], so that a bug there is found.
//!
//! Guarantees sums of f32 as exact as f64, rounded once for each instruction: the order and precision of additions on
//! GPUs are unspecified. Sums of f64 are fused multiply-adds in the order of K, sums of integers modulo 2^32.

use std::sync::{LazyLock, OnceLock};

use tk_gpu::target::mma::{FragmentForm, MmaInstruction, all};
use tk_ops::DType;

use super::access::Who;
use super::block::Block;
use super::calls::{MatrixCall, SimSpace};
use super::element::{accumulator, accumulator_bits, element, multiply};
use super::env::Env;
use super::fault::{FaultKind, Wrong};

/// Lanes of the warps that load and store matrices.
const LANES: u32 = 32;
/// Rows of a matrix that is loaded, and bytes of each.
const ROWS: u32 = 8;
const ROW_BYTES: usize = 16;
/// Lanes of the warps that read transposed, those that exchange elements, and bytes of each lane.
const LANES_OF_TRANSPOSED: u32 = 64;
const EXCHANGING: usize = 16;
const OF_LANE: usize = 8;

/// Words of f64 have 8 bytes, others 4.
fn word_bytes(matrix: &MmaInstruction) -> usize {
    if matrix.acc == DType::F64 { 8 } else { 4 }
}

/// The arguments of a lane: the address of a row, its memory, its source position.
#[derive(Clone, Copy)]
struct Brought {
    lane: u32,
    addr: u32,
    registers: *mut u8,
    loc: i32,
}

impl Block {
    /// All lanes of a warp have arrived.
    pub fn matrices(&mut self, number: u32, what: MatrixCall, env: &mut Env<'_>) -> Result<(), Wrong> {
        let size = self.sync_points.warp_size;
        let lanes = match what {
            MatrixCall::Load { .. } | MatrixCall::Store { .. } => LANES,
            MatrixCall::LoadTransposed { .. } => LANES_OF_TRANSPOSED,
            MatrixCall::Multiply { kind, .. } => {
                instruction(kind).map_or(LANES, |i| 1 << i.matrix.lane_bits())
            }
        };
        if size != lanes {
            let message = format!("a matrix instruction is called in a warp of {size} lanes");
            return Err(Wrong::new(FaultKind::Call, message));
        }
        let lanes = self.lanes.iter().zip(0..).skip((number * size) as usize).take(size as usize);
        let brought: Vec<Brought> = lanes
            .filter_map(|(l, lane)| {
                let w = l.wait?;
                Some(Brought { lane, addr: w.value, registers: w.registers as *mut u8, loc: w.loc })
            })
            .collect();
        match what {
            MatrixCall::Load { matrices, transposed } => {
                self.load_matrices(&brought, matrices, transposed, env)
            }
            MatrixCall::LoadTransposed { bytes } => self.load_transposed(&brought, bytes, env),
            MatrixCall::Store { matrices, transposed } => {
                self.store_matrices(&brought, matrices, transposed, env)
            }
            MatrixCall::Multiply { kind, operands } => multiply_add(&brought, kind, operands),
        }
    }

    fn store_matrices(
        &mut self,
        lanes: &[Brought],
        matrices: i32,
        transposed: bool,
        env: &mut Env<'_>,
    ) -> Result<(), Wrong> {
        if ![1, 2, 4].contains(&matrices) {
            return Err(Wrong::new(FaultKind::Call, format!("{matrices} matrices are stored")));
        }
        let (memory, statistics) = (env.memory, &mut env.statistics);
        for n in 0..matrices as usize {
            let mut rows = [[0u8; ROW_BYTES]; ROWS as usize];
            for (row, of) in rows.iter_mut().zip(lanes.chunks(4)) {
                for (word, from) in row.chunks_mut(4).zip(of) {
                    // SAFETY: the lane waits, and guarantees that a word of each matrix may be read there.
                    let register = unsafe { std::slice::from_raw_parts(from.registers.add(4 * n), 4) };
                    word.copy_from_slice(register);
                }
            }
            if transposed {
                let found = rows;
                let at =
                    |row: usize, byte: usize| found.get(row).and_then(|r| r.get(byte)).copied().unwrap_or(0);
                for (r, row) in rows.iter_mut().enumerate() {
                    for (b, byte) in row.iter_mut().enumerate() {
                        *byte = at(b / 2, 2 * r + b % 2);
                    }
                }
            }
            for (row, to) in rows.iter().zip(lanes.iter().skip(n * ROWS as usize)) {
                let who = Who { lane: to.lane, loc: to.loc };
                let place = (SimSpace::Shared, u64::from(to.addr), ROW_BYTES as i32);
                // SAFETY: the row has this many bytes; `run` requires the rest.
                unsafe { self.reach.store(memory, statistics, who, place, row.as_ptr())? };
            }
        }
        Ok(())
    }

    fn load_matrices(
        &mut self,
        lanes: &[Brought],
        matrices: i32,
        transposed: bool,
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
                let place = (SimSpace::Shared, u64::from(from.addr), ROW_BYTES as i32);
                // SAFETY: the row has this many bytes; `run` requires the rest.
                unsafe { self.reach.load(memory, statistics, who, place, row.as_mut_ptr())? };
            }
            let byte = |row: usize, at: usize| rows.get(row).and_then(|r| r.get(at)).copied().unwrap_or(0);
            for (to, lane) in lanes.iter().zip(0usize..) {
                let (group, within) = (lane / 4, lane % 4);
                let word = if transposed {
                    let (a, b) = (2 * within, 2 * within + 1);
                    [byte(a, 2 * group), byte(a, 2 * group + 1), byte(b, 2 * group), byte(b, 2 * group + 1)]
                } else {
                    [0, 1, 2, 3].map(|i| byte(group, 4 * within + i))
                };
                // SAFETY: the lane waits, and guarantees that a word of each matrix may be written there.
                unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), to.registers.add(4 * n), 4) };
            }
        }
        Ok(())
    }
}

impl Block {
    /// Of sixteen lanes, as many in order as a row of sixteen elements has parts of 8 bytes read a row, and lane `i` receives
    /// element `i` of all rows, as `ds_read_b64_tr_b16` and `ds_read_b64_tr_b8` of CDNA4.
    fn load_transposed(&mut self, lanes: &[Brought], bytes: i32, env: &mut Env<'_>) -> Result<(), Wrong> {
        let element = match bytes {
            1 | 2 => bytes as usize,
            _other => {
                let message = format!("elements of {bytes} bytes are read transposed");
                return Err(Wrong::new(FaultKind::Call, message));
            }
        };
        let (memory, statistics) = (env.memory, &mut env.statistics);
        for lanes in lanes.chunks(EXCHANGING) {
            let mut rows = [0u8; EXCHANGING * OF_LANE];
            for (part, from) in rows.chunks_mut(OF_LANE).zip(lanes) {
                let who = Who { lane: from.lane, loc: from.loc };
                let place = (SimSpace::Shared, u64::from(from.addr), OF_LANE as i32);
                // SAFETY: the part has this many bytes; `run` requires the rest.
                unsafe { self.reach.load(memory, statistics, who, place, part.as_mut_ptr())? };
            }
            for (to, column) in lanes.iter().zip((0..).step_by(element)) {
                let of_rows = rows.chunks(EXCHANGING * element);
                let own: Vec<u8> =
                    of_rows.flat_map(|r| r.iter().skip(column).take(element)).copied().collect();
                // SAFETY: the lane waits, and guarantees that two words may be written there.
                unsafe { std::ptr::copy_nonoverlapping(own.as_ptr(), to.registers, own.len().min(OF_LANE)) };
            }
        }
        Ok(())
    }
}

/// An instruction, and where the elements of its lanes are, by the logarithm of the elements in a word.
struct Known {
    matrix: MmaInstruction,
    places: [OnceLock<Places>; 3],
}

/// Indices of the matrices in the order of rows, for each element of each lane.
struct Places {
    a: Vec<usize>,
    b: Vec<usize>,
    c: Vec<usize>,
}

impl Places {
    fn of(operands: Operands) -> Places {
        let m = operands.matrix;
        let (rows, columns, k, lanes) = (1 << m.m, 1 << m.n, 1 << m.k, 1 << m.lane_bits());
        let each = |elements: usize| (0..lanes).flat_map(move |lane| (0..elements).map(move |i| (lane, i)));
        let of_a = each(operands.of_operand(rows)).map(|(lane, i)| operands.operand(rows, lane, i));
        let of_b = each(operands.of_operand(columns)).map(|(lane, i)| operands.operand(columns, lane, i));
        let of_c = each(rows * columns / lanes).map(|(lane, i)| operands.accumulator(lane, i));
        Places {
            a: of_a.map(|(row, along)| row * k + along).collect(),
            b: of_b.map(|(column, along)| along * columns + column).collect(),
            c: of_c.map(|(row, column)| row * columns + column).collect(),
        }
    }
}

/// The instruction with this number.
fn instruction(kind: i32) -> Option<&'static Known> {
    static KNOWN: LazyLock<Vec<Known>> =
        LazyLock::new(|| all().map(|matrix| Known { matrix, places: Default::default() }).collect());
    usize::try_from(kind).ok().and_then(|k| KNOWN.get(k))
}

/// How an instruction distributes its matrices.
#[derive(Clone, Copy)]
struct Operands {
    matrix: MmaInstruction,
    /// Elements of an operand in a word.
    packed: usize,
}

impl Operands {
    /// Elements of an operand in a lane, with this many rows or columns.
    fn of_operand(&self, across: usize) -> usize {
        let (k, lanes) = (1usize << self.matrix.k, 1usize << self.matrix.lane_bits());
        match self.matrix.form {
            FragmentForm::Quads | FragmentForm::Mfma | FragmentForm::SplitWmma => across * k / lanes,
            FragmentForm::Wmma | FragmentForm::TransposedWmma => k,
        }
    }

    /// The row or column, and the position along K, of an element of an operand in a lane.
    fn operand(&self, across: usize, lane: usize, element: usize) -> (usize, usize) {
        match self.matrix.form {
            FragmentForm::Quads => {
                let (word, j, rows) = (element / self.packed, element % self.packed, across / 8);
                (lane / 4 + 8 * (word % rows), lane % 4 * self.packed + j + 4 * self.packed * (word / rows))
            }
            FragmentForm::Mfma => (lane % across, self.of_operand(across) * (lane / across) + element),
            FragmentForm::Wmma | FragmentForm::TransposedWmma => (lane % 16, element),
            FragmentForm::SplitWmma => (lane % 16, lane / 16 * 8 + element),
        }
    }

    /// The row and column of an element of the accumulator in a lane.
    fn accumulator(&self, lane: usize, i: usize) -> (usize, usize) {
        let columns = 1usize << self.matrix.n;
        match self.matrix.form {
            FragmentForm::Quads => (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2),
            FragmentForm::Mfma if self.matrix.acc == DType::F64 => (4 * i + lane / columns, lane % columns),
            // Four rows in each lane of a column, then the next lanes; of 32 x 32 that four times.
            FragmentForm::Mfma => {
                ((64 / columns) * 4 * (i / 4) + 4 * (lane / columns) + i % 4, lane % columns)
            }
            FragmentForm::Wmma | FragmentForm::TransposedWmma => (2 * i + lane / 16, lane % 16),
            FragmentForm::SplitWmma => (lane / 16 * 8 + i, lane % 16),
        }
    }
}

/// Reads the elements of an operand, `count` of each lane from its word `first` on.
fn gather(
    lanes: &[Brought],
    (first, count): (usize, usize),
    (operands, d): (Operands, DType),
    places: &[usize],
    to: &mut [f64],
) {
    let Operands { matrix, packed } = operands;
    let size = word_bytes(&matrix);
    let value = |bits: u64| match (matrix.is_fnuz, matrix.rounds) {
        // 8-bit floats as CDNA3 reads them: its manual, "Data types", FP8 (E4M3 FNUZ).
        (true, _) => element(DType::F8E4M3FNUZ, bits),
        // Of a tf32 the upper 19 bits are used.
        (false, true) => element(d, bits & !0x1FFF),
        (false, false) => element(d, bits),
    };
    for (lane, places) in lanes.iter().zip(places.chunks(count)) {
        for (places, word) in places.chunks(packed).zip(first..) {
            // SAFETY: the lane waits, and guarantees that the words of its operands may be read there.
            let bits = unsafe { read(lane, word, size) };
            for (place, j) in places.iter().zip(0..) {
                to.get_mut(*place).into_iter().for_each(|e| *e = value(bits >> (j * 8 * d.bytes())));
            }
        }
    }
}

/// A word of a lane.
///
/// # Safety
/// It may be read.
unsafe fn read(lane: &Brought, word: usize, size: usize) -> u64 {
    // SAFETY: the caller guarantees it.
    unsafe {
        let at = lane.registers.add(word * size);
        match size {
            8 => at.cast::<u64>().read_unaligned(),
            _ => at.cast::<u32>().read_unaligned().into(),
        }
    }
}

fn multiply_add(lanes: &[Brought], kind: i32, operands: [i32; 2]) -> Result<(), Wrong> {
    let wrong = || Wrong::new(FaultKind::Call, "an unknown matrix instruction is called");
    let known = instruction(kind).ok_or_else(wrong)?;
    let matrix = known.matrix;
    let dtype = |code: i32| {
        let d = usize::try_from(code).ok().and_then(|c| DType::ALL.get(c)).copied();
        d.filter(|d| matrix.operands.contains(d)).ok_or_else(wrong)
    };
    let [x, y] = [dtype(operands[0])?, dtype(operands[1])?];
    let (m, n, k) = (1usize << matrix.m, 1usize << matrix.n, 1usize << matrix.k);
    let size = word_bytes(&matrix);
    let packed = (size / x.bytes()).max(1);
    let operands = Operands { matrix, packed };
    let places = known.places.get(packed.ilog2() as usize).ok_or_else(wrong)?;
    let places = places.get_or_init(|| Places::of(operands));
    let (of_a, of_b) = (operands.of_operand(m), operands.of_operand(n));
    let (mut a, mut b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
    gather(lanes, (0, of_a), (operands, x), &places.a, &mut a);
    gather(lanes, (of_a / packed, of_b), (operands, y), &places.b, &mut b);
    // The accumulators of a lane: their words, and their places in the matrix.
    let first = of_a / packed + of_b / packed;
    let of_lanes = || lanes.iter().zip(places.c.chunks(m * n / lanes.len().max(1)));
    for (lane, at) in of_lanes() {
        for (at, word) in at.iter().zip(first..) {
            // SAFETY: the lane waits, and guarantees that this word may be read there.
            let bits = unsafe { read(lane, word, size) };
            c.get_mut(*at).into_iter().for_each(|e| *e = accumulator(matrix.acc, bits));
        }
    }
    multiply(matrix.acc, (n, k), &a, &b, &mut c);
    for (lane, at) in of_lanes() {
        for (at, word) in at.iter().zip(first..) {
            let sum = accumulator_bits(matrix.acc, c.get(*at).copied().unwrap_or(f64::NAN));
            // SAFETY: the lane waits, and guarantees that the result may be written there.
            unsafe {
                let to = lane.registers.add(word * size);
                match size {
                    8 => to.cast::<u64>().write_unaligned(sum),
                    _ => to.cast::<u32>().write_unaligned(sum as u32),
                }
            }
        }
    }
    Ok(())
}
