//! Launching: arguments, grids, threads, time limits, and which fault is reported.

use std::time::{Duration, Instant};

use crate::common::*;
use tk_interp::{Arg, Memory, Options, launch};
use tk_ops::{DType, Scalar};
use tk_tile::{FuncId, Id};

#[test]
fn arguments_are_checked() {
    let m = Memory::new();
    let x = f32s(&m, &[0.0; 4]);
    let text = r#"kernel @k(v0 "p": *f32, v1 "v": view[f32, 2], v2 "n": i32) {
  return
}"#;
    let good = || vec![ptr(x), tensor(x, &[2, 2]), int(1)];
    assert_eq!(run(&m, text, &good(), [1, 1, 1]), Ok(()));
    let code = |args: &[Arg]| run(&m, text, args, [1, 1, 1]).unwrap_err().code;
    assert_eq!(code(&good()[..2]), "E0701");
    let with = |i: usize, arg: Arg| {
        let mut args = good();
        args[i] = arg;
        code(&args)
    };
    assert_eq!(with(2, Arg::Scalar(Scalar::int(DType::I64, 1))), "E0702");
    assert_eq!(with(0, int(1)), "E0702");
    assert_eq!(with(1, ptr(x)), "E0702");
    assert_eq!(with(1, Arg::Null), "E0702");
    assert_eq!(with(1, tensor(x, &[4])), "E0703");
    assert_eq!(with(1, tensor(x, &[-1, 4])), "E0701");
    assert_eq!(with(1, tensor(x, &[1 << 31, 1])), "E0701");
    let message = run(&m, text, &[int(1), tensor(x, &[2, 2]), int(1)], [1, 1, 1]).unwrap_err().message;
    assert_eq!(message, "argument `p` of kernel `k`: expected `*f32`, found a number of type `i32`");
}

#[test]
fn only_kernels_are_launched_and_grids_have_limits() {
    let m = Memory::new();
    let fault = run(&m, "fn @f() {\n return\n}", &[], [1, 1, 1]).unwrap_err();
    assert_eq!(fault.code, "E0701");
    let kernel = module("kernel @k() {\n return\n}");
    let fault = launch(&kernel, FuncId::new(7), &[], [1, 1, 1], &m, &Options::default()).unwrap_err();
    assert_eq!(fault.code, "E0701");
    let fault = run(&m, "kernel @k() {\n return\n}", &[], [u32::MAX; 3]).unwrap_err();
    assert_eq!(fault.code, "E0705");
}

#[test]
fn an_empty_grid_does_nothing() {
    let m = Memory::new();
    let text = "kernel @k() {\n v0 = const {value = false : bool} : bool\n assert v0\n return\n}";
    for grid in [[0, 1, 1], [5, 0, 1], [1, 1, 0], [u32::MAX, u32::MAX, 0]] {
        assert_eq!(run(&m, text, &[], grid), Ok(()));
    }
}

/// Program p fails if bit p % 64 of the mask is set; otherwise it writes p.
const SOME_FAIL: &str = r#"kernel @k(v0 "out": *mut i32, v1 "mask": u64) {
  v2 = program_id {axis = 0} : i32
  v3 = ptr_add v0, v2 : *mut i32
  store v3, v2
  v4 = const {value = 64 : i32} : i32
  v5 = rem v2, v4 : i32
  v6 = shr v1, v5 : u64
  v7 = const {value = 1 : u64} : u64
  v8 = and v6, v7 : u64
  v9 = const {value = 0 : u64} : u64
  v10 = eq v8, v9 : bool
  assert v10 {message = "bit"}
  return
}"#;

#[test]
fn the_lowest_program_that_fails_is_reported() {
    let kernel = module(SOME_FAIL);
    for threads in [None, Some(1), Some(2), Some(7)] {
        for mask in [1u64 << 63, 1 << 40 | 1 << 41, u64::MAX, 1 << 17] {
            let m = Memory::new();
            let n = 4096;
            let out = i32s(&m, &vec![-1; n]);
            let args = [ptr(out), Arg::Scalar(Scalar::int(DType::U64, mask.into()))];
            let options = Options { threads, ..Options::default() };
            let fault = launch(&kernel, FuncId::new(0), &args, [n as u32, 1, 1], &m, &options).unwrap_err();
            let lowest = mask.trailing_zeros();
            assert_eq!(fault.program, Some([lowest, 0, 0]), "{threads:?} {mask:x}");
            // Everything below it has run.
            let expected: Vec<i32> = (0..=lowest as i32).collect();
            assert_eq!(read_i32(&m, out)[..=lowest as usize], expected);
        }
    }
}

