//! Checked mode: the records of a launch about its accesses, to report faults that a device does not detect.
//!
//! - [`memory`]: reads of uninitialized memory, races between programs, aliasing parameters;
//! - [`lanes`]: one store that writes different values to one place;
//! - [`arithmetic`]: divisions by zero, overflow in the offset of a pointer;
//! - [`promises`]: `assume`, `multiple_of`, `max_contiguous`, indices outside.
//!
//! Requires that one thread runs all programs of a launch, so that every run gives the same reports.

pub(crate) mod arithmetic;
mod clock;
pub(crate) mod lanes;
mod memory;
pub(crate) mod offsets;
pub(crate) mod promises;
mod shadow;

pub(crate) use memory::{Checker, Ordering};

/// A read of uninitialized memory.
pub(crate) const UNWRITTEN: &str = "E0709";
/// Two programs use one place, at least one of them writes, and nothing orders them.
pub(crate) const RACE: &str = "E0710";
/// Two parameters reach one place, and one of them writes.
pub(crate) const ALIAS: &str = "E0711";
/// The arithmetic of an offset leaves its type.
pub(crate) const OFFSET: &str = "E0712";
/// A promise to the compiler does not hold.
pub(crate) const PROMISE: &str = "E0713";
/// An integer is divided by zero.
pub(crate) const DIVISION: &str = "E0714";
/// One store writes different values to one place.
pub(crate) const LANES: &str = "E0715";
/// An index is outside of what it indexes.
pub(crate) const INDEX: &str = "E0716";
