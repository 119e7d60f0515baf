//! Completion of a name at the start of an item, a clause, a statement, an argument, a type or a value.

use std::collections::BTreeSet;

use tk_ops::table::{ParamKind, Receiver, Row, Scheme};
use tk_ops::{DType, Op};
use tk_sema::hir::{CKind, FnKind};
use tk_sema::index::{Symbol, SymbolId, SymbolKind};
use tk_sema::launch::launch_options;
use tk_sema::types::{Shape, Ty};
use tk_syntax::ast::{Fn, ItemKind};
use tk_syntax::token::Tok;

use super::complete::{CompletionKind as K, List, add_use, importable};
use super::complete_fit::Gives;
use super::complete_type::{DTYPES, dtypes, types};
use super::context::{Context, context, declared};
use super::scope::{Scope, scope};
use super::signature::{Declared, callee};
use super::site::{CallSite, Site};
use super::{Analysis, Workspace, describe};

/// The clauses of a kernel, and what each says.
const CLAUSES: &[(&str, &str, &str)] = &[
    ("grid", "number of programs, on 1 to 3 axes", "grid($0)"),
    ("launch", "warps, stages and other options of a launch", "launch(warps = $0)"),
    ("require", "conditions that a launch must meet", "require($0)"),
    ("prefer", "conditions with a binary of their own", "prefer($0)"),
    ("alias", "parameters that may reach the same memory", "alias($0)"),
    ("scratch", "workspaces that the launcher provides", "scratch(${1:name}: *mut ${2:u32}, $0)"),
    ("tune", "candidate values", "tune(key = ($1)) {\n    { $0 },\n}"),
];

/// The names that may begin at a place, and the words.
pub(super) fn names(ws: &mut Workspace, a: &Analysis, path: &str, site: &Site, list: &mut List) {
    known(ws, a, path, site, list);
    // What is being declared does not exist yet.
    if let Some(name) = declared(site) {
        list.items.retain(|c| c.label != name);
    }
}

/// The names that exist at a place.
fn scope_at<'a>(file: &'a tk_syntax::ast::File, site: &Site) -> Scope<'a> {
    let mut s = scope(file, u32::try_from(site.start).unwrap_or(u32::MAX));
    // A body that is not closed yet ends with its last token.
    let last = site.before.checked_sub(1).and_then(|i| site.tokens.get(i)).map_or(0, |t| t.end);
    if !s.body {
        s = scope(file, u32::try_from(last).unwrap_or(u32::MAX));
    }
    // A variable does not exist before its value does.
    if let Some(from) = site.declaration() {
        s.names.retain(|n| (n.span.start as usize) < from);
    }
    for names in site.receiving() {
        s.names.retain(|n| !names.contains(&(n.span.start as usize)));
    }
    s
}

fn known(ws: &mut Workspace, a: &Analysis, path: &str, site: &Site, list: &mut List) {
    let empty = tk_syntax::ast::File::default();
    let s = scope_at(a.root().unwrap_or(&empty), site);
    let context = context(site);
    match context {
        Context::Nothing => return,
        Context::Item => return item(list),
        Context::Attributed => return ["kernel", "fn"].iter().for_each(|w| list.word(w, K::Keyword)),
        Context::Else => return list.word("else", K::Keyword),
        Context::Clause { kernel, head } => return clauses(site, kernel, head, list),
        Context::Exported => {
            let kernels = items(a).filter(|s| is_fn(a, s, FnKind::Kernel));
            return kernels.for_each(|s| list.symbol(a, &s.name, s));
        }
        Context::Bound
        | Context::Constant
        | Context::Type
        | Context::Scratch
        | Context::Mutable
        | Context::Element { .. }
        | Context::Cast => {
            return types(a, &s, items(a), context, list);
        }
        Context::ParameterValue { kernel, name } => {
            if parameter(a, site, kernel, name).is_some_and(|kind| parameter_values(a, kind, list)) {
                return;
            }
        }
        Context::TuneName { kernel } => return tune_names(a, site, kernel, list),
        Context::Statement { after_if } => {
            if after_if {
                list.word("else", K::Keyword);
            }
            // The brace of a body may be missing.
            if site.at_margin {
                item(list);
            }
            statement(a, &s, site, list);
        }
        Context::Loop => tk_ops::rows::methods(Receiver::None)
            .filter(|r| matches!(r.name, "range" | "static_range"))
            .for_each(|r| list.row(r, K::Builtin)),
        Context::TuneCondition => return list.word("if", K::Keyword),
        Context::Extent { is_view, number } => return extents(a, &s, site, (is_view, number), list),
        Context::Field => return list.word("fn", K::Keyword),
        Context::In => return list.word("in", K::Keyword),
        Context::Value => {
            if value_goes_on(site, s.body, list)
                || site.call().as_ref().is_some_and(|c| argument(a, site, c, list))
            {
                return;
            }
        }
    }
    values(a, &s, site, list);
    let wanted = match context {
        Context::ParameterValue { kernel, name } => parameter(a, site, kernel, name).map(Wanted::Of),
        _other => site.call().and_then(|c| wanted(a, callee(a, site, &c)?, &c)),
    };
    // Inside of the value something else may begin, such as a condition.
    let begins =
        matches!(site.back(1), Some(Tok::Assign | Tok::LParen | Tok::LBracket | Tok::Comma | Tok::Bar));
    if let Some(wanted) = wanted.filter(|_| begins) {
        list.items.retain(|c| may_be(wanted, c));
        if let (Context::ParameterValue { .. }, Wanted::Of(CKind::Int(_) | CKind::Float(_) | CKind::Shape)) =
            (context, wanted)
        {
            list.items.retain(is_known_early);
        }
    }
    if site.end > site.start {
        unimported(ws, a, path, list);
    }
}

