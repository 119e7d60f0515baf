//! Assignments to elements of views, tiles and memory, which are written in another way: `y[i] = v`, `*p = v`.

use tk_syntax::ast::{self, BinOp, ExprKind, Subscript, TypeKind, UnOp};
use tk_syntax::{Diagnostic, codes};

use super::cx::{Cx, Sym};
use crate::hir::{HExpr, HKind, LocalId};
use crate::types::{Elem, Shape, Ty};

/// What is assigned: the operator of `+=`, the text of the value and its type.
struct Assigned {
    op: Option<BinOp>,
    text: String,
    ty: Ty,
}

impl Assigned {
    /// The new value, from what was there before.
    fn over(&self, before: &str) -> String {
        match self.op {
            None => self.text.clone(),
            Some(op) => format!("{before} {} {}", op.symbol(), self.operand()),
        }
    }

    fn operand(&self) -> String {
        let plain = self.text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        if plain { self.text.clone() } else { format!("({})", self.text) }
    }
}

impl Cx<'_> {
    /// Reports an assignment to an element of a variable that has none to assign to, with what writes it.
    pub(super) fn assigned_element(
        &mut self,
        place: &ast::Expr,
        op: Option<BinOp>,
        value: &ast::Expr,
    ) -> Option<Diagnostic> {
        let (base, items): (_, &[Subscript]) = match &place.kind {
            ExprKind::Index(base, items) => (self.variable(base)?, items),
            ExprKind::Type(t) => (self.pointed(t)?, &[]),
            _ => return None,
        };
        let (name, ty) = (self.local(base).name.clone(), self.local(base).ty.clone());
        if !matches!(ty, Ty::View { .. } | Ty::Tile { .. } | Ty::Buffer { .. }) {
            return None;
        }
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, place.span, "cannot assign to this", "");
        let h = self.value(value);
        let positions: Vec<Option<HExpr>> = items
            .iter()
            .map(|i| match i {
                Subscript::Expr(e) => Some(self.value(e)),
                Subscript::Slice(..) | Subscript::Named(..) => None,
            })
            .collect();
        if let Some(sentence) = positions.iter().flatten().find_map(|p| self.no_positions(&name, &ty, p)) {
            return Some(d.note(sentence));
        }
        let wrong = h.ty.is_err() || positions.iter().flatten().any(|p| p.ty.is_err());
        let text = self.as_element(&ty, &h, op).unwrap_or_else(|| self.text(value.span));
        let value = Assigned { op, text, ty: h.ty };
        let (fixed, note) = match &ty {
            Ty::View { .. } => (
                self.view_write(&name, &ty, items, &positions, &value),
                format!(
                    "a view is written with `{}`",
                    self.view_store_form(&name, &ty, items, &positions, &value)
                ),
            ),
            Ty::Tile { elem: Elem::Ptr { .. }, .. } => (
                self.pointer_write(&name, items, &value),
                "memory is written with `store(pointer, value)`".to_string(),
            ),
            Ty::Buffer { .. } => (None, "a buffer is written by kernels".to_string()),
            _ => (
                self.tile_write(&name, &ty, items, &positions, &value),
                "a tile has no elements that change; `where(condition, a, b)` makes another tile".to_string(),
            ),
        };
        let is_const = matches!(ty, Ty::View { mutable: false, .. });
        Some(match fixed.filter(|_| !wrong && !is_const) {
            Some(text) => {
                let short = if text.contains('\n') { note } else { format!("write `{text}`") };
                d.fix(short, place.span.to(h.span), text)
            }
            None => d.note(note),
        })
    }

    /// Says of a mask, and of positions that are in memory, what takes the place of `y[p] = v`.
    fn no_positions(&self, name: &str, ty: &Ty, p: &HExpr) -> Option<String> {
        let is_tile = matches!(&p.ty, Ty::Tile { shape, .. } if !shape.is_scalar());
        match (ty, &p.ty) {
            (Ty::View { .. }, Ty::View { .. }) => Some(super::positions::LOADED_FIRST.to_string()),
            (Ty::View { .. }, _) if is_tile && super::operators::is_bool(self, &p.ty) => Some(format!(
                "a mask has no positions: `{name}.store(at, where(mask, value, {name}.load(at, [N])))` changes the elements where it is true"
            )),
            (_, _) => None,
        }
    }

    /// The text of a value with a cast to the elements of a view, where it is of another type.
    fn as_element(&self, place: &Ty, value: &HExpr, op: Option<BinOp>) -> Option<String> {
        let (Ty::View { elem: Elem::D(to), .. }, None) = (place, op) else { return None };
        let (from, to) = (self.dterm_of(&value.ty)?, self.norm(*to));
        let stays = from == to || self.literal(from).is_some() || self.widens(from, to);
        let shown = self.show_elem(&Elem::D(to));
        (!stays && self.castable(to)).then(|| self.cast_text(value.span, &shown))
    }

    pub(super) fn variable(&self, e: &ast::Expr) -> Option<LocalId> {
        let ExprKind::Path(p) = &e.kind else { return None };
        let [name] = p.segments.as_slice() else { return None };
        match self.lookup(name) {
            Some(Sym::Local(id)) => Some(id),
            _ => None,
        }
    }

    /// The variable `p` of `*p`, which reads as a type.
    fn pointed(&self, t: &ast::TypeExpr) -> Option<LocalId> {
        let TypeKind::Ptr { mutable: false, pointee } = &t.kind else { return None };
        let TypeKind::Path { path, member: None, args: None } = &pointee.kind else { return None };
        let [name] = path.segments.as_slice() else { return None };
        match self.lookup(name) {
            Some(Sym::Local(id)) => Some(id),
            _ => None,
        }
    }

    /// Reports `*p` as a value, which reads no memory.
    pub(super) fn pointed_value(&mut self, t: &ast::TypeExpr) -> Option<HExpr> {
        let local = self.local(self.pointed(t)?);
        let (name, ty) = (local.name.clone(), local.ty.clone());
        let d = Diagnostic::error(codes::NOT_A_VALUE, t.span, "there is no `*` that reads memory", "");
        Some(match ty {
            Ty::Tile { elem: Elem::Ptr { .. }, .. } => {
                self.fail(d.fix(format!("write `load({name})`"), t.span, format!("load({name})")))
            }
            _ => self.fail(d.note("memory is read with `load(pointer)` and `view.load(at, shape)`")),
        })
    }

    /// The position of the first element of a place in a view, axis by axis.
    pub(super) fn corner(&self, name: &str, items: &[Subscript], positions: &[Option<HExpr>]) -> Vec<String> {
        let start = |(axis, i): (usize, &Subscript)| match i {
            Subscript::Slice(Some(a), _, _) => self.counted(name, axis, a),
            // A position from the end, where that is known.
            Subscript::Expr(a) => match positions.get(axis) {
                Some(Some(HExpr { kind: HKind::Int(n @ ..0), .. })) => {
                    format!("{name}.shape[{axis}] - {}", n.unsigned_abs())
                }
                Some(Some(p)) if matches!(&p.ty, Ty::Tile { shape, .. } if !shape.is_scalar()) => {
                    self.text(a.span)
                }
                Some(_) | None => self.counted(name, axis, a),
            },
            Subscript::Slice(None, ..) | Subscript::Named(..) => "0".to_string(),
        };
        items.iter().enumerate().map(start).collect()
    }

    /// A position along an axis of a view. One that is negated is counted from the end.
    fn counted(&self, name: &str, axis: usize, e: &ast::Expr) -> String {
        match negated(e) {
            Some(k) => format!("{name}.shape[{axis}] - {}", self.operand(k.span)),
            None => self.text(e.span),
        }
    }

    /// The part of a view that a place is, without the axes that positions remove, and where it begins in that part:
    /// `y[:, j]` and `[0]`, `y` and `[2, 0]` of `y[2:5]`.
    fn part_and_start(
        &self,
        name: &str,
        rank: usize,
        items: &[Subscript],
        positions: &[Option<HExpr>],
    ) -> (String, Vec<String>) {
        let corner = self.corner(name, items, positions);
        let kept = |axis: usize| positions.get(axis).is_none_or(Option::is_none);
        let (mut index, mut start) = (vec![], vec![]);
        for axis in 0..rank.max(items.len()) {
            let at = corner.get(axis).cloned().unwrap_or("0".to_string());
            match items.get(axis).and_then(end_from_end) {
                // The part leaves out what is behind its end.
                Some(end) => {
                    index.push(format!("{at}:{}", self.counted(name, axis, end)));
                    start.push("0".to_string());
                }
                None => {
                    index.push(if kept(axis) { ":".to_string() } else { at.clone() });
                    start.extend(Some(at).filter(|_| kept(axis)));
                }
            }
        }
        // Axes at the end stay by themselves.
        while index.last().is_some_and(|i| i == ":") {
            index.pop();
        }
        let part = if index.is_empty() { name.to_string() } else { format!("{name}[{}]", index.join(", ")) };
        (part, start)
    }

    /// How a place in a view is written: `y.store([i], value)`, or `y[i].store([0], value)` where it is less than a position.
    fn view_store_form(
        &self,
        name: &str,
        ty: &Ty,
        items: &[Subscript],
        positions: &[Option<HExpr>],
        value: &Assigned,
    ) -> String {
        let Ty::View { rank, elem, .. } = ty else { return String::new() };
        let rank = self.known_rank(rank).map_or(items.len(), |r| r as usize);
        let is_tile = |p: &Option<HExpr>| {
            p.as_ref().is_some_and(|p| matches!(&p.ty, Ty::Tile { shape, .. } if !shape.is_scalar()))
        };
        if items.len() == rank && positions.iter().any(is_tile) && positions.iter().all(Option::is_some) {
            let at = self.corner(name, items, positions).join(", ");
            let method = if value.op == Some(BinOp::Add) { "atomic_add" } else { "scatter" };
            return format!("{name}.{method}([{at}], value)");
        }
        let (part, start) = self.part_and_start(name, rank, items, positions);
        if start.is_empty() {
            return format!("{name}.store([{}], value)", self.corner(name, items, positions).join(", "));
        }
        let single = matches!(&value.ty, Ty::Tile { elem: Elem::D(_), shape } if shape.is_scalar());
        let stored = match single && value.op.is_none() {
            true => {
                let extents = super::meant::extents_of(items, start.len()).join(", ");
                format!("full([{extents}], {}, {})", value.text, self.show_elem(elem))
            }
            false => "value".to_string(),
        };
        format!("{part}.store([{}], {stored})", start.join(", "))
    }

    fn view_write(
        &self,
        name: &str,
        ty: &Ty,
        items: &[Subscript],
        positions: &[Option<HExpr>],
        value: &Assigned,
    ) -> Option<String> {
        let Ty::View { rank, .. } = ty else { return None };
        let rank = self.known_rank(rank)? as usize;
        let single = |t: &Ty| matches!(t, Ty::Tile { elem: Elem::D(_), shape } if shape.is_scalar());
        let whole = items.len() == rank;
        let at = self.corner(name, items, positions).join(", ");
        // A tile goes into a box from there on; at one position all of it would go into one element.
        let is_corner = positions.iter().all(|p| p.as_ref().is_none_or(|p| single(&p.ty)));
        let is_open = items.iter().all(|i| end_from_end(i).is_none());
        if whole && is_corner && is_open && value.op.is_some() && !single(&value.ty) {
            let Ty::Tile { shape: Shape::Dims(dims), .. } = &value.ty else { return None };
            let extents: Vec<String> = dims.iter().map(|d| crate::show::poly(self.hir(), d)).collect();
            let old = format!("{name}.load([{at}], [{}])", extents.join(", "));
            return (dims.len() == rank).then(|| format!("{name}.store([{at}], {})", value.over(&old)));
        }
        if whole && positions.iter().all(|p| p.as_ref().is_some_and(|p| single(&p.ty))) {
            return Some(match value.op {
                Some(BinOp::Add) => format!("{name}.atomic_add([{at}], {})", value.text),
                _ => format!("{name}.store([{at}], {})", value.over(&format!("{name}.load([{at}])"))),
            });
        }
        let at_tiles = positions.iter().all(|p| p.as_ref().is_some_and(|p| self.is_int(&p.ty)));
        if whole && at_tiles {
            return Some(match value.op {
                Some(BinOp::Add) => format!("{name}.atomic_add([{at}], {})", value.text),
                _ => format!("{name}.scatter([{at}], {})", value.over(&format!("{name}.gather([{at}])"))),
            });
        }
        let rank_of = |t: &Ty| match t {
            Ty::Tile { shape: Shape::Dims(d), .. } => Some(d.len()),
            _ => None,
        };
        let (part, start) = self.part_and_start(name, rank, items, positions);
        let fits = is_corner && value.op.is_none() && items.len() <= rank && !start.is_empty();
        (fits && rank_of(&value.ty) == Some(start.len()))
            .then(|| format!("{part}.store([{}], {})", start.join(", "), value.text))
    }

    fn pointer_write(&self, name: &str, items: &[Subscript], value: &Assigned) -> Option<String> {
        let at = match items {
            [] => name.to_string(),
            [Subscript::Expr(i)] => {
                let text = self.text(i.span);
                let text = if self.is_postfix(&text) { text } else { format!("({text})") };
                format!("{name} + {text}")
            }
            _ => return None,
        };
        Some(match value.op {
            Some(BinOp::Add) => format!("atomic_add({at}, {})", value.text),
            _ => format!("store({at}, {})", value.over(&format!("load({at})"))),
        })
    }

    fn tile_write(
        &self,
        name: &str,
        ty: &Ty,
        items: &[Subscript],
        positions: &[Option<HExpr>],
        value: &Assigned,
    ) -> Option<String> {
        let (Ty::Tile { shape: Shape::Dims(dims), .. }, [Subscript::Expr(i)], [Some(at)]) =
            (ty, items, positions)
        else {
            return None;
        };
        let text = self.text(i.span);
        let cond = match dims.as_slice() {
            [] => return None,
            _ if super::operators::is_bool(self, &at.ty) => text,
            [extent] if matches!(&at.ty, Ty::Tile { shape, .. } if shape.is_scalar()) => {
                let extent = crate::show::poly(self.hir(), extent);
                let text = if self.is_postfix(&text) { text } else { format!("({text})") };
                format!("arange(0, {extent}) == {text}")
            }
            _ => return None,
        };
        Some(format!("{name} = where({cond}, {}, {name})", value.over(name)))
    }
}

/// What a position is negated from.
fn negated(e: &ast::Expr) -> Option<&ast::Expr> {
    match &e.kind {
        ExprKind::Unary(UnOp::Neg, k) => Some(k),
        _ => None,
    }
}

/// The end of a slice that is counted from the end.
fn end_from_end(i: &Subscript) -> Option<&ast::Expr> {
    match i {
        Subscript::Slice(_, Some(z), _) => negated(z).map(|_| z),
        Subscript::Slice(..) | Subscript::Expr(_) | Subscript::Named(..) => None,
    }
}
