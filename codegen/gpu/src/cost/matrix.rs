//! The cost of matrix products.

use tk_tile::Inst;

use super::latency;
use super::work::{Costs, SECTOR, SHARED, Work};
use crate::ir::op::{FragmentLoad, Mma, MmaOperand};
use crate::ir::warps::WARPGROUP_WARPS;

/// Rows of an instruction of a warpgroup, and the most columns.
const WARPGROUP_ROWS: f64 = 64.0;
const WARPGROUP_COLUMNS: f64 = 256.0;

impl Costs<'_> {
    pub(super) fn mma(&self, mma: &Mma, inst: &Inst) -> Work {
        let Some(acc) = inst.operands.first().copied() else { return Work::default() };
        let ty = self.kernel.module.types.get(self.kernel.func().ty(acc));
        let Some([m, n]) = ty.shape().and_then(|s| <[u32; 2]>::try_from(s).ok()) else {
            return Work::default();
        };
        let (m, n, k) = (f64::from(m), f64::from(n), f64::from(mma.product.k));
        let bytes = mma.product.elems.map(|d| d.bytes() as f64);
        let group = mma.instruction.is_wgmma();
        // Groups beyond the rows share the columns.
        let groups = self.warps / f64::from(WARPGROUP_WARPS);
        let across = (groups / (m / WARPGROUP_ROWS).ceil().max(1.0)).max(1.0);
        let (rows, columns) =
            if group { (WARPGROUP_ROWS, (n / across).clamp(8.0, WARPGROUP_COLUMNS)) } else { (16.0, 8.0) };
        // A sector of each row and column.
        let depth = SECTOR / bytes[0];
        let instructions = (m / rows).ceil() * (n / columns).ceil() * (k / depth).max(1.0);
        // Time on the matrix units: half of it for one byte, twice as much for four, and for what is emulated.
        let slower = match bytes[0] as u32 {
            0 | 1 => 0.5,
            2 => 1.0,
            4 => 2.0,
            _ => 16.0,
        };
        let whole = (m.max(rows) / rows).ceil() * rows * (n.max(8.0) / 8.0).ceil() * 8.0 * k * 2.0;
        // Without warpgroups the units are reached by more instructions, and wait for operands.
        let rate = if group { 1.0 + 16.0 / columns } else { 1.6 };
        let is_shared = |operand: &MmaOperand| matches!(operand, MmaOperand::Shared { .. });
        let from_shared =
            |operand: &MmaOperand, size: f64, times: f64| if is_shared(operand) { size * times } else { 0.0 };
        let threads = self.kernel.options.threads();
        let warps = f64::from(1u32 << threads.warp_bits);
        let (times_a, times_b) = match group {
            true => ((n / columns).ceil(), (m / WARPGROUP_ROWS).ceil()),
            // Each warp reads its rows and columns: those of a square of warps.
            false => (warps.sqrt(), warps.sqrt()),
        };
        let shared =
            from_shared(&mma.a, m * k * bytes[0], times_a) + from_shared(&mma.b, k * n * bytes[1], times_b);
        let loads = |operand: &MmaOperand, size: f64, times: f64| match operand {
            MmaOperand::Shared { load: Some(FragmentLoad::Vector(v)), .. } => {
                size * times / (self.lanes * f64::from(*v).max(1.0) * 2.0)
            }
            MmaOperand::Shared { load: Some(FragmentLoad::Instruction) | None, .. }
            | MmaOperand::Registers => 0.0,
            MmaOperand::Shared { .. } => size * times / 512.0,
        };
        let moves = loads(&mma.a, m * k * bytes[0], times_a) + loads(&mma.b, k * n * bytes[1], times_b);
        Work {
            issue: if group { instructions * 4.0 } else { instructions + moves },
            shared: shared / SHARED,
            matrix: whole * slower * rate,
            latency: latency::MATRIX + if group { 0.0 } else { latency::SHARED },
            ..Work::default()
        }
    }
}
