//! The passes, each a file or a folder; [`crate::pipeline::PASSES`] lists them in order.

pub mod allocate_shared;
pub mod assign_layouts;
pub mod chunk_loads;
pub mod cluster;
pub mod convert_ifs;
pub mod decompose_dot_scaled;
pub mod defer_waits;
pub mod expand_gathers;
pub mod form_tensor_accesses;
pub mod hoist_shared_stores;
pub mod inline_functions;
pub mod insert_barriers;
pub mod insert_proxy_fences;
pub mod insert_store_waits;
pub mod lower_to_shared;
pub mod overlap_products;
pub mod permute_views;
pub mod reallocate_registers;
pub mod rematerialize;
pub mod select_instructions;
pub mod software_pipeline;
pub mod split_dots;
pub mod split_rows;
pub mod split_scans;
pub mod split_stores;
pub mod take_turns;
mod tile_edit;
pub mod tma_reduce;
pub mod tma_stores;
pub mod trim_loops;
pub mod warp_specialize;

use tk_tile::{FuncId, FuncKind, Module};

use crate::ir::kernel::{CompileOptions, Kernel, Remark, Shortage};
use crate::verify::GpuVerifyError;

/// A pass of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name: of its file and its folder in `tests/ir/gpu`, in messages and for `tk build --dump-after`.
    pub name: &'static str,
    /// Its purpose, in one sentence.
    pub purpose: &'static str,
    /// The properties that it requires.
    pub needs: &'static [Property],
    /// The properties that it establishes, for the rest of the pipeline.
    pub leaves: &'static [Property],
    /// How it runs.
    pub run: Run,
}

/// How a pass runs.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Changes tile IR and returns whether it changed anything. If it did, `cleanup` runs too.
    Tile {
        /// Changes verified tile IR.
        run: fn(&mut TileKernel) -> bool,
        /// Target-independent passes that remove what has become unused.
        cleanup: &'static [tk_tile::passes::ModulePass],
    },
    /// Makes a laid-out kernel of tile IR.
    AssignLayouts(fn(TileKernel) -> Kernel),
    /// Changes a kernel with layouts.
    Kernel {
        /// Changes a kernel that the verifier of the previous pass has accepted.
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
    /// The kernel.
    pub kernel: FuncId,
    /// The name of the kernel.
    pub name: String,
    /// The target and the options of its compilation.
    pub options: CompileOptions,
    /// Where shared memory did not suffice.
    pub shortages: Vec<Shortage>,
    /// Where the fastest instructions do not apply.
    pub remarks: Vec<Remark>,
}

impl TileKernel {
    /// Finds the kernel again, by its name: inlining removes functions without callers.
    pub fn find(&mut self) {
        let mut kernels = self.module.funcs.iter().filter(|(_, f)| f.kind == FuncKind::Kernel);
        if let Some((id, _)) = kernels.find(|(_, f)| f.name == self.name) {
            self.kernel = id;
        }
    }
}

/// The properties that passes establish for later ones. A test checks the order of the pipeline against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The kernel is one function without calls.
    OneFunction,
    /// Branches that only choose between numbers are selects.
    SelectedNumbers,
    /// No product has scales.
    PlainDots,
    /// Warps scan parts of their own.
    ShortScans,
    /// Gathers and scatters of neighbours are loads and stores of tiles of pointers.
    ExpandedGathers,
    /// Masked tiles of pointers that TMA can load are loads through views.
    TensorAccesses,
    /// Accesses through views whose contiguous dimension is known have it last.
    LastDimensionContiguous,
    /// No product has a K for which its operands exceed shared memory.
    ShortDots,
    /// Warpgroups have rows of their own where the program asks for a number of warps that layouts do not have.
    RowsOfGroups,
    /// Warpgroups have iterations of their own of loops that ask for it.
    TurnsOfGroups,
    /// Loops end where none of their values changes any more.
    TrimmedLoops,
    /// Tiles have layouts, and each change of layout is an instruction.
    Layouts,
    /// Data that is exchanged between warps goes through shared memory.
    SharedAccesses,
    /// Tiles that TMA adds to memory are in shared memory.
    TmaReductions,
    /// The loads of a producer warp are in its part of the kernel.
    ProducerWarps,
    /// Products of a loop that depend on each other overlap.
    OverlappedProducts,
    /// Loads of loops run ahead of their use.
    PipelinedLoads,
    /// Products of a block are waited for where their results are needed.
    DeferredWaits,
    /// TMA stores are instructions.
    TmaStores,
    /// Stores to shared memory are at their final positions.
    PlacedStores,
    /// TMA stores of loops are waited for.
    StoreWaits,
    /// The number of blocks of a program is final.
    Clusters,
    /// Loads for which lanes lack registers are in chunks.
    ChunkedLoads,
    /// Every buffer has its offset in shared memory.
    Offsets,
    /// Barriers separate accesses of different threads to shared memory.
    Barriers,
    /// Fences make writes of threads visible to the async proxy.
    ProxyFences,
    /// Tiles of halves are kept as such behind exchanges between warps.
    NarrowTiles,
    /// Stores whose computation needs more registers than lanes have are done in slices.
    SplitStores,
    /// Registers are moved from producer warps to the others.
    Registers,
    /// Every access to memory has its width and its instruction.
    Instructions,
}
