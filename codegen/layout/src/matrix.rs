//! Owns the instructions of a warp that multiply matrices: for which types they exist, and which lane holds what.
//!
//! An instruction adds the product of `A` (rows x K) and `B` (K x columns) to an accumulator. Each lane holds some elements
//! of each, in words of 32 bits (an f64 is a word of its own). With `p` elements in a word, the lanes hold, as the PTX
//! manual draws it ("Matrix Fragments for mma"):
//!
//! | | registers | lanes |
//! |---|---|---|
//! | `A` | `p` neighbours along K, then row 8, then K from `4 p` on | K from `p` on (4 words), then rows 0 to 7 |
//! | `B` | `p` neighbours along K, then K from `4 p` on | K from `p` on (4 words), then columns 0 to 7 |
//! | accumulator | 2 neighbouring columns, then row 8 | columns from 2 on (4 pairs), then rows 0 to 7 |
//!
//! [`Tiles`] lays instructions and warps over a tile, and gives what a thread holds of all of it as a [`Fragment`]. A tile
//! that has fewer rows or columns than an instruction is multiplied as if it repeated: bases that point outside are zero.
//! K is never cut that way, since a sum would count elements twice.
//!
//! May assume warps of 32 lanes where an instruction exists. Guarantees that fragments of one product fit together.

use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use crate::kernel::Kernel;
use crate::layout::{Layout, Threads, cut, padded};
use crate::linear::{InDim, LinearLayout};
use crate::spec::TargetSpec;

/// An instruction. Extents are logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Its extents, as it is called.
    pub name: &'static str,
    /// What the factors may hold.
    pub factors: &'static [DType],
    /// What it adds up in.
    pub sum: DType,
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Elements of a sum.
    pub k: u32,
}

/// Halves.
const HALF: Matrix =
    Matrix { name: "m16n8k16", factors: &[DType::F16, DType::BF16], sum: DType::F32, m: 4, n: 3, k: 4 };
/// f32 of which only the bits of a tf32 count; three times, of parts of each, for `tf32x3`.
const TF32: Matrix = Matrix { name: "m16n8k8", factors: &[DType::F32], k: 3, ..HALF };
/// 8-bit integers.
const INT8: Matrix =
    Matrix { name: "m16n8k32", factors: &[DType::I8, DType::U8], sum: DType::I32, k: 5, ..HALF };
/// 8-bit floats.
const F8: Matrix = Matrix { factors: &[DType::F8E4M3, DType::F8E5M2], sum: DType::F32, ..INT8 };
/// Doubles.
const F64: Matrix = Matrix { name: "m8n8k4", factors: &[DType::F64], sum: DType::F64, m: 3, n: 3, k: 2 };

/// Every instruction that some target has.
pub const ALL: [Matrix; 5] = [HALF, TF32, INT8, F8, F64];

impl Matrix {
    /// Whether a machine has it.
    fn exists(&self, spec: &TargetSpec) -> bool {
        let own = match *self {
            TF32 => spec.has_tf32,
            F8 => spec.has_f8,
            _ => true,
        };
        own && spec.has_mma && spec.warp_size == 1 << LANE_BITS
    }

    /// Logarithm of the elements of a word; 0 of an f64.
    pub fn packed(&self) -> u32 {
        let bytes = self.factors.first().map_or(4, |d| d.bytes() as u32);
        (WORD / bytes).checked_ilog2().unwrap_or(0)
    }

    /// Bytes of an element of a factor.
    pub fn bytes(&self) -> u32 {
        self.factors.first().map_or(1, |d| d.bytes() as u32)
    }
}

/// Bytes of a register.
const WORD: u32 = 4;
/// Log2 of the lanes of a warp.
const LANE_BITS: u32 = 5;

/// What a product multiplies.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    /// The element types of the factors.
    pub factors: [DType; 2],
    /// That of accumulator and result.
    pub sum: DType,
    /// The attribute `precision`.
    pub precision: Option<&'a str>,
    /// Elements of a sum.
    pub k: u32,
}

