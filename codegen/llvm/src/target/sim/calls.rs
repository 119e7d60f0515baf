//! Calls of the simulator, and the passing of values through the frame of the kernel.

use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use tk_gpu::ir::tensor_map::MOST_DIMENSIONS;
use tk_tile::message::{Kind, Message};

use super::Sim;
use crate::emit::{Emit, Res, bug};
use crate::target::request::SharedOperand;
use crate::target::{Access, PlacedBox, Space};

impl Sim {
    /// The number of a new message.
    pub(super) fn message(&self, text: &str, kind: Kind) -> u32 {
        let mut messages = self.messages.borrow_mut();
        messages.push(Message { text: text.to_string(), kind, loc: self.loc.get() });
        messages.len() as u32 - 1
    }

    /// The number of the source position of the current instruction; -1 for none.
    pub(super) fn place<'c>(&self, e: &Emit<'_, 'c>) -> IntValue<'c> {
        let Some(loc) = self.loc.get() else { return e.i32().const_int(u64::MAX, true) };
        let mut locs = self.locs.borrow_mut();
        let n = locs.iter().position(|l| *l == loc).unwrap_or_else(|| {
            locs.push(loc);
            locs.len() - 1
        });
        e.int(n as u32)
    }

    /// A copy of a box to shared memory, with its mbarrier, or from there, with the type of what is added.
    pub(super) fn copy_box<'c>(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        what: &PlacedBox<'c>,
        last: IntValue<'c>,
    ) -> Res<()> {
        let at = (0..MOST_DIMENSIONS).map(|i| what.at.get(i).copied().unwrap_or(e.int(0)));
        let all = [what.map].into_iter().chain(at).chain([what.shared, last, self.place(e)]);
        let args: Vec<BasicValueEnum<'c>> = all.map(Into::into).collect();
        self.call(&Place::of(e), name, None, &args).map(|_| ())
    }

    pub(super) fn call<'c>(
        &self,
        at: &Place<'_, 'c>,
        name: &str,
        result: Option<BasicTypeEnum<'c>>,
        args: &[BasicValueEnum<'c>],
    ) -> Res<Option<BasicValueEnum<'c>>> {
        let context = at.function.get_nth_param(0);
        let Some(context) = context else { return bug("a kernel has a context") };
        let mut all: Vec<BasicMetadataValueEnum<'c>> = vec![context.into()];
        all.extend(args.iter().map(|a| BasicMetadataValueEnum::from(*a)));
        let mut types: Vec<BasicMetadataTypeEnum<'c>> = vec![context.get_type().into()];
        types.extend(args.iter().map(|a| BasicMetadataTypeEnum::from(a.get_type())));
        let ty = match result {
            Some(r) => r.fn_type(&types, false),
            None => at.context.void_type().fn_type(&types, false),
        };
        let function = at.module.get_function(name).unwrap_or_else(|| at.module.add_function(name, ty, None));
        Ok(at.builder.build_call(function, &all, "")?.try_as_basic_value().basic())
    }

    pub(super) fn int_call<'c>(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        args: &[BasicValueEnum<'c>],
    ) -> Res<IntValue<'c>> {
        self.int_call_of(e, name, e.i32().into(), args)
    }

    pub(super) fn int_call_of<'c>(
        &self,
        e: &Emit<'_, 'c>,
        name: &str,
        result: BasicTypeEnum<'c>,
        args: &[BasicValueEnum<'c>],
    ) -> Res<IntValue<'c>> {
        match self.call(&Place::of(e), name, Some(result), args)? {
            Some(x) => Ok(x.into_int_value()),
            None => bug("a call gave nothing"),
        }
    }

    /// Space in the frame of the kernel for the elements of one access.
    pub(super) fn alloca<'c>(&self, e: &Emit<'_, 'c>, access: &Access<'c>) -> Res<PointerValue<'c>> {
        let here = e.builder.get_insert_block();
        let entry = e.function.get_first_basic_block();
        let (Some(here), Some(entry)) = (here, entry) else { return bug("no block is open") };
        match entry.get_first_instruction() {
            Some(first) => e.builder.position_before(&first),
            None => e.builder.position_at_end(entry),
        }
        let alloca = e.builder.build_alloca(access.ty.array_type(access.count), "")?;
        e.builder.position_at_end(here);
        if let Some(inst) = alloca.as_instruction() {
            // The widest access is aligned to its size.
            let _ = inst.set_alignment(16);
        }
        Ok(alloca)
    }

    /// Space in the frame with these words.
    pub(super) fn words_alloca<'c>(
        &self,
        e: &Emit<'_, 'c>,
        words: &[BasicValueEnum<'c>],
    ) -> Res<PointerValue<'c>> {
        let count = words.len() as u32;
        let access = Access::of(e.int(0), 0, e.i32().into(), 4, count);
        let alloca = self.alloca(e, &access)?;
        for (i, x) in words.iter().enumerate() {
            e.builder.build_store(self.word(e, alloca, i)?, *x)?;
        }
        Ok(alloca)
    }

    /// The words of a space in the frame, of the types of these.
    pub(super) fn words_back<'c>(
        &self,
        e: &Emit<'_, 'c>,
        alloca: PointerValue<'c>,
        like: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let one = |(i, x): (usize, &BasicValueEnum<'c>)| {
            Ok(e.builder.build_load(x.get_type(), self.word(e, alloca, i)?, "")?)
        };
        like.iter().enumerate().map(one).collect()
    }

    /// The words that a lane receives of an instruction by which a warp reads shared memory together.
    pub(super) fn load_together<'c>(
        &self,
        e: &Emit<'_, 'c>,
        (name, how): (&str, &[BasicValueEnum<'c>]),
        (address, offset): (IntValue<'c>, i64),
        words: u32,
    ) -> Res<Vec<IntValue<'c>>> {
        let by = address.get_type().const_int(offset.cast_unsigned(), true);
        let at = e.builder.build_int_add(address, by, "")?;
        let alloca = self.alloca(e, &Access::of(address, offset, e.i32().into(), 4, words))?;
        let args = [&[at.into()], how, &[alloca.into(), self.place(e).into()]].concat();
        self.call(&Place::of(e), name, None, &args)?;
        let one = |i| Ok(e.builder.build_load(e.i32(), self.word(e, alloca, i)?, "")?.into_int_value());
        (0..words as usize).map(one).collect()
    }

    pub(super) fn word<'c>(
        &self,
        e: &Emit<'_, 'c>,
        alloca: PointerValue<'c>,
        i: usize,
    ) -> Res<PointerValue<'c>> {
        // SAFETY: the index is below the number of words of the space.
        Ok(unsafe { e.builder.build_in_bounds_gep(e.i32(), alloca, &[e.int(i as u32)], "")? })
    }

    /// The descriptor of an operand at an offset in bytes.
    pub(super) fn descriptor<'c>(
        &self,
        e: &Emit<'_, 'c>,
        operand: &SharedOperand<'c>,
        offset: i64,
    ) -> Res<IntValue<'c>> {
        let (b, long) = (e.builder, e.context.i64_type());
        let address = b.build_int_add(operand.address, e.int(offset as u32), "")?;
        let address = b.build_right_shift(address, e.int(4), false, "")?;
        let address = b.build_int_z_extend(address, long, "")?;
        Ok(b.build_or(address, long.const_int(crate::target::nvptx::descriptor(operand), false), "")?)
    }

    pub(super) fn element<'c>(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        alloca: PointerValue<'c>,
        i: usize,
    ) -> Res<PointerValue<'c>> {
        // SAFETY: the index is below the number of elements of the space.
        Ok(unsafe { e.builder.build_in_bounds_gep(access.ty, alloca, &[e.int(i as u32)], "")? })
    }

    pub(super) fn touch<'c>(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        alloca: PointerValue<'c>,
        store: bool,
    ) -> Res<()> {
        // The other form of an address is exercised here as well.
        let address = match access.near {
            Some(near) => e.builder.build_int_add(near.base, e.extend(near.distance, false)?, "")?,
            None => access.address,
        };
        let by = address.get_type().const_int(access.offset.cast_unsigned(), true);
        let address = e.builder.build_int_add(address, by, "")?;
        let name = match (space, store) {
            (Space::Global, false) => "tk_sim_load",
            (Space::Global, true) => "tk_sim_store",
            (Space::Shared, false) => "tk_sim_shared_load",
            (Space::Shared, true) => "tk_sim_shared_store",
        };
        // The simulator's accesses are aligned: one that is not has a call for each element.
        let size = access.bytes * access.count;
        let step = size.min(access.alignment);
        for at in (0..size).step_by(step as usize) {
            let by = address.get_type().const_int(at.into(), false);
            let address = e.builder.build_int_add(address, by, "")?;
            let own = self.element(e, access, alloca, (at / access.bytes) as usize)?;
            let args = [address.into(), e.int(step).into(), own.into(), self.place(e).into()];
            self.call(&Place::of(e), name, None, &args)?;
        }
        Ok(())
    }
}

/// The position of a call.
pub(super) struct Place<'a, 'c> {
    pub(super) context: &'c inkwell::context::Context,
    pub(super) builder: &'a Builder<'c>,
    pub(super) module: &'a Module<'c>,
    pub(super) function: FunctionValue<'c>,
}

impl<'a, 'c> Place<'a, 'c> {
    pub(super) fn of(e: &Emit<'a, 'c>) -> Place<'a, 'c> {
        Place { context: e.context, builder: e.builder, module: e.module, function: e.function }
    }
}
