//! The state of a minimization: from the lines of a log to the line that comes next, to the result,
//! and to its status for whoever watches it.

mod continuation;
mod feed;

use ddfuzz_delta::{Candidate, Full, Outcome, Search};
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::Key;
use std::time::Duration;

use crate::candidate_texts::{CandidateTexts, PendingCandidate, remove};
use crate::certificate::runs;
use crate::log::{ContentHash, EndLine, Line, Phase, ReduceLine, StartLine, TestLine, What};
use crate::question::{Manner, Reply};
use crate::steadiness::{AGREEING, ESTIMATING, agreeing};
use crate::time_limit::learned;
use crate::{
    Answer, Claim, Kind, MinimizePhase, MinimizeStatus, Minimized, Proved, Rate, SlipKeys,
    UnknownSearch, Warning, search_by_name,
};

pub(super) use continuation::Continuation;
pub(super) use feed::{agree, follows};

/// The stage of a minimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Baseline,
    Axiom,
    Search,
    Proof,
    Confirm,
    End,
    Over,
    NotFailing(Outcome),
    Alternating,
}

/// The runs of what is asked just now.
#[derive(Clone, Copy, Debug)]
struct Votes {
    /// So many runs that do not fail are an outcome.
    needed: u64,
    /// So many have been made.
    cast: u64,
    /// One of them proves nothing, as if it were a whole test.
    cut_off: bool,
    shared: bool,
}

impl Votes {
    fn none(needed: u64) -> Votes {
        Votes {
            needed,
            cast: 0,
            cut_off: false,
            shared: false,
        }
    }

    /// Whether a run with this outcome leaves the question open.
    fn leaves_open(&self, outcome: Outcome) -> bool {
        outcome != Outcome::Fail && self.cast + 1 < self.needed
    }
}

/// The next step of a minimization.
pub(super) enum NextStep<'a> {
    /// Run a text as a check, outside of the search: `Progress::due`.
    Check(What),
    /// Test this candidate.
    Test(&'a PendingCandidate),
    /// Write this line, which follows from those before it.
    Write(Line),
    /// Nothing: the input does not fail.
    NotFailing { last: Outcome, tries: u64 },
    /// Nothing: now and then the test fails, whatever it is given.
    Alternating { rate: Rate, empty: Rate },
    /// Nothing: the log is whole.
    Nothing,
}

/// A minimization as a pure function of its log: fed with lines, it says which line comes next.
/// Live, resumed and replayed minimizations all go through it, so that none can differ.
pub(super) struct Progress {
    texts: CandidateTexts,
    machine: Box<dyn Search>,
    stage: Stage,
    /// A reduction whose line is due.
    reduction: Option<ReduceLine>,
    /// Removals still to be proven of the current best, the next one last.
    open: Option<Vec<Candidate>>,
    /// So many of them were asked in the proof, and are not proven all the same.
    unproven: u64,
    baseline: Rate,
    /// A run of the input was cut off in time.
    slow: bool,
    /// So many runs of the input have to agree.
    agreeing: u64,
    votes: Votes,
    /// CPU time of the slowest run of the input that failed.
    slowest: Option<Duration>,
    /// Wall time of the slowest run of the input that a script found interesting.
    slept: Option<Duration>,
    learns_limit: bool,
    /// So much of the input was read, in bytes.
    read: Option<u64>,
    /// A script or coverage decides, and no crash.
    by_script: bool,
    /// What a budget has ended.
    ceased: Option<Stage>,
    confirmed: Rate,
    /// The rate of the best where it failed in none of its confirmations, so that the input as given
    /// is the result.
    restored: Option<Rate>,
    /// Of the empty input, where a script found it interesting.
    empty: Rate,
    /// The minor key of the best.
    minor: Option<Key>,
    /// The minor key that has to stay, however a candidate is made.
    held_minor: Option<Key>,
    minor_after: Option<Key>,
    slips: Vec<SlipKeys>,
    empty_fails: bool,
    /// The search writes values, too.
    rewrites: bool,
    end: Option<EndLine>,
}

