//! Float operations: roundings against exact integer arithmetic, functions against true values.
#![allow(clippy::unwrap_used, clippy::panic, reason = "failing is how tests report")]

use crate::common::{Exact, Numbers, Search, one, run, values};
use half::{bf16, f16};
use tk_ops::eval::{Operand, elementwise};
use tk_ops::rows::find;
use tk_ops::table::{Accuracy, Receiver};
use tk_ops::{Buf, DType, DTypeSet, ElementwiseOp as E, Group, Scalar};

const WIDE: [DType; 2] = [DType::F32, DType::F64];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn f(d: DType, v: f64) -> Scalar {
    Scalar::float(d, v)
}

/// The rounding of an exact number to f32: to 24 bits of it, which an i128 does in one step.
fn nearest_f32(x: Exact) -> f32 {
    // Scaling by a power of two is exact for normal results.
    (x.0 as f32) * 2f32.powi(x.1)
}

#[test]
fn narrow_arithmetic_rounds_once() {
    let mut numbers = Numbers(5);
    for d in [DType::F16, DType::BF16] {
        let search = Search::new(d);
        let mut values: Vec<Scalar> =
            [0x0001, 0x0002, 0x03ff, 0x0400, 0x3c00, 0x3c01, 0x7bff, 0x8001, 0xbc01]
                .map(|b| Scalar::from_bits(d, b))
                .to_vec();
        values.extend((0..60).map(|_| Scalar::from_bits(d, numbers.next())));
        values.retain(|s| s.as_f64().unwrap().is_finite());
        for a in &values {
            for b in &values {
                let (x, y) = (Exact::of(a.as_f64().unwrap()), Exact::of(b.as_f64().unwrap()));
                if (x.1 - y.1).abs() > 100 {
                    continue;
                }
                let check = |op, exact: Exact| {
                    let found = one(op, &[*a, *b], d);
                    if exact.0 == 0 {
                        assert_eq!(found.as_f64(), Some(0.0), "{op:?}({a}, {b}) of {d}");
                    } else {
                        assert_eq!(found.bits(), search.nearest(exact), "{op:?}({a}, {b}) of {d}");
                    }
                };
                check(E::Add, x.add(y));
                check(E::Sub, x.add(Exact(-y.0, y.1)));
                let product = one(E::Mul, &[*a, *b], d);
                if x.0 != 0 && y.0 != 0 {
                    let sign = u64::from((x.0 < 0) != (y.0 < 0)) << 15;
                    assert_eq!(product.bits(), search.nearest(x.mul(y)) | sign, "{a} * {b} of {d}");
                    division(d, &search, *a, *b);
                }
            }
        }
    }
}

/// The quotient is the nearest value when no value lies nearer: compared by products, which are exact.
fn division(d: DType, search: &Search, a: Scalar, b: Scalar) {
    let (x, y) = (Exact::of(a.as_f64().unwrap()), Exact::of(b.as_f64().unwrap()));
    // 96 more bits than the quotient needs, and a bit below them for what is left.
    let top = x.0.abs() << 96;
    let quotient = top / y.0.abs() * 2 + i128::from(top % y.0.abs() != 0);
    let sign = x.0.signum() * y.0.signum();
    let exact = Exact(sign * quotient, x.1 - y.1 - 97);
    let found = one(E::Div, &[a, b], d).bits();
    let expected = search.nearest(exact) | u64::from(sign < 0) << 15;
    assert_eq!(found, expected, "{a} / {b} of {d}");
}

#[test]
fn narrow_square_roots_are_correct() {
    for d in [DType::F16, DType::BF16] {
        let search = Search::new(d);
        for code in 1..0x7c00u64 {
            let x = Scalar::from_bits(d, code);
            let v = x.as_f64().unwrap();
            if !v.is_finite() {
                continue;
            }
            // Halves between neighbours have at most 12 bits: their squares are exact in f64.
            let found = one(E::Sqrt, &[x], d).as_f64().unwrap();
            let bits = Scalar::float(d, found).bits();
            let above = Scalar::from_bits(d, bits + 1).as_f64().unwrap();
            let below = Scalar::from_bits(d, bits - 1).as_f64().unwrap();
            let (low, high) = ((found + below) / 2.0, (found + above) / 2.0);
            assert!(low * low <= v && v <= high * high, "sqrt({x}) of {d}");
        }
        drop(search);
    }
}

