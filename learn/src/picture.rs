//! The picture of a launch: for each array, which program reads and writes each element, as text.

use std::collections::BTreeMap;

use tk_interp::Arg;
use tk_interp::trace::{AccessKind, ELEMENTS, Launch, Param, Programs, Touched};

/// Colors a text for where it is shown: the number of an escape sequence, and the text.
type Paint<'p> = dyn Fn(&str, &str) -> String + 'p;

/// Columns of a picture: as many as the narrowest terminals in use have.
const WIDTH: usize = 80;

/// Lines of one array; more do not fit on a screen beside the others.
const LINES: usize = 24;

/// Colors of programs, in order: all that are readable on light and dark ground.
const COLORS: [&str; 6] = ["36", "33", "35", "32", "34", "31"];

/// A launch and its arguments: `add[BLOCK=4](x: f32[10], n = 10) on a grid of 3 programs`.
fn launch(launch: &Launch) -> String {
    let one = |p: &Param| match &p.arg {
        Arg::Scalar(s) => format!("{} = {s}", p.name),
        Arg::Null => format!("{} = null", p.name),
        Arg::View { .. } | Arg::Ptr { .. } => array(p),
    };
    let args: Vec<String> = launch.params.iter().map(one).collect();
    let rank = rank(launch.grid);
    let extents: Vec<String> = launch.grid.iter().take(rank).map(ToString::to_string).collect();
    let programs: u64 = launch.grid.iter().map(|d| u64::from(*d)).product();
    let grid = match (programs, rank) {
        (1, _) => "1 program".to_string(),
        (_, 1) => format!("{programs} programs"),
        _ => format!("{} programs", extents.join(" x ")),
    };
    format!("{}({}), {grid}", launch.kernel, args.join(", "))
}

/// The number of axes of a grid.
fn rank(grid: [u32; 3]) -> usize {
    grid.iter().rposition(|d| *d > 1).map_or(1, |last| last + 1)
}

/// Draws a launch as text; `which` says which one it is, and `paint` colors a text by the number of an escape sequence.
pub fn draw(which: &str, launch: &Launch, paint: &Paint<'_>) -> String {
    let labels = Labels::new(launch.grid);
    let mut out = format!("\n{which}: {}\n\n", paint("1", &self::launch(launch)));
    let mut is_touched = false;
    for (i, param) in launch.params.iter().enumerate() {
        let shape = param.shape().unwrap_or_default();
        if shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).is_none_or(|n| n > ELEMENTS) {
            out += &format!("{} is too large to draw.\n\n", array(param));
            is_touched = true;
        }
        for (kind, word) in [
            (AccessKind::Read, "read"),
            (AccessKind::Write, "written"),
            (AccessKind::Atomic, "changed atomically"),
        ] {
            if let Some(touched) = launch.touched(i, kind) {
                out += &format!("{}, {word}:\n", array(param));
                out += &Drawing::new(&touched, &labels, paint).text();
                is_touched = true;
            }
        }
    }
    out += &match is_touched {
        true => labels.legend(),
        false => "No program reads or writes an element.\n".to_string(),
    };
    if let Some(program) = launch.fault {
        let program = labels.of(&Programs(program.map(Some)));
        out += &format!("A fault in program {program} ended the launch: programs after it did not run.\n");
    }
    if launch.is_cut {
        out += "The launch touches more elements than the picture holds; the later ones are left out.\n";
    }
    out + "\n"
}

/// `x: f32[10]`
fn array(param: &Param) -> String {
    format!("{}: {}{:?}", param.name, param.elem, param.shape().unwrap_or_default())
}

/// The texts that stand for programs.
struct Labels {
    rank: usize,
    /// Whether every id is a digit, so that two need nothing between them.
    is_short: bool,
    grid: [u32; 3],
}

impl Labels {
    fn new(grid: [u32; 3]) -> Labels {
        let rank = rank(grid);
        Labels { rank, is_short: grid.iter().all(|d| *d <= 10), grid }
    }

    fn of(&self, programs: &Programs) -> String {
        let id = |id: &Option<u32>| id.map_or("*".to_string(), |i| i.to_string());
        let ids: Vec<String> = programs.0.iter().take(self.rank).map(id).collect();
        ids.join(if self.is_short { "" } else { "," })
    }

    /// The color of programs, by the ids that they share.
    fn color(&self, programs: &Programs) -> &'static str {
        let [x, y, z] = programs.0.map(|id| id.map(u64::from));
        if programs.0.iter().take(self.rank).all(Option::is_none) {
            return "1";
        }
        let [width, height, _] = self.grid.map(u64::from);
        let (x, y, z) = (x.unwrap_or(0), y.unwrap_or(0), z.unwrap_or(0));
        let linear = (z * height + y) * width + x;
        COLORS.get((linear % COLORS.len() as u64) as usize).copied().unwrap_or("0")
    }

    fn legend(&self) -> String {
        let none = "`·`: none";
        if self.rank == 1 {
            return format!("Each element shows the `program_id(0)` of its program; `*`: several, {none}.\n");
        }
        let ids: Vec<String> = (0..self.rank).map(|axis| format!("`program_id({axis})`")).collect();
        let between = if self.is_short { "" } else { ", separated by a comma" };
        format!(
            "Each element shows the ids of its program, {}{between}; `*`: several, {none}.\n",
            ids.join(" and ")
        )
    }
}