impl Progress {
    pub fn new(input: &[u8], start: &StartLine) -> Result<Progress, UnknownSearch> {
        Ok(Progress {
            texts: CandidateTexts::new(input, start.cache),
            machine: search_by_name(&start.search, input)?,
            stage: Stage::Baseline,
            reduction: None,
            open: None,
            unproven: 0,
            baseline: Rate::default(),
            slow: false,
            agreeing: agreeing(start.doubtful),
            votes: Votes::none(1),
            slowest: None,
            slept: None,
            read: None,
            learns_limit: start.learn_limit,
            by_script: start.key.is_none(),
            ceased: None,
            confirmed: Rate::default(),
            restored: None,
            empty: Rate::default(),
            minor: start.key.as_ref().map(|key| key.minor),
            held_minor: (start.key.as_ref())
                .filter(|_| start.hold_minor)
                .map(|key| key.minor),
            minor_after: None,
            slips: Vec::new(),
            empty_fails: false,
            rewrites: start.search == Full::NAME,
            end: None,
        })
    }

    pub fn texts(&self) -> &CandidateTexts {
        &self.texts
    }

    /// The minor key of the best, where a crash is held.
    pub fn minor(&self) -> Option<Key> {
        self.minor
    }

    /// Decides by the minor key what the answer to the question that is due means: that of the best
    /// has to stay where bytes were rewritten, and it may move where they were only deleted, unless
    /// it is held.
    pub fn weigh(&self, answer: &mut Answer) {
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

    /// The keys of all slips so far.
    pub fn slips(&self) -> &[SlipKeys] {
        &self.slips
    }

    /// The result as things stand: the best, unless it did not fail again.
    pub fn result(&self) -> &[u8] {
        match self.restored {
            Some(_) => self.texts.original(),
            None => self.texts.best(),
        }
    }

    /// The best so far; `None` before its first reduction, and where it did not fail again.
    pub fn reduced(&self) -> Option<&[u8]> {
        let best = self.result();
        (best.len() < self.texts.original().len() || best != self.texts.original()).then_some(best)
    }

    /// The last line, once it is known.
    pub fn end(&self) -> Option<&EndLine> {
        self.end.as_ref().filter(|_| self.stage == Stage::Over)
    }

    /// A budget is used up: no more tests, what is best now is the result.
    pub fn cease(&mut self) {
        if matches!(self.stage, Stage::Search | Stage::Proof) {
            self.ceased = Some(self.stage);
            self.stage = Stage::Confirm;
        }
    }

    /// Whether the log ends only because a budget did.
    pub fn can_go_on(&self) -> bool {
        self.stage == Stage::Over && self.ceased.is_some()
    }

    /// Continues after an end by a budget.
    pub fn go_on(&mut self) {
        if self.stage == Stage::Over
            && let Some(stage) = self.ceased.take()
        {
            self.stage = stage;
            self.confirmed = Rate::default();
            self.restored = None;
            self.end = None;
        }
    }

    /// The limit on the time of a run that the runs of the input have taught.
    pub fn time_limit(&self) -> Option<TimeLimit> {
        let known = self.learns_limit && self.stage != Stage::Baseline;
        let slowest = self.slowest.filter(|_| known)?;
        Some(learned(slowest, self.slept))
    }

    /// Runs that a candidate takes which does not fail.
    pub fn votes(&self) -> u64 {
        self.votes.needed
    }

    /// Whether a run of the candidate asked with this outcome is one vote of several.
    pub fn is_vote(&self, outcome: Outcome) -> bool {
        self.votes.leaves_open(outcome)
    }

    fn is_flaky(&self) -> bool {
        self.baseline.hits < self.baseline.tries
    }

    /// Runs of the result.
    fn confirmations(&self) -> u64 {
        match self.is_flaky() || self.texts.is_contradicted() {
            true => ESTIMATING,
            false if self.restored.is_some() => agreeing(true),
            false => AGREEING,
        }
    }

    /// The next step of a minimization.
    pub fn next_step(&mut self) -> NextStep<'_> {
        self.pass_finished_stages();
        if let Some(line) = &self.reduction {
            return NextStep::Write(Line::Reduce(line.clone()));
        }
        let texts = &self.texts;
        match self.stage {
            Stage::Baseline => NextStep::Check(What::Baseline),
            Stage::Axiom => NextStep::Check(What::Axiom),
            Stage::Confirm => NextStep::Check(What::Confirm),
            Stage::NotFailing(last) => NextStep::NotFailing {
                last,
                tries: self.baseline.tries,
            },
            Stage::Alternating => NextStep::Alternating {
                rate: self.baseline,
                empty: self.empty,
            },
            Stage::End => NextStep::Write(Line::End(self.end_line())),
            Stage::Search | Stage::Proof => match texts.pending() {
                Some(pending) => NextStep::Test(pending),
                None => NextStep::Nothing,
            },
            Stage::Over => NextStep::Nothing,
        }
    }

