//! A folder for a test, with programs of the shell in it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tk_driver::Cache;

/// An empty folder that is removed at the end of its test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// `name` says whose it is.
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("tk-driver-test-{process}-{count}-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// An executable script. Another process writes it: one that a test of another thread starts would hold what this
    /// process has open for writing, and the system refuses to run that.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut copy = Command::new("install");
        copy.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
        let mut child = copy.spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{}", path.display());
        path
    }

    pub fn cache(&self) -> Cache {
        Cache::at(&self.0.join("cache"), 1 << 20)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
