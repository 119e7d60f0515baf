//! The command `article`: the model of the article that the language was made for, with random weights.
//!
//! Its norms are after the sums, its attention has no mask, its linear layers no bias, and everything is f16. The
//! layer norm is part of the product before it, so that a block of the model is five kernels.

use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype as Stored, serialize_to_file};
use serde_json::json;
use tk::half::f16;
use tk::{DType, Event, Graph};

use crate::arguments::Article;
use crate::engine::{Array, Machine, View};
use crate::failure::{Failure, Result};
use crate::output::print;
use crate::setup::DeviceKind;
use crate::{prompts, trace};

const VOCABULARY: usize = 1000;
const WIDTH: usize = 256;
const HEADS: usize = 8;
const HEAD: usize = WIDTH / HEADS;
const LAYERS: usize = 4;
const INNER: usize = 1024;
const LENGTH: usize = 128;
const EPSILON: f32 = 1e-5;

/// Forward passes between two looks at the clock of a GPU, which is exact to half a microsecond.
const AT_ONCE: u32 = 50;

/// Runs the command.
pub fn run(args: &Article) -> Result<()> {
    if let Some(path) = &args.write {
        trace::check(path)?;
    }
    let machine = Machine::open(args.device)?;
    let model = Model::new(&machine, args.deviation)?;
    let work = Work::new(&machine, args.batch as usize)?;
    let mut graph = machine.capture(|| forward(&machine, &model, &work))?;
    graph.launch(&machine.stream)?;
    machine.stream.synchronize()?;
    if let Some(path) = &args.write {
        write(path, &machine, &model, &work)?;
    }
    let mut times = measure(&machine, &mut graph, args)?;
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    if args.json {
        let found = json!({
            "device": args.device.to_string(), "batch": args.batch, "kernels": KERNELS,
            "forward_ms": median, "samples_ms": times,
        });
        return print(&format!("{found:#}\n"));
    }
    let (device, batch) = (args.device, args.batch);
    print(&format!(
        "the article's model on {device}, f16, {batch} sequences of {LENGTH}: {KERNELS} kernels in {median:.4} ms\n"
    ))
}

/// Milliseconds of a forward pass, several times.
fn measure(machine: &Machine, graph: &mut Graph, args: &Article) -> Result<Vec<f64>> {
    let at_once = match args.device {
        DeviceKind::Cpu => 1,
        DeviceKind::Cuda | DeviceKind::Hip => AT_ONCE,
    };
    let mut out = vec![];
    for _ in 0..args.repetitions {
        let start: Event = machine.stream.record()?;
        for _ in 0..at_once {
            graph.launch(&machine.stream)?;
        }
        let end = machine.stream.record()?;
        out.push(f64::from(start.elapsed_ms(&end)?) / f64::from(at_once));
    }
    Ok(out)
}

