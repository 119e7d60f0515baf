//! `reduce` and `scan` with blocks.

use crate::common::*;
use tk_interp::Memory;

/// Folds 0, 1, 2, .. of shape `from` with `block`, whose result has shape `to`.
fn folded(op: &str, attrs: &str, block: &str, from: &[i64], to: &[i64]) -> Vec<i32> {
    let m = Memory::new();
    let n: i64 = from.iter().product();
    let x = i32s(&m, &(0..n as i32).collect::<Vec<_>>());
    let out = i32s(&m, &vec![-7; to.iter().product::<i64>() as usize]);
    let list = |s: &[i64]| s.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let zeros = |s: &[i64]| vec!["v2"; s.len()].join(", ");
    let text = format!(
        r#"kernel @k(v0 "x": view[i32, {}], v1 "out": mut view[i32, {}]) {{
  v2 = const {{value = 0 : i32}} : i32
  v3 = view_load v0, {} : tile[i32, {}]
  v4 = {op} v3 {{{attrs}}} : tile[i32, {}] {{
  block1(v5: i32, v6: i32):
{block}
  }}
  view_store v1, {}, v4
  return
}}"#,
        from.len(),
        to.len(),
        zeros(from),
        list(from),
        list(to),
        zeros(to)
    );
    one(&m, &text, &[tensor(x, from), tensor(out, to)]);
    read_i32(&m, out)
}

const ADD: &str = "    v7 = add v5, v6 : i32\n    yield v7";
/// a * 10 + b: shows the order, and that nothing is left out or taken twice.
const DIGITS: &str = "    v7 = const {value = 10 : i32} : i32\n    v8 = mul v5, v7 : i32\n    v9 = add v8, v6 : i32\n    yield v9";
/// The first, by a branch: no elementwise block.
const FIRST: &str = r#"    v7 = lt v5, v6 : bool
    v8 = if v7 : i32 {
    block2():
      yield v5
    block3():
      yield v6
    }
    yield v8"#;

#[test]
fn reduce_along_each_axis() {
    let sum =
        |axis: usize, from: &[i64], to: &[i64]| folded("reduce", &format!("axis = {axis}"), ADD, from, to);
    assert_eq!(sum(1, &[2, 3], &[2]), [3, 12]);
    assert_eq!(sum(0, &[2, 3], &[3]), [3, 5, 7]);
    assert_eq!(sum(1, &[2, 5, 2], &[2, 2]), [20, 25, 70, 75]);
    assert_eq!(sum(1, &[3, 1], &[3]), [0, 1, 2]);
    assert_eq!(sum(1, &[1, 1000], &[1]), [499500]);
}

#[test]
fn reduce_keeps_the_order_of_elements() {
    // Neighbours first: ((0 1) (2 3)) 4, where a pair is 10 a + b.
    assert_eq!(folded("reduce", "axis = 1, ordered = true", DIGITS, &[1, 5], &[1]), [(10 + 23) * 10 + 4]);
    // A block with a branch takes the same way as one without.
    assert_eq!(folded("reduce", "axis = 1", FIRST, &[3, 7], &[3]), [0, 7, 14]);
}

#[test]
fn scan_both_ways() {
    assert_eq!(folded("scan", "axis = 0", ADD, &[5], &[5]), [0, 1, 3, 6, 10]);
    assert_eq!(folded("scan", "axis = 0, reverse = true", ADD, &[5], &[5]), [10, 10, 9, 7, 4]);
    assert_eq!(folded("scan", "axis = 0", DIGITS, &[4], &[4]), [0, 1, 12, 123]);
    assert_eq!(folded("scan", "axis = 0, reverse = true", DIGITS, &[4], &[4]), [3210, 321, 32, 3]);
    assert_eq!(folded("scan", "axis = 0", ADD, &[2, 3], &[2, 3]), [0, 1, 2, 3, 5, 7]);
    assert_eq!(folded("scan", "axis = 1", ADD, &[2, 3], &[2, 3]), [0, 1, 3, 3, 7, 12]);
    let middle = folded("scan", "axis = 1, reverse = true", ADD, &[2, 2, 2], &[2, 2, 2]);
    assert_eq!(middle, [2, 4, 2, 3, 10, 12, 6, 7]);
    assert_eq!(folded("scan", "axis = 1", FIRST, &[2, 3], &[2, 3]), [0, 0, 0, 3, 3, 3]);
    assert_eq!(folded("scan", "axis = 1", ADD, &[3, 1], &[3, 1]), [0, 1, 2]);
}

#[test]
fn several_operands_and_pointers() {
    // The largest and where it was, and a pointer to it.
    let m = Memory::new();
    let x = i32s(&m, &[3, 9, 4, 1, 7]);
    let out = i32s(&m, &[-1; 3]);
    let text = r#"kernel @k(v0 "x": *i32, v1 "out": *mut i32) {
  v2 = arange {start = 0} : tile[i32, 5]
  v3 = splat v0 : tile[*i32, 5]
  v4 = ptr_add v3, v2 : tile[*i32, 5]
  v5 = load v4 : tile[i32, 5]
  v6, v7, v8 = reduce v5, v2, v4 {axis = 0} : i32, i32, *i32 {
  block1(v9: i32, v10: i32, v11: *i32, v12: i32, v13: i32, v14: *i32):
    v15 = ge v9, v12 : bool
    v16 = select v15, v9, v12 : i32
    v17 = select v15, v10, v13 : i32
    v18 = select v15, v11, v14 : *i32
    yield v16, v17, v18
  }
  v19 = load v8 : i32
  v20 = const {value = 1 : i32} : i32
  v21 = const {value = 2 : i32} : i32
  v22 = ptr_add v1, v20 : *mut i32
  v23 = ptr_add v1, v21 : *mut i32
  store v1, v6
  store v22, v7
  store v23, v19
  return
}"#;
    one(&m, text, &[ptr(x), ptr(out)]);
    assert_eq!(read_i32(&m, out), [9, 1, 9]);
}
