//! Minimizes a set of changes: by groups from coarse to fine. Sets that do not build are repaired
//! with the failure resolution loop of ESEC 1999, section 8, in both directions: by adding changes
//! and by removing changes.

use std::collections::HashMap;

use ddfuzz_delta::{Config, ConfigId, Outcome, Search, Subset};

use super::facts::{Facts, Name, config};
use super::repair::{Chain, Repair, joined};
use super::{Probed, Prober};

/// Maximum number of changes that cannot be left out one by one (the version without one of them
/// does not build or cannot be tested) for which the search also tries to leave out each pair of
/// them.
const MOST_TIED: usize = 6;
/// Maximum number of changes for which the search first tries, by halving the set, whether a single
/// change causes the failure.
const MOST_HALVED: usize = 40;

/// The result of a minimization: a set of changes that fails and from which no single change can be
/// left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    /// The changes in the minimal failing set that the minimization has found.
    pub kept: Config,
    /// Number of changes in the minimal set that cannot be left out because the version with all
    /// others does not build.
    pub unbuildable: usize,
    /// Relations that failed builds have shown: pairs of changes, in each of which the first
    /// requires the second.
    pub learned: Vec<(usize, usize)>,
}

/// Minimizes the set of all changes, which fails while the empty set passes: returns a set that
/// fails and from which no single change can be left out. If the budget of the prober [is used
/// up](Prober::is_spent), the set is only the smallest found so far.
///
/// The search [`Subset`] first deletes groups of changes, from large to small (directory, file,
/// commit, function: the levels of `facts`), and then single changes. A candidate that does not
/// build is repaired: either the removed changes that the compiler's messages name are added
/// (*completed*), or the changes that mention the same identifiers as removed ones are removed, too
/// (*thinned*).
///
/// # Errors
/// Those of `prober`.
pub fn minimize<P: Prober>(facts: &Facts, prober: &mut P) -> Result<Minimal, P::Error> {
    let mut search = Nested::new(facts, prober);
    if !search.halve()? {
        search.leave_out_unread()?;
        for level in 0..facts.levels() {
            let groups = facts.groups(level, &search.best);
            if groups.len() > 1 && groups.len() < search.best.len() {
                search.round(&groups, "group")?;
            }
        }
    }
    search.by_single_changes()
}

struct Nested<'a, P> {
    facts: &'a Facts,
    prober: &'a mut P,
    /// The smallest failing set of changes so far; at first all changes.
    best: Config,
    learned: Vec<(usize, usize)>,
    /// Disjoint sets of changes that probably need each other, because chains of repairs have moved
    /// them together. Repairs add or remove such a set (bundle) as a whole.
    bundles: Vec<Config>,
}

