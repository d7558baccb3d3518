//! The two case studies of ESEC 1999 as seeded simulations, without processes: DDD (table 8) and
//! GDB (table 9); and two versions of an interpreter in C, like Lua. A set of changes builds if
//! each change has what it requires; the messages of a build name what is missing.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use ddfuzz_changes::search::{Around, Facts, Probed, Prober, UnitFacts, bisect, config, minimize};
use ddfuzz_delta::{Config, ConfigId, Outcome};

/// A stream of numbers that depends on the seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A simulated program with its changes.
pub struct Program {
    units: Vec<UnitFacts>,
    /// Changes of which the first requires the second, with the identifier that messages name.
    requires: Vec<(usize, usize, String)>,
    /// Changes that rewrite one type: the first changes its definition, and the others all uses of it.
    rewriting: Vec<usize>,
    /// The changes that make the failure together.
    pub causes: Vec<usize>,
    seen: HashMap<ConfigId, Probed>,
    /// Number of tests of different sets, and of those that do not build.
    pub tests: usize,
    pub unresolved: usize,
    /// For each test, the number of changes in the set, and whether it failed.
    pub points: Vec<(usize, bool)>,
}

impl Program {
    pub fn new(units: Vec<UnitFacts>, causes: Vec<usize>) -> Program {
        Program {
            units,
            requires: Vec::new(),
            rewriting: Vec::new(),
            causes,
            seen: HashMap::new(),
            tests: 0,
            unresolved: 0,
            points: Vec::new(),
        }
    }

    /// Makes the change `user` require the change `definer` by a new identifier. `hidden` is whether
    /// the text does not show which of both defines it. The causes require nothing, as in the paper,
    /// where one change remains.
    fn require(&mut self, user: usize, definer: usize, hidden: bool) {
        if self.causes.contains(&user) {
            return;
        }
        let name = format!("name{}", self.requires.len());
        self.units[user].adds.push(name.clone());
        self.units[definer].adds.push(name.clone());
        if !hidden {
            self.units[definer].defines.push(name.clone());
        }
        self.requires.push((user, definer, name));
    }

    /// Makes all members require each other, as a changed signature and its callers do.
    fn tie(&mut self, members: &[usize]) {
        if members.iter().any(|member| self.causes.contains(member)) {
            return;
        }
        self.tie_all(members);
    }

    /// The same for any changes.
    fn tie_all(&mut self, members: &[usize]) {
        let name = format!("tied{}", self.requires.len());
        for (at, member) in members.iter().enumerate() {
            self.units[*member].adds.push(name.clone());
            self.units[*member].removes.push(name.clone());
            let next = members[(at + 1) % members.len()];
            self.requires.push((*member, next, name.clone()));
        }
    }

    /// Returns what the messages of a build show of a type that is rewritten in part: the place of one
    /// use in each file, and no name.
    fn rewritten_in_part(&self, kept: &Config) -> Option<Around> {
        let has_new_type = kept.contains(*self.rewriting.first()?);
        let wrong = self.rewriting.iter().copied();
        let wrong = wrong.filter(|member| kept.contains(*member) != has_new_type);
        let mut in_file: HashMap<&str, usize> = HashMap::new();
        for member in wrong {
            in_file
                .entry(&self.units[member].groups[1])
                .or_insert(member);
        }
        let mut found: Vec<usize> = in_file.into_values().collect();
        found.sort_unstable();
        let around = match has_new_type {
            true => Around {
                near: found.clone(),
                missing: found.clone(),
                within: Vec::new(),
            },
            false => Around {
                near: Vec::new(),
                missing: Vec::new(),
                within: found.clone(),
            },
        };
        (!found.is_empty()).then_some(around)
    }

    fn facts(&self) -> Facts {
        Facts::of(&self.units, |word| word.starts_with("tied"), |_| true)
    }

    /// Minimizes all changes; returns the result and the greatest time between two tests.
    pub fn minimized(&mut self) -> (Config, Duration) {
        let facts = self.facts();
        let begin = Instant::now();
        let Ok(minimal) = minimize(&facts, self);
        (minimal.kept, begin.elapsed() / self.tests.max(1) as u32)
    }
}

