//! The report of a store whose lanes write different values to one element: which one wins is unspecified.

use tk_ops::buf::Buf;

use super::LANES;
use crate::fault::Fault;
use crate::space::{Entry, Space};
use crate::value::Pointer;

/// Reports the first place to which two lanes write values of different bits. `lanes` are pointers to elements of
/// `size` bytes and the elements of `values` that go there.
pub(crate) fn differ(
    space: &Space,
    size: usize,
    lanes: impl Iterator<Item = (Pointer, usize)>,
    values: &Buf,
) -> Result<(), Box<Fault>> {
    let mut places: Vec<(u64, usize, Pointer)> =
        lanes.map(|(p, lane)| (space.address(&p, size), lane, p)).collect();
    places.sort_unstable_by_key(|(address, lane, _)| (*address, *lane));
    let bits = |lane: usize| values.get(lane).bits();
    let found = places.windows(2).find_map(|pair| match pair {
        [(a, i, _), (b, j, p)] if a == b && bits(*i) != bits(*j) => Some((*i, *j, *p)),
        _other => None,
    });
    let Some((i, j, p)) = found else { return Ok(()) };
    let base = space.entry(&p).map_or(0, |e| e.allocation.base);
    let element = space.address(&p, size).saturating_sub(base) / size.max(1) as u64;
    let name = space.entry(&p).map_or_else(|| "a buffer".to_string(), Entry::name);
    let message = format!(
        "this store writes {} and {} to element {element} of {name}, and which one remains is unspecified",
        values.get(i),
        values.get(j),
    );
    Err(Box::new(Fault::new(LANES, message)))
}
