//! [`Api`], the driver interfaces, and [`Vendor`]: their differences other than the symbols of their entry points.
//!
//! Each difference is a fact that the shared code queries; no code checks the vendor. Guarantees that a new interface
//! is one variant, one table of facts and one column of symbols in [`super::driver`].

use std::ffi::c_int;

use cudarc::driver::sys::CUdevice;
use libloading::Library;

use super::driver::Driver;
use super::error::{CudaError, Meaning};
use super::kept::StreamSymbols;
use super::{cpu, cuda, hip};

/// A driver interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// NVIDIA's driver.
    Cuda,
    /// AMD's runtime.
    Hip,
    /// No GPU: the interpreter.
    Cpu,
}

impl Api {
    /// Those to GPUs.
    pub const GPUS: [Api; 2] = [Api::Cuda, Api::Hip];

    /// Its name: `CUDA`.
    pub fn name(self) -> &'static str {
        self.vendor().platform
    }

    pub(crate) fn vendor(self) -> &'static Vendor {
        match self {
            Api::Cuda => &cuda::NVIDIA,
            Api::Hip => &hip::AMD,
            Api::Cpu => &cpu::CPU,
        }
    }
}

/// The facts of one driver interface.
pub(crate) struct Vendor {
    pub api: Api,
    /// The vendor of the GPUs.
    pub maker: &'static str,
    /// The platform whose versions count: `CUDA`.
    pub platform: &'static str,
    /// The name of the driver, after an article.
    pub driver: &'static str,
    /// Its library, as people look for it.
    pub library: &'static str,
    /// Finds the library. The initialisers of one that is there run.
    pub load: fn() -> Option<&'static Library>,
    /// Advice if the driver is missing.
    pub install: &'static str,
    /// Advice if the driver is too old.
    pub update: &'static str,
    /// The command that lists the GPUs, and the variable that hides some.
    pub list: &'static str,
    /// The reference for errors that are not in [`Vendor::meanings`].
    pub reference: &'static str,
    /// Meanings of errors, or advice, particular to this vendor.
    pub meanings: &'static [Meaning],
    /// Major and minor of the number that the driver calls its version.
    pub version: fn(u32) -> (u32, u32),
    /// The least version.
    pub needed: (u32, u32),
    pub attributes: Attributes,
    /// The most threads of a grid along its first axis.
    pub grid_threads: u64,
    pub shared: Shared,
    /// The form of a shipped kernel that it runs.
    pub code: Code,
    /// Asks what code a GPU runs.
    pub architecture: fn(&Driver, CUdevice) -> Result<Architecture, CudaError>,
    /// The GPUs for which there is a target: `use a GPU ..`.
    pub supported: &'static str,
    /// The function that encodes tensor maps, if any. Old drivers lack it.
    pub encode_map: Option<&'static str>,
    /// The functions that tell streams apart, if any. Old drivers lack them.
    pub streams: Option<StreamSymbols>,
}

/// Numbers by which a driver is asked about a device.
pub(crate) struct Attributes {
    /// Its multiprocessors.
    pub sms: c_int,
    /// The most bytes of shared memory of a block.
    pub shared_bytes: c_int,
    /// The most threads of a block.
    pub threads: c_int,
}

/// The form of a shipped kernel that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The binary for a target.
    Machine,
    /// The tile IR, which is there whatever the target is.
    Tile,
}

/// The side that sets the shared memory of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shared {
    /// The launch. A function that is to have more than that many bytes must be told before.
    Launch { unasked: u32 },
    /// The binary.
    Binary,
}

impl Shared {
    /// The bytes that a launch asks for, of a kernel whose blocks need that many.
    pub fn asked(self, bytes: u32) -> u32 {
        match self {
            Shared::Launch { .. } => bytes,
            Shared::Binary => 0,
        }
    }

    /// Returns true if the driver must be told beforehand that a function will have that many bytes.
    pub fn must_tell(self, bytes: u32) -> bool {
        match self {
            Shared::Launch { unasked } => bytes > unasked,
            Shared::Binary => false,
        }
    }

    /// The bytes that a block needs, of those that a shipped kernel has by the launch and by its binary.
    pub fn needed(self, by_launch: u32, by_binary: u32) -> u32 {
        match self {
            Shared::Launch { .. } => by_launch,
            Shared::Binary => by_launch.saturating_add(by_binary),
        }
    }
}

/// The code that a GPU runs.
#[derive(Clone, Debug)]
pub(crate) struct Architecture {
    /// For a person to read: `compute capability 9.0`.
    pub text: String,
    /// Its first two numbers.
    pub number: (u32, u32),
    /// The targets whose binaries run here, the best first.
    pub targets: Vec<&'static str>,
}
