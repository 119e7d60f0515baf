//! Devices by their names in C: `cpu`, `cuda:0`, `hip:1`.

use tk_runtime::gpu::{Api, Device};

use crate::{Failure, Status};

/// Opens a device, and says which kind it is.
pub fn open(name: &str) -> Result<(Api, Device), Failure> {
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    let api = match kind {
        "cpu" => Api::Cpu,
        "cuda" => Api::Cuda,
        "hip" => Api::Hip,
        _ => return Err(unknown(name)),
    };
    let number: usize = number.parse().map_err(|_| unknown(name))?;
    let device = Device::open_on(api, number);
    Ok((api, device.map_err(|error| Failure(Status::NoDriver, error.to_string()))?))
}

fn unknown(name: &str) -> Failure {
    let text = format!("there is no device `{name}`; devices are `cpu`, `cuda:0`, `hip:0` and further GPUs");
    Failure(Status::Argument, text)
}
