//! Owns what matrix instructions ask for: fragments as the PTX manual draws them, grids of warps, and orders of shared
//! memory in which neither side meets in banks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tk_gpu::analysis::conversion::in_warp;
use tk_gpu::analysis::direct_loads::layout;
use tk_gpu::analysis::ldmatrix::{Read, neighbours, order, read, reader};
use tk_gpu::analysis::wgmma_shared::WgmmaShared;
use tk_gpu::ir::shared_access::{atom_place, image, swizzled_elements};
use tk_gpu::layout::linear::{Conversion, InDim, bank_conflict_ways};
use tk_gpu::layout::{Layout, Threads};
use tk_gpu::target::mma::{
    CDNA2, CDNA3, CDNA4, Fragment, FragmentForm, HOPPER, MmaInstruction, MmaKind, RDNA3, RDNA4, Tiles, find,
};
use tk_gpu::target::precision::Precision;
use tk_gpu::target::spec::{
    GFX90A, GFX942, GFX950, GFX1100, GFX1201, SIM_32, SIM_64, SM_80, SM_90A, SM_120A,
};
use tk_ops::DType;

fn matrix(d: DType) -> MmaInstruction {
    *HOPPER.iter().find(|m| m.operands.contains(&d) && !m.is_wgmma()).unwrap()
}

/// The instruction of groups of warps.
fn group(d: DType) -> MmaInstruction {
    *HOPPER.iter().find(|m| m.operands.contains(&d) && m.is_wgmma()).unwrap()
}

fn threads(bits: u32) -> Threads {
    Threads { lane_bits: 5, warp_bits: bits }
}

/// The coordinates of element `i` of a lane, as the manual gives them: the group is the row of `A`, the column of `B`.
fn manual(d: DType, side: usize, lane: u32, i: u32) -> Vec<u32> {
    let (group, within) = (lane >> 2, lane % 4);
    let high = |condition: bool, n: u32| if condition { n } else { 0 };
    let (row, column) = match (d, side) {
        (DType::F16, 0) => (group + high((i & 2) != 0, 8), within * 2 + (i & 1) + high(i >= 4, 8)),
        (DType::F16, _) => (within * 2 + (i & 1) + high(i >= 2, 8), group),
        (DType::F32, 0) => (group + high(i == 1 || i == 3, 8), within + high(i >= 2, 4)),
        (DType::F32, _) => (within + high(i == 1, 4), group),
        (DType::I8, 0) => {
            let upper = (4..8).contains(&i) || i >= 12;
            (group + high(upper, 8), within * 4 + (i & 3) + high(i >= 8, 16))
        }
        (DType::I8, _) => (within * 4 + (i & 3) + high(i >= 4, 16), group),
        (DType::F64, 0) => (group, within),
        (DType::F64, _) => (within, group),
        (other, _) => panic!("{other} is not asked for"),
    };
    vec![row, column]
}

#[test]
fn fragments_are_those_of_the_manual() {
    for d in [DType::F16, DType::F32, DType::I8, DType::F64] {
        let m = matrix(d);
        let tiles = Tiles::choose(m, [1 << m.m, 1 << m.n], threads(0), false).unwrap();
        for side in [0, 1] {
            let layout = tiles.operand(side, 1 << m.k).layout().unwrap();
            for (lane, i) in (0..32).flat_map(|l| (0..layout.registers() as u32).map(move |i| (l, i))) {
                let found = layout.coords(i as usize, lane, 0);
                assert_eq!(found, manual(d, side, lane, i), "{d}, factor {side}, lane {lane}, {i}");
            }
        }
        let sums = tiles.accumulator().layout().unwrap();
        for (lane, i) in (0..32).flat_map(|l| (0..sums.registers() as u32).map(move |i| (l, i))) {
            let expected = vec![(lane >> 2) + 8 * (i >> 1), lane % 4 * 2 + (i & 1)];
            assert_eq!(sums.coords(i as usize, lane, 0), expected, "{d}, lane {lane}, {i}");
        }
    }
}

