//! Hover: the text for the symbol under the pointer.

use tk_ops::DType;
use tk_ops::table::ParamKind;
use tk_sema::index::{SymbolKind, value_at};
use tk_sema::types::Ty;
use tk_syntax::Span;
use tk_syntax::ast::{ExprKind, ItemKind, StmtKind};
use tk_syntax::token::Tok;

use super::describe::{self, words};
use super::walk::{Node, around};
use super::{Analysis, Place, Workspace};

/// The text of a hover and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The name or expression described.
    pub place: Place,
    /// The text, in Markdown.
    pub markdown: String,
}

/// The description of the name or expression at an offset.
pub fn hover(ws: &mut Workspace, path: &str, offset: usize) -> Option<Hover> {
    let a = ws.analysis(path);
    let at = a.offset(offset)?;
    let (span, markdown) = name(&a, offset)
        .or_else(|| item_word(&a, at))
        .or_else(|| argument_word(&a, at))
        .or_else(|| property(&a, at))
        .or_else(|| expression(&a, at))?;
    Some(Hover { place: a.place(span), markdown })
}

/// The line, from 1, that declares the variable at an offset, if it is a tile.
pub fn tile_line(ws: &mut Workspace, path: &str, offset: usize) -> Option<usize> {
    let a = ws.analysis(path);
    let (_, symbol) = a.symbol_at(offset)?;
    let SymbolKind::Local(Ty::Tile { shape, .. }) = &symbol.kind else { return None };
    let place = symbol.span.filter(|s| s.file == Analysis::ROOT && !shape.is_scalar())?;
    Some(a.checked.sources.position(place).1)
}

/// Code, then text.
fn card(code: &str, rest: &[String]) -> String {
    let mut out = format!("```tk\n{code}\n```");
    for part in rest.iter().filter(|p| !p.trim().is_empty()) {
        out += "\n\n";
        out += part.trim();
    }
    out
}

fn name(a: &Analysis, offset: usize) -> Option<(Span, String)> {
    let (span, symbol) = a.symbol_at(offset)?;
    let w = words(a, symbol);
    let here = match &symbol.kind {
        // What a variable is here, where an arm knows more of it than its declaration.
        SymbolKind::Local(ty) | SymbolKind::Param(ty) => {
            a.index.type_of(span).filter(|t| *t != ty).map(|t| format!("Here: `{}`", a.show(t)))
        }
        SymbolKind::Fn(_) | SymbolKind::Builtin(_) if Some(span) != symbol.span => called(a, span),
        SymbolKind::Fn(_)
        | SymbolKind::Builtin(_)
        | SymbolKind::Module(_)
        | SymbolKind::Struct(_)
        | SymbolKind::Field(..)
        | SymbolKind::Const(_)
        | SymbolKind::CVar(_)
        | SymbolKind::Alias(_)
        | SymbolKind::BuiltinParam(..) => None,
    };
    Some((span, card(&w.code, &[here.unwrap_or_default(), w.doc])))
}

/// The result type of the call whose callee is a name.
fn called(a: &Analysis, name: Span) -> Option<String> {
    let call = around(a.root()?, name.start).into_iter().rev().find_map(|n| match n {
        Node::Expr(e) => match &e.kind {
            ExprKind::Call(f, _) if f.span.end >= name.end && f.span.start <= name.start => Some(e.span),
            _no_call => None,
        },
        _no_expression => None,
    })?;
    let ty = a.show(a.index.type_of(call)?);
    let cargs = a.index.call(call).map(|c| super::hints::cargs(a, &c.cargs)).unwrap_or_default();
    let with = if cargs.is_empty() { String::new() } else { format!(" with `{cargs}`") };
    let gives = if ty == "()" { String::new() } else { format!(" it gives `{ty}`") };
    (!with.is_empty() || !gives.is_empty()).then(|| format!("Here{gives}{with}."))
}

/// The description of the word of a clause or of its options, of an attribute, or of `export`.
fn item_word(a: &Analysis, at: u32) -> Option<(Span, String)> {
    let (token, (_, code, doc)) = word_at(a, at)?;
    Some((token, card(code, &[doc.to_string()])))
}

/// The word of a clause or of its options, of an attribute, or `export` at an offset, and what is known of it.
pub(super) fn word_at(a: &Analysis, at: u32) -> Option<(Span, describe::Word)> {
    let token = token_at(a, at)?;
    let word = a.text(token);
    let nodes = around(a.root()?, token.start);
    let is_said = nodes.iter().any(|n| match n {
        Node::Clause(c) => c.name.span == token,
        Node::Attr(attr) => attr.name.span == token,
        Node::Item(i) => {
            matches!(i.kind, ItemKind::Export(_) | ItemKind::Test(_)) && i.span.start == token.start
        }
        Node::Stmt(s) => matches!(s.kind, StmtKind::AssertError { .. }) && s.span.start == token.start,
        _other => false,
    });
    let options = nodes.windows(2).filter_map(|pair| match pair {
        [Node::Clause(c), Node::Arg(name, _)] if *name == token => Some(c.name.text.as_str()),
        // A row gives values to what a launch has.
        [Node::TuneRow(_), Node::Arg(name, _)] if *name == token => Some("launch"),
        _other => None,
    });
    let option = options.into_iter().find_map(|clause| describe::option(clause, word));
    let found = || describe::WORDS.iter().find(|w| is_said && w.0 == word).copied();
    Some((token, option.or_else(found)?))
}

