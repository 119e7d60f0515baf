//! Times of launches with the tensors of a program: [`measure`].

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tk_runtime::gpu::{Arg, Caches, Clock, LaunchError, Stream, Times};
use tk_sema::contract::SetValue;
use tk_tile::traffic::Traffic;

use crate::dlpack::At;
use crate::launch::{Call, Kernel, Site};
use crate::program::{Form, kernel_id};
use crate::{errors, lock};

/// The most launches that are measured.
const MOST: usize = 10_000;

#[pymethods]
impl Kernel {
    /// Launches the kernel again and again for so many seconds; returns the times in milliseconds, sorted, the bytes and
    /// the operations of a launch. `cold` overwrites the caches of the GPU before each.
    #[pyo3(signature = (seconds, cold, *args, **kwargs))]
    fn _times(
        &self,
        seconds: f64,
        cold: bool,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Vec<f64>, Option<f64>, Option<f64>)> {
        let py = args.py();
        let call = self.call(args, kwargs)?;
        let within = Duration::try_from_secs_f64(seconds)
            .map_err(|e| errors::argument(py, &format!("`seconds` is no time: {e}")))?;
        let caches = if cold { Caches::Cold } else { Caches::Warm };
        let done = py.detach(|| {
            let site = self.site(&call)?;
            let times = measure(&mut lock(&site), &call, caches, within)?;
            Ok((times, self.traffic(&call)?))
        });
        let (times, traffic) = done.map_err(|e: LaunchError| errors::launch(py, self.sources(), &e))?;
        let count = times.count();
        let sorted = (0..count).map(|i| times.quantile(i as f64 / count.saturating_sub(1).max(1) as f64));
        let counted = traffic.map(|t| (t.bytes(), t.operations()));
        Ok((sorted.collect(), counted.map(|c| c.0), counted.map(|c| c.1)))
    }
}

impl Kernel {
    /// What a launch does at least; `None` for a bundle, which has no tile IR of all sizes.
    fn traffic(&self, call: &Call) -> Result<Option<Traffic>, LaunchError> {
        let Form::Source(source) = &self.program.form else { return Ok(None) };
        let launcher = lock(&source.launchers).get(&call.at).cloned();
        let id = kernel_id(&source.session.checked().hir, &self.signature.name);
        let (Some(launcher), Some(id)) = (launcher, id) else { return Ok(None) };
        let sets: Vec<(String, SetValue)> =
            call.sets.iter().map(|(n, v)| (n.clone(), SetValue::parse(v))).collect();
        let args: Vec<Arg<'_>> = call.values.iter().map(crate::launch::foreign).collect();
        launcher.traffic(id, &args, &sets).map(Some)
    }
}

/// The times of launches into a stream of their own, after the earlier work of the stream of the tensors.
fn measure(site: &mut Site, call: &Call, caches: Caches, within: Duration) -> Result<Times, LaunchError> {
    let _entered = site.device.enter()?;
    let clock = Clock::new(&site.device)?;
    let earlier = site.stream(call.stream)?;
    earlier.synchronize()?;
    let placed = match site.at {
        At::Host => Some(call.placed()?),
        At::Cuda(_) | At::Hip(_) => None,
    };
    let args: SmallVec<[Arg<'_>; 16]> =
        call.values.iter().map(|v| crate::launch::arg(v, placed.as_ref())).collect();
    let mut run = |stream: &Stream| site.start(stream, &args, &call.sets);
    let times = clock.times(caches, within, MOST, &mut run)?;
    Ok(times)
}
