//! What kernels say through control memory, and launches whose programs meet: the side of the host.

use std::sync::Arc;

use tk_ops::{DType, Scalar};
use tk_runtime::gpu::{Arg, Args, Device, Launcher};
use tk_tile::Loc;
use tk_tile::message::{Form, Kind, Message};

use super::process::on;
use crate::on_gpu::support::{ByName, PROGRAM, backed, launch, number, session, tensor};

/// What the kernels of `libcuda.rs` refer to by number.
fn messages() -> Arc<[Message]> {
    let start = PROGRAM.find("kernel fails").unwrap() as u32;
    let loc = Some(Loc { file: 0, start, end: start + 6 });
    let pointer = Form::Pointers { bytes: 4, shape: vec![] };
    let tile = Form::Numbers { dtype: DType::U8, shape: vec![3] };
    let one = Form::Numbers { dtype: DType::I32, shape: vec![] };
    let print = |text: &str, forms| Message { text: text.into(), kind: Kind::Print(forms), loc };
    let assert = Message { text: "too large".into(), kind: Kind::Assert(vec![2, 4]), loc };
    [print("x = {}", vec![pointer]), print("{} and {}", vec![tile, one]), assert].into()
}

fn saying() -> ByName {
    ByName { messages: messages(), ..ByName::default() }
}

pub fn lines() {
    let (session, _, _) = backed(saying());
    let memory = tk_interp::Memory::new();
    let (_, arg) = tensor(&memory, DType::I32, vec![0; 8]);
    // Twice: what was said is not said again.
    for _ in 0..2 {
        launch(&session, "says", std::slice::from_ref(&arg), &memory).unwrap();
        assert_eq!(
            session.printed(),
            "program 0, 0, 0: x = null\n\
             program 1, 0, 0: x = x + 1\n\
             program 1, 0, 0: [7, 8, 9] and -1\n\
             1 more lines are omitted\n"
        );
    }
}

#[test]
fn lines_are_in_the_order_of_programs_and_whole() {
    on("", lines);
}

#[test]
fn the_first_assert_that_fails_is_the_fault_and_the_device_lives() {
    on("", || {
        let (session, backend, _) = backed(saying());
        let memory = tk_interp::Memory::new();
        let (_, arg) = tensor(&memory, DType::I32, vec![0; 8]);
        let error = launch(&session, "fails", std::slice::from_ref(&arg), &memory).unwrap_err();
        assert_eq!(error, "E0708: assertion failed at element [0, 2]: too large");
        assert_eq!(session.printed(), "program 0, 0, 0: x = null\n2 more lines are omitted\n");
        assert!(backend.device().lost().is_none());
        launch(&session, "says", &[arg], &memory).unwrap();
        assert_eq!(session.printed().lines().count(), 4);
    });
}

#[test]
fn what_was_said_before_a_failure_is_kept() {
    on("", || {
        let (session, backend, _) = backed(saying());
        let memory = tk_interp::Memory::new();
        let (_, arg) = tensor(&memory, DType::I32, vec![0; 8]);
        let error = launch(&session, "says_and_fails", std::slice::from_ref(&arg), &memory).unwrap_err();
        assert!(error.contains("kernel `says_and_fails` failed: it accessed an address"), "{error}");
        assert_eq!(session.printed(), "program 0, 0, 0: x = null\n");
        assert!(backend.device().lost().is_some());
        launch(&session, "says", &[arg], &memory).unwrap();
        assert_eq!(session.printed().lines().count(), 4);
    });
}

#[test]
fn a_launcher_waits_for_what_a_kernel_says() {
    on("", || {
        let device = Device::open(0).unwrap();
        let launcher = Launcher::new(Arc::new(session()), device.clone(), Arc::new(saying())).unwrap();
        let stream = device.stream().unwrap();
        let x = device.alloc(8).unwrap();
        let args = [Arg::tensor(&x, DType::I32, &[2])];
        launcher.launch(&stream, "says", &args).unwrap();
        assert_eq!(launcher.printed().lines().nth(1), Some("program 1, 0, 0: x = x + 1"));
        let error = launcher.launch(&stream, "fails", &args).unwrap_err().to_string();
        let line = PROGRAM.lines().position(|l| l.starts_with("kernel fails")).unwrap() + 1;
        assert_eq!(
            error,
            format!(
                "E0708: assertion failed at element [0, 2]: too large; in the program with the ids 0, 1, 0; \
                 in kernel `fails`, x.tk:{line}:1"
            )
        );
        launcher.launch(&stream, "says", &args).unwrap();
    });
}

#[test]
fn programs_that_meet_begin_with_a_counter_of_zero() {
    on("", || {
        let device = Device::open(0).unwrap();
        let compiler = || ByName { has_grid_barrier: true, ..ByName::default() };
        let launcher = Launcher::new(Arc::new(session()), device.clone(), Arc::new(compiler())).unwrap();
        let stream = device.stream().unwrap();
        let x = device.alloc(4).unwrap();
        x.fill_zero(&stream).unwrap();
        for _ in 0..3 {
            launcher.launch(&stream, "meets", &[Arg::tensor(&x, DType::I32, &[1]), 264.into()]).unwrap();
        }
        let mut host = [0i32];
        x.copy_to(&stream, &mut host).unwrap();
        assert_eq!(host, [3]);
        let (session, backend, _) = backed(compiler());
        let memory = tk_interp::Memory::new();
        let (_, arg) = tensor(&memory, DType::I32, vec![0; 4]);
        for _ in 0..2 {
            let n = number(Scalar::int(DType::I32, 2));
            launch(&session, "meets", &[arg.clone(), n], &memory).unwrap();
        }
        let n = number(Scalar::int(DType::I32, 265));
        let error = launch(&session, "meets", &[arg, n], &memory).unwrap_err();
        assert!(
            error.starts_with(
                "E0708: the 265 programs of kernel `meets` must run at the same time, as `cooperative = true` \
                 requires, and the GPU holds 264: 2 on each of its 132 multiprocessors; it was launched with"
            ),
            "{error}"
        );
        assert!(backend.device().lost().is_none());
    });
}

#[test]
fn a_kernel_that_says_something_is_not_launched_bare() {
    on("", || {
        let device = Device::open(0).unwrap();
        let stream = device.stream().unwrap();
        let mut info = crate::on_gpu::support::info("says", &[]);
        info.messages = messages();
        let kernel = tk_runtime::gpu::Module::lazy(b"image"[..].into()).kernel(info);
        let error = kernel.launch(&stream, [1; 3], &Args::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "kernel `says` uses `print`, `assert` or `grid_barrier`, and has no memory for that; \
             launch it through a `Launcher` or a `Session`"
        );
    });
}
