//! Emits a scheduled kernel as an LLVM function.
//!
//! Every thread of the block runs the function. A scalar is one LLVM value, the same in every thread; a tile is one
//! value for each register of its layout ([`value`]). Control flow is that of the program and uniform; single threads
//! are masked by predicates only.
//!
//! Requires a verified scheduled kernel. Target-specific code comes from its [`TargetEmitter`].

pub mod ahead;
pub mod ahead_loop;
pub mod assembly;
pub mod atomic;
pub mod control;
pub mod coords;
pub mod cursor;
pub mod dot;
pub mod elements;
pub mod exchange;
pub mod global;
pub mod interleave;
pub mod mma;
pub mod narrow;
pub mod phases;
pub mod place;
pub mod print;
pub mod ragged;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod shared;
pub mod shuffle;
pub mod state;
pub mod stop;
pub mod tile;
pub mod tma_pipeline;
pub mod value;
pub mod view;
pub mod wgmma;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use tk_gpu::Kernel;
use tk_gpu::analysis::axis::AxisInfo;
use tk_gpu::ir::kernel::LayoutId;
use tk_ops::{ControlOp, DType, Op};
use tk_tile::{BlockId, ElemType, Func, Inst, Loc, Type, ValueId};

use self::ahead_loop::AheadLoop;
use self::state::{Late, Lockstep, Nested, TmaPipeline};
pub use self::stop::{Res, Stop, bug};
use self::value::{Val, View};
use crate::lines::LineTable;
use crate::scalar::Scalars;
use crate::target::TargetEmitter;

