//! The CPU as a device beside the GPUs: a driver inside of this process, whose kernels the interpreter runs.
//!
//! Its entry points ([`entry`]) take the place of a library's, so streams, buffers, graphs and launches are the same code as
//! on a GPU. What it loads is the tile IR of a kernel instead of machine code; addresses are the virtual ones of one
//! [`tk_interp::Memory`], which cannot be followed outside of kernels. A kernel has run when its launch returns.

pub(super) mod entry;
mod work;

pub use work::stopped_by;

use std::ffi::c_int;

use cudarc::driver::sys::CUdevice;
use tk_interp::{Memory, Printed};

use super::driver::Driver;
use super::error::CudaError;
use super::vendor::{Api, Architecture, Attributes, Code, Shared, Vendor};

/// The facts about the CPU.
pub(crate) static CPU: Vendor = Vendor {
    api: Api::Cpu,
    maker: "interpreted",
    platform: "CPU",
    driver: "interpreter",
    library: "",
    load: || None,
    install: "",
    update: "",
    list: "the CPU is number 0",
    reference: "`tk run --device cpu --checked` with the same arguments reports the location",
    meanings: &[],
    version: |n| (n / 1000, n % 1000),
    needed: (0, 0),
    attributes: Attributes { sms: SMS, shared_bytes: SHARED_BYTES, threads: THREADS },
    grid_threads: u64::MAX,
    shared: Shared::Binary,
    code: Code::Tile,
    architecture: |_: &Driver, _: CUdevice| -> Result<Architecture, CudaError> {
        Ok(Architecture { text: "interpreted on the CPU".to_string(), number: (0, 0), targets: vec![] })
    },
    supported: "",
    encode_map: None,
    streams: None,
};

const SMS: c_int = 1;
const SHARED_BYTES: c_int = 2;
const THREADS: c_int = 3;

/// The memory of the device.
pub(crate) fn memory() -> &'static Memory {
    &work::machine().memory
}

/// The output of all kernels on the CPU: launches have no other way to return it.
pub(crate) fn printed() -> &'static Printed {
    &work::machine().printed
}
