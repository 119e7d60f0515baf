//! From a binary to a launch: [`Module`], [`Kernel`], [`Args`].
//!
//! A module is loaded at the first launch in a context. From then on a launch queries nothing that is already known: it
//! writes the addresses of the arguments into an array on the stack and calls the driver.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{CUfunction, CUfunction_attribute as Attribute, CUmodule};
use smallvec::SmallVec;
use tk_bundle::TensorMap;
use tk_ops::Scalar;
use tk_tile::message::Message;

use super::device::{Context, Device, MOST_BLOCKS};
use super::error::CudaError;
use super::kept::Kept;
use super::maps::Maps;
use super::stream::Stream;
use super::vendor::Vendor;
use crate::compile::{Binary, ParamKind};

/// Arguments that need no memory from the heap: four views of rank 3 have 28.
const INLINE: usize = 32;
/// The same with the three parameters of the grid and control memory; the next larger size that `smallvec` has.
const INLINE_WITH_GRID: usize = 36;

/// The values of the machine parameters of a launch, in order.
#[derive(Clone, Debug, Default)]
pub struct Args {
    values: SmallVec<[u64; INLINE]>,
}

impl Args {
    /// None yet.
    pub fn new() -> Args {
        Args::default()
    }

    /// Forgets them; the memory stays.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// An address on the GPU.
    pub fn push_ptr(&mut self, address: u64) -> &mut Args {
        self.push_bits(address)
    }

    /// A bool or an integer of 8, 16 or 32 bits, signed or not.
    pub fn push_i32(&mut self, v: i32) -> &mut Args {
        self.push_bits(u64::from(v as u32))
    }

    /// An integer of 64 bits.
    pub fn push_i64(&mut self, v: i64) -> &mut Args {
        self.push_bits(v as u64)
    }

    /// An f32.
    pub fn push_f32(&mut self, v: f32) -> &mut Args {
        self.push_bits(u64::from(v.to_bits()))
    }

    /// An f64.
    pub fn push_f64(&mut self, v: f64) -> &mut Args {
        self.push_bits(v.to_bits())
    }

    /// A value of any type.
    pub fn push_scalar(&mut self, v: Scalar) -> &mut Args {
        self.push_bits(v.bits())
    }

    /// A value by its bits, the lowest first: the driver reads as many bytes as the parameter has.
    pub fn push_bits(&mut self, bits: u64) -> &mut Args {
        self.values.push(bits);
        self
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Their bits.
    pub fn bits(&self) -> &[u64] {
        &self.values
    }
}

/// The name of a kernel and its block size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// The name of the function in the module.
    pub name: String,
    /// Lanes of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block, which the launch asks for or, on other GPUs, the binary has by itself.
    pub shared_bytes: u32,
    /// Blocks of a program, next to each other on axis 0; at least 1.
    pub blocks_per_program: u32,
    /// Its machine parameters, without the three of the grid and control memory.
    pub params: Vec<ParamKind>,
    /// Its tensor maps.
    pub maps: Vec<TensorMap>,
    /// Its messages.
    pub messages: Arc<[Message]>,
    /// Whether all programs of a launch synchronize.
    pub has_grid_barrier: bool,
}

impl KernelInfo {
    /// Returns true if it gets control memory.
    #[inline]
    pub fn has_control(&self) -> bool {
        self.has_grid_barrier || !self.messages.is_empty()
    }
}

/// A binary, loaded by the first launch of one of its kernels in a context.
#[derive(Clone)]
pub struct Module(Arc<Image>);

struct Image {
    bytes: Arc<[u8]>,
    /// By the number of the context.
    loaded: Mutex<BTreeMap<u64, Loaded>>,
    /// The workspaces that its kernel leaves zero.
    kept: Kept,
}

/// A module in a context.
struct Loaded {
    context: Arc<Context>,
    raw: CUmodule,
}

// SAFETY: the driver allows every thread to use a module.
unsafe impl Send for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the kernels that use it keep it; none is left.
            unsafe { (self.context.driver.module_unload)(self.raw) };
        }
    }
}

