//! Weighted set cover: the cheapest inputs that together reach all required features.
//!
//! Pure: no clock, no threads, no randomness, and no I/O except [`Sets`]. Limits are counted in
//! steps, so that the same inputs give the same cover on any machine.

mod exact;
mod greedy;
mod matrix;
mod price;
mod reduce;

use std::io;
use std::time::Duration;

use crate::{Amount, Feature, Features};
use matrix::{Reader, Universe, survey};
use price::{Core, find_price};

/// Limits on the memory and the work of the search for a set cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most pairs of an input and a feature that are held in memory, at about 30 bytes each; if
    /// there are more, features are read again in each pass over the inputs.
    pub entries: usize,
    /// Maximum number of nodes (partial selections of inputs) that one branch-and-bound search
    /// visits. One such search is made for each price of a file that is tried (bytes added to the
    /// size of each input).
    pub nodes: u32,
    /// Maximum number of elementary steps of reductions, bounds and branch-and-bound search, for
    /// each price of a file that is tried (bytes added to the size of each input). About 10⁸ steps
    /// take a second.
    pub steps: u64,
}

/// The limit on the elementary steps of a cover search grows by this number with each input, until
/// it reaches the default limit. This many steps take about as long as ten runs.
const STEPS_EACH: u64 = 20_000;
/// Least limit of elementary steps of the cover search, however few the inputs are; it is enough to
/// prove most small covers optimal.
const FEWEST_STEPS: u64 = 5_000_000;

impl Effort {
    /// Returns the limits of a cover search that chooses among `inputs` inputs: with more inputs
    /// more steps are allowed, so that the search takes little time compared with running the
    /// inputs.
    pub fn among(inputs: usize) -> Effort {
        let most = Effort::default();
        let steps = (inputs as u64).saturating_mul(STEPS_EACH);
        Effort {
            steps: steps.clamp(FEWEST_STEPS, most.steps),
            ..most
        }
    }

    /// Returns limits for a preliminary set cover that need not be proved optimal: a tenth of these
    /// steps, and no branch-and-bound search.
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

/// A set cover: inputs that together reach all required features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// Numbers of the inputs that the set cover contains, ascending.
    pub chosen: Vec<usize>,
    /// Number of the inputs that the set cover contains, and their total size in bytes.
    pub amount: Amount,
    /// The cost of keeping one more file, in bytes, added to the size of each input: a higher price
    /// gives fewer files, a lower one fewer bytes.
    pub price: u64,
    /// Whether slow inputs cost more than fast ones of the same size; false only if each cover
    /// found with such costs had more files or bytes than the subsets that other tools keep.
    pub counts_time: bool,
    /// Total cost: the sum of the [`weight`]s of the chosen inputs.
    pub weight: u64,
    /// Lower bound of the total cost of any cover, if one more file costs `price`.
    pub lower_bound: u64,
    /// Whether it is proved that no other cover has a lower total cost, if one more file costs
    /// `price`.
    pub optimal: bool,
    /// Required features that no input reaches.
    pub missing: Features,
}

/// Chooses few and small inputs that together reach the features of `wanted` except those in
/// `covered`. Features that no input reaches are listed in the result. Fails if features cannot be
/// read, or for more than 2^32 inputs.
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

/// Inputs from which a set cover is chosen, numbered by size, then hash. Of equally good inputs the
/// first is chosen, so that the choice depends on the contents only.
pub trait Sets {
    /// Returns the number of inputs to choose from.
    fn len(&self) -> usize;

    /// Returns true if there are no inputs to choose from.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the input with the number `item`, in bytes.
    fn bytes(&self, item: usize) -> u64;

    /// Returns the slowness class (range of CPU time) of the input with the number `item`.
    fn slowness(&self, item: usize) -> Slowness;

    /// Replaces `into` by the features that the input with the number `item` reaches, ascending.
    /// Called several times per input, mostly in ascending order of inputs.
    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()>;
}

