//! Views: boxes with positions of all kinds, strides of all kinds, parts of views, faults.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use crate::common::*;
use tk_interp::{Arg, Memory};
use tk_ops::{Buf, DType};

/// Copies the box [4, 8] of x at (i, j) to out, contiguous; where it is inside to `in`.
const BOX: &str = r#"
kernel @box(v0 "x": view[f32, 2], v1 "out": mut view[f32, 2], v2 "in": mut view[bool, 2], v3 "i": i32, v4 "j": i32) {
  v5 = const {value = 0 : i32} : i32
  v6 = const {value = -1.0 : f32} : tile[f32, 4, 8]
  v7 = view_load v0, v3, v4, v6 : tile[f32, 4, 8]
  view_store v1, v5, v5, v7
  v8 = view_inside v0, v3, v4 : tile[bool, 4, 8]
  view_store v2, v5, v5, v8
  return
}"#;

/// What BOX has to give for a view of this shape, whose element (a, b) is `x(a, b)`.
fn expected(shape: [i64; 2], at: [i64; 2], x: impl Fn(i64, i64) -> f32) -> (Vec<f32>, Vec<u8>) {
    let cells = (0..4).flat_map(|a| (0..8).map(move |b| (a, b)));
    cells
        .map(|(a, b)| {
            let (a, b) = (at[0].saturating_add(a), at[1].saturating_add(b));
            let inside = (0..shape[0]).contains(&a) && (0..shape[1]).contains(&b);
            (if inside { x(a, b) } else { -1.0 }, u8::from(inside))
        })
        .unzip()
}

fn check_box(shape: [i64; 2], strides: [i64; 2], offset: i64, at: [i64; 2], len: usize) {
    let m = Memory::new();
    let x = f32s(&m, &ramp(len));
    let (out, inside) = (f32s(&m, &[0.0; 32]), m.alloc(vec![9; 32]));
    let v = Arg::View { buffer: x, offset, shape: shape.to_vec(), strides: strides.to_vec() };
    let args = [v, tensor(out, &[4, 8]), tensor(inside, &[4, 8]), int(at[0].into()), int(at[1].into())];
    one(&m, BOX, &args);
    let of = |a: i64, b: i64| (offset + a * strides[0] + b * strides[1]) as f32;
    let (values, flags) = expected(shape, at, of);
    assert_eq!(read_f32(&m, out), values, "{shape:?} {strides:?} {at:?}");
    assert_eq!(m.read(inside).unwrap(), flags, "{shape:?} {strides:?} {at:?}");
}

#[test]
fn boxes_inside_across_and_outside() {
    for i in [-5, -4, -1, 0, 1, 3, 6, 7, 100, i32::MIN as i64, i32::MAX as i64] {
        for j in [-9, -8, -3, 0, 2, 12, 13, i32::MIN as i64, i32::MAX as i64] {
            check_box([7, 13], [13, 1], 0, [i, j], 91);
        }
    }
}

#[test]
fn strides_of_all_kinds() {
    // Padded rows, transposed, every other element, backwards, repeated.
    check_box([4, 8], [16, 1], 0, [0, 0], 56);
    check_box([5, 6], [1, 5], 0, [-1, -2], 30);
    check_box([5, 6], [12, 2], 1, [1, 1], 60);
    check_box([5, 6], [-6, -1], 29, [0, 0], 30);
    check_box([5, 6], [0, 1], 0, [2, 0], 6);
    check_box([5, 6], [0, 0], 3, [0, 0], 4);
    check_box([8, 8], [8, 1], 0, [0, 0], 64);
}

#[test]
fn zero_size_views_touch_nothing() {
    check_box([0, 5], [5, 1], 0, [0, 0], 0);
    check_box([5, 0], [1 << 40, 1 << 40], 1 << 50, [0, 0], 0);
}

#[test]
fn the_stride_of_an_extent_of_one_does_not_matter() {
    for stride in [0, -7, i64::MAX, i64::MIN] {
        check_box([1, 6], [stride, 1], 0, [0, 0], 6);
        check_box([6, 1], [1, stride], 0, [-1, -3], 6);
    }
}

#[test]
fn a_view_that_does_not_fit_its_buffer_faults() {
    let cases: [([i64; 2], [i64; 2], i64); 6] = [
        ([4, 8], [8, 1], 0),
        ([4, 8], [-8, 1], 0),
        ([4, 8], [i64::MAX, 1], 0),
        ([4, 8], [i64::MIN, i64::MIN], 0),
        ([4, 8], [1, 1], i64::MAX),
        ([4, 8], [1, 1], i64::MIN),
    ];
    for (shape, strides, offset) in cases {
        let m = Memory::new();
        let x = f32s(&m, &ramp(31));
        let v = Arg::View { buffer: x, offset, shape: shape.to_vec(), strides: strides.to_vec() };
        let (out, inside) = (f32s(&m, &[0.0; 32]), m.alloc(vec![9; 32]));
        let args = [v, tensor(out, &[4, 8]), tensor(inside, &[4, 8]), int(0), int(0)];
        let fault = run(&m, BOX, &args, [1, 1, 1]).unwrap_err();
        assert_eq!(fault.code, "E0708", "{strides:?}");
        assert!(fault.message.contains("of 31 `f32`"), "{fault}");
    }
}