/// A name that lives as long as the process. Each is kept once.
fn kept(name: &str) -> &'static String {
    static NAMES: Mutex<BTreeMap<&'static str, &'static String>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static String = Box::leak(Box::new(name.to_string()));
    names.insert(new, new);
    new
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({} bytes)", self.0.bytes.len())
    }
}

impl Module {
    /// From a cubin, PTX text, which the driver then assembles, or a code object. Nothing is loaded yet.
    pub fn lazy(image: Arc<[u8]>) -> Module {
        // PTX is text that ends with a zero; after a cubin or a code object one more byte does no harm.
        let bytes = if image.last() == Some(&0) { image } else { image.iter().copied().chain([0]).collect() };
        Module(Arc::new(Image { bytes, loaded: Mutex::default(), kept: Kept::default() }))
    }

    /// A kernel of it.
    pub fn kernel(&self, info: KernelInfo) -> Kernel {
        let shown = kept(&info.name);
        Kernel {
            module: self.clone(),
            info,
            shown,
            first: OnceLock::new(),
            others: Mutex::new(BTreeMap::new()),
            maps: Maps::default(),
        }
    }

    /// The function with this name in a context.
    fn function(&self, context: &Arc<Context>, name: &str) -> Result<CUfunction, CudaError> {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, l| l.context.lost().is_none());
        context.enter()?;
        let driver = context.driver;
        let what = || format!("kernel `{name}` cannot be loaded");
        let raw = match loaded.get(&context.id) {
            Some(l) => l.raw,
            None => {
                let mut raw: CUmodule = ptr::null_mut();
                // SAFETY: the place lives; the image is whole and ends with a zero.
                let code = unsafe { (driver.module_load)(&raw mut raw, self.0.bytes.as_ptr().cast()) };
                context.check(code, &what())?;
                loaded.insert(context.id, Loaded { context: Arc::clone(context), raw });
                raw
            }
        };
        let symbol = CString::new(name)
            .map_err(|_| CudaError::new(format!("{}: its name contains a NUL byte", what()), "rename it"))?;
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: the place, the module and the text live.
        let code = unsafe { (driver.module_function)(&raw mut function, raw, symbol.as_ptr()) };
        context.check(code, &what())?;
        Ok(function)
    }
}

/// A kernel that can be launched.
pub struct Kernel {
    module: Module,
    info: KernelInfo,
    /// The name for streams to remember; it outlives every stream.
    shown: &'static String,
    /// The first launch: the number of its context and the function there.
    first: OnceLock<(u64, Function)>,
    others: Mutex<BTreeMap<u64, Function>>,
    maps: Maps,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(CUfunction);

// SAFETY: the driver allows every thread to use a function.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.info).finish()
    }
}

impl Kernel {
    /// Of what a compiler gave.
    pub fn of(binary: Binary) -> Kernel {
        let Binary {
            name,
            image,
            threads,
            shared_bytes,
            blocks_per_program,
            params,
            maps,
            messages,
            has_grid_barrier,
        } = binary;
        Module::lazy(image).kernel(KernelInfo {
            name,
            threads,
            shared_bytes,
            blocks_per_program,
            params,
            maps,
            messages,
            has_grid_barrier,
        })
    }

    /// The workspaces that it leaves zero. They live as long as its module, which graphs keep.
    pub(crate) fn kept(&self) -> &Kept {
        &self.module.0.kept
    }

    /// Its name and block size.
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// Fails if a block of it does not fit on the device, without asking the driver.
    pub fn fits(&self, device: &Device) -> Result<(), CudaError> {
        let (name, threads, most) = (&self.info.name, self.info.threads, device.threads());
        if threads > most {
            return Err(CudaError::new(
                format!("kernel `{name}` has blocks of {threads} threads, and the GPU takes at most {most}"),
                "use fewer warps: `launch(warps = n)`",
            ));
        }
        let (needed, most) = (self.info.shared_bytes, device.shared_bytes());
        if needed <= most {
            return Ok(());
        }
        Err(CudaError::new(
            format!(
                "kernel `{name}` needs {needed} bytes of shared memory for a block, and the GPU has {most}"
            ),
            "use smaller tiles or fewer stages",
        ))
    }

