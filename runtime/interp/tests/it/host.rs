//! `test` blocks: buffers, launches, comparisons, expected errors.
#![allow(clippy::unwrap_used, reason = "a test fails where these fail")]

use std::cell::RefCell;
use std::time::Duration;

use crate::common::*;
use tk_interp::{Arg, Fault, Host, Memory, Options, launch, run_test};
use tk_ops::DType;
use tk_tile::{ElemType, FuncId, Id, TileModule};

/// Launches the kernels of the module that the test stands in, one program each, and keeps what it was asked.
struct Local<'a> {
    module: &'a TileModule,
    asked: RefCell<Vec<String>>,
}

impl Host for Local<'_> {
    fn launch(
        &self,
        kernel: &str,
        cargs: &str,
        args: Vec<Option<(Arg, ElemType)>>,
        memory: &Memory,
    ) -> Result<(), Fault> {
        let args: Vec<Option<Arg>> = args.into_iter().map(|a| a.map(|(arg, _)| arg)).collect();
        self.asked.borrow_mut().push(format!("{kernel}[{cargs}] {args:?}"));
        let Some(id) = self.module.find(kernel) else { return Err(Fault::new("E0801", "no such instance")) };
        let args: Vec<Arg> = args.into_iter().flatten().collect();
        launch(self.module, id, &args, [1, 1, 1], memory, &Options::default())
    }

    fn npy(&self, path: &str) -> Result<(DType, Vec<usize>, Vec<u8>), String> {
        match path {
            "good.npy" => {
                Ok((DType::I32, vec![2, 2], [1, 2, 3, 4i32].iter().flat_map(|v| v.to_le_bytes()).collect()))
            }
            "short.npy" => Ok((DType::I32, vec![2, 2], vec![0; 15])),
            _ => Err("not found".into()),
        }
    }

    fn room(&self, _bytes: usize) -> Result<(), String> {
        Ok(())
    }

    fn print(&self, text: &str) {
        self.asked.borrow_mut().push(text.into());
    }
}

const DOUBLE: &str = r#"
kernel @double(v0 "x": view[f32, 2], v1 "y": mut view[f32, 2]) {
  v2 = const {value = 0 : i32} : i32
  v3 = view_load v0, v2, v2 : tile[f32, 4, 8]
  v4 = add v3, v3 : tile[f32, 4, 8]
  view_store v1, v2, v2, v4
  return
}"#;

/// Runs a test with this body; gives what came out and what the host was asked.
fn test(body: &str) -> (Result<(), Fault>, Vec<String>) {
    let module = module(&format!("test @t() {{\n{body}\n  return\n}}\n{DOUBLE}"));
    let host = Local { module: &module, asked: RefCell::default() };
    let options = Options { timeout: Some(Duration::from_secs(20)), ..Options::default() };
    let result = run_test(&module, FuncId::new(0), &host, &Memory::new(), &options);
    (result, host.asked.into_inner())
}

fn passes(body: &str) {
    let (result, _) = test(body);
    assert_eq!(result, Ok(()), "{body}");
}

fn fails(body: &str) -> Fault {
    test(body).0.unwrap_err()
}

#[test]
fn buffer_launch_tile_compare() {
    let body = r#"  v0 = host_randn {seed = 3} : tile[f32, 3, 5]
  v1 = host_buffer v0 : mut view[f32, 2]
  v2 = const {value = 0.0 : f32} : tile[f32, 3, 5]
  v3 = host_buffer v2 : mut view[f32, 2]
  host_launch v1, v3 {callee = "double", cargs = "A = 1"}
  v4 = host_tile v3 : tile[f32, 3, 5]
  v5 = add v0, v0 : tile[f32, 3, 5]
  host_assert_close v4, v5 {atol = 0.0 : f64, rtol = 0.0 : f64}
  v6 = host_tile v1 : tile[f32, 3, 5]
  host_assert_close v6, v0 {atol = 0.0 : f64, rtol = 0.0 : f64}"#;
    let (result, asked) = test(body);
    assert_eq!(result, Ok(()));
    assert!(asked[0].starts_with("double[A = 1] [Some(View {"), "{asked:?}");
    assert!(asked[0].contains("shape: [3, 5], strides: [5, 1]"), "{asked:?}");
}

