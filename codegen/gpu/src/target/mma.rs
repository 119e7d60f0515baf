//! Describes the matrix instructions of each target: their types, and which lane owns each element of operands and
//! accumulator.
//!
//! An instruction adds the product of `A` (rows x K) and `B` (K x columns) to an accumulator. Each lane owns some
//! elements of each, in words of 32 bits (an f64 is a word of its own). With `p` elements in a word, the elements are
//! distributed as the PTX manual draws it ("Matrix Fragments for mma"):
//!
//! | | registers | lanes |
//! |---|---|---|
//! | `A` | `p` neighbours along K, then row 8, then K from `4 p` on | K from `p` on (4 words), then rows 0 to 7 |
//! | `B` | `p` neighbours along K, then K from `4 p` on | K from `p` on (4 words), then columns 0 to 7 |
//! | accumulator | 2 neighbouring columns, then row 8 | columns from 2 on (4 pairs), then rows 0 to 7 |
//!
//! That is [`FragmentForm::Quads`]. Warps of AMD have rows and columns along lanes ([`FragmentForm::Mfma`],
//! [`FragmentForm::Wmma`] and [`FragmentForm::SplitWmma`]; drawn in the chapters on matrix arithmetic of the manuals of
//! CDNA3, RDNA3 and RDNA4). Instructions of 64 lanes, and those of RDNA4, are called with the operands exchanged, which
//! transposes the accumulator: neighbours in a row are in one lane, and where K of the next product is along that row,
//! they are its operand without a conversion. Those of RDNA3 are exchanged where a product is an operand of the next
//! ([`FragmentForm::TransposedWmma`]): a lane then owns every second column of a row, reduces them without other lanes, and
//! gets the others from one lane. Elsewhere it owns every second row, and adjacent lanes store neighbours.
//!
//! | `Mfma`, 64 lanes | registers | lanes |
//! |---|---|---|
//! | an operand | as many neighbours along K as are left for a lane | rows or columns, then K |
//! | accumulator | columns 1 and 2, then 8 and 16 | rows, then column 4 (and 8) |
//! | accumulator of f64 | columns 4 and 8 | rows, then columns 1 and 2 |
//!
//! | `Wmma`, 32 lanes | registers | lanes |
//! |---|---|---|
//! | an operand | all of K | rows or columns; the upper half repeats the lower one |
//! | accumulator | rows 2, 4 and 8 | columns, then row 1 |
//! | accumulator of `TransposedWmma` | columns 2, 4 and 8 | rows, then column 1 |
//!
//! | `SplitWmma`, 32 lanes | registers | lanes |
//! |---|---|---|
//! | an operand | 8 neighbours along K | rows or columns, then K |
//! | accumulator | columns 1, 2 and 4 | rows, then column 8 |
//!
//! A *warpgroup* of four warps multiplies together ([`MmaInstruction::warps`]): each has 16 of 64 rows, distributed as above;
//! the columns of an instruction are consecutive in registers, up to 256 of them. `B` is in shared memory and `A` too,
//! unless it is in registers as above ([`crate::analysis::wgmma_shared`]).
//!
//! [`Tiles`] tiles a result with instructions and warps, and describes the elements that a thread owns as a
//! [`Fragment`]. A tile that has fewer rows or columns than an instruction is multiplied as if it repeated: bases that
//! are out of bounds are zero. K is never repeated that way, since a sum would count elements twice.
//!
//! Guarantees that the fragments of one product are consistent.

mod instructions;

use tk_ops::DType;

pub use self::instructions::{ADA, AMPERE, CDNA2, CDNA3, CDNA4, HOPPER, RDNA3, RDNA4, all};
use crate::layout::linear::{InDim, LinearLayout};
use crate::layout::{Layout, Threads, cut, padded};
use crate::target::precision::Precision;
use crate::target::spec::TargetSpec;

/// Which lane of a warp owns each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentForm {
    /// Four lanes share a row or a column.
    Quads,
    /// Each of 64 lanes has a row or a column; several share it along K.
    Mfma,
    /// Each of 32 lanes has a row or a column, and all of K.
    Wmma,
    /// The same, called with the operands exchanged.
    TransposedWmma,
    /// Each of 32 lanes has a row or a column, and half of K.
    SplitWmma,
}

