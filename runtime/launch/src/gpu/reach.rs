//! The host memory that a launch reaches: the buffers that must be on the GPU, and the translation of their pointers.
//!
//! A buffer whose elements are pointers holds virtual addresses of a `Memory`. On the GPU they must be addresses of
//! the GPU, and after the launch virtual ones again. Guarantees that a value that is no address of a buffer stays
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};

use tk_interp::{Arg, BufferId, Buffers, Place};
use tk_tile::{ElemType, Type};

/// Bytes of a pointer in memory.
const POINTER: usize = 8;

/// A buffer that a launch reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Its address on the host.
    pub place: Place,
    /// Its elements are pointers.
    pub table: bool,
    /// The kernel may write to it.
    pub mutable: bool,
}

/// The buffers that arguments of these types reach, by themselves and through pointers in memory, in the order of their
/// ids. The error is the number of an argument whose buffer was freed.
pub(crate) fn reach<'a>(
    args: impl Iterator<Item = (&'a Type, &'a Arg)>,
    buffers: &Buffers,
) -> Result<Vec<Reached>, usize> {
    let mut search = Search { buffers, found: BTreeMap::new(), seen: BTreeSet::new() };
    for (i, (ty, arg)) in args.enumerate() {
        let id = match arg {
            Arg::Ptr { buffer, .. } | Arg::View { buffer, .. } => *buffer,
            Arg::Scalar(_) | Arg::Null => continue,
        };
        let (elem, mutable) = match ty {
            Type::Tile { elem: ElemType::Ptr { pointee, mutable }, .. } => (&**pointee, *mutable),
            Type::Tile { elem: elem @ ElemType::Scalar(_), .. } => (elem, false),
            Type::View { elem, mutable, .. } => (elem, *mutable),
        };
        search.visit(buffers.find(id).ok_or(i)?, elem, mutable);
    }
    Ok(search.found.into_values().collect())
}

struct Search<'b> {
    buffers: &'b Buffers,
    found: BTreeMap<BufferId, Reached>,
    seen: BTreeSet<(BufferId, ElemType, bool)>,
}

impl Search<'_> {
    /// Notes a buffer of such elements and what they point to. It ends because a pointee is a smaller type.
    fn visit(&mut self, place: Place, elem: &ElemType, mutable: bool) {
        if !self.seen.insert((place.id, elem.clone(), mutable)) {
            return;
        }
        let entry = self.found.entry(place.id).or_insert(Reached { place, table: false, mutable: false });
        entry.mutable |= mutable;
        if let ElemType::Ptr { pointee, mutable } = elem {
            entry.table = true;
            for address in words(&read(place)) {
                if let Some(target) = self.buffers.at(address) {
                    self.visit(target, pointee, *mutable);
                }
            }
        }
    }
}

/// A copy of a buffer.
pub(crate) fn read(place: Place) -> Vec<u8> {
    let mut bytes = vec![0; place.len];
    // SAFETY: the maker of the place holds the buffers, and `bytes` is new and as long.
    unsafe { std::ptr::copy_nonoverlapping(place.start, bytes.as_mut_ptr(), place.len) };
    bytes
}

/// Fills a buffer with as many of these bytes as it has.
pub(crate) fn write(place: Place, bytes: &[u8]) {
    // SAFETY: as in `read`; no more bytes are copied than both sides have.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.start, place.len.min(bytes.len())) };
}

/// The pointers in a table; bytes after the last whole one are none.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(POINTER).filter_map(|c| c.try_into().ok()).map(u64::from_le_bytes)
}

/// The places of ranges of addresses in another address space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Translation {
    /// Start, length, start on the other side; by start.
    ranges: Vec<(u64, u64, u64)>,
}

impl Translation {
    /// Of pairs of a start and a start on the other side, with their length.
    pub fn new(mut ranges: Vec<(u64, u64, u64)>) -> Translation {
        ranges.sort_unstable();
        Translation { ranges }
    }

    /// The way back.
    pub fn reversed(&self) -> Translation {
        Translation::new(self.ranges.iter().map(|(from, len, to)| (*to, *len, *from)).collect())
    }

    /// The address on the other side. The end of a range, where a pointer may be too, belongs to it unless another
    /// one begins there; what is in none stays.
    pub fn address(&self, address: u64) -> u64 {
        let after = self.ranges.partition_point(|(from, ..)| *from <= address);
        match after.checked_sub(1).and_then(|i| self.ranges.get(i)) {
            Some((from, len, to)) if address - from <= *len => to + (address - from),
            Some(_) | None => address,
        }
    }

    /// Translates the pointers of a table in place.
    pub fn table(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_exact_mut(POINTER) {
            let word = words(chunk).next();
            if let Some(word) = word {
                chunk.copy_from_slice(&self.address(word).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tk_interp::Memory;
    use tk_ops::DType;

    use super::*;

    fn pointer(pointee: ElemType, mutable: bool) -> ElemType {
        ElemType::Ptr { pointee: Box::new(pointee), mutable }
    }

    #[test]
    fn a_table_of_pointers_reaches_what_they_point_to() {
        let memory = Memory::new();
        let (a, b, unused) = (memory.alloc(vec![1; 16]), memory.alloc(vec![2; 8]), memory.alloc(vec![3; 4]));
        let at = |id, offset: u64| memory.address(id).unwrap() + offset;
        // Into the middle of one, to the end of the other, null, and an address of nothing.
        let stored = [at(a, 4), at(b, 8), 0, 7];
        let table = memory.alloc(stored.iter().flat_map(|w| w.to_le_bytes()).collect());
        let ty =
            Type::Tile { elem: pointer(pointer(ElemType::Scalar(DType::F32), true), false), shape: vec![] };
        let arg = Arg::Ptr { buffer: table, offset: 0 };
        let buffers = memory.buffers();
        let found = reach([(&ty, &arg)].into_iter(), &buffers).unwrap();
        let short: Vec<_> = found.iter().map(|r| (r.place.id, r.table, r.mutable)).collect();
        assert_eq!(short, [(a, false, true), (b, false, true), (table, true, false)]);
        assert!(found.iter().all(|r| r.place.id != unused));

        // On the device the first one follows the second without a gap: its start is not the other's end.
        let ranges = vec![(at(a, 0), 16, 0x1008), (at(b, 0), 8, 0x1000)];
        let there = Translation::new(ranges);
        let mut bytes = read(buffers.find(table).unwrap());
        there.table(&mut bytes);
        assert_eq!(words(&bytes).collect::<Vec<_>>(), [0x100c, 0x1008, 0, 7]);
        let back = there.reversed();
        assert_eq!(back.address(0x1000), at(b, 0));
        assert_eq!(back.address(0x1008), at(a, 0));
        assert_eq!(back.address(0x1018), at(a, 16));
        assert_eq!(back.address(0x1019), 0x1019);
    }

    #[test]
    fn a_buffer_that_was_freed_is_named_by_its_argument() {
        let memory = Memory::new();
        let (a, b) = (memory.alloc(vec![0; 4]), memory.alloc(vec![0; 4]));
        memory.free(b);
        let ty = Type::Tile { elem: pointer(ElemType::Scalar(DType::F32), false), shape: vec![] };
        let args = [a, b].map(|buffer| Arg::Ptr { buffer, offset: 0 });
        let found = reach(args.iter().map(|a| (&ty, a)), &memory.buffers());
        assert_eq!(found, Err(1));
    }
}
