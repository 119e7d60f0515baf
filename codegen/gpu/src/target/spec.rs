//! Facts about targets: [`TargetSpec`] states what a target can do, never its vendor.
//!
//! Guarantees that such a number is nowhere else: passes and emission ask here.

use crate::layout::linear::shared::SharedBanks;
use crate::target::mma::{ADA, AMPERE, CDNA2, CDNA3, CDNA4, HOPPER, MmaInstruction, RDNA3, RDNA4};

/// The compute capability of the GPUs that run some code, as reported by the driver. AMD GPUs may have the same, but do
/// not load the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsOn {
    /// Its first number.
    pub major: u32,
    /// Its second number.
    pub minor: u32,
    /// Which later GPUs run it too.
    pub later: Later,
}

/// The GPUs after the first one that run some code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// None: the numbers must be these.
    None,
    /// Those with a larger second number.
    SameMajor,
    /// All.
    All,
}

/// The resources of a multiprocessor. From the table of technical specifications in NVIDIA's programming guide; of
/// AMD's compute units from LLVM's guide to the AMDGPU target and from LLVM's data about each processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// 32-bit registers.
    pub registers: u32,
    /// The granularity in which registers are allocated to a warp.
    pub unit: u32,
    /// Schedulers, each of which runs a share of the warps of a block with its share of the registers.
    pub schedulers: u32,
    /// The most resident warps.
    pub warps: u32,
    /// The most resident blocks.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Bytes of shared memory that the system reserves for each block.
    pub reserved_bytes: u32,
}

impl TargetSpec {
    /// Returns true for the CPU, which has no machine code.
    pub fn is_interpreted(&self) -> bool {
        self.name == CPU.name
    }

    /// The processor that code is generated for.
    pub fn processor(&self) -> &'static str {
        self.oldest.unwrap_or(self.name)
    }

    /// The properties that determine the cost of its accesses to shared memory.
    pub const fn banks(&self) -> SharedBanks {
        SharedBanks {
            count: self.shared_banks,
            vector_bytes: self.vector_bytes,
            stores_gather: !self.has_async_copy,
        }
    }

    /// The simulated version of this target: on the host, whose arithmetic is that of the interpreter.
    const fn simulated(self, name: &'static str) -> TargetSpec {
        TargetSpec {
            name,
            runs_on: None,
            oldest: None,
            has_ptx: false,
            has_gcn: false,
            has_rdna: false,
            has_f16_arithmetic: false,
            has_bf16_fma: false,
            has_bf16_arithmetic: false,
            has_f8_conversion: false,
            float_to_int_saturates: false,
            has_float_min_max: false,
            propagates_nan: false,
            ..self
        }
    }

    /// The number of blocks of a kernel that a multiprocessor runs at once; 0 if not even one fits. Registers of a
    /// lane, threads and bytes of shared memory are those of a block. Registers are allocated to a warp in units, and
    /// warps of a block to schedulers, as in NVIDIA's occupancy calculator.
    pub fn blocks_per_sm(&self, registers: u32, threads: u32, shared_bytes: u32) -> u32 {
        let warps = threads.div_ceil(self.warp_size).max(1);
        let of_warp = (registers.max(1) * self.warp_size).next_multiple_of(self.sm.unit);
        let by_registers = self.sm.registers / self.sm.schedulers / of_warp * self.sm.schedulers / warps;
        let by_shared = self.sm.shared_bytes / (shared_bytes + self.sm.reserved_bytes).max(1);
        by_registers.min(by_shared).min(self.sm.warps / warps).min(self.sm.blocks)
    }

    /// The most registers of a lane in a block of this many warps with which a multiprocessor runs one block.
    pub fn registers_of_launch(&self, warps: u32) -> u32 {
        let of_scheduler = self.sm.registers / self.sm.schedulers / self.sm.unit;
        let of_warp = of_scheduler / warps.div_ceil(self.sm.schedulers).max(1) * self.sm.unit;
        (of_warp / self.warp_size).min(self.registers)
    }
}