#[test]
fn fma_rounds_once() {
    let mut numbers = Numbers(6);
    for d in [DType::F16, DType::BF16] {
        let search = Search::new(d);
        let mut random = || loop {
            let bits = numbers.next();
            // bf16: exponents within 20 of 1, so that the exact sum fits.
            let bits = if d == DType::BF16 { bits & 0x807f | (107 + bits % 40) << 7 } else { bits };
            let s = Scalar::from_bits(d, bits);
            if s.as_f64().unwrap().is_finite() {
                return s;
            }
        };
        for _ in 0..100_000 {
            let (a, b, c) = (random(), random(), random());
            let exact = |s: Scalar| Exact::of(s.as_f64().unwrap());
            let sum = exact(a).mul(exact(b)).add(exact(c));
            let found = one(E::Fma, &[a, b, c], d);
            if sum.0 == 0 {
                assert_eq!(found.as_f64(), Some(0.0));
            } else {
                assert_eq!(found.bits(), search.nearest(sum), "fma({a}, {b}, {c}) of {d}");
            }
        }
    }
    // Products that are a half of bf16, and an addend far below the last bit of an f64.
    let wide = |x: [f64; 3]| one(E::Fma, &x.map(|v| f(DType::BF16, v)), DType::BF16).as_f64();
    let tiny = 2f64.powi(-120);
    assert_eq!(wide([1.5, 129.0 / 128.0, tiny]), Some(194.0 / 128.0));
    assert_eq!(wide([1.5, 129.0 / 128.0, -tiny]), Some(193.0 / 128.0));
    assert_eq!(wide([1.5, 131.0 / 128.0, tiny]), Some(197.0 / 128.0));
    assert_eq!(wide([-1.5, 131.0 / 128.0, -tiny]), Some(-197.0 / 128.0));
    assert_eq!(wide([1.5, 131.0 / 128.0, 0.0]), Some(196.0 / 128.0));
    for _ in 0..200_000 {
        let bits = |n: u64| f32::from_bits(n as u32 & 0x807f_ffff | (107 + (n >> 40) as u32 % 40) << 23);
        let (a, b, c) = (bits(numbers.next()), bits(numbers.next()), bits(numbers.next()));
        let exact = |v: f32| Exact::of(f64::from(v));
        let sum = exact(a).mul(exact(b)).add(exact(c));
        let found = one(E::Fma, &[a, b, c].map(|v| f(DType::F32, v.into())), DType::F32).as_f64().unwrap();
        assert_eq!(found as f32, nearest_f32(sum), "fma({a}, {b}, {c})");
    }
}

#[test]
fn fma_of_f32_agrees_at_the_edges() {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0 + f32::EPSILON,
        0.5,
        3.0,
        1e-20,
        -1e-20,
        1e20,
    ];
    for a in edges {
        for b in edges {
            for c in edges {
                let args = [a, b, c].map(|v| Scalar::from_bits(DType::F32, v.to_bits().into()));
                let found = one(E::Fma, &args, DType::F32).as_f64().unwrap() as f32;
                let expected = libm::fmaf(a, b, c);
                let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(same, "fma({a}, {b}, {c}) is {found:e}, not {expected:e}");
            }
        }
    }
    let x = f(DType::F64, 1.0 + 2f64.powi(-30));
    let y = f(DType::F64, -(1.0 + 2f64.powi(-29)));
    assert_eq!(one(E::Fma, &[x, x, y], DType::F64).as_f64(), Some(2f64.powi(-60)));
}

