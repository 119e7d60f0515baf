//! Emits code for NVIDIA GPUs, as PTX.
//!
//! Operations of LLVM 22 are instructions or intrinsics (`intrinsics.rs` lists those that are not used); the rest is
//! inline assembly. Assembly that accesses memory or involves other threads is `sideeffect` with a `memory` clobber
//! and, for synchronization, `convergent`; LLVM would merge or move it otherwise.

mod atomic;
mod cluster;
mod intrinsics;
mod matrix;
mod mbarrier;
mod memory;
mod message;
mod module;
mod wgmma;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};
use inkwell::{AddressSpace, InlineAsmDialect};
use tk_ops::{DType, ElementwiseOp};
use tk_tile::Loc;
use tk_tile::message::Form;
pub(super) use wgmma::descriptor;

use super::message::{MessageBuffer, Speaks};
use super::uniform::{self, ScalarUnit};
use super::{Access, Atomic, Entry, Failing, Lane, Passed, PlacedBox, Space, Start, TargetEmitter};
use crate::emit::value::word;
use crate::emit::{Emit, Res, bug};
use crate::math::{Approximations, LlvmMath};
use crate::scalar::Width;
use crate::target::request::MmaRequest;
use crate::target::request::PrintedPart;
use crate::target::request::WgmmaOperands;

/// What `ptxas` computes in uniform registers: divisions take vector instructions.
const SCALAR_UNIT: ScalarUnit = ScalarUnit {
    intrinsics: &["llvm.nvvm.read.ptx.sreg.ctaid", "llvm.nvvm.read.ptx.sreg.nctaid"],
    divides: false,
    joins: true,
};

/// NVIDIA GPUs.
#[derive(Debug, Default)]
pub struct Nvptx<'c> {
    message_buffer: MessageBuffer<'c>,
}

impl<'c> Nvptx<'c> {
    /// The barrier of the threads of a program. A single warp needs only a warp barrier.
    fn barrier_scope(&self, e: &Emit<'_, 'c>) -> BarrierScope {
        let threads = e.kernel.options.threads();
        if e.kernel.options.blocks > 1 {
            BarrierScope::Cluster
        } else if threads.warp_bits == 0 {
            BarrierScope::Warp
        } else if e.kernel.options.groups > 1 {
            BarrierScope::Group(threads.count())
        } else if e.producers > 0 {
            BarrierScope::Consumers(threads.count())
        } else {
            BarrierScope::Block
        }
    }

