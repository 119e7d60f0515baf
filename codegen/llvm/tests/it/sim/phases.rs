//! Owns what the simulated target finds wrong with loops whose halves of the warps are in opposite phases: the schedule of
//! `passes/software_pipeline/opposite_phases.rs`, beside twins that lack one thing, which the last argument names.

use super::*;

/// What a twin does otherwise.
const NOTHING: u64 = 0;
/// The tile of the next iteration goes to the stage that is read.
const ONE_STAGE: u64 = 1;
/// It is stored in the phase that multiplies, as without opposite phases.
const LATE_STORE: u64 = 2;
/// The upper half does not wait before the loop.
const NO_UPPER: u64 = 3;
/// The lower half does not wait after the loop.
const NO_LOWER: u64 = 4;
/// Nothing waits for the first tile.
const NO_FIRST: u64 = 5;
/// The phase in which memory is accessed has no end.
const NO_END: u64 = 6;

/// What a lane stores for an iteration.
fn element(i: u32, lane: u32) -> u32 {
    1000 * i + lane + 1
}

kernel!(in_phases, l, {
    let (t, width, twin) = (l.tid(), l.width(), l.arg(3));
    let (iterations, lanes) = (l.program(), WARPS * l.width());
    let upper = t >= lanes / 2;
    let stage = |i: u32| if twin == ONE_STAGE { 0 } else { (i % 2) * 4 * lanes };
    l.put(4 * t, element(0, t), 1);
    if twin != NO_FIRST {
        l.barrier(2);
    }
    if upper && twin != NO_UPPER {
        l.barrier(3);
    }
    let mut right = true;
    for i in 0..iterations {
        for others in 0..WARPS {
            let of = (t + others * width) % lanes;
            right &= l.get(stage(i) + 4 * of, 4) == element(i, of);
        }
        if twin != LATE_STORE {
            l.put(stage(i + 1) + 4 * t, element(i + 1, t), 5);
        }
        if twin != NO_END {
            l.barrier(6);
        }
        if twin == LATE_STORE {
            l.put(stage(i + 1) + 4 * t, element(i + 1, t), 5);
        }
        l.barrier(7);
    }
    if !upper && twin != NO_LOWER {
        l.barrier(8);
    }
    // What comes after the loop may have the memory that it used.
    l.put(4 * t, 0, 9);
    l.put(4 * (t + lanes), 0, 9);
    l.store(BASE + 4 * u64::from(iterations * lanes + t), u32::from(right), 10);
});

/// The faults of a twin, in programs with 0 to 4 iterations.
fn faults(width: u32, seed: u64, twin: u64) -> Result<Vec<u32>, Fault> {
    const PROGRAMS: u32 = 5;
    let words = PROGRAMS * WARPS * width;
    let mut buffer = Buffer::new(vec![0; words as usize]);
    let args = [BASE, words.into(), width.into(), twin];
    let launch =
        Launch { timeout: Some(Duration::from_secs(3)), ..launch(in_phases, &args, PROGRAMS, width, seed) };
    go(&launch, &buffer)?;
    Ok(buffer.read())
}

#[test]
fn the_schedule_of_opposite_phases_has_no_race_and_its_twins_have_faults() {
    for width in widths() {
        for seed in 0..20 {
            let found = faults(width, seed, NOTHING).unwrap_or_else(|f| panic!("{width}, {seed}: {f}"));
            assert!(found.iter().all(|right| *right == 1), "{width}, {seed}");
            for twin in [ONE_STAGE, LATE_STORE, NO_FIRST, NO_END] {
                let fault = faults(width, seed, twin).expect_err("a race");
                // What is read too early may not have been written at all.
                let kinds = [FaultKind::Race, FaultKind::Unwritten];
                assert!(kinds.contains(&fault.kind), "{width}, {seed}, {twin}: {fault}");
            }
            // Halves with different numbers of barriers wait for warps that have returned.
            for twin in [NO_UPPER, NO_LOWER] {
                let fault = faults(width, seed, twin).expect_err("a wait in vain");
                let kinds = [FaultKind::Returned, FaultKind::Race, FaultKind::Deadlock];
                assert!(kinds.contains(&fault.kind), "{width}, {seed}, {twin}: {fault}");
            }
        }
    }
}
