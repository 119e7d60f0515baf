//! What launches may know of a target: the facts of the language about it, and its usual GPU.

use tk_gpu::TargetSpec;
use tk_gpu::target::chip::{self, Chip};
use tk_runtime::choice::Place;
use tk_sema::contract::Device;
use tk_sema::target::Target;

/// The facts about a target.
pub fn facts_about(spec: &TargetSpec) -> Target {
    if spec.is_interpreted() {
        return Target::default();
    }
    Target {
        has_async_copy: spec.has_async_copy,
        has_tma: spec.has_tma,
        has_mma: spec.has_mma,
        has_async_mma: spec.has_async_mma,
        has_tf32: spec.has_tf32,
        has_f8: spec.has_f8,
        has_scaled_mma: spec.has_scaled_mma,
        has_clusters: spec.has_clusters,
        has_ptx: spec.has_ptx,
        has_gcn: spec.has_gcn,
        warp_size: spec.warp_size,
        smem: spec.shared_bytes,
        l2_caches: spec.l2_caches,
    }
}

/// The usual GPU of a target; `None` if nothing is known of the speed of any.
pub fn usual_place(spec: &TargetSpec) -> Option<Place> {
    chip::usual(spec.name).map(|chip| place_of(spec, chip))
}

/// A GPU of a target.
pub fn place_of(spec: &TargetSpec, chip: &Chip) -> Place {
    let facts = Device { sms: chip.sms.into(), smem: spec.shared_bytes.into(), target: facts_about(spec) };
    Place { facts, target: spec.name.into(), name: chip.name.to_string() }
}
