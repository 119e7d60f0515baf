//! Builds an artifact from specializations: [`ship`] compiles every variant and records how it is launched.
//!
//! Guarantees that the result depends only on the program, the options and the versions of the tools, and that
//! everything a launcher without a compiler could not decide is a diagnostic here.

use std::collections::{BTreeMap, BTreeSet};

use tk_bundle::{
    Blob, Choice, Expr, FORMAT, Given, Guard, Manifest, Message, MessageForm, MessageKind, Param, ParamKind,
    Place, Remark, Requirement, Scratch, Value, Versions, Writer,
};
use tk_gpu::ArgFacts;
use tk_runtime::{Compiled, Session};
use tk_sema::contract::{self, ClosedContract, Decided};
use tk_sema::eval::{Bindings, CVal};
use tk_sema::hir::{FnId, HFn, LocalId};
use tk_sema::types::Ty;
use tk_syntax::{Diagnostic, FileId, SourceMap, Span, codes};
use tk_tile::message::{self, Form, control};
use tk_tile::{Loc, text};

use crate::compile::binary::{Built, build_cached};
use crate::compile::instance::{Specialization, without_ptx};
use crate::compile::kernel::{ProgramShape, Request, Resources};
use crate::compile::variant::{MAX_OPTIONAL, Variant};
use crate::device::typical::expected;
use crate::ship::expr::{equals, expr};
use crate::ship::guard::{known, mapped, positive};
use crate::ship::listing::listing;
use crate::ship::params::{bytes_of, dtypes, entries, kind, passed, table};
use crate::tools::assembler::Tools;

/// The deepest nesting of expressions in a manifest: each level is three levels of JSON, and JSON parsers commonly stop
/// at 128.
const MAX_NESTING: usize = 32;

/// One binary.
#[derive(Clone, Debug)]
pub struct BundleUnit {
    /// The number of its specialization.
    pub special: usize,
    /// The arguments for which it is compiled.
    pub variant: Variant,
    /// The optional arguments that are absent.
    pub absent: Vec<String>,
    /// The binary.
    pub built: Built,
}

/// The shipped artifact of a file.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// The manifest. Its blobs have no offset yet.
    pub manifest: Manifest,
    /// The contents of its blobs, by hash.
    pub contents: BTreeMap<String, Vec<u8>>,
    /// The binaries in the order of the manifest's variants.
    pub units: Vec<BundleUnit>,
    /// Diagnostics of the program and the compiler.
    pub notes: Vec<Diagnostic>,
    /// A sentence for each specialization that nobody asked for and that cannot be compiled.
    pub left_out: Vec<String>,
}

/// Compiles specializations of the kernels of one file, all variants of each. With `listings` the artifact also
/// contains the source and every intermediate form of a kernel, for display.
pub fn ship(
    session: &Session,
    specials: &[Specialization],
    tools: &Tools,
    listings: bool,
) -> Result<Shipped, Vec<Diagnostic>> {
    let versions = Versions {
        tk: env!("CARGO_PKG_VERSION").to_string(),
        llvm: crate::llvm_version(),
        ptxas: String::new(),
    };
    let manifest = Manifest { format: FORMAT, versions, kernels: vec![] };
    let mut shipped =
        Shipped { manifest, contents: BTreeMap::new(), units: vec![], notes: vec![], left_out: vec![] };
    let mut kernels: Vec<(FnId, Vec<usize>)> = vec![];
    for (i, special) in specials.iter().enumerate() {
        match kernels.iter_mut().find(|(id, _)| *id == special.kernel) {
            Some((_, list)) => list.push(i),
            None => kernels.push((special.kernel, vec![i])),
        }
    }
    for (kernel, list) in kernels {
        let begin = shipped.units.len();
        let mut one =
            Shipping { session, specials, tools, listings, kernel, shipped: &mut shipped, made: vec![] };
        for i in list {
            let made = (one.made.len(), one.shipped.units.len());
            match one.specialization(i) {
                Ok(()) => {}
                Err(wrong) if specials.get(i).is_some_and(|s| s.is_spare) => {
                    one.made.truncate(made.0);
                    one.shipped.units.truncate(made.1);
                    one.left_out(i, &wrong);
                }
                Err(wrong) => return Err(wrong),
            }
        }
        let (kernels, order) = one.finish();
        shipped.manifest.kernels.extend(kernels);
        // The units stay in the order of the variants.
        let mut units: Vec<_> = shipped.units.split_off(begin).into_iter().map(Some).collect();
        shipped.units.extend(order.into_iter().filter_map(|i| units.get_mut(i)?.take()));
    }
    let used: BTreeSet<&str> =
        shipped.units.iter().map(|u| u.built.cubin.report.assembler.as_str()).collect();
    shipped.manifest.versions.ptxas =
        used.into_iter().filter(|v| !v.is_empty()).collect::<Vec<_>>().join(", ");
    Ok(shipped)
}

