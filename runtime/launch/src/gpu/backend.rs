//! Launches of a `Session` on a GPU: [`Backend`] brings host buffers there, launches, and brings results back.
//!
//! A launch is complete when it returns, so a failure belongs to one kernel and one list of arguments. The next launch
//! begins with a device that works: it gets a new context if the old one is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tk_interp::{Arg, BufferId, Buffers, Fault, Memory, Printed};
use tk_syntax::codes;

use super::binaries::Binaries;
use super::buffer::Buffer;
use super::device::Device;
use super::error::CudaError;
use super::kernel::{Args, Kernel, KernelInfo};
use super::messages::{KernelMessages, Messages};
use super::reach::{Reached, Translation, reach, read, write};
use super::stream::Stream;
use crate::call::Call;
use crate::choice::Place;
use crate::compile::{ArgFacts, Compile};
use crate::device::{self, LaunchOptions, fault_of};
use crate::records::{self, Shown};
use crate::session::{Compiled, lock};

/// A GPU as the device of a session.
#[derive(Debug)]
pub struct Backend {
    binaries: Binaries,
    /// One launch at a time: another one must not meet a context that is being renewed.
    one: Mutex<()>,
    /// Control memory of an earlier launch that may be used again.
    spare: Mutex<Option<Messages>>,
    /// How long the last launch took.
    last: Mutex<Option<Duration>>,
}

impl Backend {
    /// A GPU and what makes binaries for it. Fails if no target fits the GPU.
    pub fn new(device: Device, compiler: Arc<dyn Compile>) -> Result<Backend, CudaError> {
        Ok(Backend {
            binaries: Binaries::new(device, compiler)?,
            one: Mutex::new(()),
            spare: Mutex::default(),
            last: Mutex::default(),
        })
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.binaries.device()
    }

    /// Control memory for a launch, if the kernel has some.
    fn messages(&self, kernel: &KernelInfo, stream: &Stream) -> Result<Option<Messages>, CudaError> {
        if !kernel.has_control() {
            return Ok(None);
        }
        let says = !kernel.messages.is_empty();
        let spare = lock(&self.spare).take().filter(|m| m.serves(says));
        let messages = spare.map_or_else(|| Messages::new(self.device(), says), Ok)?;
        messages.begin(stream)?;
        Ok(Some(messages))
    }
}

/// Prints what a launch has printed; the fault of an assert that failed.
pub(crate) fn show(
    received: &KernelMessages,
    kernel: &KernelInfo,
    pointer: &dyn Fn(u64, usize) -> String,
    grid: [u32; 3],
    printed: &Printed,
) -> Result<(), Fault> {
    let missing = received.records.show(&Shown { messages: &kernel.messages, pointer }, grid, printed)?;
    printed.lost(missing.saturating_add(received.lost));
    printed.end_launch();
    received.fault(&kernel.messages).map_or(Ok(()), Err)
}

impl device::Device for Backend {
    fn launch(
        &self,
        compiled: &Compiled,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
        memory: &Memory,
    ) -> Result<(), Fault> {
        let _one = lock(&self.one);
        self.device().recover().map_err(|e| fault(&e, ""))?;
        let call = Call::new(compiled, args)?;
        let buffers = memory.buffers();
        let reached = reach(call.args(), &buffers).map_err(|i| call.freed(i))?;
        let stream = self.device().stream().map_err(|e| fault(&e, ""))?;
        let there = Resident::upload(self.device(), &stream, &buffers, reached).map_err(|e| fault(&e, ""))?;
        let (kinds, values) = call.pack(&|b, at, size| there.address(b, at, size))?;
        let facts = kinds.iter().zip(values.bits()).map(|(k, v)| ArgFacts::of(*k, *v)).collect();
        let kernel = self.binaries.get(compiled, options, facts).map_err(|wrong| fault_of(&wrong))?;
        kernel.fits(self.device()).map_err(|e| fault(&e, ""))?;
        let with = call.describe(grid);
        let mut messages = self.messages(kernel.info(), &stream).map_err(|e| fault(&e, ""))?;
        let control = messages.as_ref().map(Messages::address);
        *lock(&self.last) = None;
        let begin = stream.record().map_err(|e| fault(&e, ""))?;
        let ran = run(&kernel, &stream, grid, (&values, control), options);
        if ran.is_ok() {
            let time = stream.record().and_then(|end| begin.elapsed_ms(&end));
            *lock(&self.last) = time.ok().map(|ms| Duration::from_secs_f64(f64::from(ms) / 1e3));
        }
        if let Some(messages) = &mut messages {
            let received = messages.end(ran.is_ok().then_some(&stream)).map_err(|e| fault(&e, ""))?;
            let to_host = there.to_gpu.reversed();
            let names = compiled.module.funcs.get(compiled.entry).map_or(&[][..], |f| &f.param_names);
            let pointer =
                |address, size| records::pointer(to_host.address(address), size, &buffers, args, names);
            show(&received, kernel.info(), &pointer, grid, &options.printed)?;
        }
        ran.map_err(|e| fault(&e, &with))?;
        *lock(&self.spare) = messages;
        there.download(&stream).map_err(|e| fault(&e, &with))
    }

