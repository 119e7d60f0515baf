//! Advice for arguments and positions that mean something else here: masks of views, tiles of positions, axes, random
//! numbers, names of reductions where a function of two values is wanted.

use tk_syntax::Span;

use super::cx::{Cx, Sym};
use super::foreign::unwrapped;

impl Cx<'_> {
    /// The place of a variable that this text is, and the text of its value.
    fn let_of(&self, text: &str) -> Option<(Span, String)> {
        let Some(Sym::Local(id)) = self.meaning(unwrapped(text)) else { return None };
        let local = self.local(id);
        let source = &self.p.sources.get(local.span.file)?.text;
        let before = source.get(..local.span.start as usize)?.trim_end();
        if local.mutable || !before.ends_with("let") {
            return None;
        }
        let (_, value) = source.get(local.span.end as usize..)?.split_once('=')?;
        Some((local.span, value.split_once(';')?.0.trim().to_string()))
    }

    /// Returns true for `x.T`, and for a variable that is that.
    pub(super) fn is_transpose(&self, span: Span) -> bool {
        let turned = |text: &str| {
            let text = unwrapped(text);
            text.ends_with(".T") && self.is_postfix(text)
        };
        let text = self.text(span);
        turned(&text) || self.let_of(&text).is_some_and(|(_, value)| turned(&value))
    }
}
