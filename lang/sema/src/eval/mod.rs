//! The evaluation of compile-time expressions of the HIR, and of launch clauses.
//!
//! Requires a checked program. Guarantees that evaluation ends, that scalar arithmetic is that of [`tk_ops::eval`]
//! (so a compile-time value is what the interpreter would compute), and that whatever has no value is a diagnostic: a
//! division by zero, a signed overflow, a value that only exists at run time.

mod builtin;
mod parts;
mod stmt;
mod terms;
mod value;

use std::collections::BTreeMap;

use tk_ops::{DType, Scalar};
use tk_syntax::{Diagnostic, Span, codes};

use crate::hir::{CVarId, ConstId, FnId, HArg, HExpr, HIndex, HKind, Hir, LocalId};
use crate::target::DeviceFact;
use crate::types::{Elem, Ty};

pub use terms::CTy;
pub(crate) use value::show_float;
pub use value::{Bindings, CVal, FnVal, HostValues, Lambda, TensorArg, key_of};

use stmt::Flow;

/// The result of an evaluation step.
pub type EvalResult<T> = Result<T, Box<Diagnostic>>;

/// Loop iterations, statements and calls of one evaluation. Filling a table of 2^16 entries takes half of it, and
/// a debug build needs about a second for all of it.
const MAX_STEPS: u64 = 1_000_000;

/// Nested expressions of one evaluation: twice the depth of a syntax tree. A debug build spends up to 3 KiB a level,
/// and test threads have 2 MiB.
const MAX_DEPTH: usize = 2 * tk_syntax::MAX_DEPTH;

/// The depth that a call adds to expressions: it runs a whole body.
const CALL_DEPTH: usize = 8;

/// Gives the values of variables that are known from outside.
pub(crate) type Known<'a> = &'a dyn Fn(LocalId) -> Option<CVal>;

/// Evaluates expressions under the bindings of one function.
pub struct Evaluator<'a> {
    /// The program.
    pub hir: &'a Hir,
    /// Values of the compile-time variables.
    pub bindings: &'a Bindings,
    /// Facts of a launch, in clauses.
    pub host: Option<&'a HostValues>,
    /// The messages of `static_print`.
    pub notes: Vec<Diagnostic>,
    /// Variables of compile-time loops inside the evaluated code; they hide those of `bindings`.
    cvars: BTreeMap<CVarId, CVal>,
    locals: BTreeMap<LocalId, CVal>,
    known: Option<Known<'a>>,
    steps: u64,
    limit: u64,
    depth: usize,
}

/// A diagnostic about an evaluation.
pub(crate) fn fail<T>(span: Span, message: impl Into<String>) -> EvalResult<T> {
    Err(Box::new(Diagnostic::error(codes::CONST_EVAL, span, message, "")))
}

/// A diagnostic about a compiler bug.
pub(crate) fn bug(pass: &str, span: Span, what: impl std::fmt::Display) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(
        codes::INTERNAL,
        span,
        format!("internal error in {pass}: {what}"),
        "while compiling this",
    ))
}

impl<'a> Evaluator<'a> {
    /// Evaluates under these bindings.
    pub fn new(hir: &'a Hir, bindings: &'a Bindings) -> Self {
        Evaluator {
            hir,
            bindings,
            host: None,
            notes: vec![],
            cvars: BTreeMap::new(),
            locals: BTreeMap::new(),
            known: None,
            steps: 0,
            limit: MAX_STEPS,
            depth: 0,
        }
    }

    /// The same with the facts of a launch.
    pub fn with_host(mut self, host: &'a HostValues) -> Self {
        self.host = Some(host);
        self
    }

    /// The same with variables whose values are known.
    pub(crate) fn with_known(mut self, known: Known<'a>) -> Self {
        self.known = Some(known);
        self
    }

    /// The same with fewer steps, where a value is welcome and not needed.
    pub(crate) fn with_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// The value of an expression.
    pub fn expr(&mut self, e: &HExpr) -> EvalResult<CVal> {
        match self.flow(e)? {
            Flow::Next(v) => Ok(v),
            Flow::Break | Flow::Continue | Flow::Return(_) => {
                fail(e.span, "this leaves its function or loop in the middle of an expression")
            }
        }
    }

    /// The value of an expression that is a condition.
    pub fn condition(&mut self, e: &HExpr) -> EvalResult<bool> {
        match self.expr(e)? {
            CVal::Bool(b) => Ok(b),
            other => Err(bug("evaluation", e.span, format!("a condition has the value {other}"))),
        }
    }

