//! Control flow: loops, flags, branches, calls, maps; and that values live as long as they are needed.

use crate::common::*;
use tk_interp::Memory;
use tk_ops::DType;

/// Runs `body`, which uses the pointer v0 to i32 results and the i32 v1; gives the results.
fn ints(body: &str, n: i32, len: usize) -> Vec<i32> {
    let m = Memory::new();
    let out = i32s(&m, &vec![-7; len]);
    let text = format!("kernel @k(v0 \"out\": *mut i32, v1 \"n\": i32) {{\n{body}\n}}\n{FUNCS}");
    one(&m, &text, &[ptr(out), int(n.into())]);
    read_i32(&m, out)
}

/// Functions that the kernels call.
const FUNCS: &str = r#"
noinline @gcd(v0 "a": i32, v1 "b": i32) -> i32 {
  v2, v3 = while v0, v1 : i32, i32 {
  block1(v4: i32, v5: i32):
    v6 = const {value = 0 : i32} : i32
    v7 = ne v5, v6 : bool
    condition v7, v4, v5
  block2(v8: i32, v9: i32):
    v10 = rem v8, v9 : i32
    yield v9, v10
  }
  return v2
}
fn @twice(v0 "a": tile[i32, 4]) -> tile[i32, 4], i32 {
  v1 = add v0, v0 : tile[i32, 4]
  v2 = sum v1 {axis = 0} : i32
  return v1, v2
}
"#;

#[test]
fn for_up_down_and_not_at_all() {
    let body = |lo: i32, step: i32| {
        format!(
            r#"  v2 = const {{value = {lo} : i32}} : i32
  v3 = const {{value = {step} : i32}} : i32
  v4 = const {{value = 0 : i32}} : i32
  v5, v6 = for v2, v1, v3, v4, v4 : i32, i32 {{
  block1(v7: i32, v8: i32, v9: i32):
    v10 = add v8, v7 : i32
    v11 = const {{value = 1 : i32}} : i32
    v12 = add v9, v11 : i32
    yield v10, v12
  }}
  store v0, v5
  v13 = const {{value = 1 : i32}} : i32
  v14 = ptr_add v0, v13 : *mut i32
  store v14, v6
  return"#
        )
    };
    assert_eq!(ints(&body(0, 3), 10, 2), [18, 4]);
    assert_eq!(ints(&body(5, -2), -2, 2), [5 + 3 + 1 - 1, 4]);
    assert_eq!(ints(&body(5, 1), 5, 2), [0, 0]);
    assert_eq!(ints(&body(5, -1), 9, 2), [0, 0]);
    // The loop variable would overflow: the loop ends.
    assert_eq!(ints(&body(i32::MAX - 1, 7), i32::MAX, 2), [i32::MAX - 1, 1]);
    assert_eq!(ints(&body(i32::MIN + 1, -7), i32::MIN, 2), [i32::MIN + 1, 1]);
}

#[test]
fn a_step_of_zero_is_a_fault() {
    let m = Memory::new();
    let text = r#"kernel @k(v0 "n": i32) {
  v1 = const {value = 0 : i32} : i32
  for v1, v0, v1 {
  block1(v2: i32):
    yield
  }
  return
}"#;
    let fault = run(&m, text, &[int(3)], [1, 1, 1]).unwrap_err();
    assert!(fault.code == "E0708" && fault.message.contains("step"), "{fault}");
}