fn grid(tiles: &Tiles) -> Vec<Vec<u32>> {
    let layout = tiles.accumulator().layout().unwrap();
    (0..layout.atom().bits(InDim::Warp)).map(|i| layout.atom().basis(InDim::Warp, i).unwrap()).collect()
}

#[test]
fn warps_lie_near_a_square_or_below_one_another() {
    let m = matrix(DType::F16);
    let choose =
        |m_: u32, n: u32, bits: u32, rows: bool| Tiles::choose(m, [m_, n], threads(bits), rows).unwrap();
    assert_eq!(grid(&choose(128, 128, 3, false)), [[0, 64], [32, 0], [64, 0]]);
    assert_eq!(grid(&choose(128, 256, 3, false)), [[0, 64], [0, 128], [64, 0]]);
    assert_eq!(grid(&choose(128, 128, 3, true)), [[16, 0], [32, 0], [64, 0]]);
    assert_eq!(grid(&choose(64, 128, 3, true)), [[0, 64], [16, 0], [32, 0]]);
    // A warp that finds nothing does what another one does.
    assert_eq!(grid(&choose(16, 8, 1, false)), [[0, 0]]);
    // 48 rows are three atoms of 16: no warps along them.
    assert_eq!(grid(&choose(48, 64, 2, false)), [[0, 16], [0, 32]]);
    for tiles in [choose(128, 128, 3, false), choose(8, 24, 2, true), choose(48, 96, 2, false)] {
        let layout = tiles.accumulator().layout().unwrap();
        assert!(layout.atom().is_surjective());
        assert_eq!(layout.atom().free_bits(InDim::Register), 0);
    }
}

#[test]
fn an_accumulator_is_recognised() {
    let m = matrix(DType::BF16);
    for (shape, bits, rows) in [([128, 64], 2, false), ([4, 4], 1, false), ([48, 24], 3, true)] {
        let tiles = Tiles::choose(m, shape, threads(bits), rows).unwrap();
        assert_eq!(Tiles::of(m, shape, &tiles.accumulator().layout().unwrap()), Some(tiles));
        let other = Layout::blocked(&shape, &[1, 0], 4, threads(bits));
        assert_eq!(Tiles::of(m, shape, &other), None);
    }
}

#[test]
fn the_result_of_a_product_is_a_factor_of_the_next() {
    for (rows, bits) in [(128, 3), (64, 2), (96, 1), (16, 0)] {
        let m = matrix(DType::F16);
        let tiles = |columns: u32| Tiles::choose(m, [rows, columns], threads(bits), true).unwrap();
        let scores = tiles(64).accumulator().layout().unwrap();
        let next = tiles(128).operand(0, 64).layout().unwrap();
        let way = in_warp(&scores, &next, 2);
        assert!(matches!(way, Some(Conversion::Same | Conversion::Registers(_))), "{rows} rows: {way:?}");
    }
}

/// Words that a bank gives at a time: when a tile is stored as it is held, and when fragments are read.
fn ways(held: &Layout, f: &Fragment, bases: &[i64], bytes: u32) -> (u32, u32) {
    let at = |b: &[u32]| image(bases, &f.out_bits(), b) as u32 * bytes;
    let atom = held.atom();
    let list = |d: InDim| (0..atom.bits(d)).map(|i| at(&atom.basis(d, i).unwrap())).collect::<Vec<u32>>();
    let (registers, each) = (list(InDim::Register), list(InDim::Lane));
    let run = registers.iter().enumerate().take_while(|(i, p)| **p == bytes << i).count();
    let stores = bank_conflict_ways(&each, (bytes << run).min(16), 32);
    let way = read(f, bases, bytes, &SM_80);
    let r = reader(f, way, bytes).unwrap();
    let rows: Vec<u32> = r.lane.iter().map(|b| at(b)).collect();
    let elements = |list: &[[u32; 2]]| list.iter().map(|b| i64::from(at(b) / bytes)).collect::<Vec<i64>>();
    let threads = elements(&[&r.lane[..], f.warp()].concat());
    let most = (16 / bytes).ilog2() as usize;
    let width = match way {
        Read::Own => bytes << neighbours(f, &elements(&r.rest), &threads, most).len(),
        Read::Rows | Read::Columns => 16,
        Read::Transposed => 8,
    };
    (stores, bank_conflict_ways(&rows, width, 32))
}

