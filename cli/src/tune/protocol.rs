//! What the command and its workers say to each other: an object on a line each, over the worker's standard input and
//! output.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a worker is asked to do. Members count from 0; none stands for the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Compile a member, into the cache.
    Compile { member: Option<usize> },
    /// Check a member against the defaults, then measure it; give up on one that is certainly slower than this.
    Measure { member: Option<usize>, slower_than_ms: Option<f64> },
    /// Measure a member again, for longer.
    Again { member: Option<usize> },
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is ready.
    Ready(Box<Ready>),
    /// It cannot work at all.
    Failed { why: String },
    /// The member is compiled.
    Compiled,
    /// The member that is measured is compiled, and is launched now.
    Launches,
    /// The member cannot be compiled or launched.
    Refused { why: String },
    /// The results of the member are not those of the defaults.
    Wrong { why: String },
    /// The member still runs.
    Hangs,
    /// The member is slower than what was asked for.
    Slow { ms: f64 },
    /// The times of the member, and the hash of its code.
    Took { ms: f64, least_ms: f64, runs: usize, code: String },
}

/// What a worker found out before its first request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The members, each with its values by name.
    pub members: Vec<Vec<(String, String)>>,
    /// The predicted time of each over that of the fastest of them and the defaults, where the cost model knows the GPU.
    pub slowness: Vec<Option<f64>>,
    /// Whether they are those of the kernel's `tune` list; otherwise they were proposed.
    pub is_listed: bool,
    /// The kernel.
    pub kernel: String,
    /// The GPU.
    pub device: String,
    /// Its target.
    pub target: String,
    /// The version of its driver.
    pub driver: String,
    /// What records of this launch are looked up by.
    pub key: Vec<i64>,
    /// For each member, the compile-time parameters that it does not choose.
    pub given: Vec<BTreeMap<String, String>>,
    /// The file of records; none for a kernel that has no file.
    pub records: Option<String>,
    /// The values that the defaults give to what members choose.
    pub default: BTreeMap<String, String>,
}
