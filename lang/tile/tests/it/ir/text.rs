//! Checks that printing and reading are inverse, and that reading anything gives an answer.

use std::collections::{BTreeSet, HashSet};
use std::mem::{self, Discriminant};
use std::sync::Arc;

use super::common::{Case, cases};
use tk_ops::table::Effects;
use tk_ops::{DType, ElementwiseOp, Group, Op};
use tk_tile::effects::effects;
use tk_tile::pipeline::{PASSES, run_passes};
use tk_tile::text::{Options, parse, parse_marked, print, print_marked};
use tk_tile::verify::MAX_NESTING;
use tk_tile::{Attr, Attrs, Dialect, FuncId, Module, TargetOp, TileModule, walk};

const FOLDERS: [&str; 8] = ["text", "inline", "fold", "cse", "dce", "vectorize_map", "pipeline", "verify"];

fn read(case: &Case) -> Module {
    parse(&case.input).unwrap_or_else(|e| panic!("{}:{e}", case.path.display()))
}

/// A text without comments, which are not kept.
fn bare(text: &str) -> String {
    text.lines().filter(|l| !l.starts_with("//")).map(|l| format!("{l}\n")).collect()
}

/// A code generator without operations.
struct NoOperations;

impl Dialect for NoOperations {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn rule(&self) -> &'static str {
        ""
    }

    fn field(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn read(&self, op: &str, _: Attrs) -> Result<Arc<dyn TargetOp>, String> {
        Err(op.into())
    }
}

#[test]
fn printing_and_reading_are_inverse() {
    for case in FOLDERS.iter().flat_map(|f| cases(f)) {
        let once = read(&case).to_string();
        let twice =
            parse(&once).unwrap_or_else(|e| panic!("{}:{e}\n{once}", case.path.display())).to_string();
        assert_eq!(once, twice, "{}", case.path.display());
    }
    for case in cases("text") {
        assert_eq!(bare(&case.input), read(&case).to_string(), "{}", case.path.display());
    }
}

/// The group of an elementwise operation.
fn group(op: &Op) -> Option<Discriminant<Group>> {
    match op {
        Op::Elementwise(op) => Some(mem::discriminant(&op.group())),
        _other => None,
    }
}

/// A function of each elementwise operation whose result follows from its operands.
#[test]
fn elementwise_operations_read_back() {
    for op in ElementwiseOp::ALL {
        let accepted = |d: &DType| op.accepts().has(*d);
        let d = [DType::F32, DType::I32].into_iter().find(accepted).unwrap();
        let Some(result) = op.result().filter(|_| *op != ElementwiseOp::Select) else { continue };
        let operands: Vec<String> = (0..op.arity()).map(|i| format!("v{i}")).collect();
        let params: Vec<String> = operands.iter().map(|v| format!("{v}: {d}")).collect();
        let (n, out) = (op.arity(), result.of(d));
        let text = format!(
            "fn @f({}) -> {out} {{\n  v{n} = {} {} : {out}\n  return v{n}\n}}\n",
            params.join(", "),
            op.name(),
            operands.join(", ")
        );
        let module = TileModule::new(parse(&text).unwrap()).unwrap_or_else(|e| panic!("{text}{e}"));
        assert_eq!(module.to_string(), text);
    }
}

#[test]
fn the_samples_show_every_operation() {
    let mut shown = BTreeSet::new();
    for case in cases("text") {
        let module = TileModule::new(read(&case)).unwrap_or_else(|e| panic!("{}: {e}", case.path.display()));
        for (_, f) in module.funcs.iter() {
            shown.extend(walk::insts(f).into_iter().map(|i| f.insts[i].op));
        }
    }
    // Of those in a group, one is enough.
    let groups: HashSet<_> = shown.iter().filter_map(group).collect();
    let wanted = Op::all().filter(|o| group(o).is_none_or(|g| !groups.contains(&g)));
    let missing: Vec<&str> = wanted.filter(|o| !shown.contains(o)).map(Op::name).collect();
    assert!(missing.is_empty(), "tests/ir/text lacks {missing:?}");
}

