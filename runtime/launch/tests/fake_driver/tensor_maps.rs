//! Owns what the driver made for tests knows of tensor maps.

use std::ffi::c_void;

use super::Launch;

/// Parameters: a view of rank 2, grid, a tensor map. Writes down what the map was made of.
pub unsafe fn mapped(l: &Launch) {
    let (out, map) = unsafe { (l.get::<*mut u64>(0), l.get::<[u64; 9]>(8)) };
    map.iter().enumerate().for_each(|(i, w)| unsafe { *out.add(i) = *w });
}

/// Writes what it was given, so that a test can read it from the parameter of a launch: type, rank, address, extents,
/// stride, box, swizzle. A stride of 0 is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut u64,
    ty: u32,
    rank: u32,
    address: *mut c_void,
    extents: *const u64,
    strides: *const u64,
    tile: *const u32,
    _steps: *const u32,
    _interleave: u32,
    swizzle: u32,
    _promotion: u32,
    _fill: u32,
) -> u32 {
    unsafe {
        if *strides == 0 {
            return 1;
        }
        let words = [
            ty.into(),
            rank.into(),
            address as u64,
            *extents,
            *extents.add(1),
            *strides,
            (*tile).into(),
            (*tile.add(1)).into(),
            swizzle.into(),
        ];
        words.iter().enumerate().for_each(|(i, w): (usize, &u64)| *map.add(i) = *w);
    }
    0
}
