//! Tests of the language server, as one program, so that it links once.

mod completion;
mod features;
mod fixes;
mod protocol;
mod refactored;
mod robust;
mod support;
