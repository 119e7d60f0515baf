//! Bundles that somebody made up: whatever the bytes are, reading ends with a bundle or an error, and takes no more memory
//! than ten times the file. TK_FUZZ is the number of bundles, 20,000 without it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tk_bundle::{
    Bundle, Choice, Expr, FORMAT, Given, Guard, Kernel, Kind, Machine, Manifest, Operation, Param, ParamKind,
    Requirement, Scratch, Value, Variant, Versions, Writer,
};

/// The system's allocator, counting what a thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

fn add(bytes: usize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

fn remove(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: everything is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both exist for a moment.
        add(size);
        remove(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn apply(op: Kind, args: Vec<Expr>) -> Expr {
    Expr::Apply(Operation { op, bits: 32, args })
}

fn sound() -> Vec<u8> {
    let mut writer = Writer::default();
    let blobs = [writer.add(vec![0x7f; 3000]), writer.add(b"kernel @k() {\n  return\n}\n".to_vec())];
    let [binary, tile] = blobs;
    let size = Expr::Extent(0, 1);
    let variant = |block: i64| Variant {
        target: "sm_90a".into(),
        values: vec![Value { name: "BLOCK".into(), value: block.to_string() }],
        dtypes: vec![Some("f16".into()), None],
        entries: vec![],
        given: vec![Given { value: 0, default: true }],
        guard: vec![Guard {
            condition: apply(Kind::Eq, vec![apply(Kind::NextPow2, vec![size.clone()]), Expr::Int(block)]),
            decides: Some("BLOCK".into()),
        }],
        require: vec![Requirement {
            condition: apply(Kind::Lt, vec![Expr::Float(0.5), Expr::Float(1.0)]),
            text: "p < 1".into(),
        }],
        grid: [Expr::Extent(0, 0), Expr::Int(1), Expr::Int(1)],
        symbol: "k".into(),
        threads: 128,
        blocks_per_program: 1,
        shared_bytes: 0,
        cooperative: false,
        passed: vec![
            Machine::Address(0),
            Machine::Extent(0, 0, 32),
            Machine::Stride(0, 1),
            Machine::Scratch(0),
        ],
        scratch: vec![Scratch { count: size.clone(), element_bytes: 4, zeroed: true, restored: false }],
        maps: vec![],
        control: 0,
        messages: vec![],
        registers: 32,
        static_shared_bytes: 0,
        stack_bytes: 0,
        blocks_per_sm: 4,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        remarks: vec![],
        binary: binary.clone(),
        tile: tile.clone(),
        listing: None,
    };
    let param = |name: &str, optional| Param {
        name: name.into(),
        kind: ParamKind::View { rank: 2, mutable: false, wide: false },
        optional,
        default: None,
        table: None,
    };
    let kernel = Kernel {
        name: "k".into(),
        doc: "A kernel.".into(),
        params: vec![param("x", false), param("bias", true)],
        choices: vec![Choice { name: "MODE".into(), values: vec!["1".into(), "2".into()] }],
        variants: vec![variant(64), variant(128)],
    };
    let versions = Versions { tk: "0.1.0".into(), llvm: "19.1.7".into(), ptxas: "12.9".into() };
    writer.finish(&Manifest { format: FORMAT, versions, kernels: vec![kernel] })
}

/// xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators".
fn next(state: &mut u64) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize
}

/// Where the table begins.
const TABLE: usize = 72;

/// The place of the manifest in a bundle.
fn manifest(bytes: &[u8]) -> std::ops::Range<usize> {
    let at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap()) as usize;
    at(TABLE)..at(TABLE) + at(TABLE + 8)
}

/// Writes the right length and checksums, so that what was changed in the manifest is read.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let range = manifest(&bytes);
    let Some(text) = bytes.get(range) else { return bytes };
    let sum = *blake3::hash(text).as_bytes();
    bytes[TABLE + 16..TABLE + 48].copy_from_slice(&sum);
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[32..40].copy_from_slice(&length);
    let sections = u32::from_le_bytes(bytes[28..32].try_into().unwrap()) as usize;
    if let Some(table) = bytes.get(TABLE..TABLE + 48 * sections.min(1000)) {
        let sum = *blake3::Hasher::new().update(&bytes[..40]).update(table).finalize().as_bytes();
        bytes[40..72].copy_from_slice(&sum);
    }
    bytes
}

fn mutated(base: &[u8], state: &mut u64) -> Vec<u8> {
    const INSIDE: [&str; 12] = [
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"",
        "null",
        "-1",
        "99999999999999999999",
        "[[[[[[[[",
        "\"\",\"\",\"\"",
        "1e308",
    ];
    let (mut bytes, text) = (base.to_vec(), manifest(base));
    for _ in 0..=next(state) % 4 {
        match next(state) % 6 {
            0 => bytes.truncate(next(state) % (bytes.len() + 1)),
            1 => {
                let at = next(state) % bytes.len().max(1);
                bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << (next(state) % 8));
            }
            2 => {
                let at = next(state) % 200;
                bytes.iter_mut().skip(at).take(1).for_each(|b| *b = next(state) as u8);
            }
            _inside if bytes.len() >= text.end => {
                let piece = INSIDE[next(state) % INSIDE.len()].as_bytes();
                let at = text.start + next(state) % (text.len() - piece.len());
                bytes[at..at + piece.len()].copy_from_slice(piece);
            }
            _short => {}
        }
    }
    if bytes.len() >= text.end && !next(state).is_multiple_of(4) { sealed(bytes) } else { bytes }
}

