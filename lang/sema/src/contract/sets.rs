//! Compile-time arguments that are given by name: `--set BM=64`, and those of launches in tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use tk_ops::table::{Receiver, Row, Scheme};
use tk_ops::{DType, DTypeSet, Scalar};
use tk_syntax::codes;

use super::{Planner, Values, refuse};
use crate::check::cx::Cx;
use crate::eval::{CTy, CVal, EvalResult, Evaluator, FnVal, Lambda};
use crate::hir::{CKind, CVarId, FnId, FnKind, HExpr, HFn, HKind, Hir};
use crate::launch::is_launch_option;
use crate::types::{DTerm, Elem, Shape, Ty};
use crate::visit::{each_expr, each_in_block};

/// A compile-time argument as text says it.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    /// `64`
    Int(i128),
    /// `0.5`
    Float(f64),
    /// `true`
    Bool(bool),
    /// `f16`
    DType(DType),
    /// `[4, 8]`
    Shape(Vec<i64>),
    /// The name of a function, or a lambda of [`Hir::given`].
    Fn(String),
    /// A lambda of the program by its place, in launches of tests: `lambda(0:120; 3=f16)`.
    Lambda(LambdaRef),
}

/// A lambda by file and first byte, with the compile-time variables that it captured.
#[derive(Clone, Debug, PartialEq)]
pub struct LambdaRef {
    file: u32,
    start: u32,
    captured: Vec<(u32, SetValue)>,
}

impl SetValue {
    /// Returns true if it is one, by name or as written.
    pub(super) fn is_function(&self) -> bool {
        match self {
            SetValue::Fn(_) | SetValue::Lambda(_) => true,
            SetValue::Int(_)
            | SetValue::Float(_)
            | SetValue::Bool(_)
            | SetValue::DType(_)
            | SetValue::Shape(_) => false,
        }
    }

    /// Reads a value; what is nothing else is the name of a function.
    pub fn parse(text: &str) -> SetValue {
        let text = text.trim();
        if let Ok(b) = text.parse() {
            return SetValue::Bool(b);
        }
        if let Ok(i) = text.replace('_', "").parse() {
            return SetValue::Int(i);
        }
        if let Some(d) = DType::parse(text) {
            return SetValue::DType(d);
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let items = inner.split(',').map(str::trim).filter(|t| !t.is_empty());
            if let Ok(dims) = items.map(str::parse).collect() {
                return SetValue::Shape(dims);
            }
        }
        if let Some(l) = LambdaRef::parse(text) {
            return SetValue::Lambda(l);
        }
        let number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'))
            || matches!(text, "inf" | "nan");
        match text.parse() {
            Ok(f) if number => SetValue::Float(f),
            Ok(_) | Err(_) => SetValue::Fn(text.to_string()),
        }
    }
}

impl std::fmt::Display for SetValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetValue::Int(i) => write!(f, "{i}"),
            SetValue::Float(v) => f.write_str(&crate::eval::show_float(*v)),
            SetValue::Bool(b) => write!(f, "{b}"),
            SetValue::DType(d) => write!(f, "{d}"),
            SetValue::Shape(s) => write!(f, "{s:?}"),
            SetValue::Fn(n) => f.write_str(n),
            SetValue::Lambda(_) => f.write_str("|..|"),
        }
    }
}

impl LambdaRef {
    fn parse(text: &str) -> Option<LambdaRef> {
        let inner = text.strip_prefix("lambda(")?.strip_suffix(')')?;
        let (place, captured) = inner.split_once(';')?;
        let (file, start) = place.split_once(':')?;
        let captured = parse_cargs(captured).into_iter().map(|(id, v)| Some((id.parse().ok()?, v)));
        Some(LambdaRef {
            file: file.parse().ok()?,
            start: start.parse().ok()?,
            captured: captured.collect::<Option<_>>()?,
        })
    }
}

/// The text of a compile-time argument that [`SetValue::parse`] reads; `None` for anything else.
pub(crate) fn set_text(v: &CVal) -> Option<String> {
    match v {
        CVal::Fn(FnVal::Lambda(l)) => {
            let captured: Option<Vec<String>> =
                l.cvars.iter().map(|(id, v)| Some(format!("{}={}", id.0, set_text(v)?))).collect();
            let at = l.body.span;
            Some(format!("lambda({}:{}; {})", at.file.0, at.start, captured?.join(", ")))
        }
        CVal::Int(_) | CVal::Float(_) | CVal::Bool(_) | CVal::DType(_) | CVal::Shape(_) | CVal::Fn(_) => {
            Some(v.to_string())
        }
        CVal::Str(_) | CVal::Tuple(_) | CVal::View(_) | CVal::Unit | CVal::None => None,
    }
}

