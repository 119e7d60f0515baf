//! Damaged models, each with the sentence that it gets. None of them reaches an engine.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support::{self, Folder, Model, Tensor, assert_mistake, generate, safetensors, with_header};
use serde_json::json;

#[track_caller]
fn wrong(folder: &Folder, sentence: &str) {
    assert_mistake(&generate(folder, &["--prompt", "a"]), folder, sentence);
}

#[track_caller]
fn wrong_config(name: &str, value: serde_json::Value, sentence: &str) {
    wrong(&Model::new().set(name, value).write(), &format!("DIR/config.json: {sentence}"));
}

#[track_caller]
fn wrong_weights(bytes: &[u8], sentence: &str) {
    let folder = Model::new().write();
    folder.write("model.safetensors", bytes);
    wrong(&folder, &format!("DIR/model.safetensors {sentence}"));
}

#[test]
fn the_folder() {
    let folder = Folder::new();
    wrong(&folder, "cannot read DIR/config.json: no such file or directory");
    let file = folder.write("file", "");
    let output = support::run(["generate", "--prompt", "a", "--model", file.to_str().unwrap()]);
    assert_mistake(&output, &folder, "DIR/file is not a folder");
    let absent = folder.file("absent");
    let output = support::run(["generate", "--prompt", "a", "--model", absent.to_str().unwrap()]);
    assert_mistake(&output, &folder, "cannot read DIR/absent: no such file or directory");
}

#[test]
fn the_configuration_is_no_object() {
    let folder = Model::new().write();
    folder.write("config.json", "{\"n_embd\": ");
    wrong(&folder, "DIR/config.json is not valid JSON: EOF while parsing a value at line 1 column 11");
    folder.write("config.json", "[]");
    wrong(&folder, "DIR/config.json does not hold a JSON object");
    folder.write("config.json", b"{\"model_type\": \"\xff\"}");
    wrong(&folder, "DIR/config.json is not valid JSON: invalid unicode code point at line 1 column 17");
}

#[test]
fn sizes_in_the_configuration() {
    wrong_config("vocab_size", json!(null), "`vocab_size` is missing");
    wrong_config("n_positions", json!(null), "`n_positions` is missing");
    wrong_config("n_embd", json!(0), "`n_embd` must be a whole number from 1 to 16777216, found 0");
    wrong_config("n_embd", json!(-4), "`n_embd` must be a whole number from 1 to 16777216, found -4");
    wrong_config("n_head", json!("2"), "`n_head` must be a whole number from 1 to 16777216, found \"2\"");
    wrong_config("n_inner", json!(1.5), "`n_inner` must be a whole number from 1 to 16777216, found 1.5");
    wrong_config(
        "n_layer",
        json!(1u64 << 60),
        "`n_layer` must be a whole number from 1 to 1024, found 1152921504606846976",
    );
    wrong_config("n_head", json!(3), "`n_embd` = 32 is not divisible by `n_head` = 3");
}

#[test]
fn other_fields_of_the_configuration() {
    wrong_config("model_type", json!("llama"), "`model_type` must be \"gpt2\", found \"llama\"");
    wrong_config(
        "activation_function",
        json!("relu"),
        "`activation_function` must be \"gelu_new\" or \"gelu_pytorch_tanh\", found \"relu\"",
    );
    wrong_config("layer_norm_epsilon", json!(0), "`layer_norm_epsilon` must be a number above 0, found 0");
    wrong_config("eos_token_id", json!([1]), "`eos_token_id` must be the number of a token, found [1]");
    wrong_config("tie_word_embeddings", json!(1), "`tie_word_embeddings` must be true or false, found 1");
    wrong_config(
        "scale_attn_weights",
        json!(false),
        "`scale_attn_weights` must be true, found false: this variant is not supported",
    );
}

