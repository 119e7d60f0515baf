//! Printing.
//!
//! May be given a module that is not verified: it prints what is there, as far as it is reachable from the bodies.
//! Guarantees the same text for the same module, and that verified modules read back ([`crate::text::parse`]).

use std::fmt::{self, Write};

use crate::attr::{Attr, Attrs};
use crate::ir::{BlockId, Func, FuncKind, Inst, InstId, Module, Type, ValueId};
use crate::text::lex::{is_plain, quote};
use crate::verify::MAX_NESTING;

/// What to print besides the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Where instructions come from.
    pub locs: bool,
}

/// A module as text.
pub fn print(module: &Module, options: Options) -> String {
    let texts: Vec<String> = module.funcs.iter().map(|(_, f)| print_func(module, f, options)).collect();
    texts.join("\n")
}

/// One function as text.
pub fn print_func(module: &Module, func: &Func, options: Options) -> String {
    print_marked(module, func, options, &mut |_| None)
}

/// One function as text, with `@` and a name after the types of the values that have one. Asks in the order in which
/// values appear.
pub fn print_marked(
    module: &Module,
    func: &Func,
    options: Options,
    mark: &mut dyn FnMut(ValueId) -> Option<String>,
) -> String {
    let numbers = vec![None; func.values.len()];
    let mut p = Printer { module, func, options, mark, numbers, next: 0, blocks: 0, out: String::new() };
    // Writing to a string does not fail.
    let _ = p.func();
    p.out
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, Options::default()))
    }
}

impl FuncKind {
    /// The word in IR text.
    pub fn name(self) -> &'static str {
        match self {
            FuncKind::Kernel => "kernel",
            FuncKind::Fn => "fn",
            FuncKind::NoInline => "noinline",
            FuncKind::Test => "test",
        }
    }
}

struct Printer<'a> {
    module: &'a Module,
    func: &'a Func,
    options: Options,
    mark: &'a mut dyn FnMut(ValueId) -> Option<String>,
    /// The number of each value that has appeared.
    numbers: Vec<Option<u32>>,
    next: u32,
    /// How many labels have been printed.
    blocks: u32,
    out: String,
}

impl<'a> Printer<'a> {
    fn func(&mut self) -> fmt::Result {
        let func = self.func;
        let name = if is_plain(&func.name) { func.name.clone() } else { quote(&func.name) };
        write!(self.out, "{} @{name}(", func.kind.name())?;
        let params = func.blocks.get(func.body).map_or(&[][..], |b| &b.args);
        for (i, v) in params.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            let label = match func.param_names.get(i) {
                Some(n) if !n.is_empty() => format!(" {}", quote(n)),
                Some(_) | None => String::new(),
            };
            let (v, ty) = (self.value(*v), self.type_of(*v));
            write!(self.out, "{v}{label}: {ty}")?;
        }
        self.out.push(')');
        for (i, ty) in func.results.iter().enumerate() {
            let ty = Shown(self.module.types.find(*ty));
            write!(self.out, "{}{ty}", if i > 0 { ", " } else { " -> " })?;
        }
        for (x, y) in &func.alias {
            let name = |n: u32| params.get(n as usize).copied();
            if let (Some(x), Some(y)) = (name(*x), name(*y)) {
                let pair = self.values(&[x, y]);
                write!(self.out, " alias({pair})")?;
            }
        }
        self.out.push_str(" {\n");
        self.insts(func.body, 1)?;
        self.out.push_str("}\n");
        Ok(())
    }

    fn insts(&mut self, block: BlockId, depth: usize) -> fmt::Result {
        let insts = self.func.blocks.get(block).map_or(&[][..], |b| &b.insts);
        insts.iter().try_for_each(|i| self.inst(*i, depth))
    }

    fn inst(&mut self, id: InstId, depth: usize) -> fmt::Result {
        let Some(inst) = self.func.insts.get(id) else { return Ok(()) };
        self.indent(depth);
        if !inst.results.is_empty() {
            let results = self.values(&inst.results);
            write!(self.out, "{results} = ")?;
        }
        self.out.push_str(inst.name());
        if !inst.operands.is_empty() {
            let operands = self.values(&inst.operands);
            write!(self.out, " {operands}")?;
        }
        match inst.attrs.target() {
            Some(op) => write!(self.out, "{}", AttrText(&op.fields()))?,
            None => write!(self.out, "{}", AttrText(&inst.attrs))?,
        }
        for (i, v) in inst.results.iter().enumerate() {
            let ty = self.type_of(*v);
            write!(self.out, "{}{ty}", if i > 0 { ", " } else { " : " })?;
        }
        if let (true, Some(l)) = (self.options.locs, inst.loc) {
            write!(self.out, " loc({}:{}:{})", l.file, l.start, l.end)?;
        }
        self.blocks_of(inst, depth)?;
        self.out.push('\n');
        Ok(())
    }

    fn blocks_of(&mut self, inst: &Inst, depth: usize) -> fmt::Result {
        if inst.blocks.is_empty() {
            return Ok(());
        }
        if depth > MAX_NESTING {
            self.out.push_str(" { ... }");
            return Ok(());
        }
        self.out.push_str(" {\n");
        for block in &inst.blocks {
            self.indent(depth);
            self.blocks += 1;
            write!(self.out, "block{}", self.blocks)?;
            let args = self.func.blocks.get(*block).map_or(&[][..], |b| &b.args);
            for (i, v) in args.iter().enumerate() {
                let (v, ty) = (self.value(*v), self.type_of(*v));
                write!(self.out, "{}{v}: {ty}", if i > 0 { ", " } else { "(" })?;
            }
            self.out.push_str(if args.is_empty() { ":\n" } else { "):\n" });
            self.insts(*block, depth + 1)?;
        }
        self.indent(depth);
        self.out.push('}');
        Ok(())
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    /// The name of a value: numbered when it first appears, which is its definition if the function is valid.
    fn value(&mut self, v: ValueId) -> ValueId {
        let Some(slot) = self.numbers.get_mut(v.0 as usize) else { return v };
        ValueId(*slot.get_or_insert_with(|| {
            self.next += 1;
            self.next - 1
        }))
    }

    fn values(&mut self, values: &[ValueId]) -> String {
        let names: Vec<String> = values.iter().map(|v| self.value(*v).to_string()).collect();
        names.join(", ")
    }

    fn type_of(&mut self, v: ValueId) -> String {
        let ty = Shown(self.func.values.get(v).and_then(|value| self.module.types.find(value.ty)));
        let mark = (self.mark)(v).map_or(String::new(), |m| format!(" @{m}"));
        format!("{ty}{mark}")
    }
}

/// ` {axis = 1, keep = true}`, or nothing.
struct AttrText<'a>(&'a Attrs);

impl fmt::Display for AttrText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = " {";
        for (name, value) in self.0.iter() {
            write!(f, "{open}{name} = {value}")?;
            open = ", ";
        }
        f.write_str(if open == " {" { "" } else { "}" })
    }
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Int(i) => write!(f, "{i}"),
            Attr::Bool(b) => write!(f, "{b}"),
            Attr::Ints(list) => {
                let list: Vec<String> = list.iter().map(i64::to_string).collect();
                write!(f, "[{}]", list.join(", "))
            }
            Attr::Str(s) => f.write_str(&quote(s)),
            Attr::Scalar(s) => write!(f, "{s} : {}", s.dtype()),
        }
    }
}

/// A type, or `?` where there is none.
struct Shown<'a>(Option<&'a Type>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ty) => write!(f, "{ty}"),
            None => f.write_str("?"),
        }
    }
}
