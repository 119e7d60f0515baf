//! Work that is given up in the middle: nobody waits for its result any more.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work to stop, from another thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// What unwinds the stack of work that stops.
struct Stopped;

impl Stop {
    /// Asks the work to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Allows work again.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Returns true if the work was asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Unwinds if the work was asked to stop. That is no panic: nothing is reported.
    pub fn check(&self) {
        if self.is_set() {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Returns true if work ended in this way because it was asked to.
pub fn was_stopped(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Stopped>()
}
