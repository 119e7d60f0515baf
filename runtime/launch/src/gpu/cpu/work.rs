//! The objects of the CPU driver: its memory, modules, streams, and recorded work.
//!
//! A fault is kept, as text, for the thread that caused it until its next one: an entry point gives a number alone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use tk_interp::{Arg, BufferId, Buffers, Fault, Memory, Options, Printed, Program};
use tk_ops::{DType, Scalar};
use tk_tile::{ElemType, Type};

use super::super::error::code;
use crate::bundled;
use crate::session::lock;

/// The state that all streams share.
pub(crate) struct Machine {
    pub memory: Memory,
    /// The output of kernels.
    pub printed: Printed,
    /// The buffer of views without elements.
    nothing: BufferId,
    /// Memory of the host that was handed out: its address, and how many words of 64 bits it has.
    pub pinned: Mutex<BTreeMap<usize, usize>>,
}

/// The one that there is.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let memory = Memory::new();
        let nothing = memory.alloc(vec![]);
        Machine { memory, printed: Printed::default(), nothing, pinned: Mutex::default() }
    })
}

thread_local! {
    /// The code and the text of the last fault of this thread.
    static LAST: RefCell<(CString, CString)> = RefCell::default();
}

/// Keeps a fault.
pub(super) fn fail(fault: &Fault) -> u32 {
    // A zero in a text ends it.
    let text = |s: &str| CString::new(s.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = (text(fault.code), text(&fault.message)));
    code::FAULT
}

/// The addresses of the code and the text of the last fault, good until the next one of this thread.
pub(super) fn last() -> (*const std::ffi::c_char, *const std::ffi::c_char) {
    LAST.with(|last| (last.borrow().0.as_ptr(), last.borrow().1.as_ptr()))
}

/// The kernel of a module.
pub(super) struct Function {
    program: Program,
    params: Vec<Param>,
}

/// The parts of a parameter.
enum Param {
    /// A number: its bits.
    Number(DType),
    /// An address. The size of what is there.
    Pointer { size: u64 },
    /// An address, the extents, the strides. The size of an element.
    View { rank: usize, size: u64 },
}

impl Param {
    /// The values that it takes.
    fn values(&self) -> usize {
        match self {
            Param::Number(_) | Param::Pointer { .. } => 1,
            Param::View { rank, .. } => 1 + 2 * rank,
        }
    }
}

impl Function {
    /// Of the text of tile IR that has one kernel.
    pub fn load(source: &CStr) -> Result<Function, Fault> {
        let wrong = |what| Fault::new("E0701", format!("its tile IR cannot be read: {what}"));
        let (module, kernel) = bundled::portable_of(source.to_bytes()).map_err(wrong)?;
        let program = Program::new(module, kernel)?;
        let params = program.params().into_iter().map(param).collect();
        Ok(Function { program, params })
    }

    /// The number of values that a launch passes.
    pub fn values(&self) -> usize {
        self.params.iter().map(Param::values).sum()
    }

    fn bind(&self, values: &[u64]) -> Result<Vec<Arg>, Fault> {
        let buffers = machine().memory.buffers();
        let mut rest = values.iter().copied();
        let mut next = || rest.next().ok_or_else(|| Fault::new("E0701", "an argument is missing"));
        let one = |param: &Param| {
            Ok(match param {
                Param::Number(dtype) => Arg::Scalar(Scalar::from_bits(*dtype, next()?)),
                Param::Pointer { size } => match next()? {
                    0 => Arg::Null,
                    address => {
                        let (buffer, offset) = find(&buffers, address, *size)?;
                        Arg::Ptr { buffer, offset }
                    }
                },
                Param::View { rank, size } => {
                    let address = next()?;
                    let mut numbers = || (0..*rank).map(|_| Ok(next()?.cast_signed())).collect();
                    let (shape, strides): (Result<Vec<i64>, Fault>, Result<Vec<i64>, Fault>) =
                        (numbers(), numbers());
                    let (shape, strides) = (shape?, strides?);
                    let (buffer, offset) = match address {
                        0 if shape.contains(&0) => (machine().nothing, 0),
                        _ => find(&buffers, address, *size)?,
                    };
                    Arg::View { buffer, offset, shape, strides }
                }
            })
        };
        self.params.iter().map(one).collect()
    }

    fn run(&self, values: &[u64], grid: [u32; 3]) -> Result<(), Fault> {
        let machine = machine();
        let stop = STOP.with_borrow(Clone::clone);
        let options = Options { printed: machine.printed.clone(), stop, ..Options::default() };
        self.program.launch(&self.bind(values)?, grid, &machine.memory, &options)
    }
}

