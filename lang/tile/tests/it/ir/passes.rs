//! Runs each pass, and all of them in order, on the files of its folder in `tests/ir`.

use super::common::{Case, cases, compare};
use tk_tile::TileModule;
use tk_tile::passes::{ModulePass, cse, dce, fold, hoist, inline, vectorize_map};
use tk_tile::pipeline::{PASSES, STAMPS, run_passes};
use tk_tile::text::parse;

/// The text after some passes; it verifies, and running the passes again changes nothing.
fn after(passes: &[ModulePass], case: &Case) -> String {
    let place = case.path.display();
    let module = parse(&case.input).unwrap_or_else(|e| panic!("{place}:{e}"));
    let module = TileModule::new(module).unwrap_or_else(|e| panic!("{place}: {e}"));
    let module = run_passes(passes, module, None).unwrap_or_else(|e| panic!("{place}: {e}"));
    let text = module.to_string();
    let again = run_passes(passes, module, None).unwrap_or_else(|e| panic!("{place}: {e}"));
    assert_eq!(text, again.to_string(), "{place}: the second run changes something");
    text
}

fn folder(name: &str, passes: &[ModulePass]) {
    compare(cases(name).into_iter().map(|c| (after(passes, &c), c)).map(|(r, c)| (c, r)).collect());
}

#[test]
fn each_pass() {
    for pass in [inline::PASS, fold::PASS, cse::PASS, dce::PASS, hoist::PASS, vectorize_map::PASS] {
        folder(pass.name, &[pass]);
    }
}

/// Stamps are no optimization: a second run adds others.
#[test]
fn stamps() {
    let after = |case: &Case| {
        let module = TileModule::new(parse(&case.input).unwrap()).unwrap();
        run_passes(STAMPS, module, None)
            .unwrap_or_else(|e| panic!("{}: {e}", case.path.display()))
            .to_string()
    };
    compare(cases("stamp").into_iter().map(|c| (after(&c), c)).map(|(r, c)| (c, r)).collect());
}

#[test]
fn pipeline() {
    folder("pipeline", PASSES);
}

#[test]
fn observer_sees_every_pass() {
    let case = cases("pipeline").remove(0);
    let module = TileModule::new(parse(&case.input).unwrap()).unwrap();
    let mut seen = vec![];
    run_passes(PASSES, module, Some(&mut |name, module| seen.push((name, module.to_string())))).unwrap();
    let names: Vec<&str> = seen.iter().map(|(n, _)| *n).collect();
    let wanted: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
    assert_eq!(names, wanted);
    assert_eq!(seen.last().map(|(_, text)| text), Some(&case.expected));
}

#[test]
fn failure_names_the_pass() {
    let breaks = ModulePass {
        name: "breaks",
        run: |m| {
            m.funcs
                .iter()
                .map(|(id, _)| id)
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|id| m.funcs[id].param_names.push(String::new()))
        },
    };
    let module = TileModule::new(parse("fn @f() {\n  return\n}\n").unwrap()).unwrap();
    let error = run_passes(&[breaks], module, None).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "after the pass `breaks`: V02 in @f: 0 parameters, but 1 names");
}

/// A chain of functions that each call the next one twice does not double at every step.
#[test]
fn inlining_is_bounded() {
    let mut text = String::from("fn @f0(v0: i32) -> i32 {\n  v1 = add v0, v0 : i32\n  return v1\n}\n");
    for i in 1..64 {
        let callee = format!("{{callee = \"f{}\"}}", i - 1);
        text += &format!(
            "fn @f{i}(v0: i32) -> i32 {{\n  v1 = call v0 {callee} : i32\n  v2 = call v1 {callee} : i32\n  return v2\n}}\n"
        );
    }
    text += "kernel @k(v0: i32) {\n  v1 = call v0 {callee = \"f63\"} : i32\n  return\n}\n";
    let module = TileModule::new(parse(&text).unwrap()).unwrap();
    let module = run_passes(&[inline::PASS], module, None).unwrap();
    assert!(module.funcs.len() > 1, "calls are left");
    assert!(module.funcs.iter().all(|(_, f)| f.insts.len() < 3 * inline::MAX_INSTS));
}

/// Functions that nest deep are not inlined where the blocks would nest deeper than the verifier allows.
#[test]
fn inlining_respects_nesting() {
    let nest = |n: usize, inner: &str| {
        let mut text = String::new();
        (0..n).for_each(|_| text += "if v0 {\nblock1:\nyield\nblock2:\n");
        text += inner;
        (0..n).for_each(|_| text += "yield\n}\n");
        text
    };
    let mut text = format!("fn @f0(v0: bool) {{\n{}return\n}}\n", nest(100, "print v0\n"));
    for i in 1..4 {
        let call = format!("call v0 {{callee = \"f{}\"}}\n", i - 1);
        text += &format!("fn @f{i}(v0: bool) {{\n{}return\n}}\n", nest(100, &call));
    }
    text += "kernel @k(v0: bool) {\n  call v0 {callee = \"f3\"}\n  return\n}\n";
    let module = TileModule::new(parse(&text).unwrap()).unwrap();
    assert!(run_passes(PASSES, module, None).unwrap().funcs.len() > 1, "a call is left");
}
