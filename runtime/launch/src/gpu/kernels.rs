//! Launches of shipped kernels: [`Kernels`], a bundle on a device.
//!
//! Nothing is compiled: a launch takes the variant whose guards hold, and loads its binary when it is the first to need it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;
use tk_bundle::{Argument, Bundle, Error, ErrorKind, Facts, Machine, Variant};
use tk_interp::Printed;
use tk_ops::DType;

use super::device::Device;
use super::kernel::{Kernel, KernelInfo, Module};
use super::key::{self, Arg};
use super::launcher::{ByKey, LaunchError, REMEMBERED, outside};
use super::log;
use super::messages::Messages;
use super::stream::Stream;
use super::vendor::Code;
use super::with_memory::{Failed, Scratch, WithMemory};
use crate::bundled;
use crate::compile::ParamKind;
use crate::session::lock;

/// Arguments that need no memory from the heap.
const MOST: usize = 16;

/// The kernels of a bundle on a device. Clones share loaded binaries.
#[derive(Clone)]
pub struct Kernels(Arc<Inner>);

struct Inner {
    device: Device,
    bundle: Arc<Bundle>,
    /// By kernel and variant.
    loaded: Vec<Vec<OnceLock<Loaded>>>,
    /// The variant and the grid of launches, by all that decides them: guards are interpreted, one variant after the other.
    chosen: Mutex<ByKey<(usize, [u32; 3])>>,
    printed: Printed,
    spare: Mutex<Option<Messages>>,
}

/// A variant that can be launched.
struct Loaded {
    kernel: Kernel,
    /// Its arguments.
    passed: Vec<Machine>,
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.bundle.manifest().kernels.iter().map(|k| k.name.as_str()).collect();
        f.debug_struct("Kernels").field("kernels", &names).field("device", &self.0.device).finish()
    }
}

