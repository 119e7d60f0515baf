//! Tuning records: which member of a kernel's `tune` list was fastest, for a target and a key, in
//! `NAME.tuning.json` beside `NAME.tk`.
//!
//! Accepts any file. What is in one can only choose among the members that the kernel lists: a record that is of
//! another version of the kernel, or names no member, is not used, and a sentence says so. A file has one record to a
//! line, in a fixed order, so that two files can be merged line by line.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tk_bundle::regular;
use tk_sema::contract::{SetValue, Values};
use tk_tile::{Module, text};

use crate::files::{reason, write_all};
use crate::leftovers;

/// The version of the format.
const FORMAT: u32 = 1;
/// The largest file that is read, in bytes: thousands of records.
const LARGEST: u64 = 16 << 20;

/// What was measured for one kind of launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The kernel.
    pub kernel: String,
    /// The target, such as `sm_90a`.
    pub target: String,
    /// The name of the GPU.
    pub device: String,
    /// The version of its driver, such as `13.0`.
    pub driver: String,
    /// The compile-time parameters that the member does not choose.
    pub given: BTreeMap<String, String>,
    /// The values of `tune(key = ..)`; without a list, the extents and integers that the kernel gets.
    pub key: Vec<i64>,
    /// The fastest member.
    pub member: BTreeMap<String, String>,
    /// Its time in milliseconds, with cold caches.
    pub ms: f64,
    /// The time with the defaults.
    pub default_ms: f64,
    /// The number of members that were measured.
    pub measured: usize,
    /// A hash of the tile IR of the member: another one means that the kernel is another one.
    pub code: String,
    /// The same of the defaults that the member was compared with; empty in records of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub default_code: String,
}

/// A file of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records(Vec<Record>);

#[derive(Deserialize)]
struct Stored {
    format: u32,
    records: Vec<Record>,
}

/// What records are looked up by.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The kernel.
    pub kernel: &'a str,
    /// The target.
    pub target: &'a str,
    /// The name of the GPU: records of another one with the same target are the next best.
    pub device: &'a str,
    /// The key.
    pub key: &'a [i64],
}

impl Records {
    /// Reads a file; no file is one without records.
    ///
    /// # Errors
    /// A sentence that says why the file is not used.
    pub fn read(path: &Path) -> Result<Records, String> {
        let shown = path.display();
        let unreadable = |e: std::io::Error| format!("cannot read {shown}: {}", reason(&e));
        let mut file = match regular::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Records::default()),
            Err(e) => return Err(unreadable(e)),
        };
        let facts = file.metadata().map_err(unreadable)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            /// The bit of a mode that lets everybody write.
            const OTHERS_WRITE: u32 = 0o002;
            if facts.permissions().mode() & OTHERS_WRITE != 0 {
                return Err(format!("{shown} can be written by every user; run `chmod o-w` on it"));
            }
        }
        if facts.len() > LARGEST {
            return Err(format!("{shown} has {} bytes, more than {LARGEST}", facts.len()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        Records::parse(&text).map_err(|what| format!("{shown} {what}"))
    }

    /// Reads the text of a file. The error continues a sentence that begins with its name.
    ///
    /// # Errors
    /// The text is not that of such a file, or of one of another version.
    pub fn parse(text: &str) -> Result<Records, String> {
        let stored: Stored =
            serde_json::from_str(text).map_err(|e| format!("is no file of tuning records: {e}"))?;
        if stored.format != FORMAT {
            return Err(format!("has format {}, but this tk reads format {FORMAT}", stored.format));
        }
        Ok(Records(stored.records))
    }

    /// The text of a file: one record to a line, in the order of what they are looked up by.
    pub fn text(&self) -> String {
        let mut records: Vec<&Record> = self.0.iter().collect();
        records.sort_by(|a, b| a.identity().cmp(&b.identity()));
        let lines: Vec<String> = records
            .iter()
            .filter_map(|r| serde_json::to_string(r).ok())
            .map(|r| format!("    {r}"))
            .collect();
        format!("{{\n  \"format\": {FORMAT},\n  \"records\": [\n{}\n  ]\n}}\n", lines.join(",\n"))
    }

    /// Puts a record in the place of one about the same launches.
    pub fn put(&mut self, record: Record) {
        match self.0.iter_mut().find(|r| r.identity() == record.identity()) {
            Some(slot) => *slot = record,
            None => self.0.push(record),
        }
    }

    /// The records of a kernel, a target and a key, those of the same GPU first.
    pub fn find<'a>(&'a self, query: &Query<'a>) -> impl Iterator<Item = &'a Record> {
        let Query { kernel, target, device, key } = *query;
        let fits = move |r: &&Record| r.kernel == kernel && r.target == target && r.key == key;
        let same = self.0.iter().filter(fits).filter(move |r| r.device == device);
        same.chain(self.0.iter().filter(fits).filter(move |r| r.device != device))
    }

    /// All records.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.0.iter()
    }

    /// Writes a record to a file that others may write too: what they have put there in the meantime stays.
    ///
    /// # Errors
    /// A sentence: the file cannot be read or written.
    pub fn save(path: &Path, record: Record) -> Result<(), String> {
        Records::change(path, |records| records.put(record))
    }

    /// Removes records from a file.
    ///
    /// # Errors
    /// As [`Records::save`].
    pub fn forget(path: &Path, about: impl Fn(&Record) -> bool) -> Result<(), String> {
        Records::change(path, |records| records.0.retain(|r| !about(r)))
    }

    fn change(path: &Path, change: impl FnOnce(&mut Records)) -> Result<(), String> {
        // Another `tk tune` that writes at the same time waits; where there are no locks, the last one counts.
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _lock = leftovers::lock_when_free(folder);
        let mut records = Records::read(path)?;
        change(&mut records);
        write_all(&[(path.to_path_buf(), records.text().into_bytes())])
    }
}

