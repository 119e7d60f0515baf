//! Owns layouts that are known from hardware manuals and from other compilers, written as tables of bases.
//!
//! Guarantees that the algebra makes the same tables.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tk_gpu::layout::linear::{InDim, LinearLayout};

fn bases(layout: &LinearLayout, dim: InDim) -> Vec<(u32, u32)> {
    (0..layout.bits(dim)).map(|i| layout.basis(dim, i).unwrap()).map(|b| (b[0], b[1])).collect()
}

fn from_table(
    out_bits: [u32; 2],
    register: &[(u32, u32)],
    lane: &[(u32, u32)],
    warp: &[(u32, u32)],
) -> LinearLayout {
    let list = |pairs: &[(u32, u32)]| pairs.iter().map(|(r, c)| vec![*r, *c]).collect();
    LinearLayout::new(&out_bits, list(register), list(lane), list(warp)).unwrap()
}

/// Each lane eight neighbours of a row, a warp 4 x 64, eight warps below one another: 128 x 64.
fn blocked() -> LinearLayout {
    LinearLayout::blocked(&[7, 6], &[1, 0], &[0, 3], &[2, 3], &[3, 0])
}

/// The accumulator of `mma.sync.m16n8`, 32-bit elements.
fn mma_accumulator() -> LinearLayout {
    from_table([4, 3], &[(0, 1), (8, 0)], &[(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], &[])
}

#[test]
fn blocked_128x64() {
    let layout = blocked();
    assert_eq!(bases(&layout, InDim::Register), [(0, 1), (0, 2), (0, 4), (32, 0), (64, 0)]);
    assert_eq!(bases(&layout, InDim::Lane), [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)]);
    assert_eq!(bases(&layout, InDim::Warp), [(4, 0), (8, 0), (16, 0)]);
    assert!(layout.is_disjoint() && layout.is_injective() && layout.is_surjective());
    assert_eq!(layout.vector_log2(1), 3);
    assert_eq!(layout.vector_log2(0), 0);
}

#[test]
fn slice_of_blocked() {
    let sums = blocked().slice_dim(1);
    let all = |dim| (0..sums.bits(dim)).map(|i| sums.basis(dim, i).unwrap()[0]).collect::<Vec<_>>();
    assert_eq!(all(InDim::Register), [32, 64]);
    assert_eq!(all(InDim::Lane), [0, 0, 0, 1, 2]);
    assert_eq!(all(InDim::Warp), [4, 8, 16]);
    assert_eq!(blocked().sliced_registers(1), 0b00111);
    assert_eq!(sums.free_bits(InDim::Lane), 0b00111);
    assert_eq!(sums.out_bits(), [7]);
}

#[test]
fn blocked_larger_than_the_tile() {
    let layout = LinearLayout::blocked(&[1, 2], &[1, 0], &[0, 3], &[0, 2], &[1, 0]);
    assert_eq!(bases(&layout, InDim::Register), [(0, 1), (0, 2), (0, 0)]);
    assert_eq!(bases(&layout, InDim::Lane), [(0, 0), (0, 0)]);
    assert_eq!(bases(&layout, InDim::Warp), [(1, 0)]);
    assert_eq!(layout.free_bits(InDim::Register), 0b100);
    assert_eq!(layout.without_free_registers().bits(InDim::Register), 2);
}

/// Fragments of `mma.sync` and `wgmma` as the PTX manual draws them: lane `l` has row `l / 4` and columns from
/// `2 * (l % 4)`.
#[test]
fn mma_accumulators() {
    let mma = mma_accumulator();
    for (lane, register) in (0..32).flat_map(|l| (0..4).map(move |r| (l, r))) {
        let expected = vec![lane / 4 + 8 * (register / 2), 2 * (lane % 4) + register % 2];
        assert_eq!(mma.apply(register, lane, 0), expected);
    }
    // Four warps below one another, the instruction's atoms of eight columns in registers.
    let swizzled = from_table([2, 5], &[(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], &[], &[(1, 0), (2, 0)]);
    let wgmma = mma.product(&swizzled);
    assert_eq!(wgmma.out_bits(), [6, 8]);
    for warp in 0..4 {
        for (lane, register) in (0..32).flat_map(|l| (0..128).map(move |r| (l, r))) {
            let row = 16 * warp + lane / 4 + 8 * ((register >> 1) & 1);
            let column = 8 * (register >> 2) + 2 * (lane & 3) + (register & 1);
            assert_eq!(wgmma.apply(register, lane, warp), [row, column]);
        }
    }
    assert_eq!(wgmma.left_divide(&mma), Some(swizzled));
    assert_eq!(wgmma.left_divide(&blocked()), None);
}

/// The accumulator of one matrix product, narrowed to 16 bits, is the left operand of the next: step `j` takes the
/// registers `8 j .. 8 j + 8`.
#[test]
fn accumulator_is_operand() {
    let swizzled = from_table([2, 1], &[(0, 1)], &[], &[(1, 0), (2, 0)]);
    let accumulator = mma_accumulator().product(&swizzled);
    let operand = from_table(
        [6, 4],
        &[(0, 1), (8, 0), (0, 8)],
        &[(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)],
        &[(16, 0), (32, 0)],
    );
    assert_eq!(accumulator, operand);
}

#[test]
fn bases_outside_of_the_tile_are_refused() {
    assert!(LinearLayout::new(&[2], vec![vec![4]], vec![], vec![]).unwrap_err().contains("register bit 0"));
    assert!(LinearLayout::new(&[2, 1], vec![], vec![vec![1]], vec![]).is_err());
    assert!(LinearLayout::new(&[20, 20], vec![], vec![], vec![]).is_err());
    assert!(LinearLayout::new(&[2], vec![vec![0]; 40], vec![], vec![]).is_err());
}
