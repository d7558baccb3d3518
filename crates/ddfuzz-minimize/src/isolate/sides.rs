//! The passing and the failing side of a search, the deltas (bytes or edits) between them, and the
//! outcomes of tested candidates.

use ddfuzz_delta::{
    Cache, Caching, Candidate, Change, Config, ConfigId, Edit, Monotony, Order, Outcome, Predictor,
    Rule, Seen, TextId, apply, changes,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::candidate_texts::{MOST_HASHED, PendingCandidate};
use crate::log::{ContentHash, DifferenceRecord, Goal, Phase, Source, TestLine, Units, What};
use crate::question::Reply;
use crate::{Counts, CutOff, Process, ProofRef};

/// The two inputs of a search between a passing and a failing one, and the deltas between them: the
/// bytes of the failing input, or the changes that lead from the passing to the failing input.
#[derive(Clone, Debug)]
pub struct Subject {
    units: Units,
    passing: Vec<u8>,
    failing: Vec<u8>,
    /// Changes from the passing to the failing input; `None` if the deltas are bytes of the failing
    /// input.
    changes: Option<Vec<Change>>,
}

impl Subject {
    /// Compares two inputs, and returns them with the deltas (bytes or edits) between them, which
    /// takes seconds for large inputs without similarities. For [`Units::Bytes`], the passing input
    /// is empty and `passing` is ignored.
    pub fn new(units: Units, passing: &[u8], failing: &[u8]) -> Subject {
        let changes = match units {
            Units::Bytes => None,
            Units::Edits => Some(changes(passing, failing)),
            Units::EditBytes => {
                let edits = changes(passing, failing);
                Some(edits.iter().flat_map(Change::bytes).collect())
            }
        };
        let passing = match changes {
            Some(_) => passing.to_vec(),
            None => Vec::new(),
        };
        Subject {
            units,
            passing,
            failing: failing.to_vec(),
            changes,
        }
    }

    /// Returns what the deltas between the two inputs are: bytes, edits, or the single bytes of
    /// edits.
    pub fn units(&self) -> Units {
        self.units
    }

    /// Returns the passing input with which the search between the two inputs begins.
    pub fn passing(&self) -> &[u8] {
        &self.passing
    }

    /// Returns the failing input with which the search between the two inputs begins.
    pub fn failing(&self) -> &[u8] {
        &self.failing
    }

    /// Returns the number of deltas (bytes or edits) between the passing and the failing input.
    pub fn deltas(&self) -> usize {
        match &self.changes {
            Some(changes) => changes.len(),
            None => self.failing.len(),
        }
    }

    /// Writes the passing input with the deltas (bytes or edits) in `config` applied into `text`,
    /// which is cleared first. No deltas give the passing input, all deltas the failing one.
    pub fn write_into(&self, config: &Config, text: &mut Vec<u8>) {
        match &self.changes {
            Some(changes) => {
                let applied = config.ranges().flat_map(|range| &changes[range]);
                apply(&self.passing, &self.failing, applied, text);
            }
            None => config.write_into(&self.failing, text),
        }
    }

    /// Builds the text that the deltas (bytes or edits) in `config` make of the passing input. No
    /// deltas give the passing input, all deltas the failing one.
    pub fn text(&self, config: &Config) -> Vec<u8> {
        let mut text = Vec::new();
        self.write_into(config, &mut text);
        text
    }

    /// Returns the places at which the passing input must be changed to apply `deltas`, with the
    /// bytes that are removed and inserted at each place. If the deltas are bytes of the failing
    /// input, the places are in that input, and the bytes at them count as removed.
    pub(super) fn changed(&self, deltas: &Config) -> Vec<Differing> {
        match &self.changes {
            Some(changes) => deltas
                .ranges()
                .flat_map(|range| joined(&changes[range]))
                .map(|change| Differing {
                    removed: self.passing[change.at.clone()].to_vec(),
                    inserted: self.failing[change.with].to_vec(),
                    at: change.at,
                })
                .collect(),
            None => deltas
                .ranges()
                .map(|at| Differing {
                    removed: self.failing[at.clone()].to_vec(),
                    inserted: Vec::new(),
                    at,
                })
                .collect(),
        }
    }
}

/// A place in which the texts of the passing and the failing side differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Range of the place in bytes: of the passing input, or of the failing one if the deltas are
    /// its bytes.
    pub at: Range<usize>,
    /// Bytes in the range `at` of one side, which the other side lacks.
    pub removed: Vec<u8>,
    /// Bytes of the other side that take the place of `removed`; may be empty.
    pub inserted: Vec<u8>,
}

