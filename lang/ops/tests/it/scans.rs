//! Running folds, sorting, counting, picking and random numbers against naive ones.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use std::cmp::Ordering;

use crate::common::Numbers;
use half::f16;
use tk_ops::eval::{EvalError, Lines, gather, histogram, random, scan, sort, topk};
use tk_ops::{Buf, DType, RandomOp, ScanOp};

const SHAPES: [(usize, usize, usize); 6] =
    [(1, 1, 1), (3, 7, 1), (2, 32, 3), (1, 33, 1), (2, 100, 2), (1, 1000, 1)];

fn lines((outer, len, inner): (usize, usize, usize)) -> Lines {
    Lines { outer, len, inner }
}

fn line(len: usize) -> Lines {
    lines((1, len, 1))
}

/// Applies `f` to each line of `v`, which may change its length.
fn each<T: Copy + Default>(v: &[T], l: Lines, f: impl Fn(Vec<T>) -> Vec<T>) -> Vec<T> {
    let mut rows = vec![];
    for o in 0..l.outer {
        for i in 0..l.inner {
            rows.push(f((0..l.len).map(|k| v[(o * l.len + k) * l.inner + i]).collect()));
        }
    }
    let mut out = vec![];
    for block in rows.chunks(l.inner) {
        for k in 0..block[0].len() {
            out.extend(block.iter().map(|row| row[k]));
        }
    }
    out
}

/// The order of sorting, by comparisons: -0 before +0, NaN after everything.
fn compare(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.partial_cmp(&b).unwrap().then(b.is_sign_negative().cmp(&a.is_sign_negative())),
    }
}

/// Insertion from the left keeps equal elements in order.
fn insertion_sort<T: Copy>(v: &[T], less: impl Fn(T, T) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = vec![];
    for i in 0..v.len() {
        let at = order.iter().position(|j| less(v[i], v[*j])).unwrap_or(order.len());
        order.insert(at, i);
    }
    order
}

/// Few different values, so that many are equal.
fn awkward(numbers: &mut Numbers, n: usize) -> Vec<f32> {
    let values = [0.0, -0.0, 1.0, -1.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-42, -3.5];
    (0..n).map(|_| values[numbers.next() as usize % values.len()]).collect()
}

#[test]
fn running_sums_and_products_of_integers_are_exact() {
    let mut numbers = Numbers(21);
    for shape in SHAPES {
        let l = lines(shape);
        let x: Vec<i32> = (0..l.count()).map(|_| numbers.next() as i32).collect();
        let naive = |f: fn(i32, i32) -> i32, reverse: bool| {
            each(&x, l, |mut row| {
                let places: Vec<usize> =
                    if reverse { (0..row.len()).rev().collect() } else { (0..row.len()).collect() };
                for pair in places.windows(2) {
                    row[pair[1]] = f(row[pair[0]], row[pair[1]]);
                }
                row
            })
        };
        for reverse in [false, true] {
            for (op, f) in [
                (ScanOp::CumSum, i32::wrapping_add as fn(i32, i32) -> i32),
                (ScanOp::CumProd, i32::wrapping_mul),
            ] {
                let found = scan(op, &Buf::I32(x.clone()), l, reverse).unwrap();
                assert!(found.same_bits(&Buf::I32(naive(f, reverse))), "{op:?} {shape:?} {reverse}");
            }
        }
    }
}

#[test]
fn running_sums_of_floats_are_close() {
    let mut numbers = Numbers(22);
    let x: Vec<f32> = (0..5000).map(|_| (numbers.next() >> 40) as f32 / 16_777_216.0).collect();
    let found = scan(ScanOp::CumSum, &Buf::F32(x.clone()), line(5000), false).unwrap();
    let mut exact = 0.0;
    for (i, x) in x.iter().enumerate() {
        exact += f64::from(*x);
        let error = (found.get(i).as_f64().unwrap() - exact).abs();
        assert!(error <= exact * f64::from(f32::EPSILON) * 16.0, "{i}: off by {error}");
    }
    // In f16 itself the sum would stay at 2048.
    let ones = Buf::F16(vec![f16::ONE; 3000]);
    assert_eq!(scan(ScanOp::CumSum, &ones, line(3000), false).unwrap().get(2999).as_f64(), Some(3000.0));
    let small = Buf::U8(vec![200, 100, 1]);
    assert!(scan(ScanOp::CumSum, &small, line(3), false).unwrap().same_bits(&Buf::U8(vec![200, 44, 45])));
}