impl Prober for Program {
    type Error = Infallible;

    fn probe(
        &mut self,
        kept: &Config,
        _: &'static str,
        _: &[Config],
    ) -> Result<Probed, Infallible> {
        if kept.is_empty() {
            return Ok(Probed::of(Outcome::Pass));
        }
        if let Some(known) = self.seen.get(&kept.id()) {
            return Ok(known.clone());
        }
        let lacks =
            |pair: &&(usize, usize, String)| kept.contains(pair.0) && !kept.contains(pair.1);
        let mut named: Vec<String> = self
            .requires
            .iter()
            .filter(lacks)
            .map(|pair| pair.2.clone())
            .collect();
        named.dedup();
        let fails = self.causes.iter().all(|cause| kept.contains(*cause));
        let around = self.rewritten_in_part(kept);
        let probed = match (named.is_empty() && around.is_none(), fails) {
            (false, _) => Probed {
                around: around.unwrap_or_default(),
                ..Probed::unbuildable(named)
            },
            (true, true) => Probed::of(Outcome::Fail),
            (true, false) => Probed::of(Outcome::Pass),
        };
        self.tests += 1;
        self.unresolved += usize::from(probed.outcome.is_none());
        self.points.push((kept.len(), probed.fails()));
        self.seen.insert(kept.id(), probed.clone());
        Ok(probed)
    }

    fn predict(&mut self, _: &Config) -> Result<(), Infallible> {
        Ok(())
    }
}

/// DDD 3.1.2 to 3.1.3: 344 textual changes in 116 groups by date, one of them the cause. A change may
/// require others of its group and of earlier groups.
pub fn ddd(seed: u64) -> (Program, Vec<u64>) {
    const CHANGES: usize = 344;
    const GROUPS: usize = 116;
    let mut random = Random(seed);
    let mut group_of: Vec<usize> = (0..CHANGES)
        .map(|change| {
            if change < GROUPS {
                change
            } else {
                random.below(GROUPS)
            }
        })
        .collect();
    group_of.sort_unstable();
    let units = group_of
        .iter()
        .map(|_| {
            let file = random.below(40);
            UnitFacts {
                groups: vec![format!("directory{}", file % 4), format!("file{file}")],
                ..UnitFacts::default()
            }
        })
        .collect();
    let cause = random.below(CHANGES);
    let mut program = Program::new(units, vec![cause]);
    for user in 1..CHANGES {
        if random.percent(25) {
            let definer = random.below(user);
            let hidden = random.percent(30);
            program.require(user, definer, hidden);
        }
    }
    let mut weights = vec![0; GROUPS];
    group_of.iter().for_each(|group| weights[*group] += 1);
    (program, weights)
}

/// The search with the dates of DDD: the groups are bisected, and then the changes of one group are
/// minimized on top of all earlier ones.
pub fn with_dates(mut program: Program, weights: &[u64]) -> (usize, Config) {
    let end = |groups: usize| weights[..groups].iter().sum::<u64>() as usize;
    let prefix = |changes: usize| config(&(0..changes).collect::<Vec<_>>());
    let Ok(found) = bisect(weights, |groups, _| {
        let Ok(probed) = program.probe(&prefix(end(groups)), "commit", &[]);
        Ok::<_, Infallible>(probed.outcome.unwrap_or(Outcome::Unresolved))
    });
    let (first, last) = (end(found.passing), end(found.failing));
    let facts = Facts::of(&program.units[first..last], |_| false, |_| true);
    let mut on_top = OnTop {
        below: first,
        program,
    };
    let Ok(minimal) = minimize(&facts, &mut on_top);
    let kept: Vec<usize> = minimal
        .kept
        .ranges()
        .flatten()
        .map(|unit| first + unit)
        .collect();
    (on_top.program.tests, config(&kept))
}

/// Changes on top of all those before them.
struct OnTop {
    below: usize,
    program: Program,
}

impl Prober for OnTop {
    type Error = Infallible;