/// The state of the emission of one kernel.
pub struct Emit<'a, 'c> {
    /// The context of the types.
    pub context: &'c Context,
    /// The builder, at the current position.
    pub builder: &'a Builder<'c>,
    /// The module.
    pub module: &'a Module<'c>,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The facts about its values.
    pub axis: AxisInfo,
    /// The emitter of target-specific code.
    pub target: &'a dyn TargetEmitter<'c>,
    /// The function.
    pub function: FunctionValue<'c>,
    /// The emitted form of every value.
    values: Vec<Option<Val<'c>>>,
    /// Coordinates of register 0 of this thread, for each layout, on demand.
    threads: Rc<BTreeMap<LayoutId, Vec<IntValue<'c>>>>,
    /// The number of this thread in its warpgroup: in its program, if that has one.
    pub tid: IntValue<'c>,
    /// The number of this thread in its program.
    pub thread: IntValue<'c>,
    /// The number of the warpgroup of this thread, the same in a warp, if the program has several.
    pub group: Option<IntValue<'c>>,
    /// The phase of the mbarrier for which this warpgroup waits next, if warpgroups take turns.
    pub turn: Option<PointerValue<'c>>,
    /// The number of programs along each axis.
    pub programs: [IntValue<'c>; 3],
    /// The source position of the current instruction.
    pub loc: Option<Loc>,
    /// The lines of the source, if the output has a line table.
    lines: Option<&'a LineTable<'a, 'c>>,
    /// The addresses of tensor maps ([`tk_gpu::ir::tensor_map`]).
    pub maps: Vec<IntValue<'c>>,
    /// The TMA pipelines between the producer and the consumers.
    tma_pipelines: Vec<TmaPipeline<'c>>,
    /// The consumers that count together.
    lockstep: Option<Lockstep<'c>>,
    /// Tiles that are stored in chunks, and the addresses of their loads.
    chunked: BTreeSet<ValueId>,
    late: BTreeMap<ValueId, Late<'c>>,
    /// The number of warps beside those of the program ([`tk_gpu::ir::warps::producers`]), computed once since each
    /// barrier uses it.
    pub producers: u32,
    /// One thread of a warp executes the current block.
    pub is_alone: bool,
    /// Whether this warp is the producer, if the kernel has one.
    brings: Option<IntValue<'c>>,
    /// The phase parity for which the load of a buffer that other blocks fill waits.
    phases: BTreeMap<u32, PointerValue<'c>>,
    /// The innermost loop, if its loads run ahead.
    pub ahead: Option<AheadLoop<'c>>,
    /// The counters of the loops so far, whose iterations warpgroups do not take in turns.
    pub counters: Vec<IntValue<'c>>,
    /// The function of elements that is being emitted, if it is one.
    pub nested: Option<Nested>,
}

/// Fills `function`, which has an empty entry block at which `builder` is positioned, and its line table.
pub fn emit<'a, 'c>(
    context: &'c Context,
    builder: &'a Builder<'c>,
    module: &'a Module<'c>,
    kernel: &'a Kernel,
    target: &'a dyn TargetEmitter<'c>,
    function: FunctionValue<'c>,
    lines: Option<&'a LineTable<'a, 'c>>,
) -> Res<()> {
    let func = kernel.func();
    if let Some(table) = lines {
        table.at(builder, first_loc(func));
    }
    let axis = AxisInfo::new(&kernel.module, func, &kernel.options.facts);
    let start = crate::target::Start { context, builder, module, function, kernel };
    let entry = target.enter(&start)?;
    let mut e = Emit {
        context,
        builder,
        module,
        kernel,
        axis,
        target,
        function,
        values: vec![None; func.values.len()],
        threads: Rc::default(),
        tid: entry.tid,
        thread: entry.tid,
        group: None,
        turn: None,
        programs: entry.programs,
        loc: None,
        lines,
        maps: entry.maps,
        tma_pipelines: vec![],
        lockstep: None,
        chunked: tk_gpu::ir::shared_access::chunked(kernel),
        late: BTreeMap::new(),
        producers: tk_gpu::ir::warps::producers(kernel),
        is_alone: false,
        brings: None,
        phases: BTreeMap::new(),
        ahead: None,
        counters: vec![],
        nested: None,
    };
    e.divide_threads()?;
    e.parameters(&entry.params)?;
    e.thread_layouts()?;
    e.block(func.body)?;
    builder.build_return(None)?;
    Ok(())
}

impl Emit<'_, '_> {
    /// Divides the threads of a program that has several warpgroups.
    fn divide_threads(&mut self) -> Res<()> {
        let (groups, threads) = (self.kernel.options.groups, self.kernel.options.threads());
        if groups == 1 {
            return Ok(());
        }
        let own = self.int(threads.lane_bits + threads.warp_bits);
        let group = self.builder.build_right_shift(self.thread, own, false, "")?;
        self.group = Some(self.target.shuffle(self, group, crate::target::Lane::Index(self.int(0)))?);
        self.tid = self.builder.build_and(self.thread, self.int(threads.count() - 1), "")?;
        Ok(())
    }
}

/// The source position of the first instruction of a function that has one.
pub fn first_loc(func: &Func) -> Option<Loc> {
    func.blocks[func.body].insts.iter().find_map(|i| func.insts[*i].loc)
}

/// A parameter of the function: its name and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// `x`, `x.shape[0]`, `x.strides[1]`.
    pub name: String,
    /// Its kind.
    pub kind: SlotKind,
}

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// An address of elements; `None` if they are pointers.
    Pointer(Option<DType>),
    /// A number of the kernel.
    Scalar(DType),
    /// An extent of a view.
    Extent(DType),
    /// A stride of a view, in elements.
    Stride,
}

impl SlotKind {
    /// The element type in which it is passed.
    pub fn dtype(self) -> DType {
        match self {
            SlotKind::Pointer(_) => DType::U64,
            SlotKind::Scalar(d) | SlotKind::Extent(d) => d,
            SlotKind::Stride => DType::I64,
        }
    }
}