    /// The value of an expression that is an integer.
    pub fn int(&mut self, e: &HExpr) -> EvalResult<i128> {
        match self.expr(e)? {
            CVal::Int(i) => Ok(i),
            other => Err(bug("evaluation", e.span, format!("an integer has the value {other}"))),
        }
    }

    /// The value of a compile-time variable.
    pub fn cvar(&self, id: CVarId, span: Span) -> EvalResult<CVal> {
        match self.cvars.get(&id).or_else(|| self.bindings.cvars.get(&id)) {
            Some(v) => Ok(v.clone()),
            None => {
                let name = self.hir.cvars.get(id.0 as usize).map_or("?", |c| c.name.as_str());
                fail(span, format!("`{name}` has no value here"))
            }
        }
    }

    fn step(&mut self, span: Span) -> EvalResult<()> {
        self.steps += 1;
        if self.steps > self.limit {
            return fail(span, format!("compile-time evaluation takes more than {} steps", self.limit));
        }
        Ok(())
    }

    /// Evaluates an expression that may also leave a loop or function.
    fn flow(&mut self, e: &HExpr) -> EvalResult<Flow> {
        if self.depth >= MAX_DEPTH {
            return fail(e.span, "compile-time evaluation nests too deeply");
        }
        self.depth += 1;
        let out = match &e.kind {
            HKind::If { cond, then, els } => {
                let arm = if self.condition(cond)? { Some(then) } else { els.as_ref() };
                arm.map_or(Ok(Flow::Next(CVal::Unit)), |b| self.block(b))
            }
            HKind::IfLet { opt, bind, then, els } => match self.expr(opt)? {
                CVal::None => els.as_ref().map_or(Ok(Flow::Next(CVal::Unit)), |b| self.block(b)),
                present => {
                    self.locals.insert(*bind, present);
                    self.block(then)
                }
            },
            HKind::Block(b) => self.block(b),
            HKind::Return(v) => {
                let v = v.as_ref().map_or(Ok(CVal::Unit), |v| self.expr(v))?;
                Ok(Flow::Return(v))
            }
            _value => self.plain(e).map(Flow::Next),
        };
        self.depth -= 1;
        out
    }

    /// Evaluates an expression that has no control flow of its own.
    fn plain(&mut self, e: &HExpr) -> EvalResult<CVal> {
        let span = e.span;
        match &e.kind {
            HKind::Int(_) | HKind::Float(_) => self.literal(e),
            HKind::Bool(b) => Ok(CVal::Bool(*b)),
            HKind::Str(s) => Ok(CVal::Str(s.clone())),
            HKind::None => Ok(CVal::None),
            HKind::Unit => Ok(CVal::Unit),
            HKind::Local(id) => self.local(*id, span),
            HKind::CVar(id) => self.cvar(*id, span),
            HKind::Const(id) => self.constant(*id, e),
            HKind::DType(d) => Ok(CVal::DType(self.dterm(*d, span)?)),
            HKind::DTypeFact(d, fact) => {
                let d = self.dterm(*d, span)?;
                dtype_fact(d, fact).map_or_else(|| fail(span, format!("`{d}` has no `{fact}`")), Ok)
            }
            HKind::Shape(items) => self.shape_value(items),
            HKind::Target(fact) => Ok(CVal::of_fact((fact.on)(&self.bindings.target))),
            HKind::Device(fact) => self.device_fact(*fact, span),
            HKind::Table(list) => self.expr(list),
            HKind::Tuple(items) | HKind::Struct(items) => {
                Ok(CVal::Tuple(items.iter().map(|i| self.expr(i)).collect::<EvalResult<_>>()?))
            }
            HKind::Field(base, i) => self.element(base, i128::from(*i), span),
            HKind::Index(base, at) => {
                let [HIndex::At(i)] = at.as_slice() else { return self.runtime(span) };
                let i = self.int(i)?;
                self.element(base, i, span)
            }
            HKind::Builtin(row, args) => self.builtin(row, args, e),
            HKind::ShortCircuit { or, lhs, rhs } => {
                let first = self.condition(lhs)?;
                Ok(CVal::Bool(if first == *or { first } else { self.condition(rhs)? }))
            }
            HKind::Cast(x) => self.cast(x, e),
            HKind::Extent(base, axis) => self.extent(base, *axis, span),
            HKind::Stride(base, axis) => {
                let CVal::View(v) = self.expr(base)? else { return self.runtime(span) };
                pick(&v.strides, *axis, span)
            }
            HKind::Extents { view, strides } => self.extents_of(view, *strides, span),
            HKind::Entry(list, at) => self.entry(list, at, span),
            HKind::ViewT(base) => {
                let CVal::View(mut v) = self.expr(base)? else { return self.runtime(span) };
                v.shape.reverse();
                v.strides.reverse();
                Ok(CVal::View(v))
            }
            HKind::Call { callee, cargs, args } => {
                let cvars = self.cargs(cargs, span)?;
                let args = args.iter().map(|a| self.expr(a)).collect::<EvalResult<_>>()?;
                self.call(*callee, cvars, args, span)
            }
            HKind::CallValue { callee, args } => self.call_value(callee, args, e),
            HKind::FnRef(id, cargs) => {
                let cvars = self.cargs(cargs, span)?;
                Ok(CVal::Fn(FnVal::Fn { id: *id, name: self.hir.func(*id).name.clone(), cvars }))
            }
            HKind::BuiltinRef(row) => Ok(CVal::Fn(FnVal::Builtin(row))),
            HKind::Lambda { params, body } => Ok(CVal::Fn(FnVal::Lambda(std::sync::Arc::new(Lambda {
                params: params.clone(),
                body: (**body).clone(),
                cvars: self.visible_cvars(),
            })))),
            HKind::Err => Err(bug("evaluation", span, "a hole was left in a checked function")),
            HKind::If { .. } | HKind::IfLet { .. } | HKind::Block(_) | HKind::Return(_) => {
                Err(bug("evaluation", span, "control flow in the wrong place"))
            }
            HKind::Transpose(_) | HKind::SubView(..) | HKind::ViewPtr(_) | HKind::Launch { .. } => {
                self.runtime(span)
            }
        }
    }

