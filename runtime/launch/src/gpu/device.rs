//! [`Device`], a GPU, and its context.
//!
//! The context is the primary one, which other libraries of the process share. A failed kernel destroys the context:
//! from then on each use of its objects (streams, buffers, modules) reports the name of the kernel, until
//! [`Device::recover`] creates a new context. Guarantees that a lost context is not used.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use cudarc::driver::sys::{CUcontext, CUdevice};

use super::buffer::{Buffer, Pinned};
use super::driver::Driver;
use super::error::{CudaError, code, loses_context};
use super::stream::Stream;
use super::vendor::{Api, Architecture, Vendor};

/// The most blocks of a grid on the axes 1 and 2; the first one takes as many as a program id can name. From the table
/// of technical specifications in NVIDIA's programming guide: the same for every GPU since compute capability 3.0. Those of
/// AMD take one more.
pub(crate) const MOST_BLOCKS: u32 = 65535;

/// A GPU. Clones share it.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    driver: &'static Driver,
    facts: Facts,
    context: RwLock<Arc<Context>>,
}

/// The constant properties of a GPU.
#[derive(Clone, Debug)]
struct Facts {
    ordinal: usize,
    raw: CUdevice,
    name: String,
    version: (u32, u32),
    architecture: Architecture,
    sms: u32,
    shared_bytes: u32,
    threads: u32,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.0.facts).finish()
    }
}

impl Device {
    /// The NVIDIA GPU with this number, among those of `CUDA_VISIBLE_DEVICES`.
    pub fn open(ordinal: usize) -> Result<Device, CudaError> {
        Device::open_on(Api::Cuda, ordinal)
    }

    /// The CPU, where the interpreter runs the tile IR of kernels: the same program works without a GPU, slowly. A
    /// kernel has finished when its launch returns, and its faults are errors of the launch.
    pub fn cpu() -> Result<Device, CudaError> {
        Device::open_on(Api::Cpu, 0)
    }

    /// The GPU with this number of a driver interface.
    pub fn open_on(api: Api, ordinal: usize) -> Result<Device, CudaError> {
        let driver = Driver::get(api)?;
        let (vendor, version) = (driver.vendor, version(driver)?);
        if version < vendor.needed {
            return Err(CudaError::too_old(vendor, version));
        }
        let count = count(driver)?;
        if ordinal >= count {
            let there = if count == 1 { "there is 1".to_string() } else { format!("there are {count}") };
            let maker = vendor.maker;
            let sentence = format!("there is no {maker} GPU {ordinal}: {there}, counted from 0");
            return Err(CudaError::new(sentence, vendor.list));
        }
        let facts = facts(driver, ordinal, version)?;
        let context = RwLock::new(Arc::new(Context::retain(driver, facts.raw)?));
        Ok(Device(Arc::new(Inner { driver, facts, context })))
    }

    /// The number of GPUs of a driver interface.
    pub fn count(api: Api) -> Result<usize, CudaError> {
        count(Driver::get(api)?)
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.0.facts.ordinal
    }

    /// Its product name.
    pub fn name(&self) -> &str {
        &self.0.facts.name
    }

    /// Its multiprocessors.
    pub fn sms(&self) -> u32 {
        self.0.facts.sms
    }

    /// The maximum shared memory of a block in bytes, including opt-in.
    pub fn shared_bytes(&self) -> u32 {
        self.0.facts.shared_bytes
    }

    /// The maximum number of threads of a block.
    pub fn threads(&self) -> u32 {
        self.0.facts.threads
    }

    /// The first two numbers of its architecture: the compute capability of an NVIDIA GPU.
    pub fn capability(&self) -> (u32, u32) {
        self.0.facts.architecture.number
    }

    /// The code that it runs, as text: `compute capability 9.0`, `architecture gfx90a`.
    pub fn architecture(&self) -> &str {
        &self.0.facts.architecture.text
    }

    /// The version of CUDA or HIP that the driver is for: major and minor.
    pub fn driver_version(&self) -> (u32, u32) {
        self.0.facts.version
    }

