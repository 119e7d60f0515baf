//! The tile IR: data structure, text format, verifier, target-independent passes.

#![forbid(unsafe_code)]

pub mod attr;
pub mod build;
pub mod callgraph;
pub mod debug;
pub mod effects;
pub mod flow;
pub mod frequency;
pub mod infer;
pub mod ir;
pub mod message;
pub mod passes;
pub mod pipeline;
pub mod rewrite;
pub mod target_op;
pub mod text;
pub mod traffic;
pub mod verify;
pub mod walk;

pub use attr::{Attr, Attrs};
pub use build::Builder;
pub use ir::*;
pub use target_op::{Dialect, TargetOp};
pub use verify::{TileModule, VerifyError};
