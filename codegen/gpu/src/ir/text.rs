//! Prints and parses kernels with layouts, of both stages.
//!
//! ```text
//! target sm_90a
//! warps 4
//! fact 0: divisible 16
//! fact 2: divisible 8, one
//! layout l0 = [7]: register [[1], [2]], lane [[4], [8], [16], [32], [64]], warp [[0], [0]]
//! layout l1 = [5] x [3]: register [], lane [[1], [2], [4], [8], [16]], warp [[0], [0]]
//! buffer 0: 512 bytes at 0
//!
//! kernel @k(v0 "x": *f32) {
//!   v1 = arange {start = 0} : tile[i32, 128] @l0
//!   ..
//! ```
//! Before the kernel, in the text of tile IR, come the target, the warps, the facts about flattened parameters, the
//! layouts and the buffers. A layout has the log2 of the extents of its atom, the number of repetitions of the atom if
//! it is more than one, and the basis of each bit of register, lane and warp. `@` and the name of a layout follow the
//! type of each value that has one. Printing numbers layouts in the order of the text and omits unused ones.
//!
//! Requires nothing of text. Guarantees a result without a panic, and that printed kernels can be parsed.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use tk_tile::text::lex::{IrToken, IrTokenKind, Lexer};
use tk_tile::text::{Options, ParseError, parse_marked, print_marked};
use tk_tile::{FuncId, Id, ValueId};

use crate::ir::cluster;
use crate::ir::dialect::Gpu;
use crate::ir::kernel::{Buffer, CompileOptions, Kernel, LayoutId, Layouts, Operands};
use crate::ir::params::ArgFacts;
use crate::layout::Layout;
use crate::layout::linear::{InDim, LinearLayout};
use crate::target::spec::target;

/// A kernel as text.
pub fn print(kernel: &Kernel, options: Options) -> String {
    let mut used: Vec<LayoutId> = vec![];
    let func = print_marked(&kernel.module, kernel.func(), options, &mut |v: ValueId| {
        let id = kernel.value_layouts.get(v.index()).copied().flatten()?;
        let known = used.iter().position(|l| *l == id);
        let number = known.unwrap_or_else(|| {
            used.push(id);
            used.len() - 1
        });
        Some(format!("l{number}"))
    });
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = header(&mut out, kernel, &used);
    out + "\n" + &func
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, Options::default()))
    }
}

fn header(out: &mut String, kernel: &Kernel, used: &[LayoutId]) -> fmt::Result {
    let options = &kernel.options;
    writeln!(out, "target {}", options.spec.name)?;
    writeln!(out, "warps {}", options.warps)?;
    if options.groups != 1 {
        writeln!(out, "groups {}", options.groups)?;
    }
    if options.blocks != 1 {
        writeln!(out, "blocks {}", options.blocks)?;
    }
    if options.cluster != 1 {
        writeln!(out, "cluster {}", options.cluster)?;
    }
    if let Some(stages) = options.stages.filter(|s| *s != 1) {
        writeln!(out, "stages {stages}")?;
    }
    if kernel.options.operands.most_k != u32::MAX {
        writeln!(out, "chunks {}", kernel.options.operands.most_k)?;
    }
    if kernel.options.operands.invariant_in_registers {
        writeln!(out, "invariant_in_registers")?;
    }
    if let Some(registers) = options.registers {
        writeln!(out, "registers {registers}")?;
    }
    for (i, f) in options.facts.iter().enumerate() {
        let divisible = (f.divisible != 1).then(|| format!("divisible {}", f.divisible));
        let words = [f.one.then_some("one"), f.positive.then_some("positive")];
        let words: Vec<String> =
            divisible.into_iter().chain(words.into_iter().flatten().map(String::from)).collect();
        if !words.is_empty() {
            writeln!(out, "fact {i}: {}", words.join(", "))?;
        }
    }
    for (n, id) in used.iter().enumerate() {
        match kernel.layouts.find(*id) {
            Some(layout) => writeln!(out, "layout l{n} = {layout}")?,
            None => writeln!(out, "// layout l{n} does not exist")?,
        }
    }
    for (i, b) in kernel.buffers.iter().enumerate() {
        let common = if b.is_common && options.groups != 1 { ", common" } else { "" };
        writeln!(out, "buffer {i}: {} bytes at {}{common}", b.bytes, b.offset)?;
    }
    if let Some(vote) = kernel.vote {
        writeln!(out, "vote {vote}")?;
    }
    Ok(())
}

