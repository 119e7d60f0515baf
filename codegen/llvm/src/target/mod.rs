//! Owns what differs between targets in emission: [`TargetEmitter`], with a file for each target.
//!
//! Whatever can be said in LLVM instructions that every target has is not here.

pub mod amdgcn;
pub mod message;
pub mod nvptx;
pub mod request;
pub mod sim;
pub mod swap;

use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue};
use tk_gpu::Kernel;
use tk_ops::{AtomicOp, DType, ElementwiseOp};
use tk_tile::Loc;
use tk_tile::message::Form;
use tk_tile::message::Message;

use crate::emit::{Emit, Res, bug, slots};
use crate::math::LlvmMath;
use crate::processor::Processor;
use crate::scalar::Width;
use crate::target::request::MmaRequest;
use crate::target::request::PrintedPart;
use crate::target::request::WgmmaOperands;
use tk_gpu::ir::caching::Caching;

/// What is there when a kernel begins.
pub struct Start<'a, 'c> {
    /// Owner of the types.
    pub context: &'c Context,
    /// Stands at the entry.
    pub builder: &'a Builder<'c>,
    /// The module.
    pub module: &'a Module<'c>,
    /// The function.
    pub function: FunctionValue<'c>,
    /// The kernel.
    pub kernel: &'a Kernel,
}

/// What the code of a kernel begins with.
pub struct Entry<'c> {
    /// The number of the thread in its program.
    pub tid: IntValue<'c>,
    /// How many programs there are on each axis.
    pub programs: [IntValue<'c>; 3],
    /// The parameters of the kernel, flattened.
    pub params: Vec<BasicValueEnum<'c>>,
    /// The addresses of its tensor maps.
    pub maps: Vec<IntValue<'c>>,
}

/// What the parameters of a kernel for a GPU are: those of its source, three numbers of programs, the address of control memory
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
    /// Bytes that are added to it.
    pub offset: i64,
    /// The type of an element as it lies in memory.
    pub ty: BasicTypeEnum<'c>,
    /// Bytes of an element.
    pub bytes: u32,
    /// How many; `count * bytes` is a power of two up to the widest access.
    pub count: u32,
    /// Nothing happens without it; `None` is always true.
    pub predicate: Option<IntValue<'c>>,
    /// The same address without `offset`, where it is known that lanes are less than 2^30 bytes apart.
    pub near: Option<Near<'c>>,
    /// What the source asks of the caches, for one to device memory.
    pub caching: Caching,
}

impl<'c> Access<'c> {
    /// `count` elements of `bytes` bytes each, always.
    pub fn of(address: IntValue<'c>, offset: i64, ty: BasicTypeEnum<'c>, bytes: u32, count: u32) -> Self {
        let (predicate, near, caching) = (None, None, Caching::default());
        Access { address, offset, ty, bytes, count, predicate, near, caching }
    }
}

/// An address as one that all lanes of the warp share, and bytes behind it.
#[derive(Clone, Copy, Debug)]
pub struct Near<'c> {
    /// The same in all lanes; 64 bits.
    pub base: IntValue<'c>,
    /// Not negative and below 2^30, as is the sum with the offset of the access; 32 bits.
    pub distance: IntValue<'c>,
}

/// Memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Of the device.
    Global,
    /// Of the program.
    Shared,
}

/// Which lane a shuffle reads from.
#[derive(Clone, Copy, Debug)]
pub enum Lane<'c> {
    /// The own number, exclusive or this.
    Xor(u32),
    /// The own number less this; the own value where there is none.
    Up(u32),
    /// The own number plus this; the own value where there is none.
    Down(u32),
    /// This one.
    Index(IntValue<'c>),
}

/// An atomic operation of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'a, 'c> {
    /// What it does.
    pub op: AtomicOp,
    /// The type of the element.
    pub dtype: DType,
    /// Where.
    pub address: IntValue<'c>,
    /// The operand.
    pub value: BasicValueEnum<'c>,
    /// What `cas` compares with.
    pub compare: Option<BasicValueEnum<'c>>,
    /// Nothing happens without it.
    pub predicate: Option<IntValue<'c>>,
    /// `relaxed`, `acquire`, `release`, `acq_rel`.
    pub order: &'a str,
    /// `block`, `gpu`, `sys`.
    pub scope: &'a str,
}

/// An assert, as one thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct Failing<'a, 'c> {
    /// Whether it fails for this thread.
    pub fails: IntValue<'c>,
    /// Whether it does and no other thread says so for the same elements.
    pub own: IntValue<'c>,
    /// The first element for which it does; an i32.
    pub element: IntValue<'c>,
    /// What the program says then.
    pub text: &'a str,
    /// The extents of the tile; none of a scalar, which is the same in all threads.
    pub shape: &'a [u32],
}

