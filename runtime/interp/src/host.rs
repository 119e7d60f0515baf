//! Host operations of `test` blocks, and [`Host`], the interface out of the interpreter.

use std::sync::Arc;

use tk_ops::buf::Buf;
use tk_ops::{DType, HostOp, philox, with_buf};
use tk_tile::{Attr, ElemType, Type};

use crate::code::Step;
use crate::exec::{Args, contiguous, elem_size, load_all, tile_bytes};
use crate::fault::Fault;
use crate::launch::Arg;
use crate::machine::{Machine, Region};
use crate::memory::{BufferId, Memory};
use crate::space::Space;
use crate::value::{Pointer, Value, View};

/// The services that a test needs from outside.
pub trait Host {
    /// Launches a kernel by name, with compile-time arguments as text (`A = 1, T = f16`). Each argument comes with its
    /// element type, which a view does not carry; an absent optional is `None`.
    fn launch(
        &self,
        kernel: &str,
        cargs: &str,
        args: Vec<Option<(Arg, ElemType)>>,
        memory: &Memory,
    ) -> Result<(), Fault>;
    /// The contents of an `.npy` file: element type, extents, elements in row-major order, lowest byte first.
    fn npy(&self, path: &str) -> Result<(DType, Vec<usize>, Vec<u8>), String>;
    /// Shows text to the user.
    fn print(&self, text: &str);
    /// Fails if there is not that much memory: why, after the name of what needs it. The system may hand out memory that
    /// it does not have, and end the program when it is used.
    fn room(&self, bytes: usize) -> Result<(), String>;
}

/// The host of a running test.
#[derive(Clone, Copy)]
pub(crate) struct HostContext<'c> {
    pub host: &'c dyn Host,
    pub memory: &'c Memory,
}

impl<'c, 'm> Machine<'c, 'm> {
    /// Runs a host operation.
    pub(crate) fn host_step(&mut self, op: HostOp, step: &'c Step<'m>) -> Result<(), Fault> {
        let host =
            self.host.ok_or_else(|| Fault::internal(format_args!("`{}` outside of a test", op.name())))?;
        if op == HostOp::ExpectError {
            return self.enter(step, 0, Region::Expect, vec![]);
        }
        let space = Arc::clone(&self.context.space);
        let mut args = Args::new(step, &mut self.frame()?.slots);
        match op {
            HostOp::Buffer | HostOp::Empty | HostOp::Pointers => {
                let (view, id) = match op {
                    HostOp::Buffer => buffer(&mut args, &space, host.memory)?,
                    HostOp::Pointers => pointers(&mut args, &space, host.memory)?,
                    _empty => empty(&args, host)?,
                };
                let space = Arc::make_mut(&mut self.context.space);
                space.push(host.memory, id);
                let base =
                    space.pointer(id).ok_or_else(|| Fault::run("the buffer was freed while the test ran"))?;
                Args::new(step, &mut self.frame()?.slots).put(0, Value::View(Arc::new(View { base, ..view })))
            }
            HostOp::Tile => tile(&mut args, &space),
            HostOp::Launch => launch(&mut args, &space, host),
            HostOp::Randn => {
                let (dtype, n) = numbers(&args)?;
                let seed = args.int("seed")? as u64;
                args.put(0, Value::tile(Buf::from_f64(dtype, &philox::randn(seed, n))))
            }
            HostOp::Uniform => {
                let (dtype, n) = numbers(&args)?;
                let seed = args.int("seed")? as u64;
                let (low, high) = (args.take(0)?.scalar()?, args.take(1)?.scalar()?);
                args.put(0, Value::tile(philox::uniform_between(seed, low, high, dtype, n)))
            }
            HostOp::Npy => npy(&mut args, host),
            HostOp::AssertClose => crate::compare::assert_close(&mut args),
            HostOp::ExpectError => Ok(()),
        }
    }
}

/// Element type and count of the result.
fn numbers(args: &Args<'_, '_>) -> Result<(DType, usize), Fault> {
    let def = args.def(0)?;
    Ok((def.ty.dtype().ok_or_else(|| Fault::internal("a result is not of numbers"))?, def.count))
}

fn extents(ty: &Type) -> Vec<i64> {
    ty.shape().unwrap_or_default().iter().map(|d| i64::from(*d)).collect()
}

/// `host_buffer`: the view still lacks its base.
fn buffer(args: &mut Args<'_, '_>, space: &Space, memory: &Memory) -> Result<(View, BufferId), Fault> {
    let ty = args.operand(0)?.ty;
    let bytes = tile_bytes(ty.elem(), args.take(0)?, ty.count(), space)?;
    Ok((contiguous(Pointer::NULL, extents(ty)), memory.alloc(bytes)))
}

/// `host_pointers`: likewise. Memory holds addresses of 64 bits, which lead back to the buffers.
fn pointers(args: &mut Args<'_, '_>, space: &Space, memory: &Memory) -> Result<(View, BufferId), Fault> {
    let mut bytes = vec![];
    for i in 0..args.len() {
        let size = elem_size(args.operand(i)?.ty.elem());
        bytes.extend(space.address(&args.take(i)?.view()?.base, size).to_le_bytes());
    }
    Ok((contiguous(Pointer::NULL, vec![args.len() as i64]), memory.alloc(bytes)))
}

