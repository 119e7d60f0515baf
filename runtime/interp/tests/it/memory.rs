//! Loads and stores through pointers: masks, runs, scattered and loaded pointers, faults.

use crate::common::*;
use tk_interp::{Arg, Memory};
use tk_ops::{Buf, DType};

/// z = x + y with a mask, as the first sample of the language.
const ADD: &str = r#"
kernel @add(v0 "x": *f32, v1 "y": *f32, v2 "z": *mut f32, v3 "n": i32) {
  v4 = program_id {axis = 0} : i32
  v5 = const {value = 64 : i32} : i32
  v6 = mul v4, v5 : i32
  v7 = arange {start = 0} : tile[i32, 64]
  v8 = splat v6 : tile[i32, 64]
  v9 = add v8, v7 : tile[i32, 64]
  v10 = splat v3 : tile[i32, 64]
  v11 = lt v9, v10 : tile[bool, 64]
  v12 = splat v0 : tile[*f32, 64]
  v13 = ptr_add v12, v9 : tile[*f32, 64]
  v14 = load v13, v11 : tile[f32, 64]
  v15 = splat v1 : tile[*f32, 64]
  v16 = ptr_add v15, v9 : tile[*f32, 64]
  v17 = load v16, v11 : tile[f32, 64]
  v18 = add v14, v17 : tile[f32, 64]
  v19 = splat v2 : tile[*mut f32, 64]
  v20 = ptr_add v19, v9 : tile[*mut f32, 64]
  store v20, v18, v11
  return
}"#;

#[test]
fn ragged_add_leaves_the_rest_alone() {
    for n in [0usize, 1, 63, 64, 65, 100, 640] {
        let m = Memory::new();
        let (x, y) = (f32s(&m, &ramp(n)), f32s(&m, &vec![0.5; n]));
        let z = f32s(&m, &vec![-1.0; n + 3]);
        let grid = [n.div_ceil(64) as u32, 1, 1];
        run(&m, ADD, &[ptr(x), ptr(y), ptr(z), int(n as i128)], grid).unwrap();
        let mut expected: Vec<f32> = ramp(n).iter().map(|x| x + 0.5).collect();
        expected.extend([-1.0; 3]);
        assert_eq!(read_f32(&m, z), expected);
    }
}

#[test]
fn out_of_bounds_names_program_element_and_length() {
    let m = Memory::new();
    let (x, z) = (f32s(&m, &ramp(100)), f32s(&m, &ramp(128)));
    let fault = run(&m, ADD, &[ptr(x), ptr(x), ptr(z), int(128)], [2, 1, 1]).unwrap_err();
    assert_eq!(fault.code, "E0708");
    assert_eq!(fault.program, Some([1, 0, 0]));
    assert!(fault.message.contains("element 100 of the buffer `x` of 100 `f32`, past the end"), "{fault}");
}

#[test]
fn fault_carries_the_source_location() {
    let m = Memory::new();
    let x = f32s(&m, &[1.0]);
    let text = r#"kernel @k(v0 "x": *f32) {
  v1 = const {value = -1 : i32} : i32
  v2 = ptr_add v0, v1 : *f32
  v3 = load v2 : f32 loc(2:30:40)
  return
}"#;
    let fault = run(&m, text, &[ptr(x)], [1, 1, 1]).unwrap_err();
    let loc = fault.loc.unwrap();
    assert_eq!((loc.file, loc.start, loc.end), (2, 30, 40));
    assert!(fault.message.contains("element -1 of the buffer `x` of 1 `f32`, before the start"), "{fault}");
}

