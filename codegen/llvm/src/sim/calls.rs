//! The calls of compiled kernels to the simulator: their names, their C signatures, and their arguments.
//!
//! A call that needs more than the state of the lane suspends it with a [`Request`], which the scheduler serves on its
//! own stack. So no call unwinds or panics, and a lane that has failed is never resumed.
//!
//! The first argument of each is the context that the kernel received. `loc` is an index into the emitter's table of
//! source positions, -1 for none.

use std::ffi::c_void;
use std::time::{SystemTime, UNIX_EPOCH};

use corosensei::Yielder;
use tk_gpu::ir::tensor_map::MOST_DIMENSIONS;
use tk_ops::AtomicOp;

/// The state of a lane; the context of the calls points to it.
pub(super) struct Context {
    pub yielder: *const Yielder<u64, Request>,
    pub lane: u32,
    pub program: [u32; 3],
    pub grid: [u32; 3],
}

/// The memory of an atomic, as passed to `tk_sim_atomic`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimSpace {
    /// Device memory.
    Global = 0,
    /// The shared memory of the program.
    Shared = 1,
}

/// The order of an atomic, as passed to `tk_sim_atomic`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Orders nothing.
    Relaxed = 0,
    /// Orders operations after it.
    Acquire = 1,
    /// Orders operations before it.
    Release = 2,
    /// Both.
    AcqRel = 3,
}

/// The lanes that observe the order of an atomic, as passed to `tk_sim_atomic`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The lanes of the program.
    Block = 0,
    /// All programs of the device.
    Device = 1,
    /// The host and other devices too.
    System = 2,
}

/// The source lane of a shuffle, as passed to `tk_sim_shuffle`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// The lane whose number differs in the bits of the operand.
    Xor = 0,
    /// The lane that many below; its own value if none exists.
    Up = 1,
    /// The lane that many above; its own value if none exists.
    Down = 2,
    /// The lane with this number, modulo the width of the warp.
    Index = 3,
}

impl SimSpace {
    pub(super) fn from_code(code: i32) -> Option<SimSpace> {
        [SimSpace::Global, SimSpace::Shared].into_iter().find(|s| *s as i32 == code)
    }
}

impl Order {
    pub(super) fn from_code(code: i32) -> Option<Order> {
        [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel]
            .into_iter()
            .find(|o| *o as i32 == code)
    }

    pub(super) fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel)
    }

    pub(super) fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel)
    }
}

impl Scope {
    pub(super) fn from_code(code: i32) -> Option<Scope> {
        [Scope::Block, Scope::Device, Scope::System].into_iter().find(|s| *s as i32 == code)
    }
}

impl Shuffle {
    pub(super) fn from_code(code: i32) -> Option<Shuffle> {
        [Shuffle::Xor, Shuffle::Up, Shuffle::Down, Shuffle::Index].into_iter().find(|s| *s as i32 == code)
    }
}

/// A request of a lane to the scheduler. Pointers are to memory of the lane, which does not change while the lane
/// waits.
///
/// A tag of four bytes leaves no unaligned gap before the fields, whose copies by halves stall the processor.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Request {
    Load { space: SimSpace, addr: u64, bytes: i32, dst: *mut u8, loc: i32 },
    Store { space: SimSpace, addr: u64, bytes: i32, src: *const u8, loc: i32 },
    Copy(CopyRequest),
    Commit,
    Await { pending: i32, loc: i32 },
    Atomic(AtomicRequest),
    Barrier { id: i32, threads: i32, loc: i32 },
    WarpBarrier { loc: i32 },
    Shuffle { mode: i32, value: u32, operand: u32, loc: i32 },
    Matrix { what: MatrixCall, addr: u32, registers: *mut u8, loc: i32 },
    Group(GroupRequest),
    GroupCommit,
    GroupWait { pending: i32, registers: *mut u8, words: i32, loc: i32 },
    ProxyFence,
    PhaseBegin { address: u32, arrivals: i32, loc: i32 },
    PhaseArrive { address: u32, bytes: i32, loc: i32 },
    PhaseWait { address: u32, parity: u32, loc: i32 },
    Tensor(TensorRequest),
    TensorStore(TensorRequest),
    StoreWait { left: bool, loc: i32 },
    GridBarrier { loc: i32 },
    Assert { message: i32, element: i32, loc: i32 },
    Print { record: *const u8, bytes: i32 },
    Step { loc: i32 },
}

