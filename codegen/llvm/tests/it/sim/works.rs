//! Owns kernels that do what they should, with every seed.

use super::*;

kernel!(vector_add, l, {
    let i = l.program() * WARPS * l.width() + l.tid();
    let n = l.arg(1) / 3;
    if u64::from(i) < n {
        let at = BASE + 4 * u64::from(i);
        l.store(at + 8 * n, l.load(at, 1) + l.load(at + 4 * n, 2), 3);
    }
});

#[test]
fn a_vector_addition_adds() {
    let n = 1000;
    for width in widths() {
        for seed in 0..20 {
            let mut buffer = Buffer::new((0..n).chain((0..n).map(|i| 7 * i)).chain((0..n).map(|_| 0)));
            let args = [BASE, 3 * u64::from(n), width.into(), 0];
            let programs = n.div_ceil(WARPS * width);
            let found = go(&launch(vector_add, &args, programs, width, seed), &buffer).expect("no fault");
            assert_eq!(found.global_accesses, 3 * u64::from(n));
            assert_eq!(found.programs, u64::from(programs));
            assert!(buffer.read().iter().skip(2 * n as usize).zip(0..).all(|(s, i)| *s == 8 * i));
        }
    }
}

fn warp_sum(l: Lane, mut v: u32) -> u32 {
    let mut step = l.width() / 2;
    while step > 0 {
        v += l.shuffle(Shuffle::Xor, v, step, 4);
        step /= 2;
    }
    v
}

kernel!(warp_reduce, l, {
    let sum = warp_sum(l, l.tid());
    l.store(BASE + 4 * u64::from(l.tid()), sum, 1);
});

#[test]
fn a_warp_reduces_by_shuffles() {
    always(warp_reduce, 1, 256, false, |width, found| {
        for (lane, sum) in (0..WARPS * width).zip(found) {
            let first = lane / width * width;
            assert_eq!(sum, (first..first + width).sum());
        }
    });
}

kernel!(modes, l, {
    let (t, n) = (l.tid(), l.width());
    let up = l.shuffle(Shuffle::Up, t, 3, 1);
    let down = l.shuffle(Shuffle::Down, t, 3, 2);
    let first = l.shuffle(Shuffle::Index, t, n, 3);
    let far = l.shuffle(Shuffle::Xor, t, n, 4);
    let lane = t % n;
    let good = up == if lane < 3 { t } else { t - 3 }
        && down == if lane + 3 < n { t + 3 } else { t }
        && first == t / n * n
        && far == t;
    l.store(BASE + 4 * u64::from(t), good.into(), 5);
});

#[test]
fn a_shuffle_past_the_warp_gives_the_own_value() {
    always(modes, 1, 256, false, |width, found| {
        assert!(found.iter().take((WARPS * width) as usize).all(|good| *good == 1));
    });
}

kernel!(block_reduce, l, {
    // Twice, so that the scratch memory is used again.
    for round in 0..2 {
        let sum = warp_sum(l, l.tid() + round);
        if l.tid().is_multiple_of(l.width()) {
            l.put(4 * (l.tid() / l.width()), sum, 1);
        }
        l.barrier(2);
        let all: u32 = (0..WARPS).map(|w| l.get(4 * w, 3)).sum();
        l.barrier(4);
        if l.tid() == 0 {
            l.store(BASE + 4 * u64::from(l.program() * 2 + round), all, 5);
        }
    }
});

#[test]
fn a_program_reduces_through_shared_memory() {
    always(block_reduce, 3, 6, false, |width, found| {
        let n = WARPS * width;
        let sum: u32 = (0..n).sum();
        assert_eq!(found, [sum, sum + n, sum, sum + n, sum, sum + n]);
    });
}

kernel!(ticket_scan, l, {
    // Programs take tickets; each waits for the sum of the one with the ticket before.
    let n = u64::from(l.programs());
    let (status, sums) = (BASE + 4, BASE + 4 + 4 * n);
    if l.tid() == 0 {
        let t = u64::from(l.atomic(AtomicOp::Add, SimSpace::Global, BASE, [1, 0], Order::Relaxed, 1));
        let mut before = 0;
        if t > 0 {
            let flag = status + 4 * (t - 1);
            while l.atomic(AtomicOp::Load, SimSpace::Global, flag, [0, 0], Order::Acquire, 2) == 0 {}
            before = l.load(sums + 4 * (t - 1), 3);
        }
        l.store(sums + 4 * t, before + t as u32, 4);
        l.atomic(AtomicOp::Store, SimSpace::Global, status + 4 * t, [1, 0], Order::Release, 5);
    }
});

#[test]
fn programs_that_wait_for_each_other_get_their_turn() {
    always(ticket_scan, 20, 41, false, |_, found| {
        let sums: Vec<u32> = (0..20u32).map(|t| (0..=t).sum()).collect();
        assert_eq!(found.get(21..), Some(sums.as_slice()));
    });
}

