//! The works: which kernels are measured on which shapes and in which configurations.

use serde_json::{Value, json};
use tk_sema::contract::SetValue;

use crate::program::{Sets, ints};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sum of two f32.
    Add,
    /// Gelu of f16, in its form with `tanh` or the exact one.
    Gelu {
        /// Which form.
        tanh: bool,
    },
    /// Softmax of each row of f16, a row in registers.
    Softmax,
    /// Softmax of each row of f16, a block of a row at a time.
    SoftmaxLong,
    /// Layer normalization of each row of f16.
    LayerNorm,
    /// Softmax of each row of f16 by the library, whatever the length.
    NnSoftmax,
    /// Layer normalization of each row of f16 by the library, whatever the length.
    NnLayerNorm,
}

impl Kind {
    /// The file of the checkout.
    pub fn file(self) -> &'static str {
        match self {
            Kind::Add => "examples/add.tk",
            Kind::Gelu { .. } => "examples/gelu.tk",
            Kind::Softmax => "examples/softmax.tk",
            Kind::SoftmaxLong => "examples/softmax_long.tk",
            Kind::LayerNorm => "examples/layer_norm.tk",
            Kind::NnSoftmax => "stdlib/nn/softmax.tk",
            Kind::NnLayerNorm => "stdlib/nn/norm.tk",
        }
    }

    /// The kernel.
    pub fn kernel(self) -> &'static str {
        match self {
            Kind::Add => "add",
            Kind::Gelu { .. } => "gelu",
            Kind::Softmax | Kind::NnSoftmax => "softmax",
            Kind::SoftmaxLong => "softmax_long",
            Kind::LayerNorm | Kind::NnLayerNorm => "layer_norm",
        }
    }

    /// Bytes of an element of the result.
    pub fn width(self) -> usize {
        match self {
            Kind::Add => 4,
            Kind::Gelu { .. }
            | Kind::Softmax
            | Kind::SoftmaxLong
            | Kind::LayerNorm
            | Kind::NnSoftmax
            | Kind::NnLayerNorm => 2,
        }
    }

    /// Bytes that each element of the result costs at least: operands read, result written.
    pub fn traffic(self) -> usize {
        match self {
            Kind::Add => 3 * self.width(),
            Kind::Gelu { .. }
            | Kind::Softmax
            | Kind::SoftmaxLong
            | Kind::LayerNorm
            | Kind::NnSoftmax
            | Kind::NnLayerNorm => 2 * self.width(),
        }
    }

    /// What is always given by name.
    fn given(self) -> Sets {
        match self {
            Kind::Gelu { tanh } => vec![("TANH".to_string(), SetValue::Bool(tanh))],
            Kind::Add
            | Kind::Softmax
            | Kind::SoftmaxLong
            | Kind::LayerNorm
            | Kind::NnSoftmax
            | Kind::NnLayerNorm => vec![],
        }
    }
}

/// A kernel on a shape.
#[derive(Clone, Debug)]
pub struct Work {
    /// Such as `softmax_f16_781`.
    pub name: String,
    /// What is computed.
    pub kind: Kind,
    /// Rows of the result. The elementwise works have one of all elements.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// What is tried beside the kernel's own defaults.
    pub others: Vec<Sets>,
}

impl Work {
    /// Elements of the result.
    pub fn elements(&self) -> usize {
        self.rows * self.cols
    }

    /// The same on fewer elements, all of which can be compared: sizes that no block divides.
    pub fn small(&self) -> Work {
        let (rows, cols) = if self.rows == 1 { (1, 100_003) } else { (self.rows.min(37), self.cols) };
        Work { rows, cols, ..self.clone() }
    }

    /// What is given by name in one configuration, the kernel's own defaults if that is empty.
    pub fn sets(&self, configuration: &Sets) -> Sets {
        [self.kind.given(), configuration.clone()].concat()
    }

