//! Arguments and prompts that cannot be used, each with the sentence that it gets. None of them reaches an engine.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{self, Folder, Model, assert_mistake, generate, program, stderr};
use serde_json::json;

/// Asserts that the arguments are refused before any file is looked at.
#[track_caller]
fn refused(arguments: &[&str], sentence: &str) {
    let folder = Folder::new();
    let output = support::run(arguments);
    assert_mistake(&output, &folder, sentence);
}

#[test]
fn ranges() {
    let with =
        |name: &'static str, value: &'static str| ["generate", "--model", "x", "--prompt", "a", name, value];
    for value in ["-1", "nan", "inf", "warm"] {
        let sentence =
            format!("invalid value '{value}' for '--temperature <F>': must be a finite number, at least 0");
        refused(&with("--temperature", value), &sentence);
    }
    for value in ["0", "1.5", "-0.5", "nan"] {
        let sentence =
            format!("invalid value '{value}' for '--top-p <F>': must be a number above 0, at most 1");
        refused(&with("--top-p", value), &sentence);
    }
    refused(
        &with("--max-tokens", "0"),
        "invalid value '0' for '--max-tokens <N>': 0 is not in 1..=4294967295",
    );
    refused(&with("--device", "tpu"), "invalid value 'tpu' for '--device <DEVICE>'");
    refused(&with("--dtype", "f64"), "invalid value 'f64' for '--dtype <TYPE>'");
}

#[test]
fn choices_between_arguments() {
    refused(&["generate", "--model", "x"], "the following required arguments were not provided:");
    refused(
        &["generate", "--model", "x", "--prompt", "a", "--prompt-file", "b"],
        "the argument '--prompt <TEXT>' cannot be used with '--prompt-file <FILE>'",
    );
    refused(&["bench"], "the following required arguments were not provided:");
    refused(
        &["bench", "--model", "x", "--shape", "tiny"],
        "the argument '--model <FOLDER>' cannot be used with '--shape <SHAPE>'",
    );
    refused(
        &["bench", "--shape", "tiny", "--batch", "5000"],
        "invalid value '5000' for '--batch <N>': 5000 is not in 1..=4096",
    );
    refused(
        &["compare", "--model", "x", "--with", "y"],
        "the following required arguments were not provided:",
    );
}

#[test]
fn a_bench_beyond_the_context() {
    refused(
        &["bench", "--shape", "tiny", "--prompt-tokens", "1000", "--tokens", "25"],
        "1000 + 25 tokens do not fit into the model's context of 1024 tokens",
    );
}

#[cfg(unix)]
#[test]
fn text_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Model::new().write();
    let wrong = std::ffi::OsStr::from_bytes(b"caf\xe9");
    let mut command = program();
    command.args(["generate", "--model"]).arg(folder.path()).arg("--prompt").arg(wrong);
    let output = command.output().unwrap();
    assert_mistake(&output, &folder, "the prompt is not valid UTF-8: byte 0xe9 at position 3");
    let output = command.args(["--prompt", "a"]).output().unwrap();
    assert_mistake(&output, &folder, "prompt 1 is not valid UTF-8: byte 0xe9 at position 3");
}

#[test]
fn files_with_prompts() {
    let folder = Model::new().write();
    let file = folder.write("prompt.txt", b"a\xff");
    let output = generate(&folder, &["--prompt-file", file.to_str().unwrap()]);
    assert_mistake(&output, &folder, "DIR/prompt.txt is not valid UTF-8: byte 0xff at position 1");
    let absent = folder.file("absent");
    let output = generate(&folder, &["--prompt-file", absent.to_str().unwrap()]);
    assert_mistake(&output, &folder, "cannot read DIR/absent: no such file or directory");
}

#[test]
fn a_prompt_beyond_the_context() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "a prompt that is too long"]);
    assert_mistake(&output, &folder, "the prompt has 25 tokens, but the model's context has 16 tokens");
}

#[test]
fn an_empty_prompt_without_a_token_to_begin_with() {
    let folder = Model::new().write();
    let sentence = "the prompt is empty, and the model has no token that begins a text";
    assert_mistake(&generate(&folder, &["--prompt", ""]), &folder, sentence);
    // A token that the vocabulary does not have is none.
    let folder = Model::new().set("eos_token_id", json!(50256)).write();
    assert_mistake(&generate(&folder, &["--prompt", ""]), &folder, sentence);
}

#[test]
fn traces_that_cannot_be_written() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "a", "--trace", "/nowhere/at/all.json"]);
    assert_mistake(&output, &folder, "there is no folder /nowhere/at to write all.json to");
    let output = generate(&folder, &["--prompt", "a", "--trace", folder.path().to_str().unwrap()]);
    assert_mistake(&output, &folder, "DIR is a folder");
}

#[test]
fn advice_is_below_the_sentence() {
    let folder = Folder::new();
    folder.write("config.json", Model::new().config.to_string());
    let text = stderr(&generate(&folder, &["--prompt", "a"]), &folder);
    let sentence = "error: DIR has neither model.safetensors nor model.safetensors.index.json\n";
    assert_eq!(
        text,
        format!("{sentence}  help: Weights in another format have to be saved as .safetensors first.\n")
    );
}
