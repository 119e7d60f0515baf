//! `tk run`: values, outputs, and what happens when one of them is wrong.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::support::command::{ADD, Folder, floats, npy, npy_with};

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("add.tk", ADD);
    folder
}

#[test]
fn summary_of_the_arrays_that_may_change() {
    let ran =
        folder("summary").tk(&["run", "add.tk", "x=arange:f32[20]", "y=ones:f32[20]", "z=zeros:f32[20]"]);
    ran.code(0);
    assert_eq!(ran.out, "z  f32[20]  1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, ..\n");
    assert_eq!(ran.err, "");
}

#[test]
fn arguments_come_in_any_order_and_defaults_are_filled_in() {
    let folder = folder("order");
    let ran = folder.tk(&["run", "add.tk::add", "z=zeros:f16[3]", "scale=0.5", "x=full:f16[3]@3"]);
    ran.code(0).out_has("z  f16[3]  1.5, 1.5, 1.5\n");
    folder
        .tk(&["run", "add.tk", "z=zeros:f16[3]", "x=ones:f16[3]", "y=none"])
        .code(0)
        .out_has("1.0, 1.0, 1.0\n");
    folder.tk(&["run", "add.tk", "z=zeros:f32[0]", "x=ones:f32[0]"]).code(0).out_has("z  f32[0]\n");
    folder.write("first.tk", "kernel first(a: i32 = 3, y: mut view[i32, 1]) { y.store([0], a); }");
    folder.tk(&["run", "first.tk", "y=zeros:i32[1]"]).code(0).out_has("y  i32[1]  3\n");
}

