//! Launch kernels of the tk language from Rust.
//!
//! Kernels compiled by `tk build --emit bundle` or a build script ([`tk-build`](../tk_build/index.html)) are in a
//! [`Bundle`]; [`Kernels`] launches them on a [`Device`]: a GPU, or the CPU ([`Device::cpu`]). With the feature `source`,
//! `source::Program` launches the kernels of source files, on the CPU; with the feature `jit`, on GPUs too.
//!
//! ```no_run
//! use tk::{Bundle, Device, DType, Kernels};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let device = Device::open(0)?;
//!     let stream = device.stream()?;
//!     let kernels = Kernels::new(device.clone(), Bundle::open("softmax.tkb".as_ref())?.into());
//!     let x = tk::Tensor::from_slice(&device, &stream, &[0f32; 64 * 1024], [64, 1024])?;
//!     let y = tk::Tensor::<f32, 2>::zeros(&device, &stream, [64, 1024])?;
//!     kernels.launch(&stream, "softmax", &[x.view().arg(), y.view().arg()], &[])?;
//!     println!("{:?}", &y.to_vec(&stream)?[..4]);
//!     Ok(())
//! }
//! ```

pub mod cpu;
#[cfg(feature = "source")]
pub mod source;
mod tensor;

/// [`source`], whose programs are compiled for GPUs with this feature.
#[cfg(feature = "jit")]
pub mod jit {
    pub use crate::source::{Program, ProgramError};
}

pub use half;
pub use tensor::{Pointer, PointerMut, Tensor, View, ViewMut};
pub use tk_bundle::{Bundle, Error as BundleError, Manifest};
pub use tk_ops::DType;
pub use tk_runtime::gpu::{
    Api, Arg, Bool, Buffer, CudaError, Device, E2M1, E8M0, Element, Event, F8E4M3, F8E4M3FNUZ, F8E5M2,
    F8E5M2FNUZ, Graph, Kernels, LaunchError, Pending, Pinned, Stream,
};

/// Includes the module that a build script generated for a file of kernels: `tk::include_kernels!("softmax");` for
/// `softmax.tk`.
#[macro_export]
macro_rules! include_kernels {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