/// The instruction for a product, if there is one.
pub fn find(spec: &TargetSpec, kind: Kind<'_>) -> Option<&'static Matrix> {
    let serves = |m: &&Matrix| {
        let sums: &[DType] = match m.sum {
            // Halves add up in f32, as they do in the interpreter.
            DType::F32 => &[DType::F32, DType::F16, DType::BF16],
            DType::I32 => &[DType::I32, DType::U32],
            _ => &[DType::F64],
        };
        let exact = **m != TF32 || matches!(kind.precision, Some("tf32" | "tf32x3"));
        let whole = padded(kind.k) == kind.k && cut(kind.k).log2 >= m.k;
        kind.factors.iter().all(|d| m.factors.contains(d)) && sums.contains(&kind.sum) && exact && whole
    };
    static TABLE: [Matrix; 5] = ALL;
    TABLE.iter().filter(|m| m.exists(spec)).find(serves)
}

/// The elements of a sum, how instructions cover the result, and the types of the factors of an operation that names an
/// instruction; `None` if the target has no such one, or the accumulator is not held as it asks for.
pub fn product(kernel: &Kernel, inst: &Inst, acc: ValueId) -> Option<(u32, Tiles, [DType; 2])> {
    let ty = kernel.module.types.get(kernel.func().ty(acc));
    let mut elems = inst.attrs.str("elem")?.split(' ').map(DType::parse);
    let factors = [elems.next()??, elems.next()??];
    let k = inst.attrs.int("k").and_then(|k| u32::try_from(k).ok()).filter(|k| *k > 0)?;
    let kind = Kind { factors, sum: ty.dtype()?, precision: inst.attrs.str("precision"), k };
    let matrix = find(kernel.setting.spec, kind)?;
    let [m, n] = *ty.shape()? else { return None };
    let named = inst.attrs.str("matrix") == Some(matrix.name) && elems.next().is_none();
    let tiles = Tiles::of(*matrix, [m, n], kernel.layout(acc)?)?;
    named.then_some((k, tiles, factors))
}

/// The bases of a fragment: coordinates in an atom.
type Basis = [u32; 2];

/// What a thread holds of a matrix for all instructions of a product. Register numbers count zero bases too: there several
/// instructions, or several registers of one, have the same element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    out_bits: [u32; 2],
    repeats: [u32; 2],
    /// First those of one instruction, then of the instructions of a step along K, then of steps.
    register: Vec<Basis>,
    /// Register bits of one instruction.
    pub own: usize,
    /// Register bits that count steps along K.
    pub steps: usize,
    lane: Vec<Basis>,
    warp: Vec<Basis>,
}

impl Fragment {
    /// What the register bits stand for.
    pub fn register(&self) -> &[Basis] {
        &self.register
    }

    /// What the lane bits stand for.
    pub fn lane(&self) -> &[Basis] {
        &self.lane
    }

    /// What the warp bits stand for.
    pub fn warp(&self) -> &[Basis] {
        &self.warp
    }

    /// Log2 of the extents of an atom.
    pub fn out_bits(&self) -> [u32; 2] {
        self.out_bits
    }

    /// Atoms along each dimension.
    pub fn repeats(&self) -> [u32; 2] {
        self.repeats
    }

    /// Register bits that count instructions in a step.
    pub fn tiles(&self) -> usize {
        self.register.len() - self.own - self.steps
    }

    /// Registers of an atom.
    pub fn registers(&self) -> usize {
        1 << self.register.len()
    }

    /// The layout: the same without registers that repeat others.
    pub fn layout(&self) -> Option<Layout> {
        let list = |bases: &[Basis]| bases.iter().map(|b| b.to_vec()).collect::<Vec<_>>();
        let register = self.register.iter().filter(|b| **b != [0, 0]).map(|b| b.to_vec()).collect();
        let atom = LinearLayout::new(&self.out_bits, register, list(&self.lane), list(&self.warp)).ok()?;
        Some(Layout::repeated(atom, self.repeats.to_vec()))
    }

    /// The register of the layout that a register of an atom is.
    pub fn held(&self, atom: usize, register: usize) -> usize {
        let (mut number, mut bit) = (0, 0);
        for (i, _) in self.register.iter().enumerate().filter(|(_, b)| **b != [0, 0]) {
            number |= (register >> i & 1) << bit;
            bit += 1;
        }
        (atom << bit) + number
    }
}

/// Instructions and warps over the tile of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The instruction.
    pub matrix: Matrix,
    shape: [u32; 2],
    /// Logarithms of the warps along rows and columns; what is left over repeats the work of others.
    warps: [u32; 2],
    warp_bits: u32,
}

impl Tiles {
    /// Warps so that no work is done twice if that can be helped, and that a warp's part is near a square, since it reads
    /// rows and columns; with `rows`, warps are below one another as long as there are rows.
    pub fn choose(matrix: Matrix, shape: [u32; 2], threads: Threads, rows: bool) -> Tiles {
        let bits = shape.map(|n| cut(n).log2);
        let room = [bits[0].saturating_sub(matrix.m), bits[1].saturating_sub(matrix.n)];
        let mut best: Option<([u64; 3], [u32; 2])> = None;
        for m in 0..=threads.warp_bits.min(room[0]) {
            let n = (threads.warp_bits - m).min(room[1]);
            let part = |d: usize, w: u32| u64::from(padded(shape[d]) >> w);
            let (height, width) = (part(0, m), part(1, n));
            let cost = [
                height * width,
                if rows { u64::from(n) } else { height + width },
                // Of equals the one with more warps along rows, whose sums stay in a warp.
                u64::from(n),
            ];
            if best.is_none_or(|(c, _)| cost < c) {
                best = Some((cost, [m, n]));
            }
        }
        let warps = best.map_or([0, 0], |b| b.1);
        Tiles { matrix, shape, warps, warp_bits: threads.warp_bits }
    }

