//! The members of a `tune` list in what `tk build` ships: which there are, and which a launch takes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tk_bundle::{Argument, Bundle, Facts, Variant};
use tk_runtime::Session;
use tk_runtime::files::Files;
use tk_runtime::tuning::code_of;
use tk_sema::contract::SetValue;

use crate::ship::tk;
use crate::support::building::without_ptxas;
use crate::support::command::Folder;

/// Sums of columns: few programs with the defaults where there are few columns.
const SUMS: &str =
    "@fast kernel sums[ROWS: i32 = 32, COLUMNS: i32 = 128](x: view[f16, 2], y: mut view[f32, 1])
    grid(cdiv(x.shape[1], COLUMNS))
    launch(warps = 4)
    tune(key = (x.shape[0], x.shape[1])) {
        { ROWS = [32, 128], COLUMNS = [16, 64, 128], warps = [4, 8] },
    }
    require(y.shape == [x.shape[1]], x.shape[1] % COLUMNS == 0 || COLUMNS > 64)
{
    let column = program_id(0) * COLUMNS;
    let mut acc = zeros([COLUMNS], f32);
    for row in range(0, x.shape[0], ROWS) {
        acc += sum(x.load([row, column], [ROWS, COLUMNS]) as f32, axis = 0);
    }
    y.store([column], acc);
}
";

fn built(folder: &Folder, more: &[&str]) -> Bundle {
    let mut args = vec!["build", "sums.tk", "--target", "sm_90a", "--emit", "bundle", "-o", "."];
    args.extend(more);
    tk(folder, &args).code(0);
    Bundle::from_vec(std::fs::read(folder.path("sums.tkb")).unwrap()).unwrap()
}

/// The variant of a launch with so many rows and columns.
fn taken(bundle: &Bundle, rows: i64, columns: i64) -> &Variant {
    let (x, y) = ([rows, columns], [columns]);
    let tensor = |dtype, shape| Argument::Tensor { address: 1 << 20, dtype, shape, strides: None };
    let args = [tensor("f16", &x), tensor("f32", &y)];
    let given = vec![None; bundle.manifest().kernels[0].choices.len()];
    let facts = Facts { args: &args, given: &given, targets: &["sm_90a"], sms: 132, shared_bytes: 232_448 };
    bundle.manifest().kernels[0].choose(&facts).unwrap().variant
}

