//! What becomes of a kernel: tile IR, layouts, scheduled IR, and the predicted cost.

use serde_json::{Value, json};
use tk_driver::{Forms, TARGETS, forms as of_kernel, instances, lines};
use tk_lsp::predicted::LEAST;
use tk_runtime::Session;
use tk_syntax::FileId;

use crate::program::{check, rendered, report};

/// The names of the targets.
pub fn targets() -> Value {
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    json!({ "targets": names })
}

/// Says the instances of the kernels of a text, and the forms of the one with the index `chosen`.
pub fn forms(text: &str, target: &str, chosen: usize, say: &mut dyn FnMut(&Value)) {
    let Some(target) = TARGETS.into_iter().find(|t| t.name == target) else {
        return say(&json!({ "error": format!("there is no target `{target}`") }));
    };
    let checked = check(text);
    if !report(&checked, say) {
        return;
    }
    let session = Session::new(checked);
    let kernels: Vec<_> = session.kernels().map(|(id, _)| id).collect();
    let all: Vec<_> = kernels.into_iter().flat_map(|kernel| instances(&session, kernel, target)).collect();
    say(&json!({ "instances": all.iter().map(|special| special.label()).collect::<Vec<_>>() }));
    let Some(special) = all.get(chosen).or(all.first()) else {
        return say(&json!({ "error": "no kernel can be compiled alone; `export` says with which values" }));
    };
    match of_kernel(&session, special) {
        Ok(found) => say(&json!({ "forms": object(&session, &found) })),
        Err(wrong) => say(&json!({ "diagnostics": rendered(&session.checked().sources, &wrong) })),
    }
}

fn object(session: &Session, found: &Forms) -> Value {
    json!({
        "tile": found.tile,
        "layout": found.layout,
        "sched": found.sched,
        "pictures": found.pictures,
        "remarks": found.remarks,
        "cost": found.expected.as_ref().map(|expected| cost(session, expected)),
    })
}

/// The predicted cost of a typical launch.
fn cost(session: &Session, expected: &tk_driver::Expected) -> Value {
    let e = &expected.estimate;
    let (unit, lines) = lines(&session.checked().sources, e);
    let own = lines.iter().filter(|l| l.file == FileId(0) && l.share >= LEAST);
    json!({
        "gpu": expected.gpu,
        "extents": expected.extents_text(),
        "us": e.us,
        "registers": e.registers[0],
        "spilled": e.registers[1],
        "shared": e.shared_bytes,
        "blocks": tk_driver::blocks_per_sm(e.blocks_per_sm),
        "guess": e.is_guess,
        "limits": e.parts.iter().map(|(name, us)| json!([name, us])).collect::<Vec<_>>(),
        "unit": unit,
        "lines": own.map(|l| json!([l.line, l.share])).collect::<Vec<_>>(),
    })
}
