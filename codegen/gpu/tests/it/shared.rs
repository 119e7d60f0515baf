//! Owns tests of layouts of shared memory: swizzles as manuals give them, conflicts of banks counted bank by bank, and
//! plans executed on all threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tk_gpu::TargetSpec;
use tk_gpu::layout::linear::{
    InDim, LinearLayout, SharedAccess, SharedMap, SharedPlan, Swizzle, bank_conflict_ways,
};
use tk_gpu::target::spec::{SIM_64, SM_90A};

use crate::common::{Shape, pair, permuted};

/// The most words that a bank has to give in any phase.
fn counted_ways(lanes: &[u32], access_bytes: u32, banks: u32) -> u32 {
    let address = |lane: u32| (0..lanes.len()).filter(|i| lane >> i & 1 == 1).fold(0, |a, i| a ^ lanes[i]);
    let all: Vec<u32> = (0..1 << lanes.len()).map(address).collect();
    let at_a_time = (banks * 4 / access_bytes.max(4)) as usize;
    let worst = all.chunks(at_a_time).map(|phase| {
        let mut words = BTreeMap::<u32, BTreeSet<u32>>::new();
        for byte in phase.iter().flat_map(|a| (0..access_bytes).map(move |i| a + i)) {
            words.entry(byte / 4 % banks).or_default().insert(byte / 4);
        }
        words.values().map(BTreeSet::len).max().unwrap_or(0) as u32
    });
    worst.max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ways_are_as_counted(
        units in prop::collection::vec(0u32..2048, 0..7),
        single in prop::collection::vec(0u32..11, 0..7),
        width in 0u32..5,
        banks in 5u32..7,
    ) {
        let access = 1 << width;
        for lanes in [units, single.iter().map(|i| 1 << i).collect()] {
            let lanes: Vec<u32> = lanes.iter().map(|u| u * access).collect();
            prop_assert_eq!(
                bank_conflict_ways(&lanes, access, 1 << banks),
                counted_ways(&lanes, access, 1 << banks)
            );
        }
    }
}

#[test]
fn swizzles_are_linear() {
    let bases =
        |s: Swizzle| (0..11).map(|i| s.apply(1 << i)).filter(|b| b.count_ones() > 1).collect::<Vec<_>>();
    assert_eq!(bases(Swizzle::B128), [0x90, 0x120, 0x240]);
    assert_eq!(bases(Swizzle::B64), [0x90, 0x120]);
    assert_eq!(bases(Swizzle::B32), [0x90]);
    assert_eq!(bases(Swizzle::None), [0; 0]);
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        for byte in 0..4096u32 {
            let sum = (0..12).filter(|i| byte >> i & 1 == 1).fold(0, |sum, i| sum ^ swizzle.apply(1 << i));
            assert_eq!(swizzle.apply(byte), sum);
            assert_eq!(swizzle.apply(sum), byte);
        }
    }
}

/// 16-bit elements, two atoms of 64 columns, 16 rows.
#[test]
fn swizzled_tile_has_panels() {
    let map = SharedMap::swizzled(4, 7, 2, Swizzle::B128).unwrap();
    for (row, column) in (0..16).flat_map(|r| (0..128).map(move |c| (r, c))) {
        let (panel, within) = (column / 64, column % 64);
        let byte = panel * 16 * 128 + row * 128 + (((within / 8) ^ (row % 8)) * 16) + within % 8 * 2;
        assert_eq!(map.offset_of(&[row, column]), byte / 2);
    }
    assert_eq!(SharedMap::swizzled(4, 5, 2, Swizzle::B128), None);
    assert_eq!(SharedMap::swizzled(4, 5, 2, Swizzle::None), Some(SharedMap::row_major(&[4, 5])));
}

/// The byte addresses that lanes stand for.
fn lane_addresses(map: &SharedMap, layout: &LinearLayout, bytes: u32) -> Vec<u32> {
    let offsets = map.through(layout).unwrap();
    (0..offsets.bits(InDim::Lane)).map(|i| offsets.basis(InDim::Lane, i).unwrap()[0] * bytes).collect()
}

