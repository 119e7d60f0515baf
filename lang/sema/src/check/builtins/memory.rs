//! The types of memory operations: loads and stores through pointers and views, atomics.

use tk_ops::table::{ParamKind, Receiver};
use tk_ops::{AtomicOp, DType, DTypeSet, MemoryOp, Op};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span, codes};

use super::Slots;
use crate::check::advice::SHOWN;
use crate::check::cx::Cx;
use crate::hir::{HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

/// A view's element type, rank, mutability and width.
type ViewTy = (Elem, u32, bool, bool);

impl Cx<'_> {
    pub fn memory_row(&mut self, s: Slots) -> HExpr {
        let span = s.span;
        let h = match s.row.op {
            Op::Memory(MemoryOp::View) => self.view_of(&s),
            Op::Memory(MemoryOp::ViewLoad) => self.view_load(&s),
            Op::Memory(MemoryOp::ViewStore) => self.view_store(&s),
            Op::Memory(MemoryOp::ViewInside) => self.view_inside(&s),
            Op::Memory(MemoryOp::ViewPermute) => self.view_permute(&s),
            Op::Memory(_) | Op::Atomic(_) if s.this.is_some() => self.view_positions(&s),
            Op::Atomic(_) | Op::Memory(_) => self.pointer_access(&s),
            _ => None,
        };
        h.unwrap_or_else(|| HExpr::err(span))
    }

    /// `load`, `store`, `prefetch` and atomics through pointers.
    fn pointer_access(&mut self, s: &Slots) -> Option<HExpr> {
        self.pointer = s.get("ptr").map(|e| (e.span, s.row));
        let p = self.value_slot(s, "ptr");
        self.pointer = None;
        let p = p?;
        let Ty::Tile { elem: Elem::Ptr { pointee, mutable }, .. } = p.ty.clone() else {
            self.no_pointer(s, &p);
            return None;
        };
        let writes =
            !matches!(s.row.op, Op::Memory(MemoryOp::Load | MemoryOp::Prefetch) | Op::Atomic(AtomicOp::Load));
        if writes && !mutable {
            self.const_store(&p, s.span);
            return None;
        }
        let mask = self.mask(s)?;
        let mut shaped = vec![p.clone()];
        shaped.extend(mask.clone());
        let is_store = matches!(s.row.op, Op::Memory(MemoryOp::Store));
        let mut values = vec![];
        for name in ["value", "compare", "other"] {
            if let Some(e) = s.get(name) {
                let h = self.elem_value(e, &pointee, name, s.row.name)?;
                if !is_store && name != "other" {
                    shaped.push(h.clone());
                }
                values.push((name, h));
            }
        }
        let what = format!("`{}`", s.row.name);
        let shape = self.broadcast(&what, &shaped.iter().collect::<Vec<_>>())?;
        for (name, h) in &values {
            self.check_box(h, &shape, name, s)?;
        }
        if let Op::Atomic(op) = s.row.op {
            self.atomic_class(op, &pointee, s)?;
        }
        let no_result =
            is_store || matches!(s.row.op, Op::Memory(MemoryOp::Prefetch) | Op::Atomic(AtomicOp::Store));
        let ty = if no_result { Ty::Unit } else { Ty::Tile { elem: (*pointee).clone(), shape } };
        let mut args = vec![];
        for prm in s.row.params {
            args.push(match prm.name {
                "ptr" => HArg::Expr(p.clone()),
                "mask" => mask.clone().map_or(HArg::Default, HArg::Expr),
                n => match values.iter().find(|v| v.0 == n) {
                    Some((_, h)) => HArg::Expr(h.clone()),
                    None => self.word(s, prm.name, prm.kind)?,
                },
            });
        }
        Some(self.mk(HKind::Builtin(s.row, args), ty, s.span, false))
    }

    /// What is no pointer, and how its memory is reached.
    fn no_pointer(&mut self, s: &Slots, p: &HExpr) {
        let shown = self.show(&p.ty);
        let mut d = Diagnostic::error(
            codes::TYPE_MISMATCH,
            p.span,
            format!("`{}` needs a pointer, not `{shown}`", s.row.name),
            super::super::this_is(&shown),
        );
        if matches!(p.ty, Ty::View { .. }) {
            let text = self.text(p.span);
            let v = if text.len() <= SHOWN { text.as_str() } else { "v" };
            d = match tk_ops::rows::find(s.row.name, Receiver::View) {
                Some(_) => d.note(format!("a view has it as a method: `{v}.{}(..)`", s.row.name)),
                None => {
                    let pointer = self.element_pointer(&text, &[]);
                    d.fix("take its pointer, that of its first element", p.span, pointer)
                }
            };
        } else if matches!(p.ty, Ty::Buffer { .. }) {
            d = self.test_memory(d, s.row, p);
        } else if let HKind::Builtin(loads, args) = &p.kind
            && let (Op::Memory(MemoryOp::ViewLoad), Some(HArg::Expr(view))) = (loads.op, args.first())
        {
            let v = self.text(view.span);
            d = match (tk_ops::rows::find(s.row.name, Receiver::View), args.get(1)) {
                (None, Some(HArg::List(at))) => {
                    let at: Vec<String> = at.iter().map(|e| self.text(e.span)).collect();
                    let pointer = self.element_pointer(&v, &at);
                    d.write_instead(p.span, pointer)
                }
                (_, _) => d.note(format!(
                    "an element of a view is reached by a method: `{v}.{}([at], ..)`",
                    s.row.name
                )),
            };
        }
        self.report(d);
    }

    fn const_store(&mut self, p: &HExpr, span: Span) {
        let shown = self.show(&p.ty);
        let root = self.root_param(p);
        let kind = if matches!(p.ty, Ty::View { .. }) { "view" } else { "pointer" };
        let mut d = Diagnostic::error(
            codes::STORE_CONST,
            span,
            format!("store through a {kind} that is not `mut`"),
            "written here",
        )
        .label(p.span, super::super::this_is(&shown));
        if let Some(at) = root {
            d = d.label(at, "declared here");
            match self.is_of_declared_table(at, &p.ty) {
                true => {
                    if let Some(place) = self.pointee_place(at) {
                        d = d.fix("let its pointers be `*mut`", place, "mut ");
                    }
                }
                false => {
                    if let Some(fix) = self.mut_fix(at) {
                        d = d.fix("declare it `mut`", fix.0, fix.1);
                    }
                }
            }
        }
        self.report(d);
    }

    /// Returns true if what is declared at `at` is a table of pointers from which something of this type comes.
    fn is_of_declared_table(&self, at: Span, ty: &Ty) -> bool {
        let declared = self.locals.iter().find(|l| l.span == at);
        declared.is_some_and(|l| pointers_in(&l.ty) > pointers_in(ty))
    }

    /// The place of `mut` behind the last star of a declared type, `name: view[*T, 1]`.
    fn pointee_place(&self, at: Span) -> Option<Span> {
        let rest = self.p.sources.get(at.file)?.text.get(at.end as usize..)?;
        let ty = rest.get(..rest.find([',', ')'])?)?;
        let star = ty.rfind('*').filter(|_| ty.trim_start().starts_with(':'))? + 1;
        let is_mut = ty.get(star..)?.trim_start().starts_with("mut ");
        let place = at.end + star as u32;
        (!is_mut).then_some(Span { start: place, end: place, ..at })
    }

    /// The parameter from which a pointer or view comes.
    pub fn root_param(&self, h: &HExpr) -> Option<Span> {
        match &h.kind {
            HKind::Local(id) => Some(self.origins.get(id).copied().unwrap_or(self.local(*id).span)),
            HKind::Builtin(_, args) => args.iter().find_map(|a| match a {
                HArg::Expr(e)
                    if matches!(e.ty, Ty::Tile { elem: Elem::Ptr { .. }, .. } | Ty::View { .. }) =>
                {
                    self.root_param(e)
                }
                _ => None,
            }),
            HKind::SubView(b, _)
            | HKind::ViewT(b)
            | HKind::ViewPtr(b)
            | HKind::Cast(b)
            | HKind::Index(b, _) => self.root_param(b),
            _ => None,
        }
    }

    /// The place of `mut` in the declaration `name: *T` or `name: view[..]`.
    fn mut_fix(&self, at: Span) -> Option<(Span, &'static str)> {
        let source = self.p.sources.get(at.file)?;
        let rest = source.text.get(at.end as usize..)?;
        let colon = rest.find(|c: char| !c.is_whitespace())?;
        if !rest.get(colon..)?.starts_with(':') {
            return None;
        }
        let ty = rest.get(colon + 1..)?.find(|c: char| !c.is_whitespace())? + colon + 1;
        let pos = at.end + ty as u32;
        let here = |p: u32| Span { start: p, end: p, ..at };
        if rest.get(ty..)?.starts_with('*') {
            Some((here(pos + 1), "mut "))
        } else {
            Some((here(pos), "mut "))
        }
    }

    /// The mask argument: bools that broadcast.
    #[allow(clippy::option_option, reason = "outer: error, inner: given or not")]
    pub fn mask(&mut self, s: &Slots) -> Option<Option<HExpr>> {
        let Some(e) = s.get("mask") else { return Some(None) };
        let h = self.value(e);
        if h.ty.is_err() {
            return None;
        }
        if self.dterm_of(&h.ty) == Some(DTerm::Known(DType::Bool)) {
            return Some(Some(h));
        }
        let shown = self.show(&h.ty);
        let mut d = Diagnostic::error(
            codes::MASK,
            h.span,
            format!("a mask must be `bool`, not `{shown}`"),
            super::super::this_is(&shown),
        );
        d = match self.offset_given(d.clone(), s, &h) {
            Some(d) => d,
            None if self.dterm_of(&h.ty).is_some() => self.compare_with_zero(d, h.span),
            None => d,
        };
        self.report(d);
        None
    }

    /// A value of the element type of memory.
    fn elem_value(&mut self, e: &ast::Expr, elem: &Elem, name: &str, row: &str) -> Option<HExpr> {
        let h = self.value(e);
        self.elem_of(h, elem, name, row)
    }

    fn elem_of(&mut self, h: HExpr, elem: &Elem, name: &str, row: &str) -> Option<HExpr> {
        if h.ty.is_err() {
            return None;
        }
        let Ty::Tile { shape, .. } = h.ty.clone() else {
            let shown = self.show(&h.ty);
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                h.span,
                format!("`{name}` is a tile or scalar, not `{shown}`"),
                super::super::this_is(&shown),
            );
            self.report(self.read_first(d, &h));
            return None;
        };
        let want = Ty::Tile { elem: elem.clone(), shape };
        let what = if name == "value" {
            format!("the value stored by `{row}`")
        } else {
            format!("`{name}` of `{row}`")
        };
        let h = self.coerce_as(h, &want, &what, Some(codes::ELEMENT_MISMATCH), None);
        (!h.ty.is_err()).then_some(h)
    }

    /// Checks that a value broadcasts into a shape that is already fixed.
    fn check_box(&mut self, h: &HExpr, shape: &Shape, name: &str, s: &Slots) -> Option<()> {
        let Ty::Tile { shape: have, .. } = &h.ty else { return None };
        let what = format!("`{}`", s.row.name);
        let at = s.this.as_ref().map(|t| t.span).or_else(|| s.get("ptr").map(|e| e.span)).unwrap_or(s.span);
        let joined = self.broadcast_two(&what, (shape, at), (have, h.span))?;
        if self.shapes_equal(&joined, shape) {
            return Some(());
        }
        let (a, b) = (self.show_shape(shape), self.show_shape(have));
        let d = Diagnostic::error(
            codes::SHAPE_MISMATCH,
            h.span,
            format!("`{name}` has shape `{b}`, but the access has `{a}`"),
            super::super::this_is(&b),
        )
        .label(at, super::super::this_is(&a));
        self.report(d);
        None
    }

    fn atomic_class(&mut self, op: AtomicOp, elem: &Elem, s: &Slots) -> Option<()> {
        let set = match op {
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => DTypeSet::NUMBER,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => DTypeSet::INT,
            AtomicOp::Xchg | AtomicOp::Cas | AtomicOp::Load | AtomicOp::Store => DTypeSet::NUMBER,
        };
        match elem {
            Elem::D(d) => self.need_class(&format!("`{}`", s.row.name), *d, set, s.span).then_some(()),
            Elem::Ptr { .. } | Elem::Err => Some(()),
        }
    }

    /// A word argument (`order = acquire`), or a further plain argument.
    pub fn word(&mut self, s: &Slots, name: &str, kind: ParamKind) -> Option<HArg> {
        let Some(e) = s.get(name) else { return Some(HArg::Default) };
        let ParamKind::Word(words) = kind else {
            let p = s.row.params.iter().find(|p| p.name == name)?;
            let h = self.plain_arg(p, e);
            return (!h.ty.is_err()).then_some(HArg::Expr(h));
        };
        if self.mask_as_word(s, name, e, words) {
            return None;
        }
        if let ExprKind::Path(p) = &e.kind
            && let [n] = p.segments.as_slice()
        {
            if let Some(w) = words.iter().find(|w| **w == n.text) {
                return Some(HArg::Word(w));
            }
            let list: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
            let mut d = Diagnostic::error(
                codes::ARGUMENT_NAME,
                e.span,
                format!("`{name}` cannot be `{}`", n.text),
                "",
            )
            .note(format!("it is one of {}", list.join(", ")));
            if let Some(best) = crate::check::names::closest(&n.text, words.iter().copied()) {
                d = d.use_instead(e.span, best);
            }
            self.report(d);
            return None;
        }
        let list: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
        let message = format!("`{name}` is one of {}", list.join(", "));
        let d = Diagnostic::error(codes::ARGUMENT_NAME, e.span, message, "");
        self.report(match Self::foreign_word(e).filter(|w| words.contains(w)) {
            Some(word) => d.use_instead(e.span, word),
            None => d.note("it is written out; a compile-time `if` chooses between two calls"),
        });
        None
    }

    fn view_slot(&mut self, s: &Slots) -> Option<(HExpr, ViewTy)> {
        let v = s.this.clone()?;
        let Ty::View { elem, rank, mutable, wide } = v.ty.clone() else { return None };
        let rank = self.need_rank(&rank, &format!("`{}`", s.row.name), v.span)?;
        Some((v, (elem, rank, mutable, wide)))
    }

    /// `at`: one integer per axis.
    fn at(&mut self, s: &Slots, v: &ViewTy) -> Option<Vec<HExpr>> {
        let e = s.get("at")?;
        let list: Vec<HExpr> = if let ExprKind::Array(items) = &e.kind {
            items.iter().map(|i| self.position(i, v.3, Some(s))).collect::<Option<Vec<_>>>()?
        } else {
            let h = self.value(e);
            if let Some(d) = self.unlisted(s, &h, v.1) {
                self.report(d);
                return None;
            }
            let list = self.ints_of(h, "a position")?;
            list.into_iter().map(|h| self.fit_position(h, v.3)).collect::<Option<Vec<_>>>()?
        };
        self.at_count(list.len(), v.1, e.span, s)?;
        Some(list)
    }

    fn at_count(&mut self, n: usize, rank: u32, span: Span, s: &Slots) -> Option<()> {
        if n == rank as usize {
            return Some(());
        }
        let at = s.this.as_ref().map_or(s.span, |t| t.span);
        let d = Diagnostic::error(
            codes::POSITION,
            span,
            format!("a position in a view of rank {rank} has {rank} entries, not {n}"),
            format!("{n} given"),
        )
        .label(at, format!("rank {rank}"));
        let d = self.part_at(d, s, rank as usize);
        self.report(d);
        None
    }

    /// The box of an access: `shape`, or one element.
    fn box_shape(&mut self, s: &Slots, rank: u32) -> Option<Shape> {
        let Some(e) = s.get("shape") else { return Some(Shape::scalar()) };
        let shape = self.shape_arg(e)?;
        match &shape {
            Shape::Dims(d) if d.len() == rank as usize => Some(shape),
            _ => {
                let shown = self.show_shape(&shape);
                let at = s.this.as_ref().map_or(s.span, |t| t.span);
                let d = Diagnostic::error(codes::RANK_MISMATCH, e.span, format!("the shape of a box in a view of rank {rank} has {rank} extents, but this is `{shown}`"), super::super::this_is(&shown)).label(at, format!("rank {rank}"));
                let have = shape.dims().map_or(0, <[Poly]>::len);
                self.report(self.part_of_view(d, s, rank as usize, have));
                None
            }
        }
    }

    fn view_load(&mut self, s: &Slots) -> Option<HExpr> {
        let (v, vt) = self.view_slot(s)?;
        let at = self.at(s, &vt)?;
        let shape = self.box_shape(s, vt.1)?;
        let other = match s.get("other") {
            Some(e) => {
                let h = self.value(e);
                if self.mask_as_other(&h, &vt.0) {
                    return None;
                }
                let h = self.elem_of(h, &vt.0, "other", "load")?;
                self.check_box(&h, &shape, "other", s)?;
                HArg::Expr(h)
            }
            None => HArg::Default,
        };
        let shape_arg = if s.get("shape").is_some() { HArg::Shape(shape.clone()) } else { HArg::Default };
        let mut args = vec![HArg::Expr(v), HArg::List(at), shape_arg, other];
        args.extend(self.words(s, 4)?);
        Some(self.mk(HKind::Builtin(s.row, args), Ty::Tile { elem: vt.0, shape }, s.span, false))
    }

    fn words(&mut self, s: &Slots, skip: usize) -> Option<Vec<HArg>> {
        s.row.params.iter().skip(skip).map(|p| self.word(s, p.name, p.kind)).collect()
    }

    fn view_store(&mut self, s: &Slots) -> Option<HExpr> {
        let (v, vt) = self.view_slot(s)?;
        if !vt.2 {
            self.const_store(&v, s.span);
            return None;
        }
        let at = self.at(s, &vt)?;
        let h = self.elem_value(s.get("value")?, &vt.0, "value", "store")?;
        if let Ty::Tile { shape, .. } = &h.ty
            && !shape.is_scalar()
            && shape.dims().map(<[Poly]>::len) != Some(vt.1 as usize)
        {
            let shown = self.show_shape(shape);
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                h.span,
                format!("a view of rank {} stores tiles of its rank or single elements, not `{shown}`", vt.1),
                super::super::this_is(&shown),
            )
            .label(v.span, format!("rank {}", vt.1));
            let have = shape.dims().map_or(0, <[Poly]>::len);
            if let Some(d) = self.all_positions(d.clone(), &h, vt.1) {
                self.report(d);
                return None;
            }
            let row = if (vt.1, have) == (2, 1) {
                Some(format!("`{0}[i].store([j], ..)` stores a part of row `i`", self.text(v.span)))
            } else {
                self.part_stored(s, vt.1 as usize, have)
            };
            self.report(row.into_iter().fold(d, Diagnostic::note));
            return None;
        }
        let mut args = vec![HArg::Expr(v), HArg::List(at), HArg::Expr(h)];
        args.extend(self.words(s, 3)?);
        Some(self.mk(HKind::Builtin(s.row, args), Ty::Unit, s.span, false))
    }

    fn view_inside(&mut self, s: &Slots) -> Option<HExpr> {
        let (v, vt) = self.view_slot(s)?;
        let at = self.at(s, &vt)?;
        let shape = self.box_shape(s, vt.1)?;
        let ty = Ty::Tile { elem: Elem::D(DTerm::Known(DType::Bool)), shape: shape.clone() };
        Some(self.mk(
            HKind::Builtin(s.row, vec![HArg::Expr(v), HArg::List(at), HArg::Shape(shape)]),
            ty,
            s.span,
            false,
        ))
    }

    fn view_permute(&mut self, s: &Slots) -> Option<HExpr> {
        let (v, vt) = self.view_slot(s)?;
        let order = self.permutation(s.get("order")?, vt.1 as usize)?;
        let list = order.iter().map(|i| self.mk(HKind::Int(*i as i128), Ty::i32(), s.span, true)).collect();
        let ty = v.ty.clone();
        Some(self.mk(HKind::Builtin(s.row, vec![HArg::Expr(v), HArg::List(list)]), ty, s.span, false))
    }

    /// A permutation of the dimensions of a rank.
    pub fn permutation(&mut self, e: &ast::Expr, rank: usize) -> Option<Vec<usize>> {
        let ExprKind::Array(items) = &e.kind else {
            self.error(
                codes::NOT_CONST,
                e.span,
                "an order is a list of dimension numbers, as in `[1, 0]`",
                "not a list of dimension numbers",
            );
            return None;
        };
        let ns: Vec<i128> =
            items.iter().map(|i| self.known_int(i, "a dimension number")).collect::<Option<_>>()?;
        let order: Vec<usize> = ns.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted != (0..rank).collect::<Vec<_>>() {
            self.error(
                codes::AXIS,
                e.span,
                format!("not a permutation of {rank} dimensions"),
                "each number from 0 must occur exactly once",
            );
            return None;
        }
        Some(order)
    }

    /// `gather`, `scatter` and atomics of views: integer tiles, one per axis.
    fn view_positions(&mut self, s: &Slots) -> Option<HExpr> {
        let (v, vt) = self.view_slot(s)?;
        if !matches!(s.row.op, Op::Memory(MemoryOp::ViewGather)) && !vt.2 {
            self.const_store(&v, s.span);
            return None;
        }
        let e = s.get("at")?;
        let ExprKind::Array(items) = &e.kind else {
            let h = self.value(e);
            let message = "positions are a list with an entry for each axis";
            let d = Diagnostic::error(codes::POSITION, e.span, message, "not a list");
            let d = self.unlisted(s, &h, vt.1).unwrap_or(d);
            if !h.ty.is_err() {
                self.report(d);
            }
            return None;
        };
        let mut at = vec![];
        for i in items {
            let h = self.positions_of(i)?;
            at.push(h);
        }
        self.at_count(at.len(), vt.1, e.span, s)?;
        let mask = self.mask(s)?;
        let mut shaped = at.clone();
        shaped.extend(mask.clone());
        let mut values = vec![];
        for name in ["compare", "value", "other"] {
            if let Some(e) = s.get(name) {
                let h = self.elem_value(e, &vt.0, name, s.row.name)?;
                if name != "other" {
                    shaped.push(h.clone());
                }
                values.push((name, h));
            }
        }
        if let Some((_, value)) = values.iter().find(|v| v.0 == "value")
            && let Some(d) = self.positions_of_lower_rank(s.row.name, &at, value)
        {
            self.report(d);
            return None;
        }
        let what = format!("`{}`", s.row.name);
        let shape = self.broadcast(&what, &shaped.iter().collect::<Vec<_>>())?;
        if let Op::Atomic(op) = s.row.op {
            self.atomic_class(op, &vt.0, s)?;
        }
        let ty = if matches!(s.row.op, Op::Memory(MemoryOp::ViewScatter) | Op::Atomic(AtomicOp::Store)) {
            Ty::Unit
        } else {
            Ty::Tile { elem: vt.0, shape }
        };
        let mut args = vec![HArg::Expr(v), HArg::List(at)];
        for p in s.row.params.iter().skip(2) {
            args.push(match p.name {
                "mask" => mask.clone().map_or(HArg::Default, HArg::Expr),
                n => match values.iter().find(|x| x.0 == n) {
                    Some((_, h)) => HArg::Expr(h.clone()),
                    None => self.word(s, p.name, p.kind)?,
                },
            });
        }
        Some(self.mk(HKind::Builtin(s.row, args), ty, s.span, false))
    }
}

/// The number of pointers and views that lead from a value of this type to numbers.
fn pointers_in(ty: &Ty) -> usize {
    let mut count = usize::from(matches!(ty, Ty::View { .. }));
    let (Ty::View { elem, .. } | Ty::Tile { elem, .. }) = ty else { return 0 };
    let mut elem = elem;
    while let Elem::Ptr { pointee, .. } = elem {
        (count, elem) = (count + 1, pointee);
    }
    count
}
