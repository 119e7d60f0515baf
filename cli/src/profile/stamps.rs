//! `tk profile --device` without a profiler: how long a kernel and its loops took, by clock stamps that the compiler adds.

use std::sync::Arc;

use tk_runtime::Session;
use tk_sema::hir::HFn;
use tk_syntax::{FileId, SourceMap, Span};
use tk_tile::Loc;
use tk_tile::passes::stamp::{self, Region};

use crate::args::{DeviceName, ProfileArgs};
use crate::input::Inputs;
use crate::report::{Line, StampedLine};
use crate::run::{Prepared, choose, prepare};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{device, front};

use super::shown_line;

/// Launches that are measured, after one that is not: it compiles, and fills caches.
const LAUNCHES: usize = 3;

/// A region, and the sum of its times in nanoseconds.
type Times = Vec<(Region, u64)>;

/// Measures a launch of a kernel and shows where its time goes, loop by loop; `why` says why no profiler does, if it was not
/// asked for stamps.
pub fn run(terminal: &Terminal, args: &ProfileArgs, device: DeviceName, why: &str) -> Outcome {
    let (path, name) = front::split_target(&args.target);
    let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &args.sets)?;
    let gpu =
        device::open(device, &checked.sources, path).map_err(|e| Failure::Sentence(device::without(&e)))?;
    let session = Session::new(checked).with_stamps().with_timeout(args.timeout);
    let session = match &gpu {
        Some(gpu) => session.on(Arc::clone(gpu)),
        None => session,
    };
    let kernel = choose(&session, path, name)?;
    let (mut total, mut programs) = (Times::new(), 0u64);
    for launch in 0..=LAUNCHES {
        let Prepared { sets, values, .. } = prepare(&session, path, name, &args.args, &args.sets)?;
        session.room(kernel, &values)?;
        let result = session.run(kernel, values, &sets);
        let printed = session.printed();
        if let Err(wrong) = result {
            return front::refused(terminal, &session, &wrong);
        }
        if launch == 0 {
            // What the kernel prints itself is printed once.
            let own: String =
                printed.lines().filter(|l| stamp::parsed(l).is_none()).map(|l| format!("{l}\n")).collect();
            if !own.is_empty() {
                terminal.printed(&own)?;
            }
            continue;
        }
        for times in printed.lines().filter_map(stamp::parsed) {
            programs += 1;
            add(&mut total, times);
        }
    }
    if programs == 0 {
        return Err(Failure::Sentence("nothing was measured: no program ran".into()));
    }
    let mean = |sum: u64| sum as f64 / programs as f64 / 1e3;
    let all: Vec<(Region, f64)> = total.iter().map(|(region, sum)| (*region, mean(*sum))).collect();
    let head = Head {
        kernel: session.checked().hir.func(kernel),
        device,
        programs: programs / LAUNCHES as u64,
        why,
    };
    show(terminal, &session.checked().sources, &head, &all)
}

/// What the times are of.
struct Head<'a> {
    kernel: &'a HFn,
    device: DeviceName,
    /// Programs of a launch that were measured.
    programs: u64,
    why: &'a str,
}

fn add(total: &mut Times, times: Times) {
    if total.is_empty() {
        *total = times;
        return;
    }
    for ((_, sum), (_, time)) in total.iter_mut().zip(times) {
        *sum += time;
    }
}

fn show(terminal: &Terminal, sources: &SourceMap, head: &Head<'_>, all: &[(Region, f64)]) -> Outcome {
    let Head { kernel, device, programs, why } = *head;
    let whole = all.first().map_or(0.0, |(_, us)| *us);
    let noun = if programs == 1 { "program" } else { "programs" };
    if !terminal.is_json() {
        if !why.is_empty() {
            terminal.note(why)?;
        }
        terminal.data(&format!(
            "{} on {}: {whole:.2} us in a program, by clock stamps of {programs} {noun} in each of {LAUNCHES} launches\n\
             {:>6} {:>10} {:>10}  {:>18}\n",
            kernel.name,
            device.name(),
            "share",
            "us",
            "of its own",
            "line"
        ))?;
    }
    for (i, (region, us)) in all.iter().enumerate() {
        // The loops directly inside.
        let inside = all.iter().skip(i + 1).take_while(|(r, _)| r.depth > region.depth);
        let own = us - inside.filter(|(r, _)| r.depth == region.depth + 1).map(|(_, us)| us).sum::<f64>();
        let of_loop = |l: Loc| Span::new(FileId(l.file), l.start as usize, l.end as usize);
        let span = if region.depth == 0 { Some(kernel.span) } else { region.loc.map(of_loop) };
        let at = span.and_then(|span| Some((span.file, sources.get(span.file)?, sources.position(span).1)));
        let share = if whole > 0.0 { us / whole } else { 0.0 };
        let file = at.map_or("", |(_, source, _)| &*source.name);
        let line = at.map_or(0, |(_, _, line)| line);
        if terminal.is_json() {
            let values =
                StampedLine { file, line, depth: region.depth, us: *us, own_us: own, share, programs };
            terminal.object(&Line::StampedLine(values))?;
            continue;
        }
        let text = at.map(|(file, _, line)| shown_line(sources, file, line)).unwrap_or_default();
        let short = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let place = format!("{short}:{line}");
        terminal.data(&format!(
            "{:>5.1}% {us:>10.2} {own:>10.2}  {place:>18}  {}{text}\n",
            100.0 * share,
            "  ".repeat(region.depth as usize)
        ))?;
    }
    Ok(())
}
