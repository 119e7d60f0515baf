//! Owns the recipe of each elementwise operation for one element.
