//! Chains of repairs: one candidate that does not build is completed or thinned, build by build,
//! until it does.

use ddfuzz_delta::Config;

use super::Around;
use super::facts::{Facts, Name, config};

/// Largest number of builds that one candidate may take until it builds.
const MOST_REPAIRS: usize = 12;
/// Largest number of builds for a candidate of which a repair was extended to all changes with the
/// same identifier.
const MOST_EXTENDED: usize = 24;
/// A repair is extended to all changes with the same identifier if at least this many changes at
/// the places of its chain mention that identifier.
const LEAST_COMMON: usize = 8;
/// Smallest number of changes that are remembered as needing each other because they mention the
/// same identifier.
const LEAST_TIED: usize = 3;
/// Largest number of changes that are remembered as needing each other because they mention the
/// same identifier.
const MOST_TIED: usize = 24;
/// Smallest number of changes moved in an extended chain that are remembered as needing each other.
const LEAST_BUNDLE: usize = 8;

/// How a candidate that does not build is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// By adding changes that it requires.
    Complete,
    /// By removing changes that require removed ones.
    Thin,
}

impl Repair {
    /// Returns the set with the changes `moved` added (complete) or removed (thin).
    pub fn applied(self, set: &Config, moved: &Config) -> Config {
        match self {
            Repair::Complete => set.union(moved),
            Repair::Thin => set.minus(moved),
        }
    }

    /// Returns those of the changes `units` that can be added to the set (complete) or removed from
    /// it (thin).
    pub fn movable(self, units: &Config, set: &Config) -> Config {
        match self {
            Repair::Complete => units.minus(set),
            Repair::Thin => units.intersection(set),
        }
    }
}

/// The repairs of one candidate, build after build, all in the same direction.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Whether the repairs of the chain add or remove changes.
    pub repair: Repair,
    /// Number of builds of the chain so far.
    builds: usize,
    /// The changes that are, or are missing, at the places that messages of the chain have named.
    by_place: Config,
    /// The changes that [`by_place`](Chain::by_place) has returned.
    moved: Config,
    /// Sets of changes that mention the same identifier, which a build has named though no
    /// definition of it was missing.
    ties: Vec<Config>,
    /// The identifiers by which steps were extended.
    common: Vec<Name>,
}

impl Chain {
    /// Makes a chain without steps.
    pub fn new(repair: Repair) -> Chain {
        Chain {
            repair,
            builds: 0,
            moved: Config::empty(),
            ties: Vec::new(),
            by_place: Config::empty(),
            common: Vec::new(),
        }
    }

    /// Counts a build of the chain; returns false if the chain has become too long for it.
    pub fn goes_on(&mut self) -> bool {
        let most = match self.common.is_empty() {
            true => MOST_REPAIRS,
            false => MOST_EXTENDED,
        };
        self.builds += 1;
        self.builds <= most
    }

    /// Returns the changes of `pool` to move because of the places that messages name: first those
    /// at the places, and second, if many changes at the places of the chain mention the same
    /// identifier, all of `pool` that mention it. A type that is rewritten everywhere leads to
    /// messages that name a place each, and not what the places have in common.
    pub fn by_place(&mut self, facts: &Facts, around: &Around, pool: &Config) -> [Config; 2] {
        let units = match self.repair {
            Repair::Complete => config(&around.near),
            Repair::Thin => config(&around.within),
        };
        let there = config(&around.missing).union(&config(&around.within));
        self.by_place = self.by_place.union(&there);
        let units = units.intersection(pool);
        let is_asked = |name: Name| {
            !self.common.contains(&name) && !facts.mentioning(&[name]).intersection(pool).is_empty()
        };
        let found = facts.most_common(&self.by_place, is_asked);
        let alike = match found.filter(|(_, count)| *count >= LEAST_COMMON) {
            Some((name, _)) => {
                self.common.push(name);
                facts.mentioning(&[name]).intersection(pool)
            }
            None => Config::empty(),
        };
        self.moved = self.moved.union(&units).union(&alike);
        [units, alike]
    }

    /// Notes the changes of `best` that mention one of the `names`, which a build of `set` has
    /// named though no definition of it is missing: probably these changes need each other, as a
    /// function whose parameters change and its callers do.
    pub fn note_ties(&mut self, facts: &Facts, names: &[Name], set: &Config, best: &Config) {
        for name in names {
            let users = facts.mentioning(&[*name]).intersection(best);
            let is_tie = (LEAST_TIED..=MOST_TIED).contains(&users.len())
                && facts
                    .defining(&[*name])
                    .intersection(best)
                    .minus(set)
                    .is_empty()
                && !self.repair.movable(&users, set).is_empty();
            if is_tie && !self.ties.contains(&users) {
                self.ties.push(users);
            }
        }
    }

    /// Returns sets of changes that probably need each other, where `set`, at the end of the chain,
    /// could be built: the noted ones of which `set` has all changes or none, and if a step was
    /// extended, the changes at the places of the chain.
    pub fn bundles(&self, set: &Config) -> Vec<Config> {
        let is_whole = |tie: &&Config| {
            let has = tie.intersection(set).len();
            has == 0 || has == tie.len()
        };
        let mut all: Vec<Config> = self.ties.iter().filter(is_whole).cloned().collect();
        if !self.common.is_empty() && self.moved.len() >= LEAST_BUNDLE {
            all.push(self.moved.clone());
        }
        all
    }
}

/// Adds a bundle to disjoint ones, and returns them all. The bundles that it overlaps become one
/// with it.
pub fn joined(bundles: &[Config], mut bundle: Config) -> Vec<Config> {
    let mut all = Vec::new();
    for known in bundles {
        match known.intersection(&bundle).is_empty() {
            true => all.push(known.clone()),
            false => bundle = bundle.union(known),
        }
    }
    all.push(bundle);
    all
}
