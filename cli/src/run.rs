//! `tk run FILE[::KERNEL] name=VALUE..`: reads the arguments, launches the kernel, writes or shows the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tk_ops::{Buf, DTypeSet, Scalar};
use tk_runtime::files::{reason, write_all};
use tk_runtime::npy::{Array, to_bytes};
use tk_runtime::{Session, Value, entry_types, wanted};
use tk_sema::contract::{HostParam, SetValue, parameters};
use tk_sema::hir::FnId;

use crate::args::{DeviceName, RunArgs};
use crate::input::Inputs;
use crate::report::{self, Line};
use crate::suggest::hint;
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{device, front, value};

/// Elements of an array that the summary shows.
const SHOWN: usize = 8;

/// Runs a kernel.
pub fn run(terminal: &Terminal, args: &RunArgs) -> Outcome {
    let (path, name) = front::split_target(&args.target);
    let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &args.sets)?;
    front::report(terminal, &checked)?;
    if args.checked && args.device != DeviceName::Cpu {
        return Err(Failure::Sentence("--checked runs only on `cpu`".into()));
    }
    let device = device::open(args.device, &checked.sources, path).map_err(Failure::Sentence)?;
    let session = Session::new(checked).with_timeout(args.timeout).checked_mode(args.checked);
    let session = match &device {
        Some(device) => session.on(Arc::clone(device)),
        None => session,
    };
    let session = if args.dump.is_some() { session.dumping() } else { session };
    let Prepared { kernel, sets, values } = prepare(&session, path, name, &args.args, &args.sets)?;
    let outs = outputs(&session, kernel, &parameters(&session.checked().hir, kernel), &args.outs)?;
    session.room(kernel, &values)?;
    let result = session.run(kernel, values, &sets);
    let printed = session.printed();
    if !printed.is_empty() {
        terminal.printed(&printed)?;
    }
    if let Some(folder) = &args.dump {
        dump(folder, &session.dumps())?;
    }
    let results = match result {
        Ok(results) => results,
        Err(wrong) => return front::refused(terminal, &session, &wrong),
    };
    terminal.diagnostics(&session.checked().sources, &results.notes)?;
    if let Some(time) = device.and_then(|d| d.last_time()) {
        let name = &session.checked().hir.func(kernel).name;
        terminal.note(&format!(
            "`{name}` took {:.4} ms on the device; `tk bench` measures it",
            time.as_secs_f64() * 1e3
        ))?;
    }
    if outs.is_empty() {
        return results.arrays.iter().try_for_each(|(name, array)| summary(terminal, name, array));
    }
    let array = |name: &str| results.arrays.iter().find(|(n, _)| n == name).map(|(_, a)| a);
    let mut files = vec![];
    for (name, path) in outs {
        // An optional array that was left out has no contents.
        let array =
            array(&name).ok_or_else(|| format!("`{name}` was not given, so there is nothing to write"))?;
        files.push((path, to_bytes(array)));
    }
    Ok(write_all(&files)?)
}

/// A launch that the command line describes.
pub struct Prepared {
    /// The kernel.
    pub kernel: FnId,
    /// What is given by name.
    pub sets: Vec<(String, SetValue)>,
    /// The arguments in the order of the parameters.
    pub values: Vec<Value>,
}

/// Reads the arguments of a launch.
pub fn prepare(
    session: &Session,
    path: &str,
    name: Option<&str>,
    args: &[String],
    sets: &[String],
) -> Result<Prepared, Failure> {
    let kernel = choose(session, path, name)?;
    let sets = front::sets(sets)?;
    let params: Vec<HostParam> = parameters(&session.checked().hir, kernel);
    let given = by_name(session, kernel, &params, args)?;
    let values = values(session, kernel, &params, &given, &sets)?;
    Ok(Prepared { kernel, sets, values })
}

