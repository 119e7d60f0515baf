//! Prints an artifact as C: a header with one function for each kernel, and a source file that contains the binaries
//! and needs only the C library and the NVIDIA driver.
//!
//! The parts that do not depend on the kernels are the files of `c/`. Guarantees a source without warnings under
//! `-std=c11 -Wall -Wextra -Wpedantic`: helpers that no expression uses are left out.

mod binaries;
mod expr;
mod log;
mod names;
mod runs;
mod tvm_ffi;
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use names::{Names, names, stem};
use runs::{runs, targets};
use tk_bundle::{Dimension, Kernel, Machine, Param, ParamKind, Table, TensorMap, Variant, Word};
use tk_gpu::target::spec;
use tk_ops::DType;
use tk_syntax::{Diagnostic, Span, codes};
use types::{dtypes, enumerator, number_type};

use crate::ship::artifact::Shipped;

const TYPES: &str = include_str!("../c/types.h");
const PLATFORM: &str = include_str!("../c/platform.h");
const LAUNCH: &str = include_str!("../c/launch.c");

/// A header and a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CSource {
    /// `NAME.h`
    pub header: String,
    /// `NAME.c`
    pub source: String,
    /// `NAME.c.bin`, if the source includes its binaries.
    pub binaries: Option<Vec<u8>>,
    /// `NAME_tvm_ffi.c`, or why there is none.
    pub tvm_ffi: Result<String, String>,
}

/// The prefix of functions where none is given.
pub const PREFIX: &str = "tk";

/// What a C source is to be like.
#[derive(Clone, Copy, Debug)]
pub struct CForm<'a> {
    /// What the names of functions begin with, and `_`.
    pub prefix: &'a str,
    /// Whether the assembler includes the binaries from a file, instead of arrays in the text.
    pub included: bool,
}

/// Returns true if the names of functions may begin with a text and `_`: an identifier of C that neither C nor the
/// source reserves.
pub fn is_prefix(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_alphabetic());
    first
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.to_lowercase().starts_with("tki")
}

/// Prints a shipped artifact as C, for targets of one vendor; `name` is that of the files, `origin` of the `.tk` file. `place`
/// is the position, by the name of a kernel, at which it is reported if C cannot launch it.
pub fn c_source(
    shipped: &Shipped,
    name: &str,
    origin: &str,
    form: CForm<'_>,
    place: impl Fn(&str) -> Span,
) -> Result<CSource, Vec<Diagnostic>> {
    let stem = stem(name);
    let mut file =
        File { shipped, helpers: BTreeSet::new(), binaries: BTreeMap::new(), numbers: BTreeSet::new() };
    let kernels = &shipped.manifest.kernels;
    let (names, error) = names(kernels, &stem, form.prefix);
    for kernel in kernels {
        file.fits(kernel).map_err(|what| {
            let message = format!("kernel `{}` cannot be launched from C: {what}", kernel.name);
            vec![Diagnostic::error(codes::NOT_SHIPPED, place(&kernel.name), message, "")]
        })?;
    }
    let is_gcn = kernels.iter().flat_map(|k| &k.variants).any(of_gcn);
    let bodies: String = kernels.iter().zip(&names).map(|(k, n)| file.kernel(k, n)).collect();
    let tk = &shipped.manifest.versions.tk;
    let mut header = format!("/* The kernels of {origin}, for C and C++. tk {tk} wrote this file. */\n");
    let guard = format!("{}_{}_H", form.prefix.to_uppercase(), stem.to_uppercase());
    let _ =
        write!(header, "#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n");
    header.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    header.push_str(TYPES);
    let _ = write!(
        header,
        "\n/* Why the last call of this file in this thread did not return TK_OK. */\nconst char *{error}(void);\n"
    );
    kernels.iter().zip(&names).for_each(|(k, n)| header.push_str(&declaration(k, n)));
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    let mut source =
        format!("/* The kernels of {origin}: binaries and launches. tk {tk} wrote this file. */\n");
    let _ = write!(source, "#include \"{name}.h\"\n\n");
    source.push_str(PLATFORM);
    let words = |v: &Variant| v.passed.len();
    let most = kernels.iter().flat_map(|k| &k.variants).map(words).max().unwrap_or(0);
    let maps = most_maps(shipped);
    let _ = write!(
        source,
        "\n/* The most arguments of a function in a binary. */\n#define TKI_MOST {most}\n\n/* The most tensors that a launch describes to TMA. */\n#define TKI_MAPS {maps}\n\n/* Whether the GPUs are those of AMD. */\n#define TKI_HIP {}\n\n/* Whether kernels leave workspaces zero that are kept. */\n#define TKI_KEEPS {}\n\n",
        u8::from(is_gcn),
        u8::from(!is_gcn && kernels.iter().flat_map(|k| &k.variants).any(Variant::keeps_workspaces))
    );
    source.push_str(LAUNCH);
    let _ = write!(source, "\nconst char *{error}(void)\n{{\n    return tki_text;\n}}\n");
    file.helpers().iter().for_each(|h| source.push_str(h));
    let all = file.binaries.values().copied();
    let binaries = if form.included {
        let (text, bytes) = binaries::included(&format!("tki_binaries_of_{error}"), all);
        source.push_str(&text);
        Some(bytes)
    } else {
        source.push_str(&binaries::arrays(all));
        None
    };
    source.push_str(&bodies);
    let tvm_ffi = tvm_ffi::source(kernels, &names, name, &error);
    Ok(CSource { header, source, binaries, tvm_ffi })
}

