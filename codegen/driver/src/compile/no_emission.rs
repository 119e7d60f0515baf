//! In the place of `emission.rs` where there is no LLVM: every kernel for a GPU is refused.

use tk_syntax::{Diagnostic, Span, codes};

use crate::compile::kernel::{CompiledKernel, Request};

/// How far a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "as with LLVM")]
pub(crate) enum Until {
    /// The IR of a code generator.
    Ir,
    /// Its text.
    Text,
    /// The input of an assembler.
    Binary,
    /// Both.
    BinaryAndText,
}

/// Refuses.
pub(crate) fn compile(request: &Request<'_>, _: bool, _: Until) -> Result<CompiledKernel, Vec<Diagnostic>> {
    let message =
        format!("this compiler makes no machine code for `{}`: it has no LLVM", request.target.name);
    let note = "build it with the feature `gpu` of `tk-build`, or use the target `cpu`";
    Err(vec![Diagnostic::error(codes::NOT_COMPILED, Span::default(), message, "").note(note)])
}