/// The 16-bit accumulator of a matrix instruction, stored in pairs to rows of 128 bytes; and rows of eight elements by
/// lane, as `stmatrix` stores them.
#[test]
fn matrix_results_meet_in_banks_unless_swizzled() {
    let bases = |b: &[(u32, u32)]| b.iter().map(|(r, c)| vec![*r, *c]).collect::<Vec<_>>();
    let lanes = bases(&[(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]);
    let registers = bases(&[(0, 1), (8, 0), (0, 8), (0, 16), (0, 32)]);
    let pairs = LinearLayout::new(&[4, 6], registers, lanes, vec![]).unwrap();
    let rows = bases(&[(1, 0), (2, 0), (4, 0), (8, 0), (0, 8)]);
    let rows =
        LinearLayout::new(&[4, 6], bases(&[(0, 1), (0, 2), (0, 4), (0, 16), (0, 32)]), rows, vec![]).unwrap();
    let plain = SharedMap::row_major(&[4, 6]);
    let swizzled = SharedMap::swizzled(4, 6, 2, Swizzle::B128).unwrap();
    let ways = |map, layout, access| bank_conflict_ways(&lane_addresses(map, layout, 2), access, 32);
    assert_eq!([ways(&plain, &pairs, 4), ways(&swizzled, &pairs, 4)], [8, 1]);
    assert_eq!([ways(&plain, &rows, 16), ways(&swizzled, &rows, 16)], [8, 1]);
}

/// Executes one direction: the offset and the register of each element that a thread accesses.
fn traffic(map: &SharedMap, layout: &LinearLayout, accesses: &[SharedAccess]) -> Vec<(u32, u32, u32)> {
    let offsets = map.through(layout).unwrap();
    let lanes = layout.bits(InDim::Lane);
    let mut traffic = vec![];
    for thread in 0..1u32 << (lanes + layout.bits(InDim::Warp)) {
        let own = offsets.apply(0, thread & ((1 << lanes) - 1), thread >> lanes)[0];
        for access in accesses {
            let at = own ^ access.offset;
            assert_eq!(at % access.registers.len() as u32, 0, "aligned");
            traffic.extend(access.registers.iter().zip(at..).map(|(r, offset)| (thread, *r, offset)));
        }
    }
    traffic
}

fn check_plan(src: &LinearLayout, dst: &LinearLayout, bytes: u32, spec: &TargetSpec) -> Option<SharedPlan> {
    let plan = SharedPlan::new(src, dst, bytes, spec.banks())?;
    let lanes = src.bits(InDim::Lane);
    let element = |layout: &LinearLayout, thread: u32, register: u32| {
        layout.apply(register, thread & ((1 << lanes) - 1), thread >> lanes)
    };
    let (stores, loads) = (plan.stores(src), plan.loads(dst));
    let mut memory = BTreeMap::new();
    for (thread, register, offset) in traffic(&plan.map, src, &stores) {
        let stored = element(src, thread, register);
        assert_eq!(plan.map.offset_of(&stored), offset);
        if let Some(other) = memory.insert(offset, stored.clone()) {
            assert_eq!(other, stored, "two elements at one offset");
        }
    }
    let mut loaded = BTreeMap::new();
    for (thread, register, offset) in traffic(&plan.map, dst, &loads) {
        assert_eq!(memory.get(&offset), Some(&element(dst, thread, register)));
        loaded.insert((thread, register), ());
    }
    for (thread, register) in (0..2).flat_map(|t| (0..1u32 << dst.bits(InDim::Register)).map(move |r| (t, r)))
    {
        let threads = 1 << (lanes + dst.bits(InDim::Warp));
        assert!(thread >= threads || loaded.contains_key(&(thread, dst.canonical_register(register))));
    }
    for (layout, vector, ways, accesses) in
        [(src, plan.store_vector, plan.store_ways, &stores), (dst, plan.load_vector, plan.load_ways, &loads)]
    {
        assert!(vector * bytes <= spec.vector_bytes.max(bytes));
        assert!(accesses.iter().all(|a| a.registers.len() as u32 == vector));
        let lanes = lane_addresses(&plan.map, layout, bytes);
        assert_eq!(ways, counted_ways(&lanes, vector * bytes, spec.shared_banks));
    }
    Some(plan)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_bring_what_is_wanted((src, dst) in pair(), width in 0u32..4) {
        let plan = check_plan(&src, &dst, 1 << width, &SM_90A);
        prop_assert!(plan.is_some() || !src.is_surjective());
    }

    /// Where nothing is held twice there always is a map without conflicts.
    #[test]
    fn permutations_are_without_conflict((src, dst) in whole_warps(), width in 0u32..4) {
        let plan = check_plan(&src, &dst, 1 << width, &SM_90A).unwrap();
        prop_assert_eq!((plan.store_ways, plan.load_ways), (1, 1));
        prop_assert!(check_plan(&src, &dst, 1 << width, &SIM_64).is_some());
    }
}

fn whole_warps() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    (1usize..5, 0usize..2).prop_flat_map(|(register, warp)| {
        let shape = Shape { register, lane: 5, warp };
        (permuted(shape), permuted(shape))
    })
}

