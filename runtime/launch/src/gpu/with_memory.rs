//! Launches that need memory in addition to their arguments: workspaces, and control memory of kernels that print,
//! assert or meet.
//!
//! Guarantees that memory is given back once the stream is done with it, and that a launch that says something is waited
//! for, since what it says belongs to it.

use std::sync::Mutex;

use tk_interp::{Fault, Printed, print};
use tk_tile::message::control;

use super::backend::show;
use super::device::Device;
use super::error::CudaError;
use super::kernel::Kernel;
use super::key::Arg;
use super::messages::Messages;
use super::stream::Stream;
use crate::session::lock;

/// A workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scratch {
    /// The index of its address among the values.
    pub value: usize,
    /// Its bytes, at least 1.
    pub bytes: usize,
    /// Whether it is zero before the launch.
    pub zeroed: bool,
    /// Whether the kernel leaves it zero.
    pub restored: bool,
}

/// A launch that needs memory beside its arguments.
pub(crate) struct WithMemory<'a> {
    pub device: &'a Device,
    /// Control memory of an earlier launch that may be used again.
    pub spare: &'a Mutex<Option<Messages>>,
    pub printed: &'a Printed,
    pub kernel: &'a Kernel,
    pub grid: [u32; 3],
    pub cooperative: bool,
    pub scratch: &'a [Scratch],
    /// The names of the arguments.
    pub names: &'a [String],
    pub stream: &'a Stream,
    pub args: &'a [Arg<'a>],
}

/// Why a launch failed.
pub(crate) enum Failed {
    /// The GPU or its driver says it.
    Device(CudaError),
    /// An assert of the kernel.
    Fault(Fault),
}

impl From<CudaError> for Failed {
    fn from(error: CudaError) -> Failed {
        Failed::Device(error)
    }
}

/// One allocation: what is zeroed comes first, and each part begins at a multiple of [`ALIGNMENT`].
struct Room {
    /// The byte at which each workspace begins.
    offsets: Vec<usize>,
    /// The byte at which the control memory begins, if the kernel meets.
    control: Option<usize>,
    /// The bytes that are zeroed, from the first on.
    zeroed: usize,
    /// All bytes. More than memory has if the sum is not a number: such an allocation fails.
    bytes: usize,
}

/// The alignment of workspaces in bytes, that of `cuMemAlloc`.
const ALIGNMENT: usize = 256;

impl Room {
    fn new(scratch: &[Scratch], meets: bool) -> Room {
        let mut room = Room { offsets: vec![0; scratch.len()], control: None, zeroed: 0, bytes: 0 };
        room.control = meets.then(|| room.put(control::BYTES));
        for zeroed in [true, false] {
            for (i, s) in scratch.iter().enumerate().filter(|(_, s)| s.zeroed == zeroed) {
                let at = room.put(s.bytes);
                room.offsets.get_mut(i).into_iter().for_each(|o| *o = at);
            }
            room.zeroed = if zeroed { room.bytes } else { room.zeroed };
        }
        room
    }

    /// Writes the addresses of `scratch` in memory at `base`.
    fn place(&self, scratch: &[Scratch], base: u64, values: &mut [u64]) {
        for (s, offset) in scratch.iter().zip(&self.offsets) {
            values.get_mut(s.value).into_iter().for_each(|v| *v = base + *offset as u64);
        }
    }

    /// Adds a part, and returns where it begins.
    fn put(&mut self, bytes: usize) -> usize {
        let at = self.bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        self.bytes = at.saturating_add(bytes);
        at
    }
}

impl WithMemory<'_> {
    /// Launches the kernel. The addresses of workspaces are written into `values`.
    #[cold]
    pub fn start(&self, values: &mut [u64]) -> Result<(), Failed> {
        if self.kernel.info().messages.is_empty() { Ok(self.meeting(values)?) } else { self.saying(values) }
    }

    /// A launch whose memory lives as long as the stream needs it.
    fn meeting(&self, values: &mut [u64]) -> Result<(), CudaError> {
        self.with_room(self.kernel.info().has_grid_barrier, values, None)
    }

    fn saying(&self, values: &mut [u64]) -> Result<(), Failed> {
        let (stream, info) = (self.stream, self.kernel.info());
        let spare = lock(self.spare).take().filter(|m| m.serves(true));
        let mut messages = spare.map_or_else(|| Messages::new(self.device, true), Ok)?;
        messages.begin(stream)?;
        let started = self.with_room(false, values, Some(messages.address()));
        let ran = started.and_then(|()| stream.synchronize());
        let received = messages.end(ran.is_ok().then_some(stream))?;
        let pointer = |address, size| self.pointer(address, size);
        show(&received, info, &pointer, self.grid, self.printed).map_err(Failed::Fault)?;
        ran?;
        *lock(self.spare) = Some(messages);
        Ok(())
    }

    /// Launches with workspaces that are given back once the stream is done with them, and control memory among them if the kernel
    /// meets.
    fn with_room(&self, meets: bool, values: &mut [u64], control: Option<u64>) -> Result<(), CudaError> {
        let rest = self.keep(values)?;
        let room = Room::new(&rest, meets);
        let base = if room.bytes > 0 { Some(self.stream.alloc(room.bytes)?) } else { None };
        let mut start = || {
            let at = base.unwrap_or(0);
            if room.zeroed > 0 {
                self.stream.fill_zero(at, room.zeroed)?;
            }
            room.place(&rest, at, values);
            let control = control.or(room.control.map(|offset| at + offset as u64));
            self.kernel.start(self.stream, self.grid, values, self.cooperative, control)
        };
        let started = start();
        let freed = base.map_or(Ok(()), |address| self.stream.free(address));
        started.and(freed)
    }

    /// Writes the addresses of the workspaces that the kernel leaves zero, and gives the others; all, where the driver cannot keep
    /// any, and of a kernel that may end at an assert before it restores them.
    fn keep(&self, values: &mut [u64]) -> Result<Vec<Scratch>, CudaError> {
        let says = !self.kernel.info().messages.is_empty();
        let (kept, rest): (Vec<Scratch>, Vec<Scratch>) =
            self.scratch.iter().partition(|s| s.restored && !says);
        let room = Room::new(&kept, false);
        if room.bytes > 0 {
            let Some(at) = self.kernel.kept().of(self.stream, room.bytes)? else {
                return Ok(self.scratch.to_vec());
            };
            room.place(&kept, at, values);
        }
        Ok(rest)
    }

    /// The text of an address: the name of the first argument in whose memory it is stands for it.
    fn pointer(&self, at: u64, size: usize) -> String {
        if at == 0 {
            return "null".into();
        }
        let inside = |arg: &Arg<'_>| match arg {
            Arg::Tensor { address, bytes, .. } => {
                at.checked_sub(*address).filter(|n| usize::try_from(*n).is_ok_and(|n| n <= *bytes))
            }
            Arg::Scalar(_) | Arg::Absent => None,
        };
        let found = self.args.iter().zip(self.names).find_map(|(a, name)| Some((inside(a)?, name)));
        let (bytes, name) = found.map_or((0, None), |(n, name)| (n.cast_signed(), Some(name.as_str())));
        print::address(name, bytes, size, at)
    }
}
