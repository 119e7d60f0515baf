//! Owns the facts that a program may ask about the machine that it is compiled for (`target.x`) and the machine that
//! runs it (`device.x`).
//!
//! Guarantees one list for the checker, the evaluator and the messages. A fact says what a machine can do, never who
//! made it.

/// A fact about the target.
#[derive(Debug, PartialEq, Eq)]
pub struct TargetFact {
    /// Its name behind `target.`.
    pub name: &'static str,
    /// What it says.
    pub doc: &'static str,
    /// What it is on the CPU.
    pub cpu: FactValue,
}

/// The value of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// Whether the target can do something.
    Bool(bool),
    /// A quantity.
    Int(i32),
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
pub const CPU_SMEM: i32 = 227 * 1024;

/// The facts about targets.
pub static TARGET: &[TargetFact] = &[
    can("has_async_copy", "copies to shared memory run beside the program"),
    can("has_tma", "whole tiles are copied to and from shared memory by one instruction"),
    can("has_mma", "`dot` of f16 and bf16 has instructions of its own"),
    can("has_async_mma", "these run beside the program, on operands in shared memory"),
    can("has_tf32", "`dot` of f32 has instructions that round to tf32"),
    can("has_f8", "`dot` of fp8 has instructions of its own"),
    can("has_scaled_mma", "`dot_scaled` has instructions of its own"),
    can("has_clusters", "the programs of a `ctas` group reach each other's shared memory"),
    can("has_ptx", "`inline_asm` takes PTX"),
    can("has_gcn", "`inline_asm` takes GCN and CDNA assembly"),
    TargetFact { name: "warp_size", doc: "how many lanes execute one instruction", cpu: FactValue::Int(32) },
    TargetFact {
        name: "smem",
        doc: "bytes of shared memory that one program may have",
        cpu: FactValue::Int(CPU_SMEM),
    },
];

/// A capability; the CPU computes everything, and has no special instructions for it.
const fn can(name: &'static str, doc: &'static str) -> TargetFact {
    TargetFact { name, doc, cpu: FactValue::Bool(false) }
}

/// The fact about targets with this name.
pub fn target_fact(name: &str) -> Option<&'static TargetFact> {
    TARGET.iter().find(|f| f.name == name)
}

impl DeviceFact {
    /// All of them.
    pub const ALL: [DeviceFact; 2] = [DeviceFact::Sms, DeviceFact::Smem];

    /// Its name behind `device.`.
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
