//! The runtime for GPUs against a driver made for tests (`libcuda.rs`), which any machine can run.
//!
//! Each test runs in a process of its own, whose loader finds that driver first. What the real one must do as well is in
//! `on_gpu`, and `cuda.rs` asks it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod amd;
mod machine;
mod messages;
mod process;

use crate::on_gpu;
use process::on;

#[test]
fn memory_is_copied_there_and_back() {
    on("", on_gpu::device::memory_is_copied_there_and_back);
}

#[test]
fn a_kernel_gets_its_arguments_and_the_grid() {
    on("", on_gpu::device::a_kernel_gets_its_arguments_and_the_grid);
}

#[test]
fn a_kernel_that_fails_is_named_and_the_device_recovers() {
    on("", on_gpu::device::a_kernel_that_fails_is_named_and_the_device_recovers);
}

#[test]
fn a_session_launches_on_the_gpu() {
    on("", on_gpu::launch::a_session_launches_on_the_gpu);
}

#[test]
fn pointers_in_memory_are_translated_both_ways() {
    on("", on_gpu::launch::pointers_in_memory_are_translated_both_ways);
}

#[test]
fn a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works() {
    on("", on_gpu::launch::a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works);
}

#[test]
fn a_block_that_needs_more_shared_memory_than_there_is() {
    on("", on_gpu::launch::a_block_that_needs_more_shared_memory_than_there_is);
}

#[test]
fn a_kernel_that_does_not_end() {
    on("", on_gpu::launch::a_kernel_that_does_not_end);
}

#[test]
fn a_launcher_plans_once_for_what_decides() {
    on("", on_gpu::launch::a_launcher_plans_once_for_what_decides);
}

#[test]
fn a_workspace_that_a_kernel_restores_is_zeroed_once_for_each_stream_and_recording() {
    on("", on_gpu::launch::a_workspace_that_a_kernel_restores_is_zeroed_once_for_each_stream_and_recording);
}

#[test]
fn a_bundle_launches_and_a_graph_replays() {
    on("", on_gpu::shipped::a_bundle_launches_and_a_graph_replays);
}
