//! Device memory: buffers of bytes that programs and the host share.
//!
//! Guarantees that no access leaves the allocation that it was checked against. Programs may race on the bytes. No
//! reference to them is ever formed: they are in `UnsafeCell<u8>` and are moved by raw copies to and from memory that
//! a single program owns, any bit pattern is a valid `u8`, and nothing on the host is decided by reading one of them
//! twice. A race therefore gives unspecified bytes, as on every device, and nothing else.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock};

use crate::space::Space;

/// A buffer of a [`Memory`]; never reused by that memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u32);

/// The first virtual address; addresses below, including null, are never valid.
const FIRST_ADDRESS: u64 = 1 << 32;
/// Bases are multiples of this and at least this far after the end of the buffer before, so that an address a little
/// outside of a buffer is in no other one.
const GAP: u64 = 1 << 12;

/// The contents of uninitialized memory: NaN in every float type and -1 in every integer, which shows.
const UNWRITTEN: u8 = 0xff;

/// Where the bytes of a buffer are.
enum Bytes {
    Own(Box<[UnsafeCell<u8>]>),
    /// Memory of somebody else: its start and length.
    Foreign(*mut u8, usize),
}

/// The bytes of one buffer.
pub(crate) struct Allocation {
    pub id: BufferId,
    pub base: u64,
    bytes: Bytes,
    /// The bytes that were written, unless all were from the start.
    written: Option<Mutex<Written>>,
}

// SAFETY: see the head of this file; the bytes are only touched by raw copies, for which torn values are acceptable.
unsafe impl Sync for Allocation {}
// SAFETY: as above; no thread owns the bytes.
unsafe impl Send for Allocation {}

impl Allocation {
    fn new(id: BufferId, base: u64, bytes: Vec<u8>, written: Option<Written>) -> Allocation {
        let raw: *mut [u8] = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, and the pointer comes from `Box::into_raw`.
        let bytes = unsafe { Box::from_raw(raw as *mut [UnsafeCell<u8>]) };
        Allocation { id, base, bytes: Bytes::Own(bytes), written: written.map(Mutex::new) }
    }

    /// Its start in host memory.
    pub fn start(&self) -> *mut u8 {
        match &self.bytes {
            Bytes::Own(bytes) => UnsafeCell::raw_get(bytes.as_ptr()),
            Bytes::Foreign(start, _) => *start,
        }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Own(bytes) => bytes.len(),
            Bytes::Foreign(_, len) => *len,
        }
    }

    /// Notes that these bytes hold something now.
    pub fn wrote(&self, bytes: Range<usize>) {
        if let Some(written) = &self.written {
            written.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).set(bytes);
        }
    }

    /// The first uninitialized one of these bytes.
    pub fn unwritten(&self, bytes: Range<usize>) -> Option<usize> {
        let written = self.written.as_ref()?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        written.missing(bytes)
    }

    fn copy(&self) -> Vec<u8> {
        let mut out = vec![0; self.len()];
        // SAFETY: both sides have `len` bytes; `out` is new.
        unsafe { std::ptr::copy_nonoverlapping(self.start(), out.as_mut_ptr(), out.len()) };
        out
    }
}

/// A bit per byte.
struct Written(Vec<u64>);

impl Written {
    /// The words that a range touches, with the bits of it in each.
    fn words(bytes: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let mut at = bytes.start;
        std::iter::from_fn(move || {
            let n = (64 - at % 64).min(bytes.end.checked_sub(at).filter(|left| *left > 0)?);
            let word = (at / 64, (u64::MAX >> (64 - n)) << (at % 64));
            at += n;
            Some(word)
        })
    }

    fn set(&mut self, bytes: Range<usize>) {
        for (word, bits) in Written::words(bytes) {
            self.0.get_mut(word).into_iter().for_each(|w| *w |= bits);
        }
    }

