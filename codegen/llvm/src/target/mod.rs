//! The target-specific part of emission: [`TargetEmitter`], with a file for each target.
//!
//! Code that LLVM instructions of every target can express is not here.

pub mod amdgcn;
pub mod cas_loop;
pub mod message;
pub mod nvptx;
pub mod request;
pub mod sim;
mod uniform;

use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};
use tk_gpu::Kernel;
use tk_ops::{AtomicOp, DType, ElementwiseOp};
use tk_tile::Loc;
use tk_tile::message::{Form, Message};

use crate::emit::interleave::OrderedGroup;
use crate::emit::{Emit, Res, bug, slots};
use crate::math::LlvmMath;
use crate::processor::Processor;
use crate::scalar::Width;
pub use crate::target::request::{Entry, Near, Start, Words};
use crate::target::request::{MmaRequest, PrintedPart, WgmmaOperands};
use tk_gpu::ir::caching::Caching;

/// The parameters of a kernel for a GPU: those of its source, three numbers of programs, the address of control memory
/// if it has some, tensor maps.
struct Passed<'c> {
    params: Vec<BasicValueEnum<'c>>,
    programs: [IntValue<'c>; 3],
    control: Option<IntValue<'c>>,
    maps: Vec<BasicValueEnum<'c>>,
}

impl<'c> Passed<'c> {
    fn of(start: &Start<'_, 'c>) -> Res<Passed<'c>> {
        let slots = slots(start.kernel);
        let mut passed = start.function.get_params();
        let mut hidden = passed.split_off(slots.len().min(passed.len()));
        let of_grid = hidden.len().saturating_sub(tk_gpu::ir::tensor_map::maps(start.kernel).len());
        let maps = hidden.split_off(of_grid);
        let ([x, y, z], control) = match hidden.as_slice() {
            [x, y, z] => ([x, y, z], None),
            [x, y, z, control] => ([x, y, z], Some(control.into_int_value())),
            _other => return bug("the number of programs is passed last"),
        };
        let mut params = vec![];
        for (p, slot) in passed.iter().zip(&slots) {
            params.push(if slot.kind.dtype() == DType::Bool {
                start.builder.build_int_truncate(p.into_int_value(), start.context.bool_type(), "")?.into()
            } else {
                *p
            });
        }
        Ok(Passed { params, programs: [x, y, z].map(|n| n.into_int_value()), control, maps })
    }
}

/// An access to memory by one thread: `count` neighbours of one type.
#[derive(Clone, Copy, Debug)]
pub struct Access<'c> {
    /// The address; 64 bits for device memory, 32 for shared memory.
    pub address: IntValue<'c>,
    /// An offset in bytes.
    pub offset: i64,
    /// The type of an element in memory.
    pub ty: BasicTypeEnum<'c>,
    /// Bytes of an element.
    pub bytes: u32,
    /// The number of elements; `count * bytes` is a power of two up to the widest access.
    pub count: u32,
    /// What divides the address: all bytes of the access, or those of an element on targets with unaligned accesses.
    pub alignment: u32,
    /// The access is done only if this is true; `None` is always true.
    pub predicate: Option<IntValue<'c>>,
    /// The same address without `offset`, if lanes are known to be less than 2^30 bytes apart.
    pub near: Option<Near<'c>>,
    /// The cache hints of the source, for an access to device memory.
    pub caching: Caching,
}

impl<'c> Access<'c> {
    /// `count` elements of `bytes` bytes each, without a predicate.
    pub fn of(address: IntValue<'c>, offset: i64, ty: BasicTypeEnum<'c>, bytes: u32, count: u32) -> Self {
        let (predicate, near, caching) = (None, None, Caching::default());
        let alignment = bytes * count;
        Access { address, offset, ty, bytes, count, alignment, predicate, near, caching }
    }
}

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// Shared memory of the program.
    Shared,
}

/// The lane from which a shuffle reads.
#[derive(Clone, Copy, Debug)]
pub enum Lane<'c> {
    /// The own number, exclusive or this.
    Xor(u32),
    /// The own number minus this; the own value if that lane does not exist.
    Up(u32),
    /// The own number plus this; the own value if that lane does not exist.
    Down(u32),
    /// The lane of this number.
    Index(IntValue<'c>),
}

