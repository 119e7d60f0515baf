//! Descriptions of symbols: their declaration on one line, their documentation, members.

use tk_ops::rows::is_operator;
use tk_ops::table::{Accuracy, Effects, ParamKind, Receiver, Row};
use tk_ops::{DTypeSet, reference};
use tk_sema::index::{Symbol, SymbolId, SymbolKind, const_value};
use tk_sema::launch::LAUNCH_OPTIONS;
use tk_sema::show;
use tk_sema::target::{DeviceFact, FactValue, TARGET};
use tk_sema::types::Ty;
use tk_syntax::Span;
use tk_syntax::ast::{Expr, ExprKind, Fn, Item, ItemKind, StmtKind};

use super::Analysis;
use super::signature::Declared;
use super::walk::{Node, around};

/// A symbol in words.
pub struct Words {
    /// Its declaration.
    pub code: String,
    /// The documentation, in Markdown.
    pub doc: String,
}

/// The target of an alias; any other symbol itself.
pub fn resolve(a: &Analysis, mut id: SymbolId) -> Option<&Symbol> {
    // An alias of an alias would be a chain through files; each link is a `use`.
    for _ in 0..64 {
        let s = a.index.symbol(id)?;
        match s.kind {
            SymbolKind::Alias(to) => id = to,
            _ => return Some(s),
        }
    }
    None
}

/// A symbol in words.
pub fn words(a: &Analysis, s: &Symbol) -> Words {
    let hir = &a.checked.hir;
    let doc = s.doc.clone();
    let (code, doc) = match &s.kind {
        SymbolKind::Module(f) => {
            let key = a.index.file(*f).map_or("", |f| f.key.as_str());
            let names = a.index.file(*f).map(|f| public(&f.tree.items)).unwrap_or_default();
            (format!("use {}", module_name(key)), names)
        }
        SymbolKind::Fn(_) => {
            let declared = Declared::function(a, s, true, String::new());
            (declared.map_or_else(|| s.name.clone(), |d| d.label), doc)
        }
        SymbolKind::Struct(_) => (strukt(a, s).unwrap_or_else(|| format!("struct {}", s.name)), doc),
        SymbolKind::Field(id, n) => {
            let field = hir.structs.get(id.0 as usize).and_then(|s| s.fields.get(*n as usize));
            (format!("{}: {}", s.name, field.map_or("?".into(), |f| show::ty(hir, &f.1))), doc)
        }
        SymbolKind::Const(id) => {
            let ty = hir.consts.get(id.0 as usize).map(|c| show::ty(hir, &c.value.ty)).unwrap_or_default();
            let ty = if has_type(a, s) { format!(": {ty}") } else { String::new() };
            let mut value = const_value(hir, *id).map(|v| format!(" = {v}")).unwrap_or_default();
            let table = table(a, s);
            if table.is_some() {
                value = value.replace(",)", "]").replace('(', "[").replace(')', "]");
            }
            let of_table = table.map(|extents| format!("A table of {extents}.")).unwrap_or_default();
            let doc = [of_table, doc].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            (format!("const {}{ty}{value}", s.name), doc.join("\n\n"))
        }
        SymbolKind::CVar(id) => {
            let written = s.item.filter(|i| Some(*i) != s.span).map(|i| line(a.text(i)));
            let kind = hir.cvars.get(id.0 as usize).map_or("?".into(), |c| show::ckind(hir, &c.kind));
            let code = written.unwrap_or_else(|| format!("{}: {kind}", s.name));
            (code, said("Compile-time parameter", a, s, &doc))
        }
        SymbolKind::Param(ty) => {
            // A type has no `=`.
            let written = s.item.filter(|i| Some(*i) != s.span).map_or("", |i| a.text(i));
            let default = written.split_once('=').map(|(_, value)| format!(" = {}", line(value.trim())));
            let code = format!("{}: {}{}", s.name, a.show(ty), default.unwrap_or_default());
            (code, said("Run-time parameter", a, s, &doc))
        }
        SymbolKind::Local(ty) => {
            let (word, of) = match s.span.map(|at| binder(a, at)) {
                Some(Some(of)) => ("", of),
                _variable if s.mutable => ("let mut ", ""),
                _variable => ("let ", ""),
            };
            (format!("{word}{}: {}", s.name, a.show(ty)), if of.is_empty() { doc } else { of.to_string() })
        }
        SymbolKind::Alias(to) => match resolve(a, *to) {
            Some(to) => {
                let w = words(a, to);
                (w.code, w.doc)
            }
            None => (s.name.clone(), doc),
        },
        SymbolKind::Builtin(row) => (reference::signature(row).text, row_doc(row)),
        SymbolKind::BuiltinParam(row, i) => {
            (row_param(row, *i as usize), format!("Parameter of `{}`.", row.name))
        }
    };
    Words { code, doc }
}

