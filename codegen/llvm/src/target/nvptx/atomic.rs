//! Owns how atomic operations on device memory are spelled for NVIDIA GPUs.

use tk_ops::{AtomicOp, DType};

/// `add.u32`: how an operation on a type is spelled; `None` if there is no such instruction.
pub(super) fn form(op: AtomicOp, d: DType) -> Option<String> {
    let bits = d.bits();
    let signed = d.is_signed() && !d.is_float();
    let name = match op {
        AtomicOp::Add => match d {
            DType::F32 => "add.f32".to_string(),
            DType::F64 => "add.f64".to_string(),
            DType::F16 => "add.noftz.f16".to_string(),
            DType::BF16 => "add.noftz.bf16".to_string(),
            _ if d.is_int() && bits >= 32 => format!("add.u{bits}"),
            _ => return None,
        },
        AtomicOp::Max | AtomicOp::Min => {
            let name = if op == AtomicOp::Max { "max" } else { "min" };
            if !d.is_int() || bits < 32 {
                return None;
            }
            format!("{name}.{}{bits}", if signed { "s" } else { "u" })
        }
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
            let name = match op {
                AtomicOp::And => "and",
                AtomicOp::Or => "or",
                _ => "xor",
            };
            if bits < 32 {
                return None;
            }
            format!("{name}.b{bits}")
        }
        AtomicOp::Xchg => {
            if bits < 32 {
                return None;
            }
            format!("exch.b{bits}")
        }
        AtomicOp::Cas => {
            if bits < 16 {
                return None;
            }
            "cas".to_string()
        }
        AtomicOp::Load | AtomicOp::Store => {
            if bits < 16 {
                return None;
            }
            String::new()
        }
    };
    Some(name)
}
