//! Predicted times of launches: the cost model on scheduled kernels, each scheduled once.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, PoisonError, RwLock};

use tk_gpu::cost::{self, Analysed};
use tk_gpu::ir::kernel::Remark;
use tk_gpu::target::chip::{self, Chip};
use tk_runtime::Compiled;
use tk_runtime::compile::{CompileOptions, Estimate, Launch, PlaceCost};
use tk_syntax::stack::on_large_stack;

use crate::compile::kernel::Request;
use crate::compile::pipeline::schedule;

/// Specializations that are kept: enough for the members of a few `tune` lists.
const REMEMBERED: usize = 1024;

/// A scheduled kernel whose launches are predicted.
pub struct Predicted {
    kernel: Analysed,
}

impl Predicted {
    /// Of a kernel; `None` if it cannot be scheduled.
    pub fn new(request: &Request<'_>) -> Option<Predicted> {
        Some(Predicted { kernel: Analysed::new(schedule(request, None).ok()?.scheduled) })
    }

    /// Where the fastest instructions do not apply, and why.
    pub fn remarks(&self) -> &[Remark] {
        &self.kernel.kernel().remarks
    }

    /// The cost of a launch on a GPU.
    pub fn estimate(&self, launch: &Launch<'_>, chip: &Chip) -> Estimate {
        let of = launched(launch);
        let found = cost::estimate(&self.kernel, &of, chip);
        let places = if launch.by_place { cost::by_place(&self.kernel, &of, chip) } else { vec![] };
        as_estimate(found, places)
    }
}

/// A launch as the cost model sees it.
fn launched<'a>(launch: &Launch<'a>) -> cost::Launched<'a> {
    let Launch { args, grid, bytes, sms, .. } = *launch;
    cost::Launched { args, grid, bytes, sms }
}

/// Scheduled kernels by specialization and options; none for one that cannot be scheduled.
#[derive(Default)]
pub struct Predictions(RwLock<Known>);

/// The kernels of a specialization, by what they are compiled for; there are few of each.
type Known = HashMap<u64, Vec<(CompileOptions, Option<Arc<Predicted>>)>>;

impl Predictions {
    /// The time of a launch; `None` if nothing is known of the GPU, or the kernel cannot be compiled for it.
    pub fn predict<'m>(
        &self,
        request: impl FnOnce() -> Option<Request<'m>> + Send,
        kernel: &Compiled,
        options: &CompileOptions,
        launch: &Launch<'_>,
    ) -> Option<Estimate> {
        let chip = chip::chip(launch.gpu).or_else(|| chip::usual(&options.target))?;
        Some(self.known(request, kernel, options)?.estimate(launch, chip))
    }

    /// The same in microseconds, or any number between `limit` and the time ([`tk_runtime::compile::Compile::time`]).
    pub fn time<'m>(
        &self,
        request: impl FnOnce() -> Option<Request<'m>> + Send,
        kernel: &Compiled,
        (options, launch): (&CompileOptions, &Launch<'_>),
        limit: f64,
    ) -> Option<f64> {
        let chip = chip::chip(launch.gpu).or_else(|| chip::usual(&options.target))?;
        let known = self.known(request, kernel, options)?;
        Some(cost::time(&known.kernel, &launched(launch), chip, limit))
    }

    fn known<'m>(
        &self,
        request: impl FnOnce() -> Option<Request<'m>> + Send,
        kernel: &Compiled,
        options: &CompileOptions,
    ) -> Option<Arc<Predicted>> {
        let find = |all: &Known| {
            let (_, found) = all.get(&kernel.id)?.iter().find(|(of, _)| of == options)?;
            Some(found.clone())
        };
        if let Some(found) = find(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let made = on_large_stack(|| request().map(|request| Predicted::new(&request).map(Arc::new)));
        let made = made.unwrap_or_else(|panic| resume_unwind(panic))?;
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        if let Some(found) = find(&all) {
            return found;
        }
        all.entry(kernel.id).or_default().push((options.clone(), made.clone()));
        made
    }
}

/// The cost of a launch and of places in the form of the runtime.
fn as_estimate(found: cost::Estimate, places: Vec<cost::PlaceCost>) -> Estimate {
    Estimate {
        us: found.us,
        parts: found.parts.iter().map(|(bound, us)| (bound.name(), *us)).collect(),
        registers: [found.registers, found.spilled],
        shared_bytes: found.shared_bytes,
        blocks_per_sm: found.blocks_per_sm,
        waves: found.waves,
        is_guess: found.is_guess,
        places: places.into_iter().map(place_cost).collect(),
    }
}

fn place_cost(cost: cost::PlaceCost) -> PlaceCost {
    PlaceCost {
        loc: cost.loc,
        parts: cost.parts.into_iter().map(|(bound, us)| (bound.name(), us)).collect(),
        instructions: cost.instructions,
        bytes: cost.bytes,
        needed: cost.needed,
        lane_bytes: cost.lane_bytes,
        limit: cost.limit,
        tensor_copies: cost.tensor_copies,
        conflicts: cost.conflicts,
        tile_bytes: cost.tile_bytes,
        registers: cost.registers,
    }
}
