//! Builds the shipped forms of a file: bundles, manifests, C sources, reports and listings.

pub(crate) mod artifact;
pub(crate) mod c_source;
pub(crate) mod expr;
pub(crate) mod guard;
pub(crate) mod listing;
mod params;
pub(crate) mod report;
