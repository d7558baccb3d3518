//! The searches of the command line, by name.

use ddfuzz_delta::{Dd, Dd1999, DdPlus, Ddmin, Ddmin2002, Full, Mode, Search, Subset};

/// Names of all searches (delta debugging algorithms), as `--search` takes them.
pub const SEARCHES: &[&str] = &[
    Full::NAME,
    Subset::NAME,
    Ddmin::NAME,
    Ddmin2002::NAME,
    Dd::NAME,
    Dd1999::NAME,
    DdPlus::NAME,
];

/// Returns a one-line description of the search `name` for the help of `--search`; empty for an
/// unknown name.
pub fn search_summary(name: &str) -> &'static str {
    match name {
        Full::NAME => "Delete and replace bytes, by the structure of the input and what runs show",
        Subset::NAME => "The same, but only delete bytes",
        Ddmin::NAME => "ddmin as published in 2000: subsets, then complements",
        Ddmin2002::NAME => "ddmin of The Debugging Book: complements only",
        Dd::NAME => "General delta debugging (dd), minimizing",
        Dd1999::NAME => "The first delta debugging (1999), for monotone failures",
        DdPlus::NAME => "The same with unresolved outcomes (dd+)",
        _ => "",
    }
}

/// Error: no search (delta debugging algorithm) has the requested name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no search {name:?}; there are: {}", SEARCHES.join(", "))]
pub struct UnknownSearch {
    /// The requested name, which no search has.
    pub name: String,
}

/// Starts the search named `name` over the bytes of `input`. `dd`, which can also maximize and
/// isolate, minimizes here.
///
/// The searches remember no outcomes: the minimization's content cache answers a test that they ask
/// again, even for `ddmin-2002`, whose published form runs it again. Such a test counts as
/// *repeated*, or as *cached* if another configuration had the same text.
///
/// # Errors
/// [`UnknownSearch`] if there is no search of this name.
pub fn search_by_name(name: &str, input: &[u8]) -> Result<Box<dyn Search>, UnknownSearch> {
    let units = input.len();
    Ok(match name {
        Full::NAME => Box::new(Full::new(input)),
        Subset::NAME => Box::new(Subset::new(input)),
        Ddmin::NAME => Box::new(Ddmin::new(units)),
        Ddmin2002::NAME => Box::new(Ddmin2002::new(units)),
        Dd::NAME => Box::new(Dd::new(units, Mode::Minimize)),
        Dd1999::NAME => Box::new(Dd1999::new(units)),
        DdPlus::NAME => Box::new(DdPlus::new(units)),
        _ => {
            return Err(UnknownSearch {
                name: name.to_owned(),
            });
        }
    })
}