#[test]
fn order_of_zeros_and_nan() {
    for d in FLOATS {
        let (nan, neg, pos, one_) = (f(d, f64::NAN), f(d, -0.0), f(d, 0.0), f(d, 1.0));
        for (a, b) in [(neg, pos), (pos, neg)] {
            assert_eq!(one(E::Maximum, &[a, b], d), pos);
            assert_eq!(one(E::Minimum, &[a, b], d), neg);
            assert_eq!(one(E::MaxNum, &[a, b], d), pos);
            assert_eq!(one(E::MinNum, &[a, b], d), neg);
        }
        for (a, b) in [(nan, one_), (one_, nan)] {
            assert!(one(E::Maximum, &[a, b], d).as_f64().unwrap().is_nan());
            assert!(one(E::Minimum, &[a, b], d).as_f64().unwrap().is_nan());
            assert_eq!(one(E::MaxNum, &[a, b], d), one_);
            assert_eq!(one(E::MinNum, &[a, b], d), one_);
            for op in [E::Eq, E::Lt, E::Le, E::Gt, E::Ge] {
                assert_eq!(one(op, &[a, b], DType::Bool), Scalar::bool(false));
            }
            assert_eq!(one(E::Ne, &[a, b], DType::Bool), Scalar::bool(true));
        }
        assert!(one(E::MaxNum, &[nan, nan], d).as_f64().unwrap().is_nan());
        assert!(one(E::Clamp, &[nan, pos, one_], d).as_f64().unwrap().is_nan());
        assert_eq!(one(E::Clamp, &[f(d, 5.0), pos, one_], d), one_);
        assert_eq!(one(E::Maximum, &[f(d, f64::INFINITY), f(d, f64::NEG_INFINITY)], d), f(d, f64::INFINITY));
        assert_eq!(one(E::Minimum, &[f(d, -2.0), f(d, -3.0)], d), f(d, -3.0));
        assert_eq!(one(E::Neg, &[pos], d), neg);
        assert_eq!(one(E::Abs, &[neg], d), pos);
        let ask = |op, x| one(op, &[x], DType::Bool).as_bool().unwrap();
        let inf = f(d, f64::NEG_INFINITY);
        assert_eq!([nan, inf, one_].map(|x| ask(E::IsNan, x)), [true, false, false]);
        assert_eq!([nan, inf, one_].map(|x| ask(E::IsInf, x)), [false, true, false]);
        assert_eq!([nan, inf, one_].map(|x| ask(E::IsFinite, x)), [false, false, true]);
    }
}

#[test]
fn rounding_to_whole_numbers() {
    let inputs = [-2.5, -1.5, -0.5, -0.25, -0.0, 0.25, 0.5, 1.5, 2.5, 3.75, 1024.5];
    for d in FLOATS {
        for v in inputs {
            let x = f(d, v).as_f64().unwrap();
            let of = |op| one(op, &[f(d, v)], d);
            assert_eq!(of(E::Floor), f(d, x.floor()), "floor({v}) of {d}");
            assert_eq!(of(E::Ceil), f(d, x.ceil()), "ceil({v}) of {d}");
            assert_eq!(of(E::Trunc), f(d, x.trunc()), "trunc({v}) of {d}");
            assert_eq!(of(E::Round), f(d, x.round_ties_even()), "round({v}) of {d}");
        }
        for v in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for op in [E::Floor, E::Ceil, E::Trunc, E::Round] {
                let found = one(op, &[f(d, v)], d).as_f64().unwrap();
                assert!(found == v || (found.is_nan() && v.is_nan()), "{op:?}({v}) of {d}");
            }
        }
    }
    let x: Vec<f32> = (0..100_000).map(|i| f32::from_bits(i * 42_949)).collect();
    let found = run(E::Round, &[&Buf::F32(x.clone())], DType::F32).unwrap();
    for (found, x) in found.as_f32().unwrap().iter().zip(x) {
        let expected = x.round_ties_even();
        assert!(found.to_bits() == expected.to_bits() || x.is_nan(), "round({x:e}) is {found:e}");
    }
}

