//! Owns device memory: buffers of bytes that programs and the host share.
//!
//! Every access of a program goes through [`Space::locate`], the one place that decides whether an address is inside
//! a buffer; a checker of accesses belongs there.
//!
//! Guarantees: no access leaves the allocation that it was checked against. Programs may race on the bytes. No
//! reference to them is ever formed: they lie in `UnsafeCell<u8>` and are moved by raw copies to and from memory
//! that a single program owns, any bit pattern is a valid `u8`, and nothing on the host is decided by reading one of
//! them twice. A race therefore gives unspecified bytes, as on every device, and nothing else.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use tk_ops::DType;

use crate::value::{NOWHERE, Pointer};

/// A buffer of a [`Memory`]; never reused by that memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u32);

/// The first virtual address; what lies below is never valid, null included.
const FIRST_ADDRESS: u64 = 1 << 32;
/// Bases are multiples of this and at least this far behind the end of the buffer before, so that an address a little
/// outside of a buffer is in no other one.
const GAP: u64 = 1 << 12;

/// The bytes of one buffer.
struct Allocation {
    id: BufferId,
    base: u64,
    bytes: Box<[UnsafeCell<u8>]>,
}

// SAFETY: see the head of this file; the bytes are only touched by raw copies, for which torn values are acceptable.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(id: BufferId, base: u64, bytes: Vec<u8>) -> Allocation {
        let raw: *mut [u8] = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, and the pointer comes from `Box::into_raw`.
        Allocation { id, base, bytes: unsafe { Box::from_raw(raw as *mut [UnsafeCell<u8>]) } }
    }

    fn start(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.bytes.as_ptr())
    }

    fn copy(&self) -> Vec<u8> {
        let mut out = vec![0; self.bytes.len()];
        // SAFETY: both sides have `len` bytes; `out` is new.
        unsafe { std::ptr::copy_nonoverlapping(self.start(), out.as_mut_ptr(), out.len()) };
        out
    }
}

#[derive(Default)]
struct Table {
    live: BTreeMap<BufferId, Arc<Allocation>>,
    next_id: u32,
    next_base: u64,
}

/// Device memory: the buffers that launches work on. A launch keeps the buffers that existed when it began.
#[derive(Default)]
pub struct Memory {
    table: RwLock<Table>,
    /// Held by whoever does atomics.
    atomics: Arc<Mutex<()>>,
}

impl Memory {
    /// Without buffers.
    pub fn new() -> Self {
        Memory::default()
    }

