//! Scans, sorting, counting, picking, random numbers, scaled products, and access to single elements of views.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use crate::common::*;
use tk_interp::{Arg, Memory};
use tk_ops::{Buf, DType};

/// A kernel with the views v0, v1, .. of these types and ranks; `body` sees v9 = 0 : i32 and numbers from v10.
fn kernel(params: &[(&str, usize)], body: &str) -> String {
    let param =
        |(i, (elem, rank)): (usize, &(&str, usize))| format!("v{i} \"p{i}\": mut view[{elem}, {rank}]");
    let params: Vec<String> = params.iter().enumerate().map(param).collect();
    format!(
        "kernel @k({}) {{\n  v9 = const {{value = 0 : i32}} : i32\n{body}\n  return\n}}",
        params.join(", ")
    )
}

/// Runs a body on [`x`, an i32 output of `n` elements] and gives the output.
fn ints(x: &[i32], shape: &[i64], n: usize, body: &str) -> Vec<i32> {
    let m = Memory::new();
    let (a, b) = (i32s(&m, x), i32s(&m, &vec![0; n]));
    let text = kernel(&[("i32", shape.len()), ("i32", 1)], body);
    one(&m, &text, &[tensor(a, shape), tensor(b, &[n as i64])]);
    read_i32(&m, b)
}

#[test]
fn running_sums_along_each_axis() {
    let x = [1, 2, 3, 4, 5, 6];
    let body = |line: &str| {
        format!(
            "  v10 = view_load v0, v9, v9 : tile[i32, 2, 3]\n  v11 = {line} : tile[i32, 2, 3]\n  \
             v12 = reshape v11 : tile[i32, 6]\n  view_store v1, v9, v12"
        )
    };
    let of = |line: &str| ints(&x, &[2, 3], 6, &body(line));
    assert_eq!(of("cumsum v10 {axis = 1}"), [1, 3, 6, 4, 9, 15]);
    assert_eq!(of("cumsum v10 {axis = 0}"), [1, 2, 3, 5, 7, 9]);
    assert_eq!(of("cumsum v10 {axis = 1, reverse = true}"), [6, 5, 3, 15, 11, 6]);
    assert_eq!(of("cumprod v10 {axis = 1}"), [1, 2, 6, 4, 20, 120]);
    assert_eq!(of("cumprod v10 {axis = 0, reverse = true}"), [4, 10, 18, 4, 5, 6]);
}

#[test]
fn uniform_and_consecutive_operands() {
    let body = r#"  v10 = const {value = 2 : i32} : tile[i32, 4]
  v11 = cumsum v10 {axis = 0} : tile[i32, 4]
  v12 = arange {start = 5} : tile[i32, 4]
  v13, v14 = sort v12, v11 {axis = 0, descending = true} : tile[i32, 4], tile[i32, 4]
  v15 = gather v12, v10 {axis = 0} : tile[i32, 4]
  v16 = cat v13, v14, v15 {axis = 0} : tile[i32, 12]
  view_store v1, v9, v16"#;
    assert_eq!(ints(&[0], &[1], 12, body), [8, 7, 6, 5, 8, 6, 4, 2, 7, 7, 7, 7]);
}

#[test]
fn sorted_pointers_still_point() {
    let body = r#"  v10 = view_load v0, v9 : tile[i32, 4]
  v11 = view_ptr v0 : *mut i32
  v12 = splat v11 : tile[*mut i32, 4]
  v13 = arange {start = 0} : tile[i32, 4]
  v14 = ptr_add v12, v13 : tile[*mut i32, 4]
  v15, v16 = sort v10, v14 {axis = 0} : tile[i32, 4], tile[*mut i32, 4]
  v17 = load v16 : tile[i32, 4]
  view_store v1, v9, v17"#;
    assert_eq!(ints(&[3, -1, 7, 0], &[4], 4, body), [-1, 0, 3, 7]);
}

