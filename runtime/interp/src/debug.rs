//! Running under a debugger: a [`Debugger`] is told when statements begin, values become NaN, kernels are launched and
//! runs fail, and may look at the variables of every function that is running.
//!
//! What runs waits until the debugger returns. Programs run on one thread, one after the other where they do not wait for
//! each other, and no register is used again, so that every value can be looked at.

use std::fmt;
use std::sync::Arc;

use tk_ops::{DType, Scalar};
use tk_tile::debug::{DebugFunc, DebugInfo, DebugValue, Statement};
use tk_tile::{ElemType, Loc, Type};

use crate::code::FuncCode;
use crate::exec::{elem_size, load_all};
use crate::fault::Fault;
use crate::print;
use crate::space::Space;
use crate::value::{NOWHERE, Value, View};

/// The text of an element that nothing has been written to.
pub const UNWRITTEN: &str = "uninitialized";

/// Elements of a view that are read to be shown.
const MOST: i64 = 1 << 22;

/// Somebody who looks at what runs. An error ends the run.
pub trait Debugger: Send + Sync {
    /// Whether [`Debugger::interrupt`] is wanted; asked before every instruction.
    fn interrupts(&self) -> bool;
    /// Something runs here, in the middle of a statement.
    fn interrupt(&self, at: &Stopped<'_>) -> Result<(), Fault>;
    /// Whether it may stop at a statement of a lambda that is about to run: if so, that runs element by element.
    fn may_stop(&self, statement: &Statement) -> bool;
    /// A statement begins.
    fn statement(&self, at: &Stopped<'_>) -> Result<(), Fault>;
    /// A function has returned in the middle of a statement of its caller, which goes on.
    fn returned(&self, at: &Stopped<'_>) -> Result<(), Fault>;
    /// Whether [`Debugger::nan`] is wanted, which takes time.
    fn watches_nan(&self) -> bool;
    /// An instruction gave a NaN; none of its operands was one.
    fn nan(&self, at: &Stopped<'_>) -> Result<(), Fault>;
    /// A test launches a kernel here; `expected` says whether the test expects an error.
    fn launch(&self, at: &Stopped<'_>, expected: bool);
    /// That kernel has ended.
    fn launched(&self);
    /// What runs ends with a fault here.
    fn fault(&self, at: &Stopped<'_>, fault: &Fault);
}

/// A debugger, and what it needs of the program.
#[derive(Clone)]
pub struct Debugging {
    /// The debugger.
    pub debugger: Arc<dyn Debugger>,
    /// Of the module that runs, as it was lowered.
    pub info: Arc<DebugInfo>,
}

impl fmt::Debug for Debugging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debugging").field("info", &self.info).finish_non_exhaustive()
    }
}

/// Something that stands still.
pub struct Stopped<'a> {
    /// The program; none in a test.
    pub program: Option<[u32; 3]>,
    /// The grid of the launch.
    pub grid: [u32; 3],
    /// The functions that are running, the innermost first.
    pub frames: Vec<Frame<'a>>,
}

/// A function that is running.
pub struct Frame<'a> {
    /// What is known of the function.
    pub func: Option<&'a DebugFunc>,
    /// The statement that is running, or begins.
    pub statement: Option<&'a Statement>,
    /// The place of the instruction that runs.
    pub loc: Option<Loc>,
    pub(crate) is_test: bool,
    pub(crate) code: &'a FuncCode<'a>,
    pub(crate) slots: &'a [Value],
    pub(crate) space: &'a Arc<Space>,
}

/// What a variable holds.
#[derive(Clone)]
pub enum Held {
    /// A tile, a pointer or a view.
    Data(Data),
    /// What only the compiler knows.
    Known(String),
    /// Nothing yet, or an optional that is absent.
    Nothing,
    /// The parts of a tuple or struct.
    Parts(Vec<(String, Held)>),
}

/// A tile, a pointer or a view.
#[derive(Clone)]
pub struct Data {
    value: Value,
    ty: Type,
    space: Arc<Space>,
    /// Of the contents of a view, the elements that nothing has been written to; none if there are none.
    unwritten: Option<Arc<Vec<bool>>>,
}

impl Frame<'_> {
    /// The name of the function.
    pub fn name(&self) -> &str {
        self.func.map_or(self.code.name, |f| &f.name)
    }

    /// Returns true if it is a test.
    pub fn is_test(&self) -> bool {
        self.is_test
    }

    /// The variables where a statement of this function begins. One that is assigned there has its old value.
    pub fn variables(&self, statement: &Statement) -> Vec<(String, Held)> {
        statement.variables.iter().map(|(name, value)| (name.clone(), self.held(value))).collect()
    }

    fn held(&self, value: &DebugValue) -> Held {
        match value {
            DebugValue::Value(id) => match self.code.values.get(id) {
                Some((slot, ty)) => {
                    let value = self.slots.get(*slot as usize).cloned().unwrap_or_default();
                    match value {
                        Value::Empty => Held::Nothing,
                        value => {
                            let (ty, space) = ((*ty).clone(), Arc::clone(self.space));
                            Held::Data(Data { value, ty, space, unwritten: None })
                        }
                    }
                }
                None => Held::Nothing,
            },
            DebugValue::Known(text) => Held::Known(text.clone()),
            DebugValue::Nothing => Held::Nothing,
            DebugValue::Parts(parts) => {
                Held::Parts(parts.iter().map(|(name, v)| (name.clone(), self.held(v))).collect())
            }
        }
    }
}

impl Data {
    /// The extents; none of a scalar, a pointer.
    pub fn shape(&self) -> Vec<i64> {
        match (&self.value, &self.ty) {
            (Value::View(v), _) => v.shape.clone(),
            (_, Type::Tile { shape, .. }) => shape.iter().map(|d| i64::from(*d)).collect(),
            (_, Type::View { .. }) => vec![],
        }
    }