/// The kernel that is meant.
pub fn choose(session: &Session, path: &str, name: Option<&str>) -> Result<FnId, Failure> {
    let all: Vec<(FnId, &str)> = session.kernels().map(|(id, f)| (id, f.name.as_str())).collect();
    let names: Vec<&str> = all.iter().map(|(_, n)| *n).collect();
    let sentence = match (name, all.as_slice()) {
        (_, []) => format!("{path} has no kernel"),
        (None, [(only, _)]) => return Ok(*only),
        (None, _) => {
            let targets: Vec<String> = names.iter().map(|n| format!("{path}::{n}")).collect();
            format!("{path} has several kernels; choose one: {}", targets.join(", "))
        }
        (Some(name), _) => match all.iter().find(|(_, n)| *n == name) {
            Some((id, _)) => return Ok(*id),
            None => format!("{path} has no kernel `{name}`{}", hint(name, &names)),
        },
    };
    Err(Failure::Sentence(sentence))
}

/// The arguments by name: every name is a parameter, and occurs once.
fn by_name<'a>(
    session: &Session,
    kernel: FnId,
    params: &[HostParam],
    args: &'a [String],
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let kernel_name = &session.checked().hir.func(kernel).name;
    let mut given: Vec<(&str, &str)> = vec![];
    for text in args {
        let (name, text) = value::split(text)?;
        match params.iter().find(|p| p.name == name) {
            Some(p) if p.compile_time => {
                return Err(format!("`{name}` is a compile-time parameter; give it as --set {name}={text}"));
            }
            Some(_) => {}
            None => {
                let names: Vec<&str> =
                    params.iter().filter(|p| !p.compile_time).map(|p| p.name.as_str()).collect();
                return Err(format!(
                    "kernel `{kernel_name}` has no parameter `{name}`{}",
                    hint(name, &names)
                ));
            }
        }
        if given.iter().any(|(n, _)| *n == name) {
            return Err(format!("`{name}` is given twice"));
        }
        given.push((name, text));
    }
    let missing = params.iter().filter(|p| !p.compile_time && !p.optional);
    let missing: Vec<String> = missing
        .filter(|p| !given.iter().any(|(n, _)| *n == p.name))
        .map(|p| format!("`{}` ({})", p.name, p.ty))
        .collect();
    if missing.is_empty() {
        return Ok(given);
    }
    Err(format!("kernel `{kernel_name}` needs a value for {}", missing.join(", ")))
}

/// The destinations of results: every name is an array that the kernel may change, and occurs once.
fn outputs(
    session: &Session,
    kernel: FnId,
    params: &[HostParam],
    outs: &[String],
) -> Result<Vec<(String, PathBuf)>, String> {
    let kernel = &session.checked().hir.func(kernel).name;
    let mut out: Vec<(String, PathBuf)> = vec![];
    for text in outs {
        let names: Vec<&str> = params.iter().filter(|p| p.mutable).map(|p| p.name.as_str()).collect();
        let (name, path) =
            value::split_output(text).map_err(|why| unnamed_output(text, &names).unwrap_or(why))?;
        let base = name.split('[').next().unwrap_or(name);
        match params.iter().find(|p| p.name == base) {
            Some(HostParam { table: Some(table), .. }) if table.mutable && base != name => {}
            Some(HostParam { table: Some(table), .. }) if table.mutable => {
                return Err(format!(
                    "--out {name}: `{name}` is a table; write an entry of it: {name}[0]={path}"
                ));
            }
            Some(p) if p.mutable && p.table.is_none() && base == name => {}
            Some(p) => {
                let ty = &p.ty;
                return Err(format!(
                    "--out {name}: `{name}` is `{ty}`, which kernel `{kernel}` cannot change: not `mut`"
                ));
            }
            None => {
                return Err(format!(
                    "--out {name}: kernel `{kernel}` has no parameter `{name}`{}",
                    hint(name, &names)
                ));
            }
        }
        if out.iter().any(|(n, _)| n == name) {
            return Err(format!("--out: `{name}` is written twice"));
        }
        if out.iter().any(|(_, p)| same_file(p, Path::new(path))) {
            return Err(format!("--out: {path} is written twice"));
        }
        out.push((name.to_string(), PathBuf::from(path)));
    }
    Ok(out)
}

