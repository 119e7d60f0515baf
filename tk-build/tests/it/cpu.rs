//! The CPU as a device: what a GPU does with a bundle, the interpreter does too, with the same program.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use tk::{Arg, Bundle, DType, Device, Kernels, Stream, Tensor, View};

/// Kernels for each thing that a launch may need.
const SOURCE: &str = "
kernel scaled[T: f16 | f32](x: view[T, 2], by: view[T, 1]?, y: mut view[T, 2], factor: f32 = 2.0)
    grid(x.shape[0])
    require(x.shape == y.shape)
{
    let row = program_id(0);
    let mut v = x.load([row, 0], [1, 16]) as f32 * factor;
    if let b = by { v = v + (b.load([0], [16]) as f32)[None, :]; }
    y.store([row, 0], v as T);
}
export scaled[T = [f16, f32]];

kernel says(x: view[i32, 1]) grid(x.shape[0]) {
    let v = x.load([program_id(0)]);
    print(\"element\", program_id(0), v);
    assert(v < 100, \"too large\");
}

kernel with_memory(y: mut view[i32, 1]) grid(4) scratch(count: *mut i32, 1, zeroed = true) {
    let before = atomic_add(count, 1, order = acq_rel);
    if before == 3 { y.store([0], before + 1); }
}

kernel pointers(x: *f32, y: *mut f32, n: i32) {
    let i = arange(0, 16);
    store(y + i, load(x + i, i < n) + 1.0, i < n);
}

export pointers;
export says;
export with_memory;
";

struct Fixture {
    folder: PathBuf,
    device: Device,
    stream: Stream,
    kernels: Kernels,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn fixture(name: &str) -> Fixture {
    let folder = std::env::temp_dir().join(format!("tk-cpu-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("kernels.tk");
    std::fs::write(&source, SOURCE).unwrap();
    tk_build::Build::new(&source).target("sm_80").out(&folder).try_compile().unwrap();
    let device = Device::cpu().unwrap();
    let stream = device.stream().unwrap();
    let bundle = Bundle::open(&folder.join("kernels.tkb")).unwrap();
    let kernels = Kernels::new(device.clone(), bundle.into());
    Fixture { folder, device, stream, kernels }
}

impl Fixture {
    fn of(&self, values: &[f32], shape: [i64; 2]) -> Tensor<f32, 2> {
        Tensor::from_slice(&self.device, &self.stream, values, shape).unwrap()
    }
}

#[test]
fn arguments_of_every_kind() {
    if crate::without_ptxas() {
        return;
    }
    let f = fixture("arguments");
    let (x, y) = (f.of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]), f.of(&[0.0; 6], [3, 2]));
    let by = Tensor::<f32, 1>::from_slice(&f.device, &f.stream, &[10.0, 20.0], [2]).unwrap();
    let launch = |args: &[Arg<'_>]| f.kernels.launch(&f.stream, "scaled", args, &[]).unwrap();
    launch(&[x.view().arg(), Arg::Absent, y.view().arg()]);
    assert_eq!(y.to_vec(&f.stream).unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    launch(&[x.view().arg(), by.view().arg(), y.view().arg(), 3.0f32.into()]);
    assert_eq!(y.to_vec(&f.stream).unwrap(), [13.0, 26.0, 19.0, 32.0, 25.0, 38.0]);
    // A part of a tensor, with strides: the second column of x, turned around.
    let part = View::<f32, 2>::new(x.buffer(), [1, 3]).strided([1, 2]).offset(1);
    let out = f.of(&[0.0; 3], [1, 3]);
    launch(&[part.arg(), Arg::Absent, out.view().arg(), 1.0f32.into()]);
    assert_eq!(out.to_vec(&f.stream).unwrap(), [2.0, 4.0, 6.0]);
    // Nothing to do, on memory that is none.
    let none = Tensor::<f32, 2>::empty(&f.device, [0, 5]).unwrap();
    launch(&[none.view().arg(), Arg::Absent, none.view().arg()]);
    // Pointers.
    let (address, bytes) = (x.buffer().address(), x.buffer().len());
    let pointer = |address| Arg::Tensor { address, bytes, dtype: DType::F32, shape: &[], strides: None };
    let args = [pointer(address), pointer(y.buffer().address()), 2i32.into()];
    f.kernels.launch(&f.stream, "pointers", &args, &[]).unwrap();
    assert_eq!(y.to_vec(&f.stream).unwrap()[..3], [2.0, 3.0, 19.0]);
}

#[test]
fn what_was_recorded_is_done_when_it_is_replayed() {
    if crate::without_ptxas() {
        return;
    }
    let f = fixture("graph");
    let (x, y) = (f.of(&[1.0; 4], [2, 2]), f.of(&[0.0; 4], [2, 2]));
    let launch = |from: &Tensor<f32, 2>, to: &Tensor<f32, 2>| {
        f.kernels.launch(&f.stream, "scaled", &[from.view().arg(), Arg::Absent, to.view().arg()], &[])
    };
    let mut graph = f
        .stream
        .capture(|| {
            launch(&x, &y)?;
            launch(&y, &x)
        })
        .unwrap();
    assert_eq!(x.to_vec(&f.stream).unwrap(), [1.0; 4]);
    graph.launch(&f.stream).unwrap();
    graph.launch(&f.stream).unwrap();
    assert_eq!(x.to_vec(&f.stream).unwrap(), [16.0; 4]);
    // Waiting has no meaning while work is recorded.
    assert!(f.stream.capture(|| f.stream.synchronize()).is_err());
    let ignored = f.stream.capture(|| {
        let _ = x.buffer().copy_from(&f.stream, &[9.0f32; 4]);
        Ok::<(), tk::CudaError>(())
    });
    assert!(ignored.unwrap_err().to_string().contains("cannot wait for recorded work"));
    let pinned = f.stream.capture(|| {
        let _ = x.buffer().copy_to_pinned(&f.stream, f.device.pinned(16)?);
        Ok::<(), tk::CudaError>(())
    });
    assert!(pinned.unwrap_err().to_string().contains("cannot wait for recorded work"));
    // A recording in a recording is refused, and the outer one goes on.
    let mut outer = f
        .stream
        .capture(|| {
            assert!(f.stream.capture(|| Ok::<(), tk::CudaError>(())).is_err());
            launch(&x, &y)
        })
        .unwrap();
    assert_eq!(y.to_vec(&f.stream).unwrap(), [8.0; 4]);
    outer.launch(&f.stream).unwrap();
    assert_eq!(y.to_vec(&f.stream).unwrap(), [32.0; 4]);
    // Pinned memory goes there and back.
    let mut host = f.device.pinned(16).unwrap();
    host.as_mut_slice::<f32>().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    let host = x.buffer().copy_from_pinned(&f.stream, host).unwrap().wait().unwrap();
    drop(host);
    assert_eq!(x.to_vec(&f.stream).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert!(f.device.pinned(1 << 50).is_err());
}

#[test]
fn messages_workspaces_and_failures() {
    if crate::without_ptxas() {
        return;
    }
    let f = fixture("messages");
    let x = Tensor::<i32, 1>::from_slice(&f.device, &f.stream, &[7, 8], [2]).unwrap();
    f.kernels.launch(&f.stream, "says", &[x.view().arg()], &[]).unwrap();
    let said = f.kernels.printed();
    assert!(said.contains("element 0 7") && said.contains("element 1 8"), "{said}");
    let y = Tensor::<i32, 1>::from_slice(&f.device, &f.stream, &[0], [1]).unwrap();
    f.kernels.launch(&f.stream, "with_memory", &[y.view().arg()], &[]).unwrap();
    assert_eq!(y.to_vec(&f.stream).unwrap(), [4]);
    // An assertion is the error of its launch, and the device goes on.
    let bad = Tensor::<i32, 1>::from_slice(&f.device, &f.stream, &[700], [1]).unwrap();
    let error = f.kernels.launch(&f.stream, "says", &[bad.view().arg()], &[]).unwrap_err().to_string();
    assert!(error.contains("`says") && error.contains("too large"), "{error}");
    f.kernels.launch(&f.stream, "says", &[x.view().arg()], &[]).unwrap();
    // Shapes that do not fit, and more memory than exists.
    let (a, b) = (f.of(&[0.0; 4], [2, 2]), f.of(&[0.0; 6], [3, 2]));
    let fails = |x: Arg<'_>, y: Arg<'_>| {
        f.kernels.launch(&f.stream, "scaled", &[x, Arg::Absent, y], &[]).unwrap_err().to_string()
    };
    let error = fails(a.view().arg(), b.view().arg());
    assert!(error.contains("x.shape == y.shape"), "{error}");
    let error = f.device.alloc(1 << 50).unwrap_err().to_string();
    assert!(error.contains("1125899906842624 bytes"), "{error}");
    let error = fails(Arg::foreign(64, DType::F32, &[2, 2], &[2, 1]), a.view().arg());
    assert!(error.contains("the address 0x40 of an argument is in no buffer"), "{error}");
    assert!(f.device.free_bytes().unwrap() > 0 && f.device.name() == "CPU");
}
