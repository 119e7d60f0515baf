//! `tk check FILE..`: reports diagnostics, prints intermediate forms.

use tk_runtime::Session;
use tk_sema::Checked;
use tk_sema::contract::SetValue;
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, FileId};
use tk_tile::text;

use crate::args::{CheckArgs, Emit};
use crate::input::{Inputs, all_sources};
use crate::report::{Line, main_file};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{front, suggest, watch};

/// Checks all files, with `--watch` again and again.
pub fn run(terminal: &Terminal, args: &CheckArgs) -> Outcome {
    if args.watch {
        return watch::rounds(terminal, &args.input, &args.files, |inputs| once(terminal, args, inputs));
    }
    once(terminal, args, &Inputs::new(&args.input, args.files.iter().map(String::as_str))?)
}

/// Checks all files, then fails if one of them has an error.
fn once(terminal: &Terminal, args: &CheckArgs, inputs: &Inputs) -> Outcome {
    let mut wrong = None;
    for path in &all_sources(&args.files)? {
        let checked = front::check_with(inputs, path, args.kernel.as_deref(), &args.sets)?;
        terminal.internal(&checked.diagnostics)?;
        terminal.diagnostics(&checked.sources, &checked.diagnostics)?;
        let errors = checked.diagnostics.iter().any(Diagnostic::is_error);
        wrong = wrong.or(front::failure(&checked));
        match args.emit {
            None => {}
            Some(Emit::Ast) => emit(terminal, &checked, "ast", &ast(&checked))?,
            Some(Emit::Hir) => emit(terminal, &checked, "hir", &tk_sema::dump::dump_hir(&checked.hir))?,
            Some(Emit::Tile) if errors => {}
            Some(Emit::Tile) => tile(terminal, checked, path, args)?,
        }
    }
    wrong.map_or(Ok(()), Err)
}

fn emit(terminal: &Terminal, checked: &Checked, form: &'static str, text: &str) -> Outcome {
    if terminal.is_json() {
        return terminal.object(&Line::Emitted { file: main_file(&checked.sources), form, text });
    }
    terminal.data(text)
}

fn ast(checked: &Checked) -> String {
    let main = FileId(0);
    let text = checked.sources.get(main).map(|s| s.text.to_string()).unwrap_or_default();
    tk_syntax::dump(&tk_syntax::parse(main, &text).0)
}

/// Prints the tile IR of the kernels. A kernel that cannot be specialized without a launch is a note when there are
/// others, and a failure when nothing is left or when it was asked for.
fn tile(terminal: &Terminal, checked: Checked, path: &str, args: &CheckArgs) -> Outcome {
    let sets = front::sets(&args.sets)?;
    let session = Session::new(checked);
    let kernels = chosen(&session, path, args.kernel.as_deref())?;
    let mut printed = 0;
    let mut open = vec![];
    for (kernel, name) in kernels {
        let names = session.open_parameters(kernel, &sets);
        if !names.is_empty() {
            open.push(needs(&name, &names));
            continue;
        }
        let own = own_sets(&session, kernel, &sets);
        match session.specialize(kernel, &own) {
            Ok(compiled) => {
                terminal.diagnostics(&session.checked().sources, &compiled.notes)?;
                let gap = if printed > 0 && !terminal.is_json() { "\n" } else { "" };
                let text = format!("{gap}{}", text::print(&compiled.module, text::Options::default()));
                emit(terminal, session.checked(), "tile", &text)?;
                printed += 1;
            }
            Err(wrong) => return front::refused(terminal, &session, &wrong),
        }
    }
    let Some(first) = open.first() else { return Ok(()) };
    if printed == 0 {
        return Err(Failure::Sentence(first.clone()));
    }
    open.iter().try_for_each(|sentence| terminal.note(sentence))
}

fn needs(kernel: &str, names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    let sets: Vec<String> = names.iter().map(|n| format!("--set {n}=..")).collect();
    format!(
        "kernel `{kernel}` is specialized at a launch: it needs {}; give {}",
        quoted.join(", "),
        sets.join(" ")
    )
}

/// The kernels to print.
fn chosen(session: &Session, path: &str, name: Option<&str>) -> Result<Vec<(FnId, String)>, Failure> {
    let all: Vec<(FnId, String)> = session.kernels().map(|(id, f)| (id, f.name.clone())).collect();
    let Some(name) = name else { return Ok(all) };
    match all.iter().find(|(_, n)| n == name) {
        Some(found) => Ok(vec![found.clone()]),
        None => {
            let names: Vec<&str> = all.iter().map(|(_, n)| n.as_str()).collect();
            Err(Failure::Sentence(format!("{path} has no kernel `{name}`{}", suggest::hint(name, &names))))
        }
    }
}

/// With several kernels, a value goes to those that have the parameter.
fn own_sets(session: &Session, kernel: FnId, sets: &[(String, SetValue)]) -> Vec<(String, SetValue)> {
    let params = tk_sema::contract::parameters(&session.checked().hir, kernel);
    let several = session.kernels().count() > 1;
    sets.iter().filter(|(n, _)| !several || params.iter().any(|p| p.name == *n)).cloned().collect()
}