/// A factor of a kind of product, stored from a layout in which neighbours along dimension `fast` are 16 bytes.
fn stored(d: DType, shape: [u32; 3], bits: u32, side: usize, fast: usize) -> (Read, (u32, u32)) {
    let [m, n, k] = shape;
    let f = Tiles::choose(matrix(d), [m, n], threads(bits), false).unwrap().operand(side, k);
    let own = if side == 0 { [m, k] } else { [k, n] };
    let bytes = d.bytes() as u32;
    let held = Layout::blocked(&own, &[fast, 1 - fast], 16 / bytes, threads(bits));
    let bases = order(&held, &f, bytes, &SM_80);
    (read(&f, &bases, bytes, &SM_80), ways(&held, &f, &bases, bytes))
}

#[test]
fn factors_of_halves_are_read_as_matrices_without_conflicts() {
    let shapes = [
        ([128, 128, 32], 3),
        ([128, 64, 64], 2),
        ([128, 128, 64], 3),
        ([128, 256, 64], 3),
        ([64, 64, 32], 2),
        ([64, 64, 64], 2),
        ([32, 32, 32], 0),
        ([64, 128, 128], 2),
    ];
    for (shape, bits) in shapes {
        // Along K as they are, across K transposed.
        for (side, along) in [(0, 1), (1, 0)] {
            let what = format!("{shape:?}, factor {side}");
            assert_eq!(stored(DType::F16, shape, bits, side, along), (Read::Rows, (1, 1)), "{what}");
            assert_eq!(stored(DType::F16, shape, bits, side, 1 - along), (Read::Columns, (1, 1)), "{what}");
        }
    }
}

#[test]
fn other_factors_are_read_as_matrices_where_rows_are_along_k() {
    for (d, shape) in
        [(DType::I8, [128, 128, 64]), (DType::F32, [64, 64, 32]), (DType::F8E4M3, [64, 64, 128])]
    {
        for (side, along) in [(0, 1), (1, 0)] {
            assert_eq!(stored(d, shape, 2, side, along), (Read::Rows, (1, 1)), "{d}, factor {side}");
            // Bytes across K are read one by one.
            let (way, (_, loads)) = stored(d, shape, 2, side, 1 - along);
            assert_eq!(way, Read::Own, "{d}, factor {side} transposed");
            assert_eq!(loads, 1, "{d}, factor {side} transposed");
        }
    }
    assert_eq!(stored(DType::F64, [64, 64, 16], 2, 0, 1).0, Read::Own);
}

/// Sixteen lanes receive the transpose of four rows of sixteen elements of two bytes, or of eight rows of elements of one byte, as
/// the manual of CDNA4 has it: it is what the fragment says that they own.
#[test]
fn factors_across_k_are_read_transposed() {
    let of_64 = |bits| Threads { lane_bits: 6, warp_bits: bits };
    let narrow = CDNA4.iter().filter(|m| m.form == FragmentForm::Mfma && m.bytes() <= 2);
    for (m, shape) in narrow.flat_map(|m| [[128, 128, 32], [64, 64, 64], [32, 64, 128]].map(|s| (*m, s))) {
        let [rows, columns, k] = shape;
        let (bytes, of_rows) = (m.bytes(), 8 / m.bytes() as usize);
        if 1 << m.k > k {
            continue;
        }
        let plain = Tiles::choose(m, [rows, columns], of_64(2), false).unwrap();
        let paired = plain.pairs(k, 16).then(|| plain.paired());
        for (tiles, side) in [plain].into_iter().chain(paired).flat_map(|t| [(t.clone(), 0), (t, 1)]) {
            let f = tiles.operand(side, k);
            let own = if side == 0 { [rows, k] } else { [k, columns] };
            let held = |fast: usize| Layout::blocked(&own, &[fast, 1 - fast], 16 / bytes, of_64(2));
            let (along, across) = (1 - side, side);
            let way = |fast, spec| read(&f, &order(&held(fast), &f, bytes, spec), bytes, spec);
            let what = format!("{}, {shape:?}, factor {side}", m.name);
            assert_eq!(way(along, &GFX950), Read::Own, "{what}");
            assert_eq!(way(across, &GFX950), Read::Transposed, "{what}");
            assert_eq!(way(across, &GFX942), Read::Own, "{what}");
            let bases = order(&held(across), &f, bytes, &GFX950);
            let r = reader(&f, Read::Transposed, bytes).unwrap();
            let at = |b: &[u32; 2]| image(&bases, &f.out_bits(), b);
            let sum = |bits: &[[u32; 2]], n: usize| {
                bits.iter().enumerate().filter(|(i, _)| n >> i & 1 == 1).fold(0, |all, (_, b)| all ^ at(b))
            };
            for (lane, i) in (0..64).flat_map(|l| (0..of_rows).map(move |i| (l, i))) {
                // The lane that reads this column of row `i`.
                let from = lane / 16 * 16 + 16 / of_rows * i + lane % 16 / of_rows;
                let found = sum(&r.lane, from) + i64::try_from(lane % of_rows).unwrap();
                assert_eq!(found, sum(f.lane(), lane) ^ sum(f.register(), i), "{what}, lane {lane}, {i}");
            }
        }
    }
}

