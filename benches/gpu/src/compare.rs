//! Compares rows of the result of a case with the same rows in double precision.
//!
//! Guarantees that every element of such a row is a number, and that the first and the last row and column are among
//! those compared. The time on the host is bounded, whatever the shape.

use tk_ops::{Buf, DType};

use crate::case::{CLASSES, Case, Op, Operand, Task};
use crate::data::{Input, many};
use crate::matrix::value;
use crate::pool::{Memory, Numbers};
use crate::reference::{layer_norm, softmax};

/// Rows of a product that are compared.
const ROWS: usize = 48;
/// Multiplications in double precision for a product: a few hundredths of a second.
const WORK: usize = 1 << 25;
/// Elements of the results of a row operation that are compared; at least [`FEWEST`] rows of them.
const ELEMENTS: usize = 1 << 20;
const FEWEST: usize = 4;
/// The mean square of a number: each is the sum of four uniform ones from -1 to 1.
const SQUARE: f64 = 4.0 / 3.0;

/// A row of a result.
#[derive(Clone, Debug, Default)]
struct Row {
    /// The position of its first element.
    first: usize,
    /// Some columns and what is expected there.
    expected: Vec<(usize, f64)>,
}

/// The largest errors of right results.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Norm of the differences over the norm of the reference.
    norm: f64,
    /// Difference of an element over its size.
    relative: f64,
    /// Difference of an element that is near zero.
    absolute: f64,
    /// The mean rounding error of elements near zero: half of the smallest number.
    rounding: f64,
}

impl Bounds {
    fn new(case: &Case) -> Bounds {
        match case.task {
            // An element that is wrong is off by about as much as elements are large, the root of the mean square; the
            // tensor cores of an H100 keep 14 bits of a sum of products of fp8.
            Task::Product { size: [_, _, k], .. } => {
                let (norm, part) = if case.dtype == DType::F8E4M3 { (4e-2, 0.3) } else { (4e-3, 0.05) };
                // A row and a column may be alike, and their product much larger than others.
                let relative = if case.out() == DType::BF16 { 4e-3 } else { 1e-3 };
                Bounds { norm, relative, absolute: part * SQUARE * (k as f64).sqrt(), rounding: 0.0 }
            }
            // A position is right or wrong.
            Task::Rows { op: Op::Argmax, .. } => {
                Bounds { norm: 0.0, relative: 0.0, absolute: 0.5, rounding: 0.0 }
            }
            // Rounding errors of f32 add up, and the sum may be near 0.
            Task::Rows { op: op @ (Op::Sum | Op::Mean), columns, .. } => {
                let absolute = 1e-6 * (columns as f64).sqrt();
                let absolute = if op == Op::Mean { absolute / columns as f64 } else { absolute };
                Bounds { norm: 1e-4, relative: 1e-4, absolute, rounding: 0.0 }
            }
            // Four times the rounding of an element; sums of differences in f32 cancel to some 1e-6.
            Task::Rows { .. } => {
                let (norm, relative, rounding) = match case.out().bits() {
                    16 if case.out() == DType::BF16 => (8e-3, 1.6e-2, 0.0),
                    16 => (2e-3, 2e-3, 3e-8),
                    _ => (1e-4, 1e-3, 0.0),
                };
                Bounds { norm, relative, absolute: 5e-6, rounding }
            }
        }
    }
}

/// The norm of the error if the result of a case in memory is right.
pub fn check(case: &Case, numbers: &Numbers, memory: &Memory) -> Result<f64, String> {
    let rows = match case.task {
        Task::Product { size, .. } => product(&case.operands(), size, numbers),
        Task::Rows { op, rows, columns } => reduction(&case.operands(), op, [rows, columns], numbers),
    };
    let (dtype, [_, columns]) = (case.out(), case.result());
    let mut results = vec![];
    for row in rows {
        let at = memory.out.address() + (row.first * dtype.bytes()) as u64;
        let bytes = memory.copies.to_host(&memory.clock.stream, at, columns * dtype.bytes())?;
        let found = Buf::from_le_bytes(dtype, &bytes).ok_or("the result has no whole elements")?;
        results.push((row, found));
    }
    verdict(&results, columns, Bounds::new(case))
}

fn verdict(results: &[(Row, Buf)], columns: usize, bounds: Bounds) -> Result<f64, String> {
    let (mut off, mut all, mut worst, mut count) = (0.0, 0.0, 0.0f64, 0usize);
    for (row, found) in results {
        if let Some(column) = (0..columns).find(|c| !value(found.get(*c)).is_finite()) {
            let row = row.first / columns;
            return Err(format!("the results are wrong: no number in row {row}, column {column}"));
        }
        for (column, expected) in &row.expected {
            let difference = (value(found.get(*column)) - expected).abs();
            worst = worst.max(difference / (bounds.relative * expected.abs() + bounds.absolute));
            off += difference * difference;
            all += expected * expected;
        }
        count += row.expected.len();
    }
    let (norm, rounding) =
        ((off / all.max(f64::MIN_POSITIVE)).sqrt(), bounds.rounding * (count as f64).sqrt());
    if off.sqrt() <= bounds.norm * all.sqrt() + rounding && worst <= 1.0 {
        return Ok(norm);
    }
    Err(format!(
        "the results are wrong: norm of the error {norm:.1e} (at most {:.0e}), largest error of an element {worst:.1e} \
         of what it may be, among {count} elements",
        bounds.norm
    ))
}

/// Position number `i` of `count` all over `extent`, the first and the last among them.
fn spread(i: usize, count: usize, extent: usize) -> usize {
    i * (extent - 1) / (count - 1).max(1)
}

