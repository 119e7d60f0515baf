//! What computes on tiles without memory: elementwise operations, rearrangements, reductions, matrix products.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use crate::common::*;
use tk_interp::{Arg, Memory};
use tk_ops::{Buf, DType};

/// A kernel with the views v0, v1, .. of these types and ranks; `body` sees v9 = 0 : i32 and numbers from v10.
fn kernel(params: &[(&str, usize)], body: &str) -> String {
    let params: Vec<String> = params
        .iter()
        .enumerate()
        .map(|(i, (elem, rank))| format!("v{i} \"p{i}\": mut view[{elem}, {rank}]"))
        .collect();
    format!(
        "kernel @k({}) {{\n  v9 = const {{value = 0 : i32}} : i32\n{body}\n  return\n}}",
        params.join(", ")
    )
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn elementwise_with_nan_and_uniform_operands() {
    let m = Memory::new();
    let values = [1.0, f32::NAN, -0.0, f32::INFINITY, -2.5];
    let (x, y) = (f32s(&m, &values), f32s(&m, &[0.0; 5]));
    let text = kernel(
        &[("f32", 1), ("f32", 1)],
        r#"  v10 = view_load v0, v9 : tile[f32, 5]
  v11 = const {value = 0.0 : f32} : tile[f32, 5]
  v12 = maximum v10, v11 : tile[f32, 5]
  v13 = const {value = 2.0 : f32} : tile[f32, 5]
  v14 = mul v13, v13 : tile[f32, 5]
  v15 = fma v12, v14, v13 : tile[f32, 5]
  view_store v1, v9, v15"#,
    );
    one(&m, &text, &[tensor(x, &[5]), tensor(y, &[5])]);
    let out = read_f32(&m, y);
    assert_eq!((out[0], out[2], out[3], out[4]), (6.0, 2.0, f32::INFINITY, 2.0));
    assert!(out[1].is_nan());
}

#[test]
fn casts_round_and_saturate() {
    let m = Memory::new();
    let x = f32s(&m, &[1.5, -1.5, 1e10, f32::NAN]);
    let (i, h) = (i32s(&m, &[0; 4]), m.alloc(vec![0; 8]));
    let text = kernel(
        &[("f32", 1), ("i32", 1), ("f16", 1)],
        r#"  v10 = view_load v0, v9 : tile[f32, 4]
  v11 = cast v10 : tile[i32, 4]
  view_store v1, v9, v11
  v12 = cast v10 : tile[f16, 4]
  view_store v2, v9, v12"#,
    );
    one(&m, &text, &[tensor(x, &[4]), tensor(i, &[4]), tensor(h, &[4])]);
    assert_eq!(read_i32(&m, i), [1, -1, i32::MAX, 0]);
    let h = read(&m, h, DType::F16).to_f64().unwrap();
    assert!(h[..3] == [1.5, -1.5, f64::INFINITY] && h[3].is_nan());
}

#[test]
fn consecutive_integers_are_the_same_in_every_form() {
    // Each operation on `arange` gives what it gives on the same numbers from memory, wrapping included.
    let ops: Vec<String> = [
        "v13 = add v10, v12 : tile[i32, 6]",
        "v13 = add v12, v10 : tile[i32, 6]",
        "v13 = sub v10, v12 : tile[i32, 6]",
        "v13 = sub v12, v10 : tile[i32, 6]",
        "v13 = mul v10, v12 : tile[i32, 6]",
        "v13 = add v10, v10 : tile[i32, 6]",
        "v20 = cast v10 : tile[u8, 6]\n  v13 = cast v20 : tile[i32, 6]",
        "v20 = cast v10 : tile[u64, 6]\n  v13 = cast v20 : tile[i32, 6]",
        "v20 = cast v10 : tile[i64, 6]\n  v13 = cast v20 : tile[i32, 6]",
        "v20 = cast v10 : tile[f32, 6]\n  v13 = cast v20 : tile[i32, 6]",
        "v13 = flip v10 {axis = 0} : tile[i32, 6]",
        "v20 = reshape v10 : tile[i32, 2, 3]\n  v21 = permute v20 {perm = [1, 0]} : tile[i32, 3, 2]\n  v13 = reshape v21 : tile[i32, 6]",
        "v20 = max v10 {axis = 0} : i32\n  v13 = splat v20 : tile[i32, 6]",
        "v13 = map v10 : tile[i32, 6] {\n block1(v20: i32):\n  v21 = add v20, v20 : i32\n  yield v21\n }",
    ]
    .map(String::from)
    .into_iter()
    .chain(["lt", "le", "gt", "ge", "eq", "ne"].iter().flat_map(|op| {
        let select = "v13 = select v20, v10, v12 : tile[i32, 6]";
        [("v10", "v12"), ("v12", "v10")].map(|(a, b)| format!("v20 = {op} {a}, {b} : tile[bool, 6]\n  {select}"))
    }))
    .collect();
    for op in &ops {
        for start in [0, -3, 250, i32::MAX - 5, i32::MIN] {
            for by in [0, 1, -3, 3, 252, i32::MAX, i32::MAX - 2, i32::MIN] {
                let m = Memory::new();
                let x = i32s(&m, &(0..6).map(|i| start + i).collect::<Vec<_>>());
                let outs = ["arange {start = START}", "view_load v0, v9"].map(|source| {
                    let out = i32s(&m, &[0; 6]);
                    let source = source.replace("START", &start.to_string());
                    let body = format!(
                        "  v10 = {source} : tile[i32, 6]\n  v12 = const {{value = {by} : i32}} : tile[i32, 6]\n  {op}\n  \
                         view_store v1, v9, v13"
                    );
                    one(&m, &kernel(&[("i32", 1), ("i32", 1)], &body), &[tensor(x, &[6]), tensor(out, &[6])]);
                    read_i32(&m, out)
                });
                assert_eq!(outs[0], outs[1], "{op} {start} {by}");
            }
        }
    }
}

#[test]
fn rearrangements() {
    let m = Memory::new();
    let x = i32s(&m, &(0..24).collect::<Vec<_>>());
    let out = i32s(&m, &[0; 24]);
    let check = |op: &str, shape: &str, expected: &[i32]| {
        let n = expected.len();
        let body = format!(
            "  v10 = view_load v0, v9, v9, v9 : tile[i32, 2, 3, 4]\n  {op} : tile[i32, {shape}]\n  \
             v12 = reshape v11 : tile[i32, {n}]\n  view_store v1, v9, v12"
        );
        one(&m, &kernel(&[("i32", 3), ("i32", 1)], &body), &[tensor(x, &[2, 3, 4]), tensor(out, &[24])]);
        assert_eq!(read_i32(&m, out)[..n], *expected, "{op}");
    };
    let all = |f: &dyn Fn(i32, i32, i32) -> i32, [a, b, c]: [i32; 3]| -> Vec<i32> {
        let of = |i: i32| f(i / (b * c), i / c % b, i % c);
        (0..a * b * c).map(of).collect()
    };
    let x = |i: i32, j: i32, k: i32| i * 12 + j * 4 + k;
    check("v11 = permute v10 {perm = [2, 0, 1]}", "4, 2, 3", &all(&|a, b, c| x(b, c, a), [4, 2, 3]));
    check("v11 = flip v10 {axis = 1}", "2, 3, 4", &all(&|a, b, c| x(a, 2 - b, c), [2, 3, 4]));
    check("v11 = slice v10 {starts = [1, 0, 2]}", "1, 2, 2", &all(&|a, b, c| x(a + 1, b, c + 2), [1, 2, 2]));
    check("v11 = reshape v10", "6, 4", &all(&x, [2, 3, 4]));
}

#[test]
fn pairs_of_tiles() {
    let m = Memory::new();
    let (x, y) = (i32s(&m, &[1, 2, 3]), i32s(&m, &[10, 20, 30]));
    let out = i32s(&m, &[0; 24]);
    let text = kernel(
        &[("i32", 1), ("i32", 1), ("i32", 2)],
        r#"  v10 = view_load v0, v9 : tile[i32, 3]
  v11 = view_load v1, v9 : tile[i32, 3]
  v12 = join v10, v11 : tile[i32, 3, 2]
  v13 = reshape v12 : tile[i32, 1, 6]
  view_store v2, v9, v9, v13
  v14, v15 = split v12 : tile[i32, 3], tile[i32, 3]
  v16 = const {value = 7 : i32} : tile[i32, 3]
  v17 = interleave v15, v16 : tile[i32, 6]
  v18 = reshape v17 : tile[i32, 1, 6]
  v19 = const {value = 1 : i32} : i32
  view_store v2, v19, v9, v18
  v20 = reshape v14 : tile[i32, 1, 3]
  v21 = reshape v16 : tile[i32, 1, 3]
  v22 = cat v20, v21 {axis = 1} : tile[i32, 1, 6]
  v23 = const {value = 2 : i32} : i32
  view_store v2, v23, v9, v22
  v24 = slice v10 {starts = [1]} : tile[i32, 1]
  v25 = cat v24, v11, v24, v24 {axis = 0} : tile[i32, 6]
  v26 = reshape v25 : tile[i32, 1, 6]
  v27 = const {value = 3 : i32} : i32
  view_store v2, v27, v9, v26"#,
    );
    one(&m, &text, &[tensor(x, &[3]), tensor(y, &[3]), tensor(out, &[4, 6])]);
    let rows = [[1, 10, 2, 20, 3, 30], [10, 7, 20, 7, 30, 7], [1, 2, 3, 7, 7, 7], [2, 10, 20, 30, 2, 2]];
    assert_eq!(read_i32(&m, out), rows.concat());
}

#[test]
fn pointers_are_rearranged_too() {
    let m = Memory::new();
    let (x, y) = (i32s(&m, &[1, 2, 3, 4]), i32s(&m, &[10, 20, 30, 40]));
    let out = i32s(&m, &[0; 8]);
    let text = r#"kernel @k(v0 "x": *i32, v1 "y": *i32, v2 "out": *mut i32) {
  v3 = arange {start = 0} : tile[i32, 4]
  v4 = splat v0 : tile[*i32, 4]
  v5 = ptr_add v4, v3 : tile[*i32, 4]
  v6 = splat v1 : tile[*i32, 4]
  v7 = ptr_add v6, v3 : tile[*i32, 4]
  v8 = flip v5 {axis = 0} : tile[*i32, 4]
  v9 = cat v8, v7 {axis = 0} : tile[*i32, 8]
  v10 = reshape v9 : tile[*i32, 2, 4]
  v11 = permute v10 {perm = [1, 0]} : tile[*i32, 4, 2]
  v12 = load v11 : tile[i32, 4, 2]
  v13 = reshape v12 : tile[i32, 8]
  v14 = arange {start = 0} : tile[i32, 8]
  v15 = splat v2 : tile[*mut i32, 8]
  v16 = ptr_add v15, v14 : tile[*mut i32, 8]
  store v16, v13
  return
}"#;
    one(&m, text, &[ptr(x), ptr(y), ptr(out)]);
    assert_eq!(read_i32(&m, out), [4, 10, 3, 20, 2, 30, 1, 40]);
}

