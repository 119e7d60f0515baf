//! Operations only available in tests: host operations, launches, expected errors.

use tk_ops::{DType, HostOp, Op, Scalar};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, Builder, Type};

use super::args::Args;
use super::flow::{K, Mode};
use super::value::Val;
use super::{Frame, Lower, bug};
use crate::contract::{launch_name, set_text};
use crate::eval::{CTy, CVal, EvalResult};
use crate::hir::{CVarId, FnId, HBlock, HExpr};
use crate::types::CTerm;

impl Lower<'_, '_> {
    pub(super) fn host(&mut self, op: HostOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        // Functions that make inputs are reached by tests only; the checker has looked.
        if !self.test && !op.makes_inputs() {
            return Err(bug(a.span, format!("`{}` stands outside of a test", a.row.name)));
        }
        let op_ = Op::Host(op);
        if op == HostOp::AssertClose {
            let xs = [self.operand(a, "a")?, self.operand(a, "b")?];
            let shape = self.common_shape(&xs, a.span)?;
            let xs =
                xs.into_iter().map(|x| self.broadcast(x, &shape, a.span)).collect::<EvalResult<Vec<_>>>()?;
            let mut attrs = Attrs::new();
            for name in ["rtol", "atol"] {
                attrs.set(name, Attr::Scalar(Scalar::float(DType::F64, tolerance(a, name))));
            }
            self.b.inst(op_, &xs, self.in_case(attrs, a.span), &[]);
            return Ok(Val::Unit);
        }
        let CTy::One(ty) = want else { return Err(bug(a.span, format!("`{}` gives {want:?}", a.row.name))) };
        let (mut xs, mut attrs) = (vec![], Attrs::new());
        match op {
            HostOp::Buffer => xs.push(self.operand(a, "x")?),
            HostOp::Tile => {
                xs.push(self.operand(a, "x")?);
                attrs = self.in_case(attrs, a.span);
            }
            HostOp::Pointers => xs = self.operands(a, "x")?,
            HostOp::Empty => {
                let shape = a.ints("shape")?;
                if let Some((i, d)) = shape.iter().enumerate().find(|(_, d)| **d < 1) {
                    let message = format!("extent {i} of this tensor is {d}, but extents are at least 1");
                    return Err(Box::new(Diagnostic::error(
                        codes::EXTENT,
                        a.span,
                        message,
                        format!("extent {d}"),
                    )));
                }
                attrs.set("shape", Attr::Ints(shape));
            }
            HostOp::Randn => attrs.set("seed", Attr::Int(a.need_int("seed")?)),
            HostOp::Uniform => {
                xs.extend([self.operand(a, "low")?, self.operand(a, "high")?]);
                attrs.set("seed", Attr::Int(a.need_int("seed")?));
            }
            HostOp::Npy => attrs.set("path", Attr::Str(a.text("path").unwrap_or_default().to_string())),
            HostOp::AssertClose | HostOp::Launch | HostOp::ExpectError => {
                return Err(bug(a.span, format!("`{}` is no call", op.name())));
            }
        }
        Ok(Val::One(self.b.one(op_, &xs, attrs, ty.clone())))
    }

    /// A launch: the kernel is planned and specialized when the test runs.
    pub(super) fn launch(
        &mut self,
        kernel: FnId,
        cargs: &[(CVarId, CTerm)],
        args: &[HExpr],
        span: Span,
    ) -> EvalResult<Val> {
        if !self.test {
            return Err(bug(span, "a launch stands outside of a test"));
        }
        let hir = self.q.hir;
        let mut sets = vec![];
        for (id, v) in self.eval(|ev| ev.cargs(cargs, span))? {
            let text = set_text(&v).ok_or_else(|| bug(span, format!("{v} is no compile-time argument")))?;
            sets.push(format!("{}={text}", hir.cvar(id).name));
        }
        let (mut operands, mut absent) = (vec![], vec![]);
        for e in args {
            match self.expr(e)? {
                Val::Opt(None) => {
                    absent.push(operands.len() as i64);
                    self.at(e.span);
                    operands.push(self.b.undef(Type::scalar(DType::I32)));
                }
                v => v.flatten(&mut operands),
            }
        }
        self.at(span);
        let name = launch_name(hir, kernel);
        let mut attrs = Attrs::new().with("callee", Attr::Str(name));
        if !sets.is_empty() {
            attrs.set("cargs", Attr::Str(sets.join(", ")));
        }
        if !absent.is_empty() {
            attrs.set("absent", Attr::Ints(absent));
        }
        self.b.inst(Op::Host(HostOp::Launch), &operands, self.in_case(attrs, span), &[]);
        Ok(Val::Unit)
    }

