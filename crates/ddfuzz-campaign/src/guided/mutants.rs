//! [`MutationStage`], the mutational stage of a worker, which runs the mutants of several corpus
//! entries in one batch.

use std::ops::Range;

use libafl::Error;
use libafl::corpus::{Corpus, CorpusId, HasCurrentCorpusId};
use libafl::fuzzer::ExecutionProcessor;
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator};
use libafl::schedulers::TestcaseScore;
use libafl::schedulers::testcase_score::CorpusPowerTestcaseScore;
use libafl::stages::{Restartable, Stage};
use libafl::state::{HasCorpus, HasCurrentTestcase};

use super::compare::{Comparer, Repairing};
use super::evaluate::{AfterFailure, Evaluator, Parents};
use super::executor::TargetExecutor;
use super::failures::FailureRates;
use super::structure::StructureMutator;
use super::worker::{Manager, Observers, State};

/// Number of mutants that are collected before they are run together. If the way of execution runs
/// larger batches, a whole batch is collected.
const BATCH: usize = 128;
/// Mutants that are likely to fail are discarded and replaced by others: at most this many for each
/// mutant that was asked for. When this limit is reached, mutants are run even if likely to fail.
const MAX_DISCARDED: usize = 3;
/// Length of a chain of havoc mutants: the first one is the corpus entry with one mutation, and
/// each further one is the previous mutant with one more mutation, as in libFuzzer. So each mutant
/// costs only one mutation.
const CHAIN: usize = 5;

/// A list of mutants of scheduled corpus entries. They are collected and then run together, because
/// one request to a process of the target may cost as much as a hundred short runs.
#[derive(Default)]
struct Pool {
    /// The mutants to run are the first `made` elements; the rest are buffers kept for reuse, to
    /// save allocations.
    mutants: Vec<BytesInput>,
    made: usize,
    /// The corpus entries that the collected mutants were made from, in the order of the mutants:
    /// the id of each entry, and the index after its last mutant.
    parents: Vec<(CorpusId, usize)>,
}

impl Pool {
    /// Makes mutants of `input`, the content of the corpus entry `id`, with `mutator`, and adds
    /// them to the pool: at most `count`, fewer if some tries make no mutant. Mutants are made in
    /// chains of `chain`: the first mutant of a chain is made from `input`, each further one from
    /// the previous mutant. Mutants for which `fails` returns true are discarded, up to a limit.
    fn add<M>(
        &mut self,
        (mutator, chain): (&mut M, usize),
        state: &mut State,
        (id, input): (CorpusId, &BytesInput),
        count: usize,
        fails: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Error>
    where
        M: Mutator<BytesInput, State>,
    {
        let first = self.made;
        let (mut tries, mut discarded) = (0, 0);
        while tries < count + discarded {
            tries += 1;
            let mutant = match (self.made - first) % chain {
                0 => self.next(input),
                _ => self.next_of_last(),
            };
            if mutator.mutate(state, mutant)? != MutationResult::Mutated {
                continue;
            }
            match fails(mutant.as_ref()) {
                true => discarded = (discarded + 1).min(MAX_DISCARDED * count),
                false => self.made += 1,
            }
        }
        self.end_turn(id);
        Ok(())
    }

    /// Returns the buffer for the next mutant of the pool, which holds a copy of `input` to be
    /// mutated.
    fn next(&mut self, input: &BytesInput) -> &mut BytesInput {
        if self.mutants.len() == self.made {
            self.mutants.push(BytesInput::new(Vec::new()));
        }
        copy(input, &mut self.mutants[self.made])
    }

    /// Copies the last mutant of the pool to the next buffer, and returns the copy, to be mutated
    /// further. There must be a last mutant.
    fn next_of_last(&mut self) -> &mut BytesInput {
        if self.mutants.len() == self.made {
            self.mutants.push(BytesInput::new(Vec::new()));
        }
        let (made, free) = self.mutants.split_at_mut(self.made);
        copy(&made[made.len() - 1], &mut free[0])
    }

    /// Records that the mutants added to the pool since the last call of this function were made
    /// from the corpus entry `id`.
    fn end_turn(&mut self, id: CorpusId) {
        match self.parents.last_mut() {
            Some((last, end)) if *last == id => *end = self.made,
            _ => self.parents.push((id, self.made)),
        }
    }

    fn clear(&mut self) {
        self.made = 0;
        self.parents.clear();
    }
}

/// Replaces the bytes of `to` with the bytes of `from`, and returns `to`.
fn copy<'a>(from: &BytesInput, to: &'a mut BytesInput) -> &'a mut BytesInput {
    to.as_mut().clear();
    to.as_mut().extend_from_slice(from.as_ref());
    to
}

/// The LibAFL stage of a worker that comes after the calibration: reports a calibration run that
/// did not pass, then mutates the scheduled corpus entry with compared values and with havoc, and
/// runs the mutants in batches, which may hold mutants of several corpus entries.
pub(super) struct MutationStage {
    compare: Comparer,
    havoc: StructureMutator,
    pool: Pool,
    failure_rates: FailureRates,
}

