//! `tk bench FILE::KERNEL name=VALUE..`: how long a kernel takes, and what share of the machine that is.

mod plot;
mod rate;
pub mod sweep;

use std::time::Duration;

use tk_runtime::Session;
use tk_runtime::gpu::{Caches, CudaError, LaunchError, Times, Trial};
use tk_sema::contract::{SetValue, split_cargs};
use tk_syntax::Diagnostic;

use crate::args::BenchArgs;
use crate::deadline::Deadline;
use crate::input::Inputs;
use crate::report::{Benched, Line, Rates, Timing};
use crate::run::{Prepared, choose, prepare};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{device, front, value};

use rate::Rate;
use sweep::Point;

/// The most launches of a measurement.
const MOST: usize = 1000;

/// One of the kernels that are compared.
struct Variant {
    /// What it is called in the table.
    label: String,
    /// `FILE[::KERNEL]`.
    target: String,
    /// Values by name, in addition to those of every variant.
    sets: Vec<String>,
}

/// A measured launch.
struct Row {
    point: Point,
    variant: String,
    cold: Option<Times>,
    warm: Times,
    rate: Rate,
    /// What was chosen, and by whom, if it is not the defaults.
    chosen: Option<String>,
}

/// Measures a kernel, at each point of a sweep, and each variant that is compared.
pub fn run(terminal: &Terminal, args: &BenchArgs) -> Outcome {
    let api = device::api(args.device)?;
    let (points, fixed) = sweep::points(&args.args)?;
    // Mistakes are better known before the work than after it.
    args.plot.as_deref().map_or(Ok(()), plot::check)?;
    let mut compared = vec![];
    for variant in variants(args)? {
        let (path, name) = front::split_target(&variant.target);
        let sets: Vec<String> = args.sets.iter().chain(&variant.sets).cloned().collect();
        let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &sets)?;
        if let Some(failure) = front::failure(&checked) {
            front::report(terminal, &checked)?;
            return Err(failure);
        }
        choose(&Session::new(checked.clone()), path, name)?;
        compared.push((variant, sets, checked));
    }
    let mut rows: Vec<Row> = vec![];
    for point in &points {
        for (variant, sets, checked) in &compared {
            let (path, name) = front::split_target(&variant.target);
            front::report(terminal, checked)?;
            let launcher =
                device::launcher(api, Session::new(checked.clone()), path).map_err(Failure::Sentence)?;
            let session = launcher.session();
            let (arguments, sets) = point.with_parameters(session, (path, name), (&fixed, sets))?;
            let Prepared { kernel, sets, values } = prepare(session, path, name, &arguments, &sets)?;
            session.room(kernel, &values)?;
            let gpu = launcher.device().name().to_string();
            let wrong = |e| device::refused(terminal, launcher.session(), e);
            let trial = match Trial::new(launcher.clone(), kernel, values, &sets) {
                Ok(trial) => trial,
                Err(error) => return wrong(error),
            };
            let row = match measure(&trial, &sets, args.time, args.timeout, &gpu, terminal) {
                Ok(Measured { cold, warm, rate, chosen, notes }) => {
                    terminal.diagnostics(&launcher.session().checked().sources, &notes)?;
                    Row { point: point.clone(), variant: variant.label.clone(), cold, warm, rate, chosen }
                }
                Err(error) => return wrong(error),
            };
            terminal.diagnostics(&launcher.session().checked().sources, &launcher.notes())?;
            if rows.is_empty() && !terminal.is_json() {
                head(terminal, &launcher.session().checked().hir.func(kernel).name, &gpu)?;
            }
            show(terminal, &row, &gpu, &variant.target)?;
            rows.push(row);
        }
    }
    match &args.plot {
        Some(path) => plot::write(path, &rows).map_err(Failure::Sentence),
        None => Ok(()),
    }
}

/// What is compared: the kernel itself, and each of `--compare`.
fn variants(args: &BenchArgs) -> Result<Vec<Variant>, String> {
    let base = Variant { label: String::new(), target: args.target.clone(), sets: vec![] };
    let mut out = vec![base];
    for text in &args.compare {
        let is_values = text.contains('=') && !std::path::Path::new(text).exists();
        let values = if is_values { split_values(text)? } else { vec![] };
        let target = if is_values { args.target.clone() } else { text.clone() };
        out.push(Variant { label: text.clone(), target, sets: values });
    }
    Ok(out)
}

/// The values of `A=1,S=[2,3]`, each of which has a name.
fn split_values(text: &str) -> Result<Vec<String>, String> {
    let parts = split_cargs(text);
    parts.iter().try_for_each(|p| value::split(p).map(|_| ()))?;
    Ok(parts.into_iter().map(str::to_string).collect())
}

/// A launch that was measured.
struct Measured {
    /// With cold caches, if the device has some to empty.
    cold: Option<Times>,
    warm: Times,
    rate: Rate,
    chosen: Option<String>,
    /// Why records were not used.
    notes: Vec<Diagnostic>,
}

