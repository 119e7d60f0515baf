//! `tk tune FILE::KERNEL name=VALUE..`: measures the members of a `tune` list, and keeps the fastest.
//!
//! Members are compiled by several processes at the same time and measured by one, all of them this program again
//! ([`worker`], [`protocol`]): a member that crashes a process, or never ends, is named and left out. Whenever a member
//! is faster than all before it, its record is written, so that nothing is lost when the command is interrupted.

mod protocol;
mod worker;
mod workers;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tk_runtime::tuning::{Record, Records};

use crate::args::TuneArgs;
use crate::bench::sweep;
use crate::input::Inputs;
use crate::report::{Line, TrialLine, Tuned};
use crate::terminal::{Failure, Outcome, Terminal};
use crate::{device, front, run};

use protocol::{Answer, Ready, Request};
use workers::{Event, Worker, Workers};

/// How long a worker may take before its first answer, and to compile a member.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the launches of a member may take after the first one.
const LAUNCHED: Duration = Duration::from_secs(12);
/// Processes that may end before they were asked for anything: more say that none works.
const LOST: usize = 8;
/// Members that are measured again at the end, next to the defaults.
const FINAL: usize = 3;
/// Proposed members that are predicted to take so many times as long as the fastest are not measured: the cost model is
/// usually within a factor of 1.5.
const FAR: f64 = 4.0;
/// By how much a member must be faster than the defaults to be worth a record: less is noise.
const WORTH: f64 = 0.98;

/// Tunes a kernel at each point of a sweep.
pub fn run(terminal: &Terminal, args: &TuneArgs) -> Outcome {
    if args.worker {
        return worker::run(args);
    }
    let (points, fixed) = sweep::points(&args.args)?;
    for point in &points {
        let (arguments, sets) = check(terminal, args, &fixed, point)?;
        if points.len() > 1 && !terminal.is_json() {
            terminal.message(&format!("{point}"));
        }
        Tuning::new(terminal, args, arguments, sets).run()?;
    }
    Ok(())
}

/// Reports the mistakes of a program and of a launch; gives its arguments and values by name, with those that are swept.
fn check(
    terminal: &Terminal,
    args: &TuneArgs,
    arguments: &[String],
    point: &sweep::Point,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let (path, name) = front::split_target(&args.target);
    if path == "-" {
        let sentence = "a program on standard input has no file for its records; save it to one";
        return Err(Failure::Sentence(sentence.into()));
    }
    let checked = front::check_with(&Inputs::new(&args.input, [path])?, path, name, &args.sets)?;
    front::report(terminal, &checked)?;
    device::api(args.device)?;
    let session = tk_runtime::Session::new(checked);
    let (arguments, sets) = point.with_parameters(&session, (path, name), (arguments, &args.sets))?;
    run::prepare(&session, path, name, &arguments, &sets)?;
    Ok((arguments, sets))
}

/// What became of a member.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Took { ms: f64, code: String },
    Slow { ms: f64 },
    Left { why: String },
}

/// Members on their way, and who works on them.
struct Queue {
    to_compile: VecDeque<Option<usize>>,
    compiled: VecDeque<Option<usize>>,
    compilers: Vec<Worker>,
    /// What is measured, and until when.
    measuring: Option<(Option<usize>, Instant)>,
    /// Processes that ended before they were asked for anything.
    lost: usize,
}

impl Queue {
    fn is_done(&self) -> bool {
        let compiling = self.compilers.iter().any(Worker::is_busy);
        self.measuring.is_none() && self.compiled.is_empty() && self.to_compile.is_empty() && !compiling
    }
}

struct Tuning<'a> {
    terminal: &'a Terminal,
    args: &'a TuneArgs,
    workers: Workers,
    ready: Option<Ready>,
    /// The members that are measured, those first that are predicted to be fast.
    order: Vec<usize>,
    fates: BTreeMap<Option<usize>, Fate>,
    start: Instant,
}

/// The members of a launch that are measured, in order.
fn order(ready: &Ready) -> Vec<usize> {
    let slowness = |i: usize| ready.slowness.get(i).copied().flatten();
    let is_near = |i: &usize| ready.is_listed || slowness(*i).is_none_or(|by| by <= FAR);
    let mut order: Vec<usize> = (0..ready.members.len()).filter(is_near).collect();
    let by = |i: usize| slowness(i).unwrap_or(f64::INFINITY);
    order.sort_by(|a, b| by(*a).total_cmp(&by(*b)));
    order
}