impl fmt::Display for Layout {
    /// `[5] x [3]: register [], lane [[1], [2], [4], [8], [16]], warp [[0], [0]]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.atom().out_bits())?;
        if self.repeats().iter().any(|r| *r != 1) {
            write!(f, " x {:?}", self.repeats())?;
        }
        let bases = |dim| -> Vec<Vec<u32>> {
            (0..self.atom().bits(dim)).filter_map(|i| self.atom().basis(dim, i)).collect()
        };
        let (register, lane, warp) = (bases(InDim::Register), bases(InDim::Lane), bases(InDim::Warp));
        write!(f, ": register {register:?}, lane {lane:?}, warp {warp:?}")
    }
}

type Parsed<T> = Result<T, ParseError>;

/// Parses a kernel, which is not yet verified.
///
/// # Errors
/// The first error with its position.
pub fn parse(text: &str) -> Parsed<Kernel> {
    let mut head = Head::new(text);
    while head.word().is_some_and(|w| w != "kernel") {
        head.line()?;
    }
    let (line, column) = (head.token.line, head.token.column);
    let fail = |message: String| ParseError { line, column, message };
    // The lines of the header remain, so that positions in the text are right.
    let end = text.lines().take(line.saturating_sub(1) as usize).map(|_| "\n").collect::<String>();
    let rest = text.lines().skip(line.saturating_sub(1) as usize).collect::<Vec<_>>().join("\n");
    let (module, marks) = parse_marked(&(end + &rest), &Gpu)?;
    let mut of = vec![None; module.funcs.get(FuncId(0)).map_or(0, |f| f.values.len())];
    if module.funcs.len() != 1 {
        return Err(fail(format!("{} functions where one kernel is asked for", module.funcs.len())));
    }
    for ((_, v), name) in marks {
        let Some(id) = head.names.get(&name) else {
            return Err(fail(format!("{v} has the layout `{name}`, which is not in the head")));
        };
        if let Some(slot) = of.get_mut(v.index()) {
            *slot = Some(*id);
        }
    }
    let Some(spec) = head.target else { return Err(fail("expected a line `target ..` above".into())) };
    let Some(warps) = head.warps else { return Err(fail("expected a line `warps ..` above".into())) };
    let Head { groups, blocks, cluster, registers, facts, .. } = head;
    let options = CompileOptions {
        spec,
        warps,
        groups,
        blocks,
        cluster,
        stages: Some(head.stages),
        most_stages: u32::MAX,
        operands: head.operands,
        may_have_groups: true,
        registers,
        facts,
    };
    Ok(Kernel {
        module,
        layouts: head.layouts,
        value_layouts: of,
        options,
        buffers: head.buffers,
        vote: head.vote,
        shortages: vec![],
        remarks: vec![],
    })
}

/// Parses a layout, such as `[3, 3]: register [[0, 1]], lane [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp []`.
///
/// # Errors
/// The first error with its position.
pub fn layout(text: &str) -> Parsed<Layout> {
    let mut head = Head::new(text);
    let layout = head.body()?;
    if head.token.kind == IrTokenKind::End { Ok(layout) } else { head.fail("expected the end") }
}

/// The most flattened parameters about which text may state facts.
const MOST_FACTS: usize = 1 << 12;