/// Text inside a comment.
fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *")
}

/// Text inside the quotes of a string that is also a format.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '%' => out.push_str("%%"),
            '"' | '\\' => out.extend(['\\', c]),
            // `??` begins a trigraph of ISO C.
            '?' => out.push_str("\\?"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The parameters of a function as C declares them; `name` is that of an argument, then that of a choice.
fn parameters(kernel: &Kernel, names: &Names, stream: &str, name: impl Fn(usize, bool) -> String) -> String {
    let mut out = format!("void *{stream}");
    for (i, p) in kernel.params.iter().enumerate() {
        let name = name(i, false);
        let _ = match p.kind {
            ParamKind::View { rank, .. } => write!(out, ", const tk_view{rank} *{name}"),
            ParamKind::Pointer { .. } => write!(out, ", tk_pointer {name}"),
            ParamKind::Number => {
                let ty = dtypes(kernel, i).first().and_then(|d| number_type(d)).unwrap_or("int64_t");
                write!(out, ", {ty} {name}")
            }
        };
    }
    for (i, c) in names.choices.iter().enumerate() {
        let _ = write!(out, ", enum {} {}", c.ty, name(i, true));
    }
    out
}

fn declaration(kernel: &Kernel, names: &Names) -> String {
    let mut out = String::new();
    for c in &names.choices {
        let default = c.default.iter().map(|d| format!("    {d} = 0"));
        let values = c.values.iter().enumerate().map(|(i, v)| format!("    {v} = {}", i + 1));
        let all: Vec<String> = default.chain(values).collect();
        let _ = write!(out, "\nenum {} {{\n{}\n}};\n", c.ty, all.join(",\n"));
    }
    let _ = write!(out, "\n/*\n");
    let mut line = |text: &str| {
        let _ = writeln!(out, " * {}", comment(text));
    };
    kernel.doc.lines().for_each(&mut line);
    line("Arguments:");
    for (i, (p, name)) in kernel.params.iter().zip(&names.params).enumerate() {
        line(&format!("  {name}: {}", meaning(kernel, i, p)));
    }
    let shipped: BTreeSet<String> =
        kernel.variants.iter().map(|v| format!("{} for {}", label(kernel, v), v.target)).collect();
    line("Built:");
    shipped.iter().for_each(|s| line(&format!("  {s}")));
    let name = |i: usize, choice: bool| {
        let of = if choice { names.choices.get(i).map(|c| &c.param) } else { names.params.get(i) };
        of.cloned().unwrap_or_default()
    };
    let _ =
        write!(out, " */\ntk_status {}({});\n", names.function, parameters(kernel, names, "stream", name));
    out
}

/// The label of a variant: its values, or the element types of tensors if it has none.
fn label(kernel: &Kernel, v: &Variant) -> String {
    if !v.values.is_empty() {
        return v.label();
    }
    let tensors = kernel.params.iter().zip(&v.dtypes).filter(|(p, _)| p.kind != ParamKind::Number);
    let types = tensors.map(|(p, d)| format!("{}: {}", p.name, d.as_deref().unwrap_or("NULL")));
    types.collect::<Vec<_>>().join(", ")
}

fn meaning(kernel: &Kernel, arg: usize, p: &Param) -> String {
    let types = dtypes(kernel, arg).into_iter().collect::<Vec<_>>().join(" or ");
    let access = |mutable: bool| if mutable { "written" } else { "read" };
    let mut text = match p.kind {
        ParamKind::View { mutable, .. } | ParamKind::Pointer { mutable } if p.table.is_some() => {
            let table = p.table.unwrap_or(Table { depth: 1, mutable: false });
            let entries: BTreeSet<&str> =
                kernel.variants.iter().filter_map(|v| v.entries.get(arg)?.as_deref()).collect();
            let entries = entries.into_iter().collect::<Vec<_>>().join(" or ");
            let tables = "addresses of ".repeat(table.depth as usize);
            format!(
                "{}, table of {tables}{entries} elements, which are {}",
                access(mutable),
                access(table.mutable)
            )
        }
        ParamKind::View { rank, mutable, .. } => {
            format!("{} tensor of rank {rank}, {types}", if mutable { "written," } else { "read," })
        }
        ParamKind::Pointer { mutable } => {
            format!("{} elements, {types}", if mutable { "written," } else { "read," })
        }
        ParamKind::Number => match types.as_str() {
            "f16" | "bf16" | "f8e4m3" | "f8e5m2" | "f8e4m3fnuz" | "f8e5m2fnuz" => {
                format!("the bits of an {types}")
            }
            _other => types,
        },
    };
    if p.optional {
        text.push_str("; NULL if there is none");
    }
    if let Some(d) = &p.default {
        let _ = write!(text, "; {d} where the source gives none");
    }
    text
}

/// The most tensor maps of a binary.
fn most_maps(shipped: &Shipped) -> usize {
    shipped.manifest.kernels.iter().flat_map(|k| &k.variants).map(|v| v.maps.len()).max().unwrap_or(0)
}

struct File<'a> {
    shipped: &'a Shipped,
    helpers: BTreeSet<&'static str>,
    /// By hash: a number and the bytes.
    binaries: BTreeMap<&'a str, (usize, &'a [u8])>,
    /// Numbers of the current kernel that expressions use.
    numbers: BTreeSet<u32>,
}

