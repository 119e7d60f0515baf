//! Typed tensors on a GPU: [`Tensor`] owns memory, [`View`] and [`ViewMut`] are what kernels take, [`Pointer`] and
//! [`PointerMut`] are elements without a shape.
//!
//! A launch checks that a view is in its buffer; element type and rank are checked when a program is compiled.

use std::marker::PhantomData;

use tk_runtime::gpu::{Arg, Buffer, CudaError, Device, Element, Stream};

/// A row-major tensor that owns its GPU memory.
#[derive(Debug)]
pub struct Tensor<T, const R: usize> {
    buffer: Buffer,
    shape: [i64; R],
    elements: PhantomData<T>,
}

/// The bytes of a tensor; saturates on overflow.
fn bytes<T>(shape: &[i64]) -> usize {
    let count = shape.iter().try_fold(size_of::<T>(), |n, d| n.checked_mul(usize::try_from(*d).ok()?));
    count.filter(|n| isize::try_from(*n).is_ok()).unwrap_or(isize::MAX as usize)
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// Uninitialized memory.
    pub fn empty(device: &Device, shape: [i64; R]) -> Result<Self, CudaError> {
        Ok(Tensor { buffer: device.alloc(bytes::<T>(&shape))?, shape, elements: PhantomData })
    }

    /// Zeros.
    pub fn zeros(device: &Device, stream: &Stream, shape: [i64; R]) -> Result<Self, CudaError> {
        let tensor = Self::empty(device, shape)?;
        tensor.buffer.fill_zero(stream)?;
        Ok(tensor)
    }

    /// Copies host elements in row-major order. Fails if there are more of them than the shape has.
    pub fn from_slice(
        device: &Device,
        stream: &Stream,
        elements: &[T],
        shape: [i64; R],
    ) -> Result<Self, CudaError> {
        let tensor = Self::zeros(device, stream, shape)?;
        tensor.buffer.copy_from(stream, elements)?;
        Ok(tensor)
    }

    /// Its extents.
    pub fn shape(&self) -> [i64; R] {
        self.shape
    }

    /// Its memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// A view of the whole tensor, for reading.
    pub fn view(&self) -> View<'_, T, R> {
        View::new(&self.buffer, self.shape)
    }

    /// A view of the whole tensor, for writing. Earlier work of the GPU may still use it.
    pub fn view_mut(&mut self) -> ViewMut<'_, T, R> {
        ViewMut(self.view())
    }

    /// Its elements, after the earlier work of the stream.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, CudaError> {
        let count = self.buffer.len() / size_of::<T>().max(1);
        let mut out: Vec<T> = Vec::with_capacity(count);
        // SAFETY: zero bytes are a value of `T`, as `Element` promises, and there is room for that many.
        unsafe {
            std::ptr::write_bytes(out.as_mut_ptr(), 0, count);
            out.set_len(count);
        }
        self.buffer.copy_to(stream, &mut out)?;
        Ok(out)
    }
}

/// A tensor that a kernel reads.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T, const R: usize> {
    address: u64,
    bytes: usize,
    shape: [i64; R],
    strides: Option<[i64; R]>,
    memory: PhantomData<&'a T>,
}

impl<'a, T: Element, const R: usize> View<'a, T, R> {
    /// A row-major tensor at the start of a buffer.
    pub fn new(buffer: &'a Buffer, shape: [i64; R]) -> Self {
        View { address: buffer.address(), bytes: buffer.len(), shape, strides: None, memory: PhantomData }
    }

    /// A tensor in memory of another library, with strides in elements.
    ///
    /// # Safety
    /// Every element is in memory of the GPU that lives while a kernel uses it.
    pub unsafe fn foreign(address: u64, shape: [i64; R], strides: [i64; R]) -> Self {
        View { address, bytes: usize::MAX, shape, strides: Some(strides), memory: PhantomData }
    }

    /// The same memory with strides, in elements.
    pub fn strided(self, strides: [i64; R]) -> Self {
        View { strides: Some(strides), ..self }
    }

    /// The same tensor, advanced by that many elements. Elements outside of the buffer are rejected at the launch.
    pub fn offset(self, elements: usize) -> Self {
        let skip = elements.saturating_mul(size_of::<T>());
        let bytes = if self.bytes == usize::MAX { usize::MAX } else { self.bytes.saturating_sub(skip) };
        View { address: self.address.saturating_add(skip as u64), bytes, ..self }
    }

    /// As an argument of a launch.
    pub fn arg(&self) -> Arg<'_> {
        let strides = self.strides.as_ref().map(<[i64; R]>::as_slice);
        Arg::Tensor { address: self.address, bytes: self.bytes, dtype: T::DTYPE, shape: &self.shape, strides }
    }
}

/// A tensor that a kernel writes.
#[derive(Debug)]
pub struct ViewMut<'a, T, const R: usize>(View<'a, T, R>);

impl<'a, T: Element, const R: usize> ViewMut<'a, T, R> {
    /// A row-major tensor at the start of a buffer.
    pub fn new(buffer: &'a Buffer, shape: [i64; R]) -> Self {
        ViewMut(View::new(buffer, shape))
    }

    /// See [`View::foreign`].
    ///
    /// # Safety
    /// As there, and nothing else uses the elements while a kernel does.
    pub unsafe fn foreign(address: u64, shape: [i64; R], strides: [i64; R]) -> Self {
        // SAFETY: the caller promises it.
        ViewMut(unsafe { View::foreign(address, shape, strides) })
    }

    /// See [`View::strided`].
    pub fn strided(self, strides: [i64; R]) -> Self {
        ViewMut(self.0.strided(strides))
    }

    /// See [`View::offset`].
    pub fn offset(self, elements: usize) -> Self {
        ViewMut(self.0.offset(elements))
    }

    /// As an argument of a launch.
    pub fn arg(&self) -> Arg<'_> {
        self.0.arg()
    }
}

/// Elements that a kernel reads.
pub type Pointer<'a, T> = View<'a, T, 1>;

/// Elements that a kernel writes.
pub type PointerMut<'a, T> = ViewMut<'a, T, 1>;
