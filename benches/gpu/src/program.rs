//! Compiles a source file of the checkout to kernels that can be launched.

use std::path::Path;
use std::sync::Arc;

use tk_driver::{Cache, Environment, Jit};
use tk_runtime::Session;
use tk_runtime::files::Files;
use tk_runtime::gpu::{Device, Launcher};
use tk_sema::Checked;
use tk_sema::contract::SetValue;
use tk_syntax::Diagnostic;

/// Compile-time parameters and options of a launch by name.
pub type Sets = Vec<(String, SetValue)>;

/// Sets of integers.
pub fn ints(values: &[(&str, usize)]) -> Sets {
    values.iter().map(|(name, v)| (name.to_string(), SetValue::Int(*v as i128))).collect()
}

/// Sets as one reads them: `BLOCK = 1024, warps = 4`.
pub fn shown(sets: &Sets) -> String {
    let one = |(name, value): &(String, SetValue)| format!("{name} = {value}");
    sets.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A checked file of the checkout. The error is its first one.
pub fn check(root: &Path, file: &str) -> Result<Checked, String> {
    let path = root.join(file);
    let files = Files { stdlib: Some(root.join("stdlib")).filter(|f| f.is_dir()) };
    let checked = tk_sema::check(&files, &path.to_string_lossy());
    match checked.diagnostics.iter().find(|d| d.is_error()) {
        Some(d) => Err(format!("{file}: {}", sentence(d))),
        None => Ok(checked),
    }
}

/// What launches the kernels of a file.
pub fn launcher(root: &Path, file: &str, device: &Device) -> Result<Launcher, String> {
    let checked = check(root, file)?;
    let environment = Environment::of_process(Some(&root.join(file)));
    let jit = Jit::new(checked.sources.clone(), environment, Cache::of_process());
    Launcher::new(Arc::new(Session::new(checked)), device.clone(), Arc::new(jit)).map_err(|e| e.to_string())
}

/// The first thing that is wrong.
pub fn first(wrong: &[Diagnostic]) -> String {
    wrong.iter().find(|d| d.is_error()).or(wrong.first()).map_or("it was refused".to_string(), sentence)
}

fn sentence(d: &Diagnostic) -> String {
    let notes: String = d.notes.iter().map(|note| format!("; {note}")).collect();
    format!("{}: {}{notes}", d.code, d.message)
}

/// Whether a launch would be accepted, with row-major tensors of these types and shapes: what can be said without a GPU.
#[cfg(test)]
pub fn accepted(
    file: &str,
    kernel: &str,
    tensors: &[Option<(tk_ops::DType, Vec<i64>)>],
    scalars: &[tk_ops::Scalar],
    sets: &Sets,
) -> Result<(), String> {
    use tk_sema::contract::{self, HostArg};
    let checked = check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), file)?;
    let found = contract::kernel_named(&checked.hir, kernel).ok_or("there is no such kernel")?;
    let tensor = |t: &Option<(tk_ops::DType, Vec<i64>)>| match t {
        Some((dtype, shape)) => {
            let strides = (0..shape.len()).map(|i| shape.iter().skip(i + 1).product()).collect();
            HostArg::Tensor { dtype: *dtype, shape: shape.clone(), strides }
        }
        None => HostArg::Absent,
    };
    let scalars = scalars.iter().map(|s| HostArg::Scalar(*s));
    let arguments: Vec<HostArg> = tensors.iter().map(tensor).chain(scalars).collect();
    match contract::plan(&checked.hir, found, &arguments, sets) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("{kernel} ({}): {e}", shown(sets))),
    }
}
