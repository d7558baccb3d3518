//! The texts of a minimization: the candidate that is being tested, the outcomes of earlier texts,
//! and the best text (the smallest failing so far).

use ddfuzz_delta::{Cache, Caching, Candidate, Config, Edit, Full, Hit, Outcome, Rule, Seen};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::certificate::{Contradictions, count_runs, runs};
use crate::log::{Base64, ContentHash, Phase, ReduceLine, Source, TestLine, What};
use crate::question::{Manner, Reply};
use crate::{Certificate, Counts, CutOff, Kind, Process, ProofRef};

/// Limit on the work of looking, among the tests of the search, for tests that prove a claim such
/// as 1-minimality: number of bytes of texts that are hashed to be compared with tested texts.
/// Tests that are found without hashing do not count for it.
pub(super) const MOST_HASHED: usize = 1 << 28;

/// A candidate of the search, or of the proof of minimality after it, that has no outcome yet.
#[derive(Clone, Debug)]
pub(super) struct PendingCandidate {
    pub candidate: Candidate,
    pub hash: ContentHash,
    pub phase: Option<Phase>,
    pub hit: Option<Hit>,
    /// Outcome of the candidate that a predictor derives from earlier tests without a run; `None`
    /// if no predictor can.
    pub predicted: Option<Outcome>,
}

/// The texts of one minimization: the candidate that is tested, the current best (the smallest
/// failing text so far), and the outcomes of all earlier texts.
#[derive(Clone)]
pub(super) struct CandidateTexts<'a> {
    original: &'a [u8],
    /// The smallest failing text so far; `None` as long as it is the original input.
    best: Option<Vec<u8>>,
    /// Bytes of the original input that make up the best (the smallest failing text so far); `None`
    /// after an edit that does not describe the best as such a selection.
    best_kept: Option<Config>,
    text: Vec<u8>,
    pending: Option<PendingCandidate>,
    /// Rule of the search, such as `subset`, that made the last tested candidate.
    rule: Option<Rule>,
    cache: Cache,
    /// Hashes of texts whose outcome proves nothing, because the run exceeded its time limit or
    /// shared a process with other runs, or because rewriting bytes changed the minor crash key.
    unproven: HashSet<ContentHash>,
    /// For each position in the best text (the smallest failing so far) whose byte was removed
    /// without a failure: the index of the test that showed it.
    singles: BTreeMap<usize, u64>,
    /// Number of distinct texts that result from removing a single byte of the best text (the
    /// smallest failing so far); empty until it is counted.
    removals: OnceCell<u64>,
    contradictions: Contradictions,
    tests: u64,
    pub counts: Counts,
}

impl<'a> CandidateTexts<'a> {
    pub fn new(original: &'a [u8], caching: Caching) -> CandidateTexts<'a> {
        CandidateTexts {
            original,
            best: None,
            best_kept: Some(Config::all(original.len())),
            text: Vec::new(),
            pending: None,
            rule: None,
            cache: Cache::new(caching),
            unproven: HashSet::new(),
            singles: BTreeMap::new(),
            removals: OnceCell::new(),
            contradictions: Contradictions::default(),
            tests: 0,
            counts: Counts::default(),
        }
    }

    pub fn original(&self) -> &'a [u8] {
        self.original
    }

    pub fn best(&self) -> &[u8] {
        self.best.as_deref().unwrap_or(self.original)
    }

    /// Returns the text of the candidate that is being tested.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the rule by which the cache of outcomes decides which tests it answers without a
    /// run.
    pub fn caching(&self) -> Caching {
        self.cache.caching()
    }

    /// Returns the number of tests of the minimization that have an outcome so far.
    pub fn tests(&self) -> u64 {
        self.tests
    }

    /// Makes the empty text the best (the smallest failing text), because the test of the empty
    /// input failed.
    pub fn take_empty(&mut self) {
        self.best = Some(Vec::new());
        self.best_kept = Some(Config::empty());
        self.begin_best();
    }

    /// Forgets which single bytes of the best were removed without a failure, because another text
    /// has become the best (the smallest failing text so far).
    fn begin_best(&mut self) {
        self.singles.clear();
        self.removals.take();
    }

    /// Returns the number of distinct texts that result from removing a single byte of the best
    /// (the smallest failing text so far).
    pub fn removals(&self) -> u64 {
        *self.removals.get_or_init(|| count_runs(self.best()))
    }

