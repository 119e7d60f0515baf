//! The arguments of `tk learn`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::seconds;

const LEARN_HELP: &str = "\
Without arguments, the command lists the puzzles and shows how far you are. A puzzle is a number
or a name: 3, edges. Files are in the folder tk-learn of the current folder.";

/// `tk learn`
#[derive(Debug, Args)]
#[command(subcommand_precedence_over_arg = true, after_help = LEARN_HELP)]
pub struct LearnArgs {
    /// The puzzle to begin: its file is copied to tk-learn unless it is there, and its task is shown
    #[arg(value_name = "PUZZLE")]
    pub puzzle: Option<String>,
    /// Taken for a better message: without it, a misspelled subcommand before a number is one about the number.
    #[arg(hide = true)]
    pub extra: Vec<String>,
    /// What else to do.
    #[command(subcommand)]
    pub action: Option<LearnAction>,
}

/// What `tk learn` can do with a puzzle.
#[derive(Debug, Subcommand)]
pub enum LearnAction {
    /// Check your file, run its tests and the hidden ones, and draw what each program reads and writes
    Check(LearnCheckArgs),
    /// Show the next hint
    Hint(LearnPuzzleArgs),
    /// Print a solution
    Solution(LearnPuzzleArgs),
    /// Check your file whenever you save it
    Watch(LearnCheckArgs),
}

/// A puzzle.
#[derive(Debug, Args)]
pub struct LearnPuzzleArgs {
    /// The puzzle; without one, the current puzzle
    #[arg(value_name = "PUZZLE")]
    pub puzzle: Option<String>,
}

/// A puzzle to check.
#[derive(Debug, Args)]
pub struct LearnCheckArgs {
    /// The puzzle.
    #[command(flatten)]
    pub which: LearnPuzzleArgs,
    /// Abort a launch or a test after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub timeout: Duration,
}
