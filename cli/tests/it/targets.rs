//! Every NVIDIA target has everything: `support/building.rs`. `../targets_amd.rs` does the same for AMD.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::support::building::has_everything;
use tk_gpu::target::spec::{SM_80, SM_90A};

#[test]
fn sm_80_has_everything() {
    has_everything(&SM_80);
}

#[test]
fn sm_90a_has_everything() {
    has_everything(&SM_90A);
}
