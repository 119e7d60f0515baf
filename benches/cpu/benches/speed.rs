//! Measures the interpreter: `cargo bench -p tk-bench --bench speed [-- WORD]`. `scripts/bench` puts NumPy beside it.
#![allow(missing_docs, reason = "the macros of criterion make functions")]
#![allow(clippy::panic, reason = "a benchmark stops where these fail")]

#[path = "../../../runtime/interp/tests/it/common/mod.rs"]
mod common;

use std::time::Duration;

use common::*;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tk_interp::{Arg, Memory, Options, launch};
use tk_ops::{Buf, DType, philox};
use tk_tile::{FuncId, Id};

/// z = x + y over 2^24 f32, 1024 to a program.
const ADD: &str = r#"
kernel @add(v0 "x": *f32, v1 "y": *f32, v2 "z": *mut f32, v3 "n": i32) {
  v4 = program_id {axis = 0} : i32
  v5 = const {value = 1024 : i32} : i32
  v6 = mul v4, v5 : i32
  v7 = arange {start = 0} : tile[i32, 1024]
  v8 = splat v6 : tile[i32, 1024]
  v9 = add v8, v7 : tile[i32, 1024]
  v10 = splat v3 : tile[i32, 1024]
  v11 = lt v9, v10 : tile[bool, 1024]
  v12 = splat v0 : tile[*f32, 1024]
  v13 = ptr_add v12, v9 : tile[*f32, 1024]
  v14 = load v13, v11 : tile[f32, 1024]
  v15 = splat v1 : tile[*f32, 1024]
  v16 = ptr_add v15, v9 : tile[*f32, 1024]
  v17 = load v16, v11 : tile[f32, 1024]
  v18 = add v14, v17 : tile[f32, 1024]
  v19 = splat v2 : tile[*mut f32, 1024]
  v20 = ptr_add v19, v9 : tile[*mut f32, 1024]
  store v20, v18, v11
  return
}"#;

/// c = a @ b of 1024^3 through views, a tile of c to a program. ELEM is the element type of a and b.
const MATMUL: &str = r#"
kernel @matmul(v0 "a": view[ELEM, 2], v1 "b": view[ELEM, 2], v2 "c": mut view[f32, 2]) {
  v3 = program_id {axis = 0} : i32
  v4 = program_id {axis = 1} : i32
  v5 = const {value = 128 : i32} : i32
  v6 = mul v3, v5 : i32
  v7 = mul v4, v5 : i32
  v8 = const {value = 0 : i32} : i32
  v9 = view_shape v0 {axis = 1} : i32
  v10 = const {value = 32 : i32} : i32
  v11 = const {value = 0.0 : f32} : tile[f32, 128, 128]
  v12 = for v8, v9, v10, v11 : tile[f32, 128, 128] {
  block1(v13: i32, v14: tile[f32, 128, 128]):
    v15 = view_load v0, v6, v13 : tile[ELEM, 128, 32]
    v16 = view_load v1, v13, v7 : tile[ELEM, 32, 128]
    v17 = dot v15, v16, v14 : tile[f32, 128, 128]
    yield v17
  }
  view_store v2, v6, v7, v12
  return
}"#;

/// Row softmax of [4096, 1024].
const SOFTMAX: &str = r#"
kernel @softmax(v0 "x": view[f32, 2], v1 "y": mut view[f32, 2]) {
  v2 = program_id {axis = 0} : i32
  v3 = const {value = 0 : i32} : i32
  v4 = const {value = -inf : f32} : tile[f32, 1, 1024]
  v5 = view_load v0, v2, v3, v4 : tile[f32, 1, 1024]
  v6 = max v5 {axis = 1} : tile[f32, 1]
  v7 = reshape v6 : tile[f32, 1, 1]
  v8 = broadcast v7 : tile[f32, 1, 1024]
  v9 = sub v5, v8 : tile[f32, 1, 1024]
  v10 = exp v9 : tile[f32, 1, 1024]
  v11 = sum v10 {axis = 1} : tile[f32, 1]
  v12 = reshape v11 : tile[f32, 1, 1]
  v13 = broadcast v12 : tile[f32, 1, 1024]
  v14 = div v10, v13 : tile[f32, 1, 1024]
  view_store v1, v2, v3, v14
  return
}"#;

/// Scalar instructions: a counting loop.
const COUNT: &str = r#"
kernel @count(v0 "out": *mut i32, v1 "n": i32) {
  v2 = const {value = 0 : i32} : i32
  v3 = const {value = 1 : i32} : i32
  v4 = for v2, v1, v3, v2 : i32 {
  block1(v5: i32, v6: i32):
    v7 = xor v6, v5 : i32
    yield v7
  }
  store v0, v4
  return
}"#;

/// What a kernel is launched with.
struct Case<'a> {
    name: &'a str,
    text: &'a str,
    args: &'a [Arg],
    grid: [u32; 3],
    /// What a launch does: bytes moved, or operations.
    work: Throughput,
}

/// Measures a kernel with one thread and with as many as there are.
fn measure(c: &mut Criterion, memory: &Memory, case: Case) {
    let module = module(case.text);
    let mut group = c.benchmark_group(case.name);
    group.throughput(case.work).sample_size(20).measurement_time(Duration::from_secs(2));
    for (name, threads) in [("one thread", Some(1)), ("all threads", None)] {
        let options = Options { threads, ..Options::default() };
        let run = || launch(&module, FuncId::new(0), case.args, case.grid, memory, &options);
        group.bench_function(name, |b| b.iter(|| run().unwrap_or_else(|e| panic!("{e}"))));
    }
    group.finish();
}

fn benches(c: &mut Criterion) {
    let m = Memory::new();
    let n = 1usize << 24;
    let (x, y, z) = (f32s(&m, &ramp(n)), f32s(&m, &ramp(n)), f32s(&m, &vec![0.0; n]));
    let args = [ptr(x), ptr(y), ptr(z), int(n as i128)];
    let (grid, work) = ([n as u32 / 1024, 1, 1], Throughput::Bytes(12 * n as u64));
    measure(c, &m, Case { name: "add 2^24 f32", text: ADD, args: &args, grid, work });
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let name = format!("matmul 1024^3 {dtype}");
        let text = MATMUL.replace("ELEM", dtype.name());
        let [a, b] = [1, 2].map(|seed| alloc(&m, Buf::from_f64(dtype, &philox::randn(seed, 1 << 20))));
        let args = [a, b, z].map(|x| tensor(x, &[1024, 1024]));
        let work = Throughput::Elements(2 << 30);
        measure(c, &m, Case { name: &name, text: &text, args: &args, grid: [8, 8, 1], work });
    }
    let rows = |b| tensor(b, &[4096, 1024]);
    let (args, work) = ([rows(x), rows(z)], Throughput::Bytes(8 * 4096 * 1024));
    let name = "softmax 4096 x 1024 f32";
    measure(c, &m, Case { name, text: SOFTMAX, args: &args, grid: [4096, 1, 1], work });
    let (args, work) = ([ptr(z), int(2_000_000)], Throughput::Elements(2_000_000 * 2));
    measure(c, &m, Case { name: "scalar loop", text: COUNT, args: &args, grid: [1, 1, 1], work });
}

criterion_group!(all, benches);
criterion_main!(all);
