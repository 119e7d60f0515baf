//! The types of arguments in C.

use std::collections::BTreeSet;

use tk_bundle::Kernel;
use tk_ops::DType;

/// The element types that an argument has in some variant.
pub(super) fn dtypes(kernel: &Kernel, arg: usize) -> BTreeSet<&str> {
    kernel.variants.iter().filter_map(|v| v.dtypes.get(arg)?.as_deref()).collect()
}

/// The C type of a number.
pub(super) fn number_type(dtype: &str) -> Option<&'static str> {
    Some(match DType::parse(dtype)? {
        DType::Bool => "bool",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
        // C has no type for these: they are passed by their bits.
        DType::U16 | DType::F16 | DType::BF16 => "uint16_t",
        DType::U8
        | DType::F8E4M3
        | DType::F8E5M2
        | DType::F8E4M3FNUZ
        | DType::F8E5M2FNUZ
        | DType::E2M1
        | DType::E8M0 => "uint8_t",
    })
}

pub(super) fn enumerator(dtype: &str) -> String {
    format!("TK_{}", dtype.to_uppercase())
}