    fn missing(&self, bytes: Range<usize>) -> Option<usize> {
        Written::words(bytes).find_map(|(word, bits)| {
            let missing = bits & !self.0.get(word)?;
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
    }
}

/// A vector of that many equal entries; `None` if there is not that much memory.
fn filled<T: Clone>(len: usize, entry: T) -> Option<Vec<T>> {
    let mut all = vec![];
    all.try_reserve_exact(len).ok()?;
    all.resize(len, entry);
    Some(all)
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
    /// Held during atomics.
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
        self.add(bytes, None)
    }

    /// A new uninitialized buffer of that many bytes: reading one of them is reported in checked mode.
    pub fn alloc_unwritten(&self, len: usize) -> BufferId {
        self.add(vec![UNWRITTEN; len], Some(Written(vec![0; len.div_ceil(64)])))
    }

    /// A new buffer of that many zeros, or an uninitialized one; `None` if there is not that much memory.
    pub fn try_alloc(&self, len: usize, zeroed: bool) -> Option<BufferId> {
        if zeroed {
            return Some(self.add(filled(len, 0)?, None));
        }
        let written = Written(filled(len.div_ceil(64), 0)?);
        Some(self.add(filled(len, UNWRITTEN)?, Some(written)))
    }

    /// A buffer of memory that belongs to somebody else, which is not copied.
    ///
    /// # Safety
    /// Until the buffer is freed and launches that use it have ended, the bytes that programs read can be read, and those that
    /// they write be written; the others of these need not be there.
    pub unsafe fn foreign(&self, start: *mut u8, len: usize) -> BufferId {
        self.place(len, |id, base| Allocation { id, base, bytes: Bytes::Foreign(start, len), written: None })
    }

    fn add(&self, bytes: Vec<u8>, written: Option<Written>) -> BufferId {
        self.place(bytes.len(), |id, base| Allocation::new(id, base, bytes, written))
    }

    fn place(&self, len: usize, make: impl FnOnce(BufferId, u64) -> Allocation) -> BufferId {
        self.write_table(|t| {
            let id = BufferId(t.next_id);
            let base = t.next_base.max(FIRST_ADDRESS);
            t.next_id = t.next_id.wrapping_add(1);
            t.next_base = (base + len as u64).next_multiple_of(GAP) + GAP;
            t.live.insert(id, Arc::new(make(id, base)));
            id
        })
    }

    pub(crate) fn find(&self, id: BufferId) -> Option<Arc<Allocation>> {
        self.read_table(|t| t.live.get(&id).cloned())
    }

    /// A copy of the contents; `None` if it was freed.
    pub fn read(&self, id: BufferId) -> Option<Vec<u8>> {
        self.find(id).map(|a| a.copy())
    }

    /// The first uninitialized byte; only known of what ran in checked mode.
    pub fn unwritten(&self, id: BufferId) -> Option<usize> {
        let buffer = self.find(id)?;
        buffer.unwritten(0..buffer.len())
    }

    /// Bytes of the buffer; 0 if it was freed.
    pub fn len(&self, id: BufferId) -> usize {
        self.find(id).map_or(0, |a| a.len())
    }

    /// The virtual address of its first byte: what a pointer to it is when it is stored in memory.
    pub fn address(&self, id: BufferId) -> Option<u64> {
        self.find(id).map(|a| a.base)
    }

    /// Forgets the buffer.
    pub fn free(&self, id: BufferId) {
        self.write_table(|t| t.live.remove(&id));
    }

    /// The buffers that exist now, for a device that is not the interpreter.
    pub fn buffers(&self) -> Buffers {
        Buffers(self.read_table(|t| t.live.values().cloned().collect()))
    }

    /// The buffers that exist now.
    pub(crate) fn space(&self) -> Space {
        Space::new(self.read_table(|t| t.live.values().cloned().collect()), Arc::clone(&self.atomics))
    }
}

/// The buffers of a [`Memory`] at one moment, in the order of their addresses. They stay while this is held.
#[derive(Clone)]
pub struct Buffers(Vec<Arc<Allocation>>);

/// The position of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub id: BufferId,
    /// The virtual address of its first byte.
    pub address: u64,
    /// Bytes.
    pub len: usize,
    /// Its first byte in host memory: good for raw copies of `len` bytes while the [`Buffers`] it came from are held.
    /// Others may read and write there at the same time, so no reference to these bytes may be formed.
    pub start: *mut u8,
}

impl Buffers {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Place> {
        self.0.iter().map(|a| place(a))
    }

    /// The buffer with this id.
    pub fn find(&self, id: BufferId) -> Option<Place> {
        self.0.binary_search_by_key(&id, |a| a.id).ok().and_then(|i| self.0.get(i)).map(|a| place(a))
    }

    /// The buffer that an address points into, or just past it.
    pub fn at(&self, address: u64) -> Option<Place> {
        let after = self.0.partition_point(|a| a.base <= address);
        let found = after.checked_sub(1).and_then(|i| self.0.get(i));
        found.filter(|a| address - a.base <= a.len() as u64).map(|a| place(a))
    }

    /// The place in host memory of `bytes` bytes after a virtual address; `None` unless all are in one buffer.
    pub fn resolve(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let place = self.at(address)?;
        let offset = usize::try_from(address - place.address).ok()?;
        // SAFETY: the offset is not after the end of the allocation.
        (place.len - offset >= bytes).then(|| unsafe { place.start.add(offset) })
    }

    /// Notes that a device has written to a buffer: nothing in it counts as unwritten any more.
    pub fn wrote(&self, id: BufferId) {
        let found = self.0.binary_search_by_key(&id, |a| a.id).ok().and_then(|i| self.0.get(i));
        found.into_iter().for_each(|a| a.wrote(0..a.len()));
    }
}

fn place(a: &Allocation) -> Place {
    Place { id: a.id, address: a.base, len: a.len(), start: a.start() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_others_is_used_where_it_is() {
        let memory = Memory::new();
        let mut own = [1u8, 2, 3, 4];
        // SAFETY: the array lives until the buffer is freed.
        let id = unsafe { memory.foreign(own.as_mut_ptr(), own.len()) };
        let place = memory.buffers().find(id).unwrap();
        assert_eq!((place.len, place.start), (4, own.as_mut_ptr()));
        assert_eq!(memory.read(id), Some(vec![1, 2, 3, 4]));
        memory.free(id);
        assert_eq!(memory.read(id), None);
        assert_eq!(own, [1, 2, 3, 4]);
    }

    #[test]
    fn an_address_belongs_to_the_buffer_that_it_points_into() {
        let memory = Memory::new();
        let (a, freed, b) = (memory.alloc(vec![1; 8]), memory.alloc(vec![2; 8]), memory.alloc_unwritten(4));
        memory.free(freed);
        let buffers = memory.buffers();
        assert_eq!(buffers.iter().map(|p| (p.id, p.len)).collect::<Vec<_>>(), [(a, 8), (b, 4)]);
        let (start, first) = (memory.address(a).unwrap(), buffers.find(a).unwrap().start);
        assert_eq!(buffers.at(start + 8).map(|p| p.id), Some(a));
        assert_eq!(buffers.at(start + 9), None);
        assert_eq!(buffers.at(start - 1), None);
        assert_eq!(buffers.find(freed), None);
        assert_eq!(buffers.resolve(start + 4, 4), Some(first.wrapping_add(4)));
        assert_eq!(buffers.resolve(start + 4, 5), None);
        assert_eq!(buffers.resolve(0, 1), None);
        assert_eq!(memory.unwritten(b), Some(0));
        buffers.wrote(b);
        assert_eq!(memory.unwritten(b), None);
    }
}
