//! Launches by a bundle, and graphs.

use std::sync::Arc;

use tk_bundle::{
    Bundle, Expr, FORMAT, Guard, Kernel, Kind, Machine, Manifest, Operation, Param, ParamKind, Requirement,
    Variant, Versions, Writer,
};
use tk_ops::DType;
use tk_runtime::gpu::{Arg, CudaError, Device, Kernels, LaunchError};

use super::support::{image, named, open};

/// `twice` for rows of up to 64 elements, shipped for a target.
pub fn twice(device: &Device, target: &str) -> Kernels {
    let mut writer = Writer::default();
    let (binary, tile) = (writer.add(image().to_vec()), writer.add(b"nobody reads it".to_vec()));
    let apply = |op, args| Expr::Apply(Operation { op, bits: 64, args });
    let variant = Variant {
        target: target.into(),
        values: vec![tk_bundle::Value { name: "BLOCK".into(), value: "64".into() }],
        dtypes: vec![Some("f32".into())],
        entries: vec![],
        given: vec![],
        guard: vec![Guard {
            condition: apply(Kind::Le, vec![Expr::Extent(0, 0), Expr::Int(64)]),
            decides: Some("BLOCK".into()),
        }],
        require: vec![Requirement {
            condition: apply(Kind::Gt, vec![Expr::Extent(0, 0), Expr::Int(1)]),
            text: "x.shape[0] > 1".into(),
        }],
        grid: [Expr::Int(1), Expr::Int(1), Expr::Int(1)],
        symbol: "twice".into(),
        threads: 32,
        blocks_per_program: 1,
        shared_bytes: 0,
        cooperative: false,
        passed: vec![Machine::Address(0), Machine::Extent(0, 0, 32), Machine::Stride(0, 0)],
        scratch: vec![],
        maps: vec![],
        control: 0,
        messages: vec![],
        registers: 16,
        static_shared_bytes: 0,
        stack_bytes: 0,
        blocks_per_sm: 32,
        spill_store_bytes: 0,
        spill_load_bytes: 0,
        remarks: vec![],
        binary,
        tile,
        listing: None,
    };
    let x = Param {
        name: "x".into(),
        kind: ParamKind::View { rank: 1, mutable: true, wide: false },
        optional: false,
        default: None,
        table: None,
    };
    let kernel = Kernel {
        name: "twice".into(),
        doc: String::new(),
        params: vec![x],
        choices: vec![],
        variants: vec![variant],
    };
    let versions = Versions { tk: "0.1.0".into(), ..Versions::default() };
    let bytes = writer.finish(&Manifest { format: FORMAT, versions, kernels: vec![kernel] });
    Kernels::new(device.clone(), Arc::new(Bundle::from_vec(bytes).unwrap()))
}

pub fn a_bundle_launches_and_a_graph_replays() {
    let device = open();
    let kernels = twice(&device, device.target().unwrap());
    let (stream, x) = (device.stream().unwrap(), device.alloc(64).unwrap());
    let read = || {
        let mut host = [0.0f32; 16];
        x.copy_to(&stream, &mut host).unwrap();
        (host[0], host[15])
    };
    x.copy_from(&stream, &[1.0f32; 16]).unwrap();
    let launch = |n: i64| kernels.launch(&stream, "twice", &[Arg::tensor(&x, DType::F32, &[n])], &[]);
    launch(16).unwrap();
    launch(8).unwrap();
    assert_eq!(read(), (4.0, 2.0));
    // Recording does nothing yet; each replay does all of it.
    let mut graph = stream.capture(|| launch(16).and_then(|()| launch(16))).unwrap();
    assert_eq!(read(), (4.0, 2.0));
    graph.launch(&stream).unwrap();
    graph.launch(&stream).unwrap();
    assert_eq!(read(), (64.0, 32.0));
    // What cannot be recorded leaves a stream that works.
    let waits = stream.capture::<CudaError>(|| stream.synchronize());
    assert!(waits.unwrap_err().to_string().contains(named("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")));
    launch(16).unwrap();
    assert_eq!(read(), (128.0, 64.0));

    let says = |r: Result<(), LaunchError>| r.unwrap_err().to_string();
    assert_eq!(says(launch(1)), "kernel `twice` requires `x.shape[0] > 1`, which does not hold");
    let long = device.alloc(4 * 65).unwrap();
    let arg = Arg::tensor(&long, DType::F32, &[65]);
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[arg], &[])),
        "no variant of kernel `twice` serves this launch: `BLOCK` is another value; shipped are `BLOCK=64`"
    );
    let arg = Arg::tensor(&x, DType::I32, &[4]);
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[arg], &[])),
        "no variant of kernel `twice` serves this launch: `x` is of i32; shipped are `BLOCK=64`"
    );
    let flat = Arg::tensor(&x, DType::F32, &[2, 2]);
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[flat], &[])),
        "`x` of kernel `twice` is a view of rank 1, and a tensor of rank 2 was given"
    );
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[Arg::Absent], &[])),
        "`x` of kernel `twice` must be given"
    );
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[arg, arg], &[])),
        "kernel `twice` takes 1 argument, but 2 were given; they are `x`"
    );
    assert_eq!(
        says(kernels.launch(&stream, "thrice", &[], &[])),
        "there is no kernel `thrice`; there are `twice`"
    );
    assert_eq!(
        says(kernels.launch(&stream, "twice", &[Arg::tensor(&x, DType::F32, &[4])], &[("BLOCK", "128")])),
        "`BLOCK` of kernel `twice` was built as 64 alone; an `export` with more values ships more"
    );
}
