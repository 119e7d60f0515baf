//! The language server.
//!
//! [`ide`] answers questions about programs with plain data: paths and bytes. It knows neither the protocol nor JSON
//! nor how an editor counts characters. [`server`] carries the answers over the protocol.

#![forbid(unsafe_code)]

pub mod ide;
#[cfg(feature = "costs")]
pub mod predicted;
pub mod server;