/// The parts of `BM=64, S=[2, 3], ACT=relu`: a comma in brackets belongs to a value.
pub fn split_cargs(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (vec![], 0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text.get(start..i).unwrap_or(""));
                start = i + 1;
            }
            _other => {}
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

/// Reads the arguments of a launch in a test: `BM=64, S=[2, 3], ACT=relu`.
pub fn parse_cargs(text: &str) -> Vec<(String, SetValue)> {
    let pair = |p: &str| p.split_once('=').map(|(n, v)| (n.trim().to_string(), SetValue::parse(v)));
    split_cargs(text).into_iter().filter_map(pair).collect()
}

/// The number that a value of an option of a launch means.
pub(super) fn option_value(f: &HFn, name: &str, value: &SetValue) -> EvalResult<i64> {
    let v = match value {
        SetValue::Int(i) => i64::try_from(*i).ok(),
        SetValue::Bool(b) => Some(i64::from(*b)),
        SetValue::Float(_)
        | SetValue::DType(_)
        | SetValue::Shape(_)
        | SetValue::Fn(_)
        | SetValue::Lambda(_) => None,
    };
    v.ok_or_else(|| {
        let message = format!("`{name}` takes a number, not `{value}`");
        refuse(codes::NOT_STATIC_ARG, f.span, message)
    })
}

/// The values of `values` that are options of a launch, and the others, which a specialization depends on.
pub fn split_options(hir: &Hir, kernel: FnId, values: &[(String, SetValue)]) -> [Values; 2] {
    let parameters = &hir.func(kernel).cparams;
    let is_option = |(name, _): &&(String, SetValue)| {
        is_launch_option(name) && !parameters.iter().any(|c| hir.cvar(*c).name == *name)
    };
    let (options, others): (Vec<_>, Vec<_>) = values.iter().partition(is_option);
    [options, others].map(|list| list.into_iter().cloned().collect())
}

