//! Devices, memory and kernels by themselves: what works, and the sentence for what does not.

use std::sync::Arc;

use tk_runtime::compile::ParamKind;
use tk_runtime::cuda::{Args, Backend, Device, Module, probe};

use crate::support::{ByName, info, kernel, on};

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
fn a_machine_without_a_driver() {
    match Device::open(0) {
        Err(error) if error.code.is_none() && std::env::var_os("FAKE_CUDA").is_none() => assert_eq!(
            error.to_string(),
            "there is no NVIDIA driver on this machine: its library `libcuda.so` is not found; \
             install NVIDIA's driver, or use `--device cpu`"
        ),
        _other => eprintln!("left out: this machine has a driver"),
    }
}

#[test]
fn a_driver_that_lacks_a_function() {
    on("incomplete", || {
        assert_eq!(
            Device::open(0).unwrap_err().to_string(),
            "the NVIDIA driver is too old: it has no `cuInit`; update NVIDIA's driver"
        );
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
