//! `tk build`, `tk cache` and `tk doctor`: what they write, and what they say where a tool or a folder does not work.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::process::Stdio;

use crate::support::command::{self, ADD, Folder, Ran};

/// A kernel that needs nothing, one with an `export`, and one that a launch specializes.
const KERNELS: &str = "\
kernel fill(y: *mut f32, n: i32) grid(cdiv(n, 1024)) launch(warps = 8) {
    let at = program_id(0) * 1024 + arange(0, 1024);
    store(y + at, 1.0, mask = at < n);
}

kernel scale[T: float, BLOCK: i32 = 256](x: *T, y: *mut T, n: i32) grid(cdiv(n, BLOCK)) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * 2.0, mask = at < n);
}

export scale[T = [f16, f32], BLOCK = [256, 512]];

kernel rows[BLOCK: i32 = next_pow2(x.shape[1])](x: view[f32, 2], y: mut view[f32, 1]) grid(x.shape[0]) {
    y.store([program_id(0)], sum(x.load([program_id(0), 0], [1, BLOCK])));
}
";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("k.tk", KERNELS).write("add.tk", ADD);
    folder
}

/// Runs the command with a cache in the folder and these variables.
fn tk(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = command::command(&folder.path(""), args);
    for name in ["TK_CACHE", "TK_CACHE_SIZE", "TK_PTXAS", "TK_VENV", "XDG_CACHE_HOME"] {
        command.env_remove(name);
    }
    command.env("TK_CACHE_DIR", folder.path("cache")).envs(variables.iter().copied());
    command.stdin(Stdio::null());
    Ran::new(command.output().unwrap())
}

fn names(folder: &Folder, inner: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.path(inner)).map(|e| e.flatten().collect()).unwrap_or(vec![]);
    let mut names: Vec<String> = entries.iter().map(|e| e.file_name().to_string_lossy().into()).collect();
    names.sort();
    names
}

#[test]
fn exported_and_complete_kernels_are_built() {
    let folder = folder("build-exports");
    let ran = tk(&folder, &["build", "k.tk", "--target", "sm_90a", "--emit", "tile", "-o", "out/deep"], &[]);
    ran.code(0).out_has("scale[T=f16, BLOCK=512]");
    assert_eq!(
        ran.err,
        "note: skipped: kernel `rows` has no `export`, and `BLOCK` has no value without a launch: \
         give --set BLOCK=..\n"
    );
    assert_eq!(
        names(&folder, "out/deep"),
        [
            "fill.sm_90a.tile",
            "scale.T=f16.BLOCK=256.sm_90a.tile",
            "scale.T=f16.BLOCK=512.sm_90a.tile",
            "scale.T=f32.BLOCK=256.sm_90a.tile",
            "scale.T=f32.BLOCK=512.sm_90a.tile",
        ]
    );
    let text = fs::read_to_string(folder.path("out/deep/fill.sm_90a.tile")).unwrap();
    assert!(text.starts_with("kernel @fill("), "{text}");
}

#[test]
fn values_that_are_given_replace_those_of_exports_and_defaults() {
    let folder = folder("build-sets");
    let build = |target: &str, rest: &[&str]| {
        let args = [&["build", target, "--target", "sm_80", "--emit", "tile", "-o", "out"], rest].concat();
        tk(&folder, &args, &[])
    };
    build("k.tk::scale", &["--set", "BLOCK=64"]).code(0);
    build("k.tk::rows", &["--set", "BLOCK=128", "--set", "warps=2"]).code(0);
    build("add.tk", &["--set", "T=f16", "--target", "sm_90a", "--target", "sm_80"]).code(0);
    assert_eq!(
        names(&folder, "out"),
        [
            "add.T=f16.BLOCK=16.sm_80.tile",
            "add.T=f16.BLOCK=16.sm_90a.tile",
            "rows.BLOCK=128.warps=2.sm_80.tile",
            "scale.T=f16.BLOCK=64.sm_80.tile",
            "scale.T=f32.BLOCK=64.sm_80.tile",
        ]
    );
}

