//! Tests of tile IR, as one program, so that it links once.

mod frequency;
mod ir;
