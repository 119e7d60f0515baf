//! Every NVIDIA target has everything: `support/building.rs`. `../targets_amd.rs` does the same for AMD.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::support::building::{has_everything, has_operations};
use tk_gpu::target::spec::{SM_80, SM_89, SM_90A, SM_103A, SM_120A};

#[test]
fn sm_80_has_everything() {
    has_everything(&SM_80);
}

#[test]
fn sm_90a_has_everything() {
    has_everything(&SM_90A);
}

#[test]
fn sm_89_has_every_operation() {
    has_operations(&SM_89);
}

/// And so has `sm_100a`: only the number differs.
#[test]
fn sm_103a_has_every_operation() {
    has_operations(&SM_103A);
}

#[test]
fn sm_120a_has_every_operation() {
    has_operations(&SM_120A);
}
