//! Owns the pipeline from tile IR to the text that an assembler reads.

use tk_syntax::{Diagnostic, Span, codes};

use crate::kernel::{Kernel, Request};

/// Compiles a kernel; keeps the texts of the stages in between if asked to.
pub fn compile(request: &Request<'_>, keep_stages: bool) -> Result<Kernel, Vec<Diagnostic>> {
    let _ = keep_stages;
    let message = format!("kernels cannot be compiled for `{}` yet", request.target.name);
    Err(vec![Diagnostic::error(codes::UNSUPPORTED, Span::default(), message, "")])
}
