//! A check in a thread of its own, while the server answers what does not need it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use super::stop::Stop;
use super::texts::Texts;
use super::workspace::Analysis;

/// How often a wait for a check asks whether it is still wanted: far below what a person notices.
const PATIENCE: Duration = Duration::from_millis(2);

/// What the check of one body takes, and less than it takes to read a large file.
const SOON: Duration = Duration::from_millis(10);

/// The thread, for the life of a workspace: an allocator keeps memory for each thread that there was.
#[derive(Default)]
pub(super) struct Worker(Option<Sender<Box<dyn FnOnce() + Send>>>);

impl Worker {
    /// Does work after all work before it; returns false if there can be no thread.
    fn run(&mut self, work: Box<dyn FnOnce() + Send>) -> bool {
        let sender = self.0.get_or_insert_with(|| {
            let (sender, receiver) = channel::<Box<dyn FnOnce() + Send>>();
            let thread =
                std::thread::Builder::new().name("tk-check".into()).stack_size(tk_syntax::stack::STACK);
            // Without a thread nothing receives, and the next line fails.
            let _ = thread.spawn(move || receiver.into_iter().for_each(|work| work()));
            sender
        });
        sender.send(work).is_ok()
    }
}

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
        worker: &mut Worker,
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
        worker.run(Box::new(work)).then_some(job)
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

    /// The result if it is there soon.
    pub(super) fn soon(&self) -> Option<Option<Analysis>> {
        match self.result.recv_timeout(SOON) {
            Ok(found) => Some(found),
            Err(RecvTimeoutError::Disconnected) => Some(None),
            Err(RecvTimeoutError::Timeout) => None,
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
