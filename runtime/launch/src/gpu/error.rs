//! [`CudaError`]: an error of the driver or a GPU, in one sentence, and what to try.

use std::fmt;

use super::driver::Driver;
use super::vendor::Vendor;

/// An error, and what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    /// A description of the error.
    pub sentence: String,
    /// One thing to try.
    pub fix: String,
    /// The driver's number, `CUresult` of `cuda.h` or `hipError_t`; none where the driver was not asked.
    pub code: Option<u32>,
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.sentence, self.fix)
    }
}

impl std::error::Error for CudaError {}

impl From<CudaError> for String {
    fn from(error: CudaError) -> String {
        error.to_string()
    }
}

/// Numbers that are told apart. HIP has those of CUDA.
pub(crate) mod code {
    /// There is not enough memory.
    pub const OUT_OF_MEMORY: u32 = 2;
    /// No GPU.
    pub const NO_DEVICE: u32 = 100;
    /// Not yet done: an answer rather than an error.
    pub const NOT_READY: u32 = 600;
    /// A kernel failed on the CPU; no driver has this number.
    pub const FAULT: u32 = 10_000;
}

/// A number, what it means, what to try.
pub(crate) type Meaning = (u32, &'static str, &'static str);

const REBUILD: &str = "build the kernel for this GPU: `tk build --target` names the targets";
const ANEW: &str = "rebuild it; `tk cache clear` removes all cached ones";
const LOOK: &str = "run it with `--device cpu --checked`, which reports the location";

/// The meaning of errors for a launch, on every GPU; errors that are neither here nor among the facts of a vendor use
/// the driver's text.
const MEANINGS: &[Meaning] = &[
    (1, "the driver rejects a value", "this is a bug in the runtime; please report it"),
    (
        3,
        "it was started by the process that forked this one",
        "start processes by `spawn` instead of `fork`, or use the GPU only after the fork",
    ),
    (200, "it is not a GPU binary, or a damaged one", ANEW),
    (209, "its binary is for another GPU architecture", REBUILD),
    (300, "it is not a GPU binary, or a damaged one", ANEW),
    (500, "its binary has no function of that name", ANEW),
    (700, "it accessed an address outside of all buffers", LOOK),
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
    (715, "it executed an instruction that the GPU does not have", REBUILD),
    (716, "it accessed a misaligned address", LOOK),
    (717, "it accessed an address of the wrong memory space", LOOK),
    (718, "it jumped to an invalid address", LOOK),
    (719, "it failed for an unknown reason", LOOK),
    (
        720,
        "its programs do not fit on the GPU at the same time, as `cooperative = true` requires",
        "use a smaller grid, such as one derived from `device.sms`",
    ),
];

/// Returns true if after this error every call in the same context fails too.
pub(crate) fn loses_context(code: u32) -> bool {
    // 214: a memory error that could not be corrected; 220: a broken link. 709: the context is already destroyed.
    matches!(code, 214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 721)
}

impl CudaError {
    /// Returns true if a kernel failed on the CPU: an assertion, or an access outside of all buffers.
    pub fn is_fault(&self) -> bool {
        self.code == Some(code::FAULT)
    }

    /// An error that the driver was not asked about.
    pub(crate) fn new(sentence: impl Into<String>, fix: impl Into<String>) -> CudaError {
        CudaError { sentence: sentence.into(), fix: fix.into(), code: None }
    }

    /// The error with this number; `what` could not be done.
    #[cold]
    pub(crate) fn of(driver: &Driver, code: u32, what: &str) -> CudaError {
        let (name, text) = driver.describe(code);
        let vendor = driver.vendor;
        let (meaning, fix) = match vendor.meanings.iter().chain(MEANINGS).find(|(c, ..)| *c == code) {
            Some((_, meaning, fix)) => ((*meaning).to_string(), (*fix).to_string()),
            None => (text, vendor.reference.to_string()),
        };
        CudaError { sentence: format!("{what}: {meaning} ({name})"), fix, code: Some(code) }
    }

    /// No driver was found.
    pub(crate) fn no_driver(vendor: &Vendor) -> CudaError {
        let Vendor { driver, library, install, .. } = vendor;
        let sentence = format!("no {driver} on this machine: library `{library}` not found");
        CudaError::new(sentence, format!("{install}, or use `--device cpu`"))
    }

    /// The driver lacks an entry point.
    pub(crate) fn incomplete(vendor: &Vendor, symbol: &str) -> CudaError {
        let sentence = format!("the {} is too old: it has no `{symbol}`", vendor.driver);
        CudaError::new(sentence, vendor.update)
    }

    /// The driver is older than what kernels need.
    pub(crate) fn too_old(vendor: &Vendor, (major, minor): (u32, u32)) -> CudaError {
        let Vendor { driver, platform, needed, .. } = vendor;
        let sentence = format!(
            "the {driver} is too old: it is for {platform} {major}.{minor}, and kernels need {}.{}",
            needed.0, needed.1
        );
        CudaError::new(sentence, vendor.update)
    }
}
