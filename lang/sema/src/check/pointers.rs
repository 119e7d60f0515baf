//! Advice for pointers that are used as arrays are elsewhere: offsets as arguments, `load(x, i)` and `x.load([i], [BLOCK])`,
//! and extents, which a pointer does not have.

use tk_ops::table::{ParamKind, Receiver, Row};
use tk_syntax::ast::{self, ExprKind};
use tk_syntax::{Diagnostic, Span};

use super::advice::SHOWN;
use super::builtins::Slots;
use super::cx::{Cx, Sym};
use crate::hir::HExpr;
use crate::types::{Elem, Ty};

/// What takes the place of the extent of a pointer.
const EXTENT: &str =
    "a pointer has no extent; the number of elements is an argument of its own, such as `n: i32`";

/// Returns true for a pointer, not for a tile of pointers.
fn is_pointer(ty: &Ty) -> bool {
    matches!(ty, Ty::Tile { elem: Elem::Ptr { .. }, shape } if shape.is_scalar())
}

fn is_scalar(ty: &Ty) -> bool {
    matches!(ty, Ty::Tile { shape, .. } if shape.is_scalar())
}

/// Returns true for operations on memory that a pointer leads to.
fn takes_pointer(row: &Row) -> bool {
    row.params.first().is_some_and(|p| p.kind == ParamKind::Pointer)
}

impl Cx<'_> {
    /// The type of the variable that a text names.
    fn type_of(&self, text: &str) -> Option<Ty> {
        match self.meaning(text)? {
            Sym::Local(id) => Some(self.local(id).ty.clone()),
            Sym::CVar(_) | Sym::Const(_) | Sym::Lambda(_) => None,
        }
    }

    /// The sum of a pointer and an offset.
    fn moved(&self, pointer: &str, offset: &str) -> String {
        let offset = if self.is_postfix(offset) { offset.to_string() } else { format!("({offset})") };
        format!("{pointer} + {offset}")
    }

    /// Says of a mask that is not `bool` that an argument before it, or itself, is an offset of the pointer:
    /// `load(x, i)`, `store(z, i, v)`.
    pub(super) fn offset_given(&mut self, d: Diagnostic, s: &Slots, mask: &HExpr) -> Option<Diagnostic> {
        let mut given = s.exprs.iter().map_while(|e| *e);
        let (pointer, offset) = (given.next()?, given.next()?);
        let between = Span { start: pointer.span.end, end: offset.span.start, ..pointer.span };
        if !takes_pointer(s.row) || self.text(between).trim() != "," {
            return None;
        }
        let of = self.value(pointer);
        let at = if offset.span == mask.span { mask.clone() } else { self.value(offset) };
        if !is_pointer(&of.ty) || !self.is_int(&at.ty) {
            return None;
        }
        let whole = pointer.span.to(offset.span);
        let text = self.moved(&self.text(pointer.span), &self.text(offset.span));
        // Of two numbers, the second can be a value with a condition after it, or a condition itself.
        if is_scalar(&at.ty) && self.is_int(&mask.ty) && is_scalar(&mask.ty) {
            return Some(
                d.note(format!("an offset is added to the pointer, `{text}`; a condition compares")),
            );
        }
        let short = text.len() <= 2 * SHOWN && !text.contains('\n');
        let title = if short { format!("write `{text}`") } else { "add the offset to the pointer".into() };
        Some(d.fix(title, whole, text))
    }

    /// The arguments of a function of pointers for those of a method of `base`, whose first one is an offset; and whether
    /// they say all that the method does.
    pub(super) fn offset_of_method(
        &mut self,
        row: Option<&Row>,
        base: &HExpr,
        args: &[ast::Arg],
    ) -> Option<(String, usize, bool)> {
        let row = row.filter(|r| takes_pointer(r) && is_pointer(&base.ty))?;
        let view = tk_ops::rows::find(row.name, Receiver::View)?;
        let first = args.first().filter(|a| a.name.is_none())?;
        let next = args.get(1).filter(|a| a.name.is_none());
        let pointer = self.text(base.span);
        let takes_value = row.params.get(1).is_some_and(|p| p.kind == ParamKind::Value);
        let ExprKind::Array(items) = &first.value.kind else {
            // `z.store(i, v)`, but not `z.store(v, mask)`.
            let at = self.value(&first.value);
            let more = next.map(|a| self.value(&a.value));
            let is_mask = more.is_some_and(|h| self.is_bool(&h.ty));
            let is_offset = self.is_int(&at.ty) && (!takes_value || next.is_some() && !is_mask);
            return is_offset.then(|| (self.moved(&pointer, &self.text(first.value.span)), 1, true));
        };
        let [at] = items.as_slice() else { return None };
        let sum = self.moved(&pointer, &self.text(at.span));
        let takes_shape = view.params.get(2).is_some_and(|p| p.kind == ParamKind::Shape);
        let extent = match next.map(|a| &a.value) {
            Some(shape) if takes_shape => match &shape.kind {
                ExprKind::Array(items) => match items.as_slice() {
                    [one] => Some(self.text(one.span)),
                    _ => return None,
                },
                _ => return None,
            },
            Some(value) if takes_value => match self.value(value).ty {
                Ty::Tile { shape, .. } => match shape.dims()? {
                    [] => None,
                    [one] => Some(crate::show::poly(self.hir(), one)),
                    _ => return None,
                },
                _ => None,
            },
            Some(_) | None => None,
        };
        let taken = 1 + usize::from(takes_shape && next.is_some());
        Some(match extent {
            Some(n) => (format!("{sum} + arange(0, {n})"), taken, false),
            None => (sum, taken, true),
        })
    }

    fn is_bool(&self, ty: &Ty) -> bool {
        use tk_ops::DType;
        self.dterm_of(ty) == Some(crate::types::DTerm::Known(DType::Bool))
    }

    /// Says of an index of the shape of a pointer, `x.shape[0]`, that there is no extent.
    pub(super) fn extent_of_pointer(&self, d: Diagnostic, shape: Span) -> Diagnostic {
        let text = self.text(shape);
        let of = text.strip_suffix(".shape").and_then(|x| self.type_of(x));
        if of.is_some_and(|ty| is_pointer(&ty)) { d.note(EXTENT) } else { d }
    }

    /// Says what is written for `len(x)`.
    pub(super) fn length(&self, mut d: Diagnostic, of: &str, span: Span) -> Diagnostic {
        let fixed = match self.type_of(of) {
            Some(ty) if is_pointer(&ty) => {
                d.notes = vec![EXTENT.to_string()];
                return d;
            }
            Some(Ty::Tuple(entries)) => {
                d.notes = vec!["the length of a list is known, and written".to_string()];
                entries.len().to_string()
            }
            Some(ty) if is_scalar(&ty) => return d,
            Some(_) | None if self.is_postfix(of) => format!("{of}.shape[0]"),
            Some(_) | None => return d,
        };
        d.write_instead(span, fixed)
    }
}
