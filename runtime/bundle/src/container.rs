//! The file: sections with checksums, written by [`Writer`], read by [`Bundle`].
//!
//! Guarantees that reading is total: a file that is cut off, damaged or made up is an [`Error`]. What is read is
//! compared with its checksum each time, in a copy, since a mapped file may change.

use std::collections::BTreeSet;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, ErrorKind};
use crate::manifest::{Blob, Manifest};

/// The first bytes of a bundle.
pub const MAGIC: &[u8; 8] = b"TKBUNDLE";
/// The number of the format. A change that older readers would misread makes it larger.
pub const FORMAT: u32 = 4;

/// Bytes of the version of `tk` in the header, padded with zeros.
const VERSION: usize = 16;
/// Magic, format, version, sections, length of the file, checksum of these and of the table.
const HEADER: usize = MAGIC.len() + 4 + VERSION + 4 + 8 + 32;
/// The place of the checksum of the header.
const SUM: usize = HEADER - 32;
/// Offset, length, checksum.
const ENTRY: usize = 8 + 8 + 32;
/// The most bytes of memory that a part of the manifest takes for each bracket, brace or comma of its text: a list grows by
/// doubling, and the largest part that needs only one of them is a string or an expression of 40 bytes.
const PART: usize = 96;
/// Memory that reading may use, in sizes of the file.
const TIMES: usize = 10;

/// Puts a bundle together.
#[derive(Debug, Default)]
pub struct Writer {
    sections: Vec<Vec<u8>>,
}

impl Writer {
    /// Adds bytes, once for equal ones; the result says where they are.
    pub fn add(&mut self, bytes: Vec<u8>) -> Blob {
        let blob = Blob::of(&bytes);
        let at = self.sections.iter().position(|s| *s == bytes).unwrap_or_else(|| {
            self.sections.push(bytes);
            self.sections.len() - 1
        });
        // Section 0 is the manifest.
        Blob { section: u32::try_from(at + 1).ok(), ..blob }
    }

    /// The file. Blobs of the manifest without a section are stored elsewhere.
    pub fn finish(self, manifest: &Manifest) -> Vec<u8> {
        // Text, numbers and lists can always be written.
        let text = serde_json::to_vec(manifest).unwrap_or_default();
        self.finish_text(manifest.format, &manifest.versions.tk, text)
    }

    /// The file with a manifest that is already text, which nothing looks at: for tests of readers.
    pub fn finish_text(self, format: u32, tk: &str, text: Vec<u8>) -> Vec<u8> {
        let sections: Vec<Vec<u8>> = std::iter::once(text).chain(self.sections).collect();
        // A reader refuses what could take more memory than its share; zeros at the end make the file large enough.
        let least = sections.first().map_or(0, |text| memory(text)).div_ceil(TIMES);
        let (mut table, mut body) = (vec![], vec![]);
        let start = HEADER + ENTRY * sections.len();
        for s in &sections {
            // Machine code is read in words.
            body.resize((start + body.len()).next_multiple_of(ALIGN) - start, 0);
            table.extend(((start + body.len()) as u64).to_le_bytes());
            table.extend((s.len() as u64).to_le_bytes());
            table.extend(blake3::hash(s).as_bytes());
            body.extend(s);
        }
        body.resize(body.len().max(least.saturating_sub(start)), 0);
        let mut out = MAGIC.to_vec();
        out.extend(format.to_le_bytes());
        let mut version = [0; VERSION];
        version.iter_mut().zip(tk.bytes()).for_each(|(to, from)| *to = from);
        out.extend(version);
        out.extend((sections.len() as u32).to_le_bytes());
        out.extend(((start + body.len()) as u64).to_le_bytes());
        let sum = blake3::Hasher::new().update(&out).update(&table).finalize();
        out.extend(sum.as_bytes());
        out.extend(table);
        out.extend(body);
        out
    }
}

/// The most memory that reading the text of a manifest takes.
fn memory(text: &[u8]) -> usize {
    let parts = text.iter().filter(|b| matches!(b, b',' | b'{' | b'[')).count();
    parts.saturating_mul(PART).saturating_add(text.len())
}

/// Sections begin at multiples of this many bytes.
const ALIGN: usize = 16;

/// A bundle in memory or in a mapped file.
#[derive(Debug)]
pub struct Bundle {
    bytes: Bytes,
    manifest: Manifest,
}

#[derive(Debug)]
enum Bytes {
    Owned(Vec<u8>),
    Static(&'static [u8]),
    Mapped(Mmap),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Static(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }
}

impl Bundle {
    /// Maps a file.
    pub fn open(path: &Path) -> Result<Bundle, Error> {
        let cannot = |e: std::io::Error| {
            Error::new(ErrorKind::Bundle, format!("cannot read {}: {e}", path.display()), "")
        };
        let file = crate::regular::open(path).map_err(cannot)?;
        // SAFETY: the bytes are only read, and what is used of them is copied before it is checked; a file that is cut
        // short meanwhile ends the process, as it would with any mapped file.
        let bytes = unsafe { Mmap::map(&file) }.map_err(cannot)?;
        let named = |e: Error| Error { what: format!("{}: {}", path.display(), e.what), ..e };
        Bundle::read(Bytes::Mapped(bytes)).map_err(named)
    }