/// A matrix operation of the lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MatrixCall {
    /// Loads this many from shared memory.
    Load { matrices: i32, transposed: bool },
    /// Loads 8 bytes of elements of so many bytes, of which sixteen lanes receive the transpose.
    LoadTransposed { bytes: i32 },
    /// Stores this many to shared memory, possibly transposed.
    Store { matrices: i32, transposed: bool },
    /// Multiplies: position in [`tk_gpu::target::mma::all()`], positions of the types of the operands in `DType::ALL`.
    Multiply { kind: i32, operands: [i32; 2] },
}

impl Request {
    /// Its source position; -1 for none.
    pub fn loc(&self) -> i32 {
        match *self {
            Request::Load { loc, .. } | Request::Store { loc, .. } | Request::Barrier { loc, .. } => loc,
            Request::Shuffle { loc, .. } | Request::Assert { loc, .. } | Request::Matrix { loc, .. } => loc,
            Request::WarpBarrier { loc } | Request::GridBarrier { loc } | Request::Step { loc } => loc,
            Request::Atomic(AtomicRequest { loc, .. }) => loc,
            Request::Copy(CopyRequest { loc, .. }) | Request::Await { loc, .. } => loc,
            Request::Group(GroupRequest { loc, .. }) | Request::GroupWait { loc, .. } => loc,
            Request::PhaseBegin { loc, .. } | Request::PhaseArrive { loc, .. } => loc,
            Request::PhaseWait { loc, .. } | Request::StoreWait { loc, .. } => loc,
            Request::Tensor(TensorRequest { loc, .. }) | Request::TensorStore(TensorRequest { loc, .. }) => {
                loc
            }
            Request::Print { .. } | Request::Commit | Request::GroupCommit | Request::ProxyFence => -1,
        }
    }
}

/// The arguments of `tk_sim_async_copy`: `read` of the `bytes` come from device memory, the others are 0.
#[derive(Clone, Copy)]
pub(super) struct CopyRequest {
    pub from: u64,
    pub to: u32,
    pub bytes: i32,
    pub read: i32,
    pub loc: i32,
}

/// The arguments of `tk_sim_tensor_copy` and `tk_sim_tensor_store`.
#[derive(Clone, Copy)]
pub(super) struct TensorRequest {
    /// The address of a [`super::SimTensorMap`].
    pub map: u64,
    /// The position of the box, the fastest dimension first.
    pub at: [i32; MOST_DIMENSIONS],
    /// The address of the box in shared memory.
    pub shared: u32,
    /// The mbarrier of a copy to shared memory.
    pub barrier: u32,
    /// One more than the position in `DType::ALL` of elements that are added to memory; 0 if they replace what is there.
    pub adds: i32,
    pub loc: i32,
}

/// The arguments of `tk_sim_group_multiply`.
#[derive(Clone, Copy)]
pub(super) struct GroupRequest {
    pub what: GroupCall,
    /// The words of the left operand of the lane, and its accumulator.
    pub words: *const u8,
    pub accumulators: *mut u8,
    pub loc: i32,
}

/// The arguments that all lanes of a warpgroup share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupCall {
    /// As for [`MatrixCall::Multiply`].
    pub kind: i32,
    pub operands: [i32; 2],
    pub columns: i32,
    /// Descriptors.
    pub left: u64,
    pub right: u64,
    /// Bit 0: the left operand is in registers as words; bits 1 and 2: neighbours of the left and right one are across
    /// K.
    pub flags: i32,
}

