//! The state of a search between a passing and a failing side: it takes the lines of a log, and
//! returns the next line and the result.

use ddfuzz_delta::{Config, Dd, Outcome, Rule, Search};

use crate::candidate_texts::PendingCandidate;
use crate::isolate::driver::record_of;
use crate::isolate::sides::{Side, Sides, kept, refuted_by};
use crate::isolate::{Isolated, IsolationWarning, Subject};
use crate::log::{
    CheckLine, ContentHash, EndLine, Goal, Line, LogError, PassingEnd, Phase, ReduceLine, Source,
    StartLine, TestLine, What,
};
use crate::progress::{agree, follows};
use crate::question::Reply;
use crate::steadiness::{AGREEING, agreeing, confirmations};
use crate::{Claim, MinimizeError, Proved, Rate, SlipKeys};

/// The stage of a search between a passing and a failing side. The stages are listed in their
/// order. The last two are not stages but errors: the failing input does not fail, or the passing
/// one fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Baseline,
    Axiom,
    Search,
    /// The proof: single parts of the difference between the two sides are tested, to show that
    /// none of them can be left out, or added, as the claim about the result says.
    Proof,
    /// Confirmation: the text of this side is run again to confirm its outcome.
    Confirm(Side),
    End,
    Over,
    /// Error: the failing input failed in none of its first runs; holds the outcome of the last
    /// one.
    NotFailing(Outcome),
    /// Error: the passing input fails.
    NotPassing,
}

/// The next step of a search between a passing and a failing side: what to run or to write, or why
/// to stop.
pub(super) enum NextStep<'a> {
    /// The caller is to test this candidate, of the search or of the proof that the result is
    /// minimal.
    Test {
        pending: &'a PendingCandidate,
        text: &'a [u8],
    },
    /// Run this text as a check, outside of the search.
    Check { what: What, text: &'a [u8] },
    /// Write this line to the log. It follows from earlier lines without a run.
    Write(Line),
    /// Stop with an error: the failing input does not fail, or the passing one does.
    Stop(MinimizeError),
    /// Stop: the log is complete, and there is nothing more to run or to write.
    Nothing,
}

/// The state of a search between a passing and a failing side as a pure function of its log: it is
/// given the log's lines and returns the next line. Live, resumed and replayed searches use it, so
/// that they agree.
pub(super) struct Progress {
    sides: Sides,
    machine: Dd,
    goal: Goal,
    stage: Stage,
    /// The side that has changed and the `reduce` line that therefore has to be next in the log;
    /// `None` if no line is due.
    moved: Option<(Side, ReduceLine)>,
    /// Tests of single deltas (bytes or edits) that still have to be made to prove a claim, the
    /// next one last; `None` before the proof, and after a test that refuted the claim.
    open: Option<Vec<(Rule, Config)>>,
    /// Number of runs of the failing input that are made before the search.
    agreeing: u64,
    baseline: Rate,
    /// Minimum number of runs that confirm each side; a long search has more of them, in proportion
    /// to its tests. `None` in older logs, where each side is confirmed three times.
    least_confirmations: Option<u64>,
    confirmed_passing: Rate,
    confirmed_failing: Rate,
    /// Whether a confirmation of one side did not have the expected outcome when the log ended
    /// because a budget was used up, so that nothing is proven after the search was continued.
    refuted_before: bool,
    slips: Vec<SlipKeys>,
    /// The first stage that ended because a budget was used up; `None` if none did.
    ceased: Option<Stage>,
    /// The end line that was returned last, to be written; `None` before it is due.
    written_end: Option<EndLine>,
    end: Option<EndLine>,
}

