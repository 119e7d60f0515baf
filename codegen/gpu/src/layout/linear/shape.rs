//! Composes layouts, and applies operations on shapes to them: transposition, reshaping, slices, broadcast.
//!
//! Guarantees that an operation moves no data: each place owns the same value before and after it.

use super::gf2::{bit, low, ones};
use super::{InDim, LinearLayout, pack, unit, unpack};

impl LinearLayout {
    /// A hierarchy of tiles of registers, of lanes of a warp and of warps; all arguments are logarithms for each
    /// dimension, `order` lists the dimensions from the fastest to the slowest. Each lane has a tile of `register`
    /// elements, a warp is a tile of `lane` such tiles, a block one of `warp`. If the tile is larger, more registers
    /// cover it; if it is smaller, bits have the basis zero.
    pub fn blocked(shape: &[u32], order: &[usize], register: &[u32], lane: &[u32], warp: &[u32]) -> Self {
        let mut used = vec![0; shape.len()];
        let mut take = |counts: &dyn Fn(usize, u32) -> u32| {
            let mut bases = vec![];
            for &dim in order {
                let Some(used) = used.get_mut(dim) else { continue };
                for _ in 0..counts(dim, *used) {
                    bases.push(unit(shape, dim, *used));
                    *used += 1;
                }
            }
            bases
        };
        let of = |tile: &[u32], dim: usize| tile.get(dim).copied().unwrap_or(0);
        let mut registers = take(&|dim, _| of(register, dim));
        let lane = take(&|dim, _| of(lane, dim));
        let warp = take(&|dim, _| of(warp, dim));
        registers.extend(take(&|dim, used| of(shape, dim).saturating_sub(used)));
        Self { out_bits: shape.to_vec(), register: registers, lane, warp, block: vec![] }
    }

    /// The direct product: each element of `other` becomes a tile of `self`. The bits of `other` are above those of
    /// `self`, in places and in coordinates. Both have the same rank.
    pub fn product(&self, other: &Self) -> Self {
        let out_bits: Vec<u32> = self.out_bits.iter().zip(&other.out_bits).map(|(a, b)| a + b).collect();
        let inner = self.map(out_bits.clone(), |b| pack(&out_bits, &unpack(&self.out_bits, b)));
        let outer = other.map(out_bits.clone(), |b| {
            let coordinates = unpack(&other.out_bits, b);
            let shifted: Vec<u32> = coordinates
                .iter()
                .zip(&self.out_bits)
                .map(|(c, bits)| c.checked_shl(*bits).unwrap_or(0))
                .collect();
            pack(&out_bits, &shifted)
        });
        let joined = |dim| [inner.bases(dim), outer.bases(dim)].concat();
        Self {
            register: joined(InDim::Register),
            lane: joined(InDim::Lane),
            warp: joined(InDim::Warp),
            block: joined(InDim::Block),
            out_bits,
        }
    }

    /// The quotient of a product: `tile.product(&result)` is `self`. `None` if `self` does not begin with `tile`.
    pub fn left_divide(&self, tile: &Self) -> Option<Self> {
        if tile.rank() != self.rank() || tile.out_bits.iter().zip(&self.out_bits).any(|(t, s)| t > s) {
            return None;
        }
        let out_bits: Vec<u32> = self.out_bits.iter().zip(&tile.out_bits).map(|(s, t)| s - t).collect();
        let divide = |dim| -> Option<Vec<u64>> {
            let (own, inner) = (self.bases(dim), tile.bases(dim));
            let (begin, rest) = own.split_at_checked(inner.len())?;
            let same = begin
                .iter()
                .zip(inner)
                .all(|(s, t)| unpack(&self.out_bits, *s) == unpack(&tile.out_bits, *t));
            if !same {
                return None;
            }
            let shift = |basis: &u64| -> Option<u64> {
                let coordinates = unpack(&self.out_bits, *basis);
                let outside = |(c, bits): (&u32, &u32)| {
                    (u64::from(*c) & low(*bits) == 0).then(|| c.checked_shr(*bits).unwrap_or(0))
                };
                let shifted: Option<Vec<u32>> = coordinates.iter().zip(&tile.out_bits).map(outside).collect();
                shifted.map(|s| pack(&out_bits, &s))
            };
            rest.iter().map(shift).collect()
        };
        Some(Self {
            register: divide(InDim::Register)?,
            lane: divide(InDim::Lane)?,
            warp: divide(InDim::Warp)?,
            block: divide(InDim::Block)?,
            out_bits,
        })
    }

    /// First `self`, then `outer`: the coordinates that `self` gives, in the order register, lane, warp, block, are a
    /// place of `outer`. So `self` has up to four dimensions and each has as many bits as that part of `outer`'s
    /// places; `None` otherwise. [`LinearLayout::invert_and_compose`] returns such a map.
    pub fn compose(&self, outer: &Self) -> Option<Self> {
        let wanted = outer.in_bits();
        let given = self.out_bits.iter().chain(std::iter::repeat(&0)).take(wanted.len());
        if self.rank() > wanted.len() || !given.eq(&wanted) {
            return None;
        }
        Some(self.map(outer.out_bits.clone(), |b| {
            let parts = unpack(&self.out_bits, b);
            let part = |i: usize| parts.get(i).copied().unwrap_or(0);
            outer.flat(super::LaneRegister {
                register: part(0),
                lane: part(1),
                warp: part(2),
                block: part(3),
            })
        }))
    }