    /// For a person who wants to run it.
    pub fn describe(&self) -> Value {
        let shape = if self.rows == 1 { vec![self.cols] } else { vec![self.rows, self.cols] };
        let bytes = self.elements() * self.kind.traffic();
        json!({ "source": self.kind.file(), "kernel": self.kind.kernel(), "shape": shape, "bytes": bytes })
    }
}

/// The longest row that a program keeps in its registers: beyond it, 1024 threads have fewer than 64 for themselves.
const IN_REGISTERS: usize = 16384;

/// Threads of a warp of an NVIDIA GPU.
const WARP: usize = 32;

/// Elements of f16 in 16 bytes.
const WIDE: usize = 8;

/// The works on about that many elements each, with rows of these lengths if some are given.
pub fn works(quick: bool, elements: usize, columns: &[usize]) -> Vec<Work> {
    let mut works = vec![
        elementwise("add_f32", Kind::Add, quick, elements),
        elementwise("gelu_f16", Kind::Gelu { tanh: true }, quick, elements),
    ];
    if !quick {
        works.push(elementwise("gelu_exact_f16", Kind::Gelu { tanh: false }, quick, elements));
    }
    let columns: &[usize] = match columns {
        [] if quick => &[781, 4096],
        [] => &[781, 1024, 4096, 16384, 65536],
        given => given,
    };
    for cols in columns.iter().filter(|cols| **cols <= IN_REGISTERS) {
        works.push(row("softmax_f16", Kind::Softmax, *cols, quick, elements));
    }
    for cols in columns.iter().filter(|cols| **cols > IN_REGISTERS) {
        works.push(long("softmax_f16", Kind::SoftmaxLong, *cols, elements));
    }
    for cols in columns.iter().filter(|cols| **cols <= IN_REGISTERS) {
        works.push(row("layer_norm_f16", Kind::LayerNorm, *cols, quick, elements));
    }
    for cols in columns {
        works.push(library("nn_softmax_f16", Kind::NnSoftmax, *cols, quick, elements));
        works.push(library("nn_layer_norm_f16", Kind::NnLayerNorm, *cols, quick, elements));
    }
    works
}

/// Warps and rows of a program that holds rows in registers, and the blocks that it has.
const SHARED: [(usize, usize, usize); 20] = [
    (1, 1, 1),
    (2, 1, 1),
    (4, 1, 1),
    (8, 1, 1),
    (16, 1, 1),
    (2, 2, 1),
    (4, 4, 1),
    (8, 8, 1),
    (2, 4, 1),
    (4, 8, 1),
    (4, 2, 1),
    (8, 2, 1),
    (8, 4, 1),
    (16, 4, 1),
    (8, 1, 2),
    (16, 1, 2),
    (32, 1, 2),
    (16, 1, 4),
    (32, 1, 4),
    (32, 1, 8),
];

/// A kernel of the library, which chooses its blocks itself. What is tried beside that is how many warps and rows share a
/// program that holds rows in registers, and among how many blocks it is divided.
fn library(name: &str, kind: Kind, cols: usize, quick: bool, elements: usize) -> Work {
    let block = cols.next_power_of_two();
    let mut others: Vec<Sets> = vec![];
    for (warps, rows, ctas) in SHARED {
        let held = block * rows / warps;
        let is_long = block > IN_REGISTERS / 2;
        if (ctas == 1 || is_long) && (8 * WARP..=128 * WARP).contains(&held) && !quick {
            let mut sets = ints(&[("BLOCK", block), ("ROWS", rows), ("WARPS", warps), ("CTAS", ctas)]);
            sets.push(("WHOLE".to_string(), SetValue::Bool(true)));
            // Warps that share a row may exchange what they found once or twice, if lanes have whole wide accesses.
            let of_lanes = block.is_multiple_of(WARP * warps * WIDE) && cols == block;
            if kind == Kind::NnSoftmax && rows == 1 && warps > 1 && of_lanes {
                let once = |on| [sets.clone(), vec![("ONCE".to_string(), SetValue::Bool(on))]].concat();
                others.extend([once(false), once(true)]);
            } else {
                others.push(sets);
            }
        }
    }
    Work { name: format!("{name}_{cols}"), kind, rows: elements / cols, cols, others }
}

