//! The device and the kernels on it: [`Machine`] launches them, and measures each if that is asked for.

use std::cell::RefCell;

use tk::{Api, Arg, DType, Device, Event, Graph, Kernels, Stream};

use super::array::{Array, View};
use crate::failure::{Failure, Result};
use crate::setup::{DeviceKind, Dtype, Span};

/// What the build script has generated.
#[allow(
    dead_code,
    reason = "kernels are launched by name here: their element types are known when the program runs"
)]
mod built {
    tk::include_kernels!("model");
}

/// A device with a stream, and the kernels of this program.
pub struct Machine {
    pub kind: DeviceKind,
    pub device: Device,
    pub stream: Stream,
    kernels: Kernels,
    /// The kernels that were launched since measuring began, each with the moment at which it was done.
    marks: RefCell<Option<Vec<(String, Event)>>>,
}

impl Machine {
    /// The first device of a kind.
    pub fn open(kind: DeviceKind) -> Result<Machine> {
        let api = match kind {
            DeviceKind::Cpu => Api::Cpu,
            DeviceKind::Cuda => Api::Cuda,
            DeviceKind::Hip => Api::Hip,
        };
        let device = Device::open_on(api, 0)?;
        let stream = device.stream()?;
        let kernels = built::Model::new(&device)?.kernels().clone();
        Ok(Machine { kind, device, stream, kernels, marks: RefCell::default() })
    }

    /// Launches a kernel. `named` are the compile-time parameters that the arguments leave open.
    pub fn launch(&self, kernel: &str, args: &[Arg<'_>], named: &[(&str, &str)]) -> Result<()> {
        self.kernels.launch(&self.stream, kernel, args, named)?;
        if let Some(marks) = self.marks.borrow_mut().as_mut() {
            marks.push((kernel.to_string(), self.stream.record()?));
        }
        Ok(())
    }

    /// Launches a kernel on views, after which there are numbers.
    pub fn launch_on(
        &self,
        kernel: &str,
        views: &[View],
        numbers: &[Arg<'_>],
        named: &[(&str, &str)],
    ) -> Result<()> {
        let mut args: Vec<Arg<'_>> = views.iter().map(View::arg).collect();
        args.extend_from_slice(numbers);
        self.launch(kernel, &args, named)
    }

    /// Records launches instead of doing them.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
        self.stream.capture(work)
    }

    /// Does work with a look at the clock of the device after each kernel. What the stream has to do before should take
    /// longer than launching the work, or the device waits for the host between two kernels.
    pub fn measured(&self, work: impl FnOnce() -> Result<()>) -> Result<Vec<Span>> {
        *self.marks.borrow_mut() = Some(vec![]);
        let start = self.stream.record()?;
        let done = work();
        let marks = self.marks.borrow_mut().take().unwrap_or_default();
        done?;
        let (mut spans, mut before) = (vec![], 0.0);
        for (name, end) in marks {
            let until = f64::from(start.elapsed_ms(&end)?) * 1e3;
            spans.push(Span { name, start_us: before, us: until - before });
            before = until;
        }
        Ok(spans)
    }

    /// An array of a type, not written yet.
    pub fn array(&self, dtype: DType, shape: &[usize]) -> Result<Array> {
        Array::new(&self.device, dtype, shape)
    }

    /// An array with these elements.
    pub fn of<T: tk::Element>(&self, elements: &[T]) -> Result<Array> {
        let array = self.array(T::DTYPE, &[elements.len()])?;
        array.buffer().copy_from(&self.stream, elements)?;
        Ok(array)
    }

    /// The first elements of an array.
    pub fn read<T: tk::Element + Default>(&self, array: &Array, count: usize) -> Result<Vec<T>> {
        let mut out = vec![T::default(); count];
        array.buffer().copy_to(&self.stream, &mut out)?;
        Ok(out)
    }

    /// Fills a matrix with normally distributed numbers.
    pub fn random(&self, to: &View, seed: u64, scale: f32, mean: f32) -> Result<()> {
        self.launch("random", &[to.arg(), seed.into(), scale.into(), mean.into()], &[])
    }

    /// Fails if the device has less free memory than is needed.
    pub fn room(&self, needed: u64, what: &str) -> Result<()> {
        let free = self.device.free_bytes()? as u64;
        if needed <= free {
            return Ok(());
        }
        let sentence =
            format!("{what} need {} on the device, and {} are free there", amount(needed), amount(free));
        let advice = "A smaller `--dtype` or a smaller batch needs less.";
        Err(Failure::mistake(sentence).advise(advice))
    }
}

/// Bytes for a person to read.
pub fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// The element type of the language.
pub fn dtype(dtype: Dtype) -> DType {
    match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
    }
}

impl From<tk::CudaError> for Failure {
    fn from(error: tk::CudaError) -> Failure {
        Failure::mistake(error.sentence).advise(error.fix)
    }
}

impl From<tk::LaunchError> for Failure {
    fn from(error: tk::LaunchError) -> Failure {
        Failure::mistake(error.to_string())
    }
}

impl From<tk::BundleError> for Failure {
    fn from(error: tk::BundleError) -> Failure {
        Failure::mistake(error.to_string())
    }
}
