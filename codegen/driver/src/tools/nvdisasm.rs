//! Runs the disassembler of NVIDIA, if it is installed.

use std::process::Command;

use crate::tools::find::Environment;
use crate::tools::tool::Files;

/// The instructions of a cubin with the lines of the source, as the disassembler prints them. `None` without it, or if
/// it fails.
pub fn disassemble(cubin: &[u8], environment: &Environment) -> Option<String> {
    let tool = environment.nvdisasm()?.path;
    let files = Files::new().ok()?;
    let path = files.path().join("kernel.cubin");
    std::fs::write(&path, cubin).ok()?;
    let ran =
        Command::new(tool).args(["-c", "-g"]).arg(&path).output().ok().filter(|r| r.status.success())?;
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}
