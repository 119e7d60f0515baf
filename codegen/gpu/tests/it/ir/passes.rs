//! Runs the pipeline on the files of the folder of each pass, up to that pass.

use std::collections::BTreeMap;

use super::common::{Case, cases, compare, folder, run_all, tile};
use tk_gpu::passes::Run;
use tk_gpu::pipeline::{PASSES, PipelineError, run};
use tk_gpu::verify::GpuInvariant;

/// The kernel after a pass.
fn after(pass: &str, case: &Case) -> String {
    let (module, options) = tile(case);
    let (seen, _) = run_all(&module, options).unwrap_or_else(|e| panic!("{}: {e}", case.path.display()));
    seen.into_iter().find(|(name, _)| *name == pass).map(|(_, text)| text).unwrap()
}

#[test]
fn each_pass() {
    for pass in PASSES {
        assert!(folder(&format!("ir/gpu/{}", pass.name)).is_dir(), "tests/ir/gpu/{} is missing", pass.name);
        compare(
            cases(pass.name).into_iter().map(|c| (after(pass.name, &c), c)).map(|(r, c)| (c, r)).collect(),
        );
    }
}

/// What a pass needs, an earlier one leaves; each property has one pass that leaves it.
#[test]
fn passes_stand_in_the_order_of_their_needs() {
    let mut left: BTreeMap<String, &str> = BTreeMap::new();
    for pass in PASSES {
        for need in pass.needs {
            assert!(
                left.contains_key(&format!("{need:?}")),
                "no pass before `{}` leaves {need:?}",
                pass.name
            );
        }
        for property in pass.leaves {
            let before = left.insert(format!("{property:?}"), pass.name);
            assert_eq!(before, None, "{property:?} is left by `{}` too", pass.name);
        }
        assert!(!pass.purpose.is_empty() && !pass.leaves.is_empty(), "{}", pass.name);
    }
}

/// A pass that does not do its work is named.
#[test]
fn what_a_pass_leaves_is_verified() {
    let product = cases("lower_to_shared").into_iter().find(|c| c.name == "dot").unwrap();
    let (module, options) = tile(&product);
    let stages = run(&module, &super::common::first_kernel(&module), options, &mut |_, _| {}).unwrap();
    let laid_out = stages.laid_out.into_inner();
    let wanted = [
        ("lower_to_shared", GpuInvariant::S01),
        ("allocate_shared", GpuInvariant::S05),
        ("insert_barriers", GpuInvariant::S07),
    ];
    for (skipped, wanted) in wanted {
        let mut kernel = laid_out.clone();
        for pass in PASSES.iter().filter(|p| p.name != skipped) {
            if let Run::Kernel { run, .. } = pass.run {
                run(&mut kernel);
            }
        }
        let error = tk_gpu::verify::verify_scheduled(&kernel).unwrap_err();
        assert_eq!(error.invariant, wanted, "without `{skipped}`: {error}");
        let error = PipelineError::Kernel { pass: skipped, error };
        assert!(error.to_string().starts_with(&format!("after the pass `{skipped}`: ")));
    }
}

#[test]
fn a_kernel_is_named() {
    let (module, options) = tile(&cases("assign_layouts").remove(0));
    let error = run(&module, "nobody", options, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "there is no kernel `nobody`");
}
