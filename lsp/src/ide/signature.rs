//! Help on the arguments of the call around a place.

use std::ops::Range;

use tk_ops::reference;
use tk_sema::index::{Symbol, SymbolKind};
use tk_syntax::Span;
use tk_syntax::token::Tok;

use super::site::{CallSite, Site};
use super::{Analysis, Workspace, describe};

/// The callee and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its declaration on one line.
    pub label: String,
    /// Its documentation, in Markdown.
    pub doc: String,
    /// The parameters: their bytes in `label`, and their documentation.
    pub params: Vec<(Range<usize>, String)>,
    /// The parameter whose argument is being written.
    pub active: Option<usize>,
}

/// The call around an offset.
pub fn signature(ws: &mut Workspace, path: &str, offset: usize) -> Option<Signature> {
    let a = ws.analysis(path);
    let site = Site::new(&a, offset)?;
    let call = site.call()?;
    let symbol = callee(&a, &site, &call)?;
    let mut s = Declared::of(&a, symbol)?;
    let list = if call.open == Tok::LParen { s.run.clone() } else { s.fixed.clone() };
    let by_name = |n: &str| list.clone().find(|i| s.names.get(*i).is_some_and(|p| p == n));
    let active = match call.named {
        Some(n) => by_name(n),
        None => Some(list.start + call.position).filter(|i| list.contains(i)),
    };
    // What takes all further arguments takes this one.
    let active = active.or_else(|| s.rest.then(|| list.end.checked_sub(1)).flatten());
    Some(Signature { label: std::mem::take(&mut s.label), doc: s.doc, params: s.params, active })
}

/// The symbol that a call names.
pub(super) fn callee<'a>(a: &'a Analysis, site: &Site, call: &CallSite) -> Option<&'a Symbol> {
    let t = site.tokens.get(call.callee)?;
    let found = a.index.reference(Span::new(Analysis::ROOT, t.start, t.end));
    let found = found.and_then(|r| describe::resolve(a, r.symbol));
    found.or_else(|| {
        // A call that cannot be read has no meaning yet; a name of the file has one all the same.
        let name = a.root_text().get(t.start..t.end)?;
        let method =
            call.callee.checked_sub(1).and_then(|i| site.tokens.get(i)).is_some_and(|t| t.tok == Tok::Dot);
        let fits = |s: &&Symbol| match &s.kind {
            SymbolKind::Fn(_) => s.owner.is_some() == method,
            SymbolKind::Struct(_) => !method,
            SymbolKind::Module(_)
            | SymbolKind::Field(..)
            | SymbolKind::Const(_)
            | SymbolKind::CVar(_)
            | SymbolKind::Param(_)
            | SymbolKind::Local(_)
            | SymbolKind::Alias(_)
            | SymbolKind::Builtin(_)
            | SymbolKind::BuiltinParam(..) => false,
        };
        a.index.symbols.iter().filter(|s| s.name == name).find(fits)
    })
}

/// Something with parameters.
pub(super) struct Declared {
    pub label: String,
    pub doc: String,
    pub names: Vec<String>,
    pub params: Vec<(Range<usize>, String)>,
    /// The parameters in `[..]`.
    pub fixed: Range<usize>,
    /// The parameters in `(..)`.
    pub run: Range<usize>,
    /// Whether the last one takes all further arguments.
    pub rest: bool,
}

impl Declared {
    /// The parameters of a function, kernel, struct or builtin; anything else has none.
    pub fn of(a: &Analysis, s: &Symbol) -> Option<Declared> {
        let doc = describe::words(a, s).doc;
        match &s.kind {
            SymbolKind::Builtin(row) => {
                let text = reference::signature(row);
                let skip = usize::from(describe::has_receiver(row));
                let names: Vec<String> = row.params.iter().skip(skip).map(|p| p.name.to_string()).collect();
                let n = text.params.len();
                let rest = row.params.last().is_some_and(|p| p.kind == tk_ops::table::ParamKind::Rest);
                let params = text.params.into_iter().map(|r| (r, String::new())).collect();
                Some(Declared { label: text.text, doc, names, params, fixed: 0..0, run: 0..n, rest })
            }
            SymbolKind::Fn(_) => Self::function(a, s, false, doc),
            SymbolKind::Struct(id) => Self::strukt(a, s, *id, doc),
            SymbolKind::Module(_)
            | SymbolKind::Field(..)
            | SymbolKind::Const(_)
            | SymbolKind::CVar(_)
            | SymbolKind::Param(_)
            | SymbolKind::Local(_)
            | SymbolKind::Alias(_)
            | SymbolKind::BuiltinParam(..) => None,
        }
    }

    /// A function or kernel; `this` says whether the `self` of a method is shown.
    pub fn function(a: &Analysis, s: &Symbol, this: bool, doc: String) -> Option<Declared> {
        let (_, f) = describe::item_fn(a, s.span?)?;
        let word = if f.kernel { "kernel" } else { "fn" };
        let mut d = Declared::empty(format!("{word} {}", f.name.text), doc);
        let fixed =
            f.cparams.iter().map(|c| (c.name.text.clone(), describe::line(a.text(c.span)), String::new()));
        d.list(('[', ']'), fixed.collect());
        d.fixed = 0..d.params.len();
        let own = f.params.iter().skip(usize::from(s.owner.is_some() && !this));
        let run = own.map(|p| {
            let (from, to) = (p.name.span, p.span);
            let written = Span { start: from.start.max(to.start), ..to };
            (p.name.text.clone(), describe::line(a.text(written)), p.doc.clone())
        });
        let start = d.params.len();
        d.list(('(', ')'), run.collect());
        d.run = start..d.params.len();
        if let Some(t) = &f.ret {
            d.label += &format!(" -> {}", describe::line(a.text(t.span)));
        }
        Some(d)
    }

    fn strukt(a: &Analysis, s: &Symbol, id: tk_sema::hir::StructId, doc: String) -> Option<Declared> {
        let hir = &a.checked.hir;
        let st = hir.structs.get(id.0 as usize)?;
        let mut d = Declared::empty(s.name.clone(), doc);
        let fixed = st.cparams.iter().filter_map(|c| hir.cvars.get(c.0 as usize));
        let fixed = fixed.map(|c| {
            (c.name.clone(), format!("{}: {}", c.name, tk_sema::show::ckind(hir, &c.kind)), String::new())
        });
        d.list(('[', ']'), fixed.collect());
        d.fixed = 0..d.params.len();
        let start = d.params.len();
        let fields = st.fields.iter().map(|f| {
            let doc = a.index.reference(f.2).and_then(|r| a.index.symbol(r.symbol)).map(|s| s.doc.clone());
            (f.0.clone(), format!("{} = {}", f.0, a.show(&f.1)), doc.unwrap_or_default())
        });
        d.list(('(', ')'), fields.collect());
        d.run = start..d.params.len();
        Some(d)
    }

    fn empty(label: String, doc: String) -> Declared {
        Declared { label, doc, names: vec![], params: vec![], fixed: 0..0, run: 0..0, rest: false }
    }

    /// Adds a list of parameters; an empty `[]` is not written.
    fn list(&mut self, (open, close): (char, char), params: Vec<(String, String, String)>) {
        if params.is_empty() && open == '[' {
            return;
        }
        self.label.push(open);
        for (i, (name, text, doc)) in params.into_iter().enumerate() {
            self.label += if i > 0 { ", " } else { "" };
            let start = self.label.len();
            self.label += &text;
            self.names.push(name);
            self.params.push((start..self.label.len(), doc));
        }
        self.label.push(close);
    }
}