impl Progress {
    /// Makes the state at the start of a log about the inputs of `subject`.
    ///
    /// # Errors
    /// If the start line belongs to other inputs or to another search.
    pub fn new(subject: &Subject, start: &StartLine) -> Result<Progress, LogError> {
        let record = record_of(subject, start)?;
        let (subject, deltas) = (subject.clone(), subject.deltas());
        Ok(Progress {
            machine: Dd::new(deltas, record.goal.mode()),
            sides: Sides::new(subject, record, start.cache),
            goal: record.goal,
            stage: Stage::Baseline,
            moved: None,
            open: None,
            agreeing: agreeing(start.doubtful, start.repeats),
            baseline: Rate::default(),
            least_confirmations: start.least_confirmations(),
            confirmed_passing: Rate::default(),
            confirmed_failing: Rate::default(),
            refuted_before: false,
            slips: Vec::new(),
            ceased: None,
            written_end: None,
            end: None,
        })
    }

    pub fn sides(&self) -> &Sides {
        &self.sides
    }

    /// Returns the keys of all crashes of other bugs that candidates had so far.
    pub fn slips(&self) -> &[SlipKeys] {
        &self.slips
    }

    /// Ends the search, or the proof of the claim after it, because a budget is used up. The
    /// present passing and failing side are then the result, which is still confirmed.
    pub fn end_by_budget(&mut self) {
        if matches!(self.stage, Stage::Search | Stage::Proof) {
            self.ceased = self.ceased.or(Some(self.stage));
            self.stage = self.confirmation();
        }
    }

    /// Ends the runs before the search, or the confirmations after it, because the budget of time
    /// is used up. Runs that are necessary are still made: one failing run of the failing input
    /// (not if the caller has seen it fail: `is_shown`), one run of the passing input, and one
    /// confirmation of each side that the search has changed.
    pub fn end_by_time(&mut self, is_shown: bool) {
        self.advance_stages();
        if self.moved.is_some() {
            return;
        }
        if self.stage == Stage::Baseline && (is_shown || self.baseline.hits > 0) {
            self.end_here(Stage::Axiom);
        }
        self.end_confirmations();
    }

    /// Ends the confirmation of the failing side early, and then that of the passing side, each if
    /// it is not needed any more ([`is_run_again`](Self::is_run_again)). Stops at the first side
    /// that still needs a run, whose confirmation goes on.
    fn end_confirmations(&mut self) {
        while let Stage::Confirm(side) = self.stage
            && self.is_run_again(side)
        {
            self.end_here(match side {
                Side::Failing => Stage::Confirm(Side::Passing),
                Side::Passing => Stage::End,
            });
        }
    }

    /// Ends the present stage before all its runs are made, and begins the stage `next`.
    fn end_here(&mut self, next: Stage) {
        self.ceased = self.ceased.or(Some(self.stage));
        self.stage = next;
    }

    /// Returns true if `side` was run again after the search, to confirm its outcome, or needs no
    /// such run because it is still the input with which the search began. Else returns false.
    fn is_run_again(&self, side: Side) -> bool {
        let sides = &self.sides;
        match side {
            Side::Passing => self.confirmed_passing.tries > 0 || sides.pass == Config::empty(),
            Side::Failing => {
                let whole = Config::all(sides.subject.deltas());
                self.confirmed_failing.tries > 0 || sides.fail == whole
            }
        }
    }

    /// Checks whether the passing side is being confirmed although the confirmations of the failing
    /// side, which come first, are not complete.
    pub fn confirms_passing_early(&self) -> bool {
        let is_isolated = self.confirmation() == Stage::Confirm(Side::Failing);
        let is_passing = self.stage == Stage::Confirm(Side::Passing);
        is_isolated && is_passing && self.confirmed_failing.tries < self.confirmations()
    }

    /// Returns true if the budget of time was used up by the runs before the search, so that there
    /// was no search.
    fn is_unsearched(&self) -> bool {
        self.ceased == Some(Stage::Baseline)
    }

    /// Checks whether both sides were run again [`confirmations`](Progress::confirmations) times;
    /// for `max`, only the passing side.
    fn is_confirmed(&self) -> bool {
        let needed = self.confirmations();
        let failing = match self.goal {
            Goal::Maximize => needed,
            Goal::Isolate => self.confirmed_failing.tries,
        };
        failing.min(self.confirmed_passing.tries) >= needed
    }