#[test]
fn huge_extents_and_positions() {
    let m = Memory::new();
    let (x, out) = (f32s(&m, &ramp(4)), f32s(&m, &[0.0; 3]));
    let text = r#"kernel @k(v0 "x": view[f32, 1, i64], v1 "out": mut view[f32, 1], v2 "at": i64) {
  v3 = view_load v0, v2 : tile[f32, 3]
  v4 = const {value = 0 : i32} : i32
  view_store v1, v4, v3
  return
}"#;
    let at = |v: i64| Arg::Scalar(tk_ops::Scalar::int(DType::I64, v.into()));
    let huge = |stride| view(x, &[i64::MAX], &[stride]);
    one(&m, text, &[huge(1), tensor(out, &[3]), at(-1)]);
    assert_eq!(read_f32(&m, out), [0.0, 0.0, 1.0]);
    one(&m, text, &[huge(1), tensor(out, &[3]), at(i64::MIN)]);
    assert_eq!(read_f32(&m, out), [0.0; 3]);
    for far in [2, i64::MAX - 3, i64::MAX - 1] {
        let fault = run(&m, text, &[huge(i64::MAX), tensor(out, &[3]), at(far)], [1, 1, 1]).unwrap_err();
        assert_eq!(fault.code, "E0708");
    }
}

#[test]
fn the_largest_numbers_in_every_dimension() {
    let text = r#"kernel @k(v0 "x": mut view[f64, 5, i64], v1 "at": i64) {
  v2 = view_load v0, v1, v1, v1, v1, v1 : tile[f64, 2, 2, 2, 2, 2]
  view_store v0, v1, v1, v1, v1, v1, v2
  v3 = view_inside v0, v1, v1, v1, v1, v1 : tile[bool, 2, 2, 2, 2, 2]
  v4 = view_slice v0, v1, v1, v1, v1 {axes = [0, 2, 0, 1, 1]} : view[f64, 3, i64]
  v5 = view_load v4, v1, v1, v1 : f64
  return
}"#;
    for at in [i64::MIN, -1, 0, 1, i64::MAX - 2, i64::MAX - 1, i64::MAX] {
        for stride in [i64::MIN, -1, 0, 1, i64::MAX] {
            let m = Memory::new();
            let x = alloc(&m, Buf::F64(vec![0.0; 8]));
            let args = [
                view(x, &[i64::MAX; 5], &[stride; 5]),
                Arg::Scalar(tk_ops::Scalar::int(DType::I64, at.into())),
            ];
            if let Err(fault) = run(&m, text, &args, [1, 1, 1]) {
                assert_eq!(fault.code, "E0708", "{at} {stride}");
            }
        }
    }
}

#[test]
fn stores_write_only_what_is_inside() {
    let m = Memory::new();
    let out = f32s(&m, &[0.0; 12]);
    let text = r#"kernel @k(v0 "out": mut view[f32, 2], v1 "i": i32, v2 "j": i32) {
  v3 = const {value = 5.0 : f32} : tile[f32, 4, 4]
  view_store v0, v1, v2, v3
  return
}"#;
    one(&m, text, &[tensor(out, &[3, 4]), int(-3), int(2)]);
    assert_eq!(read_f32(&m, out), [0.0, 0.0, 5.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    one(&m, text, &[tensor(out, &[3, 4]), int(3), int(0)]);
    assert_eq!(read_f32(&m, out).iter().filter(|v| **v == 5.0).count(), 2);
}

#[test]
fn parts_of_views() {
    // out = x[i, a:b, :] of a view [3, 4, 5], permuted to [5, 4]; facts about it.
    let m = Memory::new();
    let text = r#"kernel @k(v0 "x": view[i32, 3], v1 "out": mut view[i32, 2], v2 "facts": mut view[i64, 1], v3 "i": i32, v4 "a": i32, v5 "b": i32) {
  v6 = view_slice v0, v3, v4, v5 {axes = [0, 2, 1]} : view[i32, 2]
  v7 = view_permute v6 {perm = [1, 0]} : view[i32, 2]
  v8 = const {value = 0 : i32} : i32
  v9 = const {value = -1 : i32} : tile[i32, 5, 4]
  v10 = view_load v7, v8, v8, v9 : tile[i32, 5, 4]
  view_store v1, v8, v8, v10
  v11 = view_shape v7 {axis = 1} : i32
  v12 = cast v11 : i64
  v13 = view_stride v7 {axis = 1} : i64
  v14 = splat v12 : tile[i64, 1]
  v15 = splat v13 : tile[i64, 1]
  view_store v2, v8, v14
  v16 = const {value = 1 : i32} : i32
  view_store v2, v16, v15
  return
}"#;
    let x = i32s(&m, &(0..60).collect::<Vec<_>>());
    for (i, a, b) in [(1, 1, 3), (2, 0, 4), (0, -5, 2), (1, 3, 1), (1, 2, 99), (3, 0, 4), (-1, 0, 4)] {
        let out = i32s(&m, &[7; 20]);
        let facts = alloc(&m, Buf::I64(vec![0; 2]));
        let args = [tensor(x, &[3, 4, 5]), tensor(out, &[5, 4]), tensor(facts, &[2]), int(i), int(a), int(b)];
        one(&m, text, &args);
        let (start, end) = (a.clamp(0, 4), b.clamp(0, 4));
        let rows = if (0..3).contains(&i) { (end - start).max(0) } else { 0 };
        let cell = |c: i128, r: i128| if r < rows { (i * 20 + (start + r) * 5 + c) as i32 } else { -1 };
        let expected: Vec<i32> = (0..5).flat_map(|c| (0..4).map(move |r| cell(c, r))).collect();
        assert_eq!(read_i32(&m, out), expected, "x[{i}, {a}:{b}]");
        assert_eq!(read(&m, facts, DType::I64).to_i64().unwrap(), [rows as i64, 5], "x[{i}, {a}:{b}]");
    }
}

