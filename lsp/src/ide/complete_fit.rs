//! What fits a place by its type, as far as it is known before the value is written: a pointer where memory is accessed, a
//! tile where a builtin computes, no builtin without a value in a value.
//!
//! The weights were found together with those of `complete_order`.

use tk_ops::DType;
use tk_ops::op::{AtomicOp, ControlOp, HostOp, MemoryOp, Op};
use tk_ops::table::{ParamKind, Row};
use tk_sema::hir::CKind;
use tk_sema::index::{Symbol, SymbolKind, const_value};
use tk_sema::types::{Elem, Ty};
use tk_syntax::token::Tok;

use super::complete::{Completion, CompletionKind as K};
use super::complete_order::Call;
use super::complete_type::DTYPES;
use super::signature::{Declared, callee};
use super::site::{CallSite, Site};
use super::{Analysis, describe};

/// The weights of a builtin of which the comment of the item speaks, of an access of memory where there is a pointer, of
/// another element type in a list of them, of one where nothing else fits, and of a view in a condition of a launch.
pub(super) const SPOKEN_OF: f64 = 0.13;
const ACCESS: f64 = 0.3;
const LISTED: f64 = 0.3;
const EXPECTED: f64 = 0.2;
const LAUNCHED: f64 = 0.4;

/// The weights of a variable of the kind that the argument has to be, and of `true` and `false` where one of them is meant.
pub(super) const MATCHES: f64 = 0.4;
const TRUTH: f64 = 2.0;

/// How much more counts what gives just what is wanted, where nothing else fits: a function, an optional view, an axis.
const FIRST_OF_KIND: f64 = 1.5;

/// The weights of a variable of just the type that is meant, of the name of an argument of a function of a file where a value
/// may be given, and where only names may follow.
const EXACT: f64 = 1.5;
const NAMED: f64 = 0.0;
const ONLY_NAMED: f64 = 4.0;

/// What is seldom meant: a word or an element type as a value, a function of the file as an argument.
const RARE: f64 = 0.2;
const PASSED: f64 = 0.1;

/// What does not fit, though it may be part of what does: `T.acc`; and what would be an error.
const MISFIT: f64 = 0.3;
const WRONG: f64 = 2.0;

/// What something is as a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gives {
    /// A view.
    View,
    /// A tile.
    Tile,
    /// One value.
    Scalar,
    /// A pointer, or a tile of them.
    Pointer,
    /// An element type, or a shape, of a parameter.
    Parameter,
    /// A buffer of a test.
    Buffer,
    /// A function, of a file or of the language, that computes a value of values.
    Function,
    /// A view that may be absent.
    Optional,
    /// An integer that is known before a launch.
    Known,
    /// Nothing: it is called for what it does.
    Nothing,
    /// Anything else.
    #[default]
    Other,
}

impl Gives {
    /// What a symbol is.
    pub fn of(a: &Analysis, s: &Symbol) -> Gives {
        match &s.kind {
            SymbolKind::Local(ty) | SymbolKind::Param(ty) => Gives::of_type(ty),
            SymbolKind::CVar(id) => match a.checked.hir.cvars.get(id.0 as usize).map(|c| &c.kind) {
                Some(CKind::DType(_) | CKind::Shape) => Gives::Parameter,
                Some(CKind::Fn(..)) => Gives::Function,
                Some(CKind::Int(_)) => Gives::Known,
                _other => Gives::Other,
            },
            SymbolKind::Fn(id) => match a.checked.hir.fns.get(id.0 as usize).map(|f| f.kind) {
                Some(tk_sema::hir::FnKind::Fn) => Gives::Function,
                _other => Gives::Other,
            },
            SymbolKind::Const(id) => match a.checked.hir.consts.get(id.0 as usize).map(|c| &c.value.ty) {
                Some(ty) if DType::ALL.into_iter().any(|d| d.is_int() && *ty == Ty::scalar(d)) => {
                    Gives::Known
                }
                // The number of a constant without a type has none until it is used.
                _other if const_value(&a.checked.hir, *id).is_some_and(|v| v.parse::<i64>().is_ok()) => {
                    Gives::Known
                }
                _other => Gives::Other,
            },
            SymbolKind::Builtin(row) => Gives::of_row(row),
            _other => Gives::Other,
        }
    }

