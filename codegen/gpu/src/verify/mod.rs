//! Verifies the numbered invariants of kernels of the last two stages, and constructs the types that guarantee them:
//! [`LaidOutModule`] and [`ScheduledModule`].
//!
//! Requires of a kernel from text only that it has one function. Guarantees a result without a panic; the first
//! violation in program order is reported.
//!
//! Of both stages:
//!
//! | | |
//! |---|---|
//! | L01 | The module is one kernel without calls and host operations, and what [`tk_tile::verify`] numbers holds for it. |
//! | L02 | Every operation belongs to the stage: before it is scheduled a kernel has conversions and the number of the warpgroup, but no other target operation, no parts of reductions and no buffers. |
//! | L03 | A tile of rank 1 and more has a layout; scalars and views have none. |
//! | L04 | The dimensions of a layout are divided as the extents of its tile are. |
//! | L05 | A layout has the lanes and warps that the kernel is compiled for, and no blocks. |
//! | L06 | Some thread owns each element of an atom. |
//! | L07 | The tiles of an elementwise operation have one layout; so have those of an access to memory, the positions and the result of a `gather`, and accumulator and result of a product. |
//! | L08 | The result of a reduction has the layout of its operand without the dimension. A scan keeps the layout. Reductions by a function of the user and scans stay inside of warps. |
//! | L09 | The result of `broadcast`, `permute` and a `reshape` that only adds or removes dimensions of extent 1 has the layout that moves no element. `join` of scalars gives both to each thread, and `split` to scalars takes them from there. |
//! | L10 | Values that enter and leave blocks, or are carried by loops, keep their layouts. |
//! | L11 | A `convert` has one operand, one result of the same type, and nothing else. |
//!
//! Of scheduled kernels:
//!
//! | | |
//! |---|---|
//! | S01 | No operation needs an element that another warp owns: no conversion between warps, no reduction over several of them, no rearrangement that moves elements, and no use of shared memory other than the operations of S03. |
//! | S02 | A partial reduction has a result with the layout [`crate::layout::Layout::partial`]; the reduction of the partial results has all of them in registers of each thread, and states how many of them are of elements. |
//! | S03 | An operation on shared memory has the operands, results and attributes that it needs, names existing buffers, and all accesses to a buffer have elements of one size. |
//! | S04 | Every access is inside of its buffer, and `bases` map no two elements to one offset. |
//! | S05 | Buffers begin at multiples of 16 bytes, operands of wgmma at multiples of the period of their order, end below 4 GiB, and do not overlap while both are live: from the first store to the last read, and through loops that contain only some of the accesses. |
//! | S06 | An element that is read from a buffer was stored to it before, in the same block or an enclosing one, or by a copy that runs ahead. |
//! | S07 | A barrier separates two accesses to the same bytes of shared memory of which one is a store, on every path through branches and loops; except for stores to other elements of a buffer, additions, accesses of each thread to its `own` elements, and copies and stores `ahead` into other stages of a multi-stage buffer. |
//! | S08 | A program of several blocks contains only operations that [`crate::passes::cluster`] allows, with a warp for each block, on a target with clusters. A remote store alone fills its buffer, for one load. Blocks wait for each other before the first store to shared memory. Programs of a cluster that load together wait for each other when their mbarriers are initialized, and at the end. |
//! | S09 | Every access to memory has its width or its instruction: a power of two of elements that is aligned in memory, adjacent in registers, and inside of view and mask as a whole or not at all. Bounds are left to the hardware only along the axis along which lanes differ. |
//! | S10 | Each TMA pipeline is initialized, filled with as many bytes as its producer announces, waited for and released: each kind of wait has an arrival somewhere in the kernel. |
//! | S11 | What threads write to a buffer that wgmma or TMA reads is followed by a proxy fence, and then by a barrier, before the read. |
//! | S12 | A loop whose halves of the warps are in opposite phases is after a barrier and between the waits of the upper and of the lower half. Its body has no other barrier than the ends of its two phases, first that before products; only the first phase accesses shared memory: it reads stages of buffers that have two, and stores to the others. |

mod async_copies;
mod barriers;
mod fault;
mod forward;
mod instructions;
mod layouts;
mod mma;
mod opposite_phases;
mod proxy_fences;
mod scheduled;
mod shared_memory;
mod tma_pipelines;
mod warp_specialize;

use std::ops::Deref;

