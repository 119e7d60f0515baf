//! The puzzles of `tk learn`, and what judges an answer: the reader's own tests, then hidden ones, then a picture of what
//! each program reads and writes. The command and the playground show it.

#![forbid(unsafe_code)]

mod answer;
mod picture;
mod puzzle;
mod signature;

pub use answer::{Answer, Shown, Test, misfit};
pub use picture::draw;
pub use puzzle::{Puzzle, all};
pub use signature::changed;
