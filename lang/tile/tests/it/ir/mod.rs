//! Runs the files of `tests/ir`: reading and printing, the verifier, each pass. One program, so that it links once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;
mod passes;
mod text;
mod verify;
