//! Devices: what programs may ask about the machine that they are compiled for, and what is said where one is missing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::command::{self, ADD, Folder, Ran};

/// A kernel whose code, and one whose parameter, depends on the target.
const FACTS: &str = "\
fn wide() -> i32 {
    if target.has_tma { 2048 } else { 1024 }
}

kernel facts[BLOCK: i32 = wide()](y: *mut i32) {
    store(y, target.warp_size);
    store(y + 1, if target.has_ptx { 11111 } else { 22222 });
    store(y + 2, BLOCK);
}

test \"a test sees the facts of its device\" {
    let y = buffer(zeros([3], i32));
    facts(y);
    assert(y.tile()[0] == target.warp_size);
}
";

#[test]
fn facts_are_those_of_the_target() {
    let folder = Folder::new("target-facts");
    folder.write("facts.tk", FACTS);
    for (device, shown) in
        [("cpu", "32, 22222, 1024"), ("sim", "32, 22222, 2048"), ("sim64", "64, 22222, 1024")]
    {
        let ran = folder.tk(&["run", "facts.tk", "y=zeros:i32[3]", "--device", device]);
        ran.code(0).out_has(shown);
        folder.tk(&["test", "facts.tk", "--device", device]).code(0);
    }
    let targets = ["--target", "sm_80", "--target", "sm_90a"];
    let ran = folder.tk(&[&["build", "facts.tk", "--emit", "ptx", "-o", "out"], &targets[..]].concat());
    ran.code(0);
    for (stem, block) in [("facts.BLOCK=1024.sm_80", ", 1024;"), ("facts.BLOCK=2048.sm_90a", ", 2048;")] {
        let ptx = fs::read_to_string(folder.path(&format!("out/{stem}.ptx"))).unwrap();
        assert!(ptx.contains("11111;") && ptx.contains(block) && !ptx.contains("22222"), "{ptx}");
    }
}

/// A kernel with instructions for one kind of target.
fn assembly(text: &str, constraints: &str) -> String {
    format!(
        "kernel k(y: mut view[i32, 1]) {{\n    let x = arange(0, 128);\n    if target.has_ptx {{\n        \
         y.store([0], inline_asm(\"{text}\", \"{constraints}\", i32, x, 7));\n    }} else {{\n        \
         y.store([0], x + 7);\n    }}\n}}\n"
    )
}

#[test]
fn instructions_of_a_target_are_copied_for_each_element() {
    let folder = Folder::new("inline-asm");
    let build = ["build", "k.tk", "--target", "sm_90a", "--emit", "ptx", "-o", "out"];
    folder.write("k.tk", assembly("add.s32 $0, $1, $2;", "=r,r,r"));
    folder.tk(&build).code(0);
    let ptx = fs::read_to_string(folder.path("out/k.sm_90a.ptx")).unwrap();
    assert!(ptx.contains("add.s32 \t%r") || ptx.contains("add.s32 %r"), "{ptx}");
    folder.tk(&["run", "k.tk", "y=zeros:i32[128]", "--device", "sim"]).code(0).out_has("7, 8, 9");
    // LLVM would end the process on each of these.
    let cases = [
        ("add.s32 $0, $1, $2;", "=r,r,q", "the constraint `q`"),
        ("add.s32 $0, $1, $2;", "r,r,r", "the constraint `r`"),
        ("add.s32 $0, $1, $2;", "=r,r", "2 constraints for 3 operands"),
        ("add.s32 $0, $1, $2;", "=r,r,h", "a value of 32 bits in a register of 16"),
        ("add.s32 $0, $1, $3;", "=r,r,r", "`$3`"),
        ("add.s32 $0, $1, ${2:x};", "=r,r,r", "`$`"),
    ];
    for (text, constraints, what) in cases {
        folder.write("k.tk", assembly(text, constraints));
        folder.tk(&build).code(2).err_has("error[E1003]").err_has(what).err_has("k.tk:4:22");
    }
}

