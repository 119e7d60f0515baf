//! Atomics: values before and after, and programs that wait for each other.

use crate::common::*;
use tk_interp::{Arg, Fault, Memory, Options, launch};
use tk_ops::{Buf, DType, Scalar};
use tk_tile::{FuncId, Id};

/// Launches a grid of `n` programs on this many threads.
fn threads(memory: &Memory, text: &str, args: &[Arg], n: u32, threads: usize) -> Result<(), Fault> {
    let options = Options {
        threads: Some(threads),
        timeout: Some(std::time::Duration::from_secs(60)),
        ..Options::default()
    };
    launch(&module(text), FuncId::new(0), args, [n, 1, 1], memory, &options)
}

/// One program does `op` with a tile of values on a tile of pointers to `memory`: what it gave, and memory after.
fn updated(op: &str, dtype: DType, memory: &[f64], values: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let (m, n) = (Memory::new(), memory.len());
    let x = alloc(&m, Buf::from_f64(dtype, memory));
    let out = alloc(&m, Buf::zeros(dtype, n));
    let given: Vec<_> = values.iter().map(|v| alloc(&m, Buf::from_f64(dtype, v))).collect();
    let params: String = (0..given.len()).map(|i| format!(", v{} \"v{i}\": *{dtype}", i + 2)).collect();
    let mut text = format!("kernel @k(v0 \"x\": *mut {dtype}, v1 \"out\": *mut {dtype}{params}) {{\n");
    let mut id = given.len() + 2;
    text += &format!("  v{id} = arange {{start = 0}} : tile[i32, {n}]\n");
    let offsets = id;
    let tile = |p: usize, mutable: &str, id: &mut usize| {
        *id += 2;
        let (a, b) = (*id - 1, *id);
        format!(
            "  v{a} = splat v{p} : tile[*{mutable}{dtype}, {n}]\n  v{b} = ptr_add v{a}, v{offsets} : tile[*{mutable}{dtype}, {n}]\n"
        )
    };
    text += &tile(0, "mut ", &mut id);
    let at = id;
    text += &tile(1, "mut ", &mut id);
    let to = id;
    let mut operands = format!("v{at}");
    for i in 0..given.len() {
        text += &tile(i + 2, "", &mut id);
        text += &format!("  v{} = load v{id} : tile[{dtype}, {n}]\n", id + 1);
        id += 1;
        operands += &format!(", v{id}");
    }
    text += &format!(
        "  v{} = {op} {operands} : tile[{dtype}, {n}]\n  store v{to}, v{}\n  return\n}}",
        id + 1,
        id + 1
    );
    let mut args = vec![ptr(x), ptr(out)];
    args.extend(given.into_iter().map(ptr));
    one(&m, &text, &args);
    let floats = |id| {
        let buf = read(&m, id, dtype);
        (0..n)
            .map(|i| buf.get(i))
            .map(|s: Scalar| s.as_f64().or(s.as_int().map(|i| i as f64)).unwrap_or(f64::NAN))
            .collect()
    };
    (floats(out), floats(x))
}