use tk_ops::{ControlOp, Op};
use tk_tile::verify::{is_machine, verify_machine};
use tk_tile::{FuncKind, Inst};

use self::fault::{Check, each, ensure, fault, whole};
pub use self::fault::{GpuInvariant, GpuVerifyError};
use crate::ir::cluster;
use crate::ir::kernel::Kernel;
use crate::ir::op::GpuOp;

macro_rules! stage {
    ($(#[$doc:meta])* $name:ident, $verify:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Kernel);

        impl $name {
            /// Verifies a kernel.
            ///
            /// # Errors
            /// The first invariant that does not hold.
            pub fn new(kernel: Kernel) -> Result<Self, GpuVerifyError> {
                $verify(&kernel)?;
                Ok(Self(kernel))
            }

            /// Returns the kernel, to be changed and verified again.
            pub fn into_inner(self) -> Kernel {
                self.0
            }
        }

        impl Deref for $name {
            type Target = Kernel;
            fn deref(&self) -> &Kernel {
                &self.0
            }
        }
    };
}

stage! {
    /// A kernel in which the owner of each element is known. It is immutable; passes take the kernel out.
    LaidOutModule, verify_laid_out
}

stage! {
    /// A kernel that also determines when shared memory is used for what, and where threads wait. It is immutable.
    ScheduledModule, verify_selected
}

/// Checks the invariants of kernels with layouts.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_laid_out(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    structure(kernel)?;
    let is_known =
        |i: &Inst| matches!(GpuOp::of(i), Some(GpuOp::Convert(_) | GpuOp::GroupId(_) | GpuOp::GroupOwn(_)));
    each(kernel, |inst| {
        ensure(!is_machine(inst) || is_known(inst), GpuInvariant::L02, || {
            "the operation belongs to scheduled kernels".into()
        })
    })?;
    if !kernel.buffers.is_empty() {
        return Err(whole(GpuInvariant::L02, "a kernel has buffers only when it is scheduled".into()));
    }
    layouts::check(kernel)
}

/// Checks the invariants of scheduled kernels.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_scheduled(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_placed(kernel)?;
    barriers::check(kernel)?;
    clusters(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// Checks the invariants on which emission relies: scheduled kernels whose accesses have their instructions.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_selected(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_fenced(kernel)?;
    instructions::check(kernel)
}

/// Checks the invariants of scheduled kernels with proxy fences.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_fenced(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_scheduled(kernel)?;
    proxy_fences::check(kernel)
}

/// S08.
fn clusters(kernel: &Kernel) -> Check {
    let blocks = kernel.options.blocks;
    ensure(cluster::fits(kernel, blocks), GpuInvariant::S08, || format!("it cannot have {blocks} blocks"))?;
    if let Some(b) =
        cluster::remote_buffers(kernel).into_iter().find(|b| !cluster::may_store_remotely(kernel, *b))
    {
        return fault(GpuInvariant::S08, format!("what fills buffer {b} cannot be remote"));
    }
    cluster::loads_together(kernel).map_err(|message| (GpuInvariant::S08, message.into()))?;
    cluster::waits(kernel).map_err(|message| (GpuInvariant::S08, message.into()))
}

/// Checks a kernel without barriers: all but S07.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_placed(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_lowered(kernel)?;
    shared_memory::check(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// Checks a kernel whose buffers have no offsets yet: all but S05, S06 and S07.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_lowered(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    structure(kernel)?;
    layouts::check(kernel)?;
    scheduled::check(kernel)?;
    opposite_phases::check(kernel)?;
    tma_pipelines::check(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// L01.
fn structure(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    let [(_, func)] = kernel.module.funcs.iter().collect::<Vec<_>>()[..] else {
        return Err(whole(GpuInvariant::L01, "there is not one function".into()));
    };
    verify_machine(&kernel.module).map_err(|e| GpuVerifyError {
        invariant: GpuInvariant::L01,
        inst: e.inst,
        loc: e.loc,
        message: format!("{} {}", e.invariant.name(), e.message),
    })?;
    if func.kind != FuncKind::Kernel {
        return Err(whole(GpuInvariant::L01, "the function is no kernel".into()));
    }
    each(kernel, |inst| {
        ensure(inst.op != Op::Control(ControlOp::Call), GpuInvariant::L01, || {
            "a kernel is in one function".into()
        })
    })
}
