//! Pages as Markdown. A name in brackets and backquotes, such as ``[`gelu`]``, becomes a link if it is an item of one of
//! the pages.

use super::pages::{Documented, Kind, Module};

/// The parts of a page, in their order.
const PARTS: &[(&str, Kind)] = &[
    ("Kernels", Kind::Kernel),
    ("Functions", Kind::Function),
    ("Structs", Kind::Struct),
    ("Constants", Kind::Const),
];

/// The page that lists all modules.
pub fn contents(modules: &[Module]) -> String {
    let mut out = String::from("# Modules\n\n");
    for m in modules {
        let about = sentence(&m.doc);
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        out += &format!("- [`{}`]({}.md){about}\n", m.name, m.file());
    }
    out
}

/// The page of a module.
pub fn page(module: &Module, all: &[Module]) -> String {
    let links = Links { module, all };
    let mut out = format!("# `{}`\n", module.name);
    if !module.doc.is_empty() {
        out += &format!("\n{}\n", links.linked(&module.doc));
    }
    if module.items.is_empty() {
        out += "\nThis module has no public items.\n";
    }
    for (title, kind) in PARTS {
        let items: Vec<&Documented> = module.items.iter().filter(|i| i.kind == *kind).collect();
        if !items.is_empty() {
            out += &format!("\n## {title}\n");
        }
        items.iter().for_each(|i| links.item(&mut out, i, "###"));
    }
    out
}

/// The first sentence of a text, on one line.
fn sentence(text: &str) -> String {
    let first = text.split("\n\n").next().unwrap_or("").replace('\n', " ");
    first.split_inclusive(". ").next().unwrap_or("").trim().to_string()
}

/// The links of one page.
struct Links<'a> {
    module: &'a Module,
    all: &'a [Module],
}

impl Links<'_> {
    fn item(&self, out: &mut String, i: &Documented, level: &str) {
        *out += &format!("\n{level} `{}`\n\n```tk fragment\n{}\n```\n", i.name, i.signature);
        if !i.doc.is_empty() {
            *out += &format!("\n{}\n", self.linked(&i.doc));
        }
        if !i.parameters.is_empty() {
            *out += "\n| parameter | |\n|---|---|\n";
        }
        for p in &i.parameters {
            *out += &format!(
                "| `{}` | {} |\n",
                p.name,
                self.linked(&p.doc.replace('\n', " ").replace('|', "\\|"))
            );
        }
        list(out, "Conditions of a launch", &i.requirements);
        list(out, "Exported", &i.exports);
        if let Some(test) = &i.example {
            *out += &format!("\nA test:\n\n```tk fragment\n{test}\n```\n");
        }
        let mentioned = self.mentioned(i);
        if !mentioned.is_empty() {
            *out += &format!("\nSee also {}.\n", mentioned.join(", "));
        }
        i.methods.iter().for_each(|m| self.item(out, m, "####"));
    }

    /// Links to the items whose names are in a signature.
    fn mentioned(&self, of: &Documented) -> Vec<String> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut names: Vec<&str> = of.signature.split(|c| !is_name(c)).filter(|w| *w != of.name).collect();
        names.sort_unstable();
        names.dedup();
        let own = |name: &&str| self.module.items.iter().any(|i| i.name == **name && i.kind != Kind::Kernel);
        names
            .into_iter()
            .filter(own)
            .filter_map(|name| Some(format!("[`{name}`]({})", self.target(name)?)))
            .collect()
    }

    /// The address of an item: `name` of this module, or `module::name`.
    fn target(&self, path: &str) -> Option<String> {
        if let Some(m) = self.all.iter().find(|m| m.name == path) {
            return Some(format!("{}.md", m.file()));
        }
        let (module, name) = match path.rsplit_once("::") {
            Some((module, name)) => {
                let is_meant = |m: &&Module| m.name == module || m.name.rsplit("::").next() == Some(module);
                (self.all.iter().find(is_meant)?, name)
            }
            None => (self.module, path),
        };
        let methods = module.items.iter().flat_map(|i| &i.methods);
        module.items.iter().chain(methods).find(|i| i.name == name)?;
        let page =
            if module.name == self.module.name { String::new() } else { format!("{}.md", module.file()) };
        Some(format!("{page}#{}", name.to_lowercase()))
    }

    /// A comment with its links.
    fn linked(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("[`") {
            out += before;
            let Some((name, behind)) = after.split_once("`]") else {
                out += "[`";
                rest = after;
                continue;
            };
            match self.target(name) {
                Some(to) if !behind.starts_with('(') => out += &format!("[`{name}`]({to})"),
                Some(_) => out += &format!("[`{name}`]"),
                None => out += &format!("`{name}`"),
            }
            rest = behind;
        }
        out + rest
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        *out += &format!("\n{title}:\n\n```tk fragment\n{}\n```\n", lines.join("\n"));
    }
}
