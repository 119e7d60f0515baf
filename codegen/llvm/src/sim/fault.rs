//! [`Fault`]: why and where a launch ended.

use std::fmt;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An access to device memory that is in no buffer.
    Global,
    /// An access beyond the end of shared memory.
    Shared,
    /// An address that is not a multiple of the size of the access.
    Misaligned,
    /// A read of shared memory that the program has not written.
    Unwritten,
    /// Two lanes of a program access the same bytes, at least one writes, and nothing orders them.
    Race,
    /// Every lane waits, or polls memory that no lane changes.
    Deadlock,
    /// A lane waits for lanes that have returned.
    Returned,
    /// The lanes of a warp wait at different positions.
    Divergence,
    /// A device assertion failed. Of those that fail in a program it is the first, by its number and then by the
    /// element, of those that lanes reach without waiting for one that failed.
    Assert {
        /// The number that the call passed.
        message: i32,
        /// The element, in row-major order.
        element: i32,
    },
    /// The time limit is exceeded.
    Timeout,
    /// Memory for the stacks of the lanes cannot be allocated.
    Resource,
    /// The launch or a call is malformed: a bug in the emitter.
    Call,
}

/// The condition for which lanes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// The lanes of the program, or those that share a named barrier.
    Barrier,
    /// The lanes of the warp.
    WarpBarrier,
    /// The lanes of the warp, to exchange values.
    Shuffle,
    /// The lanes of the warp, to load or multiply matrices.
    Matrix,
    /// The warps of a warpgroup, to multiply matrices.
    Group,
    /// The completion of a phase of an mbarrier.
    Phase,
    /// The end of a copy to device memory.
    Stored,
    /// All programs.
    GridBarrier,
}

impl WaitKind {
    /// In words, as in "waits at ..".
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Barrier => "a barrier",
            WaitKind::WarpBarrier => "a warp barrier",
            WaitKind::Shuffle => "a shuffle",
            WaitKind::Matrix => "a matrix instruction",
            WaitKind::Group => "a matrix instruction of a group",
            WaitKind::Phase => "a barrier of a tma_pipeline",
            WaitKind::Stored => "a copy to device memory",
            WaitKind::GridBarrier => "a grid barrier",
        }
    }
}

/// Lanes that wait at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Index into the table of source positions; -1 for none.
    pub loc: i32,
    /// The condition.
    pub kind: WaitKind,
    /// The number of lanes, of all programs that have started.
    pub lanes: u64,
}

/// The reason for which a launch ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The same in words, without positions.
    pub message: String,
    /// The position: index into the table of source positions; -1 for none.
    pub loc: i32,
    /// The other position involved: in a race, or of lanes that wait elsewhere.
    pub other: Option<i32>,
    /// The program.
    pub program: [u32; 3],
    /// The lane, counted in its program.
    pub lane: Option<u32>,
    /// The lanes that wait, by position; only for [`FaultKind::Deadlock`] and [`FaultKind::Timeout`].
    pub waiting: Vec<Waiting>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.program;
        write!(f, "{} (place {}, program ({x}, {y}, {z})", self.message, self.loc)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if let Some(other) = self.other {
            write!(f, ", other place {other}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Fault {}

/// A fault before its lane is known.
#[derive(Debug)]
pub(super) struct Wrong {
    pub kind: FaultKind,
    pub message: String,
    pub other: Option<i32>,
}

impl Wrong {
    /// A fault at one position.
    #[cold]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Wrong {
        Wrong { kind, message: message.into(), other: None }
    }

    /// A fault at two positions.
    #[cold]
    pub fn with(kind: FaultKind, message: impl Into<String>, other: i32) -> Wrong {
        Wrong { other: Some(other), ..Wrong::new(kind, message) }
    }

    /// Adds the program and the lane.
    #[cold]
    pub fn of(self, program: [u32; 3], lane: u32, loc: i32) -> Fault {
        let Wrong { kind, message, other } = self;
        Fault { kind, message, loc, other, program, lane: Some(lane), waiting: vec![] }
    }
}
