//! The program `tk`: [`tk_cli::execute`] with the arguments of the process.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tk_cli::execute(std::env::args_os(), &[]))
}
