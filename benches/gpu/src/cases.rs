//! Cases by list: products and rows of any size, order and type, each with the kernel of the library and its defaults.
//!
//! Guarantees that a case is timed only after its results were right: elements all over the result, whose memory held no
//! numbers before. A case that fails is a result with an error and leaves the others. Inputs are normally distributed
//! and repeat after [`PERIOD`] elements, a prime number, so that no two rows are alike.

use std::path::Path;

use serde_json::{Value, json};
use tk_ops::{Buf, DType, Scalar};
use tk_runtime::gpu::{Arg, Buffer, CallSite, Device, Launcher};
use tk_sema::contract::parse_cargs;

use crate::Stop;
use crate::data::{Input, many, normal};
use crate::program::{Sets, launcher};
use crate::raw::Copies;
use crate::report::{Report, or_error};
use crate::timing::Clock;

/// The elements after which inputs repeat.
const PERIOD: usize = 1_000_003;
/// Elements of a result that are compared.
const SAMPLES: usize = 200;

/// One case.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    work: Work,
    dtype: DType,
    given: Sets,
}

/// What is computed.
#[derive(Clone, Debug)]
enum Work {
    /// `[m, k]` by `[k, n]`; whether each operand is column by column in memory.
    Product { size: [usize; 3], columns: [bool; 2] },
    /// An operation on rows.
    Rows { op: String, rows: usize, columns: usize },
}

impl Case {
    /// Reads an entry of the list.
    fn of(value: &Value) -> Result<Case, String> {
        let text = |name: &str| {
            let found = value.get(name).and_then(Value::as_str);
            found.map(str::to_string).ok_or_else(|| format!("a case has no `{name}`"))
        };
        let count = |name: &str| {
            let found = value.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            found.filter(|n| *n > 0).ok_or_else(|| format!("a case has no `{name}` above 0"))
        };
        let work = match text("work")?.as_str() {
            "product" => {
                let order = text("order")?;
                let columns = match order.as_str() {
                    "nn" => [false, false],
                    "nt" => [false, true],
                    "tn" => [true, false],
                    "tt" => [true, true],
                    _ => return Err(format!("`{order}` is no order: nn, nt, tn or tt")),
                };
                Work::Product { size: [count("m")?, count("n")?, count("k")?], columns }
            }
            "rows" => Work::Rows { op: text("op")?, rows: count("rows")?, columns: count("columns")? },
            other => return Err(format!("`{other}` is no work: product or rows")),
        };
        let dtype = text("dtype")?;
        let dtype = DType::parse(&dtype).ok_or_else(|| format!("`{dtype}` is no element type"))?;
        let given = match value.get("set") {
            None | Some(Value::Null) => vec![],
            Some(Value::Object(sets)) => {
                let shown = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
                sets.iter().flat_map(|(name, v)| parse_cargs(&format!("{name}={}", shown(v)))).collect()
            }
            Some(_) => return Err("`set` is no object".to_string()),
        };
        Ok(Case { name: text("name")?, work, dtype, given })
    }

    /// The file of the library and the kernel; `None` if it has none.
    fn kernel(&self) -> Option<(&'static str, &'static str)> {
        match &self.work {
            Work::Product { .. } => Some(("stdlib/nn/matmul.tk", "matmul")),
            Work::Rows { op, .. } => match op.as_str() {
                "softmax" => Some(("stdlib/nn/softmax.tk", "softmax")),
                "log_softmax" => Some(("stdlib/nn/softmax.tk", "log_softmax")),
                "layer_norm" => Some(("stdlib/nn/norm.tk", "layer_norm")),
                "rms_norm" => Some(("stdlib/nn/norm.tk", "rms_norm")),
                _ => None,
            },
        }
    }

    /// Elements of the first input, the second one, and the result.
    fn elements(&self) -> [usize; 3] {
        match &self.work {
            Work::Product { size: [m, n, k], .. } => [m * k, k * n, m * n],
            Work::Rows { rows, columns, .. } => [rows * columns, *columns, rows * columns],
        }
    }

    /// The type of the result: f16 of fp8.
    fn out(&self) -> DType {
        if self.dtype.is_f8() { DType::F16 } else { self.dtype }
    }
}

/// The cases in a file: a JSON list.
///
/// # Errors
/// The file cannot be read, or an entry is no case.
fn read(path: &Path) -> Result<Vec<Case>, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    let list: Vec<Value> = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    list.iter().map(Case::of).collect::<Result<_, _>>().map_err(|e| wrong(&e))
}

