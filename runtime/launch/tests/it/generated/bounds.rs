//! Functions of the generated programs that say whether a function of floats keeps its bound: the same function in
//! f64 is what it should be.
//!
//! Guarantees that they say so on every device that keeps the bounds of the table of operations, so that their results
//! can be compared bit by bit.

use std::sync::LazyLock;

use tk_ops::Op;
use tk_ops::rows::functions;
use tk_ops::table::Accuracy;

use super::program::Node;
use super::types::Elem;

/// Functions of floats that round, with the units in the last place that the table of operations allows an f32.
pub static BOUNDED: LazyLock<Vec<(&str, f64)>> = LazyLock::new(|| {
    let bounded = functions().filter_map(|row| match (row.op, row.accuracy) {
        (Op::Elementwise(_), Accuracy::Ulp(bound)) => Some((row.name, f64::from(bound))),
        (_, _) => None,
    });
    bounded.collect()
});

/// The function `keeps_F_E`.
pub fn keeps(f: &str, e: Elem) -> Node {
    let stated = BOUNDED.iter().find(|(name, _)| *name == f).map_or(2.0, |(_, bound)| *bound);
    // Bits of the mantissa and the exponent of the smallest normal number.
    let (mantissa, smallest): (i32, i32) = match e {
        "f16" => (10, -14),
        "bf16" => (7, -126),
        _ => (23, -126),
    };
    // Narrow types are computed in f32 and rounded once. What is added is the error of f64.
    let bound = if e == "f32" { stated } else { 0.5 + stated * 2f64.powi(mantissa - 23) } + 1e-6;
    let (params, args, wide) = match f {
        "pow" => (format!("x: {e}, y: {e}"), "x, y", "x as f64, y as f64"),
        _ => (format!("x: {e}"), "x", "x as f64"),
    };
    let body = [
        format!("let got = {f}({args});"),
        format!("let want = {f}({wide});"),
        "let size = abs(want);".into(),
        "let power = bitcast(bitcast(size, i64) & 0x7ff0000000000000, f64);".into(),
        format!("let unit = maximum(power, {:e}) * {:e};", 2f64.powi(smallest), 2f64.powi(-mantissa)),
        format!("let largest = {e}.max as f64;"),
        // At the end of the range the next value is an infinity.
        "let off = abs(clamp(got as f64, -largest, largest) - clamp(want, -largest, largest));".into(),
        "let ends = size < largest * 1.01 || got as f64 == want || isinf(got);".into(),
        format!("let near = ends && off <= unit * {bound:e} && (want != 0.0 || got == 0.0);"),
        "isnan(got) && isnan(want) || !isnan(got) && !isnan(want) && near".into(),
    ];
    let body = body.into_iter().map(Node::line).collect();
    Node::block(format!("fn keeps_{f}_{e}({params}) -> bool {{"), body, "}")
}