impl Planner<'_> {
    /// Binds what is given by name.
    pub(super) fn apply_sets(&mut self, sets: &[&(String, SetValue)]) -> EvalResult<()> {
        for (name, value) in sets {
            let id = self.f.cparams.iter().find(|c| self.hir.cvar(**c).name == *name);
            match id {
                Some(id) => {
                    let v = self.set_value(*id, value)?;
                    self.bindings.cvars.insert(*id, v);
                }
                None if is_launch_option(name) => {
                    self.launch.push((name.clone(), option_value(self.f, name, value)?));
                }
                None => return Err(self.unknown_set(name)),
            }
        }
        Ok(())
    }

    fn unknown_set(&self, name: &str) -> Box<tk_syntax::Diagnostic> {
        let known: Vec<&str> = self.f.cparams.iter().map(|c| self.hir.cvar(*c).name.as_str()).collect();
        let message = format!("kernel `{}` has no compile-time parameter `{name}`", self.f.name);
        let mut d = refuse(codes::NOT_STATIC_ARG, self.f.span, message);
        if let Some(ours) = Cx::launch_option_named(name) {
            d.message.push_str(&format!("; it is called `{ours}`"));
        } else if let Some(near) = crate::check::names::closest(name, known.iter().copied()) {
            d.message.push_str(&format!("; did you mean `{near}`?"));
        } else if known.is_empty() {
            d.message.push_str(": it has none");
        } else {
            let list: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
            d.notes.push(format!("its compile-time parameters are {}", list.join(", ")));
        }
        d
    }

    fn set_value(&self, id: CVarId, value: &SetValue) -> EvalResult<CVal> {
        let c = self.hir.cvar(id);
        let out = match (&c.kind, value) {
            (CKind::Int(d), SetValue::Int(i))
                if d.int_range().is_some_and(|(lo, hi)| (lo..=hi).contains(i)) =>
            {
                Some(CVal::Int(*i))
            }
            (CKind::Float(d), SetValue::Float(v)) => Scalar::float_in_range(*d, *v).map(CVal::of_scalar),
            (CKind::Float(d), SetValue::Int(i)) => Scalar::int_in_range(*d, *i).map(CVal::of_scalar),
            (CKind::Bool, SetValue::Bool(b)) => Some(CVal::Bool(*b)),
            (CKind::DType(set), SetValue::DType(d)) if set.has(*d) => Some(CVal::DType(*d)),
            (CKind::Shape, SetValue::Shape(s)) => Some(CVal::Shape(s.clone())),
            (CKind::Fn(params, ret), SetValue::Fn(name)) => return self.function(id, params, ret, name),
            (CKind::Fn(..), SetValue::Lambda(l)) => find_lambda(self.hir, l),
            (
                CKind::Int(_)
                | CKind::Float(_)
                | CKind::Bool
                | CKind::DType(_)
                | CKind::Shape
                | CKind::Fn(..)
                | CKind::Err,
                _,
            ) => None,
        };
        out.ok_or_else(|| {
            let takes = match &c.kind {
                CKind::Int(d) | CKind::Float(d) => format!("a number of type {d}"),
                CKind::DType(set) if *set == DTypeSet::ANY => "an element type".to_string(),
                kind => crate::show::ckind(self.hir, kind),
            };
            let message = format!("`{}` of kernel `{}` takes {takes}, not `{value}`", c.name, self.f.name);
            refuse(codes::NOT_STATIC_ARG, c.span, message)
        })
    }

    /// A function by name: of the kernel's file first, then of any file, then a builtin.
    fn function(&self, id: CVarId, wanted: &[Ty], ret: &Ty, name: &str) -> EvalResult<CVal> {
        if let Some(given) = self.hir.given.iter().find(|g| g.param == id && g.text == name) {
            return self.eval(|ev| ev.expr(&given.value));
        }
        // `math::gelu`: the last part is the name.
        let name = name.rsplit("::").next().unwrap_or(name);
        let found = |own: bool| {
            let fits = |f: &HFn| f.kind == FnKind::Fn && f.name == name && (!own || f.file == self.f.file);
            self.hir.fns.iter().position(fits)
        };
        let c = self.hir.cvar(id);
        if let Some(i) = found(true).or_else(|| found(false)) {
            let fid = FnId(i as u32);
            let f = self.hir.func(fid);
            let cvars = self.infer_function(f, wanted).filter(|cvars| self.returns(f, cvars, ret));
            let cvars = cvars.ok_or_else(|| self.misfit(c, name))?;
            return Ok(CVal::Fn(FnVal::Fn { id: fid, name: f.name.clone(), cvars }));
        }
        match tk_ops::rows::find(name, Receiver::None) {
            Some(row) if self.builtin_fits(row, wanted, ret) => Ok(CVal::Fn(FnVal::Builtin(row))),
            Some(_) => Err(self.misfit(c, name)),
            None => {
                let message =
                    format!("there is no function `{name}` for `{}` of kernel `{}`", c.name, self.f.name);
                Err(refuse(codes::NOT_STATIC_ARG, c.span, message))
            }
        }
    }

    fn misfit(&self, c: &crate::hir::CVar, name: &str) -> Box<tk_syntax::Diagnostic> {
        let takes = crate::show::ckind(self.hir, &c.kind);
        let message = format!(
            "`{name}` does not match `{}` of kernel `{}`, which takes `{takes}`",
            c.name, self.f.name
        );
        refuse(codes::NOT_STATIC_ARG, c.span, message)
    }

    /// Returns true if a function with these compile-time arguments gives the wanted type.
    fn returns(&self, f: &HFn, cvars: &BTreeMap<CVarId, CVal>, wanted: &Ty) -> bool {
        let bindings = self.bindings.inner(cvars.clone());
        let gives = Evaluator::new(self.hir, &bindings).ty(&f.ret, f.span);
        let wants = self.eval(|ev| ev.ty(wanted, f.span));
        matches!((gives, wants), (Ok(a), Ok(b)) if a == b)
    }

    /// Returns true if an elementwise builtin takes and gives scalars of the wanted types.
    fn builtin_fits(&self, row: &Row, wanted: &[Ty], ret: &Ty) -> bool {
        let dtype = |t: &Ty| match self.eval(|ev| ev.ty(t, self.f.span)) {
            Ok(CTy::One(t)) => t.dtype(),
            Ok(_) | Err(_) => None,
        };
        let Scheme::Elementwise(set, result) = row.scheme else { return false };
        let takes: Option<Vec<DType>> = wanted.iter().map(dtype).collect();
        let Some(takes) = takes else { return false };
        let required = row.params.iter().filter(|p| p.default.is_none()).count();
        required == takes.len()
            && takes.first().is_some_and(|d| {
                set.has(*d) && takes.iter().all(|t| t == d) && dtype(ret) == Some(result.of(*d))
            })
    }

    /// The compile-time arguments of a function that is used where one of these parameter types is expected.
    fn infer_function(&self, f: &HFn, wanted: &[Ty]) -> Option<BTreeMap<CVarId, CVal>> {
        if f.broken || f.params.len() != wanted.len() {
            return None;
        }
        let mut out = BTreeMap::new();
        for (p, w) in f.params.iter().zip(wanted) {
            let concrete = self.eval(|ev| ev.ty(w, self.f.span)).ok()?;
            unify(&p.ty, &concrete, &mut out);
        }
        for id in &f.cparams {
            if !out.contains_key(id) {
                let default = self.hir.cvar(*id).default.as_ref()?;
                let v = self.eval(|ev| ev.expr(default)).ok()?;
                out.insert(*id, v);
            }
        }
        Some(out)
    }
}

