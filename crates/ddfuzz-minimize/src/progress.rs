//! The state of a minimization: it takes the lines of a log, and returns the next line, the result,
//! and the status.

mod continuation;
mod feed;
mod repeats;

use ddfuzz_delta::interruption::{Interruption, interruptible};
use ddfuzz_delta::{Candidate, ExtraTests, Full, Outcome, Search, Structure};
use ddfuzz_exec::{TimeLimit, Way};
use ddfuzz_triage::Key;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::candidate_texts::{CandidateTexts, PendingCandidate, remove};
use crate::certificate::count_runs;
use crate::crash_oracle::cut_off_by;
use crate::log::{ContentHash, EndLine, Line, Phase, ReduceLine, StartLine, TestLine, What};
use crate::question::{Manner, Reply};
use crate::steadiness::{
    AGREEING, AGREEING_IN_DOUBT, ESTIMATING, agreeing, confirmations, open_runs,
};
use crate::time_limit::learned;
use crate::{
    Answer, Certificate, Claim, CutOff, Kind, MinimizeError, MinimizePhase, MinimizeStatus,
    Minimized, Proved, Rate, Runs, SlipKeys, Warning, structured_search,
};

pub(super) use continuation::Continuation;
pub(super) use feed::{agree, follows};
use repeats::Repeats;

/// The stage of a minimization. The stages are, in their order: runs of the input, run of the empty
/// input, search, proof of minimality, confirmations of the result, repeated runs of removals on
/// which the claim rests, end line; and two errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Baseline,
    Axiom,
    Search,
    Proof,
    Confirm,
    Repeat,
    End,
    Over,
    NotFailing(Outcome),
    Alternating,
}

/// What the runs of the present candidate have shown so far. If the input is flaky, a candidate
/// counts as not failing only after several runs without failure.
#[derive(Clone, Copy, Debug)]
struct Votes {
    /// Number of runs without failure after which a candidate counts as not failing; 1 unless the
    /// input is flaky.
    needed: u64,
    /// Number of runs of the present candidate without failure so far.
    without_failure: u64,
    /// Whether one of the candidate's runs exceeded its time limit, so that its outcome proves
    /// nothing.
    cut_off: bool,
    shared: bool,
}

impl Votes {
    fn none(needed: u64) -> Votes {
        Votes {
            needed,
            without_failure: 0,
            cut_off: false,
            shared: false,
        }
    }

    /// Returns true if a candidate must be run once more after a run with the outcome `outcome`;
    /// false if that run failed, or if enough runs of the candidate have not failed.
    fn leaves_open(&self, outcome: Outcome) -> bool {
        outcome != Outcome::Fail && self.without_failure + 1 < self.needed
    }
}

/// What a minimization has to do next: run a text, write a line to the log, or stop, with the
/// reason.
pub(super) enum NextStep<'a> {
    /// Run a text as a check, outside of the search; `Progress::due` returns the text.
    Check(What),
    /// Test this candidate of the search or of the proof of minimality.
    Test(&'a PendingCandidate),
    /// Write this line to the log. It follows from earlier lines without a run.
    Write(Line),
    /// Stop: the input does not fail; `last` is the outcome of the last of its `tries` runs.
    NotFailing { last: Outcome, tries: u64 },
    /// Stop: the interestingness test fails in some runs both of the input and of the empty input,
    /// so that its outcome does not depend on the input.
    Alternating { rate: Rate, empty: Rate },
    /// Stop: a step of the search was interrupted, so that the search makes no further candidate.
    Interrupted,
    /// Stop: the log is complete, and there is nothing more to run or to write.
    Nothing,
}

