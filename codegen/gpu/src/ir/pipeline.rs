//! Multi-stage buffers and TMA pipelines: their mbarriers, the boxes that are moved, and the blocks that load together.

/// A buffer, and its stages: with stages, the last operand is the number of the accessed stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRef {
    /// Its number.
    pub buffer: usize,
    /// The number of equal stages into which it is divided; `None` if it is no multi-stage buffer.
    pub stages: Option<u32>,
}

impl BufferRef {
    /// A buffer that is not divided.
    pub fn whole(buffer: usize) -> BufferRef {
        BufferRef { buffer, stages: None }
    }

    /// The number of stages.
    pub fn count(self) -> u32 {
        self.stages.unwrap_or(1)
    }
}

/// The mbarriers of a TMA pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The number of the buffer with the mbarriers, two for each stage.
    pub barriers: usize,
    /// The number of stages.
    pub stages: u32,
    /// A set of bits: a consumer in the block of rank `r` of a cluster releases a stage in the blocks of rank `r ^ i` for
    /// each bit `i`. 1, its own block alone, without multicast.
    pub peers: u32,
}

/// The blocks of a cluster that load a box together: `blocks` of them, whose ranks are `stride` apart and otherwise have
/// the same bits. Both are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// How many they are.
    pub blocks: u32,
    /// The distance of their ranks.
    pub stride: u32,
}

impl Multicast {
    /// The bits of [`Pipeline::peers`] for these blocks.
    pub fn peers(self) -> u32 {
        (0..self.blocks).fold(0, |peers, i| peers | 1u32.checked_shl(i * self.stride).unwrap_or(0))
    }
}

/// The box that TMA moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmaBox {
    /// Its extents.
    pub shape: [u32; 2],
    /// Bytes of a line in shared memory: 32, 64 or 128, which is also the width of the swizzle.
    pub span: u32,
}
