//! Functions of IR text that are inlined at their calls: operations with a synchronization scope.
//!
//! Guarantees one definition of each in a module, and that none is left after the passes.

use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Linkage;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::Amdgcn;
use crate::emit::{Emit, Res, Stop, bug};

/// A function: its name, and IR that defines it.
pub struct Function {
    /// The name.
    pub name: String,
    /// The definition, and declarations of the functions that it calls.
    pub ir: String,
}

impl Function {
    fn new(name: String, result: &str, params: &str, body: &str) -> Function {
        let ir = format!("define {result} @\"{name}\"({params}) alwaysinline nounwind {{\n{body}}}\n");
        Function { name, ir }
    }
}

/// A scope as it is written before an order; empty for the whole system.
fn scope(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("syncscope(\"{name}\") ") }
}

/// A barrier of all threads of a program, after which their earlier writes are visible. A program of one warp runs in
/// lockstep; only moves by LLVM must be prevented.
pub fn barrier(is_alone: bool) -> Function {
    let (scope, barrier) = if is_alone { ("wavefront", "wave.barrier") } else { ("workgroup", "s.barrier") };
    let body = format!(
        "  fence syncscope(\"{scope}\") release\n  call void @llvm.amdgcn.{barrier}()\n  \
         fence syncscope(\"{scope}\") acquire\n  ret void\n"
    );
    let mut made = Function::new(format!("tk.barrier.{scope}"), "void", "", &body);
    made.ir += &format!("declare void @llvm.amdgcn.{barrier}()\n");
    made
}

/// Releases writes of this thread to a scope.
pub fn release(of: &str) -> Function {
    let body = format!("  fence {}release\n  ret void\n", scope(of));
    Function::new(format!("tk.release.{of}"), "void", "", &body)
}

/// Adds one to an i32 in shared memory.
pub fn increment() -> Function {
    let body =
        "  %old = atomicrmw add ptr addrspace(3) %at, i32 1 syncscope(\"workgroup\") monotonic\n  ret void\n";
    Function::new("tk.shared.increment".into(), "void", "ptr addrspace(3) %at", body)
}

/// Sets the lowest bit of an i32 in shared memory; several threads may do so at once.
pub fn mark() -> Function {
    let body =
        "  %old = atomicrmw or ptr addrspace(3) %at, i32 1 syncscope(\"workgroup\") monotonic\n  ret void\n";
    Function::new("tk.shared.mark".into(), "void", "ptr addrspace(3) %at", body)
}

/// An operation in device memory that returns the old value: `add`, `xchg`, `fadd` of `i32`, `double`.
pub fn modify(op: &str, ty: &str, order: &str, of: &str) -> Function {
    let name = format!("tk.atomic.{op}.{ty}.{order}.{of}");
    let scope = scope(of);
    let body =
        format!("  %old = atomicrmw {op} ptr addrspace(1) %at, {ty} %x {scope}{order}\n  ret {ty} %old\n");
    Function::new(name, ty, &format!("ptr addrspace(1) %at, {ty} %x"), &body)
}

/// Compares and swaps, with this order on success and its load part on failure; returns the old value.
pub fn swap(ty: &str, order: &str, of: &str) -> Function {
    let name = format!("tk.atomic.cas.{ty}.{order}.{of}");
    let scope = scope(of);
    let fails = match order {
        "acquire" | "acq_rel" => "acquire",
        _ => "monotonic",
    };
    let body = format!(
        "  %both = cmpxchg ptr addrspace(1) %at, {ty} %old, {ty} %new {scope}{order} {fails}\n  \
         %found = extractvalue {{ {ty}, i1 }} %both, 0\n  ret {ty} %found\n"
    );
    Function::new(name, ty, &format!("ptr addrspace(1) %at, {ty} %old, {ty} %new"), &body)
}

/// Loads with an order; `bytes` is the size of the type.
pub fn load(ty: &str, bytes: u32, order: &str, of: &str) -> Function {
    let name = format!("tk.atomic.load.{ty}.{order}.{of}");
    let scope = scope(of);
    let body = format!(
        "  %x = load atomic {ty}, ptr addrspace(1) %at {scope}{order}, align {bytes}\n  ret {ty} %x\n"
    );
    Function::new(name, ty, "ptr addrspace(1) %at", &body)
}

/// Stores with an order.
pub fn store(ty: &str, bytes: u32, order: &str, of: &str) -> Function {
    let name = format!("tk.atomic.store.{ty}.{order}.{of}");
    let scope = scope(of);
    let body =
        format!("  store atomic {ty} %x, ptr addrspace(1) %at {scope}{order}, align {bytes}\n  ret void\n");
    Function::new(name, "void", &format!("ptr addrspace(1) %at, {ty} %x"), &body)
}

impl<'c> Amdgcn<'c> {
    /// Calls such a function.
    pub(super) fn inlined(
        &self,
        e: &Emit<'_, 'c>,
        function: &Function,
        args: &[BasicValueEnum<'c>],
    ) -> Res<Option<BasicValueEnum<'c>>> {
        if e.module.get_function(&function.name).is_none() {
            let text = format!("{}\0", function.ir);
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
            let refused = |what: String| Stop::Bug(format!("LLVM refuses `{}`: {what}", function.name));
            let own = e.context.create_module_from_ir(buffer).map_err(|x| refused(x.to_string()))?;
            own.set_triple(&e.module.get_triple());
            own.set_data_layout(&e.module.get_data_layout());
            e.module.link_in_module(own).map_err(|x| refused(x.to_string()))?;
        }
        let Some(found) = e.module.get_function(&function.name) else {
            return bug(format!("`{}` is not there", function.name));
        };
        found.set_linkage(Linkage::Internal);
        let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|x| (*x).into()).collect();
        Ok(e.builder.build_call(found, &args, "")?.try_as_basic_value().basic())
    }
}
