//! The main loops of the kernels in `tests/machine/loops` as each target runs them, beside the source: what a change of a
//! pass did to machine code shows in the diff. `TK_BLESS=1` rewrites them.
//!
//! The text is that for the assembler, of the kernel for aligned arguments: its longest loop, without comments and
//! lines of the source. Virtual registers of PTX are numbered in the order in which the loop names them, so that code
//! before the loop does not show. `counts.txt` has the instructions of the loops for AMD GPUs by class, and how many there
//! are for each matrix instruction.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::support::command::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/machine/loops");

/// Each with the form of its assembly.
const TARGETS: [(&str, &str); 5] =
    [("sm_80", "ptx"), ("sm_90a", "ptx"), ("gfx942", "gcn"), ("gfx950", "gcn"), ("gfx1100", "gcn")];
/// One whose loops differ from those of the target before it only where they multiply.
const OF_PRODUCTS: &str = "gfx950";

/// The label that a line defines.
fn label(line: &str) -> Option<&str> {
    let name = line.split_whitespace().next()?.strip_suffix(':')?;
    name.contains("BB0_").then_some(name)
}

/// The label to which a line branches.
fn branches_to(line: &str) -> Option<&str> {
    let branch = ["bra ", "bra.uni", "s_cbranch", "s_branch"].iter().any(|b| line.contains(b));
    let last = line.split_whitespace().last()?.trim_end_matches(';');
    (branch && last.contains("BB0_")).then_some(last)
}

/// The lines of a text without comments, which begin with this, without empty lines and those that name the source.
fn lines<'t>(text: &'t str, comment: &str) -> Vec<&'t str> {
    let bare = text.lines().map(|l| l.split(comment).next().unwrap_or(l).trim_end());
    bare.filter(|l| !l.is_empty() && !l.trim_start().starts_with(".loc")).collect()
}

/// The longest loop; the kernels here have none inside of another.
fn main_loop<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let at: HashMap<&str, usize> =
        lines.iter().enumerate().filter_map(|(i, l)| Some((label(l)?, i))).collect();
    let back = lines.iter().enumerate().filter_map(|(end, l)| {
        let start = *at.get(branches_to(l)?)?;
        (start < end).then_some((start, end))
    });
    // Blocks of a loop may be in any order: branches back that overlap are of one.
    let mut loops: Vec<(usize, usize)> = vec![];
    let mut back: Vec<(usize, usize)> = back.collect();
    back.sort_unstable();
    for (start, end) in back {
        match loops.last_mut().filter(|l| start <= l.1) {
            Some(last) => last.1 = last.1.max(end),
            None => loops.push((start, end)),
        }
    }
    let longest = loops.iter().max_by_key(|(s, e)| e - s);
    longest.map_or(vec![], |(s, e)| lines.get(*s..=*e).unwrap_or(&[]).to_vec())
}

/// A text whose virtual registers and labels are numbered from 0, each kind by itself, in the order of their first use.
fn renumbered(text: &str) -> String {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['%', '$']) {
        out.push_str(&rest[..at]);
        let name: String = rest[at..]
            .chars()
            .enumerate()
            .take_while(|(i, c)| *i == 0 || c.is_alphanumeric() || *c == '_')
            .map(|(_, c)| c)
            .collect();
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if kind.len() == name.len() || kind.len() == 1 {
            out.push_str(&name);
        } else {
            let new = known.entry(name.clone()).or_insert_with(|| {
                let count = counts.entry(kind.to_string()).or_insert(0);
                *count += 1;
                format!("{kind}{}", *count - 1)
            });
            out.push_str(new);
        }
        rest = &rest[at + name.len()..];
    }
    out + rest
}

/// Examples whose loops are only counted, for aligned arguments, where only large ones are aligned, and for any: a name, the
/// file, and parameters.
const COUNTED: [(&str, &str, &[&str]); 3] = [
    ("128x128x32", "examples/matmul.tk", &["T=f16", "O=f16"]),
    ("ptr 64x64x32", "examples/matmul_ptr.tk", &["T=f16"]),
    ("flash 64", "examples/attention.tk", &["T=f16", "D=64"]),
];

