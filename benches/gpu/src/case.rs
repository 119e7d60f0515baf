//! A case: one kernel of the library on one shape, as `run --random` draws it or a file gives it.
//!
//! May assume nothing about the file. Guarantees that the operands of a case are disjoint parts of one buffer, each
//! aligned as the driver aligns memory, and that a case that cannot be read does not hide the others.

use serde_json::Value;
use tk_ops::DType;
use tk_sema::contract::SetValue;

use crate::program::Sets;
use crate::reference::EPS;

/// Elements of an operand, at most: 2^31 of f32 are 8 GB.
const MOST: usize = 1 << 31;
/// The classes of the targets of a loss: that of row `r` is `r % CLASSES`.
pub const CLASSES: usize = 64;
/// Bytes that the address of an operand is a multiple of, as those of the driver are.
const ALIGNED: usize = 256;

/// An operation on each row of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Softmax.
    Softmax,
    /// The logarithm of softmax.
    LogSoftmax,
    /// Layer normalization with weight and bias.
    LayerNorm,
    /// Normalization by the root of the mean square, with a weight.
    RmsNorm,
    /// The loss of a class.
    CrossEntropy,
    /// The position of the largest element.
    Argmax,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
}

impl Op {
    const ALL: [Op; 8] = [
        Op::Softmax,
        Op::LogSoftmax,
        Op::LayerNorm,
        Op::RmsNorm,
        Op::CrossEntropy,
        Op::Argmax,
        Op::Sum,
        Op::Mean,
    ];

    /// The name in a file of cases.
    pub fn name(self) -> &'static str {
        match self {
            Op::Softmax => "softmax",
            Op::LogSoftmax => "log_softmax",
            Op::LayerNorm => "layer_norm",
            Op::RmsNorm => "rms_norm",
            Op::CrossEntropy => "cross_entropy",
            Op::Argmax => "argmax",
            Op::Sum => "sum",
            Op::Mean => "mean",
        }
    }

    /// The file, the kernel in it, and whether it reduces a row to one number.
    fn kernel(self) -> (&'static str, &'static str, bool) {
        match self {
            Op::Softmax => ("stdlib/nn/softmax.tk", "softmax", false),
            Op::LogSoftmax => ("stdlib/nn/softmax.tk", "log_softmax", false),
            Op::LayerNorm => ("stdlib/nn/norm.tk", "layer_norm", false),
            Op::RmsNorm => ("stdlib/nn/norm.tk", "rms_norm", false),
            Op::CrossEntropy => ("stdlib/nn/cross_entropy.tk", "cross_entropy", true),
            Op::Argmax => ("stdlib/nn/reduce.tk", "reduce_argmax", true),
            Op::Sum => ("stdlib/nn/reduce.tk", "reduce_sum", true),
            Op::Mean => ("stdlib/nn/reduce.tk", "reduce_mean", true),
        }
    }

    /// The axis of the matrix, if the kernel takes one.
    fn has_axis(self) -> bool {
        self.kernel().1.starts_with("reduce_")
    }
}

/// What a case computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `a @ b`.
    Product {
        /// m, n and k.
        size: [usize; 3],
        /// Whether `a`, and whether `b`, is column-major in memory.
        transposed: [bool; 2],
    },
    /// An operation on each row.
    Rows {
        /// Which.
        op: Op,
        /// Rows.
        rows: usize,
        /// Elements of a row.
        columns: usize,
    },
}

/// One kernel on one shape.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is computed.
    pub task: Task,
    /// The element type of the operands.
    pub dtype: DType,
    /// Compile-time parameters and launch options by name; the kernel chooses the others.
    pub sets: Sets,
}

/// An operand that is part of the memory of its element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The position of its first element.
    pub first: usize,
    /// Its extents.
    pub shape: [usize; 2],
    /// Its strides in elements.
    pub strides: [usize; 2],
    /// 2 for a matrix, 1 for a row, which has the last extent and stride.
    pub rank: usize,
}

/// A case, or why it is none, and its name.
pub type Named = (String, Result<Case, String>);

