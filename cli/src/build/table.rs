//! The table of built kernels that `tk build` prints.

use tk_driver::{Resources, Work};

use crate::report::{self, Line};
use crate::terminal::{Outcome, Terminal};

/// One kernel for one target.
pub struct Row {
    pub kernel: String,
    pub target: &'static str,
    pub variant: String,
    /// The names of its files.
    pub files: Vec<String>,
    pub shared_bytes: Option<u32>,
    /// The resources of the binary, its size in bytes, and the work of compiling it.
    pub binary: Option<(Resources, usize, Work)>,
}

/// The row with the names of the files that were written for it.
pub fn named(row: Row, files: &[(String, Vec<u8>)]) -> Row {
    Row { files: files.iter().map(|(name, _)| name.clone()).collect(), ..row }
}

/// Prints the rows as a table, or as an object each.
pub fn show(terminal: &Terminal, rows: &[Row]) -> Outcome {
    if terminal.is_json() {
        return rows.iter().try_for_each(|row| terminal.object(&object(row)));
    }
    let head =
        ["kernel", "target", "variant", "registers", "shared", "spills", "bytes", "ms"].map(str::to_string);
    let cells: Vec<[String; 8]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let mut text = String::new();
    for line in &cells {
        let mut out = String::new();
        for (i, cell) in line.iter().enumerate() {
            let width = cells.iter().filter_map(|l| l.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
            // Names to the left, numbers to the right.
            out.push_str(&if i < 3 { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") });
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    terminal.data(&text)
}

fn cells(row: &Row) -> [String; 8] {
    let or_none = |v: Option<String>| v.unwrap_or_else(|| "-".to_string());
    let of = |f: fn(&(Resources, usize, Work)) -> String| or_none(row.binary.as_ref().map(f));
    let known = |f: fn(&Resources) -> u32| or_none(resources(row).map(|r| f(r).to_string()));
    [
        row.kernel.clone(),
        row.target.to_string(),
        row.variant.to_string(),
        known(|r| r.registers),
        or_none(row.shared_bytes.map(|b| b.to_string())),
        known(|r| r.spill_store_bytes + r.spill_load_bytes),
        of(|(_, bytes, _)| bytes.to_string()),
        of(|(.., work)| {
            let cached = match work {
                Work::Found(_) => " (cached)",
                Work::Done { .. } => "",
            };
            format!("{:.1}{cached}", work.time().as_secs_f64() * 1e3)
        }),
    ]
}

/// What a binary uses; none where a driver assembles it.
fn resources(row: &Row) -> Option<&Resources> {
    row.binary.as_ref().map(|(r, ..)| r).filter(|r| !r.assembler.is_empty())
}

fn object(row: &Row) -> Line<'_> {
    let resources = resources(row);
    Line::Built(report::Built {
        kernel: &row.kernel,
        target: row.target,
        variant: &row.variant,
        files: &row.files,
        shared_bytes: row.shared_bytes,
        registers: resources.map(|r| r.registers),
        spill_store_bytes: resources.map(|r| r.spill_store_bytes),
        spill_load_bytes: resources.map(|r| r.spill_load_bytes),
        binary_bytes: row.binary.as_ref().map(|(_, bytes, _)| *bytes),
    })
}
