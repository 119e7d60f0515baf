//! Compiles tile IR to a binary, through the cache.
//!
//! Guarantees that a cached result equals the result of compiling: the key contains the tile IR with its source
//! positions, every option, and the versions of all tools involved. For work on passes, results are kept by scheduled IR, too
//! ([`Unchanged`]).

use std::time::{Duration, Instant};

use tk_gpu::ArgFacts;
use tk_gpu::ir::text as gpu_text;
use tk_syntax::{Diagnostic, SourceMap, Span};
use tk_tile::text;

use crate::compile::cache::Key;
use crate::compile::emission::{Until, compile};
use crate::compile::encode::{decode, encode};
use crate::compile::interpreted::interpreted;
use crate::compile::kernel::{CompiledKernel, Cubin, ProgramShape, Request};
use crate::compile::pipeline::{name_in_code, schedule};
use crate::compile::unchanged::Unchanged;
use crate::tools::assembler::{Assembler, Tools};

/// A compiled and assembled kernel.
#[derive(Clone, Debug)]
pub struct Built {
    /// The text and the data for a launcher.
    pub kernel: CompiledKernel,
    /// The binary.
    pub cubin: Cubin,
    /// The work that it took.
    pub work: Work,
}

/// The work for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It was in the cache.
    Found(Duration),
    /// It was compiled and assembled.
    Done {
        /// From tile IR to text.
        compile: Duration,
        /// From text to binary.
        assemble: Duration,
    },
}

impl Work {
    /// All of it.
    pub fn time(self) -> Duration {
        match self {
            Work::Found(time) => time,
            Work::Done { compile, assemble } => compile + assemble,
        }
    }
}

/// Compiles a kernel and checks that it fits the target. `place` is the position of the kernel.
#[cfg_attr(not(feature = "llvm"), allow(private_interfaces, reason = "nobody calls it"))]
pub fn compile_for(
    request: &Request<'_>,
    keep_stages: bool,
    until: Until,
    place: Span,
) -> Result<CompiledKernel, Vec<Diagnostic>> {
    compile(request, keep_stages, until).map_err(|wrong| placed(wrong, place))
}

/// Gives diagnostics of code generation without a position that of the kernel.
fn placed(mut wrong: Vec<Diagnostic>, place: Span) -> Vec<Diagnostic> {
    for d in wrong.iter_mut().filter(|d| d.primary.span == Span::default()) {
        d.primary.span = place;
    }
    wrong
}

/// Compiles and assembles a kernel, or finds it in the cache. With `keep_stages` it is always compiled, since the cache
/// does not keep the intermediate texts. `place` is the position of the kernel.
pub fn build_cached(
    request: &Request<'_>,
    keep_stages: bool,
    tools: &Tools,
    place: Span,
) -> Result<Built, Vec<Diagnostic>> {
    if request.target.is_interpreted() {
        let (kernel, cubin) = interpreted(request, place)?;
        return Ok(Built { kernel, cubin, work: Work::Found(Duration::ZERO) });
    }
    let assembler = tools.assembler(request.target).map_err(|e| vec![e.at(place)])?;
    let begin = Instant::now();
    let key = key(request, assembler);
    if !keep_stages && let Some((kernel, cubin)) = tools.cache.get(&key).as_deref().and_then(decode) {
        return Ok(Built { kernel, cubin, work: Work::Found(begin.elapsed()) });
    }
    let unchanged = if keep_stages { None } else { unchanged(request, assembler) };
    if let Some((results, key)) = &unchanged
        && let Some((kernel, cubin)) = results.get(key).as_deref().and_then(decode)
    {
        let work = Work::Done { compile: begin.elapsed(), assemble: Duration::ZERO };
        return Ok(Built { kernel, cubin, work });
    }
    let until = if keep_stages { Until::BinaryAndText } else { Until::Binary };
    let kernel = compile_for(request, keep_stages, until, place)?;
    let compile = begin.elapsed();
    let cubin = assembler.assemble(&kernel).map_err(|e| vec![e.at(place)])?;
    if let Some(bytes) = encode(&kernel, &cubin) {
        tools.cache.put(&key, &bytes);
        if let Some((results, key)) = unchanged {
            results.put(&key, &bytes);
        }
    }
    Ok(Built { kernel, cubin, work: Work::Done { compile, assemble: begin.elapsed() - compile } })
}

/// The key of everything on which the result depends. `TK_SOURCE` is a hash of the sources of this compiler.
fn key(request: &Request<'_>, assembler: &Assembler) -> Key {
    let ir = text::print(request.module, text::Options { locs: true });
    let fact = |f: &ArgFacts| {
        // All fields, so that a new one is not forgotten.
        let ArgFacts { divisible, one, positive } = *f;
        (divisible << 2 | u32::from(positive) << 1 | u32::from(one)).to_le_bytes()
    };
    let facts: Vec<u8> = request.facts.iter().flat_map(fact).collect();
    // All of it, so that an addition is not forgotten.
    let ProgramShape { warps, blocks, cluster, stages, registers } = request.shape;
    let shape: Vec<u8> = [warps, blocks, cluster, stages.unwrap_or(0), registers.unwrap_or(0)]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    Key::of(&[
        VERSION,
        lines(request.sources).bytes(),
        ir.as_bytes(),
        &request.entry.0.to_le_bytes(),
        request.target.name.as_bytes(),
        &shape,
        &facts,
        env!("CARGO_PKG_VERSION").as_bytes(),
        env!("TK_SOURCE").as_bytes(),
        crate::llvm_version().as_bytes(),
        assembler.version().as_bytes(),
    ])
}

/// The version of the cached form of a kernel.
const VERSION: &[u8] = b"kernel 4";

/// The key of what line tables contain: names and lines, which follow from the positions in the IR and these texts.
fn lines(sources: &SourceMap) -> Key {
    let texts: Vec<Vec<u8>> = sources
        .iter()
        .flat_map(|(_, s)| [name_in_code(sources, s).into_bytes(), s.text.as_bytes().to_vec()])
        .collect();
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    Key::of(&texts)
}

/// Where the binary of a kernel that passes have not changed is kept, if any is.
fn unchanged(request: &Request<'_>, assembler: &Assembler) -> Option<(&'static Unchanged, Key)> {
    let results = Unchanged::of_process()?;
    let kernel = schedule(request, None).ok()?.scheduled;
    let positions = gpu_text::print(&kernel, text::Options { locs: true });
    let notes = format!("{:?} {:?}", kernel.shortages, kernel.remarks);
    let key = Key::of(&[
        b"binary",
        VERSION,
        Unchanged::key(&kernel).bytes(),
        lines(request.sources).bytes(),
        positions.as_bytes(),
        notes.as_bytes(),
        assembler.version().as_bytes(),
    ]);
    Some((results, key))
}
