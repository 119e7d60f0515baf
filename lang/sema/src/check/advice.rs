//! Advice for values that are in memory where a tile is wanted, and for positions.

use tk_ops::table::{BuiltinParam, Effects, ParamKind, Receiver, Row};
use tk_ops::{DType, DTypeSet, Op};
use tk_syntax::{Diagnostic, Span, ast, codes};

use super::builtins::Slots;
use super::cx::{Cx, Lit};
use crate::hir::{HArg, HExpr, HKind, Local};
use crate::poly::Poly;
use crate::types::{DTerm, Elem, Shape, Ty};

/// An expression in a note: a name or two. A longer one is in the line that is shown.
pub(super) const SHOWN: usize = 24;

/// How a loop takes one view after the other.
pub(super) const VIEWS: &str = "a list has compile-time values; a loop over views is `for I in static_range(2) { let v = (a, b)[I]; .. }`";

/// How a number becomes a tile.
pub(super) const ONE_ELEMENT: &str = "a tile of one element is `full([1], v, f32)`";

/// The title of a fix.
pub(super) const TRANSPOSE: &str = "transpose it with `.T`";

impl Cx<'_> {
    /// Says how a value in memory is read, where a tile is wanted.
    pub fn read_first(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        let text = self.text(h.span);
        let text = if self.is_postfix(&text) { text } else { format!("({text})") };
        // What is transposed is the tile: its box is that of the view.
        let (of, text, turned) = match (&h.kind, text.strip_suffix(".T")) {
            (HKind::ViewT(of), Some(base)) if self.is_postfix(base) => (&**of, base.to_string(), ".T"),
            (_, _) => (h, text, ""),
        };
        let short = if text.len() > SHOWN || text.contains('\n') { ".." } else { &text };
        match &h.ty {
            Ty::View { rank, .. } => {
                let (at, placeholders) = self.box_of(of, self.known_rank(rank));
                let at = format!("a view is memory; load it first: `{short}.load({at}){turned}`");
                let of = ", with the position of its first element and its extents";
                d.note(if placeholders { format!("{at}{of}") } else { at })
            }
            Ty::DType => self.number_in_brackets(d, h),
            Ty::Buffer { .. } => d.fix("read the buffer with `.tile()`", h.span, format!("{text}.tile()")),
            Ty::Tuple(_) if text.ends_with(".shape") => d.note(format!(
                "one extent is `{short}[0]`; a whole shape is compared with a list, as in `{short} == [n]`"
            )),
            Ty::Tuple(ts) if ts.len() > 1 => {
                let plain = ts.iter().all(|t| self.dterm_of(t).is_some());
                if plain && h.konst {
                    d.note(super::foreign_names::TABLE)
                } else if let Some(d) = self.table_instead(d.clone(), h) {
                    d
                } else if plain {
                    self.listed_values(d, h, ts.len())
                } else {
                    d
                }
            }
            _ => d,
        }
    }

    /// Says what takes the place of `x[x > 0]`.
    pub(super) fn selecting(&self, d: Diagnostic, index: &Ty) -> Diagnostic {
        match index {
            Ty::Tile { elem: Elem::D(DTerm::Known(DType::Bool)), shape } if !shape.is_scalar() => {
                d.note(super::foreign_names::SELECTED)
            }
            _ => d,
        }
    }

    /// Says how the extent of a tensor becomes a compile-time value.
    pub(super) fn taken_at_launch(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        if !of_extents(h) {
            return d;
        }
        let text = self.text(h.span);
        let taken = if matches!(h.kind, HKind::Extent(..)) { format!("next_pow2({text})") } else { text };
        d.note(format!(
            "a parameter in `[..]` takes it at the launch, as in `BLOCK: i32 = {taken}`; a view masks what is past its end"
        ))
    }

    /// The method of views that has the name of a function, `x.gather([i])`, called on a view of rank 1 with its position.
    pub(super) fn method_instead(&self, s: &Slots, h: &HExpr) -> Option<String> {
        let row = tk_ops::rows::find(s.row.name, Receiver::View)?;
        let given: Vec<&ast::Expr> = s.exprs.iter().flatten().copied().collect();
        let takes_positions = row.params.get(1).is_some_and(|p| p.kind == ParamKind::Positions);
        match (&h.ty, given.as_slice()) {
            (Ty::View { rank, .. }, [x, at])
                if takes_positions
                    && self.known_rank(rank) == Some(1)
                    // Positions in memory are loaded first.
                    && !self.variable(at).is_some_and(|v| matches!(self.local(v).ty, Ty::View { .. })) =>
            {
                let text = self.text(x.span);
                let x = if self.is_postfix(&text) { text } else { format!("({text})") };
                Some(format!("{x}.{}([{}])", row.name, self.text(at.span)))
            }
            (_, _) => None,
        }
    }

    /// Says how a variable could be known at compile time.
    pub(super) fn known_at_run_time(&self, d: Diagnostic, local: &Local) -> Diagnostic {
        let d = d.label(local.span, format!("`{}` is a run-time variable", local.name));
        let text = self.p.sources.get(local.span.file).map_or("", |s| &s.text);
        let before = text.get(..local.span.start as usize).unwrap_or("").trim_end();
        if local.known && before.ends_with("let") {
            let end = before.len() as u32;
            let word = Span { start: end - 3, end, ..local.span };
            return d.fix(format!("make `{}` a constant", local.name), word, "const");
        }
        if before.ends_with("for") {
            return d.note(format!(
                "`for {0} in static_range(..)` counts at compile time, and so does a list, `for {0} in [1, 2]`",
                local.name
            ));
        }
        d.note("values for shapes come from parameters in `[..]`, such as `BLOCK: i32 = next_pow2(x.shape[0])`, from literals and from `const`")
    }

    /// Reports a method of views on a buffer.
    pub fn buffer_instead(&self, row: &Row, b: &HExpr, name: &ast::Name) -> Diagnostic {
        let message = format!("`{}` is a method of views, and this is a buffer", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message, "unknown method");
        self.test_memory(d, row, b)
    }

    /// Says how a test reads and writes a buffer, where an operation on memory is called on one.
    pub fn test_memory(&self, d: Diagnostic, row: &Row, b: &HExpr) -> Diagnostic {
        let text = self.text(b.span);
        let b = if text.len() <= SHOWN && self.is_postfix(&text) { text.as_str() } else { "b" };
        match row.effects {
            Effects::Pure | Effects::Read => d.note(format!(
                "a test reads a buffer with `{b}.tile()`, a part of it with `{b}[0:4].tile()`"
            )),
            Effects::Write | Effects::Ordered => d.note(
                "kernels write buffers: launch one, or make the buffer with its elements, `buffer(tile)`",
            ),
        }
    }

    /// Says how positions of a view are read, where they are added to it as to a pointer.
    pub(super) fn gather_instead(
        &self,
        d: Diagnostic,
        view: &HExpr,
        positions: &HExpr,
        sum: Span,
    ) -> Diagnostic {
        // The operation of which the sum is the address, or the first part of it.
        let of = self.pointer.filter(|p| p.0.start == sum.start && p.0.end >= sum.end).map(|p| p.1);
        if let (Ty::Buffer { .. }, Some(row)) = (&view.ty, of) {
            return self.test_memory(d, row, view);
        }
        let single = matches!(&positions.ty, Ty::Tile { shape, .. } if shape.is_scalar());
        if !matches!(view.ty, Ty::View { .. }) || !self.is_int(&positions.ty) {
            return d;
        }
        if let (true, Some(row)) = (single, of) {
            let text = self.text(view.span);
            let v = if text.len() <= SHOWN { text.as_str() } else { "v" };
            return d.note(format!("a view is no pointer: it has a method, `{v}.{}(..)`", row.name));
        }
        if single {
            return d;
        }
        let (x, i) = (self.text(view.span), self.text(positions.span));
        let (x, i) = if x.len() + i.len() <= SHOWN { (x.as_str(), i.as_str()) } else { ("x", "i") };
        d.note(format!(
            "a view is no pointer: positions are read with `{x}.gather([{i}])` and written with `{x}.scatter([{i}], value)`"
        ))
    }

    /// Returns true for tiles and scalars of integers.
    pub(super) fn is_int(&self, ty: &Ty) -> bool {
        let Ty::Tile { elem: Elem::D(d), .. } = ty else { return false };
        match self.set_of(*d) {
            Some(set) => set.within(DTypeSet::INT),
            None => matches!(self.literal(*d), Some(Lit::Int | Lit::Whole)),
        }
    }

    /// Reports a position that is not written as a list: `y.store(i, j, v)`.
    pub(super) fn unlisted(&mut self, s: &Slots, h: &HExpr, rank: u32) -> Option<Diagnostic> {
        let Ty::Tile { shape, .. } = &h.ty else { return None };
        if let Some(d) = self.swapped(s, h) {
            return Some(d);
        }
        let takes_tiles = s.row.params.iter().any(|p| p.kind == ParamKind::Positions);
        if !self.is_int(&h.ty) {
            return None;
        }
        let shown = self.show(&h.ty);
        let message = format!("a position is a list with an entry for each axis, not `{shown}`");
        let d = Diagnostic::error(codes::POSITION, h.span, message, super::this_is(&shown));
        if !shape.is_scalar() && !takes_tiles {
            return Some(d.note(
                "`load` and `store` take the corner of a box; `gather` and `scatter` take tiles of positions",
            ));
        }
        // The first arguments, where nothing but a comma is between them, so that none has a name.
        let given: Vec<&ast::Expr> = s.exprs.iter().skip(1).map_while(|e| *e).collect();
        if let Some(d) = self.position_of_each(d.clone(), s, h) {
            return Some(d);
        }
        let entries = given.get(..rank as usize).unwrap_or(&[]);
        let plain = |w: &[&ast::Expr]| match w {
            [a, b] => self.text(Span { start: a.span.end, end: b.span.start, ..a.span }).trim() == ",",
            _ => false,
        };
        Some(match entries {
            [first, .., last] if entries.windows(2).all(plain) => self.listed(d, first.span.to(last.span)),
            [one] => self.listed(d, one.span),
            _ => d.note(format!("a position in a view of rank {rank} has {rank} entries")),
        })
    }

    fn listed(&self, d: Diagnostic, at: Span) -> Diagnostic {
        let text = self.text(at);
        d.fix("write it as a list", at, format!("[{text}]"))
    }

    /// Offers the contents of parentheses or brackets as `list`, or without any.
    pub fn relisted(&self, d: Diagnostic, e: &ast::Expr, list: bool) -> Diagnostic {
        let (ast::ExprKind::Tuple(items) | ast::ExprKind::Array(items)) = &e.kind else { return d };
        let items: Vec<String> = items.iter().map(|i| self.text(i.span)).collect();
        let (text, title) = match list {
            true => (format!("[{}]", items.join(", ")), "write it as a list"),
            false => (items.join(", "), "write the extents without brackets"),
        };
        d.fix(title, e.span, text)
    }

    /// Two rows of elements that differ in length, where all pairs may be meant: `a[:, None] * b[None, :]`.
    pub(super) fn all_pairs(
        &self,
        d: Diagnostic,
        a: (&Shape, Span),
        b: (&Shape, Span),
    ) -> Option<Diagnostic> {
        let (Some([m]), Some([n])) = (a.0.dims(), b.0.dims()) else { return None };
        if a.1.end > b.1.start {
            return None;
        }
        let part = |span: Span| {
            let text = self.text(span);
            if self.is_postfix(&text) { text } else { format!("({text})") }
        };
        let (x, y) = (part(a.1), part(b.1));
        let short = x.len() + y.len() <= 2 * SHOWN && !x.contains('\n') && !y.contains('\n');
        let (x, y) = if short { (x.as_str(), y.as_str()) } else { ("a", "b") };
        let [m, n] = [m, n].map(|p| crate::show::poly(self.hir(), p));
        Some(d.note(format!(
            "all pairs of their elements are `{x}[:, None]` with `{y}[None, :]`, of shape `[{m}, {n}]`, or `{x}[None, :]` with `{y}[:, None]`, of shape `[{n}, {m}]`"
        )))
    }

    /// Offers the transpose of a matrix whose extents are those of another one in the other order.
    pub(super) fn transposed(
        &self,
        d: Diagnostic,
        (other, at): (&Shape, Option<Span>),
        (shape, span): (&Shape, Span),
    ) -> Option<Diagnostic> {
        let (Some([m, n]), Some([p, q])) = (other.dims(), shape.dims()) else { return None };
        if !self.dims_equal(m, q) || !self.dims_equal(n, p) {
            return None;
        }
        let is_turned = self.is_transpose(span) && !(at.is_none() && self.text(span).ends_with(".T"));
        if is_turned || at.is_some_and(|at| self.is_transpose(at)) {
            return None;
        }
        let d =
            if at.is_some() { d.note("the one to transpose is not of the shape of the result") } else { d };
        Some(self.turn(d, span, ".T", TRANSPOSE))
    }

    /// Offers the transpose of an operand. That of a transpose is what there was.
    pub(super) fn turn(&self, d: Diagnostic, span: Span, turned: &str, title: &str) -> Diagnostic {
        let text = self.text(span);
        match text.strip_suffix(turned).filter(|x| self.is_postfix(x)) {
            Some(x) => d.fix(format!("remove `{turned}`"), span, x),
            None => d.fix(title, span, format!("{}{turned}", self.operand(span))),
        }
    }

    /// The quotient of a number of elements and an extent that divides it for all values of its parameters.
    pub(super) fn quotient(&self, count: &Poly, by: &Poly) -> Option<Poly> {
        let (count, by) = (self.with_facts(count), self.with_facts(by));
        let mut terms = by.terms();
        let (Some((mono, factor)), None) = (terms.next(), terms.next()) else { return None };
        let mut out = Poly::default();
        for (m, c) in count.terms() {
            let mut left = m.to_vec();
            for atom in mono {
                let found = left.iter().position(|a| a == atom)?;
                left.remove(found);
            }
            let exact = c.checked_rem(factor)? == 0;
            let term = left.into_iter().try_fold(Poly::int(c / factor), |t, a| t.mul(&Poly::atom(a)));
            out = out.add(&term.filter(|_| exact)?)?;
        }
        Some(out)
    }

    /// Reports `zeros(3, 4)`: the extents one by one, and perhaps no element type.
    pub(super) fn spread_extents(
        &mut self,
        name: &str,
        params: &[&BuiltinParam],
        args: &[ast::Arg],
        span: Span,
    ) -> bool {
        let kinds: Vec<ParamKind> = params.iter().take(2).map(|p| p.kind).collect();
        let is_extent = |a: &&ast::Arg| a.name.is_none() && matches!(a.value.kind, ast::ExprKind::Int(_));
        let count = args.iter().take_while(is_extent).count();
        let (Some(first), Some(last), [ParamKind::Shape, ParamKind::DType]) = (
            args.first(),
            count.checked_sub(1).filter(|n| *n > 0).and_then(|n| args.get(n)),
            kinds.as_slice(),
        ) else {
            return false;
        };
        let is_typed = args.get(count).is_some_and(|a| match &a.name {
            Some(n) => n.text == "dtype",
            None => self.is_dtype(&a.value),
        });
        self.check_rest(args);
        let whole = first.value.span.to(last.value.span);
        let list = format!("[{}]{}", self.text(whole), if is_typed { "" } else { ", f32" });
        let message = format!("`{name}` takes the extents as one list");
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, message, format!("{count} extents"));
        self.report(d.fix(format!("write `{name}({list})`"), whole, list));
        true
    }

    /// Labels the declarations of two compile-time values with one name, where a message shows the same text for both.
    pub(super) fn namesakes(&self, d: Diagnostic, shown: &str) -> Option<Diagnostic> {
        let sig = self.func.and_then(|id| self.p.sigs.get(id.0 as usize));
        let Some(super::SigAst::Fn(f)) = sig.map(|s| &s.ast) else { return None };
        let whole = f.sig_span.to(f.body.span);
        let is_here = |s: Span| s.file == whole.file && whole.start <= s.start && s.end <= whole.end;
        let words = shown.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|w| !w.is_empty()).find_map(|w| {
            let spans = self.hir().cvars.iter().filter(|v| v.name == w && is_here(v.span)).map(|v| v.span);
            let (first, last) = (spans.clone().min()?, spans.max()?);
            (first != last).then(|| {
                d.clone()
                    .label(first, format!("one `{w}`"))
                    .label(last, format!("another `{w}`, which hides it"))
                    .note(format!("the two are different values; one of them needs another name than `{w}`"))
            })
        })
    }

    /// Reports `reshape(x, 4, 8)`: the entries of a list one by one.
    pub(super) fn spread_list(
        &mut self,
        name: &str,
        params: &[&BuiltinParam],
        args: &[ast::Arg],
        span: Span,
    ) -> bool {
        let is_list = |p: &&BuiltinParam| matches!(p.kind, ParamKind::Shape | ParamKind::ConstInts);
        let Some(at) = params.iter().position(is_list) else { return false };
        let Some(more) = args.len().checked_sub(params.len()).filter(|n| *n > 0) else { return false };
        let entries = args.get(at..=at + more).unwrap_or(&[]);
        let ([first, .., last], false) = (entries, args.iter().any(|a| a.name.is_some())) else {
            return false;
        };
        let listed = |a: &ast::Arg| matches!(a.value.kind, ast::ExprKind::Array(_) | ast::ExprKind::Tuple(_));
        if entries.iter().any(listed) {
            return false;
        }
        self.check_rest(args);
        let list = params.get(at).map_or("", |p| p.name);
        let whole = first.value.span.to(last.value.span);
        let message = format!("`{name}` takes `{list}` as one list");
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, message, format!("{more} too many"));
        self.report(self.listed(d, whole));
        true
    }

    /// Reports `arange(8)`, which has a start as well.
    pub(super) fn without_start(&mut self, row: &tk_ops::table::Row, args: &[ast::Arg], span: Span) -> bool {
        let [one] = args else { return false };
        if (row.param("start"), row.param("end")) != (Some(0), Some(1)) || one.name.is_some() {
            return false;
        }
        if !self.value(&one.value).ty.is_err() {
            let message = format!("`{}` takes a start and an end", row.name);
            let is_open = self.text(span).trim_end_matches(')').trim_end().ends_with(',');
            let missing = if is_open { "`end` missing" } else { "`start` missing" };
            let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, message, missing);
            self.report(if is_open { d } else { d.fix("start at 0", one.value.span.before(), "0, ") });
        }
        true
    }

    /// Reports `randn(3000)` in a test: the shape of the tensor is a list.
    pub(super) fn unlisted_shape(&mut self, s: &'static tk_ops::table::Row, args: &[ast::Arg]) -> bool {
        let host = tk_ops::rows::find(s.name, tk_ops::table::Receiver::Test);
        let (Some(host), [one], true) = (host, args, self.in_test && matches!(s.op, Op::Random(_))) else {
            return false;
        };
        if one.name.is_some() {
            return false;
        }
        let h = self.value(&one.value);
        if h.ty.is_err() {
            return true;
        }
        let message = format!("`{}` of a test takes a shape, an element type and a seed", s.name);
        let shown = self.show(&h.ty);
        let mut d = Diagnostic::error(codes::ARGUMENT_COUNT, h.span, message, super::this_is(&shown));
        if host.param("seed").is_some() {
            let text = self.text(h.span);
            let fixed = match &one.value.kind {
                ast::ExprKind::Tuple(items) => {
                    let items: Vec<String> = items.iter().map(|i| self.text(i.span)).collect();
                    format!("[{}], f32, seed = 1", items.join(", "))
                }
                _ => format!("[{text}], f32, seed = 1"),
            };
            d = d.fix(format!("write `{}({fixed})`", s.name), h.span, fixed);
        }
        self.report(d);
        true
    }
    /// Checks that the element type of `randn` is a float one.
    pub(super) fn need_normal(&mut self, s: &Slots, d: DTerm) -> bool {
        let at = s.get("dtype").map_or(s.span, |e| e.span);
        let what = format!("`{}`", s.row.name);
        let DTerm::Known(known) = self.norm(d) else {
            return self.need_class(&what, d, DTypeSet::FLOAT, at);
        };
        if DTypeSet::FLOAT.has(known) {
            return true;
        }
        let message = format!("{what} is not defined for `{known}`");
        let d = Diagnostic::error(codes::CLASS, at, message, super::this_is(known.name()));
        let d = d.note(format!("it is defined for {}", DTypeSet::FLOAT));
        let d = match known.is_int() {
            true => d.note(format!("`uniform(shape, low, high, {known}, seed = 1)` draws integers")),
            false => d,
        };
        self.report(if s.get("dtype").is_some() { d.fix("use `f32`", at, "f32") } else { d });
        false
    }
    /// Says how a name in the types of a signature that is declared nowhere would be: `fn f[N: i32](a: tile[f32, N])`.
    pub(super) fn declared_in_brackets(&self, d: Diagnostic, n: &ast::Name) -> Diagnostic {
        let sig = self.func.and_then(|id| self.p.sigs.get(id.0 as usize));
        let Some(super::SigAst::Fn(f)) = sig.map(|s| &s.ast) else { return d };
        let (name, whole) = (&n.text, f.sig_span);
        if self.in_clause || n.span.start < whole.start || n.span.end > whole.end {
            return d;
        }
        let function = format!("{} {}", if f.kernel { "kernel" } else { "fn" }, f.name.text);
        if f.params.iter().any(|p| p.name.text == *name) {
            return d.note(format!(
                "the extents of a tile are known at compile time: `{function}[{name}: i32](..)` takes it in brackets, `{name}: const i32` among the arguments"
            ));
        }
        d.note(format!(
            "`{function}[{name}: i32](..)` declares a compile-time parameter, which a call infers"
        ))
    }

    /// Says how elements of a tile are visited.
    pub(super) fn visited(&self, d: Diagnostic, h: &HExpr, text: &str) -> Diagnostic {
        match &h.ty {
            Ty::Tile { shape, .. } if shape.is_scalar() => {
                d.fix("loop over a range", h.span, format!("range(0, {text})"))
            }
            Ty::Tile { .. } => {
                let x = if text.len() <= SHOWN && self.is_postfix(text) { text } else { "x" };
                d.note(format!(
                    "a tile is computed as a whole: operators take tiles, `sum({x})`, `max({x})` and `reduce` fold one, and `map(f, {x})` calls a function for each element"
                ))
            }
            _ => d,
        }
    }

    /// Says how a loop counts at compile time, where a position in a tile is the variable of one that does not.
    pub(super) fn counted_statically(&self, d: Diagnostic, h: &HExpr) -> Diagnostic {
        let HKind::Local(id) = &h.kind else { return d };
        let local = self.local(*id);
        let text = self.p.sources.get(local.span.file).map_or("", |s| &s.text);
        let before = text.get(..local.span.start as usize).unwrap_or("").trim_end();
        match before.ends_with("for") {
            true => d.note(format!("`for {} in static_range(..)` counts at compile time", local.name)),
            false => d,
        }
    }

    /// Reports `arange(0, 10, 2)`, which has no step.
    pub(super) fn with_step(&mut self, row: &Row, args: &[ast::Arg], span: Span) -> bool {
        let [start, end, step] = args else { return false };
        let takes_ends = (row.param("start"), row.param("end")) == (Some(0), Some(1));
        if !takes_ends || row.params.len() != 2 || args.iter().any(|a| a.name.is_some()) {
            return false;
        }
        self.check_rest(args);
        let number = |a: &ast::Arg| match a.value.kind {
            ast::ExprKind::Int(Some(n)) => i64::try_from(n).ok(),
            _ => None,
        };
        let by = self.text(step.value.span);
        let by = if self.is_postfix(&by) { by } else { format!("({by})") };
        let first = self.text(start.value.span);
        let count = match (number(start), number(end), number(step)) {
            (Some(a), Some(b), Some(s)) if s > 0 && b > a => ((b - a + s - 1) / s).to_string(),
            (_, _, _) => "N".to_string(),
        };
        let name = row.name;
        let is_float = args.iter().any(|a| matches!(a.value.kind, ast::ExprKind::Float(..)));
        let cast = if is_float { " as f32" } else { "" };
        let steps = format!("{name}(0, {count}){cast} * {by}");
        let steps = if first.parse() == Ok(0.0) { steps } else { format!("{first} + {steps}") };
        let message = format!("`{name}` takes a start and an end, and no step");
        let d = Diagnostic::error(codes::ARGUMENT_COUNT, span, message, "1 too many");
        self.report(d.note(format!("with a step it is `{steps}`")));
        true
    }

    /// Says how a part of fewer dimensions is loaded: `x[row].load([0], [BLOCK])`.
    pub(super) fn part_of_view(&self, d: Diagnostic, s: &Slots, rank: usize, have: usize) -> Diagnostic {
        let (Some(this), Some(at)) = (&s.this, s.get("at")) else { return d };
        let (ast::ExprKind::Array(items), Some(shape)) = (&at.kind, s.get("shape")) else { return d };
        let Some((rows, rest)) = rank.checked_sub(have).and_then(|n| items.split_at_checked(n)) else {
            return d;
        };
        let list =
            |items: &[ast::Expr]| items.iter().map(|e| self.text(e.span)).collect::<Vec<_>>().join(", ");
        let (view, shape) = (self.text(this.span), self.text(shape.span));
        if have == 0 || rest.len() != have || items.len() != rank || !self.is_postfix(&view) {
            return d;
        }
        let (row, at) = (list(rows), list(rest));
        d.note(format!("`{view}[{row}].{}([{at}], {shape})` takes a part of lower rank", s.row.name))
    }
}

/// Returns true for what is computed from extents of tensors and constants alone.
fn of_extents(h: &HExpr) -> bool {
    let known = |a: &HArg| matches!(a, HArg::Expr(e) if e.konst || of_extents(e));
    match &h.kind {
        HKind::Extent(..) => true,
        HKind::Cast(x) => of_extents(x),
        HKind::Builtin(row, args) => matches!(row.op, Op::Elementwise(_)) && args.iter().all(known),
        _ => false,
    }
}
