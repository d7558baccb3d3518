//! Which statements the program executes on other inputs, and how well this tells runs that fail
//! from others (Abreu, Zoeteweij and van Gemund, *An Evaluation of Similarity Coefficients for
//! Software Fault Localization*, PRDC 2006).

use std::collections::{HashMap, HashSet};

use ddfuzz_exec::Ended;
use regex::bytes::Regex;

use super::mutated::MutantEnd;
use super::tests_at_point::Stand;
use super::watchdog::TimeLimit;
use super::{Engine, EngineError, Point, Trace};
use crate::passing::SimilarInput;

/// Largest number of other inputs that are chosen to compare mutants with the program.
const CHOSEN: usize = 20;
/// Number of failing runs, and number of others, that suffice to judge a mutant of a statement by
/// runs of other inputs.
pub(super) const ENOUGH: usize = 3;

/// How many runs, failing ones and others, execute a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Executions {
    /// How often the failing run executes the statement, as far as its points were recorded.
    pub times: usize,
    /// Number of failing runs that execute the statement, and number of all failing runs.
    pub failing: (usize, usize),
    /// Number of runs without failure that execute the statement.
    pub passing: usize,
    /// Whether the run of the passing input, the first of the other inputs, executes the statement.
    pub in_passing: bool,
}

impl Executions {
    /// Returns how well the statement tells failing runs from others, as eighths of Ochiai's
    /// coefficient: from 0 (no failing run executes it) to 8 (all failing runs do, and no other).
    pub fn suspicion(self) -> usize {
        let (failing, all) = self.failing;
        let product = (all * (failing + self.passing)) as f64;
        match failing {
            0 => 0,
            failing => (8.0 * failing as f64 / product.sqrt()) as usize,
        }
    }
}

/// A statement by which failing runs differ from others: all failing runs execute it, and at most a
/// quarter of the others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Telling {
    /// Address of the statement.
    pub statement: u64,
    /// Number of runs that fail: all of them execute the statement.
    pub failing: usize,
    /// Number of runs without failure that execute the statement.
    pub passing: usize,
    /// Number of all runs without failure.
    pub others: usize,
}

/// Inputs beside the failing one, on which mutants are compared with the unchanged program.
pub(crate) struct OtherInputs<'a> {
    /// The inputs; the first one is the passing input.
    pub all: &'a [SimilarInput],
    /// Number of inputs, from the first one, for which the executed statements are recorded. The
    /// other inputs are run only with the mutants that are best after these.
    pub first: usize,
    /// The pattern that the output of failing runs matches; `None` where they fail otherwise.
    pub wrong: Option<&'a Regex>,
}

impl OtherInputs<'_> {
    /// Returns whether the program fails on the input with the index `at`, where its run ended as
    /// `end` says. `averts` is true if the run did not end as the failing run does. Without the
    /// pattern `wrong`, the program fails unless `averts`. With a pattern, it fails if `averts` is
    /// false and the output matches, and it does not fail if `averts` is true. `None` if that
    /// cannot be told: the run ended as the failing run but its output does not match, or `averts`
    /// is true for an input made of the failing one, whose output may be wrong in another way.
    pub fn fails(&self, at: usize, end: &MutantEnd, averts: bool) -> Option<bool> {
        match (self.wrong, averts) {
            (None, _) => Some(!averts),
            (Some(_), true) => (!self.all[at].is_of_failing).then_some(false),
            (Some(wrong), false) => wrong.is_match(&end.output).then_some(true),
        }
    }
}

/// A run of another input: whether it fails, and which statements of the failing run it executes.
struct Covered {
    /// Index of the input among the other inputs.
    input: usize,
    fails: bool,
    executed: HashSet<u64>,
}

/// Which statements of a failing run are executed by which runs of other inputs; it shows which
/// statements tell failing runs from others.
#[derive(Default)]
pub(super) struct Spectrum {
    statements: HashMap<u64, Executions>,
    runs: Vec<Covered>,
}

