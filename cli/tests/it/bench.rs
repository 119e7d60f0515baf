//! `tk bench` and `tk tune`, on the CPU: what they measure, write, and refuse.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::Value;

use crate::support::command::Folder;

/// A kernel with a `tune` list.
const SCALE: &str = "kernel scale[T: float, BLOCK: i32 = 1](x: view[T, 1], y: mut view[T, 1])
    grid(cdiv(x.shape[0], BLOCK))
    tune(key = (next_pow2(x.shape[0]))) {
        { BLOCK = [64, 4096], warps = 4 },
        { BLOCK = 16, warps = 4 } if target.has_tma,
    }
    require(x.shape == y.shape, BLOCK <= 4096)
{
    let at = program_id(0) * BLOCK;
    y.store([at], (x.load([at], [BLOCK]) as f32 * 2.0) as T);
}
";
const ARGUMENTS: [&str; 2] = ["x=randn:f32[50000]@1", "y=empty:f32[50000]"];

fn folder(name: &str, source: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("scale.tk", source);
    folder
}

fn objects(out: &str) -> Vec<Value> {
    out.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn tune(folder: &Folder, more: &[&str]) -> crate::support::command::Ran {
    let mut all = vec!["tune", "scale.tk", "--device", "cpu"];
    all.extend(ARGUMENTS);
    all.extend(more);
    folder.tk(&all)
}

#[test]
fn bytes_and_operations_are_counted() {
    let folder = folder("bench-counts", SCALE);
    let sweep = ["n=100,5000", "x=randn:f32[n]", "y=empty:f32[n]"];
    let mut args =
        vec!["bench", "scale.tk", "--device", "cpu", "--json", "--time", "0.01", "--plot", "o.svg"];
    args.extend(sweep);
    let ran = folder.tk(&args);
    let rows = objects(&ran.code(0).out);
    assert_eq!(rows.len(), 2);
    for (row, n) in rows.iter().zip([100.0, 5000.0]) {
        assert_eq!(row["point"]["n"], Value::from(n as i64));
        assert_eq!(row["bytes"], Value::from(8.0 * n));
        assert_eq!(row["operations"].as_f64().unwrap().round(), n);
        assert_eq!(row["bound"], Value::Null);
        assert!(row["warm"]["median_ms"].as_f64().unwrap() > 0.0);
    }
    let picture = std::fs::read_to_string(folder.path("o.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("milliseconds"), "{picture}");
}

#[test]
fn a_product_is_counted_once_for_each_operand() {
    let folder = Folder::new("bench-product");
    folder.write(
        "product.tk",
        "kernel product(a: view[f32, 2], b: view[f32, 2], c: mut view[f32, 2])
    grid(cdiv(c.shape[0], 16), cdiv(c.shape[1], 16))
{
    let (row, column) = (program_id(0) * 16, program_id(1) * 16);
    let mut acc = zeros([16, 16], f32);
    for k in range(0, a.shape[1], 16) {
        acc = dot(a.load([row, k], [16, 16]), b.load([k, column], [16, 16]), acc);
    }
    c.store([row, column], acc);
}
",
    );
    let ran = folder.tk(&[
        "bench",
        "product.tk",
        "--device=cpu",
        "--json",
        "--time=0.01",
        "a=randn:f32[32,64]",
        "b=randn:f32[64,48]",
        "c=empty:f32[32,48]",
    ]);
    let rows = objects(&ran.code(0).out);
    assert_eq!(rows[0]["bytes"].as_f64().unwrap().round(), 4.0 * (32.0 * 64.0 + 64.0 * 48.0 + 32.0 * 48.0));
    assert_eq!(rows[0]["operations"].as_f64().unwrap().round(), 2.0 * 32.0 * 48.0 * 64.0);
}

#[test]
fn what_is_wrong_with_a_measurement_is_a_sentence() {
    let folder = folder("bench-wrong", SCALE);
    let bench = |more: &[&str]| {
        let mut all = vec!["bench", "scale.tk", "--device", "cpu"];
        all.extend(more);
        folder.tk(&all)
    };
    bench(&["n=9..5", "x=randn:f32[n]", "y=empty:f32[n]"]).code(2).err_has("`n=9..5` ends before it begins");
    bench(&["n=0..5", "x=randn:f32[n]", "y=empty:f32[n]"]).code(2).err_has("never ends");
    bench(&["x=randn:f32[4]"]).code(2).err_has("needs a value for `y`");
    bench(&["x=randn:f32[4]", "y=empty:f32[5]"]).code(2).err_has("E0704");
    bench(&["x=randn:f32[4]", "y=empty:f32[4]", "--compare", "BLOCK=8192"]).code(2).err_has("E0704");
    folder.tk(&["bench", "scale.tk", "--device", "sim"]).code(2).err_has("has no clock");
    bench(&["x=randn:f32[n]", "y=empty:f32[4]"]).code(2).err_has("`n` in `randn:f32[n]` has no value");
    // Before anything is measured.
    for (more, says) in [
        (["--plot", "x.png"], "pictures are SVG"),
        (["--plot", "-"], "pictures are SVG"),
        (["--plot", "nowhere/x.svg"], "there is no folder nowhere"),
        (["--compare", "nobody.tk"], "cannot read nobody.tk"),
    ] {
        let ran = bench(&[&["x=randn:f32[4]", "y=empty:f32[4]"], more.as_slice()].concat());
        ran.code(2).err_has(says);
        assert_eq!(ran.out, "", "{says}");
    }
    tune(&folder, &["--jobs", "0"]).code(2).err_has("0 is not in 1..=256");
}

#[test]
fn the_fastest_member_is_kept_and_used() {
    let folder = folder("tune-record", SCALE);
    let ran = tune(&folder, &["--message-format", "json"]);
    let lines = objects(&ran.code(0).out);
    let trials: Vec<&str> = lines.iter().filter_map(|l| l["member"].as_str()).collect();
    // The defaults, both members that fit the CPU, and the end.
    assert_eq!(lines.iter().filter(|l| l["kind"] == "trial").count(), 3, "{trials:?}");
    let end = lines.last().unwrap();
    assert_eq!(end["kind"], "tuned");
    let best = end["member"].as_str().unwrap();
    assert!(best == "BLOCK=64 warps=4" || best == "BLOCK=4096 warps=4", "{best}");
    assert!(end["records"].as_str().unwrap().ends_with("scale.tuning.json"));
    let bench = |more: &[&str]| {
        let mut all = vec!["bench", "scale.tk", "--device=cpu", "--time=0.01", "--json"];
        all.extend(ARGUMENTS);
        all.extend(more);
        objects(&folder.tk(&all).code(0).out)[0].clone()
    };
    assert_eq!(bench(&[])["tuned"], format!("{best}, by a tuning record"));
    // What is given by name is not replaced.
    assert_eq!(bench(&["--set", "BLOCK=32"])["tuned"], Value::Null);
    // Another key has no record.
    let mut all = vec!["bench", "scale.tk", "--device=cpu", "--time=0.01", "--json"];
    all.extend(["x=randn:f32[70000]", "y=empty:f32[70000]"]);
    assert_eq!(objects(&folder.tk(&all).code(0).out)[0]["tuned"], Value::Null);
    // `tk run` uses it too: with a kernel that changed since, it says so.
    let mut run = vec!["run", "scale.tk"];
    run.extend(ARGUMENTS);
    assert_eq!(folder.tk(&run).code(0).err, "");
    folder.write("scale.tk", SCALE.replace("* 2.0", "* 3.0"));
    folder.tk(&run).code(0).err_has("W0701").err_has("older than the kernel");
    // Other defaults were never compared with it.
    folder.write("scale.tk", SCALE.replace("BLOCK: i32 = 1]", "BLOCK: i32 = 2048]"));
    folder.tk(&run).code(0).err_has("W0701").err_has("older than the kernel");
    let record = std::fs::read_to_string(folder.path("scale.tuning.json")).unwrap();
    assert!(record.contains("\"default_code\":\""), "{record}");
    // Of other types it says nothing.
    folder.write("scale.tk", SCALE);
    let args = ["run", "scale.tk", "x=randn:f64[65536]", "y=empty:f64[65536]"];
    assert_eq!(folder.tk(&args).code(0).err, "");
}

#[test]
fn bad_records_are_left_out_with_a_sentence() {
    let folder = folder("tune-bad", SCALE);
    let mut run = vec!["run", "scale.tk"];
    run.extend(ARGUMENTS);
    for (text, says) in [
        ("{", "is no file of tuning records"),
        ("{\"format\": 9, \"records\": []}", "has format 9"),
        ("\u{0}\u{0}", "is no file of tuning records"),
    ] {
        folder.write("scale.tuning.json", text);
        folder.tk(&run).code(0).err_has("W0701").err_has(says);
    }
    // A record that names no member chooses nothing, whatever else it says.
    let record = "{\"format\": 1, \"records\": [{\"kernel\":\"scale\",\"target\":\"cpu\",\"device\":\"CPU\",\"driver\":\"0\",\
        \"given\":{\"T\":\"f32\"},\"key\":[65536],\"member\":{\"BLOCK\":\"1048576\"},\"ms\":0.1,\"default_ms\":1.0,\
        \"measured\":2,\"code\":\"0\"}]}";
    folder.write("scale.tuning.json", record);
    let says = "names no member of its `tune` list (BLOCK=1048576); run `tk tune` again";
    folder.tk(&run).code(0).err_has("W0701").err_has(says);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path("scale.tuning.json");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        folder.tk(&run).code(0).err_has("can be written by every user");
        // Reading a pipe would never end.
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        folder.tk(&run).code(0).err_has("it is not a regular file");
        tune(&folder, &[]).code(2).err_has("it is not a regular file");
    }
}

/// A kernel whose members take long: one waits for ever, the other for seconds.
const SLOW: &str = "kernel f[BLOCK: i32 = 64](y: mut view[i32, 1], n: i32)
    grid(cdiv(y.shape[0], BLOCK))
    tune(key = (y.shape[0])) {
        { BLOCK = [32, 64, 128] },
    }
{
    let mut more = n;
    while BLOCK == 128 && more > 0 || BLOCK == 32 && more < 100000000 && more > 0 {
        more += if BLOCK == 32 { 1 } else { 0 };
    }
    y.store([program_id(0) * BLOCK], full([BLOCK], 1, i32));
}
";

#[test]
fn members_that_take_too_long_are_given_up_in_time() {
    let folder = Folder::new("tune-slow");
    folder.write("f.tk", SLOW);
    let args = ["--device=cpu", "y=zeros:i32[64]", "n=1", "--timeout=0.5", "--message-format=json"];
    let begin = std::time::Instant::now();
    let ran = folder.tk(&[&["tune", "f.tk"], args.as_slice()].concat());
    let lines = objects(&ran.code(0).out);
    for member in ["BLOCK=32", "BLOCK=128"] {
        let line = lines.iter().find(|l| l["member"] == member && l["kind"] == "trial").unwrap();
        assert_eq!(line["why"], "its first launch takes longer than 0.5 s", "{lines:?}");
    }
    assert!(begin.elapsed().as_secs() < 60, "it takes {:?}", begin.elapsed());
}

/// What a command has started ends with it, whatever it was doing.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_is_killed_leaves_nothing_behind() {
    let folder = Folder::new("tune-killed");
    folder.write("f.tk", SLOW);
    let args = ["tune", "f.tk", "--device=cpu", "y=zeros:i32[64]", "n=1", "--timeout=60"];
    let mut command = crate::support::command::command(&folder.path(""), &args);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    let children = || -> Vec<u32> {
        // Each thread has its own.
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let list = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        };
        let lists: Vec<String> = tasks.map(list).collect();
        lists.iter().flat_map(|l| l.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
    };
    let wait = |mut holds: Box<dyn FnMut() -> bool + '_>| {
        for _ in 0..200 {
            if holds() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("it does not happen");
    };
    wait(Box::new(|| !children().is_empty()));
    std::thread::sleep(std::time::Duration::from_secs(1));
    let started = children();
    child.kill().unwrap();
    child.wait().unwrap();
    let is_gone = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    wait(Box::new(|| started.iter().all(is_gone)));
}

#[test]
fn programs_on_standard_input_are_measured() {
    use std::io::Write;
    let folder = folder("bench-stdin", SCALE);
    for args in [
        vec!["bench", "-", "--device=cpu", "--time=0.01", "--compare", "BLOCK=4096", "--compare", "-"],
        vec!["profile", "-", "--device=cpu"],
        vec!["profile", "-"],
    ] {
        let mut command =
            crate::support::command::command(&folder.path(""), &[&args, ARGUMENTS.as_slice()].concat());
        let piped = std::process::Stdio::piped;
        let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(SCALE.as_bytes()).unwrap();
        let ran = crate::support::command::Ran::new(child.wait_with_output().unwrap());
        ran.code(0).out_has("scale on");
    }
}

#[test]
fn a_launch_without_programs_is_a_sentence() {
    let folder = folder("bench-empty", SCALE);
    let empty = ["x=empty:f32[0]", "y=empty:f32[0]"];
    let tk = |first: &[&str]| folder.tk(&[first, empty.as_slice()].concat());
    tk(&["tune", "scale.tk", "--device=cpu"]).code(2).err_has("there is nothing to measure");
    tk(&["profile", "scale.tk"]).code(2).err_has("no program of `scale` runs: its grid is 0 x 1 x 1");
    tk(&["explain-launch", "scale.tk"]).code(0).err_has("no program of `scale` runs");
    assert!(!folder.path("scale.tuning.json").exists());
}

/// Memory beside the arguments is shown with the launch that takes it.
#[test]
fn a_launch_shows_its_workspaces() {
    let source = "kernel twice(x: view[f32, 1], y: mut view[f32, 1])
            scratch(t: *mut f32, 2 * x.shape[0] as i64)
        {
            let copy = view(t, [x.shape[0]], [1]);
            copy.store([0], x.load([0], [256]));
            y.store([0], 2.0 * copy.load([0], [256]));
        }";
    let folder = folder("bench-workspaces", source);
    let args = ["explain-launch", "scale.tk", "--for=sm_90a", "x=empty:f32[262144]", "y=empty:f32[262144]"];
    folder.tk(&args).code(0).out_has("0.06 waves, 2.0 MiB of workspaces");
    folder
        .tk(&[args.as_slice(), &["--message-format=json"]].concat())
        .code(0)
        .out_has("\"workspace_bytes\":2097152");
    let folder = self::folder("bench-no-workspaces", SCALE);
    let ran = folder.tk(&["explain-launch", "scale.tk", "--for=sm_90a", ARGUMENTS[0], ARGUMENTS[1]]);
    assert!(!ran.code(0).out.contains("workspaces"), "{}", ran.out);
}

#[test]
fn members_that_are_wrong_or_hang_are_left_out() {
    // The result depends on the block; one of the members never ends.
    let source = "kernel f[BLOCK: i32 = 64](y: mut view[i32, 1], n: i32)
    grid(cdiv(y.shape[0], BLOCK))
    tune(key = (y.shape[0])) {
        { BLOCK = [32, 64, 128] },
    }
{
    let mut more = n;
    while BLOCK == 128 && more > 0 {
        more += 0;
    }
    y.store([program_id(0) * BLOCK], full([BLOCK], BLOCK, i32));
}
";
    let folder = Folder::new("tune-wrong");
    folder.write("f.tk", source);
    let args = ["--device=cpu", "y=zeros:i32[4096]", "n=1", "--timeout=1", "--message-format=json"];
    let ran = folder.tk(&[&["tune", "f.tk"], args.as_slice()].concat());
    let lines = objects(&ran.code(0).out);
    let why = |member: &str| {
        let line = lines.iter().find(|l| l["member"] == member && l["kind"] == "trial").unwrap();
        line["why"].as_str().unwrap_or_default().to_string()
    };
    assert!(why("BLOCK=32").contains("its results are wrong: `y`, element 0: 32 instead of 64"), "{lines:?}");
    assert!(!why("BLOCK=128").is_empty(), "{lines:?}");
    assert!(!folder.path("f.tuning.json").exists());
}

#[test]
fn there_must_be_something_to_tune() {
    let folder = Folder::new("tune-nothing");
    let empty =
        SCALE.replace("{ BLOCK = [64, 4096], warps = 4 },", "{ BLOCK = 64, warps = 4 } if target.has_tma,");
    folder.write("scale.tk", &empty);
    tune(&folder, &[]).code(2).err_has("has nothing to tune");
    tune(&folder, &["--set", "BLOCK"]).code(2).err_has("NAME=VALUE");
    folder.write("scale.tk", "kernel scale(x: view[f32, 1]) { x = 3; }");
    tune(&folder, &[]).code(1);
}

#[test]
fn swept_parameters_are_given_by_name() {
    let folder = folder("bench-swept", SCALE);
    let bench = |more: &[&str]| {
        let mut all = vec!["bench", "scale.tk", "--device=cpu", "--time=0.01", "--json"];
        all.extend(more);
        folder.tk(&all)
    };
    // A compile-time parameter is one too: blocks of 300 elements are computed whole.
    let args = ["BLOCK=100,300", "x=randn:f32[400]", "y=empty:f32[400]"];
    let rows = objects(&bench(&args).code(0).out);
    let operations: Vec<f64> = rows.iter().map(|r| r["operations"].as_f64().unwrap()).collect();
    assert_eq!(operations, [400.0, 600.0]);
    // What is compared comes after the kernel itself.
    let rows = objects(&bench(&["x=randn:f32[4]", "y=empty:f32[4]", "--compare", "BLOCK=2"]).code(0).out);
    let variants: Vec<&str> = rows.iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["", "BLOCK=2"]);
    bench(&["n=4,8", "x=randn:f32[4]", "y=empty:f32[4]"]).code(2).out_has("`n` is swept, but");
    bench(&["n=2^10..2^80", "x=randn:f32[n]", "y=empty:f32[n]"]).code(2).out_has("is not understood; write");
}

#[test]
fn a_kernel_without_end_is_given_up() {
    let folder = Folder::new("bench-endless");
    let source = "kernel endless[B: i32 = 8](y: mut view[i32, 1], n: i32)
    tune(key = (n)) { { B = [8, 16] } }
{
    let mut more = n;
    while more > 0 { more += 0; }
    y.store([0], full([B], more, i32));
}
";
    folder.write("endless.tk", source);
    let args = ["--device=cpu", "y=empty:i32[64]", "n=1", "--timeout=0.3"];
    folder
        .tk(&[&["bench", "endless.tk"], args.as_slice()].concat())
        .code(2)
        .err_has("still running after 0.3 s");
}
