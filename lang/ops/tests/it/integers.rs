//! Integer operations: the narrow types exhaustively against unbounded arithmetic, the wide ones at their edges.
#![allow(clippy::unwrap_used, clippy::panic, reason = "failing is how tests report")]

use crate::common::{Numbers, one, run};
use tk_ops::eval::{EvalError, Operand, elementwise};
use tk_ops::{Buf, DType, ElementwiseOp as E, Scalar};

const INTS: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

/// The meaning in unbounded integers, before the low bits are kept.
fn meaning(op: E, a: i128, b: i128, d: DType) -> i128 {
    let bits = i128::from(d.bits());
    match op {
        E::Add => a + b,
        E::Sub => a - b,
        E::Mul => a.wrapping_mul(b),
        E::Div if b == 0 => 0,
        E::Div => a / b,
        E::Rem if b == 0 => a,
        E::Rem => a % b,
        E::CeilDiv if b == 0 => 0,
        E::CeilDiv => a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0 && b > 0),
        E::And => a & b,
        E::Or => a | b,
        E::Xor => a ^ b,
        E::Shl if b < 0 || b >= bits => 0,
        E::Shl => a << b,
        E::Shr if b < 0 || b >= bits => a >> bits,
        E::Shr => a >> b,
        E::Maximum | E::MaxNum => a.max(b),
        E::Minimum | E::MinNum => a.min(b),
        E::MulHi if d.is_signed() => (a * b) >> bits,
        E::MulHi => ((a as u128 * b as u128) >> bits) as i128,
        other => panic!("{other:?}"),
    }
}

const BINARY: [E; 16] = [
    E::MulHi,
    E::Add,
    E::Sub,
    E::Mul,
    E::Div,
    E::Rem,
    E::CeilDiv,
    E::And,
    E::Or,
    E::Xor,
    E::Shl,
    E::Shr,
    E::Maximum,
    E::Minimum,
    E::MaxNum,
    E::MinNum,
];

fn check(d: DType, pairs: &[(i128, i128)]) {
    let column = |side: fn(&(i128, i128)) -> i128| {
        let scalars: Vec<Scalar> = pairs.iter().map(|p| Scalar::int(d, side(p))).collect();
        Buf::from_scalars(d, &scalars).unwrap()
    };
    let (a, b) = (column(|p| p.0), column(|p| p.1));
    for op in BINARY {
        let out = run(op, &[&a, &b], d).unwrap();
        for (i, (x, y)) in pairs.iter().enumerate() {
            let expected = Scalar::int(d, meaning(op, *x, *y, d));
            assert_eq!(out.get(i), expected, "{op:?}({x}, {y}) of {d}");
        }
    }
    type Question = fn(&i128, &i128) -> bool;
    let comparisons: [(E, Question); 6] = [
        (E::Eq, |a, b| a == b),
        (E::Ne, |a, b| a != b),
        (E::Lt, |a, b| a < b),
        (E::Le, |a, b| a <= b),
        (E::Gt, |a, b| a > b),
        (E::Ge, |a, b| a >= b),
    ];
    for (op, f) in comparisons {
        let out = run(op, &[&a, &b], DType::Bool).unwrap();
        for (i, (x, y)) in pairs.iter().enumerate() {
            assert_eq!(out.get(i).as_bool(), Some(f(x, y)), "{op:?}({x}, {y}) of {d}");
        }
    }
}

#[test]
fn bytes_exhaustively() {
    for d in [DType::I8, DType::U8] {
        let (lo, hi) = d.int_range().unwrap();
        let pairs: Vec<(i128, i128)> = (lo..=hi).flat_map(|a| (lo..=hi).map(move |b| (a, b))).collect();
        check(d, &pairs);
    }
}

