//! Kernels of a bundle without their program: numbers in the types of their parameters, and launches on the CPU by the
//! portable tile IR.

use std::collections::BTreeSet;

use tk_bundle::{
    Argument, Bundle, Error, ErrorKind, Facts, Kernel, MessageForm, MessageKind, Number, ParamKind, Variant,
};
use tk_interp::{Arg, Memory, Options, Printed};
use tk_ops::{DType, Scalar};
use tk_sema::contract::{HostArg, SetValue, fit};
use tk_tile::message::{Form, Kind, Message};
use tk_tile::{FuncId, FuncKind, Module, TileModule, text};

use crate::npy::Array;
use crate::run::{Output, Value, host};

/// The kernel of a name.
pub fn kernel<'b>(bundle: &'b Bundle, name: &str) -> Result<(usize, &'b Kernel), Error> {
    let kernels = &bundle.manifest().kernels;
    let found = kernels.iter().enumerate().find(|(_, k)| k.name == name);
    found.ok_or_else(|| {
        let names: Vec<String> = kernels.iter().map(|k| format!("`{}`", k.name)).collect();
        Error::new(
            ErrorKind::Argument,
            format!("there is no kernel `{name}`"),
            format!("there are {}", names.join(", ")),
        )
    })
}

/// The shipped value given for each choice of a kernel.
pub fn given(kernel: &Kernel, named: &[(&str, &str)]) -> Result<Vec<Option<u32>>, Error> {
    let mut out = vec![None; kernel.choices.len()];
    for (name, value) in named {
        let Some(i) = kernel.choices.iter().position(|c| c.name == *name) else {
            let fixed = kernel.variants.iter().flat_map(|v| &v.values).find(|v| v.name == *name);
            match fixed {
                // A choice of a single value may be given.
                Some(fixed) if fixed.value == *value => continue,
                Some(fixed) => {
                    let what =
                        format!("`{name}` of kernel `{}` was built as {} alone", kernel.name, fixed.value);
                    return Err(Error::new(
                        ErrorKind::Argument,
                        what,
                        "an `export` with more values ships more",
                    ));
                }
                None => {
                    let what = format!("kernel `{}` has no compile-time parameter `{name}`", kernel.name);
                    return Err(Error::new(ErrorKind::Argument, what, ""));
                }
            }
        };
        let values = kernel.choices.get(i).map(|c| c.values.as_slice()).unwrap_or_default();
        let Some(at) = values.iter().position(|v| v == value) else {
            let what = format!("`{name}` of kernel `{}` was not built as {value}", kernel.name);
            return Err(Error::new(ErrorKind::Variant, what, format!("there are {}", values.join(", "))));
        };
        out.iter_mut().skip(i).take(1).for_each(|slot| *slot = Some(at as u32));
    }
    Ok(out)
}

/// A number as the kernel takes it: in the type of its parameter, or the default where none is given. `None` if there is
/// none. `i` is the number of the argument; `tensors` has the element type of each one that is a tensor, since a variant
/// whose tensors have other types does not take the number.
pub fn fitted(
    kernel: &Kernel,
    i: usize,
    given: Option<Scalar>,
    tensors: &[Option<DType>],
) -> Result<Option<Scalar>, Error> {
    let Some(param) = kernel.params.get(i) else { return Ok(given) };
    let types =
        || kernel.variants.iter().filter_map(|v| Some((v, DType::parse(v.dtypes.get(i)?.as_deref()?)?)));
    let s = match (given, &param.default) {
        (Some(s), _) => s,
        (None, None) => return Ok(None),
        (None, Some(default)) => match SetValue::parse(default) {
            SetValue::Int(v) => Scalar::int(DType::I64, v),
            SetValue::Float(v) => Scalar::float(DType::F64, v),
            SetValue::Bool(v) => Scalar::bool(v),
            SetValue::DType(_) | SetValue::Shape(_) | SetValue::Fn(_) | SetValue::Lambda(_) => {
                return Ok(None);
            }
        },
    };
    // The type that it has already is the one that is meant, where there are several.
    let serves = |v: &Variant| {
        v.dtypes.iter().zip(tensors).all(|(own, t)| t.is_none_or(|t| own.as_deref() == Some(t.name())))
    };
    // Where no variant has the types of the tensors, that is what is reported.
    let none = !types().any(|(v, _)| serves(v));
    let types = || types().filter(|(v, _)| none || serves(v)).map(|(_, to)| to);
    let fits = || types().find_map(|to| fit(s, to));
    match types().find(|to| *to == s.dtype()).map(|_| s).or_else(fits) {
        Some(v) => Ok(Some(v)),
        None => {
            let taken: BTreeSet<&str> = types().map(DType::name).collect();
            let taken: Vec<&str> = taken.into_iter().collect();
            let what = format!(
                "`{}` of kernel `{}` is {s}, which is no value of {}",
                param.name,
                kernel.name,
                taken.join(" or ")
            );
            Err(Error::new(ErrorKind::Argument, what, ""))
        }
    }
}

