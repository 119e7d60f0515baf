//! The kernels of a device that have been compiled: [`Binaries`], each made once for what it depends on.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use tk_sema::contract;

use super::device::Device;
use super::error::CudaError;
use super::kernel::Kernel;
use crate::compile::{ArgFacts, Compile, CompileOptions};
use crate::device::LaunchOptions;
use crate::session::{Compiled, Wrong, lock};

/// The kernels of a device, by specialization and what else they were made for.
pub(crate) struct Binaries {
    device: Device,
    target: &'static str,
    compiler: Arc<dyn Compile>,
    known: Mutex<HashMap<(u64, CompileOptions), Arc<Kernel>>>,
}

impl fmt::Debug for Binaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binaries").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Binaries {
    /// None yet. Fails if the device has no target.
    pub fn new(device: Device, compiler: Arc<dyn Compile>) -> Result<Binaries, CudaError> {
        let target = device.target().ok_or_else(|| {
            let (name, architecture) = (device.name(), device.architecture());
            let sentence = format!("kernels cannot be built for the {name}: it has {architecture}");
            CudaError::new(sentence, format!("{}, or `--device cpu`", device.vendor().supported))
        })?;
        Ok(Binaries { device, target, compiler, known: Mutex::new(HashMap::new()) })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The facts that launch contracts and compile-time code may ask for about the device.
    pub fn facts(&self) -> contract::Device {
        let (sms, smem) = (self.device.sms().into(), self.device.shared_bytes().into());
        contract::Device { sms, smem, target: self.compiler.target(self.target) }
    }

    /// The kernel of a specialization. Two threads may make the same one at the same time; the first is kept.
    pub fn get(
        &self,
        compiled: &Compiled,
        options: &LaunchOptions,
        facts: Vec<ArgFacts>,
    ) -> Result<Arc<Kernel>, Wrong> {
        let LaunchOptions { warps, ctas, stages, max_regs, occupancy, .. } = *options;
        let target = self.target.to_string();
        let key = (compiled.id, CompileOptions { target, warps, ctas, max_regs, occupancy, stages, facts });
        if let Some(kernel) = lock(&self.known).get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let binary = self.compiler.compile(&compiled.module, compiled.entry, &key.1)?;
        let kernel = Arc::new(Kernel::of(binary));
        Ok(Arc::clone(lock(&self.known).entry(key).or_insert(kernel)))
    }
}
