//! The programs that make and read binaries: where they are found, and what they say.

pub(crate) mod assembler;
pub(crate) mod find;
pub(crate) mod lld;
pub(crate) mod nvdisasm;
pub(crate) mod ptxas;
pub(crate) mod tool;
