//! The `.safetensors` file format, for reading: one tensor of a file as an [`Array`].
//!
//! Accepts any bytes. The crate `safetensors` reads the header and verifies that the tensors follow each other
//! without gap or overlap, each as long as its shape says. Guarantees that only the header and the bytes of the one
//! tensor are read, since these files are often larger than memory, and that whatever is wrong is one sentence.

use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tk_ops::DType;

use crate::files::Input;
use crate::npy::Array;
use crate::room;

/// Bytes of the number before the header, which is its length.
const LENGTH: usize = 8;

/// The longest header that the crate itself reads.
const LONGEST_HEADER: usize = 100_000_000;

/// Names that a message lists; the rest is counted.
const SHOWN: usize = 8;

/// Reads a tensor. Without a name, the file must have only one. The error is one sentence that names the file.
pub fn read(path: &Path, key: Option<&str>) -> Result<Array, String> {
    from_file(Input::open(path)?, path, key).map_err(|what| format!("{} {what}", path.display()))
}

fn from_file(mut file: Input, path: &Path, key: Option<&str>) -> Result<Array, String> {
    let length = file.length;
    let metadata = header(&mut file, length)?;
    let begin = file.at;
    let there = length.saturating_sub(begin);
    let announced = metadata.data_len();
    if there < announced {
        return Err(format!("is truncated: its header declares {announced} bytes of data, found {there}"));
    }
    if there > announced {
        return Err(format!("has {} bytes after its last tensor", there - announced));
    }
    let (key, info) = choose(path, &metadata, key)?;
    let dtype = element_type(info.dtype)
        .ok_or_else(|| format!("holds {} in `{key}`, which the language does not have", info.dtype))?;
    let (start, end) = info.data_offsets;
    let size = end.saturating_sub(start);
    room::check(Some(size))?;
    file.seek(begin + start)?;
    let bytes = file.take(size)?;
    if bytes.len() != size {
        return Err(format!("ended while `{key}` was read"));
    }
    Ok(Array { dtype, shape: info.shape.clone(), bytes })
}

/// Reads the header, which the rest of the file follows.
fn header(file: &mut Input, length: usize) -> Result<Metadata, String> {
    let cut = "is truncated: its header is not complete";
    if length == 0 {
        return Err("is empty".into());
    }
    let digits: [u8; LENGTH] = file.take(LENGTH)?.try_into().map_err(|_| cut)?;
    let size = usize::try_from(u64::from_le_bytes(digits)).unwrap_or(usize::MAX);
    if size > LONGEST_HEADER {
        return Err(format!("is not a .safetensors file: its header would have {size} bytes"));
    }
    let text = file.take(size)?;
    if text.len() != size {
        return Err(cut.into());
    }
    serde_json::from_slice(&text).map_err(|e| {
        let what = e.to_string();
        // The crate's own sentences come with a place at the end of the header, which says nothing.
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("has a header that is not that of a .safetensors file: {what}")
    })
}

/// The tensor that is meant, with its name.
fn choose<'m>(
    path: &Path,
    metadata: &'m Metadata,
    key: Option<&str>,
) -> Result<(String, &'m TensorInfo), String> {
    let mut names = metadata.offset_keys();
    let found = match key {
        Some(key) => names.iter().find(|n| *n == key).cloned(),
        None if names.len() == 1 => names.pop(),
        None => None,
    };
    if let Some(info) = found.as_deref().and_then(|k| metadata.info(k)) {
        return Ok((found.unwrap_or_default(), info));
    }
    names.sort();
    let list = listed(&names);
    Err(match key {
        _ if names.is_empty() => "holds no tensors".to_string(),
        Some(key) => match tk_sema::closest(key, names.iter().map(String::as_str)) {
            Some(near) => format!("has no tensor `{key}`; did you mean `{near}`? It holds {list}"),
            None => format!("has no tensor `{key}`; it holds {list}"),
        },
        None => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format!("holds {} tensors; choose one, as in {name}#NAME: {list}", names.len())
        }
    })
}

/// `a`, `b`, .. and 12 more
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The element type, if the language has it. Without `FNUZ` the fp8 types are those of OCP, in which E4M3 has no infinity.
fn element_type(dtype: Dtype) -> Option<DType> {
    match dtype {
        Dtype::BOOL => Some(DType::Bool),
        Dtype::I8 => Some(DType::I8),
        Dtype::I16 => Some(DType::I16),
        Dtype::I32 => Some(DType::I32),
        Dtype::I64 => Some(DType::I64),
        Dtype::U8 => Some(DType::U8),
        Dtype::U16 => Some(DType::U16),
        Dtype::U32 => Some(DType::U32),
        Dtype::U64 => Some(DType::U64),
        Dtype::F8_E4M3 => Some(DType::F8E4M3),
        Dtype::F8_E5M2 => Some(DType::F8E5M2),
        Dtype::F8_E4M3FNUZ => Some(DType::F8E4M3FNUZ),
        Dtype::F8_E5M2FNUZ => Some(DType::F8E5M2FNUZ),
        Dtype::F16 => Some(DType::F16),
        Dtype::BF16 => Some(DType::BF16),
        Dtype::F32 => Some(DType::F32),
        Dtype::F64 => Some(DType::F64),
        // Packed types have no arrays; complex numbers and fp6 are no types here.
        _ => None,
    }
}
