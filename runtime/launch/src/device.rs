//! The interface to devices: [`Device`] runs a specialization for a [`crate::Session`].
//!
//! Without a device the interpreter runs it. A device sees the same host memory as the interpreter: buffers of a
//! [`Memory`], in which a stored pointer is a virtual address of that memory.

use std::time::Duration;

use tk_interp::{Arg, Fault, Memory, Printed};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::Loc;

use crate::choice::Place;
use crate::compile::Compile;
use crate::session::Compiled;

/// Where kernels run.
pub trait Device: Send + Sync {
    /// Runs all programs of a grid, which has no empty axis. `args` fit the parameters of the entry function, one each,
    /// workspaces included. When this returns, all that the kernel wrote is in `memory`.
    fn launch(
        &self,
        compiled: &Compiled,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
        memory: &Memory,
    ) -> Result<(), Fault>;

    /// What it is, and the facts that launch contracts and compile-time code may ask for.
    fn place(&self) -> Place;

    /// The compiler whose cost model predicts times of launches; `None` for a device of which none knows anything.
    fn compiler(&self) -> Option<&dyn Compile> {
        None
    }

    /// How long the last launch took on the device, without copies; `None` if it has no clock.
    fn last_time(&self) -> Option<Duration> {
        None
    }
}

/// The options of a launch.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// Warps of one program.
    pub warps: u32,
    /// Blocks that a program is divided among; 1 where all programs run at the same time.
    pub ctas: u32,
    /// Programs of a cluster; 1 where all programs run at the same time.
    pub cluster: u32,
    /// Trips of a loop that are on their way at once, for loops that do not say it.
    pub stages: Option<u32>,
    /// The most registers of one lane.
    pub max_regs: Option<u32>,
    /// Programs that a multiprocessor should hold at once.
    pub occupancy: Option<u32>,
    /// All programs run at the same time.
    pub cooperative: bool,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// The receiver of its output.
    pub printed: Printed,
}

impl LaunchOptions {
    /// The options that a tuner chooses: what the binary depends on.
    pub fn hints(&self) -> [Option<u32>; 6] {
        let LaunchOptions { warps, ctas, cluster, stages, max_regs, occupancy, .. } = *self;
        [Some(warps), Some(ctas), Some(cluster), stages, max_regs, occupancy]
    }

    /// Warps of a program whose kernel does not say it: one for each of the four schedulers that a multiprocessor has.
    /// A device with another number of them would want another.
    pub const WARPS: u32 = 4;

    /// From the options of a plan: `launch(warps = 8, cooperative = true)`.
    pub fn of(launch: &[(String, i64)]) -> LaunchOptions {
        let given = |name: &str| launch.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let number = |name: &str| given(name).map(|v| u32::try_from(v).unwrap_or(u32::MAX));
        let cooperative = given("cooperative").is_some_and(|v| v != 0);
        LaunchOptions {
            ctas: number("ctas").filter(|_| !cooperative).unwrap_or(1),
            cluster: number("cluster").filter(|_| !cooperative).unwrap_or(1),
            warps: number("warps").unwrap_or(Self::WARPS),
            stages: number("stages"),
            max_regs: number("max_regs").filter(|n| *n > 0),
            occupancy: number("occupancy").filter(|n| *n > 0),
            cooperative,
            timeout: None,
            printed: Printed::default(),
        }
    }
}

/// The errors of a kernel as the fault of its launch: one sentence with advice. A diagnostic without a place is about
/// the kernel.
pub fn fault_of(wrong: &[Diagnostic]) -> Fault {
    let error = wrong.iter().find(|d| d.is_error());
    let Some(d) = error.or(wrong.first()) else {
        return Fault::new(codes::INTERNAL.0, "internal error: a compiler failed without saying why");
    };
    let mut fault = Fault::new(d.code.0, with_notes(d));
    let span = d.primary.span;
    if span != Span::default() {
        fault.loc = Some(Loc { file: span.file.0, start: span.start, end: span.end });
    }
    fault
}

/// The message of a diagnostic and its notes, on one line.
pub(crate) fn with_notes(d: &Diagnostic) -> String {
    std::iter::once(d.message.as_str())
        .chain(d.notes.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join("; ")
}
