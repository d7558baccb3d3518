//! The parts of an explanation, how much of its time each may take, and which of them are not done
//! when the time is over.

use std::time::Duration;

use crate::engine::watchdog::Allowance;

/// A part of an explanation: heap blocks, facts of the failing run, bounds of variables, mutants,
/// and the chain, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Heap blocks that are too short, freed too early or moved too early.
    Heap,
    /// What the failing run alone shows: its conditions and values.
    Facts,
    /// Writes that reach out of their variables into others.
    Bounds,
    /// Runs of mutants of the program.
    Mutants,
    /// The cause–effect chain of variables from the input to the failure.
    Chain,
}

impl Stage {
    /// Returns how much CPU and wall time this part of an explanation may take from now on;
    /// `budget` is the CPU time for the whole explanation.
    pub fn share(self, budget: Duration) -> Allowance {
        let parts = match self {
            Stage::Heap => (5, 5),
            Stage::Facts => (4, 4),
            Stage::Bounds => (20, 20),
            // The runs of mutants have their own.
            Stage::Mutants | Stage::Chain => (1, 1),
        };
        Allowance::share(budget, parts)
    }

    /// Returns words for what this part of an explanation tries, such as `mutants of the program`;
    /// the explanation lists them if the time was over before the part was done.
    fn words(self) -> &'static str {
        match self {
            Stage::Heap => "heap blocks that are too short, or freed or moved too early",
            Stage::Facts => "conditions decided otherwise, and where values came from",
            Stage::Bounds => "writes that reach out of their variables",
            Stage::Mutants => "mutants of the program",
            Stage::Chain => "variables between the input and the failure",
        }
    }
}

/// Which parts of an explanation are not done yet, and which of them were cut short because their
/// time was over.
pub(crate) struct Stages {
    left: Vec<Stage>,
    /// Parts of the explanation that were cut short because their time was over; all are in `left`.
    cut: Vec<Stage>,
}

impl Default for Stages {
    fn default() -> Stages {
        Stages {
            left: vec![
                Stage::Heap,
                Stage::Facts,
                Stage::Bounds,
                Stage::Mutants,
                Stage::Chain,
            ],
            cut: Vec::new(),
        }
    }
}

impl Stages {
    /// Records that this part of the explanation is complete.
    pub fn done(&mut self, stage: Stage) {
        self.left.retain(|it| *it != stage);
    }

    /// Records that the part `stage` of the explanation was cut short, because its time was over.
    pub fn cut(&mut self, stage: Stage) {
        self.cut.push(stage);
    }

    /// Returns, in words, the parts of the explanation that were not made completely because time
    /// was over: those that were cut short and, if the whole time was used up (`is_late`), all that
    /// are not done.
    pub fn left(&self, is_late: bool) -> Vec<String> {
        let left = self.left.iter();
        let left = left.filter(|it| is_late || self.cut.contains(it));
        left.map(|it| it.words().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_for_want_of_time_is_named() {
        let mut stages = Stages::default();
        stages.cut(Stage::Heap);
        stages.done(Stage::Facts);
        assert_eq!(stages.left(false), [Stage::Heap.words()]);
        let all = [Stage::Heap, Stage::Bounds, Stage::Mutants, Stage::Chain].map(Stage::words);
        assert_eq!(stages.left(true), all);
    }
}
