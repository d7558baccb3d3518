//! Outcomes of all inputs of a triage, and the groups that they form.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::campaign::{Examined, line_of};
use crate::exec::Ended;
use crate::minimize::log::ContentHash;
use crate::report::{Trace, TriageGroup};
use crate::store::foreign::Input;
use crate::store::{CrashLine, Kind, Triaged};
use crate::triage::{Crash, Key};

/// The outcome of running one distinct input in a triage; kept small, because there may be very
/// many.
#[derive(Clone, Copy)]
pub struct Outcome {
    pub size: u64,
    pub ended: Ended,
    pub hits: u32,
    pub tries: u32,
    /// Index of the crash variant (pair of major and minor key, the coarse and fine hash of a
    /// crash) to which the input's crash belongs; `None` if it did not crash.
    pub variant: Option<usize>,
    /// Index of a second crash variant (pair of coarse and fine hash of a crash), which is flaky:
    /// the input crashed with the keys of that variant in one of its runs. `None` if all its
    /// crashes had the same keys.
    pub once: Option<usize>,
    /// Whether memory leaks were looked for in a run of the input.
    pub leaks: bool,
}

impl Outcome {
    /// Iterates over the indices of the crash variants (pairs of coarse and fine hash of a crash)
    /// that the input has shown: the one of its crash, and one that it has shown in a single run
    /// only.
    fn variants(self) -> impl Iterator<Item = usize> {
        self.variant.into_iter().chain(self.once)
    }

    /// Returns this outcome with the number of runs set to one if all runs of the input crashed,
    /// and unchanged otherwise. Results must not show how many runs there were, since this depends
    /// on which worker was first.
    pub fn of_first_run(self) -> Outcome {
        match self.variant.is_some() && self.hits == self.tries {
            true => Outcome {
                hits: 1,
                tries: 1,
                ..self
            },
            false => self,
        }
    }
}

/// Maximum number of crash variants (pairs of major and minor key, the coarse and fine hash of a
/// crash) whose stack traces are kept in memory.
const TRACED: usize = 1000;

/// A crash variant: all crashes of a triage with the same major and minor key (coarse and fine hash
/// of a crash).
pub struct Variant {
    /// Record of one crash of this variant, as a line of the triage journal has it.
    pub line: CrashLine,
    /// Hash of the content of the input whose crash `line` records.
    pub examined: ContentHash,
    /// Stack trace of the crash that `line` records; `None` if it is not kept in memory.
    pub trace: Option<Trace>,
}

/// What a triage knows of one input file: not run yet, unreadable, or read.
#[derive(Clone)]
pub enum FileState {
    Pending,
    /// The input file could not be read; the text says why.
    Unreadable(String),
    /// The input file was read; the value is the hash of its content.
    Content(ContentHash),
}

/// Smallest input file of each crash variant (pair of coarse and fine hash of a crash): maps the
/// variant's index to (size in bytes, index of the file).
pub type SmallestFiles = BTreeMap<usize, (u64, usize)>;

/// The outcomes of all distinct inputs of a triage, by the hash of their content, and the crash
/// variants (pairs of major and minor key, the coarse and fine hash of a crash) among them.
pub struct TriageOutcomes {
    target: ContentHash,
    outcomes: HashMap<ContentHash, Outcome>,
    pub variants: Vec<Variant>,
    by_key: HashMap<(Kind, Key, Key), usize>,
    majors: HashSet<(Kind, Key)>,
    /// The groups of the inputs that crashed in earlier calls, as the journal records them, by the
    /// hashes that identify target and input.
    earlier: HashMap<(ContentHash, ContentHash), (Kind, Key)>,
}

impl TriageOutcomes {
    /// Creates an empty collection of outcomes; `target` is the hash that identifies the target in
    /// the triage journal.
    pub fn new(target: ContentHash) -> TriageOutcomes {
        TriageOutcomes {
            target,
            outcomes: HashMap::new(),
            variants: Vec::new(),
            by_key: HashMap::new(),
            majors: HashSet::new(),
            earlier: HashMap::new(),
        }
    }

    /// Returns true if a line of the triage journal records a run of the target whose outcomes are
    /// collected, in the current format.
    pub fn is_of_target(&self, line: &Triaged) -> bool {
        line.v == Triaged::VERSION && line.target == self.target
    }

    /// Adds the outcome of an input that an earlier call of ddfuzz has run, as its line of the
    /// triage journal records it.
    pub fn recall(&mut self, line: Triaged) {
        let variant = line
            .crash
            .map(|crash| self.variant((crash, None), line.input, line.examined));
        let outcome = Outcome {
            size: line.size,
            ended: line.ended,
            hits: line.hits,
            tries: line.tries,
            variant,
            once: None,
            leaks: line.leaks,
        };
        self.outcomes.insert(line.input, outcome);
    }