/// The description of a word that stands for a parameter of a builtin: `relaxed` of `order = relaxed`.
fn argument_word(a: &Analysis, at: u32) -> Option<(Span, String)> {
    let token = token_at(a, at)?;
    let nodes = around(a.root()?, token.start);
    let [.., Node::Arg(name, _), Node::Expr(value)] = nodes.as_slice() else { return None };
    let symbol = a.index.reference(*name).and_then(|r| a.index.symbol(r.symbol))?;
    let SymbolKind::BuiltinParam(row, i) = symbol.kind else { return None };
    let ParamKind::Word(words) = row.params.get(i as usize)?.kind else { return None };
    let word = words.iter().find(|w| value.span == token && **w == a.text(token))?;
    let doc = describe::argument_word(a.text(*name), word).unwrap_or_default();
    Some((token, card(&describe::row_param(row, i as usize), &[format!("`{word}`: {doc}")])))
}

/// The description of a property of values and types: `x.shape`, `T.bits`, `target.has_tma`, `f16`.
fn property(a: &Analysis, at: u32) -> Option<(Span, String)> {
    let nodes = around(a.root()?, at);
    let member = nodes.iter().rev().find_map(|n| match n {
        Node::Expr(e) => match &e.kind {
            ExprKind::Member(base, name) if name.span.start <= at && at <= name.span.end => {
                Some((e.span, base, name))
            }
            _other => None,
        },
        _other => None,
    });
    if let Some((whole, base, name)) = member {
        let facts = describe::facts(a.text(base.span));
        let of_value = a.index.type_of(base.span).map_or(describe::DTYPE_FACTS, describe::properties);
        let found = facts.iter().chain(of_value).find(|p| p.0 == name.text)?;
        let ty = a.index.type_of(whole).map_or_else(|| found.1.to_string(), |t| a.show(t));
        return Some((
            name.span,
            card(&format!("{}: {ty}", name.text), &[value(a, whole), found.2.to_string()]),
        ));
    }
    let token = token_at(a, at)?;
    let word = a.text(token);
    if let Some(Node::Type(_)) = nodes.last()
        && let Some(doc) = describe::class(word)
    {
        return Some((token, card(word, &[doc])));
    }
    if let Some(machine) = describe::MACHINES.iter().find(|m| m.0 == word) {
        let facts = describe::facts(word).into_iter();
        let facts: Vec<String> = facts.map(|(name, _, doc)| format!("- `{word}.{name}`: {doc}")).collect();
        return Some((token, card(word, &[machine.1.to_string(), facts.join("\n")])));
    }
    let doc = match word {
        "tile" => {
            "tile[T, D0, D1, ..]\n```\n\nA tile of values; its extents are known at compile time.\n\n```tk\nlet x: tile[f32, 4, 8] = zeros([4, 8], f32);"
        }
        "view" => {
            "view[T, R]\n```\n\nDevice memory with extents and strides, of rank R; `mut view` can be written to.\n\n```tk\nx.load([i * BM, 0], [BM, BK])"
        }
        _ => {
            let d = DType::parse(word)?;
            let kind = if d.is_float() { "float" } else { "element type" };
            return Some((token, card(d.name(), &[format!("{kind}, {} bits", d.bits())])));
        }
    };
    Some((token, card(doc, &[])))
}

/// The type of the smallest expression around an offset, unless that is white space or a comment.
fn expression(a: &Analysis, at: u32) -> Option<(Span, String)> {
    token_at(a, at)?;
    let (span, ty) = a.index.expression_at(Analysis::ROOT, at)?;
    // The number of a default or constant takes the type that its use needs; until then it has none.
    let nodes = around(a.root()?, at);
    let open = nodes.iter().any(|n| match n {
        Node::CParam(_) => true,
        Node::Item(i) => matches!(i.kind, ItemKind::Const(_)),
        Node::Stmt(s) => matches!(s.kind, StmtKind::Const(_)),
        _other => false,
    });
    let number =
        |n: &Node| matches!(n, Node::Expr(e) if matches!(e.kind, ExprKind::Int(_) | ExprKind::Float(_)));
    if open && nodes.last().is_some_and(number) {
        return None;
    }
    Some((*span, card(&a.show(ty), &[value(a, *span)])))
}

/// The value of a compile-time expression, where it is known.
fn value(a: &Analysis, span: Span) -> String {
    let item = around(a.root().unwrap_or(&tk_syntax::ast::File::default()), span.start)
        .into_iter()
        .rev()
        .find_map(|n| match n {
            Node::Item(i) => match &i.kind {
                ItemKind::Fn(f) => Some(f.name.span),
                ItemKind::Test(t) => Some(t.name_span),
                _no_body => None,
            },
            _inner => None,
        });
    let func = a.checked.hir.fns.iter().position(|f| Some(f.span) == item);
    let text = func.and_then(|i| value_at(&a.checked.hir, tk_sema::hir::FnId(i as u32), span));
    match text {
        Some(v) if v != a.text(span) => format!("Value: `{v}`"),
        Some(_) | None => String::new(),
    }
}

/// The token at an offset, the one that begins there before the one that ends there.
pub fn token_at(a: &Analysis, at: u32) -> Option<Span> {
    let at = at as usize;
    let lexed = a.lexed(&a.near(&(at..at)));
    let touching = lexed.tokens.iter().filter(|t| t.start <= at && at <= t.end);
    let best = touching.max_by_key(|t| (matches!(t.tok, Tok::Id(_)), t.start))?;
    Some(Span::new(Analysis::ROOT, best.start, best.end))
}
