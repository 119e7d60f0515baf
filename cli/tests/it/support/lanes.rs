//! Finds, in machine code for AMD, instructions that read registers of other lanes where some lanes are off.
//!
//! A lane that is off gives what its register held before, or nothing. LLVM's own passes have moved such instructions
//! after the narrowing of EXEC (`v_permlanex16_b32`, llvm-project #142962): into the block that `s_cbranch_execz` jumps
//! over, which is straight to its label. Regions with labels inside are left out: they are loops and nested branches of
//! the program, whose conditions are the same in all lanes, though LLVM cannot know that.

/// Returns true if an instruction reads other lanes.
fn crosses_lanes(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    let names = ["ds_swizzle_b32", "ds_bpermute_b32", "ds_permute_b32"];
    names.contains(&name) || name.starts_with("v_permlane") || name.ends_with("_dpp")
}

/// The instructions of a kernel's text that read lanes which are off.
pub fn reads_of_inactive_lanes(asm: &str) -> Vec<String> {
    let mut found = vec![];
    // Where the region that was entered with fewer lanes ends, and what is found in it.
    let mut region: Option<(&str, Vec<String>)> = None;
    for line in asm.lines().map(|l| l.split(';').next().unwrap_or_default().trim()) {
        if let Some(target) = line.strip_prefix("s_cbranch_execz") {
            region = Some((target.trim(), vec![]));
        } else if let Some(label) = line.strip_suffix(':') {
            found.extend(
                region.take().filter(|(end, _)| *end == label).into_iter().flat_map(|(_, inside)| inside),
            );
        } else if let Some((_, inside)) = region.as_mut().filter(|_| crosses_lanes(line)) {
            inside.push(line.to_string());
        }
    }
    found
}

#[test]
fn lanes_that_are_off_are_seen() {
    let text = |inside: &str, after: &str| {
        format!(
            "v_cmpx_eq_u32_e32 0, v0\ns_cbranch_execz .LBB0_2 ; comment\n{inside}\n.LBB0_2:\n\
             s_or_b32 exec_lo, exec_lo, s2\n{after}\ns_endpgm"
        )
    };
    for crossing in ["v_permlanex16_b32 v2, v1, s0, s1", "v_mov_b32_dpp v3, v2 row_half_mirror"] {
        assert_eq!(reads_of_inactive_lanes(&text(crossing, "")), [crossing]);
        assert_eq!(reads_of_inactive_lanes(&text("", crossing)), Vec::<String>::new());
    }
}
