//! The text form of the IR: printing and reading back.
//!
//! ```text
//! kernel @add(v0 "x": *f32, v1 "y": *mut f32) {
//!   v2 = arange {start = 0} : tile[i32, 64]
//!   v3 = splat v0 : tile[*f32, 64]
//!   v4 = ptr_add v3, v2 : tile[*f32, 64]
//!   v5 = load v4 : tile[f32, 64]
//!   return
//! }
//! ```
//! Every instruction has one form: results, `=`, name, operands, attributes in braces, `:` and the types of the
//! results, `loc(file:start:end)` where it is known, and its blocks in braces, each after a label. Operands are on
//! the line of their operation; other line ends mean nothing. `//` opens a comment. Ids are numbered in the order of
//! the text when it is printed, so that printing what was read gives the same text. Later stages have `@` and a name
//! after the types of values ([`parse_marked`], [`print_marked`]).
//!
//! Reading accepts any text and always returns. Guarantees that verified modules read back.

pub mod lex;
pub mod parse;
pub mod print;

pub use parse::{Marks, ParseError, parse, parse_marked};
pub use print::{Options, print, print_func, print_marked};
