//! Owns the accuracy of f64.
//!
//! The table `f64.txt` was computed with 300 to 3000 bits: operation, two operands (the second is 0 where there is none)
//! and the result as the sum of two floats, all as bits. It has ordinary operands of all sizes, operands near the seams
//! of the expansions, multiples of pi/2, and 6381956970095103 * 2^797, the angle nearest to one.

use tk_llvm::math::Width;
use tk_ops::op::ElementwiseOp;

use super::{Function, compute, functions, reference};

/// The error against the sum of two floats, in units in the last place.
fn error(got: f64, want: f64, rest: f64) -> f64 {
    let exponent = libm::ilogb(want).clamp(-1022, 1023);
    // In two steps, so that the unit of a subnormal number stays a float.
    ((got - want) - rest).abs() * 2f64.powi(-exponent) * 2f64.powi(52)
}

/// Checks every line and gives the largest error of each function.
fn check(table: &str) -> Vec<(ElementwiseOp, f64)> {
    let functions: Vec<Function> = functions().collect();
    let mut worst: Vec<(ElementwiseOp, f64)> = functions.iter().map(|f| (f.op, 0.0)).collect();
    for line in table.lines() {
        let (name, numbers) = line.split_once(' ').expect("a name");
        let bits = |text| u64::from_str_radix(text, 16).expect("bits");
        let numbers: Vec<f64> = numbers.split(' ').map(|text| f64::from_bits(bits(text))).collect();
        let &[x, y, want, rest] = &numbers[..] else { panic!("four numbers in {line}") };
        let at = functions.iter().position(|f| f.op.name() == name).expect("a function");
        let Function { op, bound } = functions[at];
        let got = compute(op, Width::F64, &[x.into(), y.into()][..op.arity()]);
        let e = error(got.number(), want, rest);
        assert!(e <= bound, "{name}({x:e}, {y:e}) is off by {e} units");
        worst[at].1 = e.max(worst[at].1);
    }
    worst
}

#[test]
fn every_function_keeps_its_bound() {
    check(include_str!("f64.txt"));
}

/// The errors that the documentation names, over a table of the same form that the environment names.
#[test]
#[ignore = "needs a larger table; for the numbers in the documentation"]
fn larger_table() {
    let path = std::env::var("TK_MATH_TABLE").expect("TK_MATH_TABLE names a file");
    for (op, e) in check(&std::fs::read_to_string(path).expect("the table is readable")) {
        println!("{:6} {e:.3} units", op.name());
    }
}

#[test]
fn special_values_are_those_of_the_reference() {
    let inf = f64::INFINITY;
    let some = [0.0, 5e-324, 1e-308, 0.3, 0.5, 1.0, 2.0, 3.0, 710.0, 1e5, 9e15, 1e16, 1e300, f64::MAX, inf];
    let all: Vec<f64> = some.iter().flat_map(|&x| [x, -x]).chain([f64::NAN]).collect();
    for f in functions() {
        for &x in &all {
            for &y in if f.op.arity() == 2 { &all[..] } else { &[0.0] } {
                let got = compute(f.op, Width::F64, &[x.into(), y.into()][..f.op.arity()]).number();
                let want = reference(f.op, x, y);
                let special = want == 0.0 || !want.is_finite();
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                let close = !special && error(got, want, 0.0) <= f.bound + 1.0;
                assert!(same || close, "{}({x:e}, {y:e}) gives {got:e}, not {want:e}", f.op.name());
            }
        }
    }
}
