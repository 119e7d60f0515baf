//! Files that packages ship with the command: `tk completions SHELL` and `tk man DIR`.
//!
//! Both are made from the definition of the command line in [`crate::args`], so they cannot disagree with it.

use clap::CommandFactory;
use tk_runtime::files::{reason, write_all};

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::terminal::{Outcome, Terminal};

/// Prints a completion script.
pub fn completions(terminal: &Terminal, args: &CompletionsArgs) -> Outcome {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "tk", &mut script);
    terminal.data(&String::from_utf8_lossy(&script))
}

/// Writes `tk.1` and a page for each subcommand, such as `tk-check.1`.
pub fn man(args: &ManArgs) -> Outcome {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot create {}: {}", folder.display(), reason(&e)))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    // Propagates global options to the subcommands and gives them their full names.
    command.build();
    let mut pages = vec![];
    let subcommands: Vec<clap::Command> = command.get_subcommands().cloned().collect();
    for command in std::iter::once(command).chain(subcommands) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
        let mut page = vec![];
        // Writing to memory does not fail.
        clap_mangen::Man::new(command).render(&mut page)?;
        pages.push((folder.join(format!("{name}.1")), page));
    }
    Ok(write_all(&pages)?)
}
