//! W0201 to W0204: variables, parameters, imports and private items that nothing uses, and `mut` that nothing needs.
//!
//! Works on the syntax tree: the checked program no longer shows uses that were decided at compile time, such as the
//! tile of `x.shape`. Names are resolved as the checker does it, blocks and shadowing included. A leading `_` on a
//! variable says that it is meant to be unused.

use std::collections::{BTreeSet, HashMap, HashSet};

use tk_syntax::ast::{
    Arg, Block, Clause, Expr, ExprKind, File, Fn, Item, ItemKind, Name, Pat, PatKind, Path, Stmt, StmtKind,
    Struct, Subscript, TypeExpr, TypeKind, Use,
};
use tk_syntax::diag::Replacement;
use tk_syntax::token::LINE_END;
use tk_syntax::{Diagnostic, Span, codes};

use super::{Cx, warning};

/// The variables of an item; gives the names of items that it mentions.
pub(super) fn item(cx: &mut Cx, item: &Item) -> BTreeSet<String> {
    let mut walk = Walk::default();
    walk.item(item);
    let done = std::mem::take(&mut walk.done);
    let again = done.iter().filter(|(_, v)| v.is_again()).flat_map(|(_, v)| [v.outer, Some(v.name.span)]);
    let again: HashSet<Span> = again.flatten().collect();
    for (function, v) in done {
        if !function.is_some_and(|f| cx.broken.contains(&f)) {
            variable(cx, &v, &again);
        }
    }
    walk.used.into_iter().map(str::to_string).collect()
}

/// The imports and private items of the file, of whose items those with these names are mentioned.
pub(super) fn file(cx: &mut Cx, file: &File, used: &HashSet<&str>) {
    imports(cx, file, used);
    private(cx, file, used);
}

/// The kinds of variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By `let`, `for`, a lambda; with the place of its pattern if it is `mut`, and whether it has a value at once.
    Let { mutable: Option<Span>, value: bool },
    /// A parameter of a function, which callers may name.
    Param,
}

/// A variable in scope.
struct Var<'a> {
    name: &'a Name,
    kind: Kind,
    read: bool,
    assigned: bool,
    /// The variable of this name around the block that this one is declared in.
    outer: Option<Span>,
}

impl Var<'_> {
    /// Returns true if nothing uses this variable and one around its block has its name, which may be meant.
    fn is_again(&self) -> bool {
        let unused = !self.read && !self.name.text.starts_with('_');
        unused && !self.assigned && self.outer.is_some() && matches!(self.kind, Kind::Let { .. })
    }
}

/// Warns of a variable; those in `again` are declared again in a block, or around it, where one variable may be meant.
fn variable(cx: &mut Cx, v: &Var, again: &HashSet<Span>) {
    let (name, span) = (&v.name.text, v.name.span);
    if !v.read && !name.starts_with('_') {
        let d = match v.kind {
            Kind::Param => {
                warning(codes::UNUSED_VARIABLE, span, format!("the parameter `{name}` is never used"), "")
                    .note("a leading `_` marks this as intended")
            }
            Kind::Let { .. } if v.assigned => {
                warning(codes::UNUSED_VARIABLE, span, format!("`{name}` is assigned, but never used"), "")
            }
            Kind::Let { .. } => {
                let d = warning(codes::UNUSED_VARIABLE, span, format!("`{name}` is never used"), "");
                match v.outer {
                    Some(outer) => declared_again(cx, d, span, outer),
                    None => d.fix("mark this as intended with a leading `_`", span.before(), "_"),
                }
            }
        };
        cx.warn(d);
    }
    if let Kind::Let { mutable: Some(pattern), value: true } = v.kind
        && !v.assigned
        && !again.contains(&span)
    {
        let word = Span { end: span.start, ..pattern };
        let d = warning(codes::UNUSED_MUT, span, format!("`{name}` does not need to be `mut`"), "");
        cx.warn(d.fix("remove `mut`", word, ""));
    }
}

/// Says of a variable that nothing uses that the one outside of its block keeps its value: `let total = total + v;`.
fn declared_again(cx: &Cx, d: Diagnostic, span: Span, outer: Span) -> Diagnostic {
    let d = d
        .label(outer, "the variable outside of the block, which keeps its value")
        .note("`let` declares another variable, which ends with its block");
    let text = cx.sources.get(span.file).map_or("", |s| &s.text);
    let follows = |s: Span, word: &str| text.get(..s.start as usize).is_some_and(|t| t.ends_with(word));
    let mutable = follows(outer, "let mut ");
    let rest = text.get(span.end as usize..).map_or("", str::trim_start);
    let word = ["let mut ", "let "].into_iter().find(|w| follows(span, w));
    let Some(word) = word.filter(|_| rest.starts_with('=') && (mutable || follows(outer, "let "))) else {
        return d;
    };
    let word = Span { start: span.start - word.len() as u32, end: span.start, ..span };
    let mut edits = vec![Replacement { span: word, text: String::new() }];
    if !mutable {
        edits.insert(0, Replacement { span: outer.before(), text: "mut ".to_string() });
    }
    d.fix_all("change the variable outside", edits)
}

