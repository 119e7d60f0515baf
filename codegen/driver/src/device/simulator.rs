//! The simulated target as a device of the runtime: the shipped lowering, run lane by lane on the host.
//!
//! Guarantees the same result and the same fault for the same seed. Addresses of device memory are the virtual ones of
//! the interpreter's memory, so that a stored pointer has the same meaning here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use tk_gpu::ir::tensor_map::{MOST_DIMENSIONS, MapWord, TensorMap};
use tk_gpu::{ScheduledModule, TargetSpec};
use tk_interp::{Arg, Buffers, Fault, Memory};
use tk_llvm::module::{Hosted, hosted};
use tk_llvm::sim::{self, FaultKind, Global, Launch};
use tk_runtime::call::Call;
use tk_runtime::choice::Place;
use tk_runtime::compile::ArgFacts;
use tk_runtime::device::{Device, LaunchOptions, fault_of};
use tk_runtime::records::{Records, Shown, failed, pointer};
use tk_runtime::{Compiled, Wrong};
use tk_sema::contract;
use tk_syntax::{SourceMap, codes};
use tk_tile::Loc;

use crate::compile::cache;
use crate::compile::emission::stopped;
use crate::compile::kernel::{Asked, ProgramShape, Request, facts as facts_of};
use crate::compile::memory::fits;
use crate::compile::pipeline::schedule;
use crate::compile::unchanged::Unchanged;
use crate::device::facts::facts_about;
use crate::device::replay::Replay;

/// A specialization for warps and facts about its arguments.
type Key = (u64, ProgramShape, Vec<ArgFacts>);

/// The simulated target.
pub struct Simulator {
    spec: &'static TargetSpec,
    seed: u64,
    known: Mutex<HashMap<Key, Arc<Ready>>>,
}

/// A kernel for the simulated target, compiled for the host when it is first needed.
struct Ready {
    kernel: ScheduledModule,
    hosted: OnceLock<Result<Hosted, Wrong>>,
    /// What results of earlier runs are found by.
    unchanged: OnceLock<cache::Key>,
}

impl Ready {
    fn hosted(&self) -> Result<&Hosted, Fault> {
        let stopped = |stop| vec![stopped(&stop, self.kernel.options.spec, &self.kernel.func().name)];
        let made = self.hosted.get_or_init(|| hosted(&self.kernel).map_err(stopped));
        made.as_ref().map_err(|wrong| fault_of(wrong))
    }
}

impl Simulator {
    /// Simulates this target; `seed` determines every order that a GPU leaves open.
    pub fn new(spec: &'static TargetSpec, seed: u64) -> Simulator {
        Simulator { spec, seed, known: Mutex::new(HashMap::new()) }
    }

    fn ready(
        &self,
        compiled: &Compiled,
        shape: ProgramShape,
        facts: Vec<ArgFacts>,
    ) -> Result<Arc<Ready>, Wrong> {
        let key = (compiled.id, shape, facts);
        if let Some(ready) = self.known.lock().unwrap_or_else(|p| p.into_inner()).get(&key) {
            return Ok(Arc::clone(ready));
        }
        let facts = facts_of(&key.2);
        // Faults have positions of their own; host code has no line table.
        let sources = SourceMap::default();
        let request = Request {
            module: &compiled.module,
            entry: compiled.entry,
            target: self.spec,
            shape,
            facts,
            sources: &sources,
        };
        let stages = schedule(&request, None)?;
        fits(&stages.scheduled, stages.scheduled.shared_bytes())?;
        let ready =
            Arc::new(Ready { kernel: stages.scheduled, hosted: OnceLock::new(), unchanged: OnceLock::new() });
        self.known.lock().unwrap_or_else(|p| p.into_inner()).insert(key, Arc::clone(&ready));
        Ok(ready)
    }
}

/// The memory of the interpreter, as lanes access it, and their output.
struct Space {
    buffers: Buffers,
    printed: Mutex<PrintedRecords>,
}

/// The output of lanes.
#[derive(Default)]
struct PrintedRecords {
    /// The number of records of each lane of each program.
    came: BTreeMap<([u32; 3], u32), u32>,
    records: Records,
}

impl PrintedRecords {
    /// Adds a record of a lane, in the form of the target's emitter.
    fn add(&mut self, program: [u32; 3], lane: u32, record: &[u8]) {
        let line = self.came.entry((program, lane)).or_default();
        let words = record.chunks_exact(8).filter_map(|w| w.try_into().ok().map(u64::from_le_bytes));
        let words: Vec<u64> = words.collect();
        let Some((message, parts)) = words.split_first() else { return };
        let part = |part: &[u64]| match part {
            [value, position, bits] if *value != u64::MAX => Some((*value, *position, *bits)),
            _another_lane_says_it => None,
        };
        let parts = parts.chunks_exact(3).filter_map(part);
        self.records.add(program, (*line, lane == 0), usize::try_from(*message).unwrap_or(usize::MAX), parts);
        *line += 1;
    }
}

impl Global for Space {
    fn resolve(&self, address: u64, bytes: usize) -> Result<*mut u8, String> {
        let inside = self.buffers.resolve(address, bytes);
        inside.ok_or_else(|| match self.buffers.at(address) {
            Some(place) => {
                let at = address - place.address;
                format!("{bytes} bytes at byte {at} of a buffer of {} are outside", place.len)
            }
            None => format!("the address {address:#x} is in no buffer"),
        })
    }

