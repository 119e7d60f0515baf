//! `tk profile`: what it predicts and, by a profiler that repeats what Nsight Compute said of an H100, what it measures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::process::Command;

use serde_json::Value;

use crate::support::command::{self, Folder, Ran};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const ARGUMENTS: [&str; 2] = ["x=empty:f16[8192,1024]", "y=empty:f16[8192,1024]"];

/// A profiler that writes down its arguments, makes the report with `-o`, and prints the recorded pages.
const RECORDED: &str = r#"echo "$@" >> "$0.log"
case "$*" in
    "-f -o "*) echo "==PROF== Connected"; touch "$3" ;;
    *"--page raw"*) cat "$PAGES/raw.csv" ;;
    *"--page source"*) cat "$PAGES/source.csv" ;;
esac
"#;

/// Profiles the softmax of the benches on a device whose profiler is this script.
fn profile(folder: &Folder, script: &str, more: &[&str]) -> Ran {
    let ncu = folder.script("ncu", script);
    let file = format!("{ROOT}/benches/gpu/model/rows.tk::softmax");
    let mut args = vec!["profile", &file, ARGUMENTS[0], ARGUMENTS[1]];
    args.extend(more);
    let mut command: Command = command::command(&folder.path(""), &args);
    command.env("TK_NCU", ncu).env("PAGES", format!("{ROOT}/tests/profile"));
    Ran::new(command.output().unwrap())
}

#[test]
fn extents_may_be_named() {
    let folder = Folder::new("profile-extents");
    let file = format!("{ROOT}/benches/gpu/model/rows.tk::softmax");
    let run = |args: &[&str]| {
        let args = [&["profile", &file, "--message-format", "json"], args].concat();
        Ran::new(command::command(&folder.path(""), &args).output().unwrap())
    };
    let named = run(&["n=2^10", "x=empty:f16[8192,n]", "y=empty:f16[8*n,n]"]);
    assert_eq!(named.code(0).out, run(&ARGUMENTS).code(0).out);
    let several = run(&["n=64,128", "x=empty:f16[8192,n]", "y=empty:f16[8192,n]"]);
    assert!(several.code(2).out.contains("one launch is profiled, and these are 2"), "{}", several.out);
}

