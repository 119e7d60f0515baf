//! `tk build FILE[::KERNEL] --target T -o DIR`: machine code, intermediate forms and shipped artifacts, as files.
//!
//! Guarantees that either all files are written or none, and that the same input gives the same files: their names and
//! contents hold no times and no paths.

mod artifact;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tk_driver::{
    ArgFacts, Asking, Built, Cache, CompiledKernel, Environment, ProgramShape, Refused, Request,
    Specialization, Specializations, StageTexts, Tools, Until, Variant, add_ptx, after_passes, assembled,
    build_cached, compile_for, describe, shortages, specializations,
};
use tk_gpu::TargetSpec;
use tk_gpu::pipeline::PASSES;
use tk_runtime::files::{reason, write_all};
use tk_runtime::{Session, pass};
use tk_sema::contract::{self, Preferred};
use tk_syntax::Diagnostic;
use tk_tile::{FuncId, TileModule, text};

use crate::args::{BuildArgs, BuildForm};
use crate::front;
use crate::input::Inputs;
use crate::report::{self, Line};
use crate::terminal::{Failure, Outcome, Terminal};
use table::Row;

/// Builds kernels.
pub fn run(terminal: &Terminal, args: &BuildArgs) -> Outcome {
    let targets = targets(&args.targets)?;
    let args = &with_default(args, &targets);
    can_be_made(args, &targets)?;
    can_be_dumped(args)?;
    let (path, name) = front::split_target(&args.source);
    let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &args.sets)?;
    front::report(terminal, &checked)?;
    let session = Session::new(checked);
    let sets = front::sets(&args.sets)?;
    let members = args.members;
    let asking = Asking { path, kernel: name, sets: &sets, targets: &targets, members };
    let mut found = specializations(&session, asking).map_err(|refused| said(terminal, &session, refused))?;
    let chosen = found.all.clone();
    if !args.no_ptx {
        add_ptx(&session, asking, &mut found);
    }
    let Specializations { all: shipped, open, notes } = found;
    open.iter().try_for_each(|sentence| terminal.note(&format!("skipped: {sentence}")))?;
    notes.iter().try_for_each(|sentence| terminal.note(sentence))?;
    let first = chosen.first().map(|s| s.place).unwrap_or_default();
    let forms = &args.emit;
    let mut builder =
        Builder { terminal, session: &session, forms, dump_after: &args.dump_after, tools: None };
    if builder.needs_binary() {
        let environment = Environment::of_process(Some(Path::new(path)));
        let tools = Tools::new(environment, Cache::of_process());
        // Missing tools are reported before anything is compiled.
        for target in targets.iter().filter(|t| !t.is_interpreted()) {
            tools.assembler(target).map_err(|e| builder.refused(&[e.at(first)]))?;
        }
        builder.tools = Some(tools);
    }
    let (mut files, mut rows, sources): (Files, Vec<Row>, _) = (vec![], vec![], &session.checked().sources);
    if args.emit.iter().any(|f| artifact::is_one(*f)) {
        let (written, shown) = artifact::build(&builder, args, path, &shipped)?;
        files.extend(written);
        rows.extend(shown);
    }
    // The messages of a kernel while it is compiled are printed once, although each target compiles it.
    let mut said: Vec<Diagnostic> = vec![];
    let each = if builder.each().next().is_some() { chosen.as_slice() } else { &[] };
    for special in each {
        let compiled = match session.compile(special.kernel, &special.bindings) {
            Ok((compiled, notes)) => {
                let new: Vec<Diagnostic> = notes.into_iter().filter(|n| !said.contains(n)).collect();
                terminal.diagnostics(sources, &new)?;
                said.extend(new);
                compiled
            }
            Err(wrong) => return front::refused(terminal, &session, &wrong),
        };
        let (module, entry, target) = (&compiled.module, compiled.entry, special.target);
        let prefer = contract::preferred(&session.checked().hir, special.kernel, &special.bindings)
            .map_err(|wrong| builder.refused(&[*wrong]))?;
        for (variant, facts) in builder.variants(special, module, entry, &prefer) {
            let shape = ProgramShape::of(target, special.asked);
            let request = Request { module, entry, target, shape, facts, sources };
            let (row, written) = builder.one(special, variant, &request)?;
            let row = table::named(row, &written);
            files.extend(written);
            rows.push(row);
        }
    }
    let mut once: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for (name, bytes) in files {
        // A binary has the same name next to a manifest and alone.
        if once.insert(args.out.join(&name), bytes.clone()).is_some_and(|old| old != bytes) {
            return Err(Failure::Sentence(format!(
                "two of the files would be named {name}; build one form at a time"
            )));
        }
    }
    let files: Vec<(PathBuf, Vec<u8>)> = once.into_iter().collect();
    std::fs::create_dir_all(&args.out)
        .map_err(|e| format!("cannot create {}: {}", args.out.display(), reason(&e)))?;
    write_all(&files)?;
    table::show(terminal, &rows)
}

