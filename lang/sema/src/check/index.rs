//! Index expressions: tile indexing, elements of tuples, lists and shapes.

use tk_syntax::ast::{self, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, Sym};
use super::slices::is_none;
use crate::hir::{HBlock, HExpr, HIndex, HKind};
use crate::poly::{Atom, Poly};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    pub fn index(&mut self, base: &ast::Expr, items: &[Subscript], span: Span) -> HExpr {
        let b = self.value(base);
        match b.ty.clone() {
            Ty::Tile { elem: Elem::Ptr { .. }, shape } if shape.is_scalar() => {
                let text = self.text(base.span);
                let d = Diagnostic::error(
                    codes::INDEX,
                    span,
                    "a pointer cannot be indexed",
                    "index of a pointer",
                )
                .note(format!(
                    "read memory with `load({text} + i)` and write it with `store({text} + i, value)`"
                ));
                self.fail(d)
            }
            Ty::Tile { elem, shape } => self.tile_index(b, &elem, &shape, items, span),
            Ty::View { elem, rank, mutable, wide } => {
                self.sub_view(b, (elem, rank, mutable, wide), items, span)
            }
            Ty::Buffer { elem, shape } => self.buffer_slice(b, elem, &shape, items, span),
            Ty::Tuple(ts) => match items {
                [Subscript::Expr(i)] if self.is_table(&b) => self.table_entry(&b, base.span, i, span),
                [Subscript::Expr(i)] => self.tuple_entry(&b, &ts, base.span, i, span),
                _ => self.error(codes::INDEX, span, "a tuple is indexed by one number", ""),
            },
            Ty::List(t, _) => match items {
                [Subscript::Expr(i)] => match self.const_int(i) {
                    Some(at) => self.entry(b, at, &t, span),
                    None => HExpr::err(span),
                },
                _ => self.error(codes::INDEX, span, "a list of extents is indexed by one number", ""),
            },
            Ty::ShapeTy => match items {
                [Subscript::Expr(i)] => self.shape_dim(b, i, span),
                _ => self.error(codes::INDEX, span, "a shape is indexed by one number", ""),
            },
            Ty::Fn(..) => self.error(
                codes::INDEX,
                span,
                "compile-time arguments are given where a function is called",
                "add the call: `f[..](..)`",
            ),
            Ty::Option(_) => {
                let text = self.text(base.span);
                let d = Diagnostic::error(codes::INDEX, span, format!("`{text}` may be absent"), "")
                    .note(format!("test it first: `if let v = {text} {{ .. }}`"));
                self.fail(d)
            }
            t if t.is_err() => HExpr::err(span),
            other => {
                let shown = self.show(&other);
                self.error(codes::INDEX, span, format!("`{shown}` cannot be indexed"), "")
            }
        }
    }

    /// A constant position `n` that a tuple or list at `base` does not have.
    pub fn no_element(&mut self, base: Span, len: usize, n: i128, at: Span) -> HExpr {
        // A name or two; anything longer is in the line that is shown.
        const SHOWN: usize = 24;
        let text = Some(self.text(base)).filter(|t| t.len() <= SHOWN && !t.contains('\n'));
        let what = text.map_or_else(|| "this".to_string(), |t| format!("`{t}`"));
        let message = format!("index {n} is out of range: {what} has {len}");
        let d = Diagnostic::error(codes::INDEX, at, message, "counted from 0");
        self.fail(from_the_start(d, n, len, at))
    }

    /// An entry of a list, whose length each specialization knows.
    pub fn entry(&mut self, list: HExpr, at: HExpr, ty: &Ty, span: Span) -> HExpr {
        self.mk(HKind::Entry(Box::new(list), Box::new(at)), ty.clone(), span, false)
    }

    /// Returns true if a tuple is a compile-time list of scalars of one type, or of lists that are alike.
    fn is_table(&mut self, b: &HExpr) -> bool {
        let Ty::Tuple(ts) = b.ty.clone() else { return false };
        b.konst && ts.len() > 1 && ts.iter().all(|t| ts.first().is_some_and(|f| self.is_alike(t, f)))
    }

    fn is_alike(&mut self, a: &Ty, b: &Ty) -> bool {
        if let (Ty::Tuple(xs), Ty::Tuple(ys)) = (a, b) {
            return xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.is_alike(x, y));
        }
        self.dterm_of(a).is_some() && self.fits(a, b)
    }

    /// `TABLE[i]` with a compile-time position: the entry, or a choice among all of them while the position is symbolic.
    fn table_entry(&mut self, b: &HExpr, base: Span, i: &ast::Expr, span: Span) -> HExpr {
        let Ty::Tuple(ts) = &b.ty else { return HExpr::err(span) };
        let len = ts.len();
        let Some(at) = self.list_position(b, i, span) else { return HExpr::err(span) };
        let known = self.poly(&at).and_then(|p| self.with_facts(&p).as_int());
        if let Some(n) = known {
            return match usize::try_from(n).ok().filter(|n| *n < len) {
                Some(n) => HExpr { span, ..self.field(b, n as u32) },
                None => self.no_element(base, len, n, i.span),
            };
        }
        let entries = (0..len as u32).map(|n| self.field(b, n)).collect();
        let at = self.position_below(at, len);
        self.chosen(&at, entries, span)
    }

    /// `t[i]` with a compile-time position. While the position is symbolic, the parts must have one type.
    fn tuple_entry(&mut self, b: &HExpr, ts: &[Ty], base: Span, i: &ast::Expr, span: Span) -> HExpr {
        let Some(at) = self.list_position(b, i, span) else { return HExpr::err(span) };
        let known = self.poly(&at).and_then(|p| self.with_facts(&p).as_int());
        if let Some(n) = known {
            return match u32::try_from(n).ok().filter(|n| (*n as usize) < ts.len()) {
                Some(n) => HExpr { span, ..self.field(b, n) },
                None => self.no_element(base, ts.len(), n, i.span),
            };
        }
        let Some(first) = ts.first().filter(|f| ts.iter().all(|t| self.fits(t, f))).cloned() else {
            return self.error(
                codes::UNKNOWN_EXTENT,
                i.span,
                "the position in a tuple must be a number known before specialization",
                "the parts differ in type",
            );
        };
        let at = self.position_below(at, ts.len());
        let mut parts =
            (0..ts.len() as u32).rev().map(|n| (n, self.field(b, n))).collect::<Vec<_>>().into_iter();
        let Some((_, mut out)) = parts.next() else { return HExpr::err(span) };
        for (n, part) in parts {
            let number = self.mk(HKind::Int(n.into()), at.ty.clone(), span, true);
            let cond = Box::new(self.binary_op(ast::BinOp::Eq, at.clone(), number, span));
            let konst = part.konst && out.konst;
            let arm = |e: HExpr| Box::new(HBlock { stmts: vec![], tail: Some(Box::new(e)), span });
            let kind = HKind::If { cond, then: arm(part), els: Some(arm(out)) };
            out = self.mk(kind, first.clone(), span, konst);
        }
        out
    }

    /// A symbolic position that each specialization holds against the number of elements.
    fn position_below(&mut self, at: HExpr, len: usize) -> HExpr {
        let span = at.span;
        let numbers = (0..len as i128).map(|n| self.mk(HKind::Int(n), Ty::i32(), span, true)).collect();
        let all = self.mk(HKind::Shape(numbers), Ty::ShapeTy, span, true);
        self.mk(HKind::Index(Box::new(all), vec![HIndex::At(Box::new(at))]), Ty::i32(), span, true)
    }

    /// The entry at a position that is symbolic; of lists each element by itself.
    fn chosen(&mut self, at: &HExpr, entries: Vec<HExpr>, span: Span) -> HExpr {
        if let Some(Ty::Tuple(ts)) = entries.first().map(|e| e.ty.clone()) {
            let mut parts = vec![];
            for k in 0..ts.len() as u32 {
                let of = entries.iter().map(|e| self.field(e, k)).collect();
                parts.push(self.chosen(at, of, span));
            }
            return self.mk(HKind::Tuple(parts), Ty::Tuple(ts), span, true);
        }
        let mut left = entries.into_iter().enumerate().rev();
        let (Some(row), Some((_, mut out))) = (self.find_row("where"), left.next()) else {
            return HExpr::err(span);
        };
        for (n, entry) in left {
            let number = self.mk(HKind::Int(n as i128), at.ty.clone(), span, true);
            let same = self.binary_op(ast::BinOp::Eq, at.clone(), number, span);
            let ty = entry.ty.clone();
            let args = [same, entry, out].map(crate::hir::HArg::Expr).to_vec();
            out = self.mk(HKind::Builtin(row, args), ty, span, true);
        }
        out
    }

    fn shape_dim(&mut self, b: HExpr, i: &ast::Expr, span: Span) -> HExpr {
        let Some(at) = self.const_int(i) else { return HExpr::err(span) };
        let Some(n) = self.poly(&at).and_then(|p| self.with_facts(&p).as_int()) else {
            return self.mk(HKind::Index(Box::new(b), vec![HIndex::At(Box::new(at))]), Ty::i32(), span, true);
        };
        if let HKind::Shape(dims) = &b.kind {
            return match usize::try_from(n).ok().and_then(|n| dims.get(n)) {
                Some(d) => HExpr { span, ..d.clone() },
                None => {
                    let len = dims.len();
                    let message = format!("index {n} is out of range: the shape has {len} dimensions");
                    let d = Diagnostic::error(codes::AXIS, i.span, message, "out of range");
                    let d = self.extent_of_pointer(d, b.span);
                    self.fail(from_the_start(d, n, len, i.span))
                }
            };
        }
        let Ok(n) = u32::try_from(n) else {
            return self.error(codes::AXIS, i.span, "a position cannot be negative", "negative");
        };
        self.mk(HKind::Field(Box::new(b), n), Ty::i32(), span, true)
    }

    fn tile_index(&mut self, b: HExpr, elem: &Elem, shape: &Shape, items: &[Subscript], span: Span) -> HExpr {
        let Shape::Dims(dims) = shape else {
            return self.error(
                codes::INDEX,
                span,
                "a tile of generic shape cannot be indexed",
                "its rank is not known here",
            );
        };
        let (mut out, mut at, mut new_dims) = (vec![], 0usize, vec![]);
        for item in items {
            if is_none(item) {
                out.push(HIndex::New);
                new_dims.push(Poly::int(1));
                continue;
            }
            let Some(dim) = dims.get(at).cloned() else {
                if let Subscript::Expr(e) = item
                    && self.is_newaxis(e)
                {
                    return self.value(e);
                }
                return self.too_many_indices(&b.ty, dims.len(), span);
            };
            at += 1;
            match item {
                Subscript::Slice(None, None, _) => {
                    out.push(HIndex::Whole);
                    new_dims.push(dim);
                }
                Subscript::Slice(a, z, s) => match self.static_slice(a.as_ref(), z.as_ref(), &dim, *s) {
                    Some((lo, hi, len)) => {
                        out.push(HIndex::Slice(Box::new(lo), Box::new(hi)));
                        new_dims.push(len);
                    }
                    None => return HExpr::err(span),
                },
                Subscript::Expr(e) => {
                    let i = self.value(e);
                    // What adds dimensions moves the others.
                    let plain = !items.iter().any(is_none);
                    let place = (items, at - 1);
                    if plain && let Some(d) = self.positions_in_tile(&b, dims, place, (&i, span)) {
                        return self.fail(d);
                    }
                    let Some(i) = self.need_position(i) else { return HExpr::err(span) };
                    if let Some(n) = self.poly(&i).and_then(|p| p.as_int())
                        && (n < 0 || dim.as_int().is_some_and(|ext| n >= ext))
                    {
                        let d = self.index_outside(n, &dim, e.span);
                        return self.fail(d);
                    }
                    out.push(HIndex::At(Box::new(i)));
                }
                Subscript::Named(n, _) => {
                    return self.error(
                        codes::ARGUMENT_NAME,
                        n.span,
                        "an index cannot have a name",
                        "named index",
                    );
                }
            }
        }
        for dim in dims.iter().skip(at) {
            out.push(HIndex::Whole);
            new_dims.push(dim.clone());
        }
        if new_dims.len() > super::types::MAX_RANK {
            return self.error(
                codes::TILE_RANK,
                span,
                format!("a tile has at most {} dimensions", super::types::MAX_RANK),
                "",
            );
        }
        let ty = Ty::Tile { elem: elem.clone(), shape: Shape::Dims(new_dims) };
        let konst = b.konst;
        self.mk(HKind::Index(Box::new(b), out), ty, span, konst)
    }

    fn too_many_indices(&mut self, ty: &Ty, rank: usize, span: Span) -> HExpr {
        let message = format!("more indices than the {rank} dimensions of `{}`", self.show(ty));
        let d = Diagnostic::error(codes::RANK_MISMATCH, span, message, "");
        self.fail(d.note("`None` adds a dimension, `:` keeps one"))
    }

    /// An expression with the value of a polynomial, for extents that are not written in the source.
    pub fn poly_expr(&mut self, p: &Poly, span: Span) -> HExpr {
        if let Some(n) = p.as_int() {
            return self.mk(HKind::Int(n), Ty::i32(), span, true);
        }
        if let Some(id) = p.as_param() {
            return self.mk(HKind::CVar(id), Ty::i32(), span, true);
        }
        let mut sum: Option<HExpr> = None;
        let terms: Vec<(Vec<Atom>, i128)> = p.terms().map(|(m, c)| (m.to_vec(), c)).collect();
        for (mono, c) in terms {
            let mut product = self.mk(HKind::Int(c), Ty::i32(), span, true);
            for a in &mono {
                let f = self.atom_expr(a, span);
                product = self.binary_op(ast::BinOp::Mul, product, f, span);
            }
            sum = Some(match sum {
                None => product,
                Some(s) => self.binary_op(ast::BinOp::Add, s, product, span),
            });
        }
        sum.unwrap_or_else(|| HExpr::err(span))
    }

    fn atom_expr(&mut self, a: &Atom, span: Span) -> HExpr {
        use crate::poly::PolyFn;
        match a {
            Atom::Param(id) => self.mk(HKind::CVar(*id), Ty::i32(), span, true),
            Atom::ShapeDim(id, i) => {
                let s = self.mk(HKind::CVar(*id), Ty::ShapeTy, span, true);
                self.mk(HKind::Field(Box::new(s), *i), Ty::i32(), span, true)
            }
            Atom::DTypeFact(id, f) => self.mk(HKind::DTypeFact(DTerm::Param(*id), f), Ty::i32(), span, true),
            Atom::Opaque(i) => {
                self.hir().opaque.get(*i as usize).cloned().unwrap_or_else(|| HExpr::err(span))
            }
            Atom::ShapeRank(_) | Atom::ShapeCount(_) => HExpr::err(span),
            Atom::Fn(PolyFn::Choose, args) => self.choose_expr(args, span),
            Atom::Fn(f, args) => {
                let name = match f {
                    PolyFn::Div => "/",
                    PolyFn::Rem => "%",
                    PolyFn::CeilDiv => "cdiv",
                    PolyFn::Min => "minimum",
                    PolyFn::Max => "maximum",
                    PolyFn::NextPow2 => "next_pow2",
                    PolyFn::Shl => "<<",
                    PolyFn::Shr => ">>",
                    PolyFn::Choose => return HExpr::err(span),
                };
                let args: Vec<HExpr> = args.iter().map(|p| self.poly_expr(p, span)).collect();
                let Some(row) = self.op_row(name, span) else { return HExpr::err(span) };
                self.mk(
                    HKind::Builtin(row, args.into_iter().map(crate::hir::HArg::Expr).collect()),
                    Ty::i32(),
                    span,
                    true,
                )
            }
        }
    }

    /// `if a == b { c } else { d }`
    fn choose_expr(&mut self, args: &[Poly], span: Span) -> HExpr {
        let parts: Vec<HExpr> = args.iter().map(|p| self.poly_expr(p, span)).collect();
        let Ok([a, b, yes, no]) = <[HExpr; 4]>::try_from(parts) else { return HExpr::err(span) };
        let cond = Box::new(self.binary_op(ast::BinOp::Eq, a, b, span));
        let arm = |e: HExpr| Box::new(HBlock { stmts: vec![], tail: Some(Box::new(e)), span });
        self.mk(HKind::If { cond, then: arm(yes), els: Some(arm(no)) }, Ty::i32(), span, true)
    }

    /// A compile-time variable by name, for clauses.
    pub fn cvar_named(&self, name: &str) -> Option<crate::hir::CVarId> {
        match self.meaning(name) {
            Some(Sym::CVar(id)) => Some(id),
            _ => None,
        }
    }
}

/// Offers the position from the start for one that is meant from the end: -1 of 3 is 2.
fn from_the_start(d: Diagnostic, n: i128, len: usize, at: Span) -> Diagnostic {
    match usize::try_from(n + len as i128) {
        Ok(ours) if n < 0 => d.fix(format!("count from the start: `{ours}`"), at, ours.to_string()),
        Ok(_) | Err(_) => d,
    }
}