#[test]
fn reductions_along_each_axis() {
    let m = Memory::new();
    let values: Vec<f32> = (0..30).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
    let x = f32s(&m, &values);
    let at = |i: usize, j: usize, k: usize| values[(i * 3 + j) * 5 + k];
    let out = f32s(&m, &[0.0; 15]);
    for (axis, shape, n) in [(0, "3, 5", 15), (1, "2, 5", 10), (2, "2, 3", 6)] {
        for op in ["sum", "max", "min", "prod"] {
            let body = format!(
                "  v10 = view_load v0, v9, v9, v9 : tile[f32, 2, 3, 5]\n  v11 = {op} v10 {{axis = {axis}}} : tile[f32, {shape}]\n  \
                 v12 = reshape v11 : tile[f32, {n}]\n  view_store v1, v9, v12"
            );
            one(&m, &kernel(&[("f32", 3), ("f32", 1)], &body), &[tensor(x, &[2, 3, 5]), tensor(out, &[15])]);
            let line = |o: usize| -> Vec<f32> {
                match axis {
                    0 => (0..2).map(|i| at(i, o / 5, o % 5)).collect(),
                    1 => (0..3).map(|j| at(o / 5, j, o % 5)).collect(),
                    _ => (0..5).map(|k| at(o / 3, o % 3, k)).collect(),
                }
            };
            let fold = |o: usize| {
                let line = line(o).into_iter();
                match op {
                    "sum" => line.sum(),
                    "prod" => line.product(),
                    "max" => line.fold(f32::NEG_INFINITY, f32::max),
                    _ => line.fold(f32::INFINITY, f32::min),
                }
            };
            let expected: Vec<f32> = (0..n).map(fold).collect();
            assert_eq!(read_f32(&m, out)[..n], expected, "{op} {axis}");
        }
    }
}

