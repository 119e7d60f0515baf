//! What a compiled kernel ships with: [`Manifest`] says what there is and how it is launched, [`Bundle`] is one file with
//! the manifest and the binaries, [`Expr`] is a guard, a requirement or a grid as a closed expression.
//!
//! ```text
//! bundle = header, table of sections, sections
//! header = "TKBUNDLE", format (u32), version of tk (16 bytes), sections (u32), bytes of the file (u64),
//!          BLAKE3 of these and of the table (32 bytes)
//! entry  = offset (u64), bytes (u64), BLAKE3 (32 bytes)
//! section 0 is the manifest as JSON; it names the others by number
//! ```
//! Numbers are little-endian. Reading trusts nothing: inconsistent data is an [`Error`], and no more memory is used
//! than ten times the size of the file.

mod check;
mod choose;
mod container;
mod error;
mod expr;
mod listing;
mod manifest;
pub mod regular;

pub use choose::{Argument, Chosen, Facts};
pub use container::{Bundle, FORMAT, MAGIC, Writer};
pub use error::{Error, ErrorKind};
pub use expr::{DeviceFact, Expr, ExprError, Kind, Number, Operation, Reader};
pub use listing::{Line, Listing, SourceText, Typical, TypicalLine, View};
pub use manifest::{
    Blob, Choice, Dimension, Given, Guard, Kernel, Machine, Manifest, Message, MessageForm, MessageKind,
    Param, ParamKind, Place, Remark, Requirement, Scratch, Table, TensorMap, Value, Variant, Versions, Word,
    schema,
};
