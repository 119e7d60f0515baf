//! The member that a launch uses is the one that a prediction of all members prefers: branch and bound leaves out none that
//! is better, and what members of a family share is what each of them would have. In a debug build, each bound of the cost
//! model is compared with the time that it is a bound of.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use tk_driver::{Cache, Environment, Jit, usual_place};
use tk_gpu::target::spec::SM_90A;
use tk_ops::DType;
use tk_runtime::Session;
use tk_runtime::choice::{MARGIN, Origin, Ranked};
use tk_sema::contract::{HostArg, kernel_named, plan_on, with_values};

/// A kernel of `benches/gpu/model`, and the arguments of a launch with this extent.
type Case = (&'static str, &'static str, fn(i64) -> Vec<HostArg>);

const CASES: [Case; 4] = [
    ("product.tk", "product", |n| vec![tensor(&[n, 1024]), tensor(&[1024, 2048]), tensor(&[n, 2048])]),
    // The keys are a multiple of `BN`.
    ("attention.tk", "attention", |n| {
        vec![tensor(&[6, n.unsigned_abs().next_multiple_of(64) as i64, 64]); 4]
    }),
    ("rows.tk", "softmax", |n| vec![tensor(&[n, 1024]); 2]),
    ("rows.tk", "sum_of_columns", |n| vec![tensor(&[n, 1024]), of(DType::F32, &[1024])]),
];

fn tensor(shape: &[i64]) -> HostArg {
    of(DType::F16, shape)
}

fn of(dtype: DType, shape: &[i64]) -> HostArg {
    let strides = (0..shape.len()).map(|d| shape.iter().skip(d + 1).product()).collect();
    HostArg::Tensor { dtype, shape: shape.to_vec(), strides }
}

struct Files;

impl tk_sema::Loader for Files {
    fn load(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }
}

/// Extents from 64 to 32,704 in steps of 64, drawn so that small ones are as likely as large ones, and one that divides
/// nothing.
fn drawn() -> Vec<i64> {
    let mut state = 7u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let some = (0..20).map(|_| {
        let magnitude = next(9);
        64 * (1 + next((1 << magnitude) + 1)).min(511) as i64
    });
    some.chain([1000]).collect()
}

#[test]
fn a_launch_uses_the_best_of_all_members() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/gpu/model");
    let place = usual_place(&SM_90A).unwrap();
    for (file, name, args) in CASES {
        let checked = tk_sema::check(&Files, &folder.join(file).display().to_string());
        let jit = Jit::new(checked.sources.clone(), Environment::of_process(None), Cache::of_process());
        let kernel = kernel_named(&checked.hir, name).unwrap();
        let session = Session::new(checked);
        let mut chosen_members = std::collections::BTreeSet::new();
        for n in drawn() {
            let args = args(n);
            let chosen = session.choose(kernel, &args, &[], &place, Some(&jit)).unwrap();
            let ranked = session.ranked(kernel, &args, &[], &place, &jit).unwrap();
            let us = |r: &Ranked| r.estimate.as_ref().map_or(f64::INFINITY, |e| e.us);
            let of_defaults = ranked.iter().find(|r| r.values.is_empty()).map_or(f64::INFINITY, us);
            let best = &ranked[0];
            let expected = if us(best) < MARGIN * of_defaults { best.values.clone() } else { vec![] };
            let found = match &chosen.origin {
                Origin::Model(values) => values.clone(),
                Origin::Defaults | Origin::Record(..) => vec![],
            };
            assert_eq!(found, expected, "{name} {n}");
            // What a family shares is what the launch contract says of each member.
            for r in &ranked {
                let sets = with_values(&[], &r.values);
                let plan = plan_on(&session.checked().hir, kernel, &args, &sets, place.facts).unwrap();
                assert_eq!(format!("{plan:?}"), format!("{:?}", r.plan), "{name} {n} {:?}", r.values);
                if r.values == found {
                    assert_eq!(format!("{plan:?}"), format!("{:?}", chosen.plan), "{name} {n}");
                }
            }
            chosen_members.insert(format!("{found:?}"));
        }
        assert!(chosen_members.len() > 1, "{name}: all launches use {chosen_members:?}");
    }
}
