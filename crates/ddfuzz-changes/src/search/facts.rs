//! What a search knows of the changes without running anything: the groups that each change belongs
//! to, the identifiers that it mentions and defines, and the other changes that it probably
//! requires.

use std::collections::{BTreeMap, HashMap, HashSet};

use ddfuzz_delta::Config;

/// Number by which [`Facts`] refers to an identifier of the program, from 0.
pub type Name = usize;

/// Facts from the file and the text of one change: the groups that the change belongs to, and the
/// identifiers in its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// Names of the groups to which the change belongs, from coarse to fine: directory, file,
    /// commit (if known), function. Changes whose names are equal down to a level form one group of
    /// that level, which the search keeps or removes as a whole.
    pub groups: Vec<String>,
    /// Identifiers that occur in the lines that the change adds.
    pub adds: Vec<String>,
    /// Identifiers that occur in the lines that the change removes.
    pub removes: Vec<String>,
    /// Identifiers that seem to be defined in the lines that the change adds.
    pub defines: Vec<String>,
    /// Identifiers that seem to be defined in the lines that the change removes.
    pub undefines: Vec<String>,
}

/// What is known of all changes between two versions before any is tested: their groups, their
/// identifiers, and which change probably requires which other one. The search uses this to divide
/// and repair sets of changes.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of all changes between the old and the new version of the program.
    units: usize,
    /// The groups of changes, by level from coarse to fine: for each level and each change, the
    /// number of the group to which the change belongs.
    levels: Vec<Vec<usize>>,
    names: HashMap<String, Name>,
    /// For each identifier, by its number, the changes that add or remove a line with it, in
    /// ascending order.
    mentions: Vec<Vec<usize>>,
    /// For each identifier, by its number, the changes that seem to define it, in ascending order.
    definers: Vec<Vec<usize>>,
    /// For each change, the numbers of the identifiers in the lines that it adds or removes.
    words: Vec<HashSet<Name>>,
    /// Pairs of changes: the first of a pair probably requires the second, judging by their texts.
    requires: Vec<(usize, usize)>,
    /// The changes of files that a build probably does not read, such as documents; a search tries
    /// early to leave them out.
    unread: Config,
}

/// Maximum number of changes that mention an identifier for which the identifier counts as a
/// relation between them; one that more changes mention is too common.
const MOST_USERS: usize = 64;
/// Maximum number of changes in a group for which they are ordered by common identifiers; the
/// changes of a larger group keep their order.
const MOST_CHAINED: usize = 128;

impl Facts {
    /// Gathers what the search knows of all changes before it tests any: which groups and
    /// identifiers they have, and which change probably requires which other one. `units` are the
    /// facts about the single changes. `is_old` and `is_new` return whether an identifier occurs in
    /// the old and in the new version; they may be wrong, because they only decide what is tried
    /// first.
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

    /// Returns these facts, completed by the changes in files that a build probably does not read:
    /// their indices `unread`, in ascending order.
    pub fn with_unread(self, unread: &[usize]) -> Facts {
        Facts {
            unread: config(unread),
            ..self
        }
    }

    /// Returns the changes of files that a build probably does not read, such as documents.
    pub fn unread(&self) -> &Config {
        &self.unread
    }

    /// Returns the number of all changes between the old and the new version of the program.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Returns the number of levels on which changes are grouped (directory, file, commit,
    /// function).
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Divides the changes `kept` by the groups (directories, files, functions) to which they
    /// belong. `level` says how finely, 0 being the coarsest. Returns the sets of changes, in the
    /// order of their first changes.
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

    /// Returns the changes `kept` in the order in which a search divides them: changes of the same
    /// function are neighbours and, within a function, so are changes with common identifiers (ESEC
    /// 1999, section 8).
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

    /// Returns the changes `left` ordered by similarity: each is followed by the one, of those not
    /// yet placed, that has the most rare identifiers in common with it. An identifier is rare if
    /// at most `MOST_USERS` changes mention it. Fewer than three or more than `MOST_CHAINED`
    /// changes keep their order.
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

    /// Returns the number of the identifier `word`; `None` if no change mentions it.
    pub fn name(&self, word: &str) -> Option<Name> {
        self.names.get(word).copied()
    }

    /// Returns the changes that add or remove a line with one of the identifiers `names`.
    pub fn mentioning(&self, names: &[Name]) -> Config {
        config(&sorted(names.iter().flat_map(|name| &self.mentions[*name])))
    }

    /// Returns the number of the identifier that most of the changes `units` mention, and how many
    /// of them mention it. Only identifiers for which `is_asked` returns true are considered;
    /// `None` if there is none.
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

    /// Returns the changes that seem to define one of the identifiers `names`.
    pub fn defining(&self, names: &[Name]) -> Config {
        config(&sorted(names.iter().flat_map(|name| &self.definers[*name])))
    }

    /// Returns those of the identifiers `names` that at least one of the changes `units` mentions.
    pub fn shared(&self, names: &[Name], units: &Config) -> Vec<Name> {
        let is_shared = |name: &&Name| {
            let users = &self.mentions[**name];
            users.iter().any(|unit| units.contains(*unit))
        };
        names.iter().filter(is_shared).copied().collect()
    }

    /// Returns pairs of changes, in each of which the first probably requires the second: it uses
    /// an identifier that only the second defines, or it removes a definition whose use the second
    /// removes.
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

    /// Adds pairs to `requires`: if a change uses an identifier that the old version does not have
    /// and that only one change defines, it probably requires that change.
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

    /// Adds pairs to `requires`: if a change removes a definition that the new version no longer
    /// has, it probably requires all other changes that mention the identifier, because they remove
    /// its uses.
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

/// Numbers the groups of changes (directory, file, function) to which the changes `units` belong.
/// Returns a list for each level, from coarse to fine, with the group's number for each change.
/// Numbers are given in the order of the groups' first changes.
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

/// Builds the set ([`Config`]) of the changes with the indices `units`, which must be in ascending
/// order.
pub fn config(units: &[usize]) -> Config {
    let ranges = units.iter().map(|unit| *unit..unit + 1);
    Config::from_ranges(ranges).unwrap_or_else(Config::empty)
}
