//! `tk dap`: a debugger over standard input and output, by the debug adapter protocol.
//!
//! It runs the tests of a file, or launches a kernel, on the interpreter in checked mode, and stops at statements: at
//! breakpoints, step by step, where a value becomes NaN and where an access is wrong.
//!
//! | file | contents |
//! |---|---|
//! | `wire.rs` | messages |
//! | `breakpoint.rs` | breakpoints: how often one stops, and what it says |
//! | `debuggee.rs` | where it stops, and what is answered while it stands still |
//! | `condition.rs` | expressions of conditions and the console |
//! | `scalar.rs` | scalars, and what is computed with them |
//! | `variables.rs` | what a client unfolds |
//! | `values.rs` | variables as text, tables, heat maps |

mod breakpoint;
mod condition;
mod debuggee;
mod scalar;
mod values;
mod variables;
mod wire;

use std::collections::BTreeMap;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tk_interp::Debugger;
use tk_lsp::server::{Frame, read_frame};
use tk_runtime::Session;
use tk_runtime::files::Files;
use tk_sema::hir::FnId;
use tk_sema::stops;
use tk_syntax::stack::STACK;
use tk_syntax::{Diagnostic, FileId, Renderer, Span};

use crate::run::{self as command, Prepared};
use crate::terminal::{Failure, Outcome};
use breakpoint::{Breakpoint, Hits};
use debuggee::{Controls, Debuggee, Interrupts, known_path, source_path};
use wire::{Request, Wire};

/// The client, for lines of `print`, which are told to a function without any state.
static CLIENT: OnceLock<Arc<Wire>> = OnceLock::new();

/// Sends a line that the program prints.
fn echo(line: &str) {
    if let Some(wire) = CLIENT.get() {
        wire.event("output", &json!({ "category": "stdout", "output": line }));
    }
}

/// The arguments of `launch`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Launch {
    /// The source file.
    program: String,
    /// The test to run: its title; all tests without one.
    test: Option<String>,
    /// The kernel to launch instead, with `name=VALUE` as `tk run` takes them.
    kernel: Option<String>,
    args: Vec<String>,
    /// Values of compile-time parameters, `NAME=VALUE`.
    set: Vec<String>,
    /// Whether it stops at the first statement.
    stop_on_entry: bool,
    /// The program of the grid that it stops in.
    program_id: Option<Vec<u32>>,
    /// Whether accesses are checked; they are unless this is false.
    checked: Option<bool>,
    /// Whether nothing stops it.
    no_debug: bool,
}

/// A session with a client.
struct Server {
    wire: Arc<Wire>,
    controls: Arc<Mutex<Controls>>,
    interrupts: Arc<Interrupts>,
    launch: Option<(Launch, Request)>,
    configured: bool,
    /// To what runs.
    requests: Option<Sender<Request>>,
    running: Option<JoinHandle<()>>,
    /// Where each file can be stopped in.
    lines: BTreeMap<PathBuf, Lines>,
}

/// The lines of a file, from 1.
#[derive(Clone, Debug, Default)]
struct Lines {
    /// Those on which a statement begins, in order.
    statements: Vec<usize>,
    /// Those where no program runs, and why.
    evaluated: Vec<(RangeInclusive<usize>, String)>,
}

impl Lines {
    /// Of a source of a program; none of a file that cannot be read.
    fn of(program: &str, id: FileId) -> Lines {
        let checked = tk_sema::check(&Files::beside_program(), program);
        let line = |s: Span| checked.sources.position(s).1;
        let mut statements = stops::statements(&checked.hir, id);
        let evaluated = stops::evaluated(&checked.hir, id);
        let within = |s: &Span| evaluated.iter().any(|(c, _)| c.start <= s.start && s.end <= c.end);
        statements.retain(|s| !within(s));
        let mut statements: Vec<usize> = statements.into_iter().map(line).collect();
        statements.sort_unstable();
        statements.dedup();
        let lines = |s: Span| line(s)..=line(Span { start: s.end, ..s });
        let evaluated = evaluated.into_iter().map(|(s, why)| (lines(s), why)).collect();
        Lines { statements, evaluated }
    }

    /// The line on which a breakpoint stops that is asked for on a line; the error says why it never does.
    fn stop(&self, asked: usize) -> Result<usize, String> {
        let next = self.statements.iter().copied().find(|l| *l >= asked);
        let here = self.evaluated.iter().find(|(lines, _)| lines.contains(&asked) && next != Some(asked));
        if let Some((_, why)) = here {
            return Err(format!("nothing stops here: {why}"));
        }
        next.ok_or_else(|| "no statement begins here or below".into())
    }
}