/// The state of a minimization as a pure function of its log: it takes lines and returns the next
/// line. Live, resumed and replayed minimizations use it, so that they agree.
pub(super) struct Progress<'a> {
    texts: CandidateTexts<'a>,
    machine: Box<dyn Search>,
    /// Tells whether the present step of the search is to be interrupted; `None` if no step ever
    /// is.
    interruption: Option<Interruption>,
    /// Whether a step of the search was interrupted, so that the search cannot go on.
    is_interrupted: bool,
    stage: Stage,
    /// The `reduce` line that has to be the next line of the log, because a candidate became the
    /// best (the smallest failing text so far); `None` if no such line is due.
    reduction: Option<ReduceLine>,
    /// Removals of single bytes of the best text (the smallest failing so far) that still have to
    /// be tested to prove the best 1-minimal, the next one last; `None` before the proof begins.
    open: Option<Vec<Candidate>>,
    /// Number of removals of single bytes that were tested for the proof of minimality without a
    /// usable outcome, because the run exceeded its time limit or shared its process with other
    /// runs.
    unproven: u64,
    baseline: Rate,
    /// Whether the time limit has ended a run of the original input (when a hang is minimized, runs
    /// that hang do not count). If so, fewer runs without a failure are made before the
    /// minimization gives up.
    slow: bool,
    /// Number of runs of the original input that must all fail for it to count as failing in every
    /// run.
    agreeing: u64,
    votes: Votes,
    /// CPU time of the slowest failing run of the original input before the search.
    slowest: Option<Duration>,
    /// Wall time of the slowest run of the original input that an interestingness script found
    /// interesting.
    slept: Option<Duration>,
    learns_limit: bool,
    /// Number of bytes of the original input that its runs read; `None` if unknown.
    read: Option<u64>,
    /// Whether an interestingness script or coverage decides whether a candidate fails, instead of
    /// a crash.
    by_script: bool,
    /// The first stage that ended because a budget was used up; `None` if none did.
    ceased: Option<Stage>,
    confirmed: Rate,
    /// Failure rate of the best text (the smallest failing so far) in its confirmations if none of
    /// them failed, so that the original input is the result; else `None`.
    restored: Option<Rate>,
    /// Minimum number of runs that confirm the result, in logs in which the runs behind a claim are
    /// repeated; a long search has more of them. `None` in older logs.
    least_confirmations: Option<u64>,
    /// The removals of single bytes that are run again at the end, because the claim of minimality
    /// rests on them; `None` before these runs begin, and after one of them has failed.
    repeats: Option<Repeats>,
    /// Whether the result did not fail in one of its confirmations when the log ended because a
    /// budget was used up, so that nothing is proven after the search was continued.
    refuted_before: bool,
    /// How often the empty input failed, if an interestingness script runs it several times.
    empty: Rate,
    /// Minor key of the crash of the best (the smallest failing text so far); `None` without a
    /// crash.
    minor: Option<Key>,
    /// Minor key that the crash of every candidate must have; `None` if deleting bytes may change
    /// it.
    held_minor: Option<Key>,
    minor_after: Option<Key>,
    slips: Vec<SlipKeys>,
    empty_fails: bool,
    /// Whether the search also replaces bytes, instead of only deleting them.
    rewrites: bool,
    /// Whether the input is binary data of an unknown format.
    is_binary: bool,
    /// Limit on the memory of a run, in bytes, if the failure that is minimized is that a run
    /// exceeds this limit; `None` for other failures.
    memory_limit: Option<u64>,
    /// The end line that was returned last, to be written; `None` before it is due.
    written_end: Option<EndLine>,
    end: Option<EndLine>,
}

