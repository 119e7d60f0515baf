//! [`Graph`]: recorded launches that are started together, at a lower cost than separate launches.
//!
//! A graph keeps its kernels loaded and holds the addresses of their arguments: that memory must live at the same
//! address as long as the graph is replayed. Using freed memory is like any invalid address in a kernel: the device
//! faults, or other GPU memory is overwritten.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphExec};

use super::device::Context;
use super::error::CudaError;
use super::kernel::Module;
use super::stream::Stream;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`: a kernel that is launched for the first time is loaded meanwhile.
const RELAXED: u32 = 2;

/// Recorded work.
pub struct Graph {
    context: Arc<Context>,
    exec: CUgraphExec,
    /// Its kernels, which stay loaded.
    _modules: Vec<Module>,
}

// SAFETY: the driver allows every thread to use a graph, one at a time; sharing it is not offered.
unsafe impl Send for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("exec", &self.exec).finish_non_exhaustive()
    }
}

impl Stream {
    /// Records the work that `work` adds to this stream instead of running it. Fails if `work` fails, or if it waits
    /// for the stream, as a launch of a kernel that prints or asserts does.
    pub fn capture<E: From<CudaError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        let context = self.context();
        context.enter()?;
        // SAFETY: the stream lives.
        let code = unsafe { (context.driver.capture_begin)(self.raw(), RELAXED) };
        context.check(code, "cannot record a stream")?;
        self.set_recording(true);
        let mut recording = Recording { stream: self, running: true };
        let worked = work();
        let (graph, modules, code) = recording.end();
        // What failed first is the reason for what failed next.
        worked?;
        context.check(code, "the recording is not a graph")?;
        Ok(graph.instantiate(modules)?)
    }
}

/// A recording that is ended on each path, also where `work` panics.
struct Recording<'s> {
    stream: &'s Stream,
    running: bool,
}

impl Recording<'_> {
    /// The graph, what was launched in it, and what the driver says.
    fn end(&mut self) -> (Recorded, Vec<Module>, u32) {
        self.running = false;
        let context = self.stream.context();
        let modules = self.stream.set_recording(false);
        let mut graph: CUgraph = ptr::null_mut();
        let code = match context.enter() {
            // SAFETY: the place and the stream live.
            Ok(()) => unsafe { (context.driver.capture_end)(self.stream.raw(), &raw mut graph) },
            // The recording is gone with the context, whose loss is told when the graph is made.
            Err(_) => 0,
        };
        (Recorded { context: Arc::clone(context), graph }, modules, code)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if self.running {
            self.end();
        }
    }
}

/// A graph that is not instantiated yet.
struct Recorded {
    context: Arc<Context>,
    graph: CUgraph,
}

impl Recorded {
    fn instantiate(&self, modules: Vec<Module>) -> Result<Graph, CudaError> {
        self.context.enter()?;
        let mut exec: CUgraphExec = ptr::null_mut();
        // SAFETY: the place and the graph live.
        let code = unsafe { (self.context.driver.graph_instantiate)(&raw mut exec, self.graph, 0) };
        self.context.check(code, "cannot create a graph")?;
        Ok(Graph { context: Arc::clone(&self.context), exec, _modules: modules })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.graph.is_null() && self.context.enter().is_ok() {
            // SAFETY: it was made once; what was instantiated of it is a copy.
            unsafe { (self.context.driver.graph_destroy)(self.graph) };
        }
    }
}

impl Graph {
    /// Launches all of it after the earlier work of the stream.
    #[inline]
    pub fn launch(&mut self, stream: &Stream) -> Result<(), CudaError> {
        self.context.enter()?;
        // SAFETY: both live.
        let code = unsafe { (self.context.driver.graph_launch)(self.exec, stream.raw()) };
        if code == 0 { Ok(()) } else { Err(self.context.fail(code, "cannot launch a graph")) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was made once; the driver keeps what still runs.
            unsafe { (self.context.driver.graph_exec_destroy)(self.exec) };
        }
    }
}
