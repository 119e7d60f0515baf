//! The matrix instructions of each target, a row each.

use tk_ops::DType;

use super::{FragmentForm, MmaInstruction};

/// f16 and bf16.
const HALF: MmaInstruction = MmaInstruction {
    name: "m16n8k16",
    form: FragmentForm::Quads,
    operands: &[DType::F16, DType::BF16],
    acc: DType::F32,
    m: 4,
    n: 3,
    k: 4,
    warps: 0,
    rounds: false,
    is_fnuz: false,
};
/// f32 of which only the bits of a tf32 count; three times, of parts of each, for `tf32x3`.
const TF32: MmaInstruction =
    MmaInstruction { name: "m16n8k8", operands: &[DType::F32], k: 3, rounds: true, ..HALF };
/// 8-bit integers.
const INT8: MmaInstruction =
    MmaInstruction { name: "m16n8k32", operands: &[DType::I8, DType::U8], acc: DType::I32, k: 5, ..HALF };
/// 8-bit floats.
const F8: MmaInstruction =
    MmaInstruction { operands: &[DType::F8E4M3, DType::F8E5M2], acc: DType::F32, ..INT8 };
/// f64.
const F64: MmaInstruction =
    MmaInstruction { name: "m8n8k4", operands: &[DType::F64], acc: DType::F64, m: 3, n: 3, k: 2, ..HALF };
/// wgmma; `n` is the most columns. tf32 is left out: wgmma would truncate an f32 where the instructions of a warp are
/// given rounded ones, which makes errors 2.6 times as large (on an H200, 1024^3 and K = 8192).
const WGMMA_HALF: MmaInstruction = MmaInstruction { name: "m64k16", m: 6, n: 8, warps: 2, ..HALF };
const WGMMA_INT8: MmaInstruction =
    MmaInstruction { name: "m64k32", k: 5, operands: INT8.operands, acc: INT8.acc, ..WGMMA_HALF };
const WGMMA_F8: MmaInstruction = MmaInstruction { operands: F8.operands, acc: F8.acc, ..WGMMA_INT8 };

/// f16 and bf16, for warps of 64 lanes.
const MFMA_HALF: MmaInstruction =
    MmaInstruction { name: "32x32x8", form: FragmentForm::Mfma, m: 5, n: 5, k: 3, ..HALF };
const MFMA_HALF_SMALL: MmaInstruction = MmaInstruction { name: "16x16x16", m: 4, n: 4, k: 4, ..MFMA_HALF };
/// The same with twice the elements along K, of the fourth generation.
const MFMA_HALF_LONG: MmaInstruction = MmaInstruction { name: "32x32x16", k: 4, ..MFMA_HALF };
const MFMA_HALF_LONG_SMALL: MmaInstruction = MmaInstruction { name: "16x16x32", k: 5, ..MFMA_HALF_SMALL };
/// f32, all bits of which count.
const MFMA_F32: MmaInstruction =
    MmaInstruction { name: "32x32x2", operands: &[DType::F32], k: 1, ..MFMA_HALF };
const MFMA_F32_SMALL: MmaInstruction =
    MmaInstruction { name: "16x16x4", operands: &[DType::F32], k: 2, ..MFMA_HALF_SMALL };
/// Signed 8-bit integers, of the second, of the third and of the fourth generation.
const MFMA_INT8: MmaInstruction =
    MmaInstruction { name: "32x32x8", operands: &[DType::I8], acc: DType::I32, k: 3, ..MFMA_HALF };
const MFMA_INT8_SMALL: MmaInstruction = MmaInstruction { name: "16x16x16", k: 4, m: 4, n: 4, ..MFMA_INT8 };
const MFMA_INT8_LONG: MmaInstruction = MmaInstruction { name: "32x32x16", k: 4, ..MFMA_INT8 };
const MFMA_INT8_LONG_SMALL: MmaInstruction = MmaInstruction { name: "16x16x32", k: 5, ..MFMA_INT8_SMALL };
const MFMA_INT8_LONGER: MmaInstruction = MmaInstruction { name: "32x32x32", k: 5, ..MFMA_INT8 };
const MFMA_INT8_LONGER_SMALL: MmaInstruction = MmaInstruction { name: "16x16x64", k: 6, ..MFMA_INT8_SMALL };
/// 8-bit floats without infinities; others are not supported, since the codes of their infinities are other numbers.
const MFMA_F8: MmaInstruction =
    MmaInstruction { name: "32x32x16", operands: &[DType::F8E4M3], k: 4, is_fnuz: true, ..MFMA_HALF };
const MFMA_F8_SMALL: MmaInstruction = MmaInstruction { name: "16x16x32", m: 4, n: 4, k: 5, ..MFMA_F8 };
/// `fnuz` floats, which it reads as they are.
const MFMA_FNUZ: MmaInstruction =
    MmaInstruction { operands: &[DType::F8E4M3FNUZ, DType::F8E5M2FNUZ], is_fnuz: false, ..MFMA_F8 };
