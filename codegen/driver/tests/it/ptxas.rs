//! The assembler: where it is looked for, what it makes, and what is said when it does not work.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::Path;

use crate::support::Folder;
use tk_driver::{Assembler, CompiledKernel, Cubin, Environment, Found, Ignored, Ptxas, ToolError};
use tk_gpu::target::spec::SM_90A;

fn named(path: &Path) -> Environment {
    Environment { tk_ptxas: Some(path.to_path_buf()), ..Environment::default() }
}

fn kernel(asm: &str) -> CompiledKernel {
    CompiledKernel {
        name: "k".into(),
        target: &SM_90A,
        threads: 32,
        shared_bytes: 0,
        blocks_per_program: 1,
        params: vec![],
        messages: vec![],
        shortages: vec![],
        remarks: vec![],
        maps: vec![],
        has_grid_barrier: false,
        asm: asm.into(),
        object: None,
        stages: None,
    }
}

fn assemble(kernel: &CompiledKernel, ptxas: &Ptxas) -> Result<Cubin, ToolError> {
    Assembler::Ptxas(ptxas.clone()).assemble(kernel)
}

const STORE: &str = "
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  .loc 1 3 0
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
.file 1 \"k.tk\"
";

/// An answer to `--version`, then what it does otherwise.
fn fake(version: &str, otherwise: &str) -> String {
    format!("if [ \"$1\" = --version ]; then echo 'release, V{version}'; exit 0; fi\n{otherwise}")
}

