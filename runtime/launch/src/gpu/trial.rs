//! A kernel with its arguments on a device, to be launched again and again: [`Trial`], for measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tk_sema::contract::{self, HostArg, SetValue};
use tk_sema::hir::FnId;
use tk_tile::traffic::Traffic;

use super::binaries::traffic_of;
use super::buffer::Buffer;
use super::clock::{Caches, Clock, Times};
use super::error::CudaError;
use super::key::Arg;
use super::launcher::{CallSite, LaunchError, Launcher};
use super::stream::Stream;
use crate::choice::Choice;
use crate::npy::Array;
use crate::run::{Value, host};
use crate::session::Wrong;
use crate::table;

/// Random numbers after which those of a large array repeat: the largest prime below 2^24, so that no two rows of a
/// matrix are alike.
const PERIOD: usize = 16_777_213;

/// An address that is aligned as all that a driver allocates, for binaries that are made without memory.
const ALIGNED: u64 = 1 << 32;

/// A kernel and its arguments on a device.
#[derive(Debug)]
pub struct Trial {
    launcher: Launcher,
    clock: Clock,
    kernel: FnId,
    sets: Vec<(String, SetValue)>,
    args: Vec<HostArg>,
    /// The buffer of each argument that has one.
    of_arg: Vec<Option<usize>>,
    arrays: Vec<Placed>,
    /// Whether the arrays have memory.
    is_real: bool,
}

/// A tensor on the device.
#[derive(Debug)]
struct Placed {
    name: String,
    buffer: Buffer,
    dtype: tk_ops::DType,
    shape: Vec<usize>,
    /// What it holds before a launch, if the kernel may change it.
    before: Option<Option<Vec<u8>>>,
}

impl Trial {
    /// Brings values, in the order of the parameters, to the device.
    ///
    /// # Errors
    /// The launch is refused, or the device has not enough memory.
    pub fn new(
        launcher: Launcher,
        kernel: FnId,
        values: Vec<Value>,
        sets: &[(String, SetValue)],
    ) -> Result<Trial, LaunchError> {
        Trial::of(launcher, kernel, values, sets, true)
    }

    /// The same without memory for arrays: launches can be prepared, but not started.
    ///
    /// # Errors
    /// The launch is refused.
    pub fn without_memory(
        launcher: Launcher,
        kernel: FnId,
        values: Vec<Value>,
        sets: &[(String, SetValue)],
    ) -> Result<Trial, LaunchError> {
        Trial::of(launcher, kernel, values, sets, false)
    }

    fn of(
        launcher: Launcher,
        kernel: FnId,
        values: Vec<Value>,
        sets: &[(String, SetValue)],
        is_real: bool,
    ) -> Result<Trial, LaunchError> {
        let hir = &launcher.session().checked().hir;
        let params = contract::parameters(hir, kernel);
        let params: Vec<_> = params.into_iter().filter(|p| !p.compile_time).collect();
        let sets = {
            let arguments: Vec<_> = params.iter().zip(&values).collect();
            table::sets_of(hir, kernel, &arguments, sets)?
        };
        let args: Vec<HostArg> = values.iter().map(host).collect();
        // What the contract refuses is refused before anything is made.
        let place = launcher.place();
        contract::plan_on(hir, kernel, &args, &sets, place.facts).map_err(|e| vec![*e.diagnostic])?;
        let clock = Clock::new(launcher.device())?;
        let mut trial =
            Trial { launcher, clock, kernel, sets, args, of_arg: vec![], arrays: vec![], is_real };
        for (param, value) in params.iter().zip(values) {
            let mutable = param.table.map_or(param.mutable, |t| t.mutable);
            let buffer = trial.put(value, &param.name, mutable)?;
            trial.of_arg.push(buffer);
        }
        trial.clock.stream.synchronize()?;
        Ok(trial)
    }

    /// Allocates and fills the buffer of a tensor or of a table; `None` for what is neither.
    fn put(&mut self, value: Value, name: &str, mutable: bool) -> Result<Option<usize>, CudaError> {
        let (bytes, dtype, shape) = match value {
            Value::Array(array) => (Some(array.bytes), array.dtype, array.shape),
            Value::Made(made) if !self.is_real => (None, made.dtype, made.shape),
            Value::Made(made) => (made.make_repeated(PERIOD), made.dtype, made.shape),
            Value::Table(entries) => {
                let mut bytes = vec![];
                for (i, value) in entries.into_iter().enumerate() {
                    let entry = self.put(value, &format!("{name}[{i}]"), mutable)?;
                    let address = entry.and_then(|i| self.arrays.get(i)).map_or(0, |a| a.buffer.address());
                    bytes.extend(address.to_le_bytes());
                }
                let shape = vec![bytes.len() / 8];
                return self.place(name, Some(bytes), tk_ops::DType::U64, shape, false).map(Some);
            }
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Absent => return Ok(None),
        };
        self.place(name, bytes, dtype, shape, mutable).map(Some)
    }

    fn place(
        &mut self,
        name: &str,
        bytes: Option<Vec<u8>>,
        dtype: tk_ops::DType,
        shape: Vec<usize>,
        mutable: bool,
    ) -> Result<usize, CudaError> {
        let size = shape.iter().product::<usize>() * dtype.bytes();
        let buffer = self.launcher.device().alloc(if self.is_real { size } else { 0 })?;
        if let Some(bytes) = bytes.as_ref().filter(|_| self.is_real) {
            buffer.copy_from(&self.clock.stream, bytes)?;
        }
        let before = mutable.then_some(bytes);
        self.arrays.push(Placed { name: name.into(), buffer, dtype, shape, before });
        Ok(self.arrays.len() - 1)
    }

