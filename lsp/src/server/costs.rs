//! What kernels are expected to cost, by the compiler, where an editor wants to see it: a lens above each kernel, and at the
//! ends of lines their share of the time.
//!
//! Guarantees that no request waits for the compiler, which looks at one file at a time in a thread of its own and is asked
//! for a text at most once; when it is ready, the client is told to ask again.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gen_lsp_types as lsp;
use serde::Deserialize;
use serde_json::Value;
use tk_sema::Checked;

use super::lifecycle::Server;
use super::said;
use crate::ide::Analysis;
use crate::ide::costs::KernelCost;

/// Asks the compiler about the kernels of a program, for a target.
/// The error is a sentence about the target.
pub type Predict = fn(&Checked, &str) -> Result<Vec<KernelCost>, String>;

/// What of the costs a client wants to show: the option `costs` of the initialization, and of the settings of `tk`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CostOptions {
    /// Lenses above kernels and exports.
    pub lens: bool,
    /// Hints at the ends of lines.
    pub hints: bool,
    /// Lenses above kernels and exports that open machine code: the client has the commands `tk.openPtx`, `tk.openSass` and
    /// `tk.openTileIr`.
    pub code: bool,
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
    /// The last sentence about a target, which is said once.
    said: String,
}

/// The kernels of a text; the target that was asked about.
struct Known {
    /// The number of the analysis.
    of: u64,
    target: String,
    kernels: Arc<Vec<KernelCost>>,
}

impl Shared {
    fn lock(all: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
        all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Costs {
    /// Reads the options of a client; whether they are others than before.
    ///
    /// # Errors
    /// A sentence: they are not as documented, and count as absent.
    pub fn set(&mut self, settings: Option<&Value>) -> Result<bool, String> {
        let read = settings.filter(|v| !v.is_null()).map(|v| serde_json::from_value(v.clone())).transpose();
        let (options, wrong) = match read {
            Ok(options) => (options.unwrap_or_default(), None),
            Err(e) => (CostOptions::default(), Some(format!("the setting `tk.costs` is not used: {e}"))),
        };
        let is_new = options != self.options;
        self.options = options;
        Shared::lock(&self.shared).said.clear();
        wrong.map_or(Ok(is_new), Err)
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
        let known = shared.known.get(path).filter(|k| k.target == target);
        let kernels = known.map(|k| Arc::clone(&k.kernels)).unwrap_or_default();
        if known.is_some_and(|k| k.of == analysis.number) {
            return (kernels, true);
        }
        // Another text may be looked at: after that, the client asks again.
        if !std::mem::replace(&mut shared.runs, true) {
            drop(shared);
            self.look_at(path.to_string(), &analysis, target, predict);
            // Without threads, the answer is there.
            if cfg!(target_family = "wasm") {
                return self.costs(path);
            }
        }
        (kernels, false)
    }

    /// Asks the compiler in a thread of its own.
    fn look_at(&self, path: String, analysis: &Analysis, target: String, predict: Predict) {
        // The analysis itself is needed for that of the next text.
        let (of, program) = (analysis.number, analysis.checked.clone());
        let (shared, refreshes) = (Arc::clone(&self.costs.shared), self.client.refreshes.clone());
        let send = self.speaker();
        let work = move || {
            // A bug of the compiler leaves the file without costs.
            let found = catch_unwind(AssertUnwindSafe(|| predict(&program, &target)));
            let mut shared = Shared::lock(&shared);
            let kernels = match found.unwrap_or(Ok(vec![])) {
                Ok(kernels) => Arc::new(kernels),
                Err(why) => {
                    if shared.said != why {
                        send(warning(format!("no costs are shown: {why}")));
                        shared.said = why;
                    }
                    Arc::default()
                }
            };
            shared.known.insert(path, Known { of, target, kernels });
            shared.runs = false;
            for method in refreshes.iter().filter(|m| SHOWN.contains(m)) {
                shared.asked += 1;
                let id = format!("costs {}", shared.asked).into();
                send(said::request(&id, method, &Value::Null));
            }
        };
        // In a browser there are no threads.
        if cfg!(target_family = "wasm") {
            return work();
        }
        let started = std::thread::Builder::new()
            .name("tk-costs".into())
            .stack_size(tk_syntax::stack::STACK)
            .spawn(work);
        if started.is_err() {
            Shared::lock(&self.costs.shared).runs = false;
        }
    }
}

/// A message that an editor shows.
pub fn warning(message: String) -> String {
    let kind = lsp::MessageType::Warning;
    said::notification("window/showMessage", &lsp::ShowMessageParams { kind, message })
}

/// How a client is told that costs are others.
const SHOWN: [&str; 2] = ["workspace/inlayHint/refresh", "workspace/codeLens/refresh"];
