//! The compiler as one WebAssembly module: language server, `test` blocks, puzzles, and the forms of a kernel between its
//! source and machine code.
//!
//! A request is JSON. [`Engine::ask`] may answer with several objects, as soon as each is known: the page shows tests while
//! others run. Nothing here knows a clock, a file or a thread, which a browser's worker does not have: the page ends what
//! runs too long by ending the worker.

mod engine;
#[cfg(target_family = "wasm")]
mod exports;
mod forms;
mod program;
mod puzzles;
mod server;
mod tests;

pub use engine::Engine;
