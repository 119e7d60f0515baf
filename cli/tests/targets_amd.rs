//! Every AMD target has everything: `it/support/building.rs`. LLVM verifies the machine code after each of its passes.
//!
//! A process of its own, and so no module of `it`: that option of LLVM holds for the whole process, and what LLVM gives
//! to the assemblers of others does not pass (PTX has no machine registers).
#![cfg(feature = "llvm")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "the other tests of the command use the rest")]
#[path = "it/support/mod.rs"]
mod support;

use std::sync::Arc;

use support::building::{has_everything, has_operations};
use tk_gpu::target::spec::{GFX90A, GFX942, GFX950, GFX1100, GFX1201};

#[test]
fn gfx90a_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX90A, &Arc::default());
}

#[test]
fn gfx942_has_everything() {
    tk_driver::verify_machine_code();
    has_everything(&GFX942, &Arc::default());
}

#[test]
fn gfx1100_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX1100, &Arc::default());
}

#[test]
fn gfx950_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX950, &Arc::default());
}

#[test]
fn gfx1201_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX1201, &Arc::default());
}
