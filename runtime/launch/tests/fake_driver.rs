//! The NVIDIA runtime against a driver made for tests (`fake/libcuda.rs`), which any machine can run.
//!
//! Each test runs in a process of its own, whose loader finds that driver first. What needs the real one is in `cuda.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tk_interp::{Arg as At, Memory};
use tk_ops::{DType, Scalar};
use tk_runtime::compile::{ArgFacts, Binary, Compile, CompileOptions, ParamKind, params};
use tk_runtime::cuda::{
    Arg, Args, Backend, Device, Kernel, KernelInfo, LaunchError, Launcher, Module, probe,
};
use tk_runtime::device::Device as _;
use tk_runtime::{Argument, Session};
use tk_sema::contract::{HostArg, kernel_named};
use tk_syntax::{Diagnostic, codes};
use tk_tile::{FuncId, TileModule};

/// The folder of the driver; `None` without a Rust compiler.
fn driver() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-cuda-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/libcuda.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
        let mut command = Command::new(rustc);
        command.args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-C",
            "opt-level=2",
            "-A",
            "warnings",
            "-o",
        ]);
        let status = command.arg(folder.join("libcuda.so")).arg(source).status().ok()?;
        assert!(status.success(), "the driver does not compile");
        Some(folder)
    };
    FOLDER.get_or_init(build).as_deref()
}

/// Runs `body` in a process that has the driver, of a machine that is as `machine` says.
fn on(machine: &str, body: impl FnOnce()) {
    if std::env::var_os("FAKE_CUDA").is_some() {
        return body();
    }
    let Some(folder) = driver() else {
        eprintln!("left out: there is no Rust compiler to build the driver with");
        return;
    };
    let thread = std::thread::current();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([thread.name().unwrap(), "--exact", "--nocapture", "--include-ignored"])
        .env("FAKE_CUDA", machine)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    eprint!("{err}");
}

fn info(name: &str, params: &[ParamKind]) -> KernelInfo {
    KernelInfo {
        name: name.into(),
        threads: 128,
        shared_bytes: 0,
        programs_per_block: 1,
        params: params.to_vec(),
    }
}

fn kernel(name: &str, params: &[ParamKind]) -> Kernel {
    Module::lazy(b"image"[..].into()).kernel(info(name, params))
}

/// A compiler for kernels that the driver has by name.
#[derive(Default)]
struct ByName {
    calls: AtomicUsize,
    facts: Mutex<Vec<ArgFacts>>,
    shared: u32,
    programs: u32,
}

impl Compile for ByName {
    fn compile(
        &self,
        module: &TileModule,
        entry: FuncId,
        options: &CompileOptions,
    ) -> Result<Binary, Vec<Diagnostic>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.facts.lock().unwrap() = options.facts.clone();
        assert_eq!(options.target, "sm_90a");
        let name = module.funcs[entry].name.split(['[', '.']).next().unwrap().to_string();
        if name == "refused" {
            let span = tk_syntax::Span::default();
            return Err(vec![Diagnostic::error(codes::NOT_ON_TARGET, span, "it is refused", "")]);
        }
        Ok(Binary {
            name,
            image: b"image"[..].into(),
            threads: options.warps * 32,
            shared_bytes: self.shared,
            programs_per_block: self.programs.max(1),
            params: params(module, entry).unwrap(),
        })
    }
}

const PROGRAM: &str = r#"
kernel twice(x: mut view[f32, 1]) grid(x.shape[0]) { }
kernel how[n: i32 = 10](out: *mut i32) grid(n, 3) launch(warps = 8) { }
kernel rotate(table: *mut *mut f32, n: i32) { }
kernel add(x: *mut f32, v: f32) scratch(work: *mut f32, 1, zeroed = true) { }
kernel wild(x: *mut f32, n: i32) { }
kernel forever(x: *mut f32) { }
kernel refused(x: *mut f32) { }
kernel missing(x: *mut f32) { }
kernel nothing(x: *f32, y: *f32, z: *mut f32, n: i32) grid(n) { }
"#;

struct Text;

impl tk_sema::Loader for Text {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "x.tk" { Ok(PROGRAM.to_string()) } else { Err(format!("there is no file {path}")) }
    }
}

