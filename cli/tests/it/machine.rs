//! The instructions of listed kernels, a column for each target: `tests/machine/instructions.txt`, and their code for AMD's
//! targets by a hash: `tests/machine/amd.txt`. TK_BLESS=1 rewrites them.
//!
//! What is counted is the text for the assembler, so that no assembler is needed, by instructions that say how a kernel
//! moves data and multiplies; arithmetic is not listed, since LLVM has the last word there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::building::without_ptxas;
use crate::support::command::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Each with the form in which its assembly is written.
const TARGETS: [(&str, &str); 5] =
    [("sm_80", "ptx"), ("sm_90a", "ptx"), ("gfx90a", "gcn"), ("gfx942", "gcn"), ("gfx1100", "gcn")];

/// How the instructions begin that are counted.
const COUNTED: [&str; 22] = [
    "atom.",
    "bar.",
    "buffer_",
    "cp.async",
    "createpolicy.",
    "ds_",
    "global_",
    "ld.global",
    "ld.shared",
    "ld.volatile",
    "ldmatrix",
    "mma.",
    "prefetch.",
    "red.",
    "s_barrier",
    "s_waitcnt",
    "scratch_",
    "shfl.",
    "st.global",
    "st.shared",
    "v_mfma",
    "v_wmma",
];

/// How AMD's instructions say what they do with caches, after their operands.
const OF_CACHES: [&str; 6] = ["dlc", "glc", "nt", "sc0", "sc1", "slc"];

/// The number of times that each instruction occurs in a text; predicates and braces before it do not count.
fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for statement in text.split([';', '{', '\n']) {
        let mut words = statement.split_whitespace().skip_while(|w| w.starts_with('@'));
        let Some(name) = words.next() else { continue };
        if COUNTED.iter().any(|c| name.starts_with(c)) {
            let caches: String = words.filter(|w| OF_CACHES.contains(w)).flat_map(|w| [" ", w]).collect();
            *found.entry(format!("{}{caches}", name.trim_end_matches(','))).or_insert(0) += 1;
        }
    }
    found
}

/// The texts of a line of the list for a target, with their names, sorted.
fn texts(folder: &Folder, line: &str, (target, form): (&str, &str)) -> Vec<(String, String)> {
    let mut words = line.split_whitespace();
    let file = format!("{ROOT}/{}", words.next().unwrap());
    let mut args = vec!["build", file.as_str(), "--target", target, "--emit", form, "-o", "out"];
    args.extend(words);
    folder.tk(&args).code(0);
    let out = folder.path("out");
    let read = |e: fs::DirEntry| {
        (e.file_name().to_string_lossy().into_owned(), fs::read_to_string(e.path()).unwrap())
    };
    let mut texts: Vec<_> = fs::read_dir(&out).unwrap().flatten().map(read).collect();
    texts.sort();
    fs::remove_dir_all(out).unwrap();
    texts
}

