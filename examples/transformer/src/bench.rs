//! The command `bench`: how many tokens a second are read and written, as mean and standard deviation.
//!
//! Guarantees the same work each time: prompts follow from a fixed sequence, the likeliest token is always taken, and
//! no token ends a sequence.

use std::time::Instant;

use serde_json::{Value, json};

use crate::arguments::{Bench, Shape};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::generate::load;
use crate::output::{bytes, print, tokens};
use crate::setup::{Dtype, Memory, Sampling, Setup};
use crate::{prompts, trace};

/// Seed of the random weights. Their values do not matter; that they are the same each time does.
const SEED: u64 = 1;

/// Runs the command.
pub fn run(args: &Bench) -> Result<()> {
    if let Some(path) = &args.trace {
        trace::check(path)?;
    }
    let (model, config, checkpoint) = match (&args.source.model, args.source.shape) {
        (Some(folder), _) => {
            let checkpoint = Checkpoint::open(folder)?;
            (folder.display().to_string(), checkpoint.config.clone(), Some(checkpoint))
        }
        (None, Some(Shape::Gpt2Small)) => ("gpt2-small".into(), Config::gpt2_small(), None),
        (None, Some(Shape::Tiny) | None) => ("tiny".into(), Config::tiny(), None),
    };
    let setup = setup(args, &config, checkpoint.as_ref())?;
    let mut engine = match &checkpoint {
        Some(checkpoint) => load(checkpoint, &setup)?,
        None => Engine::random(&config, &setup, SEED)?,
    };
    let prompts = prompts(args, config.vocabulary);
    // The first run also compiles kernels and fills caches.
    measure(&mut engine, args, &prompts)?;
    let samples: Result<Vec<Sample>> =
        (0..args.repetitions).map(|_| measure(&mut engine, args, &prompts)).collect();
    let samples = samples?;
    let found = Found {
        model,
        setup,
        prompt: Spread::of(samples.iter().map(|sample| sample.prompt)),
        generation: Spread::of(samples.iter().map(|sample| sample.generation)),
        first_ms: Spread::of(samples.iter().map(|sample| sample.first_ms)),
        memory: engine.memory(),
    };
    if let Some(path) = &args.trace {
        // The cache is full after a measurement, and a step in the middle is like most others.
        engine.prefill(&prompts, &Sampling::greedy())?;
        trace::write(path, &engine.trace()?)?;
    }
    if args.json { print(&format!("{:#}\n", found.json(args))) } else { print(&found.table(args)) }
}

fn setup(args: &Bench, config: &Config, checkpoint: Option<&Checkpoint>) -> Result<Setup> {
    let capacity = args.prompt_tokens as usize + args.tokens as usize;
    if capacity > config.context {
        let (prompt, generated) = (args.prompt_tokens, args.tokens);
        let context = tokens(config.context);
        let sentence =
            format!("{prompt} + {generated} tokens do not fit into the model's context of {context}");
        return Err(Failure::mistake(sentence).advise("Ask for fewer with `--prompt-tokens` or `--tokens`."));
    }
    let stored = checkpoint.map_or(Dtype::F32, Checkpoint::stored);
    let dtype = Dtype::chosen(args.place.dtype, args.place.device, stored);
    Ok(Setup { device: args.place.device, dtype, batch: args.batch as usize, capacity })
}

fn prompts(args: &Bench, vocabulary: usize) -> Vec<Vec<u32>> {
    let mut tokens = prompts::any(vocabulary);
    (0..args.batch).map(|_| tokens.by_ref().take(args.prompt_tokens as usize).collect()).collect()
}

/// One measurement.
struct Sample {
    /// Tokens a second.
    prompt: f64,
    /// Tokens a second.
    generation: f64,
    /// Milliseconds.
    first_ms: f64,
}

fn measure(engine: &mut Engine, args: &Bench, prompts: &[Vec<u32>]) -> Result<Sample> {
    let begin = Instant::now();
    engine.prefill(prompts, &Sampling::greedy())?;
    let prefill = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    for _ in 0..args.tokens {
        engine.step()?;
    }
    let steps = begin.elapsed().as_secs_f64();
    let batch = f64::from(args.batch);
    Ok(Sample {
        prompt: batch * f64::from(args.prompt_tokens) / prefill.max(f64::MIN_POSITIVE),
        generation: batch * f64::from(args.tokens) / steps.max(f64::MIN_POSITIVE),
        first_ms: prefill * 1e3,
    })
}

/// Mean and standard deviation of samples.
struct Spread {
    mean: f64,
    /// Of the samples as a part of all that could be measured; 0 of a single one.
    deviation: f64,
    samples: Vec<f64>,
}

impl Spread {
    fn of(samples: impl Iterator<Item = f64>) -> Spread {
        let samples: Vec<f64> = samples.collect();
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Spread { mean, deviation, samples }
    }

    fn json(&self) -> Value {
        json!({ "mean": self.mean, "deviation": self.deviation, "samples": self.samples })
    }

    fn row(&self, what: &str, unit: &str) -> String {
        format!("{what:<12}{:>12.1} ± {:>8.1} {unit}\n", self.mean, self.deviation)
    }
}

struct Found {
    model: String,
    setup: Setup,
    prompt: Spread,
    generation: Spread,
    first_ms: Spread,
    memory: Memory,
}

impl Found {
    fn json(&self, args: &Bench) -> Value {
        let Memory { weights, cache, work } = self.memory;
        json!({
            "model": self.model,
            "device": self.setup.device.to_string(),
            "dtype": self.setup.dtype.to_string(),
            "batch": args.batch,
            "prompt_tokens": args.prompt_tokens,
            "tokens": args.tokens,
            "repetitions": args.repetitions,
            "prompt_tokens_per_second": self.prompt.json(),
            "generation_tokens_per_second": self.generation.json(),
            "first_token_ms": self.first_ms.json(),
            "memory": { "weights": weights, "cache": cache, "work": work },
        })
    }

    fn table(&self, args: &Bench) -> String {
        let Setup { device, dtype, .. } = self.setup;
        let Memory { weights, cache, work } = self.memory;
        let mut table = format!(
            "{} on {device}, {dtype}, batch {}, {} + {} tokens, {} repetitions\n",
            self.model, args.batch, args.prompt_tokens, args.tokens, args.repetitions
        );
        table += &self.prompt.row("prompt", "tokens/s");
        table += &self.generation.row("generation", "tokens/s");
        table += &self.first_ms.row("first token", "ms");
        table +=
            &format!("memory: weights {}, cache {}, work {}\n", bytes(weights), bytes(cache), bytes(work));
        table
    }
}
