//! Owns how a factor of a matrix product lies in shared memory, and how its fragments are read from there.
//!
//! A *matrix load* brings eight rows of 16 bytes: each of eight lanes says where a row begins, and every lane of the warp
//! gets one word of them, lane `l` word `l % 4` of row `l / 4`. Turned around it gives a lane, of elements of two bytes,
//! those of column `l / 4` and rows `2 (l % 4)` and `2 (l % 4) + 1`. Up to four matrices are loaded at a time, lanes 8 to 15
//! giving the rows of the second one and so on. Whether it serves follows from where the bits of a fragment lie in the
//! buffer; where it does not, every lane reads its own words.
//!
//! The order of a buffer is the one of [`SharedPlan`] between those who store and the lanes that read; of the ways to read,
//! the one with the least work.
//!
//! May assume fragments of an instruction. Guarantees that emission and lowering read the same way.

use crate::convert::bases;
use crate::layout::Layout;
use crate::linear::{LinearLayout, SharedMap, SharedPlan};
use crate::matrix::Fragment;
use crate::spec::TargetSpec;

/// How fragments are read from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Matrix loads; rows of the buffer are along K.
    Rows,
    /// Matrix loads, turned around; rows of the buffer are across K.
    Columns,
    /// Every lane reads what it holds.
    Own,
}

/// Bytes of a row of a matrix load.
const ROW: u32 = 16;
/// Log2 of the words of a row.
const WORDS: usize = 2;
/// Log2 of the matrices that one instruction loads at most.
const MOST_MATRICES: usize = 2;

/// Who reads what at a time. Each is a basis of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Neighbours in the buffer that an access takes, in this order.
    pub vector: Vec<[u32; 2]>,
    /// What the bits of the lane that gives an address stand for.
    pub lane: Vec<[u32; 2]>,
    /// Log2 of the matrices that a load brings; 0 where lanes read for themselves.
    pub matrices: usize,
    /// The other register bits.
    pub rest: Vec<[u32; 2]>,
}

/// Who reads what, if fragments of elements of so many bytes can be read this way at all.
pub fn reader(f: &Fragment, read: Read, bytes: u32) -> Option<Reader> {
    let packed = (4 / bytes.max(1)).checked_ilog2().unwrap_or(0) as usize;
    let register = f.register();
    let (word, more) = register.split_at_checked(packed)?;
    let (columns, rows) = f.lane().split_at_checked(WORDS)?;
    let matrices = (f.own + f.tiles()).saturating_sub(packed).min(MOST_MATRICES);
    let (of_load, rest) = more.split_at_checked(matrices)?;
    let reader = |vector: Vec<[u32; 2]>, mut lane: Vec<[u32; 2]>| {
        lane.extend(of_load);
        lane.resize(f.lane().len(), [0, 0]);
        Some(Reader { vector, lane, matrices, rest: rest.to_vec() })
    };
    match read {
        Read::Rows => reader([word, columns].concat(), rows.to_vec()),
        Read::Columns if bytes == 2 => reader(rows.to_vec(), [word, columns].concat()),
        Read::Columns => None,
        Read::Own => {
            Some(Reader { vector: vec![], lane: f.lane().to_vec(), matrices: 0, rest: register.to_vec() })
        }
    }
}

/// Where a basis goes: `bases` has an entry for each bit of the coordinates, dimension by dimension.
pub fn image(bases: &[i64], out_bits: [u32; 2], at: [u32; 2]) -> i64 {
    let mut place = 0;
    let mut bases = bases.iter();
    for (c, bits) in at.iter().zip(out_bits) {
        for i in 0..bits {
            let base = bases.next().copied().unwrap_or(0);
            place ^= if c >> i & 1 == 1 { base } else { 0 };
        }
    }
    place
}

/// How fragments are read from a buffer in which elements lie as `bases` says.
pub fn read(f: &Fragment, bases: &[i64], bytes: u32) -> Read {
    let fits = |read: &Read| reader(f, *read, bytes).is_some_and(|r| is_loadable(f, &r, bases, bytes));
    [Read::Rows, Read::Columns].into_iter().find(fits).unwrap_or(Read::Own)
}

/// Whether the vector of a reader is 16 bytes in order, and everything else a multiple of that.
fn is_loadable(f: &Fragment, r: &Reader, bases: &[i64], bytes: u32) -> bool {
    let at = |b: &[u32; 2]| image(bases, f.out_bits(), *b);
    let in_order = r.vector.iter().enumerate().all(|(i, b)| at(b) == 1 << i);
    let row = i64::from(ROW / bytes.max(1));
    let aligned = r.lane.iter().chain(&r.rest).chain(f.warp()).all(|b| at(b) % row == 0);
    (bytes << r.vector.len()) == ROW && in_order && aligned
}

/// The order of a buffer that is stored to from `held` and read as fragments: for each bit of the coordinates of an atom its
/// place, in elements.
pub fn order(held: &Layout, f: &Fragment, bytes: u32, spec: &TargetSpec) -> Vec<i64> {
    let mut best: Option<(u32, Vec<i64>)> = None;
    for way in [Read::Rows, Read::Columns, Read::Own] {
        let Some(plan) = reader(f, way, bytes).and_then(|r| plan(held, f, &r, bytes, spec)) else { continue };
        let bases = bases(&plan.map);
        let cost = plan.wavefronts + plan.accesses;
        if read(f, &bases, bytes) == way && best.as_ref().is_none_or(|b| cost < b.0) {
            best = Some((cost, bases));
        }
    }
    best.map_or_else(|| bases(&SharedMap::row_major(held.atom().out_bits())), |b| b.1)
}

/// The way through shared memory from a layout to those who read.
fn plan(held: &Layout, f: &Fragment, r: &Reader, bytes: u32, spec: &TargetSpec) -> Option<SharedPlan> {
    let list = |bases: &[[u32; 2]]| bases.iter().map(|b| b.to_vec()).collect::<Vec<_>>();
    let registers = list(&[&r.vector[..], &r.rest].concat());
    let readers = LinearLayout::new(&f.out_bits(), registers, list(&r.lane), list(f.warp())).ok()?;
    SharedPlan::new(held.atom(), &readers, bytes, spec)
}