/// Compiled once, looked at twice. `instructions.txt` has the instructions of the aligned variant of the first kernel of a
/// file, by name. `amd.txt` has the assembly for AMD's targets, every variant, by a hash: what changes there changes the code
/// that these targets run. The hash is of the text, which holds the metadata too and no version of a tool.
#[test]
fn code_of_the_listed_kernels_is_what_was_reviewed() {
    let [list, hashes] = ["instructions.txt", "amd.txt"].map(|name| format!("{ROOT}/tests/machine/{name}"));
    let old = fs::read_to_string(&list).unwrap();
    let folder = Folder::new("machine-code");
    let mut new = String::new();
    let old_hashes = fs::read_to_string(&hashes).unwrap_or_default();
    let heads = old_hashes.lines().take_while(|l| l.starts_with('#') || l.is_empty());
    let mut amd: String = heads.map(|l| format!("{l}\n")).collect();
    for line in old.lines().filter(|l| !l.starts_with(' ')) {
        writeln!(new, "{line}").unwrap();
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        writeln!(amd, "{line}").unwrap();
        let columns = TARGETS.map(|(target, form)| {
            let texts = texts(&folder, line, (target, form));
            for (name, text) in texts.iter().filter(|_| form == "gcn") {
                let hash = blake3::hash(text.as_bytes()).to_hex();
                writeln!(amd, "    {} {name}", &hash[..16]).unwrap();
            }
            let aligned = texts.iter().find(|(name, _)| name.contains(".aligned."));
            counts(&aligned.unwrap_or(&texts[0]).1)
        });
        let names: Vec<&String> = columns.iter().flat_map(BTreeMap::keys).collect();
        let names: std::collections::BTreeSet<&String> = names.into_iter().collect();
        let heads: String = TARGETS.iter().map(|t| format!("{:>8}", t.0)).collect();
        writeln!(new, "    {:<52}{heads}", "").unwrap();
        for name in names {
            let n = |i: usize| columns[i].get(name).copied().unwrap_or(0);
            let numbers: String = (0..TARGETS.len()).map(|i| format!("{:>8}", n(i))).collect();
            writeln!(new, "    {name:<52}{numbers}").unwrap();
        }
    }
    let mut snapshots = tk_snapshot::Snapshots::new();
    snapshots.check(list, &new);
    snapshots.check(hashes, &amd);
    snapshots.finish();
}

