//! `tk inspect FILE`: the contents of an artifact, as text or as an HTML page.

mod mix;
mod page;
mod sass;

use std::path::Path;

use tk_bundle::{Bundle, FORMAT, Kernel, Manifest, ParamKind, Variant};
use tk_runtime::files::{reason, write_all};
use tk_syntax::escaped;

use crate::args::InspectArgs;
use crate::report::Line;
use crate::terminal::{Outcome, Terminal};

/// Shows an artifact.
pub fn run(terminal: &Terminal, args: &InspectArgs) -> Outcome {
    let artifact = Artifact::open(&args.file)?;
    let name = args.file.display().to_string();
    if let Some(out) = &args.html {
        let real = |path: &Path| path.canonicalize().ok();
        if real(out).is_some_and(|out| Some(out) == real(&args.file)) {
            return Err(format!("the page would replace {name}").into());
        }
        let page = page::page(&artifact, &name);
        write_all(&[(out.clone(), page.into_bytes())])?;
        return Ok(());
    }
    if terminal.is_json() {
        return terminal.object(&Line::Manifest { file: &name, manifest: artifact.manifest() });
    }
    // What others have written must not reach a terminal as commands.
    terminal.data(&escaped(&text(artifact.manifest(), &name)))
}

/// A bundle, or a manifest with the files beside it.
pub enum Artifact {
    /// One file with everything.
    Bundle(Bundle),
    /// The manifest, and its folder.
    Files(Box<Manifest>, std::path::PathBuf),
}

impl Artifact {
    fn open(path: &Path) -> Result<Artifact, String> {
        let shown = path.display();
        let unreadable = |e: std::io::Error| format!("cannot read {shown}: {}", reason(&e));
        let bytes = tk_bundle::regular::read(path).map_err(unreadable)?;
        if Bundle::is_one(&bytes) {
            let bundle = Bundle::from_vec(bytes).and_then(|b| b.verify().map(|()| b));
            return bundle.map(Artifact::Bundle).map_err(|e| format!("{shown}: {e}"));
        }
        let wrong = |what: String| format!("{shown} is neither a bundle nor a manifest: {what}");
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if manifest.format != FORMAT {
            return Err(format!("{shown} has format {}, and this tk reads format {FORMAT}", manifest.format));
        }
        manifest.check().map_err(|what| format!("{shown} is damaged: {what}"))?;
        Ok(Artifact::Files(Box::new(manifest), path.parent().map(Path::to_path_buf).unwrap_or_default()))
    }

    fn manifest(&self) -> &Manifest {
        match self {
            Artifact::Bundle(b) => b.manifest(),
            Artifact::Files(m, _) => m,
        }
    }

    /// The bytes of a part; none if they are not there.
    fn blob(&self, blob: &tk_bundle::Blob) -> Option<Vec<u8>> {
        match self {
            Artifact::Bundle(b) => b.blob(blob).ok(),
            Artifact::Files(_, folder) => {
                // The name of a file, not a way out of the folder.
                let name = blob.file.as_ref().filter(|n| !n.contains(['/', '\\']))?;
                let bytes = tk_bundle::regular::read(&folder.join(name)).ok()?;
                (tk_bundle::Blob::of(&bytes).blake3 == blob.blake3).then_some(bytes)
            }
        }
    }
}

/// An artifact for a terminal.
fn text(manifest: &Manifest, name: &str) -> String {
    let v = &manifest.versions;
    let mut out = format!(
        "{name}: format {}, tk {}, LLVM {}, {}\n",
        manifest.format,
        v.tk,
        v.llvm,
        assembled(&v.ptxas)
    );
    for kernel in &manifest.kernels {
        out.push_str(&format!("\nkernel {}\n", signature(kernel)));
        kernel.doc.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
        for c in &kernel.choices {
            out.push_str(&format!("    {} is given by name: {}\n", c.name, c.values.join(", ")));
        }
        let names: Vec<&str> = kernel.params.iter().map(|p| p.name.as_str()).collect();
        for v in &kernel.variants {
            out.push_str(&format!("\n  {}\n", head(kernel, v)));
            out.push_str(&format!("    {}\n", resources(v)));
            let guards: Vec<String> = v.guard.iter().map(|g| g.condition.text(&names)).collect();
            let list =
                [("taken if", guards), ("requires", v.require.iter().map(|r| r.text.clone()).collect())];
            for (word, items) in list.into_iter().filter(|(_, items)| !items.is_empty()) {
                out.push_str(&format!("    {word} {}\n", items.join(", ")));
            }
            let grid: Vec<String> = v.grid.iter().map(|e| e.text(&names)).collect();
            out.push_str(&format!("    grid {}\n", grid.join(", ")));
            v.remarks.iter().for_each(|r| out.push_str(&format!("    {}\n", remark(r))));
        }
    }
    out
}

