//! The readable text of a checked program, for `--emit hir`: typed, names resolved, in source order.

use std::collections::BTreeSet;
use std::fmt::Write;

use tk_syntax::FileId;

use crate::hir::*;
use crate::show;
use crate::types::Ty;

/// The text of a program, file by file; the first is the one that was asked for.
pub fn dump_hir(hir: &Hir) -> String {
    let mut d = Dump { hir, out: String::new(), func: None, indent: 0 };
    let structs = hir.structs.iter().map(|s| s.file);
    let consts = hir.consts.iter().map(|c| c.span.file);
    let files: BTreeSet<FileId> = hir.fns.iter().map(|f| f.file).chain(structs).chain(consts).collect();
    for file in files {
        d.line(&format!("// file {}", file.0));
        d.file(file);
    }
    d.out
}

struct Dump<'h> {
    hir: &'h Hir,
    out: String,
    func: Option<&'h HFn>,
    indent: usize,
}

impl<'h> Dump<'h> {
    fn file(&mut self, file: FileId) {
        let hir = self.hir;
        self.func = None;
        for s in hir.structs.iter().filter(|s| s.file == file) {
            self.strukt(s);
        }
        for (i, c) in hir.consts.iter().enumerate().filter(|(_, c)| c.span.file == file) {
            let value = self.expr(&c.value);
            self.line(&format!("const {}#{i}: {} = {value};", c.name, show::ty(hir, &c.value.ty)));
        }
        for f in hir.fns.iter().filter(|f| f.file == file) {
            self.func = Some(f);
            self.function(f);
        }
        for e in hir.exports.iter().filter(|e| hir.func(e.kernel).file == file) {
            let mut items = vec![];
            for (id, values) in &e.values {
                let values: Vec<String> = values.iter().map(|v| self.expr(v)).collect();
                items.push(format!("{} = [{}]", hir.cvar(*id).name, values.join(", ")));
            }
            self.line(&format!("export {}[{}];", hir.func(e.kernel).name, items.join(", ")));
        }
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn ty(&self, t: &Ty) -> String {
        show::ty(self.hir, t)
    }

    fn cparams(&mut self, ids: &[CVarId]) -> String {
        if ids.is_empty() {
            return String::new();
        }
        let mut items = vec![];
        for id in ids {
            let c = self.hir.cvar(*id);
            let default = c.default.as_ref().map(|e| format!(" = {}", self.expr(e))).unwrap_or_default();
            items.push(format!("{}: {}{default}", c.name, show::ckind(self.hir, &c.kind)));
        }
        format!("[{}]", items.join(", "))
    }

    fn strukt(&mut self, s: &HStruct) {
        let cparams = self.cparams(&s.cparams);
        let fields: Vec<String> = s.fields.iter().map(|(n, t, _)| format!("{n}: {}", self.ty(t))).collect();
        self.line(&format!("struct {}{cparams} {{ {} }}", s.name, fields.join(", ")));
    }

    fn function(&mut self, f: &HFn) {
        let word = match f.kind {
            FnKind::Fn => "fn",
            FnKind::Kernel => "kernel",
            FnKind::Test => "test",
        };
        let mut marks = String::new();
        for (on, mark) in [(f.fast, "@fast "), (f.noinline, "@noinline "), (f.broken, "@broken ")] {
            if on {
                marks.push_str(mark);
            }
        }
        let name = if f.kind == FnKind::Test { format!("{:?}", f.name) } else { f.name.clone() };
        let cparams = self.cparams(&f.cparams);
        let mut params = vec![];
        for p in &f.params {
            let default = p.default.as_ref().map(|e| format!(" = {}", self.expr(e))).unwrap_or_default();
            params.push(format!("{}: {}{default}", self.local(p.local), self.ty(&p.ty)));
        }
        let params = if f.kind == FnKind::Test { String::new() } else { format!("({})", params.join(", ")) };
        let ret = if f.kind == FnKind::Fn { format!(" -> {}", self.ty(&f.ret)) } else { String::new() };
        self.line(&format!("{marks}{word} {name}{cparams}{params}{ret}"));
        self.contract(&f.contract);
        self.line("{");
        self.block(&f.body);
        self.line("}");
    }

    fn contract(&mut self, c: &Contract) {
        self.indent += 1;
        if !c.grid.is_empty() {
            let items = self.list(&c.grid);
            self.line(&format!("grid({items})"));
        }
        if !c.launch.is_empty() {
            let items: Vec<String> =
                c.launch.iter().map(|(n, e)| format!("{n} = {}", self.expr(e))).collect();
            self.line(&format!("launch({})", items.join(", ")));
        }
        let lists = c.prefer.iter().map(|list| ("prefer", list));
        for (word, list) in std::iter::once(("require", &c.require)).chain(lists) {
            for r in list {
                let cond = self.expr(&r.cond);
                let when = if r.compile_time { " at compile time" } else { "" };
                self.line(&format!("{word}({cond}){when}"));
            }
        }
        for (a, b) in &c.alias {
            let (a, b) = (self.local(*a), self.local(*b));
            self.line(&format!("alias({a}, {b})"));
        }
        for s in &c.scratch {
            let count = self.expr(&s.count);
            let name = self.local(s.local);
            let restored = if s.restored { ", restored = true" } else { "" };
            self.line(&format!("scratch({name}, {count}, zeroed = {}{restored})", s.zeroed));
        }
        if let Some(t) = &c.tune {
            self.tune(t);
        }
        self.indent -= 1;
    }

    fn tune(&mut self, t: &Tune) {
        let key = self.list(&t.key);
        self.line(&format!("tune(key = ({key}))"));
        for (entries, cond) in &t.rows {
            let items: Vec<String> =
                entries.iter().map(|(n, vs)| format!("{n} = [{}]", self.list(vs))).collect();
            let cond = cond.as_ref().map(|c| format!(" if {}", self.expr(c))).unwrap_or_default();
            self.line(&format!("    {{ {} }}{cond}", items.join(", ")));
        }
    }

    /// `x#3`: the number tells variables of one name apart.
    fn local(&self, id: LocalId) -> String {
        let name = self.func.and_then(|f| f.locals.get(id.0 as usize)).map_or("?", |l| l.name.as_str());
        format!("{name}#{}", id.0)
    }

    fn block(&mut self, b: &HBlock) {
        self.indent += 1;
        for s in &b.stmts {
            self.stmt(s);
        }
        if let Some(t) = &b.tail {
            let t = self.typed(t);
            self.line(&t);
        }
        self.indent -= 1;
    }

    fn stmt(&mut self, s: &HStmt) {
        match &s.kind {
            HStmtKind::Err => self.line("?;"),
            HStmtKind::Let(p, None) => {
                let p = self.pat(p);
                self.line(&format!("let {p};"));
            }
            HStmtKind::Let(p, Some(e)) => {
                let (p, e) = (self.pat(p), self.typed(e));
                self.line(&format!("let {p} = {e};"));
            }
            HStmtKind::Assign { local, path, value } => {
                let path: String = path.iter().map(|i| format!(".{i}")).collect();
                let (name, value) = (self.local(*local), self.typed(value));
                self.line(&format!("{name}{path} = {value};"));
            }
            HStmtKind::Expr(e) => {
                let e = self.typed(e);
                self.line(&format!("{e};"));
            }
            HStmtKind::For { var, lo, hi, step, options, body } => {
                let mut args = vec![self.expr(lo), self.expr(hi), self.expr(step)];
                args.extend(options.iter().map(|(n, e)| format!("{n} = {}", self.expr(e))));
                let var = self.local(*var);
                self.braced(&format!("for {var} in range({}) {{", args.join(", ")), body);
            }
            HStmtKind::StaticFor { var, iter, body } => {
                let iter = match iter {
                    StaticIter::Range(a, b, c) => {
                        format!("static_range({}, {}, {})", self.expr(a), self.expr(b), self.expr(c))
                    }
                    StaticIter::List(items) => format!("[{}]", self.list(items)),
                };
                let name = self.hir.cvar(*var).name.clone();
                self.braced(&format!("for {name} in {iter} {{"), body);
            }
            HStmtKind::While { cond, body } => {
                let cond = self.expr(cond);
                self.braced(&format!("while {cond} {{"), body);
            }
            HStmtKind::Return(None) => self.line("return;"),
            HStmtKind::Return(Some(e)) => {
                let e = self.typed(e);
                self.line(&format!("return {e};"));
            }
            HStmtKind::Break => self.line("break;"),
            HStmtKind::Continue => self.line("continue;"),
            HStmtKind::AssertError { code, body } => match body {
                Some(b) => self.braced(&format!("assert_error {code:?} {{"), b),
                None => self.line(&format!("assert_error {code:?} (met)")),
            },
        }
    }

    fn braced(&mut self, head: &str, body: &HBlock) {
        self.line(head);
        self.block(body);
        self.line("}");
    }

    fn pat(&self, p: &HPat) -> String {
        match p {
            HPat::Ignore => "_".into(),
            HPat::Local(id) => self.local(*id),
            HPat::Tuple(items) => {
                format!("({})", items.iter().map(|p| self.pat(p)).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// An expression with its type, unless it has none.
    fn typed(&mut self, e: &HExpr) -> String {
        let text = self.expr(e);
        match &e.ty {
            Ty::Unit | Ty::Never => text,
            t => format!("{text}: {}", self.ty(t)),
        }
    }

    fn list(&mut self, items: &[HExpr]) -> String {
        items.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    /// A block inside an expression, on lines of its own.
    fn inner(&mut self, b: &HBlock) -> String {
        let mut d = Dump { hir: self.hir, out: String::new(), func: self.func, indent: self.indent };
        d.block(b);
        let mut out = format!("{{\n{}", d.out);
        for _ in 0..self.indent {
            out.push_str("    ");
        }
        out.push('}');
        out
    }

    fn cargs(&mut self, cargs: &[(CVarId, crate::types::CTerm)]) -> String {
        if cargs.is_empty() {
            return String::new();
        }
        let mut items = vec![];
        for (id, c) in cargs {
            let value = match c {
                crate::types::CTerm::Expr(e) => self.expr(e),
                other => show::cterm(self.hir, other),
            };
            items.push(format!("{} = {value}", self.hir.cvar(*id).name));
        }
        format!("[{}]", items.join(", "))
    }

    fn expr(&mut self, e: &HExpr) -> String {
        match &e.kind {
            HKind::Err => "?".into(),
            HKind::Int(i) => format!("{i}"),
            HKind::Float(v) => crate::eval::show_float(*v),
            HKind::Bool(b) => format!("{b}"),
            HKind::Str(s) => format!("{s:?}"),
            HKind::None => "None".into(),
            HKind::Unit => "()".into(),
            HKind::Local(id) => self.local(*id),
            HKind::CVar(id) => self.hir.cvar(*id).name.clone(),
            HKind::Const(id) => format!("{}#{}", self.hir.constant(*id).name, id.0),
            HKind::DType(d) => show::dterm(self.hir, *d),
            HKind::DTypeFact(d, f) => format!("{}.{f}", show::dterm(self.hir, *d)),
            HKind::Shape(items) => format!("[{}]", self.list(items)),
            HKind::Target(f) => format!("target.{}", f.name),
            HKind::Device(f) => format!("device.{}", f.name()),
            HKind::Table(list) => format!("table{}", self.expr(list)),
            HKind::Tuple(items) => format!("({})", self.list(items)),
            HKind::Struct(items) => format!("{} {{ {} }}", self.ty(&e.ty), self.list(items)),
            HKind::Field(x, i) => format!("{}.{i}", self.expr(x)),
            HKind::Builtin(row, args) => {
                let args: Vec<String> = args.iter().map(|a| self.arg(a)).collect();
                format!("`{}`({})", row.name, args.join(", "))
            }
            HKind::ShortCircuit { or, lhs, rhs } => {
                format!("({} {} {})", self.expr(lhs), if *or { "||" } else { "&&" }, self.expr(rhs))
            }
            HKind::Cast(x) => format!("({} as {})", self.expr(x), self.ty(&e.ty)),
            HKind::Index(x, at) => {
                let at: Vec<String> = at.iter().map(|i| self.index(i)).collect();
                format!("{}[{}]", self.expr(x), at.join(", "))
            }
            HKind::Transpose(x) | HKind::ViewT(x) => format!("{}.T", self.expr(x)),
            HKind::SubView(x, at) => {
                let at: Vec<String> = at.iter().map(|s| self.slice(s)).collect();
                format!("{}[{}]", self.expr(x), at.join(", "))
            }
            HKind::ViewPtr(x) => format!("{}.ptr", self.expr(x)),
            HKind::Extent(x, i) => format!("{}.shape[{i}]", self.expr(x)),
            HKind::Stride(x, i) => format!("{}.strides[{i}]", self.expr(x)),
            HKind::Extents { view, strides: false } => format!("{}.shape", self.expr(view)),
            HKind::Extents { view, strides: true } => format!("{}.strides", self.expr(view)),
            HKind::Entry(x, i) => format!("{}[{}]", self.expr(x), self.expr(i)),
            HKind::Call { callee, cargs, args } => {
                let (c, a) = (self.cargs(cargs), self.list(args));
                format!("{}{c}({a})", self.hir.func(*callee).name)
            }
            HKind::CallValue { callee, args } => format!("({})({})", self.expr(callee), self.list(args)),
            HKind::FnRef(id, cargs) => format!("{}{}", self.hir.func(*id).name, self.cargs(cargs)),
            HKind::BuiltinRef(row) => format!("`{}`", row.name),
            HKind::Lambda { params, body } => {
                let params: Vec<String> = params.iter().map(|p| self.local(*p)).collect();
                format!("|{}| {}", params.join(", "), self.expr(body))
            }
            HKind::Launch { kernel, cargs, args } => {
                let (c, a) = (self.cargs(cargs), self.list(args));
                format!("launch {}{c}({a})", self.hir.func(*kernel).name)
            }
            HKind::If { cond, then, els } => {
                let word = if cond.konst { "static if" } else { "if" };
                let mut out = format!("{word} {} {}", self.expr(cond), self.inner(then));
                self.els(els.as_deref(), &mut out);
                out
            }
            HKind::IfLet { opt, bind, then, els } => {
                let mut out =
                    format!("if let {} = {} {}", self.local(*bind), self.expr(opt), self.inner(then));
                self.els(els.as_deref(), &mut out);
                out
            }
            HKind::Block(b) => self.inner(b),
            HKind::Return(None) => "return".into(),
            HKind::Return(Some(x)) => format!("return {}", self.expr(x)),
        }
    }

    fn els(&mut self, els: Option<&HBlock>, out: &mut String) {
        if let Some(b) = els {
            let text = self.inner(b);
            // Writing to a string does not fail.
            let _ = write!(out, " else {text}");
        }
    }

    fn arg(&mut self, a: &HArg) -> String {
        match a {
            HArg::Default => "_".into(),
            HArg::Expr(e) => self.expr(e),
            HArg::List(items) => format!("[{}]", self.list(items)),
            HArg::Shape(s) => show::shape(self.hir, s),
            HArg::Word(w) => (*w).into(),
        }
    }

    fn index(&mut self, i: &HIndex) -> String {
        match i {
            HIndex::New => "None".into(),
            HIndex::Whole => ":".into(),
            HIndex::Slice(a, b) => format!("{}:{}", self.expr(a), self.expr(b)),
            HIndex::At(e) => self.expr(e),
        }
    }

    fn slice(&mut self, s: &HSlice) -> String {
        match s {
            HSlice::Whole => ":".into(),
            HSlice::Range(a, b) => {
                let mut end = |e: &Option<Box<HExpr>>| e.as_ref().map(|e| self.expr(e)).unwrap_or_default();
                let (a, b) = (end(a), end(b));
                format!("{a}:{b}")
            }
            HSlice::At(e) => self.expr(e),
        }
    }
}