/// Adds the words of a value that follow what is there; returns true if nothing else may.
fn value_goes_on(site: &Site, in_body: bool, list: &mut List) -> bool {
    match site.back(1) {
        Some(Tok::Else) => list.word("if", K::Keyword),
        Some(Tok::If) if in_body => list.word("let", K::Keyword),
        Some(last) if ends_value(last) && !site.new_line => {
            list.word("as", K::Keyword);
            return true;
        }
        _other => {}
    }
    false
}

/// Returns true if a token ends an operand.
fn ends_value(last: Tok) -> bool {
    use Tok::{False, Float, Id, Int, RBracket, RParen, True};
    matches!(last, Id(_) | Int(_) | Float(_) | RParen | RBracket | True | False)
}

/// What a type may have for an extent, or for the rank of a view and the type of its positions.
fn extents(a: &Analysis, s: &Scope, site: &Site, (is_view, number): (bool, usize), list: &mut List) {
    match (is_view, number) {
        (true, 2) => return ["i64", "i32"].iter().for_each(|w| list.word(w, K::Type)),
        (true, 3..) => return,
        _extent => {}
    }
    values(a, s, site, list);
    let types: Vec<&str> = dtypes(a, s).map(|d| d.0).collect();
    list.items.retain(|c| {
        let is_named = matches!(c.kind, K::CompileTime | K::Const) && !types.contains(&c.word());
        is_named && !(is_view && c.gives == Gives::Parameter) || c.kind == K::Builtin && is_known_early(c)
    });
    if is_view {
        ["1", "2", "3"].iter().for_each(|n| list.word(n, K::Word));
        list.items.rotate_right(3);
    }
}

/// The parameters of lambdas that are open at the place, from the tokens: a body that is not written yet has no tree.
fn lambda_names(site: &Site, list: &mut List) {
    let tok = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let begins = |i: usize| {
        use Tok::{Assign, Comma, LBrace, LBracket, LParen, Return};
        let before = i.checked_sub(1).and_then(tok);
        matches!(before, Some(LParen | LBracket | LBrace | Comma | Assign | Return))
    };
    // Where the parameters may end, and whether the body does, too.
    let mut end: Option<(usize, bool)> = None;
    let mut has_ended = false;
    for (i, t) in site.outward(site.before) {
        match (t.tok, end) {
            (Tok::Bar, Some((to, is_over))) if begins(i) => {
                let inside = site.tokens.get(i + 1..to).unwrap_or(&[]);
                let names: Vec<&str> = inside
                    .iter()
                    .filter_map(|t| if let Tok::Id(n) = t.tok { Some(n) } else { None })
                    .collect();
                let is_list = inside.iter().all(|t| matches!(t.tok, Tok::Id(_) | Tok::Comma));
                if !is_over && is_list && inside.len() + 1 == 2 * names.len() {
                    names.iter().for_each(|n| list.word(n, K::Variable));
                }
                (end, has_ended) = (None, is_over);
            }
            (Tok::Bar, _) => end = Some((i, has_ended)),
            (Tok::Comma | Tok::Semi, _) => has_ended = true,
            (Tok::LParen | Tok::LBracket | Tok::LBrace, _) => (end, has_ended) = (None, false),
            (Tok::Fn | Tok::Kernel, _) => break,
            _other => {}
        }
    }
}

