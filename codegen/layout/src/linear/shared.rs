//! Owns layouts of shared memory.
