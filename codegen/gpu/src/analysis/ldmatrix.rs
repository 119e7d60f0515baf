//! Chooses the placement of an operand of a matrix product in shared memory, and how its fragments are read from there.
//!
//! A *matrix load* (`ldmatrix`) reads eight rows of 16 bytes: each of eight lanes gives the address of a row, and every
//! lane of the warp receives one word, lane `l` word `l % 4` of row `l / 4`. Transposed, a lane receives elements of
//! two bytes, those of column `l / 4` and rows `2 (l % 4)` and `2 (l % 4) + 1`. Up to four matrices are loaded at a
//! time, lanes 8 to 15 giving the rows of the second one and so on.
//!
//! A *transposed read* (`ds_read_b64_tr_b16`) reads four rows of sixteen elements of two bytes: of sixteen lanes, lane `l`
//! gives the address of columns `4 (l % 4)` to `4 (l % 4) + 3` of row `l / 4`, and receives column `l` of all four. Of elements
//! of one byte (`ds_read_b64_tr_b8`) it reads eight rows: lane `l` gives the address of columns `8 (l % 2)` to `8 (l % 2) + 7` of
//! row `l / 2`, and receives column `l` of all eight.
//!
//! Whether one of them is possible follows from the offsets of the bits of a fragment in the buffer; otherwise every lane
//! reads its own words.
//!
//! The buffer has the order of the [`SharedPlan`] between the stores and the reading lanes, for the way to read that
//! costs the least.
//!
//! Requires fragments of an instruction. Guarantees that emission and lowering read the same way.

use crate::analysis::conversion::bases;
use crate::analysis::direct_loads::arranged;
use crate::ir::shared_access::image;
use crate::layout::Layout;
use crate::layout::linear::{LinearLayout, SharedMap, SharedPlan};
use crate::target::mma::{Fragment, FragmentForm, MmaInstruction};
use crate::target::spec::TargetSpec;

/// How fragments are read from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Matrix loads; rows of the buffer are along K.
    Rows,
    /// Matrix loads, transposed; rows of the buffer are across K.
    Columns,
    /// Transposed reads; rows of the buffer are across K.
    Transposed,
    /// Every lane reads the elements it owns.
    Own,
}

/// Bytes of a row of a matrix load.
const ROW: u32 = 16;
/// Log2 of the words of a row.
const WORDS: usize = 2;
/// Log2 of the most matrices that one instruction loads.
const MOST_MATRICES: usize = 2;
/// Bytes that a lane reads, and receives, of a transposed read.
const TRANSPOSED: u32 = 8;
/// Log2 of the lanes of a transposed read, and of the words that a lane receives.
const TRANSPOSED_LANES: usize = 4;
const TRANSPOSED_WORDS: usize = 1;

/// Log2 of the rows of a transposed read of elements of so many bytes, which is that of the neighbours that a lane reads of one.
fn transposed_rows(bytes: u32) -> Option<usize> {
    matches!(bytes, 1 | 2).then(|| (TRANSPOSED / bytes).ilog2() as usize)
}

/// Which lanes read which elements at a time. Each entry is a basis of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Neighbours in the buffer that one access reads, in this order.
    pub vector: Vec<[u32; 2]>,
    /// The bits of the lane that gives an address.
    pub lane: Vec<[u32; 2]>,
    /// Log2 of the words that a lane receives of a load of matrices or a transposed read, a word of each matrix; 0 where each
    /// lane reads its own elements.
    pub words: usize,
    /// The other register bits.
    pub rest: Vec<[u32; 2]>,
}

impl Reader {
    /// Two lanes that read neighbours as one, so that a plan keeps the 16 bytes of stores together.
    fn by_pairs(mut self) -> Reader {
        let first = self.lane.len().min(1);
        self.vector.extend(self.lane.drain(..first));
        self
    }
}

