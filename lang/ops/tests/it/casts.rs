//! Conversions against values computed by formula and rounding by search.
#![allow(clippy::unwrap_used, clippy::panic, reason = "failing is how tests report")]

use crate::common::{Exact, Numbers, Search, decode, is_fnuz};
use tk_ops::eval::cast;
use tk_ops::{Buf, DType, Scalar};

const NARROW: [DType; 7] = [
    DType::F16,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F8E4M3FNUZ,
    DType::F8E5M2FNUZ,
    DType::E2M1,
];

/// What a code becomes with the sign of a number: a zero may have none.
fn signed(d: DType, code: u64, negative: bool) -> u64 {
    if negative && !(is_fnuz(d) && code == 0) { code | 1 << (d.bits() - 1) } else { code }
}

fn codes(d: DType) -> impl Iterator<Item = u64> {
    0..1 << d.bits()
}

fn buf_of_codes(d: DType) -> Buf {
    let scalars: Vec<Scalar> = codes(d).map(|c| Scalar::from_bits(d, c)).collect();
    Buf::from_scalars(d, &scalars).unwrap()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn every_narrow_value_widens_exactly() {
    for d in NARROW {
        let all = buf_of_codes(d);
        let f32s = cast(&all, DType::F32).unwrap();
        let f64s = cast(&all, DType::F64).unwrap();
        for (i, code) in codes(d).enumerate() {
            let expected = decode(d, code);
            let scalar = Scalar::from_bits(d, code);
            assert!(same(scalar.as_f64().unwrap(), expected), "{d} {code:#x}");
            assert!(same(f64s.as_f64().unwrap()[i], expected), "{d} {code:#x}");
            assert!(same(f64::from(f32s.as_f32().unwrap()[i]), expected), "{d} {code:#x}");
            if !expected.is_nan() && !expected.is_infinite() {
                assert_eq!(Scalar::float(d, expected), scalar, "{d} {code:#x}");
            }
        }
    }
}

#[test]
fn f64_rounds_once_to_every_narrow_type() {
    let mut numbers = Numbers(1);
    for d in NARROW {
        let search = Search::new(d);
        let mut inputs = vec![];
        for v in search.interesting() {
            // A half, and the doubles next to it: through f32 these would all become the half.
            let bits = v.to_bits();
            inputs.extend([v, f64::from_bits(bits + 1), f64::from_bits(bits.saturating_sub(1)), -v]);
        }
        for _ in 0..20_000 {
            // Random bits with exponents around the range of the type.
            let bits = numbers.next();
            let span = if d == DType::BF16 { 300 } else { 50 };
            let exponent = 1023 - span / 2 + (numbers.next() % span);
            inputs.push(f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52));
        }
        let out = cast(&Buf::F64(inputs.clone()), d).unwrap();
        for (i, v) in inputs.iter().enumerate() {
            let expected = signed(d, search.nearest(Exact::of(*v)), v.is_sign_negative());
            assert_eq!(out.get(i).bits(), expected, "{v:e} as {d}");
            assert_eq!(Scalar::float(d, *v).bits(), expected, "{v:e} as {d}");
        }
    }
}

#[test]
fn f32_rounds_to_every_narrow_type() {
    let mut numbers = Numbers(2);
    for d in NARROW {
        let search = Search::new(d);
        let mut inputs: Vec<f32> = search.interesting().iter().map(|v| *v as f32).collect();
        let near: Vec<f32> = inputs.iter().map(|v| f32::from_bits(v.to_bits() + 1)).collect();
        inputs.extend(near);
        inputs.extend((0..20_000).map(|_| f32::from_bits(numbers.next() as u32)).filter(|v| v.is_finite()));
        let out = cast(&Buf::F32(inputs.clone()), d).unwrap();
        for (i, v) in inputs.iter().enumerate() {
            let expected = signed(d, search.nearest(Exact::of(f64::from(*v))), v.is_sign_negative());
            assert_eq!(out.get(i).bits(), expected, "{v:e} as {d}");
        }
    }
}

