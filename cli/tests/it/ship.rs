//! What `tk build` ships: the C source launches what the contract says, a bundle chooses as the compiler would, and the bytes
//! depend on nothing but the program. A driver that only writes down what it is asked stands in for NVIDIA's.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::building::{self, without_ptxas};
use crate::support::command::{self, Folder};
use tk_bundle::Bundle;

pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

pub fn cc(folder: &Folder, args: &[&str]) {
    let strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    let done = Command::new("cc").current_dir(folder.path("")).args(strict).args(args).output().unwrap();
    assert!(done.status.success(), "cc {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs `tk` in a folder outside of the repository.
pub fn tk(folder: &Folder, args: &[&str]) -> command::Ran {
    command::Ran::new(command::command(&folder.path(""), args).env("TK_PTXAS", ptxas()).output().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the program in C says with kernels for a target, whose driver is made with these options under this name.
fn launched(name: &str, target: &str, library: &str, options: &[&str]) -> String {
    let folder = Folder::new(name);
    let ship = format!("{ROOT}/tests/ship");
    tk(&folder, &["build", &format!("{ship}/kernels.tk"), "--target", target, "--emit", "header", "-o", "."])
        .code(0);
    let named = format!("-DLIBRARY=\"{library}\"");
    let main = format!("{ship}/main.c");
    cc(&folder, &[options, &["kernels.c", &main, &named, "-I.", "-o", "main", "-ldl"]].concat());
    // C++ takes the header too.
    folder
        .write("header.cc", "#include \"kernels.h\"\nint main() { return tk_kernels_error() == nullptr; }\n");
    let done = Command::new("c++")
        .current_dir(folder.path(""))
        .args(["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "header.cc"])
        .output();
    if let Ok(done) = done {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let driver = format!("{ship}/driver.c");
    cc(&folder, &[options, &["-shared", "-fPIC", &driver, "-o", library]].concat());
    // What the kernel driver says of a processor, of a gfx942 on bus 9 and of a gfx906 on bus 8.
    for (node, (location, version)) in [(0, 0), (9 << 8, 90402), (8 << 8, 90006)].into_iter().enumerate() {
        let place = format!("class/kfd/kfd/topology/nodes/{node}");
        fs::create_dir_all(folder.path(&place)).unwrap();
        let said =
            format!("cpu_cores_count 0\nlocation_id {location}\ndomain 0\ngfx_target_version {version}\n");
        folder.write(&format!("{place}/properties"), &said);
    }
    let run = |log: &str| {
        let mut main = Command::new(folder.path("main"));
        main.env("LD_LIBRARY_PATH", folder.path("")).env("TK_SYSFS", folder.path("")).env("TK_LOG", log);
        let ran = main.output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        ran
    };
    let (ran, logged) = (run("0"), run("1"));
    // The same source is C++, and does the same.
    cc(&folder, &[options, &["-c", &main, &named, "-I.", "-o", "main.o"]].concat());
    let cxx = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-x",
        "c++",
        "kernels.c",
        "-x",
        "none",
        "main.o",
    ];
    let done = Command::new("c++")
        .current_dir(folder.path(""))
        .args(options)
        .args(cxx)
        .args(["-o", "main", "-ldl"])
        .output();
    if let Ok(done) = done {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(text(&run("0")), text(&ran));
    }
    assert_eq!(text(&ran), text(&logged));
    // Once for each variant, and only if it is asked for.
    let slower = |ran: &Output| -> Vec<String> {
        let errors = String::from_utf8_lossy(&ran.stderr);
        errors.lines().filter(|l| l.contains("does not take its first variant")).map(String::from).collect()
    };
    let said = slower(&logged);
    assert_eq!(slower(&ran), [""; 0]);
    assert!(said.iter().any(|l| l.contains("but the one for all arguments")), "{logged:?}");
    assert_eq!(said.iter().filter(|l| l.contains("`product`")).count(), 1, "{said:?}");
    text(&ran)
}

fn expected(file: &str, found: &str) {
    tk_snapshot::check(format!("{ROOT}/tests/ship/{file}"), found);
}

#[test]
fn c_launches_what_the_contract_says() {
    if without_ptxas() {
        return;
    }
    expected("expected.txt", &launched("ship-c", "sm_90a", "libcuda.so.1", &[]));
}

#[test]
fn c_launches_on_amd_too() {
    if without_ptxas() {
        return;
    }
    expected("expected_amd.txt", &launched("ship-c-amd", "gfx942", "libamdhip64.so.6", &["-DHIP"]));
}

/// A launcher that is written from the manifest asks for what the binary has not got by itself.
#[test]
fn the_manifest_counts_shared_memory_once() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-shared");
    let source = "kernel turn(x: view[f32, 2], y: mut view[f32, 2]) grid(1) {\n    \
                  y.store([0, 0], x.load([0, 0], [64, 64]).T);\n}\n";
    folder.write("turn.tk", source);
    for (target, fixed) in [("gfx942", true), ("sm_90a", false)] {
        tk(&folder, &["build", "turn.tk", "--target", target, "--emit", "manifest", "-o", target]).code(0);
        let mut files = fs::read_dir(folder.path(target)).unwrap().flatten().map(|e| e.path());
        let name = files.find(|p| p.extension().is_some_and(|e| e == "json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(name).unwrap()).unwrap();
        let variants = manifest["kernels"][0]["variants"].as_array().unwrap();
        assert!(!variants.is_empty());
        for v in variants {
            let [asked, own] = ["shared_bytes", "static_shared_bytes"].map(|n| v[n].as_u64().unwrap());
            assert!(
                if fixed { asked == 0 && own > 0 } else { asked > 0 && own == 0 },
                "{target}: {asked} and {own}"
            );
        }
    }
}

#[test]
fn a_bundle_takes_tables_of_addresses() {
    if without_ptxas() {
        return;
    }
    use tk_ops::DType;
    use tk_runtime::Value;
    use tk_runtime::npy::Array;
    let folder = Folder::new("ship-table");
    let build = [
        "build",
        &format!("{ROOT}/tests/ship/kernels.tk::lists"),
        "--target",
        "sm_90a",
        "--emit",
        "bundle",
        "-o",
        ".",
    ];
    tk(&folder, &build).code(0);
    let bundle = Bundle::open(&folder.path("kernels.tkb")).unwrap();
    let param = &bundle.manifest().kernels[0].params[0];
    assert_eq!(param.table, Some(tk_bundle::Table { depth: 1, mutable: true }));
    assert_eq!(bundle.manifest().kernels[0].variants[0].entries, [Some("f32".to_string()), None]);
    let floats = |n: usize| {
        let bytes = (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect();
        Value::Array(Array { dtype: DType::F32, shape: vec![n], bytes })
    };
    let lengths = [2i32, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    let lengths = Value::Array(Array { dtype: DType::I32, shape: vec![2], bytes: lengths });
    let table = Value::Table(vec![floats(2), floats(4)]);
    let (arrays, _) = tk_runtime::bundled::run(&bundle, "lists", vec![table, lengths], &[]).unwrap();
    let found: Vec<(String, Vec<f32>)> = arrays
        .iter()
        .map(|(name, a)| {
            let one = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
            (name.clone(), a.bytes.chunks_exact(4).map(one).collect())
        })
        .collect();
    assert_eq!(
        found,
        [("table[0]".to_string(), vec![1.0, 2.0]), ("table[1]".to_string(), vec![1.0, 2.0, 3.0, 3.0])]
    );
}

/// An export of several ranks ships a kernel for each, and each file holds what its name says.
#[test]
fn ranks_are_kernels_of_their_own() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-ranks");
    folder.write(
        "k.tk",
        "kernel scale[T: f16 | f32, R: i32](x: view[T, R], y: mut view[T, R], by: f32)\n    grid(x.shape[R - 1])\n    \
         require(x.shape == y.shape)\n{\n    if R == 1 {\n        let i = program_id(0);\n        \
         y.store([i], (x.load([i]) as f32 * by) as T);\n    } else if R == 2 {\n        let i = program_id(0);\n        \
         y.store([0, i], (x.load([0, i]) as f32 * by) as T);\n    }\n}\nexport scale[T = [f32, f16], R = [1, 2]];\n",
    );
    tk(
        &folder,
        &["build", "k.tk", "--target", "sm_90a", "--emit", "header,bundle,manifest,cubin", "-o", "out"],
    )
    .code(0);
    let header = fs::read_to_string(folder.path("out/k.h")).unwrap();
    assert!(
        header.contains("tk_scale_R1(void *stream, const tk_view1 *x") && header.contains("tk_scale_R2(")
    );
    let mut seen = 0;
    for file in fs::read_dir(folder.path("out")).unwrap().flatten().map(|e| e.path()) {
        let name = file.file_name().unwrap().to_string_lossy().to_string();
        let Some(stem) = name.strip_suffix(".tile") else { continue };
        let values: Vec<&str> = stem.split('.').filter(|part| part.contains('=')).collect();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(&format!("scale[{}]", values.join(", "))), "{name}: {text}");
        seen += 1;
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn one_c_file_is_for_one_vendor() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-c-both");
    let file = format!("{ROOT}/tests/ship/kernels.tk");
    let args = ["build", &file, "--target", "sm_90a", "--target", "gfx942", "--emit", "header", "-o", "."];
    tk(&folder, &args).code(2).err_has("build for NVIDIA and AMD separately");
}

#[test]
fn the_example_in_c_builds_with_a_compiler_alone_and_says_why_there_is_no_gpu() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-example");
    let (tk, out) = (env!("CARGO_BIN_EXE_tk"), folder.path("out"));
    let make = Command::new("make")
        .current_dir(format!("{ROOT}/examples/embed/c"))
        .args([format!("TK={tk}"), format!("OUT={}", out.display())])
        .output()
        .unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    let ran = Command::new(out.join("main")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    match ran.status.code() {
        // On a machine with a GPU it compares what the kernels give.
        Some(0) => {}
        code => {
            assert_eq!(code, Some(77), "{said}");
            assert!(said.contains("NVIDIA driver") && said.contains("status 1"), "{said}");
        }
    }
}

#[test]
fn what_c_cannot_launch_is_a_diagnostic() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-refused");
    folder.write("says.tk", "kernel says(x: view[f32, 1]) { print(\"{}\", x.shape[0]); }\n");
    folder.write(
        "open.tk",
        "kernel open(x: mut view[f32, 1], n: i32) grid(n << 1) { x.store([0], zeros([1], f32)); }\n",
    );
    let build = |file: &str, form: &str| {
        tk(&folder, &["build", file, "--target", "sm_80", "--emit", form, "-o", "out"])
    };
    let ran = build("says.tk", "header");
    assert!(ran.code(2).err.contains("E1005") && ran.err.contains("cannot be launched from C"), "{ran:#?}");
    build("says.tk", "bundle").code(0);
    let ran = build("open.tk", "bundle");
    assert!(ran.code(2).err.contains("E1005") && ran.err.contains("no closed form"), "{ran:#?}");
}

/// The library's norms, whose launches are functions of the rows, for who ships them with what is fixed in advance.
#[test]
fn norms_of_the_library_have_closed_forms() {
    let folder = Folder::new("ship-norms");
    for name in ["layer_norm", "rms_norm"] {
        let export =
            format!("export {name}[T = f16, O = f16, W = f16, BLOCK = 128, WHOLE = true, RAGGED = true];");
        folder.write("k.tk", format!("use std::nn::norm::{name};\n{export}\n"));
        tk(&folder, &["build", "k.tk", "--target", "gfx942", "--emit", "manifest", "-o", "out"]).code(0);
    }
}

/// What a launcher would get wrong, or could not read, is refused when it is built.
#[test]
fn what_has_no_closed_form_is_refused() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-closed");
    let doubled: String = (1..24).map(|i| format!("let a{i} = a{} && a{}; ", i - 1, i - 1)).collect();
    let cases = [
        (
            "narrow",
            "(x: *mut f32, h: f16) require((h as f32) > 0.5)".to_string(),
            "`gt` of `f16`|this conversion",
        ),
        ("infinite", "(x: *mut f32, f: f32) require(f < 1.0 / 0.0)".to_string(), "this value"),
        ("leaves", "(x: *mut f32, n: i32) grid(leaves(n))".to_string(), "no closed form"),
        (
            "doubled",
            "(x: *mut f32, n: i32) require(doubled(n > 0))".to_string(),
            "an expression of this size",
        ),
        ("shifted", "(x: *mut f32, n: i32) grid(n << 1)".to_string(), "`shl` of `i32`"),
    ];
    for (name, head, says) in cases {
        let source = format!(
            "fn leaves(n: i32) -> i32 {{ let a = if n > 5 {{ return 3; }} else {{ 4 }}; a + 1 }}\n\
             fn doubled(a0: bool) -> bool {{ {doubled}a23 }}\nkernel k{head} {{ store(x, 0.0); }}\n"
        );
        folder.write(&format!("{name}.tk"), source);
        let ran = tk(
            &folder,
            &["build", &format!("{name}.tk"), "--target", "sm_80", "--emit", "bundle", "-o", "."],
        );
        assert!(ran.code(2).err.contains("E1005"), "{name}: {ran:#?}");
        assert!(says.split('|').any(|s| ran.err.contains(s)), "{name}: {ran:#?}");
    }
}

#[test]
fn functions_that_read_the_same_are_different_choices() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-functions");
    folder.write(
        "m.tk",
        "const ADD = |v: f32| v + 1.0;\nconst TWICE = |v: f32| v * 2.0;\n\
         kernel m[F: fn(f32) -> f32](x: mut view[f32, 1]) { x.store([0], map(F, x.load([0], [32]))); }\n\
         export m[F = [ADD, TWICE]];\n",
    );
    tk(&folder, &["build", "m.tk", "--target", "sm_80", "--emit", "bundle,header", "-o", "."]).code(0);
    cc(&folder, &["-c", "m.c"]);
    let bundle = Bundle::open(&folder.path("m.tkb")).unwrap();
    let values: Vec<u32> = bundle.manifest().kernels[0].variants.iter().map(|v| v.given[0].value).collect();
    // Of the target, then of PTX.
    assert_eq!(
        (values, bundle.manifest().kernels[0].choices[0].values.len()),
        (vec![0, 0, 1, 1, 0, 0, 1, 1], 2)
    );
    // On the CPU each does what it says.
    let run = |which: &str| {
        let x = tk_runtime::npy::Array::of(&[3.0f32; 32], &[32]);
        let named = [("F", which)];
        let (arrays, _) = tk_runtime::bundled::run(&bundle, "m", vec![x.into()], &named).unwrap();
        arrays[0].1.to_vec::<f32>()[31]
    };
    let names = bundle.manifest().kernels[0].choices[0].values.clone();
    assert_eq!((run(&names[0]), run(&names[1])), (4.0, 6.0));
}

#[test]
fn an_artifact_is_inspected_or_refused() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-inspect");
    let source = format!("{ROOT}/tests/ship/kernels.tk::every");
    let args =
        ["build", &source, "--target", "sm_90a", "--set", "T=f16", "--set", "BLOCK=64", "--set", "MODE=1"];
    let emit = ["--emit", "bundle,manifest", "--listing", "-o", "."];
    tk(&folder, &[args.as_slice(), emit.as_slice()].concat()).code(0);
    for file in ["kernels.tkb", "kernels.json"] {
        let ran = tk(&folder, &["inspect", file]);
        ran.code(0)
            .out_has("every(x: view[f16, 1], bias: view[f32, 1]?, y: mut view[f16, 1], n: i64, p: f32 = 0.5");
        ran.out_has("T=f16, BLOCK=64, MODE=1 without bias (aligned) for sm_90a")
            .out_has("requires x.shape == y.shape");
        ran.out_has("taken if maximum(next_pow2(x.shape[0]), 64) == 64")
            .out_has("blocks on a multiprocessor");
        let json = tk(&folder, &["inspect", file, "--message-format", "json"]);
        json.code(0).out_has("\"kind\":\"manifest\"");
    }
    tk(&folder, &["inspect", "kernels.tkb", "--html", "page.html"]).code(0);
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    for name in
        ["tile IR", "laid-out IR", "scheduled IR", "LLVM", "PTX", "// Everything that a launch decides"]
    {
        assert!(page.contains(name), "{name}");
    }
    // A line of PTX knows the line of the source that stores.
    let line = fs::read_to_string(format!("{ROOT}/tests/ship/kernels.tk")).unwrap();
    let line = 1 + line.lines().position(|l| l.contains("y.store([at], v as T);")).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let views = data["kernels"][0]["variants"][0]["views"].as_array().unwrap();
    let ptx = views.iter().find(|v| v["name"] == "PTX").unwrap()["lines"].as_array().unwrap();
    let stores = ptx.iter().filter(|l| l[0].as_str().unwrap().contains("st.global"));
    assert!(
        stores.into_iter().any(|l| (&l[1], &l[2]) == (&0.into(), &line.into())),
        "no store of line {line}"
    );
    // The model says what each line costs in a typical launch, here one of 64 elements.
    let typical = &data["kernels"][0]["variants"][0]["typical"];
    assert_eq!((&typical["extent"], &typical["gpu"]), (&64.into(), &"NVIDIA H100".into()), "{typical}");
    let of_line = |n: usize| typical["lines"].as_array().unwrap().iter().find(|l| l["at"][1] == n).unwrap();
    assert!(of_line(line)["bytes"].as_f64().unwrap() >= 128.0, "{typical}");
    assert!(typical["us"].as_f64().unwrap() > 1.0, "{typical}");

    let bytes = fs::read(folder.path("kernels.tkb")).unwrap();
    folder.write("short.tkb", &bytes[..bytes.len() - 1]).write("empty.json", "").write("no.json", "{}");
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2;
    damaged[middle] ^= 1;
    folder.write("damaged.tkb", &damaged);
    let text = fs::read_to_string(folder.path("kernels.json")).unwrap();
    folder.write("edited.json", text.replace("\"threads\": 128", "\"threads\": 0"));
    for (file, says) in [
        ("short.tkb", "this bundle is damaged; build it again"),
        ("damaged.tkb", "this bundle is damaged; build it again"),
        ("empty.json", "is neither a bundle nor a manifest"),
        ("no.json", "is neither a bundle nor a manifest: missing field `format`"),
        ("edited.json", "is damaged: kernel `every`: a variant has no threads or no blocks"),
        ("nobody.tkb", "cannot read nobody.tkb"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        tk(&folder, &["inspect", file]).code(2).says(&[says]);
    }
    tk(&folder, &["inspect", "kernels.tkb", "--html", "kernels.tkb"])
        .code(2)
        .says(&["the page would replace"]);
}

#[test]
fn exports_are_shipped_whatever_has_a_default() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-exports");
    let source =
        "kernel k[N: i32 = 32](y: *mut f32) { store(y + arange(0, N), 0.0); }\nexport k[N = [32, 64]];\n";
    folder.write("a-b.tk", source);
    tk(&folder, &["build", "a-b.tk", "--target", "sm_80", "--emit", "header,bundle", "-o", "."]).code(0);
    let header = fs::read_to_string(folder.path("a-b.h")).unwrap();
    assert!(header.contains("TK_K_N_DEFAULT = 0,\n    TK_K_N_32 = 1,\n    TK_K_N_64 = 2"), "{header}");
    // Two files that differ in what C takes for one name do not share a guard.
    assert!(header.contains("#ifndef TK_A_B_") && !header.contains("#ifndef TK_A_B_H"), "{header}");
    cc(&folder, &["-c", "a-b.c"]);
    let set =
        tk(&folder, &["build", "a-b.tk", "--target", "sm_80", "--set", "N=16", "--emit", "ptx", "-o", "out"]);
    set.code(0).out_has("k[N=16]");
    // An expression that doubles with each call is refused, not written out.
    let mut twice = "fn f0(n: i32) -> i32 { n + n }\n".to_string();
    (1..25)
        .for_each(|i| twice += &format!("fn f{i}(n: i32) -> i32 {{ let a = f{}(n); a - a / 2 }}\n", i - 1));
    folder.write("twice.tk", twice + "kernel k(y: *mut f32, n: i32) grid(f24(n)) { store(y, 0.0); }\n");
    let ran = tk(&folder, &["build", "twice.tk", "--target", "sm_80", "--emit", "bundle", "-o", "."]);
    assert!(ran.code(2).err.contains("E1005"), "{ran:#?}");
    // Many expressions and little code.
    let list: Vec<String> = (0..8).map(|i| format!("x{i}: view[f32, 4]")).collect();
    let require: Vec<String> = (1..8).map(|i| format!("x0.shape == x{i}.shape")).collect();
    let many = format!(
        "kernel k({}, y: mut view[f32, 1]) grid(1) require({}) {{ y.store([0], zeros([1], f32)); }}\n",
        list.join(", "),
        require.join(", ")
    );
    folder.write("many.tk", many);
    tk(&folder, &["build", "many.tk", "--target", "sm_80", "--emit", "bundle", "-o", "."]).code(0);
    tk(&folder, &["inspect", "many.tkb"]).code(0).out_has("x0.shape == x7.shape");
}

#[test]
fn a_layout_is_numbers_and_a_picture() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-layout");
    let ran = tk(&folder, &["layout", "acc(m16n8k16, 4)", "64x64", "--dtype", "f32", "-o", "acc.svg"]);
    ran.code(0).out_has("32 elements in a thread, 1 thread for an element").out_has("accesses of 8 bytes");
    let svg = fs::read_to_string(folder.path("acc.svg")).unwrap();
    // Row 8 of the first lane is its third register: PTX, fragments of m16n8k16.
    assert!(svg.contains("element [8, 0]: warp 0, lane 0, register 2"), "no such element");
    tk(&folder, &["layout", "blocked(8, 4)", "64x64", "--message-format", "json"])
        .code(0)
        .out_has("\"access_bytes\":16");
    for (layout, shape, says) in [
        ("blocked(3, 4)", "64x64", "neighbours are a power of two"),
        ("blocked(8, 4)", "0x4", "is not a tile shape"),
        ("acc(m16n8k16, 4)", "64", "a tile of two dimensions"),
        ("foo(1)", "64", "is not a layout"),
        ("[2]: register [], lane [[1], [2]], warp []", "4", "has 2^2 lanes, and a warp of `sm_90a` has 32"),
        ("[2]: register [[1]", "4", "is not a layout: column"),
    ] {
        tk(&folder, &["layout", layout, shape]).code(2).says(&[says]);
    }
}

#[test]
fn the_same_bytes_come_out_in_other_folders_and_locales() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-bytes");
    fs::create_dir_all(folder.path("deep/er")).unwrap();
    fs::copy(format!("{ROOT}/examples/softmax.tk"), folder.path("softmax.tk")).unwrap();
    fs::copy(format!("{ROOT}/examples/softmax.tk"), folder.path("deep/er/softmax.tk")).unwrap();
    let build = |source: &str, out: &str, current: &str, locale: &str| {
        let args = ["build", source, "--target", "sm_90a", "--emit", "bundle,manifest,header", "-o", out];
        let mut tk = command::command(&folder.path(current), &args);
        // Nothing comes from the cache.
        tk.env("LC_ALL", locale)
            .env("HOME", folder.path(out))
            .env("TK_CACHE_DIR", folder.path(out).join("cache"));
        tk.env("TK_PTXAS", ptxas());
        let done = tk.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let absolute = folder.path("deep/er/softmax.tk").display().to_string();
    let (one, two) = (folder.path("one").display().to_string(), folder.path("two").display().to_string());
    build("softmax.tk", &one, "", "C");
    build(&absolute, &two, "deep", "de_DE.UTF-8");
    let names = |out: &str| {
        let all = fs::read_dir(out).unwrap().flatten().filter(|e| e.path().is_file());
        let mut names: Vec<String> = all.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&one), names(&two));
    assert!(names(&one).len() > 3);
    for name in names(&one) {
        let read = |out: &str| fs::read(Path::new(out).join(&name)).unwrap();
        assert!(read(&one) == read(&two), "{name} differs");
    }
}

/// NVIDIA's assembler; a path of nothing where there is none.
pub fn ptxas() -> std::path::PathBuf {
    building::ptxas().unwrap_or_default()
}