/// The error of `found` in units of the last place of the type at the true value `high + low`.
fn ulps(d: DType, found: f64, high: f64, low: f64) -> f64 {
    let (digits, smallest) = if d == DType::F32 { (23, -149) } else { (52, -1074) };
    let exponent = (high.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = libm::ldexp(1.0, (exponent - digits).max(smallest));
    ((found - high) - low).abs() / unit
}

fn bound(name: &str) -> f64 {
    match find(name, Receiver::None).unwrap().accuracy {
        Accuracy::Ulp(bound) => f64::from(bound),
        Accuracy::Exact | Accuracy::Rounded => 0.5,
    }
}

/// The functions of one float.
fn functions() -> impl Iterator<Item = E> {
    E::ALL.iter().copied().filter(|op| matches!(op.group(), Group::FloatUnary(_)))
}

#[test]
fn functions_keep_their_bounds() {
    let mut worst = std::collections::BTreeMap::<(DType, &str), f64>::new();
    let mut note = |d, op: E, err: f64, said: String| {
        assert!(err <= bound(op.name()), "{said} is off by {err}");
        let entry = worst.entry((d, op.name())).or_default();
        *entry = entry.max(err);
    };
    for (op, x, high, low) in values::VALUES {
        let found = one(op, &[f(DType::F64, x)], DType::F64).as_f64().unwrap();
        note(DType::F64, op, ulps(DType::F64, found, high, low), format!("{op:?}({x:e})"));
        // f32 gets the rounded argument: the true value of that is f64's, which is close enough to judge f32 by.
        let x = f(DType::F32, x);
        let wide = one(op, &[f(DType::F64, x.as_f64().unwrap())], DType::F64).as_f64().unwrap();
        if (1e-30..1e30).contains(&wide.abs()) {
            let found = one(op, &[x], DType::F32).as_f64().unwrap();
            note(DType::F32, op, ulps(DType::F32, found, wide, 0.0), format!("{op:?}({x}) of f32"));
        }
    }
    for (x, y, high, low) in values::POWERS {
        let found = one(E::Pow, &[f(DType::F64, x), f(DType::F64, y)], DType::F64).as_f64().unwrap();
        note(DType::F64, E::Pow, ulps(DType::F64, found, high, low), format!("pow({x:e}, {y:e})"));
    }
    for ((d, name), err) in &worst {
        // 1 / sqrt(x) in f64 rounds twice, everything else there stays within a unit.
        let limit = if *d == DType::F32 {
            0.51
        } else if *name == "rsqrt" {
            1.5
        } else {
            1.0
        };
        assert!(*err <= limit, "{name} of {d} is off by {err} units");
    }
}

#[test]
fn f32_functions_over_the_whole_range() {
    let x: Vec<f32> = (0..=u32::MAX).step_by(9973).map(f32::from_bits).filter(|v| !v.is_nan()).collect();
    let narrow = Buf::F32(x.clone());
    let wide = Buf::F64(x.iter().map(|v| f64::from(*v)).collect());
    for op in functions() {
        let found = run(op, &[&narrow], DType::F32).unwrap();
        let expected = run(op, &[&wide], DType::F64).unwrap();
        let pairs = found.as_f32().unwrap().iter().zip(expected.as_f64().unwrap());
        for ((found, expected), x) in pairs.zip(&x) {
            if expected.is_nan() {
                assert!(found.is_nan(), "{op:?}({x:e})");
                continue;
            }
            let rounded = *expected as f32;
            if rounded.is_infinite() || rounded == 0.0 {
                assert_eq!(found.to_bits(), rounded.to_bits(), "{op:?}({x:e})");
                continue;
            }
            let err = ulps(DType::F32, f64::from(*found), *expected, 0.0);
            assert!(err <= 0.5001, "{op:?}({x:e}) is {found:e}, off by {err}");
        }
    }
}

#[test]
fn special_values_of_functions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let table = [
        (E::Exp, -inf, 0.0),
        (E::Exp, inf, inf),
        (E::Exp, nan, nan),
        (E::Exp, 0.0, 1.0),
        (E::Exp2, -inf, 0.0),
        (E::Exp2, inf, inf),
        (E::Exp2, nan, nan),
        (E::Exp2, 10.0, 1024.0),
        (E::Log, 0.0, -inf),
        (E::Log, -1.0, nan),
        (E::Log, inf, inf),
        (E::Log, 1.0, 0.0),
        (E::Log2, 0.0, -inf),
        (E::Log2, -1.0, nan),
        (E::Log2, 8.0, 3.0),
        (E::Sin, inf, nan),
        (E::Sin, -0.0, -0.0),
        (E::Cos, inf, nan),
        (E::Cos, 0.0, 1.0),
        (E::Tanh, inf, 1.0),
        (E::Tanh, -inf, -1.0),
        (E::Tanh, nan, nan),
        (E::Tanh, -0.0, -0.0),
        (E::Cosh, inf, inf),
        (E::Cosh, -inf, inf),
        (E::Cosh, nan, nan),
        (E::Cosh, -0.0, 1.0),
        (E::Erf, inf, 1.0),
        (E::Erf, -inf, -1.0),
        (E::Erf, nan, nan),
        (E::Erf, 0.0, 0.0),
        (E::Sqrt, -1.0, nan),
        (E::Sqrt, -0.0, -0.0),
        (E::Sqrt, inf, inf),
        (E::Rsqrt, 0.0, inf),
        (E::Rsqrt, inf, 0.0),
        (E::Rsqrt, -1.0, nan),
        (E::Rsqrt, 4.0, 0.5),
    ];
    for d in FLOATS {
        for (op, x, expected) in table {
            let found = one(op, &[f(d, x)], d).as_f64().unwrap();
            let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{op:?}({x}) of {d} is {found}");
        }
    }
    for d in WIDE {
        let pow = |x, y| one(E::Pow, &[f(d, x), f(d, y)], d).as_f64().unwrap();
        assert_eq!(pow(2.0, 10.0), 1024.0);
        assert_eq!(pow(-2.0, 3.0), -8.0);
        assert_eq!(pow(nan, 0.0), 1.0);
        assert_eq!(pow(1.0, nan), 1.0);
        assert_eq!(pow(0.0, -1.0), inf);
        assert!(pow(-1.0, 0.5).is_nan());
        assert_eq!(one(E::Rem, &[f(d, -5.5), f(d, 2.0)], d), f(d, -1.5));
        assert_eq!(one(E::Div, &[f(d, 1.0), f(d, -0.0)], d), f(d, -inf));
    }
}

