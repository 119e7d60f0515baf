//! Reports about a binary: the report of `tk build` as JSON, and the warning about spills.
//!
//! Guarantees that the report contains no times and no paths: the same input gives the same bytes.

use serde::Serialize;
use tk_gpu::ArgFacts;
use tk_gpu::ir::kernel::{Remedy, Shortage};
use tk_syntax::{Diagnostic, FileId, Severity, SourceMap, Span, codes};

use crate::compile::binary::Built;
use crate::compile::kernel::{CompiledKernel, KernelParam, KernelParamKind};
use crate::compile::variant::Variant;
use crate::ship::artifact::remarks;

/// The report. Names keep their meaning; new ones may be added.
#[derive(Serialize)]
struct Report<'a> {
    kernel: &'a str,
    /// The values of the compile-time parameters, as the language writes them.
    values: Vec<Value<'a>>,
    target: &'a str,
    variant: String,
    /// The conditions on the arguments of a launch.
    guard: Vec<Guard<'a>>,
    symbol: &'a str,
    threads: u32,
    blocks_per_program: u32,
    /// Shared memory that a launch adds.
    shared_bytes: u32,
    /// Shared memory of the binary itself.
    static_shared_bytes: u32,
    registers: u32,
    stack_bytes: u32,
    spill_store_bytes: u32,
    spill_load_bytes: u32,
    barriers: u32,
    binary_bytes: usize,
    params: Vec<Parameter<'a>>,
    /// A last parameter follows them and the three numbers of programs: the address of control memory.
    control: bool,
    /// The number of messages of the kernel.
    messages: usize,
    /// All programs of a launch must run at the same time.
    cooperative: bool,
    advice: &'a [String],
    /// Where the fastest instructions do not apply, and why.
    remarks: Vec<tk_bundle::Remark>,
    versions: Versions<'a>,
}

#[derive(Serialize)]
struct Value<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Parameter<'a> {
    name: &'a str,
    kind: KernelParamKind,
    dtype: &'static str,
}

/// The conditions on a parameter; an address is in bytes.
#[derive(Serialize)]
struct Guard<'a> {
    parameter: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    divisible: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<i64>,
}

#[derive(Serialize)]
struct Versions<'a> {
    tk: &'static str,
    llvm: String,
    ptxas: &'a str,
}

fn parameter(p: &KernelParam) -> Parameter<'_> {
    Parameter { name: &p.name, kind: p.kind, dtype: p.dtype.name() }
}

fn guard<'a>(param: &'a KernelParam, fact: &ArgFacts) -> Option<Guard<'a>> {
    let divisible = Some(fact.divisible).filter(|d| *d > 1 && !fact.one);
    let equal = fact.one.then_some(1);
    (divisible.is_some() || equal.is_some()).then_some(Guard { parameter: &param.name, divisible, equal })
}

/// The report of a kernel as JSON. `values` are those of its compile-time parameters, `facts` those of its variant.
/// `sources` has the files of its remarks.
pub fn describe(
    kernel: &str,
    values: &[(String, String)],
    (variant, facts): (Variant, &[ArgFacts]),
    built: &Built,
    sources: &SourceMap,
) -> String {
    let (made, resources) = (&built.kernel, &built.cubin.report);
    let report = Report {
        kernel,
        values: values.iter().map(|(name, value)| Value { name, value }).collect(),
        target: made.target.name,
        variant: variant.name(),
        guard: made.params.iter().zip(facts).filter_map(|(p, f)| guard(p, f)).collect(),
        symbol: &made.name,
        threads: made.threads,
        blocks_per_program: made.blocks_per_program,
        shared_bytes: made.shared_bytes,
        static_shared_bytes: resources.static_shared_bytes,
        registers: resources.registers,
        stack_bytes: resources.stack_bytes,
        spill_store_bytes: resources.spill_store_bytes,
        spill_load_bytes: resources.spill_load_bytes,
        barriers: resources.barriers,
        binary_bytes: built.cubin.bytes.len(),
        params: made.params.iter().map(parameter).collect(),
        control: made.has_grid_barrier || !made.messages.is_empty(),
        messages: made.messages.len(),
        cooperative: made.has_grid_barrier,
        advice: &resources.advice,
        remarks: remarks(&made.remarks, sources),
        versions: Versions {
            tk: env!("CARGO_PKG_VERSION"),
            llvm: crate::llvm_version(),
            ptxas: &resources.assembler,
        },
    };
    // Text, numbers and lists can always be serialized.
    let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
    text.push('\n');
    text
}