#[test]
fn places_are_printed_on_demand() {
    let text =
        "fn @f(v0: i32) -> i32 {\n  v1 = add v0, v0 : i32 loc(0:12:20)\n  return v1 loc(1:0:4294967295)\n}\n";
    let module = parse(text).unwrap();
    assert_eq!(print(&module, Options { locs: true }), text);
    assert!(!module.to_string().contains("loc"));
}

#[test]
fn numbers_in_names_do_not_matter() {
    let text = "fn @f(v7: i32)->i32{v4000000000=add v7,v7:i32 // sum\n return v4000000000}";
    assert_eq!(
        parse(text).unwrap().to_string(),
        "fn @f(v0: i32) -> i32 {\n  v1 = add v0, v0 : i32\n  return v1\n}\n"
    );
}

/// Later stages have names after the types of values; the tile IR has none.
#[test]
fn names_behind_types_are_for_later_stages() {
    let text = "fn @f(v0: i32 @a) -> i32 {\n  v1, v2 = split v0 : i32 @b, i32\n  return v2\n}\n";
    let (module, marks) = parse_marked(text, &NoOperations).unwrap();
    let names: Vec<(u32, &str)> = marks.iter().map(|((_, v), name)| (v.0, name.as_str())).collect();
    assert_eq!(names, [(0, "a"), (1, "b")]);
    let func = FuncId(0);
    let mut mark = |v| marks.get(&(func, v)).cloned();
    assert_eq!(print_marked(&module, &module.funcs[func], Options::default(), &mut mark), text);
    assert_eq!(mistake(text), "1:15: layouts are only allowed in later stages");
}

/// Where the first mistake of a text is, and what it is called.
fn mistake(text: &str) -> String {
    parse(text).map(|m| panic!("accepted: {m}")).unwrap_err().to_string()
}

#[test]
fn mistakes_have_places() {
    assert_eq!(mistake("kernel @k(\n  v0: f33)"), "2:7: expected an element type");
    assert_eq!(mistake("fn @f() {\n  v0 = ad : i32\n}"), "2:8: expected an operation");
    assert_eq!(mistake("fn @f() {\n  return v3\n}"), "2:10: `v3` is not defined above");
    assert_eq!(mistake("fn @f(v0: i32, v0: i32) {}"), "1:16: `v0` is defined twice");
    assert_eq!(mistake("fn @f() { v0, v0 = undef : i32, i32 }"), "1:37: `v0` is defined twice");
    assert_eq!(mistake("fn @f() { v0 = undef : i32, i32 }"), "1:33: 1 results, but 2 types");
    assert_eq!(
        mistake("fn @f() { v0 = const {value = 300 : u8} : u8 }"),
        "1:31: `300` is not a value of `u8`"
    );
    assert_eq!(mistake("fn @f() { v0 = const {valeu = 3} : u8 }"), "1:23: expected the name of an attribute");
    assert_eq!(mistake("fn @f() { v0 = const {k = 1, k = 2} : u8 }"), "1:30: duplicate attribute `k`");
    assert_eq!(mistake("fn @\"f() {}"), "1:5: unterminated string");
    assert_eq!(mistake("fn @f() { # }"), "1:11: unexpected character");
    assert_eq!(mistake("fn @f(v0: bool) { if v0 { yield } }"), "1:27: expected the name of an attribute");
    assert_eq!(mistake("fn @f(v0: tile[f32, 4294967296]) {}"), "1:21: expected an integer in range");
}

/// Reads a text and, if it is IR, does what is done with IR.
fn survive(text: &str) {
    if let Ok(module) = parse(text) {
        let printed = module.to_string();
        assert_eq!(parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}")).to_string(), printed);
        if let Ok(module) = TileModule::new(module) {
            // The second list leaves unused functions where they are.
            for passes in [PASSES, &PASSES[1..]] {
                run_passes(passes, module.clone(), None).unwrap_or_else(|e| panic!("{e}\n{text}"));
            }
        }
    }
}

