//! The random decisions of a seed: [`Random`] numbers and the [`Order`] in which the programs of a grid start.
//!
//! Guarantees that the same seed gives the same numbers on every host.

/// A stream of numbers (SplitMix64, Steele, Lea and Flood 2014: the constants are theirs).
pub(super) struct Random(u64);

impl Random {
    /// The stream with this number of a seed.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut outer = Random(seed);
        let base = outer.next();
        Random(base ^ Random(stream).next())
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Returns true with a probability of `of_256` / 256.
    pub fn chance(&mut self, of_256: u32) -> bool {
        (self.next() >> 56) < u64::from(of_256)
    }
}

/// A permutation of `0..total` that needs no memory: steps of a length that is coprime to `total`.
pub(super) struct Order {
    total: u64,
    first: u64,
    step: u64,
}

impl Order {
    /// The permutation of a seed.
    pub fn new(total: u64, random: &mut Random) -> Order {
        let any = |random: &mut Random| random.below(total as usize) as u64;
        let (first, mut step) = (any(random), any(random).max(1));
        while gcd(step, total) > 1 {
            step += 1;
        }
        Order { total, first, step }
    }

    /// The number at position `i`.
    pub fn at(&self, i: u64) -> u64 {
        let place = u128::from(self.first) + u128::from(i) * u128::from(self.step);
        place.checked_rem(u128::from(self.total)).unwrap_or(0) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_everything_once() {
        for total in 1..60 {
            for seed in 0..8 {
                let order = Order::new(total, &mut Random::new(seed, 0));
                let mut all: Vec<u64> = (0..total).map(|i| order.at(i)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..total).collect::<Vec<_>>(), "{total} {seed}");
            }
        }
    }
}
