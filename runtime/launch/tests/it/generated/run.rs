//! Tests a generated program: check, specialize, run at every stage, compare.

use std::time::Duration;

use tk_interp::{Arg, BufferId, Memory, Options, launch};
use tk_ops::{Buf, DType, Scalar};
use tk_sema::contract::{HostArg, Plan, plan};
use tk_sema::specialize::{Specialized, specialize};
use tk_sema::{Loader, check};
use tk_syntax::{Diagnostic, SourceMap};
use tk_tile::{FuncId, FuncKind, Module, TileModule, Type, pipeline};

use super::stmts::Param;
use super::types::Random;

/// In which way a program is wrong; shrinking keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By the checker, or when it is specialized, with this code first.
    Rejected(&'static str),
    Empty,
    Launch,
    Verify,
    Fault,
    Differs(&'static str),
}

/// What is wrong.
pub struct Problem {
    pub kind: Kind,
    pub text: String,
}

/// Something is wrong.
pub fn wrong<T>(kind: Kind, text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { kind, text: text.into() })
}

struct Text<'a>(&'a str);

impl Loader for Text<'_> {
    fn load(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_string())
    }
}

fn show(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    let line = |d: &Diagnostic| {
        let (_, line, column) = sources.position(d.primary.span);
        format!("{} at {line}:{column}: {} ({})", d.code, d.message, sources.text(d.primary.span))
    };
    diagnostics.iter().filter(|d| d.is_error()).map(line).collect::<Vec<_>>().join("\n")
}

/// What is wrong with a program, if anything.
pub fn problem(source: &str, params: &[Param], seed: u64) -> Option<Problem> {
    examine(source, params, seed).err()
}

/// A program that can be launched.
pub struct Prepared {
    special: Specialized,
    contents: Vec<Input>,
    plan: Plan,
}

/// Checks and specializes a program.
pub fn prepared(source: &str, params: &[Param], seed: u64) -> Result<Prepared, Problem> {
    let checked = check(&Text(source), "generated.tk");
    if let Some(first) = checked.diagnostics.iter().find(|d| d.is_error()) {
        return wrong(Kind::Rejected(first.code.0), show(&checked.sources, &checked.diagnostics));
    }
    let Some((kernel, _)) = checked.hir.kernels().find(|(_, f)| f.name == "k") else {
        return wrong(Kind::Empty, "there is no kernel");
    };
    let mut random = Random(seed ^ 0xdada);
    let t = random.pick(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
    let contents: Vec<Input> = params.iter().map(|p| Input::new(p, t, &mut random)).collect();
    let host: Vec<HostArg> = contents.iter().map(Input::host).collect();
    let plan = match plan(&checked.hir, kernel, &host, &[]) {
        Ok(plan) => plan,
        Err(e) => return wrong(Kind::Launch, e.to_string()),
    };
    let special = match specialize(&checked.hir, kernel, &plan.bindings) {
        Ok(special) => special,
        Err(errors) => {
            let code = errors.first().map_or("", |d| d.code.0);
            return wrong(Kind::Rejected(code), show(&checked.sources, &errors));
        }
    };
    Ok(Prepared { special, contents, plan })
}

impl Prepared {
    /// The module after all passes.
    #[allow(dead_code, reason = "the tests of the simulated target, which share this file, run it")]
    pub fn optimised(&self) -> Result<TileModule, Problem> {
        let mut module = self.special.module.clone();
        pipeline::PASSES.iter().for_each(|pass| (pass.run)(&mut module));
        verified(module, "the pipeline")
    }

    /// The bytes of all tensors after a launch; every NaN is the same one.
    pub fn results(&self, module: &TileModule, how: &Launcher<'_>) -> Result<Vec<Vec<u8>>, String> {
        results(module, &self.special.kernel, &self.contents, &self.plan, how)
    }
}

/// Runs all programs of a grid.
pub type Launcher<'a> = dyn Fn(&TileModule, FuncId, &[Arg], [u32; 3], &Memory) -> Result<(), String> + 'a;

/// Runs them on the interpreter.
pub fn interpreted(
    module: &TileModule,
    entry: FuncId,
    args: &[Arg],
    grid: [u32; 3],
    memory: &Memory,
) -> Result<(), String> {
    let options = Options { timeout: Some(Duration::from_secs(3)), threads: Some(1), ..Options::default() };
    launch(module, entry, args, grid, memory, &options).map_err(|fault| format!("{fault}"))
}

fn examine(source: &str, params: &[Param], seed: u64) -> Result<(), Problem> {
    let program = prepared(source, params, seed)?;
    let special = &program.special;
    let first = verified(special.module.clone(), "specialize")?;
    let expected = program
        .results(&first, &interpreted)
        .or_else(|e| wrong(Kind::Fault, format!("before the passes: {e}")))?;
    let compare = |module: TileModule, stage: &'static str| {
        let got = program
            .results(&module, &interpreted)
            .or_else(|e| wrong(Kind::Differs(stage), format!("{stage}: {e}")))?;
        match got.iter().zip(&expected).position(|(a, b)| a != b) {
            Some(i) => wrong(Kind::Differs(stage), format!("{stage} changes argument {i}")),
            None => Ok(()),
        }
    };
    let mut names = vec![];
    let mut module = special.module.clone();
    for pass in pipeline::PASSES {
        // On its own, and after those before it.
        if !names.contains(&pass.name) {
            names.push(pass.name);
            let mut alone = special.module.clone();
            (pass.run)(&mut alone);
            compare(verified(alone, pass.name)?, pass.name)?;
        }
        (pass.run)(&mut module);
        verified(module.clone(), pass.name)?;
    }
    compare(verified(module, "the pipeline")?, "the pipeline")
}

