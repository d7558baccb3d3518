//! Searches by name.

use crate::delta::{Ddmin, Search};

/// The names of all searches, as `--search` takes them.
pub const SEARCHES: &[&str] = &[Ddmin::NAME];

/// No search has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no search {name:?}; there are: {}", SEARCHES.join(", "))]
pub struct UnknownSearch {
    /// The name asked for.
    pub name: String,
}

/// A search of this name over the bytes of `input`, before its first step.
///
/// # Errors
/// [`UnknownSearch`] where there is none.
pub fn search_by_name(name: &str, input: &[u8]) -> Result<Box<dyn Search>, UnknownSearch> {
    match name {
        Ddmin::NAME => Ok(Box::new(Ddmin::new(input.len()))),
        _ => Err(UnknownSearch {
            name: name.to_owned(),
        }),
    }
}
