//! The passes, each a file or a folder; [`crate::pipeline::PASSES`] has their order.

pub mod allocate_shared;
pub mod assign_layouts;
pub mod chunk_loads;
pub mod cluster;
pub mod decompose_dot_scaled;
pub mod form_tensor_accesses;
pub mod hoist_shared_stores;
pub mod inline_functions;
pub mod insert_barriers;
pub mod insert_proxy_fences;
pub mod lower_to_shared;
pub mod reallocate_registers;
pub mod select_instructions;
pub mod software_pipeline;
pub mod split_dots;
pub mod split_stores;
pub mod tma_stores;
pub mod warp_specialize;

use tk_tile::{FuncId, FuncKind, Module};

use crate::ir::kernel::{CompileOptions, Kernel, Shortage};
use crate::verify::GpuVerifyError;

/// A pass of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name: of its file, of its folder in `tests/ir/gpu`, in messages and for `tk build --dump-after`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub purpose: &'static str,
    /// What passes before it must have left.
    pub needs: &'static [Property],
    /// What holds after it, for the rest of the pipeline.
    pub leaves: &'static [Property],
    /// How it runs.
    pub run: Run,
}

/// How a pass runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// It changes tile IR and says whether it changed something. If it did, `cleanup` runs too.
    Tile {
        /// Changes verified tile IR.
        run: fn(&mut TileKernel) -> bool,
        /// Target-independent passes that take away what is without use then.
        cleanup: &'static [tk_tile::passes::ModulePass],
    },
    /// It makes a laid-out kernel of tile IR.
    AssignLayouts(fn(TileKernel) -> Kernel),
    /// It changes a kernel with layouts.
    Kernel {
        /// Changes a kernel for which the verifier of the pass before it holds.
        run: fn(&mut Kernel),
        /// The invariants that hold after it.
        verify: fn(&Kernel) -> Result<(), GpuVerifyError>,
    },
}

/// A kernel before layouts.
#[derive(Clone, Debug)]
pub struct TileKernel {
    /// Tile IR.
    pub module: Module,
    /// The kernel in it.
    pub kernel: FuncId,
    /// The name of the kernel.
    pub name: String,
    /// What it is compiled for.
    pub options: CompileOptions,
    /// Where shared memory did not suffice.
    pub shortages: Vec<Shortage>,
}

impl TileKernel {
    /// Finds the kernel again, by its name: functions that no one calls are gone after inlining.
    pub fn find(&mut self) {
        let mut kernels = self.module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel);
        if let Some((id, _)) = kernels.find(|(_, f)| f.name == self.name) {
            self.kernel = id;
        }
    }
}

/// What passes leave for later ones. A test holds the order of the pipeline against these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The kernel is one function without calls.
    OneFunction,
    /// No product has scales.
    PlainDots,
    /// Masked tiles of pointers that TMA can load are loads through views.
    TensorAccesses,
    /// No product has a longer K than its operands have shared memory for.
    ShortDots,
    /// Tiles have layouts, and each change of layout is an instruction.
    Layouts,
    /// What moves between warps goes through shared memory.
    SharedAccesses,
    /// What a producer warp loads is in its part of the kernel.
    ProducerWarps,
    /// Loads of loops run ahead of their use.
    PipelinedLoads,
    /// Stores that TMA does are instructions of their own.
    TmaStores,
    /// Stores to shared memory stand where the pipeline wants them.
    PlacedStores,
    /// The number of blocks of a program is final.
    Clusters,
    /// Loads for which lanes have no registers are in chunks.
    ChunkedLoads,
    /// Every buffer has its offset in shared memory.
    Offsets,
    /// Barriers stand between accesses of different threads to shared memory.
    Barriers,
    /// Fences make writes of threads visible to the async proxy.
    ProxyFences,
    /// What is computed from more tiles than lanes have registers for is stored in slices.
    SplitStores,
    /// Registers are moved from producer warps to the others.
    Registers,
    /// Every access to memory has its width and its instruction.
    Instructions,
}
