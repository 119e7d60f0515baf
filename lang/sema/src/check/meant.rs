//! Advice for arguments and positions that mean something else here: masks of views, tiles of positions, axes, random
//! numbers, names of reductions where a function of two values is wanted.

use tk_ops::table::Row;
use tk_ops::{DType, MemoryOp, Op};
use tk_syntax::ast::{self, BinOp, ExprKind, Subscript};
use tk_syntax::{Diagnostic, Span, codes};

use super::advice::SHOWN;
use super::builtins::Slots;
use super::cx::{Cx, Sym};
use super::foreign::unwrapped;
use super::types::MAX_RANK;
use crate::hir::HExpr;
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

/// Functions of two values that combine as a reduction of this name does.
const COMBINED: &[(&str, &str)] = &[
    ("max", "maximum"),
    ("min", "minimum"),
    ("sum", "|a, b| a + b"),
    ("prod", "|a, b| a * b"),
    ("any", "|a, b| a || b"),
    ("all", "|a, b| a && b"),
];

/// Returns true for a text of several expressions, with commas between them.
pub(super) fn is_list(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().any(|c| {
        depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
        c == ',' && depth == 0
    })
}

/// The extents of a part of a view that has `rank` axes: those that its slices say, and names of others.
pub(super) fn extents_of(items: &[Subscript], rank: usize) -> Vec<String> {
    let names: &[&str] = if rank == 1 { &["N"] } else { &["M", "N", "K", "L", "P"] };
    let number = |e: &ast::Expr| match e.kind {
        ExprKind::Int(Some(n)) => i64::try_from(n).ok(),
        _ => None,
    };
    let kept = items.iter().filter(|i| !matches!(i, Subscript::Expr(_)));
    let mut known = kept.map(|i| match i {
        Subscript::Slice(a, Some(b), _) => {
            let from = a.as_ref().map_or(Some(0), &number)?;
            number(b)?.checked_sub(from).filter(|n| *n > 0)
        }
        Subscript::Slice(..) | Subscript::Expr(_) | Subscript::Named(..) => None,
    });
    let of = |name: &&str| known.next().flatten().map_or(name.to_string(), |n| n.to_string());
    names.iter().take(rank).map(of).collect()
}

