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
    /// Whether it is zeroed before the launch.
    pub zeroed: bool,
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

impl WithMemory<'_> {
    /// Launches the kernel. The addresses of workspaces are written into `values`.
    #[cold]
    pub fn start(&self, values: &mut [u64]) -> Result<(), Failed> {
        if self.kernel.info().messages.is_empty() { Ok(self.meeting(values)?) } else { self.saying(values) }
    }

    /// A launch whose memory lives as long as the stream needs it.
    fn meeting(&self, values: &mut [u64]) -> Result<(), CudaError> {
        let (has_grid_barrier, mut held) = (self.kernel.info().has_grid_barrier, vec![]);
        let mut start = || {
            let mut control = None;
            if has_grid_barrier {
                let address = self.stream.alloc(control::BYTES)?;
                held.push(address);
                self.stream.fill_zero(address, control::BYTES)?;
                control = Some(address);
            }
            self.with_scratch(values, control, &mut held)
        };
        let started = start();
        self.given_back(held, started)
    }

    fn saying(&self, values: &mut [u64]) -> Result<(), Failed> {
        let (stream, info) = (self.stream, self.kernel.info());
        let spare = lock(self.spare).take().filter(|m| m.serves(true));
        let mut messages = spare.map_or_else(|| Messages::new(self.device, true), Ok)?;
        messages.begin(stream)?;
        let mut held = vec![];
        let started = self.with_scratch(values, Some(messages.address()), &mut held);
        let started = self.given_back(held, started);
        let ran = started.and_then(|()| stream.synchronize());
        let received = messages.end(ran.is_ok().then_some(stream))?;
        let pointer = |address, size| self.pointer(address, size);
        show(&received, info, &pointer, self.grid, self.printed).map_err(Failed::Fault)?;
        ran?;
        *lock(self.spare) = Some(messages);
        Ok(())
    }

    /// Launches with workspaces, whose addresses are added to `held`.
    fn with_scratch(
        &self,
        values: &mut [u64],
        control: Option<u64>,
        held: &mut Vec<u64>,
    ) -> Result<(), CudaError> {
        for s in self.scratch {
            let address = self.stream.alloc(s.bytes)?;
            held.push(address);
            if s.zeroed {
                self.stream.fill_zero(address, s.bytes)?;
            }
            values.get_mut(s.value).into_iter().for_each(|v| *v = address);
        }
        self.kernel.start(self.stream, self.grid, values, self.cooperative, control)
    }

    /// Gives memory back once the stream is done with it.
    fn given_back(&self, held: Vec<u64>, started: Result<(), CudaError>) -> Result<(), CudaError> {
        let freed = held.into_iter().map(|address| self.stream.free(address)).fold(Ok(()), Result::and);
        started.and(freed)
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