/// The header before the kernel.
struct Head<'a> {
    lexer: Lexer<'a>,
    token: IrToken<'a>,
    target: Option<&'static crate::target::spec::TargetSpec>,
    warps: Option<u32>,
    groups: u32,
    blocks: u32,
    cluster: u32,
    stages: u32,
    registers: Option<u32>,
    operands: Operands,
    facts: Vec<ArgFacts>,
    layouts: Layouts,
    names: BTreeMap<String, LayoutId>,
    buffers: Vec<Buffer>,
    vote: Option<usize>,
}

impl<'a> Head<'a> {
    fn new(text: &'a str) -> Head<'a> {
        let mut lexer = Lexer::new(text);
        let token = lexer.token();
        Head {
            lexer,
            token,
            target: None,
            warps: None,
            groups: 1,
            blocks: 1,
            cluster: 1,
            stages: 1,
            registers: None,
            operands: Operands::SHARED,
            facts: vec![],
            layouts: Layouts::default(),
            names: BTreeMap::new(),
            buffers: vec![],
            vote: None,
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let IrToken { line, column, .. } = self.token;
        Err(ParseError { line, column, message: message.into() })
    }

    fn take(&mut self) {
        self.token = self.lexer.token();
    }

    fn word(&self) -> Option<&'a str> {
        if let IrTokenKind::Word(w) = self.token.kind { Some(w) } else { None }
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.token.kind == IrTokenKind::Mark(mark);
        if found {
            self.take();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, mark: char) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { self.fail(format!("expected `{mark}`")) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(format!("expected `{word}`")) }
    }

    fn name(&mut self) -> Parsed<&'a str> {
        match self.word() {
            Some(w) => {
                self.take();
                Ok(w)
            }
            None => self.fail("expected a name"),
        }
    }

    fn number(&mut self) -> Parsed<u32> {
        let value = if let IrTokenKind::Number(n) = self.token.kind { n.parse().ok() } else { None };
        match value {
            Some(v) => {
                self.take();
                Ok(v)
            }
            None => self.fail("expected a number from 0 to 4294967295"),
        }
    }