/// out[i] = load(x + at[i], mask[i], other[i]).
const GATHER: &str = r#"
kernel @gather(v0 "x": *f32, v1 "at": *i64, v2 "mask": *bool, v3 "other": *f32, v4 "out": *mut f32) {
  v5 = arange {start = 0} : tile[i32, 8]
  v6 = splat v1 : tile[*i64, 8]
  v7 = ptr_add v6, v5 : tile[*i64, 8]
  v8 = load v7 : tile[i64, 8]
  v9 = splat v2 : tile[*bool, 8]
  v10 = ptr_add v9, v5 : tile[*bool, 8]
  v11 = load v10 : tile[bool, 8]
  v12 = splat v3 : tile[*f32, 8]
  v13 = ptr_add v12, v5 : tile[*f32, 8]
  v14 = load v13 : tile[f32, 8]
  v15 = splat v0 : tile[*f32, 8]
  v16 = ptr_add v15, v8 : tile[*f32, 8]
  v17 = load v16, v11, v14 : tile[f32, 8]
  v18 = splat v4 : tile[*mut f32, 8]
  v19 = ptr_add v18, v5 : tile[*mut f32, 8]
  store v19, v17
  return
}"#;

#[test]
fn scattered_pointers_and_masked_lanes() {
    let m = Memory::new();
    let x = f32s(&m, &ramp(10));
    // Masked-off lanes may point anywhere. Bytes that are not 0 are true.
    let at = alloc(&m, Buf::I64(vec![3, 4, 5, i64::MAX, 9, 0, i64::MIN, 1]));
    let mask = m.alloc(vec![1, 1, 2, 0, 255, 1, 0, 1]);
    let other = f32s(&m, &[-1.0; 8]);
    let out = f32s(&m, &[0.0; 8]);
    one(&m, GATHER, &[ptr(x), ptr(at), ptr(mask), ptr(other), ptr(out)]);
    assert_eq!(read_f32(&m, out), [3.0, 4.0, 5.0, -1.0, 9.0, 0.0, -1.0, 1.0]);
}

#[test]
fn extreme_offsets_fault() {
    for bad in [i64::MAX, i64::MIN, 10, -1, 1 << 61, 1 << 62, -(1 << 61)] {
        let m = Memory::new();
        let x = f32s(&m, &ramp(10));
        let at = alloc(&m, Buf::I64(vec![0, 1, 2, bad, 4, 5, 6, 7]));
        let mask = m.alloc(vec![1; 8]);
        let args = [ptr(x), ptr(at), ptr(mask), ptr(x), ptr(x)];
        let fault = run(&m, GATHER, &args, [1, 1, 1]).unwrap_err();
        assert!(fault.message.contains(&format!("element {bad} ")), "{bad}: {fault}");
    }
}

#[test]
fn uniform_pointer_loads_one_element_and_the_last_store_wins() {
    let m = Memory::new();
    let (x, out) = (f32s(&m, &[7.0]), f32s(&m, &[0.0; 5]));
    let text = r#"kernel @k(v0 "x": *f32, v1 "out": *mut f32) {
  v2 = splat v0 : tile[*f32, 4]
  v3 = arange {start = 0} : tile[i32, 4]
  v4 = const {value = 3 : i32} : tile[i32, 4]
  v5 = lt v3, v4 : tile[bool, 4]
  v6 = const {value = 2.0 : f32} : tile[f32, 4]
  v7 = load v2, v5, v6 : tile[f32, 4]
  v8 = splat v1 : tile[*mut f32, 4]
  v9 = ptr_add v8, v3 : tile[*mut f32, 4]
  store v9, v7
  v10 = const {value = 4 : i32} : i32
  v11 = ptr_add v1, v10 : *mut f32
  v12 = splat v11 : tile[*mut f32, 4]
  v13 = cast v3 : tile[f32, 4]
  store v12, v13, v5
  v14 = const {value = false} : tile[bool, 4]
  store v12, v6, v14
  return
}"#;
    let text = text.replace("{value = false}", "{value = false : bool}");
    one(&m, &text, &[ptr(x), ptr(out)]);
    assert_eq!(read_f32(&m, out), [7.0, 7.0, 7.0, 2.0, 2.0]);
}

