//! A launch on the simulated target, and the memory that it accesses.

use std::time::Duration;

use super::fiber::KernelFn;

/// The arguments of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The compiled kernel; every lane of every program calls it.
    pub kernel: KernelFn,
    /// Its arguments, passed as they are.
    pub args: &'a [u64],
    /// Programs along each axis.
    pub grid: [u32; 3],
    /// Lanes of a program: a multiple of `warp_size`.
    pub threads: u32,
    /// Lanes of a warp, of the target's `TargetSpec`: a power of two.
    pub warp_size: u32,
    /// Bytes of shared memory of a program.
    pub shared_bytes: u32,
    /// All programs run at once; required for a grid barrier.
    pub cooperative: bool,
    /// Determines every scheduling decision.
    pub seed: u64,
    /// The time limit of the launch.
    pub timeout: Option<Duration>,
    /// Banks of shared memory, of the target's `TargetSpec`, to count accesses of warps; `None` skips that, which is
    /// faster.
    pub banks: Option<u32>,
}

/// Device memory, which belongs to the caller, and the other services of the host.
pub trait Global: Sync {
    /// The address of these bytes in host memory.
    ///
    /// # Errors
    /// A sentence about an address that is in no buffer; it becomes [`Fault::message`](super::Fault::message).
    fn resolve(&self, addr: u64, bytes: usize) -> Result<*mut u8, String>;

    /// A lane prints this record.
    fn print(&self, program: [u32; 3], lane: u32, record: &[u8]) {
        let _ = (program, lane, record);
    }
}
