//! Messages about launches that are not as fast as they could be, if `TK_LOG` asks for them: [`once`].

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Prints a message to standard error, the first time that it is given. `message` is called only if the environment
/// variable `TK_LOG` is set to something else than `0`.
pub(super) fn once(message: impl FnOnce() -> Option<String>) {
    static ASKED: OnceLock<bool> = OnceLock::new();
    static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !*ASKED.get_or_init(|| std::env::var_os("TK_LOG").is_some_and(|v| !v.is_empty() && v != "0")) {
        return;
    }
    let Some(message) = message() else { return };
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.insert(message.clone()) {
        eprintln!("tk: {message}");
    }
}
