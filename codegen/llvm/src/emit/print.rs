//! Owns `print`: what a thread knows of the values goes out as parts; who puts them together is the target's business.

use inkwell::values::{BasicValueEnum, IntValue};
use tk_tile::{Inst, Type};

use super::value::{Val, word};
use super::{Emit, Res};

/// A part of a value that is printed.
#[derive(Clone, Copy, Debug)]
pub struct Part<'c> {
    /// Which of the values.
    pub value: u32,
    /// Of a tile the element in row-major order, or [`Part::NOTHING`] where this thread holds padding. Of a view 0 for the
    /// address, then one for each extent and each stride. An i32.
    pub position: IntValue<'c>,
    /// The bits, as an i64.
    pub bits: IntValue<'c>,
}

impl Part<'_> {
    /// The position of what is no part.
    pub const NOTHING: u32 = u32::MAX;
}

impl<'c> Emit<'_, 'c> {
    pub(super) fn print(&mut self, inst: &Inst) -> Res<()> {
        let mut parts = vec![];
        let mut part =
            |value: usize, position, bits| parts.push(Part { value: value as u32, position, bits });
        for (value, v) in inst.operands.iter().enumerate() {
            match self.value(*v)? {
                Val::Scalar(x) => part(value, self.int(0), self.bits(*x)?),
                Val::View(view) => {
                    let rest = view.extents.iter().chain(&view.strides);
                    for (n, x) in std::iter::once(&view.base).chain(rest).enumerate() {
                        part(value, self.int(n as u32), self.extend(*x, true)?);
                    }
                }
                Val::Tile(_) => {
                    let (layout, shape) = (self.layout_id(*v)?, self.shape(*v));
                    for (n, x) in self.registers(*v)?.into_iter().enumerate() {
                        let mut at = self.position(layout, shape, n)?;
                        if let Some(real) = self.is_real(layout, shape, n)? {
                            let none = self.int(Part::NOTHING);
                            at = self.builder.build_select(real, at, none, "")?.into_int_value();
                        }
                        part(value, at, self.bits(x)?);
                    }
                }
            }
        }
        let types: Vec<Type> = inst.operands.iter().map(|v| self.ty(*v).clone()).collect();
        self.machine.print(self, inst.attrs.str("message").unwrap_or(""), types, &parts)
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