/// Serves a client until it goes away.
pub fn run() -> Outcome {
    let mut server = Server {
        wire: Arc::new(Wire::new(Box::new(std::io::stdout()))),
        controls: Arc::default(),
        interrupts: Arc::default(),
        launch: None,
        configured: false,
        requests: None,
        running: None,
        lines: BTreeMap::new(),
    };
    let _ = CLIENT.set(Arc::clone(&server.wire));
    let mut input = BufReader::new(std::io::stdin());
    loop {
        match read_frame(&mut input) {
            Frame::Message(bytes) => match serde_json::from_slice::<Request>(&bytes) {
                Ok(request) => {
                    let last = request.command == "disconnect";
                    server.take(request);
                    if last {
                        break;
                    }
                }
                Err(why) => server.wire.say(&format!("a message is no request: {why}\n")),
            },
            Frame::Malformed(why) => server.wire.say(&format!("{why}\n")),
            Frame::End => break,
        }
    }
    server.end();
    Ok(())
}

impl Server {
    fn controls(&self) -> MutexGuard<'_, Controls> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, request: Request) {
        let arguments = &request.arguments;
        match request.command.as_str() {
            "initialize" => {
                self.wire.count_as(arguments);
                self.wire.answer(&request, capabilities());
                self.wire.event("initialized", &Json::Null);
            }
            "launch" if self.launch.is_some() => {
                self.wire.refuse(&request, "this session has launched a program already");
            }
            "launch" => match serde_json::from_value::<Launch>(arguments.clone()) {
                Ok(launch) if launch.program_id.as_ref().is_some_and(|ids| ids.len() > 3) => {
                    self.refuse_launch(&request, "`programId` has one number for each axis, at most 3");
                }
                Ok(launch) => {
                    self.launch = Some((launch, request));
                    self.start();
                }
                Err(why) => self.refuse_launch(&request, &format!("the launch configuration: {why}")),
            },
            "configurationDone" => {
                self.configured = true;
                self.wire.answer(&request, Json::Null);
                self.start();
            }
            "setBreakpoints" => {
                let set = self.breakpoints(arguments);
                self.wire.answer(&request, json!({ "breakpoints": set }));
            }
            "setExceptionBreakpoints" => {
                let filters = arguments.get("filters").and_then(Json::as_array);
                let has = |name: &str| filters.is_some_and(|all| all.iter().any(|f| f == name));
                let mut controls = self.controls();
                (controls.nan, controls.faults) = (has("nan"), has("fault"));
                drop(controls);
                self.wire.answer(&request, Json::Null);
            }
            "source" => match source(arguments, self.launch.as_ref().map(|l| &l.0)) {
                Some(text) => self.wire.answer(&request, json!({ "content": text })),
                None => self.wire.refuse(&request, "there is no such source"),
            },
            "pause" => {
                // What stands still would stop once more when it goes on.
                if !self.interrupts.stopped.load(Ordering::Relaxed) {
                    self.interrupts.pause.store(true, Ordering::Relaxed);
                }
                self.wire.answer(&request, Json::Null);
            }
            "disconnect" | "terminate" => {
                // What was launched but has not begun never does.
                if !self.configured
                    && let Some((_, launch)) = self.launch.take()
                {
                    self.refuse_launch(&launch, "the session has ended before its configuration was done");
                }
                self.end();
                self.wire.answer(&request, Json::Null);
            }
            _other => self.forward(request),
        }
    }

    /// To what runs, which answers when it stands still.
    fn forward(&self, request: Request) {
        let stopped = self.interrupts.stopped.load(Ordering::Relaxed);
        // What comes after it would wait for the next stop.
        if stopped && debuggee::goes_on(&request.command) {
            self.interrupts.stopped.store(false, Ordering::Relaxed);
        }
        let refused = match &self.requests {
            Some(requests) if stopped => requests.send(request).err().map(|e| e.0),
            Some(_) | None => Some(request),
        };
        match refused {
            Some(request) if request.command == "threads" => {
                self.wire.answer(&request, json!({ "threads": [{ "id": 1, "name": "test" }] }));
            }
            Some(request) => self.wire.refuse(&request, "no program stands still"),
            None => {}
        }
    }

    /// Ends what runs.
    fn end(&mut self) {
        self.interrupts.ended.store(true, Ordering::Relaxed);
        // A program that stands still sees that nobody asks any more.
        self.requests = None;
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }

    /// Takes the breakpoints of a file; each goes to the next line on which a statement begins.
    fn breakpoints(&mut self, arguments: &Json) -> Vec<Json> {
        let wanted = arguments.get("breakpoints").and_then(Json::as_array).cloned().unwrap_or_default();
        let place = self.place(arguments);
        let lines = place.as_ref().map(|(path, program, id)| {
            self.lines.entry(path.clone()).or_insert_with(|| Lines::of(program, *id)).clone()
        });
        let lines = lines.unwrap_or_default();
        let mut set = vec![];
        let mut out = vec![];
        for b in &wanted {
            let shown = b.get("line").and_then(Json::as_u64).map_or(0, |n| n as usize);
            let asked = self.wire.line_of_client(shown);
            let text =
                |name: &str| b.get(name).and_then(Json::as_str).filter(|t| !t.is_empty()).map(str::to_string);
            let hits = text("hitCondition").map(|n| Hits::parse(&n)).transpose();
            let found = hits.and_then(|hits| Ok((lines.stop(asked)?, hits)));
            out.push(match &found {
                Ok((line, _)) => json!({ "verified": true, "line": self.wire.line(*line) }),
                Err(why) => json!({ "verified": false, "line": shown, "message": why }),
            });
            set.extend(found.ok().map(|(line, hits)| Breakpoint {
                line,
                condition: text("condition"),
                hits,
                log: text("logMessage"),
                reached: 0,
                complained: false,
            }));
        }
        if let Some((path, _, _)) = place {
            self.controls().breakpoints.insert(path, set);
        }
        out
    }

    /// The source of breakpoints: how they name it, and the program in which it has a number. A built-in source is one of
    /// the program that is launched.
    fn place(&self, arguments: &Json) -> Option<(PathBuf, String, FileId)> {
        if let Some((program, id)) = referenced(arguments, self.launch.as_ref().map(|l| &l.0)) {
            let checked = tk_sema::check(&Files::beside_program(), &program);
            return Some((source_path(&checked.sources.get(id)?.name).0, program, id));
        }
        let path = known_path(arguments.pointer("/source/path").and_then(Json::as_str)?.as_ref());
        let program = path.to_str()?.to_string();
        Some((path, program, FileId(0)))
    }

    /// Starts what shall run, once it is known and the breakpoints are set.
    fn start(&mut self) {
        if !self.configured || self.running.is_some() {
            return;
        }
        let Some((launch, request)) = self.launch.clone() else { return };
        let loader = Files::beside_program();
        let checked = match std::fs::metadata(&launch.program) {
            Ok(_) => tk_sema::check(&loader, &launch.program),
            Err(why) => {
                let why = format!("cannot read `{}`: {}", launch.program, tk_runtime::files::reason(&why));
                return self.refuse_launch(&request, &why);
            }
        };
        if checked.diagnostics.iter().any(Diagnostic::is_error) {
            let mut renderer = Renderer::new(&checked.sources);
            let errors = checked.diagnostics.iter().filter(|d| d.is_error());
            errors.for_each(|d| self.wire.say(&renderer.render(d, false)));
            return self.refuse_launch(&request, &format!("`{}` has errors", launch.program));
        }
        let only = launch.program_id.as_ref().filter(|ids| !ids.is_empty()).map(|ids| {
            let axis = |i: usize| ids.get(i).copied().unwrap_or(0);
            [axis(0), axis(1), axis(2)]
        });
        let (sender, receiver) = channel();
        let (controls, interrupts) = (Arc::clone(&self.controls), Arc::clone(&self.interrupts));
        let wire = Arc::clone(&self.wire);
        let entry = launch.stop_on_entry;
        let debuggee = Debuggee::new(wire, &checked, controls, interrupts, only, entry, receiver);
        let session = Session::new(checked).checked_mode(launch.checked != Some(false)).with_echo(echo);
        let session = match launch.no_debug {
            true => session,
            false => session.with_debugger(Arc::new(debuggee) as Arc<dyn Debugger>),
        };
        match task(&session, &launch) {
            Ok(task) => self.begin(session, task, &request, sender),
            Err(why) => self.refuse_launch(&request, &why),
        }
    }

    /// Begins what shall run, in a thread of its own, and answers the request.
    fn begin(&mut self, session: Session, task: Task, request: &Request, sender: Sender<Request>) {
        let wire = Arc::clone(&self.wire);
        let interrupts = Arc::clone(&self.interrupts);
        let work = move || {
            // A client that waits for the end must see one, whatever becomes of the interpreter.
            let done = catch_unwind(AssertUnwindSafe(|| work(&wire, &session, task, &interrupts)));
            let passed = done.unwrap_or_else(|_panic| {
                wire.say("the interpreter panicked, which is a bug of tk; the program ends here\n");
                false
            });
            let code = i32::from(!passed);
            wire.event("exited", &json!({ "exitCode": code }));
            wire.event("terminated", &Json::Null);
        };
        match std::thread::Builder::new().name("tk-debuggee".into()).stack_size(STACK).spawn(work) {
            Ok(thread) => {
                (self.running, self.requests) = (Some(thread), Some(sender));
                self.wire.answer(request, Json::Null);
            }
            Err(why) => self.refuse_launch(request, &format!("no thread can be started: {why}")),
        }
    }

    /// Says why nothing runs; the session is over.
    fn refuse_launch(&mut self, request: &Request, why: &str) {
        self.wire.refuse(request, why);
        self.launch = None;
        self.wire.event("terminated", &Json::Null);
    }
}

