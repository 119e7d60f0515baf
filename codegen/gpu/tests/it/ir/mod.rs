//! Runs the files of `tests/ir/gpu`: facts about tiles, each pass, the verifiers, text, and every example at every
//! width. One program, so that it links once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod axis;
mod common;
mod every;
mod passes;
mod text;
mod verify;