/// How much later a process ends that cannot give a launch up: the launch itself says more where it can.
const MORE: Duration = Duration::from_millis(500);

/// Ends the process with a sentence if a launch takes longer than this.
fn deadline(limit: Duration, terminal: Terminal) -> Deadline {
    Deadline::new(limit + MORE, move || {
        let text = format!("the kernel is still running after {} s", limit.as_secs_f64());
        let _ = terminal.failure(&text, 2);
        std::process::exit(2);
    })
}

/// The times of a launch, and what it does.
fn measure(
    trial: &Trial,
    sets: &[(String, SetValue)],
    within: Duration,
    timeout: Option<Duration>,
    gpu: &str,
    terminal: &Terminal,
) -> Result<Measured, LaunchError> {
    let choice = trial.choice(sets)?;
    let rate = Rate::new(&trial.traffic(&choice)?, gpu);
    let chosen = choice.origin.text();
    let mut site = trial.site(sets)?;
    let watched = timeout.map(|limit| deadline(limit, *terminal));
    let done = trial.once(&mut site, timeout)?;
    drop(watched);
    if !done {
        let limit = timeout.unwrap_or_default().as_secs_f64();
        let sentence = format!("the kernel is still running after {limit} s");
        let fix = "look for a loop that does not terminate, or raise the time limit".to_string();
        return Err(CudaError { sentence, fix, code: None }.into());
    }
    let cold =
        if trial.has_cold() { Some(trial.times(&mut site, Caches::Cold, within, MOST)?) } else { None };
    let warm = trial.times(&mut site, Caches::Warm, within, MOST)?;
    Ok(Measured { cold, warm, rate, chosen, notes: choice.notes.clone() })
}

fn head(terminal: &Terminal, kernel: &str, gpu: &str) -> Outcome {
    terminal.data(&format!("{kernel} on {gpu}\n"))?;
    terminal.data(&format!(
        "{:>10} {:>16} {:>10} {:>9} {:>9}  of the roofline\n",
        "cold ms", "10 .. 90 %", "warm ms", "GB/s", "TFLOP/s"
    ))
}

impl Row {
    /// The time that counts: from memory, if caches can be emptied.
    fn times(&self) -> &Times {
        self.cold.as_ref().unwrap_or(&self.warm)
    }
}

fn show(terminal: &Terminal, row: &Row, gpu: &str, target: &str) -> Outcome {
    let ms = row.times().median();
    if terminal.is_json() {
        let timing = |t: &Times| Timing {
            median_ms: t.median(),
            least_ms: t.least(),
            p10_ms: t.quantile(0.1),
            p90_ms: t.quantile(0.9),
            runs: t.count(),
        };
        let point = row.point.pairs().map(|(n, v)| (n.to_string(), v)).collect();
        let bound = row.rate.bound();
        return terminal.object(&Line::Benched(Benched {
            target,
            variant: &row.variant,
            tuned: row.chosen.as_deref(),
            device: gpu,
            point,
            cold: row.cold.as_ref().map(timing),
            warm: timing(&row.warm),
            rates: Rates {
                bytes: row.rate.bytes.round(),
                operations: row.rate.operations.round(),
                gb_per_s: row.rate.gb_per_s(ms),
                tflop_per_s: row.rate.tflop_per_s(ms),
                bound: bound.map(|b| b.name()),
                roofline_ms: bound.map(|b| b.ms),
                roofline_share: bound.map(|b| b.ms / ms),
                is_guess: row.rate.is_guess,
            },
        }));
    }
    let times = row.times();
    let spread = format!("{} .. {}", number(times.quantile(0.1)), number(times.quantile(0.9)));
    let share = row
        .rate
        .bound()
        .map_or(String::new(), |b| format!("{:.0} % ({})", (100.0 * b.ms / ms).min(999.0), b.name()));
    let guess = if row.rate.is_guess { "~" } else { "" };
    let line = format!(
        "{:>10} {:>16} {:>10} {:>9} {:>9}  {:<18} {} {} {}",
        row.cold.as_ref().map_or("-".into(), |t| number(t.median())),
        spread,
        number(row.warm.median()),
        format!("{guess}{}", digits(row.rate.gb_per_s(ms))),
        format!("{guess}{}", digits(row.rate.tflop_per_s(ms))),
        share,
        row.point,
        row.variant,
        row.chosen.as_ref().map_or(String::new(), |c| format!("({c})")),
    );
    terminal.data(&format!("{}\n", line.trim_end()))
}

/// Milliseconds: four digits, and not more than four after the point.
fn number(ms: f64) -> String {
    let digits = match ms {
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        m if m >= 1.0 => 3,
        _ => 4,
    };
    format!("{ms:.digits$}")
}

/// A rate with three digits.
fn digits(rate: f64) -> String {
    let after = match rate {
        r if r >= 100.0 => 0,
        r if r >= 10.0 => 1,
        r if r >= 1.0 => 2,
        _ => 4,
    };
    format!("{rate:.after$}")
}
