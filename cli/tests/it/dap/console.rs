//! What the console computes.

use serde_json::{Value, json};

use super::Client;

const PROGRAM: &str =
    "kernel k[N: i32 = 8](x: *f32, y: *mut f32, v: view[f16, 2], n: i32, u: u32, b: bool, h: f16) {
    let at = arange(0, N);
    let p = x + at;
    let q = x + 3;
    let t = load(p);
    let small = at as i8;
    store(y + at, t);
}

test \"t\" {
    let x = buffer(arange(0, 8) as f32);
    k(x, buffer(zeros([8], f32)), buffer(zeros([2, 3], f16)), 7, 9, true, 1.5);
}
";

/// Integers stay integers, floats meet them, and every answer has the type of its value.
#[test]
fn numbers_with_their_types() {
    let (mut c, _) = Client::of(PROGRAM, json!({}), json!([7]), &[]);
    c.stopped();
    for (text, value, ty) in [
        ("n / 2 + 1", "4", json!("i32")),
        ("-n >> 1", "-4", json!("i32")),
        ("(n << 2 | 3) & 0x1e ^ 1", "31", json!("i32")),
        ("n << 40", "0", json!("i32")),
        ("N * n", "56", json!("i32")),
        ("small[1] + n", "8", json!("i32")),
        ("n * 1.5", "10.5", Value::Null),
        ("t[2] * n", "14.0", json!("f32")),
        ("h + 1", "2.5", json!("f16")),
        ("h + t[1]", "2.5", json!("f32")),
        ("n - u", "-2", Value::Null),
        ("n as f32 / 2", "3.5", json!("f32")),
        ("300 as i8", "44", json!("i8")),
        ("t[6] as i32 + b as i32", "7", json!("i32")),
        ("1e3", "1000.0", Value::Null),
        ("inf", "inf", Value::Null),
        ("-nan", "NaN", Value::Null),
        ("NaN == NaN || isnan(t[0] / t[0])", "true", json!("bool")),
        ("maximum(abs(-n), 3)", "7", json!("i32")),
        ("sqrt(t[4])", "2.0", json!("f32")),
        ("exp(0.0)", "1.0", json!("f32")),
    ] {
        let body = c.ask("evaluate", json!({ "expression": text, "frameId": 1 }));
        assert_eq!((&body["result"], &body["type"]), (&json!(value), &ty), "{text}");
    }
    for (text, why) in [
        ("n / 0", "this divides by zero"),
        ("small[1] + 300", "300 is out of range for `i8`"),
        ("n + at", "this is a tile or view; name one element: `x[0, 0]`"),
        ("sum(t)", "`sum` cannot be called here: only functions of numbers can"),
        ("sqrt(n)", "`sqrt` does not work on `i32`"),
        ("maximum(n)", "`maximum` takes 2 arguments"),
        ("maximum(n, h)", "the arguments of `maximum` are of two types, `i32` and `f16`"),
        ("n && b", "these operands do not fit the operator"),
    ] {
        let answer = c.answer("evaluate", json!({ "expression": text, "frameId": 1 }));
        assert_eq!(answer["message"], why, "{text}");
    }
    assert_eq!(c.end(), 0);
}

/// A pointer is its buffer and an offset, in an expression as in the list of variables; what is there can be looked at.
#[test]
fn pointers_and_what_is_there() {
    let (mut c, _) = Client::of(PROGRAM, json!({}), json!([7]), &[]);
    c.stopped();
    for (text, value, ty) in [
        ("q", "x + 3", "*f32"),
        ("q + n - 2", "x + 8", "*f32"),
        ("1 + y", "y + 1", "*mut f32"),
        ("p[2]", "x + 2", "*f32"),
        ("p[2] + 1 == q", "true", "bool"),
        ("q == y", "false", "bool"),
        ("q > x && q - x == 3", "true", "bool"),
        ("*q", "3.0", "f32"),
        ("q[2] * 2", "10.0", "f32"),
        ("load(p[7])", "7.0", "f32"),
    ] {
        let body = c.ask("evaluate", json!({ "expression": text, "frameId": 1 }));
        assert_eq!((&body["result"], &body["type"]), (&json!(value), &json!(ty)), "{text}");
    }
    for (text, why) in [
        ("q[5]", "`x + 8` is outside of its buffer"),
        ("q < y", "these pointers lead into two buffers"),
        ("q + 1.5", "these operands do not fit the operator"),
        ("*n", "`7` is no pointer"),
    ] {
        let answer = c.answer("evaluate", json!({ "expression": text, "frameId": 1 }));
        assert_eq!(answer["message"], why, "{text}");
    }
    assert_eq!(c.end(), 0);
}
