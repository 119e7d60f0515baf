//! Runs NVIDIA's assembler, `ptxas`, determines its version, and parses its output.
//!
//! Requires nothing of the program of that name. Guarantees that the same text gives the same bytes, that no temporary
//! file remains, and that every failure is a [`ToolError`] with one thing to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tk_syntax::codes;

use crate::compile::cache::Cache;
use crate::compile::kernel::{CompiledKernel, Cubin, Resources};
use crate::tools::find::{Environment, Found};
use crate::tools::tool::{Files, ToolError, ending, output_text, reason, version};

/// The instruction to install it: the package with the smallest download that has it.
const INSTALL: &str = "install it with `tk setup ptxas` or `pip install nvidia-cuda-nvcc-cu12`, or set TK_VENV to the virtual environment that has it, or TK_PTXAS to its path";

/// The instruction to install another one.
const REPLACE: &str = "install another one with `pip install nvidia-cuda-nvcc-cu12`, or set TK_PTXAS to the path of another one";

/// A working assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// Its path.
    pub path: PathBuf,
    /// Such as `12.9.86`.
    pub version: String,
    /// How it was found: [`Found::from`].
    pub from: &'static str,
}

impl Ptxas {
    /// Finds the assembler and determines its version, which the cache keeps, as starting it costs about 10 ms.
    pub fn find(environment: &Environment, cache: &Cache) -> Result<Ptxas, ToolError> {
        let Some(Found { path, from }) = environment.ptxas() else {
            let message = "`ptxas` not found; NVIDIA's assembler makes machine code from PTX";
            let mut error = ToolError::new(codes::NO_ASSEMBLER, message, INSTALL);
            error.notes.extend(environment.ignored_ptxas().map(|ignored| ignored.note()));
            return Err(error);
        };
        let version = version("ptxas version", &path, cache, ask_version)?;
        Ok(Ptxas { path, version, from })
    }

    fn broken(&self, what: &str) -> ToolError {
        broken(&self.path, what)
    }
}

/// Assembles a kernel.
pub fn assemble(kernel: &CompiledKernel, ptxas: &Ptxas) -> Result<Cubin, ToolError> {
    let files = Files::new().map_err(|e| ptxas.broken(&format!("no temporary files: {}", reason(&e))))?;
    let (source, target) = (files.path().join("kernel.ptx"), files.path().join("kernel.cubin"));
    fs::write(&source, &kernel.asm)
        .map_err(|e| ptxas.broken(&format!("cannot write its input: {}", reason(&e))))?;
    // The names of these files do not reach the binary: two runs give the same bytes.
    let output = Command::new(&ptxas.path)
        .args(["--gpu-name", kernel.target.processor(), "-v", "-lineinfo", "-o"])
        .args([&target, &source])
        .output()
        .map_err(|e| ptxas.broken(&reason(&e)))?;
    let text = output_text(&output);
    if !output.status.success() {
        return Err(refused(kernel, ptxas, &text, output.status));
    }
    let bytes = fs::read(&target).map_err(|_| ptxas.broken("it succeeds, but writes nothing"))?;
    let report = Resources { assembler: ptxas.version.clone(), ..resources(&text) };
    Ok(Cubin { bytes, report })
}

fn ask_version(path: &Path) -> Result<String, ToolError> {
    let output = Command::new(path).arg("--version").output().map_err(|e| broken(path, &reason(&e)))?;
    let text = output_text(&output);
    if !output.status.success() {
        return Err(broken(path, &first_error(&text).unwrap_or_else(|| ending(output.status))));
    }
    // `Cuda compilation tools, release 12.9, V12.9.86`
    let version = text.split_whitespace().find_map(|word| {
        let number = word.strip_prefix('V')?;
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.to_string())
    });
    version.ok_or_else(|| broken(path, "its --version output is not that of ptxas"))
}

fn broken(path: &Path, what: &str) -> ToolError {
    let message = format!("the assembler {} does not work: {what}", path.display());
    ToolError::new(codes::ASSEMBLER, message, REPLACE)
}

