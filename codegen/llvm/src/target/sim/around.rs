//! The words around the elements of an access at any address, of which the simulator reads the elements alone: what else is in the
//! words is no access of the program.

use inkwell::values::IntValue;

use super::Sim;
use crate::emit::{Emit, Res, Stop};
use crate::target::{Access, Space, TargetEmitter};

impl Sim {
    /// [`TargetEmitter::load_around`].
    pub(super) fn elements_in_words<'c>(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        access: &Access<'c>,
    ) -> Res<Vec<IntValue<'c>>> {
        let (b, byte) = (e.builder, e.context.i8_type());
        let words = Access::of(address, 0, e.i32().into(), 4, 8);
        let window = self.alloca(e, &words)?;
        for i in 0..8 {
            b.build_store(self.element(e, &words, window, i)?, e.int(0))?;
        }
        let first = b.build_and(address, e.long(15), "")?;
        let zero = access.ty.const_zero();
        for i in 0..i64::from(access.count) {
            let at = i * i64::from(access.bytes);
            let one = Access::of(address, at, access.ty, access.bytes, 1);
            let one = Access { predicate: access.predicate, caching: access.caching, ..one };
            let place = b.build_int_add(first, e.long(at), "")?;
            // SAFETY: 16 bytes from one of the first 16 on are in the window of 32.
            let place = unsafe { b.build_gep(byte, window, &[place], "")? };
            for x in self.load(e, Space::Global, &one, &[zero])? {
                let store = b.build_store(place, x)?;
                store.set_alignment(1).map_err(|_| Stop::Bug("an alignment of 1 is refused".into()))?;
            }
        }
        let word = |i| Ok(b.build_load(e.i32(), self.element(e, &words, window, i)?, "")?.into_int_value());
        (0..8).map(word).collect()
    }
}