/// The capabilities of a target. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSpec {
    /// The name on the command line: `sm_90a`, `sim`.
    pub name: &'static str,
    /// The GPUs that run its code, if their driver reports a compute capability.
    pub runs_on: Option<RunsOn>,
    /// For a target whose binary is PTX, which the driver assembles for the GPU at hand: the oldest GPU that it is for.
    pub oldest: Option<&'static str>,
    /// The oldest version of PTX that has the target, without its point; 0 if its assembly is none.
    pub ptx: u32,
    /// Lanes that execute one instruction.
    pub warp_size: u32,
    /// L2 caches, each of a die, to which the programs of a grid are dealt in turn.
    pub l2_caches: u32,
    /// The most lanes of one program.
    pub max_threads: u32,
    /// The most shared memory of one program.
    pub shared_bytes: u32,
    /// Shared memory that needs no opt-in at the launch.
    pub default_shared_bytes: u32,
    /// Banks of shared memory, four bytes wide each.
    pub shared_banks: u32,
    /// The widest access of one lane to memory.
    pub vector_bytes: u32,
    /// 32-bit registers of one lane.
    pub registers: u32,
    /// The resources of a multiprocessor for all of its resident blocks.
    pub sm: Multiprocessor,
    /// An access at a 32-bit offset from a uniform address does nothing if the offset is out of bounds.
    pub has_bounded_access: bool,
    /// An access to device memory may be as wide as if it were aligned, at any address of an element. RDNA has it too, but lanes
    /// of 256 registers spilled in 6 of 60 plans of `matmul` that used it.
    pub has_unaligned_access: bool,
    /// A load of neighbours at any address of an element is made of two aligned ones, whose words are shifted.
    pub has_shifted_loads: bool,
    /// The cache policies of such an access to data that is used once, for loads and for stores: those that LLVM chooses for
    /// plain nontemporal accesses (`SIMemoryLegalizer`). Bits for `glc` or `sc0` (1), `slc` or `nt` (2), `dlc` (4).
    pub streaming_policies: [u32; 2],
    /// Copies to shared memory can be asynchronous.
    pub has_async_copy: bool,
    /// Bytes that a load moves from the address of each lane to shared memory, those of a warp side by side; 0 if no load does.
    /// Those of 4 bytes, which CDNA3 has, take as many instructions as registers would, and one for each.
    pub direct_load_bytes: u32,
    /// One instruction copies a whole tile.
    pub has_tma: bool,
    /// It has matrix instructions ([`TargetSpec::matrices`]).
    pub has_mma: bool,
    /// The matrix instructions; of those for the same types, the one with more work first.
    pub matrices: &'static [MmaInstruction],
    /// Halves of the warps of a program multiply and access memory in turns: a warp multiplies while another one of its scheduler
    /// reads shared memory, lanes have registers for the operands of an iteration, and a barrier counts the warps that arrive,
    /// wherever they wait.
    pub has_opposite_phases: bool,
    /// It has `ds_read_b64_tr_b16` and `ds_read_b64_tr_b8`: lanes read rows of elements of 16 or 8 bits from shared memory, and
    /// receive columns.
    pub has_transposed_read: bool,
    /// It has `stmatrix`: the lanes of a warp store matrices of eight rows of 16 bytes to shared memory together.
    pub has_matrix_store: bool,
    /// It has asynchronous matrix products, on operands in shared memory.
    pub has_async_mma: bool,
    /// Warpgroups can release and request registers while they run.
    pub moves_registers: bool,
    /// It has a matrix instruction for f32 rounded to tf32.
    pub has_tf32: bool,
    /// It has a matrix instruction for fp8.
    pub has_f8: bool,
    /// It has a matrix instruction with scales for blocks of elements.
    pub has_scaled_mma: bool,
    /// Blocks of a cluster access each other's shared memory.
    pub has_clusters: bool,
    /// Its assembly is PTX.
    pub has_ptx: bool,
    /// Its assembly is that of GCN and CDNA.
    pub has_gcn: bool,
    /// It is of AMD's RDNA family, whose exchanges between lanes, caches and buffer descriptors differ from those of
    /// CDNA.
    pub has_rdna: bool,
    /// f16 has arithmetic, order (`max`) and conversions.
    pub has_f16_arithmetic: bool,
    /// bf16 has fused multiply-add, order and conversion from f32.
    pub has_bf16_fma: bool,
    /// bf16 has add and multiply, not only fused multiply-add.
    pub has_bf16_arithmetic: bool,
    /// Conversions from and to fp8 are instructions.
    pub has_f8_conversion: bool,
    /// Conversions of floats to integers truncate and saturate; NaN gives 0 where neither side has 64 bits.
    pub float_to_int_saturates: bool,
    /// It has instructions for the minimum and the maximum of two floats of up to 32 bits that ignore NaN, and that
    /// propagate it; both order -0 below +0.
    pub has_float_min_max: bool,
    /// It has instructions for the minimum and the maximum of two or three f32 that propagate NaN.
    pub propagates_nan: bool,
    /// A uniform comparison of 64-bit numbers is one instruction.
    pub has_wide_comparison: bool,
    /// Nanoseconds of a tick of the clock that all programs share.
    pub tick_ns: u32,
    /// The fields of hardware registers that number the processor of a program, the lowest first: register, first bit, bits.
    pub processor_fields: &'static [(u32, u32, u32)],
}

