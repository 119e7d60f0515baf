//! Checks that each invariant rejects the files of `tests/ir/gpu/verify` that are named after it.

use super::common::{Case, cases, compare};
use tk_gpu::ir::text::parse;
use tk_gpu::verify::{GpuInvariant, verify_fenced, verify_laid_out, verify_scheduled, verify_selected};

#[test]
fn rejected() {
    let mut results = vec![];
    for case in cases("verify") {
        let place = case.path.display().to_string();
        let error = rejection(&case).unwrap_or_else(|| panic!("{place} is accepted"));
        let text = error.split_once(": ").map_or(error.as_str(), |(_, rest)| rest);
        let rule = &case.name[..3];
        assert!(error.starts_with(rule) || text.starts_with(rule), "{place}: {error}");
        results.push((case, format!("// {error}\n")));
    }
    compare(results);
}

/// What parser or verifier say of a text.
fn rejection(case: &Case) -> Option<String> {
    let kernel = match parse(&case.input) {
        Ok(kernel) => kernel,
        Err(e) => return Some(e.to_string()),
    };
    // Printing what is wrong does not fail.
    let _ = kernel.to_string();
    let verify = match &case.name[..3] {
        "S09" => verify_selected,
        "S11" => verify_fenced,
        name if name.starts_with('L') => verify_laid_out,
        _ => verify_scheduled,
    };
    verify(&kernel).err().map(|e| e.to_string())
}

#[test]
fn every_invariant_has_an_example() {
    let names: Vec<String> = cases("verify").into_iter().map(|c| c.name).collect();
    for i in GpuInvariant::ALL {
        assert!(names.iter().any(|n| n.starts_with(i.name())), "{}", i.name());
    }
}
