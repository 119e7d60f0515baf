//! Variables as a debugger shows them: a line of text each, parts and elements below it, tables and heat maps.

use tk_interp::debug::{Data, Held, UNWRITTEN};

/// Rows and columns of a heat map or table in the console; more are sampled or left out.
const ROWS: usize = 32;
const COLUMNS: usize = 64;
const TABLE_COLUMNS: usize = 12;
/// From the smallest to the largest value.
const SHADES: &[char] = &[' ', '·', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Elements of which the range is computed.
const COUNTED: usize = 1 << 22;

/// One line about a value.
pub fn line(held: &Held) -> String {
    match held {
        Held::Known(text) => text.clone(),
        Held::Nothing => "no value".into(),
        Held::Parts(parts) => {
            let parts: Vec<String> = parts.iter().map(|(name, v)| format!("{name}: {}", brief(v))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        Held::Data(d) if d.shape().is_empty() || d.is_pointer() => d.text(),
        Held::Data(d) => match d.contents() {
            Some(contents) => format!("{} · {}", d.text(), range(&contents)),
            None if d.count() <= 8 => d.text(),
            None => range(d),
        },
    }
}

fn brief(held: &Held) -> String {
    match held {
        Held::Data(d) if d.shape().is_empty() => d.text(),
        Held::Data(d) => d.type_text(),
        Held::Known(text) => text.clone(),
        Held::Nothing => "no value".into(),
        Held::Parts(_) => "{ .. }".into(),
    }
}

/// The type of a value.
pub fn type_text(held: &Held) -> String {
    match held {
        Held::Data(d) => d.type_text(),
        Held::Known(_) => "compile time".into(),
        Held::Nothing => String::new(),
        Held::Parts(_) => "tuple or struct".into(),
    }
}

/// The smallest and largest number of a tile, and how many are none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The smallest finite number.
    pub min: f64,
    /// The largest finite number.
    pub max: f64,
    /// NaNs.
    pub nan: usize,
    /// Infinities.
    pub infinite: usize,
}

/// The range of the first [`COUNTED`] numbers.
pub fn span(data: &Data) -> Span {
    let mut out = Span { min: f64::INFINITY, max: f64::NEG_INFINITY, nan: 0, infinite: 0 };
    for n in (0..data.count().min(COUNTED)).filter_map(|i| data.number(i)) {
        if n.is_nan() {
            out.nan += 1;
        } else if n.is_infinite() {
            out.infinite += 1;
        } else {
            (out.min, out.max) = (out.min.min(n), out.max.max(n));
        }
    }
    out
}

/// The smallest and largest of the first [`COUNTED`] integers, which a float may round; none of other elements.
pub fn whole(data: &Data) -> Option<(i128, i128)> {
    let written = (0..data.count().min(COUNTED)).filter(|i| data.is_written(*i));
    let all = written.map(|i| data.integer(i));
    all.map(|n| n.map(|n| (n, n))).reduce(|a, b| Some((a?.0.min(b?.0), a?.1.max(b?.1))))?
}

/// `-3.2 .. 2.9, 4 NaN, 2 uninitialized`
fn range(data: &Data) -> String {
    let Span { min, max, nan, infinite } = span(data);
    let mut parts = vec![];
    let of_floats = (min <= max).then(|| (min.to_string(), max.to_string()));
    let ends = whole(data).map(|(min, max)| (min.to_string(), max.to_string())).or(of_floats);
    parts.extend(
        ends.map(|(min, max)| if min == max { format!("all {min}") } else { format!("{min} .. {max}") }),
    );
    if nan > 0 {
        parts.push(format!("{nan} NaN"));
    }
    if infinite > 0 {
        parts.push(format!("{infinite} infinite"));
    }
    let unwritten = (0..data.count().min(COUNTED)).filter(|i| !data.is_written(*i)).count();
    if unwritten > 0 {
        parts.push(if parts.is_empty() { UNWRITTEN.into() } else { format!("{unwritten} {UNWRITTEN}") });
    }
    if parts.is_empty() { data.text() } else { parts.join(", ") }
}

/// The extents of a matrix that has all elements: rows are all but the last dimension.
fn matrix(data: &Data) -> (usize, usize) {
    let columns = data.shape().last().map_or(1, |d| usize::try_from(*d).unwrap_or(1)).max(1);
    (data.count() / columns, columns)
}

/// The elements in rows and columns; of more than two dimensions, a matrix for each position in the others.
pub fn table(data: &Data) -> String {
    let (rows, columns) = matrix(data);
    let shape = data.shape();
    let outer = shape.get(..shape.len().saturating_sub(2)).unwrap_or(&[]);
    let outer: Vec<usize> = outer.iter().map(|d| usize::try_from(*d).unwrap_or(1)).collect();
    let of_matrix = (rows / outer.iter().product::<usize>().max(1)).max(1);
    let mut out = format!("{}\n", data.type_text());
    for r in 0..rows.min(ROWS) {
        if !outer.is_empty() && r.is_multiple_of(of_matrix) {
            out += &format!("{:?}\n", position(r / of_matrix, &outer));
        }
        let cells: Vec<String> = (0..columns.min(TABLE_COLUMNS))
            .map(|c| format!("{:>10}", shortened(&data.element(r * columns + c))))
            .collect();
        let more = if columns > TABLE_COLUMNS { format!("  .. {columns} columns") } else { String::new() };
        out += &format!("{:>5} {}{more}\n", r % of_matrix, cells.join(" "));
    }
    if rows > ROWS {
        out += &format!("   .. {rows} rows\n");
    }
    out
}

/// The position of a number in row-major order.
fn position(mut number: usize, extents: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> = extents
        .iter()
        .rev()
        .map(|extent| {
            let at = number % (*extent).max(1);
            number /= (*extent).max(1);
            at
        })
        .collect();
    out.reverse();
    out
}

fn shortened(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(n) if text.len() > 10 => format!("{n:.3e}"),
        Ok(_) | Err(_) => text.to_string(),
    }
}

/// A picture of the elements: the darker, the larger. `!` is NaN, `^` and `v` are infinities.
pub fn heat(data: &Data) -> String {
    let (rows, columns) = matrix(data);
    let Span { min, max, .. } = span(data);
    let step = |n: usize, most: usize| n.div_ceil(most).max(1);
    let (down, across) = (step(rows, ROWS), step(columns, COLUMNS));
    let mut out = format!("{}, {}\n", data.type_text(), range(data));
    if down > 1 || across > 1 {
        out += &format!("one of {down} x {across} elements\n");
    }
    for r in (0..rows).step_by(down) {
        let shades = (0..columns).step_by(across).map(|c| shade(data.number(r * columns + c), min, max));
        out += &format!("|{}|\n", shades.collect::<String>());
    }
    out
}

fn shade(n: Option<f64>, min: f64, max: f64) -> char {
    match n {
        None => '?',
        Some(n) if n.is_nan() => '!',
        Some(f64::INFINITY) => '^',
        Some(f64::NEG_INFINITY) => 'v',
        Some(n) => {
            let share = if max > min { (n - min) / (max - min) } else { 0.5 };
            let at = (share * (SHADES.len() - 1) as f64).round() as usize;
            SHADES.get(at).copied().unwrap_or('?')
        }
    }
}
