//! Draws the layouts of a laid-out kernel: [`pictures`].

use tk_gpu::Layout;
use tk_gpu::layout::svg;
use tk_tile::{ElemType, Id, Type, ValueId};

/// Drawings of the layouts of a kernel, each with the first tile that has it.
pub(crate) fn pictures(kernel: &tk_gpu::Kernel) -> String {
    let mut seen: Vec<(String, &Layout, Vec<u32>, u32)> = vec![];
    for (v, id) in kernel.value_layouts.iter().enumerate() {
        let Some(layout) = id.and_then(|id| kernel.layouts.find(id)) else { continue };
        let ty = kernel.module.types.get(kernel.func().ty(ValueId::new(v)));
        let Type::Tile { elem, shape } = ty else { continue };
        if !shape.is_empty() && !seen.iter().any(|(_, known, ..)| *known == layout) {
            let bytes = match elem {
                ElemType::Scalar(d) => d.bytes() as u32,
                ElemType::Ptr { .. } => 8,
            };
            seen.push((format!("l{}: v{v}, {ty}", seen.len()), layout, shape.clone(), bytes));
        }
    }
    let all: Vec<(String, &Layout, &[u32], u32)> = seen
        .iter()
        .map(|(title, layout, shape, bytes)| (title.clone(), *layout, shape.as_slice(), *bytes))
        .collect();
    svg::svg(&all, kernel.options.spec.banks())
}
