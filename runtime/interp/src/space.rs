//! Resolves a pointer to bytes: [`Space`], the buffers that a launch can reach, and through which parameter.
//!
//! Every access of a program goes through [`Space::locate_run`] or [`Space::locate_hull`], which decide whether it is
//! inside a buffer; in checked mode its accesses there are recorded and compared with those of others, and a trace is told
//! of all.

use std::sync::{Arc, Mutex, MutexGuard};

use tk_ops::DType;
use tk_tile::{ElemType, Loc};

use crate::checked::Checker;
use crate::fault::Fault;
use crate::memory::{Allocation, BufferId, Memory};
use crate::trace::Trace;
use crate::value::{NOWHERE, Pointer};

/// The effect of an access on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub reads: bool,
    pub writes: bool,
    /// Together with other atomic accesses it is no race.
    pub atomic: bool,
}

impl Access {
    pub const READ: Access = Access { reads: true, writes: false, atomic: false };
    pub const WRITE: Access = Access { reads: false, writes: true, atomic: false };
}

/// Why an access is not done.
#[derive(Debug)]
pub(crate) enum Denied {
    /// The address is in no buffer.
    Outside(Outside),
    /// Checked mode has found something.
    Found(Box<Fault>),
}

impl From<Box<Fault>> for Denied {
    fn from(fault: Box<Fault>) -> Denied {
        Denied::Found(fault)
    }
}

/// The target of an access outside of all buffers.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    /// The requested element, counted from the start of the buffer; the address without a buffer.
    element: i128,
    /// A description of the buffer and its number of elements; `None` without a buffer.
    buffer: Option<(String, usize)>,
}

impl Denied {
    /// The fault to report. `what` was done to elements of type `elem`; `advice` says how to avoid it.
    #[cold]
    pub fn fault(self, what: &str, elem: &ElemType, advice: &str) -> Fault {
        let o = match self {
            Denied::Found(fault) => return *fault,
            Denied::Outside(o) => o,
        };
        Fault::run(match o.buffer {
            None if o.element == 0 => format!("{what} through a null pointer"),
            None => format!("{what} accesses the address {:#x}, which is in no buffer", o.element),
            Some((name, len)) => {
                let place = if o.element < 0 { "before the start" } else { "past the end" };
                format!(
                    "{what} accesses element {} of {name} of {len} `{elem}`, {place}; {advice}",
                    o.element
                )
            }
        })
    }
}

/// A buffer, and the parameter through which it is reached.
#[derive(Clone)]
pub(crate) struct Entry {
    pub allocation: Arc<Allocation>,
    /// Number and name of the parameter; none where an address was found in memory, and on the host.
    pub param: Option<(u32, Arc<str>)>,
}

impl Entry {
    /// The name for messages: ``the buffer `x` ``.
    pub fn name(&self) -> String {
        match &self.param {
            Some((_, name)) if !name.is_empty() => format!("the buffer `{name}`"),
            Some(_) | None => "a buffer".to_string(),
        }
    }
}

/// The buffers that a launch can reach.
#[derive(Clone)]
pub(crate) struct Space {
    /// First every buffer in the order of ids and addresses, then the buffers of parameters again.
    entries: Vec<Entry>,
    /// The number of them that are not of parameters.
    buffers: usize,
    atomics: Arc<Mutex<()>>,
    /// The state of checked mode; none if it is off.
    pub checker: Option<Arc<Checker>>,
    /// Who wants to know of accesses.
    pub trace: Option<Trace>,
    /// Whether there is one of them, so that each access asks once.
    is_observed: bool,
}

impl Space {
    /// These buffers, in the order of their ids.
    pub fn new(buffers: Vec<Arc<Allocation>>, atomics: Arc<Mutex<()>>) -> Space {
        let entries: Vec<Entry> =
            buffers.into_iter().map(|allocation| Entry { allocation, param: None }).collect();
        Space { buffers: entries.len(), entries, atomics, checker: None, trace: None, is_observed: false }
    }

    /// Tells these of accesses.
    pub fn observe(&mut self, checker: Option<Checker>, trace: Option<Trace>) {
        self.is_observed = checker.is_some() || trace.is_some();
        (self.checker, self.trace) = (checker.map(Arc::new), trace);
    }

    /// Returns true if somebody is told of accesses.
    pub fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// The accesses that follow are of this program and instruction.
    pub fn at(&self, program: [u32; 3], loc: Option<Loc>, volatile: bool) {
        self.checker.iter().for_each(|c| c.at(program, loc, volatile));
        self.trace.iter().for_each(|t| t.at(program, loc));
    }

    /// Keeps the atomics of all other programs on this memory out until the guard goes.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.atomics.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds a buffer that was allocated after the others.
    pub fn push(&mut self, memory: &Memory, id: BufferId) {
        if let Some(allocation) = memory.find(id) {
            self.entries.insert(self.buffers, Entry { allocation, param: None });
            self.buffers += 1;
        }
    }

    fn buffers(&self) -> &[Entry] {
        self.entries.get(..self.buffers).unwrap_or_default()
    }

    fn find(&self, id: BufferId) -> Option<usize> {
        self.buffers().binary_search_by_key(&id, |e| e.allocation.id).ok()
    }

    /// The pointer to the first byte of a buffer.
    pub fn pointer(&self, id: BufferId) -> Option<Pointer> {
        Some(Pointer { entry: u32::try_from(self.find(id)?).ok()?, disp: 0, offset: 0 })
    }

