//! Kernels of the last two stages: [`LaidOut`] (which thread owns each element) and [`Scheduled`] (what is in shared
//! memory, and where threads wait for each other).
//!
//! Guarantees that only its verifier constructs either.

use std::collections::BTreeSet;

use tk_ops::Op;
use tk_tile::{BlockId, Func, Id, Loc, Module, ValueId, walk};

use crate::ir::op::GpuOp;
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

    /// All layouts, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (LayoutId, &Layout)> {
        self.list.iter().enumerate().map(|(i, l)| (LayoutId(i as u32), l))
    }
}

/// The target and the options of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// The target.
    pub spec: &'static TargetSpec,
    /// Warps of a group: of a program, as `launch(warps = n)` counts them, unless it has several groups.
    pub warps: u32,
    /// Warpgroups that have rows of their own, and share only what a producer warp loads for all of them
    /// ([`crate::passes::split_rows`]).
    pub groups: u32,
    /// Blocks over which the warps of a program are split, as `launch(ctas = n)` asks for; 1, 2, 4 or 8, and 1 on
    /// targets without clusters. Layouts are independent of it: warps are numbered within the program.
    pub blocks: u32,
    /// Programs that follow one another on axis 2 of the grid and form a cluster, as `launch(cluster = n)` asks for; 1, 2,
    /// 4 or 8, and 1 where they have no load in common ([`crate::passes::warp_specialize`]).
    pub cluster: u32,
    /// Loop iterations in flight for loops that do not specify it, from `launch(stages = n)`; 1 for no overlap.
    pub stages: Option<u32>,
    /// The most stages of any loop, whatever is requested: a limit of the compiler, which tries fewer where shared
    /// memory does not suffice.
    pub most_stages: u32,
    /// How operands of products reach their instructions, likewise a limit of the compiler.
    pub operands: Operands,
    /// Programs may be divided among warpgroups, likewise.
    pub may_have_groups: bool,
    /// The most registers of a lane, if limited.
    pub registers: Option<u32>,
    /// The facts about the flattened parameters.
    pub facts: Vec<ArgFacts>,
}

impl CompileOptions {
    /// The threads of a group: those that layouts know.
    pub fn threads(&self) -> Threads {
        Threads {
            lane_bits: self.spec.warp_size.trailing_zeros(),
            warp_bits: self.warps.next_power_of_two().trailing_zeros(),
        }
    }

    /// The warps of all groups.
    pub fn all_warps(&self) -> u32 {
        self.groups << self.threads().warp_bits
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
    pub value_layouts: Vec<Option<LayoutId>>,
    /// The options of its compilation.
    pub options: CompileOptions,
    /// The shared memory buffers; empty before it is scheduled.
    pub buffers: Vec<Buffer>,
    /// The buffer through which warps vote, on targets without an instruction for it; always in use.
    pub vote: Option<usize>,
    /// Where shared memory does not suffice.
    pub shortages: Vec<Shortage>,
    /// Where the fastest instructions do not apply.
    pub remarks: Vec<Remark>,
}

/// An optimization that does not apply, with the condition that does not hold, or one that a loop has only under conditions, as a
/// sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The source position.
    pub loc: Option<Loc>,
    /// What does not apply, and why.
    pub text: String,
}

/// Where a kernel differs from what was requested, or from what is fastest, because shared memory does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The source position.
    pub loc: Option<Loc>,
    /// The fallback.
    pub remedy: Remedy,
}

/// A way to need less shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A loop has fewer stages than requested.
    Stages {
        /// The number requested.
        asked: u32,
        /// The number that fits.
        fits: u32,
    },
    /// A product is computed in chunks along K.
    Chunks {
        /// K of the product.
        k: u32,
        /// K of a chunk.
        chunk: u32,
    },
    /// An operand is loaded into registers by each warp that multiplies it.
    Registers,
}

/// How operands of products that are loaded from device memory reach their instructions; the compiler tries the
/// alternatives where shared memory does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// Larger products are computed in chunks of this K, a power of two.
    pub most_k: u32,
    /// Operands that are loaded outside of the loop that multiplies them stay in registers.
    pub invariant_in_registers: bool,
}

impl Operands {
    /// The fastest: whole, through shared memory.
    pub const SHARED: Operands = Operands { most_k: u32::MAX, invariant_in_registers: false };
}

