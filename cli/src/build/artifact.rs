//! The forms of `tk build` that hold all kernels of a file: bundle, manifest, C source.

use std::ffi::OsStr;
use std::path::Path;

use tk_driver::{BundleUnit, CForm, Shipped, Specialization, assembled, c_source, ship, shortages};
use tk_syntax::{FileId, Span};

use super::table::{self, Row};
use super::{Builder, Files, extension};
use crate::args::{BuildArgs, BuildForm};
use crate::terminal::Failure;

/// Returns true if a form holds all kernels of a file.
pub fn is_one(form: BuildForm) -> bool {
    match form {
        BuildForm::Bundle | BuildForm::Manifest | BuildForm::Header | BuildForm::TvmFfi => true,
        BuildForm::Tile
        | BuildForm::Layout
        | BuildForm::LayoutSvg
        | BuildForm::Sched
        | BuildForm::Llvm
        | BuildForm::Ptx
        | BuildForm::Gcn
        | BuildForm::Cubin
        | BuildForm::Hsaco
        | BuildForm::Report => false,
    }
}

/// Builds the kernels of a file as one; what is written, and a row for each binary.
pub fn build(
    builder: &Builder<'_>,
    args: &BuildArgs,
    path: &str,
    chosen: &[Specialization],
) -> Result<(Files, Vec<Row>), Failure> {
    let Some(tools) = &builder.tools else { return Ok((vec![], vec![])) };
    let sources = &builder.session.checked().sources;
    let mut shipped =
        ship(builder.session, chosen, tools, args.listing).map_err(|wrong| builder.refused(&wrong))?;
    builder.terminal.diagnostics(sources, &shipped.notes)?;
    shipped.left_out.iter().try_for_each(|sentence| builder.terminal.note(sentence))?;
    let mut rows = vec![];
    for unit in &shipped.units {
        let Some(special) = chosen.get(unit.special) else { continue };
        let label = format!("{}{}", special.variant_label(unit.variant), without(unit, " without "));
        // The PTX for newer GPUs is there without being asked for, so what does not fit in it is no news.
        let asked = args.targets.iter().any(|t| t == special.target.name);
        let mut warnings = if asked { shortages(&label, &unit.built.kernel, special.place) } else { vec![] };
        warnings.extend(assembled(&label, &unit.built, special.place));
        builder.terminal.diagnostics(sources, &warnings)?;
        rows.push(Row {
            kernel: format!("{}{}", special.label(), without(unit, " without ")),
            target: special.target.name,
            variant: unit.variant.name(),
            files: vec![],
            shared_bytes: Some(unit.built.kernel.shared_bytes),
            binary: Some((unit.built.cubin.report.clone(), unit.built.cubin.bytes.len(), unit.built.work)),
        });
    }
    // The name of standard input is what `--stdin-name` says.
    let main = sources.get(FileId(0)).map(|s| s.name.to_string()).unwrap_or_else(|| path.to_string());
    let plain = |c: char| if c.is_control() || matches!(c, '"' | '\\' | '<' | '>') { '_' } else { c };
    let part = |p: Option<&OsStr>| {
        p.map(|n| n.to_string_lossy().chars().map(plain).collect::<String>()).unwrap_or_default()
    };
    let (file, stem) = (part(Path::new(&main).file_name()), part(Path::new(&main).file_stem()));
    let stem = if main == "<stdin>" { "kernels".to_string() } else { stem };
    let place = |name: &str| chosen.iter().find(|s| s.name == name).map_or(Span::default(), |s| s.place);
    let mut files: Files = vec![];
    for form in args.emit.iter().filter(|f| is_one(**f)) {
        let name = format!("{stem}.{}", extension(*form));
        match form {
            BuildForm::Bundle => files.push((name, shipped.bundle())),
            BuildForm::Header | BuildForm::TvmFfi => {
                let form_of_c = CForm { prefix: &args.prefix, included: args.incbin };
                let c = c_source(&shipped, &stem, &file, form_of_c, place)
                    .map_err(|wrong| builder.refused(&wrong))?;
                if *form == BuildForm::TvmFfi {
                    let source =
                        c.tvm_ffi.map_err(|why| format!("{file} cannot be built for TVM-FFI: {why}"))?;
                    files.push((format!("{stem}_tvm_ffi.c"), source.into_bytes()));
                }
                let name = format!("{stem}.h");
                files.push((name, c.header.into_bytes()));
                files.push((format!("{stem}.c"), c.source.into_bytes()));
                files.extend(c.binaries.map(|bytes| (format!("{stem}.c.bin"), bytes)));
            }
            _manifest => {
                files.extend(beside(&mut shipped, chosen));
                files.push((name, shipped.manifest.to_json().into_bytes()));
            }
        }
    }
    let names = files.iter().map(|(name, _)| (name.clone(), vec![])).collect::<Files>();
    Ok((files, rows.into_iter().map(|row| table::named(row, &names)).collect()))
}

/// Names the files of binaries and tile IR in the manifest, and gives them.
fn beside(shipped: &mut Shipped, chosen: &[Specialization]) -> Files {
    let mut files: Files = vec![];
    let variants = shipped.manifest.kernels.iter_mut().flat_map(|k| &mut k.variants);
    for (variant, unit) in variants.zip(&shipped.units) {
        let Some(special) = chosen.get(unit.special) else { continue };
        let stem =
            format!("{}{}.{}", special.file_stem(unit.variant), without(unit, ".without_"), variant.target);
        let binary = extension(match special.target {
            target if target.has_gcn => BuildForm::Hsaco,
            target if target.oldest.is_some() => BuildForm::Ptx,
            _exact => BuildForm::Cubin,
        });
        for (blob, extension) in [(&mut variant.binary, binary), (&mut variant.tile, "tile")] {
            let name = format!("{stem}.{extension}");
            let bytes = shipped.contents.get(&blob.blake3).cloned().unwrap_or_default();
            files.push((name.clone(), bytes));
            blob.file = Some(name);
        }
    }
    files
}

/// The optional arguments that are absent, each after `word`.
fn without(unit: &BundleUnit, word: &str) -> String {
    unit.absent.iter().map(|name| format!("{word}{name}")).collect()
}
