//! Searches between two inputs by script.

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::isolate::{Isolated, Subject, isolate};
use ddfuzz::minimize::log::{
    ContentHash, DifferenceRecord, Goal, Log, PassingRecord, StartLine, Units,
};
use ddfuzz::minimize::{Journal, MinimizeError, Options, Oracle};

use crate::memory::Memory;
use crate::scripted::{outcomes, start_by};

/// A search between two inputs.
#[derive(Clone)]
pub struct Case {
    pub passing: Vec<u8>,
    pub failing: Vec<u8>,
    pub start: StartLine,
}

impl Case {
    /// Of these deltas.
    pub fn new(goal: Goal, units: Units, passing: &[u8], failing: &[u8]) -> Case {
        let deltas = Subject::new(units, passing, failing).deltas() as u64;
        let record = PassingRecord {
            blake3: ContentHash::of(passing),
            size: passing.len() as u64,
            path: None,
        };
        let difference = Some(DifferenceRecord {
            goal,
            units,
            deltas,
            passing: (units != Units::Bytes).then_some(record),
            inverted: false,
            monotone: false,
            ordered: false,
        });
        Case {
            passing: passing.to_vec(),
            failing: failing.to_vec(),
            start: StartLine {
                difference,
                ..start_by(failing, "dd")
            },
        }
    }

    /// From the empty input.
    pub fn of(goal: Goal, failing: &[u8]) -> Case {
        Case::new(goal, Units::Bytes, b"", failing)
    }

    /// Isolating an edit between two inputs.
    pub fn edits(passing: &[u8], failing: &[u8]) -> Case {
        Case::new(Goal::Isolate, Units::Edits, passing, failing)
    }

    /// With another first line.
    pub fn with(mut self, change: impl FnOnce(&mut DifferenceRecord)) -> Case {
        self.start.difference.as_mut().map(change);
        self
    }

    /// Goes on with what is left of a log; gives the result and the whole log.
    pub fn go_on(
        &self,
        left: &[u8],
        oracle: &mut dyn Oracle,
        options: &mut Options<'_>,
    ) -> (Result<Isolated, MinimizeError>, Vec<u8>) {
        let parsed = Log::parse(left).expect("a log that was only cut off");
        let memory = Memory::new(&left[..parsed.whole as usize]);
        let journal = Journal::go_on(parsed, self.start.clone(), memory.writer());
        let mut journal = journal.expect("the same log");
        let units = self.start.difference.as_ref().expect("a difference").units;
        let subject = Subject::new(units, &self.passing, &self.failing);
        let on_side = Box::new(|_, _: &[u8]| Ok(()));
        let result = isolate(&subject, oracle, &mut journal, options, on_side);
        (result, memory.bytes())
    }

    /// From the beginning; gives the result and the log.
    pub fn run(&self, oracle: &mut dyn Oracle) -> (Result<Isolated, MinimizeError>, Vec<u8>) {
        self.go_on(&[], oracle, &mut Options::default())
    }

    /// By outcomes that always lead to a result.
    pub fn isolated(&self, test: &dyn Fn(&[u8]) -> Outcome) -> (Isolated, Vec<u8>) {
        let (result, log) = self.run(&mut outcomes(test));
        (result.expect("a result"), log)
    }
}
