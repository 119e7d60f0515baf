//! Remarks: why the fastest instructions do not apply to a kernel, in bundles, reports and `tk inspect`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;

use crate::ship::tk;
use crate::support::building::without_ptxas;
use crate::support::command::Folder;
use tk_bundle::Bundle;

#[test]
fn what_tma_does_not_copy_has_a_reason() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-remarks");
    let source = "kernel product[UNIT: i32](a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2], at: view[i32, 1]) {\n    \
                  let mut acc = zeros([64, 64], f32);\n    \
                  for k in range(0, a.shape[1], 64) {\n        \
                  acc = dot(a.load([0, k], [64, 64]), b.load([k, at.load([0]) * UNIT], [64, 64]), acc);\n    \
                  }\n    \
                  c.store([0, 0], acc);\n}\nexport product[UNIT = [8, 1]];\n";
    folder.write("product.tk", source);
    tk(&folder, &["build", "product.tk", "--target", "sm_90a", "--emit", "bundle,report", "-o", "."]).code(0);
    let bundle = Bundle::open(&folder.path("product.tkb")).unwrap();
    let found: Vec<(&str, u32, &str)> = bundle.manifest().kernels[0]
        .variants
        .iter()
        .flat_map(|v| v.remarks.iter().map(move |r| (v, r)))
        .map(|(v, r)| (v.values[0].value.as_str(), r.place.as_ref().unwrap().column, r.text.as_str()))
        .collect();
    let alone =
        "operand b of a product is not copied by TMA: its first column is not known to be a multiple of 8";
    let other = "an operand of a product is not copied by TMA: the other one is not";
    let general = |operand| {
        format!(
            "operand {operand} of a product is not copied by TMA: its address is not known to be a multiple of 16 bytes"
        )
    };
    let (a, b) = (general("a"), general("b"));
    let expected = [
        ("8", 19, a.as_str()),
        ("8", 45, b.as_str()),
        ("1", 45, alone),
        ("1", 19, other),
        ("1", 19, a.as_str()),
        ("1", 45, b.as_str()),
    ];
    assert_eq!(found, expected);
    tk(&folder, &["inspect", "product.tkb"]).code(0).out_has(&format!("product.tk:4:45: {alone}"));
    let reports = fs::read_dir(folder.path(".")).unwrap().flatten().map(|e| e.path());
    let reports = reports.filter(|p| p.extension().is_some_and(|e| e == "json"));
    let texts: Vec<String> = reports.map(|p| fs::read_to_string(p).unwrap()).collect();
    assert_eq!(texts.len(), 4);
    assert_eq!(texts.iter().filter(|t| t.contains(alone)).count(), 1);
    assert_eq!(texts.iter().filter(|t| t.contains("\"remarks\": []")).count(), 1);
}

