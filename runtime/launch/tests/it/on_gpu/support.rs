//! What the tests share: a program, and a compiler for it that knows its kernels by name.

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tk_interp::{Arg as At, Memory};
use tk_ops::{DType, Scalar};
use tk_runtime::compile::{ArgFacts, Binary, Compile, CompileOptions, ParamKind, params};
use tk_runtime::gpu::{Api, Backend, Device, Kernel, KernelInfo, Module};
use tk_runtime::{Argument, Session};
use tk_sema::contract::{HostArg, kernel_named};
use tk_sema::target::Target;
use tk_syntax::{Diagnostic, codes};
use tk_tile::message::Message;
use tk_tile::{FuncId, TileModule};

/// Says something past the test harness, which keeps what a passing test prints.
pub fn say(line: &str) {
    let mut out = stderr();
    out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).unwrap();
}

/// The variable that is there where the GPU is AMD's.
pub const AMD: &str = "FAKE_AMD";

fn api() -> Api {
    if std::env::var_os(AMD).is_some() { Api::Hip } else { Api::Cuda }
}

/// The GPU.
pub fn open() -> Device {
    Device::open_on(api(), 0).unwrap()
}

/// What its driver calls an error.
pub fn named(error: &str) -> &str {
    match (api(), error) {
        (Api::Hip, "CUDA_ERROR_OUT_OF_MEMORY") => "hipErrorOutOfMemory",
        (Api::Hip, "CUDA_ERROR_ILLEGAL_ADDRESS") => "hipErrorIllegalAddress",
        (Api::Hip, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED") => "hipErrorStreamCaptureUnsupported",
        (Api::Cuda | Api::Hip | Api::Cpu, _) => error,
    }
}

/// The bytes that a launch asks for where a block needs that many: the blocks of AMD's binaries have theirs by themselves.
pub fn asked(bytes: u32) -> u32 {
    match api() {
        Api::Cuda => bytes,
        Api::Hip | Api::Cpu => 0,
    }
}

pub fn info(name: &str, params: &[ParamKind]) -> KernelInfo {
    KernelInfo {
        name: name.into(),
        threads: 128,
        shared_bytes: 0,
        blocks_per_program: 1,
        params: params.to_vec(),
        messages: Arc::default(),
        maps: vec![],
        has_grid_barrier: false,
    }
}

/// What the driver loads: for the one of these tests a word, for the real one the kernels as PTX.
pub fn image() -> Arc<[u8]> {
    let fake = std::env::var_os("FAKE_CUDA").is_some();
    if fake { b"image"[..].into() } else { include_bytes!("kernels.ptx")[..].into() }
}

pub fn kernel(name: &str, params: &[ParamKind]) -> Kernel {
    Module::lazy(image()).kernel(info(name, params))
}

/// A compiler for kernels that the driver has by name.
#[derive(Default)]
pub struct ByName {
    /// How often it was asked.
    pub calls: AtomicUsize,
    /// What was known of the parameters at the last time.
    pub facts: Mutex<Vec<ArgFacts>>,
    /// Bytes of shared memory of each kernel.
    pub shared: u32,
    /// What each kernel may say.
    pub messages: Arc<[Message]>,
    /// Whether programs meet.
    pub has_grid_barrier: bool,
}

impl Compile for ByName {
    fn target(&self, _name: &str) -> Target {
        Target::CPU
    }

    fn compile(
        &self,
        module: &TileModule,
        entry: FuncId,
        options: &CompileOptions,
    ) -> Result<Binary, Vec<Diagnostic>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.facts.lock().unwrap() = options.facts.clone();
        assert!(["sm_80", "sm_90a", "gfx90a"].contains(&options.target.as_str()));
        let name = module.funcs[entry].name.split(['[', '.']).next().unwrap();
        // With a workspace that is not zeroed before each launch, the same kernel.
        let name = name.strip_suffix("_on").unwrap_or(name).to_string();
        if name == "refused" {
            let span = tk_syntax::Span::default();
            return Err(vec![Diagnostic::error(codes::NOT_ON_TARGET, span, "it is refused", "")]);
        }
        Ok(Binary {
            name,
            image: image(),
            threads: options.warps * 32,
            shared_bytes: self.shared,
            blocks_per_program: 1,
            params: params(module, entry).unwrap(),
            messages: self.messages.clone(),
            maps: vec![],
            has_grid_barrier: self.has_grid_barrier,
        })
    }
}

pub const PROGRAM: &str = r#"
kernel twice(x: mut view[f32, 1]) grid(x.shape[0]) { }
kernel how[n: i32 = 10](out: *mut i32) grid(n, 3) launch(warps = 8) { }
kernel rotate(table: *mut *mut f32, n: i32) { }
kernel add(x: *mut f32, v: f32) scratch(work: *mut f32, 1, zeroed = true) { }
kernel add_on(x: *mut f32, v: f32) scratch(work: *mut f32, 1, zeroed = true, restored = true) { }
kernel wild(x: *mut f32, n: i32) { }
kernel slow(x: *mut f32) { }
kernel refused(x: *mut f32) { }
kernel missing(x: *mut f32) { }
kernel says(x: *mut i32) grid(2) { }
kernel fails(x: *mut i32) grid(2, 2) { }
kernel says_and_fails(x: *mut i32) { }
kernel meets(x: *mut i32, n: i32 = 1) grid(n) launch(cooperative = true) { }
"#;

pub struct Text;

impl tk_sema::Loader for Text {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "x.tk" { Ok(PROGRAM.to_string()) } else { Err(format!("there is no file {path}")) }
    }
}

pub fn session() -> Session {
    let checked = tk_sema::check(&Text, "x.tk");
    let errors: Vec<_> = checked.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    Session::new(checked)
}

pub fn backed(compiler: ByName) -> (Session, Arc<Backend>, Arc<ByName>) {
    let compiler = Arc::new(compiler);
    let backend = Arc::new(Backend::new(open(), compiler.clone()).unwrap());
    (session().on(backend.clone()), backend, compiler)
}

/// A tensor in host memory as an argument.
pub fn tensor(memory: &Memory, dtype: DType, bytes: Vec<u8>) -> (tk_interp::BufferId, Argument) {
    let n = (bytes.len() / dtype.bytes()) as i64;
    let buffer = memory.alloc(bytes);
    let host = HostArg::Tensor { dtype, shape: vec![n], strides: vec![1] };
    (buffer, Argument { host, place: Some(At::View { buffer, offset: 0, shape: vec![n], strides: vec![1] }) })
}

pub fn number(v: Scalar) -> Argument {
    Argument { host: HostArg::Scalar(v), place: None }
}

pub fn launch(session: &Session, kernel: &str, args: &[Argument], memory: &Memory) -> Result<(), String> {
    let id = kernel_named(&session.checked().hir, kernel).unwrap();
    match session.launch(id, args, &[], memory) {
        Ok(_) => Ok(()),
        Err(wrong) => Err(format!("{}: {}", wrong[0].code, wrong[0].message)),
    }
}

pub fn floats(v: &[f32]) -> Vec<u8> {
    v.iter().flat_map(|f| f.to_le_bytes()).collect()
}

pub fn read(memory: &Memory, id: tk_interp::BufferId) -> Vec<f32> {
    let bytes = memory.read(id).unwrap();
    bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}
