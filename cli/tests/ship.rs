//! What `tk build` ships: the C source launches what the contract says, a bundle chooses as the compiler would, and the bytes
//! depend on nothing but the program. A driver that only writes down what it is asked stands in for NVIDIA's.
#![cfg(all(unix, feature = "llvm"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "shared by several tests")]
#[path = "support/command.rs"]
mod command;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use command::Folder;
use tk_bundle::{Argument, Bundle, Facts, Kernel, ParamKind};
use tk_driver::facts_about;
use tk_ops::{DType, Scalar};
use tk_runtime::files::Files;
use tk_sema::contract::{self, Device, HostArg};
use tk_sema::eval::CVal;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn cc(folder: &Folder, args: &[&str]) {
    let strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    let done = Command::new("cc").current_dir(folder.path("")).args(strict).args(args).output().unwrap();
    assert!(done.status.success(), "cc {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs `tk` in a folder outside of the repository.
fn tk(folder: &Folder, args: &[&str]) -> command::Ran {
    command::Ran::new(command::command(&folder.path(""), args).env("TK_PTXAS", ptxas()).output().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// TK_BLESS=1 writes what is expected anew.
#[test]
fn c_launches_what_the_contract_says() {
    let folder = Folder::new("ship-c");
    let ship = format!("{ROOT}/tests/ship");
    tk(
        &folder,
        &["build", &format!("{ship}/kernels.tk"), "--target", "sm_90a", "--emit", "header", "-o", "."],
    )
    .code(0);
    cc(&folder, &["kernels.c", &format!("{ship}/main.c"), "-I.", "-o", "main", "-ldl"]);
    cc(&folder, &["-shared", "-fPIC", &format!("{ship}/driver.c"), "-o", "libcuda.so.1"]);
    let ran = Command::new(folder.path("main")).env("LD_LIBRARY_PATH", folder.path("")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let expected = format!("{ship}/expected.txt");
    if std::env::var_os("TK_BLESS").is_some() {
        fs::write(&expected, text(&ran)).unwrap();
    }
    assert_eq!(text(&ran), fs::read_to_string(&expected).unwrap_or_default());
}

#[test]
fn the_example_in_c_builds_with_a_compiler_alone_and_says_why_there_is_no_gpu() {
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

#[test]
fn the_same_bytes_come_out_in_other_folders_and_locales() {
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

fn ptxas() -> std::path::PathBuf {
    let environment = tk_driver::Environment::of_process(Some(Path::new(ROOT)));
    environment.ptxas().expect("ptxas is there: `make setup`")
}

/// xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators".
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[(self.next() % of.len() as u64) as usize]
    }
}

/// Arguments that fit the parameters, with few different extents, so that requirements hold often.
fn arguments(kernel: &Kernel, random: &mut Random) -> Vec<HostArg> {
    const EXTENTS: [i64; 15] = [0, 1, 2, 7, 8, 16, 33, 64, 100, 256, 1000, 1024, 2048, 5000, 70_000];
    let pool = [*random.pick(&EXTENTS), *random.pick(&EXTENTS)];
    let variant = random.pick(&kernel.variants);
    let one = |(param, dtype): (&tk_bundle::Param, &Option<String>)| {
        let Some(dtype) = dtype.as_deref().and_then(DType::parse) else { return HostArg::Absent };
        match param.kind {
            ParamKind::Number => {
                let v = *random.pick(&[-1, 0, 1, 2, 15, 16, 1000, 1 << 20]);
                HostArg::Scalar(if dtype.is_float() {
                    Scalar::float(dtype, *random.pick(&[0.0, 0.5, 1.0, -0.25, f64::NAN]))
                } else {
                    Scalar::int_in_range(dtype, v).unwrap_or(Scalar::zero(dtype))
                })
            }
            ParamKind::Pointer { .. } => HostArg::Tensor { dtype, shape: vec![64], strides: vec![1] },
            ParamKind::View { rank, .. } => {
                let shape: Vec<i64> = (0..rank).map(|_| *random.pick(&pool)).collect();
                let mut strides: Vec<i64> =
                    (0..shape.len()).map(|i| shape[i + 1..].iter().map(|d| (*d).max(1)).product()).collect();
                if random.next().is_multiple_of(4) {
                    strides.reverse();
                }
                HostArg::Tensor { dtype, shape, strides }
            }
        }
    };
    kernel.params.iter().zip(&variant.dtypes).map(one).collect()
}

/// What a launch by a bundle takes is what the compiler plans: the same values, the same grid, the same refusals.
#[test]
fn a_bundle_chooses_as_the_compiler_plans() {
    let files =
        ["softmax", "layer_norm", "matmul", "add", "gelu", "histogram", "dropout", "look_back", "persistent"];
    let folder = Folder::new("ship-choose");
    let (mut random, mut launched, mut refused) = (Random(1), 0, 0);
    for name in files {
        let file = format!("{ROOT}/examples/{name}.tk");
        tk(&folder, &["build", &file, "--target", "sm_90a", "--emit", "bundle", "-o", "."]).code(0);
        let bundle = Bundle::open(&folder.path(&format!("{name}.tkb"))).unwrap();
        let checked = tk_sema::check(&Files::default(), &file);
        let target = tk_driver::TARGETS.into_iter().find(|t| t.name == "sm_90a").unwrap();
        let device = Device { sms: 132, smem: target.shared_bytes.into(), target: facts_about(target) };
        for kernel in &bundle.manifest().kernels {
            let id = contract::kernel_named(&checked.hir, &kernel.name).unwrap();
            for _ in 0..300 {
                let hosts = arguments(kernel, &mut random);
                let planned = contract::plan_on(&checked.hir, id, &hosts, &[], device);
                let named = |h: &HostArg| tk_runtime::bundled::dtype_name(h);
                let args: Vec<Argument<'_>> =
                    hosts.iter().map(|h| tk_runtime::bundled::argument(h, named(h), 0x1000)).collect();
                let given = vec![None; kernel.choices.len()];
                let targets = ["sm_90a"];
                let facts = Facts {
                    args: &args,
                    given: &given,
                    targets: &targets,
                    sms: device.sms,
                    shared_bytes: device.smem,
                };
                let chosen = kernel.choose(&facts);
                let what = format!("{}: {hosts:?}\n{planned:?}\n{chosen:?}", kernel.name);
                match (&planned, &chosen) {
                    (Ok(plan), Ok(chosen)) => {
                        launched += 1;
                        assert_eq!(plan.grid, chosen.grid, "{what}");
                        for v in &chosen.variant.values {
                            let id = checked
                                .hir
                                .func(id)
                                .cparams
                                .iter()
                                .find(|c| checked.hir.cvar(**c).name == v.name);
                            let planned = plan.bindings.cvars.get(id.unwrap()).map(CVal::to_string);
                            assert_eq!(planned.as_deref(), Some(v.value.as_str()), "{what}");
                        }
                    }
                    (Ok(plan), Err(e)) => {
                        // Nothing is shipped with these values.
                        refused += 1;
                        let values = |v: &tk_bundle::Variant| {
                            v.values.iter().all(|v| {
                                let mut all = plan.bindings.cvars.iter();
                                all.any(|(c, x)| {
                                    checked.hir.cvar(*c).name == v.name && x.to_string() == v.value
                                })
                            })
                        };
                        assert!(!kernel.variants.iter().any(values), "{what}");
                        assert!(e.what.contains("no variant"), "{what}");
                    }
                    (Err(_), Err(_)) => refused += 1,
                    (Err(_), Ok(_)) => panic!("{what}"),
                }
            }
        }
    }
    assert!(launched > 500 && refused > 500, "{launched} launched, {refused} refused");
}