impl<'a> Tuning<'a> {
    fn new(
        terminal: &'a Terminal,
        args: &'a TuneArgs,
        arguments: Vec<String>,
        sets: Vec<String>,
    ) -> Tuning<'a> {
        let workers = Workers::new(args, arguments, sets);
        Tuning {
            terminal,
            args,
            workers,
            ready: None,
            order: vec![],
            fates: BTreeMap::new(),
            start: Instant::now(),
        }
    }

    fn run(mut self) -> Outcome {
        let mut measurer = self.workers.start(false)?;
        let ready = match self.workers.next(PATIENCE) {
            Some((_, Event::Said(Answer::Ready(ready)))) => *ready,
            Some((_, Event::Said(Answer::Failed { why }))) => return Err(Failure::Sentence(why)),
            Some((_, Event::Gone(how))) => {
                return Err(Failure::Sentence(format!("the kernel cannot be measured: its process {how}")));
            }
            Some(_) | None => {
                return Err(Failure::Sentence("the process that measures does not answer".into()));
            }
        };
        if ready.members.is_empty() {
            let sentence = format!(
                "kernel `{}` has nothing to tune: {}",
                ready.kernel,
                if ready.is_listed {
                    "no member of its `tune` list other than the defaults fits this launch and the values given by name"
                } else {
                    "no compile-time parameter that is not given by name is a power of two with a constant default"
                }
            );
            return Err(Failure::Sentence(sentence));
        }
        self.order = order(&ready);
        if !self.terminal.is_json() {
            self.announce(&ready);
        }
        // What cannot be written to is better known before the work than after it.
        if let Some(path) = &ready.records {
            Records::read(std::path::Path::new(path)).map_err(|why| format!("{why}; mend or delete it"))?;
        }
        self.ready = Some(ready);
        self.measure_all(&mut measurer)?;
        self.finish(&mut measurer)
    }

    /// Says what will be measured.
    fn announce(&self, ready: &Ready) {
        let (count, all) = (self.order.len(), ready.members.len());
        let what = if ready.is_listed { "of its `tune` list" } else { "proposed" };
        let far = all - count;
        let others = if far > 0 {
            format!(", {far} of them predicted to take {FAR} times as long as the fastest and left out")
        } else {
            String::new()
        };
        self.terminal.message(&format!(
            "{} on {}: {all} {} {what}{others}, at most {} s",
            ready.kernel,
            ready.device,
            if all == 1 { "member" } else { "members" },
            self.args.budget.as_secs_f64()
        ));
    }

    /// Compiles members by several processes, and measures each when it is ready.
    fn measure_all(&mut self, measurer: &mut Worker) -> Outcome {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = self.args.jobs.map_or(cores.min(16), usize::from).clamp(1, self.order.len().max(1));
        let compilers = (0..jobs).map(|_| self.workers.start(true)).collect::<Result<_, _>>()?;
        let mut queue = Queue {
            to_compile: std::iter::once(None).chain(self.order.iter().copied().map(Some)).collect(),
            compiled: VecDeque::new(),
            compilers,
            measuring: None,
            lost: 0,
        };
        loop {
            if self.start.elapsed() >= self.args.budget && self.fates.contains_key(&None) {
                queue.to_compile.clear();
                queue.compiled.clear();
                queue.compilers.clear();
            }
            self.hand_out(&mut queue, measurer);
            if queue.is_done() {
                return Ok(());
            }
            match self.workers.next(Duration::from_millis(200)) {
                Some((id, event)) if id == measurer.id() => self.of_measurer(&mut queue, measurer, event)?,
                Some((id, event)) => self.of_compiler(&mut queue, id, event)?,
                None => {
                    if let Some((member, limit)) = queue.measuring
                        && Instant::now() > limit
                    {
                        queue.measuring = None;
                        self.left(member, "its launch does not end".into())?;
                        *measurer = self.restart()?;
                    }
                }
            }
        }
    }

    /// Gives work to whoever has none.
    fn hand_out(&self, queue: &mut Queue, measurer: &mut Worker) {
        if queue.measuring.is_none()
            && let Some(member) = queue.compiled.pop_front()
        {
            let slower_than_ms = self.best().map(|(_, ms, _)| ms);
            measurer.ask(&Request::Measure { member, slower_than_ms });
            queue.measuring = Some((member, Instant::now() + PATIENCE));
        }
        for worker in queue.compilers.iter_mut().filter(|w| w.is_idle()) {
            if let Some(member) = queue.to_compile.pop_front() {
                worker.ask(&Request::Compile { member });
                worker.works_on(member);
            }
        }
    }

    /// What the process that measures has done.
    fn of_measurer(&mut self, queue: &mut Queue, measurer: &mut Worker, event: Event) -> Outcome {
        if let (Event::Said(Answer::Launches), Some((_, limit))) = (&event, &mut queue.measuring) {
            *limit = Instant::now() + 2 * self.args.timeout + LAUNCHED;
            return Ok(());
        }
        let lives = matches!(
            event,
            Event::Said(
                Answer::Took { .. } | Answer::Slow { .. } | Answer::Wrong { .. } | Answer::Refused { .. }
            )
        );
        if let Some((member, _)) = queue.measuring.take() {
            self.measured(member, event)?;
        }
        if !lives {
            *measurer = self.restart()?;
        }
        Ok(())
    }

    /// What a process that compiles has done.
    fn of_compiler(&mut self, queue: &mut Queue, id: u64, event: Event) -> Outcome {
        let Some(worker) = queue.compilers.iter_mut().find(|w| w.id() == id) else { return Ok(()) };
        let member = worker.rests();
        let how = match event {
            Event::Said(Answer::Ready(_)) => return Ok(()),
            Event::Said(Answer::Compiled) => {
                match member {
                    // The defaults come first: others are compared with them.
                    Some(None) => queue.compiled.push_front(None),
                    Some(member) => queue.compiled.push_back(member),
                    None => {}
                }
                return Ok(());
            }
            Event::Said(Answer::Refused { why }) => {
                return member.map_or(Ok(()), |member| self.left(member, why));
            }
            Event::Said(Answer::Failed { why }) => why,
            Event::Said(_) => "does not understand".to_string(),
            Event::Gone(how) => how,
        };
        *worker = self.workers.start(true)?;
        match member {
            Some(member) => self.left(member, format!("the process that compiles it {how}")),
            None if queue.lost < LOST => {
                queue.lost += 1;
                Ok(())
            }
            None => Err(Failure::Sentence(format!("no process can compile members: {how}"))),
        }
    }

    /// A new process that measures, after the one before is gone.
    fn restart(&mut self) -> Result<Worker, Failure> {
        let worker = self.workers.start(false)?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            match self.workers.next_of(worker.id(), PATIENCE) {
                Some(Event::Said(Answer::Ready(_))) => return Ok(worker),
                Some(Event::Said(Answer::Failed { why })) => return Err(Failure::Sentence(why)),
                Some(Event::Gone(how)) => {
                    return Err(Failure::Sentence(format!("the process that measures {how}")));
                }
                Some(Event::Said(_)) => {}
                None => break,
            }
        }
        Err(Failure::Sentence("the process that measures does not answer".into()))
    }

    fn measured(&mut self, member: Option<usize>, event: Event) -> Outcome {
        let fate = match event {
            Event::Said(Answer::Took { ms, code, .. }) => Fate::Took { ms, code },
            Event::Said(Answer::Slow { ms }) => Fate::Slow { ms },
            Event::Said(Answer::Wrong { why }) => Fate::Left { why: format!("its results are wrong: {why}") },
            Event::Said(Answer::Refused { why }) => Fate::Left { why },
            Event::Said(Answer::Hangs) => Fate::Left {
                why: format!("its first launch takes longer than {} s", self.args.timeout.as_secs_f64()),
            },
            Event::Said(_) => Fate::Left { why: "its process does not understand".into() },
            Event::Gone(how) => Fate::Left { why: format!("its process {how}") },
        };
        let before = self.best().map(|(_, ms, _)| ms);
        if member.is_none()
            && let Fate::Left { why } = &fate
        {
            return Err(Failure::Sentence(format!("the kernel cannot be measured with its defaults: {why}")));
        }
        self.fates.insert(member, fate.clone());
        self.show(member, &fate, before)?;
        match fate {
            Fate::Took { ms, code } if member.is_some() && before.is_some_and(|b| ms < WORTH * b) => {
                // If it cannot be written now, the end says so, after the result.
                let _ = self.save(member, ms, &code);
                Ok(())
            }
            Fate::Took { .. } | Fate::Slow { .. } | Fate::Left { .. } => Ok(()),
        }
    }

    fn left(&mut self, member: Option<usize>, why: String) -> Outcome {
        if member.is_none() {
            return Err(Failure::Sentence(format!("the kernel cannot be measured with its defaults: {why}")));
        }
        let fate = Fate::Left { why };
        self.fates.insert(member, fate.clone());
        self.show(member, &fate, None)
    }

    /// The fastest so far: which, its time, the hash of its code.
    fn best(&self) -> Option<(Option<usize>, f64, &str)> {
        let took = self.fates.iter().filter_map(|(member, fate)| match fate {
            Fate::Took { ms, code } => Some((*member, *ms, code.as_str())),
            Fate::Slow { .. } | Fate::Left { .. } => None,
        });
        took.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// `BLOCK=256 warps=4`
    fn name(&self, member: Option<usize>) -> String {
        let Some(ready) = &self.ready else { return String::new() };
        let text = |(n, v): (&String, &String)| format!("{n}={v}");
        match member.and_then(|i| ready.members.get(i)) {
            Some(values) => values.iter().map(|(n, v)| text((n, v))).collect::<Vec<_>>().join(" "),
            None => {
                let values: Vec<String> = ready.default.iter().map(text).collect();
                if values.is_empty() { "defaults".into() } else { format!("defaults ({})", values.join(" ")) }
            }
        }
    }

    fn show(&self, member: Option<usize>, fate: &Fate, best: Option<f64>) -> Outcome {
        let (ms, result, why) = match fate {
            Fate::Took { ms, .. } => (Some(*ms), "measured", None),
            Fate::Slow { ms } => (Some(*ms), "slow", None),
            Fate::Left { why } => (None, "left out", Some(why.as_str())),
        };
        if self.terminal.is_json() {
            let member = self.name(member);
            return self.terminal.object(&Line::Trial(TrialLine { member: &member, result, ms, why }));
        }
        let all = self.order.len() + 1;
        let mark = match (ms, best) {
            (Some(ms), Some(best)) if ms < best && result == "measured" => "  best so far",
            _ if result == "slow" => "  stopped early",
            _ => "",
        };
        let time = ms.map_or_else(|| why.unwrap_or_default().to_string(), |ms| format!("{ms:.4} ms"));
        self.terminal.message(&format!(
            "[{:>3}/{all}] {:<40} {time}{mark}",
            self.fates.len(),
            self.name(member)
        ));
        Ok(())
    }

    /// Measures the best members again, next to the defaults, in one process, and writes the record.
    fn finish(mut self, measurer: &mut Worker) -> Outcome {
        let mut took: Vec<(Option<usize>, f64, String)> = self
            .fates
            .iter()
            .filter_map(|(m, fate)| match fate {
                Fate::Took { ms, code } => Some((*m, *ms, code.clone())),
                Fate::Slow { .. } | Fate::Left { .. } => None,
            })
            .collect();
        took.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut finalists: Vec<Option<usize>> = took.iter().map(|t| t.0).take(FINAL).collect();
        if !finalists.contains(&None) {
            finalists.push(None);
        }
        for member in finalists.clone() {
            measurer.ask(&Request::Again { member });
            match self.workers.next_of(measurer.id(), PATIENCE) {
                Some(Event::Said(Answer::Took { ms, code, .. })) => {
                    self.fates.insert(member, Fate::Took { ms, code });
                }
                // It was measured before: that time counts.
                Some(Event::Said(_)) => {}
                Some(Event::Gone(_)) | None => *measurer = self.restart()?,
            }
        }
        let time = |m: &Option<usize>| match self.fates.get(m) {
            Some(Fate::Took { ms, code }) => Some((*ms, code.clone())),
            _ => None,
        };
        let Some((default_ms, _)) = time(&None) else { return Ok(()) };
        let best = finalists.iter().filter_map(|m| time(m).map(|(ms, code)| (*m, ms, code)));
        let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
        let (member, ms, code) = match best {
            Some((Some(i), ms, code)) if ms < WORTH * default_ms => (Some(i), ms, code),
            _ => (None, default_ms, String::new()),
        };
        let (path, written) = match member {
            Some(_) => (self.records_path(), self.save(member, ms, &code)),
            None => (None, self.forget()),
        };
        let path = path.filter(|_| written.is_ok());
        let (name, measured) = (self.name(member), self.measured_count());
        let shown = path.as_ref().map(|p| p.display().to_string());
        if self.terminal.is_json() {
            self.terminal.object(&Line::Tuned(Tuned {
                member: &name,
                ms,
                default_ms,
                measured,
                seconds: self.start.elapsed().as_secs_f64(),
                records: shown.as_deref(),
            }))?;
            return written;
        }
        let left = (self.order.len() + 1).saturating_sub(self.fates.len());
        let were = if left == 1 { "was" } else { "were" };
        let rest = if left > 0 { format!(", {left} {were} not reached") } else { String::new() };
        let after = format!("{measured} measured in {:.1} s{rest}", self.start.elapsed().as_secs_f64());
        let text = match (member, shown) {
            (Some(_), Some(path)) => format!(
                "{name}: {ms:.4} ms, {:.2} times as fast as the defaults ({default_ms:.4} ms); {after}; written to {path}",
                default_ms / ms
            ),
            (Some(_), None) => format!(
                "{name}: {ms:.4} ms, {:.2} times as fast as the defaults ({default_ms:.4} ms); {after}",
                default_ms / ms
            ),
            (None, _) => format!("no member is faster than the {name}, {default_ms:.4} ms; {after}"),
        };
        self.terminal.data(&format!("{text}\n"))?;
        written
    }

    fn measured_count(&self) -> usize {
        self.fates.values().filter(|f| !matches!(f, Fate::Left { .. })).count()
    }

    fn records_path(&self) -> Option<PathBuf> {
        self.ready.as_ref()?.records.as_ref().map(PathBuf::from)
    }

    fn save(&self, member: Option<usize>, ms: f64, code: &str) -> Outcome {
        let (Some(ready), Some(i), Some(path)) = (&self.ready, member, self.records_path()) else {
            return Ok(());
        };
        let Some(Fate::Took { ms: default_ms, code: default_code }) = self.fates.get(&None) else {
            return Ok(());
        };
        let record = Record {
            kernel: ready.kernel.clone(),
            target: ready.target.clone(),
            device: ready.device.clone(),
            driver: ready.driver.clone(),
            given: ready.given.get(i).cloned().unwrap_or_default(),
            key: ready.key.clone(),
            member: ready.members.get(i).into_iter().flatten().cloned().collect(),
            ms,
            default_ms: *default_ms,
            measured: self.measured_count(),
            code: code.to_string(),
            default_code: default_code.clone(),
        };
        Ok(Records::save(&path, record)?)
    }

    /// Removes the record of this launch: the defaults are fastest.
    fn forget(&self) -> Outcome {
        let (Some(ready), Some(path)) = (&self.ready, self.records_path()) else { return Ok(()) };
        if !path.exists() {
            return Ok(());
        }
        Ok(Records::forget(&path, |r| {
            r.kernel == ready.kernel
                && r.target == ready.target
                && r.device == ready.device
                && r.key == ready.key
                && ready.given.contains(&r.given)
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of members that are predicted to take so many times as long as the fastest.
    fn order_of(slowness: &[Option<f64>], is_listed: bool) -> Vec<usize> {
        order(&Ready {
            members: vec![vec![]; slowness.len()],
            slowness: slowness.to_vec(),
            is_listed,
            kernel: String::new(),
            device: String::new(),
            target: String::new(),
            driver: String::new(),
            key: vec![],
            given: vec![],
            records: None,
            default: BTreeMap::new(),
        })
    }

    /// Members of a list are all measured, those that are predicted to be fast before the others.
    #[test]
    fn predictions_order_members() {
        let predicted = [Some(9.0), None, Some(1.5), Some(FAR), Some(f64::INFINITY), Some(1.0)];
        assert_eq!(order_of(&predicted, false), [5, 2, 3, 1]);
        assert_eq!(order_of(&predicted, true), [5, 2, 3, 0, 1, 4]);
        assert_eq!(order_of(&[None; 3], false), [0, 1, 2]);
        assert_eq!(order_of(&[], false), [0; 0]);
    }
}