/// What is loaded straight to shared memory: lanes fill a buffer side by side, each element has one owner, and other accesses of a
/// lane are at known distances.
#[test]
fn lanes_load_what_belongs_at_their_places() {
    let m = *CDNA4.iter().find(|m| m.operands.contains(&DType::F16)).unwrap();
    for (shape, bits) in [([128, 128, 32], 2), ([128, 128, 64], 3), ([128, 64, 32], 2)] {
        let of = Threads { lane_bits: 6, warp_bits: bits };
        for (side, fast) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let [rows, columns, k] = shape;
            let f = Tiles::choose(m, [rows, columns], of, false).unwrap().operand(side, k);
            let own = if side == 0 { [rows, k] } else { [k, columns] };
            let held = Layout::blocked(&own, &[fast, 1 - fast], 8, of);
            let bases = order(&held, &f, 2, &GFX950);
            let what = format!("{shape:?}, factor {side}, {fast}");
            let found = layout(&held, &bases, 2, &GFX950).unwrap_or_else(|| panic!("{what}"));
            let atom = found.atom();
            assert!(atom.is_surjective() && atom.is_injective() && found.adds_registers(), "{what}");
            assert_eq!(found.vector(fast), 8, "{what}");
            let lane = |i| image(&bases, atom.out_bits(), &atom.basis(InDim::Lane, i).unwrap());
            assert!((0..6).all(|i| lane(i) == 8 << i), "{what}");
        }
    }
}

