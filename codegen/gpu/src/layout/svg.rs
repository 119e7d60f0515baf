//! Draws layouts as SVG: which thread owns each element, and the cost of accesses.
//!
//! Dimensions before the last two are drawn below one another. Of a large tile only the first elements are drawn.

use std::fmt::Write;

use crate::layout::Layout;
use crate::layout::linear::shared::SharedBanks;
use crate::layout::linear::{InDim, SharedMap, Swizzle, bank_conflict_ways};

/// The most rows and columns that are drawn: what fits on a screen, and what a browser renders quickly.
const MOST: [usize; 2] = [64, 64];
/// The size of an element in units of the picture.
const CELL: [usize; 2] = [54, 20];

/// The costs of a layout, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Elements that each thread owns.
    pub registers: usize,
    /// Lanes of a warp, and warps.
    pub threads: [u32; 2],
    /// Threads that own the same element.
    pub copies: u64,
    /// Neighbours along each dimension in consecutive registers.
    pub vector: Vec<u32>,
    /// Bytes of the widest access of a thread along the last dimension.
    pub access_bytes: u32,
    /// Bank conflicts of such accesses to shared memory in row-major order: 1 is conflict-free.
    pub row_major_ways: u32,
    /// The same with the swizzle of 128 bytes; `None` if a row is narrower, or the rank is not 2.
    pub swizzled_ways: Option<u32>,
}

/// The numbers of a layout of elements of `element_bytes` bytes.
pub fn numbers(layout: &Layout, element_bytes: u32, banks: SharedBanks) -> Numbers {
    let (atom, last) = (layout.atom(), layout.repeats().len().saturating_sub(1));
    let vector: Vec<u32> = (0..layout.repeats().len()).map(|d| layout.vector(d)).collect();
    let along = vector.get(last).copied().unwrap_or(1);
    let access_bytes = (along * element_bytes).min(banks.vector_bytes).max(element_bytes);
    let ways = |map: &SharedMap| {
        let address = |bit| atom.basis(InDim::Lane, bit).map_or(0, |b| map.offset_of(&b) * element_bytes);
        let lanes: Vec<u32> = (0..atom.bits(InDim::Lane)).map(address).collect();
        bank_conflict_ways(&lanes, access_bytes, banks.count)
    };
    let swizzled = match atom.out_bits() {
        [rows, columns] => SharedMap::swizzled(*rows, *columns, element_bytes, Swizzle::B128),
        _other => None,
    };
    let threads = [InDim::Lane, InDim::Warp].map(|d| 1u32 << atom.bits(d));
    let elements: u64 = atom.out_bits().iter().map(|b| 1u64 << b).product();
    let places = (1u64 << atom.bits(InDim::Register)) * u64::from(threads[0]) * u64::from(threads[1]);
    Numbers {
        registers: layout.registers(),
        threads,
        copies: (places / elements.max(1)).max(1),
        vector,
        access_bytes,
        row_major_ways: ways(&SharedMap::row_major(atom.out_bits())),
        swizzled_ways: swizzled.map(|map| ways(&map)),
    }
}

impl Numbers {
    /// Text with a line for each fact.
    pub fn lines(&self) -> Vec<String> {
        let [lanes, warps] = self.threads;
        let vector: Vec<String> = self.vector.iter().map(u32::to_string).collect();
        let conflict = |ways: u32| {
            if ways <= 1 { "no bank conflict".to_string() } else { format!("{ways}-way bank conflict") }
        };
        let mut out = vec![
            format!(
                "{} of {}, {} in a thread, {} for an element",
                plural(warps.into(), "warp"),
                plural(lanes.into(), "lane"),
                plural(self.registers as u64, "element"),
                plural(self.copies, "thread")
            ),
            format!(
                "neighbours in a thread: {} (by dimension), accesses of {}",
                vector.join(" x "),
                plural(self.access_bytes.into(), "byte")
            ),
            format!("shared memory, row-major: {}", conflict(self.row_major_ways)),
        ];
        out.extend(
            self.swizzled_ways.map(|ways| format!("shared memory, 128-byte swizzle: {}", conflict(ways))),
        );
        out
    }
}