#[test]
fn reductions_of_nan_bool_and_uniform_tiles() {
    let m = Memory::new();
    let x = f32s(&m, &[1.0, f32::NAN, 3.0]);
    let (f, i) = (f32s(&m, &[0.0; 2]), i32s(&m, &[0; 6]));
    let text = kernel(
        &[("f32", 1), ("f32", 1), ("i32", 1)],
        r#"  v10 = view_load v0, v9 : tile[f32, 3]
  v11 = max v10 {axis = 0} : f32
  view_store v1, v9, v11
  v12 = argmax v10 {axis = 0} : i32
  view_store v2, v9, v12
  v13 = const {value = true : bool} : tile[bool, 100]
  v14 = sum v13 {axis = 0} : i32
  v15 = const {value = 1 : i32} : i32
  view_store v2, v15, v14
  v16 = all v13 {axis = 0} : bool
  v17 = cast v16 : i32
  v18 = const {value = 2 : i32} : i32
  view_store v2, v18, v17
  v19 = const {value = 6.5 : f32} : tile[f32, 4, 3]
  v20 = min v19 {axis = 0} : tile[f32, 3]
  v21 = sum v20 {axis = 0} : f32
  view_store v1, v15, v21
  v22 = argmin v19 {axis = 1} : tile[i32, 4]
  v23 = sum v22 {axis = 0} : i32
  v24 = const {value = 3 : i32} : i32
  view_store v2, v24, v23
  v25 = const {value = 5 : i32} : tile[i32, 7]
  v26 = xor_sum v25 {axis = 0} : i32
  v27 = const {value = 4 : i32} : i32
  view_store v2, v27, v26"#,
    );
    one(&m, &text, &[tensor(x, &[3]), tensor(f, &[2]), tensor(i, &[6])]);
    assert!(read_f32(&m, f)[0].is_nan());
    assert_eq!(read_f32(&m, f)[1], 19.5);
    assert_eq!(read_i32(&m, i)[..5], [1, 100, 1, 0, 5]);
}

