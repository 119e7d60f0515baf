//! [`Stream`], an ordered queue of GPU work, and [`Event`], a point in one.
//!
//! A stream remembers its last kernels, so that a failure, which the driver reports at a later call, has a name.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUevent, CUstream};

use super::device::{Context, Device};
use super::error::{CudaError, code};
use super::kernel::Module;
use crate::session::lock;

/// Kernels that a stream remembers. More would make the sentence long and not clearer.
const REMEMBERED: usize = 4;
/// The number of times that a stream is polled before the thread sleeps between two polls.
const SPINS: u32 = 1000;
/// The pause between two questions: short against the time of a kernel that did not end within [`SPINS`] questions.
const PAUSE: Duration = Duration::from_micros(50);

/// A queue of work for the GPU.
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
    /// Whether it is destroyed on drop.
    is_own: bool,
    /// The names of the last kernels, at most [`REMEMBERED`]; null where there was none.
    names: [AtomicPtr<String>; REMEMBERED],
    /// The number of kernels launched since the last synchronisation.
    launched: AtomicUsize,
    /// Whether what is put in it is recorded.
    recording: AtomicBool,
    /// The modules launched since the recording began: a graph must keep them loaded.
    recorded: Mutex<Vec<Module>>,
}

// SAFETY: the driver allows every thread to use a stream.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(context: Arc<Context>) -> Result<Stream, CudaError> {
        /// `CU_STREAM_NON_BLOCKING`: does not wait for the default stream.
        const NON_BLOCKING: u32 = 1;
        context.enter()?;
        let mut raw: CUstream = ptr::null_mut();
        // SAFETY: the place lives, and the context is current.
        let code = unsafe { (context.driver.stream_create)(&raw mut raw, NON_BLOCKING) };
        context.check(code, "cannot create a stream")?;
        Ok(Stream::of(context, raw, true))
    }

    fn of(context: Arc<Context>, raw: CUstream, is_own: bool) -> Stream {
        Stream {
            context,
            raw,
            is_own,
            names: Default::default(),
            launched: AtomicUsize::new(0),
            recording: AtomicBool::new(false),
            recorded: Mutex::default(),
        }
    }

    /// A stream of another library, a `CUstream` or a `hipStream_t`; null is the default stream. It is not destroyed on
    /// drop.
    ///
    /// # Safety
    /// It belongs to the primary context of the device, and lives as long as it is used here.
    pub unsafe fn foreign(device: &Device, raw: *mut c_void) -> Stream {
        Stream::of(device.context(), raw.cast(), false)
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The driver's handle, a `CUstream` or a `hipStream_t`, for other libraries.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// Remembers a kernel. The name lives as long as the process.
    #[inline]
    pub(crate) fn remember(&self, name: &'static String) {
        let n = self.launched.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.names.get(n % REMEMBERED) {
            slot.store(ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
        }
    }

    /// Begins or ends a recording; gives what was launched in it.
    pub(crate) fn set_recording(&self, on: bool) -> Vec<Module> {
        self.recording.store(on, Ordering::Release);
        std::mem::take(&mut *lock(&self.recorded))
    }

    /// Keeps what was launched, if it was recorded.
    #[inline]
    pub(crate) fn keep(&self, module: &Module) {
        if self.recording.load(Ordering::Acquire) {
            lock(&self.recorded).push(module.clone());
        }
    }

    /// The suspects after a failure: the kernels that were launched since the last synchronisation.
    pub(crate) fn suspects(&self) -> String {
        let launched = self.launched.load(Ordering::Relaxed);
        let mut names = vec![];
        for i in launched.saturating_sub(REMEMBERED)..launched {
            let name = self.names.get(i % REMEMBERED).map_or(ptr::null_mut(), |n| n.load(Ordering::Relaxed));
            // SAFETY: only names that are never freed are stored.
            let name = unsafe { name.as_ref() }.map(|n| format!("`{n}`"));
            names.extend(name.filter(|n| !names.contains(n)));
        }
        match (names.as_slice(), launched <= REMEMBERED) {
            ([], _) => "work on the GPU failed".to_string(),
            ([one], true) => format!("kernel {one} failed"),
            (some, true) => format!("one of the kernels {} failed", some.join(", ")),
            (some, false) => format!("one of the kernels {} or one before them failed", some.join(", ")),
        }
    }

    /// Waits until all its work is done. Fails if any of it failed.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: the stream lives.
        let code = unsafe { (self.context.driver.stream_synchronize)(self.raw) };
        self.done(code)
    }

    /// The same with a timeout: `false` if work is still running then.
    pub fn synchronize_within(&self, limit: Duration) -> Result<bool, CudaError> {
        let start = Instant::now();
        self.context.enter()?;
        let mut asked = 0;
        loop {
            // SAFETY: the stream lives.
            let code = unsafe { (self.context.driver.stream_query)(self.raw) };
            if code != code::NOT_READY {
                return self.done(code).map(|()| true);
            }
            if start.elapsed() >= limit {
                return Ok(false);
            }
            asked += 1;
            if asked < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn done(&self, code: u32) -> Result<(), CudaError> {
        if code != 0 {
            return Err(self.context.fail(code, &self.suspects()));
        }
        self.launched.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Allocates memory for later work in it, until [`Stream::free`]; returns its address.
    pub(crate) fn alloc(&self, bytes: usize) -> Result<u64, CudaError> {
        self.context.enter()?;
        let mut address = 0u64;
        // SAFETY: the place and the stream live.
        let code = unsafe { (self.context.driver.alloc_async)(&raw mut address, bytes, self.raw) };
        self.context.check(code, &format!("cannot allocate {bytes} bytes of workspace on the GPU"))?;
        Ok(address)
    }

    /// Frees memory of [`Stream::alloc`] after the earlier work of the stream.
    pub(crate) fn free(&self, address: u64) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: it was allocated by this stream, and is not used by what comes later.
        let code = unsafe { (self.context.driver.free_async)(address, self.raw) };
        self.context.check(code, "cannot free workspace on the GPU")
    }

    /// Fills memory of [`Stream::alloc`] with zeros.
    pub(crate) fn fill_zero(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: there are that many bytes.
        let code = unsafe { (self.context.driver.fill)(address, 0, bytes, self.raw) };
        self.context.check(code, "cannot fill workspace on the GPU")
    }

    /// Makes later work wait for an event of another stream.
    pub fn wait(&self, event: &Event) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: both live.
        let code = unsafe { (self.context.driver.stream_wait)(self.raw, event.raw, 0) };
        self.context.check(code, "a stream cannot wait for an event")
    }

    /// Records an event after all work so far.
    pub fn record(&self) -> Result<Event, CudaError> {
        self.context.enter()?;
        let mut raw: CUevent = ptr::null_mut();
        // SAFETY: the place lives.
        let code = unsafe { (self.context.driver.event_create)(&raw mut raw, 0) };
        self.context.check(code, "cannot create an event")?;
        let event = Event { context: Arc::clone(&self.context), raw };
        // SAFETY: both live.
        let code = unsafe { (self.context.driver.event_record)(event.raw, self.raw) };
        self.context.check(code, "cannot record an event")?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_own && self.context.enter().is_ok() {
            // SAFETY: nothing uses it any more; the driver ends it when its work is done.
            unsafe { (self.context.driver.stream_destroy)(self.raw) };
        }
    }
}

/// A point in a stream.
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: the driver allows every thread to use an event.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl Event {
    /// Waits for it. Fails if earlier work failed.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: the event lives.
        let code = unsafe { (self.context.driver.event_synchronize)(self.raw) };
        self.context.check(code, "work on the GPU failed")
    }

    /// Milliseconds from this event to a later one, which it waits for.
    pub fn elapsed_ms(&self, later: &Event) -> Result<f32, CudaError> {
        later.synchronize()?;
        let mut ms = 0f32;
        // SAFETY: the place and both events live.
        let code = unsafe { (self.context.driver.event_elapsed)(&raw mut ms, self.raw, later.raw) };
        self.context.check(code, "cannot query the time between two events")?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: nothing uses it any more.
            unsafe { (self.context.driver.event_destroy)(self.raw) };
        }
    }
}
