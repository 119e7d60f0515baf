//! What a file would mean after each of several actions. A check of one body suffices for an action inside of one: blanks
//! behind its item take or give what the text becomes longer or shorter, so that the texts of all differ in this body alone
//! ([`tk_sema::Indexed::with_text`]).

use super::actions::Action;
use super::form::applied;
use super::{Analysis, TextEdit, Workspace};

/// The blanks behind the item: actions that add more lead to a check of the whole file.
const ROOM: usize = 2048;

/// The actions of a file that are tried.
pub(super) struct Trials<'w> {
    ws: &'w Workspace,
    a: &'w Analysis,
    path: &'w str,
    /// The last text with blanks.
    last: Option<Analysis>,
    /// The last text without.
    whole: Option<Analysis>,
}

impl<'w> Trials<'w> {
    pub fn new(ws: &'w Workspace, a: &'w Analysis, path: &'w str) -> Trials<'w> {
        Trials { ws, a, path, last: None, whole: None }
    }

    /// The analysis of the text that an action leaves.
    pub fn after(&mut self, action: &Action) -> Option<&Analysis> {
        let text = applied(self.a.root_text(), &action.edits)?;
        let check = |text| self.ws.analyse(self.path, &[(self.path.to_string(), text)].into());
        let Some(text) = with_room(self.a, &text, &action.edits) else {
            return Some(self.whole.insert(check(text)));
        };
        let again = self.last.take().and_then(|last| last.with_text(&text));
        Some(self.last.insert(again.unwrap_or_else(|| check(text))))
    }
}

/// A text after edits inside of one item, with the blanks behind this.
fn with_room(a: &Analysis, text: &str, edits: &[TextEdit]) -> Option<String> {
    let (start, end) = (edits.iter().map(|e| e.place.start).min()?, edits.iter().map(|e| e.place.end).max()?);
    let items = &a.root()?.items;
    let item = items.get(items.partition_point(|i| i.span.start as usize <= start).checked_sub(1)?)?;
    let last = item.span.end as usize;
    let line = last + a.root_text().get(last..)?.find(['\n', '\r'])?;
    let added = text.len() as isize - a.root_text().len() as isize;
    let room = usize::try_from(ROOM as isize - added).ok().filter(|room| end <= last && *room > 0)?;
    let (before, behind) = text.split_at_checked(line.checked_add_signed(added)?)?;
    Some(format!("{before}{}{behind}", " ".repeat(room)))
}
