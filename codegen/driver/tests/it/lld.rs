//! The linker of LLVM: where it is found, what is said when it does not work, and what it makes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use crate::support::Folder;
use tk_driver::{Assembler, Cache, CompiledKernel, Environment, Found, Lld, TARGETS};
use tk_syntax::codes;

fn named(path: &Path) -> Environment {
    Environment { tk_lld: Some(path.to_path_buf()), ..Environment::default() }
}

fn no_cache() -> Cache {
    Cache::at(Path::new(""), 0)
}

fn kernel(object: Option<&[u8]>) -> CompiledKernel {
    CompiledKernel {
        name: "k".into(),
        target: TARGETS.into_iter().find(|t| t.has_gcn).unwrap(),
        threads: 64,
        shared_bytes: 0,
        blocks_per_program: 1,
        params: vec![],
        messages: vec![],
        shortages: vec![],
        remarks: vec![],
        maps: vec![],
        has_grid_barrier: false,
        asm: String::new(),
        object: object.map(<[u8]>::to_vec),
        stages: None,
    }
}

#[test]
fn the_first_name_in_path_wins() {
    let folder = Folder::new("order");
    let path = vec![folder.0.join("a"), folder.0.join("b")];
    let environment = Environment { path, ..Environment::default() };
    let old = folder.script("a/ld.lld", "");
    assert_eq!(environment.lld(), Some(Found { path: old, from: "PATH" }));
    let fitting = folder.script("b/ld.lld-22", "");
    let fitting = Found { path: fitting, from: "PATH" };
    assert_eq!(environment.lld(), Some(fitting), "that of the same LLVM comes first, wherever it lies");
    let own = folder.0.join("own");
    let named = Environment { tk_lld: Some(own.clone()), ..environment };
    assert_eq!(named.lld(), Some(Found { path: own, from: "TK_LLD" }));
}

#[test]
fn what_does_not_work_is_one_sentence() {
    let folder = Folder::new("broken");
    for (name, text, says) in [
        ("silent", "exit 3", "it exits with code 3"),
        ("other", "echo gold 1.0", "its --version output is not that of lld"),
        ("ld64.lld", "echo LLD 19.1.7", "its --version output is not that of lld"),
    ] {
        let path = folder.script(name, text);
        let e = Lld::find(&named(&path), &no_cache()).unwrap_err();
        assert_eq!(e.code, codes::ASSEMBLER);
        assert!(e.message.contains(says), "{}", e.message);
        assert!(e.notes[0].contains("TK_LLD"), "{:?}", e.notes);
    }
    let e = Lld::find(&named(&folder.0.join("nothing")), &no_cache()).unwrap_err();
    assert!(e.message.contains("no such file"), "{}", e.message);
    let version = "if [ \"$1\" = --version ]; then echo 'Debian LLD 19.1.7 (compatible with GNU linkers)'; exit 0; fi\n";
    for (name, text, object, says) in [
        ("refuses", "echo 'ld.lld: error: undefined symbol: foo' >&2; exit 1", true, "undefined symbol: foo"),
        ("writes", "exit 0", true, "writes nothing"),
        (
            "strange",
            "while [ \"$1\" != -o ]; do shift; done; echo no >\"$2\"",
            true,
            "has no metadata about the kernel",
        ),
        ("unused", "", false, "no object"),
    ] {
        let lld = Lld::find(&named(&folder.script(name, &format!("{version}{text}"))), &no_cache()).unwrap();
        assert_eq!(lld.version, "19.1.7");
        let object = object.then_some(b"object".as_slice());
        let e = Assembler::Lld(lld).assemble(&kernel(object)).unwrap_err();
        assert!(e.message.contains(says), "{}", e.message);
    }
}