const MFMA_FNUZ_SMALL: MmaInstruction =
    MmaInstruction { name: MFMA_F8_SMALL.name, m: 4, n: 4, k: 5, ..MFMA_FNUZ };
/// 8-bit floats with a negative zero, of the fourth generation.
const MFMA_F8_PLAIN: MmaInstruction = MmaInstruction { operands: F8.operands, is_fnuz: false, ..MFMA_F8 };
const MFMA_F8_PLAIN_SMALL: MmaInstruction =
    MmaInstruction { operands: F8.operands, is_fnuz: false, ..MFMA_F8_SMALL };
/// f64.
const MFMA_F64: MmaInstruction =
    MmaInstruction { operands: &[DType::F64], acc: DType::F64, name: "16x16x4f64", k: 2, ..MFMA_HALF_SMALL };

/// For warps of 32 lanes that have a row each.
const WMMA_HALF: MmaInstruction =
    MmaInstruction { name: "16x16x16", form: FragmentForm::Wmma, ..MFMA_HALF_SMALL };
const WMMA_INT8: MmaInstruction =
    MmaInstruction { operands: &[DType::I8, DType::U8], acc: DType::I32, ..WMMA_HALF };
/// The same, called with the operands exchanged.
const TRANSPOSED_WMMA_HALF: MmaInstruction =
    MmaInstruction { name: "16x16x16t", form: FragmentForm::TransposedWmma, ..WMMA_HALF };
const TRANSPOSED_WMMA_INT8: MmaInstruction =
    MmaInstruction { name: "16x16x16t", form: FragmentForm::TransposedWmma, ..WMMA_INT8 };

/// For warps of 32 lanes that have half of a row each.
const SPLIT_HALF: MmaInstruction = MmaInstruction { form: FragmentForm::SplitWmma, ..WMMA_HALF };
const SPLIT_INT8: MmaInstruction = MmaInstruction { form: FragmentForm::SplitWmma, ..WMMA_INT8 };
const SPLIT_F8: MmaInstruction = MmaInstruction { operands: F8.operands, ..SPLIT_HALF };

/// The instructions of Ampere; of those for the same types, the one with more work first.
pub const AMPERE: &[MmaInstruction] = &[HALF, TF32, INT8, F64];
/// The same, with 8-bit floats: of Ada, and of Blackwell without those on tensor memory.
pub const ADA: &[MmaInstruction] = &[HALF, TF32, INT8, F8, F64];
/// The same, with wgmma.
pub const HOPPER: &[MmaInstruction] = &[WGMMA_HALF, WGMMA_INT8, WGMMA_F8, HALF, TF32, INT8, F8, F64];
/// The instructions of CDNA2.
pub const CDNA2: &[MmaInstruction] =
    &[MFMA_HALF, MFMA_HALF_SMALL, MFMA_F32, MFMA_F32_SMALL, MFMA_INT8, MFMA_INT8_SMALL, MFMA_F64];
/// The instructions of CDNA3.
pub const CDNA3: &[MmaInstruction] = &[
    MFMA_HALF,
    MFMA_HALF_SMALL,
    MFMA_F32,
    MFMA_F32_SMALL,
    MFMA_INT8_LONG,
    MFMA_INT8_LONG_SMALL,
    MFMA_F8,
    MFMA_F8_SMALL,
    MFMA_FNUZ,
    MFMA_FNUZ_SMALL,
    MFMA_F64,
];
/// The instructions of CDNA4.
pub const CDNA4: &[MmaInstruction] = &[
    MFMA_HALF_LONG,
    MFMA_HALF_LONG_SMALL,
    MFMA_HALF,
    MFMA_HALF_SMALL,
    MFMA_F32,
    MFMA_F32_SMALL,
    MFMA_INT8_LONGER,
    MFMA_INT8_LONGER_SMALL,
    MFMA_INT8_LONG,
    MFMA_INT8_LONG_SMALL,
    MFMA_F8_PLAIN,
    MFMA_F8_PLAIN_SMALL,
    MFMA_F64,
];
/// The instructions of RDNA3.
pub const RDNA3: &[MmaInstruction] = &[WMMA_HALF, WMMA_INT8, TRANSPOSED_WMMA_HALF, TRANSPOSED_WMMA_INT8];
/// The instructions of RDNA4.
pub const RDNA4: &[MmaInstruction] = &[SPLIT_HALF, SPLIT_INT8, SPLIT_F8];

/// Every instruction of some target: calls of the simulator identify them by their index here.
pub fn all() -> impl Iterator<Item = MmaInstruction> {
    [HOPPER, CDNA2, CDNA3, CDNA4, RDNA3, RDNA4].into_iter().flatten().copied()
}