/// A tile of 64 x 64 of which each lane has eight neighbours of a row, to one with eight of a column, and from the
/// accumulator of a matrix instruction to the former. Rows of memory that move are the fewest there can be for the
/// width of the accesses.
#[test]
fn known_conversions() {
    let bases = |b: &[(u32, u32)]| b.iter().map(|(r, c)| vec![*r, *c]).collect::<Vec<_>>();
    let rows = LinearLayout::blocked(&[6, 6], &[1, 0], &[0, 3], &[2, 3], &[2, 0]);
    let columns = LinearLayout::blocked(&[6, 6], &[0, 1], &[3, 0], &[3, 2], &[0, 2]);
    let accumulator = LinearLayout::new(
        &[6, 6],
        bases(&[(0, 1), (8, 0), (0, 8), (0, 16), (0, 32)]),
        bases(&[(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]),
        bases(&[(16, 0), (32, 0)]),
    )
    .unwrap();
    // Source, bytes of an element; elements of a store and of a load, rows that move, accesses.
    let known = [
        (&columns, 1, (16, 1, 40, 34)),
        (&columns, 2, (8, 1, 48, 36)),
        (&columns, 4, (4, 1, 64, 40)),
        (&accumulator, 1, (16, 2, 24, 18)),
        (&accumulator, 2, (2, 8, 32, 20)),
        (&accumulator, 4, (2, 4, 64, 24)),
    ];
    for (src, bytes, expected) in known {
        let plan = check_plan(src, &rows, bytes, &SM_90A).unwrap();
        assert_eq!((plan.store_ways, plan.load_ways), (1, 1));
        assert_eq!((plan.store_vector, plan.load_vector, plan.wavefronts, plan.accesses), expected);
        assert_eq!(plan.bytes(), 64 * 64 * u64::from(bytes));
    }
}

/// Where nothing has to be asked of memory, no plan is made up.
#[test]
fn plans_need_one_tile_in_one_block() {
    let tile = LinearLayout::blocked(&[1, 2], &[1, 0], &[0, 1], &[0, 1], &[1, 0]);
    let half = LinearLayout::blocked(&[1, 1], &[1, 0], &[0, 1], &[0, 0], &[1, 0]);
    assert_eq!(SharedPlan::new(&tile, &half, 4, SM_90A.banks()), None);
    assert_eq!(SharedPlan::new(&tile, &tile, 3, SM_90A.banks()), None);
    let blocks = |row, column| {
        let inside = LinearLayout::new(&[1, 1], vec![], vec![vec![row, column]], vec![]).unwrap();
        inside.with_block(vec![vec![column, row]]).unwrap()
    };
    assert_eq!(SharedPlan::new(&blocks(0, 1), &blocks(1, 0), 4, SM_90A.banks()), None);
    assert!(SharedPlan::new(&blocks(0, 1), &blocks(0, 1), 4, SM_90A.banks()).is_some());
}

/// A thread has two rows of four, and lanes read pairs of rows: stores gather the pairs, so that both sides are wide.
#[test]
fn stores_gather_what_loads_read_together() {
    let list = |bases: &[[u32; 2]]| bases.iter().map(|b| b.to_vec()).collect::<Vec<_>>();
    let rows = LinearLayout::new(
        &[5, 6],
        list(&[[0, 1], [0, 2], [1, 0]]),
        list(&[[0, 4], [0, 8], [0, 16], [0, 32], [2, 0], [4, 0]]),
        list(&[[8, 0], [16, 0]]),
    )
    .unwrap();
    let columns = LinearLayout::new(
        &[5, 6],
        list(&[[1, 0], [2, 0]]),
        list(&[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [4, 0]]),
        list(&[[8, 0], [16, 0], [0, 32]]),
    )
    .unwrap();
    let plan = |spec: &TargetSpec| SharedPlan::new(&rows, &columns, 2, spec.banks()).unwrap();
    let gathered = plan(&SIM_64);
    assert_eq!((gathered.store_vector, gathered.load_vector), (8, 2));
    assert_eq!((gathered.store_ways, gathered.load_ways), (1, 1));
    let [a, b] = [[1, 0], [2, 0]].map(|at| gathered.map.offset_of(&at));
    assert_eq!(a, 1, "a pair is a word");
    assert!(b < gathered.map.offset_of(&[8, 0]), "both words of a lane are near");
    // Where elements are copied from memory, a store has them in their order.
    assert!(plan(&SM_90A).store_vector < 8 || plan(&SM_90A).load_vector < 2);
}
