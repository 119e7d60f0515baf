//! Variables as a client unfolds them: each that has parts or elements has a reference, by which it asks for them.

use serde_json::{Value as Json, json};
use tk_interp::debug::{Data, Held};

use super::values;

/// Why a view has no elements to show.
const NO_CONTENTS: &str = "this view is empty, leads out of its buffer, or is too large to be shown";

/// What a variables reference stands for.
#[derive(Clone)]
pub enum Node {
    /// Variables, or parts of the value with this name.
    List(Option<String>, Vec<(String, Held)>),
    /// Elements with these leading positions.
    Elements(Data, Vec<usize>),
}

/// The references that a client has, valid until the program goes on.
#[derive(Default)]
pub struct Nodes(Vec<Node>);

impl Nodes {
    /// A reference, which is never 0.
    pub fn add(&mut self, node: Node) -> usize {
        self.0.push(node);
        self.0.len()
    }

    /// What a reference stands for.
    pub fn get(&self, reference: usize) -> Option<&Node> {
        self.0.get(reference.checked_sub(1)?)
    }
}

/// What a reference stands for, from an element on.
pub fn variables(nodes: &mut Nodes, node: &Node, start: usize, count: Option<usize>) -> Vec<Json> {
    match node {
        Node::List(of, list) => {
            let path = |name: &str| match of {
                Some(of) if name.starts_with(|c: char| c.is_ascii_digit()) => format!("{of}[{name}]"),
                Some(of) => format!("{of}.{name}"),
                None => name.to_string(),
            };
            list.iter().map(|(name, held)| variable(nodes, name, &path(name), held)).collect()
        }
        Node::Elements(data, at) => {
            let shape: Vec<usize> = data.shape().iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
            let Some(extent) = shape.get(at.len()).copied() else { return vec![] };
            let end = count.map_or(extent, |n| start.saturating_add(n).min(extent));
            let mut out = vec![];
            for i in start..end {
                let here_at: Vec<usize> = at.iter().copied().chain([i]).collect();
                let name = format!("[{i}]");
                if here_at.len() == shape.len() {
                    let flat = here_at.iter().zip(&shape).fold(0, |n, (i, d)| n * d + i);
                    out.push(json!({ "name": name, "value": data.element(flat), "variablesReference": 0 }));
                } else {
                    let rest = shape.get(here_at.len()..).unwrap_or_default();
                    let indexed = rest.first().copied().unwrap_or(0);
                    let reference = nodes.add(Node::Elements(data.clone(), here_at));
                    out.push(json!({
                        "name": name, "value": format!("{rest:?}"), "variablesReference": reference,
                        "indexedVariables": indexed,
                    }));
                }
            }
            out
        }
    }
}

/// A variable by its name, and the expression that means it.
pub fn variable(nodes: &mut Nodes, name: &str, path: &str, held: &Held) -> Json {
    let (mut reference, mut indexed) = (0, 0);
    match held {
        Held::Parts(parts) => reference = nodes.add(Node::List(Some(path.to_string()), parts.clone())),
        Held::Data(d) if !d.shape().is_empty() => {
            if let Ok(data) = elements(d.clone()) {
                indexed = data.shape().first().map_or(0, |d| usize::try_from(*d).unwrap_or(0));
                reference = nodes.add(Node::Elements(data, vec![]));
            }
        }
        Held::Data(_) | Held::Known(_) | Held::Nothing => {}
    }
    let mut out = json!({
        "name": name, "value": values::line(held), "type": values::type_text(held), "evaluateName": path,
        "variablesReference": reference,
    });
    if let (true, Json::Object(fields)) = (indexed > 0, &mut out) {
        fields.insert("indexedVariables".into(), indexed.into());
    }
    out
}

/// Elements of a picture in an editor.
const PICTURE: usize = 1 << 16;

/// The elements of a tile or view.
pub fn elements(data: Data) -> Result<Data, String> {
    match data.contents() {
        Some(contents) => Ok(contents),
        None if data.is_view() => Err(NO_CONTENTS.into()),
        None => Ok(data),
    }
}

/// The elements of what a name holds.
pub fn elements_of(held: Option<Held>, name: &str) -> Result<Data, String> {
    match held {
        Some(Held::Data(data)) => elements(data),
        Some(_) => Err(format!("`{name}` is no tile")),
        None => Err(format!("there is no variable `{name}` here")),
    }
}

/// The numbers of a tile or view for a picture.
pub fn tile(held: Option<Held>, name: &str) -> Result<Json, String> {
    let data = elements_of(held, name)?;
    let count = data.count();
    if data.is_pointer() {
        return Err(format!("`{name}` has pointers, no numbers"));
    }
    if count > PICTURE {
        return Err(format!("`{name}` has {count} elements; a picture has at most {PICTURE}"));
    }
    let values::Span { min, max, nan, infinite } = values::span(&data);
    let text = |i: usize| data.number(i).filter(|n| n.is_finite()).map_or(Json::Null, Json::from);
    Ok(json!({
        "name": name, "type": data.type_text(), "shape": data.shape(), "nan": nan, "infinite": infinite,
        "min": if min <= max { json!(min) } else { Json::Null },
        "max": if min <= max { json!(max) } else { Json::Null },
        "numbers": (0..count).map(text).collect::<Vec<_>>(),
        "texts": (0..count).map(|i| data.element(i)).collect::<Vec<_>>(),
    }))
}
