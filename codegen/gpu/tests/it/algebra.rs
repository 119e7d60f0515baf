//! Owns property tests of the algebra of layouts and of conversions, against enumeration of all places.
//!
//! Layouts come in the kinds that the compiler makes (permutations of bits, with copies in lanes and warps) and in kinds
//! that it does not (bases that depend on others), because the algebra promises to be right for both.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tk_gpu::layout::linear::{Conversion, InDim, LaneRegister, LinearLayout, ShufflePlan, classify};

use crate::common::{self, Shape, any_layout, layout_of, pair, permuted, places};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apply_is_the_sum_of_bases(layout in any_layout()) {
        for p in places(&layout) {
            let mut sum = vec![0; layout.rank()];
            for (dim, value) in [(InDim::Register, p.register), (InDim::Lane, p.lane), (InDim::Warp, p.warp)] {
                for i in (0..layout.bits(dim)).filter(|i| value >> i & 1 == 1) {
                    let basis = layout.basis(dim, i).unwrap();
                    sum.iter_mut().zip(basis).for_each(|(s, b)| *s ^= b);
                }
            }
            prop_assert_eq!(layout.apply(p.register, p.lane, p.warp), sum);
        }
    }

    #[test]
    fn inverse_finds_every_element(layout in any_layout()) {
        let mut holders = BTreeMap::<Vec<u32>, usize>::new();
        for p in places(&layout) {
            *holders.entry(layout.element(p)).or_default() += 1;
        }
        let all = 1usize << layout.total_bits();
        prop_assert_eq!(layout.is_surjective(), holders.len() == all);
        prop_assert_eq!(layout.is_injective(), holders.values().all(|n| *n == 1));
        prop_assert_eq!(layout.pinv().is_some(), layout.is_surjective());
        if let Some(inverse) = layout.pinv() {
            for element in holders.keys() {
                let place = inverse.place(element);
                prop_assert_eq!(&layout.element(place), element);
                prop_assert_eq!(place.register & layout.free_bits(InDim::Register), 0);
                prop_assert_eq!(place.lane & layout.free_bits(InDim::Lane), 0);
                prop_assert_eq!(place.warp & layout.free_bits(InDim::Warp), 0);
            }
        }
    }

    /// Where no free bit is set each element appears once, and none is lost.
    #[test]
    fn free_bits_are_what_makes_copies(layout in any_layout()) {
        let free = [InDim::Register, InDim::Lane, InDim::Warp].map(|d| layout.free_bits(d));
        let mut first = BTreeSet::new();
        for p in places(&layout) {
            if p.register & free[0] == 0 && p.lane & free[1] == 0 && p.warp & free[2] == 0 {
                prop_assert!(first.insert(layout.element(p)));
            }
        }
        prop_assert!(places(&layout).iter().all(|p| first.contains(&layout.element(*p))));
        let registers = 0..1u32 << layout.bits(InDim::Register);
        for r in registers {
            let canonical = layout.canonical_register(r);
            prop_assert_eq!(canonical & free[0], 0);
            prop_assert_eq!(layout.apply(canonical, 0, 0), layout.apply(r, 0, 0));
        }
    }

    #[test]
    fn products_divide(a in any_layout(), b in any_layout()) {
        let product = a.product(&b);
        for dim in [InDim::Register, InDim::Lane, InDim::Warp] {
            prop_assert_eq!(product.bits(dim), a.bits(dim) + b.bits(dim));
        }
        let quotient = product.left_divide(&a);
        prop_assert_eq!(quotient.as_ref(), Some(&b));
        let join = |x: u32, y: u32, dim| x | y << a.bits(dim);
        for (p, q) in places(&a).into_iter().zip(places(&b)) {
            let both = product.apply(
                join(p.register, q.register, InDim::Register),
                join(p.lane, q.lane, InDim::Lane),
                join(p.warp, q.warp, InDim::Warp),
            );
            let (inner, outer) = (a.element(p), b.element(q));
            for d in 0..a.rank() {
                prop_assert_eq!(both[d], inner[d] | outer[d] << a.out_bits()[d]);
            }
        }
    }

    #[test]
    fn shapes_move_no_data(layout in any_layout()) {
        let [rows, columns] = [layout.out_bits()[0], layout.out_bits()[1]];
        let flat = layout.reshape(&[rows + columns]).unwrap();
        let transposed = layout.permute_dims(&[1, 0]);
        let wide = layout.expand_dim(1);
        prop_assert!(layout.reshape(&[rows + columns + 1]).is_none());
        prop_assert_eq!(wide.out_bits(), [rows, 0, columns]);
        let broad = wide.broadcast_dim(1, 2).unwrap();
        prop_assert!(broad.broadcast_dim(1, 2).is_none());
        let registers = layout.bits(InDim::Register);
        for p in places(&layout) {
            let e = layout.element(p);
            prop_assert_eq!(flat.element(p), vec![e[0] << columns | e[1]]);
            prop_assert_eq!(transposed.element(p), vec![e[1], e[0]]);
            prop_assert_eq!(wide.element(p), vec![e[0], 0, e[1]]);
            for copy in 0..4 {
                let place = LaneRegister { register: p.register | copy << registers, ..p };
                prop_assert_eq!(broad.element(place), vec![e[0], copy, e[1]]);
            }
        }
        prop_assert_eq!(flat.reshape(&[rows, columns]), Some(layout));
    }

    #[test]
    fn slices_forget_a_dimension(layout in any_layout(), axis in 0usize..2) {
        let slice = layout.slice_dim(axis);
        let dropped = layout.sliced_registers(axis);
        let kept: Vec<usize> = (0..layout.bits(InDim::Register)).filter(|i| dropped >> i & 1 == 0).collect();
        prop_assert_eq!(slice.bits(InDim::Register), kept.len());
        for p in places(&layout) {
            let register = kept.iter().enumerate().map(|(to, from)| (p.register >> from & 1) << to).sum();
            prop_assert_eq!(slice.element(LaneRegister { register, ..p })[0], layout.element(p)[1 - axis]);
        }
    }

    #[test]
    fn composing_with_the_inverse_gives_the_layout((src, dst) in pair()) {
        match dst.invert_and_compose(&src) {
            Some(fetch) => prop_assert_eq!(fetch.compose(&src), Some(dst)),
            None => prop_assert!(!src.is_surjective()),
        }
    }

    #[test]
    fn disjoint_means_that_or_is_enough(layout in any_layout()) {
        let or_agrees = places(&layout).iter().all(|p| {
            let parts = [
                layout.apply(p.register, 0, 0), layout.apply(0, p.lane, 0), layout.apply(0, 0, p.warp),
            ];
            let or = |d: usize| parts.iter().fold(0, |all, part| all | part[d]);
            layout.element(*p) == [or(0), or(1)]
        });
        prop_assert!(!layout.is_disjoint() || or_agrees);
    }
}