#[test]
fn instructions_by_types_and_targets() {
    let kind = |a, b, sum, k| MmaKind { operands: [a, b], acc: sum, precision: Precision::Ieee, k };
    let name = |spec, kind| find(spec, kind).find(|m| !m.is_wgmma()).map(|m| m.name);
    let first = |spec, kind| find(spec, kind).next().map(|m| m.name);
    let half = kind(DType::F16, DType::F16, DType::F32, 32);
    for spec in [&SM_80, &SM_90A, &SIM_32] {
        assert_eq!(name(spec, half), Some("m16n8k16"));
        assert_eq!(name(spec, kind(DType::BF16, DType::BF16, DType::BF16, 16)), Some("m16n8k16"));
        assert_eq!(name(spec, kind(DType::U8, DType::U8, DType::I32, 64)), Some("m16n8k32"));
        assert_eq!(name(spec, kind(DType::F64, DType::F64, DType::F64, 4)), Some("m8n8k4"));
        let single = kind(DType::F32, DType::F32, DType::F32, 8);
        assert_eq!(name(spec, single), None, "all bits of an f32 count");
        assert_eq!(name(spec, MmaKind { precision: Precision::Tf32, ..single }), Some("m16n8k8"));
        assert_eq!(name(spec, MmaKind { precision: Precision::Tf32x3, ..single }), Some("m16n8k8"));
    }
    // Where groups of warps multiply, that is tried first; halves of an f32 are none of it.
    assert_eq!((first(&SM_80, half), first(&SM_90A, half)), (Some("m16n8k16"), Some("m64k16")));
    let single = kind(DType::F32, DType::F32, DType::F32, 8);
    assert_eq!(first(&SM_90A, MmaKind { precision: Precision::Tf32, ..single }), Some("m16n8k8"));
    assert_eq!(first(&SM_90A, kind(DType::I8, DType::U8, DType::I32, 32)), Some("m64k32"));
    let narrow = kind(DType::F8E4M3, DType::F8E5M2, DType::F32, 32);
    assert_eq!((name(&SM_80, narrow), name(&SM_90A, narrow)), (None, Some("m16n8k32")));
    for (spec, d, expected) in [
        (&GFX90A, DType::F16, "32x32x8"),
        (&GFX90A, DType::I8, "32x32x8"),
        (&GFX942, DType::BF16, "32x32x8"),
        (&GFX942, DType::I8, "32x32x16"),
        (&GFX942, DType::F32, "32x32x2"),
        (&SIM_64, DType::F64, "16x16x4f64"),
        (&GFX1100, DType::BF16, "16x16x16"),
        (&GFX1100, DType::U8, "16x16x16"),
        (&GFX950, DType::BF16, "32x32x16"),
        (&GFX950, DType::I8, "32x32x32"),
        (&GFX1201, DType::F16, "16x16x16"),
        (&SM_120A, DType::F16, "m16n8k16"),
    ] {
        let sum = if d.is_int() { DType::I32 } else { d };
        assert_eq!(name(spec, kind(d, d, sum, 32)), Some(expected), "{} {d}", spec.name);
    }
    assert_eq!(name(&GFX942, kind(DType::U8, DType::U8, DType::I32, 32)), None, "bytes have a sign there");
    assert_eq!(name(&GFX1100, kind(DType::F32, DType::F32, DType::F32, 32)), None);
    // A sum is not cut: neither shorter than an instruction nor with padding.
    for k in [8, 24, 40] {
        assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F32, k)), None);
    }
    assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F32, 48)), Some("m16n8k16"));
    assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F64, 32)), None);
    assert_eq!(name(&SM_80, kind(DType::I8, DType::I8, DType::I64, 32)), None);
}

/// The fragments of AMD's instructions as the manuals of CDNA3 and RDNA3 draw them. Those of 64 lanes get the factors
/// exchanged, so what is the column of the manual's result is our row.
#[test]
fn fragments_of_amd_are_those_of_the_manuals() {
    for m in [CDNA2, CDNA3, CDNA4, RDNA3, RDNA4].concat() {
        let (across, k, lanes) = (1u32 << m.m, 1u32 << m.k, 1u32 << m.lane_bits());
        let threads = Threads { lane_bits: m.lane_bits(), warp_bits: 0 };
        let tiles = Tiles::choose(m, [across, across], threads, false).unwrap();
        let wave = matches!(m.form, FragmentForm::Wmma | FragmentForm::TransposedWmma);
        let each = if wave { k } else { across * k / lanes };
        for side in [0, 1] {
            let layout = tiles.operand(side, k).layout().unwrap();
            assert_eq!(layout.registers() as u32, each, "{}", m.name);
            for (lane, i) in (0..lanes).flat_map(|l| (0..each).map(move |i| (l, i))) {
                let along = if wave { i } else { each * (lane / across) + i };
                let mut expected = vec![lane % across, along];
                if side == 1 {
                    expected.reverse();
                }
                assert_eq!(layout.coords(i as usize, lane, 0), expected, "{} {side} {lane} {i}", m.name);
            }
        }
        let sums = tiles.accumulator().layout().unwrap();
        for (lane, i) in (0..lanes).flat_map(|l| (0..across * across / lanes).map(move |i| (l, i))) {
            let (high, low) = (lane / across, lane % across);
            let expected = match (m.form, m.acc) {
                (FragmentForm::Wmma, _) => vec![2 * i + lane / 16, lane % 16],
                (FragmentForm::TransposedWmma, _) => vec![lane % 16, 2 * i + lane / 16],
                (FragmentForm::SplitWmma, _) => vec![low, 8 * high + i],
                (_, DType::F64) => vec![low, 4 * i + high],
                (_, _) if across == 16 => vec![low, 4 * high + i],
                (_, _) => vec![low, 8 * (i / 4) + 4 * high + i % 4],
            };
            assert_eq!(sums.coords(i as usize, lane, 0), expected, "{} {lane} {i}", m.name);
        }
        assert_eq!(Tiles::of(m, [across, across], &sums), Some(tiles));
    }
}

