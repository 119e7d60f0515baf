//! The walk of W0504 over a function: variables, statements, loops and calls.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::{Case, Trial, decides};
use super::report::Found;
use super::state::{State, Tile, join};
use super::vars::Vars;
use super::{Value, exact};
use crate::hir::{CVarId, FnId, HBlock, HExpr, HFn, HKind, HPat, HStmtKind, Hir, LocalId};
use crate::types::{CTerm, Shape, Ty};

/// The depth to which calls are followed.
const MAX_CALLS: usize = 8;

/// The iterations of a loop after which what still changes is given up.
const MAX_TRIPS: usize = 4;

/// The walk over one function, and over those that it calls.
pub(super) struct Eval<'a> {
    pub hir: &'a Hir,
    pub f: &'a HFn,
    /// Compile-time parameters that are extents of tensors.
    pub exact: BTreeSet<CVarId>,
    vars: Vars<'a>,
    /// The value returned so far.
    returned: Option<Value<'a>>,
    /// The number of further expressions to visit.
    fuel: usize,
    /// In how many places that say nothing: called functions, and iterations of loops that are not the last.
    quiet: usize,
    calls: usize,
    /// The value of a bool that is assumed.
    pub case: Case,
    /// The padding of a load that is tried.
    pub trial: Option<Trial>,
    /// Whether anything was loaded: without a load there is no padding.
    pub loads: bool,
    found: Vec<Found<'a>>,
}

impl<'a> Eval<'a> {
    pub fn new(hir: &'a Hir, f: &'a HFn, fuel: usize, case: Case) -> Self {
        let vars = Vars::new(f.locals.len());
        let exact = exact(hir, f);
        Eval {
            hir,
            f,
            exact,
            vars,
            returned: None,
            fuel,
            quiet: 0,
            calls: 0,
            case,
            trial: None,
            loads: false,
            found: vec![],
        }
    }

    /// Walks over the function with parameters of which nothing is known.
    pub fn function(&mut self) {
        for p in &self.f.params {
            self.set(p.local, self.param(&p.ty));
        }
        self.block(&self.f.body);
    }