/// An atomic operation of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'a, 'c> {
    /// The operation.
    pub op: AtomicOp,
    /// The type of the element.
    pub dtype: DType,
    /// The address.
    pub address: IntValue<'c>,
    /// The operand.
    pub value: BasicValueEnum<'c>,
    /// The value with which `cas` compares.
    pub compare: Option<BasicValueEnum<'c>>,
    /// The operation is done only if this is true.
    pub predicate: Option<IntValue<'c>>,
    /// `relaxed`, `acquire`, `release`, `acq_rel`.
    pub order: &'a str,
    /// `block`, `gpu`, `sys`.
    pub scope: &'a str,
}

/// An assert, as one thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct Failing<'a, 'c> {
    /// It fails for this thread.
    pub fails: IntValue<'c>,
    /// It fails, and this thread reports it for the same elements.
    pub own: IntValue<'c>,
    /// The first element for which it fails; an i32.
    pub element: IntValue<'c>,
    /// The message.
    pub text: &'a str,
    /// The extents of the tile; empty for a scalar, which is uniform.
    pub shape: &'a [u32],
}

/// A box of a tensor map, and the address in shared memory that it is copied to or from.
#[derive(Clone, Debug)]
pub struct PlacedBox<'c> {
    /// The address of the map.
    pub map: IntValue<'c>,
    /// The start of the box along the dimensions of the map, the fastest first.
    pub at: Vec<IntValue<'c>>,
    /// Bytes from the start of shared memory.
    pub shared: IntValue<'c>,
    /// The cache hints of the source.
    pub caching: Caching,
}

/// The module of a GPU's kernel: its processor, the attributes of kernels, and the form of the output.
pub(crate) trait GpuModule<'c>: TargetEmitter<'c> + Default {
    /// LLVM assembles the code to an object; otherwise an assembler reads its text.
    const ASSEMBLES: bool;
    /// Passes after those of all targets, each after a comma.
    const LAST_PASSES: &'static str;

    /// Triple, processor and features.
    fn processor(kernel: &Kernel) -> Processor;

    /// Marks a function as a kernel; `maps` is the number of its first parameter that is a tensor map, and their number.
    fn mark_kernel(
        context: &'c Context,
        module: &Module<'c>,
        function: FunctionValue<'c>,
        kernel: &Kernel,
        maps: (u32, usize),
    ) -> Res<()>;

    /// The messages of the kernel.
    fn into_messages(self) -> Vec<Message>;
}