fn imports(cx: &mut Cx, file: &File, used: &HashSet<&str>) {
    for item in &file.items {
        let ItemKind::Use(u) = &item.kind else { continue };
        let Use { path, alias, names } = u;
        let text = cx.sources.get(item.span.file).map_or("", |s| &s.text);
        let Some(names) = names else {
            let Some(name) = alias.as_ref().or(path.segments.last()) else { continue };
            if !used.contains(name.text.as_str()) {
                let d =
                    warning(codes::UNUSED_IMPORT, path.span, format!("`{}` is never used", name.text), "");
                cx.warn(d.fix("remove the import", whole_lines(text, item.span), ""));
            }
            continue;
        };
        for (i, name) in names.iter().enumerate().filter(|(_, n)| !used.contains(n.text.as_str())) {
            let d = warning(codes::UNUSED_IMPORT, name.span, format!("`{}` is never used", name.text), "");
            let lines = whole_lines(text, name.span);
            let between = |start: u32, end: u32| text.get(start as usize..end as usize).unwrap_or("");
            let cut = match (i.checked_sub(1).and_then(|i| names.get(i)), names.get(i + 1)) {
                (None, None) => whole_lines(text, item.span),
                _ if lines != name.span => lines,
                // A comment between two names belongs to the one that stays.
                (_, Some(next)) if between(name.span.end, next.span.start).contains("//") => {
                    Span { end: name.span.end + after_name(text, name.span.end), ..name.span }
                }
                (_, Some(next)) => Span { end: next.span.start, ..name.span },
                (Some(last), None) if between(last.span.end, name.span.start).contains("//") => name.span,
                (Some(last), None) => Span { start: last.span.end, ..name.span },
            };
            cx.warn(d.fix("remove the import", cut, ""));
        }
    }
}

/// The length of the comma and the blanks that follow a name.
fn after_name(text: &str, end: u32) -> u32 {
    let rest = text.get(end as usize..).unwrap_or("");
    let after = rest.strip_prefix(',').unwrap_or(rest).trim_start_matches([' ', '\t']);
    (rest.len() - after.len()) as u32
}

/// What is cut out of a text with an import or a name of one: its lines, where there is nothing else on them but a comma, and
/// the blank lines below where those above suffice. A comment after it stays on its line.
fn whole_lines(text: &str, span: Span) -> Span {
    const BLANK: [char; 2] = [' ', '\t'];
    let (before, after) = text.split_at_checked(span.start as usize).unwrap_or((text, ""));
    let after = after.get((span.end - span.start) as usize..).unwrap_or("");
    let head = before.trim_end_matches(BLANK);
    let line = after.split(LINE_END).next().unwrap_or("");
    let rest = line.strip_prefix(',').unwrap_or(line).trim_start();
    let is_alone = head.is_empty() || head.ends_with(LINE_END);
    if is_alone && rest.starts_with("//") {
        return Span { end: span.end + (line.len() - rest.len()) as u32, ..span };
    }
    if !is_alone || !rest.is_empty() {
        return span;
    }
    let below = after.get(line.len()..).unwrap_or("");
    let mut below = below.strip_prefix("\r\n").or_else(|| below.strip_prefix(LINE_END)).unwrap_or(below);
    let above = head.strip_suffix("\r\n").or_else(|| head.strip_suffix(LINE_END)).unwrap_or(head);
    let above = above.trim_end_matches(BLANK);
    if above.is_empty() || above.ends_with(LINE_END) {
        let content = below.trim_start().len();
        let lines = below.get(..below.len() - content).and_then(|blank| blank.rfind(LINE_END));
        below = lines.and_then(|n| below.get(n + 1..)).unwrap_or(below);
    }
    Span { start: head.len() as u32, end: (text.len() - below.len()) as u32, ..span }
}

