//! Renaming, and when it is refused.
//!
//! What a new name would break is not guessed: the edited texts are checked, and every name must mean what it meant.

use std::collections::{BTreeMap, BTreeSet};

use tk_ops::{DType, DTypeSet};
use tk_sema::index::Symbol;
use tk_syntax::FileId;
use tk_syntax::ast::ItemKind;
use tk_syntax::token::{Tok, lex};

use super::describe::MACHINES;
use super::navigate::{Key, key, uses, uses_in};
use super::{Analysis, Place, TextEdit, Workspace};

/// Words that are names but never those of something declared.
const TAKEN: &[&str] = &["_", "self", "std"];

/// Types and values of the language beside its element types, its functions and the facts of a device.
const BUILT_IN: &[&str] = &["tile", "view", "dtype", "shape", "inf", "nan"];

/// The name that would be renamed; `Err` is a sentence why it cannot be.
pub fn prepare(ws: &mut Workspace, path: &str, offset: usize) -> Result<Place, String> {
    let a = ws.analysis(path);
    let Some((span, symbol)) = a.symbol_at(offset) else {
        return Err("no name that the program declares here".into());
    };
    renamable(&a, symbol)?;
    Ok(a.place(span))
}

/// Fails for a symbol that cannot be renamed.
fn renamable(a: &Analysis, s: &Symbol) -> Result<(), String> {
    match key(a, s) {
        Some(Key::Builtin(..)) => return Err(format!("`{}` is built into the language", s.name)),
        Some(Key::File(_)) => return Err(format!("`{}` is a file; rename the file instead", s.name)),
        Some(Key::Declared(place)) if !Workspace::is_std(&place.path) => {}
        Some(Key::Declared(_)) | None => return Err(format!("`{}` belongs to the standard library", s.name)),
    }
    if s.name == "self" {
        return Err("`self` cannot be renamed".into());
    }
    Ok(())
}

/// Fails for a text that cannot be a name.
fn valid(name: &str) -> Result<(), String> {
    let lexed = lex(FileId(0), name);
    let one = matches!(lexed.tokens.as_slice(), [t] if matches!(t.tok, Tok::Id(id) if id == name));
    if !one || !lexed.comments.is_empty() {
        return Err(format!("`{name}` is not a name"));
    }
    if TAKEN.contains(&name) {
        return Err(format!("`{name}` has a meaning in the language"));
    }
    let is_type = DType::parse(name).is_some() || DTypeSet::class(name).is_some();
    let is_word = BUILT_IN.contains(&name) || MACHINES.iter().any(|m| m.0 == name);
    if is_type || is_word || tk_ops::rows::functions().any(|row| row.name == name) {
        return Err(format!("`{name}` is built into the language"));
    }
    Ok(())
}

/// The edits that give the symbol at an offset another name; `Err` is a sentence why that would break something.
pub fn rename(
    ws: &mut Workspace,
    path: &str,
    offset: usize,
    new_name: &str,
) -> Result<Vec<TextEdit>, String> {
    let place = prepare(ws, path, offset)?;
    valid(new_name)?;
    let a = ws.analysis(path);
    let Some((_, symbol)) = a.symbol_at(offset) else { return Ok(vec![]) };
    let Some(key) = key(&a, symbol) else { return Ok(vec![]) };
    if symbol.name == new_name {
        return Ok(vec![]);
    }
    let mut affected = BTreeSet::from([place.path]);
    let mut edits = vec![];
    for place in uses(ws, path, &a, symbol, &key) {
        if Workspace::is_std(&place.path) {
            return Err(format!("`{}` is used by the standard library", symbol.name));
        }
        affected.insert(place.path.clone());
        edits.push(TextEdit { place, text: new_name.to_string() });
    }
    let moved = Moved::new(&edits);
    let texts = moved.texts(ws);
    // Work that was given up goes on after the files that it has verified.
    let known = ws.verified.take().filter(|(of, _)| *of == edits);
    ws.verified = known.or_else(|| Some((edits.clone(), BTreeSet::new())));
    for file in affected {
        if ws.verified.as_ref().is_some_and(|(_, files)| files.contains(&file)) {
            continue;
        }
        let (before, after) = (ws.analysis(&file), ws.analyse(&file, &texts));
        unchanged(&before, &after, &moved, new_name)?;
        ws.verified.iter_mut().for_each(|(_, files)| files.extend([file.clone()]));
    }
    Ok(edits)
}