#[test]
fn no_weights() {
    let folder = Model::new().write();
    std::fs::remove_file(folder.file("model.safetensors")).unwrap();
    wrong(&folder, "DIR has neither model.safetensors nor model.safetensors.index.json");
    std::fs::create_dir(folder.file("model.safetensors")).unwrap();
    wrong(&folder, "DIR/model.safetensors is not a file");
}

#[test]
fn files_that_are_cut_or_none() {
    let whole = safetensors(&Model::new().tensors);
    wrong_weights(&[], "is empty");
    wrong_weights(&whole[..5], "is truncated: its header is not complete");
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap());
    wrong_weights(&whole[..50], &format!("is truncated: its header has {header} bytes, 42 are there"));
    let data = whole.len() - 8 - header as usize;
    let sentence = format!("is truncated: its header announces {data} bytes of data, {} are there", data - 1);
    wrong_weights(&whole[..whole.len() - 1], &sentence);
    wrong_weights(&[&whole[..], b"ab"].concat(), "has 2 bytes after its last tensor");
    wrong_weights(&[0x7f; 64], "is not a .safetensors file: its header would have 9187201950435737471 bytes");
}

#[test]
fn headers_that_are_none() {
    wrong_weights(
        &with_header("weights", &[]),
        "has a header that is not that of a .safetensors file: expected value",
    );
    let long = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#;
    wrong_weights(
        &with_header(long, &[0; 4]),
        "has a header that is not that of a .safetensors file: invalid shape, data type, or offset for tensor",
    );
}

#[test]
fn tensors_that_do_not_fit() {
    let mut model = Model::new();
    model.tensors.retain(|tensor| tensor.name != "h.0.ln_2.bias");
    wrong(&model.write(), "DIR/model.safetensors has no tensor `h.0.ln_2.bias`");

    let mut model = Model::new();
    *model.tensor("ln_f.weight") = Tensor::f32("ln_f.weight", &[5], |_| 1.0);
    wrong(&model.write(), "`ln_f.weight` in DIR/model.safetensors has the shape [5], wanted [32]");

    let mut model = Model::new();
    *model.tensor("ln_f.weight") = Tensor::i32("ln_f.weight", &[1; 32]);
    let sentence = "`ln_f.weight` in DIR/model.safetensors has elements of I32, wanted F32, F16 or BF16";
    wrong(&model.write(), sentence);

    let model = Model::new().set("vocab_size", json!(300)).set("n_positions", json!(8));
    let sentence = "`wte.weight` in DIR/model.safetensors has the shape [256, 32], wanted [300, 32] \
                    (and 1 more tensors do not fit)";
    wrong(&model.write(), sentence);
}

#[test]
fn a_layer_too_many() {
    let mut model = Model::new();
    model.tensors.push(Tensor::f32("h.1.ln_1.weight", &[32], |_| 1.0));
    let sentence = "DIR/model.safetensors has `h.1.ln_1.weight`, which no model with `n_layer` = 1 has";
    wrong(&model.write(), sentence);
}

#[test]
fn an_output_of_its_own_is_asked_for() {
    let model = Model::new().set("tie_word_embeddings", json!(false));
    wrong(&model.write(), "DIR/model.safetensors has no tensor `lm_head.weight`");
}

#[test]
fn both_with_and_without_prefix() {
    let mut model = Model::new();
    model.tensors.push(Tensor::f32("transformer.ln_f.bias", &[32], |_| 1.0));
    let sentence = "DIR/model.safetensors has both `ln_f.bias` and `transformer.ln_f.bias`";
    wrong(&model.write(), sentence);
}

/// The model in two files, with an index that a test damages.
fn in_shards() -> (Folder, serde_json::Value) {
    let model = Model::new();
    let folder = model.write();
    std::fs::remove_file(folder.file("model.safetensors")).unwrap();
    let (first, second) = model.tensors.split_at(7);
    folder.write("first.safetensors", safetensors(first));
    folder.write("second.safetensors", safetensors(second));
    let mut index = json!({ "weight_map": {} });
    for (file, tensors) in [("first.safetensors", first), ("second.safetensors", second)] {
        for tensor in tensors {
            index["weight_map"][&tensor.name] = json!(file);
        }
    }
    (folder, index)
}

