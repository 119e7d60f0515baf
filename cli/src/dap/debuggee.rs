//! What is debugged: decides where it stops, and answers what is asked while it stands still.
//!
//! The interpreter runs in a thread of its own, which waits here for requests while it is stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use tk_interp::Fault;
use tk_interp::debug::{Data, Debugger, Held, Stopped};
use tk_sema::Checked;
use tk_sema::hir::ConstId;
use tk_sema::index::const_value;
use tk_syntax::{FileId, SourceMap, Span};
use tk_tile::Loc;
use tk_tile::debug::Statement;

use super::breakpoint::{Breakpoint, logged};
use super::condition::{self, Names};
use super::scalar::Scalar;
use super::values;
use super::variables::{self, Node, Nodes};
use super::wire::{Request, Wire};

/// What a client can change at any time.
#[derive(Debug)]
pub struct Controls {
    /// By file.
    pub breakpoints: BTreeMap<PathBuf, Vec<Breakpoint>>,
    /// Stop where a value becomes NaN.
    pub nan: bool,
    /// Stop where a run fails.
    pub faults: bool,
}

impl Default for Controls {
    /// As the filters of exceptions are announced: a client need not set them.
    fn default() -> Self {
        Controls { breakpoints: BTreeMap::new(), nan: false, faults: true }
    }
}

/// What a client may want while something runs.
#[derive(Debug, Default)]
pub struct Interrupts {
    /// Stop where it is.
    pub pause: AtomicBool,
    /// Nothing more shall run.
    pub ended: AtomicBool,
    /// It stands still, and answers; no longer once it was told to go on.
    pub stopped: AtomicBool,
}

/// How far it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// To the next breakpoint.
    Run,
    /// To the first statement.
    Entry,
    /// To the next statement.
    Into,
    /// To the next statement of this function, or to its caller; in a program of a grid, of this one.
    Over(usize, Option<[u32; 3]>),
    /// To a caller, of this program.
    Out(usize, Option<[u32; 3]>),
}

/// Whether a request lets a program go on that stands still.
pub fn goes_on(command: &str) -> bool {
    matches!(command, "continue" | "next" | "stepIn" | "stepOut")
}

/// A function or lambda that is running, with copies of what its variables hold.
#[derive(Clone)]
struct Frame {
    name: String,
    loc: Option<Loc>,
    constants: Vec<(String, Held)>,
    variables: Vec<(String, Held)>,
}

/// The state between two stops.
struct State {
    step: Step,
    /// The functions of tests that wait for a launch.
    outer: Vec<Frame>,
    /// Whether the launch is expected to fail.
    expected: bool,
    /// Whether a fault was shown.
    failed: bool,
    /// Whether it was said that a grid does not have the program to stop in.
    outside: bool,
    /// The statement that began last in each function that is running, the number of functions then, and the program.
    begun: Vec<(Loc, usize, Option<[u32; 3]>)>,
    requests: Receiver<Request>,
}

/// What is debugged.
pub struct Debuggee {
    wire: Arc<Wire>,
    sources: SourceMap,
    /// How breakpoints name each source, and whether that is a file.
    paths: Vec<(PathBuf, bool)>,
    /// The constants of each source.
    consts: Arc<Vec<(FileId, String, Held)>>,
    controls: Arc<Mutex<Controls>>,
    interrupts: Arc<Interrupts>,
    /// The program of a grid that it stops in; any without one.
    only: Option<[u32; 3]>,
    state: Mutex<State>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How breakpoints name a source: by its path, or by its name if it is built in; whether it is a file.
pub fn source_path(name: &str) -> (PathBuf, bool) {
    let path = Path::new(name);
    if path.is_file() { (known_path(path), true) } else { (path.to_path_buf(), false) }
}

/// The path of a file as breakpoints name it.
pub fn known_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Where something stands still.
struct Here {
    frames: Vec<Frame>,
    program: Option<[u32; 3]>,
    grid: [u32; 3],
    consts: Arc<Vec<(FileId, String, Held)>>,
    nodes: Nodes,
}

struct InFrame<'a>(&'a Here, usize);

impl Names for InFrame<'_> {
    fn held(&self, name: &str) -> Option<Held> {
        let frame = self.0.frames.get(self.1)?;
        let mut all = frame.variables.iter().rev().chain(&frame.constants);
        let local = all.find(|(n, _)| n == name).map(|(_, held)| held);
        let file = frame.loc.map(|loc| FileId(loc.file));
        let item = || self.0.consts.iter().find(|(f, n, _)| Some(*f) == file && n == name).map(|c| &c.2);
        local.or_else(item).cloned()
    }

    fn program(&self) -> ([u32; 3], [u32; 3]) {
        (self.0.program.unwrap_or_default(), self.0.grid)
    }
}

