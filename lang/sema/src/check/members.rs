//! Member access: fields, properties of tiles, views and element types, facts of targets and devices.

use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::cx::{Cx, Sym};
use super::names::closest;
use super::record::Target;
use crate::hir::{CKind, HExpr, HKind};
use crate::poly::Poly;
use crate::target::{DeviceFact, FactValue, TARGET, target_fact};
use crate::types::{DTerm, Elem, Shape, Ty};

impl Cx<'_> {
    /// `a.name`
    pub fn member(&mut self, base: &ast::Expr, name: &ast::Name, span: Span) -> HExpr {
        if let ExprKind::Path(p) = &base.kind
            && let [n] = p.segments.as_slice()
        {
            if let Some(d) = self.dtype_name(n) {
                return self.dtype_property(d, name, span);
            }
            if let Some(Sym::CVar(id)) = self.lookup(n)
                && matches!(self.hir().cvar(id).kind, CKind::Int(_) | CKind::Float(_) | CKind::Bool)
                && matches!(name.text.as_str(), "bits" | "min" | "max" | "acc")
            {
                self.number_as_type(id, n);
                return HExpr::err(span);
            }
            if self.lookup(n).is_none()
                && self.lookup_item(n).is_none()
                && (n.text == "target" || n.text == "device")
            {
                return self.environment(&n.text, name, span);
            }
        }
        if let Some(h) = self.foreign_member(base, name) {
            return h;
        }
        let b = self.value(base);
        if name.text.is_empty() || b.ty.is_err() {
            return HExpr::err(span);
        }
        let b = self.asked_optional(b, &name.text);
        match (b.ty.clone(), name.text.as_str()) {
            (Ty::Tile { elem, shape: Shape::Dims(d) }, "T") if d.len() == 2 => {
                let shape = Shape::Dims(d.into_iter().rev().collect());
                self.mk(HKind::Transpose(Box::new(b)), Ty::Tile { elem, shape }, span, false)
            }
            (Ty::Tile { shape: Shape::Dims(d), .. }, "T") => {
                let n = d.len();
                let message = format!("`.T` swaps the dimensions of a tile of rank 2, but this has rank {n}");
                let label = if n < 2 { "nothing to swap" } else { "use `permute(x, [..])`" };
                let d = Diagnostic::error(codes::RANK_MISMATCH, span, message, label);
                if let Some(d) = self.element_loaded(d.clone(), &b) {
                    return self.fail(d);
                }
                // All that follow, `x.T.T`, have nothing to swap either.
                let text = self.p.sources.get(span.file).map_or("", |s| &s.text);
                let rest = text.get(span.end as usize..).unwrap_or("");
                let mut more = rest;
                while let Some(after) = more.strip_prefix(".T").filter(|t| !t.starts_with(is_name_part)) {
                    more = after;
                }
                let end = span.end + (rest.len() - more.len()) as u32;
                let all = Span { start: b.span.end, end, ..span };
                self.fail(if n < 2 { d.fix("remove it", all, "") } else { d })
            }
            (Ty::Tile { shape, .. }, "shape") => self.tile_shape(&shape, span),
            (Ty::View { rank, wide, .. }, "shape") => self.extents(b, &rank, wide, false, span),
            (Ty::View { rank, .. }, "strides") => self.extents(b, &rank, true, true, span),
            (Ty::View { elem, mutable, .. }, "ptr") => {
                let elem = Elem::Ptr { pointee: Box::new(elem), mutable };
                self.mk(HKind::ViewPtr(Box::new(b)), Ty::Tile { elem, shape: Shape::scalar() }, span, false)
            }
            (t @ Ty::View { .. }, "T") => self.mk(HKind::ViewT(Box::new(b)), t, span, false),
            (Ty::Buffer { shape, .. }, "shape") => self.tile_shape(&Shape::Dims(shape), span),
            (Ty::Buffer { elem, shape }, "T") => {
                let ty = Ty::Buffer { elem, shape: shape.into_iter().rev().collect() };
                self.mk(HKind::ViewT(Box::new(b)), ty, span, false)
            }
            (ty @ Ty::Struct(..), _) => match self.struct_field(&ty, name) {
                Some((i, t)) => {
                    let konst = b.konst;
                    self.mk(HKind::Field(Box::new(b), i), t, span, konst)
                }
                None => HExpr::err(span),
            },
            (ty, _) => self.no_member(&ty, name, base),
        }
    }

    /// A condition of a launch may ask for the extents of an optional view: it is about launches where it is there.
    fn asked_optional(&mut self, b: HExpr, name: &str) -> HExpr {
        match (&b.kind, &b.ty, &mut self.optionals) {
            (HKind::Local(id), Ty::Option(inner), Some(asked)) if matches!(name, "shape" | "strides") => {
                asked.push(*id);
                HExpr { ty: (**inner).clone(), ..b }
            }
            _ => b,
        }
    }

    fn no_member(&mut self, ty: &Ty, name: &ast::Name, base: &ast::Expr) -> HExpr {
        use tk_ops::table::Receiver;
        let shown = self.show(ty);
        let mut names: Vec<&str> = match ty {
            Ty::Tile { .. } => vec!["T", "shape"],
            Ty::View { .. } => vec!["T", "shape", "strides", "ptr"],
            Ty::Buffer { .. } => vec!["T", "shape"],
            _ => vec![],
        };
        let receiver = match ty {
            Ty::View { .. } => Some(Receiver::View),
            Ty::Tile { .. } => Some(Receiver::Tile),
            Ty::Buffer { .. } => Some(Receiver::Buffer),
            _ => None,
        };
        if let Some(r) = receiver {
            names.extend(tk_ops::rows::methods(r).map(|row| row.name));
            if names.contains(&name.text.as_str()) {
                return self.error(
                    codes::NOT_CALLABLE,
                    name.span,
                    format!("`{}` is a method of `{shown}`", name.text),
                    "it needs `(..)`",
                );
            }
        }
        let mut d = Diagnostic::error(
            codes::UNKNOWN_MEMBER,
            name.span,
            format!("`{shown}` has no `{}`", name.text),
            "unknown member",
        );
        if let Some(hint) = self.foreign_member_hint(d.clone(), &name.text, name.span) {
            d = hint;
        } else if let Some(s) = closest(&name.text, names.iter().copied()) {
            d = d.use_instead(name.span, s);
        } else if matches!(ty, Ty::Option(_)) {
            let text = self.text(base.span);
            d = d.note(format!("it may be absent; test it first: `if let v = {text} {{ .. }}`"));
        } else if !names.is_empty() {
            let list: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
            d = d.note(format!("it has {}", list.join(", ")));
        }
        self.fail(d)
    }

    fn tile_shape(&mut self, shape: &Shape, span: Span) -> HExpr {
        match shape {
            Shape::Param(id) => self.mk(HKind::CVar(*id), Ty::ShapeTy, span, true),
            Shape::Dims(d) => {
                let dims = d.iter().map(|p| self.poly_expr(p, span)).collect();
                self.mk(HKind::Shape(dims), Ty::ShapeTy, span, true)
            }
        }
    }

    fn extents(&mut self, b: HExpr, rank: &Poly, wide: bool, strides: bool, span: Span) -> HExpr {
        let t = Ty::scalar(if wide { tk_ops::DType::I64 } else { tk_ops::DType::I32 });
        let Some(rank) = self.known_rank(rank) else {
            let ty = Ty::List(Box::new(t), rank.clone());
            return self.mk(HKind::Extents { view: Box::new(b), strides }, ty, span, false);
        };
        let parts: Vec<HExpr> = (0..rank)
            .map(|i| {
                let inner = Box::new(b.clone());
                let kind = if strides { HKind::Stride(inner, i) } else { HKind::Extent(inner, i) };
                self.mk(kind, t.clone(), span, false)
            })
            .collect();
        self.mk(HKind::Tuple(parts), Ty::Tuple(vec![t; rank as usize]), span, false)
    }

    /// The rank of a view, if it is known here: written as a number, or by the condition of an `if` around.
    pub fn known_rank(&self, rank: &Poly) -> Option<u32> {
        self.with_facts(rank).as_int().and_then(|n| u32::try_from(n).ok())
    }

    /// The rank of a view for what depends on it; reports a rank that is not known here.
    pub fn need_rank(&mut self, rank: &Poly, what: &str, span: Span) -> Option<u32> {
        let known = self.known_rank(rank);
        if known.is_none() {
            let shown = crate::show::poly(self.hir(), rank);
            let message = format!("{what} needs a view whose rank is known where it is written");
            let d = Diagnostic::error(codes::UNKNOWN_EXTENT, span, message, format!("this has rank {shown}"));
            self.report(
                d.note(format!("it is known in the arm of a compile-time `if {shown} == 2 {{ .. }}`")),
            );
        }
        known
    }

    fn dtype_property(&mut self, d: DTerm, name: &ast::Name, span: Span) -> HExpr {
        let scalar = |d: DTerm| Ty::Tile { elem: Elem::D(d), shape: Shape::scalar() };
        match name.text.as_str() {
            "bits" => self.mk(HKind::DTypeFact(d, "bits"), Ty::i32(), span, true),
            "min" | "max" => {
                let set = tk_ops::DTypeSet::ORDERED;
                if !self.need_class(&format!("`.{}`", name.text), d, set, span) {
                    return HExpr::err(span);
                }
                let fact = if name.text == "min" { "min" } else { "max" };
                self.mk(HKind::DTypeFact(d, fact), scalar(d), span, true)
            }
            "acc" => {
                let acc = match d {
                    DTerm::Known(k) => DTerm::Known(k.acc()),
                    DTerm::Param(id) => DTerm::Acc(id),
                    DTerm::Acc(_) | DTerm::Infer(_) => d,
                };
                self.mk(HKind::DType(acc), Ty::DType, span, true)
            }
            "" => HExpr::err(span),
            other => {
                let mut diag = Diagnostic::error(
                    codes::UNKNOWN_MEMBER,
                    name.span,
                    format!("an element type has no `{other}`"),
                    "unknown member",
                )
                .note("it has `bits`, `min`, `max`, `acc`");
                if let Some(s) = closest(other, ["bits", "min", "max", "acc"].into_iter()) {
                    diag = diag.use_instead(name.span, s);
                }
                self.fail(diag)
            }
        }
    }

    fn environment(&mut self, which: &str, name: &ast::Name, span: Span) -> HExpr {
        let known: Vec<&'static str> = if which == "target" {
            if let Some(fact) = target_fact(&name.text) {
                let ty = match fact.on_cpu() {
                    FactValue::Bool(_) => Ty::bool(),
                    FactValue::Int(_) => Ty::i32(),
                };
                return self.mk(HKind::Target(fact), ty, span, true);
            }
            TARGET.iter().map(|f| f.name).collect()
        } else {
            if !self.in_clause {
                return self.error(
                    codes::NOT_A_VALUE,
                    span,
                    "`device` is only available in the clauses of a kernel",
                    "pass it as a parameter",
                );
            }
            if let Some(fact) = DeviceFact::find(&name.text) {
                return self.mk(HKind::Device(fact), Ty::i32(), span, false);
            }
            DeviceFact::ALL.into_iter().map(DeviceFact::name).collect()
        };
        if name.text.is_empty() {
            return HExpr::err(span);
        }
        let list: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
        let message = format!("`{which}` has no `{}`", name.text);
        let mut d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown member");
        if let Some(best) = closest(&name.text, known.iter().copied()) {
            d = d.use_instead(name.span, best);
        }
        self.fail(d.note(format!("it has {}", list.join(", "))))
    }

    /// Reports a member that is called and is no method.
    pub(super) fn called_member(
        &mut self,
        base: &ast::Expr,
        name: &ast::Name,
        args: &[ast::Arg],
        span: Span,
    ) -> HExpr {
        let h = self.member(base, name, span);
        if h.ty.is_err() {
            return h;
        }
        let shown = self.show(&h.ty);
        let message = format!("`{}` is a `{shown}`, not a method", name.text);
        let d = Diagnostic::error(codes::NOT_CALLABLE, name.span, message, super::this_is(&shown));
        let call = Span { start: name.span.end, ..span };
        self.fail(match args {
            [] => d.fix("remove the parentheses", call, ""),
            [i] if matches!(h.ty, Ty::Tuple(_) | Ty::ShapeTy) => {
                d.fix("write an element in brackets", call, format!("[{}]", self.text(i.value.span)))
            }
            _several => d,
        })
    }

    /// Number and type of a field; reports when there is none.
    pub fn struct_field(&mut self, ty: &Ty, name: &ast::Name) -> Option<(u32, Ty)> {
        let Ty::Struct(id, args) = ty else {
            if !ty.is_err() {
                let shown = self.show(ty);
                self.error(
                    codes::UNKNOWN_MEMBER,
                    name.span,
                    format!("`{shown}` has no `{}`", name.text),
                    "unknown member",
                );
            }
            return None;
        };
        let s = self.hir().strukt(*id).clone();
        if let Some(i) = s.fields.iter().position(|f| f.0 == name.text) {
            let subst = s.cparams.iter().copied().zip(args.iter().cloned()).collect();
            let t = s.fields.get(i).map_or(Ty::Err, |f| self.subst_ty(&f.1, &subst));
            self.p.record.name(name, Target::Place(s.fields.get(i).map_or(s.span, |f| f.2)));
            return Some((i as u32, t));
        }
        if name.text.is_empty() {
            return None;
        }
        let mut d = Diagnostic::error(
            codes::UNKNOWN_MEMBER,
            name.span,
            format!("`{}` has no field `{}`", s.name, name.text),
            "unknown field",
        )
        .label(s.span, "declared here");
        if s.methods.iter().any(|m| m.0 == name.text) {
            d = d.note("it is a method: it needs `(..)`");
        }
        let known: Vec<&str> = s.fields.iter().map(|f| f.0.as_str()).collect();
        if let Some(best) = closest(&name.text, known.iter().copied()) {
            d = d.use_instead(name.span, best);
        }
        self.report(d);
        None
    }
}

/// Returns true for a character of names.
fn is_name_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
