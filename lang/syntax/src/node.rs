//! The construction of tree nodes: spans, and the limit on depth.
//!
//! Every constructor knows how deep its children are ([`D`]) and builds a hole in place of a node that would be
//! deeper than [`MAX_DEPTH`]; so nothing deeper ever exists, not even for the moment of dropping it.

use crate::MAX_DEPTH;
use crate::ast::*;
use crate::c::of_c;
use crate::codes::{BAD_LITERAL, SYNTAX, TOO_DEEP};
use crate::diag::Diagnostic;
use crate::habits::power_instead;
use crate::literal;
use crate::span::{FileId, Span};

/// What is said of `x ** y`.
pub const NO_POWER: &str = "there is no `**`; a power is `pow(x, y)`";

/// A node with its depth: 1 for a leaf.
#[derive(Debug)]
pub struct D<T> {
    /// The node.
    pub node: T,
    /// The number of nodes on the longest way down.
    pub depth: usize,
}

impl<T> D<T> {
    /// The same depth around another node, for wrappers that are walked together with their content.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> D<U> {
        D { node: f(self.node), depth: self.depth }
    }
}

/// A piece of source that the parser reads at once.
#[derive(Debug)]
pub enum Unit {
    /// A complete statement.
    Stmt(D<Stmt>),
    /// `if` or a block without semicolon: a statement, or the value of the block that it ends.
    BlockLike(D<Expr>),
    /// An expression or `return` without semicolon.
    Tail(D<Expr>),
    /// An item with its attributes.
    Item(Vec<AstAttr>, ItemKind),
    /// A row of `tune`.
    Row(TuneRow),
    /// A field of a struct.
    Field(Param),
}

/// One `if` of a chain.
#[derive(Debug)]
pub struct Arm {
    start: usize,
    binding: Option<Name>,
    cond: D<Expr>,
    block: usize,
    end: usize,
}

impl Arm {
    /// An arm whose block has number `block` and ends at `end`.
    pub fn new(binding: Option<Name>, cond: D<Expr>, block: usize, end: usize) -> Self {
        Arm { start: 0, binding, cond, block, end }
    }

    /// The same with the place of its `if`.
    pub fn at(self, start: usize) -> Self {
        Arm { start, ..self }
    }
}

/// The parameters of a lambda between its bars.
pub type LambdaParams = Vec<(D<Pat>, Option<D<TypeExpr>>)>;

/// The input of the constructors of nodes, and the diagnostics that they report.
#[derive(Debug)]
pub struct Cx<'s> {
    /// The file of every span.
    pub file: FileId,
    /// Its text.
    pub text: &'s str,
    /// Doc comments by the start of the token after them.
    pub docs: &'s [(usize, String)],
    /// The diagnostics reported so far.
    pub diags: Vec<Diagnostic>,
    /// The place of the last [`TOO_DEEP`]; whatever contains it is too deep for the same reason.
    pub deep: Option<Span>,
    /// Blocks that were parsed before the tokens around them. A block is taken when its node is built.
    pub blocks: Vec<Option<D<Block>>>,
    /// Rows of `tune`.
    pub rows: Vec<Option<Vec<TuneRow>>>,
    /// Bodies of structs.
    pub bodies: Vec<Option<(Vec<Param>, Vec<Item>)>>,
}

/// Separates the depth of list elements from the elements.
pub fn split<T>(list: Vec<D<T>>) -> D<Vec<T>> {
    let depth = list.iter().map(|d| d.depth).max().unwrap_or(0);
    D { node: list.into_iter().map(|d| d.node).collect(), depth }
}

/// Separates an optional node from its depth.
pub fn option<T>(x: Option<D<T>>) -> D<Option<T>> {
    match x {
        Some(d) => d.map(Some),
        None => D { node: None, depth: 0 },
    }
}

/// A path of one segment.
pub fn path(name: Name) -> Path {
    Path { span: name.span, segments: vec![name] }
}

/// A path with one more segment.
pub fn join(mut path: Path, name: Name) -> Path {
    path.span = path.span.to(name.span);
    path.segments.push(name);
    path
}

/// A constant.
pub fn constant(name: Name, ty: Option<D<TypeExpr>>, value: D<Expr>) -> D<Const> {
    let (ty, value) = (option(ty), value);
    let depth = ty.depth.max(value.depth);
    D { node: Const { name, ty: ty.node, value: value.node }, depth }
}

