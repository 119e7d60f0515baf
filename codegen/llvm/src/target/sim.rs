//! Emits code for the simulated target: the shipped lowering as a function of the host, which accesses memory and other
//! lanes by the calls of [`crate::sim::symbols`].

mod around;
mod calls;

use std::cell::{Cell, RefCell};

use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue};
use tk_gpu::ir::tensor_map;
use tk_gpu::target::mma::FragmentForm;
use tk_ops::{AtomicOp, DType, ElementwiseOp};
use tk_tile::Loc;
use tk_tile::message::{Form, Kind, Message};

use self::calls::Place;
use super::{Access, Atomic, Entry, Failing, Lane, PlacedBox, Space, Start, TargetEmitter, Words};
use crate::emit::value::word;
use crate::emit::{Emit, Res, bug, slots};
use crate::math::{Approximations, LlvmMath};
use crate::scalar::Width;
use crate::sim::{Order, Scope, Shuffle, SimSpace};
use crate::target::request::MmaRequest;
use crate::target::request::PrintedPart;
use crate::target::request::{OperandA, SharedOperand, WgmmaOperands};

/// The simulated target; collects the positions and messages to which calls refer by number.
#[derive(Debug, Default)]
pub struct Sim {
    loc: Cell<Option<Loc>>,
    locs: RefCell<Vec<Loc>>,
    messages: RefCell<Vec<Message>>,
}

/// The tables that calls index.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Source positions.
    pub locs: Vec<Loc>,
    /// Messages of lanes.
    pub messages: Vec<Message>,
}

impl Sim {
    /// The tables that calls index.
    pub fn into_tables(self) -> Tables {
        Tables { locs: self.locs.into_inner(), messages: self.messages.into_inner() }
    }
}

impl<'c> TargetEmitter<'c> for Sim {
    // As the targets whose matrix instructions it has.
    fn keeps_vectors(&self, e: &Emit<'_, 'c>) -> bool {
        e.kernel.options.spec.matrices.iter().any(|m| m.form != FragmentForm::Quads)
    }