    /// Records the outcome of a check, which is a run of `text` outside of the search; `cut_off` is
    /// the limit that ended the run, if one did.
    pub fn record_check(&mut self, text: &[u8], outcome: Outcome, cut_off: Option<CutOff>) {
        let hash = ContentHash::of(text);
        if cut_off == Some(CutOff::Time) {
            self.unproven.insert(hash);
        }
        let test = None;
        self.cache
            .record(None, hash.text_id(), Seen { outcome, test });
    }

    /// Makes `candidate` the pending one, which is tested next, and builds its text; keeps the
    /// pending one if it is the same. `phase` is `None` in the search, and `Proof` for tests of the
    /// proof of minimality after it; `predicted` is the outcome that the search predicts.
    pub fn ask(
        &mut self,
        candidate: Candidate,
        phase: Option<Phase>,
        predicted: Option<Outcome>,
    ) -> &PendingCandidate {
        let known = self
            .pending
            .take()
            .filter(|pending| pending.candidate == candidate);
        let pending = known.unwrap_or_else(|| {
            let mut text = std::mem::take(&mut self.text);
            let (hash, hit) = self.look_up(&candidate, phase, &mut text);
            self.text = text;
            PendingCandidate {
                candidate,
                hash,
                phase,
                hit,
                predicted,
            }
        });
        self.pending.insert(pending)
    }

    /// Writes the text of `candidate` into `text`. Returns the hash of the text, and its known
    /// outcome from the cache, so that it need not be run; `None` if it must be run. In the proof
    /// (`phase` is not `None`), outcomes that prove nothing are not taken from the cache.
    pub fn look_up(
        &self,
        candidate: &Candidate,
        phase: Option<Phase>,
        text: &mut Vec<u8>,
    ) -> (ContentHash, Option<Hit>) {
        candidate.write_into(self.original, self.best(), text);
        let hash = ContentHash::of(text);
        // The proof repeats tests that prove nothing, in a fresh process with a longer time limit;
        // an observed test must run.
        let again = phase.is_some() && self.unproven.contains(&hash) || candidate.observed;
        let hit = match again {
            true => None,
            false => self.cache.lookup(candidate.config, hash.text_id()),
        };
        (hash, hit)
    }

    /// Returns the candidate that waits for its outcome; `None` if no candidate does.
    pub fn pending(&self) -> Option<&PendingCandidate> {
        self.pending.as_ref()
    }