/// Measures the cases of a file.
///
/// # Errors
/// The list is wrong, or the results cannot be written; a case that fails is a result.
pub fn run(root: &Path, path: &Path, device: &Device, report: &mut Report) -> Result<(), Stop> {
    let cases = read(path)?;
    let mut launchers: Vec<(&str, Launcher)> = vec![];
    let mut bench = Bench::new(device, &cases)?;
    for case in &cases {
        if device.lost().is_some() {
            device.recover().map_err(|e| e.to_string())?;
            bench = Bench::new(device, &cases)?;
        }
        let Some((file, kernel)) = case.kernel() else {
            report.put_in("cases", &case.name, json!({ "missing": true }))?;
            continue;
        };
        let found = match launchers.iter().find(|(f, _)| *f == file) {
            Some((_, launcher)) => Ok(launcher.clone()),
            None => launcher(root, file, device).inspect(|l| launchers.push((file, l.clone()))),
        };
        let result = found.and_then(|launcher| bench.case(&launcher, kernel, case));
        let result = result.map_err(|e| format!("{}: {e}", case.name));
        report.put_in("cases", &case.name, or_error(result))?;
    }
    Ok(())
}

/// Memory for all cases.
struct Bench {
    clock: Clock,
    copies: Copies,
    x: Buffer,
    y: Buffer,
    out: Buffer,
    /// The type of the numbers that the inputs have now.
    filled: Option<DType>,
    numbers: Vec<f32>,
}

impl Bench {
    fn new(device: &Device, cases: &[Case]) -> Result<Bench, String> {
        let most = |i: usize| {
            let bytes =
                |c: &Case| c.elements().get(i).copied().unwrap_or(0) * c.dtype.bytes().max(c.out().bytes());
            cases.iter().map(bytes).max().unwrap_or(0).max(PERIOD * 8)
        };
        let alloc = |i: usize| device.alloc(most(i)).map_err(|e| e.to_string());
        Ok(Bench {
            clock: Clock::new(device)?,
            copies: Copies::new()?,
            x: alloc(0)?,
            y: alloc(1)?,
            out: alloc(2)?,
            filled: None,
            numbers: vec![],
        })
    }

    /// Fills both inputs with numbers of a type.
    fn fill(&mut self, dtype: DType) -> Result<(), String> {
        if self.filled == Some(dtype) {
            return Ok(());
        }
        let mut part = Buf::zeros(dtype, PERIOD);
        let numbers = many(PERIOD, |i| normal(Input::X, i));
        self.numbers = vec![];
        for (i, x) in numbers.into_iter().enumerate() {
            part.set(i, Scalar::float(dtype, f64::from(x)));
            self.numbers.push(part.get(i).as_f64().unwrap_or(f64::NAN) as f32);
        }
        let bytes = part.to_le_bytes();
        for buffer in [&self.x, &self.y] {
            self.copies
                .to_device(buffer.address(), bytes.get(..bytes.len().min(buffer.len())).unwrap_or(&bytes))?;
            // Each copy doubles what is there.
            let mut done = bytes.len();
            while done < buffer.len() {
                let more = done.min(buffer.len() - done);
                self.copies.copy(
                    &self.clock.stream,
                    buffer.address() + done as u64,
                    buffer.address(),
                    more,
                )?;
                done += more;
            }
        }
        self.filled = Some(dtype);
        Ok(())
    }

    fn number(&self, at: usize) -> f64 {
        self.numbers.get(at % PERIOD).copied().map_or(f64::NAN, f64::from)
    }

    /// Launches a case.
    fn launch(&self, site: &mut CallSite, case: &Case) -> Result<(), String> {
        let arg =
            |buffer: &Buffer, shape, strides| Arg::foreign(buffer.address(), case.dtype, shape, strides);
        let stream = &self.clock.stream;
        let done = match &case.work {
            Work::Product { size, columns } => {
                let [m, n, k] = size.map(|d| d as i64);
                let sa = if columns[0] { [1, m] } else { [k, 1] };
                let sb = if columns[1] { [1, k] } else { [n, 1] };
                let (shape_a, shape_b, shape_c) = ([m, k], [k, n], [m, n]);
                let (a, b) = (arg(&self.x, &shape_a, &sa), arg(&self.y, &shape_b, &sb));
                let c = Arg::tensor(&self.out, case.out(), &shape_c);
                return site.launch(stream, &[a, b, Arg::Absent, c]).map_err(|e| e.to_string());
            }
            Work::Rows { op, rows, columns } => {
                let shape = [*rows as i64, *columns as i64];
                let x = Arg::tensor(&self.x, case.dtype, &shape);
                let y = Arg::tensor(&self.out, case.dtype, &shape);
                let length = [*columns as i64];
                let weight = || Arg::tensor(&self.y, case.dtype, &length);
                match op.as_str() {
                    "layer_norm" => site.launch(
                        stream,
                        &[x, weight(), weight(), y, Arg::from(Scalar::float(DType::F32, 1e-5))],
                    ),
                    "rms_norm" => {
                        site.launch(stream, &[x, weight(), y, Arg::from(Scalar::float(DType::F32, 1e-5))])
                    }
                    _ => site.launch(stream, &[x, y]),
                }
            }
        };
        done.map_err(|e| e.to_string())
    }