/// The edits that let files find a file under its new name: those of `use` and of what it names; where that name is taken,
/// the import keeps the old one (`use new as old;`). With a sentence if a file will not find it, as those beside it do not in
/// another folder.
pub fn rename_file(ws: &mut Workspace, old: &str, new: &str) -> (Vec<TextEdit>, Option<String>) {
    let parts = |path: &str| {
        let (folder, name) = path.rsplit_once('/')?;
        Some((folder.to_string(), name.strip_suffix(".tk")?.to_string()))
    };
    let Some((folder, stem)) = parts(old) else { return (vec![], None) };
    let Some(text) = ws.text(old) else { return (vec![], None) };
    // Where those beside it find it.
    let name = parts(new).filter(|(target, _)| *target == folder).map(|(_, name)| name);
    if name.as_ref() == Some(&stem) {
        return (vec![], None);
    }
    let beside = |path: &String| parts(path).is_some_and(|(other, _)| other == folder);
    let short = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
    let (mut edits, mut lost) = (vec![], None);
    for file in ws.files().into_iter().filter(beside) {
        if ws.text(&file).is_none_or(|text| !text.contains(&stem)) {
            continue;
        }
        let before = ws.analysis(&file);
        let named = |place: &Place| before.root_text().get(place.start..place.end) == Some(stem.as_str());
        let places: Vec<Place> =
            uses_in(&before, &Key::File(old.to_string())).into_iter().filter(named).collect();
        if places.is_empty() {
            continue;
        }
        let Some(name) = &name else {
            let why = format!("`{stem}.tk` is no longer beside it");
            return (vec![], Some(format!("`{}` still imports `{stem}`: {why}", short(&file))));
        };
        if ws.text(new).is_some() {
            let why = format!("there is already a file `{}`", short(new));
            return (vec![], Some(format!("`{}` still imports `{stem}`: {why}", short(&file))));
        }
        if let Err(why) = valid(name) {
            return (vec![], Some(format!("`{}` still imports `{stem}`: {why}", short(&file))));
        }
        let all = places.iter().map(|place| TextEdit { place: place.clone(), text: name.clone() });
        let errors = |a: &Analysis| a.checked.diagnostics.iter().filter(|d| d.is_error()).count();
        let fits = |own: &Vec<TextEdit>| {
            let mut texts = Moved::new(own).texts(ws);
            texts.insert(new.to_string(), text.clone());
            errors(&ws.analyse(&file, &texts)) <= errors(&before)
        };
        match [all.collect(), imported_as(&before, &places, name)].into_iter().find(fits) {
            Some(own) => edits.extend(own),
            None => {
                let why = format!("with `{name}` it would have an error");
                lost = Some(format!("`{}` still imports `{stem}`: {why}", short(&file)));
            }
        }
    }
    (edits, lost)
}

/// The edits of the `use` lines among some places, after which what they import has the name that it had.
fn imported_as(a: &Analysis, places: &[Place], name: &str) -> Vec<TextEdit> {
    let uses = a.root().into_iter().flat_map(|f| &f.items).filter_map(|i| match &i.kind {
        ItemKind::Use(u) => Some(u),
        _other => None,
    });
    let edits = uses.filter_map(|u| {
        let segment = u.path.segments.last()?;
        let renames = u.alias.is_none() && u.names.is_none() && u.path.segments.len() == 1;
        let place = places.iter().find(|p| u.path.segments.iter().any(|s| a.place(s.span) == **p))?;
        let text = if renames { format!("{name} as {}", segment.text) } else { name.to_string() };
        Some(TextEdit { place: place.clone(), text })
    });
    edits.collect()
}