#[test]
fn samples_belong_to_lines() {
    let folder = Folder::new("profile-measured");
    let more = ["--device", "cuda", "--set", "ROWS=4", "--message-format", "json"];
    let ran = profile(&folder, RECORDED, &more);
    let rows: Vec<Value> = ran.code(0).out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let head = &rows[0];
    assert_eq!((&head["device"], head["us"].as_f64()), (&"NVIDIA H100 80GB HBM3".into(), Some(11.296)));
    assert_eq!((head["registers"].as_f64(), head["shared_bytes"].as_f64()), (Some(47.0), Some(1024.0)));
    let lines: Vec<(u64, f64)> =
        rows[1..].iter().map(|l| (l["line"].as_u64().unwrap(), l["samples"].as_f64().unwrap())).collect();
    assert_eq!(lines, [(4, 89.0), (14, 18.0), (15, 422.0), (16, 139.0), (17, 186.0)]);
    let shares: f64 = rows[1..].iter().map(|l| l["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    // 367 of the 422 samples of the load wait for memory; samples that did not issue are not counted twice.
    let memory = rows[3]["reasons"]["memory"].as_f64().unwrap();
    assert!((memory - 367.0 / 422.0).abs() < 1e-9, "{memory}");
    // The launch is `tk run` with the same arguments, and one of them is measured.
    let log = std::fs::read_to_string(folder.path("ncu.log")).unwrap();
    let first = log.lines().next().unwrap();
    assert!(
        first.contains("--launch-count 1 -k regex:^softmax") && first.contains("--section SourceCounters")
    );
    assert!(first.ends_with("y=empty:f16[8192,1024] --set ROWS=4 --device cuda"), "{first}");
    let shown = profile(&folder, RECORDED, &["--device", "cuda"]);
    let out = &shown.code(0).out;
    assert!(out.contains("11.3 us measured, of the peak: memory 48 %, L2 75 %, SM 31 %"), "{out}");
    assert!(out.contains("memory 87 %") && out.contains("let v = x.load([row, 0]"), "{out}");
}

#[test]
fn a_profiler_that_cannot_measure_says_why() {
    let folder = Folder::new("profile-refused");
    let cases = [
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1\n", "administrator"),
        ("echo '==ERROR== The application returned an error code (2).'\nexit 2\n", "error code (2)"),
        ("echo 'error: no NVIDIA driver' >&2\nexit 1\n", "no NVIDIA driver"),
        ("exit 1\n", "it says nothing"),
        // A report that is none.
        ("case \"$*\" in -f*) touch \"$3\" ;; *) echo nonsense ;; esac\n", "cannot be read"),
        ("case \"$*\" in -f*) touch \"$3\" ;; *) exit 3 ;; esac\n", "has measured nothing"),
    ];
    for (script, says) in cases {
        let ran = profile(&folder, script, &["--device", "cuda"]);
        assert!(ran.code(2).err.contains(says), "{says}: {}", ran.err);
    }
    for (more, says) in [
        (&["--device", "cuda", "--for", "sm_80"][..], "cannot be used with"),
        (&["--stamps"], "--device"),
        (&["--device", "cpu", "--stamps", "--set", "ROWS=x"], "ROWS"),
        (&["--device", "cuda", "--set", "ROWS=x"], "ROWS"),
    ] {
        let ran = profile(&folder, RECORDED, more);
        assert!(ran.code != Some(0) && ran.err.contains(says), "{says}: {}", ran.err);
    }
    // Without one, `TK_NCU` is named.
    let file = format!("{ROOT}/benches/gpu/model/rows.tk::softmax");
    let args = ["profile", &file, ARGUMENTS[0], ARGUMENTS[1], "--device", "cuda"];
    let mut command = command::command(&folder.path(""), &args);
    command.env("TK_NCU", "/nonexistent/ncu");
    let ran = Ran::new(command.output().unwrap());
    assert!(ran.code(2).err.contains("cannot run /nonexistent/ncu"), "{}", ran.err);
}

/// Loops in loops, in a branch and with a condition, and a kernel that prints itself.
const LOOPS: &str = "kernel loops(x: view[f32, 2], y: mut view[f32, 1], n: i32)
    grid(70)
{
    let mut total = 0.0;
    for i in range(0, n) {
        let mut row = 0.0;
        for j in range(0, x.shape[1], 4) {
            row += sum(x.load([i, j], [1, 4]));
        }
        let mut left = 3;
        while left > 0 {
            left -= 1;
            row += 1.0;
        }
        total += row;
    }
    if program_id(0) == 0 {
        for _i in range(0, 2) {
            total += 1.0;
        }
        print(total);
    }
    y.store([program_id(0)], full([1], total, f32));
}
";

#[test]
fn loops_are_timed_without_a_profiler() {
    let folder = Folder::new("profile-stamps");
    folder.write("loops.tk", LOOPS);
    let run = |more: &[&str]| {
        let args = ["profile", "loops.tk", "x=full:f32[3,8]@0.5", "y=empty:f32[70]", "n=3"];
        let mut command = command::command(&folder.path(""), &[&args, more].concat());
        command.env("TK_NCU", "/nonexistent/ncu");
        Ran::new(command.output().unwrap())
    };
    for device in ["cpu", "sim", "sim64", "sim-wmma"] {
        let ran = run(&["--device", device, "--message-format", "json"]);
        let rows: Vec<Value> = ran.code(0).out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        // What the kernel prints: 3 rows of 8 halves and 3 ones, and 2.
        let own: Vec<&Value> = rows.iter().filter(|r| r["kind"] == "printed").collect();
        assert_eq!(
            own.iter().map(|r| r["text"].as_str().unwrap()).collect::<Vec<_>>(),
            ["program 0, 0, 0: 23.0\n"]
        );
        let rows: Vec<&Value> = rows.iter().filter(|r| r["kind"] == "stamped_line").collect();
        let regions: Vec<_> =
            rows.iter().map(|r| (r["line"].as_u64().unwrap(), r["depth"].as_u64().unwrap())).collect();
        assert_eq!(regions, [(1, 0), (5, 1), (7, 2), (11, 2)], "{device}");
        let us = |i: usize, name: &str| rows[i][name].as_f64().unwrap();
        assert!(us(1, "us") <= us(0, "us") && us(2, "us") + us(3, "us") <= us(1, "us"), "{device}: {rows:?}");
        assert!((us(1, "own_us") - (us(1, "us") - us(2, "us") - us(3, "us"))).abs() < 1e-6);
        // Every third of 70 programs.
        assert_eq!(rows[0]["programs"], 24, "{device}");
    }
    let shown = run(&["--device", "cpu"]);
    shown.code(0).out_has("loops on cpu:").out_has("loops.tk:7      for j in range(0, x.shape[1], 4) {");
    assert!(shown.err.contains("`cpu` has no profiler"), "{}", shown.err);
    // A launch without programs, one that is refused, and one that fails.
    folder.write("none.tk", "kernel none(y: mut view[f32, 1]) grid(y.shape[0]) require(y.shape[0] < 9) {\n    assert(y.load([0]) == 0.0, \"no\");\n}\n");
    for (y, says, code) in [
        ("y=empty:f32[0]", "no program ran", 2),
        ("y=empty:f32[9]", "y.shape[0] < 9", 2),
        ("y=ones:f32[1]", "assertion failed: no", 2),
    ] {
        let args = ["profile", "none.tk", y, "--device", "cpu"];
        let ran = Ran::new(command::command(&folder.path(""), &args).output().unwrap());
        assert!(ran.code(code).err.contains(says), "{y}: {}", ran.err);
    }
}

#[test]
fn lines_say_how_memory_is_accessed() {
    let folder = Folder::new("profile-access");
    let text =
        "kernel gathered(x: *f16, index: *i32, y: *mut f16, n: i32) grid(cdiv(n, 256)) require(n >= 0) {
    let at = program_id(0) * 256 + arange(0, 256);
    let from = load(index + at, at < n);
    store(y + at, load(x + from, at < n), at < n);
}
kernel copied(x: view[f16, 2], y: mut view[f16, 2]) grid(cdiv(x.shape[0], 64)) launch(warps = 4) {
    let mut acc = zeros([64, 64], f32);
    for k in range(0, x.shape[1], 64) {
        acc = dot(x.load([program_id(0) * 64, k], [64, 64]), x.load([0, k], [64, 64]).T, acc);
    }
    y.store([program_id(0) * 64, 0], acc as f16);
}
";
    folder.write("a.tk", text);
    let lines = |kernel: &str, args: &[&str]| {
        let file = format!("{}::{kernel}", folder.path("a.tk").display());
        let mut all = vec!["profile", &file, "--message-format", "json"];
        all.extend(args);
        let ran = Ran::new(command::command(&folder.path(""), &all).output().unwrap());
        let rows: Vec<Value> = ran.code(0).out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        rows.into_iter().filter(|r| r["kind"] == "profiled_line").collect::<Vec<_>>()
    };
    let of = |rows: &[Value], line: u64| rows.iter().find(|r| r["line"] == line).unwrap().clone();
    let rows =
        lines("gathered", &["x=empty:f16[4096]", "index=empty:i32[4096]", "y=empty:f16[4096]", "n=4096"]);
    // 256 positions on 128 lanes: two of four bytes each; halves that are somewhere one by one.
    assert_eq!((&of(&rows, 3)["lane_bytes"], &of(&rows, 4)["lane_bytes"]), (&8.into(), &2.into()));
    let rows = lines("copied", &["x=empty:f16[4096,4096]", "y=empty:f16[4096,64]"]);
    let product = of(&rows, 9);
    assert_eq!((&product["tensor_copies"], &product["lane_bytes"]), (&true.into(), &0.into()), "{product}");
    assert!(product["needed"].as_f64() <= product["bytes"].as_f64());
}

#[test]
fn lines_count_the_sectors_of_strided_accesses() {
    let folder = Folder::new("profile-strides");
    folder.write("a.tk", STRIDES);
    let n = 1 << 20;
    let bytes = |s: u32| {
        let numbers = [format!("n={n}"), format!("s={s}")];
        let tensors =
            [("x", ""), ("v", ",8"), ("y", "")].map(|(name, more)| format!("{name}=empty:f16[{n}{more}]"));
        let file = folder.path("a.tk").display().to_string();
        let mut all = vec!["profile", &file, "--message-format", "json"];
        all.extend(numbers.iter().chain(&tensors).map(String::as_str));
        let ran = Ran::new(command::command(&folder.path(""), &all).output().unwrap());
        let rows = ran.code(0).out.lines().map(|l| serde_json::from_str(l).unwrap());
        let of = |row: Value| (row["line"].as_u64().unwrap_or(0), row["bytes"].as_f64().unwrap_or(0.0));
        rows.map(of).collect::<std::collections::BTreeMap<_, _>>()
    };
    // In sectors of 32 bytes, or of what is asked for: 2 MB.
    let (near, far) = (bytes(1), bytes(24));
    let times = |of: &std::collections::BTreeMap<u64, f64>, line: u64| (of[&line] / f64::from(2 * n)).round();
    assert_eq!([4, 5, 6, 7, 8, 9].map(|line| times(&near, line)), [16.0, 1.0, 1.0, 1.0, 8.0, 2.0]);
    assert_eq!([4, 5, 6, 7, 8, 9].map(|line| times(&far, line)), [16.0, 16.0, 1.0, 1.0, 8.0, 2.0]);
}

/// Elements 32, `s` and one apart, those that wrap around, a column of a row-major view, every second one of a loop.
const STRIDES: &str =
    "kernel each(x: *f16, v: view[f16, 2], y: *mut f16, n: i32, s: i32) grid(cdiv(n, 1024)) {
    let at = program_id(0) * 1024 + arange(0, 1024);
    let inside = at < n;
    let a = load(x + at as i64 * 32, mask = inside);
    let b = load(x + at as i64 * s as i64, mask = inside);
    let c = load(x + at, mask = inside);
    let d = load(x + at % n, mask = inside);
    let e = v.load([program_id(0) * 1024, 0], [1024, 1]);
    let f = load(x + where(inside, at, 0) * 2, mask = inside);
    store(y + at, a + b + c + d + f + reshape(e, [1024]), mask = inside);
}
";

