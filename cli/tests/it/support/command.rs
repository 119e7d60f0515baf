//! Runs the command for a test: in its own empty folder, with captured output.

use std::fs;
#[cfg(all(unix, feature = "llvm"))]
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is removed at the end of its test.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; `name` says whose it is.
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("tk-{process}-{count}-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> &Folder {
        fs::write(self.path(name), contents).unwrap();
        self
    }

    /// An executable script, and its path. Another process writes it: one that a test of another thread starts would
    /// hold what this process has open for writing, and the system refuses to run that.
    #[cfg(all(unix, feature = "llvm"))]
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        let mut copy = Command::new("install");
        copy.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(std::process::Stdio::piped());
        let mut child = copy.spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{}", path.display());
        path.display().to_string()
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs `tk` in the folder.
    pub fn tk(&self, args: &[&str]) -> Ran {
        Ran::new(command(&self.0, args).output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command, not yet started. It computes everything, unless `TK_UNCHANGED` is set for it.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tk"));
    command.current_dir(folder).args(args);
    for name in ["NO_COLOR", "TK_REQUIRE_DEVICE", "TK_UNCHANGED"] {
        command.env_remove(name);
    }
    command
}

/// How a call ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn new(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Fails the test unless it ended with this code.
    pub fn code(&self, code: i32) -> &Ran {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Fails the test unless there is one line of error output, which contains these texts, and no other output.
    pub fn says(&self, texts: &[&str]) -> &Ran {
        assert_eq!(self.out, "", "{self:#?}");
        assert_eq!(self.err.lines().count(), 1, "{self:#?}");
        for text in texts {
            assert!(self.err.contains(text), "`{text}` is not in {self:#?}");
        }
        self
    }

    /// Fails the test unless the error output contains the text.
    pub fn err_has(&self, text: &str) -> &Ran {
        assert!(self.err.contains(text), "`{text}` is not in {self:#?}");
        self
    }

    /// Fails the test unless the output contains the text.
    pub fn out_has(&self, text: &str) -> &Ran {
        assert!(self.out.contains(text), "`{text}` is not in {self:#?}");
        self
    }
}

/// z = x + y, and what else the tests need.
pub const ADD: &str = "\
/// z = x + y
kernel add[T: float, BLOCK: i32 = 16](x: view[T, 1], y: view[T, 1]?, z: mut view[T, 1], scale: f32 = 1.0)
    grid(cdiv(x.shape[0], BLOCK))
    require(x.shape == z.shape)
{
    let at = program_id(0) * BLOCK;
    let mut sum = x.load([at], [BLOCK]) as f32;
    if let v = y {
        sum += v.load([at], [BLOCK]) as f32;
    }
    z.store([at], (sum * scale) as T);
}

test \"sums\" {
    let z = buffer(zeros([20], f32));
    add(buffer(full([20], 1.0, f32)), buffer(full([20], 2.0, f32)), z);
    assert(all(z.tile() == 3.0));
}
";

/// An `.npy` file of version 1.0.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_with(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"), data)
}

/// An `.npy` file with any header.
pub fn npy_with(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// Bytes of f32 numbers.
pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
