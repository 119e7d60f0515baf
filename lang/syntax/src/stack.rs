//! A large stack for the compiler, whose walks are recursive: they follow the nesting of a program, and callers may have little
//! (threads have 2 MiB).

use std::thread;

/// Bytes of a stack on which the compiler runs; the memory is only reserved. The deepest tree that the parser lets through needs
/// less than 1 MiB in a debug build; lowering spends up to 10 KiB for a level of control flow, and as much for all expressions of
/// the deepest tree. This is several times all of that together.
pub const STACK: usize = 64 << 20;

/// Runs `work` on a thread with a stack of [`STACK`] bytes, or here if there can be no thread.
///
/// # Errors
/// What the thread panicked with.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> thread::Result<T> {
    let mut work = Some(work);
    let mut once = || work.take().map(|work| work());
    let done = thread::scope(|scope| {
        let thread =
            thread::Builder::new().name("tk".into()).stack_size(STACK).spawn_scoped(scope, &mut once);
        thread.ok().map(thread::ScopedJoinHandle::join)
    });
    let found = done.unwrap_or_else(|| Ok(once()))?;
    found.ok_or_else(|| Box::new("the work was done twice") as _)
}
