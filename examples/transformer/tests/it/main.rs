//! Tests of the whole program, as one program, so that it links once.

mod arguments;
mod checkpoints;
mod reference;
mod runs;
mod support;
