//! The same on a machine with an AMD GPU, and what is said of such machines.

use std::sync::Arc;

use tk_bundle::{Dimension, TensorMap, Word};
use tk_ops::DType;
use tk_runtime::compile::ParamKind;
use tk_runtime::gpu::{Api, Arg, Args, Backend, CudaError, Device, Kernels, Module, probe};

use super::messages;
use super::process::on_amd;
use crate::on_gpu;
use crate::on_gpu::shipped::twice;
use crate::on_gpu::support::{ByName, image, info};

fn refused() -> CudaError {
    Device::open_on(Api::Hip, 0).unwrap_err()
}

#[test]
fn memory_is_copied_there_and_back() {
    on_amd("", on_gpu::device::memory_is_copied_there_and_back);
}

#[test]
fn a_kernel_gets_its_arguments_and_the_grid() {
    on_amd("", on_gpu::device::a_kernel_gets_its_arguments_and_the_grid);
}

#[test]
fn a_kernel_that_fails_is_named_and_the_device_recovers() {
    on_amd("", on_gpu::device::a_kernel_that_fails_is_named_and_the_device_recovers);
}

#[test]
fn a_session_launches_on_the_gpu() {
    on_amd("", on_gpu::launch::a_session_launches_on_the_gpu);
}

#[test]
fn a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works() {
    on_amd("", on_gpu::launch::a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works);
}

#[test]
fn a_block_that_needs_more_shared_memory_than_there_is() {
    on_amd("", on_gpu::launch::a_block_that_needs_more_shared_memory_than_there_is);
}

#[test]
fn a_kernel_that_does_not_end() {
    on_amd("", on_gpu::launch::a_kernel_that_does_not_end);
}

#[test]
fn a_launcher_plans_once_for_what_decides() {
    on_amd("", on_gpu::launch::a_launcher_plans_once_for_what_decides);
}

#[test]
fn a_bundle_launches_and_a_graph_replays() {
    on_amd("", on_gpu::shipped::a_bundle_launches_and_a_graph_replays);
}

#[test]
fn lines_are_in_the_order_of_programs_and_whole() {
    on_amd("", messages::lines);
}

#[test]
fn a_machine_is_described() {
    on_amd("", || {
        let found = probe(Api::Hip);
        assert!(found.iter().all(|p| p.works));
        let lines: Vec<String> = found.into_iter().map(|p| p.text).collect();
        assert_eq!(
            lines,
            [
                "AMD runtime for HIP 6.1",
                "GPU 0: Paper GPU, architecture gfx90a, 104 multiprocessors, 64 KiB of shared memory, \
                 3.0 GiB free, target gfx90a"
            ]
        );
        let device = Device::open_on(Api::Hip, 0).unwrap();
        assert_eq!((device.name(), device.sms(), device.shared_bytes()), ("Paper GPU", 104, 65_536));
        assert_eq!((device.threads(), device.driver_version()), (1024, (6, 1)));
        assert_eq!((device.target(), device.architecture()), (Some("gfx90a"), "architecture gfx90a"));
        assert_eq!(
            Device::open_on(Api::Hip, 1).unwrap_err().to_string(),
            "there is no AMD GPU 1: there is 1, counted from 0; \
             `rocminfo` lists them; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide some"
        );
    });
}

#[test]
fn a_machine_without_a_gpu() {
    on_amd("none", || {
        assert_eq!(
            refused().to_string(),
            "no kernel can run: the runtime finds no AMD GPU (hipErrorNoDevice); look at `rocminfo`, at \
             HIP_VISIBLE_DEVICES and at who may open /dev/kfd, or use `--device cpu`"
        );
        assert_eq!(probe(Api::Hip).len(), 1);
    });
}

#[test]
fn a_machine_without_a_library() {
    match Device::open_on(Api::Hip, 0) {
        Err(error) if error.code.is_none() && std::env::var_os("FAKE_CUDA").is_none() => assert_eq!(
            error.to_string(),
            "no AMD runtime on this machine: library `libamdhip64.so` not found; \
             install ROCm, or use `--device cpu`"
        ),
        _other => eprintln!("left out: this machine has the library"),
    }
}

#[test]
fn a_library_that_lacks_a_function() {
    on_amd("incomplete", || {
        assert_eq!(refused().to_string(), "the AMD runtime is too old: it has no `hipInit`; update ROCm");
    });
}

#[test]
fn a_library_that_is_too_old() {
    on_amd("old", || {
        assert_eq!(
            refused().to_string(),
            "the AMD runtime is too old: it is for HIP 5.2, and kernels need 5.5; update ROCm"
        );
    });
}