impl Debuggee {
    /// Of a program with these sources.
    pub fn new(
        wire: Arc<Wire>,
        checked: &Checked,
        controls: Arc<Mutex<Controls>>,
        interrupts: Arc<Interrupts>,
        only: Option<[u32; 3]>,
        stop_on_entry: bool,
        requests: Receiver<Request>,
    ) -> Debuggee {
        let sources = checked.sources.clone();
        let paths = sources.iter().map(|(_, s)| source_path(&s.name)).collect();
        let consts = checked.hir.consts.iter().enumerate().filter_map(|(i, c)| {
            let value = const_value(&checked.hir, ConstId(u32::try_from(i).ok()?))?;
            Some((c.span.file, c.name.clone(), Held::Known(value)))
        });
        let consts = Arc::new(consts.collect());
        let step = if stop_on_entry { Step::Entry } else { Step::Run };
        let state = State {
            step,
            outer: vec![],
            expected: false,
            failed: false,
            outside: false,
            begun: vec![],
            requests,
        };
        Debuggee { wire, sources, paths, consts, controls, interrupts, only, state: Mutex::new(state) }
    }

    fn here(&self, at: &Stopped<'_>) -> Here {
        let mut frames = frames(at);
        frames.extend(lock(&self.state).outer.iter().cloned());
        Here {
            frames,
            program: at.program,
            grid: at.grid,
            consts: self.consts.clone(),
            nodes: Nodes::default(),
        }
    }

    /// The file and line of a place, from 1.
    fn line(&self, loc: Option<Loc>) -> (Option<&PathBuf>, usize) {
        let Some(loc) = loc else { return (None, 0) };
        let span = Span::new(FileId(loc.file), loc.start as usize, loc.end as usize);
        let (_, line, _) = self.sources.position(span);
        (self.paths.get(loc.file as usize).map(|p| &p.0), line)
    }

