//! Orders the products, reads of shared memory and loads of an iteration whose loads run ahead.
//!
//! ```text
//! load, load, load             read, read
//! read, read, read, read       load, load, load
//! wait                    =>   wait, multiply, read
//! multiply, multiply           wait, multiply, read
//! wait                         wait, multiply
//! multiply, multiply           ..
//! ```
//!
//! The operands of the first products are read first, and the loads of the next iteration begin while these reads are on their
//! way. What later products multiply is read between the products before them, as many reads after each as are left for it.
//! LLVM is given the order as groups of its scheduler.
//!
//! Requires that the loads, the products and the end of the order are in one block: elsewhere LLVM chooses.

use inkwell::basic_block::BasicBlock;
use tk_gpu::ir::op::FragmentLoad;

/// Bytes of the widest read of shared memory.
const WIDEST: usize = 16;
/// Bytes of a register.
const WORD: usize = 4;
/// The most products that have a group each; of more, several have one.
const MOST_GROUPS: usize = 32;

/// Instructions of a kind, as a group of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedGroup {
    /// Matrix instructions.
    Products,
    /// Loads from device memory.
    Loads,
    /// Reads of shared memory.
    Reads,
}

/// The matrix instructions of a product that multiply what is read together, and these reads.
#[derive(Clone, Copy, Debug)]
struct Part {
    reads: usize,
    products: usize,
}

/// What an iteration does, in order.
#[derive(Debug, Default)]
pub struct IterationOrder<'c> {
    loads: Option<(BasicBlock<'c>, usize)>,
    products: Vec<(BasicBlock<'c>, Vec<Part>)>,
}

/// The instructions that read this many bytes for a lane, in accesses of so many: LLVM joins two narrow accesses of registers.
pub(super) fn reads(load: FragmentLoad, bytes: usize, of_element: usize) -> usize {
    match load {
        FragmentLoad::Transposed => bytes.div_ceil(2 * WORD),
        FragmentLoad::Vector(n) => {
            let access = (n as usize * of_element).max(1);
            let joined = if (WORD..WIDEST).contains(&access) { 2 * access } else { access };
            bytes.div_ceil(joined)
        }
        FragmentLoad::Matrices | FragmentLoad::TransposedMatrices => bytes.div_ceil(WIDEST),
        FragmentLoad::Instruction => 0,
    }
}

impl<'c> IterationOrder<'c> {
    /// Notes the loads of the next iteration.
    pub(super) fn load(&mut self, block: BasicBlock<'c>, count: usize) {
        self.loads = Some((block, count));
    }

    /// Notes a product of so many parts, each with the same reads and matrix instructions.
    pub(super) fn multiply(&mut self, block: BasicBlock<'c>, parts: usize, reads: usize, products: usize) {
        self.products.push((block, vec![Part { reads, products }; parts]));
    }

    /// The groups of what is in a block, in order; none without a product.
    pub(super) fn groups(&self, here: BasicBlock<'c>) -> Vec<(OrderedGroup, usize)> {
        let mut groups = vec![];
        let mut loads = self.loads.filter(|(block, _)| *block == here).map(|(_, n)| n);
        for parts in self.products.iter().filter(|(block, _)| *block == here).map(|(_, parts)| parts) {
            let Some(first) = parts.first() else { continue };
            groups.push((OrderedGroup::Reads, first.reads));
            groups.extend(loads.take().map(|n| (OrderedGroup::Loads, n)));
            let all: usize = parts.iter().map(|p| p.products).sum();
            let each = all.div_ceil(MOST_GROUPS);
            for (n, part) in parts.iter().enumerate() {
                let mut reads = parts.get(n + 1).map_or(0, |next| next.reads);
                let mut products = part.products;
                while products > 0 {
                    let now = each.min(products);
                    groups.push((OrderedGroup::Products, now));
                    let between = reads.div_ceil(products.div_ceil(each));
                    groups.push((OrderedGroup::Reads, between));
                    (products, reads) = (products - now, reads - between);
                }
            }
        }
        groups.retain(|(_, n)| *n > 0);
        groups
    }
}
