//! `tk layout LAYOUT SHAPE`: a layout as numbers and as a picture.

use tk_gpu::ir::text;
use tk_gpu::layout::Threads;
use tk_gpu::layout::linear::InDim;
use tk_gpu::layout::svg;
use tk_gpu::target::mma::Tiles;
use tk_gpu::target::spec;
use tk_gpu::{Layout, TargetSpec};
use tk_ops::DType;
use tk_runtime::files::write_all;

use crate::args::LayoutArgs;
use crate::report::Line;
use crate::suggest::hint;
use crate::terminal::{Outcome, Terminal};

/// Elements up to which a layout is drawn: those of the largest tile of the language.
const MOST: u64 = 1 << 20;

/// Logarithm of the most warps of a program, of any target.
const WARP_BITS: usize = 10;

/// Shows a layout.
pub fn run(terminal: &Terminal, args: &LayoutArgs) -> Outcome {
    let names: Vec<&str> = spec::targets().map(|t| t.name).collect();
    let target = spec::target(&args.target)
        .ok_or_else(|| format!("there is no target `{}`{}", args.target, hint(&args.target, &names)))?;
    let dtype =
        DType::parse(&args.dtype).ok_or_else(|| format!("there is no element type `{}`", args.dtype))?;
    let shape = shape(&args.shape)?;
    let layout = layout(&args.layout, &shape, target)?;
    let bits = |dim| layout.atom().bits(dim);
    if bits(InDim::Lane) != target.warp_size.ilog2() as usize {
        let (lanes, warp) = (bits(InDim::Lane), target.warp_size);
        return Err(
            format!("the layout has 2^{lanes} lanes, and a warp of `{}` has {warp}", target.name).into()
        );
    }
    if bits(InDim::Warp) > WARP_BITS {
        return Err(format!("the layout has more than {} warps", 1 << WARP_BITS).into());
    }
    let numbers = svg::numbers(&layout, dtype.bytes() as u32, target.banks());
    let lines = numbers.lines().join("\n");
    if let Some(path) = &args.out {
        let title = format!("{} of {} {}", args.layout, args.shape, args.dtype);
        let svg = svg::svg(&[(title, &layout, &shape, dtype.bytes() as u32)], target.banks());
        write_all(&[(path.clone(), svg.into_bytes())])?;
    }
    if terminal.is_json() {
        return terminal.object(&Line::Layout {
            layout: &layout.to_string(),
            registers: numbers.registers,
            lanes: numbers.threads[0],
            warps: numbers.threads[1],
            copies: numbers.copies,
            vector: &numbers.vector,
            access_bytes: numbers.access_bytes,
            row_major_ways: numbers.row_major_ways,
            swizzled_ways: numbers.swizzled_ways,
            rendered: &lines,
        });
    }
    terminal.data(&format!("{layout}\n{lines}\n"))
}

/// `64x128`
fn shape(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || {
        format!("`{text}` is not a tile shape; write 64x128: one to five extents, up to a million elements")
    };
    let dims: Option<Vec<u32>> = text.split('x').map(|d| d.trim().parse().ok().filter(|d| *d > 0)).collect();
    let dims = dims.ok_or_else(wrong)?;
    let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul((*d).into()));
    if (1..=5).contains(&dims.len()) && count.is_some_and(|n| n <= MOST) { Ok(dims) } else { Err(wrong()) }
}

fn layout(text: &str, shape: &[u32], target: &TargetSpec) -> Result<Layout, String> {
    let Some((name, inside)) = text.trim().strip_suffix(')').and_then(|t| t.split_once('(')) else {
        return written(text, shape);
    };
    let items: Vec<&str> = inside.split(',').map(str::trim).collect();
    let power = |text: &str, what: &str| -> Result<u32, String> {
        let number = text.parse::<u32>().ok().filter(|n| n.is_power_of_two() && *n <= 1024);
        number.ok_or_else(|| format!("`{text}`: {what} are a power of two up to 1024"))
    };
    let threads = |warps: &str| -> Result<Threads, String> {
        Ok(Threads { lane_bits: target.warp_size.ilog2(), warp_bits: power(warps, "warps")?.ilog2() })
    };
    match (name.trim(), items.as_slice()) {
        ("blocked", [vector, warps, rest @ ..]) => {
            let mut order: Vec<usize> = (0..shape.len()).rev().collect();
            match rest {
                [] | ["rows"] => {}
                ["columns"] => order.reverse(),
                _other => return Err(format!("`{text}`: only `rows` or `columns` can follow the warps")),
            }
            Ok(Layout::blocked(shape, &order, power(vector, "neighbours")?, threads(warps)?))
        }
        (part @ ("acc" | "a" | "b"), [instruction, warps]) => {
            let names: Vec<&str> = target.matrices.iter().map(|m| m.name).collect();
            let found = target.matrices.iter().copied().find(|m| m.name == *instruction);
            let found = found.ok_or_else(|| {
                format!("`{}` has no instruction `{instruction}`{}", target.name, hint(instruction, &names))
            })?;
            let [m, n] = shape else { return Err(format!("`{text}`: a tile of two dimensions is needed")) };
            if found.is_wgmma() && part == "b" {
                return Err(format!("`{text}`: the right operand of `{instruction}` is in shared memory"));
            }
            // A factor has one extent of the result; along the other, one instruction is enough.
            let own = [1u32 << found.m, 1u32 << found.n];
            let (result, k) = match part {
                "a" => ([*m, own[1]], *n),
                "b" => ([own[0], *n], *m),
                _acc => ([*m, *n], 0),
            };
            let tiles = Tiles::choose(found, result, threads(warps)?, false).ok_or_else(|| {
                format!("`{text}`: the tile has fewer than {} rows and 8 columns for each four warps", own[0])
            })?;
            let fragment = match part {
                "a" => tiles.operand(0, k),
                "b" => tiles.operand(1, k),
                _acc => tiles.accumulator(),
            };
            fragment
                .layout()
                .ok_or_else(|| format!("`{text}`: an element would be held in parts of two tiles"))
        }
        (other, _) => {
            let hint = hint(other, &["blocked", "acc", "a", "b"]);
            Err(format!(
                "`{text}` is not a layout; the layouts are blocked(NEIGHBOURS, WARPS), acc(INSTRUCTION, WARPS), a(..), b(..){hint}"
            ))
        }
    }
}

/// A layout as IR writes it.
fn written(source: &str, shape: &[u32]) -> Result<Layout, String> {
    let layout = text::layout(source)
        .map_err(|e| format!("`{source}` is not a layout: column {}: {}", e.column, e.message))?;
    let extents =
        layout.atom().out_bits().iter().zip(layout.repeats()).map(|(bits, r)| u64::from(*r) << bits);
    let extents: Vec<u64> = extents.collect();
    let fits = extents.len() == shape.len()
        && extents.iter().zip(shape).all(|(e, s)| *e >= u64::from(*s) && *e < 2 * u64::from(*s));
    if fits { Ok(layout) } else { Err(format!("the layout is of a tile of {extents:?}, not of {shape:?}")) }
}
