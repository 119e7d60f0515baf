//! `tk profile FILE::KERNEL name=VALUE..`: where the time of a launch goes, by source line, as the cost model predicts it,
//! or with `--device cuda` as it is measured.

mod measured;
mod stamps;

use tk_driver::lines;
use tk_runtime::compile::Estimate;
use tk_runtime::predict;
use tk_sema::contract::HostArg;
use tk_syntax::{FileId, SourceMap};

use crate::args::ProfileArgs;
use crate::bench::sweep;
use crate::explain_launch::{open, place};
use crate::front;
use crate::report::{Line, Profiled, ProfiledLine, no_program};
use crate::run::{Prepared, prepare};
use crate::terminal::{Failure, Outcome, Terminal};

/// Characters of a source line that are shown.
const WIDTH: usize = 64;

/// Predicts and shows the cost of each line.
pub fn run(terminal: &Terminal, args: &ProfileArgs) -> Outcome {
    let gpu = place(&args.gpu)?;
    let (path, name) = front::split_target(&args.target);
    let (session, jit) = open(terminal, &args.input, (path, name), &args.sets)?;
    let (points, fixed) = sweep::points(&args.args)?;
    let [point] = points.as_slice() else {
        return Err(Failure::Sentence(format!("one launch is profiled, and these are {}", points.len())));
    };
    let (arguments, given) = point.with_parameters(&session, (path, name), (&fixed, &args.sets))?;
    let args = &ProfileArgs { args: arguments, sets: given, ..args.clone() };
    let Prepared { kernel, sets, values } = prepare(&session, path, name, &args.args, &args.sets)?;
    let hosts: Vec<HostArg> = values.iter().map(tk_runtime::host_arg).collect();
    if let Some(device) = args.device {
        // What no device would launch is refused before the profiler starts.
        if let Err(wrong) = session.choose(kernel, &hosts, &sets, &gpu, None) {
            return front::refused(terminal, &session, &wrong);
        }
        let name = session.checked().hir.func(kernel).name.clone();
        return measured::run(terminal, args, device, &name, &session.checked().sources);
    }
    let choice = match session.choose(kernel, &hosts, &sets, &gpu, Some(&jit)) {
        Ok(choice) => choice,
        Err(wrong) => return front::refused(terminal, &session, &wrong),
    };
    let function = &session.checked().hir.func(kernel).name;
    if choice.plan.grid.contains(&0) {
        return Err(Failure::Sentence(no_program(function, choice.plan.grid)));
    }
    let found = session.compile(kernel, &choice.plan.bindings);
    let estimate = match found.map(|(compiled, _)| predict(&jit, &compiled, &choice.plan, &gpu, true)) {
        Ok(Some(estimate)) if estimate.us.is_finite() => estimate,
        Ok(_) => return Err(Failure::Sentence(format!("kernel `{function}` does not fit {}", gpu.name))),
        Err(wrong) => return front::refused(terminal, &session, &wrong),
    };
    let sources = &session.checked().sources;
    show(terminal, sources, (function, &gpu.name, choice.origin.text()), &estimate)
}

fn show(
    terminal: &Terminal,
    sources: &SourceMap,
    (kernel, gpu, member): (&str, &str, Option<String>),
    found: &Estimate,
) -> Outcome {
    let (bound, of_bound) = found.parts.first().copied().unwrap_or(("latency", 0.0));
    let (unit, lines) = lines(sources, found);
    if terminal.is_json() {
        terminal.object(&Line::Profiled(Profiled {
            kernel,
            device: gpu,
            member,
            us: found.us,
            reasons: found.into(),
        }))?;
    } else {
        let share = 100.0 * of_bound / found.us;
        let guess = if found.is_guess { "~" } else { "" };
        let spills =
            if found.registers[1] > 0 { format!(", {} spilled", found.registers[1]) } else { String::new() };
        let member = member.map(|m| format!("{m}\n")).unwrap_or_default();
        terminal.data(&format!(
            "{kernel} on {gpu}: {guess}{:.1} us predicted, bound by {bound} ({share:.0} %)\n\
             {member}{} registers{spills}, {:.1} KiB shared, {}, {:.2} waves; shares are of {unit}\n\
             {:>6} {:>14} {:>12} {:>10} {:>10} {:>5}  {:>18}\n",
            found.us,
            found.registers[0],
            f64::from(found.shared_bytes) / 1024.0,
            tk_driver::blocks_per_sm(found.blocks_per_sm),
            found.waves,
            "share",
            "most work",
            "instr",
            "MB",
            "conflicts",
            "regs",
            "line"
        ))?;
    }
    for cost in &lines {
        let most = cost.parts.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(part, us)| (*part, *us));
        let Some(source) = sources.get(cost.file) else { continue };
        let shown = shown_line(sources, cost.file, cost.line);
        if terminal.is_json() {
            terminal.object(&Line::ProfiledLine(ProfiledLine {
                file: &source.name,
                line: cost.line,
                share: cost.share,
                unit,
                parts: cost.parts.clone(),
                instructions: cost.instructions,
                bytes: cost.bytes,
                needed: cost.needed,
                lane_bytes: cost.lane_bytes,
                tensor_copies: cost.tensor_copies,
                conflicts: cost.conflicts,
                registers: cost.registers,
            }))?;
            continue;
        }
        let (most, us) = most.unwrap_or(("", 0.0));
        let short = source.name.rsplit(['/', '\\']).next().unwrap_or(&source.name);
        terminal.data(&format!(
            "{:>5.1}% {:>14} {:>12.0} {:>10.2} {:>10.0} {:>5}  {:>18}  {shown}\n",
            100.0 * cost.share,
            format!("{us:.1} us {}", abbreviated(most)),
            cost.instructions,
            cost.bytes / 1e6,
            cost.conflicts,
            cost.registers,
            format!("{short}:{}", cost.line)
        ))?;
    }
    Ok(())
}

/// A line of the source, numbered from 1, as far as there is room for it; empty if there is none.
fn shown_line(sources: &SourceMap, file: FileId, line: usize) -> String {
    let text = sources.get(file).zip(line.checked_sub(1)).and_then(|(s, n)| s.text.lines().nth(n));
    text.unwrap_or_default().trim().chars().take(WIDTH).collect()
}

/// The name of a unit in a column.
fn abbreviated(unit: &str) -> &str {
    match unit {
        "instructions" => "issue",
        "special functions" => "special",
        "shared memory" => "shared",
        "memory accesses" => "access",
        "matrix products" => "matrix",
        other => other,
    }
}
