//! `tk cache info|clear`, and how the compile cache is described.

use tk_driver::{Cache, Size};

use crate::args::{CacheAction, CacheArgs};
use crate::report::{self, Line};
use crate::terminal::{Outcome, Terminal};

/// Shows or empties the cache.
pub fn run(terminal: &Terminal, args: &CacheArgs) -> Outcome {
    let cache = Cache::of_process();
    match args.action {
        CacheAction::Info => show(terminal, &cache, ""),
        CacheAction::Clear => {
            let removed = cache.clear()?;
            let message = format!("removed {}", contents(removed));
            if terminal.is_json() {
                return terminal.object(&object(&cache, true, &message));
            }
            terminal.data(&format!("{message}\n"))
        }
    }
}

/// Describes the cache in a line that begins with `name`, and in another one what is wrong with its settings.
pub fn show(terminal: &Terminal, cache: &Cache, name: &str) -> Outcome {
    let writable = cache.writable();
    let limit = bytes(cache.limit());
    let message = match (cache.folder(), &writable) {
        (Err(why), _) => format!("no compile cache: {why}"),
        (Ok(folder), Err(why)) if cache.distrusted().is_some() => {
            format!("{}: not used, since {why}; set TK_CACHE_DIR to another folder", folder.display())
        }
        (Ok(folder), Ok(())) => format!("{}: {} of {limit}", folder.display(), contents(cache.size())),
        (Ok(folder), Err(why)) => format!(
            "{}: {}, not writable ({why}), so compiled kernels are not kept; set TK_CACHE_DIR to another folder",
            folder.display(),
            contents(cache.size())
        ),
    };
    if terminal.is_json() {
        terminal.object(&object(cache, writable.is_ok(), &message))?;
    } else {
        terminal.data(&format!("{name}{message}\n"))?;
    }
    cache.remark().map_or(Ok(()), |remark| terminal.note(remark))
}

fn object<'a>(cache: &'a Cache, works: bool, message: &'a str) -> Line<'a> {
    let size = cache.size();
    let folder = cache.folder().ok().and_then(std::path::Path::to_str);
    let (entries, bytes, limit) = (size.entries, size.bytes, cache.limit());
    Line::Cache(report::Cache { folder, entries, bytes, limit, works, message })
}

fn contents(size: Size) -> String {
    let entries = if size.entries == 1 { "entry" } else { "entries" };
    format!("{} {entries}, {}", size.entries, bytes(size.bytes))
}

/// A size for people: `512 bytes`, `1.5 MiB`.
fn bytes(count: u64) -> String {
    let mut value = count as f64;
    let mut unit = "bytes";
    for larger in ["KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    let digits = if value.fract() == 0.0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}
