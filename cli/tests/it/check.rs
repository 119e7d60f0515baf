//! `tk check`, `tk explain` and `tk test`: exit codes, what goes where, and hostile sources.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::command::{self, ADD, Folder, Ran};

#[test]
fn a_clean_file_is_silent() {
    let folder = Folder::new("clean");
    let ran = folder.write("add.tk", ADD).tk(&["check", "add.tk"]);
    ran.code(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
}

#[test]
fn diagnostics_go_to_standard_error() {
    let folder = Folder::new("diagnostics");
    folder.write("a.tk", "kernel a() { let x = nothing; }").write("b.tk", "kernel b() { let y = nowhere; }");
    let ran = folder.tk(&["check", "a.tk", "b.tk"]);
    ran.code(1).err_has("E0201").err_has("nothing").err_has("nowhere").err_has("a.tk:1").err_has("b.tk:1");
    assert_eq!(ran.out, "");
    assert!(!ran.err.contains('\x1b'), "{ran:#?}");
}

#[test]
fn warnings_are_shown_and_fail_nothing() {
    let folder = Folder::new("warnings");
    folder.write("a.tk", "use helpers;\n\nfn f(x: i32) -> i32 { let y = x; helpers::g(x) }\n");
    folder.write("helpers.tk", "fn g(x: i32) -> i32 { let z = x; x }\n\ntest \"t\" { assert(g(1) == 1); }\n");
    let ran = folder.tk(&["check", "a.tk"]);
    ran.code(0).err_has("warning[W0201]").err_has("`y` is never used");
    assert!(!ran.err.contains("`z`"), "only the file that was asked for: {ran:#?}");
    folder.tk(&["test", "helpers.tk"]).code(0).err_has("`z` is never used").out_has("1 passed");
    folder.tk(&["explain", "w201"]).code(2).err_has("did you mean W0201");
    // After an error warnings about the same function are no help.
    let ran = folder.write("b.tk", "fn f() -> i32 { let y = 1; missing }\n").tk(&["check", "b.tk"]);
    ran.code(1).err_has("E0201");
    assert!(!ran.err.contains("W0201"), "{ran:#?}");
}

/// A lint that is wrong about these would be wrong about most programs.
#[test]
fn the_examples_and_the_library_have_no_warnings() {
    let folder = Folder::new("quiet");
    for sources in ["examples", "stdlib", "stdlib/nn"] {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..").to_string() + "/" + sources);
        for file in files.unwrap() {
            let path = file.unwrap().path().to_string_lossy().into_owned();
            if !path.ends_with(".tk") {
                continue;
            }
            let ran = folder.tk(&["check", &path]);
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{path}");
        }
    }
}

#[test]
fn color_is_a_choice() {
    let folder = Folder::new("color");
    folder.write("a.tk", "kernel a() { let x = nothing; }");
    assert!(folder.tk(&["check", "--color", "always", "a.tk"]).err.contains('\x1b'));
    assert!(!folder.tk(&["check", "--color", "never", "a.tk"]).err.contains('\x1b'));
    assert!(!folder.tk(&["check", "a.tk", "--color=auto"]).err.contains('\x1b'));
}

#[test]
fn usage_mistakes_end_with_2() {
    let folder = Folder::new("usage");
    for args in [&[][..], &["check"], &["frobnicate"], &["check", "--emit", "soup", "a.tk"], &["run"]] {
        let ran = folder.tk(args);
        ran.code(2);
        assert_eq!(ran.out, "", "{ran:#?}");
    }
    folder.tk(&["--help"]).code(0).out_has("explain");
    folder.tk(&["--version"]).code(0).out_has("tk ");
    folder.tk(&["check", "missing.tk"]).code(2).says(&["cannot read missing.tk: no such file or directory"]);
    // A bundle is no source file, whatever is asked of it.
    folder.write("k.tkb", "TKBUNDLE and more").write("short.tkb", "TKB");
    for command in ["check", "run", "test"] {
        folder.tk(&[command, "k.tkb"]).code(2).err_has("k.tkb is a bundle of compiled kernels, not source");
    }
    folder.tk(&["check", "short.tkb"]).code(1);
    folder.tk(&["check", "."]).code(2).says(&["no `.tk` files in ."]);
}

/// An import goes where the others are, or below the comment of the file.
#[test]
fn a_fix_imports_below_the_comment_of_the_file() {
    let folder = Folder::new("import");
    let item = "fn f(x: f32) -> f32 { gelu(x) }\n";
    for (head, start) in [("// About.\n\n", 11), ("// About.\n\nuse std::grid; // groups\n\n", 35)] {
        folder.write("a.tk", format!("{head}{item}"));
        let ran = folder.tk(&["check", "--message-format", "json", "a.tk"]);
        ran.code(1).out_has(&format!("\"byte_start\":{start},\"byte_end\":{start},"));
    }
}

#[test]
fn imports_are_found_beside_the_file() {
    let folder = Folder::new("imports");
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/helpers.tk", "fn twice(x: f32) -> f32 { x * 2.0 }");
    folder.write("sub/main.tk", "use helpers::twice;\nuse std::math;\nkernel k(y: mut view[f32, 1]) { y.store([0], math::relu(twice(1.0))); }");
    folder.tk(&["check", "sub/main.tk"]).code(0);
    folder.tk(&["run", "sub/main.tk", "y=zeros:f32[1]"]).code(0).out_has("y  f32[1]  2.0\n");
    folder.write("sub/helpers.tk", "fn twice(x: f32) -> f32 { x * 2 * }");
    folder.tk(&["check", "sub/main.tk"]).code(1).err_has("sub/helpers.tk:1");
}

#[test]
fn emit_prints_to_standard_output() {
    let folder = Folder::new("emit");
    folder.write("add.tk", ADD);
    folder.tk(&["check", "--emit", "ast", "add.tk"]).code(0).out_has("add");
    folder.tk(&["check", "--emit", "hir", "add.tk"]).code(0).out_has("add");
    folder.tk(&["check", "--emit", "tile", "--set", "T=f32", "add.tk"]).code(0).out_has("kernel");
    folder.tk(&["check", "--emit", "tile", "add.tk"]).code(2).err_has("`T`").err_has("--set T=");
    folder.tk(&["check", "--emit", "tile", "--kernel", "sub", "add.tk"]).code(2).err_has("`sub`");
}

#[test]
fn a_reader_that_goes_away_is_no_mistake() {
    let folder = Folder::new("pipe");
    let long: String = (0..2000).map(|i| format!("fn f{i}(x: f32) -> f32 {{ x + 1.0 }}\n")).collect();
    folder.write("long.tk", long);
    let mut child = command::command(&folder.path(""), &["check", "--emit", "ast", "long.tk"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn explain_prints_the_page() {
    let folder = Folder::new("explain");
    folder.tk(&["explain", "E0304"]).code(0).out_has("E0304");
    folder.tk(&["explain", "e0304"]).code(0).out_has("E0304");
    folder.tk(&["explain", "E0399"]).code(2).says(&["unknown code `E0399`"]);
    folder.tk(&["explain", "304"]).code(2).says(&["did you mean E0304"]);
    for (code, _) in tk_syntax::codes::ALL {
        folder.tk(&["explain", code.0]).code(0).out_has(code.0);
    }
}

#[test]
fn explain_knows_operations() {
    let folder = Folder::new("explain_operations");
    let ran = folder.tk(&["explain", "load"]);
    ran.code(0).out_has("`load(ptr: pointer").out_has("`v.load(at: ").out_has("```tk");
    assert!(!ran.out.contains("`store(ptr"), "{ran:#?}");
    folder.tk(&["explain", "&&"]).code(0).out_has("### `a && b`".trim_start_matches("### "));
    folder.tk(&["explain", "!"]).code(0).out_has("`!x`");
    folder.tk(&["explain", "lod"]).code(2).says(&["unknown code or operation `lod`; did you mean load?"]);
    for row in tk_ops::rows::functions() {
        folder.tk(&["explain", row.name]).code(0).out_has(row.name);
    }
}

#[test]
fn folders_are_checked_and_tested_whole() {
    let folder = Folder::new("folders");
    std::fs::create_dir_all(folder.path("src/inner")).unwrap();
    std::fs::create_dir_all(folder.path("src/.hidden")).unwrap();
    std::fs::create_dir_all(folder.path("empty")).unwrap();
    folder.write("src/a.tk", ADD).write("src/inner/b.tk", "fn f() -> i32 { missing }\n");
    folder.write("src/.hidden/c.tk", "fn g() -> i32 { hidden }\n").write("src/notes.txt", "no program");
    let ran = folder.tk(&["check", "src"]);
    ran.code(1).err_has("`missing`").err_has("src/inner/b.tk:1");
    assert!(!ran.err.contains("hidden") && !ran.err.contains("notes"), "{ran:#?}");
    folder.tk(&["test", "src"]).code(1).out_has("src/a.tk  1 passed").out_has("FAIL  src/inner/b.tk");
    folder.write("src/inner/b.tk", "fn f() -> i32 { 1 }\n");
    folder.tk(&["test", "src"]).code(0).out_has("1 passed, 0 failed");
    for command in ["check", "test"] {
        folder.tk(&[command, "empty"]).code(2).says(&["no `.tk` files in empty"]);
    }
}

#[test]
fn tests_are_counted_and_failures_shown() {
    let folder = Folder::new("tests");
    folder.write("good.tk", ADD);
    let ran = folder.tk(&["test", "good.tk"]);
    ran.code(0).out_has("ok").out_has("good.tk").out_has("1 passed");
    assert_eq!(ran.out.lines().last(), Some("1 passed, 0 failed"));
    assert_eq!(ran.err, "");

    folder.write(
        "bad.tk",
        "test \"wrong\" {\n    let x = 1;\n    assert(x == 2);\n}\ntest \"right\" { assert(true); }\n",
    );
    let ran = folder.tk(&["test", "good.tk", "bad.tk"]);
    ran.code(1).err_has("wrong").err_has("bad.tk:3");
    assert_eq!(ran.out.lines().last(), Some("2 passed, 1 failed"));
    assert_eq!(ran.out.lines().count(), 3);

    folder.tk(&["test", "--filter", "right", "bad.tk"]).code(0).out_has("1 passed, 0 failed");
    folder.write("broken.tk", "test \"a\" { let x = nothing; }");
    let ran = folder.tk(&["test", "broken.tk"]);
    ran.code(1).err_has("E0201");
    assert_eq!(ran.out.lines().last(), Some("0 passed, 1 failed"));
    folder.tk(&["test", "missing.tk"]).code(2).err_has("cannot read missing.tk");
}

#[test]
fn a_failure_in_a_loop_of_a_test_says_for_which_values() {
    let folder = Folder::new("cases");
    let cases = [
        ("assert(N < 2);", "where T = f32, N = 2\n"),
        ("let _z = N; assert_close(full([N], 1.0, T), full([N], N as T, T));", "where T = f32, N = 2\n"),
        ("k[T = T](empty([N], T), 1);", "where T = f32, N = 1\n"),
        ("let e = empty([N], T); print(e.tile());", "where T = f32, N = 1\n"),
    ];
    for (body, expected) in cases {
        let kernel = "kernel k[T: float](x: view[T, 1], n: i32) require(n > 1) { }\n";
        folder.write(
            "a.tk",
            format!("{kernel}test \"t\" {{ for T in [f32, f16] {{ for N in [1, 2] {{ {body} }} }} }}\n"),
        );
        let ran = folder.tk(&["test", "a.tk"]);
        ran.code(1).err_has(expected);
        assert_eq!(ran.err.matches("where ").count(), 1, "{ran:#?}");
    }
    // Not after the loop.
    folder.write("a.tk", "test \"t\" { for N in [1, 2] { assert(N > 0); } assert(1 == 2); }\n");
    let ran = folder.tk(&["test", "a.tk"]);
    assert!(!ran.code(1).err.contains("where "), "{ran:#?}");
}

#[test]
fn nothing_tested_is_never_green() {
    let folder = Folder::new("devices");
    folder.write("good.tk", ADD);
    let cuda = ["test", "--device", "cuda", "good.tk"];
    let ran = folder.tk(&cuda);
    ran.code(2).out_has("1 skipped").err_has("error: no tests ran on `cuda`: ");
    ran.err_has("; --allow-missing-device skips them");
    let allowed = [&cuda[..], &["--allow-missing-device"]].concat();
    folder.tk(&allowed).code(0).out_has("1 skipped").out_has("0 passed, 0 failed");
    let mut command = command::command(&folder.path(""), &allowed);
    Ran::new(command.env("TK_REQUIRE_DEVICE", "cuda").output().unwrap()).code(2).err_has("cuda");
    // A setting that makes no sense is no missing device.
    for allowed in [&[][..], &["--allow-missing-device"]] {
        let args = [&["test", "--device", "sim", "good.tk"], allowed].concat();
        let mut command = command::command(&folder.path(""), &args);
        let ran = Ran::new(command.env("TK_SIM_SEED", "x").output().unwrap());
        ran.code(2).says(&["TK_SIM_SEED is `x`, which is not a number"]);
    }
    folder.write("none.tk", "fn f() -> i32 { 1 }");
    folder.tk(&["test", "none.tk"]).code(2).err_has("no tests ran: there are no tests");
    folder.tk(&["test", "none.tk", "good.tk"]).code(0).out_has("1 passed, 0 failed");
    let two = "test \"add\" { assert(true); }\ntest \"add two\" { assert(true); }\n";
    folder.write("two.tk", two).tk(&["test", "--filter", "add", "two.tk"]).code(0).out_has("2 passed");
    folder.tk(&["test", "--filter", "add", "--exact", "two.tk"]).code(0).out_has("1 passed");
    folder.tk(&["test", "--filter", "ad", "--exact", "two.tk"]).code(2).err_has("no test is called `ad`");
    folder.tk(&["test", "--exact", "two.tk"]).code(2).err_has("--filter");
    let ran = folder.tk(&["test", "--filter", "nothing like this", "good.tk"]);
    ran.code(2).err_has("no tests ran: no test name contains `nothing like this`");
}

#[test]
fn npy_goldens_are_found_beside_the_test() {
    let folder = Folder::new("goldens");
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/gold.npy", command::npy("<f4", "(2,)", &command::floats(&[1.0, 2.0])));
    folder.write(
        "sub/gold.tk",
        "test \"gold\" { assert(all(npy(\"gold.npy\", [2], f32) == (arange(1, 3) as f32))); }",
    );
    folder.tk(&["test", "sub/gold.tk"]).code(0).out_has("1 passed, 0 failed");
}

/// Checks a hostile source: it ends soon, with diagnostics or without, and never in an internal error.
fn survives(folder: &Folder, name: &str, source: impl AsRef<[u8]>) {
    folder.write("hostile.tk", source);
    for args in
        [&["check", "hostile.tk"][..], &["check", "--emit", "ast", "hostile.tk"], &["test", "hostile.tk"]]
    {
        let start = Instant::now();
        let ran = folder.tk(args);
        assert!(
            matches!(ran.code, Some(0..=2)),
            "{name}: {:?} {}",
            ran.code,
            ran.err.chars().take(400).collect::<String>()
        );
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
        // A few diagnostics at most follow from one mistake.
        assert!(ran.err.len() < 1 << 20, "{name}: {} bytes of messages", ran.err.len());
    }
}

/// Programs on which checking took quadratic time once: minutes, at this length.
#[test]
fn long_files_take_linear_time() {
    let folder = Folder::new("long");
    const N: usize = 40_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..N).map(line).collect::<String>();
    let body = |line: &dyn Fn(usize) -> String| format!("fn f(x: i32) {{\n{}}}\n", lines(line));
    let sources = [
        ("branches", body(&|i| format!("let v{i} = {i};\nif v{i} > x {{ let w = x; }}\n"))),
        ("values of branches", body(&|i| format!("let v{i} = if x > {i} {{ x + 1 }} else {{ 2 }};\n"))),
        ("unknown names", lines(&|i| format!("fn f{i}(x: unknown{i}) {{}}\n"))),
        ("fields", format!("struct S {{\n{}}}\n", lines(&|i| format!("f{i}: f32,\n")))),
    ];
    for (name, source) in sources {
        folder.write("long.tk", source);
        let start = Instant::now();
        assert!(matches!(folder.tk(&["check", "long.tk"]).code, Some(0 | 1)), "{name}");
        println!("{name}: {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
    }
}

/// What a default, a clause or an `export` evaluates may have errors of its own: those are reported, and nothing else.
#[test]
fn mistakes_in_what_is_evaluated() {
    let mistakes = [
        "missing(n)",
        "if n > 2 { 4 } else { f16 }",
        "if missing { 4 } else { 8 }",
        "n + 1.5",
        "n.missing",
        "n[2]",
        "let x: i64 = n; n",
        "return true;",
        "let x = missing; 4",
        "let mut s = 0; for i in range(0, missing) { s += 1; } s",
        "while n { } 4",
        "other(n)",
        "bad(n)",
        "let (a, b) = n; a",
        "n = 4; n",
        "for i in static_range(0, wrong) { } n",
        "static_assert(missing); n",
    ];
    let uses = [
        "kernel k[B: i32 = bad(4)](y: mut view[f32, 1]) grid(1) { y.store([0], zeros([B], f32)); } export k;",
        "kernel k[B: i32](y: mut view[f32, 1]) grid(1) require(bad(B) > 0) { y.store([0], zeros([B], f32)); } export k[B = 4];",
        "kernel k[B: i32](y: mut view[f32, 1]) grid(bad(B)) { y.store([0], zeros([B], f32)); } export k[B = 4];",
        "kernel k[B: i32](y: mut view[f32, 1]) grid(1) { y.store([0], zeros([B], f32)); } export k[B = [bad(4), 8]];",
        "const C = bad(4); kernel k[B: i32 = C](y: mut view[f32, C]) require(B > C) { } export k;",
        "const C: i32 = 1 + bad(4); kernel k[B: i32](y: mut view[f32, 1]) { y.store([0], zeros([C], f32)); } export k[B = C];",
        "const T: dtype = if bad(4) > 2 { f32 } else { f16 }; fn f(x: tile[T, 4]) -> T { sum(x) }",
        "const S: shape = [bad(4), 2]; fn f(x: tile[f32, S]) -> f32 { sum(x) } struct P { x: tile[f32, bad(2)] }",
        "fn f(x: tile[f32, 4], n: i32 = bad(4)) -> f32 { x.load([n]) } test \"t\" { assert(f(zeros([4], f32)) == 0.0); }",
        "kernel k[B: i32 = 4](y: mut view[f32, 1]) launch(warps = bad(B)) prefer(bad(B) == 4) { } export k;",
        "kernel k[B: i32](y: mut view[f32, 1]) tune(key = [bad(4)], (B = bad(2)), (B = [4, bad(8)])) { } export k[B = 4];",
        "kernel k[B: i32 = 4](y: mut view[f32, 1]) scratch(p: *mut f32, bad(B)) { } export k;",
        "fn g[N: i32 = bad(4)]() -> i32 { for i in static_range(0, bad(N)) { static_print(i); } N } test \"t\" { assert(g() == 4); }",
    ];
    let folder = Folder::new("evaluated");
    let mut args = vec!["check".to_string()];
    for (i, mistake) in mistakes.iter().enumerate() {
        for (j, user) in uses.iter().enumerate() {
            let name = format!("m{i}u{j}.tk");
            let other = "fn other(n: i32) -> i32 { unknown(n) }";
            folder.write(&name, format!("{user}\nfn bad(n: i32) -> i32 {{ {mistake} }}\n{other}\n"));
            args.push(name);
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ran = folder.tk(&args);
    ran.code(1);
    assert!(!ran.err.contains("internal"), "{}", ran.err);
    for name in &args[1..] {
        assert!(ran.err.contains(name), "nothing is said about {name}");
    }
}

/// Types that double with every line: a few lines would hold millions of values.
#[test]
fn values_that_double() {
    let folder = Folder::new("doubling");
    let doubled = |line: &dyn Fn(usize) -> String| (1..60).map(line).collect::<String>();
    let tuples = doubled(&|i| format!("let t{i} = (t{}, t{});\n", i - 1, i - 1));
    let types = doubled(&|i| format!("struct S{i} {{ a: S{}, b: S{} }}\n", i - 1, i - 1));
    let upwards = doubled(&|i| format!("struct S{i} {{ a: S{}, b: S{} }}\n", i + 1, i + 1));
    let sources = [
        format!("kernel k(n: i32) {{ let t0 = n;\n{tuples} }}\n"),
        format!("struct S0 {{ a: i32 }}\n{types}"),
        format!("struct S0 {{ }}\n{types} fn f(s: S59) {{ }}"),
        format!("{upwards}struct S60 {{ a: i32 }}\nfn f(s: S1) {{ }}"),
    ];
    for source in sources {
        folder.write("hostile.tk", source);
        let start = Instant::now();
        folder.tk(&["check", "hostile.tk"]).code(1).err_has("E0106").err_has("65536 values");
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn hostile_depth() {
    let folder = Folder::new("depth");
    const N: usize = 100_000;
    let expression = |e: String| format!("kernel k() {{ let x = {e}; }}");
    let sources: &[(&str, String)] = &[
        ("parentheses", expression(format!("{}1{}", "(".repeat(N), ")".repeat(N)))),
        ("open parentheses", expression("(".repeat(N))),
        ("closing parentheses", expression(")".repeat(N))),
        ("brackets", expression("[".repeat(N))),
        ("braces", format!("kernel k() {}", "{".repeat(N))),
        ("minus", expression(format!("{}1", "-".repeat(N)))),
        ("not", expression(format!("{}true", "!".repeat(N)))),
        ("sum", expression(format!("1{}", " + 1".repeat(N)))),
        ("and", expression(format!("true{}", " && true".repeat(N)))),
        ("fields", expression(format!("y{}", ".a".repeat(N)))),
        ("calls", expression(format!("f{}", "()".repeat(N)))),
        ("indices", expression(format!("y{}", "[0]".repeat(N)))),
        ("casts", expression(format!("1{}", " as i32".repeat(N)))),
        ("else if", format!("kernel k() {{ if true {{}} {} }}", "else if true {}".repeat(N))),
        ("lambdas", expression(format!("{}1", "|a| ".repeat(N)))),
        ("types", format!("kernel k(x: {}f32) {{}}", "*".repeat(N))),
        ("tuple types", format!("kernel k(x: {}f32{}) {{}}", "(".repeat(N), ",)".repeat(N))),
        ("statements", format!("kernel k() {{ {} }}", "let x = 1;".repeat(N))),
        ("items", "fn f() {}\n".repeat(2000)),
    ];
    for (name, source) in sources {
        survives(&folder, name, source);
    }
}

#[test]
fn hostile_bytes() {
    let folder = Folder::new("bytes");
    survives(&folder, "nothing", "");
    survives(&folder, "no UTF-8", [0xff, 0xfe, 0x00, 0x80, b'k', b'e', b'r', b'n', b'e', b'l', 0xc3]);
    survives(&folder, "zeros", vec![0u8; 10_000]);
    survives(&folder, "a byte order mark", "\u{feff}kernel k() {}");
    survives(&folder, "right to left", "kernel k() { let \u{202e}x = 1; } // \u{202e}\u{10ffff}");
    survives(&folder, "open text", "test \"abc");
    survives(&folder, "open text in a long line", format!("test \"{}", "a".repeat(100_000)));
    survives(
        &folder,
        "huge numbers",
        format!(
            "const A = {}; const B = 1e{}; const C = 0x{};",
            "9".repeat(5000),
            "9".repeat(50),
            "f".repeat(5000)
        ),
    );
    survives(
        &folder,
        "huge tiles",
        "kernel k() { let x = zeros([1000000, 1000000], f32); } test \"t\" { k(); }",
    );
    // Every byte, and a fixed pseudo-random mixture of tokens.
    survives(&folder, "every byte", (0..=255u8).cycle().take(4096).collect::<Vec<u8>>());
    let words = [
        "kernel", "fn", "(", ")", "[", "]", "{", "}", ",", ";", "let", "=", "x", "1", "->", ":", "if",
        "else", "for", "in", "\"", "+", "|", ".", "use", "test",
    ];
    let mut state = 1u32;
    for round in 0..20 {
        let mut source = String::new();
        for _ in 0..300 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            source.push_str(words[(state >> 16) as usize % words.len()]);
            source.push(' ');
        }
        survives(&folder, &format!("tokens {round}"), source);
    }
}