#[test]
fn what_cannot_be_built_is_one_sentence_and_leaves_nothing() {
    let folder = folder("build-wrong");
    let cases: &[(&[&str], &[&str])] = &[
        (&["k.tk::rows", "--target", "sm_90a"], &["kernel `rows`", "`BLOCK` has no value", "--set BLOCK=.."]),
        (&["add.tk", "--target", "sm_90a"], &["kernel `add`", "`T` has no value", "--set T=.."]),
        (&["k.tk", "--target", "sm_75"], &["unknown target `sm_75`", "sm_80, sm_89, sm_90a"]),
        (&["k.tk::scal", "--target", "sm_80"], &["no kernel `scal`", "did you mean `scale`"]),
        (&["k.tk", "--target", "sm_80", "--set", "BLOK=1"], &["`BLOK`", "did you mean `BLOCK`"]),
        (&["k.tk::fill", "--target", "sm_80", "--set", "warps=0"], &["`warps`", "must be at least 1"]),
        (&["k.tk::fill", "--target", "sm_80", "--set", "warps=f16"], &["takes a number"]),
        (&["none.tk", "--target", "sm_80"], &["cannot read none.tk"]),
    ];
    for (args, texts) in cases {
        let ran = tk(&folder, &[&["build", "--emit", "tile", "-o", "out"], *args].concat(), &[]);
        ran.code(2);
        for text in *texts {
            ran.err_has(text);
        }
        assert!(!folder.path("out").exists(), "{args:?}");
    }
    folder.write("wrong.tk", "kernel k() { let x = y; }");
    tk(&folder, &["build", "wrong.tk", "--target", "sm_80", "-o", "out"], &[]).code(1).err_has("E0201");
    folder.write("file", "");
    let args = ["build", "k.tk", "--target", "sm_80", "--emit", "tile", "-o", "file/out"];
    tk(&folder, &args, &[]).code(2).err_has("cannot create file/out");
}

#[test]
fn objects_name_the_files() {
    let folder = folder("build-json");
    let args = ["build", "k.tk::fill", "--target", "sm_80", "--emit", "tile", "-o", "out"];
    let ran = tk(&folder, &[&args[..], &["--message-format", "json"]].concat(), &[]);
    ran.code(0);
    assert_eq!(
        ran.out,
        "{\"kind\":\"built\",\"kernel\":\"fill\",\"target\":\"sm_80\",\"variant\":\"general\",\
         \"files\":[\"fill.sm_80.tile\"],\"shared_bytes\":null,\"registers\":null,\"spill_store_bytes\":null,\"spill_load_bytes\":null,\
         \"binary_bytes\":null}\n"
    );
}

#[test]
fn an_assembler_that_does_not_work_is_said_with_what_to_do() {
    let folder = folder("build-ptxas");
    let broken = folder.script("broken", "echo 'libz.so: cannot open' >&2; exit 127");
    let missing = folder.path("missing").to_string_lossy().into_owned();
    folder.write("plain", "no program");
    let plain = folder.path("plain").to_string_lossy().into_owned();
    for (path, what) in
        [(&broken, "libz.so: cannot open"), (&missing, "no such file"), (&plain, "permission denied")]
    {
        let args = ["build", "k.tk::fill", "--target", "sm_90a", "-o", "out"];
        let ran = tk(&folder, &args, &[("TK_PTXAS", path)]);
        ran.code(2).err_has("error[E1002]").err_has("does not work").err_has(what);
        ran.err_has("pip install nvidia-cuda-nvcc-cu12").err_has("k.tk:1:8");
        assert!(!folder.path("out").exists());
        tk(&folder, &["doctor"], &[("TK_PTXAS", path)]).code(0).out_has(what).out_has("pip install");
    }
    let nowhere = [("PATH", ""), ("HOME", "/nonexistent"), ("VIRTUAL_ENV", ""), ("CUDA_HOME", "")];
    let args = ["build", "k.tk::fill", "--target", "sm_90a", "-o", "out"];
    let ran = tk(&folder, &args, &nowhere);
    ran.code(2).err_has("error[E1001]").err_has("pip install nvidia-cuda-nvcc-cu12");
    assert!(!ran.err.contains("k.tk"), "no kernel is to blame: {ran:#?}");
    let short = [&args[..], &["--message-format", "short"]].concat();
    assert!(tk(&folder, &short, &nowhere).err.starts_with("error[E1001]: `ptxas` not found"));
    tk(&folder, &["doctor"], &nowhere)
        .code(0)
        .out_has("ptxas   `ptxas` not found")
        .out_has("nvdisasm `nvdisasm` not found");
    // What needs no assembler works without one.
    let args = ["build", "k.tk::fill", "--target", "sm_90a", "--emit", "tile", "-o", "out"];
    tk(&folder, &args, &nowhere).code(0);
}

