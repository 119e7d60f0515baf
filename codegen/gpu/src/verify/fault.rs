//! Violated invariants, and how checks report them.

use std::fmt;

use tk_tile::{Inst, InstId, Loc, walk};

use crate::ir::kernel::Kernel;

macro_rules! invariants {
    ($($name:ident)*) => {
        /// The number of an invariant, as listed in [`crate::verify`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "listed at the top of the file")]
        pub enum GpuInvariant { $($name,)* }
        impl GpuInvariant {
            /// Every invariant.
            pub const ALL: &'static [GpuInvariant] = &[$(GpuInvariant::$name,)*];
            /// `L01`
            pub fn name(self) -> &'static str {
                match self { $(GpuInvariant::$name => stringify!($name),)* }
            }
        }
    };
}

invariants! { L01 L02 L03 L04 L05 L06 L07 L08 L09 L10 L11 S01 S02 S03 S04 S05 S06 S07 S08 S09 S10 S11 S12 }

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuVerifyError {
    /// The invariant.
    pub invariant: GpuInvariant,
    /// The instruction, if it is about one.
    pub inst: Option<InstId>,
    /// Its source position.
    pub loc: Option<Loc>,
    /// The violation, with the name of the operation.
    pub message: String,
}

impl fmt::Display for GpuVerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant.name(), self.message)
    }
}

impl std::error::Error for GpuVerifyError {}

/// A violation without its position.
pub(super) type Fault = (GpuInvariant, String);
/// The result of a check.
pub(super) type Check = Result<(), Fault>;

/// A violation.
pub(super) fn fault<T>(invariant: GpuInvariant, message: impl Into<String>) -> Result<T, Fault> {
    Err((invariant, message.into()))
}

/// A violation unless `ok`.
pub(super) fn ensure(ok: bool, invariant: GpuInvariant, message: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err((invariant, message())) }
}

pub(super) fn whole(invariant: GpuInvariant, message: String) -> GpuVerifyError {
    GpuVerifyError { invariant, inst: None, loc: None, message }
}

/// Checks every instruction in program order.
pub(super) fn each(kernel: &Kernel, mut check: impl FnMut(&Inst) -> Check) -> Result<(), GpuVerifyError> {
    let func = kernel.func();
    walk::insts(func).into_iter().try_for_each(|id| {
        let Some(inst) = func.insts.get(id) else { return Ok(()) };
        check(inst).map_err(|f| at(inst, id, f))
    })
}

/// A violation by an instruction.
pub(super) fn at(inst: &Inst, id: InstId, (invariant, message): Fault) -> GpuVerifyError {
    let message = format!("`{}`: {message}", inst.name());
    GpuVerifyError { invariant, inst: Some(id), loc: inst.loc, message }
}