    /// Leaves the search and the proof where they have no more questions, and else asks.
    fn pass_finished_stages(&mut self) {
        if self.reduction.is_some() {
            return;
        }
        if self.stage == Stage::Search {
            match self.machine.next() {
                Some(candidate) => {
                    self.texts.ask(candidate, None);
                }
                None => self.stage = Stage::Proof,
            }
        }
        if self.stage == Stage::Proof {
            let texts = &self.texts;
            let open = self.open.get_or_insert_with(|| {
                let certificate = texts.certificate();
                let missing = certificate
                    .removals()
                    .iter()
                    .rev()
                    .filter(|one| one.proof.is_none());
                missing.map(|removal| remove(&removal.at)).collect()
            });
            match open.last().cloned() {
                Some(candidate) => {
                    self.texts.ask(candidate, Some(Phase::Proof));
                }
                None => self.stage = Stage::Confirm,
            }
        }
    }

    /// The line of the test being asked, with this answer.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        self.texts.test_line(reply)
    }
}

impl Progress {
    /// The last line. It makes a claim only where every run of the input and of the result failed,
    /// and no text ended in two ways. Nothing is proven of a flaky input, whose candidates may fail
    /// in other runs, nor where the best did not fail again and the input is the result.
    pub(super) fn end_line(&self) -> EndLine {
        let certificate = self.texts.certificate();
        let best = self.result();
        let confirmed = self.confirmed.hits == self.confirmed.tries;
        let reproducible = confirmed && !self.texts.is_contradicted();
        let (claim, proved, proof) = match self.is_flaky() {
            _ if self.restored.is_some() => {
                let of = runs(best).count() as u64;
                (Claim::BestSoFar, Proved { done: 0, of }, Vec::new())
            }
            true => {
                let of = certificate.proved().of;
                (Claim::BestSoFar, Proved { done: 0, of }, Vec::new())
            }
            false if reproducible => (
                certificate.claim(),
                certificate.proved(),
                certificate.proof(),
            ),
            false => (Claim::BestSoFar, certificate.proved(), certificate.proof()),
        };
        EndLine {
            claim,
            size: best.len() as u64,
            blake3: ContentHash::of(best),
            tests: self.texts.counts,
            proved,
            proof,
            passing: None,
        }
    }

    /// The result, once the log is whole.
    pub fn minimized(&self) -> Option<Minimized> {
        let end = self.end()?;
        let untried = match self.rewrites && end.claim != Claim::BestSoFar {
            true => self.texts.untried_values(),
            false => 0,
        };
        let warnings = [
            (
                self.empty_fails && self.restored.is_none(),
                Warning::EmptyInputFails,
            ),
            (
                self.is_flaky(),
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
                !self.is_flaky() && self.texts.is_contradicted(),
                Warning::Contradicted,
            ),
            (untried > 0, Warning::Values { untried }),
        ];
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
            warnings: warnings
                .into_iter()
                .filter(|(holds, _)| *holds)
                .map(|one| one.1)
                .collect(),
        })
    }
}

impl Progress {
    /// The status. Unlike the certificate it counts proofs without hashing texts.
    pub fn standing(&self) -> MinimizeStatus {
        let texts = self.texts();
        let of = runs(self.result()).count() as u64;
        let done = match (self.end(), &self.open) {
            (Some(end), _) => end.proved.done,
            _ if self.is_flaky() || self.restored.is_some() => 0,
            (None, Some(open)) => of.saturating_sub(open.len() as u64 + self.unproven),
            (None, None) => texts.singles().min(of),
        };
        MinimizeStatus {
            doing: match self.stage {
                Stage::Baseline | Stage::Axiom | Stage::NotFailing(_) | Stage::Alternating => {
                    MinimizePhase::Baseline
                }
                Stage::Search => MinimizePhase::Search(texts.rule()),
                Stage::Proof => MinimizePhase::Proof,
                Stage::Confirm | Stage::End | Stage::Over => MinimizePhase::Confirm,
            },
            size: self.result().len() as u64,
            size_before: texts.original().len() as u64,
            executed: texts.counts.executed,
            checks: texts.counts.checks,
            proved: Proved { done, of },
        }
    }
}
