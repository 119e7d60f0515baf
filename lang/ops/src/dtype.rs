//! The element types: [`DType`], sets of them, and what each is (width, class, limits).

use std::fmt;

/// A scalar element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the types of the language")]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F8E4M3,
    F8E5M2,
    /// As CDNA3 has it: a bias larger by one, a single zero, and NaN where -0 would be.
    F8E4M3FNUZ,
    /// As [`DType::F8E4M3FNUZ`], with the exponent of `F8E5M2`.
    F8E5M2FNUZ,
    F16,
    BF16,
    F32,
    F64,
    /// Storage only, two in a byte.
    E2M1,
    /// Storage only, a power of two.
    E8M0,
}

use DType::*;

impl DType {
    /// Every type, in declaration order.
    pub const ALL: [DType; 19] = [
        Bool, I8, I16, I32, I64, U8, U16, U32, U64, F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F16, BF16, F32,
        F64, E2M1, E8M0,
    ];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F8E4M3 => "f8e4m3",
            F8E5M2 => "f8e5m2",
            F8E4M3FNUZ => "f8e4m3fnuz",
            F8E5M2FNUZ => "f8e5m2fnuz",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            E2M1 => "e2m1",
            E8M0 => "e8m0",
        }
    }

    /// The type with this name.
    pub fn parse(name: &str) -> Option<DType> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Width in bits; `bool` counts as 8, as it is stored.
    pub fn bits(self) -> u32 {
        match self {
            E2M1 => 4,
            Bool | I8 | U8 | F8E4M3 | F8E5M2 | F8E4M3FNUZ | F8E5M2FNUZ | E8M0 => 8,
            I16 | U16 | F16 | BF16 => 16,
            I32 | U32 | F32 => 32,
            I64 | U64 | F64 => 64,
        }
    }

    /// Bits of one element where it is not packed, in a register or in memory.
    pub fn stored_bits(self) -> u32 {
        self.bits().max(8)
    }

    /// Bytes of one element in memory (the packed type counts as 1).
    pub fn bytes(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    /// Whether this is an integer (not `bool`).
    pub fn is_int(self) -> bool {
        DTypeSet::INT.has(self)
    }

    /// Whether this is a signed integer.
    pub fn is_signed(self) -> bool {
        DTypeSet::SINT.has(self)
    }

    /// Whether this is f16, bf16, f32 or f64.
    pub fn is_float(self) -> bool {
        DTypeSet::FLOAT.has(self)
    }

    /// Whether this is one of the fp8 types.
    pub fn is_f8(self) -> bool {
        DTypeSet::F8.has(self)
    }

    /// `T.acc`: the type in which `dot` and sums of `T` accumulate.
    pub fn acc(self) -> DType {
        match self {
            F8E4M3 | F8E5M2 | F8E4M3FNUZ | F8E5M2FNUZ | F16 | BF16 => F32,
            I8 | U8 => I32,
            other => other,
        }
    }

    /// The type to which factors of these types are rounded after their scales: of bf16, f32 and f64 the first one that
    /// has all bits of both.
    pub fn scaled(self, other: DType) -> DType {
        match (self, other) {
            (F64, _) | (_, F64) => F64,
            (a, b) if a.bits().max(b.bits()) <= 8 => BF16,
            (_, _) => F32,
        }
    }

    /// The smallest and largest value of an integer type.
    pub fn int_range(self) -> Option<(i128, i128)> {
        if !self.is_int() {
            return None;
        }
        let b = self.bits();
        Some(if self.is_signed() { (-(1 << (b - 1)), (1 << (b - 1)) - 1) } else { (0, (1 << b) - 1) })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of element types: the meaning of a bound (`int`, `float`, `f16 | bf16`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DTypeSet(pub u32);

impl DTypeSet {
    /// No type.
    pub const EMPTY: DTypeSet = DTypeSet(0);
    /// Only `bool`.
    pub const BOOL: DTypeSet = DTypeSet::of(&[Bool]);
    /// i8 to i64.
    pub const SINT: DTypeSet = DTypeSet::of(&[I8, I16, I32, I64]);
    /// u8 to u64.
    pub const UINT: DTypeSet = DTypeSet::of(&[U8, U16, U32, U64]);
    /// All integers.
    pub const INT: DTypeSet = DTypeSet(Self::SINT.0 | Self::UINT.0);
    /// f16 to f64.
    pub const FLOAT: DTypeSet = DTypeSet::of(&[F16, BF16, F32, F64]);
    /// The fp8 types.
    pub const F8: DTypeSet = DTypeSet::of(&[F8E4M3, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ]);
    /// Integers and floats: what arithmetic works on.
    pub const NUMBER: DTypeSet = DTypeSet(Self::INT.0 | Self::FLOAT.0);
    /// Signed numbers.
    pub const SIGNED: DTypeSet = DTypeSet(Self::SINT.0 | Self::FLOAT.0);
    /// Numbers and fp8: what can be compared and ordered.
    pub const ORDERED: DTypeSet = DTypeSet(Self::NUMBER.0 | Self::F8.0);
    /// Numbers, fp8 and bool: everything but the packed storage types.
    pub const VALUE: DTypeSet = DTypeSet(Self::ORDERED.0 | Self::BOOL.0);
    /// Everything.
    pub const ANY: DTypeSet = DTypeSet((1 << DType::ALL.len()) - 1);

    /// The set of these types.
    pub const fn of(types: &[DType]) -> DTypeSet {
        let (mut bits, mut i) = (0, 0);
        while i < types.len() {
            bits |= 1 << (types[i] as u32);
            i += 1;
        }
        DTypeSet(bits)
    }

    /// Whether `d` is a member.
    pub const fn has(self, d: DType) -> bool {
        self.0 & (1 << (d as u32)) != 0
    }

    /// Whether every member is in `other`.
    pub fn within(self, other: DTypeSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// The common members.
    pub fn and(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & other.0)
    }

    /// The members of either.
    pub const fn or(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 | other.0)
    }

    /// The members that are not in `other`.
    pub const fn without(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & !other.0)
    }

    /// The members in declaration order.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |d| self.has(*d))
    }

    /// The single member of a set of one.
    pub fn single(self) -> Option<DType> {
        let mut it = self.iter();
        it.next().filter(|_| it.next().is_none())
    }

    /// The class with this name (`int`, `sint`, `uint`, `float`, `f8`, `number`, `dtype`).
    pub fn class(name: &str) -> Option<DTypeSet> {
        Some(match name {
            "int" => Self::INT,
            "sint" => Self::SINT,
            "uint" => Self::UINT,
            "float" => Self::FLOAT,
            "f8" => Self::F8,
            "number" => Self::NUMBER,
            "dtype" => Self::ANY,
            _ => return None,
        })
    }
}

impl fmt::Display for DTypeSet {
    /// The class name if there is one, else the members separated by ` | `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in ["int", "sint", "uint", "float", "f8", "number", "dtype"] {
            if Self::class(name) == Some(*self) {
                return f.write_str(name);
            }
        }
        let names: Vec<_> = self.iter().map(DType::name).collect();
        f.write_str(&names.join(" | "))
    }
}
