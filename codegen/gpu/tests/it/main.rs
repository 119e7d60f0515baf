//! Tests of layouts, passes and scheduled IR, as one program, so that it links once.

mod algebra;
mod common;
mod ir;
mod matrix;
mod shared;
mod tables;
