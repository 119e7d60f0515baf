//! Linear algebra for layouts: spans of vectors over GF(2), a vector being the bits of a `u64`.
//!
//! Requires at most 64 bits in a vector and 64 vectors in a span; excess is lost without a panic. Guarantees that a
//! solution prefers vectors that were inserted first, so that callers state preferences by order.

/// The span of a sequence of inserted vectors, in echelon form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The leading bit of each row leads no other row.
    rows: Vec<Row>,
    inserted: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    vector: u64,
    /// The inserted vectors whose XOR is `vector`.
    combination: u64,
}

impl Span {
    /// The span of these vectors, in this order.
    pub fn of(vectors: impl IntoIterator<Item = u64>) -> Self {
        let mut span = Self::default();
        for vector in vectors {
            span.insert(vector);
        }
        span
    }

    /// Adds a vector; returns false if the span contained it already.
    pub fn insert(&mut self, vector: u64) -> bool {
        let own = bit(self.inserted);
        self.inserted += 1;
        let (rest, combination) = self.reduce(vector);
        if rest != 0 {
            self.rows.push(Row { vector: rest, combination: combination ^ own });
        }
        rest != 0
    }

    /// The number of independent vectors.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if some of the vectors XOR to this one.
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The inserted vectors that XOR to this one, as a mask of their positions. Linear in `vector`, and without vectors
    /// that depend on earlier ones. `None` outside of the span.
    pub fn solve(&self, vector: u64) -> Option<u64> {
        let (rest, combination) = self.reduce(vector);
        (rest == 0).then_some(combination)
    }

    /// The remainder of a vector after elimination by the rows, and the combination that was eliminated.
    fn reduce(&self, vector: u64) -> (u64, u64) {
        // A later row never contains the lead of an earlier one, so one pass in order is enough.
        self.rows.iter().fold((vector, 0), |(rest, combination), row| {
            if rest & lead(row.vector) == 0 {
                (rest, combination)
            } else {
                (rest ^ row.vector, combination ^ row.combination)
            }
        })
    }
}

/// The highest bit.
fn lead(vector: u64) -> u64 {
    1u64.checked_shl(63u32.wrapping_sub(vector.leading_zeros())).unwrap_or(0)
}

/// The vector with one bit; zero past the width.
pub(crate) fn bit(position: u32) -> u64 {
    1u64.checked_shl(position).unwrap_or(0)
}

/// The vector whose bits below `count` are set.
pub(crate) fn low(count: u32) -> u64 {
    bit(count).wrapping_sub(1)
}

/// The positions of the set bits, lowest first.
pub(crate) fn ones(vector: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS).filter(move |i| vector & bit(*i) != 0).map(|i| i as usize)
}

/// The image of `vector` under the map whose images of the single bits are `columns`.
pub(crate) fn image(columns: &[u64], vector: u64) -> u64 {
    ones(vector).filter_map(|i| columns.get(i)).fold(0, |sum, c| sum ^ c)
}

/// A basis of the intersection of the spans of `a` and `b`.
pub(crate) fn intersection(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut both = Span::of(a.iter().copied());
    let mut shared = Span::default();
    let mut basis = vec![];
    for &vector in b {
        if let Some(combination) = both.solve(vector) {
            // The part that vectors of `a` contribute equals `vector` plus vectors of `b`, so it is in both spans.
            let common = image(a, combination);
            if shared.insert(common) {
                basis.push(common);
            }
        }
        both.insert(vector);
    }
    basis
}