    /// `f32[64, 64]`, `view f16[100, 4]`, `f32`.
    pub fn type_text(&self) -> String {
        let elem = self.ty.elem();
        let shape = self.shape();
        match &self.ty {
            Type::View { mutable, .. } => {
                format!("{}view {elem}{shape:?}", if *mutable { "mut " } else { "" })
            }
            Type::Tile { .. } if shape.is_empty() => elem.to_string(),
            Type::Tile { .. } => format!("{elem}{shape:?}"),
        }
    }

    /// The text that `print` shows; of a view its buffer, offset, extents and strides.
    pub fn text(&self) -> String {
        match &self.value {
            Value::View(v) => {
                let size = elem_size(self.ty.elem());
                let place = print::pointer(&v.base, size, &self.space);
                format!("buffer {place}, strides {:?}", v.strides)
            }
            value => print::show(value, &self.ty, &self.space).unwrap_or_else(|fault| fault.message),
        }
    }

    /// The type of the elements; none of pointers.
    pub fn dtype(&self) -> Option<DType> {
        self.ty.dtype()
    }

    /// The text of the element at a place in row-major order.
    pub fn element(&self, at: usize) -> String {
        if !self.is_written(at) {
            return UNWRITTEN.to_string();
        }
        let scalar = self.value.lane(at).and_then(|v| print::element(&v, &self.ty, &self.space));
        scalar.unwrap_or_else(|fault| fault.message)
    }

    /// The number at a place in row-major order; a bool counts 0 or 1, a pointer has none.
    pub fn number(&self, at: usize) -> Option<f64> {
        let scalar = self.scalar(at)?;
        scalar
            .as_f64()
            .or_else(|| scalar.as_int().map(|i| i as f64))
            .or_else(|| scalar.as_bool().map(f64::from))
    }

    /// Returns true unless nothing has been written to the element at a place in row-major order.
    pub fn is_written(&self, at: usize) -> bool {
        !self.unwritten.as_ref().is_some_and(|all| all.get(at).copied().unwrap_or(false))
    }

    fn scalar(&self, at: usize) -> Option<Scalar> {
        let lane = if self.is_written(at) { self.value.lane(at).ok()? } else { return None };
        lane.scalar().ok()
    }

    /// The integer at a place in row-major order; none of other elements.
    pub fn integer(&self, at: usize) -> Option<i128> {
        self.scalar(at)?.as_int()
    }

    /// Returns true if it is a view: its elements are those of [`Data::contents`].
    pub fn is_view(&self) -> bool {
        matches!(self.value, Value::View(_))
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.shape().iter().map(|d| usize::try_from(*d).unwrap_or(0)).product()
    }

    /// The strides of a view; none of anything else.
    pub fn strides(&self) -> Option<Vec<i64>> {
        if let Value::View(v) = &self.value { Some(v.strides.clone()) } else { None }
    }