#[test]
fn sorting_puts_nan_last_and_keeps_values_with_keys() {
    let m = Memory::new();
    let keys = f32s(&m, &[0.0, f32::NAN, -0.0, 2.0, -f32::INFINITY, 2.0]);
    let places = i32s(&m, &[0; 12]);
    let text = kernel(
        &[("f32", 1), ("i32", 1)],
        r#"  v10 = view_load v0, v9 : tile[f32, 6]
  v11 = arange {start = 0} : tile[i32, 6]
  v12, v13 = sort v10, v11 {axis = 0} : tile[f32, 6], tile[i32, 6]
  v14, v15 = sort v10, v11 {axis = 0, descending = true} : tile[f32, 6], tile[i32, 6]
  v16 = cat v13, v15 {axis = 0} : tile[i32, 12]
  view_store v1, v9, v16"#,
    );
    one(&m, &text, &[tensor(keys, &[6]), tensor(places, &[12])]);
    assert_eq!(read_i32(&m, places), [4, 2, 0, 3, 5, 1, 3, 5, 0, 2, 4, 1]);
}

#[test]
fn the_largest_few_and_their_places() {
    let body = r#"  v10 = view_load v0, v9, v9 : tile[i32, 2, 4]
  v11, v12 = topk v10 {k = 2} : tile[i32, 2, 2], tile[i32, 2, 2]
  v13 = cat v11, v12 {axis = 1} : tile[i32, 2, 4]
  v14 = reshape v13 : tile[i32, 8]
  view_store v1, v9, v14"#;
    assert_eq!(ints(&[1, 9, 9, 2, -5, -6, -1, -7], &[2, 4], 8, body), [9, 9, 1, 2, -1, -5, 2, 0]);
}

#[test]
fn counting() {
    let body = r#"  v10 = view_load v0, v9 : tile[i32, 7]
  v11 = histogram v10 {bins = 3} : tile[i32, 3]
  v12 = const {value = 1 : i32} : tile[i32, 7]
  v13 = ne v10, v12 : tile[bool, 7]
  v14 = histogram v10, v13 {bins = 3} : tile[i32, 3]
  v15 = cat v11, v14 {axis = 0} : tile[i32, 6]
  view_store v1, v9, v15"#;
    assert_eq!(ints(&[0, 1, 1, 2, 3, -1, 1], &[7], 6, body), [1, 3, 1, 1, 0, 1]);
}

