//! Owns kernels with a fault that every seed finds, each beside a twin without it: the same kernel, whose last argument
//! says whether something is wrong.

use super::*;

/// Every lane writes a word of shared memory.
fn fill(l: Lane) {
    l.put(4 * l.tid(), l.tid(), 90);
    l.barrier(91);
}

kernel!(global_end, l, {
    let end = BASE + 4 * l.arg(1);
    if l.tid() == 3 {
        l.store(if l.bad() { end } else { end - 4 }, 1, 7);
    }
});

kernel!(shared_end, l, {
    if l.tid() == 3 {
        l.put(if l.bad() { 2048 } else { 2044 }, 1, 7);
    }
});

kernel!(misaligned, l, {
    let mut to = [0; 16];
    let at = if l.bad() { 8 } else { 16 };
    if l.tid() == 3 {
        unsafe { (CALLS.load)(l.0, BASE + at, 16, to.as_mut_ptr(), 7) };
    }
});

kernel!(unwritten, l, {
    let last = WARPS * l.width() - 1;
    if l.tid() < last || !l.bad() {
        l.put(4 * l.tid(), 1, 1);
    }
    l.barrier(2);
    l.get(4 * ((l.tid() + 1) % (last + 1)), 7);
});

kernel!(asserts, l, {
    if l.bad() && l.tid() == 3 {
        unsafe { (CALLS.assert)(l.0, 42, 5, 7) };
    }
});

#[test]
fn accesses_outside_misaligned_or_too_early_are_found() {
    for (kernel, kind) in [
        (global_end as KernelFn, FaultKind::Global),
        (shared_end, FaultKind::Shared),
        (misaligned, FaultKind::Misaligned),
        (unwritten, FaultKind::Unwritten),
        (asserts, FaultKind::Assert { message: 42, element: 5 }),
    ] {
        for fault in planted(kernel, &[kind]) {
            assert_eq!(fault.loc, 7, "{fault}");
            assert!(fault.lane == Some(3) || kind == FaultKind::Unwritten, "{fault}");
        }
    }
}

kernel!(write_then_read, l, {
    fill(l);
    l.put(4 * l.tid(), 1, 1);
    if !l.bad() {
        l.barrier(3);
    }
    l.get(4 * ((l.tid() + l.width()) % (WARPS * l.width())), 2);
});

kernel!(read_then_write, l, {
    // One lane reads what another warp writes.
    fill(l);
    if l.tid() == 3 {
        l.get(4 * l.width(), 1);
    }
    if !l.bad() {
        l.barrier(3);
    }
    if l.tid() == l.width() {
        l.put(4 * l.width(), 1, 2);
    }
});

kernel!(two_writes, l, {
    if l.tid() == 1 || (l.bad() && l.tid() == 2) {
        l.put(0, 1, if l.tid() == 1 { 1 } else { 2 });
    }
});

kernel!(neighbours, l, {
    // Halves of a word are two places: both lanes may write, but not the whole word.
    let t = l.tid();
    let bytes = if l.bad() && t == 1 { 4 } else { 2 };
    let at = if l.bad() && t == 1 { 0 } else { 2 * t };
    if t < 2 {
        unsafe { (CALLS.shared_store)(l.0, at, bytes, [0; 4].as_ptr(), 1 + t as i32) };
    }
});

kernel!(within_a_warp, l, {
    fill(l);
    let (t, n) = (l.tid(), l.width());
    l.put(4 * t, 1, 1);
    if !l.bad() {
        l.warp_barrier(3);
    }
    l.get(4 * (t / n * n + (t + 1) % n), 2);
});

kernel!(warp_barrier_is_not_enough, l, {
    fill(l);
    let (t, n) = (l.tid(), l.width());
    if t == 0 {
        l.put(0, 1, 1);
    }
    l.warp_barrier(3);
    if t == if l.bad() { n } else { n - 1 } {
        l.get(0, 2);
    }
});

