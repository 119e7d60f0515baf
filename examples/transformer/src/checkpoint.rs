//! A model on disk: `config.json` with `model.safetensors`, or with the shards of `model.safetensors.index.json`.
//!
//! May assume nothing about the folder. Guarantees, once open, that every tensor that the configuration asks for is
//! there with its shape and with elements of a type that the engine takes, and that no file outside of the folder was
//! named by a file inside of it. Links are followed, because caches of downloaded models consist of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use safetensors::Dtype as Stored;
use serde_json::Value;

use crate::config::{Config, read_json};
use crate::failure::{Failure, Result};
use crate::setup::Dtype;
use crate::stored::Weights;

/// The one file of a model that is not divided.
const WHOLE: &str = "model.safetensors";

/// The file that says which shard has which tensor.
const INDEX: &str = "model.safetensors.index.json";

/// What some programs write before every name.
const PREFIX: &str = "transformer.";

/// A model on disk, mapped into memory.
pub struct Checkpoint {
    /// The shape of the model.
    pub config: Config,
    folder: PathBuf,
    files: Vec<Weights>,
    places: BTreeMap<String, Place>,
}

/// Where a tensor is.
struct Place {
    /// A number in the list of files.
    file: usize,
    /// The name in that file, which may have the prefix.
    name: String,
}

/// A tensor of the model.
#[derive(Clone, Debug)]
pub struct Tensor<'c> {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extents, outermost first.
    pub shape: Vec<usize>,
    /// Its elements, little-endian and not necessarily aligned.
    pub bytes: &'c [u8],
}

impl Checkpoint {
    /// Opens the model in a folder and verifies all of its tensors.
    pub fn open(folder: &Path) -> Result<Checkpoint> {
        let about = std::fs::metadata(folder).map_err(|error| Failure::file("read", folder, &error))?;
        if !about.is_dir() {
            let advice = "`--model` takes the folder with config.json and model.safetensors.";
            return Err(Failure::mistake(format!("{} is not a folder", folder.display())).advise(advice));
        }
        let config = Config::open(&folder.join("config.json"))?;
        let (files, places) = places(folder)?;
        let checkpoint = Checkpoint { config, folder: folder.to_path_buf(), files, places };
        checkpoint.verify()?;
        Ok(checkpoint)
    }

    /// A tensor by its name without prefix, as [`expected`] spells it.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        self.find(name).map_err(Failure::mistake)
    }

    /// The type in which the model is stored, by its largest tensor.
    pub fn stored(&self) -> Dtype {
        self.find("wte.weight").map_or(Dtype::F32, |tensor| tensor.dtype)
    }

    fn find(&self, name: &str) -> std::result::Result<Tensor<'_>, String> {
        let found = self.places.get(name).and_then(|place| Some((self.files.get(place.file)?, place)));
        let Some((file, place)) = found else {
            return Err(format!("{} has no tensor `{name}`", self.source()));
        };
        let path = file.path().display();
        let entry = file.entry(&place.name).ok_or_else(|| {
            format!("{path} has no tensor `{}`, though {INDEX} says that it has", place.name)
        })?;
        let dtype = element_type(entry.dtype).ok_or_else(|| {
            format!("`{name}` in {path} has elements of {}, wanted F32, F16 or BF16", entry.dtype)
        })?;
        Ok(Tensor { dtype, shape: entry.shape.to_vec(), bytes: entry.bytes })
    }

    fn file_of(&self, name: &str) -> String {
        let file = self.places.get(name).and_then(|place| self.files.get(place.file));
        file.map_or_else(|| self.source(), |file| file.path().display().to_string())
    }

    /// What a sentence about an absent tensor names: the one file, or the folder of the shards.
    fn source(&self) -> String {
        let source = match self.files.as_slice() {
            [one] => one.path(),
            _ => &self.folder,
        };
        source.display().to_string()
    }

    /// Compares what is there with what the configuration asks for. All of it is looked at, and the first thing that
    /// does not fit is named.
    fn verify(&self) -> Result<()> {
        let wanted = expected(&self.config);
        let mut wrong: Vec<String> = Vec::new();
        for (name, shape) in &wanted {
            match self.find(name) {
                Err(what) => wrong.push(what),
                Ok(tensor) if tensor.shape != *shape => {
                    let (file, found) = (self.file_of(name), tensor.shape);
                    wrong.push(format!("`{name}` in {file} has the shape {found:?}, wanted {shape:?}"));
                }
                Ok(_) => {}
            }
        }
        // A layer too many would be left out without a word, and the text would be nonsense.
        let known: BTreeSet<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
        for name in self.places.keys().filter(|name| name.starts_with("h.") && !is_buffer(name)) {
            if !known.contains(name.as_str()) {
                let (file, layers) = (self.file_of(name), self.config.layers);
                wrong.push(format!("{file} has `{name}`, which no model with `n_layer` = {layers} has"));
            }
        }
        let Some(first) = wrong.first() else { return Ok(()) };
        let sentence = match wrong.len() {
            1 => first.clone(),
            more => format!("{first} (and {} more tensors do not fit)", more - 1),
        };
        Err(Failure::mistake(sentence).advise("config.json and the weights must be of the same model."))
    }
}