impl Shipped {
    /// The artifact as one file.
    pub fn bundle(&self) -> Vec<u8> {
        let (mut manifest, mut writer) = (self.manifest.clone(), Writer::default());
        for variant in manifest.kernels.iter_mut().flat_map(|k| &mut k.variants) {
            for blob in [&mut variant.binary, &mut variant.tile].into_iter().chain(&mut variant.listing) {
                *blob = writer.add(self.contents.get(&blob.blake3).cloned().unwrap_or_default());
            }
        }
        writer.finish(&manifest)
    }
}

/// The state of shipping a kernel.
struct Shipping<'a> {
    session: &'a Session,
    specials: &'a [Specialization],
    tools: &'a Tools,
    listings: bool,
    kernel: FnId,
    shipped: &'a mut Shipped,
    made: Vec<Made>,
}

/// A variant, and the choices that select it.
struct Made {
    variant: tk_bundle::Variant,
    params: Vec<Param>,
    /// Parameters that are given by name.
    named: Vec<Named>,
}

/// The value of a parameter that is given by name.
#[derive(Clone)]
struct Named {
    name: String,
    /// Its text for display.
    shown: String,
    /// The key that distinguishes it from others with the same text, such as two lambdas.
    key: String,
    default: bool,
}

/// The choices that select a variant.
#[derive(Default)]
struct Choices {
    guard: Vec<Guard>,
    named: Vec<Named>,
    values: Vec<Value>,
}

