//! What the cost model predicts, as the language server shows it: [`of_kernels`].

use std::collections::BTreeMap;

use tk_driver::{LineCost, Outlook};
use tk_sema::Checked;
use tk_syntax::FileId;

use crate::ide::costs;

/// The target that is asked about, unless the client names another one.
const TARGET: &str = "sm_90a";
/// Bytes of a lane at once from which on an access is wide enough to be no news: a warp moves a line with them.
const NARROW: u32 = 2;
/// Bytes of the widest access of a lane.
const WIDEST: u32 = 16;
/// The least share of the time of a line that is shown.
pub const LEAST: f64 = 0.005;

/// What the kernels of a program are expected to cost on a target; the error says why nothing is known of it.
pub fn of_kernels(checked: &Checked, target: &str) -> Result<Vec<costs::KernelCost>, String> {
    let target = if target.is_empty() { TARGET } else { target };
    let Some(spec) = tk_driver::TARGETS.into_iter().find(|t| t.name == target) else {
        let names: Vec<&str> = tk_driver::TARGETS.iter().map(|t| t.name).collect();
        return Err(format!("there is no target `{target}`; the targets are {}", names.join(", ")));
    };
    if tk_driver::usual_place(spec).is_none() {
        return Err(format!("nothing is known of the speed of a GPU for `{target}`"));
    }
    let found = tk_driver::outlook(checked, spec);
    // The lines of all instances of a kernel are compared in the unit that bounds the first one.
    let mut units = BTreeMap::new();
    let of_kernel = |outlook: &Outlook| {
        let (bound, lines) = tk_driver::lines(&checked.sources, &outlook.expected.estimate);
        let unit = *units.entry(outlook.kernel).or_insert(bound);
        of_kernel(checked, target, outlook, (unit, &lines))
    };
    Ok(found.iter().map(of_kernel).collect())
}

fn of_kernel(
    checked: &Checked,
    target: &str,
    outlook: &Outlook,
    (unit, lines): (&str, &[LineCost]),
) -> costs::KernelCost {
    let time = |c: &LineCost| c.parts.get(unit).copied().unwrap_or(0.0);
    let all = lines.iter().map(time).sum::<f64>().max(f64::MIN_POSITIVE);
    let is_own = |c: &&LineCost| c.file == FileId(0);
    let remarks = outlook.expected.remarks.iter().filter(|r| r.0 == FileId(0));
    let remarks: Vec<(usize, &str)> = remarks.map(|(_, line, text)| (*line, text.as_str())).collect();
    // Spilled registers belong to no instruction: the place to look at is where most are live.
    let [_, spilled] = outlook.expected.estimate.registers;
    let most = lines.iter().filter(is_own).max_by_key(|c| (c.registers, std::cmp::Reverse(c.line)));
    let most = most.filter(|_| spilled > 0).map(|c| c.line);
    let own = lines.iter().filter(is_own).map(|c| (c, time(c) / all));
    let own = own.filter(|(c, share)| *share >= LEAST || most == Some(c.line));
    let spills = |c: &LineCost| if most == Some(c.line) { spilled } else { 0 };
    let text = checked.sources.get(FileId(0)).map_or("", |s| &s.text);
    let exports = outlook.exports.iter().map(|at| costs::export_text(text, at.end as usize).to_string());
    costs::KernelCost {
        exports: exports.collect(),
        kernel: checked.hir.func(outlook.kernel).name.clone(),
        summary: summary(target, outlook),
        lines: own.map(|(c, share)| of_line((unit, share), c, &remarks, spills(c))).collect(),
        tiles: lines.iter().filter(is_own).map(|c| (c.line, c.tile_bytes)).filter(|t| t.1 > 0).collect(),
    }
}

/// `T=f16: 90 registers · 0 spilled · 128.1 KiB shared · 1 block/SM · bound by L2 86 % (sm_90a, NVIDIA H100, extents of 4096)`
fn summary(target: &str, outlook: &Outlook) -> String {
    let Outlook { values, expected, .. } = outlook;
    let found = &expected.estimate;
    let [registers, spilled] = found.registers;
    let mut parts = vec![format!("{registers} registers"), format!("{spilled} spilled")];
    if found.shared_bytes > 0 {
        parts.push(match found.shared_bytes {
            n if n < 1024 => format!("{n} bytes shared"),
            n => format!("{:.1} KiB shared", f64::from(n) / 1024.0),
        });
    }
    parts.push(tk_driver::blocks_per_sm(found.blocks_per_sm));
    if let Some((bound, us)) = found.parts.first() {
        parts.push(format!("bound by {bound} {:.0} %", 100.0 * us / found.us));
    }
    let values = if values.is_empty() { String::new() } else { format!("{values}: ") };
    // What depends on data is a guess.
    let guess = if found.is_guess { "~" } else { "" };
    let place = [target.to_string(), expected.gpu.clone(), expected.extents_text()];
    let place: Vec<String> = place.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{guess}{values}{} ({})", parts.join(" · "), place.join(", "))
}

fn of_line(
    (unit, share): (&str, f64),
    cost: &LineCost,
    remarks: &[(usize, &str)],
    spilled: u32,
) -> costs::LineCost {
    let access = access(cost);
    let mut tooltip = format!(
        "{:.3e} instructions of warps, {:.2} MB, {} registers live",
        cost.instructions,
        cost.bytes / 1e6,
        cost.registers
    );
    if cost.tile_bytes > 0 {
        tooltip.push_str(&format!(", a tile of {} bytes a thread", cost.tile_bytes));
    }
    if cost.conflicts > 0.0 {
        tooltip.push_str(&format!(", {:.3e} cycles of bank conflicts", cost.conflicts));
    }
    if let Some(access) = &access {
        tooltip.push_str(&format!("; {}", access.0));
    }
    if cost.lane_bytes > 0 && cost.lane_bytes < WIDEST {
        tooltip.push_str(&format!(", because {}", cost.limit));
    }
    let mut own: Vec<&str> = remarks.iter().filter(|(line, _)| *line == cost.line).map(|r| r.1).collect();
    own.dedup();
    own.iter().for_each(|text| tooltip.push_str(&format!("; {text}")));
    let mut label = format!("{:.0} % of {unit}", 100.0 * share);
    if let Some((text, true)) = access {
        label.push_str(&format!(" · {text}"));
    }
    if spilled > 0 {
        label.push_str(&format!(" · {spilled} registers spill"));
        tooltip.push_str(&format!(
            "; most registers are live here, {spilled} more than a thread has: they are written to memory and read again"
        ));
    }
    costs::LineCost { line: cost.line, label, tooltip }
}

/// How a line accesses device memory, and whether another way would be better.
fn access(cost: &LineCost) -> Option<(String, bool)> {
    // Of a sector, less than a half: the rest is moved for nothing.
    let used = if cost.needed > 0.0 { cost.needed / cost.bytes.max(cost.needed) } else { 1.0 };
    let wasted = if used < 0.5 { format!(", {:.0} % of what is moved", 100.0 * used) } else { String::new() };
    match (cost.lane_bytes, cost.tensor_copies) {
        (0, true) => Some((format!("tensor copies{wasted}"), used < 0.5)),
        (0, false) => None,
        (n, _) => Some((format!("{n} bytes a lane{wasted}"), n <= NARROW || used < 0.5)),
    }
}
