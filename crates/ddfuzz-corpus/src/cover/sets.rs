//! What a cover is chosen from.

use std::io;

use super::Slowness;
use crate::Feature;

/// The inputs to choose from, by number. They stand in their canonical order, by (size, hash of
/// the content): where two are worth the same, the lower number is taken, so that the choice
/// depends on the contents only.
pub trait Sets {
    /// How many inputs there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of an input, in bytes.
    fn bytes(&self, item: usize) -> u64;

    /// How slow an input is.
    fn slowness(&self, item: usize) -> Slowness;

    /// What an input reaches, in ascending order, each once: replaces what is in `into`. Inputs are
    /// asked for several times, most often in ascending order.
    ///
    /// # Errors
    ///
    /// Where what it reaches cannot be read.
    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()>;
}

/// Inputs as columns over rows without gaps, at a price.
pub(super) trait Columns {
    /// How many columns there are.
    fn columns(&self) -> usize;

    /// How many rows there are.
    fn rows(&self) -> usize;

    /// What a column costs, more than 0.
    fn weight(&self, column: usize) -> u64;

    /// The rows of a column, each once: replaces what is in `into`.
    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()>;
}
