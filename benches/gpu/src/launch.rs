//! Measures the host time of a launch: [`tk_runtime::gpu::CallSite`] and [`Kernels`] next to the driver's own call, and
//! one of many in a graph.
//!
//! Guarantees that both launch an empty kernel of three pointers and an integer in blocks of one size, in turns. What
//! is compared are short bursts, for which the queue of the GPU has room: in a long loop every launch waits for the
//! GPU, and all ways to launch cost the same.

use std::time::Instant;

use serde_json::{Value, json};
use tk_bundle::Bundle;
use tk_driver::{Asking, Cache, Environment, Tools, ship, specializations};
use tk_ops::DType;
use tk_runtime::Session;
use tk_runtime::gpu::{Arg, Device, Kernels, Stream};

use crate::Args;
use crate::program::{first, launcher};
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
    let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
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
    let shipped = shipped(args, device)?;
    let mut by_bundle =
        |stream: &Stream| shipped.launch(stream, "nothing", &arguments, &[]).map_err(|e| e.to_string());
    time(&stream, BURST, &mut by_bundle)?;
    let bundle_us = time(&stream, BURST, &mut by_bundle)?;
    Ok(json!({
        "bundle_us": bundle_us,
        "graph_us": replayed(&stream, &mut ours)?,
        "bare_us": bare_us,
        "tk_us": tk_us,
        "ratio": tk_us / bare_us,
        "burst": BURST,
        "one_loop": { "launches": LAUNCHES, "bare_us": bare_long_us, "tk_us": tk_long_us },
    }))
}

/// The kernel as `tk build` ships it.
fn shipped(args: &Args, device: &Device) -> Result<Kernels, String> {
    let file = "benches/gpu/launch.tk";
    let session = Session::new(crate::program::check(&args.root, file)?);
    let target = tk_driver::TARGETS.into_iter().find(|t| Some(t.name) == device.target());
    let targets: Vec<_> = target.into_iter().collect();
    let asking = Asking { path: file, kernel: None, sets: &[], targets: &targets, members: 0 };
    let specials = specializations(&session, asking).map_err(|e| format!("{e:?}"))?.all;
    let environment = Environment::of_process(Some(&args.root.join(file)));
    let tools = Tools::new(environment, Cache::of_process());
    let shipped = ship(&session, &specials, &tools, false).map_err(|wrong| first(&wrong))?;
    let bundle = Bundle::from_vec(shipped.bundle()).map_err(|e| e.to_string())?;
    Ok(Kernels::new(device.clone(), bundle.into()))
}

/// Microseconds of one of a thousand launches that were recorded and are started together, waiting included; the best of
/// some.
fn replayed(stream: &Stream, launch: &mut impl FnMut(&Stream) -> Result<(), String>) -> Result<f64, String> {
    const RECORDED: u32 = 1000;
    const REPLAYS: u32 = 20;
    let gpu = |e: tk_runtime::gpu::CudaError| e.to_string();
    let mut graph = stream
        .capture(|| (0..RECORDED).try_for_each(|_| launch(stream).map_err(Said)))
        .map_err(|e: Said| e.0)?;
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        graph.launch(stream).map_err(gpu)?;
        stream.synchronize().map_err(gpu)?;
        let begin = Instant::now();
        (0..REPLAYS).try_for_each(|_| graph.launch(stream)).map_err(gpu)?;
        stream.synchronize().map_err(gpu)?;
        best = best.min(begin.elapsed().as_secs_f64() * 1e6 / f64::from(REPLAYS * RECORDED));
    }
    Ok(best)
}

/// A sentence as an error of a recording.
struct Said(String);

impl From<tk_runtime::gpu::CudaError> for Said {
    fn from(e: tk_runtime::gpu::CudaError) -> Said {
        Said(e.to_string())
    }
}

/// Microseconds of a launch, of that many in bursts; waiting for the GPU in between does not count.
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
