//! The operations of laid-out and scheduled kernels: [`GpuOp`], with a struct for the fields of each.
//!
//! One table defines the structs, the enum, and how text is printed and parsed ([`fields`](super::fields)): a missing
//! field is an error of compilation here and of parsing there. Operands and results belong to the instruction
//! ([`tk_tile::Inst`]); the documentation of an operation shows them. After these operands come the predicate, if a
//! field `when` is true, and the number of the stage, an `i32`, if a [`BufferRef`] has stages.
//!
//! Shared memory is in buffers of the kernel ([`crate::Kernel::buffers`]).

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use tk_ops::table::Effects;
use tk_ops::{DType, Op};
use tk_tile::{Attrs, Inst, TargetOp};

use super::caching::Caching;
use super::fields::{Field, Fields};
pub use super::pipeline::{BufferRef, Multicast, Pipeline, TmaBox};
use crate::target::mma::InstructionName;
use crate::target::precision::Precision;

/// How the store and the load of a buffer cross the blocks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The number of its mbarrier ([`ClusterArrive`]).
    pub barrier: u32,
    /// Executions alternate between two halves of the buffer, and between this mbarrier and the next one, so that none
    /// waits until all threads have read what the one before it brought.
    pub alternates: bool,
}

impl Exchange {
    /// The number of its mbarriers, and of equal parts of its buffer.
    pub fn copies(self) -> u32 {
        if self.alternates { 2 } else { 1 }
    }
}

/// Elements at `start` plus the sum of their coordinates times `strides`, all in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides {
    /// The position of the first element.
    pub start: i64,
    /// The distance of neighbours along each dimension.
    pub strides: Vec<i64>,
}

/// The placement of the elements of a tile in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// By strides; padding has no offset.
    Strided(Strides),
    /// At the exclusive or of one entry, in elements, for each bit of the coordinates in an atom, dimension by
    /// dimension; atoms are consecutive. Further entries are for the bits of the number of an atom along the last
    /// dimension: so many neighbours share a swizzle atom, and such groups are consecutive.
    Swizzled {
        /// The entries.
        bases: Vec<i64>,
    },
}

impl Placement {
    /// The entries of a swizzled placement; empty for a strided one.
    pub fn bases(&self) -> &[i64] {
        match self {
            Placement::Swizzled { bases } => bases,
            Placement::Strided(_) => &[],
        }
    }
}

/// The instruction of a store to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAccess {
    /// Accesses of this many elements in consecutive registers, a power of two.
    Vector(u32),
    /// `stmatrix`: four matrices of eight rows of 16 bytes at a time.
    Matrices,
    /// `stmatrix.trans`: the same, of the transposed tile.
    TransposedMatrices,
}

/// The instruction that reads the fragments of an operand from shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentLoad {
    /// `ldmatrix`; rows of the buffer are along K.
    Matrices,
    /// `ldmatrix.trans`; rows of the buffer are across K.
    TransposedMatrices,
    /// `ds_read_b64_tr_b16` (or `b8`): sixteen lanes read four (eight) rows of sixteen elements across K, each receives a column.
    Transposed,
    /// Each lane reads its own elements, this many at a time, a power of two.
    Vector(u32),
    /// The matrix instruction itself: wgmma.
    Instruction,
}

/// The location of an operand of a matrix product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MmaOperand {
    /// In registers: an operand of the instruction.
    Registers,
    /// In shared memory, swizzled.
    Shared {
        /// The buffer.
        buffer: BufferRef,
        /// As for [`Placement::Swizzled`].
        bases: Vec<i64>,
        /// How it is read; `None` before [`crate::passes::select_instructions`].
        load: Option<FragmentLoad>,
    },
}

impl MmaOperand {
    /// The buffer of an operand in shared memory.
    pub fn buffer(&self) -> Option<BufferRef> {
        match self {
            MmaOperand::Shared { buffer, .. } => Some(*buffer),
            MmaOperand::Registers => None,
        }
    }

    /// Its placement in the buffer; empty for an operand in registers.
    pub fn bases(&self) -> &[i64] {
        match self {
            MmaOperand::Shared { bases, .. } => bases,
            MmaOperand::Registers => &[],
        }
    }
}

