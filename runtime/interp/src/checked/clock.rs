//! [`Known`], a vector clock: the accesses of other programs that are ordered before this one.
//!
//! Time in a program is counted in epochs: one ends with every release. This is a vector clock (Mattern 1989) kept as
//! runs of programs with one epoch, because programs that hand something on from one to the next know about all before
//! them.

/// For each program the last epoch that is over; 0 if nothing is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known(Vec<Run>);

/// The programs `first..end` and the epoch that is known of each, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    end: u64,
    epoch: u32,
}

impl Known {
    /// One epoch of one program.
    pub fn one(program: u64, epoch: u32) -> Known {
        Known(vec![Run { first: program, end: program + 1, epoch }])
    }

    /// The last epoch of a program that is over.
    pub fn of(&self, program: u64) -> u32 {
        let i = self.0.partition_point(|r| r.end <= program);
        self.0.get(i).filter(|r| r.first <= program).map_or(0, |r| r.epoch)
    }

    /// The union of both.
    pub fn join(&self, other: &Known) -> Known {
        let mut out: Vec<Run> = Vec::with_capacity(self.0.len() + 1);
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut at = 0;
        loop {
            // The epoch at `at` and how far it holds.
            let here = |r: Option<&&Run>| match r {
                Some(r) if r.first <= at => (r.epoch, r.end),
                Some(r) => (0, r.first),
                None => (0, u64::MAX),
            };
            let ((x, x_end), (y, y_end)) = (here(a.peek()), here(b.peek()));
            let (epoch, end) = (x.max(y), x_end.min(y_end));
            if epoch > 0 {
                match out.last_mut() {
                    Some(last) if last.end == at && last.epoch == epoch => last.end = end,
                    Some(_) | None => out.push(Run { first: at, end, epoch }),
                }
            }
            if end == u64::MAX {
                return Known(out);
            }
            at = end;
            a.next_if(|r| r.end <= at);
            b.next_if(|r| r.end <= at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_the_larger_epoch_of_each_program() {
        // Every pair of clocks of four programs with epochs 0 to 2.
        let all: Vec<[u32; 4]> = (0..81u32).map(|i| [i % 3, i / 3 % 3, i / 9 % 3, i / 27]).collect();
        let make = |epochs: &[u32; 4]| {
            let known = epochs.iter().zip(0..).filter(|(e, _)| **e > 0).map(|(e, p)| Known::one(p, *e));
            known.fold(Known::default(), |all, one| all.join(&one))
        };
        for a in &all {
            for b in &all {
                let joined = make(a).join(&make(b));
                let found: Vec<u32> = (0..5).map(|p| joined.of(p)).collect();
                let wanted: Vec<u32> = a.iter().zip(b).map(|(a, b)| *a.max(b)).chain([0]).collect();
                assert_eq!(found, wanted, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn neighbours_with_one_epoch_are_one_run() {
        let chain = (0..1000).fold(Known::default(), |all, p| all.join(&Known::one(p, 2)));
        assert_eq!(chain, Known(vec![Run { first: 0, end: 1000, epoch: 2 }]));
    }
}