/// out = dot(a, b, acc) of extents m, n, k.
fn dot(memory: &Memory, [m, n, k]: [usize; 3], a: &Buf, b: &Buf, acc: &Buf) -> Buf {
    let (ta, tb, tc) = (a.dtype(), b.dtype(), acc.dtype());
    let text = kernel(
        &[(ta.name(), 2), (tb.name(), 2), (tc.name(), 2)],
        &format!(
            r#"  v10 = view_load v0, v9, v9 : tile[{ta}, {m}, {k}]
  v11 = view_load v1, v9, v9 : tile[{tb}, {k}, {n}]
  v12 = view_load v2, v9, v9 : tile[{tc}, {m}, {n}]
  v13 = dot v10, v11, v12 : tile[{tc}, {m}, {n}]
  view_store v2, v9, v9, v13"#
        ),
    );
    let ids = [a, b, acc].map(|x| alloc(memory, x.clone()));
    let [m, n, k] = [m as i64, n as i64, k as i64];
    let args: [Arg; 3] = [tensor(ids[0], &[m, k]), tensor(ids[1], &[k, n]), tensor(ids[2], &[m, n])];
    one(memory, &text, &args);
    read(memory, ids[2], tc)
}

/// `count` small numbers of a type: exact in all of them, and so are sums of their products.
fn numbers(dtype: DType, count: usize, seed: usize) -> Buf {
    let v = |i: usize| {
        ((i * 31 + seed * 17) % 9) as i128 - if dtype.is_int() && !dtype.is_signed() { 0 } else { 4 }
    };
    let mut out = Buf::zeros(dtype, count);
    (0..count).for_each(|i| out.set(i, tk_ops::Scalar::int(dtype, v(i))));
    out
}

fn value(b: &Buf, i: usize) -> f64 {
    let s = b.get(i);
    s.as_f64().unwrap_or_else(|| s.as_int().unwrap() as f64)
}

#[test]
fn dot_of_every_type_is_exact_where_it_can_be() {
    use DType::*;
    let combos = [
        (F32, F32, F32),
        (F64, F64, F64),
        (F16, F16, F32),
        (F16, F16, F16),
        (BF16, BF16, F32),
        (BF16, BF16, BF16),
        (F32, F32, F64),
        (F16, F16, F64),
        (F8E4M3, F8E4M3, F32),
        (F8E5M2, F8E4M3, F32),
        (F8E5M2, F8E5M2, F16),
        (I8, I8, I32),
        (U8, U8, I32),
        (I8, I8, I64),
        (I32, I32, I32),
        (I64, I64, I64),
        (U8, U8, U32),
        (I16, I16, I16),
    ];
    for (ta, tb, tc) in combos {
        for [m, n, k] in [[1, 1, 1], [3, 5, 7], [16, 16, 16], [33, 17, 9], [1, 40, 3], [40, 1, 3], [5, 4, 1]]
        {
            let (a, b) = (numbers(ta, m * k, 1), numbers(tb, k * n, 2));
            // bf16 and f16 hold the result exactly as long as it is small.
            let acc = if tc == BF16 { Buf::zeros(tc, m * n) } else { numbers(tc, m * n, 3) };
            let out = dot(&Memory::new(), [m, n, k], &a, &b, &acc);
            for i in 0..m * n {
                let products = (0..k).map(|l| value(&a, i / n * k + l) * value(&b, l * n + i % n));
                let expected = value(&acc, i) + products.sum::<f64>();
                let expected = tk_ops::Scalar::float(tc, expected);
                assert_eq!(out.get(i), expected, "{ta} {tb} {tc} [{m}, {n}, {k}] at {i}");
            }
        }
    }
}