fn product(operands: &[Operand], [m, n, k]: [usize; 3], numbers: &Numbers) -> Vec<Row> {
    let [a, b] = operands else { return vec![] };
    let rows = m.min(ROWS);
    let columns = (WORK / (rows * k)).max(16).min(n);
    // Odd, so that all columns of a tile are met.
    let step = (n / columns).max(1) | 1;
    many(rows, |r| {
        let i = spread(r, rows, m);
        let one = |j: usize| {
            let row = [a.first + i * a.strides[0], a.strides[1]];
            let column = [b.first + j * b.strides[1], b.strides[0]];
            (j, numbers.dot(row, column, k))
        };
        let some = (r * 5 % step..n).step_by(step).chain([0, n - 1]);
        Row { first: i * n, expected: some.map(one).collect() }
    })
}

/// The maximum of numbers, and the logarithm of the sum of their exponentials relative to it.
fn log_sum(x: &[f64]) -> (f64, f64) {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (most, x.iter().map(|v| (v - most).exp()).sum::<f64>().ln())
}

fn reduction(operands: &[Operand], op: Op, [rows, columns]: [usize; 2], numbers: &Numbers) -> Vec<Row> {
    let count = (ELEMENTS / columns).clamp(FEWEST, 24).min(rows);
    let shared = |input: Input, c: usize| {
        let operand = operands.get(if input == Input::Weight { 1 } else { 2 });
        operand.map_or(0.0, |o| numbers.at(o.first + c))
    };
    many(count, |r| {
        let row = spread(r, count, rows);
        let first = row * columns;
        let x: Vec<f64> = (first..first + columns).map(|at| numbers.at(at)).collect();
        let out = match op {
            Op::Softmax => softmax(&x),
            Op::LogSoftmax => {
                let (most, total) = log_sum(&x);
                x.iter().map(|v| v - most - total).collect()
            }
            Op::LayerNorm => layer_norm(&x, shared),
            Op::RmsNorm => {
                let square = x.iter().map(|v| v * v).sum::<f64>() / columns as f64;
                let scale = 1.0 / (square + f64::from(crate::reference::EPS)).sqrt();
                x.iter().enumerate().map(|(c, v)| v * scale * shared(Input::Weight, c)).collect()
            }
            Op::CrossEntropy => {
                let (most, total) = log_sum(&x);
                vec![total + most - x.get(row % CLASSES).copied().unwrap_or(f64::NAN)]
            }
            // The first of those that are alike.
            Op::Argmax => {
                let most = x.iter().enumerate().rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
                vec![most.map_or(f64::NAN, |(i, _)| i as f64)]
            }
            Op::Sum => vec![x.iter().sum()],
            Op::Mean => vec![x.iter().sum::<f64>() / columns as f64],
        };
        let first = if out.len() < columns { row } else { first };
        Row { first, expected: out.into_iter().enumerate().collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tk_ops::Scalar;

    fn number(dtype: DType, v: f64) -> Scalar {
        if dtype.is_int() { Scalar::int(dtype, v as i128) } else { Scalar::float(dtype, v) }
    }

    fn results(case: &Case, numbers: &Numbers) -> Vec<(Row, Buf)> {
        let rows = match case.task {
            Task::Product { size, .. } => product(&case.operands(), size, numbers),
            Task::Rows { op, rows, columns } => reduction(&case.operands(), op, [rows, columns], numbers),
        };
        let [_, columns] = case.result();
        let found = |row: &Row| {
            let mut buf = Buf::zeros(case.out(), columns);
            row.expected.iter().for_each(|(c, v)| buf.set(*c, number(case.out(), *v)));
            buf
        };
        rows.into_iter().map(|row| (row.clone(), found(&row))).collect()
    }

    #[test]
    fn rounded_results_pass_and_wrong_ones_do_not() {
        let size = [70, 9, 33];
        let mut tasks = vec![Task::Product { size, transposed: [true, false] }];
        let reduced = [Op::CrossEntropy, Op::Argmax, Op::Sum, Op::Mean];
        for op in [Op::Softmax, Op::LogSoftmax, Op::LayerNorm, Op::RmsNorm].into_iter().chain(reduced) {
            tasks.extend([64, 781, 262_144].map(|columns| Task::Rows { op, rows: 3, columns }));
        }
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            let numbers = Numbers::with_period(dtype, 1_000_003);
            for task in &tasks {
                let case = Case { task: *task, dtype, sets: vec![] };
                let (bounds, [_, columns]) = (Bounds::new(&case), case.result());
                let good = results(&case, &numbers);
                let said = verdict(&good, columns, bounds);
                assert!(said.is_ok(), "{case:?}: {said:?}");
                let expected = value(good[1].1.get(0));
                for wrong in [f64::NAN, expected + 5.0] {
                    let mut bad = good.clone();
                    bad[1].1.set(0, number(case.out(), wrong));
                    assert!(verdict(&bad, columns, bounds).is_err(), "{case:?}");
                }
            }
        }
    }

    #[test]
    fn a_product_is_that_of_its_operands() {
        let numbers = Numbers::with_period(DType::F16, 1009);
        let task = Task::Product { size: [2, 3, 4], transposed: [false, true] };
        let case = Case { task, dtype: DType::F16, sets: vec![] };
        let rows = product(&case.operands(), [2, 3, 4], &numbers);
        // Rows of `b` in memory are its columns; it begins at 256 bytes.
        let exact: f64 = (0..4).map(|p| numbers.at(4 + p) * numbers.at(128 + 2 * 4 + p)).sum();
        assert_eq!((rows.len(), rows[1].first), (2, 3));
        assert!(rows[1].expected.contains(&(2, exact)));
    }
}
