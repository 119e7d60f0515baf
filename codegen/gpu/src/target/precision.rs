//! The precision of matrix products of f32.

use tk_tile::Attrs;

/// The precision of f32 operands: the parameter `precision` of `dot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the reference of `dot` defines them")]
pub enum Precision {
    #[default]
    Ieee,
    Tf32,
    Tf32x3,
    Bf16x3,
    Bf16x6,
}

impl Precision {
    const ALL: [Precision; 5] =
        [Precision::Ieee, Precision::Tf32, Precision::Tf32x3, Precision::Bf16x3, Precision::Bf16x6];

    /// The word of the source.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Ieee => "ieee",
            Precision::Tf32 => "tf32",
            Precision::Tf32x3 => "tf32x3",
            Precision::Bf16x3 => "bf16x3",
            Precision::Bf16x6 => "bf16x6",
        }
    }

    /// The precision with this name.
    pub fn parse(name: &str) -> Option<Precision> {
        Precision::ALL.into_iter().find(|p| p.name() == name)
    }

    /// The precision of a `dot` of tile IR.
    pub fn of(attrs: &Attrs) -> Precision {
        attrs.str("precision").and_then(Precision::parse).unwrap_or_default()
    }
}
