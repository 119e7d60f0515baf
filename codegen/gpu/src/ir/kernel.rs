//! Owns the kernels of the last two stages: [`LaidOut`] (which thread owns each element) and [`Scheduled`] (what lies in shared
//! memory, and where threads wait for each other).
//!
//! Guarantees that either is only made by its verifier.

use tk_tile::{Func, Id, Loc, Module, ValueId};

use crate::ir::params::ArgFacts;
use crate::layout::{Layout, Threads};
use crate::target::spec::TargetSpec;

/// An interned layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(pub u32);

impl std::fmt::Display for LayoutId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "l{}", self.0)
    }
}

/// Interned layouts.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    list: Vec<Layout>,
}

impl Layouts {
    /// The id of a layout.
    pub fn intern(&mut self, layout: Layout) -> LayoutId {
        if let Some(i) = self.list.iter().position(|l| *l == layout) {
            return LayoutId(i as u32);
        }
        self.list.push(layout);
        LayoutId(self.list.len() as u32 - 1)
    }

    /// The layout of an id that this table issued.
    pub fn get(&self, id: LayoutId) -> &Layout {
        &self.list[id.0 as usize]
    }

    /// The layout of an id, if this table issued it.
    pub fn find(&self, id: LayoutId) -> Option<&Layout> {
        self.list.get(id.0 as usize)
    }

    /// All of them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (LayoutId, &Layout)> {
        self.list.iter().enumerate().map(|(i, l)| (LayoutId(i as u32), l))
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// The machine.
    pub spec: &'static TargetSpec,
    /// Warps of a program, as `launch(warps = n)` counts them.
    pub warps: u32,
    /// Blocks that the warps of a program are divided among, as `launch(ctas = n)` asks for; 1, 2, 4 or 8, and 1 where
    /// blocks do not reach each other. Layouts know nothing of it: the number of a warp is that in the program.
    pub blocks: u32,
    /// Iterations of a loop that are on their way at once where the loop does not say it, from `launch(stages = n)`; 1 for one
    /// after the other.
    pub stages: Option<u32>,
    /// The most stages that any loop gets, whatever is asked for: a limit of the compiler, which tries fewer where the shared
    /// memory does not suffice.
    pub most_stages: u32,
    /// How operands of products are brought, likewise a limit of the compiler.
    pub operands: Operands,
    /// The most registers of a lane, where somebody limits them.
    pub registers: Option<u32>,
    /// What is known of the flattened parameters.
    pub facts: Vec<ArgFacts>,
}

impl CompileOptions {
    /// The threads of a program.
    pub fn threads(&self) -> Threads {
        Threads {
            lane_bits: self.spec.warp_size.trailing_zeros(),
            warp_bits: self.warps.next_power_of_two().trailing_zeros(),
        }
    }
}

/// A kernel of one function with the layout of every tile.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The types, and the kernel as the only function.
    pub module: Module,
    /// The layouts.
    pub layouts: Layouts,
    /// The layout of each value; scalars and views have none.
    pub of: Vec<Option<LayoutId>>,
    /// What it is compiled for.
    pub options: CompileOptions,
    /// What lies in shared memory; empty before it is scheduled.
    pub buffers: Vec<Buffer>,
    /// The buffer through which warps vote, on targets that have no instruction for it; in use all the time.
    pub vote: Option<usize>,
    /// What shared memory does not suffice for.
    pub shortages: Vec<Shortage>,
}

/// What a kernel does otherwise than was asked for, or than is fastest, since shared memory does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Where.
    pub loc: Option<Loc>,
    /// What is done instead.
    pub remedy: Remedy,
}

/// A way to need less shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A loop has fewer stages than was asked for.
    Stages {
        /// How many were asked for.
        asked: u32,
        /// How many fit.
        fits: u32,
    },
    /// A product is computed in chunks along K.
    Chunks {
        /// K of the product.
        k: u32,
        /// K of a chunk.
        chunk: u32,
    },
    /// An operand is loaded into registers, by each warp that multiplies it.
    Registers,
}

/// How operands of products that are loaded from device memory reach their instructions: which compiling tries where shared
/// memory does not suffice for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// Larger products are computed in chunks of this K, a power of two.
    pub most_k: u32,
    /// What is loaded outside of the loop that multiplies it stays in registers.
    pub invariant_in_registers: bool,
}

impl Operands {
    /// As it is fastest: whole, through shared memory.
    pub const SHARED: Operands = Operands { most_k: u32::MAX, invariant_in_registers: false };
}

/// Iterations on their way at once where nobody says it: one is computed while two are loaded, which hides the latency of device
/// memory behind an iteration of 64 x 64 x 32 products and more. A device with more latency or less shared memory would want
/// another number.
pub const STAGES: u32 = 3;

/// Where a buffer, or a stage of a multi-stage buffer, may begin: what the widest access of a lane needs on every target.
pub const ALIGN: u32 = 16;

/// A region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its size.
    pub bytes: u32,
    /// Where it begins: a multiple of 16. Buffers whose contents are not alive at the same time may share places.
    pub offset: u32,
}

impl Kernel {
    /// The function.
    pub fn func(&self) -> &Func {
        &self.module.funcs[tk_tile::FuncId(0)]
    }

    /// The layout of a value; `None` for scalars and views.
    pub fn layout(&self, v: ValueId) -> Option<&Layout> {
        self.of.get(v.index()).copied().flatten().and_then(|l| self.layouts.find(l))
    }

    /// Threads of a block: its part of those of the program, and of the warps that bring tiles if there are some.
    pub fn block_threads(&self) -> u32 {
        self.options.threads().count() / self.options.blocks.max(1)
            + crate::ir::warps::producers(self) * self.options.spec.warp_size
    }

    /// The most registers of a lane with which a block can begin.
    pub fn registers_of_launch(&self) -> u32 {
        let most = self.options.spec.registers_of_launch(self.block_threads() / self.options.spec.warp_size);
        self.options.registers.map_or(most, |n| n.min(most))
    }

    /// Bytes of shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.buffers.iter().map(|b| b.offset + b.bytes).max().unwrap_or(0)
    }
}

/// Bytes of the two barriers of a stage.
pub const BARRIERS: u32 = 16;
