//! Tests of the interpreter, as one program, so that it links once.

mod atomics;
mod common;
mod compute;
mod control;
mod folds;
mod generated;
mod host;
mod launch;
mod memory;
mod order;
mod trace;
mod views;
