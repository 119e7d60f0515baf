//! Reads operations of laid-out and scheduled kernels in text.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use tk_tile::{Attrs, Dialect, TargetOp};

use super::fields::Fields;
use super::op::GpuOp;

/// The dialect of these operations.
pub struct Gpu;

impl Dialect for Gpu {
    fn has(&self, op: &str) -> bool {
        GpuOp::NAMES.contains(&op)
    }

    fn rule(&self) -> &'static str {
        "S03: "
    }

    fn field(&self, name: &str) -> Option<&'static str> {
        static NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(GpuOp::field_names);
        NAMES.get(name).copied()
    }

    fn read(&self, op: &str, fields: Attrs) -> Result<Arc<dyn TargetOp>, String> {
        let mut from = Fields::new(&fields);
        let read = GpuOp::read(op, &mut from).and_then(|read| from.end().map(|()| read));
        match read {
            Ok(op) => Ok(Arc::new(op)),
            Err(message) => Err(format!("{}`{op}`: {message}", self.rule())),
        }
    }
}
