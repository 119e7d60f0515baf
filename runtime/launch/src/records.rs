//! Turns the messages of a compiled kernel into text: the same lines, and the same faults, as the interpreter's.
//!
//! Every thread of a program comes by a `print` as often as the others, each with the parts of the values that are its
//! own. A line is there when all parts have come.

use std::cell::Cell;
use std::collections::BTreeMap;

use tk_interp::{Arg, Buffers, Fault, Printed, print};
use tk_ops::Scalar;
use tk_syntax::codes;
use tk_tile::message::{Form, Kind, Message};

/// The output of the threads of a launch.
#[derive(Debug, Default)]
pub struct Records {
    /// By program, z first, and number of the line: their order is that of the text.
    lines: BTreeMap<([u32; 3], u32), Line>,
}

/// A line on its way: which message, and the bits of each part of each value.
#[derive(Debug, Default)]
struct Line {
    message: usize,
    /// The first thread of the program has come.
    led: bool,
    parts: BTreeMap<(u64, u64), u64>,
}

/// A part of a printed value: which value, which part of it, its bits.
pub type Part = (u64, u64, u64);

impl Records {
    /// A thread of a program prints its part of the line with this number; whether it is the first thread.
    pub fn add(
        &mut self,
        [x, y, z]: [u32; 3],
        (line, leads): (u32, bool),
        message: usize,
        parts: impl IntoIterator<Item = Part>,
    ) {
        let line = self.lines.entry(([z, y, x], line)).or_default();
        line.message = message;
        line.led |= leads;
        line.parts.extend(parts.into_iter().map(|(value, position, bits)| ((value, position), bits)));
    }

    /// Prints the lines of which all parts are there; gives the number of the others to which the first thread of the
    /// program came.
    pub fn show(&self, launch: &Shown<'_>, grid: [u32; 3], printed: &Printed) -> Result<usize, Fault> {
        let mut missing = 0;
        for (([z, y, x], _), line) in &self.lines {
            match launch.text(line)? {
                Some(text) => printed.line([*x, *y, *z], grid, &text),
                None => missing += usize::from(line.led),
            }
        }
        Ok(missing)
    }
}

/// Facts about the values that a launch prints.
pub struct Shown<'a> {
    /// The messages of the kernel.
    pub messages: &'a [Message],
    /// The text of an address of elements of that many bytes.
    pub pointer: &'a dyn Fn(u64, usize) -> String,
}

impl Shown<'_> {
    /// The text of a line, if it is whole.
    fn text(&self, line: &Line) -> Result<Option<String>, Fault> {
        let message = self.messages.get(line.message);
        let (text, forms) = match message.map(|m| (&m.text, &m.kind)) {
            Some((text, Kind::Print(forms))) => (text, forms),
            Some((_, Kind::Assert(_))) | None => return Err(bug("a record of no `print`")),
        };
        let mut forms = (0..).zip(forms);
        let missing = Cell::new(false);
        let text = print::filled(text, || {
            let (value, form) = forms.next().ok_or_else(|| bug("`print` lacks a value"))?;
            let part = |n: u64| {
                let bits = line.parts.get(&(value, n)).copied();
                missing.set(missing.get() || bits.is_none());
                bits.unwrap_or(0)
            };
            match form {
                Form::View { rank, bytes } => {
                    let rank = u64::from(*rank);
                    let base = (self.pointer)(part(0), *bytes as usize);
                    let list =
                        |from: u64| (from..from + rank).map(|n| part(n).cast_signed()).collect::<Vec<_>>();
                    Ok(print::view(&base, &list(1), &list(1 + rank)))
                }
                Form::Numbers { dtype, shape } => {
                    print::tile(shape, &mut |i| Ok(print::number(Scalar::from_bits(*dtype, part(i as u64)))))
                }
                Form::Pointers { bytes, shape } => {
                    print::tile(shape, &mut |i| Ok((self.pointer)(part(i as u64), *bytes as usize)))
                }
            }
        })?;
        Ok((!missing.get()).then_some(text))
    }
}

/// The text of an address in host memory: the name of the first parameter that reaches the buffer stands for it.
pub fn pointer(address: u64, size: usize, buffers: &Buffers, args: &[Arg], names: &[String]) -> String {
    if address == 0 {
        return "null".into();
    }
    let place = buffers.at(address);
    let named = place.and_then(|place| {
        let reaches = |arg: &Arg| match arg {
            Arg::Ptr { buffer, .. } | Arg::View { buffer, .. } => *buffer == place.id,
            Arg::Scalar(_) | Arg::Null => false,
        };
        let n = args.iter().position(reaches)?;
        Some((names.get(n)?.as_str(), address.wrapping_sub(place.address).cast_signed()))
    });
    print::address(named.map(|n| n.0), named.map_or(0, |n| n.1), size, address)
}

/// The fault of an assert that failed, which is the message with this number, at this element.
pub fn failed(messages: &[Message], number: usize, element: usize, program: [u32; 3]) -> Fault {
    let message = messages.get(number);
    let (text, shape) = match message.map(|m| (m.text.as_str(), &m.kind)) {
        Some((text, Kind::Assert(shape))) => (text, shape.as_slice()),
        Some((_, Kind::Print(_))) | None => return bug("a record of no `assert`"),
    };
    let colon = if text.is_empty() { "" } else { ": " };
    let place = print::place(element, shape);
    let mut fault = Fault::new(codes::FAULT.0, format!("assertion failed{place}{colon}{text}"));
    fault.loc = message.and_then(|m| m.loc);
    fault.program = Some(program);
    fault
}

fn bug(what: &str) -> Fault {
    Fault::new(codes::INTERNAL.0, format!("internal error in what a kernel says: {what}"))
}