/// Of a pair of instructions, a lane has neighbours along K, those of both operands alike, and all pairs together have all
/// of K.
#[test]
fn pairs_of_instructions_exchange_two_bits_of_k() {
    let mut seen = 0;
    for m in [CDNA2, CDNA3].concat() {
        let (across, k, lanes) = (1u32 << m.m, 4u32 << m.k, 1u32 << m.lane_bits());
        let threads = Threads { lane_bits: m.lane_bits(), warp_bits: 0 };
        let tiles = Tiles::choose(m, [across, across], threads, false).unwrap();
        assert!(!tiles.pairs(1 << m.k, 16), "{}: there is no second instruction", m.name);
        if !tiles.pairs(k, 16) {
            continue;
        }
        seen += 1;
        let [left, right] = [0, 1].map(|side| tiles.paired().operand(side, k).layout().unwrap());
        let each = (across * (1 << m.k) / lanes) as usize;
        let mut all = vec![0; (across * k) as usize];
        for lane in 0..lanes {
            let along = |n: usize| left.coords(n, lane, 0)[1];
            for n in 0..left.registers() {
                let [row, at] = left.coords(n, lane, 0)[..] else { panic!("a matrix") };
                assert_eq!(right.coords(n, lane, 0), [at, row], "{}", m.name);
                all[(row * k + at) as usize] += 1;
                if n % (2 * each) > 0 {
                    assert_eq!(at, along(n - 1) + 1, "{}: neighbours in two instructions", m.name);
                }
            }
        }
        assert!(all.iter().all(|n| *n == 1), "{}", m.name);
    }
    assert!(seen > 4, "{seen}");
}

/// What one product gives is the left factor of the next without a move, of the halves of CDNA.
#[test]
fn the_result_of_a_product_of_amd_is_a_factor_of_the_next() {
    for m in [CDNA3, RDNA4].into_iter().flatten().filter(|m| m.operands.contains(&DType::F16)) {
        let threads = Threads { lane_bits: m.lane_bits(), warp_bits: 2 };
        let tiles = |columns: u32| Tiles::choose(*m, [128, columns], threads, true).unwrap();
        let (scores, next) =
            (tiles(64).accumulator().layout().unwrap(), tiles(128).operand(0, 64).layout().unwrap());
        let way = in_warp(&scores, &next, 2);
        assert!(matches!(way, Some(Conversion::Same | Conversion::Registers(_))), "{}: {way:?}", m.name);
    }
    // Each lane of RDNA3 has half of K, and gets the other half from one lane: 16 words of two elements.
    let [transposed] = RDNA3
        .iter()
        .filter(|m| m.form == FragmentForm::TransposedWmma && m.operands.contains(&DType::F16))
        .collect::<Vec<_>>()[..]
    else {
        panic!("RDNA3 has one such instruction of f16");
    };
    let tiles = |columns: u32| {
        let threads = Threads { lane_bits: transposed.lane_bits(), warp_bits: 3 };
        Tiles::choose(*transposed, [128, columns], threads, true).unwrap()
    };
    let scores = tiles(64).accumulator().layout().unwrap();
    let wanted = tiles(64).operand(0, 64).layout().unwrap();
    let Some(Conversion::Shuffle(plan)) = in_warp(&scores, &wanted, 2) else {
        panic!("it is a shuffle");
    };
    assert_eq!(plan.cost_of(16), 16);
    assert!(plan.rounds.iter().all(|r| r.lane_xor & !16 == 0));
}

