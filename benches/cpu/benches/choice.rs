//! Measures how long a launch waits for its choice among the members of a `tune` list: `cargo bench -p tk-bench --bench
//! choice`. No GPU is needed.
//!
//! The kernels are those of `benches/gpu/model`. The first launch of a kernel schedules all members; then come launches with
//! other keys, and the same ones again. The goals: 200 us for a new key, 1 us for one that was seen. The folder is the
//! argument after `--`, for a machine without the checkout.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where these fail"
)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tk_driver::{Cache, Environment, Jit, usual_place};
use tk_gpu::target::spec::SM_90A;
use tk_ops::DType;
use tk_runtime::Session;
use tk_sema::contract::{HostArg, kernel_named};

/// Launches with different keys.
const KEYS: i64 = 250;

/// A kernel, and the arguments of a launch whose key has this number.
type Case = (&'static str, &'static str, fn(i64) -> Vec<HostArg>);

const CASES: [Case; 4] = [
    ("product.tk", "product", |n| vec![tensor(&[n, 1024]), tensor(&[1024, 2048]), tensor(&[n, 2048])]),
    ("attention.tk", "attention", |n| vec![tensor(&[8, n, 64]); 4]),
    ("rows.tk", "softmax", |n| vec![tensor(&[n, 1024]); 2]),
    ("rows.tk", "sum_of_columns", |n| vec![tensor(&[n, 1024]), of(DType::F32, &[1024])]),
];

fn tensor(shape: &[i64]) -> HostArg {
    of(DType::F16, shape)
}

fn of(dtype: DType, shape: &[i64]) -> HostArg {
    let strides = (0..shape.len()).map(|d| shape.iter().skip(d + 1).product()).collect();
    HostArg::Tensor { dtype, shape: shape.to_vec(), strides }
}

/// Reads files of the folder, and of the library that is built in.
struct Files;

impl tk_sema::Loader for Files {
    fn load(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/model");
    let given = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let folder = given.map_or(here, PathBuf::from);
    let place = usual_place(&SM_90A).expect("a known GPU");
    for (file, name, args) in CASES {
        let path = folder.join(file).display().to_string();
        let checked = tk_sema::check(&Files, &path);
        let jit = Jit::new(checked.sources.clone(), Environment::of_process(None), Cache::of_process());
        let kernel = kernel_named(&checked.hir, name).expect("a kernel");
        let session = Session::new(checked);
        let choose = |n: i64| {
            let args = args(64 * n);
            let begin = Instant::now();
            session.choose(kernel, &args, &[], &place, Some(&jit)).expect("a choice");
            begin.elapsed()
        };
        let first = choose(3);
        let new = median((4..4 + KEYS).map(choose).collect());
        let seen = median((4..4 + KEYS).map(choose).collect());
        println!("{name:16} first {first:>8.1?}   new key {new:>8.1?}   seen {seen:>8.1?}");
    }
}
