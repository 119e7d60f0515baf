//! Owns what goes into code generation and what comes out: [`Request`], [`CompiledKernel`], [`Cubin`] as plain data.
//!
//! Guarantees that everything here depends on the request alone: no times, no paths of the machine that compiled.

use serde::{Deserialize, Serialize};
use tk_bundle::TensorMap;
use tk_gpu::ir::cluster::blocks_for;
use tk_gpu::ir::kernel::Shortage;
use tk_gpu::{ArgFacts, TargetSpec};
use tk_ops::DType;
use tk_runtime::device::LaunchOptions;
use tk_syntax::SourceMap;
use tk_tile::message::Message;
use tk_tile::{FuncId, TileModule};

/// What to compile: a tile module behind the passes and its entry, for one target.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The kernel and what it calls.
    pub module: &'a TileModule,
    /// The kernel.
    pub entry: FuncId,
    /// The machine.
    pub target: &'static TargetSpec,
    /// How a program is made.
    pub shape: ProgramShape,
    /// What is known of the parameters, in the order of [`CompiledKernel::params`]; of those behind the end, nothing is.
    pub facts: Vec<ArgFacts>,
    /// The files that the places in the module refer to.
    pub sources: &'a SourceMap,
}

/// What `launch(..)` asks for; hints, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Warps of a program.
    pub warps: u64,
    /// Blocks that a program is divided among.
    pub ctas: u64,
    /// Loop iterations in flight (pipeline depth), for loops that do not say it.
    pub stages: Option<u32>,
    /// The most registers of a lane.
    pub max_regs: Option<u32>,
    /// Blocks that a multiprocessor should hold at once.
    pub occupancy: Option<u32>,
}

impl From<&LaunchOptions> for Asked {
    fn from(o: &LaunchOptions) -> Asked {
        let (warps, ctas) = (o.warps.into(), o.ctas.into());
        Asked { warps, ctas, stages: o.stages, max_regs: o.max_regs, occupancy: o.occupancy }
    }
}

/// How a program is made for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramShape {
    /// Warps of a program, as many lanes each as the target says: a power of two, as layouts need, that the target has.
    pub warps: u32,
    /// Blocks that a program is divided among, where it can be ([`tk_gpu::passes::cluster`]).
    pub blocks: u32,
    /// Loop iterations in flight (pipeline depth), for loops that do not say it.
    pub stages: Option<u32>,
    /// The most registers of a lane, where there is such a limit.
    pub registers: Option<u32>,
}

impl ProgramShape {
    /// The fewest registers to which a lane is limited: no kernel does with fewer than `ptxas` takes for addresses alone.
    const FEWEST: u32 = 24;

    /// What a program gets on a target for what was asked.
    pub fn of(target: &TargetSpec, asked: Asked) -> ProgramShape {
        let most = target.max_threads / target.warp_size;
        let warps = u32::try_from(asked.warps).unwrap_or(most).clamp(1, most).next_power_of_two().min(most);
        let blocks = if target.has_clusters { blocks_for(asked.ctas) } else { 1 };
        let of_block = (warps / blocks).max(1);
        let held = asked.occupancy.map(|n| target.registers_of_launch(of_block.saturating_mul(n)));
        let registers = held.into_iter().chain(asked.max_regs).min();
        let registers = registers.map(|n| n.max(Self::FEWEST)).filter(|n| *n < target.registers);
        ProgramShape { warps, blocks, stages: asked.stages, registers }
    }
}

/// What the runtime knows of the arguments of a launch, in the words of code generation.
pub(crate) fn facts(of: &[tk_runtime::compile::ArgFacts]) -> Vec<ArgFacts> {
    of.iter().map(|f| ArgFacts { divisible: f.divisible, one: f.one, positive: f.positive }).collect()
}

/// The texts of the stages between tile IR and binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageTexts {
    /// Who holds which element.
    pub layout: String,
    /// Pictures of the layouts in it, as SVG.
    pub pictures: String,
    /// When and where.
    pub sched: String,
    /// LLVM IR.
    pub llvm: String,
    /// What the assembler reads.
    pub asm: String,
    /// The kernel after each pass, by the name of the pass.
    pub after: Vec<(&'static str, String)>,
    /// `layout` and `sched` with the place in the source behind each instruction.
    pub located: [String; 2],
}

/// A kernel as text for the assembler, with what a launcher needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledKernel {
    /// The symbol.
    pub name: String,
    /// The machine that it is for.
    pub target: &'static TargetSpec,
    /// Lanes of a block.
    pub threads: u32,
    /// Shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks of a program, next to each other on axis 0.
    pub blocks_per_program: u32,
    /// The parameters in order.
    pub params: Vec<KernelParam>,
    /// What a launch describes to TMA: the very last parameters.
    pub maps: Vec<TensorMap>,
    /// What it may say. If it may, or if its programs meet, the address of control memory is its last parameter, behind
    /// the three numbers of programs: [`tk_tile::message::control`].
    pub messages: Vec<Message>,
    /// Whether all programs of a launch meet: they must run at the same time.
    pub meets: bool,
    /// Loops that have fewer iterations in flight than requested.
    pub shortages: Vec<Shortage>,
    /// What the assembler reads; of an object, only if the texts of all stages were asked for.
    pub asm: String,
    /// What the linker reads, where LLVM assembles. What comes from the cache has none.
    pub object: Option<Vec<u8>>,
    /// What it went through, if that was asked for.
    pub stages: Option<StageTexts>,
}

/// A parameter of a compiled kernel. A view is several: its address, extents and strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParam {
    /// Such as `x`, `x.shape[0]`, `x.strides[1]`.
    pub name: String,
    /// What it holds.
    pub kind: KernelParamKind,
    /// The type of the number, or of the elements behind the address.
    pub dtype: DType,
}

/// What a parameter of a compiled kernel holds.
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
    /// What the assembler says about it.
    pub report: Resources,
}

/// What a binary needs, in the words of the assembler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// 32-bit registers of a lane.
    pub registers: u32,
    /// Shared memory of a block that is known when it is assembled. What a launch adds is not in it.
    pub static_shared_bytes: u32,
    /// Memory of a lane that its registers do not hold.
    pub stack_bytes: u32,
    /// Bytes of registers that are written to memory for want of registers.
    pub spill_store_bytes: u32,
    /// Bytes of registers that are read back.
    pub spill_load_bytes: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// Advice of the assembler about lost performance (its codes C7500 and up), one sentence each.
    pub advice: Vec<String>,
    /// The version of the assembler.
    pub assembler: String,
}

impl Resources {
    /// Whether registers did not suffice.
    pub fn spills(&self) -> bool {
        self.spill_store_bytes > 0 || self.spill_load_bytes > 0
    }
}