impl Cx<'_> {
    /// The span of `l..r`.
    pub fn span(&self, l: usize, r: usize) -> Span {
        Span::new(self.file, l, r)
    }

    /// Returns true if a node over children of this depth fits; reports it if not.
    pub fn fits(&mut self, depth: usize, span: Span) -> bool {
        if depth < MAX_DEPTH {
            return true;
        }
        let known = self.deep.is_some_and(|d| span.start <= d.start && d.end <= span.end);
        self.deep = Some(span);
        if !known {
            let message = format!("this is nested more than {MAX_DEPTH} levels deep");
            self.diags.push(
                Diagnostic::error(TOO_DEEP, span.after(), message, "its end")
                    .note("Bind a part of it with `let`."),
            );
        }
        false
    }

    /// A name.
    pub fn name(&self, l: usize, text: &str, r: usize) -> Name {
        Name { text: text.to_string(), span: self.span(l, r) }
    }

    /// The doc comment before the token at `start`.
    pub fn doc(&self, start: usize) -> String {
        let at = self.docs.binary_search_by_key(&start, |d| d.0);
        at.ok().and_then(|i| self.docs.get(i)).map(|d| d.1.clone()).unwrap_or_default()
    }

    /// An expression over children of depth `depth`.
    pub fn expr(&mut self, l: usize, kind: ExprKind, depth: usize, r: usize) -> D<Expr> {
        let span = self.span(l, r);
        self.expr_at(kind, depth, span)
    }

    fn expr_at(&mut self, kind: ExprKind, depth: usize, span: Span) -> D<Expr> {
        if self.fits(depth, span) {
            D { node: Expr { kind, span }, depth: depth + 1 }
        } else {
            D { node: Expr { kind: ExprKind::Err, span }, depth: 1 }
        }
    }

    /// An expression in parentheses, which only belong to its span.
    pub fn parens(&self, l: usize, mut e: D<Expr>, r: usize) -> D<Expr> {
        e.node.span = self.span(l, r);
        e
    }

    /// An integer literal.
    pub fn int(&mut self, l: usize, text: &str, r: usize) -> D<Expr> {
        let value = literal::int(text);
        if value.is_none() {
            let span = self.span(l, r);
            self.diags.push(Diagnostic::error(BAD_LITERAL, span, "this number does not fit in 128 bits", ""));
        }
        self.expr(l, ExprKind::Int(value), 0, r)
    }

    /// A float literal.
    pub fn float(&mut self, l: usize, text: &str, r: usize) -> D<Expr> {
        self.expr(l, ExprKind::Float(literal::float(text)), 0, r)
    }

    /// A string literal.
    pub fn string(&mut self, l: usize, text: &str, r: usize) -> D<Expr> {
        let text = self.text_of(l, text);
        self.expr(l, ExprKind::Str(text), 0, r)
    }

    /// The text of a string literal at `l`; reports unknown escapes.
    pub fn text_of(&mut self, l: usize, text: &str) -> String {
        let (out, bad) = literal::string(text);
        for range in bad {
            let span = self.span(l + range.start, l + range.end);
            self.diags.push(
                Diagnostic::error(BAD_LITERAL, span, "unknown escape sequence", "")
                    .note("The escape sequences are \\n, \\t, \\r, \\0, \\\\, \\\" and \\u{..}."),
            );
        }
        out
    }

    /// `(a, b)`
    pub fn tuple(&mut self, l: usize, list: Vec<D<Expr>>, r: usize) -> D<Expr> {
        let list = split(list);
        self.expr(l, ExprKind::Tuple(list.node), list.depth, r)
    }

    /// `[a, b]`
    pub fn array(&mut self, l: usize, list: Vec<D<Expr>>, r: usize) -> D<Expr> {
        let list = split(list);
        self.expr(l, ExprKind::Array(list.node), list.depth, r)
    }

    /// `a + b`
    pub fn binary(&mut self, op: BinOp, a: D<Expr>, b: D<Expr>) -> D<Expr> {
        let (depth, span) = (a.depth.max(b.depth), a.node.span.to(b.node.span));
        // `x ** y` reads as a product with the pointer type `*y`.
        let text = |from: u32, to: u32| self.text.get(from as usize..to as usize).unwrap_or("");
        let between = text(a.node.span.end, b.node.span.end).trim_start();
        if op == BinOp::Mul && matches!(b.node.kind, ExprKind::Type(_)) && between.starts_with("**") {
            let (of, power) = (a.node.span, b.node.span);
            let (base, exponent) = (text(of.start, of.end), text(power.start + 1, power.end).trim_start());
            let (before, after) = (text(0, span.start), text(span.end, self.text.len() as u32));
            let (title, fixed) = power_instead(base, exponent, (before, after));
            let d = Diagnostic::error(SYNTAX, span, NO_POWER, "");
            self.diags.push(d.fix(title, span, fixed));
            return self.expr_at(ExprKind::Err, depth, span);
        }
        self.expr_at(ExprKind::Binary(op, Box::new(a.node), Box::new(b.node)), depth, span)
    }

    /// `a < b`; more than one comparison is reported and becomes a hole.
    pub fn compare(&mut self, first: D<Expr>, rest: Vec<(BinOp, D<Expr>)>) -> D<Expr> {
        let mut rest = rest.into_iter();
        let Some((op, second)) = rest.next() else { return first };
        let Some((next, third)) = rest.next() else { return self.binary(op, first, second) };
        let middle = second.node.span;
        let span = rest.fold(first.node.span.to(third.node.span), |s, (_, e)| s.to(e.node.span));
        let mut d = Diagnostic::error(
            SYNTAX,
            middle.to(third.node.span),
            format!("comparisons cannot be chained: `{}` follows `{}`", next.symbol(), op.symbol()),
            "second comparison",
        );
        if let Some(d) = self.in_angles(&first.node, span) {
            self.diags.push(d);
            return self.expr_at(ExprKind::Err, 0, span);
        }
        let shared = self.text.get(middle.start as usize..middle.end as usize).unwrap_or("");
        let joined = match &second.node.kind {
            ExprKind::Binary(op @ (BinOp::BitAnd | BinOp::BitOr), a, b) => {
                Some((op.symbol(), a.span, b.span))
            }
            _other => None,
        };
        if let Some((bitwise, a, b)) = joined {
            // `a < b & c < d`
            let logic = bitwise.repeat(2);
            d.message = format!(
                "`{bitwise}` binds more tightly than comparisons; conditions are joined by `{logic}`"
            );
            if span.end == third.node.span.end {
                let between = self.span(a.end as usize, b.start as usize);
                let text = self.text.get(a.end as usize..b.start as usize).unwrap_or("");
                d = d.fix(format!("use `{logic}`"), between, text.replacen(bitwise, &logic, 1));
            }
            self.diags.push(d);
            return self.expr_at(ExprKind::Err, 0, span);
        }
        if let (ExprKind::Binary(BinOp::BitXor, a, b), true) =
            (&second.node.kind, span.end == third.node.span.end)
        {
            // `a < b ^ c < d`
            d.message = "`^` binds more tightly than comparisons; of conditions it is `!=`".to_string();
            let [one, other] = [first.node.span.to(a.span), b.span.to(third.node.span)]
                .map(|s| self.text.get(s.start as usize..s.end as usize).unwrap_or(""));
            let text = format!("({one}) != ({other})");
            self.diags.push(d.write_instead(span, text));
            return self.expr_at(ExprKind::Err, 0, span);
        }
        let ordered = |op| matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
        let equal = op == BinOp::Eq && next == BinOp::Eq;
        let twice = equal || ordered(op) && ordered(next);
        if span.end == third.node.span.end && !shared.is_empty() && twice {
            d = d.fix("compare twice", middle.after(), format!(" && {shared}"));
        }
        self.diags.push(d);
        self.expr_at(ExprKind::Err, 0, span)
    }

    /// `static_cast<int>(x)` and `f<8>(x)`, which read as two comparisons.
    fn in_angles(&self, first: &Expr, span: Span) -> Option<Diagnostic> {
        let text = self.text.get(span.start as usize..span.end as usize)?;
        let name = self.text.get(first.span.start as usize..first.span.end as usize)?;
        let (args, rest) = text.strip_prefix(name)?.strip_prefix('<')?.split_once('>')?;
        let plain = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !matches!(first.kind, ExprKind::Path(_)) || !plain(args) || !rest.starts_with('(') {
            return None;
        }
        if name.ends_with("_cast") {
            let of_type = of_c(args).unwrap_or(args);
            let d = Diagnostic::error(SYNTAX, span, format!("a cast is written `x as {of_type}`"), "");
            let inner = rest.strip_prefix('(')?.strip_suffix(')').filter(|t| !t.contains([')', '(']));
            let inner = inner.filter(|_| name == "static_cast");
            return Some(match of_c(args).zip(inner) {
                Some((to, x)) if plain(x) => d.fix("write `as`", span, format!("({x} as {to})")),
                Some((to, _)) => d.fix("write `as`", span, format!("({rest} as {to})")),
                None => d,
            });
        }
        let message =
            format!("compile-time arguments are in brackets and have names: `{name}[N = {args}](..)`");
        Some(Diagnostic::error(SYNTAX, span, message, ""))
    }

    /// `a as T`
    pub fn cast(&mut self, a: D<Expr>, t: D<TypeExpr>) -> D<Expr> {
        let (depth, span) = (a.depth.max(t.depth), a.node.span.to(t.node.span));
        self.expr_at(ExprKind::Cast(Box::new(a.node), Box::new(t.node)), depth, span)
    }

    /// `-!a`: the operators from the outside in.
    pub fn unary(&mut self, ops: Vec<(usize, UnOp)>, mut e: D<Expr>) -> D<Expr> {
        for (l, op) in ops.into_iter().rev() {
            let span = self.span(l, e.node.span.end as usize);
            e = self.expr_at(ExprKind::Unary(op, Box::new(e.node)), e.depth, span);
        }
        e
    }

    /// `e[i, j]`
    pub fn index(&mut self, e: D<Expr>, list: Vec<D<Subscript>>, r: usize) -> D<Expr> {
        let list = split(list);
        let (l, depth) = (e.node.span.start as usize, e.depth.max(list.depth));
        self.expr(l, ExprKind::Index(Box::new(e.node), list.node), depth, r)
    }

    /// `f(a, b = c)`
    pub fn call(&mut self, e: D<Expr>, list: Vec<D<Arg>>, r: usize) -> D<Expr> {
        let list = split(list);
        let (l, depth) = (e.node.span.start as usize, e.depth.max(list.depth));
        self.expr(l, ExprKind::Call(Box::new(e.node), list.node), depth, r)
    }

    /// `e.name`
    pub fn member(&mut self, e: D<Expr>, name: Name, r: usize) -> D<Expr> {
        self.expr(e.node.span.start as usize, ExprKind::Member(Box::new(e.node), name), e.depth, r)
    }

    /// `a:b` between brackets.
    pub fn slice(&mut self, l: usize, a: Option<D<Expr>>, b: Option<D<Expr>>, r: usize) -> D<Subscript> {
        let (a, b) = (option(a), option(b));
        let depth = a.depth.max(b.depth);
        D { node: Subscript::Slice(a.node, b.node, self.span(l, r)), depth }
    }

    /// A type in place of an expression.
    pub fn expr_type(&mut self, l: usize, t: D<TypeExpr>, r: usize) -> D<Expr> {
        self.expr(l, ExprKind::Type(Box::new(t.node)), t.depth, r)
    }

    /// `|a| |b| e`
    pub fn lambda(&mut self, heads: Vec<(usize, LambdaParams)>, mut body: D<Expr>) -> D<Expr> {
        for (l, params) in heads.into_iter().rev() {
            let list = split(
                params
                    .into_iter()
                    .map(|(p, t)| {
                        let t = option(t);
                        D { depth: p.depth.max(t.depth), node: (p.node, t.node) }
                    })
                    .collect(),
            );
            let span = self.span(l, body.node.span.end as usize);
            let depth = list.depth.max(body.depth);
            body = self.expr_at(ExprKind::Lambda(list.node, Box::new(body.node)), depth, span);
        }
        body
    }

    /// The block with this number; a hole if it is gone.
    pub fn take_block(&mut self, at: usize) -> D<Block> {
        match self.blocks.get_mut(at).and_then(Option::take) {
            Some(block) => block,
            None => hole_block(self.span(0, 0)),
        }
    }

    /// A block as an expression.
    pub fn block_expr(&mut self, l: usize, at: usize, r: usize) -> D<Expr> {
        let b = self.take_block(at);
        self.expr(l, ExprKind::Block(Box::new(b.node)), b.depth, r)
    }

    /// A chain of `if`s with the block of the last `else`.
    pub fn if_chain(&mut self, arms: Vec<Arm>, last: Option<usize>) -> D<Expr> {
        let mut tail = last.map(|at| {
            let b = self.take_block(at);
            let span = b.node.span;
            self.expr_at(ExprKind::Block(Box::new(b.node)), b.depth, span)
        });
        let mut end = tail.as_ref().map_or(0, |e| e.node.span.end as usize);
        for arm in arms.into_iter().rev() {
            let block = self.take_block(arm.block);
            let other = option(tail.take());
            end = end.max(arm.end);
            let span = self.span(arm.start, end);
            let depth = block.depth.max(arm.cond.depth).max(other.depth);
            let (cond, then) = (Box::new(arm.cond.node), Box::new(block.node));
            let other = other.node.map(Box::new);
            let kind = match arm.binding {
                Some(name) => ExprKind::IfLet(name, cond, then, other),
                None => ExprKind::If(cond, then, other),
            };
            tail = Some(self.expr_at(kind, depth, span));
        }
        let hole = self.span(end, end);
        tail.unwrap_or(D { node: Expr { kind: ExprKind::Err, span: hole }, depth: 1 })
    }

    /// A pattern.
    pub fn pat(&mut self, l: usize, kind: PatKind, depth: usize, r: usize) -> D<Pat> {
        let span = self.span(l, r);
        if self.fits(depth, span) {
            D { node: Pat { kind, span }, depth: depth + 1 }
        } else {
            D { node: Pat { kind: PatKind::Err, span }, depth: 1 }
        }
    }

    /// `(a, b)`
    pub fn pat_tuple(&mut self, l: usize, list: Vec<D<Pat>>, r: usize) -> D<Pat> {
        let list = split(list);
        self.pat(l, PatKind::Tuple(list.node), list.depth, r)
    }

    /// A type.
    pub fn ty(&mut self, l: usize, kind: TypeKind, depth: usize, r: usize) -> D<TypeExpr> {
        let span = self.span(l, r);
        if self.fits(depth, span) {
            D { node: TypeExpr { kind, span }, depth: depth + 1 }
        } else {
            D { node: TypeExpr { kind: TypeKind::Err, span }, depth: 1 }
        }
    }

    /// A type in parentheses, which only belong to its span.
    pub fn ty_parens(&self, l: usize, mut t: D<TypeExpr>, r: usize) -> D<TypeExpr> {
        t.node.span = self.span(l, r);
        t
    }

    /// `mut T`, `T?`
    pub fn ty_wrap(
        &mut self,
        l: usize,
        t: D<TypeExpr>,
        f: fn(Box<TypeExpr>) -> TypeKind,
        r: usize,
    ) -> D<TypeExpr> {
        self.ty(l, f(Box::new(t.node)), t.depth, r)
    }

    /// A named type.
    pub fn ty_path(
        &mut self,
        l: usize,
        path: Path,
        member: Option<Name>,
        args: Option<Vec<D<Subscript>>>,
        r: usize,
    ) -> D<TypeExpr> {
        let args = option(args.map(split));
        self.ty(l, TypeKind::Path { path, member, args: args.node }, args.depth, r)
    }

    /// `(A, B)`
    pub fn ty_tuple(&mut self, l: usize, list: Vec<D<TypeExpr>>, r: usize) -> D<TypeExpr> {
        let list = split(list);
        self.ty(l, TypeKind::Tuple(list.node), list.depth, r)
    }

    /// `fn(A) -> B`
    pub fn ty_fn(&mut self, l: usize, list: Vec<D<TypeExpr>>, ret: D<TypeExpr>, r: usize) -> D<TypeExpr> {
        let list = split(list);
        self.ty(l, TypeKind::Fn(list.node, Box::new(ret.node)), list.depth.max(ret.depth), r)
    }

    /// `**mut T`: the stars from the outside in.
    pub fn pointers(&mut self, stars: Vec<(usize, bool)>, mut t: D<TypeExpr>) -> D<TypeExpr> {
        for (l, mutable) in stars.into_iter().rev() {
            let r = t.node.span.end as usize;
            t = self.ty(l, TypeKind::Ptr { mutable, pointee: Box::new(t.node) }, t.depth, r);
        }
        t
    }
}

/// A block that could not be read; its value is a hole, so that its type is not queried.
pub fn hole_block(span: Span) -> D<Block> {
    let tail = Expr { kind: ExprKind::Err, span };
    D { node: Block { stmts: vec![], tail: Some(Box::new(tail)), span }, depth: 2 }
}
