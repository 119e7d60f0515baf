//! `tk learn`: puzzles, in a folder of the reader.
//!
//! Guarantees that a file of the reader is never written: a puzzle is only copied to where nothing is.

mod check;
mod progress;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use tk_learn::Puzzle;
use tk_runtime::files::reason;

use crate::args::{InputArgs, LearnAction, LearnArgs};
use crate::input::Inputs;
use crate::report::Line;
use crate::suggest;
use crate::terminal::{Failure, Outcome, Terminal};
use crate::watch;
use progress::Progress;

/// The folder of the reader's files.
const FOLDER: &str = "tk-learn";

/// The subcommands, for suggestions.
const ACTIONS: [&str; 4] = ["check", "hint", "solution", "watch"];

/// The puzzles, and the state of the reader.
struct Course {
    puzzles: Vec<Puzzle>,
    progress: Progress,
    /// The folder of the reader's files; empty if it is the current one.
    folder: PathBuf,
}

impl Course {
    /// Of the current folder. In the folder of the puzzles, the commands do the same as beside it.
    fn open() -> Course {
        let here = std::env::current_dir().unwrap_or_default();
        let folder = if here.ends_with(FOLDER) { PathBuf::new() } else { PathBuf::from(FOLDER) };
        Course { puzzles: tk_learn::all(), progress: Progress::load(&folder), folder }
    }

    /// The puzzle that an argument names; without one the current puzzle.
    fn choose(&self, text: Option<&str>) -> Result<Puzzle, String> {
        if let Some(text) = text {
            return find(&self.puzzles, text).cloned();
        }
        let current = self.progress.current(&self.puzzles).cloned();
        current.ok_or_else(|| "all puzzles are done; name one: `tk learn 3`".to_string())
    }

    /// The path of the reader's file.
    fn path(&self, puzzle: &Puzzle) -> String {
        self.folder.join(format!("{}.tk", puzzle.name)).display().to_string()
    }

    fn state(&self, puzzle: &Puzzle) -> &'static str {
        if self.progress.is_done(puzzle) {
            "done"
        } else if PathBuf::from(self.path(puzzle)).exists() {
            "tried"
        } else {
            "open"
        }
    }

    /// The object of a puzzle.
    fn line<'c>(&self, puzzle: &Puzzle, file: &'c str) -> Line<'c> {
        let Puzzle { number, name, title, .. } = *puzzle;
        Line::Puzzle { number, name, title, state: self.state(puzzle), file }
    }

    /// Keeps the state. Where that is not possible, everything works but for what it remembers.
    fn save(&self, terminal: &Terminal) -> Outcome {
        match self.progress.save() {
            Ok(()) => Ok(()),
            Err(why) => terminal.note(&format!("your progress is not kept: {why}")),
        }
    }

    /// Copies the puzzle to its file, unless something is there: returns whether it did.
    fn copy(&self, puzzle: &Puzzle) -> Result<bool, String> {
        let path = self.path(puzzle);
        progress::make_folder(&self.folder)?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(puzzle.text.as_bytes()).map(|()| true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => match progress::dangling(path.as_ref()) {
                Some(why) => return Err(why),
                None => Ok(false),
            },
            Err(e) => Err(e),
        }
        .map_err(|e| format!("cannot write {path}: {}", reason(&e)))
    }
}

/// Runs `tk learn`.
pub fn run(terminal: &Terminal, args: &LearnArgs) -> Outcome {
    let mut course = Course::open();
    if course.progress.is_damaged {
        terminal
            .note(&format!("{}: what is unreadable in it counts as nothing done", course.progress.path()))?;
    }
    // `tk learn 3 check` is as good as `tk learn check 3`.
    let first = args.puzzle.as_deref();
    let chosen = |course: &Course, second: &Option<String>| course.choose(second.as_deref().or(first));
    if let (Some(text), false) = (first, args.extra.is_empty()) {
        find(&course.puzzles, text)?;
        return Err(Failure::Sentence(format!("`tk learn {text}` takes nothing after it")));
    }
    match (&args.action, first) {
        (None, None) => list(terminal, &course),
        (None, Some(text)) => begin(terminal, &mut course, text),
        (Some(LearnAction::Check(args)), _) => {
            let puzzle = chosen(&course, &args.which.puzzle)?;
            let path = course.path(&puzzle);
            if !PathBuf::from(&path).exists() {
                let n = puzzle.number;
                let missing = || format!("{path} does not exist; `tk learn {n}` makes it");
                return Err(progress::dangling(path.as_ref()).unwrap_or_else(missing).into());
            }
            let inputs = Inputs::new(&InputArgs { stdin_name: None }, [path.as_str()])?;
            check::run(terminal, &mut course, &puzzle, &inputs, args.timeout)
        }
        (Some(LearnAction::Hint(args)), _) => {
            let puzzle = chosen(&course, &args.puzzle)?;
            hint(terminal, &mut course, &puzzle)
        }
        (Some(LearnAction::Solution(args)), _) => {
            let puzzle = chosen(&course, &args.puzzle)?;
            text(terminal, "solution", puzzle.solution)
        }
        (Some(LearnAction::Watch(args)), _) => {
            let puzzle = chosen(&course, &args.which.puzzle)?;
            course.copy(&puzzle)?;
            watch::rounds(terminal, &InputArgs { stdin_name: None }, &[course.path(&puzzle)], |inputs| {
                check::run(terminal, &mut course, &puzzle, inputs, args.timeout)
            })
        }
    }
}

