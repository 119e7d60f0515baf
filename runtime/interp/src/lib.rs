//! The interpreter: the CPU device and the meaning of the language.
//!
//! [`launch`] runs the programs of a grid on buffers of a [`Memory`], a [`Program`] does so again and again, [`run_test`] runs a
//! `test` block.
//!
//! ```text
//! TileModule ─ code ─→ Code: per function dense registers, last uses, decoded constants   (once per launch)
//!                        │
//!               schedule: chunks of the grid on threads, programs that wait take turns
//!                        │
//!                     machine: frames, blocks, one step at a time ─┬─ control (for, while, if, map, call)
//!                                                                  ├─ exec (everything that computes)
//!                                                                  └─ host (what only tests do)
//!                                                                       │
//!                                                                    space: every access is located here, and
//!                                                                      │    noted in checked mode (checked) and in a trace
//!                                                                    memory: bytes
//! ```
//! A register holds whole tiles in row-major order, uniform tiles as one scalar, consecutive
//! integers by the first of them, pointer tiles as a base and offsets.

mod checked;
mod code;
mod compare;
mod control;
pub mod debug;
mod exec;
mod fault;
mod host;
mod launch;
mod machine;
mod memory;
pub mod print;
mod ramp;
mod schedule;
mod space;
pub mod trace;
mod value;

pub use debug::{Debugger, Debugging};
pub use fault::Fault;
pub use host::Host;
pub use launch::{Arg, Options, Program, launch, run_test};
pub use memory::{BufferId, Buffers, Memory, Place};
pub use print::Printed;
pub use trace::Trace;
