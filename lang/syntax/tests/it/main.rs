//! Tests of the public functions, as one program, so that it links once.

mod common;
mod errors;
mod examples;
mod hostile;
mod parse;
mod render;
