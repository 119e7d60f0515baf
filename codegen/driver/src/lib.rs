//! From a checked program to binaries.
