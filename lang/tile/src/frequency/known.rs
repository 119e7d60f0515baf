//! What is known of a value while the frequencies of blocks are computed: [`Known`].

use std::rc::Rc;

use tk_ops::scalar::Scalar;

use super::LaunchArg;

/// What is known of a value in the program at hand.
#[derive(Clone, Debug)]
pub(super) enum Known<'m> {
    Nothing,
    Scalar(Scalar),
    /// The extents and strides of an argument.
    Argument(&'m [i64], &'m [i64]),
    /// Those of another view.
    View(Rc<Extents>),
}

/// Extents and strides of a view, as far as they are known.
#[derive(Debug)]
pub(super) struct Extents {
    shape: Vec<Option<i128>>,
    strides: Vec<Option<i128>>,
}

impl<'m> Known<'m> {
    pub fn argument(arg: &'m LaunchArg) -> Known<'m> {
        match arg {
            LaunchArg::Scalar(s) => Known::Scalar(*s),
            LaunchArg::Tensor(shape, strides) => Known::Argument(shape, strides),
            LaunchArg::Unknown => Known::Nothing,
        }
    }

    pub fn view(shape: Vec<Option<i128>>, strides: Vec<Option<i128>>) -> Known<'m> {
        Known::View(Rc::new(Extents { shape, strides }))
    }

    /// An extent of a view, or a stride.
    pub fn number(&self, axis: usize, strides: bool) -> Option<i128> {
        match self {
            Known::Argument(shape, steps) => {
                let list = if strides { steps } else { shape };
                list.get(axis).map(|n| i128::from(*n))
            }
            Known::View(of) => *(if strides { &of.strides } else { &of.shape }).get(axis)?,
            Known::Nothing | Known::Scalar(_) => None,
        }
    }

    /// The axes of a view; none of anything else.
    pub fn rank(&self) -> usize {
        match self {
            Known::Argument(shape, _) => shape.len(),
            Known::View(of) => of.shape.len(),
            Known::Nothing | Known::Scalar(_) => 0,
        }
    }
}
