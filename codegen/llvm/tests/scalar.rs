//! Owns the comparison of the recipes with the interpreter: every operation on every element type that it accepts,
//! bit for bit, and that they pass through the back end of the other targets.
//!
//! The functions are compiled for this machine as the simulator compiles them.

use inkwell::OptimizationLevel;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tk_layout::spec::{SIM_32, SM_80, SM_90A, TargetSpec};
use tk_llvm::scalar::{Error, Math, Scalars, Width};
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

/// Functions that the table bounds in ulp, which are not in this module.
const ELSEWHERE: [ElementwiseOp; 10] = [
    ElementwiseOp::Exp,
    ElementwiseOp::Exp2,
    ElementwiseOp::Log,
    ElementwiseOp::Log2,
    ElementwiseOp::Sin,
    ElementwiseOp::Cos,
    ElementwiseOp::Tanh,
    ElementwiseOp::Erf,
    ElementwiseOp::Rsqrt,
    ElementwiseOp::Pow,
];

/// Every operation on every choice of element types.
fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for &op in ElementwiseOp::ALL.iter().filter(|op| !ELSEWHERE.contains(op)) {
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

/// Bits at which arithmetic changes its ways: limits of the type and of those it is converted to, ties, NaN.
fn specials(d: DType) -> Vec<u64> {
    let mut out = vec![0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100];
    let bits = d.bits();
    if d.is_int() {
        for b in 0..bits {
            let power = 1u64 << b;
            out.extend([power, power - 1, power + 1, power.wrapping_neg(), !power, power | power >> 9]);
        }
    } else {
        let floats = [
            0.5,
            1.0,
            1.5,
            2.5,
            3.5,
            0.75,
            5.0,
            6.0,
            6.5,
            7.0,
            127.5,
            128.0,
            255.5,
            256.0,
            448.0,
            464.0,
            480.0,
            32767.5,
            32768.0,
            57344.0,
            61440.0,
            65504.0,
            65519.99,
            65520.0,
            65535.5,
            65536.0,
            8388607.5,
            8388609.0,
            2147483520.0,
            2147483647.0,
            2147483648.0,
            4294967295.0,
            4294967296.0,
            9.2e18,
            9223372036854775808.0,
            18446744073709551616.0,
            1e30,
            3.4e38,
            3.5e38,
            1e300,
            1e-3,
            0.001953125,
            0.0009765625,
            6e-8,
            2.9e-8,
            2e-14,
            1e-38,
            5.877471754111438e-39,
            8.816207631167156e-39,
            1e-45,
            5e-324,
            f64::INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN_POSITIVE,
        ];
        for v in floats {
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
            let step = (a.len() * b.len() / 40_000).max(1);
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

/// What stands in for functions of other modules.
fn no_functions<'c>() -> Box<Math<'c>> {
    Box::new(|_, _, _, _| None)
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
    let math = no_functions();
    let s = Scalars { context, builder, module: &module, spec, math: &*math };
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

fn run(f: Compiled, args: &[Buf], to: DType) -> Buf {
    let n = args[0].len();
    let bytes: Vec<Vec<u8>> = args.iter().map(Buf::to_le_bytes).collect();
    let at = |i: usize| bytes.get(i).map_or(std::ptr::null(), |b| b.as_ptr());
    let mut out = vec![0u8; n * to.bytes()];
    // SAFETY: every buffer has `n` elements of the types that the function was written for.
    unsafe { f(n as u64, at(0), at(1), at(2), out.as_mut_ptr()) };
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

/// Compares these cases on this machine with the interpreter; `passes` are LLVM's.
fn compare(cases: &[Case], passes: &str) {
    let context = Context::create();
    let builder = context.create_builder();
    let module = emit(&context, &builder, &SIM_32, cases);
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    let triple = TargetMachine::get_default_triple();
    let machine = machine(&triple, "generic", "");
    module.run_passes(passes, &machine, PassBuilderOptions::create()).unwrap();
    let engine = module.create_jit_execution_engine(OptimizationLevel::None).unwrap();
    let mut wrong = Vec::new();
    let mut last: (Vec<DType>, Vec<Buf>) = (Vec::new(), Vec::new());
    for (i, case) in cases.iter().enumerate() {
        if last.0 != case.from {
            last = (case.from.clone(), inputs(&case.from));
        }
        let args = &last.1;
        // SAFETY: it was emitted with this signature.
        let f = unsafe { engine.get_function::<Compiled>(&format!("case_{i}")) }.unwrap();
        // SAFETY: the engine lives until the end.
        let found = run(unsafe { f.into_raw() }, args, case.to);
        let operands: Vec<Operand<'_>> = args.iter().map(Operand::Buf).collect();
        let expected = eval::elementwise(case.op, &operands, case.to, args[0].len(), false).unwrap();
        if let Some(at) = difference(&found, &expected) {
            let given: Vec<String> =
                args.iter().map(|a| format!("{} ({:#x})", a.get(at), a.get(at).bits())).collect();
            wrong.push(format!(
                "{} {:?} -> {} of {}: {} ({:#x}) instead of {} ({:#x})",
                case.op.name(),
                case.from,
                case.to,
                given.join(", "),
                found.get(at),
                found.get(at).bits(),
                expected.get(at),
                expected.get(at).bits(),
            ));
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
    compare(&selected(|c| class(c.from[0]) && c.op != ElementwiseOp::Cast), "default<O1>");
}

#[test]
fn floats_are_those_of_the_interpreter() {
    let class = |d: DType| d.is_int() || d == DType::Bool;
    compare(&selected(|c| !class(c.from[0]) && c.op != ElementwiseOp::Cast), "default<O1>");
}

#[test]
fn conversions_are_those_of_the_interpreter() {
    compare(&selected(|c| c.op == ElementwiseOp::Cast), "default<O1>");
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
    module.run_passes("default<O3>", &machine, PassBuilderOptions::create()).unwrap();
    let text = machine.write_to_memory_buffer(&module, FileType::Assembly).unwrap();
    String::from_utf8_lossy(text.as_slice()).into_owned()
}

#[test]
fn dump() {
    std::fs::write("/tmp/scal80.ptx", assembly(&SM_80, "+ptx74", &cases())).unwrap();
    std::fs::write("/tmp/scal90.ptx", assembly(&SM_90A, "+ptx83", &cases())).unwrap();
}
