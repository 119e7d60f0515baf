//! W0205: a parameter with the name of a builtin, which cannot be called in that function.

use tk_ops::rows;
use tk_syntax::ast::{Fn, Item, ItemKind, Name};
use tk_syntax::codes;

use super::{Cx, warning};

pub(super) fn item(cx: &mut Cx, item: &Item) {
    match &item.kind {
        ItemKind::Fn(f) => function(cx, f),
        ItemKind::Struct(s) => s.methods.iter().for_each(|m| self::item(cx, m)),
        ItemKind::Use(_) | ItemKind::Const(_) | ItemKind::Export(_) | ItemKind::Test(_) | ItemKind::Err => {}
    }
}

fn function(cx: &mut Cx, f: &Fn) {
    if cx.broken.contains(&f.name.span) {
        return;
    }
    let names: Vec<&Name> =
        f.cparams.iter().map(|c| &c.name).chain(f.params.iter().map(|p| &p.name)).collect();
    for name in names {
        if rows::functions().any(|r| r.name == name.text) {
            let text = format!("the parameter `{}` shadows the builtin `{}`", name.text, name.text);
            cx.warn(warning(codes::SHADOWED_BUILTIN, name.span, text, "").note(format!(
                "`{}(..)` is not available in `{}`; another name avoids that",
                name.text, f.name.text
            )));
        }
    }
}
