//! Products of matrices: how fast they are, and how far from those in double precision.
//!
//! Guarantees that a product is timed only after its result was right: every element of a small one that no block
//! divides, and elements of the large one, whose memory held no numbers before. The inputs are those that `peers.py`
//! makes, to the bit.

use serde_json::{Value, json};
use tk_ops::{Buf, DType, Scalar};
use tk_runtime::gpu::{Arg, Buffer, CallSite, Clock, CudaError, Device, Launcher, Stream};
use tk_sema::contract::SetValue;

use crate::data::{Input, bell, many};
use crate::program::{Sets, ints, launcher, shown};
use crate::raw::Copies;
use crate::report::{Report, or_error};
use crate::{Args, Stop};

/// Elements of a large product that are compared.
const SAMPLES: usize = 1 << 14;
/// A product whose sizes no block divides.
const SMALL: [usize; 3] = [257, 131, 197];
/// Norm of the difference over the norm of the reference, at most: rounding to bf16 gives 2e-3.
const NORM: f64 = 4e-3;
/// Rows of a product of which the accuracy is looked at.
const ROWS: usize = 64;

/// One product, `[m, k]` by `[k, n]`.
#[derive(Clone, Debug)]
pub struct Product {
    /// Such as `matmul_f16_4096`.
    pub name: String,
    file: &'static str,
    kernel: &'static str,
    dtype: DType,
    out: DType,
    size: [usize; 3],
    given: Sets,
    /// What is tried beside what is given.
    others: Vec<Sets>,
}

/// The products whose time is measured.
pub fn products(quick: bool) -> Vec<Product> {
    let square = |n| [n, n, n];
    let blocks = ints(&[("BM", 128), ("BN", 128), ("BK", 32)]);
    let mut found = vec![Product {
        name: "matmul_ptr_f16_4096".to_string(),
        file: "examples/matmul_ptr.tk",
        kernel: "matmul_ptr",
        dtype: DType::F16,
        out: DType::F16,
        size: square(4096),
        given: blocks,
        others: if quick {
            vec![]
        } else {
            vec![
                ints(&[("warps", 8), ("stages", 4)]),
                ints(&[("BK", 64), ("stages", 4)]),
                ints(&[("BN", 256), ("BK", 64), ("warps", 8), ("stages", 3)]),
            ]
        },
    }];
    let sizes: &[usize] = if quick { &[4096] } else { &[1000, 2048, 4096, 8192] };
    for (name, dtype) in [("f16", DType::F16), ("bf16", DType::BF16)] {
        for n in sizes {
            found.push(Product {
                name: format!("matmul_{name}_{n}"),
                file: "stdlib/nn/matmul.tk",
                kernel: "matmul",
                dtype,
                out: dtype,
                size: square(*n),
                given: vec![],
                others: if quick { vec![] } else { blocks_of_library() },
            });
        }
    }
    found
}

fn blocks_of_library() -> Vec<Sets> {
    let sets = |(m, n, warps, stages): (usize, usize, usize, usize)| {
        ints(&[("BM", m), ("BN", n), ("BK", 64), ("warps", warps), ("stages", stages)])
    };
    [(128, 256, 8, 3), (128, 256, 8, 4), (256, 128, 8, 3), (128, 128, 4, 4), (128, 64, 4, 4), (64, 64, 4, 4)]
        .map(sets)
        .to_vec()
}

/// The products whose accuracy is measured: name, types of operands and result, what is given.
pub fn accuracies(quick: bool) -> Vec<Product> {
    let tf32 = vec![("TF32".to_string(), SetValue::Bool(true))];
    let kinds = [
        ("f16", DType::F16, DType::F16, vec![]),
        ("f16_to_f32", DType::F16, DType::F32, vec![]),
        ("bf16", DType::BF16, DType::BF16, vec![]),
        ("f32", DType::F32, DType::F32, vec![]),
        ("tf32", DType::F32, DType::F32, tf32),
        ("f8e4m3_to_f32", DType::F8E4M3, DType::F32, vec![]),
        ("i8_to_i32", DType::I8, DType::I32, vec![]),
    ];
    let depths: &[usize] = if quick { &[1024] } else { &[1024, 8192] };
    let mut found = vec![];
    for (name, dtype, out, given) in kinds {
        for k in depths {
            found.push(Product {
                name: format!("accuracy_{name}_{k}"),
                file: "stdlib/nn/matmul.tk",
                kernel: "matmul",
                dtype,
                out,
                size: [1024, 1024, *k],
                given: given.clone(),
                others: vec![],
            });
        }
    }
    found
}