/// The computation of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// The element types of `a` and `b`.
    pub elems: [DType; 2],
    /// The extent that the product sums over.
    pub k: u32,
    /// The precision of f32 operands.
    pub precision: Precision,
    /// Whether additions may be reordered.
    pub fast: bool,
    /// Whether pairs of instructions exchange two bits of K ([`crate::target::mma::Tiles::pairs`]).
    pub paired: bool,
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

            pub(super) fn read(op: &str, from: &mut Fields) -> Result<GpuOp, String> {
                Ok(match op {
                    $($text => GpuOp::$name($name {
                        $($field: <$ty as Field>::read(stringify!($field), from)?,)*
                    }),)*
                    _ => return Err(format!("no operation is called `{op}`")),
                })
            }

            pub(super) fn field_names() -> BTreeSet<&'static str> {
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
    /// `convert(v)`: the same tile in another layout.
    Convert = "convert" Pure {}

    /// `unspecified()`: a tile on whose elements nothing depends.
    Unspecified = "unspecified" Pure {}

    /// `optimization_barrier(v, x)`: the tile `v` of halves. Compilers neither know that it is `v` nor compute with it before `x`.
    OptimizationBarrier = "optimization_barrier" Pure {}

    /// `shared_store(v)`.
    SharedStore = "shared_store" Ordered {
        /// The destination.
        buffer: BufferRef,
        /// The placement of the tile.
        placement: Placement,
        /// The load that feeds it, whose only use this is, runs chunk by chunk with the store: few elements in registers at once.
        chunked: bool,
        /// It fills the stage of a later iteration, and a barrier orders it after the reads of an earlier one.
        ahead: bool,
        /// Each element is stored to all blocks of the cluster.
        remote: Option<Exchange>,
        /// How it is done; `None` before [`crate::passes::select_instructions`].
        access: Option<StoreAccess>,
    }

    /// `shared_load()`.
    SharedLoad = "shared_load" Ordered {
        /// The source.
        buffer: BufferRef,
        /// The placement of the tile.
        placement: Placement,
        /// Each thread reads only elements that it copied itself.
        own: bool,
        /// Other blocks of the cluster store to it too, and the load waits for them.
        remote: Option<Exchange>,
        /// Elements of an access; `None` before [`crate::passes::select_instructions`].
        vector: Option<u32>,
    }

    /// `shared_gather(at)`: the elements at these positions along `axis`, at their own along the other dimensions.
    SharedGather = "shared_gather" Ordered {
        /// The source.
        buffer: usize,
        /// The placement of the elements.
        placement: Strides,
        /// The dimension.
        axis: usize,
        /// The extent along it.
        extent: u32,
    }

    /// `shared_scatter(v, at)`: to these positions along `axis`.
    SharedScatter = "shared_scatter" Ordered {
        /// The destination.
        buffer: usize,
        /// The placement of the elements.
        placement: Strides,
        /// The dimension.
        axis: usize,
    }

    /// `shared_rank(v)`: for each element, how many of the `extent` elements along `axis` in the buffer precede it, an
    /// `i32`; equal elements keep their order.
    SharedRank = "shared_rank" Ordered {
        /// A copy of `v`.
        buffer: usize,
        /// The placement of its elements.
        placement: Strides,
        /// The dimension.
        axis: usize,
        /// The extent along it.
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
        /// The number of counters.
        bins: u32,
    }

    /// `shared_dot(acc)`: acc + a * b by multiplications of single elements, both operands in row-major order.
    SharedDot = "shared_dot" Ordered {
        /// The buffers of `a` and `b`.
        buffers: [BufferRef; 2],
        /// The computation.
        product: Product,
    }

    /// `mma(acc [, a] [, b])`: acc + a * b by instructions of a warp or a warpgroup. A warpgroup sees writes to buffers
    /// that precede the last `proxy_fence` of the thread that wrote them.
    Mma = "mma" Ordered {
        /// The operand `a`.
        a: MmaOperand,
        /// The operand `b`.
        b: MmaOperand,
        /// The computation.
        product: Product,
        /// The matrix instruction.
        instruction: InstructionName,
        /// A warpgroup only issues it; [`MmaWait`] completes it.
        asynchronous: bool,
        /// The number of elements along K after which accumulators of an instruction are added in f32; `None` if they
        /// remain in its accumulator.
        promote_every: Option<u32>,
    }

    /// `mma_wait(v, computed?)`: all asynchronous products of this thread except the last `pending` are complete; their
    /// accumulator is the value `v` has then. Nothing else reads such accumulators. The assembler does not move the wait before
    /// the computation of the tile `computed`.
    MmaWait = "mma_wait" Ordered {
        /// The buffers that the products read.
        buffers: Vec<usize>,
        /// The number of products that may remain in flight.
        pending: u32,
    }

    /// `fragments(acc)`: the elements of an operand that one instruction, or all of an `mma` with the accumulator `acc`, takes.
    Fragments = "fragments" Ordered {
        /// The operand: 0 is `a`, 1 is `b`.
        axis: usize,
        /// The buffer of the operand.
        buffer: BufferRef,
        /// As for [`Placement::Swizzled`].
        bases: Vec<i64>,
        /// The product whose operand it is.
        product: Product,
        /// Its instruction.
        instruction: InstructionName,
        /// The first element along K.
        start: u32,
        /// How it is read; `None` before [`crate::passes::select_instructions`].
        load: Option<FragmentLoad>,
    }

    /// `async_copy(p [, mask])` or `async_copy(view, at..)`: copies the elements that a load of these operands would
    /// return to a buffer, at any time before the thread that copies them has waited; elements that are masked or out
    /// of bounds are 0. The layout of the result says which thread copies each element; its elements are not used.
    AsyncCopy = "async_copy" Ordered {
        /// The destination.
        buffer: BufferRef,
        /// The placement of the elements.
        placement: Placement,
        /// It fills the stage of a later iteration, and a barrier orders it after the reads of an earlier one.
        ahead: bool,
        /// Each thread reads only elements that it copied itself.
        own: bool,
        /// The predicate decides whether anything is copied.
        when: bool,
        /// The cache hints of the source.
        caching: Caching,
        /// Elements of an access; `None` before [`crate::passes::select_instructions`].
        vector: Option<u32>,
    }

    /// Makes the copies of a thread since its last commit a group.
    AsyncCommit = "async_commit" Ordered {}

    /// Waits until all groups of this thread except the last `pending` are complete.
    AsyncWait = "async_wait" Ordered {
        /// The number of groups that may remain in flight.
        pending: u32,
    }

    /// The number of the warpgroup of this thread, an `i32` ([`crate::passes::split_rows`]).
    GroupId = "group_id" Pure {}

    /// A number of a loop for a warpgroup, whose operands are that for all warpgroups and its own, which is the result: an end
    /// ([`crate::passes::trim_loops`]), a beginning or a step ([`crate::passes::take_turns`]). A producer warp, which serves all
    /// warpgroups, takes the first.
    GroupOwn = "group_own" Pure {}

    /// Initializes the mbarriers of TMA pipelines; true if this warp is one of the producers, which issue loads. The
    /// warps of the program are the consumers.
    IsProducerWarp = "is_producer_warp" Ordered {
        /// The pipelines.
        pipelines: Vec<Pipeline>,
        /// The number of producer warps, the first of which issues loads; one if absent.
        warps: Option<u32>,
        /// The buffer of the mbarriers by which warpgroups take turns, one for each, if they do.
        turns: Option<usize>,
    }

    /// Waits until it is the turn of this warpgroup: until the one before it has passed it on. The first one begins.
    TurnWait = "turn_wait" Ordered {
        /// The buffer of the mbarriers.
        turns: usize,
    }

    /// Passes the turn on to the next warpgroup.
    TurnPass = "turn_pass" Ordered {
        /// The buffer of the mbarriers.
        turns: usize,
    }

    /// True in one thread of the warp.
    Elect = "elect" Ordered {}

    /// Sets the registers of a lane to `count`. A warp that releases registers continues at once; one that requests more waits.
    SetMaxRegisters = "setmaxnreg" Ordered {
        /// Registers of a lane.
        count: u32,
    }

    /// Waits until the next stage of a pipeline is free, and announces `bytes`.
    ProducerAcquire = "producer_acquire" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
        /// The number of bytes that will arrive.
        bytes: u32,
        /// The warpgroup whose copy of the pipeline it is; `None` if there is one. All copies are acquired before one
        /// commit.
        group: Option<u32>,
    }

    /// `tma_load(view, row, column)`: loads the box at these positions to the acquired stage of a pipeline. Elements
    /// out of bounds are 0.
    TmaLoad = "tma_load" Ordered {
        /// The multi-stage buffer.
        destination: usize,
        /// The warpgroup whose copy of the buffer it fills; `None` if there is one.
        group: Option<u32>,
        /// The pipeline.
        pipeline: Pipeline,
        /// The box.
        copied: TmaBox,
        /// The blocks of the cluster each of which loads its part of the box to the shared memory of all of them.
        multicast: Option<Multicast>,
        /// The cache hints of the source.
        caching: Caching,
    }

    /// `tma_store(view, row, column)`: stores a box in a buffer to these positions, or adds it to what is there, each element
    /// in one step; elements out of bounds are skipped.
    /// If `once`, it waits until the box has been read from the buffer; otherwise [`TmaStoreWait`] does, before the next.
    TmaStore = "tma_store" Ordered {
        /// The source.
        buffer: usize,
        /// The box.
        copied: TmaBox,
        /// It adds the elements instead.
        adds: bool,
        /// It runs once in a program.
        once: bool,
        /// The cache hints of the source.
        caching: Caching,
    }

    /// Waits until all TMA stores have been written to memory or, if `read`, have been read from their buffers.
    TmaStoreWait = "tma_store_wait" Ordered {
        /// The sources of these stores.
        buffers: Vec<usize>,
        /// Reading the buffers is enough.
        read: bool,
    }

    /// Commits the acquired stage: it is full when its copies complete.
    ProducerCommit = "producer_commit" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
    }

    /// Waits until the consumers of all blocks have released all stages: none arrives at an mbarrier of a block that has ended.
    ProducerDrain = "producer_drain" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
    }

    /// `producer_send(number)`: tells the consumers a number of 32 bits, when they have received the one before.
    ProducerSend = "producer_send" Ordered {
        /// A pipeline of one stage.
        pipeline: Pipeline,
        /// Where the number is meanwhile.
        buffer: usize,
    }

    /// Waits for a number that the producer sends; returns it.
    ConsumerReceive = "consumer_receive" Ordered {
        /// A pipeline of one stage.
        pipeline: Pipeline,
        /// Where the number is meanwhile.
        buffer: usize,
    }

    /// Waits until the next stage of a pipeline is full; returns its number, an `i32`.
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
        /// The lanes of a warp first wait for one another, which a product of the stage makes them do otherwise: the stage may
        /// be filled again, and its phase pass, before all of them have seen it.
        converge: bool,
    }

    /// `consumer_skip(stages)`: goes on to the stage that is so many after the next one, fewer than twice those of the pipeline,
    /// without waiting for those between: another warpgroup consumes them. In a pipeline with this operation, a stage is released by one warpgroup
    /// ([`crate::passes::take_turns`]).
    ConsumerSkip = "consumer_skip" Ordered {
        /// The pipeline.
        pipeline: Pipeline,
    }

    /// Makes writes of this thread to shared memory visible to wgmma and TMA instructions that other threads issue
    /// after a barrier.
    ProxyFence = "proxy_fence" Ordered {
        /// Writes to device memory, too.
        global: bool,
    }

    /// Initializes the mbarriers of remote stores, and tells the other blocks of the cluster that this one has begun.
    ClusterArrive = "cluster_arrive" Ordered {
        /// The buffer of the mbarriers, 8 bytes each; `None` without remote stores.
        barriers: Option<usize>,
    }

    /// Waits until all blocks of the cluster have begun.
    ClusterWait = "cluster_wait" Ordered {}

    /// Waits for all threads of a cluster of programs, for the initialization of their mbarriers.
    ClusterSync = "cluster_sync" Ordered {}

    /// Waits for all threads of the program, and makes their writes to shared memory visible.
    Barrier = "barrier" Ordered {}

    /// Ends a phase of an iteration whose halves of the warps are in opposite phases, when the other half has ended its own.
    PhaseBarrier = "phase_barrier" Ordered {
        /// The next phase multiplies; otherwise it accesses memory.
        multiplies: bool,
    }

    /// Half of the warps wait once more, for any barrier of the others: the upper half before a loop in phases, or the lower after it.
    HalfBarrier = "half_barrier" Ordered {
        /// The half with the higher numbers.
        upper: bool,
    }
}

impl GpuOp {
    /// The operation of an instruction; `None` for one of tile IR.
    pub fn of(inst: &Inst) -> Option<&GpuOp> {
        inst.attrs.target().and_then(|op| op.as_any().downcast_ref())
    }

    /// Changes the operation of an instruction; does nothing to one of tile IR.
    pub fn change(inst: &mut Inst, change: impl FnOnce(&mut GpuOp)) {
        let Some(mut op) = GpuOp::of(inst).cloned() else { return };
        change(&mut op);
        inst.attrs = op.attrs();
    }

    /// The attributes of an instruction with this operation.
    pub fn attrs(self) -> Attrs {
        Attrs::of_target(Arc::new(self))
    }

    /// An instruction with this operation, not yet in a block.
    pub fn inst(self, operands: Vec<tk_tile::ValueId>, loc: Option<tk_tile::Loc>) -> Inst {
        Inst { op: Op::Target, operands, attrs: self.attrs(), blocks: vec![], results: vec![], loc }
    }
}