/// Joins neighboring changes into one where they touch both in the passing and in the failing
/// input, and returns the resulting changes.
fn joined(changes: &[Change]) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        match joined.last_mut() {
            Some(last) if last.at.end == change.at.start && last.with.end == change.with.start => {
                last.at.end = change.at.end;
                last.with.end = change.with.end;
            }
            _ => joined.push(change.clone()),
        }
    }
    joined
}

/// One of the two sides of a search between a passing and a failing input: a text that changes
/// while the search brings it closer to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The text that passes; at the beginning of the search, the passing input.
    Passing,
    /// The text that fails; at the beginning of the search, the failing input.
    Failing,
}

/// Outcome of a text that can prove a claim, and the log line that shows it; `None` after another
/// run of the text contradicted it.
type ProvenOutcome = Option<(Outcome, ProofRef)>;

/// The passing and the failing side of a search, and the outcomes of all tested candidates.
pub(super) struct Sides {
    pub subject: Subject,
    goal: Goal,
    pub pass: Config,
    pub fail: Config,
    text: Vec<u8>,
    pub pending: Option<PendingCandidate>,
    cache: Cache,
    predictors: Vec<Box<dyn Predictor + Send>>,
    /// By text, the outcomes of runs that can prove a claim: runs in separate processes that kept
    /// their time limit.
    proven: HashMap<TextId, ProvenOutcome>,
    texts: HashMap<ConfigId, TextId>,
    /// Numbers of deltas (bytes or edits) of the configurations in `texts`.
    sizes: HashSet<usize>,
    /// Whether some text failed in one run and did not fail in another.
    pub contradicted: bool,
    pub tests: u64,
    pub counts: Counts,
}