    /// Why it stops at a statement, if it does.
    fn reason(&self, at: &Stopped<'_>, here: &mut Option<Here>) -> Option<&'static str> {
        let mut controls = lock(&self.controls);
        let wanted = self.only.is_none() || at.program.is_none() || at.program == self.only;
        self.look_for_program(at);
        let statement = at.frames.first().and_then(|f| f.statement);
        let (path, line) = self.line(statement.map(|s| s.loc));
        let places = path.and_then(|p| controls.breakpoints.get_mut(p));
        // On one line with the call of a lambda, a breakpoint means the call: the lambda may run for each element.
        let is_part = self.is_part(at);
        let calls = statement.into_iter().flat_map(|s| s.and_callers().skip(1));
        let is_call = calls.into_iter().any(|s| self.line(Some(s.loc)) == (path, line));
        let reached = places
            .filter(|_| wanted && !is_call && !is_part)
            .into_iter()
            .flatten()
            .filter(|b| b.line == line);
        let mut stops = false;
        for breakpoint in reached {
            // Each of those on a line counts, and says what it has to say.
            stops |= self.holds(breakpoint, here.get_or_insert_with(|| self.here(at)));
        }
        if stops {
            return Some("breakpoint");
        }
        let depth = self.depth(at);
        let step = lock(&self.state).step;
        let done = match step {
            Step::Run => false,
            Step::Into | Step::Entry => wanted,
            Step::Over(from, program) => depth < from || depth == from && at.program == program,
            Step::Out(from, _) => depth < from,
        };
        done.then_some(if step == Step::Entry { "entry" } else { "step" })
    }

    /// The functions and lambdas that are running.
    fn depth(&self, at: &Stopped<'_>) -> usize {
        let of_frame = |f: &tk_interp::debug::Frame<'_>| f.statement.map_or(1, |s| s.and_callers().count());
        at.frames.iter().map(of_frame).sum::<usize>() + lock(&self.state).outer.len()
    }

    /// Whether the run was at the line of a statement already: the one before it in its function is on that line, ahead of it or
    /// around it. A loop that comes to the line again begins with a statement that is not after the last one.
    fn is_part(&self, at: &Stopped<'_>) -> bool {
        let Some(loc) = at.frames.first().and_then(|f| f.statement).map(|s| s.loc) else { return false };
        let mut state = lock(&self.state);
        let depth = at.frames.len() + state.outer.len();
        // The functions that it called have ended.
        while state.begun.last().is_some_and(|b| b.1 > depth) {
            state.begun.pop();
        }
        let last = state.begun.pop_if(|b| b.1 == depth);
        state.begun.push((loc, depth, at.program));
        let Some((last, _, program)) = last else { return false };
        let is_after = (last.start, std::cmp::Reverse(last.end)) < (loc.start, std::cmp::Reverse(loc.end));
        let is_same_line = last.file == loc.file && self.line(Some(last)) == self.line(Some(loc));
        program == at.program && is_after && is_same_line
    }

    /// Says once that a launch does not have the program to stop in.
    fn look_for_program(&self, at: &Stopped<'_>) {
        let Some(only) = self.only.filter(|_| at.program.is_some()) else { return };
        let is_outside = only.iter().zip(at.grid).any(|(i, n)| *i >= n);
        if is_outside && !std::mem::replace(&mut lock(&self.state).outside, true) {
            let ([x, y, z], [nx, ny, nz]) = (only, at.grid);
            let name = at.frames.last().map_or("", |f| f.name());
            self.wire.say(&format!("`{name}` has no program {x}, {y}, {z}: its grid is {nx}, {ny}, {nz}\n"));
        }
    }

    /// Whether a breakpoint that was reached stops; one with a text says it instead.
    fn holds(&self, breakpoint: &mut Breakpoint, here: &Here) -> bool {
        let names = InFrame(here, 0);
        if let Some(condition) = &breakpoint.condition {
            let wrong = match condition::evaluate(condition, &names) {
                Ok(Scalar::Bool(false)) => return false,
                Ok(Scalar::Bool(true)) => None,
                Ok(Scalar::Int(..) | Scalar::Number(..) | Scalar::Type(_) | Scalar::Pointer(_)) => {
                    Some(format!("the condition `{condition}` is no bool\n"))
                }
                Err(why) => Some(format!("the condition `{condition}`: {why}\n")),
            };
            if let Some(wrong) = wrong.filter(|_| !breakpoint.complained) {
                breakpoint.complained = true;
                self.wire.say(&wrong);
            }
        }
        breakpoint.reached += 1;
        if breakpoint.hits.is_some_and(|hits| !hits.stop(breakpoint.reached)) {
            return false;
        }
        let Some(log) = &breakpoint.log else { return true };
        let text = logged(log, |name| shown(name, &names));
        self.wire.say(&format!("{text}\n"));
        false
    }

    /// Stands still until the client lets it go on.
    fn stop(&self, mut here: Here, reason: &str, text: Option<&str>) -> Result<(), Fault> {
        let mut event = json!({ "reason": reason, "threadId": 1, "allThreadsStopped": true });
        if let (Some(text), Json::Object(fields)) = (text, &mut event) {
            fields.insert("description".into(), text.into());
            fields.insert("text".into(), text.into());
        }
        self.interrupts.pause.store(false, Ordering::Relaxed);
        self.interrupts.stopped.store(true, Ordering::Relaxed);
        self.wire.event("stopped", &event);
        loop {
            // A client that is gone wants nothing more.
            let Ok(request) = lock(&self.state).requests.recv() else { return Err(ended()) };
            let depth = here.frames.len();
            let step = match request.command.as_str() {
                "continue" => Some(Step::Run),
                "next" => Some(Step::Over(depth, here.program)),
                "stepIn" => Some(Step::Into),
                "stepOut" => Some(Step::Out(depth, here.program)),
                _other => None,
            };
            if let Some(step) = step {
                lock(&self.state).step = step;
                self.wire.answer(&request, json!({ "allThreadsContinued": true }));
                return Ok(());
            }
            match self.answer(&request, &mut here) {
                Ok(body) => self.wire.answer(&request, body),
                Err(why) => self.wire.refuse(&request, &why),
            }
        }
    }

    fn answer(&self, request: &Request, here: &mut Here) -> Result<Json, String> {
        let number = |name: &str| request.arguments.get(name).and_then(Json::as_u64).map(|n| n as usize);
        match request.command.as_str() {
            "threads" => {
                let name =
                    here.program.map_or("test".to_string(), |[x, y, z]| format!("program {x}, {y}, {z}"));
                Ok(json!({ "threads": [{ "id": 1, "name": name }] }))
            }
            "stackTrace" => {
                let frames = here.frames.iter().enumerate().map(|(i, f)| self.frame_json(i, f));
                let frames: Vec<Json> = frames.skip(number("startFrame").unwrap_or(0)).collect();
                Ok(json!({ "totalFrames": here.frames.len(), "stackFrames": frames }))
            }
            "scopes" => {
                let at = number("frameId").and_then(|n| n.checked_sub(1)).ok_or("no such frame")?;
                let frame = here.frames.get(at).cloned().ok_or("no such frame")?;
                let mut scopes = vec![json!({
                    "name": "Variables", "presentationHint": "locals", "expensive": false,
                    "variablesReference": here.nodes.add(Node::List(None, frame.variables)),
                })];
                if !frame.constants.is_empty() {
                    scopes.push(json!({
                        "name": "Compile time", "expensive": false,
                        "variablesReference": here.nodes.add(Node::List(None, frame.constants)),
                    }));
                }
                Ok(json!({ "scopes": scopes }))
            }
            "variables" => {
                let node = number("variablesReference").and_then(|n| here.nodes.get(n).cloned());
                let node = node.ok_or("these variables are gone")?;
                let (start, count) = (number("start").unwrap_or(0), number("count").filter(|n| *n > 0));
                Ok(json!({ "variables": variables::variables(&mut here.nodes, &node, start, count) }))
            }
            "evaluate" => {
                let text = request.arguments.get("expression").and_then(Json::as_str).unwrap_or_default();
                let at = number("frameId").map_or(0, |n| n.saturating_sub(1));
                self.evaluated(here, at, text)
            }
            "tk/tile" => {
                let text = request.arguments.get("expression").and_then(Json::as_str).unwrap_or_default();
                let at = number("frameId").map_or(0, |n| n.saturating_sub(1));
                variables::tile(condition::place(text, &InFrame(here, at)), text)
            }
            other => Err(format!("`{other}` is not supported while the program is stopped")),
        }
    }

    fn frame_json(&self, i: usize, f: &Frame) -> Json {
        let mut out = json!({ "id": i + 1, "name": f.name, "line": 0, "column": 0 });
        let Json::Object(fields) = &mut out else { return out };
        if let Some(loc) = f.loc {
            let span = |start: u32| Span::new(FileId(loc.file), start as usize, start as usize);
            let (name, line, column) = self.sources.position(span(loc.start));
            let (_, end_line, end_column) = self.sources.position(span(loc.end));
            let path = self.paths.get(loc.file as usize).filter(|p| p.1).map(|p| &p.0);
            let source = match path {
                Some(path) => json!({ "name": path.file_name().map(|n| n.to_string_lossy()), "path": path }),
                // A file of the library that is built in.
                None => json!({ "name": name, "sourceReference": loc.file + 1 }),
            };
            fields.insert("source".into(), source);
            for (name, n) in [("line", line), ("endLine", end_line)] {
                fields.insert(name.into(), self.wire.line(n).into());
            }
            for (name, n) in [("column", column), ("endColumn", end_column)] {
                fields.insert(name.into(), self.wire.column(n).into());
            }
        }
        out
    }

    /// The console: an expression, `table x`, `heat x`.
    fn evaluated(&self, here: &mut Here, frame: usize, text: &str) -> Result<Json, String> {
        let names = InFrame(here, frame);
        for (command, show) in [("table ", values::table as fn(&Data) -> String), ("heat ", values::heat)] {
            if let Some(name) = text.trim().strip_prefix(command) {
                let data = variables::elements_of(condition::place(name, &names), name)?;
                return Ok(json!({ "result": show(&data), "variablesReference": 0 }));
            }
        }
        if let Some(held) = condition::place(text, &names) {
            let mut out = variables::variable(&mut here.nodes, text, text.trim(), &held);
            if let Json::Object(fields) = &mut out {
                let value = fields.remove("value").unwrap_or_default();
                fields.insert("result".into(), value);
            }
            return Ok(out);
        }
        let value = condition::evaluate(text, &names)?;
        let mut out = json!({ "result": value.to_string(), "variablesReference": 0 });
        if let (Some(ty), Json::Object(fields)) = (value.type_text(), &mut out) {
            fields.insert("type".into(), ty.into());
        }
        Ok(out)
    }
}

/// The functions that are running, and the lambdas in them, the innermost first.
fn frames(at: &Stopped<'_>) -> Vec<Frame> {
    let mut out = vec![];
    for f in &at.frames {
        let known = |(name, text): &(String, String)| (name.clone(), Held::Known(text.clone()));
        let constants: Vec<_> = f.func.map(|f| f.constants.iter().map(known).collect()).unwrap_or_default();
        let name = if f.is_test() { format!("test \"{}\"", f.name()) } else { f.name().to_string() };
        let statements: Vec<_> = f.statement.into_iter().flat_map(Statement::and_callers).collect();
        for s in &statements {
            let name = if s.caller.is_some() { "lambda".into() } else { name.clone() };
            let (loc, variables) = (Some(s.loc), f.variables(s));
            out.push(Frame { name, loc, constants: constants.clone(), variables });
        }
        if statements.is_empty() {
            out.push(Frame { name, loc: f.loc, constants, variables: vec![] });
        }
    }
    out
}

/// Nothing more shall run.
fn ended() -> Fault {
    Fault::new("E0708", "the debugger has ended the run")
}

/// The text of a variable or expression.
fn shown(text: &str, names: &InFrame<'_>) -> String {
    match condition::place(text, names) {
        Some(held) => values::line(&held),
        None => condition::evaluate(text, names).map_or_else(|why| format!("<{why}>"), |v| v.to_string()),
    }
}

impl Drop for Debuggee {
    /// What was asked too late has an answer, too.
    fn drop(&mut self) {
        while let Ok(request) = lock(&self.state).requests.try_recv() {
            self.wire.refuse(&request, "the program has ended");
        }
    }
}

impl Debugger for Debuggee {
    fn interrupts(&self) -> bool {
        self.interrupts.pause.load(Ordering::Relaxed) || self.interrupts.ended.load(Ordering::Relaxed)
    }