/// Bytes of a buffer for which the system is asked first: filling them takes longer than asking.
const LARGE: usize = 1 << 20;

/// `host_empty`: likewise.
fn empty(args: &Args<'_, '_>, host: HostContext<'_>) -> Result<(View, BufferId), Fault> {
    let extents = args.ints("shape")?;
    let size = elem_size(args.def(0)?.ty.elem());
    // More bytes than an address of this machine reaches do not fit either.
    let bytes = extents.iter().map(|d| i128::from(*d)).try_fold(size as i128, i128::checked_mul);
    let bytes = bytes.and_then(|n| usize::try_from(n).ok());
    let refused =
        |why: String| Fault::run(format!("a tensor of shape {extents:?} does not fit in memory{why}"));
    if let Some(n) = bytes.filter(|n| *n >= LARGE) {
        host.host.room(n).map_err(|why| refused(format!(": it {why}")))?;
    }
    let id = bytes.and_then(|n| host.memory.try_alloc(n, false)).ok_or_else(|| refused(String::new()))?;
    Ok((contiguous(Pointer::NULL, extents.to_vec()), id))
}

fn tile(args: &mut Args<'_, '_>, space: &Space) -> Result<(), Fault> {
    let view = args.take(0)?.view()?;
    let ty = args.def(0)?.ty;
    let wanted = extents(ty);
    if wanted != view.shape {
        let message =
            format!("the buffer has shape {:?}, but a tile of shape {wanted:?} is read from it", view.shape);
        return Err(Fault::new("E0304", message));
    }
    args.put(0, load_all(&view, ty, space)?)
}

fn launch(args: &mut Args<'_, '_>, space: &Space, host: HostContext<'_>) -> Result<(), Fault> {
    let step = args.step;
    let kernel = step.attrs.str("callee").unwrap_or_default();
    let cargs = step.attrs.str("cargs").unwrap_or_default();
    let absent = step.attrs.ints("absent").unwrap_or_default();
    let mut out = Vec::with_capacity(args.len());
    for i in 0..args.len() {
        let elem = args.operand(i)?.ty.elem();
        let value = args.take(i)?;
        let is_absent = absent.contains(&(i as i64));
        out.push(if is_absent { None } else { Some((to_arg(value, elem, space)?, elem.clone())) });
    }
    host.host.launch(kernel, cargs, out, host.memory)
}

fn to_arg(value: Value, elem: &ElemType, space: &Space) -> Result<Arg, Fault> {
    let size = match (&value, elem) {
        (Value::Ptr(_), ElemType::Ptr { pointee, .. }) => elem_size(pointee),
        (_, elem) => elem_size(elem),
    } as i64;
    let place = |p: &Pointer| match space.buffer(p) {
        Some(buffer) if p.disp % size == 0 => Ok((buffer, p.offset.wrapping_add(p.disp / size))),
        Some(_) => Err(Fault::run("a launch argument points between two elements")),
        None => Err(Fault::run("a launch argument points to no buffer")),
    };
    match value {
        Value::Splat(s) => Ok(Arg::Scalar(s)),
        Value::Ptr(p) if p == Pointer::NULL => Ok(Arg::Null),
        Value::Ptr(p) => place(&p).map(|(buffer, offset)| Arg::Ptr { buffer, offset }),
        Value::View(v) => {
            let (buffer, offset) = place(&v.base)?;
            Ok(Arg::View { buffer, offset, shape: v.shape.clone(), strides: v.strides.clone() })
        }
        Value::Empty
        | Value::Tile(_)
        | Value::Ramp(_)
        | Value::Run(..)
        | Value::Offsets(..)
        | Value::Lanes(_) => Err(Fault::new(
            "E0701",
            format!("a tile of `{elem}` cannot be passed to a kernel; put it in a buffer"),
        )),
    }
}

fn npy(args: &mut Args<'_, '_>, host: HostContext<'_>) -> Result<(), Fault> {
    let path = args.step.attrs.str("path").unwrap_or_default();
    let (dtype, shape, bytes) =
        host.host.npy(path).map_err(|e| Fault::new("E0003", format!("`{path}`: {e}")))?;
    let ty = args.def(0)?.ty;
    let wanted = numbers(args)?;
    if dtype != wanted.0 {
        return Err(Fault::new(
            "E0302",
            format!("`{path}` holds `{dtype}`, but `{}` is requested", wanted.0),
        ));
    }
    if !shape.iter().map(|d| *d as i64).eq(extents(ty)) {
        return Err(Fault::new(
            "E0304",
            format!("`{path}` has shape {shape:?}, but {:?} is requested", extents(ty)),
        ));
    }
    let buf = Buf::from_le_bytes(dtype, &bytes).filter(|b| with_buf!(b, v => v.len()) == wanted.1);
    let buf = buf.ok_or_else(|| Fault::new("E0003", format!("`{path}` is truncated")))?;
    args.put(0, Value::tile(buf))
}

/// A float attribute.
pub(crate) fn float_attr(args: &Args<'_, '_>, name: &str) -> f64 {
    match args.step.attrs.get(name) {
        Some(Attr::Scalar(s)) => s.as_f64().unwrap_or(0.0),
        Some(Attr::Int(_) | Attr::Bool(_) | Attr::Ints(_) | Attr::Str(_)) | None => 0.0,
    }
}
