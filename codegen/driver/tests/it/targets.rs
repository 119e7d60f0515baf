//! The GPUs that the compiler has code for are those whose binaries the runtime runs.

use std::collections::BTreeSet;

#[test]
fn every_target_runs_somewhere() {
    let compiled: BTreeSet<&str> = tk_driver::TARGETS.into_iter().map(|t| t.name).collect();
    let run: BTreeSet<&str> = tk_runtime::gpu::targets().collect();
    assert_eq!(compiled, run);
}
