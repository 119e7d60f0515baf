//! Tests of the public functions, as one program, so that it links once.

mod casts;
mod common;
mod floats;
mod integers;
mod reduce;
mod rows;
mod scans;
mod values;
