//! The messages about one file.

use tk_syntax::Diagnostic;

use super::{Analysis, Workspace};

/// The diagnostics whose primary place is in the file; their spans belong to the sources of its analysis.
pub fn diagnostics(ws: &mut Workspace, path: &str) -> Vec<Diagnostic> {
    let a = ws.analysis(path);
    a.checked.diagnostics.iter().filter(|d| d.primary.span.file == Analysis::ROOT).cloned().collect()
}