/// `softmax(x: view of f16 or f32, rank 2, y: mut view ..)`
pub fn signature(kernel: &Kernel) -> String {
    let param = |(i, p): (usize, &tk_bundle::Param)| {
        let types = kernel.variants.iter().filter_map(|v| v.dtypes.get(i)?.as_deref());
        let types: std::collections::BTreeSet<&str> = types.collect();
        let types = types.into_iter().collect::<Vec<_>>().join(" | ");
        let ty = match p.kind {
            ParamKind::View { rank, mutable, wide } => {
                let (mutable, wide) = (if mutable { "mut " } else { "" }, if wide { ", i64" } else { "" });
                format!("{mutable}view[{types}, {rank}{wide}]")
            }
            ParamKind::Pointer { mutable } => format!("*{}{types}", if mutable { "mut " } else { "" }),
            ParamKind::Number => types,
        };
        let optional = if p.optional { "?" } else { "" };
        let default = p.default.as_ref().map(|d| format!(" = {d}")).unwrap_or_default();
        format!("{}: {ty}{optional}{default}", p.name)
    };
    let params: Vec<String> = kernel.params.iter().enumerate().map(param).collect();
    format!("{}({})", kernel.name, params.join(", "))
}

/// `T=f16, BLOCK=1024 for sm_90a`
pub fn head(kernel: &Kernel, v: &Variant) -> String {
    let absent =
        kernel.params.iter().zip(&v.dtypes).filter(|(_, d)| d.is_none()).map(|(p, _)| p.name.as_str());
    let absent: Vec<&str> = absent.collect();
    let without = if absent.is_empty() { String::new() } else { format!(" without {}", absent.join(", ")) };
    // What only speeds things up makes a variant a special one.
    let is_special = |v: &&Variant| v.guard.iter().any(|g| g.decides.is_none());
    let is_like = |o: &&Variant| (o.label(), &o.target, &o.dtypes) == (v.label(), &v.target, &v.dtypes);
    let mut alike = kernel.variants.iter().filter(is_special).filter(is_like);
    let kind = match alike.position(|other| std::ptr::eq(other, v)) {
        None => String::new(),
        Some(0) => " (aligned)".to_string(),
        Some(n) => format!(" (aligned{})", n + 1),
    };
    let label = v.label();
    let label = if label.is_empty() { "all".to_string() } else { label };
    format!("{label}{without}{kind} for {}", v.target)
}

/// `128 threads, 32 registers, ..`
pub fn resources(v: &Variant) -> String {
    let (shared, spills) = (v.shared(), v.spills());
    if v.target == "cpu" {
        return "interpreted".to_string();
    }
    if v.target.starts_with("compute_") {
        return format!(
            "{} threads, {shared} bytes of shared memory, PTX that the driver assembles, {} bytes",
            v.threads, v.binary.bytes
        );
    }
    format!(
        "{} threads, {} registers, {shared} bytes of shared memory, {spills} spilled, {} blocks on a multiprocessor, {} bytes",
        v.threads, v.registers, v.blocks_per_sm, v.binary.bytes
    )
}

/// `matmul.tk:8:15: operand b of a product is not copied by TMA: ..`
pub fn remark(r: &tk_bundle::Remark) -> String {
    let place = r.place.as_ref().map(|p| format!("{}:{}:{}: ", p.file, p.line, p.column));
    format!("{}{}", place.unwrap_or_default(), r.text)
}

/// The tools that made the binaries: a version alone is that of `ptxas`. There are none for PTX and for the CPU.
fn assembled(versions: &str) -> String {
    if versions.is_empty() {
        return "no assembler".to_string();
    }
    let named = |v: &str| if v.starts_with("lld ") { v.to_string() } else { format!("ptxas {v}") };
    versions.split(", ").map(named).collect::<Vec<_>>().join(", ")
}