/// The clauses that an item does not have.
fn clauses(site: &Site, kernel: bool, head: usize, list: &mut List) {
    let word = |i: usize| site.tokens.get(i).map(|t| t.tok);
    let given: Vec<Tok> = site.level(head, site.before).filter_map(word).collect();
    for (name, doc, body) in CLAUSES {
        let again = matches!(*name, "require" | "prefer" | "scratch");
        if (kernel || *name == "require") && (again || !given.contains(&Tok::Id(name))) {
            list.insert(name, K::Keyword, doc, "", body, true);
        }
    }
}

fn is_fn(a: &Analysis, s: &Symbol, kind: FnKind) -> bool {
    matches!(s.kind, SymbolKind::Fn(f) if a.checked.hir.fns.get(f.0 as usize).is_some_and(|f| f.kind == kind))
}

/// The kernel that a token names.
fn kernel_at<'a>(a: &'a Analysis, site: &Site, token: usize) -> Option<&'a Fn> {
    let Some(Tok::Id(name)) = site.tokens.get(token).map(|t| t.tok) else { return None };
    a.root()?.items.iter().find_map(|i| match &i.kind {
        ItemKind::Fn(f) if f.name.text == name => Some(&**f),
        _other => None,
    })
}

/// The range of a compile-time parameter of the kernel that a token names.
fn parameter<'a>(a: &'a Analysis, site: &Site, kernel: usize, name: &str) -> Option<&'a CKind> {
    let declared = kernel_at(a, site, kernel)?.cparams.iter().find(|c| c.name.text == name)?;
    let symbol = a.index.reference(declared.name.span).and_then(|r| a.index.symbol(r.symbol))?;
    let SymbolKind::CVar(id) = symbol.kind else { return None };
    a.checked.hir.cvars.get(id.0 as usize).map(|c| &c.kind)
}

/// The values in a range, if they can be listed.
fn parameter_values(a: &Analysis, kind: &CKind, list: &mut List) -> bool {
    match kind {
        CKind::DType(set) => {
            DTYPES.iter().filter(|d| set.has(**d)).for_each(|d| list.word(d.name(), K::Type));
            true
        }
        CKind::Bool => {
            ["true", "false"].iter().for_each(|w| list.word(w, K::Keyword));
            true
        }
        CKind::Fn(..) => {
            items(a).filter(|s| is_fn(a, s, FnKind::Fn)).for_each(|s| list.symbol(a, &s.name, s));
            false
        }
        CKind::Int(_) | CKind::Float(_) | CKind::Shape | CKind::Err => false,
    }
}

/// The names in a row of `tune`.
fn tune_names(a: &Analysis, site: &Site, kernel: usize, list: &mut List) {
    let parameters = kernel_at(a, site, kernel).map_or(&[][..], |f| &f.cparams);
    let given = site.given();
    let names = parameters.iter().map(|c| c.name.text.as_str()).chain(launch_options().map(|o| o as &str));
    for name in names.filter(|name| !name.is_empty() && !given.contains(name)) {
        list.insert(&format!("{name} ="), K::Argument, "", "", &format!("{name} = "), false);
    }
}