fn capabilities() -> Json {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsEvaluateForHovers": true,
        "supportsTerminateRequest": true,
        "supportsVariableType": true,
        "supportsVariablePaging": true,
        "exceptionBreakpointFilters": [
            { "filter": "nan", "label": "A value becomes NaN", "default": false },
            { "filter": "fault", "label": "A wrong access or a failed assertion", "default": true },
        ],
    })
}

/// The program and the file of it that a reference to a source means.
fn referenced(arguments: &Json, launch: Option<&Launch>) -> Option<(String, FileId)> {
    let at = |name: &str| arguments.pointer(name).and_then(Json::as_u64);
    let number = at("/source/sourceReference").or_else(|| at("/sourceReference"))?;
    Some((launch?.program.clone(), FileId(u32::try_from(number).ok()?.checked_sub(1)?)))
}

/// The text of a file of the library that is built in.
fn source(arguments: &Json, launch: Option<&Launch>) -> Option<String> {
    let (program, id) = referenced(arguments, launch)?;
    let checked = tk_sema::check(&Files::beside_program(), &program);
    checked.sources.get(id).map(|s| s.text.to_string())
}

/// What a session runs.
enum Task {
    /// Tests with their titles.
    Tests(Vec<(FnId, String)>),
    /// A kernel by its name, with its arguments.
    Kernel(String, Box<Prepared>),
}

