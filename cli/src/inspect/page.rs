//! The page of `tk inspect --html`: one self-contained file.
//!
//! The data is JSON inside of the page, and `page.html` shows it. Guarantees that no text of an artifact can end the element
//! that contains it.

use serde_json::{Value, json};
use tk_bundle::{Kernel, Line, Listing, Variant, View};

use super::{Artifact, head, mix, remark, resources, sass, signature};

const PAGE: &str = include_str!("page.html");

/// The page of an artifact.
pub fn page(artifact: &Artifact, name: &str) -> String {
    let manifest = artifact.manifest();
    let kernels: Vec<Value> = manifest.kernels.iter().map(|k| kernel(artifact, k)).collect();
    let v = &manifest.versions;
    let made =
        format!("format {}, tk {}, LLVM {}, {}", manifest.format, v.tk, v.llvm, super::assembled(&v.ptxas));
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let data = json!({ "name": name, "made": made, "kernels": kernels }).to_string();
    // `<` only occurs inside of strings.
    PAGE.replace("@DATA@", &data.replace('<', "\\u003c"))
}

fn kernel(artifact: &Artifact, k: &Kernel) -> Value {
    let variants: Vec<Value> = k.variants.iter().map(|v| variant(artifact, k, v)).collect();
    json!({ "name": k.name, "signature": signature(k), "doc": k.doc, "variants": variants })
}

fn variant(artifact: &Artifact, k: &Kernel, v: &Variant) -> Value {
    let listing = v.listing.as_ref().and_then(|blob| artifact.blob(blob));
    let listing = listing.and_then(|bytes| serde_json::from_slice::<Listing>(&bytes).ok());
    let mut listing = listing.unwrap_or_else(|| {
        let tile = artifact.blob(&v.tile).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let lines = tile.lines().map(|l| Line { text: l.to_string(), at: None }).collect();
        Listing { views: vec![View { name: "tile IR".into(), lines }], ..Listing::default() }
    });
    let files: Vec<String> = listing.sources.iter().map(|s| s.name.clone()).collect();
    listing.views.extend(artifact.blob(&v.binary).and_then(|cubin| sass::sass(&cubin, &files)));
    let machine = listing.views.iter().rev().find(|view| matches!(view.name.as_str(), "SASS" | "PTX"));
    let names: Vec<&str> = k.params.iter().map(|p| p.name.as_str()).collect();
    json!({
        "label": head(k, v),
        "resources": resources(v),
        "registers": v.registers,
        "shared": v.shared(),
        "spills": v.spills(),
        "threads": v.threads,
        "blocks": v.blocks_per_sm,
        "guards": v.guard.iter().map(|g| g.condition.text(&names)).collect::<Vec<_>>(),
        "requires": v.require.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(),
        "grid": v.grid.iter().map(|e| e.text(&names)).collect::<Vec<_>>(),
        "remarks": v.remarks.iter().map(remark).collect::<Vec<_>>(),
        "mix": machine.map(mix::mix).unwrap_or_default(),
        "counted": machine.map(|view| view.name.as_str()),
        "sources": listing.sources.iter().map(|s| json!({ "name": s.name, "text": s.text })).collect::<Vec<_>>(),
        "typical": listing.typical,
        "views": listing.views.iter().map(view).collect::<Vec<_>>(),
    })
}

fn view(view: &View) -> Value {
    let line = |l: &Line| match l.at {
        Some((file, line)) => json!([l.text, file, line]),
        None => json!([l.text]),
    };
    json!({ "name": view.name, "lines": view.lines.iter().map(line).collect::<Vec<_>>() })
}
