//! What `tk build` ships beside the targets that are asked for, and for the CPU.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

use std::fs;
use std::process::Command;

use crate::ship::{ROOT, cc, ptxas, tk};
use crate::support::building::without_ptxas;
use crate::support::command::{self, Folder};
use tk_bundle::{Argument, Bundle, Facts};

/// GPUs of NVIDIA that are newer than the targets load PTX, which the assembler takes for them; launches look at it last.
#[test]
fn newer_gpus_load_ptx() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-ptx");
    let file = format!("{ROOT}/examples/softmax.tk");
    tk(&folder, &["build", &file, "--target", "sm_90a", "--emit", "bundle", "-o", "."]).code(0);
    let bundle = Bundle::open(&folder.path("softmax.tkb")).unwrap();
    let kernel = bundle.manifest().kernels[0].clone();
    let first = kernel.variants.iter().position(|v| v.target == "compute_80").unwrap();
    assert!(first > 0 && kernel.variants[first..].iter().all(|v| v.target == "compute_80"));
    let tensor = |address| Argument::Tensor { address, dtype: "f16", shape: &[8, 64], strides: None };
    let args = [tensor(0x1000), tensor(0x2000)];
    let given = vec![None; kernel.choices.len()];
    let target = |targets: &[&str]| {
        let facts = Facts { args: &args, given: &given, targets, sms: 1, shared_bytes: 99 << 10 };
        kernel.choose(&facts).map(|c| c.variant.target.clone()).map_err(|e| e.to_string())
    };
    assert_eq!(target(&["sm_90a", "compute_80"]).unwrap(), "sm_90a");
    assert_eq!(target(&["compute_80"]).unwrap(), "compute_80");
    assert!(target(&["gfx942"]).unwrap_err().contains("compute_80"));
    for v in [&kernel.variants[first], kernel.variants.last().unwrap()] {
        let ptx = bundle.blob(&v.binary).unwrap();
        // The driver reads a text to the zero at its end.
        let (end, text) = ptx.split_last().unwrap();
        assert!(*end == 0 && !text.contains(&0) && text.windows(13).any(|w| w == b".target sm_80"));
        fs::write(folder.path("kernel.ptx"), text).unwrap();
        for gpu in ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"] {
            let assembled = Command::new(ptxas())
                .current_dir(folder.path(""))
                .args(["--gpu-name", gpu, "kernel.ptx", "-o", "kernel.cubin"])
                .output()
                .unwrap();
            assert!(assembled.status.success(), "{gpu}: {}", String::from_utf8_lossy(&assembled.stderr));
        }
    }
    tk(&folder, &["build", &file, "--target", "sm_90a", "--no-ptx", "--emit", "bundle", "-o", "without"])
        .code(0);
    let bundle = Bundle::open(&folder.path("without/softmax.tkb")).unwrap();
    assert!(bundle.manifest().kernels[0].variants.iter().all(|v| v.target == "sm_90a"));
}

/// What does not fit in the PTX that nobody asked for is no warning.
#[test]
fn warnings_are_about_the_targets_that_were_asked_for() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-ptx-quiet");
    let page = fs::read_to_string(format!("{ROOT}/docs/from-cuda.md")).unwrap();
    let product = page.split("```tk\n").find(|block| block.contains("kernel product[")).unwrap();
    fs::write(folder.path("product.tk"), product.split("```").next().unwrap()).unwrap();
    let build = ["build", "product.tk", "--set", "stages=4", "--emit", "bundle", "-o", ".", "--target"];
    let quiet = tk(&folder, &[&build[..], &["sm_90a"]].concat());
    quiet.code(0);
    assert!(!quiet.err.contains("W1002"), "{quiet:#?}");
    tk(&folder, &[&build[..], &["compute_80"]].concat()).code(0).err_has("W1002");
}