/// The instructions of AMD GPUs by what they do; the first class whose beginnings an instruction has counts it.
const CLASSES: [(&str, &[&str]); 8] = [
    ("matrix", &["v_mfma", "v_wmma"]),
    ("memory", &["global_", "buffer_load", "buffer_store", "flat_", "scratch_"]),
    ("shared", &["ds_"]),
    ("wait", &["s_wait", "s_barrier", "s_nop", "s_delay"]),
    ("branch", &["s_cbranch", "s_branch", "s_and_saveexec", "s_xor_b64 exec", "s_or_b64 exec"]),
    ("move", &["v_mov", "v_accvgpr", "v_perm", "v_dual_mov"]),
    ("scalar", &["s_"]),
    ("vector", &["v_", "buffer_"]),
];

/// The number of instructions of a loop, and of each class.
fn counts(found: &str) -> (usize, [usize; CLASSES.len()]) {
    let mut counts = [0; CLASSES.len()];
    let lines = found.lines().filter(|l| l.starts_with('\t')).map(str::trim);
    let instructions = lines.filter(|l| !l.starts_with('.'));
    for i in instructions.clone() {
        let of = CLASSES.iter().position(|(_, begin)| begin.iter().any(|b| i.starts_with(b)));
        *of.and_then(|n| counts.get_mut(n)).unwrap_or_else(|| panic!("{i} is of no class")) += 1;
    }
    (instructions.count(), counts)
}

/// The loads of an iteration stay in flight while it multiplies: nothing waits for them before the last product.
fn loads_stay_in_flight(name: &str, found: &str) {
    let lines = || found.lines().map(str::trim).enumerate();
    let (matrix, memory) = (CLASSES[0].1, CLASSES[1].1);
    let is = |line: &str, begin: &[&str]| begin.iter().any(|b| line.starts_with(b));
    let Some((last, _)) = lines().filter(|(_, l)| is(l, matrix)).last() else { return };
    let first = lines().find(|(_, l)| is(l, memory)).map_or(last, |(n, _)| n);
    let mut between = lines().filter(|(n, _)| first < *n && *n < last);
    let waits = between.find(|(_, l)| l.starts_with("s_wait") && l.contains("vmcnt"));
    assert_eq!(waits, None, "{name} waits for its loads");
}

/// A line of the table of counts.
fn row(name: &str, target: &str, found: &str) -> String {
    let (all, classes) = counts(found);
    let each = match classes[0] {
        0 => "-".into(),
        n => format!("{:.1}", all as f64 / n as f64),
    };
    let classes: String = classes.iter().map(|n| format!("{n:>8}")).collect();
    format!("{name:<18} {target:<8}{all:>6}{each:>12}{classes}\n")
}