    /// `[item, item, ..]`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect('[')?;
        let mut out = vec![];
        while !self.eat(']') {
            if !out.is_empty() {
                self.expect(',')?;
            }
            out.push(item(self)?);
        }
        Ok(out)
    }

    /// The size of a cluster after a word.
    fn size(&mut self, rule: &str) -> Parsed<u32> {
        self.take();
        let n = self.number()?;
        if cluster::SIZES.contains(&n) { Ok(n) } else { self.fail(format!("before this: {rule}")) }
    }

    /// One line; line breaks are not significant.
    /// After the word: `0: 1024 bytes at 2048, common`.
    fn buffer(&mut self) -> Parsed<()> {
        if self.number()? as usize != self.buffers.len() {
            return self.fail("before this: buffers are numbered from 0");
        }
        self.expect(':')?;
        let bytes = self.number()?;
        self.expect_word("bytes")?;
        self.expect_word("at")?;
        let offset = self.number()?;
        let is_common = self.eat(',');
        if is_common {
            self.expect_word("common")?;
        }
        self.buffers.push(Buffer { bytes, offset, is_common });
        Ok(())
    }

    /// The number after a word, from 1 to `most`.
    fn limited(&mut self, most: u32, what: &str) -> Parsed<u32> {
        self.take();
        let found = self.number()?;
        if !(1..=most).contains(&found) {
            return self.fail(format!("before this: {what}"));
        }
        Ok(found)
    }

    fn line(&mut self) -> Parsed<()> {
        let Some(word) = self.word() else { return self.fail("expected `kernel`") };
        match word {
            "target" => {
                self.take();
                let name = self.name()?;
                self.target = target(name);
                if self.target.is_none() {
                    return self.fail(format!("before this: there is no target `{name}`"));
                }
            }
            "warps" => self.warps = Some(self.limited(1 << 10, "a program has 1 to 1024 warps")?),
            "groups" => self.groups = self.limited(8, "a program has 1 to 8 warpgroups")?,
            "blocks" => self.blocks = self.size("a program has 1, 2, 4 or 8 blocks")?,
            "cluster" => self.cluster = self.size("a cluster has 1, 2, 4 or 8 programs")?,
            "stages" => {
                self.take();
                self.stages = self.number()?;
                if self.stages == 0 {
                    return self.fail("before this: a loop has one iteration on its way at least");
                }
            }
            "chunks" => {
                self.take();
                self.operands.most_k = self.number()?;
                if !self.operands.most_k.is_power_of_two() {
                    return self.fail("before this: chunks along K are a power of two");
                }
            }
            "invariant_in_registers" => {
                self.take();
                self.operands.invariant_in_registers = true;
            }
            "registers" => {
                self.take();
                self.registers = Some(self.number()?);
            }
            "fact" => {
                self.take();
                self.fact()?;
            }
            "layout" => {
                self.take();
                self.layout()?;
            }
            "buffer" => {
                self.take();
                self.buffer()?;
            }
            "vote" => {
                self.take();
                self.vote = Some(self.number()? as usize);
            }
            _ => {
                return self.fail(
                    "expected `target`, `warps`, `groups`, `blocks`, `stages`, `registers`, `fact`, `layout`, `buffer`, `vote` or `kernel`",
                );
            }
        }
        Ok(())
    }

    /// `2: divisible 8, one, positive`
    fn fact(&mut self) -> Parsed<()> {
        let index = self.number()? as usize;
        if index >= MOST_FACTS {
            return self.fail("before this: there are not that many parameters");
        }
        self.expect(':')?;
        let mut fact = ArgFacts::default();
        loop {
            if self.eat_word("divisible") {
                fact.divisible = self.number()?;
                if !fact.divisible.is_power_of_two() {
                    return self.fail("before this: expected a power of two");
                }
            } else if self.eat_word("positive") {
                fact.positive = true;
            } else {
                self.expect_word("one")?;
                fact.one = true;
            }
            if !self.eat(',') {
                break;
            }
        }
        if self.facts.len() <= index {
            self.facts.resize(index + 1, ArgFacts::default());
        }
        if let Some(slot) = self.facts.get_mut(index) {
            *slot = fact;
        }
        Ok(())
    }

    /// `l0 = [5] x [3]: register [], lane [[1], [2]], warp []`
    fn layout(&mut self) -> Parsed<()> {
        let name = self.name()?;
        self.expect('=')?;
        let layout = self.body()?;
        let id = self.layouts.intern(layout);
        if self.names.insert(name.to_string(), id).is_some() {
            return self.fail(format!("before this: there are two layouts `{name}`"));
        }
        Ok(())
    }

    /// `[5] x [3]: register [], lane [[1], [2]], warp []`
    fn body(&mut self) -> Parsed<Layout> {
        let bits = self.list(Self::number)?;
        let repeats = if self.eat_word("x") { self.list(Self::number)? } else { vec![1; bits.len()] };
        if repeats.len() != bits.len() || repeats.contains(&0) {
            return self.fail("before this: expected how often each dimension is repeated");
        }
        self.expect(':')?;
        let mut bases = |word: &str, more: bool| -> Parsed<Vec<Vec<u32>>> {
            self.expect_word(word)?;
            let bases = self.list(|p| p.list(Self::number))?;
            if more {
                self.expect(',')?;
            }
            Ok(bases)
        };
        let (register, lane, warp) = (bases("register", true)?, bases("lane", true)?, bases("warp", false)?);
        let atom = match LinearLayout::new(&bits, register, lane, warp) {
            Ok(atom) => atom,
            Err(why) => return self.fail(format!("before this: {why}")),
        };
        Ok(Layout::repeated(atom, repeats))
    }
}