/// The arguments of `tk_sim_atomic`.
#[derive(Clone, Copy)]
pub(super) struct AtomicRequest {
    pub op: i32,
    pub ty: i32,
    pub space: i32,
    pub addr: u64,
    pub value: u64,
    pub compare: u64,
    pub order: i32,
    pub scope: i32,
    pub loc: i32,
}

impl AtomicRequest {
    /// Adds the bytes of an element of the type at this position to device memory, without an order.
    pub fn adds(ty: i32, addr: u64, element: &[u8], loc: i32) -> AtomicRequest {
        let op = AtomicOp::ALL.iter().position(|o| *o == AtomicOp::Add).unwrap_or(0) as i32;
        let value = element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let (order, scope) = (Order::Relaxed as i32, Scope::Device as i32);
        AtomicRequest { op, ty, space: SimSpace::Global as i32, addr, value, compare: 0, order, scope, loc }
    }
}

/// # Safety
/// `ctx` is the context that a kernel received which has not returned.
unsafe fn context<'a>(ctx: *mut c_void) -> &'a Context {
    // SAFETY: the context of a kernel points to a `Context` that lives as long as the kernel runs.
    unsafe { &*ctx.cast::<Context>() }
}

/// # Safety
/// As [`context`].
unsafe fn ask(ctx: *mut c_void, request: Request) -> u64 {
    // SAFETY: as above; the yielder lives as long as the context, and this code runs on its stack.
    unsafe { (*context(ctx).yielder).suspend(request) }
}

unsafe extern "C" fn tid(ctx: *mut c_void) -> i32 {
    // SAFETY: called by a kernel with its context.
    unsafe { context(ctx) }.lane as i32
}

unsafe extern "C" fn global_timer(_ctx: *mut c_void) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

unsafe extern "C" fn program_id(ctx: *mut c_void, axis: i32) -> i32 {
    // SAFETY: called by a kernel with its context.
    let here = unsafe { context(ctx) };
    here.program.get(axis as usize).map_or(0, |p| *p as i32)
}

unsafe extern "C" fn num_programs(ctx: *mut c_void, axis: i32) -> i32 {
    // SAFETY: called by a kernel with its context.
    let here = unsafe { context(ctx) };
    here.grid.get(axis as usize).map_or(1, |p| *p as i32)
}

unsafe extern "C" fn load(ctx: *mut c_void, addr: u64, bytes: i32, dst: *mut u8, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Load { space: SimSpace::Global, addr, bytes, dst, loc }) };
}

unsafe extern "C" fn store(ctx: *mut c_void, addr: u64, bytes: i32, src: *const u8, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Store { space: SimSpace::Global, addr, bytes, src, loc }) };
}

unsafe extern "C" fn shared_load(ctx: *mut c_void, addr: u32, bytes: i32, dst: *mut u8, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Load { space: SimSpace::Shared, addr: addr.into(), bytes, dst, loc }) };
}

unsafe extern "C" fn shared_store(ctx: *mut c_void, addr: u32, bytes: i32, src: *const u8, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Store { space: SimSpace::Shared, addr: addr.into(), bytes, src, loc }) };
}

unsafe extern "C" fn async_copy(ctx: *mut c_void, from: u64, to: u32, bytes: i32, read: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Copy(CopyRequest { from, to, bytes, read, loc })) };
}

unsafe extern "C" fn async_commit(ctx: *mut c_void) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Commit) };
}

unsafe extern "C" fn async_wait(ctx: *mut c_void, pending: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Await { pending, loc }) };
}

#[allow(clippy::too_many_arguments, reason = "the C signature of the call")]
unsafe extern "C" fn atomic(
    ctx: *mut c_void,
    op: i32,
    ty: i32,
    space: i32,
    addr: u64,
    value: u64,
    compare: u64,
    order: i32,
    scope: i32,
    loc: i32,
) -> u64 {
    let request = AtomicRequest { op, ty, space, addr, value, compare, order, scope, loc };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Atomic(request)) }
}

