//! Owns what is emitted: on this machine it computes what the description computes; for PTX it is short.

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::BasicMetadataTypeEnum;
use tk_llvm::math::{Approximations, LlvmMath, Width, function};
use tk_ops::op::ElementwiseOp;

use super::{compute, functions, samples};

/// A module with one function `f` of the operation.
fn module<'ctx>(
    context: &'ctx Context,
    op: ElementwiseOp,
    width: Width,
    fast: bool,
    approximations: Approximations,
) -> Module<'ctx> {
    let module = context.create_module(op.name());
    let builder = context.create_builder();
    let float = match width {
        Width::F32 => context.f32_type(),
        Width::F64 => context.f64_type(),
    };
    let params: Vec<BasicMetadataTypeEnum> = vec![float.into(); op.arity()];
    let f = module.add_function("f", float.fn_type(&params, false), None);
    builder.position_at_end(context.append_basic_block(f, "entry"));
    let mut math = LlvmMath::new(&builder, &module, approximations);
    let result = function(&mut math, op, width, fast, &f.get_params()).expect("the function is there");
    math.finish().expect("all is emitted");
    builder.build_return(Some(&result)).expect("the function ends");
    module.verify().expect("the module is valid");
    module
}

#[test]
fn emitted_functions_compute_the_same_bits() {
    for f in functions() {
        for width in [Width::F32, Width::F64] {
            let context = Context::create();
            let module = module(&context, f.op, width, false, Approximations::None);
            let engine = module.create_jit_execution_engine(OptimizationLevel::Default).expect("a compiler");
            let address = engine.get_function_address("f").expect("the function");
            for (x, y) in pairs(width) {
                let (want, got) = match width {
                    Width::F32 => {
                        let (x, y) = (x as f32, y as f32);
                        let want = compute(f.op, width, &[x.into(), y.into()][..f.op.arity()]);
                        // SAFETY: the function was emitted with one or two f32 operands and an f32 result; the second
                        // register is not read by a function of one operand.
                        let run: extern "C" fn(f32, f32) -> f32 = unsafe { std::mem::transmute(address) };
                        (want.number(), f64::from(run(x, y)))
                    }
                    Width::F64 => {
                        let want = compute(f.op, width, &[x.into(), y.into()][..f.op.arity()]);
                        // SAFETY: as above, with f64.
                        let run: extern "C" fn(f64, f64) -> f64 = unsafe { std::mem::transmute(address) };
                        (want.number(), run(x, y))
                    }
                };
                let same = want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan();
                assert!(same, "{} {width:?} of {x:e}, {y:e}: {got:e}, not {want:e}", f.op.name());
            }
        }
    }
}

/// Operands of all exponents, for f64 beyond those of f32 too.
fn pairs(width: Width) -> impl Iterator<Item = (f64, f64)> {
    samples(128).zip(samples(128).skip(9_001).chain(samples(128))).map(move |(x, y)| match width {
        Width::F32 => (f64::from(x), f64::from(y)),
        Width::F64 => {
            let bits = u64::from(x.to_bits()) << 32 | u64::from(y.to_bits());
            (f64::from_bits(bits), f64::from_bits(bits.rotate_left(32)))
        }
    })
}

/// The instructions of the function in PTX for sm_90a, without those that fetch operands and deliver the result, and
/// without moves and changes of sign, which become parts of other machine instructions.
fn ptx(op: ElementwiseOp, width: Width, fast: bool) -> (usize, String) {
    Target::initialize_nvptx(&InitializationConfig::default());
    let context = Context::create();
    let module = module(&context, op, width, fast, Approximations::Ptx);
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let target = Target::from_triple(&triple).expect("the target is built in");
    let machine: TargetMachine = target
        .create_target_machine(
            &triple,
            "sm_90a",
            "+ptx83",
            OptimizationLevel::Aggressive,
            RelocMode::Default,
            CodeModel::Default,
        )
        .expect("a machine");
    module.set_triple(&triple);
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.run_passes("default<O3>", &machine, PassBuilderOptions::create()).expect("passes run");
    let text = machine.write_to_memory_buffer(&module, FileType::Assembly).expect("it is emitted");
    let text = String::from_utf8_lossy(text.as_slice()).into_owned();
    let counts = |line: &str| {
        let line = line.trim();
        line.ends_with(';')
            && !["ld.", "st.", "ret", ".", "//", "mov.", "neg.", "abs."].iter().any(|s| line.starts_with(s))
    };
    (text.lines().filter(|line| counts(line)).count(), text)
}

/// How many PTX instructions the function takes in f32, without and with `fast`, as the table in the documentation of
/// the module says. Of two numbers the larger one is with a branch for rare operands.
fn lengths(op: ElementwiseOp) -> [usize; 2] {
    let page = include_str!("../../../src/math/mod.rs");
    let start = format!("//! | `{}` ", op.name());
    let line = page.lines().find(|line| line.starts_with(&start)).expect("a line of the table");
    let cells: Vec<&str> = line.trim_end_matches([' ', '|']).split('|').collect();
    let [.., accurate, fast] = cells.as_slice() else { panic!("{line}") };
    [accurate, fast]
        .map(|cell| cell.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a number"))
}

#[test]
fn functions_are_as_short_in_ptx_as_is_said() {
    for f in functions() {
        for (fast, stated) in [false, true].into_iter().zip(lengths(f.op)) {
            let (length, text) = ptx(f.op, Width::F32, fast);
            assert_eq!(length, stated, "{} takes {length} instructions:\n{text}", f.op.name());
        }
    }
}
