//! Lists the forms of a compiled kernel, line by line, each with its source line.

use std::collections::BTreeMap;

use tk_bundle::{Line, Listing, SourceText, Typical, TypicalLine, View};
use tk_syntax::{FileId, SourceMap, Span};
use tk_tile::text;

use crate::compile::kernel::{Request, StageTexts};
use crate::compile::pipeline::name_in_code;
use crate::device::typical::{Expected, LineCost, lines};

/// The forms of a kernel, and what is expected of it; `stages` are those between tile IR and the text for the assembler.
pub fn listing(request: &Request<'_>, stages: &StageTexts, expected: Option<Expected>) -> Listing {
    let sources = request.sources;
    let names: Vec<String> = sources.iter().map(|(_, s)| name_in_code(sources, s)).collect();
    let tile = text::print(request.module, text::Options { locs: true });
    let [layout, sched] = &stages.located;
    let view = |name: &str, lines| View { name: name.to_string(), lines };
    let views = vec![
        view("tile IR", located(&tile, sources)),
        view("laid-out IR", located(layout, sources)),
        view("scheduled IR", located(sched, sources)),
        view("LLVM", llvm(&stages.llvm, &names)),
        view("PTX", ptx(&stages.asm, &names)),
    ];
    let used = |i: usize| {
        views.iter().flat_map(|v| &v.lines).any(|l| l.at.is_some_and(|(file, _)| file as usize == i))
    };
    let text = |(i, s): (usize, &tk_syntax::Source)| SourceText {
        name: names.get(i).cloned().unwrap_or_default(),
        // A file without remaining lines is left out.
        text: if i == 0 || used(i) { s.text.to_string() } else { String::new() },
    };
    let typical = expected.map(|expected| typical(sources, expected));
    Listing { sources: sources.iter().map(|(_, s)| s).enumerate().map(text).collect(), views, typical }
}

fn typical(sources: &SourceMap, expected: Expected) -> Typical {
    let Expected { extents, gpu, estimate, .. } = expected;
    let (unit, lines) = lines(sources, &estimate);
    let line = |c: LineCost| TypicalLine {
        at: (c.file.0, c.line as u32),
        share: c.share,
        instructions: c.instructions,
        bytes: c.bytes,
        conflicts: c.conflicts,
        registers: c.registers,
    };
    Typical {
        extent: extents.first().copied().unwrap_or(1),
        gpu,
        us: estimate.us,
        limits: estimate.parts.iter().map(|(name, us)| (name.to_string(), *us)).collect(),
        blocks_per_sm: estimate.blocks_per_sm,
        is_guess: estimate.is_guess,
        unit: unit.to_string(),
        lines: lines.into_iter().map(line).collect(),
    }
}

/// Lines of IR, with positions at their ends: `loc(file:start:end)`.
fn located(text: &str, sources: &SourceMap) -> Vec<Line> {
    let place = |inside: &str| {
        let mut numbers = inside.split(':').map(str::parse::<u32>);
        let (Some(Ok(file)), Some(Ok(start)), Some(Ok(end))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        let (_, line, _) = sources.position(Span::new(FileId(file), start as usize, end as usize));
        Some((file, line as u32))
    };
    let one = |line: &str| match line
        .rsplit_once(" loc(")
        .and_then(|(head, tail)| Some((head, tail.split_once(')')?)))
    {
        Some((head, (inside, rest))) => Line { text: format!("{head}{rest}"), at: place(inside) },
        None => Line { text: line.to_string(), at: None },
    };
    text.lines().map(one).collect()
}

/// A number after a word: `line: 19`.
fn number(text: &str, word: &str) -> Option<u32> {
    let rest = text.split_once(word)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Lines of LLVM IR, with positions as metadata: `!dbg !9`. The metadata itself is left out.
fn llvm(text: &str, names: &[String]) -> Vec<Line> {
    let (mut files, mut scopes, mut places) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let Some((id, what)) = line.strip_prefix('!').and_then(|l| l.split_once(" = ")) else { continue };
        let Ok(id) = id.parse::<u32>() else { continue };
        if what.contains("!DIFile(") {
            let name = what.split('"').nth(1).unwrap_or_default();
            files.extend(names.iter().position(|n| *n == name).map(|i| (id, i as u32)));
        } else if what.contains("!DILocation(") {
            places.extend(number(what, "line: ").zip(number(what, "scope: !")).map(|place| (id, place)));
        } else if let Some(file) = number(what, "file: !") {
            scopes.insert(id, file);
        }
    }
    let at = |line: &str| {
        let (line, scope) = places.get(&number(line, "!dbg !")?)?;
        Some((*files.get(scopes.get(scope)?)?, *line))
    };
    let code = text.lines().filter(|l| !l.starts_with('!'));
    code.map(|l| Line { text: l.split(", !dbg !").next().unwrap_or(l).to_string(), at: at(l) }).collect()
}

/// Lines of PTX, preceded by their positions: `.loc 1 19 0`. The positions themselves are left out.
fn ptx(text: &str, names: &[String]) -> Vec<Line> {
    let mut files = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() == Some(".file") {
            let number = words.next().and_then(|n| n.parse::<u32>().ok());
            let name = line.split('"').nth(1).unwrap_or_default();
            files.extend(number.zip(names.iter().position(|n| *n == name).map(|i| i as u32)));
        }
    }
    let (mut at, mut out) = (None, vec![]);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [".loc", file, line, ..] => {
                let file = file.parse().ok().and_then(|n: u32| files.get(&n)).copied();
                at = file.zip(line.parse().ok());
            }
            [".file", ..] => {}
            _code => out.push(Line { text: line.to_string(), at: at.filter(|_| !words.is_empty()) }),
        }
    }
    out
}