    /// A constant, in integers or in floats.
    fn constant(&mut self, id: ConstId, e: &HExpr) -> EvalResult<CVal> {
        let hir = self.hir;
        let constant = hir.constant(id);
        // One of the two where that is enough: a chain of constants would double the work at each link.
        let of_scalar = matches!(e.ty, Ty::Tile { .. }) && constant.real.is_some();
        let is_float = of_scalar && self.scalar_type(&e.ty, e.span)?.is_float();
        let of_list = constant.real.as_ref().filter(|_| !of_scalar);
        let value = constant.real.as_ref().filter(|_| is_float).unwrap_or(&constant.value);
        let v = self.expr(value)?;
        let real = of_list.map(|r| self.expr(r)).transpose()?;
        self.retyped(v, real, &e.ty, e.span)
    }

    /// `v.shape` or `v.strides` as a whole.
    fn extents_of(&mut self, view: &HExpr, strides: bool, span: Span) -> EvalResult<CVal> {
        let CVal::View(v) = self.expr(view)? else { return self.runtime(span) };
        let list = if strides { v.strides } else { v.shape };
        Ok(CVal::Tuple(list.into_iter().map(|n| CVal::Int(n.into())).collect()))
    }

    fn entry(&mut self, list: &HExpr, at: &HExpr, span: Span) -> EvalResult<CVal> {
        let at = self.int(at)?;
        let CVal::Tuple(items) = self.expr(list)? else { return self.runtime(span) };
        match usize::try_from(at).ok().and_then(|i| items.get(i)) {
            Some(v) => Ok(v.clone()),
            None => Err(no_entry(at, items.len(), span)),
        }
    }

    fn device_fact(&self, fact: DeviceFact, span: Span) -> EvalResult<CVal> {
        match (self.host, fact) {
            (Some(h), DeviceFact::Sms) => Ok(CVal::Int(h.sms.into())),
            (Some(h), DeviceFact::Smem) => Ok(CVal::Int(h.smem.into())),
            (None, f) => fail(span, format!("`device.{}` is only known in clauses", f.name())),
        }
    }

    fn visible_cvars(&self) -> BTreeMap<CVarId, CVal> {
        let mut all = self.bindings.cvars.clone();
        all.extend(self.cvars.iter().map(|(id, v)| (*id, v.clone())));
        all
    }

    fn runtime<T>(&self, span: Span) -> EvalResult<T> {
        let when = if self.host.is_some() { "in a clause" } else { "at compile time" };
        fail(span, format!("this value is not known {when}"))
    }