/// What cannot be PTX for all GPUs is left out with a sentence, and the targets are built.
#[test]
fn a_kernel_for_one_gpu_has_no_ptx() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-no-ptx");
    folder.write("only.tk", "kernel only(x: mut view[f32, 1]) grid(1) {\n    static_assert(target.has_tma, \"for Hopper\");\n    x.store([0], full([32], 1.0, f32));\n}\n");
    let ran = tk(&folder, &["build", "only.tk", "--target", "sm_90a", "--emit", "bundle", "-o", "."]);
    ran.code(0);
    assert!(ran.err.contains("has no PTX for GPUs that are newer than the targets"), "{}", ran.err);
}

/// A bundle for the CPU needs no assembler, and does what one for a GPU does there.
#[test]
fn the_cpu_is_a_target() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-cpu");
    let file = format!("{ROOT}/examples/softmax.tk");
    let nowhere = folder.path("nowhere");
    let built = command::command(&folder.path(""), &["build", &file, "--target", "cpu", "-o", "."])
        .env("TK_PTXAS", nowhere)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    tk(&folder, &["build", &file, "--target", "sm_80", "--no-ptx", "--emit", "bundle", "-o", "gpu"]).code(0);
    let array = |v: &[f32]| tk_runtime::Value::Array(tk_runtime::npy::Array::of(v, &[2, 3]));
    let run = |path: &str| {
        let bundle = Bundle::open(&folder.path(path)).unwrap();
        let values = vec![array(&[1.0, 2.0, 3.0, -1.0, 0.5, 0.25]), array(&[0.0; 6])];
        tk_runtime::bundled::run(&bundle, "softmax", values, &[]).unwrap().0
    };
    assert_eq!(format!("{:?}", run("softmax.tkb")), format!("{:?}", run("gpu/softmax.tkb")));
    let bundle = Bundle::open(&folder.path("softmax.tkb")).unwrap();
    let variants = &bundle.manifest().kernels[0].variants;
    assert!(variants.iter().all(|v| v.target == "cpu" && v.binary.bytes == 0));
    assert_eq!(variants.len(), 12);
    let shown = tk(&folder, &["inspect", "softmax.tkb"]);
    shown.code(0);
    assert!(shown.out.contains("T=f16, BLOCK=1024 for cpu\n    interpreted\n"), "{}", shown.out);
    shown.out_has(", no assembler\n");
    for form in ["header", "cubin"] {
        tk(&folder, &["build", &file, "--target", "cpu", "--emit", form, "-o", "."]).code(2);
    }
}

/// A framework that has TVM-FFI calls kernels with values of any type; what does not fit is an error of its kind.
#[test]
fn frameworks_call_kernels_by_tvm_ffi() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-tvm-ffi");
    let ship = format!("{ROOT}/tests/ship");
    let kernels = format!("{ship}/kernels.tk");
    tk(&folder, &["build", &kernels, "--target", "sm_90a", "--emit", "tvm-ffi", "-o", "."]).code(0);
    let main = format!("{ship}/tvm_ffi.c");
    cc(&folder, &["kernels.c", "kernels_tvm_ffi.c", &main, "-I.", "-o", "main", "-ldl"]);
    cc(&folder, &["-shared", "-fPIC", &format!("{ship}/driver.c"), "-o", "libcuda.so.1"]);
    let cxx =
        ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "kernels_tvm_ffi.c"];
    if let Ok(done) = Command::new("c++").current_dir(folder.path("")).args(cxx).output() {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let ran = Command::new(folder.path("main")).env("LD_LIBRARY_PATH", folder.path("")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    tk_snapshot::check(format!("{ship}/expected_tvm_ffi.txt"), &String::from_utf8_lossy(&ran.stdout));
}

/// Two files of one program have a kernel of the same name.
#[test]
fn functions_of_two_files_have_prefixes() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-prefix");
    folder.write("a.tk", "kernel one(x: mut view[f32, 1]) grid(1) { x.store([0], full([32], 1.0, f32)); }\n");
    folder.write("b.tk", "kernel one(x: mut view[f32, 1]) grid(1) { x.store([0], full([32], 2.0, f32)); }\n");
    for (file, prefix) in [("a.tk", "first"), ("b.tk", "second")] {
        tk(&folder, &["build", file, "--target", "sm_80", "--emit", "header", "--prefix", prefix, "-o", "."])
            .code(0);
    }
    folder.write(
        "main.c",
        "#include \"a.h\"\n#include \"b.h\"\nint main(void) { return first_one(NULL, NULL) == second_one(NULL, NULL) \
         && first_a_error() != NULL && second_b_error() != NULL ? 0 : 1; }\n",
    );
    cc(&folder, &["-include", "stddef.h", "main.c", "a.c", "b.c", "-I.", "-o", "main", "-ldl"]);
    assert!(Command::new(folder.path("main")).status().unwrap().success());
    for wrong in ["", "1st", "a-b", "tki"] {
        let refused = tk(
            &folder,
            &["build", "a.tk", "--target", "sm_80", "--emit", "header", "--prefix", wrong, "-o", "."],
        );
        refused.code(2).err_has("is no prefix of names in C");
    }
}

