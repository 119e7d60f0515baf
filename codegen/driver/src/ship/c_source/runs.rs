//! Prints the condition in C that a GPU runs the code of a target.

use tk_bundle::Kernel;
use tk_gpu::target::spec::{self, Later, RunsOn};

/// The condition that a GPU runs the code of a target: `sm_80` runs on its generation from that revision on, `sm_90a`
/// only on its own, `compute_80` on every later one, and a code object only on its architecture (of those that share a compute capability, as gfx906 and
/// gfx90a do).
pub(super) fn runs(target: &str) -> String {
    if let Some(number) = architecture(target) {
        return format!("tki_here->architecture == {number}");
    }
    match spec::target(target).and_then(|t| t.runs_on) {
        Some(RunsOn { major, minor, later }) => match later {
            Later::None => format!("tki_here->major == {major} && tki_here->minor == {minor}"),
            Later::SameMajor => format!("tki_here->major == {major} && tki_here->minor >= {minor}"),
            // All of them are of a generation whose first revision is 0.
            Later::All => format!("tki_here->major >= {major}"),
        },
        None => "0".to_string(),
    }
}

/// The targets of a kernel in the order of its variants: PTX, which runs on all GPUs, comes last.
pub(super) fn targets(kernel: &Kernel) -> Vec<&str> {
    let mut out: Vec<&str> = vec![];
    for v in &kernel.variants {
        if !out.contains(&v.target.as_str()) {
            out.push(&v.target);
        }
    }
    out
}

/// The kernel driver's number of an AMD architecture: gfx90a is 90010, major, minor and stepping with two decimal
/// digits each for the last two, which the name has as one hexadecimal digit each.
fn architecture(target: &str) -> Option<u32> {
    let digits = target.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let rest = u32::from_str_radix(rest, 16).ok()?;
    Some(major.parse::<u32>().ok()? * 10_000 + (rest >> 4) * 100 + (rest & 15))
}
