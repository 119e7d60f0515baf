//! Notes for a debugger ([`tk_tile::debug`]) while statements are lowered, if they are wanted.

use tk_syntax::Span;
use tk_tile::Loc;
use tk_tile::debug::{DebugFunc, DebugValue, Statement};

use super::Lower;
use super::flow::is_flag;
use super::value::Val;
use crate::hir::{HFn, Hir};
use crate::types::Ty;

impl Lower<'_, '_> {
    /// Begins the notes of a function.
    pub(super) fn begin_debug(&mut self, f: &HFn) {
        if self.q.debug.is_none() {
            return;
        }
        let value = |c: &crate::hir::CVarId| {
            Some((self.q.hir.cvar(*c).name.clone(), self.frame.bindings.cvars.get(c)?.to_string()))
        };
        let constants = f.cparams.iter().filter_map(value).collect();
        let notes = DebugFunc { name: f.name.clone(), loc: loc(f.span), constants, statements: vec![] };
        let name = self.b.func.name.clone();
        self.q.debug.as_mut().and_then(|all| all.insert(name, notes));
    }

    /// A statement, or the value of a block, begins here.
    pub(super) fn statement(&mut self, span: Span) {
        // The variables of a lambda have no names here.
        let Some(f) = self.frame.func.filter(|_| self.q.debug.is_some()) else { return };
        let hir = self.q.hir;
        let mut variables = vec![];
        for (id, value) in self.frame.env.iter().filter(|(id, _)| !is_flag(**id)) {
            if let Some(local) = hir.func(f).locals.get(id.0 as usize)
                && !local.name.is_empty()
                && local.name != "_"
            {
                variables.push((local.name.clone(), shown(hir, value, &local.ty)));
            }
        }
        let block = self.b.block();
        let index = self.b.func.blocks.get(block).map_or(0, |b| b.insts.len());
        let notes = self.q.debug.as_mut().and_then(|all| all.get_mut(&self.b.func.name));
        notes.into_iter().for_each(|f| {
            f.statements.push(Statement { block, index, loc: loc(span), variables: variables.clone() });
        });
    }
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
