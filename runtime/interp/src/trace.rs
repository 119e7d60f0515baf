//! [`Trace`]: which program reads and writes which elements, as plain data for pictures and other tools.
//!
//! Guarantees the same data for the same launch: programs of a launch that is traced run on one thread. What a program
//! asks for outside of a buffer is part of it, also where a fault ends the launch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tk_tile::{ElemType, Loc};

use crate::exec::elem_size;
use crate::launch::Arg;
use crate::memory::BufferId;
use crate::space::{self, Entry};

/// Elements whose accesses are kept of one launch: 100 MB at most, where each has an access of its own. A picture shows
/// a few thousand.
const MOST: usize = 1 << 20;

/// Elements of an array whose programs are told one by one; more are in no picture.
pub const ELEMENTS: i64 = 1 << 20;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Reads an element.
    Read,
    /// Writes an element.
    Write,
    /// Reads, changes or writes it in one step.
    Atomic,
}

/// An access to consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The program.
    pub program: [u32; 3],
    /// The place of its instruction.
    pub loc: Option<Loc>,
    /// What it does.
    pub kind: AccessKind,
    /// The buffer.
    pub buffer: BufferId,
    /// The number of the parameter through which it was reached; none for an address that was found in memory.
    pub param: Option<u32>,
    /// Bytes between the start of the buffer and the first element; anything else than 0 to its length is outside.
    pub start: i64,
    /// Elements.
    pub count: usize,
    /// Bytes of one.
    pub size: usize,
}

/// A parameter of a launch and its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The type of the number, or of the elements behind a pointer or view.
    pub elem: ElemType,
    /// The argument.
    pub arg: Arg,
    /// Bytes of its buffer; 0 for a number.
    pub bytes: usize,
}

impl Param {
    /// The extents of an array; those of a pointer are all elements of its buffer. `None` for a number.
    pub fn shape(&self) -> Option<Vec<i64>> {
        match &self.arg {
            Arg::Scalar(_) | Arg::Null => None,
            Arg::Ptr { .. } => Some(vec![self.elements()]),
            Arg::View { shape, .. } => Some(shape.clone()),
        }
    }

    /// Elements of its buffer.
    pub fn elements(&self) -> i64 {
        i64::try_from(self.bytes / elem_size(&self.elem).max(1)).unwrap_or(i64::MAX)
    }
}

/// A launch, and what its programs did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The kernel, with the values of its compile-time parameters.
    pub kernel: String,
    /// The grid.
    pub grid: [u32; 3],
    /// Its parameters, those of workspaces last.
    pub params: Vec<Param>,
    /// The accesses, in the order in which they happened.
    pub accesses: Vec<Access>,
    /// The program whose fault ended the launch.
    pub fault: Option<[u32; 3]>,
    /// Whether there were more.
    pub is_cut: bool,
}

/// The records of launches; clones share them.
#[derive(Clone, Debug)]
pub struct Trace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Launches that are kept.
    wanted: usize,
    launches: Vec<Launch>,
    /// Elements that the launch that runs has accessed.
    elements: usize,
    /// The last launch, if it is none of those.
    last: Option<Launch>,
    program: [u32; 3],
    loc: Option<Loc>,
}