/// NVIDIA Ampere, A100.
pub const SM_80: TargetSpec = TargetSpec {
    name: "sm_80",
    runs_on: Some(RunsOn { major: 8, minor: 0, later: Later::SameMajor }),
    oldest: None,
    ptx: 70,
    warp_size: 32,
    l2_caches: 1,
    max_threads: 1024,
    shared_bytes: 163 << 10,
    default_shared_bytes: 48 << 10,
    shared_banks: 32,
    vector_bytes: 16,
    registers: 255,
    sm: Multiprocessor {
        registers: 64 << 10,
        unit: 256,
        schedulers: 4,
        warps: 64,
        blocks: 32,
        shared_bytes: 164 << 10,
        reserved_bytes: 1 << 10,
    },
    has_bounded_access: false,
    has_unaligned_access: false,
    has_shifted_loads: true,
    streaming_policies: [0, 0],
    has_async_copy: true,
    direct_load_bytes: 0,
    has_tma: false,
    has_mma: true,
    matrices: AMPERE,
    has_opposite_phases: false,
    has_transposed_read: false,
    has_matrix_store: false,
    has_async_mma: false,
    moves_registers: false,
    has_tf32: true,
    has_f8: false,
    has_scaled_mma: false,
    has_clusters: false,
    has_ptx: true,
    has_gcn: false,
    has_rdna: false,
    has_f16_arithmetic: true,
    has_bf16_fma: true,
    has_bf16_arithmetic: false,
    has_f8_conversion: false,
    float_to_int_saturates: true,
    has_float_min_max: true,
    propagates_nan: true,
    has_wide_comparison: true,
    tick_ns: 1,
    processor_fields: &[],
};

/// NVIDIA Ada, RTX 40 and L40S. Its conversions of fp8 are of PTX 8.1.
pub const SM_89: TargetSpec = TargetSpec {
    name: "sm_89",
    runs_on: Some(RunsOn { major: 8, minor: 9, later: Later::None }),
    ptx: 81,
    shared_bytes: 99 << 10,
    sm: Multiprocessor { warps: 48, blocks: 24, shared_bytes: 100 << 10, ..SM_80.sm },
    matrices: ADA,
    has_f8: true,
    has_f8_conversion: true,
    ..SM_80
};

/// NVIDIA Hopper, H100 and H200.
pub const SM_90A: TargetSpec = TargetSpec {
    name: "sm_90a",
    runs_on: Some(RunsOn { major: 9, minor: 0, later: Later::None }),
    ptx: 80,
    shared_bytes: 227 << 10,
    sm: Multiprocessor { shared_bytes: 228 << 10, ..SM_80.sm },
    has_tma: true,
    matrices: HOPPER,
    has_matrix_store: true,
    has_async_mma: true,
    moves_registers: true,
    has_f8: true,
    has_clusters: true,
    has_bf16_arithmetic: true,
    has_f8_conversion: true,
    ..SM_80
};

/// NVIDIA Blackwell, B200. Its matrix products are those of a warp; the ones on operands in tensor memory (`tcgen05`) are
/// not used, nor is TMA, which serves them.
pub const SM_100A: TargetSpec = TargetSpec {
    name: "sm_100a",
    runs_on: Some(RunsOn { major: 10, minor: 0, later: Later::None }),
    ptx: 86,
    matrices: ADA,
    has_tma: false,
    has_async_mma: false,
    ..SM_90A
};

/// NVIDIA Blackwell Ultra, B300.
pub const SM_103A: TargetSpec = TargetSpec {
    name: "sm_103a",
    runs_on: Some(RunsOn { major: 10, minor: 3, later: Later::None }),
    ptx: 88,
    ..SM_100A
};

