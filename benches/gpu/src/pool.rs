//! Memory that all cases share: for each element type a buffer of random numbers, and one for results.
//!
//! Guarantees that the number at a position of a buffer is known on the host without a copy of the buffer: the numbers
//! of [`crate::data`] repeat after [`PERIOD`] positions. That is a prime larger than a row, so that no two rows of a
//! matrix are alike and an address that is wrong reads other numbers. The host makes one period, and the GPU copies it.

use tk_ops::DType;
use tk_runtime::gpu::{Buffer, Clock, CudaError, Device, Stream};

use crate::case::{CLASSES, Case};
use crate::data::Input;
use crate::matrix;
use crate::raw::Copies;

/// Numbers after which an operand repeats: the largest prime below 2^24.
pub const PERIOD: usize = 16_777_213;

/// One period of an element type on the host.
pub struct Numbers {
    dtype: DType,
    values: Vec<f32>,
    bytes: Vec<u8>,
}

impl Numbers {
    /// Of an element type.
    pub fn new(dtype: DType) -> Numbers {
        Numbers::with_period(dtype, PERIOD)
    }

    /// The same that repeat after this many.
    pub fn with_period(dtype: DType, period: usize) -> Numbers {
        let (values, bytes) =
            (matrix::numbers(dtype, Input::X, period), matrix::bytes(dtype, Input::X, period));
        Numbers { dtype, values, bytes }
    }

    /// The number at a position.
    pub fn at(&self, position: usize) -> f64 {
        self.values.get(position % self.values.len()).map_or(f64::NAN, |v| f64::from(*v))
    }

    /// The sum of products of two sequences of `count` numbers, each given by its first position and the distance of
    /// two numbers.
    pub fn dot(&self, a: [usize; 2], b: [usize; 2], count: usize) -> f64 {
        let period = self.values.len();
        let ([mut x, mut y], steps) = ([a[0] % period, b[0] % period], [a[1] % period, b[1] % period]);
        let next = |at: usize, step: usize| if at + step < period { at + step } else { at + step - period };
        let mut sum = 0.0;
        for _ in 0..count {
            if let (Some(v), Some(w)) = (self.values.get(x), self.values.get(y)) {
                sum += f64::from(*v) * f64::from(*w);
            }
            (x, y) = (next(x, steps[0]), next(y, steps[1]));
        }
        sum
    }

    /// Fills a buffer.
    pub fn fill(&self, copies: &Copies, stream: &Stream, buffer: &Buffer) -> Result<(), String> {
        let mut filled = self.bytes.len().min(buffer.len());
        copies.to_device(buffer.address(), self.bytes.get(..filled).unwrap_or_default())?;
        // Whole periods are doubled, so that what follows them continues.
        while filled < buffer.len() {
            let count = filled.min(buffer.len() - filled);
            copies.copy(stream, buffer.address() + filled as u64, buffer.address(), count)?;
            filled += count;
        }
        stream.synchronize().map_err(|e| e.to_string())
    }
}

/// Memory of the GPU, and how it is used.
pub struct Memory {
    /// Times kernels.
    pub clock: Clock,
    /// Copies.
    pub copies: Copies,
    /// Where results go.
    pub out: Buffer,
    /// The targets of losses, of i64.
    pub targets: Buffer,
    operands: Vec<(DType, Buffer)>,
}

impl Memory {
    /// As much as the largest of the cases takes, with these numbers.
    pub fn new(device: &Device, numbers: &[Numbers], cases: &[&Case]) -> Result<Memory, String> {
        let gpu = |e: CudaError| e.to_string();
        let (clock, copies) = (Clock::new(device)?, Copies::new()?);
        let mut operands = vec![];
        for period in numbers {
            let of_type = cases.iter().filter(|c| c.dtype == period.dtype);
            let elements = of_type.map(|c| c.elements()).max().unwrap_or(0);
            let buffer = device.alloc(elements * period.dtype.bytes()).map_err(gpu)?;
            period.fill(&copies, &clock.stream, &buffer)?;
            operands.push((period.dtype, buffer));
        }
        let count = cases.iter().filter_map(|c| c.targets()).max().unwrap_or(0);
        let targets = device.alloc(count * size_of::<i64>()).map_err(gpu)?;
        let bytes: Vec<u8> = (0..count).flat_map(|r| ((r % CLASSES) as i64).to_le_bytes()).collect();
        copies.to_device(targets.address(), &bytes)?;
        let results = cases.iter().map(|c| c.results() * c.out().bytes()).max().unwrap_or(0);
        Ok(Memory { out: device.alloc(results).map_err(gpu)?, targets, clock, copies, operands })
    }

    /// The address of the operands of an element type.
    pub fn address(&self, dtype: DType) -> u64 {
        self.operands.iter().find(|(d, _)| *d == dtype).map_or(0, |(_, buffer)| buffer.address())
    }
}

/// The numbers of the element types of the cases.
pub fn numbers(cases: &[&Case]) -> Vec<Numbers> {
    let mut types: Vec<DType> = vec![];
    for case in cases {
        if !types.contains(&case.dtype) {
            types.push(case.dtype);
        }
    }
    types.into_iter().map(Numbers::new).collect()
}

/// The numbers of an element type.
pub fn of_type(numbers: &[Numbers], dtype: DType) -> Result<&Numbers, String> {
    numbers.iter().find(|n| n.dtype == dtype).ok_or_else(|| format!("there are no numbers of {dtype}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat() {
        let period = 1009;
        let numbers = Numbers::with_period(DType::F8E4M3, period);
        assert_eq!(numbers.at(5), numbers.at(5 + 3 * period));
        assert_eq!(numbers.bytes.len(), period);
        let (a, b) = (period - 2, 7);
        let exact: f64 = (0..5).map(|i| numbers.at(a + 3 * i) * numbers.at(b + period * i)).sum();
        assert_eq!(numbers.dot([a, 3], [b, period], 5), exact);
    }
}