    /// What a variable of a type is.
    fn of_type(ty: &Ty) -> Gives {
        match ty {
            Ty::View { .. } => Gives::View,
            Ty::Option(_) => Gives::Optional,
            Ty::Fn(..) => Gives::Function,
            Ty::Tile { elem: Elem::Ptr { .. }, .. } => Gives::Pointer,
            Ty::Tile { shape, .. } if shape.is_scalar() => Gives::Scalar,
            Ty::Tile { .. } => Gives::Tile,
            _other => Gives::Other,
        }
    }

    /// What a builtin gives.
    pub fn of_row(row: &Row) -> Gives {
        match row.op {
            Op::Memory(MemoryOp::Store | MemoryOp::Prefetch)
            | Op::Atomic(AtomicOp::Store)
            | Op::Control(ControlOp::GridBarrier | ControlOp::Print | ControlOp::Assert)
            | Op::Host(HostOp::AssertClose) => Gives::Nothing,
            Op::Host(HostOp::Buffer | HostOp::Empty) => Gives::Buffer,
            Op::Elementwise(_) => Gives::Function,
            _other => Gives::Other,
        }
    }
}

/// What kind of token a value is after.
pub(super) fn kind(token: &str) -> &str {
    match token {
        "(" | "," | "[" => "(",
        "=" | "return" | "+=" | "-=" => "=",
        "+" | "-" | "*" | "/" | "%" | "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||" | "&" | "|"
        | "^" | "<<" | ">>" => "+",
        ";" | "{" | "}" => ";",
        other => other,
    }
}

/// The words of the comment above an item, from the text up to the place.
pub(super) fn comment(text: &str, start: usize) -> Vec<&str> {
    let above = text.get(..start).unwrap_or("").lines().rev();
    let lines = above.take_while(|l| l.starts_with("//"));
    lines.flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
}

/// What decides what fits a place.
pub(super) struct Fit<'t> {
    /// Whether a statement or the file begins.
    pub begins_statement: bool,
    /// Whether an argument or an element begins.
    begins_argument: bool,
    /// Whether an operand begins.
    begins_operand: bool,
    /// The element types before the place in a list that has no other element; nothing in any other place.
    listed: Vec<&'t str>,
    /// Whether the argument is an element type, true or false.
    expected: Option<K>,
    /// What a variable has to be that begins the argument.
    wants: Gives,
    /// The type that the value has to have.
    exact: Option<Ty>,
    /// Whether the call is of a function or kernel of a file.
    calls_own: bool,
    /// Whether an argument begins that must have a name.
    needs_name: bool,
    /// Whether there is an optional view.
    has_optional: bool,
    /// Whether there is a pointer to access.
    has_pointer: bool,
    /// Whether the call is of a function, not a launch or a struct, that computes with values.
    computes: bool,
    /// Whether an argument that must be given is the next.
    is_required: bool,
    /// Whether the place is in a condition or the grid of a launch.
    in_clause: bool,
    /// Whether it is in the key of a tuner, which is made of parameters, extents and constants.
    in_key: bool,
}

impl<'t> Fit<'t> {
    pub fn new(
        a: &Analysis,
        site: &Site,
        tokens: &[&'t str],
        call: Option<&Call>,
        items: &[Completion],
    ) -> Fit<'t> {
        let last = tokens.last().map_or("", |t| kind(t));
        let around = site.call();
        let of_call = if matches!(last, "(" | "=") {
            around.as_ref().filter(|c| last == "(" || c.named.is_some()).and_then(|c| exact(a, site, c))
        } else {
            None
        };
        let exact = written(tokens).or(of_call).filter(|ty| !ty.is_err());
        let wants = match tokens {
            [.., "let", _, "="]
                if tokens.iter().rev().nth(3).is_some_and(|t| matches!(*t, "if" | "while")) =>
            {
                Gives::Optional
            }
            [.., "if" | "while"] => Gives::Scalar,
            _argument => around.as_ref().map_or(Gives::Other, |c| wants(a, site, c)),
        };
        let called = around.filter(|c| c.open == Tok::LParen);
        let symbol = called.as_ref().and_then(|c| callee(a, site, c));
        let required = symbol.as_ref().map_or(0, |s| required(a, s));
        let computes = symbol.as_ref().is_some_and(|s| match &s.kind {
            SymbolKind::Builtin(_) => true,
            SymbolKind::Fn(f) => {
                let f = a.checked.hir.fns.get(f.0 as usize);
                f.is_some_and(|f| f.kind == tk_sema::hir::FnKind::Fn)
            }
            _other => false,
        });
        let calls_own = symbol.as_ref().is_some_and(|s| matches!(s.kind, SymbolKind::Fn(_)));
        let needs_name = called.as_ref().is_some_and(|c| c.after_named && c.fresh);
        Fit {
            exact,
            calls_own,
            needs_name,
            begins_statement: matches!(last, ";" | ""),
            begins_argument: last == "(",
            begins_operand: last == "+",
            listed: listed(tokens),
            // What an argument has to be is the first in the list.
            expected: items
                .first()
                .map(|c| c.kind)
                .filter(|k| matches!(last, "(" | "=") && matches!(k, K::Type | K::Keyword)),
            wants: if matches!(last, "(" | "=" | "if" | "while") { wants } else { Gives::Other },
            has_optional: items.iter().any(|c| c.gives == Gives::Optional),
            has_pointer: items.iter().any(|c| c.gives == Gives::Pointer),
            computes,
            is_required: called.is_some_and(|c| c.position < required),
            in_clause: call.is_some_and(|c| matches!(c.callee, "require" | "prefer" | "grid")),
            in_key: tokens.iter().rposition(|t| *t == "tune").is_some_and(|at| {
                let clause = tokens.get(at..).unwrap_or(&[]);
                clause.starts_with(&["tune", "(", "key", "="]) && !clause.contains(&"{")
            }),
        }
    }