impl Spectrum {
    /// Returns which runs execute a statement; `None` if the failing run does not execute it.
    pub fn of(&self, statement: u64) -> Option<Executions> {
        self.statements.get(&statement).copied()
    }

    /// Returns, of `statements` (addresses of statements of the failing run, in order), the one that
    /// best separates runs that fail from others: all failing runs execute it, and the fewest of the
    /// others, at most a quarter. If several are equally good, returns the first of them. `None` if
    /// there is no such statement, or if there are too few runs to tell.
    pub fn telling(&self, statements: impl Iterator<Item = u64>) -> Option<Telling> {
        let others = self.runs.iter().filter(|it| !it.fails).count();
        if others < ENOUGH || self.runs.len() - others < ENOUGH {
            return None;
        }
        let is_it = |it: &Executions| it.failing.0 == it.failing.1 && it.passing * 4 <= others;
        let all = statements.filter_map(|it| Some((it, self.of(it).filter(is_it)?)));
        let (statement, it) = all.min_by_key(|it| it.1.passing)?;
        Some(Telling {
            statement,
            failing: it.failing.0,
            passing: it.passing,
            others,
        })
    }

    /// Counts how many failing runs, and how many others, execute each statement of the failing run
    /// that is explained, which counts as one of the failing runs.
    fn count(&mut self) {
        let all = 1 + self.runs.iter().filter(|it| it.fails).count();
        for it in self.statements.values_mut() {
            (it.failing, it.passing) = ((1, all), 0);
        }
        for run in &self.runs {
            for at in &run.executed {
                if let Some(it) = self.statements.get_mut(at) {
                    match run.fails {
                        true => it.failing.0 += 1,
                        false => it.passing += 1,
                    }
                    it.in_passing |= run.input == 0;
                }
            }
        }
    }

    /// Chooses at most [`CHOSEN`] inputs, and returns their numbers. They are chosen one by one,
    /// until [`ENOUGH`] failing and [`ENOUGH`] other runs execute each of `statements`, or no
    /// further input helps. Input 0 is always first; after it, always the input is taken whose run
    /// executes most of the statements that are not executed often enough yet.
    pub fn chosen(&self, statements: &HashSet<u64>) -> Vec<usize> {
        let mut missing: HashMap<(bool, u64), usize> = HashMap::new();
        let mut left: Vec<&Covered> = self.runs.iter().collect();
        let mut chosen = Vec::new();
        while chosen.len() < CHOSEN {
            let gain = |run: &&Covered| {
                let of = |at: &&u64| {
                    missing
                        .get(&(run.fails, **at))
                        .is_none_or(|it| *it < ENOUGH)
                };
                let wanted = run.executed.intersection(statements);
                wanted.filter(of).count() + usize::from(run.input == 0) * statements.len()
            };
            let gains = left.iter().map(gain).enumerate();
            // Of equal ones the first.
            let best = gains.rev().max_by_key(|it| it.1);
            let Some((at, _)) = best.filter(|it| it.1 > 0) else {
                break;
            };
            let run = left.remove(at);
            for statement in &run.executed {
                *missing.entry((run.fails, *statement)).or_default() += 1;
            }
            chosen.push(run.input);
        }
        chosen
    }
}

