//! The launch contract of one specialization as closed expressions, for a launcher that has no compiler.
//!
//! [`close`] follows the clauses of a kernel under the values of its compile-time parameters: what is known becomes a
//! number, calls are written out, and what is left asks for numbers, extents and strides of the arguments and for the
//! device. Guarantees that a closed expression has the value that [`super::plan_on`] computes, where that computes one; a name that
//! nothing uses is not evaluated.

mod ops;
mod prefer;
mod tune;
mod types;

use std::collections::BTreeMap;

use tk_ops::{DType, ElementwiseOp, Op};
use tk_syntax::{Diagnostic, Span, codes};

use ops::{operation, simpler};
pub use prefer::{Part, Preferred, preferred};
pub use tune::{close_key, tuned_names};
pub use types::{Closed, ClosedArg, ClosedContract, ClosedOp, ClosedScratch, Decided};

use super::bind::{elem_param, flat_tys, rank_param};
use crate::eval::{Bindings, CTy, CVal, EvalResult, Evaluator};
use crate::hir::{
    CVarId, FnId, HArg, HBlock, HExpr, HIndex, HKind, HPat, HStmt, HStmtKind, Hir, LocalId, StaticIter,
};
use crate::lower::flat_names;
use crate::types::Ty;

/// Calls and expressions inside each other: what [`crate::eval`] takes, and its stack is the same.
const MAX_DEPTH: usize = 2 * tk_syntax::MAX_DEPTH;
/// Parts of one expression: a function that is written out again and again doubles with every call.
const MAX_PARTS: usize = 4096;

/// The contract of a kernel with these values of its compile-time parameters and presence of its optional arguments.
///
/// Fails with E1005 for a clause that has no closed form.
pub fn close(hir: &Hir, kernel: FnId, bindings: &Bindings) -> EvalResult<ClosedContract> {
    let f = hir.func(kernel);
    let mut closer = Closer::of_kernel(hir, kernel, bindings);
    let mut inferred = vec![];
    for p in &f.params {
        let mut types = vec![];
        flat_tys(hir, &p.ty, &mut types);
        inferred.extend(types.iter().filter_map(elem_param));
        inferred.extend(types.iter().filter_map(rank_param).map(|(id, _)| id));
    }
    let args = arguments(hir, kernel, bindings)?;
    let mut decided = vec![];
    for id in &f.cparams {
        decided.push((*id, closer.decided(*id, inferred.contains(id))?));
    }
    let speaks = |optionals: &[LocalId]| optionals.iter().all(|id| bindings.present.get(id) != Some(&false));
    let mut require = vec![];
    for r in f.contract.require.iter().filter(|r| speaks(&r.optionals)) {
        match closer.number(&r.cond)? {
            Closed::Int(1) => {}
            condition => require.push((condition, r.text.clone())),
        }
    }
    let mut grid = [Closed::Int(1), Closed::Int(1), Closed::Int(1)];
    for (e, axis) in f.contract.grid.iter().zip(&mut grid) {
        *axis = closer.number(e)?;
    }
    let mut scratch = vec![];
    for s in &f.contract.scratch {
        let Some(local) = f.locals.get(s.local.0 as usize) else { continue };
        let ty = Evaluator::new(hir, bindings).ty(&local.ty, local.span)?;
        let CTy::One(tk_tile::Type::Tile { elem: tk_tile::ElemType::Ptr { pointee, .. }, .. }) = ty else {
            return open(local.span, "this workspace");
        };
        let count = closer.number(&s.count)?;
        scratch.push(ClosedScratch { elem: *pointee, count, zeroed: s.zeroed, restored: s.restored });
    }
    Ok(ClosedContract { args, decided, require, grid, scratch })
}