/// What plans of shuffles may at all reach: every element that a lane needs is somewhere in its warp.
fn is_within_warps(src: &LinearLayout, dst: &LinearLayout) -> bool {
    let elements = |layout: &LinearLayout, warp: u32| -> BTreeSet<Vec<u32>> {
        places(layout).iter().filter(|p| p.warp == warp).map(|p| layout.element(*p)).collect()
    };
    (0..1u32 << src.bits(InDim::Warp)).all(|w| elements(src, w).is_superset(&elements(dst, w)))
}

/// The elements that each thread holds, by register.
fn held(layout: &LinearLayout) -> Vec<Vec<Vec<u32>>> {
    let lanes = layout.bits(InDim::Lane);
    let threads = 0..1u32 << (lanes + layout.bits(InDim::Warp));
    let registers = 0..1u32 << layout.bits(InDim::Register);
    let of = |t: u32| {
        registers.clone().map(move |r| layout.apply(r, t & ((1 << lanes) - 1), t >> lanes)).collect()
    };
    threads.map(of).collect()
}

fn check_conversion(src: &LinearLayout, dst: &LinearLayout) -> Result<(), TestCaseError> {
    let within = is_within_warps(src, dst);
    let (before, after) = (held(src), held(dst));
    match classify(src, dst) {
        Conversion::Same => prop_assert_eq!(before, after),
        Conversion::Registers(registers) => {
            for (have, want) in before.iter().zip(&after) {
                let renamed: Vec<_> = registers.iter().map(|r| have[*r as usize].clone()).collect();
                prop_assert_eq!(&renamed, want);
            }
        }
        Conversion::Shuffle(plan) => {
            prop_assert!(within);
            prop_assert_eq!(&plan.evaluate(&before).unwrap(), &after);
            let renaming_is_enough = |r: usize| {
                (0..before[0].len()).any(|s| (0..before.len()).all(|t| before[t][s] == after[t][r]))
            };
            prop_assert!(!(0..after[0].len()).all(renaming_is_enough), "renaming is enough");
        }
        Conversion::Shared => prop_assert!(!within),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conversions_bring_what_is_wanted((src, dst) in pair()) {
        check_conversion(&src, &dst)?;
    }

    #[test]
    fn conversions_within_warps((src, dst) in common::pair_within_warps()) {
        check_conversion(&src, &dst)?;
    }

    /// Permutations of register and lane bits never need more rounds than there are registers.
    #[test]
    fn permutations_need_few_shuffles(src in permuted(Shape { register: 3, lane: 4, warp: 1 }), swap in 0usize..4, order in Just((0..7).collect::<Vec<usize>>()).prop_shuffle()) {
        let dst = common::with_places_reordered(&src, &order, swap);
        let plan = match classify(&src, &dst) {
            Conversion::Shuffle(plan) => plan,
            Conversion::Same | Conversion::Registers(_) => return Ok(()),
            Conversion::Shared => return Err(TestCaseError::fail("within warps")),
        };
        prop_assert!(plan.cost() <= 8);
    }
}

/// Exchanging `n` register bits for lane bits leaves one in `2^n` values in its lane.
#[test]
fn exchanges_cost_what_moves() {
    let unit = |i: u32| vec![1u32 << i];
    for registers in 1..=5u32 {
        for swaps in 1..=registers {
            let src: Vec<_> = (0..registers + 5).map(unit).collect();
            let mut dst = src.clone();
            for i in 0..swaps {
                dst.swap(i as usize, (registers + i) as usize);
            }
            let layout = |b: &[Vec<u32>]| {
                let (register, lane) = b.split_at(registers as usize);
                LinearLayout::new(&[registers + 5], register.to_vec(), lane.to_vec(), vec![]).unwrap()
            };
            let plan = ShufflePlan::new(&layout(&src), &layout(&dst)).unwrap();
            let all = 1usize << registers;
            assert_eq!(plan.cost(), all - (all >> swaps));
            assert!(plan.is_butterfly());
            assert_eq!(plan.evaluate(&held(&layout(&src))).unwrap(), held(&layout(&dst)));
        }
    }
}

/// A lane's value goes to all lanes: no lane has to choose.
#[test]
fn broadcast_from_lanes_needs_no_selects() {
    let bits = |n: u32| (0..n).map(|i| vec![1u32 << i]).collect::<Vec<_>>();
    let src = LinearLayout::new(&[5], vec![], bits(5), vec![]).unwrap();
    let dst = LinearLayout::new(&[5], bits(5), vec![vec![0]; 5], vec![]).unwrap();
    let plan = ShufflePlan::new(&src, &dst).unwrap();
    assert_eq!((plan.cost(), plan.selects()), (32, 0));
    // And back: every lane has it already, and chooses.
    let back = ShufflePlan::new(&dst, &src).unwrap();
    assert_eq!((back.cost(), back.selects()), (0, 31));
    assert_eq!(back.before.len() + back.after.len(), 5);
}

/// Two 16-bit values share a shuffle, a 64-bit value needs two.
#[test]
fn narrow_values_share_shuffles() {
    let bits = |n: std::ops::Range<u32>| n.map(|i| vec![1u32 << i]).collect::<Vec<_>>();
    let src = layout_of(&[6], bits(0..3), bits(3..6));
    let mut exchanged = bits(0..6);
    exchanged.swap(2, 5);
    let dst = layout_of(&[6], exchanged[..3].to_vec(), exchanged[3..].to_vec());
    let plan = ShufflePlan::new(&src, &dst).unwrap();
    assert_eq!([8, 16, 32, 64].map(|b| plan.cost_of(b)), [1, 2, 4, 8]);
}

/// Words of values that move in pairs arrive where the values do, whichever bits tell the two apart.
#[test]
fn words_arrive_where_their_values_do() {
    let unit = |i: u32| vec![1u32 << i];
    let mut paired = 0;
    for turn in 0..64u32 {
        // Each layout has its own order of bits; they share some register bits.
        let order = |seed: u32| {
            let mut bits: Vec<u32> = (0..8).collect();
            (0..8).for_each(|i| bits.swap(i as usize, ((i * 5 + seed * 7 + i * seed) % 8) as usize));
            bits
        };
        let of = |bits: &[u32]| {
            layout_of(
                &[8],
                bits[..3].iter().map(|b| unit(*b)).collect(),
                bits[3..].iter().map(|b| unit(*b)).collect(),
            )
        };
        let (src, dst) = (of(&order(turn % 8)), of(&order(turn / 8)));
        let Some(plan) = ShufflePlan::new(&src, &dst) else { continue };
        let Some(pair) = plan.paired() else { continue };
        paired += 1;
        let low = (0..8usize).filter(|r| r >> pair.source & 1 == 0);
        let words: Vec<Vec<_>> = held(&src)
            .iter()
            .map(|v| low.clone().map(|r| [v[r].clone(), v[r | 1 << pair.source].clone()]).collect())
            .collect();
        let after = pair.plan.evaluate(&words).unwrap();
        for (words, wanted) in after.iter().zip(held(&dst)) {
            let places = (0..8usize).filter(|r| r >> pair.result & 1 == 0);
            for (word, r) in words.iter().zip(places) {
                assert_eq!(*word, [wanted[r].clone(), wanted[r | 1 << pair.result].clone()]);
            }
        }
        assert_eq!(pair.plan.cost() * 2, plan.cost());
    }
    assert!(paired > 10, "{paired}");
}

/// The bits of a block choose registers like those of a warp.
#[test]
fn blocks_are_parts_of_threads() {
    let inside = |register: u32, lane: u32, block: u32| {
        let layout = LinearLayout::new(&[3], vec![vec![register]], vec![vec![lane]], vec![]).unwrap();
        layout.with_block(vec![vec![block]]).unwrap()
    };
    let (src, dst) = (inside(1, 2, 4), inside(2, 1, 5));
    let held = |l: &LinearLayout| -> Vec<Vec<u32>> {
        let element = |t: u32, register| LaneRegister { register, lane: t & 1, warp: 0, block: t >> 1 };
        (0..4).map(|t| (0..2).map(|r| l.element(element(t, r))[0]).collect()).collect()
    };
    let Conversion::Shuffle(plan) = classify(&src, &dst) else { panic!("within a block") };
    assert_eq!(plan.evaluate(&held(&src)).unwrap(), held(&dst));
    assert_eq!(classify(&src, &inside(4, 2, 1)), Conversion::Shared);
}
