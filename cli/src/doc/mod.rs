//! `tk doc`: the reference of source files, made from their doc comments and signatures.
//!
//! | file | contents |
//! |---|---|
//! | `pages.rs` | what a page says: modules and their items |
//! | `markdown.rs` | pages as Markdown, with links between items |

mod markdown;
mod pages;

use std::collections::BTreeSet;
use std::path::Path;

use tk_runtime::files::{reason, write_all};
use tk_syntax::Diagnostic;

use crate::args::{DocArgs, DocFormat};
use crate::front;
use crate::input::{Inputs, all_sources};
use crate::terminal::{Failure, Outcome, Terminal};
use pages::Module;

/// What means the whole standard library on the command line.
const STD: &str = "std";

/// Writes or prints the reference of the given files.
pub fn run(terminal: &Terminal, args: &DocArgs) -> Outcome {
    let (library, files): (Vec<&String>, Vec<&String>) =
        args.files.iter().partition(|f| *f == STD || f.starts_with("std::"));
    let mut modules = vec![];
    for name in library {
        modules.extend(of_library(name)?);
    }
    let files: Vec<String> = files.into_iter().cloned().collect();
    let inputs = Inputs::new(&args.input, files.iter().map(String::as_str))?;
    for path in all_sources(&files)? {
        let checked = front::check(&inputs, &path)?;
        let errors: Vec<Diagnostic> = checked.diagnostics.iter().filter(|d| d.is_error()).cloned().collect();
        terminal.diagnostics(&checked.sources, &errors)?;
        if let Some(failure) = front::failure(&checked) {
            return Err(failure);
        }
        let source = checked.sources.get(tk_syntax::FileId(0)).map(|s| s.text.clone()).unwrap_or_default();
        modules.push(Module::new(stem(&path), &source));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = modules.iter().find(|m| !names.insert(m.name.clone())) {
        return Err(Failure::Sentence(format!(
            "two files are named `{}`: their pages would be one",
            twice.name
        )));
    }
    match &args.out {
        Some(folder) => write(folder, &modules, args.format),
        None => terminal.data(&match args.format {
            DocFormat::Markdown => {
                modules.iter().map(|m| markdown::page(m, &modules)).collect::<Vec<_>>().join("\n")
            }
            DocFormat::Json => json(&modules)?,
        }),
    }
}

/// The modules of the standard library that a name means: one, or with `std` all.
fn of_library(name: &str) -> Result<Vec<Module>, String> {
    let all = tk_sema::std_files().map(|(file, text)| (tk_sema::std_path(file), text));
    let found: Vec<Module> = all
        .filter(|(path, _)| name == STD || path == name)
        .map(|(path, text)| Module::new(path, text))
        .collect();
    if found.is_empty() {
        let known: Vec<String> = tk_sema::std_files().map(|(file, _)| tk_sema::std_path(file)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let meant = crate::suggest::closest(name, &known).map(|n| format!("; did you mean `{n}`?"));
        return Err(format!("the standard library has no `{name}`{}", meant.unwrap_or_default()));
    }
    Ok(found)
}

/// The name of a file in `use`.
fn stem(path: &str) -> String {
    let path = Path::new(path);
    path.file_stem().map_or_else(|| path.display().to_string(), |s| s.to_string_lossy().into_owned())
}

/// Writes a file for each module, and for Markdown a page that lists them.
fn write(folder: &Path, modules: &[Module], format: DocFormat) -> Outcome {
    std::fs::create_dir_all(folder)
        .map_err(|e| format!("cannot create {}: {}", folder.display(), reason(&e)))?;
    let mut files = vec![];
    for m in modules {
        let (ending, text) = match format {
            DocFormat::Markdown => ("md", markdown::page(m, modules)),
            DocFormat::Json => ("json", json(std::slice::from_ref(m))?),
        };
        files.push((folder.join(format!("{}.{ending}", m.file())), text.into_bytes()));
    }
    if matches!(format, DocFormat::Markdown) {
        files.push((folder.join("README.md"), markdown::contents(modules).into_bytes()));
    }
    Ok(write_all(&files)?)
}

fn json(modules: &[Module]) -> Result<String, String> {
    serde_json::to_string_pretty(modules).map(|text| text + "\n").map_err(|e| e.to_string())
}