impl Cx<'_> {
    /// The place of a variable that this text is, and the text of its value.
    pub(super) fn let_of(&self, text: &str) -> Option<(Span, String)> {
        let Some(Sym::Local(id)) = self.meaning(unwrapped(text)) else { return None };
        let local = self.local(id);
        let source = &self.p.sources.get(local.span.file)?.text;
        let before = source.get(..local.span.start as usize)?.trim_end();
        if local.mutable || !before.ends_with("let") {
            return None;
        }
        let (_, value) = source.get(local.span.end as usize..)?.split_once('=')?;
        Some((local.span, value.split_once(';')?.0.trim().to_string()))
    }

    /// Returns true for `x.T`, and for a variable that is that.
    pub(super) fn is_transpose(&self, span: Span) -> bool {
        let turned = |text: &str| {
            let text = unwrapped(text);
            text.ends_with(".T") && self.is_postfix(text)
        };
        let text = self.text(span);
        turned(&text) || self.let_of(&text).is_some_and(|(_, value)| turned(&value))
    }

    /// Says of a variable that it is a quotient of integers: a cast of it would not bring the fraction back.
    pub(super) fn named_quotient(&self, d: Diagnostic, span: Span) -> Option<Diagnostic> {
        let text = self.text(span);
        let (at, value) = self.let_of(&text)?;
        let divided = self.divided_text(&value, "f32")?;
        let name = unwrapped(&text);
        let d = d.label(at, "computed in integers");
        let d = d.note(format!("`{name}` is a quotient of integers, whose fraction is lost"));
        let short = divided.len() <= 2 * SHOWN && !divided.contains('\n');
        Some(if short { d.note(format!("with its fraction it is `{divided}`")) } else { d })
    }

    fn is_mask(&self, ty: &Ty) -> bool {
        matches!(ty, Ty::Tile { shape, .. } if !shape.is_scalar())
            && self.dterm_of(ty) == Some(DTerm::Known(DType::Bool))
    }

    /// Reports `x.load([at], [B], mask)` of a view.
    pub(super) fn mask_as_other(&mut self, h: &HExpr, elem: &Elem) -> bool {
        if !self.is_mask(&h.ty) || matches!(elem, Elem::D(DTerm::Known(DType::Bool))) {
            return false;
        }
        let (need, have) = (self.show_elem(elem), self.show(&h.ty));
        let message = format!("`other` of `load` is of `{need}`, but this is `{have}`");
        let d = Diagnostic::error(codes::ELEMENT_MISMATCH, h.span, message, super::this_is(&have));
        let d = Self::parameter_elsewhere("`load`", "mask").into_iter().fold(d, Diagnostic::note);
        self.report(d);
        true
    }

    /// Reports `y.store([at], v, mask)` of a view, where the mask is taken for a word.
    pub(super) fn mask_as_word(&mut self, s: &Slots, name: &str, e: &ast::Expr, words: &[&str]) -> bool {
        let is_value = match &e.kind {
            ExprKind::Path(p) => match p.segments.as_slice() {
                [n] => self.lookup(n).is_some() && !words.contains(&n.text.as_str()),
                _ => false,
            },
            ExprKind::Binary(..) => true,
            _ => false,
        };
        let of_view = s.this.as_ref().is_some_and(|t| matches!(t.ty, Ty::View { .. }));
        let sentence = Self::parameter_elsewhere(&format!("`{}`", s.row.name), "mask");
        let Some(sentence) = sentence.filter(|_| of_view && is_value) else { return false };
        let h = self.value(e);
        if !self.is_mask(&h.ty) {
            return h.ty.is_err();
        }
        let shown = self.show(&h.ty);
        let message = format!("`{name}` cannot be `{shown}`");
        let d = Diagnostic::error(codes::ARGUMENT_NAME, h.span, message, super::this_is(&shown));
        self.report(d.note(sentence));
        true
    }

    /// Says what takes tiles of positions, where an operation takes the corner of a box.
    pub(super) fn takes_positions(&self, d: Diagnostic, of: Option<&Slots>) -> Diagnostic {
        let stores = of.filter(|s| matches!(s.row.op, Op::Memory(MemoryOp::ViewStore)));
        let Some(s) = stores else {
            return d
                .note("`load` takes the corner of a box and its shape; `gather` takes tiles of positions");
        };
        let d = d.note("`store` takes the corner of a box; `scatter` takes tiles of positions");
        match self.is_increment(s) {
            true => d.note("`atomic_add` adds at each position, also where positions are equal"),
            false => d,
        }
    }

    /// Returns true for `y.store(at, y.load(..) + v)`.
    fn is_increment(&self, s: &Slots) -> bool {
        let Some(ExprKind::Binary(BinOp::Add, a, b)) = s.get("value").map(|e| &e.kind) else { return false };
        let Some(view) = s.this.as_ref().map(|t| self.text(t.span)) else { return false };
        [a, b].into_iter().any(|e| match &e.kind {
            ExprKind::Call(f, _) => match &f.kind {
                ExprKind::Member(base, name) => {
                    matches!(name.text.as_str(), "load" | "gather") && self.text(base.span) == view
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Reports positions of rank 1 and single ones for a value of a higher rank: which dimension each runs along.
    pub(super) fn positions_of_lower_rank(
        &self,
        name: &str,
        at: &[HExpr],
        value: &HExpr,
    ) -> Option<Diagnostic> {
        let Ty::Tile { shape, .. } = &value.ty else { return None };
        let dims = shape.dims().filter(|d| d.len() > 1 && d.len() == at.len())?;
        let (mut list, mut low) = (vec![], None);
        for (i, (h, extent)) in at.iter().zip(dims).enumerate() {
            let Ty::Tile { shape: own, .. } = &h.ty else { return None };
            let text = self.text(h.span);
            let text = if self.is_postfix(&text) { text } else { format!("({text})") };
            let index: Vec<&str> = (0..dims.len()).map(|d| if d == i { ":" } else { "None" }).collect();
            let index = index.join(", ");
            match own.dims()? {
                [] => {
                    let extent = crate::show::poly(self.hir(), extent);
                    list.push(format!("({text} + arange(0, {extent}))[{index}]"));
                }
                [n] if self.dims_equal(n, extent) => {
                    low = low.or(Some((h, own)));
                    list.push(format!("{text}[{index}]"));
                }
                _ => return None,
            }
        }
        let (h, own) = low?;
        let (a, b) = (self.show_shape(own), self.show_shape(shape));
        let message = format!("`{name}` needs equal ranks, but has `{a}` and `{b}`");
        let rank = dims.len();
        let d = Diagnostic::error(codes::RANK_MISMATCH, value.span, message, format!("rank {rank}"));
        let list = list.join(", ");
        Some(d.label(h.span, "rank 1").note(format!("a position for each element is `[{list}]`")))
    }

    /// Says how one entry too few is given: `x[row].load([0], [BLOCK])`.
    pub(super) fn part_at(&mut self, d: Diagnostic, s: &Slots, rank: usize) -> Diagnostic {
        let (Some(this), Some(at)) = (s.this.clone(), s.get("at")) else { return d };
        let ExprKind::Array(items) = &at.kind else { return d };
        let is_store = matches!(s.row.op, Op::Memory(MemoryOp::ViewStore));
        if !is_store && !matches!(s.row.op, Op::Memory(MemoryOp::ViewLoad | MemoryOp::ViewInside)) {
            return d;
        }
        let (have, given) = match (s.get("shape"), s.get("value")) {
            (Some(e), None) => match &e.kind {
                ExprKind::Array(shape) => (shape.len(), self.text(e.span)),
                _ => return d,
            },
            (None, Some(e)) => {
                let h = self.value(e);
                let Ty::Tile { shape: Shape::Dims(dims), .. } = &h.ty else { return d };
                (dims.len(), self.text(e.span))
            }
            (_, _) => return d,
        };
        let view = self.text(this.span);
        if have == 0 || items.is_empty() || items.len() + have != rank || !self.is_postfix(&view) {
            return d;
        }
        let items: Vec<String> = items.iter().map(|e| self.text(e.span)).collect();
        let zeros = vec!["0"; have].join(", ");
        let given = if given.len() > SHOWN || given.contains('\n') { ".." } else { &given };
        let (row, name) = (items.join(", "), s.row.name);
        let does = if is_store { "stores" } else { "takes" };
        d.note(format!("`{view}[{row}].{name}([{zeros}], {given})` {does} a part of lower rank"))
    }

    /// How a tile of fewer dimensions than a view is stored: `c[n].store([i, j], ..)`.
    pub(super) fn part_stored(&self, s: &Slots, rank: usize, have: usize) -> Option<String> {
        let (this, at) = (s.this.as_ref()?, s.get("at")?);
        let ExprKind::Array(items) = &at.kind else { return None };
        let (rows, rest) = items.split_at_checked(rank.checked_sub(have)?)?;
        let view = self.text(this.span);
        if rows.is_empty() || rest.is_empty() || items.len() != rank || !self.is_postfix(&view) {
            return None;
        }
        let list =
            |items: &[ast::Expr]| items.iter().map(|e| self.text(e.span)).collect::<Vec<_>>().join(", ");
        Some(format!("`{view}[{}].store([{}], ..)` stores a part of lower rank", list(rows), list(rest)))
    }

    /// Says what is done with a list of values that are computed when the program runs.
    pub(super) fn listed_values(&self, d: Diagnostic, h: &HExpr, count: usize) -> Diagnostic {
        let text = self.text(h.span);
        let inner = text.strip_prefix(['[', '(']).and_then(|t| t.strip_suffix([']', ')']));
        let inner = inner.filter(|t| t.len() <= SHOWN && !t.contains('\n')).unwrap_or("a, b");
        match count {
            2 => d.note(format!(
                "a tile of two values is `join({inner})`; two calls of `store` write them one by one"
            )),
            _ => d.note("a list of values that are computed is no tile: each is stored at its own position"),
        }
    }

    /// Reports `rand([4], f32, seed = 1)`: the function of kernels, with the arguments of one of tests.
    pub(super) fn random_of_shape(&mut self, row: &Row, args: &[ast::Arg], span: Span) -> bool {
        let shape = args.first().filter(|a| a.name.is_none() && matches!(a.value.kind, ExprKind::Array(_)));
        // `randn` and `randint` take one, in tests and in functions that these call.
        let Some(shape) = shape.filter(|_| row.name == "rand") else { return false };
        self.check_rest(args);
        let name = row.name;
        let message = format!("`{name}` takes a seed and offsets, not a shape");
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, shape.value.span, message, "a shape");
        if !self.in_test {
            let d = d.note(format!(
                "`{name}(seed, offsets)` makes a number for each offset, as in `{name}(seed, arange(0, N))`"
            ));
            self.report(d);
            return true;
        }
        let named = |n: &str| args.iter().find(|a| a.name.as_ref().is_some_and(|x| x.text == n));
        let dtype = named("dtype").or(args.get(1).filter(|a| a.name.is_none() && self.is_dtype(&a.value)));
        let dtype = dtype.map_or("f32".to_string(), |a| self.text(a.value.span));
        let seed = named("seed").map_or("1".to_string(), |a| self.text(a.value.span));
        let text = format!("uniform({}, 0.0, 1.0, {dtype}, seed = {seed})", self.text(shape.value.span));
        self.report(d.fix("use `uniform`", span, text));
        true
    }

    /// What is reported of a function of a tile that is passed as one of single values.
    pub(super) fn of_one_tile(&self, name: &str, count: usize, span: Span) -> Diagnostic {
        let message = format!("`{name}` cannot be passed as a function");
        match COMBINED.iter().find(|c| c.0 == name && count == 2) {
            Some((_, text)) => {
                let label = "a function of a tile, not of two values";
                let d = Diagnostic::error(codes::NOT_A_VALUE, span, message, label);
                d.fix(format!("combine with `{text}`"), span, *text)
            }
            None => Diagnostic::error(codes::NOT_A_VALUE, span, message, format!("write `|x| {name}(x)`")),
        }
    }

    /// Whether the number in `max(t, 1)` may be an axis of `t`, as Triton writes it. Nothing for other arguments.
    pub(super) fn has_axis(&mut self, args: &[ast::Arg]) -> Option<bool> {
        let [x, axis] = args else { return None };
        let ExprKind::Int(Some(axis)) = axis.value.kind else { return None };
        let rank = match self.value(&x.value).ty {
            Ty::Tile { shape, .. } => shape.dims().map_or(0, <[Poly]>::len),
            ty if ty.is_err() => MAX_RANK,
            _ => return None,
        };
        Some(usize::try_from(axis).is_ok_and(|a| a < rank))
    }
}
