//! The least of the inputs that reach all that is wanted: weighted set cover.
//!
//! Pure: no clock, no threads, no chance, and no I/O but reading what an input reaches through
//! [`Sets`]. All limits are counted in steps, so that the same inputs give the same cover anywhere.

mod ascent;
mod bound;
mod core;
mod exact;
mod gather;
mod greedy;
mod guided;
mod held;
mod improve;
mod matrix;
mod peers;
mod pricing;
mod reduce;
mod sets;
mod steps;
mod terms;
mod universe;
mod weight;

use std::io;

use self::core::Core;
use super::{Amount, Feature, Features};
use gather::{Reader, survey};
use terms::settle;
use universe::Universe;

pub use held::{Held, held};
pub use sets::Sets;
pub use weight::{FAST, Slowness, weight};

/// What a choice may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How many pairs of an input and a feature of it may be held in memory, at some thirty bytes
    /// each; beyond it, features are read again and again.
    pub entries: usize,
    /// How many nodes of the search for the least cover may be opened, for each price of a file.
    pub nodes: u32,
    /// How many elementary steps reductions, bounds and the search may take, for each price of a
    /// file: some 10⁸ in a second.
    pub steps: u64,
}

/// Steps for each input, where that is less than the default: as much time as some ten runs take.
const STEPS_EACH: u64 = 20_000;
/// The fewest steps, which prove most small covers to be optimal.
const FEWEST_STEPS: u64 = 5_000_000;

impl Effort {
    /// What a choice among so many inputs may cost beside running them.
    pub fn among(inputs: usize) -> Effort {
        let most = Effort::default();
        let steps = (inputs as u64).saturating_mul(STEPS_EACH);
        Effort {
            steps: steps.clamp(FEWEST_STEPS, most.steps),
            ..most
        }
    }

    /// A first choice, which more runs will change: good, and not proved to be the best.
    pub fn first(self) -> Effort {
        Effort {
            nodes: 0,
            steps: self.steps / 10,
            ..self
        }
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            entries: 10_000_000,
            nodes: 2_000,
            steps: 50_000_000,
        }
    }
}

/// Inputs that together reach all that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The inputs, ascending.
    pub chosen: Vec<usize>,
    /// How many they are, and their bytes.
    pub amount: Amount,
    /// What a file cost by being one, in bytes.
    pub price: u64,
    /// Whether slow inputs counted as dearer: not where that would keep more than other tools do.
    pub counts_time: bool,
    /// What the chosen inputs cost: the sum of their [`weight`]s.
    pub weight: u64,
    /// No cover costs less, at this price.
    pub lower_bound: u64,
    /// Whether it is proved that no cover costs less: the bound is reached.
    pub optimal: bool,
    /// What is wanted, not covered before, and reached by no input.
    pub missing: Features,
}

/// Chooses inputs that reach what is in `wanted` and not in `covered`, as few and as small as
/// possible.
///
/// # Errors
///
/// Where what an input reaches cannot be read.
pub fn cover(
    sets: &mut impl Sets,
    wanted: &Features,
    covered: &Features,
    effort: &Effort,
) -> io::Result<Cover> {
    if u32::try_from(sets.len()).is_err() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "more than 2^32 inputs: clean them in parts",
        ));
    }
    let universe = Universe::new(wanted, covered);
    let mut reader = Reader::new(sets, &universe);
    let survey = survey(&mut reader)?;
    let most = peers::least(&mut reader, &survey)?;
    let rows = survey.holders.iter().enumerate();
    let missing = rows.filter(|(_, holders)| **holders == 0);
    let missing: Vec<Feature> = missing.map(|(row, _)| universe.feature(row)).collect();
    let core = Core::new(&mut reader, survey.distinct, effort)?;
    let settled = settle(&mut reader, &core, most, effort)?;
    Ok(Cover {
        optimal: settled.choice.lower >= settled.choice.weight,
        chosen: settled.choice.items,
        amount: settled.amount,
        price: settled.terms.price,
        counts_time: settled.terms.timed,
        weight: settled.choice.weight,
        lower_bound: settled.choice.lower,
        missing: Features::from_unsorted(missing),
    })
}