#[test]
fn random_numbers_of_a_program() {
    let m = Memory::new();
    let (words, floats) = (alloc(&m, Buf::U32(vec![0; 3])), f32s(&m, &[0.0; 4]));
    let text = kernel(
        &[("u32", 1), ("f32", 1)],
        r#"  v10 = const {value = 0 : u64} : u64
  v11 = arange {start = 0} : tile[i32, 3]
  v12 = randint v10, v11 : tile[u32, 3]
  view_store v0, v9, v12
  v13, v14, v15, v16 = rand4 v10, v9 : f32, f32, f32, f32
  v17 = join v13, v14 : tile[f32, 2]
  v18 = join v15, v16 : tile[f32, 2]
  v19 = cat v17, v18 {axis = 0} : tile[f32, 4]
  view_store v1, v9, v19"#,
    );
    one(&m, &text, &[tensor(words, &[3]), tensor(floats, &[4])]);
    assert_eq!(read(&m, words, DType::U32).get(0).as_int(), Some(0x6627_e8d5));
    let published = [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    let expected: Vec<f32> = published.iter().map(|w| (w >> 8) as f32 / 16_777_216.0).collect();
    assert_eq!(read_f32(&m, floats), expected);
}

#[test]
fn every_axis_of_a_gather_is_checked() {
    // A [2, 3] view into 8 elements: what is outside must read `other`, though it lies in the buffer.
    let m = Memory::new();
    let (x, i, j, out) = (
        i32s(&m, &[0, 1, 2, 3, 4, 5, 6, 7]),
        i32s(&m, &[0, 1, 0, 1, 2, -1, i32::MAX]),
        i32s(&m, &[0, 2, 3, -1, 0, 4, i32::MAX]),
        i32s(&m, &[0; 7]),
    );
    let text = kernel(
        &[("i32", 2), ("i32", 1), ("i32", 1), ("i32", 1)],
        r#"  v10 = view_load v1, v9 : tile[i32, 7]
  v11 = view_load v2, v9 : tile[i32, 7]
  v12 = const {value = 2 : i32} : tile[i32, 7]
  v13 = const {value = true : bool} : tile[bool, 7]
  v14 = const {value = -1 : i32} : tile[i32, 7]
  v15 = view_gather v0, v10, v11, v13, v14 : tile[i32, 7]
  view_store v3, v9, v15"#,
    );
    let args = [tensor(x, &[2, 3]), tensor(i, &[7]), tensor(j, &[7]), tensor(out, &[7])];
    one(&m, &text, &args);
    assert_eq!(read_i32(&m, out), [0, 5, -1, -1, -1, -1, -1]);
}

#[test]
fn a_scatter_writes_what_is_inside_and_not_masked() {
    let m = Memory::new();
    let (y, i) = (i32s(&m, &[0; 6]), i32s(&m, &[2, 0, 3, 1, 2]));
    let text = kernel(
        &[("i32", 2), ("i32", 1)],
        r#"  v10 = view_load v1, v9 : tile[i32, 5]
  v11 = const {value = 1 : i64} : tile[i64, 5]
  v12 = arange {start = 10} : tile[i32, 5]
  v13 = const {value = 1 : i32} : tile[i32, 5]
  v14 = ne v10, v13 : tile[bool, 5]
  view_scatter v0, v10, v11, v12, v14"#,
    );
    // The transposed view [3, 2] of [2, 3].
    one(&m, &text, &[view(y, &[3, 2], &[1, 3]), tensor(i, &[5])]);
    assert_eq!(read_i32(&m, y), [0, 0, 0, 11, 0, 14]);
}

#[test]
fn a_gather_through_wrong_strides_is_reported() {
    let m = Memory::new();
    let x = i32s(&m, &[1, 2]);
    let text = kernel(
        &[("i32", 1)],
        r#"  v10 = const {value = 3 : i32} : i32
  v11 = const {value = true : bool} : bool
  v12 = view_gather v0, v10, v11, v9 : i32
  view_store v0, v9, v12"#,
    );
    for stride in [1, i64::MAX] {
        let fault = run(&m, &text, &[view(x, &[4], &[stride])], [1, 1, 1]).unwrap_err();
        assert!(fault.code == "E0708" && fault.message.contains("a load from a view"), "{fault}");
    }
}

/// The value of a finite f8e4m3 code by the formula of the format.
fn e4m3(code: u8) -> f64 {
    let (sign, exponent, fraction) = (code >> 7, i32::from(code >> 3 & 15), f64::from(code & 7) / 8.0);
    let size =
        if exponent == 0 { fraction * 2f64.powi(-6) } else { (1.0 + fraction) * 2f64.powi(exponent - 7) };
    if sign == 1 { -size } else { size }
}

/// Codes without NaN.
fn codes(n: usize, step: usize) -> Vec<u8> {
    (0..n).map(|i| (i * step % 251) as u8).map(|c| if c & 0x7f == 0x7f { c - 1 } else { c }).collect()
}

#[test]
fn fp8_products_are_exact_before_they_are_added() {
    let (m, k, n) = (5, 7, 3);
    let (a, b) = (codes(m * k, 37), codes(k * n, 91));
    let memory = Memory::new();
    let args = [
        tensor(memory.alloc(a.clone()), &[m as i64, k as i64]),
        tensor(memory.alloc(b.clone()), &[k as i64, n as i64]),
    ];
    let out = f32s(&memory, &vec![1.0; m * n]);
    let text = kernel(
        &[("f8e4m3", 2), ("f8e4m3", 2), ("f32", 2)],
        r#"  v10 = view_load v0, v9, v9 : tile[f8e4m3, 5, 7]
  v11 = view_load v1, v9, v9 : tile[f8e4m3, 7, 3]
  v12 = view_load v2, v9, v9 : tile[f32, 5, 3]
  v13 = dot v10, v11, v12 : tile[f32, 5, 3]
  view_store v2, v9, v9, v13"#,
    );
    let args: Vec<Arg> = args.into_iter().chain([tensor(out, &[5, 3])]).collect();
    one(&memory, &text, &args);
    for (p, found) in read_f32(&memory, out).into_iter().enumerate() {
        let terms: Vec<f64> =
            (0..k).map(|l| e4m3(a[p / n * k + l]) * e4m3(b[l * n + p % n])).chain([1.0]).collect();
        let (sum, size): (f64, f64) = (terms.iter().sum(), terms.iter().map(|t| t.abs()).sum());
        assert!((f64::from(found) - sum).abs() <= size * 8.0 * f64::from(f32::EPSILON), "{p}: {found} {sum}");
    }
}

#[test]
fn scaled_products() {
    // K = 6 in two blocks of 3; a scale is 2^(code - 127).
    let (m, k, n, blocks) = (2, 6, 2, 2);
    let (a, b) = (codes(m * k, 29), codes(k * n, 53));
    let (s, t) = (vec![127u8, 130, 120, 200], vec![128u8, 90, 60, 127]);
    let memory = Memory::new();
    let out = f32s(&memory, &[0.5; 4]);
    let ids = [(a.clone(), [2, 6]), (b.clone(), [6, 2]), (s.clone(), [2, 2]), (t.clone(), [2, 2])];
    let args = ids.into_iter().map(|(bytes, shape)| tensor(memory.alloc(bytes), &shape));
    let args: Vec<Arg> = args.chain([tensor(out, &[2, 2])]).collect();
    let text = kernel(
        &[("f8e4m3", 2), ("f8e4m3", 2), ("e8m0", 2), ("e8m0", 2), ("f32", 2)],
        r#"  v10 = view_load v0, v9, v9 : tile[f8e4m3, 2, 6]
  v11 = view_load v1, v9, v9 : tile[f8e4m3, 6, 2]
  v12 = view_load v2, v9, v9 : tile[e8m0, 2, 2]
  v13 = view_load v3, v9, v9 : tile[e8m0, 2, 2]
  v14 = view_load v4, v9, v9 : tile[f32, 2, 2]
  v15 = dot_scaled v10, v11, v12, v13, v14 : tile[f32, 2, 2]
  view_store v4, v9, v9, v15"#,
    );
    one(&memory, &text, &args);
    let scale = |code: u8| 2f64.powi(i32::from(code) - 127);
    for (p, found) in read_f32(&memory, out).into_iter().enumerate() {
        let (i, j) = (p / n, p % n);
        let term = |l: usize| {
            let block = l / (k / blocks);
            e4m3(a[i * k + l]) * scale(s[i * blocks + block]) * e4m3(b[l * n + j]) * scale(t[block * n + j])
        };
        // Factors times scales have few bits, and f32 adds them in the order of the columns.
        let expected = (0..k).map(term).fold(0.5f32, |sum, x| (f64::from(sum) + x) as f32);
        assert!((found - expected).abs() <= expected.abs() * f32::EPSILON, "{p}: {found} {expected}");
    }
}

/// What is too large for bf16 is infinite, even where the other factor would make it small again.
#[test]
fn scaled_factors_are_rounded() {
    let cases: [(u8, u8, f32); 5] = [
        // 2^127 of the largest value and 2^-127 of it.
        (254, 0, f32::INFINITY),
        // 2^119 of it, which fits, and 2^-119.
        (246, 8, 448.0 * 448.0),
        // The smallest value, 2^-9, times 2^-127 is below half of the smallest bf16.
        (0, 254, 0.0),
        // A scale that is no number.
        (255, 127, f32::NAN),
        (127, 255, f32::NAN),
    ];
    for (s, t, expected) in cases {
        let code = if s == 0 { 1u8 } else { 0x7e };
        let memory = Memory::new();
        let out = f32s(&memory, &[0.0]);
        let ids = [(code, [1, 1]), (code, [1, 1]), (s, [1, 1]), (t, [1, 1])];
        let args = ids.into_iter().map(|(byte, shape)| tensor(memory.alloc(vec![byte]), &shape));
        let args: Vec<Arg> = args.chain([tensor(out, &[1, 1])]).collect();
        let text = kernel(
            &[("f8e4m3", 2), ("f8e4m3", 2), ("e8m0", 2), ("e8m0", 2), ("f32", 2)],
            r#"  v10 = view_load v0, v9, v9 : tile[f8e4m3, 1, 1]
  v11 = view_load v1, v9, v9 : tile[f8e4m3, 1, 1]
  v12 = view_load v2, v9, v9 : tile[e8m0, 1, 1]
  v13 = view_load v3, v9, v9 : tile[e8m0, 1, 1]
  v14 = view_load v4, v9, v9 : tile[f32, 1, 1]
  v15 = dot_scaled v10, v11, v12, v13, v14 : tile[f32, 1, 1]
  view_store v4, v9, v9, v15"#,
        );
        one(&memory, &text, &args);
        let found = read_f32(&memory, out)[0];
        assert!(found == expected || found.is_nan() && expected.is_nan(), "{s}, {t}: {found}");
    }
}
