//! Owns how the records that lanes print become lines: the same text as the interpreter's.
//!
//! Every lane of a program comes by a `print` as often as the others, each with the part of the values that it holds. So
//! the n-th record of each of them belongs to the n-th line of the program, which is there when all lanes have come.

use std::collections::BTreeMap;

use tk_interp::{Arg, Buffers, Fault, Printed, print};
use tk_llvm::emit::print::Part;
use tk_llvm::target::sim::Printing;
use tk_ops::Scalar;
use tk_syntax::codes;
use tk_tile::{Elem, Type};

/// What the lanes of a launch have printed.
#[derive(Default)]
pub struct Records {
    /// By program, z first: their order is that of the lines.
    programs: BTreeMap<[u32; 3], Program>,
}

#[derive(Default)]
struct Program {
    /// The records of each lane.
    came: BTreeMap<u32, usize>,
    lines: Vec<Line>,
}

/// A line on its way: which `print`, the lanes that have come, and the bits of each part of each value.
#[derive(Default)]
struct Line {
    site: usize,
    lanes: u32,
    parts: BTreeMap<(u64, u64), u64>,
}

impl Records {
    /// A lane prints.
    pub fn add(&mut self, [x, y, z]: [u32; 3], lane: u32, record: &[u8]) {
        let program = self.programs.entry([z, y, x]).or_default();
        let at = program.came.entry(lane).or_default();
        if program.lines.len() <= *at {
            program.lines.resize_with(*at + 1, Line::default);
        }
        let Some(line) = program.lines.get_mut(*at) else { return };
        *at += 1;
        line.lanes += 1;
        let words = record.chunks_exact(8).filter_map(|w| w.try_into().ok().map(u64::from_le_bytes));
        let words: Vec<u64> = words.collect();
        let Some((site, parts)) = words.split_first() else { return };
        line.site = usize::try_from(*site).unwrap_or(usize::MAX);
        for part in parts.chunks_exact(3) {
            if let [value, position, bits] = part
                && *position != u64::from(Part::NOTHING)
            {
                line.parts.insert((*value, *position), *bits);
            }
        }
    }

    /// The lines for which all lanes have come.
    pub fn show(
        &self,
        launch: &Shown<'_>,
        grid: [u32; 3],
        threads: u32,
        printed: &Printed,
    ) -> Result<(), Fault> {
        for ([z, y, x], program) in &self.programs {
            for line in program.lines.iter().filter(|l| l.lanes == threads) {
                printed.line([*x, *y, *z], grid, &launch.text(line)?);
            }
        }
        Ok(())
    }
}

/// What a launch knows of the values that it prints.
pub struct Shown<'a> {
    /// The `print`s of the kernel.
    pub prints: &'a [Printing],
    /// Names of the parameters.
    pub names: &'a [String],
    /// Their values.
    pub args: &'a [Arg],
    /// Device memory.
    pub buffers: &'a Buffers,
}

impl Shown<'_> {
    fn text(&self, line: &Line) -> Result<String, Fault> {
        let printing = self.prints.get(line.site).ok_or_else(|| bug("a record of no `print`"))?;
        let mut types = (0..).zip(&printing.types);
        print::filled(&printing.message, || {
            let (value, ty) = types.next().ok_or_else(|| bug("`print` lacks a value"))?;
            let part = |n: u64| {
                line.parts
                    .get(&(value, n))
                    .copied()
                    .ok_or_else(|| bug("a part of what is printed is missing"))
            };
            match ty {
                Type::View { rank, elem, .. } => {
                    let rank = u64::from(*rank);
                    let base = self.pointer(part(0)?, bytes(elem));
                    let list = |from: u64| {
                        (from..from + rank)
                            .map(|n| part(n).map(u64::cast_signed))
                            .collect::<Result<Vec<_>, _>>()
                    };
                    Ok(print::view(&base, &list(1)?, &list(1 + rank)?))
                }
                Type::Tile { elem, shape } => print::tile(shape, &mut |i| {
                    let bits = part(i as u64)?;
                    Ok(match elem {
                        Elem::Scalar(d) => print::number(Scalar::from_bits(*d, bits)),
                        Elem::Ptr { pointee, .. } => self.pointer(bits, bytes(pointee)),
                    })
                }),
            }
        })
    }

    /// The name of the first parameter that reaches the buffer stands for it.
    fn pointer(&self, address: u64, size: usize) -> String {
        if address == 0 {
            return "null".into();
        }
        let place = self.buffers.at(address);
        let named = place.and_then(|place| {
            let reaches = |arg: &Arg| match arg {
                Arg::Ptr { buffer, .. } | Arg::View { buffer, .. } => *buffer == place.id,
                Arg::Scalar(_) | Arg::Null => false,
            };
            let n = self.args.iter().position(reaches)?;
            Some((self.names.get(n)?.as_str(), address.wrapping_sub(place.address).cast_signed()))
        });
        print::address(named.map(|n| n.0), named.map_or(0, |n| n.1), size, address)
    }
}

fn bytes(elem: &Elem) -> usize {
    match elem {
        Elem::Scalar(d) => d.bytes(),
        Elem::Ptr { .. } => 8,
    }
}

fn bug(what: &str) -> Fault {
    Fault::new(codes::INTERNAL.0, format!("internal error in the simulated target: {what}"))
}
