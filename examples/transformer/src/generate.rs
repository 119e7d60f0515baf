//! The command `generate`: text that appears while it is computed, and what it took.
//!
//! Guarantees that no sequence gets more tokens than there is room for, and that an interrupt during the text ends with the
//! statistics of what there is. An interrupt while the model is loaded ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::arguments::Generate;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::engine::Engine;
use crate::failure::{Failure, Result};
use crate::output::{bytes, bytes_bar, note, print, tokens, tokens_bar};
use crate::setup::{Dtype, Memory, Setup};
use crate::text::{Stream, Tokenizer};
use crate::{prompts, trace};

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was finished.
    Done,
    /// Ctrl-C was pressed.
    Interrupted,
}

/// Runs the command.
pub fn run(args: &Generate) -> Result<End> {
    let texts = prompts::texts(args)?;
    if let Some(path) = &args.trace {
        trace::check(path)?;
    }
    let checkpoint = Checkpoint::open(&args.model)?;
    let config = &checkpoint.config;
    let tokenizer = Tokenizer::open(&args.model, config.vocabulary)?;
    let prompts = prompts::encode(&texts, &tokenizer, config)?;
    let longest = prompts.iter().map(Vec::len).max().unwrap_or_default();
    let (device, most) = (args.place.device, args.max_tokens as usize);
    let setup = Setup {
        device,
        dtype: Dtype::chosen(args.place.dtype, device, checkpoint.stored()),
        batch: prompts.len(),
        capacity: longest.saturating_add(most).min(config.context),
    };
    let mut engine = load(&checkpoint, &setup)?;
    let stop = listen()?;

    let begin = Instant::now();
    let first = engine.prefill(&prompts, &args.choice.sampling())?;
    let mut times = Times { prefill: begin.elapsed(), steps: Duration::ZERO };
    engine.check_logits()?;
    let mut writing = Writing::new(&tokenizer, config, &prompts, most);
    writing.take(&first)?;
    let end = write_on(&mut engine, &mut writing, &mut times, &stop)?;
    writing.finish(&texts)?;

    report(prompts.iter().map(Vec::len).sum(), &writing, &times, engine.memory());
    if let Some(path) = &args.trace {
        trace::write(path, &engine.trace()?)?;
    }
    Ok(end)
}

/// Brings a model to the device, under a bar.
pub fn load(checkpoint: &Checkpoint, setup: &Setup) -> Result<Engine> {
    let bar = bytes_bar("loading");
    let engine = Engine::load(checkpoint, setup, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    engine
}

/// Turns Ctrl-C into a flag. Whoever presses it twice does not want to wait for the current step.
fn listen() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&stop);
    let handler = move || {
        if pressed.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    match ctrlc::set_handler(handler) {
        Ok(()) => Ok(stop),
        Err(error) => Err(Failure::mistake(format!("cannot listen for Ctrl-C: {error}"))),
    }
}

/// Steps until every sequence ended, or Ctrl-C. Sequences go in step; what a step gives for one that ended is dropped.
fn write_on(engine: &mut Engine, writing: &mut Writing, times: &mut Times, stop: &AtomicBool) -> Result<End> {
    while !writing.ended() {
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Interrupted);
        }
        let begin = Instant::now();
        let next = engine.step()?;
        times.steps += begin.elapsed();
        writing.take(&next)?;
    }
    Ok(End::Done)
}

struct Times {
    prefill: Duration,
    steps: Duration,
}

/// One growing text.
struct Sequence<'t> {
    stream: Stream<'t>,
    text: String,
    tokens: usize,
    /// The tokens that follow its prompt in the context. One more can be written, as nothing follows that one.
    room: usize,
    ended: bool,
}

/// All growing texts. A single one is printed while it grows; of several, each is printed when all are complete,
/// because their pieces would mingle.
struct Writing<'t> {
    sequences: Vec<Sequence<'t>>,
    end: Option<u32>,
    most: usize,
    context: usize,
    /// Tokens that each sequence got, those after its end included.
    rounds: usize,
    /// Whether the context ended a text.
    full: bool,
    bar: Option<indicatif::ProgressBar>,
}

impl<'t> Writing<'t> {
    fn new(tokenizer: &'t Tokenizer, config: &Config, prompts: &[Vec<u32>], most: usize) -> Writing<'t> {
        let sequence = |prompt: &Vec<u32>| {
            let room = config.context.saturating_sub(prompt.len());
            Sequence { stream: tokenizer.stream(), text: String::new(), tokens: 0, room, ended: false }
        };
        Writing {
            sequences: prompts.iter().map(sequence).collect(),
            end: config.end,
            most,
            context: config.context,
            rounds: 0,
            full: false,
            bar: (prompts.len() > 1).then(|| tokens_bar("writing", most as u64)),
        }
    }

    fn ended(&self) -> bool {
        self.rounds >= self.most || self.sequences.iter().all(|sequence| sequence.ended)
    }

    /// Takes the next token of each sequence. Those of a sequence that ended mean nothing.
    fn take(&mut self, next: &[u32]) -> Result<()> {
        self.rounds += 1;
        let single = self.sequences.len() == 1;
        for (sequence, token) in self.sequences.iter_mut().zip(next).filter(|(sequence, _)| !sequence.ended) {
            sequence.tokens += 1;
            if self.end == Some(*token) {
                sequence.ended = true;
                continue;
            }
            if sequence.tokens > sequence.room {
                sequence.ended = true;
                self.full |= self.rounds < self.most;
            }
            let piece = sequence.stream.push(*token)?;
            match piece {
                Some(piece) if single => print(&piece)?,
                Some(piece) => sequence.text.push_str(&piece),
                None => {}
            }
        }
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        Ok(())
    }

    /// Prints what is left: of a single text its end, of several each below its prompt.
    fn finish(&mut self, prompts: &[String]) -> Result<()> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let single = self.sequences.len() == 1;
        for (number, (sequence, prompt)) in self.sequences.iter_mut().zip(prompts).enumerate() {
            let rest = sequence.stream.flush()?.unwrap_or_default();
            if single {
                print(&format!("{rest}\n"))?;
            } else {
                let between = if number == 0 { "" } else { "\n" };
                print(&format!("{between}> {prompt}\n{}{rest}\n", sequence.text))?;
            }
        }
        if self.full {
            note(&format!("the context of {} is full, so a text ends here", tokens(self.context)));
        }
        Ok(())
    }
}

fn report(prompt: usize, writing: &Writing, times: &Times, memory: Memory) {
    let written: usize = writing.sequences.iter().map(|sequence| sequence.tokens).sum();
    // The first token of each sequence comes with the prompt.
    let stepped = written - writing.sequences.len().min(written);
    note(&format!("prompt: {}{}", tokens(prompt), rate(prompt, times.prefill)));
    note(&format!("generation: {}{}", tokens(written), rate(stepped, times.steps)));
    note(&format!("first token: {:.1} ms", times.prefill.as_secs_f64() * 1e3));
    let Memory { weights, cache, work } = memory;
    note(&format!("memory: weights {}, cache {}, work {}", bytes(weights), bytes(cache), bytes(work)));
}

/// Nothing where nothing was measured.
fn rate(count: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if count == 0 || seconds == 0.0 {
        return String::new();
    }
    format!(", {:.1} tokens/s", count as f64 / seconds)
}
