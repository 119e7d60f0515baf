use std::time::Instant;
use tk_ops::ElementwiseOp as E;
use tk_ops::eval::*;
use tk_ops::*;
#[test]
fn perf() {
    for n in [1usize << 12, 1 << 24] {
        let reps = (1usize << 25) / n;
        let x = Buf::F32((0..n).map(|i| (i % 1000) as f32 * 0.01 - 5.0).collect());
        let xh = cast(&x, DType::F16).unwrap();
        let xb = cast(&x, DType::BF16).unwrap();
        let xd = cast(&x, DType::F64).unwrap();
        let xi = cast(&x, DType::I32).unwrap();
        let s = Operand::Splat(Scalar::float(DType::F32, 1.5));
        let time = |name: &str, f: &dyn Fn()| {
            f();
            let t = Instant::now();
            for _ in 0..reps {
                f();
            }
            let e = t.elapsed().as_secs_f64() * 1e9 / (reps * n) as f64;
            println!("{n} {name}: {e:.3} ns/elt");
        };
        time("add f32", &|| {
            elementwise(E::Add, &[Operand::Buf(&x), Operand::Buf(&x)], DType::F32, n, false).unwrap();
        });
        time("add f32 splat", &|| {
            elementwise(E::Add, &[Operand::Buf(&x), s], DType::F32, n, false).unwrap();
        });
        for op in [E::Maximum, E::MaxNum, E::Div, E::Rem, E::Pow] {
            time(op.name(), &|| {
                elementwise(op, &[Operand::Buf(&x), Operand::Buf(&x)], DType::F32, n, false).unwrap();
            });
        }
        for op in [E::Add, E::Div, E::Rem, E::CeilDiv, E::Shl] {
            time(&format!("i32 {}", op.name()), &|| {
                elementwise(op, &[Operand::Buf(&xi), Operand::Buf(&xi)], DType::I32, n, false).unwrap();
            });
        }
        time("lt", &|| {
            elementwise(E::Lt, &[Operand::Buf(&x), s], DType::Bool, n, false).unwrap();
        });
        let m = elementwise(E::Lt, &[Operand::Buf(&x), s], DType::Bool, n, false).unwrap();
        time("select", &|| {
            elementwise(E::Select, &[Operand::Buf(&m), Operand::Buf(&x), s], DType::F32, n, false).unwrap();
        });
        time("fma", &|| {
            elementwise(
                E::Fma,
                &[Operand::Buf(&x), Operand::Buf(&x), Operand::Buf(&x)],
                DType::F32,
                n,
                false,
            )
            .unwrap();
        });
        time("fma64", &|| {
            elementwise(
                E::Fma,
                &[Operand::Buf(&xd), Operand::Buf(&xd), Operand::Buf(&xd)],
                DType::F64,
                n,
                false,
            )
            .unwrap();
        });
        for op in [E::Exp, E::Exp2, E::Tanh, E::Log, E::Sin, E::Erf, E::Sqrt, E::Rsqrt, E::Floor, E::Round] {
            time(op.name(), &|| {
                elementwise(op, &[Operand::Buf(&x)], DType::F32, n, false).unwrap();
            });
        }
        time("exp64", &|| {
            elementwise(E::Exp, &[Operand::Buf(&xd)], DType::F64, n, false).unwrap();
        });
        time("add f16", &|| {
            elementwise(E::Add, &[Operand::Buf(&xh), Operand::Buf(&xh)], DType::F16, n, false).unwrap();
        });
        time("add bf16", &|| {
            elementwise(E::Add, &[Operand::Buf(&xb), Operand::Buf(&xb)], DType::BF16, n, false).unwrap();
        });
        for (a, d) in [
            (&x, DType::F16),
            (&x, DType::BF16),
            (&x, DType::F8E4M3),
            (&x, DType::I32),
            (&x, DType::I64),
            (&xh, DType::F32),
            (&xb, DType::F32),
            (&xi, DType::F32),
            (&xi, DType::F16),
            (&xd, DType::F16),
            (&xd, DType::F32),
        ] {
            time(&format!("cast {} {}", a.dtype(), d), &|| {
                cast(a, d).unwrap();
            });
        }
        let f8 = cast(&x, DType::F8E4M3).unwrap();
        time("cast f8 f32", &|| {
            cast(&f8, DType::F32).unwrap();
        });
        for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::ArgMax] {
            time(&format!("{} rows", op.name()), &|| {
                reduce(op, &x, n / 1024, 1024, 1).unwrap();
            });
            time(&format!("{} cols", op.name()), &|| {
                reduce(op, &x, 1, n / 1024, 1024).unwrap();
            });
        }
        time("sum f16", &|| {
            reduce(ReduceOp::Sum, &xh, n / 1024, 1024, 1).unwrap();
        });
        time("to_le", &|| {
            x.to_le_bytes();
        });
        let by = x.to_le_bytes();
        time("from_le", &|| {
            Buf::from_le_bytes(DType::F32, &by);
        });
        time("transpose", &|| {
            x.strided(0, &[1024, n / 1024], &[1, 1024]);
        });
    }
}