    fn interrupt(&self, at: &Stopped<'_>) -> Result<(), Fault> {
        if self.interrupts.ended.load(Ordering::Relaxed) {
            return Err(ended());
        }
        self.stop(self.here(at), "pause", None)
    }

    fn may_stop(&self, statement: &Statement) -> bool {
        let (path, line) = self.line(Some(statement.loc));
        let controls = lock(&self.controls);
        let breakpoints = path.and_then(|p| controls.breakpoints.get(p));
        let breaks = breakpoints.is_some_and(|all| all.iter().any(|b| b.line == line));
        breaks || matches!(lock(&self.state).step, Step::Into | Step::Entry)
    }

    fn statement(&self, at: &Stopped<'_>) -> Result<(), Fault> {
        // Something goes on, whatever has failed before.
        lock(&self.state).failed = false;
        let mut here = None;
        match self.reason(at, &mut here) {
            Some(reason) => {
                let here = here.unwrap_or_else(|| self.here(at));
                self.stop(here, reason, None)
            }
            None => Ok(()),
        }
    }

    fn returned(&self, at: &Stopped<'_>) -> Result<(), Fault> {
        let step = lock(&self.state).step;
        match step {
            Step::Over(from, program) | Step::Out(from, program)
                if self.depth(at) < from && at.program == program =>
            {
                self.stop(self.here(at), "step", None)
            }
            Step::Run | Step::Entry | Step::Into | Step::Over(..) | Step::Out(..) => Ok(()),
        }
    }