unsafe extern "C" fn barrier(ctx: *mut c_void, id: i32, threads: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Barrier { id, threads, loc }) };
}

unsafe extern "C" fn warp_barrier(ctx: *mut c_void, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::WarpBarrier { loc }) };
}

unsafe extern "C" fn shuffle(ctx: *mut c_void, mode: i32, value: u32, operand: u32, loc: i32) -> u32 {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Shuffle { mode, value, operand, loc }) as u32 }
}

unsafe extern "C" fn load_matrices(
    ctx: *mut c_void,
    addr: u32,
    matrices: i32,
    transposed: i32,
    registers: *mut u8,
    loc: i32,
) {
    let what = MatrixCall::Load { matrices, transposed: transposed != 0 };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Matrix { what, addr, registers, loc }) };
}

unsafe extern "C" fn load_transposed(ctx: *mut c_void, addr: u32, bytes: i32, registers: *mut u8, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Matrix { what: MatrixCall::LoadTransposed { bytes }, addr, registers, loc }) };
}

unsafe extern "C" fn store_matrices(
    ctx: *mut c_void,
    addr: u32,
    matrices: i32,
    transposed: i32,
    registers: *mut u8,
    loc: i32,
) {
    let what = MatrixCall::Store { matrices, transposed: transposed != 0 };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Matrix { what, addr, registers, loc }) };
}

unsafe extern "C" fn multiply(ctx: *mut c_void, kind: i32, a: i32, b: i32, registers: *mut u8, loc: i32) {
    let what = MatrixCall::Multiply { kind, operands: [a, b] };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Matrix { what, addr: 0, registers, loc }) };
}

#[allow(clippy::too_many_arguments, reason = "the C signature of the call")]
unsafe extern "C" fn group_multiply(
    ctx: *mut c_void,
    kind: i32,
    a: i32,
    b: i32,
    columns: i32,
    left: u64,
    right: u64,
    flags: i32,
    words: *const u8,
    accumulators: *mut u8,
    loc: i32,
) {
    let what = GroupCall { kind, operands: [a, b], columns, left, right, flags };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Group(GroupRequest { what, words, accumulators, loc })) };
}

unsafe extern "C" fn group_commit(ctx: *mut c_void) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::GroupCommit) };
}

unsafe extern "C" fn group_wait(ctx: *mut c_void, pending: i32, registers: *mut u8, words: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::GroupWait { pending, registers, words, loc }) };
}

unsafe extern "C" fn proxy_fence(ctx: *mut c_void) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::ProxyFence) };
}

unsafe extern "C" fn mbarrier_init(ctx: *mut c_void, address: u32, arrivals: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::PhaseBegin { address, arrivals, loc }) };
}

unsafe extern "C" fn mbarrier_arrive(ctx: *mut c_void, address: u32, bytes: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::PhaseArrive { address, bytes, loc }) };
}

unsafe extern "C" fn mbarrier_wait(ctx: *mut c_void, address: u32, parity: u32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::PhaseWait { address, parity, loc }) };
}

unsafe extern "C" fn tma_load(
    ctx: *mut c_void,
    map: u64,
    x: i32,
    y: i32,
    z: i32,
    u: i32,
    v: i32,
    to: u32,
    barrier: u32,
    loc: i32,
) {
    // SAFETY: called by a kernel with its context.
    unsafe {
        ask(
            ctx,
            Request::Tensor(TensorRequest { map, at: [x, y, z, u, v], shared: to, barrier, adds: 0, loc }),
        )
    };
}

unsafe extern "C" fn tma_store(
    ctx: *mut c_void,
    map: u64,
    x: i32,
    y: i32,
    z: i32,
    u: i32,
    v: i32,
    from: u32,
    adds: i32,
    loc: i32,
) {
    let request = TensorRequest { map, at: [x, y, z, u, v], shared: from, barrier: 0, adds, loc };
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::TensorStore(request)) };
}

unsafe extern "C" fn store_wait(ctx: *mut c_void, left: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::StoreWait { left: left != 0, loc }) };
}

