//! Reductions against naive ones, their types and their order.

use crate::common::Numbers;
use half::{bf16, f16};
use tk_ops::eval::{EvalError, reduce};
use tk_ops::{Buf, DType, ReduceOp as R, Scalar};

#[test]
fn sums_of_floats_are_close_in_every_shape() {
    let mut numbers = Numbers(8);
    for (outer, len, inner) in
        [(1, 1, 1), (3, 7, 1), (2, 16, 1), (2, 1000, 1), (1, 100_003, 1), (2, 5, 3), (2, 333, 4)]
    {
        let x: Vec<f32> =
            (0..outer * len * inner).map(|_| (numbers.next() >> 40) as f32 / 16_777_216.0 - 0.25).collect();
        let sums = reduce(R::Sum, &Buf::F32(x.clone()), outer, len, inner).unwrap();
        for o in 0..outer {
            for i in 0..inner {
                let exact: f64 = (0..len).map(|l| f64::from(x[(o * len + l) * inner + i])).sum();
                let size: f64 = (0..len).map(|l| f64::from(x[(o * len + l) * inner + i].abs())).sum();
                let found = sums.get(o * inner + i).as_f64().unwrap();
                let bound = size * f64::from(f32::EPSILON) * (1.0 + (len as f64).log2());
                assert!((found - exact).abs() <= bound, "[{outer}, {len}, {inner}]: {found} is not {exact}");
            }
        }
    }
}

#[test]
fn exact_reductions_in_every_shape() {
    let mut numbers = Numbers(9);
    for (outer, len, inner) in [(3, 1, 1), (2, 40, 1), (1, 2000, 1), (2, 3, 5), (3, 100, 2)] {
        let x: Vec<i64> = (0..outer * len * inner).map(|_| numbers.next() as i64 % 1000).collect();
        let line = |o: usize, i: usize| (0..len).map(|l| x[(o * len + l) * inner + i]).collect::<Vec<i64>>();
        let of = |op| reduce(op, &Buf::I64(x.clone()), outer, len, inner).unwrap().to_i64().unwrap();
        let check = |op, f: fn(&[i64]) -> i64| {
            let expected: Vec<i64> = (0..outer)
                .flat_map(|o| (0..inner).map(move |i| (o, i)))
                .map(|(o, i)| f(&line(o, i)))
                .collect();
            assert_eq!(of(op), expected, "{op:?} of [{outer}, {len}, {inner}]");
        };
        check(R::Sum, |v| v.iter().sum());
        check(R::Prod, |v| v.iter().fold(1, |a, b| a.wrapping_mul(*b)));
        check(R::Max, |v| *v.iter().max().unwrap());
        check(R::Min, |v| *v.iter().min().unwrap());
        check(R::XorSum, |v| v.iter().fold(0, |a, b| a ^ b));
        check(R::Or, |v| v.iter().fold(0, |a, b| a | b));
        check(R::ArgMax, |v| v.iter().position(|x| Some(x) == v.iter().max()).unwrap() as i64);
        check(R::ArgMin, |v| v.iter().position(|x| Some(x) == v.iter().min()).unwrap() as i64);
    }
}

#[test]
fn narrow_integers_and_bool_widen() {
    let all = |op, x: Buf| {
        let n = x.len();
        reduce(op, &x, 1, n, 1).unwrap().get(0)
    };
    assert_eq!(all(R::Sum, Buf::I8(vec![100; 4])), Scalar::int(DType::I32, 400));
    assert_eq!(all(R::Sum, Buf::U8(vec![255; 3])), Scalar::int(DType::U32, 765));
    assert_eq!(all(R::Sum, Buf::U16(vec![65_535; 3])), Scalar::int(DType::U32, 196_605));
    assert_eq!(all(R::Prod, Buf::I16(vec![1000; 3])), Scalar::int(DType::I32, 1_000_000_000));
    assert_eq!(all(R::Sum, Buf::Bool(vec![true, false, true])), Scalar::int(DType::I32, 2));
    assert_eq!(all(R::Prod, Buf::Bool(vec![true, false])), Scalar::int(DType::I32, 0));
    assert_eq!(all(R::Max, Buf::I8(vec![-3, 5])), Scalar::int(DType::I8, 5));
    assert_eq!(all(R::XorSum, Buf::U8(vec![3, 6])), Scalar::int(DType::U8, 5));
    assert_eq!(all(R::Sum, Buf::I32(vec![i32::MAX, 1])), Scalar::int(DType::I32, i32::MIN.into()));
    assert_eq!(all(R::ArgMax, Buf::U8(vec![3, 6, 6])), Scalar::int(DType::I32, 1));
    assert_eq!(all(R::Any, Buf::Bool(vec![false, true])), Scalar::bool(true));
    assert_eq!(all(R::All, Buf::Bool(vec![false, true])), Scalar::bool(false));
}

