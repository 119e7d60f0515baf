//! A model on a device: [`Engine`] reads prompts, generates, and gives logits.
//!
//! ```text
//! Machine: the device and its kernels ─┬─ Weights: from a checkpoint, or random
//!                                      ├─ Forward: the kernels of a forward pass, in order
//!                                      └─ State: keys and values, lengths, what was generated
//! ```
//! Everything that a step needs is on the device, and every step launches the same kernels on the same memory: a step is
//! recorded once and then replayed.

mod array;
mod forward;
mod machine;
mod weights;

pub use array::{Array, View};
pub use machine::Machine;

use tk::{DType, Graph};

use array::bytes;
use forward::{Forward, Rows};
use machine::dtype;
use weights::{Loader, Source, Weights};

use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::setup::{DeviceKind, Dtype, Memory, Sampling, Setup, Span};

/// Steps that a GPU does while the host launches one kernel by kernel to measure them: a launch with two looks at the clock takes
/// the host some 10 us, and a kernel at least 1 us.
const STEPS_AHEAD: usize = 20;

/// A model on a device.
pub struct Engine {
    machine: Machine,
    config: Config,
    setup: Setup,
    weights: Weights,
    state: State,
    /// A step of generation, once there was one.
    step: Option<Graph>,
}

/// Programs among which a step divides the keys of a head. One for each head would leave most of a GPU idle.
fn splits(setup: &Setup) -> usize {
    match (setup.device, setup.dtype) {
        (DeviceKind::Cpu, Dtype::F32) => 1,
        (DeviceKind::Cpu | DeviceKind::Cuda | DeviceKind::Hip, _) => 8,
    }
}

/// What generation changes.
struct State {
    /// Keys, then values, of each layer: `[layers, 2, sequences, heads, capacity, elements of a head]`.
    cache: Array,
    /// The last token of each sequence.
    tokens: Array,
    /// How many tokens each sequence has.
    lengths: Array,
    /// The tokens of each sequence that were generated, at their places.
    history: Array,
    /// Temperature, top-k, top-p.
    settings: Array,
    seed: Array,
    /// What programs that share a head tell each other: see `attention_one`.
    parts: Array,
    done: Array,
    /// What a step works on.
    rows: Rows,
    logits: Array,
}

impl State {
    fn new(machine: &Machine, config: &Config, setup: &Setup) -> Result<State> {
        let batch = setup.batch;
        let cache = [config.layers, 2, batch, config.heads, setup.capacity, config.head_width()];
        let state = State {
            cache: machine.array(dtype(setup.dtype), &cache)?,
            tokens: machine.array(DType::I32, &[batch])?,
            lengths: machine.array(DType::I32, &[batch])?,
            // One more than the cache has: nothing follows the last token.
            history: machine.array(DType::I32, &[batch, setup.capacity + 1])?,
            settings: machine.array(DType::F32, &[3])?,
            seed: machine.array(DType::U64, &[1])?,
            parts: machine
                .array(DType::F32, &[batch, config.heads, splits(setup), config.head_width() + 4])?,
            done: machine.array(DType::I32, &[batch, config.heads])?,
            rows: Rows::new(machine, config, dtype(setup.dtype), batch)?,
            logits: machine.array(DType::F32, &[batch, config.vocabulary])?,
        };
        state.done.buffer().fill_zero(&machine.stream)?;
        Ok(state)
    }

    fn cache_bytes(config: &Config, setup: &Setup) -> u64 {
        let shape = [config.layers, 2, setup.batch, setup.capacity, config.width];
        bytes(dtype(setup.dtype), &shape)
    }
}