/// The options, with the form that the CPU has where none is given.
fn with_default(args: &BuildArgs, targets: &[&TargetSpec]) -> BuildArgs {
    let mut args = args.clone();
    if args.emit == BuildForm::DEFAULT && targets.iter().all(|t| t.is_interpreted()) {
        args.emit = vec![BuildForm::Bundle];
    }
    args
}

fn said(terminal: &Terminal, session: &Session, refused: Refused) -> Failure {
    match refused {
        Refused::Sentence(sentence) => Failure::Sentence(sentence),
        Refused::Wrong(wrong) => front::refused(terminal, session, &wrong).err().unwrap_or(Failure::Reported),
    }
}

/// Fails for a form that none of these targets has.
fn can_be_made(args: &BuildArgs, targets: &[&TargetSpec]) -> Result<(), String> {
    let (forms, prefix) = (&args.emit, &args.prefix);
    let is_c = forms.iter().any(|f| matches!(f, BuildForm::Header | BuildForm::TvmFfi));
    if is_c && targets.iter().any(|t| t.is_interpreted()) {
        let text =
            "a C file launches kernels on GPUs; a bundle serves the CPU, and `libtklang` launches it from C";
        return Err(text.into());
    }
    // The default names the binaries of all targets.
    let missing = forms.iter().find(|f| !targets.iter().any(|t| has_form(t, **f)));
    if let Some(form) = missing.filter(|_| *forms != BuildForm::DEFAULT) {
        let names: Vec<&str> = targets.iter().map(|t| t.name).collect();
        return Err(format!("there is no {} of {}", extension(*form), names.join(" or ")));
    }
    if !tk_driver::is_prefix(prefix) {
        return Err(format!("`{prefix}` is no prefix of names in C"));
    }
    if args.incbin && !is_c {
        return Err("--incbin is about a C source: --emit header, or tvm-ffi".into());
    }
    let gcn = targets.iter().filter(|t| t.has_gcn).count();
    if is_c && gcn > 0 && gcn < targets.len() {
        return Err("one C file launches kernels of one vendor: build for NVIDIA and AMD separately".into());
    }
    Ok(())
}

/// Fails for unknown passes, or if every form holds all kernels.
fn can_be_dumped(args: &BuildArgs) -> Result<(), String> {
    let names: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
    if let Some(wrong) = args.dump_after.iter().find(|d| *d != "all" && !names.contains(&d.as_str())) {
        return Err(format!("no pass `{wrong}`; the passes are {}, or all", names.join(", ")));
    }
    if !args.dump_after.is_empty() && args.emit.iter().all(|f| artifact::is_one(*f)) {
        return Err("--dump-after needs a form of each kernel, such as --emit sched".into());
    }
    Ok(())
}

/// The targets by name, each once.
fn targets(names: &[String]) -> Result<Vec<&'static TargetSpec>, String> {
    let known: Vec<&str> = tk_driver::buildable().map(|t| t.name).collect();
    let mut found: Vec<&'static TargetSpec> = vec![];
    for name in names {
        let Some(target) = tk_driver::buildable().find(|t| t.name == name) else {
            return Err(format!("unknown target `{name}`; the targets are {}", known.join(", ")));
        };
        if !found.contains(&target) {
            found.push(target);
        }
    }
    Ok(found)
}

/// The state that all kernels of one call share.
struct Builder<'a> {
    terminal: &'a Terminal,
    session: &'a Session,
    forms: &'a [BuildForm],
    /// Passes after which kernels are printed.
    dump_after: &'a [String],
    /// Assemblers and the cache, where a binary is made.
    tools: Option<Tools>,
}

