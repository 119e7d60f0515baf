//! Assignments: to variables and their parts, and of the parts of a tuple to several of them.

use tk_syntax::ast::{self, BinOp, ExprKind};
use tk_syntax::{Code, Diagnostic, Span, codes};

use super::cx::Cx;
use crate::hir::{HBlock, HExpr, HKind, HPat, HStmt, HStmtKind, LocalId};
use crate::poly::Poly;
use crate::types::{Elem, Ty};

/// A variable, the way to a part of it, and the type of that part.
type Place = (LocalId, Vec<u32>, Ty);

/// The target of one part of a tuple, and the variable that holds the part until it is assigned.
type Part<'e> = (&'e ast::Expr, Option<Place>, LocalId);

impl Cx<'_> {
    /// `(a, b.x, _) = e;`: the whole value is found before the first part is assigned.
    pub(super) fn assign_parts(
        &mut self,
        place: &ast::Expr,
        parts: &[ast::Expr],
        value: &ast::Expr,
        span: Span,
    ) -> HStmtKind {
        let wants: Option<Vec<Ty>> = parts.iter().map(|e| self.wanted_of(e)).collect();
        let want = wants.map(Ty::Tuple);
        let h = self.open_expr(value, want.as_ref());
        let h = self.need_value(h);
        let mut found = vec![];
        let pat = self.parts_to(place, &h.ty.clone(), &mut found);
        let mut stmts = vec![HStmt { kind: HStmtKind::Let(pat, Some(h)), span }];
        for (e, place, local) in found {
            let Some(place) = place else { continue };
            self.saw_write(e, place.0);
            let part = self.mk(HKind::Local(local), self.local(local).ty.clone(), e.span, false);
            stmts.push(HStmt { kind: self.assign_value(e, place, part), span });
        }
        let block = HBlock { stmts, tail: None, span };
        HStmtKind::Expr(self.mk(HKind::Block(Box::new(block)), Ty::Unit, span, false))
    }

    /// The type that a place has already, without a word about what is no place.
    fn wanted_of(&mut self, e: &ast::Expr) -> Option<Ty> {
        match &e.kind {
            ExprKind::Tuple(parts) => {
                parts.iter().map(|e| self.wanted_of(e)).collect::<Option<Vec<_>>>().map(Ty::Tuple)
            }
            ExprKind::Path(p) => {
                let [n] = p.segments.as_slice() else { return None };
                let Some(super::cx::Sym::Local(id)) = self.meaning(&n.text) else { return None };
                (!self.untyped.contains(&id)).then(|| self.local(id).ty.clone())
            }
            _ => None,
        }
    }

    /// The pattern that takes a value apart, and the places to which its parts go, from left to right.
    fn parts_to<'e>(&mut self, e: &'e ast::Expr, ty: &Ty, out: &mut Vec<Part<'e>>) -> HPat {
        if is_underscore(e) {
            return HPat::Ignore;
        }
        if let ExprKind::Tuple(parts) = &e.kind {
            let tys = self.pattern_types(e.span, parts.len(), ty);
            return HPat::Tuple(parts.iter().zip(&tys).map(|(e, t)| self.parts_to(e, t, out)).collect());
        }
        let place = self.place(e);
        let hidden = ast::Name { text: String::new(), span: e.span };
        let local = self.new_local(&hidden, ty.clone(), false);
        out.push((e, place, local));
        HPat::Local(local)
    }

    /// The target of an assignment: a variable, the way to a part of it, and the part's type.
    fn place(&mut self, e: &ast::Expr) -> Option<Place> {
        match &e.kind {
            ExprKind::Path(p) => {
                let [n] = p.segments.as_slice() else { return self.no_place(e) };
                match self.lookup(n) {
                    Some(super::cx::Sym::Local(id)) => {
                        if self.lambda_depth > id.0 as usize {
                            return self.no_place(e);
                        }
                        Some((id, vec![], self.local(id).ty.clone()))
                    }
                    Some(_) => self.no_place(e),
                    None if self.lookup_item(n).is_some() => self.no_place(e),
                    None => {
                        self.unknown_target(n);
                        None
                    }
                }
            }
            ExprKind::Member(base, name) => {
                let (id, mut path, ty) = self.place(base)?;
                let (i, t) = self.struct_field(&ty, name)?;
                path.push(i);
                Some((id, path, t))
            }
            ExprKind::Index(base, items) => {
                let (id, mut path, ty) = self.place(base)?;
                let (Ty::Tuple(ts), [ast::Subscript::Expr(i)]) = (&ty, items.as_slice()) else {
                    return self.no_place(e);
                };
                let n = self.known_int(i, "the position in a tuple")?;
                let Some(t) = usize::try_from(n).ok().and_then(|n| ts.get(n)) else {
                    self.no_element(base.span, ts.len(), n, i.span);
                    return None;
                };
                path.push(n as u32);
                Some((id, path, t.clone()))
            }
            ExprKind::Err => None,
            _ => self.no_place(e),
        }
    }

    fn no_place(&mut self, e: &ast::Expr) -> Option<Place> {
        let mut d = Diagnostic::error(codes::NOT_ASSIGNABLE, e.span, "cannot assign to this", "")
            .note("variables, fields of structs and elements of tuples can be assigned to");
        if matches!(e.kind, ExprKind::Index(..)) {
            d = d.note("write memory with `view.store(at, value)` or `store(pointer, value, mask)`");
        }
        self.report(d);
        None
    }

    pub(super) fn assign(
        &mut self,
        place: &ast::Expr,
        op: Option<BinOp>,
        value: &ast::Expr,
        span: Span,
    ) -> HStmtKind {
        if let Some(h) = self.assigned_element(place, op, value) {
            self.fail(h);
            return HStmtKind::Err;
        }
        if op.is_none()
            && let Some(name) = self.undeclared(place)
        {
            return self.declaration_instead(name, value);
        }
        let Some(target) = self.place(place) else {
            self.expr(value, None);
            return HStmtKind::Err;
        };
        self.saw_write(place, target.0);
        let want = self.wanted(&target);
        let want = want.as_ref();
        let h = if op.is_some() { self.expr(value, want) } else { self.open_expr(value, want) };
        let mut h = self.need_value(h);
        if let Some(op) = op {
            let current = self.value(place);
            if op == BinOp::Div {
                self.floored(place.span.to(h.span), (place.span, [&current.ty, &h.ty]), "//=");
            }
            if let Some(d) = self.float_added(op, &current, &h) {
                self.fail(d);
                return HStmtKind::Err;
            }
            let at = self.local(target.0).span;
            let lower = self.lower_accumulator(op, &current, &h, at);
            h = match lower.or_else(|| self.narrower_accumulator(op, &current, &h, at)) {
                Some(d) => self.fail(d),
                None => self.binary_op(op, current, h, span),
            };
        }
        if target.1.is_empty()
            && let Some(declared) = self.declared_anew(place, (op, value), target.0, &h)
        {
            return declared;
        }
        self.assign_value(place, target, h)
    }

    /// Reports `total += x` where `x` has more dimensions than `total`: the sum of it along an axis may be meant, or a variable
    /// of its shape.
    fn lower_accumulator(&self, op: BinOp, current: &HExpr, h: &HExpr, at: Span) -> Option<Diagnostic> {
        let (Ty::Tile { elem, shape: low }, Ty::Tile { shape: high, .. }) = (&current.ty, &h.ty) else {
            return None;
        };
        let (l, r) = (low.dims()?, high.dims()?);
        if l.is_empty() || l.len() >= r.len() || !matches!(elem, Elem::D(_)) {
            return None;
        }
        let (a, b) = (self.show_shape(low), self.show_shape(high));
        let message =
            format!("`{}=` keeps the shape `{a}` of its variable, but this is of `{b}`", op.symbol());
        let d = Diagnostic::error(codes::RANK_MISMATCH, h.span, message, format!("rank {}", r.len()));
        let start = format!("zeros({b}, {})", self.show_elem(elem));
        let d = d.label(at, format!("declared here with rank {}; `{start}` has the other", l.len()));
        let without = |axis: usize| r.iter().enumerate().filter(move |(i, _)| *i != axis).map(|(_, e)| e);
        let summed = |axis: &usize| without(*axis).zip(l).all(|(x, y)| self.dims_equal(x, y));
        if l.len() + 1 != r.len() || !matches!(op, BinOp::Add | BinOp::Sub) {
            return Some(d);
        }
        let text = self.text(h.span);
        Some((0..r.len()).filter(summed).fold(d, |d, axis| {
            let title = format!("sum it along axis {axis}");
            d.fix(title, h.span, format!("sum({text}, axis = {axis})"))
        }))
    }

    /// Reports `total += x` where `x` is of a wider type than `total`, which may start with this type.
    fn narrower_accumulator(&self, op: BinOp, current: &HExpr, h: &HExpr, at: Span) -> Option<Diagnostic> {
        let (from, to) = (self.dterm_of(&current.ty)?, self.dterm_of(&h.ty)?);
        let is_shift = matches!(op, BinOp::Shl | BinOp::Shr);
        if is_shift || !self.is_wider((to, h.span), from) || !self.castable(from) {
            return None;
        }
        let [from, to] = [from, to].map(|t| self.show_elem(&Elem::D(t)));
        let message =
            format!("`{}=` keeps the type `{from}` of its variable, but this is of `{to}`", op.symbol());
        let d = Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, message, super::this_is(&to));
        let d = d.label(at, format!("declared here with `{from}`"));
        let d = match self.text_until(at, ';').and_then(|declared| typed_as(declared, &from, &to)) {
            Some((start, len, text)) => {
                let start = at.end + start as u32;
                d.fix(format!("start with `{to}`"), Span { start, end: start + len as u32, ..at }, text)
            }
            None => d,
        };
        Some(d.fix(format!("cast to `{from}`"), h.span, self.cast_text(h.span, &from)))
    }

    /// The text between a name and the next character of this kind.
    fn text_until(&self, name: Span, end: char) -> Option<&str> {
        let text = &self.p.sources.get(name.file)?.text;
        Some(text.get(name.end as usize..)?.split_once(end)?.0)
    }

    /// Reports `n += 1.0` of an integer: its variable keeps its type, so the value is cast.
    fn float_added(&self, op: BinOp, current: &HExpr, h: &HExpr) -> Option<Diagnostic> {
        let (to, from) = (self.dterm_of(&current.ty)?, self.dterm_of(&h.ty)?);
        if !self.is_integer(to) || !self.is_float(from) {
            return None;
        }
        let [from, to] = [from, to].map(|t| self.show_elem(&Elem::D(t)));
        let what = format!("`{}=` keeps the type `{to}` of its variable, but this is `{from}`", op.symbol());
        let d = Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, what, super::this_is(&from));
        let text = self.text(h.span);
        let cast = match text.strip_suffix(".0") {
            Some(whole) if whole.chars().all(|c| c.is_ascii_digit()) => whole.to_string(),
            _ => self.cast_text(h.span, &to),
        };
        Some(d.fix(format!("write `{cast}`"), h.span, cast))
    }

    /// Returns true for a tile that is assigned to a variable for one number, or for a tile that broadcasts to it.
    fn is_larger(&self, h: &HExpr, ty: &Ty) -> bool {
        let (Ty::Tile { elem: Elem::D(_), shape: x }, Ty::Tile { elem: Elem::D(_), shape: y }) = (&h.ty, ty)
        else {
            return false;
        };
        let (Some(x), Some(y)) = (x.dims(), y.dims()) else { return false };
        let fits = |(p, q): (&Poly, &Poly)| self.dims_equal(p, q) || q.as_int() == Some(1);
        let grows = x.iter().zip(y).any(|(p, q)| !self.dims_equal(p, q));
        match y.is_empty() {
            true => !x.is_empty(),
            false => x.len() == y.len() && x.iter().zip(y).all(fits) && grows,
        }
    }

    /// Reports a tile that is assigned to such a variable, which may start as a tile of zeros.
    fn started_smaller(&mut self, h: &HExpr, ty: &Ty, (what, code): (&str, Option<Code>), at: Span) -> HExpr {
        let shown = self.show(ty);
        let mut d = self.mismatch(h, ty, what, code);
        // An extent of 1 is no fact that was left out.
        d.fixes.clear();
        let Ty::Tile { elem, shape } = &h.ty else { return self.fail(d) };
        // `let mut total = 0.0;`, without a type.
        let value = self.text_until(at, ';').and_then(|value| value.strip_prefix(" = "));
        let is_number = |v: &str| v.trim_start_matches('-') == "inf" || v.parse::<f64>().is_ok();
        let value = value.filter(|v| is_number(v) || v.starts_with("zeros("));
        let (shape, elem) = (self.show_shape(shape), self.show_elem(elem));
        let tile = match value {
            Some(v) if is_number(v) && v.parse::<f64>() != Ok(0.0) => format!("full({shape}, {v}, {elem})"),
            Some(_) | None => format!("zeros({shape}, {elem})"),
        };
        let d = d.label(at, format!("declared here as `{shown}`; `{tile}` is a tile"));
        let d = match value {
            Some(v) => {
                let start = at.end + 3;
                let place = Span { start, end: start + v.len() as u32, ..at };
                d.fix("start with a tile", place, tile)
            }
            None => d,
        };
        self.fail(d)
    }

    /// How memory is written, for a view or pointer whose memory may change although it cannot itself.
    fn written(&self, name: &str, ty: &Ty) -> Option<String> {
        match ty {
            Ty::View { mutable: true, .. } => {
                Some(format!("`{name}.store(at, value)` writes to a `mut view`"))
            }
            Ty::Tile { elem: Elem::Ptr { mutable: true, .. }, .. } => Some(format!(
                "`store({name} + i, value)` writes to it, and `let {name} = {name} + ..;` declares a pointer to another place"
            )),
            _ => None,
        }
    }

    /// The name that an assignment takes for a variable, but that nothing has.
    fn undeclared<'e>(&self, place: &'e ast::Expr) -> Option<&'e ast::Name> {
        let ExprKind::Path(p) = &place.kind else { return None };
        let [name] = p.segments.as_slice() else { return None };
        let known = self.lookup(name).is_some() || self.lookup_item(name).is_some();
        let silent = self.holes || self.is_missing(&name.text) || self.unknown.contains(&name.text);
        (!known && !silent && !name.text.is_empty() && !is_underscore(place)).then_some(name)
    }

    /// The text of this function after a name. A crude reading, for fixes.
    fn text_after(&self, name: &ast::Name) -> &str {
        let text = self.p.sources.get(name.span.file).map_or("", |s| &s.text);
        let rest = text.get(name.span.end as usize..).unwrap_or("");
        rest.split_once("\n}").map_or(rest, |(body, _)| body)
    }

    /// Returns true if the text of this function has a name again.
    fn used_later(&self, name: &ast::Name) -> bool {
        self.text_after(name).split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name.text)
    }

    /// Returns true if the text of this function has a further assignment to a name.
    pub(super) fn assigned_later(&self, name: &ast::Name) -> bool {
        let body = self.text_after(name);
        body.match_indices(name.text.as_str()).any(|(at, found)| {
            let (before, after) = (body.get(..at).unwrap_or(""), body.get(at + found.len()..).unwrap_or(""));
            let after = after.trim_start();
            let operator = after.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^']);
            let short = after.len() - operator.len() <= 1;
            let assigns = short && operator.starts_with('=') && !operator.starts_with("==");
            assigns && before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
        })
    }

    /// The variable that a misspelt target of an assignment may be, and its type. What cannot be assigned to is not meant.
    fn near_variable(&mut self, name: &str) -> Option<(String, Ty)> {
        let near = self.nearest(name, &[], &[])?;
        let Some(super::cx::Sym::Local(id)) = self.meaning(&near) else { return None };
        let local = self.local(id);
        local.mutable.then(|| (near, local.ty.clone()))
    }

    /// Reports a target that nothing declares, where an assignment cannot be its declaration.
    fn unknown_target(&mut self, n: &ast::Name) {
        if self.near_variable(&n.text).is_some() || self.holes || self.is_missing(&n.text) {
            self.unknown_name(n, None);
        } else if self.unknown.insert(n.text.clone()) {
            let message = format!("cannot find `{}`", n.text);
            let d = Diagnostic::error(codes::UNKNOWN_NAME, n.span, message, "not declared");
            let ended = self.declared_in_block(d.clone(), &n.text);
            self.report(ended.unwrap_or_else(|| {
                d.note(format!("`let mut {} = ..;` declares a variable that can change", n.text))
            }));
        }
    }

    /// Reports an assignment that was meant as a declaration, and declares the variable.
    fn declaration_instead(&mut self, name: &ast::Name, value: &ast::Expr) -> HStmtKind {
        // What is used again is no slip of the hand.
        let near = if self.used_later(name) { None } else { self.near_variable(&name.text) };
        self.unknown.insert(name.text.clone());
        let h = self.value(value);
        let ty = self.let_type(&h);
        let near = near.filter(|(_, of)| self.fits(&ty, of));
        let message = format!("cannot find `{}`", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_NAME, name.span, message, "not declared");
        let d = if self.arms == 0 {
            let word = if self.assigned_later(name) { "let mut" } else { "let" };
            d.fix(format!("declare it with `{word}`"), name.span.before(), format!("{word} "))
        } else {
            // What follows the `if` would not see it.
            d.note(format!("declare it with `let mut {}`, before the `if` if it is used after it", name.text))
        };
        self.report(match near {
            Some((near, _)) => d.use_instead(name.span, near),
            None => d,
        });
        let local = self.new_local(name, ty, true);
        HStmtKind::Let(HPat::Local(local), Some(h))
    }

    /// The type that a place has already.
    fn wanted(&self, (id, path, ty): &Place) -> Option<Ty> {
        (!self.untyped.contains(id) || !path.is_empty()).then(|| ty.clone())
    }

    /// Puts a value where it goes.
    fn assign_value(&mut self, place: &ast::Expr, (id, path, ty): Place, mut h: HExpr) -> HStmtKind {
        let (name, mutable, at) = {
            let l = self.local(id);
            (l.name.clone(), l.mutable, l.span)
        };
        let in_loop = self.loops.iter().any(|l| !l.is_static && (id.0 as usize) < l.locals_before);
        if !mutable && (!self.unassigned.contains(&id) || !path.is_empty() || in_loop) {
            let params = self.func.map_or(0, |f| self.hir().func(f).params.len());
            let mut d = Diagnostic::error(
                codes::NOT_MUT,
                place.span,
                format!("cannot assign to `{name}`, which is not `mut`"),
                "assigned here",
            )
            .label(at, "declared here");
            let is_param = (id.0 as usize) < params;
            if let Some(written) = self.written(&name, &ty) {
                d.message = format!("cannot assign to `{name}`: only its memory can change");
                // What was meant for its memory has another type.
                self.report(d.note(written));
                return HStmtKind::Err;
            } else if is_param {
                d = d.note(format!(
                    "a parameter cannot change; `let mut {name} = {name};` declares a variable"
                ));
            } else {
                d = d.fix("declare it with `let mut`", at.before(), "mut ");
            }
            self.report(d);
        }
        if path.is_empty() && self.untyped.remove(&id) {
            let t = self.let_type(&h);
            if let Some(l) = self.locals.get_mut(id.0 as usize) {
                l.ty = t;
            }
        } else if !ty.is_err() {
            let carried = self.loops.iter().any(|l| !l.is_static && (id.0 as usize) < l.locals_before);
            let shown = self.show(&ty);
            let code = carried.then_some(codes::LOOP_STATE);
            let text = self.text(place.span);
            let what =
                if carried { format!("`{text}` keeps its type in a loop: it") } else { format!("`{text}`") };
            h = if self.is_larger(&h, &ty) {
                self.started_smaller(&h, &ty, (&what, code), at)
            } else {
                self.coerce_as(h, &ty, &what, code, Some((at, format!("declared here as `{shown}`"))))
            };
        }
        if path.is_empty() {
            self.unassigned.remove(&id);
            // What is wrong here is not wrong again where the variable is used.
            if h.ty.is_err()
                && let Some(l) = self.locals.get_mut(id.0 as usize)
            {
                l.ty = Ty::Err;
            }
        }
        HStmtKind::Assign { local: id, path, value: h }
    }
}

/// Where the text after the name in a declaration says that its numbers are of a type, and the text for another one there.
fn typed_as(declared: &str, from: &str, to: &str) -> Option<(usize, usize, String)> {
    let value = declared.strip_prefix(" = ")?;
    if value.parse::<f64>().is_ok() {
        return Some((0, 0, format!(": {to}")));
    }
    let made = value.starts_with("zeros(") || value.starts_with("full(");
    let number = |v: &str| v.parse::<f64>().is_ok();
    let typed = value.strip_suffix(&format!(" as {from}")).is_some_and(number)
        || made && value.ends_with(&format!(", {from})"));
    let end = declared.len() - usize::from(made);
    typed.then(|| (end - from.len(), from.len(), to.to_string()))
}

/// `_`, which takes what is not needed.
fn is_underscore(e: &ast::Expr) -> bool {
    matches!(&e.kind, ExprKind::Path(p) if matches!(p.segments.as_slice(), [n] if n.text == "_"))
}