    fn print(&self, program: [u32; 3], lane: u32, record: &[u8]) {
        self.printed.lock().unwrap_or_else(|p| p.into_inner()).add(program, lane, record);
    }
}

impl Device for Simulator {
    fn launch(
        &self,
        compiled: &Compiled,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
        memory: &Memory,
    ) -> Result<(), Fault> {
        let call = Call::new(compiled, args)?;
        let place = |buffer, at: i64, size: usize| {
            let start = memory.address(buffer)?;
            start.checked_add_signed(at.checked_mul(i64::try_from(size).ok()?)?)
        };
        let (kinds, values) = call.pack(&place)?;
        let facts = kinds.iter().zip(values.bits()).map(|(k, v)| ArgFacts::of(*k, *v)).collect();
        let ready = self
            .ready(compiled, ProgramShape::of(self.spec, Asked::from(options)), facts)
            .map_err(|w| fault_of(&w))?;
        let space = Space { buffers: memory.buffers(), printed: Mutex::default() };
        let wrote = || space.buffers.iter().for_each(|place| space.buffers.wrote(place.id));
        let key = || *ready.unchanged.get_or_init(|| Unchanged::key(&ready.kernel));
        let replay = Replay::new(key, values.bits(), grid, options, self.seed, &space.buffers);
        if replay.as_ref().is_some_and(|r| r.known(&space.buffers)) {
            wrote();
            options.printed.end_launch();
            return Ok(());
        }
        let hosted = ready.hosted()?;
        let maps: Vec<sim::SimTensorMap> =
            hosted.maps.iter().filter_map(|m| described(m, values.bits())).collect();
        let mut words = values.bits().to_vec();
        words.extend(maps.iter().map(|m| std::ptr::from_ref(m) as u64));
        let launch = Launch {
            kernel: hosted.entry,
            args: &words,
            grid,
            threads: ready.kernel.block_threads(),
            warp_size: self.spec.warp_size,
            shared_bytes: ready.kernel.shared_bytes(),
            cooperative: options.cooperative,
            seed: self.seed,
            timeout: options.timeout,
            banks: None,
        };
        // SAFETY: the code has this signature and accesses memory only by the simulator's calls; the buffers live as
        // long as `space`, and nothing else uses them during a launch.
        let ran = unsafe { sim::run(&launch, &space) };
        // All memory that a lane may have written counts as written: only checked mode tracks single bytes.
        wrote();
        let func = compiled.module.funcs.get(compiled.entry);
        let names = func.map_or(&[][..], |f| &f.param_names);
        let pointer = |address, size| pointer(address, size, &space.buffers, args, names);
        let shown = Shown { messages: &hosted.tables.messages, pointer: &pointer };
        let printed = space.printed.lock().unwrap_or_else(|p| p.into_inner());
        printed.records.show(&shown, grid, &options.printed)?;
        options.printed.end_launch();
        ran.map_err(|f| fault(&f, hosted))?;
        if let Some(replay) = replay.filter(|_| printed.came.is_empty()) {
            replay.keep(&space.buffers);
        }
        Ok(())
    }

    fn place(&self) -> Place {
        let smem = self.spec.shared_bytes.into();
        let facts = contract::Device { smem, target: facts_about(self.spec), ..contract::Device::default() };
        Place { facts, target: self.spec.name.into(), name: self.spec.name.into() }
    }
}

/// The tensor map of a launch with these values.
fn described(map: &TensorMap, values: &[u64]) -> Option<sim::SimTensorMap> {
    // They are positive, so the upper bits of a 32-bit one are 0.
    let word = |w: MapWord| match w {
        MapWord::Passed(i) => values.get(i).copied(),
        MapWord::Value(v) => Some(v.cast_unsigned()),
    };
    let bytes = map.matrix.dtype.bytes() as u64;
    let mut address = *values.get(map.matrix.address)?;
    let mut dimensions = [sim::SimDimension::NONE; MOST_DIMENSIONS];
    for (slot, d) in dimensions.iter_mut().zip(map.matrix.dimensions()) {
        *slot = sim::SimDimension { extent: word(d.extent)?, step: word(d.stride)?.checked_mul(bytes)? };
        let before = if d.before { slot.extent.checked_mul(slot.step)? } else { 0 };
        address = address.wrapping_sub(before);
    }
    Some(sim::SimTensorMap { address, dimensions, bytes: bytes as u32, lines: map.lines, span: map.span })
}

/// Converts a fault of a lane to a fault of the launch.
fn fault(f: &sim::Fault, hosted: &Hosted) -> Fault {
    let loc = |n: i32| usize::try_from(n).ok().and_then(|n| hosted.tables.locs.get(n)).copied();
    let message = match f.kind {
        FaultKind::Assert { message, element } => {
            let number = usize::try_from(message).unwrap_or(usize::MAX);
            let element = usize::try_from(element).unwrap_or(0);
            return failed(&hosted.tables.messages, number, element, f.program);
        }
        FaultKind::Global
        | FaultKind::Shared
        | FaultKind::Misaligned
        | FaultKind::Unwritten
        | FaultKind::Race
        | FaultKind::Deadlock
        | FaultKind::Returned
        | FaultKind::Divergence
        | FaultKind::Timeout
        | FaultKind::Resource
        | FaultKind::Call => f.message.clone(),
    };
    let mut out = Fault::new(codes::FAULT.0, message);
    out.loc = loc(f.loc);
    out.program = Some(f.program);
    out.other = f.other.and_then(loc).map(|l: Loc| Box::new((l, "and here".to_string())));
    out
}
