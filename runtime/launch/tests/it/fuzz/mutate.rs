//! Changes of texts: tokens taken out, doubled, exchanged, taken from another text; numbers and bytes changed.
//!
//! Guarantees that the same seed and texts give the same changes.

/// Pieces that change the meaning of what is around them.
#[rustfmt::skip]
const WORDS: &[&str] = &["(", ")", "[", "]", "{", "}", ",", ";", ":", "::", ".", "->", "?", "@", "|", "||", "=", "+=", "-", "*",
    "as", "let", "mut", "if", "else", "for", "while", "in", "return", "const", "struct", "fn", "kernel", "test", "use",
    "None", "view", "tile", "0", "1", "-1", "2147483648", "9223372036854775807", "1e999", "nan", "inf", "0.5", "f8e4m3",
    "bool", "i64", "T", "N", "range(0, 1)", "static_range(0, 3)", "map", "reduce", "e2m1", "\"s\"", "é", "\u{1F600}", "\n"];

const TYPES: &[&str] = &[
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64",
    "bool",
];

/// Changes texts.
pub struct Mutator<'a> {
    state: u64,
    texts: &'a [Vec<u8>],
    /// Whether texts stay whole and change in one place, mostly: more of them stay programs.
    gentle: bool,
}

impl Mutator<'_> {
    pub fn new(seed: u64, texts: &[Vec<u8>]) -> Mutator<'_> {
        Mutator { state: seed ^ 0x5851_f42d_4c95_7f2d, texts, gentle: false }
    }

    #[allow(dead_code, reason = "one of two tests wants it")]
    pub fn gentle(seed: u64, texts: &[Vec<u8>]) -> Mutator<'_> {
        Mutator { gentle: true, ..Mutator::new(seed, texts) }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 33) as usize % n.max(1)
    }

    fn text(&mut self) -> String {
        let i = self.below(self.texts.len());
        String::from_utf8_lossy(&self.texts[i]).into_owned()
    }

    /// The next changed text.
    pub fn next(&mut self) -> Vec<u8> {
        let text = self.text();
        let text = if self.gentle { text } else { self.part(text) };
        let mut tokens = split(&text);
        let changes = if self.gentle { 1 + self.below(2) * self.below(3) } else { 1 + self.below(4) };
        for _ in 0..changes {
            self.change(&mut tokens);
        }
        let mut data = tokens.concat().into_bytes();
        if !self.gentle && self.below(20) == 0 && !data.is_empty() {
            let at = self.below(data.len());
            data[at] = self.below(256) as u8;
        }
        data
    }

    /// Some of the items of a text: what is shorter is tried faster.
    fn part(&mut self, text: String) -> String {
        let items: Vec<&str> = text.split_inclusive("\n}\n").collect();
        if items.len() < 2 || self.below(4) == 0 {
            return text;
        }
        let (from, count) = (self.below(items.len()), 1 + self.below(3));
        items[from..].iter().take(count).copied().collect()
    }

    fn change(&mut self, tokens: &mut Vec<String>) {
        if tokens.is_empty() {
            return;
        }
        let (at, other) = (self.below(tokens.len()), self.below(tokens.len()));
        let run = 1 + self.below(6);
        let end = (at + run).min(tokens.len());
        match self.below(12) {
            0 => drop(tokens.drain(at..end)),
            1 => {
                let copy = tokens[at..end].to_vec();
                tokens.splice(other..other, copy);
            }
            2 => tokens.swap(at, other),
            3 | 4 => tokens[at] = WORDS[self.below(WORDS.len())].to_string(),
            5 => tokens.insert(at, format!(" {} ", WORDS[self.below(WORDS.len())])),
            6 => tokens[at] = tokens[other].clone(),
            7 => {
                // A line or so of another text.
                let from = split(&self.text());
                let start = self.below(from.len());
                let count = self.below(30);
                tokens.splice(at..at, from[start..].iter().take(count).cloned().collect::<Vec<_>>());
            }
            8 => {
                // A number, where there is one.
                let digits = |t: &String| t.starts_with(|c: char| c.is_ascii_digit());
                if let Some(i) = (at..tokens.len()).find(|i| digits(&tokens[*i])) {
                    tokens[i] =
                        ["0", "1", "2", "7", "1048577", "-3", "4294967296", "1.5"][self.below(8)].to_string();
                }
            }
            9 => {
                // A type for another one, of which checking knows much.
                let typed = |t: &String| TYPES.contains(&t.as_str());
                if let Some(i) = (at..tokens.len()).find(|i| typed(&tokens[*i])) {
                    tokens[i] = TYPES[self.below(TYPES.len())].to_string();
                }
            }
            10 => {
                // The whole of an item of another text.
                let other = self.text();
                let items: Vec<&str> = other.split_inclusive("\n}\n").collect();
                let item = items[self.below(items.len())].to_string();
                let ends = |i: &usize| tokens[*i] == "}" && tokens.get(i + 1).is_some_and(|t| t == "\n");
                let end = (at..tokens.len()).find(ends).map_or(tokens.len(), |i| (i + 2).min(tokens.len()));
                tokens.splice(end..end, split(&item));
            }
            _ => {
                // A name for another one.
                let word = |t: &String| t.starts_with(|c: char| c.is_alphabetic());
                let first = (at..tokens.len()).find(|i| word(&tokens[*i]));
                let second = (other..tokens.len()).find(|i| word(&tokens[*i]));
                if let (Some(i), Some(j)) = (first, second) {
                    tokens[i] = tokens[j].clone();
                }
            }
        }
    }
}

/// Words and single other characters; together they are the text.
fn split(text: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    let mut in_word = false;
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if word && in_word => last.push(c),
            Some(_) | None => out.push(c.to_string()),
        }
        in_word = word;
    }
    out
}

/// A name for an input.
pub fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}
