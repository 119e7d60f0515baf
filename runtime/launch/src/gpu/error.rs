//! Owns [`CudaError`]: what went wrong between this process and a GPU, in one sentence, and what to try.

use std::fmt;

use super::driver::Driver;

/// What went wrong, and what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    /// What happened.
    pub sentence: String,
    /// One thing to try.
    pub fix: String,
    /// The driver's number, `CUresult` of `cuda.h`; none where the driver was not asked.
    pub code: Option<u32>,
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.sentence, self.fix)
    }
}

impl std::error::Error for CudaError {}

/// Numbers of `CUresult` that are told apart; the first entry of [`MEANINGS`] whose number fits explains one.
pub(crate) mod code {
    /// There is not enough memory.
    pub const OUT_OF_MEMORY: u32 = 2;
    /// No GPU.
    pub const NO_DEVICE: u32 = 100;
    /// Not yet done: an answer rather than an error.
    pub const NOT_READY: u32 = 600;
}

/// A number, what it means, what to try.
type Meaning = (u32, &'static str, &'static str);

const UPDATE: &str = "update NVIDIA's driver";
const REBUILD: &str = "build the kernel for this GPU: `tk build --target` names the targets";
const LOOK: &str = "run the same with `--device cpu --checked`, which names the place";

/// What errors mean to whoever starts a kernel; for all others the driver's own text has to do.
const MEANINGS: &[Meaning] = &[
    (1, "the driver refuses a value", "report this as a mistake of the runtime"),
    (
        code::OUT_OF_MEMORY,
        "the GPU has not enough free memory",
        "use smaller arrays or free some; `nvidia-smi` shows who holds memory",
    ),
    (
        34,
        "`libcuda.so` is the stub that only serves for linking",
        "let the loader find the driver's own library: take the `stubs` folder out of LD_LIBRARY_PATH",
    ),
    (
        46,
        "another process has the GPU for itself",
        "wait for it, or set the compute mode to default with `nvidia-smi -c 0`",
    ),
    (
        code::NO_DEVICE,
        "the driver finds no NVIDIA GPU",
        "look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES, or use `--device cpu`",
    ),
    (101, "there is no GPU with this number", "`nvidia-smi -L` lists them"),
    (
        200,
        "it is no binary for a GPU, or a damaged one",
        "build it anew; `tk cache clear` forgets all cached ones",
    ),
    (209, "its binary is for another GPU architecture", REBUILD),
    (218, "its PTX is not valid", "report this as a mistake of the compiler"),
    (222, "the driver is too old for its PTX", UPDATE),
    (
        300,
        "it is no binary for a GPU, or a damaged one",
        "build it anew; `tk cache clear` forgets all cached ones",
    ),
    (
        500,
        "its binary has no function of that name",
        "build it anew; `tk cache clear` forgets all cached ones",
    ),
    (700, "it used an address that is in no buffer", LOOK),
    (
        701,
        "a block of it needs more registers or threads than the GPU has",
        "use fewer warps: `launch(warps = n)`",
    ),
    (
        702,
        "it ran longer than the display driver of this machine allows",
        "use a GPU without a display, or smaller arrays",
    ),
    (710, "an assertion in it failed", LOOK),
    (714, "its stack on the GPU was destroyed", LOOK),
    (715, "it met an instruction that the GPU does not have", REBUILD),
    (716, "it used an address that is not a multiple of the size of what lies there", LOOK),
    (717, "it used an address of the wrong kind of memory", LOOK),
    (718, "it jumped to an invalid place", LOOK),
    (719, "it failed for a reason that the GPU does not tell", LOOK),
    (
        720,
        "its programs do not fit on the GPU at the same time, as `cooperative = true` asks for",
        "use a smaller grid, such as one that asks `device.sms`",
    ),
    (
        802,
        "the system around the GPU is not ready",
        "wait until its services run, such as `nvidia-fabricmanager`",
    ),
    (803, "the driver's library and its kernel module have different versions", "restart the machine"),
    (804, "the GPU does not support the CUDA compatibility package", "take it out of LD_LIBRARY_PATH"),
];

/// Whether after this error every call in the same context fails too.
pub(crate) fn loses_context(code: u32) -> bool {
    // 214: a memory error that could not be corrected; 220: a broken link. 709: the context is already destroyed.
    matches!(code, 214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 721)
}

impl CudaError {
    /// An error that the driver was not asked about.
    pub(crate) fn new(sentence: impl Into<String>, fix: impl Into<String>) -> CudaError {
        CudaError { sentence: sentence.into(), fix: fix.into(), code: None }
    }

    /// The error with this number; `what` could not be done.
    #[cold]
    pub(crate) fn of(driver: &Driver, code: u32, what: &str) -> CudaError {
        let (name, text) = driver.describe(code);
        let (meaning, fix) = match MEANINGS.iter().find(|(c, ..)| *c == code) {
            Some((_, meaning, fix)) => ((*meaning).to_string(), (*fix).to_string()),
            None => (text, "look for this error in NVIDIA's documentation of the driver API".to_string()),
        };
        CudaError { sentence: format!("{what}: {meaning} ({name})"), fix, code: Some(code) }
    }

    /// There is no driver.
    pub(crate) fn no_driver() -> CudaError {
        let sentence = "there is no NVIDIA driver on this machine: its library `libcuda.so` is not found";
        CudaError::new(sentence, "install NVIDIA's driver, or use `--device cpu`")
    }

    /// The driver lacks an entry point.
    pub(crate) fn incomplete(symbol: &str) -> CudaError {
        CudaError::new(format!("the NVIDIA driver is too old: it has no `{symbol}`"), UPDATE)
    }

    /// The driver is older than what kernels need. Versions are of CUDA, as `(major, minor)`.
    pub(crate) fn too_old(found: (u32, u32), needed: (u32, u32)) -> CudaError {
        let sentence = format!(
            "the NVIDIA driver is too old: it is for CUDA {}.{}, and kernels need {}.{}",
            found.0, found.1, needed.0, needed.1
        );
        CudaError::new(sentence, UPDATE)
    }
}
