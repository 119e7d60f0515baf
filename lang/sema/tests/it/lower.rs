//! The tests of lowering: `tests/lower/NAME.tk` becomes the tile IR in `tests/lower/NAME.tir`.
//!
//! A line `// lower: KERNEL NAME=VALUE ..` of the source plans a launch (tensors as `x=f32[4,8]`, absent arguments as
//! `x=None`) and lowers it; `// lower: test "NAME"` lowers a test; `// hir` shows the checked program.
//! `TK_BLESS=1` writes the expected files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "failing is how tests report")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tk_ops::{DType, Scalar};
use tk_sema::contract::{HostArg, SetValue, parameters, plan};
use tk_sema::dump::dump_hir;
use tk_sema::eval::Bindings;
use tk_sema::hir::{FnId, Hir};
use tk_sema::specialize::specialize;
use tk_sema::{Checked, Loader, check};
use tk_snapshot::Snapshots;
use tk_syntax::{Diagnostic, SourceMap};

struct Files;

impl Loader for Files {
    fn load(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(root().join(path)).map_err(|e| e.to_string())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One line for a diagnostic and one for each of its labels.
fn show(sources: &SourceMap, d: &Diagnostic, out: &mut String) {
    let at = |s| {
        let (_, line, column) = sources.position(s);
        format!("{line}:{column}")
    };
    writeln!(out, "// {} at {}: {}", d.code, at(d.primary.span), d.message).unwrap();
    for l in &d.secondary {
        writeln!(out, "//   at {}: {}", at(l.span), l.text).unwrap();
    }
    for n in &d.notes {
        writeln!(out, "//   {n}").unwrap();
    }
}

fn tensor(text: &str) -> Option<HostArg> {
    let (dtype, dims) = text.strip_suffix(']')?.split_once('[')?;
    let dtype = DType::parse(dtype)?;
    let shape: Vec<i64> = dims.split(',').map(|d| d.trim().parse().unwrap()).collect();
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    Some(HostArg::Tensor { dtype, shape, strides })
}

fn scalar(text: &str) -> HostArg {
    match SetValue::parse(text) {
        SetValue::Int(i) => HostArg::Scalar(Scalar::int(DType::I64, i)),
        SetValue::Float(f) => HostArg::Scalar(Scalar::float(DType::F64, f)),
        SetValue::Bool(b) => HostArg::Scalar(Scalar::bool(b)),
        other => panic!("{other} is no argument"),
    }
}

/// The bindings of the launch that a line describes, with a comment that shows the plan.
fn launch(hir: &Hir, kernel: FnId, words: &str, out: &mut String) -> Result<Bindings, Box<Diagnostic>> {
    let mut given: Vec<(&str, &str)> = words.split_whitespace().map(|w| w.split_once('=').unwrap()).collect();
    let mut args = vec![];
    for p in parameters(hir, kernel).iter().filter(|p| !p.compile_time) {
        let Some(i) = given.iter().position(|(n, _)| *n == p.name) else { break };
        let (_, text) = given.remove(i);
        args.push(match text {
            "None" => HostArg::Absent,
            text => tensor(text).unwrap_or_else(|| scalar(text)),
        });
    }
    let sets: Vec<_> = given.iter().map(|(n, v)| (n.to_string(), SetValue::parse(v))).collect();
    let plan = plan(hir, kernel, &args, &sets).map_err(|e| e.diagnostic)?;
    writeln!(out, "// grid {:?} launch {:?}", plan.grid, plan.launch).unwrap();
    for s in &plan.scratch {
        writeln!(out, "// scratch {} of {} * {}, zeroed: {}", s.name, s.count, s.elem, s.zeroed).unwrap();
    }
    Ok(plan.bindings)
}

fn lowered(checked: &Checked, line: &str) -> String {
    let hir = &checked.hir;
    let mut out = format!("// lower: {line}\n");
    let found = |name: &str| hir.fns.iter().position(|f| f.name == name).map(|i| FnId(i as u32));
    let (id, bindings) = match line.strip_prefix("test ") {
        Some(name) => (found(name.trim().trim_matches('"')).unwrap(), Ok(Bindings::default())),
        None => {
            let (name, words) = line.split_once(' ').unwrap_or((line, ""));
            let id = found(name).unwrap_or_else(|| panic!("no kernel {name}"));
            (id, launch(hir, id, words, &mut out))
        }
    };
    match bindings.map_err(|d| vec![*d]).and_then(|b| specialize(hir, id, &b)) {
        Ok(s) => {
            for n in &s.notes {
                writeln!(out, "// note: {}", n.message).unwrap();
            }
            write!(out, "{}", s.module).unwrap();
        }
        Err(ds) => ds.iter().for_each(|d| show(&checked.sources, d, &mut out)),
    }
    out
}

#[test]
fn goldens() {
    let folder = root().join("tests/lower");
    let mut names: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let mut snapshots = Snapshots::new();
    for path in names.iter().filter(|p| p.extension().is_some_and(|e| e == "tk")) {
        let name = path.file_name().unwrap().to_string_lossy().to_string();
        let checked = check(&Files, &format!("tests/lower/{name}"));
        let mut out = String::new();
        for d in checked.diagnostics.iter().filter(|d| d.is_error()) {
            show(&checked.sources, d, &mut out);
        }
        let text = std::fs::read_to_string(path).unwrap();
        if text.lines().any(|l| l == "// hir") {
            // The library changes for reasons of its own.
            let text = dump_hir(&checked.hir);
            out.push_str(text.split("// file 1\n").next().unwrap_or_default());
        }
        for line in text.lines().filter_map(|l| l.strip_prefix("// lower: ")) {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&lowered(&checked, line));
        }
        snapshots.check(path.with_extension("tir"), &out);
    }
    snapshots.finish();
}

/// Every test of the examples and the library lowers to a module that the verifier accepts.
#[test]
fn examples_and_library() {
    let mut failures = String::new();
    for folder in ["examples", "stdlib", "stdlib/nn"] {
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        for path in names.iter().filter(|p| p.extension().is_some_and(|e| e == "tk")) {
            let shown = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            let checked = check(&Files, &shown);
            for d in checked.diagnostics.iter().filter(|d| d.is_error()) {
                write!(failures, "{shown}: ").unwrap();
                show(&checked.sources, d, &mut failures);
            }
            for (id, f) in checked.hir.tests().filter(|(_, f)| !f.broken) {
                for d in specialize(&checked.hir, id, &Bindings::default()).err().unwrap_or_default() {
                    write!(failures, "{shown}, {:?}: ", f.name).unwrap();
                    show(&checked.sources, &d, &mut failures);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