/// The default number of iterations in flight: one is computed while two are loaded, which hides the latency of device
/// memory after an iteration of 64 x 64 x 32 products and more. A device with more latency or less shared memory would
/// need another number.
pub const STAGES: u32 = 3;

/// The alignment of a buffer, and of a stage of a multi-stage buffer: that of the widest access of a lane on every
/// target.
pub const ALIGN: u32 = 16;

/// The widest alignment of a buffer: the period of the widest swizzle of a wgmma operand.
pub const WIDEST_ALIGN: u32 = 1024;

/// A region of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its size.
    pub bytes: u32,
    /// Its offset: a multiple of 16. Buffers whose contents are not live at the same time may overlap.
    pub offset: u32,
    /// All warpgroups access the same; otherwise each has a copy, [`Kernel::group_bytes`] after that of the group
    /// before it.
    pub is_common: bool,
}

impl Buffer {
    /// A buffer of which each warpgroup has a copy, not yet placed.
    pub fn new(bytes: u32) -> Buffer {
        Buffer { bytes, offset: 0, is_common: false }
    }

    /// A buffer that all warpgroups access, not yet placed.
    pub fn common(bytes: u32) -> Buffer {
        Buffer { is_common: true, ..Buffer::new(bytes) }
    }
}

impl Kernel {
    /// The function.
    pub fn func(&self) -> &Func {
        &self.module.funcs[tk_tile::FuncId(0)]
    }

    /// The layout of a value; `None` for scalars and views.
    pub fn layout(&self, v: ValueId) -> Option<&Layout> {
        self.value_layouts.get(v.index()).copied().flatten().and_then(|l| self.layouts.find(l))
    }

    /// Gives a value a layout.
    pub fn set_layout(&mut self, v: ValueId, layout: Option<LayoutId>) {
        if self.value_layouts.len() <= v.index() {
            self.value_layouts.resize(v.index() + 1, None);
        }
        if let Some(slot) = self.value_layouts.get_mut(v.index()) {
            *slot = layout;
        }
    }

    /// Threads of a block: its share of those of the program, and of the producer warps if there are any.
    pub fn block_threads(&self) -> u32 {
        self.options.threads().count() * self.options.groups / self.options.blocks.max(1)
            + crate::ir::warps::producers(self) * self.options.spec.warp_size
    }

    /// The most registers of a lane at the start of a block.
    pub fn registers_of_launch(&self) -> u32 {
        let most = self.options.spec.registers_of_launch(self.block_threads() / self.options.spec.warp_size);
        self.options.registers.map_or(most, |n| n.min(most))
    }

    /// The registers of a lane with which a multiprocessor runs two programs, or two blocks of them, or as many as the launch
    /// asks for.
    pub fn registers_of_two_programs(&self) -> u32 {
        let warps = self.options.all_warps() / self.options.blocks.max(1);
        let of_two = self.options.spec.registers_of_launch(2 * warps);
        self.options.registers.map_or(of_two, |n| n.min(of_two))
    }

    /// Returns true if the program has matrix products.
    pub fn multiplies(&self) -> bool {
        let func = self.func();
        walk::insts(func)
            .into_iter()
            .map(|i| &func.insts[i])
            .any(|inst| matches!(GpuOp::of(inst), Some(GpuOp::Mma(_))) || matches!(inst.op, Op::Dot(_)))
    }

    /// All blocks of instructions.
    pub fn blocks(&self) -> BTreeSet<BlockId> {
        let func = self.func();
        let nested = walk::insts(func).into_iter().flat_map(|i| func.insts[i].blocks.clone());
        nested.chain([func.body]).collect()
    }

    /// Bytes of shared memory.
    pub fn shared_bytes(&self) -> u32 {
        let more = (self.options.groups - 1) * self.group_bytes();
        let end = |b: &Buffer| b.offset + b.bytes + if b.is_common { 0 } else { more };
        self.buffers.iter().map(end).max().unwrap_or(0)
    }

    /// Bytes between the copies of a buffer that warpgroups have; 0 for one group. A multiple of each alignment.
    pub fn group_bytes(&self) -> u32 {
        let own = self.buffers.iter().filter(|b| !b.is_common && self.options.groups > 1);
        let end = own.map(|b| b.offset + b.bytes).max().unwrap_or(0);
        end.next_multiple_of(WIDEST_ALIGN)
    }
}

/// Bytes of the two mbarriers of a stage.
pub const BARRIERS: u32 = 16;