/// What declares the variable with this name, unless it is a `let`.
fn binder(a: &Analysis, name: Span) -> Option<&'static str> {
    let nodes = around(&a.index.file(name.file)?.tree, name.start);
    nodes.windows(2).rev().find_map(|pair| match pair {
        [Node::Expr(e), Node::Pat(_)] if matches!(e.kind, ExprKind::Lambda(..)) => {
            Some("Parameter of a lambda.")
        }
        [Node::Stmt(s), Node::Pat(_)] if matches!(s.kind, StmtKind::For { .. }) => {
            Some("Variable of a loop.")
        }
        [Node::Clause(_), Node::Arg(at, _)] if *at == name => {
            Some("Workspace: device memory that the launcher provides for the time of a launch.")
        }
        _other => None,
    })
}

/// The name of a file after `use`.
pub fn module_name(key: &str) -> &str {
    if key.starts_with("std::") { key } else { key.rsplit('/').next().unwrap_or(key).trim_end_matches(".tk") }
}

/// The function or kernel whose name is at a position, with its item.
pub fn item_fn(a: &Analysis, name: Span) -> Option<(&Item, &Fn)> {
    find_fn(&a.index.file(name.file)?.tree.items, name)
}

fn find_fn(items: &[Item], name: Span) -> Option<(&Item, &Fn)> {
    items.iter().find_map(|i| match &i.kind {
        ItemKind::Fn(f) if f.name.span == name => Some((i, &**f)),
        ItemKind::Struct(s) => find_fn(&s.methods, name),
        ItemKind::Fn(_)
        | ItemKind::Use(_)
        | ItemKind::Const(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => None,
    })
}

/// The extents of a constant that is a list, or a list of lists: `4 elements`, `2 lists of 3 elements`.
fn table(a: &Analysis, s: &Symbol) -> Option<String> {
    let at = s.span?;
    let nodes = around(&a.index.file(at.file)?.tree, at.start);
    let value = nodes.iter().rev().find_map(|n| match n {
        Node::Item(i) => match &i.kind {
            ItemKind::Const(c) if c.name.span == at => Some(&c.value),
            _other => None,
        },
        Node::Stmt(s) => match &s.kind {
            StmtKind::Const(c) if c.name.span == at => Some(&c.value),
            _other => None,
        },
        _other => None,
    })?;
    let ExprKind::Array(all) = &value.kind else { return None };
    let counted = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let of_list = |e: &Expr| if let ExprKind::Array(list) = &e.kind { Some(list.len()) } else { None };
    let mut has_tuple = false;
    Node::Expr(value)
        .each(&mut |n| has_tuple |= matches!(n, Node::Expr(e) if matches!(e.kind, ExprKind::Tuple(_))));
    match all.first().map(of_list) {
        _any if has_tuple => None,
        Some(Some(n)) if all.iter().all(|e| of_list(e) == Some(n)) => {
            Some(format!("{} of {}", counted(all.len(), "list"), counted(n, "element")))
        }
        _elements => Some(counted(all.len(), "element")),
    }
}

/// Returns true if a constant is declared with a type; without, a number takes the type that each use needs.
fn has_type(a: &Analysis, s: &Symbol) -> bool {
    let text = s.span.and_then(|at| {
        let source = a.checked.sources.get(at.file)?;
        source.text.get(at.end as usize..)
    });
    text.is_some_and(|t| t.trim_start().starts_with(':'))
}

fn strukt(a: &Analysis, s: &Symbol) -> Option<String> {
    let file = &a.index.file(s.span?.file)?.tree;
    file.items.iter().find_map(|i| match &i.kind {
        ItemKind::Struct(x) if Some(x.name.span) == s.span => {
            let cparams: Vec<String> = x.cparams.iter().map(|c| line(a.text(c.span))).collect();
            let cparams =
                if cparams.is_empty() { String::new() } else { format!("[{}]", cparams.join(", ")) };
            let fields: Vec<String> = x
                .fields
                .iter()
                .map(|f| {
                    format!("{}: {}", f.name.text, f.ty.as_ref().map_or("?".into(), |t| line(a.text(t.span))))
                })
                .collect();
            Some(format!("struct {}{cparams} {{ {} }}", s.name, fields.join(", ")))
        }
        ItemKind::Struct(_)
        | ItemKind::Fn(_)
        | ItemKind::Use(_)
        | ItemKind::Const(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => None,
    })
}

/// Whose parameter it is, before its own documentation.
fn said(what: &str, a: &Analysis, s: &Symbol, doc: &str) -> String {
    let owner = s.owner.and_then(|o| a.index.symbol(o));
    let of = owner.map(|o| format!("{what} of `{}`.", o.name)).unwrap_or_default();
    if doc.is_empty() || of.is_empty() { format!("{of}{doc}") } else { format!("{of}\n\n{doc}") }
}

/// The names of a file that others may use.
fn public(items: &[Item]) -> String {
    let names: Vec<String> = items
        .iter()
        .filter_map(|i| match &i.kind {
            ItemKind::Fn(f) => Some(&f.name.text),
            ItemKind::Struct(s) => Some(&s.name.text),
            ItemKind::Const(c) => Some(&c.name.text),
            ItemKind::Use(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => None,
        })
        .filter(|n| !n.starts_with('_') && !n.is_empty())
        .map(|n| format!("`{n}`"))
        .collect();
    names.join(", ")
}

/// Text on one line.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        if c.is_whitespace() {
            blank = !out.is_empty();
            continue;
        }
        let closes = matches!(c, ')' | ']');
        if std::mem::take(&mut blank) && !closes && !out.ends_with(['(', '[']) {
            out.push(' ');
        }
        if closes && out.ends_with(',') {
            out.pop();
        }
        out.push(c);
    }
    out
}

