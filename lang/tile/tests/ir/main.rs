//! Runs the files of `tests/ir`: reading and printing, the verifier, each pass. One program, so that it links once.

mod common;
mod passes;
mod text;
mod verify;