impl<'a> Progress<'a> {
    pub fn new(input: &'a [u8], start: &StartLine) -> Result<Progress<'a>, MinimizeError> {
        let structure = start.structure.as_deref();
        let by_limit = start.key.as_ref().and_then(|key| cut_off_by(&key.class));
        let exceeds = by_limit == Some(CutOff::Memory);
        let by_limit = by_limit.is_some();
        let mut machine = structured_search(&start.search, structure, by_limit, input)?;
        // A script, or a program by its command, is started for each test.
        let is_slow = start.key.is_none() || start.target.way == Way::Command;
        machine.allow_extra_tests(match is_slow {
            _ if start.coverage.is_some() => ExtraTests::None,
            true => ExtraTests::Few,
            false => ExtraTests::Many,
        });
        Ok(Progress {
            texts: CandidateTexts::new(input, start.cache),
            machine,
            interruption: None,
            is_interrupted: false,
            stage: Stage::Baseline,
            reduction: None,
            open: None,
            unproven: 0,
            baseline: Rate::default(),
            slow: false,
            agreeing: agreeing(start.doubtful, start.repeats),
            votes: Votes::none(1),
            slowest: None,
            slept: None,
            read: None,
            learns_limit: start.learn_limit,
            by_script: start.key.is_none(),
            ceased: None,
            confirmed: Rate::default(),
            restored: None,
            least_confirmations: start.least_confirmations(),
            repeats: None,
            refuted_before: false,
            empty: Rate::default(),
            minor: start.key.as_ref().map(|key| key.minor),
            held_minor: start.held_minor(),
            minor_after: None,
            slips: Vec::new(),
            empty_fails: false,
            rewrites: start.search == Full::NAME,
            memory_limit: exceeds.then_some(start.limits.memory),
            is_binary: structure == Some(Structure::BINARY),
            written_end: None,
            end: None,
        })
    }

    /// Sets the flag that interrupts the search: a step of it that is under way, which may take
    /// long on a large file, ends when `flag` turns true.
    pub fn interrupt_by(&mut self, flag: Arc<AtomicBool>) {
        self.interruption = Some(Arc::new(move || flag.load(Ordering::Relaxed)));
    }

    /// Calls `step` with the search, and returns its result; `None` if the search is interrupted
    /// meanwhile, or was before.
    fn step<T>(&mut self, step: impl FnOnce(&mut dyn Search) -> T) -> Option<T> {
        if self.is_interrupted {
            return None;
        }
        let machine = &mut self.machine;
        let done = interruptible(self.interruption.as_ref(), || step(machine.as_mut()));
        self.is_interrupted = done.is_none();
        done
    }

    pub fn texts(&self) -> &CandidateTexts<'a> {
        &self.texts
    }

    /// Returns the minor key (call path) of the crash of the best text (the smallest failing so
    /// far); `None` without a crash.
    pub fn minor(&self) -> Option<Key> {
        self.minor
    }

    /// Sets the outcome of an answer whose crash has the class and major key (bug) being minimized,
    /// by the minor key (hash of the call path): FAIL if it is the required one, else UNRESOLVED.
    /// If bytes were rewritten, the minor key must be that of the best text (the smallest failing
    /// so far); if bytes were only deleted, it may change, unless the minimization holds the minor
    /// key.
    pub fn judge_minor_key(&self, answer: &mut Answer) {
        let Some(minor) = answer.minor else {
            return;
        };
        let rewrites = matches!(
            self.due(),
            Some((
                Manner::Test {
                    kind: Kind::Rewriting,
                    ..
                },
                _
            ))
        );
        let wanted = if rewrites {
            self.minor
        } else {
            self.held_minor
        };
        if wanted.is_none_or(|wanted| wanted == minor) {
            answer.outcome = Outcome::Fail;
        } else {
            (answer.outcome, answer.minor) = (Outcome::Unresolved, None);
        }
    }

    /// Returns the keys of all crashes of other bugs that candidates had so far.
    pub fn slips(&self) -> &[SlipKeys] {
        &self.slips
    }

    /// Returns what the minimization would return now: the best text, or the original input if the
    /// best text did not fail again when it was confirmed.
    pub fn result(&self) -> &[u8] {
        match self.restored {
            Some(_) => self.texts.original(),
            None => self.texts.best(),
        }
    }

    /// Returns the present result if it differs from the original input; `None` before the first
    /// reduction, and if the best text (the smallest failing so far) did not fail again.
    pub fn reduced(&self) -> Option<&[u8]> {
        let best = self.result();
        (best.len() < self.texts.original().len() || best != self.texts.original()).then_some(best)
    }

    /// Returns the end line of the log; `None` before the end.
    pub fn end(&self) -> Option<&EndLine> {
        self.end.as_ref().filter(|_| self.stage == Stage::Over)
    }

