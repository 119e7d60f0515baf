//! Owns the layouts that the tests run on.

#![allow(clippy::expect_used, reason = "tests fail by panics")]

use proptest::prelude::*;
use tk_gpu::layout::linear::{InDim, LaneRegister, LinearLayout};

/// Bits of the parts of a place.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub register: usize,
    pub lane: usize,
    pub warp: usize,
}

impl Shape {
    fn bits(self) -> usize {
        self.register + self.lane + self.warp
    }

    fn layout(self, out_bits: &[u32], bases: &[Vec<u32>]) -> LinearLayout {
        let (register, threads) = bases.split_at(self.register);
        let (lane, warp) = threads.split_at(self.lane);
        LinearLayout::new(out_bits, register.to_vec(), lane.to_vec(), warp.to_vec()).expect("bases in range")
    }
}

/// A layout of one warp.
pub fn layout_of(out_bits: &[u32], register: Vec<Vec<u32>>, lane: Vec<Vec<u32>>) -> LinearLayout {
    LinearLayout::new(out_bits, register, lane, vec![]).expect("bases in range")
}

/// All places of a layout.
pub fn places(layout: &LinearLayout) -> Vec<LaneRegister> {
    let count = |dim| 0..1u32 << layout.bits(dim);
    count(InDim::Warp)
        .flat_map(|warp| count(InDim::Lane).map(move |lane| (warp, lane)))
        .flat_map(|(warp, lane)| count(InDim::Register).map(move |r| (warp, lane, r)))
        .map(|(warp, lane, register)| LaneRegister { register, lane, warp, block: 0 })
        .collect()
}

fn coordinates(columns: u32, flat: u32) -> Vec<u32> {
    vec![flat >> columns, flat & ((1 << columns) - 1)]
}

/// Bases that are permuted unit vectors, the ones that are too many being zero.
fn permuted_bases(shape: Shape, rows: u32, columns: u32) -> impl Strategy<Value = LinearLayout> {
    let total = (rows + columns) as usize;
    let slots = shape.bits().max(total);
    Just((0..slots).collect::<Vec<usize>>()).prop_shuffle().prop_map(move |order| {
        let basis = |i: &usize| coordinates(columns, if *i < total { 1 << i } else { 0 });
        let bases: Vec<Vec<u32>> = order.iter().take(shape.bits()).map(basis).collect();
        shape.layout(&[rows, columns], &bases)
    })
}

/// Bases without any order.
fn wild_bases(shape: Shape, rows: u32, columns: u32) -> impl Strategy<Value = LinearLayout> {
    prop::collection::vec(0..1u32 << (rows + columns), shape.bits()).prop_map(move |flat| {
        let bases: Vec<Vec<u32>> = flat.iter().map(|f| coordinates(columns, *f)).collect();
        shape.layout(&[rows, columns], &bases)
    })
}

/// An injective layout of a tile of just the size.
pub fn permuted(shape: Shape) -> impl Strategy<Value = LinearLayout> {
    let total = shape.bits() as u32;
    permuted_bases(shape, total / 2, total - total / 2)
}

fn shape() -> impl Strategy<Value = Shape> {
    (0usize..4, 0usize..4, 0usize..3).prop_map(|(register, lane, warp)| Shape { register, lane, warp })
}

fn layout_in(shape: Shape, rows: u32, columns: u32) -> impl Strategy<Value = LinearLayout> {
    prop_oneof![permuted_bases(shape, rows, columns), wild_bases(shape, rows, columns)]
}

/// A layout of a tile with two dimensions.
pub fn any_layout() -> impl Strategy<Value = LinearLayout> {
    (shape(), 0u32..4, 0u32..4).prop_flat_map(|(s, rows, columns)| layout_in(s, rows, columns))
}

/// Two layouts of one tile for the same threads.
pub fn pair() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    (shape(), 0usize..4, 0u32..4, 0u32..3).prop_flat_map(|(s, register, rows, columns)| {
        (layout_in(s, rows, columns), layout_in(Shape { register, ..s }, rows, columns))
    })
}

/// Two layouts such that each warp holds in the first what it needs in the second: the bases of the second are sums of
/// the first's, which may be copies.
pub fn pair_within_warps() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    (shape(), 0usize..4, 0u32..4, 0u32..3).prop_flat_map(|(s, register, rows, columns)| {
        let sums = prop::collection::vec(any::<u32>(), register + s.lane + s.warp);
        (layout_in(s, rows, columns), sums, 0u8..4).prop_map(move |(src, sums, kind)| {
            let local = 1u32 << (s.register + s.lane);
            let sum = |of: u32| src.apply(of & ((1 << s.register) - 1), (of & (local - 1)) >> s.register, 0);
            let bases: Vec<Vec<u32>> = sums
                .iter()
                .enumerate()
                .map(|(i, random)| {
                    let random = match kind {
                        // One bit of the source's places, or a few, or any.
                        0 | 1 => 1u32.checked_shl(random % 8).unwrap_or(0),
                        2 => random & (random >> 8) & (random >> 16),
                        _ => *random,
                    };
                    let inside = sum(random & (local - 1));
                    if i < register + s.lane {
                        return inside;
                    }
                    let warp = src.basis(InDim::Warp, i - register - s.lane).expect("same warps");
                    if kind % 2 == 0 { warp } else { warp.iter().zip(inside).map(|(w, x)| w ^ x).collect() }
                })
                .collect();
            (src, Shape { register, ..s }.layout(&[rows, columns], &bases))
        })
    })
}

/// The same bases for registers and lanes in another order, the first `fixed` staying.
pub fn with_places_reordered(src: &LinearLayout, order: &[usize], fixed: usize) -> LinearLayout {
    let all = |dim| (0..src.bits(dim)).filter_map(move |i| src.basis(dim, i)).collect::<Vec<_>>();
    let local = [all(InDim::Register), all(InDim::Lane)].concat();
    let moved = order.iter().filter(|i| **i >= fixed);
    let bases: Vec<Vec<u32>> = (0..fixed).chain(moved.copied()).map(|i| local[i].clone()).collect();
    let (register, lane) = bases.split_at(src.bits(InDim::Register));
    LinearLayout::new(src.out_bits(), register.to_vec(), lane.to_vec(), all(InDim::Warp))
        .expect("bases in range")
}
