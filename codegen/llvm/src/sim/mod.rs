//! Owns the simulated target: it runs compiled kernels lane by lane on the host and looks for what machines may do wrong.
//!
//! Each lane of a program is a fiber that calls the kernel, a host function with the C signature of [`KernelFn`], which
//! reaches memory and other lanes by the calls of [`symbols`]. A seed decides in which order programs start and lanes
//! run. What one run finds does not depend on luck where that can be helped: races are found by what orders two accesses,
//! not by when they come.
//!
//! Guarantees that the same launch with the same seed on the same memory gives the same result and the same fault, that
//! a fault ends the launch without unwinding through the kernel, and that no lane leaves memory that it was given.
//! A kernel that loops without calls is never interrupted; one that recurses without end dies at a guard page.
//!
//! A launch runs on the thread that asks for it. What takes effect later than the call that asks for it (an asynchronous
//! copy) becomes one more request whose effect the scheduler of the program keeps, and does at a moment that it draws.

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
mod group;
mod launch;
mod library;
mod matrix;
mod meet;
pub mod names;
mod phases;
mod random;
mod shadow;
mod tally;

pub use self::calls::{Order, Scope, Shuffle, SimSpace, symbols};
pub use self::fault::{Fault, FaultKind, WaitKind, Waiting};
pub use self::fiber::KernelFn;
pub use self::launch::{Global, Launch};
pub use self::library::library;
pub use self::phases::{SimDimension, SimTensorMap};
pub use self::tally::Statistics;

/// Runs a launch to its end.
///
/// # Errors
/// The first fault that this seed finds; what was written before it stays.
///
/// # Safety
/// - The kernel may be called with the arguments; it reaches other memory than its own only by the calls of [`symbols`],
///   gives them its context and pointers to memory of its own, and does not unwind.
/// - No frame of it holds something that wants to be dropped while it makes a call: a lane that does not end is dropped
///   with its stack.
/// - What [`Global::resolve`] gives may be read and written until the launch ends, and nobody else touches it meanwhile.
pub unsafe fn run(launch: &Launch<'_>, memory: &dyn Global) -> Result<Statistics, Fault> {
    // SAFETY: the caller keeps the conditions.
    unsafe { grid::run(launch, memory) }
}