/// A box of a tensor map, and the place in shared memory that it is copied to or from.
#[derive(Clone, Debug)]
pub struct PlacedBox<'c> {
    /// The address of the map.
    pub map: IntValue<'c>,
    /// Where the box begins along the dimensions of the map, the fastest first.
    pub at: Vec<IntValue<'c>>,
    /// Bytes from the start of shared memory.
    pub shared: IntValue<'c>,
    /// What the source asks of the caches.
    pub caching: Caching,
}

/// What the module of a GPU's kernel is: for what LLVM generates code, what makes a function a kernel, and what comes out.
pub(crate) trait GpuModule<'c>: TargetEmitter<'c> + Default {
    /// LLVM assembles the code to an object; otherwise an assembler reads its text.
    const ASSEMBLES: bool;
    /// Passes after those of all targets, each after a comma.
    const LAST_PASSES: &'static str;

    /// Triple, processor and features.
    fn processor(kernel: &Kernel) -> Processor;

    /// Tells LLVM that a function is a kernel; `maps` is the number of its first parameter that is a tensor map, and how many
    /// there are.
    fn mark_kernel(
        context: &'c Context,
        module: &Module<'c>,
        function: FunctionValue<'c>,
        kernel: &Kernel,
        maps: (u32, usize),
    ) -> Res<()>;

    /// The text of the assembly with what LLVM has no form for.
    fn finished(asm: String, kernel: &Kernel) -> String;

    /// What the kernel may say.
    fn into_messages(self) -> Vec<Message>;
}