/// The reader, if fragments of elements of `bytes` bytes can be read this way.
pub fn reader(f: &Fragment, read: Read, bytes: u32) -> Option<Reader> {
    let packed = (4 / bytes.max(1)).checked_ilog2().unwrap_or(0) as usize;
    let form = match read {
        Read::Rows | Read::Columns => Some(FragmentForm::Quads),
        Read::Transposed => Some(FragmentForm::Mfma),
        Read::Own => None,
    };
    if form.is_some_and(|form| f.form() != form) {
        return None;
    }
    if read == Read::Transposed {
        return transposed(f, bytes);
    }
    let register = f.register();
    let (word, more) = register.split_at_checked(packed)?;
    let (columns, rows) = f.lane().split_at_checked(WORDS)?;
    let matrices = (f.own + f.tiles()).saturating_sub(packed).min(MOST_MATRICES);
    let (of_load, rest) = more.split_at_checked(matrices)?;
    let reader = |vector: Vec<[u32; 2]>, mut lane: Vec<[u32; 2]>| {
        lane.extend(of_load);
        lane.resize(f.lane().len(), [0, 0]);
        Some(Reader { vector, lane, words: matrices, rest: rest.to_vec() })
    };
    match read {
        Read::Rows => reader([word, columns].concat(), rows.to_vec()),
        Read::Columns if bytes == 2 => reader(rows.to_vec(), [word, columns].concat()),
        Read::Columns | Read::Transposed => None,
        Read::Own => {
            Some(Reader { vector: vec![], lane: f.lane().to_vec(), words: 0, rest: register.to_vec() })
        }
    }
}

/// Returns true if the operands of an instruction can be read across K by transposed reads.
pub fn is_read_transposed(matrix: &MmaInstruction, spec: &TargetSpec) -> bool {
    let own = [0, 1].map(|side| matrix.neighbours_of(side) as usize);
    let fits = transposed_rows(matrix.bytes()).is_some_and(|rows| own.iter().all(|n| *n >= rows));
    spec.has_transposed_read && matrix.form == FragmentForm::Mfma && fits
}

/// The reader of transposed reads: lanes are along rows where they receive columns.
fn transposed(f: &Fragment, bytes: u32) -> Option<Reader> {
    let of_rows = transposed_rows(bytes)?;
    let (rows, rest) = f.register().split_at_checked(of_rows)?;
    let (vector, lanes) = f.lane().split_at_checked(of_rows)?;
    let (of_row, others) = lanes.split_at_checked(TRANSPOSED_LANES - of_rows)?;
    let lane = [of_row, rows, others].concat();
    (f.own >= of_rows).then(|| Reader {
        vector: vector.to_vec(),
        lane,
        words: TRANSPOSED_WORDS,
        rest: rest.to_vec(),
    })
}

/// How fragments are read from a buffer with these `bases`.
pub fn read(f: &Fragment, bases: &[i64], bytes: u32, spec: &TargetSpec) -> Read {
    let fits = |read: &Read| match read {
        Read::Transposed if !spec.has_transposed_read => false,
        Read::Transposed => is_loadable(f, *read, bases, (bytes, TRANSPOSED)),
        Read::Rows | Read::Columns | Read::Own => is_loadable(f, *read, bases, (bytes, ROW)),
    };
    [Read::Rows, Read::Columns, Read::Transposed].into_iter().find(fits).unwrap_or(Read::Own)
}

/// Returns true if the vector of a reader is the `whole` bytes of an access in order, and everything else a multiple of
/// that.
fn is_loadable(f: &Fragment, read: Read, bases: &[i64], (bytes, whole): (u32, u32)) -> bool {
    let Some(r) = reader(f, read, bytes) else { return false };
    let at = |b: &[u32; 2]| image(bases, &f.out_bits(), b);
    let in_order = r.vector.iter().enumerate().all(|(i, b)| at(b) == 1 << i);
    let row = i64::from(whole / bytes.max(1));
    let aligned = r.lane.iter().chain(&r.rest).chain(f.warp()).all(|b| at(b) % row == 0);
    (bytes << r.vector.len()) == whole && in_order && aligned
}