    /// The name of the best target for this GPU; `None` if no target's binaries run here.
    pub fn target(&self) -> Option<&'static str> {
        self.targets().first().copied()
    }

    /// The names of the targets whose binaries this GPU runs, the best first.
    pub fn targets(&self) -> &[&'static str] {
        &self.0.facts.architecture.targets
    }

    /// The facts of its vendor.
    pub(crate) fn vendor(&self) -> &'static Vendor {
        self.0.driver.vendor
    }

    /// Bytes of free memory.
    pub fn free_bytes(&self) -> Result<usize, CudaError> {
        let context = self.context();
        context.enter()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both places live, and a context is current.
        let code = unsafe { (self.0.driver.memory_info)(&raw mut free, &raw mut total) };
        context.check(code, "cannot query the free memory of the GPU")?;
        Ok(free)
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream, CudaError> {
        Stream::new(self.context())
    }

    /// Uninitialized memory of that many bytes.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, CudaError> {
        Buffer::new(self.context(), bytes)
    }

    /// Pinned host memory of that many zeros, for asynchronous copies to and from the GPU.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned, CudaError> {
        Pinned::new(self.context(), bytes)
    }

    /// Why its context is lost; `None` while it is not.
    pub fn lost(&self) -> Option<CudaError> {
        self.context().lost().cloned()
    }

    /// Creates a new context if the current one is lost. Objects of the old one remain lost, including memory. Fails if
    /// the GPU does not recover, or a kernel that exceeded its time limit is still running.
    pub fn recover(&self) -> Result<(), CudaError> {
        let mut slot = self.0.context.write().unwrap_or_else(PoisonError::into_inner);
        let Some(loss) = slot.loss.get() else { return Ok(()) };
        if loss.busy {
            return Err(loss.error.clone());
        }
        let (driver, raw) = (self.0.driver, self.0.facts.raw);
        let what = "the GPU does not recover after a failed kernel";
        CURRENT.set(0);
        // What these calls say is not asked: they too tell of the kernel that failed. Whether they helped shows below.
        // SAFETY: nothing of the lost context is used again: each use looks at `loss` first. Its own reference is given
        // back here, and its `drop` does not do it again.
        unsafe {
            (driver.set_current)(std::ptr::null_mut());
            (driver.primary_reset)(raw);
            (driver.primary_release)(raw);
        }
        let fresh = Context::retain(driver, raw).map(Arc::new);
        // The driver may hand out a context that is as broken as the one before: a buffer is filled to see that.
        let works = fresh.and_then(|fresh| {
            let probe = Buffer::new(Arc::clone(&fresh), 256)?;
            let stream = Stream::new(Arc::clone(&fresh))?;
            probe.fill_zero(&stream)?;
            stream.synchronize()?;
            Ok(fresh)
        });
        let failed = |e: CudaError| CudaError {
            sentence: format!("{what}: {}", e.sentence),
            fix: "restart the program".to_string(),
            ..e
        };
        *slot = works.map_err(failed)?;
        Ok(())
    }

    /// Makes its context the current one of this thread, whatever other libraries have made current, until the result is
    /// dropped. Calls on other devices must not happen in between.
    ///
    /// # Errors
    /// The context is lost.
    pub fn enter(&self) -> Result<Entered, CudaError> {
        let (context, driver) = (self.context(), self.0.driver);
        let mut before: CUcontext = std::ptr::null_mut();
        // SAFETY: the place lives.
        driver.check(unsafe { (driver.get_current)(&raw mut before) }, "cannot query the current GPU")?;
        if before == context.raw {
            CURRENT.set(context.id);
            return Ok(Entered { driver, before: None });
        }
        CURRENT.set(0);
        context.enter()?;
        Ok(Entered { driver, before: Some(before) })
    }

    /// The context of now.
    pub(crate) fn context(&self) -> Arc<Context> {
        Arc::clone(&self.0.context.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A device whose context is current in this thread; on drop, the one before becomes current again.
pub struct Entered {
    driver: &'static Driver,
    before: Option<CUcontext>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("before", &self.before).finish_non_exhaustive()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            CURRENT.set(0);
            // SAFETY: it was current in this thread; a failure shows at the next call of its owner.
            unsafe { (self.driver.set_current)(before) };
        }
    }
}

/// The version of CUDA or HIP that the driver is for.
pub(crate) fn version(driver: &Driver) -> Result<(u32, u32), CudaError> {
    let mut n: c_int = 0;
    // SAFETY: the place lives.
    driver.check(unsafe { (driver.driver_version)(&raw mut n) }, "cannot query the version of the driver")?;
    Ok((driver.vendor.version)(u32::try_from(n).unwrap_or(0)))
}

/// The number of GPUs; at least one.
fn count(driver: &Driver) -> Result<usize, CudaError> {
    let (mut n, what): (c_int, _) = (0, "no kernel can run");
    // SAFETY: the place lives.
    driver.check(unsafe { (driver.device_count)(&raw mut n) }, what)?;
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        Ok(_) | Err(_) => Err(CudaError::of(driver, code::NO_DEVICE, what)),
    }
}

