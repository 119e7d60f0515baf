//! Runs axis analysis on the files of its folder: what is known of each tile, in the order of the text.

use super::common::{cases, compare};
use tk_gpu::analysis::axis::{AxisInfo, Dim};
use tk_gpu::ir::text::parse;
use tk_tile::verify::verify_machine;
use tk_tile::{Type, walk};

#[test]
fn facts() {
    let mut results = vec![];
    for case in cases("axis") {
        let place = case.path.display();
        let kernel = parse(&case.input).unwrap_or_else(|e| panic!("{place}:{e}"));
        let (module, func) = (&kernel.module, kernel.func());
        verify_machine(module).unwrap_or_else(|e| panic!("{place}: {e}"));
        let info = AxisInfo::new(module, func, &kernel.options.facts);
        let mut out = String::new();
        for id in walk::insts(func) {
            let inst = &func.insts[id];
            let args = inst.blocks.iter().flat_map(|b| &func.blocks[*b].args);
            for v in inst.results.iter().chain(args) {
                let known = info.tile(*v);
                let dims: Vec<String> = match module.types.get(func.ty(*v)) {
                    Type::Tile { .. } => known.dims.iter().map(shown).collect(),
                    Type::View { .. } => vec![format!("{:?}", info.view(*v).unwrap())],
                };
                let value = known.value.map_or(String::new(), |v| format!(" = {v}"));
                let non_negative = if known.non_negative { " non_negative" } else { "" };
                out += &format!("// {v}: {}{value}{non_negative}\n", dims.join(", "));
            }
        }
        results.push((case, out));
    }
    compare(results);
}

/// Only what is something.
fn shown(d: &Dim) -> String {
    let parts = [("contiguous", d.contiguity), ("constant", d.constancy), ("divisible", d.divisibility)];
    let parts = parts.iter().filter(|(_, n)| *n > 1).map(|(name, n)| format!("{name} {n}"));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "-".to_string() } else { parts.join(" ") }
}
