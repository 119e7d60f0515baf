//! Owns the tests of the simulated target: kernels are plain functions with the C signature that compiled ones have.
//!
//! This file has what they share; [`works`] has kernels that do what they should, [`faults`] has twins of which one has a
//! fault. All run with every seed and both widths.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panics")]

macro_rules! kernel {
    ($name:ident, $lane:ident, $body:block) => {
        pub(crate) extern "C" fn $name(ctx: Ctx, args: *const u64) {
            let $lane = Lane(ctx, args);
            $body
        }
    };
}

mod counts;
mod faults;
mod groups;
mod phases;
mod works;

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use tk_gpu::target::spec::{SIM_32, SIM_64};
use tk_llvm::sim::{
    Fault, FaultKind, Global, KernelFn, Launch, Order, Scope, Shuffle, SimSpace, Statistics, WaitKind,
    Waiting, run, symbols,
};
use tk_ops::{AtomicOp, DType};

type Ctx = *mut c_void;

/// The calls, found by name as the emitter finds them.
struct Calls {
    tid: unsafe extern "C" fn(Ctx) -> i32,
    program_id: unsafe extern "C" fn(Ctx, i32) -> i32,
    num_programs: unsafe extern "C" fn(Ctx, i32) -> i32,
    load: unsafe extern "C" fn(Ctx, u64, i32, *mut u8, i32),
    store: unsafe extern "C" fn(Ctx, u64, i32, *const u8, i32),
    shared_load: unsafe extern "C" fn(Ctx, u32, i32, *mut u8, i32),
    shared_store: unsafe extern "C" fn(Ctx, u32, i32, *const u8, i32),
    atomic: unsafe extern "C" fn(Ctx, i32, i32, i32, u64, u64, u64, i32, i32, i32) -> u64,
    barrier: unsafe extern "C" fn(Ctx, i32, i32, i32),
    warp_barrier: unsafe extern "C" fn(Ctx, i32),
    shuffle: unsafe extern "C" fn(Ctx, i32, u32, u32, i32) -> u32,
    grid_barrier: unsafe extern "C" fn(Ctx, i32),
    assert: unsafe extern "C" fn(Ctx, i32, i32, i32),
    print: unsafe extern "C" fn(Ctx, *const u8, i32),
    step: unsafe extern "C" fn(Ctx, i32),
}

#[allow(clippy::missing_transmute_annotations, reason = "the fields have the types")]
static CALLS: LazyLock<Calls> = LazyLock::new(|| {
    let find = |name: &str| symbols().iter().find(|s| s.0 == name).expect("a symbol").1 as *const ();
    macro_rules! call {
        // SAFETY: the table of `symbols` gives this signature.
        ($name:literal) => {
            unsafe { std::mem::transmute::<*const (), _>(find($name)) }
        };
    }
    Calls {
        tid: call!("tk_sim_tid"),
        program_id: call!("tk_sim_program_id"),
        num_programs: call!("tk_sim_num_programs"),
        load: call!("tk_sim_load"),
        store: call!("tk_sim_store"),
        shared_load: call!("tk_sim_shared_load"),
        shared_store: call!("tk_sim_shared_store"),
        atomic: call!("tk_sim_atomic"),
        barrier: call!("tk_sim_barrier"),
        warp_barrier: call!("tk_sim_warp_barrier"),
        shuffle: call!("tk_sim_shuffle"),
        grid_barrier: call!("tk_sim_grid_barrier"),
        assert: call!("tk_sim_assert"),
        print: call!("tk_sim_print"),
        step: call!("tk_sim_step"),
    }
});

/// A lane, with its arguments. SAFETY of all calls: the context and the arguments are those of the kernel.
#[derive(Clone, Copy)]
struct Lane(Ctx, *const u64);