    /// Builds the log line of the pending candidate's test from the answer `reply`; `None` if no
    /// candidate is pending.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        let pending = self.pending.as_ref()?;
        Some(pending.test_line(self.tests, &self.text, reply))
    }

    /// Records `reply` as the outcome of the pending candidate. Returns the `reduce` log line if
    /// the candidate failed and became the new best text (the smallest failing so far); else
    /// `None`.
    pub fn commit(&mut self, reply: &Reply) -> Option<ReduceLine> {
        let pending = self.pending.take()?;
        self.rule = Some(pending.candidate.rule);
        let i = self.tests;
        self.tests += 1;
        self.counts.count(reply.source, pending.hit);
        if reply.source == Source::Predicted && reply.outcome != Outcome::Fail {
            // A prediction is no knowledge: the same text is run where another pass asks for it.
            return None;
        }
        self.compare(&pending, reply);
        let (outcome, test) = (reply.outcome, Some(i));
        let (config, text) = (pending.candidate.config, pending.hash.text_id());
        self.cache.record(config, text, Seen { outcome, test });
        // A rewriting with another minor key is UNRESOLVED; made by deletions, the text may fail.
        let by_minor = reply.outcome == Outcome::Unresolved
            && kind_of(&pending.candidate.edit) == Kind::Rewriting;
        let cut_off = reply.cut_off == Some(CutOff::Time);
        if cut_off || by_minor || reply.process == Process::Shared {
            self.unproven.insert(pending.hash);
        } else if reply.source == Source::Run {
            self.unproven.remove(&pending.hash);
        }
        if reply.outcome == Outcome::Fail {
            if !self.is_new_best(&pending.candidate.edit) {
                return None;
            }
            let rule = pending.candidate.rule;
            self.best_kept = match pending.candidate.edit {
                Edit::Keep(config) => Some(config),
                Edit::Cut(_) | Edit::Set(_) => None,
            };
            let before = self.best.replace(std::mem::take(&mut self.text));
            self.text = before.unwrap_or_default();
            self.begin_best();
            let rule = rule.name().to_owned();
            return Some(ReduceLine {
                i,
                rule,
                size: self.best().len() as u64,
            });
        }
        if let Some(position) = self.single(&pending.candidate.edit)
            && !self.unproven.contains(&pending.hash)
        {
            self.singles.insert(position, i);
        }
        None
    }

    /// Notes a contradiction if a run has another outcome than an earlier run of the same text (one
    /// failed, the other did not). Only runs in processes of their own count, and only if they kept
    /// the time limit.
    fn compare(&mut self, pending: &PendingCandidate, reply: &Reply) {
        let own = reply.source == Source::Run && reply.process.is_own();
        if !own || reply.cut_off == Some(CutOff::Time) {
            return;
        }
        let text = pending.hash.text_id();
        let before = match self.text == self.best() {
            true => Some(Outcome::Fail),
            false => self.cache.seen(text).map(|seen| seen.outcome),
        };
        let before = before.filter(|_| !self.unproven.contains(&pending.hash));
        let kind = kind_of(&pending.candidate.edit);
        self.contradictions.note(text, kind, reply.outcome, before);
    }

    /// Records that one text failed in one run and not in another, if `missed` is more than 0;
    /// `missed` is the number of further runs of a failing test's text that passed.
    pub fn note_missed(&mut self, missed: u64) {
        if missed > 0 {
            self.contradictions.record();
        }
    }

    /// Checks whether any text of this minimization failed in one run and did not fail in another.
    pub fn is_contradicted(&self) -> bool {
        self.contradictions.found()
    }

    /// Returns true if a failing candidate becomes the new best (the smallest failing text so far);
    /// `edit` says how it was made. A candidate that was made from the present best always becomes
    /// it; one that was made from the original input becomes it only if it is smaller than the
    /// present best. The searches use the same rule.
    fn is_new_best(&self, edit: &Edit) -> bool {
        match edit {
            Edit::Cut(_) | Edit::Set(_) => true,
            Edit::Keep(_) => self.text.len() < self.best().len(),
        }
    }

    /// Returns the position in the best (the smallest failing text so far) of the byte that `edit`
    /// removes; `None` if it does not remove exactly one byte.
    fn single(&self, edit: &Edit) -> Option<usize> {
        match edit {
            Edit::Cut(cuts) => match cuts.as_slice() {
                [cut] if cut.len() == 1 => Some(cut.start),
                _ => None,
            },
            Edit::Keep(config) => {
                let best = self.best_kept.as_ref();
                let best = best.filter(|best| best.len() == config.len() + 1)?;
                let gone = best.minus(config);
                let unit = gone.ranges().next().filter(|_| gone.len() == 1)?;
                Some(best.count_below(unit.start))
            }
            Edit::Set(_) => None,
        }
    }

    /// Builds the certificate of the best (the smallest failing text so far): for each removal of a
    /// single byte, the logged test which proves that the text without it does not fail, if there
    /// is one.
    pub fn certificate(&self) -> Certificate {
        // Before the first test, only the empty text has an outcome.
        match self.tests == 0 && self.best().len() > 1 {
            true => Certificate::without_proof(self.best()),
            false => Certificate::new(self.single_removals().map(|(_, proof)| proof)),
        }
    }

    /// Lists the ways to remove a single byte from the best (the smallest failing text so far), in
    /// ascending order. In a sequence of equal bytes, it makes no difference which one is removed,
    /// so there is one element for each sequence: its range, and the log line which proves that the
    /// text does not fail without one of these bytes; `None` if no line does.
    pub fn single_removals(&self) -> impl Iterator<Item = (Range<usize>, Option<ProofRef>)> + '_ {
        let mut hashed = 0;
        let mut text = Vec::new();
        let mut singles = self.singles.iter().peekable();
        runs(self.best()).map(move |at| {
            while singles.next_if(|(single, _)| **single < at.start).is_some() {}
            if let Some((_, test)) = singles.next_if(|(single, _)| **single < at.end) {
                return (at, Some(ProofRef::Test(*test)));
            }
            if hashed > MOST_HASHED {
                return (at, None);
            }
            hashed += self.best().len();
            if hashed > MOST_HASHED {
                return (at, None);
            }
            remove(&at).write_into(self.original, self.best(), &mut text);
            let proof = self.proof_of(&text);
            (at, proof)
        })
    }

    /// Corrects what was known of one removal: the best text without one byte of the sequence of
    /// equal bytes at `at` did not fail, but has failed in another run. It no longer counts as
    /// passing, and the contradiction is recorded.
    pub fn refute(&mut self, at: &Range<usize>) {
        self.contradictions.record();
        self.singles.retain(|single, _| !at.contains(single));
        let mut text = Vec::new();
        remove(at).write_into(self.original, self.best(), &mut text);
        self.unproven.insert(ContentHash::of(&text));
    }

    /// Returns how many bytes of the best (the smallest failing text so far) might still be
    /// replaced by `0`: those that are not `0`, and for which no test has shown that the failure is
    /// gone then. Returns 0 for texts larger than [`Full::SMALL`].
    pub fn untried_values(&self) -> u64 {
        if self.best().len() > Full::SMALL {
            return 0;
        }
        let mut text = self.best().to_vec();
        let mut untried = 0;
        for at in 0..text.len() {
            let byte = std::mem::replace(&mut text[at], Full::LEAST);
            let seen = self.cache.seen(ContentHash::of(&text).text_id());
            let is_needed = seen.is_some_and(|seen| seen.outcome != Outcome::Fail);
            untried += u64::from(byte != Full::LEAST && !is_needed);
            text[at] = byte;
        }
        untried
    }

    /// Returns the kind of step, such as "reduce to complement" or a pass with its name, by which
    /// the search made the last tested candidate; `None` before the first test.
    pub fn rule(&self) -> Option<Rule> {
        self.rule
    }

    /// Returns how many bytes of the best (the smallest failing text so far) are known to be
    /// needed: with one of them removed, the text was tested and did not fail. A certificate of
    /// minimality proves at least as many.
    pub fn singles(&self) -> u64 {
        self.singles.len() as u64
    }

    /// Returns the logged test or check which proves that `text` does not fail; `None` if there is
    /// none.
    fn proof_of(&self, text: &[u8]) -> Option<ProofRef> {
        let hash = ContentHash::of(text);
        let seen = self.cache.seen(hash.text_id())?;
        if seen.outcome == Outcome::Fail || self.unproven.contains(&hash) {
            return None;
        }
        Some(
            seen.test
                .map_or(ProofRef::Check(What::Axiom), ProofRef::Test),
        )
    }
}

