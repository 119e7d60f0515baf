//! What to expect of a kernel before anybody launches it: [`expected`] predicts a typical launch of a specialization, and
//! [`lines`] divides its cost among the lines of the source.
//!
//! ```text
//! kernel product[T = f16](a, b, c)  ->  a [4096, 4096], b [4096, 4096], c [4096, 4096] on an NVIDIA H100: 221 us
//! ```
//! In a typical launch tensors are contiguous, and all free extents and integers are the same power of two, as far as the
//! conditions of the kernel admit it.

use std::collections::BTreeMap;

use tk_gpu::ArgFacts;
use tk_gpu::ir::kernel::Remark;
use tk_gpu::target::chip;
use tk_runtime::Session;
use tk_runtime::compile::{Estimate, Launch};
use tk_runtime::launch_args;
use tk_sema::contract::{self, ClosedContract, Decided, HostArg, Plan};
use tk_sema::eval::Bindings;
use tk_syntax::{FileId, SourceMap, Span};
use tk_tile::traffic::traffic;

use crate::compile::instance::Specialization;
use crate::compile::kernel::Request;
use crate::compile::sample;
use crate::device::facts::place_of;
use crate::device::predict::Predicted;

/// `1 block/SM`, `2 blocks/SM`
pub fn blocks_per_sm(n: u32) -> String {
    format!("{n} block{}/SM", if n == 1 { "" } else { "s" })
}

/// The predicted cost of a typical launch.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The extents and integers of the launch, each once, the largest first.
    pub extents: Vec<i64>,
    /// The name of the GPU.
    pub gpu: String,
    /// The cost, by place too.
    pub estimate: Estimate,
    /// Where the fastest instructions do not apply, and why: the file, the line from 1, a sentence.
    pub remarks: Vec<(FileId, usize, String)>,
}

/// Extents that [`Expected::extents_text`] names.
const NAMED_EXTENTS: usize = 4;

impl Expected {
    /// `extents of 4096`, `extents of 4096, 64 and 4`; nothing for a launch without any.
    pub fn extents_text(&self) -> String {
        let named: Vec<String> = self.extents.iter().take(NAMED_EXTENTS).map(i64::to_string).collect();
        let is_all = named.len() == self.extents.len();
        match named.as_slice() {
            [] => String::new(),
            [one] => format!("extents of {one}"),
            [first @ .., last] if is_all => format!("extents of {} and {last}", first.join(", ")),
            some => format!("extents of {}, ..", some.join(", ")),
        }
    }
}

/// The cost of what a line became.
#[derive(Clone, Debug, PartialEq)]
pub struct LineCost {
    /// The file.
    pub file: FileId,
    /// The line, counted from 1.
    pub line: usize,
    /// Its part of the time of the unit that bounds the kernel.
    pub share: f64,
    /// The time that each unit works on it, in microseconds.
    pub parts: BTreeMap<&'static str, f64>,
    /// Instructions of warps, of all programs.
    pub instructions: f64,
    /// Bytes from and to the shared cache, of all programs.
    pub bytes: f64,
    /// Those of them that the program asked for: the rest is of sectors and lines that are read for a part.
    pub needed: f64,
    /// Bytes that the narrowest access of a lane to device memory moves; 0 without one.
    pub lane_bytes: u32,
    /// Why that is not wider, as a sentence without a full stop.
    pub limit: &'static str,
    /// Whether TMA moves some of the bytes.
    pub tensor_copies: bool,
    /// Cycles of shared memory that bank conflicts add, of all programs.
    pub conflicts: f64,
    /// Bytes of a lane for the largest tile that is made there, in registers.
    pub tile_bytes: u32,
    /// The most registers of a lane for tiles that are live at once.
    pub registers: u32,
}

/// The extents that are tried: the first that each condition admits, and with which the values of the specialization follow
/// from its arguments.
pub const EXTENTS: [i64; 15] = [4096, 8192, 16384, 32768, 65536, 2048, 1024, 512, 256, 128, 64, 32, 16, 4, 1];

