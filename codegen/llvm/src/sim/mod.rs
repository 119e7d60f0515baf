//! The simulated target: runs compiled kernels lane by lane on the host and detects errors that a GPU may hide.
//!
//! Each lane of a program is a fiber that calls the kernel, a host function with the C signature of [`Kernel`], which
//! accesses memory and other lanes by the calls of [`symbols`]. A seed determines the order in which programs start and
//! lanes run. Where possible, the faults found do not depend on that order: races are found by what orders two
//! accesses, not by when they happen.
//!
//! Guarantees that the same launch with the same seed on the same memory gives the same result and the same fault, that
//! a fault ends the launch without unwinding through the kernel, and that no lane accesses memory outside of its own. A
//! kernel that loops without calls is never interrupted; one that recurses infinitely traps at a guard page.
//!
//! A launch runs on the calling thread. An operation that takes effect later than its call (an asynchronous copy)
//! becomes one more request whose effect the scheduler of the program executes at a time that it draws.

mod access;
mod block;
mod calls;
mod clock;
mod copies;
mod element;
mod env;
mod fault;
mod fiber;
mod grid;
mod launch;
mod libcalls;
mod matrix;
mod mbarrier;
pub mod names;
mod random;
mod shadow;
mod sync;
mod tally;
mod wgmma;

pub use self::calls::{Order, Scope, Shuffle, SimSpace, symbols};
pub use self::fault::{Fault, FaultKind, WaitKind, Waiting};
pub use self::fiber::KernelFn;
pub use self::launch::{Global, Launch};
pub use self::libcalls::library;
pub use self::mbarrier::{SimDimension, SimTensorMap};
pub use self::tally::Statistics;

/// Runs a launch to completion.
///
/// # Errors
/// The first fault that this seed finds; earlier writes remain.
///
/// # Safety
/// - The kernel may be called with the arguments; it accesses other memory than its own only by the calls of
///   [`symbols`], gives them its context and pointers to memory of its own, and does not unwind.
/// - No frame of it contains something that needs to be dropped while it makes a call: a lane that does not end is
///   dropped with its stack.
/// - The memory of [`Global::resolve`] may be read and written until the launch ends, and nothing else accesses it
///   meanwhile.
pub unsafe fn run(launch: &Launch<'_>, memory: &dyn Global) -> Result<Statistics, Fault> {
    // SAFETY: the caller satisfies the requirements.
    unsafe { grid::run(launch, memory) }
}
