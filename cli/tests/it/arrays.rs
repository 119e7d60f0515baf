//! Arrays of the command line: `.safetensors` files, and what does not fit into memory or its element type.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::command::{ADD, Folder, floats, npy};

/// A safetensors file: the length of its header, the header, data.
fn tensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// A file with f32 tensors of three elements each.
fn named(names: &[&str]) -> Vec<u8> {
    let entries: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(i, n)| {
            format!(r#""{n}":{{"dtype":"F32","shape":[3],"data_offsets":[{},{}]}}"#, i * 12, i * 12 + 12)
        })
        .collect();
    let data: Vec<u8> = (0..names.len()).flat_map(|i| floats(&[i as f32, 1.0, 2.0])).collect();
    tensors(&format!(r#"{{"__metadata__":{{"format":"pt"}},{}}}"#, entries.join(",")), &data)
}

#[test]
fn a_tensor_of_a_file_is_an_argument() {
    let folder = Folder::new("tensors");
    folder.write("add.tk", ADD).write("m.safetensors", named(&["a", "layers.0.weight", "b#c"]));
    folder.write("one.safetensors", named(&["only"]));
    let x = |x: &str| folder.tk(&["run", "add.tk", x, "z=zeros:f32[3]"]);
    x("x=m.safetensors#a").code(0).out_has("z  f32[3]  0.0, 1.0, 2.0\n");
    x("x=m.safetensors#layers.0.weight").code(0).out_has("z  f32[3]  1.0, 1.0, 2.0\n");
    x("x=m.safetensors#b#c").code(0).out_has("z  f32[3]  2.0, 1.0, 2.0\n");
    x("x=one.safetensors").code(0).out_has("z  f32[3]  0.0, 1.0, 2.0\n");
    let two = ["run", "add.tk", "x=m.safetensors#a", "y=m.safetensors#b#c", "z=zeros:f32[3]"];
    folder.tk(&two).code(0).out_has("z  f32[3]  2.0, 2.0, 4.0\n");
}

#[test]
fn every_element_type_is_read() {
    let folder = Folder::new("tensor-types");
    folder.write(
        "copy.tk",
        "kernel copy[T: dtype](x: view[T, 2], y: mut view[T, 2]) { y.store([0, 0], x.load([0, 0], [2, 2])); }",
    );
    let types: &[(&str, &str, &[u8], &str)] = &[
        ("BOOL", "bool", &[1, 0], "true, false"),
        ("I8", "i8", &[0xff, 7], "-1, 7"),
        ("U8", "u8", &[0xff, 7], "255, 7"),
        ("I16", "i16", &[0xfe, 0xff, 1, 1], "-2, 257"),
        ("U16", "u16", &[0xfe, 0xff, 1, 1], "65534, 257"),
        ("I32", "i32", &[0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0], "-1, 1"),
        ("U32", "u32", &[0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0], "4294967295, 1"),
        ("I64", "i64", &[0xff; 16], "-1, -1"),
        ("U64", "u64", &[0xff; 16], "18446744073709551615, 18446744073709551615"),
        ("F8_E4M3", "f8e4m3", &[0x38, 0xc0], "1.0, -2.0"),
        ("F8_E5M2", "f8e5m2", &[0x3c, 0xc0], "1.0, -2.0"),
        ("F8_E4M3FNUZ", "f8e4m3fnuz", &[0x40, 0x80], "1.0, nan"),
        ("F8_E5M2FNUZ", "f8e5m2fnuz", &[0x40, 0xc4], "1.0, -2.0"),
        ("F16", "f16", &[0x00, 0x3c, 0x00, 0xc0], "1.0, -2.0"),
        ("BF16", "bf16", &[0x80, 0x3f, 0x00, 0xc0], "1.0, -2.0"),
        ("F32", "f32", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], "1.0, -2.0"),
        ("F64", "f64", &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0], "1.0, -2.0"),
    ];
    for (dtype, ours, data, shown) in types {
        let n = data.len();
        let header = format!(r#"{{"x":{{"dtype":"{dtype}","shape":[1,2],"data_offsets":[0,{n}]}}}}"#);
        folder.write("x.safetensors", tensors(&header, data));
        let ran = folder.tk(&["run", "copy.tk", "x=x.safetensors#x", &format!("y=zeros:{ours}[1,2]")]);
        ran.code(0).out_has(&format!("y  {ours}[1, 2]  {shown}\n"));
        folder.write(
            "gold.tk",
            format!(
                "test \"gold\" {{ let x = npy(\"x.safetensors#x\", [1, 2], {ours}); let y = buffer(x); }}"
            ),
        );
        folder.tk(&["test", "gold.tk"]).code(0);
    }
    for dtype in ["F8_E8M0", "F4", "C64"] {
        let n = if dtype == "F4" {
            1
        } else if dtype == "C64" {
            16
        } else {
            2
        };
        let header = format!(r#"{{"x":{{"dtype":"{dtype}","shape":[1,2],"data_offsets":[0,{n}]}}}}"#);
        folder.write("x.safetensors", tensors(&header, &vec![0; n]));
        let ran = folder.tk(&["run", "copy.tk", "x=x.safetensors#x", "y=zeros:f32[1,2]"]);
        ran.code(2).says(&["x.safetensors holds", dtype, "which the language does not have"]);
    }
}

#[test]
fn tests_compare_with_tensors_beside_them() {
    let folder = Folder::new("tensor-gold");
    std::fs::create_dir(folder.path("sub")).unwrap();
    folder.write("sub/gold.safetensors", named(&["a", "b"]));
    let gold = |name: &str, shape: &str, dtype: &str| {
        folder.write(
            "sub/gold.tk",
            format!(
                "test \"gold\" {{ assert(all(npy(\"{name}\", [{shape}], {dtype}) as f32 == (arange(0, 3) as f32))); }}"
            ),
        );
        folder.tk(&["test", "sub/gold.tk"])
    };
    gold("gold.safetensors#a", "3", "f32").code(0).out_has("1 passed, 0 failed");
    gold("gold.safetensors#b", "3", "f32").code(1).err_has("assert");
    gold("gold.safetensors#c", "3", "f32").code(1).err_has("E0003").err_has("no tensor `c`");
    gold("gold.safetensors", "3", "f32").code(1).err_has("holds 2 tensors; choose one");
    gold("gold.safetensors#a", "4", "f32").code(1);
    gold("gold.safetensors#a", "3", "f16").code(1);
}

#[test]
fn bad_tensor_files_are_one_sentence() {
    let folder = Folder::new("tensor-bad");
    folder.write("add.tk", ADD);
    let three = floats(&[1.0, 2.0, 3.0]);
    let entry = |offsets: &str| format!(r#"{{"x":{{"dtype":"F32","shape":[3],"data_offsets":{offsets}}}}}"#);
    let good = tensors(&entry("[0,12]"), &three);
    let two = |a: &str, b: &str| {
        format!(
            r#"{{"x":{{"dtype":"F32","shape":[3],"data_offsets":{a}}},"y":{{"dtype":"F32","shape":[3],"data_offsets":{b}}}}}"#
        )
    };
    let shaped = |shape: &str| format!(r#"{{"x":{{"dtype":"F32","shape":{shape},"data_offsets":[0,12]}}}}"#);
    let files: &[(&str, Vec<u8>, &str)] = &[
        ("empty", vec![], "empty.safetensors is empty"),
        ("cut1", good[..5].to_vec(), "its header is not complete"),
        ("cut2", good[..30].to_vec(), "its header is not complete"),
        ("cut3", good[..good.len() - 5].to_vec(), "its header declares 12 bytes of data, found 7"),
        ("more", [good.clone(), vec![0; 4]].concat(), "has 4 bytes after its last tensor"),
        (
            "huge",
            [vec![0xff; 8], vec![b'{'; 100]].concat(),
            "its header would have 18446744073709551615 bytes",
        ),
        (
            "large",
            [99_999_999u64.to_le_bytes().to_vec(), vec![b' '; 100]].concat(),
            "its header is not complete",
        ),
        ("text", b"hello, world, this is no tensor file".to_vec(), "is not a .safetensors file"),
        ("json", tensors("{\"x\":", &three), "has a header that is not"),
        ("array", tensors("[1, 2]", &three), "has a header that is not"),
        ("utf8", [vec![2, 0, 0, 0, 0, 0, 0, 0], vec![0xff, 0xfe]].concat(), "has a header that is not"),
        ("nested", tensors(&"[".repeat(100_000), &[]), "has a header that is not"),
        ("deep", tensors(&format!("{{\"x\":{}", "{\"a\":".repeat(100_000)), &[]), "has a header that is not"),
        ("type", tensors(&entry("[0,12]").replace("F32", "F31"), &three), "F31"),
        ("overlap", tensors(&two("[0,12]", "[6,18]"), &[0; 18]), "invalid offset for tensor `y`"),
        ("same", tensors(&two("[0,12]", "[0,12]"), &three), "invalid offset for tensor"),
        ("gap", tensors(&two("[0,12]", "[16,28]"), &[0; 28]), "invalid offset for tensor `y`"),
        ("reverse", tensors(&entry("[12,0]"), &three), "invalid"),
        ("negative", tensors(&entry("[-1,12]"), &three), "has a header that is not"),
        ("shape", tensors(&shaped("[4]"), &three), "invalid shape"),
        ("product", tensors(&shaped("[9223372036854775807, 9223372036854775807]"), &three), "overflow"),
        ("claims", tensors(&shaped("[1000000000000]"), &three), "invalid shape"),
        ("none", tensors("{}", &[]), "holds no tensors"),
        ("several", named(&["weight", "bias"]), "has no tensor `x`; it holds `bias`, `weight`"),
        ("near", named(&["xyzzy", "xx", "y"]), "has no tensor `x`; it holds `xx`, `xyzzy`, `y`"),
    ];
    for (name, contents, sentence) in files {
        folder.write(&format!("{name}.safetensors"), contents);
        let ran = folder.tk(&["run", "add.tk", &format!("x={name}.safetensors#x"), "z=zeros:f32[3]"]);
        ran.code(2).says(&["error: ", &format!("{name}.safetensors"), sentence]);
    }
    folder.write("m.safetensors", named(&["weight", "bias"]));
    let names: Vec<String> = (0..20).map(|i| format!("layer{i:02}")).collect();
    folder.write("many.safetensors", named(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let says = |x: &str, texts: &[&str]| {
        let ran = folder.tk(&["run", "add.tk", x, "z=zeros:f32[3]", "--set", "T=f32"]);
        ran.code(2).says(texts);
    };
    says("x=m.safetensors#wieght", &["has no tensor `wieght`; did you mean `weight`?"]);
    says("x=m.safetensors#", &["has no tensor ``"]);
    says("x=m.safetensors", &["m.safetensors holds 2 tensors; choose one, as in m.safetensors#NAME: `bias`"]);
    says("x=many.safetensors", &["`layer07` and 12 more"]);
    says("x=nowhere.safetensors#a", &["cannot read nowhere.safetensors: no such file or directory"]);
    std::fs::create_dir(folder.path("dir.safetensors")).unwrap();
    says("x=dir.safetensors#a", &["is a directory"]);
    let ran = folder.tk(&["run", "add.tk", "x=m.safetensors#bias", "z=zeros:f16[3]", "--set", "T=f16"]);
    ran.code(2).says(&["m.safetensors#bias holds f32, but `x` takes f16"]);
}

#[test]
fn every_prefix_and_every_changed_byte_of_a_tensor_file_is_an_answer() {
    let folder = Folder::new("tensor-bytes");
    let good = named(&["a"]);
    let read = |bytes: &[u8]| {
        folder.write("t.safetensors", bytes);
        tk_runtime::stored::read(&folder.path(""), "t.safetensors#a", tk_ops::DTypeSet::ANY)
    };
    assert!(read(&good).is_ok());
    for end in 0..good.len() {
        assert!(read(&good[..end]).is_err(), "{end} bytes");
    }
    for at in 0..good.len() - 12 {
        for byte in [0, b'"', b'9', b'[', b'}', 0xff] {
            let mut changed = good.clone();
            changed[at] = byte;
            let _ = read(&changed);
        }
    }
}

/// Fails unless the command refuses its arguments at once, in one sentence or diagnostic with these texts.
fn refuses(folder: &Folder, args: &[&str], texts: &[&str]) {
    let start = Instant::now();
    let ran = folder.tk(args);
    ran.code(2);
    texts.iter().for_each(|t| assert!(ran.err.contains(t), "`{t}` is not in {ran:#?}"));
    assert!(start.elapsed() < Duration::from_secs(5), "{args:?} took {:?}", start.elapsed());
}

#[test]
fn what_does_not_fit_in_memory_is_refused_with_numbers() {
    let folder = Folder::new("room");
    folder.write("add.tk", ADD);
    folder.write(
        "work.tk",
        "kernel work(y: mut view[f32, 1], n: i64) scratch(w: *mut f32, n) { y.store([0], 1.0); }",
    );
    let x = |x: &str, texts: &[&str]| refuses(&folder, &["run", "add.tk", x, "z=zeros:f32[3]"], texts);
    x(
        "x=randn:f32[1000000,1000000]",
        &["needs 4000000000000 bytes (3.6 TiB) of memory, but ", " are available"],
    );
    x("x=zeros:f32[99999999999,99999999999]", &["needs more than 9223372036854775807 bytes"]);
    x("x=ones:i8[9223372036854775807]", &["needs 9223372036854775807 bytes"]);
    x("x=zeros:f32[9223372036854775808]", &["the extent 9223372036854775808 is larger than"]);
    x("x=zeros:f32[4294967296,4294967296,4294967296,4294967296]", &["needs more than"]);
    // Large, but there: shapes are compared before anything is filled.
    x("x=randn:f32[900000000]", &["E0704"]);
    refuses(
        &folder,
        &["run", "work.tk", "y=zeros:f32[1]", "n=1000000000000"],
        &["E0706", "needs 4000000000000 bytes"],
    );
    // A file that claims much, and one that has it: a hole costs no space on the disk.
    folder.write("claims.npy", npy("<f4", "(1000000, 1000000)", &[0; 12]));
    x(
        "x=claims.npy",
        &["claims.npy is truncated: its header declares 4000000000000 bytes of data, found 12"],
    );
    let header = npy("<f4", "(1000000, 1000000)", &[]);
    let mut file = std::fs::File::create(folder.path("hole.npy")).unwrap();
    file.write_all(&header).unwrap();
    if file.set_len(header.len() as u64 + 4_000_000_000_000).is_ok() {
        x("x=hole.npy", &["hole.npy needs 4000000000000 bytes"]);
    }
    // Empty arrays have any extents.
    folder.tk(&["run", "add.tk", "x=zeros:f32[0]", "z=randn:f32[0]"]).code(0);
}

#[test]
fn values_that_their_type_does_not_reach_are_refused() {
    let folder = Folder::new("reach");
    folder.write(
        "s.tk",
        "kernel s[T: dtype, F: f32 = 1.0, H: f16 = 1.0, I: i8 = 1](f: f32, h: f16, x: view[T, 1], y: mut view[f32, 1]) {
             y.store([0], f + F + (h as f32));
         }",
    );
    let with = |change: &[&str]| {
        let name = |s: &str| s.split('=').next().unwrap_or_default().to_string();
        let mut words = vec!["run", "s.tk", "y=zeros:f32[1]"];
        for base in ["f=1.0", "h=1.0", "x=zeros:f32[1]"] {
            if !change.iter().any(|c| name(c) == name(base)) {
                words.push(base);
            }
        }
        words.extend(change);
        folder.tk(&words)
    };
    for (change, text) in [
        (&["f=1e40"][..], "E0702"),
        (&["f=1e999"], "`f=1e999` is too large for 64 bits"),
        (&["h=70000"], "E0702"),
        (&["h=7e4"], "E0702"),
        (&["--set", "F=1e40"], "E0402"),
        (&["--set", "F=1e999"], "--set F=1e999 is too large for 64 bits"),
        (&["--set", "H=70000"], "E0402"),
        (&["--set", "I=128"], "E0402"),
        (&["x=arange:i8[129]"], "`arange:i8[129]` counts to 128, which is too large for i8"),
        (&["x=arange:f16[70000]"], "too large for f16"),
        (&["x=arange:f8e4m3[1000]"], "too large for f8e4m3"),
        (&["x=arange:bool[3]"], "too large for bool"),
        (&["x=full:i8[3]@128"], "128 is no value of i8"),
        (&["x=full:u8[3]@-1"], "-1 is no value of u8"),
        (&["x=full:f16[3]@1e6"], "1e6 is too large for f16"),
        (&["x=full:f32[3]@1e999"], "1e999 is too large for f32"),
        (&["x=full:f8e4m3[3]@500"], "500 is too large for f8e4m3"),
        (&["x=full:i32[3]@0.5"], "0.5 is no value of i32"),
    ] {
        with(change).code(2).err_has(text);
    }
    for change in [
        &["f=inf"][..],
        &["f=0.1"],
        &["f=16777217"],
        &["h=65504"],
        &["h=nan"],
        &["--set", "F=inf"],
        &["x=arange:i8[128]"],
        &["x=arange:f16[65505]"],
        &["x=full:f8e5m2[3]@inf"],
        &["x=full:f8e4m3[3]@450"],
        &["x=full:bool[3]@true"],
    ] {
        with(change).code(0);
    }
}

#[test]
fn bits_of_types_that_numpy_has_not_are_named() {
    let folder = Folder::new("bits");
    folder.write(
        "k.tk",
        "kernel b(x: view[bf16, 1], y: mut view[f32, 1]) { y.store([0], x.load([0], [2]) as f32); }\n\
         kernel e[T: f8e4m3 | f8e5m2](x: view[T, 1], y: mut view[f32, 1]) { y.store([0], x.load([0], [2]) as f32); }\n",
    );
    for (file, descr, data) in [
        ("u16.npy", "<u2", &[0x80u8, 0x3f, 0, 0x40][..]),
        ("v2.npy", "<V2", &[0x80, 0x3f, 0, 0x40]),
        ("u8.npy", "|u1", &[0x38, 0x40]),
        ("v1.npy", "|V1", &[0x38, 0x40]),
    ] {
        folder.write(file, npy(descr, "(2,)", data));
    }
    let run = |kernel: &str, x: &str, more: &[&str]| {
        let kernel = format!("k.tk::{kernel}");
        let args = ["run", kernel.as_str(), x, "y=zeros:f32[2]"];
        folder.tk(&[&args[..], more].concat())
    };
    run("b", "x=u16.npy", &[])
        .code(2)
        .says(&["u16.npy holds u16, but `x` takes bf16", "save `a.view(\"V2\")`"]);
    run("b", "x=v2.npy", &[]).code(0).out_has("1.0, 2.0");
    run("e", "x=u8.npy", &["--set", "T=f8e4m3"]).code(2).says(&["holds u8", "save `a.view(\"V1\")`"]);
    run("e", "x=v1.npy", &["--set", "T=f8e4m3"]).code(0).out_has("1.0, 2.0");
}
