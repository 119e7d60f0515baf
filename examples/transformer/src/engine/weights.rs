//! The weights of a model on the device: read from a checkpoint, or random.
//!
//! Files of GPT-2 keep matrices as `[inputs, outputs]`, kernels take `[outputs, inputs]`. A kernel turns them around and
//! converts them, a piece of [`PIECE`] bytes after the other, so loading needs little memory beside the model.

use tk::DType;

use super::array::{Array, bytes};
use super::machine::{Machine, dtype};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::failure::Result;
use crate::setup::Dtype;

/// Bytes that go to the device at once: enough for its bandwidth, little beside any model that takes time to load.
const PIECE: usize = 8 << 20;

/// Deviation of random weights, as GPT-2 was initialised.
const DEVIATION: f32 = 0.02;

/// A layer norm.
pub struct Norm {
    pub gain: Array,
    pub shift: Array,
}

/// A linear layer.
pub struct Linear {
    /// `[outputs, inputs]`
    pub weight: Array,
    pub bias: Array,
}

/// A block of the model.
pub struct Layer {
    pub attention_norm: Norm,
    /// Queries, keys and values.
    pub attention_in: Linear,
    pub attention_out: Linear,
    pub inner_norm: Norm,
    pub inner_in: Linear,
    pub inner_out: Linear,
}

/// All of it.
pub struct Weights {
    pub tokens: Array,
    pub positions: Array,
    pub layers: Vec<Layer>,
    pub last_norm: Norm,
    /// The output, where it is not `tokens`.
    pub head: Option<Array>,
}

impl Weights {
    /// Bytes of the weights of a model.
    pub fn bytes(config: &Config, to: DType) -> u64 {
        crate::checkpoint::expected(config).iter().map(|(_, shape)| bytes(to, shape)).sum()
    }
}

/// Where weights come from.
pub enum Source<'a> {
    Checkpoint(&'a Checkpoint),
    /// A seed.
    Random(u64),
}

/// Brings weights to the device.
pub struct Loader<'a> {
    pub machine: &'a Machine,
    pub source: Source<'a>,
    pub dtype: DType,
    /// Is told the bytes that were read, and how many there are.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// Bytes of the weights on the device so far, and in the end.
    pub done: u64,
    pub all: u64,
}

impl Loader<'_> {
    /// All weights of a model.
    pub fn run(&mut self, config: &Config) -> Result<Weights> {
        self.all = Weights::bytes(config, self.dtype);
        let (width, inner) = (config.width, config.inner);
        let tokens = self.matrix("wte.weight", config.vocabulary, width, false)?;
        let positions = self.matrix("wpe.weight", config.context, width, false)?;
        let mut layers = Vec::with_capacity(config.layers);
        for i in 0..config.layers {
            layers.push(Layer {
                attention_norm: self.norm(&format!("h.{i}.ln_1"), width)?,
                attention_in: self.linear(&format!("h.{i}.attn.c_attn"), width, 3 * width)?,
                attention_out: self.linear(&format!("h.{i}.attn.c_proj"), width, width)?,
                inner_norm: self.norm(&format!("h.{i}.ln_2"), width)?,
                inner_in: self.linear(&format!("h.{i}.mlp.c_fc"), width, inner)?,
                inner_out: self.linear(&format!("h.{i}.mlp.c_proj"), inner, width)?,
            });
        }
        let last_norm = self.norm("ln_f", width)?;
        let head = match config.tied {
            true => None,
            false => Some(self.matrix("lm_head.weight", config.vocabulary, width, false)?),
        };
        Ok(Weights { tokens, positions, layers, last_norm, head })
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm> {
        let gain = self.vector(&format!("{name}.weight"), width, 1.0)?;
        Ok(Norm { gain, shift: self.vector(&format!("{name}.bias"), width, 0.0)? })
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = self.matrix(&format!("{name}.weight"), outputs, inputs, true)?;
        Ok(Linear { weight, bias: self.vector(&format!("{name}.bias"), outputs, 0.0)? })
    }

    fn vector(&mut self, name: &str, width: usize, mean: f32) -> Result<Array> {
        self.tensor(name, &[width], [1, width], false, mean)
    }

    /// A matrix of these extents on the device; `turned` has the file them the other way.
    fn matrix(&mut self, name: &str, rows: usize, columns: usize, turned: bool) -> Result<Array> {
        self.tensor(name, &[rows, columns], [rows, columns], turned, 0.0)
    }

    fn tensor(
        &mut self,
        name: &str,
        shape: &[usize],
        [rows, columns]: [usize; 2],
        turned: bool,
        mean: f32,
    ) -> Result<Array> {
        let array = self.machine.array(self.dtype, shape)?;
        match &self.source {
            Source::Random(seed) => {
                // Tensors of one seed differ.
                let own = name.bytes().fold(*seed, |s, b| s.wrapping_mul(0x0100_0000_01b3) ^ u64::from(b));
                self.machine.random(&array.view().shaped(0, &[rows, columns]), own, DEVIATION, mean)?;
            }
            Source::Checkpoint(checkpoint) => {
                let stored = checkpoint.tensor(name)?;
                self.pieces(&array, stored.bytes, stored.dtype, [rows, columns], turned)?;
            }
        }
        self.done += array.bytes();
        (self.progress)(self.done, self.all);
        Ok(array)
    }

    /// Copies the rows of a matrix in a file, some at a time.
    fn pieces(
        &self,
        to: &Array,
        stored: &[u8],
        stored_as: Dtype,
        [rows, columns]: [usize; 2],
        turned: bool,
    ) -> Result<()> {
        let machine = self.machine;
        // What the file has, row by row.
        let (count, length) = if turned { (columns, rows) } else { (rows, columns) };
        let row_bytes = length * stored_as.size();
        let at_once = (PIECE / row_bytes.max(1)).clamp(1, count.max(1));
        let staging = machine.array(dtype(stored_as), &[at_once, length])?;
        for (piece, bytes) in stored.chunks(at_once * row_bytes).enumerate() {
            let (first, some) = (piece * at_once, bytes.len() / row_bytes);
            staging.buffer().copy_from(&machine.stream, bytes)?;
            let from = staging.view().shaped(0, &[some, length]);
            let part = match turned {
                true => to.view().part(first, &[length, some], &[columns, 1]),
                false => to.view().shaped(first * columns, &[some, columns]),
            };
            let named = [("TURNED", if turned { "true" } else { "false" })];
            machine.launch("convert", &[from.arg(), part.arg()], &named)?;
        }
        // The next tensor has another staging array, and this one must not go while it is read.
        machine.stream.synchronize()?;
        Ok(())
    }
}
