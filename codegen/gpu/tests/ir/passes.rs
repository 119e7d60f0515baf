//! Runs the pipeline on the files of the folder of each pass, up to that pass.

use crate::common::{Case, cases, compare, run_all, tile};
use tk_gpu::passes::decompose_dot_scaled;
use tk_gpu::pipeline::{ASSIGN, PipelineError, SCHEDULE, run};
use tk_gpu::verify::Invariant;
use tk_tile::TileModule;

/// The kernel behind a pass.
fn after(pass: &str, case: &Case) -> String {
    let (module, setting) = tile(case);
    let (seen, _) = run_all(&module, setting).unwrap_or_else(|e| panic!("{}: {e}", case.path.display()));
    seen.into_iter().find(|(name, _)| *name == pass).map(|(_, text)| text).unwrap()
}

#[test]
fn each_pass() {
    for pass in [ASSIGN].into_iter().chain(SCHEDULE.iter().map(|p| p.name)) {
        compare(cases(pass).into_iter().map(|c| (after(pass, &c), c)).map(|(r, c)| (c, r)).collect());
    }
}

/// In front of layouts, modules are changed as a whole.
#[test]
fn scaled_products() {
    let after = |case: &Case| {
        let mut module = tile(case).0.into_inner();
        (decompose_dot_scaled::PASS.run)(&mut module);
        assert!(!decompose_dot_scaled::is_needed(&module));
        TileModule::new(module).unwrap().to_string()
    };
    compare(cases("scaled").into_iter().map(|c| (after(&c), c)).map(|(r, c)| (c, r)).collect());
}

/// A pass that does not do its work is named.
#[test]
fn what_a_pass_leaves_is_verified() {
    let product = cases("lower").into_iter().find(|c| c.name == "dot").unwrap();
    let (module, setting) = tile(&product);
    let stages = run(&module, &crate::common::first_kernel(&module), setting, None).unwrap();
    let laid_out = stages.laid_out.into_inner();
    let wanted = [("lower", Invariant::S01), ("places", Invariant::S05), ("barriers", Invariant::S07)];
    for (name, wanted) in wanted {
        let skipped = SCHEDULE.iter().find(|p| p.name == name).unwrap();
        let mut kernel = laid_out.clone();
        SCHEDULE.iter().filter(|p| p.name != skipped.name).for_each(|p| (p.run)(&mut kernel));
        let error = tk_gpu::verify::verify_scheduled(&kernel).unwrap_err();
        assert_eq!(error.invariant, wanted, "without `{}`: {error}", skipped.name);
        let error = PipelineError::Pass { pass: skipped.name, error };
        assert!(error.to_string().starts_with(&format!("after the pass `{}`: ", skipped.name)));
    }
}

#[test]
fn a_kernel_is_named() {
    let (module, setting) = tile(&cases("assign").remove(0));
    let error = run(&module, "nobody", setting, None).unwrap_err();
    assert_eq!(error.to_string(), "there is no kernel `nobody`");
}
