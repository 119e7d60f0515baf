//! The operations of laid-out and scheduled kernels: [`GpuOp`], with a struct for the fields of each.
//!
//! One table defines the structs, the enum, and how text is printed and parsed ([`fields`](super::fields)): a field that is
//! missing does not compile here, and does not parse there. Operands and results belong to the instruction ([`tk_tile::Inst`]);
//! the documentation of an operation shows them. After the operands that are shown stand the predicate, where a field `when`
//! is true, and the number of the stage, an `i32`, where a [`BufferRef`] has stages.
//!
//! Shared memory is in buffers of the kernel ([`crate::Kernel::buffers`]).

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use tk_ops::table::Effects;
use tk_ops::{DType, Op};
use tk_tile::{Attrs, Dialect, Inst, TargetOp};

use super::caching::Caching;
use super::fields::{Field, Fields};
use crate::target::mma::InstructionName;
use crate::target::precision::Precision;

/// A buffer, and which of its stages: with stages, the last operand is the number of the one that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRef {
    /// Its number.
    pub buffer: usize,
    /// Into how many equal stages it is divided; `None`: it is no multi-stage buffer.
    pub stages: Option<u32>,
}

impl BufferRef {
    /// A buffer that is not divided.
    pub fn whole(buffer: usize) -> BufferRef {
        BufferRef { buffer, stages: None }
    }

    /// How many stages it has.
    pub fn count(self) -> u32 {
        self.stages.unwrap_or(1)
    }
}

/// Elements at `start` plus the sum of their coordinates times `strides`, all in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Where the first element is.
    pub start: i64,
    /// The distance of neighbours along each dimension.
    pub strides: Vec<i64>,
}

/// Where the elements of a tile are in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// By strides; padding has no place.
    Strided(Strides),
    /// At the exclusive or of one entry, in elements, for each bit of the coordinates in an atom, dimension by dimension;
    /// atoms follow each other.
    Swizzled {
        /// The entries.
        bases: Vec<i64>,
    },
}

impl Placement {
    /// The entries of a swizzled placement; none of a strided one.
    pub fn bases(&self) -> &[i64] {
        match self {
            Placement::Swizzled { bases } => bases,
            Placement::Strided(_) => &[],
        }
    }
}

/// Where a matrix product finds an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MmaOperand {
    /// In registers: an operand of the instruction.
    Registers,
    /// In shared memory, swizzled.
    Shared {
        /// The buffer.
        buffer: BufferRef,
        /// As of [`Placement::Swizzled`].
        bases: Vec<i64>,
    },
}

impl MmaOperand {
    /// The buffer, of an operand in shared memory.
    pub fn buffer(&self) -> Option<BufferRef> {
        match self {
            MmaOperand::Shared { buffer, .. } => Some(*buffer),
            MmaOperand::Registers => None,
        }
    }

    /// Where it is in the buffer; nothing of an operand in registers.
    pub fn bases(&self) -> &[i64] {
        match self {
            MmaOperand::Shared { bases, .. } => bases,
            MmaOperand::Registers => &[],
        }
    }
}

/// What a matrix product computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// The element types of `a` and `b`.
    pub elems: [DType; 2],
    /// Elements of a sum.
    pub k: u32,
    /// How f32 is multiplied.
    pub precision: Precision,
    /// Whether the order of additions is free.
    pub fast: bool,
}

/// The barriers of a TMA pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The number of the buffer with the barriers, two for each stage.
    pub barriers: usize,
    /// How many stages it has.
    pub stages: u32,
}

/// The box that TMA moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmaBox {
    /// Its extents.
    pub shape: [u32; 2],
    /// Bytes of a line in shared memory: 32, 64 or 128, which is also the width of the swizzle.
    pub span: u32,
}