impl FragmentForm {
    /// Returns true if instructions are called with the right operand first.
    pub fn exchanges(self) -> bool {
        match self {
            FragmentForm::Quads | FragmentForm::Wmma => false,
            FragmentForm::Mfma | FragmentForm::TransposedWmma | FragmentForm::SplitWmma => true,
        }
    }
}

/// An instruction. Extents are logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaInstruction {
    /// Its extents, as it is called.
    pub name: &'static str,
    /// Which lane owns each element.
    pub form: FragmentForm,
    /// The element types of the operands.
    pub operands: &'static [DType],
    /// The element type of the accumulator.
    pub acc: DType,
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// The extent that the product sums over.
    pub k: u32,
    /// Log2 of the warps that multiply together; 0 for a single warp.
    pub warps: u32,
    /// It uses only the tf32 bits of each f32.
    pub rounds: bool,
    /// It reads the bits of an 8-bit float with a bias that is larger by one and without a negative zero, whose code is
    /// NaN (`fnuz`): half of each number.
    pub is_fnuz: bool,
}

impl MmaInstruction {
    /// Log2 of the lanes of a warp that executes it.
    pub fn lane_bits(&self) -> u32 {
        match self.form {
            FragmentForm::Quads
            | FragmentForm::Wmma
            | FragmentForm::TransposedWmma
            | FragmentForm::SplitWmma => 5,
            FragmentForm::Mfma => 6,
        }
    }

    /// Log2 of the elements along K that a lane owns of its row or column of an operand, with this logarithm of rows or
    /// columns.
    fn neighbours(&self, across: u32) -> u32 {
        match self.form {
            FragmentForm::Quads => self.packed(),
            FragmentForm::Mfma | FragmentForm::SplitWmma => {
                (self.k + across).saturating_sub(self.lane_bits())
            }
            FragmentForm::Wmma | FragmentForm::TransposedWmma => self.k,
        }
    }

    /// The same for the left operand (0) or the right one (1).
    pub fn neighbours_of(&self, side: usize) -> u32 {
        self.neighbours(if side == 0 { self.m - self.warps } else { self.n })
    }

    /// Returns true if several warps multiply together, with operands in shared memory.
    pub fn is_wgmma(&self) -> bool {
        self.warps > 0
    }

    /// Returns true if they are equal except for the number of columns, which differs between products.
    pub fn is_like(&self, other: &MmaInstruction) -> bool {
        MmaInstruction { n: other.n, ..*self } == *other
    }

    /// Logarithm of the elements of a word; 0 of an f64.
    pub fn packed(&self) -> u32 {
        let bytes = self.operands.first().map_or(4, |d| d.bytes() as u32);
        (WORD / bytes).checked_ilog2().unwrap_or(0)
    }

    /// Bytes of an element of an operand.
    pub fn bytes(&self) -> u32 {
        self.operands.first().map_or(1, |d| d.bytes() as u32)
    }
}

/// Bytes of a register.
const WORD: u32 = 4;
/// Log2 of the lanes of a warp that has a wgmma.
const LANES_LOG2: u32 = 5;
/// Log2 of the fewest columns of a wgmma.
const LEAST_COLUMNS: u32 = 3;

/// The name of a matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionName(pub &'static str);

impl InstructionName {
    /// The name, if an instruction of some target has it.
    pub fn parse(name: &str) -> Option<InstructionName> {
        all().find(|m| m.name == name).map(|m| InstructionName(m.name))
    }

    /// Returns true if instructions with this name are wgmma.
    pub fn is_wgmma(self) -> bool {
        all().any(|m| m.is_wgmma() && m.name == self.0)
    }
}

/// The types, precision and K of a product.
#[derive(Clone, Copy, Debug)]
pub struct MmaKind {
    /// The element types of the operands.
    pub operands: [DType; 2],
    /// The type of accumulator and result.
    pub acc: DType,
    /// The precision of f32 operands.
    pub precision: Precision,
    /// The extent that the product sums over.
    pub k: u32,
}

