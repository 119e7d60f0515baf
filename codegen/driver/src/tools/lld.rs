//! Runs LLVM's linker, `ld.lld`, which links code objects of AMD, determines its version, and reads the metadata of a
//! code object.
//!
//! Requires nothing of the program of that name. Guarantees that the same object gives the same bytes, that no
//! temporary file remains, and that every failure is a [`ToolError`] with one thing to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::NoteType;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use rmpv::Value;
use tk_syntax::codes;

use crate::compile::cache::Cache;
use crate::compile::kernel::{CompiledKernel, Cubin, Resources};
use crate::tools::find::{Environment, Found};
use crate::tools::tool::{Files, ToolError, ending, output_text, reason, version};

/// The instruction to install it.
const INSTALL: &str = "install it with `apt install lld-22`, or set TK_LLD to its path";

/// The type of the note with the metadata of kernels, and its owner: LLVM's guide to the AMDGPU target, "Code Object V3
/// and above Note Records".
const METADATA: NoteType = NoteType(32);
const OWNER: &[u8] = b"AMDGPU";

/// A working linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lld {
    /// Its path.
    pub path: PathBuf,
    /// Such as `19.1.7`.
    pub version: String,
    /// How it was found: [`Found::from`].
    pub from: &'static str,
}

impl Lld {
    /// Finds the linker and determines its version, which the cache keeps.
    pub fn find(environment: &Environment, cache: &Cache) -> Result<Lld, ToolError> {
        let Some(Found { path, from }) = environment.lld() else {
            let message = "`ld.lld` not found; LLVM's linker makes code objects for AMD GPUs";
            return Err(ToolError::new(codes::NO_ASSEMBLER, message, INSTALL));
        };
        let version = version("lld version", &path, cache, ask_version)?;
        Ok(Lld { path, version, from })
    }
}

/// Links a code object.
pub fn link(kernel: &CompiledKernel, lld: &Lld) -> Result<Cubin, ToolError> {
    let broken = |what: &str| broken(&lld.path, what);
    let Some(object) = &kernel.object else { return Err(broken("there is no object to link")) };
    let files = Files::new().map_err(|e| broken(&format!("no temporary files: {}", reason(&e))))?;
    let (source, target) = (files.path().join("kernel.o"), files.path().join("kernel.hsaco"));
    fs::write(&source, object).map_err(|e| broken(&format!("cannot write its input: {}", reason(&e))))?;
    let output = Command::new(&lld.path)
        .args(["-flavor", "gnu"].iter().filter(|_| lld.path.file_name().is_some_and(|n| n == "lld")))
        .args(["-shared", "--no-undefined", "--build-id=none", "-o"])
        .args([&target, &source])
        .output()
        .map_err(|e| broken(&reason(&e)))?;
    if !output.status.success() {
        let text = output_text(&output);
        let line = text.lines().map(str::trim).find(|l| !l.is_empty());
        let what = line.map_or_else(|| ending(output.status), ToString::to_string);
        let message = format!("ld.lld {} rejects kernel `{}`: {what}", lld.version, kernel.name);
        let note = "if the kernel has no `inline_asm`, this is a bug in tk: please report it";
        return Err(ToolError::new(codes::ASSEMBLER, message, note));
    }
    let bytes = fs::read(&target).map_err(|_| broken("it succeeds, but writes nothing"))?;
    let report =
        resources(&bytes).ok_or_else(|| broken("its code object has no metadata about the kernel"))?;
    Ok(Cubin { bytes, report: Resources { assembler: format!("lld {}", lld.version), ..report } })
}

fn ask_version(path: &Path) -> Result<String, ToolError> {
    let output = Command::new(path).arg("--version").output().map_err(|e| broken(path, &reason(&e)))?;
    let text = output_text(&output);
    if !output.status.success() {
        return Err(broken(path, &ending(output.status)));
    }
    // `Debian LLD 19.1.7 (compatible with GNU linkers)`
    let behind = text.split_once("LLD ").and_then(|(_, rest)| rest.split_whitespace().next());
    // The same program links for other systems under other names.
    let is_gnu = text.contains("compatible with GNU linkers");
    let version = behind.filter(|v| is_gnu && v.starts_with(|c: char| c.is_ascii_digit()));
    version.map(ToString::to_string).ok_or_else(|| broken(path, "its --version output is not that of lld"))
}

fn broken(path: &Path, what: &str) -> ToolError {
    let message = format!("the linker {} does not work: {what}", path.display());
    ToolError::new(codes::ASSEMBLER, message, INSTALL)
}

/// The resources in the metadata of the first kernel of a code object.
fn resources(bytes: &[u8]) -> Option<Resources> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).ok()?;
    let (header, endian) = (file.elf_header(), file.endian());
    let sections = header.sections(endian, bytes).ok()?;
    let mut found = None;
    for section in sections.iter() {
        let Ok(Some(mut notes)) = section.notes(endian, bytes) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == OWNER && note.n_type(endian) == METADATA {
                found = Some(note.desc());
            }
        }
    }
    let metadata = rmpv::decode::read_value(&mut found?).ok()?;
    let field = |of: &Value, name: &str| -> Option<Value> {
        of.as_map()?.iter().find(|(k, _)| k.as_str() == Some(name)).map(|(_, v)| v.clone())
    };
    let kernels = field(&metadata, "amdhsa.kernels")?;
    let kernel = kernels.as_array()?.first()?.clone();
    let number = |name: &str| {
        field(&kernel, name).and_then(|v| v.as_u64()).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    };
    /// Bytes of a register.
    const WORD: u32 = 4;
    // LLVM counts the registers that it stored; each is loaded at least once. Scalar ones go to lanes of vector
    // registers.
    let spilled = WORD * number(".vgpr_spill_count");
    Some(Resources {
        // On CDNA those of the accumulators are included.
        registers: number(".vgpr_count").max(number(".agpr_count")),
        // All of it is that of the schedule, which the kernel has already.
        static_shared_bytes: 0,
        stack_bytes: number(".private_segment_fixed_size"),
        spill_store_bytes: spilled,
        spill_load_bytes: spilled,
        barriers: 0,
        advice: vec![],
        assembler: String::new(),
    })
}