fn plural(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// The owner of an element: warp, lane, register, of the first place that owns it.
type Holder = (u32, u32, usize);

/// The owners of the first rows and columns.
fn holders(layout: &Layout, shape: &[u32]) -> Vec<Vec<Option<Holder>>> {
    let columns = shape.last().copied().unwrap_or(1) as usize;
    let rows: usize = shape.iter().rev().skip(1).map(|d| *d as usize).product();
    let (atom, inverse) = (layout.atom(), layout.atom().pinv());
    let holder = |row: usize, column: usize| {
        let mut at = vec![column as u32];
        let mut left = row;
        for extent in shape.iter().rev().skip(1) {
            at.insert(0, (left % *extent as usize) as u32);
            left /= *extent as usize;
        }
        let inside: Vec<u32> =
            at.iter().zip(atom.out_bits()).map(|(c, bits)| c & ((1 << bits) - 1)).collect();
        let place = inverse.as_ref()?.place(&inside);
        // Atoms are numbered in row-major order.
        let atoms = at.iter().zip(atom.out_bits()).zip(layout.repeats());
        let number = atoms.fold(0, |n, ((c, bits), repeats)| n * *repeats as usize + (c >> bits) as usize);
        Some((place.warp, place.lane, number << atom.bits(InDim::Register) | place.register as usize))
    };
    let row = |r: usize| (0..columns.min(MOST[1])).map(|c| holder(r, c)).collect();
    (0..rows.min(MOST[0])).map(row).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Layouts drawn below one another: title, layout, shape of the tile, bytes of an element.
pub fn svg(pictures: &[(String, &Layout, &[u32], u32)], banks: SharedBanks) -> String {
    let (mut body, mut top, mut width) = (String::new(), 10, 700);
    for (title, layout, shape, element_bytes) in pictures {
        // Writing to a string does not fail.
        let mut line = |text: &str, bold: bool| {
            top += 18;
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                body,
                "<text x=\"10\" y=\"{top}\" font-size=\"13\"{weight}>{}</text>",
                escaped(text)
            );
        };
        line(title, true);
        numbers(layout, *element_bytes, banks).lines().iter().for_each(|l| line(l, false));
        let grid = holders(layout, shape);
        let columns = grid.first().map_or(0, Vec::len);
        let all: usize = shape.iter().map(|d| *d as usize).product();
        if grid.len() * columns < all {
            line(&format!("the first {} x {columns} of {all} elements", grid.len()), false);
        }
        top += 8;
        let warps = 1u32 << layout.atom().bits(InDim::Warp);
        let lanes = 1u32 << layout.atom().bits(InDim::Lane);
        for (r, row) in grid.iter().enumerate() {
            for (c, holder) in row.iter().enumerate() {
                let (x, y) = (10 + c * CELL[0], top + r * CELL[1]);
                let (fill, text, about) = match holder {
                    Some((warp, lane, register)) => (
                        format!("hsl({} 70% {}%)", warp * 360 / warps, 92 - lane * 30 / lanes),
                        format!("w{warp} {lane}:{register}"),
                        format!("element [{r}, {c}]: warp {warp}, lane {lane}, register {register}"),
                    ),
                    None => ("#fff".to_string(), String::new(), format!("element [{r}, {c}]: nobody")),
                };
                let _ = writeln!(
                    body,
                    "<g><title>{about}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" \
                     stroke=\"#0003\"/><text x=\"{}\" y=\"{}\" font-size=\"9\">{text}</text></g>",
                    CELL[0],
                    CELL[1],
                    x + 2,
                    y + 13
                );
            }
        }
        width = width.max(20 + columns * CELL[0]);
        top += grid.len() * CELL[1] + 14;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" font-family=\"monospace\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::layout::Threads;
    use crate::target::spec::SM_90A;

    /// Rows of f16 of which each thread owns 8 neighbours, the layout of accesses to global memory.
    #[test]
    fn numbers_of_a_coalesced_tile() {
        let threads = Threads { lane_bits: 5, warp_bits: 1 };
        let layout = Layout::blocked(&[16, 64], &[1, 0], 8, threads);
        let n = numbers(&layout, 2, SM_90A.banks());
        assert_eq!((n.registers, n.threads, n.copies, n.access_bytes), (16, [32, 2], 1, 16));
        assert_eq!((n.vector, n.row_major_ways, n.swizzled_ways), (vec![1, 8], 1, Some(1)));
        // Lanes below one another, each with a row of 128 bytes: eight at a time read 16 bytes of the same banks, which
        // the swizzle distributes over all of them.
        let layout = Layout::blocked(&[64, 64], &[0, 1], 1, threads);
        let n = numbers(&layout, 2, SM_90A.banks());
        assert_eq!((n.access_bytes, n.row_major_ways, n.swizzled_ways), (16, 8, Some(1)));
    }

    #[test]
    fn every_element_of_a_picture_has_the_thread_that_holds_it() {
        let threads = Threads { lane_bits: 5, warp_bits: 0 };
        let layout = Layout::blocked(&[4, 96], &[1, 0], 4, threads);
        let grid = holders(&layout, &[4, 96]);
        assert_eq!((grid.len(), grid[0].len()), (4, 64));
        for (r, row) in grid.iter().enumerate() {
            for (c, holder) in row.iter().enumerate() {
                let (warp, lane, register) = holder.unwrap();
                assert_eq!(layout.coords(register, lane, warp), [r as u32, c as u32]);
            }
        }
        let text = svg(&[("a < b".into(), &layout, &[4, 96], 4)], SM_90A.banks());
        assert!(text.starts_with("<svg") && text.contains("a &lt; b") && text.matches("<g>").count() == 256);
    }
}
