//! The puzzles of `tk learn`.

use serde_json::{Value, json};
use tk_learn::{Answer, Puzzle};
use tk_runtime::Echo;

use crate::program::{FILE, Program, check, rendered, report};
use crate::tests::{begin, end};

/// All puzzles with their hints and solutions.
pub fn all() -> Value {
    let one = |p: &Puzzle| {
        json!({
            "number": p.number, "title": p.title, "task": p.task(), "text": p.text, "hints": p.hints,
            "solution": p.solution,
        })
    };
    json!({ "puzzles": tk_learn::all().iter().map(one).collect::<Vec<_>>() })
}

/// Judges a text: its tests, the hidden ones, and a picture of a launch.
pub fn answer(number: usize, (text, echo): (&str, Echo), say: &mut dyn FnMut(&Value)) {
    let Some(puzzle) = tk_learn::all().into_iter().find(|p| p.number == number) else {
        return say(&json!({ "error": format!("there is no puzzle {number}") }));
    };
    let own = check(text);
    let is_right = report(&own, say);
    if let Some(error) = tk_learn::changed(&puzzle, text, "your program") {
        return say(&json!({ "error": error }));
    }
    if !is_right {
        return;
    }
    let answer = Answer::new(&puzzle, &Program(text), FILE, None).with_echo(echo);
    let misfits = answer.misfits();
    if !misfits.is_empty() {
        say(&json!({ "diagnostics": rendered(answer.sources(), &misfits) }));
        return say(&json!({ "error": tk_learn::misfit("your program") }));
    }
    let tests = answer.tests();
    say(&json!({ "count": tests.len() }));
    let (mut shown, mut solved) = (None, true);
    for (test, name) in tests {
        begin(answer.sources(), (name, test.is_hidden, test.place), say);
        let failed = end(answer.sources(), &answer.run(test), say);
        shown = answer.shown(test, failed).or(shown);
        if failed {
            solved = false;
            if let Some(text) = answer.text(test) {
                say(&json!({ "source": text }));
            }
            break;
        }
    }
    if let Some((which, launch)) = shown {
        let paint = |color: &str, text: &str| format!("\x1b[{color}m{text}\x1b[0m");
        say(&json!({ "picture": tk_learn::draw(which, &launch, &paint) }));
    }
    say(&json!({ "solved": solved }));
}
