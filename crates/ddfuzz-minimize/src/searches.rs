//! The searches of the command line, by name.

use std::collections::BTreeMap;

use ddfuzz_delta::{Dd, Dd1999, DdPlus, Ddmin, Ddmin2002, Full, Mode, Search, Structure, Subset};
use ddfuzz_structure::{structure_named, structure_names, structure_of};

use crate::MinimizeError;

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

/// Error: no structure (file format or grammar) has the requested name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no structure {name:?}; there are: {}. A grammar in a shared library is loaded by \
     --grammar FILE.so; ddfuzz built with the feature `grammars` has further ones",
    structure_names().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownStructure {
    /// The requested name, which no structure has.
    pub name: String,
}

/// Returns the name of the structure (file format or grammar) of `input` that the search named
/// `search` uses, as it is recorded in logs; `None` if no structure is recognized, or the search
/// uses none.
pub fn structure_name(search: &str, input: &[u8]) -> Option<String> {
    let structure = match search {
        Full::NAME => structure_of(input),
        _ => Structure::Unknown,
    };
    structure.name().map(str::to_owned)
}

/// Returns the name of the search that trims an input in the fewest tests: `full` if the input is
/// of a known format or language, where deleting a part often requires changes elsewhere (of a
/// length field or a bracket); else `subset`, because replacing bytes by `0` hardly keeps coverage.
pub fn trim_search(input: &[u8]) -> &'static str {
    match structure_of(input) {
        Structure::Format(_) | Structure::Syntax(_) => Full::NAME,
        Structure::Unknown | Structure::Text | Structure::Binary => Subset::NAME,
    }
}

/// Maximum number of inputs in the sample that shows which structure most inputs of a target have.
const SHOWN: usize = 32;

/// Returns the name of the grammar that more than half of a sample of `inputs` fit; `None` if there
/// is none. Further inputs of the same target are then parsed by this grammar although they do not
/// fit it ([`StartLine::use_language`](crate::log::StartLine::use_language)).
pub fn usual_language<'a>(inputs: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<String> {
    let is_language = |structure: &Structure| matches!(structure, Structure::Syntax(_));
    usual(inputs).filter(is_language).and_then(name)
}

/// Returns the name of the structure (file format or grammar) that more than half of a sample of
/// `inputs` have; `None` if there is none.
pub fn usual_structure<'a>(inputs: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<String> {
    usual(inputs).and_then(name)
}

fn name(structure: Structure) -> Option<String> {
    structure.name().map(str::to_owned)
}

fn usual<'a>(inputs: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<Structure> {
    let step = inputs.len().div_ceil(SHOWN).max(1);
    let sample: Vec<&[u8]> = inputs.step_by(step).collect();
    let mut counts: BTreeMap<String, (usize, Structure)> = BTreeMap::new();
    for input in &sample {
        let structure = structure_of(input);
        let name = structure.name().unwrap_or_default().to_owned();
        counts.entry(name).or_insert((0, structure)).0 += 1;
    }
    let mut usual = counts.into_values();
    let found = usual.find(|(count, _)| count * 2 > sample.len());
    found.map(|(_, structure)| structure)
}

/// Starts the search named `name` over the bytes of `input`, as [`search_by_name`] does; the search
/// `full` uses the structure (file format or grammar) named `structure`, and deletes large parts
/// first if failing tests take long (`is_slow`).
///
/// # Errors
/// If there is no search or no structure of this name.
pub fn structured_search(
    name: &str,
    structure: Option<&str>,
    is_slow: bool,
    input: &[u8],
) -> Result<Box<dyn Search>, MinimizeError> {
    if name != Full::NAME {
        return Ok(search_by_name(name, input)?);
    }
    let known = match structure {
        Some(structure) => structure_named(structure).ok_or_else(|| UnknownStructure {
            name: structure.to_owned(),
        })?,
        None => Structure::Unknown,
    };
    Ok(Box::new(match is_slow {
        true => Full::in_large_parts(input, known),
        false => Full::nested(input, known, structure_of),
    }))
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