/// A set cover instance: columns are inputs with a cost, rows are the features to cover; both are
/// numbered from 0.
trait Columns {
    /// Returns the number of columns (inputs to choose from).
    fn columns(&self) -> usize;

    /// Returns the number of rows (features to cover).
    fn rows(&self) -> usize;

    /// Returns the cost of choosing a column (input), more than 0.
    fn weight(&self, column: usize) -> u64;

    /// Replaces `into` by the numbers of the rows (features) that a column (input) covers,
    /// ascending.
    fn read(&mut self, column: usize, into: &mut Vec<u32>) -> io::Result<()>;
}

/// Slowness class of an input: 0 for a CPU time below 10 ms ([`FAST`]), and one more per factor of
/// four. Classes reduce the influence of measurement noise; they should be computed from the
/// shortest time of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slowness(u8);

/// Upper limit of the CPU time of inputs in the fastest slowness class.
pub const FAST: Duration = Duration::from_millis(10);

/// Greatest weight (cost of keeping) of one input; the sum of a million such weights does not
/// overflow.
const HEAVIEST: u64 = 1 << 40;

/// Index of the slowest class of inputs: those with a CPU time of 44 minutes and more.
const SLOWEST: u8 = 10;

impl Slowness {
    /// Returns the slowness class of an input; `time`: the CPU time of one run.
    pub fn of(time: Duration) -> Slowness {
        let mut class = 0;
        let mut limit = FAST;
        while time >= limit && class < SLOWEST {
            class += 1;
            limit *= 4;
        }
        Slowness(class)
    }

    /// Returns the factor by which the slowness class of an input multiplies its weight (cost): 1,
    /// 4, 16 and so on.
    pub fn factor(self) -> u64 {
        1 << (2 * self.0)
    }
}

/// Returns the cost of keeping an input: (`bytes` + `price`) × slowness factor, from 1 to 2^40.
/// `price` is the fixed cost of one more file, in bytes.
pub fn weight(bytes: u64, slowness: Slowness, price: u64) -> u64 {
    let size = bytes.saturating_add(price);
    size.saturating_mul(slowness.factor()).clamp(1, HEAVIEST)
}

/// The rule for computing the weight (cost of keeping) of an input from its size and slowness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CostModel {
    /// The cost of keeping one more file, in bytes, added to the size of each input.
    price: u64,
    /// Whether slow inputs cost more than fast ones of the same size.
    timed: bool,
}

impl CostModel {
    fn weight(self, bytes: u64, slowness: Slowness) -> u64 {
        let slowness = if self.timed {
            slowness
        } else {
            Slowness::default()
        };
        weight(bytes, slowness, self.price)
    }
}

/// The required features that a single input reaches: those that only one of the chosen inputs
/// reaches, and those that only one of all inputs reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueFeatures {
    /// For each chosen input, the required features that no other chosen input reaches.
    pub private: Vec<Features>,
    /// Required features that only one of all inputs reaches, ascending, with the number of that
    /// input.
    pub sole: Vec<(Feature, usize)>,
}

/// Finds two kinds of unique features among `wanted` without `covered`: those that only one of all
/// inputs reaches, and those that only one of the inputs `chosen` (ascending) reaches.
pub fn unique_features(
    sets: &mut impl Sets,
    chosen: &[usize],
    wanted: &Features,
    covered: &Features,
) -> io::Result<UniqueFeatures> {
    let universe = Universe::new(wanted, covered);
    // For each row: the number of inputs that reach it (at most 2), and the last of them.
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
    let mut private = vec![Vec::new(); chosen.len()];
    let of_one = among.iter().enumerate();
    for (row, (_, position)) in of_one.filter(|(_, (holders, _))| *holders == 1) {
        private[*position].push(universe.feature(row));
    }
    let sole = all.iter().enumerate();
    let sole = sole.filter(|(_, (holders, _))| *holders == 1);
    let sole = sole.map(|(row, (_, item))| (universe.feature(row), *item));
    Ok(UniqueFeatures {
        private: private.into_iter().map(Features::from_unsorted).collect(),
        sole: sole.collect(),
    })
}
