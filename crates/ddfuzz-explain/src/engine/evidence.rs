//! Mutants that keep the failing run from failing, and how much evidence runs of other inputs give
//! that their statements are wrong. Pure.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::critical::exit_status;
use super::mutants::Mutant;
use super::mutated::MutantEnd;
use super::spectrum::{ENOUGH, Executions};

/// Weight that a mutant loses for each mutant of the same function that weighs more.
const AGAIN: f64 = 0.25;

/// Weight that a mutant loses for each other run that it changes, and for each one that still fails,
/// up to `MOST_CHANGED` runs of each kind.
const CHANGED: f64 = 0.2;
const MOST_CHANGED: usize = 3;

/// A mutant that keeps the failing run from failing.
#[derive(Clone, Debug)]
pub(crate) struct Averting {
    /// The mutant that does not fail on the failing input.
    pub mutant: Mutant,
    /// Whether the mutant's output on the failing input begins with what the failing run wrote.
    pub is_like: bool,
    /// How many eighths of the lines that the failing run wrote are also in the mutant's output on
    /// the failing input; and the same for those of these lines that the passing run wrote, too.
    pub(super) kept: [usize; 2],
    /// Status with which the mutant exits on the failing input; `None` if a signal ends it.
    pub status: Option<i32>,
    /// Whether the changed statement is the statement at which the failing run fails.
    pub(super) fails: bool,
    /// Whether the changed statement is in `main`.
    pub(super) is_main: bool,
    /// Which runs execute the changed statement; `None` where that is not known.
    pub(super) executed: Option<Executions>,
    /// Number of other inputs with which the program, unchanged, ends well, writes something and
    /// executes the changed instruction.
    pub others: usize,
    /// Number of the inputs counted by `others` on which the mutant ends and writes as the program.
    pub alike: usize,
    /// Number of other inputs with which the unchanged program fails and executes the instruction.
    pub failing: usize,
    /// Number of the inputs counted by `failing` on which the mutant ends well.
    pub mended: usize,
}

impl Averting {
    /// Returns the record of a mutant that ends well on the failing input, as `end` says. On this
    /// input, the unchanged program wrote `begins`; `right` are the lines of it that the passing
    /// run wrote, too.
    pub(super) fn new(
        mutant: Mutant,
        end: &MutantEnd,
        (begins, right): (&[u8], &[u8]),
    ) -> Averting {
        Averting {
            is_like: end.output.starts_with(begins),
            kept: [begins, right].map(|lines| kept(lines, &end.output)),
            status: exit_status(end.ended),
            mutant,
            fails: false,
            is_main: false,
            executed: None,
            others: 0,
            alike: 0,
            failing: 0,
            mended: 0,
        }
    }

    /// Returns a record like this one for `mutant`, a more restricted form of the recorded mutant,
    /// which ends on the failing input as `end` says.
    pub(super) fn with(&self, mutant: Mutant, end: &MutantEnd) -> Averting {
        Averting {
            mutant,
            status: exit_status(end.ended),
            ..self.clone()
        }
    }

    /// Returns true if the mutant behaves differently in most passing runs of other inputs.
    pub(super) fn changes_much(&self) -> bool {
        self.others > 0 && self.alike * 2 < self.others
    }

    /// Returns true if it is known that the passing input does not execute the changed statement.
    pub(super) fn is_new(&self) -> bool {
        self.executed.is_some_and(|it| !it.in_passing)
    }

    /// Returns true if runs of other inputs support the mutant. Of those that do not fail, at least
    /// one, and at least half, must end as without the mutation. If all of them fail, the mutant
    /// must avert at least [`ENOUGH`] of these failures, and half of them; a single one is enough
    /// if more than [`ENOUGH`] failing runs execute its statement, and no others.
    pub(super) fn is_telling(&self) -> bool {
        let all = self.executed.unwrap_or_default();
        let is_seen = all.passing == 0 && all.failing.0 > ENOUGH && self.mended > 0;
        let mends = self.mended >= ENOUGH && self.mended * 2 >= self.failing;
        (is_seen || self.alike > 0 || mends) && self.alike * 2 >= self.others
    }

    /// Returns how much evidence there is that the mutant's statement is wrong, as a logarithm of a
    /// likelihood up to a constant. It grows with the share of other runs that the mutant does not
    /// change, the output that it keeps, how well the statement tells failing from passing runs,
    /// and a little with the share of other failures that it averts.
    pub(super) fn weight(&self) -> f64 {
        let share = |part: usize, all: usize| ((1.0 + part as f64) / (1.0 + all as f64)).ln();
        let eighths = |part: usize| (0.1 + part as f64 / 8.0).ln();
        let suspicion = self.executed.map_or(0, Executions::suspicion);
        let known = share(self.alike, self.others) + 0.2 * share(self.mended, self.failing)
            // Each run that stays as it is says something, the first ones most.
            + 0.15 * (1.0 + self.alike as f64).ln();
        let kept = self.kept.map(eighths).iter().sum::<f64>() / 2.0;
        let ends = kept + 0.6 * eighths(suspicion);
        // What a failed assertion decides itself says little.
        let penalties = [
            (self.fails, 1.0),
            (self.status != Some(0), 0.4),
            (self.is_main, 0.3),
        ];
        let penalties = penalties.iter().filter(|it| it.0).map(|it| it.1);
        known + ends - 0.02 * f64::from(self.mutant.kind as u8) - penalties.sum::<f64>()
    }

    /// Compares two mutants by their weights; the mutant with more evidence is the lesser, so that
    /// it is sorted first.
    pub(super) fn compare(&self, other: &Averting) -> Ordering {
        other.weight().total_cmp(&self.weight())
    }
}