/// The movement of places by edits.
struct Moved<'a> {
    /// The edits of each file, in order.
    edits: BTreeMap<&'a str, Vec<&'a TextEdit>>,
}

impl<'a> Moved<'a> {
    fn new(all: &'a [TextEdit]) -> Self {
        let mut edits: BTreeMap<&str, Vec<&TextEdit>> = BTreeMap::new();
        for e in all {
            edits.entry(e.place.path.as_str()).or_default().push(e);
        }
        edits.values_mut().for_each(|list| list.sort());
        Moved { edits }
    }

    /// The texts of the files with their edits.
    fn texts(&self, ws: &Workspace) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        for (path, edits) in &self.edits {
            let mut text = ws.text(path).unwrap_or_default();
            for e in edits.iter().rev() {
                let range = e.place.start..e.place.end;
                if text.get(range.clone()).is_some() {
                    text.replace_range(range, &e.text);
                }
            }
            out.insert((*path).to_string(), text);
        }
        out
    }

    /// The new place of an offset of a file.
    fn offset(&self, path: &str, offset: usize) -> usize {
        let before = self.edits.get(path).into_iter().flatten().filter(|e| e.place.end <= offset);
        before.fold(offset, |at, e| at + e.text.len() - (e.place.end - e.place.start))
    }

    /// The new place of a place; one with an edit at its start has become the new text.
    fn place(&self, p: &Place) -> Place {
        let start = self.offset(&p.path, p.start);
        let edited = self.edits.get(p.path.as_str()).into_iter().flatten().any(|e| e.place == *p);
        let len = self.edits.get(p.path.as_str()).and_then(|e| e.first()).map_or(0, |e| e.text.len());
        let end = if edited { start + len } else { self.offset(&p.path, p.end) };
        Place { path: p.path.clone(), start, end }
    }

    fn key(&self, k: Key) -> Key {
        match k {
            Key::Declared(p) => Key::Declared(self.place(&p)),
            Key::File(_) | Key::Builtin(..) => k,
        }
    }
}

/// Fails unless every name keeps its meaning and no diagnostic is new.
fn unchanged(before: &Analysis, after: &Analysis, moved: &Moved, new_name: &str) -> Result<(), String> {
    let old: BTreeSet<(String, usize)> =
        messages(before, &|p| moved.place(p)).into_iter().map(|m| m.0).collect();
    let new: Vec<Message> =
        messages(after, &Place::clone).into_iter().filter(|m| !old.contains(&m.0)).collect();
    let wrong = |m: &Message| Err(format!("with the name `{new_name}` the program has an error: {}", m.1));
    if let Some(m) = new.iter().find(|m| m.2) {
        return wrong(m);
    }
    let was = meanings(before).map(|(p, k)| (moved.place(&p), moved.key(k)));
    if !was.eq(meanings(after)) {
        return Err(format!(
            "`{new_name}` is already declared here: the renaming would change what a name means"
        ));
    }
    new.first().map_or(Ok(()), wrong)
}

/// The names of the root file with their meanings, in order.
fn meanings(a: &Analysis) -> impl Iterator<Item = (Place, Key)> {
    let own = a.index.references_in(Analysis::ROOT).iter();
    own.filter_map(|r| Some((a.place(r.span), key(a, a.index.symbol(r.symbol)?)?)))
}

/// A code and where it is reported, the message, and whether it is an error.
type Message = ((String, usize), String, bool);

/// The diagnostics, by code and place.
fn messages(a: &Analysis, place: &dyn Fn(&Place) -> Place) -> Vec<Message> {
    let one = |d: &tk_syntax::Diagnostic| {
        let p = place(&a.place(d.primary.span));
        ((format!("{}:{}", d.code.0, p.path), p.start), d.message.clone(), d.is_error())
    };
    a.checked.diagnostics.iter().map(one).collect()
}