    /// Launches all programs of a grid. Fails if the kernel has messages or uses `grid_barrier`: a `Launcher` or a
    /// `Session` has the memory for that.
    #[inline]
    pub fn launch(&self, stream: &Stream, grid: [u32; 3], args: &Args) -> Result<(), CudaError> {
        self.start(stream, grid, args.bits(), false, None)
    }

    /// The same, with all programs running concurrently. Fails if they do not fit.
    pub fn launch_cooperative(&self, stream: &Stream, grid: [u32; 3], args: &Args) -> Result<(), CudaError> {
        self.start(stream, grid, args.bits(), true, None)
    }

    /// Launches with arguments that are already bits, one for each of the parameters, and the address of control memory
    /// if the kernel has some.
    pub(crate) fn start(
        &self,
        stream: &Stream,
        grid: [u32; 3],
        values: &[u64],
        cooperative: bool,
        control: Option<u64>,
    ) -> Result<(), CudaError> {
        if grid.contains(&0) {
            return Ok(());
        }
        if values.len() != self.info.params.len() || control.is_some() != self.info.has_control() {
            return Err(self.miscounted(values.len()));
        }
        let context = stream.context();
        let blocks = self.blocks(grid, context.driver.vendor)?;
        context.enter()?;
        let function = match self.first.get() {
            Some((id, function)) if *id == context.id => *function,
            Some(_) | None => self.find(context)?,
        };
        let mut pointers: SmallVec<[*mut c_void; INLINE_WITH_GRID]> = SmallVec::new();
        let address = |v: &u64| ptr::from_ref(v).cast_mut().cast::<c_void>();
        pointers.extend(values.iter().map(address));
        pointers.extend(grid.iter().map(|n| ptr::from_ref(n).cast_mut().cast::<c_void>()));
        pointers.extend(control.iter().map(address));
        let maps = self.maps.of(&self.info, values, context.driver.encode_map)?;
        pointers.extend(maps.iter().map(|m| ptr::from_ref(m).cast_mut().cast::<c_void>()));
        if cooperative {
            self.fits_at_once(context, function, grid)?;
        }
        stream.remember(self.shown);
        stream.keep(&self.module);
        let code = self.call(stream, function, blocks, &mut pointers, cooperative);
        if code == 0 { Ok(()) } else { Err(self.failed(stream, code, grid, values)) }
    }

    /// Calls the driver.
    #[inline]
    fn call(
        &self,
        stream: &Stream,
        Function(function): Function,
        [x, y, z]: [u32; 3],
        pointers: &mut [*mut c_void],
        cooperative: bool,
    ) -> u32 {
        let (driver, raw) = (stream.context().driver, stream.raw());
        let (threads, params) = (self.info.threads, pointers.as_mut_ptr());
        let shared = driver.vendor.shared.asked(self.info.shared_bytes);
        // SAFETY: stream and function live and belong to the current context, and there is a pointer to 8 readable bytes
        // (4 for the grid) for each parameter. The driver copies the values before it returns.
        unsafe {
            if cooperative {
                (driver.launch_cooperative)(function, x, y, z, threads, 1, 1, shared, raw, params)
            } else {
                (driver.launch)(function, x, y, z, threads, 1, 1, shared, raw, params, ptr::null_mut())
            }
        }
    }

    /// The blocks of a grid on each axis.
    fn blocks(&self, [x, y, z]: [u32; 3], vendor: &Vendor) -> Result<[u32; 3], CudaError> {
        let most = |axis: usize, n: u32, most: u32| {
            let name = &self.info.name;
            CudaError::new(
                format!(
                    "the grid of kernel `{name}` has {n} programs on axis {axis}, and a GPU takes at most {most}"
                ),
                "put the longest axis of the grid first",
            )
        };
        let each = self.info.blocks_per_program.max(1);
        let by_threads = vendor.grid_threads / u64::from(self.info.threads.max(1));
        let longest = u64::from(i32::MAX as u32).min(by_threads) as u32 / each;
        match (x, y, z) {
            (x, ..) if x > longest => Err(most(0, x, longest)),
            (_, y, _) if y > MOST_BLOCKS => Err(most(1, y, MOST_BLOCKS)),
            (.., z) if z > MOST_BLOCKS => Err(most(2, z, MOST_BLOCKS)),
            (x, y, z) => Ok([x * each, y, z]),
        }
    }

