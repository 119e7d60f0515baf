//! The order of kernels in a forward pass: [`Forward`], on [`Rows`] of activations.
//!
//! A row is a token. Few rows, as in a step of generation, take as long as reading the weights does, and go through kernels
//! that read them once; many go through tiles.

use tk::DType;

use super::State;
use super::array::{Array, View, bytes};
use super::machine::Machine;
use super::weights::{Linear, Norm, Weights};
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::setup::DeviceKind;

/// The most rows for which a product reads the weights again for each row: with more, a tile of 64 rows takes less time
/// although most of it is padding.
const FEW: usize = 4;

/// Elements of a row that a kernel holds, of those that were built, in order. The same as in `kernels/model.tk`.
const BLOCKS: [usize; 3] = [256, 1024, 2048];

/// The elements of a head for which attention was built.
const HEADS: [usize; 2] = [32, 64];

/// What is computed of some tokens.
pub struct Rows {
    pub count: usize,
    /// The residual stream, `[count, width]`.
    pub h: Array,
    /// `h` after a layer norm, where a product does not do that itself.
    normed: Array,
    /// Queries, keys and values of each row, side by side.
    qkv: Array,
    /// What attention gave.
    mixed: Array,
    /// The middle of a feed-forward layer.
    inner: Array,
}

impl Rows {
    /// Room for that many rows.
    pub fn new(machine: &Machine, config: &Config, to: DType, count: usize) -> Result<Rows> {
        let array = |dtype, columns| machine.array(dtype, &[count, columns]);
        Ok(Rows {
            count,
            h: array(DType::F32, config.width)?,
            normed: array(to, config.width)?,
            qkv: array(to, 3 * config.width)?,
            mixed: array(to, config.width)?,
            inner: array(to, config.inner)?,
        })
    }

    /// The bytes that rows have.
    pub fn bytes(config: &Config, to: DType, count: usize) -> u64 {
        bytes(DType::F32, &[count, config.width]) + bytes(to, &[count, 5 * config.width + config.inner])
    }

    /// The bytes of these.
    pub fn own_bytes(&self) -> u64 {
        [&self.h, &self.normed, &self.qkv, &self.mixed, &self.inner].iter().map(|a| a.bytes()).sum()
    }
}

/// Fails if no kernel was built for the shape of a model.
pub fn built_for(config: &Config) -> Result<()> {
    block(config.width)?;
    let head = config.head_width();
    if HEADS.contains(&head) {
        return Ok(());
    }
    let sentence =
        format!("the model has heads of {head} elements, and attention was built for {HEADS:?} elements");
    Err(Failure::mistake(sentence).advise("An `export` in kernels/model.tk with more values builds more."))
}

/// The smallest block that holds a row, as the bundle names it.
fn block(width: usize) -> Result<&'static str> {
    let names = ["256", "1024", "2048"];
    let found = BLOCKS.iter().position(|b| *b >= width).and_then(|i| names.get(i));
    found.copied().ok_or_else(|| {
        let most = BLOCKS.iter().max().copied().unwrap_or(0);
        Failure::mistake(format!("the model is {width} elements wide, and its kernels were built for {most}"))
            .advise("An `export` in kernels/model.tk with more values builds more.")
    })
}

/// A model, and where it runs.
pub struct Forward<'a> {
    pub machine: &'a Machine,
    /// Of weights and activations.
    pub dtype: DType,
    pub config: &'a Config,
    pub weights: &'a Weights,
}