#[test]
fn the_value_before_and_the_value_after() {
    let x = [1.0, 2.0, 3.0];
    let y: &[f64] = &[3.0, 2.0, 1.0];
    for dtype in [
        DType::I8,
        DType::U16,
        DType::I32,
        DType::U64,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ] {
        assert_eq!(updated("atomic_add", dtype, &x, &[y]), (x.to_vec(), vec![4.0; 3]), "{dtype}");
        assert_eq!(updated("atomic_max", dtype, &x, &[y]), (x.to_vec(), vec![3.0, 2.0, 3.0]), "{dtype}");
        assert_eq!(updated("atomic_min", dtype, &x, &[y]), (x.to_vec(), vec![1.0, 2.0, 1.0]), "{dtype}");
        assert_eq!(updated("atomic_xchg", dtype, &x, &[y]), (x.to_vec(), y.to_vec()), "{dtype}");
        let nine: &[f64] = &[9.0; 3];
        assert_eq!(
            updated("atomic_cas", dtype, &x, &[y, nine]),
            (x.to_vec(), vec![1.0, 9.0, 3.0]),
            "{dtype}"
        );
        assert_eq!(updated("atomic_load", dtype, &x, &[]), (x.to_vec(), x.to_vec()), "{dtype}");
    }
    assert_eq!(updated("atomic_and", DType::U8, &[6.0], &[&[3.0]]), (vec![6.0], vec![2.0]));
    assert_eq!(updated("atomic_or", DType::I16, &[6.0], &[&[3.0]]), (vec![6.0], vec![7.0]));
    assert_eq!(updated("atomic_xor", DType::I64, &[6.0], &[&[3.0]]), (vec![6.0], vec![5.0]));
    // Integers wrap, f16 rounds, NaN wins.
    assert_eq!(updated("atomic_add", DType::I8, &[127.0], &[&[1.0]]).1, [-128.0]);
    assert_eq!(updated("atomic_add", DType::F16, &[2048.0], &[&[1.0]]).1, [2048.0]);
    assert!(updated("atomic_max", DType::F32, &[1.0], &[&[f64::NAN]]).1[0].is_nan());
}

#[test]
fn every_lane_acts_once() {
    let m = Memory::new();
    let (x, out) = (i32s(&m, &[0]), i32s(&m, &[0; 8]));
    let text = r#"kernel @k(v0 "x": *mut i32, v1 "out": *mut i32) {
  v2 = splat v0 : tile[*mut i32, 8]
  v3 = const {value = 2 : i32} : tile[i32, 8]
  v4 = arange {start = 0} : tile[i32, 8]
  v5 = const {value = 6 : i32} : tile[i32, 8]
  v6 = lt v4, v5 : tile[bool, 8]
  v7 = atomic_add v2, v3, v6 {order = "acq_rel", scope = "system"} : tile[i32, 8]
  v8 = splat v1 : tile[*mut i32, 8]
  v9 = ptr_add v8, v4 : tile[*mut i32, 8]
  store v9, v7
  return
}"#;
    one(&m, text, &[ptr(x), ptr(out)]);
    assert_eq!(read_i32(&m, x), [12]);
    assert_eq!(read_i32(&m, out), [0, 2, 4, 6, 8, 10, 0, 0]);
}

#[test]
fn masked_lanes_of_a_load_are_other() {
    let m = Memory::new();
    let (x, out) = (i32s(&m, &[5, 6]), i32s(&m, &[0; 2]));
    let text = r#"kernel @k(v0 "x": *i32, v1 "out": *mut i32) {
  v2 = arange {start = 0} : tile[i32, 2]
  v3 = splat v0 : tile[*i32, 2]
  v4 = ptr_add v3, v2 : tile[*i32, 2]
  v5 = const {value = 1 : i32} : tile[i32, 2]
  v6 = lt v2, v5 : tile[bool, 2]
  v7 = const {value = -1 : i32} : tile[i32, 2]
  v8 = atomic_load v4, v6, v7 {order = "acquire"} : tile[i32, 2]
  v9 = splat v1 : tile[*mut i32, 2]
  v10 = ptr_add v9, v2 : tile[*mut i32, 2]
  atomic_store v10, v8 {order = "release"}
  return
}"#;
    one(&m, text, &[ptr(x), ptr(out)]);
    assert_eq!(read_i32(&m, out), [5, -1]);
}

