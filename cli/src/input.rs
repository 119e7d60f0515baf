//! Reads source text: files, standard input, and their imports.
//!
//! Guarantees that standard input is read at most once in a run of the command, and knows every source file that was asked for, so that
//! `--watch` can wait for their changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tk_bundle::regular;
use tk_runtime::files::{Files, reason};
use tk_sema::Loader;

use crate::args::InputArgs;

/// The name of standard input on the command line.
pub const STDIN: &str = "-";

/// The sources of one run of the command.
pub struct Inputs {
    files: Files,
    /// The name of standard input in messages and for imports.
    stdin_name: String,
    stdin: RefCell<Option<String>>,
    read: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

impl Inputs {
    /// The sources for the given files. An option that nothing uses is a mistake.
    pub fn new<'a>(args: &InputArgs, files: impl IntoIterator<Item = &'a str>) -> Result<Inputs, String> {
        let given = files.into_iter().filter(|f| *f == STDIN).count();
        match (given, &args.stdin_name) {
            (0, Some(_)) => return Err("--stdin-name needs standard input as a file: `-`".into()),
            (2.., _) => return Err("standard input (`-`) is given twice".into()),
            _ => {}
        }
        Ok(Inputs {
            files: Files::beside_program(),
            stdin_name: args.stdin_name.clone().unwrap_or_else(|| "<stdin>".into()),
            stdin: RefCell::default(),
            read: RefCell::default(),
        })
    }

    /// The name under which a file of the command line is loaded. What cannot be read is one sentence.
    pub fn open(&self, path: &str) -> Result<String, String> {
        if path != STDIN {
            self.note(path.into(), None);
            let mut file =
                regular::open(path.as_ref()).map_err(|e| format!("cannot read {path}: {}", reason(&e)))?;
            let mut start = [0; tk_bundle::MAGIC.len()];
            // A shorter file is none.
            if file.read_exact(&mut start).is_ok() && start == *tk_bundle::MAGIC {
                return Err(format!(
                    "{path} is a bundle of compiled kernels, not source; `tk inspect` shows it"
                ));
            }
            return Ok(path.to_string());
        }
        let bytes = stdin().map_err(|e| format!("cannot read standard input: {}", reason(e)))?;
        *self.stdin.borrow_mut() = Some(String::from_utf8_lossy(bytes).into_owned());
        Ok(self.stdin_name.clone())
    }

    /// The name of a file of the command line in messages, and its text, exactly: what is not UTF-8 is one sentence.
    pub fn exact(&self, path: &str) -> Result<(String, String), String> {
        let name = if path == STDIN { self.stdin_name.as_str() } else { path };
        let unreadable = |e: &std::io::Error| format!("cannot read {name}: {}", reason(e));
        let bytes = match path {
            STDIN => stdin().map_err(unreadable)?.to_vec(),
            _ => regular::read(path.as_ref()).map_err(|e| unreadable(&e))?,
        };
        let text = String::from_utf8(bytes).map_err(|e| {
            format!("cannot read {name}: invalid UTF-8 at byte {}", e.utf8_error().valid_up_to())
        })?;
        Ok((name.to_string(), text))
    }

    /// The source files that were asked for, with what was in them; `None` for one that could not be read.
    pub fn read(&self) -> BTreeMap<PathBuf, Option<String>> {
        self.read.borrow().clone()
    }

    fn note(&self, path: PathBuf, text: Option<&str>) {
        self.read.borrow_mut().insert(path, text.map(str::to_string));
    }
}

/// All of standard input, for whoever asks first and for those that ask again.
fn stdin() -> Result<&'static [u8], &'static std::io::Error> {
    static STDIN: OnceLock<std::io::Result<Vec<u8>>> = OnceLock::new();
    let read = || {
        let mut bytes = vec![];
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    };
    STDIN.get_or_init(read).as_deref()
}

/// The file itself, or the `.tk` files below a folder, sorted. Hidden folders are left out.
pub fn sources(path: &str) -> Vec<Result<String, String>> {
    if path == STDIN || !Path::new(path).is_dir() {
        return vec![Ok(path.to_string())];
    }
    let hidden = |e: &walkdir::DirEntry| e.depth() > 0 && e.file_name().to_string_lossy().starts_with('.');
    let entries = walkdir::WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(|e| !hidden(e));
    entries
        .filter_map(|entry| match entry {
            Ok(e) if e.path().extension().is_none_or(|x| x != "tk") => None,
            Ok(e) if !e.file_type().is_file() && !e.file_type().is_symlink() => None,
            Ok(e) => Some(match e.path().to_str() {
                Some(path) => Ok(path.to_string()),
                None => Err(format!("cannot read {}: its name is not UTF-8", e.path().display())),
            }),
            Err(e) => {
                let at = e.path().map_or(path.to_string(), |p| p.display().to_string());
                let why = e.io_error().map_or_else(|| "a cycle of links".to_string(), reason);
                Some(Err(format!("cannot read {at}: {why}")))
            }
        })
        .collect()
}

/// The files that the command line names, those below folders included; a folder without one is a mistake.
pub fn all_sources(paths: &[String]) -> Result<Vec<String>, String> {
    let mut files = vec![];
    for path in paths {
        let below = sources(path).into_iter().collect::<Result<Vec<String>, String>>()?;
        if below.is_empty() {
            return Err(format!("no `.tk` files in {path}"));
        }
        files.extend(below);
    }
    Ok(files)
}

impl Loader for Inputs {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == self.stdin_name
            && let Some(text) = self.stdin.borrow().as_ref()
        {
            return Ok(text.clone());
        }
        let text = self.files.load(path);
        self.note(path.into(), text.as_deref().ok());
        text
    }

    fn used(&self, path: &str, from: &str) -> Result<String, Option<String>> {
        if path == self.stdin_name && self.stdin.borrow().is_some() {
            return self.load(path).map_err(Some);
        }
        let text = self.files.used(path, from);
        self.note(path.into(), text.as_deref().ok());
        text
    }

    fn std(&self, name: &str) -> Option<(String, String)> {
        let found = self.files.std(name)?;
        if let Some(folder) = &self.files.stdlib {
            self.note(folder.join(format!("{name}.tk")), Some(&found.1));
        }
        Some(found)
    }
}