impl Sides {
    pub fn new(subject: Subject, record: &DifferenceRecord, caching: Caching) -> Sides {
        let mut predictors: Vec<Box<dyn Predictor + Send>> = Vec::new();
        if record.ordered {
            predictors.push(Box::new(Order));
        }
        if record.monotone {
            predictors.push(Box::new(Monotony::default()));
        }
        Sides {
            goal: record.goal,
            pass: Config::empty(),
            fail: Config::all(subject.deltas()),
            subject,
            text: Vec::new(),
            pending: None,
            cache: Cache::new(caching),
            predictors,
            proven: HashMap::new(),
            texts: HashMap::new(),
            sizes: HashSet::new(),
            contradicted: false,
            tests: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the text of the candidate that is being tested.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the side that the search is about: the passing one for `max`, the failing one for
    /// `diff`.
    pub fn goal_side(&self) -> Side {
        match self.goal {
            Goal::Maximize => Side::Passing,
            Goal::Isolate => Side::Failing,
        }
    }

    /// Returns the present text of `side`, the passing or the failing one.
    pub fn end(&self, side: Side) -> Vec<u8> {
        self.subject.text(match side {
            Side::Passing => &self.pass,
            Side::Failing => &self.fail,
        })
    }

    /// Returns the deltas (bytes or edits) that the failing side has and the passing side lacks.
    pub fn difference(&self) -> Config {
        self.fail.minus(&self.pass)
    }

    /// Records the outcome of a check: of the passing input if `what` is [`What::Axiom`], else of
    /// the failing input. `cut_off` is the limit that ended the run, if one did.
    pub fn record_check(&mut self, what: What, outcome: Outcome, cut_off: Option<CutOff>) {
        let config = match what {
            What::Axiom => Config::empty(),
            _ => Config::all(self.subject.deltas()),
        };
        let text = ContentHash::of(&self.subject.text(&config)).text_id();
        let test = None;
        let seen = Seen { outcome, test };
        self.cache.record(Some(config.id()), text, seen);
        self.texts.insert(config.id(), text);
        self.sizes.insert(config.len());
        if cut_off != Some(CutOff::Time) {
            self.record_proof(text, outcome, ProofRef::Check(what));
        }
    }

    fn record_proof(&mut self, text: TextId, outcome: Outcome, proof: ProofRef) {
        let known = self.proven.entry(text).or_insert(Some((outcome, proof)));
        if let Some((before, _)) = *known
            && before != outcome
        {
            self.contradicted |= [before, outcome].contains(&Outcome::Fail);
            *known = None;
        }
    }

    /// Makes the candidate that keeps the deltas `config` the one that is tested next (the pending
    /// one), and builds its text; does nothing if it is pending already. `rule`: the step of the
    /// search that makes it. `phase`: `None` in the search, `Proof` in the proof after it.
    pub fn ask(&mut self, rule: Rule, config: Config, phase: Option<Phase>) {
        let candidate = Candidate::keep(rule, config);
        let is_same = |pending: &PendingCandidate| pending.candidate.config == candidate.config;
        if self.pending.as_ref().is_some_and(is_same) {
            return;
        }
        let Some(config) = kept(&candidate) else {
            return;
        };
        self.subject.write_into(config, &mut self.text);
        let hash = ContentHash::of(&self.text);
        // The proof repeats tests that prove nothing yet, whatever the cache or a predictor says.
        let (hit, predicted) = match phase {
            Some(_) => (None, None),
            None => (
                self.cache.lookup(candidate.config, hash.text_id()),
                self.predictors.iter().find_map(|one| one.predict(config)),
            ),
        };
        self.pending = Some(PendingCandidate {
            candidate,
            hash,
            phase,
            hit,
            predicted,
        });
    }

    /// Builds the log line of the pending candidate's test from the answer `reply`; `None` if no
    /// candidate is pending.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        let pending = self.pending.as_ref()?;
        Some(pending.test_line(self.tests, &self.text, reply))
    }

    /// Records `reply` as the outcome of the pending candidate, and returns the candidate; `None`
    /// if none is pending.
    pub fn commit(&mut self, reply: &Reply) -> Option<PendingCandidate> {
        let pending = self.pending.take()?;
        let config = kept(&pending.candidate)?;
        let (id, text) = (config.id(), pending.hash.text_id());
        self.counts.count(reply.source, pending.hit);
        let test = Some(self.tests);
        let outcome = reply.outcome;
        self.texts.insert(id, text);
        self.sizes.insert(config.len());
        self.cache.record(Some(id), text, Seen { outcome, test });
        if reply.source == Source::Run {
            for predictor in &mut self.predictors {
                predictor.learn(config, outcome);
            }
            let cut_off = reply.cut_off == Some(CutOff::Time);
            if reply.process == Process::Own && !cut_off {
                self.record_proof(text, outcome, ProofRef::Test(self.tests));
            }
        }
        self.tests += 1;
        Some(pending)
    }

    /// Lists the tests on which the claim rests (the difference of both sides is minimal). For each
    /// delta (byte or edit) in which the sides differ, it is the passing side with this delta added
    /// and, for `diff`, also the failing side without it.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> + '_ {
        let ranges: Vec<Range<usize>> = self.difference().ranges().collect();
        let isolates = self.goal == Goal::Isolate;
        ranges.into_iter().flatten().flat_map(move |delta| {
            let taken = isolates.then_some(Neighbour::Taken(delta));
            std::iter::once(Neighbour::Added(delta)).chain(taken)
        })
    }