#[test]
fn the_first_place_that_has_one_wins() {
    let folder = Folder::new("order");
    let at = |name: &str| folder.0.join(name);
    let mut environment = Environment {
        tk_ptxas: Some(at("own")),
        tk_nvdisasm: None,
        tk_ncu: None,
        tk_lld: None,
        tk_venv: Some(at("named")),
        cuda_home: Some(at("cuda")),
        virtual_env: Some(at("venv")),
        path: vec![at("shims"), at("usr/bin"), at("bin")],
        home: Some(at("home")),
        data: Some(at("data")),
        beside: vec![at("project")],
    };
    let named = Found { path: at("own"), from: "TK_PTXAS" };
    assert_eq!(environment.ptxas(), Some(named), "what is named is taken even if it is not there");
    environment.tk_ptxas = None;
    assert_eq!(environment.ptxas(), None);
    // From the last place to the first.
    let _ = (folder.script("shims/python3", ""), folder.script("usr/bin/python3", ""));
    for (place, from) in [
        ("home/.local/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "~/.local"),
        ("usr/local/lib/python3.11/dist-packages/nvidia/cuda_nvcc/bin/ptxas", "a Python of PATH"),
        ("usr/lib/python3/dist-packages/nvidia/cuda_nvcc/bin/ptxas", "a Python of PATH"),
        ("versions/3.9.1/lib/python3.9/site-packages/nvidia/cuda_nvcc/bin/ptxas", "a Python of PATH"),
        ("versions/3.11.7/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "a Python of PATH"),
        ("bin/ptxas", "PATH"),
        ("data/tk/tools/nvidia/cuda_nvcc/bin/ptxas", "tk setup"),
        ("venv/lib/python3.8/site-packages/triton/backends/nvidia/bin/ptxas", "VIRTUAL_ENV"),
        ("venv/lib/python3.8/site-packages/nvidia/cu13/bin/ptxas", "VIRTUAL_ENV"),
        ("venv/lib/python3.8/site-packages/nvidia/cuda_nvcc/bin/ptxas", "VIRTUAL_ENV"),
        ("cuda/bin/ptxas", "CUDA_HOME"),
        ("named/lib/python3.12/site-packages/nvidia/cuda_nvcc/bin/ptxas", "TK_VENV"),
    ] {
        let path = folder.script(place, "");
        // The folder for all versions comes before that of one, and says less.
        assert_eq!(environment.ptxas(), Some(Found { path, from }), "{place}");
    }
}

#[test]
fn a_virtual_environment_that_is_not_active_is_not_used() {
    let folder = Folder::new("ignored");
    let at = |name: &str| folder.0.join(name);
    let inside = "lib/python3.12/site-packages/nvidia/cuda_nvcc/bin/ptxas";
    let path = folder.script(&format!(".venv/{inside}"), "");
    let environment = Environment { beside: vec![at("a/b")], ..Environment::default() };
    assert_eq!(environment.ptxas(), None);
    assert_eq!(environment.ignored_ptxas(), Some(Ignored { path: path.clone(), venv: at(".venv") }));
    let error = Ptxas::find(&environment, &folder.cache()).unwrap_err();
    assert!(error.notes[1].ends_with(&format!("TK_VENV={} allows it", at(".venv").display())), "{error:?}");
    let named = Environment { tk_venv: Some(at(".venv")), ..environment.clone() };
    let active = Environment { virtual_env: Some(at(".venv")), ..environment };
    for (environment, from) in [(named, "TK_VENV"), (active, "VIRTUAL_ENV")] {
        assert_eq!(environment.ptxas(), Some(Found { path: path.clone(), from }));
        assert_eq!(environment.ignored_ptxas(), None);
    }
}

#[test]
fn the_version_is_asked_for_once_until_the_file_changes() {
    let folder = Folder::new("version");
    let count = folder.0.join("count");
    let text = |version: &str| format!("echo x >> {}\n{}", count.display(), fake(version, "exit 1"));
    let path = folder.script("ptxas", &text("12.9.86"));
    let cache = folder.cache();
    for _ in 0..3 {
        assert_eq!(Ptxas::find(&named(&path), &cache).unwrap().version, "12.9.86");
    }
    assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 1);
    folder.script("ptxas", &text("13.0.88.1"));
    assert_eq!(Ptxas::find(&named(&path), &cache).unwrap().version, "13.0.88.1");
}

#[test]
fn one_that_does_not_work_is_an_error_with_its_first_line() {
    let folder = Folder::new("broken");
    let cases = [
        (folder.script("silent", "exit 3"), "does not work: it exits with code 3"),
        (folder.script("killed", "kill -9 $$"), "does not work: it was killed"),
        (
            folder.script("library", "echo 'libfoo.so: cannot open' >&2; exit 127"),
            "does not work: libfoo.so: cannot open",
        ),
        (folder.script("other", "echo hello"), "does not work: its --version output is not that of ptxas"),
        (folder.0.join("missing"), "does not work: no such file or directory"),
        (folder.0.clone(), "does not work: permission denied"),
    ];
    let plain = folder.0.join("plain");
    fs::write(&plain, "no program").unwrap();
    for (path, expected) in cases.into_iter().chain([(plain, "does not work: permission denied")]) {
        let error = Ptxas::find(&named(&path), &folder.cache()).unwrap_err();
        assert_eq!(error.code.0, "E1002", "{error:?}");
        let expected = format!("the assembler {} {expected}", path.display());
        assert_eq!(error.message, expected);
        assert!(error.notes[0].contains("pip install nvidia-cuda-nvcc-cu12"));
    }
    let error = Ptxas::find(&Environment::default(), &folder.cache()).unwrap_err();
    assert_eq!(error.code.0, "E1001");
    assert!(error.notes[0].contains("pip install nvidia-cuda-nvcc-cu12"));
}

#[test]
fn what_it_refuses_is_told_from_one_that_is_too_old() {
    let folder = Folder::new("refuses");
    let fails = |name: &str, line: &str| {
        let path = folder.script(name, &fake("11.8.9", &format!("echo \"{line}\" >&2; exit 255")));
        let ptxas = Ptxas::find(&named(&path), &folder.cache()).unwrap();
        let d = assemble(&kernel(STORE), &ptxas).unwrap_err();
        assert_eq!(d.code.0, "E1002");
        d.message
    };
    let old =
        fails("old", "ptxas x.ptx, line 1; fatal   : Unsupported .version 8.5; current version is '7.8'");
    assert!(old.contains("is too old for code of this tk for `sm_90a`"), "{old}");
    let old = fails("older", "ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'");
    assert!(old.contains("is too old"), "{old}");
    let wrong = fails("wrong", "ptxas x.ptx, line 7; error   : Unknown symbol 'foo'");
    assert_eq!(wrong, "ptxas 11.8.9 rejects kernel `k`: Unknown symbol 'foo' (line 7 of the PTX)");
    let path = folder.script("nothing", &fake("12.9.86", "exit 0"));
    let ptxas = Ptxas::find(&named(&path), &folder.cache()).unwrap();
    let d = assemble(&kernel(STORE), &ptxas).unwrap_err();
    assert!(d.message.ends_with("it succeeds, but writes nothing"), "{}", d.message);
}

#[test]
fn the_real_one_gives_the_same_bytes_again() {
    let folder = Folder::new("real");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let environment = Environment::of_process(Some(&root));
    let Ok(ptxas) = Ptxas::find(&environment, &folder.cache()) else {
        assert!(std::env::var_os("CI").is_none(), "CI has no ptxas");
        eprintln!("left out: there is no ptxas");
        return;
    };
    let first = assemble(&kernel(STORE), &ptxas).unwrap();
    assert!(first.bytes.starts_with(b"\x7fELF"));
    assert!(first.report.registers > 0 && !first.report.spills(), "{:?}", first.report);
    assert_eq!(first.report.assembler, ptxas.version);
    assert_eq!(assemble(&kernel(STORE), &ptxas).unwrap(), first);
    let d = assemble(&kernel(&STORE.replace("%tid.x", "%nothing")), &ptxas).unwrap_err();
    assert!(d.message.contains("rejects kernel `k`"), "{}", d.message);
    let d = assemble(&kernel(&STORE.replace("8.5", "99.0")), &ptxas).unwrap_err();
    assert!(d.message.contains("is too old"), "{}", d.message);
}