#[test]
fn wide_types_at_their_edges() {
    let mut numbers = Numbers(4);
    for d in INTS {
        let (lo, hi) = d.int_range().unwrap();
        let mut values: Vec<i128> = vec![lo, lo + 1, 0, 1, 2, 3, 7, hi / 2, hi / 2 + 1, hi - 1, hi];
        values.extend([31, 32, 33, 63, 64, 65]);
        if d.is_signed() {
            values.extend([-1, -2, -7]);
        }
        values.extend((0..20).map(|_| Scalar::int(d, numbers.next().into()).as_int().unwrap()));
        let pairs: Vec<(i128, i128)> =
            values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
        check(d, &pairs);
    }
}

#[test]
fn functions_of_one() {
    for d in INTS {
        let (lo, hi) = d.int_range().unwrap();
        for v in [lo, lo + 1, 0, 1, 2, 3, 5, 63, 64, 65, 100, hi / 2, hi / 2 + 1, hi / 2 + 2, hi] {
            let x = Scalar::int(d, v);
            let of = |op| one(op, &[x], d);
            assert_eq!(of(E::Neg), Scalar::int(d, -v), "-{v} of {d}");
            assert_eq!(of(E::Abs), Scalar::int(d, v.abs()), "abs({v}) of {d}");
            assert_eq!(of(E::Not), Scalar::int(d, !v), "!{v} of {d}");
            let power = if v <= 1 { 1 } else { (v as u128).next_power_of_two() as i128 };
            assert_eq!(of(E::NextPow2), Scalar::int(d, power), "next_pow2({v}) of {d}");
            let bits = x.bits();
            assert_eq!(one(E::Popcount, &[x], DType::I32), Scalar::int(DType::I32, bits.count_ones().into()));
            let clz = bits.leading_zeros() + d.bits() - 64;
            assert_eq!(one(E::Clz, &[x], DType::I32), Scalar::int(DType::I32, clz.into()));
        }
    }
}

#[test]
fn division_has_a_value_everywhere() {
    let int = |v| Scalar::int(DType::I32, v);
    let min = i128::from(i32::MIN);
    assert_eq!(one(E::Div, &[int(min), int(-1)], DType::I32), int(min));
    assert_eq!(one(E::Rem, &[int(min), int(-1)], DType::I32), int(0));
    assert_eq!(one(E::Div, &[int(5), int(0)], DType::I32), int(0));
    assert_eq!(one(E::Rem, &[int(5), int(0)], DType::I32), int(5));
    assert_eq!(one(E::Div, &[int(-7), int(2)], DType::I32), int(-3));
    assert_eq!(one(E::Rem, &[int(-7), int(2)], DType::I32), int(-1));
    assert_eq!(one(E::CeilDiv, &[int(-7), int(2)], DType::I32), int(-3));
    assert_eq!(one(E::CeilDiv, &[int(-7), int(-2)], DType::I32), int(4));
    assert_eq!(one(E::CeilDiv, &[int(7), int(-2)], DType::I32), int(-3));
}

#[test]
fn shift_amounts_of_another_type() {
    let x = Buf::I32(vec![-8, 3, -8, 3]);
    let amounts = [Buf::I8(vec![1, 4, -1, 40]), Buf::U64(vec![1, 4, u64::MAX, 1 << 40])];
    for by in amounts {
        assert_eq!(run(E::Shl, &[&x, &by], DType::I32).unwrap().to_i64().unwrap(), [-16, 48, 0, 0]);
        assert_eq!(run(E::Shr, &[&x, &by], DType::I32).unwrap().to_i64().unwrap(), [-4, 0, -1, 0]);
    }
    let by = Operand::Splat(Scalar::int(DType::U8, 2));
    let out = elementwise(E::Shl, &[Operand::Buf(&x), by], DType::I32, 4, false).unwrap();
    assert_eq!(out.to_i64().unwrap(), [-32, 12, -32, 12]);
    let big = Operand::Splat(Scalar::int(DType::I64, -5));
    let out = elementwise(E::Shr, &[Operand::Buf(&x), big], DType::I32, 4, false).unwrap();
    assert_eq!(out.to_i64().unwrap(), [-1, 0, -1, 0]);
}

