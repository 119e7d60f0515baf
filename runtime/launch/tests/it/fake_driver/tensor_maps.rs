//! Tensor maps in the fake driver.

use std::ffi::c_void;

use super::Launch;

/// Parameters: a view of rank 2, grid, a tensor map. Writes down what the map was made of.
pub unsafe fn mapped(l: &Launch) {
    let (out, map) = unsafe { (l.get::<*mut u64>(0), l.get::<[u64; 12]>(8)) };
    map.iter().enumerate().for_each(|(i, w)| unsafe { *out.add(i) = *w });
}

/// Writes what it was given, so that a test can read it from the parameter of a launch: type, rank and swizzle of a byte
/// each; address; five extents, four strides, and five extents of a box of 12 bits each, 0 where there is none. A stride of 0
/// is refused.
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
        let some = |list: *const u64, n: u32, i: u32| if i < n { *list.add(i as usize) } else { 0 };
        let sizes = (0..rank).map(|i| u64::from(*tile.add(i as usize)) << (12 * i)).sum();
        let mut words = vec![u64::from(ty | rank << 8 | swizzle << 16), address as u64];
        words.extend((0..5).map(|i| some(extents, rank, i)));
        words.extend((0..4).map(|i| some(strides, rank - 1, i)));
        words.push(sizes);
        words.iter().enumerate().for_each(|(i, w): (usize, &u64)| *map.add(i) = *w);
    }
    0
}