/// The names of the arguments, or the words that one takes; gives whether nothing else fits.
fn argument(a: &Analysis, site: &Site, c: &CallSite, list: &mut List) -> bool {
    let text = |i: usize| site.tokens.get(i).and_then(|t| a.root_text().get(t.start..t.end)).unwrap_or("");
    let Some(symbol) = callee(a, site, c) else {
        // A clause looks like a call.
        match text(c.callee) {
            "launch" if c.fresh => arguments(launch_options(), c, list),
            "scratch" if c.fresh => {
                // What is not zeroed at first is not restored.
                let restored = c.given.contains(&"zeroed").then_some("restored");
                arguments(["count", "zeroed"].into_iter().chain(restored), c, list);
            }
            "tune" if c.fresh => arguments(["key"].into_iter(), c, list),
            _other => return false,
        }
        return c.named.is_none() && text(c.callee) == "launch";
    };
    if let (SymbolKind::Builtin(row), Some(n)) = (&symbol.kind, c.named)
        && let Some(p) = row.param(n).and_then(|i| row.params.get(i))
    {
        let words = describe::param_words(p.kind);
        words.iter().for_each(|w| list.word(w, K::Word));
        if p.kind == ParamKind::Axis {
            axes(a, site, c, list);
        }
        return matches!(p.kind, ParamKind::Word(_));
    }
    expected(a, symbol, c, list);
    if !c.fresh {
        return false;
    }
    let Some(d) = Declared::of(a, symbol) else { return false };
    let range = if c.open == Tok::LParen { d.run.clone() } else { d.fixed.clone() };
    // Those before the place may be given by position.
    let passed =
        range.start + if c.open == Tok::LParen { c.position.saturating_sub(c.given.len()) } else { 0 };
    for i in range.filter(|i| c.named.is_none() && *i >= passed) {
        let (Some(name), Some((at, doc))) = (d.names.get(i), d.params.get(i)) else { continue };
        if !name.is_empty() && !c.given.contains(&name.as_str()) {
            let detail = d.label.get(at.clone()).unwrap_or("");
            list.insert(&format!("{name} ="), K::Argument, detail, doc, &format!("{name} = "), false);
        }
    }
    // Fields and compile-time arguments have names only, and what follows an argument with a name.
    c.after_named
        || matches!(symbol.kind, SymbolKind::Struct(_))
        || (c.open == Tok::LBracket && !d.fixed.is_empty())
}

/// The numbers of the axes of the tile that a call is given first; those of a matrix where nothing is known of it.
fn axes(a: &Analysis, site: &Site, c: &CallSite, list: &mut List) {
    let first = site.tokens.get(c.callee + 2).and_then(|t| u32::try_from(t.start).ok());
    let symbol = first.and_then(|at| a.symbol_at(at as usize));
    let rank = match symbol.map(|(_, s)| &s.kind) {
        Some(SymbolKind::Local(Ty::Tile { shape, .. }) | SymbolKind::Param(Ty::Tile { shape, .. })) => {
            if let Shape::Dims(extents) = shape {
                extents.len()
            } else {
                2
            }
        }
        _other => 2,
    };
    for axis in (0..rank.max(1)).map(|axis| axis.to_string()) {
        list.word(&axis, K::Word);
        list.gives(&axis, Gives::Known);
    }
}

/// What the argument at a place has to be.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// The value of a compile-time parameter with this range.
    Of(&'a CKind),
    /// What a builtin takes, and whether it is given by name.
    Builtin(ParamKind, bool),
}

/// What the argument at the place has to be, where that is known before it is written.
fn wanted<'a>(a: &'a Analysis, symbol: &Symbol, c: &CallSite) -> Option<Wanted<'a>> {
    match &symbol.kind {
        SymbolKind::Builtin(row) => {
            let skip = usize::from(describe::has_receiver(row));
            let number = c.named.map_or(Some(c.position + skip), |n| row.param(n))?;
            row.params.get(number).map(|p| Wanted::Builtin(p.kind, c.named.is_some()))
        }
        SymbolKind::Fn(id) => {
            let cparams = &a.checked.hir.fns.get(id.0 as usize)?.cparams;
            let mut cvars = cparams.iter().filter_map(|c| a.checked.hir.cvars.get(c.0 as usize));
            cvars.find(|v| Some(v.name.as_str()) == c.named).map(|v| Wanted::Of(&v.kind))
        }
        _other => None,
    }
}

/// What the argument at the place has to be, where that can be listed: an element type, true or false.
fn expected(a: &Analysis, symbol: &Symbol, c: &CallSite, list: &mut List) {
    match wanted(a, symbol, c) {
        Some(Wanted::Builtin(ParamKind::DType, _)) => {
            DTYPES.iter().for_each(|d| list.word(d.name(), K::Type))
        }
        Some(Wanted::Builtin(ParamKind::ConstBool, true)) => {
            ["true", "false"].iter().for_each(|w| list.word(w, K::Keyword));
        }
        Some(Wanted::Of(kind)) => {
            parameter_values(a, kind, list);
        }
        Some(Wanted::Builtin(..)) | None => {}
    }
}

