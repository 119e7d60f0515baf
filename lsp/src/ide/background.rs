//! A check in a thread of its own, while the server answers what does not need it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use super::stop::Stop;
use super::texts::Texts;
use super::workspace::Analysis;

/// Bytes of the stack on which the compiler runs, as in the command `tk`: its walks are recursive.
pub const STACK: usize = 64 << 20;

/// How often a wait for a check asks whether it is still wanted: far below what a person notices.
const PATIENCE: Duration = Duration::from_millis(2);

/// The check of a file that runs.
pub(super) struct Job {
    /// The file.
    pub path: String,
    stop: Stop,
    result: Receiver<Option<Analysis>>,
}

impl Job {
    /// Starts a check and says when it is done; `None` if there can be no thread.
    pub(super) fn start(
        path: &str,
        texts: Texts,
        last: Option<Analysis>,
        done: impl FnOnce() + Send + 'static,
    ) -> Option<Job> {
        let (sender, result) = channel();
        let (stop, path) = (Stop::default(), path.to_string());
        let job = Job { path: path.clone(), stop: stop.clone(), result };
        let work = move || {
            let found = catch_unwind(AssertUnwindSafe(|| texts.check_again(&path, last, &stop)));
            // Where the compiler fails, the check is made again by whoever asks, who reports it.
            let _ = sender.send(found.ok());
            done();
        };
        std::thread::Builder::new().name("tk-check".into()).stack_size(STACK).spawn(work).ok()?;
        Some(job)
    }

    /// The result if there is one: `Some(None)` if the check was given up.
    pub(super) fn poll(&self) -> Option<Option<Analysis>> {
        match self.result.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Disconnected) => Some(None),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Waits for the result; `None` if `stop` is set before.
    pub(super) fn wait(&self, stop: &Stop) -> Option<Option<Analysis>> {
        loop {
            match self.result.recv_timeout(PATIENCE) {
                Ok(found) => return Some(found),
                Err(RecvTimeoutError::Disconnected) => return Some(None),
                Err(RecvTimeoutError::Timeout) if stop.is_set() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks the check to stop and waits for it; what it has found by then.
    pub(super) fn give_up(self) -> Option<Analysis> {
        self.stop.set();
        self.result.recv().ok().flatten()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop.set();
    }
}
