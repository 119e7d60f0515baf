//! A program that is checked again after a change of one body is the program that a check of everything gives:
//! diagnostics, trees, HIR, names, types and calls. Edits are made at random in every example and library file; blanks
//! behind the items keep the rest in place, as the language server does it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::Path;

use tk_sema::index::{Index, SymbolId};
use tk_sema::{Indexed, Loader, check_indexed, dump, show};
use tk_syntax::ast::ItemKind;
use tk_syntax::{FileId, Span};

/// The text of a file, over those beside it.
struct Over<'a> {
    path: &'a str,
    text: &'a str,
}

impl Loader for Over<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == self.path {
            return Ok(self.text.to_string());
        }
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }
}

/// The blanks behind an item.
const SLACK: usize = 40;

/// The text with blanks behind every item, and where they end.
fn spread(text: &str) -> (String, Vec<usize>) {
    let (tree, _) = tk_syntax::parse(FileId(0), text);
    let (mut out, mut ends, mut rest) = (String::new(), vec![], 0);
    for item in &tree.items {
        let end = item.span.end as usize;
        if matches!(item.kind, ItemKind::Fn(_) | ItemKind::Test(_) | ItemKind::Struct(_)) {
            out += &text[rest..end];
            out += &" ".repeat(SLACK);
            ends.push(out.len());
            rest = end;
        }
    }
    (out + &text[rest..], ends)
}

/// Numbers that look random: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

const TYPED: &[&str] = &[
    "q",
    "1",
    ".",
    "(",
    ")",
    "{",
    "}",
    ";",
    " + 1",
    "let z = 1;\n",
    "return;",
    "x",
    "// why\n",
    "\"",
    "mut ",
    " as f16",
    "for i in range(4) { }\n",
    "assert(true);\n",
    "const K = 3;\n",
    "[",
    "]",
    ",",
    "_",
    "\n",
    "if true { }\n",
    "@",
];

/// The text with a change that keeps its length, if the blanks behind the item suffice.
fn edit(text: &str, ends: &[usize], random: &mut Random) -> Option<String> {
    let end = ends[random.below(ends.len())];
    let from = ends.iter().rev().find(|e| **e < end).copied().unwrap_or(0);
    let at = from + random.below(end - SLACK - from);
    let removed = [0, 0, 1, 1, 2, 5][random.below(6)].min(end - SLACK - at);
    let typed = TYPED[random.below(TYPED.len())];
    let typed = if removed > 0 && random.below(2) == 0 { "" } else { typed };
    if !text.is_char_boundary(at) || !text.is_char_boundary(at + removed) {
        return None;
    }
    let blanks = (SLACK + removed).checked_sub(typed.len())?;
    let tail = &text[at + removed..end - SLACK];
    Some(format!("{}{typed}{tail}{}{}", &text[..at], " ".repeat(blanks), &text[end..]))
}

fn name(index: &Index, id: SymbolId) -> String {
    index.symbol(id).map_or(String::new(), |s| format!("{} {:?} {:?}", s.name, s.span, s.item))
}

/// All that an editor sees of a program, without the numbers of symbols.
fn seen(p: &Indexed) -> String {
    let (index, hir) = (&p.index, &p.checked.hir);
    let mut out = format!("{:#?}\n", p.checked.diagnostics);
    let tree = &index.file(FileId(0)).unwrap().tree;
    let _ = writeln!(out, "{:?}\n{:?}", tree.items, tree.comments);
    // Constants of bodies that are gone stay in the list of all, which is put last here.
    let mut ordered = hir.clone();
    ordered.consts.iter_mut().for_each(|c| c.span.file = FileId(u32::MAX));
    let functions = dump::dump_hir(&ordered);
    let functions =
        functions.split_once(&format!("// file {}", u32::MAX)).map_or(functions.as_str(), |f| f.0);
    let mut numbered = functions.split('#');
    out += numbered.next().unwrap_or_default();
    numbered.for_each(|part| out += part.trim_start_matches(|c: char| c.is_ascii_digit()));
    for r in &index.references {
        let _ = writeln!(out, "{:?} {} {}", r.span, r.write, name(index, r.symbol));
    }
    for (span, ty) in &index.expressions {
        let _ = writeln!(out, "{span:?} {}", show::ty(hir, ty));
    }
    for c in &index.calls {
        let _ = writeln!(out, "{:?} {} {}", c.span, hir.func(c.callee).name, c.cargs.len());
    }
    let mut symbols: Vec<String> = vec![];
    for s in index.symbols.iter().filter(|s| s.span.is_some()) {
        let owner = s.owner.map(|o| name(index, o));
        let kind = std::mem::discriminant(&s.kind);
        symbols
            .push(format!("{} {:?} {:?} {kind:?} {owner:?} {} {}", s.name, s.span, s.item, s.mutable, s.doc));
    }
    symbols.sort();
    out + &symbols.join("\n")
}