/// The warnings about fallbacks of a kernel for which shared memory does not suffice. `name` is that of the
/// specialization.
pub fn shortages(name: &str, kernel: &CompiledKernel, place: Span) -> Vec<Diagnostic> {
    let target = kernel.target.name;
    let warning = |s: &Shortage| {
        let place = s.loc.map_or(place, |l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
        let (code, message, label, note) = match s.remedy {
            Remedy::Stages { asked, fits } => (
                codes::SHALLOW,
                format!(
                    "a loop of `{name}` has {fits} of {asked} stages: no more fit in the shared memory of `{target}`"
                ),
                "this loop",
                "use smaller tiles or fewer stages",
            ),
            Remedy::Chunks { k, chunk } => (
                codes::OPERANDS,
                format!(
                    "a product of `{name}` is computed in {} chunks along K: its operands do not fit in the shared memory of `{target}`",
                    k.div_ceil(chunk.max(1))
                ),
                "this product",
                "use a smaller tile along K",
            ),
            Remedy::Registers => (
                codes::OPERANDS,
                format!(
                    "an operand of `{name}` stays in registers: it does not fit in the shared memory of `{target}`"
                ),
                "this operand",
                "each warp that multiplies it loads it; smaller tiles need fewer registers",
            ),
        };
        Diagnostic::error(code, place, message, label).severity(Severity::Warning).note(note)
    };
    kernel.shortages.iter().map(warning).collect()
}

/// The warnings about what the assembler did to a kernel: spills, and its own advice. `name` is that of the specialization.
pub fn assembled(name: &str, built: &Built, place: Span) -> Vec<Diagnostic> {
    let report = &built.cubin.report;
    let lacks_registers = |advice: &str| advice.starts_with(LACKS_REGISTERS);
    // The warning about spills says that, and what helps.
    let told = |advice: &&String| !(report.spills() && lacks_registers(advice));
    let advised = report.advice.iter().filter(told).map(|advice| {
        let message =
            format!("the assembler says about `{name}` for `{}`: {advice}", built.kernel.target.name);
        let d = Diagnostic::error(codes::ADVICE, place, message, "").severity(Severity::Warning);
        d.note(match lacks_registers(advice) {
            true => FEWER_REGISTERS,
            false => "no source can ask for this: please report it, with the kernel",
        })
    });
    spilled(name, built, place).into_iter().chain(advised).collect()
}

/// The code with which the assembler says that products of warpgroups wait for each other because registers do not
/// suffice.
const LACKS_REGISTERS: &str = "C7511";

/// What helps where registers do not suffice.
const FEWER_REGISTERS: &str = "use more warps for one program, or smaller tiles; `max_regs` and `occupancy` of its launch limit registers, too";

/// The warning about a kernel whose registers do not suffice.
fn spilled(name: &str, built: &Built, place: Span) -> Option<Diagnostic> {
    let r = &built.cubin.report;
    if !r.spills() {
        return None;
    }
    let target = &built.kernel.target;
    let spilled =
        format!("{} bytes are spilled to memory and {} reloaded", r.spill_store_bytes, r.spill_load_bytes);
    let limit = target.registers_of_launch(built.kernel.threads.div_ceil(target.warp_size.max(1)));
    let asked = (r.registers + STEP).next_multiple_of(STEP);
    // Without a limit of its own, a kernel that has registers left was given fewer by the assembler.
    let (message, note) = if r.registers > 0 && asked <= limit {
        let message = format!(
            "`{name}` has {} of the {limit} registers of a lane of `{}`, but {spilled}",
            r.registers, target.name
        );
        (
            message,
            format!(
                "the assembler chose fewer registers; `max_regs = {asked}` in its launch may do without spills"
            ),
        )
    } else {
        let message =
            format!("`{name}` needs more registers than a lane of `{}` has: {spilled}", target.name);
        (message, FEWER_REGISTERS.to_string())
    };
    let d = Diagnostic::error(codes::SPILLS, place, message, "");
    Some(d.severity(Severity::Warning).note(note))
}

/// The further registers that `max_regs` is told to allow: 80 became enough by 128 in softmax over 4096 columns, 96 by 128
/// in a product of 16 x 128, and 255 changed nothing.
const STEP: u32 = 32;