impl Trace {
    /// Keeps the first launches, as many as that, and the last one.
    pub fn new(launches: usize) -> Trace {
        let state =
            State { wanted: launches, launches: vec![], elements: 0, last: None, program: [0; 3], loc: None };
        Trace(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The first launches, in order.
    pub fn launches(&self) -> Vec<Launch> {
        self.state().launches.clone()
    }

    /// The last launch.
    pub fn last(&self) -> Option<Launch> {
        let state = self.state();
        state.last.as_ref().or(state.launches.last()).cloned()
    }

    /// Forgets all launches, and keeps as many as at the start.
    pub fn clear(&self) {
        let mut state = self.state();
        (state.launches, state.last) = (vec![], None);
    }

    /// A launch begins.
    pub(crate) fn begin(&self, launch: Launch) {
        let mut state = self.state();
        state.elements = 0;
        if state.launches.len() < state.wanted {
            state.launches.push(launch);
        } else {
            state.last = Some(launch);
        }
    }

    /// A fault of a program ended the launch that began last.
    pub(crate) fn end(&self, program: Option<[u32; 3]>) {
        let mut state = self.state();
        let State { last, launches, .. } = &mut *state;
        last.as_mut().or(launches.last_mut()).into_iter().for_each(|launch| launch.fault = program);
    }

    /// The accesses that follow are of this program and instruction.
    pub(crate) fn at(&self, program: [u32; 3], loc: Option<Loc>) {
        let mut state = self.state();
        (state.program, state.loc) = (program, loc);
    }

    /// Notes an access to `count` elements of `size` bytes from byte `start` of a buffer on.
    pub(crate) fn touch(&self, entry: &Entry, start: i64, count: usize, size: usize, access: space::Access) {
        let mut state = self.state();
        let State { launches, elements, last, program, loc, .. } = &mut *state;
        let Some(launch) = last.as_mut().or(launches.last_mut()) else { return };
        *elements = elements.saturating_add(count);
        if *elements > MOST {
            launch.is_cut = true;
            return;
        }
        let kind = match (access.atomic, access.writes) {
            (true, _) => AccessKind::Atomic,
            (false, true) => AccessKind::Write,
            (false, false) => AccessKind::Read,
        };
        let (buffer, param) = (entry.allocation.id, entry.param.as_ref().map(|(i, _)| *i));
        let (program, loc) = (*program, *loc);
        launch.accesses.push(Access { program, loc, kind, buffer, param, start, count, size });
    }
}

/// The programs that touch an element: the ids that all of them share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Programs(pub [Option<u32>; 3]);

impl Programs {
    fn and(self, program: [u32; 3]) -> Programs {
        let [x, y, z] = self.0;
        let shared = |id: Option<u32>, other: u32| id.filter(|i| *i == other);
        Programs([shared(x, program[0]), shared(y, program[1]), shared(z, program[2])])
    }
}

/// The programs that touch each element of an array in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The extents of the array; that of a pointer is one row with all of its buffer.
    pub shape: Vec<i64>,
    /// The programs of each element, in row-major order; `None` where there is none.
    pub elements: Vec<Option<Programs>>,
    /// Elements outside of the buffer, counted from its start, that programs asked for.
    pub outside: BTreeMap<i64, Programs>,
}

impl Launch {
    /// How programs touch the elements of an argument in one way; `None` for a number, for an array that is touched
    /// in other ways alone, and for one of more than [`ELEMENTS`].
    pub fn touched(&self, param: usize, kind: AccessKind) -> Option<Touched> {
        let p = self.params.get(param)?;
        let size = i64::try_from(elem_size(&p.elem)).ok()?.max(1);
        let len = p.elements();
        let (buffer, offset, strides) = match &p.arg {
            Arg::Scalar(_) | Arg::Null => return None,
            Arg::Ptr { buffer, .. } => (*buffer, 0, vec![1]),
            Arg::View { buffer, offset, strides, .. } => (*buffer, *offset, strides.clone()),
        };
        let shape = p.shape()?;
        let count = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d)).filter(|n| *n <= ELEMENTS)?;
        let mut all: BTreeMap<i64, Programs> = BTreeMap::new();
        let through = |a: &&Access| a.param.map_or(a.buffer == buffer, |i| i as usize == param);
        for a in self.accesses.iter().filter(|a| a.kind == kind).filter(through) {
            let end = a.start.saturating_add((a.count * a.size) as i64);
            for element in a.start.div_euclid(size)..=(end - 1).div_euclid(size) {
                let own = Programs(a.program.map(Some));
                all.entry(element).and_modify(|p| *p = p.and(a.program)).or_insert(own);
            }
        }
        if all.is_empty() {
            return None;
        }
        let elements = (0..count).map(|i| all.get(&element(i, offset, &shape, &strides)).copied()).collect();
        all.retain(|e, _| !(0..len).contains(e));
        Some(Touched { shape, elements, outside: all })
    }
}

/// The element of a buffer at a position of a view, which is counted in row-major order.
fn element(position: i64, offset: i64, shape: &[i64], strides: &[i64]) -> i64 {
    let (mut rest, mut element) = (position, offset);
    for (extent, stride) in shape.iter().zip(strides).rev() {
        element = element.saturating_add((rest % extent.max(&1)).saturating_mul(*stride));
        rest /= extent.max(&1);
    }
    element
}