impl Shipping<'_> {
    fn func(&self) -> &HFn {
        self.session.checked().hir.func(self.kernel)
    }

    /// Says that a specialization which nobody asked for is not there.
    fn left_out(&mut self, index: usize, wrong: &[Diagnostic]) {
        let Some(special) = self.specials.get(index) else { return };
        let note = wrong.first().map(|d| without_ptx(&format!("kernel `{}`", special.label()), d));
        self.shipped.left_out.extend(note);
    }

    /// All variants of a specialization: each set of optional arguments, for arguments of each kind.
    fn specialization(&mut self, index: usize) -> Result<(), Vec<Diagnostic>> {
        let Some(special) = self.specials.get(index) else { return Ok(()) };
        let optional: Vec<(LocalId, String)> = self
            .func()
            .params
            .iter()
            .filter(|p| matches!(p.ty, Ty::Option(_)))
            .map(|p| (p.local, p.name.clone()))
            .collect();
        if optional.len() > MAX_OPTIONAL {
            let n = optional.len();
            let message = format!(
                "kernel `{}` has {n} optional arguments, and a shipped kernel has at most {MAX_OPTIONAL}",
                special.name
            );
            return Err(vec![Diagnostic::error(codes::NOT_SHIPPED, special.place, message, "")]);
        }
        for mask in 0..1usize << optional.len() {
            let (mut bindings, mut absent) = (special.bindings.clone(), vec![]);
            for (i, (local, name)) in optional.iter().enumerate() {
                bindings.present.insert(*local, mask >> i & 1 == 0);
                absent.extend((mask >> i & 1 == 1).then(|| name.clone()));
            }
            self.presence(index, special, &bindings, &absent)?;
        }
        Ok(())
    }

    fn presence(
        &mut self,
        index: usize,
        special: &Specialization,
        bindings: &Bindings,
        absent: &[String],
    ) -> Result<(), Vec<Diagnostic>> {
        let session = self.session;
        let (compiled, notes) = session.compile(special.kernel, bindings)?;
        for note in notes {
            if !self.shipped.notes.contains(&note) {
                self.shipped.notes.push(note);
            }
        }
        let hir = &session.checked().hir;
        let contract = contract::close(hir, special.kernel, bindings).map_err(|d| vec![*d])?;
        let (module, entry, target) = (&compiled.module, compiled.entry, special.target);
        let prefer = contract::preferred(hir, special.kernel, bindings).map_err(|d| vec![*d])?;
        // The defaults serve the other arguments.
        let all = Variant::of(module, entry, &prefer);
        let is_shipped = |variant: Variant| {
            // Nothing is known of arguments that the CPU would make use of.
            if target.is_interpreted() {
                return variant == Variant::General;
            }
            special.member.is_none() || variant != Variant::General || all.len() == 1
        };
        for (variant, facts) in all.iter().filter(|(variant, _)| is_shipped(*variant)) {
            let sources = &session.checked().sources;
            let shape = ProgramShape::of(target, special.asked);
            let request = Request { module, entry, target, shape, facts: facts.clone(), sources };
            let built = build_cached(&request, self.listings, self.tools, special.place)?;
            let mut made = self.made(special, bindings, &contract, &compiled, facts, &built)?;
            if let Some(stages) = &built.kernel.stages {
                // Text and numbers can always be serialized.
                let expected = expected(session, special, (bindings, &contract), &request);
                let text = serde_json::to_vec(&listing(&request, stages, expected)).unwrap_or_default();
                made.variant.listing = Some(self.blob(text));
            }
            self.made.push(made);
            self.shipped.units.push(BundleUnit {
                special: index,
                variant: *variant,
                absent: absent.to_vec(),
                built,
            });
        }
        Ok(())
    }

    /// How a launch determines the compile-time parameters.
    fn choices(
        &self,
        special: &Specialization,
        bindings: &Bindings,
        contract: &ClosedContract,
    ) -> Result<Choices, Vec<Diagnostic>> {
        let hir = &self.session.checked().hir;
        let mut out = Choices::default();
        let member = special.member.as_ref();
        let is_chosen = |name: &str| member.is_some_and(|m| m.values.iter().any(|(n, _)| n == name));
        for (id, decided) in &contract.decided {
            let (name, value) = (hir.cvar(*id).name.clone(), bindings.cvars.get(id));
            let shown = value.map(CVal::to_string).unwrap_or_default();
            out.values.push(Value { name: name.clone(), value: shown.clone() });
            if is_chosen(&name) {
                continue;
            }
            match decided {
                Decided::ByType => {}
                Decided::ByName { default } => {
                    let key = value.map(CVal::key).unwrap_or_default();
                    out.named.push(Named { name, shown, key, default: *default });
                }
                Decided::ByDefault(e) => {
                    let condition = equals(e, value).ok_or_else(|| vec![follows(&name, special.place)])?;
                    out.guard.push(Guard { condition, decides: Some(name) });
                }
            }
        }
        if let Some(member) = member {
            out.guard.push(Guard { condition: expr(&member.condition), decides: None });
            let options = member.values.iter().filter(|(name, _)| contract::is_launch_option(name));
            out.values.extend(options.map(|(name, v)| Value { name: name.clone(), value: v.to_string() }));
        }
        Ok(out)
    }

    fn blob(&mut self, bytes: Vec<u8>) -> Blob {
        let blob = Blob::of(&bytes);
        self.shipped.contents.insert(blob.blake3.clone(), bytes);
        blob
    }

    fn made(
        &mut self,
        special: &Specialization,
        bindings: &Bindings,
        contract: &ClosedContract,
        compiled: &Compiled,
        facts: &[ArgFacts],
        built: &Built,
    ) -> Result<Made, Vec<Diagnostic>> {
        let (place, kernel) = (special.place, &built.kernel);
        let passed = passed(contract);
        if passed.len() != kernel.params.len() {
            let message = "internal error in shipping: the arguments do not fit the kernel";
            return Err(vec![Diagnostic::error(codes::INTERNAL, place, message, "")]);
        }
        if kernel.has_grid_barrier && !special.cooperative {
            let message = format!("`{}` synchronizes its programs with `grid_barrier`", special.name);
            let note = "add `launch(cooperative = true)`: all programs then run at the same time";
            return Err(vec![Diagnostic::error(codes::CLAUSE, place, message, "").note(note)]);
        }
        let Choices { mut guard, named, values } = self.choices(special, bindings, contract)?;
        guard.extend(passed.iter().zip(facts).flat_map(|(m, f)| [known(*m, *f), positive(*m, *f)]).flatten());
        guard.extend(mapped(&passed, facts, &kernel.maps));
        let scratch = contract.scratch.iter().map(|s| Scratch {
            count: expr(&s.count),
            element_bytes: bytes_of(&s.elem),
            zeroed: s.zeroed,
            restored: s.restored,
        });
        let messages = manifest_messages(&kernel.messages, &self.session.checked().sources);
        let tile = text::print(&compiled.module, text::Options::default()).into_bytes();
        let (resources, has_control) = (&built.cubin.report, kernel.has_grid_barrier || !messages.is_empty());
        let (by_launch, by_binary) = shared_memory(kernel, resources);
        let variant = tk_bundle::Variant {
            target: kernel.target.name.to_string(),
            values,
            dtypes: dtypes(contract),
            entries: entries(contract),
            given: vec![],
            guard,
            require: required(contract),
            grid: contract.grid.each_ref().map(expr),
            symbol: kernel.name.clone(),
            threads: kernel.threads,
            blocks_per_program: kernel.blocks_per_program,
            shared_bytes: by_launch,
            cooperative: special.cooperative,
            passed,
            maps: kernel.maps.clone(),
            scratch: scratch.collect(),
            control: if has_control { control::BYTES as u32 } else { 0 },
            messages,
            registers: resources.registers,
            static_shared_bytes: by_binary,
            stack_bytes: resources.stack_bytes,
            blocks_per_sm: kernel.target.blocks_per_sm(
                resources.registers,
                kernel.threads,
                by_launch + by_binary,
            ),
            spill_store_bytes: resources.spill_store_bytes,
            spill_load_bytes: resources.spill_load_bytes,
            remarks: remarks(&kernel.remarks, &self.session.checked().sources),
            binary: self.blob(built.cubin.bytes.clone()),
            tile: self.blob(tile),
            listing: None,
        };
        nested(&variant).map_or(Ok(()), |what| {
            let message = format!("{what} of kernel `{}` is nested too deeply to be shipped", special.name);
            Err(vec![Diagnostic::error(codes::NOT_SHIPPED, place, message, "")])
        })?;
        let params = contract.args.iter().map(|a| Param {
            name: a.name.clone(),
            kind: kind(&a.ty),
            optional: a.optional,
            default: a.default.clone(),
            table: table(&a.ty),
        });
        Ok(Made { variant, params: params.collect(), named })
    }

    /// The kernel with all its variants; several if the ranks of its arguments differ, each with a name of its own:
    /// `scale_R2` for the values with `R = 2`. Also returns the unit of each variant of these kernels, in their order.
    fn finish(self) -> (Vec<tk_bundle::Kernel>, Vec<usize>) {
        let (name, doc) = (self.func().name.clone(), self.func().doc.clone());
        let ranks = contract::rank_names(&self.session.checked().hir, self.kernel);
        let mut groups: Vec<(Vec<ParamKind>, Vec<usize>, Vec<Made>)> = vec![];
        for (i, made) in self.made.into_iter().enumerate() {
            let kinds: Vec<ParamKind> = made.params.iter().map(|p| p.kind).collect();
            match groups.iter_mut().find(|(known, ..)| *known == kinds) {
                Some((_, numbers, list)) => {
                    numbers.push(i);
                    list.push(made);
                }
                None => groups.push((kinds, vec![i], vec![made])),
            }
        }
        let order = groups.iter().flat_map(|(_, numbers, _)| numbers.iter().copied()).collect();
        let several = groups.len() > 1;
        let named = |made: &[Made]| {
            let values = made.first().map(|m| m.variant.values.as_slice()).unwrap_or_default();
            let own = values.iter().filter(|v| several && ranks.contains(&v.name));
            own.fold(name.clone(), |name, v| format!("{name}_{}{}", v.name, v.value))
        };
        let kernel = |(_, _, made): (_, _, Vec<Made>)| Self::kernel_of(named(&made), doc.clone(), made);
        (groups.into_iter().map(kernel).collect(), order)
    }

    /// A parameter with only one value needs no choice.
    fn kernel_of(name: String, doc: String, all: Vec<Made>) -> tk_bundle::Kernel {
        let mut found: Vec<(String, Vec<Named>)> = vec![];
        for n in all.iter().flat_map(|m| &m.named) {
            match found.iter_mut().find(|(name, _)| *name == n.name) {
                Some((_, known)) if known.iter().any(|k| k.key == n.key) => {}
                Some((_, known)) => known.push(n.clone()),
                None => found.push((n.name.clone(), vec![n.clone()])),
            }
        }
        found.retain(|(_, known)| known.len() > 1);
        let text = |known: &[Named], i: usize, n: &Named| {
            let before = known.iter().take(i).filter(|k| k.shown == n.shown).count();
            if before == 0 { n.shown.clone() } else { format!("{}#{}", n.shown, before + 1) }
        };
        let choice = |(name, known): &(String, Vec<Named>)| Choice {
            name: name.clone(),
            values: known.iter().enumerate().map(|(i, n)| text(known, i, n)).collect(),
        };
        let choices: Vec<Choice> = found.iter().map(choice).collect();
        let mut params = all.first().map(|m| m.params.clone()).unwrap_or_default();
        for (i, p) in params.iter_mut().enumerate() {
            // A default that depends on compiled values is not the kernel's.
            let same = all.iter().all(|m| m.params.get(i).is_some_and(|own| own.default == p.default));
            p.default = p.default.take().filter(|_| same);
        }
        let given = |made: &Made, (name, known): &(String, Vec<Named>)| {
            let own = made.named.iter().find(|n| n.name == *name);
            let value = own.and_then(|own| known.iter().position(|k| k.key == own.key));
            Given { value: value.unwrap_or(0) as u32, default: own.is_some_and(|n| n.default) }
        };
        let variants = all.into_iter().map(|made| {
            let given = found.iter().map(|f| given(&made, f)).collect();
            tk_bundle::Variant { given, ..made.variant }
        });
        let variants = variants.collect();
        tk_bundle::Kernel { name, doc, params, choices, variants }
    }
}