/// The assembler puts a file of binaries where text would be, in C, in C++ and in a program that is optimised as a whole.
#[test]
fn binaries_come_from_a_file() {
    if without_ptxas() {
        return;
    }
    let folder = Folder::new("ship-incbin");
    folder.write("a.tk", "kernel one(x: mut view[f32, 1]) grid(1) { x.store([0], full([32], 1.0, f32)); }\n");
    folder.write("b.tk", "kernel one(x: mut view[f32, 1]) grid(1) { x.store([0], full([32], 2.0, f32)); }\n");
    let build = |file: &str, options: &[&str]| {
        tk(&folder, &[&["build", file, "--target", "sm_80", "--target", "sm_90a"], options].concat())
    };
    let header = ["--emit", "header", "--incbin", "-o", "out"];
    build("a.tk", &header).code(0);
    build("b.tk", &[&header[..], &["--prefix", "second"]].concat()).code(0);
    build("a.tk", &["--emit", "header", "-o", "text"]).code(0);
    let bytes = fs::read(folder.path("out/a.c.bin")).unwrap();
    let source = fs::read_to_string(folder.path("out/a.c")).unwrap();
    assert!(source.len() < fs::read_to_string(folder.path("text/a.c")).unwrap().len() / 2);
    folder.write(
        "main.c",
        "#include \"a.h\"\n#include \"b.h\"\nint main(void) { return tk_one(NULL, NULL) == second_one(NULL, NULL) ? 0 : 1; }\n",
    );
    let shared: [&str; 10] =
        ["-include", "stddef.h", "main.c", "out/a.c", "out/b.c", "-Iout", "-o", "main", "-ldl", "-O2"];
    for options in [&[][..], &["-flto"], &["-fPIC", "-fno-pie", "-no-pie"]] {
        cc(&folder, &[&shared[..], options].concat());
        assert!(Command::new(folder.path("main")).status().unwrap().success());
        let program = fs::read(folder.path("main")).unwrap();
        assert!(program.windows(bytes.len()).any(|w| w == bytes), "{options:?}");
    }
    let strict =
        ["-xc++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "out/a.c", "-o", "a.o"];
    assert!(Command::new("c++").current_dir(folder.path("")).args(strict).status().unwrap().success());
    // The binaries of a moved file are found by a definition.
    fs::rename(folder.path("out/a.c.bin"), folder.path("elsewhere")).unwrap();
    cc(&folder, &["-DTK_BINARIES=\"elsewhere\"", "-Iout", "-c", "out/a.c", "-o", "a.o"]);
    let missing = Command::new("cc").current_dir(folder.path("")).args(["-c", "out/a.c"]).output().unwrap();
    assert!(String::from_utf8_lossy(&missing.stderr).contains("out/a.c.bin"), "{missing:?}");
    build("a.tk", &["--emit", "bundle", "--incbin", "-o", "out"])
        .code(2)
        .err_has("--incbin is about a C source");
}
