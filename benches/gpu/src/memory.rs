//! The kernels whose time is that of memory: a device copy, and each work in each of its configurations.
//!
//! Guarantees that a configuration is timed only after its results were right: every element of a small shape, and
//! rows of the large one, whose memory held no numbers before.

use serde_json::{Value, json};
use tk_ops::DType;
use tk_runtime::gpu::{Arg, Buffer, CallSite, Clock, Device, Launcher, Stream};

use crate::data::{Input, many, normal, normal_f16};
use crate::program::{Sets, launcher, shown};
use crate::raw::Copies;
use crate::reference::{self, Difference, EPS, MOST_COLUMNS};
use crate::report::{Report, or_error};
use crate::work::{Kind, Work};
use crate::{Args, Stop};

/// Bytes of an element of the device copy, whose elements are four times those of the works: 2^30 of f32.
pub const COPIED: usize = 16;
/// Rows of a large shape that are compared.
const ROWS: usize = 24;
/// The most elements of a row that are compared at a time: of an elementwise work, a piece.
const PIECE: usize = MOST_COLUMNS;

/// Measures the copy and the works.
pub fn run(args: &Args, device: &Device, works: &[Work], report: &mut Report) -> Result<(), Stop> {
    let copied = copy(args, device);
    report.put("copy", or_error(copied))?;
    if works.is_empty() {
        return Ok(());
    }
    let mut memory = Memory::new(device, args.elements as usize)?;
    let mut known: Vec<(&str, Launcher)> = vec![];
    for work in works {
        if device.lost().is_some() {
            // What belonged to the lost context stays lost.
            device.recover().map_err(|e| e.to_string())?;
            memory = Memory::new(device, args.elements as usize)?;
        }
        let file = work.kind.file();
        let found = match known.iter().find(|(f, _)| *f == file) {
            Some((_, launcher)) => Ok(launcher.clone()),
            None => launcher(&args.root, file, device).inspect(|l| known.push((file, l.clone()))),
        };
        let result = found.map(|launcher| measure(&launcher, work, &memory));
        report.put_in("works", &work.name, or_error(result))?;
    }
    Ok(())
}

/// The device copy: bytes read and written.
fn copy(args: &Args, device: &Device) -> Result<Value, String> {
    let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
    let bytes = args.elements as usize * COPIED;
    let (clock, copies) = (Clock::new(device)?, Copies::new()?);
    let (from, to) = (device.alloc(bytes).map_err(gpu)?, device.alloc(bytes).map_err(gpu)?);
    let x = many(args.elements as usize, |i| normal(Input::X, i));
    for part in 0..(COPIED / size_of::<f32>()) {
        let at = from.address() + (part * size_of_val(x.as_slice())) as u64;
        copies.to_device(at, &x)?;
    }
    let ms = clock.median(&mut |stream| copies.copy(stream, to.address(), from.address(), bytes))?;
    Ok(json!({ "bytes": 2 * bytes, "ms": ms, "TBps": rate(2 * bytes, ms) }))
}

/// Terabytes in a second.
pub fn rate(bytes: usize, ms: f64) -> f64 {
    bytes as f64 / ms / 1e9
}

/// What the works use.
struct Memory {
    clock: Clock,
    copies: Copies,
    x: Buffer,
    y: Buffer,
    x16: Buffer,
    weight: Buffer,
    bias: Buffer,
    out: Buffer,
}

impl Memory {
    fn new(device: &Device, elements: usize) -> Result<Memory, String> {
        let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
        let (clock, copies) = (Clock::new(device)?, Copies::new()?);
        let alloc = |bytes: usize| device.alloc(bytes).map_err(gpu);
        let single = |input| {
            let buffer = alloc(elements * size_of::<f32>())?;
            copies.to_device(buffer.address(), &many(elements, |i| normal(input, i)))?;
            Ok::<Buffer, String>(buffer)
        };
        // The bits of an f16: only plain numbers are copied.
        let half = |input, count: usize| {
            let buffer = alloc(count * size_of::<u16>())?;
            copies.to_device(buffer.address(), &many(count, |i| normal_f16(input, i).to_bits()))?;
            Ok::<Buffer, String>(buffer)
        };
        Ok(Memory {
            x: single(Input::X)?,
            y: single(Input::Y)?,
            x16: half(Input::X, elements)?,
            weight: half(Input::Weight, MOST_COLUMNS)?,
            bias: half(Input::Bias, MOST_COLUMNS)?,
            out: alloc(elements * size_of::<f32>())?,
            clock,
            copies,
        })
    }