impl Engine {
    /// Finds which statements of the failing run, whose points are in `trace`, the program also
    /// executes on the inputs `others`, and counts how often the failing run executes each. Begins
    /// no more runs when an eighth of the remaining time is used up. `first` is the point at which
    /// each run is forked, `limit` the time limit of a run; `averts` tells from the end of a run
    /// whether it did not fail.
    pub(super) fn spectrum(
        &mut self,
        trace: &Trace,
        first: Point,
        limit: TimeLimit,
        averts: impl Fn(&MutantEnd) -> bool,
        others: &OtherInputs<'_>,
    ) -> Result<Spectrum, EngineError> {
        let mut found = Spectrum::default();
        for point in &trace.points {
            found.statements.entry(point.pc).or_default().times += 1;
        }
        let places: HashSet<u64> = found.statements.keys().copied().collect();
        let part = self.facts_until.part(8);
        for (input, similar) in others.all.iter().enumerate().take(others.first) {
            if part.is_over() {
                break;
            }
            let Some(mut stand) = self.stand_with(&similar.bytes, first, limit)? else {
                continue;
            };
            let run = self.executed(&mut stand, &places)?;
            // It has executed more than is known.
            let run = run.filter(|it| it.1.ended != Ended::Timeout);
            let Some((executed, end)) = run else {
                continue;
            };
            if let Some(fails) = others.fails(input, &end, averts(&end)) {
                found.runs.push(Covered {
                    input,
                    fails,
                    executed,
                });
            }
        }
        found.count();
        Ok(found)
    }

    /// Returns the addresses among `places` that a fork of the stopped run executes, and how the
    /// fork ends; `None` if the fork did something that ddfuzz cannot follow.
    pub(super) fn executed(
        &mut self,
        stand: &mut Stand,
        places: &HashSet<u64>,
    ) -> Result<Option<(HashSet<u64>, MutantEnd)>, EngineError> {
        let mut executed = HashSet::new();
        let end = self.stopped_at(stand, places, |process, registers| {
            executed.insert(registers.rip);
            Ok(process.remove_breakpoint(registers.rip)?)
        })?;
        Ok(end.map(|end| (executed, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_only_failing_runs_execute_are_the_most_suspicious() {
        let of = |failing, passing| {
            let failing = (failing, 4);
            let times = 1;
            let all = Executions {
                times,
                failing,
                passing,
                in_passing: passing > 0,
            };
            all.suspicion()
        };
        assert_eq!(
            [of(4, 0), of(4, 4), of(2, 0), of(1, 15), of(0, 3)],
            [8, 5, 5, 1, 0]
        );
    }

    #[test]
    fn inputs_are_chosen_that_execute_what_others_have_not() {
        let run = |input, fails, executed: &[u64]| Covered {
            input,
            fails,
            executed: executed.iter().copied().collect(),
        };
        let runs = vec![
            run(0, false, &[1]),
            run(1, false, &[1]),
            run(2, false, &[1, 2]),
            run(3, true, &[1, 2, 3]),
            run(4, false, &[9]),
        ];
        let mut all = Spectrum {
            statements: (1..=3).map(|at| (at, Executions::default())).collect(),
            runs,
        };
        all.count();
        let of = |at| all.of(at).map(|it| (it.failing, it.passing));
        assert_eq!(of(1), Some(((2, 2), 3)));
        assert_eq!(of(3), Some(((2, 2), 0)));
        assert_eq!(of(9), None);
        let points = [1, 3, 2].map(|pc| {
            let (nth, stack) = (1, 0);
            Point { pc, nth, stack }
        });
        // Two runs that fail are too few.
        let of = |points: &[Point]| {
            points
                .iter()
                .map(|it| it.pc)
                .collect::<Vec<_>>()
                .into_iter()
        };
        assert_eq!(all.telling(of(&points)), None);
        let statements = HashSet::from([1, 2, 3]);
        assert_eq!(all.chosen(&statements), [0, 3, 2, 1]);
        assert_eq!(all.chosen(&HashSet::from([9])), [0, 4]);
        assert!(all.chosen(&HashSet::new()).is_empty());
        all.runs
            .extend([run(5, true, &[3, 2]), run(6, true, &[3, 2])]);
        all.count();
        let found = all
            .telling(of(&points))
            .map(|it| (it.statement, it.passing));
        assert_eq!(found, Some((3, 0)));
        let found = all.telling(of(&[points[0], points[2]]));
        assert_eq!(found.map(|it| (it.statement, it.passing)), Some((2, 1)));
        assert_eq!(all.telling(of(&points[..1])), None);
    }
}
