//! How a minimization goes on: from the lines of a log to the line that comes next.

use super::course::{Asked, Course, Reply, remove};
use super::log::{CheckLine, EndLine, Line, Phase, ReduceLine, Source, StartLine, TestLine, What};
use super::{Claim, Minimized, Rate, SlipKeys, UnknownSearch, Warning, search_by_name};
use crate::delta::{Candidate, Outcome, Search};
use crate::triage::Key;

/// Runs of the input before the search, and of the result after it.
pub(super) const TRIES: u64 = 3;

/// Where a minimization stands.
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
}

/// What comes next.
pub(super) enum Want<'a> {
    /// This text is to be run, aside from the search.
    Check { what: What, text: &'a [u8] },
    /// This candidate is to be tested.
    Test { asked: &'a Asked, text: &'a [u8] },
    /// This line follows from those before it.
    Write(Line),
    /// Nothing: the input does not fail.
    NotFailing { last: Outcome, tries: u64 },
    /// Nothing: the log is whole.
    Nothing,
}

/// A minimization as a pure function of its log: fed with lines, it says which line comes next.
/// Live, resumed and replayed minimizations all go through it, so that none can differ.
pub(super) struct Progress {
    course: Course,
    machine: Box<dyn Search>,
    stage: Stage,
    /// A reduction whose line is due.
    reduction: Option<ReduceLine>,
    /// Removals still to be proven of the current best, the next one last.
    open: Option<Vec<Candidate>>,
    baseline: Rate,
    confirmed: Rate,
    minor_after: Option<Key>,
    slips: Vec<SlipKeys>,
    empty_fails: bool,
    end: Option<EndLine>,
}

impl Progress {
    pub fn new(input: &[u8], start: &StartLine) -> Result<Progress, UnknownSearch> {
        Ok(Progress {
            course: Course::new(input, start.cache),
            machine: search_by_name(&start.search, input)?,
            stage: Stage::Baseline,
            reduction: None,
            open: None,
            baseline: Rate::default(),
            confirmed: Rate::default(),
            minor_after: None,
            slips: Vec::new(),
            empty_fails: false,
            end: None,
        })
    }

    pub fn course(&self) -> &Course {
        &self.course
    }

    /// The keys of all slips so far.
    pub fn slips(&self) -> &[SlipKeys] {
        &self.slips
    }

    /// The best so far; `None` before its first reduction.
    pub fn reduced(&self) -> Option<&[u8]> {
        let best = self.course.best();
        (best.len() < self.course.original().len() || best != self.course.original())
            .then_some(best)
    }

    /// The last line, once it is known.
    pub fn end(&self) -> Option<&EndLine> {
        self.end.as_ref().filter(|_| self.stage == Stage::Over)
    }

    /// A budget is used up: no more tests, what is best now is the result.
    pub fn cease(&mut self) {
        if matches!(self.stage, Stage::Search | Stage::Proof) {
            self.stage = Stage::Confirm;
        }
    }