    /// The value of a variable that is known here or from a launch.
    fn held(&self, id: LocalId) -> Option<&CVal> {
        self.locals.get(&id).or_else(|| self.host.and_then(|h| h.locals.get(&id)))
    }

    fn local(&self, id: LocalId, span: Span) -> EvalResult<CVal> {
        match self.held(id).cloned().or_else(|| self.known.and_then(|known| known(id))) {
            Some(v) => Ok(v),
            None => self.runtime(span),
        }
    }

    fn literal(&mut self, e: &HExpr) -> EvalResult<CVal> {
        let dtype = self.scalar_type(&e.ty, e.span)?;
        let value = match &e.kind {
            HKind::Int(i) => CVal::Int(*i),
            HKind::Float(f) => CVal::Float(*f),
            _other => return Err(bug("evaluation", e.span, "no literal")),
        };
        match value.to_scalar(dtype) {
            Some(s) => Ok(CVal::of_scalar(s)),
            None => Err(bug("evaluation", e.span, format!("a literal of type {dtype}"))),
        }
    }

    fn shape_value(&mut self, items: &[HExpr]) -> EvalResult<CVal> {
        let mut dims = vec![];
        for item in items {
            let i = self.int(item)?;
            dims.push(i64::try_from(i).or_else(|_| fail(item.span, format!("{i} is no extent")))?);
        }
        Ok(CVal::Shape(dims))
    }

    /// The element type of a scalar expression.
    pub(crate) fn scalar_type(&mut self, ty: &Ty, span: Span) -> EvalResult<DType> {
        match ty {
            Ty::Tile { elem: Elem::D(d), .. } => self.dterm(*d, span),
            other => Err(bug(
                "evaluation",
                span,
                format!("{} is no scalar type", crate::show::ty(self.hir, other)),
            )),
        }
    }

    /// Element `i` of a tuple, struct or list of extents.
    fn element(&mut self, base: &HExpr, i: i128, span: Span) -> EvalResult<CVal> {
        let missing = |n: usize| fail(span, format!("there is no element {i}: there are {n}"));
        let at = usize::try_from(i).unwrap_or(usize::MAX);
        match self.expr(base)? {
            CVal::Tuple(items) => items.get(at).cloned().map_or_else(|| missing(items.len()), Ok),
            CVal::Shape(dims) => {
                dims.get(at).map_or_else(|| missing(dims.len()), |d| Ok(CVal::Int((*d).into())))
            }
            CVal::Int(_)
            | CVal::Float(_)
            | CVal::Bool(_)
            | CVal::DType(_)
            | CVal::Str(_)
            | CVal::Fn(_)
            | CVal::View(_)
            | CVal::Unit
            | CVal::None => self.runtime(span),
        }
    }

    pub(crate) fn extent(&mut self, base: &HExpr, axis: u32, span: Span) -> EvalResult<CVal> {
        match &base.ty {
            Ty::Tile { shape, .. } => {
                let dims = self.shape(shape, span)?;
                pick(&dims, axis, span)
            }
            Ty::Buffer { shape, .. } => match shape.get(axis as usize) {
                Some(p) => Ok(CVal::Int(self.poly(p, span)?)),
                None => fail(span, format!("there is no axis {axis}")),
            },
            _view => {
                // Clauses ask for many extents of arguments: these are not copied.
                if let HKind::Local(id) = &base.kind
                    && let Some(CVal::View(v)) = self.held(*id)
                {
                    return pick(&v.shape, axis, span);
                }
                let CVal::View(v) = self.expr(base)? else { return self.runtime(span) };
                pick(&v.shape, axis, span)
            }
        }
    }

    /// Calls a known function.
    pub(crate) fn call(
        &mut self,
        id: FnId,
        cvars: BTreeMap<CVarId, CVal>,
        args: Vec<CVal>,
        span: Span,
    ) -> EvalResult<CVal> {
        let hir = self.hir;
        let f = hir.func(id);
        if f.broken {
            return Err(bug("evaluation", span, format!("`{}` has errors", f.name)));
        }
        let bindings = self.bindings.inner(cvars);
        let locals = f.params.iter().map(|p| p.local).zip(args).collect();
        self.nested(&bindings, locals, span, |inner| {
            inner.check_requirements(f, span)?;
            match inner.block(&f.body)? {
                Flow::Next(v) | Flow::Return(v) => Ok(v),
                Flow::Break | Flow::Continue => Err(bug("evaluation", span, "a loop exit left its function")),
            }
        })
    }