#[test]
fn doctor_shows_what_was_found() {
    let folder = folder("doctor");
    let fake = folder.script("ptxas", "echo 'Cuda compilation tools, release 12.9, V12.9.86'");
    let linker = folder.script("lld", "echo 'LLD 19.1.7 (compatible with GNU linkers)'");
    let variables = [("TK_PTXAS", fake.as_str()), ("TK_LLD", linker.as_str())];
    let ran = tk(&folder, &["doctor"], &variables);
    let first: Vec<&str> = ran.out.lines().filter_map(|l| l.split_whitespace().next()).collect();
    // A machine with GPUs has a line for each.
    assert_eq!(first.get(..7), Some(&["tk", "LLVM", "ptxas", "ld.lld", "nvdisasm", "cache", "CUDA"][..]));
    ran.code(0).out_has(&format!("ptxas   12.9.86, {fake} (from TK_PTXAS)\n")).out_has("2 entries");
    assert_eq!(ran.err, "");
    let nowhere = folder.path("nowhere").to_string_lossy().into_owned();
    tk(&folder, &["doctor"], &[("TK_LLD", nowhere.as_str())])
        .code(0)
        .out_has("ld.lld  the linker ")
        .out_has("lld-22");
    let ran = tk(&folder, &["doctor", "--message-format", "json"], &[("TK_PTXAS", &fake)]);
    ran.code(0).out_has("{\"kind\":\"tool\",\"name\":\"ptxas\",\"version\":\"12.9.86\",\"path\":");
    ran.out_has("ptxas\",\"from\":\"TK_PTXAS\",\"works\":true,");
    assert!(ran.out.lines().count() >= 5);
}

#[test]
fn cache_is_shown_and_emptied() {
    let folder = folder("cache");
    let fake = folder.script("ptxas", "echo 'release 12.9, V12.9.86'");
    let place = folder.path("cache").to_string_lossy().into_owned();
    let info = |variables: &[(&str, &str)]| tk(&folder, &["cache", "info"], variables);
    info(&[]).code(0).out_has(&format!("{place}: 0 entries, 0 bytes of 1 GiB\n"));
    let nowhere = folder.path("nowhere").to_string_lossy().into_owned();
    tk(&folder, &["doctor"], &[("TK_PTXAS", &fake), ("TK_LLD", &nowhere)]).code(0);
    folder.write("cache/mine.txt", "mine");
    info(&[("TK_CACHE_SIZE", "2M")]).code(0).out_has(": 1 entry, ").out_has(" of 2 MiB\n");
    info(&[("TK_CACHE_SIZE", "lots")]).code(0).err_has("TK_CACHE_SIZE=lots is not a size");
    info(&[("TK_CACHE", "off")]).code(0).out_has("no compile cache: switched off by TK_CACHE=off");
    let ran = tk(&folder, &["cache", "info", "--message-format", "json"], &[]);
    ran.code(0).out_has("\"entries\":1,").out_has("\"limit\":1073741824,\"works\":true");
    tk(&folder, &["cache", "clear"], &[]).code(0).out_has("removed 1 entry, ");
    assert_eq!(names(&folder, "cache"), ["mine.txt"]);
    tk(&folder, &["cache", "clear"], &[("TK_CACHE", "off")]).code(2).says(&["there is no cache"]);
    // Without TK_CACHE_DIR it is where the system keeps caches.
    let home = folder.path("xdg").to_string_lossy().into_owned();
    let ran = info(&[("TK_CACHE_DIR", ""), ("XDG_CACHE_HOME", &home)]);
    ran.code(0).out_has(&format!("{home}/tk/kernels: 0 entries"));
}