#[test]
fn narrow_types_convert_into_each_other() {
    for from in NARROW {
        let all = buf_of_codes(from);
        for to in NARROW {
            let search = Search::new(to);
            let out = cast(&all, to).unwrap();
            for (i, code) in codes(from).enumerate() {
                let v = decode(from, code);
                let found = out.get(i);
                if from == to {
                    assert_eq!(found, all.get(i));
                } else if v.is_nan() {
                    // e2m1 has no NaN.
                    assert!(
                        found.as_f64().unwrap().is_nan() || to == DType::E2M1,
                        "{from} {code:#x} as {to}"
                    );
                } else if v.is_finite() {
                    let expected = signed(to, search.nearest(Exact::of(v)), v.is_sign_negative());
                    assert_eq!(found.bits(), expected, "{v:e} as {to}");
                }
            }
        }
    }
}

#[test]
fn infinities_and_nan() {
    let x = Buf::F32(vec![f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    let wide = Buf::F64(vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    for x in [x, wide] {
        let values = |d| cast(&x, d).unwrap().to_f64().unwrap();
        let f8 = values(DType::F8E4M3);
        assert_eq!(&f8[..2], [448.0, -448.0]);
        assert!(f8[2].is_nan());
        let f8 = values(DType::F8E5M2);
        assert_eq!(&f8[..2], [57344.0, -57344.0]);
        assert!(f8[2].is_nan());
        for (d, largest) in [(DType::F8E4M3FNUZ, 240.0), (DType::F8E5M2FNUZ, 57344.0)] {
            assert_eq!(values(d)[..2], [largest, -largest]);
            assert_eq!(cast(&x, d).unwrap().get(2).bits(), 0x80);
            assert_eq!(cast(&Buf::F32(vec![-0.0, -1e-9]), d).unwrap().to_le_bytes(), [0, 0]);
        }
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let v = values(d);
            assert_eq!(&v[..2], [f64::INFINITY, f64::NEG_INFINITY]);
            assert!(v[2].is_nan());
        }
    }
    // A stored fp8 infinity reads as one, and saturates like any other.
    let stored = Buf::F8E5M2(vec![0x7c, 0xfc]);
    assert_eq!(stored.to_f64().unwrap(), [f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(cast(&stored, DType::F8E4M3).unwrap().to_f64().unwrap(), [448.0, -448.0]);
}

#[test]
fn integers_round_once_to_floats() {
    let mut numbers = Numbers(3);
    for d in [DType::F16, DType::BF16] {
        let search = Search::new(d);
        let mut inputs: Vec<i128> = vec![0, 1, -1, i64::MAX.into(), i64::MIN.into(), u64::MAX.into()];
        for v in search.interesting() {
            if v < 2e19 {
                inputs.extend([v as i128 - 1, v as i128, v as i128 + 1, -(v as i128)]);
            }
        }
        inputs.extend((0..20_000).map(|_| i128::from(numbers.next() >> (numbers.next() % 64))));
        for v in inputs {
            let expected = search.nearest(Exact(v, 0));
            if let Ok(i) = i64::try_from(v) {
                assert_eq!(cast(&Buf::I64(vec![i]), d).unwrap().get(0).bits(), expected, "{v} as {d}");
            }
            if let Ok(i) = u64::try_from(v) {
                assert_eq!(cast(&Buf::U64(vec![i]), d).unwrap().get(0).bits(), expected, "{v} as {d}");
            }
            if let Ok(i) = i32::try_from(v) {
                assert_eq!(cast(&Buf::I32(vec![i]), d).unwrap().get(0).bits(), expected, "{v} as {d}");
            }
            if let Ok(i) = i16::try_from(v) {
                assert_eq!(cast(&Buf::I16(vec![i]), d).unwrap().get(0).bits(), expected, "{v} as {d}");
            }
            assert_eq!(Scalar::int(d, v).bits(), expected, "{v} as {d}");
        }
    }
    // 2^63 + 2^39 + 1: through f64 the last bit is lost and the half rounds down.
    let v = (1u64 << 63) + (1 << 39) + 1;
    assert_eq!(cast(&Buf::U64(vec![v]), DType::F32).unwrap().as_f32().unwrap(), [9.223_373e18]);
    assert_eq!(Scalar::int(DType::F32, i128::from(v)).as_f64(), Some(f64::from(v as f32)));
}

#[test]
fn floats_truncate_and_saturate() {
    let x = Buf::F32(vec![-2.75, 2.75, 1e30, -1e30, f32::NAN, f32::INFINITY, -0.5]);
    let ints = |d| cast(&x, d).unwrap().to_i64().unwrap();
    assert_eq!(ints(DType::I32), [-2, 2, i32::MAX.into(), i32::MIN.into(), 0, i32::MAX.into(), 0]);
    assert_eq!(ints(DType::I8), [-2, 2, 127, -128, 0, 127, 0]);
    assert_eq!(ints(DType::U8), [0, 2, 255, 0, 0, 255, 0]);
    assert_eq!(ints(DType::I64), [-2, 2, i64::MAX, i64::MIN, 0, i64::MAX, 0]);
    let x = cast(&Buf::F16(vec![half::f16::from_f32(-300.5), half::f16::INFINITY]), DType::I8).unwrap();
    assert_eq!(x.to_i64().unwrap(), [-128, 127]);
    for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for v in [-1e30, -2.75, 0.0, 2.75, 1e30, f64::NAN] {
            let expected = cast(&Buf::F64(vec![v]), d).unwrap().get(0);
            assert_eq!(Scalar::float(d, v), expected, "{v} as {d}");
        }
    }
}

#[test]
fn integers_keep_low_bits() {
    let x = Buf::I32(vec![300, -1, i32::MIN, 128]);
    assert_eq!(cast(&x, DType::U8).unwrap().to_i64().unwrap(), [44, 255, 0, 128]);
    assert_eq!(cast(&x, DType::I8).unwrap().to_i64().unwrap(), [44, -1, 0, -128]);
    assert_eq!(cast(&x, DType::I64).unwrap().to_i64().unwrap(), [300, -1, i64::from(i32::MIN), 128]);
    let unsigned = cast(&x, DType::U64).unwrap();
    assert_eq!(unsigned.get(1).as_int(), Some(i128::from(u64::MAX)));
    assert_eq!(cast(&Buf::U8(vec![200]), DType::I16).unwrap().to_i64().unwrap(), [200]);
    for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for v in [-1i64, 300, -70_000, i64::MIN, i64::MAX] {
            let expected = cast(&Buf::I64(vec![v]), d).unwrap().get(0);
            assert_eq!(Scalar::int(d, v.into()), expected, "{v} as {d}");
        }
    }
}

#[test]
fn bool_and_the_same_type() {
    let b = Buf::Bool(vec![true, false]);
    assert_eq!(cast(&b, DType::I32).unwrap().to_i64().unwrap(), [1, 0]);
    assert_eq!(cast(&b, DType::F16).unwrap().to_f64().unwrap(), [1.0, 0.0]);
    assert!(cast(&Buf::I32(vec![1]), DType::Bool).is_err());
    assert!(cast(&b, DType::Bool).unwrap().same_bits(&b));
    let nan = Buf::F32(vec![f32::from_bits(0x7fc0_1234)]);
    assert!(cast(&nan, DType::F32).unwrap().same_bits(&nan));
}

#[test]
fn powers_of_two_are_stored_as_exponents() {
    let x = Buf::F32(vec![1.0, 2.0, 0.5, 3.0, 1.4, 0.0, -1.0, f32::INFINITY, f32::NAN]);
    let v = cast(&cast(&x, DType::E8M0).unwrap(), DType::F32).unwrap();
    let v = v.as_f32().unwrap();
    // 3 lies between 2 and 4 (codes 128 and 129): the even code wins.
    assert_eq!(&v[..7], [1.0, 2.0, 0.5, 2.0, 1.0, 2f32.powi(-127), 2f32.powi(-127)]);
    assert_eq!(v[7], 2f32.powi(127));
    assert!(v[8].is_nan());
}
