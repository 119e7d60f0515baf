//! Sweeps: `n=2^10..2^28` among the arguments, and `n` in the extents of others.
//!
//! Accepts any text. An argument is swept if its value is a range or a list of whole numbers; each combination of
//! swept numbers is a point.

use std::fmt;

use tk_runtime::Session;
use tk_sema::contract::parameters;

use crate::run::choose;
use crate::terminal::Failure;
use crate::value;

/// The most points of a sweep.
const MOST: usize = 1000;

/// A number for each swept name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point(Vec<(String, i64)>);

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(n, v)| format!("{n}={v}")).collect();
        f.write_str(&pairs.join(" "))
    }
}

/// The points of a sweep, and the arguments that are not swept.
pub fn points(args: &[String]) -> Result<(Vec<Point>, Vec<String>), String> {
    let (mut points, mut fixed) = (vec![Point::default()], vec![]);
    for text in args {
        let (name, text_of) = value::split(text)?;
        // A single number is swept too if an extent of another argument has its name.
        let single = number(text_of).filter(|_| args.iter().any(|a| names_extent(a, name)));
        let found = numbers(text_of).or(single.map(|n| Ok(vec![n])));
        if found.is_none()
            && text_of.starts_with(|c: char| c.is_ascii_digit())
            && text_of.contains(['^', ',']) | text_of.contains("..")
        {
            return Err(format!("`{text}` is not understood; write 2^10..2^20, 64..512:64 or 100,200"));
        }
        let Some(numbers) = found.transpose().map_err(|what| format!("`{text}` {what}"))? else {
            fixed.push(text.clone());
            continue;
        };
        if is_number(name) {
            return Err(format!("`{name}` is a number, not the name of one"));
        }
        if points.iter().any(|p| p.0.iter().any(|(n, _)| n == name)) {
            return Err(format!("`{name}` is given twice"));
        }
        if points.len() * numbers.len() > MOST {
            return Err(format!("these are more than {MOST} points"));
        }
        let with = |p: &Point, n: &i64| {
            let mut all = p.0.clone();
            all.push((name.to_string(), *n));
            Point(all)
        };
        points = points.iter().flat_map(|p| numbers.iter().map(move |n| with(p, n))).collect();
    }
    Ok((points, fixed))
}

fn is_number(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true if an extent in the brackets of an argument is this name, or a product with it.
fn names_extent(arg: &str, name: &str) -> bool {
    let inner =
        arg.split_once('[').and_then(|(_, rest)| rest.rsplit_once(']')).map_or("", |(inner, _)| inner);
    inner.split([',', '*']).any(|part| part.trim() == name)
}

/// The numbers of `2^10..2^28` (doubled), `64..512:64` (in steps) and `100,200,300`; `None` for any other text.
fn numbers(text: &str) -> Option<Result<Vec<i64>, String>> {
    if let Some((from, to)) = text.split_once("..") {
        let (to, step) = match to.split_once(':') {
            Some((to, step)) => (to, Some(step)),
            None => (to, None),
        };
        let (from, to) = (number(from)?, number(to)?);
        let step = match step.map(number) {
            Some(None) => return None,
            Some(Some(step)) => Some(step),
            None => None,
        };
        return Some(range(from, to, step));
    }
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() < 2 {
        return None;
    }
    parts.into_iter().map(number).collect::<Option<Vec<i64>>>().map(Ok)
}

fn range(from: i64, to: i64, step: Option<i64>) -> Result<Vec<i64>, String> {
    if from > to {
        return Err("ends before it begins".into());
    }
    let next = |n: i64| match step {
        Some(step) => n.checked_add(step),
        None => n.checked_mul(2),
    };
    if next(from).is_none_or(|n| n <= from) {
        return Err("never ends: it begins at 0, or its step is not positive".into());
    }
    let all: Vec<i64> =
        std::iter::successors(Some(from), |n| next(*n)).take_while(|n| *n <= to).take(MOST + 1).collect();
    if all.len() > MOST { Err(format!("has more than {MOST} numbers")) } else { Ok(all) }
}

/// `1024` or `2^10`.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.split_once('^') {
        Some((base, power)) => base.parse::<i64>().ok()?.checked_pow(power.parse().ok()?),
        None => text.parse().ok(),
    }
}

