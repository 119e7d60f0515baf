//! The `.npy` format: what is written reads back bit by bit, in every element type, and no bytes make reading panic.

use tk_ops::{DType, DTypeSet};
use tk_runtime::npy::{Array, parse, to_bytes};

fn array(dtype: DType, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let bytes = (0..count * dtype.bytes())
        .map(|i| if dtype == DType::Bool { i as u8 & 1 } else { i as u8 })
        .collect();
    Array { dtype, shape: shape.to_vec(), bytes }
}

#[test]
fn every_element_type_and_rank_reads_back() {
    for dtype in DType::ALL {
        for shape in [&[][..], &[0], &[3], &[2, 3], &[2, 0, 5], &[1, 2, 3, 1, 2]] {
            let array = array(dtype, shape);
            let bytes = to_bytes(&array);
            assert_eq!((bytes.len() - array.bytes.len()) % 64, 0);
            let read = parse(&bytes, DTypeSet::of(&[dtype]));
            let raw = matches!(dtype, DType::E2M1 | DType::E8M0);
            if raw {
                assert!(read.is_err(), "{dtype}: packed types have no arrays");
            } else {
                assert_eq!(read, Ok(array), "{dtype} {shape:?}");
            }
        }
    }
}

#[test]
fn raw_elements_become_what_is_wanted() {
    let half = to_bytes(&array(DType::BF16, &[4]));
    assert_eq!(parse(&half, DTypeSet::FLOAT).map(|a| a.dtype), Ok(DType::BF16));
    assert!(parse(&half, DTypeSet::of(&[DType::F16])).is_err_and(|e| e.contains("where f16 is expected")));
    let byte = to_bytes(&array(DType::F8E5M2, &[4]));
    assert_eq!(parse(&byte, DTypeSet::of(&[DType::F8E5M2])).map(|a| a.dtype), Ok(DType::F8E5M2));
    assert!(parse(&byte, DTypeSet::ANY).is_err_and(|e| e.contains("--set")));
}

#[test]
fn every_prefix_and_every_changed_byte_is_an_answer() {
    let file = to_bytes(&array(DType::F32, &[2, 3]));
    for end in 0..file.len() {
        assert!(parse(&file[..end], DTypeSet::ANY).is_err(), "{end} bytes");
    }
    for at in 0..128 {
        for byte in [0, b'(', b')', b'9', b'\'', b'{', 0xff] {
            let mut changed = file.clone();
            changed[at] = byte;
            let _ = parse(&changed, DTypeSet::ANY);
        }
    }
}
