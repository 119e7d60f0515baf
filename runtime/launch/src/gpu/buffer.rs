//! GPU memory ([`Buffer`]) and pinned host memory for asynchronous copies ([`Pinned`], [`Pending`]).
//!
//! Guarantees that no copy leaves its buffer, and that host memory is not touched by others while a copy uses it.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::device::Context;
use super::error::CudaError;
use super::stream::{Event, Stream};
use crate::element::Element;

/// Bytes of the widest load.
const WORD: usize = 16;

/// GPU memory. It is freed on drop, after earlier work of the GPU.
pub struct Buffer {
    context: Arc<Context>,
    address: u64,
    bytes: usize,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}, {} bytes)", self.address, self.bytes)
    }
}

impl Buffer {
    pub(crate) fn new(context: Arc<Context>, bytes: usize) -> Result<Buffer, CudaError> {
        let mut address = 0u64;
        context.enter()?;
        // The driver refuses to allocate nothing; the address of no bytes is never used.
        if bytes > 0 {
            // A load of unaligned elements reads the aligned words that have them. The last one is whole, so that tools which
            // watch allocations see nothing of it.
            let whole = bytes.checked_next_multiple_of(WORD).unwrap_or(bytes);
            // SAFETY: the place lives, and the context is current.
            let code = unsafe { (context.driver.alloc)(&raw mut address, whole) };
            context.check(code, &format!("cannot allocate {bytes} bytes on the GPU"))?;
        }
        Ok(Buffer { context, address, bytes })
    }