/// The order of a buffer that is stored to from the layout `source` and read as fragments: the offset of each bit of the
/// coordinates of an atom, in elements.
pub fn order(source: &Layout, f: &Fragment, bytes: u32, spec: &TargetSpec) -> Vec<i64> {
    let mut best: Option<(u32, Vec<i64>)> = None;
    for way in [Read::Rows, Read::Columns, Read::Transposed, Read::Own] {
        let reader = reader(f, way, bytes).filter(|_| way != Read::Transposed || spec.has_transposed_read);
        let reader = reader.map(|r| if way == Read::Transposed { r.by_pairs() } else { r });
        let Some(plan) = reader.and_then(|r| plan(source, f, &r, bytes, spec)) else { continue };
        let bases = arranged(bases(&plan.map), bytes, spec);
        let cost = plan.wavefronts + plan.accesses + packing(f, way, &bases, bytes);
        if read(f, &bases, bytes, spec) == way && best.as_ref().is_none_or(|b| cost < b.0) {
            best = Some((cost, bases));
        }
    }
    best.map_or_else(|| bases(&SharedMap::row_major(source.atom().out_bits())), |b| b.1)
}

/// The number of instructions that pack the elements that a lane reads into words where they are not adjacent: one for
/// each element of a word but the first.
fn packing(f: &Fragment, way: Read, bases: &[i64], bytes: u32) -> u32 {
    let packed = (4 / bytes.max(1)).checked_ilog2().unwrap_or(0);
    let word = f.register().iter().take(packed as usize);
    let whole = word.enumerate().all(|(i, b)| image(bases, &f.out_bits(), b) == 1 << i);
    let words = (f.registers() >> packed) as u32;
    if way == Read::Own && !whole { words * ((1 << packed) - 1) } else { 0 }
}

/// The plan for shared memory from a layout to the reader. One step along K is read at a time, or a pair of them, so an
/// access stays in one; leaving the other steps to the other bits tells the search so.
fn plan(source: &Layout, f: &Fragment, r: &Reader, bytes: u32, spec: &TargetSpec) -> Option<SharedPlan> {
    let list = |bases: &[[u32; 2]]| bases.iter().map(|b| b.to_vec()).collect::<Vec<_>>();
    let (of_step, steps) = r.rest.split_at_checked(r.rest.len().checked_sub(f.steps - f.together)?)?;
    let readers = |register: &[[u32; 2]], warp: &[[u32; 2]]| {
        let register = list(&[&r.vector[..], register].concat());
        LinearLayout::new(&f.out_bits(), register, list(&r.lane), list(warp)).ok()
    };
    let in_step = readers(of_step, &[steps, f.warp()].concat())?;
    let found = SharedPlan::new(source.atom(), &in_step, bytes, spec.banks())?;
    found.for_others(source.atom(), &readers(&r.rest, f.warp())?, spec.banks())
}

/// The register bits, among those that are read together, of neighbours in a buffer that one access reads; `registers` are the
/// offsets of register bits and `threads` those of lanes and warps, in elements. At most `most` bits.
pub fn neighbours(f: &Fragment, registers: &[i64], threads: &[i64], most: usize) -> Vec<usize> {
    let mut vector = vec![];
    while vector.len() < most {
        let of_step = registers.iter().take(f.read_together()).enumerate();
        let next = of_step.clone().find(|(_, p)| **p == 1 << vector.len()).map(|(i, _)| i);
        let Some(next) = next else { break };
        let rest = registers.iter().enumerate().filter(|(i, _)| *i != next && !vector.contains(i));
        let mut others = rest.map(|(_, p)| p).chain(threads);
        if others.any(|p| p % (2 << vector.len()) != 0) {
            break;
        }
        vector.push(next);
    }
    vector
}
