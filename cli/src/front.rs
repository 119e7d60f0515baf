//! Loads and checks the files of the command line.

use std::path::Path;

use tk_runtime::Session;
use tk_runtime::pass;
use tk_sema::contract::SetValue;
use tk_sema::{Checked, Written};
use tk_syntax::Diagnostic;

use crate::input::Inputs;
use crate::terminal::{Failure, Outcome, Terminal};
use crate::value;

/// Checks a file. A file that cannot be read is a mistake in the command, not in a program: exit code 2.
pub fn check(inputs: &Inputs, path: &str) -> Result<Checked, Failure> {
    let name = inputs.open(path)?;
    pass::enter("check");
    Ok(tk_sema::check(inputs, &name))
}

/// The same, with the lambdas that `--set` gives to a kernel, or to all that have such a parameter.
pub fn check_with(
    inputs: &Inputs,
    path: &str,
    kernel: Option<&str>,
    sets: &[String],
) -> Result<Checked, Failure> {
    let name = inputs.open(path)?;
    let mut written = vec![];
    for text in sets {
        let (name, text) = value::split(text)?;
        written.push(Written { kernel, name, text });
    }
    pass::enter("check");
    Ok(tk_sema::check_given(inputs, &name, &written))
}

/// Prints what the checker found; fails when there is an error.
pub fn report(terminal: &Terminal, checked: &Checked) -> Outcome {
    terminal.internal(&checked.diagnostics)?;
    terminal.diagnostics(&checked.sources, &checked.diagnostics)?;
    match failure(checked) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// The failure that a program's errors mean for the command: errors in the text of an option alone are usage errors.
pub fn failure(checked: &Checked) -> Option<Failure> {
    let given = |d: &Diagnostic| checked.hir.given.iter().any(|g| g.value.span.file == d.primary.span.file);
    let mut errors = checked.diagnostics.iter().filter(|d| d.is_error()).peekable();
    errors.peek()?;
    Some(if errors.all(given) { Failure::Reported } else { Failure::Diagnostics })
}

/// The part of a path that names a kernel: `FILE::KERNEL`. A file whose own name contains `::` wins.
pub fn split_target(target: &str) -> (&str, Option<&str>) {
    if Path::new(target).exists() {
        return (target, None);
    }
    target.rsplit_once("::").map_or((target, None), |(file, kernel)| (file, Some(kernel)))
}

/// Prints why a launch or a specialization was refused, or failed. The program has been checked without an error, so
/// whatever the code of the diagnostic is, it is this launch that does not work: exit code 2.
pub fn refused(terminal: &Terminal, session: &Session, wrong: &[Diagnostic]) -> Outcome {
    terminal.internal(wrong)?;
    terminal.diagnostics(&session.checked().sources, wrong)?;
    Err(Failure::Reported)
}

/// Reads `--set` values.
pub fn sets(texts: &[String]) -> Result<Vec<(String, SetValue)>, String> {
    let mut sets: Vec<(String, SetValue)> = vec![];
    for text in texts {
        let (name, value) = value::split(text)?;
        if sets.iter().any(|(n, _)| n == name) {
            return Err(format!("--set: `{name}` is given twice"));
        }
        let parsed = SetValue::parse(value);
        // Digits never mean infinity.
        if matches!(parsed, SetValue::Float(v) if v.is_infinite()) && !value.ends_with("inf") {
            return Err(format!("--set {name}={value} is too large for 64 bits"));
        }
        sets.push((name.to_string(), parsed));
    }
    Ok(sets)
}