impl MutationStage {
    pub(super) fn new(compare: Comparer, havoc: StructureMutator) -> MutationStage {
        MutationStage {
            compare,
            havoc,
            pool: Pool::default(),
            failure_rates: FailureRates::default(),
        }
    }

    /// Makes the mutants of the scheduled corpus entry: first some in which two values that the
    /// target compared are made equal, then some with havoc and repaired checksums, and last as
    /// many with havoc alone as LibAFL's power schedule says. Makes none if mutants of the entry
    /// fail too often.
    fn mutate<Z>(&mut self, evaluator: &mut Evaluator<'_, Z>) -> Result<(), Error>
    where
        Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
    {
        let Some(id) = evaluator.state.current_corpus_id()? else {
            return Ok(());
        };
        if self.failure_rates.rests(id, &evaluator.executor.failures) {
            return Ok(());
        }
        let input = evaluator.state.current_input_cloned()?;
        let compared = self.compare.begin(evaluator.state)?;
        if !self.make(evaluator, (id, &input), compared, Maker::Compare)? {
            return Ok(());
        }
        let repaired = self.compare.repairs(evaluator.state)?;
        if !self.make(evaluator, (id, &input), repaired, Maker::Repair)? {
            return Ok(());
        }
        let over = evaluator.executor.failures.are_over_share();
        let count = self.iterations(evaluator.state, over)?;
        self.make(evaluator, (id, &input), count, Maker::Havoc)?;
        Ok(())
    }

    /// Makes `count` mutants of `input`, the corpus entry `id`, in the way `maker`; runs the
    /// collected mutants whenever there are enough. Returns false if no more mutants of the entry
    /// are to be made, because they fail too often or the worker has no runs left.
    fn make<Z>(
        &mut self,
        evaluator: &mut Evaluator<'_, Z>,
        (id, input): (CorpusId, &BytesInput),
        mut count: usize,
        maker: Maker,
    ) -> Result<bool, Error>
    where
        Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
    {
        while count > 0 {
            let most = evaluator.executor.at_once().max(BATCH);
            let some = count.min(most.saturating_sub(self.pool.made)).max(1);
            let (avoids, before) = (evaluator.executor.failures.are_over_share(), self.pool.made);
            let rates = &self.failure_rates;
            let fails = |mutant: &[u8]| avoids && rates.may_fail(id, input.as_ref(), mutant);
            let (state, of) = (&mut *evaluator.state, (id, input));
            match maker {
                Maker::Compare => {
                    let mutator = (&mut self.compare.solve, 1);
                    self.pool.add(mutator, state, of, some, fails)
                }
                Maker::Repair => {
                    let (comparer, havoc) = (&mut self.compare, &mut self.havoc);
                    let mut mutator = Repairing { comparer, havoc };
                    self.pool.add((&mut mutator, 1), state, of, some, fails)
                }
                Maker::Havoc => {
                    let chain = if self.havoc.parses() { 1 } else { CHAIN };
                    let mutator = (&mut self.havoc, chain);
                    self.pool.add(mutator, state, of, some, fails)
                }
            }?;
            if self.pool.made == before {
                // If havoc has nothing to mutate (`--max-len 0`), runs are made nevertheless.
                if maker != Maker::Havoc {
                    return Ok(true);
                }
                self.pool.next(input);
                self.pool.made += 1;
                self.pool.end_turn(id);
            }
            count -= some;
            let left = evaluator.runs_left()?;
            if left == 0 {
                return Ok(false);
            }
            if self.pool.made >= most || self.pool.made as u64 >= left {
                let skipped = self.run(evaluator)?;
                if skipped && self.failure_rates.rests(id, &evaluator.executor.failures) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns how many mutants of the scheduled corpus entry to make with havoc: the number from
    /// LibAFL's power schedule, times the number of turns that the entry gets (one, and further
    /// ones that other entries gave up because their mutants fail). If `over` is true (failing runs
    /// have taken more than their share of the time), the result is at least one batch.
    fn iterations(&mut self, state: &mut State, over: bool) -> Result<usize, Error> {
        let least = if over { BATCH } else { 1 };
        let mut testcase = state.current_testcase_mut()?;
        let score = CorpusPowerTestcaseScore::compute(state, &mut testcase)?;
        Ok(((score as usize).max(1) * self.failure_rates.turns()).max(least))
    }

    /// Runs all collected mutants, or until the worker must end. If a mutant fails while failing
    /// runs have taken more than their share of the time, the remaining mutants of its corpus entry
    /// are skipped. Returns true if mutants were skipped, and false if not.
    fn run<Z>(&mut self, evaluator: &mut Evaluator<'_, Z>) -> Result<bool, Error>
    where
        Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
    {
        let scheduled = *evaluator.state.corpus().current();
        let (ends, mutants) = (&self.pool.parents, &self.pool.mutants[..self.pool.made]);
        let (mut first, mut skipped) = (0, false);
        while first < mutants.len() {
            let parents = Parents { ends, first };
            let done = evaluator.evaluate(&mutants[first..], parents, AfterFailure::Skip)?;
            let to = first + done.runs;
            for (id, part) in parts(ends, first..to) {
                let entry = evaluator.state.corpus().cloned_input_for_id(id)?;
                let failed = done.failed.iter().map(|at| first + at);
                let failed = failed.filter(|at| part.contains(at));
                let failed: Vec<usize> = failed.map(|at| at - part.start).collect();
                let of = (id, &entry.as_ref()[..]);
                self.failure_rates.note(of, &mutants[part], &failed);
            }
            skipped |= done.skipped;
            first = match ends.iter().find(|(_, end)| *end >= to) {
                Some((_, end)) if done.skipped => *end,
                _ if to < mutants.len() => break, // the worker must end
                _ => to,
            };
        }
        *evaluator.state.corpus_mut().current_mut() = scheduled;
        self.pool.clear();
        Ok(skipped)
    }
}

/// Divides the mutants that were run (`ran`: their indices) by the corpus entry that they were made
/// from, and returns the id and the indices for each entry. `ends`: the id of each entry, and the
/// index after its last mutant.
fn parts(
    ends: &[(CorpusId, usize)],
    ran: Range<usize>,
) -> impl Iterator<Item = (CorpusId, Range<usize>)> {
    let begins = std::iter::once(0).chain(ends.iter().map(|(_, end)| *end));
    let parts = begins.zip(ends).map(move |(begin, (id, end))| {
        let part = begin.max(ran.start)..(*end).min(ran.end);
        (*id, part)
    });
    parts.filter(|(_, part)| !part.is_empty())
}

/// How a mutant is made: by making compared values equal, by havoc with repaired checksums, or by
/// havoc alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Compare,
    Repair,
    Havoc,
}

impl<Z> Stage<TargetExecutor, Manager, State, Z> for MutationStage
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    fn perform(
        &mut self,
        fuzzer: &mut Z,
        executor: &mut TargetExecutor,
        state: &mut State,
        manager: &mut Manager,
    ) -> Result<(), Error> {
        let mut evaluator = Evaluator {
            fuzzer,
            executor,
            state,
            manager,
        };
        evaluator.report_calibration()?;
        self.mutate(&mut evaluator)?;
        let is_full = self.pool.made >= evaluator.executor.at_once();
        match is_full || evaluator.executor.failures.are_over_share() {
            true => self.run(&mut evaluator).map(drop),
            false => Ok(()),
        }
    }
}

impl Restartable<State> for MutationStage {
    /// Tells LibAFL to run this stage: always true, since a restarted worker has a new state, and
    /// so there is no progress of the stage to continue.
    fn should_restart(&mut self, _state: &mut State) -> Result<bool, Error> {
        Ok(true)
    }

    fn clear_progress(&mut self, _state: &mut State) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_split_by_the_entries_that_they_were_made_of() {
        let id = CorpusId::from;
        let ends = [(id(7_usize), 3), (id(4_usize), 3), (id(9_usize), 5)];
        let of = |ran| parts(&ends, ran).collect::<Vec<_>>();
        assert_eq!(of(0..5), [(id(7_usize), 0..3), (id(9_usize), 3..5)]);
        assert_eq!(of(1..4), [(id(7_usize), 1..3), (id(9_usize), 3..4)]);
        assert_eq!(of(4..4), []);
        let ends = &ends[..];
        let parent = |first, input| Parents { ends, first }.of(input);
        assert_eq!(parent(0, 2), Some(id(7_usize)));
        assert_eq!(parent(2, 1), Some(id(9_usize)));
        assert_eq!(parent(2, 3), None);
    }

    #[test]
    fn turns_of_one_entry_are_one_part_and_buffers_are_used_again() {
        let mut pool = Pool::default();
        let input = BytesInput::new(b"entry".to_vec());
        for (entry, made) in [(1_usize, 2), (1, 1), (2, 0)] {
            for _ in 0..made {
                pool.next(&input).as_mut().push(b'!');
                pool.made += 1;
            }
            pool.end_turn(CorpusId::from(entry));
        }
        assert_eq!(pool.parents, [(1_usize.into(), 3), (2_usize.into(), 3)]);
        pool.clear();
        assert_eq!(pool.mutants.len(), 3);
        assert_eq!(pool.next(&input).as_ref(), b"entry");
    }

    #[test]
    fn a_mutant_of_a_chain_is_made_of_the_one_before() {
        let mut pool = Pool::default();
        pool.next(&BytesInput::new(b"a".to_vec()))
            .as_mut()
            .push(b'b');
        pool.made += 1;
        pool.next_of_last().as_mut().push(b'c');
        pool.made += 1;
        assert_eq!(pool.next_of_last().as_ref(), b"abc");
        assert_eq!(pool.mutants[0].as_ref(), b"ab");
    }
}