/// The tensors of a model, by their names without prefix, with their shapes.
pub fn expected(config: &Config) -> Vec<(String, Vec<usize>)> {
    let (width, inner) = (config.width, config.inner);
    let mut all = vec![
        ("wte.weight".to_string(), vec![config.vocabulary, width]),
        ("wpe.weight".to_string(), vec![config.context, width]),
    ];
    let of_a_layer = [
        ("ln_1.weight", vec![width]),
        ("ln_1.bias", vec![width]),
        ("attn.c_attn.weight", vec![width, 3 * width]),
        ("attn.c_attn.bias", vec![3 * width]),
        ("attn.c_proj.weight", vec![width, width]),
        ("attn.c_proj.bias", vec![width]),
        ("ln_2.weight", vec![width]),
        ("ln_2.bias", vec![width]),
        ("mlp.c_fc.weight", vec![width, inner]),
        ("mlp.c_fc.bias", vec![inner]),
        ("mlp.c_proj.weight", vec![inner, width]),
        ("mlp.c_proj.bias", vec![width]),
    ];
    for layer in 0..config.layers {
        all.extend(of_a_layer.iter().map(|(name, shape)| (format!("h.{layer}.{name}"), shape.clone())));
    }
    all.push(("ln_f.weight".into(), vec![width]));
    all.push(("ln_f.bias".into(), vec![width]));
    if !config.tied {
        all.push(("lm_head.weight".into(), vec![config.vocabulary, width]));
    }
    all
}

/// Masks that some programs store with the weights although they follow from the shape.
fn is_buffer(name: &str) -> bool {
    name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")
}

fn element_type(stored: Stored) -> Option<Dtype> {
    match stored {
        Stored::F32 => Some(Dtype::F32),
        Stored::F16 => Some(Dtype::F16),
        Stored::BF16 => Some(Dtype::BF16),
        _ => None,
    }
}

type Places = (Vec<Weights>, BTreeMap<String, Place>);

/// Opens the files of a model and notes which has which tensor.
fn places(folder: &Path) -> Result<Places> {
    let (whole, index) = (folder.join(WHOLE), folder.join(INDEX));
    if whole.exists() {
        let file = Weights::open(&whole)?;
        let mut places = BTreeMap::new();
        for name in file.names() {
            place(&mut places, &whole, Place { file: 0, name })?;
        }
        return Ok((vec![file], places));
    }
    if index.exists() {
        return shards(folder, &index);
    }
    let sentence = format!("{} has neither {WHOLE} nor {INDEX}", folder.display());
    Err(Failure::mistake(sentence)
        .advise("Weights in another format have to be saved as .safetensors first."))
}

/// Opens each shard that the index names, once.
fn shards(folder: &Path, index: &Path) -> Result<Places> {
    let value = read_json(index)?;
    let wrong = |what: String| Failure::mistake(format!("{}: {what}", index.display()));
    let Some(Value::Object(map)) = value.get("weight_map") else {
        return Err(wrong("`weight_map` is missing, or no object".into()));
    };
    let mut files: Vec<Weights> = Vec::new();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (name, shard) in map {
        let Some(shard) = shard.as_str() else {
            return Err(wrong(format!("the file of `{name}` must be a name, found {shard}")));
        };
        let file = match numbers.get(shard) {
            Some(file) => *file,
            None => {
                if !stays_inside(shard) {
                    return Err(wrong(format!("\"{shard}\" is not the name of a file in this folder")));
                }
                files.push(Weights::open(&folder.join(shard))?);
                numbers.insert(shard, files.len() - 1);
                files.len() - 1
            }
        };
        place(&mut places, index, Place { file, name: name.clone() })?;
    }
    Ok((files, places))
}

/// Whether a name that a file mentions means a file in the same folder or below it.
fn stays_inside(name: &str) -> bool {
    let path = Path::new(name);
    !name.is_empty() && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn place(places: &mut BTreeMap<String, Place>, file: &Path, place: Place) -> Result<()> {
    let bare = place.name.strip_prefix(PREFIX).unwrap_or(&place.name).to_string();
    match places.insert(bare.clone(), place) {
        None => Ok(()),
        Some(_) => {
            let sentence = format!("{} has both `{bare}` and `{PREFIX}{bare}`", file.display());
            Err(Failure::mistake(sentence))
        }
    }
}