    /// Returns how many times each of the two sides has to be run again at the end of the search,
    /// to confirm its outcome.
    fn confirmations(&self) -> u64 {
        match self.least_confirmations {
            Some(least) => confirmations(self.sides.counts.executed, least),
            None => AGREEING,
        }
    }

    /// Checks whether the log ended because a budget was used up.
    pub fn ended_by_budget(&self) -> bool {
        self.stage == Stage::Over && self.ceased.is_some()
    }

    /// Continues the search if the log ended because a budget was used up; otherwise does nothing.
    /// If a confirming run of that earlier result had another outcome than expected, the failure
    /// counts as contradicted from then on.
    pub fn continue_search(&mut self) {
        if self.stage == Stage::Over
            && let Some(stage) = self.ceased.take()
        {
            self.stage = match stage {
                Stage::Confirm(_) => self.confirmation(),
                stage => stage,
            };
            let confirmed = [self.confirmed_passing, self.confirmed_failing];
            self.refuted_before |= confirmed.iter().any(|rate| rate.hits < rate.tries);
            (self.confirmed_passing, self.confirmed_failing) = (Rate::default(), Rate::default());
            (self.written_end, self.end) = (None, None);
        }
    }

    /// Returns the stage in which the result is run again: the failing side of a `diff` search, or
    /// the passing side of a `max` search, whose failing side is the unchanged input.
    fn confirmation(&self) -> Stage {
        Stage::Confirm(self.sides.goal_side())
    }

    /// Returns the next step of the search: run a check, test a candidate, write a line, or stop.
    /// The texts of checks are built in `text`.
    pub fn next_step<'a>(&'a mut self, text: &'a mut Vec<u8>) -> NextStep<'a> {
        self.advance_stages();
        if let Some((_, line)) = &self.moved {
            return NextStep::Write(Line::Reduce(line.clone()));
        }
        if self.stage == Stage::End {
            let end = self.end_line();
            self.written_end = Some(end.clone());
            return NextStep::Write(Line::End(end));
        }
        let subject = &self.sides.subject;
        let (what, config) = match self.stage {
            Stage::Baseline => (What::Baseline, Config::all(subject.deltas())),
            Stage::Axiom => (What::Axiom, Config::empty()),
            Stage::Confirm(Side::Passing) => (What::Confirm, self.sides.pass.clone()),
            Stage::Confirm(Side::Failing) => (What::Confirm, self.sides.fail.clone()),
            Stage::Search | Stage::Proof => {
                let pending = self.sides.pending.as_ref();
                let text = self.sides.text();
                return pending.map_or(NextStep::Nothing, |pending| NextStep::Test {
                    pending,
                    text,
                });
            }
            Stage::End | Stage::Over => return NextStep::Nothing,
            Stage::NotFailing(last) => {
                let tries = self.baseline.tries;
                return NextStep::Stop(MinimizeError::NotFailing { last, tries });
            }
            Stage::NotPassing => {
                let what = match subject.passing().is_empty() {
                    true => "the empty input",
                    false => "the passing input",
                };
                return NextStep::Stop(MinimizeError::NotPassing { what });
            }
        };
        subject.write_into(&config, text);
        NextStep::Check { what, text }
    }

    /// Makes the next candidate of the search, or of the proof of the claim after it, the pending
    /// one. If there are no more candidates, begins the next stage.
    fn advance_stages(&mut self) {
        if self.moved.is_some() {
            return;
        }
        if self.stage == Stage::Search {
            let next = self.machine.next();
            match next.and_then(|next| Some((next.rule, kept(&next)?.clone()))) {
                Some((rule, config)) => self.sides.ask(rule, config, None),
                None => self.stage = Stage::Proof,
            }
        }
        if self.stage == Stage::Proof {
            let sides = &self.sides;
            let open = self.open.get_or_insert_with(|| {
                let missing = sides.proofs().filter(|(_, proof)| proof.is_none());
                let missing = missing.map(|(neighbour, _)| sides.tested(neighbour));
                let mut missing: Vec<_> = missing.collect();
                missing.reverse();
                missing
            });
            match open.last().cloned() {
                Some((rule, config)) => self.sides.ask(rule, config, Some(Phase::Proof)),
                None => self.stage = self.confirmation(),
            }
        }
    }