#[test]
fn parts_of_buffers_scalars_and_absent_arguments() {
    let body = r#"  v0 = const {value = 0.0 : f32} : tile[f32, 6, 5]
  v1 = host_buffer v0 : mut view[f32, 2]
  v2 = const {value = 2 : i32} : i32
  v3 = const {value = 9 : i32} : i32
  v4 = view_slice v1, v2, v3 {axes = [2, 1]} : mut view[f32, 2]
  v5 = undef : i32
  host_launch v4, v2, v5 {absent = [2], callee = "other"}"#;
    let (result, asked) = test(body);
    assert_eq!(result.unwrap_err().code, "E0801");
    assert!(asked[0].contains("offset: 10, shape: [4, 5], strides: [5, 1]"), "{asked:?}");
    assert!(asked[0].ends_with("Some(Scalar(Scalar { dtype: I32, bits: 2 })), None]"), "{asked:?}");
}

#[test]
fn random_numbers_are_reproducible_and_in_range() {
    passes(
        r#"  v0 = host_randn {seed = 3} : tile[f16, 100]
  v1 = host_randn {seed = 3} : tile[f16, 100]
  host_assert_close v0, v1 {atol = 0.0 : f64, rtol = 0.0 : f64}
  v2 = const {value = -2.0 : f32} : f32
  v3 = const {value = 3.0 : f32} : f32
  v4 = host_uniform v2, v3 {seed = 1} : tile[i32, 1000]
  v5 = min v4 {axis = 0} : i32
  v6 = max v4 {axis = 0} : i32
  v7 = const {value = -2 : i32} : i32
  v8 = const {value = 2 : i32} : i32
  v9 = eq v5, v7 : bool
  assert v9
  v10 = eq v6, v8 : bool
  assert v10"#,
    );
}

#[test]
fn npy_files() {
    passes(
        r#"  v0 = host_npy {path = "good.npy"} : tile[i32, 2, 2]
  v1 = arange {start = 1} : tile[i32, 4]
  v2 = reshape v1 : tile[i32, 2, 2]
  host_assert_close v0, v2 {atol = 0.0 : f64, rtol = 0.0 : f64}"#,
    );
    let code = |path: &str, ty: &str| fails(&format!("  v0 = host_npy {{path = \"{path}\"}} : {ty}")).code;
    assert_eq!(code("good.npy", "tile[f32, 2, 2]"), "E0302");
    assert_eq!(code("good.npy", "tile[i32, 4]"), "E0304");
    assert_eq!(code("short.npy", "tile[i32, 2, 2]"), "E0003");
    assert_eq!(code("none.npy", "tile[i32, 2, 2]"), "E0003");
}

/// Compares tiles of two f32 each.
fn close(a: [&str; 2], b: [&str; 2], atol: &str, rtol: &str) -> Result<(), Fault> {
    let body = format!(
        r#"  v0 = const {{value = {} : f32}} : tile[f32, 1]
  v1 = const {{value = {} : f32}} : tile[f32, 1]
  v2 = cat v0, v1 {{axis = 0}} : tile[f32, 2]
  v3 = const {{value = {} : f32}} : tile[f32, 1]
  v4 = const {{value = {} : f32}} : tile[f32, 1]
  v5 = cat v3, v4 {{axis = 0}} : tile[f32, 2]
  host_assert_close v2, v5 {{atol = {atol} : f64, rtol = {rtol} : f64}}"#,
        a[0], a[1], b[0], b[1]
    );
    test(&body).0
}