/// The arguments of a specialization.
fn arguments(hir: &Hir, kernel: FnId, bindings: &Bindings) -> EvalResult<Vec<ClosedArg>> {
    let mut out = vec![];
    for p in &hir.func(kernel).params {
        let (mut names, mut types) = (vec![], vec![]);
        flat_names(hir, &p.ty, p.name.clone(), &mut names);
        flat_tys(hir, &p.ty, &mut types);
        let default = p.default.as_ref().filter(|_| !matches!(p.ty, Ty::Option(_)));
        let default = default.map(|e| Evaluator::new(hir, bindings).expr(e)).transpose()?;
        for (name, ty) in names.into_iter().zip(types) {
            let (ty, optional) = match Evaluator::new(hir, bindings).ty(&ty, p.span)? {
                CTy::One(ty) => (ty, false),
                CTy::Option(ty) => (ty, true),
                CTy::Unit | CTy::Never | CTy::Absent | CTy::Tuple(_) | CTy::Static => {
                    return open(p.span, "this argument");
                }
            };
            let present = !optional || bindings.present.get(&p.local) != Some(&false);
            let default = default.as_ref().map(CVal::to_string);
            out.push(ClosedArg { name, ty, optional, present, default });
        }
    }
    Ok(out)
}

/// The closed form of a part of a clause.
#[derive(Clone, Debug)]
enum Sym {
    Known(CVal),
    Number(Closed),
    /// A tensor; `axes` are those of the argument.
    Tensor {
        slot: usize,
        axes: Vec<usize>,
    },
    Tuple(Vec<Sym>),
}

struct Closer<'h> {
    hir: &'h Hir,
    bindings: Bindings,
    env: BTreeMap<LocalId, Sym>,
    depth: usize,
    parts: usize,
}

fn open<T>(span: Span, what: &str) -> EvalResult<T> {
    let message = format!("{what} has no closed form, so a launcher without a compiler cannot evaluate it");
    let note = "clauses of shipped kernels may use integers, comparisons, `if` and functions of these";
    Err(Box::new(Diagnostic::error(codes::NOT_SHIPPED, span, message, "no closed form").note(note)))
}