kernel!(reversed, l, {
    // Each program waits for the one after it: all have to be on their way.
    let (p, n) = (u64::from(l.program()), u64::from(l.programs()));
    if p + 1 < n {
        let next = BASE + 4 * (p + 1);
        while l.atomic(AtomicOp::Load, SimSpace::Global, next, [0, 0], Order::Acquire, 1) == 0 {}
    }
    l.barrier(2);
    if l.tid() == 0 {
        l.atomic(AtomicOp::Xchg, SimSpace::Global, BASE + 4 * p, [1, 0], Order::Release, 3);
    }
});

#[test]
fn a_chain_against_the_order_of_the_programs_ends() {
    always(reversed, 12, 12, false, |_, found| assert!(found.iter().all(|f| *f == 1)));
}

kernel!(grid_exchange, l, {
    let (p, n) = (l.program(), l.programs());
    if l.tid() == 0 {
        l.store(BASE + 4 * u64::from(p), p + 1, 1);
    }
    unsafe { (CALLS.grid_barrier)(l.0, 2) };
    let next = l.load(BASE + 4 * u64::from((p + 1) % n), 3);
    unsafe { (CALLS.grid_barrier)(l.0, 4) };
    if l.tid() == 5 {
        l.store(BASE + 4 * u64::from(p), next, 5);
    }
});

#[test]
fn a_grid_barrier_orders_programs() {
    always(grid_exchange, 5, 5, true, |_, found| assert_eq!(found, [2, 3, 4, 5, 1]));
    let buffer = Buffer::new(vec![0; 5]);
    let args = [BASE, 5, SIM_32.warp_size.into(), 0];
    let fault = go(&launch(grid_exchange, &args, 5, SIM_32.warp_size, 0), &buffer).expect_err("a fault");
    assert_eq!((fault.kind, fault.loc), (FaultKind::Call, 2));
}

kernel!(hand_over, l, {
    // The first two warps meet at one named barrier, the others at another one; then a flag hands over to the last lane.
    let half = WARPS * l.width() / 2;
    let (t, side) = (l.tid(), l.tid() / half);
    l.put(4 * t, t, 1);
    l.named(1 + side as i32, half, 2);
    let mate = side * half + (t + half / 2) % half;
    let sum = l.get(4 * mate, 3);
    let flag = 4 * 2 * half;
    if t == 0 {
        l.atomic(AtomicOp::Store, SimSpace::Shared, flag.into(), [0, 0], Order::Relaxed, 4);
    }
    l.barrier(5);
    if t == 0 {
        l.put(0, 77, 6);
        l.atomic(AtomicOp::Store, SimSpace::Shared, flag.into(), [1, 0], Order::Release, 7);
    } else if t == 2 * half - 1 {
        while l.atomic(AtomicOp::Load, SimSpace::Shared, flag.into(), [0, 0], Order::Acquire, 8) == 0 {}
        l.store(BASE, l.get(0, 9), 10);
    }
    l.store(BASE + 4 + 4 * u64::from(t), sum, 11);
});

#[test]
fn named_barriers_and_flags_order_lanes() {
    always(hand_over, 1, 257, false, |width, found| {
        let half = WARPS * width / 2;
        assert_eq!(found.first(), Some(&77));
        for (t, got) in (0..2 * half).zip(found.iter().skip(1)) {
            assert_eq!(*got, t / half * half + (t + half / 2) % half);
        }
    });
}

kernel!(says, l, {
    if l.tid() % l.width() == 1 {
        unsafe { (CALLS.print)(l.0, b"hello".as_ptr(), 5) };
    }
});

#[test]
fn the_seed_decides_who_comes_first_and_nothing_else_does() {
    let width = SIM_32.warp_size;
    let args = [BASE, 0, width.into(), 0];
    let order = |seed| {
        let buffer = Buffer::new([]);
        go(&launch(says, &args, 3, width, seed), &buffer).expect("no fault");
        buffer.printed.into_inner().expect("a lock")
    };
    let all: Vec<_> = (0..20).map(order).collect();
    assert_eq!(all, (0..20).map(order).collect::<Vec<_>>());
    assert!(all.iter().any(|o| *o != all[0]));
    for mut one in all {
        one.sort();
        let lines = (0..3).flat_map(|p| (0..WARPS).map(move |w| (p, w * width + 1, b"hello".to_vec())));
        assert_eq!(one, lines.collect::<Vec<_>>());
    }
}

#[test]
fn an_empty_grid_runs_nothing_and_odd_programs_are_refused() {
    let width = SIM_32.warp_size;
    let args = [BASE, 0, width.into(), 0];
    let buffer = Buffer::new([]);
    assert_eq!(go(&launch(says, &args, 0, width, 0), &buffer), Ok(Statistics::default()));
    let odd = Launch { threads: width + 1, ..launch(says, &args, 1, width, 0) };
    assert_eq!(go(&odd, &buffer).expect_err("a fault").kind, FaultKind::Call);
}
