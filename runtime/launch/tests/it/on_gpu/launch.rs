//! Launches by sessions and by Rust programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tk_interp::Memory;
use tk_ops::{DType, Scalar};
use tk_runtime::compile::ArgFacts;
use tk_runtime::device::Device as _;
use tk_runtime::gpu::{Arg, LaunchError, Launcher, Stream};

use super::support::{ByName, backed, floats, launch, named, number, open, read, session, tensor};

pub fn a_session_launches_on_the_gpu() {
    let (session, backend, compiler) = backed(ByName { shared: 1024, ..ByName::default() });
    let (facts, gpu) = (backend.place().facts, backend.device());
    assert_eq!((facts.sms, facts.smem), (gpu.sms().into(), gpu.shared_bytes().into()));
    let memory = Memory::new();
    let (x, twice) = tensor(&memory, DType::F32, floats(&[1.0, 2.0, 3.0]));
    launch(&session, "twice", std::slice::from_ref(&twice), &memory).unwrap();
    launch(&session, "twice", &[twice], &memory).unwrap();
    assert_eq!(read(&memory, x), [4.0, 8.0, 12.0]);
    // One binary for both; its facts are those of a pointer, an extent of 3 and a stride of 1.
    assert_eq!(compiler.calls.load(Ordering::Relaxed), 1);
    let facts = [(16, false, false), (1, false, true), (1, true, true)]
        .map(|(divisible, one, positive)| ArgFacts { divisible, one, positive });
    assert_eq!(*compiler.facts.lock().unwrap(), facts);

    let (out, how) = tensor(&memory, DType::I32, vec![0; 32]);
    launch(&session, "how", &[how], &memory).unwrap();
    let seen: Vec<i32> = memory.read(out).unwrap().chunks(4).map(|c| c[0].into()).collect();
    // 1024 bytes end with a zero.
    assert_eq!(seen, [10, 3, 1, 0, 0, 10, 3, 1]);

    let (work, target) = tensor(&memory, DType::F32, floats(&[1.0]));
    for _ in 0..2 {
        let args = [target.clone(), number(Scalar::float(DType::F32, 0.5))];
        launch(&session, "add", &args, &memory).unwrap();
    }
    assert_eq!(read(&memory, work), [2.0]);
}

pub fn pointers_in_memory_are_translated_both_ways() {
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
}

pub fn a_failing_launch_of_a_session_is_one_sentence_and_the_next_one_works() {
    let (session, backend, _) = backed(ByName::default());
    let memory = Memory::new();
    let (x, arg) = tensor(&memory, DType::F32, floats(&[1.0, 2.0]));
    let wild = launch(&session, "wild", &[arg.clone(), number(Scalar::int(DType::I32, 7))], &memory);
    assert_eq!(
        wild.unwrap_err(),
        format!(
            "E0708: kernel `wild` failed: it accessed an address outside of all buffers ({}); \
             it was launched with the grid [1, 1, 1], x: *mut f32, n = 7; \
             run it with `--device cpu --checked`, which reports the location",
            named("CUDA_ERROR_ILLEGAL_ADDRESS")
        )
    );
    assert!(backend.device().lost().is_some());
    if !super::device::comes_back(backend.device()) {
        return;
    }
    launch(&session, "twice", std::slice::from_ref(&arg), &memory).unwrap();
    assert_eq!(read(&memory, x), [2.0, 4.0]);
    assert_eq!(
        launch(&session, "refused", std::slice::from_ref(&arg), &memory).unwrap_err(),
        "E0805: it is refused"
    );
    let missing = launch(&session, "missing", &[arg], &memory).unwrap_err();
    assert!(missing.contains("kernel `missing` cannot be loaded"), "{missing}");
}

pub fn a_block_that_needs_more_shared_memory_than_there_is() {
    let (session, backend, _) = backed(ByName { shared: 300 << 10, ..ByName::default() });
    let memory = Memory::new();
    let (_, arg) = tensor(&memory, DType::F32, floats(&[1.0]));
    assert_eq!(
        launch(&session, "twice", &[arg], &memory).unwrap_err(),
        format!(
            "E0708: kernel `twice` needs 307200 bytes of shared memory for a block, and the GPU has {}; \
             use smaller tiles or fewer stages",
            backend.device().shared_bytes()
        )
    );
}

pub fn a_kernel_that_does_not_end() {
    let (session, backend, _) = backed(ByName::default());
    let session = session.with_timeout(Some(Duration::from_millis(20)));
    let memory = Memory::new();
    let (_, arg) = tensor(&memory, DType::F32, floats(&[1.0]));
    let error = launch(&session, "slow", std::slice::from_ref(&arg), &memory).unwrap_err();
    assert!(
        error.starts_with("E0708: kernel `slow` is still running on the GPU after 0.02 s; it was"),
        "{error}"
    );
    let next = launch(&session, "twice", &[arg], &memory).unwrap_err();
    assert!(next.contains("context is lost: kernel `slow` is still running"), "{next}");
    assert_eq!(
        backend.device().lost().unwrap().fix,
        "end this process, which is the only way to stop that kernel"
    );
}

pub fn a_launcher_plans_once_for_what_decides() {
    let device = open();
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

    // A number that no clause reads is written each time; a workspace is zero each time.
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
        "argument 0, f32[17], does not fit in its buffer of 64 bytes; \
         allocate more, or give the extents and strides that the buffer has"
    );
    assert_eq!(
        says(site.launch(&stream, &[])),
        "E0701: kernel `twice` takes 1 argument, but 0 were given; its parameters are `x`"
    );
    let other = says(site.launch(&stream, &[Arg::tensor(&x, DType::I32, &[4])]));
    assert!(other.starts_with("E0702: `x` has element type i32"), "{other}");
    assert_eq!(says(launcher.launch(&stream, "nobody", &[])), "E0701: there is no kernel `nobody`");
}

/// A kernel that breaks its promise shows who shares a workspace.
pub fn a_workspace_that_a_kernel_restores_is_zeroed_once_for_each_stream_and_recording() {
    let device = open();
    let launcher = Launcher::new(Arc::new(session()), device.clone(), Arc::new(ByName::default())).unwrap();
    let x = device.alloc(64).unwrap();
    let add = |stream: &Stream| {
        launcher.launch(stream, "add_on", &[Arg::tensor(&x, DType::F32, &[16]), 1.0f32.into()]).unwrap();
    };
    let sum = |stream: &Stream| {
        let mut host = [0.0f32; 16];
        x.copy_to(stream, &mut host).unwrap();
        x.fill_zero(stream).unwrap();
        host[0]
    };
    let (one, other) = (device.stream().unwrap(), device.stream().unwrap());
    sum(&one);
    (0..3).for_each(|_| add(&one));
    assert_eq!(sum(&one), 1.0 + 2.0 + 3.0);
    add(&other);
    assert_eq!(sum(&other), 1.0);
    let twice = || -> Result<(), LaunchError> {
        add(&one);
        add(&one);
        Ok(())
    };
    let mut graph = one.capture(twice).unwrap();
    graph.launch(&one).unwrap();
    assert_eq!(sum(&one), 1.0 + 1.0);
    graph.launch(&one).unwrap();
    assert_eq!(sum(&one), 2.0 + 2.0);
    add(&one);
    assert_eq!(sum(&one), 4.0);
}
