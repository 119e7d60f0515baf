//! The results: [`Report`], a JSON object that is written to its file after each change.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The results so far.
pub struct Report {
    path: PathBuf,
    values: Map<String, Value>,
}

impl Report {
    /// Nothing yet.
    pub fn new(path: &Path) -> Report {
        Report { path: path.to_path_buf(), values: Map::new() }
    }

    /// Adds a result: a kernel that never ends must not take the results before it along.
    pub fn put(&mut self, name: &str, value: Value) -> Result<(), String> {
        self.values.insert(name.to_string(), value);
        self.save()
    }

    /// Adds a result of a group.
    pub fn put_in(&mut self, group: &str, name: &str, value: Value) -> Result<(), String> {
        let group = self.values.entry(group).or_insert_with(|| json!({}));
        if let Some(group) = group.as_object_mut() {
            group.insert(name.to_string(), value);
        }
        self.save()
    }

    fn save(&self) -> Result<(), String> {
        let text = serde_json::to_string_pretty(&self.values).map_err(|e| e.to_string())?;
        let wrong = |e: std::io::Error| format!("cannot write {}: {e}", self.path.display());
        fs::write(&self.path, text + "\n").map_err(wrong)
    }
}

/// A result, or why there is none; a person who waits is told as well.
pub fn or_error(result: Result<Value, String>) -> Value {
    result.unwrap_or_else(|error| {
        eprintln!("tk-gpu-bench: {error}");
        json!({ "error": error })
    })
}

/// The value in the middle; of an even number of them, the mean of the two. 0 for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
    if sorted.len() % 2 == 1 { at(half) } else { (at(half.saturating_sub(1)) + at(half)) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }
}