fn session() -> Session {
    let checked = tk_sema::check(&Text, "x.tk");
    let errors: Vec<_> = checked.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    Session::new(checked)
}

fn backed(compiler: ByName) -> (Session, Arc<Backend>, Arc<ByName>) {
    let compiler = Arc::new(compiler);
    let backend = Arc::new(Backend::new(Device::open(0).unwrap(), compiler.clone()).unwrap());
    (session().on(backend.clone()), backend, compiler)
}

/// A tensor in host memory as an argument.
fn tensor(memory: &Memory, dtype: DType, bytes: Vec<u8>) -> (tk_interp::BufferId, Argument) {
    let n = (bytes.len() / dtype.bytes()) as i64;
    let buffer = memory.alloc(bytes);
    let host = HostArg::Tensor { dtype, shape: vec![n], strides: vec![1] };
    (buffer, Argument { host, place: Some(At::View { buffer, offset: 0, shape: vec![n], strides: vec![1] }) })
}

fn number(v: Scalar) -> Argument {
    Argument { host: HostArg::Scalar(v), place: None }
}

fn launch(session: &Session, kernel: &str, args: &[Argument], memory: &Memory) -> Result<(), String> {
    let id = kernel_named(&session.checked().hir, kernel).unwrap();
    match session.launch(id, args, &[], memory) {
        Ok(_) => Ok(()),
        Err(wrong) => Err(format!("{}: {}", wrong[0].code, wrong[0].message)),
    }
}

fn floats(v: &[f32]) -> Vec<u8> {
    v.iter().flat_map(|f| f.to_le_bytes()).collect()
}

