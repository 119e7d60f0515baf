//! The interface of the program and its engine: requests to an engine, and its description of itself.

use std::fmt;

use clap::ValueEnum;

/// Where the kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceKind {
    /// The interpreter of the language.
    Cpu,
    /// A GPU through CUDA.
    Cuda,
    /// A GPU through HIP.
    Hip,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Hip => "hip",
        })
    }
}

/// The element types that weights may have, in a file and on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dtype {
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point.
    F16,
    /// The upper half of a 32-bit floating-point number.
    #[value(name = "bf16")]
    BF16,
}

impl Dtype {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
        }
    }

    /// The type to compute with when none is asked for. The interpreter is as fast with `f32` as with any other; on a
    /// GPU half of the bytes is nearly half of the time, and `bf16` holds every magnitude that `f32` does.
    pub fn chosen(asked: Option<Dtype>, device: DeviceKind, stored: Dtype) -> Dtype {
        match (asked, device, stored) {
            (Some(asked), _, _) => asked,
            (None, DeviceKind::Cpu, _) => Dtype::F32,
            (None, DeviceKind::Cuda | DeviceKind::Hip, Dtype::F16) => Dtype::F16,
            (None, DeviceKind::Cuda | DeviceKind::Hip, Dtype::F32 | Dtype::BF16) => Dtype::BF16,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
        })
    }
}

/// How the next token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest token; else finite and positive.
    pub temperature: f32,
    /// Only the likeliest tokens, this many; 0 is all.
    pub top_k: u32,
    /// Only the likeliest tokens that have this probability together; 1 is all.
    pub top_p: f32,
    /// The same seed gives the same text.
    pub seed: u64,
}

impl Sampling {
    /// The likeliest token, always.
    pub fn greedy() -> Sampling {
        Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 }
    }
}

/// What an engine makes room for.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Where the kernels run.
    pub device: DeviceKind,
    /// The type of the weights on the device.
    pub dtype: Dtype,
    /// Sequences that are generated together.
    pub batch: usize,
    /// Tokens a sequence may have, at most the model's context.
    pub capacity: usize,
}

/// Bytes on the device.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The model's tensors.
    pub weights: u64,
    /// Keys and values of earlier tokens.
    pub cache: u64,
    /// Everything else.
    pub work: u64,
}

/// One kernel of a traced step.
#[derive(Clone, Debug)]
pub struct Span {
    /// The kernel.
    pub name: String,
    /// Microseconds from the beginning of the step.
    pub start_us: f64,
    /// Microseconds it took.
    pub us: f64,
}