/// The files of one kernel by their names in the folder.
type Files = Vec<(String, Vec<u8>)>;

impl Builder<'_> {
    fn needs_binary(&self) -> bool {
        let binary = |f: &BuildForm| {
            matches!(f, BuildForm::Cubin | BuildForm::Hsaco | BuildForm::Report) || artifact::is_one(*f)
        };
        self.forms.iter().any(binary)
    }

    /// The forms that each variant of each specialization has for itself.
    fn each(&self) -> impl Iterator<Item = BuildForm> {
        self.forms.iter().copied().filter(|f| !artifact::is_one(*f))
    }

    /// Returns true if a requested form comes only from compiling.
    fn needs_stages(&self) -> bool {
        !self.dump_after.is_empty()
            || self.forms.iter().any(|f| {
                matches!(
                    f,
                    BuildForm::Layout
                        | BuildForm::LayoutSvg
                        | BuildForm::Sched
                        | BuildForm::Llvm
                        | BuildForm::Gcn
                )
            })
    }

    /// Prints a kernel after the passes that were asked for.
    fn dump(&self, kernel: &str, target: &str, after: &[(&'static str, String)]) -> Outcome {
        let asked = |pass: &str| self.dump_after.iter().any(|d| d == pass || d == "all");
        after.iter().filter(|(pass, _)| asked(pass)).try_for_each(|(pass, text)| {
            if self.terminal.is_json() {
                self.terminal.object(&Line::Dump(report::Dump { kernel, target, pass, text }))
            } else {
                self.terminal.data(&format!("// {kernel} for {target} after {pass}\n{text}\n"))
            }
        })
    }

    /// A kernel that cannot be compiled. The passes before the one that failed are still printed.
    fn failed(&self, kernel: &str, request: &Request<'_>, wrong: &[tk_syntax::Diagnostic]) -> Failure {
        if !self.dump_after.is_empty()
            && let Err(failure) = self.dump(kernel, request.target.name, &after_passes(request))
        {
            return failure;
        }
        self.refused(wrong)
    }

    fn refused(&self, wrong: &[tk_syntax::Diagnostic]) -> Failure {
        front::refused(self.terminal, self.session, wrong).err().unwrap_or(Failure::Reported)
    }

    /// The variants that are built of a kernel. Tile IR does not depend on them.
    fn variants(
        &self,
        special: &Specialization,
        module: &TileModule,
        entry: FuncId,
        prefer: &[Vec<Preferred>],
    ) -> Vec<(Variant, Vec<ArgFacts>)> {
        let mut all = Variant::of(module, entry, prefer);
        if self.each().all(|f| f == BuildForm::Tile) {
            all.retain(|(variant, _)| *variant == Variant::General);
        } else if special.member.is_some() && all.len() > 1 {
            // The defaults serve the other arguments.
            all.retain(|(variant, _)| *variant != Variant::General);
        }
        all
    }

    /// Builds one variant of a specialization for one target.
    fn one(
        &self,
        special: &Specialization,
        variant: Variant,
        request: &Request<'_>,
    ) -> Result<(Row, Files), Failure> {
        pass::enter("machine code");
        let sources = &self.session.checked().sources;
        let (stages, place) = (self.needs_stages(), special.place);
        let label = special.variant_label(variant);
        let (kernel, built) = match &self.tools {
            Some(tools) => {
                let built = build_cached(request, stages, tools, place)
                    .map_err(|wrong| self.failed(&label, request, &wrong))?;
                let mut warnings = shortages(&label, &built.kernel, place);
                warnings.extend(assembled(&label, &built, place));
                self.terminal.diagnostics(sources, &warnings)?;
                (Some(built.kernel.clone()), Some(built))
            }
            None if !stages && self.each().all(|f| f == BuildForm::Tile) => (None, None),
            None => {
                let text = |f| matches!(f, BuildForm::Ptx | BuildForm::Gcn);
                let until = if self.each().any(text) { Until::Text } else { Until::Ir };
                let kernel = compile_for(request, stages, until, place)
                    .map_err(|wrong| self.failed(&label, request, &wrong))?;
                self.terminal.diagnostics(sources, &shortages(&label, &kernel, place))?;
                (Some(kernel), None)
            }
        };
        if let Some(texts) = kernel.as_ref().and_then(|k| k.stages.as_ref()) {
            self.dump(&label, request.target.name, &texts.after)?;
        }
        let mut files = vec![];
        for form in self.each() {
            if form == BuildForm::Tile && variant != Variant::General || !has_form(request.target, form) {
                continue;
            }
            let stem = special.file_stem(variant);
            // The binary that drivers assemble is its text.
            let is_text = form == BuildForm::Cubin && request.target.oldest.is_some();
            let form = if is_text { BuildForm::Ptx } else { form };
            let name = format!("{stem}.{}.{}", request.target.name, extension(form));
            if files.iter().all(|(known, _)| *known != name) {
                let one = (special, variant, request);
                let bytes = contents(form, one, kernel.as_ref(), built.as_ref());
                files.push((name, bytes.ok_or_else(|| missing(form))?));
            }
        }
        let row = Row {
            kernel: special.label(),
            target: request.target.name,
            variant: variant.name(),
            files: vec![],
            shared_bytes: kernel.as_ref().map(|k| k.shared_bytes),
            binary: built.map(|b| (b.cubin.report, b.cubin.bytes.len(), b.work)),
        };
        Ok((row, files))
    }
}

/// The compiler left out a text that was asked for.
fn missing(form: BuildForm) -> Failure {
    Failure::Internal { pass: pass::current().into(), what: format!("there is no {}", extension(form)) }
}

/// Returns true if there is such a file for a target.
fn has_form(target: &TargetSpec, form: BuildForm) -> bool {
    if target.is_interpreted() {
        return matches!(form, BuildForm::Tile | BuildForm::Bundle | BuildForm::Manifest);
    }
    match form {
        BuildForm::Ptx | BuildForm::Cubin => target.has_ptx,
        BuildForm::Gcn | BuildForm::Hsaco => target.has_gcn,
        BuildForm::Tile
        | BuildForm::Layout
        | BuildForm::LayoutSvg
        | BuildForm::Sched
        | BuildForm::Llvm
        | BuildForm::Report
        | BuildForm::Bundle
        | BuildForm::Manifest
        | BuildForm::Header
        | BuildForm::TvmFfi => true,
    }
}

/// The suffix of a file name.
fn extension(form: BuildForm) -> &'static str {
    match form {
        BuildForm::Tile => "tile",
        BuildForm::Layout => "layout",
        BuildForm::LayoutSvg => "layout.svg",
        BuildForm::Sched => "sched",
        BuildForm::Llvm => "ll",
        BuildForm::Ptx => "ptx",
        BuildForm::Gcn => "gcn",
        BuildForm::Cubin => "cubin",
        BuildForm::Hsaco => "hsaco",
        BuildForm::Report | BuildForm::Manifest => "json",
        BuildForm::Bundle => "tkb",
        BuildForm::Header => "h",
        BuildForm::TvmFfi => "c",
    }
}