#[test]
fn main_loops_are_what_was_reviewed() {
    let folder = Folder::new("loops");
    let mut snapshots = tk_snapshot::Snapshots::new();
    let mut sources: Vec<_> = fs::read_dir(ROOT).unwrap().flatten().map(|e| e.path()).collect();
    sources.retain(|p| p.extension().is_some_and(|e| e == "tk"));
    sources.sort();
    assert!(sources.len() >= 11, "{ROOT} has eleven kernels");
    let names: String = CLASSES.iter().map(|(name, _)| format!("{name:>8}")).collect();
    let mut table = format!("{:<18} {:<8}{:>6}{:>12}{names}\n", "loop", "target", "all", "per matrix");
    for source in sources {
        let multiplies = fs::read_to_string(&source).unwrap().contains("dot(");
        for (target, form) in TARGETS.into_iter().filter(|(t, _)| multiplies || *t != OF_PRODUCTS) {
            let name = source.file_stem().unwrap().to_string_lossy().into_owned();
            folder
                .tk(&["build", &source.to_string_lossy(), "--target", target, "--emit", form, "-o", "out"])
                .code(0);
            let text =
                fs::read_to_string(folder.path(&format!("out/{name}.aligned.{target}.{form}"))).unwrap();
            fs::remove_dir_all(folder.path("out")).unwrap();
            let found = main_loop(&lines(&text, if form == "ptx" { "//" } else { ";" }));
            assert!(!found.is_empty(), "{name} has no loop on {target}");
            let found: String = found.iter().map(|l| format!("{l}\n")).collect();
            let found = if form == "ptx" { renumbered(&found) } else { found };
            if form == "gcn" {
                loads_stay_in_flight(&format!("{name} on {target}"), &found);
                table += &row(&name, target, &found);
            }
            snapshots.check(Path::new(ROOT).join(format!("{name}.{target}.{form}")), &found);
        }
    }
    for (name, file, set) in COUNTED {
        let source = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
        for (target, form) in TARGETS.into_iter().filter(|(_, form)| *form == "gcn") {
            let mut args = vec!["build", &source, "--target", target, "--emit", form, "-o", "out"];
            args.extend(set.iter().flat_map(|s| ["--set", s]));
            folder.tk(&args).code(0);
            let mut variants: Vec<_> = fs::read_dir(folder.path("out")).unwrap().flatten().collect();
            variants.sort_by_key(|v| v.file_name());
            for variant in variants {
                let text = fs::read_to_string(variant.path()).unwrap();
                let found: String = main_loop(&lines(&text, ";")).iter().map(|l| format!("{l}\n")).collect();
                let file = variant.file_name().to_string_lossy().into_owned();
                let of = match file {
                    _ if file.contains(".aligned.") => "",
                    _ if file.contains(".aligned2.") => ", large",
                    _ => ", any",
                };
                table += &row(&format!("{name}{of}"), target, &found);
            }
            fs::remove_dir_all(folder.path("out")).unwrap();
        }
    }
    snapshots.check(Path::new(ROOT).join("counts.txt"), &table);
    snapshots.finish();
}

/// Halves of eight warps multiply and access memory in opposite phases: one waits once more before the loop and the other one after
/// it, each by a branch on a scalar condition; an iteration has two barriers, between which there is nothing but products.
#[test]
fn halves_of_eight_warps_are_in_opposite_phases() {
    let folder = Folder::new("loops-phases");
    let source = format!("{ROOT}/matmul_phases.tk");
    for target in ["gfx90a", "gfx942"] {
        folder.tk(&["build", &source, "--target", target, "--emit", "gcn", "-o", "out"]).code(0);
        let text = folder.path(&format!("out/matmul_phases.aligned.{target}.gcn"));
        let text = fs::read_to_string(text).unwrap();
        let all = lines(&text, ";");
        let found = main_loop(&all);
        let start = all.iter().position(|l| Some(l) == found.first()).unwrap();
        let (before, after) = (&all[..start], &all[start + found.len()..]);
        let is = |line: &str, begin: &str| line.trim().starts_with(begin);
        let barrier = |lines: &[&str]| lines.iter().position(|l| is(l, "s_barrier"));
        let upper = before.iter().rposition(|l| is(l, "s_barrier")).unwrap();
        let lower = barrier(after).unwrap();
        assert!(is(before[upper - 1], "s_cbranch_scc"), "{target}: {}", before[upper - 1]);
        assert!(is(after[lower - 1], "s_cbranch_scc"), "{target}: {}", after[lower - 1]);
        let ends: Vec<usize> = (0..found.len()).filter(|n| is(found[*n], "s_barrier")).collect();
        let [first, second] = ends[..] else { panic!("{target}: {} barriers", ends.len()) };
        let [raised, products @ .., lowered] = &found[first + 1..second] else { panic!("{target}") };
        assert!(is(raised, "s_setprio 1") && is(lowered, "s_setprio 0"), "{target}: {raised}, {lowered}");
        assert!(products.iter().all(|l| is(l, "v_mfma")), "{target}: {products:?}");
        assert_eq!(products.len(), found.iter().filter(|l| is(l, "v_mfma")).count(), "{target}");
        loads_stay_in_flight(target, &found.join("\n"));
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}
