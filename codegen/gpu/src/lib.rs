//! Compiles tile IR to scheduled GPU kernels, without LLVM: which thread owns each element of a tile, what goes through
//! shared memory, and when.
//!
//! A module imports only from those to the right of it: pipeline → cost → passes → verify → analysis → ir → target → layout.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod cost;
pub mod ir;
pub mod layout;
pub mod passes;
pub mod pipeline;
pub mod target;
pub mod verify;

pub use self::ir::kernel::{CompileOptions, Kernel};
pub use self::ir::params::ArgFacts;
pub use self::layout::Layout;
pub use self::target::spec::TargetSpec;
pub use self::verify::{LaidOutModule, ScheduledModule};
