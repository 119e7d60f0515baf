//! Shared code of the tests: small models in separate folders, and a run of the program.
//!
//! Guarantees that a folder is gone when its test ends.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// A folder that is removed when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tk-transformer-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.file(name), bytes).unwrap();
        self.file(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tensor of a file: name, element type, shape, bytes.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: &'static str,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    pub fn f32(name: &str, shape: &[usize], value: impl Fn(usize) -> f32) -> Tensor {
        let count = shape.iter().product();
        let bytes = (0..count).flat_map(|i| value(i).to_le_bytes()).collect();
        Tensor { name: name.into(), dtype: "F32", shape: shape.to_vec(), bytes }
    }

    pub fn i32(name: &str, values: &[i32]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { name: name.into(), dtype: "I32", shape: vec![values.len()], bytes }
    }

    pub fn i64(name: &str, values: &[i64]) -> Tensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { name: name.into(), dtype: "I64", shape: vec![values.len()], bytes }
    }
}

/// The bytes of a `.safetensors` file.
pub fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for Tensor { name, dtype, shape, bytes } in tensors {
        let begin = data.len();
        data.extend(bytes);
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()] });
        header.insert(name.clone(), entry);
    }
    with_header(&Value::Object(header).to_string(), &data)
}

/// A file with any text in the place of its header.
pub fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    file
}

/// A model of one layer that a test damages before it is written.
pub struct Model {
    pub config: Value,
    pub tensors: Vec<Tensor>,
}

pub const VOCABULARY: usize = 256;
pub const CONTEXT: usize = 16;
/// One head of it, for which attention is built.
pub const WIDTH: usize = 32;

impl Model {
    pub fn new() -> Model {
        Model::with_context(CONTEXT)
    }

    pub fn with_context(context: usize) -> Model {
        let config = json!({
            "model_type": "gpt2", "vocab_size": VOCABULARY, "n_positions": context, "n_embd": WIDTH, "n_layer": 1,
            "n_head": 1, "n_inner": null, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
        });
        let shapes: [(&str, &[usize]); 16] = [
            ("wte.weight", &[VOCABULARY, WIDTH]),
            ("wpe.weight", &[context, WIDTH]),
            ("h.0.ln_1.weight", &[WIDTH]),
            ("h.0.ln_1.bias", &[WIDTH]),
            ("h.0.attn.c_attn.weight", &[WIDTH, 3 * WIDTH]),
            ("h.0.attn.c_attn.bias", &[3 * WIDTH]),
            ("h.0.attn.c_proj.weight", &[WIDTH, WIDTH]),
            ("h.0.attn.c_proj.bias", &[WIDTH]),
            ("h.0.ln_2.weight", &[WIDTH]),
            ("h.0.ln_2.bias", &[WIDTH]),
            ("h.0.mlp.c_fc.weight", &[WIDTH, 4 * WIDTH]),
            ("h.0.mlp.c_fc.bias", &[4 * WIDTH]),
            ("h.0.mlp.c_proj.weight", &[4 * WIDTH, WIDTH]),
            ("h.0.mlp.c_proj.bias", &[WIDTH]),
            ("ln_f.weight", &[WIDTH]),
            ("ln_f.bias", &[WIDTH]),
        ];
        let value = |i: usize| (i % 7) as f32 * 0.125 - 0.375;
        let tensors = shapes.iter().map(|(name, shape)| Tensor::f32(name, shape, value)).collect();
        Model { config, tensors }
    }

    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap()
    }

    /// Sets a field of the configuration.
    pub fn set(mut self, name: &str, value: Value) -> Model {
        self.config[name] = value;
        self
    }

    /// A folder with the model and a tokenizer of bytes.
    pub fn write(&self) -> Folder {
        let folder = Folder::new();
        folder.write("config.json", self.config.to_string());
        folder.write("model.safetensors", safetensors(&self.tensors));
        folder.write("tokenizer.json", TOKENIZER);
        folder
    }
}

/// A tokenizer whose 256 tokens are the bytes in the order of GPT-2's vocabulary.
pub const TOKENIZER: &str = include_str!("../../data/bytes.json");

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tk-transformer"))
}

pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    program().args(arguments).output().unwrap()
}

/// Continues a text with the model in a folder.
pub fn generate(folder: &Folder, more: &[&str]) -> Output {
    program().args(["generate", "--model"]).arg(folder.path()).args(more).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What standard error says, with the folder called `DIR`.
pub fn stderr(output: &Output, folder: &Folder) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.replace(folder.path().to_str().unwrap(), "DIR")
}

/// Asserts a mistake: exit code 2, nothing on standard output, and this sentence as the first line.
#[track_caller]
pub fn assert_mistake(output: &Output, folder: &Folder, sentence: &str) {
    let text = stderr(output, folder);
    assert_eq!(text.lines().next(), Some(format!("error: {sentence}").as_str()), "{text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(stdout(output), "");
}
