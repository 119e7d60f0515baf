//! The text of a row for users: its signature and its example. The generated reference and the editor show the same
//! text.

use std::ops::Range;

use crate::rows::is_operator;
use crate::table::{BuiltinParam, ParamKind, Receiver, Row};

/// A signature as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// `v.load(at: [int, ..], shape: shape = none, other = 0)`
    pub text: String,
    /// The bytes of each parameter after the receiver; empty for operators.
    pub params: Vec<Range<usize>>,
}

/// The signature of a row.
pub fn signature(row: &Row) -> Signature {
    let names: Vec<&str> = row.params.iter().map(|p| p.name).collect();
    if is_operator(row) {
        let text = match (row.name, names.as_slice()) {
            ("as", _) => "x as T".to_string(),
            (name, [a, b]) => format!("{a} {name} {b}"),
            (name, rest) => format!("{}{}", name.trim_start_matches("unary "), rest.join(", ")),
        };
        return Signature { text, params: vec![] };
    }
    let (on, params) = match row.receiver {
        Receiver::None | Receiver::Test => ("", row.params),
        Receiver::View => ("v.", row.params.get(1..).unwrap_or(&[])),
        Receiver::Tile => ("t.", row.params.get(1..).unwrap_or(&[])),
        Receiver::Buffer => ("b.", row.params.get(1..).unwrap_or(&[])),
    };
    let mut text = format!("{on}{}(", row.name);
    let mut ranges = vec![];
    for (i, p) in params.iter().enumerate() {
        text += if i > 0 { ", " } else { "" };
        let start = text.len();
        text += &param(p);
        ranges.push(start..text.len());
    }
    Signature { text: text + ")", params: ranges }
}

/// The example of a row as a file: what is no file already becomes the body of a test.
pub fn example(row: &Row) -> String {
    let lines = row.example.trim().lines();
    if row.example.trim_start().starts_with("kernel") {
        return lines.map(|l| format!("{}\n", l.trim_end())).collect();
    }
    let body: String = lines.map(|l| format!("{}\n", format!("    {l}").trim_end())).collect();
    format!("test \"{}\" {{\n{body}}}\n", row.name)
}

fn param(p: &BuiltinParam) -> String {
    let kind = match p.kind {
        ParamKind::Value => "",
        ParamKind::Mask => ": mask",
        ParamKind::Int => ": int",
        ParamKind::Pointer => ": pointer",
        ParamKind::View => ": view",
        ParamKind::Shape => ": shape",
        ParamKind::Axis => ": const axis",
        ParamKind::ConstInt => ": const int",
        ParamKind::ConstBool => ": const bool",
        ParamKind::ConstFloat => ": const float",
        ParamKind::ConstInts => ": const ints",
        ParamKind::DType => ": dtype",
        ParamKind::Fn => ": function",
        ParamKind::Position => ": [int, ..]",
        ParamKind::Positions => ": [int tile, ..]",
        ParamKind::Word(words) => return word(p, words),
        ParamKind::Str => ": text",
        ParamKind::Rest => return format!("{}..", p.name),
    };
    let default = p.default.map(|d| format!(" = {d}")).unwrap_or_default();
    format!("{}{kind}{default}", p.name)
}

fn word(p: &BuiltinParam, words: &[&str]) -> String {
    let default = p.default.map(|d| format!(" = {d}")).unwrap_or_default();
    format!("{}: {}{default}", p.name, words.join(" | "))
}