impl<'a, P: Prober> Nested<'a, P> {
    fn new(facts: &'a Facts, prober: &'a mut P) -> Nested<'a, P> {
        Nested {
            facts,
            prober,
            best: Config::all(facts.units()),
            learned: Vec::new(),
            bundles: Vec::new(),
        }
    }

    /// Searches for a single change that causes the failure, if there are few changes: tests one
    /// half of them, and continues in this half if it fails, in the other half if it passes.
    /// Returns true if a single change was found that fails by itself; also updates the smallest
    /// failing set.
    fn halve(&mut self) -> Result<bool, P::Error> {
        if self.best.len() > MOST_HALVED {
            return Ok(false);
        }
        let read = self.best.minus(self.facts.unread());
        let (mut rest, mut fails) = match read.is_empty() || read == self.best {
            true => (self.best.clone(), true),
            false => (read, false),
        };
        while rest.len() > 1 {
            let half = self.closed(&rest.part(2, 0), &rest, Repair::Complete);
            if half.len() == rest.len() {
                break;
            }
            let Some((half, outcome)) = self.probe_half(half, &rest)? else {
                return Ok(false);
            };
            match outcome {
                Outcome::Fail if half.len() < rest.len() => (rest, fails) = (half, true),
                Outcome::Fail => {
                    self.best = half;
                    return Ok(false);
                }
                Outcome::Pass => (rest, fails) = (rest.minus(&half), false),
                Outcome::Unresolved => return Ok(false),
            }
            if fails {
                self.best = rest.clone();
            }
        }
        if !fails && self.prober.probe(&rest, "halve", &[])?.fails() {
            self.best = rest;
        }
        Ok(self.best.len() == 1)
    }

    /// Tests `half`, one half of the changes `rest`. While the set does not build, adds the changes
    /// to which the compiler's messages point, and tests again. Returns the first set that builds,
    /// with its outcome. Returns `None` if no change is left to add, or the set would become as
    /// large as the smallest failing one that is known.
    fn probe_half(
        &mut self,
        half: Config,
        rest: &Config,
    ) -> Result<Option<(Config, Outcome)>, P::Error> {
        let mut next = Some(half);
        while let Some(half) = next.filter(|half| half.len() < self.best.len()) {
            let ahead = [half.part(2, 0), rest.minus(&half).part(2, 0)];
            let probed = self.prober.probe(&half, "halve", &ahead)?;
            if let Some(outcome) = probed.outcome {
                return Ok(Some((half, outcome)));
            }
            let mut chain = Chain::new(Repair::Complete);
            let repaired = self.repaired(&half, &probed, &mut chain);
            next = repaired.filter(|set| set.len() > half.len());
        }
        Ok(None)
    }

    /// Tests the smallest failing set without the changes of files that a build probably does not
    /// read (documents and the like), and leaves these changes out if the set without them still
    /// fails.
    fn leave_out_unread(&mut self) -> Result<(), P::Error> {
        let rest = self.best.minus(self.facts.unread());
        if rest != self.best && !rest.is_empty() && self.prober.probe(&rest, "unread", &[])?.fails()
        {
            self.best = rest;
        }
        Ok(())
    }

    /// Finishes the minimization: leaves single changes out of the smallest failing set until it
    /// passes or cannot be tested whichever single change is left out, or the budget is used up;
    /// returns the minimal set.
    fn by_single_changes(mut self) -> Result<Minimal, P::Error> {
        loop {
            loop {
                let before = self.best.len();
                let units = self.facts.in_order(&self.best);
                let units: Vec<Config> = units.iter().map(|unit| config(&[*unit])).collect();
                if units.len() > 1 {
                    self.round(&units, "hunk")?;
                }
                if self.best.len() == before {
                    break;
                }
            }
            let (unresolved, unbuildable, is_smaller) = self.prove()?;
            if is_smaller {
                continue;
            }
            match self.without_ties(&unresolved)? {
                Some(smaller) => self.best = smaller,
                None => {
                    return Ok(Minimal {
                        kept: self.best,
                        unbuildable,
                        learned: self.learned,
                    });
                }
            }
        }
    }

    /// Tests the removal of each single change from the smallest failing set, until the budget is
    /// used up, and leaves out the changes without which the set still fails. Returns the changes
    /// that were not left out because the set without them does not build or is UNRESOLVED, which
    /// proves nothing; the number of those without which it does not build; and whether any change
    /// was left out.
    fn prove(&mut self) -> Result<(Vec<usize>, usize, bool), P::Error> {
        let before = self.best.len();
        let (mut unresolved, mut unbuildable) = (Vec::new(), 0);
        for unit in self.best.clone().ranges().flatten() {
            if self.prober.is_spent() {
                break;
            }
            let without = self.best.minus(&config(&[unit]));
            let probed = self.prober.probe(&without, "proof", &[])?;
            match probed.outcome {
                _ if probed.fails() => self.best = without,
                Some(Outcome::Pass) => {}
                outcome => {
                    unresolved.push(unit);
                    unbuildable += usize::from(outcome.is_none());
                }
            }
        }
        Ok((unresolved, unbuildable, self.best.len() < before))
    }

    /// Tests the removal of several changes at once from the smallest failing set, because some may
    /// need each other. These are tried: all changes in `unresolved` (the set cannot be tested if
    /// one of them is left out), each pair of these, and each bundle (changes that repairs have
    /// moved together). Returns the first smaller set that fails; `None` if none does.
    fn without_ties(&mut self, unresolved: &[usize]) -> Result<Option<Config>, P::Error> {
        let mut ties: Vec<Vec<usize>> = Vec::new();
        if unresolved.len() > 1 {
            ties.push(unresolved.to_vec());
        }
        if (3..=MOST_TIED).contains(&unresolved.len()) {
            let is_one = |one: usize, other: usize| {
                let mut bundles = self.bundles.iter();
                bundles.any(|bundle| bundle.contains(one) && bundle.contains(other))
            };
            for (at, one) in unresolved.iter().enumerate() {
                let others = unresolved[at + 1..].iter();
                let others = others.filter(|other| !is_one(*one, **other));
                ties.extend(others.map(|other| vec![*one, *other]));
            }
        }
        let bundles = self.bundles.iter();
        ties.extend(bundles.map(|bundle| bundle.ranges().flatten().collect()));
        for tie in ties {
            if self.prober.is_spent() {
                break;
            }
            let without = self.best.minus(&config(&tie));
            if without.is_empty() || without == self.best {
                continue;
            }
            if self.prober.probe(&without, "tie", &[])?.fails() {
                return Ok(Some(without));
            }
        }
        Ok(None)
    }

    /// Deletes as many of `groups` as possible from the smallest failing set; `groups` are disjoint
    /// sets of changes that together make up this set. `rule` names this step of the search in the
    /// log.
    fn round(&mut self, groups: &[Config], rule: &'static str) -> Result<(), P::Error> {
        let mut machine = Subset::of_units(groups.len());
        // Changes of deleted groups that a candidate needed to build.
        let mut pinned = Config::empty();
        let whole =
            |kept: &Config| Config::union_of(kept.ranges().flatten().map(|group| &groups[group]));
        while let Some(asked) = machine.next().filter(|_| !self.prober.is_spent()) {
            let Some(kept) = asked.edit.apply(machine.best()) else {
                break;
            };
            let candidate = whole(&kept).union(&pinned).intersection(&self.best);
            if candidate == self.best {
                machine.tell(Outcome::Fail);
                continue;
            }
            let ahead = self.ahead(&machine, |kept| whole(kept).union(&pinned));
            match self.attempt(&candidate, rule, &ahead)? {
                Some(failing) => {
                    pinned = pinned
                        .union(&failing.minus(&candidate))
                        .intersection(&failing);
                    self.best = failing;
                    machine.tell(Outcome::Fail);
                }
                None => machine.tell(Outcome::Pass),
            }
        }
        Ok(())
    }

    /// Returns the sets of changes that the search `machine` will test next if all of these tests
    /// pass; at most as many as workers can test ahead. `whole` converts a choice of groups, given
    /// by their indices, to the set of their changes.
    fn ahead(&self, machine: &Subset, whole: impl Fn(&Config) -> Config) -> Vec<Config> {
        let mut found = Vec::new();
        if self.prober.look_ahead() == 0 {
            return found;
        }
        let mut machine = machine.clone();
        for _ in 0..self.prober.look_ahead() {
            machine.tell(Outcome::Pass);
            let Some(kept) = machine
                .next()
                .and_then(|asked| asked.edit.apply(machine.best()))
            else {
                break;
            };
            found.push(whole(&kept).intersection(&self.best));
        }
        found
    }

    /// Tests `candidate`, a part of the smallest failing set of changes. Known relations between
    /// changes are applied first: either changes that the candidate needs are added, or changes of
    /// the candidate that need removed ones are removed. As long as the resulting set does not
    /// build, it is repaired. Returns the first tested set that fails, which is smaller than the
    /// smallest failing one; it may have changes that the candidate lacks. `None` if no tested set
    /// fails.
    fn attempt(
        &mut self,
        candidate: &Config,
        rule: &'static str,
        ahead: &[Config],
    ) -> Result<Option<Config>, P::Error> {
        let removed = self.best.len() - candidate.len();
        let order = match removed <= candidate.len() {
            true => [Repair::Thin, Repair::Complete],
            false => [Repair::Complete, Repair::Thin],
        };
        let mut tried: HashMap<ConfigId, Probed> = HashMap::new();
        for repair in order {
            let begin = self.closed(candidate, &self.best, repair);
            if begin != *candidate {
                self.note_prediction(candidate)?;
            }
            let mut chain = Chain::new(repair);
            let mut next = Some(begin);
            while let Some(set) = next
                .take()
                .filter(|set| *set != self.best && !set.is_empty())
            {
                if !chain.goes_on() {
                    break;
                }
                let probed = match tried.get(&set.id()) {
                    Some(known) => known.clone(),
                    None => self.prober.probe(&set, rule, ahead)?,
                };
                tried.insert(set.id(), probed.clone());
                if probed.outcome.is_some() {
                    for bundle in chain.bundles(&set) {
                        self.bundles = joined(&self.bundles, bundle);
                    }
                }
                match probed.outcome {
                    Some(Outcome::Fail) => return Ok(Some(set)),
                    // Without a repair, the test has an answer.
                    Some(_) if set == *candidate => return Ok(None),
                    Some(_) => {}
                    None => next = self.repaired(&set, &probed, &mut chain),
                }
            }
        }
        // What is known before any build only decides what is tried first.
        if tried.is_empty()
            && !candidate.is_empty()
            && self.prober.probe(candidate, rule, ahead)?.fails()
        {
            return Ok(Some(candidate.clone()));
        }
        Ok(None)
    }

    /// Records in the log that a candidate does not build, if it lacks a change that another of its
    /// changes requires, as an earlier build has shown.
    fn note_prediction(&mut self, candidate: &Config) -> Result<(), P::Error> {
        let lacks = |(unit, needed): &(usize, usize)| {
            candidate.contains(*unit) && !candidate.contains(*needed) && self.best.contains(*needed)
        };
        match self.learned.iter().any(lacks) {
            true => self.prober.predict(candidate),
            false => Ok(()),
        }
    }

    /// Returns a candidate with changes added (`Complete`) or removed (`Thin`) until no relation is
    /// violated: neither a change that requires another one, by the texts of the changes or by a
    /// failed build, nor a bundle of changes that need each other. Required changes outside of
    /// `within` are ignored.
    fn closed(&self, candidate: &Config, within: &Config, repair: Repair) -> Config {
        let mut set = candidate.clone();
        loop {
            let pairs = self.facts.requires().iter().chain(&self.learned);
            let broken = pairs.filter(|(unit, needed)| {
                within.contains(*needed) && set.contains(*unit) && !set.contains(*needed)
            });
            let mut units: Vec<usize> = broken
                .map(|(unit, needed)| match repair {
                    Repair::Complete => *needed,
                    Repair::Thin => *unit,
                })
                .collect();
            for bundle in &self.bundles {
                let bundle = bundle.intersection(within);
                let has = bundle.intersection(&set).len();
                if has > 0 && has < bundle.len() {
                    units.extend(repair.movable(&bundle, &set).ranges().flatten());
                }
            }
            units.sort_unstable();
            units.dedup();
            if units.is_empty() {
                return set;
            }
            set = repair.applied(&set, &config(&units));
        }
    }

    /// Repairs `set`, a set of changes that did not build, and returns the repaired set; `None` if
    /// the repair changes nothing. `chain` says whether changes are added or removed. They are the
    /// changes that mention the identifiers in the compiler's messages or, if there are none, the
    /// changes at the source lines in the messages.
    fn repaired(&mut self, set: &Config, probed: &Probed, chain: &mut Chain) -> Option<Config> {
        let names: Vec<Name> = (probed.named.iter())
            .filter_map(|word| self.facts.name(word))
            .collect();
        let removed = self.best.minus(set);
        let missing = self.missing(&removed, &names);
        let by_name = match chain.repair {
            Repair::Complete => missing.clone(),
            Repair::Thin => {
                let shared = self.facts.shared(&names, &removed);
                self.facts.mentioning(&shared).intersection(set)
            }
        };
        self.learn(set, &names, &missing);
        chain.note_ties(self.facts, &names, set, &self.best);
        let pool = match chain.repair {
            Repair::Complete => &removed,
            Repair::Thin => set,
        };
        let [at_places, alike] = chain.by_place(self.facts, &probed.around, pool);
        let moved = match by_name.is_empty() {
            false => by_name.union(&alike),
            true => at_places.union(&alike),
        };
        let next = chain.repair.applied(set, &moved);
        let next = self.closed(&next, &self.best, chain.repair);
        (next != *set).then_some(next)
    }

    /// Returns those of the changes `removed` that define one of the identifiers `names`; if no
    /// change defines one, those that mention one.
    fn missing(&self, removed: &Config, names: &[Name]) -> Config {
        let defining = self.facts.defining(names).intersection(removed);
        if !defining.is_empty() {
            return defining;
        }
        self.facts.mentioning(names).intersection(removed)
    }

    /// Learns from a failed build of the set of changes `set` that one change requires another. The
    /// compiler's messages name the identifiers `names`; `found` are the changes, among those that
    /// the set lacks, that define or mention them. If exactly one change of the set mentions them,
    /// and `found` is a single change, records that the former requires the latter.
    fn learn(&mut self, set: &Config, names: &[Name], found: &Config) {
        let users = self.facts.mentioning(names).intersection(set);
        if let (Some(user), Some(needed), 1, 1) =
            (users.unit_at(0), found.unit_at(0), users.len(), found.len())
            && !self.learned.contains(&(user, needed))
        {
            self.learned.push((user, needed));
            self.prober.learn(user, needed);
        }
    }
}
