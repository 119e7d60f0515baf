//! Measures compile time from source to binary, and from the cache. Needs no GPU.
//!
//! Guarantees that nothing is found in a cache where the time is that of compiling, and that a process that has compiled
//! before is measured: what is started once, such as LLVM, is not part of it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tk_driver::{
    ArgFacts, Asked, Assembler, Cache, Environment, ProgramShape, Request, Tools, Until, build_cached,
    compile_for,
};
use tk_gpu::ir::kernel::Operands;
use tk_gpu::target::spec::SM_90A;
use tk_gpu::{CompileOptions, pipeline};
use tk_ops::{DType, Scalar};
use tk_runtime::compile::{ArgFacts as Known, params};
use tk_runtime::device::LaunchOptions;
use tk_runtime::{Compiled, Session};
use tk_sema::Checked;
use tk_sema::contract::{self, HostArg};
use tk_syntax::Span;

use crate::program::{Sets, check, first, ints};
use crate::reference::EPS;
use crate::report::{Report, median, or_error};
use crate::{Args, Stop};

/// How often each kernel is compiled; the median counts.
const TRIES: usize = 5;
/// How often it is taken out of the cache.
const HITS: usize = 200;
/// Bytes of the cache that is filled for this.
const CACHE: u64 = 64 << 20;

/// A kernel to compile.
pub struct Case {
    /// Such as `softmax`, the name of the kernel and of its file.
    pub name: &'static str,
    sets: Sets,
    arguments: Vec<HostArg>,
    /// The bits of the machine parameters; what is known of them is part of what is compiled.
    values: Vec<u64>,
}

/// The kernels in the shapes that Triton's are compiled in.
pub fn cases() -> Vec<Case> {
    let tensor = |dtype, shape: &[i64]| {
        let strides = match shape {
            [_, cols] => vec![*cols, 1],
            _ => vec![1],
        };
        HostArg::Tensor { dtype, shape: shape.to_vec(), strides }
    };
    // An address that is as well aligned as the driver's, and a matrix and a row at such an address.
    let (at, rows, cols) = (256u64, 64u64, 1000u64);
    let (matrix, row) = ([at, rows, cols, cols, 1], [at, cols, 1]);
    let (host, line) = (tensor(DType::F16, &[64, 1000]), tensor(DType::F16, &[1000]));
    let flat = tensor(DType::F32, &[4096]);
    // Square matrices by address, extents and strides.
    let square = tensor(DType::F16, &[512 * 512]);
    let number = |dtype, n| HostArg::Scalar(Scalar::int(dtype, n));
    let numbers =
        [vec![number(DType::I32, 512); 3], [512, 1, 512, 1, 512, 1].map(|n| number(DType::I64, n)).to_vec()]
            .concat();
    vec![
        Case {
            name: "add",
            sets: ints(&[("BLOCK", 512)]),
            arguments: vec![flat.clone(), flat.clone(), flat, HostArg::Scalar(Scalar::int(DType::I32, 4096))],
            values: vec![at, at, at, 4096],
        },
        Case {
            name: "softmax",
            sets: ints(&[("BLOCK", 2048)]),
            arguments: vec![host.clone(), host.clone()],
            values: [matrix, matrix].concat(),
        },
        Case {
            name: "matmul_ptr",
            // Triton's defaults are four warps and three stages too.
            sets: ints(&[("BM", 128), ("BN", 64), ("BK", 64)]),
            arguments: [vec![square.clone(), square.clone(), square], numbers].concat(),
            values: vec![at, at, at, 512, 512, 512, 512, 1, 512, 1, 512, 1],
        },
        Case {
            name: "layer_norm",
            sets: ints(&[("BLOCK", 2048)]),
            arguments: vec![
                host.clone(),
                line.clone(),
                line,
                host,
                HostArg::Scalar(Scalar::float(DType::F32, f64::from(EPS))),
            ],
            values: [&matrix[..], &row, &row, &matrix, &[u64::from(EPS.to_bits())]].concat(),
        },
    ]
}

/// Compiles the kernels.
pub fn run(args: &Args, cases: &[Case], report: &mut Report) -> Result<(), Stop> {
    if cases.is_empty() {
        return Ok(());
    }
    let switched_off = Cache::at(Path::new(""), 0);
    let environment = Environment::of_process(Some(&args.root.join("examples/add.tk")));
    let tools = Tools::new(environment, switched_off);
    let assembler = tools.assembler(&SM_90A).map_err(|e| Stop::Missing(first(&[e.at(Span::default())])))?;
    report.put("assembler", json!(assembler.version()))?;
    for case in cases {
        let result =
            measure(&args.root, case, assembler).map_err(|e| format!("compiling {}: {e}", case.name));
        report.put_in("compile", case.name, or_error(result))?;
    }
    Ok(())
}