    /// The findings, unless the function was too large or loads nothing.
    pub fn finish(self) -> Option<Vec<Found<'a>>> {
        (self.fuel > 0 && self.loads).then_some(self.found)
    }

    pub fn report(&mut self, found: Found<'a>) {
        if self.quiet == 0 && !self.found.iter().any(|f| f.place.span == found.place.span) {
            self.found.push(found);
        }
    }

    /// Notes the padding of a dimension that a reduction takes, where another value of it is tried.
    pub fn look(&mut self, place: &HExpr, state: State) {
        if let Some(trial) = self.trial.as_mut().filter(|_| self.quiet == 0) {
            trial.look(place, state);
        }
    }

    /// A parameter: its tiles are data.
    fn param(&self, ty: &Ty) -> Value<'a> {
        match ty {
            Ty::Tile { shape: Shape::Dims(d), .. } if d.is_empty() => Value::Tile(Tile::uniform(0)),
            Ty::Tile { shape: Shape::Dims(d), .. } => Value::Tile(Tile::data(d.len())),
            Ty::Tuple(ts) => Value::Parts(ts.iter().map(|t| self.param(t)).collect()),
            Ty::Struct(id, _) => {
                let fields = &self.hir.strukt(*id).fields;
                // A field that is a struct itself is left out, which also ends this.
                let field = |t: &Ty| if matches!(t, Ty::Tile { .. }) { self.param(t) } else { Value::Opaque };
                Value::Parts(fields.iter().map(|(_, t, _)| field(t)).collect())
            }
            _other => Value::Opaque,
        }
    }

    fn set(&mut self, id: LocalId, value: Value<'a>) {
        self.vars.set(id.0 as usize, value);
    }

    fn block(&mut self, b: &'a HBlock) -> Value<'a> {
        for s in &b.stmts {
            self.stmt(&s.kind);
        }
        b.tail.as_ref().map_or(Value::Opaque, |t| self.expr(t))
    }

    fn stmt(&mut self, s: &'a HStmtKind) {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return;
        }
        match s {
            HStmtKind::Let(pat, value) => {
                let value = value.as_ref().map_or(Value::Opaque, |e| self.expr(e));
                self.bind(pat, value);
            }
            HStmtKind::Assign { local, path, value } => {
                let value = self.expr(value);
                let mut whole = self.vars.get(local.0 as usize).cloned().unwrap_or(Value::Opaque);
                if let Some(slot) = part(&mut whole, path) {
                    *slot = value;
                    self.set(*local, whole);
                }
            }
            HStmtKind::Expr(e) => {
                self.expr(e);
            }
            HStmtKind::For { var, lo, hi, step, body, .. } => {
                [lo, hi, step].into_iter().for_each(|e| {
                    self.expr(e);
                });
                self.set(*var, Value::Tile(Tile::uniform(0)));
                self.looping(&mut |eval| {
                    eval.block(body);
                });
            }
            HStmtKind::StaticFor { body, .. } => self.looping(&mut |eval| {
                eval.block(body);
            }),
            HStmtKind::While { cond, body } => self.looping(&mut |eval| {
                eval.expr(cond);
                eval.block(body);
            }),
            HStmtKind::Return(e) => {
                let value = e.as_ref().map_or(Value::Opaque, |e| self.expr(e));
                self.give(value);
            }
            // A test has nothing to look at.
            HStmtKind::AssertError { .. } | HStmtKind::Break | HStmtKind::Continue | HStmtKind::Err => {}
        }
    }

    fn bind(&mut self, pat: &HPat, value: Value<'a>) {
        match (pat, value) {
            (HPat::Local(id), value) => self.set(*id, value),
            (HPat::Tuple(ps), Value::Parts(vs)) => ps.iter().zip(vs).for_each(|(p, v)| self.bind(p, v)),
            (HPat::Tuple(ps), _opaque) => ps.iter().for_each(|p| self.bind(p, Value::Opaque)),
            (HPat::Ignore, _) => {}
        }
    }

    fn give(&mut self, value: Value<'a>) {
        self.returned = Some(match self.returned.take() {
            Some(before) => merge(&before, &value, false),
            None => value,
        });
    }

    /// Walks over the body until the variables stay as they are, and then once more, aloud. Behind the loop they are what they
    /// were at its start, or, where a second iteration changes nothing, what the first has made of them.
    fn looping(&mut self, body: &mut dyn FnMut(&mut Self)) {
        let behind = self.settled(body);
        let mut begin = vec![];
        for trip in 0.. {
            let mark = self.vars.mark();
            self.quiet += 1;
            body(self);
            self.quiet -= 1;
            let last = trip >= MAX_TRIPS;
            let mut same = true;
            for (id, after) in self.vars.undo(mark) {
                let before = self.vars.get(id).cloned().unwrap_or(Value::Opaque);
                let merged = loop_state(&before, &after, last);
                same &= merged == before;
                begin.push((id, merged));
            }
            begin.drain(..).for_each(|(id, v)| self.vars.set(id, v));
            if same || last || self.fuel == 0 {
                break;
            }
        }
        let mark = self.vars.mark();
        body(self);
        self.vars.undo(mark);
        for (id, value) in behind.unwrap_or_default() {
            self.vars.set(id, moved(value));
        }
    }

    /// The variables that one iteration changes, if a second one leaves them so.
    fn settled(&mut self, body: &mut dyn FnMut(&mut Self)) -> Option<BTreeMap<usize, Value<'a>>> {
        let mark = self.vars.mark();
        self.quiet += 1;
        body(self);
        let first = self.vars.undo(mark);
        first.iter().for_each(|(id, value)| self.vars.set(*id, value.clone()));
        let again = self.vars.mark();
        body(self);
        let second = self.vars.undo(again);
        let is_settled = second.iter().all(|(id, value)| self.vars.get(*id) == Some(value));
        self.vars.undo(mark);
        self.quiet -= 1;
        is_settled.then_some(first)
    }

    /// Walks over two arms, of which one is taken.
    fn arms(&mut self, then: &'a HBlock, els: Option<&'a HBlock>) -> Value<'a> {
        let mark = self.vars.mark();
        let a = self.block(then);
        let then_set = self.vars.undo(mark);
        let b = els.map_or(Value::Opaque, |b| self.block(b));
        // One arm may leave alone what the other one sets.
        let mut ends: BTreeMap<usize, Value<'a>> = self.vars.changed(mark);
        ends.extend(then_set);
        for (id, end) in ends {
            let merged = self.vars.get(id).map(|other| merge(&end, other, false));
            merged.into_iter().for_each(|v| self.vars.set(id, v));
        }
        merge(&a, &b, false)
    }

    /// The value of an expression.
    pub fn expr(&mut self, e: &'a HExpr) -> Value<'a> {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 {
            return Value::Opaque;
        }
        match &e.kind {
            HKind::Local(id) => self.vars.get(id.0 as usize).cloned().unwrap_or(Value::Opaque),
            HKind::Const(id) => {
                let constant = self.hir.constant(*id);
                let value = constant.real.as_ref().unwrap_or(&constant.value);
                if matches!(value.kind, HKind::Const(_)) { Value::Opaque } else { self.expr(value) }
            }
            HKind::Tuple(es) | HKind::Struct(es) => Value::Parts(es.iter().map(|e| self.expr(e)).collect()),
            HKind::Field(of, i) => match self.expr(of) {
                Value::Parts(vs) => vs.into_iter().nth(*i as usize).unwrap_or(Value::Opaque),
                Value::Tile(_) | Value::Opaque => Value::Opaque,
            },
            HKind::If { cond, then, els } => {
                self.expr(cond);
                match (decides(self.case, cond), els) {
                    (Some(true), _) => self.block(then),
                    (Some(false), Some(els)) => self.block(els),
                    (Some(false), None) => Value::Opaque,
                    (None, _) => self.arms(then, els.as_deref()),
                }
            }
            HKind::IfLet { bind, then, els, .. } => {
                self.set(*bind, Value::Opaque);
                self.arms(then, els.as_deref())
            }
            HKind::Block(b) => self.block(b),
            HKind::Return(r) => {
                let value = r.as_ref().map_or(Value::Opaque, |e| self.expr(e));
                self.give(value);
                Value::Opaque
            }
            HKind::Call { callee, args, cargs } => {
                let args = args.iter().map(|a| self.expr(a)).collect();
                self.call(*callee, args, cargs)
            }
            _value => self.value(e),
        }
    }

    /// The result of a call with these arguments. Mistakes inside of the function are reported where it is defined.
    fn call(&mut self, callee: FnId, args: Vec<Value<'a>>, cargs: &[(CVarId, CTerm)]) -> Value<'a> {
        let f = self.hir.func(callee);
        if self.calls >= MAX_CALLS || f.broken {
            return Value::Opaque;
        }
        let mut exact = exact(self.hir, f);
        // A parameter is exact when its argument is.
        let of = |t: &CTerm| matches!(t, CTerm::Int(p) if super::is_exact(&self.exact, p));
        exact.extend(cargs.iter().filter(|(_, t)| of(t)).map(|(c, _)| *c));
        let outer = std::mem::replace(&mut self.vars, Vars::new(f.locals.len()));
        let (outer_f, outer_exact) = (self.f, std::mem::replace(&mut self.exact, exact));
        let outer_returned = self.returned.take();
        (self.f, self.quiet, self.calls) = (f, self.quiet + 1, self.calls + 1);
        for (p, a) in f.params.iter().zip(args) {
            self.set(p.local, a);
        }
        let value = self.block(&f.body);
        if !matches!(f.body.tail.as_deref(), None | Some(HExpr { kind: HKind::Return(_), .. })) {
            self.give(value);
        }
        let value = moved(self.returned.take().unwrap_or(Value::Opaque));
        (self.vars, self.exact, self.returned) = (outer, outer_exact, outer_returned);
        (self.f, self.quiet, self.calls) = (outer_f, self.quiet - 1, self.calls - 1);
        value
    }
}

/// A value that leaves a function: a fix cannot name the load that it comes from.
fn moved(value: Value) -> Value {
    match value {
        Value::Tile(t) => Value::Tile(Tile { moved: true, ..t }),
        Value::Parts(vs) => Value::Parts(vs.into_iter().map(moved).collect()),
        Value::Opaque => Value::Opaque,
    }
}

/// The part of a value that is assigned to.
fn part<'v, 'a>(value: &'v mut Value<'a>, path: &[u32]) -> Option<&'v mut Value<'a>> {
    match (path, value) {
        ([], value) => Some(value),
        ([i, rest @ ..], Value::Parts(vs)) => vs.get_mut(*i as usize).and_then(|v| part(v, rest)),
        (_, Value::Tile(_) | Value::Opaque) => None,
    }
}

/// The value after two paths.
fn merge<'a>(a: &Value<'a>, b: &Value<'a>, looping: bool) -> Value<'a> {
    match (a, b) {
        (Value::Tile(x), Value::Tile(y)) => Value::Tile(join(x, y, looping)),
        (Value::Parts(xs), Value::Parts(ys)) if xs.len() == ys.len() => {
            Value::Parts(xs.iter().zip(ys).map(|(x, y)| merge(x, y, looping)).collect())
        }
        (_, _) => Value::Opaque,
    }
}

/// The value of a variable at the start of every iteration of a loop; a value that changed in the last iteration that
/// is looked at is unknown.
fn loop_state<'a>(before: &Value<'a>, after: &Value<'a>, last: bool) -> Value<'a> {
    let merged = merge(before, after, true);
    match (&merged, before) {
        (Value::Tile(new), Value::Tile(old)) if last && new != old => {
            let dims = new.dims.iter().zip(&old.dims).map(|(n, o)| if n == o { *n } else { State::Unknown });
            Value::Tile(Tile { dims: dims.collect(), ..new.clone() })
        }
        (Value::Parts(new), Value::Parts(old)) if last && new != old => Value::Opaque,
        (_, _) => merged,
    }
}