/// Predicts a typical launch of a binary of a specialization on the usual GPU of its target. `None` if nothing is known of
/// the speed of that GPU, no typical launch is found, or the kernel cannot be compiled.
pub fn expected(
    session: &Session,
    special: &Specialization,
    (bindings, contract): (&Bindings, &ClosedContract),
    request: &Request<'_>,
) -> Option<Expected> {
    let chip = chip::usual(request.target.name)?;
    let place = place_of(request.target, chip);
    let hir = &session.checked().hir;
    // What follows from the arguments has to come out as it was compiled.
    let mut given = bindings.cvars.clone();
    for (id, decided) in &contract.decided {
        if matches!(decided, Decided::ByDefault(_)) {
            given.remove(id);
        }
    }
    let sets = contract::as_sets(hir, &given);
    let planned = |mut args: Vec<HostArg>| {
        in_order(&mut args, &request.facts);
        let plan = contract::plan_on(hir, special.kernel, &args, &sets, place.facts).ok()?;
        let is_same = plan.bindings.cvars == bindings.cvars && !plan.grid.contains(&0);
        is_same.then_some((sample::numbers(&args), plan))
    };
    let (extents, plan): (Vec<i64>, Plan) =
        sample::typical(contract, bindings, &EXTENTS, true).find_map(planned)?;
    let args = launch_args(&plan);
    let sms = u32::try_from(place.facts.sms).unwrap_or(1);
    let bytes = traffic(request.module, request.entry, &args, plan.grid).bytes();
    let launch = Launch { args: &args, grid: plan.grid, bytes, gpu: &place.name, sms, by_place: true };
    let predicted = Predicted::new(request)?;
    let estimate = predicted.estimate(&launch, chip);
    let remark = |r: &Remark| {
        let loc = r.loc?;
        let place = Span::new(FileId(loc.file), loc.start as usize, loc.end as usize);
        Some((place.file, request.sources.position(place).1, r.text.clone()))
    };
    let remarks = predicted.remarks().iter().filter_map(remark).collect();
    estimate.us.is_finite().then_some(Expected { extents, gpu: place.name, estimate, remarks })
}

/// Gives views the order of axes for which a binary was compiled: the axis with a stride of 1 comes last in memory.
fn in_order(args: &mut [HostArg], facts: &[ArgFacts]) {
    let mut rest = facts;
    for arg in args {
        let HostArg::Tensor { shape, strides, .. } = arg else {
            rest = rest.get(usize::from(*arg != HostArg::Absent)..).unwrap_or_default();
            continue;
        };
        let rank = shape.len();
        let of_strides = rest.get(1 + rank..1 + 2 * rank).unwrap_or_default();
        let contiguous = of_strides.iter().position(|f| f.one);
        if let Some(axis) = contiguous.filter(|axis| axis + 1 < rank) {
            let mut order: Vec<usize> = (0..rank).filter(|d| *d != axis).collect();
            order.push(axis);
            let mut next = 1;
            for d in order.into_iter().rev() {
                if let (Some(stride), Some(extent)) = (strides.get_mut(d), shape.get(d)) {
                    *stride = next;
                    next *= extent;
                }
            }
        }
        rest = rest.get(1 + 2 * rank..).unwrap_or_default();
    }
}

/// The unit whose time is divided among the lines of a kernel, and the cost of each line, in the order of the source.
pub fn lines(sources: &SourceMap, found: &Estimate) -> (&'static str, Vec<LineCost>) {
    let mut lines: BTreeMap<(u32, usize), LineCost> = BTreeMap::new();
    for p in &found.places {
        let loc = p.loc;
        let file = FileId(loc.file);
        let (_, line, _) = sources.position(Span::new(file, loc.start as usize, loc.end as usize));
        let none = || LineCost {
            file,
            line,
            share: 0.0,
            parts: BTreeMap::new(),
            instructions: 0.0,
            bytes: 0.0,
            needed: 0.0,
            lane_bytes: 0,
            limit: "",
            tensor_copies: false,
            conflicts: 0.0,
            tile_bytes: 0,
            registers: 0,
        };
        let cost = lines.entry((loc.file, line)).or_insert_with(none);
        for (part, us) in &p.parts {
            *cost.parts.entry(part).or_default() += us;
        }
        cost.instructions += p.instructions;
        cost.bytes += p.bytes;
        cost.needed += p.needed;
        cost.tensor_copies |= p.tensor_copies;
        if p.lane_bytes > 0 && (cost.lane_bytes == 0 || p.lane_bytes < cost.lane_bytes) {
            (cost.lane_bytes, cost.limit) = (p.lane_bytes, p.limit);
        }
        cost.conflicts += p.conflicts;
        cost.tile_bytes = cost.tile_bytes.max(p.tile_bytes);
        cost.registers = cost.registers.max(p.registers);
    }
    let mut lines: Vec<LineCost> = lines.into_values().collect();
    let unit = unit(found, &lines);
    let all = sum(&lines, unit).max(f64::MIN_POSITIVE);
    for line in &mut lines {
        line.share = line.parts.get(unit).copied().unwrap_or(0.0) / all;
    }
    (unit, lines)
}

/// The time of a unit for all lines.
fn sum(lines: &[LineCost], unit: &str) -> f64 {
    lines.iter().filter_map(|c| c.parts.get(unit)).sum()
}

/// The unit whose time is divided among the lines: the one that bounds the kernel. Latency belongs to no line: there, the
/// unit that works most counts.
fn unit(found: &Estimate, lines: &[LineCost]) -> &'static str {
    match found.parts.first().map_or("latency", |(bound, _)| bound) {
        // Every byte from memory comes through the shared cache.
        "memory" if sum(lines, "L2") > 0.0 => "L2",
        bound if sum(lines, bound) > 0.0 => bound,
        _ => {
            let parts = found.parts.iter().map(|(part, _)| *part).filter(|part| sum(lines, part) > 0.0);
            parts.max_by(|a, b| sum(lines, a).total_cmp(&sum(lines, b))).unwrap_or("instructions")
        }
    }
}
