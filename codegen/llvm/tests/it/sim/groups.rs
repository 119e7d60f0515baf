//! Owns what the simulated target finds wrong with products of warpgroups and with channels: kernels beside twins that
//! lack one thing, which the last argument names.

use super::*;
use tk_gpu::target::mma::all;
use tk_llvm::sim::{SimDimension, SimTensorMap};

struct Calls {
    multiply: unsafe extern "C" fn(Ctx, i32, i32, i32, i32, u64, u64, i32, *const u8, *mut u8, i32),
    commit: unsafe extern "C" fn(Ctx),
    wait: unsafe extern "C" fn(Ctx, i32, *mut u8, i32, i32),
    fence: unsafe extern "C" fn(Ctx),
    begin: unsafe extern "C" fn(Ctx, u32, i32, i32),
    arrive: unsafe extern "C" fn(Ctx, u32, i32, i32),
    phase: unsafe extern "C" fn(Ctx, u32, u32, i32),
    copy: unsafe extern "C" fn(Ctx, u64, i32, i32, i32, i32, i32, u32, u32, i32),
    store: unsafe extern "C" fn(Ctx, u64, i32, i32, i32, i32, i32, u32, i32, i32),
    stored: unsafe extern "C" fn(Ctx, i32, i32),
}

#[allow(clippy::missing_transmute_annotations, reason = "the fields have the types")]
static OWN: LazyLock<Calls> = LazyLock::new(|| {
    let find = |name: &str| symbols().iter().find(|s| s.0 == name).expect("a symbol").1 as *const ();
    macro_rules! call {
        // SAFETY: the table of `symbols` gives this signature.
        ($name:literal) => {
            unsafe { std::mem::transmute::<*const (), _>(find($name)) }
        };
    }
    Calls {
        multiply: call!("tk_sim_group_multiply"),
        commit: call!("tk_sim_group_commit"),
        wait: call!("tk_sim_group_wait"),
        fence: call!("tk_sim_proxy_fence"),
        begin: call!("tk_sim_phase_begin"),
        arrive: call!("tk_sim_phase_arrive"),
        phase: call!("tk_sim_phase_wait"),
        copy: call!("tk_sim_tensor_copy"),
        store: call!("tk_sim_tensor_store"),
        stored: call!("tk_sim_store_wait"),
    }
});

/// What a twin lacks.
const NOTHING: u64 = 0;
const FENCE: u64 = 1;
const WAIT: u64 = 2;
const PATIENCE: u64 = 3;
const RELEASE: u64 = 4;
const ARRIVAL: u64 = 5;
const COUNT: u64 = 6;

/// Two halves that are 1.
const ONES: u32 = 0x3C00_3C00;
/// The right factor, behind 64 x 16 halves; barriers; the chunk of a channel.
const RIGHT: u32 = 2048;
const FULL: u32 = 3072;
const FREE: u32 = 3080;

/// A factor in lines of 32 bytes.
fn descriptor(at: u32) -> u64 {
    u64::from(at >> 4) | 1 << 16 | 16 << 32 | 3 << 62
}

kernel!(multiplies, l, {
    let lacks = l.arg(3);
    let t = l.tid();
    (0..4).for_each(|i| l.put(4 * (4 * t + i), ONES, 1));
    if t < 64 {
        l.put(RIGHT + 4 * t, ONES, 1);
    }
    if lacks != FENCE {
        unsafe { (OWN.fence)(l.0) };
    }
    l.barrier(2);
    let mut sums = [2.0f32; 4];
    let at = sums.as_mut_ptr().cast::<u8>();
    let half = DType::ALL.iter().position(|d| *d == DType::F16).expect("a type") as i32;
    let kind = all().position(|m| m.name == "m64k16").expect("an instruction") as i32;
    let (a, b) = (descriptor(0), descriptor(RIGHT));
    unsafe { (OWN.multiply)(l.0, kind, half, half, 8, a, b, 0, std::ptr::null(), at, 7) };
    unsafe { (OWN.commit)(l.0) };
    if lacks == PATIENCE && t == 5 {
        l.put(16, 0, 8);
    }
    let early = sums[0];
    unsafe { (OWN.wait)(l.0, i32::from(lacks == WAIT), at, 4, 9) };
    // Sixteen products of ones.
    l.store(BASE + 4 * u64::from(t), u32::from(early.is_nan() && sums == [18.0; 4]), 10);
});

kernel!(brings, l, {
    let (lacks, map) = (l.arg(3), l.arg(4));
    let t = l.tid();
    if t == 0 {
        unsafe { (OWN.begin)(l.0, FULL, 1, 1) };
        unsafe { (OWN.begin)(l.0, FREE, WARPS as i32, 1) };
    }
    l.barrier(2);
    for iteration in 0..2u32 {
        if t == 0 {
            if lacks != RELEASE {
                unsafe { (OWN.phase)(l.0, FREE, 1 ^ iteration, 3) };
            }
            if lacks == COUNT {
                unsafe { (OWN.arrive)(l.0, FULL, 256, 4) };
            }
            unsafe { (OWN.arrive)(l.0, FULL, 256, 4) };
            unsafe { (OWN.copy)(l.0, map, 0, iteration as i32 * 6, 0, 0, 0, 0, FULL, 5) };
        }
        if lacks != WAIT {
            unsafe { (OWN.phase)(l.0, FULL, iteration, 6) };
        }
        // Line 1 of the box, chunk 0; from row 8 on there is nothing.
        let found = l.get(32, 7);
        let expected = if iteration == 0 { 8 } else { 7 * 8 };
        if found != expected {
            l.store(BASE + 4 * (256 + u64::from(t)), 1, 9);
        }
        if l.get((32 * 7) ^ 16, 7) != if iteration == 0 { 7 * 8 } else { 0 } {
            l.store(BASE + 4 * (256 + u64::from(t)), 2, 9);
        }
        l.warp_barrier(8);
        if t.is_multiple_of(32) && (lacks != ARRIVAL || t > 0) {
            unsafe { (OWN.arrive)(l.0, FREE, 0, 8) };
        }
    }
});

