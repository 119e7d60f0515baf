//! Resolves `--device NAME` to a device that runs kernels.

use std::path::Path;
use std::sync::Arc;

use tk_runtime::device::Device;
use tk_runtime::gpu::Api;
use tk_syntax::SourceMap;

use crate::args::DeviceName;

/// The device for the kernels of a program; `None` is the interpreter. The error says in one sentence why none is
/// available.
pub fn open(name: DeviceName, sources: &SourceMap, path: &str) -> Result<Option<Arc<dyn Device>>, String> {
    match name {
        DeviceName::Cpu => Ok(None),
        DeviceName::Sim | DeviceName::Sim64 | DeviceName::SimWmma => simulator(name).map(Some),
        DeviceName::Cuda => gpu(Api::Cuda, sources, Path::new(path)).map(Some),
        DeviceName::Hip => gpu(Api::Hip, sources, Path::new(path)).map(Some),
    }
}

/// Checks the settings of a device.
pub fn settings(name: DeviceName) -> Result<(), String> {
    match name {
        DeviceName::Sim | DeviceName::Sim64 | DeviceName::SimWmma => seed().map(|_| ()),
        DeviceName::Cpu | DeviceName::Cuda | DeviceName::Hip => Ok(()),
    }
}

/// The seed of the simulator: `TK_SIM_SEED`, or 0.
fn seed() -> Result<u64, String> {
    match std::env::var_os("TK_SIM_SEED").filter(|v| !v.is_empty()).map(|v| v.to_string_lossy().into_owned())
    {
        Some(text) => text.parse().map_err(|_| format!("TK_SIM_SEED is `{text}`, which is not a number")),
        None => Ok(0),
    }
}

#[cfg(feature = "llvm")]
fn simulator(name: DeviceName) -> Result<Arc<dyn Device>, String> {
    let seed = seed()?;
    let Some(spec) = tk_gpu::target::spec::target(name.name()) else {
        return Err(format!("there is no simulator `{}`", name.name()));
    };
    Ok(Arc::new(tk_driver::Simulator::new(spec, seed)))
}

#[cfg(feature = "llvm")]
fn gpu(api: Api, sources: &SourceMap, path: &Path) -> Result<Arc<dyn Device>, String> {
    use tk_driver::{Cache, Environment, Jit};
    let gpu = tk_runtime::gpu::Device::open_on(api, 0).map_err(|e| e.to_string())?;
    let jit = Jit::new(sources.clone(), Environment::of_process(Some(path)), Cache::of_process());
    let backend = tk_runtime::gpu::Backend::new(gpu, Arc::new(jit)).map_err(|e| e.to_string())?;
    Ok(Arc::new(backend))
}

#[cfg(not(feature = "llvm"))]
fn simulator(_: DeviceName) -> Result<Arc<dyn Device>, String> {
    Err("this tk was built without LLVM, so kernels run only on `cpu`".into())
}

#[cfg(not(feature = "llvm"))]
fn gpu(_: Api, _: &SourceMap, _: &Path) -> Result<Arc<dyn Device>, String> {
    Err("this tk was built without LLVM, so kernels run only on `cpu`".into())
}