/// The instructions for a product, the one with more work first.
pub fn find(spec: &TargetSpec, kind: MmaKind) -> impl Iterator<Item = MmaInstruction> {
    let serves = move |m: &&MmaInstruction| {
        let sums: &[DType] = match m.acc {
            // f16 is accumulated in f32, as in the interpreter.
            DType::F32 => &[DType::F32, DType::F16, DType::BF16],
            DType::I32 => &[DType::I32, DType::U32],
            _ => &[DType::F64],
        };
        let exact = !m.rounds || matches!(kind.precision, Precision::Tf32 | Precision::Tf32x3);
        let whole = padded(kind.k) == kind.k && cut(kind.k).log2 >= m.k;
        kind.operands.iter().all(|d| m.operands.contains(d)) && sums.contains(&kind.acc) && exact && whole
    };
    spec.matrices.iter().filter(serves).copied()
}

/// The bases of a fragment: coordinates in an atom.
type Basis = [u32; 2];

/// A dimension and a bit of its coordinate.
type Unit = (usize, u32);

/// The elements that a thread owns of a matrix for all instructions of a product. Register numbers count zero bases
/// too: there several instructions, or several registers of one, have the same element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    form: FragmentForm,
    out_bits: [u32; 2],
    repeats: [u32; 2],
    /// First those of one instruction, then of the instructions of a step along K, then of steps.
    register: Vec<Basis>,
    /// Register bits of one instruction.
    pub own: usize,
    /// Register bits that count steps along K.
    pub steps: usize,
    /// The first of them, whose steps are read together: a lane has neighbours along K in all of these.
    pub together: usize,
    lane: Vec<Basis>,
    warp: Vec<Basis>,
}

impl Fragment {
    /// Which lane owns each element of one instruction.
    pub fn form(&self) -> FragmentForm {
        self.form
    }

    /// The bases of register bits.
    pub fn register(&self) -> &[Basis] {
        &self.register
    }

    /// The bases of lane bits.
    pub fn lane(&self) -> &[Basis] {
        &self.lane
    }

    /// The bases of warp bits.
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

    /// Register bits of what is read together.
    pub fn read_together(&self) -> usize {
        self.register.len() - self.steps + self.together
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

    /// The register of the layout for a register of an atom.
    pub fn register_index(&self, atom: usize, register: usize) -> usize {
        let (mut number, mut bit) = (0, 0);
        for (i, _) in self.register.iter().enumerate().filter(|(_, b)| **b != [0, 0]) {
            number |= (register >> i & 1) << bit;
            bit += 1;
        }
        (atom << bit) + number
    }
}

/// The tiling of a result by instructions and warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The instruction, with its number of columns here.
    pub matrix: MmaInstruction,
    shape: [u32; 2],
    /// Logarithms of the warps, or warpgroups, along rows and columns; the rest repeats the work of others.
    warps: [u32; 2],
    warp_bits: u32,
    /// Whether a lane has neighbours along K in two instructions ([`Tiles::pairs`]).
    paired: bool,
}

impl Tiles {
    /// Distributes warps so that no work is done twice if possible, and that a warp's part is nearly square, since it
    /// reads rows and columns; with `rows`, warps are along rows as long as there are rows, as warpgroups always are:
    /// more columns of an instruction read fewer bytes for each product. `None` if the tile is too small for a wgmma.
    pub fn choose(matrix: MmaInstruction, shape: [u32; 2], threads: Threads, rows: bool) -> Option<Tiles> {
        let bits = shape.map(|n| cut(n).log2);
        let own = [matrix.m, if matrix.is_wgmma() { LEAST_COLUMNS } else { matrix.n }];
        let free = threads.warp_bits.checked_sub(matrix.warps)?;
        if !is_whole(&matrix, shape) {
            return None;
        }
        let most = [bits[0].saturating_sub(own[0]), bits[1].saturating_sub(own[1])];
        let mut best: Option<([u64; 3], [u32; 2])> = None;
        for m in 0..=free.min(most[0]) {
            let n = (free - m).min(most[1]);
            let part = |d: usize, w: u32| u64::from(padded(shape[d]) >> w);
            let (height, width) = (part(0, m), part(1, n));
            let cost = [
                height * width,
                if rows || matrix.is_wgmma() { u64::from(n) } else { height + width },
                // Among equals the one with more warps along rows, whose sums stay in a warp.
                u64::from(n),
            ];
            if best.is_none_or(|(c, _)| cost < c) {
                best = Some((cost, [m, n]));
            }
        }
        let warps = best.map_or([0, 0], |b| b.1);
        // Warpgroups do no work twice.
        let alone = matrix.is_wgmma() && warps[0] + warps[1] < free;
        (!alone).then(|| Tiles::new(matrix, shape, warps, threads.warp_bits))
    }

