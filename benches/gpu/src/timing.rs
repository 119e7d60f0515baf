//! Measures GPU time: [`Clock`].
//!
//! Guarantees that each run begins with an L2 that holds nothing of its inputs, and that the time is the GPU's, between
//! two events in its queue. The method is that of Triton's `do_bench`, so that the numbers can be put side by side.

use tk_runtime::gpu::{Buffer, Device, Stream};

use crate::report::median;

/// Bytes that are written before each run. The caches of GPUs are smaller: an H200 has 60 MB.
const FLUSH: usize = 256 << 20;
/// How long runs go on before they count, in milliseconds.
const WARM_UP: f64 = 20.0;
/// How long runs go on that count, in milliseconds.
const MEASURE: f64 = 60.0;
/// Runs whose time says how many the others are.
const FIRST: usize = 5;
/// How long runs go on that count where there are many kernels to measure, in milliseconds.
const BRIEF: f64 = 30.0;
/// The most of such runs: of a short kernel, most of the time is that of writing [`FLUSH`] bytes.
const MOST: usize = 200;

/// Times work on the GPU.
pub struct Clock {
    /// Where the work goes.
    pub stream: Stream,
    flush: Buffer,
}

impl Clock {
    /// Of a device.
    pub fn new(device: &Device) -> Result<Clock, String> {
        let make = || Ok(Clock { stream: device.stream()?, flush: device.alloc(FLUSH)? });
        make().map_err(|e: tk_runtime::gpu::CudaError| e.to_string())
    }

    /// Milliseconds of one run: the median of as many as fit into the time.
    pub fn median(&self, run: &mut dyn FnMut(&Stream) -> Result<(), String>) -> Result<f64, String> {
        let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
        let stream = &self.stream;
        run(stream)?;
        stream.synchronize().map_err(gpu)?;
        let begin = stream.record().map_err(gpu)?;
        for _ in 0..FIRST {
            self.flush.fill_zero(stream).map_err(gpu)?;
            run(stream)?;
        }
        let end = stream.record().map_err(gpu)?;
        // A clock that stands still must not make this run for ever.
        let one = (f64::from(begin.elapsed_ms(&end).map_err(gpu)?) / FIRST as f64).max(1e-3);
        for _ in 0..fitting(WARM_UP, one) {
            run(stream)?;
        }
        self.median_of(fitting(MEASURE, one), run)
    }

    /// Milliseconds of one run of a kernel that has run before. What takes longer than [`BRIEF`] runs once.
    pub fn brief(&self, run: &mut dyn FnMut(&Stream) -> Result<(), String>) -> Result<f64, String> {
        let one = self.median_of(1, run)?;
        if one >= BRIEF {
            return Ok(one);
        }
        let count = fitting(BRIEF, one.max(1e-3)).min(MOST);
        // What the first ones take does not count: the GPU may have been idle.
        self.median_of(count.div_ceil(4), run)?;
        self.median_of(count, run)
    }

    /// The median of so many runs, each with an L2 that holds nothing of its inputs.
    fn median_of(
        &self,
        count: usize,
        run: &mut dyn FnMut(&Stream) -> Result<(), String>,
    ) -> Result<f64, String> {
        let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
        let stream = &self.stream;
        let mut events = vec![];
        for _ in 0..count {
            self.flush.fill_zero(stream).map_err(gpu)?;
            let begin = stream.record().map_err(gpu)?;
            run(stream)?;
            events.push((begin, stream.record().map_err(gpu)?));
        }
        stream.synchronize().map_err(gpu)?;
        let times: Result<Vec<f64>, String> =
            events.iter().map(|(b, e)| Ok(f64::from(b.elapsed_ms(e).map_err(gpu)?))).collect();
        Ok(median(&times?))
    }
}

/// How many runs fit into a time; at least one.
fn fitting(time: f64, one: f64) -> usize {
    ((time / one) as usize).max(1)
}