/// What a target must offer. What only some have, such as copies beside the program, is a mistake of the compiler where there is
/// none: passes ask for the fact before they use such a thing.
pub trait TargetEmitter<'c> {
    /// Begins the function: reads its parameters.
    fn enter(&self, start: &Start<'_, 'c>) -> Res<Entry<'c>>;

    /// Where the next instructions come from.
    fn at(&self, loc: Option<Loc>);

    /// The address space of constants.
    fn constant_space(&self) -> AddressSpace;

    /// The number of this program on an axis.
    fn program_id(&self, e: &Emit<'_, 'c>, axis: u32) -> Res<IntValue<'c>>;

    /// Nanoseconds of a clock that all blocks share, as this thread sees them now.
    fn global_timer(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>>;

    /// The number of the multiprocessor that runs this block.
    fn multiprocessor(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>>;

    /// Reads; gives one value for each element, `other` where the predicate is false.
    fn load(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// Writes these elements.
    fn store(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()>;

    /// Asks for what is accessed in device memory to be brought to the caches; a hint that targets without such an
    /// instruction leave alone.
    fn prefetch(&self, _e: &Emit<'_, 'c>, _access: &Access<'c>) -> Res<()> {
        Ok(())
    }

    /// Begins to copy what is accessed in device memory to shared memory, 0 without the predicate of `from`; nothing
    /// happens without that of `to`.
    fn async_copy(&self, _e: &Emit<'_, 'c>, _from: &Access<'c>, _to: &Access<'c>) -> Res<()> {
        missing("asynchronous copies")
    }

    /// The copies since the last time are a group.
    fn async_commit(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("asynchronous copies")
    }

    /// Waits for all groups but the last `pending`.
    fn async_wait(&self, _e: &Emit<'_, 'c>, _pending: u32) -> Res<()> {
        missing("asynchronous copies")
    }

    /// 32 bits of another lane of the warp.
    fn shuffle(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>>;

    /// Matrices of eight rows of 16 bytes from shared memory, 1, 2 or 4 of them, whose rows begin where lanes say
    /// ([`tk_gpu::analysis::ldmatrix`]); gives a word of each. Transposed, of elements of 16 bits.
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

    /// Stores four such matrices: `words` has one of each.
    fn store_matrices(
        &self,
        _e: &Emit<'_, 'c>,
        _address: IntValue<'c>,
        _offset: i64,
        _words: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        missing("stores of matrices")
    }

    /// The words of two factors multiplied and added to the elements of an accumulator ([`tk_gpu::target::mma`]).
    fn multiply(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// Begins products of warpgroups ([`tk_gpu::analysis::wgmma_shared`]); gives their sums, which nobody may look at before
    /// [`TargetEmitter::wgmma_wait`].
    fn wgmma_issue(
        &self,
        _e: &Emit<'_, 'c>,
        _what: &WgmmaOperands<'c>,
        _sums: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        missing("products of warpgroups")
    }

    /// Waits for all products that this thread has begun together but the last `pending`; gives these sums as they are then.
    fn wgmma_wait(
        &self,
        _e: &Emit<'_, 'c>,
        _pending: u32,
        _sums: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        missing("products of warpgroups")
    }

    /// Hides a 64-bit value from LLVM's optimizer.
    fn opaque_value(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// An integer that is the same in all lanes of the warp, in a form in which the target knows that: it branches without
    /// switching lanes off.
    fn uniform(&self, _e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Ok(x)
    }

    /// True in one thread of the warp, all of whose threads come here.
    fn elect(&self, _e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        missing("elections")
    }

    /// A lane has so many registers from here on; all threads of a warpgroup come here.
    fn set_max_registers(&self, _e: &Emit<'_, 'c>, _count: u32) -> Res<()> {
        missing("moves of registers")
    }

    /// Makes a barrier in shared memory whose phases end when so many threads have arrived and all bytes that were announced
    /// have come.
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

    /// Arrives, if the predicate holds.
    fn mbarrier_arrive(
        &self,
        _e: &Emit<'_, 'c>,
        _address: IntValue<'c>,
        _predicate: IntValue<'c>,
    ) -> Res<()> {
        missing("phases of barriers")
    }

    /// Waits until the phase of this parity is over.
    fn mbarrier_wait(&self, _e: &Emit<'_, 'c>, _address: IntValue<'c>, _parity: IntValue<'c>) -> Res<()> {
        missing("phases of barriers")
    }

    /// Begins to copy a box that a tensor map describes to shared memory; its bytes count for a barrier.
    fn tma_load(&self, _e: &Emit<'_, 'c>, _what: &PlacedBox<'c>, _barrier: IntValue<'c>) -> Res<()> {
        missing("copies of boxes")
    }

    /// Begins to copy such a box from shared memory; what is outside is left out.
    fn tma_store(&self, _e: &Emit<'_, 'c>, _what: &PlacedBox<'c>) -> Res<()> {
        missing("copies of boxes")
    }

    /// Waits until all of them that this thread has begun are there, or have `left` shared memory.
    fn tensor_stores_wait(&self, _e: &Emit<'_, 'c>, _left: bool) -> Res<()> {
        missing("copies of boxes")
    }

    /// All threads of a block meet, the warp that brings tiles too.
    fn barrier_all_warps(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// What this thread has written to shared memory is there for [`TargetEmitter::wgmma_issue`] behind a barrier.
    fn proxy_fence(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("fences between proxies")
    }

    /// The bits of an f32, rounded to those of a tf32, ties away from zero.
    fn tf32(&self, _e: &Emit<'_, 'c>, _x: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        missing("products of tf32")
    }

    /// What any thread of the program has written is seen, with what the next atomic operation of one of them publishes, by
    /// whoever acquires it; all threads come here. `scope` is `device` or `system`.
    fn release_fence(&self, e: &Emit<'_, 'c>, scope: &str) -> Res<()>;

    /// This block of a program has begun; all its threads come by.
    fn cluster_arrive(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("programs of several blocks")
    }

    /// Writes these elements to the shared memory of all blocks of the program; they arrive at a barrier of each.
    fn post(
        &self,
        _e: &Emit<'_, 'c>,
        _access: &Access<'c>,
        _values: &[BasicValueEnum<'c>],
        _barrier: IntValue<'c>,
    ) -> Res<()> {
        missing("programs of several blocks")
    }

    /// In front of the first store to shared memory of a program of several blocks, where all its threads come by once.
    fn cluster_wait(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        missing("programs of several blocks")
    }

    /// All threads of the program meet.
    fn barrier(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// At the head of a loop that may not end; whether it may wait for other programs.
    fn turn(&self, e: &Emit<'_, 'c>, waits: bool) -> Res<()>;

    /// All programs of the launch meet.
    fn grid_barrier(&self, e: &Emit<'_, 'c>) -> Res<()>;

    /// The type of the register that a letter of a constraint names, for a value of this type; `None` if it names none.
    fn register(&self, e: &Emit<'_, 'c>, letter: &str, of: BasicTypeEnum<'c>) -> Option<BasicTypeEnum<'c>>;

    /// Those letters, for people to read.
    fn register_letters(&self) -> &'static str;

    /// Runs instructions that a program gives as text: results and inputs have the types of registers. Text and
    /// constraints are as LLVM takes them.
    fn assembly(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        outs: &[BasicTypeEnum<'c>],
        inputs: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>>;

    /// An atomic operation in device memory; gives the old value, anything where the predicate is false.
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

    /// Prints a text in which `{}` stand for values.
    fn print(&self, e: &Emit<'_, 'c>, text: &str, values: Vec<Form>, parts: &[PrintedPart<'c>]) -> Res<()>;

    /// Code for a function of floats; `None` if there is none.
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

/// Something that the target does not have was asked for.
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
