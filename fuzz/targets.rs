//! What must hold of any input: of a source text for the parser, of one for the checker and what follows it, of IR text, of a
//! bundle.
//! The fuzzer and the test `runtime/launch/tests/it/fuzz` call the same functions.
//!
//! May assume nothing about the bytes. A property that does not hold is a panic.

use tk_bundle::{Argument, Bundle, FORMAT, Facts, Number, ParamKind, Writer};
use tk_runtime::Session;
use tk_sema::Loader;
use tk_sema::eval::Bindings;
use tk_syntax::diag::apply;
use tk_syntax::{Diagnostic, FileId, SourceMap, Span, codes, dump, render};
use tk_tile::TileModule;
use tk_tile::pipeline::{PASSES, run_passes};

/// Longer inputs find nothing more and take long.
const LONGEST: usize = 1 << 16;
/// How many diagnostics of an input are rendered; that is slow, and the first show what all show.
const RENDERED: usize = 3;

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(LONGEST)]).into_owned()
}

/// A source text parses; whatever is said about it has a place in it. Laid out it is the same program, and stays so.
pub fn parse(data: &[u8]) {
    let text = text(data);
    let mut sources = SourceMap::default();
    let id = sources.add("fuzz.tk", &text);
    let (file, diagnostics) = tk_syntax::parse(id, &text);
    said(&sources, &diagnostics);
    let tree = dump(&file);
    if let Ok(once) = tk_fmt::format(&text) {
        assert_eq!(dump(&tk_syntax::parse(id, &once).0), tree);
        assert_eq!(tk_fmt::format(&once).as_deref(), Ok(once.as_str()));
    }
}

/// One file without others beside it.
struct Alone<'a>(&'a str);

impl Loader for Alone<'_> {
    fn load(&self, path: &str) -> Result<String, String> {
        if path == "fuzz.tk" { Ok(self.0.to_string()) } else { Err(format!("there is no file {path}")) }
    }
}

/// A source text is checked; a program without errors is specialized, where that needs no launch, and passes keep the
/// rules of the IR.
pub fn check(data: &[u8]) {
    let text = text(data);
    let checked = tk_sema::check(&Alone(&text), "fuzz.tk");
    said(&checked.sources, &checked.diagnostics);
    if checked.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let session = Session::new(checked);
    let sources = &session.checked().sources;
    let tests: Vec<_> = session.tests().map(|(id, _)| id).collect();
    for id in tests {
        match session.compile(id, &Bindings::default()) {
            Ok((_, notes)) => said(sources, &notes),
            Err(wrong) => said(sources, &wrong),
        }
    }
    let kernels: Vec<_> = session.kernels().map(|(id, _)| id).collect();
    for id in kernels.into_iter().filter(|id| session.open_parameters(*id, &[]).is_empty()) {
        if let Err(wrong) = session.specialize(id, &[]) {
            said(sources, &wrong);
        }
    }
}

/// IR text is read; what is read prints to a text that reads as the same; passes keep the rules of the IR.
pub fn ir(data: &[u8]) {
    let text = text(data);
    let Ok(module) = tk_tile::text::parse(&text) else { return };
    let printed = module.to_string();
    let again = tk_tile::text::parse(&printed)
        .unwrap_or_else(|e| panic!("its own print does not read: {e}\n{printed}"));
    assert_eq!(again.to_string(), printed, "printing is not stable");
    let Ok(module) = TileModule::new(module) else { return };
    // The second list leaves functions that nobody calls where they are.
    for passes in [PASSES, &PASSES[1..]] {
        run_passes(passes, module.clone(), None).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    }
}

/// Every diagnostic is about places of files, its fixes change such places only, and none is a compiler bug.
fn said(sources: &SourceMap, diagnostics: &[Diagnostic]) {
    for d in diagnostics {
        assert!(d.code != codes::INTERNAL, "internal error: {} {:?}", d.message, d.notes);
        assert!(!d.message.is_empty(), "{d:?} says nothing");
        let labels = std::iter::once(&d.primary).chain(&d.secondary);
        labels.for_each(|label| inside(sources, label.span, d));
        for fix in &d.fixes {
            let mut edits: Vec<Span> = fix.edits.iter().map(|e| e.span).collect();
            edits.iter().for_each(|span| inside(sources, *span, d));
            edits.sort_by_key(|s| (s.file.0, s.start, s.end));
            let apart = edits.windows(2).all(|w| w[0].file != w[1].file || w[0].end <= w[1].start);
            assert!(apart, "the edits of `{}` overlap: {d:?}", fix.title);
            let main = sources.get(FileId(0)).map(|s| s.text.to_string()).unwrap_or_default();
            let _ = apply(&main, fix);
        }
    }
    for d in diagnostics.iter().take(RENDERED) {
        assert!(!render(sources, d, false).is_empty());
    }
}

fn inside(sources: &SourceMap, span: Span, d: &Diagnostic) {
    // A file that could not be read has no text.
    let text = sources.get(span.file).map_or("", |s| &s.text);
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is no place: {d:?}");
}

/// A bundle is refused or can be read: as it is, and as the manifest of a sound file. Every launch by it is chosen or refused.
pub fn bundle(data: &[u8]) {
    let sealed = Writer::default().finish_text(FORMAT, "0.1.0", data.to_vec());
    for bytes in [data.to_vec(), sealed] {
        let Ok(bundle) = Bundle::from_vec(bytes) else { continue };
        for kernel in &bundle.manifest().kernels {
            for v in &kernel.variants {
                let _ = (bundle.blob(&v.binary), bundle.blob(&v.tile));
                let args: Vec<Argument<'_>> = kernel
                    .params
                    .iter()
                    .zip(&v.dtypes)
                    .map(|(p, dtype)| match (p.kind, dtype.as_deref()) {
                        (_, None) => Argument::Absent,
                        (ParamKind::Number, Some(dtype)) => {
                            Argument::Number { dtype, value: Number::Int(i64::MIN) }
                        }
                        (ParamKind::Pointer { .. } | ParamKind::View { .. }, Some(dtype)) => {
                            Argument::Tensor {
                                address: u64::MAX,
                                dtype,
                                shape: &[7, i32::MAX as i64],
                                strides: None,
                            }
                        }
                    })
                    .collect();
                let targets = [v.target.as_str()];
                let facts =
                    Facts { args: &args, given: &[], targets: &targets, sms: 1, shared_bytes: i64::MAX };
                let _ = kernel.choose(&facts);
            }
        }
    }
}