    /// The attributes of an operation of a test that may fail, with the values of the compile-time loops around it.
    pub(super) fn in_case(&self, attrs: Attrs, span: Span) -> Attrs {
        let value = |(var, body): &(CVarId, Span)| {
            let is_inside = body.start <= span.start && span.end <= body.end;
            let value = self.frame.bindings.cvars.get(var).filter(|_| is_inside)?;
            let name = &self.q.hir.cvar(*var).name;
            (!name.starts_with('_')).then(|| format!("{name} = {value}"))
        };
        let values: Vec<String> = self.cases.iter().filter_map(value).collect();
        if values.is_empty() { attrs } else { attrs.with("case", Attr::Str(values.join(", "))) }
    }

    /// `assert_error "E...." { .. }`. A diagnostic of specialization is met here already; one of a launch when the
    /// test runs.
    pub(super) fn expect_error(&mut self, code: &str, body: Option<&HBlock>, span: Span) -> EvalResult<()> {
        let Some(body) = body else { return Ok(()) };
        if let Some(errors) = self.rehearse(body, span) {
            let other = errors.into_iter().find(|d| d.code.0 != code);
            return other.map_or(Ok(()), |d| Err(Box::new(d)));
        }
        let outer = self.frame.env.clone();
        self.enter(span, &[])?;
        self.block_k(body, &K::End, Mode::Nested)?;
        self.at(span);
        self.b.yield_(&[]);
        let block = self.leave();
        self.frame.env = outer;
        let attrs = Attrs::new().with("code", Attr::Str(code.to_string()));
        self.b.inst_with(Op::Host(HostOp::ExpectError), &[], attrs, vec![block], &[]);
        Ok(())
    }

    /// Lowers a block and all that it calls into copies that are thrown away; gives the diagnostics, if there are any.
    fn rehearse(&mut self, body: &HBlock, span: Span) -> Option<Vec<tk_syntax::Diagnostic>> {
        let mut q = self.q.clone();
        let known = q.instances.len();
        let (mut types, mut func) = (self.b.types.clone(), self.b.func.clone());
        let mut copy = Lower {
            b: Builder::new(&mut types, &mut func),
            q: &mut q,
            frame: Frame {
                bindings: self.frame.bindings.clone(),
                env: self.frame.env.clone(),
                ret: self.frame.ret.clone(),
                fast: self.frame.fast,
                func: self.frame.func,
                loops: vec![],
            },
            instance: self.instance,
            nesting: self.nesting,
            inlining: 0,
            test: true,
            cases: self.cases.clone(),
            notes: self.notes.clone(),
        };
        if let Err(d) = copy.enter(span, &[]).and_then(|_| copy.block_k(body, &K::End, Mode::Nested)) {
            return Some(vec![*d]);
        }
        let errors = crate::specialize::lower_from(&mut q, &mut types, known).1;
        if errors.is_empty() { None } else { Some(errors) }
    }
}

/// A tolerance, or the default of its row.
fn tolerance(a: &Args, name: &str) -> f64 {
    match a.known(name) {
        Some(CVal::Float(f)) => *f,
        Some(CVal::Int(i)) => *i as f64,
        Some(_) | None => {
            let default = a.row.params.iter().find(|p| p.name == name).and_then(|p| p.default);
            default.and_then(|d| d.parse().ok()).unwrap_or(0.0)
        }
    }
}
