//! The construction of statements and items, in the same way as [`crate::node`] does for the rest.

use std::sync::Arc;

use crate::ast::*;
use crate::codes::SYNTAX;
use crate::diag::Diagnostic;
use crate::node::{Cx, D, Unit, option, split};

impl Cx<'_> {
    /// A statement over children of depth `depth`.
    pub fn stmt(&mut self, l: usize, attrs: Vec<AstAttr>, kind: StmtKind, depth: usize, r: usize) -> Unit {
        let span = self.span(l, r);
        Unit::Stmt(if self.fits(depth, span) {
            D { node: Stmt { attrs, kind, span }, depth: depth + 1 }
        } else {
            D { node: Stmt { attrs: vec![], kind: StmtKind::Err, span }, depth: 1 }
        })
    }

    /// `let p: T = e;`
    pub fn let_stmt(
        &mut self,
        l: usize,
        pat: D<Pat>,
        ty: Option<D<TypeExpr>>,
        init: Option<D<Expr>>,
        r: usize,
    ) -> Unit {
        let (ty, init) = (option(ty), option(init));
        let depth = pat.depth.max(ty.depth).max(init.depth);
        self.stmt(l, vec![], StmtKind::Let { pat: pat.node, ty: ty.node, init: init.node }, depth, r)
    }

    /// `a += e;`
    pub fn assign(&mut self, l: usize, a: D<Expr>, op: Option<BinOp>, b: D<Expr>, r: usize) -> Unit {
        let depth = a.depth.max(b.depth);
        self.stmt(l, vec![], StmtKind::Assign { place: a.node, op, value: b.node }, depth, r)
    }

    /// `return e;`
    pub fn return_stmt(&mut self, l: usize, e: Option<D<Expr>>, r: usize) -> Unit {
        let e = option(e);
        self.stmt(l, vec![], StmtKind::Return(e.node), e.depth, r)
    }

    /// `return e` as the value of a block.
    pub fn return_tail(&mut self, l: usize, e: Option<D<Expr>>, r: usize) -> D<Expr> {
        let e = option(e);
        self.expr(l, ExprKind::Return(e.node.map(Box::new)), e.depth, r)
    }

    /// `for p in e { .. }`
    pub fn for_loop(&mut self, pat: D<Pat>, iter: D<Expr>, block: usize) -> D<StmtKind> {
        let body = self.take_block(block);
        let depth = pat.depth.max(iter.depth).max(body.depth);
        D { node: StmtKind::For { pat: pat.node, iter: iter.node, body: body.node }, depth }
    }

    /// `while e { .. }`
    pub fn while_loop(&mut self, cond: D<Expr>, block: usize) -> D<StmtKind> {
        let body = self.take_block(block);
        let depth = cond.depth.max(body.depth);
        D { node: StmtKind::While { cond: cond.node, body: body.node }, depth }
    }

    /// `assert_error "E0304" { .. }`
    pub fn assert_error(
        &mut self,
        (l, r): (usize, usize),
        (cl, code, cr): (usize, &str, usize),
        block: usize,
    ) -> Unit {
        let (code, code_span) = (self.text_of(cl, code), self.span(cl, cr));
        let body = self.take_block(block);
        let kind = StmtKind::AssertError { code, code_span, body: body.node };
        self.stmt(l, vec![], kind, body.depth, r)
    }

    /// `@name(args)`
    pub fn attr(&mut self, l: usize, name: Name, args: Vec<D<Arg>>, r: usize) -> AstAttr {
        AstAttr { name, args: split(args).node, span: self.span(l, r) }
    }

    /// `struct S[..] { .. }`
    pub fn structure(&mut self, name: Name, cparams: Vec<CParam>, body: usize) -> ItemKind {
        let (fields, methods) = self.bodies.get_mut(body).and_then(Option::take).unwrap_or_default();
        ItemKind::Struct(Arc::new(Struct { name, cparams, fields, methods }))
    }

    /// `test "name" { .. }`
    pub fn test(&mut self, l: usize, name: &str, r: usize, block: usize) -> ItemKind {
        let (name, name_span) = (self.text_of(l, name), self.span(l, r));
        ItemKind::Test(Arc::new(Test { name, name_span, body: self.take_block(block).node }))
    }

    /// A function or kernel. A kernel with a return type is reported here.
    #[allow(clippy::too_many_arguments, reason = "these are the parts of a signature")]
    pub fn function(
        &mut self,
        l: usize,
        kernel: bool,
        name: Name,
        cparams: Vec<CParam>,
        params: Vec<Param>,
        ret: Option<D<TypeExpr>>,
        r: usize,
        clauses: Vec<Clause>,
        block: usize,
    ) -> Fn {
        let mut ret = option(ret).node;
        if let Some(ty) = ret.take_if(|_| kernel) {
            self.diags.push(
                Diagnostic::error(
                    SYNTAX,
                    ty.span,
                    "a kernel cannot return a value",
                    "result type of a kernel",
                )
                .note("Results are stored into `*mut` pointers or `mut view`s."),
            );
        }
        let body = self.take_block(block).node;
        Fn { kernel, name, cparams, params, ret, clauses, body, sig_span: self.span(l, r) }
    }

    /// `T: f16 | bf16 = f16`
    pub fn cparam(
        &mut self,
        l: usize,
        name: Name,
        bound: Vec<D<TypeExpr>>,
        default: Option<D<Expr>>,
        r: usize,
    ) -> CParam {
        let mut bound = split(bound).node;
        if bound.is_empty() {
            let ty = self.missing_type(&name);
            bound.push(ty);
        }
        CParam { name, bound, default: option(default).node, span: self.span(l, r) }
    }

    /// `x: const i32 = 0`
    pub fn param(
        &mut self,
        l: usize,
        attrs: Vec<AstAttr>,
        name: Name,
        ty: Option<(bool, D<TypeExpr>)>,
        default: Option<D<Expr>>,
        r: usize,
    ) -> Param {
        let konst = ty.as_ref().is_some_and(|t| t.0);
        let mut ty = ty.map(|t| t.1.node);
        if ty.is_none() && name.text != "self" {
            ty = Some(self.missing_type(&name));
        }
        Param {
            attrs,
            name,
            ty,
            konst,
            default: option(default).node,
            doc: self.doc(l),
            span: self.span(l, r),
        }
    }

    /// Reports a name without type, unless the name is missing too.
    fn missing_type(&mut self, name: &Name) -> TypeExpr {
        if !name.text.is_empty() {
            let message = format!("`{}` has no type", name.text);
            self.diags.push(Diagnostic::error(SYNTAX, name.span, message, "type missing").note(
                "a type follows a colon: `n: i32` for a number, `x: view[f32, 1]` for an array in memory",
            ));
        }
        TypeExpr { kind: TypeKind::Err, span: name.span }
    }

    /// A parameter that could not be read.
    pub fn param_hole(&mut self, l: usize, r: usize) -> Param {
        let (name, span) = (self.name(l, "", r), self.span(l, r));
        let ty = Some(TypeExpr { kind: TypeKind::Err, span });
        Param { attrs: vec![], name, ty, konst: false, default: None, doc: String::new(), span }
    }

    /// `grid(..)`
    pub fn clause(
        &mut self,
        (l, word, m): (usize, &str, usize),
        args: Vec<D<Arg>>,
        rows: Option<usize>,
        r: usize,
    ) -> Clause {
        let rows = rows.and_then(|i| self.rows.get_mut(i)).and_then(Option::take).unwrap_or_default();
        Clause { name: self.name(l, word, m), args: split(args).node, rows, span: self.span(l, r) }
    }

    /// `locks: *mut u32` of `scratch`.
    pub fn scratch(&mut self, name: Name, ty: D<TypeExpr>) -> D<Arg> {
        let (l, r) = (ty.node.span.start as usize, ty.node.span.end as usize);
        self.expr_type(l, ty, r).map(|value| Arg { name: Some(name), value })
    }

    /// `{ BM = [64, 128] } if target.has_tma`
    pub fn row(&mut self, l: usize, entries: Vec<D<Arg>>, cond: Option<D<Expr>>, r: usize) -> TuneRow {
        TuneRow { entries: split(entries).node, cond: option(cond).node, span: self.span(l, r) }
    }
}
