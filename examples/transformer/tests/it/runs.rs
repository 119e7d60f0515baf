//! Runs that reach the engine. They hold for any engine: none of them says which token follows.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Output;

use crate::support::{
    self, CONTEXT, Folder, Model, Tensor, VOCABULARY, WIDTH, assert_mistake, generate, program, safetensors,
    stderr, stdout,
};
use serde_json::{Value, json};

/// The lines of the statistics, with every number but counts of tokens taken out.
fn statistics(output: &Output, folder: &Folder) -> Vec<String> {
    stderr(output, folder).lines().map(|line| line.split(", ").next().unwrap().to_string()).collect()
}

#[test]
fn one_text() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "abc", "--max-tokens", "4"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    assert!(stdout(&output).ends_with('\n'));
    let lines = statistics(&output, &folder);
    assert_eq!(lines[..2], ["prompt: 3 tokens", "generation: 4 tokens"]);
    assert!(lines[2].starts_with("first token: ") && lines[2].ends_with(" ms"), "{lines:?}");
    assert!(lines[3].starts_with("memory: weights "), "{lines:?}");
    assert_eq!(lines.len(), 4);
}

#[test]
fn several_texts() {
    let folder = Model::new().write();
    let output =
        generate(&folder, &["--prompt", "abc", "--prompt", "x", "--max-tokens", "2", "--temperature", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    let text = stdout(&output);
    assert!(text.starts_with("> abc\n") && text.contains("\n\n> x\n"), "{text:?}");
    assert_eq!(statistics(&output, &folder)[..2], ["prompt: 4 tokens", "generation: 4 tokens"]);
}

#[test]
fn the_context_is_full() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "0123456789"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    let lines = statistics(&output, &folder);
    assert_eq!(lines[0], "the context of 16 tokens is full");
    // The last token needs no place, as nothing follows it.
    assert_eq!(lines[2], format!("generation: {} tokens", CONTEXT - 10 + 1));
}

#[test]
fn the_last_place_of_a_context_is_used() {
    // The same weights with room for more give the same tokens.
    let text = |context: usize, prompt: &str, most: &str| {
        let folder = Model::with_context(context).write();
        let output = generate(
            &folder,
            &["--prompt", prompt, "--max-tokens", most, "--temperature", "9", "--seed", "5"],
        );
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
        stdout(&output)
    };
    for (prompt, most) in [("0123456789abcdef", "1"), ("0123456789abcde", "2"), ("0123456789", "7")] {
        assert_eq!(text(16, prompt, most), text(40, prompt, most), "{prompt}");
    }
}

#[test]
fn weights_that_are_no_numbers() {
    let mut model = Model::new();
    *model.tensor("ln_f.bias") = Tensor::f32("ln_f.bias", &[WIDTH], |_| f32::NAN);
    let folder = model.write();
    let sentence = "the model's logits are not numbers: some weights are not, or are too large";
    assert_mistake(&generate(&folder, &["--prompt", "a"]), &folder, sentence);
}

#[cfg(unix)]
#[test]
fn a_trace_goes_through_links_and_to_nothing_but_files() {
    let folder = Model::new().write();
    let (file, link) = (folder.write("there.json", "before"), folder.file("link.json"));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let trace = |path: &std::path::Path| {
        generate(&folder, &["--prompt", "a", "--max-tokens", "1", "--trace", path.to_str().unwrap()])
    };
    assert_eq!(trace(&link).status.code(), Some(0));
    assert!(link.is_symlink() && std::fs::read_to_string(&file).unwrap().contains("traceEvents"));
    assert_mistake(&trace("/dev/zero".as_ref()), &folder, "/dev/zero is not a file");
}

#[test]
fn a_full_context_ends_one_text_of_several() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "0123456789", "--prompt", "abc", "--max-tokens", "12"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    let lines = statistics(&output, &folder);
    assert_eq!(lines[0], "the context of 16 tokens is full");
    assert_eq!(lines[2], format!("generation: {} tokens", (CONTEXT - 10 + 1) + 12));
}