    /// The time of a case, once its results are right.
    fn case(&mut self, launcher: &Launcher, kernel: &str, case: &Case) -> Result<Value, String> {
        self.fill(case.dtype)?;
        let mut site = launcher.site(kernel, &case.given).map_err(|e| e.to_string())?;
        let count = case.elements()[2];
        self.copies.poison(&self.clock.stream, self.out.address(), count * case.out().bytes())?;
        self.launch(&mut site, case)?;
        let off = self.check(case)?;
        let ms = self.clock.median(&mut |_| self.launch(&mut site, case))?;
        let flops = match &case.work {
            Work::Product { size, .. } => 2.0 * size.iter().map(|d| *d as f64).product::<f64>(),
            Work::Rows { .. } => 0.0,
        };
        let bytes = 2.0 * (count * case.dtype.bytes()) as f64;
        Ok(json!({ "ms": ms, "TFLOPs": flops / ms / 1e9, "TBs": bytes / ms / 1e9, "largest_error": off }))
    }

    /// The largest difference from the reference among some elements, in units of the root of their mean square.
    fn check(&self, case: &Case) -> Result<f64, String> {
        let count = case.elements()[2];
        let width = case.out().bytes();
        let (mut off, mut square, mut found) = (0.0f64, 0.0f64, 0);
        let step = (count / SAMPLES).max(1) | 1;
        for at in (0..count).step_by(step).chain([count - 1]) {
            let bytes =
                self.copies.to_host(&self.clock.stream, self.out.address() + (at * width) as u64, width)?;
            let own =
                Buf::from_le_bytes(case.out(), &bytes).and_then(|b| b.get(0).as_f64()).unwrap_or(f64::NAN);
            let exact = self.exact(case, at);
            let apart = (own - exact).abs();
            off = off.max(if apart.is_nan() { f64::INFINITY } else { apart });
            square += exact * exact;
            found += 1;
        }
        let off = off / (square / f64::from(found)).sqrt().max(f64::MIN_POSITIVE);
        if off <= 0.06 {
            Ok(off)
        } else {
            Err(format!("the results are wrong: largest error {off:.1e} (at most 0.06)"))
        }
    }

    /// An element of the result in double precision.
    fn exact(&self, case: &Case, at: usize) -> f64 {
        match &case.work {
            Work::Product { size: [m, n, k], columns } => {
                let (i, j) = (at / n, at % n);
                let a = |p: usize| self.number(if columns[0] { p * m + i } else { i * k + p });
                let b = |p: usize| self.number(if columns[1] { j * k + p } else { p * n + j });
                (0..*k).map(|p| a(p) * b(p)).sum()
            }
            Work::Rows { op, columns, .. } => {
                let (row, j) = (at / columns * columns, at % columns);
                let x = |p: usize| self.number(row + p);
                let sum = |f: &dyn Fn(f64) -> f64| (0..*columns).map(|p| f(x(p))).sum::<f64>();
                let length = *columns as f64;
                match op.as_str() {
                    "softmax" => x(j).exp() / sum(&f64::exp),
                    "log_softmax" => x(j) - sum(&f64::exp).ln(),
                    "rms_norm" => x(j) / (sum(&|v| v * v) / length + 1e-5).sqrt() * self.number(j),
                    _ => {
                        let mean = sum(&|v| v) / length;
                        let variance = sum(&|v| (v - mean) * (v - mean)) / length;
                        (x(j) - mean) / (variance + 1e-5).sqrt() * self.number(j) + self.number(j)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_and_wrong_ones_are_not() {
        let product = json!({"name": "p", "work": "product", "dtype": "f16", "m": 3, "n": 4, "k": 5, "order": "nt",
                             "set": {"BM": 64, "SWAP": true}});
        let case = Case::of(&product).unwrap();
        assert_eq!(case.elements(), [15, 20, 12]);
        assert_eq!(case.given.len(), 2);
        let rows =
            json!({"name": "r", "work": "rows", "op": "softmax", "dtype": "bf16", "rows": 2, "columns": 7});
        assert!(Case::of(&rows).unwrap().kernel().is_some());
        for (name, value) in
            [("order", json!("xy")), ("m", json!(0)), ("dtype", json!("f99")), ("set", json!(3))]
        {
            let mut bad = product.clone();
            bad[name] = value;
            assert!(Case::of(&bad).is_err(), "{name}");
        }
    }
}
