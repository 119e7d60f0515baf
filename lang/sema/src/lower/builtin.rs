//! The dispatch of builtins by class, elementwise operations, creation, products, random numbers, and the
//! control class (the program, `map`, hints, debugging).

use tk_ops::table::{Accuracy, ParamKind, Row};
use tk_ops::{ControlOp, CreateOp, DType, ElementwiseOp, Op, RandomOp, Scalar};
use tk_syntax::{Diagnostic, Span, codes};
use tk_tile::{Attr, Attrs, Def, ElemType, Type, TypeId, ValueId, infer};

use super::args::{Arg, Args};
use super::value::Val;
use super::{Lower, bug};
use crate::eval::{CTy, CVal, EvalResult};
use crate::hir::{FnKind, HArg, HExpr, HKind};

impl Lower<'_, '_> {
    pub(super) fn builtin(&mut self, row: &'static Row, args: &[HArg], e: &HExpr) -> EvalResult<Val> {
        if matches!(row.name, "static_assert" | "static_print") {
            self.eval(|ev| ev.expr(e))?;
            return Ok(Val::Unit);
        }
        let want = self.ty(&e.ty, e.span)?;
        if let Op::Create(_) = row.op {
            return self.create(row, args, &want, e.span);
        }
        let a = self.args(row, args, e.span)?;
        self.at(e.span);
        match row.op {
            Op::Elementwise(ElementwiseOp::Bitcast) => self.bitcast(&a, &want),
            Op::Elementwise(ElementwiseOp::Cast) => self.rounded(&a, &want),
            Op::Elementwise(op) => self.elementwise(op, &a, Some(&want)),
            Op::Create(_) => Err(bug(e.span, "a creation was taken for something else")),
            Op::Shape(op) => self.shape_op(op, &a, &want),
            Op::Memory(op) => self.memory(op, &a, &want),
            Op::Atomic(op) => self.atomic(op, &a, &want),
            Op::Reduce(_) if row.name == "softmax" => self.softmax(&a, &want),
            Op::Reduce(op) if a.flag("return_indices") => self.with_position(op, &a, &want),
            Op::Reduce(op) => self.reduce(op, &a, &want),
            Op::Scan(op) => self.scan(op, &a, &want),
            Op::Dot(op) => self.dot(op, &a, &want),
            Op::Random(op) => self.random(op, &a, &want),
            Op::Control(op) => self.control(op, &a, &want),
            Op::Host(op) => self.host(op, &a, &want),
            Op::Target => Err(bug(e.span, "no row has an operation of scheduled kernels")),
        }
    }

    /// A builtin as a function value, on values.
    pub(super) fn builtin_values(
        &mut self,
        row: &'static Row,
        values: Vec<Val>,
        span: Span,
    ) -> EvalResult<Val> {
        let Op::Elementwise(op) = row.op else {
            return Err(bug(span, format!("`{}` works on no single elements", row.name)));
        };
        self.at(span);
        self.elementwise(op, &Args::of_values(row, values, span), None)
    }

    /// `fast` where the function or the call asks for it and it can change something.
    pub(super) fn fast(&self, a: &Args, result: &Type) -> Attrs {
        let exact = matches!(a.row.accuracy, Accuracy::Exact) || !result.dtype().is_some_and(DType::is_float);
        let asked = self.frame.fast || a.flag("fast");
        if asked && !exact { Attrs::new().with("fast", Attr::Bool(true)) } else { Attrs::new() }
    }

    fn elementwise(&mut self, op: ElementwiseOp, a: &Args, want: Option<&CTy>) -> EvalResult<Val> {
        let names = a.row.params.iter().filter(|p| {
            matches!(p.kind, ParamKind::Value | ParamKind::Mask | ParamKind::Int | ParamKind::Pointer)
        });
        let mut xs = vec![];
        for p in names {
            xs.push(self.operand(a, p.name)?);
        }
        if let (ElementwiseOp::Add | ElementwiseOp::Sub, [p, offset]) = (op, xs.as_slice())
            && self.b.is_pointer(*p)
        {
            return self.pointer_add(*p, *offset, op == ElementwiseOp::Sub, a.span).map(Val::One);
        }
        let shape = match want {
            Some(CTy::One(t)) => t.shape().unwrap_or(&[]).to_vec(),
            Some(_) | None => self.common_shape(&xs, a.span)?,
        };
        let xs: Vec<ValueId> =
            xs.into_iter().map(|x| self.broadcast(x, &shape, a.span)).collect::<EvalResult<_>>()?;
        let types: Vec<&Type> = xs.iter().map(|x| self.b.type_of(*x)).collect();
        let ty = match (infer::elementwise(op, &types), want) {
            (Some(t), _) => t,
            (None, Some(CTy::One(t))) => t.clone(),
            (None, _) => return Err(bug(a.span, format!("`{}` without a result type", a.row.name))),
        };
        let attrs = self.fast(a, &ty);
        Ok(Val::One(self.b.one(Op::Elementwise(op), &xs, attrs, ty)))
    }

