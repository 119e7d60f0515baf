//! Lays out and schedules every kernel that there is as tile IR, for few and many warps, narrow and wide ones, with and
//! without facts about parameters: the pipeline gives an answer, which its verifiers accept and which reads back.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::mem::{self, Discriminant};
use std::path::Path;

use super::common::{files, folder};
use tk_gpu::ir::kernel::Operands;
use tk_gpu::ir::text::parse as parse_kernel;
use tk_gpu::pipeline::run;
use tk_gpu::target::spec;
use tk_gpu::verify::{verify_laid_out, verify_scheduled};
use tk_gpu::{ArgFacts, CompileOptions};
use tk_ops::{Group, Op};
use tk_tile::text::parse;
use tk_tile::{Func, FuncKind, TileModule, Type, ValueId, pipeline, walk};

/// The modules of a file: each may stand behind a comment that says what it is specialized for.
fn modules(path: &Path) -> Vec<TileModule> {
    let text = fs::read_to_string(path).unwrap();
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.lines() {
        if line.starts_with("// lower:") || line == "// ----" {
            parts.push(String::new());
        }
        let part = parts.last_mut().unwrap();
        *part += line;
        part.push('\n');
    }
    let modules = parts.iter().filter_map(|p| parse(p).ok()).filter_map(|m| TileModule::new(m).ok());
    modules.filter(|m| m.funcs.iter().any(|(_, f)| f.kind == FuncKind::Kernel)).collect()
}

/// As if everything were aligned, or nothing known.
fn facts(module: &TileModule, kernel: &str, divisible: u32) -> Vec<ArgFacts> {
    let (_, func) = module.funcs.iter().find(|(_, f)| f.name == kernel).unwrap();
    let params = &func.blocks[func.body].args;
    let mut facts = vec![];
    for v in params {
        match module.types.get(func.ty(*v)) {
            Type::Tile { .. } => facts.push(ArgFacts { divisible, one: false, positive: divisible > 1 }),
            Type::View { rank, .. } => {
                let rank = *rank as usize;
                facts.resize(
                    facts.len() + 2 * rank + 1,
                    ArgFacts { divisible, one: false, positive: divisible > 1 },
                );
                if let Some(last) = facts.last_mut() {
                    last.one = divisible > 1;
                }
            }
        }
    }
    facts
}

fn check(place: &str, module: &TileModule) {
    for (_, func) in module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel) {
        for spec in [&spec::SM_90A, &spec::SIM_64] {
            for (warps, divisible) in [(1u32, 16), (4, 16), (4, 1), (8, 16)] {
                let place =
                    format!("{place}: @{} for {} and {warps} warps, facts {divisible}", func.name, spec.name);
                let (blocks, facts) = (warps.div_ceil(2), facts(module, &func.name, divisible));
                let options = CompileOptions {
                    spec,
                    warps,
                    groups: 1,
                    blocks,
                    cluster: 1,
                    stages: Some(3),
                    most_stages: u32::MAX,
                    operands: Operands::SHARED,
                    may_have_groups: true,
                    registers: None,
                    facts,
                };
                let stages = run(module, &func.name, options, &mut |_, _| {})
                    .unwrap_or_else(|e| panic!("{place}: {e}"));
                let (laid_out, scheduled) = (stages.laid_out.to_string(), stages.scheduled.to_string());
                let read = |text: &str| parse_kernel(text).unwrap_or_else(|e| panic!("{place}: {e}\n{text}"));
                let (a, b) = (read(&laid_out), read(&scheduled));
                assert_eq!((a.to_string(), b.to_string()), (laid_out, scheduled), "{place}");
                verify_laid_out(&a).unwrap_or_else(|e| panic!("{place}: {e}"));
                verify_scheduled(&b).unwrap_or_else(|e| panic!("{place}: {e}"));
            }
        }
    }
}

fn folder_of(path: &str, least: usize) {
    let mut found = 0;
    for file in files(&folder(path)) {
        for module in modules(&file) {
            found += 1;
            // As it was written, in one function, and simplified.
            for passes in [pipeline::CHECKED, pipeline::PASSES] {
                let module = pipeline::run_passes(passes, module.clone(), None).unwrap();
                check(&file.display().to_string(), &module);
            }
        }
    }
    assert!(found >= least, "{path}: {found} modules");
}

/// Kernels of `examples/` behind the passes of the tile IR, as `tk run --dump` writes them.
#[test]
fn examples() {
    folder_of("ir/gpu/examples", 30);
}

/// What the lowering gives, not yet simplified.
#[test]
fn lowered() {
    folder_of("lower", 15);
}

/// What the passes of the tile IR are tested with.
#[test]
fn tile() {
    for name in ["fold", "cse", "hoist", "pipeline", "inline"] {
        folder_of(&format!("ir/{name}"), 1);
    }
}

/// The text of a kernel that calls a function with anything and prints what it gives.
fn caller(module: &TileModule, func: &Func) -> String {
    let ty = |v: ValueId| module.types.get(func.ty(v)).to_string();
    let params: Vec<String> = func.blocks[func.body].args.iter().map(|v| ty(*v)).collect();
    let n = params.len();
    let results: Vec<String> = func.results.iter().map(|t| module.types.get(*t).to_string()).collect();
    let names =
        |from: usize, n: usize| (from..from + n).map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ");
    let mut text = format!("kernel @\"call {}\"() {{\n", func.name);
    for (i, t) in params.iter().enumerate() {
        text += &format!("  v{i} = undef : {t}\n");
    }
    let call = format!("call {} {{callee = \"{}\"}}", names(0, n), func.name);
    if results.is_empty() {
        text += &format!("  {call}\n");
    } else {
        let m = results.len();
        text += &format!("  {} = {call} : {}\n  print {}\n", names(n, m), results.join(", "), names(n, m));
    }
    text + "  return\n}\n"
}

/// The group of an elementwise operation.
fn group(op: &Op) -> Option<Discriminant<Group>> {
    match op {
        Op::Elementwise(op) => Some(mem::discriminant(&op.group())),
        _other => None,
    }
}

/// Every operation, whatever it is applied to.
#[test]
fn operations() {
    let mut shown = BTreeSet::new();
    for file in files(&folder("ir/text")) {
        let module = TileModule::new(parse(&fs::read_to_string(&file).unwrap()).unwrap()).unwrap();
        for (_, func) in module.funcs.iter().filter(|(_, f)| f.kind != FuncKind::Test) {
            let is_kernel = func.kind == FuncKind::Kernel;
            let caller = if is_kernel { String::new() } else { caller(&module, func) };
            let text = format!("{}\n{caller}", *module);
            let whole = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let whole = TileModule::new(whole).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let whole = pipeline::run_passes(pipeline::CHECKED, whole, None).unwrap();
            check(&file.display().to_string(), &whole);
            shown.extend(walk::insts(func).into_iter().map(|i| func.insts[i].op));
        }
    }
    // The operations of a group are alike here.
    let groups: HashSet<_> = shown.iter().filter_map(group).collect();
    let missing = Op::all().filter(|o| !shown.contains(o) && !matches!(o, Op::Host(_) | Op::Target));
    let missing = missing.filter(|o| group(o).is_none_or(|g| !groups.contains(&g)));
    let missing: Vec<&str> = missing.map(Op::name).collect();
    assert!(missing.is_empty(), "tests/ir/text lacks {missing:?}");
}
