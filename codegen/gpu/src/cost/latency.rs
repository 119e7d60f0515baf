//! Cycles until the result of an operation is there, on an H100.

/// Of arithmetic.
pub const ALU: f64 = 6.0;
/// Of a special function.
pub const SPECIAL: f64 = 20.0;
/// Of an exchange between the lanes of a warp.
pub const SHUFFLE: f64 = 26.0;
/// Of a load from shared memory.
pub const SHARED: f64 = 32.0;
/// Of a barrier.
pub const BARRIER: f64 = 40.0;
/// Of a load from memory.
pub const MEMORY: f64 = 1100.0;
/// By how much a load from memory takes longer when a lane loads twice as many bytes: a sum of columns with one load
/// of each lane in an iteration takes 1,400 cycles, with four of them 2,600.
pub const MORE: f64 = 500.0;
/// By how much one takes less long when a lane loads half of a wide access: sums of columns by twice as many warps are 5 %
/// faster.
pub const LESS: f64 = 80.0;
/// Of a load that finds its line in the shared cache.
pub const CACHE: f64 = 500.0;
/// Of a copy by TMA, beside its bytes: tiles of 64 x 64 along 32, 64 and 128 of K in s stages take 1,220, 1,400 and 1,820 / s
/// cycles an iteration on an H200.
pub const TMA: f64 = 1200.0;
/// Bytes that a copy by TMA moves in a cycle.
pub const TMA_BYTES: f64 = 40.0;
/// Of a matrix instruction, beside its work.
pub const MATRIX: f64 = 34.0;
/// Of an atomic operation in the shared cache.
pub const ATOMIC: f64 = 700.0;