/// Measures times and accuracies.
pub fn run(args: &Args, device: &Device, products: &[Product], report: &mut Report) -> Result<(), Stop> {
    let mut known: Vec<(&str, Launcher)> = vec![];
    for product in products {
        if device.lost().is_some() {
            device.recover().map_err(|e| e.to_string())?;
        }
        let file = product.file;
        let found = match known.iter().find(|(f, _)| *f == file) {
            Some((_, launcher)) => Ok(launcher.clone()),
            None => launcher(&args.root, file, device).inspect(|l| known.push((file, l.clone()))),
        };
        let is_time = !product.name.starts_with("accuracy");
        let result =
            found.and_then(
                |launcher| {
                    if is_time { timed(&launcher, product) } else { accuracy(&launcher, product) }
                },
            );
        let result = result.map_err(|e| format!("{}: {e}", product.name));
        report.put_in(if is_time { "matmul" } else { "accuracy" }, &product.name, or_error(result))?;
    }
    Ok(())
}

fn gpu(e: CudaError) -> String {
    e.to_string()
}

/// A number of an operand in the type of the operand.
fn number(dtype: DType, input: Input, at: usize) -> Scalar {
    let v = f64::from(bell(input, at));
    // Numbers of i8 reach from one end to the other.
    let whole = (v * 32.0).round_ties_even().clamp(-127.0, 127.0);
    if dtype.is_int() { Scalar::int(dtype, whole as i128) } else { Scalar::float(dtype, v) }
}

/// What a number is worth.
pub fn value(s: Scalar) -> f64 {
    s.as_f64().or(s.as_int().map(|i| i as f64)).unwrap_or(f64::NAN)
}

/// The first numbers of an operand; those of all types of operands are f32 as well.
pub fn numbers(dtype: DType, input: Input, count: usize) -> Vec<f32> {
    many(count, |at| value(number(dtype, input, at)) as f32)
}

/// The same numbers in the bytes of their type.
pub fn bytes(dtype: DType, input: Input, count: usize) -> Vec<u8> {
    let parts = many(count.div_ceil(PART), |p| {
        let from = p * PART;
        let mut part = Buf::zeros(dtype, PART.min(count - from));
        (0..part.len()).for_each(|i| part.set(i, number(dtype, input, from + i)));
        part.to_le_bytes()
    });
    parts.concat()
}

/// Operands and result of a product on the GPU.
struct Operands {
    clock: Clock,
    copies: Copies,
    a: Buffer,
    b: Buffer,
    c: Buffer,
    /// The numbers of both operands.
    numbers: [Vec<f32>; 2],
    size: [usize; 3],
}

impl Operands {
    fn new(device: &Device, product: &Product, size: [usize; 3]) -> Result<Operands, String> {
        let (clock, copies) = (Clock::new(device)?, Copies::new()?);
        let [m, n, k] = size;
        let dtype = product.dtype;
        let make = |input, count: usize| {
            let buffer = device.alloc(count * dtype.bytes()).map_err(gpu)?;
            copies.to_device(buffer.address(), &bytes(dtype, input, count))?;
            Ok::<Buffer, String>(buffer)
        };
        let c = device.alloc(m * n * product.out.bytes()).map_err(gpu)?;
        let (a, b) = (make(Input::X, m * k)?, make(Input::Y, k * n)?);
        let numbers = [numbers(dtype, Input::X, m * k), numbers(dtype, Input::Y, k * n)];
        Ok(Operands { a, b, c, numbers, clock, copies, size })
    }

    fn launch(&self, site: &mut CallSite, product: &Product, stream: &Stream) -> Result<(), String> {
        let [m, n, k] = self.size.map(|d| d as i64);
        let (shape_a, shape_b, shape_c) = ([m, k], [k, n], [m, n]);
        let (flat_a, flat_b, flat_c) = ([m * k], [k * n], [m * n]);
        let done = if product.kernel == "matmul_ptr" {
            let [a, b, c] = [
                Arg::tensor(&self.a, product.dtype, &flat_a),
                Arg::tensor(&self.b, product.dtype, &flat_b),
                Arg::tensor(&self.c, product.out, &flat_c),
            ];
            let (em, en, ek) = (Arg::from(m as i32), Arg::from(n as i32), Arg::from(k as i32));
            let one = || Arg::from(1i64);
            site.launch(stream, &[a, b, c, em, en, ek, k.into(), one(), n.into(), one(), n.into(), one()])
        } else {
            let a = Arg::tensor(&self.a, product.dtype, &shape_a);
            let b = Arg::tensor(&self.b, product.dtype, &shape_b);
            site.launch(stream, &[a, b, Arg::Absent, Arg::tensor(&self.c, product.out, &shape_c)])
        };
        done.map_err(|e| e.to_string())
    }