fn contents(
    form: BuildForm,
    (special, variant, request): (&Specialization, Variant, &Request<'_>),
    kernel: Option<&CompiledKernel>,
    built: Option<&Built>,
) -> Option<Vec<u8>> {
    let stage = |of: fn(&StageTexts) -> &String| Some(of(kernel?.stages.as_ref()?).clone().into_bytes());
    match form {
        BuildForm::Tile => Some(text::print(request.module, text::Options::default()).into_bytes()),
        BuildForm::Layout => stage(|s| &s.layout),
        BuildForm::LayoutSvg => stage(|s| &s.pictures),
        BuildForm::Sched => stage(|s| &s.sched),
        BuildForm::Llvm => stage(|s| &s.llvm),
        BuildForm::Ptx | BuildForm::Gcn => Some(kernel?.asm.clone().into_bytes()),
        BuildForm::Cubin | BuildForm::Hsaco => Some(built?.cubin.bytes.clone()),
        BuildForm::Report => {
            let facts = (variant, request.facts.as_slice());
            Some(describe(&special.name, &special.values, facts, built?, request.sources).into_bytes())
        }
        // Those of a whole file are made elsewhere.
        BuildForm::Bundle | BuildForm::Manifest | BuildForm::Header | BuildForm::TvmFfi => None,
    }
}