#[test]
fn narrow_functions_are_those_of_f32() {
    let mut numbers = Numbers(7);
    let raw: Vec<u64> = (0..3000).map(|_| numbers.next()).collect();
    let half: Vec<f16> = raw.iter().map(|b| f16::from_bits(*b as u16)).collect();
    let brain: Vec<bf16> = raw.iter().map(|b| bf16::from_bits(*b as u16)).collect();
    for op in functions() {
        let wide = run(op, &[&Buf::F32(half.iter().map(|h| h.to_f32()).collect())], DType::F32).unwrap();
        let found = run(op, &[&Buf::F16(half.clone())], DType::F16).unwrap();
        let expected: Vec<f16> = wide.as_f32().unwrap().iter().map(|v| f16::from_f32(*v)).collect();
        assert!(found.same_bits(&Buf::F16(expected)), "{op:?}");
        let wide = run(op, &[&Buf::F32(brain.iter().map(|h| h.to_f32()).collect())], DType::F32).unwrap();
        let found = run(op, &[&Buf::BF16(brain.clone())], DType::BF16).unwrap();
        let expected: Vec<bf16> = wide.as_f32().unwrap().iter().map(|v| bf16::from_f32(*v)).collect();
        assert!(found.same_bits(&Buf::BF16(expected)), "{op:?}");
    }
    let scalar = Operand::Splat(f(DType::F16, 2.0));
    let x = Buf::F16(half);
    let out = elementwise(E::Lt, &[Operand::Buf(&x), scalar], DType::Bool, 3000, false).unwrap();
    for (i, less) in out.as_bool().unwrap().iter().enumerate() {
        assert_eq!(*less, x.get(i).as_f64().unwrap() < 2.0);
    }
}