/// What is said of a destination without the name of an array: which it could be.
fn unnamed_output(text: &str, names: &[&str]) -> Option<String> {
    let first = names.first().filter(|_| !text.contains('='))?;
    let others = match names.len() {
        1 => String::new(),
        _ => format!("; the kernel can change {}", names.join(", ")),
    };
    Some(format!("--out {text}: the array is named too, as in `--out {first}={text}`{others}"))
}

/// The values in the order of the parameters. What is left out is optional or has a default.
fn values(
    session: &Session,
    kernel: FnId,
    params: &[HostParam],
    given: &[(&str, &str)],
    sets: &[(String, SetValue)],
) -> Result<Vec<Value>, String> {
    let params: Vec<&HostParam> = params.iter().filter(|p| !p.compile_time).collect();
    let is_given = |p: &HostParam| given.iter().any(|(n, _)| *n == p.name);
    let count = params.iter().rposition(|p| p.tensor || is_given(p)).map_or(0, |last| last + 1);
    let mut out = vec![];
    for p in params.into_iter().take(count) {
        let Some((name, text)) = given.iter().find(|(n, _)| *n == p.name) else {
            out.push(Value::Absent);
            continue;
        };
        let hir = &session.checked().hir;
        out.push(match p.table {
            Some(table) if *text != "none" => {
                let types = entry_types(hir, p, sets).unwrap_or(DTypeSet::ANY);
                value::parse_table(name, text, table.depth, types)?
            }
            Some(_) | None => value::parse(name, text, wanted(hir, kernel, name, sets))?,
        });
    }
    Ok(out)
}

/// `z  f32[1000]  0.5, 1.0, ..`
fn summary(terminal: &Terminal, name: &str, array: &Array) -> Outcome {
    let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
    let size = array.dtype.bytes();
    let first = array.bytes.get(..(SHOWN * size).min(array.bytes.len())).unwrap_or_default();
    let shown = Buf::from_le_bytes(array.dtype, first).unwrap_or(Buf::empty(array.dtype));
    // The bits of a NaN do not matter here.
    let text =
        |s: Scalar| if s.as_f64().is_some_and(f64::is_nan) { "nan".to_string() } else { s.to_string() };
    let mut values: Vec<String> = (0..shown.len()).map(|i| text(shown.get(i))).collect();
    if terminal.is_json() {
        let (dtype, shape) = (array.dtype.name(), array.shape.as_slice());
        return terminal.object(&Line::Array(report::Array { name, dtype, shape, first: &values }));
    }
    if array.bytes.len() > first.len() {
        values.push("..".into());
    }
    let line = format!("{name}  {}[{}]  {}", array.dtype, shape.join(", "), values.join(", "));
    terminal.data(&format!("{}\n", line.trim_end()))
}

/// Writes the tile IR after each pass.
fn dump(folder: &std::path::Path, dumps: &[(String, String)]) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot create {}: {}", folder.display(), reason(&e)))?;
    let files: Vec<(PathBuf, Vec<u8>)> =
        dumps.iter().map(|(name, text)| (folder.join(name), text.clone().into_bytes())).collect();
    write_all(&files)
}

/// Returns true if two paths name one file, which need not exist yet.
fn same_file(a: &Path, b: &Path) -> bool {
    let real = |p: &Path| {
        let folder = p.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        p.canonicalize()
            .or_else(|_| folder.canonicalize().map(|f| f.join(p.file_name().unwrap_or_default())))
            .ok()
    };
    a == b || real(a).is_some_and(|p| real(b) == Some(p))
}