#[test]
fn a_folder_that_cannot_be_written_is_a_remark() {
    let folder = folder("cache-read-only");
    folder.write("file", "");
    let below = folder.path("file/cache").to_string_lossy().into_owned();
    let variables = [("TK_CACHE_DIR", below.as_str())];
    for command in [&["cache", "info"][..], &["doctor"]] {
        let ran = tk(&folder, command, &variables);
        ran.code(0).out_has("not writable (not a directory)").out_has("TK_CACHE_DIR");
        assert_eq!(ran.err, "");
    }
    let version = folder.script("ptxas", "echo 'release 12.9, V12.9.86'");
    let ran = tk(&folder, &["doctor"], &[variables[0], ("TK_PTXAS", &version)]);
    ran.code(0).out_has("ptxas   12.9.86");
    let works = fake(&folder, "works", "echo x > $out");
    for _ in 0..2 {
        let ran = fill(&folder, "out", &[variables[0], ("TK_PTXAS", &works)]);
        assert!(!ran.code(0).out.contains("(cached)"));
        assert_eq!(ran.err, "");
    }
}

#[test]
fn a_damaged_entry_is_replaced() {
    let folder = folder("cache-damaged");
    let calls = folder.path("calls");
    let answer = format!("echo x >> {}\necho 'release 12.9, V12.9.86'", calls.display());
    let fake = folder.script("ptxas", &answer);
    let count = || fs::read_to_string(&calls).unwrap().lines().count();
    let nowhere = folder.path("nowhere").to_string_lossy().into_owned();
    let variables = [("TK_PTXAS", fake.as_str()), ("TK_LLD", nowhere.as_str())];
    let doctor = || tk(&folder, &["doctor"], &variables).code(0).out_has("12.9.86").code;
    doctor();
    doctor();
    assert_eq!(count(), 1, "the version comes from the cache");
    let entry = names(&folder, "cache").into_iter().find(|n| n.ends_with(".tkc")).unwrap();
    let entry = folder.path(&format!("cache/{entry}"));
    let whole = fs::read(&entry).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    for (i, damaged) in [&whole[..whole.len() - 1], b"", b"something else", &other].iter().enumerate() {
        fs::write(&entry, damaged).unwrap();
        doctor();
        assert_eq!(count(), i + 2);
        assert_eq!(fs::read(&entry).unwrap(), whole);
    }
}

/// The variables by which the assembler of the repository is found. CI has one; elsewhere its tests say that they are
/// left out.
fn assembler() -> Option<[(&'static str, &'static str); 1]> {
    let variables = [("VIRTUAL_ENV", concat!(env!("CARGO_MANIFEST_DIR"), "/../.venv"))];
    let ran = tk(&Folder::new("build-assembler"), &["doctor", "--message-format", "json"], &variables);
    if ran.out.lines().any(|l| l.contains("\"ptxas\"") && l.contains("\"works\":true")) {
        return Some(variables);
    }
    assert!(std::env::var_os("CI").is_none(), "CI has no ptxas");
    eprintln!("left out: there is no ptxas");
    None
}

/// Every file of a folder.
fn contents(folder: &Folder, inner: &str) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let bytes = fs::read(folder.path(inner).join(&name)).unwrap();
        (name, bytes)
    };
    names(folder, inner).into_iter().map(read).collect()
}

