//! `tk profile --device cuda`: a launch measured by NVIDIA's profiler, Nsight Compute, with its samples by source line.
//!
//! The profiler starts this program again, as `tk run`, and replays the kernel until it has read all counters. Debug
//! information of the binary maps instructions to lines; each sample of a warp belongs to the instruction at which it
//! was, with the reason for which it did not issue.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tk_driver::Environment;
use tk_syntax::{FileId, SourceMap};

use crate::args::{DeviceName, ProfileArgs};
use crate::report::{Line, Measured, MeasuredLine};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::this_command;

use super::{shown_line, stamps};

/// What is asked of the profiler.
const SECTIONS: [&str; 4] = ["SourceCounters", "SpeedOfLight", "Occupancy", "LaunchStats"];
/// Reasons that are shown for a line.
const SHOWN: usize = 2;
/// The least share of a line's samples of a reason that is shown.
const LEAST: f64 = 0.15;

/// The names of its reasons, and what they mean for a kernel in tiles.
const REASONS: [(&str, &str); 20] = [
    ("long_sb", "memory"),
    ("short_sb", "shared memory, special functions"),
    ("selected", "issuing"),
    ("not_selected", "other warps issue"),
    ("wait", "fixed latency"),
    ("math", "busy units"),
    ("gmma", "matrix products"),
    ("warpgroup_arrive", "matrix products"),
    ("barrier", "barrier"),
    ("membar", "fence"),
    ("lg", "queue of memory accesses"),
    ("mio", "queue of shared memory"),
    ("tex", "queue of textures"),
    ("drain", "stores at the end"),
    ("imc", "constants"),
    ("no_inst", "instructions not in the cache"),
    ("branch_resolving", "branch"),
    ("dispatch", "dispatch"),
    ("sleep", "sleep"),
    ("misc", "other"),
];

