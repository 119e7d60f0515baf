//! The facts that a program may ask about the machine that it is compiled for (`target.x`) and the machine that
//! runs it (`device.x`).
//!
//! Guarantees one list for the checker, the evaluator and the messages. A fact says what a machine can do, never who
//! made it.

/// A machine that programs are compiled for: the values of the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// `target.has_async_copy`
    pub has_async_copy: bool,
    /// `target.has_tma`
    pub has_tma: bool,
    /// `target.has_mma`
    pub has_mma: bool,
    /// `target.has_async_mma`
    pub has_async_mma: bool,
    /// `target.has_tf32`
    pub has_tf32: bool,
    /// `target.has_f8`
    pub has_f8: bool,
    /// `target.has_scaled_mma`
    pub has_scaled_mma: bool,
    /// `target.has_clusters`
    pub has_clusters: bool,
    /// `target.has_ptx`
    pub has_ptx: bool,
    /// `target.has_gcn`
    pub has_gcn: bool,
    /// `target.warp_size`
    pub warp_size: u32,
    /// `target.smem`, in bytes.
    pub smem: u32,
    /// `target.l2_caches`
    pub l2_caches: u32,
}

impl Target {
    /// The CPU, which computes everything and has no special instructions for it. Its warps are a figure of speech as
    /// well: as many lanes as most GPUs have.
    pub const CPU: Target = Target {
        has_async_copy: false,
        has_tma: false,
        has_mma: false,
        has_async_mma: false,
        has_tf32: false,
        has_f8: false,
        has_scaled_mma: false,
        has_clusters: false,
        has_ptx: false,
        has_gcn: false,
        warp_size: 32,
        smem: CPU_SMEM,
        l2_caches: 1,
    };
}

impl Default for Target {
    fn default() -> Self {
        Target::CPU
    }
}

/// A fact about the target.
#[derive(Debug)]
pub struct TargetFact {
    /// Its name after `target.`.
    pub name: &'static str,
    /// The documentation.
    pub doc: &'static str,
    /// Its value on a target.
    pub on: fn(&Target) -> FactValue,
}

impl TargetFact {
    /// Its value on the CPU; it has the same type on every target.
    pub fn on_cpu(&self) -> FactValue {
        (self.on)(&Target::CPU)
    }
}

impl PartialEq for TargetFact {
    fn eq(&self, other: &TargetFact) -> bool {
        self.name == other.name
    }
}

impl Eq for TargetFact {}

/// The value of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// Whether the target can do something.
    Bool(bool),
    /// A quantity.
    Int(u32),
}

/// A fact about the device of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFact {
    /// `device.sms`
    Sms,
    /// `device.smem`
    Smem,
}

/// Bytes of shared memory of one program on the CPU, where shared memory is a figure of speech: what the largest
/// GPUs have, so that no kernel is refused there that a GPU would run.
pub const CPU_SMEM: u32 = 227 * 1024;

/// The facts about targets.
pub static TARGET: &[TargetFact] = &[
    TargetFact {
        name: "has_async_copy",
        doc: "copies to shared memory are asynchronous",
        on: |t| FactValue::Bool(t.has_async_copy),
    },
    TargetFact {
        name: "has_tma",
        doc: "one instruction copies a whole tile to or from shared memory",
        on: |t| FactValue::Bool(t.has_tma),
    },
    TargetFact {
        name: "has_mma",
        doc: "matrix instructions for `dot` of f16 and bf16",
        on: |t| FactValue::Bool(t.has_mma),
    },
    TargetFact {
        name: "has_async_mma",
        doc: "these are asynchronous, on operands in shared memory",
        on: |t| FactValue::Bool(t.has_async_mma),
    },
    TargetFact {
        name: "has_tf32",
        doc: "matrix instructions for `dot` of f32, which round to tf32",
        on: |t| FactValue::Bool(t.has_tf32),
    },
    TargetFact {
        name: "has_f8",
        doc: "matrix instructions for `dot` of fp8",
        on: |t| FactValue::Bool(t.has_f8),
    },
    TargetFact {
        name: "has_scaled_mma",
        doc: "matrix instructions for `dot_scaled`",
        on: |t| FactValue::Bool(t.has_scaled_mma),
    },
    TargetFact {
        name: "has_clusters",
        doc: "a program can be split over several blocks by `launch(ctas = n)`",
        on: |t| FactValue::Bool(t.has_clusters),
    },
    TargetFact { name: "has_ptx", doc: "`inline_asm` takes PTX", on: |t| FactValue::Bool(t.has_ptx) },
    TargetFact {
        name: "has_gcn",
        doc: "`inline_asm` takes GCN and CDNA assembly",
        on: |t| FactValue::Bool(t.has_gcn),
    },
    TargetFact {
        name: "warp_size",
        doc: "the number of lanes of a warp",
        on: |t| FactValue::Int(t.warp_size),
    },
    TargetFact {
        name: "smem",
        doc: "bytes of shared memory available to one program",
        on: |t| FactValue::Int(t.smem),
    },
    TargetFact {
        name: "l2_caches",
        doc: "the L2 caches to which the programs of a grid are dealt in turn",
        on: |t| FactValue::Int(t.l2_caches),
    },
];

/// The fact about targets with this name.
pub fn target_fact(name: &str) -> Option<&'static TargetFact> {
    TARGET.iter().find(|f| f.name == name)
}

impl DeviceFact {
    /// All of them.
    pub const ALL: [DeviceFact; 2] = [DeviceFact::Sms, DeviceFact::Smem];

    /// Its name after `device.`.
    pub fn name(self) -> &'static str {
        match self {
            DeviceFact::Sms => "sms",
            DeviceFact::Smem => "smem",
        }
    }

    /// The fact with this name.
    pub fn find(name: &str) -> Option<DeviceFact> {
        DeviceFact::ALL.into_iter().find(|f| f.name() == name)
    }
}
