//! Tests of the benchmarks without a GPU.

mod command;
