//! Owns what matrix instructions ask for: fragments as the PTX manual draws them, grids of warps, and orders of shared
//! memory in which neither side meets in banks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tk_layout::convert::in_warp;
use tk_layout::layout::{Layout, Threads};
use tk_layout::linear::{Conversion, InDim, bank_conflict_ways};
use tk_layout::matrix::{ALL, Fragment, Kind, Matrix, Tiles, find};
use tk_layout::operand::{Read, neighbours, order, read, reader};
use tk_layout::shared::image;
use tk_layout::spec::{SIM_32, SIM_64, SM_80, SM_90A};
use tk_ops::DType;

fn matrix(d: DType) -> Matrix {
    *ALL.iter().find(|m| m.factors.contains(&d)).unwrap()
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
        let tiles = Tiles::choose(m, [1 << m.m, 1 << m.n], threads(0), false);
        for side in [0, 1] {
            let layout = tiles.factor(side, 1 << m.k).layout().unwrap();
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
    let choose = |m_: u32, n: u32, bits: u32, rows: bool| Tiles::choose(m, [m_, n], threads(bits), rows);
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
        let tiles = Tiles::choose(m, shape, threads(bits), rows);
        assert_eq!(Tiles::of(m, shape, &tiles.accumulator().layout().unwrap()), Some(tiles));
        let other = Layout::blocked(&shape, &[1, 0], 4, threads(bits));
        assert_eq!(Tiles::of(m, shape, &other), None);
    }
}

#[test]
fn the_result_of_a_product_is_a_factor_of_the_next() {
    for (rows, bits) in [(128, 3), (64, 2), (96, 1), (16, 0)] {
        let m = matrix(DType::F16);
        let scores = Tiles::choose(m, [rows, 64], threads(bits), true).accumulator().layout().unwrap();
        let next = Tiles::choose(m, [rows, 128], threads(bits), true).factor(0, 64).layout().unwrap();
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
    let way = read(f, bases, bytes);
    let r = reader(f, way, bytes).unwrap();
    let rows: Vec<u32> = r.lane.iter().map(|b| at(b)).collect();
    let elements = |list: &[[u32; 2]]| list.iter().map(|b| i64::from(at(b) / bytes)).collect::<Vec<i64>>();
    let threads = elements(&[&r.lane[..], f.warp()].concat());
    let most = (16 / bytes).ilog2() as usize;
    let width = match way {
        Read::Own => bytes << neighbours(f, &elements(&r.rest), &threads, most).len(),
        Read::Rows | Read::Columns => 16,
    };
    (stores, bank_conflict_ways(&rows, width, 32))
}

/// A factor of a kind of product, stored from a layout in which neighbours along dimension `fast` are 16 bytes.
fn stored(d: DType, shape: [u32; 3], bits: u32, side: usize, fast: usize) -> (Read, (u32, u32)) {
    let [m, n, k] = shape;
    let f = Tiles::choose(matrix(d), [m, n], threads(bits), false).factor(side, k);
    let own = if side == 0 { [m, k] } else { [k, n] };
    let bytes = d.bytes() as u32;
    let held = Layout::blocked(&own, &[fast, 1 - fast], 16 / bytes, threads(bits));
    let bases = order(&held, &f, bytes, &SM_80);
    (read(&f, &bases, bytes), ways(&held, &f, &bases, bytes))
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
        // Along K as they are, across K turned around.
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
            assert_eq!(way, Read::Own, "{d}, factor {side} turned around");
            assert_eq!(loads, 1, "{d}, factor {side} turned around");
        }
    }
    assert_eq!(stored(DType::F64, [64, 64, 16], 2, 0, 1).0, Read::Own);
}

#[test]
fn instructions_by_types_and_targets() {
    let kind = |a, b, sum, k| Kind { factors: [a, b], sum, precision: None, k };
    let name = |spec, kind| find(spec, kind).map(|m| m.name);
    let half = kind(DType::F16, DType::F16, DType::F32, 32);
    for spec in [&SM_80, &SM_90A, &SIM_32] {
        assert_eq!(name(spec, half), Some("m16n8k16"));
        assert_eq!(name(spec, kind(DType::BF16, DType::BF16, DType::BF16, 16)), Some("m16n8k16"));
        assert_eq!(name(spec, kind(DType::U8, DType::U8, DType::I32, 64)), Some("m16n8k32"));
        assert_eq!(name(spec, kind(DType::F64, DType::F64, DType::F64, 4)), Some("m8n8k4"));
        let single = kind(DType::F32, DType::F32, DType::F32, 8);
        assert_eq!(name(spec, single), None, "all bits of an f32 count");
        assert_eq!(name(spec, Kind { precision: Some("tf32"), ..single }), Some("m16n8k8"));
        assert_eq!(name(spec, Kind { precision: Some("tf32x3"), ..single }), Some("m16n8k8"));
    }
    let narrow = kind(DType::F8E4M3, DType::F8E5M2, DType::F32, 32);
    assert_eq!((name(&SM_80, narrow), name(&SM_90A, narrow)), (None, Some("m16n8k32")));
    assert_eq!(name(&SIM_64, half), None, "matrices are those of narrow warps");
    // A sum is not cut: neither shorter than an instruction nor with padding.
    for k in [8, 24, 40] {
        assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F32, k)), None);
    }
    assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F32, 48)), Some("m16n8k16"));
    assert_eq!(name(&SM_80, kind(DType::F16, DType::F16, DType::F64, 32)), None);
    assert_eq!(name(&SM_80, kind(DType::I8, DType::I8, DType::I64, 32)), None);
}
