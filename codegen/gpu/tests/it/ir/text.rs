//! Checks that printing and reading kernels are inverse, and that reading anything gives an answer.

use super::common::{Seen, cases, run_all, tile};
use tk_gpu::ir::op::GpuOp;
use tk_gpu::ir::text::parse;
use tk_gpu::verify::{verify_laid_out, verify_scheduled};
use tk_gpu::{LaidOutModule, ScheduledModule};

const FOLDERS: [&str; 17] = [
    "split_rows",
    "trim_loops",
    "assign_layouts",
    "lower_to_shared",
    "warp_specialize",
    "software_pipeline",
    "tma_stores",
    "hoist_shared_stores",
    "insert_store_waits",
    "rematerialize",
    "cluster",
    "chunk_loads",
    "allocate_shared",
    "insert_barriers",
    "split_stores",
    "reallocate_registers",
    "select_instructions",
];

/// The texts that have layouts: those that begin with what they are compiled for.
fn with_layouts(seen: Seen) -> Vec<String> {
    seen.into_iter().map(|(_, text)| text).filter(|t| t.starts_with("target ")).collect()
}

/// Texts of both stages.
fn texts() -> Vec<String> {
    let mut out = vec![];
    for case in FOLDERS.iter().flat_map(|f| cases(f)) {
        let (module, options) = tile(&case);
        out.extend(with_layouts(run_all(&module, options).unwrap().0));
    }
    out
}

#[test]
fn printing_and_reading_are_inverse() {
    for text in texts() {
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(kernel.to_string(), text);
    }
}

#[test]
fn the_samples_show_every_operation_of_a_machine() {
    let all = texts().concat();
    let shown = |o: &&&str| all.contains(&format!(" {o} ")) || all.contains(&format!(" {o}\n"));
    let missing: Vec<&&str> = GpuOp::NAMES.iter().filter(|o| !shown(o)).collect();
    assert!(missing.is_empty(), "tests/ir/gpu lacks {missing:?}");
}

#[test]
fn what_is_read_verifies() {
    for case in FOLDERS.iter().flat_map(|f| cases(f)) {
        let (module, options) = tile(&case);
        let (seen, _) = run_all(&module, options).unwrap();
        let seen = with_layouts(seen);
        let (first, last) = (parse(&seen[0]).unwrap(), parse(seen.last().unwrap()).unwrap());
        LaidOutModule::new(first).unwrap();
        ScheduledModule::new(last).unwrap();
    }
}

/// Reads a text and, if it is a kernel, does what is done with kernels.
fn survive(text: &str) {
    if let Ok(kernel) = parse(text) {
        let printed = kernel.to_string();
        let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(again.to_string(), printed);
        let _ = verify_laid_out(&kernel);
        let _ = verify_scheduled(&kernel);
    }
}

/// xorshift64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Chunks of lines exchanged, doubled and taken out.
#[test]
fn damaged_texts_give_an_answer() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for text in texts() {
        let all: Vec<&str> = text.split_inclusive([' ', '\n', ',', '[', ']']).collect();
        // As many words of each text, long or short.
        for _ in 0..(120_000 / all.len().max(1)).clamp(8, 120) {
            let mut some = all.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(some.len());
                match random.below(3) {
                    0 => drop(some.remove(at)),
                    1 => some.insert(at, all[random.below(all.len())]),
                    _ => some[at] = all[random.below(all.len())],
                }
            }
            survive(&some.concat());
        }
    }
}

/// Where the first mistake of a text is, and what it is called.
fn mistake(text: &str) -> String {
    parse(text).map(|k| panic!("accepted: {k}")).unwrap_err().to_string()
}

#[test]
fn mistakes_have_places() {
    let k = "kernel @k() {\n  return\n}\n";
    let head = "target sim\nwarps 1\n";
    assert_eq!(mistake(k), "1:1: expected a line `target ..` above");
    assert_eq!(mistake("target nobody\n"), "2:1: before this: there is no target `nobody`");
    assert_eq!(
        mistake(&format!("target sim\nwarps 0\n{k}")),
        "3:1: before this: a program has 1 to 1024 warps"
    );
    assert_eq!(
        mistake(&format!("{head}layout l0 = [1]: register [[2]], lane [], warp []\n{k}")),
        "4:1: before this: the basis [2] of register bit 0 is outside of the tile"
    );
    assert_eq!(
        mistake(&format!("{head}fact 0: divisible 3\n{k}")),
        "4:1: before this: expected a power of two"
    );
    assert_eq!(
        mistake(&format!("{head}buffer 1: 4 bytes at 0\n{k}")),
        "3:9: before this: buffers are numbered from 0"
    );
    assert_eq!(
        mistake(&format!("{head}fn @f() {{}}")),
        "3:1: expected `target`, `warps`, `groups`, `blocks`, `stages`, `registers`, `fact`, `layout`, `buffer`, `vote` or `kernel`"
    );
    assert_eq!(
        mistake(&format!(
            "{head}kernel @k() {{\n  v0 = arange {{start = 0}} : tile[i32, 4] @l0\n  return\n}}\n"
        )),
        "3:1: v0 has the layout `l0`, which is not in the head"
    );
    let tile = "kernel @k() {\n  v0 = arange {start = 0} : tile[i32, 4] @l0\n  return\n}\n";
    assert_eq!(
        tk_tile::text::parse(tile).unwrap_err().to_string(),
        "2:42: layouts are only allowed in later stages"
    );
}