/// `tk build` of the kernel without parameters.
fn fill(folder: &Folder, out: &str, variables: &[(&str, &str)]) -> Ran {
    tk(folder, &["build", "k.tk::fill", "--target", "sm_90a", "--target", "sm_80", "-o", out], variables)
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let Some(variables) = assembler() else { return };
    let folder = folder("build-bytes");
    let uncached = [variables[0], ("TK_CACHE", "off")];
    fill(&folder, "a", &uncached).code(0);
    fill(&folder, "b", &uncached).code(0);
    let first = contents(&folder, "a");
    let stems = ["fill.aligned.sm_80", "fill.aligned.sm_90a", "fill.sm_80", "fill.sm_90a"];
    let list: Vec<String> = stems.iter().flat_map(|s| [format!("{s}.cubin"), format!("{s}.json")]).collect();
    assert_eq!(names(&folder, "a"), list);
    assert!(first.iter().all(|(name, bytes)| name.ends_with("json") || bytes.starts_with(b"\x7fELF")));
    assert_eq!(contents(&folder, "b"), first);
    let report = String::from_utf8_lossy(&first[7].1).into_owned();
    for text in ["\"kernel\": \"fill\"", "\"target\": \"sm_90a\"", "\"registers\": ", "\"params\": ["] {
        assert!(report.contains(text), "{report}");
    }
    // The same from the cache, and when every entry of it is damaged.
    assert!(!fill(&folder, "c", &variables).code(0).out.contains("(cached)"));
    fill(&folder, "d", &variables).code(0).out_has("(cached)");
    assert_eq!((contents(&folder, "c"), contents(&folder, "d")), (first.clone(), first.clone()));
    for name in names(&folder, "cache").iter().filter(|n| n.ends_with(".tkc")) {
        let path = folder.path(&format!("cache/{name}"));
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    assert!(!fill(&folder, "e", &variables).code(0).out.contains("(cached)"));
    assert_eq!(contents(&folder, "e"), first);
    // Nor does it matter when the source was written, or whether it is where the assembler runs.
    let written = fs::File::options().append(true).open(folder.path("k.tk")).unwrap();
    written.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    fill(&folder, "g", &uncached).code(0);
    assert_eq!(contents(&folder, "g"), first);
    // Another place in the source is another line table.
    folder.write("k.tk", format!("\n{KERNELS}"));
    assert!(!fill(&folder, "f", &variables).code(0).out.contains("(cached)"));
    assert_ne!(contents(&folder, "f"), first);
}

/// A kernel that calls the library.
const LINES: &str = "\
use std::math;

kernel lines(x: *f32, y: *mut f32) {
    let at = arange(0, 128);
    let v = load(x + at);
    store(y + at, math::sigmoid(v));
}
";

#[test]
fn machine_code_knows_the_lines_of_the_source() {
    let folder = folder("build-lines");
    folder.write("lines.tk", LINES);
    let args = ["build", "lines.tk", "--target", "sm_80", "--emit", "ptx", "-o", "out"];
    tk(&folder, &args, &[("TK_PTXAS", "/nonexistent/ptxas")]).code(0);
    let ptx = fs::read_to_string(folder.path("out/lines.aligned.sm_80.ptx")).unwrap();
    let file = |name: &str| {
        let line = ptx.lines().find(|l| l.starts_with("\t.file") && l.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {ptx}"));
        line.split_whitespace().nth(1).unwrap().to_string()
    };
    let (own, library) = (file("\"lines.tk\""), file("\"std/math.tk\""));
    // The load, the store, and what the function of the library does.
    for place in [format!("{own} 5 13"), format!("{own} 6 5"), library] {
        assert!(ptx.contains(&format!("\t.loc\t{place}")), "{place}: {ptx}");
    }
    assert!(ptx.contains(".target sm_80\n"), "no `debug`, which keeps the assembler from optimising: {ptx}");
}

/// A kernel with a view, a pointer and a number.
const ROWS: &str = "\
kernel rows[BLOCK: i32 = 1024](x: view[f32, 2], y: *mut f32, n: i32, by: f32) {
    let row = program_id(0);
    store(y + row * n + arange(0, BLOCK), reshape(x.load([row, 0], [1, BLOCK]), [BLOCK]) * by);
}

kernel one(_by: f32) {}
";

#[test]
fn a_kernel_that_says_what_it_prefers_has_a_variant_for_that() {
    let Some(variables) = assembler() else { return };
    let folder = folder("build-prefer");
    folder.write(
        "k.tk",
        "kernel k(x: view[f32, 2], y: mut view[f32, 1], n: i32)\n    grid(n)\n    \
         prefer(n % 48 == 0 && x.strides[1] == 1, 0 == x.shape[1] % 8, y.shape[0] > n)\n\
         { y.store([0], x[0].load([0], [128])); }\n",
    );
    tk(&folder, &["build", "k.tk", "--target", "sm_90a", "-o", "out"], &variables).code(0);
    assert_eq!(names(&folder, "out").len(), 4);
    let report = fs::read_to_string(folder.path("out/k.aligned.sm_90a.json")).unwrap();
    let report: String = report.split_whitespace().collect();
    let divisible = |name: &str, by: u32| format!("{{\"parameter\":\"{name}\",\"divisible\":{by}}}");
    let one = "{\"parameter\":\"x.strides[1]\",\"equal\":1}".to_string();
    let guard = [divisible("x", 16), divisible("x.shape[1]", 8), one, divisible("y", 16), divisible("n", 16)]
        .join(",");
    assert!(report.contains(&format!("\"guard\":[{guard}]")), "{report}");
}

#[test]
fn a_variant_for_aligned_arguments_says_what_it_asks_of_them() {
    let Some(variables) = assembler() else { return };
    let folder = folder("build-variants");
    folder.write("rows.tk", ROWS);
    let args = ["build", "rows.tk", "--target", "sm_90a", "--emit", "ptx,report", "-o", "out"];
    let ran = tk(&folder, &args, &variables);
    ran.code(0);
    let stems = ["one.sm_90a", "rows.BLOCK=1024.aligned.sm_90a", "rows.BLOCK=1024.sm_90a"];
    let list: Vec<String> = stems.iter().flat_map(|s| [format!("{s}.json"), format!("{s}.ptx")]).collect();
    assert_eq!(names(&folder, "out"), list);
    let read =
        |stem: &str, form: &str| fs::read_to_string(folder.path(&format!("out/{stem}.{form}"))).unwrap();
    let report: String = read(stems[1], "json").split_whitespace().collect();
    // Addresses in bytes, numbers in elements of four.
    let divisible = |(name, by): (&str, u32)| format!("{{\"parameter\":\"{name}\",\"divisible\":{by}}}");
    let [x, shape, strides, y, n] =
        [("x", 16), ("x.shape[1]", 4), ("x.strides[0]", 4), ("y", 16), ("n", 4)].map(divisible);
    let one = "{\"parameter\":\"x.strides[1]\",\"equal\":1}".to_string();
    let guard = [x, shape, strides, one, y, n].join(",");
    let guard = format!("\"variant\":\"aligned\",\"guard\":[{guard}],");
    assert!(report.contains(&guard), "{report}");
    for stem in [stems[0], stems[2]] {
        let report = read(stem, "json");
        assert!(report.contains("\"variant\": \"general\",\n  \"guard\": [],"), "{report}");
    }
    // What it asks for is what makes wide accesses.
    for (stem, wide) in [(stems[1], true), (stems[2], false)] {
        let ptx = read(stem, "ptx");
        for access in ["ld.global.v4.b32", "st.global.v4.b32"] {
            assert_eq!(ptx.contains(access), wide, "{stem} {access}\n{ptx}");
        }
    }
}

/// Rows of the log-sum-exp, one number for each token, begin anywhere where lengths are odd: TMA loads queries and keys all the
/// same.
#[test]
fn attention_of_odd_lengths_asks_nothing_of_rows_of_numbers() {
    let Some(variables) = assembler() else { return };
    let folder = folder("build-odd-lengths");
    let all = "--set DV=64 --set CAUSAL=false";
    let forward = format!(
        "{all} --set D=64 --set FEW=false --set BM=64 --set BN=64 --set PERSISTENT=false --set QUEUED=false"
    );
    for (file, kernel, sets) in [
        ("attention", "scaled_dot_product_attention", forward.as_str()),
        ("attention_backward", "attention_backward_rows", "--set DV=64"),
        ("attention_backward", "attention_backward", &format!("{all} --set D=64")),
        ("attention_backward", "attention_backward_query", &format!("{all} --set D=64")),
    ] {
        let path = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../stdlib/nn/{}.tk::{}"), file, kernel);
        let mut args = vec!["build", path.as_str(), "--target", "sm_90a", "--emit", "report", "-o", "out"];
        args.extend(["--set", "T=f16"].into_iter().chain(sets.split(' ')));
        tk(&folder, &args, &variables).code(0);
        let asks_little = |name: &String| {
            let text = fs::read_to_string(folder.path("out").join(name)).unwrap();
            let report: serde_json::Value = serde_json::from_str(&text).unwrap();
            let of_numbers = |g: &&serde_json::Value| {
                let parameter = g["parameter"].as_str().unwrap();
                ["lse", "rows"].contains(&parameter.split('.').next().unwrap())
            };
            let guard = report["guard"].as_array().unwrap();
            let free = guard.iter().filter(of_numbers).all(|g| {
                // Of an address, the size of a number.
                !g["parameter"].as_str().unwrap().contains('.') && g["divisible"].as_u64() == Some(4)
            });
            free && !guard.is_empty()
        };
        let names = names(&folder, "out");
        assert!(names.iter().any(asks_little), "{kernel}: {names:?}");
        fs::remove_dir_all(folder.path("out")).unwrap();
    }
}

#[test]
fn every_form_is_written() {
    let Some(variables) = assembler() else { return };
    let folder = folder("build-forms");
    let forms = "tile,layout,sched,llvm,ptx,cubin,report";
    let args = ["build", "k.tk::fill", "--target", "sm_90a", "--emit", forms, "-o", "out"];
    tk(&folder, &args, &variables).code(0);
    let endings = ["cubin", "json", "layout", "ll", "ptx", "sched"];
    let aligned = endings.map(|e| format!("fill.aligned.sm_90a.{e}")).into_iter();
    // Tile IR is the same for all arguments.
    let general = endings.iter().chain(&["tile"]).map(|e| format!("fill.sm_90a.{e}"));
    assert_eq!(names(&folder, "out"), aligned.chain(general).collect::<Vec<_>>());
    assert!(contents(&folder, "out").iter().all(|(_, bytes)| !bytes.is_empty()));
    // Text needs no assembler.
    let args = ["build", "k.tk::fill", "--target", "sm_90a", "--emit", "ptx,llvm", "-o", "text"];
    tk(&folder, &args, &[("TK_PTXAS", "/nonexistent/ptxas")]).code(0);
    let text = |inner: &str| fs::read(folder.path(inner).join("fill.sm_90a.ptx")).unwrap();
    assert_eq!(text("text"), text("out"));
}

/// An assembler that answers with a version and otherwise does this; `$out` is the file to write.
fn fake(folder: &Folder, name: &str, otherwise: &str) -> String {
    let version = "if [ \"$1\" = --version ]; then echo 'release 12.9, V12.9.86'; exit 0; fi";
    let out = "while [ $# -gt 0 ]; do if [ \"$1\" = -o ]; then out=$2; fi; shift; done";
    folder.script(name, &format!("{version}\n{out}\n{otherwise}"))
}

#[test]
fn a_kernel_that_spills_is_a_warning() {
    let folder = folder("build-spills");
    let says = "echo '  0 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads' >&2; echo x > $out";
    let path = fake(&folder, "spills", says);
    let ran = fill(&folder, "out", &[("TK_PTXAS", &path)]);
    ran.code(0).err_has("warning[W1001]: `fill` needs more registers than a lane of `sm_90a` has");
    ran.err_has("24 bytes are spilled to memory and 28 reloaded");
    ran.err_has("`fill (aligned)`");
    assert_eq!(names(&folder, "out").len(), 8);
    // It is said again when the kernel comes from the cache.
    fill(&folder, "out", &[("TK_PTXAS", &path)]).code(0).out_has("(cached)").err_has("W1001");
}

#[test]
fn advice_of_the_assembler_is_a_warning() {
    let spills = "echo '  0 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads' >&2";
    // A lack of registers is said once, and what helps.
    for (name, first, code, has, lacks) in [
        ("advises", "true", "C7514", "[W1004]: the assembler says about `fill` for `sm_90a`: C75", "W1001"),
        ("lacks", "true", "C7511", "smaller tiles", "please report it"),
        ("both", spills, "C7511", "warning[W1001]", "W1004"),
    ] {
        let folder = folder(&format!("build-{name}"));
        let says = format!("{first}; echo 'ptxas info    : ({code}) Potential Performance Loss: wgmma' >&2");
        let path = fake(&folder, name, &format!("{says}; echo x > $out"));
        let ran = fill(&folder, "out", &[("TK_PTXAS", &path)]);
        assert!(!ran.code(0).err_has(has).err.contains(lacks), "{ran:#?}");
        // It is said again when the kernel comes from the cache.
        fill(&folder, "out", &[("TK_PTXAS", &path)]).code(0).out_has("(cached)").err_has(has);
    }
}

#[test]
fn an_assembler_that_refuses_leaves_nothing() {
    let folder = folder("build-refuses");
    let line = "ptxas kernel.ptx, line 3; error   : Unknown symbol";
    let path = fake(&folder, "refuses", &format!("echo '{line}' >&2; exit 255"));
    let ran = fill(&folder, "out", &[("TK_PTXAS", &path)]);
    ran.code(2)
        .err_has("error[E1002]: ptxas 12.9.86 rejects kernel")
        .err_has("Unknown symbol (line 3 of the PTX)");
    let line = "ptxas kernel.ptx, line 1; fatal   : Unsupported .version 8.5; current version is 7.8";
    let path = fake(&folder, "old", &format!("echo '{line}' >&2; exit 255"));
    fill(&folder, "out", &[("TK_PTXAS", &path)]).code(2).err_has("is too old").err_has("pip install");
    assert!(!folder.path("out").exists());
    // Nothing wrong is kept.
    assert_eq!(names(&folder, "cache").iter().filter(|n| n.ends_with(".tkc")).count(), 2, "two versions");
}

/// The kernels of `tests/machine/no_spills.txt`, for their targets and every variant: no spills, no advice of the assembler.
#[test]
fn listed_kernels_have_registers_enough() {
    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let Some(variables) = assembler() else { return };
    let unchanged = std::env::var("TK_UNCHANGED").unwrap_or_default();
    let variables = [&variables[..], &[("TK_UNCHANGED", &unchanged)]].concat();
    let folder = folder("build-no-spills");
    let list = fs::read_to_string(format!("{ROOT}/tests/machine/no_spills.txt")).unwrap();
    let mut seen = 0;
    for line in list.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(file) = words.next() else { continue };
        let file = format!("{ROOT}/{file}");
        let mut args = vec!["build", file.as_str(), "-o", "out", "--emit", "report"];
        args.extend(words);
        if !args.contains(&"--target") {
            for target in ["sm_80", "sm_90a", "gfx90a", "gfx942", "gfx1100"] {
                args.extend(["--target", target]);
            }
        }
        let ran = tk(&folder, &args, &variables);
        let said = ran.err.clone();
        ran.code(0);
        assert!(!said.contains("W1001"), "{line}: {said}");
        // What the assembler says about lost performance, its codes C7500 and up.
        for report in names(&folder, "out") {
            let report = fs::read_to_string(folder.path("out").join(report)).unwrap();
            assert!(report.contains("\"advice\": []"), "{line}: {report}");
        }
        fs::remove_dir_all(folder.path("out")).unwrap();
        seen += 1;
    }
    assert!(seen > 5, "the list is empty");
}

/// What no argument says has its default, also where an argument has that type.
#[test]
fn element_types_have_their_defaults() {
    let folder = folder("build-default-types");
    let text = "kernel k[A: f16 | f32 = f32, B: float = A](x: view[A, 1], y: mut view[B, 1]) {\n    \
                y.store([0], x.load([0], [4]) as B);\n}\n";
    folder.write("types.tk", text);
    let args = ["build", "types.tk", "--target", "sm_80", "--emit", "tile", "-o", "out"];
    tk(&folder, &args, &[]).code(0);
    assert_eq!(names(&folder, "out"), ["k.A=f32.B=f32.sm_80.tile"]);
    fs::remove_dir_all(folder.path("out")).unwrap();
    tk(&folder, &[&args[..], &["--set", "A=f16"]].concat(), &[]).code(0);
    assert_eq!(names(&folder, "out"), ["k.A=f16.B=f16.sm_80.tile"]);
}