/// Arguments of the host with numbers as the kernel takes them.
fn complete(kernel: &Kernel, mut args: Vec<HostArg>) -> Result<Vec<HostArg>, Error> {
    args.resize(args.len().max(kernel.params.len()), HostArg::Absent);
    let dtype = |arg: &HostArg| match arg {
        HostArg::Tensor { dtype, .. } => Some(*dtype),
        HostArg::Scalar(_) | HostArg::Absent => None,
    };
    let tensors: Vec<Option<DType>> = args.iter().map(dtype).collect();
    let numbers = args.iter_mut().zip(&kernel.params).enumerate();
    for (i, (arg, _)) in numbers.filter(|(_, (_, p))| p.kind == ParamKind::Number) {
        let given = match arg {
            HostArg::Scalar(s) => Some(*s),
            HostArg::Absent => None,
            // That it is no number is reported later.
            HostArg::Tensor { .. } => continue,
        };
        *arg = fitted(kernel, i, given, &tensors)?.map_or(HostArg::Absent, HostArg::Scalar);
    }
    Ok(args)
}

/// A number as guards and grids see it.
pub fn number(s: Scalar) -> Number {
    match s.as_int() {
        // The bits of a u64: expressions compare them or keep the lowest.
        Some(i) => Number::Int(i as i64),
        None => match s.as_f64() {
            Some(f) => Number::Float(f),
            None => Number::Int(i64::from(s.bits() != 0)),
        },
    }
}

/// The messages of a kernel, for the code that shows them.
pub fn messages(variant: &Variant) -> Option<Vec<Message>> {
    let one = |m: &tk_bundle::Message| {
        Some(Message { text: m.text.clone(), kind: message_kind(&m.kind)?, loc: None })
    };
    variant.messages.iter().map(one).collect()
}

/// The kind of a message; `None` if it names no element type.
pub fn message_kind(kind: &MessageKind) -> Option<Kind> {
    let form = |f: &MessageForm| {
        Some(match f {
            MessageForm::Numbers { dtype, shape } => {
                Form::Numbers { dtype: DType::parse(dtype)?, shape: shape.clone() }
            }
            MessageForm::Pointers { bytes, shape } => Form::Pointers { bytes: *bytes, shape: shape.clone() },
            MessageForm::View { bytes, rank } => Form::View { bytes: *bytes, rank: *rank },
        })
    };
    Some(match kind {
        MessageKind::Print(forms) => Kind::Print(forms.iter().map(form).collect::<Option<_>>()?),
        MessageKind::Assert(shape) => Kind::Assert(shape.clone()),
    })
}

