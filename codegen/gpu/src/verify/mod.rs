//! Owns what holds for kernels of the last two stages, as numbered invariants, and the types that hold only if they do:
//! [`LaidOutModule`] and [`ScheduledModule`].
//!
//! May assume nothing about a kernel that was read from text, but that it holds one function. Guarantees an answer
//! without a panic; the first violation in the order of the text is reported.
//!
//! Of both stages:
//!
//! | | |
//! |---|---|
//! | L01 | The module is one kernel without calls and host operations, and what [`tk_tile::verify`] numbers holds for it. |
//! | L02 | Every operation belongs to the stage: before it is scheduled a kernel has conversions, but no other operation of a machine, no parts of reductions and no buffers. |
//! | L03 | A tile of rank 1 and more has a layout; scalars and views have none. |
//! | L04 | The dimensions of a layout are cut as the extents of its tile are. |
//! | L05 | A layout has the lanes and warps that the kernel is compiled for, and no blocks. |
//! | L06 | Somebody holds each element of an atom. |
//! | L07 | The tiles of an operation that works at each place by itself have one layout; so have those of an access to memory, the positions and the result of a `gather`, and accumulator and result of a product. |
//! | L08 | What a fold leaves behind lies where its operand lay, without the dimension. A running fold keeps the layout. Folds by a function of the user and running folds stay inside of warps. |
//! | L09 | What `broadcast`, `permute` and a `reshape` that only adds or removes dimensions of extent 1 give lies where it lay. `join` of scalars gives both to each thread, and `split` to scalars takes it from there. |
//! | L10 | Values that enter, leave and go round in blocks keep their layouts. |
//! | L11 | A `convert` has one operand, one result of the same type, and nothing else. |
//!
//! Of scheduled kernels:
//!
//! | | |
//! |---|---|
//! | S01 | No operation needs what another warp holds: no conversion between warps, no fold over several of them, no rearrangement that moves elements, and nothing that goes through shared memory in another way than S03 knows. |
//! | S02 | A fold in parts leaves what [`crate::layout::Layout::partial`] says; the fold of the parts has all of them in registers of each thread, and says how many are of elements. |
//! | S03 | An operation on shared memory has the operands, results and attributes that it needs, names buffers that exist, and all accesses to a buffer are by elements of one size. |
//! | S04 | Every access stays in its buffer, and `bases` send no two elements to one place. |
//! | S05 | Buffers begin at multiples of 16 bytes, factors of groups where their order repeats, end below 4 GiB, and share no place while both are alive: from the first store to the last read, and through loops that only some of the accesses stand in. |
//! | S06 | What is read from a buffer was stored to it before, in the same block or around it, or by a copy that runs ahead. |
//! | S07 | Between two accesses to the same bytes of shared memory of which one stores there is a barrier, on every way through branches and loops; only stores to other elements of a buffer, additions, accesses of each thread to places of its `own`, and copies and stores `ahead` into other stages of a multi-stage buffer follow each other without. |
//! | S08 | A program of several blocks does only what [`crate::passes::cluster`] lets it do, with a warp for each block, on a target whose blocks reach each other. What is remote fills its buffer alone, for one load. Blocks wait for each other before the first store to shared memory. |
//! | S09 | Every access to memory says its width or its instruction: a power of two of elements that is aligned in memory, adjacent in registers, and inside of view and mask as a whole or not at all. |
//! | S10 | Each TMA pipeline is initialized, filled with as many bytes as its producer announces, waited for and released: no warp waits at a barrier where none arrives. |

mod async_copies;
mod barriers;
mod fault;
mod instructions;
mod layouts;
mod mma;
mod scheduled;
mod shared_memory;
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

            /// The kernel, to be changed and verified again.
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
    /// A kernel of which is known which thread owns each element. It cannot be changed; passes take the kernel out.
    LaidOutModule, verify_laid_out
}

stage! {
    /// A kernel of which is known besides what lies in shared memory when, and where threads wait. It cannot be changed.
    ScheduledModule, verify_selected
}

/// Checks what holds for kernels with layouts.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_laid_out(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    structure(kernel)?;
    let is_convert = |i: &Inst| matches!(GpuOp::of(i), Some(GpuOp::Convert(_)));
    each(kernel, |inst| {
        ensure(!is_machine(inst) || is_convert(inst), GpuInvariant::L02, || {
            "the operation belongs to scheduled kernels".into()
        })
    })?;
    if !kernel.buffers.is_empty() {
        return Err(whole(GpuInvariant::L02, "a kernel has buffers only when it is scheduled".into()));
    }
    layouts::check(kernel)
}

/// Checks what holds for scheduled kernels.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_scheduled(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_placed(kernel)?;
    barriers::check(kernel)?;
    clusters(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// Checks what emission relies on: scheduled kernels whose accesses have their instructions.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_selected(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_scheduled(kernel)?;
    instructions::check(kernel)
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
    cluster::waits(kernel).map_err(|message| (GpuInvariant::S08, message.into()))
}

/// Checks a kernel in which nobody waits yet: all but S07.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_placed(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    verify_lowered(kernel)?;
    shared_memory::check(kernel).map_err(|(invariant, message)| whole(invariant, message))
}

/// Checks a kernel whose buffers have no places yet: all but S05, S06 and S07.
///
/// # Errors
/// The first invariant that does not hold.
pub fn verify_lowered(kernel: &Kernel) -> Result<(), GpuVerifyError> {
    structure(kernel)?;
    layouts::check(kernel)?;
    scheduled::check(kernel)
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
