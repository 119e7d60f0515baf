//! The compile cache: files in one folder, each named by the hash of everything on which it depends.
//!
//! Requires nothing of the folder: it may be missing, read-only, full, shared by running processes, and contain damaged
//! or foreign files. Anyone who can write there decides what runs, so a folder that others can write is not used.
//! Guarantees that [`Cache::get`] returns exactly what [`Cache::put`] stored for the key or nothing, that no process
//! sees a partial entry, that only the cache's own entries are removed, and that nothing fails for lack of a cache.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tk_bundle::regular;

use crate::tools::tool::reason;

/// The magic number of entries, which no foreign file begins with.
const MAGIC: [u8; 8] = *b"tk-cache";

/// The version of the format of an entry; an entry of another one is a miss.
const FORMAT: u32 = 1;

/// Bytes before the payload: magic, format, key, length and hash of the payload.
const HEADER: usize = 8 + 4 + 32 + 8 + 32;

/// The extension of entries.
const ENDING: &str = ".tkc";

/// The prefix of the names of unfinished entries.
const UNFINISHED: &str = ".tk-unfinished-";

/// The file with the sizes of all entries since the last removal, eight bytes each.
const GROWN: &str = "grown";

/// The most bytes that are kept unless `TK_CACHE_SIZE` is set: some ten thousand kernels.
const LIMIT: u64 = 1 << 30;

/// The age from which an unfinished entry is assumed to be left by a process that was killed. Writing takes
/// milliseconds.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of everything on which a result depends. The parts are delimited: `["ab", "c"]` is not `["a", "bc"]`.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Key(*hasher.finalize().as_bytes())
    }

    /// The key as a part of another one.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn file_name(&self) -> String {
        format!("{}{ENDING}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// A cache on disk, or the reason that it is disabled.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder, which may not exist yet.
    folder: Result<PathBuf, String>,
    limit: u64,
    /// The error in the settings.
    remark: Option<String>,
}

/// The size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The number of entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Cache {
    /// The cache of the environment: in `TK_CACHE_DIR`, else in `tk/kernels` in the system's folder for caches.
    /// `TK_CACHE=off` disables it, `TK_CACHE_SIZE` is its size limit in bytes.
    pub fn of_process() -> Cache {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let (limit, remark) = match set("TK_CACHE_SIZE").map(|v| v.to_string_lossy().into_owned()) {
            None => (LIMIT, None),
            Some(text) => match size(&text) {
                Some(limit) => (limit, None),
                None => {
                    (LIMIT, Some(format!("TK_CACHE_SIZE={text} is not a size such as 500M; it is ignored")))
                }
            },
        };
        let folder = if set("TK_CACHE").is_some_and(|v| v == "off") {
            Err("switched off by TK_CACHE=off".to_string())
        } else if let Some(folder) = set("TK_CACHE_DIR") {
            Ok(PathBuf::from(folder))
        } else {
            let why = "there is no home folder to put it in; set TK_CACHE_DIR to another one";
            dirs::cache_dir().map(|folder| folder.join("tk").join("kernels")).ok_or_else(|| why.to_string())
        };
        Cache { folder, limit, remark }
    }

    /// A cache in this folder of at most this many bytes.
    pub fn at(folder: &Path, limit: u64) -> Cache {
        Cache { folder: Ok(folder.to_path_buf()), limit, remark: None }
    }

    /// The folder, or the reason that the cache is disabled.
    pub fn folder(&self) -> Result<&Path, &str> {
        self.folder.as_deref().map_err(String::as_str)
    }

    /// The size limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The error in the settings, as a sentence.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// The value of this key. An entry that is not exactly as written is a miss.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let folder = trusted(self.folder.as_ref().ok()?).ok()?;
        let mut file = regular::open(&folder.join(key.file_name())).ok()?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).ok()?;
        let (header, payload) = bytes.split_at_checked(HEADER)?;
        if header != self::header(key, payload) {
            return None;
        }
        // The entry that was used last is the last to be removed. If its time cannot be updated, the order differs.
        let _ = file.set_modified(SystemTime::now());
        bytes.drain(..HEADER);
        Some(bytes)
    }

    /// Stores a result. If that is impossible, it will be computed again.
    pub fn put(&self, key: &Key, payload: &[u8]) {
        let Ok(folder) = &self.folder else { return };
        let size = (HEADER + payload.len()) as u64;
        // A payload that exceeds the limit is not worth the removal of others.
        if size > self.limit / 2 || make(folder).is_err() {
            return;
        }
        let Ok(folder) = trusted(folder) else { return };
        if write(&folder, key, payload).is_ok() {
            // Another process will remove what cannot be removed now.
            let _ = self.trim(&folder, size);
        }
    }

    /// The reason that the folder is not trusted, a part of a sentence: others could have written its contents.
    pub fn distrusted(&self) -> Option<String> {
        let folder = self.folder.as_ref().ok()?;
        trusted(folder).err().and_then(|distrust| match distrust {
            Distrust::Others(why) => Some(why),
            Distrust::Missing(_) => None,
        })
    }

    /// Tests by trying whether the folder can be written.
    pub fn writable(&self) -> Result<(), String> {
        let folder = self.folder.as_ref().map_err(String::clone)?;
        make(folder).map_err(|e| reason(&e))?;
        let folder = trusted(folder).map_err(|distrust| match distrust {
            Distrust::Others(why) => why,
            Distrust::Missing(e) => reason(&e),
        })?;
        let path = folder.join(format!("{UNFINISHED}{}", unique()));
        File::create_new(&path).map_err(|e| reason(&e))?;
        fs::remove_file(&path).map_err(|e| reason(&e))
    }

    /// The current size.
    pub fn size(&self) -> Size {
        let folder = self.folder.as_ref().ok().and_then(|folder| trusted(folder).ok());
        let entries = folder.as_deref().map(entries).unwrap_or_default();
        Size { entries: entries.len() as u64, bytes: entries.iter().map(|e| e.bytes).sum() }
    }

    /// Removes every entry. The error is one sentence.
    pub fn clear(&self) -> Result<Size, String> {
        let folder = self.folder.as_ref().map_err(|why| format!("there is no cache: {why}"))?;
        if let Some(why) = self.distrusted() {
            return Err(format!("{} is not used as a cache, since {why}", folder.display()));
        }
        let mut removed = Size::default();
        for entry in entries(folder) {
            remove(&entry.path)
                .map_err(|e| format!("cannot remove {}: {}", entry.path.display(), reason(&e)))?;
            removed.entries += 1;
            removed.bytes += entry.bytes;
        }
        // Failing to remove the sizes or unfinished entries is not worth an error.
        let _ = remove(&folder.join(GROWN)).and_then(|()| abandoned(folder));
        Ok(removed)
    }

    /// Removes the least recently used entries when the limit may be exceeded. Listing a full cache takes tens of
    /// milliseconds, so that is only done when an eighth of the limit has been added since.
    fn trim(&self, folder: &Path, added: u64) -> io::Result<()> {
        let path = folder.join(GROWN);
        if fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
            return remove(&path);
        }
        File::options().create(true).append(true).open(&path)?.write_all(&added.to_le_bytes())?;
        let sizes = regular::read(&path)?;
        let grown: u64 =
            sizes.chunks_exact(8).filter_map(|c| c.try_into().ok()).map(u64::from_le_bytes).sum();
        if grown < self.limit / 8 {
            return Ok(());
        }
        remove(&path)?;
        let mut entries = entries(folder);
        entries.sort_by_key(|e| e.used);
        let mut bytes: u64 = entries.iter().map(|e| e.bytes).sum();
        for entry in entries {
            if bytes <= self.limit - self.limit / 8 {
                break;
            }
            // Another process may have been faster.
            remove(&entry.path)?;
            bytes = bytes.saturating_sub(entry.bytes);
        }
        abandoned(folder)
    }
}

