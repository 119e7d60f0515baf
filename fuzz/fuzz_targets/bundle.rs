//! Fuzzes `bundle` of `targets.rs`.
#![no_main]
#![allow(dead_code, reason = "each target calls one of the functions")]

#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::bundle(data));