    /// The elements of the result after one launch, whose memory held no numbers before.
    fn result(&self, site: &mut CallSite, product: &Product) -> Result<Buf, String> {
        let stream = &self.clock.stream;
        let bytes = self.size[0] * self.size[1] * product.out.bytes();
        self.copies.poison(stream, self.c.address(), bytes)?;
        self.launch(site, product, stream)?;
        let bytes = self.copies.to_host(stream, self.c.address(), bytes)?;
        Buf::from_le_bytes(product.out, &bytes).ok_or_else(|| "the result has no whole elements".to_string())
    }
}

/// Elements that are made at a time.
const PART: usize = 1 << 16;

/// How far some elements are from the reference: norms of the difference and of the reference, the largest difference.
fn difference([x, y]: &[Vec<f32>; 2], size: [usize; 3], result: &Buf, places: &[(usize, usize)]) -> [f64; 3] {
    let [_, n, k] = size;
    let off = many(places.len(), |p| {
        let (i, j) = places.get(p).copied().unwrap_or_default();
        let row = x.get(i * k..(i + 1) * k).unwrap_or_default();
        let column = y.iter().skip(j).step_by(n);
        let exact: f64 = row.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        ((value(result.get(i * n + j)) - exact).abs(), exact)
    });
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    // What is no number is as far off as can be; `max` alone would leave it out.
    let worst = off.iter().map(|(d, _)| if d.is_nan() { f64::INFINITY } else { *d }).fold(0.0, f64::max);
    [square(&mut off.iter().map(|(d, _)| *d)), square(&mut off.iter().map(|(_, e)| *e)), worst]
}

/// The norm of the error if the results are right.
fn check(
    numbers: &[Vec<f32>; 2],
    size: [usize; 3],
    result: &Buf,
    places: &[(usize, usize)],
) -> Result<f64, String> {
    let [off, all, worst] = difference(numbers, size, result, places);
    let norm = off / all.max(f64::MIN_POSITIVE);
    // An element that is wrong is off by about as much as elements are large.
    let size_of_one = all / (places.len() as f64).sqrt();
    if norm <= NORM && worst <= 0.05 * size_of_one {
        return Ok(norm);
    }
    let [m, n, k] = size;
    let worst = worst / size_of_one;
    Err(format!(
        "{m} x {n} x {k}: the results are wrong: norm of the error {norm:.1e} (at most {NORM:.0e}), largest error \
         {worst:.1e} (at most 0.05)"
    ))
}

/// Every element of a small result; elements all over a large one, in every part of a tile.
fn places(size: [usize; 3]) -> Vec<(usize, usize)> {
    let [m, n, _] = size;
    let count = m * n;
    // Odd, so that all rows and columns of a tile are met.
    let step = (count / SAMPLES).max(1) | 1;
    (0..count).step_by(step).chain([count - 1]).map(|at| (at / n, at % n)).collect()
}

/// The time of a product in all configurations.
fn timed(launcher: &Launcher, product: &Product) -> Result<Value, String> {
    let (small, large) = (
        Operands::new(launcher.device(), product, SMALL)?,
        Operands::new(launcher.device(), product, product.size)?,
    );
    let flops = 2.0 * product.size.iter().map(|d| *d as f64).product::<f64>();
    let mut runs = vec![];
    for configuration in std::iter::once(&Sets::new()).chain(&product.others) {
        let named = if configuration.is_empty() { "default".to_string() } else { shown(configuration) };
        let run = || {
            let sets = [product.given.clone(), configuration.clone()].concat();
            let mut site = launcher.site(product.kernel, &sets).map_err(|e| e.to_string())?;
            let all: Vec<(usize, usize)> =
                (0..SMALL[0] * SMALL[1]).map(|at| (at / SMALL[1], at % SMALL[1])).collect();
            check(&small.numbers, SMALL, &small.result(&mut site, product)?, &all)?;
            let result = large.result(&mut site, product)?;
            let norm = check(&large.numbers, product.size, &result, &places(product.size))?;
            let ms = large.clock.median(&mut |stream| large.launch(&mut site, product, stream))?;
            Ok(json!({ "ms": ms, "TFLOPs": flops / ms / 1e9, "norm_of_error": norm, "error": Value::Null }))
        };
        let mut run = or_error(run().map_err(|e: String| format!("{} ({named}): {e}", product.name)));
        run["configuration"] = json!(named);
        runs.push(run);
        if launcher.device().lost().is_some() {
            break;
        }
    }
    let default = runs.first().cloned().unwrap_or(Value::Null);
    Ok(json!({ "source": product.file, "shape": product.size, "default": default, "all": runs }))
}

