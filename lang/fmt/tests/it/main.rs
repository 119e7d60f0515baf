//! Tests of the formatter, as one program, so that it links once.

mod common;
mod hostile;
mod layout;
mod pages;
mod sources;