    /// How well an item fits.
    pub fn score(&self, c: &Completion) -> f64 {
        let is_exact = c.ty.is_some() && c.ty == self.exact;
        self.kind(c) + if is_exact { EXACT } else { 0.0 }
    }

    fn kind(&self, c: &Completion) -> f64 {
        match c.kind {
            _any if matches!(self.wants, Gives::Function | Gives::Optional | Gives::Known) => {
                if c.gives == self.wants { MATCHES + FIRST_OF_KIND } else { self.builtin_or(c) }
            }
            K::Builtin if self.in_key => self.builtin(c) - PASSED,
            K::Function if self.in_key => -PASSED,
            K::Builtin => self.builtin(c),
            K::Variable | K::Parameter | K::CompileTime | K::Const if self.in_key => LAUNCHED,
            K::Variable | K::Parameter
                if c.gives == Gives::View && self.in_clause && self.begins_argument =>
            {
                LAUNCHED
            }
            K::CompileTime if c.gives == Gives::Parameter && self.begins_argument => -MISFIT,
            K::Function if self.begins_argument => -PASSED,
            K::Variable | K::Parameter if self.wants != Gives::Other => match c.gives {
                found if found == self.wants => MATCHES,
                Gives::View | Gives::Pointer => -PASSED,
                _part => 0.0,
            },
            K::Keyword if self.expected == Some(K::Keyword) && matches!(c.word(), "true" | "false") => TRUTH,
            K::Type | K::Keyword if self.expected == Some(c.kind) => EXPECTED,
            K::Keyword if c.label == "let" && self.has_optional => MATCHES,
            K::Keyword if !self.begins_statement && c.label != "device" => -RARE,
            K::Type if self.listed.is_empty() => -RARE,
            K::Type if !self.listed.contains(&c.word()) => LISTED - RARE,
            K::Argument if self.needs_name => ONLY_NAMED,
            K::Argument if self.calls_own => NAMED,
            K::Argument if self.is_required => -MISFIT,
            _other => 0.0,
        }
    }

    /// What does not give what is wanted.
    fn builtin_or(&self, c: &Completion) -> f64 {
        if c.kind == K::Builtin { self.builtin(c) } else { -RARE }
    }

    fn builtin(&self, c: &Completion) -> f64 {
        let is_in_value = self.begins_operand || self.begins_argument && self.computes;
        let value = match c.gives {
            Gives::Nothing if !self.begins_statement => -MISFIT,
            Gives::Buffer if is_in_value => -WRONG,
            _fits => 0.0,
        };
        let row = tk_ops::rows::find(c.word(), tk_ops::table::Receiver::None);
        let accesses = row.is_some_and(|r| r.params.first().is_some_and(|p| p.kind == ParamKind::Pointer));
        let is_plain = row.is_some_and(|r| matches!(r.op, Op::Memory(MemoryOp::Load | MemoryOp::Store)));
        value
            + match (accesses, self.has_pointer) {
                (true, false) => -MISFIT,
                (true, true) if is_plain => ACCESS,
                _other => 0.0,
            }
    }
}