    /// The launcher.
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Whether times with cold caches can be measured.
    pub fn has_cold(&self) -> bool {
        self.clock.has_cold()
    }

    /// The arguments as the launch contract sees them.
    pub fn args(&self) -> &[HostArg] {
        &self.args
    }

    /// What was given by name, and what follows from tables.
    pub fn sets(&self) -> &[(String, SetValue)] {
        &self.sets
    }

    /// The launch that these values mean.
    ///
    /// # Errors
    /// It is refused.
    pub fn choice(&self, sets: &[(String, SetValue)]) -> Result<Arc<Choice>, Wrong> {
        let session = self.launcher.session();
        session.choose(self.kernel, &self.args, sets, &self.launcher.place(), self.launcher.compiler())
    }

    /// What the launch does at least.
    ///
    /// # Errors
    /// The kernel cannot be specialized.
    pub fn traffic(&self, choice: &Choice) -> Result<Traffic, Wrong> {
        traffic_of(self.launcher.session(), self.kernel, &choice.plan)
    }

    /// A place that launches the kernel with these values.
    ///
    /// # Errors
    /// There is no such kernel any more.
    pub fn site(&self, sets: &[(String, SetValue)]) -> Result<CallSite, LaunchError> {
        let hir = &self.launcher.session().checked().hir;
        self.launcher.site(&contract::launch_name(hir, self.kernel), sets)
    }

    /// Puts back what the kernel may have changed.
    ///
    /// # Errors
    /// Earlier work on the device failed.
    pub fn restore(&self) -> Result<(), CudaError> {
        for array in &self.arrays {
            if let Some(Some(bytes)) = &array.before {
                array.buffer.copy_from(&self.clock.stream, bytes)?;
            }
        }
        Ok(())
    }

    /// Plans and compiles what a launch needs.
    ///
    /// # Errors
    /// The launch is refused.
    pub fn prepare(&self, site: &mut CallSite) -> Result<(), LaunchError> {
        site.prepare(&self.all_args())
    }

    /// Launches once from the arrays as they were given, and waits, for so long; `false` if it still runs then.
    ///
    /// # Errors
    /// The launch is refused, or fails.
    pub fn once(&self, site: &mut CallSite, limit: Option<Duration>) -> Result<bool, LaunchError> {
        self.restore()?;
        let begin = Instant::now();
        self.launch(site, &self.clock.stream)?;
        // The CPU has finished by now.
        let limit = limit.map(|limit| limit.checked_sub(begin.elapsed()));
        if limit == Some(None) {
            return Ok(false);
        }
        Ok(match limit.flatten() {
            None => self.clock.stream.synchronize().map(|()| true),
            Some(limit) => self.clock.stream.synchronize_within(limit),
        }?)
    }

    /// The arrays that the kernel may change.
    ///
    /// # Errors
    /// Earlier work on the device failed.
    pub fn results(&self) -> Result<Vec<(String, Array)>, CudaError> {
        let mut out = vec![];
        for array in self.arrays.iter().filter(|a| a.before.is_some()) {
            let mut bytes = vec![0; array.buffer.len()];
            array.buffer.copy_to(&self.clock.stream, &mut bytes)?;
            out.push((array.name.clone(), Array { dtype: array.dtype, shape: array.shape.clone(), bytes }));
        }
        Ok(out)
    }

    /// The times of as many launches as fit into a time, and at most `most`.
    ///
    /// # Errors
    /// A launch is refused, or fails.
    pub fn times(
        &self,
        site: &mut CallSite,
        caches: Caches,
        within: Duration,
        most: usize,
    ) -> Result<Times, LaunchError> {
        self.clock.times(caches, within, most, &mut |stream| self.launch(site, stream))
    }

    /// The times of so many launches.
    ///
    /// # Errors
    /// As [`Trial::times`].
    pub fn runs(&self, site: &mut CallSite, caches: Caches, count: usize) -> Result<Times, LaunchError> {
        self.clock.runs(caches, count, &mut |stream| self.launch(site, stream))
    }

    fn launch(&self, site: &mut CallSite, stream: &Stream) -> Result<(), LaunchError> {
        site.launch(stream, &self.all_args())
    }

    fn all_args(&self) -> Vec<Arg<'_>> {
        self.args.iter().zip(&self.of_arg).map(|(a, b)| self.arg(a, *b)).collect()
    }

    fn arg<'a>(&'a self, arg: &'a HostArg, buffer: Option<usize>) -> Arg<'a> {
        match (arg, buffer.and_then(|i| self.arrays.get(i))) {
            (HostArg::Tensor { dtype, shape, strides }, _) if !self.is_real => {
                Arg::foreign(ALIGNED, *dtype, shape, strides)
            }
            (HostArg::Tensor { dtype, shape, .. }, Some(array)) => Arg::tensor(&array.buffer, *dtype, shape),
            (HostArg::Scalar(s), _) => Arg::Scalar(*s),
            (HostArg::Tensor { .. } | HostArg::Absent, _) => Arg::Absent,
        }
    }
}
