//! What LLVM's passes make of the recipes for GPUs, executed on this machine: a result that LLVM declared undefined (a
//! conversion out of range that became `fptoui`, say) is a difference here, without a GPU.
//!
//! The module is optimised for the GPU, then each piece of inline assembly becomes a call of a function that does what the
//! manual says of the instruction, and the rest is compiled for the host.

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::TargetTriple;
use tk_gpu::target::spec::{GFX90A, GFX942, GFX1100};
use tk_llvm::module::PASSES;

use super::*;

/// Instructions of PTX as LLVM IR of the host, by what follows `call` in the text of a module.
const INSTRUCTIONS: &str = r#"
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i64 @llvm.fptosi.sat.i64.f32(float)
declare i64 @llvm.fptoui.sat.i64.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i32 @llvm.fptoui.sat.i32.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i64 @llvm.fptoui.sat.i64.f64(double)
define i32 @"cvt.rzi.s32.f32 $0, $1;"(float %x) {
  %r = call i32 @llvm.fptosi.sat.i32.f32(float %x)
  ret i32 %r
}
define i32 @"cvt.rzi.u32.f32 $0, $1;"(float %x) {
  %r = call i32 @llvm.fptoui.sat.i32.f32(float %x)
  ret i32 %r
}
define i64 @"cvt.rzi.s64.f32 $0, $1;"(float %x) {
  %r = call i64 @llvm.fptosi.sat.i64.f32(float %x)
  %nan = fcmp uno float %x, %x
  %most = select i1 %nan, i64 -9223372036854775808, i64 %r
  ret i64 %most
}
define i64 @"cvt.rzi.u64.f32 $0, $1;"(float %x) {
  %r = call i64 @llvm.fptoui.sat.i64.f32(float %x)
  %nan = fcmp uno float %x, %x
  %most = select i1 %nan, i64 -9223372036854775808, i64 %r
  ret i64 %most
}
define i32 @"cvt.rzi.s32.f64 $0, $1;"(double %x) {
  %r = call i32 @llvm.fptosi.sat.i32.f64(double %x)
  %nan = fcmp uno double %x, %x
  %most = select i1 %nan, i32 -2147483648, i32 %r
  ret i32 %most
}
define i32 @"cvt.rzi.u32.f64 $0, $1;"(double %x) {
  %r = call i32 @llvm.fptoui.sat.i32.f64(double %x)
  %nan = fcmp uno double %x, %x
  %most = select i1 %nan, i32 -2147483648, i32 %r
  ret i32 %most
}
define i64 @"cvt.rzi.s64.f64 $0, $1;"(double %x) {
  %r = call i64 @llvm.fptosi.sat.i64.f64(double %x)
  %nan = fcmp uno double %x, %x
  %most = select i1 %nan, i64 -9223372036854775808, i64 %r
  ret i64 %most
}
define i64 @"cvt.rzi.u64.f64 $0, $1;"(double %x) {
  %r = call i64 @llvm.fptoui.sat.i64.f64(double %x)
  %nan = fcmp uno double %x, %x
  %most = select i1 %nan, i64 -9223372036854775808, i64 %r
  ret i64 %most
}
define i16 @"mov.b16 $0, $1;"(i16 %x) {
  ret i16 %x
}
declare i64 @llvm.abs.i64(i64, i1)
define i64 @"{ .reg .s64 n; neg.s64 n, $1; max.s64 $0, $1, n; }"(i64 %x) {
  %r = call i64 @llvm.abs.i64(i64 %x, i1 false)
  ret i64 %r
}
declare i32 @encode_f8(i32, float)
declare float @decode_f8(i32, i32)
define i16 @"cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;"(float %high, float %low) {
  %code = call i32 @encode_f8(i32 0, float %low)
  %r = trunc i32 %code to i16
  ret i16 %r
}
define i16 @"cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2;"(float %high, float %low) {
  %code = call i32 @encode_f8(i32 1, float %low)
  %r = trunc i32 %code to i16
  ret i16 %r
}
define i32 @"cvt.rn.f16x2.e4m3x2 $0, $1;"(i16 %pair) {
  %code = zext i16 %pair to i32
  %wide = call float @decode_f8(i32 0, i32 %code)
  %half = fptrunc float %wide to half
  %bits = bitcast half %half to i16
  %r = zext i16 %bits to i32
  ret i32 %r
}
define i32 @"cvt.rn.f16x2.e5m2x2 $0, $1;"(i16 %pair) {
  %code = zext i16 %pair to i32
  %wide = call float @decode_f8(i32 1, i32 %code)
  %half = fptrunc float %wide to half
  %bits = bitcast half %half to i16
  %r = zext i16 %bits to i32
  ret i32 %r
}
"#;