impl Engine {
    /// Loads a model. `progress` is told the bytes that are done, and of how many.
    pub fn load(
        checkpoint: &Checkpoint,
        setup: &Setup,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Engine> {
        Engine::new(&checkpoint.config, setup, Source::Checkpoint(checkpoint), progress)
    }

    /// A model of random weights.
    pub fn random(config: &Config, setup: &Setup, seed: u64) -> Result<Engine> {
        Engine::new(config, setup, Source::Random(seed), &mut |_, _| ())
    }

    fn new(
        config: &Config,
        setup: &Setup,
        source: Source<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Engine> {
        forward::built_for(config)?;
        let machine = Machine::open(setup.device)?;
        let to = dtype(setup.dtype);
        let work =
            Rows::bytes(config, to, setup.batch) + bytes(DType::F32, &[setup.batch, config.vocabulary]);
        let needed = Weights::bytes(config, to) + State::cache_bytes(config, setup) + work;
        machine.room(needed, "the weights, the cache and the rows that are worked on")?;
        let mut loader = Loader { machine: &machine, source, dtype: to, progress, done: 0, all: 0 };
        let weights = loader.run(config)?;
        let state = State::new(&machine, config, setup)?;
        Ok(Engine { machine, config: config.clone(), setup: *setup, weights, state, step: None })
    }

    fn forward(&self) -> Forward<'_> {
        Forward {
            machine: &self.machine,
            dtype: dtype(self.setup.dtype),
            config: &self.config,
            weights: &self.weights,
        }
    }

    /// Reads the prompts, and gives the first new token of each sequence. What was generated before is forgotten.
    pub fn prefill(&mut self, prompts: &[Vec<u32>], sampling: &Sampling) -> Result<Vec<u32>> {
        let (batch, capacity) = (self.setup.batch, self.setup.capacity);
        if prompts.len() != batch {
            let sentence = format!("{} prompts were given, and there is room for {batch}", prompts.len());
            return Err(Failure::mistake(sentence));
        }
        if let Some(wrong) = prompts.iter().find(|p| p.is_empty() || p.len() > capacity) {
            let sentence =
                format!("a prompt has {} tokens, and a sequence has from 1 to {capacity}", wrong.len());
            return Err(Failure::mistake(sentence));
        }
        let machine = &self.machine;
        let settings = [sampling.temperature, sampling.top_k as f32, sampling.top_p];
        self.state.settings.buffer().copy_from(&machine.stream, &settings)?;
        self.state.seed.buffer().copy_from(&machine.stream, &[sampling.seed])?;
        let lengths: Vec<i32> = prompts.iter().map(|p| p.len() as i32).collect();
        self.state.lengths.buffer().copy_from(&machine.stream, &lengths)?;

        let rows = self.prompt(prompts)?;
        let ends: Vec<i32> = lengths
            .iter()
            .scan(0, |end, n| {
                Some({
                    *end += n;
                    *end - 1
                })
            })
            .collect();
        let (ends, last) = (machine.of(&ends)?, &self.state.rows);
        machine.launch("take_rows", &[rows.h.view().arg(), ends.view().arg(), last.h.view().arg()], &[])?;
        self.forward().logits_of_few(last, &self.state.logits)?;
        self.choose()?;
        self.last()
    }

    /// The next token of each sequence. Those that are full keep their last one.
    pub fn step(&mut self) -> Result<Vec<u32>> {
        if self.step.is_none() {
            self.step = Some(self.machine.capture(|| self.launch_step())?);
        }
        if let Some(graph) = self.step.as_mut() {
            graph.launch(&self.machine.stream)?;
        }
        self.last()
    }

    /// Fails if the logits of the last step are not numbers, which no choice among them would show.
    pub fn check_logits(&self) -> Result<()> {
        let count = self.setup.batch * self.config.vocabulary;
        let logits: Vec<f32> = self.machine.read(&self.state.logits, count)?;
        if logits.iter().all(|v| v.is_finite()) {
            return Ok(());
        }
        let sentence = "the model's logits are not numbers: some weights are not, or are too large";
        Err(Failure::mistake(sentence).advise("`--dtype f32` holds the largest numbers."))
    }

    /// The logits after each of the tokens, `[tokens, vocabulary]`. What was generated before is forgotten.
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        if tokens.is_empty() || tokens.len() > self.setup.capacity {
            let most = self.setup.capacity;
            let sentence = format!("{} tokens were given, and a sequence has from 1 to {most}", tokens.len());
            return Err(Failure::mistake(sentence));
        }
        let mut prompts = vec![tokens.to_vec()];
        prompts.resize(self.setup.batch, tokens.get(..1).unwrap_or_default().to_vec());
        let lengths: Vec<i32> = prompts.iter().map(|p| p.len() as i32).collect();
        self.state.lengths.buffer().copy_from(&self.machine.stream, &lengths)?;
        let rows = self.prompt(&prompts)?;
        let logits = self.machine.array(DType::F32, &[rows.count, self.config.vocabulary])?;
        self.forward().logits_of_many(&rows, &logits)?;
        self.machine.read(&logits, tokens.len() * self.config.vocabulary)
    }