fn read(bytes: Vec<u8>) -> bool {
    let size = bytes.len();
    let before = HELD.get();
    MOST.set(before);
    let bundle = Bundle::from_vec(bytes);
    if let Ok(bundle) = &bundle {
        for v in bundle.manifest().kernels.iter().flat_map(|k| &k.variants) {
            let _ = (bundle.blob(&v.binary), bundle.blob(&v.tile));
        }
    }
    // An error is a sentence, which may be longer than an empty file.
    let used = MOST.get() - before;
    assert!(used <= size * 10 + 1000, "{used} bytes were held for a file of {size}");
    bundle.is_ok()
}

#[test]
fn hostile_bundles_are_refused_within_their_memory() {
    let count = std::env::var("TK_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let (base, mut state, mut sound_ones) = (sound(), 7u64, 0);
    assert!(read(base.clone()));
    for _ in 0..count {
        sound_ones += usize::from(read(mutated(&base, &mut state)));
    }
    // Changes inside of texts and padding leave a bundle whole.
    assert!(sound_ones < count / 2, "{sound_ones} of {count}");
}

#[test]
fn a_manifest_that_would_take_more_memory_is_refused_before_it_is_read() {
    let base = sound();
    let text = manifest(&base);
    for piece in ["\"\",", "[],", "{},", "1,", "null,"] {
        let mut bytes = base[..text.start].to_vec();
        bytes.extend(b"{\"format\":2,\"versions\":{\"tk\":\"\",\"llvm\":\"\",\"ptxas\":\"\"},\"kernels\":[{\"name\":\"\",\"doc\":\"\",\"params\":[],\"choices\":[{\"name\":\"\",\"values\":[");
        bytes.extend(piece.repeat(200_000).bytes());
        let length = (bytes.len() - text.start) as u64;
        bytes[TABLE + 8..TABLE + 16].copy_from_slice(&length.to_le_bytes());
        assert!(!read(sealed(bytes)), "{piece}");
    }
}

#[test]
fn another_format_says_which_tk_reads_it() {
    let mut bytes = sound();
    bytes[8] = 9;
    let e = Bundle::from_vec(bytes).unwrap_err().to_string();
    assert!(
        e.contains("format 9")
            && e.contains(&format!("this tk reads format {}", tk_bundle::FORMAT))
            && e.contains("tk 0.1.0 wrote it and reads it"),
        "{e}"
    );
    let e = Bundle::from_vec(b"\x7fELF".to_vec()).unwrap_err().to_string();
    assert_eq!(e, "this is not a bundle of kernels");
}

#[test]
fn a_file_that_is_cut_off_longer_or_changed_anywhere_is_noticed() {
    let base = sound();
    let refused = |bytes: Vec<u8>| Bundle::from_vec(bytes).and_then(|b| b.verify()).is_err();
    assert!(!refused(base.clone()));
    assert!((0..base.len()).all(|n| refused(base[..n].to_vec())));
    assert!(refused([base.as_slice(), &[0]].concat()));
    for i in 0..base.len() {
        let mut bytes = base.clone();
        bytes[i] ^= 1;
        assert!(refused(bytes), "byte {i}");
    }
}

#[test]
fn a_bundle_of_many_expressions_and_little_else_is_read() {
    let bundle = Bundle::from_vec(sound()).unwrap();
    let mut manifest = bundle.manifest().clone();
    let variant = &mut manifest.kernels[0].variants[0];
    let one = variant.require[0].clone();
    variant.require.extend(std::iter::repeat_n(one, 500));
    let text = serde_json::to_vec(&manifest).unwrap();
    assert!(read(Writer::default().finish_text(FORMAT, "0.1.0", text)));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let bundle = Bundle::from_vec(sound()).unwrap();
    let changes: [fn(&mut Variant); 12] = [
        |v| v.grid[0] = Expr::Extent(99, 0),
        |v| v.grid[0] = Expr::Extent(0, 2),
        |v| v.grid[0] = Expr::Number(0),
        |v| v.grid[0] = apply(Kind::Add, vec![]),
        |v| v.grid[0] = Expr::Apply(Operation { op: Kind::Neg, bits: 7, args: vec![Expr::Int(1)] }),
        |v| v.dtypes.clear(),
        |v| v.given[0].value = 2,
        |v| v.threads = 0,
        |v| v.blocks_per_program = 0,
        |v| v.symbol = "a\0b".into(),
        |v| v.passed.push(Machine::Extent(0, 0, 16)),
        |v| v.passed.push(Machine::Scratch(1)),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut manifest = bundle.manifest().clone();
        change(&mut manifest.kernels[0].variants[1]);
        assert!(Bundle::from_vec(Writer::default().finish(&manifest)).is_err(), "change {i}");
    }
    let mut manifest = bundle.manifest().clone();
    manifest.kernels.push(manifest.kernels[0].clone());
    assert!(Bundle::from_vec(Writer::default().finish(&manifest)).is_err());
}

#[test]
fn what_is_written_is_read() {
    let bundle = Bundle::from_vec(sound()).unwrap();
    let variant = &bundle.manifest().kernels[0].variants[1];
    assert_eq!(bundle.blob(&variant.binary).unwrap(), vec![0x7f; 3000]);
    assert_eq!(variant.guard[0].condition.text(&["x"]), "next_pow2(x.shape[1]) == 128");
    let text = serde_json::to_string(bundle.manifest()).unwrap();
    assert_eq!(&serde_json::from_str::<Manifest>(&text).unwrap(), bundle.manifest());
}