kernel!(wrong_barrier, l, {
    // The third warp does not take part in the barrier that orders the first two.
    fill(l);
    let (t, n) = (l.tid(), l.width());
    if t == 0 {
        l.put(0, 1, 1);
    }
    if t < 2 * n {
        l.named(1, 2 * n, 3);
    }
    if t == if l.bad() { 2 * n } else { n } {
        l.get(0, 2);
    }
});

kernel!(atomic_and_plain, l, {
    if l.tid() == 0 {
        l.put(0, 0, 9);
    }
    l.barrier(3);
    l.atomic(AtomicOp::Add, SimSpace::Shared, 0, [1, 0], Order::Relaxed, 1);
    if !l.bad() {
        l.barrier(3);
    }
    if l.tid() == 3 {
        assert_eq!(l.get(0, 2) == WARPS * l.width(), !l.bad());
    }
});

kernel!(relaxed_flag, l, {
    // A flag orders only if it is released and acquired.
    let (set, see) =
        if l.bad() { (Order::Relaxed, Order::Relaxed) } else { (Order::Release, Order::Acquire) };
    if l.tid() == 0 {
        l.put(0, 0, 8);
        l.put(4, 0, 9);
    }
    l.barrier(3);
    if l.tid() == 0 {
        l.put(0, 5, 1);
        l.atomic(AtomicOp::Store, SimSpace::Shared, 4, [1, 0], set, 4);
    } else if l.tid() == l.width() {
        while l.atomic(AtomicOp::Load, SimSpace::Shared, 4, [0, 0], see, 5) == 0 {}
        l.get(0, 2);
    }
});

kernel!(device_memory, l, {
    let at = BASE + 4 * u64::from(l.program() * WARPS * l.width());
    let (t, n) = (u64::from(l.tid()), u64::from(WARPS * l.width()));
    l.store(at + 4 * t, 1, 1);
    if !l.bad() {
        l.barrier(3);
    }
    l.load(at + 4 * ((t + n / 2) % n), 2);
});

#[test]
fn races_are_found_at_both_places() {
    for kernel in [
        write_then_read as KernelFn,
        read_then_write,
        two_writes,
        neighbours,
        within_a_warp,
        warp_barrier_is_not_enough,
        wrong_barrier,
        atomic_and_plain,
        relaxed_flag,
        device_memory,
    ] {
        for fault in planted(kernel, &[FaultKind::Race]) {
            let places = [Some(fault.loc), fault.other];
            assert!(places == [Some(1), Some(2)] || places == [Some(2), Some(1)], "{fault}");
        }
    }
}

kernel!(one_store, l, {
    // Of the lanes of one store to one place of device memory one wins.
    l.store(BASE, 1, 1);
});

#[test]
fn lanes_of_one_store_may_meet_in_device_memory() {
    always(one_store, 2, 1, false, |_, found| assert_eq!(found, [1]));
}

kernel!(early_return, l, {
    // The last warp leaves before the barrier.
    if l.bad() && l.tid() / l.width() == WARPS - 1 {
        l.warp_barrier(8);
        return;
    }
    l.barrier(7);
});

kernel!(lane_returns, l, {
    if l.bad() && l.tid() == 3 {
        return;
    }
    l.shuffle(Shuffle::Xor, 1, 1, 7);
});

#[test]
fn nobody_may_wait_for_a_lane_that_has_returned() {
    for fault in planted(early_return, &[FaultKind::Returned]) {
        assert_eq!((fault.loc, fault.other), (7, Some(8)), "{fault}");
    }
    for fault in planted(lane_returns, &[FaultKind::Returned]) {
        assert_eq!((fault.loc, fault.other), (7, Some(-1)), "{fault}");
    }
}

kernel!(two_shuffles, l, {
    if l.bad() && l.tid().is_multiple_of(2) {
        l.shuffle(Shuffle::Xor, 1, 1, 8);
    } else {
        l.shuffle(Shuffle::Xor, 1, 1, 7);
    }
});

kernel!(two_modes, l, {
    let mode = if l.bad() && l.tid().is_multiple_of(2) { Shuffle::Down } else { Shuffle::Up };
    l.shuffle(mode, 1, 1, 7);
});

kernel!(shuffle_or_barrier, l, {
    if l.bad() && l.tid() == 5 {
        l.barrier(8);
    }
    l.shuffle(Shuffle::Xor, 1, 1, 7);
});