#[test]
fn instructions_give_several_results_and_take_several_elements() {
    let folder = Folder::new("inline-asm-pack");
    let cases = [
        (
            "\"add.s32 $0, $1, $1;\", \"=r,r\", (i32, i32), x",
            2,
            "2 constraints for 3 operands, of which the 2",
        ),
        ("\"add.s32 $0, $2, $2;\", \"=r,r,r\", (i32, i32), x", 2, "the constraint `r`"),
        ("\"add.s32 $0, $1, $1;\", \"=r,r\", i32, x, pack = 2", 2, "2 constraints for 4 operands"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", u8, x as u8, pack = 2", 2, "`pack = 2` for elements of 8 bits"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", bool, x > 0, pack = 4", 2, "`pack = 4` for elements of 1 bits"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", u8, x as u8, pack = 3", 2, "`pack` is 1, 2, 4, 8 or 16, not 3"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", (), x", 1, "gives at least one value"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", (i32, 4), x", 1, "E0301"),
        ("\"mov.b32 $0, $1;\", \"=r,r\", i32, pack = 2, x", 1, "E0308"),
    ];
    for (call, code, what) in cases {
        folder.write(
            "k.tk",
            format!("kernel k(y: mut view[i32, 1]) {{\n    let x = arange(0, 128);\n    if target.has_ptx {{\n        let z = inline_asm({call});\n    }}\n    y.store([0], x);\n}}\n"),
        );
        let ran = folder.tk(&["build", "k.tk", "--target", "sm_90a", "--emit", "ptx", "-o", "out"]);
        ran.code(code).err_has(what);
    }
}

/// Where the assembler of the repository may be.
const ASSEMBLER: [(&str, &str); 1] = [("VIRTUAL_ENV", concat!(env!("CARGO_MANIFEST_DIR"), "/../.venv"))];

/// A kernel that needs more shared memory than any target has, and one that does not.
const TILES: &str = "\
kernel large(x: view[f32, 2], y: mut view[f32, 2]) {
    y.store([0, 0], permute(x.load([0, 0], [256, 512]), [1, 0]));
}

kernel small(x: view[f32, 2], y: mut view[f32, 2]) {
    y.store([0, 0], permute(x.load([0, 0], [64, 64]), [1, 0]));
}
";

/// The folder with the folders `cuda` and `hip` of a driver for tests; `None` without a Rust compiler.
fn drivers() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let name = format!("fake-driver-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        ["cuda", "hip"].iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/launch/tests/it/fake_driver/libcuda.rs");
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command.args(["--edition", "2024", "--crate-type", "cdylib", "-A", "warnings", "-o"]);
        let library = folder.join("cuda/libcuda.so");
        let status = command.arg(&library).arg(source).status().ok()?;
        assert!(status.success(), "the driver does not compile");
        fs::copy(library, folder.join("hip/libamdhip64.so.7")).unwrap();
        Some(folder)
    };
    FOLDER.get_or_init(build).as_deref()
}