/// Triton's product with a grouped order of tiles and rows that wrap around: what is predicted is what is assembled.
#[test]
fn a_product_of_pointers_is_not_said_to_spill() {
    let folder = Folder::new("profile-grouped");
    folder.write("a.tk", GROUPED);
    let file = folder.path("a.tk").display().to_string();
    let args = [
        "m=4096",
        "n=4096",
        "k=4096",
        "a=empty:f16[m,k]",
        "b=empty:f16[k,n]",
        "c=empty:f16[m,n]",
        "am=4096",
        "ak=1",
        "bk=4096",
        "bn=1",
        "cm=4096",
        "cn=1",
    ];
    let mut all = vec!["--message-format", "json", "explain-launch", &file, "--for", "sm_90a"];
    all.extend(args);
    let ran = Ran::new(command::command(&folder.path(""), &all).output().unwrap());
    let rows: Vec<Value> = ran.code(0).out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let defaults = rows.iter().find(|r| r["member"] == "").unwrap();
    assert_eq!(defaults["spilled"], 0, "{defaults}");
    assert!(defaults["us"].as_f64().unwrap() < 1000.0, "{defaults}");
    let args =
        ["--message-format", "json", "build", &file, "--target", "sm_90a", "--emit", "cubin", "--out", "out"];
    let ran = Ran::new(command::command(&folder.path(""), &args).output().unwrap());
    let rows = ran.code(0).out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let built = rows.filter(|r| r["kind"] == "built" && r["variant"] == "aligned").collect::<Vec<_>>();
    let [built] = built.as_slice() else { panic!("{built:?}") };
    assert_eq!(built["spill_store_bytes"], 0, "{built}");
    let [predicted, is] = [defaults, built].map(|row| row["registers"].as_f64().unwrap());
    assert!((predicted / is - 1.0).abs() < 0.15, "{predicted} registers, not {is}");
}