#[test]
fn a_gpu_without_a_target() {
    on_amd("next", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        assert_eq!(device.target(), None);
        let error = Backend::new(device, Arc::new(ByName::default())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernels cannot be built for the Paper GPU: it has architecture gfx1030; \
             use one of gfx90a, gfx942, gfx950, gfx1100 or gfx1201, or `--device cpu`"
        );
    });
}

#[test]
fn a_gpu_that_the_kernel_driver_does_not_know() {
    on_amd("unplugged", || {
        let CudaError { sentence, fix, .. } = refused();
        let start =
            "the architecture of the AMD GPU at 0000:c1:00 is unknown: the kernel driver does not report it";
        assert!(sentence.starts_with(start), "{sentence}");
        assert!(sentence.ends_with("/class/kfd/kfd/topology/nodes"), "{sentence}");
        assert_eq!(fix, "load the kernel driver `amdgpu`, and let this system see /sys of its host");
    });
}

#[test]
fn a_gpu_of_which_only_the_runtime_knows() {
    on_amd("contained", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        assert_eq!((device.target(), device.architecture()), (Some("gfx1100"), "architecture gfx1100"));
    });
}

#[test]
fn a_grid_of_more_threads_than_the_runtime_counts() {
    on_amd("", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        let stream = device.stream().unwrap();
        let mut wide = info("how", &[]);
        wide.threads = 256;
        let kernel = Module::lazy(image()).kernel(wide);
        assert_eq!(
            kernel.launch(&stream, [1 << 24, 1, 1], &Args::new()).unwrap_err().to_string(),
            "the grid of kernel `how` has 16777216 programs on axis 0, and a GPU takes at most 16777215; \
             put the longest axis of the grid first"
        );
    });
}

#[test]
fn a_code_object_that_does_not_fit() {
    on_amd("", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        let stream = device.stream().unwrap();
        let load = |image: &[u8]| {
            let kernel = Module::lazy(image.into()).kernel(info("how", &[]));
            kernel.launch(&stream, [1; 3], &Args::new()).unwrap_err().to_string()
        };
        assert_eq!(
            load(b"image for another GPU"),
            "kernel `how` cannot be loaded: its binary is for another GPU architecture (hipErrorNoBinaryForGpu); \
             build the kernel for this GPU: `tk build --target` names the targets"
        );
        assert!(load(b"noise").contains("it is not a GPU binary, or a damaged one (HIP error 200)"));
        let fits = |threads: u32, shared_bytes: u32| {
            let mut large = info("how", &[]);
            (large.threads, large.shared_bytes) = (threads, shared_bytes);
            Module::lazy(image()).kernel(large).fits(&device)
        };
        fits(1024, 64 << 10).unwrap();
        assert_eq!(
            fits(1024, 96 << 10).unwrap_err().sentence,
            "kernel `how` needs 98304 bytes of shared memory for a block, and the GPU has 65536"
        );
        assert_eq!(
            fits(2048, 0).unwrap_err().to_string(),
            "kernel `how` has blocks of 2048 threads, and the GPU takes at most 1024; \
             use fewer warps: `launch(warps = n)`"
        );
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_bundle_for_other_gpus() {
    on_amd("", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        let (stream, x) = (device.stream().unwrap(), device.alloc(64).unwrap());
        let kernels: Kernels = twice(&device, "sm_90a");
        let error = kernels.launch(&stream, "twice", &[Arg::tensor(&x, DType::F32, &[16])], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `twice` is shipped for `sm_90a`, and this device runs none of it; \
             build it with --target gfx90a"
        );
    });
}

#[test]
fn a_gpu_without_a_copy_engine_gets_no_tensor_map() {
    on_amd("", || {
        let device = Device::open_on(Api::Hip, 0).unwrap();
        let (stream, x) = (device.stream().unwrap(), device.alloc(4096).unwrap());
        let mut info = info("mapped", &[ParamKind::Pointer]);
        let dimension = Dimension { extent: Word::Value(64), stride: Word::Value(1), before: false };
        info.maps = vec![TensorMap {
            address: 0,
            dimensions: vec![dimension.clone(), dimension],
            dtype: "f16".into(),
            lines: 8,
            span: 128,
        }];
        let mut args = Args::new();
        args.push_ptr(x.address());
        let error = Module::lazy(image()).kernel(info).launch(&stream, [1; 3], &args).unwrap_err();
        assert!(error.sentence.contains("cannot create a tensor map for an argument"), "{error}");
    });
}
