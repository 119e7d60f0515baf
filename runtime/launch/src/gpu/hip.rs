//! The facts of AMD's runtime, [`AMD`]: where `libamdhip64` is, its numbers, what code a GPU runs.
//!
//! HIP took the form of its calls and the numbers of its errors, flags and modes from CUDA, so [`super::driver`] calls both
//! alike; what is here differs. The architecture of a GPU is a text in `hipDeviceProp_t`, whose layout changed between
//! ROCm 5 and 6, so the kernel driver is asked first; where it shows nothing, as in some containers, the text is looked for
//! in what the function of ROCm 6 writes ([`reported`]). On a wild access the runtime may end the process, which nothing here
//! can turn into an error.

#[cfg(feature = "hip-sys")]
pub(crate) mod signature;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::driver::sys::CUdevice;
use libloading::Library;

use super::driver::Driver;
use super::error::{CudaError, Meaning, code};
use super::vendor::{Api, Architecture, Attributes, Code, Shared, Vendor};

/// The facts about AMD's GPUs. Attributes are of `hipDeviceAttribute_t`, the same from the header of ROCm 5.5 to that
/// of 7.
pub(crate) static AMD: Vendor = Vendor {
    api: Api::Hip,
    maker: "AMD",
    platform: "HIP",
    driver: "AMD runtime",
    library: "libamdhip64.so",
    load: library,
    install: "install ROCm",
    update: "update ROCm",
    list: "`rocminfo` lists them; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide some",
    reference: "look for this error in AMD's documentation of HIP",
    meanings: MEANINGS,
    // `HIP_VERSION`: two digits of the minor version and five of the patch.
    version: |n| (n / 10_000_000, n / 100_000 % 100),
    // The oldest version whose header was compared with the table of entry points.
    needed: (5, 5),
    attributes: Attributes { sms: 63, shared_bytes: 74, threads: 56 },
    // HIP counts them in 32 bits: `hipModuleLaunchKernel` refuses more.
    grid_threads: u32::MAX as u64,
    shared: Shared::Binary,
    code: Code::Machine,
    architecture,
    supported: "use one of gfx90a, gfx942, gfx950, gfx1100 or gfx1201",
    encode_map: None,
    streams: None,
};

/// The targets for AMD's GPUs; a binary runs on its own architecture alone.
pub(super) const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"];

const PCI_BUS: c_int = 67;
const PCI_SLOT: c_int = 68;
const PCI_DOMAIN: c_int = 69;

/// The numbers are those of `hipError_t`.
const MEANINGS: &[Meaning] = &[
    (
        code::OUT_OF_MEMORY,
        "the GPU has not enough free memory",
        "use smaller arrays or free some; `rocm-smi --showpids` shows who uses the GPU",
    ),
    (9, "its grid or its block is larger than the GPU takes", "use a smaller grid or fewer warps"),
    (35, "the kernel driver is too old for the runtime", "update the `amdgpu` kernel driver"),
    (
        98,
        "its binary has no such function for this GPU",
        "build the kernel for this GPU: `tk build --target` names the targets",
    ),
    (
        code::NO_DEVICE,
        "the runtime finds no AMD GPU",
        "look at `rocminfo`, at HIP_VISIBLE_DEVICES and at who may open /dev/kfd, or use `--device cpu`",
    ),
    // Without any GPU, `hipInit` says this too.
    (
        101,
        "the runtime finds no AMD GPU, or none with this number",
        "`rocminfo` lists them; `--device cpu` needs none",
    ),
    (218, "it is not a GPU binary, or a damaged one", "rebuild it; `tk cache clear` removes all cached ones"),
    (
        303,
        "its binary cannot be loaded on this GPU",
        "build the kernel for this GPU: `tk build --target` names the targets",
    ),
];

/// The places to search for the library: newest first, then where ROCm's packages put it, which not every machine
/// tells its loader. A new major version of ROCm needs a new name.
const NAMES: [&str; 5] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
    "/opt/rocm/lib/libamdhip64.so",
];

fn library() -> Option<&'static Library> {
    static FOUND: OnceLock<Option<Library>> = OnceLock::new();
    // SAFETY: loading the runtime's library runs its initialisers, nothing else.
    let load = |name: &&'static str| unsafe { Library::new(*name) }.ok();
    FOUND.get_or_init(|| NAMES.iter().find_map(load)).as_ref()
}

/// The PCI place of a GPU. Partitions of one have the same place, and the same architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    domain: u32,
    bus: u32,
    slot: u32,
}

fn architecture(driver: &Driver, device: CUdevice) -> Result<Architecture, CudaError> {
    let place = Place {
        domain: driver.attribute(device, PCI_DOMAIN)?,
        bus: driver.attribute(device, PCI_BUS)?,
        slot: driver.attribute(device, PCI_SLOT)?,
    };
    let system = std::env::var_os("TK_SYSFS").map_or_else(|| PathBuf::from("/sys"), PathBuf::from);
    let nodes = system.join("class/kfd/kfd/topology/nodes");
    let known = version(&nodes, place).map(name_of).or_else(|| reported(device));
    known.and_then(|name| named(&name)).ok_or_else(|| {
        let Place { domain, bus, slot } = place;
        let sentence = format!(
            "the architecture of the AMD GPU at {domain:04x}:{bus:02x}:{slot:02x} is unknown: the kernel driver does not report it in {}",
            nodes.display()
        );
        CudaError::new(sentence, "load the kernel driver `amdgpu`, and let this system see /sys of its host")
    })
}