/// One array.
struct Drawing<'p> {
    touched: &'p Touched,
    labels: &'p Labels,
    paint: &'p Paint<'p>,
    /// Columns of an element.
    width: usize,
}

impl<'p> Drawing<'p> {
    fn new(touched: &'p Touched, labels: &'p Labels, paint: &'p Paint<'p>) -> Drawing<'p> {
        let all = touched.elements.iter().flatten();
        let width = all.map(|programs| labels.of(programs).len()).max().unwrap_or(1);
        Drawing { touched, labels, paint, width }
    }

    fn text(&self) -> String {
        let shape: Vec<usize> = self.touched.shape.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
        let mut out = match shape.as_slice() {
            [] | [_] => self.row(),
            [outer @ .., rows, columns] => self.slices(outer, *rows, *columns),
        };
        out += &self.outside();
        out + "\n"
    }

    /// Cells that fit beside line numbers of that width.
    fn fitting(&self, margin: usize) -> usize {
        (WIDTH.saturating_sub(margin + 4) / (self.width + 1)).max(1)
    }

    /// An array of rank 1: a row, wrapped.
    fn row(&self) -> String {
        let count = self.touched.elements.len();
        let margin = count.saturating_sub(1).to_string().len();
        let fitting = self.fitting(margin);
        // Blocks are powers of two, so that a line begins with one.
        let step = [64, 32, 16, 8, 4].into_iter().find(|n| *n <= fitting).unwrap_or(fitting);
        if count <= fitting {
            return self.line(None, &self.touched.elements, false);
        }
        let mut out = String::new();
        for (i, line) in self.touched.elements.chunks(step).take(LINES).enumerate() {
            out += &self.line(Some((i * step, margin)), line, false);
        }
        if count > step * LINES {
            out += &format!("  only the first {} of {count} elements are shown\n", step * LINES);
        }
        out
    }

    /// An array of rank 2 or more: a grid for each position of its outer axes.
    fn slices(&self, outer: &[usize], rows: usize, columns: usize) -> String {
        let (mut out, mut lines) = (String::new(), 0);
        let count: usize = outer.iter().product();
        let margin = rows.saturating_sub(1).to_string().len();
        let fitting = self.fitting(margin);
        let slices = self.touched.elements.chunks((rows * columns).max(1)).take(count);
        for (i, slice) in slices.enumerate() {
            if lines >= LINES {
                out += &format!("  only the first {i} of {count} slices are shown\n");
                break;
            }
            if !outer.is_empty() {
                out += &format!("  {:?}\n", position(i, outer));
            }
            let left = LINES - lines;
            for (row, line) in slice.chunks(columns.max(1)).take(left).enumerate() {
                let shown = line.get(..fitting).unwrap_or(line);
                out += &self.line(Some((row, margin)), shown, shown.len() < columns);
            }
            lines += rows;
            if rows > left {
                out += &format!("  only the first {left} of {rows} rows are shown\n");
            }
        }
        if columns > fitting {
            out += &format!("  only the first {fitting} of {columns} columns are shown\n");
        }
        out
    }

    /// A line of cells. Where there are several, it begins with the number of its first element or of its row, which has
    /// that many digits at most.
    fn line(&self, number: Option<(usize, usize)>, cells: &[Option<Programs>], is_cut: bool) -> String {
        let width = self.width;
        let cell = |programs: &Option<Programs>| match programs {
            None => format!("{:>width$}", "·"),
            Some(p) => (self.paint)(self.labels.color(p), &format!("{:>width$}", self.labels.of(p))),
        };
        let cells: Vec<String> = cells.iter().map(cell).collect();
        let start = number.map(|(number, margin)| format!("{number:>margin$} │ ")).unwrap_or_default();
        format!("  {start}{}{}\n", cells.join(" "), if is_cut { " …" } else { "" })
    }

    /// A line for each run of elements outside of the array.
    fn outside(&self) -> String {
        let mut runs: BTreeMap<i64, (i64, Programs)> = BTreeMap::new();
        for (element, programs) in &self.touched.outside {
            match runs.last_entry() {
                Some(mut last) if last.get().0 + 1 == *element && last.get().1 == *programs => {
                    last.get_mut().0 = *element;
                }
                Some(_) | None => {
                    runs.insert(*element, (*element, *programs));
                }
            }
        }
        let mut out = String::new();
        for (first, (last, programs)) in runs.iter().take(4) {
            let elements = match last - first {
                0 => format!("element {first}"),
                1 => format!("elements {first} and {last}"),
                _ => format!("elements {first} to {last}"),
            };
            let text = format!("✗ outside: {elements}, by program {}", self.labels.of(programs));
            out += &format!("  {}\n", (self.paint)("31", &text));
        }
        if runs.len() > 4 {
            out += &format!("  and {} more places outside\n", runs.len() - 4);
        }
        out
    }
}

/// The index of a slice along each outer axis.
fn position(slice: usize, outer: &[usize]) -> Vec<usize> {
    let mut rest = slice;
    let mut at: Vec<usize> = outer
        .iter()
        .rev()
        .map(|extent| {
            let i = rest % extent.max(&1);
            rest /= extent.max(&1);
            i
        })
        .collect();
    at.reverse();
    at
}