/// The documentation of a builtin in the table.
pub fn row_doc(row: &Row) -> String {
    let mut out = row.doc.trim().to_string();
    let accuracy = match (row.effects, row.accuracy) {
        (Effects::Pure, Accuracy::Rounded) => "Accuracy: rounded.".to_string(),
        (Effects::Pure, Accuracy::Ulp(n)) => format!("Accuracy: {n} ulp."),
        (Effects::Pure, Accuracy::Exact) | (Effects::Read | Effects::Write | Effects::Ordered, _) => {
            String::new()
        }
    };
    if !accuracy.is_empty() {
        out += &format!("\n\n{accuracy}");
    }
    if !row.example.trim().is_empty() {
        out += &format!("\n\n```tk\n{}```", reference::example(row));
    }
    out
}

/// A parameter of a builtin as its signature shows it.
pub fn row_param(row: &Row, i: usize) -> String {
    let s = reference::signature(row);
    let skip = usize::from(has_receiver(row));
    let range = i.checked_sub(skip).and_then(|i| s.params.get(i)).cloned();
    range.and_then(|r| s.text.get(r)).map_or_else(|| row.name.to_string(), str::to_string)
}

/// Returns true if the first parameter is the value before the dot.
pub fn has_receiver(row: &Row) -> bool {
    match row.receiver {
        Receiver::None | Receiver::Test => false,
        Receiver::View | Receiver::Tile | Receiver::Buffer => !is_operator(row),
    }
}

/// The words that may stand for a parameter.
pub fn param_words(kind: ParamKind) -> &'static [&'static str] {
    match kind {
        ParamKind::Word(words) => words,
        ParamKind::ConstBool => &["true", "false"],
        ParamKind::Value
        | ParamKind::Mask
        | ParamKind::Int
        | ParamKind::Pointer
        | ParamKind::View
        | ParamKind::Shape
        | ParamKind::Axis
        | ParamKind::ConstInt
        | ParamKind::ConstFloat
        | ParamKind::ConstInts
        | ParamKind::DType
        | ParamKind::Fn
        | ParamKind::Position
        | ParamKind::Positions
        | ParamKind::Str
        | ParamKind::Rest => &[],
    }
}

