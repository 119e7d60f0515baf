//! Kernels for the CPU, which runs their tile IR: [`interpreted`] makes no code.

use tk_runtime::compile::{ParamKind, params};
use tk_syntax::{Diagnostic, Span, codes};

use crate::compile::kernel::{CompiledKernel, Cubin, KernelParam, KernelParamKind, Request, Resources};

/// A kernel for a launcher on the CPU: its parameters, and an empty binary.
pub(crate) fn interpreted(
    request: &Request<'_>,
    place: Span,
) -> Result<(CompiledKernel, Cubin), Vec<Diagnostic>> {
    let (module, entry) = (request.module, request.entry);
    let Some((func, params)) = module.funcs.get(entry).zip(params(module, entry)) else {
        let message = "internal error in shipping: a specialization has no kernel";
        return Err(vec![Diagnostic::error(codes::INTERNAL, place, message, "")]);
    };
    let param = |(i, kind): (usize, &ParamKind)| {
        let (kind, dtype) = match kind {
            ParamKind::Pointer => (KernelParamKind::Pointer, tk_ops::DType::U64),
            ParamKind::Scalar(dtype) => (KernelParamKind::Scalar, *dtype),
        };
        KernelParam { name: format!("p{i}"), kind, dtype }
    };
    let kernel = CompiledKernel {
        name: func.name.clone(),
        target: request.target,
        threads: 1,
        shared_bytes: 0,
        blocks_per_program: 1,
        params: params.iter().enumerate().map(param).collect(),
        maps: vec![],
        messages: vec![],
        has_grid_barrier: false,
        shortages: vec![],
        remarks: vec![],
        asm: String::new(),
        object: None,
        stages: None,
    };
    Ok((kernel, Cubin { bytes: vec![], report: Resources::default() }))
}