fn follows(name: &str, place: Span) -> Diagnostic {
    let message =
        format!("the default of `{name}` asks the launch for what is neither an integer nor a bool");
    Diagnostic::error(codes::NOT_SHIPPED, place, message, "")
        .note("an `export` that gives its value ships the kernel")
}

/// The part of a contract with an expression that is nested too deeply.
fn nested(v: &tk_bundle::Variant) -> Option<String> {
    let guards = v.guard.iter().map(|g| (&g.condition, "a default".to_string()));
    let required = v.require.iter().map(|r| (&r.condition, format!("`{}`", r.text)));
    let grid = v.grid.iter().map(|e| (e, "the grid".to_string()));
    let scratch = v.scratch.iter().map(|s| (&s.count, "a workspace".to_string()));
    let mut all = guards.chain(required).chain(grid).chain(scratch);
    all.find(|(e, _)| depth(e) > MAX_NESTING).map(|(_, what)| what)
}

fn depth(e: &Expr) -> usize {
    match e {
        Expr::Apply(o) => 1 + o.args.iter().map(depth).max().unwrap_or(0),
        Expr::Int(_)
        | Expr::Float(_)
        | Expr::Number(_)
        | Expr::Address(_)
        | Expr::Extent(..)
        | Expr::Stride(..)
        | Expr::Device(_) => 1,
    }
}

