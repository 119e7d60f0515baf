//! Owns the comparison of the recipes with the interpreter: every operation on every element type that it accepts,
//! bit for bit, and that they pass through the back end of the other targets.
//!
//! The functions are compiled for this machine as the simulator compiles them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "failing is how tests report")]

mod optimised;

use inkwell::OptimizationLevel;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::execution_engine::ExecutionEngine;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tk_gpu::target::spec::{SIM_32, SM_80, SM_90A, TargetSpec};
use tk_llvm::scalar::{Error, MathFn, Scalars, Width};
use tk_ops::Group;
use tk_ops::buf::Buf;
use tk_ops::dtype::DType;
use tk_ops::eval::{self, Operand};
use tk_ops::op::{AtomicOp, ElementwiseOp};
use tk_ops::scalar::Scalar;

/// One operation on one choice of element types.
#[derive(Clone, Debug)]
struct Case {
    op: ElementwiseOp,
    from: Vec<DType>,
    to: DType,
}

/// Whether the table bounds the function in ulp: it is not in this module.
fn is_elsewhere(op: ElementwiseOp) -> bool {
    matches!(op.group(), Group::FloatUnary(_) | Group::FloatBinary(_)) && op != ElementwiseOp::Sqrt
}

/// Every operation on every choice of element types.
fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for &op in ElementwiseOp::ALL.iter().filter(|op| !is_elsewhere(**op)) {
        for d in op.accepts().iter() {
            let mut add = |from: &[DType], to| out.push(Case { op, from: from.to_vec(), to });
            match op {
                ElementwiseOp::Select => add(&[DType::Bool, d, d], d),
                ElementwiseOp::Cast => {
                    for to in DType::ALL.into_iter().filter(|to| *to != DType::Bool || d == DType::Bool) {
                        add(&[d], to);
                    }
                }
                ElementwiseOp::Bitcast => {
                    for to in op.accepts().iter().filter(|to| to.bits() == d.bits()) {
                        add(&[d], to);
                    }
                }
                ElementwiseOp::Shl | ElementwiseOp::Shr => {
                    for amount in DType::ALL.into_iter().filter(|a| a.is_int()) {
                        add(&[d, amount], d);
                    }
                }
                _others => {
                    add(&vec![d; op.arity()], op.result().expect("only conversions choose").of(d));
                }
            }
        }
    }
    out
}

/// A generator of 64 random bits (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Ties, limits and their neighbourhood, of all float types.
const FLOATS: &str = "
    0.5 1.0 1.5 2.5 3.5 0.75 5.0 6.0 6.5 7.0 127.5 128.0 255.5 256.0 448.0 464.0 480.0 32767.5 32768.0
    57344.0 61440.0 65504.0 65519.99 65520.0 65535.5 65536.0 8388607.5 8388609.0 2147483520.0
    2147483647.0 2147483648.0 4294967295.0 4294967296.0 9.2e18 9223372036854775808.0
    18446744073709551616.0 1e30 3.4e38 3.5e38 1e300 1e-3 0.001953125 0.0009765625 6e-8 2.9e-8 2e-14
    1e-38 5.877471754111438e-39 8.816207631167156e-39 1e-45 5e-324 inf nan 1.7976931348623157e308
    2.2250738585072014e-308
";

/// Bits at which arithmetic changes its ways: limits of the type and of those it is converted to, ties, NaN.
fn specials(d: DType) -> Vec<u64> {
    let mut out = vec![0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100];
    let bits = d.bits();
    if d.is_int() {
        for b in 0..bits {
            let power = 1u64 << b;
            out.extend([power, power - 1, power + 1, power.wrapping_neg(), !power]);
            // Halfway between two values of a float with this many bits behind the first.
            for tie in
                [2, 3, 4, 8, 11, 24, 53].map(|mantissa| power | power.checked_shr(mantissa).unwrap_or(0))
            {
                out.extend([tie, tie - 1, tie + 1, tie.wrapping_neg()]);
            }
        }
    } else {
        for v in FLOATS.split_whitespace().map(|v| v.parse().unwrap()) {
            let code = Scalar::float(d, v).bits();
            out.extend([code, code.wrapping_add(1), code.wrapping_sub(1)]);
        }
        // Ties of the narrower types, in the bits of this one.
        for shift in [13, 16, 20, 21, 22, 29, 45, 42, 49, 51] {
            let half = Scalar::float(d, 1.0).bits() | 1u64 << (shift % bits) >> 1;
            out.extend([half, half + 1, half - 1]);
        }
        let sign = 1u64 << (bits - 1);
        out.extend(out.clone().into_iter().map(|x| x | sign));
    }
    let mask = u64::MAX >> (64 - bits);
    out.iter_mut().for_each(|x| *x &= mask);
    out.sort_unstable();
    out.dedup();
    out
}