fn read(memory: &Memory, id: tk_interp::BufferId) -> Vec<f32> {
    let bytes = memory.read(id).unwrap();
    bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

#[test]
fn a_machine_is_described() {
    on("", || {
        let lines = probe();
        assert_eq!(
            lines,
            [
                "NVIDIA driver for CUDA 12.8",
                "GPU 0: Paper GPU, compute capability 9.0, 132 multiprocessors, 227 KiB of shared memory, \
                 3.0 GiB free, target sm_90a"
            ]
        );
        let device = Device::open(0).unwrap();
        assert_eq!((device.name(), device.sms(), device.shared_bytes()), ("Paper GPU", 132, 232_448));
        assert_eq!((device.capability(), device.driver_version()), ((9, 0), (12, 8)));
        assert_eq!(
            Device::open(1).unwrap_err().to_string(),
            "there is no NVIDIA GPU with the number 1: there is 1, counted from 0; \
             `nvidia-smi -L` lists them; CUDA_VISIBLE_DEVICES hides some"
        );
    });
}

#[test]
fn a_machine_without_a_gpu() {
    on("none", || {
        assert_eq!(
            Device::open(0).unwrap_err().to_string(),
            "no kernel can run: the driver finds no NVIDIA GPU (CUDA_ERROR_NO_DEVICE); \
             look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES, or use `--device cpu`"
        );
        assert_eq!(probe().len(), 1);
    });
}

#[test]
fn a_driver_that_is_too_old() {
    on("old", || {
        assert_eq!(
            Device::open(0).unwrap_err().to_string(),
            "the NVIDIA driver is too old: it is for CUDA 11.4, and kernels need 12.0; update NVIDIA's driver"
        );
    });
}

#[test]
fn a_driver_that_does_not_start() {
    on("mismatch", || {
        assert_eq!(
            Device::open(0).unwrap_err().to_string(),
            "the NVIDIA driver does not start: the driver's library and its kernel module have different versions \
             (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); restart the machine"
        );
    });
}

#[test]
fn a_gpu_without_a_target() {
    on("next", || {
        let device = Device::open(0).unwrap();
        let error = Backend::new(device, Arc::new(ByName::default())).unwrap_err();
        assert_eq!(
            error.sentence,
            "kernels cannot be made for the Paper GPU: it has compute capability 12.0"
        );
    });
}

#[test]
fn memory_is_copied_there_and_back() {
    on("", || {
        let device = Device::open(0).unwrap();
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        let x = device.alloc(16).unwrap();
        x.copy_from(&stream, &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let mut host = [0.0f32; 4];
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!(host, [1.0, 2.0, 3.0, 4.0]);

        let mut pinned = device.pinned(8).unwrap();
        assert_eq!(pinned.as_slice::<f32>(), [0.0, 0.0]);
        pinned.as_mut_slice::<f32>()[0] = 5.0;
        let first = stream.record().unwrap();
        let pinned = x.copy_from_pinned(&stream, pinned).unwrap().wait().unwrap();
        other.wait(&stream.record().unwrap()).unwrap();
        let pinned = x.copy_to_pinned(&other, pinned).unwrap().wait().unwrap();
        assert_eq!(pinned.as_slice::<f32>(), [5.0, 0.0]);
        assert_eq!(first.elapsed_ms(&other.record().unwrap()).unwrap(), 1.5);

        x.fill_zero(&stream).unwrap();
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!(host, [0.0; 4]);
        let short = x.copy_from(&stream, &[0.0f32; 5]).unwrap_err();
        assert_eq!(short.sentence, "20 bytes cannot be copied: the buffer on the GPU has 16");
        let large = device.alloc(1 << 40).unwrap_err();
        assert_eq!(
            large.sentence,
            "1099511627776 bytes on the GPU cannot be had: the GPU has not enough free memory (CUDA_ERROR_OUT_OF_MEMORY)"
        );
        assert!(device.alloc(0).unwrap().is_empty());
    });
}

#[test]
fn a_kernel_gets_its_arguments_and_the_grid() {
    on("", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        let out = device.alloc(32).unwrap();
        let mut wanted = info("how", &[ParamKind::Pointer]);
        (wanted.shared_bytes, wanted.programs_per_block) = (100 << 10, 4);
        let kernel = Module::lazy(b"image"[..].into()).kernel(wanted);
        kernel.fits(&device).unwrap();
        let mut args = Args::new();
        args.push_ptr(out.address());
        let mut seen = [0i32; 8];
        kernel.launch(&stream, [10, 3, 1], &args).unwrap();
        out.copy_to(&stream, &mut seen).unwrap();
        assert_eq!(seen, [3, 3, 1, 128, 100 << 10, 10, 3, 1]);
        kernel.launch_cooperative(&stream, [8, 1, 1], &args).unwrap();
        out.copy_to(&stream, &mut seen).unwrap();
        assert_eq!(seen[..3], [2, 1, 1]);

        let says = |r: Result<(), tk_runtime::cuda::CudaError>| r.unwrap_err().sentence;
        let over = |grid: [u32; 3]| says(kernel.launch(&stream, grid, &args));
        assert_eq!(
            over([1, 70_000, 1]),
            "the grid of kernel `how` has 70000 programs on axis 1, and a GPU takes at most 65535"
        );
        assert!(kernel.launch(&stream, [0, 70_000, 1], &args).is_ok());
        let together = says(kernel.launch_cooperative(&stream, [1000, 1, 1], &args));
        assert!(
            together.starts_with("kernel `how` cannot be launched with the grid [1000, 1, 1] and (0x"),
            "{together}"
        );
        assert!(together.contains("its programs do not fit on the GPU at the same time"), "{together}");
        assert_eq!(
            says(kernel.launch(&stream, [1; 3], &Args::new())),
            "kernel `how` takes 1 machine parameters, but 0 were given"
        );
    });
}

#[test]
fn a_binary_that_does_not_load() {
    on("", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        let load = |image: &[u8], name: &str| {
            let kernel = Module::lazy(image.into()).kernel(info(name, &[]));
            kernel.launch(&stream, [1; 3], &Args::new()).unwrap_err().to_string()
        };
        assert_eq!(
            load(b"image for another GPU", "how"),
            "kernel `how` cannot be loaded: its binary is for another GPU architecture (CUDA_ERROR_NO_BINARY_FOR_GPU); \
             build the kernel for this GPU: `tk build --target` names the targets"
        );
        assert_eq!(
            load(b"image of tomorrow", "how"),
            "kernel `how` cannot be loaded: the driver is too old for its PTX (CUDA_ERROR_UNSUPPORTED_PTX_VERSION); \
             update NVIDIA's driver"
        );
        assert!(
            load(b"noise", "how").contains("it is no binary for a GPU, or a damaged one (CUDA error 200)")
        );
        assert!(
            load(b"image", "other")
                .contains("its binary has no function of that name (CUDA_ERROR_NOT_FOUND)")
        );
        let mut large = info("how", &[]);
        large.shared_bytes = 300 << 10;
        let kernel = Module::lazy(b"image"[..].into()).kernel(large);
        assert_eq!(
            kernel.fits(&device).unwrap_err().sentence,
            "kernel `how` needs 307200 bytes of shared memory for a block, and the GPU has 232448"
        );
        // None of these costs the context.
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_kernel_that_fails_is_named_and_the_device_recovers() {
    on("", || {
        let device = Device::open(0).unwrap();
        let (stream, buffer) = (device.stream().unwrap(), device.alloc(64).unwrap());
        let (good, wild) = (kernel("nothing", &[]), kernel("wild", &[]));
        good.launch(&stream, [1; 3], &Args::new()).unwrap();
        stream.synchronize().unwrap();
        wild.launch(&stream, [1; 3], &Args::new()).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `wild` failed: it used an address that is in no buffer (CUDA_ERROR_ILLEGAL_ADDRESS); \
             run the same with `--device cpu --checked`, which names the place"
        );
        let lost = "the device's context is lost: kernel `wild` failed: it used an address that is in no buffer \
                    (CUDA_ERROR_ILLEGAL_ADDRESS)";
        assert_eq!(good.launch(&stream, [1; 3], &Args::new()).unwrap_err().sentence, lost);
        assert_eq!(device.alloc(4).unwrap_err().sentence, lost);
        assert_eq!(device.lost().unwrap().sentence, lost);

        device.recover().unwrap();
        assert_eq!(device.lost(), None);
        // What belonged to the old context stays lost; the kernel is loaded again in the new one.
        assert_eq!(buffer.fill_zero(&stream).unwrap_err().sentence, lost);
        let stream = device.stream().unwrap();
        good.launch(&stream, [1; 3], &Args::new()).unwrap();
        good.launch(&stream, [1; 3], &Args::new()).unwrap();
        wild.launch(&stream, [1; 3], &Args::new()).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(error.sentence.starts_with("one of the kernels `nothing`, `wild` failed"), "{error}");
        device.recover().unwrap();
        device.stream().unwrap().synchronize().unwrap();
    });
}

#[test]
fn a_gpu_that_does_not_come_back() {
    on("gone", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        kernel("wild", &[]).launch(&stream, [1; 3], &Args::new()).unwrap();
        stream.synchronize().unwrap_err();
        let error = device.recover().unwrap_err();
        assert!(error.sentence.starts_with("the GPU does not come back after a kernel failed"), "{error}");
        assert_eq!(error.fix, "start the program anew");
    });
}

#[test]
fn a_session_launches_on_the_gpu() {
    on("", || {
        let (session, backend, compiler) = backed(ByName { shared: 1024, programs: 4, ..ByName::default() });
        assert_eq!((backend.facts().sms, backend.facts().smem), (132, 232_448));
        let memory = Memory::new();
        let (x, twice) = tensor(&memory, DType::F32, floats(&[1.0, 2.0, 3.0]));
        launch(&session, "twice", std::slice::from_ref(&twice), &memory).unwrap();
        launch(&session, "twice", &[twice], &memory).unwrap();
        assert_eq!(read(&memory, x), [4.0, 8.0, 12.0]);
        // One binary for both; its facts are those of a pointer, an extent of 3 and a stride of 1.
        assert_eq!(compiler.calls.load(Ordering::Relaxed), 1);
        let facts = [(16, false), (1, false), (1, true)].map(|(divisible, one)| ArgFacts { divisible, one });
        assert_eq!(*compiler.facts.lock().unwrap(), facts);

        let (out, how) = tensor(&memory, DType::I32, vec![0; 32]);
        launch(&session, "how", &[how], &memory).unwrap();
        let seen: Vec<i32> = memory.read(out).unwrap().chunks(4).map(|c| c[0].into()).collect();
        // 10 programs of the first axis lie in 3 blocks of 4; 1024 bytes end with a zero.
        assert_eq!(seen, [3, 3, 1, 0, 0, 10, 3, 1]);

        let (work, target) = tensor(&memory, DType::F32, floats(&[1.0]));
        for _ in 0..2 {
            let args = [target.clone(), number(Scalar::float(DType::F32, 0.5))];
            launch(&session, "add", &args, &memory).unwrap();
        }
        assert_eq!(read(&memory, work), [2.0]);
    });
}

#[test]
fn pointers_in_memory_are_translated_both_ways() {
    on("", || {
        let (session, _, _) = backed(ByName::default());
        let memory = Memory::new();
        let (a, b) = (memory.alloc(floats(&[0.0, 1.0])), memory.alloc(floats(&[2.0])));
        // The second element of the first buffer, and the second buffer.
        let stored = [memory.address(a).unwrap() + 4, memory.address(b).unwrap()];
        let bytes = stored.iter().flat_map(|w| w.to_le_bytes()).collect();
        let (table, arg) = tensor(&memory, DType::I64, bytes);
        launch(&session, "rotate", &[arg, number(Scalar::int(DType::I32, 2))], &memory).unwrap();
        assert_eq!((read(&memory, a), read(&memory, b)), (vec![0.0, 2.0], vec![1.0]));
        let after = memory.read(table).unwrap();
        let words: Vec<u64> = after.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
        assert_eq!(words, [stored[1], stored[0]]);
    });
}

#[test]
fn a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works() {
    on("", || {
        let (session, backend, _) = backed(ByName::default());
        let memory = Memory::new();
        let (x, arg) = tensor(&memory, DType::F32, floats(&[1.0, 2.0]));
        let wild = launch(&session, "wild", &[arg.clone(), number(Scalar::int(DType::I32, 7))], &memory);
        assert_eq!(
            wild.unwrap_err(),
            "E0708: kernel `wild` failed: it used an address that is in no buffer (CUDA_ERROR_ILLEGAL_ADDRESS); \
             it was launched with the grid [1, 1, 1], x: *mut f32, n = 7; \
             run the same with `--device cpu --checked`, which names the place"
        );
        assert!(backend.device().lost().is_some());
        launch(&session, "twice", std::slice::from_ref(&arg), &memory).unwrap();
        assert_eq!(read(&memory, x), [2.0, 4.0]);
        assert_eq!(
            launch(&session, "refused", std::slice::from_ref(&arg), &memory).unwrap_err(),
            "E0805: it is refused"
        );
        let missing = launch(&session, "missing", &[arg], &memory).unwrap_err();
        assert!(missing.contains("kernel `missing` cannot be loaded"), "{missing}");
    });
}

#[test]
fn a_block_that_needs_more_shared_memory_than_there_is() {
    on("", || {
        let (session, _, _) = backed(ByName { shared: 300 << 10, ..ByName::default() });
        let memory = Memory::new();
        let (_, arg) = tensor(&memory, DType::F32, floats(&[1.0]));
        assert_eq!(
            launch(&session, "twice", &[arg], &memory).unwrap_err(),
            "E0708: kernel `twice` needs 307200 bytes of shared memory for a block, and the GPU has 232448; \
             use smaller tiles or fewer stages"
        );
    });
}

#[test]
fn a_kernel_that_does_not_end() {
    on("", || {
        let (session, backend, _) = backed(ByName::default());
        let session = session.with_timeout(Some(Duration::from_millis(20)));
        let memory = Memory::new();
        let (_, arg) = tensor(&memory, DType::F32, floats(&[1.0]));
        let error = launch(&session, "forever", std::slice::from_ref(&arg), &memory).unwrap_err();
        assert!(
            error.starts_with("E0708: kernel `forever` still runs on the GPU after 0.02 s; it was"),
            "{error}"
        );
        let next = launch(&session, "twice", &[arg], &memory).unwrap_err();
        assert!(next.contains("context is lost: kernel `forever` still runs"), "{next}");
        assert_eq!(
            backend.device().lost().unwrap().fix,
            "end this process, which is the only way to stop that kernel"
        );
    });
}

#[test]
fn a_launcher_plans_once_for_what_decides() {
    on("", || {
        let device = Device::open(0).unwrap();
        let compiler = Arc::new(ByName::default());
        let launcher = Launcher::new(Arc::new(session()), device.clone(), compiler.clone()).unwrap();
        let stream = device.stream().unwrap();
        let (x, y) = (device.alloc(64).unwrap(), device.alloc(64).unwrap());
        x.copy_from(&stream, &[1.0f32; 16]).unwrap();
        y.copy_from(&stream, &[3.0f32; 16]).unwrap();
        let mut site = launcher.site("twice", &[]).unwrap();
        let calls = || compiler.calls.load(Ordering::Relaxed);
        for (buffer, n) in [(&x, 16), (&y, 16), (&x, 8), (&y, 8), (&x, 16)] {
            site.launch(&stream, &[Arg::tensor(buffer, DType::F32, &[n])]).unwrap();
        }
        // The extents 16 and 8 differ in what is known of them.
        assert_eq!(calls(), 2);
        let mut host = [0.0f32; 16];
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!((host[0], host[15]), (8.0, 4.0));
        y.copy_to(&stream, &mut host).unwrap();
        assert_eq!((host[0], host[15]), (12.0, 6.0));
        // Another site and the launcher itself know what was compiled.
        launcher.launch(&stream, "twice", &[Arg::tensor(&x, DType::F32, &[16])]).unwrap();
        launcher.launch(&stream, "twice", &[Arg::tensor(&x, DType::F32, &[16])]).unwrap();
        assert_eq!(calls(), 2);

        // A number that no clause reads is written anew each time; a workspace is zero each time.
        x.fill_zero(&stream).unwrap();
        for v in [1.0f32, 2.0, 4.0] {
            launcher.launch(&stream, "add", &[Arg::tensor(&x, DType::F32, &[16]), v.into()]).unwrap();
        }
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!((host[0], calls()), (7.0, 3));
        // One of another type is converted.
        launcher.launch(&stream, "add", &[Arg::tensor(&x, DType::F32, &[16]), 8.into()]).unwrap();
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!(host[0], 15.0);

        let says = |r: Result<(), LaunchError>| r.unwrap_err().to_string();
        assert_eq!(
            says(site.launch(&stream, &[Arg::tensor(&x, DType::F32, &[17])])),
            "argument 0, f32[17], does not lie in its buffer of 64 bytes; \
             allocate more, or give the extents and strides that the buffer has"
        );
        assert_eq!(
            says(site.launch(&stream, &[])),
            "E0701: kernel `twice` takes 1 argument, but 0 were given"
        );
        let other = says(site.launch(&stream, &[Arg::tensor(&x, DType::I32, &[4])]));
        assert!(other.starts_with("E0702: `x` has element type i32"), "{other}");
        assert_eq!(says(launcher.launch(&stream, "nobody", &[])), "E0701: there is no kernel `nobody`");
    });
}

/// Host time of a launch beside that of the bare call: `cargo test -p tk-runtime --test fake_driver -- --ignored
/// --nocapture`, with this crate optimised.
#[test]
#[ignore = "a measurement"]
fn what_a_launch_costs() {
    on("", || {
        let device = Device::open(0).unwrap();
        let launcher =
            Launcher::new(Arc::new(session()), device.clone(), Arc::new(ByName::default())).unwrap();
        let stream = device.stream().unwrap();
        let x = device.alloc(4096).unwrap();
        let time = |what: &str, launch: &mut dyn FnMut()| {
            let best = (0..20).map(|_| {
                let start = Instant::now();
                (0..100_000).for_each(|_| launch());
                start.elapsed().as_nanos() as f64 / 100_000.0
            });
            eprintln!("{what}: {:.1} ns", best.fold(f64::INFINITY, f64::min));
        };
        let views = [ParamKind::Pointer, ParamKind::Scalar(DType::I32), ParamKind::Scalar(DType::I64)];
        let bare = kernel("nothing", &views);
        let mut args = Args::new();
        args.push_ptr(x.address()).push_i32(1024).push_i64(1);
        time("Kernel::launch, 3 parameters", &mut || bare.launch(&stream, [1; 3], &args).unwrap());
        let tensor = || Arg::tensor(&x, DType::F32, &[1]);
        let mut site = launcher.site("twice", &[]).unwrap();
        time("CallSite::launch, 1 view", &mut || site.launch(&stream, &[tensor()]).unwrap());
        time("Launcher::launch, 1 view", &mut || launcher.launch(&stream, "twice", &[tensor()]).unwrap());
        let mut four = launcher.site("nothing", &[]).unwrap();
        let args = [tensor(), tensor(), tensor(), 1i32.into()];
        time("CallSite::launch, 3 pointers and a number", &mut || four.launch(&stream, &args).unwrap());
    });
}
