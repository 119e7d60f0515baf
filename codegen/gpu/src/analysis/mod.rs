//! Analyses of kernels for passes and the verifier; they change nothing.

pub mod access_width;
pub mod advance;
pub mod axis;
pub mod bounded;
pub mod coalesce;
pub mod conversion;
pub mod counters;
pub mod direct_loads;
pub mod dot_chains;
pub mod ldmatrix;
pub mod liveness;
pub mod memory_order;
pub mod mma;
pub mod packed_operands;
pub mod pointer_steps;
pub mod provenance;
pub mod staged_stores;
pub mod stmatrix;
pub mod wgmma_shared;