#[test]
fn nested_loops_with_a_flag_as_break() {
    // Counts i, j with j < i until the sum of j passes n: the inner loop breaks, then the outer one.
    let body = r#"  v2 = const {value = 0 : i32} : i32
  v3 = const {value = 1 : i32} : i32
  v4 = const {value = 100 : i32} : i32
  v5 = const {value = true : bool} : bool
  v6, v7, v8, v9 = while v2, v2, v2, v5 : i32, i32, i32, bool {
  block1(v10: i32, v11: i32, v12: i32, v13: bool):
    v14 = lt v10, v4 : bool
    v15 = and v14, v13 : bool
    condition v15, v10, v11, v12, v13
  block2(v16: i32, v17: i32, v18: i32, v19: bool):
    v20, v21, v22 = for v2, v16, v3, v17, v18, v19 : i32, i32, bool {
    block3(v23: i32, v24: i32, v25: i32, v26: bool):
      v27, v28, v29 = if v26 : i32, i32, bool {
      block4:
        v30 = add v24, v23 : i32
        v31 = add v25, v3 : i32
        v32 = le v30, v1 : bool
        yield v30, v31, v32
      block5:
        yield v24, v25, v26
      }
      yield v27, v28, v29
    }
    v33 = add v16, v3 : i32
    yield v33, v20, v21, v22
  }
  store v0, v7
  v34 = ptr_add v0, v3 : *mut i32
  store v34, v8
  return"#;
    let (mut sum, mut steps) = (0, 0);
    'outer: for i in 0..100 {
        for j in 0..i {
            sum += j;
            steps += 1;
            if sum > 50 {
                break 'outer;
            }
        }
    }
    assert_eq!(ints(body, 50, 2), [sum, steps]);
}

#[test]
fn values_survive_branches_and_loops() {
    // v4 is read in one arm, again in a loop, and after it; tiles are updated in place only where they have no other
    // use.
    let body = r#"  v2 = arange {start = 0} : tile[i32, 4]
  v3 = const {value = 10 : i32} : tile[i32, 4]
  v4 = add v2, v3 : tile[i32, 4]
  v5 = const {value = 0 : i32} : i32
  v6 = const {value = 1 : i32} : i32
  v7 = for v5, v1, v6, v4 : tile[i32, 4] {
  block1(v8: i32, v9: tile[i32, 4]):
    v10 = gt v8, v6 : bool
    v11 = if v10 : tile[i32, 4] {
    block2:
      v12 = add v9, v4 : tile[i32, 4]
      yield v12
    block3:
      yield v4
    }
    yield v11
  }
  v13 = sub v7, v4 : tile[i32, 4]
  v14 = splat v0 : tile[*mut i32, 4]
  v15 = ptr_add v14, v2 : tile[*mut i32, 4]
  store v15, v13
  return"#;
    assert_eq!(ints(body, 5, 4), [30, 33, 36, 39]);
    assert_eq!(ints(body, 0, 4), [0, 0, 0, 0]);
}

#[test]
fn calls() {
    let body = r#"  v2 = const {value = 84 : i32} : i32
  v3 = call v2, v1 {callee = "gcd"} : i32
  v4 = arange {start = 1} : tile[i32, 4]
  v5, v6 = call v4 {callee = "twice"} : tile[i32, 4], i32
  v7, v8 = call v5 {callee = "twice"} : tile[i32, 4], i32
  store v0, v3
  v9 = const {value = 1 : i32} : i32
  v10 = ptr_add v0, v9 : *mut i32
  store v10, v6
  v11 = const {value = 2 : i32} : i32
  v12 = ptr_add v0, v11 : *mut i32
  v13 = splat v12 : tile[*mut i32, 4]
  v14 = arange {start = 0} : tile[i32, 4]
  v15 = ptr_add v13, v14 : tile[*mut i32, 4]
  v16 = add v7, v4 : tile[i32, 4]
  store v15, v16
  return"#;
    assert_eq!(ints(body, 36, 6), [12, 20, 5, 10, 15, 20]);
}

