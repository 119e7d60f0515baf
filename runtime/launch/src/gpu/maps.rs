//! Tensor maps of launches for TMA: [`Maps`], as the driver encodes them.
//!
//! An encoding depends on the address, extents and strides of a tensor and on nothing else, so the last ones of a
//! kernel are remembered. Guarantees that a map is only made of a tensor that has elements, an address and strides
//! that are multiples of 16 bytes, and neighbours along its last axis: the facts for which the code was made
//! guarantee it.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tk_bundle::{TensorMap, Word};
use tk_ops::DType;

use super::error::CudaError;
use super::kernel::KernelInfo;
use crate::compile::ParamKind;

/// A map as the driver has it, `CUtensorMap` of `cuda.h`.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Encoded([u64; 16]);

/// The most dimensions of a map: the limit of `cuTensorMapEncodeTiled`.
const MOST: usize = 5;

/// A tensor: what of it differs from launch to launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tensor {
    address: u64,
    /// Of each dimension, the fastest first.
    extents: [u64; MOST],
    /// Bytes from one to the next, of each dimension.
    steps: [u64; MOST],
}

/// Tensors that a kernel remembers.
const REMEMBERED: usize = 16;
/// Maps that need no memory from the heap.
const INLINE: usize = 4;

/// `cuTensorMapEncodeTiled` of `cuda.h`; drivers before CUDA 12 have none.
pub(crate) type Encode = unsafe extern "C" fn(
    *mut Encoded,
    u32,
    u32,
    *mut c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    u32,
    u32,
    u32,
    u32,
) -> u32;

/// The maps that a kernel was launched with, each with the number of what it describes.
#[derive(Default)]
pub(crate) struct Maps(Mutex<Vec<(usize, Tensor, Encoded)>>);

impl Maps {
    /// Those of a launch with these values, on a device whose driver has this encoder.
    #[inline]
    pub fn of(
        &self,
        info: &KernelInfo,
        values: &[u64],
        encoder: Option<Encode>,
    ) -> Result<SmallVec<[Encoded; INLINE]>, CudaError> {
        if info.maps.is_empty() {
            return Ok(SmallVec::new());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |(number, map): (usize, &TensorMap)| {
            let tensor = tensor(info, map, values).ok_or_else(|| refused(info, "it has no such argument"))?;
            if let Some((.., found)) = known.iter().find(|(n, t, _)| *n == number && *t == tensor) {
                return Ok(*found);
            }
            let encoded = encode(info, map, &tensor, encoder)?;
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.push((number, tensor, encoded));
            Ok(encoded)
        };
        info.maps.iter().enumerate().map(one).collect()
    }
}

/// The tensor that these values describe.
fn tensor(info: &KernelInfo, map: &TensorMap, values: &[u64]) -> Option<Tensor> {
    let word = |w: Word| match w {
        Word::Value(v) => Some(v as u64),
        Word::Passed(i) => {
            let (kind, bits) = (info.params.get(i as usize)?, *values.get(i as usize)?);
            // Of a number with fewer bits the others are anything.
            let narrow = matches!(kind, ParamKind::Scalar(d) if d.bits() <= 32);
            Some(if narrow { u64::from(bits as u32) } else { bits })
        }
    };
    let bytes = DType::parse(&map.dtype)?.bytes() as u64;
    let mut tensor = Tensor { address: *values.get(map.address as usize)?, ..Tensor::default() };
    for ((extent, step), d) in tensor.extents.iter_mut().zip(&mut tensor.steps).zip(&map.dimensions) {
        *extent = word(d.extent)?;
        *step = word(d.stride)?.checked_mul(bytes)?;
        let before = if d.before { extent.checked_mul(*step)? } else { 0 };
        tensor.address = tensor.address.wrapping_sub(before);
    }
    Some(tensor)
}

fn encode(
    info: &KernelInfo,
    map: &TensorMap,
    tensor: &Tensor,
    encoder: Option<Encode>,
) -> Result<Encoded, CudaError> {
    let Some(encode) = encoder else {
        return Err(refused(info, "the driver has no call for that; CUDA 12 and newer have one"));
    };
    let dtype = DType::parse(&map.dtype).ok_or_else(|| refused(info, "its type is unknown"))?;
    let bytes = dtype.bytes() as u64;
    // The bits are copied as they are, and what fills the outside is 0 in all types: only where elements are added to memory
    // does a type matter. Numbers of `CUtensorMapDataType`.
    let ty: u32 = match (dtype, bytes) {
        (DType::F32, _) => 7,
        (_, 1) => 0,
        (_, 2) => 1,
        (_, 4) => 2,
        _ => 4,
    };
    let swizzle: u32 = match map.span {
        32 => 1,
        64 => 2,
        _ => 3,
    };
    // Of 128 bytes: with 256, rows that begin anywhere cost a fifth more (docs/performance.md).
    const PROMOTION_128_BYTES: u32 = 2;
    let rank = map.dimensions.len().min(MOST);
    let (tile, every) = ([(u64::from(map.span) / bytes) as u32, map.lines, 1, 1, 1], [1u32; MOST]);
    // The first dimension has no stride: its elements are contiguous.
    let [_, strides @ ..] = &tensor.steps;
    let mut out = Encoded([0; 16]);
    // SAFETY: the places live, and have as many numbers as a map of this rank needs.
    let code = unsafe {
        encode(
            &raw mut out,
            ty,
            rank as u32,
            tensor.address as *mut c_void,
            tensor.extents.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            every.as_ptr(),
            0,
            swizzle,
            PROMOTION_128_BYTES,
            0,
        )
    };
    if code == 0 {
        return Ok(out);
    }
    let Tensor { address, extents, steps } = tensor;
    let what = format!(
        "the driver rejects a tensor of {dtype} at {address:#x} with extents {:?} and strides of {:?} bytes (error {code})",
        extents.get(..rank).unwrap_or(extents),
        steps.get(..rank).unwrap_or(steps),
    );
    Err(refused(info, &what))
}

#[cold]
fn refused(info: &KernelInfo, what: &str) -> CudaError {
    let sentence = format!("kernel `{}` cannot create a tensor map for an argument: {what}", info.name);
    CudaError::new(sentence, "build the kernel again, or install a newer driver")
}