    /// An address in the shared memory of the program: the system may reserve some before it. It begins at a multiple
    /// of the longest period of shared memory layouts.
    fn shared_address(&self, e: &Emit<'_, 'c>, address: IntValue<'c>) -> Res<IntValue<'c>> {
        const NAME: &str = "shared_of_launch";
        const ALIGN: u32 = 1024;
        let memory = e.module.get_global(NAME).unwrap_or_else(|| {
            let bytes = e.context.i8_type().array_type(0);
            let memory = e.module.add_global(bytes, Some(AddressSpace::from(3)), NAME);
            memory.set_alignment(ALIGN);
            memory
        });
        let base = memory.as_pointer_value().const_to_int(e.i32());
        Ok(e.builder.build_int_add(address, base, "")?)
    }

    /// Calls assembly: outputs of one type, inputs.
    fn asm(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        outputs: &[BasicTypeEnum<'c>],
        inputs: &[BasicValueEnum<'c>],
        kind: Kind,
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        let types: Vec<BasicMetadataTypeEnum<'c>> = inputs.iter().map(|x| x.get_type().into()).collect();
        let ty = match outputs {
            [] => e.context.void_type().fn_type(&types, false),
            [one] => one.fn_type(&types, false),
            several => e.context.struct_type(several, false).fn_type(&types, false),
        };
        let has_side_effects = match kind {
            Kind::Pure | Kind::WgmmaOperands => false,
            Kind::Memory | Kind::Convergent => true,
        };
        let clobbers = if has_side_effects { ",~{memory}" } else { "" };
        let constraints = format!("{constraints}{clobbers}");
        let constraints = constraints.trim_start_matches(',').to_string();
        let code = e.context.create_inline_asm(
            ty,
            text.to_string(),
            constraints,
            has_side_effects,
            false,
            Some(InlineAsmDialect::ATT),
            false,
        );
        let args: Vec<BasicMetadataValueEnum<'c>> = inputs.iter().map(|x| (*x).into()).collect();
        let call = e.builder.build_indirect_call(ty, code, &args, "")?;
        let mark = |name: &str| {
            let id = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, e.context.create_enum_attribute(id, 0));
        };
        mark("nounwind");
        if matches!(kind, Kind::Convergent | Kind::WgmmaOperands) {
            mark("convergent");
        }
        Ok(match (outputs, call.try_as_basic_value().basic()) {
            ([], _) => vec![],
            ([_], Some(x)) => vec![x],
            (several, Some(x)) => {
                let all = x.into_struct_value();
                (0..several.len())
                    .map(|i| Ok(e.builder.build_extract_value(all, i as u32, "")?))
                    .collect::<Res<_>>()?
            }
            (_, None) => return bug("assembly gave nothing"),
        })
    }

    /// Calls assembly that returns one value.
    fn one(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        output: BasicTypeEnum<'c>,
        inputs: &[BasicValueEnum<'c>],
    ) -> Res<BasicValueEnum<'c>> {
        match self.asm(e, text, constraints, &[output], inputs, Kind::Memory)?.first() {
            Some(x) => Ok(*x),
            None => bug("assembly gave nothing"),
        }
    }
}

/// A barrier of all threads of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarrierScope {
    /// Of the blocks of a cluster.
    Cluster,
    /// Of one warp.
    Warp,
    /// Of this many threads, of a warpgroup.
    Group(u32),
    /// Of this many threads, without the producer warps of the block.
    Consumers(u32),
    /// Of a block.
    Block,
}

impl BarrierScope {
    /// As assembly.
    fn text(self) -> String {
        match self {
            BarrierScope::Cluster => {
                "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;".to_string()
            }
            BarrierScope::Warp => "bar.warp.sync -1;".to_string(),
            // Programs with several groups have no barrier of all programs, which alone is text.
            BarrierScope::Group(threads) | BarrierScope::Consumers(threads) => {
                format!("bar.sync 1, {threads};")
            }
            BarrierScope::Block => "bar.sync 0;".to_string(),
        }
    }
}

/// The effects of assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// None.
    Pure,
    /// The lanes of a warp compute together.
    WgmmaOperands,
    /// It accesses memory.
    Memory,
    /// Threads synchronize.
    Convergent,
}

/// What is known when a kernel starts.
fn start<'a, 'c>(e: &Emit<'a, 'c>) -> Start<'a, 'c> {
    Start { context: e.context, builder: e.builder, module: e.module, function: e.function, kernel: e.kernel }
}

/// A 32-bit special register, such as `tid.x`.
fn special<'c>(start: &Start<'_, 'c>, name: &str) -> Res<IntValue<'c>> {
    let i32 = start.context.i32_type();
    let name = format!("llvm.nvvm.read.ptx.sreg.{name}");
    let function = start
        .module
        .get_function(&name)
        .unwrap_or_else(|| start.module.add_function(&name, i32.fn_type(&[], false), None));
    let call = start.builder.build_call(function, &[], "")?;
    match call.try_as_basic_value().basic() {
        Some(x) => Ok(x.into_int_value()),
        None => bug("a register gave nothing"),
    }
}