/// What a launch asks for; the error says why there is no such thing.
fn task(session: &Session, launch: &Launch) -> Result<Task, String> {
    let program = &launch.program;
    if let Some(kernel) = &launch.kernel {
        let sentence = |failure: Failure| match failure {
            Failure::Sentence(why) => why,
            _other => format!("`{kernel}` cannot be launched"),
        };
        let prepared = command::prepare(session, program, Some(kernel), &launch.args, &launch.set);
        return Ok(Task::Kernel(kernel.clone(), Box::new(prepared.map_err(sentence)?)));
    }
    let tests = session.tests().filter(|(_, name)| launch.test.as_ref().is_none_or(|t| t == name));
    let tests: Vec<(FnId, String)> = tests.map(|(id, name)| (id, name.to_string())).collect();
    match &launch.test {
        Some(test) if tests.is_empty() => Err(format!("`{program}` has no test \"{test}\"")),
        None if tests.is_empty() => {
            Err(format!("`{program}` has no tests; `kernel` and `args` launch a kernel instead"))
        }
        Some(_) | None => Ok(Task::Tests(tests)),
    }
}

/// Runs the tests or the kernel; whether all went well.
fn work(wire: &Wire, session: &Session, task: Task, interrupts: &Interrupts) -> bool {
    let tests = match task {
        Task::Tests(tests) => tests,
        Task::Kernel(name, prepared) => return launched(wire, session, &name, *prepared),
    };
    let mut good = true;
    for (id, name) in tests {
        let outcome = session.test(id);
        if interrupts.ended.load(Ordering::Relaxed) {
            return false;
        }
        let failed = outcome.diagnostics.iter().any(Diagnostic::is_error);
        said(wire, session, &outcome.diagnostics);
        wire.say(&format!("{}  {name}\n", if failed { "FAIL" } else { "ok  " }));
        good &= !failed;
    }
    good
}

fn said(wire: &Wire, session: &Session, diagnostics: &[Diagnostic]) {
    let mut renderer = Renderer::new(&session.checked().sources);
    for d in diagnostics {
        let output = renderer.render(d, false);
        wire.event("output", &json!({ "category": "stderr", "output": output }));
    }
}

/// Launches a kernel; whether all went well.
fn launched(wire: &Wire, session: &Session, kernel: &str, prepared: Prepared) -> bool {
    match session.run(prepared.kernel, prepared.values, &prepared.sets) {
        Ok(results) => {
            said(wire, session, &results.notes);
            for (name, array) in &results.arrays {
                wire.say(&format!("{name}: {}{:?}\n", array.dtype, array.shape));
            }
            true
        }
        Err(wrong) => {
            said(wire, session, &wrong);
            wire.say(&format!("`{kernel}` failed\n"));
            false
        }
    }
}
