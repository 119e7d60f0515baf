//! What every test of this crate needs: the sample files, and a parse that checks what must hold of any result.

use std::collections::HashSet;
use tk_syntax::ast::File;
use tk_syntax::{Diagnostic, SourceMap, Span, dump, parse, render};

/// The sample files: name and text.
pub const SAMPLES: [(&str, &str); 3] = [
    ("samples", include_str!("../../data/samples.tk")),
    ("attention", include_str!("../../data/attention.tk")),
    ("all", include_str!("../../data/all.tk")),
];

/// Parses a text and checks that every place is inside it, that holes are reported, and that everything prints.
pub fn check(text: &str) -> (File, Vec<Diagnostic>) {
    let mut sources = SourceMap::default();
    let id = sources.add("test.tk", text);
    let (file, diags) = parse(id, text);
    let inside = |s: Span| text.get(s.start as usize..s.end as usize).is_some();
    for d in &diags {
        assert!(inside(d.primary.span), "{d:?} in {text:?}");
        assert!(d.secondary.iter().all(|l| inside(l.span)), "{d:?} in {text:?}");
        assert!(d.fixes.iter().flat_map(|f| &f.edits).all(|e| inside(e.span)), "{d:?} in {text:?}");
        assert!(!d.message.is_empty() && d.is_error());
    }
    // Rendering is slow; the first ones show the same as all.
    for d in diags.iter().take(3) {
        assert!(render(&sources, d, false).starts_with(&format!("error[{}]: ", d.code)));
    }
    let places: HashSet<_> = diags.iter().map(|d| (d.primary.span, &d.message)).collect();
    assert_eq!(places.len(), diags.len(), "a message comes twice: {diags:?}");
    assert!(file.items.iter().all(|i| inside(i.span)));
    let tree = dump(&file);
    let hole = tree.lines().any(|l| l.trim() == "?");
    assert!(!hole || !diags.is_empty(), "unreported hole in {text:?}:\n{tree}");
    (file, diags)
}

/// The messages for a text.
pub fn messages(text: &str) -> Vec<String> {
    check(text).1.iter().map(|d| d.message.clone()).collect()
}