impl Record {
    /// What there is one record for.
    fn identity(&self) -> (&str, &str, &str, &BTreeMap<String, String>, &[i64]) {
        (&self.kernel, &self.target, &self.device, &self.given, &self.key)
    }

    /// `BLOCK=64 warps=4`
    pub fn name(&self) -> String {
        let values: Vec<String> = self.member.iter().map(|(name, v)| format!("{name}={v}")).collect();
        values.join(" ")
    }

    /// Returns true if it names these values.
    pub fn chooses(&self, values: &Values) -> bool {
        as_text(values) == self.member
    }
}

/// Values by name, as text.
pub fn as_text(values: &[(String, SetValue)]) -> BTreeMap<String, String> {
    values.iter().map(|(name, v)| (name.clone(), v.to_string())).collect()
}

/// The file for the kernels of a source file.
pub fn path_of(source: &str) -> PathBuf {
    Path::new(source).with_extension("tuning.json")
}

/// The hash of the code of a specialization, which does not depend on places in the source.
pub fn code_of(module: &Module) -> String {
    let printed = text::print(module, text::Options::default());
    blake3::hash(printed.as_bytes()).to_hex().chars().take(16).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn record(kernel: &str, key: i64, device: &str) -> Record {
        Record {
            kernel: kernel.into(),
            target: "sm_90a".into(),
            device: device.into(),
            driver: "13.0".into(),
            given: BTreeMap::new(),
            key: vec![key],
            member: BTreeMap::from([("BLOCK".into(), "64".into())]),
            ms: 0.5,
            default_ms: 1.0,
            measured: 3,
            code: "0".into(),
            default_code: String::new(),
        }
    }

    #[test]
    fn text_does_not_depend_on_the_order() {
        let (mut a, mut b) = (Records::default(), Records::default());
        for (kernel, key) in [("f", 2), ("g", 1), ("f", 1)] {
            a.put(record(kernel, key, "x"));
        }
        for (kernel, key) in [("f", 1), ("f", 2), ("g", 1), ("g", 1)] {
            b.put(record(kernel, key, "x"));
        }
        assert_eq!(a.text(), b.text());
        assert_eq!(Records::parse(&a.text()).unwrap().text(), a.text());
        assert_eq!(a.text().lines().filter(|l| l.contains("kernel")).count(), 3);
    }

    #[test]
    fn the_same_gpu_comes_first() {
        let mut all = Records::default();
        ["other", "mine"].into_iter().for_each(|d| all.put(record("f", 1, d)));
        let query = |key| Query { kernel: "f", target: "sm_90a", device: "mine", key };
        let found: Vec<&str> = all.find(&query(&[1])).map(|r| r.device.as_str()).collect();
        assert_eq!(found, ["mine", "other"]);
        assert_eq!(all.find(&query(&[2])).count(), 0);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, says) in [
            ("", "is no file of tuning records"),
            ("{\"format\": 1, \"records\": [", "is no file of tuning records"),
            ("{\"format\": 2, \"records\": []}", "has format 2"),
            ("{\"format\": 1, \"records\": [{}]}", "missing field"),
        ] {
            let said = Records::parse(text).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
