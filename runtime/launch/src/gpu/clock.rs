//! Measures the time of work on a GPU: [`Clock`].
//!
//! Guarantees that the time is the GPU's, between two events in its queue, and that a run with [`Caches::Cold`] begins
//! with an L2 that holds nothing of its inputs. The method is that of Triton's `do_bench`, so that the numbers can be
//! put side by side.

use std::time::{Duration, Instant};

use super::buffer::Buffer;
use super::device::Device;
use super::error::CudaError;
use super::stream::Stream;
use super::vendor::Code;

/// Bytes that are written before each run with cold caches. The L2 caches of GPUs are smaller: an H200 has 60 MB.
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

/// What the caches of the GPU hold when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caches {
    /// Nothing of the arguments: other memory was written before.
    Cold,
    /// What the run before has left there.
    Warm,
}

/// The times of several runs, in milliseconds, from the shortest to the longest.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Vec<f64>);

impl Times {
    /// Of runs in any order.
    pub fn new(mut times: Vec<f64>) -> Times {
        times.sort_by(f64::total_cmp);
        Times(times)
    }

    /// The number of runs.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this share of the runs, from 0 to 1, does not exceed; infinite without runs.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1) as f64;
        let at = (last * share.clamp(0.0, 1.0)).round() as usize;
        self.0.get(at).copied().unwrap_or(f64::INFINITY)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        let n = self.0.len();
        match (self.0.get(n.saturating_sub(1) / 2), self.0.get(n / 2)) {
            (Some(a), Some(b)) => f64::midpoint(*a, *b),
            _ => f64::INFINITY,
        }
    }

    /// The shortest.
    pub fn least(&self) -> f64 {
        self.quantile(0.0)
    }
}

/// Times work on a device.
#[derive(Debug)]
pub struct Clock {
    /// Where the work goes.
    pub stream: Stream,
    /// What is written to empty the caches; none on the CPU, whose caches stay as they are.
    flush: Option<Buffer>,
}

impl Clock {
    /// Of a device.
    pub fn new(device: &Device) -> Result<Clock, CudaError> {
        let flush = match device.vendor().code {
            Code::Machine => Some(device.alloc(FLUSH)?),
            Code::Tile => None,
        };
        Ok(Clock { stream: device.stream()?, flush })
    }

    /// Returns true if the caches can be emptied.
    pub fn has_cold(&self) -> bool {
        self.flush.is_some()
    }

    /// Milliseconds of one run with cold caches: the median of as many as fit into the time.
    pub fn median<E: From<CudaError>>(
        &self,
        run: &mut dyn FnMut(&Stream) -> Result<(), E>,
    ) -> Result<f64, E> {
        let stream = &self.stream;
        run(stream)?;
        stream.synchronize()?;
        let begin = stream.record()?;
        for _ in 0..FIRST {
            self.empty()?;
            run(stream)?;
        }
        let end = stream.record()?;
        // A clock that stands still must not make this run for ever.
        let one = (f64::from(begin.elapsed_ms(&end)?) / FIRST as f64).max(1e-3);
        for _ in 0..fitting(WARM_UP, one) {
            run(stream)?;
        }
        Ok(self.runs(Caches::Cold, fitting(MEASURE, one), run)?.median())
    }

    /// Milliseconds of one run, with cold caches, of a kernel that has run before. What takes longer than [`BRIEF`] runs
    /// once.
    pub fn brief<E: From<CudaError>>(&self, run: &mut dyn FnMut(&Stream) -> Result<(), E>) -> Result<f64, E> {
        let one = self.runs(Caches::Cold, 1, run)?.median();
        if one >= BRIEF {
            return Ok(one);
        }
        let count = fitting(BRIEF, one.max(1e-3)).min(MOST);
        // What the first ones take does not count: the GPU may have been idle.
        self.runs(Caches::Cold, count.div_ceil(4), run)?;
        Ok(self.runs(Caches::Cold, count, run)?.median())
    }

    /// The times of as many runs as fit into a time, at least one, and at most `most`. The first ones warm up and do not
    /// count, unless a single run takes all of the time.
    pub fn times<E: From<CudaError>>(
        &self,
        caches: Caches,
        within: Duration,
        most: usize,
        run: &mut dyn FnMut(&Stream) -> Result<(), E>,
    ) -> Result<Times, E> {
        let (limit, start) = (within.as_secs_f64() * 1e3, Instant::now());
        let first = self.runs(caches, 1, run)?;
        // What a run takes on the host counts too: it may be more than that on the device.
        let one = (start.elapsed().as_secs_f64() * 1e3).max(first.least()).max(1e-3);
        if one >= limit {
            return Ok(first);
        }
        let count = fitting(limit, one).min(most);
        self.runs(caches, count.div_ceil(4), run)?;
        self.runs(caches, count, run)
    }

    /// Overwrites the caches.
    fn empty(&self) -> Result<(), CudaError> {
        self.flush.as_ref().map_or(Ok(()), |buffer| buffer.fill_zero(&self.stream))
    }

    /// So many runs.
    pub fn runs<E: From<CudaError>>(
        &self,
        caches: Caches,
        count: usize,
        run: &mut dyn FnMut(&Stream) -> Result<(), E>,
    ) -> Result<Times, E> {
        let stream = &self.stream;
        let mut events = vec![];
        for _ in 0..count {
            if caches == Caches::Cold {
                self.empty()?;
            }
            let begin = stream.record()?;
            run(stream)?;
            events.push((begin, stream.record()?));
        }
        stream.synchronize()?;
        let times: Result<Vec<f64>, CudaError> =
            events.iter().map(|(b, e)| Ok(f64::from(b.elapsed_ms(e)?))).collect();
        Ok(Times::new(times?))
    }
}

/// How many runs fit into a time; at least one.
fn fitting(time: f64, one: f64) -> usize {
    ((time / one) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_quantiles() {
        let times = Times::new(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((times.median(), times.least(), times.quantile(1.0)), (2.5, 1.0, 4.0));
        assert_eq!(Times::new(vec![]).median(), f64::INFINITY);
        assert_eq!(Times::new(vec![7.0]).quantile(0.9), 7.0);
    }
}