#[test]
fn a_chain_of_calls_does_not_use_the_stack() {
    let mut text = String::from(
        "kernel @k(v0 \"out\": *mut i32) {\n v1 = const {value = 0 : i32} : i32\n v2 = call v1 {callee = \"f0\"} : i32\n store v0, v2\n return\n}\n",
    );
    let depth = 5000;
    for i in 0..depth {
        let next = if i + 1 < depth {
            format!("v3 = call v2 {{callee = \"f{}\"}} : i32", i + 1)
        } else {
            "v3 = add v2, v1 : i32".into()
        };
        text += &format!(
            "noinline @f{i}(v0 \"a\": i32) -> i32 {{\n v1 = const {{value = 1 : i32}} : i32\n v2 = add v0, v1 : i32\n {next}\n return v3\n}}\n"
        );
    }
    let m = Memory::new();
    let out = i32s(&m, &[0]);
    one(&m, &text, &[ptr(out)]);
    assert_eq!(read_i32(&m, out), [depth + 1]);
}

#[test]
fn map_with_branches_runs_element_by_element() {
    // Collatz steps of 1..=8, and whether the number is even.
    let body = r#"  v2 = arange {start = 1} : tile[i32, 8]
  v3 = const {value = 1000 : i32} : i32
  v4, v5 = map v2 : tile[i32, 8], tile[bool, 8] {
  block1(v6: i32):
    v7 = const {value = 0 : i32} : i32
    v8 = const {value = 1 : i32} : i32
    v9 = const {value = 2 : i32} : i32
    v10, v11 = while v6, v7 : i32, i32 {
    block2(v12: i32, v13: i32):
      v14 = gt v12, v8 : bool
      condition v14, v12, v13
    block3(v15: i32, v16: i32):
      v17 = rem v15, v9 : i32
      v18 = eq v17, v7 : bool
      v19 = if v18 : i32 {
      block4:
        v20 = div v15, v9 : i32
        yield v20
      block5:
        v21 = const {value = 3 : i32} : i32
        v22 = mul v15, v21 : i32
        v23 = add v22, v8 : i32
        yield v23
      }
      v24 = add v16, v8 : i32
      yield v19, v24
    }
    v25 = rem v6, v9 : i32
    v26 = eq v25, v7 : bool
    v27 = add v11, v3 : i32
    yield v27, v26
  }
  v28 = const {value = 0 : i32} : tile[i32, 8]
  v29 = select v5, v28, v4 : tile[i32, 8]
  v30 = splat v0 : tile[*mut i32, 8]
  v31 = arange {start = 0} : tile[i32, 8]
  v32 = ptr_add v30, v31 : tile[*mut i32, 8]
  store v32, v29
  return"#;
    assert_eq!(ints(body, 0, 8), [1000, 0, 1007, 0, 1005, 0, 1016, 0]);
}

#[test]
fn map_without_branches_runs_on_whole_tiles() {
    // Two inputs, one of them uniform; a value from outside; a uniform result.
    let body = r#"  v2 = arange {start = 0} : tile[i32, 5]
  v3 = const {value = 2 : i32} : tile[i32, 5]
  v4, v5, v6 = map v2, v3 : tile[i32, 5], tile[i32, 5], tile[i32, 5] {
  block1(v7: i32, v8: i32):
    v9 = mul v7, v8 : i32
    v10 = add v9, v1 : i32
    v11 = const {value = 9 : i32} : i32
    yield v10, v11, v7
  }
  v12 = add v4, v5 : tile[i32, 5]
  v13 = add v12, v6 : tile[i32, 5]
  v14 = splat v0 : tile[*mut i32, 5]
  v15 = ptr_add v14, v2 : tile[*mut i32, 5]
  store v15, v13
  return"#;
    assert_eq!(ints(body, 100, 5), [109, 112, 115, 118, 121]);
}

#[test]
fn map_over_pointers() {
    let body = r#"  v2 = arange {start = 0} : tile[i32, 3]
  v3 = splat v0 : tile[*mut i32, 3]
  v4 = map v3, v2 : tile[*mut i32, 3] {
  block1(v5: *mut i32, v6: i32):
    v7 = const {value = 2 : i32} : i32
    v8 = sub v7, v6 : i32
    v9 = ptr_add v5, v8 : *mut i32
    yield v9
  }
  store v4, v2
  return"#;
    assert_eq!(ints(body, 0, 3), [2, 1, 0]);
}

