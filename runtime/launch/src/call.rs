//! Converts the arguments of a launch to the machine parameters of a kernel.
//!
//! Accepts any arguments. Guarantees values in the order of [`crate::compile::params`], or a fault that names the
//! argument.

use tk_interp::{Arg, BufferId, Fault};
use tk_syntax::codes;
use tk_tile::{ElemType, Func, Type};

use crate::compile::{ParamKind, flatten};
use crate::gpu::Args;
use crate::session::{Compiled, element_size};

/// The address of an element of a buffer: the buffer, the position of the element, the bytes of one.
pub type Addresses<'a> = dyn Fn(BufferId, i64, usize) -> Option<u64> + 'a;

/// A kernel and its arguments.
pub struct Call<'a> {
    func: &'a Func,
    types: Vec<&'a Type>,
    args: &'a [Arg],
}

impl<'a> Call<'a> {
    /// Fits the arguments to the parameters.
    pub fn new(compiled: &'a Compiled, args: &'a [Arg]) -> Result<Call<'a>, Fault> {
        let module = &compiled.module;
        let wrong = |what: &str| Fault::new(codes::INTERNAL.0, format!("internal error in a launch: {what}"));
        let func = module.funcs.get(compiled.entry).ok_or_else(|| wrong("there is no kernel"))?;
        let params = func.blocks.get(func.body).map(|b| b.args.as_slice()).unwrap_or_default();
        if params.len() != args.len() {
            return Err(wrong("the arguments do not fit the kernel"));
        }
        let types = params.iter().map(|v| module.types.get(func.ty(*v))).collect();
        Ok(Call { func, types, args })
    }

    /// The parameters and their arguments.
    pub fn args(&self) -> impl Iterator<Item = (&'a Type, &'a Arg)> {
        self.types.iter().copied().zip(self.args)
    }

    fn name(&self, i: usize) -> &str {
        self.func.param_names.get(i).map_or("", String::as_str)
    }

    /// The fault for an argument whose buffer was freed.
    pub fn freed(&self, i: usize) -> Fault {
        let message =
            format!("argument `{}` of kernel `{}`: its buffer was freed", self.name(i), self.func.name);
        Fault::new(codes::LAUNCH_ARGS.0, message)
    }

    /// The machine parameters and their values; `there` says where buffers are.
    pub fn pack(&self, there: &Addresses<'_>) -> Result<(Vec<ParamKind>, Args), Fault> {
        let (mut kinds, mut values) = (vec![], Args::new());
        for (i, (ty, arg)) in self.args().enumerate() {
            let fits = flatten(ty, &mut kinds).is_some() && pack(ty, arg, there, &mut values).is_some();
            if !fits {
                let name = self.name(i);
                let message = format!("argument `{name}` of kernel `{}` is not a `{ty}`", self.func.name);
                return Err(Fault::new(codes::LAUNCH_DTYPE.0, message));
            }
        }
        Ok((kinds, values))
    }

    /// The arguments in the words of the source: `the grid [4, 1, 1], x: f32[128, 64], n = 8192`.
    pub fn describe(&self, grid: [u32; 3]) -> String {
        let mut out = format!("the grid {grid:?}");
        for (i, (ty, arg)) in self.args().enumerate() {
            let name = self.name(i);
            out.push_str(&match arg {
                Arg::Scalar(s) => format!(", {name} = {s}"),
                Arg::Null => format!(", {name} = null"),
                Arg::Ptr { offset: 0, .. } => format!(", {name}: {ty}"),
                Arg::Ptr { offset, .. } => format!(", {name}: {ty} at element {offset}"),
                Arg::View { shape, .. } => format!(", {name}: {}{shape:?}", ty.elem()),
            });
        }
        out
    }
}

/// Appends the values of the machine parameters of one argument; `None` if it does not fit the type.
fn pack(ty: &Type, arg: &Arg, there: &Addresses<'_>, out: &mut Args) -> Option<()> {
    match (ty, arg) {
        (Type::Tile { elem: ElemType::Scalar(d), .. }, Arg::Scalar(s)) if s.dtype() == *d => {
            out.push_scalar(*s);
        }
        (Type::Tile { elem: ElemType::Ptr { .. }, .. }, Arg::Null) => {
            out.push_ptr(0);
        }
        (Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. }, Arg::Ptr { buffer, offset }) => {
            out.push_ptr(there(*buffer, *offset, element_size(pointee))?);
        }
        (Type::View { elem, wide, .. }, Arg::View { buffer, offset, shape, strides }) => {
            out.push_ptr(there(*buffer, *offset, element_size(elem))?);
            for extent in shape {
                match i32::try_from(*extent) {
                    _ if *wide => out.push_i64(*extent),
                    Ok(extent) => out.push_i32(extent),
                    Err(_) => return None,
                };
            }
            strides.iter().for_each(|s| {
                out.push_i64(*s);
            });
        }
        (Type::Tile { .. } | Type::View { .. }, _) => return None,
    }
    Some(())
}
