//! Machine-aware compilation without LLVM: who holds which element of a tile, what moves, and where it lies meanwhile.

#![forbid(unsafe_code)]

pub mod access;
pub mod assign;
pub mod axis;
pub mod barriers;
pub mod boxes;
pub mod chains;
pub mod channels;
pub mod clusters;
pub mod convert;
pub mod early;
pub mod fences;
pub mod kernel;
pub mod layout;
pub mod linear;
pub mod lower;
pub mod matrix;
pub mod natural;
pub mod operand;
pub mod panels;
pub mod picture;
pub mod pieces;
pub mod pipeline;
pub mod places;
pub mod registers;
pub mod rings;
pub mod roots;
pub mod scaled;
pub mod shared;
pub mod spec;
pub mod split_dots;
pub mod stores;
pub mod tails;
pub mod text;
pub mod verify;

pub use axis::ArgFacts;
pub use kernel::{Kernel, Setting};
pub use layout::Layout;
pub use spec::TargetSpec;
pub use verify::{LaidOutModule, ScheduledModule};
