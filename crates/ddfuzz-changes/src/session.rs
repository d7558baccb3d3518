//! Tests candidates for a search: composes their files, answers what is known, has the rest built
//! and tested, and writes each test to the minimization log.
//!
//! A search is a pure function of the two versions and the outcomes. So it is resumed by giving it
//! the outcomes from its log before those of further tests, and replayed by giving it no others.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ddfuzz_delta::{Config, Outcome};
use ddfuzz_minimize::log::{
    ChangesTest, ContentHash, EditRecord, EndLine, Line, LogError, LogWriter, OsText, Phase,
    ReduceLine, Source, TestLine, What,
};
use ddfuzz_minimize::{Claim, Counts, CutOff, Process, ProofRef, Proved};

use crate::ChangesError;
use crate::candidate::{Candidate, Known, Status};
use crate::change_set::ChangeSet;
use crate::repository::Repository;
use crate::search::Probed;
use crate::tree::Tree;
use crate::workbench::{BuildBase, Report};
use crate::workers::Workers;

/// All changes between two versions, with the numbers that the log gives to them.
#[derive(Clone)]
struct NumberedSet {
    set: Arc<ChangeSet>,
    /// Number that the log gives to the set's first change; the other changes have the next
    /// numbers.
    first: usize,
}

/// One search for failure-inducing changes: tests candidates (versions with some changes applied),
/// remembers outcomes, and writes each test to the log or takes it from there.
pub struct Session<'a> {
    /// The private git repository from which the versions are read.
    pub repository: Arc<Repository>,
    /// The id of the commit of the old version, which passes.
    pub old: String,
    /// The id of the commit of the new version, which fails.
    pub new: String,
    /// The worker threads that build and test versions; `None` if a log is replayed without tests.
    pub workers: Option<Workers>,
    past: VecDeque<(u64, Line)>,
    writer: Option<LogWriter>,
    trees: HashMap<String, Arc<Tree>>,
    sets: Vec<NumberedSet>,
    known: HashMap<[u8; 32], Known>,
    tests: u64,
    /// Number of tests so far, by how they were answered: executed, cached, predicted, and checks.
    pub counts: Counts,
    /// Number of executed tests of the search with the outcome UNRESOLVED.
    pub unresolved: u64,
    /// Number of tests that needed no build, because the same version was tested before.
    pub reused: u64,
    /// Number of changes in the smallest set of changes that has failed so far; `None` if none has.
    best: Option<u64>,
    budget: Budget,
    /// Time that all tests of the search took so far, including tests in the log of an earlier run.
    took: Duration,
    /// Whether the budget of the search is used up, so that all further tests are refused.
    spent: bool,
    /// Relations learned since the last line of the log: pairs of changes, by their numbers in the
    /// log; the first of a pair requires the second.
    requires: Vec<[u64; 2]>,
    stop: Arc<AtomicBool>,
    on_status: Box<dyn FnMut(&Status) + 'a>,
    /// The report of the build and test that was run last, for error messages.
    pub last: Report,
}

/// Limits on the number and the total time of the tests of a search; `None` is no limit. Checks
/// before and after the search do not count; tests that were made before it was resumed do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Maximum number of tests that the search may run; `None` for no limit.
    pub tests: Option<u64>,
    /// Maximum wall time of all builds and tests of the search; `None` for no limit.
    pub time: Option<Duration>,
}

