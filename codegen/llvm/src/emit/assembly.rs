//! Emits `inline_asm`: instructions of the target for each element.
//!
//! Requires nothing of the text and its constraints, which the program gives. Guarantees that LLVM gets only
//! constraints and operands that it accepts, since it aborts the process on others; the assembler checks the
//! instructions.

use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;
use tk_ops::DType;
use tk_tile::{Inst, ValueId};

use super::value::bits;
use super::{Emit, Res, bug};

/// Bits of a register that elements share.
const WORD: u32 = 32;

/// The registers of one value for one execution of the instructions.
#[derive(Clone, Copy, Debug)]
struct Registers<'c> {
    /// The type of an element.
    element: BasicTypeEnum<'c>,
    /// The number of registers.
    count: usize,
    /// The number of elements in each.
    each: u32,
    /// The type of elements that share registers.
    dtype: Option<DType>,
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn inline_asm(&mut self, inst: &Inst) -> Res<()> {
        let (text, given) =
            (inst.attrs.str("code").unwrap_or_default(), inst.attrs.str("constraints").unwrap_or_default());
        let pack = inst.attrs.int("pack").and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
        let outs = inst.results.iter().map(|v| self.registers_of(*v, pack)).collect::<Res<Vec<_>>>()?;
        let ins = inst.operands.iter().map(|v| self.registers_of(*v, pack)).collect::<Res<Vec<_>>>()?;
        let types = self.constraint_types(&outs, &ins, given)?;
        self.check_operands(text, types.len())?;
        let columns = inst.operands.iter().map(|v| self.elements_of(*v)).collect::<Res<Vec<_>>>()?;
        let elements = self.count(self.result(inst)?)?;
        let mut results: Vec<Vec<BasicValueEnum<'c>>> = vec![vec![]; outs.len()];
        for first in (0..elements).step_by(pack) {
            let mut args = vec![];
            for (column, r) in columns.iter().zip(&ins) {
                // A thread without further elements repeats its last one.
                let last = column.len().saturating_sub(1);
                let chunk: Vec<_> =
                    (first..first + pack).filter_map(|n| column.get(n.min(last)).copied()).collect();
                args.extend(match r.dtype {
                    Some(dtype) => self.packed_words(dtype, r.each.ilog2() as usize, &chunk)?,
                    None => chunk,
                });
            }
            let found = self.assembled(text, given, &types, &args)?;
            let mut found = found.iter();
            for (column, r) in results.iter_mut().zip(&outs) {
                for x in found.by_ref().take(r.count) {
                    column.extend(match r.dtype {
                        Some(_) => self.unpacked_words(r.element, r.each, &[*x])?,
                        None => vec![self.as_register(*x, r.element)?],
                    });
                }
            }
        }
        for (r, mut column) in inst.results.iter().zip(results) {
            column.truncate(elements);
            self.define_regs(*r, column)?;
        }
        Ok(())
    }

    /// The elements of a value that a thread owns.
    fn elements_of(&self, v: ValueId) -> Res<Vec<BasicValueEnum<'c>>> {
        if self.shape(v).is_empty() { Ok(vec![self.scalar(v)?]) } else { self.registers(v) }
    }

    /// The registers of a value: elements of less than 32 bits share registers of 32 bits if several are processed at
    /// once.
    fn registers_of(&self, v: ValueId, pack: usize) -> Res<Registers<'c>> {
        let dtype = self.dtype(v);
        let element = self.zero(dtype).get_type();
        let width = bits(element);
        if pack == 1 || width >= WORD {
            return Ok(Registers { element, count: pack, each: 1, dtype: None });
        }
        let count = pack * width as usize / WORD as usize;
        // A bool has one bit and is not packed.
        if count == 0 || !matches!(width, 8 | 16) {
            return self.unsupported(format!(
                "`inline_asm` with `pack = {pack}` for elements of {width} bits, which do not fill registers of {WORD},"
            ));
        }
        Ok(Registers { element, count, each: WORD / width, dtype })
    }

    /// One execution of the instructions: the registers of the results.
    fn assembled(
        &self,
        text: &str,
        constraints: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let Some((outs, takes)) = types.split_at_checked(types.len().saturating_sub(args.len())) else {
            return bug("`inline_asm` without a result");
        };
        let inputs =
            args.iter().zip(takes).map(|(x, ty)| self.as_register(*x, *ty)).collect::<Res<Vec<_>>>()?;
        self.target.assembly(self, text, constraints, outs, &inputs)
    }

    /// The bits of a value as another type of the same width.
    fn as_register(&self, x: BasicValueEnum<'c>, ty: BasicTypeEnum<'c>) -> Res<BasicValueEnum<'c>> {
        let from = x.get_type();
        let (has, takes) = (bits(from), bits(ty));
        if has != takes {
            return self
                .unsupported(format!("`inline_asm` with a value of {has} bits in a register of {takes}"));
        }
        Ok(if from == ty { x } else { self.builder.build_bit_cast(x, ty, "")? })
    }

    /// The type of the register of each constraint: those of the results first, as `=r`, then of the values, as `r`.
    fn constraint_types(
        &self,
        outs: &[Registers<'c>],
        ins: &[Registers<'c>],
        constraints: &str,
    ) -> Res<Vec<BasicTypeEnum<'c>>> {
        let of = |r: &Registers<'c>| {
            let ty = if r.dtype.is_none() { r.element } else { self.i32().into() };
            std::iter::repeat_n(ty, r.count)
        };
        let wanted: Vec<BasicTypeEnum<'c>> = outs.iter().chain(ins).flat_map(of).collect();
        let results: usize = outs.iter().map(|r| r.count).sum();
        let constraints: Vec<&str> = constraints.split(',').collect();
        if constraints.len() != wanted.len() {
            let first =
                if results == 1 { "the result is" } else { &format!("the {results} of the results are") };
            return self.unsupported(format!(
                "`inline_asm` with {} constraints for {} operands, of which {first} the first,",
                constraints.len(),
                wanted.len()
            ));
        }
        let mut types = vec![];
        for (n, constraint) in constraints.iter().enumerate() {
            let letter = if n < results {
                constraint.strip_prefix("=&").or(constraint.strip_prefix('='))
            } else {
                Some(*constraint)
            };
            let of = wanted.get(n).copied().unwrap_or_else(|| self.i32().into());
            let Some(found) = letter.and_then(|letter| self.target.register(self, letter, of)) else {
                let first = if results == 1 { "the first one has" } else { "those of the results have" };
                return self.unsupported(format!(
                    "`inline_asm` with the constraint `{constraint}` (there are {}, and {first} a `=` before it)",
                    self.target.register_letters()
                ));
            };
            types.push(found);
        }
        Ok(types)
    }

    /// Checks that each `$0` names an operand; `$$` is a dollar.
    fn check_operands(&self, text: &str, operands: usize) -> Res<()> {
        let mut rest = text;
        while let Some((_, behind)) = rest.split_once('$') {
            if let Some(behind) = behind.strip_prefix('$') {
                rest = behind;
                continue;
            }
            let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let (number, behind) = behind.split_at_checked(end).unwrap_or_default();
            if !number.parse::<usize>().is_ok_and(|n| n < operands) {
                return self.unsupported(format!(
                    "`inline_asm` with `${number}` (there are $0 to ${}, and $$ for a dollar)",
                    operands - 1
                ));
            }
            rest = behind;
        }
        Ok(())
    }
}