#[test]
fn every_prefix_gives_an_answer() {
    for case in FOLDERS.iter().flat_map(|f| cases(f)) {
        let ends = case.input.char_indices().map(|(i, _)| i);
        ends.for_each(|end| survive(&case.input[..end]));
    }
}

/// The pieces of a text between which anything may be taken out.
fn pieces(text: &str) -> Vec<&str> {
    let mut out = vec![];
    let mut start = 0;
    let class = |c: char| if c.is_alphanumeric() || c == '_' { 'w' } else { c };
    for (i, pair) in
        text.char_indices().zip(text.chars().skip(1)).map(|((i, a), b)| (i + a.len_utf8(), (a, b)))
    {
        if class(pair.0) != class(pair.1) || class(pair.0) != 'w' {
            out.push(&text[start..i]);
            start = i;
        }
    }
    out.push(&text[start..]);
    out
}

/// xorshift64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn damaged_texts_give_an_answer() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for case in FOLDERS.iter().flat_map(|f| cases(f)) {
        let all = pieces(&case.input);
        for _ in 0..300 {
            let mut some = all.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(some.len());
                match random.below(3) {
                    0 => drop(some.remove(at)),
                    1 => some.insert(at, all[random.below(all.len())]),
                    _ => some[at] = all[random.below(all.len())],
                }
            }
            survive(&some.concat());
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let open = "if v0 {\nblock1:\nyield\nblock2:\n".repeat(100_000);
    let text = format!("fn @f(v0: bool) {{\n{open}");
    assert!(mistake(&text).contains("nest more than"));
    let stars = "*".repeat(1_000_000);
    assert!(mistake(&format!("fn @f(v0: {stars}f32) {{}}")).contains("too many pointers"));
    let n = MAX_NESTING;
    let inside = format!("{}{}", "if v0 {\nblock1:\nyield\nblock2:\n".repeat(n), "yield\n}\n".repeat(n));
    survive(&format!("fn @f(v0: bool) {{\n{inside}return\n}}\n"));
    // Known conditions: taken apart one inside of the other.
    survive(&format!("fn @f() {{\nv0 = const {{value = false : bool}} : bool\n{inside}return\n}}\n"));
}

/// A text of 100,000 instructions takes no longer than its length asks for.
#[test]
fn long_texts_are_read() {
    let mut text = String::from("fn @f(v0: i32) -> i32 {\n");
    for i in 1..100_000 {
        text += &format!("  v{i} = add v{}, v0 : i32\n", i - 1);
    }
    text += "  return v99999\n}\n";
    let module = TileModule::new(parse(&text).unwrap()).unwrap();
    assert!(run_passes(&PASSES[1..], module, None).is_ok());
}

/// The rows of the op table and the IR agree on effects. The rows of loops are about what is inside of them, and the
/// `static_` rows never reach the IR.
#[test]
fn rows_agree_on_effects() {
    for row in tk_ops::rows::rows() {
        let inside = matches!(row.name, "range" | "static_range" | "static_assert" | "static_print");
        if !inside {
            assert_eq!(row.effects, effects(row.op), "{}", row.name);
        }
    }
    assert_eq!(effects(Op::Create(tk_ops::CreateOp::Undef)), Effects::Pure);
}

/// Every name of an attribute reads back.
#[test]
fn attributes_read_back() {
    for name in tk_tile::attr::NAMES {
        let text = format!("fn @f() {{\n  grid_barrier {{{name} = [1, -2]}}\n  return\n}}\n");
        let module = parse(&text).unwrap();
        assert_eq!(module.to_string(), text);
        let (_, f) = module.funcs.iter().next().unwrap();
        assert_eq!(f.insts[tk_tile::InstId(0)].attrs.get(name), Some(&Attr::Ints(vec![1, -2])));
    }
    assert!(tk_tile::attr::NAMES.is_sorted());
}