/// Random bits, of all sizes and near what `near` is.
fn random_bits(d: DType, rng: &mut Random, near: u64) -> u64 {
    let (a, b) = (rng.next(), rng.next());
    match b % 8 {
        0 | 1 => a >> (b >> 8 & 63),
        2 => (a >> (b >> 8 & 63)).wrapping_neg(),
        3 => near.wrapping_add(a % 5).wrapping_sub(2),
        4 if !d.is_int() => Scalar::float(d, (a % 4096) as f64 / 16.0 - 128.0).bits(),
        _others => a,
    }
}

fn buffer(d: DType, bits: &[u64]) -> Buf {
    let mut out = Buf::zeros(d, bits.len());
    for (i, b) in bits.iter().enumerate() {
        out.set(i, Scalar::from_bits(d, *b));
    }
    out
}

/// Values for the operands: everything where that is little, else all pairs of specials and random ones.
fn inputs(from: &[DType]) -> Vec<Buf> {
    let mut rng = Random(from.iter().fold(7, |h, d| h * 31 + u64::from(d.bits())));
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); from.len()];
    let width: u32 = from.iter().map(|d| d.bits()).sum();
    if width <= 16 {
        for v in 0..1u64 << width {
            let mut rest = v;
            for (column, d) in columns.iter_mut().zip(from) {
                column.push(rest & ((1 << d.bits()) - 1));
                rest >>= d.bits();
            }
        }
    } else {
        let lists: Vec<Vec<u64>> = from.iter().map(|d| specials(*d)).collect();
        if let [first] = lists.as_slice() {
            columns[0].extend(first);
        } else {
            // Pairs of the last two operands; the first of three is drawn from the list.
            let [.., a, b] = lists.as_slice() else { panic!("no operands") };
            let step = (a.len() * b.len() / 25_000).max(1);
            for (i, (x, y)) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))).enumerate() {
                if i % step == 0 {
                    let drawn = &lists[0][rng.next() as usize % lists[0].len()];
                    let row = [drawn, x, y];
                    for (column, v) in columns.iter_mut().zip(&row[3 - from.len()..]) {
                        column.push(**v);
                    }
                }
            }
        }
        for _ in 0..12_000 {
            let mut near = 0;
            for (column, d) in columns.iter_mut().zip(from) {
                near = random_bits(*d, &mut rng, near);
                column.push(near);
            }
        }
    }
    columns.iter().zip(from).map(|(bits, d)| buffer(*d, bits)).collect()
}

/// The type in which an element stands in memory.
fn stored<'c>(s: &Scalars<'_, 'c>, d: DType) -> BasicTypeEnum<'c> {
    if d == DType::Bool { s.context.i8_type().into() } else { s.element_type(d) }
}

fn load<'c>(s: &Scalars<'_, 'c>, p: PointerValue<'c>, i: IntValue<'c>, d: DType) -> BasicValueEnum<'c> {
    let ty = stored(s, d);
    // SAFETY: the caller gives a buffer of enough elements.
    let at = unsafe { s.builder.build_gep(ty, p, &[i], "") }.unwrap();
    let v = s.builder.build_load(ty, at, "").unwrap();
    if d != DType::Bool {
        return v;
    }
    s.builder.build_int_truncate(v.into_int_value(), s.context.bool_type(), "").unwrap().into()
}

