//! Advice for views that are used as tiles: the position and the extents that their load takes, as far as the program
//! tells them.

use tk_syntax::Diagnostic;

use super::cx::Cx;
use super::meant::is_list;
use crate::hir::{CKind, CVarId, HExpr, HKind};
use crate::types::Ty;

/// The box of a load where nothing says it.
const UNKNOWN: &str = "..";

/// Splits at the separators that no brackets enclose.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0i32, 0, vec![]);
    for (i, c) in text.char_indices() {
        depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
        if c == separator && depth == 0 {
            parts.extend(text.get(from..i));
            from = i + c.len_utf8();
        }
    }
    parts.extend(text.get(from..));
    parts.into_iter().map(str::trim).collect()
}

/// The extent of `a:a + n` and of `3:7`.
fn extent_of(slice: &str) -> Option<String> {
    let [from, to] = split(slice, ':').try_into().ok()?;
    let number = |t: &str| t.parse::<i64>().ok();
    match (number(if from.is_empty() { "0" } else { from }), number(to)) {
        (Some(a), Some(b)) => Some((b - a).to_string()).filter(|_| b > a),
        (_, _) if from.is_empty() => Some(to.to_string()).filter(|t| !t.is_empty()),
        (_, _) => {
            let rest = to.strip_prefix(from)?.trim_start().strip_prefix('+')?.trim();
            let is_one = !rest.is_empty() && rest.chars().all(|c| c.is_alphanumeric() || c == '_');
            is_one.then(|| rest.to_string())
        }
    }
}

/// What is between the last brackets of `x[..]`, split at commas.
fn entries(part: &str) -> Option<Vec<&str>> {
    let inner = part.strip_suffix(']')?;
    let mut depth = 0i32;
    let open = inner.char_indices().rev().find(|(_, c)| {
        depth += i32::from(matches!(c, ')' | ']' | '}')) - i32::from(matches!(c, '(' | '[' | '{'));
        depth < 0
    });
    Some(split(inner.get(open?.0 + 1..)?, ','))
}

impl Cx<'_> {
    fn is_declared(&self, name: &str) -> bool {
        let here = self.p.files.get(self.file).is_some_and(|f| f.names.contains_key(name));
        here || self.meaning(name).is_some()
    }

    /// The arguments of the load of a view, and whether dots are in place of some of them.
    pub(super) fn box_of(&self, h: &HExpr, rank: Option<u32>) -> (String, bool) {
        let (names, extents): (&[&str], &[&str]) = match rank {
            Some(1) => (&["start"], &["BLOCK"]),
            Some(2) => (&["row", "column"], &["BM", "BN"]),
            Some(_) | None => return (format!("[{UNKNOWN}], [{UNKNOWN}]"), true),
        };
        let text = self.text(h.span);
        let value = self.let_of(&text).map(|(_, value)| value);
        let is_variable = matches!(h.kind, HKind::Local(_));
        let is_param = is_variable && self.is_parameter(h);
        let part = match &h.kind {
            HKind::SubView(..) => Some(text),
            _ => value.filter(|v| v.ends_with(']') && self.is_postfix(v) && !is_list(v)),
        };
        // A part of a view begins at its own position 0.
        let at = match &part {
            Some(_) => vec!["0"; names.len()].join(", "),
            None if is_param && names.iter().all(|n| self.is_declared(n)) => names.join(", "),
            None => UNKNOWN.to_string(),
        };
        let slices: Vec<Option<String>> = match part.as_deref().and_then(entries) {
            Some(all) => {
                let kept = all.into_iter().filter(|e| split(e, ':').len() > 1);
                kept.map(extent_of).collect()
            }
            None => vec![],
        };
        let shape = match slices.iter().any(Option::is_some).then_some(slices) {
            // What a slice does not say is the extent of the view.
            Some(mut known) => {
                known.resize(extents.len(), None);
                let texts: Vec<String> =
                    known.into_iter().map(|e| e.unwrap_or(UNKNOWN.to_string())).collect();
                texts.join(", ")
            }
            None if extents.iter().all(|n| self.is_declared(n)) => extents.join(", "),
            None => UNKNOWN.to_string(),
        };
        let open = at == UNKNOWN || shape.contains(UNKNOWN);
        (format!("[{at}], [{shape}]"), open)
    }

    /// Says of a value that is one element of a view how a tile is loaded, where `x.load([i, j])` has no extents.
    pub(super) fn element_loaded(&self, d: Diagnostic, h: &HExpr) -> Option<Diagnostic> {
        if !matches!(&h.ty, Ty::Tile { shape, .. } if shape.is_scalar()) {
            return None;
        }
        let text = self.text(h.span);
        let value = self.let_of(&text).map_or(text, |(_, value)| value);
        let (view, at) = value.strip_suffix(')')?.split_once(".load(")?;
        if !self.is_postfix(view) || !at.starts_with('[') || split(at, ',').len() > 1 {
            return None;
        }
        let rank = entries(at)?.len();
        let cparams = self.func.map_or(&[][..], |f| &self.hir().func(f).cparams);
        let of_int = |c: &&CVarId| matches!(self.hir().cvar(**c).kind, CKind::Int(_));
        let names: Vec<&str> =
            cparams.iter().filter(of_int).map(|c| self.hir().cvar(*c).name.as_str()).collect();
        let extents = if names.len() == rank { names.join(", ") } else { UNKNOWN.to_string() };
        Some(d.note(format!(
            "`load` with a position alone reads one element; the extents of a tile follow it, `{view}.load({at}, [{extents}])`"
        )))
    }

    /// Says how all elements of a contiguous view are in one row.
    pub(super) fn in_a_row(&self, d: Diagnostic, view: &HExpr) -> Diagnostic {
        let Ty::View { rank, .. } = &view.ty else { return d };
        let x = self.operand(view.span);
        let extents: Vec<String> =
            (0..self.known_rank(rank).unwrap_or(0)).map(|i| format!("{x}.shape[{i}]")).collect();
        if extents.is_empty() {
            return d;
        }
        let count = extents.join(" * ");
        d.note(format!(
            "without gaps, all its elements in a row are the view `view({x}.ptr, [{count}], [1])`"
        ))
    }

    fn is_parameter(&self, h: &HExpr) -> bool {
        let HKind::Local(id) = &h.kind else { return false };
        let span = self.local(*id).span;
        let text = self.p.sources.get(span.file).map_or("", |s| &s.text);
        let before = text.get(..span.start as usize).unwrap_or("").trim_end();
        before.ends_with(['(', ','])
    }
}
