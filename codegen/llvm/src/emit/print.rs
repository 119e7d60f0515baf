//! Emits `print`: each thread sends its elements as parts of a message; the target assembles them.

use inkwell::IntPredicate;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::ir::kernel::LayoutId;
use tk_tile::Inst;
use tk_tile::message::{EDGE, Form, is_cut};

use super::value::{Val, word};
use super::{Emit, Res};
use crate::target::request::PrintedPart;

impl<'c> Emit<'_, 'c> {
    pub(super) fn print(&mut self, inst: &Inst) -> Res<()> {
        let mut parts = vec![];
        let first = self.is_first(None)?;
        let mut part = |value: usize, position, bits, own| {
            parts.push(PrintedPart { value: value as u32, position, bits, own })
        };
        for (value, v) in inst.operands.iter().enumerate() {
            match self.value(*v)? {
                Val::Scalar(x) => part(value, self.int(0), self.bits(*x)?, first),
                Val::View(view) => {
                    let rest = view.extents.iter().chain(&view.strides);
                    for (n, x) in std::iter::once(&view.base).chain(rest).enumerate() {
                        part(value, self.int(n as u32), self.extend(*x, true)?, first);
                    }
                }
                Val::Tile(_) => {
                    let (layout, shape) = (self.layout_id(*v)?, self.shape(*v));
                    let first = self.is_first(Some(layout))?;
                    for (n, x) in self.registers(*v)?.into_iter().enumerate() {
                        let shown = self.is_shown(layout, shape, n)?;
                        let own = self.both(self.both(self.is_real(layout, shape, n)?, first)?, shown)?;
                        part(value, self.position(layout, shape, n)?, self.bits(x)?, own);
                    }
                }
            }
        }
        let forms: Vec<Form> = inst.operands.iter().map(|v| Form::of(self.ty(*v))).collect();
        self.target.print(self, inst.attrs.str("message").unwrap_or(""), forms, &parts)
    }

    /// Returns true if the text of a tile shows the element of a register; `None` if it shows all.
    fn is_shown(&self, layout: LayoutId, shape: &[u32], register: usize) -> Res<Option<IntValue<'c>>> {
        let mut all = None;
        for (d, n) in shape.iter().enumerate().filter(|(_, n)| is_cut(shape) && **n > 2 * EDGE) {
            let at = self.coord(layout, register, d)?;
            let low = self.builder.build_int_compare(IntPredicate::ULT, at, self.int(EDGE), "")?;
            let high = self.builder.build_int_compare(IntPredicate::UGE, at, self.int(n - EDGE), "")?;
            all = self.both(all, Some(self.builder.build_or(low, high, "")?))?;
        }
        Ok(all)
    }

    /// The bits of an element, as an i64.
    fn bits(&self, x: BasicValueEnum<'c>) -> Res<IntValue<'c>> {
        let code = match x {
            BasicValueEnum::FloatValue(x) => {
                let ty = x.get_type();
                let bits = match () {
                    () if ty == self.context.f64_type() => 64,
                    () if ty == self.context.f32_type() => 32,
                    () => 16,
                };
                self.builder.build_bit_cast(x, word(self.context, bits), "")?.into_int_value()
            }
            other => other.into_int_value(),
        };
        self.extend(code, false)
    }
}