#[test]
fn views_leave_out_what_is_outside() {
    let m = Memory::new();
    let (x, out) = (i32s(&m, &[10, 20, 30, 40, 50, 60]), i32s(&m, &[-9; 4]));
    let text = r#"kernel @k(v0 "x": mut view[i32, 2], v1 "out": mut view[i32, 1]) {
  v2 = arange {start = -1} : tile[i32, 4]
  v3 = const {value = 1 : i32} : tile[i32, 4]
  v4 = atomic_add v0, v2, v3, v3 : tile[i32, 4]
  v5 = const {value = 0 : i32} : i32
  view_store v1, v5, v4
  return
}"#;
    one(&m, text, &[tensor(x, &[2, 3]), tensor(out, &[4])]);
    assert_eq!(read_i32(&m, x), [10, 21, 30, 40, 51, 60]);
    assert_eq!(read_i32(&m, out), [0, 20, 50, 0]);
}

#[test]
fn accesses_are_checked() {
    let m = Memory::new();
    let x = i32s(&m, &[0; 2]);
    let text = r#"kernel @k(v0 "x": *mut i32) {
  v1 = const {value = 2 : i32} : i32
  v2 = ptr_add v0, v1 : *mut i32
  v3 = atomic_add v2, v1 : i32
  return
}"#;
    let fault = run(&m, text, &[ptr(x)], [1, 1, 1]).unwrap_err();
    assert_eq!(fault.code, "E0708");
    assert_eq!(
        fault.message,
        "`atomic_add` accesses element 2 of the buffer `x` of 2 `i32`, past the end; limit it with a mask"
    );
    let fault = run(&m, text, &[Arg::Null], [1, 1, 1]).unwrap_err();
    assert_eq!(fault.code, "E0708");
}

#[test]
fn a_counter_gives_every_number_once() {
    let text = r#"kernel @k(v0 "count": *mut i32, v1 "out": *mut i32) {
  v2 = const {value = 1 : i32} : i32
  v3 = atomic_add v0, v2 : i32
  v4 = ptr_add v1, v3 : *mut i32
  store v4, v3
  return
}"#;
    for n in [1, 2, 5] {
        let m = Memory::new();
        let (count, out) = (i32s(&m, &[0]), i32s(&m, &vec![-1; 5000]));
        threads(&m, text, &[ptr(count), ptr(out)], 5000, n).unwrap();
        assert_eq!(read_i32(&m, count), [5000]);
        assert_eq!(read_i32(&m, out), (0..5000).collect::<Vec<_>>());
    }
}

/// Every program takes the lock, adds 1 without an atomic, and gives the lock back.
const LOCK: &str = r#"kernel @k(v0 "lock": *mut u32, v1 "count": *mut i32, v2 "bad": i32) {
  v3 = const {value = 0 : u32} : u32
  v4 = const {value = 1 : u32} : u32
  v5 = while v4 : u32 {
  block1(v6: u32):
    v7 = atomic_cas v0, v3, v4 {order = "acquire"} : u32
    v8 = ne v7, v3 : bool
    condition v8, v7
  block2(v9: u32):
    yield v9
  }
  v10 = program_id {axis = 0} : i32
  v11 = ne v10, v2 : bool
  assert v11 {message = "bad"}
  v12 = load v1 : i32
  v13 = const {value = 1 : i32} : i32
  v14 = add v12, v13 : i32
  store v1, v14
  atomic_store v0, v3 {order = "release"}
  return
}"#;

#[test]
fn a_spin_lock_keeps_others_out() {
    for n in [1, 2, 5] {
        let m = Memory::new();
        let (lock, count) = (alloc(&m, Buf::U32(vec![0])), i32s(&m, &[0]));
        threads(&m, LOCK, &[ptr(lock), ptr(count), int(-1)], 2000, n).unwrap();
        assert_eq!(read_i32(&m, count), [2000]);
    }
}

#[test]
fn a_failure_with_the_lock_ends_the_launch() {
    for n in [1, 2, 5] {
        let m = Memory::new();
        let (lock, count) = (alloc(&m, Buf::U32(vec![0])), i32s(&m, &[0]));
        let fault = threads(&m, LOCK, &[ptr(lock), ptr(count), int(50)], 2000, n).unwrap_err();
        assert_eq!((fault.program, fault.message.as_str()), (Some([50, 0, 0]), "assertion failed: bad"));
    }
}

