//! Completion where people type: tables of positions, and programs key by key.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod typed;

use crate::support::{root, workspace};
use tk_lsp::ide::{Workspace, complete};

/// The items of a list that are looked at.
const SHOWN: usize = 10;

/// What an editor shows, where `typed` has been typed of the word at the end of the text before `offset`.
fn shown(ws: &mut Workspace, path: &str, offset: usize, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let labels = complete::complete(ws, path, offset).into_iter().map(|c| c.label);
    let fits = |label: &String| label.to_lowercase().starts_with(&typed);
    labels.map(|l| l.trim_end_matches(" =").to_string()).filter(fits).collect()
}

/// A kind of position, a text with the place at `$0`, what is among the first items (`-` before it: nowhere), separated by
/// spaces. `nothing` is an empty list.
const POSITIONS: &[(&str, &str, &str)] = &[
    ("item", "$0", "kernel fn test use const struct export"),
    ("item", "k$0", "kernel -let"),
    ("item", "struct P { x: f32 }\n$0", "kernel"),
    ("item", "kernel k() {}\nt$0\n", "test"),
    ("item", "fn f() {\n    let a = (1;\n\ns$0", "struct"),
    ("type", "fn f(x: f32) -> $0", "view tile f32 f16 i32 bool"),
    ("type", "fn f(x: f32) -> t$0", "tile"),
    ("type", "fn f[T: float](x: T) -> $0", "T tile"),
    ("type", "fn f[T: float](x: T) -> tile[$0", "T f32 -tile"),
    ("type", "struct P { x: f32 }\nfn f(x: $0", "P tile view"),
    ("type", "kernel k(x: $0", "view mut\u{a0}view"),
    ("type", "kernel k(x: view[f32, 1], y: m$0", "mut\u{a0}view"),
    ("type", "kernel k(x: mut $0", "view -f32"),
    ("type", "kernel k[T: float](x: *$0", "T mut f32 -view"),
    ("type", "kernel k[T: float](x: *mut $0", "T f32 -view -mut"),
    ("type", "kernel k(x: view[$0", "f32 f16 -view"),
    ("type", "fn f(g: fn($0", "tile f32"),
    ("type", "fn f(x: f32, N: const $0", "i32 bool shape"),
    ("type", "struct P { x: $0", "f32 tile"),
    ("type", "struct P {\n    x: f32,\n    y: *$0\n}", "mut f32"),
    ("type", "struct P {\n    x: f32,\n\n    fn f(self, y: f32) -> $0\n}", "f32 P"),
    ("type", "const N: $0", "i32 f32 bool"),
    ("type", "const N: i$0", "i32 i64"),
    ("type", "kernel k(n: i32) { let a: $0", "i32 f32 tile"),
    ("type", "kernel k(n: i32) { let a = n as $0", "f32 i64 -tile -view"),
    ("type", "kernel k() scratch(w: *mut $0", "i32 u32"),
    ("bound", "fn f[T: $0", "i32 float shape bool dtype"),
    ("bound", "fn f[T: float, N: $0", "i32"),
    ("bound", "fn f[T: f16 | $0", "f32 bf16"),
    ("bound", "struct P[T: $0", "float i32"),
    ("name", "kernel $0", "nothing"),
    ("name", "kernel k(na$0", "nothing"),
    ("name", "kernel k(x: view[f32, 1], $0", "nothing"),
    ("name", "fn f[N$0", "nothing"),
    ("name", "struct P { na$0", "nothing"),
    ("name", "struct $0", "nothing"),
    ("name", "const $0", "nothing"),
    ("name", "const N$0", "nothing"),
    ("name", "kernel k() { let $0", "mut -n"),
    ("name", "kernel k() { let mut $0", "nothing"),
    ("name", "kernel k() { for $0", "nothing"),
    ("number", "kernel k() { let x = 1e$0", "nothing"),
    ("number", "kernel k() { let x = 0x$0", "nothing"),
    ("number", "kernel k() { let x = 12$0", "nothing"),
    ("number", "kernel k(n: i32) { let x = n + 1$0;\n}", "nothing"),
    ("value", "const N: i32 = next$0", "next_pow2"),
    ("value", "const M: i32 = 4;\nconst N: i32 = $0", "M"),
    ("value", "const N: i32 = maximum(4, n$0", "next_pow2"),
    ("value", "kernel k[N: i32 = cd$0", "cdiv"),
    ("value", "kernel k[M: i32 = 4, N: i32 = $0", "M"),
    ("value", "kernel k[M: i32 = 4, N: i32 = if M > 2 { maximum($0", "M"),
    ("value", "fn f(a: f32, b: f32 = $0", "a -b"),
    ("value", "kernel k(x: view[f32, 1]) grid(cd$0", "cdiv"),
    ("value", "kernel k(x: view[f32, 1]) require($0", "x"),
    ("value", "kernel k(x: view[f32, 1]) require($0", "cdiv maximum -zeros -program_id -load -exp"),
    ("value", "kernel k(n: i32) grid(1) tune(key = $0", "n cdiv -arange -randn -exp"),
    ("value", "kernel k(n: i32) { for i in $0", "range static_range"),
    ("value", "kernel k(n: i32) { let a = $0", "n -k"),
    ("value", "kernel k(n: i32) { let first = 1; f$0", "first"),
    ("value", "kernel k(n: i32) {}\ntest \"a\" { $0", "k"),
    ("value", "fn half(x: f32) -> f32 { x }\nkernel k(n: i32) { h$0", "half"),
    ("value", "kernel k[T: float](x: view[T, 1]) {}\nexport k[T = [f$0", "f32 f16 f64 -floor"),
    ("value", "kernel k[T: f16 | bf16](x: view[T, 1]) {}\nexport k[T = $0", "f16 bf16 -f32"),
    ("value", "kernel k[T: float](x: view[T, 1]) {}\nexport k[T = [f16, b$0]];", "bf16"),
    ("value", "kernel k[ON: bool](n: i32) {}\nexport k[ON = $0", "true false"),
    ("value", "kernel k[T: float = f32]() tune(key = (1)) { { T = $0", "f16 f32"),
    ("value", "export $0", "nothing"),
    ("value", "kernel scale(n: i32) {}\nfn f() {}\nexport $0", "scale -f"),
    ("member", "kernel k(x: view[f32, 1]) grid(x.$0", "shape strides"),
    ("member", "kernel k(x: view[f32, 1]) grid(x.sh$0)\n{\n}", "shape"),
    ("member", "kernel k[T: float](x: view[T, 1]) launch(warps = T.$0", "bits"),
    ("member", "kernel k[T: float](x: view[T, 1]) launch(warps = T.$0)\n\nfn after() {}\n", "bits"),
    ("member", "kernel k[N: i32 = x.$0](x: view[f32, 1]) {}", "shape"),
    ("member", "kernel k(x: view[f32, 1]) { x.$0", "load store shape"),
    ("member", "kernel k(x: view[f32, 1], n: i32) { if n > x.$0", "shape"),
    ("member", "kernel k(x: view[f32, 1], n: i32) { while n > x.$0\n}", "shape"),
    ("member", "struct P { u: f32, v: f32 }\nfn f(p: P) { p.$0", "u v"),
    ("member", "kernel k() grid(device.$0", "sms"),
    ("argument", "kernel k[N: i32](x: view[f32, 1]) {}\ntest \"a\" { k[$0", "N"),
    ("argument", "kernel k[N: i32](x: view[f32, 1]) {}\ntest \"a\" { k(x$0", "x"),
    ("argument", "kernel k() launch($0", "warps stages"),
    ("argument", "kernel k() launch(warps = 4, $0", "stages -warps"),
    ("argument", "kernel k[N: i32 = 4]() tune(key = (1)) { { $0", "N warps"),
    ("argument", "kernel k[T: float, N: i32]() {}\nexport k[$0", "T N -float"),
    ("argument", "kernel k(x: view[f32, 1]) { dot(1, 2, precision = $0", "ieee tf32"),
    ("clause", "kernel k(x: view[f32, 1]) $0", "grid launch require prefer"),
    ("clause", "kernel k(x: view[f32, 1])\n    g$0\n\nkernel other() {}\n", "grid"),
    ("clause", "kernel k(x: view[f32, 1]) grid(1) $0", "launch -grid"),
    ("clause", "kernel k() tune(key = (1)) { { } } $0", "grid -tune"),
    ("clause", "fn f(x: f32) -> f32 $0", "require -grid"),
    ("clause", "fn f(x: f32) -> tile[f32, 4] r$0", "require"),
    ("statement", "kernel k(n: i32) { $0", "let if for n"),
    ("statement", "kernel k(n: i32) { if n > 0 { } $0", "else let"),
    ("statement", "kernel k(n: i32) { if n > 0 { } el$0", "else"),
    ("statement", "kernel k(n: i32) { if n > 0 { } else if n < 3 { } $0", "else"),
    ("statement", "kernel k(n: i32) { if n > 0 { } else { } $0", "let -else"),
    ("statement", "kernel k(n: i32) { for i in range(0, n) { } $0", "let -else"),
    ("statement", "kernel k(n: i32) { let a = if n > 0 { 1 } $0", "else"),
    ("import", "use std::math::{gelu, $0}", "relu -gelu"),
    ("attribute", "@$0", "fast noinline"),
    // What a reader found.
    ("member", "struct P { u: f32 }\nfn f(p: P) { p\n        .$0", "u"),
    ("member", "kernel k() { let a = 1.$0;\n}", "nothing"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|elem| $0, v);\n}", "elem"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|p, q| p + $0", "q"),
    ("value", "kernel k() { let a = zeros([4], $0", "f32 i32"),
    ("value", "kernel k[T: float, FAST: bool](x: view[T, 1]) {}\ntest \"a\" { k[T = $0", "f16 f32"),
    ("value", "kernel k[T: float, FAST: bool](x: view[T, 1]) {}\ntest \"a\" { k[FAST = $0", "true false"),
    ("value", "kernel k[ACT: fn(f32) -> f32]() {}\nexport k[ACT = ex$0", "exp"),
    ("value", "kernel k(n: i32) { let other = n; let a = $0", "other -a"),
    ("value", "kernel k(n: i32) grid($0", "n cdiv"),
    ("statement", "kernel k(n: i32) { if n > 0 { } else $0", "if"),
    ("statement", "kernel k(n: i32) { for i $0", "in"),
    ("statement", "kernel k(n: i32) { for i in $0", "range static_range -arange_"),
    ("type", "fn f(x: (f32, $0", "f32 tile"),
    ("type", "fn f(x: f32) -> ($0", "f32 tile"),
    ("bound", "fn f[T: f16 | b$0", "bf16"),
    ("argument", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = 4, $0", "warps -N"),
    ("clause", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = 4 } $0", "if"),
    ("item", "struct P {\n    x: f32,\n    f$0\n}", "fn"),
    // The arms of an `if` in a value.
    ("value", "kernel k[D: i32, BM: i32 = if D <= 64 { 128 } $0", "else -D -let"),
    ("value", "kernel k[D: i32, BM: i32 = if D <= 64 { 128 } el$0](n: i32) {}", "else"),
    ("value", "kernel k[D: i32, BM: i32 = if D <= 64 { 128 } else { 64 } $0", "nothing"),
    ("value", "fn g(n: i32) {}\nfn f(n: i32) { g(if n > 0 { 1 } $0", "else -n"),
    ("value", "fn f(n: i32) { let a = (if n > 0 { 1 } $0);\n}", "else -n"),
    ("value", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = if true { 1 } $0", "else -N -warps"),
    ("value", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = if true { 1 } el$0 } }", "else"),
    ("value", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = if true { 1 } else { 2 } $0", "nothing"),
    ("value", "kernel k[N: i32 = 4]() tune(key = (1)) { { N = 4 } if if true { true } $0", "else"),
    ("value", "const A: i32 = if true { 1 } $0", "else -kernel"),
    ("value", "const A: i32 = if true { 1 } else { 2 } $0", "nothing"),
    ("item", "const A: i32 = if true { 1 } else { 2 }\n$0", "kernel"),
    ("item", "const A: i32 = if true { 1 } else { 2 };\n$0", "kernel -else"),
    ("item", "const A: i32 = if true { 1 };\nfn f() {} $0", "kernel -else"),
    ("item", "fn f() { if true { } } $0", "kernel -else"),
    // A name or a number that is being given.
    ("name", "kernel k(n: i32) { let ($0", "nothing"),
    ("name", "kernel k(n: i32) { let (a, $0", "nothing"),
    ("name", "kernel k(n: i32) { let (a, (b, c$0), d) = n;\n}", "nothing"),
    ("value", "kernel k(n: i32) { let (a, b) = (n, $0", "n"),
    ("name", "kernel k(v: view[f32, 1]) { let a = map(|$0", "nothing"),
    ("name", "kernel k(v: view[f32, 1]) { let a = map(|el$0| el, v);\n}", "nothing"),
    ("name", "kernel k(v: view[f32, 1]) { let a = reduce(v, |p, $0", "nothing"),
    ("name", "kernel k(v: view[f32, 1]) { let a = reduce(v, |(p, $0", "nothing"),
    ("value", "kernel k(v: view[f32, 1]) { let a = reduce(v, |p, q| (p, $0", "v"),
    ("value", "kernel k(n: i32) { let a = n | $0", "n"),
    ("number", "kernel k() { let x = 1e-$0", "nothing"),
    ("number", "kernel k() { let x = 1.5E+$0", "nothing"),
    ("value", "kernel k(n: i32) { let x = 1 -$0", "n"),
    ("value", "kernel k(n: i32) { let x = 0x1e-$0", "n"),
    ("name", "use std::math as $0", "nothing"),
    ("name", "use std::math::{relu as r$0", "nothing"),
    ("attribute", "@fast $0", "fn kernel -test -use"),
    ("attribute", "@fast\nk$0", "kernel"),
    ("attribute", "@fast @noinline $0", "fn kernel -struct"),
    // A declaration does not exist in its own value, bound or type.
    ("value", "const N: i32 = $0", "maximum -N"),
    ("value", "const N: i32 = maximum(4, $0);\nconst M: i32 = 3;", "M -N"),
    ("value", "kernel k[N: i32 = $0", "maximum -N"),
    ("value", "kernel k[M: i32 = 4, N: i32 = maximum(M, $0](n: i32) {}", "M -N"),
    ("bound", "fn f[T: f16 | $0", "f32 -T"),
    ("value", "kernel k(n: i32) { let last = if n > 1 { minimum($0", "n -last"),
    ("value", "kernel k(n: i32) { let (d, e) = if n > 1 { let c = n; maximum($0", "n -d -e"),
    ("value", "kernel k(n: i32) { let a = n; let other = if n > 1 { $0", "a n -other"),
    ("value", "const N: i32 = 1;\nfn f() { const N: i32 = $0", "N"),
    // Blocks, clauses and calls that are not closed.
    ("value", "kernel k(n: i32) { let (d, e) = if n > 1 { let c = n; maximum($0", "c n -d -e"),
    ("value", "kernel k(n: i32) { let d = if n > 1 { let c = n; maximum($0", "c n -d"),
    ("value", "kernel k(n: i32) { let d = if n > 1 { let c = n; c } else { let g = n; maximum($0", "g n -d"),
    ("member", "kernel k(v: view[f32, 2]) { let (d, e) = if true { let c = v; dot(1, c.$0", "load shape"),
    ("member", "kernel k(v: view[f32, 2]) { let d = if true { let c = v; dot(1, c.$0", "load shape"),
    ("member", "fn f[T: float](c: bool) { let u = if c { 1.0 as T.$0", "acc"),
    ("value", "fn f(b: view[f32, 1]?) { let mut a = 1; if let v = b { a += $0", "v"),
    ("value", "fn f(b: view[f32, 1]?) { let mut a = 1; if let v = b { a += maximum($0", "v"),
    ("member", "fn f(b: view[f32, 1]?) { let mut a = 1.0; if let v = b { a += v.$0", "load shape"),
    ("value", "kernel k(c: view[f32, 2]) grid(1) tune(key = (next_pow2($0", "c"),
    ("member", "kernel k(c: view[f32, 2]) grid(1) tune(key = (next_pow2(c.$0", "shape"),
    ("member", "kernel k(c: view[f32, 2]) grid(1) tune(key = (c.shape[0], c.$0", "shape"),
    ("argument", "kernel k(p: *mut i32) { while atomic_load(p, $0", "order mask"),
    ("argument", "kernel k(p: *mut i32) { while atomic_load(p, order = $0", "acquire -p"),
    ("argument", "kernel k(n: i32) { for i in range(0, n, $0", "step stages"),
    ("clause", "kernel k() scratch(w: *mut u32, 1) $0", "scratch"),
    ("value", "kernel k(v: view[f32, 3], a: i32) { let b = v[0, :, a : ($0", "a -tile"),
    // The rest of a signature counts where it closes what is open.
    ("member", "kernel k[N: i32 = x.$0](x: view[f32, 1])", "shape"),
    ("member", "kernel k[N: i32 = x.$0](x: view[f32, 1]) grid(1)\n\nfn after() {}\n", "shape"),
    ("member", "kernel k[N: i32 = cdiv(x.$0)](x: view[f32, 1]) grid(1)\n\nfn after() {}\n", "shape"),
    ("value", "const M: i32 = 4;\nkernel k[N: i32](x: view[f32, 1]) {}\nexport k[N = $0", "M -f32"),
    ("statement", "kernel k(n: i32) { for i in range(0, n) { b$0", "break"),
    ("statement", "kernel k(n: i32) { while n > 1 { if n > 2 { c$0", "continue"),
    ("statement", "kernel k(n: i32) { while n > 1 { let a = n; if n > 2 { } else { c$0", "continue"),
    ("statement", "kernel k(n: i32) { for i in range(0, n) { } b$0", "-break"),
    ("statement", "kernel k(n: i32) { for i in range(0, n) { } if n > 1 { b$0", "-break"),
    ("statement", "kernel k(n: i32) { c$0", "-continue"),
    // A body follows rows of `tune` that are not closed.
    (
        "argument",
        "kernel k[M: i32 = 4, N: i32 = 4](n: i32) tune(key = (n)) {\n    { M = 4, $0\n{\n    let a = 1;\n}\n",
        "N warps -M",
    ),
    ("argument", "kernel k[N: i32 = 4](n: i32) tune(key = (n)) { { $0 }\n{\n    let a = 1;\n}\n", "N warps"),
    (
        "value",
        "kernel k[ON: bool = true](n: i32) tune(key = (n)) { { ON = $0\n{\n    let a = 1;\n}\n",
        "true false -n",
    ),
    (
        "value",
        "kernel k[ON: bool](n: i32) tune(key = (n)) {\n    { ON = [true, $0\n{\n}\nfn after() {}\n",
        "false",
    ),
    // An axis is neither true nor a type.
    ("value", "fn f(v: tile[f32, 4]) { let a = sum(v, axis = $0", "-true -f32"),
    ("value", "fn f(v: tile[f32, 4]) { let a = sum(v, keep = $0", "true false"),
    ("value", "fn f(v: tile[f32, 4]) { let a = sum(v, axis = if $0", "v"),
    // Values of a range; no names where a string is.
    ("value", "kernel k[T: float](x: view[T, 1]) {}\ntest \"a\" { k[T = $0", "f32 -i32 -true"),
    ("value", "kernel k[N: i32](n: i32) {}\ntest \"a\" { k[N = $0", "-f32 -true"),
    ("name", "test \"a\" { assert_error $0", "nothing"),
    ("name", "test \"a\" { assert_error \"E$0", "nothing"),
    ("name", "test \"a\" { let s = \"x$0", "nothing"),
    // What a second reader found.
    ("name", "kernel k() { const $0", "nothing"),
    ("name", "kernel k() { const A$0", "nothing"),
    ("name", "test \"a\" { const _$0", "nothing"),
    ("type", "kernel k() { const A: $0", "i32 f32 tile -view"),
    ("type", "const IDS: ti$0", "tile"),
    ("value", "const M = 4;\nkernel k(n: i32) { const A = $0", "M -A"),
    ("name", "kernel k() scratch($0", "nothing"),
    ("name", "kernel k() scratch(w$0", "nothing"),
    ("type", "kernel k() scratch(w: $0", "*mut\u{a0}u32 *mut\u{a0}f32 -view -i32"),
    ("type", "kernel k[T: float]() scratch(w: $0", "*mut\u{a0}T"),
    ("argument", "kernel k() scratch(w: *mut u32, 1, $0", "zeroed"),
    ("argument", "kernel k() scratch(w: *mut u32, 1, zeroed = true, $0", "restored -zeroed"),
    ("value", "kernel k[N: i32]() {}\nexport k[N = [$0", "cdiv maximum -zeros -program_id -true -inf -f32"),
    ("value", "const M = 4;\nkernel k[N: i32]() {}\nexport k[N = [1, $0", "M -load"),
    // What a third reader found: lambdas that nothing follows, and optional views of a clause.
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|qq| maximum($0", "qq v"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|qq| ($0", "qq v"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|qq| { let r = $0", "qq v"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|qq| { let r = 1.0; r + $0", "r qq"),
    ("statement", "kernel k(v: view[f32, 1]) { let a = map(|qq| { $0", "qq"),
    ("statement", "kernel k(v: view[f32, 1]) { let a = map(|qq| { let r = 1.0; $0", "r"),
    ("value", "kernel k(v: view[f32, 1]) { let a = map(|qq| qq, maximum($0", "v -qq"),
    (
        "member",
        "kernel k(x: view[f32, 2], bias: view[f32, 1]?, y: mut view[f32, 2]) require(x.shape[1] == bias.$0",
        "shape strides -load -ptr",
    ),
    (
        "member",
        "kernel k(x: view[f32, 2], bias: view[f32, 1]?) require(x.shape[1] == bias.$0)\n{\n    let a = 1;\n}\n",
        "shape strides -load",
    ),
    ("member", "kernel k(x: view[f32, 2], bias: view[f32, 1]?) { let a = bias.$0", "nothing"),
    // What follows a whole value, an argument with a name, the elements of a type.
    ("statement", "kernel k(b: view[f32, 1]?) grid(1) { if $0", "let b"),
    ("statement", "kernel k(b: view[f32, 1]?) grid(1) { if le$0", "let"),
    ("value", "kernel k(x: i32) { let y = x $0", "as -x -load"),
    ("value", "kernel k(x: i32) { let y = x a$0", "as -arange"),
    ("value", "kernel k(x: i32) { let y = maximum(x, 2 $0", "as -x"),
    ("value", "kernel k(x: i32) { let y = maximum(x, 2) $0", "as -x"),
    ("value", "fn f(s: tile[f32, 4]) { let a = scan(s, axis = 0, $0", "combine -s -f32"),
    ("value", "fn f(s: tile[f32, 4]) { let a = scan(s, axis = $0", "0"),
    ("type", "fn f[R: i32, T: float](x: view[f32, $0", "1 2 3 R -T -f32 -load"),
    ("type", "fn f[R: i32, T: float](x: view[f32, $0]) {}", "1 2 3 R -T -f32"),
    ("type", "const N = 4;\nfn f[S: shape, M: i32, T: float](x: tile[T, $0", "N M S -T -f32 -1"),
    ("type", "fn f(x: view[f32, 1, $0", "i64 i32 -f32"),
    // A parameter that is not written yet.
    ("member", "kernel k[D: i32 = q.$0", "shape strides -load"),
    ("member", "kernel k[D: i32 = cdiv(q.$0", "shape strides -load"),
    ("member", "kernel k() { let a = q.$0", "nothing"),
];

/// What comes first, in this order, in a kernel with variables of several types, with the place at the end.
const TYPED: &[(&str, &str)] = &[
    ("let z = two(v, n, ", "u"),
    ("let z = two(v, ", "n m"),
    ("let z = two(v, n, sc = ", "w"),
    ("let z = two(v, n, flag = u, ", "cnt sc"),
    ("let z = two(v, flag = u, ", "n cnt sc"),
    ("if ", "u"),
    ("while ", "u"),
    ("let q: i32 = ", "m n"),
    ("let mut q: f32 = ", "w"),
    ("let q: bool = ", "false u"),
];

/// What comes first, in any order, by the kind of value that a place takes, with the place at the end.
const OF_KIND: &[(&str, &str)] = &[
    ("let z = map(", "gelu_of half F"),
    ("let z = reduce(t, axis = 0, combine = ", "gelu_of half F"),
    ("let z = scan(t, axis = 0, combine = ", "gelu_of half F"),
    ("let z = applied(t, ", "gelu_of half F"),
    ("let z = sum(t, axis = ", "0 1 AXIS N"),
    ("let z = sort(t, axis = ", "0 1 AXIS N"),
    ("if let w = ", "bias"),
    ("if ", "flag"),
    ("while ", "flag"),
];

#[test]
fn what_gives_the_kind_of_value_comes_first() {
    let head = "const AXIS = 1;\nconst RATE = 1.5;\n\nfn gelu_of(x: f32) -> f32 { x }\nfn half(x: f32) -> f32 { x }\n\n\
                fn applied(t: tile[f32, 4, 4], f: fn(f32) -> f32) -> f32 { 1.0 }\n\n\
                fn k[N: i32, F: fn(f32) -> f32](t: tile[f32, 4, 4], bias: view[f32, 1]?, n: i32, flag: bool) {\n    ";
    let mut problems = vec![];
    for (text, expected) in OF_KIND {
        let text = format!("{head}{text}");
        let mut ws = workspace(&[("a.tk", &text)]);
        let found = shown(&mut ws, "/w/a.tk", text.len(), "");
        let expected: Vec<&str> = expected.split(' ').collect();
        let first: Vec<&str> = found.iter().take(expected.len().max(4)).map(String::as_str).collect();
        if !expected.iter().all(|e| first.contains(e)) {
            problems.push(format!("{text}: {:?}", found.get(..SHOWN).unwrap_or(&found)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn variables_of_the_type_come_first() {
    let head = "fn two(v: view[f32, 1], n: i32, flag: bool = false, cnt: i32 = 1, sc: f32 = 1.0) -> i32 { n }\n\n\
                kernel k(v: view[f32, 1], n: i32, u: bool, m: i32, w: f32) {\n    ";
    let mut problems = vec![];
    for (text, expected) in TYPED {
        let text = format!("{head}{text}");
        let mut ws = workspace(&[("a.tk", &text)]);
        let found = shown(&mut ws, "/w/a.tk", text.len(), "");
        let expected: Vec<&str> = expected.split(' ').collect();
        if found.get(..expected.len()).is_none_or(|first| *first != *expected) {
            problems.push(format!("{text}: {:?}", &found[..SHOWN]));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Functions that are called below.
const CALLED: &str = "fn g[D: i32, M: bool](a: tile[f32, D], b: view[f32, 1], n: i32) -> i32 { n }\n";

/// What comes first in a text after [`CALLED`], with the place at `$0`.
const FIRST: &[(&str, &str)] = &[
    ("kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); let z = g(tt, $0", "vv"),
    ("kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); let z = g[M = true](tt, $0", "vv"),
    (
        "kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); let z = g[D = 4, M = true](b = $0",
        "vv",
    ),
    ("kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); let z = g[M = true]($0", "tt"),
    ("kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); let z = g[M = $0", "true"),
    ("kernel k(vv: view[f32, 1], n: i32) { let tt = zeros([4], f32); vv[$0", "n"),
    ("kernel k(n: i32) { if n > 1 { } $0", "else"),
    ("kernel k(n: i32) { let a = if n > 1 { 2 } $0", "else"),
];

#[test]
fn the_first_item() {
    for (text, expected) in FIRST {
        let text = format!("{CALLED}{text}");
        let offset = text.find("$0").unwrap();
        let mut ws = workspace(&[("a.tk", &text.replace("$0", ""))]);
        let found = shown(&mut ws, "/w/a.tk", offset, "");
        assert_eq!(found.first().map(String::as_str), Some(*expected), "{text}: {:?}", &found[..SHOWN]);
    }
}

/// Parameters, extents and constants, of which a key is made, come before functions.
#[test]
fn what_a_key_is_made_of() {
    for key in ["key = ", "key = (", "key = (n, "] {
        let text = format!(
            "const LIMIT = 4;\nfn fit(n: i32) -> i32 {{ n }}\nkernel k[BLOCK: i32 = 4](x: view[f32, 1], n: i32) grid(1) tune({key}"
        );
        let mut ws = workspace(&[("a.tk", &text)]);
        let found = shown(&mut ws, "/w/a.tk", text.len(), "");
        let mut first: Vec<&str> = found.iter().take(4).map(String::as_str).collect();
        first.sort_unstable();
        assert_eq!(first, ["BLOCK", "LIMIT", "n", "x"], "{text}: {:?}", &found[..SHOWN]);
    }
}

/// What an example goes on with, where a statement, an index or a value begins.
#[test]
fn what_an_example_goes_on_with() {
    let text = std::fs::read_to_string(root().join("examples/attention.tk")).unwrap();
    for (before, word) in [
        ("    let qt = ", "qs"),
        ("last, scale * LOG2E);\n    }\n    ", "for"),
        ("let l = where(st.l == 0.0, 1.0, st.l);\n    ", "o"),
        ("(st.acc / l[:, None]) as T);\n    ", "lse"),
        ("(st.acc / l[:, None]) as T);\n    lse[", "h"),
        ("const TOL = if T == f16 { 0.002 } ", "else"),
    ] {
        let offset = text.find(before).unwrap() + before.len();
        let mut ws = workspace(&[("a.tk", &text[..offset])]);
        let found = shown(&mut ws, "/w/a.tk", offset, "");
        let at = found.iter().position(|f| f == word);
        assert!(at.is_some_and(|n| n < SHOWN), "{before}{word}: {at:?} in {:?}", &found[..SHOWN]);
    }
}

#[test]
fn positions() {
    let mut problems = vec![];
    for (kind, text, expected) in POSITIONS {
        let offset = text.find("$0").unwrap();
        let text = text.replace("$0", "");
        let start = text[..offset].rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
        let mut ws = workspace(&[("a.tk", &text)]);
        let found = shown(&mut ws, "/w/a.tk", offset, &text[start..offset]);
        let first: Vec<&str> = found.iter().take(SHOWN).map(String::as_str).collect();
        let fits = |word: &str| match word.strip_prefix('-') {
            Some(absent) => !found.iter().any(|f| f == absent),
            None => first.contains(&word.replace('\u{a0}', " ").as_str()),
        };
        let wrong: Vec<&str> = match *expected {
            "nothing" if found.is_empty() => vec![],
            "nothing" => vec!["nothing"],
            words => words.split(' ').filter(|w| !fits(w)).collect(),
        };
        if !wrong.is_empty() {
            problems.push(format!(
                "{kind}: `{}|{}`: {wrong:?} in {first:?}",
                &text[..offset],
                &text[offset..]
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_follows_is_not_doubled() {
    for (text, label, expected) in [
        ("kernel k(n: i32) req$0(n > 0) {}", "require", "require"),
        ("kernel k(n: i32) req$0 {}", "require", "require($0)"),
        ("kernel k[N: i32](n: i32) {}\nexport k[$0= 4];", "N =", "N"),
        ("kernel k[N: i32](n: i32) {}\nexport k[$0];", "N =", "N = "),
        ("fn f(x: ti$0[f32, 4]) {}", "tile", "tile"),
        ("fn f(x: vi$0[f32, 1]) {}", "view", "view"),
        ("fn f(x: ti$0) {}", "tile", "tile[$0]"),
    ] {
        let offset = text.find("$0").unwrap();
        let mut ws = workspace(&[("a.tk", &text.replace("$0", ""))]);
        let found = complete::complete(&mut ws, "/w/a.tk", offset);
        let inserts: Vec<&str> =
            found.iter().filter(|c| c.label == label).map(|c| c.insert.as_str()).collect();
        assert_eq!(inserts, [expected], "{text}");
    }
}

/// The text after the completion with a label was accepted.
fn accepted(text: &str, label: &str) -> String {
    let offset = text.find("$0").unwrap();
    let mut text = text.replace("$0", "");
    let mut ws = workspace(&[("a.tk", &text)]);
    let found =
        complete::complete(&mut ws, "/w/a.tk", offset).into_iter().find(|c| c.label == label).unwrap();
    text.replace_range(found.replace.start..found.replace.end, &found.insert);
    for e in &found.extra {
        text.replace_range(e.place.start..e.place.end, &e.text);
    }
    text
}

#[test]
fn accepted_completions() {
    let after = accepted("// About.\n\nfn f(x: f32) -> f32 { math::$0 }\n", "gelu");
    assert!(after.starts_with("// About.\n\nuse std::math;\n\nfn f(x: f32) -> f32 { math::gelu"), "{after}");
    let after = accepted("use std::math;\n\nfn f(x: f32) -> f32 { math::$0 }\n", "gelu");
    assert!(after.starts_with("use std::math;\n\nfn f(x: f32) -> f32 { math::gelu"), "{after}");
    let after = accepted("kernel k(x: view[f32, 1]) { let v = x.$0load([0], [4]); }\n", "load");
    assert!(after.contains("x.load([0], [4])"), "{after}");
}