/// NVIDIA Blackwell of workstations, RTX 50. Its clusters are single blocks.
pub const SM_120A: TargetSpec = TargetSpec {
    name: "sm_120a",
    runs_on: Some(RunsOn { major: 12, minor: 0, later: Later::None }),
    ptx: 87,
    shared_bytes: SM_89.shared_bytes,
    sm: SM_89.sm,
    has_clusters: false,
    ..SM_100A
};

/// Any GPU of NVIDIA from Ampere on: its driver assembles the PTX. Blocks have the shared memory of the smallest of them
/// (compute capability 8.6, 8.9, 12.0).
pub const COMPUTE_80: TargetSpec = TargetSpec {
    name: "compute_80",
    runs_on: Some(RunsOn { major: 8, minor: 0, later: Later::All }),
    oldest: Some(SM_80.name),
    shared_bytes: 99 << 10,
    ..SM_80
};

/// AMD CDNA2, MI210 to MI250X. Half of the 512 registers of a lane are accumulators, which LLVM allocates with the
/// others.
pub const GFX90A: TargetSpec = TargetSpec {
    name: "gfx90a",
    runs_on: Some(RunsOn { major: 9, minor: 0, later: Later::None }),
    oldest: None,
    ptx: 0,
    warp_size: 64,
    l2_caches: 1,
    max_threads: 1024,
    shared_bytes: 64 << 10,
    default_shared_bytes: 64 << 10,
    shared_banks: 32,
    vector_bytes: 16,
    registers: 512,
    sm: Multiprocessor {
        registers: 128 << 10,
        unit: 512,
        schedulers: 4,
        warps: 32,
        blocks: 32,
        shared_bytes: 64 << 10,
        reserved_bytes: 0,
    },
    has_bounded_access: true,
    has_unaligned_access: true,
    has_shifted_loads: false,
    streaming_policies: [1 | 2, 1 | 2],
    has_async_copy: false,
    direct_load_bytes: 0,
    has_tma: false,
    has_mma: true,
    matrices: CDNA2,
    has_opposite_phases: true,
    has_transposed_read: false,
    has_matrix_store: false,
    has_async_mma: false,
    moves_registers: false,
    has_tf32: false,
    has_f8: false,
    has_scaled_mma: false,
    has_clusters: false,
    has_ptx: false,
    has_gcn: true,
    has_rdna: false,
    has_f16_arithmetic: true,
    has_bf16_fma: false,
    has_bf16_arithmetic: false,
    has_f8_conversion: false,
    float_to_int_saturates: false,
    has_float_min_max: false,
    propagates_nan: false,
    has_wide_comparison: false,
    tick_ns: 40,
    // `HW_ID`: CU_ID, SH_ID and SE_ID are adjacent.
    processor_fields: &[(4, 8, 8)],
};

/// AMD CDNA3, MI300A to MI325X.
pub const GFX942: TargetSpec = TargetSpec {
    name: "gfx942",
    runs_on: Some(RunsOn { major: 9, minor: 4, later: Later::None }),
    streaming_policies: [2, 2],
    matrices: CDNA3,
    has_f8: true,
    tick_ns: 10,
    // As before, and `XCC_ID`, the chiplet.
    processor_fields: &[(4, 8, 8), (20, 0, 4)],
    // Of its eight dies ("AMD Instinct MI300 Series microarchitecture", accelerator complex dies).
    l2_caches: 8,
    ..GFX90A
};

/// AMD CDNA4, MI350X and MI355X. Its fp8 is that of other vendors, with a negative zero.
pub const GFX950: TargetSpec = TargetSpec {
    name: "gfx950",
    runs_on: Some(RunsOn { major: 9, minor: 5, later: Later::None }),
    shared_bytes: 160 << 10,
    default_shared_bytes: 160 << 10,
    sm: Multiprocessor { shared_bytes: 160 << 10, ..GFX942.sm },
    matrices: CDNA4,
    direct_load_bytes: 16,
    has_transposed_read: true,
    propagates_nan: true,
    ..GFX942
};

/// AMD RDNA3, Radeon RX 7900. A block runs on one compute unit of a pair: its barriers then wait for shared memory
/// alone.
pub const GFX1100: TargetSpec = TargetSpec {
    name: "gfx1100",
    has_rdna: true,
    runs_on: Some(RunsOn { major: 11, minor: 0, later: Later::None }),
    warp_size: 32,
    registers: 256,
    sm: Multiprocessor {
        registers: 96 << 10,
        unit: 768,
        schedulers: 2,
        warps: 32,
        blocks: 16,
        shared_bytes: 64 << 10,
        reserved_bytes: 0,
    },
    streaming_policies: [2 | 4, 1 | 2 | 4],
    matrices: RDNA3,
    has_opposite_phases: false,
    tick_ns: 10,
    // `HW_ID1`: WGP_ID, SA_ID and SE_ID with what is between them.
    processor_fields: &[(23, 10, 11)],
    ..GFX90A
};

