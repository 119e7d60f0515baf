//! Opens files that somebody else may have put there: regular ones only.
//!
//! Opening a pipe waits for a writer, a device may have no end, and both may be the target of a link. Guarantees that neither is
//! waited for, also if the file is replaced meanwhile.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file; anything else is an error. Links are followed.
pub fn open(path: &Path) -> io::Result<File> {
    // A device is not even opened, which alone may do something.
    demand(&fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    demand(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn demand(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}