#[test]
fn hints_change_nothing() {
    let body = r#"  v2 = const {value = 0 : i32} : i32
  v3 = ge v1, v2 : bool
  assume v3
  v4 = multiple_of v1 {value = 16} : i32
  v5 = max_contiguous v4 {value = 4} : i32
  prefetch v0
  store v0, v5
  return"#;
    assert_eq!(ints(body, 33, 1), [33]);
}

#[test]
fn assert_stops_with_its_message() {
    let text = r#"kernel @k() {
  v0 = program_id {axis = 1} : i32
  v1 = arange {start = 0} : tile[i32, 6]
  v2 = reshape v1 : tile[i32, 2, 3]
  v3 = const {value = 4 : i32} : i32
  v4 = sub v3, v0 : i32
  v5 = splat v4 : tile[i32, 2, 3]
  v6 = le v2, v5 : tile[bool, 2, 3]
  assert v6 {message = "too large"} loc(0:5:9)
  return
}"#;
    let fault = run(&Memory::new(), text, &[], [2, 3, 1]).unwrap_err();
    assert_eq!((fault.code, fault.program), ("E0708", Some([0, 0, 0])));
    assert_eq!(fault.message, "assertion failed at element [1, 2]: too large");
    assert_eq!(fault.loc.map(|l| l.start), Some(5));
}

#[test]
fn what_is_not_there_yet_says_so() {
    let m = Memory::new();
    let text = r#"kernel @k(v0 "n": i32) {
  v1 = inline_asm v0 {code = "add.s32 $0, $1, $1;", constraints = "=r,r"} : i32
  return
}"#;
    let fault = run(&m, text, &[int(1)], [1, 1, 1]).unwrap_err();
    assert!(fault.code == "E0002" && fault.message.contains("inline_asm"), "{fault}");
}

#[test]
fn program_ids_of_three_axes() {
    let m = Memory::new();
    let out = i32s(&m, &[0; 24]);
    let text = r#"kernel @k(v0 "out": *mut i32) {
  v1 = program_id {axis = 0} : i32
  v2 = program_id {axis = 1} : i32
  v3 = program_id {axis = 2} : i32
  v4 = num_programs {axis = 0} : i32
  v5 = num_programs {axis = 1} : i32
  v6 = mul v3, v5 : i32
  v7 = add v6, v2 : i32
  v8 = mul v7, v4 : i32
  v9 = add v8, v1 : i32
  v10 = ptr_add v0, v9 : *mut i32
  v11 = const {value = 100 : i32} : i32
  v12 = mul v3, v11 : i32
  v13 = const {value = 10 : i32} : i32
  v14 = mul v2, v13 : i32
  v15 = add v12, v14 : i32
  v16 = add v15, v1 : i32
  store v10, v16
  return
}"#;
    run(&m, text, &[ptr(out)], [4, 3, 2]).unwrap();
    let expected: Vec<i32> = (0..24).map(|i| i / 12 * 100 + i / 4 % 3 * 10 + i % 4).collect();
    assert_eq!(read_i32(&m, out), expected);
}

#[test]
fn loops_over_other_integers() {
    let m = Memory::new();
    let out = m.alloc(vec![0; 8]);
    let text = r#"kernel @k(v0 "out": *mut u64) {
  v1 = const {value = 18446744073709551610 : u64} : u64
  v2 = const {value = 18446744073709551615 : u64} : u64
  v3 = const {value = 2 : u64} : u64
  v4 = const {value = 0 : u64} : u64
  v5 = for v1, v2, v3, v4 : u64 {
  block1(v6: u64, v7: u64):
    v8 = xor v7, v6 : u64
    yield v8
  }
  store v0, v5
  return
}"#;
    one(&m, text, &[ptr(out)]);
    let expected = (u64::MAX - 5) ^ (u64::MAX - 3) ^ (u64::MAX - 1);
    assert_eq!(read(&m, out, DType::U64).get(0).as_int(), Some(expected.into()));
}
