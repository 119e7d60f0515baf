//! The rates of a launch: bytes and operations in a second, and the time that the machine allows at best.

use tk_tile::traffic::Traffic;

/// What a launch does, and the limits of a GPU on it.
pub struct Rate {
    /// Bytes of the arguments that it reads and writes, each once.
    pub bytes: f64,
    /// Operations of matrix products, or on floats where there are none.
    pub operations: f64,
    /// Whether some of it depends on data.
    pub is_guess: bool,
    bounds: Vec<Bound>,
    roof: Option<(f64, f64)>,
}

/// A limit of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    kind: Kind,
    /// The milliseconds that it allows at best.
    pub ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "without LLVM, kernels run only on the CPU"))]
enum Kind {
    Memory,
    Matrix,
    Float,
}

impl Bound {
    /// `memory`, `matrix` or `float`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Memory => "memory",
            Kind::Matrix => "matrix",
            Kind::Float => "float",
        }
    }
}

impl Rate {
    /// Of a launch on the GPU of a name.
    pub fn new(traffic: &Traffic, gpu: &str) -> Rate {
        let matrix = traffic.matrix_operations();
        Rate {
            bytes: traffic.bytes(),
            operations: if matrix > 0.0 { matrix } else { traffic.float },
            is_guess: traffic.is_guess,
            bounds: bounds(traffic, gpu),
            roof: roof(traffic, gpu),
        }
    }

    /// The limit that allows least, if the GPU is known.
    pub fn bound(&self) -> Option<Bound> {
        self.bounds.iter().copied().max_by(|a, b| a.ms.total_cmp(&b.ms))
    }

    /// Bytes and operations in a second that the GPU allows at best.
    pub fn roof(&self) -> Option<(f64, f64)> {
        self.roof
    }

    /// Gigabytes in a second.
    pub fn gb_per_s(&self, ms: f64) -> f64 {
        self.bytes / ms / 1e6
    }

    /// Tera-operations in a second.
    pub fn tflop_per_s(&self, ms: f64) -> f64 {
        self.operations / ms / 1e9
    }
}

#[cfg(feature = "llvm")]
fn bounds(traffic: &Traffic, gpu: &str) -> Vec<Bound> {
    let Some(chip) = tk_gpu::target::chip::chip(gpu) else { return vec![] };
    let ms = |amount: f64, in_second: f64| amount / in_second * 1e3;
    let matrix = traffic.matrix.iter().map(|(dtype, n)| ms(*n, chip.matrix(*dtype))).sum();
    vec![
        Bound { kind: Kind::Memory, ms: ms(traffic.bytes(), chip.memory) },
        Bound { kind: Kind::Matrix, ms: matrix },
        Bound { kind: Kind::Float, ms: ms(traffic.float, chip.float32) },
    ]
}

#[cfg(not(feature = "llvm"))]
fn bounds(_: &Traffic, _: &str) -> Vec<Bound> {
    vec![]
}

#[cfg(feature = "llvm")]
fn roof(traffic: &Traffic, gpu: &str) -> Option<(f64, f64)> {
    let chip = tk_gpu::target::chip::chip(gpu)?;
    let matrix = traffic.matrix.iter().map(|(dtype, _)| chip.matrix(*dtype)).reduce(f64::max);
    Some((chip.memory, matrix.unwrap_or(chip.float32)))
}

#[cfg(not(feature = "llvm"))]
fn roof(_: &Traffic, _: &str) -> Option<(f64, f64)> {
    None
}
