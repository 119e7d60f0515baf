//! The messages of a running kernel, which are `print` and a failed `assert`: [`Message`], to which a record in memory
//! refers by its number, and the format of such a record ([`control`], [`record`]).
//!
//! The emitter of a target makes the list, and the launcher turns records into text; both take every number of the
//! form from here. Guarantees that it names elements as the interpreter does.

use tk_ops::DType;

use crate::ir::{ElemType, Loc, Type};

/// Something that a kernel may say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Of a `print` the text with `{}` in place of values; of an `assert` the message in the program, which may be
    /// empty.
    pub text: String,
    /// The kind: `print` or `assert`.
    pub kind: Kind,
    /// Its span.
    pub loc: Option<Loc>,
}

/// The kinds of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A `print` of these values.
    Print(Vec<Form>),
    /// An `assert` of a tile with these extents.
    Assert(Vec<u32>),
}

/// The form of a printed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Numbers or bools; one if the shape is empty.
    Numbers {
        /// Their type.
        dtype: DType,
        /// The extents.
        shape: Vec<u32>,
    },
    /// Addresses.
    Pointers {
        /// The bytes of an element after each.
        bytes: u32,
        /// The extents.
        shape: Vec<u32>,
    },
    /// A view: its address, its extents, its strides.
    View {
        /// The bytes of an element.
        bytes: u32,
        /// How many extents.
        rank: u32,
    },
}

/// Bytes of an element in memory; pointers are 64-bit addresses.
fn bytes(elem: &ElemType) -> u32 {
    match elem {
        ElemType::Scalar(d) => d.bytes() as u32,
        ElemType::Ptr { .. } => 8,
    }
}

impl Form {
    /// Of a value of this type.
    pub fn of(ty: &Type) -> Form {
        match ty {
            Type::Tile { elem: ElemType::Scalar(dtype), shape } => {
                Form::Numbers { dtype: *dtype, shape: shape.clone() }
            }
            Type::Tile { elem: ElemType::Ptr { pointee, .. }, shape } => {
                Form::Pointers { bytes: bytes(pointee), shape: shape.clone() }
            }
            Type::View { elem, rank, .. } => Form::View { bytes: bytes(elem), rank: *rank },
        }
    }
}

/// Elements up to which a printed tile is shown whole.
pub const WHOLE: u64 = 64;
/// Elements at either end of a dimension that are shown of a larger tile, as NumPy does.
pub const EDGE: u32 = 3;

/// The extents of a tile whose middle is not shown.
pub fn is_cut(shape: &[u32]) -> bool {
    shape.iter().map(|n| u64::from(*n)).product::<u64>() > WHOLE
}

/// Memory of the device through which a launch and its programs know of each other, at offsets in bytes. A kernel that
/// says something, or whose programs meet, gets its address after all other parameters.
pub mod control {
    /// u64: bytes of records that printing threads have asked for.
    pub const PRINTED: i64 = 0;
    /// u64: bytes of records that failing threads have asked for.
    pub const FAILED: i64 = 8;
    /// u64: lines that found no room.
    pub const LOST: i64 = 16;
    /// u64: where records of `print` go.
    pub const PRINTS: i64 = 24;
    /// u64: how many bytes they may have.
    pub const PRINTS_ROOM: i64 = 32;
    /// u64: where records of `assert` go.
    pub const ASSERTS: i64 = 40;
    /// u64: how many bytes they may have.
    pub const ASSERTS_ROOM: i64 = 48;
    /// u32: not 0 if an assert has failed in some program.
    pub const STOP: i64 = 56;
    /// u32: counts the programs that have come to a grid barrier.
    pub const BARRIER: i64 = 60;
    /// All of it.
    pub const BYTES: usize = 64;
}

/// A record: words of 64 bits. A comma is between the two halves of one, the low half first.
///
/// ```text
/// number of the message + 1, number of the line    written last, so that 0 is no record yet
/// program id 0, program id 1
/// program id 2, number of parts + LEADS if the thread is the first of its program
/// value, position; bits                            for each part
/// ```
/// A line is what a program prints at once; its threads give a record each, of the parts that they hold. The position is
/// that of an element in row-major order; of a view 0 for its address, then one for each extent and each stride. A record
/// of an `assert` has one part, whose position is that of the element, and no bits.
pub mod record {
    /// Bytes of the head.
    pub const HEAD: u32 = 24;
    /// Bytes of a part.
    pub const PART: u32 = 16;
    /// Says whose record it is: the first thread of a program gives one for each line, and counts the line as lost where
    /// that finds no room. So a line without it is not counted again.
    pub const LEADS: u32 = 1 << 31;
}