    fn pointer_add(&mut self, p: ValueId, offset: ValueId, minus: bool, span: Span) -> EvalResult<ValueId> {
        let shape = self.common_shape(&[p, offset], span)?;
        let p = self.broadcast(p, &shape, span)?;
        let mut offset = self.broadcast(offset, &shape, span)?;
        if minus {
            // An unsigned offset is subtracted as what it is, not as its wrapped negative.
            let d = self.b.type_of(offset).dtype().unwrap_or(DType::I64);
            if !d.is_signed() {
                offset = self.b.cast(offset, DType::I64);
            }
            offset = self.b.elementwise(ElementwiseOp::Neg, &[offset]);
        }
        let ty = self.b.type_of(p).clone();
        let op = Op::Memory(tk_ops::MemoryOp::PtrAdd);
        Ok(self.b.one(op, &[p, offset], Attrs::new(), ty))
    }

    /// The shape to which values broadcast.
    pub(super) fn common_shape(&self, xs: &[ValueId], span: Span) -> EvalResult<Vec<u32>> {
        let mut out: Vec<u32> = vec![];
        for x in xs {
            let shape = self.b.type_of(*x).shape().unwrap_or(&[]);
            if out.is_empty() {
                out = shape.to_vec();
            } else if !shape.is_empty() {
                if shape.len() != out.len() {
                    return Err(bug(span, format!("shapes {out:?} and {shape:?} do not broadcast")));
                }
                for (o, d) in out.iter_mut().zip(shape) {
                    *o = if *o == 1 { *d } else { *o };
                }
            }
        }
        Ok(out)
    }

    /// A value with this shape. The checker compared the shapes, so a misfit is a compiler bug.
    pub(super) fn broadcast(&mut self, x: ValueId, shape: &[u32], span: Span) -> EvalResult<ValueId> {
        let from = self.b.type_of(x).shape().unwrap_or(&[]);
        let fits = from.len() == shape.len() && from.iter().zip(shape).all(|(a, b)| a == b || *a == 1);
        if !(from.is_empty() || fits) {
            return Err(bug(span, format!("{from:?} does not broadcast to {shape:?}")));
        }
        Ok(self.b.broadcast(x, shape))
    }

    fn create(&mut self, row: &'static Row, args: &[HArg], want: &CTy, span: Span) -> EvalResult<Val> {
        let CTy::One(ty) = want else { return Err(bug(span, format!("`{}` makes {want:?}", row.name))) };
        let shape = ty.shape().unwrap_or(&[]);
        if row.op == Op::Create(CreateOp::Arange) {
            let a = self.args(row, args, span)?;
            self.at(span);
            let attrs = Attrs::new().with("start", Attr::Int(a.need_int("start")?));
            return Ok(Val::One(self.b.one(row.op, &[], attrs, ty.clone())));
        }
        let value = row.param("value").and_then(|i| args.get(i));
        let Some(HArg::Expr(e)) = value else {
            return match ty.elem() {
                ElemType::Scalar(d) => {
                    self.at(span);
                    Ok(Val::One(self.b.constant(Scalar::zero(*d), shape)))
                }
                ElemType::Ptr { .. } => Err(bug(span, "a tile of pointers has no zero")),
            };
        };
        if let Some(v) = self.welcome(e)? {
            self.at(span);
            return self.constant(&v, want, span);
        }
        let x = self.value(e)?;
        self.at(span);
        let x = match ty.elem() {
            ElemType::Scalar(d) => self.b.cast(x, *d),
            ElemType::Ptr { .. } => x,
        };
        self.broadcast(x, shape, span).map(Val::One)
    }

