//! Checks that each invariant rejects the files of `tests/ir/gpu/verify` that are named after it.

use super::common::{cases, compare};
use tk_gpu::ir::text::parse;
use tk_gpu::verify::{Invariant, verify_laid_out, verify_scheduled};

#[test]
fn rejected() {
    let mut results = vec![];
    for case in cases("verify") {
        let place = case.path.display().to_string();
        let kernel = parse(&case.input).unwrap_or_else(|e| panic!("{place}:{e}"));
        let verify = if case.name.starts_with('L') { verify_laid_out } else { verify_scheduled };
        let error = verify(&kernel).map(|()| panic!("{place} is accepted")).unwrap_err();
        assert!(case.name.starts_with(error.invariant.name()), "{place}: {error}");
        // Printing what is wrong does not fail.
        let _ = kernel.to_string();
        results.push((case, format!("// {error}\n")));
    }
    compare(results);
}

#[test]
fn every_invariant_has_an_example() {
    let names: Vec<String> = cases("verify").into_iter().map(|c| c.name).collect();
    for i in Invariant::ALL {
        assert!(names.iter().any(|n| n.starts_with(i.name())), "{}", i.name());
    }
}
