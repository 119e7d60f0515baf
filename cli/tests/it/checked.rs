//! Runs `tests/checked/*.tk`: each file plants one fault in the kernel that its test "faulty" launches, which checked
//! mode must report as in the `.txt` beside it (`TK_BLESS=1` writes it); its test "corrected" must pass.
//!
//! The first line promises the code: `// E0710. What is wrong.`

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tk_snapshot::Snapshots;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/checked")
}

/// Exit code, standard error.
fn test(file: &str, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tk"));
    let ran = command
        .current_dir(folder())
        .arg("test")
        .args(args)
        .args(["--timeout", "60", file])
        .output()
        .unwrap();
    (ran.status.code().unwrap(), String::from_utf8(ran.stderr).unwrap())
}

fn cases() -> Vec<String> {
    let names = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|n| n.ends_with(".tk")).collect();
    names.sort();
    names
}

#[test]
fn every_planted_fault_is_reported_and_its_corrected_twin_is_not() {
    let cases = cases();
    assert!(cases.len() >= 25, "only {} cases found", cases.len());
    let mut snapshots = Snapshots::new();
    for name in &cases {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let promised = text.strip_prefix("// ").and_then(|t| t.get(..5)).unwrap();
        let (code, report) = test(name, &["--filter", "faulty"]);
        assert_eq!(code, 1, "{name}: the fault is not reported\n{report}");
        assert!(report.contains(&format!("error[{promised}]")), "{name}: not {promised}\n{report}");
        // What a test itself reads belongs to no program.
        let somewhere =
            ["in the program with the ids ", ".tile()"].iter().any(|place| report.contains(place));
        assert!(somewhere, "{name}: no program\n{report}");
        assert_eq!(test(name, &["--filter", "faulty"]).1, report, "{name}: another report the second time");
        snapshots.check(folder().join(name).with_extension("txt"), &report);
        for args in [&["--filter", "corrected"][..], &["--filter", "corrected", "--unchecked"]] {
            let (code, report) = test(name, args);
            assert!(code == 0 && !report.contains("error"), "{name} {args:?}:\n{report}");
        }
    }
    snapshots.finish();
}

#[test]
fn only_checked_mode_reports_a_race() {
    let (code, report) = test("race_on_result.tk", &["--filter", "faulty", "--unchecked"]);
    assert_eq!((code, report.as_str()), (0, ""));
}