fn values(v: &Variant) -> String {
    v.values.iter().map(|v| format!("{}={}", v.name, v.value)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_launch_takes_what_the_model_prefers() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("members-model");
    folder.write("sums.tk", SUMS);
    let bundle = built(&folder, &[]);
    let kernel = &bundle.manifest().kernels[0];
    // What the list chooses is no parameter of the shipped kernel.
    assert!(kernel.choices.is_empty(), "{:?}", kernel.choices);
    let shipped: Vec<String> = kernel.variants.iter().map(values).collect();
    // Those of `sm_90a` with their members, and of `compute_80`.
    assert!(shipped.len() > 2 && shipped.len() <= 10, "{shipped:?}");
    assert_eq!(shipped.last().unwrap(), "ROWS=32 COLUMNS=128");
    // 128 columns of a tall matrix are one program of 132 multiprocessors with the defaults, and eight with 16.
    let tall = values(taken(&bundle, 1 << 16, 128));
    assert!(tall.contains("COLUMNS=16"), "{tall} of {shipped:?}");
    // What a member requires is not forgotten.
    let narrow = values(taken(&bundle, 1 << 16, 100));
    assert!(narrow.contains("COLUMNS=128"), "{narrow}");
    // The choice is that of the compiler, or as good: it only has fewer members to choose among.
    for (rows, columns) in [(1 << 16, 128), (1 << 12, 1 << 12), (1 << 10, 1 << 16)] {
        let v = taken(&bundle, rows, columns);
        let (x, y) = (format!("x=randn:f16[{rows},{columns}]"), format!("y=empty:f32[{columns}]"));
        let args = [
            "explain-launch",
            "sums.tk",
            &x,
            &y,
            "--for",
            "sm_90a",
            "--message-format",
            "json",
            "--most",
            "99",
        ];
        let out = tk(&folder, &args).code(0).out.clone();
        let rows: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let us = |member: &str| {
            let row = rows.iter().find(|r| r["member"] == member);
            row.unwrap_or_else(|| panic!("{member} of {out}"))["us"].as_f64().unwrap()
        };
        let best = rows.iter().filter_map(|r| r["us"].as_f64()).fold(f64::INFINITY, f64::min);
        let own = if v.values.len() == 2 { String::new() } else { values(v) };
        assert!(us(&own) <= 1.2 * best, "{own}: {} of {best}", us(&own));
    }
}

#[test]
fn a_record_decides_its_key() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("members-record");
    folder.write("sums.tk", SUMS);
    let session = Session::new(tk_sema::check(&Files::default(), &folder.path("sums.tk").to_string_lossy()));
    let kernel = session.kernels().next().unwrap().0;
    let number = |name: &str, n| (name.to_string(), SetValue::Int(n));
    let sets = [number("ROWS", 128), number("COLUMNS", 64)];
    let target = tk_driver::TARGETS.into_iter().find(|t| t.name == "sm_90a").unwrap();
    let bindings = session.bindings(kernel, &sets, tk_driver::facts_about(target)).unwrap();
    let code = code_of(&session.compile(kernel, &bindings).unwrap().0.module);
    let record = |key: [i64; 2], code: &str| {
        serde_json::json!({
            "kernel": "sums", "target": "sm_90a", "device": "NVIDIA H100", "driver": "13.0", "given": {}, "key": key,
            "member": { "ROWS": "128", "COLUMNS": "64", "warps": "8" },
            "ms": 0.1, "default_ms": 0.2, "measured": 12, "code": code,
        })
    };
    let keys = [[4096, 4096], [4096, 8192], [512, 1024], [65536, 128], [100, 256]];
    let mut records: Vec<_> = keys.iter().map(|key| record(*key, &code)).collect();
    records.push(record([7777, 128], "older"));
    // What the list does not have, or nothing can have.
    for (name, value) in
        [("ROWS", "33"), ("ROWS", "-1"), ("COLUMNS", "x"), ("warps", "0"), ("ROWS", "99999999999999999999")]
    {
        let mut made_up = record([7778, 128], &code);
        made_up["member"][name] = value.into();
        records.push(made_up);
    }
    folder.write("sums.tuning.json", serde_json::json!({ "format": 1, "records": records }).to_string());
    let ran = tk(&folder, &["build", "sums.tk", "--target", "sm_90a", "--emit", "bundle", "-o", "."]);
    assert!(ran.code(0).err.contains("6 tuning records of `sums` for sm_90a are older"), "{}", ran.err);
    let bundle = Bundle::from_vec(std::fs::read(folder.path("sums.tkb")).unwrap()).unwrap();
    for [rows, columns] in keys {
        assert_eq!(
            values(taken(&bundle, rows, columns)),
            "ROWS=128 COLUMNS=64 warps=8",
            "{rows} x {columns}"
        );
    }
    // Launches with other keys are those of a file without records.
    let more = ["--members", "12"];
    let with = built(&folder, &more);
    std::fs::remove_file(folder.path("sums.tuning.json")).unwrap();
    let without = built(&folder, &more);
    for [rows, columns] in [[4096, 4224], [4097, 4096], [65536, 256], [64, 128], [1, 16]] {
        let of = |bundle| values(taken(bundle, rows, columns));
        assert_eq!(of(&with), of(&without), "{rows} x {columns}");
    }
}

#[test]
fn a_kernel_can_be_built_without_members() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("members-none");
    folder.write("sums.tk", SUMS);
    for more in [&["--members", "0"][..], &["--set", "ROWS=32", "--set", "COLUMNS=128", "--set", "warps=4"]] {
        let bundle = built(&folder, more);
        let all: Vec<String> = bundle.manifest().kernels[0].variants.iter().map(values).collect();
        assert!(all.iter().all(|v| v == "ROWS=32 COLUMNS=128"), "{all:?}");
    }
    // What is given by name is not chosen; the rest is.
    let bundle = built(&folder, &["--set", "COLUMNS=64"]);
    let all: Vec<String> = bundle.manifest().kernels[0].variants.iter().map(values).collect();
    assert!(
        all.iter().all(|v| v.contains("COLUMNS=64")) && all.iter().any(|v| v.contains("warps=")),
        "{all:?}"
    );
}