fn store<'c>(s: &Scalars<'_, 'c>, p: PointerValue<'c>, i: IntValue<'c>, v: BasicValueEnum<'c>, d: DType) {
    let ty = stored(s, d);
    // SAFETY: the caller gives a buffer of enough elements.
    let at = unsafe { s.builder.build_gep(ty, p, &[i], "") }.unwrap();
    let v: BasicValueEnum<'_> = match d {
        DType::Bool => s
            .builder
            .build_int_z_extend(v.into_int_value(), s.context.i8_type(), "")
            .unwrap()
            .as_basic_value_enum(),
        _others => v,
    };
    s.builder.build_store(at, v).unwrap();
}

/// `name(n, a, b, c, out)`: a loop over the elements; `body` gives the result from the operands.
fn emit_loop<'c>(
    s: &Scalars<'_, 'c>,
    name: &str,
    from: &[DType],
    to: DType,
    body: impl FnOnce(&[BasicValueEnum<'c>]) -> Result<BasicValueEnum<'c>, Error>,
) {
    let (c, b) = (s.context, s.builder);
    let (i64_type, ptr) = (c.i64_type(), c.ptr_type(AddressSpace::default()));
    let ty = c.void_type().fn_type(&[i64_type.into(), ptr.into(), ptr.into(), ptr.into(), ptr.into()], false);
    let f = s.module.add_function(name, ty, None);
    let [entry, head, inside, done] =
        ["entry", "head", "inside", "done"].map(|name| c.append_basic_block(f, name));
    let arg = |i| f.get_nth_param(i).unwrap();
    b.position_at_end(entry);
    b.build_unconditional_branch(head).unwrap();
    b.position_at_end(head);
    let phi = b.build_phi(i64_type, "").unwrap();
    let i = phi.as_basic_value().into_int_value();
    let more = b.build_int_compare(IntPredicate::ULT, i, arg(0).into_int_value(), "").unwrap();
    b.build_conditional_branch(more, inside, done).unwrap();
    b.position_at_end(inside);
    let args: Vec<BasicValueEnum<'_>> =
        (1..).zip(from).map(|(at, d)| load(s, arg(at).into_pointer_value(), i, *d)).collect();
    let r = body(&args).unwrap_or_else(|e| panic!("{name}: {e}"));
    store(s, arg(4).into_pointer_value(), i, r, to);
    let next = b.build_int_add(i, i64_type.const_int(1, false), "").unwrap();
    b.build_unconditional_branch(head).unwrap();
    phi.add_incoming(&[(&i64_type.const_zero(), entry), (&next, b.get_insert_block().unwrap())]);
    b.position_at_end(done);
    b.build_return(None).unwrap();
}

fn emit<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    spec: &'static TargetSpec,
    cases: &[Case],
) -> Module<'c> {
    let module = context.create_module("scalar");
    let math: &MathFn<'_, '_> = &|_, _, _, _| None;
    let s = Scalars { context, builder, module: &module, spec, math };
    for (i, case) in cases.iter().enumerate() {
        emit_loop(&s, &format!("case_{i}"), &case.from, case.to, |args| {
            let from: Vec<Option<DType>> = case.from.iter().map(|d| Some(*d)).collect();
            s.elementwise(case.op, &from, Some(case.to), false, args)
        });
    }
    module.verify().unwrap_or_else(|e| panic!("{}", e.to_string()));
    module
}

/// `f(n, a, b, c, out)`.
type Compiled = unsafe extern "C" fn(u64, *const u8, *const u8, *const u8, *mut u8);

fn run(f: Compiled, count: u64, args: &[Buf], to: DType) -> Buf {
    let n = args[0].len();
    let bytes: Vec<Vec<u8>> = args.iter().map(Buf::to_le_bytes).collect();
    let at = |i: usize| bytes.get(i).map_or(std::ptr::null(), |b| b.as_ptr());
    let mut out = vec![0u8; n * to.bytes()];
    // SAFETY: every buffer has at least `count` elements of the types that the function was written for.
    unsafe { f(count, at(0), at(1), at(2), out.as_mut_ptr()) };
    Buf::from_le_bytes(to, &out).unwrap()
}

fn is_nan(s: Scalar) -> bool {
    s.as_f64().is_some_and(f64::is_nan)
}