    /// The function in a context that is not the first one, or the first time.
    #[cold]
    fn find(&self, context: &Arc<Context>) -> Result<Function, CudaError> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = others.get(&context.id) {
            return Ok(*function);
        }
        let raw = self.module.function(context, &self.info.name)?;
        let shared = self.info.shared_bytes;
        if context.driver.vendor.shared.must_tell(shared) {
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
            // SAFETY: the function lives.
            let code = unsafe { (context.driver.set_function_attribute)(raw, attribute, bytes) };
            let what = || format!("kernel `{}` cannot have {shared} bytes of shared memory", self.info.name);
            context.check(code, &what())?;
        }
        if self.first.set((context.id, Function(raw))).is_err() {
            others.insert(context.id, Function(raw));
        }
        Ok(Function(raw))
    }

    /// Fails if the GPU does not hold that many blocks at once.
    fn fits_at_once(
        &self,
        context: &Context,
        Function(function): Function,
        grid: [u32; 3],
    ) -> Result<(), CudaError> {
        let (name, mut each) = (&self.info.name, 0);
        let shared = context.driver.vendor.shared.asked(self.info.shared_bytes);
        let (threads, shared) = (i32::try_from(self.info.threads).unwrap_or(i32::MAX), shared as usize);
        // SAFETY: the place and the function live.
        let code = unsafe { (context.driver.occupancy)(&raw mut each, function, threads, shared) };
        context.check(code, &format!("cannot query how many blocks of kernel `{name}` the GPU holds"))?;
        let sms = context.sms()?;
        let each = u64::try_from(each).unwrap_or(0);
        // No grid that fits is so large that its size is none of 64 bits.
        let wanted = grid.iter().fold(1u64, |n, d| n.saturating_mul((*d).into()));
        let most = each * u64::from(sms) / u64::from(self.info.blocks_per_program.max(1));
        if wanted <= most {
            return Ok(());
        }
        let sentence = format!(
            "the {wanted} programs of kernel `{name}` must run at the same time, as `cooperative = true` requires, and the GPU holds {most}: {each} on each of its {sms} multiprocessors"
        );
        Err(CudaError::new(
            sentence,
            "use a smaller grid, such as one derived from `device.sms`, or smaller tiles",
        ))
    }

    #[cold]
    fn miscounted(&self, given: usize) -> CudaError {
        let (name, takes) = (&self.info.name, self.info.params.len());
        if takes == given {
            let sentence = format!(
                "kernel `{name}` uses `print`, `assert` or `grid_barrier`, and has no memory for that"
            );
            return CudaError::new(sentence, "launch it through a `Launcher` or a `Session`");
        }
        let sentence = format!("kernel `{name}` takes {takes} machine parameters, but {given} were given");
        CudaError::new(sentence, "a view has one for its address, then its extents and strides")
    }

    /// The result of a launch. The driver also reports failures of earlier kernels of the context here.
    #[cold]
    fn failed(&self, stream: &Stream, code: u32, grid: [u32; 3], values: &[u64]) -> CudaError {
        let args = self.describe(grid, values);
        let what = if code == super::error::code::FAULT {
            format!("kernel `{}` failed with {args}", self.info.name)
        } else if super::error::loses_context(code) {
            format!("{}; reported at the launch of `{}` with {args}", stream.suspects(), self.info.name)
        } else {
            format!("kernel `{}` cannot be launched with {args}", self.info.name)
        };
        stream.context().fail(code, &what)
    }

    /// The arguments of a launch in words: `the grid [4, 1, 1] and (0x7f00, 1000, 0.5)`.
    pub(crate) fn describe(&self, grid: [u32; 3], values: &[u64]) -> String {
        let value = |(kind, bits): (&ParamKind, &u64)| match kind {
            ParamKind::Pointer => format!("{bits:#x}"),
            ParamKind::Scalar(d) => Scalar::from_bits(*d, *bits).to_string(),
        };
        let values: Vec<String> = self.info.params.iter().zip(values).map(value).collect();
        format!("the grid {grid:?} and ({})", values.join(", "))
    }
}