kernel!(stores, l, {
    let (lacks, map) = (l.arg(3), l.arg(4));
    let t = l.tid();
    if t < 64 {
        l.put(4 * t, t + 100, 1);
    }
    if lacks != FENCE {
        unsafe { (OWN.fence)(l.0) };
    }
    l.barrier(2);
    if t == 0 {
        unsafe { (OWN.store)(l.0, map, 0, 0, 0, 0, 0, 0, 0, 3) };
        if lacks != WAIT {
            unsafe { (OWN.stored)(l.0, i32::from(lacks == PATIENCE), 4) };
        }
        // The first word of the box.
        let found = l.load(BASE, 5);
        l.store(BASE + 4 * 256, found, 6);
    }
});

fn launched(kernel: KernelFn, lacks: u64, seed: u64) -> (Result<Statistics, Fault>, Vec<u32>) {
    // Rows of eight words, of which each holds its number.
    let mut buffer = Buffer::new((0..64).chain(std::iter::repeat_n(0, 1024)));
    let mut dimensions = [SimDimension::NONE; 5];
    dimensions[0] = SimDimension { extent: 16, step: 2 };
    dimensions[1] = SimDimension { extent: 8, step: 32 };
    let map = SimTensorMap { address: BASE, dimensions, bytes: 2, lines: 8, span: 32 };
    let args = [BASE, 1024, 32, lacks, std::ptr::from_ref(&map) as u64];
    let launch = Launch { shared_bytes: 4096, ..launch(kernel, &args, 1, 32, seed) };
    let result = go(&launch, &buffer);
    (result, buffer.read())
}

/// Every seed finds what is missing, and nothing else.
fn finds(kernel: KernelFn, lacks: u64, kinds: &[FaultKind], loc: i32) {
    for seed in 0..20 {
        match launched(kernel, lacks, seed).0 {
            Err(fault) if kinds.contains(&fault.kind) => {
                assert!(fault.loc == loc || fault.other == Some(loc), "{lacks}, seed {seed}: {fault}");
            }
            other => panic!("{lacks}, seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn a_product_of_a_group_is_there_when_it_is_waited_for() {
    for seed in 0..20 {
        let (result, memory) = launched(multiplies, NOTHING, seed);
        result.unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        assert_eq!(memory[..128], [1; 128], "seed {seed}");
        // Whoever leaves it on its way finds no numbers.
        let (result, memory) = launched(multiplies, WAIT, seed);
        result.unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        assert_eq!(memory[..128], [0; 128], "seed {seed}");
    }
}

#[test]
fn factors_that_are_not_made_known_or_change_are_found() {
    finds(multiplies, FENCE, &[FaultKind::Race], 7);
    finds(multiplies, PATIENCE, &[FaultKind::Race], 8);
}

#[test]
fn a_channel_brings_boxes_in_order() {
    for seed in 0..40 {
        let (result, memory) = launched(brings, NOTHING, seed);
        result.unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        assert_eq!(memory[256..384], [0; 128], "seed {seed}");
    }
}

#[test]
fn channels_that_lack_something_are_found() {
    // A chunk is read before it is full, or filled before it is free.
    finds(brings, WAIT, &[FaultKind::Race, FaultKind::Unwritten], 7);
    finds(brings, RELEASE, &[FaultKind::Race, FaultKind::Call], 5);
    // A warp does not release; somebody arrives who is not counted.
    finds(brings, ARRIVAL, &[FaultKind::Deadlock], 3);
    finds(brings, COUNT, &[FaultKind::Call, FaultKind::Race], 4);
}

#[test]
fn what_is_stored_arrives_when_it_is_waited_for() {
    let (mut early, mut gone) = (0, 0);
    for seed in 0..40 {
        let (result, memory) = launched(stores, NOTHING, seed);
        result.unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        assert_eq!((memory[0], memory[256]), (100, 100), "seed {seed}");
        // What has left shared memory comes at last, but maybe not before somebody looks.
        let (result, memory) = launched(stores, PATIENCE, seed);
        result.unwrap_or_else(|f| panic!("seed {seed}: {f}"));
        assert_eq!(memory[0], 100, "seed {seed}");
        early += u32::from(memory[256] == 0);
        // Shared memory is gone with the lane.
        if let Err(fault) = launched(stores, WAIT, seed).0 {
            assert_eq!((fault.kind, fault.loc), (FaultKind::Call, 3), "seed {seed}: {fault}");
            gone += 1;
        }
    }
    assert!(early > 0 && gone > 0, "{early} of 40 look too early, {gone} return too early");
    finds(stores, FENCE, &[FaultKind::Race], 1);
}
