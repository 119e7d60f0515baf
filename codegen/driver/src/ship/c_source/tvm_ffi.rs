//! Prints functions with the stable C interface of TVM-FFI, by which frameworks load kernels: `__tvm_ffi_NAME` for each
//! function of the header.
//!
//! They read arguments of any type, check them, and call the function of the header in the stream of the framework. The
//! parts that do not depend on the kernels are `c/tvm_ffi.c`.

use std::collections::BTreeSet;
use std::fmt::Write;

use tk_bundle::{Kernel, Param, ParamKind};
use tk_ops::DType;

use super::names::{Names, plain};
use super::types::{dtypes, number_type};
use super::{of_gcn, quoted};

const INTERFACE: &str = include_str!("../c/tvm_ffi.c");

/// DLPack's numbers of the devices of NVIDIA and AMD.
const DEVICES: [i32; 2] = [2, 10];

/// The source beside `NAME.c`; `error` is the function that tells why a call failed.
pub(super) fn source(kernels: &[Kernel], names: &[Names], name: &str, error: &str) -> Result<String, String> {
    let is_gcn = kernels.iter().flat_map(|k| &k.variants).any(of_gcn);
    let mut out = format!("/* The kernels of `{name}.h` for TVM-FFI: link it with `{name}.c`. */\n");
    let _ = write!(
        out,
        "#include \"{name}.h\"\n\n#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n\n"
    );
    let _ = write!(
        out,
        "/* DLPack's number of the device. */\n#define TKF_DEVICE {}\n\n",
        DEVICES[usize::from(is_gcn)]
    );
    out.push_str(&used(kernels));
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (kernel, names) in kernels.iter().zip(names) {
        let symbol = plain(&kernel.name);
        if !taken.insert(symbol.clone()) {
            return Err(format!("two kernels are named `{}`", kernel.name));
        }
        out.push_str(&function(kernel, names, &symbol, error)?);
    }
    Ok(out)
}

/// The interface without the helpers that no kernel needs, which compilers would warn about.
fn used(kernels: &[Kernel]) -> String {
    let has = |wanted: fn(&Param) -> bool| kernels.iter().any(|k| k.params.iter().any(wanted));
    let is_view = |p: &Param| matches!(p.kind, ParamKind::View { .. });
    let needed = [
        ("tkf_dtype", has(|p| p.kind != ParamKind::Number)),
        ("tkf_get", has(|p| p.kind != ParamKind::Number)),
        ("tkf_axes", has(is_view)),
        ("tkf_data", has(|p| p.kind != ParamKind::Number)),
        ("tkf_number", has(|p| p.kind == ParamKind::Number)),
        ("tkf_choice", kernels.iter().any(|k| !k.choices.is_empty())),
    ];
    let mut out = String::new();
    for part in INTERFACE.split_inclusive("\n}\n") {
        let left_out = needed.iter().any(|(name, needed)| {
            !needed && part.contains(&format!(" {name}(")) && is_definition(part, name)
        });
        if !left_out {
            out.push_str(part);
        }
    }
    out
}

/// Whether a part of the interface is the definition of this function.
fn is_definition(part: &str, name: &str) -> bool {
    part.lines().any(|l| {
        l.starts_with("static ") && (l.contains(&format!(" {name}(")) || l.contains(&format!("*{name}(")))
    })
}