/// A load that goes straight to shared memory moves 16 bytes.
#[test]
fn what_is_not_loaded_straight_to_shared_memory_has_a_reason() {
    let folder = Folder::new("remarks-direct");
    let source = "kernel product[UNIT: i32](a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2]) {\n    \
                  let mut acc = zeros([64, 64], f32);\n    \
                  for k in range(0, a.shape[1], 64) {\n        \
                  acc = dot(a.load([0, k], [64, 64]), b.load([k, program_id(0) * UNIT], [64, 64]), acc);\n    \
                  }\n    \
                  c.store([0, 0], acc);\n}\n";
    folder.write("product.tk", source);
    for (unit, expected) in [("8", 0), ("4", 1)] {
        let set = format!("UNIT={unit}");
        let args =
            ["build", "product.tk", "--set", &set, "--target", "gfx950", "--emit", "report", "-o", "out"];
        folder.tk(&args).code(0);
        let aligned = fs::read_dir(folder.path("out")).unwrap().flatten().map(|e| e.path());
        let aligned = aligned.filter(|p| p.to_string_lossy().contains(".aligned."));
        let texts: Vec<String> = aligned.map(|p| fs::read_to_string(p).unwrap()).collect();
        let why = "an operand of a product is not loaded straight to shared memory: the position along the \
                   contiguous axis is not known to be a multiple of more";
        assert_eq!(texts.iter().filter(|t| t.contains(why)).count(), expected, "{unit}: {texts:?}");
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

/// Whether halves of eight warps are in opposite phases on AMD's CDNA, and why not.
#[test]
fn loops_say_whether_halves_of_their_warps_take_turns() {
    let folder = Folder::new("remarks-phases");
    let source = |after: &str| {
        format!(
            "kernel product(a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2]) launch(warps = 8) {{\n    \
             let mut acc = zeros([64, 64], f32);\n    \
             for k in range(0, a.shape[1], 64) {{\n        \
             acc = dot(a.load([0, k], [64, 64]), b.load([k, 0], [64, 64]), acc);\n        {after}\n    }}\n    \
             c.store([0, 0], acc);\n}}\n"
        )
    };
    let turns = "multiply and access memory in turns";
    let cases = [
        ("gfx942", "", format!("halves of the warps {turns}")),
        ("gfx942", "c.store([64, 0], acc);", format!("halves of the warps do not {turns}: it writes memory")),
        (
            "gfx942",
            "acc = acc / sum(acc);",
            format!(
                "halves of the warps do not {turns}: it has several products, or uses shared memory for other \
                 things too"
            ),
        ),
        (
            "gfx942",
            "if k == 64 { acc *= 2.0; }",
            format!("halves of the warps do not {turns}: it has branches"),
        ),
        (
            "gfx950",
            "",
            format!(
                "halves of the warps do not {turns}: loads that go straight to shared memory would need a third \
                 stage"
            ),
        ),
    ];
    for (target, after, why) in cases {
        folder.write("product.tk", source(after));
        let args = ["build", "product.tk", "--target", target, "--emit", "report", "-o", "out"];
        folder.tk(&args).code(0);
        let all = fs::read_dir(folder.path("out")).unwrap().flatten().map(|e| e.path());
        let aligned = all.filter(|p| p.to_string_lossy().contains(".aligned."));
        let texts: Vec<String> = aligned.map(|p| fs::read_to_string(p).unwrap()).collect();
        let says = |text: &String| text.contains(&format!("\"{why}\""));
        assert!(!texts.is_empty() && texts.iter().all(says), "{target}, {after}: {texts:?}");
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

/// A producer warp follows loops that end by a condition, unless that depends on what the program stores.
#[test]
fn a_persistent_loop_may_end_by_a_condition_of_numbers() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-break");
    let source = |head: &str| {
        format!(
            "kernel product(a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2])\n    grid(4)\n{{\n    let mut t = program_id(0);\n    {head}\n        \
             let mut acc = zeros([64, 64], f32);\n        for k in range(0, a.shape[1], 64) {{\n            \
             acc = dot(a.load([t * 64, k], [64, 64]), b.load([k, 0], [64, 64]), acc);\n        }}\n        \
             c.store([t * 64, 0], acc);\n        t += 4;\n    }}\n}}\nexport product;\n"
        )
    };
    let why = "operands of a product are not copied by TMA: a loop around the product ends by a condition that depends on a product or a store";
    let cases = [
        ("broken", "while true {\n        if t >= 16 { break; }", false),
        ("counted", "for _i in range(0, 4) {", false),
        ("stored", "while c.load([t * 64 + 63, 0]) >= 0.0 {", true),
    ];
    for (name, head, says) in cases {
        folder.write(&format!("{name}.tk"), source(head));
        tk(&folder, &["build", &format!("{name}.tk"), "--target", "sm_90a", "--emit", "bundle", "-o", "."])
            .code(0);
        let bundle = Bundle::open(&folder.path(&format!("{name}.tkb"))).unwrap();
        let variants = &bundle.manifest().kernels[0].variants;
        assert_eq!(variants.iter().any(|v| v.remarks.iter().any(|r| r.text == why)), says, "{name}");
    }
}

/// A position that a branch of a few numbers chooses is computed ahead; one that a loop searches is not, which is said.
#[test]
fn an_operand_whose_position_a_loop_searches_is_not_loaded_ahead() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-ahead");
    let source = |position: &str| {
        format!(
            "kernel product(a: view[f16, 2], b: view[f16, 2], c: mut view[f32, 2], pages: view[i32, 1])\n    \
             prefer(a.strides[1] == 1, b.strides[1] == 1)\n{{\n    \
             let mut acc = zeros([64, 64], f32);\n    for k in range(0, a.shape[1], 64) {{\n        \
             let page = pages.load([k]);\n        {position}\n        \
             acc = dot(a.load([0, k], [64, 64]), b.load([at, 0], [64, 64]), acc);\n    }}\n    \
             c.store([0, 0], acc);\n}}\n"
        )
    };
    let ahead = |position: &str| {
        folder.write("product.tk", source(position));
        tk(&folder, &["build", "product.tk", "--target", "sm_80", "--emit", "bundle", "-o", "."]).code(0);
        let bundle = Bundle::open(&folder.path("product.tkb")).unwrap();
        let variants = &bundle.manifest().kernels[0].variants;
        let shared = variants.iter().map(|v| v.shared_bytes).max().unwrap();
        let texts = variants.iter().flat_map(|v| v.remarks.iter().map(|r| r.text.clone()));
        (shared, texts.filter(|t| t.contains("not loaded ahead")).collect::<Vec<_>>())
    };
    let chosen = ahead("let at = if page >= 0 && page < 100 { page * 64 } else { 0 };");
    let searched = ahead("let mut at = page; while at > 100 { at = at / 2; }");
    let text = "an operand of a product is not loaded ahead: a branch or another loop decides where it is";
    assert_eq!(chosen.1, Vec::<String>::new());
    assert!(!searched.1.is_empty() && searched.1.iter().all(|t| t == text), "{searched:?}");
    assert!(chosen.0 > searched.0, "{chosen:?} {searched:?}");
}