    fn new(matrix: MmaInstruction, shape: [u32; 2], warps: [u32; 2], warp_bits: u32) -> Tiles {
        let columns = cut(shape[1]).log2.saturating_sub(warps[1]);
        let n = if matrix.is_wgmma() { columns.min(matrix.n) } else { matrix.n };
        Tiles { matrix: MmaInstruction { n, ..matrix }, shape, warps, warp_bits, paired: false }
    }

    /// The tiling of an accumulator with this layout; `None` if it is not the layout of the instruction.
    pub fn of(matrix: MmaInstruction, shape: [u32; 2], layout: &Layout) -> Option<Tiles> {
        let atom = layout.atom();
        let bases: Vec<Vec<u32>> =
            (0..atom.bits(InDim::Warp)).filter_map(|i| atom.basis(InDim::Warp, i)).collect();
        let others = bases.get(matrix.warps as usize..)?;
        let along = |d: usize| others.iter().filter(|b| b.get(d).is_some_and(|c| *c != 0)).count() as u32;
        let tiles = Tiles::new(matrix, shape, [along(0), along(1)], bases.len() as u32);
        let whole = is_whole(&matrix, shape) && (!matrix.is_wgmma() || tiles.matrix.n >= LEAST_COLUMNS);
        (whole && tiles.accumulator().layout().as_ref() == Some(layout)).then_some(tiles)
    }

    /// Returns true if pairs of instructions can exchange two bits of K: an instruction gives the lanes that share a row fewer
    /// bytes of it than an access has. A sum does not depend on which instruction adds what, if both operands are
    /// exchanged alike (as `kPack` of Triton does).
    pub fn pairs(&self, k: u32, vector_bytes: u32) -> bool {
        let MmaInstruction { form, k: own, .. } = self.matrix;
        let neighbours = self.matrix.neighbours_of(0);
        form == FragmentForm::Mfma
            && neighbours == self.matrix.neighbours_of(1)
            && neighbours < own
            && cut(k).log2 > own
            && self.matrix.bytes() << neighbours < vector_bytes
    }

    /// Returns true if pairs of instructions exchange two bits of K.
    pub fn is_paired(&self) -> bool {
        self.paired
    }

    /// The same, where pairs of instructions exchange two bits of K.
    pub fn paired(&self) -> Tiles {
        Tiles { paired: true, ..self.clone() }
    }

    /// Elements of the result that a warp computes, including those that others compute too or that are out of bounds.
    pub fn work(&self) -> u64 {
        let part =
            |d: usize, warps: u32, least: u32| u64::from((padded(self.shape[d]) >> warps).max(1 << least));
        part(0, self.warps[0] + self.matrix.warps, self.rows()) * part(1, self.warps[1], self.matrix.n)
    }

    /// Log2 of the warps, or warpgroups, that share rows.
    pub fn shares(&self) -> u32 {
        self.warps[1]
    }

    /// The rows of an instruction that a warp owns.
    fn rows(&self) -> u32 {
        self.matrix.m - self.matrix.warps
    }

    /// The bits of the rows of an instruction that number its warps.
    fn of_group(&self) -> std::ops::Range<u32> {
        self.rows()..self.matrix.m
    }