/// Runs the command on a machine with NVIDIA's driver; `machine` says what is wrong with it. `None` without one.
fn on(machine: &str, folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> Option<Ran> {
    with("cuda", machine, folder, args, variables)
}

/// The same with AMD's runtime and a GPU of this architecture, as the kernel driver numbers it.
fn on_amd(
    machine: &str,
    version: u32,
    folder: &Folder,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Option<Ran> {
    let node = folder.path("sys/class/kfd/kfd/topology/nodes/1");
    fs::create_dir_all(&node).unwrap();
    // Plugged in at 0000:c1:00.
    let text = format!("gfx_target_version {version}\nlocation_id {}\ndomain 0\n", 0xc1 << 8);
    fs::write(node.join("properties"), text).unwrap();
    let system = folder.path("sys").to_string_lossy().into_owned();
    let variables = [&[("TK_SYSFS", system.as_str())][..], variables].concat();
    with("hip", machine, folder, args, &variables)
}

fn with(
    driver: &str,
    machine: &str,
    folder: &Folder,
    args: &[&str],
    variables: &[(&str, &str)],
) -> Option<Ran> {
    let Some(libraries) = drivers() else {
        eprintln!("left out: there is no Rust compiler to build a driver with");
        return None;
    };
    let mut command = command::command(&folder.path(""), args);
    command
        .env("FAKE_CUDA", machine)
        .env("LD_LIBRARY_PATH", libraries.join(driver))
        .env("TK_CACHE_DIR", folder.path("cache"));
    Some(Ran::new(command.envs(variables.iter().copied()).output().unwrap()))
}

const SMALL: [&str; 4] = ["run", "tiles.tk::small", "x=ones:f32[64,64]", "y=zeros:f32[64,64]"];
const LARGE: [&str; 4] = ["run", "tiles.tk::large", "x=ones:f32[256,512]", "y=zeros:f32[512,256]"];

fn tiles(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("tiles.tk", TILES);
    folder
}

#[test]
fn a_machine_that_runs_no_kernels_is_one_sentence_with_what_to_do() {
    let folder = tiles("machines");
    let args = [&SMALL[..], &["--device", "cuda"]].concat();
    let cases = [
        ("none", "the driver finds no NVIDIA GPU", "look at `nvidia-smi`"),
        ("old", "it is for CUDA 11.4, and kernels need 12.0", "update NVIDIA's driver"),
        ("mismatch", "the driver's library and its kernel module have different versions", "restart"),
        (
            "former",
            "the Paper GPU: it has compute capability 7.0",
            "use a GPU of compute capability 8 or later",
        ),
    ];
    for (machine, what, fix) in cases {
        let Some(ran) = on(machine, &folder, &args, &[]) else { return };
        ran.code(2).says(&[what, fix]);
        on(machine, &folder, &["doctor"], &[]).unwrap().code(0).out_has("\nCUDA    ");
        on(machine, &folder, &["test", "tiles.tk", "--device", "cuda"], &[]).unwrap().code(2);
    }
    // What times a launch names what predicts its time.
    let [_, arguments @ ..] = args.as_slice() else { return };
    for command in [&["bench"][..], &["profile", "--stamps"]] {
        let ran = on("none", &folder, &[command, arguments].concat(), &[]).unwrap();
        ran.code(2).says(&["the driver finds no NVIDIA GPU", "`tk profile` without `--device` predicts"]);
    }
    let doctor = on("former", &folder, &["doctor", "--message-format", "json"], &[]).unwrap();
    doctor.code(0).out_has("7.0").out_has("\"works\":false,\"message\":\"GPU 0: Paper GPU");
}

#[test]
fn a_machine_of_amd_that_runs_no_kernels_is_one_sentence_with_what_to_do() {
    let folder = tiles("machines-of-amd");
    let args = [&SMALL[..], &["--device", "hip"]].concat();
    let test = ["test", "tiles.tk", "--device", "hip"];
    let cases = [
        ("none", 90_010, "the runtime finds no AMD GPU", "look at `rocminfo`"),
        ("old", 90_010, "it is for HIP 5.2, and kernels need 5.5", "update ROCm"),
        (
            "",
            100_300,
            "the Paper GPU: it has architecture gfx1030",
            "use one of gfx90a, gfx942, gfx950, gfx1100 or gfx1201",
        ),
        (
            "",
            0,
            "the architecture of the AMD GPU at 0000:c1:00 is unknown",
            "load the kernel driver `amdgpu`",
        ),
    ];
    for (machine, version, what, fix) in cases {
        let Some(ran) = on_amd(machine, version, &folder, &args, &[]) else { return };
        ran.code(2).says(&[what, fix]);
        on_amd(machine, version, &folder, &["doctor"], &[]).unwrap().code(0).out_has("\nHIP     ");
        on_amd(machine, version, &folder, &test, &[]).unwrap().code(2);
    }
    folder.write("add.tk", ADD);
    let test = ["test", "add.tk", "--device", "hip"];
    on_amd("none", 90_010, &folder, &test, &[]).unwrap().code(2).out_has("1 skipped").err_has("no tests ran");
    let required = [("TK_REQUIRE_DEVICE", "hip")];
    let ran = on_amd("none", 90_010, &folder, &test, &required).unwrap();
    ran.code(2).err_has("TK_REQUIRE_DEVICE=hip").err_has("the runtime finds no AMD GPU");
    let doctor = on_amd("", 90_402, &folder, &["doctor"], &[]).unwrap();
    doctor.code(0).out_has("AMD runtime for HIP 6.1").out_has("architecture gfx942").out_has("target gfx942");
}

#[test]
fn a_binary_that_a_gpu_refuses_names_the_kernel_and_what_to_do() {
    let folder = tiles("binaries");
    let args = [&SMALL[..], &["--device", "cuda"]].concat();
    let cases = [
        ("foreign", "its binary is for another GPU architecture", "build the kernel for this GPU"),
        ("behind", "the driver is too old for its PTX", "update NVIDIA's driver"),
        ("", "it is not a GPU binary, or a damaged one", "`tk cache clear`"),
    ];
    for (machine, what, fix) in cases {
        let Some(ran) = on(machine, &folder, &args, &ASSEMBLER) else { return };
        if ran.err.contains("E1001") && std::env::var_os("CI").is_none() {
            return eprintln!("left out: there is no ptxas");
        }
        ran.code(2).err_has("E0708").err_has("kernel `small`").err_has(what).err_has(fix);
        ran.err_has("tiles.tk:5:8").err_has("x: f32[64, 64]");
    }
}

#[test]
fn a_launch_without_an_assembler_leaves_it_to_the_driver() {
    let folder = tiles("no-assembler");
    let args = [&SMALL[..], &["--device", "cuda"]].concat();
    let nowhere = [
        ("PATH", ""),
        ("HOME", "/nonexistent"),
        ("VIRTUAL_ENV", ""),
        ("TK_VENV", ""),
        ("CUDA_HOME", ""),
        ("TK_PTXAS", ""),
    ];
    let Some(ran) = on("", &folder, &args, &nowhere) else { return };
    // This driver has no assembler either.
    ran.code(2).err_has("its PTX is not valid").err_has("tiles.tk:5:8");
    // A GPU that is newer than all targets gets PTX even where there is one.
    let newer = on("next", &folder, &args, &ASSEMBLER).unwrap();
    newer.code(2).err_has("its PTX is not valid");
    on("next", &folder, &["doctor"], &[]).unwrap().code(0).out_has("target compute_80");
    let ran = on("", &folder, &args, &[("TK_PTXAS", "/nonexistent/ptxas")]).unwrap();
    ran.code(2).err_has("E1002").err_has("no such file").err_has("pip install").err_has("tiles.tk:5:8");
}

#[test]
fn more_shared_memory_than_there_is_is_refused_everywhere() {
    let folder = tiles("shared");
    let says = |ran: &Ran| {
        ran.code(2).err_has("E1004").err_has("`large` needs 524288 bytes of shared memory");
        ran.err_has("make its tiles smaller: it fits if these have 1/").err_has("tiles.tk:1:8");
    };
    let build = ["build", "tiles.tk::large", "--target", "sm_80", "--emit", "ptx", "-o", "out"];
    let built = folder.tk(&build);
    says(&built);
    built.err_has("`tile[f32, 256, 512]` takes 524288 bytes");
    says(&folder.tk(&[&LARGE[..], &["--device", "sim"]].concat()));
    let cuda = [&LARGE[..], &["--device", "cuda"]].concat();
    match on("", &folder, &cuda, &ASSEMBLER) {
        Some(ran) if !ran.err.contains("E1001") => says(&ran),
        Some(_) | None => eprintln!("left out: there is no ptxas or no driver"),
    }
    folder.tk(&LARGE).code(0);
    folder.tk(&[&SMALL[..], &["--device", "sim"]].concat()).code(0);
}

#[test]
fn what_needs_no_gpu_works_without_anything() {
    let folder = Folder::new("nothing-there");
    // Nobody can make a home below a file.
    folder.write("add.tk", ADD).write("file", "");
    let home = folder.path("file/home");
    let bare = |args: &[&str]| {
        let mut command = command::command(&folder.path(""), args);
        for name in
            ["VIRTUAL_ENV", "CUDA_HOME", "TK_PTXAS", "TK_CACHE_DIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"]
        {
            command.env_remove(name);
        }
        Ran::new(command.env("PATH", "").env("HOME", &home).output().unwrap())
    };
    bare(&["check", "add.tk"]).code(0);
    bare(&["fmt", "add.tk"]).code(0);
    bare(&["test", "add.tk"]).code(0);
    bare(&["test", "add.tk", "--device", "sim"]).code(0);
    bare(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[3]"]).code(0).out_has("1.0, 1.0, 1.0");
    let build =
        ["build", "add.tk", "--set", "T=f32", "--target", "sm_90a", "--emit", "ptx,llvm", "-o", "out"];
    bare(&build).code(0);
    bare(&["doctor"]).code(0);
    bare(&["cache", "info"]).code(0);
}

/// `TK_UNCHANGED`: a simulated launch of a kernel that has not changed, on memory that has not, is not repeated; every other
/// one is.
#[test]
fn unchanged_launches_are_replayed() {
    let folder = Folder::new("unchanged");
    let known = folder.path("known");
    let run = |text: &str, code: i32| {
        folder.write("k.tk", text);
        let mut tk = command::command(&folder.path(""), &["test", "k.tk", "--device", "sim"]);
        let ran = Ran::new(tk.env("TK_UNCHANGED", &known).output().unwrap());
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        (
            fs::read_dir(&known).unwrap().filter(|e| !e.as_ref().unwrap().path().ends_with("grown")).count(),
            ran,
        )
    };
    let text = "kernel k(x: *mut i32, n: i32) {\n    store(x, load(x) + n);\n}\n\ntest \"twice\" {\n    \
                let x = buffer(full([2], 5, i32));\n    k(x, 1);\n    k(x, 1);\n    assert(x.tile()[0] == 7 && x.tile()[1] == 5);\n}\n";
    let (first, _) = run(text, 0);
    // The second launch is on other memory.
    assert_eq!(first, 2);
    assert_eq!(run(&format!("// Moved.\n{text}"), 0).0, first);
    // Another kernel, another argument, other memory: each is launched, and its result is right, or its fault found.
    assert_eq!(run(&text.replace("load(x) + n", "load(x) + 2 * n").replace("== 7", "== 9"), 0).0, first + 2);
    assert_eq!(run(&text.replace("k(x, 1)", "k(x, 3)").replace("== 7", "== 11"), 0).0, first + 4);
    assert_eq!(
        run(&text.replace("[2], 5", "[2], 6").replace("== 7", "== 8").replace("== 5", "== 6"), 0).0,
        first + 6
    );
    run(&text.replace("== 7", "== 8"), 1);
    // What fails or prints is launched again.
    for _ in 0..2 {
        let (count, ran) = run(&text.replace("store(x,", "print(\"here\");\n    store(x,"), 0);
        assert_eq!(
            (count, ran.out.matches("here").count() + ran.err.matches("here").count()),
            (first + 6, 2)
        );
        let (count, ran) = run(&text.replace("store(x,", "assert(n > 1);\n    store(x,"), 1);
        assert_eq!(count, first + 6, "{ran:#?}");
    }
    // A damaged entry is no entry.
    for entry in fs::read_dir(&known).unwrap() {
        fs::write(entry.unwrap().path(), "nonsense").unwrap();
    }
    run(text, 0);
}
