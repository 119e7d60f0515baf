//! Terminal output: results on standard output, notes on standard error, and the format of quantities.
//!
//! Guarantees that a reader that went away ends the program quietly, which `println!` would not.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::{Failure, Result, reason};

/// Writes to standard output at once, so that generated text appears while it grows.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::mistake(format!("cannot write the output: {}", reason(&error)))
        }
    })
}

/// Writes a line to standard error. A closed standard error is no reason to stop.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A bar over a number of bytes, on standard error; invisible when that is no terminal.
pub fn bytes_bar(what: &'static str) -> ProgressBar {
    bar(what, "{msg} [{bar:40}] {bytes}/{total_bytes}")
}

/// A bar over a number of tokens, on standard error; invisible when that is no terminal.
pub fn tokens_bar(what: &'static str, count: u64) -> ProgressBar {
    let bar = bar(what, "{msg} [{bar:40}] {pos}/{len}");
    bar.set_length(count);
    bar
}

fn bar(what: &'static str, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    bar
}

/// A number of bytes as people read it.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS.get(unit).unwrap_or(&""))
}

/// `1 token`, `2 tokens`.
pub fn tokens(count: usize) -> String {
    if count == 1 { "1 token".into() } else { format!("{count} tokens") }
}
