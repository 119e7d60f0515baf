//! The command `tk`: arguments, files, terminal. Everything that means something happens in other crates.
//!
//! Guarantees one of these ends: 0; 1 when a program is wrong or a test failed; 2 after a mistake in usage, files or
//! a launch; 101 after a compiler bug, which is named with its pass.

#![forbid(unsafe_code)]

mod args;
mod bench;
#[cfg(feature = "llvm")]
mod build;
#[cfg(feature = "llvm")]
mod cache;
mod check;
mod dap;
mod deadline;
mod device;
mod diff;
mod doc;
mod doctor;
mod explain;
#[cfg(feature = "llvm")]
mod explain_launch;
mod fmt;
mod front;
mod generate;
mod input;
mod inspect;
#[cfg(feature = "llvm")]
mod layout;
mod learn;
mod lsp;
#[cfg(feature = "llvm")]
mod profile;
mod report;
mod run;
#[cfg(feature = "llvm")]
mod setup;
mod suggest;
mod terminal;
mod test;
mod tune;
mod value;
mod watch;
#[cfg(not(feature = "llvm"))]
mod without_llvm;

use std::ffi::OsString;
use std::process::Command as Process;
use std::sync::{Mutex, MutexGuard, OnceLock};

use clap::Parser;

use args::{Cli, Command, SetupTool};
use terminal::{Failure, Outcome, Terminal};
use tk_runtime::pass;
use tk_syntax::stack::on_large_stack;
#[cfg(not(feature = "llvm"))]
use without_llvm::{build, cache, explain_launch, layout, profile, setup};

/// Arguments before those of the command, when another program runs it.
static PREFIX: OnceLock<Vec<String>> = OnceLock::new();

/// Runs the command with these arguments, the first of which is its name, and returns the exit code of the process.
/// `prefix` are the arguments with which the current executable runs this command: none for `tk` itself, `-m tk` for
/// Python.
pub fn execute(arguments: impl IntoIterator<Item = OsString>, prefix: &[&str]) -> u8 {
    PREFIX.get_or_init(|| prefix.iter().map(ToString::to_string).collect());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are not errors, nor is a closed pipe.
            let _ = error.print();
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let format = match &cli.command {
        Command::Bench(args) if args.json => args::MessageFormat::Json,
        _ => cli.message_format,
    };
    let terminal = Terminal::new(cli.color, format);
    terminal.finish(guarded(move || dispatch(&terminal, &cli.command)))
}

/// This command as another process.
fn this_command() -> Result<Process, Failure> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut process = Process::new(program);
    process.args(PREFIX.get().into_iter().flatten());
    Ok(process)
}

fn dispatch(terminal: &Terminal, command: &Command) -> Outcome {
    match command {
        Command::Check(args) => check::run(terminal, args),
        Command::Run(args) => run::run(terminal, args),
        Command::Test(args) => test::run(terminal, args),
        Command::Build(args) => build::run(terminal, args),
        Command::Bench(args) => bench::run(terminal, args),
        Command::Tune(args) => tune::run(terminal, args),
        Command::ExplainLaunch(args) => explain_launch::run(terminal, args),
        Command::Profile(args) => profile::run(terminal, args),
        Command::Doctor => doctor::run(terminal),
        Command::Setup(args) => match args.tool {
            SetupTool::Ptxas => setup::ptxas(terminal),
        },
        Command::Cache(args) => cache::run(terminal, args),
        Command::Inspect(args) => inspect::run(terminal, args),
        Command::Layout(args) => layout::run(terminal, args),
        Command::Learn(args) => learn::run(terminal, args),
        Command::Doc(args) => doc::run(terminal, args),
        Command::Fmt(args) => fmt::run(terminal, args),
        Command::Explain(args) => explain::run(terminal, args),
        Command::Lsp(_) => lsp::run(),
        Command::Dap(_) => dap::run(),
        Command::Completions(args) => generate::completions(terminal, args),
        Command::Man(args) => generate::man(args),
    }
}

/// The message of the first panic. Later ones, of other threads, only follow from it.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn panic_slot() -> MutexGuard<'static, Option<String>> {
    PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The failure that the last panic is.
fn panicked() -> Failure {
    let what = panic_slot().take().unwrap_or_default();
    Failure::Internal { pass: pass::current().to_string(), what }
}

/// Runs work of which a panic must not end what comes after it.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|_| panicked())
}

/// Runs the work on a large stack; a panic in it becomes [`Failure::Internal`].
fn guarded(work: impl FnOnce() -> Outcome + Send) -> Outcome {
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied().map(str::to_string);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
        panic_slot().get_or_insert(format!("{text}{place}"));
    }));
    on_large_stack(work).unwrap_or_else(|_| Err(panicked()))
}

/// Held by tests that panic on purpose: the process has one hook and one name of the current pass.
#[cfg(test)]
fn one_panic() -> std::sync::MutexGuard<'static, ()> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error_with_its_pass() {
        let _guard = one_panic();
        let outcome = guarded(|| {
            pass::enter("fold constants");
            panic!("the sky\nfell");
        });
        let Err(Failure::Internal { pass, what }) = outcome else { panic!("{outcome:?}") };
        let line = terminal::internal_error(&pass, &what);
        assert!(
            line.starts_with("internal compiler error in fold constants: the sky fell (cli/src/lib.rs:"),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }
}
