//! Owns the algebra of linear layouts.