fn private(cx: &mut Cx, file: &File, used: &HashSet<&str>) {
    for item in &file.items {
        let (what, name) = match &item.kind {
            ItemKind::Fn(f) => (if f.kernel { "kernel" } else { "function" }, &f.name),
            ItemKind::Const(c) => ("constant", &c.name),
            ItemKind::Struct(s) => ("struct", &s.name),
            ItemKind::Use(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => continue,
        };
        if name.text.starts_with('_') && !used.contains(name.text.as_str()) {
            let message = format!("the {what} `{}` is private to this file, which never uses it", name.text);
            cx.warn(warning(codes::UNUSED_PRIVATE, name.span, message, ""));
        }
    }
}

/// The walk over a file.
#[derive(Default)]
struct Walk<'a> {
    /// The variables in scope, inner ones last.
    vars: Vec<Var<'a>>,
    /// The position of each name in `vars`, the latest last.
    places: HashMap<&'a str, Vec<usize>>,
    /// The number of variables at the start of each block.
    scopes: Vec<usize>,
    /// Names of items that are mentioned.
    used: BTreeSet<&'a str>,
    /// Variables whose scope has ended, and the name of their function.
    done: Vec<(Option<Span>, Var<'a>)>,
    /// In how many `assert_error` blocks: what is wrong there is meant.
    silent: usize,
    /// The name of the function.
    own: Option<Span>,
}

impl<'a> Walk<'a> {
    fn item(&mut self, item: &'a Item) {
        match &item.kind {
            ItemKind::Use(_) | ItemKind::Err => {}
            ItemKind::Const(c) => {
                c.ty.iter().for_each(|t| self.ty(t));
                self.expr(&c.value);
            }
            ItemKind::Struct(s) => self.structure(s),
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Export(e) => {
                self.path(&e.path);
                self.args(&e.args);
            }
            ItemKind::Test(t) => {
                self.own = Some(t.name_span);
                self.block(&t.body);
            }
        }
    }

    fn structure(&mut self, s: &'a Struct) {
        s.cparams.iter().flat_map(|c| &c.bound).for_each(|t| self.ty(t));
        s.cparams.iter().filter_map(|c| c.default.as_ref()).for_each(|e| self.expr(e));
        s.fields.iter().filter_map(|f| f.ty.as_ref()).for_each(|t| self.ty(t));
        s.methods.iter().for_each(|m| self.item(m));
    }

    fn function(&mut self, f: &'a Fn) {
        self.own = Some(f.name.span);
        self.scopes.push(self.vars.len());
        for c in &f.cparams {
            c.bound.iter().for_each(|t| self.ty(t));
            self.declare(&c.name, Kind::Param);
        }
        for p in &f.params {
            p.ty.iter().for_each(|t| self.ty(t));
            self.declare(&p.name, Kind::Param);
        }
        // Defaults may name parameters after them.
        let defaults = f.cparams.iter().map(|c| &c.default).chain(f.params.iter().map(|p| &p.default));
        defaults.flatten().for_each(|e| self.expr(e));
        f.ret.iter().for_each(|t| self.ty(t));
        f.clauses.iter().for_each(|c| self.clause(c));
        self.block(&f.body);
        self.end();
    }

    fn clause(&mut self, c: &'a Clause) {
        for a in &c.args {
            if let (Some(name), ExprKind::Type(_)) = (&a.name, &a.value.kind) {
                self.declare(name, Kind::Param);
            }
        }
        self.args(&c.args);
        for row in &c.rows {
            self.args(&row.entries);
            row.cond.iter().for_each(|e| self.expr(e));
        }
    }

    fn declare(&mut self, name: &'a Name, kind: Kind) {
        // A hole has no name, and a method need not look at what it is called on.
        let quiet = name.text.is_empty() || name.text == "self" || self.silent > 0;
        let begin = self.scopes.last().copied().unwrap_or(0);
        let places = self.places.entry(&name.text).or_default();
        let outer = places.last().filter(|at| **at < begin).and_then(|at| self.vars.get(*at));
        let outer = outer.filter(|v| matches!(v.kind, Kind::Let { .. })).map(|v| v.name.span);
        places.push(self.vars.len());
        self.vars.push(Var { name, kind, read: quiet, assigned: quiet, outer });
    }

    fn end(&mut self) {
        let begin = self.scopes.pop().unwrap_or(0);
        while self.vars.len() > begin {
            let Some(v) = self.vars.pop() else { return };
            if let Some(places) = self.places.get_mut(v.name.text.as_str()) {
                places.pop();
            }
            self.done.push((self.own, v));
        }
    }

    fn find(&mut self, name: &str) -> Option<&mut Var<'a>> {
        let at = *self.places.get(name)?.last()?;
        self.vars.get_mut(at)
    }

    fn read(&mut self, name: &'a Name) {
        match self.find(&name.text) {
            Some(v) => v.read = true,
            None => {
                self.used.insert(&name.text);
            }
        }
    }

    /// A path: with more than one segment it begins with a file, whatever variables have its name.
    fn path(&mut self, p: &'a Path) {
        match p.segments.as_slice() {
            [] => {}
            [name] => self.read(name),
            [file, ..] => {
                self.used.insert(&file.text);
            }
        }
    }

    fn block(&mut self, b: &'a Block) {
        self.scopes.push(self.vars.len());
        b.stmts.iter().for_each(|s| self.stmt(s));
        b.tail.iter().for_each(|e| self.expr(e));
        self.end();
    }

    fn stmt(&mut self, s: &'a Stmt) {
        match &s.kind {
            StmtKind::Let { pat, ty, init } => {
                ty.iter().for_each(|t| self.ty(t));
                init.iter().for_each(|e| self.expr(e));
                self.pat(pat, init.is_some());
            }
            StmtKind::Const(c) => {
                c.ty.iter().for_each(|t| self.ty(t));
                self.expr(&c.value);
                // It hides variables of its name; whether it is used is not asked.
                let kind = Kind::Let { mutable: None, value: true };
                self.silent += 1;
                self.declare(&c.name, kind);
                self.silent -= 1;
            }
            StmtKind::Assign { place, value, .. } => {
                self.expr(value);
                self.place(place);
            }
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::For { pat, iter, body } => {
                self.expr(iter);
                self.scopes.push(self.vars.len());
                self.pat(pat, true);
                self.block(body);
                self.end();
            }
            StmtKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
            StmtKind::Return(e) => e.iter().for_each(|e| self.expr(e)),
            StmtKind::AssertError { body, .. } => {
                self.silent += 1;
                self.block(body);
                self.silent -= 1;
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Err => {}
        }
    }

    /// The left side of an assignment: its variable changes, and is not read by that.
    fn place(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Path(p) => {
                if let [name] = p.segments.as_slice()
                    && let Some(v) = self.find(&name.text)
                {
                    v.assigned = true;
                }
            }
            ExprKind::Member(of, _) => self.place(of),
            ExprKind::Index(of, items) => {
                self.place(of);
                self.items(items);
            }
            ExprKind::Tuple(parts) => parts.iter().for_each(|e| self.place(e)),
            _other => self.expr(e),
        }
    }

    fn pat(&mut self, p: &'a Pat, value: bool) {
        match &p.kind {
            PatKind::Name { mutable, name } => {
                self.declare(name, Kind::Let { mutable: mutable.then_some(p.span), value });
            }
            PatKind::Tuple(ps) => ps.iter().for_each(|p| self.pat(p, value)),
            PatKind::Err => {}
        }
    }

    fn args(&mut self, args: &'a [Arg]) {
        args.iter().for_each(|a| self.expr(&a.value));
    }

    fn items(&mut self, items: &'a [Subscript]) {
        for i in items {
            match i {
                Subscript::Expr(e) | Subscript::Named(_, e) => self.expr(e),
                Subscript::Slice(a, b, _) => a.iter().chain(b).for_each(|e| self.expr(e)),
            }
        }
    }

    fn expr(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::Path(p) => self.path(p),
            ExprKind::Tuple(es) | ExprKind::Array(es) => es.iter().for_each(|e| self.expr(e)),
            ExprKind::Unary(_, a) => self.expr(a),
            ExprKind::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Cast(a, t) => {
                self.expr(a);
                self.ty(t);
            }
            ExprKind::Index(a, items) => {
                self.expr(a);
                self.items(items);
            }
            ExprKind::Call(f, args) => {
                self.expr(f);
                self.args(args);
            }
            ExprKind::Member(a, _) => self.expr(a),
            ExprKind::If(c, t, f) => {
                self.expr(c);
                self.block(t);
                f.iter().for_each(|e| self.expr(e));
            }
            ExprKind::IfLet(name, c, t, f) => {
                self.expr(c);
                self.scopes.push(self.vars.len());
                self.declare(name, Kind::Let { mutable: None, value: true });
                self.block(t);
                self.end();
                f.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Block(b) => self.block(b),
            ExprKind::Lambda(params, body) => {
                self.scopes.push(self.vars.len());
                for (p, t) in params {
                    t.iter().for_each(|t| self.ty(t));
                    self.pat(p, true);
                }
                self.expr(body);
                self.end();
            }
            ExprKind::Type(t) => self.ty(t),
            ExprKind::Return(e) => e.iter().for_each(|e| self.expr(e)),
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::Err => {}
        }
    }

    fn ty(&mut self, t: &'a TypeExpr) {
        match &t.kind {
            TypeKind::Path { path, args, .. } => {
                self.path(path);
                args.iter().for_each(|items| self.items(items));
            }
            TypeKind::Ptr { pointee: t, .. } | TypeKind::Mut(t) | TypeKind::Option(t) => self.ty(t),
            TypeKind::Tuple(ts) => ts.iter().for_each(|t| self.ty(t)),
            TypeKind::Fn(ps, r) => {
                ps.iter().for_each(|t| self.ty(t));
                self.ty(r);
            }
            TypeKind::Err => {}
        }
    }
}