/// How long the steps took, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    check: f64,
    specialize: f64,
    layout: f64,
    llvm: f64,
    ptxas: f64,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn measure(root: &Path, case: &Case, assembler: &Assembler) -> Result<Value, String> {
    // The first time starts what is started once.
    once(root, case, assembler)?;
    let steps: Vec<Steps> = (0..TRIES).map(|_| once(root, case, assembler)).collect::<Result<_, _>>()?;
    let of = |part: fn(&Steps) -> f64| median(&steps.iter().map(part).collect::<Vec<f64>>());
    Ok(json!({
        "ms": of(|s| s.check + s.specialize + s.layout + s.llvm + s.ptxas),
        "ms_without_front": of(|s| s.layout + s.llvm + s.ptxas),
        "check_ms": of(|s| s.check),
        "specialize_ms": of(|s| s.specialize),
        "layout_ms": of(|s| s.layout),
        "llvm_ms": of(|s| s.llvm),
        "ptxas_ms": of(|s| s.ptxas),
        "cache_hit_us": hit(root, case)?,
    }))
}

/// A kernel after the front end.
struct Front {
    session: Session,
    compiled: std::sync::Arc<Compiled>,
    shape: ProgramShape,
    facts: Vec<ArgFacts>,
}

impl Front {
    fn new(checked: Checked, case: &Case) -> Result<Front, String> {
        let session = Session::new(checked);
        let hir = &session.checked().hir;
        let kernel = contract::kernel_named(hir, case.name).ok_or("there is no such kernel")?;
        let plan =
            contract::plan(hir, kernel, &case.arguments, &case.sets).map_err(|e| first(&[*e.diagnostic]))?;
        let (compiled, _) = session.compile(kernel, &plan.bindings).map_err(|wrong| first(&wrong))?;
        let options = LaunchOptions::of(&plan.launch);
        let shape = ProgramShape::of(&SM_90A, Asked::from(&options));
        let kinds = params(&compiled.module, compiled.entry).ok_or("it takes a tile")?;
        if kinds.len() != case.values.len() {
            return Err(format!("it has {} machine parameters, not {}", kinds.len(), case.values.len()));
        }
        let known = kinds.iter().zip(&case.values).map(|(kind, bits)| Known::of(*kind, *bits));
        let facts =
            known.map(|f| ArgFacts { divisible: f.divisible, one: f.one, positive: f.positive }).collect();
        Ok(Front { session, compiled, shape, facts })
    }

    fn request(&self) -> Request<'_> {
        let (module, entry) = (&self.compiled.module, self.compiled.entry);
        let sources = &self.session.checked().sources;
        let (shape, facts) = (self.shape, self.facts.clone());
        Request { module, entry, target: &SM_90A, shape, facts, sources }
    }
}

fn once(root: &Path, case: &Case, assembler: &Assembler) -> Result<Steps, String> {
    let begin = Instant::now();
    let checked = check(root, &format!("examples/{}.tk", case.name))?;
    let checking = begin.elapsed();
    let begin = Instant::now();
    let front = Front::new(checked, case)?;
    let specializing = begin.elapsed();
    let request = front.request();
    let begin = Instant::now();
    let kernel =
        compile_for(&request, false, Until::Binary, Span::default()).map_err(|wrong| first(&wrong))?;
    let compiling = begin.elapsed();
    let begin = Instant::now();
    assembler.assemble(&kernel).map_err(|e| first(&[e.at(Span::default())]))?;
    let assembling = begin.elapsed();
    let laying = layout(&request)?.min(compiling);
    Ok(Steps {
        check: ms(checking),
        specialize: ms(specializing),
        layout: ms(laying),
        llvm: ms(compiling - laying),
        ptxas: ms(assembling),
    })
}

/// The time of the stages before LLVM, by doing them again.
fn layout(request: &Request<'_>) -> Result<Duration, String> {
    let ProgramShape { warps, blocks, cluster, stages, registers } = request.shape;
    let facts = request.facts.clone();
    let options = CompileOptions {
        spec: request.target,
        warps,
        groups: 1,
        blocks,
        cluster,
        stages,
        most_stages: u32::MAX,
        operands: Operands::SHARED,
        may_have_groups: true,
        registers,
        facts,
    };
    let name = request.module.funcs.get(request.entry).map(|f| f.name.clone()).unwrap_or_default();
    let begin = Instant::now();
    pipeline::run(request.module, &name, options, &mut |_, _| {}).map_err(|e| e.to_string())?;
    Ok(begin.elapsed())
}

/// Microseconds from tile IR to a binary that is in the cache: the key, the file, its checksum, its contents.
fn hit(root: &Path, case: &Case) -> Result<f64, String> {
    let folder = std::env::temp_dir().join(format!("tk-gpu-bench-{}", std::process::id()));
    let environment = Environment::of_process(Some(&root.join("examples/add.tk")));
    let tools = Tools::new(environment, Cache::at(&folder, CACHE));
    let front = Front::new(check(root, &format!("examples/{}.tk", case.name))?, case)?;
    let request = front.request();
    let build = || build_cached(&request, false, &tools, Span::default()).map_err(|wrong| first(&wrong));
    let times = build().and_then(|_| {
        let mut times = vec![];
        for _ in 0..HITS {
            let begin = Instant::now();
            let built = build()?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            if !matches!(built.work, tk_driver::Work::Found(_)) {
                return Err(format!("the cache in {} does not keep what it is given", folder.display()));
            }
        }
        Ok(times)
    });
    // A folder that stays in the place for temporary files does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    times.map(|times| median(&times))
}
