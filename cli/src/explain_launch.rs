//! `tk explain-launch FILE::KERNEL name=VALUE..`: which member of a `tune` list a launch uses on a target, and why.

use tk_driver::{Cache, Environment, Jit};
use tk_gpu::target::chip;
use tk_runtime::Session;
use tk_runtime::choice::{Origin, Place, Ranked};
use tk_sema::contract::HostArg;

use crate::args::{ExplainLaunchArgs, GpuArgs, InputArgs};
use crate::bench::sweep;
use crate::input::Inputs;
use crate::report::{Line, Predicted, Reasons, no_program};
use crate::run::{Prepared, prepare};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{front, suggest};

/// Explains a launch at each point of a sweep.
pub fn run(terminal: &Terminal, args: &ExplainLaunchArgs) -> Outcome {
    let place = place(&args.gpu)?;
    let (points, fixed) = sweep::points(&args.args)?;
    let (path, name) = front::split_target(&args.target);
    let (session, jit) = open(terminal, &args.input, (path, name), &args.sets)?;
    for point in &points {
        let (arguments, sets) = point.with_parameters(&session, (path, name), (&fixed, &args.sets))?;
        let Prepared { kernel, sets, values } = prepare(&session, path, name, &arguments, &sets)?;
        let hosts: Vec<HostArg> = values.iter().map(tk_runtime::host_arg).collect();
        let chosen = session.choose(kernel, &hosts, &sets, &place, Some(&jit));
        let ranked = session.ranked(kernel, &hosts, &sets, &place, &jit);
        let (chosen, ranked) = match (chosen, ranked) {
            (Ok(chosen), Ok(ranked)) => (chosen, ranked),
            (Err(wrong), _) | (_, Err(wrong)) => return front::refused(terminal, &session, &wrong),
        };
        terminal.diagnostics(&session.checked().sources, &chosen.notes)?;
        let function = &session.checked().hir.func(kernel).name;
        if chosen.plan.grid.contains(&0) {
            terminal.note(&no_program(function, chosen.plan.grid))?;
            continue;
        }
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
            let at = format!("{function} {point}");
            let count = ranked.len().saturating_sub(1);
            let members = if count == 1 { "member" } else { "members" };
            terminal.data(&format!(
                "{} on {}: a launch uses {who}, of {count} {members}{what}\n",
                at.trim(),
                place.name,
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

/// A program, and the compiler that predicts times of its kernels.
pub fn open(
    terminal: &Terminal,
    input: &InputArgs,
    (path, name): (&str, Option<&str>),
    sets: &[String],
) -> Result<(Session, Jit), Failure> {
    let checked = front::check_with(&Inputs::new(input, [path])?, path, name, sets)?;
    front::report(terminal, &checked)?;
    let environment = Environment::of_process(Some(std::path::Path::new(path)));
    let jit = Jit::new(checked.sources.clone(), environment, Cache::of_process());
    Ok((Session::new(checked), jit))
}

/// The GPU that is asked about.
pub fn place(args: &GpuArgs) -> Result<Place, Failure> {
    let refuse = |what: String| Err(Failure::Sentence(what));
    let known = || chip::names().collect::<Vec<_>>().join(", ");
    let named = args.name.as_deref().map(|name| (name, chip::chip(name)));
    if let Some((name, None)) = named {
        return refuse(format!("nothing is known of the speed of `{name}`; known are {}", known()));
    }
    let of_name = named.and_then(|(_, chip)| chip);
    let target = args.target_gpu.as_deref().or(of_name.map(|c| c.target)).unwrap_or("sm_90a");
    let Some(spec) = tk_driver::TARGETS.into_iter().find(|t| t.name == target) else {
        let names: Vec<&str> = tk_driver::TARGETS.iter().map(|t| t.name).collect();
        let hint = suggest::hint(target, &names);
        return refuse(format!("there is no target `{target}`{hint}; the targets are {}", names.join(", ")));
    };
    let Some(chip) = of_name.or_else(|| chip::usual(target)) else {
        return refuse(format!(
            "nothing is known of the speed of a GPU for `{target}`, where launches use the defaults; known are {}",
            known()
        ));
    };
    if chip.target != target {
        return refuse(format!(
            "the {} does not run binaries for `{target}`, but for `{}`",
            chip.name, chip.target
        ));
    }
    let usual = tk_driver::place_of(spec, chip);
    Ok(Place { name: args.name.clone().unwrap_or_else(|| usual.name.clone()), ..usual })
}

fn show(terminal: &Terminal, point: &sweep::Point, ranked: &Ranked, chosen: bool) -> Outcome {
    let values: Vec<String> = ranked.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let (member, estimate) = (values.join(" "), ranked.estimate.as_ref());
    let us = estimate.map(|e| e.us).filter(|us| us.is_finite());
    let workspace_bytes: u64 =
        ranked.plan.scratch.iter().filter_map(tk_runtime::workspace_bytes).map(|bytes| bytes as u64).sum();
    if terminal.is_json() {
        return terminal.object(&Line::Predicted(Predicted {
            point: point.pairs().map(|(n, v)| (n.to_string(), v)).collect(),
            member: &member,
            us,
            reasons: estimate.map(Reasons::from).unwrap_or_default(),
            workspace_bytes,
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
            let workspace = match workspace_bytes {
                0 => String::new(),
                bytes => format!(", {:.1} MiB of workspaces", bytes as f64 / f64::from(1 << 20)),
            };
            format!(
                "{:>9} us  {}; {} registers{spills}, {:.1} KiB shared, {}, {:.2} waves{workspace}",
                format!("{}{us:.1}", if e.is_guess { "~" } else { "" }),
                parts.join(", "),
                e.registers[0],
                f64::from(e.shared_bytes) / 1024.0,
                tk_driver::blocks_per_sm(e.blocks_per_sm),
                e.waves
            )
        }
        (None, Some(_)) => "does not fit the GPU".to_string(),
        (_, None) => "cannot be compiled".to_string(),
    };
    terminal.data(&format!("{mark} {name:<44} {why}\n"))
}
