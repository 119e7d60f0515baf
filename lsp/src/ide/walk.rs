//! The walk over syntax trees: the one place of this crate that knows the children of each node.

use tk_syntax::Span;
use tk_syntax::ast::{
    Arg, AstAttr, Block, CParam, Clause, Const, Expr, ExprKind, File, Item, ItemKind, Param, Pat, PatKind,
    Stmt, StmtKind, Subscript, TuneRow, TypeExpr, TypeKind,
};

/// A part of a tree.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are those of the tree")]
pub enum Node<'a> {
    Item(&'a Item),
    Attr(&'a AstAttr),
    CParam(&'a CParam),
    Param(&'a Param),
    Clause(&'a Clause),
    TuneRow(&'a TuneRow),
    Block(&'a Block),
    Stmt(&'a Stmt),
    Pat(&'a Pat),
    Type(&'a TypeExpr),
    Expr(&'a Expr),
    /// A named argument; others are their expressions.
    Arg(Span, &'a Expr),
}

impl<'a> Node<'a> {
    /// Its span.
    pub fn span(self) -> Span {
        match self {
            Node::Item(n) => n.span,
            Node::Attr(n) => n.span,
            Node::CParam(n) => n.span,
            Node::Param(n) => n.span,
            Node::Clause(n) => n.span,
            Node::TuneRow(n) => n.span,
            Node::Block(n) => n.span,
            Node::Stmt(n) => n.span,
            Node::Pat(n) => n.span,
            Node::Type(n) => n.span,
            Node::Expr(n) => n.span,
            Node::Arg(name, value) => name.to(value.span),
        }
    }

    /// Returns true if an offset is in it or at its end.
    pub fn touches(self, offset: u32) -> bool {
        let s = self.span();
        s.start <= offset && offset <= s.end
    }

    /// Calls `f` for its direct children, in order.
    pub fn children(self, f: &mut dyn FnMut(Node<'a>)) {
        match self {
            Node::Item(i) => item(i, f),
            Node::Attr(a) => args(&a.args, f),
            Node::CParam(c) => {
                c.bound.iter().for_each(|t| f(Node::Type(t)));
                c.default.iter().for_each(|e| f(Node::Expr(e)));
            }
            Node::Param(p) => {
                p.attrs.iter().for_each(|a| f(Node::Attr(a)));
                p.ty.iter().for_each(|t| f(Node::Type(t)));
                p.default.iter().for_each(|e| f(Node::Expr(e)));
            }
            Node::Clause(c) => {
                args(&c.args, f);
                c.rows.iter().for_each(|r| f(Node::TuneRow(r)));
            }
            Node::TuneRow(r) => {
                args(&r.entries, f);
                r.cond.iter().for_each(|e| f(Node::Expr(e)));
            }
            Node::Block(b) => {
                b.stmts.iter().for_each(|s| f(Node::Stmt(s)));
                b.tail.iter().for_each(|e| f(Node::Expr(e)));
            }
            Node::Stmt(s) => stmt(s, f),
            Node::Pat(p) => match &p.kind {
                PatKind::Tuple(parts) => parts.iter().for_each(|p| f(Node::Pat(p))),
                PatKind::Name { .. } | PatKind::Err => {}
            },
            Node::Type(t) => ty(t, f),
            Node::Expr(e) => expr(e, f),
            Node::Arg(_, value) => f(Node::Expr(value)),
        }
    }

    /// Calls `f` for it and everything in it, outer parts first.
    pub fn each(self, f: &mut dyn FnMut(Node<'a>)) {
        f(self);
        self.children(&mut |n| n.each(f));
    }
}

/// Calls `f` for everything in a file, outer parts first.
pub fn each<'a>(file: &'a File, f: &mut dyn FnMut(Node<'a>)) {
    file.items.iter().for_each(|i| Node::Item(i).each(f));
}

/// The nodes around an offset, outermost first.
pub fn around(file: &File, offset: u32) -> Vec<Node<'_>> {
    fn go<'a>(n: Node<'a>, offset: u32, out: &mut Vec<Node<'a>>) {
        out.push(n);
        let mut next = None;
        n.children(&mut |c| {
            // Of two parts that meet here the one that begins here is meant.
            if c.touches(offset) && (next.is_none() || c.span().start == offset) {
                next = Some(c);
            }
        });
        if let Some(c) = next {
            go(c, offset, out);
        }
    }
    let mut out = vec![];
    if let Some(i) = file.items.iter().rev().find(|i| Node::Item(i).touches(offset)) {
        go(Node::Item(i), offset, &mut out);
    }
    out
}

fn args<'a>(list: &'a [Arg], f: &mut dyn FnMut(Node<'a>)) {
    for a in list {
        f(match &a.name {
            Some(n) => Node::Arg(n.span, &a.value),
            None => Node::Expr(&a.value),
        });
    }
}

fn item<'a>(i: &'a Item, f: &mut dyn FnMut(Node<'a>)) {
    i.attrs.iter().for_each(|a| f(Node::Attr(a)));
    match &i.kind {
        ItemKind::Use(_) | ItemKind::Err => {}
        ItemKind::Const(c) => constant(c, f),
        ItemKind::Struct(s) => {
            s.cparams.iter().for_each(|c| f(Node::CParam(c)));
            s.fields.iter().for_each(|p| f(Node::Param(p)));
            s.methods.iter().for_each(|m| f(Node::Item(m)));
        }
        ItemKind::Fn(x) => {
            x.cparams.iter().for_each(|c| f(Node::CParam(c)));
            x.params.iter().for_each(|p| f(Node::Param(p)));
            x.ret.iter().for_each(|t| f(Node::Type(t)));
            x.clauses.iter().for_each(|c| f(Node::Clause(c)));
            f(Node::Block(&x.body));
        }
        ItemKind::Export(e) => args(&e.args, f),
        ItemKind::Test(t) => f(Node::Block(&t.body)),
    }
}

fn constant<'a>(c: &'a Const, f: &mut dyn FnMut(Node<'a>)) {
    c.ty.iter().for_each(|t| f(Node::Type(t)));
    f(Node::Expr(&c.value));
}

fn stmt<'a>(s: &'a Stmt, f: &mut dyn FnMut(Node<'a>)) {
    s.attrs.iter().for_each(|a| f(Node::Attr(a)));
    match &s.kind {
        StmtKind::Let { pat, ty, init } => {
            f(Node::Pat(pat));
            ty.iter().for_each(|t| f(Node::Type(t)));
            init.iter().for_each(|e| f(Node::Expr(e)));
        }
        StmtKind::Const(c) => constant(c, f),
        StmtKind::Assign { place, value, .. } => {
            f(Node::Expr(place));
            f(Node::Expr(value));
        }
        StmtKind::Expr(e) => f(Node::Expr(e)),
        StmtKind::For { pat, iter, body } => {
            f(Node::Pat(pat));
            f(Node::Expr(iter));
            f(Node::Block(body));
        }
        StmtKind::While { cond, body } => {
            f(Node::Expr(cond));
            f(Node::Block(body));
        }
        StmtKind::Return(e) => e.iter().for_each(|e| f(Node::Expr(e))),
        StmtKind::AssertError { body, .. } => f(Node::Block(body)),
        StmtKind::Break | StmtKind::Continue | StmtKind::Err => {}
    }
}

fn ty<'a>(t: &'a TypeExpr, f: &mut dyn FnMut(Node<'a>)) {
    match &t.kind {
        TypeKind::Path { args, .. } => args.iter().flatten().for_each(|i| index(i, f)),
        TypeKind::Ptr { pointee: inner, .. } | TypeKind::Mut(inner) | TypeKind::Option(inner) => {
            f(Node::Type(inner))
        }
        TypeKind::Tuple(ts) => ts.iter().for_each(|t| f(Node::Type(t))),
        TypeKind::Fn(ps, r) => {
            ps.iter().for_each(|t| f(Node::Type(t)));
            f(Node::Type(r));
        }
        TypeKind::Err => {}
    }
}

fn index<'a>(i: &'a Subscript, f: &mut dyn FnMut(Node<'a>)) {
    match i {
        Subscript::Expr(e) => f(Node::Expr(e)),
        Subscript::Slice(a, b, _) => a.iter().chain(b).for_each(|e| f(Node::Expr(e))),
        Subscript::Named(n, e) => f(Node::Arg(n.span, e)),
    }
}

fn expr<'a>(e: &'a Expr, f: &mut dyn FnMut(Node<'a>)) {
    match &e.kind {
        ExprKind::Tuple(es) | ExprKind::Array(es) => es.iter().for_each(|e| f(Node::Expr(e))),
        ExprKind::Unary(_, a) | ExprKind::Member(a, _) => f(Node::Expr(a)),
        ExprKind::Binary(_, a, b) => {
            f(Node::Expr(a));
            f(Node::Expr(b));
        }
        ExprKind::Cast(a, t) => {
            f(Node::Expr(a));
            f(Node::Type(t));
        }
        ExprKind::Index(a, items) => {
            f(Node::Expr(a));
            items.iter().for_each(|i| index(i, f));
        }
        ExprKind::Call(a, list) => {
            f(Node::Expr(a));
            args(list, f);
        }
        ExprKind::If(c, then, els) | ExprKind::IfLet(_, c, then, els) => {
            f(Node::Expr(c));
            f(Node::Block(then));
            els.iter().for_each(|e| f(Node::Expr(e)));
        }
        ExprKind::Block(b) => f(Node::Block(b)),
        ExprKind::Lambda(params, body) => {
            for (p, t) in params {
                f(Node::Pat(p));
                t.iter().for_each(|t| f(Node::Type(t)));
            }
            f(Node::Expr(body));
        }
        ExprKind::Type(t) => f(Node::Type(t)),
        ExprKind::Return(e) => e.iter().for_each(|e| f(Node::Expr(e))),
        ExprKind::Path(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Err => {}
    }
}

/// A `let` of one name with a value.
pub struct Let<'a> {
    /// The statement.
    pub stmt: &'a Stmt,
    /// The type, if it is written.
    pub ty: Option<&'a TypeExpr>,
    /// The value.
    pub init: &'a Expr,
}

/// The `let` that declares the variable with just this name.
pub fn declaration(file: &File, at: Span) -> Option<Let<'_>> {
    let mut found = None;
    each(file, &mut |n| {
        if let Node::Stmt(stmt) = n
            && let StmtKind::Let { pat, ty, init: Some(init) } = &stmt.kind
            && let PatKind::Name { name, .. } = &pat.kind
            && name.span == at
        {
            found = Some(Let { stmt, ty: ty.as_ref(), init });
        }
    });
    found
}
