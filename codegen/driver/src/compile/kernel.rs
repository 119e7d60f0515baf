//! The input and output of code generation as plain data: [`Request`], [`Kernel`], [`Cubin`].
//!
//! Guarantees that everything here depends only on the request: no times, no paths of the host.

use serde::{Deserialize, Serialize};
use tk_bundle::TensorMap;
use tk_gpu::ir::cluster::blocks_for;
use tk_gpu::ir::kernel::{Remark, Shortage};
use tk_gpu::ir::warps::WARPGROUP_WARPS;
use tk_gpu::{ArgFacts, TargetSpec};
use tk_ops::DType;
use tk_runtime::device::LaunchOptions;
use tk_syntax::SourceMap;
use tk_tile::message::Message;
use tk_tile::{FuncId, TileModule};

/// The input of a compilation: an optimized tile module and its entry, for one target.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The kernel and the functions that it calls.
    pub module: &'a TileModule,
    /// The kernel.
    pub entry: FuncId,
    /// The target.
    pub target: &'static TargetSpec,
    /// The shape of a program.
    pub shape: ProgramShape,
    /// The facts about the parameters, in the order of [`Kernel::params`]; nothing is known of parameters beyond the
    /// end.
    pub facts: Vec<ArgFacts>,
    /// The files to which the positions in the module refer.
    pub sources: &'a SourceMap,
}

/// The options of `launch(..)`; all are hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Warps of a program.
    pub warps: u64,
    /// Blocks over which a program is split.
    pub ctas: u64,
    /// Programs of a cluster.
    pub cluster: u64,
    /// Loop iterations in flight (pipeline depth), for loops that do not specify it.
    pub stages: Option<u32>,
    /// The most registers of a lane.
    pub max_regs: Option<u32>,
    /// Minimum resident blocks per multiprocessor.
    pub occupancy: Option<u32>,
}

impl From<&LaunchOptions> for Asked {
    fn from(o: &LaunchOptions) -> Asked {
        let (warps, ctas, cluster) = (o.warps.into(), o.ctas.into(), o.cluster.into());
        Asked { warps, ctas, cluster, stages: o.stages, max_regs: o.max_regs, occupancy: o.occupancy }
    }
}

/// The shape of a program on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// Warps of a program, with the lanes of the target, which supports so many: a power of two, as layouts need, or several
    /// warpgroups, among which the rows of the program may be divided ([`tk_gpu::passes::split_rows`]).
    pub warps: u32,
    /// Blocks over which a program is split, if possible ([`tk_gpu::passes::cluster`]).
    pub blocks: u32,
    /// Programs of a cluster, if they have a load in common ([`tk_gpu::passes::warp_specialize`]).
    pub cluster: u32,
    /// Loop iterations in flight (pipeline depth), for loops that do not specify it.
    pub stages: Option<u32>,
    /// The most registers of a lane, if limited.
    pub registers: Option<u32>,
}

impl ProgramShape {
    /// The smallest register limit of a lane: `ptxas` needs as many for addresses alone.
    const MIN_REGISTERS: u32 = 24;

    /// The shape of a program on a target for the requested options. A program that turns out to stay in one block gets
    /// the warps of one.
    pub fn of(target: &TargetSpec, asked: Asked) -> ProgramShape {
        let [blocks, cluster] =
            [asked.ctas, asked.cluster].map(|n| if target.has_clusters { blocks_for(n) } else { 1 });
        let most = blocks * target.max_threads / target.warp_size;
        let warps = u32::try_from(asked.warps).unwrap_or(most).clamp(1, most);
        let has_groups = target.has_async_mma && blocks == 1 && warps.is_multiple_of(WARPGROUP_WARPS);
        let warps = if has_groups { warps } else { warps.next_power_of_two().min(most) };
        let of_block = (warps / blocks).max(1);
        let of_occupancy = asked.occupancy.map(|n| target.registers_of_launch(of_block.saturating_mul(n)));
        let registers = of_occupancy.into_iter().chain(asked.max_regs).min();
        let registers = registers.map(|n| n.max(Self::MIN_REGISTERS)).filter(|n| *n < target.registers);
        ProgramShape { warps, blocks, cluster, stages: asked.stages, registers }
    }
}