impl Point {
    /// Names and numbers.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(n, v)| (n.as_str(), *v))
    }

    /// An argument at this point: names in extents and as the whole value are replaced, products computed.
    fn apply_to(&self, text: &str) -> String {
        let Some((name, value)) = text.split_once('=') else { return text.to_string() };
        let replaced = match (value.find('['), value.rfind(']')) {
            (Some(open), Some(close)) if open < close => {
                let (head, rest) = value.split_at(open + 1);
                let (inner, tail) = rest.split_at(close - open - 1);
                let extents: Vec<String> = inner.split(',').map(|e| self.extent(e)).collect();
                format!("{head}{}{tail}", extents.join(","))
            }
            _ => self.extent(value),
        };
        format!("{name}={replaced}")
    }

    fn extent(&self, text: &str) -> String {
        let factor = |part: &str| {
            let part = part.trim();
            self.0.iter().find(|(n, _)| n == part).map_or_else(|| number(part), |(_, v)| Some(*v))
        };
        let uses = text.split('*').any(|part| self.0.iter().any(|(n, _)| n == part.trim()));
        let product = text.split('*').map(factor).try_fold(1i64, |all, n| all.checked_mul(n?));
        match product {
            Some(n) if uses => n.to_string(),
            Some(_) | None => text.to_string(),
        }
    }

    /// Adds the parameters of the kernel that are swept to its arguments, and to the values given by name.
    ///
    /// # Errors
    /// A swept number that nothing uses.
    pub fn with_parameters(
        &self,
        session: &Session,
        (path, name): (&str, Option<&str>),
        given: (&[String], &[String]),
    ) -> Result<(Vec<String>, Vec<String>), Failure> {
        let kernel = choose(session, path, name)?;
        let params = parameters(&session.checked().hir, kernel);
        let at = |list: &[String]| list.iter().map(|a| self.apply_to(a)).collect::<Vec<_>>();
        let (mut args, mut sets) = (at(given.0), at(given.1));
        for (n, v) in &self.0 {
            match params.iter().find(|p| p.name == *n) {
                Some(p) if p.compile_time => {
                    if !sets.iter().any(|s| s.split_once('=').is_some_and(|(name, _)| name == n)) {
                        sets.push(format!("{n}={v}"));
                    }
                }
                Some(_) => args.push(format!("{n}={v}")),
                None => {
                    let only = Point(vec![(n.clone(), *v)]);
                    let mut all = given.0.iter().chain(given.1);
                    if all.all(|a| only.apply_to(a) == *a) {
                        let sentence =
                            format!("`{n}` is swept, but it is no parameter and no extent names it");
                        return Err(Failure::Sentence(sentence));
                    }
                }
            }
        }
        Ok((args, sets))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<i64> {
        numbers(text).unwrap().unwrap()
    }

    #[test]
    fn ranges_double_or_step() {
        assert_eq!(list("2^3..2^5"), [8, 16, 32]);
        assert_eq!(list("3..13"), [3, 6, 12]);
        assert_eq!(list("64..256:64"), [64, 128, 192, 256]);
        assert_eq!(list("5,6,7"), [5, 6, 7]);
        assert_eq!(numbers("5"), None);
        assert_eq!(numbers("randn:f32[4,5]"), None);
        assert!(numbers("0..5").unwrap().is_err());
        assert!(numbers("9..5").unwrap().is_err());
        assert!(numbers("1..2^40:1").unwrap().is_err());
    }

    #[test]
    fn names_in_extents_are_replaced() {
        let (points, fixed) =
            points(&["n=2,4".into(), "x=randn:f16[n,2*m]@1".into(), "by=n".into(), "m=8".into()]).unwrap();
        assert_eq!(points.len(), 2);
        let texts: Vec<String> = fixed.iter().map(|a| points[1].apply_to(a)).collect();
        assert_eq!(texts, ["x=randn:f16[4,16]@1", "by=4"]);
    }
}