/// How far a product is from that in double precision, in [`ROWS`] of its rows.
fn accuracy(launcher: &Launcher, product: &Product) -> Result<Value, String> {
    let operands = Operands::new(launcher.device(), product, product.size)?;
    let mut site = launcher.site(product.kernel, &product.given).map_err(|e| e.to_string())?;
    let result = operands.result(&mut site, product)?;
    let [m, n, _] = product.size;
    let places: Vec<(usize, usize)> =
        (0..m).step_by(m / ROWS).flat_map(|i| (0..n).map(move |j| (i, j))).collect();
    let [off, all, worst] = difference(&operands.numbers, product.size, &result, &places);
    let rms = all / (places.len() as f64).sqrt();
    let finite = |v: f64| if v.is_finite() { json!(v) } else { json!(1e30) };
    Ok(
        json!({ "rms": finite(off / all), "max": finite(worst / rms), "shape": product.size, "error": Value::Null }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::accepted;

    #[test]
    fn every_configuration_is_one_that_the_kernels_take() {
        let mut names = vec![];
        for product in products(false).into_iter().chain(products(true)).chain(accuracies(false)) {
            for configuration in std::iter::once(&vec![]).chain(&product.others) {
                let sets = [product.given.clone(), configuration.clone()].concat();
                let [m, n, k] = product.size.map(|d| d as i64);
                let flat = product.kernel == "matmul_ptr";
                let shape = |a: i64, b: i64| if flat { vec![a * b] } else { vec![a, b] };
                let mut tensors =
                    vec![Some((product.dtype, shape(m, k))), Some((product.dtype, shape(k, n)))];
                tensors.extend((!flat).then_some(None));
                tensors.push(Some((product.out, shape(m, n))));
                let sizes = [m, n, k].map(|d| Scalar::int(DType::I32, d.into()));
                let strides = [k, 1, n, 1, n, 1].map(|d| Scalar::int(DType::I64, d.into()));
                let scalars = if flat { [&sizes[..], &strides].concat() } else { vec![] };
                let said = accepted(product.file, product.kernel, &tensors, &scalars, &sets);
                assert_eq!(said, Ok(()), "{}", product.name);
            }
            names.push(product.name);
        }
        assert!(
            names.contains(&"matmul_bf16_8192".to_string())
                && names.contains(&"accuracy_tf32_8192".to_string())
        );
    }

    #[test]
    fn places_are_everywhere_once() {
        let found = places([4096, 4096, 1]);
        assert!(found.len() >= SAMPLES / 2 && found.len() <= 2 * SAMPLES);
        for part in 0..16 {
            assert!(
                found.iter().any(|(i, _)| i % 128 / 8 == part)
                    && found.iter().any(|(_, j)| j % 128 / 8 == part)
            );
        }
        assert_eq!(places([3, 5, 1]).len(), 16);
    }

    #[test]
    fn a_right_result_passes_and_a_wrong_one_does_not() {
        let size = [3, 4, 50];
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F8E4M3, DType::I8] {
            let operands = [numbers(dtype, Input::X, 150), numbers(dtype, Input::Y, 200)];
            let all: Vec<(usize, usize)> = (0..12).map(|at| (at / 4, at % 4)).collect();
            let mut exact = Buf::zeros(DType::F64, 12);
            for (at, (i, j)) in all.iter().enumerate() {
                let one = |p: usize| f64::from(operands[0][i * 50 + p]) * f64::from(operands[1][p * 4 + j]);
                exact.set(at, Scalar::float(DType::F64, (0..50).map(one).sum()));
            }
            assert!(check(&operands, size, &exact, &all).unwrap() < 1e-12);
            for wrong in [f64::NAN, 0.0] {
                let mut bad = exact.clone();
                bad.set(7, Scalar::float(DType::F64, wrong));
                assert!(check(&operands, size, &bad, &all).is_err(), "{dtype}");
            }
        }
    }
}