impl<'a> Session<'a> {
    /// Creates a session that searches what makes the commit `new` fail, while the commit `old`
    /// passes. Tests are answered by the lines `past` of an earlier log, each with its line number,
    /// and then by `workers`; new lines are appended to `writer`. Setting `stop` ends the session.
    pub fn new(
        repository: Arc<Repository>,
        (old, new): (String, String),
        past: Vec<(u64, Line)>,
        writer: Option<LogWriter>,
        workers: Option<Workers>,
        stop: Arc<AtomicBool>,
    ) -> Session<'a> {
        Session {
            repository,
            old,
            new,
            workers,
            past: past.into(),
            writer,
            trees: HashMap::new(),
            sets: Vec::new(),
            known: HashMap::new(),
            tests: 0,
            counts: Counts::default(),
            unresolved: 0,
            reused: 0,
            best: None,
            budget: Budget::default(),
            took: Duration::ZERO,
            spent: false,
            requires: Vec::new(),
            stop,
            on_status: Box::new(|_| ()),
            last: Report::default(),
        }
    }

    /// Sets a function that is called with the search's status before each test, but not before
    /// checks.
    pub fn show_by(&mut self, show: impl FnMut(&Status) + 'a) {
        self.on_status = Box::new(show);
    }

    /// Limits number and time of all tests of the search, including those in an earlier run's log.
    pub fn limit(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// Checks whether the budget of the search is used up, so that all further tests are refused.
    pub fn is_spent(&self) -> bool {
        self.spent
    }

    /// Remembers that one change requires another, as a build has shown: in the set of changes with
    /// the index `index`, a version with the change `user` does not build without the change
    /// `needed`. The next line of the log records it.
    pub fn learn(&mut self, index: usize, user: usize, needed: usize) {
        let first = self.sets[index].first;
        let pair = [user, needed].map(|unit| (first + unit) as u64);
        self.requires.push(pair);
    }

    /// Returns true if the budget forbids the next test: if it is used up and no lines of an
    /// earlier run's log are left, or if the next of these lines end a search with a smaller
    /// budget. Such an end is skipped, and false is returned, if lines of further tests follow it
    /// in the log, or if the present budget allows a test and a log is written.
    fn is_over(&mut self) -> bool {
        if self.spent {
            return true;
        }
        let ends = |line: &Line| match line {
            Line::End(_) => true,
            Line::Check(line) => matches!(line.what, What::Confirm | What::Vote),
            _ => false,
        };
        let Budget { tests, time } = self.budget;
        let is_used_up = tests.is_some_and(|tests| self.counts.executed >= tests)
            || time.is_some_and(|time| self.took >= time);
        if self.past.front().is_some_and(|(_, line)| ends(line)) {
            let goes_on = self.past.iter().any(|(_, line)| !ends(line));
            if goes_on || self.writer.is_some() && !is_used_up {
                while self.past.front().is_some_and(|(_, line)| ends(line)) {
                    if let Some((_, Line::Check(_))) = self.past.pop_front() {
                        self.counts.checks += 1;
                    }
                }
            } else {
                self.spent = true;
            }
        }
        self.spent |= self.past.is_empty() && is_used_up;
        self.spent
    }

    /// Returns all files of the commit with the id `commit`; they are read from git once and kept.
    ///
    /// # Errors
    /// If git cannot read the commit.
    pub fn tree(&mut self, commit: &str) -> Result<Arc<Tree>, ChangesError> {
        if let Some(tree) = self.trees.get(commit) {
            return Ok(Arc::clone(tree));
        }
        let tree = Arc::new(self.repository.tree(commit)?);
        self.trees.insert(commit.to_owned(), Arc::clone(&tree));
        Ok(tree)
    }

    /// Compares the commits `old` and `new`, adds their changes to the session as a new set, and
    /// returns the index of this set. The log numbers the changes after those of earlier sets.
    ///
    /// # Errors
    /// If git cannot compare the commits.
    pub fn compare(&mut self, old: &str, new: &str) -> Result<usize, ChangesError> {
        let files = self.repository.compare(old, new)?;
        Ok(self.number(ChangeSet::new(files)))
    }

    /// Compares two versions, given by their files, adds their changes to the session as a new set,
    /// and returns the index of this set. The log numbers the changes after those of earlier sets.
    ///
    /// # Errors
    /// If git cannot store or compare the versions.
    pub fn compare_trees(&mut self, old: &Tree, new: &Tree) -> Result<usize, ChangesError> {
        let files = self.repository.compare_trees(old, new)?;
        Ok(self.number(ChangeSet::new(files)))
    }

    fn number(&mut self, set: ChangeSet) -> usize {
        let last = self.sets.last();
        let first = last.map_or(0, |last| last.first + last.set.len());
        let set = Arc::new(set);
        self.sets.push(NumberedSet { set, first });
        self.sets.len() - 1
    }

    /// Returns the set of changes that [`compare`](Session::compare) added with the index `index`.
    pub fn set(&self, index: usize) -> Arc<ChangeSet> {
        Arc::clone(&self.sets[index].set)
    }

    /// Returns the files of a candidate, with its changes; `None` if these cannot be merged.
    ///
    /// # Errors
    /// If contents cannot be read.
    pub fn compose(&mut self, candidate: &Candidate) -> Result<Option<Arc<Tree>>, ChangesError> {
        let tree = self.tree(&candidate.on)?;
        self.compose_on(&tree, &candidate.kept)
    }

    /// Returns the files of the version `base` with the changes `kept` (each the index of a set,
    /// and changes of this set) applied in this order; `None` if they cannot be merged.
    ///
    /// # Errors
    /// If contents cannot be read.
    pub fn compose_on(
        &mut self,
        base: &Arc<Tree>,
        kept: &[(usize, Config)],
    ) -> Result<Option<Arc<Tree>>, ChangesError> {
        let mut tree = Arc::clone(base);
        for (index, kept) in kept.iter().filter(|(_, kept)| !kept.is_empty()) {
            match self.set(*index).apply(kept, &tree, &self.repository)? {
                Some(applied) => tree = Arc::new(applied),
                None => return Ok(None),
            }
        }
        Ok(Some(tree))
    }

    /// Builds and tests a candidate, unless the outcome of a version with the same files is known,
    /// and returns the result. `rule` names the step of the search in the log; `ahead` are the
    /// candidates that the search will probably test next, which idle workers test meanwhile. If
    /// the changes cannot be merged, this counts as a failed build. When the budget is used up, the
    /// result is UNRESOLVED, and the log gets no line.
    ///
    /// # Errors
    /// If an earlier run's log has another test here, nothing can be tested, or the user stops.
    pub fn probe(
        &mut self,
        candidate: &Candidate,
        rule: &'static str,
        ahead: &[Candidate],
    ) -> Result<Known, ChangesError> {
        if self.spent {
            return Ok(self.beyond_budget());
        }
        let composed = self.compose(candidate)?;
        if self.stop.load(Ordering::Relaxed) {
            let executed = self.counts.executed;
            return Err(ChangesError::Interrupted { executed });
        }
        let Some(tree) = composed else {
            let line = self.line(candidate, rule, None, Source::Predicted);
            self.write_unrun(line, None)?;
            return Ok(Known {
                probed: Probed::default(),
                at: Vec::new(),
                proof: ProofRef::Test(self.tests - 1),
            });
        };
        let key = tree.key();
        if let Some(known) = self.known.get(&key).cloned() {
            let line = self.line(candidate, rule, Some(key), Source::Cache);
            self.write_unrun(completed(line, &known.probed, &known.at), Some(key))?;
            return Ok(known);
        }
        if self.is_over() {
            return Ok(self.beyond_budget());
        }
        let line = self.line(candidate, rule, Some(key), Source::Run);
        let line = match self.logged(&line)? {
            Some(logged) => logged,
            None => {
                let trees = self.ahead(ahead)?;
                let line = self.run(&tree, line, trees)?;
                self.append(&Line::Test(line.clone()))?;
                line
            }
        };
        let known = self.record(key, &line);
        self.reduce(&line)?;
        Ok(known)
    }

    /// Returns the result of a test that is refused because the budget is used up: UNRESOLVED.
    fn beyond_budget(&self) -> Known {
        Known {
            probed: Probed::of(Outcome::Unresolved),
            at: Vec::new(),
            proof: ProofRef::Test(self.tests),
        }
    }

    /// Records in the log, without a test, that a candidate is UNRESOLVED, because it lacks a
    /// change that another of its changes requires, as an earlier build has shown.
    ///
    /// # Errors
    /// If the log of an earlier run has another test in this place, or the log cannot be written.
    pub fn predict(&mut self, candidate: &Candidate) -> Result<(), ChangesError> {
        if self.spent {
            return Ok(());
        }
        let line = self.line(candidate, "predicted", None, Source::Predicted);
        self.write_unrun(line, None)
    }

    /// Runs a check, a test outside of the search, of the version `tree`: of the old or new version
    /// before the search, or of the result after it, as `what` says. Returns the outcome, never
    /// `None`: UNRESOLVED if the version does not build. If `anew` is set, the version is built on
    /// the untouched build of the old version.
    ///
    /// # Errors
    /// As [`probe`](Session::probe).
    pub fn check(
        &mut self,
        what: What,
        tree: &Arc<Tree>,
        anew: bool,
    ) -> Result<Option<Outcome>, ChangesError> {
        self.counts.checks += 1;
        let line = match self.past.pop_front() {
            Some((_, Line::Check(line))) if line.what == what => {
                if let (Some(workers), Some(slowest)) = (&mut self.workers, line.slowest_us) {
                    workers.note_logged(slowest.map(Duration::from_micros));
                }
                line
            }
            Some((number, _)) => return Err(disagrees(number, "no check of this kind is due")),
            None => {
                let report = self.build_and_test(tree, anew, Vec::new())?;
                let workers = self.workers.as_ref();
                let slowest = workers
                    .map(Workers::slowest)
                    .filter(|_| matches!(what, What::Axiom | What::Baseline));
                let line = report.check_line(what, slowest);
                self.append(&Line::Check(line.clone()))?;
                line
            }
        };
        if !anew && what != What::Vote {
            let probed = Probed::of(line.outcome);
            let known = Known {
                probed,
                at: Vec::new(),
                proof: ProofRef::Check(what),
            };
            self.known.insert(tree.key(), known);
        }
        Ok(Some(line.outcome))
    }

    /// Writes the last line of the log and returns it. `claim` says what is proved of the result,
    /// which has `size` changes; `proof` has the tests that prove it, and `needed` is the number of
    /// tests that a full proof needs. `tree` has the files of the version with the found changes.
    ///
    /// # Errors
    /// If the log of an earlier run disagrees, or the log cannot be written.
    pub fn end(
        &mut self,
        claim: Claim,
        (size, needed): (u64, u64),
        tree: &Tree,
        proof: Vec<ProofRef>,
    ) -> Result<EndLine, ChangesError> {
        let end = EndLine {
            claim,
            size,
            blake3: ContentHash::from_bytes(tree.key()),
            tests: Counts {
                speculative: self
                    .workers
                    .as_ref()
                    .map_or(0, |workers| workers.speculative),
                ..self.counts
            },
            proved: Proved {
                done: proof.len() as u64,
                of: needed,
            },
            proof,
            passing: None,
        };
        match self.past.pop_front() {
            Some((number, Line::End(logged))) => {
                let tests = Counts {
                    speculative: logged.tests.speculative,
                    ..end.tests
                };
                match (logged == (EndLine { tests, ..end }), self.past.front()) {
                    (true, None) => Ok(logged),
                    (true, Some((number, _))) => Err(disagrees(*number, "it follows the end")),
                    (false, _) => Err(disagrees(number, "the end does not follow from the log")),
                }
            }
            Some((number, _)) => Err(disagrees(number, "the end is due")),
            None => {
                self.append(&Line::End(end.clone()))?;
                Ok(end)
            }
        }
    }

    /// Returns the known outcome of building and testing `candidate`, with the log line that
    /// records it. `None` if the candidate was not tested or its build or test exceeded a time
    /// limit, or if its changes cannot be merged.
    ///
    /// # Errors
    /// If contents cannot be read.
    pub fn proved(&mut self, candidate: &Candidate) -> Result<Option<Known>, ChangesError> {
        let tree = self.compose(candidate)?;
        let known = tree.and_then(|tree| self.known.get(&tree.key()));
        Ok(known.filter(|known| !known.probed.cut_off).cloned())
    }

    fn ahead(&mut self, candidates: &[Candidate]) -> Result<Vec<Arc<Tree>>, ChangesError> {
        let mut trees = Vec::new();
        if self
            .workers
            .as_ref()
            .is_none_or(|workers| workers.most_ahead() == 0)
        {
            return Ok(trees);
        }
        for candidate in candidates {
            let tree = self.compose(candidate)?;
            trees.extend(tree.filter(|tree| !self.known.contains_key(&tree.key())));
        }
        Ok(trees)
    }

    /// Returns the log line for a test of `candidate` without its outcome. `rule` names the
    /// search's step, `key` is the hash of the candidate's files, and `source` says whether the
    /// test is run, cached or predicted.
    fn line(
        &mut self,
        candidate: &Candidate,
        rule: &'static str,
        key: Option<[u8; 32]>,
        source: Source,
    ) -> TestLine {
        let ranges = candidate.kept.iter().flat_map(|(index, kept)| {
            let first = self.sets[*index].first;
            kept.ranges()
                .map(move |range| [(first + range.start) as u64, (first + range.end) as u64])
        });
        let mut ranges: Vec<[u64; 2]> = ranges.collect();
        ranges.sort_unstable();
        let size = ranges.iter().map(|[start, end]| end - start).sum();
        let hash = ContentHash::from_bytes(key.unwrap_or_else(|| {
            let text = format!("{} {ranges:?}", candidate.on);
            *blake3::hash(text.as_bytes()).as_bytes()
        }));
        TestLine {
            i: self.tests,
            hash: hash.short(),
            edit: EditRecord::Keep(ranges),
            size,
            outcome: Outcome::Unresolved,
            source,
            us: 0,
            spent_ms: None,
            pass: Some(rule.to_owned()),
            phase: (rule == "proof").then_some(Phase::Proof),
            cut_off: None,
            process: Process::Own,
            slip: None,
            missed: 0,
            minor: None,
            comparisons: None,
            input: None,
            changes: Some(Box::new(ChangesTest {
                on: (candidate.on != self.old).then(|| candidate.on.clone()),
                unbuilt: true,
                requires: std::mem::take(&mut self.requires),
                ..ChangesTest::default()
            })),
        }
    }

    /// Takes the next line from the log of an earlier run and returns it; an error if it is not of
    /// the test `expected`. `None` if the log has no more lines.
    fn logged(&mut self, expected: &TestLine) -> Result<Option<TestLine>, ChangesError> {
        let Some((number, line)) = self.past.pop_front() else {
            return Ok(None);
        };
        let Line::Test(line) = line else {
            return Err(disagrees(number, "a test is due"));
        };
        let on = |line: &TestLine| line.changes.as_ref().and_then(|changes| changes.on.clone());
        let requires = |line: &TestLine| {
            let changes = line.changes.as_ref();
            changes.map(|changes| changes.requires.clone())
        };
        let differs = [
            (line.i != expected.i, "index"),
            (line.edit != expected.edit, "changes"),
            (line.hash != expected.hash, "hash"),
            (line.pass != expected.pass, "pass"),
            (line.source != expected.source, "source"),
            (on(&line) != on(expected), "version"),
            (requires(&line) != requires(expected), "relations"),
        ];
        match differs.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => {
                let why = format!("its {what} is not that of test {}", expected.i);
                Err(disagrees(number, &why))
            }
            None => Ok(Some(line)),
        }
    }

    /// Writes the log line of a test that was not run because its outcome is known, or checks that
    /// the log of an earlier call has the same line, and counts the test: as cached if `key`, the
    /// hash of the version's files, is given, else as predicted.
    fn write_unrun(&mut self, line: TestLine, key: Option<[u8; 32]>) -> Result<(), ChangesError> {
        let number = self.past.front().map_or(0, |(number, _)| *number);
        match self.logged(&line)? {
            Some(logged) if logged.outcome == line.outcome => {}
            Some(_) => return Err(disagrees(number, "its outcome is not the known one")),
            None => self.append(&Line::Test(line.clone()))?,
        }
        match key {
            Some(_) => self.counts.cached += 1,
            None => self.counts.predicted += 1,
        }
        self.reused += u64::from(key.is_some());
        self.tests += 1;
        Ok(())
    }

    /// Calls the progress display, builds and tests the version `tree`, and returns the log line
    /// `line` completed by the outcome. Idle workers test the versions `ahead` meanwhile.
    fn run(
        &mut self,
        tree: &Arc<Tree>,
        line: TestLine,
        ahead: Vec<Arc<Tree>>,
    ) -> Result<TestLine, ChangesError> {
        (self.on_status)(&Status {
            rule: line.pass.clone().unwrap_or_default(),
            executed: self.counts.executed,
            best: self.best.unwrap_or(0),
        });
        let report = self.build_and_test(tree, false, ahead)?;
        let probed = Probed {
            outcome: report.outcome,
            named: report.messages.named,
            ..Probed::default()
        };
        let us = report.took.as_micros().try_into().unwrap_or(u64::MAX);
        let cut_off = report.timed_out.then_some(CutOff::Time);
        Ok(TestLine {
            us,
            cut_off,
            ..completed(line, &probed, &report.messages.at)
        })
    }

    fn build_and_test(
        &mut self,
        tree: &Arc<Tree>,
        anew: bool,
        ahead: Vec<Arc<Tree>>,
    ) -> Result<Report, ChangesError> {
        let executed = self.counts.executed;
        let interrupted = ChangesError::Interrupted { executed };
        if self.stop.load(Ordering::Relaxed) {
            return Err(interrupted);
        }
        let base = match anew {
            true => BuildBase::Version(self.tree(&self.old.clone())?),
            false => BuildBase::Any,
        };
        let Some(workers) = &mut self.workers else {
            return Err(ChangesError::Unfinished);
        };
        let report = workers
            .run(tree, &base, ahead)
            .map_err(|error| match error {
                ChangesError::Interrupted { .. } => interrupted,
                other => other,
            })?;
        self.last = report.clone();
        Ok(report)
    }

    /// Counts an executed test, from its log line, and returns its result. The result is remembered
    /// under `key`, the hash of the version's files, for later candidates with the same files.
    fn record(&mut self, key: [u8; 32], line: &TestLine) -> Known {
        let changes = line.changes.clone().unwrap_or_default();
        let known = Known {
            probed: Probed {
                outcome: (!changes.unbuilt).then_some(line.outcome),
                named: changes.named,
                cut_off: line.cut_off == Some(CutOff::Time),
                ..Probed::default()
            },
            at: changes
                .at
                .iter()
                .map(|(path, line)| (path.0.as_bytes().to_vec(), *line))
                .collect(),
            proof: ProofRef::Test(line.i),
        };
        self.known.insert(key, known.clone());
        self.took += Duration::from_micros(line.us);
        self.counts.executed += 1;
        self.unresolved += u64::from(line.outcome == Outcome::Unresolved);
        self.tests += 1;
        known
    }

    /// If a test has failed with fewer changes than any earlier failing test, writes a line about
    /// this to the log; while the log of an earlier run is repeated, checks instead that the log
    /// has this line.
    fn reduce(&mut self, test: &TestLine) -> Result<(), ChangesError> {
        let is_smaller = test.size > 0 && self.best.is_none_or(|best| test.size < best);
        if !test.has_failed() || !is_smaller {
            return Ok(());
        }
        self.best = Some(test.size);
        let line = ReduceLine {
            i: test.i,
            rule: test.pass.clone().unwrap_or_default(),
            size: test.size,
        };
        match self.past.pop_front() {
            Some((_, Line::Reduce(logged))) if logged == line => Ok(()),
            Some((number, _)) => Err(disagrees(number, "the reduce line is missing")),
            None => self.append(&Line::Reduce(line)),
        }
    }

    fn append(&mut self, line: &Line) -> Result<(), ChangesError> {
        match &mut self.writer {
            Some(writer) => Ok(writer.append(line)?),
            None => Err(ChangesError::Unfinished),
        }
    }
}

/// Returns the log line `line` of a test completed by the test's result: the outcome, and the
/// identifiers and places (`at`) that the messages of a failed build name.
fn completed(line: TestLine, probed: &Probed, at: &[(Vec<u8>, u64)]) -> TestLine {
    let changes = line.changes.map(|changes| {
        Box::new(ChangesTest {
            unbuilt: probed.outcome.is_none(),
            named: probed.named.clone(),
            at: at
                .iter()
                .map(|(path, line)| (OsText::from(OsStr::from_bytes(path)), *line))
                .collect(),
            ..*changes
        })
    });
    TestLine {
        outcome: probed.outcome.unwrap_or(Outcome::Unresolved),
        changes,
        ..line
    }
}

fn disagrees(line: u64, why: &str) -> ChangesError {
    LogError::Disagrees {
        line,
        why: why.to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests;