/// Runs a kernel on the CPU. Gives the arrays that it may change, by name, and what it printed. `named` are compile-time
/// parameters by name.
pub fn run(
    bundle: &Bundle,
    name: &str,
    values: Vec<Value>,
    named: &[(&str, &str)],
) -> Result<(Vec<(String, Array)>, String), Error> {
    let (_, kernel) = kernel(bundle, name)?;
    let hosts = complete(kernel, values.iter().map(host).collect())?;
    let names: Vec<Option<&str>> = hosts.iter().map(dtype_name).collect();
    let arguments: Vec<Argument<'_>> = hosts.iter().zip(&names).map(|(h, d)| argument(h, *d, 0)).collect();
    let targets: Vec<&str> = kernel.variants.iter().map(|v| v.target.as_str()).collect();
    let device = tk_sema::contract::Device::default();
    let facts = Facts {
        args: &arguments,
        given: &given(kernel, named)?,
        targets: &targets,
        sms: device.sms,
        shared_bytes: device.smem,
    };
    let chosen = kernel.choose(&facts)?;
    let (module, entry) = portable(bundle, chosen.variant)?;
    let (memory, mut outputs, mut placed) = (Memory::new(), vec![], vec![]);
    for ((param, value), host) in kernel.params.iter().zip(pad(values, hosts.len())).zip(&hosts) {
        let (argument, tensors) = crate::run::place(value, &memory);
        let writes = match (param.table, param.kind) {
            (Some(table), _) => table.mutable,
            (None, ParamKind::View { mutable, .. } | ParamKind::Pointer { mutable }) => mutable,
            (None, ParamKind::Number) => false,
        };
        let named = |o: Output| (format!("{}{}", param.name, o.entry), o);
        outputs.extend(tensors.into_iter().filter(|_| writes).map(named));
        match (host, argument.place, param.kind) {
            (HostArg::Scalar(s), ..) => placed.push(Arg::Scalar(*s)),
            (HostArg::Tensor { .. }, Some(Arg::View { buffer, offset, .. }), ParamKind::Pointer { .. }) => {
                placed.push(Arg::Ptr { buffer, offset });
            }
            (HostArg::Tensor { .. }, Some(view), _) => placed.push(view),
            (HostArg::Tensor { .. }, None, _) | (HostArg::Absent, ..) => {}
        }
    }
    for s in &chosen.variant.scratch {
        let bytes = scratch_bytes(s, &facts)?;
        crate::room::check(Some(bytes))
            .map_err(|what| Error::new(ErrorKind::Grid, format!("a workspace {what}"), ""))?;
        let buffer = if s.zeroed { memory.alloc(vec![0; bytes]) } else { memory.alloc_unwritten(bytes) };
        placed.push(Arg::Ptr { buffer, offset: 0 });
    }
    let printed = Printed::default();
    let options = Options { printed: printed.clone(), ..Options::default() };
    if !chosen.grid.contains(&0) {
        tk_interp::launch(&module, entry, &placed, chosen.grid, &memory, &options).map_err(|fault| {
            Error::new(ErrorKind::Kernel, format!("kernel `{name}` failed: {}", fault.message), "")
        })?;
    }
    let read = |(name, o): (String, Output)| {
        let bytes = memory.read(o.buffer).unwrap_or_default();
        (name, Array { dtype: o.dtype, shape: o.shape, bytes })
    };
    Ok((outputs.into_iter().map(read).collect(), printed.take()))
}

fn pad(mut values: Vec<Value>, count: usize) -> Vec<Value> {
    values.resize(values.len().max(count), Value::Absent);
    values
}

/// The element type of an argument.
pub fn dtype_name(host: &HostArg) -> Option<&'static str> {
    match host {
        HostArg::Tensor { dtype, .. } => Some(dtype.name()),
        HostArg::Scalar(s) => Some(s.dtype().name()),
        HostArg::Absent => None,
    }
}

/// An argument as the bundle sees it.
pub fn argument<'a>(host: &'a HostArg, dtype: Option<&'a str>, address: u64) -> Argument<'a> {
    match (host, dtype) {
        (HostArg::Tensor { shape, strides, .. }, Some(dtype)) => {
            Argument::Tensor { address, dtype, shape, strides: Some(strides) }
        }
        (HostArg::Scalar(s), Some(dtype)) => Argument::Number { dtype, value: number(*s) },
        (HostArg::Tensor { .. } | HostArg::Scalar(_) | HostArg::Absent, _) => Argument::Absent,
    }
}

/// The bytes of a workspace in a launch.
pub fn scratch_bytes(s: &tk_bundle::Scratch, facts: &Facts<'_>) -> Result<usize, Error> {
    let count = s.count.int(facts).ok().and_then(|n| usize::try_from(n).ok());
    let bytes = count.and_then(|n| n.checked_mul(s.element_bytes as usize));
    bytes.ok_or_else(|| Error::new(ErrorKind::Grid, "a workspace has no size for these arguments", ""))
}

/// The tile IR of a variant.
fn portable(bundle: &Bundle, variant: &Variant) -> Result<(TileModule, FuncId), Error> {
    let wrong = |what: String| {
        Error::new(
            ErrorKind::Bundle,
            format!("the tile IR of this bundle cannot be read: {what}"),
            "build it again",
        )
    };
    portable_of(&bundle.blob(&variant.tile)?).map_err(wrong)
}

/// The tile IR of a text, and its kernel. The error is what is wrong.
pub fn portable_of(text: &[u8]) -> Result<(TileModule, FuncId), String> {
    let source = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let module: Module = text::parse(source).map_err(|e| e.to_string())?;
    let module = TileModule::new(module).map_err(|e| e.to_string())?;
    let kernel = module.funcs.iter().find(|(_, f)| f.kind == FuncKind::Kernel).map(|(id, _)| id);
    let kernel = kernel.ok_or("it has no kernel")?;
    Ok((module, kernel))
}
