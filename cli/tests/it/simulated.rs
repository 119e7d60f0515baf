//! Runs everything of `support/everything.rs` on the simulated target, with warps of both widths: each program must say
//! what it says on the interpreter, value by value and code by code.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use tk_driver::Simulator;
use tk_gpu::target::spec::{SIM_32, SIM_64};

use crate::support::everything::{differences, for_devices, on_large_stack, operations};
use crate::support::program;

#[test]
fn warps_of_the_first_width_say_what_the_interpreter_says() {
    on_large_stack(|| differences(|seed| Arc::new(Simulator::new(&SIM_32, seed)), |_| false));
}

#[test]
fn warps_of_the_second_width_say_what_the_interpreter_says() {
    on_large_stack(|| differences(|seed| Arc::new(Simulator::new(&SIM_64, seed)), |_| false));
}

/// The programs that are made up for this hold what they should: they check, and the interpreter runs them.
#[test]
fn operations_and_programs_for_devices_run_on_the_interpreter() {
    on_large_stack(|| {
        let programs = operations().into_iter().chain(for_devices());
        let wrong = programs.filter_map(|p| {
            let report = program::run(&p.text).without_warnings();
            (!report.diagnostics.is_empty()).then(|| format!("{}:\n{}{}", p.place, p.text, report.rendered()))
        });
        wrong.collect()
    });
}
