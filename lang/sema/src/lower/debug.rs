//! Notes for a debugger ([`tk_tile::debug`]) while statements are lowered, if they are wanted.

use tk_syntax::Span;
use tk_tile::Loc;
use tk_tile::debug::{DebugFunc, DebugValue, Statement};

use super::Lower;
use super::flow::is_flag;
use super::value::Val;
use crate::hir::{CVarId, HBlock, HExpr, HFn, HKind, HStmt, HStmtKind, Hir};
use crate::stops::lambda_value;
use crate::types::Ty;

/// The state of the notes of one function.
#[derive(Clone, Default)]
pub(super) struct Notes {
    /// The extents of the blocks of the function; those of compile-time loops with their variables.
    blocks: Vec<(Option<CVarId>, Span)>,
    /// The statement that was noted last.
    last: Option<Statement>,
    /// The statement that calls the lambda.
    caller: Option<Box<Statement>>,
}

impl Lower<'_, '_> {
    /// Begins the notes of a function.
    pub(super) fn begin_debug(&mut self, f: &HFn) {
        if self.q.debug.is_none() {
            return;
        }
        self.notes.blocks = blocks(&f.body);
        let value = |c: &CVarId| {
            Some((self.q.hir.cvar(*c).name.clone(), self.frame.bindings.cvars.get(c)?.to_string()))
        };
        let constants = f.cparams.iter().filter_map(value).collect();
        let notes = DebugFunc { name: f.name.clone(), loc: loc(f.span), constants, statements: vec![] };
        let name = self.b.func.name.clone();
        self.q.debug.as_mut().and_then(|all| all.insert(name, notes));
    }

    /// Returns true if the blocks around a declaration are around a place, too.
    fn sees(&self, place: Span, declaration: Span) -> bool {
        let mut around = self.notes.blocks.iter().filter(|(_, b)| contains(b, declaration));
        around.all(|(_, b)| contains(b, place))
    }

    /// A statement, or the value of a block, begins here.
    pub(super) fn statement(&mut self, span: Span) {
        if self.q.debug.is_none() {
            return;
        }
        let hir = self.q.hir;
        let func = hir.func(self.frame.func);
        let mut variables = vec![];
        for (id, value) in self.frame.env.iter().filter(|(id, _)| !is_flag(**id)) {
            if let Some(local) = func.locals.get(id.0 as usize)
                && !local.name.is_empty()
                && local.name != "_"
                && self.sees(span, local.span)
            {
                variables.push((local.name.clone(), shown(hir, value, &local.ty)));
            }
        }
        // Of loops that are unrolled.
        let unrolled = |id: &CVarId| {
            let mut loops = self.notes.blocks.iter().filter(|b| b.0 == Some(*id));
            loops.any(|(_, b)| contains(b, span))
        };
        for (id, value) in self.frame.bindings.cvars.iter().filter(|(id, _)| unrolled(id)) {
            variables.push((hir.cvar(*id).name.clone(), DebugValue::Known(value.to_string())));
        }
        let block = self.b.block();
        let caller = self.notes.caller.clone();
        self.note(Statement { begins: true, block, index: 0, loc: loc(span), variables, caller });
    }

    /// Notes that a statement begins, or goes on, at the end of the block.
    fn note(&mut self, statement: Statement) {
        let block = self.b.block();
        let index = self.b.func.blocks.get(block).map_or(0, |b| b.insts.len());
        let statement = Statement { block, index, ..statement };
        let notes = self.q.debug.as_mut().and_then(|all| all.get_mut(&self.b.func.name));
        notes.into_iter().for_each(|f| f.statements.push(statement.clone()));
        self.notes.last = Some(statement);
    }

    /// The body of a lambda begins; gives what [`Lower::end_lambda`] needs.
    pub(super) fn begin_lambda(&mut self, body: &HExpr) -> Option<Notes> {
        self.q.debug.as_ref()?;
        let caller = self.notes.last.clone().map(Box::new);
        let blocks = blocks(&self.q.hir.func(self.frame.func).body);
        let inner = Notes { blocks, last: None, caller };
        let outer = std::mem::replace(&mut self.notes, inner);
        lambda_value(body).into_iter().for_each(|span| self.statement(span));
        Some(outer)
    }

    /// The statement that calls the lambda goes on.
    pub(super) fn end_lambda(&mut self, outer: Option<Notes>) {
        let Some(outer) = outer else { return };
        self.notes = outer;
        if let Some(last) = self.notes.last.clone() {
            self.note(Statement { begins: false, ..last });
        }
    }
}

fn contains(block: &Span, s: Span) -> bool {
    block.start <= s.start && s.end <= block.end
}

/// The extents of a block and of all blocks inside, those of compile-time loops with their variables.
fn blocks(b: &HBlock) -> Vec<(Option<CVarId>, Span)> {
    let mut inner = vec![(None, b.span)];
    let mut spans = vec![];
    let mut statement = |s: &HStmt| match &s.kind {
        HStmtKind::StaticFor { var, body, .. } => inner.push((Some(*var), body.span)),
        HStmtKind::For { body, .. } | HStmtKind::While { body, .. } => inner.push((None, body.span)),
        _other => {}
    };
    let mut expr = |e: &HExpr| match &e.kind {
        HKind::If { then, els, .. } | HKind::IfLet { then, els, .. } => {
            spans.push(then.span);
            spans.extend(els.iter().map(|b| b.span));
        }
        HKind::Block(b) => spans.push(b.span),
        _other => {}
    };
    crate::lint::each(b, &mut statement, &mut expr);
    inner.extend(spans.into_iter().map(|span| (None, span)));
    inner
}

fn loc(span: Span) -> Loc {
    Loc { file: span.file.0, start: span.start, end: span.end }
}

fn shown(hir: &Hir, value: &Val, ty: &Ty) -> DebugValue {
    match value {
        Val::One(v) | Val::Opt(Some(v)) => DebugValue::Value(*v),
        Val::Static(v) => DebugValue::Known(v.to_string()),
        Val::Unit => DebugValue::Known("()".into()),
        Val::Opt(None) | Val::Never | Val::Unset => DebugValue::Nothing,
        Val::Tuple(items) => {
            let part = |(i, v): (usize, &Val)| match ty {
                Ty::Struct(id, _) => {
                    let field = hir.strukt(*id).fields.get(i);
                    let (name, ty) = field.map_or((i.to_string(), &Ty::Err), |f| (f.0.clone(), &f.1));
                    (name, shown(hir, v, ty))
                }
                Ty::Tuple(types) => (i.to_string(), shown(hir, v, types.get(i).unwrap_or(&Ty::Err))),
                _other => (i.to_string(), shown(hir, v, &Ty::Err)),
            };
            DebugValue::Parts(items.iter().enumerate().map(part).collect())
        }
    }
}
