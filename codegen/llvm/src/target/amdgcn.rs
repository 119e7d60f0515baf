//! Emits code for AMD GPUs, for LLVM's AMDGPU target.
//!
//! Everything is LLVM's own instructions and intrinsics, so that LLVM inserts waits, allocates registers and schedules.
//! Operations with a synchronization scope, which LLVM's C interface cannot express, are functions of IR text that are
//! inlined ([`text`]).

mod atomic;
mod buffer;
mod direct;
mod hidden;
mod masked;
mod matrix;
mod message;
mod module;
mod shuffle;
mod text;
mod thread;

use std::cell::{Cell, OnceCell};

use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue,
    Operand, PointerValue, VectorValue,
};
use inkwell::{AddressSpace, IntPredicate};
use tk_ops::ElementwiseOp;
use tk_tile::Loc;
use tk_tile::message::Form;

use super::message::{MessageBuffer, Speaks};
use super::uniform::{self, ScalarUnit};
use super::{Access, Atomic, Entry, Failing, Lane, Passed, Space, Start, TargetEmitter};
use crate::emit::interleave::OrderedGroup;
use crate::emit::value::{bits, vector_of, word};
use crate::emit::{Emit, Res, Stop, bug};
use crate::math::{Approximations, LlvmMath};
use crate::scalar::Width;
use crate::target::request::MmaRequest;
use crate::target::request::PrintedPart;
use tk_gpu::ir::caching::{Caching, Evict, Level};

/// What scalar instructions give.
const SCALAR_UNIT: ScalarUnit = ScalarUnit {
    intrinsics: &["llvm.amdgcn.readfirstlane", "llvm.amdgcn.workgroup.id"],
    divides: true,
    joins: false,
};
/// Address spaces of LLVM's AMDGPU target.
const GLOBAL: u16 = 1;
/// LLVM's address space of buffer descriptors.
const BUFFER: u16 = 8;
const LOCAL: u16 = 3;
const CONSTANT: u16 = 4;

/// The alignment of the shared memory of a program: any access is then aligned to its size.
const ALIGN: u32 = 16;

/// AMD GPUs.
#[derive(Debug, Default)]
pub struct Amdgcn<'c> {
    message_buffer: MessageBuffer<'c>,
    /// What masked lanes load.
    zeros: Cell<Option<masked::Zeros<'c>>>,
    /// The number of the first thread of the warp, in a scalar register.
    first_of_warp: Cell<Option<IntValue<'c>>>,
    /// Whether sums of products take half of the registers of a lane.
    is_crowded: OnceCell<bool>,
    /// Whether loads go straight to shared memory.
    has_direct_loads: OnceCell<bool>,
}

/// Calls an intrinsic; `types` are those on which it is overloaded.
fn intrinsic<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    name: &str,
    types: &[BasicTypeEnum<'c>],
    args: &[BasicValueEnum<'c>],
) -> Res<Option<BasicValueEnum<'c>>> {
    let Some(found) = Intrinsic::find(name) else { return bug(format!("LLVM has no `{name}`")) };
    let types = if found.is_overloaded() { types } else { &[] };
    let Some(declared) = found.get_declaration(module, types) else {
        return bug(format!("LLVM has no `{name}` of these types"));
    };
    let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|x| (*x).into()).collect();
    Ok(builder.build_call(declared, &args, "")?.try_as_basic_value().basic())
}

/// A 32-bit number of the program in hardware, such as `workitem.id.x`.
fn special<'c>(builder: &Builder<'c>, module: &Module<'c>, name: &str) -> Res<IntValue<'c>> {
    match intrinsic(builder, module, &format!("llvm.amdgcn.{name}"), &[], &[])? {
        Some(x) => Ok(x.into_int_value()),
        None => bug("a register gave nothing"),
    }
}