/// The runtime's facts about the arguments of a launch, in the form of code generation.
pub(crate) fn facts(of: &[tk_runtime::compile::ArgFacts]) -> Vec<ArgFacts> {
    of.iter().map(|f| ArgFacts { divisible: f.divisible, one: f.one, positive: f.positive }).collect()
}

/// The texts of the stages between tile IR and binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageTexts {
    /// Laid-out IR.
    pub layout: String,
    /// Drawings of its layouts, as SVG.
    pub pictures: String,
    /// Scheduled IR.
    pub sched: String,
    /// LLVM IR.
    pub llvm: String,
    /// The input of the assembler.
    pub asm: String,
    /// The kernel after each pass, by the name of the pass.
    pub after: Vec<(&'static str, String)>,
    /// `layout` and `sched` with the source position after each instruction.
    pub located: [String; 2],
}

/// A kernel as text for the assembler, with the data for a launcher.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledKernel {
    /// The symbol.
    pub name: String,
    /// Its target.
    pub target: &'static TargetSpec,
    /// Lanes of a block.
    pub threads: u32,
    /// Shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks of a program, adjacent on axis 0.
    pub blocks_per_program: u32,
    /// The parameters in order.
    pub params: Vec<KernelParam>,
    /// The tensor maps of a launch: the very last parameters.
    pub maps: Vec<TensorMap>,
    /// Its messages. If it has some, or if its programs synchronize, the address of control memory is its last
    /// parameter, after the three numbers of programs: [`tk_tile::message::control`].
    pub messages: Vec<Message>,
    /// It has barriers of all programs of a launch, which must run at the same time.
    pub has_grid_barrier: bool,
    /// Loops that have fewer iterations in flight than requested.
    pub shortages: Vec<Shortage>,
    /// Where the fastest instructions do not apply.
    pub remarks: Vec<Remark>,
    /// The input of the assembler; for an object, only if the texts of all stages were requested.
    pub asm: String,
    /// The input of the linker, if LLVM assembles. A cached kernel has none.
    pub object: Option<Vec<u8>>,
    /// The intermediate stages, if requested.
    pub stages: Option<StageTexts>,
}

/// A parameter of a compiled kernel. A view is several: its address, extents and strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParam {
    /// Such as `x`, `x.shape[0]`, `x.strides[1]`.
    pub name: String,
    /// Its kind.
    pub kind: KernelParamKind,
    /// The type of the number, or of the elements at the address.
    pub dtype: DType,
}

/// The kind of a parameter of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelParamKind {
    /// An address in the memory of the device.
    Pointer,
    /// A number of the kernel.
    Scalar,
    /// An extent of a view.
    Extent,
    /// A stride of a view, in elements.
    Stride,
}

/// A binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// The file that the driver loads.
    pub bytes: Vec<u8>,
    /// The resource usage, as reported by the assembler.
    pub report: Resources,
}

/// The resource usage of a binary, as reported by the assembler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// 32-bit registers of a lane.
    pub registers: u32,
    /// Shared memory of a block that is known at assembly. Memory that a launch adds is not included.
    pub static_shared_bytes: u32,
    /// Stack memory of a lane.
    pub stack_bytes: u32,
    /// Bytes of spill stores.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Advice of the assembler about lost performance (its codes C7500 and up), one sentence each.
    pub advice: Vec<String>,
    /// The version of the assembler.
    pub assembler: String,
}

impl Resources {
    /// Returns true if registers are spilled.
    pub fn spills(&self) -> bool {
        self.spill_store_bytes > 0 || self.spill_load_bytes > 0
    }
}