    /// A lookup table as a tile.
    pub(super) fn table(
        &mut self,
        items: &[CVal],
        d: DType,
        shape: &[u32],
        span: Span,
    ) -> EvalResult<ValueId> {
        let mut flat = vec![];
        flatten_table(items, &mut flat);
        let scalars: Option<Vec<Scalar>> = flat.iter().map(|v| v.to_scalar(d)).collect();
        let count: u64 = shape.iter().map(|n| u64::from(*n)).product();
        match scalars {
            Some(scalars) if scalars.len() as u64 == count => Ok(self.b.table(&scalars, d, shape)),
            Some(scalars) => {
                Err(bug(span, format!("a table of {} elements for the shape {shape:?}", scalars.len())))
            }
            None => Err(bug(span, "a table of something else than numbers")),
        }
    }

    fn random(&mut self, op: RandomOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let seed = self.operand(a, "seed")?;
        let seed = self.b.cast(seed, DType::U64);
        let offset = self.operand(a, "offset")?;
        let mut types = vec![];
        Self::flat_types(want, &mut types);
        let types: Vec<TypeId> = types.into_iter().map(|t| self.b.ty(t)).collect();
        let results = self.b.inst(Op::Random(op), &[seed, offset], Attrs::new(), &types);
        self.unflatten(want, &mut results.into_iter(), a.span)
    }

    /// Two numbers whose product is the extent of the grid along an axis, if the kernel's clause is such a product: analyses
    /// know from them where a program is.
    fn factors_of_grid(&mut self, axis: i64) -> Vec<ValueId> {
        let f = self.q.hir.func(self.frame.func);
        let extent = usize::try_from(axis).ok().and_then(|axis| f.contract.grid.get(axis));
        let (FnKind::Kernel, Some(HKind::Builtin(row, args))) = (f.kind, extent.map(|e| &e.kind)) else {
            return vec![];
        };
        let (Op::Elementwise(ElementwiseOp::Mul), [HArg::Expr(a), HArg::Expr(b)]) = (row.op, args.as_slice())
        else {
            return vec![];
        };
        if !is_number_of_arguments(a) || !is_number_of_arguments(b) {
            return vec![];
        }
        let mut factor = |e| {
            let v = self.scalar(e).ok()?;
            matches!(self.b.type_of(v).dtype(), Some(d) if d.is_int()).then_some(v)
        };
        factor(a).zip(factor(b)).map_or(vec![], |(a, b)| vec![a, b])
    }

    fn control(&mut self, op: ControlOp, a: &Args, want: &CTy) -> EvalResult<Val> {
        let op_ = Op::Control(op);
        match op {
            ControlOp::ProgramId | ControlOp::NumPrograms => {
                let axis = a.need_int("axis")?;
                // A grid has at most three axes.
                if !(0..3).contains(&axis) {
                    let message =
                        format!("`{}` has the axis {axis}, but a grid has the axes 0, 1 and 2", a.row.name);
                    return Err(Box::new(Diagnostic::error(codes::AXIS, a.span, message, "")));
                }
                let attrs = Attrs::new().with("axis", Attr::Int(axis));
                let factors = if op == ControlOp::ProgramId { self.factors_of_grid(axis) } else { vec![] };
                Ok(Val::One(self.b.one(op_, &factors, attrs, Type::scalar(DType::I32))))
            }
            ControlOp::Map => self.map(a, want),
            ControlOp::Assume => {
                let c = self.operand(a, "cond")?;
                self.b.inst(op_, &[c], Attrs::new(), &[]);
                Ok(Val::Unit)
            }
            ControlOp::Assert => {
                let c = self.operand(a, "cond")?;
                let mut attrs = Attrs::new();
                if let Some(m) = a.text("message").filter(|m| !m.is_empty()) {
                    attrs.set("message", Attr::Str(m.to_string()));
                }
                let compared = self.compared(c).filter(|_| self.test);
                let operands = match compared {
                    Some((text, [l, r])) => {
                        attrs.set("compares", Attr::Str(text.to_string()));
                        vec![c, l, r]
                    }
                    None => vec![c],
                };
                self.b.inst(op_, &operands, self.in_case(attrs, a.span), &[]);
                Ok(Val::Unit)
            }
            ControlOp::MultipleOf | ControlOp::MaxContiguous => {
                let x = self.operand(a, "x")?;
                let value = a.need_int("value")?;
                if value < 1 {
                    let message = format!("`{}` needs a positive number, not {value}", a.row.name);
                    return Err(Box::new(Diagnostic::error(codes::INSTANCE, a.span, message, "")));
                }
                let ty = self.b.type_of(x).clone();
                Ok(Val::One(self.b.one(op_, &[x], Attrs::new().with("value", Attr::Int(value)), ty)))
            }
            ControlOp::Print => self.print(a),
            ControlOp::GlobalTimer => {
                Ok(Val::One(self.b.one(op_, &[], Attrs::new(), Type::scalar(DType::U64))))
            }
            ControlOp::SmId => Ok(Val::One(self.b.one(op_, &[], Attrs::new(), Type::scalar(DType::I32)))),
            ControlOp::GridBarrier => {
                self.b.inst(op_, &[], Attrs::new(), &[]);
                Ok(Val::Unit)
            }
            ControlOp::For
            | ControlOp::While
            | ControlOp::If
            | ControlOp::Yield
            | ControlOp::Condition
            | ControlOp::Return
            | ControlOp::Call => Err(bug(a.span, format!("`{}` is no call", op_.name()))),
            ControlOp::InlineAsm if self.takes_assembly() => self.inline_asm(a, want),
            ControlOp::InlineAsm => {
                let message = format!("`{}` is for GPUs, and this is compiled for the CPU", a.row.name);
                let d = Diagnostic::error(codes::NOT_ON_TARGET, a.span, message, "");
                Err(Box::new(d.note("put it under a compile-time `if`, such as `if target.has_ptx { .. }`")))
            }
        }
    }

