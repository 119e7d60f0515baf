//! The kernels of a device that have been compiled: [`Binaries`], each made once for what it depends on.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use tk_sema::contract::{self, Plan};
use tk_sema::hir::FnId;
use tk_tile::text;
use tk_tile::traffic::{Traffic, traffic};

use super::device::Device;
use super::error::CudaError;
use super::kernel::Kernel;
use super::launcher::bug;
use super::vendor::Code;
use crate::choice::Place;
use crate::compile::{ArgFacts, Binary, Compile, CompileOptions, params};
use crate::device::LaunchOptions;
use crate::predict::launch_args;
use crate::session::{Compiled, Session, Wrong, lock};

/// The kernels of a device, by specialization and what else they were made for.
pub(crate) struct Binaries {
    device: Device,
    /// The target of the binaries. None on the CPU, which runs tile IR as it is.
    target: Option<&'static str>,
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
        let target = match device.vendor().code {
            Code::Tile => None,
            Code::Machine => Some(device.target().ok_or_else(|| {
                let (name, architecture) = (device.name(), device.architecture());
                let sentence = format!("kernels cannot be built for the {name}: it has {architecture}");
                CudaError::new(sentence, format!("{}, or `--device cpu`", device.vendor().supported))
            })?),
        };
        Ok(Binaries { device, target, compiler, known: Mutex::new(HashMap::new()) })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the device is for launch contracts and tuning records.
    pub fn place(&self) -> Place {
        let target = self.target.unwrap_or("cpu").to_string();
        Place { facts: self.facts(), target, name: self.device.name().to_string() }
    }

    fn facts(&self) -> contract::Device {
        let (sms, smem) = (self.device.sms().into(), self.device.shared_bytes().into());
        let target = self.target.map(|name| self.compiler.target(name)).unwrap_or_default();
        contract::Device { sms, smem, target }
    }

    /// The compiler whose cost model predicts times of launches; `None` for the CPU.
    pub fn compiler(&self) -> Option<&dyn Compile> {
        self.target.map(|_| self.compiler.as_ref() as &dyn Compile)
    }

    /// The kernel of a specialization. Two threads may make the same one at the same time; the first is kept.
    pub fn get(
        &self,
        compiled: &Compiled,
        options: &LaunchOptions,
        facts: Vec<ArgFacts>,
    ) -> Result<Arc<Kernel>, Wrong> {
        let LaunchOptions { warps, ctas, cluster, stages, max_regs, occupancy, .. } = *options;
        let target = self.target.unwrap_or_default().to_string();
        let key = (
            compiled.id,
            CompileOptions { target, warps, ctas, cluster, max_regs, occupancy, stages, facts },
        );
        if let Some(kernel) = lock(&self.known).get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let binary = match self.target {
            Some(_) => self.compiler.compile(&compiled.module, compiled.entry, &key.1)?,
            None => interpreted(compiled)?,
        };
        let kernel = Arc::new(Kernel::of(binary));
        Ok(Arc::clone(lock(&self.known).entry(key).or_insert(kernel)))
    }
}

/// What a launch does at least. What a workspace holds does not leave the device: it counts as if it did, like
/// everything else.
pub(crate) fn traffic_of(session: &Session, kernel: FnId, plan: &Plan) -> Result<Traffic, Wrong> {
    let (compiled, _) = session.compile(kernel, &plan.bindings)?;
    Ok(traffic(&compiled.module, compiled.entry, &launch_args(plan), plan.grid))
}

/// What the CPU loads: the text of the tile IR. What the kernel says goes to [`super::cpu::printed`], and its asserts are
/// errors of the launch, so there is no control memory.
fn interpreted(compiled: &Compiled) -> Result<Binary, Wrong> {
    let func = compiled.module.funcs.get(compiled.entry);
    let known = func.zip(params(&compiled.module, compiled.entry));
    let (func, params) = known.ok_or_else(|| vec![bug("a specialization has no kernel")])?;
    Ok(Binary {
        name: func.name.clone(),
        image: text::print(&compiled.module, text::Options::default()).into_bytes().into(),
        threads: 1,
        shared_bytes: 0,
        blocks_per_program: 1,
        params,
        maps: vec![],
        messages: Arc::default(),
        has_grid_barrier: false,
    })
}
