//! One memory-mapped `.safetensors` file: its header and the bytes of its tensors.
//!
//! May assume nothing about the bytes. The crate `safetensors` verifies that the tensors lie one after the other
//! without gap or overlap, each as long as its shape says. Guarantees that whatever is wrong is one sentence with the
//! file's name, found when the file is opened. A file that another program shortens afterwards is not defended against.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use safetensors::Dtype as Stored;
use safetensors::tensor::Metadata;

use crate::failure::{Failure, Result};

/// Bytes of the number before the header, which is its length.
const LENGTH: usize = 8;

/// The longest header that the crate `safetensors` itself reads.
const LONGEST_HEADER: u64 = 100_000_000;

/// An open file.
pub struct Weights {
    path: PathBuf,
    map: Mmap,
    /// Where the header ends and the first tensor begins.
    begin: usize,
    metadata: Metadata,
}

/// A tensor as the file has it. The bytes are little-endian and need not be aligned.
pub struct Entry<'f> {
    /// The element type, of all that the format knows.
    pub dtype: Stored,
    /// The extents, outermost first.
    pub shape: &'f [usize],
    /// The elements.
    pub bytes: &'f [u8],
}

impl Weights {
    /// Maps a file and reads its header.
    pub fn open(path: &Path) -> Result<Weights> {
        let open = |error| Failure::file("read", path, &error);
        let wrong = |what: String| Failure::mistake(format!("{} {what}", path.display()));
        // Opening a pipe may never end.
        if !std::fs::metadata(path).map_err(open)?.is_file() {
            return Err(wrong("is not a file".into()));
        }
        let file = File::open(path).map_err(open)?;
        let about = file.metadata().map_err(open)?;
        if about.len() == 0 {
            return Err(wrong("is empty".into()));
        }
        // SAFETY: The bytes are only ever read as numbers, for which every pattern is valid. If another program writes
        // to the file meanwhile, the numbers are others.
        let map = unsafe { Mmap::map(&file) }.map_err(open)?;
        let (begin, metadata) = header(&map).map_err(wrong)?;
        Ok(Weights { path: path.to_path_buf(), map, begin, metadata })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all tensors, in the order in which they lie.
    pub fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// A tensor, if the file has it.
    pub fn entry(&self, name: &str) -> Option<Entry<'_>> {
        let info = self.metadata.info(name)?;
        let (start, end) = info.data_offsets;
        let bytes = self.map.get(self.begin.checked_add(start)?..self.begin.checked_add(end)?)?;
        Some(Entry { dtype: info.dtype, shape: &info.shape, bytes })
    }
}

/// Reads the header and compares the length of the file with what it announces.
fn header(file: &[u8]) -> std::result::Result<(usize, Metadata), String> {
    let Some((length, rest)) = file.split_first_chunk::<LENGTH>() else {
        return Err("is truncated: its header is not complete".into());
    };
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER {
        return Err(format!("is not a .safetensors file: its header would have {length} bytes"));
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some((text, data)) = rest.split_at_checked(length) else {
        return Err(format!("is truncated: its header has {length} bytes, {} are there", rest.len()));
    };
    let metadata: Metadata = serde_json::from_slice(text).map_err(|error| {
        let what = error.to_string();
        // The crate's own sentences come with a place at the end of the header, which says nothing.
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("has a header that is not that of a .safetensors file: {what}")
    })?;
    let (announced, there) = (metadata.data_len(), data.len());
    if there < announced {
        return Err(format!(
            "is truncated: its header announces {announced} bytes of data, {there} are there"
        ));
    }
    if there > announced {
        return Err(format!("has {} bytes after its last tensor", there - announced));
    }
    Ok((LENGTH + length, metadata))
}
