//! Language models in the layout of GPT-2, whose every kernel is written in tk.
//!
//! Guarantees one of these ends: 0; 1 when a comparison failed; 2 after a mistake in arguments, files or a device; 130
//! when Ctrl-C ended a text early.

mod arguments;
mod article;
mod bench;
mod checkpoint;
mod compare;
mod config;
mod engine;
mod failure;
mod generate;
mod output;
mod prompts;
mod setup;
mod stored;
mod text;
mod trace;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use generate::End;

/// What a shell makes of a program that an interrupt ended: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output and are no mistakes. A closed pipe is none either.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let end = match &arguments.command {
        Command::Generate(args) => generate::run(args),
        Command::Bench(args) => bench::run(args).map(|()| End::Done),
        Command::Compare(args) => compare::run(args).map(|()| End::Done),
        Command::Article(args) => article::run(args).map(|()| End::Done),
    };
    match end {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                output::note(&text);
            }
            ExitCode::from(failure.code())
        }
    }
}