/// Binds the variables of a type so that it becomes a concrete one.
fn unify(ty: &Ty, concrete: &CTy, out: &mut BTreeMap<CVarId, CVal>) {
    match (ty, concrete) {
        (Ty::Tile { elem, shape }, CTy::One(t)) => {
            if let (Elem::D(DTerm::Param(id)), Some(d)) = (elem, t.dtype()) {
                out.insert(*id, CVal::DType(d));
            }
            let dims = t.shape().unwrap_or(&[]);
            match shape {
                Shape::Param(id) => {
                    out.insert(*id, CVal::Shape(dims.iter().map(|d| i64::from(*d)).collect()));
                }
                Shape::Dims(polys) => {
                    for (p, d) in polys.iter().zip(dims) {
                        if let Some(id) = p.as_param() {
                            out.insert(id, CVal::Int(i128::from(*d)));
                        }
                    }
                }
            }
        }
        (Ty::Tuple(a), CTy::Tuple(b)) => a.iter().zip(b).for_each(|(x, y)| unify(x, y, out)),
        (_, _) => {}
    }
}

/// The lambda of the program at a position.
fn find_lambda(hir: &Hir, wanted: &LambdaRef) -> Option<CVal> {
    let mut captured = BTreeMap::new();
    for (id, v) in &wanted.captured {
        let v = match v {
            SetValue::Int(i) => CVal::Int(*i),
            SetValue::Float(f) => CVal::Float(*f),
            SetValue::Bool(b) => CVal::Bool(*b),
            SetValue::DType(d) => CVal::DType(*d),
            SetValue::Shape(s) => CVal::Shape(s.clone()),
            SetValue::Lambda(l) => find_lambda(hir, l)?,
            SetValue::Fn(_) => return None,
        };
        captured.insert(CVarId(*id), v);
    }
    let mut found = None;
    let mut look = |e: &HExpr| {
        if let HKind::Lambda { params, body } = &e.kind
            && (body.span.file.0, body.span.start) == (wanted.file, wanted.start)
        {
            found = Some((params.clone(), (**body).clone()));
        }
    };
    hir.fns.iter().for_each(|f| each_in_block(&f.body, &mut look));
    hir.consts.iter().for_each(|c| each_expr(&c.value, &mut look));
    hir.cvars.iter().filter_map(|c| c.default.as_ref()).for_each(|e| each_expr(e, &mut look));
    let (params, body) = found?;
    Some(CVal::Fn(FnVal::Lambda(Arc::new(Lambda { params, body, cvars: captured }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_from_text() {
        let text = "BM=64, T=f16, S=[2, 3], on=true, eps=-1e-5, ACT=relu, F=lambda(0:12; 3=f16, 4=[1, 2])";
        let lambda = LambdaRef {
            file: 0,
            start: 12,
            captured: vec![(3, SetValue::DType(DType::F16)), (4, SetValue::Shape(vec![1, 2]))],
        };
        let expected = [
            ("BM", SetValue::Int(64)),
            ("T", SetValue::DType(DType::F16)),
            ("S", SetValue::Shape(vec![2, 3])),
            ("on", SetValue::Bool(true)),
            ("eps", SetValue::Float(-1e-5)),
            ("ACT", SetValue::Fn("relu".into())),
            ("F", SetValue::Lambda(lambda)),
        ];
        assert_eq!(parse_cargs(text), expected.map(|(n, v)| (n.to_string(), v)));
        assert_eq!(parse_cargs(""), vec![]);
    }
}
