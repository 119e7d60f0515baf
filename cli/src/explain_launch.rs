//! `tk explain-launch FILE::KERNEL name=VALUE..`: which member of a `tune` list a launch uses on a target, and why.

use tk_driver::{Cache, Environment, Jit};
use tk_gpu::target::chip;
use tk_runtime::choice::{Origin, Place, Ranked};
use tk_runtime::gpu::predict;
use tk_runtime::{Compiled, Session};
use tk_sema::contract::{self, HostArg, Plan};

use crate::args::{ExplainLaunchArgs, GpuArgs};
use crate::bench::sweep;
use crate::input::Inputs;
use crate::report::{Line, Predicted};
use crate::run::{Prepared, prepare};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{front, suggest};

/// Explains a launch at each point of a sweep.
pub fn run(terminal: &Terminal, args: &ExplainLaunchArgs) -> Outcome {
    let place = place(&args.gpu)?;
    let (points, fixed) = sweep::points(&args.args)?;
    let (path, name) = front::split_target(&args.target);
    let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &args.sets)?;
    front::report(terminal, &checked)?;
    let environment = Environment::of_process(Some(std::path::Path::new(path)));
    let jit = Jit::new(checked.sources.clone(), environment, Cache::of_process());
    let session = Session::new(checked);
    for point in &points {
        let arguments = point.with_parameters(&session, path, name, &point.apply(&fixed))?;
        let sets: Vec<String> = args.sets.iter().map(|s| point.apply_to(s)).collect();
        let Prepared { kernel, sets, values } = prepare(&session, path, name, &arguments, &sets)?;
        let hosts: Vec<HostArg> = values.iter().map(tk_runtime::host_arg).collect();
        let judge = |compiled: &Compiled, plan: &Plan| predict(&jit, compiled, plan, &place, false);
        let chosen = session.choose(kernel, &hosts, &sets, &place, Some(&judge));
        let ranked = session.ranked(kernel, &hosts, &sets, place.facts, &judge);
        let (chosen, ranked) = match (chosen, ranked) {
            (Ok(chosen), Ok(ranked)) => (chosen, ranked),
            (Err(wrong), _) | (_, Err(wrong)) => return front::refused(terminal, &session, &wrong),
        };
        terminal.diagnostics(&session.checked().sources, &chosen.notes)?;
        let (values, who) = match &chosen.origin {
            Origin::Defaults => (vec![], "the defaults"),
            Origin::Record(values, _) => (values.clone(), "the member of a tuning record"),
            Origin::Model(values) => (values.clone(), "what the cost model prefers"),
        };
        if !terminal.is_json() {
            let what = if session.checked().hir.func(kernel).contract.tune.is_some() {
                ""
            } else {
                "; it has no `tune` list, so these are proposed ones"
            };
            let kernel = &session.checked().hir.func(kernel).name;
            let at = format!("{kernel} {point}");
            terminal.data(&format!(
                "{} on {}: a launch uses {who}, of {} members{what}\n",
                at.trim(),
                place.name,
                ranked.len().saturating_sub(1)
            ))?;
        }
        for (i, r) in ranked.iter().enumerate() {
            let is_chosen = r.values == values;
            if i < args.most || is_chosen || r.values.is_empty() {
                show(terminal, point, r, is_chosen)?;
            }
        }
    }
    Ok(())
}

/// The GPU that is asked about.
pub fn place(args: &GpuArgs) -> Result<Place, Failure> {
    let Some(spec) = tk_driver::TARGETS.into_iter().find(|t| t.name == args.target_gpu) else {
        let names: Vec<&str> = tk_driver::TARGETS.iter().map(|t| t.name).collect();
        let hint = suggest::hint(&args.target_gpu, &names);
        return Err(Failure::Sentence(format!("there is no target `{}`{hint}", args.target_gpu)));
    };
    let known = match &args.name {
        Some(name) => chip::chip(name),
        None => chip::usual(spec.name),
    };
    let Some(chip) = known else {
        let what = args.name.as_ref().unwrap_or(&args.target_gpu);
        return Err(Failure::Sentence(format!("nothing is known of the speed of `{what}`")));
    };
    let name = args.name.clone().unwrap_or_else(|| chip.name.to_string());
    let facts = contract::Device {
        sms: chip.sms.into(),
        smem: spec.shared_bytes.into(),
        target: tk_driver::facts_about(spec),
    };
    Ok(Place { facts, target: spec.name.into(), name })
}

fn show(terminal: &Terminal, point: &sweep::Point, ranked: &Ranked, chosen: bool) -> Outcome {
    let values: Vec<String> = ranked.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let (member, estimate) = (values.join(" "), ranked.estimate.as_ref());
    let us = estimate.map(|e| e.us).filter(|us| us.is_finite());
    if terminal.is_json() {
        let number = |of: fn(&tk_runtime::compile::Estimate) -> u32| estimate.map_or(0, of);
        return terminal.object(&Line::Predicted(Predicted {
            point: point.pairs().map(|(n, v)| (n.to_string(), v)).collect(),
            member: &member,
            us,
            parts: estimate.map(|e| e.parts.iter().copied().collect()).unwrap_or_default(),
            registers: number(|e| e.registers[0]),
            spilled: number(|e| e.registers[1]),
            shared_bytes: number(|e| e.shared_bytes),
            blocks_per_sm: number(|e| e.blocks_per_sm),
            waves: estimate.map_or(0.0, |e| e.waves),
            chosen,
        }));
    }
    let name = if member.is_empty() { "defaults".to_string() } else { member };
    let mark = if chosen { "->" } else { "  " };
    let why = match (us, estimate) {
        (Some(us), Some(e)) => {
            let parts: Vec<String> =
                e.parts.iter().take(3).map(|(part, t)| format!("{part} {:.0} %", 100.0 * t / us)).collect();
            let spills =
                if e.registers[1] > 0 { format!(", spills {}", e.registers[1]) } else { String::new() };
            format!(
                "{us:>9.1} us  {}; {} registers{spills}, {:.1} KiB shared, {} blocks/SM, {:.2} waves",
                parts.join(", "),
                e.registers[0],
                f64::from(e.shared_bytes) / 1024.0,
                e.blocks_per_sm,
                e.waves
            )
        }
        (None, Some(_)) => "does not fit the GPU".to_string(),
        (_, None) => "cannot be compiled".to_string(),
    };
    terminal.data(&format!("{mark} {name:<44} {why}\n"))
}
