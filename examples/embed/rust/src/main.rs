//! Kernels as part of a Rust program: softmax of rows and a matrix product, compared with a reference on the host.
//!
//! On a machine without a GPU it says why there is none, and runs the same kernels on the CPU.

#![forbid(unsafe_code)]

use std::error::Error;

use tk::half::{bf16, f16};
use tk::{Device, Tensor};

tk::include_kernels!("softmax");
tk::include_kernels!("matmul");

/// Rows and columns of the softmax; the extents of the product.
const ROWS: usize = 37;
const COLUMNS: usize = 1000;
const M: usize = 129;
const N: usize = 100;
const K: usize = 257;

/// Multiples of 1/8 from -2 to 2, which every float type holds.
fn values(count: usize) -> impl Iterator<Item = f32> {
    let mut state = 1u32;
    (0..count).map(move |_| {
        // The constants of Numerical Recipes' linear congruential generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 27) as f32 / 8.0 - 2.0
    })
}

fn softmax_reference(x: &[f16]) -> Vec<f64> {
    let row = |x: &[f16]| {
        let most = x.iter().map(|v| v.to_f64()).fold(f64::NEG_INFINITY, f64::max);
        let e: Vec<f64> = x.iter().map(|v| (v.to_f64() - most).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.into_iter().map(move |v| v / sum).collect::<Vec<f64>>()
    };
    x.chunks(COLUMNS).flat_map(row).collect()
}

fn product_reference(a: &[bf16], b: &[bf16]) -> Vec<f64> {
    let one = |i: usize, j: usize| (0..K).map(|k| a[i * K + k].to_f64() * b[k * N + j].to_f64()).sum();
    (0..M).flat_map(|i| (0..N).map(move |j| one(i, j))).collect()
}

/// Fails where a result is further from the reference than its type explains.
fn compare(what: &str, found: &[f64], wanted: &[f64], relative: f64) -> Result<(), Box<dyn Error>> {
    let worst = found.iter().zip(wanted).map(|(f, w)| (f - w).abs() / (w.abs() + 1e-3)).fold(0.0, f64::max);
    println!("{what}: {} elements, largest relative error {worst:.2e}", found.len());
    if found.len() == wanted.len() && worst <= relative {
        Ok(())
    } else {
        Err(format!("{what} is wrong").into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let x: Vec<f16> = values(ROWS * COLUMNS).map(f16::from_f32).collect();
    let a: Vec<bf16> = values(M * K).map(bf16::from_f32).collect();
    let b: Vec<bf16> = values(K * N).map(bf16::from_f32).collect();
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no GPU: {error}");
            println!("running on the CPU");
            Device::cpu()?
        }
    };
    let (y, c) = run(&device, &x, &a, &b)?;
    let y: Vec<f64> = y.into_iter().map(f16::to_f64).collect();
    let c: Vec<f64> = c.into_iter().map(bf16::to_f64).collect();
    compare("softmax", &y, &softmax_reference(&x), 2e-3)?;
    compare("matmul", &c, &product_reference(&a, &b), 1e-2)
}

type Outputs = (Vec<f16>, Vec<bf16>);

fn run(device: &Device, x: &[f16], a: &[bf16], b: &[bf16]) -> Result<Outputs, Box<dyn Error>> {
    let stream = device.stream()?;
    let (softmax, matmul) = (Softmax::new(device)?, Matmul::new(device)?);
    let shape = |m: usize, n: usize| [m as i64, n as i64];
    let x = Tensor::from_slice(device, &stream, x, shape(ROWS, COLUMNS))?;
    let mut y = Tensor::<f16, 2>::empty(device, x.shape())?;
    let a = Tensor::from_slice(device, &stream, a, shape(M, K))?;
    let b = Tensor::from_slice(device, &stream, b, shape(K, N))?;
    let mut c = Tensor::<bf16, 2>::empty(device, shape(M, N))?;
    // Launches that are recorded once are started together.
    let mut graph = stream.capture(|| {
        softmax.softmax(&stream, x.view(), y.view_mut())?;
        matmul.matmul(&stream, a.view(), b.view(), None, c.view_mut())
    })?;
    graph.launch(&stream)?;
    Ok((y.to_vec(&stream)?, c.to_vec(&stream)?))
}
