//! Drives the server as an editor does: every request once, positions in both encodings, and whatever goes wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod busy;
mod client;
#[cfg(feature = "costs")]
mod costs;
mod features;
mod files;
mod hostile;
mod life;
mod problems;
mod random;
mod whole_files;