/// Where the two differ, NaN as NaN.
fn difference(found: &Buf, expected: &Buf) -> Option<usize> {
    if found.to_le_bytes() == expected.to_le_bytes() {
        return None;
    }
    (0..expected.len()).find(|i| {
        let (a, b) = (found.get(*i), expected.get(*i));
        a != b && !(is_nan(a) && is_nan(b))
    })
}

/// Compares these cases on this machine with the interpreter.
fn compare(cases: &[Case]) {
    let context = Context::create();
    let builder = context.create_builder();
    let module = emit(&context, &builder, &SIM_32, cases);
    let mut last: (Vec<DType>, Vec<Buf>) = (Vec::new(), Vec::new());
    let args = |i: usize| {
        if last.0 != cases[i].from {
            last = (cases[i].from.clone(), inputs(&cases[i].from));
        }
        last.1.clone()
    };
    let count = |args: &[Buf]| args[0].len() as u64;
    run_all(&module, cases, args, count, |_, _| {});
}

/// Runs `case_0`, `case_1`, .. of a module and compares with the interpreter. `count` is what the loop is told of the
/// number of elements; `link` gives the engine what the module calls.
fn run_all(
    module: &Module<'_>,
    cases: &[Case],
    mut args: impl FnMut(usize) -> Vec<Buf>,
    count: impl Fn(&[Buf]) -> u64,
    link: impl FnOnce(&Module<'_>, &ExecutionEngine<'_>),
) {
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    let machine = machine(&TargetMachine::get_default_triple(), "generic", "");
    module.run_passes("default<O1>", &machine, PassBuilderOptions::create()).unwrap();
    let engine = module.create_jit_execution_engine(OptimizationLevel::None).unwrap();
    link(module, &engine);
    let mut wrong = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let args = args(i);
        // SAFETY: it was emitted with this signature, and the engine lives until the end.
        let f = unsafe { engine.get_function::<Compiled>(&format!("case_{i}")).unwrap().into_raw() };
        let found = run(f, count(&args), &args, case.to);
        let operands: Vec<Operand<'_>> = args.iter().map(Operand::Buf).collect();
        let expected = eval::elementwise(case.op, &operands, case.to, args[0].len(), false).unwrap();
        if let Some(at) = difference(&found, &expected) {
            let shown = |b: &Buf| format!("{} ({:#x})", b.get(at), b.get(at).bits());
            let given: Vec<String> = args.iter().map(shown).collect();
            let (name, to, given) = (case.op.name(), case.to, given.join(", "));
            let (found, expected) = (shown(&found), shown(&expected));
            wrong.push(format!("{name} {:?} -> {to} of {given}: {found} instead of {expected}", case.from));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn machine(triple: &TargetTriple, cpu: &str, features: &str) -> TargetMachine {
    let target = Target::from_triple(triple).unwrap();
    let (level, reloc, model) = (OptimizationLevel::Default, RelocMode::Default, CodeModel::JITDefault);
    target.create_target_machine(triple, cpu, features, level, reloc, model).unwrap()
}

/// Operations whose operands are all of the same class as these.
fn selected(keep: impl Fn(&Case) -> bool) -> Vec<Case> {
    cases().into_iter().filter(keep).collect()
}

#[test]
fn integers_and_bools_are_those_of_the_interpreter() {
    let class = |d: DType| d.is_int() || d == DType::Bool;
    compare(&selected(|c| class(c.from[0]) && c.op != ElementwiseOp::Cast));
}

#[test]
fn floats_are_those_of_the_interpreter() {
    let class = |d: DType| d.is_int() || d == DType::Bool;
    compare(&selected(|c| !class(c.from[0]) && c.op != ElementwiseOp::Cast));
}

#[test]
fn conversions_are_those_of_the_interpreter() {
    compare(&selected(|c| c.op == ElementwiseOp::Cast));
}

/// The assembly for an NVIDIA machine.
fn assembly(spec: &'static TargetSpec, features: &str, cases: &[Case]) -> String {
    Target::initialize_nvptx(&InitializationConfig::default());
    let context = Context::create();
    let builder = context.create_builder();
    let module = emit(&context, &builder, spec, cases);
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let machine = machine(&triple, spec.name, features);
    module.set_triple(&triple);
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let options = PassBuilderOptions::create();
    options.set_loop_unrolling(false);
    module.run_passes("default<O3>", &machine, options).unwrap();
    let text = machine.write_to_memory_buffer(&module, FileType::Assembly).unwrap();
    String::from_utf8_lossy(text.as_slice()).into_owned()
}

#[test]
fn the_recipes_pass_through_the_back_end_of_ampere() {
    let text = assembly(&SM_80, "+ptx74", &cases());
    // Instructions of later machines, which LLVM would write unasked.
    for later in ["cvt.f32.bf16", "add.rn.bf16", "setp.lt.bf16", "e4m3x2"] {
        assert!(!text.contains(later), "{later}");
    }
    for instruction in ["cvt.rn.bf16.f32", "fma.rn.bf16", "add.rn.f16", "max.NaN.bf16", "cvt.rzi.s32.f32"] {
        assert!(text.contains(instruction), "{instruction}");
    }
    assert!(!text.contains("call"), "a function is called");
}

#[test]
fn the_recipes_pass_through_the_back_end_of_hopper() {
    let text = assembly(&SM_90A, "+ptx83", &cases());
    let some =
        ["add.rn.bf16", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.f16x2.e5m2x2", "max.NaN.f32", "max.f32"];
    for instruction in some {
        assert!(text.contains(instruction), "{instruction}");
    }
    assert!(!text.contains("call"), "a function is called");
}

/// The text of `case` with functions that are the negation of their first operand.
fn text(
    spec: &'static TargetSpec,
    case: &Case,
    fast: bool,
    known: &[ElementwiseOp],
) -> Result<String, Error> {
    let context = Context::create();
    let (builder, module) = (context.create_builder(), context.create_module("scalar"));
    let math: &MathFn<'_, '_> = &|op, _, _, args| {
        let x = args.first()?.into_float_value();
        known.contains(&op).then(|| builder.build_float_neg(x, "hook").unwrap().into())
    };
    let s = Scalars { context: &context, builder: &builder, module: &module, spec, math };
    let mut error = None;
    emit_loop(&s, "f", &case.from, case.to, |args| {
        let from: Vec<Option<DType>> = case.from.iter().map(|d| Some(*d)).collect();
        Ok(s.elementwise(case.op, &from, Some(case.to), fast, args).unwrap_or_else(|e| {
            error = Some(e);
            args[0]
        }))
    });
    error.map_or_else(|| Ok(module.print_to_string().to_string()), Err)
}

fn same(op: ElementwiseOp, d: DType) -> Case {
    Case { op, from: vec![d; op.arity()], to: d }
}

#[test]
fn functions_come_from_the_hook() {
    use ElementwiseOp::{Div, Exp, Pow, Sqrt};
    for op in [Exp, Pow] {
        for (d, width) in [(DType::F16, Width::F32), (DType::F32, Width::F32), (DType::F64, Width::F64)] {
            assert_eq!(text(&SIM_32, &same(op, d), false, &[]), Err(Error::NoFunction(op, width)));
            let ty = if d == DType::F64 { "double" } else { "float" };
            let found = text(&SIM_32, &same(op, d), false, &[op]).unwrap();
            assert!(found.contains(&format!("%hook = fneg {ty}")), "{found}");
        }
    }
    // Division and square root are exact without `fast`, and may be with it.
    for op in [Div, Sqrt] {
        let case = same(op, DType::F32);
        let exact = text(&SM_80, &case, false, &[op]).unwrap();
        let hooked = text(&SM_80, &case, true, &[op]).unwrap();
        let fast = text(&SM_80, &case, true, &[]).unwrap();
        assert!(!exact.contains("hook") && hooked.contains("hook"));
        assert!(fast.contains("arcp contract afn"), "{fast}");
    }
}

#[test]
fn only_fast_arithmetic_may_contract() {
    for case in selected(|c| c.to.is_float() && c.op != ElementwiseOp::Cast) {
        for spec in [&SM_90A, &SIM_32] {
            let found = text(spec, &case, false, &[]).unwrap();
            assert!(!found.contains("contract") && !found.contains("afn"), "{case:?}\n{found}");
        }
    }
    let found = text(&SM_90A, &same(ElementwiseOp::Mul, DType::F16), true, &[]).unwrap();
    assert!(found.contains("fmul arcp contract afn half"), "{found}");
}

#[test]
fn folded_constants_are_those_of_the_interpreter() {
    const ROWS: usize = 12;
    let cases = cases();
    let context = Context::create();
    let (builder, module) = (context.create_builder(), context.create_module("folded"));
    let math: &MathFn<'_, '_> = &|_, _, _, _| None;
    let s = Scalars { context: &context, builder: &builder, module: &module, spec: &SIM_32, math };
    let mut rows: Vec<Vec<Buf>> = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let mut rng = Random(i as u64);
        let draw = |d: &DType, rng: &mut Random| {
            let list = specials(*d);
            let bits: Vec<u64> = (0..ROWS).map(|_| list[rng.next() as usize % list.len()]).collect();
            buffer(*d, &bits)
        };
        let args: Vec<Buf> = case.from.iter().map(|d| draw(d, &mut rng)).collect();
        emit_loop(&s, &format!("case_{i}"), &[], DType::Bool, |_| {
            Ok(context.bool_type().const_zero().into())
        });
        let f = module.get_function(&format!("case_{i}")).unwrap();
        builder.position_before(&f.get_last_basic_block().unwrap().get_terminator().unwrap());
        let out = f.get_last_param().unwrap().into_pointer_value();
        let from: Vec<Option<DType>> = case.from.iter().map(|d| Some(*d)).collect();
        for row in 0..ROWS {
            let operands: Vec<BasicValueEnum<'_>> = args.iter().map(|a| s.constant(a.get(row))).collect();
            let r = s.elementwise(case.op, &from, Some(case.to), false, &operands).unwrap();
            store(&s, out, context.i64_type().const_int(row as u64, false), r, case.to);
        }
        rows.push(args);
    }
    // The loop has nothing to do.
    run_all(&module, &cases, |i| rows[i].clone(), |_| 0, |_, _| {});
}

#[test]
fn atomics_do_what_their_row_says() {
    use AtomicOp::{Add, And, Cas, Load, Max, Min, Or, Store, Xchg, Xor};
    let context = Context::create();
    let (builder, module) = (context.create_builder(), context.create_module("atomic"));
    let math: &MathFn<'_, '_> = &|_, _, _, _| None;
    let s = Scalars { context: &context, builder: &builder, module: &module, spec: &SIM_32, math };
    for op in [Add, And, Cas, Load, Max, Min, Or, Store, Xchg, Xor] {
        emit_loop(&s, op.name(), &[DType::I32; 3], DType::I32, |args| {
            s.atomic(op, DType::I32, args[0], args[1], Some(args[2]))
        });
    }
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    let engine = module.create_jit_execution_engine(OptimizationLevel::None).unwrap();
    let of = |op: AtomicOp, old: i32, value: i32, compare: i32| {
        let args = [old, value, compare].map(|v| Buf::I32(vec![v]));
        // SAFETY: it was emitted with this signature, and the engine lives.
        let f = unsafe { engine.get_function::<Compiled>(op.name()).unwrap().into_raw() };
        run(f, 1, &args, DType::I32).get(0).as_int().unwrap()
    };
    assert_eq!(
        [of(Add, i32::MAX, 1, 0), of(Max, -3, 2, 0), of(Min, -3, 2, 0)],
        [i128::from(i32::MIN), 2, -3]
    );
    assert_eq!([of(And, 12, 10, 0), of(Or, 12, 10, 0), of(Xor, 12, 10, 0)], [8, 14, 6]);
    assert_eq!([of(Xchg, 1, 7, 0), of(Store, 1, 7, 0), of(Load, 1, 7, 0)], [7, 7, 1]);
    assert_eq!([of(Cas, 3, 7, 3), of(Cas, 3, 7, 4)], [7, 3]);
}