#[test]
fn nan_stays_behind_its_place() {
    let x = Buf::F32(vec![1.0, f32::NAN, 2.0]);
    let v = scan(ScanOp::CumSum, &x, line(3), false).unwrap().to_f64().unwrap();
    assert!(v[0] == 1.0 && v[1].is_nan() && v[2].is_nan());
    let v = scan(ScanOp::CumProd, &x, line(3), true).unwrap().to_f64().unwrap();
    assert!(v[2] == 2.0 && v[1].is_nan() && v[0].is_nan());
}

#[test]
fn sorting_is_stable_in_every_size() {
    let mut numbers = Numbers(23);
    for n in 1..=100 {
        let x = awkward(&mut numbers, n);
        let keys = Buf::F32(x.clone());
        let up = insertion_sort(&x, |a, b| compare(a.into(), b.into()).is_lt());
        assert_eq!(sort(&keys, line(n), false).unwrap(), up, "{x:?}");
        let down = insertion_sort(&x, |a, b| match (a.is_nan(), b.is_nan()) {
            (false, false) => compare(a.into(), b.into()).is_gt(),
            (a, b) => !a && b,
        });
        assert_eq!(sort(&keys, line(n), true).unwrap(), down, "{x:?}");
    }
}

#[test]
fn sorting_goes_along_any_dimension() {
    let mut numbers = Numbers(24);
    for shape in SHAPES {
        let l = lines(shape);
        let x: Vec<i64> = (0..l.count()).map(|_| numbers.next() as i64 % 10).collect();
        let keys = Buf::I64(x.clone());
        let found = keys.gather(&sort(&keys, l, false).unwrap());
        let expected =
            each(&x, l, |row| insertion_sort(&row, |a, b| a < b).iter().map(|i| row[*i]).collect());
        assert!(found.same_bits(&Buf::I64(expected)), "{shape:?}");
    }
}

#[test]
fn every_type_sorts_by_its_values() {
    let mut numbers = Numbers(25);
    for dtype in DType::ALL {
        let bytes: Vec<u8> = (0..64 * dtype.bytes()).map(|_| numbers.next() as u8).collect();
        let bytes = if dtype == DType::Bool { bytes.iter().map(|b| b & 1).collect() } else { bytes };
        let keys = Buf::from_le_bytes(dtype, &bytes).unwrap();
        let places = sort(&keys, line(keys.len()), false);
        if matches!(dtype, DType::E2M1 | DType::E8M0) {
            assert_eq!(places, Err(EvalError::Unsupported { op: "sort", dtype }));
            continue;
        }
        let found = keys.gather(&places.unwrap());
        for i in 1..found.len() {
            let (a, b) = (found.get(i - 1), found.get(i));
            let ordered = match (a.as_int(), b.as_int(), a.as_f64(), b.as_f64()) {
                (Some(a), Some(b), ..) => a <= b,
                (_, _, Some(a), Some(b)) => compare(a, b).is_le(),
                _bool => a.as_bool() <= b.as_bool(),
            };
            assert!(ordered, "{dtype}: {a} before {b}");
        }
    }
}