#[test]
fn narrow_floats_accumulate_in_f32() {
    // In f16 the sum would stay at 2048.
    let x = Buf::F16(vec![f16::ONE; 4096]);
    let sum = reduce(R::Sum, &x, 1, 4096, 1).unwrap();
    assert_eq!(sum.get(0), Scalar::float(DType::F16, 4096.0));
    // 300 ones round once, at the end.
    let x = Buf::BF16(vec![bf16::ONE; 301]);
    assert_eq!(reduce(R::Sum, &x, 1, 301, 1).unwrap().get(0), Scalar::float(DType::BF16, 301.0));
    let x = Buf::F16([60000.0f32, 60000.0, -60000.0].map(f16::from_f32).to_vec());
    assert_eq!(reduce(R::Sum, &x, 1, 3, 1).unwrap().get(0), Scalar::float(DType::F16, 60000.0));
}

#[test]
fn nan_and_zeros_follow_the_total_order() {
    let nan = f32::NAN;
    for inner in [1, 2] {
        // Each line is followed by itself when `inner` is 2.
        let line = |v: &[f32]| Buf::F32(v.iter().flat_map(|x| vec![*x; inner]).collect());
        let of = |op, v: &[f32]| reduce(op, &line(v), 1, v.len(), inner).unwrap().get(inner - 1);
        assert!(of(R::Max, &[1.0, nan, 3.0]).as_f64().unwrap().is_nan());
        assert!(of(R::Min, &[1.0, nan, 3.0]).as_f64().unwrap().is_nan());
        assert_eq!(of(R::Max, &[-0.0, 0.0, -0.0]), Scalar::float(DType::F32, 0.0));
        assert_eq!(of(R::Min, &[0.0, -0.0, 0.0]), Scalar::float(DType::F32, -0.0));
        let at = |op, v: &[f32]| of(op, v).as_int().unwrap();
        assert_eq!(at(R::ArgMax, &[1.0, nan, 3.0, nan]), 1);
        assert_eq!(at(R::ArgMin, &[1.0, nan, 3.0, nan]), 1);
        assert_eq!(at(R::ArgMax, &[-0.0, 0.0, 0.0]), 1);
        assert_eq!(at(R::ArgMin, &[0.0, -0.0, -0.0]), 1);
        assert_eq!(at(R::ArgMax, &[2.0, 5.0, 5.0]), 1);
        assert_eq!(at(R::ArgMin, &[2.0, 1.0, 1.0]), 1);
        assert_eq!(at(R::ArgMax, &[f32::NEG_INFINITY; 3]), 0);
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let f = Buf::F32(vec![1.0; 6]);
    assert!(matches!(reduce(R::Sum, &f, 1, 5, 1), Err(EvalError::Length { .. })));
    assert!(matches!(reduce(R::Sum, &Buf::F32(vec![]), 1, 0, 1), Err(EvalError::Length { .. })));
    assert!(matches!(reduce(R::Sum, &f, usize::MAX, usize::MAX, 2), Err(EvalError::Length { .. })));
    assert!(matches!(reduce(R::Any, &f, 1, 6, 1), Err(EvalError::Unsupported { .. })));
    assert!(matches!(reduce(R::XorSum, &f, 1, 6, 1), Err(EvalError::Unsupported { .. })));
    assert!(matches!(reduce(R::Custom, &f, 1, 6, 1), Err(EvalError::Unsupported { .. })));
    let f8 = Buf::F8E4M3(vec![1, 2]);
    assert!(matches!(reduce(R::Sum, &f8, 1, 2, 1), Err(EvalError::Unsupported { .. })));
    // No rows at all are no results.
    assert!(reduce(R::Sum, &Buf::F32(vec![]), 0, 4, 1).unwrap().is_empty());
}