#[test]
fn pointers_live_in_memory() {
    // table[i] points into one of two buffers: load the pointers, then through them; copy one pointer.
    let m = Memory::new();
    let (a, b) = (f32s(&m, &[1.0, 2.0]), f32s(&m, &[3.0, 4.0]));
    let (a0, b0) = (m.address(a).unwrap(), m.address(b).unwrap());
    let table = alloc(&m, Buf::U64(vec![b0 + 4, a0, a0 + 4, b0]));
    let out = f32s(&m, &[0.0; 4]);
    let copy = alloc(&m, Buf::U64(vec![0; 4]));
    let text = r#"kernel @k(v0 "table": **f32, v1 "out": *mut f32, v2 "copy": *mut *f32) {
  v3 = arange {start = 0} : tile[i32, 4]
  v4 = splat v0 : tile[**f32, 4]
  v5 = ptr_add v4, v3 : tile[**f32, 4]
  v6 = load v5 : tile[*f32, 4]
  v7 = load v6 : tile[f32, 4]
  v8 = splat v1 : tile[*mut f32, 4]
  v9 = ptr_add v8, v3 : tile[*mut f32, 4]
  store v9, v7
  v10 = const {value = -1 : i64} : tile[i64, 4]
  v11 = ptr_add v6, v10 : tile[*f32, 4]
  v12 = splat v2 : tile[*mut *f32, 4]
  v13 = ptr_add v12, v3 : tile[*mut *f32, 4]
  store v13, v11
  return
}"#;
    one(&m, text, &[ptr(table), ptr(out), ptr(copy)]);
    assert_eq!(read_f32(&m, out), [4.0, 1.0, 2.0, 3.0]);
    let expected = Buf::U64(vec![b0, a0 - 4, a0, b0 - 4]);
    assert!(read(&m, copy, DType::U64).same_bits(&expected));
}

#[test]
fn addresses_outside_of_every_buffer_fault() {
    let m = Memory::new();
    let a = f32s(&m, &[1.0, 2.0]);
    let end = m.address(a).unwrap() + 8;
    for (address, text) in
        [(0, "null"), (1234, "0x4d2"), (end, "element 2 of a buffer of 2"), (end + 4096, "in no buffer")]
    {
        let table = alloc(&m, Buf::U64(vec![address]));
        let kernel = r#"kernel @k(v0 "table": **f32) {
  v1 = load v0 : *f32
  v2 = load v1 : f32
  return
}"#;
        let fault = run(&m, kernel, &[ptr(table)], [1, 1, 1]).unwrap_err();
        assert!(fault.message.contains(text), "{address}: {fault}");
        m.free(table);
    }
}

#[test]
fn null_and_freed_buffers() {
    let m = Memory::new();
    let x = f32s(&m, &[1.0]);
    let kernel =
        "kernel @k(v0 \"x\": *mut f32) {\n v1 = const {value = 0.0 : f32} : f32\n store v0, v1\n return\n}";
    let fault = run(&m, kernel, &[Arg::Null], [1, 1, 1]).unwrap_err();
    assert!(fault.message.contains("null pointer"), "{fault}");
    m.free(x);
    let fault = run(&m, kernel, &[ptr(x)], [1, 1, 1]).unwrap_err();
    assert_eq!((fault.code, m.len(x), m.read(x)), ("E0701", 0, None));
}