fn facts(driver: &Driver, ordinal: usize, version: (u32, u32)) -> Result<Facts, CudaError> {
    let what = "cannot query the properties of the GPU";
    let mut raw: CUdevice = 0;
    // SAFETY: the place lives.
    let code = unsafe { (driver.device_get)(&raw mut raw, c_int::try_from(ordinal).unwrap_or(c_int::MAX)) };
    driver.check(code, what)?;
    let mut name = [0 as c_char; 256];
    // SAFETY: there is room for 256 bytes; one is kept for the zero at the end.
    driver.check(unsafe { (driver.device_name)(name.as_mut_ptr(), 255, raw) }, what)?;
    // SAFETY: the last byte is a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let (vendor, ask) = (driver.vendor, |attribute| driver.attribute(raw, attribute));
    Ok(Facts {
        ordinal,
        raw,
        name,
        version,
        architecture: (vendor.architecture)(driver, raw)?,
        sms: ask(vendor.attributes.sms)?,
        shared_bytes: ask(vendor.attributes.shared_bytes)?,
        threads: ask(vendor.attributes.threads)?,
    })
}

/// A context; its number is never used again, unlike the driver's address of one.
pub(crate) struct Context {
    pub driver: &'static Driver,
    /// Above 0.
    pub id: u64,
    device: CUdevice,
    raw: CUcontext,
    loss: OnceLock<Loss>,
}

// SAFETY: the driver allows every thread to use a context.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Why a context is lost.
struct Loss {
    error: CudaError,
    /// A kernel still runs there: the context cannot even be ended.
    busy: bool,
}

thread_local! {
    /// The number of the context that this thread made current last; 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

impl Context {
    fn retain(driver: &'static Driver, device: CUdevice) -> Result<Context, CudaError> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let mut raw: CUcontext = std::ptr::null_mut();
        // SAFETY: the place lives.
        let code = unsafe { (driver.primary_retain)(&raw mut raw, device) };
        driver.check(code, "the GPU cannot be used")?;
        Ok(Context { driver, id: IDS.fetch_add(1, Ordering::Relaxed), device, raw, loss: OnceLock::new() })
    }

    /// The multiprocessors of its device.
    pub fn sms(&self) -> Result<u32, CudaError> {
        let (mut n, attribute) = (0, self.driver.vendor.attributes.sms);
        // SAFETY: the place lives.
        let code = unsafe { (self.driver.device_attribute)(&raw mut n, attribute, self.device) };
        self.check(code, "cannot query the number of multiprocessors of the GPU")?;
        Ok(u32::try_from(n).unwrap_or(0))
    }

    /// Makes it the current context of this thread, if it was not the last one to be so. Fails if it is lost.
    #[inline]
    pub fn enter(&self) -> Result<(), CudaError> {
        if let Some(loss) = self.loss.get() {
            return Err(loss.error.clone());
        }
        if CURRENT.get() == self.id { Ok(()) } else { self.make_current() }
    }

    #[cold]
    fn make_current(&self) -> Result<(), CudaError> {
        // SAFETY: the context lives: it was retained, and it is not lost.
        let code = unsafe { (self.driver.set_current)(self.raw) };
        self.check(code, "the GPU cannot be used from this thread")?;
        CURRENT.set(self.id);
        Ok(())
    }

    /// The error of a call that starts no kernel. One that loses the context is noted.
    #[inline]
    pub fn check(&self, code: u32, what: &str) -> Result<(), CudaError> {
        if code == 0 { Ok(()) } else { Err(self.fail(code, what)) }
    }

    /// Notes what a call gave; `what` could not be done, or failed.
    #[cold]
    pub fn fail(&self, code: u32, what: &str) -> CudaError {
        let error = CudaError::of(self.driver, code, what);
        if loses_context(code) {
            self.lose(&error, false);
        }
        error
    }

    /// Notes that a kernel runs that cannot be stopped.
    pub fn stuck(&self, error: &CudaError) {
        self.lose(error, true);
    }

    fn lose(&self, error: &CudaError, busy: bool) {
        let why = CudaError {
            sentence: format!("the device's context is lost: {}", error.sentence),
            fix: if busy {
                "end this process, which is the only way to stop that kernel".to_string()
            } else {
                format!("{}; `Device::recover` gives the device a new context", error.fix)
            },
            code: error.code,
        };
        // The first reason is the one to tell: all later ones follow from it.
        let _ = self.loss.set(Loss { error: why, busy });
    }

    /// Why it is lost.
    pub fn lost(&self) -> Option<&CudaError> {
        self.loss.get().map(|l| &l.error)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // `recover` has given back what is lost; what is stuck stays until the process ends.
        if self.loss.get().is_none() {
            // SAFETY: it was retained once, and nothing uses it any more.
            unsafe { (self.driver.primary_release)(self.device) };
        }
    }
}