/// The members of a value without brackets: name, type, meaning.
pub fn properties(ty: &Ty) -> &'static [(&'static str, &'static str, &'static str)] {
    match ty {
        Ty::View { .. } => &[
            ("shape", "(i32, ..)", "The extents, one for each dimension."),
            ("strides", "(i64, ..)", "The strides in elements, one for each dimension."),
            ("ptr", "pointer", "The pointer to its first element."),
            ("T", "view", "The same memory with the dimensions in reverse order."),
        ],
        Ty::Tile { .. } => &[
            ("shape", "shape", "The extents, known at compile time."),
            ("T", "tile", "The transposed tile, of rank 2."),
        ],
        Ty::Buffer { .. } => &[
            ("shape", "shape", "The extents, known at compile time."),
            ("T", "buffer", "The same memory with the dimensions in reverse order."),
        ],
        Ty::DType => DTYPE_FACTS,
        Ty::Err
        | Ty::Unit
        | Ty::Never
        | Ty::Option(_)
        | Ty::Tuple(_)
        | Ty::List(..)
        | Ty::Struct(..)
        | Ty::Fn(..)
        | Ty::ShapeTy
        | Ty::Str => &[],
    }
}

/// The members of an element type.
pub const DTYPE_FACTS: &[(&str, &str, &str)] = &[
    ("bits", "i32", "The number of bits of an element."),
    ("min", "T", "The least finite value."),
    ("max", "T", "The greatest finite value."),
    (
        "acc",
        "dtype",
        "The type of accumulators: f32 for narrow floats, i32 for narrow integers, else the type itself.",
    ),
];

/// The facts of `target.` and `device.`: name, type, meaning.
pub fn facts(of: &str) -> Vec<(&'static str, &'static str, &'static str)> {
    let ty = |v: FactValue| match v {
        FactValue::Bool(_) => "bool",
        FactValue::Int(_) => "i32",
    };
    let device = |f: DeviceFact| match f {
        DeviceFact::Sms => (f.name(), "i32", "The number of multiprocessors; of threads on the CPU."),
        DeviceFact::Smem => (f.name(), "i32", "Bytes of shared memory of one program."),
    };
    match of {
        "target" => TARGET.iter().map(|f| (f.name, ty(f.on_cpu()), f.doc)).collect(),
        "device" => DeviceFact::ALL.into_iter().map(device).collect(),
        _ => vec![],
    }
}

/// What has facts.
pub const MACHINES: &[(&str, &str)] = &[
    ("target", "The machine that the program is compiled for. Its facts are known at compile time."),
    (
        "device",
        "The machine that runs the program. Its facts are known when a kernel is launched, in its clauses.",
    ),
];

/// The bound of a compile-time parameter that has this name: a class of element types, or shapes.
pub fn class(name: &str) -> Option<String> {
    if name == "shape" {
        return Some("The extents of a tile, of any rank.".into());
    }
    let members: Vec<String> = DTypeSet::class(name)?.iter().map(|d| format!("`{}`", d.name())).collect();
    Some(format!("A class of element types: {}.", members.join(", ")))
}

/// What a word says that is given for a parameter with this name of a builtin.
pub fn argument_word(parameter: &str, word: &str) -> Option<&'static str> {
    ARGUMENT_WORDS.iter().find(|(p, w, _)| (*p, *w) == (parameter, word)).map(|w| w.2)
}

/// The words for parameters of builtins: the parameter, the word, what it says.
const ARGUMENT_WORDS: &[(&str, &str, &str)] = &[
    ("order", "relaxed", "orders nothing else."),
    ("order", "acquire", "everything after it happens after it, plain accesses of all lanes included."),
    ("order", "release", "everything before it happens before it, plain accesses of all lanes included."),
    ("order", "acq_rel", "both `acquire` and `release`."),
    ("scope", "block", "in one step for the threads of the program."),
    ("scope", "device", "in one step for all programs of the device."),
    ("scope", "system", "in one step for the other devices and the host, too."),
    ("cache", "all", "at every level of the caches."),
    ("cache", "back", "written back from the caches when these need the place."),
    ("cache", "global", "in the cache of the whole device only."),
    ("cache", "streaming", "likely to be accessed once."),
    ("cache", "volatile", "read again each time, past the caches."),
    ("cache", "through", "written through the caches to memory."),
    ("evict", "normal", "leaves the cache when it has not been used for a while."),
    ("evict", "first", "is the first to leave the cache."),
    ("evict", "last", "is the last to leave the cache."),
    ("precision", "ieee", "products and sums of f32."),
    ("precision", "tf32", "operands may be rounded to the 11 significant bits of a tf32."),
    ("precision", "tf32x3", "each operand may be the sum of two tf32; three products are added."),
    ("precision", "bf16x3", "each operand is the sum of two bf16; three products are added."),
    ("precision", "bf16x6", "each operand is the sum of three bf16; six products are added."),
    ("rounding", "nearest", "to the nearest value, as `as` rounds."),
    ("rounding", "toward_zero", "to the neighbour that is nearer to zero."),
    (
        "rounding",
        "stochastic",
        "to one of the two neighbours, chosen by random `bits`, with the value as the mean.",
    ),
];