    /// Returns the test of `neighbour`: the kind of delta debugging step that would make it, and
    /// its configuration (set of deltas, which are bytes or edits): that of the passing side with
    /// one more delta, or of the failing side with one less. Takes time in proportion to the number
    /// of ranges of that side.
    pub fn tested(&self, neighbour: Neighbour) -> (Rule, Config) {
        let single = |delta: usize| Config::all(delta + 1).minus(&Config::all(delta));
        let config = match neighbour {
            Neighbour::Added(delta) => self.pass.union(&single(delta)),
            Neighbour::Taken(delta) => self.fail.minus(&single(delta)),
        };
        (neighbour.rule(), config)
    }

    /// Lists the [`neighbours`](Sides::neighbours), each with the log line whose outcome supports
    /// the claim; `None` if no line does.
    pub fn proofs(&self) -> impl Iterator<Item = (Neighbour, Option<ProofRef>)> + '_ {
        let size = self.subject.failing.len().max(self.subject.passing.len());
        let has_size = |size: Option<usize>| size.is_some_and(|size| self.sizes.contains(&size));
        let added = has_size(Some(self.pass.len() + 1));
        let taken = has_size(self.fail.len().checked_sub(1));
        // Of bytes, a text of another configuration has that configuration's size, too.
        let by_text = self.subject.changes.is_some();
        let mut hashed = 0;
        self.neighbours().map(move |neighbour| {
            let (id, has_size) = match neighbour {
                Neighbour::Added(delta) => (self.pass.id().with(delta), added),
                Neighbour::Taken(delta) => (self.fail.id().without(delta), taken),
            };
            let known = has_size.then(|| self.texts.get(&id).copied()).flatten();
            let text = known.or_else(|| {
                hashed = (size + hashed).min(MOST_HASHED + 1);
                let is_sought = hashed <= MOST_HASHED && (has_size || by_text);
                is_sought.then(|| {
                    let (_, config) = self.tested(neighbour);
                    ContentHash::of(&self.subject.text(&config)).text_id()
                })
            });
            let proven = text.and_then(|text| *self.proven.get(&text)?);
            let supports = |(outcome, _): &(Outcome, _)| *outcome != refuted_by(neighbour.rule());
            (neighbour, proven.filter(supports).map(|(_, proof)| proof))
        })
    }
}

/// A configuration (set of deltas, which are bytes or edits) whose test the claim about the result
/// rests on. It differs from one of the sides by a single delta, in which both sides differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The configuration is that of the passing side with this delta (byte or edit) added.
    Added(usize),
    /// The configuration is that of the failing side without this delta (byte or edit).
    Taken(usize),
}

impl Neighbour {
    /// Returns the kind of step of the search that makes this configuration: "increase to
    /// complement" if a delta (byte or edit) is added to the passing side, "reduce to complement"
    /// if one is removed from the failing side.
    pub fn rule(self) -> Rule {
        match self {
            Neighbour::Added(_) => Rule::IncreaseToComplement,
            Neighbour::Taken(_) => Rule::Complement,
        }
    }
}

/// Returns the outcome that refutes the claim about the result in a test of the proof: FAIL for a
/// test that removes one delta (byte or edit) from the failing side (rule `Complement`), PASS for
/// one that adds a delta to the passing side.
pub(super) fn refuted_by(rule: Rule) -> Outcome {
    match rule {
        Rule::Complement => Outcome::Fail,
        _ => Outcome::Pass,
    }
}

/// Returns the configuration (set of deltas, which are bytes or edits) that a candidate keeps;
/// `None` if it is not described by a configuration.
pub(super) fn kept(candidate: &Candidate) -> Option<&Config> {
    match &candidate.edit {
        Edit::Keep(config) => Some(config),
        Edit::Cut(_) | Edit::Set(_) => None,
    }
}
