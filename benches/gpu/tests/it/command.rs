//! The commands of this folder where nothing can be measured: what they refuse, and the table of files that were
//! written before.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn bench(args: &[&str]) -> Output {
    let root = folder().join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tk-gpu-bench"));
    // Without a device there is nothing that this could keep busy.
    command.env("CUDA_VISIBLE_DEVICES", "").arg("--root").arg(root).args(args).output().unwrap()
}

/// `run` with these arguments; `None` without Python.
fn run(args: &[&str], program: &str) -> Option<Output> {
    let mut command = Command::new("python3");
    command.arg(folder().join("run")).args(args).env("TK_GPU_BENCH", program).current_dir(folder());
    command.output().ok()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_missing_is_one_sentence() {
    let out = temporary("missing.json");
    let out = out.to_str().unwrap();
    let none = bench(&["--out", out, "--only", "add_f32"]);
    assert_eq!(none.status.code(), Some(3), "{}", said(&none.stderr));
    for only in ["nn_layer_norm_f16_781", "matmul_bf16", "accuracy_tf32"] {
        assert_eq!(bench(&["--out", out, "--only", only]).status.code(), Some(3), "{only}");
    }
    let sentence = said(&none.stderr);
    assert!(sentence.starts_with("tk-gpu-bench: ") && sentence.lines().count() == 1, "{sentence}");
    let unknown = bench(&["--out", out, "--only", "nonsense"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(said(&unknown.stderr), "tk-gpu-bench: nothing is called `nonsense`\n");
    assert_eq!(bench(&[]).status.code(), Some(2));
    assert_eq!(bench(&["--out", out, "--elements", "7"]).status.code(), Some(2));

    let Some(output) = run(&["--out", out], "nowhere/tk-gpu-bench") else { return };
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(
        said(&output.stderr),
        "benches/gpu/run: TK_GPU_BENCH is nowhere/tk-gpu-bench, which is no program\n"
    );
}

#[test]
fn cases_that_cannot_be_measured() {
    let (out, file) = (temporary("cases-out.json"), temporary("cases.json"));
    let (out, file) = (out.to_str().unwrap(), file.to_str().unwrap());
    let nowhere = bench(&["--out", out, "--cases", "nowhere.json"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(said(&nowhere.stderr).starts_with("tk-gpu-bench: cannot read nowhere.json: "));
    std::fs::write(file, "{}").unwrap();
    let none = bench(&["--out", out, "--cases", file]);
    assert_eq!(said(&none.stderr), format!("tk-gpu-bench: {file}: the cases are not a list\n"));
    std::fs::write(file, r#"[{"name": "a", "work": "rows"}, {"name": "a", "work": "rows"}]"#).unwrap();
    assert_eq!(bench(&["--out", out, "--cases", file]).status.code(), Some(3));

    let Some(twice) = run(&["--out", out, "--cases", file], "unused") else { return };
    assert_eq!(said(&twice.stderr), "benches/gpu/run: two cases have one name\n");
    assert_eq!(run(&["--out", out, "--random", "0"], "unused").unwrap().status.code(), Some(2));
    let none = run(&["--out", out, "--random", "9", "--only", "nonsense"], "unused").unwrap();
    assert_eq!(said(&none.stderr), "benches/gpu/run: there is no such case\n");
}

/// Two rounds, with numbers that are made up: medians, ratios, and each verdict.
#[test]
fn rounds_become_one_table() {
    let out = temporary("merged.json");
    let mut args = vec![];
    for round in ["0", "1"] {
        args.extend(["--merge".to_string()]);
        args.extend(["ours", "peers"].map(|side| format!("tests/rounds/{side}-{round}.json")));
    }
    args.extend(["--out".to_string(), out.to_str().unwrap().to_string()]);
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(output) = run(&args, "unused") else { return };
    assert_eq!(said(&output.stdout), include_str!("../rounds/table.txt"), "{}", said(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    let merged: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let add = &merged["works"]["add_f32"];
    assert_eq!((&add["verdict"], &add["default_verdict"]), (&"met".into(), &"missed".into()));
    assert_eq!(add["best_configuration"], "BLOCK = 2048, warps = 8");
    let product = &merged["matmul"]["matmul_f16_4096"];
    assert_eq!(product["best_configuration"], "BM = 128, BN = 256");
    assert!((product["of_cublas"].as_f64().unwrap() - 645.0 / 700.0).abs() < 1e-9);
    // A kernel of the library is compared with the peers' kernel for the same work.
    assert_eq!(
        merged["works"]["nn_softmax_f16_781"]["triton_TBps"],
        merged["works"]["softmax_f16_781"]["triton_TBps"]
    );
    assert_eq!(merged["raw"].as_array().unwrap().len(), 2);
    args.push("--strict");
    assert_eq!(run(&args, "unused").unwrap().status.code(), Some(1));
}
