//! The file format of a name: `data.npy`, or `model.safetensors#key` for one tensor of several.

use std::path::Path;

use tk_ops::DTypeSet;

use crate::npy::{self, Array};
use crate::safetensors;

/// The separator between the file and the name of a tensor.
const MARK: &str = ".safetensors#";

/// Returns true if a text can only be meant as a file with arrays.
pub fn is_file_name(text: &str) -> bool {
    text.ends_with(".npy") || tensor(text).is_some()
}

/// Reads the array that a text names, in a folder. `wanted` are the element types that fit where it is used. The
/// error is one sentence that names the file.
pub fn read(folder: &Path, text: &str, wanted: DTypeSet) -> Result<Array, String> {
    match tensor(text) {
        Some((file, key)) => safetensors::read(&folder.join(file), key),
        None => npy::read(&folder.join(text), wanted),
    }
}

/// The file and the name of the tensor, of a text that names a safetensors file.
fn tensor(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(at) = text.find(MARK) {
        let (file, key) = text.split_at_checked(at + MARK.len())?;
        return Some((file.strip_suffix('#')?, Some(key)));
    }
    text.ends_with(".safetensors").then_some((text, None))
}