#[test]
fn shards() {
    const INDEX: &str = "model.safetensors.index.json";
    let (folder, good) = in_shards();
    folder.write(INDEX, "{}");
    wrong(&folder, "DIR/model.safetensors.index.json: `weight_map` is missing, or no object");

    let mut index = good.clone();
    index["weight_map"]["ln_f.bias"] = json!(2);
    folder.write(INDEX, index.to_string());
    wrong(&folder, "DIR/model.safetensors.index.json: the file of `ln_f.bias` must be a name, found 2");

    for outside in ["../second.safetensors", "/second.safetensors", "", "a/../../b"] {
        index["weight_map"]["ln_f.bias"] = json!(outside);
        folder.write(INDEX, index.to_string());
        let sentence = format!("\"{outside}\" is not the name of a file in this folder");
        wrong(&folder, &format!("DIR/model.safetensors.index.json: {sentence}"));
    }

    index["weight_map"]["ln_f.bias"] = json!("third.safetensors");
    folder.write(INDEX, index.to_string());
    wrong(&folder, "cannot read DIR/third.safetensors: no such file or directory");

    index["weight_map"]["ln_f.bias"] = json!("first.safetensors");
    folder.write(INDEX, index.to_string());
    let sentence = "DIR/first.safetensors has no tensor `ln_f.bias`, though model.safetensors.index.json says that it has";
    wrong(&folder, sentence);

    let mut index = good;
    index["weight_map"].as_object_mut().unwrap().remove("ln_f.bias");
    folder.write(INDEX, index.to_string());
    wrong(&folder, "DIR has no tensor `ln_f.bias`");
}

#[test]
fn tokenizers() {
    let folder = Model::new().write();
    std::fs::remove_file(folder.file("tokenizer.json")).unwrap();
    wrong(&folder, "cannot read DIR/tokenizer.json: no such file or directory");
    folder.write("tokenizer.json", "{");
    let sentence = "DIR/tokenizer.json is not a tokenizer that can be read: \
                    EOF while parsing an object at line 1 column 1";
    wrong(&folder, sentence);
    // Longer than the tokens that are merged, as long as them, and none of their beginnings.
    for prefix in ["abcdefgh", "c"] {
        for merge in [json!("a b"), json!(["a", "b"])] {
            let vocabulary = json!({"a": 0, "b": 1, "ab": 2});
            let model = json!({
                "type": "BPE", "vocab": vocabulary, "merges": [merge], "continuing_subword_prefix": prefix,
            });
            folder.write("tokenizer.json", json!({"version": "1.0", "model": model}).to_string());
            let sentence = "DIR/tokenizer.json is not a tokenizer that can be read: its merges have `b`, which does \
                            not begin with its continuing_subword_prefix, `PREFIX`";
            wrong(&folder, &sentence.replace("PREFIX", prefix));
        }
    }
    // What else the library does not expect.
    let model = json!({"type": "BPE", "vocab": {"a": 0}, "merges": []});
    let strange = json!({"type": "Precompiled", "precompiled_charsmap": "/////w=="});
    folder.write(
        "tokenizer.json",
        json!({"version": "1.0", "normalizer": strange, "model": model}).to_string(),
    );
    let sentence =
        "DIR/tokenizer.json is not a tokenizer that can be read: the library for tokenizers fails on it";
    wrong(&folder, sentence);

    let mut model = Model::new().set("vocab_size", json!(200));
    *model.tensor("wte.weight") = Tensor::f32("wte.weight", &[200, 32], |_| 1.0);
    wrong(&model.write(), "DIR/tokenizer.json has tokens up to 255 but the model's vocabulary has 200");
}
