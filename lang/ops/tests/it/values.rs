//! Scalars, buffers and random numbers.

use crate::common::Numbers;
use tk_ops::{Buf, DType, Scalar, philox};

#[test]
fn text_reads_back_to_the_same_bits() {
    let mut numbers = Numbers(10);
    for d in DType::ALL {
        let all = d.bits() <= 16 && d != DType::Bool;
        let bits: Vec<u64> =
            if all { (0..1 << d.bits()).collect() } else { (0..20_000).map(|_| numbers.next()).collect() };
        for b in bits {
            let s = Scalar::from_bits(d, b);
            let text = s.to_string();
            assert_eq!(Scalar::parse(&text, d), Some(s), "`{text}` as {d}");
        }
    }
}

#[test]
fn text_is_short() {
    let text = |d, v| Scalar::float(d, v).to_string();
    assert_eq!(text(DType::F16, 0.1), "0.1");
    assert_eq!(text(DType::BF16, 1.2345), "1.234");
    assert_eq!(text(DType::F32, 0.1), "0.1");
    assert_eq!(text(DType::F64, 1e300), "1e300");
    assert_eq!(text(DType::F8E4M3, 448.0), "450.0");
    assert_eq!(text(DType::F16, 65504.0), "65500.0");
    assert_eq!(text(DType::F32, -0.0), "-0.0");
    assert_eq!(text(DType::F32, f64::NEG_INFINITY), "-inf");
    assert_eq!(text(DType::BF16, f64::NAN), "nan");
    assert_eq!(Scalar::from_bits(DType::F32, 0xffc0_0001).to_string(), "nan0xffc00001");
    assert_eq!(Scalar::int(DType::I8, -128).to_string(), "-128");
    assert_eq!(Scalar::bool(true).to_string(), "true");
}

#[test]
fn text_that_is_not_a_value() {
    for (text, d) in [
        ("300", DType::U8),
        ("-1", DType::U64),
        ("1.5", DType::I32),
        ("", DType::F32),
        ("infinity", DType::F32),
        ("NaN", DType::F64),
        ("nan0x3f800000", DType::F32),
        ("nan0xzz", DType::F32),
        ("1", DType::Bool),
        ("nan", DType::E2M1),
        ("0x10", DType::I32),
        ("-", DType::F16),
        ("nan0x1ffffffff", DType::F32),
    ] {
        assert_eq!(Scalar::parse(text, d), None, "`{text}` as {d}");
    }
    assert_eq!(Scalar::parse("1", DType::F32), Some(Scalar::float(DType::F32, 1.0)));
    assert_eq!(
        Scalar::parse("-9223372036854775808", DType::I64),
        Some(Scalar::int(DType::I64, i64::MIN.into()))
    );
}

#[test]
fn readers_know_their_types() {
    assert_eq!(Scalar::int(DType::U8, 300).as_int(), Some(44));
    assert_eq!(Scalar::int(DType::I64, -5).as_int(), Some(-5));
    assert_eq!(Scalar::int(DType::F32, 3).as_f64(), Some(3.0));
    assert_eq!(Scalar::float(DType::F32, 1.0).as_int(), None);
    assert_eq!(Scalar::bool(true).as_bool(), Some(true));
    assert_eq!(Scalar::bool(true).as_int(), None);
    assert_eq!(Scalar::int(DType::I32, 1).as_f64(), None);
    assert_ne!(Scalar::float(DType::F32, 0.0), Scalar::float(DType::F32, -0.0));
}

#[test]
fn bytes_there_and_back() {
    let mut numbers = Numbers(11);
    for d in DType::ALL {
        let values: Vec<Scalar> = (0..9).map(|_| Scalar::from_bits(d, numbers.next())).collect();
        let buf = Buf::from_scalars(d, &values).unwrap();
        let bytes = buf.to_le_bytes();
        assert_eq!(bytes.len(), 9 * d.bytes(), "{d}");
        assert!(Buf::from_le_bytes(d, &bytes).unwrap().same_bits(&buf), "{d}");
        let part = Buf::from_le_bytes(d, &bytes[..bytes.len() - 1]);
        assert_eq!(part.is_none(), d.bytes() > 1, "{d}");
        assert!(Buf::zeros(d, 3).same_bits(&Buf::splat(Scalar::zero(d), 3)));
        assert!(Buf::empty(d).is_empty());
    }
    assert_eq!(Buf::I32(vec![258]).to_le_bytes(), [2, 1, 0, 0]);
}

#[test]
fn out_of_range_is_zero_and_ignored() {
    let mut b = Buf::I32(vec![1, 2, 3]);
    assert_eq!(b.get(3), Scalar::int(DType::I32, 0));
    b.set(7, Scalar::int(DType::I32, 9));
    b.set(0, Scalar::int(DType::I64, 9));
    b.set(1, Scalar::int(DType::I32, 9));
    assert_eq!(b.to_i64().unwrap(), [1, 9, 3]);
    assert_eq!(b.gather(&[2, 5, 0]).to_i64().unwrap(), [3, 0, 1]);
    assert_eq!(b.take(|i| 2 - i.min(2), 4).to_i64().unwrap(), [3, 9, 1, 1]);
    assert!(Buf::from_scalars(DType::I32, &[Scalar::bool(true)]).is_none());
}