    /// Builds the log line of the pending candidate's test from the answer `reply`; `None` if no
    /// candidate is pending.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        self.sides.test_line(reply)
    }

    /// Updates the state of the search by the next line of its log. Returns the side (passing or
    /// failing input) whose text the line changes, `None` if it changes neither; an error says why
    /// the line cannot follow the earlier ones.
    pub fn feed(&mut self, line: &Line) -> Result<Option<Side>, String> {
        if matches!(line, Line::Test(_) | Line::Check(_)) {
            // The log ended because of a budget, and was continued with a larger one.
            self.continue_search();
        }
        self.advance_stages();
        let confirms = matches!(line, Line::Check(check) if check.what == What::Confirm);
        if let (None, true) = (&self.moved, confirms || matches!(line, Line::End(_))) {
            self.end_by_budget();
            if matches!(line, Line::End(_)) {
                self.end_confirmations();
            }
        }
        match (line, self.moved.take()) {
            (Line::Reduce(reduce), Some((side, expected))) if *reduce == expected => {
                return Ok(Some(side));
            }
            (_, Some((_, expected))) => {
                return Err(format!("the reduction of test {} is missing", expected.i));
            }
            (Line::Reduce(_), None) => return Err("no end moved here".to_owned()),
            (Line::Start(_), None) => return Err("a second start line".to_owned()),
            (Line::Check(check), None) => self.feed_check(check)?,
            (Line::Test(test), None) => self.feed_test(test)?,
            (Line::End(end), None) => {
                if self.stage != Stage::End {
                    return Err("the end is not due".to_owned());
                }
                let written = self.written_end.take();
                let expected = written.unwrap_or_else(|| self.end_line());
                let mut end = end.clone();
                if self.refuted_before {
                    // Logs written before 2026-11-28 may claim more here, which does not hold.
                    end.claim = expected.claim;
                }
                follows(&end, &expected)?;
                self.end = Some(end);
                self.stage = Stage::Over;
            }
        }
        Ok(None)
    }

    fn feed_check(&mut self, check: &CheckLine) -> Result<(), String> {
        let failed = check.outcome == Outcome::Fail;
        let passed = check.outcome == Outcome::Pass;
        self.end_stage_before(check)?;
        self.sides.contradicted |= check.missed > 0;
        match (self.stage, check.what) {
            (Stage::Baseline, What::Baseline) => {
                if count_try(&mut self.baseline, failed, self.agreeing) {
                    self.stage = match self.baseline.hits {
                        0 => Stage::NotFailing(check.outcome),
                        _ => Stage::Axiom,
                    };
                    let whole = Outcome::Fail;
                    self.sides.record_check(check.what, whole, check.cut_off);
                }
            }
            (Stage::Axiom, What::Axiom) => {
                self.sides
                    .record_check(check.what, check.outcome, check.cut_off);
                self.stage = match (failed, self.ceased) {
                    (true, _) => Stage::NotPassing,
                    (false, Some(_)) => self.confirmation(),
                    (false, None) => Stage::Search,
                };
            }
            (Stage::Confirm(Side::Failing), What::Confirm) => {
                let needed = self.confirmations();
                if count_try(&mut self.confirmed_failing, failed, needed) {
                    self.stage = Stage::Confirm(Side::Passing);
                }
            }
            (Stage::Confirm(Side::Passing), What::Confirm) => {
                let needed = self.confirmations();
                if count_try(&mut self.confirmed_passing, passed, needed) {
                    self.stage = Stage::End;
                }
            }
            _ => return Err(format!("no check of this kind is due: {:?}", check.what)),
        }
        self.sides.counts.checks += 1;
        self.note(check.slip);
        Ok(())
    }

    /// Ends the present stage early if `check`, the next line of the log, belongs to the next
    /// stage, because the time for the search was used up when the log was written. This is so if
    /// `check` is a run of the passing input while the failing one is still run, or confirms the
    /// passing side while the failing one is still confirmed. `Err` if the failing side was not
    /// confirmed at least once.
    fn end_stage_before(&mut self, check: &CheckLine) -> Result<(), String> {
        match (self.stage, check.what) {
            (Stage::Baseline, What::Axiom) => self.end_here(Stage::Axiom),
            (Stage::Confirm(Side::Failing), What::Confirm) if check.passing => {
                if !self.is_run_again(Side::Failing) {
                    return Err("the failing side was not confirmed".to_owned());
                }
                self.end_here(Stage::Confirm(Side::Passing));
            }
            _ => {}
        }
        Ok(())
    }

    fn feed_test(&mut self, line: &TestLine) -> Result<(), String> {
        if !matches!(self.stage, Stage::Search | Stage::Proof) {
            return Err("no test is due".to_owned());
        }
        let reply = Reply::of(line);
        self.sides.contradicted |= reply.missed > 0;
        let pending = self.sides.pending.as_ref();
        let (Some(pending), Some(expected)) = (pending, self.test_line(&reply)) else {
            return Err("the search asks for no test".to_owned());
        };
        agree(line, &expected)?;
        match pending.known() {
            Some(known) if known != (line.outcome, line.source) => {
                return Err(format!("it is known as {} without a run", known.0));
            }
            None if line.source != Source::Run => {
                return Err("nothing is known of it without a run".to_owned());
            }
            _ => {}
        }
        let i = self.sides.tests;
        let pending = self.sides.commit(&reply);
        self.note(line.slip);
        match (self.stage, pending) {
            (Stage::Search, Some(pending)) => {
                self.machine.tell(line.outcome);
                let (pass, fail) = (self.machine.pass().clone(), self.machine.fail().clone());
                let (rule, i) = match (pending.candidate.rule, line.outcome) {
                    // With two parts, the test before this one showed the larger passing side.
                    (Rule::Complement, Outcome::Unresolved) if pass != self.sides.pass => {
                        (Rule::IncreaseToComplement, i.saturating_sub(1))
                    }
                    (Rule::Complement, Outcome::Pass) => (Rule::IncreaseToSubset, i),
                    (rule, _) => (rule, i),
                };
                self.move_ends(pass, fail, rule, i);
            }
            (_, Some(pending)) if line.outcome == refuted_by(pending.candidate.rule) => {
                let rule = pending.candidate.rule;
                let config = kept(&pending.candidate)
                    .cloned()
                    .unwrap_or_else(Config::empty);
                let (pass, fail) = match rule {
                    Rule::Complement => (self.sides.pass.clone(), config),
                    _ => (config, self.sides.fail.clone()),
                };
                self.move_ends(pass, fail, rule, i);
                self.open = None;
            }
            _ => self.open.iter_mut().for_each(|open| drop(open.pop())),
        }
        Ok(())
    }

    /// Records that the test number `i` of the log, made by the rule `rule`, has led to new sides:
    /// the passing side now consists of the deltas `pass`, and the failing side of the deltas
    /// `fail` (deltas are bytes or edits). If one of them differs from before, the next line of the
    /// log has to be a `reduce` line that says so.
    fn move_ends(&mut self, pass: Config, fail: Config, rule: Rule, i: u64) {
        let side = match (pass != self.sides.pass, fail != self.sides.fail) {
            (true, _) => Side::Passing,
            (false, true) => Side::Failing,
            (false, false) => return,
        };
        (self.sides.pass, self.sides.fail) = (pass, fail);
        let line = ReduceLine {
            rule: rule.name().to_owned(),
            size: self.sides.end(side).len() as u64,
            i,
        };
        self.moved = Some((side, line));
    }

    fn note(&mut self, slip: Option<SlipKeys>) {
        let new = slip.filter(|slip| !self.slips.contains(slip));
        self.slips.extend(new);
    }
}

