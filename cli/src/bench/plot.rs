//! `--plot`: a picture of what was measured, as SVG.
//!
//! With a sweep, the time over the first swept number, a line for each variant, and the time that the machine allows at
//! best. Otherwise the roofline of the machine with the kernel on it: operations in a second over operations for each
//! byte.

use std::path::Path;

use plotters::prelude::*;

use tk_runtime::files::write_all;

use super::Row;

/// Pixels of the picture.
const SIZE: (u32, u32) = (900, 560);
const MARGIN: u32 = 16;
const LABELS: u32 = 64;
const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
];
const LIMIT: RGBColor = RGBColor(120, 120, 120);

/// A line or points.
struct Series {
    label: String,
    points: Vec<(f64, f64)>,
    is_line: bool,
}

/// Writes the picture.
pub fn write(path: &Path, rows: &[Row]) -> Result<(), String> {
    let swept = rows.first().and_then(|r| r.point.pairs().next().map(|(n, _)| n.to_string()));
    let picture = match swept {
        Some(name) => draw(&name, "milliseconds", &times(rows)),
        None => draw("operations for each byte", "TFLOP/s", &roofline(rows)),
    };
    write_all(&[(path.to_path_buf(), picture?.into_bytes())])
}

/// The time of each variant over the first swept number, and the limit.
fn times(rows: &[Row]) -> Vec<Series> {
    let mut out: Vec<Series> = vec![];
    let mut put =
        |label: String, point: (f64, f64), is_line: bool| match out.iter_mut().find(|s| s.label == label) {
            Some(series) => series.points.push(point),
            None => out.push(Series { label, points: vec![point], is_line }),
        };
    for row in rows {
        let mut pairs = row.point.pairs();
        let Some((_, x)) = pairs.next() else { continue };
        // Further swept numbers tell lines apart.
        let rest: Vec<String> = pairs.map(|(n, v)| format!("{n}={v}")).collect();
        let label = [rest.join(" "), row.variant.clone()].join(" ").trim().to_string();
        let label = if label.is_empty() { "median".to_string() } else { label };
        put(label, (x as f64, row.times().median()), true);
    }
    for row in rows {
        if let (Some((_, x)), Some(bound)) = (row.point.pairs().next(), row.rate.bound()) {
            put("roofline".to_string(), (x as f64, bound.ms), false);
        }
    }
    out
}

/// The roof, and each variant below it.
fn roofline(rows: &[Row]) -> Vec<Series> {
    let mut out = vec![];
    for row in rows {
        let intensity = row.rate.operations / row.rate.bytes.max(1.0);
        let rate = row.rate.tflop_per_s(row.times().median());
        let label = if row.variant.is_empty() { "measured".into() } else { row.variant.clone() };
        out.push(Series { label, points: vec![(intensity.max(1e-3), rate.max(1e-6))], is_line: false });
    }
    let roof = rows.iter().find_map(|r| r.rate.roof());
    if let Some((memory, peak)) = roof {
        let ridge = peak / memory;
        let at = |x: f64| (x, (x * memory).min(peak) / 1e12);
        let points = vec![at(ridge / 1e4), at(ridge), at(ridge * 1e2)];
        out.push(Series { label: "roofline".into(), points, is_line: true });
    }
    out
}

fn draw(x: &str, y: &str, series: &[Series]) -> Result<String, String> {
    let mut text = String::new();
    chart(&mut text, x, y, series).map_err(|e| format!("cannot draw the picture: {e}"))?;
    Ok(text)
}

fn chart(
    text: &mut String,
    x: &str,
    y: &str,
    series: &[Series],
) -> Result<(), DrawingAreaErrorKind<std::convert::Infallible>> {
    let all = || series.iter().flat_map(|s| &s.points);
    let span = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = all().map(of).fold((f64::INFINITY, 0f64), |(l, h), v| (l.min(v), h.max(v)));
        if low > high { (0.1, 1.0) } else { (low / 1.5, high * 1.5) }
    };
    let (xs, ys) = (span(|p| p.0), span(|p| p.1));
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(widened)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(MARGIN)
        .x_label_area_size(LABELS)
        .y_label_area_size(LABELS)
        .build_cartesian_2d((xs.0..xs.1).log_scale(), (ys.0..ys.1).log_scale())
        .map_err(widened)?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .draw()
        .map_err(widened)?;
    for (i, s) in series.iter().enumerate() {
        let color = match (s.label.as_str(), COLORS.get(i % COLORS.len())) {
            ("roofline", _) | (_, None) => LIMIT,
            (_, Some(color)) => *color,
        };
        let drawn = if s.is_line || s.label == "roofline" {
            chart
                .draw_series(LineSeries::new(s.points.iter().copied(), color.stroke_width(2)))
                .map_err(widened)?
        } else {
            let marks = s.points.iter().map(|p| Circle::new(*p, 5, color.filled()));
            chart.draw_series(marks).map_err(widened)?
        };
        drawn
            .label(s.label.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(LIMIT).draw().map_err(widened)?;
    area.present().map_err(widened)
}

/// A number at an axis, to three digits.
fn tick(value: &f64) -> String {
    format!("{value:.2e}").parse::<f64>().unwrap_or(*value).to_string()
}

/// Checks that a picture can be written there, before anything is measured.
///
/// # Errors
/// A sentence: it is no SVG, or the folder does not exist.
pub fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("svg")) {
        return Err(format!("--plot {shown}: pictures are SVG; name the file `OUT.svg`"));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        Ok(())
    } else {
        Err(format!("--plot {shown}: there is no folder {}", folder.display()))
    }
}

/// An SVG in memory cannot fail to be written.
fn widened<E: std::error::Error + Send + Sync>(
    _: DrawingAreaErrorKind<E>,
) -> DrawingAreaErrorKind<std::convert::Infallible> {
    DrawingAreaErrorKind::LayoutError
}