impl<'h> Closer<'h> {
    /// For the clauses of a kernel.
    fn of_kernel(hir: &'h Hir, kernel: FnId, bindings: &Bindings) -> Closer<'h> {
        let mut closer = Closer { hir, bindings: bindings.clone(), env: BTreeMap::new(), depth: 0, parts: 0 };
        let mut slot = 0;
        for p in &hir.func(kernel).params {
            let sym = closer.argument(&p.ty, p.local, &mut slot);
            closer.env.insert(p.local, sym);
        }
        closer
    }

    /// The closed form of a parameter of the kernel.
    fn argument(&self, ty: &Ty, local: LocalId, slot: &mut usize) -> Sym {
        let mut next = || {
            *slot += 1;
            *slot - 1
        };
        match ty {
            Ty::Tuple(items) => Sym::Tuple(items.iter().map(|t| self.argument(t, local, slot)).collect()),
            Ty::Struct(id, _) => {
                let fields = &self.hir.strukt(*id).fields;
                Sym::Tuple(fields.iter().map(|(_, t, _)| self.argument(t, local, slot)).collect())
            }
            Ty::Option(inner) => {
                if self.bindings.present.get(&local) == Some(&false) {
                    next();
                    return Sym::Known(CVal::None);
                }
                self.argument(inner, local, slot)
            }
            Ty::View { .. } => {
                let rank = match Evaluator::new(self.hir, &self.bindings).ty(ty, Span::default()) {
                    Ok(CTy::One(tk_tile::Type::View { rank, .. })) => rank as usize,
                    Ok(_) | Err(_) => 0,
                };
                Sym::Tensor { slot: next(), axes: (0..rank).collect() }
            }
            Ty::Buffer { shape, .. } => Sym::Tensor { slot: next(), axes: (0..shape.len()).collect() },
            Ty::Tile { .. } => Sym::Number(Closed::Number(next())),
            Ty::Unit
            | Ty::Never
            | Ty::Err
            | Ty::Fn(..)
            | Ty::List(..)
            | Ty::DType
            | Ty::ShapeTy
            | Ty::Str => Sym::Known(CVal::Unit),
        }
    }

    fn decided(&mut self, id: CVarId, inferred: bool) -> EvalResult<Decided> {
        let c = self.hir.cvar(id);
        if inferred {
            return Ok(Decided::ByType);
        }
        let Some(default) = &c.default else { return Ok(Decided::ByName { default: false }) };
        if !default.konst {
            return Ok(Decided::ByDefault(self.number(default)?));
        }
        let value = Evaluator::new(self.hir, &self.bindings).expr(default)?;
        Ok(Decided::ByName { default: self.bindings.cvars.get(&id) == Some(&value) })
    }

    /// A number or bool.
    fn number(&mut self, e: &HExpr) -> EvalResult<Closed> {
        match self.sym(e)? {
            Sym::Number(c) => Ok(c),
            Sym::Known(v) => known(&v).map_or_else(|| open(e.span, "this value"), Ok),
            Sym::Tensor { .. } | Sym::Tuple(_) => open(e.span, "this value"),
        }
    }

    /// The value if no argument is needed for it.
    fn value(&self, e: &HExpr) -> Option<CVal> {
        let locals = |id: LocalId| match self.env.get(&id) {
            Some(Sym::Known(v)) => Some(v.clone()),
            Some(Sym::Number(_) | Sym::Tensor { .. } | Sym::Tuple(_)) | None => None,
        };
        Evaluator::new(self.hir, &self.bindings).with_known(&locals).expr(e).ok()
    }

    fn sym(&mut self, e: &HExpr) -> EvalResult<Sym> {
        if let Some(v) = self.value(e) {
            return Ok(Sym::Known(v));
        }
        self.parts += 1;
        if self.depth >= MAX_DEPTH || self.parts > MAX_PARTS {
            return open(e.span, "an expression of this size");
        }
        self.depth += 1;
        let out = self.part(e);
        self.depth -= 1;
        out
    }

    fn part(&mut self, e: &HExpr) -> EvalResult<Sym> {
        match &e.kind {
            HKind::Local(id) => match self.env.get(id) {
                Some(s) => Ok(s.clone()),
                None => open(e.span, "this value"),
            },
            HKind::Device(fact) => Ok(Sym::Number(Closed::Device(*fact))),
            HKind::Tuple(items) | HKind::Struct(items) => {
                Ok(Sym::Tuple(items.iter().map(|i| self.sym(i)).collect::<EvalResult<_>>()?))
            }
            HKind::Field(base, i) => self.element(base, i128::from(*i), e.span),
            HKind::Index(base, at) => match at.as_slice() {
                [HIndex::At(i)] => self.element_at(base, i, e.span),
                _several => open(e.span, "this value"),
            },
            HKind::Extents { view, strides } => self.extents(view, *strides, e.span),
            HKind::Entry(base, at) => self.element_at(base, at, e.span),
            HKind::Extent(base, axis) => self.axis(base, *axis, Closed::Extent, e.span),
            HKind::Stride(base, axis) => self.axis(base, *axis, Closed::Stride, e.span),
            HKind::ViewT(base) => match self.sym(base)? {
                Sym::Tensor { slot, axes } => {
                    Ok(Sym::Tensor { slot, axes: axes.into_iter().rev().collect() })
                }
                Sym::Known(_) | Sym::Number(_) | Sym::Tuple(_) => open(e.span, "this value"),
            },
            HKind::ShortCircuit { or, lhs, rhs } => {
                let op = if *or { ClosedOp::Or } else { ClosedOp::And };
                let args = vec![self.number(lhs)?, self.number(rhs)?];
                sized(simpler(op, DType::Bool, args), e.span)
            }
            HKind::Cast(x) => self.cast(x, e),
            HKind::Builtin(row, args) => match row.op {
                Op::Elementwise(op) => self.elementwise(op, args, e),
                _other => open(e.span, &format!("`{}`", row.name)),
            },
            HKind::If { cond, then, els } => {
                let cond = self.number(cond)?;
                let els = match els {
                    Some(els) => els,
                    None => return open(e.span, "`if` without `else`"),
                };
                match cond {
                    Closed::Int(0) => self.block(els),
                    Closed::Int(_) => self.block(then),
                    cond => {
                        let arms = [self.block(then)?, self.block(els)?];
                        let [Some(then), Some(els)] = arms.map(as_number) else {
                            return open(e.span, "this `if`");
                        };
                        let args = vec![cond, then, els];
                        let dtype = self.dtype(&e.ty, e.span)?;
                        let narrow = dtype.is_float() && !matches!(dtype, DType::F32 | DType::F64);
                        if narrow {
                            return open(e.span, &format!("`if` of `{dtype}`"));
                        }
                        sized(Closed::Op { op: ClosedOp::Select, dtype, args }, e.span)
                    }
                }
            }
            HKind::IfLet { opt, bind, then, els } => match (self.sym(opt)?, els) {
                (Sym::Known(CVal::None), Some(els)) => self.block(els),
                (Sym::Known(CVal::None), None) => Ok(Sym::Known(CVal::Unit)),
                (present, _) => {
                    self.env.insert(*bind, present);
                    self.block(then)
                }
            },
            HKind::Block(b) => self.block(b),
            HKind::Call { callee, cargs, args } => {
                let cvars = Evaluator::new(self.hir, &self.bindings).cargs(cargs, e.span)?;
                let args = args.iter().map(|a| self.sym(a)).collect::<EvalResult<Vec<Sym>>>()?;
                self.call(*callee, cvars, args, e.span)
            }
            _other => open(e.span, "this value"),
        }
    }

    /// `v.shape` or `v.strides` as a whole.
    fn extents(&mut self, view: &HExpr, strides: bool, span: Span) -> EvalResult<Sym> {
        let Sym::Tensor { slot, axes } = self.sym(view)? else { return open(span, "this value") };
        let of = if strides { Closed::Stride } else { Closed::Extent };
        Ok(Sym::Tuple(axes.into_iter().map(|axis| Sym::Number(of(slot, axis))).collect()))
    }

    fn element_at(&mut self, base: &HExpr, at: &HExpr, span: Span) -> EvalResult<Sym> {
        match self.value(at).and_then(|v| v.as_int()) {
            Some(i) => self.element(base, i, span),
            None => open(span, "an element whose number depends on the launch"),
        }
    }

    fn element(&mut self, base: &HExpr, i: i128, span: Span) -> EvalResult<Sym> {
        let at = usize::try_from(i).unwrap_or(usize::MAX);
        match self.sym(base)? {
            Sym::Tuple(items) => items.get(at).cloned().map_or_else(|| open(span, "this element"), Ok),
            Sym::Known(_) | Sym::Number(_) | Sym::Tensor { .. } => open(span, "this element"),
        }
    }

    fn axis(
        &mut self,
        base: &HExpr,
        axis: u32,
        of: fn(usize, usize) -> Closed,
        span: Span,
    ) -> EvalResult<Sym> {
        if let Sym::Tensor { slot, axes } = self.sym(base)?
            && let Some(axis) = axes.get(axis as usize)
        {
            return Ok(Sym::Number(of(slot, *axis)));
        }
        open(span, "this value")
    }

    fn dtype(&self, ty: &Ty, span: Span) -> EvalResult<DType> {
        Evaluator::new(self.hir, &self.bindings).scalar_type(ty, span)
    }

    fn cast(&mut self, x: &HExpr, e: &HExpr) -> EvalResult<Sym> {
        let inner = self.sym(x)?;
        if !matches!(e.ty, Ty::Tile { .. }) {
            // `mut view` to `view`.
            return Ok(inner);
        }
        let Some(v) = as_number(inner) else { return open(e.span, "this conversion") };
        let (from, to) = (self.dtype(&x.ty, x.span)?, self.dtype(&e.ty, e.span)?);
        match (from.int_range(), to.int_range()) {
            (Some((lo, hi)), Some((to_lo, to_hi))) if to_lo <= lo && hi <= to_hi => Ok(Sym::Number(v)),
            (Some(_), Some(_)) if to.bits() <= 32 => {
                sized(Closed::Op { op: ClosedOp::Wrap, dtype: to, args: vec![v] }, e.span)
            }
            (None, Some(_)) if from == DType::Bool => Ok(Sym::Number(v)),
            // A wider float has the same value; narrow ones are bits to a launcher.
            (None, None) if from == to || (from, to) == (DType::F32, DType::F64) => Ok(Sym::Number(v)),
            _others => open(e.span, "this conversion"),
        }
    }

    fn elementwise(&mut self, op: ElementwiseOp, args: &[HArg], e: &HExpr) -> EvalResult<Sym> {
        let mut exprs = vec![];
        for arg in args.iter().take(op.arity()) {
            match arg {
                HArg::Expr(x) => exprs.push(x),
                HArg::Default | HArg::List(_) | HArg::Shape(_) | HArg::Word(_) => {
                    return open(e.span, "this call");
                }
            }
        }
        let syms = exprs.iter().map(|x| self.sym(x)).collect::<EvalResult<Vec<Sym>>>()?;
        if let (ElementwiseOp::Eq | ElementwiseOp::Ne, [a, b]) = (op, syms.as_slice())
            && let Some(equal) = lists(a, b)
        {
            let not = |c| Closed::Op { op: ClosedOp::Not, dtype: DType::Bool, args: vec![c] };
            return sized(if op == ElementwiseOp::Eq { equal } else { not(equal) }, e.span);
        }
        let Some(values) = syms.into_iter().map(as_number).collect::<Option<Vec<Closed>>>() else {
            return open(e.span, "this value");
        };
        // The condition of `select` is no operand of the type.
        let typed = if op == ElementwiseOp::Select { exprs.get(1) } else { exprs.first() };
        let Some(typed) = typed else { return open(e.span, "this value") };
        let dtype = self.dtype(&typed.ty, typed.span)?;
        match operation(op, dtype, values) {
            Some(c) => sized(c, e.span),
            None => open(e.span, &format!("`{}` of `{dtype}`", op.name())),
        }
    }

    /// The body of a function: a block that may end in `return`. One in the middle leaves what is around it, which nothing
    /// here follows.
    fn body(&mut self, b: &HBlock) -> EvalResult<Sym> {
        let (last, tail) = match (b.stmts.split_last(), &b.tail) {
            (Some((HStmt { kind: HStmtKind::Return(Some(v)), .. }, before)), None) => (Some(before), Some(v)),
            (_, Some(tail)) => match &tail.kind {
                HKind::Return(Some(v)) => (Some(b.stmts.as_slice()), Some(&**v)),
                _value => (None, None),
            },
            (Some(_) | None, None) => (None, None),
        };
        let (Some(before), Some(value)) = (last, tail) else { return self.block(b) };
        self.statements(before)?;
        self.sym(value)
    }

    /// A block whose statements only name values.
    fn block(&mut self, b: &HBlock) -> EvalResult<Sym> {
        self.statements(&b.stmts)?;
        match &b.tail {
            Some(tail) => self.sym(tail),
            None => open(b.span, "a block without a value"),
        }
    }

    fn statements(&mut self, stmts: &[HStmt]) -> EvalResult<()> {
        for stmt in stmts {
            match &stmt.kind {
                HStmtKind::Let(pattern, Some(value)) => {
                    let value = self.sym(value)?;
                    self.bind(pattern, value, stmt.span)?;
                }
                HStmtKind::Assign { local, path, value } if path.is_empty() => {
                    let value = self.sym(value)?;
                    self.env.insert(*local, value);
                }
                HStmtKind::StaticFor { var, iter, body } => self.static_for(*var, iter, body, stmt.span)?,
                _other => return open(stmt.span, "this statement"),
            }
        }
        Ok(())
    }

    /// A loop at compile time, written out.
    fn static_for(&mut self, var: CVarId, iter: &StaticIter, body: &HBlock, span: Span) -> EvalResult<()> {
        let mut evaluator = Evaluator::new(self.hir, &self.bindings);
        let values: Vec<CVal> = match iter {
            StaticIter::Range(lo, hi, step) => {
                let (lo, hi, step) = (evaluator.int(lo)?, evaluator.int(hi)?, evaluator.int(step)?);
                let next = |i: &i128| i.checked_add(step).filter(|_| step != 0);
                let inside = |i: &i128| if step > 0 { *i < hi } else { *i > hi };
                let all = std::iter::successors(Some(lo), next).take_while(inside);
                all.take(MAX_PARTS + 1).map(CVal::Int).collect()
            }
            StaticIter::List(items) => items.iter().map(|e| evaluator.expr(e)).collect::<EvalResult<_>>()?,
        };
        if values.len() > MAX_PARTS {
            return open(span, "a loop of this length");
        }
        let before = self.bindings.cvars.get(&var).cloned();
        for value in values {
            self.bindings.cvars.insert(var, value);
            self.statements(&body.stmts)?;
            if let Some(tail) = &body.tail {
                return open(tail.span, "this expression");
            }
        }
        match before {
            Some(value) => self.bindings.cvars.insert(var, value),
            None => self.bindings.cvars.remove(&var),
        };
        Ok(())
    }

    fn bind(&mut self, pattern: &HPat, value: Sym, span: Span) -> EvalResult<()> {
        match (pattern, value) {
            (HPat::Ignore, _) => Ok(()),
            (HPat::Local(id), value) => {
                self.env.insert(*id, value);
                Ok(())
            }
            (HPat::Tuple(parts), Sym::Tuple(values)) if parts.len() == values.len() => {
                parts.iter().zip(values).try_for_each(|(p, v)| self.bind(p, v, span))
            }
            (HPat::Tuple(_), _) => open(span, "this pattern"),
        }
    }

    /// The result of a function, written out.
    fn call(
        &mut self,
        callee: FnId,
        cvars: BTreeMap<CVarId, CVal>,
        args: Vec<Sym>,
        span: Span,
    ) -> EvalResult<Sym> {
        let f = self.hir.func(callee);
        if !f.contract.require.is_empty() {
            return open(span, "a function with requirements");
        }
        let mut inner = Closer {
            hir: self.hir,
            bindings: Bindings { cvars, ..Bindings::on(self.bindings.target) },
            env: f.params.iter().map(|p| p.local).zip(args).collect(),
            depth: self.depth + 8,
            parts: self.parts,
        };
        let out = inner.body(&f.body);
        self.parts = inner.parts;
        out
    }
}

/// An expression that is not too large to be written down.
fn sized(c: Closed, span: Span) -> EvalResult<Sym> {
    if c.parts() > MAX_PARTS { open(span, "an expression of this size") } else { Ok(Sym::Number(c)) }
}

fn known(v: &CVal) -> Option<Closed> {
    match v {
        CVal::Int(i) => i64::try_from(*i).ok().map(Closed::Int),
        CVal::Bool(b) => Some(Closed::Int(i64::from(*b))),
        // JSON has no other numbers.
        CVal::Float(f) => f.is_finite().then_some(Closed::Float(*f)),
        CVal::DType(_)
        | CVal::Shape(_)
        | CVal::Str(_)
        | CVal::Tuple(_)
        | CVal::Fn(_)
        | CVal::View(_)
        | CVal::Unit
        | CVal::None => None,
    }
}

fn as_number(s: Sym) -> Option<Closed> {
    match s {
        Sym::Number(c) => Some(c),
        Sym::Known(v) => known(&v),
        Sym::Tensor { .. } | Sym::Tuple(_) => None,
    }
}

/// The elements of a list of numbers.
fn items(s: &Sym) -> Option<Vec<Closed>> {
    match s {
        Sym::Tuple(items) => items.iter().cloned().map(as_number).collect(),
        Sym::Known(CVal::Tuple(items)) => items.iter().map(known).collect(),
        Sym::Known(CVal::Shape(dims)) => Some(dims.iter().map(|d| Closed::Int(*d)).collect()),
        Sym::Known(_) | Sym::Number(_) | Sym::Tensor { .. } => None,
    }
}

/// The equality of two lists of numbers; `None` for other values.
fn lists(a: &Sym, b: &Sym) -> Option<Closed> {
    let (a, b) = (items(a)?, items(b)?);
    if a.len() != b.len() {
        return Some(Closed::Int(0));
    }
    let equal = |(x, y)| Closed::Op { op: ClosedOp::Eq, dtype: DType::I64, args: vec![x, y] };
    let all = a.into_iter().zip(b).map(equal);
    Some(all.reduce(|x, y| simpler(ClosedOp::And, DType::Bool, vec![x, y])).unwrap_or(Closed::Int(1)))
}