/// The number of the architecture of the GPU at a place; `None` if the kernel driver has none there.
fn version(nodes: &Path, place: Place) -> Option<u32> {
    let found = std::fs::read_dir(nodes).ok()?;
    found.flatten().find_map(|node| {
        // A node that may not be read is that of a GPU which this process may not use.
        let text = std::fs::read_to_string(node.path().join("properties")).ok()?;
        described(&text, place)
    })
}

/// The same, of what the kernel driver says about one node. That of a CPU has the number 0.
fn described(properties: &str, place: Place) -> Option<u32> {
    let value = |name: &str| {
        let mut lines = properties.lines().filter_map(|l| l.split_once(' '));
        lines.find(|(n, _)| *n == name).and_then(|(_, v)| v.trim().parse::<u32>().ok())
    };
    // Of the location the low half is the address: bus, slot and function of 8, 5 and 3 bits. The rest numbers partitions.
    let location = value("location_id")?;
    let at =
        Place { domain: value("domain").unwrap_or(0), bus: location >> 8 & 0xff, slot: location >> 3 & 0x1f };
    value("gfx_target_version").filter(|version| *version > 0 && at == place)
}

/// The name of the architecture of a number: two decimal digits each for the minor version and the stepping, which a name
/// has as one hexadecimal digit each.
fn name_of(version: u32) -> String {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    format!("gfx{major}{minor:x}{stepping:x}")
}

/// The architecture with this name.
fn named(name: &str) -> Option<Architecture> {
    let digits = name.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let (minor, stepping) = rest.split_at_checked(1)?;
    let hexadecimal = |digit| u32::from_str_radix(digit, 16).ok();
    hexadecimal(stepping)?;
    let number = (major.parse().ok()?, hexadecimal(minor)?);
    let targets = TARGETS.into_iter().filter(|t| *t == name).collect();
    Some(Architecture { text: format!("architecture {name}"), number, targets })
}

/// Bytes of `hipDeviceProp_tR0600` (1472 in ROCm 6) and what later versions may add.
const PROPERTIES: usize = 8192;
/// Bytes of its first field, the name for people.
const NAME: usize = 256;

/// The name of the architecture in what the runtime says of a GPU; `None` before ROCm 6.
fn reported(device: CUdevice) -> Option<String> {
    type Properties = unsafe extern "C" fn(*mut u8, c_int) -> u32;
    // The runtime writes numbers of 8 bytes.
    let mut found = vec![0u64; PROPERTIES / 8];
    // SAFETY: the function has this type in all versions that have this name, and writes fewer bytes.
    let code = unsafe {
        let ask = library()?.get::<Properties>(b"hipGetDevicePropertiesR0600\0").ok()?;
        ask(found.as_mut_ptr().cast(), device)
    };
    let bytes: Vec<u8> = found.into_iter().flat_map(u64::to_ne_bytes).collect();
    bytes.get(NAME..).filter(|_| code == 0).and_then(architecture_in)
}

/// The name of an architecture in the fields of properties: `gfx942` of `gfx942:sramecc+:xnack-`. It begins a field, and no
/// number has these bytes by chance, three letters and three digits at least.
fn architecture_in(properties: &[u8]) -> Option<String> {
    let texts = properties.split(|b| *b == 0).filter_map(|t| std::str::from_utf8(t).ok());
    let names = texts.filter_map(|t| t.split(':').next()).filter(|t| t.starts_with("gfx") && t.len() > 5);
    names.filter(|t| named(t).is_some()).map(str::to_string).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_architectures_have_names() {
        let of = |version| named(&name_of(version)).unwrap();
        let names = [90_010, 90_402, 110_000, 100_300].map(|n| (of(n).text, of(n).targets.first().copied()));
        let expected = [
            ("architecture gfx90a", Some("gfx90a")),
            ("architecture gfx942", Some("gfx942")),
            ("architecture gfx1100", Some("gfx1100")),
            ("architecture gfx1030", None),
        ];
        assert_eq!(names.each_ref().map(|(text, target)| (text.as_str(), *target)), expected);
    }

    #[test]
    fn a_node_is_that_of_a_gpu_by_its_place() {
        let place = Place { domain: 1, bus: 0xc1, slot: 2 };
        // The third partition of a GPU, its function 3.
        let location = 3u32 << 28 | 0xc1 << 8 | 2 << 3 | 3;
        let text = format!("cpu_cores_count 0\nlocation_id {location}\ndomain 1\ngfx_target_version 90402\n");
        assert_eq!(described(&text, place), Some(90_402));
        assert_eq!(described(&text, Place { bus: 0xc2, ..place }), None);
        assert_eq!(described(&text, Place { domain: 0, ..place }), None);
        assert_eq!(
            described("location_id 0\ngfx_target_version 0\n", Place { domain: 0, bus: 0, slot: 0 }),
            None
        );
        assert_eq!(described("", place), None);
    }

    #[test]
    fn the_runtime_says_an_architecture_somewhere() {
        let mut properties = vec![7u8; 600];
        assert_eq!(architecture_in(&properties), None);
        let text = b"\0gfx942:sramecc+:xnack-\0";
        properties[300..300 + text.len()].copy_from_slice(text);
        assert_eq!(architecture_in(&properties).as_deref(), Some("gfx942"));
        assert_eq!(named("gfx942").unwrap().number, (9, 4));
        assert_eq!(named("gfx1100").unwrap().number, (11, 0));
        assert!(named("gfx").is_none() && named("gfxabc").is_none());
    }
}