    /// Records an input that an earlier call of ddfuzz has run and this call runs again. Only the
    /// counts of [`Self::seen`] use the record.
    pub fn note_earlier(&mut self, line: &Triaged) {
        let place = (line.target, line.input);
        match &line.crash {
            Some(crash) => self.earlier.insert(place, (crash.kind, crash.major)),
            None => self.earlier.remove(&place),
        };
    }

    /// Returns the hash of each input that was run, now or by an earlier call. The bool is true if
    /// a check for memory leaks would add nothing: leaks were looked for already, or the run has
    /// crashed.
    pub fn contents(&self) -> impl Iterator<Item = (ContentHash, bool)> {
        let all = self.outcomes.iter();
        all.map(|(input, outcome)| (*input, outcome.leaks || outcome.variant.is_some()))
    }

    /// Returns true if the input has crashed in an earlier run.
    pub fn has_crashed(&self, input: ContentHash) -> bool {
        let outcome = self.outcomes.get(&input);
        outcome.is_some_and(|outcome| outcome.variant.is_some())
    }

    /// Returns the major and minor keys (coarse and fine hashes of crashes) of all crash variants
    /// that are not flaky, that is, whose crashes occur in each run.
    pub fn steady_variants(&self) -> impl Iterator<Item = (Key, Key)> {
        let steady = self.variants.iter().map(|variant| &variant.line);
        let steady = steady.filter(|line| line.kind != Kind::Flaky);
        steady.map(|line| (line.major, line.minor))
    }

    /// Returns true if some input has shown a crash that is not flaky and has the same major key
    /// (hash that identifies the bug) as `crash`.
    pub fn has_steady(&self, crash: &Crash) -> bool {
        let place = (Kind::of_class(&crash.class), crash.keys.major);
        self.majors.contains(&place)
    }

    pub fn group_count(&self) -> u64 {
        self.majors.len() as u64
    }

    /// Adds an input of `size` bytes whose single run crashed with the keys `major` and `minor`;
    /// another input with these keys was examined before. `ended`: how the run ended. Returns the
    /// input's line for the triage journal.
    pub fn known_variant(
        &mut self,
        (input, size): (ContentHash, u64),
        (major, minor): (Key, Key),
        ended: Ended,
    ) -> Triaged {
        let found = Kind::ALL.iter().filter(|kind| **kind != Kind::Flaky);
        let variant = found
            .clone()
            .find_map(|kind| self.by_key.get(&(*kind, major, minor)));
        let outcome = Outcome {
            size,
            ended,
            hits: 1,
            tries: 1,
            variant: variant.copied(),
            once: None,
            leaks: false,
        };
        self.outcomes.insert(input, outcome);
        self.line(input, outcome, false)
    }

    /// Adds an input that was examined: run several times, and its crash, if any, symbolized.
    /// Returns its line for the triage journal, and whether it is the first input with its major
    /// and minor key (coarse and fine hash of the crash). `leaks`: whether memory leaks were looked
    /// for.
    pub fn add(
        &mut self,
        (input, size): (ContentHash, u64),
        examined: &Examined,
        leaks: bool,
    ) -> (Triaged, bool) {
        let before = self.variants.len();
        let crash = examined.crash.as_deref();
        let variant = crash.map(|crash| {
            let trace = (before < TRACED).then(|| Trace::of(crash, None));
            self.variant((line_of(crash), trace), input, true)
        });
        let is_first = self.variants.len() > before;
        let once = examined.other.as_deref();
        let once = once.filter(|once| !self.has_steady(once));
        let once = once.map(|once| self.variant((line_of(once), None), input, true));
        let earlier = self.outcomes.get(&input);
        let outcome = Outcome {
            size,
            ended: examined.ended,
            hits: crash.map_or(0, |crash| crash.hits),
            tries: examined.tries,
            variant,
            once: once.or_else(|| earlier.and_then(|earlier| earlier.once)),
            // A run of the same content that looked for leaks may have been faster.
            leaks: leaks || earlier.is_some_and(|earlier| earlier.leaks),
        };
        self.outcomes.insert(input, outcome);
        (self.line(input, outcome, true), is_first)
    }

    /// Returns the content hash and the outcome of the input file with the state `state`; `None` if
    /// it was not run.
    pub fn outcome(&self, state: &FileState) -> Option<(ContentHash, Outcome)> {
        match state {
            FileState::Content(input) => Some((*input, *self.outcomes.get(input)?)),
            FileState::Pending | FileState::Unreadable(_) => None,
        }
    }

    /// Returns the smallest input file of each crash variant (pair of major and minor key, the
    /// coarse and fine hash of a crash); `states` are the states of all input files.
    pub fn smallest_files(&self, states: &[FileState]) -> SmallestFiles {
        let mut smallest = SmallestFiles::new();
        for (at, state) in states.iter().enumerate() {
            let Some((_, outcome)) = self.outcome(state) else {
                continue;
            };
            for variant in outcome.variants() {
                let held = smallest.entry(variant).or_insert((outcome.size, at));
                *held = (*held).min((outcome.size, at));
            }
        }
        smallest
    }