impl<'a> File<'a> {
    /// Checks that a kernel has a C form; the error is the reason that it has none.
    fn fits(&self, kernel: &Kernel) -> Result<(), String> {
        for (i, p) in kernel.params.iter().enumerate() {
            if p.kind == ParamKind::Number && dtypes(kernel, i).len() > 1 {
                return Err(format!("its number `{}` has more than one type; export it for one", p.name));
            }
            if p.optional && matches!(p.kind, ParamKind::Pointer { .. } | ParamKind::Number) {
                return Err(format!("`{}` is optional, but not a view", p.name));
            }
        }
        match kernel.variants.iter().find(|v| !v.messages.is_empty()) {
            Some(_) => {
                let what =
                    "it reports to the host (it prints, asserts, or has a loop whose step is not a constant)";
                Err(format!(
                    "{what}, which this C code cannot receive; load its bundle with `libtklang`, or from Rust"
                ))
            }
            None => Ok(()),
        }
    }

    fn binary(&mut self, variant: &'a Variant) -> usize {
        let next = self.binaries.len();
        let bytes = self.shipped.contents.get(&variant.binary.blake3).map(Vec::as_slice).unwrap_or_default();
        self.binaries.entry(&variant.binary.blake3).or_insert((next, bytes)).0
    }

    /// The binaries of a kernel and the data that their launches share.
    fn table(&mut self, kernel: &'a Kernel, function: &str, shown: &str) -> String {
        let mut out = String::new();
        let mapped = most_maps(self.shipped) > 0;
        for (i, v) in kernel.variants.iter().enumerate().filter(|(_, v)| !v.maps.is_empty()) {
            let one = |m: &TensorMap| {
                let bytes = DType::parse(&m.dtype).map_or(1, DType::bytes);
                let word = |w: Word| match w {
                    Word::Passed(i) => format!("{{{i}, 0}}"),
                    Word::Value(v) => format!("{{-1, {v}}}"),
                };
                let dimension = |d: &Dimension| {
                    format!("{{{}, {}, {}}}", word(d.extent), word(d.stride), u8::from(d.before))
                };
                let dimensions: Vec<String> = m.dimensions.iter().map(dimension).collect();
                format!(
                    "{{{}, {}, {{{}}}, {bytes}, {}, {}, {}}}",
                    m.address,
                    dimensions.len(),
                    dimensions.join(", "),
                    m.lines,
                    m.span,
                    u8::from(m.dtype == "f32")
                )
            };
            let maps: Vec<String> = v.maps.iter().map(one).collect();
            let _ = write!(
                out,
                "\nstatic const tki_map tki_maps_{i}_of_{function}[] = {{{}}};\n\
                 static tki_made tki_made_{i}_of_{function}[{}];\n",
                maps.join(", "),
                maps.len()
            );
        }
        let _ = write!(out, "\nstatic tki_variant tki_of_{function}[] = {{\n");
        for (i, v) in kernel.variants.iter().enumerate() {
            let binary = self.binary(v);
            let (cooperative, control) = (u8::from(v.cooperative), u8::from(v.control > 0));
            let maps = match (mapped, v.maps.len()) {
                (false, _) => String::new(),
                (true, 0) => ", NULL, NULL, 0".to_string(),
                (true, n) => format!(", tki_maps_{i}_of_{function}, tki_made_{i}_of_{function}, {n}"),
            };
            let _ = writeln!(
                out,
                "    {{tki_binary_{binary}, \"{}\", \"{}\", {}, {}, {}, {cooperative}, {control}{maps}, NULL}},",
                shown.replace("%%", "%"),
                v.symbol,
                v.threads,
                // The launcher for HIP requires none of it, and compares all of it with what is available.
                if of_gcn(v) { v.shared() } else { v.shared_bytes.into() },
                v.blocks_per_program,
            );
        }
        out.push_str("};\n");
        out
    }

