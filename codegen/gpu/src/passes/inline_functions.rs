//! Inlines the functions that the program keeps out of their callers: a GPU has no stack of tiles.
//!
//! ```text
//! noinline @f(v0: i32) -> i32 {          kernel @k(v0 "x": i32) {
//!   v1 = add v0, v0 : i32                  v1 = add v0, v0 : i32
//!   return v1                        =>    ..
//! }                                        return
//! kernel @k(v0 "x": i32) {               }
//!   v1 = call v0 {callee = "f"} : i32
//!   ..
//!   return
//! }
//! ```
//!
//! Requires a verified module without recursion. Guarantees that no call is left.

use tk_tile::FuncKind;
use tk_tile::passes::{cse, dce, inline};

use super::{Pass, Property, Run, TileKernel};

/// The pass.
pub const PASS: Pass = Pass {
    name: "inline_functions",
    purpose: "inlines functions that the program keeps out of their callers",
    needs: &[],
    leaves: &[Property::OneFunction],
    // Inlining exposes common subexpressions of a caller and its callee.
    run: Run::Tile { run, cleanup: &[cse::PASS, dce::PASS] },
};

fn run(tile: &mut TileKernel) -> bool {
    let ids: Vec<_> = tile.module.funcs.iter().map(|(id, _)| id).collect();
    let mut found = false;
    for id in ids {
        let func = &mut tile.module.funcs[id];
        if func.kind == FuncKind::NoInline {
            func.kind = FuncKind::Fn;
            found = true;
        }
    }
    if found {
        (inline::PASS.run)(&mut tile.module);
        tile.find();
    }
    found
}
