//! What one instruction of a scheduled kernel costs: [`work`].
//!
//! Elementwise operations cost an instruction for each register of each lane, or a known sequence; accesses of memory the
//! instructions of their width, and the lines and sectors that the lanes of a warp reach; products the operations of
//! the matrix units and what these read from shared memory.

use std::sync::OnceLock;

use tk_ops::elementwise::{ElementwiseOp, FloatBinary, FloatUnary, Group};
use tk_ops::{ControlOp, CreateOp, DType, Op, ReduceOp, ScanOp};
use tk_tile::frequency::LaunchArg;
use tk_tile::{Inst, InstId, ValueId};

use super::accesses::Pattern;
use super::{Analysed, latency};
use crate::analysis::axis::AxisInfo;
use crate::analysis::provenance::Roots;
use crate::ir::kernel::Kernel;
use crate::ir::op::{GpuOp, Placement, SharedStore, StoreAccess};
use crate::ir::params::element_bytes;
use crate::ir::shared_access::image;
use crate::layout::linear::InDim;
use crate::layout::linear::shared::bank_conflict_ways;

/// Bytes of a sector, the least that moves between caches.
pub(super) const SECTOR: f64 = 32.0;
/// Bytes that shared memory moves in a cycle.
pub(super) const SHARED: f64 = 128.0;

/// What an instruction does, for all warps of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Instructions of warps.
    pub issue: f64,
    /// Instructions of warps for the units of special functions.
    pub special: f64,
    /// Cycles of shared memory.
    pub shared: f64,
    /// Those of them that bank conflicts add.
    pub conflicts: f64,
    /// Lines that accesses of warps reach.
    pub accesses: f64,
    /// Operations of matrix units on 16-bit operands; others count as many as take their time.
    pub matrix: f64,
    /// Bytes from and to the shared cache, those of lines that are read for a part of them included.
    pub bytes: f64,
    /// Those of them that the program asked for.
    pub needed: f64,
    /// Bytes that the narrowest access of a lane to device memory moves; 0 without one.
    pub lane_bytes: u32,
    /// Why that is not wider, as a sentence without a full stop.
    pub limit: &'static str,
    /// Whether TMA moves some of the bytes.
    pub tensor_copies: bool,
    /// Bytes that memory could move while it changes pages for the rows of a tile.
    pub scattered: f64,
    /// Cycles from the last of its instructions to its result.
    pub latency: f64,
}

impl Work {
    /// What nothing does.
    pub const NONE: Work = Work {
        issue: 0.0,
        special: 0.0,
        shared: 0.0,
        conflicts: 0.0,
        accesses: 0.0,
        matrix: 0.0,
        bytes: 0.0,
        needed: 0.0,
        lane_bytes: 0,
        limit: "",
        tensor_copies: false,
        scattered: 0.0,
        latency: 0.0,
    };

    /// Adds what runs so often.
    pub fn add(&mut self, more: &Work, times: f64) {
        self.issue += more.issue * times;
        self.special += more.special * times;
        self.shared += more.shared * times;
        self.conflicts += more.conflicts * times;
        self.accesses += more.accesses * times;
        self.matrix += more.matrix * times;
        self.bytes += more.bytes * times;
        self.scattered += more.scattered * times;
        self.needed += more.needed * times;
        self.tensor_copies |= more.tensor_copies;
        if more.lane_bytes > 0 && (self.lane_bytes == 0 || more.lane_bytes < self.lane_bytes) {
            (self.lane_bytes, self.limit) = (more.lane_bytes, more.limit);
        }
    }
}

/// A kernel and what is known of its launch.
pub(crate) struct Costs<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) args: &'a [LaunchArg],
    pub(super) axis: &'a AxisInfo,
    pub(super) roots: &'a Roots,
    /// The patterns of accesses by instruction, as far as they are known.
    pub(super) patterns: &'a [OnceLock<Pattern>],
    pub(super) warps: f64,
    /// Lanes of a warp.
    pub(super) lanes: f64,
    /// Programs of the launch.
    pub(super) programs: f64,
}