    fn kernel(&mut self, kernel: &'a Kernel, names: &Names) -> String {
        let (mut out, function, shown) = (String::new(), &names.function, quoted(&kernel.name));
        out.push_str(&self.table(kernel, function, &shown));
        let name = |i: usize, choice: bool| format!("tki_{}{i}", if choice { "c" } else { "a" });
        let parameters = parameters(kernel, names, "tki_stream", name);
        let _ = write!(out, "\ntk_status {function}({parameters})\n{{\n");
        out.push_str("    const tki_driver *tki_there = NULL;\n    const tki_device *tki_here = NULL;\n");
        out.push_str("    tk_status tki_entered;\n    int tki_wrong = 0;\n    uint64_t tki_words[TKI_MOST + 4];\n    int64_t tki_grid[3];\n");
        self.numbers.clear();
        let targets = targets(kernel);
        let mut body = String::new();
        for target in &targets {
            let _ = writeln!(body, "    if ({}) {{", runs(target));
            for (i, v) in kernel.variants.iter().enumerate().filter(|(_, v)| v.target == **target) {
                body.push_str(&self.variant(kernel, function, i, v));
            }
            body.push_str("    }\n");
        }
        // Comparisons of variables, not of casts, whose ranges a compiler knows.
        for arg in &self.numbers {
            let float = dtypes(kernel, *arg as usize).iter().any(|d| matches!(*d, "f32" | "f64"));
            let ty = if float { "double" } else { "int64_t" };
            let _ = writeln!(out, "    const {ty} tki_n{arg} = ({ty})tki_a{arg};");
        }
        for (p, arg) in kernel.params.iter().zip(0..) {
            out.push_str(&self.checked(kernel, p, arg));
        }
        out.push_str("    tki_entered = tki_enter(&tki_there, &tki_here);\n");
        out.push_str("    if (tki_entered != TK_OK) {\n        return tki_entered;\n    }\n");
        out.push_str(&body);
        // The description of the GPU, as a format and its arguments.
        let (is, numbers) = if kernel.variants.iter().any(of_gcn) {
            let numbers =
                ["/ 10000", "/ 100 % 100", "% 100"].map(|n| format!("(int)(tki_here->architecture {n})"));
            ("is a gfx%d%x%x", numbers.join(", "))
        } else {
            ("has compute capability %d.%d", "tki_here->major, tki_here->minor".to_string())
        };
        let any: Vec<String> = targets.iter().map(|t| format!("!({})", runs(t))).collect();
        let listed = targets.join(", ");
        let _ = write!(
            out,
            "    if ({}) {{\n        return tki_fail(TK_NO_TARGET, \"kernel `{shown}` was built for {listed}, and this GPU {is}; \
             build it for that too\",\n                        {numbers});\n    }}\n",
            any.join(" && "),
        );
        let shipped: BTreeSet<String> = kernel.variants.iter().map(|v| label(kernel, v)).collect();
        let shipped: Vec<String> = shipped.into_iter().map(|s| quoted(&format!("({s})"))).collect();
        let _ = write!(
            out,
            "    (void)tki_words;\n    (void)tki_grid;\n    (void)tki_wrong;\n    return tki_fail(TK_NO_VARIANT, \"no variant of kernel `{shown}` \
             serves these arguments; built were\"\n                    \" {}\");\n}}\n",
            shipped.join("\"\n                    \" ")
        );
        out
    }

