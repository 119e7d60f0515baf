//! Decision trees: [`Tree::learn`] finds comparisons of numbers that choose well among a few candidates.
//!
//! ```text
//! samples (features, cost of each candidate)        tree
//!   [64] 0.0 0.9;  [128] 0.0 0.4                ->  f0 < 256 ? 0 : 1
//!   [512] 0.7 0.0; [4096] 0.5 0.0
//! ```
//! Greedy splits as in CART (Breiman et al., 1984), by the sum of costs in the place of an impurity. The result depends
//! on nothing but the samples.

/// What is known of one case.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Numbers that may be compared.
    pub features: Vec<i64>,
    /// What each candidate costs here.
    pub costs: Vec<f64>,
}

/// A tree of comparisons.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// This candidate.
    Leaf(usize),
    /// The first side if the feature is less than the number.
    Split {
        /// The number of the feature.
        feature: usize,
        /// What it is compared with.
        below: i64,
        /// Both sides.
        sides: Box<[Tree; 2]>,
    },
}

/// Comparisons one inside another.
const DEPTH: usize = 7;
/// The least gain of a comparison, as a part of the number of all samples.
const GAIN: f64 = 0.002;

impl Tree {
    /// The tree for these samples, which have the same number of features and candidates; the first candidate without
    /// samples.
    pub fn learn(samples: &[Sample]) -> Tree {
        let all: Vec<&Sample> = samples.iter().collect();
        grow(&all, GAIN * samples.len() as f64, DEPTH)
    }

    /// Returns true if the tree chooses a candidate anywhere.
    pub fn chooses(&self, candidate: usize) -> bool {
        match self {
            Tree::Leaf(c) => *c == candidate,
            Tree::Split { sides, .. } => sides.iter().any(|side| side.chooses(candidate)),
        }
    }

    /// The candidate for these features.
    #[cfg(test)]
    pub fn of(&self, features: &[i64]) -> usize {
        match self {
            Tree::Leaf(candidate) => *candidate,
            Tree::Split { feature, below, sides } => {
                let is_below = features.get(*feature).is_some_and(|f| f < below);
                sides[usize::from(!is_below)].of(features)
            }
        }
    }
}

/// The candidate with the least sum of costs, the first of several, and that sum.
fn best(samples: &[&Sample]) -> (usize, f64) {
    let candidates = samples.first().map_or(0, |s| s.costs.len());
    let sum = |c: usize| samples.iter().filter_map(|s| s.costs.get(c)).sum::<f64>();
    let sums = (0..candidates).map(|c| (c, sum(c)));
    sums.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

fn grow(samples: &[&Sample], gain: f64, depth: usize) -> Tree {
    let (candidate, cost) = best(samples);
    let leaf = Tree::Leaf(candidate);
    let features = samples.first().map_or(0, |s| s.features.len());
    if depth == 0 || cost <= gain {
        return leaf;
    }
    let mut found: Option<(f64, usize, i64)> = None;
    for feature in 0..features {
        let value = |s: &&Sample| s.features.get(feature).copied().unwrap_or(0);
        let mut values: Vec<i64> = samples.iter().map(value).collect();
        values.sort_unstable();
        values.dedup();
        for pair in values.windows(2) {
            let [low, high] = pair else { continue };
            let below = between(*low, *high);
            let (a, b): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|s| value(s) < below);
            let with = best(&a).1 + best(&b).1;
            if cost - with > gain && found.is_none_or(|(least, ..)| with < least) {
                found = Some((with, feature, below));
            }
        }
    }
    let Some((_, feature, below)) = found else { return leaf };
    let is_below = |s: &&Sample| s.features.get(feature).is_some_and(|f| *f < below);
    let (a, b): (Vec<&Sample>, Vec<&Sample>) = samples.iter().copied().partition(is_below);
    let sides = [grow(&a, gain, depth - 1), grow(&b, gain, depth - 1)];
    match &sides {
        [Tree::Leaf(a), Tree::Leaf(b)] if a == b => Tree::Leaf(*a),
        _different => Tree::Split { feature, below, sides: Box::new(sides) },
    }
}

/// The number that divides two others by ratio, above the first and at most the second.
fn between(low: i64, high: i64) -> i64 {
    let middle = if low > 0 { ((low as f64) * (high as f64)).sqrt().round() as i64 } else { high };
    middle.clamp(low.saturating_add(1), high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(features: &[i64], costs: &[f64]) -> Sample {
        Sample { features: features.to_vec(), costs: costs.to_vec() }
    }

    #[test]
    fn a_tree_separates_what_differs() {
        // Candidate 1 wins where the second feature is large, and the first says nothing.
        let samples: Vec<Sample> = (0..8)
            .flat_map(|a| (0..8).map(move |b| (1i64 << a, 1i64 << b)))
            .map(|(a, b)| sample(&[a, b], if b >= 16 { &[0.5, 0.0] } else { &[0.0, 0.5] }))
            .collect();
        let tree = Tree::learn(&samples);
        assert!(matches!(tree, Tree::Split { feature: 1, below: 9..=16, .. }), "{tree:?}");
        assert!(samples.iter().all(|s| s.costs[tree.of(&s.features)] == 0.0));
        assert_eq!(tree.of(&[1, 1_000_000]), 1);
    }

    #[test]
    fn what_gains_nothing_is_not_asked() {
        let same: Vec<Sample> = (1..10).map(|i| sample(&[i], &[0.001, 0.0])).collect();
        assert_eq!(Tree::learn(&same), Tree::Leaf(1));
        assert_eq!(Tree::learn(&[]), Tree::Leaf(0));
        assert_eq!(Tree::learn(&[sample(&[], &[0.0, 0.0])]), Tree::Leaf(0));
    }

    #[test]
    fn thresholds_are_above_the_smaller_number() {
        for (low, high) in [(0, 1), (-5, 3), (1, 2), (i64::MIN, i64::MAX), (3, 1 << 40)] {
            let at = between(low, high);
            assert!(low < at && at <= high, "{low} {at} {high}");
        }
    }
}