impl<'c> TargetEmitter<'c> for Nvptx<'c> {
    fn enter(&self, start: &Start<'_, 'c>) -> Res<Entry<'c>> {
        let Passed { params, programs, control, maps } = Passed::of(start)?;
        self.message_buffer.begin(start, control)?;
        let long = start.context.i64_type();
        let maps =
            maps.iter().map(|m| Ok(start.builder.build_ptr_to_int(m.into_pointer_value(), long, "")?));
        let maps = maps.collect::<Res<_>>()?;
        Ok(Entry { tid: cluster::thread(start)?, programs, params, maps })
    }

    fn at(&self, loc: Option<Loc>) {
        self.message_buffer.loc.set(loc);
    }

    fn constant_space(&self) -> AddressSpace {
        AddressSpace::from(4)
    }

    fn program_id(&self, e: &Emit<'_, 'c>, axis: u32) -> Res<IntValue<'c>> {
        let names = if e.kernel.options.blocks > 1 {
            ["clusterid.x", "clusterid.y", "clusterid.z"]
        } else {
            ["ctaid.x", "ctaid.y", "ctaid.z"]
        };
        special(&start(e), names.get(axis as usize).copied().unwrap_or(names[0]))
    }

    fn global_timer(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let long = e.context.i64_type().into();
        let read = self.asm(e, "mov.u64 $0, %globaltimer;", "=l", &[long], &[], Kind::Memory)?;
        read.first().map_or_else(|| bug("a register gave nothing"), |x| Ok(x.into_int_value()))
    }

    fn multiprocessor(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        let read = self.asm(e, "mov.u32 $0, %smid;", "=r", &[e.i32().into()], &[], Kind::Memory)?;
        read.first().map_or_else(|| bug("a register gave nothing"), |x| Ok(x.into_int_value()))
    }

    fn cluster_arrive(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "barrier.cluster.arrive.relaxed.aligned", &[]).map(|_| ())
    }

    fn remote_store(
        &self,
        e: &Emit<'_, 'c>,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
        barrier: IntValue<'c>,
    ) -> Res<()> {
        self.post_to_all(e, access, values, barrier)
    }

    fn cluster_wait(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "barrier.cluster.wait.aligned", &[]).map(|_| ())
    }

    fn load(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        other: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.read(e, space, access, other)
    }

    fn store(
        &self,
        e: &Emit<'_, 'c>,
        space: Space,
        access: &Access<'c>,
        values: &[BasicValueEnum<'c>],
    ) -> Res<()> {
        self.put(e, space, access, values)
    }

    fn prefetch(&self, e: &Emit<'_, 'c>, access: &Access<'c>) -> Res<()> {
        self.ask_for(e, access)
    }

    fn async_copy(&self, e: &Emit<'_, 'c>, from: &Access<'c>, to: &Access<'c>) -> Res<()> {
        self.copy_ahead(e, from, to)
    }

    fn async_commit(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "cp.async.commit.group", &[]).map(|_| ())
    }

    fn async_wait(&self, e: &Emit<'_, 'c>, pending: u32) -> Res<()> {
        self.intrinsic(e, "cp.async.wait.group", &[e.int(pending).into()]).map(|_| ())
    }

    fn shuffle(&self, e: &Emit<'_, 'c>, value: IntValue<'c>, lane: Lane<'c>) -> Res<IntValue<'c>> {
        self.shfl(e, value, lane)
    }

    fn load_matrices(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        offset: i64,
        matrices: u32,
        transposed: bool,
    ) -> Res<Vec<IntValue<'c>>> {
        self.ldmatrix(e, address, offset, matrices, transposed)
    }

    fn store_matrices(
        &self,
        e: &Emit<'_, 'c>,
        (address, offset): (IntValue<'c>, i64),
        words: &[BasicValueEnum<'c>],
        transposed: bool,
    ) -> Res<()> {
        self.stmatrix(e, (address, offset), words, transposed)
    }

    fn multiply(
        &self,
        e: &Emit<'_, 'c>,
        product: &MmaRequest,
        a: &[BasicValueEnum<'c>],
        b: &[BasicValueEnum<'c>],
        c: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.mma(e, product, a, b, c)
    }

    fn wgmma_issue(
        &self,
        e: &Emit<'_, 'c>,
        what: &WgmmaOperands<'c>,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.wgmma(e, what, acc)
    }

    fn schedule_after(&self, e: &Emit<'_, 'c>, values: &[BasicValueEnum<'c>]) -> Res<()> {
        self.never_before(e, values)
    }

    fn wgmma_wait(
        &self,
        e: &Emit<'_, 'c>,
        pending: u32,
        acc: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.wgmma_wait(e, pending, acc)
    }

    fn opaque_value(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        let wide = x.get_type().get_bit_width() == 64;
        let (text, constraints) =
            if wide { ("mov.b64 $0, $1;", "=l,l") } else { ("mov.b32 $0, $1;", "=r,r") };
        let out = self.asm(e, text, constraints, &[x.get_type().into()], &[x.into()], Kind::Memory)?;
        let Some(x) = out.first() else { return bug("a number was lost") };
        Ok(x.into_int_value())
    }

    /// `ptxas` sees through moves, so the word is changed by bits that are 0, which depend on what comes before: by those of a mask that no
    /// lane has, since the first lane is after none. LLVM must not know of any bit that it is 0: it would use that half of the word as it was.
    fn opaque_word(&self, e: &Emit<'_, 'c>, x: IntValue<'c>, after: IntValue<'c>) -> Res<IntValue<'c>> {
        let (b, later_lanes) = (e.builder, special(&start(e), "lanemask.gt")?);
        let mask = b.build_int_neg(b.build_and(later_lanes, e.int(1), "")?, "")?;
        let zero = b.build_and(mask, b.build_not(after, "")?, "")?;
        Ok(b.build_xor(x, zero, "")?)
    }

    fn set_max_registers(&self, e: &Emit<'_, 'c>, count: u32) -> Res<()> {
        let way = if count < e.kernel.registers_of_launch() { "dec" } else { "inc" };
        self.intrinsic(e, &format!("setmaxnreg.{way}.sync.aligned.u32"), &[e.int(count).into()]).map(|_| ())
    }

    fn elect(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        // After a comparison of lanes the assembler would generate a loop around every copy.
        let text = "{ .reg .pred p; elect.sync _|p, -1; selp.b32 $0, 1, 0, p; }";
        let out = self.asm(e, text, "=r", &[e.i32().into()], &[], Kind::Convergent)?;
        let Some(x) = out.first() else { return bug("an election gave nothing") };
        Ok(e.builder.build_int_compare(inkwell::IntPredicate::NE, x.into_int_value(), e.int(0), "")?)
    }

    fn mbarrier_init(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, arrivals: u32) -> Res<()> {
        self.begin_phase(e, address, arrivals)
    }

    fn mbarriers_ready(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.show_phases(e)
    }

    fn mbarrier_expect(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, bytes: u32) -> Res<()> {
        self.expect_bytes(e, address, bytes)
    }

    fn mbarrier_arrive(
        &self,
        e: &Emit<'_, 'c>,
        address: IntValue<'c>,
        block: Option<IntValue<'c>>,
        predicate: IntValue<'c>,
    ) -> Res<()> {
        self.arrive(e, address, block, predicate)
    }

    fn mbarrier_wait(&self, e: &Emit<'_, 'c>, address: IntValue<'c>, parity: IntValue<'c>) -> Res<()> {
        self.wait_for_phase(e, address, parity)
    }

    fn tma_load(
        &self,
        e: &Emit<'_, 'c>,
        what: &PlacedBox<'c>,
        barrier: IntValue<'c>,
        ranks: Option<IntValue<'c>>,
    ) -> Res<()> {
        self.copy_box(e, what, barrier, ranks)
    }

    fn prefetch_tensor_map(&self, e: &Emit<'_, 'c>, map: IntValue<'c>) -> Res<()> {
        self.asm(e, "prefetch.tensormap [$0];", "l", &[], &[map.into()], Kind::Memory).map(|_| ())
    }

    fn cluster_rank(&self, e: &Emit<'_, 'c>) -> Res<IntValue<'c>> {
        special(&start(e), "cluster.ctarank")
    }

    /// What others must see is released by the fence behind the initialization of mbarriers; to release again would wait for memory.
    fn cluster_sync(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "barrier.cluster.arrive.relaxed", &[])?;
        self.intrinsic(e, "barrier.cluster.wait", &[]).map(|_| ())
    }

    fn tma_store(&self, e: &Emit<'_, 'c>, what: &PlacedBox<'c>, adds: Option<DType>) -> Res<()> {
        self.store_box(e, what, adds.is_some())
    }

    fn wait_tma_stores(&self, e: &Emit<'_, 'c>, left: bool) -> Res<()> {
        self.wait_for_boxes(e, left)
    }

    fn complete_products(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.wgmma_wait(e, 0, &[]).map(|_| ())
    }

    /// `ptxas` computes with uniform registers only where it knows all branches around to be uniform. In programs with several
    /// warpgroups, whose lanes lack registers, a vote says that the others are.
    fn uniform(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<IntValue<'c>> {
        let is_condition = x.get_type().get_bit_width() == 1;
        if !is_condition || e.group.is_none() || e.is_alone || uniform::is_known(e, SCALAR_UNIT, x) {
            return Ok(x);
        }
        Ok(self.given(e, "vote.any.sync", &[self.all_lanes(e), x.into()])?.into_int_value())
    }

    fn barrier_all_warps(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.block_barrier(e)
    }

    fn barrier_warp(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.intrinsic(e, "bar.warp.sync", &[self.all_lanes(e)]).map(|_| ())
    }

    fn proxy_fence(&self, e: &Emit<'_, 'c>, global: bool) -> Res<()> {
        let text = if global { "fence.proxy.async;" } else { "fence.proxy.async.shared::cta;" };
        self.asm(e, text, "", &[], &[], Kind::Memory).map(|_| ())
    }

    fn tf32(&self, e: &Emit<'_, 'c>, x: IntValue<'c>) -> Res<BasicValueEnum<'c>> {
        self.round_to_tf32(e, x)
    }

    /// A barrier has preceded, and PTX's release covers earlier writes of the other threads.
    fn release_fence(&self, _: &Emit<'_, 'c>, _: &str) -> Res<()> {
        Ok(())
    }

    fn barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        match self.barrier_scope(e) {
            BarrierScope::Cluster => {
                self.intrinsic(e, "barrier.cluster.arrive.aligned", &[])?;
                self.intrinsic(e, "barrier.cluster.wait.aligned", &[])?;
            }
            BarrierScope::Warp => {
                self.barrier_warp(e)?;
            }
            BarrierScope::Group(threads) => {
                let Some(group) = e.group else { return bug("a thread is in no warpgroup") };
                let barrier = e.builder.build_int_nuw_add(group, e.int(1), "")?.into();
                let threads = e.int(threads).into();
                self.intrinsic(e, "barrier.cta.sync.aligned.count", &[barrier, threads])?;
            }
            BarrierScope::Consumers(threads) => {
                let (barrier, threads) = (e.int(1).into(), e.int(threads).into());
                self.intrinsic(e, "barrier.cta.sync.aligned.count", &[barrier, threads])?;
            }
            BarrierScope::Block => {
                self.block_barrier(e)?;
            }
        }
        Ok(())
    }

    fn loop_header(&self, e: &Emit<'_, 'c>, waits: bool) -> Res<()> {
        if waits { self.waits(e) } else { Ok(()) }
    }

    fn grid_barrier(&self, e: &Emit<'_, 'c>) -> Res<()> {
        self.meet_all(e)
    }

    fn register(&self, e: &Emit<'_, 'c>, letter: &str, _: BasicTypeEnum<'c>) -> Option<BasicTypeEnum<'c>> {
        Some(match letter {
            "b" => e.context.bool_type().into(),
            "h" => word(e.context, 16).into(),
            "r" => e.i32().into(),
            "l" => e.i64().into(),
            "f" => e.context.f32_type().into(),
            "d" => e.context.f64_type().into(),
            _ => return None,
        })
    }

    fn register_letters(&self) -> &'static str {
        "b, h, r, l, f and d"
    }

    fn assembly(
        &self,
        e: &Emit<'_, 'c>,
        text: &str,
        constraints: &str,
        outs: &[BasicTypeEnum<'c>],
        inputs: &[BasicValueEnum<'c>],
    ) -> Res<Vec<BasicValueEnum<'c>>> {
        self.asm(e, text, constraints, outs, inputs, Kind::Memory)
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
        let address = self.shared_address(e, address)?;
        let mut inputs: Vec<BasicValueEnum<'c>> = vec![address.into()];
        let (mut text, mut constraints) = ("red.shared.add.u32 [$0], 1;".to_string(), "r".to_string());
        if let Some(p) = predicate {
            text = format!("@$1 {text}");
            constraints += ",b";
            inputs.push(p.into());
        }
        self.asm(e, &text, &constraints, &[], &inputs, Kind::Memory).map(|_| ())
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
        super::function(LlvmMath::new(builder, module, Approximations::Ptx), op, width, fast, args)
    }
}
