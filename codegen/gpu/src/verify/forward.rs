//! Follows all paths through a kernel, branches and loops included, to a fixed point.

use tk_tile::flow::{Flow, flow};
use tk_tile::{BlockId, Func, InstId};

use super::fault::GpuVerifyError;

/// What is known at a point of a kernel.
pub(super) trait State: Clone + Default {
    /// Adds what holds on another path; returns true if that was not known.
    fn join(&mut self, other: Self) -> bool;
}

/// What an instruction without blocks does to the state.
pub(super) type Visit<'a, S> = &'a mut dyn FnMut(InstId, &mut S) -> Result<(), GpuVerifyError>;

/// Visits the instructions of a block, with the state before each.
pub(super) fn forward<S: State>(
    func: &Func,
    block: BlockId,
    state: &mut S,
    visit: Visit<'_, S>,
) -> Result<(), GpuVerifyError> {
    let insts = func.blocks.get(block).map_or(&[][..], |b| &b.insts);
    for id in insts {
        let Some(inst) = func.insts.get(*id) else { continue };
        match (flow(inst.op), inst.blocks.as_slice()) {
            (Flow::For, [body]) => loop {
                let mut after = state.clone();
                forward(func, *body, &mut after, visit)?;
                if !state.join(after) {
                    break;
                }
            },
            // It exits after its condition.
            (Flow::While, [condition, body]) => loop {
                let mut exit = state.clone();
                forward(func, *condition, &mut exit, visit)?;
                let mut after = exit.clone();
                forward(func, *body, &mut after, visit)?;
                if !state.join(after) {
                    *state = exit;
                    break;
                }
            },
            (Flow::If, arms) => {
                let before = std::mem::take(state);
                for arm in arms {
                    let mut after = before.clone();
                    forward(func, *arm, &mut after, visit)?;
                    state.join(after);
                }
            }
            // Blocks over single elements do not access shared memory.
            (Flow::For | Flow::While | Flow::Plain | Flow::Elements | Flow::Expect, _) => visit(*id, state)?,
        }
    }
    Ok(())
}