impl Lane {
    fn arg(self, i: usize) -> u64 {
        unsafe { *self.1.add(i) }
    }
    /// Whether the twin with the fault runs: the last of four arguments.
    fn bad(self) -> bool {
        self.arg(3) == 1
    }
    fn tid(self) -> u32 {
        unsafe { (CALLS.tid)(self.0) as u32 }
    }
    fn program(self) -> u32 {
        unsafe { (CALLS.program_id)(self.0, 0) as u32 }
    }
    fn programs(self) -> u32 {
        unsafe { (CALLS.num_programs)(self.0, 0) as u32 }
    }
    fn load(self, addr: u64, loc: i32) -> u32 {
        let mut v = [0; 4];
        unsafe { (CALLS.load)(self.0, addr, 4, v.as_mut_ptr(), loc) };
        u32::from_le_bytes(v)
    }
    fn store(self, addr: u64, v: u32, loc: i32) {
        unsafe { (CALLS.store)(self.0, addr, 4, v.to_le_bytes().as_ptr(), loc) };
    }
    fn get(self, at: u32, loc: i32) -> u32 {
        let mut v = [0; 4];
        unsafe { (CALLS.shared_load)(self.0, at, 4, v.as_mut_ptr(), loc) };
        u32::from_le_bytes(v)
    }
    fn put(self, at: u32, v: u32, loc: i32) {
        unsafe { (CALLS.shared_store)(self.0, at, 4, v.to_le_bytes().as_ptr(), loc) };
    }
    fn atomic(
        self,
        op: AtomicOp,
        space: SimSpace,
        addr: u64,
        values: [u32; 2],
        order: Order,
        loc: i32,
    ) -> u32 {
        let ty = DType::ALL.iter().position(|d| *d == DType::U32).expect("a type") as i32;
        let [v, c] = values.map(u64::from);
        let scope = Scope::Device as i32;
        unsafe {
            (CALLS.atomic)(self.0, op as i32, ty, space as i32, addr, v, c, order as i32, scope, loc) as u32
        }
    }
    fn barrier(self, loc: i32) {
        unsafe { (CALLS.barrier)(self.0, 0, 0, loc) };
    }
    fn named(self, id: i32, threads: u32, loc: i32) {
        unsafe { (CALLS.barrier)(self.0, id, threads as i32, loc) };
    }
    fn warp_barrier(self, loc: i32) {
        unsafe { (CALLS.warp_barrier)(self.0, loc) };
    }
    fn shuffle(self, mode: Shuffle, v: u32, operand: u32, loc: i32) -> u32 {
        unsafe { (CALLS.shuffle)(self.0, mode as i32, v, operand, loc) }
    }
    fn step(self, loc: i32) {
        unsafe { (CALLS.step)(self.0, loc) };
    }
    /// Lanes of a warp: the third argument.
    fn width(self) -> u32 {
        self.arg(2) as u32
    }
}

/// The address of the buffer.
const BASE: u64 = 0x10_0000;

/// One buffer of words, and what was printed.
struct Buffer {
    words: Box<[UnsafeCell<u32>]>,
    printed: Mutex<Vec<(u32, u32, Vec<u8>)>>,
}

// SAFETY: the launch of a test is the only one that touches the words meanwhile.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn new(words: impl IntoIterator<Item = u32>) -> Buffer {
        Buffer { words: words.into_iter().map(UnsafeCell::new).collect(), printed: Mutex::default() }
    }
    fn read(&mut self) -> Vec<u32> {
        self.words.iter_mut().map(|w| *w.get_mut()).collect()
    }
}

impl Global for Buffer {
    fn resolve(&self, addr: u64, bytes: usize) -> Result<*mut u8, String> {
        let at = addr.wrapping_sub(BASE) as usize;
        if addr < BASE || at + bytes > self.words.len() * 4 {
            return Err(format!("the address {addr:#x} is in no buffer"));
        }
        // SAFETY: `at` is inside.
        Ok(unsafe { UnsafeCell::raw_get(self.words.as_ptr()).cast::<u8>().add(at) })
    }

    fn print(&self, program: [u32; 3], lane: u32, record: &[u8]) {
        self.printed.lock().expect("a lock").push((program[0], lane, record.to_vec()));
    }
}

fn widths() -> [u32; 2] {
    [SIM_32.warp_size, SIM_64.warp_size]
}

const WARPS: u32 = 4;

fn launch(kernel: KernelFn, args: &[u64], grid: u32, warp_size: u32, seed: u64) -> Launch<'_> {
    Launch {
        kernel,
        args,
        grid: [grid, 1, 1],
        threads: WARPS * warp_size,
        warp_size,
        shared_bytes: 2048,
        cooperative: false,
        seed,
        timeout: Some(Duration::from_secs(20)),
        banks: None,
    }
}

fn go(launch: &Launch<'_>, buffer: &Buffer) -> Result<Statistics, Fault> {
    // SAFETY: the kernels here keep what `run` demands.
    unsafe { run(launch, buffer) }
}

/// Runs a kernel with every seed and width on a buffer of zeros and gives what it left.
fn always(kernel: KernelFn, grid: u32, words: usize, cooperative: bool, check: impl Fn(u32, Vec<u32>)) {
    for width in widths() {
        for seed in 0..20 {
            let mut buffer = Buffer::new(vec![0; words]);
            let args = [BASE, words as u64, width.into(), 0];
            let launch = Launch { cooperative, ..launch(kernel, &args, grid, width, seed) };
            go(&launch, &buffer).unwrap_or_else(|f| panic!("width {width}, seed {seed}: {f}"));
            check(width, buffer.read());
        }
    }
}

/// Runs the twins with every seed and width; the fault must be one of these kinds.
fn planted(kernel: KernelFn, kinds: &[FaultKind]) -> Vec<Fault> {
    let mut found = vec![];
    for width in widths() {
        for seed in 0..20 {
            for bad in [0, 1] {
                let buffer = Buffer::new(vec![0; 1024]);
                let args = [BASE, 1024, width.into(), bad];
                let launch =
                    Launch { timeout: Some(Duration::from_secs(3)), ..launch(kernel, &args, 2, width, seed) };
                match (go(&launch, &buffer), bad) {
                    (Ok(_), 0) => {}
                    (Err(fault), 1) if kinds.contains(&fault.kind) => found.push(fault),
                    (result, _) => panic!("width {width}, seed {seed}, bad {bad}: {result:?}"),
                }
            }
        }
    }
    found
}