fn files(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<String> = entries.filter_map(|p| Some(p.to_str()?.to_string())).collect();
    files.retain(|f| f.ends_with(".tk"));
    files.sort();
    files
}

#[test]
fn one_body_again_is_all_again() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut again, mut all) = (0, 0);
    for path in ["examples", "stdlib", "stdlib/nn", "docs/tutorial/exercises"].iter().flat_map(|f| files(f)) {
        let (text, ends) = spread(&std::fs::read_to_string(&path).unwrap());
        if ends.is_empty() {
            continue;
        }
        for _ in 0..4 {
            let first = check_indexed(&Over { path: &path, text: &text }, &path);
            let Some(new) = edit(&text, &ends, &mut random) else { continue };
            all += 1;
            let Some(second) = first.with_text(&new) else { continue };
            again += 1;
            let fresh = check_indexed(&Over { path: &path, text: &new }, &path);
            let (a, b) = (seen(&second), seen(&fresh));
            let differs = a.lines().zip(b.lines()).find(|(a, b)| a != b);
            assert!(a == b, "{path}\n{differs:#?}\n{}", changed(&text, &new));
            // And back.
            let Some(third) = second.with_text(&text) else { continue };
            let fresh = check_indexed(&Over { path: &path, text: &text }, &path);
            assert!(seen(&third) == seen(&fresh), "{path}, back\n{}", changed(&text, &new));
        }
    }
    println!("{again} of {all}");
    assert!(again * 2 > all, "{again} of {all} changes needed one body");
}

fn changed(old: &str, new: &str) -> String {
    let at = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let from = old[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = |text: &str| text[from..].lines().next().unwrap_or_default().to_string();
    format!("{}\n{}", line(old), line(new))
}

/// Checks that a change is taken as one of a body, or not.
fn taken(old: &str, new: &str) -> Option<Indexed> {
    let wide = |text: &str| text.lines().map(|l| format!("{l:<80}\n")).collect::<String>();
    let first = check_indexed(&Over { path: "m.tk", text: &wide(old) }, "m.tk");
    first.with_text(&wide(new))
}

#[test]
fn what_others_depend_on_is_checked_with_them() {
    let with =
        |two: &str| format!("fn two() -> i32 {{ {two} }}\nfn f(x: tile[f32, two()]) -> f32 {{ sum(x) }}\n");
    assert!(taken(&with("2"), &with("3")).is_none(), "the value of a function in a type");
    let with = |body: &str| {
        format!("fn f(x: f32) -> f32 {{ {body} }}\nkernel k(p: *mut f32) {{ store(p, f(1.0)); }}\n")
    };
    assert!(taken(&with("x"), &with("x + 1.0")).is_some(), "a function that is only called");
    let with =
        |ty: &str| format!("fn f(x: f32) -> {ty} {{ x }}\nkernel k(p: *mut f32) {{ store(p, f(1.0)); }}\n");
    assert!(taken(&with("f32"), &with("f64")).is_none(), "a signature");
    let with = |body: &str| format!("fn g(x: f32) -> f32 {{ {body} }}\nfn f(x: f32) -> f32 {{ g(x) }}\n");
    let second = taken(&with("x"), &with("f(x)"));
    assert!(second.is_none(), "a circle of calls makes both of them errors");
}

#[test]
fn spans_behind_a_change_stay() {
    let text = "fn f() -> i32 { 1 }       \nfn g() -> i32 { 2.5 }\n";
    let new = "fn f() -> i32 { 1 + 10 }  \nfn g() -> i32 { 2.5 }\n";
    let first = check_indexed(&Over { path: "m.tk", text }, "m.tk");
    let second = first.with_text(new).unwrap();
    let places: Vec<Span> = second.checked.diagnostics.iter().map(|d| d.primary.span).collect();
    assert_eq!(places, [Span::new(FileId(0), 43, 46)]);
    let longer = "fn f() -> i32 { 1 + 10 + 20 }  \nfn g() -> i32 { 2.5 }\n";
    assert!(second.with_text(longer).is_none(), "the rest has moved");
}