/// Counts a run in `rate`; `hit` says that it had the expected outcome. Returns `true` if it was
/// the last of `of` runs.
fn count_try(rate: &mut Rate, hit: bool, of: u64) -> bool {
    rate.tries += 1;
    rate.hits += u64::from(hit);
    rate.tries == of
}

impl Progress {
    /// Checks whether the result is reproducible: all checks of both sides had the expected
    /// outcome, and no text had contradictory outcomes.
    fn is_reproducible(&self) -> bool {
        let rates = [
            self.baseline,
            self.confirmed_failing,
            self.confirmed_passing,
        ];
        !self.is_contradicted() && rates.iter().all(|rate| rate.hits == rate.tries)
    }

    /// Returns true if the result of the isolation cannot be claimed: a run contradicted an earlier
    /// run of the same text, or an earlier call, which was continued, confirmed the passing or the
    /// failing side with another outcome than expected.
    fn is_contradicted(&self) -> bool {
        self.refuted_before || self.sides.contradicted
    }

    /// Builds the end line of the log. It makes a claim only if every test that the claim needs
    /// proves it and both sides are reproducible.
    pub(super) fn end_line(&self) -> EndLine {
        let (mut proved, mut proof) = (Proved::default(), Vec::new());
        for (_, found) in self.sides.proofs() {
            proved.of += 1;
            proof.extend(found);
        }
        proved.done = proof.len() as u64;
        let claim = match self.goal {
            _ if proved.done < proved.of => Claim::BestSoFar,
            _ if !self.is_reproducible() || !self.is_confirmed() => Claim::BestSoFar,
            Goal::Maximize => Claim::OneMaximal,
            Goal::Isolate => Claim::OneMinimalDifference,
        };
        let failing = self.sides.end(Side::Failing);
        let passing = self.sides.end(Side::Passing);
        EndLine {
            claim,
            size: failing.len() as u64,
            blake3: ContentHash::of(&failing),
            tests: self.sides.counts,
            proved,
            proof,
            passing: Some(PassingEnd {
                size: passing.len() as u64,
                blake3: ContentHash::of(&passing),
            }),
        }
    }

