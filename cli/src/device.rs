//! Resolves `--device NAME` to a device that runs kernels.

use std::path::Path;
use std::sync::Arc;

use tk_runtime::Session;
use tk_runtime::device::Device;
use tk_runtime::gpu::{Api, LaunchError, Launcher};
use tk_syntax::SourceMap;

use crate::args::DeviceName;
use crate::front;
use crate::terminal::{Failure, Outcome, Terminal};

/// The device for the kernels of a program; `None` is the interpreter. The error says in one sentence why none is
/// available.
pub fn open(name: DeviceName, sources: &SourceMap, path: &str) -> Result<Option<Arc<dyn Device>>, String> {
    match name {
        DeviceName::Cpu => Ok(None),
        DeviceName::Cuda => gpu(Api::Cuda, sources, Path::new(path)).map(Some),
        DeviceName::Hip => gpu(Api::Hip, sources, Path::new(path)).map(Some),
        _ => simulator(name).map(Some),
    }
}

/// The driver interface of a device on which kernels are timed.
pub fn api(name: DeviceName) -> Result<Api, String> {
    match name {
        DeviceName::Cpu => Ok(Api::Cpu),
        DeviceName::Cuda => Ok(Api::Cuda),
        DeviceName::Hip => Ok(Api::Hip),
        _ => Err(format!("the simulator `{}` has no clock; use cpu, cuda or hip", name.name())),
    }
}

/// Why a device that is to time a launch is not there, and what tells of its time without one.
pub fn without(error: &str) -> String {
    format!(
        "{error}; `tk profile` without `--device` predicts the time of a launch, and `tk explain-launch` shows what it uses"
    )
}

/// Launches of a program on a device, to time them.
pub fn launcher(api: Api, session: Session, path: &str) -> Result<Launcher, String> {
    let gpu = tk_runtime::gpu::Device::open_on(api, 0).map_err(|e| without(&e.to_string()))?;
    let compiler = compiler(&session.checked().sources, Path::new(path))?;
    Launcher::new(Arc::new(session), gpu, compiler).map_err(|e| e.to_string())
}

/// Prints why a launch was refused, or failed.
pub fn refused(terminal: &Terminal, session: &Session, error: LaunchError) -> Outcome {
    match error {
        LaunchError::Refused(wrong) => front::refused(terminal, session, &wrong),
        LaunchError::Device(_) | LaunchError::Shipped(_) => Err(Failure::Sentence(error.to_string())),
    }
}

/// Checks the settings of a device.
pub fn settings(name: DeviceName) -> Result<(), String> {
    match name {
        DeviceName::Cpu | DeviceName::Cuda | DeviceName::Hip => Ok(()),
        _ => seed().map(|_| ()),
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
    let gpu = tk_runtime::gpu::Device::open_on(api, 0).map_err(|e| e.to_string())?;
    let backend = tk_runtime::gpu::Backend::new(gpu, compiler(sources, path)?).map_err(|e| e.to_string())?;
    Ok(Arc::new(backend))
}

#[cfg(feature = "llvm")]
fn compiler(sources: &SourceMap, path: &Path) -> Result<Arc<dyn tk_runtime::compile::Compile>, String> {
    use tk_driver::{Cache, Environment, Jit};
    Ok(Arc::new(Jit::new(sources.clone(), Environment::of_process(Some(path)), Cache::of_process())))
}

#[cfg(not(feature = "llvm"))]
fn simulator(_: DeviceName) -> Result<Arc<dyn Device>, String> {
    Err("this tk was built without LLVM, so kernels run only on `cpu`".into())
}

#[cfg(not(feature = "llvm"))]
fn compiler(_: &SourceMap, _: &Path) -> Result<Arc<dyn tk_runtime::compile::Compile>, String> {
    Ok(Arc::new(crate::without_llvm::NoCompiler))
}

#[cfg(not(feature = "llvm"))]
fn gpu(_: Api, _: &SourceMap, _: &Path) -> Result<Arc<dyn Device>, String> {
    Err("this tk was built without LLVM, so kernels run only on `cpu`".into())
}
