//! The name of the running pass, for the message of an internal error.
//!
//! One name for the whole process is enough: a `tk` compiles and runs one thing at a time, and the threads of the
//! interpreter work for the pass that started them.

use std::sync::Mutex;

static CURRENT: Mutex<&'static str> = Mutex::new("start");

/// Says what begins now.
pub fn enter(name: &'static str) {
    *CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = name;
}

/// The pass that began last.
pub fn current() -> &'static str {
    *CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
