//! The dump of a tree for people: one node a line, indented by depth, without spans.
//!
//! The same tree gives the same text. Holes print as `?`.

use crate::ast::*;

/// The tree of a file as indented lines.
pub fn dump(file: &File) -> String {
    let mut d = Dump { out: String::new(), depth: 0 };
    for item in &file.items {
        d.item(item);
    }
    d.out
}

struct Dump {
    out: String,
    depth: usize,
}

impl Dump {
    fn line(&mut self, text: &str) {
        self.out.push_str(&"  ".repeat(self.depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn inside(&mut self, f: impl FnOnce(&mut Self)) {
        self.depth += 1;
        f(self);
        self.depth -= 1;
    }

    fn item(&mut self, item: &Item) {
        self.attrs(&item.attrs);
        match &item.kind {
            ItemKind::Use(u) => {
                let names = u.names.as_ref().map(|n| format!("::{{{}}}", join(n, |n| n.text.clone())));
                let alias = u.alias.as_ref().map(|a| format!(" as {}", a.text));
                let (names, alias) = (names.unwrap_or_default(), alias.unwrap_or_default());
                self.line(&format!("use {}{names}{alias}", path(&u.path)));
            }
            ItemKind::Const(c) => self.constant(c),
            ItemKind::Struct(s) => {
                self.line(&format!("struct {}", name(&s.name)));
                self.inside(|d| {
                    d.cparams(&s.cparams);
                    s.fields.iter().for_each(|f| d.param("field", f));
                    s.methods.iter().for_each(|m| d.item(m));
                });
            }
            ItemKind::Fn(f) => self.function(f),
            ItemKind::Export(e) => {
                self.line(&format!("export {}", path(&e.path)));
                self.inside(|d| d.args(&e.args));
            }
            ItemKind::Test(t) => {
                self.line(&format!("test {:?}", t.name));
                self.block(&t.body);
            }
            ItemKind::Err => self.line("?"),
        }
    }

    fn attrs(&mut self, attrs: &[AstAttr]) {
        for a in attrs {
            self.line(&format!("@{}", name(&a.name)));
            self.inside(|d| d.args(&a.args));
        }
    }

    fn constant(&mut self, c: &Const) {
        self.line(&format!("const {}{}", name(&c.name), typed(c.ty.as_ref())));
        self.inside(|d| d.expr(&c.value));
    }

    fn function(&mut self, f: &Fn) {
        let word = if f.kernel { "kernel" } else { "fn" };
        let ret = f.ret.as_ref().map(|t| format!(" -> {}", ty(t))).unwrap_or_default();
        self.line(&format!("{word} {}{ret}", name(&f.name)));
        self.inside(|d| {
            d.cparams(&f.cparams);
            f.params.iter().for_each(|p| d.param("param", p));
            for c in &f.clauses {
                d.line(&format!("clause {}", name(&c.name)));
                d.inside(|d| {
                    d.args(&c.args);
                    for row in &c.rows {
                        d.line("row");
                        d.inside(|d| {
                            d.args(&row.entries);
                            row.cond.iter().for_each(|c| d.part("if", c));
                        });
                    }
                });
            }
        });
        self.block(&f.body);
    }

    fn cparams(&mut self, cparams: &[CParam]) {
        for c in cparams {
            let bound: Vec<String> = c.bound.iter().map(ty).collect();
            let bound = if bound.is_empty() { String::new() } else { format!(": {}", bound.join(" | ")) };
            self.line(&format!("cparam {}{bound}", name(&c.name)));
            self.inside(|d| c.default.iter().for_each(|e| d.expr(e)));
        }
    }

    fn param(&mut self, word: &str, p: &Param) {
        self.attrs(&p.attrs);
        let konst = if p.konst { " const" } else { "" };
        self.line(&format!("{word}{konst} {}{}", name(&p.name), typed(p.ty.as_ref())));
        self.inside(|d| p.default.iter().for_each(|e| d.expr(e)));
    }

    fn block(&mut self, block: &Block) {
        self.inside(|d| {
            block.stmts.iter().for_each(|s| d.stmt(s));
            if let Some(tail) = &block.tail {
                d.part("value", tail);
            }
        });
    }

    /// A word with an expression below it.
    fn part(&mut self, word: &str, e: &Expr) {
        self.line(word);
        self.inside(|d| d.expr(e));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.attrs(&stmt.attrs);
        match &stmt.kind {
            StmtKind::Let { pat: p, ty, init } => {
                self.line(&format!("let {}{}", pat(p), typed(ty.as_ref())));
                self.inside(|d| init.iter().for_each(|e| d.expr(e)));
            }
            StmtKind::Const(c) => self.constant(c),
            StmtKind::Assign { place, op, value } => {
                self.line(&format!("{}=", op.map_or("", BinOp::symbol)));
                self.inside(|d| {
                    d.expr(place);
                    d.expr(value);
                });
            }
            StmtKind::Expr(e) => self.part("do", e),
            StmtKind::For { pat: p, iter, body } => {
                self.line(&format!("for {}", pat(p)));
                self.inside(|d| d.part("in", iter));
                self.block(body);
            }
            StmtKind::While { cond, body } => {
                self.line("while");
                self.inside(|d| d.expr(cond));
                self.block(body);
            }
            StmtKind::Return(e) => {
                self.line("return");
                self.inside(|d| e.iter().for_each(|e| d.expr(e)));
            }
            StmtKind::Break => self.line("break"),
            StmtKind::Continue => self.line("continue"),
            StmtKind::AssertError { code, body, .. } => {
                self.line(&format!("assert_error {code:?}"));
                self.block(body);
            }
            StmtKind::Err => self.line("?"),
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Path(p) => self.line(&path(p)),
            ExprKind::Int(Some(i)) => self.line(&i.to_string()),
            ExprKind::Int(None) | ExprKind::Err => self.line("?"),
            ExprKind::Float(f) => self.line(f),
            ExprKind::Str(s) => self.line(&format!("{s:?}")),
            ExprKind::Bool(b) => self.line(&b.to_string()),
            ExprKind::None => self.line("None"),
            ExprKind::Tuple(list) => self.list("tuple", list),
            ExprKind::Array(list) => self.list("array", list),
            ExprKind::Unary(UnOp::Neg, a) => self.part("-", a),
            ExprKind::Unary(UnOp::Not, a) => self.part("!", a),
            ExprKind::Binary(op, a, b) => {
                self.line(op.symbol());
                self.inside(|d| {
                    d.expr(a);
                    d.expr(b);
                });
            }
            ExprKind::Cast(a, t) => self.part(&format!("as {}", ty(t)), a),
            ExprKind::Index(a, list) => {
                self.part("index", a);
                self.inside(|d| list.iter().for_each(|i| d.index(i)));
            }
            ExprKind::Call(f, args) => {
                self.part("call", f);
                self.inside(|d| d.args(args));
            }
            ExprKind::Member(a, n) => self.part(&format!(".{}", name(n)), a),
            ExprKind::If(cond, then, other) => {
                self.part("if", cond);
                self.arms(then, other.as_deref());
            }
            ExprKind::IfLet(n, value, then, other) => {
                self.part(&format!("if let {}", name(n)), value);
                self.arms(then, other.as_deref());
            }
            ExprKind::Block(b) => {
                self.line("block");
                self.block(b);
            }
            ExprKind::Lambda(params, body) => {
                let params = join(params, |(p, t)| pat(p) + &typed(t.as_ref()));
                self.part(&format!("|{params}|"), body);
            }
            ExprKind::Type(t) => self.line(&format!("type {}", ty(t))),
            ExprKind::Return(e) => {
                self.line("return");
                self.inside(|d| e.iter().for_each(|e| d.expr(e)));
            }
        }
    }

    fn list(&mut self, word: &str, list: &[Expr]) {
        self.line(word);
        self.inside(|d| list.iter().for_each(|e| d.expr(e)));
    }

    fn arms(&mut self, then: &Block, other: Option<&Expr>) {
        self.line("then");
        self.block(then);
        if let Some(e) = other {
            self.part("else", e);
        }
    }

    fn index(&mut self, index: &Subscript) {
        match index {
            Subscript::Expr(e) => self.expr(e),
            Subscript::Slice(a, b, _) => {
                self.line(":");
                for (word, side) in [("from", a), ("to", b)] {
                    if let Some(e) = side {
                        self.inside(|d| d.part(word, e));
                    }
                }
            }
            Subscript::Named(n, e) => self.part(&format!("{} =", name(n)), e),
        }
    }

    fn args(&mut self, args: &[Arg]) {
        for a in args {
            match &a.name {
                Some(n) => self.part(&format!("{} =", name(n)), &a.value),
                None => self.expr(&a.value),
            }
        }
    }
}

fn join<T>(list: &[T], f: impl FnMut(&T) -> String) -> String {
    list.iter().map(f).collect::<Vec<_>>().join(", ")
}

fn name(n: &Name) -> &str {
    if n.text.is_empty() { "?" } else { &n.text }
}

fn path(p: &Path) -> String {
    p.segments.iter().map(name).collect::<Vec<_>>().join("::")
}

fn typed(t: Option<&TypeExpr>) -> String {
    t.map(|t| format!(": {}", ty(t))).unwrap_or_default()
}

/// A type on one line.
fn ty(t: &TypeExpr) -> String {
    match &t.kind {
        TypeKind::Path { path: p, member, args } => {
            let member = member.as_ref().map(|m| format!(".{}", name(m))).unwrap_or_default();
            let args = args.as_ref().map(|a| format!("[{}]", join(a, flat))).unwrap_or_default();
            path(p) + &member + &args
        }
        TypeKind::Ptr { mutable, pointee } => {
            format!("*{}{}", if *mutable { "mut " } else { "" }, ty(pointee))
        }
        TypeKind::Mut(t) => format!("mut {}", ty(t)),
        TypeKind::Option(t) => format!("{}?", ty(t)),
        TypeKind::Tuple(list) => format!("({})", join(list, ty)),
        TypeKind::Fn(list, ret) => format!("fn({}) -> {}", join(list, ty), ty(ret)),
        TypeKind::Err => "?".to_string(),
    }
}

/// An argument of a type on one line; what is unusual there prints as its tree.
fn flat(index: &Subscript) -> String {
    if let Subscript::Expr(e) = index {
        match &e.kind {
            ExprKind::Member(a, n) => return format!("{}.{}", flat_expr(a), name(n)),
            ExprKind::Type(t) => return ty(t),
            _tree => return flat_expr(e),
        }
    }
    let mut d = Dump { out: String::new(), depth: 0 };
    d.index(index);
    one_line(&d.out)
}

fn flat_expr(e: &Expr) -> String {
    let mut d = Dump { out: String::new(), depth: 0 };
    d.expr(e);
    one_line(&d.out)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn pat(p: &Pat) -> String {
    match &p.kind {
        PatKind::Name { mutable, name: n } => format!("{}{}", if *mutable { "mut " } else { "" }, name(n)),
        PatKind::Tuple(list) => format!("({})", join(list, pat)),
        PatKind::Err => "?".to_string(),
    }
}
