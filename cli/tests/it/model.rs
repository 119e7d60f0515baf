//! The cost model: what it chooses on targets of which no GPU is here, and facts that hold for each of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use tk_snapshot::Snapshots;

use crate::support::command::{Ran, command};

/// Targets whose chips are known.
const TARGETS: [&str; 4] = ["sm_80", "sm_90a", "gfx90a", "gfx942"];
/// A kernel of `benches/gpu/model`, and launches of it.
const LAUNCHES: [(&str, &[&str]); 8] = [
    ("product.tk::product", &["n=512,4096", "a=empty:f16[n,n]", "b=empty:f16[n,n]", "c=empty:f16[n,n]"]),
    (
        "product.tk::product",
        &["m=16,100", "a=empty:f16[m,4100]", "b=empty:f16[4100,1000]", "c=empty:f16[m,1000]"],
    ),
    ("rows.tk::softmax", &["n=100,1024,8000", "x=empty:f16[8192,n]", "y=empty:f16[8192,n]"]),
    (
        "rows.tk::layer_norm",
        &[
            "n=100,4096",
            "x=empty:f16[4096,n]",
            "weight=empty:f16[n]",
            "bias=empty:f16[n]",
            "y=empty:f16[4096,n]",
        ],
    ),
    ("rows.tk::sum_of_columns", &["m=100,100000", "x=empty:f16[m,1000]", "y=empty:f32[1000]"]),
    ("rows.tk::stencil", &["n=1000,8000", "x=empty:f16[n,n]", "y=empty:f16[n,n]"]),
    (
        "rows.tk::gather",
        &["n=64,4096", "table=empty:f16[10000,n]", "numbers=zeros:i32[5000]", "y=empty:f16[5000,n]"],
    ),
    (
        "attention.tk::attention",
        &[
            "n=512,8192",
            "q=empty:f16[16,n,64]",
            "k=empty:f16[16,n,64]",
            "v=empty:f16[16,n,64]",
            "o=empty:f16[16,n,64]",
        ],
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/gpu/model")
}

/// The predicted members of each point, in their order.
fn explained(target: &str, kernel: &str, args: &[&str], more: &[&str]) -> Vec<Vec<Value>> {
    let mut all = vec!["--message-format", "json", "explain-launch", kernel, "--for", target];
    all.extend(args);
    all.extend(more);
    let ran = Ran::new(command(&folder(), &all).output().unwrap());
    ran.code(0);
    let mut points: Vec<Vec<Value>> = vec![];
    for line in ran.out.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["kind"], "predicted", "{value}");
        match points.last_mut() {
            Some(last) if last[0]["point"] == value["point"] => last.push(value),
            Some(_) | None => points.push(vec![value]),
        }
    }
    points
}

#[test]
fn choices_are_what_was_reviewed() {
    let mut text = String::new();
    for (kernel, args) in LAUNCHES {
        for target in TARGETS {
            for point in explained(target, kernel, args, &["--most", "10000"]) {
                let chosen = point.iter().find(|m| m["chosen"] == true).unwrap();
                let name = chosen["member"].as_str().unwrap();
                let name = if name.is_empty() { "the defaults" } else { name };
                text.push_str(&format!("{kernel} {} {target}: {name}\n", point[0]["point"]));
                // Nothing is spilled where another member fits.
                let fits = point.iter().any(|m| m["spilled"] == 0 && !m["us"].is_null());
                assert!(!fits || chosen["spilled"] == 0, "{kernel} {target}: {chosen}");
                // The order is that of the times, and the choice is nearly the first.
                let times: Vec<f64> = point.iter().filter_map(|m| m["us"].as_f64()).collect();
                assert!(times.is_sorted(), "{kernel} {target}");
                assert!(chosen["us"].as_f64().unwrap() * 0.96 < times[0], "{kernel} {target}: {chosen}");
                assert!(times.iter().all(|us| us.is_finite() && *us > 0.0), "{kernel} {target}");
            }
        }
    }
    let mut snapshots = Snapshots::new();
    snapshots.check(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/model/choices.txt"), &text);
    snapshots.finish();
}

#[test]
fn more_work_takes_longer() {
    for target in TARGETS {
        for (kernel, args) in [
            ("rows.tk::softmax", ["n=2^8..2^20", "x=empty:f16[n,512]", "y=empty:f16[n,512]"].as_slice()),
            (
                "product.tk::product",
                ["n=2^8..2^13", "a=empty:f16[n,n]", "b=empty:f16[n,n]", "c=empty:f16[n,n]"].as_slice(),
            ),
        ] {
            let points = explained(target, kernel, args, &["--most", "1"]);
            let times: Vec<f64> = points.iter().map(|p| p[0]["us"].as_f64().unwrap()).collect();
            assert!(times.is_sorted(), "{kernel} on {target}: {times:?}");
        }
    }
}

#[test]
fn a_value_that_is_given_is_not_chosen() {
    let args = ["n=4096", "a=empty:f16[n,n]", "b=empty:f16[n,n]", "c=empty:f16[n,n]"];
    let point =
        explained("sm_90a", "product.tk::product", &args, &["--set", "BM=64", "--most", "10000"]).remove(0);
    let members: Vec<&str> = point.iter().map(|m| m["member"].as_str().unwrap()).collect();
    assert!(members.iter().all(|m| m.is_empty() || m.contains("BM=64")), "{members:?}");
    assert_eq!(members.len(), 73);
}