    /// Maps each place of `self` to a place of `holder` that owns its element, as a layout of a "tile" with the
    /// dimensions register, lane, warp, block. `result.compose(holder)` is `self` again. If `holder` has several places
    /// for an element, the lowest bits are used. `None` if the tiles have different shapes or `holder` lacks an
    /// element.
    pub fn invert_and_compose(&self, holder: &Self) -> Option<Self> {
        if self.out_bits != holder.out_bits {
            return None;
        }
        let span = holder.span();
        let [register, lane, warp, block] = holder.in_bits();
        let out_bits = vec![register, lane, warp, block];
        let column = |b: &u64| {
            let place = super::split(span.solve(*b)?, holder.in_bits());
            Some(pack(&out_bits, &[place.register, place.lane, place.warp, place.block]))
        };
        let columns = |dim| self.bases(dim).iter().map(column).collect::<Option<Vec<u64>>>();
        Some(Self {
            register: columns(InDim::Register)?,
            lane: columns(InDim::Lane)?,
            warp: columns(InDim::Warp)?,
            block: columns(InDim::Block)?,
            out_bits,
        })
    }

    /// The layout after a transposition: dimension `i` of the result is dimension `perm[i]`.
    pub fn permute_dims(&self, perm: &[usize]) -> Self {
        let pick = |coordinates: &[u32]| -> Vec<u32> {
            perm.iter().map(|d| coordinates.get(*d).copied().unwrap_or(0)).collect()
        };
        let out_bits = pick(&self.out_bits);
        self.map(out_bits.clone(), |b| pack(&out_bits, &pick(&unpack(&self.out_bits, b))))
    }

    /// The layout after a reshape in row-major order. `None` if the number of elements differs.
    pub fn reshape(&self, to_bits: &[u32]) -> Option<Self> {
        // Bases are indices of the flattened tile, which a reshape keeps.
        (to_bits.iter().sum::<u32>() == self.total_bits())
            .then(|| Self { out_bits: to_bits.to_vec(), ..self.clone() })
    }

    /// Adds a dimension of extent 1 at position `at`, or at the end if there are fewer.
    pub fn expand_dim(&self, at: usize) -> Self {
        let mut out_bits = self.out_bits.clone();
        out_bits.insert(at.min(out_bits.len()), 0);
        Self { out_bits, ..self.clone() }
    }

    /// The layout of the result of reducing a dimension: the dimension is removed, and with it the register bits that
    /// have no other effect ([`LinearLayout::sliced_registers`] lists them). Lanes and warps that then agree remain:
    /// each owns the result.
    pub fn slice_dim(&self, axis: usize) -> Self {
        let gone = self.sliced_registers(axis);
        let without = |coordinates: &[u32]| -> Vec<u32> {
            coordinates.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, c)| *c).collect()
        };
        let out_bits = without(&self.out_bits);
        let mut sliced =
            self.map(out_bits.clone(), |b| pack(&out_bits, &without(&unpack(&self.out_bits, b))));
        let mut position = 0;
        sliced.register.retain(|_| {
            position += 1;
            u64::from(gone) & bit(position - 1) == 0
        });
        sliced
    }

    /// The register bits that [`LinearLayout::slice_dim`] drops, as a mask: those that move along `axis` only.
    pub fn sliced_registers(&self, axis: usize) -> u32 {
        let moves_elsewhere =
            |b: u64| unpack(&self.out_bits, b).iter().enumerate().any(|(d, c)| d != axis && *c != 0);
        self.register
            .iter()
            .enumerate()
            .filter(|(_, b)| !moves_elsewhere(**b))
            .fold(0, |mask, (i, _)| mask | bit(i as u32) as u32)
    }

    /// The layout after a broadcast of a dimension of extent 1 to `2^bits`: each place gets `2^bits` registers, the new
    /// register bits being the highest. `None` if the extent is not 1. If lanes or warps agree, slicing the layout of
    /// the target for the source is cheaper; this is for results without a layout.
    pub fn broadcast_dim(&self, dim: usize, bits: u32) -> Option<Self> {
        let mut out_bits = self.out_bits.clone();
        let extent = out_bits.get_mut(dim).filter(|extent| **extent == 0)?;
        *extent = bits;
        let mut wide = self.map(out_bits.clone(), |b| pack(&out_bits, &unpack(&self.out_bits, b)));
        wide.register.extend((0..bits).map(|i| unit(&out_bits, dim, i)));
        Some(wide)
    }

    /// The same layout without register bits that do not matter. Register `r` of the result is the register of `self`
    /// whose bits outside of [`LinearLayout::free_bits`] are those of `r`.
    pub fn without_free_registers(&self) -> Self {
        let free = u64::from(self.free_bits(InDim::Register));
        let kept = ones(!free & low(self.register.len() as u32)).filter_map(|i| self.register.get(i));
        Self { register: kept.copied().collect(), ..self.clone() }
    }
}
