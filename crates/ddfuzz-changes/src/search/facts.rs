//! What a search knows of the changes without running anything: the groups that each change belongs
//! to, the identifiers that it mentions and defines, and the changes that it probably requires.

use std::collections::{BTreeMap, HashMap, HashSet};

use ddfuzz_delta::Config;

/// Index of an identifier in [`Facts`].
pub type Name = usize;

/// The groups and the identifiers of one change, as its file and text show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// Names of the groups that the change belongs to, from coarse to fine (directory, file, commit
    /// if known, function). Changes with the same names down to a level are one group of that
    /// level.
    pub groups: Vec<String>,
    /// Identifiers in the lines that the change adds.
    pub adds: Vec<String>,
    /// Identifiers in the lines that the change removes.
    pub removes: Vec<String>,
    /// Identifiers in the added lines that the change seems to define.
    pub defines: Vec<String>,
    /// Identifiers in the removed lines whose definition the change seems to remove.
    pub undefines: Vec<String>,
}

/// What is known of all changes between two versions before any of them is tested.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of changes between the two versions.
    units: usize,
    /// For each level from coarse to fine, the index of the group of each change.
    levels: Vec<Vec<usize>>,
    names: HashMap<String, Name>,
    /// For each identifier, the changes that add or remove a line with it.
    mentions: Vec<Vec<usize>>,
    /// For each identifier, the changes that seem to define it.
    definers: Vec<Vec<usize>>,
    /// For each change, the identifiers in the lines that it adds or removes.
    words: Vec<HashSet<Name>>,
    /// Pairs of changes of which the first probably requires the second.
    requires: Vec<(usize, usize)>,
    /// Changes of files that a build probably does not read.
    unread: Config,
}

/// Largest number of changes that may mention an identifier that is to show which of them requires
/// which: one that more changes mention shows nothing.
const MOST_USERS: usize = 64;
/// A group of more changes than this is not ordered by identifiers.
const MOST_CHAINED: usize = 128;

impl Facts {
    /// Gathers what is known of the changes `units`. `is_old` says whether an identifier occurs in
    /// the old version, and `is_new` whether it occurs in the new one; both may be wrong, because
    /// they only decide what is tried first.
    pub fn of(
        units: &[UnitFacts],
        is_old: impl Fn(&str) -> bool,
        is_new: impl Fn(&str) -> bool,
    ) -> Facts {
        let mut facts = Facts {
            units: units.len(),
            levels: levels(units),
            names: HashMap::new(),
            mentions: Vec::new(),
            definers: Vec::new(),
            words: vec![HashSet::new(); units.len()],
            requires: Vec::new(),
            unread: Config::empty(),
        };
        for (unit, one) in units.iter().enumerate() {
            for word in one.adds.iter().chain(&one.removes) {
                let name = facts.intern(word);
                if facts.words[unit].insert(name) {
                    facts.mentions[name].push(unit);
                }
            }
            for word in &one.defines {
                let name = facts.intern(word);
                facts.definers[name].push(unit);
            }
        }
        facts.require_definers(units, is_old);
        facts.require_removals(units, is_new);
        facts
    }

    /// Sets the changes of files that a build probably does not read; `unread` ascends.
    pub fn with_unread(self, unread: &[usize]) -> Facts {
        Facts {
            unread: config(unread),
            ..self
        }
    }

    /// Returns the changes of files that a build probably does not read.
    pub fn unread(&self) -> &Config {
        &self.unread
    }