    /// The pointer to the first byte of a buffer, for the parameter with this number and name.
    pub fn parameter(&mut self, id: BufferId, number: u32, name: &str) -> Option<Pointer> {
        let allocation = Arc::clone(&self.entries.get(self.find(id)?)?.allocation);
        self.entries.push(Entry { allocation, param: Some((number, name.into())) });
        Some(Pointer { entry: u32::try_from(self.entries.len() - 1).ok()?, disp: 0, offset: 0 })
    }

    /// The entry that a pointer belongs to.
    pub fn entry(&self, p: &Pointer) -> Option<&Entry> {
        self.entries.get(p.entry as usize)
    }

    /// The buffer that a pointer belongs to.
    pub fn buffer(&self, p: &Pointer) -> Option<BufferId> {
        self.entry(p).map(|e| e.allocation.id)
    }

    /// The virtual address of a pointer to elements of `size` bytes.
    pub fn address(&self, p: &Pointer, size: usize) -> u64 {
        let base = self.entry(p).map_or(0, |e| e.allocation.base);
        base.wrapping_add_signed(p.disp).wrapping_add_signed(p.offset.wrapping_mul(size as i64))
    }

    /// The pointer with this virtual address; it belongs to the buffer that it points into, or to the next one before it.
    pub fn resolve(&self, address: u64) -> Pointer {
        let after = self.buffers().partition_point(|e| e.allocation.base <= address);
        // A pointer one past the end still belongs to its buffer; one beyond the gap belongs to none.
        let found = after.checked_sub(1).and_then(|i| Some((i, &self.buffers().get(i)?.allocation)));
        match found {
            Some((i, a)) if address - a.base <= a.len() as u64 => {
                Pointer { entry: i as u32, disp: (address - a.base) as i64, offset: 0 }
            }
            Some(_) | None => Pointer { entry: NOWHERE, disp: address as i64, offset: 0 },
        }
    }

    /// The place in host memory of `count` consecutive elements, from `first` after `p` on. `count` is at least 1.
    ///
    /// The result is valid for copies of these elements while `self` lives.
    pub fn locate_run(
        &self,
        p: &Pointer,
        size: usize,
        first: i64,
        count: usize,
        access: Access,
    ) -> Result<*mut u8, Denied> {
        let last = first.saturating_add_unsigned(count as u64 - 1);
        match self.locate(p, size, first, last) {
            Some((memory, start)) => {
                if self.is_observed {
                    self.tell(p, start, count, size, access)?;
                }
                Ok(memory)
            }
            None => {
                if let (Some(trace), Some(entry)) = (&self.trace, self.entry(p)) {
                    let elements = p.offset.saturating_add(first);
                    let start = elements.saturating_mul(size as i64).saturating_add(p.disp);
                    trace.touch(entry, start, count, size, access);
                }
                Err(Denied::Outside(self.outside(p, size, first, last, true)))
            }
        }
    }

    /// Tells observers of an access. It is no part of [`Space::locate_run`], so that this stays short for all others.
    #[inline(never)]
    fn tell(
        &self,
        p: &Pointer,
        start: usize,
        count: usize,
        size: usize,
        access: Access,
    ) -> Result<(), Denied> {
        let Some(entry) = self.entry(p) else { return Ok(()) };
        self.trace.iter().for_each(|t| t.touch(entry, start as i64, count, size, access));
        self.checker.iter().try_for_each(|c| c.touch(entry, start, count, size, access))?;
        Ok(())
    }

    /// The same for elements that are spread over `first..=last`; both of these are among them. Of what is touched between
    /// them observers are told by [`Space::touch`].
    pub fn locate_hull(&self, p: &Pointer, size: usize, first: i64, last: i64) -> Result<*mut u8, Denied> {
        let found = self.locate(p, size, first, last).map(|(memory, _)| memory);
        found.ok_or_else(|| Denied::Outside(self.outside(p, size, first, last, false)))
    }

    /// Tells observers of an access to elements that were located.
    pub fn touch(
        &self,
        p: &Pointer,
        size: usize,
        first: i64,
        count: usize,
        access: Access,
    ) -> Result<(), Denied> {
        self.locate_run(p, size, first, count, access).map(|_| ())
    }

    /// The place in host memory and in the buffer.
    fn locate(&self, p: &Pointer, size: usize, first: i64, last: i64) -> Option<(*mut u8, usize)> {
        let a = &self.entry(p)?.allocation;
        let byte = |i: i64| p.byte(i, size);
        let (start, end) = (byte(first)?, byte(last)?.checked_add(size as i64)?);
        if start < 0 || end < start || end as u64 > a.len() as u64 {
            return None;
        }
        // SAFETY: `start` is not after the end of the allocation.
        Some((unsafe { a.start().add(start as usize) }, start as usize))
    }

    #[cold]
    fn outside(&self, p: &Pointer, size: usize, first: i64, last: i64, dense: bool) -> Outside {
        let size = size.max(1);
        let Some(entry) = self.entry(p) else {
            return Outside { element: i128::from(self.address(p, size)), buffer: None };
        };
        let start = i128::from(p.disp).div_euclid(size as i128) + i128::from(p.offset);
        let (first, last) = (start + i128::from(first), start + i128::from(last));
        let len = entry.allocation.len() / size;
        let first_inside = first >= 0 && first < len as i128;
        let element = match (first_inside, dense) {
            (false, _) => first,
            (true, true) => len as i128,
            (true, false) => last,
        };
        Outside { element, buffer: Some((entry.name(), len)) }
    }
}

/// Bytes of an element in memory; pointers are 64-bit addresses.
pub(crate) fn size_of(dtype: Option<DType>) -> usize {
    dtype.map_or(8, DType::bytes)
}
