//! Every NVIDIA target has everything: `support/building.rs`. `../targets_amd.rs` does the same for AMD.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use crate::support::building::{Assembled, has_everything, has_operations};
use tk_gpu::target::spec::{SM_80, SM_89, SM_90A, SM_103A, SM_120A};

/// One test, so that what is the same for all of them is assembled once. `sm_100a` differs from `sm_103a` only in its number.
#[test]
fn every_target_has_everything() {
    let assembled = Arc::new(Assembled::default());
    for target in [&SM_80, &SM_90A] {
        has_everything(target, &assembled);
    }
    for target in [&SM_89, &SM_103A, &SM_120A] {
        has_operations(target, &assembled);
    }
}
