//! Measures the checker: `cargo bench -p tk-bench --bench check`.
//!
//! `check 2,000 lines` is a file of kernels as people write them, `kernels.tk` again and again under other names, with
//! what it uses of the standard library. The goal is 50 ms, so that an editor can check after every key.

#![allow(missing_docs, reason = "the macros of criterion make functions")]
#![allow(clippy::panic, reason = "a benchmark stops where these fail")]

use criterion::{Criterion, criterion_group, criterion_main};
use tk_sema::{Checked, Loader, check};

const KERNELS: &str = include_str!("kernels.tk");

const HEAD: &str = "use std::grid;\nuse std::math;\n\nconst LOG2E = 1.4426950408889634;\n\n";

struct One(String);

impl Loader for One {
    fn load(&self, _: &str) -> Result<String, String> {
        Ok(self.0.clone())
    }
}

/// A file of at least that many lines.
fn file(lines: usize) -> One {
    let mut text = HEAD.to_string();
    for i in 0.. {
        if text.lines().count() >= lines {
            break;
        }
        text += &KERNELS.replace("_N", &format!("_{i}")).replace("gated N", &format!("gated {i}"));
    }
    One(text)
}

fn checked(loader: &One) -> Checked {
    let checked = check(loader, "main.tk");
    if let Some(d) = checked.diagnostics.first() {
        panic!("the file has no mistakes, but: {}", tk_syntax::render(&checked.sources, d, false));
    }
    checked
}

fn benches(c: &mut Criterion) {
    let small = One(String::new());
    c.bench_function("check an empty file and the prelude", |b| b.iter(|| checked(&small)));
    let large = file(2000);
    c.bench_function("check 2,000 lines", |b| b.iter(|| checked(&large)));
    let parse = || tk_syntax::parse(tk_syntax::FileId(0), &large.0);
    c.bench_function("parse 2,000 lines", |b| b.iter(parse));
}

criterion_group!(all, benches);
criterion_main!(all);