    /// Builds the groups of crashes of the input files, one for each kind of failure and major key
    /// (hash that identifies the bug), sorted by kind, severity, and number of files.
    pub fn groups(&self, files: &[Input], states: &[FileState]) -> Vec<TriageGroup> {
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for state in states {
            let outcome = self.outcome(state).map(|(_, outcome)| outcome);
            for variant in outcome.into_iter().flat_map(Outcome::variants) {
                *counts.entry(variant).or_default() += 1;
            }
        }
        let mut groups: BTreeMap<(Kind, Key), (TriageGroup, (u64, usize))> = BTreeMap::new();
        for (variant, smallest) in self.smallest_files(states) {
            let Variant { line, trace, .. } = &self.variants[variant];
            let file = &files[smallest.1].path;
            let own = (group_of(line, trace, smallest.0, file.clone()), smallest);
            let place = (line.kind, line.major);
            let (group, held) = groups.entry(place).or_insert_with(|| own.clone());
            if smallest < *held {
                let counted = (group.count, group.minors.clone(), group.stables.clone());
                let severity = (group.severity, group.severity_reason.clone());
                (*group, *held) = own;
                (group.count, group.minors, group.stables) = counted;
                (group.severity, group.severity_reason) = severity;
            }
            if line.severity > group.severity {
                group.severity = line.severity;
                group.severity_reason.clone_from(&line.severity_reason);
            }
            group.count += counts.get(&variant).unwrap_or(&0);
            group.minors.push(line.minor.short());
            group
                .stables
                .extend(line.stable.map(|stable| stable.to_string()));
        }
        let mut groups: Vec<_> = groups.into_values().map(|(group, _)| group).collect();
        for group in &mut groups {
            group.minors.sort();
        }
        groups.sort_by(|a, b| {
            let order = |group: &TriageGroup| (group.kind, std::cmp::Reverse(group.severity));
            (order(a), b.count, &a.major).cmp(&(order(b), a.count, &b.major))
        });
        groups
    }

    /// Returns the number of distinct inputs of each group, which is given by the kind of failure
    /// and the major key (hash that identifies the bug). Counts inputs of this call, and those of
    /// earlier calls in the journal.
    pub fn seen(&self) -> BTreeMap<(Kind, Key), u64> {
        let mut seen: BTreeMap<(Kind, Key), HashSet<ContentHash>> = BTreeMap::new();
        for (input, outcome) in &self.outcomes {
            for variant in outcome.variants() {
                let line = &self.variants[variant].line;
                let inputs = seen.entry((line.kind, line.major)).or_default();
                inputs.insert(*input);
            }
        }
        for ((target, input), group) in &self.earlier {
            // An outcome of this call takes the place of an earlier one on the same target.
            if *target != self.target || !self.outcomes.contains_key(input) {
                seen.entry(*group).or_default().insert(*input);
            }
        }
        let count = |inputs: HashSet<ContentHash>| inputs.len() as u64;
        seen.into_iter()
            .map(|(group, inputs)| (group, count(inputs)))
            .collect()
    }

    fn variant(
        &mut self,
        (line, trace): (CrashLine, Option<Trace>),
        input: ContentHash,
        examined: bool,
    ) -> usize {
        let key = (line.kind, line.major, line.minor);
        if let Some(&at) = self.by_key.get(&key) {
            // The record of a later, full examination replaces the first one.
            if examined {
                self.variants[at].line = line;
                self.variants[at].trace = trace;
                self.variants[at].examined = input;
            }
            return at;
        }
        self.by_key.insert(key, self.variants.len());
        self.majors.insert((line.kind, line.major));
        self.variants.push(Variant {
            line,
            examined: input,
            trace,
        });
        self.variants.len() - 1
    }

    fn line(&self, input: ContentHash, outcome: Outcome, examined: bool) -> Triaged {
        Triaged {
            leaks: outcome.leaks,
            v: Triaged::VERSION,
            campaign: String::new(),
            target: self.target,
            input,
            size: outcome.size,
            ended: outcome.ended,
            hits: outcome.hits,
            tries: outcome.tries,
            examined,
            crash: outcome
                .variant
                .map(|variant| self.variants[variant].line.clone()),
        }
    }
}

fn group_of(
    line: &CrashLine,
    trace: &Option<Trace>,
    size: u64,
    representative: std::path::PathBuf,
) -> TriageGroup {
    let message = line.message.clone();
    let said = || Trace::of_message(message.clone());
    TriageGroup {
        major: line.major.short(),
        kind: line.kind,
        class: line.class.to_string(),
        severity: line.severity,
        severity_reason: line.severity_reason.clone(),
        count: 0,
        minors: Vec::new(),
        stable: line.stable.map(|stable| stable.to_string()),
        stables: Vec::new(),
        frame: line.place.clone(),
        trace: trace.clone().unwrap_or_else(said),
        message: message.clone(),
        source: line.source.clone(),
        representative,
        size,
        known: false,
        new: None,
        why: None,
        same_by: None,
        any_input: false,
        explanation: None,
        build: line.build.clone(),
    }
}