    /// The checks of one argument.
    fn checked(&self, kernel: &Kernel, p: &Param, arg: usize) -> String {
        let (name, shown) =
            (format!("tki_a{arg}"), quoted(&format!("`{}` of kernel `{}`", p.name, kernel.name)));
        let mut out = String::new();
        match p.kind {
            ParamKind::Number => {
                let unused = kernel
                    .variants
                    .iter()
                    .all(|v| !v.passed.iter().any(|m| matches!(m, Machine::Number(a) if *a as usize == arg)));
                if unused {
                    let _ = writeln!(out, "    (void){name};");
                }
            }
            // A tensor may have no elements, which only the kernel knows.
            ParamKind::Pointer { .. } => {}
            ParamKind::View { rank, wide, .. } => {
                if !p.optional {
                    let _ = write!(
                        out,
                        "    if ({name} == NULL) {{\n        return tki_fail(TK_ARGUMENT, \"{shown} is NULL\");\n    }}\n"
                    );
                }
                let most = if wide { "INT64_MAX" } else { "INT32_MAX" };
                let present = if p.optional { format!("{name} != NULL && ") } else { String::new() };
                let axes = 0..rank;
                let bad: Vec<String> = axes
                    .clone()
                    .map(|a| format!("{name}->shape[{a}] < 0 || {name}->shape[{a}] > {most}"))
                    .collect();
                let some: Vec<String> = axes.map(|a| format!("{name}->shape[{a}] > 0")).collect();
                let _ = write!(
                    out,
                    "    if ({present}({})) {{\n        return tki_fail(TK_ARGUMENT, \"{shown} has a negative or too large extent\");\n    }}\n",
                    bad.join(" || ")
                );
                let _ = write!(
                    out,
                    "    if ({present}{name}->data == NULL && {}) {{\n        return tki_fail(TK_ARGUMENT, \"the address of {shown} is NULL\");\n    }}\n",
                    some.join(" && ")
                );
            }
        }
        out
    }

    fn variant(&mut self, kernel: &Kernel, function: &str, index: usize, v: &Variant) -> String {
        let mut when = vec![];
        for (arg, (p, dtype)) in kernel.params.iter().zip(&v.dtypes).enumerate() {
            let name = format!("tki_a{arg}");
            match (p.kind, dtype) {
                (ParamKind::View { .. }, None) => when.push(format!("{name} == NULL")),
                (ParamKind::View { .. }, Some(d)) => {
                    if p.optional {
                        when.push(format!("{name} != NULL"));
                    }
                    when.push(format!("{name}->dtype == {}", enumerator(d)));
                }
                (ParamKind::Pointer { .. }, Some(d)) => {
                    when.push(format!("{name}.dtype == {}", enumerator(d)))
                }
                (ParamKind::Pointer { .. } | ParamKind::Number, _) => {}
            }
        }
        for (i, own) in v.given.iter().enumerate() {
            let name = format!("tki_c{i}");
            let default = if own.default { format!(" || (int){name} == 0") } else { String::new() };
            when.push(format!("((int){name} == {}{default})", own.value + 1));
        }
        for g in &v.guard {
            when.push(format!("({}) != 0", self.expr(&g.condition, kernel, v)));
        }
        let when = if when.is_empty() { "1".to_string() } else { when.join("\n            && ") };
        let mut out = format!("        /* {} */\n", comment(&v.label()));
        let _ = write!(out, "        tki_wrong = 0;\n        if ({when}\n            && !tki_wrong) {{\n");
        for r in &v.require {
            let condition = self.expr(&r.condition, kernel, v);
            let _ = write!(
                out,
                "            if (({condition}) == 0 || tki_wrong) {{\n                return tki_fail(TK_REQUIREMENT, \"kernel `{}` requires `{}`, \
                 which does not hold\");\n            }}\n",
                quoted(&kernel.name),
                quoted(&r.text)
            );
        }
        out.push_str(&log::passed_over(kernel, index, v, &mut self.helpers));
        for (axis, e) in v.grid.iter().enumerate() {
            let _ = writeln!(out, "            tki_grid[{axis}] = {};", self.expr(e, kernel, v));
        }
        let _ = write!(
            out,
            "            if (tki_wrong) {{\n                return tki_fail(TK_GRID, \"the grid of kernel `{}` has no value for these arguments\");\n            }}\n",
            kernel.name
        );
        for (i, m) in v.passed.iter().enumerate() {
            if let Some(word) = self.word(*m, kernel, v) {
                let _ = writeln!(out, "            tki_words[{i}] = {word};");
            }
        }
        out.push_str(&self.start(kernel, function, index, v));
        out.push_str("        }\n");
        out
    }