const GROUPED: &str = "kernel product[BM: i32 = 128, BN: i32 = 128, BK: i32 = 64, GROUP: i32 = 8](
    a: *f16, b: *f16, c: *mut f16, m: i32, n: i32, k: i32, am: i32, ak: i32, bk: i32, bn: i32, cm: i32, cn: i32,
)
    grid(cdiv(m, BM) * cdiv(n, BN))
    launch(warps = 4, stages = 3)
{
    let band = GROUP * cdiv(n, BN);
    let first = program_id(0) / band * GROUP;
    let size = minimum(cdiv(m, BM) - first, GROUP);
    let (i, j) = (first + (program_id(0) % band) % size, (program_id(0) % band) / size);
    let rows = (i * BM + arange(0, BM)) % m;
    let columns = (j * BN + arange(0, BN)) % n;
    let depth = arange(0, BK);
    let mut pa = a + (rows[:, None] * am + depth[None, :] * ak);
    let mut pb = b + (depth[:, None] * bk + columns[None, :] * bn);
    let mut acc = zeros([BM, BN], f32);
    for at in range(0, k, BK) {
        acc = dot(load(pa, depth[None, :] < k - at), load(pb, depth[:, None] < k - at), acc);
        pa += BK * ak;
        pb += BK * bk;
    }
    let (to, along) = (i * BM + arange(0, BM), j * BN + arange(0, BN));
    let inside = (to[:, None] < m) && (along[None, :] < n);
    store(c + cm * to[:, None] + cn * along[None, :], acc as f16, inside);
}
";

/// Quotients of 64 bits are all there before the first of them is used.
#[test]
fn long_division_takes_registers() {
    let folder = Folder::new("profile-division");
    let text = "kernel rows(x: *f32, y: *mut f32, n: i64, d: i64, s: i64) grid(cdiv(n, 4096) as i32) {
    let i = program_id(0) as i64 * 4096 + arange(0, 4096);
    store(y + i, load(x + i / d * s + i % d, i < n), i < n);
}
";
    folder.write("a.tk", text);
    let file = folder.path("a.tk").display().to_string();
    let args = ["x=empty:f32[1048576]", "y=empty:f32[1048576]", "n=1048576", "d=1000", "s=1000"];
    let mut all = vec!["--message-format", "json", "profile", &file, "--for", "sm_90a"];
    all.extend(args);
    let ran = Ran::new(command::command(&folder.path(""), &all).output().unwrap());
    let mut rows = ran.code(0).out.lines().map(|l| serde_json::from_str::<Value>(l).unwrap());
    let kernel = rows.find(|r| r["kind"] == "profiled").unwrap();
    // The assembler takes all 255, and spills 52 more.
    assert!(kernel["registers"].as_u64().unwrap() > 200, "{kernel}");
}