impl<'a> Costs<'a> {
    /// Of a kernel that is launched with these arguments.
    pub fn new(of: &'a Analysed, args: &'a [LaunchArg], programs: f64) -> Costs<'a> {
        let kernel = of.kernel();
        Costs {
            kernel,
            args,
            axis: &of.axis,
            roots: &of.roots,
            patterns: &of.patterns,
            lanes: f64::from(kernel.options.spec.warp_size),
            programs,
            warps: f64::from(kernel.options.all_warps()),
        }
    }
}

/// The cost of an instruction, without the blocks that it owns.
pub(crate) fn work(cost: &Costs<'_>, id: InstId) -> Work {
    let inst = &cost.kernel.func().insts[id];
    match inst.op {
        Op::Elementwise(op) => cost.elementwise(op, inst),
        Op::Memory(op) => cost.memory(op, id),
        Op::Atomic(_) => cost.atomic(inst),
        Op::Reduce(op) => cost.reduce(op, inst),
        Op::Scan(op) => cost.scan(op, inst),
        Op::Random(_) => cost.simple(inst, 40.0, 0.0, latency::ALU * 20.0),
        Op::Dot(_) => cost.simple(inst, 64.0, 0.0, latency::ALU),
        Op::Create(CreateOp::Arange | CreateOp::Splat) => cost.simple(inst, 0.5, 0.0, 0.0),
        Op::Control(ControlOp::For | ControlOp::While | ControlOp::If) => {
            Work { issue: 3.0 * cost.warps, ..Work::default() }
        }
        Op::Control(ControlOp::GridBarrier) => Work { latency: 2.0 * latency::ATOMIC, ..Work::default() },
        Op::Target => GpuOp::of(inst).map_or(Work::default(), |op| cost.target(op, id)),
        Op::Create(_) | Op::Shape(_) | Op::Control(_) | Op::Host(_) => Work::default(),
    }
}