    fn place(&self) -> Place {
        self.binaries.place()
    }

    fn compiler(&self) -> Option<&dyn Compile> {
        self.binaries.compiler()
    }

    fn last_time(&self) -> Option<Duration> {
        *lock(&self.last)
    }
}

/// Launches and waits.
fn run(
    kernel: &Kernel,
    stream: &Stream,
    grid: [u32; 3],
    (values, control): (&Args, Option<u64>),
    options: &LaunchOptions,
) -> Result<(), CudaError> {
    kernel.start(stream, grid, values.bits(), options.cooperative, control)?;
    match options.timeout {
        None => stream.synchronize(),
        Some(limit) if stream.synchronize_within(limit)? => Ok(()),
        Some(limit) => Err(stuck(stream, &kernel.info().name, limit)),
    }
}

/// A kernel runs longer than it may. Nothing stops it but the end of the process.
fn stuck(stream: &Stream, name: &str, limit: Duration) -> CudaError {
    let sentence = format!("kernel `{name}` is still running on the GPU after {} s", limit.as_secs_f64());
    let error = CudaError::new(sentence, "look for a loop that does not terminate, or raise the time limit");
    stream.context().stuck(&error);
    error
}

/// An error of the GPU as a fault of the launch; `with` is what the kernel got, if that matters.
fn fault(error: &CudaError, with: &str) -> Fault {
    let with = if with.is_empty() { String::new() } else { format!("; it was launched with {with}") };
    Fault::new(codes::FAULT.0, format!("{}{with}; {}", error.sentence, error.fix))
}

/// Bytes of the narrowest element that a GPU compares and exchanges.
const WORD: usize = 4;

/// Host buffers that have a twin on the GPU.
struct Resident<'b> {
    buffers: &'b Buffers,
    pairs: Vec<(Reached, Buffer)>,
    to_gpu: Translation,
}

impl<'b> Resident<'b> {
    fn upload(
        device: &Device,
        stream: &Stream,
        buffers: &'b Buffers,
        reached: Vec<Reached>,
    ) -> Result<Resident<'b>, CudaError> {
        let mut pairs = vec![];
        for r in reached {
            // A buffer without elements has an address too: a kernel may compare it. Atomics on elements that are narrower
            // than a word read and write all of it.
            let (len, whole) = (r.place.len, r.place.len.max(1).next_multiple_of(WORD));
            let twin = device.alloc(whole)?;
            if whole > len {
                stream.fill_zero(twin.address() + len as u64, whole - len)?;
            }
            pairs.push((r, twin));
        }
        let range = |(r, b): &(Reached, Buffer)| (r.place.address, r.place.len as u64, b.address());
        let to_gpu = Translation::new(pairs.iter().map(range).collect());
        for (r, twin) in &pairs {
            if r.table {
                let mut bytes = read(r.place);
                to_gpu.table(&mut bytes);
                twin.copy_from(stream, &bytes)?;
            } else {
                // SAFETY: the buffers are held until the end of the launch, and the copy is done before this returns.
                unsafe { twin.start_from(stream, r.place.start, r.place.len) }?;
                stream.synchronize()?;
            }
        }
        Ok(Resident { buffers, pairs, to_gpu })
    }

    /// The address on the GPU of an element of a buffer.
    fn address(&self, id: BufferId, offset: i64, size: usize) -> Option<u64> {
        let (_, twin) = self.pairs.iter().find(|(r, _)| r.place.id == id)?;
        Some(twin.address().wrapping_add_signed(offset.wrapping_mul(size as i64)))
    }

    /// Brings back what the kernel may have written.
    fn download(&self, stream: &Stream) -> Result<(), CudaError> {
        let to_host = self.to_gpu.reversed();
        for (r, twin) in self.pairs.iter().filter(|(r, _)| r.mutable) {
            if r.table {
                let mut bytes = vec![0u8; r.place.len];
                twin.copy_to(stream, &mut bytes)?;
                to_host.table(&mut bytes);
                write(r.place, &bytes);
            } else {
                // SAFETY: as in `upload`.
                unsafe { twin.start_to(stream, r.place.start, r.place.len) }?;
                stream.synchronize()?;
            }
            self.buffers.wrote(r.place.id);
        }
        Ok(())
    }
}
