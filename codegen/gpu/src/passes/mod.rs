//! The passes, each a file or a folder; `crate::pipeline` has their order.

pub mod allocate_shared;
pub mod assign_layouts;
pub mod chunk_loads;
pub mod cluster;
pub mod decompose_dot_scaled;
pub mod form_tensor_accesses;
pub mod hoist_shared_stores;
pub mod insert_barriers;
pub mod insert_proxy_fences;
pub mod lower_to_shared;
pub mod reallocate_registers;
pub mod software_pipeline;
pub mod split_dots;
pub mod split_stores;
pub mod tma_stores;
pub mod warp_specialize;

use crate::ir::kernel::Kernel;
use crate::verify::VerifyError;

/// A change of a kernel that has layouts.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name: of its file, of its folder in `tests/ir/layout`, in error messages.
    pub name: &'static str,
    /// Changes a kernel for which holds what the pass before it left.
    pub run: fn(&mut Kernel),
    /// What holds behind it.
    pub verify: fn(&Kernel) -> Result<(), VerifyError>,
}
