//! Numbers about which LLVM knows nothing: empty assembly gives the same number.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, IntValue};

use super::Amdgcn;
use crate::emit::{Emit, Res, bug};

impl<'c> Amdgcn<'c> {
    /// The first of these numbers, whose registers the constraints name. One that nothing reads is not computed.
    pub(super) fn hidden(e: &Emit<'_, 'c>, constraints: &str, of: &[IntValue<'c>]) -> Res<IntValue<'c>> {
        let Some(first) = of.first() else { return bug("nothing is hidden") };
        let types: Vec<BasicMetadataTypeEnum<'c>> = of.iter().map(|x| x.get_type().into()).collect();
        let args: Vec<BasicMetadataValueEnum<'c>> = of.iter().map(|x| (*x).into()).collect();
        let ty = first.get_type().fn_type(&types, false);
        let constraints = constraints.to_string();
        let same = e.context.create_inline_asm(ty, String::new(), constraints, false, false, None, false);
        let call = e.builder.build_indirect_call(ty, same, &args, "")?;
        for name in ["memory", "nounwind", "willreturn"] {
            let id = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, e.context.create_enum_attribute(id, 0));
        }
        match call.try_as_basic_value().basic() {
            Some(x) => Ok(x.into_int_value()),
            None => bug("assembly gave nothing"),
        }
    }
}