#[test]
fn fp8_is_ordered_and_has_no_arithmetic() {
    for d in DTypeSet::F8.iter() {
        let (a, b, nan) = (f(d, 1.5), f(d, -2.0), f(d, f64::NAN));
        assert_eq!(one(E::Lt, &[b, a], DType::Bool), Scalar::bool(true));
        assert_eq!(one(E::Eq, &[f(d, 0.0), f(d, -0.0)], DType::Bool), Scalar::bool(true));
        assert_eq!(one(E::Eq, &[nan, nan], DType::Bool), Scalar::bool(false));
        assert_eq!(one(E::IsNan, &[nan], DType::Bool), Scalar::bool(true));
        assert_eq!(one(E::Select, &[Scalar::bool(false), a, b], d), b);
        for op in [E::Add, E::Mul, E::Pow] {
            assert!(elementwise(op, &[Operand::Splat(a), Operand::Splat(b)], d, 1, false).is_err());
        }
        assert_eq!(one(E::Maximum, &[b, a], d), a);
        assert_eq!(one(E::MinNum, &[nan, a], d), a);
        assert_eq!(one(E::Abs, &[b], d), f(d, 2.0));
        let zero = Scalar::zero(d);
        if [DType::F8E4M3, DType::F8E5M2].contains(&d) {
            assert_eq!(one(E::Neg, &[nan], d).bits(), nan.bits() ^ 0x80);
            assert_eq!(one(E::Neg, &[zero], d).bits(), 0x80);
        } else {
            // The zero and the NaN are the only ones, whatever their sign would be.
            for op in [E::Neg, E::Abs] {
                assert_eq!(one(op, &[nan], d), nan);
                assert_eq!(one(op, &[zero], d), zero);
            }
            assert_eq!(one(E::Minimum, &[b, nan], d), nan);
        }
    }
    // The infinity that no conversion gives stays one.
    let infinity = Scalar::from_bits(DType::F8E5M2, 0x7c);
    assert_eq!(one(E::Maximum, &[infinity, f(DType::F8E5M2, 1.0)], DType::F8E5M2), infinity);
    for d in DTypeSet::F8.iter() {
        assert!(elementwise(E::Sqrt, &[Operand::Splat(f(d, 1.0))], d, 1, false).is_err());
    }
    let packed = Buf::E2M1(vec![1, 2]);
    assert!(run(E::Add, &[&packed, &packed], DType::E2M1).is_err());
    assert!(run(E::Eq, &[&packed, &packed], DType::Bool).is_err());
}

#[test]
fn bits_are_kept_by_bitcast() {
    let x = Buf::F32(vec![1.0, -0.0, f32::from_bits(0x7fc0_1234)]);
    let bits = run(E::Bitcast, &[&x], DType::U32).unwrap();
    assert_eq!(bits.to_i64().unwrap(), [0x3f80_0000, 0x8000_0000, 0x7fc0_1234]);
    assert!(run(E::Bitcast, &[&bits], DType::F32).unwrap().same_bits(&x));
    let bytes = Buf::U8(vec![0x7e, 0xfc]);
    assert_eq!(run(E::Bitcast, &[&bytes], DType::F8E4M3).unwrap().get(0).as_f64(), Some(448.0));
    assert_eq!(run(E::Bitcast, &[&bytes], DType::I8).unwrap().to_i64().unwrap(), [126, -4]);
    assert!(run(E::Bitcast, &[&bytes], DType::Bool).is_err());
    assert!(run(E::Bitcast, &[&bytes], DType::U16).is_err());
}
