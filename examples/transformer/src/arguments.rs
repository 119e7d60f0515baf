//! The command line: what may be given, its defaults, and which numbers make no sense.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::setup::{DeviceKind, Dtype, Sampling};

/// The most sequences together. Far above what the memory of a device holds, and low enough that making the prompts
/// for them is no trouble.
const MOST_SEQUENCES: i64 = 4096;

/// Language models in the layout of GPT-2, whose every kernel is written in tk.
#[derive(Debug, Parser)]
#[command(name = "tk-transformer", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Continue a text.
    Generate(Generate),
    /// Measure how many tokens a second are read and written.
    Bench(Bench),
    /// Compare the logits of a text with those that another program computed.
    Compare(Compare),
    /// Run the model of the article.
    Article(Article),
}

/// Where to compute, and in which type.
#[derive(Clone, Copy, Debug, Args)]
pub struct Place {
    /// Where the kernels run.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: DeviceKind,
    /// The type of the weights [default: f32 on the cpu; elsewhere f16 where the model is stored so, else bf16].
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<Dtype>,
}

/// Continue a text.
#[derive(Debug, Args)]
pub struct Generate {
    /// The folder with config.json, model.safetensors and tokenizer.json.
    #[arg(long, value_name = "FOLDER")]
    pub model: PathBuf,
    /// The text to continue; several are continued together.
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "prompt_file",
        conflicts_with = "prompt_file"
    )]
    pub prompt: Vec<OsString>,
    /// A file with the text to continue; a line end at its end is left out.
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// How many tokens to write at most.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: u32,
    /// How the next token is chosen.
    #[command(flatten)]
    pub choice: Choice,
    /// Where to compute.
    #[command(flatten)]
    pub place: Place,
    /// Write the kernels of one step, with their times, to a file for chrome://tracing.
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
}

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, Args)]
pub struct Choice {
    /// Above 1 is more surprising, below 1 less; 0 always takes the likeliest token.
    #[arg(long, value_name = "F", default_value_t = 0.8, value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: f32,
    // 40 is what the authors of GPT-2 drew their samples with.
    /// Choose among the N likeliest tokens; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 40, allow_negative_numbers = true)]
    pub top_k: u32,
    /// Choose among the likeliest tokens that have this probability together; 1 for all.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = top_p, allow_negative_numbers = true)]
    pub top_p: f32,
    /// The same seed gives the same text.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub seed: u64,
}

impl Choice {
    /// The same for the engine.
    pub fn sampling(self) -> Sampling {
        let Choice { temperature, top_k, top_p, seed } = self;
        Sampling { temperature, top_k, top_p, seed }
    }
}

/// Measure how many tokens a second are read and written.
#[derive(Debug, Args)]
pub struct Bench {
    /// Which model.
    #[command(flatten)]
    pub source: Source,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    pub prompt_tokens: u32,
    /// Tokens to write after it.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens: u32,
    /// How often to measure, after one run that is not counted.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
    /// Sequences together.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_SEQUENCES))]
    pub batch: u32,
    /// Where to compute.
    #[command(flatten)]
    pub place: Place,
    /// Write the kernels of one step to a file, for chrome://tracing.
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Which model to measure.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Source {
    /// A folder with config.json and model.safetensors.
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,
    /// A model of this shape, with random weights.
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<Shape>,
}

/// Shapes that need no files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Two layers of 64.
    Tiny,
    /// 124 million parameters.
    #[value(name = "gpt2-small")]
    Gpt2Small,
}

/// Compare the logits of a text with those that another program computed.
#[derive(Debug, Args)]
pub struct Compare {
    /// The folder with config.json and model.safetensors.
    #[arg(long, value_name = "FOLDER")]
    pub model: PathBuf,
    /// The file with `ids`, the tokens of a text, and `logits`, a row for each.
    #[arg(long, value_name = "FILE.safetensors")]
    pub with: PathBuf,
    /// How far a logit may be off.
    #[arg(long, value_name = "F", value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: f32,
    /// Where to compute.
    #[command(flatten)]
    pub place: Place,
}

/// Run the model of the article.
#[derive(Debug, Args)]
pub struct Article {
    /// Sequences together.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=MOST_SEQUENCES))]
    pub batch: u32,
    /// Where the kernels run.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub device: DeviceKind,
    /// Write inputs and results to a file.
    #[arg(long, value_name = "FILE.safetensors")]
    pub write: Option<PathBuf>,
    /// Deviation of the random weights. The article's leaves attention nearly uniform, and a larger one tests it.
    #[arg(long, value_name = "F", default_value_t = 0.02, value_parser = deviation)]
    pub deviation: f32,
    /// How often to measure.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

fn number(text: &str, fits: fn(f32) -> bool, wanted: &str) -> Result<f32, String> {
    text.parse().ok().filter(|value| fits(*value)).ok_or_else(|| format!("must be {wanted}"))
}

fn temperature(text: &str) -> Result<f32, String> {
    number(text, |value| value >= 0.0 && value.is_finite(), "a finite number, at least 0")
}

fn top_p(text: &str) -> Result<f32, String> {
    number(text, |value| value > 0.0 && value <= 1.0, "a number above 0, at most 1")
}

fn tolerance(text: &str) -> Result<f32, String> {
    number(text, |value| value >= 0.0 && value.is_finite(), "a finite number, at least 0")
}

fn deviation(text: &str) -> Result<f32, String> {
    number(text, |value| value > 0.0 && value <= 1.0, "a number above 0, at most 1")
}