    fn probe(
        &mut self,
        kept: &Config,
        rule: &'static str,
        ahead: &[Config],
    ) -> Result<Probed, Infallible> {
        let kept = kept.ranges().flatten().map(|unit| unit + self.below);
        let all: Vec<usize> = (0..self.below).chain(kept).collect();
        self.program.probe(&config(&all), rule, ahead)
    }

    fn predict(&mut self, _: &Config) -> Result<(), Infallible> {
        Ok(())
    }
}

/// GDB 4.16 to 4.17: 8721 textual changes in directories, files and functions, one of them the cause.
/// Each third change uses what another one, mostly near to it, defines, and each hundredth is one of
/// several that need each other, so that most sets do not build.
pub fn gdb(seed: u64) -> Program {
    const CHANGES: usize = 8721;
    let mut random = Random(seed);
    let mut places: Vec<(usize, usize, usize)> = (0..CHANGES)
        .map(|_| (random.below(30), random.below(25), random.below(12)))
        .collect();
    places.sort_unstable();
    let units = places
        .iter()
        .map(|(directory, file, function)| UnitFacts {
            groups: vec![
                format!("{directory}"),
                format!("{directory}/{file}"),
                format!("{function}"),
            ],
            ..UnitFacts::default()
        })
        .collect();
    let cause = random.below(CHANGES);
    let mut program = Program::new(units, vec![cause]);
    for user in 0..CHANGES {
        if random.percent(33) {
            let first = user.saturating_sub(8);
            let definer = match random.percent(70) {
                true => first + random.below(17.min(CHANGES - first)),
                false => random.below(CHANGES),
            };
            if definer != user {
                let hidden = random.percent(25);
                program.require(user, definer, hidden);
            }
        }
        if random.percent(1) {
            let members: HashSet<usize> = (0..3 + random.below(3))
                .map(|_| {
                    if random.percent(60) {
                        (user + random.below(30)).min(CHANGES - 1)
                    } else {
                        random.below(CHANGES)
                    }
                })
                .collect();
            let mut members: Vec<usize> = members.into_iter().collect();
            members.sort_unstable();
            program.tie(&members);
        }
    }
    program
}

/// Two versions of an interpreter in C: `changes` textual changes in `files` files of one directory, some
/// of which use what others define, mostly in another file. The failure needs `causes` changes; several
/// need each other.
pub fn interpreter(seed: u64, (changes, files): (usize, usize), causes: usize) -> Program {
    let mut random = Random(seed);
    let mut places: Vec<(usize, usize)> = (0..changes)
        .map(|_| (random.below(files), random.below(9)))
        .collect();
    places.sort_unstable();
    let units = places
        .iter()
        .map(|(file, function)| UnitFacts {
            groups: vec![
                String::new(),
                format!("file{file}"),
                format!("function{function}"),
            ],
            ..UnitFacts::default()
        })
        .collect();
    let mut needed: Vec<usize> = Vec::new();
    while needed.len() < causes {
        let unit = random.below(changes);
        if !needed.contains(&unit) {
            needed.push(unit);
        }
    }
    needed.sort_unstable();
    let mut program = Program::new(units, needed.clone());
    if causes > 1 {
        program.tie_all(&needed);
    }
    for user in 0..changes {
        if random.percent(20) {
            let definer = random.below(changes);
            if definer != user {
                let hidden = random.percent(40);
                program.require(user, definer, hidden);
            }
        }
        if random.percent(2) {
            let members = [user, random.below(changes), random.below(changes)];
            program.tie(&members);
        }
    }
    program
}

/// The same with a type that three fifths of the changes rewrite, as Lua 5.4.5 did with the pointers to
/// its stack: messages name the places of its uses only.
pub fn rewritten(seed: u64, changes: usize, causes: usize) -> Program {
    let mut program = interpreter(seed, (changes, 36), causes);
    let mut random = Random(seed ^ 0x5eed);
    for unit in 0..changes {
        if program.causes.contains(&unit) || random.percent(40) {
            continue;
        }
        program.rewriting.push(unit);
        let name = ["top", "func", "base", "stack_last"][random.below(7) % 4];
        program.units[unit].adds.push(name.to_owned());
    }
    program
}
