//! Owns the accuracy of f32.

use std::thread;

use tk_llvm::math::Width;
use tk_ops::op::ElementwiseOp;

use super::{Function, compute, error, functions, reference, samples};

/// The largest error over the numbers and where it is.
fn worst(f: &Function, numbers: impl Iterator<Item = f32>) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for x in numbers {
        let got = compute(f.op, Width::F32, &[x.into()]);
        let e = error(got.number() as f32, reference(f.op, f64::from(x), 0.0));
        if e > worst.0 {
            worst = (e, x);
        }
    }
    worst
}

fn one_operand() -> impl Iterator<Item = Function> {
    functions().filter(|f| f.op.arity() == 1)
}

#[test]
fn every_function_keeps_its_bound() {
    for f in one_operand() {
        let (e, x) = worst(&f, samples(128));
        assert!(e <= f.bound, "{}({x:e}) is off by {e} units", f.op.name());
    }
}

/// A reduced angle just above a power of two, its sine just below: each rounding of the angle counts twice.
#[test]
fn the_sine_of_the_worst_angle_keeps_its_bound() {
    let sine = Function { op: ElementwiseOp::Sin, bound: 2.0 };
    let (e, _) = worst(&sine, [504_847.7].into_iter());
    assert!(e <= sine.bound, "off by {e} units");
}

/// Prints the errors that the documentation names: of the functions in `TK_MATH_ONLY`, over every `TK_MATH_STRIDE`th
/// float. Minutes with `--release` and many threads.
#[test]
#[ignore = "takes minutes; for the numbers in the documentation"]
fn all_floats() {
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let stride: u64 = std::env::var("TK_MATH_STRIDE").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let only = std::env::var("TK_MATH_ONLY").unwrap_or_default();
    for f in one_operand().filter(|f| only.is_empty() || only.split(',').any(|name| name == f.op.name())) {
        let f = &f;
        let (e, x) = thread::scope(|scope| {
            let parts: Vec<_> = (0..threads)
                .map(|part| {
                    let all = (part..1 << 32).step_by((threads * stride) as usize);
                    scope.spawn(move || worst(f, all.map(|bits| f32::from_bits(bits as u32))))
                })
                .collect();
            let found = parts.into_iter().map(|part| part.join().expect("it ends"));
            found.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
        });
        println!("{:6} {e:.3} units at {x:e} ({:08x})", f.op.name(), x.to_bits());
        assert!(e <= f.bound, "{}({x:e})", f.op.name());
    }
}

#[test]
fn quotients_are_rounded_once() {
    for (x, y) in [(1.0f32, 3.0f32), (1.0, 0.0), (0.0, 0.0), (-1.0, 0.0), (1e-40, 3.0), (3e38, 1e-3)] {
        let got = compute(ElementwiseOp::Div, Width::F32, &[x.into(), y.into()]);
        assert_eq!((got.number() as f32).to_bits(), (x / y).to_bits(), "{x} / {y}");
    }
}

/// The error of `pow` in units.
fn power_error(x: f32, y: f32) -> f64 {
    let got = compute(ElementwiseOp::Pow, Width::F32, &[x.into(), y.into()]);
    error(got.number() as f32, libm::pow(f64::from(x), f64::from(y)))
}

#[test]
fn powers_keep_their_bound() {
    let mut worst = (0.0, 0.0, 0.0);
    for (i, x) in samples(64).enumerate() {
        // Results of all sizes: y log2(x) runs through -150..130.
        let log = f64::from(x.abs()).log2();
        for part in 0..4u32 {
            let target =
                f64::from((i as u32).wrapping_mul(2_654_435_761).wrapping_add(part << 30)) / 2f64.powi(32);
            let y = ((target * 280.0 - 150.0) / log) as f32;
            let y = if x < 0.0 { y.round() } else { y };
            let e = power_error(x, y);
            if e > worst.0 {
                worst = (e, x, y);
            }
        }
    }
    let (e, x, y) = worst;
    println!("pow    {e:.3} units at {x:e}, {y:e}");
    assert!(e <= 4.0, "pow({x:e}, {y:e}) is off by {e} units");
}

#[test]
fn powers_have_the_special_cases() {
    let inf = f32::INFINITY;
    let some =
        [0.0, 1e-45, 1e-38, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 1e7, 16_777_215.0, 1.7e7, 1e30, f32::MAX, inf];
    let all: Vec<f32> = some.iter().flat_map(|&x| [x, -x]).chain([f32::NAN]).collect();
    for &x in &all {
        for &y in &all {
            let e = power_error(x, y);
            assert!(e <= 4.0, "pow({x:e}, {y:e}) is off by {e} units");
        }
    }
}