impl Forward<'_> {
    /// The first `h`. The position of a token is its number in `positions` less `back`.
    pub fn embed(&self, tokens: &Array, positions: &Array, rows: &Rows, back: i32) -> Result<()> {
        let all = [tokens, positions, &self.weights.tokens, &self.weights.positions, &rows.h];
        self.machine.launch_on("embed", &all.map(Array::view), &[back.into()], &[])
    }

    /// A block of the model. `attention` makes `mixed` of `qkv`.
    pub fn layer(&self, number: usize, rows: &Rows, attention: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(layer) = self.weights.layers.get(number) else { return Ok(()) };
        self.normed_linear(rows, &layer.attention_norm, &layer.attention_in, "identity", &rows.qkv)?;
        attention()?;
        self.added_linear(rows, &rows.mixed, &layer.attention_out)?;
        self.normed_linear(rows, &layer.inner_norm, &layer.inner_in, "gelu_tanh", &rows.inner)?;
        self.added_linear(rows, &rows.inner, &layer.inner_out)
    }

    /// `to = activation(norm(h) @ weight.T + bias)`
    fn normed_linear(
        &self,
        rows: &Rows,
        norm: &Norm,
        linear: &Linear,
        activation: &str,
        to: &Array,
    ) -> Result<()> {
        let eps = self.config.epsilon.into();
        let (block, act) = (("BLOCK", block(self.config.width)?), ("ACT", activation));
        if rows.count <= FEW {
            let all = [&rows.h, &norm.gain, &norm.shift, &linear.weight, &linear.bias, to];
            let named = [block, act, ("ROWS", self.rows("2"))];
            return self.machine.launch_on("few_normed", &all.map(Array::view), &[eps], &named);
        }
        let all = [&rows.h, &norm.gain, &norm.shift, &rows.normed];
        self.machine.launch_on("normed", &all.map(Array::view), &[eps], &[block])?;
        let all = [&rows.normed, &linear.weight, &linear.bias, to];
        self.machine.launch_on("wide", &all.map(Array::view), &[], &[act])
    }

    /// `h += x @ weight.T + bias`
    fn added_linear(&self, rows: &Rows, x: &Array, linear: &Linear) -> Result<()> {
        let all = [x, &linear.weight, &linear.bias, &rows.h].map(Array::view);
        if rows.count <= FEW {
            // As much of a row as there is; a GPU is to have all of it on its way at once.
            let inputs = linear.weight.bytes() / linear.bias.bytes().max(1);
            let rows = self.rows("1");
            let some = match inputs {
                0..=256 => "256",
                257..=1024 => "1024",
                _ if rows == "1" => "4096",
                _ => "1024",
            };
            return self.machine.launch_on("few_added", &all, &[], &[("BK", some), ("ROWS", rows)]);
        }
        self.machine.launch_on("wide_added", &all, &[], &[])
    }

    /// Attention of prompts: sequence `s` has the rows from `starts[s]` on, and `lengths[s]` keys with them.
    pub fn attention(
        &self,
        rows: &Rows,
        [keys, values]: [&View; 2],
        starts: &Array,
        lengths: &View,
        longest: usize,
    ) -> Result<()> {
        let [q, k, v] = self.heads(rows);
        let longest = (longest as i32).into();
        let (starts, lengths) = (starts.view(), lengths.clone());
        let all = [k, v, keys.clone(), values.clone(), starts.clone(), lengths.clone()];
        self.machine.launch_on("remember", &all, &[longest], &[])?;
        let all = [q, keys.clone(), values.clone(), self.mixed(rows), starts, lengths];
        self.machine.launch_on("attention", &all, &[longest, self.scale()], &[("CAUSAL", "true")])
    }

    /// Attention of one row of each sequence.
    pub fn attention_one(&self, rows: &Rows, [keys, values]: [&View; 2], state: &State) -> Result<()> {
        let [q, k, v] = self.heads(rows);
        let (lengths, parts, done) = (state.lengths.view(), state.parts.view(), state.done.view());
        let all = [q, k, v, keys.clone(), values.clone(), self.mixed(rows), lengths, parts, done];
        self.machine.launch_on("attention_one", &all, &[self.scale()], &[])
    }

    /// The logits of few rows.
    pub fn logits_of_few(&self, rows: &Rows, to: &Array) -> Result<()> {
        let norm = &self.weights.last_norm;
        let all = [&rows.h, &norm.gain, &norm.shift, self.head(), to];
        let named = [("BLOCK", block(self.config.width)?), ("ROWS", self.rows("4"))];
        self.machine.launch_on("few_logits", &all.map(Array::view), &[self.config.epsilon.into()], &named)
    }

    /// The logits of many rows.
    pub fn logits_of_many(&self, rows: &Rows, to: &Array) -> Result<()> {
        let norm = &self.weights.last_norm;
        let all = [&rows.h, &norm.gain, &norm.shift, &rows.normed];
        let named = [("BLOCK", block(self.config.width)?)];
        self.machine.launch_on("normed", &all.map(Array::view), &[self.config.epsilon.into()], &named)?;
        self.machine.launch_on("wide_logits", &[&rows.normed, self.head(), to].map(Array::view), &[], &[])
    }

    /// Rows of the weights in a program of the kernels for few rows; `on_gpu` is what a GPU has. See `kernels/model.tk`.
    fn rows(&self, on_gpu: &'static str) -> &'static str {
        match (self.machine.kind, self.dtype) {
            (DeviceKind::Cpu, DType::F32) => "16",
            (DeviceKind::Cpu | DeviceKind::Cuda | DeviceKind::Hip, _) => on_gpu,
        }
    }

    fn head(&self) -> &Array {
        self.weights.head.as_ref().unwrap_or(&self.weights.tokens)
    }

    fn scale(&self) -> tk::Arg<'static> {
        (1.0 / (self.config.head_width() as f32).sqrt()).into()
    }

    /// Queries, keys and values of rows: `[rows, heads, elements]`.
    fn heads(&self, rows: &Rows) -> [View; 3] {
        let (width, head) = (self.config.width, self.config.head_width());
        let shape = [rows.count, self.config.heads, head];
        [0, width, 2 * width].map(|at| rows.qkv.view().part(at, &shape, &[3 * width, head, 1]))
    }

    fn mixed(&self, rows: &Rows) -> View {
        rows.mixed.view().shaped(0, &[rows.count, self.config.heads, self.config.head_width()])
    }
}
