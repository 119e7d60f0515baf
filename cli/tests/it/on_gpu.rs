//! Runs everything of `support/everything.rs` on an NVIDIA GPU, with the real compiler: each program must say what it says
//! on the interpreter. Without a GPU it is left out, which is said, unless TK_REQUIRE_DEVICE names `cuda`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tk_driver::{Cache, Environment, Jit};
use tk_runtime::Session;
use tk_runtime::device;
use tk_runtime::gpu::{Arg, Backend, CallSite, Device, LaunchError, Launcher};
use tk_syntax::SourceMap;

use crate::support::everything::{Program, differences, on_large_stack};

/// One test at a time, so that what one does to the GPU is not another one's fault.
fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Device::open(0) {
        Ok(device) => Some((device, one)),
        Err(error) => {
            let required = std::env::var("TK_REQUIRE_DEVICE").unwrap_or_default();
            assert!(!required.split(',').any(|d| d.trim() == "cuda"), "{error}");
            eprintln!("left out: {error}");
            None
        }
    }
}

fn compiler() -> Arc<Jit> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    Arc::new(Jit::new(SourceMap::default(), Environment::of_process(Some(&here)), Cache::of_process()))
}

/// Returns true if a program expects an access outside of its buffers to be found, which a GPU does not look for.
fn reaches_outside(program: &Program) -> bool {
    let about_memory = ["spec/07-memory.md", "spec/errors/E0708.md"];
    about_memory.iter().any(|page| program.place.starts_with(page))
        && program.text.contains("assert_error \"E0708\"")
}

/// Returns true if a program says something else on a GPU by what it is about: assembly that other devices refuse.
fn is_for_gpus(program: &Program) -> bool {
    program.place.starts_with("spec/errors/E0805.md")
}

#[test]
fn a_gpu_says_what_the_interpreter_says() {
    let Some((device, _one)) = gpu() else { return };
    let backend: Arc<dyn device::Device> = Arc::new(Backend::new(device, compiler()).unwrap());
    on_large_stack(move || differences(|_| Arc::clone(&backend), |p| reaches_outside(p) || is_for_gpus(p)));
}

const PROGRAM: &str = "\
kernel bounded(x: view[f32, 1], n: i32, y: mut view[f32, 1]) grid(cdiv(x.shape[0], 256)) {
    let at = program_id(0) * 256;
    let v = x.load([at], [256]);
    assert(v < n as f32, \"too large\");
    y.store([at], v + 1.0);
}

kernel talks(n: i32) grid(4) {
    for i in range(0, n) {
        print(\"line\", i, arange(0, 64));
    }
}

kernel meets(count: *mut i32, n: i32) grid(n) launch(cooperative = true) {
    atomic_add(count, 1);
    grid_barrier();
    assert(load(count) >= n, \"somebody was not waited for\");
}
";

/// A program in memory.
struct Text;

impl tk_sema::Loader for Text {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "p.tk" { Ok(PROGRAM.to_string()) } else { Err(format!("there is no file {path}")) }
    }
}

fn launcher(device: &Device) -> Launcher {
    let checked = tk_sema::check(&Text, "p.tk");
    assert!(checked.diagnostics.iter().all(|d| !d.is_error()), "{:?}", checked.diagnostics);
    Launcher::new(Arc::new(Session::new(checked)), device.clone(), compiler()).unwrap()
}

fn says(result: Result<(), LaunchError>) -> String {
    result.unwrap_err().to_string()
}

/// An assert that fails names its line, its program and its element; nothing else is lost, and the device goes on.
#[test]
fn an_assert_that_fails_costs_nothing_but_its_launch() {
    let Some((device, _one)) = gpu() else { return };
    let (launcher, stream) = (launcher(&device), device.stream().unwrap());
    let (x, y) = (device.alloc(4096).unwrap(), device.alloc(4096).unwrap());
    let host: Vec<f32> = (0..1024u16).map(f32::from).collect();
    x.copy_from(&stream, &host).unwrap();
    y.fill_zero(&stream).unwrap();
    let mut site: CallSite = launcher.site("bounded", &[]).unwrap();
    let tensor = |b| Arg::tensor(b, tk_ops::DType::F32, &[1024]);
    for _ in 0..3 {
        let error = says(site.launch(&stream, &[tensor(&x), 700.into(), tensor(&y)]));
        assert_eq!(
            error,
            "E0708: assertion failed at element [188]: too large; in the program with the ids 2, 0, 0; \
             in kernel `bounded`, p.tk:4:5"
        );
        assert!(device.lost().is_none());
        site.launch(&stream, &[tensor(&x), 1024.into(), tensor(&y)]).unwrap();
        let mut out = vec![0f32; 1024];
        y.copy_to(&stream, &mut out).unwrap();
        assert!(out.iter().zip(&host).all(|(y, x)| *y == x + 1.0));
    }
}

/// More than there is room for is counted.
#[test]
fn lines_without_room_are_counted() {
    let Some((device, _one)) = gpu() else { return };
    let (launcher, stream) = (launcher(&device), device.stream().unwrap());
    for n in [3, 20_000, 3] {
        launcher.launch(&stream, "talks", &[n.into()]).unwrap();
        let text = launcher.printed();
        let lines: Vec<&str> = text.lines().collect();
        let left_out = lines.last().and_then(|l| l.strip_suffix(" more lines are omitted"));
        match left_out {
            Some(left_out) => assert_eq!(left_out.parse::<usize>().unwrap() + lines.len() - 1, 80_000),
            None => assert_eq!(lines.len(), 12),
        }
        assert_eq!(left_out.is_some(), n > 3);
        assert!(lines[0].starts_with("program 0, 0, 0: line 0 [0, 1, 2, 3, "), "{}", lines[0]);
        assert!(lines[0].ends_with(", 62, 63]"), "{}", lines[0]);
    }
}

/// As many programs as fit meet; one more is refused, with both numbers.
#[test]
fn a_grid_that_is_too_large_to_meet_is_refused() {
    let Some((device, _one)) = gpu() else { return };
    let (launcher, stream) = (launcher(&device), device.stream().unwrap());
    let count = device.alloc(4).unwrap();
    let launch = |n: i32| {
        count.fill_zero(&stream).unwrap();
        launcher.launch(&stream, "meets", &[Arg::tensor(&count, tk_ops::DType::I32, &[1]), n.into()])
    };
    let error = says(launch(1 << 20));
    let (_, rest) =
        error.split_once("the 1048576 programs of kernel `meets` must run at the same time").unwrap();
    let (_, rest) = rest.split_once("and the GPU holds ").unwrap();
    let most: i32 = rest.split(':').next().unwrap().parse().unwrap();
    for n in [1, 2, most - 1, most] {
        launch(n).unwrap();
    }
    assert!(says(launch(most + 1)).contains(&format!("the {} programs", most + 1)));
    assert!(device.lost().is_none());
    launch(most).unwrap();
}
