//! Owns what launches describe to the copy engine: [`Maps`], tensor maps as the driver encodes them.
//!
//! An encoding depends on the address, extents and strides of a view and on nothing else, so the last ones of a kernel are
//! remembered. Guarantees that a map is only made of a view that has elements, an address and strides that are multiples of
//! 16 bytes, and neighbours along its last axis: the facts for which the code was made say so.

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;
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

/// Address, rows, columns, stride of the rows.
type View = [u64; 4];

/// Views that a kernel remembers.
const REMEMBERED: usize = 16;
/// Maps that need no memory from the heap.
const INLINE: usize = 4;

/// `cuTensorMapEncodeTiled` of `cuda.h`.
type Encode = unsafe extern "C" fn(
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

/// The encoder of the driver; drivers before CUDA 12 have none.
fn encoder() -> Option<Encode> {
    static FOUND: OnceLock<Option<Encode>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: a kernel is launched, so the library was loaded.
        let library = unsafe { sys::culib() };
        // SAFETY: the type is that of `cuda.h` for this symbol.
        unsafe { library.get::<Encode>(b"cuTensorMapEncodeTiled") }.ok().map(|f| *f)
    })
}

/// The maps that a kernel was launched with.
#[derive(Default)]
pub(crate) struct Maps(Mutex<Vec<(usize, View, Encoded)>>);

impl Maps {
    /// Those of a launch with these values.
    #[inline]
    pub fn of(&self, info: &KernelInfo, values: &[u64]) -> Result<SmallVec<[Encoded; INLINE]>, CudaError> {
        if info.maps.is_empty() {
            return Ok(SmallVec::new());
        }
        info.maps.iter().enumerate().map(|(n, map)| self.one(info, (n, map), values)).collect()
    }

    fn one(
        &self,
        info: &KernelInfo,
        (number, map): (usize, &TensorMap),
        values: &[u64],
    ) -> Result<Encoded, CudaError> {
        let word = |w: Word| match w {
            Word::Value(v) => Some(v as u64),
            Word::Passed(i) => {
                let (kind, bits) = (info.params.get(i as usize)?, *values.get(i as usize)?);
                // Of a number with fewer bits the others are anything.
                let narrow = matches!(kind, ParamKind::Scalar(d) if d.bits() <= 32);
                Some(if narrow { u64::from(bits as u32) } else { bits })
            }
        };
        let ([rows, columns], stride) = (map.extents.map(word), word(map.stride));
        let address = values.get(map.address as usize).copied();
        let (Some(address), Some(rows), Some(columns), Some(stride)) = (address, rows, columns, stride)
        else {
            return Err(refused(info, "it has no such argument"));
        };
        let view = [address, rows, columns, stride];
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., found)) = known.iter().find(|(n, v, _)| *n == number && *v == view) {
            return Ok(*found);
        }
        let encoded = encode(info, map, view)?;
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.push((number, view, encoded));
        Ok(encoded)
    }
}

fn encode(
    info: &KernelInfo,
    map: &TensorMap,
    [address, rows, columns, stride]: View,
) -> Result<Encoded, CudaError> {
    let Some(encode) = encoder() else {
        return Err(refused(info, "the driver has no cuTensorMapEncodeTiled; CUDA 12 or newer is needed"));
    };
    let dtype = DType::parse(&map.dtype).ok_or_else(|| refused(info, "its type is unknown"))?;
    let bytes = dtype.bytes() as u64;
    let Some(apart) = stride.checked_mul(bytes) else {
        return Err(refused(info, "its rows are too far apart"));
    };
    // The bits are copied as they are: of a type only its size matters, and what fills the outside is 0 in all of them.
    let ty: u32 = match bytes {
        1 => 0,
        2 => 1,
        4 => 2,
        _ => 4,
    };
    let swizzle: u32 = match map.span {
        32 => 1,
        64 => 2,
        _ => 3,
    };
    const PROMOTION_256_BYTES: u32 = 3;
    let (extents, strides) = ([columns, rows], [apart]);
    let (tile, steps) = ([(u64::from(map.span) / bytes) as u32, map.lines], [1u32, 1]);
    let mut out = Encoded([0; 16]);
    // SAFETY: the places live, and have as many numbers as a map of rank 2 needs.
    let code = unsafe {
        encode(
            &raw mut out,
            ty,
            2,
            address as *mut c_void,
            extents.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            steps.as_ptr(),
            0,
            swizzle,
            PROMOTION_256_BYTES,
            0,
        )
    };
    if code == 0 {
        return Ok(out);
    }
    let what = format!(
        "the driver takes no matrix of {rows} x {columns} {dtype} at {address:#x} with rows {stride} elements apart \
         (error {code})"
    );
    Err(refused(info, &what))
}

#[cold]
fn refused(info: &KernelInfo, what: &str) -> CudaError {
    let sentence = format!("kernel `{}` cannot describe an argument to the copy engine: {what}", info.name);
    CudaError::new(sentence, "build the kernel again, or install a newer driver")
}