/// What a code object says of a kernel is what a launch does: the arguments are laid out as in C, the three numbers
/// of programs after them, and blocks have their lanes and shared memory.
#[test]
fn metadata_for_amd_is_what_a_launch_does() {
    let folder = Folder::new("machine-metadata");
    folder.write(
        "k.tk",
        "kernel k(p: *mut f32, a: i8, b: f64, x: view[f16, 1], on: bool)\n    grid(1)\n    launch(warps = 2)\n{\n    \
         let s = sum(x.load([0], [1024]) as f32, axis = 0);\n    \
         store(p, s + (a as f32) + (b as f32) + (if on { 1.0 } else { 0.0 }));\n}\n",
    );
    for (target, lanes) in [("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32)] {
        let args = ["build", "k.tk", "--target", target, "--emit", "gcn,hsaco,report", "-o", "out"];
        folder.tk(&args).code(0);
        let name = format!("out/k.{target}");
        let text = fs::read_to_string(folder.path(&format!("{name}.gcn"))).unwrap();
        let report = fs::read_to_string(folder.path(&format!("{name}.json"))).unwrap();
        let metadata = text.split_once(".amdgpu_metadata").unwrap().1;
        let value = |line: &str, field: &str| -> Option<u64> {
            let line = line.trim().trim_start_matches("- ");
            line.strip_prefix(field)?.strip_prefix(':')?.trim().parse().ok()
        };
        let all = |field: &str| -> Vec<u64> { metadata.lines().filter_map(|l| value(l, field)).collect() };
        // The address, a byte, a double, a view of one dimension, a bool, three numbers of programs.
        assert_eq!(all(".offset"), [0, 8, 16, 24, 32, 40, 48, 52, 56, 60], "{target}");
        assert_eq!(all(".size"), [8, 1, 8, 8, 4, 8, 1, 4, 4, 4], "{target}");
        assert!(!metadata.contains("hidden"), "{target}: the launch passes nothing else");
        assert_eq!(all(".kernarg_segment_size"), [64], "{target}");
        assert_eq!(all(".max_flat_workgroup_size"), [2 * lanes], "{target}");
        assert_eq!(all(".wavefront_size"), [lanes], "{target}");
        assert_eq!(all(".private_segment_fixed_size"), [0], "{target}");
        let shared = all(".group_segment_fixed_size");
        assert!(shared[0] > 0, "{target}: warps meet in a sum");
        // What the binary has is what the schedule gave it.
        assert!(report.contains(&format!("\"shared_bytes\": {}", shared[0])), "{target}: {report}");
        let object = fs::read(folder.path(&format!("{name}.hsaco"))).unwrap();
        assert!(object.starts_with(b"\x7fELF"), "{target}");
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

/// `docs/performance.md` says what makes a load wide or asynchronous.
#[test]
fn promises_make_accesses_wide_and_stages_make_loads_asynchronous() {
    let folder = Folder::new("wide");
    folder.write(
        "k.tk",
        "kernel promised(x: *f32, y: *mut f32, stride: i64) {
    let offs = ((arange(0, 32) as i64) * stride)[:, None] + (arange(0, 32) as i64)[None, :];
    let offs = max_contiguous(multiple_of(offs, 4), 32);
    store(y + offs, load(x + offs));
}
kernel plain(x: *f32, y: *mut f32, stride: i64) prefer(stride > 0) {
    let offs = ((arange(0, 32) as i64) * stride)[:, None] + (arange(0, 32) as i64)[None, :];
    store(y + offs, load(x + offs));
}
kernel ahead(x: view[f32, 1], y: mut view[f32, 1]) {
    let mut s = zeros([1024], f32);
    for i in range(0, 8192, 1024, stages = 3) {
        s += x.load([i], [1024]);
    }
    y.store([0], s);
}
kernel together(x: view[f32, 1], y: mut view[f32, 1]) {
    let mut s = zeros([1024], f32);
    for i in range(0, 8192, 1024) {
        s += x.load([i], [1024]);
    }
    y.store([0], s);
}
",
    );
    folder.tk(&["build", "k.tk", "--target", "sm_80", "--emit", "ptx", "-o", "out"]).code(0);
    for (file, wide, asynchronous) in [
        ("promised.aligned", true, false),
        ("promised", false, false),
        ("plain.aligned", false, false),
        ("together.aligned", true, false),
        ("together", false, false),
        ("ahead.aligned", false, true),
    ] {
        let ptx = std::fs::read_to_string(folder.path(&format!("out/{file}.sm_80.ptx"))).unwrap();
        let loads = ptx.lines().any(|l| l.contains("ld.global") && l.contains("v4"));
        assert_eq!((loads, ptx.contains("cp.async")), (wide, asynchronous), "{file}");
    }
}

/// Rows that begin and end anywhere are read and written 16 bytes at once but where one ends in between.
#[test]
fn rows_for_amd_are_wide_wherever_they_begin() {
    let folder = Folder::new("rows");
    for (target, wide, elements) in [
        ("gfx90a", [("global_load_dwordx4", 2), ("global_store_dwordx4", 2)], ("global_load_ushort", 16)),
        ("gfx942", [("global_load_dwordx4", 2), ("global_store_dwordx4", 2)], ("global_load_ushort", 16)),
        ("gfx950", [("global_load_dwordx4", 2), ("global_store_dwordx4", 2)], ("global_load_ushort", 16)),
        ("gfx1100", [("global_load_b128", 4), ("global_store_b128", 4)], ("global_load_d16_b16", 16)),
    ] {
        let line = "examples/softmax.tk --set T=f16 --set BLOCK=4096";
        let all = texts(&folder, line, (target, "gcn"));
        let (_, general) = all.iter().find(|(name, _)| !name.contains("aligned")).unwrap();
        let found = counts(general);
        for (name, count) in wide.into_iter().chain([elements]) {
            assert_eq!(found.get(name).copied().unwrap_or(0), count, "{target}: {name}");
        }
    }
}

/// A descriptor reaches 2 GiB, from the first element of a program on: rows have the 64 bits of their positions in its address,
/// and lanes whose elements may be farther apart have 64-bit addresses of their own.
#[test]
fn positions_beyond_4_gib_have_64_bits_for_amd() {
    let folder = Folder::new("far");
    for target in ["gfx90a", "gfx942", "gfx1100"] {
        let all = texts(&folder, "tests/machine/far.tk", (target, "gcn"));
        let of = |kernel: &str| {
            let found = all.iter().find(|(name, _)| name.contains(kernel) && name.contains("aligned"));
            &found.unwrap().1
        };
        let (row, column) = (of("row"), of("column"));
        // The high half of an address is that of a product and of a sum.
        for (text, has, lacks) in [
            (row, ["buffer_load", "buffer_store", "s_mul_hi_u32", "s_addc_u32"], "global_"),
            (column, ["global_load", "global_store", "v_mad_u64_u32", "s_addc_u32"], "buffer_"),
        ] {
            for name in has {
                assert!(text.contains(name), "{target}: no {name} in {text}");
            }
            assert!(!text.contains(lacks), "{target}: {lacks} in {text}");
        }
    }
}

/// Operands that shared memory cannot hold are a warning, each time that the kernel is built, and no error; on targets with
/// more of it they are neither.
#[test]
fn operands_that_shared_memory_cannot_hold_are_a_warning() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("machine-operands");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/device/operands.tk"));
    folder.write("operands.tk", text.unwrap());
    let build = |kernel: &str, target: &str| {
        let file = format!("operands.tk::{kernel}");
        folder.tk(&["build", &file, "--target", target, "-o", "out"])
    };
    for _ in 0..2 {
        build("wide", "gfx942").code(0).err_has(
            "warning[W1003]: a product of `wide[BM=128, BN=128, BK=256]` is computed in 2 chunks along K",
        );
        build("scores", "gfx942")
            .code(0)
            .err_has("warning[W1003]: an operand of `scores[D=256, B=128]` stays in registers");
    }
    let enough = build("wide", "sm_90a");
    assert_eq!(enough.code(0).err, "");
}

const KERNEL: &str = "\
kernel fill(y: *mut f32, n: i32) launch(warps = 8) {
    let at = program_id(0) * 1024 + arange(0, 1024);
    store(y + at, 1.0, mask = at < n);
}
";