/// The cases of a file in its order.
pub fn read(text: &str) -> Result<Vec<Named>, String> {
    let values: Value = serde_json::from_str(text).map_err(|e| format!("the cases are not JSON: {e}"))?;
    let values = values.as_array().ok_or("the cases are not a list")?;
    let name = |(i, value): (usize, &Value)| {
        value.get("name").and_then(Value::as_str).map_or_else(|| format!("case {i}"), str::to_string)
    };
    Ok(values.iter().enumerate().map(|(i, value)| (name((i, value)), Case::parse(value))).collect())
}

impl Case {
    fn parse(value: &Value) -> Result<Case, String> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).ok_or(format!("`{key}` is no text"));
        let extent = |key: &str| {
            let n = value.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            n.filter(|n| (1..=i32::MAX as usize).contains(n)).ok_or(format!("`{key}` is no extent"))
        };
        let name = text("dtype")?;
        let known = [DType::F16, DType::BF16, DType::F8E4M3, DType::F32];
        let dtype = DType::parse(name).filter(|d| known.contains(d));
        let dtype = dtype.ok_or(format!("`dtype` is `{name}`, not `f16`, `bf16`, `f8e4m3` or `f32`"))?;
        let task = match text("work")? {
            "product" => Task::Product {
                size: [extent("m")?, extent("n")?, extent("k")?],
                transposed: match text("order")? {
                    "nn" => [false, false],
                    "nt" => [false, true],
                    "tn" => [true, false],
                    "tt" => [true, true],
                    other => return Err(format!("`order` is `{other}`, not `nn`, `nt`, `tn` or `tt`")),
                },
            },
            "rows" => {
                let name = text("op")?;
                let op = Op::ALL.into_iter().find(|op| op.name() == name);
                let op = op.ok_or(format!("`op` is `{name}`, which is unknown"))?;
                let (rows, columns) = (extent("rows")?, extent("columns")?);
                if op == Op::CrossEntropy && columns < CLASSES {
                    return Err(format!("`columns` is {columns}, and targets have {CLASSES} classes"));
                }
                Task::Rows { op, rows, columns }
            }
            other => return Err(format!("`work` is `{other}`, not `product` or `rows`")),
        };
        let mut sets = sets(value.get("set"))?;
        if matches!(task, Task::Rows { op, .. } if op.has_axis())
            && sets.iter().all(|(name, _)| name != "AXIS")
        {
            sets.push(("AXIS".to_string(), SetValue::parse("1")));
        }
        let case = Case { task, dtype, sets };
        let largest = case.operands().iter().map(|o| o.shape.iter().product::<usize>()).max();
        if largest.unwrap_or(0).max(case.results()) > MOST {
            return Err(format!("a matrix of more than {MOST} elements"));
        }
        Ok(case)
    }

    /// The file and the kernel.
    pub fn kernel(&self) -> (&'static str, &'static str) {
        match self.task {
            Task::Product { .. } => ("stdlib/nn/matmul.tk", "matmul"),
            Task::Rows { op, .. } => (op.kernel().0, op.kernel().1),
        }
    }

    /// Whether the result has a number for each row.
    pub fn reduces(&self) -> bool {
        matches!(self.task, Task::Rows { op, .. } if op.kernel().2)
    }

    /// The element type of the result: a product of fp8 is rounded to bf16, and what reduces a row is not rounded.
    pub fn out(&self) -> DType {
        match self.task {
            Task::Rows { op: Op::Argmax, .. } => DType::I32,
            Task::Rows { .. } if self.reduces() => DType::F32,
            Task::Product { .. } if self.dtype == DType::F8E4M3 => DType::BF16,
            Task::Product { .. } | Task::Rows { .. } => self.dtype,
        }
    }

    /// Rows and columns of the result.
    pub fn result(&self) -> [usize; 2] {
        match self.task {
            Task::Product { size: [m, n, _], .. } => [m, n],
            Task::Rows { rows, columns, .. } => [rows, if self.reduces() { 1 } else { columns }],
        }
    }

    /// The number of targets that follow the matrix in the arguments of the kernel.
    pub fn targets(&self) -> Option<usize> {
        match self.task {
            Task::Rows { op: Op::CrossEntropy, rows, .. } => Some(rows),
            Task::Product { .. } | Task::Rows { .. } => None,
        }
    }

    /// Elements of the result.
    pub fn results(&self) -> usize {
        self.result().iter().product()
    }

    /// The operands, of a row operation the matrix, the weight and the bias.
    pub fn operands(&self) -> Vec<Operand> {
        let mut end = 0usize;
        let mut place = |shape: [usize; 2], strides: [usize; 2], rank: usize| {
            let first = end.next_multiple_of(ALIGNED / self.dtype.bytes());
            end = first + shape.iter().product::<usize>();
            Operand { first, shape, strides, rank }
        };
        match self.task {
            Task::Product { size: [m, n, k], transposed: [a, b] } => {
                let mut matrix = |rows: usize, columns: usize, transposed: bool| {
                    place([rows, columns], if transposed { [1, rows] } else { [columns, 1] }, 2)
                };
                vec![matrix(m, k, a), matrix(k, n, b)]
            }
            Task::Rows { op, rows, columns } => {
                let matrix = place([rows, columns], [columns, 1], 2);
                let shared = match op {
                    Op::LayerNorm => 2,
                    Op::RmsNorm => 1,
                    Op::Softmax | Op::LogSoftmax | Op::CrossEntropy | Op::Argmax | Op::Sum | Op::Mean => 0,
                };
                let row = (0..shared).map(|_| place([1, columns], [columns, 1], 1));
                [vec![matrix], row.collect()].concat()
            }
        }
    }

    /// Elements of memory that the operands take.
    pub fn elements(&self) -> usize {
        self.operands().iter().map(|o| o.first + o.shape.iter().product::<usize>()).max().unwrap_or(0)
    }

    /// What follows the result in the arguments of the kernel.
    pub fn eps(&self) -> Option<f32> {
        match self.task {
            Task::Rows { op: Op::LayerNorm | Op::RmsNorm, .. } => Some(EPS),
            Task::Rows {
                op: Op::Softmax | Op::LogSoftmax | Op::CrossEntropy | Op::Argmax | Op::Sum | Op::Mean,
                ..
            }
            | Task::Product { .. } => None,
        }
    }

    /// The name and the value of its speed, if it takes that many milliseconds.
    pub fn speed(&self, ms: f64) -> (&'static str, f64) {
        match self.task {
            Task::Product { size, .. } => {
                ("TFLOPs", 2.0 * size.iter().map(|d| *d as f64).product::<f64>() / ms / 1e9)
            }
            Task::Rows { rows, columns, .. } => {
                // What reduces a row writes next to nothing.
                let times = if self.reduces() { 1 } else { 2 };
                ("TBps", (times * rows * columns * self.dtype.bytes()) as f64 / ms / 1e9)
            }
        }
    }
}

