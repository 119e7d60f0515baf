//! Owns `inline_asm`: instructions of the target for each element.
//!
//! May assume nothing about the text and its constraints, which the program gives. Guarantees that LLVM gets only what it
//! takes, since it ends the process on other constraints and operands; what instructions there are is the assembler's to
//! say.

use inkwell::types::BasicTypeEnum;
use inkwell::values::BasicValueEnum;
use tk_tile::Inst;

use super::value::{Tile, Val};
use super::{Emit, Res, bug};

impl<'c> Emit<'_, 'c> {
    pub(super) fn inline_asm(&mut self, inst: &Inst) -> Res<()> {
        let r = self.result(inst)?;
        let (text, given) =
            (inst.attrs.str("code").unwrap_or_default(), inst.attrs.str("constraints").unwrap_or_default());
        let types = self.constraint_types(inst, given)?;
        let operands = inst.operands.len() + 1;
        if types.len() != operands {
            return self.unsupported(format!(
                "`inline_asm` with {} constraints for {operands} operands, of which the result is the first,",
                types.len()
            ));
        }
        self.check_operands(text, operands)?;
        if self.shape(r).is_empty() {
            let args = inst.operands.iter().map(|v| self.scalar(*v)).collect::<Res<Vec<_>>>()?;
            let x = self.assembled(inst, text, given, &types, &args)?;
            self.define(r, Val::Scalar(x));
            return Ok(());
        }
        let columns = inst.operands.iter().map(|v| self.registers(*v)).collect::<Res<Vec<_>>>()?;
        let mut regs = vec![];
        for n in 0..self.count(r)? {
            let args: Option<Vec<BasicValueEnum<'c>>> = columns.iter().map(|c| c.get(n).copied()).collect();
            let Some(args) = args else { return bug("operands of `inline_asm` have other layouts") };
            regs.push(self.assembled(inst, text, given, &types, &args)?);
        }
        self.define(r, Val::Tile(Tile::regs(regs)));
        Ok(())
    }

    /// One element.
    fn assembled(
        &self,
        inst: &Inst,
        text: &str,
        constraints: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        let Some((out, takes)) = types.split_first() else { return bug("`inline_asm` without a result") };
        let mut inputs = vec![];
        for (x, ty) in args.iter().zip(takes) {
            inputs.push(self.as_register(*x, *ty)?);
        }
        let x = self.machine.assembly(self, text, constraints, *out, &inputs)?;
        let wanted = self.zero(self.dtype(self.result(inst)?)).get_type();
        self.as_register(x, wanted)
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

    /// The type of the register that each constraint names: the result first, as `=r`, then the values, as `r`.
    fn constraint_types(&self, inst: &Inst, constraints: &str) -> Res<Vec<BasicTypeEnum<'c>>> {
        let values = inst.results.iter().chain(&inst.operands);
        let mut values = values.map(|v| self.zero(self.dtype(*v)).get_type());
        let mut types = vec![];
        for (n, constraint) in constraints.split(',').enumerate() {
            let letter = match n {
                0 => constraint.strip_prefix("=&").or(constraint.strip_prefix('=')),
                _ => Some(constraint),
            };
            let of = values.next().unwrap_or_else(|| self.i32().into());
            let Some(found) = letter.and_then(|letter| self.machine.register(self, letter, of)) else {
                return self.unsupported(format!(
                    "`inline_asm` with the constraint `{constraint}` (there are {}, and the first one has a `=` before it)",
                    self.machine.register_letters()
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

/// The width of a register; 0 for what is none.
fn bits(ty: BasicTypeEnum<'_>) -> u32 {
    match ty {
        BasicTypeEnum::IntType(t) => t.get_bit_width(),
        BasicTypeEnum::FloatType(t) => t.get_bit_width(),
        BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_) => 0,
    }
}