    /// Of bytes in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Result<Bundle, Error> {
        Bundle::read(Bytes::Owned(bytes))
    }

    /// Of bytes that are part of the program.
    pub fn from_static(bytes: &'static [u8]) -> Result<Bundle, Error> {
        Bundle::read(Bytes::Static(bytes))
    }

    /// Returns true if bytes begin as a bundle does.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    fn read(bytes: Bytes) -> Result<Bundle, Error> {
        let all = bytes.get();
        let rest = all
            .strip_prefix(MAGIC)
            .ok_or_else(|| Error::new(ErrorKind::Bundle, "this is not a bundle of kernels", ""))?;
        let (format, rest) = number(rest).ok_or_else(damaged)?;
        let (version, _) = rest.split_at_checked(VERSION).ok_or_else(damaged)?;
        if format != FORMAT {
            let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+');
            let by: String = version.iter().take_while(|b| plain(b)).map(|b| char::from(*b)).collect();
            let what = format!("this bundle has format {format}, and this tk reads format {FORMAT}");
            return Err(Error::new(
                ErrorKind::Bundle,
                what,
                format!("tk {by} wrote it and reads it; or build the kernels again"),
            ));
        }
        whole(all).ok_or_else(damaged)?;
        let text = section(all, 0)?;
        // What the text can take is known before it is read.
        if memory(&text) > all.len().saturating_mul(TIMES) {
            return Err(damaged());
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| {
            Error::new(ErrorKind::Bundle, format!("the manifest of this bundle cannot be read: {e}"), REBUILD)
        })?;
        if manifest.format != FORMAT {
            return Err(damaged());
        }
        manifest.check().map_err(|what| {
            Error::new(ErrorKind::Bundle, format!("this bundle is damaged: {what}"), REBUILD)
        })?;
        Ok(Bundle { bytes, manifest })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Fails if anything that the manifest names is not what it says, or there is something between the sections.
    pub fn verify(&self) -> Result<(), Error> {
        let all = self.bytes.get();
        let (mut places, mut index) = (vec![], 0);
        while let Some((place, _)) = entry(all, index) {
            places.push(place);
            index += 1;
        }
        let mut at = HEADER + ENTRY * places.len();
        places.sort_by_key(|p| p.start);
        places.push(all.len()..all.len());
        for place in places {
            if !all.get(at..place.start).is_none_or(|gap| gap.iter().all(|b| *b == 0)) {
                return Err(damaged());
            }
            at = place.end;
        }
        let variants = self.manifest.kernels.iter().flat_map(|k| &k.variants);
        let blobs = variants.flat_map(|v| [&v.binary, &v.tile].into_iter().chain(&v.listing));
        let mut seen = BTreeSet::new();
        // Many variants may share a section.
        for blob in blobs.filter(|b| seen.insert((b.section, b.bytes, &b.blake3))) {
            self.blob(blob)?;
        }
        Ok(())
    }

    /// The bytes of a section, compared with their checksum.
    pub fn blob(&self, blob: &Blob) -> Result<Vec<u8>, Error> {
        let number = blob
            .section
            .ok_or_else(|| Error::new(ErrorKind::Bundle, "what is asked for is in no section", REBUILD))?;
        let bytes = section(self.bytes.get(), number)?;
        if bytes.len() as u64 != blob.bytes || blake3::hash(&bytes).to_hex().as_str() != blob.blake3 {
            return Err(damaged());
        }
        Ok(bytes)
    }
}

const REBUILD: &str = "build it again";

fn damaged() -> Error {
    Error::new(ErrorKind::Bundle, "this bundle is damaged", REBUILD)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (n, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*n), rest))
}

/// Checks the length of the file and the checksum of its header and table.
fn whole(all: &[u8]) -> Option<()> {
    let (head, rest) = all.split_at_checked(SUM)?;
    let (sum, rest) = rest.split_first_chunk::<32>()?;
    let (count, length) = head.get(SUM - 12..)?.split_first_chunk::<4>()?;
    let table = rest.get(..ENTRY.checked_mul(u32::from_le_bytes(*count) as usize)?)?;
    let found = blake3::Hasher::new().update(head).update(table).finalize();
    let length = u64::from_le_bytes(*length.first_chunk::<8>()?);
    (length == all.len() as u64 && found == blake3::Hash::from_bytes(*sum)).then_some(())
}

/// The place of a section, and its checksum.
fn entry(all: &[u8], index: u32) -> Option<(std::ops::Range<usize>, [u8; 32])> {
    let (count, _) = number(all.get(SUM - 12..)?)?;
    if index >= count {
        return None;
    }
    let entry = all.get(HEADER.checked_add(ENTRY.checked_mul(index as usize)?)?..)?;
    let (offset, rest) = entry.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (sum, _) = rest.split_first_chunk::<32>()?;
    let from = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
    let to = from.checked_add(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((from..to, *sum))
}

/// A copy of a section that is what its checksum says.
fn section(all: &[u8], index: u32) -> Result<Vec<u8>, Error> {
    let found = entry(all, index).and_then(|(place, sum)| Some((all.get(place)?.to_vec(), sum)));
    let (bytes, sum) = found.ok_or_else(damaged)?;
    if blake3::hash(&bytes) == blake3::Hash::from_bytes(sum) { Ok(bytes) } else { Err(damaged()) }
}