#[test]
fn what_is_close() {
    assert_eq!(close(["1.0", "nan"], ["1.0", "nan"], "0.0", "0.0"), Ok(()));
    assert_eq!(close(["inf", "-inf"], ["inf", "-inf"], "0.0", "0.0"), Ok(()));
    assert_eq!(close(["0.0", "2.0"], ["-0.0", "2.5"], "0.5", "0.0"), Ok(()));
    assert_eq!(close(["10.0", "2.0"], ["8.0", "2.5"], "0.0", "0.25"), Ok(()));
    for (a, b) in
        [("inf", "-inf"), ("1.0", "inf"), ("inf", "1.0"), ("nan", "1.0"), ("1.0", "nan"), ("1.0", "1.5")]
    {
        assert!(close([a, "0.0"], [b, "0.0"], "0.25", "0.0").is_err(), "{a} {b}");
    }
    assert!(close(["1.0", "0.0"], ["inf", "0.0"], "0.0", "1.0").is_err());
    let fault = close(["1.5", "3.0"], ["1.0", "1.0"], "0.125", "0.125").unwrap_err();
    assert_eq!(fault.code, "E0708");
    let text = "values are not close: 3.0 instead of 1.0 at [1], the worst mismatch of 2 in 2 elements";
    assert!(fault.message.starts_with(text), "{fault}");
}

#[test]
fn integers_are_compared_exactly() {
    let body = |b: &str| {
        format!(
            r#"  v0 = const {{value = 9007199254740993 : i64}} : i64
  v1 = const {{value = {b} : i64}} : i64
  host_assert_close v0, v1 {{atol = 0.0 : f64, rtol = 0.0 : f64}}"#
        )
    };
    passes(&body("9007199254740993"));
    assert!(fails(&body("9007199254740992")).message.contains("1 in 1"));
}

#[test]
fn expected_errors() {
    let bad = r#"    v1 = const {value = false : bool} : bool
    assert v1 {message = "no"}"#;
    let expect = |code: &str, inner: &str| {
        format!("  host_expect_error {{code = \"{code}\"}} {{\n  block1:\n{inner}\n    yield\n  }}\n")
    };
    passes(&expect("E0708", bad));
    passes(&expect("E0801", "    host_launch {callee = \"nothing\"}"));
    let fault = fails(&expect("E0704", bad));
    assert_eq!(fault.code, "E0901");
    assert!(
        fault.message.contains("E0704") && fault.message.contains("E0708") && fault.message.contains("no")
    );
    assert!(fails(&expect("E0704", "")).message.contains("no error occurred"));
    // Inside of branches, loops and other expectations.
    passes(&expect("E0901", &expect("E0704", bad)));
    let looped = r#"    v1 = const {value = 0 : i32} : i32
    v2 = const {value = 3 : i32} : i32
    v3 = const {value = 1 : i32} : i32
    for v1, v2, v3 {
    block2(v4: i32):
      v5 = lt v4, v3 : bool
      if v5 {
      block3:
        yield
      block4:
        assert v5
        yield
      }
      yield
    }"#;
    passes(&format!(
        "{}{}",
        expect("E0708", looped),
        "  v9 = const {value = true : bool} : bool\n  assert v9"
    ));
}

#[test]
fn faults_of_tests_have_no_program() {
    let fault = fails("  v0 = const {value = false : bool} : bool\n  assert v0 loc(0:1:2)");
    assert_eq!((fault.program, fault.loc.is_some()), (None, true));
}

#[test]
fn tests_have_a_time_limit() {
    let module = module(
        r#"test @t() {
  while {
  block1:
    v0 = const {value = true : bool} : bool
    condition v0
  block2:
    yield
  }
  return
}"#,
    );
    let host = Local { module: &module, asked: RefCell::default() };
    let options = Options { timeout: Some(Duration::from_millis(20)), ..Options::default() };
    let fault = run_test(&module, FuncId::new(0), &host, &Memory::new(), &options).unwrap_err();
    assert!(fault.message.contains("still running"), "{fault}");
}
