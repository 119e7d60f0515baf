//! Kernels of source files: [`Program`]. The interpreter runs them on the CPU as they are; with the feature `jit` they are
//! compiled for a GPU when they are launched. Needs the feature `source`.

use std::path::Path;
use std::sync::Arc;

use tk_runtime::Session;
use tk_runtime::compile::Compile;
use tk_runtime::files::Files;
use tk_runtime::gpu::{Arg, CallSite, Device, LaunchError, Launcher, Stream};
use tk_sema::Checked;
use tk_sema::contract::SetValue;
use tk_syntax::Diagnostic;
use tk_syntax::render;

/// A checked source file, and a device for its kernels.
#[derive(Clone, Debug)]
pub struct Program {
    launcher: Launcher,
}

/// An error of a source file, or of the device.
#[derive(Clone, Debug)]
pub struct ProgramError(String);

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProgramError {}

impl Program {
    /// Checks a file. The error has all messages with the places in the source.
    pub fn open(device: &Device, path: &Path) -> Result<Program, ProgramError> {
        let checked = tk_sema::check(&Files::default(), &path.to_string_lossy());
        let wrong: Vec<&Diagnostic> = checked.diagnostics.iter().filter(|d| d.is_error()).collect();
        if !wrong.is_empty() {
            let texts: Vec<String> = wrong.into_iter().map(|d| render(&checked.sources, d, false)).collect();
            return Err(ProgramError(texts.concat()));
        }
        let compiler = compiler(&checked, path);
        let launcher = Launcher::new(Arc::new(Session::new(checked)), device.clone(), compiler);
        Ok(Program { launcher: launcher.map_err(|e| ProgramError(e.to_string()))? })
    }

    /// Launches a kernel. A loop that launches is faster with a [`Program::site`].
    pub fn launch(&self, stream: &Stream, kernel: &str, args: &[Arg<'_>]) -> Result<(), LaunchError> {
        self.launcher.launch(stream, kernel, args)
    }

    /// A call site that launches one kernel repeatedly, with compile-time parameters by name: numbers, types and
    /// functions in the syntax of the language.
    pub fn site(&self, kernel: &str, named: &[(&str, &str)]) -> Result<CallSite, LaunchError> {
        let sets: Vec<(String, SetValue)> =
            named.iter().map(|(name, value)| (name.to_string(), SetValue::parse(value))).collect();
        self.launcher.site(kernel, &sets)
    }

    /// The output of kernels since the last call.
    pub fn printed(&self) -> String {
        self.launcher.printed()
    }
}

/// What makes binaries for GPUs.
#[cfg(feature = "jit")]
fn compiler(checked: &Checked, path: &Path) -> Arc<dyn Compile> {
    use tk_driver::{Cache, Environment, Jit};
    Arc::new(Jit::new(checked.sources.clone(), Environment::of_process(Some(path)), Cache::of_process()))
}

/// Nothing makes binaries for GPUs.
#[cfg(not(feature = "jit"))]
fn compiler(_: &Checked, _: &Path) -> Arc<dyn Compile> {
    use tk_runtime::compile::{Binary, CompileOptions};
    use tk_sema::target::Target;
    use tk_syntax::{Span, codes};
    use tk_tile::{FuncId, TileModule};

    /// The CPU needs no binaries.
    struct None;

    impl Compile for None {
        fn target(&self, _: &str) -> Target {
            Target::default()
        }

        fn compile(&self, _: &TileModule, _: FuncId, _: &CompileOptions) -> Result<Binary, Vec<Diagnostic>> {
            let message = "this program has no compiler for GPUs: the crate `tk` needs its feature `jit`";
            Err(vec![Diagnostic::error(codes::NOT_COMPILED, Span::default(), message, "")])
        }
    }

    Arc::new(None)
}