/// The operations of a target. Using an operation that a target lacks, such as asynchronous copies, is a bug of the
/// compiler: passes check the fact before they use it.
pub trait TargetEmitter<'c> {
    /// Begins the function: reads its parameters.
    fn enter(&self, start: &Start<'_, 'c>) -> Res<Entry<'c>>;

    /// Sets the source position of the next instructions.
    fn at(&self, loc: Option<Loc>);

    /// The address space of constants.
    fn constant_space(&self) -> AddressSpace;

    /// The number of this program on an axis.
    fn program_id(&self, e: &Emit<'_, 'c>, axis: u32) -> Res<IntValue<'c>>;

    /// Nanoseconds of a clock that all blocks share, read by this thread.
    fn global_timer(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>>;

    /// The number of the multiprocessor that runs this block.
    fn multiprocessor(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>>;

    /// Loads; returns one value for each element, `other` where the predicate is false.
    fn load(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// The words around elements at an address, for `Emit::load_shifted`, from a target that reads the elements alone.
    fn load_around(&self, _: &Emit<'_, 'c>, _: IntValue<'c>, _: &Access<'c>) -> Res<Option<Words<'c>>> {
        Ok(None)
    }

    /// Writes these elements.
    fn store(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()>;

    /// Prefetches device memory to the caches; a hint that targets without such an instruction ignore.
    fn prefetch(&self, _e: &Emit<'_, 'c>, _access: &Access<'c>) -> Res<()> {
        Ok(())
    }

    /// Starts an asynchronous copy from device memory to shared memory, of zeros without the predicate of `from`;
    /// without that of `to` nothing is copied, or zeros that nothing reads.
    fn async_copy(&self, _e: &Emit<'_, 'c>, _from: &Access<'c>, _to: &Access<'c>) -> Res<()> {
        missing("asynchronous copies")
    }

    /// The first thread of the warp, if the places of its copies are those of all lanes, side by side.
    fn copying_thread(&self) -> Option<IntValue<'c>> {
        None
    }

    /// Makes the copies since the last commit a group.
    fn async_commit(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("asynchronous copies")
    }

    /// Waits for all groups except the last `pending`.
    fn async_wait(&self, _e: &Emit<'_, 'c>, _pending: u32) -> Res<()> {
        missing("asynchronous copies")
    }

    /// 32 bits of another lane of the warp.
    fn shuffle(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>>;

    /// The bytes of two words that a selector numbers, a byte for each: 0 to 3 are those of the first word, 4 to 7 those of the other.
    fn permute_bytes(
        &self,
        _e: &Emit<'_, 'c>,
        _words: [IntValue<'c>; 2],
        _selector: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        missing("permutations of bytes")
    }

    /// Returns true if halves of words are put together by [`permute_bytes`](Self::permute_bytes).
    fn permutes_bytes(&self) -> bool {
        false
    }

    /// Loads matrices of eight rows of 16 bytes from shared memory, 1, 2 or 4 of them, the addresses of whose rows
    /// lanes give ([`tk_gpu::analysis::ldmatrix`]); returns a word of each. Transposed, for elements of 16 bits.
    fn load_matrices(
        &self,
        _e: &Emit<'_, 'c>,
        _address: IntValue<'c>,
        _offset: i64,
        _matrices: u32,
        _transposed: bool,
    ) -> Res<Vec<IntValue<'c>>> {
        missing("loads of matrices")
    }

    /// Loads 8 bytes of elements of so many bytes, 1 or 2, from shared memory, of which sixteen lanes receive the transpose
    /// ([`tk_gpu::analysis::ldmatrix`]): two words.
    fn load_transposed(&self, _: &Emit<'_, 'c>, _: (IntValue<'c>, i64), _: usize) -> Res<Vec<IntValue<'c>>> {
        missing("transposed reads")
    }

    /// Stores four such matrices: `words` has one of each.
    fn store_matrices(
        &self,
        _e: &Emit<'_, 'c>,
        _at: (IntValue<'c>, i64),
        _words: &[BasicValueEnum<'c>],
        _transposed: bool,
    ) -> Res<()> {
        missing("stores of matrices")
    }

    /// Multiplies the words of two operands and adds to the elements of an accumulator ([`tk_gpu::target::mma`]).
    fn multiply(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// Issues products of warpgroups ([`tk_gpu::analysis::wgmma_shared`]); returns their accumulators, which may not be
    /// used before [`TargetEmitter::wgmma_wait`].
    fn wgmma_issue(
        &self,
        _e: &Emit<'_, 'c>,
        _what: &WgmmaOperands<'c>,
        _sums: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        missing("products of warpgroups")
    }

    /// Keeps the next wait for products behind the computation of these values, where an assembler would move it up.
    fn schedule_after(&self, _e: &Emit<'_, 'c>, _values: &[BasicValueEnum<'c>]) -> Res<()> {
        Ok(())
    }

    /// Waits for all groups of products of this thread but the last `pending`; returns these accumulators as they are then.
    fn wgmma_wait(
        &self,
        _e: &Emit<'_, 'c>,
        _pending: u32,
        _sums: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        missing("products of warpgroups")
    }

    /// Whether vectors stay whole where blocks meet, and counted loops test at their end. LLVM otherwise splits loaded
    /// vectors of AMD at the ends of their blocks, and so waits for them there, and copies accumulators in every iteration.
    fn keeps_vectors(&self, _e: &Emit<'_, 'c>) -> bool {
        false
    }

    /// Hides a value of 32 or 64 bits from LLVM's optimizer.
    fn opaque_value(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// Hides a word from LLVM and the assembler, which do not compute it before the word `after`.
    fn opaque_word(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>, _after: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// The address of a lane, about which LLVM knows nothing: where it knows how addresses advance, it carries one for each load.
    fn opaque_address(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// The number of this thread, computed again in a form that LLVM does not replace by the one that it has, behind the word
    /// `after`.
    fn thread_again(&self, e: &Emit<'_, 'c>, after: Option<IntValue<'c>>) -> Res<IntValue<'c>> {
        after.map_or(Ok(e.tid), |after| self.opaque_word(e, e.tid, after))
    }

    /// What comes next is not scheduled before what came before: it waits for memory.
    fn schedules_after(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        Ok(())
    }

    /// Adds a group of so many instructions of a kind to the order of what is between two places at which everything is
    /// [in order](Self::schedules_after).
    fn schedule_group(&self, _e: &Emit<'_, 'c>, _group: OrderedGroup, _count: usize) -> Res<()> {
        Ok(())
    }

    /// Whether instructions of this warp go before those of others from here on.
    fn set_priority(&self, _e: &Emit<'_, 'c>, _is_raised: bool) -> Res<()> {
        Ok(())
    }

    /// A uniform integer, in a form that the target knows to be uniform: it branches without masking lanes off.
    fn uniform(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// Whether one of these conditions holds in some lane of the warp, if the target branches so; in this lane otherwise.
    fn some_lane(&self, e: &Emit<'_, 'c>, conditions: &[IntValue<'c>]) -> Res<IntValue<'c>> {
        let none = e.context.bool_type().const_zero();
        conditions.iter().try_fold(none, |any, x| Ok(e.builder.build_or(any, *x, "")?))
    }

    /// True in one thread of the warp; all of its threads execute it.
    fn elect(&self, _e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        missing("elections")
    }

    /// Sets the number of registers of a lane; all threads of a warpgroup execute it.
    fn set_max_registers(&self, _e: &Emit<'_, 'c>, _count: u32) -> Res<()> {
        missing("moves of registers")
    }

    /// Initializes an mbarrier whose phases complete when this many threads have arrived and all announced bytes have
    /// Waits for all products that were begun, where that is more than to wait for the result of each.
    fn complete_products(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        Ok(())
    }

    /// arrived.
    fn mbarrier_init(&self, _e: &Emit<'_, 'c>, _address: IntValue<'c>, _arrivals: u32) -> Res<()> {
        missing("phases of barriers")
    }

    /// Makes initialized mbarriers visible to the async proxy and, after a barrier, to other threads.
    fn mbarriers_ready(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("phases of barriers")
    }

    /// Arrives and announces bytes.
    fn mbarrier_expect(&self, _e: &Emit<'_, 'c>, _address: IntValue<'c>, _bytes: u32) -> Res<()> {
        missing("phases of barriers")
    }

    /// Arrives at an mbarrier of this block, or of another one of the cluster, if the predicate is true.
    fn mbarrier_arrive(
        &self,
        _e: &Emit<'_, 'c>,
        _address: IntValue<'c>,
        _block: Option<IntValue<'c>>,
        _predicate: IntValue<'c>,
    ) -> Res<()> {
        missing("phases of barriers")
    }

    /// Waits until the phase of this parity is complete.
    fn mbarrier_wait(&self, _e: &Emit<'_, 'c>, _address: IntValue<'c>, _parity: IntValue<'c>) -> Res<()> {
        missing("phases of barriers")
    }

    /// Starts a load of a box of a tensor map to the shared memory of this block, or of the blocks of its cluster in a set
    /// of ranks; its bytes count for an mbarrier of each.
    fn tma_load(
        &self,
        _e: &Emit<'_, 'c>,
        _what: &PlacedBox<'c>,
        _barrier: IntValue<'c>,
        _ranks: Option<IntValue<'c>>,
    ) -> Res<()> {
        missing("copies of boxes")
    }

    /// Starts to fetch a tensor map, which the first copy would wait for.
    fn prefetch_tensor_map(&self, _e: &Emit<'_, 'c>, _map: IntValue<'c>) -> Res<()> {
        Ok(())
    }

    /// The number of this block in its cluster.
    fn cluster_rank(&self, _e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        missing("clusters of programs")
    }

    /// Waits for all threads of the cluster.
    fn cluster_sync(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("clusters of programs")
    }

    /// Starts a store of such a box from shared memory; elements out of bounds are skipped.
    fn tma_store(&self, _e: &Emit<'_, 'c>, _what: &PlacedBox<'c>, _adds: Option<DType>) -> Res<()> {
        missing("copies of boxes")
    }

    /// Waits until all stores that this thread has started have been written, or have `left` shared memory.
    fn wait_tma_stores(&self, _e: &Emit<'_, 'c>, _left: bool) -> Res<()> {
        missing("copies of boxes")
    }

    /// A barrier of all threads of a block, including the producer warp.
    fn barrier_all_warps(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// A barrier of the lanes of a warp.
    fn barrier_warp(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("barriers of warps")
    }

    /// Makes writes of this thread to shared memory, or to any memory, visible to [`TargetEmitter::wgmma_issue`] and TMA after a
    /// barrier.
    fn proxy_fence(&self, _e: &Emit<'_, 'c>, _global: bool) -> Res<()> {
        missing("fences between proxies")
    }

    /// The bits of an f32, rounded to those of a tf32, ties away from zero.
    fn tf32(&self, _e: &Emit<'_, 'c>, _x: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        missing("products of tf32")
    }

    /// Releases writes of all threads of the program with the next atomic operation of one of them, for acquires of
    /// others; all threads execute it. `scope` is `device` or `system`.
    fn release_fence(&self, e: &Emit<'_, 'c>, scope: &str) -> Res<()>;

    /// Signals that this block of a program has begun; all its threads execute it.
    fn cluster_arrive(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("programs of several blocks")
    }

    /// Stores these elements to the shared memory of all blocks of the program; they arrive at an mbarrier of each.
    fn remote_store(
        &self,
        _e: &Emit<'_, 'c>,
        _access: &Access<'c>,
        _values: &[BasicValueEnum<'c>],
        _barrier: IntValue<'c>,
    ) -> Res<()> {
        missing("programs of several blocks")
    }

    /// Waits for all blocks of a program, before its first store to their shared memory; all its threads execute it once.
    fn cluster_wait(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("programs of several blocks")
    }

    /// A barrier of all threads of the program.
    fn barrier(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// Called at the head of a loop that may not terminate; `waits` is true if it may wait for other programs.
    fn loop_header(&self, e: &Emit<'_, 'c>, waits: bool) -> Res<()>;

    /// A barrier of all programs of the launch.
    fn grid_barrier(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// The type of the register for a letter of a constraint and a value of this type; `None` for an unknown letter.
    fn register(&self, e: &Emit<'_, 'c>, letter: &str, of: BasicTypeEnum<'c>) -> Option<BasicTypeEnum<'c>>;

    /// Those letters, for messages.
    fn register_letters(&self) -> &'static str;

    /// Executes instructions that a program gives as text: results and inputs have the types of registers. Text and
    /// constraints have LLVM's syntax.
    fn assembly(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        outs: &[BasicTypeEnum<'c>],
        inputs: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// An atomic operation in device memory; returns the old value, undefined where the predicate is false.
    fn atomic(&self, e: &Emit<'_, 'c>, atomic: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>>;

    /// Adds one to an i32 in shared memory.
    fn shared_increment(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        predicate: Option<IntValue<'c>>,
    ) -> Res<()>;

    /// Ends the launch if an assert fails in some thread.
    fn assert(&self, e: &Emit<'_, 'c>, failing: &Failing<'_, 'c>) -> Res<()>;

    /// Prints a text in which `{}` are placeholders.
    fn print(&self, e: &Emit<'_, 'c>, text: &str, values: Vec<Form>, parts: &[PrintedPart<'c>]) -> Res<()>;

    /// Code for a function of floats; `None` if the target has none.
    fn math(
        &self,
        builder: &Builder<'c>,
        module: &Module<'c>,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        args: &[BasicValueEnum<'c>],
    ) -> Option<BasicValueEnum<'c>>;
}

/// Reports an operation that the target lacks.
fn missing<T>(what: &str) -> Res<T> {
    bug(format!("the target has no {what}"))
}

/// Code for a function of floats.
fn function<'c>(
    mut math: LlvmMath<'_, 'c>,
    op: ElementwiseOp,
    width: Width,
    fast: bool,
    args: &[BasicValueEnum<'c>],
) -> Option<BasicValueEnum<'c>> {
    let x = crate::math::function(&mut math, op, width, fast, args)?;
    math.finish().ok().map(|()| x)
}