    /// Bytes on the device.
    pub fn memory(&self) -> Memory {
        let state = &self.state;
        let small = [
            &state.tokens,
            &state.lengths,
            &state.history,
            &state.settings,
            &state.seed,
            &state.parts,
            &state.done,
            &state.logits,
        ];
        Memory {
            weights: Weights::bytes(&self.config, dtype(self.setup.dtype)),
            cache: state.cache.bytes(),
            work: small.iter().map(|a| a.bytes()).sum::<u64>() + state.rows.own_bytes(),
        }
    }

    /// The kernels of one step, which is done by this.
    pub fn trace(&mut self) -> Result<Vec<Span>> {
        // What is launched for the first time is loaded, which is not the time of a kernel.
        self.step()?;
        self.machine.stream.synchronize()?;
        // A device that has enough to do does not wait for the launches that are measured.
        let ahead = if self.setup.device == DeviceKind::Cpu { 0 } else { STEPS_AHEAD };
        for _ in 0..ahead {
            if let Some(graph) = self.step.as_mut() {
                graph.launch(&self.machine.stream)?;
            }
        }
        self.machine.measured(|| self.launch_step())
    }

    /// All tokens of the prompts through all layers. Their keys and values are in the cache then.
    fn prompt(&self, prompts: &[Vec<u32>]) -> Result<Rows> {
        let machine = &self.machine;
        let tokens: Vec<i32> = prompts.iter().flatten().map(|t| *t as i32).collect();
        let positions: Vec<i32> = prompts.iter().flat_map(|p| 0..p.len() as i32).collect();
        let mut starts = vec![0];
        starts.extend(prompts.iter().scan(0, |end, p| {
            Some({
                *end += p.len() as i32;
                *end
            })
        }));
        let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
        let (config, to) = (&self.config, dtype(self.setup.dtype));
        machine.room(Rows::bytes(config, to, tokens.len()), "the rows of the prompts")?;
        let rows = Rows::new(machine, config, to, tokens.len())?;
        let (tokens, positions, starts) =
            (machine.of(&tokens)?, machine.of(&positions)?, machine.of(&starts)?);
        let forward = self.forward();
        forward.embed(&tokens, &positions, &rows, 0)?;
        for layer in 0..config.layers {
            forward.layer(layer, &rows, || {
                let (keys, values) = self.cache_of(layer);
                let lengths = self.state.lengths.view();
                forward.attention(&rows, [&keys, &values], &starts, &lengths, longest)
            })?;
        }
        // The arrays that go here are freed when the device is done with them.
        machine.stream.synchronize()?;
        Ok(rows)
    }

    /// The kernels of a step: the last token of each sequence through all layers, and the next one.
    fn launch_step(&self) -> Result<()> {
        let (forward, state) = (self.forward(), &self.state);
        forward.embed(&state.tokens, &state.lengths, &state.rows, 1)?;
        for layer in 0..self.config.layers {
            forward.layer(layer, &state.rows, || {
                let (keys, values) = self.cache_of(layer);
                forward.attention_one(&state.rows, [&keys, &values], state)
            })?;
        }
        forward.logits_of_few(&state.rows, &state.logits)?;
        self.choose()
    }

    /// Chooses the next token of each sequence by its logits.
    fn choose(&self) -> Result<()> {
        let s = &self.state;
        let all = [&s.logits, &s.settings, &s.seed, &s.lengths, &s.tokens, &s.history].map(Array::view);
        let args: Vec<tk::Arg<'_>> = all.iter().map(array::View::arg).collect();
        self.machine.launch("sample", &args, &[])
    }

    /// Keys and values of a layer: `[sequences, heads, capacity, elements of a head]`.
    fn cache_of(&self, layer: usize) -> (array::View, array::View) {
        let (config, setup) = (&self.config, &self.setup);
        let shape = [setup.batch, config.heads, setup.capacity, config.head_width()];
        let size = shape.iter().product::<usize>();
        let all = self.state.cache.view();
        (all.shaped(2 * layer * size, &shape), all.shaped((2 * layer + 1) * size, &shape))
    }

    /// The last token of each sequence.
    fn last(&self) -> Result<Vec<u32>> {
        let tokens: Vec<i32> = self.machine.read(&self.state.tokens, self.setup.batch)?;
        Ok(tokens.into_iter().map(|t| t.max(0) as u32).collect())
    }
}
