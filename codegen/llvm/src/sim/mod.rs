//! Owns the simulated target: lanes as fibers.
