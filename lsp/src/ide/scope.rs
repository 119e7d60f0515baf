//! The names that a body sees at a place, in the order in which they were declared.

use tk_syntax::ast::{ExprKind, File, ItemKind, Name, Pat, PatKind, StmtKind};

use super::walk::{Node, around};

/// The context of a position.
pub struct Scope<'a> {
    /// The names of parameters, variables and local constants, a later one hides an earlier one.
    pub names: Vec<&'a Name>,
    /// Whether the place is in a clause of a kernel.
    pub clause: bool,
    /// Whether it is in a test.
    pub test: bool,
    /// Whether it is in a kernel, function or method.
    pub body: bool,
}

/// The names that are seen at an offset.
pub fn scope(file: &File, offset: u32) -> Scope<'_> {
    let mut s = Scope { names: vec![], clause: false, test: false, body: false };
    for node in around(file, offset) {
        match node {
            Node::Item(i) => match &i.kind {
                ItemKind::Fn(f) => {
                    s.names.extend(f.cparams.iter().map(|c| &c.name));
                    s.names.extend(f.params.iter().map(|p| &p.name));
                    let scratch = f.clauses.iter().filter(|c| c.name.text == "scratch");
                    s.names.extend(scratch.flat_map(|c| &c.args).filter_map(scratch_name));
                    s.body = true;
                }
                ItemKind::Struct(x) => s.names.extend(x.cparams.iter().map(|c| &c.name)),
                ItemKind::Test(_) => (s.test, s.body) = (true, true),
                ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Err => {}
            },
            Node::Clause(_) => s.clause = true,
            Node::Block(b) => {
                for stmt in b.stmts.iter().take_while(|x| x.span.end <= offset) {
                    match &stmt.kind {
                        StmtKind::Let { pat, .. } => pattern(pat, &mut s.names),
                        StmtKind::Const(c) => s.names.push(&c.name),
                        StmtKind::Assign { .. }
                        | StmtKind::Expr(_)
                        | StmtKind::For { .. }
                        | StmtKind::While { .. }
                        | StmtKind::Return(_)
                        | StmtKind::Break
                        | StmtKind::Continue
                        | StmtKind::AssertError { .. }
                        | StmtKind::Err => {}
                    }
                }
            }
            Node::Stmt(x) => {
                if let StmtKind::For { pat, body, .. } = &x.kind
                    && Node::Block(body).touches(offset)
                {
                    pattern(pat, &mut s.names);
                }
            }
            Node::Expr(e) => match &e.kind {
                ExprKind::IfLet(name, _, then, _) if Node::Block(then).touches(offset) => s.names.push(name),
                ExprKind::Lambda(params, _) => params.iter().for_each(|p| pattern(&p.0, &mut s.names)),
                _other => {}
            },
            Node::Attr(_)
            | Node::CParam(_)
            | Node::Param(_)
            | Node::TuneRow(_)
            | Node::Pat(_)
            | Node::Type(_)
            | Node::Arg(..) => {}
        }
    }
    s.names.retain(|n| !n.text.is_empty() && n.text != "_");
    s
}

fn scratch_name(a: &tk_syntax::ast::Arg) -> Option<&Name> {
    a.name.as_ref().filter(|_| matches!(a.value.kind, ExprKind::Type(_)))
}

/// The names of a pattern.
pub fn pattern<'a>(p: &'a Pat, out: &mut Vec<&'a Name>) {
    match &p.kind {
        PatKind::Name { name, .. } => out.push(name),
        PatKind::Tuple(parts) => parts.iter().for_each(|p| pattern(p, out)),
        PatKind::Err => {}
    }
}
