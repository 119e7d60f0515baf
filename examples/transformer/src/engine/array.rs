//! Arrays on the device whose element type and rank are known when the program runs: [`Array`] owns memory, [`View`]
//! is what a kernel takes.
//!
//! The typed tensors of the library would do for one element type; a model is loaded in any of three.

use tk::{Arg, Buffer, DType, Device};

use crate::failure::Result;

/// Memory of the device with a shape, row-major.
#[derive(Debug)]
pub struct Array {
    buffer: Buffer,
    dtype: DType,
    shape: Vec<i64>,
}

impl Array {
    /// Uninitialized memory.
    pub fn new(device: &Device, dtype: DType, shape: &[usize]) -> Result<Array> {
        let buffer = device.alloc(bytes(dtype, shape) as usize)?;
        Ok(Array { buffer, dtype, shape: shape.iter().map(|n| *n as i64).collect() })
    }

    /// Its memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Bytes that it has.
    pub fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// All of it.
    pub fn view(&self) -> View {
        View {
            address: self.buffer.address(),
            bytes: self.buffer.len(),
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: None,
        }
    }
}

/// Bytes of an array.
pub fn bytes(dtype: DType, shape: &[usize]) -> u64 {
    shape.iter().map(|n| *n as u64).product::<u64>() * dtype.bytes() as u64
}

/// A part of an array.
#[derive(Clone, Debug)]
pub struct View {
    address: u64,
    bytes: usize,
    dtype: DType,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
}

impl View {
    /// The same memory from that many elements on, with another shape and strides in elements.
    pub fn part(&self, elements: usize, shape: &[usize], strides: &[usize]) -> View {
        let skip = elements * self.dtype.bytes();
        let signed = |list: &[usize]| list.iter().map(|n| *n as i64).collect();
        View {
            address: self.address + skip as u64,
            bytes: self.bytes.saturating_sub(skip),
            dtype: self.dtype,
            shape: signed(shape),
            strides: Some(signed(strides)),
        }
    }

    /// The same memory from that many elements on, with another shape, row-major.
    pub fn shaped(&self, elements: usize, shape: &[usize]) -> View {
        View { strides: None, ..self.part(elements, shape, &[]) }
    }

    /// As an argument of a launch. A part that leaves its array is refused there.
    pub fn arg(&self) -> Arg<'_> {
        let View { address, bytes, dtype, shape, strides } = self;
        Arg::Tensor { address: *address, bytes: *bytes, dtype: *dtype, shape, strides: strides.as_deref() }
    }
}