#[test]
fn bools() {
    let a = Buf::Bool(vec![false, false, true, true]);
    let b = Buf::Bool(vec![false, true, false, true]);
    let of = |op| run(op, &[&a, &b], DType::Bool).unwrap().as_bool().unwrap().to_vec();
    assert_eq!(of(E::And), [false, false, false, true]);
    assert_eq!(of(E::Or), [false, true, true, true]);
    assert_eq!(of(E::Xor), [false, true, true, false]);
    assert_eq!(of(E::Eq), [true, false, false, true]);
    assert_eq!(of(E::Ne), [false, true, true, false]);
    assert_eq!(run(E::Not, &[&a], DType::Bool).unwrap().as_bool().unwrap(), [true, true, false, false]);
    assert!(run(E::Add, &[&a, &b], DType::Bool).is_err());
    assert!(run(E::Lt, &[&a, &b], DType::Bool).is_err());
}

#[test]
fn select_and_clamp_with_repeated_values() {
    let c = Buf::Bool(vec![true, false, true]);
    let a = Buf::I32(vec![1, 2, 3]);
    let s = |v| Operand::Splat(Scalar::int(DType::I32, v));
    let of = |a, b| elementwise(E::Select, &[Operand::Buf(&c), a, b], DType::I32, 3, false).unwrap();
    assert_eq!(of(Operand::Buf(&a), s(0)).to_i64().unwrap(), [1, 0, 3]);
    assert_eq!(of(s(9), Operand::Buf(&a)).to_i64().unwrap(), [9, 2, 9]);
    assert_eq!(of(s(9), s(8)).to_i64().unwrap(), [9, 8, 9]);
    assert_eq!(of(Operand::Buf(&a), Operand::Buf(&a)).to_i64().unwrap(), [1, 2, 3]);
    let yes = Operand::Splat(Scalar::bool(true));
    let out = elementwise(E::Select, &[yes, s(4), Operand::Buf(&a)], DType::I32, 3, false).unwrap();
    assert_eq!(out.to_i64().unwrap(), [4, 4, 4]);
    let x = Buf::I32(vec![-5, 1, 9]);
    let out = elementwise(E::Clamp, &[Operand::Buf(&x), s(0), s(3)], DType::I32, 3, false).unwrap();
    assert_eq!(out.to_i64().unwrap(), [0, 1, 3]);
    let lo = Buf::I32(vec![0, 2, 0]);
    let out =
        elementwise(E::Clamp, &[Operand::Buf(&x), Operand::Buf(&lo), s(3)], DType::I32, 3, false).unwrap();
    assert_eq!(out.to_i64().unwrap(), [0, 2, 3]);
}

#[test]
fn wrong_operands_are_errors() {
    let i = Buf::I32(vec![1, 2]);
    let f = Buf::F32(vec![1.0, 2.0]);
    let short = Buf::I32(vec![1]);
    assert!(matches!(
        run(E::Add, &[&i], DType::I32),
        Err(EvalError::OperandCount { expected: 2, found: 1, .. })
    ));
    assert!(matches!(run(E::Add, &[&i, &f], DType::I32), Err(EvalError::Mismatch { .. })));
    assert!(matches!(run(E::Add, &[&i, &i], DType::I64), Err(EvalError::Mismatch { .. })));
    assert!(matches!(
        run(E::Add, &[&i, &short], DType::I32),
        Err(EvalError::Length { expected: 2, found: 1, .. })
    ));
    assert!(matches!(run(E::Exp, &[&i], DType::I32), Err(EvalError::Unsupported { .. })));
    assert!(matches!(run(E::MulHi, &[&f, &f], DType::F32), Err(EvalError::Unsupported { .. })));
    assert!(matches!(run(E::Shl, &[&i, &f], DType::I32), Err(EvalError::Unsupported { .. })));
    assert!(matches!(run(E::And, &[&f, &f], DType::F32), Err(EvalError::Unsupported { .. })));
    let none: &[Operand<'_>] = &[];
    for op in E::ALL {
        assert!(elementwise(*op, none, DType::I32, 3, false).is_err());
    }
    let said = run(E::Exp, &[&i], DType::I32).unwrap_err().to_string();
    assert_eq!(said, "`exp` does not work on `i32`.");
}
