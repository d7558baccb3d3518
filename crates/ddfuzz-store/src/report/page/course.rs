//! The course of a minimization in a report: sizes and phases over executed tests.

use maud::Markup;

use super::data::{CourseReport, PhaseReport};
use crate::report::MinimizationHistory;
use crate::report::chart::{Axis, Band, Curve, Scale};
use ddfuzz_minimize::log::{Line, Log, Phase, Source};

/// Maximum number of points of the curve in the drawing of a minimization, and of candidates drawn
/// as single points; in both cases the last one is kept in addition.
const MOST_POINTS: usize = 400;
/// Number of phases (stretches of tests made by one pass) of a minimization up to which the
/// shortest ones are looked for. If there are more, as a log may have a phase for each test,
/// neighbouring phases are first joined evenly, down to about this number.
const MOST_JOINED: usize = 1000;
/// Maximum number of phases (stretches of tests made by one pass) in the drawing of a minimization;
/// if there are more, the shortest ones join their neighbours.
const MOST_PHASES: usize = 8;

/// The course of a minimization: the data of the report, and the single tests that only the drawing
/// shows.
pub(super) struct Course {
    pub(super) report: CourseReport,
    /// Executed tests as points: number of the test, size of its candidate in bytes, whether it
    /// failed.
    dots: Vec<(u64, u64, bool)>,
    is_early: bool,
}

impl Course {
    /// Computes the curve of a minimization from its log: the size of the best input after each
    /// executed test, and which pass made which tests. `None` if the log's first line is missing.
    pub(super) fn of(log: &Log) -> Option<Course> {
        let lines = log.lines.iter().map(|(_, line)| line);
        let history = MinimizationHistory::of(log.start.as_ref()?, lines);
        let mut curve = vec![[0, history.size_before]];
        curve.extend(history.steps.iter().map(|step| [step.executed, step.size]));
        curve.push([history.executed, history.size_after]);
        let curve = thinned(curve);
        let dots = history
            .dots
            .iter()
            .map(|dot| (dot.executed, dot.size, dot.failed));
        Some(Course {
            is_early: history.wants_log_tests(),
            dots: thinned(dots.collect()),
            report: CourseReport {
                search: history.search.clone(),
                size_before: history.size_before,
                executed: history.executed,
                curve,
                phases: phases(log, &history),
            },
        })
    }

    /// Draws the size of the best input over the executed tests, with a logarithmic axis of sizes.
    pub(super) fn drawing(&self) -> Markup {
        let report = &self.report;
        let tests = Axis {
            most: report.executed.max(1),
            scale: if self.is_early {
                Scale::Logarithmic
            } else {
                Scale::Linear
            },
        };
        let largest = self
            .dots
            .iter()
            .map(|(_, size, _)| *size)
            .max()
            .unwrap_or(0);
        let mut line = Vec::new();
        let mut size = report.size_before;
        for [executed, next] in &report.curve {
            line.extend([(*executed, size), (*executed, *next)]);
            size = *next;
        }
        let bands = report.phases.iter().map(|phase| Band {
            name: phase.name.clone(),
            from: phase.from,
            to: phase.to,
        });
        let curve = Curve {
            title: "size of the input in bytes (logarithmic) over executed tests",
            across: tests,
            up: Axis {
                most: largest.max(report.size_before).max(1),
                scale: Scale::Logarithmic,
            },
            line,
            dots: self.dots.clone(),
            bands: bands.collect(),
            below: match self.is_early {
                true => "executed tests (logarithmic)",
                false => "executed tests",
            },
        };
        curve.markup()
    }
}

/// Returns at most [`MOST_POINTS`] + 1 elements of `all`, evenly distributed, including the last
/// element.
fn thinned<T>(all: Vec<T>) -> Vec<T> {
    let every = all.len().div_ceil(MOST_POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.into_iter().enumerate();
    let kept = kept.filter(|(at, _)| at % every == 0 || *at == last);
    kept.map(|(_, one)| one).collect()
}

/// Splits the executed tests of a minimization into phases, stretches of tests made by one pass
/// each, in the order of the log; joins short phases if there are too many.
fn phases(log: &Log, history: &MinimizationHistory) -> Vec<PhaseReport> {
    let mut phases: Vec<PhaseReport> = Vec::new();
    let mut executed = 0;
    for (_, line) in &log.lines {
        let Line::Test(test) = line else { continue };
        if test.source != Source::Run {
            continue;
        }
        let name = match (&test.pass, test.phase) {
            (_, Some(Phase::Proof)) => "proof",
            (Some(pass), None) => pass,
            (None, None) => &history.search,
        };
        let from = executed;
        executed += 1;
        match phases.last_mut() {
            Some(last) if last.name == name => last.to = executed,
            _ => phases.push(PhaseReport {
                name: name.to_owned(),
                from,
                to: executed,
                removed: 0,
            }),
        }
    }
    let mut phases = joined(phases);
    for phase in &mut phases {
        let size = |at| history.best_after(at);
        phase.removed = size(phase.from).saturating_sub(size(phase.to));
    }
    phases
}

/// Joins phases (stretches of tests made by one pass) until at most [`MOST_PHASES`] remain: each of
/// the shortest is joined with the phase before it, or the first phase with the one after it. The
/// name of a joined phase lists up to three passes.
fn joined(phases: Vec<PhaseReport>) -> Vec<PhaseReport> {
    // The log of somebody else may have one for each test.
    let together = phases.len().div_ceil(MOST_JOINED).max(1);
    let mut few: Vec<PhaseReport> = Vec::new();
    for (at, phase) in phases.into_iter().enumerate() {
        match few.last_mut().filter(|_| at % together != 0) {
            Some(into) => join(into, &phase),
            None => few.push(phase),
        }
    }
    let mut phases = few;
    while phases.len() > MOST_PHASES {
        let tests = |phase: &PhaseReport| phase.to - phase.from;
        let shortest = (0..phases.len()).min_by_key(|at| tests(&phases[*at]));
        let at = shortest.unwrap_or(1).max(1);
        let gone = phases.remove(at);
        join(&mut phases[at - 1], &gone);
    }
    phases
}

/// Joins the phase `gone` with the phase before it, `into`: `into` then ends where `gone` ends, and
/// its name lists up to three passes.
fn join(into: &mut PhaseReport, gone: &PhaseReport) {
    into.to = gone.to;
    let is_named = |name: &str| into.name.split(" + ").any(|one| one == name);
    if !gone.name.split(" + ").all(is_named) {
        let longer = into.name.split(" + ").count() >= 3;
        into.name = match longer {
            true if into.name.ends_with('…') => into.name.clone(),
            true => format!("{} + …", into.name),
            false => format!("{} + {}", into.name, gone.name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_phases_are_joined_and_cover_all_tests() {
        let phase = |at: u64| PhaseReport {
            name: format!("p{}", at % 5),
            from: at,
            to: at + 1,
            removed: 0,
        };
        let phases = joined((0..1000).map(phase).collect());
        assert_eq!(phases.len(), MOST_PHASES);
        assert!(phases.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!((phases[0].from, phases[MOST_PHASES - 1].to), (0, 1000));
    }
}