/// An entry on disk.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The entries of a folder, identified by their names.
fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(listing) = fs::read_dir(folder) else { return vec![] };
    let is_entry = |name: &str| {
        let stem = name.strip_suffix(ENDING).unwrap_or_default();
        stem.len() == 2 * size_of::<Key>() && stem.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let entry = |e: fs::DirEntry| {
        let metadata = e.metadata().ok().filter(fs::Metadata::is_file)?;
        is_entry(e.file_name().to_str()?).then_some(())?;
        Some(Entry { path: e.path(), bytes: metadata.len(), used: metadata.modified().ok()? })
    };
    listing.flatten().filter_map(entry).collect()
}

/// Removes unfinished entries of processes that were killed.
fn abandoned(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if unfinished && age().is_some_and(|age| age > ABANDONED) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file that may not exist any more.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The header of an entry.
fn header(key: &Key, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    out.extend(MAGIC);
    out.extend(FORMAT.to_le_bytes());
    out.extend(key.0);
    out.extend((payload.len() as u64).to_le_bytes());
    out.extend(blake3::hash(payload).as_bytes());
    out
}

/// The reason that a folder is not used.
enum Distrust {
    /// Its metadata cannot be read; usually it does not exist.
    Missing(io::Error),
    /// Others can write there: a part of a sentence.
    Others(String),
}

/// The canonical folder, if only its user and the administrator can change its contents.
fn trusted(folder: &Path) -> Result<PathBuf, Distrust> {
    let real = folder.canonicalize().map_err(Distrust::Missing)?;
    match others(&real).map_err(Distrust::Missing)? {
        Some(why) => Err(Distrust::Others(why)),
        None => Ok(real),
    }
}

/// How others can write to a folder, whose path has no links.
#[cfg(unix)]
fn others(folder: &Path) -> io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt;
    const OTHERS_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    const STICKY: u32 = 0o1000;
    let metadata = fs::metadata(folder)?;
    let shown = folder.display();
    if ![rustix::process::geteuid().as_raw(), 0].contains(&metadata.uid()) {
        return Ok(Some(format!("it belongs to another user (number {})", metadata.uid())));
    }
    if metadata.mode() & (OTHERS_WRITE | GROUP_WRITES) != 0 {
        return Ok(Some(format!("others can write to it; run `chmod go-w {shown}`")));
    }
    // A user who can rename a parent folder can replace this one. In a sticky one such as /tmp only owners can.
    for above in folder.ancestors().skip(1) {
        if fs::metadata(above)?.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE {
            return Ok(Some(format!("everybody can write to {} above it", above.display())));
        }
    }
    Ok(None)
}

/// Cache folders belong to one user on this system.
#[cfg(not(unix))]
fn others(_folder: &Path) -> io::Result<Option<String>> {
    Ok(None)
}

/// Writes an entry under another name and moves it to its own, replacing an earlier one.
fn write(folder: &Path, key: &Key, payload: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!("{UNFINISHED}{}", unique()));
    let written = File::create_new(&unfinished).and_then(|mut file| {
        file.write_all(&header(key, payload))?;
        file.write_all(payload)
    });
    let done = written.and_then(|()| fs::rename(&unfinished, folder.join(key.file_name())));
    if done.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&unfinished);
    }
    done
}

/// Makes the folder, for its user alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A name that no other process or thread uses.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Containers that share a folder may have processes with the same id.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{}-{now}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Parses a number of bytes: `1000`, `64K`, `500M`, `2G`.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _other => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}
