//! `docs/manifest.schema.json`: the JSON Schema of what `tk build --emit manifest` writes, from its types.

use std::path::Path;

use crate::source;

const PAGE: &str = "docs/manifest.schema.json";

/// Writes the page.
pub fn write(root: &Path) -> Result<(), Vec<String>> {
    std::fs::write(root.join(PAGE), page()).map_err(|e| vec![format!("{PAGE}: {e}")])
}

/// The problem when the page is not what the types give.
pub fn check(root: &Path) -> Option<String> {
    let fresh = source::read(root, PAGE).is_ok_and(|text| text == page());
    (!fresh).then(|| format!("{PAGE}: is not what the manifest's types give; run `cargo xtask schema`"))
}

fn page() -> String {
    // A schema can always be written.
    let mut text = serde_json::to_string_pretty(&tk_bundle::schema()).unwrap_or_default();
    text.push('\n');
    text
}
