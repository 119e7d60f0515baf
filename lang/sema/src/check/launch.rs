//! Launches of kernels, which only `test` blocks contain: arguments are buffers and scalars.

use tk_ops::{HostOp, Op};
use tk_syntax::ast::{self, ExprKind, Subscript};
use tk_syntax::diag::Replacement;
use tk_syntax::{Code, Diagnostic, Span, codes};

use super::Slot;
use super::args::Params;
use super::cx::Cx;
use super::subst::Subst;
use crate::hir::{CKind, CVarId, FnId, FnKind, HArg, HExpr, HKind};
use crate::poly::Poly;
use crate::types::{CTerm, Elem, Ty};

/// What is wrong with the arguments of a launch.
const OF_LAUNCH: [Code; 3] = [codes::LAUNCH_ARGS, codes::LAUNCH_DTYPE, codes::LAUNCH_RANK];

fn hidden_by_kernel(name: &str) -> String {
    format!("the kernel hides the operation `{name}`, which can be called once the kernel has another name")
}

impl Cx<'_> {
    /// The type of a tensor that a test makes.
    pub fn buffer_type(&mut self, elem: Elem, shape: Vec<Poly>, span: Span) -> Ty {
        if shape.is_empty() {
            self.error(codes::TILE_RANK, span, "a buffer has 1 to 5 dimensions, not 0", "no dimensions");
            return Ty::Err;
        }
        Ty::Buffer { elem, shape }
    }

    /// `pointers(x, y)`: a table of the addresses of buffers of one element type.
    pub fn pointers(&mut self, s: &super::builtins::Slots) -> Option<HExpr> {
        let values: Vec<HExpr> = s.rest.clone().into_iter().map(|e| self.value(e)).collect();
        let mut first: Option<Elem> = None;
        for h in &values {
            let Ty::Buffer { elem, .. } = h.ty.clone() else {
                if !h.ty.is_err() {
                    let shown = self.show(&h.ty);
                    let message = format!("`pointers` takes the addresses of buffers, but this is `{shown}`");
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, h.span, message, super::this_is(&shown));
                    let d = self.fix_by_buffer(d, h, false);
                    self.fail(d);
                }
                return None;
            };
            if let Some(want) = first.clone() {
                if !self.same_elem(&want, &elem) {
                    let (a, b) = (self.show_elem(&want), self.show_elem(&elem));
                    let message = format!("a table of addresses of `{a}` cannot hold one of `{b}`");
                    self.error(codes::TYPE_MISMATCH, h.span, message, format!("this holds `{b}`"));
                    return None;
                }
            } else {
                first = Some(elem);
            }
        }
        let Some(elem) = first else {
            self.error(codes::ARGUMENT_COUNT, s.span, "`pointers` takes at least one buffer", "no buffers");
            return None;
        };
        let shape = vec![Poly::int(values.len() as i128)];
        let elem = Elem::Ptr { pointee: Box::new(elem), mutable: true };
        self.built(s, vec![HArg::List(values)], Ty::Buffer { elem, shape }, false)
    }

    /// Reports the call of an imported file.
    pub(super) fn file_called(&mut self, span: Span) -> HExpr {
        let text = self.text(span);
        let message = format!("`{text}` is a file, not a function");
        let d = Diagnostic::error(codes::NOT_CALLABLE, span, message, "a file");
        let hidden = self.find_row(&text).map(|_| {
            format!("the imported file hides the operation `{text}`, which can be called without the import")
        });
        self.fail(hidden.into_iter().fold(d, Diagnostic::note))
    }

    /// `softmax[BLOCK = 2048](x, y)` in a test. What does not fit the kernel may be meant for the operation of its name.
    pub fn launch(&mut self, id: FnId, cargs: &[Subscript], args: &[ast::Arg], span: Span) -> HExpr {
        let before = self.p.notes.diags.len();
        let h = self.launched(id, cargs, args, span);
        let name = &self.hir().func(id).name;
        let hidden = self.find_row(name).filter(|_| self.in_test).map(|_| hidden_by_kernel(name));
        let new = self.p.notes.diags.get_mut(before..).unwrap_or_default();
        if let (Some(note), Some(d)) = (hidden, new.iter_mut().find(|d| OF_LAUNCH.contains(&d.code))) {
            d.notes.push(note);
        }
        h
    }

    fn launched(&mut self, id: FnId, cargs: &[Subscript], args: &[ast::Arg], span: Span) -> HExpr {
        let name = self.hir().func(id).name.clone();
        if !self.in_test {
            self.check_rest(args);
            let d = Diagnostic::error(
                codes::KERNEL_CALL,
                span,
                format!("the kernel `{name}` cannot be called here"),
                "kernels are launched by the host and in tests",
            );
            let d = match self.find_row(&name) {
                Some(_) => d.note(hidden_by_kernel(&name)),
                None => d.note("make it a `fn` to call it from kernels"),
            };
            return self.fail(d);
        }
        let Some(sig) = self.p.sigs.get(id.0 as usize).cloned() else { return HExpr::err(span) };
        let mut map = Subst::new();
        if !self.explicit_cargs(id, &name, cargs, &mut map, true) {
            self.check_rest(args);
            return HExpr::err(span);
        }
        let mut given: Vec<_> = map.keys().copied().collect();
        let names: Vec<&str> = sig.slots.iter().map(|s| s.0.as_str()).collect();
        let params: Vec<(String, Ty)> =
            self.hir().func(id).params.iter().map(|p| (p.name.clone(), p.ty.clone())).collect();
        let optional = sig.slots.iter().map(|(_, slot)| self.is_optional(id, slot)).collect();
        let ps = Params {
            what: format!("kernel `{name}`"),
            names,
            optional,
            rest: false,
            positional: usize::MAX,
            declared: Some(sig.span),
            launch: true,
        };
        if self.bracketless(id, &ps.names, cargs, args, span) {
            self.check_rest(args);
            return HExpr::err(span);
        }
        self.saw_args(id, &sig.slots, args);
        let Some((slots, _)) = self.match_args(&ps, args, span) else {
            self.check_rest(args);
            return HExpr::err(span);
        };
        let mut out: Vec<HExpr> = vec![];
        for ((_, slot), e) in sig.slots.iter().zip(&slots) {
            match (slot, e) {
                (Slot::Run(i), e) => {
                    let Some((pname, ty)) = params.get(*i).cloned() else { continue };
                    out.push(self.launch_arg(id, &name, &pname, &ty, *e, &mut map, span));
                }
                (Slot::Const(c), Some(e)) => {
                    let v = self.carg(*c, e);
                    map.insert(*c, v);
                    given.push(*c);
                }
                (Slot::Const(_), None) => {}
            }
        }
        // The type of a function that is given may follow from the tensors.
        let inferred: Vec<_> = map.keys().copied().collect();
        if out.iter().any(|h| h.ty.is_err())
            || !self.explicit_cargs(id, &name, cargs, &mut map, false)
            || map.values().any(|v| *v == CTerm::Err)
        {
            return HExpr::err(span);
        }
        given.extend(map.keys().filter(|c| !inferred.contains(c)));
        self.saw_call(span, id, &map);
        let cargs = map.into_iter().filter(|(c, _)| given.contains(c)).collect();
        self.mk(HKind::Launch { kernel: id, cargs, args: out }, Ty::Unit, span, false)
    }

    /// Returns true if a launch may leave out an argument.
    fn is_optional(&self, id: FnId, slot: &Slot) -> bool {
        match slot {
            Slot::Run(i) => {
                let param = self.hir().func(id).params.get(*i);
                param.is_some_and(|p| matches!(p.ty, Ty::Option(_)) || p.default.is_some())
            }
            Slot::Const(c) => self.hir().cvar(*c).default.is_some(),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one argument of one launch")]
    fn launch_arg(
        &mut self,
        id: FnId,
        kernel: &str,
        pname: &str,
        ty: &Ty,
        e: Option<&ast::Expr>,
        map: &mut Subst,
        span: Span,
    ) -> HExpr {
        let cparams = self.hir().func(id).cparams.clone();
        let Some(e) = e else {
            // The launcher knows the defaults, which may use compile-time parameters.
            return self.mk(HKind::None, ty.clone(), span, false);
        };
        if matches!(e.kind, ExprKind::None) {
            return match ty {
                Ty::Option(_) => self.mk(HKind::None, ty.clone(), e.span, true),
                _ => self.error(
                    codes::LAUNCH_DTYPE,
                    e.span,
                    format!("`{pname}` of kernel `{kernel}` is not optional"),
                    "`None` given",
                ),
            };
        }
        let h = self.value(e);
        if h.ty.is_err() {
            return h;
        }
        let inner = if let Ty::Option(t) = ty { t } else { ty };
        match (inner, h.ty.clone()) {
            (Ty::View { elem, rank, .. }, Ty::Buffer { elem: have, shape }) => {
                super::infer::bind_rank(rank, &Poly::int(shape.len() as i128), &cparams, map);
                let rank = match self.subst_ty(inner, map) {
                    Ty::View { rank, .. } => rank,
                    _ => rank.clone(),
                };
                // A rank that is not known yet is decided by another argument, or is missing.
                if self.known_rank(&rank).is_some_and(|n| n as usize != shape.len()) {
                    let (n, shown) = (shape.len(), self.show(inner));
                    let at =
                        self.hir().func(id).params.iter().find(|p| p.name == pname).map_or(span, |p| p.span);
                    let d = Diagnostic::error(
                        codes::LAUNCH_RANK,
                        e.span,
                        format!("`{pname}` of kernel `{kernel}` is `{shown}`, but this buffer has rank {n}"),
                        format!("rank {n}"),
                    )
                    .label(at, format!("rank {}", crate::show::poly(self.hir(), &rank)));
                    return self.fail(d);
                }
                self.launch_elem(id, kernel, pname, (elem, &have), &cparams, map, h)
            }
            (Ty::Tile { elem: Elem::Ptr { pointee, .. }, .. }, Ty::Buffer { elem: have, .. }) => {
                let pointee = (**pointee).clone();
                self.launch_elem(id, kernel, pname, (&pointee, &have), &cparams, map, h)
            }
            (_, Ty::Buffer { .. }) | (Ty::View { .. }, _) | (Ty::Tile { elem: Elem::Ptr { .. }, .. }, _) => {
                self.not_this_kind(kernel, pname, inner, &h)
            }
            (_, have) => {
                self.bind_ty(inner, &have, &cparams, map);
                let want = self.subst_ty(inner, map);
                self.coerce_as(
                    h,
                    &want,
                    &format!("`{pname}` of kernel `{kernel}`"),
                    Some(codes::LAUNCH_DTYPE),
                    None,
                )
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one argument of one launch")]
    fn launch_elem(
        &mut self,
        id: FnId,
        kernel: &str,
        pname: &str,
        elems: (&Elem, &Elem),
        cparams: &[crate::hir::CVarId],
        map: &mut Subst,
        h: HExpr,
    ) -> HExpr {
        let (elem, have) = elems;
        self.bind_elem(elem, have, cparams, map);
        let want = self.subst_elem(elem, map);
        if let (Elem::D(crate::types::DTerm::Param(c)), Elem::D(d)) = (elem, have)
            && cparams.contains(c)
            && !self.in_bound(*c, *d, h.span)
        {
            return HExpr::err(h.span);
        }
        // A table of addresses that may be written serves where they are only read.
        let table = matches!((&want, have), (Elem::Ptr { .. }, Elem::Ptr { .. }));
        if self.same_elem(&want, have) || table && self.elem_fits(have, &want) {
            return h;
        }
        let (a, b) = (self.show_elem(&want), self.show_elem(have));
        let at = self.hir().func(id).params.iter().find(|p| p.name == pname).map_or(h.span, |p| p.span);
        let d = Diagnostic::error(
            codes::LAUNCH_DTYPE,
            h.span,
            format!("`{pname}` of kernel `{kernel}` has elements of type `{a}`, but this buffer has `{b}`"),
            format!("this holds `{b}`"),
        )
        .label(at, format!("`{a}` here"));
        let d = self.fix_by_cast(d, (&want, have), &h);
        self.fail(d)
    }

    /// Casts what is put into memory for a launch that takes other elements.
    fn fix_by_cast(&self, d: Diagnostic, (want, have): (&Elem, &Elem), h: &HExpr) -> Diagnostic {
        let (Elem::D(to), Elem::D(_)) = (want, have) else { return d };
        if !self.castable(*to) {
            return d;
        }
        let shown = self.show_elem(want);
        match &h.kind {
            HKind::Builtin(row, args) if row.op == Op::Host(HostOp::Buffer) => match args.as_slice() {
                [HArg::Expr(values), ..] => d.fix(format!("cast to `{shown}`"), values.span, self.cast_text(values.span, &shown)),
                _given => d,
            },
            _other => d.note(format!(
                "a launch converts nothing: the tensor is made of `{shown}`, by `buffer(x as {shown})` or `empty([..], {shown})`"
            )),
        }
    }

    /// A scalar where memory is expected, or the reverse.
    fn not_this_kind(&mut self, kernel: &str, pname: &str, inner: &Ty, h: &HExpr) -> HExpr {
        let (a, b) = (self.show(inner), self.show(&h.ty));
        let d = Diagnostic::error(
            codes::LAUNCH_DTYPE,
            h.span,
            format!("`{pname}` of kernel `{kernel}` is `{a}`, but this is `{b}`"),
            super::this_is(&b),
        );
        let is_written = matches!(inner, Ty::View { mutable: true, .. })
            || matches!(inner, Ty::Tile { elem: Elem::Ptr { mutable: true, .. }, .. });
        let d = self.fix_by_buffer(d, h, is_written);
        let is_table = matches!(inner, Ty::View { elem: Elem::Ptr { .. }, .. });
        self.fail(if is_table {
            d.note("`pointers(a, b)` makes a table of the addresses of buffers")
        } else {
            d
        })
    }

    /// The report of a compile-time argument without a name.
    pub(super) fn unnamed_carg(&self, id: FnId, e: &ast::Expr, brackets: &[Subscript]) -> Diagnostic {
        if let Some(d) = self.grid_given(id, e, brackets) {
            return d;
        }
        let message = "compile-time arguments are given by name";
        let d = Diagnostic::error(codes::ARGUMENT_NAME, e.span, message, "as in `f[N = 4](..)`");
        match self.parameter_meant(id, e, brackets) {
            Some(name) => d.fix(format!("name it `{name}`"), e.span.before(), format!("{name} = ")),
            None => d,
        }
    }

    /// The compile-time parameter that an argument without a name is for: the one of its name, or the first one that can take
    /// it of those that no argument is for.
    fn parameter_meant(&self, id: FnId, e: &ast::Expr, brackets: &[Subscript]) -> Option<&str> {
        let params = &self.hir().func(id).cparams;
        let name = |c: &CVarId| self.hir().cvar(*c).name.as_str();
        let own = self.text(e.span);
        if let Some(same) = params.iter().map(name).find(|n| *n == own) {
            return Some(same);
        }
        let given = |n: &str| {
            brackets.iter().any(|b| match b {
                Subscript::Named(other, _) => other.text == n,
                Subscript::Expr(other) => self.text(other.span) == n,
                Subscript::Slice(..) => false,
            })
        };
        let kind = kind_written(e);
        let takes = |c: &&CVarId| match (&self.hir().cvar(**c).kind, kind) {
            (CKind::Fn(..), Some(Written::Function)) | (CKind::Shape, Some(Written::List)) => true,
            (CKind::Int(_) | CKind::Float(_), Some(Written::Number)) => true,
            (CKind::Bool, Some(Written::Bool)) => true,
            (CKind::DType(_), None) => self.is_dtype(e),
            (CKind::Int(_) | CKind::Float(_) | CKind::Bool | CKind::Shape | CKind::Fn(..), None) => {
                !self.is_dtype(e)
            }
            (_, _) => false,
        };
        params.iter().filter(takes).map(name).find(|n| !given(n))
    }

    /// The report of the grid in the brackets of a launch: `k[(n,)](..)`, `k[grid](..)`.
    fn grid_given(&self, id: FnId, e: &ast::Expr, brackets: &[Subscript]) -> Option<Diagnostic> {
        let named = |p: &ast::Path| matches!(p.segments.as_slice(), [n] if n.text == "grid");
        let grid = match &e.kind {
            ExprKind::Tuple(_) => true,
            ExprKind::Lambda(..) => {
                let takes_function = |c: &CVarId| matches!(self.hir().cvar(*c).kind, CKind::Fn(..));
                !self.hir().func(id).cparams.iter().any(takes_function)
            }
            ExprKind::Path(p) => named(p),
            _other => false,
        };
        if !grid || self.hir().func(id).kind != FnKind::Kernel {
            return None;
        }
        let message = "a launch passes no grid: the kernel has it, `grid(..)`";
        let d = Diagnostic::error(codes::ARGUMENT_NAME, e.span, message, "compile-time arguments go here");
        let whole = Span { start: e.span.start.saturating_sub(1), end: e.span.end + 1, ..e.span };
        let alone =
            brackets.len() == 1 && self.text(whole).starts_with('[') && self.text(whole).ends_with(']');
        Some(if alone { d.fix("remove it", whole, "") } else { d })
    }

    /// Reports `k(x, y, BLOCK = 128)`: a compile-time parameter among the arguments of a launch.
    fn bracketless(
        &mut self,
        id: FnId,
        names: &[&str],
        brackets: &[Subscript],
        args: &[ast::Arg],
        span: Span,
    ) -> bool {
        let f = self.hir().func(id);
        let of_brackets = |n: &ast::Name| {
            !names.contains(&n.text.as_str()) && f.cparams.iter().any(|c| self.hir().cvar(*c).name == n.text)
        };
        let found = args.iter().enumerate().find_map(|(i, a)| {
            let name = a.name.as_ref().filter(|n| of_brackets(n))?;
            Some((i, name, &a.value))
        });
        let Some((i, name, value)) = found else { return false };
        let message = format!("`{}` of kernel `{}` is a compile-time parameter", name.text, f.name);
        let d = Diagnostic::error(codes::LAUNCH_ARGS, name.span, message, "it is given in brackets");
        let text = self.text(span);
        let before = i.checked_sub(1).and_then(|i| args.get(i));
        let d = match (before, text.find('(')) {
            (Some(before), Some(open)) if brackets.is_empty() => {
                let at = span.start + open as u32;
                let given = format!("[{} = {}]", name.text, self.text(value.span));
                let rest = Span { start: before.value.span.end, end: value.span.end, ..span };
                let edits = vec![
                    Replacement { span: Span { start: at, end: at, ..span }, text: given },
                    Replacement { span: rest, text: String::new() },
                ];
                d.fix_all("write it in brackets", edits)
            }
            (_, _) => d.note(format!("as in `{}[{} = ..](..)`", f.name, name.text)),
        };
        self.report(d);
        true
    }

    /// Offers to put a tile into memory; not what is to be written, which nobody could read then.
    fn fix_by_buffer(&self, d: Diagnostic, h: &HExpr, is_written: bool) -> Diagnostic {
        if !matches!(h.ty, Ty::Tile { .. }) {
            return d;
        }
        let text = self.text(h.span);
        match (&h.ty, &h.kind) {
            (Ty::Tile { shape, .. }, HKind::Builtin(row, _))
                if shape.is_scalar() && matches!(row.op, Op::Random(_)) =>
            {
                let inside = text.split_once('(').and_then(|(_, t)| t.strip_suffix(')')).unwrap_or_default();
                let name = row.name;
                d.note(format!("`{name}(seed, offset)` is the random number of a kernel; a test makes a tensor of them from a shape"))
                    .fix("make a tensor", h.span, format!("buffer({name}([{inside}], f32, seed = 1))"))
            }
            (Ty::Tile { shape, .. }, _) if shape.is_scalar() => {
                let x = if text.len() > super::advice::SHOWN { "x" } else { &text };
                d.note(format!("a tensor with one element is `buffer(full([1], {x}, f32))`"))
            }
            (_, _) if is_written => d.note(
                "what a launch writes is a tensor with a name, `let y = buffer(zeros([..], f32))`, whose values are `y.tile()` afterwards",
            ),
            (_, _) => d.fix("put it into memory", h.span, format!("buffer({text})")),
        }
    }
}

/// What an argument is by how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Function,
    List,
    Number,
    Bool,
}

/// What an argument is, where that is seen without its names.
fn kind_written(e: &ast::Expr) -> Option<Written> {
    match &e.kind {
        ExprKind::Lambda(..) => Some(Written::Function),
        ExprKind::Array(_) => Some(Written::List),
        ExprKind::Int(_) | ExprKind::Float(..) => Some(Written::Number),
        ExprKind::Bool(_) => Some(Written::Bool),
        _by_name => None,
    }
}
