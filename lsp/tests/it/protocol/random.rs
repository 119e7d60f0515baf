//! After each of many random edits the answers are those of a server that sees the text for the first time.

use serde_json::json;

use super::client::{Client, Memory};

const URI: &str = "file:///w/a.tk";
const EDITS: i32 = 1000;

/// A generator of numbers that gives the same ones every time: xorshift.
pub struct Random(pub u64);

impl Random {
    /// A number below another.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    pub fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const START: &str = "use b;

fn f(x: i32) -> i32 {
    let y = x + 1; // ä😀
    b::g(y)
}

kernel k[N: i32 = 16](x: view[f32, 1], y: mut view[f32, 1])
    grid(cdiv(y.shape[0], N))
{
    let at = program_id(0) * N;
    y.store([at], x.load([at], [N]) + f(1) as f32);
}
";
const PIECES: &[&str] = &[
    "",
    "",
    " ",
    "\n",
    "x",
    "y",
    "N",
    "f(1)",
    "b::g",
    "let z = 1;",
    "{",
    "}",
    "(",
    ")",
    ";",
    "\"",
    "//",
    "ä",
    "😀",
    "\r\n",
    "fn h() -> i32 { 1 }\n",
    "use b;\n",
    "as f32",
    "[at]",
    ",",
    "mut ",
    "if x > 1 { 2 } else { 3 }",
    "+",
    "0",
    "1.5",
];

/// The offset of a position in units of 16 bits that the test made itself.
fn position(text: &str, at: usize) -> serde_json::Value {
    let before = &text[..at];
    // A carriage return before a line feed belongs to it.
    let (mut line, mut start) = (0, 0);
    for (i, b) in before.bytes().enumerate() {
        if b == b'\n' || (b == b'\r' && text.as_bytes().get(i + 1) != Some(&b'\n')) {
            line += 1;
            start = i + 1;
        }
    }
    json!({ "line": line, "character": before[start..].encode_utf16().count() })
}

fn boundary(text: &str, random: &mut Random) -> usize {
    let mut at = random.below(text.len() + 1);
    // Positions between the two characters that end a line do not exist.
    while !text.is_char_boundary(at) || (at > 0 && text.as_bytes()[at - 1] == b'\r') {
        at -= 1;
    }
    at
}

#[test]
fn the_same_as_a_fresh_server() {
    let disk = Memory::default();
    disk.write("/w/b.tk", "fn g(x: i32) -> i32 { x }\n");
    let pulls = json!({ "textDocument": { "diagnostic": {} } });
    let mut old = Client::over(disk.clone(), pulls.clone());
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut text = START.to_string();
    old.open(URI, &text);
    for version in 2..EDITS + 2 {
        if random.below(40) == 0 || text.len() > 700 {
            text = START.to_string();
            old.change(URI, version, json!([{ "text": text }]));
        } else {
            let (a, b) = (boundary(&text, &mut random), boundary(&text, &mut random));
            // Mostly a few characters, sometimes a large part.
            let (from, to) = (a.min(b), a.max(b));
            let to = if random.below(8) > 0 && to > from + 6 { from } else { to };
            let piece = random.pick(PIECES);
            let range = json!({ "start": position(&text, from), "end": position(&text, to) });
            text.replace_range(from..to, piece);
            old.change(URI, version, json!([{ "range": range, "text": piece }]));
        }
        let mut fresh = Client::over(disk.clone(), pulls.clone());
        fresh.open(URI, &text);
        assert_eq!(old.pulled(URI), fresh.pulled(URI), "after edit {version}:\n{text}");
        drop(fresh);
    }
    assert_eq!(old.end(), 0);
}

/// Files that a user types: items with bodies, comments, another end of lines.
const TYPED: &[&str] = &[
    "fn f(x: i32) -> i32 {\n    // a note\n    let y = x + 1;\n    y\n}\n\nstruct P { a: i32 }\n\ntest \"b\" {\n    \
     let p = P(a = f(1));\n    assert(p.a == 2);\n}\n",
    "/// What it gives.\r\nfn g() -> i32 { 1 }\r\n\r\nkernel k(x: mut view[f32, 1]) grid(1) {\r\n    let t = \
     x.load([0], [16]);\r\n    x.store([0], t + 1.0);\r\n}// end\r\n",
    "const A = 1;\n\nfn a() -> i32 { A }\n\n@fast fn b(x: f32) -> f32 {\n    // é\n    let y = x * 2.0;\n    \
     let mut z = y;\n    z = z + 1.0;\n    z\n}\n\nfn c() -> i32 { a() }\n\nstruct S { a: i32 }\n\nfn d(s: S) -> i32 \
     {\n    print(\"é {}\", s.a);\n    s.a\n}\n\ntest \"t\" {\n    assert(d(S(a = 1)) == c());\n}\n",
];

/// What a client asks after each change.
fn asked(client: &mut Client) -> Vec<serde_json::Value> {
    let document = json!({ "textDocument": { "uri": URI } });
    let mut format = document.clone();
    format["options"] = json!({ "tabSize": 4, "insertSpaces": true });
    let methods =
        [("documentSymbol", &document), ("semanticTokens/full", &document), ("formatting", &format)];
    let mut all = vec![client.pulled(URI)];
    all.extend(methods.map(|(method, params)| {
        let mut answer = client.ok(&format!("textDocument/{method}"), params.clone());
        // Its name differs from server to server.
        answer.as_object_mut().map(|fields| fields.remove("resultId"));
        answer
    }));
    all
}

#[test]
fn typing_is_the_same_as_opening() {
    let pulls = json!({ "textDocument": { "diagnostic": {} } });
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for whole in TYPED {
        for _ in 0..6 {
            // Part of the file is missing, and is typed; what follows is there or not.
            let from = boundary(whole, &mut random);
            let to = boundary(whole, &mut random).max(from);
            let rest = random.pick(&["", &whole[to..]]).to_string();
            let mut text = format!("{}{rest}", &whole[..from]);
            let mut old = Client::new(pulls.clone());
            old.open(URI, &text);
            let mut at = from;
            for (typed, piece) in whole[from..to].split_inclusive(|c: char| c != '\r').enumerate() {
                let place = position(&text, at);
                text.insert_str(at, piece);
                at += piece.len();
                let change = json!([{ "range": { "start": place, "end": place }, "text": piece }]);
                old.change(URI, typed as i32 + 2, change);
                if random.below(3) > 0 {
                    old.pulled(URI);
                    continue;
                }
                let mut fresh = Client::new(pulls.clone());
                fresh.open(URI, &text);
                assert_eq!(asked(&mut old), asked(&mut fresh), "after {piece:?}:\n{text}");
            }
        }
    }
}
