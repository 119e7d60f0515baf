//! GPUs: devices, streams, memory, kernels.
//!
//! ```text
//! Vendor (cuda, hip, cpu) ─ Driver, symbol by symbol ─ Device ─ Context ─┬─ Stream, Event, Graph
//!                                                                   ├─ Buffer, Pinned
//!                                                                   └─ Module ─ Kernel ─ launch
//! Launcher: launch contract + compiler + Kernel, cached by what the arguments decide
//! Kernels:  those of a bundle, without a compiler
//! Backend:  the same for a Session, whose buffers are in host memory
//! ```
//! Drivers are loaded on demand, and a missing driver is an error of one sentence.

mod backend;
mod binaries;
mod buffer;
mod clock;
mod cpu;
mod cuda;
mod device;
mod driver;
mod error;
mod graph;
mod hip;
mod kept;
mod kernel;
mod kernels;
mod key;
mod launcher;
mod log;
mod maps;
mod messages;
mod placed;
mod reach;
mod stream;
mod trial;
mod vendor;
mod with_memory;

pub use backend::Backend;
pub use buffer::{Buffer, Pending, Pinned};
pub use clock::{Caches, Clock, Times};
pub use cpu::stopped_by;
pub use device::Device;
pub use error::CudaError;
pub use graph::Graph;
pub use kernel::{Args, Kernel, KernelInfo, Module};
pub use kernels::Kernels;
pub use key::Arg;
pub use launcher::{CallSite, LaunchError, Launcher};
pub use placed::{Elements, Placed};
pub use stream::{Event, Stream};
pub use trial::Trial;
pub use vendor::Api;

pub use crate::element::{Bool, E2M1, E8M0, Element, F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ};

/// A component that [`probe`] looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Whether it can be used.
    pub works: bool,
    /// A description, or why it does not work and what to do.
    pub text: String,
}

/// The components of one driver interface: the driver, then each GPU; only the driver if it is missing or finds no GPU.
pub fn probe(api: Api) -> Vec<Probed> {
    let vendor = api.vendor();
    let found =
        driver::Driver::get(api).and_then(|driver| Ok((device::version(driver)?, Device::count(api)?)));
    let ((major, minor), count) = match found {
        Ok(found) => found,
        Err(error) => return vec![Probed { works: false, text: error.to_string() }],
    };
    let text = format!("{} for {} {major}.{minor}", vendor.driver, vendor.platform);
    let mut all = vec![Probed { works: true, text }];
    for ordinal in 0..count {
        all.push(match Device::open_on(api, ordinal) {
            Ok(device) => Probed { works: device.target().is_some(), text: describe(&device) },
            Err(error) => Probed { works: false, text: format!("GPU {ordinal}: {error}") },
        });
    }
    all
}

/// The names of the targets whose binaries some GPU runs. The code generator has them all (a test of `codegen/driver`).
pub fn targets() -> impl Iterator<Item = &'static str> {
    cuda::targets().chain(hip::TARGETS)
}

fn describe(device: &Device) -> String {
    let free = device.free_bytes().map_or_else(
        |error| error.to_string(),
        |bytes| format!("{:.1} GiB free", bytes as f64 / f64::from(1 << 30)),
    );
    let target =
        device.target().map_or("no target's binaries run here".to_string(), |t| format!("target {t}"));
    format!(
        "GPU {}: {}, {}, {} multiprocessors, {} KiB of shared memory, {free}, {target}",
        device.ordinal(),
        device.name(),
        device.architecture(),
        device.sms(),
        device.shared_bytes() / 1024
    )
}
