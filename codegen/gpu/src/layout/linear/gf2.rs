//! Owns the linear algebra below the layouts: spans of vectors over GF(2), a vector being the bits of a `u64`.
//!
//! May assume at most 64 bits in a vector and 64 vectors in a span; what lies above is lost, nothing panics.
//! Guarantees that a solution uses the vectors that were inserted first, so that callers state preferences by order.

/// The span of vectors that were inserted one after the other, in echelon form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// Each row leads with a bit that no other row's lead shares.
    rows: Vec<Row>,
    inserted: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    vector: u64,
    /// Which inserted vectors XOR to `vector`.
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

    /// Adds a vector; false if the span held it already.
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

    /// Whether some of the vectors XOR to this one.
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The inserted vectors that XOR to this one, as a mask of their positions. Linear in `vector`, and free of
    /// vectors that depended on earlier ones. None outside of the span.
    pub fn solve(&self, vector: u64) -> Option<u64> {
        let (rest, combination) = self.reduce(vector);
        (rest == 0).then_some(combination)
    }

    /// What is left of a vector when the rows are taken out, and what was taken.
    fn reduce(&self, vector: u64) -> (u64, u64) {
        // A later row never holds the lead of an earlier one, so one pass in order is enough.
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

/// A basis of what the spans of `a` and of `b` share.
pub(crate) fn intersection(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut both = Span::of(a.iter().copied());
    let mut shared = Span::default();
    let mut basis = vec![];
    for &vector in b {
        if let Some(combination) = both.solve(vector) {
            // The part that vectors of `a` contribute equals `vector` plus vectors of `b`: it lies in both.
            let common = image(a, combination);
            if shared.insert(common) {
                basis.push(common);
            }
        }
        both.insert(vector);
    }
    basis
}