impl Kernels {
    /// The kernels of a bundle on a device. Nothing is loaded yet. The file of a bundle is not trusted, but its machine
    /// code runs: it must come from a trusted source.
    pub fn new(device: Device, bundle: Arc<Bundle>) -> Kernels {
        let slots = |k: &tk_bundle::Kernel| k.variants.iter().map(|_| OnceLock::new()).collect();
        let loaded = bundle.manifest().kernels.iter().map(slots).collect();
        Kernels(Arc::new(Inner {
            device,
            bundle,
            loaded,
            chosen: Mutex::default(),
            printed: Printed::default(),
            spare: Mutex::default(),
        }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The bundle.
    pub fn bundle(&self) -> &Bundle {
        &self.0.bundle
    }

    /// The output of kernels since the last call; on the CPU, of all bundles.
    pub fn printed(&self) -> String {
        match self.0.device.vendor().code {
            Code::Tile => super::cpu::printed().take(),
            Code::Machine => self.0.printed.take(),
        }
    }

    /// Launches a kernel with its arguments in order; numbers that have defaults may be absent. `named` are the
    /// compile-time parameters, by name, that distinguish shipped variants.
    pub fn launch(
        &self,
        stream: &Stream,
        kernel: &str,
        args: &[Arg<'_>],
        named: &[(&str, &str)],
    ) -> Result<(), LaunchError> {
        let inner = &self.0;
        if !args.iter().all(Arg::inside) {
            return Err(outside(args).into());
        }
        let (number, k) = bundled::kernel(&inner.bundle, kernel)?;
        let fitted = fitted(k, args)?;
        let arguments: SmallVec<[Argument<'_>; MOST]> = fitted.iter().map(argument).collect();
        let targets: SmallVec<[&str; MOST]> = match inner.device.vendor().code {
            // The tile IR of each binary runs there.
            Code::Tile => k.variants.iter().map(|v| v.target.as_str()).collect(),
            Code::Machine => inner.device.targets().iter().copied().collect(),
        };
        let given = bundled::given(k, named)?;
        let facts = Facts {
            args: &arguments,
            given: &given,
            targets: &targets,
            sms: inner.device.sms().into(),
            shared_bytes: inner.device.shared_bytes().into(),
        };
        let key = key_of(number, &given, &fitted);
        let known = lock(&inner.chosen).get(key.as_slice()).copied();
        let (index, grid) = match known {
            Some(known) => known,
            None => {
                let chosen = k.choose(&facts)?;
                log::once(|| k.passed_over(chosen.variant, &facts));
                let index = k.variants.iter().position(|v| std::ptr::eq(v, chosen.variant)).unwrap_or(0);
                let mut all = lock(&inner.chosen);
                if all.len() >= REMEMBERED {
                    all.clear();
                }
                all.insert(key.into(), (index, chosen.grid));
                (index, chosen.grid)
            }
        };
        let variant = k.variants.get(index).ok_or_else(damaged)?;
        let slot = inner.loaded.get(number).and_then(|variants| variants.get(index));
        let loaded = match slot.and_then(OnceLock::get) {
            Some(loaded) => loaded,
            None => self.load(slot.ok_or_else(damaged)?, k, variant)?,
        };
        let Loaded { kernel: loaded, passed } = loaded;
        let mut values = words(passed, &fitted).ok_or_else(damaged)?;
        if variant.scratch.is_empty() && !loaded.info().has_control() {
            return Ok(loaded.start(stream, grid, &values, variant.cooperative, None)?);
        }
        let scratch = workspaces(variant, passed, &facts)?;
        let names: Vec<String> = k.params.iter().map(|p| p.name.clone()).collect();
        let launch = WithMemory {
            device: &inner.device,
            spare: &inner.spare,
            printed: &inner.printed,
            kernel: loaded,
            grid,
            cooperative: variant.cooperative,
            scratch: &scratch,
            names: &names,
            stream,
            args,
        };
        launch.start(&mut values).map_err(|failed| match failed {
            Failed::Device(error) => error.into(),
            Failed::Fault(fault) => {
                Error::new(ErrorKind::Kernel, format!("kernel `{kernel}` failed: {}", fault.message), "")
                    .into()
            }
        })
    }

    /// Makes a kernel ready. Two threads may do it at the same time; the first is kept.
    #[cold]
    fn load<'s>(
        &self,
        slot: &'s OnceLock<Loaded>,
        kernel: &tk_bundle::Kernel,
        variant: &Variant,
    ) -> Result<&'s Loaded, LaunchError> {
        let device = &self.0.device;
        let (image, passed) = match device.vendor().code {
            Code::Tile => (self.0.bundle.blob(&variant.tile)?, in_full(kernel, variant)),
            Code::Machine => (self.0.bundle.blob(&variant.binary)?, variant.passed.clone()),
        };
        let kind = |m: &Machine| match m {
            Machine::Address(_) | Machine::Scratch(_) => Some(ParamKind::Pointer),
            Machine::Extent(_, _, 32) => Some(ParamKind::Scalar(DType::I32)),
            Machine::Extent(..) | Machine::Stride(..) => Some(ParamKind::Scalar(DType::I64)),
            Machine::Number(arg) => {
                let dtype = variant.dtypes.get(*arg as usize)?.as_deref()?;
                Some(ParamKind::Scalar(DType::parse(dtype)?))
            }
        };
        let params = passed.iter().map(kind).collect::<Option<_>>().ok_or_else(damaged)?;
        let info = match device.vendor().code {
            Code::Tile => KernelInfo {
                name: variant.symbol.clone(),
                threads: 1,
                shared_bytes: 0,
                blocks_per_program: 1,
                params,
                maps: vec![],
                messages: Arc::default(),
                has_grid_barrier: false,
            },
            Code::Machine => KernelInfo {
                name: variant.symbol.clone(),
                threads: variant.threads,
                shared_bytes: device
                    .vendor()
                    .shared
                    .needed(variant.shared_bytes, variant.static_shared_bytes),
                blocks_per_program: variant.blocks_per_program,
                params,
                maps: variant.maps.clone(),
                messages: bundled::messages(variant).ok_or_else(damaged)?.into(),
                has_grid_barrier: variant.control > 0 && variant.messages.is_empty(),
            },
        };
        let kernel = Module::lazy(image.into()).kernel(info);
        kernel.fits(device)?;
        Ok(slot.get_or_init(|| Loaded { kernel, passed }))
    }
}

/// The arguments of the tile IR of a variant: every number of each argument that it has, and its workspaces.
fn in_full(kernel: &tk_bundle::Kernel, variant: &Variant) -> Vec<Machine> {
    let mut out = vec![];
    for (arg, param) in (0u32..).zip(&kernel.params) {
        if variant.dtypes.get(arg as usize).is_none_or(Option::is_none) {
            continue;
        }
        match param.kind {
            tk_bundle::ParamKind::Number => out.push(Machine::Number(arg)),
            tk_bundle::ParamKind::Pointer { .. } => out.push(Machine::Address(arg)),
            tk_bundle::ParamKind::View { rank, .. } => {
                out.push(Machine::Address(arg));
                out.extend((0..rank).map(|axis| Machine::Extent(arg, axis, 64)));
                out.extend((0..rank).map(|axis| Machine::Stride(arg, axis)));
            }
        }
    }
    out.extend((0u32..).zip(&variant.scratch).map(|(i, _)| Machine::Scratch(i)));
    out
}

/// All that a choice depends on: the kernel, what is given by name, the arguments with their addresses.
fn key_of(kernel: usize, given: &[Option<u32>], args: &[Arg<'_>]) -> Vec<u64> {
    let mut key = vec![];
    key::write(kernel as u64, &[], args, &mut key);
    key.extend(given.iter().map(|g| g.map_or(0, |n| u64::from(n) + 1)));
    key.extend(args.iter().filter(|a| matches!(a, Arg::Tensor { .. })).map(Arg::bits));
    key
}

fn damaged() -> Error {
    Error::new(ErrorKind::Bundle, "this bundle is damaged", "build it again")
}

/// The arguments with numbers as the kernel takes them.
fn fitted<'a>(kernel: &tk_bundle::Kernel, args: &[Arg<'a>]) -> Result<SmallVec<[Arg<'a>; MOST]>, Error> {
    let mut out: SmallVec<[Arg<'a>; MOST]> = args.iter().copied().collect();
    out.resize(out.len().max(kernel.params.len()), Arg::Absent);
    let dtype = |arg: &Arg<'_>| match arg {
        Arg::Tensor { dtype, .. } => Some(*dtype),
        Arg::Scalar(_) | Arg::Absent => None,
    };
    let tensors: SmallVec<[Option<DType>; MOST]> = args.iter().map(dtype).collect();
    for (i, (arg, param)) in out.iter_mut().zip(&kernel.params).enumerate() {
        let given = match (param.kind, &arg) {
            (tk_bundle::ParamKind::Number, Arg::Scalar(s)) => Some(*s),
            (tk_bundle::ParamKind::Number, Arg::Absent) => None,
            (_, Arg::Tensor { .. } | Arg::Scalar(_) | Arg::Absent) => continue,
        };
        *arg = bundled::fitted(kernel, i, given, &tensors)?.map_or(Arg::Absent, Arg::Scalar);
    }
    Ok(out)
}

/// An argument as the bundle sees it.
fn argument<'a>(arg: &'a Arg<'_>) -> Argument<'a> {
    match arg {
        Arg::Tensor { address, dtype, shape, strides, .. } => {
            Argument::Tensor { address: *address, dtype: dtype.name(), shape, strides: *strides }
        }
        Arg::Scalar(s) => Argument::Number { dtype: s.dtype().name(), value: bundled::number(*s) },
        Arg::Absent => Argument::Absent,
    }
}

/// The arguments of a function, as the bits of each value; workspaces are still 0. `None` if the arguments are
/// others.
fn words(passed: &[Machine], args: &[Arg<'_>]) -> Option<SmallVec<[u64; 2 * MOST]>> {
    let one = |m: &Machine| {
        let arg = |i: &u32| args.get(*i as usize);
        Some(match m {
            Machine::Address(i) | Machine::Number(i) => arg(i)?.bits(),
            Machine::Extent(i, axis, _) => arg(i)?.extent_of(*axis as usize),
            Machine::Stride(i, axis) => arg(i)?.stride_of(*axis as usize),
            Machine::Scratch(_) => 0,
        })
    };
    passed.iter().map(one).collect()
}

/// The workspaces of a launch.
fn workspaces(variant: &Variant, passed: &[Machine], facts: &Facts<'_>) -> Result<Vec<Scratch>, Error> {
    let mut out = vec![];
    for (value, m) in passed.iter().enumerate() {
        let Machine::Scratch(i) = m else { continue };
        let s = variant.scratch.get(*i as usize);
        let s = s.ok_or_else(damaged)?;
        let bytes = bundled::scratch_bytes(s, facts)?;
        let (zeroed, restored) = (s.zeroed, s.restored);
        out.extend((bytes > 0).then_some(Scratch { value, bytes, zeroed, restored }));
    }
    Ok(out)
}

impl From<Error> for LaunchError {
    fn from(error: Error) -> LaunchError {
        LaunchError::Shipped(error)
    }
}
