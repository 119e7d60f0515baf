//! Devices, arrays and launches: everything between a checked program and results on the host.
//!
//! [`Session`] runs kernels and tests; [`stored`] ([`npy`], [`safetensors`]) and [`make`] give it arrays; [`files`] is
//! the only way to files of the user. Kernels run on the interpreter, or on a [`device`]: [`gpu`] has those of NVIDIA and AMD.

pub mod bundled;
#[cfg(not(target_family = "wasm"))]
pub mod call;
mod candidates;
pub mod choice;
pub mod compile;
pub mod device;
pub mod element;
mod emit;
pub mod files;
#[cfg(not(target_family = "wasm"))]
pub mod gpu;
mod host;
#[cfg_attr(target_family = "wasm", allow(unused_imports, unused_variables, reason = "without files"))]
pub mod leftovers;
pub mod make;
pub mod npy;
pub mod pass;
mod predict;
pub mod records;
mod room;
mod run;
pub mod safetensors;
mod session;
pub mod stored;
mod table;
pub mod tuning;

pub use emit::wanted;
pub use host::TestOutcome;
pub use predict::{launch_args, predict};
pub use room::workspace_bytes;
pub use run::{Results, Value, contiguous, host as host_arg};
pub use session::{Argument, Compiled, Session, Wrong};
pub use table::entry_types;
pub use tk_interp::print::Echo;