    /// The operator and the operands of the comparison of numbers that gives a condition.
    fn compared(&self, condition: ValueId) -> Option<(&'static str, [ValueId; 2])> {
        let Def::Inst(inst, _) = self.b.func.values[condition].def else { return None };
        let inst = &self.b.func.insts[inst];
        let text = match inst.op {
            Op::Elementwise(ElementwiseOp::Eq) => "==",
            Op::Elementwise(ElementwiseOp::Ne) => "!=",
            Op::Elementwise(ElementwiseOp::Lt) => "<",
            Op::Elementwise(ElementwiseOp::Le) => "<=",
            Op::Elementwise(ElementwiseOp::Gt) => ">",
            Op::Elementwise(ElementwiseOp::Ge) => ">=",
            _other => return None,
        };
        let [l, r] = *inst.operands.as_slice() else { return None };
        (!self.b.is_pointer(l)).then_some((text, [l, r]))
    }

    /// Returns true if the target accepts inline assembly.
    fn takes_assembly(&self) -> bool {
        let target = &self.frame.bindings.target;
        target.has_ptx || target.has_gcn
    }

    /// Each value has the shape of the results.
    fn inline_asm(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let parts = match want {
            CTy::Tuple(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let types: Option<Vec<&Type>> =
            parts.iter().map(|p| if let CTy::One(ty) = p { Some(ty) } else { None }).collect();
        let Some(types @ [first, ..]) = types.as_deref() else {
            return Err(bug(a.span, format!("`{}` gives {want:?}", a.row.name)));
        };
        let pack = a.int("pack").unwrap_or(1);
        if !matches!(pack, 1 | 2 | 4 | 8 | 16) {
            let message = format!("`pack` is 1, 2, 4, 8 or 16, not {pack}");
            return Err(Box::new(Diagnostic::error(codes::INSTANCE, a.span, message, "")));
        }
        let shape = first.shape().unwrap_or(&[]).to_vec();
        let xs = self.operands(a, "values")?;
        let xs: Vec<ValueId> =
            xs.into_iter().map(|x| self.broadcast(x, &shape, a.span)).collect::<EvalResult<_>>()?;
        let text = |name: &str| Attr::Str(a.text(name).unwrap_or_default().to_string());
        let mut attrs = Attrs::new().with("code", text("text")).with("constraints", text("constraints"));
        if pack > 1 {
            attrs = attrs.with("pack", Attr::Int(pack));
        }
        let types: Vec<_> = types.iter().map(|ty| self.b.ty((*ty).clone())).collect();
        let results = self.b.inst(Op::Control(ControlOp::InlineAsm), &xs, attrs, &types);
        Ok(match (want, results.as_slice()) {
            (CTy::Tuple(_), all) => Val::Tuple(all.iter().map(|v| Val::One(*v)).collect()),
            (_, [one]) => Val::One(*one),
            _ => return Err(bug(a.span, "`inline_asm` without a result")),
        })
    }

    /// The message is the text with `{}` in place of values.
    fn print(&mut self, a: &Args) -> EvalResult<Val> {
        let mut operands = vec![];
        let mut words = vec![];
        for v in a.list("values")? {
            words.push(match v {
                Val::Static(CVal::Str(s)) => escaped(&s),
                v => self.printed(&v, &mut operands, a.span)?,
            });
        }
        let attrs = Attrs::new().with("message", Attr::Str(words.join(" ")));
        self.b.inst(Op::Control(ControlOp::Print), &operands, attrs, &[]);
        Ok(Val::Unit)
    }

    /// The text for a value in the message of a `print`; a value that is known at run time only becomes an operand.
    fn printed(&mut self, v: &Val, operands: &mut Vec<ValueId>, span: Span) -> EvalResult<String> {
        Ok(match v {
            Val::Static(v) => escaped(&v.to_string()),
            Val::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.printed(p, operands, span));
                format!("({})", parts.collect::<EvalResult<Vec<_>>>()?.join(", "))
            }
            Val::Opt(None) => "none".to_string(),
            Val::Unit => "()".to_string(),
            v @ (Val::One(_) | Val::Opt(Some(_)) | Val::Never | Val::Unset) => {
                operands.push(self.one(v, span)?);
                "{}".to_string()
            }
        })
    }

