//! Traces: which program reads and writes which elements.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use tk_interp::trace::{AccessKind, Launch, Programs};
use tk_interp::{Fault, Memory, Options, Trace, launch};
use tk_tile::{FuncId, Id};

use crate::common::*;

/// y[i] = x[i] for blocks of four; element 0 of `n` counts the programs.
const COPY: &str = r#"kernel @k(v0 "x": *f32, v1 "y": mut view[f32, 2], v2 "n": *mut i32) {
  v3 = program_id {axis = 0} : i32
  v4 = const {value = 4 : i32} : i32
  v5 = mul v3, v4 : i32
  v6 = arange {start = 0} : tile[i32, 4]
  v7 = splat v5 : tile[i32, 4]
  v8 = add v6, v7 : tile[i32, 4]
  v9 = splat v0 : tile[*f32, 4]
  v10 = ptr_add v9, v8 : tile[*f32, 4]
  v11 = load v10 : tile[f32, 4]
  v12 = reshape v11 : tile[f32, 1, 4]
  v13 = const {value = 0 : i32} : i32
  view_store v1, v3, v13, v12
  v14 = const {value = 1 : i32} : i32
  v15 = atomic_add v2, v14 {order = "relaxed", scope = "device"} : i32
  return
}"#;

/// Copies eight elements with that many programs, on a view of rows of four.
fn copy(programs: u32, checked: bool) -> (Result<(), Fault>, Launch) {
    let memory = Memory::new();
    let (x, y, n) = (f32s(&memory, &ramp(8)), f32s(&memory, &[0.0; 12]), i32s(&memory, &[0]));
    let trace = Trace::new(0);
    let options = Options { checked, trace: Some(trace.clone()), ..Options::default() };
    let args = [ptr(x), tensor(y, &[3, 4]), ptr(n)];
    let done = launch(&module(COPY), FuncId::new(0), &args, [programs, 1, 1], &memory, &options);
    (done, trace.last().unwrap())
}

#[test]
fn each_access_is_told_with_its_program() {
    for checked in [false, true] {
        let (done, launch) = copy(2, checked);
        done.unwrap();
        let of = |ids: [u32; 2]| ids.map(|i| Some(Programs([Some(i), Some(0), Some(0)])));
        let touched = launch.touched(0, AccessKind::Read).unwrap();
        assert_eq!((touched.shape.as_slice(), touched.elements.len()), (&[8][..], 8));
        assert_eq!([touched.elements[3], touched.elements[4]], of([0, 1]));
        let touched = launch.touched(1, AccessKind::Write).unwrap();
        assert_eq!(touched.shape, [3, 4]);
        assert_eq!([touched.elements[3], touched.elements[4]], of([0, 1]));
        assert_eq!(touched.elements[8..], [None; 4]);
        let touched = launch.touched(2, AccessKind::Atomic).unwrap();
        assert_eq!(touched.elements, [Some(Programs([None, Some(0), Some(0)]))], "several");
        assert_eq!(launch.touched(1, AccessKind::Read), None);
        assert!(touched.outside.is_empty() && !launch.is_cut && launch.fault.is_none());
        assert_eq!(copy(2, checked).1, launch, "the same in every run");
    }
}

#[test]
fn an_access_outside_ends_the_launch_and_is_told() {
    let (done, launch) = copy(3, true);
    done.unwrap_err();
    assert_eq!(launch.fault, Some([2, 0, 0]));
    let touched = launch.touched(0, AccessKind::Read).unwrap();
    assert_eq!(touched.outside.keys().copied().collect::<Vec<_>>(), [8, 9, 10, 11]);
}

#[test]
fn the_first_launches_and_the_last_are_kept() {
    let memory = Memory::new();
    let trace = Trace::new(1);
    let options = Options { trace: Some(trace.clone()), ..Options::default() };
    let text = "kernel @k(v0 \"i\": i32) {\n  return\n}";
    for i in 0..3 {
        launch(&module(text), FuncId::new(0), &[int(i)], [1, 1, 1], &memory, &options).unwrap();
    }
    let arg = |launch: &Launch| launch.params[0].arg.clone();
    assert_eq!(trace.launches().iter().map(arg).collect::<Vec<_>>(), [int(0)]);
    assert_eq!(trace.last().as_ref().map(arg), Some(int(2)));
    trace.clear();
    assert_eq!((trace.launches(), trace.last()), (vec![], None));
}
