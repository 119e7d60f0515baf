//! Owns the order of the machine-aware passes.
//!
//! May assume a verified tile module. Guarantees a scheduled kernel: everything that LLVM emission needs is an
//! instruction, a layout or a buffer.

use tk_tile::passes::{cse, dce, inline};
use tk_tile::{FuncKind, Module};

use crate::assign::assign;
use crate::kernel::{Kernel, Setting};
use crate::{barriers, lower, shared};

/// What a compilation goes through.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Layouts assigned, conversions explicit.
    pub laid_out: Kernel,
    /// Shared memory and barriers explicit.
    pub scheduled: Kernel,
}

/// Lays out and schedules the kernel with this name. The error says what no machine can do with it.
pub fn run(module: &Module, kernel: &str, setting: Setting) -> Result<Stages, String> {
    let module = whole(module.clone());
    let (_, func) = module
        .funcs
        .iter()
        .find(|(_, f)| f.name == kernel && f.kind == FuncKind::Kernel)
        .ok_or_else(|| format!("there is no kernel `{kernel}`"))?;
    let laid_out = assign(&module, func, setting);
    let mut scheduled = lower::run(laid_out.clone());
    shared::allocate(&mut scheduled);
    barriers::run(&mut scheduled);
    Ok(Stages { laid_out, scheduled })
}

/// A machine has no stack of tiles: what the program keeps out of its callers is inlined after all.
fn whole(mut module: Module) -> Module {
    let ids: Vec<_> = module.funcs.iter().map(|(id, _)| id).collect();
    let mut kept = false;
    for id in ids {
        let func = &mut module.funcs[id];
        if func.kind == FuncKind::NoInline {
            func.kind = FuncKind::Fn;
            kept = true;
        }
    }
    if kept {
        for pass in [inline::PASS, cse::PASS, dce::PASS] {
            (pass.run)(&mut module);
        }
    }
    module
}