    /// Returns true if the atoms along the columns are one operand of a wider wgmma, where they follow one another in
    /// shared memory: each is that of one instruction, and all their columns are no more than an instruction has. It reads
    /// the left operand once for all of them. Warpgroups that divide the columns of an atom do not have the next columns
    /// in the next atom.
    pub fn adjoin(&self) -> bool {
        let most = all().filter(|m| m.is_like(&self.matrix)).map(|m| m.n).max().unwrap_or(self.matrix.n);
        self.matrix.is_wgmma()
            && self.more(1).is_empty()
            && self.warps[1] == 0
            && cut(self.shape[1]).repeats << self.matrix.n <= 1 << most
    }

    /// The fewest registers of a lane with which the assembler takes an instruction of a warpgroup: its accumulators, and 26 more
    /// (`ptxas` 12.9 and 13.0 with C7602, for instructions of 96 to 256 columns). 0 for the instructions of one warp, whose sums
    /// may be spilled.
    pub fn least_registers(&self) -> u32 {
        const BESIDE_SUMS: u32 = 26;
        let columns = if self.adjoin() { cut(self.shape[1]).repeats } else { 1 } << self.matrix.n;
        let lanes = self.matrix.warps + LANES_LOG2;
        if self.matrix.is_wgmma() { ((columns << self.matrix.m) >> lanes) + BESIDE_SUMS } else { 0 }
    }

    /// Warpgroups that do different work: for each bit of the number of a warpgroup the row and column at which it
    /// begins.
    pub fn groups(&self) -> Vec<[u32; 2]> {
        let bits = self.shape.map(|n| cut(n).log2);
        let columns = self.of_warps(1).map(|i| unit(bits, 1, i));
        columns.chain(self.of_warps(0).map(|i| unit(bits, 0, i))).collect()
    }

    /// Rows or columns of an instruction.
    fn own(&self, d: usize) -> u32 {
        if d == 0 { self.matrix.m } else { self.matrix.n }
    }

    /// The bits of a coordinate that number the instructions of a warp along a dimension.
    pub fn more(&self, d: usize) -> std::ops::Range<u32> {
        let end = cut(self.shape[d]).log2.saturating_sub(self.warps[d]);
        self.own(d)..end.max(self.own(d))
    }

    /// The bits of a coordinate of the result that number warps.
    fn of_warps(&self, d: usize) -> std::ops::Range<u32> {
        let end = cut(self.shape[d]).log2;
        end.saturating_sub(self.warps[d])..end
    }

    /// The fragment of accumulator and result.
    pub fn accumulator(&self) -> Fragment {
        let cuts = self.shape.map(cut);
        let bits = cuts.map(|c| c.log2);
        let at = |d: usize, i: u32| unit(bits, d, i);
        let [register, lane] = self.accumulator_bases();
        let mut register: Vec<Basis> = register.into_iter().map(|(d, i)| at(d, i)).collect();
        let lane = lane.into_iter().map(|(d, i)| at(d, i)).collect();
        let own = register.len();
        register.extend(self.more(1).map(|i| at(1, i)));
        register.extend(self.more(0).map(|i| at(0, i)));
        let mut warp: Vec<Basis> = self.of_group().map(|i| at(0, i)).collect();
        warp.extend(self.of_warps(1).map(|i| at(1, i)));
        warp.extend(self.of_warps(0).map(|i| at(0, i)));
        warp.resize(self.warp_bits as usize, [0, 0]);
        let repeats = cuts.map(|c| c.repeats);
        Fragment {
            form: self.matrix.form,
            out_bits: bits,
            repeats,
            register,
            own,
            steps: 0,
            together: 0,
            lane,
            warp,
        }
    }

