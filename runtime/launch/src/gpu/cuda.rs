//! The facts of NVIDIA's driver, [`NVIDIA`].

use std::ffi::c_int;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute};
use libloading::Library;

use super::driver::Driver;
use super::error::{CudaError, Meaning, code};
use super::vendor::{Api, Architecture, Attributes, Code, Shared, Vendor};

const UPDATE: &str = "update NVIDIA's driver";

/// The facts about NVIDIA's GPUs.
pub(crate) static NVIDIA: Vendor = Vendor {
    api: Api::Cuda,
    maker: "NVIDIA",
    platform: "CUDA",
    driver: "NVIDIA driver",
    library: "libcuda.so",
    load: library,
    install: "install NVIDIA's driver",
    update: UPDATE,
    list: "`nvidia-smi -L` lists them; CUDA_VISIBLE_DEVICES hides some",
    reference: "look for this error in NVIDIA's documentation of the driver API",
    meanings: MEANINGS,
    version: |n| (n / 1000, n % 1000 / 10),
    // Cubins of the 12 series load on each driver of that series.
    needed: (12, 0),
    attributes: Attributes {
        sms: Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as c_int,
        shared_bytes: Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as c_int,
        threads: Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_int,
    },
    grid_threads: u64::MAX,
    // The same for every GPU since compute capability 2.0, from NVIDIA's programming guide.
    shared: Shared::Launch { unasked: 48 << 10 },
    code: Code::Machine,
    architecture,
    supported: "use a GPU of compute capability 8 or later",
    encode_map: Some("cuTensorMapEncodeTiled"),
    streams: Some(["cuStreamGetId", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode"]),
};

const MEANINGS: &[Meaning] = &[
    (
        code::OUT_OF_MEMORY,
        "the GPU has not enough free memory",
        "use smaller arrays or free some; `nvidia-smi` shows who holds memory",
    ),
    (
        34,
        "`libcuda.so` is the stub that only serves for linking",
        "let the loader find the driver's own library: remove the `stubs` folder from LD_LIBRARY_PATH",
    ),
    (
        46,
        "another process uses the GPU exclusively",
        "wait for it, or set the compute mode to default with `nvidia-smi -c 0`",
    ),
    (
        code::NO_DEVICE,
        "the driver finds no NVIDIA GPU",
        "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES, or use `--device cpu`",
    ),
    (101, "there is no GPU with this number", "`nvidia-smi -L` lists them"),
    (218, "its PTX is not valid", "this is a bug in the compiler; please report it"),
    (222, "the driver is too old for its PTX", UPDATE),
    (
        802,
        "the system around the GPU is not ready",
        "wait until its services run, such as `nvidia-fabricmanager`",
    ),
    (803, "the driver's library and its kernel module have different versions", "restart the machine"),
    (804, "the GPU does not support the CUDA compatibility package", "remove it from LD_LIBRARY_PATH"),
];

fn library() -> Option<&'static Library> {
    // SAFETY: loading the driver's library runs its initialisers, nothing else. It is asked for where it is there alone:
    // `culib` ends the process without it.
    unsafe { sys::is_culib_present().then(|| sys::culib()) }
}

/// The targets for NVIDIA's GPUs, the best first, each with the compute capabilities that run its binaries: the major number,
/// and the minor one if it has to be the same.
const EXACT: [(&str, u32, Option<u32>); 6] = [
    ("sm_120a", 12, Some(0)),
    ("sm_103a", 10, Some(3)),
    ("sm_100a", 10, Some(0)),
    ("sm_90a", 9, Some(0)),
    ("sm_89", 8, Some(9)),
    ("sm_80", 8, None),
];

/// The target whose binaries are PTX, and the oldest major number whose driver assembles it.
const PTX: (&str, u32) = ("compute_80", 8);

/// The targets for NVIDIA's GPUs.
pub(super) fn targets() -> impl Iterator<Item = &'static str> {
    EXACT.iter().map(|(name, ..)| *name).chain([PTX.0])
}

fn architecture(driver: &Driver, device: CUdevice) -> Result<Architecture, CudaError> {
    let major = driver.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as c_int)?;
    let minor = driver.attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as c_int)?;
    let runs = |(_, x, y): &&(&str, u32, Option<u32>)| *x == major && y.is_none_or(|y| y == minor);
    let exact = EXACT.iter().filter(runs).map(|(name, _, _)| *name);
    let targets = exact.chain((major >= PTX.1).then_some(PTX.0)).collect();
    Ok(Architecture { text: format!("compute capability {major}.{minor}"), number: (major, minor), targets })
}
