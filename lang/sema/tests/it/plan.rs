//! What a launch means, as the launcher is told: the parts of a plan that no result shows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tk_ops::{DType, Scalar};
use tk_sema::contract::{HostArg, Plan, plan};
use tk_sema::{Loader, check};

/// One text under the name `main.tk`.
struct One(&'static str);

impl Loader for One {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "main.tk" { Ok(self.0.to_string()) } else { Err(format!("{path}: not found")) }
    }
}

/// The plan of the first kernel of a text.
fn planned(text: &'static str, args: &[HostArg]) -> Plan {
    let checked = check(&One(text), "main.tk");
    assert!(!checked.diagnostics.iter().any(|d| d.is_error()), "{:?}", checked.diagnostics);
    let (kernel, _) = checked.hir.kernels().next().unwrap();
    plan(&checked.hir, kernel, args, &[]).unwrap()
}

fn tensor() -> HostArg {
    HostArg::Tensor { dtype: DType::F32, shape: vec![8], strides: vec![1] }
}

#[test]
fn aliases_are_positions_of_arguments() {
    let number = || HostArg::Scalar(Scalar::int(DType::I32, 1));
    let made = planned(
        "struct P { a: i32, b: i32 }
         kernel k(p: P, x: *f32, y: mut view[f32, 1]?, z: *mut f32) alias(z, x) alias(x, y, z) {}",
        &[number(), number(), tensor(), tensor(), tensor()],
    );
    assert_eq!(made.alias, [(2, 3), (2, 4), (3, 4)]);
}

#[test]
fn workspaces_say_whether_they_are_zeroed() {
    let made = planned(
        "kernel k(x: view[f32, 1]) scratch(a: *mut f32, x.shape[0]) scratch(b: *mut u32, 2, zeroed = true) {}",
        &[tensor()],
    );
    let shown: Vec<_> = made.scratch.iter().map(|s| (s.name.as_str(), s.count, s.zeroed)).collect();
    assert_eq!(shown, [("a", 8, false), ("b", 2, true)]);
}

#[test]
fn a_tuned_parameter_without_a_value_is_advised_a_default() {
    let text = "kernel k[BM: i32](x: view[f32, 1]) tune() { { BM = [64, 128] } } {}";
    let checked = check(&One(text), "main.tk");
    let (kernel, _) = checked.hir.kernels().next().unwrap();
    let message = plan(&checked.hir, kernel, &[tensor()], &[]).unwrap_err().diagnostic.message;
    assert!(message.ends_with("give it by name, or a default: `BM: i32 = 64`"), "{message}");
}
