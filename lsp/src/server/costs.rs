//! What kernels are expected to cost, by the compiler, where an editor wants to see it: a lens above each kernel, and at the
//! ends of lines their share of the time.
//!
//! Guarantees that no request waits for the compiler, which looks at one file at a time in a thread of its own and is asked
//! for a text at most once; when it is ready, the client is told to ask again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsp_server::{Message, Request};
use serde::Deserialize;
use serde_json::Value;
use tk_sema::Checked;

use super::STACK;
use super::lifecycle::Server;
use crate::ide::Analysis;
use crate::ide::costs::KernelCost;

/// Asks the compiler about the kernels of a program, for a target.
pub type Predict = fn(&Checked, &str) -> Vec<KernelCost>;

/// What of the costs a client wants to show: the option `costs` of the initialization, and of the settings of `tk`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CostOptions {
    /// Lenses above kernels and exports.
    pub lens: bool,
    /// Hints at the ends of lines.
    pub hints: bool,
    /// The target; that of the usual data-center GPU without one.
    pub target: String,
}

/// What is known of the costs of open files.
#[derive(Default)]
pub struct Costs {
    /// What the client wants.
    pub options: CostOptions,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    known: BTreeMap<String, Known>,
    runs: bool,
    /// Requests to the client so far.
    asked: u64,
}

/// The kernels of a text; the target that was asked about.
struct Known {
    of: Arc<Analysis>,
    target: String,
    kernels: Arc<Vec<KernelCost>>,
}

impl Shared {
    fn lock(all: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
        all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Costs {
    /// Reads the options of a client; what is not as documented counts as absent.
    pub fn set(&mut self, settings: Option<&Value>) {
        let read = settings.and_then(|v| serde_json::from_value(v.clone()).ok());
        self.options = read.unwrap_or_default();
    }

    /// Forgets a file.
    pub fn forget(&self, path: &str) {
        Shared::lock(&self.shared).known.remove(path);
    }
}

impl Server {
    /// The kernels of a file by the last text that the compiler has looked at; whether that is the newest one.
    pub fn costs(&mut self, path: &str) -> (Arc<Vec<KernelCost>>, bool) {
        let Some(predict) = self.config.costs else { return (Arc::default(), false) };
        let analysis = self.ws.analysis(path);
        let target = self.costs.options.target.clone();
        let mut shared = Shared::lock(&self.costs.shared);
        let known = shared.known.get(path);
        let kernels = known.map(|k| Arc::clone(&k.kernels)).unwrap_or_default();
        if known.is_some_and(|k| Arc::ptr_eq(&k.of, &analysis) && k.target == target) {
            return (kernels, true);
        }
        // Another text may be looked at: after that, the client asks again.
        if !std::mem::replace(&mut shared.runs, true) {
            drop(shared);
            self.look_at(path.to_string(), analysis, target, predict);
        }
        (kernels, false)
    }

    /// Asks the compiler in a thread of its own.
    fn look_at(&self, path: String, of: Arc<Analysis>, target: String, predict: Predict) {
        let (shared, refreshes) = (Arc::clone(&self.costs.shared), self.client.refreshes.clone());
        let send = self.sender();
        let work = move || {
            // A bug of the compiler leaves the file without costs.
            let found = catch_unwind(AssertUnwindSafe(|| predict(&of.checked, &target)));
            let kernels = Arc::new(found.unwrap_or_default());
            let mut shared = Shared::lock(&shared);
            shared.known.insert(path, Known { of, target, kernels });
            shared.runs = false;
            for method in refreshes.iter().filter(|m| SHOWN.contains(m)) {
                shared.asked += 1;
                let id = format!("costs {}", shared.asked).into();
                send(Message::Request(Request { id, method: (*method).into(), params: Value::Null }));
            }
        };
        let started = std::thread::Builder::new().name("tk-costs".into()).stack_size(STACK).spawn(work);
        if started.is_err() {
            Shared::lock(&self.costs.shared).runs = false;
        }
    }
}

/// How a client is told that costs are others.
const SHOWN: [&str; 2] = ["workspace/inlayHint/refresh", "workspace/codeLens/refresh"];