/// The element types before a place in a list of nothing else.
fn listed<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    let is_type = |t: &str| DTYPES.iter().any(|d| d.name() == t);
    let [.., before, "," | "|"] = tokens else { return vec![] };
    let from = tokens.iter().rposition(|t| matches!(*t, "[" | ":" | "(" | ";")).unwrap_or(0);
    let types = tokens.get(from..).unwrap_or(&[]).iter().copied().filter(|t| is_type(t));
    if is_type(before) { types.collect() } else { vec![] }
}

/// The type that is written for a value which begins at the end of some tokens: of a `let`, or that of a condition.
fn written(tokens: &[&str]) -> Option<Ty> {
    match tokens {
        [.., "if" | "while"] => Some(Ty::scalar(DType::Bool)),
        [.., "let" | "mut", _, ":", dtype, "="] => {
            DTYPES.iter().find(|d| d.name() == *dtype).map(|d| Ty::scalar(*d))
        }
        _other => None,
    }
}

/// The type of the argument of a function or a kernel.
fn exact(a: &Analysis, site: &Site, c: &CallSite) -> Option<Ty> {
    let symbol = callee(a, site, c).filter(|_| c.open == Tok::LParen)?;
    let SymbolKind::Fn(id) = symbol.kind else { return None };
    let f = a.checked.hir.fns.get(id.0 as usize)?;
    let own = f.params.get(usize::from(symbol.owner.is_some())..).unwrap_or(&[]);
    let wanted = match c.named {
        Some(name) => own.iter().find(|p| p.name == name),
        None => own.get(c.position),
    };
    wanted.map(|p| p.ty.clone())
}

/// What a variable has to be that is the argument of a call of a function, or the position in a view.
fn wants(a: &Analysis, site: &Site, c: &CallSite) -> Gives {
    let Some(symbol) = callee(a, site, c) else { return Gives::Other };
    let function = match &symbol.kind {
        SymbolKind::Builtin(row) if c.open == Tok::LParen => {
            let skip = usize::from(describe::has_receiver(row));
            let number = c.named.map_or(Some(c.position + skip), |n| row.param(n));
            return match number.and_then(|n| row.params.get(n)).map(|p| p.kind) {
                Some(ParamKind::Fn) => Gives::Function,
                Some(ParamKind::Axis) if c.named.is_some() => Gives::Known,
                _other => Gives::Other,
            };
        }
        SymbolKind::Param(Ty::View { .. }) | SymbolKind::Local(Ty::View { .. })
            if c.open == Tok::LBracket =>
        {
            return Gives::Scalar;
        }
        SymbolKind::Fn(id) if c.open == Tok::LParen => a.checked.hir.fns.get(id.0 as usize),
        _other => None,
    };
    if takes_function(a, symbol, c) {
        return Gives::Function;
    }
    // A launch takes buffers.
    let Some(f) = function.filter(|f| f.kind == tk_sema::hir::FnKind::Fn) else { return Gives::Other };
    let own = f.params.get(usize::from(symbol.owner.is_some())..).unwrap_or(&[]);
    let wanted = match c.named {
        Some(name) => own.iter().find(|p| p.name == name),
        None => own.get(c.position),
    };
    wanted.map_or(Gives::Other, |p| Gives::of_type(&p.ty))
}

/// Returns true if the argument of a call is a function, which is known when it is compiled.
fn takes_function(a: &Analysis, symbol: &Symbol, c: &CallSite) -> bool {
    let Some(d) = Declared::of(a, symbol).filter(|_| c.open == Tok::LParen) else { return false };
    let number = match c.named {
        Some(name) => d.names.iter().position(|n| n == name),
        None => Some(d.run.start + c.position).filter(|n| d.run.contains(n)),
    };
    let text = number.and_then(|n| d.label.get(d.params.get(n)?.0.clone()));
    text.is_some_and(|t| t.split_once(": ").is_some_and(|(_, ty)| ty.starts_with("fn(")))
}

/// The number of arguments that a call must have, those before the first one that may be left out.
fn required(a: &Analysis, symbol: &Symbol) -> usize {
    if let SymbolKind::Builtin(row) = &symbol.kind {
        let own = row.params.iter().skip(usize::from(describe::has_receiver(row)));
        return own.take_while(|p| p.default.is_none() && p.kind != ParamKind::Rest).count();
    }
    let Some(d) = Declared::of(a, symbol) else { return 0 };
    let texts = d.run.clone().filter_map(|i| d.params.get(i)).filter_map(|(at, _)| d.label.get(at.clone()));
    texts.take_while(|t| !t.contains(" = ")).count()
}