/// The sums of a thread as the PTX manual draws them for `wgmma`.
#[test]
fn sums_of_groups_are_those_of_the_manual() {
    for (shape, bits, first) in [
        ([64, 256], 2, [[16, 0], [32, 0]].as_slice()),
        ([128, 64], 3, &[[16, 0], [32, 0], [64, 0]]),
        ([64, 64], 3, &[[16, 0], [32, 0], [0, 32]]),
        ([64, 8], 2, &[[16, 0], [32, 0]]),
    ] {
        let tiles = Tiles::choose(group(DType::F16), shape, threads(bits), false).unwrap();
        let sums = tiles.accumulator().layout().unwrap();
        let warps: Vec<Vec<u32>> =
            (0..bits as usize).map(|i| sums.atom().basis(InDim::Warp, i).unwrap()).collect();
        assert_eq!(warps, first, "{shape:?}");
        for (lane, i) in (0..32).flat_map(|l| (0..sums.registers() as u32).map(move |i| (l, i))) {
            let expected = vec![lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2];
            assert_eq!(sums.coords(i as usize, lane, 0), expected, "{shape:?}, lane {lane}, {i}");
        }
        assert_eq!(Tiles::of(group(DType::F16), shape, &sums), Some(tiles));
    }
}

#[test]
fn groups_want_rows_for_four_warps() {
    let choose = |shape: [u32; 2], bits: u32, rows: bool| {
        Tiles::choose(group(DType::BF16), shape, threads(bits), rows).map(|t| t.matrix.n)
    };
    assert_eq!(choose([128, 128], 3, true), Some(7));
    assert_eq!(choose([128, 128], 2, false), Some(7));
    assert_eq!(choose([64, 512], 2, false), Some(8), "an instruction has at most 256 columns");
    assert_eq!(choose([192, 96], 2, false), Some(5), "96 columns are three times 32");
    assert_eq!(choose([64, 128], 3, true), Some(6), "groups share columns where rows are few");
    // Too few warps, rows or columns; work done twice.
    assert_eq!(choose([128, 128], 1, false), None);
    assert_eq!(choose([32, 128], 2, false), None);
    assert_eq!(choose([64, 4], 2, false), None);
    assert_eq!(choose([64, 8], 3, false), None);
    // What a warp holds of a tile with fewer rows is nothing that a group holds.
    let warps = Tiles::choose(matrix(DType::F16), [16, 8], threads(3), false).unwrap();
    assert_eq!(Tiles::of(group(DType::F16), [16, 8], &warps.accumulator().layout().unwrap()), None);
}

#[test]
fn the_result_of_a_group_is_a_factor_of_the_next() {
    let tiles = |columns: u32| Tiles::choose(group(DType::F16), [128, columns], threads(3), true).unwrap();
    let (scores, next) =
        (tiles(64).accumulator().layout().unwrap(), tiles(128).operand(0, 64).layout().unwrap());
    let way = in_warp(&scores, &next, 2);
    assert!(matches!(way, Some(Conversion::Same | Conversion::Registers(_))), "{way:?}");
}

/// Where the PTX manual puts an element: lines of `span` bytes, of which eight make a pattern, with the bits of their
/// number changing chunks of 16 bytes; then what follows along a line.
fn of_manual(span: u32, lines: u32, line: u32, byte: u32) -> u32 {
    let near = byte / span * span * lines + line * span + byte % span;
    near ^ (near >> 7 & 7 & (span / 16 - 1)) << 4
}