/// Returns the weight that each of the mutants `all` loses because it changes other runs that do
/// not fail, and because other runs fail in spite of it. As many runs of either kind are forgiven
/// as every mutant with enough such runs has: the fault may act in runs that do not fail, and some
/// runs may fail for another reason.
pub(super) fn unlike(all: &[Averting]) -> Vec<f64> {
    let changed = |it: &Averting| (it.others - it.alike, it.others);
    let failing = |it: &Averting| (it.failing - it.mended, it.failing);
    let [changed, failing] = [beyond_least(all, changed), beyond_least(all, failing)];
    let runs = changed.into_iter().zip(failing);
    runs.map(|(changed, failing)| CHANGED * (changed + failing) as f64)
        .collect()
}

/// Returns, for each of the mutants `all`, the number of runs that speak against it, minus the
/// smallest such number of any mutant with more than [`ENOUGH`] runs; the difference is limited to
/// [`MOST_CHANGED`]. `runs` returns, of a mutant, the number of runs that speak against it, and of
/// all its runs.
fn beyond_least(all: &[Averting], runs: impl Fn(&Averting) -> (usize, usize)) -> Vec<usize> {
    let known = all.iter().map(&runs).filter(|it| it.1 > ENOUGH);
    let least = known.map(|it| it.0).min().unwrap_or_default();
    let each = all.iter().map(|it| runs(it).0.saturating_sub(least));
    each.map(|it| it.min(MOST_CHANGED)).collect()
}

/// Returns the weights of mutants, given with their functions, the largest weight first. Each
/// further mutant of the same function weighs [`AGAIN`] less: a person who reads the function for
/// the first mutant sees the others.
pub(super) fn spread<T: Eq + std::hash::Hash>(all: impl Iterator<Item = (f64, T)>) -> Vec<f64> {
    let mut known: HashMap<T, u8> = HashMap::new();
    let weight = |(weight, function)| {
        let before = known.entry(function).or_default();
        *before += 1;
        weight - AGAIN * f64::from(*before - 1)
    };
    all.map(weight).collect()
}

/// Returns the lines of `before` that are also in `after`, each as often as it occurs in both.
pub(super) fn common(before: &[u8], after: &[u8]) -> Vec<u8> {
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    for line in ddfuzz_delta::lines(after) {
        *left.entry(line).or_default() += 1;
    }
    let is_common = |line: &&[u8]| match left.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let lines: Vec<&[u8]> = ddfuzz_delta::lines(before);
    let lines: Vec<&[u8]> = lines.into_iter().filter(is_common).collect();
    lines.concat()
}

/// Returns how many eighths of the lines of `before` are also in `after`, each line as often as it
/// occurs; 8 if `before` is empty.
fn kept(before: &[u8], after: &[u8]) -> usize {
    fn count(text: &[u8]) -> usize {
        let lines: Vec<&[u8]> = ddfuzz_delta::lines(text);
        lines.len()
    }
    let kept = count(&common(before, after));
    (kept * 8).checked_div(count(before)).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::super::mutants::{MutantKind, Patch};
    use super::*;

    fn averting(others: usize, alike: usize, failing: usize, mended: usize) -> Averting {
        let patch = Patch::Leave(0, 0);
        let kind = MutantKind::Break;
        Averting {
            mutant: Mutant { pc: 0, kind, patch },
            is_like: false,
            kept: [8, 8],
            status: Some(0),
            fails: false,
            is_main: false,
            executed: None,
            others,
            alike,
            failing,
            mended,
        }
    }

    #[test]
    fn a_mutant_tells_something_if_runs_show_that_it_changes_nothing_else() {
        let is_telling =
            |others, alike, failing, mended| averting(others, alike, failing, mended).is_telling();
        assert!(is_telling(8, 4, 0, 0) && is_telling(1, 1, 2, 1));
        assert!(!is_telling(8, 3, 0, 0) && !is_telling(1, 0, 3, 3));
        // No other run that ends well executes it.
        assert!(is_telling(0, 0, 4, 3));
        assert!(!is_telling(0, 0, 2, 2) && !is_telling(0, 0, 3, 2));
        assert!(!is_telling(0, 0, 32, 7));
    }

    #[test]
    fn a_run_that_only_some_mutants_change_speaks_against_these() {
        let of = |all: &[(usize, usize)]| {
            let all: Vec<Averting> = all.iter().map(|it| averting(it.0, it.1, 0, 0)).collect();
            unlike(&all)
        };
        assert_eq!(of(&[(36, 35), (36, 36), (9, 2)]), [0.2, 0.0, 0.2 * 3.0]);
        // Each changes one; one without other runs says nothing.
        assert_eq!(of(&[(36, 35), (39, 38), (0, 0)]), [0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_second_mutant_of_a_function_weighs_less() {
        let all = [(-0.5, "f"), (-0.6, "f"), (-0.7, "g"), (-0.8, "f")];
        assert_eq!(spread(all.into_iter()), [-0.5, -0.85, -0.7, -1.3]);
    }

    #[test]
    fn lines_are_kept_as_often_as_they_are_there() {
        let before = b"a\nb\nb\nc\n";
        assert_eq!(kept(before, before), 8);
        assert_eq!(kept(before, b"0\nb\na\n1\nb\n2\n"), 6);
        assert_eq!(kept(before, b""), 0);
        assert_eq!(kept(b"", b"a\n"), 8);
        assert_eq!(common(before, b"b\na\nb\nb\nd\n"), b"a\nb\nb\n");
    }
}