    /// Launches a work once.
    fn launch(&self, site: &mut CallSite, work: &Work, stream: &Stream) -> Result<(), String> {
        let (rows, cols) = (work.rows as i64, work.cols as i64);
        let (flat, shape, row) = ([rows * cols], [rows, cols], [cols]);
        let done = match work.kind {
            Kind::Add => {
                let tensor = |buffer| Arg::tensor(buffer, DType::F32, &flat);
                let n = Arg::from(flat[0] as i32);
                site.launch(stream, &[tensor(&self.x), tensor(&self.y), tensor(&self.out), n])
            }
            Kind::Gelu { .. } => {
                let tensor = |buffer| Arg::tensor(buffer, DType::F16, &flat);
                site.launch(stream, &[tensor(&self.x16), tensor(&self.out)])
            }
            Kind::Softmax | Kind::SoftmaxLong | Kind::NnSoftmax => {
                let tensor = |buffer| Arg::tensor(buffer, DType::F16, &shape);
                site.launch(stream, &[tensor(&self.x16), tensor(&self.out)])
            }
            Kind::LayerNorm | Kind::NnLayerNorm => {
                let tensor = |buffer| Arg::tensor(buffer, DType::F16, &shape);
                let (weight, bias) =
                    (Arg::tensor(&self.weight, DType::F16, &row), Arg::tensor(&self.bias, DType::F16, &row));
                site.launch(stream, &[tensor(&self.x16), weight, bias, tensor(&self.out), EPS.into()])
            }
        };
        done.map_err(|e| e.to_string())
    }

    /// Launches a work into memory that holds no numbers and compares what is expected of the result.
    fn compare(&self, site: &mut CallSite, work: &Work, expected: &[Row]) -> Result<Difference, String> {
        let stream = &self.clock.stream;
        let width = work.kind.width();
        self.copies.poison(stream, self.out.address(), work.elements() * width)?;
        self.launch(site, work, stream)?;
        let mut difference = Difference::default();
        for (first, row) in expected {
            let at = self.out.address() + (first * width) as u64;
            let bytes = self.copies.to_host(stream, at, row.len() * width)?;
            difference.row(work.kind, &reference::elements(work.kind, &bytes), row);
        }
        Ok(difference)
    }
}

/// A row of the result that is expected: the position of its first element, and its elements.
type Row = (usize, Vec<f64>);

/// So many rows of what is expected, the first and the last among them. The elements of an elementwise work are cut into
/// pieces.
fn expected(work: &Work, rows: usize) -> Vec<Row> {
    let cols = if work.rows == 1 { work.cols.min(PIECE) } else { work.cols };
    let pieces = work.elements().div_ceil(cols);
    let rows = rows.min(pieces);
    let first = |i: usize| i * (pieces - 1) / (rows - 1).max(1) * cols;
    let row = |i: usize| {
        let (first, count) = (first(i), cols.min(work.elements() - first(i)));
        (first, reference::row(work.kind, first, count))
    };
    many(rows, row)
}

/// Measures a work in all configurations, the kernel's own first.
fn measure(launcher: &Launcher, work: &Work, memory: &Memory) -> Value {
    let mut value = work.describe();
    let mut runs = vec![];
    let own = Sets::new();
    let small = work.small();
    let expected = [expected(&small, usize::MAX), expected(work, ROWS)];
    for configuration in std::iter::once(&own).chain(&work.others) {
        let named = if configuration.is_empty() { "default".to_string() } else { shown(configuration) };
        let run = one(launcher, [&small, work], configuration, memory, &expected);
        let mut run = or_error(run.map_err(|e| format!("{} ({named}): {e}", work.name)));
        run["configuration"] = json!(named);
        runs.push(run);
        if launcher.device().lost().is_some() {
            break;
        }
    }
    let speed = |run: &Value| run["TBps"].as_f64().unwrap_or(0.0);
    let best = runs.iter().max_by(|a, b| speed(a).total_cmp(&speed(b))).filter(|run| speed(run) > 0.0);
    value["best"] = best.cloned().unwrap_or(Value::Null);
    value["default"] = runs.first().cloned().unwrap_or(Value::Null);
    value["all"] = json!(runs);
    value
}

/// Measures one configuration. Its results are compared on the small shape first.
fn one(
    launcher: &Launcher,
    [small, work]: [&Work; 2],
    configuration: &Sets,
    memory: &Memory,
    [all, some]: &[Vec<Row>; 2],
) -> Result<Value, String> {
    let mut site = launcher.site(work.kind.kernel(), &work.sets(configuration)).map_err(|e| e.to_string())?;
    let all = memory.compare(&mut site, small, all)?;
    all.check().map_err(|e| format!("{} x {}: {e}", small.rows, small.cols))?;
    let some = memory.compare(&mut site, work, some)?;
    some.check()?;
    let ms = memory.clock.median(&mut |stream| memory.launch(&mut site, work, stream))?;
    Ok(json!({
        "ms": ms,
        "TBps": rate(work.elements() * work.kind.traffic(), ms),
        "error": Value::Null,
        "norm_of_error": some.norm().max(all.norm()),
        "compared": all.elements + some.elements,
    }))
}
