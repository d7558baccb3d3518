//! Feeds the lines of a log to the state of a minimization, and checks each line.

use ddfuzz_delta::{Comparison, Hints, Outcome};
use std::time::Duration;

use crate::log::{
    Base64, CheckLine, ContentHash, EndLine, Line, ReduceLine, Source, TestLine, What,
};
use crate::progress::{Progress, Stage, Votes};
use crate::question::Reply;
use crate::steadiness::{Baseline, judge};
use crate::{CutOff, Process, SlipKeys};

impl Progress<'_> {
    /// Updates the state of the minimization by the next line of its log. `Err` explains why the
    /// line does not follow from earlier lines.
    pub fn feed(&mut self, line: &Line) -> Result<(), String> {
        if matches!(line, Line::Test(_) | Line::Check(_)) {
            // The log ended because of a budget, and was continued with a larger one.
            self.continue_search();
        }
        self.advance_stages();
        let confirms = matches!(line, Line::Check(check) if check.what == What::Confirm);
        if confirms && self.reduction.is_none() {
            self.end_by_budget();
        }
        match line {
            Line::Start(_) => Err("a second start line".to_owned()),
            Line::Check(check) => self.feed_check(check),
            Line::Test(test) => self.feed_test(test),
            Line::Reduce(reduce) => self.feed_reduce(reduce),
            Line::End(end) => self.feed_end(end),
        }
    }

    fn feed_check(&mut self, check: &CheckLine) -> Result<(), String> {
        let fails = check.outcome == Outcome::Fail;
        let failed = u64::from(fails);
        match (self.stage, check.what) {
            _ if self.reduction.is_some() => return Err("the reduce line is missing".to_owned()),
            (Stage::Search | Stage::Proof, What::Vote) => self.feed_vote(check)?,
            (Stage::Baseline, What::Baseline) => {
                // Of runs that were made until the crash came again, the last one has failed, too.
                let again = u64::from(check.missed > 0);
                self.baseline.tries += 1 + check.missed + again;
                self.baseline.hits += failed + again;
                let cpu = check.cpu_us.filter(|_| fails).map(Duration::from_micros);
                self.slowest = self.slowest.max(cpu);
                if self.by_script && fails {
                    self.slept = self.slept.max(Some(Duration::from_micros(check.us)));
                }
                self.read = self.read.max(check.read);
                self.slow |= check.cut_off == Some(CutOff::Time);
                self.stage = match judge(self.baseline, self.slow, self.agreeing) {
                    Baseline::Open => Stage::Baseline,
                    Baseline::Never => Stage::NotFailing(check.outcome),
                    Baseline::Fails { votes } => {
                        self.votes = Votes::none(votes);
                        self.machine.hint(&Hints {
                            read: self.read.and_then(|read| usize::try_from(read).ok()),
                            comparisons: Vec::new(),
                        });
                        Stage::Axiom
                    }
                };
            }
            (Stage::Axiom, What::Axiom) => self.feed_axiom(check),
            (Stage::Repeat, What::Vote) => self.feed_repeat(check.outcome),
            (Stage::Confirm, What::Confirm) => {
                self.confirmed.tries += 1;
                self.confirmed.hits += failed;
                self.minor_after = check.minor.or(self.minor_after);
                if self.confirmed.tries == self.confirmations() {
                    self.stage = self.after_confirmations();
                }
            }
            _ => return Err(format!("no check of this kind is due: {:?}", check.what)),
        }
        self.texts.counts.checks += 1;
        self.texts.note_missed(check.missed);
        self.note(check.slip);
        Ok(())
    }

    /// Returns the stage that follows the last confirmation of the result: runs of the removals on
    /// which a claim rests, or the end of the log. If the best text (the smallest failing so far)
    /// failed in none of its confirmations, the original input is confirmed in its place. If the
    /// result and the empty input both fail in only some runs of an interestingness script, the
    /// minimization ends with an error.
    pub(super) fn after_confirmations(&mut self) -> Stage {
        let steady = self.confirmed.hits == self.confirmed.tries;
        if self.by_script && self.empty_fails && !steady {
            self.empty.hits += self.confirmed.hits;
            self.empty.tries += self.confirmed.tries;
            return Stage::Alternating;
        }
        if self.confirmed.hits == 0 && self.reduced().is_some() {
            self.restored = Some(std::mem::take(&mut self.confirmed));
            self.minor_after = None;
            return Stage::Confirm;
        }
        match steady && self.is_confirmed() && self.begin_repeats() {
            true => Stage::Repeat,
            false => Stage::End,
        }
    }

    fn feed_axiom(&mut self, check: &CheckLine) {
        if self.votes.leaves_open(check.outcome) {
            self.count_vote(check);
            return;
        }
        let cut_off = check.cut_off.or(self.cut_off_before());
        self.texts.record_check(&[], check.outcome, cut_off);
        self.empty.tries = self.votes.without_failure + 1;
        self.empty.hits = u64::from(check.outcome == Outcome::Fail);
        self.votes = Votes::none(self.votes.needed);
        self.stage = match check.outcome == Outcome::Fail {
            // Any input may crash a target, but a script must depend on its input.
            true if self.is_flaky() && self.by_script => Stage::Alternating,
            true => {
                self.empty_fails = true;
                self.texts.take_empty();
                Stage::Confirm
            }
            false => Stage::Search,
        };
    }

    fn feed_vote(&mut self, check: &CheckLine) -> Result<(), String> {
        let pending = self
            .texts
            .pending()
            .filter(|pending| pending.known().is_none());
        if pending.is_none() || !self.votes.leaves_open(check.outcome) {
            return Err("no vote is due".to_owned());
        }
        self.count_vote(check);
        Ok(())
    }

    fn count_vote(&mut self, check: &CheckLine) {
        self.votes.without_failure += 1;
        self.votes.cut_off |= check.cut_off == Some(CutOff::Time);
        self.votes.shared |= check.process == Process::Shared;
    }

    /// Returns [`CutOff::Time`] if an earlier run of the present candidate exceeded its time limit;
    /// else `None`.
    fn cut_off_before(&self) -> Option<CutOff> {
        self.votes.cut_off.then_some(CutOff::Time)
    }

    fn feed_test(&mut self, line: &TestLine) -> Result<(), String> {
        if self.reduction.is_some() {
            return Err("the reduce line is missing".to_owned());
        }
        if !matches!(self.stage, Stage::Search | Stage::Proof) {
            return Err("no test is due".to_owned());
        }
        let reply = Reply::of(line);
        let (Some(pending), Some(expected)) = (self.texts.pending(), self.test_line(&reply)) else {
            return Err("the search asks for no test".to_owned());
        };
        agree(line, &expected)?;
        if pending.is_observed() != line.comparisons.is_some() {
            return Err("its comparisons do not belong to a test that is observed".to_owned());
        }
        self.agree_on_source(line)?;
        // If one vote proves nothing, the whole test proves nothing.
        let whole = Reply {
            cut_off: line.cut_off.or(self.cut_off_before()),
            process: match self.votes.shared {
                true => Process::Shared,
                false => line.process,
            },
            ..reply
        };
        self.votes = Votes::none(self.votes.needed);
        self.reduction = self.texts.commit(&whole);
        if self.reduction.is_some() {
            self.minor = line.minor.or(self.minor);
        }
        self.note(line.slip);
        self.texts.note_missed(line.missed);
        match self.stage {
            Stage::Search => {
                if let Some(comparisons) = &line.comparisons {
                    self.machine.hint(&hints(comparisons));
                }
                self.step(|machine| machine.tell(line.outcome));
            }
            _ if self.reduction.is_some() => {
                self.open = None;
                self.unproven = 0;
            }
            _ => {
                self.open.iter_mut().for_each(|open| drop(open.pop()));
                let proves = whole.cut_off != Some(CutOff::Time) && whole.process.is_own();
                self.unproven += u64::from(!proves);
            }
        }
        Ok(())
    }

    /// Checks a test line against what is known of the pending candidate: if its outcome follows
    /// from earlier lines, without a run or by repeated runs (votes), the line must have this
    /// outcome and say so. `Err` explains the difference.
    fn agree_on_source(&self, line: &TestLine) -> Result<(), String> {
        let known = self.texts.pending().and_then(|pending| pending.known());
        match (known, line.source) {
            (Some((known, source)), of) if (known, source) == (line.outcome, of) => {}
            (Some((known, Source::Predicted)), _) => {
                return Err(format!("the search predicts {known}"));
            }
            (Some((known, _)), _) => return Err(format!("the cache knows this text as {known}")),
            (None, Source::Cache) => return Err("the cache does not know this text".to_owned()),
            (None, Source::Run) if self.votes.leaves_open(line.outcome) => {
                return Err(format!("{} runs of it are missing", self.votes.needed));
            }
            (None, Source::Run | Source::Predicted) => {}
        }
        Ok(())
    }

    fn feed_reduce(&mut self, line: &ReduceLine) -> Result<(), String> {
        match &self.reduction {
            Some(expected) if expected == line => self.reduction = None,
            Some(expected) => {
                return Err(format!("the reduction of test {} differs", expected.i));
            }
            None => return Err("no test failed here".to_owned()),
        }
        Ok(())
    }

    fn feed_end(&mut self, line: &EndLine) -> Result<(), String> {
        if self.reduction.is_some() {
            return Err("the reduce line is missing".to_owned());
        }
        let of_best = || ContentHash::of(self.texts.best());
        match (self.stage, self.confirmed.tries, self.restored) {
            (Stage::Confirm, 0, Some(rate)) if line.blake3 == of_best() => {
                // Logs written before 2026-11-23 ended here, with a best that did not fail again.
                self.restored = None;
                self.confirmed = rate;
                self.stage = Stage::End;
            }
            (Stage::Baseline | Stage::Axiom, ..) => self.end_here(),
            // A budget ends the search and the confirmations at once only if nothing is smaller.
            (Stage::Repeat, ..) => self.end_here(),
            (Stage::Search | Stage::Proof | Stage::Confirm, ..) if self.is_run_again() => {
                self.end_by_budget();
                self.end_here();
            }
            _ => {}
        }
        if self.stage != Stage::End {
            return Err("the end is not due".to_owned());
        }
        let written = self.written_end.take();
        let expected = written.unwrap_or_else(|| self.end_line());
        let mut line = line.clone();
        if self.refuted_before {
            // Logs written before 2026-11-28 may claim more here, which does not hold.
            line.claim = expected.claim;
        }
        follows(&line, &expected)?;
        self.end = Some(line);
        self.stage = Stage::Over;
        Ok(())
    }

    fn note(&mut self, slip: Option<SlipKeys>) {
        self.slips
            .extend(slip.filter(|slip| !self.slips.contains(slip)));
    }
}