    fn watches_nan(&self) -> bool {
        lock(&self.controls).nan
    }

    fn nan(&self, at: &Stopped<'_>) -> Result<(), Fault> {
        if self.only.is_some() && at.program.is_some() && at.program != self.only {
            return Ok(());
        }
        let mut here = self.here(at);
        // The instruction, not the whole statement.
        if let (Some(frame), Some(loc)) = (here.frames.first_mut(), at.frames.first().and_then(|f| f.loc)) {
            frame.loc = Some(loc);
        }
        self.stop(here, "exception", Some("a value becomes NaN here"))
    }

    fn launch(&self, at: &Stopped<'_>, expected: bool) {
        let mut state = lock(&self.state);
        (state.outer, state.expected) = (frames(at), expected);
    }

    fn launched(&self) {
        let mut state = lock(&self.state);
        state.outer.clear();
        state.expected = false;
    }

    fn fault(&self, at: &Stopped<'_>, fault: &Fault) {
        let (expected, shown) = {
            let mut state = lock(&self.state);
            (state.expected, std::mem::replace(&mut state.failed, true))
        };
        if expected {
            lock(&self.state).failed = shown;
            return;
        }
        if shown || !lock(&self.controls).faults || self.interrupts.ended.load(Ordering::Relaxed) {
            return;
        }
        let mut here = self.here(at);
        if let (Some(frame), Some(loc)) = (here.frames.first_mut(), fault.loc) {
            frame.loc = Some(loc);
        }
        // Whatever the client wants next, the run is over.
        let _ = self.stop(here, "exception", Some(&format!("{}: {}", fault.code, fault.message)));
    }
}