    /// What comes next.
    pub fn want(&mut self) -> Want<'_> {
        self.pass_finished_stages();
        if let Some(line) = &self.reduction {
            return Want::Write(Line::Reduce(line.clone()));
        }
        let course = &self.course;
        match self.stage {
            Stage::Baseline => Want::Check {
                what: What::Baseline,
                text: course.original(),
            },
            Stage::Axiom => Want::Check {
                what: What::Axiom,
                text: &[],
            },
            Stage::Confirm => Want::Check {
                what: What::Confirm,
                text: course.best(),
            },
            Stage::NotFailing(last) => Want::NotFailing {
                last,
                tries: self.baseline.tries,
            },
            Stage::End => Want::Write(Line::End(self.end_line())),
            Stage::Search | Stage::Proof => match course.asked() {
                Some(asked) => Want::Test {
                    asked,
                    text: course.text(),
                },
                None => Want::Nothing,
            },
            Stage::Over => Want::Nothing,
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
                    self.course.ask(candidate, None);
                }
                None => self.stage = Stage::Proof,
            }
        }
        if self.stage == Stage::Proof {
            let course = &self.course;
            let open = self.open.get_or_insert_with(|| {
                let certificate = course.certificate();
                let missing = certificate
                    .removals()
                    .iter()
                    .rev()
                    .filter(|one| one.proof.is_none());
                missing.map(|removal| remove(&removal.at)).collect()
            });
            match open.last().cloned() {
                Some(candidate) => {
                    self.course.ask(candidate, Some(Phase::Proof));
                }
                None => self.stage = Stage::Confirm,
            }
        }
    }

    /// The line of the test being asked, with this answer.
    pub fn test_line(&self, reply: &Reply) -> Option<TestLine> {
        self.course.test_line(reply)
    }

    /// Takes the next line; `Err` says why it cannot follow from those before it.
    pub fn feed(&mut self, line: &Line) -> Result<(), String> {
        self.pass_finished_stages();
        let ceases = match line {
            Line::Check(check) => check.what == What::Confirm,
            Line::End(_) => true,
            _ => false,
        };
        if ceases && self.reduction.is_none() {
            self.cease();
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
            (_, What::Vote) => {}
            _ if self.reduction.is_some() => return Err("the reduce line is missing".to_owned()),
            (Stage::Baseline, What::Baseline) => {
                self.baseline.tries += 1;
                self.baseline.hits += failed;
                if self.baseline.tries == TRIES {
                    self.stage = match self.baseline.hits {
                        0 => Stage::NotFailing(check.outcome),
                        _ => Stage::Axiom,
                    };
                }
            }
            (Stage::Axiom, What::Axiom) => {
                self.course.record_check(&[], check.outcome, check.cut_off);
                self.stage = Stage::Search;
                if fails {
                    self.empty_fails = true;
                    self.course.take_empty();
                    self.stage = Stage::Confirm;
                }
            }
            (Stage::Confirm, What::Confirm) => {
                self.confirmed.tries += 1;
                self.confirmed.hits += failed;
                self.minor_after = check.minor.or(self.minor_after);
                if self.confirmed.tries == TRIES {
                    self.stage = Stage::End;
                }
            }
            _ => return Err(format!("no check of this kind is due: {:?}", check.what)),
        }
        self.course.counts.checks += 1;
        self.note(check.slip);
        Ok(())
    }

    fn feed_test(&mut self, line: &TestLine) -> Result<(), String> {
        if self.reduction.is_some() {
            return Err("the reduce line is missing".to_owned());
        }
        if !matches!(self.stage, Stage::Search | Stage::Proof) {
            return Err("no test is due".to_owned());
        }
        let reply = Reply::of(line);
        let (Some(asked), Some(expected)) = (self.course.asked(), self.test_line(&reply)) else {
            return Err("the search asks for no test".to_owned());
        };
        agree(line, &expected)?;
        match (asked.known(), line.source) {
            (Some(known), Source::Cache) if known == line.outcome => {}
            (Some(known), _) => return Err(format!("the cache knows this text as {known}")),
            (None, Source::Cache) => return Err("the cache does not know this text".to_owned()),
            (None, Source::Run | Source::Predicted) => {}
        }
        self.reduction = self.course.commit(&reply);
        self.note(line.slip);
        match self.stage {
            Stage::Search => self.machine.tell(line.outcome),
            _ if self.reduction.is_some() => self.open = None,
            _ => self.open.iter_mut().for_each(|open| drop(open.pop())),
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
        if self.stage != Stage::End || self.reduction.is_some() {
            return Err("the end is not due".to_owned());
        }
        follows(line, &self.end_line())?;
        self.end = Some(line.clone());
        self.stage = Stage::Over;
        Ok(())
    }

    fn note(&mut self, slip: Option<SlipKeys>) {
        self.slips
            .extend(slip.filter(|slip| !self.slips.contains(slip)));
    }

    /// The last line. A claim is made only where every try of the result failed.
    fn end_line(&self) -> EndLine {
        let certificate = self.course.certificate();
        let best = self.course.best();
        let reproducible = self.confirmed.hits == self.confirmed.tries;
        EndLine {
            claim: if reproducible {
                certificate.claim()
            } else {
                Claim::BestSoFar
            },
            size: best.len() as u64,
            blake3: super::log::ContentHash::of(best),
            tests: self.course.counts,
            proved: certificate.proved(),
            proof: certificate.proof(),
            passing: None,
        }
    }

    /// The result, once the log is whole.
    pub fn minimized(&self) -> Option<Minimized> {
        let end = self.end()?;
        let warnings = [
            (self.empty_fails, Warning::EmptyInputFails),
            (
                self.baseline.hits < self.baseline.tries,
                Warning::FlakyInput,
            ),
            (
                self.confirmed.hits < self.confirmed.tries,
                Warning::FlakyResult,
            ),
        ];
        Some(Minimized {
            text: self.course.best().to_vec(),
            claim: end.claim,
            proved: end.proved,
            size_before: self.course.original().len() as u64,
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

/// Whether a logged end is the one that the lines before it lead to.
pub(super) fn follows(line: &EndLine, expected: &EndLine) -> Result<(), String> {
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

/// Whether a logged test is the one that the search asks for.
pub(super) fn agree(line: &TestLine, expected: &TestLine) -> Result<(), String> {
    let differs = [
        (line.i != expected.i, "index"),
        (line.edit != expected.edit, "ranges"),
        (line.phase != expected.phase, "phase"),
        (line.size != expected.size, "size"),
        (line.hash != expected.hash, "hash"),
        (line.input != expected.input, "input"),
    ];
    match differs.into_iter().find(|(differs, _)| *differs) {
        Some((_, what)) => Err(format!("its {what} is not that of test {}", expected.i)),
        None => Ok(()),
    }
}