/// `--dump-after`: what is between two passes, in their order, on every target.
#[test]
fn kernels_after_passes() {
    let folder = Folder::new("dump_after");
    folder.write("k.tk", KERNEL);
    let build = |more: &[&str]| {
        let args =
            ["build", "k.tk", "--target", "sm_90a", "--target", "gfx942", "--emit", "sched", "-o", "out"];
        folder.tk(&[&args, more].concat())
    };
    let all = build(&["--dump-after", "all"]);
    all.code(0);
    let places: Vec<usize> = ["inline_functions", "assign_layouts", "allocate_shared", "insert_barriers"]
        .map(|pass| all.out.find(&format!("for sm_90a after {pass}\n")).unwrap())
        .to_vec();
    assert!(places.is_sorted() && all.out.contains("for gfx942 after split_stores\n"), "{}", all.out);
    // What the last pass leaves is what is written as a file.
    let sched = fs::read_to_string(folder.path("out/fill.sm_90a.sched")).unwrap();
    assert!(all.out.contains(&sched), "{}\n{sched}", all.out);
    let two = build(&["--dump-after", "cluster", "--dump-after", "split_dots"]);
    two.code(0);
    assert_eq!(two.out.matches(" after ").count(), 8, "{}", two.out);
    let json = build(&["--dump-after", "cluster", "--message-format", "json"]);
    json.code(0);
    let dumps = json.out.lines().filter(|l| l.contains(r#""kind":"dump""#));
    assert!(dumps.clone().all(|l| l.contains(r#""pass":"cluster","text":"target "#)), "{}", json.out);
    assert_eq!(dumps.count(), 4);
    let wrong = build(&["--dump-after", "rings"]);
    assert!(
        wrong.code == Some(2) && wrong.err.contains("no pass `rings`; the passes are inline_functions, ")
    );
    let none = folder.tk(&[
        "build",
        "k.tk",
        "--target",
        "sm_90a",
        "--emit",
        "header",
        "-o",
        "out",
        "--dump-after",
        "all",
    ]);
    assert!(
        none.code == Some(2) && none.err.contains("--dump-after needs a form of each kernel"),
        "{}",
        none.err
    );
}
