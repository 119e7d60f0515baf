//! Sorts by rank: each element counts those that precede it, and is stored at that position.
//!
//! ```text
//! v1 = sort v0 {axis = 0} : tile[f32, 32]    =>    shared_store v0 {buffer = 0, ..}
//!                                                  v2 = shared_rank v0 {axis = 0, buffer = 0, ..} : tile[i32, 32]
//!                                                  shared_scatter v0, v2 {axis = 0, buffer = 1, ..}
//!                                                  v1 = shared_load {buffer = 1, ..} : tile[f32, 32]
//! ```

use tk_ops::{CreateOp, DType, Op, ScanOp, ShapeOp};
use tk_tile::{Attr, Attrs, BlockId, Inst, InstId, Type, ValueId};

use super::{Lower, strided};
use crate::ir::attrs::axis_of;
use crate::ir::kernel::LayoutId;
use crate::ir::op::{SharedRank, SharedScatter, Strides};

/// Bytes of a register.
const WORD_BYTES: u32 = 4;

impl Lower<'_> {
    /// Stores the keys and their values at their ranks.
    pub(super) fn sort(&mut self, block: BlockId, id: InstId, inst: &Inst) {
        let Some(keys) = inst.operands.first().copied() else { return };
        let shape = self.shape(keys);
        let axis = axis_of(inst).min(shape.len().saturating_sub(1));
        let extent = shape.get(axis).copied().unwrap_or(1);
        let (buffer, strides) = self.stored(block, keys);
        let top = inst.op == Op::Scan(ScanOp::TopK);
        let place = strided(buffer, 0, &strides);
        let rank = SharedRank {
            buffer,
            placement: Strides { start: 0, strides },
            axis,
            extent,
            descending: top || inst.attrs.flag("descending"),
            // The largest come first, NaN before all of them, as `max` orders them; a sort has NaN last.
            nan_first: top,
        };
        let layout = self.layout_id(keys);
        let ranks = self.kernel.module.types.intern(Type::tile(DType::I32, &shape));
        let rank = self.gpu(block, rank, &[keys], &[(ranks, layout)]);
        let Some(rank) = self.kernel.func().insts[rank].results.first().copied() else { return };
        let mut moved = inst.operands.clone();
        if let (Some(first), true) = (moved.first_mut(), self.is_crowded(keys)) {
            let again = self.load(block, &place, self.kernel.func().ty(keys), layout);
            *first = self.kernel.func().insts[again].results.first().copied().unwrap_or(keys);
        }
        if top {
            moved.extend(self.positions(block, &shape, axis, layout));
        }
        let mut loads = vec![];
        for (n, v) in moved.iter().enumerate() {
            let (buffer, strides) = self.rows(*v);
            let place = strided(buffer, 0, &strides);
            let value = self.converted_to(block, *v, layout);
            let at = self.converted_to(block, rank, layout);
            let scatter = SharedScatter { buffer, placement: Strides { start: 0, strides }, axis };
            self.gpu(block, scatter, &[value, at], &[]);
            loads.extend(self.load_result(block, &place, inst, n));
        }
        self.split_results(id, &loads);
    }

    /// Returns true if a lane does not keep keys while it counts: of each it has an integer to compare, its rank, and what
    /// it is compared with. It then reads them again.
    fn is_crowded(&self, keys: ValueId) -> bool {
        let words = self.bytes(keys).div_ceil(WORD_BYTES) as usize;
        let registers = self.kernel.layout(keys).map_or(0, |l| l.registers() * words);
        4 * registers >= self.kernel.options.spec.registers as usize
    }

    /// A tile with the position of each element along `axis`.
    fn positions(
        &mut self,
        block: BlockId,
        shape: &[u32],
        axis: usize,
        layout: Option<LayoutId>,
    ) -> Option<ValueId> {
        let n = shape.get(axis).copied()?;
        let mut collapsed = layout.map(|l| self.kernel.layouts.get(l).clone())?;
        for d in (0..shape.len()).filter(|d| *d != axis) {
            collapsed = collapsed.collapsed(d);
        }
        let mut line = collapsed.clone();
        for d in (0..shape.len()).rev().filter(|d| *d != axis) {
            line = line.without(d);
        }
        let types = &mut self.kernel.module.types;
        let unit: Vec<u32> = (0..shape.len()).map(|d| if d == axis { n } else { 1 }).collect();
        let (flat, unit, whole) = (
            types.intern(Type::tile(DType::I32, &[n])),
            types.intern(Type::tile(DType::I32, &unit)),
            types.intern(Type::tile(DType::I32, shape)),
        );
        let (line, collapsed) = (self.kernel.layouts.intern(line), self.kernel.layouts.intern(collapsed));
        let mut v = self.one(
            block,
            Op::Create(CreateOp::Arange),
            &[],
            Attrs::new().with("start", Attr::Int(0)),
            (flat, Some(line)),
        )?;
        v = self.one(block, Op::Shape(ShapeOp::Reshape), &[v], Attrs::new(), (unit, Some(collapsed)))?;
        self.one(block, Op::Shape(ShapeOp::Broadcast), &[v], Attrs::new(), (whole, layout))
    }
}
