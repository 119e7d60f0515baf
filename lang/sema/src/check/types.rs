//! Written types: syntax to [`Ty`], and bounds of compile-time parameters to [`CKind`].

use tk_ops::{DType, DTypeSet};
use tk_syntax::ast::{self, ExprKind, Subscript, TypeKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::Def;
use super::cx::{Cx, Sym};
use super::subst::Subst;
use crate::hir::{CKind, CVarId, ConstId, HKind, StructId};
use crate::types::{CTerm, DTerm, Elem, Shape, Ty};

/// The largest rank of tiles and views.
pub(crate) const MAX_RANK: usize = 5;

impl Cx<'_> {
    /// The type that is written.
    pub fn ty(&mut self, t: &ast::TypeExpr) -> Ty {
        match &t.kind {
            TypeKind::Err => Ty::Err,
            TypeKind::Tuple(ts) if ts.is_empty() => Ty::Unit,
            TypeKind::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.ty(t)).collect()),
            TypeKind::Fn(ps, r) => {
                let ps = ps.iter().map(|t| self.ty(t)).collect();
                Ty::Fn(ps, Box::new(self.ty(r)))
            }
            TypeKind::Ptr { mutable, pointee } => {
                let pointee = Box::new(self.elem_type(pointee));
                Ty::Tile { elem: Elem::Ptr { pointee, mutable: *mutable }, shape: Shape::scalar() }
            }
            TypeKind::Mut(inner) => match self.ty(inner) {
                Ty::View { elem, rank, wide, .. } => Ty::View { elem, rank, mutable: true, wide },
                Ty::Option(o) => match *o {
                    Ty::View { elem, rank, wide, .. } => {
                        Ty::Option(Box::new(Ty::View { elem, rank, mutable: true, wide }))
                    }
                    other => self.not_mut(other, t.span),
                },
                other => self.not_mut(other, t.span),
            },
            TypeKind::Option(inner) => match self.ty(inner) {
                v @ (Ty::View { .. } | Ty::Err) => Ty::Option(Box::new(v)),
                other => {
                    let shown = self.show(&other);
                    self.error(
                        codes::TYPE_MISMATCH,
                        t.span,
                        format!("only views can be optional, not `{shown}`"),
                        super::this_is(&shown),
                    );
                    Ty::Err
                }
            },
            TypeKind::Path { path, member, args } => {
                self.path_type(path, member.as_ref(), args.as_deref(), t.span)
            }
        }
    }

    fn not_mut(&mut self, other: Ty, span: Span) -> Ty {
        if !other.is_err() {
            self.error(
                codes::TYPE_MISMATCH,
                span,
                "in a type, `mut` is only allowed before `view`",
                "use `*mut T` for pointers",
            );
        }
        Ty::Err
    }

    fn path_type(
        &mut self,
        path: &ast::Path,
        member: Option<&ast::Name>,
        args: Option<&[Subscript]>,
        span: Span,
    ) -> Ty {
        let [name] = path.segments.as_slice() else {
            return match self.resolve_path(path) {
                Some(Def::Struct(id)) => self.struct_type(id, args.unwrap_or(&[]), span),
                Some(Def::Const(id)) => {
                    self.const_as_type(id, args, (&self.text(path.span), path.span), span)
                }
                Some(Def::Module(_) | Def::Fn(_)) => self.not_a_type(path.span, &self.text(path.span)),
                None => Ty::Err,
            };
        };
        if let Some(m) = member {
            if self.foreign_type(name, m) {
                return Ty::Err;
            }
            return match self.dtype_member(name, m) {
                Some(d) => Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() },
                None => Ty::Err,
            };
        }
        match name.text.as_str() {
            "" => return Ty::Err,
            "tile" => return self.tile_type(args, span),
            "view" => return self.view_type(args, span),
            "dtype" => return Ty::DType,
            "shape" => return Ty::ShapeTy,
            _ => {}
        }
        if let Some(d) = DType::parse(&name.text) {
            return self.no_args(args, span, Ty::scalar(d));
        }
        let sym = self.lookup(name);
        let item = if sym.is_none() { self.lookup_item(name) } else { None };
        match (sym, item) {
            (Some(Sym::CVar(id)), _) => match &self.hir().cvar(id).kind {
                CKind::DType(_) => self.no_args(
                    args,
                    span,
                    Ty::Tile { elem: Elem::D(DTerm::Param(id)), shape: Shape::scalar() },
                ),
                CKind::Err => Ty::Err,
                CKind::Int(_) | CKind::Float(_) | CKind::Bool => {
                    self.number_as_type(id, name);
                    Ty::Err
                }
                CKind::Shape | CKind::Fn(..) => self.not_a_type(name.span, &name.text),
            },
            (None, Some(Def::Struct(id))) => self.struct_type(id, args.unwrap_or(&[]), span),
            (Some(Sym::Const(id)), _) | (None, Some(Def::Const(id))) => {
                self.const_as_type(id, args, (&name.text, name.span), span)
            }
            (Some(_), _) | (None, Some(_)) => self.not_a_type(name.span, &name.text),
            (None, None) => {
                self.unknown_type(name);
                Ty::Err
            }
        }
    }

    /// A constant in place of a type: the scalar type that it names.
    fn const_as_type(
        &mut self,
        id: ConstId,
        args: Option<&[Subscript]>,
        (name, at): (&str, Span),
        span: Span,
    ) -> Ty {
        let h = self.const_use(id, at);
        match h.kind {
            _ if h.ty.is_err() => Ty::Err,
            HKind::DType(d) => {
                self.no_args(args, span, Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() })
            }
            _ => self.not_a_type(at, name),
        }
    }

    fn no_args(&mut self, args: Option<&[Subscript]>, span: Span, ty: Ty) -> Ty {
        if args.is_some() {
            let shown = self.show(&ty);
            let message = format!("`{shown}` takes no arguments in brackets");
            let d = Diagnostic::error(codes::TYPE_MISMATCH, span, message, "");
            let args = args.unwrap_or(&[]);
            self.report(if args.iter().all(|a| matches!(a, Subscript::Slice(None, None, _))) {
                let view = format!("view[{shown}, {}]", args.len().max(1));
                d.fix(format!("an array in memory is a `{view}`"), span, view)
            } else {
                d.note("a tile is written `tile[f32, BM, BN]`, and an array in memory `view[f32, 2]`")
            });
            return Ty::Err;
        }
        ty
    }

    fn not_a_type(&mut self, span: Span, name: &str) -> Ty {
        self.error(codes::NOT_A_VALUE, span, format!("`{name}` is not a type"), "used as a type");
        Ty::Err
    }

    /// Reports a parameter `T: f32` that is used as a type, at its bound and only once.
    pub fn number_as_type(&mut self, id: CVarId, used: &ast::Name) {
        let var = self.hir().cvar(id);
        let (span, kind) = (var.span, crate::show::ckind(self.hir(), &var.kind));
        if let Some(f) = self.func {
            self.p.func_mut(f).broken = true;
        }
        // Uses follow each other, those in the body the ones in the signature.
        const RECENT: usize = 16;
        let mut recent = self.p.notes.diags.iter().rev().take(RECENT).chain(&self.p.declared.diags);
        if recent.any(|d| d.code == codes::NOT_A_VALUE && d.primary.span == span) {
            return;
        }
        let name = used.text.as_str();
        let message = format!("`{name}` is a number, because its bound is the type `{kind}`");
        let d = Diagnostic::error(codes::NOT_A_VALUE, span, message, format!("a compile-time number of type `{kind}`"))
            .label(used.span, "used as a type")
            .note(format!("a bound of types is a class, such as `{name}: float`, or a list, such as `{name}: f16 | f32`; for one type write `{kind}` itself"));
        self.report(d);
    }

    fn unknown_type(&mut self, name: &ast::Name) {
        if self.is_missing(&name.text) {
            return;
        }
        let types = DType::ALL.map(DType::name).into_iter().chain(["tile", "view", "dtype", "shape"]);
        let near = self.nearest(&name.text, &types.collect::<Vec<_>>(), &[]);
        let mut d = Diagnostic::error(
            codes::UNKNOWN_NAME,
            name.span,
            format!("unknown type `{}`", name.text),
            "unknown type",
        );
        if let Some(hint) = self.foreign_type_hint(d.clone(), &name.text, name.span) {
            d = hint;
        } else if let Some(s) = near {
            d = d.use_instead(name.span, s);
        } else if name.text.starts_with(|c: char| c.is_ascii_uppercase()) {
            d = d.note(format!(
                "a parameter in brackets declares a type: `kernel k[{}: float](..)`",
                name.text
            ));
        }
        self.report(d);
    }

    /// `T.acc` of a dtype variable or type.
    pub fn dtype_member(&mut self, name: &ast::Name, member: &ast::Name) -> Option<DTerm> {
        let base = self.dtype_name(name);
        match (base, member.text.as_str()) {
            (Some(DTerm::Known(d)), "acc") => Some(DTerm::Known(d.acc())),
            (Some(DTerm::Param(id)), "acc") => Some(DTerm::Acc(id)),
            (Some(_), "") => None,
            (Some(_), other) => {
                self.error(
                    codes::UNKNOWN_MEMBER,
                    member.span,
                    format!("`{}.{other}` is not a type", name.text),
                    "a type has `.acc`",
                );
                None
            }
            (None, _) => {
                self.not_an_element_type(name, member);
                None
            }
        }
    }

    /// A dtype name, variable or constant.
    pub fn dtype_name(&mut self, name: &ast::Name) -> Option<DTerm> {
        let id = match self.lookup(name) {
            Some(Sym::CVar(id)) if matches!(self.hir().cvar(id).kind, CKind::DType(_)) => {
                return Some(DTerm::Param(id));
            }
            Some(Sym::Const(id)) => id,
            Some(_) => return None,
            None => match (DType::parse(&name.text), self.lookup_item(name)) {
                (Some(d), _) => return Some(DTerm::Known(d)),
                (None, Some(Def::Const(id))) => id,
                (None, _) => return None,
            },
        };
        match self.const_use(id, name.span).kind {
            HKind::DType(d) => Some(d),
            _ => None,
        }
    }

    /// The element type of a tile or pointer: a scalar or pointer type.
    pub fn elem_type(&mut self, t: &ast::TypeExpr) -> Elem {
        match self.ty(t) {
            Ty::Tile { elem, shape } if shape.is_scalar() => elem,
            Ty::Err => Elem::Err,
            other => {
                let shown = self.show(&other);
                self.error(
                    codes::TYPE_MISMATCH,
                    t.span,
                    format!("`{shown}` is not an element type"),
                    "expected a scalar or pointer type",
                );
                Elem::Err
            }
        }
    }

    /// An element type between brackets, where it was parsed as an expression.
    fn elem_index(&mut self, ix: Option<&Subscript>, span: Span) -> Elem {
        match ix {
            Some(Subscript::Expr(e)) => match expr_as_type(e) {
                Some(t) => self.elem_type(&t),
                None => {
                    if !matches!(e.kind, ExprKind::Err) {
                        self.error(
                            codes::TYPE_MISMATCH,
                            e.span,
                            "expected an element type",
                            "not an element type",
                        );
                    }
                    Elem::Err
                }
            },
            Some(Subscript::Slice(_, _, at)) => {
                self.error(codes::TYPE_MISMATCH, *at, "expected an element type", "not an element type");
                Elem::Err
            }
            Some(Subscript::Named(n, _)) => {
                self.error(codes::ARGUMENT_NAME, n.span, "expected an element type", "not an element type");
                Elem::Err
            }
            None => {
                self.error(codes::ARGUMENT_COUNT, span, "expected an element type in the brackets", "");
                Elem::Err
            }
        }
    }

    fn tile_type(&mut self, args: Option<&[Subscript]>, span: Span) -> Ty {
        let args = args.unwrap_or(&[]);
        let elem = self.elem_index(args.first(), span);
        let dims: Vec<&ast::Expr> = args.iter().skip(1).filter_map(index_expr).collect();
        if dims.len() + 1 < args.len() {
            self.error(codes::TYPE_MISMATCH, span, "a tile type lists its extents: `tile[f32, BM, BN]`", "");
            return Ty::Err;
        }
        if let [one] = dims.as_slice()
            && let Some(shape) = self.named_shape(one)
        {
            return Ty::Tile { elem, shape };
        }
        if dims.len() > MAX_RANK {
            self.error(
                codes::TILE_RANK,
                span,
                format!("a tile has at most {MAX_RANK} dimensions, not {}", dims.len()),
                format!("{} dimensions", dims.len()),
            );
            return Ty::Err;
        }
        let dims = dims.iter().map(|e| self.extent(e)).collect::<Option<Vec<_>>>();
        dims.map_or(Ty::Err, |d| Ty::Tile { elem, shape: Shape::Dims(d) })
    }

    /// The `shape` variable or constant that an expression names.
    pub fn named_shape(&mut self, e: &ast::Expr) -> Option<Shape> {
        let ExprKind::Path(p) = &e.kind else { return None };
        let [n] = p.segments.as_slice() else { return None };
        let id = match (self.lookup(n), self.lookup_item(n)) {
            (Some(Sym::CVar(id)), _) if self.hir().cvar(id).kind == CKind::Shape => {
                return Some(Shape::Param(id));
            }
            (Some(Sym::Const(id)), _) | (None, Some(Def::Const(id))) => id,
            _ => return None,
        };
        let h = self.const_use(id, n.span);
        match (&h.ty, self.as_cterm(&h)) {
            (Ty::ShapeTy, CTerm::Shape(s)) => Some(s),
            _ => None,
        }
    }

    fn view_type(&mut self, args: Option<&[Subscript]>, span: Span) -> Ty {
        let args = args.unwrap_or(&[]);
        let elem = self.elem_index(args.first(), span);
        let Some(rank) = args.get(1).and_then(index_expr) else {
            self.error(
                codes::ARGUMENT_COUNT,
                span,
                "a view type has an element type and a rank: `view[f32, 2]`",
                "",
            );
            return Ty::Err;
        };
        let mut wide = args.len() > 2;
        let index = args.get(2).and_then(index_expr).and_then(expr_as_type).map(|t| self.elem_type(&t));
        if wide && (args.len() > 3 || index != Some(Elem::D(DTerm::Known(DType::I64)))) {
            let at = args.get(2).and_then(index_expr).map_or(span, |e| e.span);
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                at,
                "the third argument of `view` can only be `i64`, the type of its extents",
                "not `i64`",
            );
            self.report(d.note("extents are not part of the type of a view; `v.shape` has them"));
            wide = false;
        }
        let Some(p) = self.const_int(rank).and_then(|h| self.poly(&h)) else { return Ty::Err };
        match p.as_int() {
            Some(1..=5) => Ty::View { elem, rank: p, mutable: false, wide },
            Some(r) => {
                self.error(
                    codes::TILE_RANK,
                    rank.span,
                    format!("a view has 1 to {MAX_RANK} dimensions, not {r}"),
                    format!("rank {r}"),
                );
                Ty::Err
            }
            // What is generic over the rank; each specialization holds it against the limits.
            None => Ty::View { elem, rank: p, mutable: false, wide },
        }
    }

    /// A struct with its compile-time arguments in order.
    pub fn struct_type(&mut self, id: StructId, args: &[Subscript], span: Span) -> Ty {
        let params = self.hir().strukt(id).cparams.clone();
        let name = self.hir().strukt(id).name.clone();
        if args.len() > params.len() {
            self.error(
                codes::ARGUMENT_COUNT,
                span,
                format!(
                    "`{name}` has {} compile-time parameters, but {} are given",
                    params.len(),
                    args.len()
                ),
                format!("{} given", args.len()),
            );
            return Ty::Err;
        }
        let mut out: Vec<Option<CTerm>> = vec![None; params.len()];
        for (i, a) in args.iter().enumerate() {
            let (slot, e) = match a {
                Subscript::Expr(e) => (Some(i), e),
                Subscript::Named(n, e) => {
                    let at = params.iter().position(|p| self.hir().cvar(*p).name == n.text);
                    if let Some(p) = at.and_then(|at| params.get(at)) {
                        self.saw_cvar(n, *p);
                    } else {
                        self.error(
                            codes::ARGUMENT_NAME,
                            n.span,
                            format!("`{name}` has no compile-time parameter `{}`", n.text),
                            "unknown compile-time parameter",
                        );
                    }
                    (at, e)
                }
                Subscript::Slice(_, _, s) => {
                    self.error(codes::INDEX, *s, "a struct type takes compile-time arguments", "");
                    return Ty::Err;
                }
            };
            if let Some(s) = slot
                && let Some(p) = params.get(s)
            {
                let value = self.carg(*p, e);
                if let Some(o) = out.get_mut(s) {
                    *o = Some(value);
                }
            }
        }
        let (mut done, mut map) = (vec![], Subst::new());
        for (p, o) in params.iter().zip(out) {
            match o.or_else(|| self.default_in(*p, &map)) {
                Some(CTerm::Err) => return Ty::Err,
                Some(v) => {
                    map.insert(*p, v.clone());
                    done.push(v);
                }
                None => {
                    let missing = self.hir().cvar(*p).name.clone();
                    self.error(
                        codes::CANNOT_INFER,
                        span,
                        format!("`{name}` needs the compile-time argument `{missing}`"),
                        format!("`{missing}` missing"),
                    );
                    return Ty::Err;
                }
            }
        }
        Ty::Struct(id, done)
    }

    /// The range of a compile-time parameter.
    pub fn bound(&mut self, bound: &[ast::TypeExpr], span: Span) -> CKind {
        match bound {
            [] => {
                self.error(
                    codes::TYPE_MISMATCH,
                    span,
                    "a compile-time parameter needs a type or bound",
                    "as in `BM: i32` or `T: float`",
                );
                CKind::Err
            }
            [one] => self.single_bound(one),
            many => {
                let mut set = DTypeSet::EMPTY;
                for t in many {
                    match self.set_bound(t) {
                        Some(s) => set = set.or(s),
                        None => return CKind::Err,
                    }
                }
                CKind::DType(set)
            }
        }
    }

    fn single_bound(&mut self, t: &ast::TypeExpr) -> CKind {
        if let TypeKind::Path { path, member: None, args: None } = &t.kind
            && let [n] = path.segments.as_slice()
        {
            if let Some(set) = DTypeSet::class(&n.text) {
                return CKind::DType(set);
            }
            if n.text == "shape" {
                return CKind::Shape;
            }
        }
        match self.ty(t) {
            Ty::Err => CKind::Err,
            Ty::Fn(ps, r) => CKind::Fn(ps, r),
            Ty::Tile { elem: Elem::D(DTerm::Known(d)), shape } if shape.is_scalar() => match d {
                DType::Bool => CKind::Bool,
                d if d.is_int() => CKind::Int(d),
                d if d.is_float() => CKind::Float(d),
                other => {
                    self.error(
                        codes::TYPE_MISMATCH,
                        t.span,
                        format!("a compile-time value cannot be of type `{other}`"),
                        "",
                    );
                    CKind::Err
                }
            },
            other => {
                let shown = self.show(&other);
                self.error(
                    codes::TYPE_MISMATCH,
                    t.span,
                    format!("a compile-time value cannot be of type `{shown}`"),
                    "",
                );
                CKind::Err
            }
        }
    }

    /// A member of `f16 | bf16`: a dtype or a class.
    fn set_bound(&mut self, t: &ast::TypeExpr) -> Option<DTypeSet> {
        if let TypeKind::Path { path, member: None, args: None } = &t.kind
            && let [n] = path.segments.as_slice()
        {
            if let Some(set) = DTypeSet::class(&n.text) {
                return Some(set);
            }
            if let Some(d) = DType::parse(&n.text) {
                return Some(DTypeSet::of(&[d]));
            }
        }
        if !matches!(t.kind, TypeKind::Err) {
            let text = self.text(t.span);
            self.error(codes::TYPE_MISMATCH, t.span, format!("`{text}` is not an element type or class"), "");
        }
        None
    }
}

fn index_expr(ix: &Subscript) -> Option<&ast::Expr> {
    match ix {
        Subscript::Expr(e) => Some(e),
        Subscript::Slice(..) | Subscript::Named(..) => None,
    }
}

/// The type that an expression spells: brackets hold values and types alike.
pub(crate) fn expr_as_type(e: &ast::Expr) -> Option<ast::TypeExpr> {
    let kind = match &e.kind {
        ExprKind::Path(p) => TypeKind::Path { path: p.clone(), member: None, args: None },
        ExprKind::Member(base, name) => match &base.kind {
            ExprKind::Path(p) => TypeKind::Path { path: p.clone(), member: Some(name.clone()), args: None },
            _ => return None,
        },
        ExprKind::Index(base, args) => match &base.kind {
            ExprKind::Path(p) => TypeKind::Path { path: p.clone(), member: None, args: Some(args.clone()) },
            _ => return None,
        },
        ExprKind::Type(t) => return Some((**t).clone()),
        _ => return None,
    };
    Some(ast::TypeExpr { kind, span: e.span })
}