macro_rules! gpu_ops {
    ($($(#[$doc:meta])* $name:ident = $text:literal $effects:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

            impl From<$name> for GpuOp {
                fn from(op: $name) -> GpuOp {
                    GpuOp::$name(op)
                }
            }
        )*

        /// An operation of laid-out and scheduled kernels.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the structs document themselves")]
        pub enum GpuOp { $($name($name),)* }

        impl GpuOp {
            /// The names of all operations in IR text.
            pub const NAMES: &[&str] = &[$($text,)*];

            fn read(op: &str, from: &mut Fields) -> Result<GpuOp, String> {
                Ok(match op {
                    $($text => GpuOp::$name($name {
                        $($field: <$ty as Field>::read(stringify!($field), from)?,)*
                    }),)*
                    _ => return Err(format!("no operation is called `{op}`")),
                })
            }

            fn field_names() -> BTreeSet<&'static str> {
                let mut all = BTreeSet::new();
                $($(all.extend(<$ty as Field>::names(stringify!($field)));)*)*
                all
            }
        }

        impl TargetOp for GpuOp {
            fn name(&self) -> &'static str {
                match self { $(GpuOp::$name(_) => $text,)* }
            }

            fn effects(&self) -> Effects {
                match self { $(GpuOp::$name(_) => Effects::$effects,)* }
            }

            #[allow(unused_variables, unused_mut, reason = "some operations have no fields")]
            fn fields(&self) -> Attrs {
                let mut out = Attrs::new();
                match self {
                    $(GpuOp::$name($name { $($field,)* }) => { $($field.write(stringify!($field), &mut out);)* })*
                }
                out
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}

gpu_ops! {
    /// `convert(v)`: the same tile, its elements in other registers and lanes.
    Convert = "convert" Pure {}

    /// `shared_store(v)`.
    SharedStore = "shared_store" Ordered {
        /// Where to.
        buffer: BufferRef,
        /// Where each element goes.
        placement: Placement,
        /// The load before it, whose only use this is, is done chunk by chunk with the store, so that a lane does not hold all
        /// elements at once.
        chunked: bool,
        /// It fills the stage of a later iteration, and a barrier orders it after the reads of an earlier one.
        ahead: bool,
        /// Each element goes to the block whose threads load it.
        remote: bool,
    }

    /// `shared_load()`.
    SharedLoad = "shared_load" Ordered {
        /// Where from.
        buffer: BufferRef,
        /// Where each element is.
        placement: Placement,
        /// Each thread reads only what it copied itself.
        own: bool,
        /// Another block may have stored it; the load waits for that.
        remote: bool,
    }

    /// `shared_gather(at)`: the elements at these positions along `axis`, at their own along the other dimensions.
    SharedGather = "shared_gather" Ordered {
        /// Where from.
        buffer: usize,
        /// Where the elements are.
        placement: Strides,
        /// The dimension.
        axis: usize,
        /// Positions along it.
        extent: u32,
    }

    /// `shared_scatter(v, at)`: to these positions along `axis`.
    SharedScatter = "shared_scatter" Ordered {
        /// Where to.
        buffer: usize,
        /// Where the elements go.
        placement: Strides,
        /// The dimension.
        axis: usize,
    }

    /// `shared_rank(v)`: how many of the `extent` elements along `axis` in the buffer come before each, an `i32`; equal ones in
    /// their order.
    SharedRank = "shared_rank" Ordered {
        /// A copy of `v`.
        buffer: usize,
        /// Where its elements are.
        placement: Strides,
        /// The dimension.
        axis: usize,
        /// Elements along it.
        extent: u32,
        /// The largest come first.
        descending: bool,
        /// NaN come first; otherwise last.
        nan_first: bool,
    }

    /// `shared_add(at [, mask])`: adds one to the i32 at each position below `bins`.
    SharedAdd = "shared_add" Ordered {
        /// The counters.
        buffer: usize,
        /// How many there are.
        bins: u32,
    }

    /// `shared_dot(acc)`: acc + a * b by multiplications of single elements, both operands in row-major order.
    SharedDot = "shared_dot" Ordered {
        /// `a` and `b`.
        buffers: [BufferRef; 2],
        /// What is computed.
        product: Product,
    }

    /// `mma(acc [, a] [, b])`: acc + a * b by instructions of a warp or a warpgroup. A warpgroup reads what was written to
    /// buffers before the last `proxy_fence` of the thread that wrote it.
    Mma = "mma" Ordered {
        /// Where `a` is.
        a: MmaOperand,
        /// Where `b` is.
        b: MmaOperand,
        /// What is computed.
        product: Product,
        /// By which instruction.
        instruction: InstructionName,
        /// A warpgroup only issues it: [`MmaWait`].
        asynchronous: bool,
    }

    /// `mma_wait(v)`: all asynchronous products of this thread but the last `pending` are done; their sums are `v` as it is
    /// then. Nothing else reads such sums.
    MmaWait = "mma_wait" Ordered {
        /// What the products read.
        buffers: Vec<usize>,
        /// Products that may still be on their way.
        pending: u32,
    }

    /// `fragments(acc)`: the elements of an operand that one instruction multiplies, as an `mma` with the accumulator `acc`
    /// takes them.
    Fragments = "fragments" Ordered {
        /// The operand: 0 is `a`, 1 is `b`.
        axis: usize,
        /// Where it is.
        buffer: BufferRef,
        /// As of [`Placement::Swizzled`].
        bases: Vec<i64>,
        /// The product whose operand it is.
        product: Product,
        /// Its instruction.
        instruction: InstructionName,
        /// The first element along K.
        start: u32,
    }

    /// `async_copy(p [, mask])` or `async_copy(view, at..)`: the elements that a load of these operands gives go to a buffer, at
    /// any time before the thread that copies them has waited; elements that are masked or outside are 0. The layout of the
    /// result says which thread copies what; its elements are not used.
    AsyncCopy = "async_copy" Ordered {
        /// Where to.
        buffer: BufferRef,
        /// Where each element goes.
        placement: Placement,
        /// It fills the stage of a later iteration, and a barrier orders it after the reads of an earlier one.
        ahead: bool,
        /// Each thread reads only what it copied itself.
        own: bool,
        /// The predicate decides whether anything is copied.
        when: bool,
        /// What the source asks of the caches.
        caching: Caching,
    }

    /// The copies of a thread since the last one are a group.
    AsyncCommit = "async_commit" Ordered {}

    /// All groups of a thread but the last `pending` have arrived, for this thread.
    AsyncWait = "async_wait" Ordered {
        /// Groups that may still be on their way.
        pending: u32,
    }

    /// Initializes the barriers of TMA pipelines; whether this warp is one of the producers, which issue loads. The warps of the
    /// program are the consumers.
    IsProducerWarp = "is_producer_warp" Ordered {
        /// The pipelines.
        pipelines: Vec<Pipeline>,
        /// Warps that are producers, the first of which issues loads; without it there is one.
        warps: Option<u32>,
    }

    /// True in one thread of the warp.
    Elect = "elect" Ordered {}

    /// From here on a lane has `count` registers. A warp that gives some back does so at once; one that wants more waits.
    SetMaxRegisters = "setmaxnreg" Ordered {
        /// Registers of a lane.
        count: u32,
    }

    /// Waits until the next stage of a pipeline is free, and announces `bytes`.
    ProducerAcquire = "producer_acquire" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
        /// Bytes that will arrive.
        bytes: u32,
    }

    /// `tma_load(view, row, column)`: the box at these positions goes to the acquired stage of a pipeline. Elements outside are
    /// 0.
    TmaLoad = "tma_load" Ordered {
        /// The multi-stage buffer.
        destination: usize,
        /// The pipeline.
        pipeline: Pipeline,
        /// What is copied.
        copied: TmaBox,
        /// What the source asks of the caches.
        caching: Caching,
    }

    /// `tma_store(view, row, column)`: a box in a buffer goes to these positions; elements outside are left out. Afterwards it
    /// has arrived in memory or, if `once`, has been read from the buffer.
    TmaStore = "tma_store" Ordered {
        /// Where from.
        buffer: usize,
        /// What is copied.
        copied: TmaBox,
        /// It runs once in a program.
        once: bool,
        /// What the source asks of the caches.
        caching: Caching,
    }

    /// The producer leaves the acquired stage to its copies.
    ProducerCommit = "producer_commit" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
    }

    /// Waits until the next stage of a pipeline is full; its number, an `i32`.
    ConsumerWait = "consumer_wait" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
    }

    /// Releases the oldest stage that was waited for.
    ConsumerRelease = "consumer_release" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
        /// The predicate decides whether anything is released.
        when: bool,
    }

    /// Makes what this thread wrote to shared memory visible to instructions of warpgroups and TMA that other threads issue
    /// after a barrier.
    ProxyFence = "proxy_fence" Ordered {}

    /// All threads of the program have arrived, and what they wrote to shared memory is visible.
    Barrier = "barrier" Ordered {}
}