/// What the profiler says of a launch.
#[derive(Debug, Default)]
struct Launch {
    device: Option<String>,
    us: f64,
    registers: f64,
    shared_bytes: f64,
    /// Percent of the warps that a multiprocessor can have.
    occupancy: f64,
    /// Percent of the peak of each level.
    peaks: Vec<(&'static str, f64)>,
    lines: Vec<Sampled>,
}

/// A line of the source.
#[derive(Debug, Default)]
struct Sampled {
    /// The name of the file, without folders.
    file: String,
    line: usize,
    samples: f64,
    instructions: f64,
    reasons: BTreeMap<String, f64>,
}

/// Measures a launch of a kernel and shows where its time goes: by lines where there is a profiler, else by loops.
pub fn run(
    terminal: &Terminal,
    args: &ProfileArgs,
    device: DeviceName,
    kernel: &str,
    sources: &SourceMap,
) -> Outcome {
    if device != DeviceName::Cuda {
        let why = format!("`{}` has no profiler", device.name());
        return stamps::run(terminal, args, device, if args.stamps { "" } else { &why });
    }
    if args.stamps {
        return stamps::run(terminal, args, device, "");
    }
    let Some(ncu) = Environment::of_process(None).ncu() else {
        let why = "there is no profiler: Nsight Compute, the `ncu` that TK_NCU may name, measures lines";
        return stamps::run(terminal, args, device, why);
    };
    if args.target.starts_with('-') {
        return Err(Failure::Sentence("a program on standard input cannot be measured; name a file".into()));
    }
    let folder = tempfile::tempdir().map_err(|e| format!("cannot create a folder for the report: {e}"))?;
    let report = folder.path().join("launch.ncu-rep");
    let launch = measure(&ncu.path, &report, args, kernel)?;
    show(terminal, sources, kernel, &launch)
}

/// Runs the profiler.
fn measure(ncu: &Path, report: &Path, args: &ProfileArgs, kernel: &str) -> Result<Launch, Failure> {
    let this = this_command()?;
    let mut first: Vec<OsString> = ["-f", "-o"].map(Into::into).into();
    first.push(report.into());
    first.extend(["--launch-count", "1", "-k"].map(Into::into));
    first.push(format!("regex:^{kernel}").into());
    first.extend(SECTIONS.iter().flat_map(|s| ["--section", s]).map(Into::into));
    first.push(this.get_program().into());
    first.extend(this.get_args().map(Into::into));
    first.extend(["run", &args.target].map(Into::into));
    first.extend(args.args.iter().map(Into::into));
    first.extend(args.sets.iter().flat_map(|s| ["--set", s]).map(Into::into));
    first.extend(["--device", DeviceName::Cuda.name()].map(Into::into));
    first.extend(args.timeout.map(|t| format!("--timeout={}", t.as_secs_f64()).into()));
    let ran = run_tool(ncu, &first)?;
    if !report.is_file() {
        return Err(Failure::Sentence(why(ncu, &ran)));
    }
    let page = |page: &str, more: &[&str]| -> Result<String, Failure> {
        let mut args: Vec<OsString> = vec!["-i".into(), report.into()];
        args.extend(["--csv", "--print-units", "base", "--page", page].map(Into::into));
        args.extend(more.iter().map(Into::into));
        let ran = run_tool(ncu, &args)?;
        if !ran.status.success() {
            return Err(Failure::Sentence(why(ncu, &ran)));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    let unclear = || Failure::Sentence(format!("the report of {} cannot be read", ncu.display()));
    let mut launch = totals(&page("raw", &[])?).ok_or_else(unclear)?;
    launch.lines = lines(&page("source", &["--print-source", "cuda,sass"])?).ok_or_else(unclear)?;
    Ok(launch)
}

fn run_tool(tool: &Path, args: &[OsString]) -> Result<Output, Failure> {
    let ran = Command::new(tool).args(args).output();
    ran.map_err(|e| Failure::Sentence(format!("cannot run {}: {e}", tool.display())))
}

/// Why there is no report: what the profiler says, else what the launch said.
fn why(ncu: &Path, ran: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    if out.contains("ERR_NVGPUCTRPERM") {
        return "the driver lets only an administrator read the counters of the GPU: NVIDIA's page on \
                ERR_NVGPUCTRPERM says how to change that"
            .into();
    }
    let said = out.lines().chain(err.lines()).find_map(|l| l.strip_prefix("==ERROR== "));
    let said =
        said.map(str::to_string).or_else(|| err.lines().find(|l| !l.trim().is_empty()).map(String::from));
    format!("{} has measured nothing: {}", ncu.display(), said.unwrap_or_else(|| "it says nothing".into()))
}

/// A number as the profiler prints it: `1,024.5`.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// The counters of the launch; the first row has the names, the second the units.
fn totals(text: &str) -> Option<Launch> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().ok()?;
    let [names, _units, values, ..] = rows.as_slice() else { return None };
    let text = |name: &str| values.get(names.iter().position(|n| n == name)?);
    let of = |name: &str| text(name).and_then(number);
    let peak = |level, name: &str| Some((level, of(&format!("{name}.avg.pct_of_peak_sustained_elapsed"))?));
    let peaks =
        [peak("memory", "gpu__dram_throughput"), peak("L2", "lts__throughput"), peak("SM", "sm__throughput")];
    Some(Launch {
        device: text("device__attribute_display_name").map(String::from),
        us: of("gpu__time_duration.sum")? / 1e3,
        registers: of("launch__registers_per_thread").unwrap_or(0.0),
        shared_bytes: of("launch__shared_mem_per_block").unwrap_or(0.0),
        occupancy: of("sm__warps_active.avg.pct_of_peak_sustained_active").unwrap_or(0.0),
        peaks: peaks.into_iter().flatten().collect(),
        lines: vec![],
    })
}

/// The lines with samples or instructions. A file begins with its path and the function, then come the names of the columns;
/// rows without a line number are instructions, which their line sums up.
fn lines(text: &str) -> Option<Vec<Sampled>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    let (mut out, mut file, mut columns): (Vec<Sampled>, String, Vec<String>) =
        (vec![], String::new(), vec![]);
    for row in reader.records() {
        let row = row.ok()?;
        match row.get(0) {
            Some("File Path") => {
                file = PathBuf::from(row.get(1)?).file_name()?.to_string_lossy().into_owned()
            }
            Some("Line No") => columns = row.iter().map(String::from).collect(),
            Some(line) => {
                let Ok(line) = line.parse() else { continue };
                let value = |name: &str| row.get(columns.iter().position(|c| c == name)?).and_then(number);
                let stall = |(name, text): (&String, &str)| {
                    let name = name.strip_prefix("stall_").filter(|n| !n.contains(' '))?;
                    Some((name.to_string(), number(text)?)).filter(|(_, n)| *n > 0.0)
                };
                out.push(Sampled {
                    file: file.clone(),
                    line,
                    samples: value("# Samples")?,
                    instructions: value("Instructions Executed").unwrap_or(0.0),
                    reasons: columns.iter().zip(row.iter()).filter_map(stall).collect(),
                });
            }
            None => {}
        }
    }
    Some(out)
}

/// The name of a reason in words; one that is new as the profiler has it.
fn reason(name: &str) -> &str {
    REASONS.iter().find(|(own, _)| *own == name).map_or(name, |(_, words)| words)
}

fn show(terminal: &Terminal, sources: &SourceMap, kernel: &str, launch: &Launch) -> Outcome {
    let device = launch.device.as_deref().unwrap_or("the GPU");
    let all: f64 = launch.lines.iter().map(|l| l.samples).sum::<f64>().max(1.0);
    if terminal.is_json() {
        terminal.object(&Line::Measured(Measured {
            kernel,
            device,
            us: launch.us,
            registers: launch.registers,
            shared_bytes: launch.shared_bytes,
            occupancy: launch.occupancy / 100.0,
            peaks: launch.peaks.iter().map(|(level, percent)| (*level, percent / 100.0)).collect(),
        }))?;
    } else {
        let peaks: Vec<String> =
            launch.peaks.iter().map(|(level, percent)| format!("{level} {percent:.0} %")).collect();
        terminal.data(&format!(
            "{kernel} on {device}: {:.1} us measured, of the peak: {}\n\
             {:.0} registers, {:.1} KiB shared, {:.0} % of the warps of a multiprocessor\n\
             {:>6} {:>12}  {:>18}  waits for\n",
            launch.us,
            peaks.join(", "),
            launch.registers,
            launch.shared_bytes / 1024.0,
            launch.occupancy,
            "share",
            "instr",
            "line",
        ))?;
    }
    for l in launch.lines.iter().filter(|l| l.samples > 0.0 || l.instructions > 0.0) {
        let mut reasons: Vec<(&str, f64)> = vec![];
        for (name, samples) in &l.reasons {
            let words = reason(name);
            match reasons.iter_mut().find(|(known, _)| *known == words) {
                Some((_, n)) => *n += samples / l.samples.max(1.0),
                None => reasons.push((words, samples / l.samples.max(1.0))),
            }
        }
        reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share = l.samples / all;
        if terminal.is_json() {
            terminal.object(&Line::MeasuredLine(MeasuredLine {
                file: &l.file,
                line: l.line,
                share,
                samples: l.samples,
                instructions: l.instructions,
                reasons: reasons.into_iter().collect(),
            }))?;
            continue;
        }
        let reasons: Vec<String> = reasons
            .iter()
            .take(SHOWN)
            .filter(|(_, share)| *share >= LEAST)
            .map(|(words, share)| format!("{words} {:.0} %", 100.0 * share))
            .collect();
        terminal.data(&format!(
            "{:>5.1}% {:>12.0}  {:>18}  {:<40}  {}\n",
            100.0 * share,
            l.instructions,
            format!("{}:{}", l.file, l.line),
            reasons.join(", "),
            text_of(sources, &l.file, l.line)
        ))?;
    }
    Ok(())
}

/// The text of a line of the file with this name.
fn text_of(sources: &SourceMap, file: &str, line: usize) -> String {
    let named = |source: &str| source.rsplit(['/', '\\']).next() == Some(file);
    let found = sources.iter().find(|(_, s)| named(&s.name)).map(|(id, _)| id);
    shown_line(sources, found.unwrap_or(FileId(0)), if found.is_some() { line } else { 0 })
}
