//! Measures answers after a key was pressed: `cargo bench -p tk-bench --bench edit`.
//!
//! A file of 2,000 lines is changed in its middle and asked about, so each round checks the file again. The goal is
//! 50 ms for hover, definition and completion, and 100 ms until the diagnostics are there.

#![allow(missing_docs, reason = "the macros of criterion make functions")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a benchmark stops where these fail")]

use criterion::{Criterion, criterion_group, criterion_main};
use tk_lsp::ide::{Disk, Workspace, complete, diagnostics, hints, hover, navigate, tokens};

const KERNELS: &str = include_str!("kernels.tk");
const HEAD: &str = "use std::grid;\nuse std::math;\n\nconst LOG2E = 1.4426950408889634;\n\n";
const PATH: &str = "/main.tk";

struct Empty;

impl Disk for Empty {
    fn read(&self, path: &str) -> Result<String, String> {
        Err(format!("there is no `{path}`"))
    }
    fn list(&self, _: &str) -> Vec<String> {
        vec![]
    }
}

/// A file of at least that many lines.
fn file(lines: usize) -> String {
    let mut text = HEAD.to_string();
    for i in 0.. {
        if text.lines().count() >= lines {
            break;
        }
        text += &KERNELS.replace("_N", &format!("_{i}")).replace("gated N", &format!("gated {i}"));
    }
    text
}

/// Changes the middle of the file and asks about that place.
fn after_edit<R>(c: &mut Criterion, name: &str, ask: impl Fn(&mut Workspace, usize) -> R) {
    let text = file(2000);
    let middle = text.len() / 2;
    let at = middle + text.get(middle..).unwrap().find("program_id").unwrap();
    let mut ws = Workspace::new(Box::new(Empty), vec!["/".into()]);
    let mut n = 0;
    c.bench_function(name, |b| {
        b.iter(|| {
            n += 1;
            let (before, after) = text.split_at(at);
            ws.open(PATH, format!("{before}{n} + {after}"));
            ask(&mut ws, at + format!("{n} + ").len() + 3)
        });
    });
}

/// Asks about the middle of the file again and again without an edit.
fn again<R>(c: &mut Criterion, name: &str, ask: impl Fn(&mut Workspace, usize) -> R) {
    let text = file(2000);
    let middle = text.len() / 2;
    let at = middle + text.get(middle..).unwrap().find("program_id").unwrap();
    let mut ws = Workspace::new(Box::new(Empty), vec!["/".into()]);
    ws.open(PATH, text);
    c.bench_function(name, |b| b.iter(|| ask(&mut ws, at + 3)));
}

fn benches(c: &mut Criterion) {
    again(c, "hover", |ws, at| hover::hover(ws, PATH, at).unwrap());
    again(c, "completion", |ws, at| complete::complete(ws, PATH, at));
    after_edit(c, "diagnostics after an edit", |ws, _| diagnostics::diagnostics(ws, PATH));
    after_edit(c, "hover after an edit", |ws, at| hover::hover(ws, PATH, at).unwrap());
    after_edit(c, "definition after an edit", |ws, at| navigate::definition(ws, PATH, at));
    after_edit(c, "completion after an edit", |ws, at| complete::complete(ws, PATH, at));
    after_edit(c, "hints and tokens after an edit", |ws, _| {
        (hints::hints(ws, PATH, 0..usize::MAX).len(), tokens::tokens(ws, PATH, None).len())
    });
}

criterion_group!(all, benches);
criterion_main!(all);