impl GpuOp {
    /// The operation of an instruction; `None` if it is one of tile IR.
    pub fn of(inst: &Inst) -> Option<&GpuOp> {
        inst.attrs.target().and_then(|op| op.as_any().downcast_ref())
    }

    /// Changes the operation of an instruction; nothing if it is one of tile IR.
    pub fn change(inst: &mut Inst, change: impl FnOnce(&mut GpuOp)) {
        let Some(mut op) = GpuOp::of(inst).cloned() else { return };
        change(&mut op);
        inst.attrs = op.attrs();
    }

    /// The attributes of an instruction with this operation.
    pub fn attrs(self) -> Attrs {
        Attrs::of_target(Arc::new(self))
    }

    /// An instruction with this operation, which has no place in a block yet.
    pub fn inst(self, operands: Vec<tk_tile::ValueId>, loc: Option<tk_tile::Loc>) -> Inst {
        Inst { op: Op::Target, operands, attrs: self.attrs(), blocks: vec![], results: vec![], loc }
    }
}

/// The operations here, as text is read.
pub struct Gpu;

impl Dialect for Gpu {
    fn has(&self, op: &str) -> bool {
        GpuOp::NAMES.contains(&op)
    }

    fn rule(&self) -> &'static str {
        "S03: "
    }

    fn field(&self, name: &str) -> Option<&'static str> {
        static NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(GpuOp::field_names);
        NAMES.get(name).copied()
    }

    fn read(&self, op: &str, fields: Attrs) -> Result<Arc<dyn TargetOp>, String> {
        let mut from = Fields::new(&fields);
        let read = GpuOp::read(op, &mut from).and_then(|read| from.end().map(|()| read));
        match read {
            Ok(op) => Ok(Arc::new(op)),
            Err(message) => Err(format!("{}`{op}`: {message}", self.rule())),
        }
    }
}
