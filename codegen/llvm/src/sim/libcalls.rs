//! The functions that LLVM calls for operations without an instruction on the host: conversions of 16-bit floats. The
//! run-time library of the host's C compiler may lack them, depending on its age; without one, a kernel would jump to
//! address 0.
//!
//! Guarantees the calling convention of x86-64 and of 64-bit Arm: a 16-bit float is passed and returned in the low bits
//! of a float register, represented here by an `f32` of the same bits.

use half::{bf16, f16};
use tk_ops::DType;
use tk_ops::scalar::Scalar;

fn low(x: f32) -> u16 {
    x.to_bits() as u16
}

fn in_low(code: u16) -> f32 {
    f32::from_bits(code.into())
}

extern "C" fn f16_to_f32(x: f32) -> f32 {
    f16::from_bits(low(x)).to_f32()
}

extern "C" fn f32_to_f16(x: f32) -> f32 {
    in_low(f16::from_f32(x).to_bits())
}

/// Rounded once: `half` uses only the upper half of an f64, which loses bits beyond a tie.
fn once(d: DType, x: f64) -> f32 {
    in_low(Scalar::float(d, x).bits() as u16)
}

extern "C" fn f64_to_f16(x: f64) -> f32 {
    once(DType::F16, x)
}

/// LLVM also moves a bf16 as an f32 and back, so the result is the same bits, NaN included.
extern "C" fn f32_to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    in_low(if bits.trailing_zeros() >= 16 { (bits >> 16) as u16 } else { bf16::from_f32(x).to_bits() })
}

extern "C" fn f64_to_bf16(x: f64) -> f32 {
    once(DType::BF16, x)
}

/// The functions by the names that LLVM uses: whether each takes an f64, and its address.
pub fn library() -> [(&'static str, bool, usize); 5] {
    [
        ("__extendhfsf2", false, f16_to_f32 as *const () as usize),
        ("__truncsfhf2", false, f32_to_f16 as *const () as usize),
        ("__truncdfhf2", true, f64_to_f16 as *const () as usize),
        ("__truncsfbf2", false, f32_to_bf16 as *const () as usize),
        ("__truncdfbf2", true, f64_to_bf16 as *const () as usize),
    ]
}
