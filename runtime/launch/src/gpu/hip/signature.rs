//! The comparison of functions by what a call of them needs: how many parameters they have, and how large each is.
//!
//! Requires that all of them are integers, addresses and enums without fields, which are passed alike if they have
//! the same size. So functions of the crate `hip-sys`, whose types have other names than ours, can be compared with
//! the table of [`super::super::driver`] while this crate is compiled.

/// The functions of the crate, and what its version lacks, by the header of HIP 5.5.
pub(crate) mod known {
    use std::ffi::{c_uint, c_void};

    pub(crate) use hip_sys::hiprt::*;

    unsafe extern "C" {
        pub(crate) fn hipModuleLaunchCooperativeKernel(
            function: hipFunction_t,
            grid_x: c_uint,
            grid_y: c_uint,
            grid_z: c_uint,
            block_x: c_uint,
            block_y: c_uint,
            block_z: c_uint,
            shared_bytes: c_uint,
            stream: hipStream_t,
            parameters: *mut *mut c_void,
        ) -> hipError_t;
    }
}

/// A function.
pub(crate) trait Signature {
    /// The bytes of the result, then of each parameter.
    const SIZES: &'static [usize];
}

macro_rules! signatures {
    ($($($parameter:ident)*;)*) => {$(
        impl<R, $($parameter),*> Signature for unsafe extern "C" fn($($parameter),*) -> R {
            const SIZES: &'static [usize] = &[size_of::<R>(), $(size_of::<$parameter>()),*];
        }
    )*};
}

signatures! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
}

/// The sizes of a function whose type is not written.
pub(crate) const fn of<F: Signature>(_: &F) -> &'static [usize] {
    F::SIZES
}

/// Returns true if two functions are called alike.
pub(crate) const fn same(a: &[usize], b: &[usize]) -> bool {
    match (a, b) {
        ([], []) => true,
        ([x, a @ ..], [y, b @ ..]) => *x == *y && same(a, b),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}
