//! Finds and runs the programs that make and read binaries, and parses their output.

pub(crate) mod assembler;
pub(crate) mod find;
pub(crate) mod lld;
pub(crate) mod nvdisasm;
pub(crate) mod ptxas;
pub(crate) mod tool;