#[test]
fn select_and_cast_of_pointers() {
    // Bytes of x as i32, of y where the condition is false.
    let m = Memory::new();
    let x = i32s(&m, &[0x01020304, 0x05060708]);
    let y = m.alloc((0..9).collect());
    let out = m.alloc(vec![0; 8]);
    let wide = i32s(&m, &[0]);
    let text = r#"kernel @k(v0 "x": *i32, v1 "y": *i8, v2 "out": *mut i8, v3 "wide": *mut i32) {
  v4 = cast v0 : *i8
  v5 = arange {start = 0} : tile[i32, 8]
  v6 = splat v4 : tile[*i8, 8]
  v7 = ptr_add v6, v5 : tile[*i8, 8]
  v8 = splat v1 : tile[*i8, 8]
  v9 = ptr_add v8, v5 : tile[*i8, 8]
  v10 = const {value = 5 : i32} : tile[i32, 8]
  v11 = lt v5, v10 : tile[bool, 8]
  v12 = select v11, v7, v9 : tile[*i8, 8]
  v13 = load v12 : tile[i8, 8]
  v14 = splat v2 : tile[*mut i8, 8]
  v15 = ptr_add v14, v5 : tile[*mut i8, 8]
  store v15, v13
  v16 = const {value = 1 : i32} : i32
  v17 = ptr_add v1, v16 : *i8
  v18 = cast v17 : *i32
  v19 = ptr_add v18, v16 : *i32
  v20 = load v19 : i32
  store v3, v20
  return
}"#;
    one(&m, text, &[ptr(x), ptr(y), ptr(out), ptr(wide)]);
    assert_eq!(m.read(out).unwrap(), [4, 3, 2, 1, 8, 5, 6, 7]);
    assert_eq!(read_i32(&m, wide), [0x08070605]);
}

#[test]
fn two_dimensional_rows_and_columns() {
    // out = transpose(x) through offsets i * 5 + j, with a ragged mask.
    let m = Memory::new();
    let (x, out) = (f32s(&m, &ramp(15)), f32s(&m, &[-1.0; 15]));
    let text = r#"kernel @k(v0 "x": *f32, v1 "out": *mut f32) {
  v2 = arange {start = 0} : tile[i32, 4]
  v3 = arange {start = 0} : tile[i32, 8]
  v4 = reshape v2 : tile[i32, 4, 1]
  v5 = broadcast v4 : tile[i32, 4, 8]
  v6 = reshape v3 : tile[i32, 1, 8]
  v7 = broadcast v6 : tile[i32, 4, 8]
  v8 = const {value = 5 : i32} : tile[i32, 4, 8]
  v9 = const {value = 3 : i32} : tile[i32, 4, 8]
  v10 = lt v5, v9 : tile[bool, 4, 8]
  v11 = lt v7, v8 : tile[bool, 4, 8]
  v12 = and v10, v11 : tile[bool, 4, 8]
  v13 = mul v5, v8 : tile[i32, 4, 8]
  v14 = splat v0 : tile[*f32, 4, 8]
  v15 = ptr_add v14, v13 : tile[*f32, 4, 8]
  v16 = ptr_add v15, v7 : tile[*f32, 4, 8]
  v17 = load v16, v12 : tile[f32, 4, 8]
  v18 = mul v7, v9 : tile[i32, 4, 8]
  v19 = splat v1 : tile[*mut f32, 4, 8]
  v20 = ptr_add v19, v18 : tile[*mut f32, 4, 8]
  v21 = ptr_add v20, v5 : tile[*mut f32, 4, 8]
  store v21, v17, v12
  return
}"#;
    one(&m, text, &[ptr(x), ptr(out)]);
    let expected: Vec<f32> = (0..15).map(|i| ((i % 3) * 5 + i / 3) as f32).collect();
    assert_eq!(read_f32(&m, out), expected);
}

#[test]
fn wrapping_i32_offsets_do_not_become_a_run() {
    let m = Memory::new();
    let x = f32s(&m, &ramp(4));
    let text = r#"kernel @k(v0 "x": *f32) {
  v1 = arange {start = 0} : tile[i32, 64]
  v2 = const {value = 2147483640 : i32} : tile[i32, 64]
  v3 = add v1, v2 : tile[i32, 64]
  v4 = splat v0 : tile[*f32, 64]
  v5 = ptr_add v4, v3 : tile[*f32, 64]
  v6 = arange {start = 0} : tile[i32, 64]
  v7 = const {value = 8 : i32} : tile[i32, 64]
  v8 = ge v6, v7 : tile[bool, 64]
  v9 = load v5, v8 : tile[f32, 64]
  return
}"#;
    let fault = run(&m, text, &[ptr(x)], [1, 1, 1]).unwrap_err();
    assert!(fault.message.contains("element -2147483648 "), "{fault}");
}

