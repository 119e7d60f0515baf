//! What the tests share: IR text in, device memory in and out.
#![allow(dead_code, reason = "a benchmark uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where these fail")]

use tk_interp::{Arg, BufferId, Fault, Memory, Options, launch};
use tk_ops::{Buf, DType, Scalar};
use tk_tile::{FuncId, Id, TileModule};

/// Reads and verifies a module.
pub fn module(text: &str) -> TileModule {
    let module = tk_tile::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    TileModule::new(module).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Launches the first function of a module.
pub fn run(memory: &Memory, text: &str, args: &[Arg], grid: [u32; 3]) -> Result<(), Fault> {
    launch(&module(text), FuncId::new(0), args, grid, memory, &Options::default())
}

/// Launches one program; panics if it fails.
pub fn one(memory: &Memory, text: &str, args: &[Arg]) {
    run(memory, text, args, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
}

pub fn ptr(buffer: BufferId) -> Arg {
    Arg::Ptr { buffer, offset: 0 }
}

pub fn int(v: i128) -> Arg {
    Arg::Scalar(Scalar::int(DType::I32, v))
}

pub fn view(buffer: BufferId, shape: &[i64], strides: &[i64]) -> Arg {
    Arg::View { buffer, offset: 0, shape: shape.to_vec(), strides: strides.to_vec() }
}

/// A contiguous view.
pub fn tensor(buffer: BufferId, shape: &[i64]) -> Arg {
    let strides: Vec<i64> = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
    view(buffer, shape, &strides)
}

pub fn alloc(memory: &Memory, buf: Buf) -> BufferId {
    memory.alloc(buf.to_le_bytes())
}

pub fn f32s(memory: &Memory, v: &[f32]) -> BufferId {
    alloc(memory, Buf::F32(v.to_vec()))
}

pub fn i32s(memory: &Memory, v: &[i32]) -> BufferId {
    alloc(memory, Buf::I32(v.to_vec()))
}

pub fn read(memory: &Memory, id: BufferId, dtype: DType) -> Buf {
    Buf::from_le_bytes(dtype, &memory.read(id).unwrap()).unwrap()
}

pub fn read_f32(memory: &Memory, id: BufferId) -> Vec<f32> {
    read(memory, id, DType::F32).as_f32().unwrap().to_vec()
}

pub fn read_i32(memory: &Memory, id: BufferId) -> Vec<i32> {
    read(memory, id, DType::I32).to_i64().unwrap().into_iter().map(|v| v as i32).collect()
}

/// 0, 1, 2, ..
pub fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}
