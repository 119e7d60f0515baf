//! The NVIDIA runtime on a GPU. Without one these tests are left out, which is said, unless TK_REQUIRE_DEVICE names `cuda`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tk_runtime::gpu::{Api, Args, Device, Module, probe};

use crate::on_gpu;
use crate::on_gpu::support::{info, say};

/// The tests in their order: after a kernel that failed, a GPU may be lost to the process.
const TESTS: &[(&str, fn())] = &[
    ("memory", on_gpu::device::memory_is_copied_there_and_back),
    ("arguments", on_gpu::device::a_kernel_gets_its_arguments_and_the_grid),
    ("no binary", no_binary),
    ("session", on_gpu::launch::a_session_launches_on_the_gpu),
    ("pointers in memory", on_gpu::launch::pointers_in_memory_are_translated_both_ways),
    ("shared memory", on_gpu::launch::a_block_that_needs_more_shared_memory_than_there_is),
    ("launcher", on_gpu::launch::a_launcher_plans_once_for_what_decides),
    (
        "restored workspaces",
        on_gpu::launch::a_workspace_that_a_kernel_restores_is_zeroed_once_for_each_stream_and_recording,
    ),
    ("bundle and graph", on_gpu::shipped::a_bundle_launches_and_a_graph_replays),
    ("recovery", on_gpu::device::a_kernel_that_fails_is_named_and_the_device_recovers),
    (
        "recovery of a session",
        on_gpu::launch::a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works,
    ),
    ("timeout", on_gpu::launch::a_kernel_that_does_not_end),
];

#[test]
fn on_a_gpu() {
    if let Err(error) = Device::open(0) {
        let required = std::env::var("TK_REQUIRE_DEVICE").unwrap_or_default();
        assert!(!required.split(',').any(|d| d.trim() == "cuda"), "{error}");
        say(&format!("{} tests on a GPU left out: {error}", TESTS.len()));
        return;
    }
    for line in probe(Api::Cuda) {
        say(&line.text);
    }
    let mut failed = vec![];
    for (name, test) in TESTS {
        if !usable() {
            say(&format!("on a GPU: {name} ... left out: the GPU is lost to this process"));
            continue;
        }
        let outcome = if std::panic::catch_unwind(test).is_ok() { "ok" } else { "FAILED" };
        say(&format!("on a GPU: {name} ... {outcome}"));
        if outcome != "ok" {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed on the GPU: {failed:?}");
}

/// Returns true if the GPU still works.
fn usable() -> bool {
    let ask = |device: Device| device.stream()?.synchronize();
    Device::open(0).and_then(ask).is_ok()
}

/// What is no binary is refused and costs nothing else.
fn no_binary() {
    let device = Device::open(0).unwrap();
    let stream = device.stream().unwrap();
    for image in [&b"noise"[..], b".version 99.0\n.target sm_80\n.address_size 64\n"] {
        let info = info("nothing", &[]);
        let kernel = Module::lazy(image.into()).kernel(info);
        let error = kernel.launch(&stream, [1; 3], &Args::new()).unwrap_err();
        say(&error.to_string());
        assert!(error.sentence.starts_with("kernel `nothing` cannot be loaded: "), "{error}");
    }
    stream.synchronize().unwrap();
}
