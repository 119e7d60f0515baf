//! A stand-in for the model of the article.

use crate::arguments::Article;
use crate::failure::{Failure, Result};

/// Runs the model of the article.
pub fn run(_args: &Article) -> Result<()> {
    Err(Failure::mistake("the article's model is not here yet"))
}