    /// Memory for the launch, and the launch.
    fn start(&mut self, kernel: &Kernel, function: &str, index: usize, v: &Variant) -> String {
        let count = v.passed.len();
        let call = |control: &str| {
            format!(
                "tki_start(tki_there, tki_here, &tki_of_{function}[{index}], tki_grid, tki_words, {count}, {control}, tki_stream)"
            )
        };
        if v.scratch.is_empty() && v.control == 0 {
            return format!("            return {};\n", call("0"));
        }
        self.helpers.insert("memory");
        let mut out = String::new();
        let (places, n) = (v.scratch.len() + usize::from(v.control > 0), v.scratch.len());
        let _ = writeln!(
            out,
            "            {{\n                tki_memory tki_held[{places}];\n                uint64_t tki_room = 0;\n                tk_status tki_done = TK_OK;"
        );
        for (i, s) in v.scratch.iter().enumerate() {
            let words = self.expr(&s.count, kernel, v);
            let _ = writeln!(
                out,
                "                tki_held[{i}] = tki_want({words}, {}, {});",
                s.element_bytes,
                u8::from(s.zeroed) + u8::from(s.restored)
            );
        }
        if v.control > 0 {
            let _ = writeln!(out, "                tki_held[{n}] = tki_want(1, {}, 1);", v.control);
        }
        let _ = writeln!(
            out,
            "                tki_done = tki_wrong ? tki_fail(TK_GRID, \"a workspace of kernel `{}` has no size for these arguments\")\n                                   : \
             tki_take(tki_there, tki_here, \"{}\", tki_held, {places}, &tki_room, tki_stream);",
            kernel.name, kernel.name
        );
        let _ = writeln!(out, "                if (tki_done == TK_OK) {{");
        for (i, m) in v.passed.iter().enumerate() {
            if let Machine::Scratch(s) = m {
                let _ = writeln!(out, "                    tki_words[{i}] = tki_held[{s}].address;");
            }
        }
        let control = if v.control > 0 { format!("tki_held[{n}].address") } else { "0".to_string() };
        let _ = write!(
            out,
            "                    tki_done = {};\n                    tki_give(tki_there, tki_room, tki_stream);\n                }}\n                return tki_done;\n            }}\n",
            call(&control)
        );
        out
    }

    /// The value that is passed, as 64 bits.
    fn word(&mut self, m: Machine, kernel: &Kernel, v: &Variant) -> Option<String> {
        let name = |arg: u32| format!("tki_a{arg}");
        Some(match m {
            Machine::Address(arg) => format!("(uint64_t)(uintptr_t){}{}data", name(arg), dot(kernel, arg)),
            Machine::Extent(arg, axis, _) => format!("(uint64_t){}->shape[{axis}]", name(arg)),
            Machine::Stride(arg, axis) => format!("(uint64_t){}->strides[{axis}]", name(arg)),
            Machine::Scratch(_) => return None,
            Machine::Number(arg) => {
                match v.dtypes.get(arg as usize).and_then(|d| DType::parse(d.as_deref()?)) {
                    Some(DType::F32) => {
                        self.helpers.insert("float");
                        format!("tki_float({})", name(arg))
                    }
                    Some(DType::F64) => {
                        self.helpers.insert("double");
                        format!("tki_double({})", name(arg))
                    }
                    Some(_) | None => format!("(uint64_t){}", name(arg)),
                }
            }
        })
    }
}

fn dot(kernel: &Kernel, arg: u32) -> &'static str {
    match kernel.params.get(arg as usize).map(|p| p.kind) {
        Some(ParamKind::Pointer { .. }) => ".",
        Some(ParamKind::View { .. } | ParamKind::Number) | None => "->",
    }
}

/// Returns true if a variant is a code object.
fn of_gcn(v: &Variant) -> bool {
    spec::target(&v.target).is_some_and(|t| t.has_gcn)
}
