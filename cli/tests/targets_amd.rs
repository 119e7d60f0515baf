//! Every AMD target has everything: `support/building.rs`. LLVM verifies the machine code after each of its passes; a process
//! of its own, since what it gives to assemblers of others does not hold to that (PTX has no machine registers).
#![cfg(feature = "llvm")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/building.rs"]
mod building;
#[allow(dead_code, reason = "another test runs the programs")]
#[path = "support/everything.rs"]
mod everything;
#[path = "support/lanes.rs"]
mod lanes;
#[allow(dead_code, reason = "another test writes pages")]
#[path = "support/markdown.rs"]
mod markdown;
#[allow(dead_code, reason = "another test shows diagnostics")]
#[path = "support/program.rs"]
mod program;

use building::{has_everything, has_operations};
use tk_gpu::target::spec::{GFX90A, GFX942, GFX1100};

#[test]
fn gfx90a_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX90A);
}

#[test]
fn gfx942_has_everything() {
    tk_driver::verify_machine_code();
    has_everything(&GFX942);
}

#[test]
fn gfx1100_has_every_operation() {
    tk_driver::verify_machine_code();
    has_operations(&GFX1100);
}