fn function(kernel: &Kernel, names: &Names, symbol: &str, error: &str) -> Result<String, String> {
    let shown = quoted(&kernel.name).replace("%%", "%");
    let (mut before, mut body, mut passed) = (String::new(), String::new(), vec![]);
    let most = kernel.params.len() + names.choices.len();
    for (i, p) in kernel.params.iter().enumerate() {
        let (name, optional) = (quoted(&p.name).replace("%%", "%"), u8::from(p.optional));
        match p.kind {
            ParamKind::View { rank, .. } => {
                let _ = write!(before, "    tk_view{rank} v{i};\n    const tkf_tensor *t{i};\n");
                let _ = write!(
                    body,
                    "    if (tkf_get(&call, args, {i}, \"{name}\", {rank}, {optional}, &t{i}, &v{i}.dtype) != 0) {{\n        return -1;\n    }}\n    \
                     if (t{i} != NULL) {{\n        v{i}.data = tkf_data(t{i});\n        tkf_axes(t{i}, v{i}.shape, v{i}.strides);\n    }}\n"
                );
                passed.push(format!("t{i} != NULL ? &v{i} : NULL"));
            }
            ParamKind::Pointer { .. } => {
                let _ =
                    write!(before, "    tk_pointer v{i} = {{NULL, TK_U8}};\n    const tkf_tensor *t{i};\n");
                let _ = write!(
                    body,
                    "    if (tkf_get(&call, args, {i}, \"{name}\", -1, {optional}, &t{i}, &v{i}.dtype) != 0) {{\n        return -1;\n    }}\n    \
                     if (t{i} != NULL) {{\n        v{i}.data = tkf_data(t{i});\n    }}\n"
                );
                passed.push(format!("v{i}"));
            }
            ParamKind::Number => {
                let dtype = dtypes(kernel, i).first().and_then(|d| DType::parse(d)).unwrap_or(DType::I64);
                passed.push(number(&mut before, &mut body, i, &name, p, dtype)?);
            }
        }
    }
    for (i, (choice, names)) in kernel.choices.iter().zip(&names.choices).enumerate() {
        let values: Vec<String> =
            choice.values.iter().map(|v| format!("\"{}\", ", quoted(v).replace("%%", "%"))).collect();
        let _ = write!(
            before,
            "    static const char *const values{i}[] = {{{}NULL}};\n    int c{i};\n",
            values.concat()
        );
        let (at, name) = (kernel.params.len() + i, quoted(&choice.name).replace("%%", "%"));
        let has_default = u8::from(names.default.is_some());
        let _ = write!(
            body,
            "    if (tkf_choice(&call, args, {at}, \"{name}\", values{i}, {has_default}, &c{i}) != 0) {{\n        return -1;\n    }}\n"
        );
        passed.push(format!("(enum {})c{i}", names.ty));
    }
    let passed: String = passed.iter().map(|p| format!(", {p}")).collect();
    Ok(format!(
        "\nTKF_EXPORT int __tvm_ffi_{symbol}(void *handle, const tkf_any *args, int32_t count, tkf_any *result);\n\
         int __tvm_ffi_{symbol}(void *handle, const tkf_any *args, int32_t count, tkf_any *result)\n{{\n    \
         tkf_call call = {{\"{shown}\", count, -1, 0}};\n    void *stream = NULL;\n    tk_status status;\n{before}    \
         (void)handle;\n    (void)args;\n    \
         if (count > {most}) {{\n        return tkf_fail(&call, \"TypeError\", NULL, \"takes at most {most} arguments\");\n    }}\n\
         {body}    if (call.device >= 0) {{\n        stream = TVMFFIEnvGetStream(call.device, call.id);\n    }}\n    \
         status = {}(stream{passed});\n    return tkf_end(status, {error}(), result);\n}}\n",
        names.function,
    ))
}

/// The variables and the check of a number; returns what is passed.
fn number(
    before: &mut String,
    body: &mut String,
    i: usize,
    name: &str,
    p: &Param,
    dtype: DType,
) -> Result<String, String> {
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    if dtype.is_float() && !is_float {
        return Err(format!("`{}` is a number of type {dtype}, which no framework passes", p.name));
    }
    let (low, high) = match dtype {
        DType::Bool => (0.0, 1.0),
        DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::U64 => (0.0, i64::MAX as f64),
        _wide => (i64::MIN as f64, i64::MAX as f64),
    };
    let default = p.default.as_deref().and_then(|d| match d {
        "true" => Some(1.0),
        "false" => Some(0.0),
        number => number.replace('_', "").parse::<f64>().ok(),
    });
    let optional = u8::from(default.is_some());
    let (whole, value) = (default.unwrap_or(0.0) as i64, default.unwrap_or(0.0));
    let _ = write!(before, "    int64_t i{i} = {whole};\n    double d{i} = {value:?};\n");
    let _ = write!(
        body,
        "    if (tkf_number(&call, args, {i}, \"{name}\", {optional}, {low:?}, {high:?}, {}, &i{i}, &d{i}) != 0) {{\n        return -1;\n    }}\n",
        u8::from(is_float)
    );
    if !is_float {
        let _ = writeln!(body, "    (void)d{i};");
    }
    let from = if is_float { 'd' } else { 'i' };
    Ok(format!("({}){from}{i}", number_type(dtype.name()).unwrap_or("int64_t")))
}