impl Costs<'_> {
    /// Registers of a lane that hold elements of a value.
    pub(super) fn registers(&self, v: ValueId) -> f64 {
        self.kernel.layout(v).map_or(1.0, |l| l.registers() as f64)
    }

    pub(super) fn bytes(&self, v: ValueId) -> f64 {
        element_bytes(self.kernel.module.types.get(self.kernel.func().ty(v)).elem()) as f64
    }

    fn dtype(&self, v: Option<&ValueId>) -> Option<DType> {
        self.kernel.module.types.get(self.kernel.func().ty(*v?)).dtype()
    }

    pub(super) fn count(&self, v: ValueId) -> f64 {
        self.kernel.module.types.get(self.kernel.func().ty(v)).count().max(1) as f64
    }

    /// Warps that compute a value: scalars are computed by all of them too.
    pub(super) fn simple(&self, inst: &Inst, each: f64, special: f64, latency: f64) -> Work {
        let Some(r) = inst.results.first() else { return Work::default() };
        let n = self.registers(*r) * self.warps;
        // A scalar is the same for all lanes: the assembler has a path of its own for many.
        let each = if self.kernel.layout(*r).is_none() { each / 2.0 } else { each };
        Work { issue: n * (each + special), special: n * special, latency, ..Work::default() }
    }

    fn elementwise(&self, op: ElementwiseOp, inst: &Inst) -> Work {
        use ElementwiseOp::*;
        let dtype = self.dtype(inst.results.first());
        let from = self.dtype(inst.operands.first());
        let is_float = from.is_some_and(DType::is_float);
        let fast = inst.attrs.flag("fast");
        // Instructions, those for special functions, and the latency.
        let (each, special, wait) = match op.group() {
            // Each function has its own cost: one that is added is an error here.
            Group::FloatUnary(function) => match function {
                FloatUnary::Exp | FloatUnary::Exp2 | FloatUnary::Log | FloatUnary::Log2 => {
                    (if fast { 1.0 } else { 4.0 }, 1.0, latency::SPECIAL)
                }
                FloatUnary::Sqrt | FloatUnary::Rsqrt => (if fast { 1.0 } else { 4.0 }, 1.0, latency::SPECIAL),
                FloatUnary::Tanh => (if fast { 0.0 } else { 14.0 }, 1.0, 2.0 * latency::SPECIAL),
                FloatUnary::Sin | FloatUnary::Cos => {
                    (if fast { 1.0 } else { 20.0 }, 1.0, 2.0 * latency::SPECIAL)
                }
                FloatUnary::Erf | FloatUnary::Cosh => (24.0, 2.0, 3.0 * latency::SPECIAL),
            },
            Group::FloatBinary(FloatBinary::Pow) => (24.0, 2.0, 3.0 * latency::SPECIAL),
            _operator => match op {
                Div if is_float => (if fast { 1.0 } else { 8.0 }, 1.0, 2.0 * latency::SPECIAL),
                Rem if is_float => (20.0, 1.0, 2.0 * latency::SPECIAL),
                Div | Rem | CeilDiv => (14.0, 1.0, 2.0 * latency::SPECIAL),
                // Two narrow elements are converted by one instruction.
                Cast if dtype.is_some_and(|d| d.bytes() <= 2) || from.is_some_and(|d| d.bytes() <= 2) => {
                    (0.5, 0.0, latency::ALU)
                }
                Bitcast => (0.0, 0.0, 0.0),
                _ => (1.0, 0.0, latency::ALU),
            },
        };
        let wide = match dtype.map_or(4, DType::bytes) {
            8 => 2.0,
            // Two elements of 16 bits are in a register.
            2 if is_float && matches!(op, Add | Sub | Mul | Fma | Maximum | Minimum) => 0.5,
            _ => 1.0,
        };
        self.simple(inst, each * wide, special, wait)
    }

    fn atomic(&self, inst: &Inst) -> Work {
        let Some(v) = inst.operands.iter().copied().max_by(|a, b| self.count(*a).total_cmp(&self.count(*b)))
        else {
            return Work::default();
        };
        let instructions = self.registers(v) * self.warps;
        let used = if inst.results.is_empty() { 0.0 } else { latency::ATOMIC };
        Work {
            issue: 3.0 * instructions,
            accesses: self.lanes * instructions,
            bytes: 2.0 * SECTOR * self.count(v),
            latency: used,
            ..Work::default()
        }
    }

    /// Bits of the lanes and of the warps along a dimension.
    fn bits_along(&self, v: ValueId, axis: usize) -> (u32, u32) {
        let Some(layout) = self.kernel.layout(v) else { return (0, 0) };
        let threads = self.kernel.options.threads();
        let along = |dim, bits: u32| {
            let basis = |b| layout.atom().basis(dim, b as usize);
            (0..bits).filter(|b| basis(*b).is_some_and(|c| c.get(axis).is_some_and(|c| *c != 0))).count()
                as u32
        };
        (along(InDim::Lane, threads.lane_bits), along(InDim::Warp, threads.warp_bits))
    }

    fn reduce(&self, op: ReduceOp, inst: &Inst) -> Work {
        let (Some(x), Some(r)) = (inst.operands.first(), inst.results.first()) else {
            return Work::default();
        };
        let axis = inst.attrs.int("axis").and_then(|a| usize::try_from(a).ok()).unwrap_or(0);
        let (lanes, warps) = self.bits_along(*x, axis);
        let values = inst.results.len() as f64;
        let each = match op {
            ReduceOp::ArgMax | ReduceOp::ArgMin => 3.0,
            ReduceOp::Custom => 3.0 * values,
            ReduceOp::Sum
            | ReduceOp::Prod
            | ReduceOp::Max
            | ReduceOp::Min
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::XorSum
            | ReduceOp::Or => 1.0,
        };
        let (from, to) = (self.registers(*x), self.registers(*r));
        let steps = f64::from(lanes) * to;
        let across = if warps > 0 { 1.0 } else { 0.0 };
        Work {
            issue: self.warps * (from * each + steps * (1.0 + each) + across * 6.0 * to),
            shared: self.warps * (steps + across * 2.0 * to),
            latency: f64::from(lanes) * latency::SHUFFLE
                + across * (2.0 * latency::BARRIER + latency::SHARED + f64::from(warps) * latency::ALU)
                + latency::ALU * from.log2().max(1.0),
            ..Work::default()
        }
    }

    fn scan(&self, op: ScanOp, inst: &Inst) -> Work {
        let Some(x) = inst.operands.first() else { return Work::default() };
        let extent = self.count(*x).log2().max(1.0);
        let rounds = match op {
            ScanOp::Sort | ScanOp::TopK => extent * extent,
            ScanOp::CumSum | ScanOp::CumProd | ScanOp::Custom | ScanOp::Histogram | ScanOp::Gather => extent,
        };
        let n = self.registers(*x) * self.warps;
        Work {
            issue: 3.0 * n * rounds,
            shared: n * rounds,
            latency: rounds * latency::SHUFFLE,
            ..Work::default()
        }
    }

    /// The instructions and cycles of shared memory for the elements of a tile, by `vector` of them at a time, and the
    /// cycles that bank conflicts add.
    fn shared(&self, v: ValueId, placement: &Placement, vector: u32) -> [f64; 3] {
        let bytes = self.bytes(v);
        let instructions = self.registers(v) / f64::from(vector.max(1)) * self.warps;
        let least = (self.lanes * f64::from(vector) * bytes / SHARED).ceil().max(1.0);
        let ways = match (placement, self.kernel.layout(v)) {
            (Placement::Swizzled { bases }, Some(layout)) => {
                let bits = self.kernel.options.threads().lane_bits as usize;
                let at = |b| {
                    layout.atom().basis(InDim::Lane, b).map(|c| image(bases, layout.atom().out_bits(), &c))
                };
                let lanes: Vec<u32> = (0..bits)
                    .filter_map(at)
                    .map(|offset| u32::try_from(offset * bytes as i64).unwrap_or(0))
                    .collect();
                bank_conflict_ways(&lanes, vector * bytes as u32, self.kernel.options.spec.shared_banks)
            }
            (Placement::Swizzled { .. } | Placement::Strided(_), _) => 1,
        };
        let cycles = instructions * least;
        [instructions, cycles * f64::from(ways), cycles * f64::from(ways.saturating_sub(1))]
    }

    fn shared_store(&self, store: &SharedStore, v: ValueId) -> Work {
        let vector = match store.access {
            Some(StoreAccess::Vector(n)) => n,
            // Four matrices of eight rows of 16 bytes: 8 bytes... of each lane's registers at once.
            Some(StoreAccess::Matrices | StoreAccess::TransposedMatrices) | None => {
                (16.0 / self.bytes(v)) as u32
            }
        };
        let [issue, shared, conflicts] = match self.shared(v, &store.placement, vector.max(1)) {
            [issue, ..] if !matches!(store.access, Some(StoreAccess::Vector(_)) | None) => {
                [issue, issue * 4.0, 0.0]
            }
            of_vectors => of_vectors,
        };
        Work { issue: issue * 1.5, shared, conflicts, latency: latency::SHARED, ..Work::default() }
    }

    /// A conversion of a layout.
    fn conversion(&self, v: ValueId) -> Work {
        let n = self.registers(v) * self.warps;
        Work { issue: 2.0 * n, shared: n, latency: 2.0 * latency::SHUFFLE, ..Work::default() }
    }

    fn target(&self, op: &GpuOp, id: InstId) -> Work {
        let inst = &self.kernel.func().insts[id];
        let (first, result) = (inst.operands.first().copied(), inst.results.first().copied());
        match op {
            GpuOp::Convert(_) => result.map_or(Work::default(), |v| self.conversion(v)),
            GpuOp::SharedStore(store) => first.map_or(Work::default(), |v| self.shared_store(store, v)),
            GpuOp::SharedLoad(load) => result.map_or(Work::default(), |v| {
                let [issue, shared, conflicts] = self.shared(v, &load.placement, load.vector.unwrap_or(1));
                Work { issue: issue * 1.5, shared, conflicts, latency: latency::SHARED, ..Work::default() }
            }),
            GpuOp::SharedGather(_) | GpuOp::SharedScatter(_) | GpuOp::SharedAdd(_) => {
                let v = result.or(first);
                let n = v.map_or(0.0, |v| self.registers(v)) * self.warps;
                Work { issue: 3.0 * n, shared: 2.0 * n, latency: latency::SHARED, ..Work::default() }
            }
            GpuOp::SharedRank(rank) => {
                let n = first.map_or(0.0, |v| self.registers(v)) * self.warps * f64::from(rank.extent);
                Work { issue: 3.0 * n, shared: n / 4.0, latency: latency::SHARED, ..Work::default() }
            }
            GpuOp::SharedDot(dot) => {
                let n = first.map_or(0.0, |v| self.registers(v)) * self.warps * f64::from(dot.product.k);
                Work { issue: 1.5 * n, shared: n / 2.0, latency: latency::SHARED, ..Work::default() }
            }
            GpuOp::Mma(mma) => self.mma(mma, inst),
            GpuOp::Fragments(_) => result.map_or(Work::default(), |v| {
                let n = self.registers(v) * self.warps;
                Work { issue: n / 4.0, shared: n, latency: latency::SHARED, ..Work::default() }
            }),
            GpuOp::AsyncCopy(copy) => result.map_or(Work::default(), |v| {
                let vector = copy.vector.unwrap_or(1);
                let global = self.global(id, v, self.bytes(v), vector);
                let [_, shared, conflicts] = self.shared(v, &copy.placement, vector);
                Work { shared, conflicts, latency: 0.0, ..global }
            }),
            GpuOp::TmaLoad(load) => {
                let blocks = load.multicast.map_or(1.0, |m| f64::from(m.blocks));
                self.tensor_copy(first, &load.copied.shape, load.copied.span, blocks)
            }
            GpuOp::TmaStore(store) => self.tensor_copy(first, &store.copied.shape, store.copied.span, 1.0),
            GpuOp::Barrier(_) | GpuOp::PhaseBarrier(_) => {
                Work { issue: self.warps, latency: latency::BARRIER, ..Work::default() }
            }
            GpuOp::ClusterArrive(_) | GpuOp::ClusterWait(_) | GpuOp::ClusterSync(_) => {
                Work { issue: self.warps, latency: 6.0 * latency::BARRIER, ..Work::default() }
            }
            GpuOp::ProducerAcquire(_)
            | GpuOp::ProducerCommit(_)
            | GpuOp::ProducerDrain(_)
            | GpuOp::ProducerSend(_) => Work { issue: 6.0, ..Work::default() },
            GpuOp::ConsumerWait(_)
            | GpuOp::ConsumerReceive(_)
            | GpuOp::ConsumerRelease(_)
            | GpuOp::TurnWait(_)
            | GpuOp::TurnPass(_) => {
                Work { issue: 4.0 * self.warps, latency: latency::SHARED, ..Work::default() }
            }
            GpuOp::ProxyFence(_) => {
                Work { issue: self.warps, latency: latency::BARRIER / 2.0, ..Work::default() }
            }
            GpuOp::Unspecified(_) => Work::default(),
            // An instruction for each register of two.
            GpuOp::OptimizationBarrier(_) => {
                let n = result.map_or(0.0, |v| self.registers(v)) * self.warps;
                Work { issue: n / 2.0, ..Work::default() }
            }
            GpuOp::AsyncCommit(_)
            | GpuOp::AsyncWait(_)
            | GpuOp::MmaWait(_)
            | GpuOp::TmaStoreWait(_)
            | GpuOp::IsProducerWarp(_)
            | GpuOp::SetMaxRegisters(_)
            | GpuOp::HalfBarrier(_)
            | GpuOp::GroupId(_)
            | GpuOp::GroupOwn(_)
            | GpuOp::ConsumerSkip(_)
            | GpuOp::Elect(_) => Work { issue: self.warps, ..Work::default() },
        }
    }

    /// A copy by TMA that so many blocks share.
    fn tensor_copy(&self, view: Option<ValueId>, shape: &[u32], span: u32, blocks: f64) -> Work {
        let elem = view.map_or(2.0, |v| self.bytes(v));
        let all = shape.iter().map(|d| f64::from(*d)).product::<f64>() * elem;
        let (shared, needed, tensor_copies) = (all / SHARED, all / blocks, true);
        let bytes = needed * self.split(view, f64::from(span));
        Work { issue: 8.0, shared, bytes, needed, tensor_copies, ..Work::default() }
    }
}