    /// The bases of registers and lanes in the accumulator of one instruction: dimensions and bits of them.
    fn accumulator_bases(&self) -> [Vec<Unit>; 2] {
        let rows = |bits: std::ops::Range<u32>| bits.map(|i| (0, i));
        let columns = |bits: std::ops::Range<u32>| bits.map(|i| (1, i));
        let MmaInstruction { m, n, .. } = self.matrix;
        match self.matrix.form {
            FragmentForm::Quads => {
                let register = columns(0..1).chain(rows(3..self.rows())).chain(columns(3..n));
                [register.collect(), columns(1..3).chain(rows(0..3)).collect()]
            }
            FragmentForm::Mfma if self.matrix.acc == DType::F64 => {
                [columns(2..n).collect(), rows(0..m).chain(columns(0..2)).collect()]
            }
            FragmentForm::Mfma => {
                // The remaining lanes, after the rows, have columns from 4 on.
                let end = 2 + self.matrix.lane_bits() - m;
                let register = columns(0..2).chain(columns(end..n));
                [register.collect(), rows(0..m).chain(columns(2..end)).collect()]
            }
            FragmentForm::Wmma => [rows(1..m).collect(), columns(0..n).chain(rows(0..1)).collect()],
            FragmentForm::TransposedWmma => {
                [columns(1..n).collect(), rows(0..m).chain(columns(0..1)).collect()]
            }
            FragmentForm::SplitWmma => {
                [columns(0..n - 1).collect(), rows(0..m).chain(columns(n - 1..n)).collect()]
            }
        }
    }

    /// The fragment of an operand with `k` elements along K: 0 is the left one, 1 the right one.
    pub fn operand(&self, side: usize, k: u32) -> Fragment {
        // Coordinates are (across, K) here and transposed for the right operand.
        let across = self.shape[side.min(1)];
        let cuts = [cut(across), cut(k)];
        let bits = cuts.map(|c| c.log2);
        let turn = |b: [u32; 2]| if side == 0 { b } else { [b[1], b[0]] };
        let at = |d: usize, i: u32| turn(unit(bits, d, i));
        let d = side.min(1);
        let across_own = if side == 0 { self.rows() } else { self.matrix.n };
        let p = self.matrix.neighbours(across_own);
        // Of a pair of instructions, the first has the even groups of neighbours of all lanes, the second the odd ones.
        let along = |i: u32| match i {
            _ if !self.paired || i < p || i > self.matrix.k => i,
            _ if i == self.matrix.k => p,
            _ => i + 1,
        };
        let mut register: Vec<Basis> = (0..p).map(|i| at(1, i)).collect();
        let lane = match self.matrix.form {
            FragmentForm::Quads => {
                register.extend((3..across_own).map(|i| at(0, i)));
                register.extend((p + 2..self.matrix.k).map(|i| at(1, i)));
                (p..p + 2).map(|i| at(1, i)).chain((0..3).map(|i| at(0, i))).collect()
            }
            FragmentForm::Mfma
            | FragmentForm::Wmma
            | FragmentForm::TransposedWmma
            | FragmentForm::SplitWmma => {
                let mut lane: Vec<Basis> = (0..across_own).map(|i| at(0, i)).collect();
                lane.extend((p..self.matrix.k).map(|i| at(1, along(i))));
                lane.resize(self.matrix.lane_bits() as usize, [0, 0]);
                lane
            }
        };
        let own = register.len();
        register.extend(self.more(d).map(|i| at(0, i)));
        let steps = bits[1].saturating_sub(self.matrix.k);
        register.extend((self.matrix.k..bits[1]).map(|i| at(1, along(i))));
        // As for the accumulator; warps along the other dimension read the same elements.
        let other = vec![[0, 0]; self.warps[1] as usize];
        let own_warps: Vec<Basis> = self.of_warps(d).map(|i| at(0, i)).collect();
        let mut warp: Vec<Basis> = match side {
            0 => self.of_group().map(|i| at(0, i)).chain(other).collect(),
            _ => self.of_group().map(|_| [0, 0]).collect(),
        };
        warp.extend(own_warps);
        warp.resize(self.warp_bits as usize, [0, 0]);
        Fragment {
            form: self.matrix.form,
            out_bits: turn(bits),
            repeats: turn(cuts.map(|c| c.repeats)),
            register,
            own,
            steps: steps as usize,
            together: usize::from(self.paired),
            lane,
            warp,
        }
    }
}

/// Returns true if a tile has the rows and columns of a wgmma. Others are multiplied as if they repeated.
fn is_whole(matrix: &MmaInstruction, shape: [u32; 2]) -> bool {
    let [rows, columns] = shape.map(|n| cut(n).log2);
    !matrix.is_wgmma() || rows >= matrix.m && columns >= LEAST_COLUMNS
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
