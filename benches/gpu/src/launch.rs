//! Owns what a launch costs the host: [`tk_runtime::cuda::CallSite`] beside the driver's own call.
//!
//! Guarantees that both launch an empty kernel of three pointers and an integer in blocks of one size, in turns. What
//! is compared are short bursts, for which the queue of the GPU has room: in a long loop every launch waits for the
//! GPU, and all ways to launch cost the same.

use std::time::Instant;

use serde_json::{Value, json};
use tk_ops::DType;
use tk_runtime::cuda::{Arg, Device, Stream};

use crate::Args;
use crate::program::launcher;
use crate::raw::Bare;

/// Launches of a measurement.
const LAUNCHES: u32 = 20_000;
/// Launches of a burst: the queue holds about a thousand.
const BURST: u32 = 500;
/// Measurements, of which the best counts.
const TRIES: usize = 5;
/// Threads of a block: four warps, as a kernel has that does not say it.
const THREADS: u32 = 128;

/// Measures the cost of a launch.
pub fn run(args: &Args, device: &Device) -> Result<Value, String> {
    let gpu = |e: tk_runtime::cuda::CudaError| e.to_string();
    let launcher = launcher(&args.root, "benches/gpu/launch.tk", device)?;
    let mut site = launcher.site("nothing", &[]).map_err(|e| e.to_string())?;
    let (stream, x) = (device.stream().map_err(gpu)?, device.alloc(4096).map_err(gpu)?);
    let mut bare = Bare::nothing(x.address(), THREADS)?;
    let tensor = || Arg::tensor(&x, DType::F32, &[1]);
    let arguments = [tensor(), tensor(), tensor(), Arg::from(1)];
    let mut ours = |stream: &Stream| site.launch(stream, &arguments).map_err(|e| e.to_string());
    let mut least = |stream: &Stream| bare.launch(stream);
    let mut best = [f64::INFINITY; 4];
    for burst in [BURST, LAUNCHES] {
        time(&stream, burst, &mut least)?;
        time(&stream, burst, &mut ours)?;
    }
    for _ in 0..TRIES {
        let now = [
            time(&stream, BURST, &mut least)?,
            time(&stream, BURST, &mut ours)?,
            time(&stream, LAUNCHES, &mut least)?,
            time(&stream, LAUNCHES, &mut ours)?,
        ];
        best.iter_mut().zip(now).for_each(|(best, now)| *best = best.min(now));
    }
    let [bare_us, tk_us, bare_long_us, tk_long_us] = best;
    Ok(json!({
        "bare_us": bare_us,
        "tk_us": tk_us,
        "ratio": tk_us / bare_us,
        "burst": BURST,
        "one_loop": { "launches": LAUNCHES, "bare_us": bare_long_us, "tk_us": tk_long_us },
    }))
}

/// Microseconds of one of so many launches, in bursts; waiting for the GPU in between does not count.
fn time(
    stream: &Stream,
    burst: u32,
    launch: &mut impl FnMut(&Stream) -> Result<(), String>,
) -> Result<f64, String> {
    let mut seconds = 0.0;
    for _ in 0..LAUNCHES / burst {
        stream.synchronize().map_err(|e| e.to_string())?;
        let begin = Instant::now();
        for _ in 0..burst {
            launch(stream)?;
        }
        seconds += begin.elapsed().as_secs_f64();
    }
    stream.synchronize().map_err(|e| e.to_string())?;
    Ok(seconds / f64::from(LAUNCHES) * 1e6)
}