/// The puzzle with a number or a name: `3`, `edges`, `03_edges`, `tk-learn/03_edges.tk`. The error is one sentence.
fn find<'p>(puzzles: &'p [Puzzle], text: &str) -> Result<&'p Puzzle, String> {
    let stem = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let stem = stem.strip_suffix(".tk").unwrap_or(stem).to_lowercase();
    let number = stem.parse::<usize>().ok();
    let short = |p: &Puzzle| p.name.split_once('_').map_or(p.name, |(_, short)| short);
    let found = puzzles.iter().find(|p| Some(p.number) == number || p.name == stem || short(p) == stem);
    found.ok_or_else(|| {
        let last = puzzles.last().map_or(0, |p| p.number);
        let names: Vec<&str> = puzzles.iter().map(short).chain(ACTIONS).collect();
        let hint = if number.is_some() { String::new() } else { suggest::hint(&stem, &names) };
        let advice = if hint.is_empty() { "; `tk learn` lists them" } else { &hint };
        format!("there is no puzzle `{text}`, they are 1 to {last}{advice}")
    })
}

/// Prints a text as data.
fn text(terminal: &Terminal, what: &'static str, text: &str) -> Outcome {
    if terminal.is_json() {
        return terminal.object(&Line::Lesson { what, text });
    }
    terminal.data(text)
}

fn list(terminal: &Terminal, course: &Course) -> Outcome {
    let next = course.progress.next(&course.puzzles);
    if terminal.is_json() {
        return course.puzzles.iter().try_for_each(|p| terminal.object(&course.line(p, &course.path(p))));
    }
    let done = course.puzzles.iter().filter(|p| course.progress.is_done(p)).count();
    let mut out = format!("{done} of {} puzzles are done.\n\n", course.puzzles.len());
    let width = course.puzzles.iter().map(|p| p.title.chars().count()).max().unwrap_or(0);
    for puzzle in &course.puzzles {
        let state = course.state(puzzle);
        let color = match state {
            "done" => "32",
            "tried" => "33",
            _open => "0",
        };
        let mark = if next.is_some_and(|n| n.number == puzzle.number) { "→" } else { " " };
        let state = terminal.painted(color, state);
        out += &format!("{mark} {:>2}  {:width$}  {state}\n", puzzle.number, puzzle.title);
    }
    out += "\n";
    out += &match next {
        None => everything_done(),
        Some(p) if course.state(p) == "tried" => format!(
            "Next: complete {}, then `tk learn check {n}`. `tk learn hint {n}` helps.\n",
            course.path(p),
            n = p.number
        ),
        Some(p) => format!("Next: `tk learn {}`\n", p.number),
    };
    terminal.data(&out)
}

/// What there is after the last puzzle.
fn everything_done() -> String {
    "All puzzles are done. The tutorial goes on where they end: docs/tutorial/README.md.\n".to_string()
}

/// Copies a puzzle and shows its task.
fn begin(terminal: &Terminal, course: &mut Course, text: &str) -> Outcome {
    let puzzle = course.choose(Some(text))?;
    let path = course.path(&puzzle);
    let is_new = course.copy(&puzzle)?;
    course.progress.begin(&puzzle);
    course.save(terminal)?;
    if terminal.is_json() {
        terminal.object(&course.line(&puzzle, &path))?;
        return terminal.object(&Line::Lesson { what: "task", text: &puzzle.task() });
    }
    let n = puzzle.number;
    let there = if is_new { "The puzzle is in" } else { "It was there already, and is as you left it:" };
    let title = terminal.painted("1", &format!("Puzzle {n}: {}", puzzle.title));
    terminal.data(&format!(
        "{title}\n{}\n{there} {path}\nComplete it where it says TODO. Then:\n\n    \
         tk learn check {n}    checks it, runs its tests, and draws what each program reads and writes\n    \
         tk learn hint {n}     shows a hint; each time one more\n",
        puzzle.task()
    ))
}

fn hint(terminal: &Terminal, course: &mut Course, puzzle: &Puzzle) -> Outcome {
    let before = course.progress.clone();
    let number = course.progress.hint(puzzle);
    if before != course.progress {
        course.save(terminal)?;
    }
    let (n, count) = (puzzle.number, puzzle.hints.len());
    let hint = number.checked_sub(1).and_then(|i| puzzle.hints.get(i)).copied().unwrap_or_default();
    if terminal.is_json() {
        return terminal.object(&Line::Lesson { what: "hint", text: hint });
    }
    let head = terminal.painted("1", &format!("Puzzle {n}, hint {number} of {count}:"));
    let more = match count.saturating_sub(number) {
        0 => format!("This was the last hint. `tk learn solution {n}` prints a solution.\n"),
        1 => format!("`tk learn hint {n}` shows one more.\n"),
        left => format!("`tk learn hint {n}` shows the next of {left} more.\n"),
    };
    terminal.data(&format!("{head} {hint}\n\n{more}"))
}