extern "C" fn encode_f8(kind: u32, x: f32) -> u32 {
    let to = [DType::F8E4M3, DType::F8E5M2][kind as usize];
    let wide = Buf::F32(vec![x]);
    let code = eval::elementwise(ElementwiseOp::Cast, &[Operand::Buf(&wide)], to, 1, false).unwrap();
    code.get(0).bits() as u32
}

extern "C" fn decode_f8(kind: u32, code: u32) -> f32 {
    let from = [DType::F8E4M3, DType::F8E5M2][kind as usize];
    Scalar::from_bits(from, (code & 0xFF).into()).as_f64().unwrap() as f32
}

/// `max` and `min` of the machines, which order zeros; LLVM's `maxnum` gives either.
fn ordered() -> String {
    let mut out = String::new();
    for (ty, name) in [("half", "f16"), ("bfloat", "bf16"), ("float", "f32"), ("double", "f64")] {
        for (of, strict) in [("maxnum", "maximum"), ("minnum", "minimum")] {
            out += &format!(
                "define {ty} @ordered.{of}.{name}({ty} %a, {ty} %b) {{
                   %both = call {ty} @llvm.{strict}.{name}({ty} %a, {ty} %b)
                   %b_nan = fcmp uno {ty} %b, %b
                   %known = select i1 %b_nan, {ty} %a, {ty} %both
                   %a_nan = fcmp uno {ty} %a, %a
                   %r = select i1 %a_nan, {ty} %b, {ty} %known
                   ret {ty} %r
                 }}
                 declare {ty} @llvm.{strict}.{name}({ty}, {ty})\n"
            );
        }
    }
    out
}

/// The text of the module that the passes make for a GPU, with calls instead of assembly and nothing about the GPU.
fn for_host(spec: &'static TargetSpec, triple: &str, features: &str, passes: &str, cases: &[Case]) -> String {
    let context = Context::create();
    let builder = context.create_builder();
    let module = emit(&context, &builder, spec, cases);
    let triple = TargetTriple::create(triple);
    let machine = machine(&triple, spec.name, features);
    module.set_triple(&triple);
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let options = PassBuilderOptions::create();
    options.set_loop_unrolling(false);
    module.run_passes(passes, &machine, options).unwrap();
    let text = module.print_to_string().to_string();
    let mut out = String::new();
    let text = text.replace("@llvm.maxnum.", "@ordered.maxnum.").replace("@llvm.minnum.", "@ordered.minnum.");
    let defined = |l: &str| l.starts_with("declare") && l.contains("@ordered.");
    for line in text.lines().filter(|l| !l.starts_with("target ") && !defined(l)) {
        // `asm "text", "constraints"(` becomes `@"text"(`.
        let replaced =
            line.split_once("asm ").filter(|_| line.contains("call")).and_then(|(before, rest)| {
                let rest = rest.strip_prefix("sideeffect ").unwrap_or(rest);
                let (text, rest) = rest.strip_prefix('"')?.split_once("\", \"")?;
                let (_, arguments) = rest.split_once('"')?;
                Some(format!("{before}@\"{text}\"{arguments}\n"))
            });
        out += &replaced.unwrap_or_else(|| format!("{line}\n"));
    }
    out
}

