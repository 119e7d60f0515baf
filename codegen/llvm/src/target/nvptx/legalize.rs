//! Rewrites what instruction selection of LLVM 19 for NVPTX has no pattern for.
//!
//! Before and after:
//!
//! ```text
//! %y = bitcast half %x to bfloat
//! ```
//! ```text
//! %bits = bitcast half %x to i16
//! %same = call i16 asm "mov.b16 $0, $1;", "=h,h"(i16 %bits)
//! %y = bitcast i16 %same to bfloat
//! ```
//!
//! It runs last: `instcombine` joins two bit casts through an integer into the one that cannot be selected, and the
//! selection itself would, which is why the integer goes through assembly. `ptxas` removes the move.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{AnyValue, BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, ValueKind};

use crate::emit::{Res, Stop, bug};

/// Rewrites the functions of a module.
pub(crate) fn legalize<'c>(context: &'c Context, module: &Module<'c>) -> Res<()> {
    let mut found = vec![];
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            found.extend(block.get_instructions().filter_map(|inst| half_cast(context, inst)));
        }
    }
    for (inst, operand) in found {
        cast_through_bits(context, inst, operand)?;
    }
    Ok(())
}

/// The operand of a bit cast from f16 to bf16 or back, of one element or several.
fn half_cast<'c>(context: &'c Context, inst: InstructionValue<'c>) -> Option<(InstructionValue<'c>, BasicValueEnum<'c>)> {
    if inst.get_opcode() != InstructionOpcode::BitCast {
        return None;
    }
    let operand = inst.get_operand(0)?.value()?;
    let result: BasicValueEnum<'c> = inst.as_any_value_enum().try_into().ok()?;
    let element = |ty: BasicTypeEnum<'c>| match ty {
        BasicTypeEnum::VectorType(v) => v.get_element_type(),
        BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::FloatType(_)
        | BasicTypeEnum::IntType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::ScalableVectorType(_) => ty,
    };
    let types = [element(operand.get_type()), element(result.get_type())];
    let (half, bfloat) = (context.f16_type().into(), context.bf16_type().into());
    (types == [half, bfloat] || types == [bfloat, half]).then_some((inst, operand))
}

/// Replaces the cast; vectors are cast element by element.
fn cast_through_bits<'c>(
    context: &'c Context,
    inst: InstructionValue<'c>,
    operand: BasicValueEnum<'c>,
) -> Res<()> {
    let result: BasicValueEnum<'c> =
        inst.as_any_value_enum().try_into().map_err(|()| Stop::Bug("a bit cast has no value".into()))?;
    let builder = context.create_builder();
    builder.position_before(&inst);
    let cast = match (operand, result.get_type()) {
        (BasicValueEnum::VectorValue(from), BasicTypeEnum::VectorType(to)) => {
            let mut cast = to.get_undef();
            for i in 0..to.get_size() {
                let at = context.i32_type().const_int(i.into(), false);
                let element = builder.build_extract_element(from, at, "")?;
                let element = through_bits(context, &builder, element, to.get_element_type())?;
                cast = builder.build_insert_element(cast, element, at, "")?;
            }
            cast.into()
        }
        (operand, to) => through_bits(context, &builder, operand, to)?,
    };
    let new = cast.as_instruction_value().ok_or_else(|| Stop::Bug("a bit cast was folded".into()))?;
    inst.replace_all_uses_with(&new);
    inst.erase_from_basic_block();
    Ok(())
}

/// One element as a float of the other type.
fn through_bits<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    element: BasicValueEnum<'c>,
    to: BasicTypeEnum<'c>,
) -> Res<BasicValueEnum<'c>> {
    let ty = context.i16_type();
    let bits = builder.build_bit_cast(element, ty, "")?;
    let signature = ty.fn_type(&[ty.into()], false);
    let (text, constraints) = ("mov.b16 $0, $1;", "=h,h");
    let code =
        context.create_inline_asm(signature, text.into(), constraints.into(), false, false, None, false);
    let call = builder.build_indirect_call(signature, code, &[bits.into()], "")?;
    for name in ["memory", "nounwind", "willreturn"] {
        let kind = Attribute::get_named_enum_kind_id(name);
        call.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
    }
    let ValueKind::Basic(same) = call.try_as_basic_value() else {
        return bug("assembly gives nothing");
    };
    Ok(builder.build_bit_cast(same, to, "")?)
}
