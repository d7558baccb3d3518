//! Chains of repairs: to a candidate that does not build, changes are added (it is completed), or
//! changes are removed from it (it is thinned), after each failed build, until it builds.

use ddfuzz_delta::Config;

use super::Around;
use super::facts::{Facts, Name, config};

/// Maximum number of builds in the repair of one candidate that does not build.
const MOST_REPAIRS: usize = 12;
/// Maximum number of builds for the repair of one candidate, if the repair was extended to all
/// changes that mention one identifier (see [`LEAST_COMMON`]).
const MOST_EXTENDED: usize = 24;
/// Minimum number of changes, at the places that the compiler's messages name, that must mention an
/// identifier for a repair to be extended to all changes that mention it.
const LEAST_COMMON: usize = 8;
/// Minimum size of a set of changes that is remembered as needing each other because all its
/// changes mention the same identifier.
const LEAST_TIED: usize = 3;
/// Maximum size of a set of changes that is remembered as needing each other because all its
/// changes mention the same identifier; an identifier that more changes mention says nothing.
const MOST_TIED: usize = 24;
/// Minimum size of a set of changes that is remembered as needing each other because a repair,
/// extended to all changes with a common identifier, has added or removed them.
const LEAST_BUNDLE: usize = 8;

/// How a set of changes that does not build is repaired: by adding or by removing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Repair by adding changes that the set lacks and that changes of the set require.
    Complete,
    /// Repair by removing changes that require other changes, which the set lacks.
    Thin,
}

impl Repair {
    /// Returns the set of changes `set` after a repair: with the changes `moved` added
    /// ([`Complete`](Repair::Complete)) or removed ([`Thin`](Repair::Thin)).
    pub fn applied(self, set: &Config, moved: &Config) -> Config {
        match self {
            Repair::Complete => set.union(moved),
            Repair::Thin => set.minus(moved),
        }
    }

    /// Returns those of the changes `units` that this kind of repair can move for `set`, a set of
    /// changes that does not build: those that the set lacks, which can be added
    /// ([`Complete`](Repair::Complete)), or those that it has, which can be removed
    /// ([`Thin`](Repair::Thin)).
    pub fn movable(self, units: &Config, set: &Config) -> Config {
        match self {
            Repair::Complete => units.minus(set),
            Repair::Thin => units.intersection(set),
        }
    }
}

/// The repairs of one candidate that does not build, one after each failed build; they all add
/// changes, or they all remove changes.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Whether the repairs of this chain add changes (`Complete`) or remove changes (`Thin`).
    pub repair: Repair,
    /// Number of builds so far of the candidate that is repaired and of its repaired versions.
    builds: usize,
    /// The changes at all places that the messages of this chain's failed builds have named, both
    /// those that the built version had and those that it lacked.
    by_place: Config,
    /// The changes that repairs by place have added or removed so far, as
    /// [`by_place`](Chain::by_place) returned them.
    moved: Config,
    /// Sets of changes that probably need each other: all changes of a set mention the same
    /// identifier, which a failed build named although no definition of it was missing.
    ties: Vec<Config>,
    /// The identifiers for which repairs were extended to all changes that mention them.
    common: Vec<Name>,
}

impl Chain {
    /// Creates the state of the repairs of one candidate, before the first: `repair` says whether
    /// they will add or remove changes.
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

    /// Counts one more build of the candidate; returns false if the chain of repairs has had too
    /// many builds and should be given up.
    pub fn goes_on(&mut self) -> bool {
        let most = match self.common.is_empty() {
            true => MOST_REPAIRS,
            false => MOST_EXTENDED,
        };
        self.builds += 1;
        self.builds <= most
    }

    /// Chooses the changes for the next repair of a candidate, among `pool`, the changes that the
    /// repair may add or remove. `around` has the changes at the places in the sources that the
    /// compiler's messages name. Returns two sets, which the caller may use both in one repair: the
    /// changes at these places; and all changes that mention one identifier that many changes at
    /// the places named so far have in common, such as a type that is rewritten everywhere. The
    /// second set is empty if there is no such identifier.
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

    /// Notes sets of changes that probably need each other, such as those of a function and of its
    /// callers when the function's parameters change. `names` are the identifiers that a failed
    /// build of `set` has named. For each identifier whose definition is in `set`, the changes of
    /// the smallest failing set `best` that mention it are noted as one set.
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

    /// Returns sets of changes that probably need each other, after repairs have led to the set
    /// `set`, which builds. They are the noted sets of changes with a common identifier of which
    /// `set` has all or none; and, if a repair was extended to an identifier that many changes
    /// mention, all changes that the repairs have moved.
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

/// Adds the set of changes `bundle` to the disjoint sets `bundles`, and returns them all. Sets that
/// overlap `bundle` are joined with it into one set.
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