#[test]
fn strided_reads_are_rearrangements() {
    let x = Buf::I32((0..6).collect());
    // As [2, 3]: itself, its transpose, a row repeated, reversed, and a slice beyond the end.
    assert_eq!(x.strided(0, &[2, 3], &[3, 1]).to_i64().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(x.strided(0, &[3, 2], &[1, 3]).to_i64().unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(x.strided(3, &[2, 3], &[0, 1]).to_i64().unwrap(), [3, 4, 5, 3, 4, 5]);
    assert_eq!(x.strided(1, &[2, 2], &[3, 0]).to_i64().unwrap(), [1, 1, 4, 4]);
    assert_eq!(x.strided(5, &[6], &[-1]).to_i64().unwrap(), [5, 4, 3, 2, 1, 0]);
    assert_eq!(x.strided(4, &[4], &[1]).to_i64().unwrap(), [4, 5, 0, 0]);
    assert_eq!(x.strided(-2, &[4], &[1]).to_i64().unwrap(), [0, 0, 0, 1]);
    assert_eq!(x.strided(2, &[], &[]).to_i64().unwrap(), [2]);
    assert_eq!(x.strided(0, &[2, 1, 3], &[3, 0, 1]).to_i64().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert!(x.strided(0, &[0, 3], &[3, 1]).is_empty());
    assert_eq!(x.strided(isize::MAX, &[2], &[isize::MAX]).to_i64().unwrap(), [0, 0]);
}

#[test]
fn strided_writes_are_their_inverse() {
    let mut y = Buf::zeros(DType::I32, 6);
    y.put_strided(0, &[3, 2], &[1, 3], &Buf::I32((0..6).collect()));
    assert_eq!(y.to_i64().unwrap(), [0, 2, 4, 1, 3, 5]);
    y.put_strided(4, &[4], &[1], &Buf::I32(vec![7, 8, 9, 9]));
    y.put_strided(isize::MAX, &[2], &[isize::MAX], &Buf::I32(vec![7, 8]));
    y.put_strided(0, &[1], &[1], &Buf::I64(vec![7]));
    assert_eq!(y.to_i64().unwrap(), [0, 2, 4, 1, 7, 8]);
}

#[test]
fn philox_gives_the_published_words() {
    // Known answers of the authors' library, philox4x32 with 10 rounds.
    assert_eq!(philox::philox([0, 0], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let ones = u32::MAX;
    assert_eq!(philox::philox([ones; 2], [ones; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    assert_eq!(
        philox::philox([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
    assert_eq!(philox::words(0xffff_ffff_ffff_ffff, 5), philox::philox([ones; 2], [5, 0, 0, 0]));
}

#[test]
fn random_numbers_have_their_distribution() {
    let n = 1 << 16;
    let moments = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        (mean, v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / v.len() as f64)
    };
    let v = philox::uniform(3, n);
    assert!(v.iter().all(|x| (0.0..1.0).contains(x)));
    let (mean, variance) = moments(&v);
    assert!((mean - 0.5).abs() < 0.005 && (variance - 1.0 / 12.0).abs() < 0.001, "{mean} {variance}");
    let v = philox::randn(3, n);
    let (mean, variance) = moments(&v);
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    let inside = v.iter().filter(|x| x.abs() < 1.0).count() as f64 / n as f64;
    assert!((inside - 0.6827).abs() < 0.01, "{inside}");
    assert!(philox::normal(0, 0).is_finite() && philox::normal(u32::MAX, u32::MAX).abs() < 1e-3);
    // The first of the examples in the table.
    assert!((philox::randn(0, 1)[0] - 0.991_137_475_145_897).abs() < 1e-12);
}

#[test]
fn uniform_stays_below_its_upper_end() {
    let range = |lo, hi, d| {
        let (lo, hi) = (Scalar::float(d, lo), Scalar::float(d, hi));
        philox::uniform_between(1, lo, hi, d, 20_000)
    };
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let v = range(-1.0, 3.0, d).to_f64().unwrap();
        assert!(v.iter().all(|x| (-1.0..3.0).contains(x)), "{d}");
        assert!(v.iter().any(|x| *x > 2.9) && v.iter().any(|x| *x < -0.9), "{d}");
    }
    let v = range(-2.0, 2.0, DType::I8).to_i64().unwrap();
    assert!((-2..2).all(|i| v.iter().filter(|x| **x == i).count() > 4500));
    assert!(v.iter().all(|i| (-2..2).contains(i)));
}