/// Converts the comparisons in the log line of a test to hints for the search.
fn hints(comparisons: &[(Base64, Base64)]) -> Hints {
    let pair = |(left, right): &(Base64, Base64)| Comparison {
        left: left.0.clone(),
        right: right.0.clone(),
    };
    Hints {
        read: None,
        comparisons: comparisons.iter().map(pair).collect(),
    }
}

/// Checks an end line of a log: it must equal `expected`, the line that follows from all lines
/// before. `Err` names the first difference.
pub(crate) fn follows(line: &EndLine, expected: &EndLine) -> Result<(), String> {
    let mut tests = line.tests;
    tests.speculative = expected.tests.speculative;
    let proof = (&line.proof, line.proved) != (&expected.proof, expected.proved);
    let differs = [
        (line.size != expected.size, "size"),
        (line.blake3 != expected.blake3, "blake3"),
        (line.passing != expected.passing, "passing end"),
        (line.claim != expected.claim, "claim"),
        (proof, "proof"),
        (tests != expected.tests, "count of tests"),
    ];
    match differs.into_iter().find(|(differs, _)| *differs) {
        Some((_, what)) => Err(format!("its {what} does not follow from the log")),
        None => Ok(()),
    }
}

/// Checks that a logged test is the one that the search asks for. `Err` names the first difference.
pub(crate) fn agree(line: &TestLine, expected: &TestLine) -> Result<(), String> {
    let differs = [
        (line.i != expected.i, "index"),
        (line.edit != expected.edit, "ranges"),
        (line.phase != expected.phase, "phase"),
        (line.pass != expected.pass, "pass"),
        (line.size != expected.size, "size"),
        (line.hash != expected.hash, "hash"),
        (line.input != expected.input, "input"),
    ];
    match differs.into_iter().find(|(differs, _)| *differs) {
        Some((_, what)) => Err(format!("its {what} is not that of test {}", expected.i)),
        None => Ok(()),
    }
}
