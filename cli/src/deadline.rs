//! A deadline for a launch that nothing but the end of its process can stop: on the CPU, a launch returns when it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Does something after a time, unless it is dropped before.
pub struct Deadline(Arc<AtomicBool>);

impl Deadline {
    /// `passed` is what happens then, in a thread of its own; it should end the process.
    pub fn new(limit: Duration, passed: impl FnOnce() + Send + 'static) -> Deadline {
        let done = Arc::new(AtomicBool::new(false));
        let watch = Arc::clone(&done);
        std::thread::spawn(move || {
            std::thread::sleep(limit);
            if !watch.load(Ordering::Acquire) {
                passed();
            }
        });
        Deadline(done)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