#[test]
fn parallel_equals_serial() {
    // Each program writes its row of sums over a pseudo-random walk through x.
    let text = r#"kernel @k(v0 "x": view[f32, 2], v1 "y": mut view[f32, 2]) {
  v2 = program_id {axis = 0} : i32
  v3 = const {value = 0 : i32} : i32
  v4 = view_slice v0, v2 {axes = [0, 1]} : view[f32, 1]
  v5 = view_shape v4 {axis = 0} : i32
  v6 = const {value = 16 : i32} : i32
  v7 = const {value = 0.0 : f32} : tile[f32, 16]
  v8 = for v3, v5, v6, v7 : tile[f32, 16] {
  block1(v9: i32, v10: tile[f32, 16]):
    v11 = view_load v4, v9 : tile[f32, 16]
    v12 = exp v11 : tile[f32, 16]
    v13 = add v10, v12 : tile[f32, 16]
    yield v13
  }
  v14 = sum v8 {axis = 0} : f32
  v15 = splat v14 : tile[f32, 16]
  v16 = div v8, v15 : tile[f32, 16]
  v17 = reshape v16 : tile[f32, 1, 16]
  view_store v1, v2, v3, v17
  return
}"#;
    let kernel = module(text);
    let results: Vec<Vec<u8>> = [Some(1), Some(2), Some(5), None]
        .into_iter()
        .map(|threads| {
            let m = Memory::new();
            let data: Vec<f32> = (0..300 * 77).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
            let (x, y) = (f32s(&m, &data), f32s(&m, &vec![0.0; 300 * 16]));
            let options = Options { threads, ..Options::default() };
            let args = [tensor(x, &[300, 77]), tensor(y, &[300, 16])];
            launch(&kernel, FuncId::new(0), &args, [300, 1, 1], &m, &options).unwrap();
            m.read(y).unwrap()
        })
        .collect();
    assert!(results.iter().all(|r| *r == results[0]));
}

#[test]
fn an_endless_loop_runs_into_the_time_limit() {
    let text = r#"kernel @k(v0 "n": i32) {
  v1 = while v0 : i32 {
  block1(v2: i32):
    v3 = const {value = true : bool} : bool
    condition v3, v2 loc(1:2:3)
  block2(v4: i32):
    yield v4
  }
  return
}"#;
    let kernel = module(text);
    for threads in [Some(1), None] {
        let options = Options { threads, timeout: Some(Duration::from_millis(30)), ..Options::default() };
        let start = Instant::now();
        let fault =
            launch(&kernel, FuncId::new(0), &[int(0)], [40, 1, 1], &Memory::new(), &options).unwrap_err();
        assert_eq!(fault.code, "E0708");
        assert!(fault.message.contains("still running after the time limit of 30ms"), "{fault}");
        assert!(fault.program.is_some() && start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn racing_programs_are_no_trouble() {
    let m = Memory::new();
    let out = i32s(&m, &[0; 64]);
    let text = r#"kernel @k(v0 "out": *mut i32) {
  v1 = program_id {axis = 0} : i32
  v2 = arange {start = 0} : tile[i32, 64]
  v3 = splat v0 : tile[*mut i32, 64]
  v4 = ptr_add v3, v2 : tile[*mut i32, 64]
  v5 = load v4 : tile[i32, 64]
  v6 = splat v1 : tile[i32, 64]
  v7 = maximum v5, v6 : tile[i32, 64]
  store v4, v7
  return
}"#;
    run(&m, text, &[ptr(out)], [5000, 1, 1]).unwrap();
    assert!(read_i32(&m, out).iter().all(|v| (0..5000).contains(v)));
}