fn elementwise(name: &str, kind: Kind, quick: bool, elements: usize) -> Work {
    let pairs: &[(usize, usize)] = if quick {
        &[(2048, 8)]
    } else {
        &[
            (256, 1),
            (512, 2),
            (512, 4),
            (1024, 8),
            (2048, 4),
            (2048, 8),
            (4096, 4),
            (4096, 8),
            (4096, 16),
            (8192, 8),
        ]
    };
    let others = pairs.iter().map(|(block, warps)| ints(&[("BLOCK", *block), ("warps", *warps)]));
    Work { name: name.to_string(), kind, rows: 1, cols: elements, others: others.collect() }
}

/// A kernel that holds a row in registers: BLOCK follows from the row, warps are what is left to try. A thread holds at
/// least one element and at most 128, the bounds under which Triton's kernels are tried as well.
fn row(name: &str, kind: Kind, cols: usize, quick: bool, elements: usize) -> Work {
    let block = cols.next_power_of_two();
    let warps: &[usize] = if quick { &[4, 8] } else { &[1, 2, 4, 8, 16, 32] };
    let fits = |warps: &&usize| (1..=128).contains(&(block / (*warps * WARP)));
    let others =
        warps.iter().filter(fits).map(|warps| ints(&[("BLOCK", block.max(1024)), ("warps", *warps)]));
    Work { name: format!("{name}_{cols}"), kind, rows: elements / cols, cols, others: others.collect() }
}

/// A kernel that goes along a row in blocks.
fn long(name: &str, kind: Kind, cols: usize, elements: usize) -> Work {
    let pairs = [(4096, 4), (4096, 8), (8192, 4), (8192, 16), (16384, 8), (16384, 16)];
    let others = pairs.iter().map(|(block, warps)| ints(&[("BLOCK", *block), ("warps", *warps)]));
    Work { name: format!("{name}_{cols}"), kind, rows: elements / cols, cols, others: others.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::shown;

    #[test]
    fn the_works_are_those_of_the_table() {
        let works = works(false, 1 << 28, &[]);
        assert_eq!(works.len(), 3 + 5 + 4 + 2 * 5);
        let long = works.iter().find(|w| w.name == "softmax_f16_65536").unwrap();
        assert_eq!((long.rows, long.elements()), (4096, 1 << 28));
        let shown: Vec<String> = long.others.iter().map(shown).collect();
        assert_eq!(shown.first().map(String::as_str), Some("BLOCK = 4096, warps = 4"));
        let gelu = works.iter().find(|w| w.name == "gelu_f16").unwrap();
        assert_eq!(shown_sets(gelu), "TANH = true, BLOCK = 256, warps = 1");
        assert_eq!(gelu.describe()["bytes"], 4u64 << 28);
    }

    #[test]
    fn every_configuration_is_one_that_the_library_takes() {
        use tk_ops::DType;
        let of_library = |w: &Work| matches!(w.kind, Kind::NnSoftmax | Kind::NnLayerNorm);
        for work in works(false, 1 << 28, &[]).iter().filter(|w| of_library(w)) {
            let (rows, cols) = (work.rows as i64, work.cols as i64);
            let matrix = Some((DType::F16, vec![rows, cols]));
            let row = Some((DType::F16, vec![cols]));
            let tensors = match work.kind {
                Kind::NnSoftmax => vec![matrix.clone(), matrix],
                _ => vec![matrix.clone(), row.clone(), row, matrix],
            };
            for configuration in std::iter::once(&vec![]).chain(&work.others) {
                let sets = work.sets(configuration);
                let said =
                    crate::program::accepted(work.kind.file(), work.kind.kernel(), &tensors, &[], &sets);
                assert_eq!(said, Ok(()), "{}", work.name);
            }
        }
    }

    fn shown_sets(work: &Work) -> String {
        shown(&work.sets(&work.others[0]))
    }
}
