//! The instruction mix: the number of instructions of each class in a kernel, by their names in SASS or PTX.

use tk_bundle::View;

/// The classes in the order in which they are shown; an instruction is in the first whose beginnings fit its name.
const CLASSES: &[(&str, &[&str])] = &[
    ("matrix", &["HMMA", "IMMA", "DMMA", "QMMA", "HGMMA", "IGMMA", "QGMMA", "WARPGROUP", "mma.", "wgmma"]),
    (
        "global memory",
        &[
            "LDG",
            "STG",
            "LDGSTS",
            "ATOM",
            "RED.",
            "REDG",
            "UTMA",
            "UBLKCP",
            "ld.global",
            "st.global",
            "atom.",
            "red.",
            "cp.async",
            "cp.bulk",
            "prefetch",
        ],
    ),
    ("shared memory", &["LDS", "STS", "LDSM", "STSM", "ld.shared", "st.shared", "ldmatrix", "stmatrix"]),
    ("spills", &["LDL", "STL", "ld.local", "st.local"]),
    (
        "synchronization",
        &[
            "BAR",
            "SYNCS",
            "DEPBAR",
            "LDGDEPBAR",
            "MEMBAR",
            "FENCE",
            "WARPSYNC",
            "ERRBAR",
            "bar.",
            "barrier",
            "mbarrier",
            "fence",
            "membar",
        ],
    ),
    ("shuffle", &["SHFL", "VOTE", "MATCH", "REDUX", "shfl", "vote", "match", "redux"]),
    (
        "control",
        &["BRA", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "NOP", "JMP", "BRX", "bra", "ret", "exit", "call"],
    ),
    ("special functions", &["MUFU", "ex2.", "lg2.", "sqrt", "rsqrt", "rcp", "sin.", "cos.", "tanh"]),
    ("conversion", &["F2F", "F2I", "I2F", "I2I", "FRND", "cvt"]),
    (
        "float",
        &[
            "FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "FCHK", "FSWZ", "HADD", "HMUL", "HFMA",
            "HMNMX", "HSET", "DADD", "DMUL", "DFMA", "DSETP",
        ],
    ),
];

/// The class of the rest.
const REST: &str = "integer and other";

/// Returns true if a name of PTX is one of a float: `add.f32`, `fma.rn.f16x2`.
fn is_float(name: &str) -> bool {
    name.split('.')
        .skip(1)
        .any(|part| part.starts_with("f16") || part.starts_with("bf16") || matches!(part, "f32" | "f64"))
}

/// The number of instructions of each class in a form, SASS or PTX; classes without any are left out.
pub fn mix(view: &View) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<(&'static str, usize)> =
        CLASSES.iter().map(|(name, _)| (*name, 0)).chain([(REST, 0)]).collect();
    for name in view.lines.iter().filter_map(|l| instruction(&l.text)) {
        let found = CLASSES.iter().position(|(_, begins)| begins.iter().any(|b| name.starts_with(b)));
        let float = CLASSES.iter().position(|(class, _)| *class == "float").filter(|_| is_float(name));
        let at = found.or(float).unwrap_or(CLASSES.len());
        counts.iter_mut().skip(at).take(1).for_each(|(_, n)| *n += 1);
    }
    counts.retain(|(_, n)| *n > 0);
    counts
}

/// The name of the instruction of a line, without its predicate.
fn instruction(line: &str) -> Option<&str> {
    let line = line.trim_start();
    // An address precedes SASS: `/*0010*/`.
    let sass = line.starts_with("/*");
    let code = if sass { line.split_once("*/")?.1 } else { line };
    let mut words = code.split_whitespace().skip_while(|w| w.starts_with('@') || *w == "{");
    let name = words.next()?.trim_end_matches(';');
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.ends_with(':');
    (plain && (sass || code.trim_end().ends_with(';'))).then_some(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_their_classes() {
        let lines = [
            "        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;",
            "        /*0020*/              @!P0 FADD R4, R4, R5 ;",
            "        /*0030*/                   IADD3 R4, R4, R5, RZ ;",
            "\t@%p1 ld.global.v4.b32 \t{%r1, %r2, %r3, %r4}, [%rd1];",
            "\tadd.rn.f32 \t%f1, %f2, %f3;",
            "\tadd.s32 \t%r1, %r2, %r3;",
            "$L__BB0_1:",
            ".reg .b32 %r<5>;",
        ];
        let line = |text: &&str| tk_bundle::Line { text: (*text).to_string(), at: None };
        let view = View { name: "all".into(), lines: lines.iter().map(line).collect() };
        assert_eq!(mix(&view), [("global memory", 2), ("float", 2), ("integer and other", 2)]);
    }
}