/// Program p waits for the result of p + `step`, unless it is `first`, and adds 1 to it.
const CHAIN: &str = r#"kernel @k(v0 "flag": *mut u32, v1 "out": *mut i32, v2 "step": i32, v3 "first": i32) {
  v4 = program_id {axis = 0} : i32
  v5 = ptr_add v1, v4 : *mut i32
  v6 = add v4, v2 : i32
  v7 = const {value = 1 : i32} : i32
  v8 = const {value = 0 : u32} : u32
  v9 = ne v4, v3 : bool
  v10 = if v9 : i32 {
  block1():
    v11 = ptr_add v0, v6 : *mut u32
    v12 = while v8 : u32 {
    block2(v13: u32):
      v14 = atomic_load v11 {order = "acquire"} : u32
      v15 = eq v14, v8 : bool
      condition v15, v14
    block3(v16: u32):
      yield v16
    }
    v17 = ptr_add v1, v6 : *mut i32
    v18 = load v17 : i32
    yield v18
  block4():
    v19 = const {value = 0 : i32} : i32
    yield v19
  }
  v20 = add v10, v7 : i32
  store v5, v20
  v21 = ptr_add v0, v4 : *mut u32
  v22 = const {value = 1 : u32} : u32
  atomic_store v21, v22 {order = "release"}
  return
}"#;

#[test]
fn look_back_ends_in_both_directions() {
    for n in [1, 2] {
        for (step, first) in [(-1, 0), (1, 199)] {
            let m = Memory::new();
            let (flag, out) = (alloc(&m, Buf::U32(vec![0; 200])), i32s(&m, &[0; 200]));
            threads(&m, CHAIN, &[ptr(flag), ptr(out), int(step), int(first)], 200, n).unwrap();
            let mut expected: Vec<i32> = (1..=200).collect();
            if step == 1 {
                expected.reverse();
            }
            assert_eq!(read_i32(&m, out), expected, "{n} threads, step {step}");
        }
    }
}

/// Program p writes x[p] and, after the barrier, reads x[n - 1 - p]; twice. Those from `last` on leave before it.
const MEET: &str = r#"kernel @k(v0 "x": *mut i32, v1 "last": i32) {
  v2 = program_id {axis = 0} : i32
  v3 = num_programs {axis = 0} : i32
  v4 = const {value = 1 : i32} : i32
  v5 = sub v3, v2 : i32
  v6 = sub v5, v4 : i32
  v7 = ptr_add v0, v2 : *mut i32
  v8 = ptr_add v0, v6 : *mut i32
  store v7, v2
  v9 = lt v2, v1 : bool
  if v9 {
  block1():
    grid_barrier
    v10 = load v8 : i32
    grid_barrier
    v11 = add v10, v4 : i32
    store v7, v11
    yield
  block2():
    yield
  }
  return
}"#;

#[test]
fn programs_meet_at_a_barrier() {
    for n in [1, 2, 5] {
        let m = Memory::new();
        let x = i32s(&m, &[-1; 100]);
        threads(&m, MEET, &[ptr(x), int(100)], 100, n).unwrap();
        assert_eq!(read_i32(&m, x), (1..=100).rev().collect::<Vec<_>>());
        let fault = threads(&m, MEET, &[ptr(x), int(70)], 100, n).unwrap_err();
        assert_eq!(fault.program, Some([70, 0, 0]));
        assert_eq!(
            fault.message,
            "this program ended without reaching the `grid_barrier` where the others wait"
        );
    }
    let m = Memory::new();
    let x = i32s(&m, &[-1; 100]);
    let fault = threads(&m, MEET, &[ptr(x), int(0)], 1 << 17, 1).unwrap_err();
    assert_eq!(fault.code, "E0705");
}
