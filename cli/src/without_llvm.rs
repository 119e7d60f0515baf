//! The messages of a `tk` built without LLVM, instead of compiling.

use crate::terminal::{Failure, Outcome};

fn refuse(what: &str) -> Outcome {
    Err(Failure::Sentence(format!("this tk was built without LLVM, so {what}")))
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
