//! W0205: a parameter with the name of a builtin, which cannot be called in that function.

use std::collections::BTreeSet;

use tk_ops::rows;
use tk_syntax::ast::{Fn, ItemKind, Name};
use tk_syntax::codes;

use super::{Cx, warning};

pub(super) fn run(cx: &mut Cx) {
    let file = cx.file;
    let builtins: BTreeSet<&str> = rows::functions().map(|r| r.name).collect();
    for item in &file.items {
        match &item.kind {
            ItemKind::Fn(f) => function(cx, f, &builtins),
            ItemKind::Struct(s) => {
                let methods = s.methods.iter().filter_map(|m| match &m.kind {
                    ItemKind::Fn(f) => Some(f),
                    _field => None,
                });
                methods.for_each(|f| function(cx, f, &builtins));
            }
            ItemKind::Use(_)
            | ItemKind::Const(_)
            | ItemKind::Export(_)
            | ItemKind::Test(_)
            | ItemKind::Err => {}
        }
    }
}

fn function(cx: &mut Cx, f: &Fn, builtins: &BTreeSet<&str>) {
    if cx.broken.contains(&f.name.span) {
        return;
    }
    let names: Vec<&Name> =
        f.cparams.iter().map(|c| &c.name).chain(f.params.iter().map(|p| &p.name)).collect();
    for name in names {
        if builtins.contains(name.text.as_str()) {
            let text = format!("the parameter `{}` shadows the builtin `{}`", name.text, name.text);
            cx.warn(warning(codes::SHADOWED_BUILTIN, name.span, text, "").note(format!(
                "`{}(..)` is not available in `{}`; another name avoids that",
                name.text, f.name.text
            )));
        }
    }
}
