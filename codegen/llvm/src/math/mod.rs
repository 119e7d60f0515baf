//! Owns functions of floats, written in terms of arithmetic that every target has.