unsafe extern "C" fn grid_barrier(ctx: *mut c_void, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::GridBarrier { loc }) };
}

unsafe extern "C" fn assert_failed(ctx: *mut c_void, message: i32, element: i32, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Assert { message, element, loc }) };
}

unsafe extern "C" fn print(ctx: *mut c_void, record: *const u8, bytes: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Print { record, bytes }) };
}

unsafe extern "C" fn step(ctx: *mut c_void, loc: i32) {
    // SAFETY: called by a kernel with its context.
    unsafe { ask(ctx, Request::Step { loc }) };
}

/// The calls by name, with their addresses. Their C signatures, after the context `ptr`:
///
/// | call | arguments | result |
/// | --- | --- | --- |
/// | `tk_sim_tid` | | `i32`: the lane, counted in its program |
/// | `tk_sim_program_id`, `tk_sim_num_programs` | `i32` axis | `i32` |
/// | `tk_sim_global_timer` | | `u64`: nanoseconds |
/// | `tk_sim_load` | `u64` address, `i32` bytes (1, 2, 4, 8, 16), `ptr` to, `i32` loc | |
/// | `tk_sim_store` | `u64` address, `i32` bytes, `ptr` from, `i32` loc | |
/// | `tk_sim_shared_load`, `tk_sim_shared_store` | `u32` address, then as above | |
/// | `tk_sim_async_copy` | `u64` address, `u32` shared address, `i32` bytes, `i32` bytes that are read, the others are 0, `i32` loc | |
/// | `tk_sim_async_commit` | | makes the lane's copies since the last commit a group |
/// | `tk_sim_async_wait` | `i32` groups that may remain in flight, `i32` loc | |
/// | `tk_sim_atomic` | `i32` op (position in `AtomicOp::ALL`), `i32` type (position in `DType::ALL`), `i32` [`Space`], `u64` address, `u64` value, `u64` compare, `i32` [`Order`], `i32` [`Scope`], `i32` loc | `u64`: the bits before, 0 of a store |
/// | `tk_sim_barrier` | `i32` id, `i32` lanes at the barrier (0 or all: the whole program), `i32` loc | |
/// | `tk_sim_warp_barrier` | `i32` loc | |
/// | `tk_sim_shuffle` | `i32` [`Shuffle`], `u32` value, `u32` operand, `i32` loc | `u32` |
/// | `tk_sim_load_matrices` | `u32` address of a row, `i32` matrices (1, 2, 4), `i32` whether they are transposed, `ptr` to a word of each, `i32` loc | |
/// | `tk_sim_load_transposed` | `u32` address of 8 bytes, `i32` bytes of an element (1, 2), `ptr` to two words, `i32` loc | |
/// | `tk_sim_store_matrices` | `u32` address of a row, `i32` matrices (1, 2, 4), `i32` whether they are transposed, `ptr` to a word of each, `i32` loc | |
/// | `tk_sim_multiply` | `i32` instruction (position in `tk_gpu::target::mma::all()`), `i32` type of `a`, `i32` type of `b` (positions in `DType::ALL`), `ptr` to the words of `a`, of `b`, and the accumulator, which the result replaces, `i32` loc | |
/// | `tk_sim_group_multiply` | `i32` instruction, `i32` type of `a`, `i32` type of `b` as above, `i32` columns, `u64` descriptor of `a`, `u64` descriptor of `b` (PTX manual, "Matrix Descriptor Format"), `i32` flags (1: `a` is in registers as words, 2 and 4: neighbours of `a`, `b` are across K), `ptr` to words of `a`, `ptr` to the accumulator, which may not be read before the wait, `i32` loc | |
/// | `tk_sim_group_commit` | | makes the lane's wgmma products since the last commit one group |
/// | `tk_sim_group_wait` | `i32` groups that may remain in flight, `ptr` to words, `i32` their number, `i32` loc | marks of accumulators among the words are replaced by their values |
/// | `tk_sim_proxy_fence` | | makes the lane's writes to shared memory visible to wgmma after a barrier |
/// | `tk_sim_phase_begin` | `u32` shared address of a barrier, `i32` arrivals of a phase, `i32` loc | |
/// | `tk_sim_phase_arrive` | `u32` barrier, `i32` bytes that will come, `i32` loc | |
/// | `tk_sim_phase_wait` | `u32` barrier, `u32` parity of the phase that must be complete, `i32` loc | |
/// | `tk_sim_tensor_copy` | `u64` address of a [`super::TensorMap`], five `i32` positions, the fastest first, `u32` shared address, `u32` barrier, `i32` loc | |
/// | `tk_sim_tensor_store` | `u64` address of a [`super::TensorMap`], five `i32` positions, the fastest first, `u32` shared address, `i32` type of elements that are added (one more than the position in `DType::ALL`, 0 if they replace), `i32` loc | |
/// | `tk_sim_store_wait` | `i32` whether it suffices that all has been read from shared memory, `i32` loc: waits for the stores of the lane | |
/// | `tk_sim_grid_barrier` | `i32` loc | |
/// | `tk_sim_assert` | `i32` message, `i32` element of a tile, 0 of a scalar, `i32` loc | does not return |
/// | `tk_sim_print` | `ptr` record, `i32` bytes | |
/// | `tk_sim_step` | `i32` loc | for the head of a loop that may not terminate: others get a turn, and the time limit is checked |
pub fn symbols() -> &'static [(&'static str, usize)] {
    use std::sync::LazyLock;
    static TABLE: LazyLock<[(&'static str, usize); 33]> = LazyLock::new(|| {
        [
            ("tk_sim_tid", tid as *const () as usize),
            ("tk_sim_program_id", program_id as *const () as usize),
            ("tk_sim_num_programs", num_programs as *const () as usize),
            ("tk_sim_global_timer", global_timer as *const () as usize),
            ("tk_sim_load", load as *const () as usize),
            ("tk_sim_store", store as *const () as usize),
            ("tk_sim_shared_load", shared_load as *const () as usize),
            ("tk_sim_shared_store", shared_store as *const () as usize),
            ("tk_sim_async_copy", async_copy as *const () as usize),
            ("tk_sim_async_commit", async_commit as *const () as usize),
            ("tk_sim_async_wait", async_wait as *const () as usize),
            ("tk_sim_atomic", atomic as *const () as usize),
            ("tk_sim_barrier", barrier as *const () as usize),
            ("tk_sim_warp_barrier", warp_barrier as *const () as usize),
            ("tk_sim_shuffle", shuffle as *const () as usize),
            ("tk_sim_load_matrices", load_matrices as *const () as usize),
            ("tk_sim_load_transposed", load_transposed as *const () as usize),
            ("tk_sim_store_matrices", store_matrices as *const () as usize),
            ("tk_sim_multiply", multiply as *const () as usize),
            ("tk_sim_group_multiply", group_multiply as *const () as usize),
            ("tk_sim_group_commit", group_commit as *const () as usize),
            ("tk_sim_group_wait", group_wait as *const () as usize),
            ("tk_sim_proxy_fence", proxy_fence as *const () as usize),
            ("tk_sim_phase_begin", mbarrier_init as *const () as usize),
            ("tk_sim_phase_arrive", mbarrier_arrive as *const () as usize),
            ("tk_sim_phase_wait", mbarrier_wait as *const () as usize),
            ("tk_sim_tensor_copy", tma_load as *const () as usize),
            ("tk_sim_tensor_store", tma_store as *const () as usize),
            ("tk_sim_store_wait", store_wait as *const () as usize),
            ("tk_sim_grid_barrier", grid_barrier as *const () as usize),
            ("tk_sim_assert", assert_failed as *const () as usize),
            ("tk_sim_print", print as *const () as usize),
            ("tk_sim_step", step as *const () as usize),
        ]
    });
    &*TABLE
}