/// A block of the model. Matrices are as the article has them, `[inputs, outputs]`, and as the kernels take them.
struct Layer {
    /// By their names in the article.
    written: Vec<(&'static str, Array, [usize; 2])>,
    qkv: Array,
    out: Array,
    inner_in: Array,
    inner_out: Array,
}

struct Model {
    tokens: Array,
    positions: Array,
    layers: Vec<Layer>,
    /// Of all norms: ones and zeros.
    gain: Array,
    shift: Array,
    written_head: Array,
    head: Array,
}

impl Model {
    fn new(machine: &Machine, deviation: f32) -> Result<Model> {
        let mut seed = 0;
        let mut random = |rows: usize, columns: usize| {
            seed += 1;
            let array = machine.array(DType::F16, &[rows, columns])?;
            machine.random(&array.view(), seed, deviation, 0.0)?;
            Ok::<Array, Failure>(array)
        };
        let (tokens, positions) = (random(VOCABULARY, WIDTH)?, random(LENGTH, WIDTH)?);
        let mut layers = vec![];
        for _ in 0..LAYERS {
            let square = [WIDTH, WIDTH];
            let written = [
                ("W_q", square),
                ("W_k", square),
                ("W_v", square),
                ("W_o", square),
                ("W1", [WIDTH, INNER]),
                ("W2", [INNER, WIDTH]),
            ];
            let mut all = vec![];
            for (name, [rows, columns]) in written {
                all.push((name, random(rows, columns)?, [rows, columns]));
            }
            layers.push(Layer::new(machine, all)?);
        }
        let written_head = random(WIDTH, VOCABULARY)?;
        let head = turned(machine, &[&written_head], [WIDTH, VOCABULARY])?;
        let gain = machine.of(&[f16::ONE; WIDTH])?;
        let shift = machine.of(&[f16::ZERO; WIDTH])?;
        Ok(Model { tokens, positions, layers, gain, shift, written_head, head })
    }
}

impl Layer {
    fn new(machine: &Machine, written: Vec<(&'static str, Array, [usize; 2])>) -> Result<Layer> {
        let named = |names: &[&str]| -> Vec<&Array> {
            written.iter().filter(|(name, ..)| names.contains(name)).map(|(_, array, _)| array).collect()
        };
        let qkv = turned(machine, &named(&["W_q", "W_k", "W_v"]), [WIDTH, WIDTH])?;
        let out = turned(machine, &named(&["W_o"]), [WIDTH, WIDTH])?;
        let inner_in = turned(machine, &named(&["W1"]), [WIDTH, INNER])?;
        let inner_out = turned(machine, &named(&["W2"]), [INNER, WIDTH])?;
        Ok(Layer { written, qkv, out, inner_in, inner_out })
    }
}

/// Matrices of one shape, each turned around, one below the other.
fn turned(machine: &Machine, from: &[&Array], [rows, columns]: [usize; 2]) -> Result<Array> {
    let to = machine.array(DType::F16, &[from.len() * columns, rows])?;
    for (i, one) in from.iter().enumerate() {
        let part = to.view().shaped(i * rows * columns, &[columns, rows]);
        machine.launch("convert", &[one.view().arg(), part.arg()], &[("TURNED", "true")])?;
    }
    Ok(to)
}

/// What a forward pass works on.
struct Work {
    batch: usize,
    ids: Vec<i32>,
    tokens: Array,
    positions: Array,
    /// Where each sequence begins, and how long it is.
    starts: Array,
    lengths: Array,
    h: Array,
    qkv: Array,
    mixed: Array,
    inner: Array,
    logits: Array,
}

impl Work {
    fn new(machine: &Machine, batch: usize) -> Result<Work> {
        let rows = batch * LENGTH;
        let ids: Vec<i32> = prompts::any(VOCABULARY).take(rows).map(u32::cast_signed).collect();
        let positions: Vec<i32> = (0..rows).map(|i| (i % LENGTH) as i32).collect();
        let starts: Vec<i32> = (0..=batch).map(|i| (i * LENGTH) as i32).collect();
        let array = |columns| machine.array(DType::F16, &[rows, columns]);
        Ok(Work {
            batch,
            tokens: machine.of(&ids)?,
            positions: machine.of(&positions)?,
            starts: machine.of(&starts)?,
            lengths: machine.of(&vec![LENGTH as i32; batch])?,
            h: array(WIDTH)?,
            qkv: array(3 * WIDTH)?,
            mixed: array(WIDTH)?,
            inner: array(INNER)?,
            logits: array(VOCABULARY)?,
            ids,
        })
    }
}

/// Kernels of a forward pass.
const KERNELS: usize = 2 + 5 * LAYERS;

fn forward(machine: &Machine, model: &Model, work: &Work) -> Result<()> {
    let launch = |kernel: &str, views: &[View], numbers: &[tk::Arg<'_>], named: &[(&str, &str)]| {
        machine.launch_on(kernel, views, numbers, named)
    };
    let view = Array::view;
    let (h, qkv) = (view(&work.h), view(&work.qkv));
    let embedding = [&work.tokens, &work.positions, &model.tokens, &model.positions, &work.h];
    launch("embed", &embedding.map(view), &[0i32.into()], &[])?;

    let rows = work.batch * LENGTH;
    let q = qkv.part(0, &[rows, HEADS, HEAD], &[3 * WIDTH, HEAD, 1]);
    let past =
        |at| qkv.part(at, &[work.batch, HEADS, LENGTH, HEAD], &[LENGTH * 3 * WIDTH, HEAD, 3 * WIDTH, 1]);
    let (k, v) = (past(WIDTH), past(2 * WIDTH));
    let mixed = view(&work.mixed).shaped(0, &[rows, HEADS, HEAD]);
    let scale = 1.0 / (HEAD as f32).sqrt();
    let (gain, shift) = (view(&model.gain), view(&model.shift));
    for layer in &model.layers {
        launch("product", &[h.clone(), view(&layer.qkv), qkv.clone()], &[], &[("ACT", "identity")])?;
        let all = [q.clone(), k.clone(), v.clone(), mixed.clone(), view(&work.starts), view(&work.lengths)];
        let numbers = [(LENGTH as i32).into(), scale.into()];
        launch("attention", &all, &numbers, &[("CAUSAL", "false")])?;
        let all = [view(&work.mixed), view(&layer.out), gain.clone(), shift.clone(), h.clone()];
        launch("added_normed", &all, &[EPSILON.into()], &[])?;
        let all = [h.clone(), view(&layer.inner_in), view(&work.inner)];
        launch("product", &all, &[], &[("ACT", "gelu_tanh")])?;
        let all = [view(&work.inner), view(&layer.inner_out), gain.clone(), shift.clone(), h.clone()];
        launch("added_normed", &all, &[EPSILON.into()], &[])?;
    }
    launch("product", &[h, view(&model.head), view(&work.logits)], &[], &[("ACT", "identity")])
}

/// Writes weights, inputs and logits, for `tools/article.py` to compare.
fn write(path: &Path, machine: &Machine, model: &Model, work: &Work) -> Result<()> {
    let read = |array: &Array, shape: &[usize]| {
        let elements: Vec<f16> = machine.read(array, shape.iter().product())?;
        let bytes: Vec<u8> = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
        Ok::<_, Failure>((Stored::F16, shape.to_vec(), bytes))
    };
    let mut all = vec![
        ("token_emb".to_string(), read(&model.tokens, &[VOCABULARY, WIDTH])?),
        ("pos_emb".to_string(), read(&model.positions, &[LENGTH, WIDTH])?),
        ("output_proj".to_string(), read(&model.written_head, &[WIDTH, VOCABULARY])?),
        ("logits".to_string(), read(&work.logits, &[work.batch, LENGTH, VOCABULARY])?),
    ];
    for (i, layer) in model.layers.iter().enumerate() {
        for (name, array, shape) in &layer.written {
            all.push((format!("blocks.{i}.{name}"), read(array, shape)?));
        }
        for (name, array) in [
            ("ln1_weight", &model.gain),
            ("ln1_bias", &model.shift),
            ("ln2_weight", &model.gain),
            ("ln2_bias", &model.shift),
        ] {
            all.push((format!("blocks.{i}.{name}"), read(array, &[WIDTH])?));
        }
    }
    let ids = work.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    all.push(("ids".to_string(), (Stored::I32, vec![work.batch, LENGTH], ids)));
    let failed =
        |e: safetensors::SafeTensorError| Failure::mistake(format!("cannot write {}: {e}", path.display()));
    let views = all.iter().map(|(name, (dtype, shape, bytes))| {
        TensorView::new(*dtype, shape.clone(), bytes).map(|tensor| (name.clone(), tensor))
    });
    let views: Vec<(String, TensorView<'_>)> =
        views.collect::<std::result::Result<_, _>>().map_err(failed)?;
    trace::write_whole(path, |beside| serialize_to_file(views, None, beside).map_err(failed))
}