#[test]
fn factors_of_groups_lie_in_the_orders_of_the_manual() {
    // A tile, the side, the axis of neighbours, bytes of a line.
    for (d, [m, n, k], side, fast, span) in [
        (DType::F16, [128, 128, 64], 0, 1, 128),
        (DType::F16, [128, 128, 128], 0, 1, 128),
        (DType::F16, [128, 128, 32], 0, 1, 64),
        (DType::F16, [64, 64, 16], 0, 1, 32),
        (DType::F16, [128, 128, 64], 0, 0, 128),
        (DType::F16, [128, 128, 64], 1, 1, 128),
        (DType::F16, [128, 256, 64], 1, 1, 128),
        (DType::F16, [64, 32, 64], 1, 1, 64),
        (DType::F16, [64, 64, 64], 1, 0, 128),
        (DType::I8, [64, 64, 128], 1, 0, 128),
        (DType::I8, [64, 64, 32], 0, 1, 32),
    ] {
        let tiles = Tiles::choose(group(d), [m, n], threads(2), false).unwrap();
        let own = if side == 0 { [m, k] } else { [k, n] };
        let bytes = d.bytes() as u32;
        let held = Layout::blocked(&own, &[fast, 1 - fast], 16 / bytes, threads(2));
        let (swizzled, bases) = WgmmaShared::order(fast, &tiles, (side, d), k, true);
        assert_eq!((swizzled.span, swizzled.across), (span, (fast == side)), "{d} {own:?}");
        assert_eq!(WgmmaShared::find(&tiles, side, d, k, &bases), Some(swizzled), "{d} {own:?}");
        let bits = own.map(|n: u32| n.trailing_zeros());
        for (row, column) in (0..own[0]).flat_map(|r| (0..own[1]).map(move |c| (r, c))) {
            let at = [row, column];
            let expected = of_manual(span, own[1 - fast], at[1 - fast], at[fast] * bytes);
            assert_eq!(image(&bases, &bits, &at) as u32 * bytes, expected, "{d} {own:?} {at:?}");
        }
        // Stores of 16 bytes meet in no bank.
        let list = |b: InDim| -> Vec<u32> {
            let atom = held.atom();
            let each =
                (0..atom.bits(b)).map(|i| image(&bases, &bits, &atom.basis(b, i).unwrap()) as u32 * bytes);
            each.collect()
        };
        assert_eq!(bank_conflict_ways(&list(InDim::Lane), 16, 32), 1, "{d} {own:?}");
    }
    // Bytes across K are moved: only halves may be neighbours there.
    let tiles = Tiles::choose(group(DType::I8), [64, 64], threads(2), false).unwrap();
    assert!(!WgmmaShared::order(1, &tiles, (1, DType::I8), 64, true).0.across);
}

#[test]
fn atoms_of_few_columns_share_the_lines_of_the_manual() {
    for n in [48, 80, 96, 144, 160, 176, 224, 240] {
        let tiles = Tiles::choose(group(DType::F16), [64, n], threads(2), false).unwrap();
        let (swizzled, bases) = WgmmaShared::order(1, &tiles, (1, DType::F16), 64, true);
        assert_eq!((swizzled.span, swizzled.across), (128, true), "{n}");
        assert_eq!(WgmmaShared::find(&tiles, 1, DType::F16, 64, &bases), Some(swizzled), "{n}");
        assert_eq!(swizzled_elements(&[64, n], &bases), u64::from(64 * n.next_multiple_of(64)), "{n}");
        let atom = 1u32 << n.trailing_zeros().min(6);
        let bits = [6, atom.trailing_zeros()];
        for (row, column) in (0..64).flat_map(|r| (0..n).map(move |c| (r, c))) {
            let [group, of_atom] = atom_place(&bases, &bits, (n / atom) as usize, (column / atom) as usize);
            let place = group + (image(&bases, &bits, &[row, column % atom]) ^ of_atom);
            assert_eq!(place as u32 * 2, of_manual(128, 64, row, 2 * column), "{n} {row} {column}");
        }
        // Those of two groups of warps, or of a tile that is stored in another order, have lines of their own.
        let apart = WgmmaShared::order(1, &tiles, (1, DType::F16), 64, false).0;
        assert_eq!(apart.span, 2 * atom, "{n}");
        let tiles = Tiles::choose(group(DType::F16), [64, n], threads(3), false).unwrap();
        assert_eq!(
            WgmmaShared::order(1, &tiles, (1, DType::F16), 64, true).1.len(),
            6 + bits[1] as usize,
            "{n}"
        );
    }
}
