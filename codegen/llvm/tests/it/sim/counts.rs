//! Owns what is counted, and that a launch can be repeated.

use super::faults::{device_memory, two_barriers, write_then_read};
use super::*;

kernel!(strided, l, {
    // Bytes of an access, then bytes from lane to lane.
    let (bytes, stride) = (l.arg(1) as i32, l.arg(3) as u32);
    let from = [0; 16];
    if l.tid() < l.width() {
        unsafe { (CALLS.shared_store)(l.0, l.tid() * stride, bytes, from.as_ptr(), 1) };
        unsafe { (CALLS.store)(l.0, BASE + u64::from(l.tid() * stride), bytes, from.as_ptr(), 2) };
    }
});

#[test]
fn bank_conflicts_and_sectors_are_counted() {
    let width = SIM_32.warp_size;
    let banks = SIM_32.shared_banks;
    // Bytes, stride; steps, the least steps, sectors.
    let cases = [
        ([4, 4], [1, 1, 4]),
        ([4, 8], [2, 1, 8]),
        ([4, 32], [8, 1, 32]),
        ([4, 36], [1, 1, 32]),
        ([2, 2], [1, 1, 2]),
        ([8, 8], [2, 2, 8]),
        ([16, 16], [4, 4, 16]),
        ([16, 32], [8, 4, 32]),
        ([4, 4 * u64::from(banks)], [u64::from(width), 1, 32]),
    ];
    for ([bytes, stride], expected) in cases {
        for seed in 0..20 {
            let args = [BASE, bytes, width.into(), stride];
            let launch = Launch {
                banks: Some(banks),
                shared_bytes: 4 * banks * width,
                ..launch(strided, &args, 1, width, seed)
            };
            let s = go(&launch, &Buffer::new(vec![0; 1024])).expect("no fault");
            assert_eq!((s.shared_requests, s.global_requests, s.shared_accesses), (1, 1, width.into()));
            let found = [s.shared_wavefronts, s.shared_wavefronts_least, s.global_sectors];
            assert_eq!(found, expected, "{bytes} bytes, stride {stride}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_counts_and_faults() {
    let width = SIM_64.warp_size;
    for bad in [0, 1] {
        let args = [BASE, 1024, width.into(), bad];
        for kernel in [write_then_read as KernelFn, two_barriers, device_memory] {
            let one = |seed| {
                let banks = Some(SIM_64.shared_banks);
                let launch = Launch { banks, ..launch(kernel, &args, 2, width, seed) };
                go(&launch, &Buffer::new(vec![0; 1024]))
            };
            (0..5).for_each(|seed| assert_eq!(one(seed), one(seed)));
        }
    }
}
