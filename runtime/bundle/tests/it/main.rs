//! Tests of bundles.

mod hostile;
