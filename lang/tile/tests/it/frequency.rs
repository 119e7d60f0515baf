//! Block frequencies of launches.

#![allow(clippy::unwrap_used, reason = "tests")]

use tk_ops::DType;
use tk_ops::scalar::Scalar;
use tk_tile::frequency::{LaunchArg, frequencies};
use tk_tile::{FuncId, Module, text};

/// The frequencies of the blocks of a kernel, in their order.
fn of(body: &str, args: &[LaunchArg], grid: [u32; 3]) -> (Vec<f64>, bool) {
    let module: Module = text::parse(body).unwrap();
    let func = &module.funcs[FuncId(0)];
    let found = frequencies(&module, func, args, grid);
    let blocks = func.blocks.iter().map(|(b, _)| found.of(b)).map(|n| (n * 1e6).round() / 1e6);
    (blocks.collect(), found.is_guess)
}

fn int(n: i128) -> LaunchArg {
    LaunchArg::Scalar(Scalar::int(DType::I32, n))
}

#[test]
fn loops_follow_from_arguments() {
    let body = "kernel @k(v0: view[f32, 1], v1: i32) {
  v2 = view_shape v0 {axis = 0} : i32
  v3 = const {value = 0 : i32} : i32
  v4 = const {value = 64 : i32} : i32
  for v3, v2, v4 {
  block1(v5: i32):
    for v3, v1, v4 {
    block2(v6: i32):
      yield
    }
    yield
  }
  return
}
";
    let tensor = |n| LaunchArg::Tensor(vec![n], vec![1]);
    assert_eq!(of(body, &[tensor(1000), int(64)], [4, 1, 1]), (vec![1.0, 16.0, 16.0], false));
    assert_eq!(of(body, &[tensor(0), int(64)], [4, 1, 1]), (vec![1.0, 0.0, 0.0], false));
    assert_eq!(of(body, &[tensor(128), int(-3)], [4, 1, 1]), (vec![1.0, 2.0, 0.0], false));
    // Nothing is known: once each, and it says so.
    assert_eq!(of(body, &[LaunchArg::Unknown, int(64)], [4, 1, 1]), (vec![1.0, 1.0, 1.0], true));
}

#[test]
fn inner_loops_of_a_triangle_are_exact() {
    // A program and an iteration decide how often the inner loop runs: 0 + 1 + .. + 99 + 100 * program.
    let body = "kernel @k(v0: i32) {
  v1 = program_id {axis = 0} : i32
  v2 = const {value = 0 : i32} : i32
  v3 = const {value = 1 : i32} : i32
  for v2, v0, v3 {
  block1(v4: i32):
    v5 = add v4, v1 : i32
    for v2, v5, v3 {
    block2(v6: i32):
      yield
    }
    yield
  }
  return
}
";
    assert_eq!(of(body, &[int(100)], [1, 1, 1]), (vec![1.0, 100.0, 4950.0], false));
    assert_eq!(of(body, &[int(100)], [3, 1, 1]), (vec![1.0, 100.0, 5050.0], false));
}

#[test]
fn programs_are_sampled_along_every_axis() {
    // A loop as long as the position along one axis, and one as the position along the other.
    let body = "kernel @k() {
  v1 = program_id {axis = 0} : i32
  v2 = program_id {axis = 1} : i32
  v3 = const {value = 0 : i32} : i32
  v4 = const {value = 1 : i32} : i32
  for v3, v1, v4 {
  block1(v5: i32):
    yield
  }
  for v3, v2, v4 {
  block2(v6: i32):
    yield
  }
  return
}
";
    for grid in [[64, 16, 1], [64, 32, 1], [64, 64, 1], [32, 64, 1], [100, 7, 1], [1000, 3, 1], [31, 31, 1]] {
        let (found, _) = of(body, &[], grid);
        for (axis, runs) in [0, 1].map(|axis| (axis, found[axis + 1])) {
            let mean = f64::from(grid[axis] - 1) / 2.0;
            assert!((runs / mean - 1.0).abs() < 0.1, "{grid:?}: {runs} along axis {axis}, not {mean}");
        }
    }
}

#[test]
fn branches_and_while_loops() {
    let body = "kernel @k(v0: i32, v1: *i32) {
  v2 = const {value = 10 : i32} : i32
  v3 = const {value = 1 : i32} : i32
  v4 = while v0 : i32 {
  block1(v5: i32):
    v6 = lt v5, v2 : bool
    condition v6, v5
  block2(v7: i32):
    v8 = add v7, v3 : i32
    yield v8
  }
  v9 = load v1 : i32
  v10 = lt v9, v2 : bool
  if v10 {
  block3:
    yield
  block4:
    yield
  }
  return
}
";
    // What was loaded decides nothing of importance: both sides are empty.
    assert_eq!(of(body, &[int(3), LaunchArg::Unknown], [1, 1, 1]), (vec![1.0, 8.0, 7.0, 0.5, 0.5], false));
}
