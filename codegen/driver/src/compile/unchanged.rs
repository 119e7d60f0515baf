//! What is known about a scheduled kernel from an earlier run, for work on the passes: a change of one leaves most kernels
//! as they were, and what follows the passes (LLVM, an assembler, a simulated launch) need not run on those again.
//!
//! Off unless `TK_UNCHANGED` names a folder. The Makefile names one, unless it runs in CI. Requires that what follows the
//! passes uses none of their modules, which `cargo xtask tidy` checks. Guarantees that a result is for the same kernel, and
//! from the same sources outside of `codegen/gpu/src/passes`.

use std::path::PathBuf;
use std::sync::OnceLock;

use tk_gpu::Kernel;
use tk_gpu::ir::text;
use tk_tile::text::Options;

use crate::compile::cache::{Cache, Key};

/// The most bytes that are kept: launches of all tests, several times.
const LIMIT: u64 = 4 << 30;

/// The results.
pub struct Unchanged(Cache);

impl Unchanged {
    /// Those of the folder that `TK_UNCHANGED` names.
    pub fn of_process() -> Option<&'static Unchanged> {
        static OF_PROCESS: OnceLock<Option<Unchanged>> = OnceLock::new();
        let folder =
            || std::env::var_os("TK_UNCHANGED").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        OF_PROCESS.get_or_init(|| folder().map(|f| Unchanged(Cache::at(&f, LIMIT)))).as_ref()
    }

    /// The key of a kernel, without its source positions: a part of those of results that depend on it.
    pub fn key(kernel: &Kernel) -> Key {
        let Kernel {
            module: _,
            layouts: _,
            value_layouts: _,
            options,
            buffers,
            vote,
            shortages: _,
            remarks: _,
        } = kernel;
        let rest = format!("{options:?} {buffers:?} {vote:?}");
        Key::of(&[
            b"unchanged 1",
            env!("TK_SOURCE_AFTER_PASSES").as_bytes(),
            crate::llvm_version().as_bytes(),
            text::print(kernel, Options { locs: false }).as_bytes(),
            rest.as_bytes(),
        ])
    }

    /// The result of an earlier run.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.0.get(key)
    }

    /// Keeps a result.
    pub fn put(&self, key: &Key, result: &[u8]) {
        self.0.put(key, result);
    }
}
