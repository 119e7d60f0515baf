//! The processes of `tk tune`: this program again, with what it is asked on a line each.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::protocol::{Answer, Request};
use crate::args::TuneArgs;
use crate::terminal::Failure;
use crate::this_command;

/// What a worker did.
#[derive(Debug)]
pub enum Event {
    /// It answered.
    Said(Answer),
    /// It is gone: how, as the end of a sentence.
    Gone(String),
}

/// All workers of a command.
pub struct Workers {
    target: Vec<String>,
    send: Sender<(u64, Event)>,
    receive: Receiver<(u64, Event)>,
    /// What was received while another worker was waited for.
    kept: Vec<(u64, Event)>,
    next: u64,
}

/// A worker. It ends with this value.
pub struct Worker {
    id: u64,
    child: Child,
    input: Option<ChildStdin>,
    /// Whether it is ready, and what it works on.
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Starts,
    Idle,
    Works(Option<usize>),
}

impl Workers {
    /// None yet; each will get these arguments.
    pub fn new(args: &TuneArgs, arguments: Vec<String>, sets: Vec<String>) -> Workers {
        let mut target = vec!["tune".to_string(), "--worker".into(), args.target.clone()];
        target.extend(arguments);
        target.extend(sets.into_iter().map(|s| format!("--set={s}")));
        target.push(format!("--device={}", args.device.name()));
        target.push(format!("--timeout={}", args.timeout.as_secs_f64()));
        target.push(format!("--time={}", args.time.as_secs_f64()));
        let (send, receive) = channel();
        Workers { target, send, receive, kept: vec![], next: 0 }
    }

    /// Starts a worker: one that compiles, or one that measures.
    pub fn start(&mut self, compiles: bool) -> Result<Worker, Failure> {
        let mut command = this_command()?;
        command.args(&self.target).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if compiles {
            command.arg("--compiles");
        }
        let mut child = command.spawn()?;
        let (id, send) = (self.next, self.send.clone());
        self.next += 1;
        let output = child.stdout.take();
        let input = child.stdin.take();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|o| BufReader::new(o).lines()) {
                let answer = line.ok().and_then(|l| serde_json::from_str(&l).ok());
                // Nobody waits for it any more if this fails.
                let Some(answer) = answer else { break };
                if send.send((id, Event::Said(answer))).is_err() {
                    return;
                }
            }
            let _ = send.send((id, Event::Gone("ended without an answer".into())));
        });
        Ok(Worker { id, child, input, state: State::Starts })
    }

    /// What some worker does next; none within this time.
    pub fn next(&mut self, limit: Duration) -> Option<(u64, Event)> {
        if !self.kept.is_empty() {
            return Some(self.kept.remove(0));
        }
        self.receive.recv_timeout(limit).ok()
    }

    /// What this worker does next; what others do is kept.
    pub fn next_of(&mut self, id: u64, limit: Duration) -> Option<Event> {
        if let Some(i) = self.kept.iter().position(|(from, _)| *from == id) {
            return Some(self.kept.remove(i).1);
        }
        let end = Instant::now() + limit;
        loop {
            let (from, event) =
                self.receive.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
            if from == id {
                return Some(event);
            }
            self.kept.push((from, event));
        }
    }
}

impl Worker {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Asks it for something. One that is gone says so by itself.
    pub fn ask(&mut self, request: &Request) {
        if let (Some(input), Ok(text)) = (&mut self.input, serde_json::to_string(request)) {
            let _ = writeln!(input, "{text}").and_then(|()| input.flush());
        }
    }

    /// Whether it waits for a request.
    pub fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether it works on a member, or starts.
    pub fn is_busy(&self) -> bool {
        matches!(self.state, State::Works(_))
    }

    /// It was asked for this member.
    pub fn works_on(&mut self, member: Option<usize>) {
        self.state = State::Works(member);
    }

    /// It waits for the next request; gives what it worked on.
    pub fn rests(&mut self) -> Option<Option<usize>> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Works(member) => Some(member),
            State::Starts | State::Idle => None,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.input.take());
        // One that is gone already cannot be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
