//! [`Kept`]: memory that a kernel leaves zero, zeroed once and used by one launch after the other.
//!
//! It is not freed before the kernel is unloaded: a launch of another thread may be about to use it.
//!
//! Guarantees that launches that may run at the same time have different memory. Launches of a stream follow one another, so
//! they share theirs, which belongs to the stream's number: a driver gives a number once, and a handle again. A recorded launch
//! has memory that no other has, since its graph may run beside its stream; a driver does not run a graph beside itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::CUstream;

use super::device::Context;
use super::error::CudaError;
use super::stream::Stream;
use crate::session::lock;

/// The entry points of a driver that tells streams apart.
pub(crate) struct Streams {
    /// The number of a stream.
    pub number: unsafe extern "C" fn(CUstream, *mut u64) -> u32,
    /// Whether a stream is recorded: 1 if so.
    pub recording: unsafe extern "C" fn(CUstream, *mut u32) -> u32,
    /// Exchanges what this thread may call while a stream is recorded.
    pub exchange_mode: unsafe extern "C" fn(*mut u32) -> u32,
}

/// The symbols of [`Streams`], in order.
pub(crate) type StreamSymbols = [&'static str; 3];

/// The memory that a kernel keeps, by context and stream.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Regions>);

#[derive(Default)]
struct Regions {
    /// The largest of each stream.
    of_streams: BTreeMap<(u64, u64), Region>,
    /// Those of graphs, and smaller ones of streams.
    others: Vec<Region>,
}

/// Memory of a context.
struct Region {
    context: Arc<Context>,
    address: u64,
    bytes: usize,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the kernel that uses it is unloaded with it; the driver waits for its work.
            unsafe { (self.context.driver.free)(self.address) };
        }
    }
}

impl Kept {
    /// The address of `bytes` bytes that are zero when the next launch in `stream` begins, if that one and all before it leave
    /// them so; `None` where the driver does not tell streams apart.
    pub fn of(&self, stream: &Stream, bytes: usize) -> Result<Option<u64>, CudaError> {
        /// `CU_STREAM_CAPTURE_STATUS_ACTIVE`
        const RECORDING: u32 = 1;
        let context = stream.context();
        let Some(streams) = &context.driver.streams else { return Ok(None) };
        context.enter()?;
        let (mut number, mut recording) = (0, 0);
        // SAFETY: the places and the stream live.
        let code = unsafe { (streams.recording)(stream.raw(), &raw mut recording) };
        context.check(code, "cannot query whether a stream is recorded")?;
        let mut regions = lock(&self.0);
        if recording == RECORDING {
            let region = Region::recorded(context, streams, bytes)?;
            let address = region.address;
            regions.others.push(region);
            return Ok(Some(address));
        }
        // SAFETY: as above.
        let code = unsafe { (streams.number)(stream.raw(), &raw mut number) };
        context.check(code, "cannot query the number of a stream")?;
        let key = (context.id, number);
        if let Some(r) = regions.of_streams.get(&key).filter(|r| r.bytes >= bytes) {
            return Ok(Some(r.address));
        }
        // Twice as much as before, so what is no longer used is less than what is.
        let before = regions.of_streams.get(&key).map_or(0, |r| r.bytes);
        let region = Region::new(stream, bytes.max(before.saturating_mul(2)))?;
        let address = region.address;
        let smaller = regions.of_streams.insert(key, region);
        regions.others.extend(smaller);
        Ok(Some(address))
    }
}

impl Region {
    /// Memory that earlier work of the stream does not use.
    fn new(stream: &Stream, bytes: usize) -> Result<Region, CudaError> {
        let address = stream.alloc(bytes)?;
        let region = Region { context: Arc::clone(stream.context()), address, bytes };
        stream.fill_zero(address, bytes)?;
        Ok(region)
    }

    /// Memory for a launch that is recorded: zeroed now, by another stream, and not when the graph runs.
    fn recorded(context: &Arc<Context>, streams: &Streams, bytes: usize) -> Result<Region, CudaError> {
        /// `CU_STREAM_CAPTURE_MODE_RELAXED`: this thread may allocate and wait.
        const RELAXED: u32 = 2;
        let mut mode = RELAXED;
        // SAFETY: the place lives.
        unsafe { (streams.exchange_mode)(&raw mut mode) };
        let made = Stream::new(Arc::clone(context)).and_then(|own| {
            let region = Region::new(&own, bytes)?;
            own.synchronize()?;
            Ok(region)
        });
        // SAFETY: as above.
        unsafe { (streams.exchange_mode)(&raw mut mode) };
        made
    }
}
