//! Emits line tables: the source line of each instruction of a kernel, for profilers and debuggers.
//!
//! Requires positions in the files of [`Lines`]; other positions have no line. Guarantees that the code is the same
//! with and without them, and that a table contains the names of files as given, never a folder of the host.

use std::cell::RefCell;
use std::ffi::{c_char, c_uint};
use std::ptr::null_mut;

use inkwell::builder::Builder;
use inkwell::context::{AsContextRef, Context};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::{AsValueRef, FunctionValue};
use llvm_sys::core::LLVMSetCurrentDebugLocation2;
use llvm_sys::debuginfo as di;
use llvm_sys::debuginfo::LLVMDWARFSourceLanguage;
use llvm_sys::prelude::{LLVMBool, LLVMDIBuilderRef, LLVMMetadataRef};
use tk_tile::Loc;

/// The files of a program, in the order in which a [`Loc`] numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFiles {
    /// Each with its lines.
    pub files: Vec<FileLines>,
}

/// A file and the starts of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLines {
    /// The name as it was given.
    pub name: String,
    /// The offset in bytes of each line, in order.
    pub starts: Vec<u32>,
}

impl SourceFiles {
    /// File, line and column of a position, both from 1, the column in bytes.
    fn position(&self, loc: Loc) -> Option<(&FileLines, u32, u32)> {
        let file = self.files.get(loc.file as usize)?;
        let line = file.starts.partition_point(|start| *start <= loc.start);
        let start = file.starts.get(line.checked_sub(1)?)?;
        Some((file, u32::try_from(line).ok()?, loc.start - start + 1))
    }
}

unsafe extern "C" {
    /// LLVM's function with the kind as a number: the declaration in `llvm-sys` lacks [`DIRECTIVES`].
    fn LLVMDIBuilderCreateCompileUnit(
        builder: LLVMDIBuilderRef,
        language: LLVMDWARFSourceLanguage,
        file: LLVMMetadataRef,
        producer: *const c_char,
        producer_length: usize,
        optimized: LLVMBool,
        flags: *const c_char,
        flags_length: usize,
        runtime: c_uint,
        split: *const c_char,
        split_length: usize,
        kind: c_uint,
        id: c_uint,
        inlining: LLVMBool,
        profiling: LLVMBool,
        root: *const c_char,
        root_length: usize,
        sdk: *const c_char,
        sdk_length: usize,
    ) -> LLVMMetadataRef;
}

/// `DICompileUnit::DebugDirectivesOnly`: `.file` and `.loc` and no sections of DWARF, with which `ptxas` would not
/// optimise.
const DIRECTIVES: c_uint = 3;

/// The line table of one kernel while it is emitted.
pub struct LineTable<'a, 'c> {
    context: &'c Context,
    builder: LLVMDIBuilderRef,
    lines: &'a SourceFiles,
    subprogram: LLVMMetadataRef,
    /// The scope for each file.
    scopes: RefCell<Vec<Option<LLVMMetadataRef>>>,
}

impl<'a, 'c> LineTable<'a, 'c> {
    /// Begins the table of a function; `first` is the source position of its first instruction. `None` if that is
    /// unknown.
    pub fn new(
        context: &'c Context,
        module: &Module<'c>,
        function: FunctionValue<'c>,
        lines: &'a SourceFiles,
        first: Option<Loc>,
    ) -> Option<LineTable<'a, 'c>> {
        let (file, line, _) = lines.position(first?)?;
        let number = |n: u32| context.i32_type().const_int(n.into(), false);
        // Without a version LLVM drops debug information. The DWARF version is the one that NVIDIA's assembler reads.
        module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, number(3));
        module.add_basic_value_flag("Dwarf Version", FlagBehavior::Warning, number(2));
        let name = function.get_name().to_bytes();
        // SAFETY: the module is alive; every string is passed with its length, and none is kept.
        let (builder, subprogram) = unsafe {
            let builder = di::LLVMCreateDIBuilder(module.as_mut_ptr());
            let file = file_of(builder, &file.name);
            let (none, language) = ("".as_ptr().cast(), LLVMDWARFSourceLanguage::LLVMDWARFSourceLanguageC);
            let producer = "tk";
            LLVMDIBuilderCreateCompileUnit(
                builder,
                language,
                file,
                producer.as_ptr().cast(),
                producer.len(),
                1,
                none,
                0,
                0,
                none,
                0,
                DIRECTIVES,
                0,
                0,
                0,
                none,
                0,
                none,
                0,
            );
            let ty = di::LLVMDIBuilderCreateSubroutineType(builder, file, null_mut(), 0, 0);
            let (text, length) = (name.as_ptr().cast(), name.len());
            let made = di::LLVMDIBuilderCreateFunction(
                builder, file, text, length, text, length, file, line, ty, 0, 1, line, 0, 1,
            );
            di::LLVMSetSubprogram(function.as_value_ref(), made);
            (builder, made)
        };
        let scopes = RefCell::new(vec![None; lines.files.len()]);
        Some(LineTable { context, builder, lines, subprogram, scopes })
    }

    /// Sets the source position of the next instructions of the builder.
    pub fn at(&self, builder: &Builder<'c>, loc: Option<Loc>) {
        let Some((loc, (file, line, column))) = loc.and_then(|l| Some((l, self.lines.position(l)?))) else {
            return;
        };
        let mut scopes = self.scopes.borrow_mut();
        let Some(scope) = scopes.get_mut(loc.file as usize) else { return };
        // SAFETY: the builder of the table lives as long as the table, and the module longer.
        unsafe {
            let scope = *scope.get_or_insert_with(|| {
                let file = file_of(self.builder, &file.name);
                di::LLVMDIBuilderCreateLexicalBlockFile(self.builder, self.subprogram, file, 0)
            });
            let context = self.context.as_ctx_ref();
            let at = di::LLVMDIBuilderCreateDebugLocation(context, line, column, scope, null_mut());
            LLVMSetCurrentDebugLocation2(builder.as_mut_ptr(), at);
        }
    }
}

impl Drop for LineTable<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: `new` created it and this is its last use; the metadata belongs to the module.
        unsafe {
            di::LLVMDIBuilderFinalize(self.builder);
            di::LLVMDisposeDIBuilder(self.builder);
        }
    }
}

/// # Safety
/// The builder must be alive.
unsafe fn file_of(builder: LLVMDIBuilderRef, name: &str) -> LLVMMetadataRef {
    // SAFETY: the string is passed with its length, and copied.
    unsafe { di::LLVMDIBuilderCreateFile(builder, name.as_ptr().cast(), name.len(), "".as_ptr().cast(), 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one() {
        let file = FileLines { name: "a.tk".into(), starts: vec![0, 10, 11] };
        let lines = SourceFiles { files: vec![file] };
        let at = |file, start| {
            lines
                .position(Loc { file, start, end: start })
                .map(|(f, line, column)| (f.name.as_str(), line, column))
        };
        assert_eq!(at(0, 0), Some(("a.tk", 1, 1)));
        assert_eq!(at(0, 9), Some(("a.tk", 1, 10)));
        assert_eq!(at(0, 10), Some(("a.tk", 2, 1)));
        assert_eq!(at(0, 15), Some(("a.tk", 3, 5)));
        assert_eq!(at(1, 0), None);
    }
}