    /// Returns the number of changes.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Returns the number of levels of groups.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the groups of a level, 0 for the coarsest, into which the changes `kept` fall, in
    /// the order of their first changes.
    pub fn groups(&self, level: usize, kept: &Config) -> Vec<Config> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for unit in kept.ranges().flatten() {
            found
                .entry(self.levels[level][unit])
                .or_default()
                .push(unit);
        }
        found.into_values().map(|units| config(&units)).collect()
    }

    /// Returns the changes `kept` in the order in which a search divides them: by their finest
    /// groups, and inside a group so that changes with common identifiers are neighbors (ESEC 1999,
    /// section 8).
    pub fn in_order(&self, kept: &Config) -> Vec<usize> {
        let groups = match self.levels().checked_sub(1) {
            Some(finest) => self.groups(finest, kept),
            None => vec![kept.clone()],
        };
        groups
            .iter()
            .flat_map(|group| self.chained(group.ranges().flatten().collect()))
            .collect()
    }

    /// Orders changes so that each is followed by the one with which it has the most rare
    /// identifiers in common: those that at most `MOST_USERS` changes mention. Fewer than three or
    /// more than `MOST_CHAINED` changes stay in their order.
    fn chained(&self, mut left: Vec<usize>) -> Vec<usize> {
        if !(3..=MOST_CHAINED).contains(&left.len()) {
            return left;
        }
        let mut chain = vec![left.remove(0)];
        while let Some(last) = chain.last().filter(|_| !left.is_empty()) {
            let common = |unit: &usize| {
                let is_rare = |name: &&Name| self.mentions[**name].len() <= MOST_USERS;
                let names = self.words[*unit].intersection(&self.words[*last]);
                names.filter(is_rare).count()
            };
            // Of several, the first.
            let next = (0..left.len()).rev().max_by_key(|at| common(&left[*at]));
            chain.push(left.remove(next.unwrap_or(0)));
        }
        chain
    }

    /// Returns the index of an identifier that some change mentions; `None` if none does.
    pub fn name(&self, word: &str) -> Option<Name> {
        self.names.get(word).copied()
    }

    /// Returns the changes that mention one of the identifiers.
    pub fn mentioning(&self, names: &[Name]) -> Config {
        config(&sorted(names.iter().flat_map(|name| &self.mentions[*name])))
    }

    /// Of the identifiers for which `is_asked` holds, returns the one that most of the changes
    /// `units` mention, and how many of them do; `None` if there is none.
    pub fn most_common(
        &self,
        units: &Config,
        is_asked: impl Fn(Name) -> bool,
    ) -> Option<(Name, usize)> {
        let mut counts: BTreeMap<Name, usize> = BTreeMap::new();
        let words = units.ranges().flatten().flat_map(|unit| &self.words[unit]);
        for name in words {
            *counts.entry(*name).or_default() += 1;
        }
        let mut counts: Vec<(Name, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.into_iter().find(|(name, _)| is_asked(*name))
    }

    /// Returns the changes that define one of the identifiers.
    pub fn defining(&self, names: &[Name]) -> Config {
        config(&sorted(names.iter().flat_map(|name| &self.definers[*name])))
    }

    /// Returns those of the identifiers that one of the changes `units` mentions.
    pub fn shared(&self, names: &[Name], units: &Config) -> Vec<Name> {
        let is_shared = |name: &&Name| {
            let users = &self.mentions[**name];
            users.iter().any(|unit| units.contains(*unit))
        };
        names.iter().filter(is_shared).copied().collect()
    }

    /// Returns pairs of changes of which the first probably requires the second: it uses an
    /// identifier that only the second defines, or it removes a definition of which the second
    /// removes a use.
    pub fn requires(&self) -> &[(usize, usize)] {
        &self.requires
    }

    fn intern(&mut self, word: &str) -> Name {
        if let Some(name) = self.names.get(word) {
            return *name;
        }
        let name = self.names.len();
        self.names.insert(word.to_owned(), name);
        self.mentions.push(Vec::new());
        self.definers.push(Vec::new());
        name
    }

    /// Adds to `requires`: a change that uses an identifier that the old version does not have
    /// probably requires the only change that defines it.
    fn require_definers(&mut self, units: &[UnitFacts], is_old: impl Fn(&str) -> bool) {
        for (unit, one) in units.iter().enumerate() {
            for word in &one.adds {
                let Some([definer]) = self.names.get(word).map(|name| &self.definers[*name][..])
                else {
                    continue;
                };
                if *definer != unit && !is_old(word) {
                    self.requires.push((unit, *definer));
                }
            }
        }
    }

    /// Adds to `requires`: a change that removes a definition which the new version does not have
    /// probably requires each change that mentions the identifier, as these remove its uses.
    fn require_removals(&mut self, units: &[UnitFacts], is_new: impl Fn(&str) -> bool) {
        for (unit, one) in units.iter().enumerate() {
            for word in one.undefines.iter().filter(|word| !is_new(word)) {
                let Some(users) = self.names.get(word).map(|name| &self.mentions[*name]) else {
                    continue;
                };
                if users.len() <= MOST_USERS {
                    let others = users.iter().filter(|user| **user != unit);
                    self.requires.extend(others.map(|user| (unit, *user)));
                }
            }
        }
    }
}

/// Numbers the groups of each level in the order of their first changes. Returns for each level the
/// number of the group of each change.
fn levels(units: &[UnitFacts]) -> Vec<Vec<usize>> {
    let depth = units.iter().map(|unit| unit.groups.len()).max();
    let level = |level: usize| {
        let mut numbers = HashMap::new();
        let number = |unit: &UnitFacts| {
            let names = &unit.groups[..unit.groups.len().min(level + 1)];
            let next = numbers.len();
            *numbers.entry(names.to_vec()).or_insert(next)
        };
        units.iter().map(number).collect()
    };
    (0..depth.unwrap_or(0)).map(level).collect()
}

fn sorted<'a>(units: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut units: Vec<usize> = units.copied().collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Builds the configuration that keeps the changes `units`, which ascend.
pub fn config(units: &[usize]) -> Config {
    let ranges = units.iter().map(|unit| *unit..unit + 1);
    Config::from_ranges(ranges).unwrap_or_else(Config::empty)
}
