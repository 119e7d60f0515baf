//! Fibers: each runs one lane of a program on a stack of its own, from one call of the simulator to the next.
//!
//! Guarantees that a kernel's frames are never unwound: a lane that does not end is dropped with its stack, which is
//! sound because nothing on it needs to be dropped ([`super::run`] requires that of kernels). Stacks are reused by
//! later launches of the process.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult};

use super::calls::{Context, Request};

/// A compiled kernel: the context of a lane, and the arguments.
pub type KernelFn = unsafe extern "C" fn(*mut c_void, *const u64);

/// Bytes of a stack, less those of [`OFFSETS`]. A lane of a tile of 64 KiB over one warp keeps 2 KiB of it; 256 KiB suffice for the spills of a
/// hundred such tiles. The system allocates only pages that are accessed; a page after the end traps.
const STACK: usize = 256 << 10;

/// Stacks that are kept between launches: for one large program in each of a few threads. Each keeps the pages that
/// were accessed, mostly 8 KiB.
const KEPT: usize = 2048;

/// The most stacks of a process. Each takes two mappings, of which Linux gives 65,530 by default; beyond that the
/// allocator fails too.
const MOST: usize = 28_000;

/// Stacks begin at this many different cache lines of a page, one after the other. Beginning at the end of a page all of
/// them would share the few sets of the caches that such an address has, and switching lanes would miss them.
const OFFSETS: usize = 64;
const LINE: usize = 64;

static POOL: Mutex<Vec<LaneStack>> = Mutex::new(Vec::new());

/// The number of stacks, used and kept.
static STACKS: AtomicUsize = AtomicUsize::new(0);

/// The stack of a lane.
pub(super) struct LaneStack {
    memory: DefaultStack,
    /// Bytes that are left free at its high end.
    offset: usize,
}

impl LaneStack {
    /// The stack with this number; `None` if the system has no memory for it.
    fn new(number: usize) -> Option<LaneStack> {
        let memory = DefaultStack::new(STACK + OFFSETS * LINE).ok()?;
        Some(LaneStack { memory, offset: number % OFFSETS * LINE })
    }
}

// SAFETY: `memory` has the guard page; its high end is aligned, and moves by less than what was added to `STACK`, in
// multiples of a cache line.
unsafe impl Stack for LaneStack {
    fn base(&self) -> StackPointer {
        let base = self.memory.base();
        StackPointer::new(base.get() - self.offset).unwrap_or(base)
    }

    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }
}

/// The stacks of one launch that no fiber uses now.
#[derive(Default)]
pub(super) struct Stacks(Vec<LaneStack>);

impl Stacks {
    /// Takes a stack; `None` if the system has no memory, or the process too many stacks.
    pub fn take(&mut self) -> Option<LaneStack> {
        let kept = || POOL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        self.0.pop().or_else(kept).or_else(|| {
            let next = |n: usize| (n < MOST).then_some(n + 1);
            let number = STACKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
            let new = LaneStack::new(number);
            if new.is_none() {
                STACKS.fetch_sub(1, Ordering::Relaxed);
            }
            new
        })
    }

    /// Returns a stack.
    pub fn put(&mut self, stack: LaneStack) {
        self.0.push(stack);
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut pool = POOL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let free = KEPT.saturating_sub(pool.len()).min(self.0.len());
        pool.extend(self.0.drain(..free));
        STACKS.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// A running lane.
pub(super) struct Fiber(Option<Coroutine<u64, Request, (), LaneStack>>);

/// The arguments of a fiber.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub kernel: KernelFn,
    pub args: *const u64,
    pub lane: u32,
    pub program: [u32; 3],
    pub grid: [u32; 3],
}

impl Fiber {
    /// A lane that has not started.
    ///
    /// # Safety
    /// As long as the fiber is resumed, the kernel may be called with these arguments, and its frames contain nothing
    /// that needs to be dropped.
    pub unsafe fn new(stack: LaneStack, entry: Entry) -> Fiber {
        Fiber(Some(Coroutine::with_stack(stack, move |yielder, _| {
            let Entry { kernel, args, lane, program, grid } = entry;
            let context = Context { yielder, lane, program, grid };
            // SAFETY: the caller of `new` guarantees that it may be called with these arguments. The context lives on
            // this stack until the kernel returns.
            unsafe { kernel((&raw const context).cast_mut().cast(), args) };
        })))
    }

    /// Answers the last request and runs to the next one; `None` when the kernel has returned.
    pub fn resume(&mut self, reply: u64) -> Option<Request> {
        let running = self.0.as_mut().filter(|c| !c.done())?;
        match running.resume(reply) {
            CoroutineResult::Yield(request) => Some(request),
            CoroutineResult::Return(()) => None,
        }
    }

    /// Ends the lane wherever it is and returns its stack.
    pub fn stop(mut self) -> Option<LaneStack> {
        let mut running = self.0.take()?;
        // SAFETY: the caller of `new` guarantees that nothing on the stack needs to be dropped; `Context` and `Entry`
        // do not.
        unsafe { running.force_reset() };
        Some(running.into_stack())
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if let Some(running) = &mut self.0 {
            // SAFETY: as in `stop`.
            unsafe { running.force_reset() };
        }
    }
}
