//! Runs kernels of a bundle on host arrays with the interpreter, as a reference, one launch at a time. To run a program
//! without a GPU use [`Device::cpu`](crate::Device::cpu).
//!
//! ```no_run
//! use tk::cpu::{self, Array, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bundle = tk::Bundle::open("softmax.tkb".as_ref())?;
//! let x = Array::of(&[1f32, 2.0, 3.0, 4.0], &[2, 2]);
//! let y = Array::of(&[0f32; 4], &[2, 2]);
//! let results = cpu::run(&bundle, "softmax", vec![x.into(), y.into()], &[])?;
//! println!("{:?}", results.array("y").map(Array::to_vec::<f32>));
//! # Ok(())
//! # }
//! ```

use tk_bundle::{Bundle, Error};
pub use tk_runtime::Value;
use tk_runtime::bundled;
pub use tk_runtime::npy::Array;

/// The results of a launch.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The arrays that the kernel may change, by name.
    pub arrays: Vec<(String, Array)>,
    /// The output of the kernel.
    pub printed: String,
}

impl Results {
    /// The array of an argument.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|(n, _)| n == name).map(|(_, a)| a)
    }
}

/// Runs a kernel on values in the order of its arguments; numbers with defaults may be absent. `named` are the
/// compile-time parameters, by name, that distinguish shipped variants.
pub fn run(
    bundle: &Bundle,
    kernel: &str,
    values: Vec<Value>,
    named: &[(&str, &str)],
) -> Result<Results, Error> {
    let (arrays, printed) = bundled::run(bundle, kernel, values, named)?;
    Ok(Results { arrays, printed })
}