fn verified(module: Module, stage: &str) -> Result<TileModule, Problem> {
    TileModule::new(module).or_else(|e| wrong(Kind::Verify, format!("{stage}: {e}")))
}

/// An argument with its contents.
enum Input {
    Tensor { dtype: DType, shape: Vec<i64>, bytes: Vec<u8> },
    Scalar(Scalar),
    Absent,
}

impl Input {
    fn new(param: &Param, t: DType, random: &mut Random) -> Input {
        match param {
            Param::Int(i) => Input::Scalar(Scalar::int(DType::I32, i128::from(*i))),
            Param::Float(f) => Input::Scalar(Scalar::float(DType::F32, *f)),
            Param::Absent => Input::Absent,
            Param::Tensor(e, shape) | Param::Matrix(e, shape) => {
                let dtype = if *e == "T" { t } else { DType::parse(e).unwrap() };
                let mut buf = Buf::zeros(dtype, shape.iter().product());
                let whole = matches!(param, Param::Matrix(..));
                for i in 0..buf.len() {
                    buf.set(i, if whole { small(dtype, random) } else { value(dtype, random) });
                }
                let shape = shape.iter().map(|d| *d as i64).collect();
                Input::Tensor { dtype, shape, bytes: buf.to_le_bytes() }
            }
        }
    }

    fn host(&self) -> HostArg {
        match self {
            Input::Scalar(s) => HostArg::Scalar(*s),
            Input::Absent => HostArg::Absent,
            Input::Tensor { dtype, shape, .. } => {
                HostArg::Tensor { dtype: *dtype, shape: shape.clone(), strides: strides(shape) }
            }
        }
    }
}

/// A whole number from -3 to 3.
fn small(dtype: DType, random: &mut Random) -> Scalar {
    let v = random.below(7) as i32 - 3;
    if dtype.is_int() { Scalar::int(dtype, v.into()) } else { Scalar::float(dtype, v.into()) }
}

/// Mostly small numbers; sometimes any bits.
fn value(dtype: DType, random: &mut Random) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::bool(random.chance(50));
    }
    if random.chance(10) {
        return Scalar::from_bits(dtype, random.next() & (u64::MAX >> (64 - 8 * dtype.bytes())));
    }
    if dtype.is_int() {
        return Scalar::int(dtype, random.below(16) as i128);
    }
    Scalar::float(dtype, random.below(64) as f64 / 8.0 - 3.0)
}

fn strides(shape: &[i64]) -> Vec<i64> {
    (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect()
}

fn results(
    module: &TileModule,
    kernel: &str,
    inputs: &[Input],
    plan: &Plan,
    how: &Launcher<'_>,
) -> Result<Vec<Vec<u8>>, String> {
    let memory = Memory::new();
    let entry = module.find(kernel).ok_or("the kernel is gone")?;
    let func = module.funcs.get(entry).filter(|f| f.kind == FuncKind::Kernel).ok_or("it is no kernel")?;
    let block = func.blocks.get(func.body).ok_or("it has no body")?;
    let mut types = block.args.iter().map(|v| module.types.get(func.ty(*v)).clone());
    let mut args = vec![];
    let mut tensors: Vec<(BufferId, DType)> = vec![];
    for input in inputs {
        match input {
            Input::Absent => {}
            Input::Scalar(s) => {
                types.next();
                args.push(Arg::Scalar(*s));
            }
            Input::Tensor { dtype, shape, bytes } => {
                let buffer = memory.alloc(bytes.clone());
                tensors.push((buffer, *dtype));
                args.push(match types.next() {
                    Some(Type::Tile { .. }) => Arg::Ptr { buffer, offset: 0 },
                    _ => Arg::View { buffer, offset: 0, shape: shape.clone(), strides: strides(shape) },
                });
            }
        }
    }
    how(module, entry, &args, plan.grid, &memory)?;
    let read = |(id, dtype): (BufferId, DType)| {
        let mut buf =
            memory.read(id).and_then(|bytes| Buf::from_le_bytes(dtype, &bytes)).ok_or("no contents")?;
        for i in 0..buf.len() {
            if buf.get(i).as_f64().is_some_and(f64::is_nan) {
                buf.set(i, Scalar::float(dtype, f64::NAN));
            }
        }
        Ok(buf.to_le_bytes())
    };
    tensors.into_iter().map(read).collect()
}
