//! `tk doctor`: the installation for compiling and running kernels, one line per component.
//!
//! Guarantees that what is missing is no failure: each line says what does not work then, and what to do.

use tk_runtime::gpu::{self, Api};

use crate::report::Line;
use crate::terminal::{Outcome, Terminal};

/// Looks for everything.
pub fn run(terminal: &Terminal) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let tk = Tool {
        name: "tk",
        version: Some(version),
        path: None,
        from: None,
        works: true,
        message: version.into(),
    };
    tk.show(terminal)?;
    compiler(terminal)?;
    for api in Api::GPUS {
        for found in gpu::probe(api) {
            let (name, message) = (api.name(), found.text);
            Tool { name, version: None, path: None, from: None, works: found.works, message }
                .show(terminal)?;
        }
    }
    Ok(())
}

/// A component that was searched.
struct Tool<'a> {
    name: &'a str,
    version: Option<&'a str>,
    path: Option<&'a str>,
    /// The setting that led there.
    from: Option<&'a str>,
    works: bool,
    /// The text for people.
    message: String,
}

impl Tool<'_> {
    fn show(&self, terminal: &Terminal) -> Outcome {
        let Tool { name, version, path, from, works, message } = self;
        if terminal.is_json() {
            let (version, path, from, works) = (*version, *path, *from, *works);
            return terminal.object(&Line::Tool { name, version, path, from, works, message });
        }
        terminal.data(&format!("{}{message}\n", column(name)))
    }
}

/// The first column.
fn column(name: &str) -> String {
    format!("{name:<8}{}", if name.len() < 8 { "" } else { " " })
}

/// LLVM, the assembler, the cache.
#[cfg(feature = "llvm")]
fn compiler(terminal: &Terminal) -> Outcome {
    use tk_driver::{Cache, Environment, Found, Lld, Ptxas, ToolError};
    let llvm = tk_driver::llvm_version();
    let tool = Tool {
        name: "LLVM",
        version: Some(&llvm),
        path: None,
        from: None,
        works: true,
        message: llvm.clone(),
    };
    tool.show(terminal)?;
    let cache = Cache::of_process();
    let environment = Environment::of_process(None);
    let show = |name: &str, found: Result<(String, Found), ToolError>| match found {
        Ok((version, Found { path, from })) => {
            let message = format!("{version}, {} (from {from})", path.display());
            let (version, path) = (Some(version.as_str()), path.to_str());
            Tool { name, version, path, from: Some(from), works: true, message }.show(terminal)
        }
        Err(e) => {
            let message = format!("{}; {}", e.message, e.notes.join("; "));
            Tool { name, version: None, path: None, from: None, works: false, message }.show(terminal)
        }
    };
    let ptxas = Ptxas::find(&environment, &cache);
    // An error names what is ignored itself.
    let ignored = ptxas.is_ok().then(|| environment.ignored_ptxas()).flatten();
    show("ptxas", ptxas.map(|p| (p.version, Found { path: p.path, from: p.from })))?;
    show(
        "ld.lld",
        Lld::find(&environment, &cache).map(|l| (l.version, Found { path: l.path, from: l.from })),
    )?;
    // Nothing but the views of SASS needs it.
    let nvdisasm = environment.nvdisasm();
    let message = match &nvdisasm {
        Some(Found { path, from }) => format!("{} (from {from})", path.display()),
        None => {
            "`nvdisasm` not found; without it `tk inspect` and editors show no SASS; install it with `pip \
                 install nvidia-cuda-nvdisasm`, or set `TK_NVDISASM`"
                .to_string()
        }
    };
    Tool {
        name: "nvdisasm",
        version: None,
        path: nvdisasm.as_ref().and_then(|f| f.path.to_str()),
        from: nvdisasm.as_ref().map(|f| f.from),
        works: nvdisasm.is_some(),
        message,
    }
    .show(terminal)?;
    ignored.map_or(Ok(()), |ignored| terminal.note(&ignored.note()))?;
    crate::cache::show(terminal, &cache, &column("cache"))
}

/// Reports that everything that needs LLVM is unavailable.
#[cfg(not(feature = "llvm"))]
fn compiler(terminal: &Terminal) -> Outcome {
    let message =
        "this tk was built without LLVM: it checks, formats and runs kernels on the CPU".to_string();
    Tool { name: "LLVM", version: None, path: None, from: None, works: false, message }.show(terminal)
}