/// Returns true unless a completion is an element type, or a truth value, that cannot be what is wanted.
fn may_be(wanted: Wanted, c: &super::complete::Completion) -> bool {
    let is_bool = matches!(c.label.as_str(), "true" | "false");
    let dtype = DTYPES.iter().find(|d| d.name() == c.label);
    match (wanted, dtype) {
        (Wanted::Of(CKind::DType(set)), Some(d)) => set.has(*d),
        (Wanted::Of(CKind::DType(_)), None) => !is_bool,
        (Wanted::Of(CKind::Int(_) | CKind::Float(_)), dtype) => dtype.is_none() && !is_bool,
        (Wanted::Of(CKind::Bool), dtype) => dtype.is_none(),
        (Wanted::Of(CKind::Fn(..) | CKind::Shape | CKind::Err), _) => true,
        (Wanted::Builtin(kind, _), dtype) => match kind {
            ParamKind::DType => !is_bool,
            ParamKind::Value | ParamKind::Mask | ParamKind::ConstBool | ParamKind::Rest => true,
            ParamKind::Axis
            | ParamKind::Int
            | ParamKind::Pointer
            | ParamKind::View
            | ParamKind::Shape
            | ParamKind::ConstInt
            | ParamKind::ConstFloat
            | ParamKind::ConstInts
            | ParamKind::Fn
            | ParamKind::Position
            | ParamKind::Positions
            | ParamKind::Str
            | ParamKind::Word(_) => dtype.is_none() && !is_bool,
        },
    }
}

/// Returns true unless a completion has no value before a launch, or is no number.
fn is_known_early(c: &super::complete::Completion) -> bool {
    match c.kind {
        K::Builtin => {
            let row = tk_ops::rows::find(&c.label, Receiver::None);
            row.is_some_and(|r| matches!(r.op, Op::Elementwise(_)))
        }
        K::Keyword => matches!(c.label.as_str(), "if" | "target"),
        _other => true,
    }
}

fn arguments(names: impl Iterator<Item = &'static str>, c: &CallSite, list: &mut List) {
    for n in names.filter(|n| !c.given.contains(n)) {
        list.insert(&format!("{n} ="), K::Argument, "", "", &format!("{n} = "), false);
    }
}

/// An item.
fn item(list: &mut List) {
    for w in ["kernel", "fn", "test", "use", "const", "struct", "export"] {
        list.word(w, K::Keyword);
    }
    let kernel = "kernel ${1:name}[${2:BLOCK: i32 = 1024}](${3:x: view[f32, 1], y: mut view[f32, 1]})\n    \
                  grid(${4:cdiv(x.shape[0], BLOCK)})\n{\n    $0\n}";
    list.snippet("kernel", "a kernel with its grid", kernel);
    list.snippet(
        "fn",
        "a function",
        "fn ${1:name}[S: shape](${2:x: tile[f32, S]}) -> ${3:tile[f32, S]} {\n    $0\n}",
    );
    list.snippet("test", "a test", "test \"${1:name}\" {\n    $0\n}");
    list.snippet("struct", "a struct", "struct ${1:Name} {\n    ${2:x: f32},\n}");
}

fn statement(a: &Analysis, s: &Scope, site: &Site, list: &mut List) {
    for w in ["let", "for", "if"] {
        list.word(w, K::Keyword);
    }
    // What was declared last is likely to be changed next.
    names_in_scope(a, s, site, list);
    own_items(a, s, list);
    for w in ["while", "return", "const"] {
        list.word(w, K::Keyword);
    }
    if site.is_in_loop() {
        ["break", "continue"].iter().for_each(|w| list.word(w, K::Keyword));
    }
    if s.test {
        list.word("assert_error", K::Keyword);
    }
    list.snippet("for", "a loop", "for ${1:i} in range(0, ${2:n}) {\n    $0\n}");
    list.snippet("while", "a loop", "while ${1:condition} {\n    $0\n}");
    list.snippet("if", "a condition", "if ${1:condition} {\n    $0\n}");
}