#[test]
fn out_writes_a_file_that_reads_back() {
    let folder = folder("out");
    folder.write("x.npy", npy("<f4", "(3,)", &floats(&[1.0, 2.5, -4.0])));
    let ran = folder.tk(&["run", "add.tk", "x=x.npy", "z=zeros:f32[3]", "--out", "z=z.npy"]);
    ran.code(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    assert_eq!(folder.names(), ["add.tk", "x.npy", "z.npy"]);
    let bytes = std::fs::read(folder.path("z.npy")).unwrap();
    assert_eq!(bytes.len(), 128 + 12);
    assert!(bytes.ends_with(&floats(&[1.0, 2.5, -4.0])));
    folder.tk(&["run", "add.tk", "x=z.npy", "z=zeros:f32[3]"]).code(0).out_has("1.0, 2.5, -4.0\n");
}

#[test]
fn fortran_order_and_empty_arrays() {
    let folder = Folder::new("fortran");
    folder.write(
        "copy.tk",
        "kernel copy(x: view[i32, 2], y: mut view[i32, 2]) { y.store([0, 0], x.load([0, 0], [4, 4])); }",
    );
    let header = "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }";
    let data: Vec<u8> = [1i32, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_le_bytes()).collect();
    folder.write("x.npy", npy_with(header, &data));
    folder
        .tk(&["run", "copy.tk", "x=x.npy", "y=zeros:i32[2,3]"])
        .code(0)
        .out_has("y  i32[2, 3]  1, 2, 3, 4, 5, 6\n");
    folder.write("e.npy", npy("<i4", "(0, 3)", &[]));
    folder.tk(&["run", "copy.tk", "x=e.npy", "y=zeros:i32[2,3]"]).code(0).out_has("0, 0, 0, 0, 0, 0\n");
}

#[test]
fn bad_npy_files_are_one_sentence_and_leave_no_output() {
    let folder = folder("npy");
    let three = floats(&[1.0, 2.0, 3.0]);
    let nested = format!("{}{}", "(".repeat(60000), ")".repeat(3));
    let files: &[(&str, Option<Vec<u8>>, &str)] = &[
        ("missing", None, "cannot read missing.npy: no such file or directory"),
        ("empty", Some(vec![]), "empty.npy is empty"),
        ("magic", Some(b"hello, world".to_vec()), "magic.npy is not an .npy file"),
        ("cut1", Some(b"\x93NUM".to_vec()), "cut1.npy is truncated: its header is not complete"),
        (
            "cut2",
            Some(npy("<f4", "(3,)", &[])[..30].to_vec()),
            "cut2.npy is truncated: its header is not complete",
        ),
        (
            "cut3",
            Some(npy("<f4", "(3,)", &three[..7])),
            "is truncated: its header declares 12 bytes of data, found 7",
        ),
        ("big", Some(npy(">f4", "(3,)", &three)), "big.npy is big-endian (>f4)"),
        ("object", Some(npy("|O", "(3,)", &three)), "object.npy holds Python objects"),
        ("complex", Some(npy("<c8", "(1,)", &three)), "holds elements of NumPy type <c8"),
        ("text", Some(npy("<U8", "(1,)", &three)), "holds elements of NumPy type <U8"),
        ("double", Some(npy("<f8", "(1,)", &[0; 8])), "f64"),
        ("int", Some(npy("<i4", "(3,)", &three)), "i32"),
        ("raw", Some(npy("|V3", "(1,)", &three)), "holds elements of NumPy type |V3"),
        (
            "huge",
            Some(npy("<f4", "(99999999999, 99999999999)", &three)),
            "claims more elements than fit in memory",
        ),
        ("large", Some(npy("<f4", "(99999999999,)", &three)), "is truncated"),
        ("digits", Some(npy("<f4", "(99999999999999999999999,)", &three)), "header"),
        ("negative", Some(npy("<f4", "(-3,)", &three)), "header"),
        ("nested", Some(npy("<f4", &nested, &three)), "header"),
        ("keys", Some(npy_with("{'descr': '<f4'}", &three)), "header"),
        ("junk", Some(npy_with("\u{fffd}\u{fffd}{{", &three)), "header"),
        (
            "record",
            Some(npy_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", &three)),
            "holds records",
        ),
        ("version", Some(b"\x93NUMPY\x09\x00abcdefgh".to_vec()), "version 9"),
    ];
    for (name, contents, sentence) in files {
        if let Some(contents) = contents {
            folder.write(&format!("{name}.npy"), contents);
        }
        let x = format!("x={name}.npy");
        let ran = folder.tk(&["run", "add.tk", &x, "z=zeros:f32[3]", "--set", "T=f32", "--out", "z=z.npy"]);
        ran.code(2).says(&["error: ", sentence]);
    }
    assert!(!folder.path("z.npy").exists());
    assert!(folder.names().iter().all(|n| !n.ends_with(".unfinished")), "{:?}", folder.names());
}

#[test]
fn mistakes_in_arguments_are_one_sentence() {
    let folder = folder("arguments");
    let mistakes: &[(&[&str], &[&str])] = &[
        (&["z=zeros:f32[3]"], &["`x`", "add"]),
        (&["x=ones:f32[3]"], &["`z`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "scal=2"], &["`scal`", "did you mean `scale`?"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "x=ones:f32[3]"], &["`x`", "twice"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "BLOCK=3"], &["`BLOCK`", "--set"]),
        (&["x=ones:f32[3]", "z=zero:f32[3]"], &["zero", "did you mean `zeros`?"]),
        (&["x=ones:f33[3]", "z=zeros:f32[3]"], &["f33"]),
        (&["x=ones:f32[3", "z=zeros:f32[3]"], &["ones:f32[4,8]"]),
        (&["x=randn:i32[3]", "z=zeros:f32[3]"], &["float"]),
        (
            &["x=ones:f32[99999999999999]", "z=zeros:f32[3]"],
            &["needs 399999999999996 bytes", "are available"],
        ),
        (&["x", "z=zeros:f32[3]"], &["NAME=VALUE"]),
        (&["x=ones:f32[3,3]", "z=zeros:f32[3]"], &["`x`", "rank"]),
        (&["x=3", "z=zeros:f32[3]"], &["`x`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "scale=ones:f32[1]"], &["`scale`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "y=none", "x=none"], &["`x`"]),
        (&["x=none", "z=zeros:f32[3]"], &["`x`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--set", "BLOK=8"], &["`BLOK`", "`BLOCK`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--set", "BLOCK=many"], &["BLOCK"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--set", "BLOCK"], &["NAME=VALUE"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--out", "x=x.npy"], &["`x`", "mut"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--out", "w=x.npy"], &["`w`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--out", "z.npy"], &["named too, as in `--out z=z.npy`"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--out", "z=a.npy", "--out", "z=b.npy"], &["`z`", "twice"]),
        (&["x=ones:f32[3]", "z=zeros:f32[3]", "--out", "z=no/such/folder/z.npy"], &["cannot write"]),
    ];
    for (args, texts) in mistakes {
        let words: Vec<&str> = ["run", "add.tk"].iter().chain(args.iter()).copied().collect();
        let ran = folder.tk(&words);
        ran.code(2);
        for text in *texts {
            assert!(ran.err.contains(text), "{args:?}: `{text}` is not in {ran:#?}");
        }
        assert_eq!(ran.out, "", "{args:?}");
    }
    assert_eq!(folder.names(), ["add.tk"]);
}

#[test]
fn a_failed_requirement_is_a_launch_error() {
    let folder = folder("require");
    let ran = folder.tk(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[4]", "--out", "z=z.npy"]);
    ran.code(2).err_has("E0704").err_has("x.shape == z.shape");
    assert_eq!(folder.names(), ["add.tk"]);
}

#[test]
fn out_keeps_the_old_file_when_something_fails() {
    let folder = folder("keep");
    folder.write("z.npy", "old");
    folder.tk(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[4]", "--out", "z=z.npy"]).code(2);
    assert_eq!(std::fs::read(folder.path("z.npy")).unwrap(), b"old");
}

#[test]
fn set_chooses_compile_time_values() {
    let folder = Folder::new("set");
    folder.write(
        "map.tk",
        "fn double(x: f32) -> f32 { x * 2.0 }
         kernel apply[F: fn(f32) -> f32, ON: bool = true, BLOCK: i32 = 4](y: mut view[f32, 1])
             grid(cdiv(y.shape[0], BLOCK))
         {
             let at = program_id(0) * BLOCK;
             let x = y.load([at], [BLOCK]);
             y.store([at], if ON { map(F, x) } else { x });
         }",
    );
    let sets = |sets: &[&str]| {
        let mut words = vec!["run", "map.tk", "y=arange:f32[5]"];
        words.extend(sets.iter().flat_map(|s| ["--set", s]));
        folder.tk(&words)
    };
    sets(&["F=double", "BLOCK=2"]).code(0).out_has("0.0, 2.0, 4.0, 6.0, 8.0\n");
    sets(&["F=exp2"]).code(0).out_has("1.0, 2.0, 4.0, 8.0, 16.0\n");
    sets(&["F=double", "ON=false"]).code(0).out_has("0.0, 1.0, 2.0, 3.0, 4.0\n");
    sets(&[]).code(2).err_has("F");
    sets(&["F=nothing"]).code(2).err_has("nothing");
}

#[test]
fn a_file_with_several_kernels_needs_a_name() {
    let folder = Folder::new("several");
    folder.write("two.tk", "kernel one(n: i32) { assert(n > 0); } kernel two(n: i32) { assert(n > 0); }");
    folder.tk(&["run", "two.tk", "n=1"]).code(2).says(&["two.tk::one", "two.tk::two"]);
    folder.tk(&["run", "two.tk::two", "n=1"]).code(0);
    folder.tk(&["run", "two.tk::tow", "n=1"]).code(2).says(&["`tow`", "did you mean `two`?"]);
    folder.write("none.tk", "fn f() {}");
    folder.tk(&["run", "none.tk"]).code(2).says(&["no kernel"]);
}

#[test]
fn a_program_with_errors_does_not_run() {
    let folder = Folder::new("wrong");
    folder.write("wrong.tk", "kernel k(y: mut view[f32, 1]) { y.store([0], unknown); }");
    let ran = folder.tk(&["run", "wrong.tk", "y=zeros:f32[1]"]);
    ran.code(1).err_has("E0201").err_has("unknown");
    assert_eq!(ran.out, "");
}

#[test]
fn other_devices_are_refused() {
    let ran = folder("device").tk(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[3]", "--device", "cuda"]);
    ran.code(2).says(&["cuda"]);
}

#[test]
fn dump_writes_the_ir_after_each_pass() {
    let folder = folder("dump");
    folder.tk(&["run", "add.tk", "x=ones:f32[3]", "z=zeros:f32[3]", "--dump", "ir"]).code(0);
    let names: Vec<_> = std::fs::read_dir(folder.path("ir")).unwrap().flatten().collect();
    assert!(names.len() > 1, "{names:?}");
}

#[test]
fn a_loop_without_end_is_stopped() {
    let folder = Folder::new("timeout");
    folder.write(
        "spin.tk",
        "kernel spin(y: mut view[i32, 1]) {
             let mut i = 0;
             while i >= 0 { i = i * 0; }
             y.store([0], i);
         }
         test \"spins\" { spin(buffer(zeros([1], i32))); }",
    );
    folder
        .tk(&["run", "spin.tk", "y=zeros:i32[1]", "--timeout", "0.2", "--out", "y=y.npy"])
        .code(2)
        .err_has("E0708")
        .err_has("time limit");
    folder
        .tk(&["test", "spin.tk", "--timeout", "0.2"])
        .code(1)
        .out_has("0 passed, 1 failed\n")
        .err_has("E0708")
        .err_has("a loop may never end");
    folder.tk(&["test", "-h"]).code(0).out_has("120 on the CPU unless given");
    folder.tk(&["run", "spin.tk", "y=zeros:i32[1]", "--timeout", "0"]).code(2).err_has("positive number");
    assert_eq!(folder.names(), ["spin.tk"]);
}

#[test]
fn functions_that_do_not_fit_are_refused() {
    let folder = Folder::new("fit");
    folder.write(
        "map.tk",
        "fn whole(x: f32) -> i32 { x as i32 }
         kernel apply[F: fn(f32) -> f32](y: mut view[f32, 1]) { y.store([0], F(3.0)); }",
    );
    for f in ["maximum", "where", "fma", "isnan", "popcount", "whole", "load", "dot"] {
        folder.tk(&["run", "map.tk", "y=zeros:f32[1]", "--set", &format!("F={f}")]).code(2).err_has("E0402");
    }
    folder.tk(&["run", "map.tk", "y=zeros:f32[1]", "--set", "F=sqrt"]).code(0).out_has("1.7320508\n");
}

#[test]
fn outputs_are_regular_files_and_different_ones() {
    let folder = folder("special");
    let add = |outs: &[&str]| {
        let mut words = vec!["run", "add.tk", "x=arange:f32[3]", "z=zeros:f32[3]"];
        words.extend(outs.iter().flat_map(|o| ["--out", o]));
        folder.tk(&words)
    };
    std::fs::create_dir(folder.path("place")).unwrap();
    add(&["z=place"]).code(2).err_has("not a regular file");
    folder.write(
        "two.tk",
        "kernel two(a: mut view[f32, 1], b: mut view[f32, 1]) { a.store([0], 1.0); b.store([0], 2.0); }",
    );
    folder
        .tk(&["run", "two.tk", "a=zeros:f32[1]", "b=zeros:f32[1]", "--out", "a=s.npy", "--out", "b=./s.npy"])
        .code(2)
        .err_has("written twice");
    assert_eq!(folder.names(), ["add.tk", "place", "two.tk"]);
}

#[test]
fn a_refused_launch_ends_with_2_whatever_its_code() {
    let folder = Folder::new("refused");
    folder.write(
        "big.tk",
        "kernel big[B: i32 = 8](y: mut view[f32, 1]) { static_assert(B != 7); y.store([0], zeros([B], f32)); }
         kernel own(y: mut view[f32, 1]) { y.store([0], zeros([4], f32)); }
         kernel ring[S: i32 = 1](y: mut view[f32, 1]) {
             for i in range(0, 8, stages = S, unroll = S) { y.store([i], zeros([1], f32)); }
         }",
    );
    let run = |set: &str| folder.tk(&["run", "big.tk::big", "y=zeros:f32[8]", "--set", set]);
    run("B=8").code(0);
    run("B=4194304").code(2).err_has("E0802");
    run("B=0").code(2).err_has("E0803");
    run("B=7").code(2).err_has("E0403");
    run("B=many").code(2).err_has("E0402");
    let options = |set: &str| folder.tk(&["run", "big.tk::ring", "y=zeros:f32[8]", "--set", set]);
    options("S=2").code(0);
    options("S=0").code(2).err_has("E0404").err_has("`stages` is 0, but must be at least 1");
    // The same where only the specialization is asked for.
    folder
        .tk(&["check", "big.tk", "--emit", "tile", "--kernel", "big", "--set", "B=4194304"])
        .code(2)
        .err_has("E0802");
    // In a test a launch that is refused is a test that failed.
    folder
        .write("test.tk", "kernel huge() { let x = zeros([1000000, 1000000], f32); } test \"t\" { huge(); }");
    folder.tk(&["test", "test.tk"]).code(1).err_has("E0802");
}

#[test]
fn checked_mode_reports_results_that_are_not_written() {
    let folder = Folder::new("unwritten");
    folder.write(
        "part.tk",
        "kernel part(x: view[f32, 1], y: mut view[f32, 1]) grid(x.shape[0] / 4) {
            let at = program_id(0) * 4;
            y.store([at], x.load([at], [4]));
        }",
    );
    let run = |n: usize, more: &[&str]| {
        let (x, y) = (format!("x=ones:f32[{n}]"), format!("y=empty:f32[{n}]"));
        folder.tk(&[&["run", "part.tk", &x, &y], more].concat())
    };
    run(8, &["--checked"]).code(0).out_has("y  f32[8]  1.0, 1.0,");
    run(10, &["--checked"]).code(2).err_has("error[E0709]: element 8 of the result `y` was never written");
    run(10, &[]).code(0).out_has("y  f32[10]  1.0,");
}

#[test]
fn what_kernels_print_goes_to_standard_error_in_the_order_of_programs() {
    let folder = Folder::new("print");
    folder.write(
        "show.tk",
        "kernel show(y: mut view[f32, 1], n: i32) grid(n) { print(\"i =\", program_id(0), y.load([0], [2])); }",
    );
    let ran = folder.tk(&["run", "show.tk", "y=arange:f32[2]", "n=3"]);
    let line = |i: usize| format!("program {i}, 0, 0: i = {i} [0.0, 1.0]\n");
    assert_eq!(ran.code(0).err, (0..3).map(line).collect::<String>());
    let many = folder.tk(&["run", "show.tk", "y=arange:f32[2]", "n=10002"]);
    assert!(many.code(0).err.ends_with("2 more lines are omitted\n"), "{}", many.err.len());
}

#[test]
fn a_test_is_refused_memory_that_is_not_there() {
    let folder = Folder::new("memory-test");
    folder.write("much.tk", "test \"much\" { let _x = empty([1000000, 1000000], f32); }");
    let ran = folder.tk(&["test", "much.tk"]);
    ran.code(1).err_has("does not fit in memory: it needs 4000000000000 bytes (3.6 TiB) of memory");
}

#[test]
fn a_test_keeps_as_many_lines_as_a_launch() {
    let folder = Folder::new("print-test");
    folder.write("many.tk", "test \"many\" { for i in range(0, 10002) { print(i); } }");
    let ran = folder.tk(&["test", "many.tk"]);
    let printed = ran.code(0).out.clone() + &ran.err;
    assert!(printed.contains("9999\n2 more lines are omitted\n"), "{}", printed.len());
    assert!(!printed.contains("10000\n"), "{}", printed.len());
}

/// A kernel with a function-valued parameter, and one more whose parameter of that name takes two values.
const ACT: &str = "\
use std::math;

fn twice[T: float](x: T) -> T { math::relu(x + x) }

kernel act[T: float = f32, ACT: fn(T) -> T](x: view[T, 1], y: mut view[T, 1])
    grid(1)
{
    y.store([0], map(ACT, x.load([0], [3])));
}

kernel both[ACT: fn(f32, f32) -> f32](y: mut view[f32, 1])
    grid(1)
{
    y.store([0], ACT(1.0, 2.0));
}
";

#[test]
fn set_takes_a_lambda() {
    let folder = Folder::new("set-lambda");
    folder.write("act.tk", ACT);
    let run = |set: &str| {
        let arrays = ["run", "act.tk::act", "x=full:f32[3]@1.5", "y=zeros:f32[3]", "--set"];
        folder.tk(&[&arrays[..], &[set]].concat())
    };
    run("ACT=|v| v * 2.0").code(0).out_has("3.0, 3.0, 3.0");
    run("ACT=|v| { let a = v + 1; a * a }").code(0).out_has("6.25, 6.25, 6.25");
    run("ACT=|v|\n    math::relu(twice(v) + 1)").code(0).out_has("4.0, 4.0, 4.0");
    for (set, said) in [
        ("ACT=|v| v *", ["E0101", "<--set ACT>:1:8"]),
        ("ACT=|v| v; v", ["E0101", "<--set ACT>:1:6"]),
        ("ACT=|v|\n  (v", ["E0102", "<--set ACT>:2:3"]),
        ("ACT=|v| q", ["E0201", "<--set ACT>:1:5"]),
        ("ACT=|v| v as f64", ["E0301", "this is `fn(T) -> f64`"]),
        ("ACT=|v, w| v", ["E0301", "<--set ACT>:1:1"]),
        ("T=|v| v", ["E0402", "not `|v| v`"]),
        ("AC=|v| v", ["E0402", "did you mean `ACT`"]),
    ] {
        let ran = run(set);
        ran.code(2);
        said.iter().for_each(|text| {
            ran.err_has(text);
        });
    }
    // Of several kernels, each has to be able to call it.
    let tile = ["check", "act.tk", "--emit", "tile", "--set", "ACT=|v| v * 7.0"];
    folder.tk(&tile).code(2).err_has("<--set ACT>:1:1");
    folder.tk(&[&tile[..], &["--kernel", "act"]].concat()).code(0).out_has("7.0");
}

/// Adds `by` to each tensor of a table, and the sums of what a table of tables leads to.
const TABLES: &str = "\
kernel add[T: f16 | f32](table: view[*mut T, 1], lengths: view[i32, 1], by: f32 = 1.0)
    grid(table.shape[0])
    require(lengths.shape == table.shape)
{
    let g = program_id(0);
    let n = lengths.load([g]);
    let x = view(table.load([g]), [n], [1]);
    for i in range(0, n, 8) {
        x.store([i], (x.load([i], [8]) as f32 + by) as T);
    }
}

kernel sums(tables: ***f32, counts: view[i32, 1], n: i32, y: mut view[f32, 1])
    grid(y.shape[0])
{
    let g = program_id(0);
    let table = load(tables + g);
    let mut s = 0.0;
    for i in range(0, counts.load([g])) {
        s += sum(view(load(table + i), [n], [1]).load([0], [8]));
    }
    y.store([g], s);
}
";

#[test]
fn a_list_of_tensors_is_a_table_of_addresses() {
    let folder = Folder::new("tables");
    folder.write("t.tk", TABLES);
    let devices: &[&str] = if cfg!(feature = "llvm") { &["cpu", "sim", "sim64"] } else { &["cpu"] };
    for device in devices {
        let run = |args: &[&str]| folder.tk(&[&["run", "--device", device][..], args].concat());
        // The element type follows from the tensors.
        let ran = run(&["t.tk::add", "table=[arange:f32[9], ones:f32[3,1]]", "lengths=full:i32[2]@3"]);
        ran.code(0)
            .out_has("table[0]  f32[9]  1.0, 2.0, 3.0, 3.0, 4.0")
            .out_has("table[1]  f32[3, 1]  2.0, 2.0, 2.0");
        let args = [
            "t.tk::add",
            "table=[zeros:f16[4]]",
            "lengths=full:i32[1]@3",
            "by=0.5",
            "--out",
            "table[0]=y.npy",
        ];
        run(&args).code(0);
        // What was written is an entry of the next table.
        run(&["t.tk::add", "table=[ y.npy , y.npy]", "lengths=full:i32[2]@4"])
            .code(0)
            .out_has("table[1]  f16[4]  1.5, 1.5, 1.5, 1.0");
        let nested = "tables=[[ones:f32[4], arange:f32[4]], [full:f32[8]@2]]";
        run(&["t.tk::sums", nested, "counts=arange:i32[2]", "n=4", "y=zeros:f32[2]"])
            .code(0)
            .out_has("y  f32[2]  0.0, 8.0");
        run(&["t.tk::add", "table=[]", "lengths=zeros:i32[0]", "--set", "T=f16"]).code(0);
    }
}

#[test]
fn mistakes_in_tables_are_one_sentence() {
    let folder = Folder::new("tables-mistakes");
    folder.write("t.tk", TABLES);
    let two = "lengths=full:i32[2]@3";
    let cases: &[(&[&str], &str)] = &[
        (&["table=[ones:f16[3], ones:f32[3]]", two], "entry 1 of `table` has element type f32"),
        (&["table=[ones:f32[3], ones:i32[3]]", two], "holds i32, but `table[1]` takes f16 | f32"),
        (&["table=[ones:f32[3], 3]", two], "`table[1]=3`: an entry of a table is a tensor"),
        (&["table=ones:f32[3]", two], "takes a list of tensors"),
        (&["table=[ones:f32[3]", two], "is not understood"),
        (&["table=[ones:f32[3]]", two], "lengths.shape == table.shape"),
        (&["table=[]", "lengths=zeros:i32[0]"], "needs a value for `T`"),
        (&["table=[ones:f32[3]]", "lengths=[ones:i32[1]]"], "`lengths` takes one tensor, not a list"),
        (&["table=[ones:f32[3]]", "lengths=ones:i32[1]", "--out", "table=y.npy"], "table[0]=y.npy"),
        (
            &["table=[ones:f32[3]]", "lengths=ones:i32[1]", "--out", "table[1]=y.npy"],
            "`table[1]` was not given",
        ),
        (&["table=[ones:f32[3]]", "lengths=ones:i32[1]", "--out", "table[x]=y.npy"], "NAME=VALUE"),
        (&["table=[ones:f32[3]]", "lengths=ones:i32[1]", "--out", "lengths[0]=y.npy"], "not `mut`"),
        (&["table=[ones:f32[2]]", "lengths=full:i32[1]@3", "--checked"], "E0708"),
    ];
    for (args, message) in cases {
        folder.tk(&[&["run", "t.tk::add"][..], args].concat()).code(2).err_has(message);
    }
    assert_eq!(folder.names(), ["t.tk"]);
}