kernel!(half_warps, l, {
    // Half of each warp comes to a barrier for half of the lanes.
    let (t, n) = (l.tid(), l.width());
    if if l.bad() { t.is_multiple_of(2) } else { t < WARPS * n / 2 } {
        l.named(1, WARPS * n / 2, 7);
    }
});

#[test]
fn lanes_of_a_warp_meet_others_together() {
    let kernels = [two_shuffles as KernelFn, two_modes, shuffle_or_barrier];
    for fault in kernels.into_iter().flat_map(|k| planted(k, &[FaultKind::Divergence])) {
        assert!([7, 8].contains(&fault.loc) && fault.other.is_some(), "{fault}");
    }
    // Here lanes may have returned before the others come.
    planted(half_warps, &[FaultKind::Divergence, FaultKind::Returned]);
}

kernel!(two_barriers, l, {
    // Each warp waits at a barrier that wants all; there are two of them.
    let second = l.bad() && l.tid() >= l.width();
    l.named(if second { 2 } else { 1 }, WARPS * l.width(), if second { 8 } else { 7 });
});

kernel!(nobody_sets, l, {
    if l.tid() == 0 {
        let set = u32::from(!l.bad());
        l.atomic(AtomicOp::Or, SimSpace::Global, BASE, [set, 0], Order::Release, 6);
    }
    while l.atomic(AtomicOp::Load, SimSpace::Global, BASE, [0, 0], Order::Acquire, 7) == 0 {}
});

#[test]
fn a_state_in_which_every_lane_waits_is_a_deadlock() {
    for fault in planted(two_barriers, &[FaultKind::Deadlock]) {
        let lanes: Vec<_> = fault.waiting.iter().map(|w| (w.loc, w.kind)).collect();
        assert_eq!(lanes, [(7, WaitKind::Barrier), (8, WaitKind::Barrier)], "{fault}");
        let [few, many] = [0, 1].map(|i| fault.waiting[i].lanes);
        assert_eq!(many, few * u64::from(WARPS - 1), "{fault}");
        assert!(fault.message.ends_with("lanes wait at a barrier"), "{fault}");
    }
}

kernel!(one_stays_away, l, {
    if l.bad() && l.program() == 1 {
        return;
    }
    unsafe { (CALLS.grid_barrier)(l.0, 7) };
});

#[test]
fn a_grid_barrier_waits_for_all_programs() {
    let width = SIM_32.warp_size;
    for (seed, bad) in (0..20).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let args = [BASE, 0, width.into(), bad];
        let launch = Launch { cooperative: true, ..launch(one_stays_away, &args, 3, width, seed) };
        let waiting = Waiting { loc: 7, kind: WaitKind::GridBarrier, lanes: u64::from(2 * WARPS * width) };
        let found = go(&launch, &Buffer::new([])).err().map(|f| (f.kind, f.loc, f.waiting));
        assert_eq!(found, (bad == 1).then(|| (FaultKind::Deadlock, 7, vec![waiting])));
    }
}

#[test]
fn polling_what_nobody_changes_is_a_deadlock() {
    let width = SIM_32.warp_size;
    for bad in [0, 1] {
        let args = [BASE, 1024, width.into(), bad];
        let result = go(&launch(nobody_sets, &args, 2, width, 1), &Buffer::new(vec![0; 4]));
        assert_eq!(result.err().map(|f| (f.kind, f.loc)), (bad == 1).then_some((FaultKind::Deadlock, 7)));
    }
}

kernel!(endless, l, {
    while l.bad() {
        l.step(7);
    }
});

#[test]
fn a_loop_without_end_is_ended_by_the_time_limit() {
    let width = SIM_32.warp_size;
    let args = [BASE, 0, width.into(), 1];
    let launch = Launch { timeout: Some(Duration::from_millis(20)), ..launch(endless, &args, 2, width, 0) };
    let fault = go(&launch, &Buffer::new([])).expect_err("a fault");
    assert_eq!((fault.kind, fault.loc), (FaultKind::Timeout, 7));
}
