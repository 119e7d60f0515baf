//! `tk lsp`: the language server on standard input and output.

use std::path::Path;
use std::sync::Arc;

use tk_lsp::server::{Config, Files, Library, Predict, serve};

use crate::explain;
use crate::terminal::{Failure, Outcome};

/// Serves an editor until it goes away.
pub fn run() -> Outcome {
    let stdlib = tk_runtime::files::Files::beside_program().stdlib;
    // Both are copied together: in the repository they are in `stdlib` and `spec/errors`.
    let pages = stdlib.as_deref().and_then(Path::parent).map(|folder| folder.join("spec/errors"));
    let version = env!("CARGO_PKG_VERSION");
    let cache = dirs::cache_dir().map(|folder| folder.join("tk").join(version));
    let config = Config {
        disk: Arc::new(Files { stdlib: stdlib.clone() }),
        library: Library { stdlib, pages, cache },
        page: explain::page,
        costs: PREDICT,
        version: version.into(),
    };
    match serve(std::io::stdin(), std::io::stdout(), config) {
        0 => Ok(()),
        1 => Err(Failure::Disconnected),
        _ => Err(Failure::Internal { pass: "lsp".into(), what: "the server ended".into() }),
    }
}

/// Without the compiler nothing is predicted.
#[cfg(not(feature = "llvm"))]
const PREDICT: Option<Predict> = None;
#[cfg(feature = "llvm")]
const PREDICT: Option<Predict> = Some(tk_lsp::predicted::of_kernels);
