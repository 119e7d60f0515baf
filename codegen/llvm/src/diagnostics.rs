//! Collects LLVM's diagnostics about a module during code generation: errors that would otherwise abort the process.
//!
//! Guarantees that nothing is printed and no error is lost: the code generator checks for one afterwards.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use inkwell::context::Context;
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use llvm_sys::prelude::LLVMDiagnosticInfoRef;

/// The errors about modules of a context.
pub struct DiagnosticCollector<'c> {
    context: &'c Context,
    errors: Box<RefCell<Vec<String>>>,
}

impl<'c> DiagnosticCollector<'c> {
    /// Installs the diagnostic handler until it is dropped.
    pub fn install(context: &'c Context) -> DiagnosticCollector<'c> {
        let errors = Box::new(RefCell::new(vec![]));
        let place = std::ptr::from_ref(&*errors).cast_mut().cast::<c_void>();
        // SAFETY: the slot is in a box that does not move and lives until the handler is removed; a context is used by
        // one thread.
        unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(on_diagnostic), place) };
        DiagnosticCollector { context, errors }
    }

    /// The first error.
    pub fn error(&self) -> Option<String> {
        self.errors.borrow().first().cloned()
    }
}

impl Drop for DiagnosticCollector<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is alive.
        unsafe { LLVMContextSetDiagnosticHandler(self.context.raw(), None, std::ptr::null_mut()) };
    }
}

extern "C" fn on_diagnostic(info: LLVMDiagnosticInfoRef, place: *mut c_void) {
    // SAFETY: LLVM passes the diagnostic, and the slot that was given, which is alive.
    let (severity, errors) =
        unsafe { (LLVMGetDiagInfoSeverity(info), &*place.cast::<RefCell<Vec<String>>>()) };
    if !matches!(severity, LLVMDiagnosticSeverity::LLVMDSError) {
        return;
    }
    // SAFETY: a zero-terminated string that the caller must free.
    let text = unsafe {
        let raw = LLVMGetDiagInfoDescription(info);
        let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
        LLVMDisposeMessage(raw);
        text
    };
    errors.borrow_mut().push(text.lines().next().unwrap_or_default().trim().to_string());
}