#[test]
fn views_built_in_place_and_single_elements() {
    let m = Memory::new();
    let x = f32s(&m, &ramp(6));
    let text = r#"kernel @k(v0 "x": *mut f32, v1 "n": i32) {
  v2 = const {value = 2 : i32} : i32
  v3 = const {value = 1 : i64} : i64
  v4 = const {value = 2 : i64} : i64
  v5 = view v0, v1, v2, v4, v3 : mut view[f32, 2]
  v6 = const {value = 1 : i32} : i32
  v7 = const {value = 0 : i32} : i32
  v8 = view_load v5, v2, v6 : f32
  v9 = view_load v5, v2, v2 : f32
  view_store v5, v7, v7, v8
  view_store v5, v7, v6, v9
  v10 = view_ptr v5 : *mut f32
  v11 = ptr_add v10, v2 : *mut f32
  store v11, v8
  return
}"#;
    one(&m, text, &[ptr(x), int(3)]);
    assert_eq!(read_f32(&m, x), [5.0, 0.0, 5.0, 3.0, 4.0, 5.0]);
}

#[test]
fn views_of_pointers() {
    let m = Memory::new();
    let (a, b) = (i32s(&m, &[1, 2]), i32s(&m, &[3, 4]));
    let table = alloc(&m, Buf::U64(vec![m.address(b).unwrap(), m.address(a).unwrap()]));
    let out = i32s(&m, &[0; 2]);
    let text = r#"kernel @k(v0 "table": view[*i32, 1], v1 "out": mut view[i32, 1]) {
  v2 = const {value = 0 : i32} : i32
  v3 = view_load v0, v2 : tile[*i32, 2]
  v4 = arange {start = 0} : tile[i32, 2]
  v5 = ptr_add v3, v4 : tile[*i32, 2]
  v6 = load v5 : tile[i32, 2]
  view_store v1, v2, v6
  return
}"#;
    one(&m, text, &[tensor(table, &[2]), tensor(out, &[2])]);
    assert_eq!(read_i32(&m, out), [3, 2]);
}

#[test]
fn narrow_and_wide_elements_in_strided_boxes() {
    for dtype in [DType::Bool, DType::U8, DType::F16, DType::BF16, DType::F64, DType::I64, DType::F8E4M3] {
        let m = Memory::new();
        let size = dtype.bytes();
        let bytes: Vec<u8> = (0..size * 24).map(|i| (i * 5 % 2) as u8).collect();
        let (x, out) = (m.alloc(bytes.clone()), m.alloc(vec![0; size * 24]));
        let text = format!(
            r#"kernel @k(v0 "x": view[{dtype}, 2], v1 "out": mut view[{dtype}, 2]) {{
  v2 = const {{value = 0 : i32}} : i32
  v3 = view_load v0, v2, v2 : tile[{dtype}, 4, 6]
  view_store v1, v2, v2, v3
  return
}}"#
        );
        one(&m, &text, &[view(x, &[4, 6], &[1, 4]), tensor(out, &[4, 6])]);
        let element = |i: usize| bytes[i * size..(i + 1) * size].to_vec();
        let expected: Vec<u8> = (0..24).flat_map(|i| element(i % 6 * 4 + i / 6)).collect();
        assert_eq!(m.read(out).unwrap(), expected, "{dtype}");
    }
}
