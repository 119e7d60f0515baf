//! The symbols that host code calls: the calls of [`super::symbols`], and conversions of f16, for which x86 may call a
//! support library that the system lacks.
//!
//! An f16 is passed in the low 16 bits of a float register, so these functions take and return floats.

use half::{bf16, f16};

fn low(bits: u16) -> f32 {
    f32::from_bits(bits.into())
}

extern "C" fn extend_f16(x: f32) -> f32 {
    f16::from_bits(x.to_bits() as u16).to_f32()
}

extern "C" fn truncate_f16(x: f32) -> f32 {
    low(f16::from_f32(x).to_bits())
}

extern "C" fn truncate_f64_f16(x: f64) -> f32 {
    low(f16::from_f64(x).to_bits())
}

extern "C" fn truncate_bf16(x: f32) -> f32 {
    low(bf16::from_f32(x).to_bits())
}

extern "C" fn truncate_f64_bf16(x: f64) -> f32 {
    low(bf16::from_f64(x).to_bits())
}

/// Names and addresses.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    let halves: [(&'static str, usize); 5] = [
        ("__extendhfsf2", extend_f16 as *const () as usize),
        ("__truncsfhf2", truncate_f16 as *const () as usize),
        ("__truncdfhf2", truncate_f64_f16 as *const () as usize),
        ("__truncsfbf2", truncate_bf16 as *const () as usize),
        ("__truncdfbf2", truncate_f64_bf16 as *const () as usize),
    ];
    super::symbols().iter().copied().chain(halves)
}
