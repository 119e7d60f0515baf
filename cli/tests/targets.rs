//! Every NVIDIA target has everything: `support/building.rs`.
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

use building::has_everything;
use tk_gpu::target::spec::{SM_80, SM_90A};

#[test]
fn sm_80_has_everything() {
    has_everything(&SM_80);
}

#[test]
fn sm_90a_has_everything() {
    has_everything(&SM_90A);
}
