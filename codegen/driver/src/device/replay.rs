//! A launch on the simulated target that gave its results in an earlier run, of the same kernel on the same memory: its
//! effect on memory, without the launch ([`Unchanged`]).
//!
//! Launches that fail or print are not kept, so each result is bytes of buffers alone.

use tk_interp::{Buffers, Place};
use tk_runtime::device::LaunchOptions;

use crate::compile::cache::Key;
use crate::compile::unchanged::Unchanged;

/// The most bytes of memory that a launch is compared by.
const MOST: usize = 64 << 20;

/// A launch, before it has run.
pub(crate) struct Replay {
    results: &'static Unchanged,
    key: Key,
    /// The contents of each buffer.
    before: Vec<Vec<u8>>,
}

/// The contents of a buffer.
fn contents(place: &Place) -> &[u8] {
    // SAFETY: a buffer lives as long as `Buffers`, and nothing writes to it before or after a launch.
    unsafe { std::slice::from_raw_parts(place.start, place.len) }
}

impl Replay {
    /// The launch of the kernel with this key ([`Unchanged::key`]) with these words as arguments, in an order of lanes that follows from `seed`; `None` if results
    /// are not kept.
    pub(crate) fn new(
        kernel: impl FnOnce() -> Key,
        words: &[u64],
        grid: [u32; 3],
        options: &LaunchOptions,
        seed: u64,
        buffers: &Buffers,
    ) -> Option<Replay> {
        let results = Unchanged::of_process()?;
        let places: Vec<Place> = buffers.iter().collect();
        if places.iter().map(|p| p.len).sum::<usize>() > MOST {
            return None;
        }
        let before: Vec<Vec<u8>> = places.iter().map(|p| contents(p).to_vec()).collect();
        let numbers = format!("{words:?} {grid:?} {} {seed}", options.cooperative);
        let addresses: Vec<u8> = places.iter().flat_map(|p| p.address.to_le_bytes()).collect();
        let kernel = kernel();
        let launch = [b"launch".as_slice(), kernel.bytes(), numbers.as_bytes(), &addresses];
        let parts: Vec<&[u8]> = launch.into_iter().chain(before.iter().map(Vec::as_slice)).collect();
        Some(Replay { results, key: Key::of(&parts), before })
    }

    /// Writes what the launch wrote, if that is known.
    pub(crate) fn known(&self, buffers: &Buffers) -> bool {
        let Some(result) = self.results.get(&self.key) else { return false };
        let mut rest = result.as_slice();
        for place in buffers.iter() {
            let Some((changed, after)) = rest.split_first() else { return false };
            rest = after;
            if *changed == 1 {
                let Some((bytes, after)) = rest.split_at_checked(place.len) else { return false };
                // SAFETY: as in `contents`.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.start, place.len) };
                rest = after;
            }
        }
        rest.is_empty()
    }

    /// Keeps what the launch wrote.
    pub(crate) fn keep(&self, buffers: &Buffers) {
        let mut result = vec![];
        for (place, before) in buffers.iter().zip(&self.before) {
            let bytes = contents(&place);
            let has_changed = bytes != before;
            result.push(u8::from(has_changed));
            result.extend_from_slice(if has_changed { bytes } else { &[] });
        }
        self.results.put(&self.key, &result);
    }
}
