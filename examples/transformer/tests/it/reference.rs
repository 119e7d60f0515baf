//! The trained model against logits that PyTorch computed, and what it writes: `tests/data/tiny.safetensors` is from
//! `tools/reference.py` on a GPU, in f32, for 200 tokens of text that the model was not trained on.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Output;

use crate::support::{program, run};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tiny");
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.safetensors");

fn compared(dtype: &str, tolerance: &str) -> Output {
    let place = ["--model", MODEL, "--with", REFERENCE, "--dtype", dtype, "--tolerance", tolerance];
    program().arg("compare").args(place).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn logits_are_those_of_pytorch() {
    // What 6 layers of sums in another order leave; f16 and bf16 round 8 and 64 times as coarsely as each other.
    for (dtype, tolerance) in [("f32", "1e-3"), ("f16", "3e-2"), ("bf16", "3e-1")] {
        let output = compared(dtype, tolerance);
        assert_eq!(output.status.code(), Some(0), "{dtype}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("of 200, 0 of them beyond"), "{}", text(&output.stdout));
    }
    // The comparison can fail.
    assert_eq!(compared("f16", "1e-5").status.code(), Some(1));
}

fn written(more: &[&str]) -> String {
    let output = run(["generate", "--model", MODEL, "--max-tokens", "24"].iter().chain(more));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_batch_writes_what_each_writes_alone() {
    let prompts = ["# Types", "A kernel", "x", "The launch contract says what"];
    let mut all: Vec<&str> = prompts.iter().flat_map(|p| ["--prompt", p]).collect();
    all.extend(["--temperature", "0"]);
    let together = written(&all);
    for prompt in prompts {
        let alone = written(&["--prompt", prompt, "--temperature", "0"]);
        assert!(together.contains(&format!("> {prompt}\n{}", alone.trim_end())), "{together}\n---\n{alone}");
    }
}

#[test]
fn a_seed_gives_the_same_text_and_another_seed_another() {
    let of = |seed| written(&["--prompt", "A tile", "--seed", seed]);
    assert_eq!(of("3"), of("3"));
    assert_ne!(of("3"), of("4"));
}

#[test]
fn one_likeliest_token_is_no_choice() {
    let greedy = written(&["--prompt", "A tile", "--temperature", "0"]);
    assert_eq!(written(&["--prompt", "A tile", "--top-k", "1"]), greedy);
    assert_eq!(written(&["--prompt", "A tile", "--top-k", "0", "--top-p", "0.0001"]), greedy);
}
