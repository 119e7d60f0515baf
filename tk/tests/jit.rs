//! Source files that are compiled when their kernels are launched. Without a GPU the launch is left out, which is said, unless
//! TK_REQUIRE_DEVICE names `cuda`.
#![cfg(feature = "jit")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use tk::jit::Program;
use tk::{Device, Tensor};

#[test]
fn a_source_file_is_launched() {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            let required = std::env::var("TK_REQUIRE_DEVICE").unwrap_or_default();
            assert!(!required.split(',').any(|d| d.trim() == "cuda"), "{error}");
            eprintln!("left out: {error}");
            return;
        }
    };
    let stream = device.stream().unwrap();
    let folder = std::env::temp_dir().join(format!("tk-jit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("scale.tk");
    let source = "kernel scale[BLOCK: i32 = 128](x: view[f32, 1], y: mut view[f32, 1], by: f32)\n    \
                  grid(cdiv(x.shape[0], BLOCK))\n    require(x.shape == y.shape)\n{\n    \
                  let at = program_id(0) * BLOCK;\n    y.store([at], x.load([at], [BLOCK]) * by);\n}\n";
    std::fs::write(&path, source).unwrap();
    let program = Program::open(&device, &path).unwrap();
    let x = Tensor::from_slice(&device, &stream, &[1.5f32; 1000], [1000]).unwrap();
    let mut y = Tensor::<f32, 1>::empty(&device, [1000]).unwrap();
    let (from, to) = (x.view(), y.view_mut());
    program.launch(&stream, "scale", &[from.arg(), to.arg(), 2.0f32.into()]).unwrap();
    let mut site = program.site("scale", &[("BLOCK", "256")]).unwrap();
    site.launch(&stream, &[from.arg(), to.arg(), 4.0f32.into()]).unwrap();
    assert_eq!(y.to_vec(&stream).unwrap(), vec![6.0f32; 1000]);
    std::fs::write(&path, "kernel scale(x: f32) { let y: i32 = x; }\n").unwrap();
    let wrong = Program::open(&device, Path::new(&path)).unwrap_err().to_string();
    assert!(wrong.contains("error[E0302]") && wrong.contains("scale.tk:1"), "{wrong}");
    std::fs::remove_dir_all(folder).unwrap();
}