    /// Those of an accumulator that is held in this layout; `None` if it is not held as the instruction asks for.
    pub fn of(matrix: Matrix, shape: [u32; 2], layout: &Layout) -> Option<Tiles> {
        let atom = layout.atom();
        let bases: Vec<Vec<u32>> =
            (0..atom.bits(InDim::Warp)).filter_map(|i| atom.basis(InDim::Warp, i)).collect();
        let along = |d: usize| bases.iter().filter(|b| b.get(d).is_some_and(|c| *c != 0)).count() as u32;
        let tiles = Tiles { matrix, shape, warps: [along(0), along(1)], warp_bits: bases.len() as u32 };
        (tiles.accumulator().layout().as_ref() == Some(layout)).then_some(tiles)
    }

    /// Rows or columns of an instruction.
    fn own(&self, d: usize) -> u32 {
        if d == 0 { self.matrix.m } else { self.matrix.n }
    }

    /// Instructions of a warp along a dimension: which bits of the coordinate count them.
    fn more(&self, d: usize) -> std::ops::Range<u32> {
        let end = cut(self.shape[d]).log2.saturating_sub(self.warps[d]);
        self.own(d)..end.max(self.own(d))
    }

    /// The bits of a coordinate of the result that count warps.
    fn of_warps(&self, d: usize) -> std::ops::Range<u32> {
        let end = cut(self.shape[d]).log2;
        end.saturating_sub(self.warps[d])..end
    }

    /// What a thread holds of accumulator and result.
    pub fn accumulator(&self) -> Fragment {
        let cuts = self.shape.map(cut);
        let bits = cuts.map(|c| c.log2);
        let at = |d: usize, i: u32| unit(bits, d, i);
        let mut register = vec![at(1, 0)];
        register.extend((3..self.matrix.m).map(|i| at(0, i)));
        let own = register.len();
        register.extend(self.more(1).map(|i| at(1, i)));
        register.extend(self.more(0).map(|i| at(0, i)));
        let lane = vec![at(1, 1), at(1, 2), at(0, 0), at(0, 1), at(0, 2)];
        let mut warp: Vec<Basis> = self.of_warps(1).map(|i| at(1, i)).collect();
        warp.extend(self.of_warps(0).map(|i| at(0, i)));
        warp.resize(self.warp_bits as usize, [0, 0]);
        Fragment { out_bits: bits, repeats: cuts.map(|c| c.repeats), register, own, steps: 0, lane, warp }
    }

    /// What a thread holds of a factor with `k` elements in a sum: 0 is the left one, 1 the right one.
    pub fn factor(&self, side: usize, k: u32) -> Fragment {
        // Coordinates are (across, K) here and turned around for the right factor.
        let across = self.shape[side.min(1)];
        let cuts = [cut(across), cut(k)];
        let bits = cuts.map(|c| c.log2);
        let turn = |b: [u32; 2]| if side == 0 { b } else { [b[1], b[0]] };
        let at = |d: usize, i: u32| turn(unit(bits, d, i));
        let d = side.min(1);
        let p = self.matrix.packed();
        let mut register: Vec<Basis> = (0..p).map(|i| at(1, i)).collect();
        register.extend((3..self.own(d)).map(|i| at(0, i)));
        register.extend((p + 2..self.matrix.k).map(|i| at(1, i)));
        let own = register.len();
        register.extend(self.more(d).map(|i| at(0, i)));
        let steps = bits[1].saturating_sub(self.matrix.k);
        register.extend((self.matrix.k..bits[1]).map(|i| at(1, i)));
        let lane = vec![at(1, p), at(1, p + 1), at(0, 0), at(0, 1), at(0, 2)];
        // As for the accumulator; warps along the other dimension read the same.
        let other = vec![[0, 0]; self.warps[1] as usize];
        let own_warps: Vec<Basis> = self.of_warps(d).map(|i| at(0, i)).collect();
        let mut warp = if side == 0 { other } else { vec![] };
        warp.extend(own_warps);
        warp.resize(self.warp_bits as usize, [0, 0]);
        Fragment {
            out_bits: turn(bits),
            repeats: turn(cuts.map(|c| c.repeats)),
            register,
            own,
            steps: steps as usize,
            lane,
            warp,
        }
    }
}

/// Bit `i` of dimension `d`; zero outside of the atom.
fn unit(bits: [u32; 2], d: usize, i: u32) -> Basis {
    let mut at = [0, 0];
    if let (Some(c), Some(n)) = (at.get_mut(d), bits.get(d))
        && i < *n
    {
        *c = 1 << i;
    }
    at
}
