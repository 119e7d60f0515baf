//! A launch by a bundle is the one that the compiler plans, for random arguments.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "tests")]

use crate::ship::{ROOT, tk};
use crate::support::building::without_ptxas;
use crate::support::command::Folder;
use tk_bundle::{Argument, Bundle, Facts, Kernel, ParamKind};
use tk_driver::facts_about;
use tk_ops::{DType, Scalar};
use tk_runtime::files::Files;
use tk_sema::contract::{self, Device, HostArg};
use tk_sema::eval::CVal;

/// xorshift64*, of Vigna, "An experimental exploration of Marsaglia's xorshift generators".
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[(self.next() % of.len() as u64) as usize]
    }
}

/// Arguments that fit the parameters, with few different extents, so that requirements hold often.
fn arguments(kernel: &Kernel, random: &mut Random) -> Vec<HostArg> {
    const EXTENTS: [i64; 15] = [0, 1, 2, 7, 8, 16, 33, 64, 100, 256, 1000, 1024, 2048, 5000, 70_000];
    let pool = [*random.pick(&EXTENTS), *random.pick(&EXTENTS)];
    let variant = random.pick(&kernel.variants);
    let one = |(param, dtype): (&tk_bundle::Param, &Option<String>)| {
        let Some(dtype) = dtype.as_deref().and_then(DType::parse) else { return HostArg::Absent };
        match param.kind {
            ParamKind::Number => {
                let v = *random.pick(&[-1, 0, 1, 2, 15, 16, 1000, 1 << 20]);
                HostArg::Scalar(if dtype.is_float() {
                    Scalar::float(dtype, *random.pick(&[0.0, 0.5, 1.0, -0.25, f64::NAN]))
                } else {
                    Scalar::int_in_range(dtype, v).unwrap_or(Scalar::zero(dtype))
                })
            }
            ParamKind::Pointer { .. } => HostArg::Tensor { dtype, shape: vec![64], strides: vec![1] },
            ParamKind::View { rank, .. } => {
                let shape: Vec<i64> = (0..rank).map(|_| *random.pick(&pool)).collect();
                let mut strides: Vec<i64> =
                    (0..shape.len()).map(|i| shape[i + 1..].iter().map(|d| (*d).max(1)).product()).collect();
                if random.next().is_multiple_of(4) {
                    strides.reverse();
                }
                HostArg::Tensor { dtype, shape, strides }
            }
        }
    };
    kernel.params.iter().zip(&variant.dtypes).map(one).collect()
}

/// What a launch by a bundle takes is what the compiler plans: the same values, the same grid, the same refusals.
#[test]
fn a_bundle_chooses_as_the_compiler_plans() {
    if without_ptxas() {
        return;
    }
    let files =
        ["softmax", "layer_norm", "matmul", "add", "gelu", "histogram", "dropout", "look_back", "persistent"];
    let folder = Folder::new("ship-choose");
    let (mut random, mut launched, mut refused) = (Random(1), 0, 0);
    for name in files {
        let file = format!("{ROOT}/examples/{name}.tk");
        tk(&folder, &["build", &file, "--target", "sm_90a", "--emit", "bundle", "-o", "."]).code(0);
        let bundle = Bundle::open(&folder.path(&format!("{name}.tkb"))).unwrap();
        let checked = tk_sema::check(&Files::default(), &file);
        let target = tk_driver::TARGETS.into_iter().find(|t| t.name == "sm_90a").unwrap();
        let device = Device { sms: 132, smem: target.shared_bytes.into(), target: facts_about(target) };
        for kernel in &bundle.manifest().kernels {
            let id = contract::kernel_named(&checked.hir, &kernel.name).unwrap();
            for _ in 0..300 {
                let hosts = arguments(kernel, &mut random);
                let planned = contract::plan_on(&checked.hir, id, &hosts, &[], device);
                let named = |h: &HostArg| tk_runtime::bundled::dtype_name(h);
                let args: Vec<Argument<'_>> =
                    hosts.iter().map(|h| tk_runtime::bundled::argument(h, named(h), 0x1000)).collect();
                let given = vec![None; kernel.choices.len()];
                let targets = ["sm_90a"];
                let facts = Facts {
                    args: &args,
                    given: &given,
                    targets: &targets,
                    sms: device.sms,
                    shared_bytes: device.smem,
                };
                let chosen = kernel.choose(&facts);
                let what = format!("{}: {hosts:?}\n{planned:?}\n{chosen:?}", kernel.name);
                match (&planned, &chosen) {
                    (Ok(plan), Ok(chosen)) => {
                        launched += 1;
                        assert_eq!(plan.grid, chosen.grid, "{what}");
                        for v in &chosen.variant.values {
                            let id = checked
                                .hir
                                .func(id)
                                .cparams
                                .iter()
                                .find(|c| checked.hir.cvar(**c).name == v.name);
                            let planned = plan.bindings.cvars.get(id.unwrap()).map(CVal::to_string);
                            assert_eq!(planned.as_deref(), Some(v.value.as_str()), "{what}");
                        }
                    }
                    (Ok(plan), Err(e)) => {
                        // Nothing is shipped with these values.
                        refused += 1;
                        let values = |v: &tk_bundle::Variant| {
                            v.values.iter().all(|v| {
                                let mut all = plan.bindings.cvars.iter();
                                all.any(|(c, x)| {
                                    checked.hir.cvar(*c).name == v.name && x.to_string() == v.value
                                })
                            })
                        };
                        assert!(!kernel.variants.iter().any(values), "{what}");
                        assert!(e.what.contains("no variant"), "{what}");
                    }
                    (Err(_), Err(_)) => refused += 1,
                    (Err(_), Ok(_)) => panic!("{what}"),
                }
            }
        }
    }
    assert!(launched > 500 && refused > 500, "{launched} launched, {refused} refused");
}
