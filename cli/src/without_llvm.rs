//! The messages of a `tk` built without LLVM, instead of compiling.

use tk_runtime::compile::{Binary, Compile, CompileOptions};
use tk_sema::target::Target;
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{FuncId, TileModule};

use crate::terminal::{Failure, Outcome};

fn refuse(what: &str) -> Outcome {
    Err(Failure::Sentence(format!("this tk was built without LLVM, so {what}")))
}

/// Compiles nothing: kernels run on the CPU.
pub struct NoCompiler;

impl Compile for NoCompiler {
    fn target(&self, _: &str) -> Target {
        Target::CPU
    }

    fn compile(&self, _: &TileModule, _: FuncId, _: &CompileOptions) -> Result<Binary, Vec<Diagnostic>> {
        let message = "this tk was built without LLVM, so kernels run only on `cpu`";
        Err(vec![Diagnostic::error(codes::UNSUPPORTED, Span::default(), message, "")])
    }
}

/// `tk build`
pub mod build {
    use crate::args::BuildArgs;
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn run(_: &Terminal, _: &BuildArgs) -> Outcome {
        super::refuse("it cannot build kernels")
    }
}

/// `tk setup`
pub mod setup {
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn ptxas(_: &Terminal) -> Outcome {
        super::refuse("it does not use an assembler")
    }
}

/// `tk cache`
pub mod cache {
    use crate::args::CacheArgs;
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn run(_: &Terminal, _: &CacheArgs) -> Outcome {
        super::refuse("it has no compiled kernels to keep")
    }
}

/// `tk layout`
pub mod layout {
    use crate::args::LayoutArgs;
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn run(_: &Terminal, _: &LayoutArgs) -> Outcome {
        super::refuse("it knows no layouts")
    }
}

/// `tk explain-launch`
pub mod explain_launch {
    use crate::args::ExplainLaunchArgs;
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn run(_: &Terminal, _: &ExplainLaunchArgs) -> Outcome {
        super::refuse("it predicts no times")
    }
}

/// `tk profile`
pub mod profile {
    use crate::args::ProfileArgs;
    use crate::terminal::{Outcome, Terminal};

    /// Says why not.
    pub fn run(_: &Terminal, _: &ProfileArgs) -> Outcome {
        super::refuse("it predicts no times")
    }
}
