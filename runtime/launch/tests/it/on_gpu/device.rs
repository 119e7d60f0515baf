//! Memory and kernels by themselves.

use tk_ops::DType;
use tk_runtime::compile::ParamKind;
use tk_runtime::gpu::{Args, CudaError, Device, Module};

use super::support::{asked, image, info, kernel, named, open};

pub fn memory_is_copied_there_and_back() {
    let device = open();
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
    assert!(first.elapsed_ms(&other.record().unwrap()).unwrap() > 0.0);

    x.fill_zero(&stream).unwrap();
    x.copy_to(&stream, &mut host).unwrap();
    assert_eq!(host, [0.0; 4]);
    let short = x.copy_from(&stream, &[0.0f32; 5]).unwrap_err();
    assert_eq!(short.sentence, "cannot copy 20 bytes: the buffer on the GPU has 16");
    let large = device.alloc(1 << 40).unwrap_err();
    assert_eq!(
        large.sentence,
        format!(
            "cannot allocate 1099511627776 bytes on the GPU: the GPU has not enough free memory ({})",
            named("CUDA_ERROR_OUT_OF_MEMORY")
        )
    );
    assert!(device.alloc(0).unwrap().is_empty());
}

pub fn a_kernel_gets_its_arguments_and_the_grid() {
    let device = open();
    let stream = device.stream().unwrap();
    let out = device.alloc(32).unwrap();
    let mut wanted = info("how", &[ParamKind::Pointer]);
    let shared = device.shared_bytes().min(100 << 10);
    (wanted.shared_bytes, wanted.blocks_per_program) = (shared, 4);
    let kernel = Module::lazy(image()).kernel(wanted);
    kernel.fits(&device).unwrap();
    let mut args = Args::new();
    args.push_ptr(out.address());
    let mut seen = [0i32; 8];
    kernel.launch(&stream, [10, 3, 1], &args).unwrap();
    out.copy_to(&stream, &mut seen).unwrap();
    // Four blocks of each program lie next to each other.
    assert_eq!(seen, [40, 3, 1, 128, asked(shared) as i32, 10, 3, 1]);
    kernel.launch_cooperative(&stream, [8, 1, 1], &args).unwrap();
    out.copy_to(&stream, &mut seen).unwrap();
    assert_eq!(seen[..3], [32, 1, 1]);

    let says = |r: Result<(), CudaError>| r.unwrap_err().sentence;
    let over = |grid: [u32; 3]| says(kernel.launch(&stream, grid, &args));
    assert_eq!(
        over([1, 70_000, 1]),
        "the grid of kernel `how` has 70000 programs on axis 1, and a GPU takes at most 65535"
    );
    assert!(kernel.launch(&stream, [0, 70_000, 1], &args).is_ok());
    let together = says(kernel.launch_cooperative(&stream, [10_000, 1, 1], &args));
    assert!(
        together.starts_with("the 10000 programs of kernel `how` must run at the same time, as `cooperative"),
        "{together}"
    );
    assert!(together.ends_with(&format!(" on each of its {} multiprocessors", device.sms())), "{together}");
    assert_eq!(
        says(kernel.launch(&stream, [1; 3], &Args::new())),
        "kernel `how` takes 1 machine parameters, but 0 were given"
    );
}

pub fn a_kernel_that_fails_is_named_and_the_device_recovers() {
    let device = open();
    let (stream, buffer) = (device.stream().unwrap(), device.alloc(64).unwrap());
    let (good, wild) =
        (kernel("idle", &[]), kernel("wild", &[ParamKind::Pointer, ParamKind::Scalar(DType::I32)]));
    let mut at = Args::new();
    at.push_ptr(buffer.address());
    at.push_i32(7);
    good.launch(&stream, [1; 3], &Args::new()).unwrap();
    stream.synchronize().unwrap();
    wild.launch(&stream, [1; 3], &at).unwrap();
    let error = stream.synchronize().unwrap_err();
    let named = named("CUDA_ERROR_ILLEGAL_ADDRESS");
    let failed = format!("kernel `wild` failed: it accessed an address outside of all buffers ({named})");
    assert_eq!(
        error.to_string(),
        format!("{failed}; run it with `--device cpu --checked`, which reports the location")
    );
    let lost = format!("the device's context is lost: {failed}");
    assert_eq!(good.launch(&stream, [1; 3], &Args::new()).unwrap_err().sentence, lost);
    assert_eq!(device.alloc(4).unwrap_err().sentence, lost);
    assert_eq!(device.lost().unwrap().sentence, lost);

    if !comes_back(&device) {
        return;
    }
    assert_eq!(device.lost(), None);
    // What belonged to the old context stays lost; the kernel is loaded again in the new one.
    assert_eq!(buffer.fill_zero(&stream).unwrap_err().sentence, lost);
    let stream = device.stream().unwrap();
    good.launch(&stream, [1; 3], &Args::new()).unwrap();
    good.launch(&stream, [1; 3], &Args::new()).unwrap();
    wild.launch(&stream, [1; 3], &at).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.sentence.starts_with("one of the kernels `idle`, `wild` failed"), "{error}");
    device.recover().unwrap();
    device.stream().unwrap().synchronize().unwrap();
}

/// Returns true if a device works again after a failure. Some do not within one process (seen: an H200 after an
/// illegal address); then it says so, and what to do.
pub fn comes_back(device: &Device) -> bool {
    match device.recover() {
        Ok(()) => true,
        Err(error) => {
            assert!(error.sentence.starts_with("the GPU does not recover after a failed kernel"), "{error}");
            assert_eq!(error.fix, "restart the program");
            false
        }
    }
}