#[test]
fn a_prompt_as_long_as_the_context() {
    let folder = Model::new().write();
    let output = generate(&folder, &["--prompt", "0123456789abcdef"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    assert_eq!(statistics(&output, &folder)[2], "generation: 1 token");
}

#[test]
fn an_empty_prompt_begins_with_a_token() {
    let folder = Model::new().set("bos_token_id", json!(65)).write();
    let output = generate(&folder, &["--prompt", "", "--max-tokens", "1"]);
    assert_eq!(statistics(&output, &folder)[..2], ["prompt: 1 token", "generation: 1 token"]);
}

#[test]
fn prefixes_masks_and_spare_outputs() {
    let mut model = Model::new();
    model.tensors.push(Tensor::f32("h.0.attn.bias", &[1, 1, CONTEXT, CONTEXT], |_| 1.0));
    for tensor in &mut model.tensors {
        tensor.name = format!("transformer.{}", tensor.name);
    }
    model.tensors.push(Tensor::f32("lm_head.weight", &[VOCABULARY, WIDTH], |_| 1.0));
    let folder = model.write();
    let output = generate(&folder, &["--prompt", "a", "--max-tokens", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
}

#[test]
fn a_model_in_shards() {
    let model = Model::new();
    let folder = model.write();
    std::fs::rename(folder.file("model.safetensors"), folder.file("shard.safetensors")).unwrap();
    let map: serde_json::Map<String, Value> =
        model.tensors.iter().map(|tensor| (tensor.name.clone(), json!("shard.safetensors"))).collect();
    folder.write("model.safetensors.index.json", json!({ "weight_map": map }).to_string());
    let output = generate(&folder, &["--prompt", "a", "--max-tokens", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
}

#[test]
fn a_prompt_from_a_file() {
    let folder = Model::new().write();
    let file = folder.write("prompt.txt", "abc\r\n");
    let output = generate(&folder, &["--max-tokens", "1", "--prompt-file", file.to_str().unwrap()]);
    assert_eq!(statistics(&output, &folder)[0], "prompt: 3 tokens");
}

#[test]
fn a_trace() {
    let folder = Model::new().write();
    let file = folder.write("trace.json", "what was there before");
    let path = file.to_str().unwrap();
    let output = generate(&folder, &["--prompt", "a", "--max-tokens", "2", "--trace", path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    let trace: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let event = &trace["traceEvents"][0];
    assert_eq!(event["ph"], "X");
    assert!(event["name"].is_string() && event["ts"].is_number() && event["dur"].is_number(), "{event}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "the file beside it is gone");

    let output = generate(&folder, &["--prompt", "0123456789", "--trace", path]);
    assert_eq!(output.status.code(), Some(0), "a full context has a step too: {}", stderr(&output, &folder));
}

#[test]
fn a_reader_that_goes_away() {
    let folder = Model::with_context(20_000).write();
    let mut command = program();
    command.args(["generate", "--prompt", "a", "--max-tokens", "19000", "--model"]).arg(folder.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output, &folder), "");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn an_interrupt() {
    use std::io::Read;
    let folder = Model::with_context(20_000).write();
    let mut command = program();
    command.args(["generate", "--prompt", "a", "--max-tokens", "19999", "--model"]).arg(folder.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // More text than a pipe holds, so that even the fastest engine is still at it.
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output, &folder));
    let lines = statistics(&output, &folder);
    assert_eq!(lines[0], "prompt: 1 token");
    assert_eq!(lines.len(), 4, "{lines:?}");
}

#[test]
fn a_bench() {
    let arguments =
        ["bench", "--shape", "tiny", "--prompt-tokens", "8", "--tokens", "4", "--repetitions", "3"];
    let output = support::run(arguments);
    let text = stdout(&output);
    assert!(text.starts_with("tiny on cpu, f32, batch 1, 8 + 4 tokens, 3 repetitions\nprompt "), "{text}");
    let output = support::run(arguments.iter().chain(&["--json"]));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["dtype"], "f32");
    assert_eq!(found["generation_tokens_per_second"]["samples"].as_array().unwrap().len(), 3);
    assert!(found["prompt_tokens_per_second"]["mean"].as_f64().unwrap() > 0.0);
}

/// Compares with a file of these tensors.
fn compare(folder: &Folder, tensors: &[Tensor], tolerance: &str) -> Output {
    let file = folder.write("reference.safetensors", safetensors(tensors));
    let mut command = program();
    command.args(["compare", "--tolerance", tolerance, "--model"]).arg(folder.path()).arg("--with").arg(file);
    command.output().unwrap()
}

fn logits(rows: usize, value: impl Fn(usize) -> f32) -> Tensor {
    Tensor::f32("logits", &[rows, VOCABULARY], value)
}

#[test]
fn logits_that_differ() {
    let folder = Model::new().write();
    // No engine's best token is both the first and the last one.
    let spike = |at: usize| move |i: usize| if i == at { 1000.0 } else { 0.0 };
    let ids = Tensor::i64("ids", &[7]);
    let texts: Vec<(Option<i32>, String)> = [0, VOCABULARY - 1]
        .iter()
        .map(|at| {
            let output = compare(&folder, &[ids.clone(), logits(1, spike(*at))], "1");
            (output.status.code(), stderr(&output, &folder))
        })
        .collect();
    assert!(texts.iter().all(|(code, _)| *code == Some(1)), "{texts:?}");
    assert!(
        texts.iter().any(|(_, text)| text.starts_with("error: after token 0, the best next token is ")),
        "{texts:?}"
    );

    // All are equal, so every token is the best one, but none has this value.
    let output = compare(&folder, &[ids.clone(), logits(1, |_| 1e6)], "1");
    let text = stderr(&output, &folder);
    assert!(
        text.starts_with("error: the logits differ by up to ")
            && text.contains(", beyond the tolerance of 1e0"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn logits_within_the_tolerance() {
    let folder = Model::new().write();
    let output = compare(&folder, &[Tensor::i32("ids", &[7, 8]), logits(2, |_| 0.5)], "1e30");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output, &folder));
    let text = stdout(&output);
    assert!(
        text.starts_with("largest absolute difference: ") && text.contains(" of 2, 0 of them beyond"),
        "{text}"
    );
}

#[test]
fn references_that_cannot_be_used() {
    let folder = Model::new().write();
    let wrong = |tensors: &[Tensor], sentence: &str| {
        let output = compare(&folder, tensors, "1");
        assert_mistake(&output, &folder, &format!("DIR/reference.safetensors {sentence}"));
    };
    let (ids, row) = (Tensor::i32("ids", &[7]), logits(1, |_| 0.0));
    wrong(std::slice::from_ref(&row), "has no tensor `ids`");
    wrong(std::slice::from_ref(&ids), "has no tensor `logits`");
    wrong(&[Tensor::i32("ids", &[]), row.clone()], "has no tokens in `ids`");
    wrong(&[Tensor::i32("ids", &[-1]), row.clone()], "has -1 in `ids`, but the model's vocabulary has 256");
    wrong(&[Tensor::i64("ids", &[256]), row.clone()], "has 256 in `ids`, but the model's vocabulary has 256");
    let long = Tensor::i32("ids", &[0; 17]);
    wrong(&[long, row.clone()], "has 17 tokens in `ids`, but the model's context has 16 tokens");
    let float = Tensor::f32("ids", &[1], |_| 1.0);
    wrong(&[float, row], "has `ids` of F32 [1], wanted I32 or I64 of one dimension");
    wrong(&[ids.clone(), logits(2, |_| 0.0)], "has `logits` of F32 [2, 256], wanted F32 [1, 256]");
    let nan = logits(1, |_| f32::NAN);
    wrong(&[ids, nan], "has NaN in `logits`, with which nothing can be compared");
}