    /// Returns the result of the search; `None` before the end line.
    pub fn isolated(&self) -> Option<Isolated> {
        let end = self.end.as_ref().filter(|_| self.stage == Stage::Over)?;
        let difference = self.sides.difference();
        let deltas_left = difference.len() as u64;
        let flaky = |rate: Rate| rate.hits < rate.tries;
        let isolates = self.goal == Goal::Isolate;
        let open = end.proved.of - end.proved.done;
        let searched = !self.is_unsearched();
        let warnings = [
            (flaky(self.baseline), IsolationWarning::FlakyInput),
            (
                flaky(self.confirmed_failing),
                IsolationWarning::FlakyFailing,
            ),
            (flaky(self.confirmed_passing), IsolationWarning::NotPassing),
            (self.is_contradicted(), IsolationWarning::Contradicted),
            (
                isolates && deltas_left > 1 && open == 0,
                IsolationWarning::Unresolved(deltas_left),
            ),
            (open > 0 && searched, IsolationWarning::Unproved(open)),
            (!searched, IsolationWarning::Unsearched),
            (
                searched && !self.is_confirmed(),
                IsolationWarning::Unconfirmed,
            ),
        ];
        let said = warnings.into_iter().filter(|(holds, _)| *holds);
        Some(Isolated {
            passing: self.sides.end(Side::Passing),
            failing: self.sides.end(Side::Failing),
            difference: self.sides.subject.changed(&difference),
            deltas_left,
            claim: end.claim,
            proved: end.proved,
            counts: end.tests,
            baseline: self.baseline,
            confirmed_passing: self.confirmed_passing,
            confirmed_failing: self.confirmed_failing,
            slips: self.slips.clone(),
            warnings: said.map(|(_, warning)| warning).collect(),
        })
    }
}