    /// Ends the search, or the proof of minimality after it, because a budget is used up. The
    /// smallest failing text so far is then the result, and the next runs confirm it.
    pub fn end_by_budget(&mut self) {
        if matches!(self.stage, Stage::Search | Stage::Proof) {
            self.ceased = Some(self.stage);
            self.stage = Stage::Confirm;
        }
    }

    /// Ends the present stage because the budget of time is used up, and returns true. Returns
    /// false, and the minimization goes on, if one more run is needed whatever the time: of the
    /// input, which has not failed yet (unless `is_shown`: the caller has seen it fail), or of a
    /// result that is smaller than the input and was not run again after the search.
    pub fn end_by_time(&mut self, is_shown: bool) -> bool {
        let before = self.stage;
        self.end_by_budget();
        let may_end = match self.stage {
            Stage::Baseline => is_shown || self.baseline.hits > 0,
            Stage::Axiom | Stage::Repeat => true,
            Stage::Confirm => self.is_run_again(),
            _ => false,
        };
        if may_end {
            self.end_here();
        }
        // What was due in a search that has ended is due no longer.
        self.stage != before
    }

    /// Checks whether the result needs no further run after the search: it was run again, or it is
    /// the original input, for which the runs before the search suffice.
    fn is_run_again(&self) -> bool {
        self.confirmed.tries > 0 || self.reduced().is_none()
    }

    /// Ends the present stage before all its runs are made, because the budget of time is used up,
    /// and begins the next one.
    fn end_here(&mut self) {
        self.ceased = self.ceased.or(Some(match self.stage {
            Stage::Repeat => Stage::Confirm,
            stage => stage,
        }));
        self.stage = match self.stage {
            Stage::Confirm if self.confirmed.tries > 0 => self.after_confirmations(),
            _ => Stage::End,
        };
        if self.stage == Stage::Confirm {
            // The original input, whose runs before the search have to do.
            self.stage = Stage::End;
        }
    }

    /// Checks whether the budget of time was used up before the search began, during the first runs
    /// of the input.
    fn is_unsearched(&self) -> bool {
        matches!(self.ceased, Some(Stage::Baseline | Stage::Axiom))
    }

    /// Returns true if the result was run again [`confirmations`](Progress::confirmations) times,
    /// and if those removals of single bytes that were chosen to be repeated were run again.
    fn is_confirmed(&self) -> bool {
        self.confirmed.tries >= self.confirmations() && self.are_repeats_done()
    }

    /// Checks whether the log ended because a budget was used up.
    pub fn ended_by_budget(&self) -> bool {
        self.stage == Stage::Over && self.ceased.is_some()
    }

    /// Continues the search if a budget has ended it; otherwise does nothing. Confirmations of the
    /// result so far are forgotten, except that a confirmation that did not fail still counts as a
    /// contradiction.
    pub fn continue_search(&mut self) {
        if self.stage == Stage::Over
            && let Some(stage) = self.ceased.take()
        {
            self.stage = stage;
            self.refuted_before |=
                self.confirmed.hits < self.confirmed.tries || self.restored.is_some();
            self.confirmed = Rate::default();
            (self.restored, self.repeats) = (None, None);
            (self.written_end, self.end) = (None, None);
        }
    }

    /// Returns the time limit learned from the runs of the input; `None` if none is learned, or not
    /// yet.
    pub fn time_limit(&self) -> Option<TimeLimit> {
        let known = self.learns_limit && self.stage != Stage::Baseline;
        let slowest = self.slowest.filter(|_| known)?;
        Some(learned(slowest, self.slept))
    }

    /// Returns the number of runs without failure after which a candidate counts as not failing;
    /// more than one only if the input is flaky.
    pub fn votes(&self) -> u64 {
        self.votes.needed
    }

    /// Checks whether a run of the pending candidate with the outcome `outcome` does not decide its
    /// test, so that the candidate is run again and this run is logged as a vote. That happens only
    /// if the input is flaky.
    pub fn is_vote(&self, outcome: Outcome) -> bool {
        self.votes.leaves_open(outcome)
    }

    fn is_flaky(&self) -> bool {
        self.baseline.hits < self.baseline.tries
    }

