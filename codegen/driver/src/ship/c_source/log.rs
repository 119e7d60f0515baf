//! The message of a launch that does not take the first variant with its values, for those who set `TK_LOG`.

use std::collections::BTreeSet;

use tk_bundle::{Kernel, Variant};

use super::quoted;

/// The C statement that prints it once, and the helper that this needs; nothing for the first variant with these values.
pub(super) fn passed_over(
    kernel: &Kernel,
    index: usize,
    v: &Variant,
    helpers: &mut BTreeSet<&'static str>,
) -> String {
    let alike = |o: &&Variant| {
        o.target == v.target && o.values == v.values && o.dtypes == v.dtypes && o.given == v.given
    };
    let before = kernel.variants.iter().take(index).filter(alike).count();
    let last = kernel.variants.iter().filter(alike).count() == before + 1;
    let which = if last { "the one for all arguments".to_string() } else { format!("number {}", before + 1) };
    let message = format!(
        "kernel `{}` [{}] does not take its first variant but {which}: strides or addresses are others",
        quoted(&kernel.name),
        quoted(&v.label()),
    );
    if before == 0 {
        return String::new();
    }
    helpers.insert("log");
    format!(
        "            {{\n                static atomic_flag tki_once = ATOMIC_FLAG_INIT;\n                tki_log(&tki_once, \
         \"{message}\");\n            }}\n"
    )
}