#[test]
fn the_largest_few_in_every_size() {
    let mut numbers = Numbers(26);
    for n in 1..=100 {
        let x = awkward(&mut numbers, n);
        let k = 1 + numbers.next() as usize % n;
        let (places, positions) = topk(&Buf::F32(x.clone()), line(n), k).unwrap();
        let expected = insertion_sort(&x, |a, b| compare(a.into(), b.into()).is_gt());
        assert_eq!(places, expected[..k], "{x:?}");
        assert!(positions.iter().map(|p| *p as usize).eq(expected[..k].iter().copied()));
    }
    let l = lines((2, 3, 2));
    let x: Vec<i32> = vec![5, 0, 7, -2, 6, 9, 1, 1, 1, 2, 1, 3];
    let (places, positions) = topk(&Buf::I32(x.clone()), l, 2).unwrap();
    assert!(Buf::I32(x).gather(&places).same_bits(&Buf::I32(vec![7, 9, 6, 0, 1, 3, 1, 2])));
    assert_eq!(positions, [1, 2, 2, 0, 0, 2, 1, 1]);
    let too_many = topk(&Buf::I32(vec![1, 2]), line(2), 3);
    assert_eq!(too_many, Err(EvalError::Length { op: "topk", expected: 3, found: 2 }));
}

#[test]
fn counting_ignores_what_is_outside_or_masked() {
    let x = Buf::I8(vec![0, 3, -1, 3, 4, 127, 1]);
    assert_eq!(histogram(&x, None, 4).unwrap(), [1, 1, 0, 2]);
    let mask = [true, false, true, true, true, true, false];
    assert_eq!(histogram(&x, Some(&mask), 4).unwrap(), [1, 0, 0, 1]);
    assert_eq!(histogram(&Buf::U64(vec![u64::MAX, 1]), None, 2).unwrap(), [0, 1]);
    assert!(histogram(&x, Some(&[true]), 4).is_err());
    assert!(histogram(&Buf::F32(vec![1.0]), None, 4).is_err());
}

#[test]
fn picking_along_every_dimension() {
    // [2, 3, 2] read at [2, 4, 2].
    let l = lines((2, 3, 2));
    let index: Vec<u8> = (0..16).map(|i| (i * 5 % 3) as u8).collect();
    let naive: Vec<usize> = (0..16).map(|p| (p / 8 * 3 + usize::from(index[p])) * 2 + p % 2).collect();
    assert_eq!(gather(&Buf::U8(index), l).unwrap(), naive);
    // Outside: the nearest inside.
    assert_eq!(gather(&Buf::I32(vec![-1, i32::MIN, 3, 2]), line(3)).unwrap(), [0, 0, 2, 2]);
    assert!(gather(&Buf::I32(vec![0; 3]), l).is_err());
}

#[test]
fn random_numbers_are_made_of_the_published_words() {
    // Key 0, counter 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
    let words = [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    let at = |op, seed, offset: Buf| random(op, seed, &offset).unwrap();
    assert!(at(RandomOp::RandInt, 0, Buf::I32(vec![0]))[0].same_bits(&Buf::U32(vec![words[0]])));
    let four = at(RandomOp::Rand4, 0, Buf::U32(vec![0]));
    for (x, word) in four.iter().zip(words) {
        assert_eq!(x.get(0).as_f64(), Some(f64::from(word >> 8) / 16_777_216.0));
    }
    assert!(at(RandomOp::Rand, 0, Buf::I32(vec![0]))[0].same_bits(&four[0]));
    let [u, v] = [words[0], words[1]].map(|w| f64::from(w >> 8) / 16_777_216.0);
    let normal = (-2.0 * (u + 2f64.powi(-24)).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
    let found = at(RandomOp::Randn, 0, Buf::I32(vec![0]))[0].get(0).as_f64().unwrap();
    assert!((found - normal).abs() < 1e-6, "{found} {normal}");
    // The bits of an offset count, and both halves of the seed.
    let (minus, large) = (Buf::I32(vec![-1]), Buf::U32(vec![u32::MAX]));
    assert!(at(RandomOp::Rand4, 1, minus)[3].same_bits(&at(RandomOp::Rand4, 1, large)[3]));
    let zero = || Buf::I32(vec![0]);
    assert!(!at(RandomOp::RandInt, 1 << 40, zero())[0].same_bits(&at(RandomOp::RandInt, 0, zero())[0]));
    assert!(random(RandomOp::Rand, 0, &Buf::I64(vec![0])).is_err());
}
