//! Checks whether something fits in memory, before it is allocated.
//!
//! Without it a large array would be refused late, or not at all: the system hands out memory that it does not have, and
//! ends the program when it is used. Guarantees an answer without allocating, and a sentence with both numbers.

use sysinfo::{MemoryRefreshKind, System};
use tk_sema::contract::ScratchPlan;

use crate::session::element_size;

/// Fails when more bytes are needed than there are; `None` stands for more than can be counted. The error continues a
/// sentence that says what needs them.
pub fn check(bytes: Option<usize>) -> Result<(), String> {
    let there = available();
    let fits = bytes.is_some_and(|n| there.is_none_or(|a| n as u64 <= a) && can_reserve(n));
    if fits {
        return Ok(());
    }
    let needed = bytes.map_or(format!("more than {} bytes", isize::MAX), |n| amount(n as u64));
    Err(match there {
        Some(there) => format!("needs {needed} of memory, but {} are available", amount(there)),
        None => format!("needs {needed} of memory, which are not available"),
    })
}

/// The bytes of an array, if they can be counted.
pub fn bytes(shape: &[usize], element: usize) -> Option<usize> {
    // An extent of 0 makes an array empty, however large the others are.
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(element, |n, d| n.checked_mul(*d))?;
    isize::try_from(count).ok().map(|_| count)
}

/// The bytes of a workspace, if they can be counted.
pub fn workspace_bytes(workspace: &ScratchPlan) -> Option<usize> {
    usize::try_from(workspace.count).ok()?.checked_mul(element_size(&workspace.elem))
}

/// The memory that can be used without swapping; `None` where the system does not say.
pub fn available() -> Option<u64> {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    if system.total_memory() == 0 {
        return None;
    }
    // A container may have less than its machine. What it uses as a cache of files can be given up, so only the
    // memory of its processes counts as used.
    let group = system.cgroup_limits().map(|g| g.total_memory.saturating_sub(g.rss));
    Some(group.map_or(system.available_memory(), |g| g.min(system.available_memory())))
}

/// Returns true if the process can reserve that much address space.
fn can_reserve(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

/// `12000000000 bytes (11.2 GiB)`
fn amount(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")];
    match units.iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{bytes} bytes ({:.1} {unit})", bytes as f64 / *size as f64),
        None => format!("{bytes} bytes"),
    }
}