    fn enter(&self, start: &Start<'_, 'c>) -> Res<Entry<'c>> {
        let at = Place {
            context: start.context,
            builder: start.builder,
            module: start.module,
            function: start.function,
        };
        let i32 = start.context.i32_type();
        let ask =
            |name: &str, args: &[BasicValueEnum<'c>]| match self.call(&at, name, Some(i32.into()), args)? {
                Some(x) => Ok(x.into_int_value()),
                None => bug("a call gave nothing"),
            };
        let tid = ask("tk_sim_tid", &[])?;
        let axis = |n: u64| ask("tk_sim_num_programs", &[i32.const_int(n, false).into()]);
        let programs = [axis(0)?, axis(1)?, axis(2)?];
        let Some(args) = start.function.get_nth_param(1) else { return bug("a kernel has arguments") };
        let b = start.builder;
        let i64 = start.context.i64_type();
        let mut params = vec![];
        for (i, slot) in slots(start.kernel).iter().enumerate() {
            // SAFETY: the function has as many arguments as parameters.
            let place = unsafe {
                b.build_in_bounds_gep(i64, args.into_pointer_value(), &[i32.const_int(i as u64, false)], "")?
            };
            let passed = b.build_load(i64, place, "")?.into_int_value();
            let d = slot.kind.dtype();
            let bits = if d == DType::Bool { 1 } else { d.bits() };
            let code = b.build_int_truncate_or_bit_cast(passed, word(start.context, bits), "")?;
            let ty: BasicTypeEnum<'c> = match d {
                DType::F16 => start.context.f16_type().into(),
                DType::BF16 => start.context.bf16_type().into(),
                DType::F32 => start.context.f32_type().into(),
                DType::F64 => start.context.f64_type().into(),
                _ => code.get_type().into(),
            };
            params.push(b.build_bit_cast(code, ty, "")?);
        }
        let mut maps = vec![];
        for i in 0..tensor_map::maps(start.kernel).len() {
            let at = i32.const_int((params.len() + i) as u64, false);
            // SAFETY: maps follow the parameters.
            let place = unsafe { b.build_in_bounds_gep(i64, args.into_pointer_value(), &[at], "")? };
            maps.push(b.build_load(i64, place, "")?.into_int_value());
        }
        Ok(Entry { tid, programs, params, maps })
    }

    fn at(&self, loc: Option<Loc>) {
        self.loc.set(loc);
    }

    fn constant_space(&self) -> AddressSpace {
        AddressSpace::default()
    }

    fn program_id(&self, e: &Emit<'_, 'c>, axis: u32) -> Res<IntValue<'c>> {
        self.int_call(e, "tk_sim_program_id", &[e.int(axis).into()])
    }

    fn global_timer(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        self.int_call_of(e, "tk_sim_global_timer", e.context.i64_type().into(), &[])
    }

    fn multiprocessor(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        Ok(e.int(0))
    }

    fn load(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let alloca = self.alloca(e, access)?;
        if access.predicate.is_some() {
            for (i, x) in other.iter().enumerate() {
                e.builder.build_store(self.element(e, access, alloca, i)?, *x)?;
            }
        }
        e.act_where(access.predicate, || self.touch(e, space, access, alloca, false))?;
        let one = |i| Ok(e.builder.build_load(access.ty, self.element(e, access, alloca, i)?, "")?);
        (0..access.count as usize).map(one).collect()
    }

    fn store(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        let alloca = self.alloca(e, access)?;
        for (i, x) in values.iter().enumerate() {
            e.builder.build_store(self.element(e, access, alloca, i)?, *x)?;
        }
        e.act_where(access.predicate, || self.touch(e, space, access, alloca, true))
    }

    fn load_around(&self, e: &Emit<'_, 'c>, at: IntValue<'c>, of: &Access<'c>) -> Res<Option<Words<'c>>> {
        self.elements_in_words(e, at, of).map(Some)
    }

    fn async_copy(&self, e: &Emit<'_, 'c>, from: &Access<'c>, to: &Access<'c>) -> Res<()> {
        let moved = |a: &Access<'c>| {
            let by = a.address.get_type().const_int(a.offset.cast_unsigned(), true);
            e.builder.build_int_add(a.address, by, "")
        };
        let (source, target) = (moved(from)?, moved(to)?);
        let bytes = e.int(from.bytes * from.count);
        let read = match from.predicate {
            Some(p) => e.builder.build_select(p, bytes, e.int(0), "")?.into_int_value(),
            None => bytes,
        };
        let args = [source.into(), target.into(), bytes.into(), read.into(), self.place(e).into()];
        e.act_where(to.predicate, || self.call(&Place::of(e), "tk_sim_async_copy", None, &args).map(|_| ()))
    }

    fn async_commit(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.call(&Place::of(e), "tk_sim_async_commit", None, &[]).map(|_| ())
    }

    fn async_wait(&self, e: &Emit<'_, 'c>, pending: u32) -> Res<()> {
        let args = [e.int(pending).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_async_wait", None, &args).map(|_| ())
    }

    fn shuffle(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>> {
        let (mode, operand) = match lane {
            Lane::Xor(m) => (Shuffle::Xor, e.int(m)),
            Lane::Up(n) => (Shuffle::Up, e.int(n)),
            Lane::Down(n) => (Shuffle::Down, e.int(n)),
            Lane::Index(x) => (Shuffle::Index, x),
        };
        let mode = e.int(mode as u32);
        self.int_call(e, "tk_sim_shuffle", &[mode.into(), value.into(), operand.into(), self.place(e).into()])
    }

    fn load_matrices(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        matrices: u32,
        transposed: bool,
    ) -> Res<Vec<IntValue<'c>>> {
        let how = [e.int(matrices).into(), e.int(transposed.into()).into()];
        self.load_together(e, ("tk_sim_load_matrices", &how), (address, offset), matrices)
    }

    fn load_transposed(
        &self,
        e: &Emit<'_, 'c>,
        at: (IntValue<'c>, i64),
        of_element: usize,
    ) -> Res<Vec<IntValue<'c>>> {
        let how = [e.int(of_element as u32).into()];
        self.load_together(e, ("tk_sim_load_transposed", &how), at, 2)
    }

    fn store_matrices(
        &self,
        e: &Emit<'_, 'c>,
        (address, offset): (IntValue<'c>, i64),
        words: &[BasicValueEnum<'c>],
        transposed: bool,
    ) -> Res<()> {
        let by = address.get_type().const_int(offset.cast_unsigned(), true);
        let at = e.builder.build_int_add(address, by, "")?;
        let access = Access::of(address, offset, e.i32().into(), 4, words.len() as u32);
        let alloca = self.alloca(e, &access)?;
        for (i, word) in words.iter().enumerate() {
            e.builder.build_store(self.element(e, &access, alloca, i)?, *word)?;
        }
        let count = e.int(words.len() as u32);
        let args = [
            at.into(),
            count.into(),
            e.int(u32::from(transposed)).into(),
            alloca.into(),
            self.place(e).into(),
        ];
        self.call(&Place::of(e), "tk_sim_store_matrices", None, &args).map(|_| ())
    }

    /// Words and elements are consecutive: `a`, `b`, `c`. The result replaces `c`.
    fn multiply(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let all = [a, b, c].concat();
        let ty = if product.matrix.acc == DType::F64 { e.context.f64_type().into() } else { e.i32().into() };
        let bytes = product.matrix.acc.bytes() as u32;
        let access = Access::of(e.int(0), 0, ty, bytes, all.len() as u32);
        let alloca = self.alloca(e, &access)?;
        for (i, x) in all.iter().enumerate() {
            let x = if x.get_type() == ty { *x } else { e.builder.build_bit_cast(*x, ty, "")? };
            e.builder.build_store(self.element(e, &access, alloca, i)?, x)?;
        }
        let kind = tk_gpu::target::mma::all().position(|m| m == product.matrix).unwrap_or(usize::MAX);
        let code = |d: DType| e.int(DType::ALL.iter().position(|o| *o == d).unwrap_or(0) as u32);
        let [x, y] = product.operands.map(code);
        let args = [e.int(kind as u32).into(), x.into(), y.into(), alloca.into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_multiply", None, &args)?;
        let back = |(i, c): (usize, &BasicValueEnum<'c>)| {
            let at = self.element(e, &access, alloca, a.len() + b.len() + i)?;
            Ok(e.builder.build_load(c.get_type(), at, "")?)
        };
        c.iter().enumerate().map(back).collect()
    }

    /// One call for each instruction: its words of the left operand come before all accumulators. Descriptors are those
    /// of the PTX manual, so that the simulator locates the operands itself.
    fn wgmma_issue(
        &self,
        e: &Emit<'_, 'c>,
        what: &WgmmaOperands<'c>,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let matrix = what.product.matrix;
        let alloca = self.words_alloca(e, acc)?;
        let left_room = self.words_alloca(e, &vec![e.int(0).into(); what.words()])?;
        let code = |d: DType| e.int(DType::ALL.iter().position(|o| *o == d).unwrap_or(0) as u32);
        let kind = tk_gpu::target::mma::all().position(|m| m.is_like(&matrix)).unwrap_or(usize::MAX);
        let [x, y] = what.product.operands.map(code);
        for step in &what.steps {
            let left = match &what.left {
                OperandA::Shared(operand) => self.descriptor(e, operand, step.left)?,
                OperandA::Registers(words) => {
                    let own = words.iter().skip(step.left as usize).take(what.words());
                    for (i, x) in own.enumerate() {
                        e.builder.build_store(self.word(e, left_room, i)?, *x)?;
                    }
                    e.context.i64_type().const_zero()
                }
            };
            let in_registers = matches!(what.left, OperandA::Registers(_));
            let right = self.descriptor(e, &what.right, step.right)?;
            let across = |operand: &SharedOperand<'_>| u32::from(operand.swizzled.across);
            let left_across = if let OperandA::Shared(operand) = &what.left { across(operand) } else { 0 };
            let flags = u32::from(in_registers) | left_across << 1 | across(&what.right) << 2;
            let args = [
                e.int(kind as u32).into(),
                x.into(),
                y.into(),
                e.int(what.columns()).into(),
                left.into(),
                right.into(),
                e.int(flags).into(),
                left_room.into(),
                self.word(e, alloca, step.accumulator)?.into(),
                self.place(e).into(),
            ];
            self.call(&Place::of(e), "tk_sim_group_multiply", None, &args)?;
        }
        self.call(&Place::of(e), "tk_sim_group_commit", None, &[])?;
        self.words_back(e, alloca, acc)
    }

    fn wgmma_wait(
        &self,
        e: &Emit<'_, 'c>,
        pending: u32,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let alloca = self.words_alloca(e, acc)?;
        let args =
            [e.int(pending).into(), alloca.into(), e.int(acc.len() as u32).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_group_wait", None, &args)?;
        self.words_back(e, alloca, acc)
    }

    fn proxy_fence(&self, e: &Emit<'_, 'c>, _global: bool) -> Res<()> {
        self.call(&Place::of(e), "tk_sim_proxy_fence", None, &[]).map(|_| ())
    }

    fn tf32(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        // Bits below the mantissa of a tf32 are cleared, after adding half of the last remaining bit. Non-finite values
        // are unchanged.
        let (b, below) = (e.builder, 13u32);
        let half = b.build_int_add(x, e.int(1 << (below - 1)), "")?;
        let rounded = b.build_and(half, e.int(u32::MAX << below), "")?;
        let exponent = e.int(0x7F80_0000);
        let high = b.build_and(x, exponent, "")?;
        let finite = b.build_int_compare(inkwell::IntPredicate::NE, high, exponent, "")?;
        Ok(b.build_select(finite, rounded, x, "")?)
    }

    /// A barrier has preceded, and a release covers earlier writes of the other threads.
    fn release_fence(&self, _: &Emit<'_, 'c>, _: &str) -> Res<()> {
        Ok(())
    }

    fn barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        if e.kernel.options.threads().warp_bits == 0 {
            return self.barrier_warp(e);
        }
        let place = self.place(e).into();
        let producer = e.producers > 0;
        let own = e.kernel.options.threads().count();
        let (id, threads) = match e.group {
            Some(group) => (e.builder.build_int_nuw_add(group, e.int(1), "")?, own),
            None if producer => (e.int(1), own),
            None => (e.int(0), 0),
        };
        let args = [id.into(), e.int(threads).into(), place];
        self.call(&Place::of(e), "tk_sim_barrier", None, &args).map(|_| ())
    }

    /// The number of registers of a lane is unlimited.
    fn set_max_registers(&self, _: &Emit<'_, 'c>, _: u32) -> Res<()> {
        Ok(())
    }

    fn elect(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let lanes = e.kernel.options.spec.warp_size;
        let lane = e.builder.build_and(e.tid, e.int(lanes - 1), "")?;
        Ok(e.builder.build_int_compare(inkwell::IntPredicate::EQ, lane, e.int(0), "")?)
    }

    fn mbarrier_init(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, arrivals: u32) -> Res<()> {
        let args = [address.into(), e.int(arrivals).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_phase_begin", None, &args).map(|_| ())
    }

    fn mbarriers_ready(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        Ok(())
    }

    fn mbarrier_expect(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, bytes: u32) -> Res<()> {
        let args = [address.into(), e.int(bytes).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_phase_arrive", None, &args).map(|_| ())
    }

    fn mbarrier_arrive(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        _block: Option<IntValue<'c>>,
        predicate: IntValue<'c>,
    ) -> Res<()> {
        let args = [address.into(), e.int(0).into(), self.place(e).into()];
        e.act_where(Some(predicate), || {
            self.call(&Place::of(e), "tk_sim_phase_arrive", None, &args).map(|_| ())
        })
    }

    fn mbarrier_wait(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, parity: IntValue<'c>) -> Res<()> {
        let args = [address.into(), parity.into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_phase_wait", None, &args).map(|_| ())
    }

    fn tma_load(
        &self,
        e: &Emit<'_, 'c>,
        what: &PlacedBox<'c>,
        barrier: IntValue<'c>,
        _ranks: Option<IntValue<'c>>,
    ) -> Res<()> {
        self.copy_box(e, "tk_sim_tensor_copy", what, barrier)
    }

    fn tma_store(&self, e: &Emit<'_, 'c>, what: &PlacedBox<'c>, adds: Option<DType>) -> Res<()> {
        // The position of the type after the one of no type.
        let adds = adds.and_then(|d| DType::ALL.iter().position(|a| *a == d)).map_or(0, |n| n as u32 + 1);
        self.copy_box(e, "tk_sim_tensor_store", what, e.int(adds))
    }

    fn wait_tma_stores(&self, e: &Emit<'_, 'c>, left: bool) -> Res<()> {
        let args = [e.int(left.into()).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_store_wait", None, &args).map(|_| ())
    }

    fn barrier_all_warps(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let args = [e.int(0).into(), e.int(0).into(), self.place(e).into()];
        self.call(&Place::of(e), "tk_sim_barrier", None, &args).map(|_| ())
    }

    fn barrier_warp(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let place = self.place(e).into();
        self.call(&Place::of(e), "tk_sim_warp_barrier", None, &[place]).map(|_| ())
    }

    fn loop_header(&self, e: &Emit<'_, 'c>, _waits: bool) -> Res<()> {
        self.call(&Place::of(e), "tk_sim_step", None, &[self.place(e).into()]).map(|_| ())
    }

    fn grid_barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.call(&Place::of(e), "tk_sim_grid_barrier", None, &[self.place(e).into()]).map(|_| ())
    }

    fn register(&self, _: &Emit<'_, 'c>, _: &str, _: BasicTypeEnum<'c>) -> Option<BasicTypeEnum<'c>> {
        None
    }

    fn register_letters(&self) -> &'static str {
        "none"
    }

    fn assembly(
        &self,
        e: &Emit<'_, 'c>,
        _text: &str,
        _constraints: &str,
        _outs: &[BasicTypeEnum<'c>],
        _inputs: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        e.unsupported("`inline_asm`")
    }

    fn atomic(&self, e: &Emit<'_, 'c>, a: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>> {
        let bits = if a.dtype == DType::Bool { 1 } else { a.dtype.bits() };
        let code = word(e.context, bits);
        let word = |x: BasicValueEnum<'c>| -> Res<BasicValueEnum<'c>> {
            let x = if x.is_int_value() {
                x.into_int_value()
            } else {
                e.builder.build_bit_cast(x, code, "")?.into_int_value()
            };
            Ok(e.builder.build_int_z_extend_or_bit_cast(x, e.i64(), "")?.into())
        };
        let alloca = self.alloca(e, &Access::of(a.address, 0, e.i64().into(), 8, 1))?;
        e.builder.build_store(alloca, e.i64().const_zero())?;
        let op = AtomicOp::ALL.iter().position(|o| *o == a.op).unwrap_or(0) as u32;
        let ty = DType::ALL.iter().position(|d| *d == a.dtype).unwrap_or(0) as u32;
        let order = match a.order {
            "acquire" => Order::Acquire,
            "release" => Order::Release,
            "acq_rel" => Order::AcqRel,
            _ => Order::Relaxed,
        };
        let scope = match a.scope {
            "block" => Scope::Block,
            "system" => Scope::System,
            _ => Scope::Device,
        };
        let value = word(a.value)?;
        let compare = a.compare.map_or(Ok(e.i64().const_zero().into()), word)?;
        let args = [
            e.int(op).into(),
            e.int(ty).into(),
            e.int(SimSpace::Global as u32).into(),
            a.address.into(),
            value,
            compare,
            e.int(order as u32).into(),
            e.int(scope as u32).into(),
            self.place(e).into(),
        ];
        e.act_where(a.predicate, || {
            let Some(old) = self.call(&Place::of(e), "tk_sim_atomic", Some(e.i64().into()), &args)? else {
                return bug("a call gave nothing");
            };
            e.builder.build_store(alloca, old)?;
            Ok(())
        })?;
        let old = e.builder.build_load(e.i64(), alloca, "")?.into_int_value();
        let old = e.builder.build_int_truncate_or_bit_cast(old, code, "")?;
        let back = e.zero(Some(a.dtype)).get_type();
        if back.is_int_type() { Ok(old.into()) } else { Ok(e.builder.build_bit_cast(old, back, "")?) }
    }

    fn shared_increment(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        predicate: Option<IntValue<'c>>,
    ) -> Res<()> {
        let op = AtomicOp::ALL.iter().position(|o| *o == AtomicOp::Add).unwrap_or(0) as u32;
        let ty = DType::ALL.iter().position(|d| *d == DType::I32).unwrap_or(0) as u32;
        let address = e.builder.build_int_z_extend(address, e.i64(), "")?;
        let args = [
            e.int(op).into(),
            e.int(ty).into(),
            e.int(SimSpace::Shared as u32).into(),
            address.into(),
            e.long(1).into(),
            e.long(0).into(),
            e.int(Order::Relaxed as u32).into(),
            e.int(Scope::Block as u32).into(),
            self.place(e).into(),
        ];
        e.act_where(predicate, || {
            self.call(&Place::of(e), "tk_sim_atomic", Some(e.i64().into()), &args).map(|_| ())
        })
    }

    fn assert(&self, e: &Emit<'_, 'c>, failing: &Failing<'_, 'c>) -> Res<()> {
        let n = e.int(self.message(failing.text, Kind::Assert(failing.shape.to_vec())));
        e.act_where(Some(failing.fails), || {
            let args = [n.into(), failing.element.into(), self.place(e).into()];
            self.call(&Place::of(e), "tk_sim_assert", None, &args).map(|_| ())
        })
    }

    /// The record is the number of the message; of each part the value, the position and the bits, all as 64-bit words.
    /// A part that another lane sends has an invalid value number.
    fn print(&self, e: &Emit<'_, 'c>, text: &str, values: Vec<Form>, parts: &[PrintedPart<'c>]) -> Res<()> {
        let mut words = vec![e.long(self.message(text, Kind::Print(values)).into())];
        for part in parts {
            let value = e.long(part.value.into());
            words.push(match part.own {
                Some(own) => e.builder.build_select(own, value, e.long(-1), "")?.into_int_value(),
                None => value,
            });
            words.push(e.extend(part.position, false)?);
            words.push(part.bits);
        }
        let count = words.len() as u32;
        let access = Access::of(e.long(0), 0, e.i64().into(), 8, count);
        let alloca = self.alloca(e, &access)?;
        for (i, x) in words.into_iter().enumerate() {
            e.builder.build_store(self.element(e, &access, alloca, i)?, x)?;
        }
        let args = [alloca.into(), e.int(8 * count).into()];
        self.call(&Place::of(e), "tk_sim_print", None, &args).map(|_| ())
    }

    fn math(
        &self,
        builder: &Builder<'c>,
        module: &Module<'c>,
        op: ElementwiseOp,
        width: Width,
        fast: bool,
        args: &[BasicValueEnum<'c>],
    ) -> Option<BasicValueEnum<'c>> {
        super::function(LlvmMath::new(builder, module, Approximations::None), op, width, fast, args)
    }
}
