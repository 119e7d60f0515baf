//! The Rust types of element types: [`Element`].

use tk_ops::DType;

/// A Rust type of an element type.
///
/// # Safety
/// Every bit pattern is a value, without padding.
pub unsafe trait Element: Copy + 'static {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty = $dtype:ident),*) => {
        // SAFETY: these are plain numbers.
        $(unsafe impl Element for $ty { const DTYPE: DType = DType::$dtype; })*
    };
}

elements!(
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f32 = F32,
    f64 = F64,
    half::f16 = F16,
    half::bf16 = BF16
);

/// Element types without a Rust type, as bits.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $dtype:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        // SAFETY: it is a byte.
        unsafe impl Element for $name { const DTYPE: DType = DType::$dtype; }

        impl $name {
            /// As a number of a launch.
            pub fn scalar(self) -> tk_ops::Scalar {
                tk_ops::Scalar::from_bits(DType::$dtype, self.0.into())
            }
        }
    )*};
}

bits! {
    /// A bool: 0 or 1.
    Bool = Bool;
    /// Four bits of exponent, three of mantissa.
    F8E4M3 = F8E4M3;
    /// Five bits of exponent, two of mantissa.
    F8E5M2 = F8E5M2;
    /// As `F8E4M3`, with one zero and one NaN, of half the size.
    F8E4M3FNUZ = F8E4M3FNUZ;
    /// As `F8E5M2`, with one zero and one NaN, of half the size.
    F8E5M2FNUZ = F8E5M2FNUZ;
    /// Two bits of exponent, one of mantissa.
    E2M1 = E2M1;
    /// An exponent alone: a scale.
    E8M0 = E8M0;
}
