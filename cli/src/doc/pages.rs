//! What the reference says of a module: its public items, with signatures as they are written.

use serde::Serialize;
use tk_syntax::ast::{Clause, Comment, Fn, Item, ItemKind, Param};
use tk_syntax::{SourceMap, Span};

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct Module {
    /// Its name in `use`.
    pub name: String,
    /// The comment at its top.
    pub doc: String,
    /// Its public items, in their order.
    pub items: Vec<Documented>,
}

/// The kinds of items, in the order of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words of the language")]
pub enum Kind {
    Const,
    Struct,
    Function,
    Method,
    Kernel,
}

/// A public item.
#[derive(Clone, Debug, Serialize)]
pub struct Documented {
    /// Its name.
    pub name: String,
    /// The kind of item.
    pub kind: Kind,
    /// Its line in the file.
    pub line: usize,
    /// Its declaration.
    pub signature: String,
    /// Its doc comment.
    pub doc: String,
    /// Parameters and fields that have doc comments: name and comment.
    pub parameters: Vec<Parameter>,
    /// Conditions of a launch: `require` and `prefer` as they are written.
    pub requirements: Vec<String>,
    /// The items that export it, as they are written.
    pub exports: Vec<String>,
    /// A test of the file that uses it, if the comment has no example.
    pub example: Option<String>,
    /// The methods of a struct.
    pub methods: Vec<Documented>,
}

/// A parameter or field with a comment.
#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its comment.
    pub doc: String,
}

struct Reader<'a> {
    sources: &'a SourceMap,
    items: &'a [Item],
}

impl Module {
    /// Reads a file that has no errors.
    pub fn new(name: String, text: &str) -> Module {
        let mut sources = SourceMap::default();
        let id = sources.add(&name, text);
        let (tree, _) = tk_syntax::parse(id, text);
        let first = tree.items.first().map_or(u32::MAX, |i| i.span.start);
        let reader = Reader { sources: &sources, items: &tree.items };
        let items = tree.items.iter().filter_map(|i| reader.item(i, false)).collect();
        Module { name, doc: head(&sources, &tree.comments, first), items }
    }

    /// The name of its page, without its ending.
    pub fn file(&self) -> String {
        self.name.replace("::", "-")
    }
}

/// The comment at the top of a file: whole lines up to the first that is none, unless it is the doc comment of an item.
fn head(sources: &SourceMap, comments: &[Comment], first: u32) -> String {
    let mut lines = vec![];
    for (line, c) in (1..).zip(comments.iter().take_while(|c| !c.doc && c.span.start < first)) {
        if sources.position(c.span).1 != line {
            break;
        }
        let text = sources.text(c.span).trim_start_matches('/');
        lines.push(text.strip_prefix(' ').unwrap_or(text).trim_end().to_string());
    }
    lines.join("\n")
}

impl Reader<'_> {
    /// A text without the indentation of the line where it begins.
    fn text(&self, span: Span) -> String {
        let text = self.sources.text(span).trim();
        let (_, line, _) = self.sources.position(span);
        let whole = self.sources.get(span.file).and_then(|s| s.text.lines().nth(line.saturating_sub(1)));
        let indent = whole.map_or(0, |l| l.len() - l.trim_start().len());
        let without = |l: &str| {
            let blanks = l.len() - l.trim_start().len();
            l.get(blanks.min(indent)..).unwrap_or("").to_string()
        };
        let rest = text.lines().skip(1).map(without);
        text.lines().take(1).map(str::to_string).chain(rest).collect::<Vec<_>>().join("\n")
    }

    fn base(&self, item: &Item, kind: Kind, name: &str, at: Span, signature: String) -> Option<Documented> {
        if name.starts_with('_') {
            return None;
        }
        let attrs: String = item.attrs.iter().map(|a| self.text(a.span) + " ").collect();
        Some(Documented {
            name: name.to_string(),
            kind,
            line: self.sources.position(at).1,
            signature: attrs + &signature,
            doc: item.doc.trim().to_string(),
            parameters: vec![],
            requirements: vec![],
            exports: vec![],
            example: None,
            methods: vec![],
        })
    }

    fn item(&self, item: &Item, method: bool) -> Option<Documented> {
        match &item.kind {
            ItemKind::Const(c) => {
                let ty = c.ty.as_ref().map(|t| format!(": {}", self.text(t.span))).unwrap_or_default();
                let signature = format!("const {}{ty} = {};", c.name.text, self.text(c.value.span));
                self.base(item, Kind::Const, &c.name.text, c.name.span, signature)
            }
            ItemKind::Struct(s) => {
                let cparams: Vec<String> = s.cparams.iter().map(|c| self.text(c.span)).collect();
                let cparams =
                    if cparams.is_empty() { String::new() } else { format!("[{}]", cparams.join(", ")) };
                let fields: String =
                    s.fields.iter().map(|f| format!("    {},\n", self.text(f.span))).collect();
                let fields = if fields.is_empty() { "{}".into() } else { format!("{{\n{fields}}}") };
                let signature = format!("struct {}{cparams} {fields}", s.name.text);
                let mut out = self.base(item, Kind::Struct, &s.name.text, s.name.span, signature)?;
                out.parameters = documented(&s.fields);
                out.methods = s.methods.iter().filter_map(|m| self.item(m, true)).collect();
                out.example = self.example(&out);
                Some(out)
            }
            ItemKind::Fn(f) => self.function(item, f, method),
            ItemKind::Use(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => None,
        }
    }

    fn function(&self, item: &Item, f: &Fn, method: bool) -> Option<Documented> {
        let kind = match (f.kernel, method) {
            (true, _) => Kind::Kernel,
            (false, true) => Kind::Method,
            (false, false) => Kind::Function,
        };
        let is_condition = |c: &&Clause| matches!(c.name.text.as_str(), "require" | "prefer");
        let mut signature = self.text(f.sig_span);
        // A tuning list is no part of how a kernel is called.
        for c in f.clauses.iter().filter(|c| !is_condition(c) && c.name.text != "tune") {
            signature += &format!("\n    {}", self.text(c.span).replace('\n', "\n    "));
        }
        let mut out = self.base(item, kind, &f.name.text, f.name.span, signature)?;
        out.parameters = documented(&f.params);
        out.requirements = f.clauses.iter().filter(is_condition).map(|c| self.text(c.span)).collect();
        let exports = self.items.iter().filter_map(|i| match &i.kind {
            ItemKind::Export(e) if e.path.segments.last().is_some_and(|n| n.text == f.name.text) => {
                Some(self.text(i.span))
            }
            _other => None,
        });
        out.exports = exports.collect();
        out.example = self.example(&out);
        Some(out)
    }

    /// The first test that uses an item, unless its comment has code.
    fn example(&self, of: &Documented) -> Option<String> {
        if of.doc.contains("```") {
            return None;
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let uses = |text: &str| text.split(|c| !is_name(c)).any(|word| word == of.name);
        self.items.iter().find_map(|i| match &i.kind {
            ItemKind::Test(t) if uses(self.sources.text(t.body.span)) => Some(self.text(i.span)),
            _other => None,
        })
    }
}

fn documented(params: &[Param]) -> Vec<Parameter> {
    let with_doc = params.iter().filter(|p| !p.doc.trim().is_empty());
    with_doc.map(|p| Parameter { name: p.name.text.clone(), doc: p.doc.trim().to_string() }).collect()
}