    fn check_requirements(&mut self, f: &crate::hir::HFn, span: Span) -> EvalResult<()> {
        for r in &f.contract.require {
            if !self.condition(&r.cond)? {
                let message = format!("`{}` requires `{}`", f.name, r.text);
                let d = Diagnostic::error(codes::INSTANCE, r.cond.span, message, "does not hold");
                return Err(Box::new(d.label(span, "called here")));
            }
        }
        Ok(())
    }

    /// Calls a function value.
    pub(crate) fn apply(&mut self, f: &FnVal, args: Vec<CVal>, span: Span) -> EvalResult<CVal> {
        match f {
            FnVal::Fn { id, cvars, .. } => self.call(*id, cvars.clone(), args, span),
            FnVal::Lambda(l) => {
                let bindings = self.bindings.inner(l.cvars.clone());
                let locals = l.params.iter().copied().zip(args).collect();
                self.nested(&bindings, locals, span, |inner| match inner.flow(&l.body)? {
                    Flow::Next(v) | Flow::Return(v) => Ok(v),
                    Flow::Break | Flow::Continue => {
                        Err(bug("evaluation", span, "a loop exit left its lambda"))
                    }
                })
            }
            FnVal::Builtin(row) => Err(bug("evaluation", span, format!("`{}` without types", row.name))),
        }
    }

    fn call_value(&mut self, callee: &HExpr, args: &[HExpr], e: &HExpr) -> EvalResult<CVal> {
        let CVal::Fn(f) = self.expr(callee)? else {
            return Err(bug("evaluation", e.span, "what is called is no function"));
        };
        if let FnVal::Builtin(row) = f {
            let args: Vec<HArg> = args.iter().cloned().map(HArg::Expr).collect();
            return self.builtin(row, &args, e);
        }
        let args = args.iter().map(|a| self.expr(a)).collect::<EvalResult<_>>()?;
        self.apply(&f, args, e.span)
    }

    /// Runs something under other bindings, with the same limits.
    fn nested<T>(
        &mut self,
        bindings: &Bindings,
        locals: BTreeMap<LocalId, CVal>,
        span: Span,
        run: impl FnOnce(&mut Evaluator<'_>) -> EvalResult<T>,
    ) -> EvalResult<T> {
        self.step(span)?;
        let mut inner = Evaluator::new(self.hir, bindings).with_limit(self.limit);
        inner.locals = locals;
        (inner.steps, inner.depth) = (self.steps, self.depth + CALL_DEPTH);
        let out = run(&mut inner);
        self.steps = inner.steps;
        self.notes.append(&mut inner.notes);
        out
    }
}

fn pick(list: &[i64], axis: u32, span: Span) -> EvalResult<CVal> {
    match list.get(axis as usize) {
        Some(v) => Ok(CVal::Int((*v).into())),
        None => fail(span, format!("axis {axis} is out of range: the rank is {}", list.len())),
    }
}

/// `T.bits`, `T.min`, `T.max`; the limits of floats are their finite ones.
fn dtype_fact(d: DType, fact: &str) -> Option<CVal> {
    let (lo, hi) = match (d.int_range(), largest(d)) {
        (Some((lo, hi)), _) => (CVal::Int(lo), CVal::Int(hi)),
        (None, Some(max)) => (CVal::Float(-max), CVal::Float(max)),
        (None, None) => (CVal::Bool(false), CVal::Bool(true)),
    };
    if fact == "bits" {
        return Some(CVal::Int(d.bits().into()));
    }
    [("min", lo), ("max", hi)].into_iter().find(|(name, _)| *name == fact).map(|(_, v)| v)
}

/// The largest finite value of a float type.
fn largest(d: DType) -> Option<f64> {
    match d.format() {
        Some(f) => Scalar::from_bits(d, f.largest).as_f64(),
        None => (d == DType::E8M0).then(|| 2f64.powi(127)),
    }
}

/// A position outside of a list, where a function is specialized.
pub(crate) fn no_entry(at: i128, count: usize, span: Span) -> Box<Diagnostic> {
    let message = format!("there is no dimension {at} of {count}");
    Box::new(Diagnostic::error(codes::AXIS, span, message, "counted from 0"))
}