#[test]
fn consecutive_pointers_moved_and_masked() {
    // Pointers x + arange, moved by a number, by a tile, by arange; with a mask that has gaps.
    let moves = [
        ("", "v5", [0, 1, 2, 3]),
        (
            "v6 = const {value = 3 : i64} : tile[i64, 4]\n  v7 = ptr_add v5, v6 : tile[*i32, 4]",
            "v7",
            [3, 4, 5, 6],
        ),
        ("v6 = mul v3, v3 : tile[i32, 4]\n  v7 = ptr_add v5, v6 : tile[*i32, 4]", "v7", [0, 2, 6, 12]),
        ("v7 = ptr_add v5, v3 : tile[*i32, 4]", "v7", [0, 2, 4, 6]),
        ("v7 = flip v5 {axis = 0} : tile[*i32, 4]", "v7", [3, 2, 1, 0]),
    ];
    for (text, name, expected) in moves {
        let m = Memory::new();
        let x = i32s(&m, &(0..13).collect::<Vec<_>>());
        let out = i32s(&m, &[-1; 4]);
        let text = format!(
            r#"kernel @k(v0 "x": *i32, v1 "out": *mut i32, v2 "zero": i32) {{
  v3 = arange {{start = 0}} : tile[i32, 4]
  v4 = splat v0 : tile[*i32, 4]
  v5 = ptr_add v4, v3 : tile[*i32, 4]
  {text}
  v10 = const {{value = 2 : i32}} : tile[i32, 4]
  v11 = ne v3, v10 : tile[bool, 4]
  v12 = load {name}, v11, v10 : tile[i32, 4]
  v13 = splat v1 : tile[*mut i32, 4]
  v14 = ptr_add v13, v3 : tile[*mut i32, 4]
  v15 = const {{value = 0 : i32}} : tile[i32, 4]
  v16 = gt v3, v15 : tile[bool, 4]
  store v14, v12, v16
  return
}}"#
        );
        one(&m, &text, &[ptr(x), ptr(out), int(0)]);
        assert_eq!(read_i32(&m, out), [-1, expected[1], 2, expected[3]], "{name}");
    }
}

#[test]
fn every_element_type_goes_through_memory() {
    for dtype in DType::ALL {
        let m = Memory::new();
        let size = dtype.bytes();
        let bytes: Vec<u8> = (0..size * 7).map(|i| (i * 37 % 8) as u8).collect();
        let (x, y) = (m.alloc(bytes.clone()), m.alloc(vec![0xee; size * 7]));
        let text = format!(
            r#"kernel @k(v0 "x": *{dtype}, v1 "y": *mut {dtype}) {{
  v2 = arange {{start = 0}} : tile[i32, 8]
  v3 = const {{value = 7 : i32}} : tile[i32, 8]
  v4 = lt v2, v3 : tile[bool, 8]
  v5 = splat v0 : tile[*{dtype}, 8]
  v6 = ptr_add v5, v2 : tile[*{dtype}, 8]
  v7 = load v6, v4 : tile[{dtype}, 8]
  v8 = splat v1 : tile[*mut {dtype}, 8]
  v9 = ptr_add v8, v2 : tile[*mut {dtype}, 8]
  store v9, v7, v4
  return
}}"#
        );
        one(&m, &text, &[ptr(x), ptr(y)]);
        let expected =
            if dtype == DType::Bool { bytes.iter().map(|b| u8::from(*b != 0)).collect() } else { bytes };
        assert_eq!(m.read(y).unwrap(), expected, "{dtype}");
    }
}
