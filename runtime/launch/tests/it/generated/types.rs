//! The parts of generated programs: a sequence of random numbers, element types, extents and types.
//!
//! Guarantees that the same seed gives the same numbers on every machine.

/// A fixed sequence of numbers that look random (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// An element type by its name in the language; `T` is a parameter of the class `float`.
pub type Elem = &'static str;

pub const INTS: &[Elem] = &["i32", "i32", "i32", "u32", "i64", "u64", "i8", "u8", "i16", "u16"];
pub const FLOATS: &[Elem] = &["f32", "f32", "T", "f16", "bf16", "f64"];

pub const F8S: &[Elem] = &["f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"];
/// What floats are rounded to on the way: types without arithmetic, and two with it.
pub const ROUNDED: &[Elem] = &["f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "e2m1", "f16", "bf16"];

pub fn is_int(e: Elem) -> bool {
    INTS.contains(&e)
}

pub fn is_float(e: Elem) -> bool {
    FLOATS.contains(&e)
}

pub fn is_signed(e: Elem) -> bool {
    e.starts_with('i')
}

/// The type of which `sum` and `prod` give this one, if they give it for itself.
pub fn sums_to_itself(e: Elem) -> bool {
    is_float(e) || matches!(e, "i32" | "u32" | "i64" | "u64")
}

/// An extent: factors, sorted, which are numbers or the parameters `N` and `M`. Two extents are the same for the
/// checker when their factors are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim(Vec<&'static str>);

/// The extents that shapes begin with; `N` and `M` are what the kernel says.
pub const ATOMS: &[&str] = &["N", "N", "M", "1", "2", "3", "4", "8", "13"];
/// More of them, which take several warps, or a part of one.
pub const MORE_ATOMS: &[&str] =
    &["N", "N", "M", "1", "2", "3", "4", "8", "13", "16", "33", "64", "96", "100"];
/// The values of `N` and `M`: no powers of two.
pub const N: usize = 7;
pub const M: usize = 5;

impl Dim {
    pub fn of(atom: &'static str) -> Dim {
        Dim(if atom == "1" { vec![] } else { vec![atom] })
    }

    /// A number.
    pub fn number(n: usize) -> Dim {
        Dim(if n == 1 { vec![] } else { vec![Box::leak(n.to_string().into_boxed_str())] })
    }

    /// The number, if it is one.
    pub fn literal(&self) -> Option<usize> {
        match self.0.as_slice() {
            [] => Some(1),
            [one] => one.parse().ok(),
            _ => None,
        }
    }

    /// The extent of a flattened tile.
    pub fn product(dims: &[Dim]) -> Dim {
        let mut factors: Vec<&'static str> = dims.iter().flat_map(|d| d.0.iter().copied()).collect();
        factors.sort_unstable();
        Dim(factors)
    }

    pub fn is_one(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> String {
        if self.is_one() { "1".into() } else { self.0.join(" * ") }
    }

    pub fn value(&self) -> usize {
        self.0
            .iter()
            .map(|f| match *f {
                "N" => N,
                "M" => M,
                number => number.parse().unwrap(),
            })
            .product()
    }
}

/// A type of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    Tile(Elem, Vec<Dim>),
    Tuple(Vec<Ty>),
    /// A struct by its number; its fields are the same types in every use.
    Struct(usize, Vec<Ty>),
}

impl Ty {
    pub fn scalar(e: Elem) -> Ty {
        Ty::Tile(e, vec![])
    }

    /// As the language writes it.
    pub fn text(&self) -> String {
        match self {
            Ty::Tile(e, dims) if dims.is_empty() => (*e).to_string(),
            Ty::Tile(e, dims) => {
                let dims: Vec<String> = dims.iter().map(Dim::text).collect();
                format!("tile[{e}, {}]", dims.join(", "))
            }
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(Ty::text).collect();
                format!("({},)", parts.join(", "))
            }
            Ty::Struct(i, _) => format!("S{i}[T, N, M]"),
        }
    }
}

/// A shape as an argument.
pub fn shape_text(dims: &[Dim]) -> String {
    format!("[{}]", dims.iter().map(Dim::text).collect::<Vec<_>>().join(", "))
}

pub fn elements(dims: &[Dim]) -> usize {
    dims.iter().map(Dim::value).product()
}