    /// The address of its first byte on the GPU; 0 if it has none.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns true unless its context is lost.
    pub(crate) fn is_usable(&self) -> bool {
        self.context.lost().is_none()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies from the host to its start. The elements may be changed when this returns.
    pub fn copy_from<T: Element>(&self, stream: &Stream, host: &[T]) -> Result<(), CudaError> {
        // SAFETY: the slice is not touched before the copy is done, below.
        unsafe { self.start_from(stream, host.as_ptr().cast(), size_of_val(host)) }?;
        stream.synchronize()
    }

    /// Copies from its start to the host. Earlier work of the stream is done when this returns.
    pub fn copy_to<T: Element>(&self, stream: &Stream, host: &mut [T]) -> Result<(), CudaError> {
        // SAFETY: the slice is not touched before the copy is done, below, and every bit pattern is a value.
        unsafe { self.start_to(stream, host.as_mut_ptr().cast(), size_of_val(host)) }?;
        stream.synchronize()
    }

    /// Starts a copy from pinned host memory, which is returned when the copy is done.
    pub fn copy_from_pinned(&self, stream: &Stream, host: Pinned) -> Result<Pending, CudaError> {
        // SAFETY: the memory is kept until the copy is done.
        unsafe { self.start_from(stream, host.start.cast(), host.bytes) }?;
        Pending::new(stream, host)
    }

    /// Starts a copy from its start to pinned host memory.
    pub fn copy_to_pinned(&self, stream: &Stream, host: Pinned) -> Result<Pending, CudaError> {
        // SAFETY: the memory is kept until the copy is done.
        unsafe { self.start_to(stream, host.start.cast(), host.bytes) }?;
        Pending::new(stream, host)
    }

    /// Fills it with zeros.
    pub fn fill_zero(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context.enter()?;
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the memory has that many bytes.
        let code = unsafe { (self.context.driver.fill)(self.address, 0, self.bytes, stream.raw()) };
        self.context.check(code, "cannot fill memory of the GPU")
    }

    /// Starts to copy host memory to it.
    ///
    /// # Safety
    /// There are `bytes` bytes at `host`, which is neither written nor freed before the stream is done with the copy.
    pub(crate) unsafe fn start_from(
        &self,
        stream: &Stream,
        host: *const u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.fits(bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have that many bytes, the caller and the line above see to it.
        let code = unsafe {
            (self.context.driver.to_device)(self.address, host.cast::<c_void>(), bytes, stream.raw())
        };
        self.context.check(code, "a copy to the GPU failed")
    }

    /// Starts to copy from it to host memory.
    ///
    /// # Safety
    /// There are `bytes` bytes at `host`, which is neither used nor freed before the stream is done with the copy.
    pub(crate) unsafe fn start_to(
        &self,
        stream: &Stream,
        host: *mut u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.fits(bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both sides have that many bytes, the caller and the line above see to it.
        let code = unsafe {
            (self.context.driver.to_host)(host.cast::<c_void>(), self.address, bytes, stream.raw())
        };
        // The driver may tell here that a kernel before has failed.
        if code == 0 { Ok(()) } else { Err(self.context.fail(code, &stream.suspects())) }
    }

    /// Checks that a copy of that many bytes stays inside; makes the context current.
    fn fits(&self, bytes: usize) -> Result<(), CudaError> {
        if bytes > self.bytes {
            let sentence = format!("cannot copy {bytes} bytes: the buffer on the GPU has {}", self.bytes);
            return Err(CudaError::new(sentence, "allocate as many bytes as the host has"));
        }
        self.context.enter()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes > 0 && self.context.enter().is_ok() {
            // SAFETY: it was allocated once, and the driver waits for what still uses it.
            unsafe { (self.context.driver.free)(self.address) };
        }
    }
}

/// Pinned host memory, which the GPU can access, so that copies are asynchronous.
pub struct Pinned {
    context: Arc<Context>,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it is plain memory with one owner.
unsafe impl Send for Pinned {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Pinned {}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.bytes)
    }
}

impl Pinned {
    pub(crate) fn new(context: Arc<Context>, bytes: usize) -> Result<Pinned, CudaError> {
        /// `CU_MEMHOSTALLOC_PORTABLE` and `CU_MEMHOSTALLOC_DEVICEMAP`: pinned for all contexts, and kernels reach it.
        const FLAGS: u32 = 1 | 2;
        let mut start: *mut c_void = ptr::NonNull::<u64>::dangling().as_ptr().cast();
        context.enter()?;
        if bytes > 0 {
            // SAFETY: the place lives, and the context is current.
            let code = unsafe { (context.driver.alloc_host)(&raw mut start, bytes, FLAGS) };
            context.check(code, &format!("cannot allocate {bytes} bytes of pinned host memory"))?;
            // SAFETY: the memory is new and has that many bytes.
            unsafe { ptr::write_bytes(start.cast::<u8>(), 0, bytes) };
        }
        Ok(Pinned { context, start: start.cast(), bytes })
    }

    /// Its address for the GPU.
    pub(crate) fn device_address(&self) -> Result<u64, CudaError> {
        let mut address = 0u64;
        self.context.enter()?;
        // SAFETY: the place lives, and the memory was allocated for this; the flags must be 0.
        let code =
            unsafe { (self.context.driver.host_address)(&raw mut address, self.start.cast::<c_void>(), 0) };
        self.context.check(code, "the GPU cannot access host memory")?;
        Ok(address)
    }

    /// The 64 bits at this byte, which the GPU may be writing; `None` where there are none, or not aligned.
    pub(crate) fn word(&self, at: usize) -> Option<u64> {
        let inside = at.checked_add(8).is_some_and(|end| end <= self.bytes) && at.is_multiple_of(8);
        // SAFETY: the bytes are inside of the memory, which is page-aligned and initialised; a volatile read is one
        // instruction, whatever else writes there.
        inside.then(|| unsafe { self.start.add(at).cast::<u64>().read_volatile() })
    }

    /// Its elements; a partial one at the end is omitted.
    pub fn as_slice<T: Element>(&self) -> &[T] {
        // SAFETY: the memory is page-aligned, initialised, and no copy uses it while this owns it.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes / size_of::<T>()) }
    }

    /// Its elements, to be changed.
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // With a lost context the driver has taken the memory back, or a kernel that cannot be stopped may use it.
        if self.bytes > 0 && self.context.enter().is_ok() {
            // SAFETY: it was allocated once, and no copy uses it.
            unsafe { (self.context.driver.free_host)(self.start.cast()) };
        }
    }
}

/// A running copy, and its host memory.
#[derive(Debug)]
pub struct Pending {
    done: Event,
    host: Option<Pinned>,
}

impl Pending {
    fn new(stream: &Stream, host: Pinned) -> Result<Pending, CudaError> {
        match stream.record() {
            Ok(done) => Ok(Pending { done, host: Some(host) }),
            Err(error) => {
                // The copy may run, without an event to wait for.
                if stream.synchronize().is_err() {
                    std::mem::forget(host);
                }
                Err(error)
            }
        }
    }

    /// Waits for the copy. Returns the host memory.
    pub fn wait(mut self) -> Result<Pinned, CudaError> {
        let waited = self.done.synchronize();
        let host = self.host.take();
        match (waited, host) {
            (Ok(()), Some(host)) => Ok(host),
            (Ok(()), None) => Err(CudaError::new("a copy was waited for twice", "wait once")),
            (Err(error), host) => {
                std::mem::forget(host);
                Err(error)
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.host.is_some() && self.done.synchronize().is_err() {
            std::mem::forget(self.host.take());
        }
    }
}