    fn read_table<R>(&self, f: impl FnOnce(&Table) -> R) -> R {
        f(&self.table.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn write_table<R>(&self, f: impl FnOnce(&mut Table) -> R) -> R {
        f(&mut self.table.write().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// A new buffer with these contents.
    pub fn alloc(&self, bytes: Vec<u8>) -> BufferId {
        self.write_table(|t| {
            let id = BufferId(t.next_id);
            let base = t.next_base.max(FIRST_ADDRESS);
            t.next_id = t.next_id.wrapping_add(1);
            t.next_base = (base + bytes.len() as u64).next_multiple_of(GAP) + GAP;
            t.live.insert(id, Arc::new(Allocation::new(id, base, bytes)));
            id
        })
    }

    fn find(&self, id: BufferId) -> Option<Arc<Allocation>> {
        self.read_table(|t| t.live.get(&id).cloned())
    }

    /// A copy of the contents; `None` if it was freed.
    pub fn read(&self, id: BufferId) -> Option<Vec<u8>> {
        self.find(id).map(|a| a.copy())
    }

    /// Bytes of the buffer; 0 if it was freed.
    pub fn len(&self, id: BufferId) -> usize {
        self.find(id).map_or(0, |a| a.bytes.len())
    }

    /// The virtual address of its first byte: what a pointer to it is when it is stored in memory.
    pub fn address(&self, id: BufferId) -> Option<u64> {
        self.find(id).map(|a| a.base)
    }

    /// Forgets the buffer.
    pub fn free(&self, id: BufferId) {
        self.write_table(|t| t.live.remove(&id));
    }

    /// The buffers that exist now.
    pub(crate) fn space(&self) -> Space {
        let entries = self.read_table(|t| t.live.values().cloned().collect());
        Space { entries, atomics: Arc::clone(&self.atomics) }
    }
}

/// Why an address is in no buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    /// The element that was asked for, counted from the start of the buffer; the address, if there is no buffer.
    pub element: i128,
    /// Elements that the buffer has; `None` if there is no buffer.
    pub len: Option<usize>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The buffers that a launch can reach, in order of their ids and addresses.
#[derive(Clone)]
pub(crate) struct Space {
    entries: Vec<Arc<Allocation>>,
    atomics: Arc<Mutex<()>>,
}

impl Space {
    /// Keeps the atomics of all other programs on this memory out until the guard goes.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.atomics.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a buffer that was allocated after the others.
    pub fn push(&mut self, memory: &Memory, id: BufferId) {
        self.entries.extend(memory.find(id));
    }

    /// The pointer to the first byte of a buffer.
    pub fn pointer(&self, id: BufferId) -> Option<Pointer> {
        let entry = self.entries.binary_search_by_key(&id, |a| a.id).ok()?;
        Some(Pointer { entry: u32::try_from(entry).ok()?, disp: 0, offset: 0 })
    }

    /// The buffer that a pointer belongs to.
    pub fn buffer(&self, p: &Pointer) -> Option<BufferId> {
        self.entries.get(p.entry as usize).map(|a| a.id)
    }

    /// The virtual address of a pointer to elements of `size` bytes.
    pub fn address(&self, p: &Pointer, size: usize) -> u64 {
        let base = self.entries.get(p.entry as usize).map_or(0, |a| a.base);
        base.wrapping_add_signed(p.disp).wrapping_add_signed(p.offset.wrapping_mul(size as i64))
    }

    /// The pointer with this virtual address; it belongs to the buffer that it points into, or to the next one before it.
    pub fn resolve(&self, address: u64) -> Pointer {
        let after = self.entries.partition_point(|a| a.base <= address);
        // A pointer one past the end still belongs to its buffer; one beyond the gap belongs to none.
        let found = after.checked_sub(1).and_then(|i| Some((i, self.entries.get(i)?)));
        match found {
            Some((i, a)) if address - a.base <= a.bytes.len() as u64 => {
                Pointer { entry: i as u32, disp: (address - a.base) as i64, offset: 0 }
            }
            Some(_) | None => Pointer { entry: NOWHERE, disp: address as i64, offset: 0 },
        }
    }

    /// Where in host memory `count` consecutive elements lie, from `first` behind `p` on. `count` is at least 1.
    ///
    /// The result is valid for copies of these elements while `self` lives.
    pub fn locate_run(
        &self,
        p: &Pointer,
        size: usize,
        first: i64,
        count: usize,
        access: Access,
    ) -> Result<*mut u8, Outside> {
        let last = first.saturating_add_unsigned(count as u64 - 1);
        self.locate(p, size, first, last, access).ok_or_else(|| self.outside(p, size, first, last, true))
    }

    /// The same for elements that are spread over `first..=last`; both of these are among them.
    pub fn locate_hull(
        &self,
        p: &Pointer,
        size: usize,
        first: i64,
        last: i64,
        access: Access,
    ) -> Result<*mut u8, Outside> {
        self.locate(p, size, first, last, access).ok_or_else(|| self.outside(p, size, first, last, false))
    }

    fn locate(&self, p: &Pointer, size: usize, first: i64, last: i64, _access: Access) -> Option<*mut u8> {
        let a = self.entries.get(p.entry as usize)?;
        let byte = |i: i64| p.offset.checked_add(i)?.checked_mul(size as i64)?.checked_add(p.disp);
        let (start, end) = (byte(first)?, byte(last)?.checked_add(size as i64)?);
        if start < 0 || end < start || end as u64 > a.bytes.len() as u64 {
            return None;
        }
        // SAFETY: `start` is not behind the end of the allocation.
        Some(unsafe { a.start().add(start as usize) })
    }

    #[cold]
    fn outside(&self, p: &Pointer, size: usize, first: i64, last: i64, dense: bool) -> Outside {
        let size = size.max(1);
        let Some(a) = self.entries.get(p.entry as usize) else {
            return Outside { element: i128::from(self.address(p, size)), len: None };
        };
        let start = i128::from(p.disp).div_euclid(size as i128) + i128::from(p.offset);
        let (first, last, len) = (start + i128::from(first), start + i128::from(last), a.bytes.len() / size);
        let first_inside = first >= 0 && first < len as i128;
        let element = match (first_inside, dense) {
            (false, _) => first,
            (true, true) => len as i128,
            (true, false) => last,
        };
        Outside { element, len: Some(len) }
    }
}

/// Bytes of an element in memory; pointers are 64-bit addresses.
pub(crate) fn size_of(dtype: Option<DType>) -> usize {
    dtype.map_or(8, DType::bytes)
}
