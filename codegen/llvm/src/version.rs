//! The version of LLVM.

/// Major, minor and patch number of the LLVM that is linked.
pub fn version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}
