//! Weighted set cover: the cheapest inputs that together reach all wanted features.
//!
//! Pure: no clock, no threads, no chance, and no I/O but reading what an input reaches through
//! [`Sets`]. All limits are counted in steps, so that the same inputs give the same cover anywhere.

mod bound;
mod exact;
mod gather;
mod greedy;
mod matrix;
mod price;
mod reduce;

use std::io;
use std::time::Duration;

use crate::{Amount, Feature, Features};
use gather::{Reader, Universe, survey};
use price::{Core, find_price};

/// Limits on the search for a cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Pairs of an input and its feature in memory at most, at some thirty bytes each; beyond that,
    /// features are read again in each pass.
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
    let most = price::least_of_other_tools(&mut reader, &survey)?;
    let rows = survey.holders.iter().enumerate();
    let missing = rows.filter(|(_, holders)| **holders == 0);
    let missing: Vec<Feature> = missing.map(|(row, _)| universe.feature(row)).collect();
    let core = Core::new(&mut reader, survey.distinct, effort)?;
    let settled = find_price(&mut reader, &core, most, effort)?;
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
trait Columns {
    /// How many columns there are.
    fn columns(&self) -> usize;

    /// How many rows there are.
    fn rows(&self) -> usize;

    /// What a column costs, more than 0.
    fn weight(&self, column: usize) -> u64;

    /// The rows of a column, each once: replaces what is in `into`.
    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()>;
}

/// How slow an input is, as a class: 0 for all that run in less than [`FAST`] of CPU time, and one
/// more for each further factor of four. Classes and not times, so that the noise of a machine does
/// not decide which file stays; the least time of several runs should be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slowness(u8);

/// The CPU time below which inputs are equally fast.
pub const FAST: Duration = Duration::from_millis(10);

/// The greatest weight of an input: so small that a million of them can be summed up.
const HEAVIEST: u64 = 1 << 40;

/// No input counts as slower than this class (three hours).
const SLOWEST: u8 = 10;

impl Slowness {
    /// The class of this CPU time.
    pub fn of(time: Duration) -> Slowness {
        let mut class = 0;
        let mut limit = FAST;
        while time >= limit && class < SLOWEST {
            class += 1;
            limit *= 4;
        }
        Slowness(class)
    }

    /// By how much it makes an input dearer: 1, 4, 16 and so on.
    pub fn factor(self) -> u64 {
        1 << (2 * self.0)
    }
}

/// What it costs to keep an input of so many bytes: (bytes + price of a file, in bytes) × slowness,
/// at least 1 and at most 2^40.
pub fn weight(bytes: u64, slowness: Slowness, price: u64) -> u64 {
    let size = bytes.saturating_add(price);
    size.saturating_mul(slowness.factor()).clamp(1, HEAVIEST)
}

/// Wanted features that a single input reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueFeatures {
    /// For each chosen input, in the order given, how many features no other chosen one reaches.
    pub private: Vec<usize>,
    /// The features that a single input of all reaches, ascending, with that input: it has to stay.
    pub sole: Vec<(Feature, usize)>,
}

/// Finds the features of `wanted`, without those of `covered`, that a single input reaches.
/// `chosen` is ascending.
///
/// # Errors
///
/// Where what an input reaches cannot be read.
pub fn unique_features(
    sets: &mut impl Sets,
    chosen: &[usize],
    wanted: &Features,
    covered: &Features,
) -> io::Result<UniqueFeatures> {
    let universe = Universe::new(wanted, covered);
    // How many reach a row (0, 1, or more as 2), and the last of them.
    let mut all = vec![(0_u8, 0_usize); universe.len()];
    let mut among = all.clone();
    let (mut features, mut rows) = (Vec::new(), Vec::new());
    let mut next = 0;
    for item in 0..sets.len() {
        sets.features(item, &mut features)?;
        universe.rows(&features, &mut rows);
        let position = (chosen.get(next) == Some(&item)).then_some(next);
        next += usize::from(position.is_some());
        for row in &rows {
            let row = *row as usize;
            all[row] = (all[row].0.saturating_add(1).min(2), item);
            if let Some(position) = position {
                among[row] = (among[row].0.saturating_add(1).min(2), position);
            }
        }
    }
    let mut private = vec![0; chosen.len()];
    for (_, position) in among.iter().filter(|(holders, _)| *holders == 1) {
        private[*position] += 1;
    }
    let sole = all.iter().enumerate();
    let sole = sole.filter(|(_, (holders, _))| *holders == 1);
    let sole = sole.map(|(row, (_, item))| (universe.feature(row), *item));
    Ok(UniqueFeatures {
        private,
        sole: sole.collect(),
    })
}