/// A word, how it is written, and what it says.
pub type Word = (&'static str, &'static str, &'static str);

/// The words of signatures: clauses, attributes, `export`, and the options of clauses.
pub fn all_words() -> impl Iterator<Item = Word> {
    let launch = LAUNCH_OPTIONS.iter().map(|o| (o.name, o.example, o.doc));
    WORDS.iter().copied().chain(launch).chain(OPTIONS.iter().map(|o| o.1))
}

/// An option of a clause.
pub fn option(clause: &str, name: &str) -> Option<Word> {
    let other = || OPTIONS.iter().find(|o| o.0 == clause && o.1.0 == name).map(|o| o.1);
    match clause {
        "launch" => LAUNCH_OPTIONS.iter().find(|o| o.name == name).map(|o| (o.name, o.example, o.doc)),
        _other => other(),
    }
}

/// The clauses that have options, but for `launch`, and each option.
const OPTIONS: &[(&str, Word)] = &[
    (
        "tune",
        (
            "key",
            "key = (n, ..)",
            "The values on which the best choice depends. Launches for which they are equal share a record of `tk tune`.",
        ),
    ),
    ("scratch", ("count", "count = n", "The number of elements, computed from the arguments of a launch.")),
    (
        "scratch",
        (
            "zeroed",
            "zeroed = true",
            "Clears the workspace before each launch. Otherwise what is in it before the kernel writes is undefined.",
        ),
    ),
    (
        "scratch",
        (
            "restored",
            "restored = true",
            "Promises that the kernel leaves zeros in a `zeroed` workspace, as counters do that the last program sets back. Launches of a \
             stream then share it, and nothing clears it. A test that finds another value fails (`E0713`).",
        ),
    ),
];

/// The words before the body of a kernel, those of items and the attributes.
pub const WORDS: &[Word] = &[
    (
        "grid",
        "grid(n, ..)",
        "The number of programs of a launch, on one to three axes. An expression of the arguments: `grid(cdiv(x.shape[0], BLOCK))`. \
         Without it one program runs.",
    ),
    (
        "launch",
        "launch(warps = 4, stages = 3, ..)",
        "How a launch runs: `warps` of a program, `stages` of loads in flight, `ctas` over which a program is split, programs of a \
         `cluster`, `max_regs` of a thread, `occupancy` in programs on a multiprocessor, `cooperative` for barriers of the grid.",
    ),
    (
        "require",
        "require(condition, ..)",
        "What must hold of the arguments. A launch that does not meet it is refused with the condition; the body may rely on it. \
         The conditions of a function are compile-time, and are checked where it is called.",
    ),
    (
        "prefer",
        "prefer(condition, ..)",
        "A condition under which a binary of its own is made: it relies on what holds, and a launch that does not meet it takes \
         the general one.",
    ),
    ("alias", "alias(a, b)", "Parameters that may reach the same memory. Others are assumed not to."),
    (
        "scratch",
        "scratch(name: *mut T, count = n, zeroed = false)",
        "Device memory that the launcher provides for the time of a launch.",
    ),
    (
        "tune",
        "tune(key = ..) { { BLOCK = [64, 128], warps = 4 }, .. }",
        "Values of compile-time parameters and launch options that are worth trying. `tk tune` measures them, and the cost model \
         chooses among them where nothing was measured. `key` groups the arguments that share a choice.",
    ),
    (
        "export",
        "export k[T = [f16, bf16], BLOCK = 1024];",
        "Instances of a kernel that `tk build` compiles: every combination of the values.",
    ),
    (
        "test",
        "test \"title\" { .. }",
        "What `tk test` runs: it makes tensors, launches kernels and asserts what they give.",
    ),
    (
        "assert_error",
        "assert_error \"E0701\" { .. }",
        "Holds if the block fails with this code, and fails if it does not.",
    ),
    (
        "fast",
        "@fast",
        "Allows `a * b + c` as one operation, approximate division and functions, and subnormal numbers as zeros in it: faster, and \
         not the same in the last bits. Infinities and NaN keep their meaning.",
    ),
    ("noinline", "@noinline", "The function stays one in the machine code."),
];