    /// Returns true if two runs of one text had different outcomes, or if the log had a result
    /// before the search was continued, and one of its confirming runs did not fail.
    fn is_contradicted(&self) -> bool {
        self.refuted_before || self.texts.is_contradicted()
    }

    /// Returns how many times the result has to be run again at the end, to confirm that it fails.
    fn confirmations(&self) -> u64 {
        match (
            self.is_flaky() || self.texts.is_contradicted(),
            self.least_confirmations,
        ) {
            (true, _) => ESTIMATING,
            _ if self.restored.is_some() => AGREEING_IN_DOUBT,
            (_, Some(least)) => confirmations(self.texts.counts.executed, least),
            (_, None) => AGREEING,
        }
    }

    /// Returns the next step of the minimization: run a check, test a candidate, write a line, or
    /// stop.
    pub fn next_step(&mut self) -> NextStep<'_> {
        self.advance_stages();
        if let Some(line) = &self.reduction {
            return NextStep::Write(Line::Reduce(line.clone()));
        }
        if self.stage == Stage::End {
            let end = self.end_line();
            self.written_end = Some(end.clone());
            return NextStep::Write(Line::End(end));
        }
        let texts = &self.texts;
        match self.stage {
            Stage::Baseline => NextStep::Check(What::Baseline),
            Stage::Axiom => NextStep::Check(What::Axiom),
            Stage::Confirm => NextStep::Check(What::Confirm),
            Stage::Repeat => NextStep::Check(What::Vote),
            Stage::NotFailing(last) => NextStep::NotFailing {
                last,
                tries: self.baseline.tries,
            },
            Stage::Alternating => NextStep::Alternating {
                rate: self.baseline,
                empty: self.empty,
            },
            Stage::Search | Stage::Proof => match texts.pending() {
                Some(pending) => NextStep::Test(pending),
                None if self.is_interrupted => NextStep::Interrupted,
                None => NextStep::Nothing,
            },
            Stage::End | Stage::Over => NextStep::Nothing,
        }
    }

    /// Makes the next candidate of the search, or of the proof of minimality after it, the pending
    /// one. If there are no more candidates, begins the next stage.
    fn advance_stages(&mut self) {
        if self.reduction.is_some() {
            return;
        }
        if self.stage == Stage::Search {
            match self.step(|machine| machine.next().map(|next| (next, machine.predicted()))) {
                Some(Some((candidate, predicted))) => {
                    self.texts.ask(candidate, None, predicted);
                }
                Some(None) => self.stage = Stage::Proof,
                None => return,
            }
        }
        if self.stage == Stage::Proof {
            let texts = &self.texts;
            let open = self.open.get_or_insert_with(|| {
                let removals = texts.single_removals();
                let missing = removals.filter(|(_, proof)| proof.is_none());
                let mut missing: Vec<_> = missing.map(|(at, _)| remove(&at)).collect();
                missing.reverse();
                missing
            });
            match open.last().cloned() {
                Some(candidate) => {
                    self.texts.ask(candidate, Some(Phase::Proof), None);
                }
                None => self.stage = Stage::Confirm,
            }
        }
    }

    /// Builds the log line of the pending candidate's test from the answer `reply`; `None` if no
    /// candidate is pending.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        self.texts.test_line(reply)
    }

    /// Builds the end line of the log. It claims minimality only if every run of the input and of
    /// the result failed, the result was run as often as it takes to confirm it, and no text had
    /// contradictory outcomes. Nothing is proven for a flaky input, nor if the original input is
    /// the result because the best text (the smallest failing so far) did not fail again.
    pub(super) fn end_line(&self) -> EndLine {
        let best = self.result();
        let certificate = match self.is_flaky() || self.restored.is_some() {
            true => Certificate::without_proof(best),
            false => self.texts.certificate(),
        };
        let confirmed = self.confirmed.hits == self.confirmed.tries && self.is_confirmed();
        let reproducible = confirmed && !self.is_contradicted() && !self.is_flaky();
        EndLine {
            claim: match reproducible && self.restored.is_none() {
                true => certificate.claim(),
                false => Claim::BestSoFar,
            },
            size: best.len() as u64,
            blake3: ContentHash::of(best),
            tests: self.texts.counts,
            proved: certificate.proved(),
            proof: certificate.proof().to_vec(),
            passing: None,
        }
    }

    /// Returns the warnings about the result; `claim` is what is claimed of the result.
    fn warnings(&self, claim: Claim) -> Vec<Warning> {
        let size = self.result().len() as u64;
        let untried = match self.rewrites && claim != Claim::BestSoFar {
            true => self.texts.untried_values(),
            false => 0,
        };
        let all = [
            (
                self.empty_fails && self.restored.is_none(),
                match self.memory_limit {
                    Some(limit) => Warning::MemoryLimit { limit },
                    None => Warning::EmptyInputFails,
                },
            ),
            (self.is_unsearched(), Warning::Unsearched),
            (
                !self.is_unsearched() && self.restored.is_none() && !self.is_confirmed(),
                Warning::Unconfirmed {
                    rate: self.confirmed,
                    unrepeated: self.unrepeated(),
                },
            ),
            (
                self.is_flaky() && !self.is_unsearched(),
                Warning::FlakyInput {
                    rate: self.baseline,
                    votes: self.votes.needed,
                },
            ),
            (
                self.confirmed.hits < self.confirmed.tries,
                Warning::FlakyResult {
                    rate: self.confirmed,
                },
            ),
            (
                self.restored.is_some(),
                Warning::Restored {
                    size: self.texts.best().len() as u64,
                },
            ),
            (
                !self.is_flaky() && self.is_contradicted(),
                Warning::Contradicted,
            ),
            (untried > 0, Warning::Values { untried }),
            (
                self.is_binary && size > Full::LARGEST_RECORDS as u64,
                Warning::Unstructured { size },
            ),
        ];
        let holding = all.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, warning)| warning).collect()
    }

    /// Returns the result of the minimization; `None` if the minimization has not ended yet.
    pub fn minimized(&self) -> Option<Minimized> {
        let end = self.end()?;
        Some(Minimized {
            text: self.result().to_vec(),
            claim: end.claim,
            proved: end.proved,
            size_before: self.texts.original().len() as u64,
            counts: end.tests,
            baseline: self.baseline,
            confirmed: self.confirmed,
            minor_after: self.minor_after,
            slips: self.slips.clone(),
            warnings: self.warnings(end.claim),
        })
    }

    /// Returns the status for a progress display. It may count fewer removals as proven than the
    /// certificate does, because no texts are hashed to count them.
    pub fn standing(&self) -> MinimizeStatus {
        let texts = self.texts();
        let of = match self.restored {
            Some(_) => count_runs(self.result()),
            None => texts.removals(),
        };
        let done = match (self.end(), &self.open) {
            (Some(end), _) => end.proved.done,
            _ if self.is_flaky() || self.restored.is_some() => 0,
            (None, Some(open)) => of.saturating_sub(open.len() as u64 + self.unproven),
            (None, None) => texts.singles().min(of),
        };
        let proved = Proved { done, of };
        let (phase, runs) = match self.stage {
            Stage::Baseline | Stage::Axiom | Stage::NotFailing(_) | Stage::Alternating => {
                let done = self.baseline.tries;
                let open = open_runs(self.baseline, self.slow, self.agreeing);
                // One more: that of the empty input.
                let of = done + open + 1;
                (MinimizePhase::Baseline, Some(Runs { done, of }))
            }
            Stage::Search => (MinimizePhase::Search(texts.rule()), None),
            Stage::Proof => (MinimizePhase::Proof, None),
            Stage::Confirm | Stage::Repeat | Stage::End | Stage::Over => {
                (MinimizePhase::Confirm, Some(self.confirming(proved)))
            }
        };
        MinimizeStatus {
            phase,
            size: self.result().len() as u64,
            size_before: texts.original().len() as u64,
            executed: texts.counts.executed,
            checks: texts.counts.checks,
            proved,
            runs,
        }
    }
}