/// The kind of a message, in the words of an artifact.
pub(crate) fn message_kind(kind: &message::Kind) -> MessageKind {
    let form = |f: &Form| match f {
        Form::Numbers { dtype, shape } => {
            MessageForm::Numbers { dtype: dtype.name().to_string(), shape: shape.clone() }
        }
        Form::Pointers { bytes, shape } => MessageForm::Pointers { bytes: *bytes, shape: shape.clone() },
        Form::View { bytes, rank } => MessageForm::View { bytes: *bytes, rank: *rank },
    };
    match kind {
        message::Kind::Print(forms) => MessageKind::Print(forms.iter().map(form).collect()),
        message::Kind::Assert(shape) => MessageKind::Assert(shape.clone()),
    }
}

/// The messages of a kernel, with positions as text.
fn manifest_messages(messages: &[message::Message], sources: &SourceMap) -> Vec<Message> {
    let one = |m: &message::Message| Message {
        text: m.text.clone(),
        kind: message_kind(&m.kind),
        place: m.loc.map(|l| place(l, sources)),
    };
    messages.iter().map(one).collect()
}

/// The requirements of a launch.
fn required(contract: &ClosedContract) -> Vec<Requirement> {
    let one = |(e, text): &(_, String)| Requirement { condition: expr(e), text: text.clone() };
    contract.require.iter().map(one).collect()
}

/// Remarks with positions as text.
pub(crate) fn remarks(all: &[tk_gpu::ir::kernel::Remark], sources: &SourceMap) -> Vec<Remark> {
    all.iter().map(|r| Remark { text: r.text.clone(), place: r.loc.map(|l| place(l, sources)) }).collect()
}

/// A position without the folder of its file, which is not part of an artifact.
fn place(loc: Loc, sources: &SourceMap) -> Place {
    let span = Span::new(FileId(loc.file), loc.start as usize, loc.end as usize);
    let (file, line, column) = sources.position(span);
    let file = file.rsplit('/').next().unwrap_or(file).to_string();
    Place { file, line: line as u32, column: column as u32 }
}

/// Shared memory of a block that the launch requests, and that the binary contains itself, in bytes. In a code object
/// of AMD all of it is fixed.
fn shared_memory(kernel: &crate::compile::kernel::CompiledKernel, resources: &Resources) -> (u32, u32) {
    if kernel.target.has_gcn {
        (0, kernel.shared_bytes)
    } else {
        (kernel.shared_bytes, resources.static_shared_bytes)
    }
}
