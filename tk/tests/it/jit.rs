//! Source files that are compiled when their kernels are launched: on the CPU, and on a GPU where there is one.
//! TK_REQUIRE_DEVICE=cuda demands it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use tk::jit::Program;
use tk::{Device, Tensor};

const SCALE: &str = "\
kernel scale[BLOCK: i32 = 128](x: view[f32, 1], y: mut view[f32, 1], by: f32)
    grid(cdiv(x.shape[0], BLOCK))
    require(x.shape == y.shape)
{
    let at = program_id(0) * BLOCK;
    let v = x.load([at], [BLOCK]);
    assert(v >= 0.0, \"a negative number\");
    y.store([at], v * by);
}
";

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu().unwrap()];
    match Device::open(0) {
        Ok(device) => devices.push(device),
        Err(error) => {
            let required = std::env::var("TK_REQUIRE_DEVICE").unwrap_or_default();
            assert!(!required.split(',').any(|d| d.trim() == "cuda"), "{error}");
            eprintln!("on the CPU only: {error}");
        }
    }
    devices
}

/// A folder with the file, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, source: &str) -> (Folder, PathBuf) {
        let folder = std::env::temp_dir().join(format!("tk-jit-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("scale.tk");
        fs::write(&path, source).unwrap();
        (Folder(folder), path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_source_file_is_launched() {
    let (_folder, path) = Folder::new("launched", SCALE);
    for device in devices() {
        let stream = device.stream().unwrap();
        let program = Program::open(&device, &path).unwrap();
        let x = Tensor::from_slice(&device, &stream, &[1.5f32; 1000], [1000]).unwrap();
        let mut y = Tensor::<f32, 1>::empty(&device, [1000]).unwrap();
        let (from, to) = (x.view(), y.view_mut());
        program.launch(&stream, "scale", &[from.arg(), to.arg(), 2.0f32.into()]).unwrap();
        let mut site = program.site("scale", &[("BLOCK", "256")]).unwrap();
        site.launch(&stream, &[from.arg(), to.arg(), 4.0f32.into()]).unwrap();
        assert_eq!(y.to_vec(&stream).unwrap(), vec![6.0f32; 1000]);
    }
}

#[test]
fn a_launch_that_is_refused_or_fails_says_why() {
    let (_folder, path) = Folder::new("refused", SCALE);
    for device in devices() {
        let stream = device.stream().unwrap();
        let program = Program::open(&device, &path).unwrap();
        let x = Tensor::from_slice(&device, &stream, &[-1.0f32; 8], [8]).unwrap();
        let mut short = Tensor::<f32, 1>::empty(&device, [7]).unwrap();
        let refused =
            program.launch(&stream, "scale", &[x.view().arg(), short.view_mut().arg(), 2.0f32.into()]);
        assert!(refused.unwrap_err().to_string().contains("x.shape == y.shape"));
        let mut y = Tensor::<f32, 1>::empty(&device, [8]).unwrap();
        let failed = program.launch(&stream, "scale", &[x.view().arg(), y.view_mut().arg(), 2.0f32.into()]);
        assert!(failed.unwrap_err().to_string().contains("a negative number"));
    }
}

#[test]
fn a_file_with_errors_is_refused() {
    let (_folder, path) = Folder::new("wrong", "kernel scale(x: f32) { let y: i32 = x; }\n");
    let wrong = Program::open(&Device::cpu().unwrap(), Path::new(&path)).unwrap_err().to_string();
    assert!(wrong.contains("error[E0302]") && wrong.contains("scale.tk:1"), "{wrong}");
}