/// The vector of which a value of 16 bits is an element, and its number, if both are words.
fn half_of_vector<'c>(x: BasicValueEnum<'c>) -> Option<(VectorValue<'c>, u64)> {
    let inst = x.as_instruction_value().filter(|i| i.get_opcode() == InstructionOpcode::ExtractElement)?;
    let operand = |n| inst.get_operand(n).and_then(Operand::value);
    let (vector, at) = (operand(0)?.into_vector_value(), operand(1)?.into_int_value());
    let fits = bits(x.get_type()) == 16 && vector.get_type().get_size().is_multiple_of(2);
    Some((vector, at.get_zero_extended_constant()?)).filter(|_| fits)
}

impl<'c> Amdgcn<'c> {
    /// Calls an intrinsic that returns a value.
    fn given(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        match intrinsic(e.builder, e.module, name, types, args)? {
            Some(x) => Ok(x),
            None => bug(format!("`{name}` gave nothing")),
        }
    }

    /// The shared memory of the program: a variable of a known size, so that the code object states its size.
    fn shared(&self, e: &Emit<'_, 'c>) -> PointerValue<'c> {
        const NAME: &str = "shared";
        let found = e.module.get_global(NAME).unwrap_or_else(|| {
            let bytes = e.context.i8_type().array_type(e.kernel.shared_bytes());
            let memory = e.module.add_global(bytes, Some(AddressSpace::from(LOCAL)), NAME);
            memory.set_linkage(Linkage::Internal);
            memory.set_initializer(&bytes.get_undef());
            memory.set_alignment(ALIGN);
            memory
        });
        found.as_pointer_value()
    }

    /// An address and an offset in bytes as an LLVM pointer.
    fn pointer(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        address: IntValue<'c>,
        offset: i64,
    ) -> Res<PointerValue<'c>> {
        let byte = e.context.i8_type();
        let base = match space {
            Space::Global => {
                let ty = e.context.ptr_type(AddressSpace::from(GLOBAL));
                e.builder.build_int_to_ptr(address, ty, "")?
            }
            // SAFETY: an access is inside of the shared memory of the program.
            Space::Shared => unsafe { e.builder.build_gep(byte, self.shared(e), &[address], "")? },
        };
        if offset == 0 {
            return Ok(base);
        }
        let by = address.get_type().const_int(offset.cast_unsigned(), true);
        // SAFETY: as above, or in the device memory that was passed to the program.
        Ok(unsafe { e.builder.build_gep(byte, base, &[by], "")? })
    }

    /// The address of an access. LLVM adds a 32-bit offset of a lane to a uniform address in the instruction.
    fn place(&self, e: &Emit<'_, 'c>, space: Space, access: &Access<'c>) -> Res<PointerValue<'c>> {
        match access.near {
            Some(near) if space == Space::Global => {
                let distance = e.extend(near.distance, false)?;
                let base = self.pointer(e, space, near.base, 0)?;
                // SAFETY: the device memory that was passed to the program.
                let lane = unsafe { e.builder.build_gep(e.context.i8_type(), base, &[distance], "")? };
                let by = e.long(access.offset);
                // SAFETY: as above.
                Ok(unsafe { e.builder.build_gep(e.context.i8_type(), lane, &[by], "")? })
            }
            Some(_) | None => self.pointer(e, space, access.address, access.offset),
        }
    }

    /// Splits one value into the elements of an access.
    fn apart(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        all: BasicValueEnum<'c>,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        if access.count == 1 {
            return Ok(vec![all]);
        }
        let one = |i| Ok(e.builder.build_extract_element(all.into_vector_value(), e.int(i), "")?);
        (0..access.count).map(one).collect()
    }

    /// The type of all elements of an access.
    fn whole(&self, access: &Access<'c>) -> Res<BasicTypeEnum<'c>> {
        Ok(if access.count == 1 { access.ty } else { vector_of(access.ty, access.count)?.into() })
    }

    /// Combines elements of an access into one value.
    fn joined(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        if let [one] = values {
            return Ok(*one);
        }
        if let Some(word) = self.joined_halves(e, values)? {
            return Ok(e.builder.build_bit_cast(word, vector_of(access.ty, access.count)?, "")?);
        }
        let mut vector = vector_of(access.ty, access.count)?.get_poison();
        for (i, x) in values.iter().enumerate() {
            vector = e.builder.build_insert_element(vector, *x, e.int(i as u32), "")?;
        }
        Ok(vector.into())
    }

    /// Two elements of 16 bits of different vectors as a word, by one instruction: LLVM moves each into its half of a
    /// register of RDNA.
    fn joined_halves(&self, e: &Emit<'_, 'c>, values: &[BasicValueEnum<'c>]) -> Res<Option<IntValue<'c>>> {
        let [low, high] = values else { return Ok(None) };
        if !e.kernel.options.spec.has_rdna {
            return Ok(None);
        }
        let (Some((low, x)), Some((high, y))) = (half_of_vector(*low), half_of_vector(*high)) else {
            return Ok(None);
        };
        if low == high {
            return Ok(None);
        }
        let word = |vector: VectorValue<'c>, at: u64| -> Res<IntValue<'c>> {
            let words = e.i32().vec_type(vector.get_type().get_size() / 2);
            let words = e.builder.build_bit_cast(vector, words, "")?.into_vector_value();
            Ok(e.builder.build_extract_element(words, e.int((at / 2) as u32), "")?.into_int_value())
        };
        let half = |at: u64| if at.is_multiple_of(2) { 0x0100 } else { 0x0302 };
        let selector = e.int(half(x) | (half(y) | 0x0404) << 16);
        self.permute_bytes(e, [word(low, x)?, word(high, y)?], selector).map(Some)
    }

    /// Executes code where a predicate is true; returns `other` elsewhere.
    fn where_holds(
        &self,
        e: &Emit<'_, 'c>,
        predicate: Option<IntValue<'c>>,
        other: BasicValueEnum<'c>,
        act: impl FnOnce() -> Res<BasicValueEnum<'c>>,
    ) -> Res<BasicValueEnum<'c>> {
        let Some(p) = predicate else { return act() };
        let before = e.here()?;
        let (inside, after) = (e.new_block("lane"), e.new_block("all"));
        e.builder.build_conditional_branch(p, inside, after)?;
        e.builder.position_at_end(inside);
        let x = act()?;
        let end = e.here()?;
        e.builder.build_unconditional_branch(after)?;
        e.builder.position_at_end(after);
        let both = e.builder.build_phi(other.get_type(), "")?;
        both.add_incoming(&[(&other, before), (&x, end)]);
        Ok(both.as_basic_value())
    }
}

impl<'c> TargetEmitter<'c> for Amdgcn<'c> {
    fn enter(&self, start: &Start<'_, 'c>) -> Res<Entry<'c>> {
        let Passed { params, programs, control, .. } = Passed::of(start)?;
        self.message_buffer.begin(start, control)?;
        self.zeros.set(None);
        let tid = special(start.builder, start.module, "workitem.id.x")?;
        self.first_of_warp.set(Some(Self::first_of_warp(start, tid)?));
        Ok(Entry { tid, programs, params, maps: vec![] })
    }

    fn at(&self, loc: Option<Loc>) {
        self.message_buffer.loc.set(loc);
    }

    fn constant_space(&self) -> AddressSpace {
        AddressSpace::from(CONSTANT)
    }

    fn program_id(&self, e: &Emit<'_, 'c>, axis: u32) -> Res<IntValue<'c>> {
        let name = ["workgroup.id.x", "workgroup.id.y", "workgroup.id.z"];
        special(e.builder, e.module, name.get(axis as usize).copied().unwrap_or("workgroup.id.x"))
    }

    fn global_timer(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let ticks = self.given(e, "llvm.readsteadycounter", &[], &[])?.into_int_value();
        let long = ticks.get_type().const_int(u64::from(e.kernel.options.spec.tick_ns), false);
        Ok(e.builder.build_int_mul(ticks, long, "")?)
    }

    fn multiprocessor(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let mut number = e.int(0);
        let mut below = 0;
        for (register, first, bits) in e.kernel.options.spec.processor_fields {
            // The operand of `s_getreg_b32`.
            let which = e.int(register | first << 6 | (bits - 1) << 11);
            let field = self.given(e, "llvm.amdgcn.s.getreg", &[], &[which.into()])?.into_int_value();
            let field = e.builder.build_left_shift(field, e.int(below), "")?;
            number = e.builder.build_or(number, field, "")?;
            below += bits;
        }
        Ok(number)
    }

    fn load(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let ty = self.whole(access)?;
        if let (Space::Global, Some(near), Some(predicate)) = (space, access.near, access.predicate) {
            let all = self.bounded_load(e, (access, near, predicate), ty, other)?;
            return self.apart(e, access, all);
        }
        if let (Space::Global, Some(predicate)) = (space, access.predicate)
            && self.selects_address(e, access, predicate)
        {
            let all = self.masked_load(e, (access, predicate), ty, other)?;
            return self.apart(e, access, all);
        }
        let pointer = self.place(e, space, access)?;
        let other = match access.predicate {
            Some(_) => self.joined(e, access, other)?,
            None => ty.const_zero(),
        };
        let all = self.where_holds(e, access.predicate, other, || {
            let loaded = e.builder.build_load(ty, pointer, "")?;
            if let Some(inst) = loaded.as_instruction_value() {
                marked(e, inst, access)?;
                if space == Space::Shared {
                    self.reads_nothing_direct(e, inst)?;
                }
            }
            Ok(loaded)
        })?;
        self.apart(e, access, all)
    }

    fn store(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        let all = self.joined(e, access, values)?;
        let all = if space == Space::Shared { self.out_of_accumulators(e, all)? } else { all };
        if let (Space::Global, Some(near), Some(predicate)) = (space, access.near, access.predicate) {
            return self.bounded_store(e, (access, near, predicate), all);
        }
        let pointer = self.place(e, space, access)?;
        e.act_where(access.predicate, || marked(e, e.builder.build_store(pointer, all)?, access))
    }

    fn async_copy(&self, e: &Emit<'_, 'c>, from: &Access<'c>, to: &Access<'c>) -> Res<()> {
        self.direct_load(e, from, to)
    }

    fn copying_thread(&self) -> Option<IntValue<'c>> {
        self.first_of_warp.get()
    }

    /// Waves count their loads.
    fn async_commit(&self, _e: &Emit<'_, 'c>) -> Res<()> {
        Ok(())
    }

    fn async_wait(&self, e: &Emit<'_, 'c>, pending: u32) -> Res<()> {
        self.wait_for_direct_loads(e, pending)
    }

    fn shuffle(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>> {
        self.other_lane(e, value, lane)
    }

    fn load_transposed(
        &self,
        e: &Emit<'_, 'c>,
        at: (IntValue<'c>, i64),
        of_element: usize,
    ) -> Res<Vec<IntValue<'c>>> {
        self.transposed_words(e, at, of_element)
    }

    fn multiply(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.matrix_product(e, product, [a, b], c)
    }

    fn barrier_all_warps(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.barrier(e)
    }

    /// A wave counts only its own accesses: each waits for its stores before the barrier.
    fn release_fence(&self, e: &Emit<'_, 'c>, scope: &str) -> Res<()> {
        let of = if scope == "system" { "" } else { "agent" };
        self.inlined(e, &text::release(of), &[])?;
        self.barrier(e)
    }

    fn barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let is_alone = e.kernel.options.threads().warp_bits == 0;
        self.inlined(e, &text::barrier(is_alone), &[]).map(|_| ())
    }

    fn permute_bytes(
        &self,
        e: &Emit<'_, 'c>,
        [low, high]: [IntValue<'c>; 2],
        selector: IntValue<'c>,
    ) -> Res<IntValue<'c>> {
        let args = [high.into(), low.into(), selector.into()];
        Ok(self.given(e, "llvm.amdgcn.perm", &[], &args)?.into_int_value())
    }

    fn permutes_bytes(&self) -> bool {
        true
    }

    fn keeps_vectors(&self, _e: &Emit<'_, 'c>) -> bool {
        true
    }

    /// LLVM treats loaded values and those from other lanes as divergent, and would mask lanes off around code that
    /// depends on them.
    fn uniform(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        if uniform::is_known(e, SCALAR_UNIT, x) {
            return Ok(x);
        }
        let (b, ty) = (e.builder, x.get_type());
        let wide = if ty.get_bit_width() < 32 { b.build_int_z_extend(x, e.i32(), "")? } else { x };
        let same = self.given(e, "llvm.amdgcn.readfirstlane", &[wide.get_type().into()], &[wide.into()])?;
        Ok(b.build_int_truncate_or_bit_cast(same.into_int_value(), ty, "")?)
    }

    fn some_lane(&self, e: &Emit<'_, 'c>, conditions: &[IntValue<'c>]) -> Res<IntValue<'c>> {
        let ty = word(e.context, e.kernel.options.spec.warp_size);
        let mut all = ty.const_zero();
        for x in conditions {
            // LLVM gives the lanes for which a comparison holds, but not for which one of several does, without an instruction.
            let lanes = self.given(e, "llvm.amdgcn.ballot", &[ty.into()], &[(*x).into()])?;
            all = e.builder.build_or(all, lanes.into_int_value(), "")?;
        }
        Ok(e.builder.build_int_compare(IntPredicate::NE, all, ty.const_zero(), "")?)
    }

    fn loop_header(&self, e: &Emit<'_, 'c>, waits: bool) -> Res<()> {
        if waits { self.waits(e) } else { Ok(()) }
    }

    fn thread_again(&self, e: &Emit<'_, 'c>, _after: Option<IntValue<'c>>) -> Res<IntValue<'c>> {
        self.counted_thread(e)
    }

    fn opaque_address(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        Self::hidden(e, "=v,0", &[x])
    }

    fn opaque_word(&self, e: &Emit<'_, 'c>, x: IntValue<'c>, after: IntValue<'c>) -> Res<IntValue<'c>> {
        Self::hidden(e, "=v,0,v", &[x, after])
    }

    fn schedules_after(&self, e: &Emit<'_, 'c>) -> Res<()> {
        let nothing_moves = e.int(0).into();
        intrinsic(e.builder, e.module, "llvm.amdgcn.sched.barrier", &[], &[nothing_moves]).map(|_| ())
    }

    fn schedule_group(&self, e: &Emit<'_, 'c>, group: OrderedGroup, count: usize) -> Res<()> {
        // Masks of `llvm.amdgcn.sched.group.barrier`.
        let of = match group {
            OrderedGroup::Products => 0x008,
            OrderedGroup::Loads => 0x020,
            OrderedGroup::Reads => 0x100,
        };
        let args = [e.int(of).into(), e.int(count as u32).into(), e.int(0).into()];
        intrinsic(e.builder, e.module, "llvm.amdgcn.sched.group.barrier", &[], &args).map(|_| ())
    }

    fn set_priority(&self, e: &Emit<'_, 'c>, is_raised: bool) -> Res<()> {
        let priority = e.context.i16_type().const_int(is_raised.into(), false).into();
        intrinsic(e.builder, e.module, "llvm.amdgcn.s.setprio", &[], &[priority]).map(|_| ())
    }

    fn grid_barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.meet_all(e)
    }

    /// Vector and scalar registers, as many as a value needs.
    fn register(&self, e: &Emit<'_, 'c>, letter: &str, of: BasicTypeEnum<'c>) -> Option<BasicTypeEnum<'c>> {
        let bits = match of {
            BasicTypeEnum::IntType(t) => t.get_bit_width(),
            BasicTypeEnum::FloatType(t) => t.get_bit_width(),
            _other => 0,
        };
        (matches!(letter, "v" | "s") && matches!(bits, 16 | 32 | 64)).then(|| word(e.context, bits).into())
    }

    fn register_letters(&self) -> &'static str {
        "v and s, for values of 16, 32 and 64 bits"
    }

    fn assembly(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        outs: &[BasicTypeEnum<'c>],
        inputs: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        // LLVM aborts the process on data between instructions, and a section would take the rest of the kernel with
        // it.
        let statements = text.split(['\n', ';']).map(str::trim);
        if let Some(directive) = statements.into_iter().find(|s| s.starts_with('.')) {
            let name = directive.split_whitespace().next().unwrap_or(directive);
            return e.unsupported(format!("`inline_asm` with the directive `{name}`"));
        }
        let types: Vec<_> = inputs.iter().map(|x| x.get_type().into()).collect();
        let ty = match outs {
            [one] => one.fn_type(&types, false),
            several => e.context.struct_type(several, false).fn_type(&types, false),
        };
        let constraints = format!("{constraints},~{{memory}}");
        let code = e.context.create_inline_asm(ty, text.to_string(), constraints, true, false, None, false);
        let args: Vec<BasicMetadataValueEnum<'c>> = inputs.iter().map(|x| (*x).into()).collect();
        match (outs, e.builder.build_indirect_call(ty, code, &args, "")?.try_as_basic_value().basic()) {
            ([_], Some(x)) => Ok(vec![x]),
            (several, Some(x)) => (0..several.len())
                .map(|i| Ok(e.builder.build_extract_value(x.into_struct_value(), i as u32, "")?))
                .collect(),
            (_, None) => bug("assembly gave nothing"),
        }
    }

    fn atomic(&self, e: &Emit<'_, 'c>, a: &Atomic<'_, 'c>) -> Res<BasicValueEnum<'c>> {
        self.atomic_in_memory(e, a)
    }

    fn shared_increment(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        predicate: Option<IntValue<'c>>,
    ) -> Res<()> {
        let pointer = self.pointer(e, Space::Shared, address, 0)?;
        let add = text::increment();
        e.act_where(predicate, || self.inlined(e, &add, &[pointer.into()]).map(|_| ()))
    }

    fn assert(&self, e: &Emit<'_, 'c>, failing: &Failing<'_, 'c>) -> Res<()> {
        self.assert_holds(e, failing)
    }

    fn print(&self, e: &Emit<'_, 'c>, text: &str, values: Vec<Form>, parts: &[PrintedPart<'c>]) -> Res<()> {
        self.print_line(e, text, values, parts)
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
        super::function(LlvmMath::new(builder, module, Approximations::Gcn), op, width, fast, args)
    }
}

/// Marks an access with its alignment and the cache hints of the source. Streaming has an instruction; other
/// hints have none.
fn marked<'c>(e: &Emit<'_, 'c>, inst: InstructionValue<'c>, access: &Access<'c>) -> Res<()> {
    inst.set_alignment(access.alignment).map_err(|e| Stop::Bug(e.to_string()))?;
    if access.caching.level == Level::Volatile {
        inst.set_volatile(true).map_err(|e| Stop::Bug(e.to_string()))?;
    }
    if is_streamed(access.caching) {
        let one = e.context.metadata_node(&[e.int(1).into()]);
        inst.set_metadata(one, e.context.get_kind_id("nontemporal")).map_err(|e| Stop::Bug(e.to_string()))?;
    }
    Ok(())
}

/// Returns true if an access is streaming.
fn is_streamed(caching: Caching) -> bool {
    caching.level == Level::Streaming || caching.evict == Evict::First
}