/// The names that a value may begin with.
fn values(a: &Analysis, s: &Scope, site: &Site, list: &mut List) {
    names_in_scope(a, s, site, list);
    own_items(a, s, list);
    let host: &[Receiver] = if s.test { &[Receiver::Test, Receiver::None] } else { &[Receiver::None] };
    let rows = host.iter().flat_map(|r| tk_ops::rows::methods(*r));
    // What is evaluated before a launch has no tiles, no memory and no programs; its functions are those of integers.
    let of_integers = |r: &Row| matches!(r.scheme, Scheme::Elementwise(set, _) if set.has(DType::I32));
    let is_known_here = |r: &&'static Row| !s.clause || of_integers(r);
    let rows = rows.filter(|r| !tk_ops::rows::is_operator(r)).filter(is_known_here);
    rows.for_each(|r| list.row(r, K::Builtin));
    for w in ["true", "false", "None", "if", "as", "inf", "nan", "target"] {
        list.word(w, K::Keyword);
    }
    if s.clause {
        list.word("device", K::Keyword);
    }
    DTYPES.iter().for_each(|d| list.word(d.name(), K::Type));
}

fn names_in_scope(a: &Analysis, s: &Scope, site: &Site, list: &mut List) {
    for n in s.names.iter().rev() {
        match a.index.reference(n.span).and_then(|r| a.index.symbol(r.symbol)) {
            Some(symbol) => list.symbol(a, &n.text, symbol),
            // Nothing is known of what is in a lambda whose call lacks arguments.
            None => list.word(&n.text, K::Variable),
        }
    }
    lambda_names(site, list);
}

/// The items of the file that a value may begin with. Tests alone launch kernels.
fn own_items(a: &Analysis, s: &Scope, list: &mut List) {
    for symbol in items(a).filter(|symbol| s.test || !is_fn(a, symbol, FnKind::Kernel)) {
        list.symbol(a, &symbol.name, symbol);
    }
}

/// The items that the file can name: its own, its imports, the prelude.
fn items(a: &Analysis) -> impl Iterator<Item = &Symbol> {
    let imported = imported(a);
    a.index.symbols.iter().enumerate().filter_map(move |(i, s)| {
        let file = s.span.map(|s| s.file);
        let prelude = file.is_some_and(|f| a.index.file(f).is_some_and(|f| f.key == "std::prelude"));
        let seen = file == Some(Analysis::ROOT) || imported.contains(&SymbolId(i as u32));
        let item = match &s.kind {
            SymbolKind::Fn(f) => {
                let test = a.checked.hir.fns.get(f.0 as usize).is_some_and(|f| f.kind == FnKind::Test);
                s.owner.is_none() && !test && (seen || prelude)
            }
            SymbolKind::Struct(_) | SymbolKind::Module(_) | SymbolKind::Alias(_) => seen,
            SymbolKind::Const(_) => s.item != s.span && seen,
            SymbolKind::Field(..)
            | SymbolKind::CVar(_)
            | SymbolKind::Param(_)
            | SymbolKind::Local(_)
            | SymbolKind::Builtin(_)
            | SymbolKind::BuiltinParam(..) => false,
        };
        item.then_some(s)
    })
}

/// The imports of the `use` lines of the file, under the names that they give.
pub(super) fn imported(a: &Analysis) -> BTreeSet<SymbolId> {
    let items = a.root().into_iter().flat_map(|f| &f.items);
    let names = items.flat_map(|i| match &i.kind {
        ItemKind::Use(u) => match &u.names {
            Some(names) => names.iter().collect(),
            None => u.alias.as_ref().or(u.path.segments.last()).into_iter().collect::<Vec<_>>(),
        },
        ItemKind::Const(_)
        | ItemKind::Struct(_)
        | ItemKind::Fn(_)
        | ItemKind::Export(_)
        | ItemKind::Test(_)
        | ItemKind::Err => vec![],
    });
    names.filter_map(|n| a.index.reference(n.span)).map(|r| r.symbol).collect()
}

/// Items of other files, with the `use` that they need.
fn unimported(ws: &mut Workspace, a: &Analysis, path: &str, list: &mut List) {
    for (name, from) in importable(ws, path) {
        for (module, file) in from {
            let other = ws.analysis(&file);
            let before = list.items.len();
            if let Some(s) = super::complete::public_items(&other).find(|s| s.name == name) {
                list.symbol(&other, &name, s);
            }
            if let Some(c) = list.items.get_mut(before) {
                c.detail = format!("{} (use {module})", c.detail);
                c.extra.push(add_use(a, path, &format!("{module}::{name}")));
            }
        }
    }
}
