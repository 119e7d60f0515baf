//! The devices of the process, opened once: [`open`].

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use tk_runtime::gpu::{Api, CudaError, Device};

use crate::dlpack::At;
use crate::lock;

/// The device of a place. One that failed to open is tried again.
///
/// # Errors
/// It is not there, or its driver is not.
pub fn open(at: At) -> Result<Device, CudaError> {
    static OPEN: OnceLock<Mutex<HashMap<(u32, At), Device>>> = OnceLock::new();
    // A process that was forked has the memory of the other one, and none of its connections to the driver.
    let key = (std::process::id(), at);
    if let Some(device) = lock(OPEN.get_or_init(Mutex::default)).get(&key) {
        return Ok(device.clone());
    }
    let device = match at {
        At::Host => Device::cpu(),
        At::Cuda(n) => Device::open_on(Api::Cuda, n),
        At::Hip(n) => Device::open_on(Api::Hip, n),
    }?;
    Ok(lock(OPEN.get_or_init(Mutex::default)).entry(key).or_insert(device).clone())
}