/// Compares with the interpreter what this machine computes by the code that was optimised for a GPU.
fn compare_optimised(spec: &'static TargetSpec, triple: &str, features: &str, cases: &[Case]) {
    for passes in [PASSES, "default<O3>"] {
        let text = for_host(spec, triple, features, passes, cases);
        let context = Context::create();
        // A second declaration of a function is an error.
        let declared = |line: &str| {
            let name = line.split(['@', '(']).nth(1).unwrap_or_default();
            text.lines().any(|l| l.starts_with("declare") && l.contains(&format!("@{name}(")))
        };
        let prelude = format!("{INSTRUCTIONS}\n{}", ordered());
        let prelude: Vec<&str> =
            prelude.lines().map(str::trim).filter(|l| !(l.starts_with("declare") && declared(l))).collect();
        let text = format!("{text}\n{}\0", prelude.join("\n"));
        let buffer = MemoryBuffer::create_from_memory_range_copy(&text.as_bytes()[..text.len() - 1], "text");
        let module = context.create_module_from_ir(buffer).unwrap_or_else(|e| panic!("{}", e.to_string()));
        let args = |i: usize| inputs(&cases[i].from);
        run_all(
            &module,
            cases,
            args,
            |args| args[0].len() as u64,
            |module, engine| {
                for (name, address) in [
                    ("encode_f8", encode_f8 as *const () as usize),
                    ("decode_f8", decode_f8 as *const () as usize),
                ] {
                    engine.add_global_mapping(&module.get_function(name).unwrap(), address);
                }
                for (name, long, address) in tk_llvm::sim::library() {
                    let context = module.get_context();
                    let ty = if long { context.f64_type() } else { context.f32_type() };
                    let f = module.add_function(name, context.f32_type().fn_type(&[ty.into()], false), None);
                    engine.add_global_mapping(&f, address);
                }
            },
        );
    }
}

/// Conversions and orders, of which the instructions of a GPU and LLVM's own differ out of range, for NaN and for zeros.
fn risky() -> Vec<Case> {
    use ElementwiseOp::{Bitcast, Cast, Clamp, MaxNum, Maximum, MinNum, Minimum};
    selected(|c| matches!(c.op, Cast | Bitcast | Maximum | Minimum | MaxNum | MinNum | Clamp))
}

#[test]
fn optimised_for_ampere_they_are_those_of_the_interpreter() {
    compare_optimised(&SM_80, "nvptx64-nvidia-cuda", "+ptx74", &risky());
}

#[test]
fn optimised_for_hopper_they_are_those_of_the_interpreter() {
    compare_optimised(&SM_90A, "nvptx64-nvidia-cuda", "+ptx83", &risky());
}

#[test]
fn optimised_for_amd_they_are_those_of_the_interpreter() {
    Target::initialize_amd_gpu(&InitializationConfig::default());
    for spec in [&GFX90A, &GFX942, &GFX1100] {
        compare_optimised(spec, "amdgcn-amd-amdhsa", "", &risky());
    }
}

/// The intrinsics of the targets that recipes and functions of floats call keep their names: an intrinsic that LLVM
/// rewrites to its own operation takes over that operation's undefined cases.
#[test]
fn intrinsics_of_the_targets_are_left_alone() {
    let nvptx = [
        "ex2.approx.ftz.f32",
        "lg2.approx.ftz.f",
        "rcp.approx.ftz.f",
        "rsqrt.approx.f",
        "rsqrt.approx.ftz.f",
    ]
    .into_iter()
    .chain(["sqrt.approx.ftz.f", "sin.approx.ftz.f", "cos.approx.ftz.f"])
    .map(|n| ("nvptx64-nvidia-cuda", "sm_90a", format!("llvm.nvvm.{n}")));
    let amd = ["exp2", "log", "rcp", "rsq", "sqrt"]
        .map(|n| ("amdgcn-amd-amdhsa", "gfx942", format!("llvm.amdgcn.{n}.f32")));
    Target::initialize_nvptx(&InitializationConfig::default());
    Target::initialize_amd_gpu(&InitializationConfig::default());
    for (triple, cpu, name) in nvptx.chain(amd) {
        let text = format!(
            "declare float @{name}(float)\ndefine float @f(float %x) {{\n  %r = call float @{name}(float %x)\n  ret float %r\n}}\n"
        );
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "text");
        let module = context.create_module_from_ir(buffer).unwrap();
        let triple = TargetTriple::create(triple);
        module.set_triple(&triple);
        module.run_passes(PASSES, &machine(&triple, cpu, ""), PassBuilderOptions::create()).unwrap();
        let found = module.print_to_string().to_string();
        assert!(found.contains(&format!("call float @{name}(float %x)")), "{found}");
    }
}