/// The parameters of a kernel as they are passed: a view is its address, its extents and its strides.
pub fn slots(kernel: &Kernel) -> Vec<Slot> {
    let func = kernel.func();
    let mut out = vec![];
    let pointee = |elem: &ElemType| match elem {
        ElemType::Scalar(d) => Some(*d),
        ElemType::Ptr { .. } => None,
    };
    for (i, v) in func.blocks[func.body].args.iter().enumerate() {
        let name = func.param_names.get(i).cloned().unwrap_or_default();
        let mut push = |name: String, kind| out.push(Slot { name, kind });
        match kernel.module.types.get(func.ty(*v)) {
            Type::Tile { elem: ElemType::Scalar(d), .. } => push(name, SlotKind::Scalar(*d)),
            Type::Tile { elem: ElemType::Ptr { pointee: p, .. }, .. } => {
                push(name, SlotKind::Pointer(pointee(p)))
            }
            Type::View { elem, rank, wide, .. } => {
                let extent = if *wide { DType::I64 } else { DType::I32 };
                push(name.clone(), SlotKind::Pointer(pointee(elem)));
                for d in 0..*rank {
                    push(format!("{name}.shape[{d}]"), SlotKind::Extent(extent));
                }
                for d in 0..*rank {
                    push(format!("{name}.strides[{d}]"), SlotKind::Stride);
                }
            }
        }
    }
    out
}

