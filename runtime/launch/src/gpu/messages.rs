//! The control memory of a launch and the messages of a kernel in it: [`Messages`], read as [`KernelMessages`].
//!
//! Records are in host memory that the GPU writes itself, so they can be read while a kernel runs that does not end, and
//! after one has taken its context with it. The form is that of [`tk_tile::message`].

use tk_interp::Fault;
use tk_tile::message::{Message, control, record};

use super::buffer::{Buffer, Pinned};
use super::device::Device;
use super::error::CudaError;
use super::stream::Stream;
use crate::records::{self, Records};

/// Bytes for what a launch prints: the 10 000 lines of which a launch shows no more, if none has more than 24 numbers. It
/// is memory that the system cannot move, so it is not made as large as the longest lines could need.
const PRINTS: usize = 4 << 20;
/// Bytes for asserts that fail: those of some thousand threads. One is reported, so more would be of no use.
const ASSERTS: usize = 64 << 10;
/// Bytes of a word.
const WORD: usize = 8;

/// Control memory, and room for records if the kernel says something.
#[derive(Debug)]
pub(crate) struct Messages {
    control: Buffer,
    records: Option<Pinned>,
}

/// The messages of a launch.
#[derive(Debug, Default)]
pub(crate) struct KernelMessages {
    /// The printed records.
    pub records: Records,
    /// Lines for which there was no room.
    pub lost: usize,
    /// Of the asserts that failed the first.
    failed: Option<Failed>,
}

/// An assert that failed. The first one is that of the first program, which comes first in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Failed {
    /// The ids of the program, z first.
    program: [u32; 3],
    line: u32,
    message: usize,
    element: u64,
}

impl KernelMessages {
    /// The fault of the first assert that failed.
    pub fn fault(&self, messages: &[Message]) -> Option<Fault> {
        let Failed { program: [z, y, x], message, element, .. } = self.failed?;
        let element = usize::try_from(element).unwrap_or(usize::MAX);
        Some(records::failed(messages, message, element, [x, y, z]))
    }
}

/// A record.
struct Record {
    message: usize,
    line: u32,
    leads: bool,
    program: [u32; 3],
    parts: Vec<records::Part>,
    bytes: usize,
}

/// The low and the high half of a word.
fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The record at a place; `None` if none was written there.
fn record(memory: &Pinned, at: usize, end: usize) -> Option<Record> {
    let word = |n: usize| memory.word(at + n * WORD).filter(|_| at + (n + 1) * WORD <= end);
    let (number, line) = halves(word(0)?);
    let message = usize::try_from(number.checked_sub(1)?).ok()?;
    let (x, y) = halves(word(1)?);
    let (z, count) = halves(word(2)?);
    let (leads, count) = (count & record::LEADS != 0, count & !record::LEADS);
    let (head, part) = (record::HEAD as usize, record::PART as usize);
    let mut parts = vec![];
    for n in 0..count as usize {
        let first = (head + n * part) / WORD;
        let (value, position) = halves(word(first)?);
        parts.push((value.into(), position.into(), word(first + 1)?));
    }
    Some(Record { message, line, leads, program: [x, y, z], parts, bytes: head + count as usize * part })
}

impl Messages {
    /// For launches on a device, one after the other; `says` is whether the kernel prints or asserts.
    pub fn new(device: &Device, says: bool) -> Result<Messages, CudaError> {
        let records = if says { Some(device.pinned(PRINTS + ASSERTS)?) } else { None };
        Ok(Messages { control: device.alloc(control::BYTES)?, records })
    }

    /// Returns true if it can be used for a launch of such a kernel: its context is not lost, and it has room for
    /// records.
    pub fn serves(&self, says: bool) -> bool {
        (self.records.is_some() || !says) && self.control.is_usable()
    }

    /// The address that a kernel gets.
    pub fn address(&self) -> u64 {
        self.control.address()
    }

    /// Begins a launch: no messages yet, and no program has reached a barrier.
    pub fn begin(&self, stream: &Stream) -> Result<(), CudaError> {
        let mut bytes = [0u8; control::BYTES];
        if let Some(records) = &self.records {
            let prints = records.device_address()?;
            let fields = [
                (control::PRINTS, prints),
                (control::PRINTS_ROOM, PRINTS as u64),
                (control::ASSERTS, prints + PRINTS as u64),
                (control::ASSERTS_ROOM, ASSERTS as u64),
            ];
            for (offset, value) in fields {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let place = bytes.get_mut(start..).and_then(|b| b.first_chunk_mut::<WORD>());
                place.into_iter().for_each(|p| *p = value.to_le_bytes());
            }
        }
        self.control.copy_from(stream, &bytes)
    }

    /// The messages of a launch. `done` is its stream if it has come to its end; otherwise records may be missing.
    pub fn end(&mut self, done: Option<&Stream>) -> Result<KernelMessages, CudaError> {
        let mut received = KernelMessages::default();
        let Some(memory) = &mut self.records else { return Ok(received) };
        let (mut at, mut used) = (0, [(0, 0), (PRINTS, PRINTS)]);
        while let Some(r) = record(memory, at, PRINTS) {
            at += r.bytes;
            received.records.add(r.program, (r.line, r.leads), r.message, r.parts);
        }
        used[0].1 = at;
        at = PRINTS;
        while let Some(r) = record(memory, at, PRINTS + ASSERTS) {
            at += r.bytes;
            let [x, y, z] = r.program;
            let element = r.parts.first().map_or(0, |(_, position, _)| *position);
            let failed = Failed { program: [z, y, x], line: r.line, message: r.message, element };
            received.failed = Some(received.failed.map_or(failed, |f| f.min(failed)));
        }
        used[1].1 = at;
        let Some(stream) = done else { return Ok(received) };
        let mut words = [0u64; control::BYTES / WORD];
        self.control.copy_to(stream, &mut words)?;
        let lost = usize::try_from(control::LOST).ok().and_then(|at| words.get(at / WORD));
        received.lost = lost.map_or(0, |n| usize::try_from(*n).unwrap_or(usize::MAX));
        for (from, to) in used {
            let bytes = memory.as_mut_slice::<u8>().get_mut(from..to);
            bytes.into_iter().for_each(|b| b.fill(0));
        }
        Ok(received)
    }
}