fn refused(kernel: &CompiledKernel, ptxas: &Ptxas, text: &str, status: ExitStatus) -> ToolError {
    let version = &ptxas.version;
    let old = ["Unsupported .version", "is not defined for option 'gpu-name'"];
    if old.iter().any(|sign| text.contains(sign)) {
        let path = ptxas.path.display();
        let message =
            format!("ptxas {version} ({path}) is too old for code of this tk for `{}`", kernel.target.name);
        return ToolError::new(codes::ASSEMBLER, message, REPLACE);
    }
    let Some(error) = first_error(text) else {
        return ptxas.broken(&ending(status));
    };
    let message = format!("ptxas {version} rejects kernel `{}`: {error}", kernel.name);
    let note = "if the kernel has no `inline_asm`, this is a bug in tk: please report it";
    ToolError::new(codes::ASSEMBLER, message, note)
}

/// The first line that reports an error, without the name of the temporary file; else the first line.
fn first_error(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim).filter(|l| !l.is_empty());
    let is_error = |l: &&str| {
        let words: Vec<&str> = l.split_whitespace().collect();
        words.iter().zip(words.iter().skip(1)).any(|(a, b)| matches!(*a, "error" | "fatal") && *b == ":")
    };
    let line = lines().find(is_error).or_else(|| lines().next())?;
    // `ptxas /tmp/x.ptx, line 7; error   : Unknown symbol 'foo'`
    let place = line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')).map(|(n, _)| n);
    let text = match line.split_once(" : ") {
        Some((_, text)) if is_error(&line) => text.trim(),
        Some(_) | None => line,
    };
    Some(place.map_or(text.to_string(), |n| format!("{text} (line {n} of the PTX)")))
}

/// Parses the report of `-v`.
fn resources(text: &str) -> Resources {
    let mut out = Resources::default();
    for line in text.lines() {
        let number = |unit: &str| number_before(line, unit).unwrap_or(0);
        if line.contains("bytes stack frame") {
            out.stack_bytes = out.stack_bytes.max(number("bytes stack frame"));
            out.spill_store_bytes += number("bytes spill stores");
            out.spill_load_bytes += number("bytes spill loads");
        } else if line.contains(": Used ") {
            out.registers = out.registers.max(number("registers"));
            out.barriers = out.barriers.max(number("barriers"));
            out.static_shared_bytes = out.static_shared_bytes.max(number("bytes smem"));
        } else if let Some((_, advice)) = line.split_once("(C75") {
            out.advice.push(format!("C75{}", advice.replacen(") ", ": ", 1).trim()));
        }
    }
    out
}

/// The number before a unit: `8 registers`, `used 0 barriers`.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let (before, _) = line.split_once(&format!(" {unit}"))?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read() {
        let text = "\
ptxas info    : (C7511) Potential Performance Loss: wgmma instructions are serialized
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 1.188 ms";
        let report = resources(text);
        let expected = Resources {
            registers: 168,
            static_shared_bytes: 1024,
            stack_bytes: 16,
            spill_store_bytes: 24,
            spill_load_bytes: 28,
            barriers: 1,
            advice: vec!["C7511: Potential Performance Loss: wgmma instructions are serialized".into()],
            assembler: String::new(),
        };
        assert_eq!(report, expected);
        assert!(report.spills());
    }

    #[test]
    fn errors_lose_the_name_of_the_temporary_file() {
        let text = "ptxas info : nothing\nptxas /tmp/a/kernel.ptx, line 7; error   : Unknown symbol 'foo'\n";
        assert_eq!(first_error(text).as_deref(), Some("Unknown symbol 'foo' (line 7 of the PTX)"));
        let text = "ptxas fatal   : Value 'sm_999' is not defined for option 'gpu-name'";
        assert_eq!(first_error(text).as_deref(), Some("Value 'sm_999' is not defined for option 'gpu-name'"));
        assert_eq!(first_error("\n not found\n").as_deref(), Some("not found"));
        assert_eq!(first_error(""), None);
    }
}