impl<'a, 'c> Emit<'a, 'c> {
    /// The function of the kernel.
    pub fn func(&self) -> &'a Func {
        self.kernel.func()
    }

    /// The type of a value.
    pub fn ty(&self, v: ValueId) -> &'a Type {
        self.kernel.module.types.get(self.func().ty(v))
    }

    /// The extents of a tile.
    pub fn shape(&self, v: ValueId) -> &'a [u32] {
        self.ty(v).shape().unwrap_or(&[])
    }

    /// The scalar type of the elements; `None` for pointers.
    pub fn dtype(&self, v: ValueId) -> Option<DType> {
        self.ty(v).dtype()
    }

    /// The emitter of operations on single elements.
    pub fn scalars<'s>(&'s self, math: &'s crate::scalar::MathFn<'s, 'c>) -> Scalars<'s, 'c> {
        Scalars {
            context: self.context,
            builder: self.builder,
            module: self.module,
            spec: self.kernel.options.spec,
            math,
        }
    }

    /// Calls `f` with the emitter of operations on single elements.
    pub fn with_scalars<T>(
        &self,
        f: impl FnOnce(&Scalars<'_, 'c>) -> Result<T, crate::scalar::Error>,
    ) -> Res<T> {
        let math = |op, width, fast, args: &[BasicValueEnum<'c>]| {
            self.target.math(self.builder, self.module, op, width, fast, args)
        };
        Ok(f(&self.scalars(&math))?)
    }

    /// 32-bit integers.
    pub fn i32(&self) -> IntType<'c> {
        self.context.i32_type()
    }

    /// 64-bit integers.
    pub fn i64(&self) -> IntType<'c> {
        self.context.i64_type()
    }

    /// A 32-bit constant.
    pub fn int(&self, v: u32) -> IntValue<'c> {
        self.i32().const_int(v.into(), false)
    }

    /// A 64-bit constant.
    pub fn long(&self, v: i64) -> IntValue<'c> {
        self.i64().const_int(v.cast_unsigned(), true)
    }

    /// The emitted form of a value.
    pub fn value(&self, v: ValueId) -> Res<&Val<'c>> {
        match self.values.get(v.0 as usize).and_then(Option::as_ref) {
            Some(val) => Ok(val),
            None => bug(format!("{v} is used before it is defined")),
        }
    }

    /// Defines the emitted form of a value.
    pub fn define(&mut self, v: ValueId, val: Val<'c>) {
        if let Some(slot) = self.values.get_mut(v.0 as usize) {
            *slot = Some(val);
        }
    }

    /// A scalar.
    pub fn scalar(&self, v: ValueId) -> Res<BasicValueEnum<'c>> {
        match self.value(v)? {
            Val::Scalar(x) => Ok(*x),
            Val::Tile(_) | Val::View(_) => bug(format!("{v} is no scalar")),
        }
    }

    /// An integer scalar as i64, by its sign.
    pub fn wide(&self, v: ValueId) -> Res<IntValue<'c>> {
        let x = self.scalar(v)?.into_int_value();
        let signed = self.dtype(v).is_none_or(|d| d.is_signed());
        self.extend(x, signed)
    }

    /// An integer as i64.
    pub fn extend(&self, x: IntValue<'c>, signed: bool) -> Res<IntValue<'c>> {
        Ok(if x.get_type().get_bit_width() >= 64 {
            x
        } else if signed {
            self.builder.build_int_s_extend(x, self.i64(), "")?
        } else {
            self.builder.build_int_z_extend(x, self.i64(), "")?
        })
    }

    /// A view.
    pub fn view(&self, v: ValueId) -> Res<View<'c>> {
        match self.value(v)? {
            Val::View(x) => Ok(x.clone()),
            Val::Tile(_) | Val::Scalar(_) => bug(format!("{v} is no view")),
        }
    }

    fn parameters(&mut self, params: &[BasicValueEnum<'c>]) -> Res<()> {
        let mut params = params.iter().copied();
        let mut next = || params.next().ok_or_else(|| Stop::Bug("a parameter is missing".into()));
        for v in &self.func().blocks[self.func().body].args {
            let val = match self.ty(*v) {
                Type::Tile { .. } => {
                    let passed = next()?;
                    // An extent or stride that is 1 in every launch of this code needs no parameter.
                    let known = self
                        .axis
                        .tile(*v)
                        .value
                        .filter(|_| passed.is_int_value() && self.dtype(*v).is_some());
                    Val::Scalar(match known {
                        Some(x) => {
                            passed.into_int_value().get_type().const_int(x.cast_unsigned(), true).into()
                        }
                        None => passed,
                    })
                }
                Type::View { rank, elem, .. } => {
                    let base = next()?.into_int_value();
                    let extents = (0..*rank).map(|_| Ok(next()?.into_int_value())).collect::<Res<_>>()?;
                    let strides =
                        (0..*rank).map(|_| Ok(next()?.into_int_value())).collect::<Res<Vec<_>>>()?;
                    let known = self.axis.view(*v);
                    let unit = |d: usize| known.is_some_and(|k| k.strides.get(d).is_some_and(|s| s.1));
                    let strides = strides
                        .into_iter()
                        .enumerate()
                        .map(|(d, s)| if unit(d) { self.long(1) } else { s })
                        .collect();
                    Val::View(View { base, extents, strides, bytes: value::element_bytes(elem) })
                }
            };
            self.define(*v, val);
        }
        Ok(())
    }

    /// Emits the instructions of a block, up to its terminator.
    pub fn block(&mut self, block: BlockId) -> Res<()> {
        let insts = &self.func().blocks[block].insts;
        let thread = (self.tid, Rc::clone(&self.threads));
        for i in insts.iter() {
            let inst = &self.func().insts[*i];
            self.loc = inst.loc.or(self.loc);
            self.target.at(self.loc);
            if let Some(table) = self.lines {
                table.at(self.builder, self.loc);
            }
            self.inst(inst)?;
        }
        (self.tid, self.threads) = thread;
        self.count_block(block)
    }

    /// Stops: this target does not support an operation.
    pub fn unsupported<T>(&self, what: impl Into<String>) -> Res<T> {
        Err(Stop::Unsupported { what: what.into(), loc: self.loc })
    }

    fn inst(&mut self, inst: &Inst) -> Res<()> {
        self.allowed(inst)?;
        if self.nested.is_none()
            && let Some(scope) = self.released(inst)
        {
            self.target.release_fence(self, scope)?;
        }
        match inst.op {
            Op::Elementwise(op) => self.elementwise(inst, op),
            Op::Create(op) => self.create(inst, op),
            Op::Shape(op) => self.shaped(inst, op),
            Op::Memory(op) => self.memory(inst, op),
            Op::Atomic(op) => self.atomic(inst, op),
            Op::Reduce(op) => self.reduce(inst, op),
            Op::Scan(op) => self.scan(inst, op),
            Op::Random(op) => self.random(inst, op),
            Op::Target => self.gpu_op(inst),
            Op::Dot(op) => bug(format!("`{}` was not lowered", op.name())),
            Op::Control(ControlOp::Yield | ControlOp::Condition | ControlOp::Return) => Ok(()),
            Op::Control(op) => self.control(inst, op),
            Op::Host(op) => bug(format!("`{}` in a kernel", op.name())),
        }
    }
}