/// Values by name, each as JSON has it or as text of the language: `{"BM": 64, "SWAP": true, "ACT": "relu"}`.
fn sets(value: Option<&Value>) -> Result<Sets, String> {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Ok(vec![]) };
    let object = value.as_object().ok_or("`set` is no object")?;
    let one =
        |value: &Value| SetValue::parse(&value.as_str().map_or_else(|| value.to_string(), str::to_string));
    Ok(object.iter().map(|(name, value)| (name.clone(), one(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_cases() {
        let text = r#"[
            {"name": "p", "family": "orders", "work": "product", "dtype": "f16", "m": 7, "n": 3, "k": 5,
             "order": "nt", "set": {"BM": 64, "SWAP": true, "O": "f32"}},
            {"name": "r", "family": "rows", "work": "rows", "op": "layer_norm", "dtype": "f32", "rows": 9,
             "columns": 65},
            {"name": "s", "family": "rows", "work": "rows", "op": "argmax", "dtype": "f16", "rows": 1, "columns": 8},
            {"name": "bad", "work": "product", "dtype": "f16", "m": 7, "n": 3, "k": 5, "order": "tx"},
            {"name": "large", "work": "product", "dtype": "f16", "m": 70000, "n": 70000, "k": 1, "order": "nn"},
            {"dtype": "f16"},
            {"work": "rows", "op": "cross_entropy", "dtype": "f16", "rows": 1, "columns": 63}
        ]"#;
        let cases = read(text).unwrap();
        let names: Vec<&str> = cases.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["p", "r", "s", "bad", "large", "case 5", "case 6"]);
        let product = cases[0].1.as_ref().unwrap();
        let [a, b] = product.operands().try_into().unwrap();
        assert_eq!(a, Operand { first: 0, shape: [7, 5], strides: [5, 1], rank: 2 });
        assert_eq!(b, Operand { first: 128, shape: [5, 3], strides: [1, 5], rank: 2 });
        assert_eq!((product.elements(), product.results()), (143, 21));
        assert_eq!(crate::program::shown(&product.sets), "BM = 64, O = f32, SWAP = true");
        let rows = cases[1].1.as_ref().unwrap();
        assert_eq!(rows.operands().iter().map(|o| o.first).collect::<Vec<_>>(), [0, 640, 768]);
        assert_eq!(rows.kernel(), ("stdlib/nn/norm.tk", "layer_norm"));
        let argmax = cases[2].1.as_ref().unwrap();
        assert_eq!(argmax.kernel(), ("stdlib/nn/reduce.tk", "reduce_argmax"));
        assert_eq!(
            (argmax.result(), argmax.out(), crate::program::shown(&argmax.sets)),
            ([1, 1], DType::I32, "AXIS = 1".into())
        );
        let said = |i: usize| cases[i].1.as_ref().unwrap_err().as_str();
        assert_eq!(said(3), "`order` is `tx`, not `nn`, `nt`, `tn` or `tt`");
        assert_eq!(said(4), "a matrix of more than 2147483648 elements");
        assert_eq!(said(5), "`work` is no text");
        assert_eq!(said(6), "`columns` is 63, and targets have 64 classes");
        assert!(read("{}").is_err() && read("[").is_err());
    }

    #[test]
    fn the_library_takes_every_kind_of_case() {
        use tk_sema::contract::{self, HostArg};
        let text = r#"[
            {"work": "product", "dtype": "f8e4m3", "m": 64, "n": 48, "k": 32, "order": "tt", "set": {"warps": 4}},
            {"work": "rows", "op": "softmax", "dtype": "bf16", "rows": 3, "columns": 4097},
            {"work": "rows", "op": "log_softmax", "dtype": "f16", "rows": 3, "columns": 262144},
            {"work": "rows", "op": "layer_norm", "dtype": "f32", "rows": 3, "columns": 64},
            {"work": "rows", "op": "rms_norm", "dtype": "f16", "rows": 3, "columns": 781},
            {"work": "rows", "op": "cross_entropy", "dtype": "bf16", "rows": 3, "columns": 50257},
            {"work": "rows", "op": "argmax", "dtype": "f32", "rows": 3, "columns": 781},
            {"work": "rows", "op": "sum", "dtype": "f16", "rows": 3, "columns": 131071},
            {"work": "rows", "op": "mean", "dtype": "bf16", "rows": 3, "columns": 64}
        ]"#;
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, case) in read(text).unwrap() {
            let case = case.unwrap();
            let (file, kernel) = case.kernel();
            let checked = crate::program::check(&root, file).unwrap();
            let id = contract::kernel_named(&checked.hir, kernel).unwrap();
            let hosts: Vec<HostArg> =
                crate::cases::arguments(&case, 4096, 8192, 16384).iter().map(|a| a.host()).collect();
            let said = contract::plan(&checked.hir, id, &hosts, &case.sets).map(|_| ());
            assert_eq!(said.map_err(|e| e.to_string()), Ok(()), "{name}");
        }
    }
}
