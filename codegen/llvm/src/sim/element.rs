//! Elements of matrix products on the simulated target, and how their products are summed.

use tk_ops::DType;
use tk_ops::scalar::Scalar;

/// Elements of the operands as the instruction reads them.
#[derive(Clone, Copy)]
pub enum Element {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
}

/// An element by its bits; higher bits are ignored.
pub fn element(d: DType, bits: u64) -> Element {
    let x = Scalar::from_bits(d, bits);
    match d {
        DType::I8 => Element::Int(i64::from(bits as u8 as i8)),
        DType::U8 => Element::Int(i64::from(bits as u8)),
        _ => Element::Float(x.as_f64().unwrap_or(f64::NAN)),
    }
}

/// The bits of an accumulator with products added.
pub fn add(sum: DType, bits: u64, products: impl Iterator<Item = (Element, Element)>) -> u64 {
    let float = |e: Element| match e {
        Element::Float(x) => x,
        Element::Int(x) => x as f64,
    };
    match sum {
        DType::F64 => {
            products.fold(f64::from_bits(bits), |c, (a, b)| float(a).mul_add(float(b), c)).to_bits()
        }
        DType::F32 => {
            let c = f64::from(f32::from_bits(bits as u32));
            let sum = products.fold(c, |c, (a, b)| c + float(a) * float(b)) as f32;
            sum.to_bits().into()
        }
        _ => {
            let whole = |e: Element| if let Element::Int(x) = e { x } else { 0 };
            let sum =
                products.fold(bits as u32 as i32, |c, (a, b)| c.wrapping_add((whole(a) * whole(b)) as i32));
            u64::from(sum.cast_unsigned())
        }
    }
}