    /// The elements of a view; none of anything else, of a large one, and of one that leads out of its buffer.
    pub fn contents(&self) -> Option<Data> {
        let Value::View(view) = &self.value else { return None };
        let count = view.shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d))?;
        if !(1..=MOST).contains(&count) || view.base.entry == NOWHERE {
            return None;
        }
        let shape = view.shape.iter().map(|d| u32::try_from(*d).ok()).collect::<Option<Vec<u32>>>()?;
        let ty = Type::Tile { elem: self.ty.elem().clone(), shape };
        // Looking is no access of the program.
        let mut space = Space::clone(&self.space);
        space.checker = None;
        let value = load_all(view, &ty, &space).ok()?;
        // Without checked mode nothing notes what is written.
        let is_noted = self.space.checker.is_some();
        let unwritten =
            is_noted.then(|| unwritten(view, elem_size(ty.elem()), &space)).flatten().map(Arc::new);
        Some(Data { value, ty, space: Arc::new(space), unwritten })
    }

    /// The pointer at a place in row-major order, this many elements further; none of numbers and views.
    pub fn pointer(&self, at: usize, further: i64) -> Option<Data> {
        let Value::Ptr(p) = self.value.lane(at).ok().filter(|_| self.is_pointer())? else { return None };
        let ty = Type::Tile { elem: self.ty.elem().clone(), shape: vec![] };
        Some(Data { value: Value::Ptr(p.add(further)), ty, space: Arc::clone(&self.space), unwritten: None })
    }

    /// How many elements a pointer is after another one; none of pointers into two buffers, or between two elements.
    pub fn elements_after(&self, other: &Data) -> Option<i64> {
        let (Value::Ptr(p), Value::Ptr(q)) = (&self.value, &other.value) else { return None };
        let of_pointee = |d: &Data| match d.ty.elem() {
            ElemType::Ptr { pointee, .. } => elem_size(pointee),
            ElemType::Scalar(_) => 1,
        };
        let bytes = p.byte(0, of_pointee(self))?.checked_sub(q.byte(0, of_pointee(other))?)?;
        let size = i64::try_from(of_pointee(self).max(1)).ok()?;
        (self.space.buffer(p) == other.space.buffer(q) && bytes % size == 0).then_some(bytes / size)
    }

    /// The element that a pointer leads to, as a tile of one; none outside of a buffer.
    pub fn pointee(&self) -> Option<Data> {
        let (Value::Ptr(p), ElemType::Ptr { pointee, .. }) = (&self.value, self.ty.elem()) else {
            return None;
        };
        let value = Value::View(Arc::new(View { base: *p, shape: vec![1], strides: vec![1] }));
        let ty = Type::View { elem: (**pointee).clone(), rank: 1, mutable: false, wide: false };
        Data { value, ty, space: Arc::clone(&self.space), unwritten: None }.contents()
    }

    /// Returns true if the elements are pointers.
    pub fn is_pointer(&self) -> bool {
        matches!(self.ty.elem(), ElemType::Ptr { .. }) && !matches!(self.value, Value::View(_))
    }
}

/// The elements of a view, in row-major order, that nothing has been written to; none if all were written.
fn unwritten(view: &View, size: usize, space: &Space) -> Option<Vec<bool>> {
    let allocation = &space.entry(&view.base)?.allocation;
    allocation.unwritten(0..allocation.len())?;
    let mut places = vec![0i64];
    for (extent, stride) in view.shape.iter().zip(&view.strides) {
        let along = |at: &i64| (0..*extent).map(|i| at + i * stride).collect::<Vec<_>>();
        places = places.iter().flat_map(along).collect();
    }
    let is_missing = |at: i64| {
        let start = view.base.byte(at, size).and_then(|byte| usize::try_from(byte).ok());
        start.is_some_and(|start| allocation.unwritten(start..start + size).is_some())
    };
    let all: Vec<bool> = places.into_iter().map(is_missing).collect();
    all.contains(&true).then_some(all)
}

/// Returns true if a value of floats has a NaN.
pub(crate) fn has_nan(value: &Value) -> bool {
    match value {
        Value::Splat(s) => s.dtype().is_float() && s.as_f64().is_some_and(f64::is_nan),
        Value::Tile(buf) => {
            buf.dtype().is_float() && buf.to_f64().is_some_and(|all| all.iter().any(|x| x.is_nan()))
        }
        Value::Empty
        | Value::Ramp(_)
        | Value::Ptr(_)
        | Value::Run(..)
        | Value::Offsets(..)
        | Value::Lanes(_)
        | Value::View(_) => false,
    }
}
