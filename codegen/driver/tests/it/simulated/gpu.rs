//! The same programs on a GPU: `TK_REQUIRE_DEVICE` names `cuda` or `hip`. Without it the test is left out, which is said.
//!
//! Programs are compiled and assembled by as many threads as there are processors, each with a context of its own on the
//! first device; `TK_CACHE=off` spares a disk that no program comes back to. A program that differs is shown whole: making it
//! small would launch it hundreds of times.

use std::sync::Arc;

use tk_driver::{Cache, Environment, Jit};
use tk_runtime::gpu::{Api, Backend, Device as Gpu};
use tk_syntax::SourceMap;

use super::*;

thread_local! {
    /// What runs the programs of a thread.
    static BACKEND: std::cell::RefCell<Option<Arc<Backend>>> = const { std::cell::RefCell::new(None) };
}

/// The back end of this thread.
fn backend(api: Api) -> Arc<Backend> {
    BACKEND.with(|b| {
        b.borrow_mut()
            .get_or_insert_with(|| {
                let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
                let jit =
                    Jit::new(SourceMap::default(), Environment::of_process(Some(&here)), Cache::of_process());
                let gpu = Gpu::open_on(api, 0).unwrap_or_else(|e| panic!("{e}"));
                Arc::new(Backend::new(gpu, Arc::new(jit)).unwrap_or_else(|e| panic!("{e}")))
            })
            .clone()
    })
}

fn examine_on(api: Api, seed: u64) -> Option<String> {
    let (items, params) = stmts::generate(seed, true);
    let source = program::text(&items);
    let warps = WARPS[seed as usize % WARPS.len()];
    let run = || -> Result<(), Problem> {
        let program = prepared(&source, &params, seed)?;
        let module = program.optimised()?;
        let expected = program
            .results(&module, &interpreted)
            .or_else(|e| wrong(Kind::Fault, format!("on the interpreter: {e}")))?;
        let device = backend(api);
        let launch = |module: &TileModule, entry: FuncId, args: &[Arg], grid: [u32; 3], memory: &Memory| {
            let compiled = Compiled {
                id: seed,
                module: module.clone(),
                entry,
                notes: vec![],
                debug: std::sync::Arc::default(),
            };
            let timeout = Some(Duration::from_secs(60));
            let options = LaunchOptions { warps, timeout, ..LaunchOptions::of(&[]) };
            device.launch(&compiled, args, grid, &options, memory).map_err(|fault| format!("{fault}"))
        };
        let got = program
            .results(&module, &launch)
            .or_else(|e| wrong(Kind::Fault, format!("{warps} warps: {e}")))?;
        match got.iter().zip(&expected).position(|(a, b)| a != b) {
            Some(i) => {
                let at = got[i].iter().zip(&expected[i]).position(|(a, b)| a != b).unwrap_or(0);
                let near = |b: &[u8]| format!("{:02x?}", &b[at & !7..(at & !7) + 8.min(b.len() - (at & !7))]);
                let (found, wanted) = (near(&got[i]), near(&expected[i]));
                let text = format!("{warps} warps: argument {i} differs at byte {at}: {found}, not {wanted}");
                wrong(Kind::Differs("gpu"), text)
            }
            None => Ok(()),
        }
    };
    let found = run().err()?;
    Some(format!("seed {seed}: {}\n\n{source}", found.text))
}

#[test]
fn generated_programs_give_on_a_gpu_what_the_interpreter_gives() {
    let api = match std::env::var("TK_REQUIRE_DEVICE").as_deref() {
        Ok("cuda") => Api::Cuda,
        Ok("hip") => Api::Hip,
        _other => return eprintln!("TK_REQUIRE_DEVICE names no GPU: left out"),
    };
    let seeds = seeds();
    let count = seeds.end - seeds.start;
    let found = all(seeds, usize::MAX, |seed| examine_on(api, seed));
    println!("{count} programs, {} differ", found.len());
    assert!(found.is_empty(), "{} of {count} programs:\n\n{}", found.len(), found.join("\n\n"));
}