thread_local! {
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Does work of this thread whose launches on the CPU fail once `stop` is true.
pub fn stopped_by<R>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> R) -> R {
    let before = STOP.replace(Some(Arc::clone(stop)));
    let done = work();
    STOP.set(before);
    done
}

fn param(ty: &Type) -> Param {
    let bytes = |elem: &ElemType| match elem {
        ElemType::Scalar(dtype) => dtype.bytes() as u64,
        ElemType::Ptr { .. } => 8,
    };
    match ty {
        Type::Tile { elem: ElemType::Scalar(dtype), .. } => Param::Number(*dtype),
        Type::Tile { elem: ElemType::Ptr { pointee, .. }, .. } => Param::Pointer { size: bytes(pointee) },
        Type::View { elem, rank, .. } => Param::View { rank: *rank as usize, size: bytes(elem) },
    }
}

/// The buffer of an address, and how many elements of a size are before it.
fn find(buffers: &Buffers, address: u64, size: u64) -> Result<(BufferId, i64), Fault> {
    let found = buffers.at(address).map(|place| (place.id, address - place.address));
    let (id, bytes) = found.filter(|(_, bytes)| bytes.is_multiple_of(size)).ok_or_else(|| {
        Fault::new("E0701", format!("the address {address:#x} of an argument is in no buffer of the CPU"))
    })?;
    Ok((id, (bytes / size).cast_signed()))
}

/// Something that a stream does.
#[derive(Clone)]
pub(super) enum Task {
    Launch {
        function: Arc<Function>,
        values: Vec<u64>,
        grid: [u32; 3],
    },
    /// Host memory to a virtual address.
    Write {
        to: u64,
        from: usize,
        bytes: usize,
    },
    /// A virtual address to host memory.
    Read {
        to: usize,
        from: u64,
        bytes: usize,
    },
    Fill {
        at: u64,
        byte: u8,
        bytes: usize,
    },
}

impl Task {
    /// Does it. Host memory that it names has that many bytes, which its caller sees to.
    pub fn run(&self) -> Result<(), Fault> {
        let outside = || Fault::new("E0701", "a copy leaves its buffer");
        let place = |buffers: &Buffers, at, bytes| buffers.resolve(at, bytes).ok_or_else(outside);
        let buffers = machine().memory.buffers();
        match self {
            Task::Launch { function, values, grid } => function.run(values, *grid)?,
            Task::Write { to, from, bytes } => {
                let to = place(&buffers, *to, *bytes)?;
                // SAFETY: `resolve` has found that many bytes, and the caller of the entry point promises the others.
                unsafe { std::ptr::copy_nonoverlapping(*from as *const u8, to, *bytes) };
            }
            Task::Read { to, from, bytes } => {
                let from = place(&buffers, *from, *bytes)?;
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(from, *to as *mut u8, *bytes) };
            }
            Task::Fill { at, byte, bytes } => {
                let at = place(&buffers, *at, *bytes)?;
                // SAFETY: as above.
                unsafe { std::ptr::write_bytes(at, *byte, *bytes) };
            }
        }
        Ok(())
    }
}

/// A queue that is always empty: what is put in it is done at once, or recorded.
#[derive(Default)]
pub(super) struct Queue(Mutex<Option<Recording>>);

/// The work that was recorded instead of being done.
#[derive(Default)]
struct Recording {
    tasks: Vec<Task>,
    /// Somebody has waited for it. Memory of the host that a copy names may be gone since then.
    broken: bool,
}

impl Queue {
    /// Does or records something. One after the other, whichever threads ask for it.
    pub fn put(&self, task: Task) -> Result<(), Fault> {
        let mut recording = lock(&self.0);
        match recording.as_mut() {
            Some(recording) => recording.tasks.push(task),
            None => return task.run(),
        }
        Ok(())
    }

    /// Returns true if all that was put in it is done. While a recording runs this is unknown, and the query breaks
    /// it.
    pub fn is_done(&self) -> bool {
        let mut recording = lock(&self.0);
        recording.as_mut().map(|r| r.broken = true).is_none()
    }

    /// Begins a recording; `false` if one runs.
    pub fn record(&self) -> bool {
        let mut recording = lock(&self.0);
        let free = recording.is_none();
        recording.get_or_insert_default();
        free
    }

    /// Ends it and gives what was recorded; nothing if it was broken.
    pub fn recorded(&self) -> Option<Vec<Task>> {
        lock(&self.0).take().filter(|r| !r.broken).map(|r| r.tasks)
    }
}
