//! What is said of machines, good ones and others.

use std::sync::Arc;

use tk_bundle::{Dimension, TensorMap, Word};
use tk_ops::DType;
use tk_runtime::compile::ParamKind;
use tk_runtime::gpu::{Api, Args, Backend, Device, Module, probe};

use super::process::on;
use crate::on_gpu::support::{ByName, image, info, kernel};

#[test]
fn a_machine_is_described() {
    on("", || {
        let found = probe(Api::Cuda);
        assert!(found.iter().all(|p| p.works));
        let lines: Vec<String> = found.into_iter().map(|p| p.text).collect();
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
            "there is no NVIDIA GPU 1: there is 1, counted from 0; \
             `nvidia-smi -L` lists them; CUDA_VISIBLE_DEVICES hides some"
        );
    });
}

#[test]
fn a_matrix_is_described_to_the_copy_engine() {
    on("", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        let [extent, stride] = [DType::I32, DType::I64].map(ParamKind::Scalar);
        let mut info = info("mapped", &[ParamKind::Pointer, extent, extent, stride, stride]);
        info.maps = vec![TensorMap {
            address: 0,
            dimensions: vec![
                Dimension { extent: Word::Value(72), stride: Word::Value(1), before: false },
                Dimension { extent: Word::Passed(1), stride: Word::Passed(3), before: false },
                Dimension { extent: Word::Value(1 << 30), stride: Word::Passed(3), before: true },
            ],
            dtype: "f16".into(),
            lines: 48,
            span: 128,
        }];
        let kernel = Module::lazy(image()).kernel(info);
        let out = device.alloc(4096).unwrap();
        let view = |rows: i32, stride: i64| {
            let mut args = Args::new();
            args.push_ptr(out.address()).push_i32(rows).push_i32(72).push_i64(stride).push_i64(1);
            args
        };
        // Two bytes, rank 3, a swizzle over 128 bytes; extents and box with the fastest first, strides in bytes.
        for rows in [100, 101, 100] {
            kernel.launch(&stream, [1; 3], &view(rows, 80)).unwrap();
            let mut words = [0u64; 12];
            out.copy_to(&stream, &mut words).unwrap();
            let (extents, strides) = ([72, rows as u64, 1 << 30, 0, 0], [160, 160, 0, 0]);
            // The last dimension begins one extent before the address.
            let begin = out.address().wrapping_sub(160 << 30);
            let (head, sizes) = ([0x3_0301, begin], [64 | 48 << 12 | 1 << 24]);
            assert_eq!(words.as_slice(), [head.as_slice(), &extents, &strides, &sizes].concat());
        }
        let error = kernel.launch(&stream, [1; 3], &view(100, 0)).unwrap_err();
        assert_eq!(
            error.sentence,
            format!(
                "kernel `mapped` cannot create a tensor map for an argument: the driver rejects a tensor of \
                 f16 at {:#x} with extents [72, 100, 1073741824] and strides of [2, 0, 0] bytes \
                 (error 1)",
                out.address()
            )
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
        assert_eq!(probe(Api::Cuda).len(), 1);
    });
}

#[test]
fn a_machine_without_a_driver() {
    match Device::open(0) {
        Err(error) if error.code.is_none() && std::env::var_os("FAKE_CUDA").is_none() => assert_eq!(
            error.to_string(),
            "no NVIDIA driver on this machine: library `libcuda.so` not found; \
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
    on("former", || {
        let device = Device::open(0).unwrap();
        let error = Backend::new(device, Arc::new(ByName::default())).unwrap_err();
        assert_eq!(
            error.sentence,
            "kernels cannot be built for the Paper GPU: it has compute capability 7.0"
        );
    });
}

#[test]
fn a_gpu_that_is_newer_than_the_targets_runs_ptx() {
    on("next", || {
        let device = Device::open(0).unwrap();
        assert_eq!((device.target(), device.targets()), (Some("compute_80"), &["compute_80"][..]));
        assert!(Backend::new(device, Arc::new(ByName::default())).is_ok());
    });
}

#[test]
fn binaries_for_a_gpu_come_before_ptx() {
    on("", || assert_eq!(Device::open(0).unwrap().targets(), ["sm_90a", "compute_80"]));
}

#[test]
fn binaries_for_just_this_gpu_come_before_those_of_its_generation() {
    on("ada", || assert_eq!(Device::open(0).unwrap().targets(), ["sm_89", "sm_80", "compute_80"]));
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
        assert!(load(b"noise", "how").contains("it is not a GPU binary, or a damaged one (CUDA error 200)"));
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
fn a_gpu_that_does_not_come_back() {
    on("gone", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        kernel("wild", &[]).launch(&stream, [1; 3], &Args::new()).unwrap();
        stream.synchronize().unwrap_err();
        let error = device.recover().unwrap_err();
        assert!(error.sentence.starts_with("the GPU does not recover after a failed kernel"), "{error}");
        assert_eq!(error.fix, "restart the program");
    });
}