#[test]
fn dot_of_random_numbers_is_close_to_f64() {
    let [m, n, k] = [70, 50, 130];
    let random = |count: usize, seed: u64| tk_ops::philox::randn(seed, count);
    for tc in [DType::F32, DType::F64] {
        let (a, b) = (Buf::from_f64(tc, &random(m * k, 1)), Buf::from_f64(tc, &random(k * n, 2)));
        let acc = Buf::from_f64(tc, &random(m * n, 3));
        let out = dot(&Memory::new(), [m, n, k], &a, &b, &acc);
        let bound = if tc == DType::F32 { 1e-4 } else { 1e-12 };
        for i in 0..m * n {
            let sum: f64 = (0..k).map(|l| value(&a, i / n * k + l) * value(&b, l * n + i % n)).sum();
            let expected = sum + value(&acc, i);
            assert!((value(&out, i) - expected).abs() < bound, "{tc} at {i}");
        }
    }
}

#[test]
fn dot_lets_nan_and_infinity_through() {
    // A zero times infinity is NaN, in every column that it reaches; also for one row, one column and one product.
    for [m, n, k] in [[4, 6, 8], [1, 6, 8], [4, 1, 8], [4, 6, 1], [64, 64, 64]] {
        let (mut a, mut b) = (vec![0.0f32; m * k], vec![1.0f32; k * n]);
        b[0] = f32::INFINITY;
        a[(m - 1) * k] = if m > 1 { 2.0 } else { 0.0 };
        let acc = Buf::F32(vec![1.0; m * n]);
        let out = dot(&Memory::new(), [m, n, k], &Buf::F32(a), &Buf::F32(b), &acc);
        let out = out.as_f32().unwrap();
        assert!(out[0].is_nan(), "[{m}, {n}, {k}]");
        if m > 1 {
            assert_eq!(out[(m - 1) * n], f32::INFINITY);
        }
        if n > 1 {
            assert_eq!(out[1], 1.0);
        }
        let acc = Buf::F32(vec![f32::NAN; m * n]);
        let zeros = dot(
            &Memory::new(),
            [m, n, k],
            &Buf::zeros(DType::F32, m * k),
            &Buf::zeros(DType::F32, k * n),
            &acc,
        );
        assert!(zeros.as_f32().unwrap().iter().all(|x| x.is_nan()));
    }
}

#[test]
fn integer_dot_wraps() {
    let max = Buf::splat(tk_ops::Scalar::int(DType::I32, i128::from(i32::MAX)), 4);
    let out = dot(&Memory::new(), [2, 2, 2], &max, &max, &max);
    let product = i32::MAX.wrapping_mul(i32::MAX);
    let expected = i32::MAX.wrapping_add(product).wrapping_add(product);
    assert_eq!(out.to_i64().unwrap(), [i64::from(expected); 4]);
}

#[test]
fn accumulators_that_others_hold_are_not_changed() {
    let m = Memory::new();
    let x = f32s(&m, &[1.0, 2.0, 3.0, 4.0]);
    let out = f32s(&m, &[0.0; 8]);
    let text = kernel(
        &[("f32", 2), ("f32", 2)],
        r#"  v10 = view_load v0, v9, v9 : tile[f32, 2, 2]
  v11 = dot v10, v10, v10 : tile[f32, 2, 2]
  v12 = dot v10, v11, v11 : tile[f32, 2, 2]
  v13 = cat v12, v10 {axis = 0} : tile[f32, 4, 2]
  view_store v1, v9, v9, v13"#,
    );
    one(&m, &text, &[tensor(x, &[2, 2]), tensor(out, &[4, 2])]);
    // x x + x = [[8, 12], [18, 26]], called y; then x y + y.
    let expected = [44.0 + 8.0, 64.0 + 12.0, 96.0 + 18.0, 140.0 + 26.0, 1.0, 2.0, 3.0, 4.0];
    assert_eq!(bits(&read_f32(&m, out)), bits(&expected));
}
