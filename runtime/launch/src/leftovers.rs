//! Temporary files and folders that tell, by a lock, whether the process that made them is still there, and the removal of
//! those that a killed process left.
//!
//! Without such locks nothing is removed.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

/// Says that the process that has it is still there.
#[derive(Debug)]
pub struct Lock {
    #[cfg(unix)]
    _file: Option<fs::File>,
}

/// Locks a temporary file or folder that was just made.
pub fn lock(path: &Path) -> Lock {
    #[cfg(unix)]
    return Lock { _file: locked(path).ok() };
    #[cfg(not(unix))]
    Lock {}
}

/// Locks a folder, waiting for the process that has the lock.
pub fn lock_when_free(path: &Path) -> Lock {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        let file = fs::File::open(path).ok();
        let locked = file.filter(|f| flock(f, FlockOperation::LockExclusive).is_ok());
        Lock { _file: locked }
    }
    #[cfg(not(unix))]
    Lock {}
}

/// Takes the lock, unless another process has it or this one a second time.
#[cfg(unix)]
fn locked(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
    // Opening a pipe waits otherwise.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::File::from(open(path, flags, Mode::empty())?);
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes what killed processes of this user left in a folder, of the entries with these names.
#[cfg(unix)]
pub fn sweep(folder: &Path, names: impl Fn(&str) -> bool) {
    use std::os::unix::fs::MetadataExt;
    /// More than the time that passes between making a temporary file and locking it.
    const LOCKED: Duration = Duration::from_secs(60);
    let Ok(listing) = fs::read_dir(folder) else { return };
    for entry in listing.flatten().filter(|e| e.file_name().to_str().is_some_and(&names)) {
        // That of the entry itself, be it a link.
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        let mine = metadata.uid() == rustix::process::geteuid().as_raw();
        if !mine || metadata.is_symlink() || age.is_none_or(|age| age < LOCKED) {
            continue;
        }
        let path = entry.path();
        let remove = || if metadata.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        // What cannot be removed stays.
        let _: io::Result<()> = locked(&path).and_then(|_lock| remove());
    }
}

/// Nothing says whether a process is still there.
#[cfg(not(unix))]
pub fn sweep(_folder: &Path, _names: impl Fn(&str) -> bool) {}
