//! Devices: what programs may ask about the machine that they are compiled for, and what is said where one is missing.

#![cfg(all(unix, feature = "llvm"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared by several tests")]
#[path = "support/command.rs"]
mod command;

use std::fs;

use command::Folder;

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
        [("cpu", "32, 22222, 1024"), ("sim", "32, 22222, 1024"), ("sim64", "64, 22222, 1024")]
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