    /// A scalar function for each element; on scalars, a call.
    fn map(&mut self, a: &Args, want: &CTy) -> EvalResult<Val> {
        let f = a.function("f")?;
        let xs = match a.get("x") {
            Arg::Default => vec![],
            Arg::Val(_) | Arg::List(_) | Arg::Known(_) | Arg::Word(_) => self.operands(a, "x")?,
        };
        let shape = self.common_shape(&xs, a.span)?;
        if shape.is_empty() {
            return self.apply(&f, xs.into_iter().map(Val::One).collect(), a.span);
        }
        let xs: Vec<ValueId> =
            xs.into_iter().map(|x| self.broadcast(x, &shape, a.span)).collect::<EvalResult<_>>()?;
        let scalars: Vec<TypeId> = xs.iter().map(|x| self.element_type(*x)).collect();
        let args = self.enter(a.span, &scalars)?;
        let v = self.apply(&f, args.into_iter().map(Val::One).collect(), a.span)?;
        let mut out = vec![];
        v.flatten(&mut out);
        let types: Vec<TypeId> = out
            .iter()
            .map(|x| {
                let t = infer::with_shape(self.b.type_of(*x), &shape);
                self.b.ty(t)
            })
            .collect();
        self.at(a.span);
        self.b.yield_(&out);
        let block = self.leave();
        let results = self.b.inst_with(Op::Control(ControlOp::Map), &xs, Attrs::new(), vec![block], &types);
        self.unflatten(want, &mut results.into_iter(), a.span)
    }

    /// The type of one element of a tile.
    pub(super) fn element_type(&mut self, x: ValueId) -> TypeId {
        let t = infer::with_shape(self.b.type_of(x), &[]);
        self.b.ty(t)
    }
}

/// Text that stands for itself in the message of a `print`.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn flatten_table<'v>(items: &'v [CVal], out: &mut Vec<&'v CVal>) {
    for v in items {
        match v {
            CVal::Tuple(inner) => flatten_table(inner, out),
            other => out.push(other),
        }
    }
}

/// Returns true for arithmetic on numbers and extents of arguments alone.
fn is_number_of_arguments(e: &HExpr) -> bool {
    match &e.kind {
        HKind::Int(_) | HKind::Local(_) | HKind::CVar(_) | HKind::Const(_) => true,
        HKind::Cast(of) | HKind::Extent(of, _) => is_number_of_arguments(of),
        HKind::Builtin(row, args) if matches!(row.op, Op::Elementwise(_)) => {
            args.iter().all(|arg| matches!(arg, HArg::Expr(e) if is_number_of_arguments(e)))
        }
        _other => false,
    }
}