impl PendingCandidate {
    /// Returns the candidate's outcome and its source (cache or predictor) if the outcome is known
    /// without a run; `None` if a run is needed.
    pub fn known(&self) -> Option<(Outcome, Source)> {
        let cached = self.hit.map(|hit| (hit.outcome(), Source::Cache));
        cached.or(self.predicted.map(|outcome| (outcome, Source::Predicted)))
    }

    /// Builds the log line of this candidate's test, which has index `i`, from its `text` and the
    /// answer `reply`.
    pub fn test_line(&self, i: u64, text: &[u8], reply: &Reply) -> TestLine {
        TestLine {
            i,
            hash: self.hash.short(),
            edit: (&self.candidate.edit).into(),
            size: text.len() as u64,
            outcome: reply.outcome,
            source: reply.source,
            us: reply.us,
            spent_ms: None,
            pass: match (self.candidate.rule, self.phase) {
                (Rule::Pass(name), None) => Some(name.to_owned()),
                _ => None,
            },
            phase: self.phase,
            cut_off: reply.cut_off,
            process: reply.process,
            slip: reply.slip,
            missed: reply.missed,
            minor: reply.minor,
            comparisons: reply.comparisons.clone(),
            input: reply.log_input.then(|| Base64(text.to_vec())),
            changes: None,
        }
    }

    /// Returns how the candidate is run: whether in a fresh process, and whether the run is
    /// observed.
    pub fn manner(&self) -> Manner {
        Manner::of(&self.candidate, self.phase)
    }

    /// Checks whether the candidate's run reports the operands that it compares, as hints for the
    /// search.
    pub fn is_observed(&self) -> bool {
        self.manner().is_observed()
    }
}

/// Returns [`Kind::Rewriting`] if an edit replaces bytes by other bytes, and [`Kind::Deleting`] if
/// it only deletes bytes.
pub(super) fn kind_of(edit: &Edit) -> Kind {
    match edit {
        Edit::Cut(_) | Edit::Keep(_) => Kind::Deleting,
        Edit::Set(_) => Kind::Rewriting,
    }
}

/// Builds the candidate that removes one byte of the best text from the sequence of equal bytes in
/// the range `at`.
pub(super) fn remove(at: &Range<usize>) -> Candidate {
    let edit = Edit::Cut(std::iter::once(at.start..at.start + 1).collect());
    Candidate {
        rule: Rule::Pass("proof"),
        edit,
        config: None,
        observed: false,
    }
}