/// AMD RDNA4, Radeon RX 9070.
pub const GFX1201: TargetSpec = TargetSpec {
    name: "gfx1201",
    runs_on: Some(RunsOn { major: 12, minor: 0, later: Later::None }),
    // Policies are numbers, of which this is `TH_NT`.
    streaming_policies: [1, 1],
    matrices: RDNA4,
    has_f8: true,
    propagates_nan: true,
    ..GFX1100
};

/// The simulator with warps of 32 lanes and the capabilities of Hopper.
pub const SIM_32: TargetSpec = TargetSpec { has_clusters: false, ..SM_90A.simulated("sim") };

/// The simulator with warps of 64 lanes and the capabilities of CDNA3.
pub const SIM_64: TargetSpec = GFX942.simulated("sim64");

/// The simulator with warps of 32 lanes and the capabilities of RDNA3.
pub const SIM_WMMA: TargetSpec = GFX1100.simulated("sim-wmma");

/// The simulator with warps of 32 lanes and the capabilities of RTX 50.
pub const SIM_BLACKWELL: TargetSpec = SM_120A.simulated("sim-blackwell");

/// The simulator with warps of 64 lanes and the capabilities of CDNA4.
pub const SIM_CDNA4: TargetSpec = GFX950.simulated("sim-cdna4");

/// The simulator with warps of 32 lanes and the capabilities of RDNA4.
pub const SIM_RDNA4: TargetSpec = GFX1201.simulated("sim-rdna4");

/// The GPUs: the targets that binaries are made for.
pub const GPUS: [&TargetSpec; 12] = [
    &SM_80,
    &SM_89,
    &SM_90A,
    &SM_100A,
    &SM_103A,
    &SM_120A,
    &GFX90A,
    &GFX942,
    &GFX950,
    &GFX1100,
    &GFX1201,
    &COMPUTE_80,
];

/// The CPU, where the interpreter runs tile IR: no machine code is made. Its programs are one lane.
pub const CPU: TargetSpec = TargetSpec { has_async_copy: false, has_mma: false, ..SM_80.simulated("cpu") };

/// The simulators.
const SIMULATORS: [&TargetSpec; 6] = [&SIM_32, &SIM_64, &SIM_WMMA, &SIM_BLACKWELL, &SIM_CDNA4, &SIM_RDNA4];

/// The targets that kernels are built for, by the names of the command line.
pub fn buildable() -> impl Iterator<Item = &'static TargetSpec> {
    GPUS.into_iter().chain([&CPU])
}

/// The targets that code is generated for.
pub fn targets() -> impl Iterator<Item = &'static TargetSpec> {
    GPUS.into_iter().chain(SIMULATORS)
}

/// The target with this name.
pub fn target(name: &str) -> Option<&'static TargetSpec> {
    targets().find(|t| t.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `cudaOccupancyMaxActiveBlocksPerMultiprocessor` on such GPUs.
    #[test]
    fn blocks_of_a_multiprocessor() {
        assert_eq!(SM_90A.blocks_per_sm(32, 256, 0), 8);
        assert_eq!(SM_90A.blocks_per_sm(128, 128, 48 << 10), 4);
        assert_eq!(SM_90A.blocks_per_sm(255, 256, 0), 1);
        assert_eq!(SM_90A.blocks_per_sm(168, 384, 227 << 10), 1);
        assert_eq!(SM_80.blocks_per_sm(16, 32, 0), 32);
        assert_eq!(SM_80.blocks_per_sm(64, 128, 100 << 10), 1);
        assert_eq!(SM_80.blocks_per_sm(64, 128, 200 << 10), 0);
    }

    /// The limits of `ptxas` for blocks of this many warps.
    #[test]
    fn registers_of_a_launch() {
        let warps = [1, 8, 9, 12, 16, 17, 20, 32];
        assert_eq!(warps.map(|w| SM_90A.registers_of_launch(w)), [255, 255, 168, 168, 128, 96, 96, 64]);
    }
}
