//! Evaluates inputs: [`Evaluator`] runs many inputs at once, and passes to LibAFL those that reach
//! something new or do not pass.

use std::time::Instant;

use libafl::Error;
use libafl::corpus::{Corpus, CorpusId};
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::executors::{ExitKind, HasObservers};
use libafl::fuzzer::{ExecuteInputResult, ExecutionProcessor};
use libafl::inputs::{BytesInput, Input};
use libafl::observers::ObserversTuple;
use libafl::state::{HasCorpus, HasCurrentTestcase, HasExecutions};

use super::executor::{NotedRun, TargetExecutor, fail};
use super::hangs::HangAction;
use super::messages::Request;
use super::worker::{Manager, Observers, State};
use crate::CrashSink;
use ddfuzz_exec::{Ended, ExecError, Stuck};

/// What [`Evaluator::evaluate`] does with its remaining inputs after one has failed: runs them or
/// skips them. An input fails if it hangs, or if it crashes and nothing new of the crash is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// After an input that fails, the remaining inputs of the list are run as usual.
    Run,
    /// The remaining inputs are skipped after an input that fails, if failing runs have taken more
    /// than their share of the worker's time.
    Skip,
}

/// How many of the inputs given to [`Evaluator::evaluate`] were run, and which of them failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Evaluated {
    /// Number of inputs of the list that were run, from the first on.
    pub(super) runs: usize,
    /// Indices, among the inputs given to the evaluator, of those that hung, or crashed
    /// without anything new to store.
    pub(super) failed: Vec<usize>,
    /// Whether the remaining inputs were skipped because one failed and failing runs have taken
    /// more than their share of the time.
    pub(super) skipped: bool,
}

/// Tells for each input of a list of mutants from which corpus entry the mutant was made. Empty for
/// seeds and generated inputs, which are made from no entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parents<'a> {
    /// For each corpus entry that mutants were made from, in the order of the mutants: its id, and
    /// the index after its last mutant. The indices count in the whole list of mutants; the
    /// evaluated inputs are a part of this list.
    pub(super) ends: &'a [(CorpusId, usize)],
    /// Index, in the whole list of mutants, of the first mutant to evaluate.
    pub(super) first: usize,
}

impl Parents<'_> {
    pub(super) fn of(&self, input: usize) -> Option<CorpusId> {
        let mut ends = self.ends.iter();
        let parent = ends.find(|(_, end)| self.first + input < *end);
        parent.map(|(id, _)| *id)
    }
}

/// The parts of a worker that run and evaluate inputs: LibAFL's fuzzer, ddfuzz's executor, the
/// fuzzer's state and the event manager.
pub(super) struct Evaluator<'a, Z> {
    pub(super) fuzzer: &'a mut Z,
    pub(super) executor: &'a mut TargetExecutor,
    pub(super) state: &'a mut State,
    pub(super) manager: &'a mut Manager,
}

impl<Z> Evaluator<'_, Z>
where
    Z: ExecutionProcessor<Manager, BytesInput, Observers, State>,
{
    /// Returns how many more of the runs granted by the main process the worker may make; 0 if the
    /// worker must end. Sends a heartbeat to the main process when it is due, and waits while the
    /// worker has no runs to make and need not end.
    pub(super) fn runs_left(&mut self) -> Result<u64, Error> {
        self.executor.heartbeat.remaining_runs().map_err(fail)
    }

    /// Runs `inputs` in their order, as many as the main process grants. Passes to LibAFL those
    /// whose runs reach something new or do not pass. `parents`: the corpus entries that the inputs
    /// are mutants of. `after_failure`: whether the remaining inputs are run after one that fails.
    /// Returns how many inputs were run, and which failed.
    ///
    /// Most runs pass and reach nothing new. Their coverage is not read, and no feedback is called
    /// for them: the process of the target compares its counters itself.
    pub(super) fn evaluate(
        &mut self,
        inputs: &[BytesInput],
        parents: Parents<'_>,
        after_failure: AfterFailure,
    ) -> Result<Evaluated, Error> {
        let mut done = Evaluated::default();
        while done.runs < inputs.len() && !done.skipped {
            let left = self.runs_left()?;
            let some = self.executor.at_once().min(inputs.len() - done.runs);
            let some = some.min(usize::try_from(left).unwrap_or(usize::MAX));
            if some == 0 {
                break;
            }
            let batch = &inputs[done.runs..done.runs + some];
            let bytes: Vec<&[u8]> = batch.iter().map(|input| &input.as_ref()[..]).collect();
            let began = Instant::now();
            let noted = self.executor.run_some(&bytes).map_err(fail)?;
            let ended = noted.last().map(|noted| noted.run.ended);
            let hangs = ended == Some(Ended::Timeout);
            let mut fails = hangs;
            self.executor.took(noted.len(), began.elapsed(), hangs);
            self.executor.heartbeat.runs += noted.len() as u64;
            *self.state.executions_mut() += noted.len() as u64;
            let ran = noted.len();
            for (number, (input, noted)) in batch.iter().zip(noted).enumerate() {
                let kind = self.executor.exit_kind(noted.run.ended);
                if kind == ExitKind::Ok && noted.counters.is_none() {
                    continue;
                }
                if let Some(parent) = parents.of(done.runs + number) {
                    *self.state.corpus_mut().current_mut() = Some(parent);
                }
                match noted.run.ended {
                    Ended::Timeout => self.handle_hang(input)?,
                    _ if kind == ExitKind::Ok => drop(self.process_run(input, &noted)?),
                    _ => fails = self.process_crash(input, &noted)?,
                }
            }
            done.failed.extend(fails.then_some(done.runs + ran - 1));
            done.runs += ran;
            self.process_corrected()?;
            let skips = fails && after_failure == AfterFailure::Skip;
            done.skipped = skips && self.executor.failures.are_over_share();
        }
        self.apply_verdicts()?;
        Ok(done)
    }

    /// Processes, like the results of new runs, the results of earlier runs that the executor has
    /// repeated in new processes because their first results were wrong
    /// ([`exec::Executor::corrected`](ddfuzz_exec::Executor::corrected)).
    fn process_corrected(&mut self) -> Result<(), Error> {
        for (bytes, run) in self.executor.executor.corrected() {
            let input = BytesInput::new(bytes);
            let counters = None;
            match run.ended {
                Ended::Timeout => self.run_longer(&input)?,
                _ => drop(self.process_run(&input, &NotedRun { run, counters })?),
            }
        }
        Ok(())
    }

    /// Handles an input whose run, the last run of the executor, was stopped as a hang. Depending
    /// on what is known of the hang, counts the run for the hang's group, submits the input to the
    /// main process, or runs it again within the target's full time limit.
    fn handle_hang(&mut self, input: &BytesInput) -> Result<(), Error> {
        let stuck = self.executor.executor.stuck();
        match self.executor.hangs.meet(&stuck, input.as_ref().len()) {
            HangAction::Count => Ok(()),
            HangAction::Submit { number, first } => {
                let hangs = &mut self.executor.hangs;
                hangs.keep(number, input, &stuck.counters);
                self.submit_hang(input, stuck, (number, first))
            }
            HangAction::RunLonger => self.run_longer(input),
        }
    }

    /// Submits an input whose run was stopped as a hang to the main process, which examines it; if
    /// the campaign is linked with other hosts, also sends the input to these. `stuck`: the
    /// signatures (hashes of the looping code) that the run showed. `number`: the number that the
    /// worker gives the submission. `first`: whether the worker has seen no hang at the same site
    /// in the program before.
    fn submit_hang(
        &mut self,
        input: &BytesInput,
        stuck: Stuck,
        (number, first): (u64, bool),
    ) -> Result<(), Error> {
        let request = Request::Hang {
            number,
            first,
            signatures: stuck.signatures,
            run: self.state.executions().saturating_sub(1),
            name: input.generate_name(None),
        };
        let main_process = &self.executor.heartbeat.main_process;
        main_process.tell(&request, input.as_ref()).map_err(fail)?;
        match self.executor.linked {
            true => self.share(input, ExitKind::Timeout),
            false => Ok(()),
        }
    }

    /// Handles an input whose run exceeded the learned time limit: runs it again within the
    /// target's full limit, and processes the run like any other if it ends; otherwise submits the
    /// input as a hang. Does nothing if the time for such runs is used up or no limit is learned.
    fn run_longer(&mut self, input: &BytesInput) -> Result<(), Error> {
        let timeouts = &self.executor.timeouts;
        if !timeouts.has_time() || !timeouts.is_learned() {
            return Ok(());
        }
        let began = Instant::now();
        let noted = match self.executor.run_with_full_limit(input.as_ref()) {
            Err(ExecError::Abandoned) => return Ok(()),
            noted => noted.map_err(fail)?,
        };
        let processed = match noted.run.ended {
            Ended::Timeout => {
                let stuck = self.executor.executor.stuck();
                let number = self.executor.hangs.next_number();
                self.submit_hang(input, stuck, (number, true))
            }
            _ => self.process_run(input, &noted).map(drop),
        };
        self.executor.timeouts.spend(began.elapsed());
        processed
    }

    /// Applies the verdicts about suspected hangs that the main process has sent. Inputs that turn
    /// out not to hang, and were kept for their new coverage, are run again within the full time
    /// limit. Runs that were stopped at hangs of a known group are added to the counts in the next
    /// heartbeat.
    pub(super) fn apply_verdicts(&mut self) -> Result<(), Error> {
        for judged in self.executor.heartbeat.take_judged() {
            let own = self.executor.heartbeat.main_process.own_number(judged.from);
            if let Some(input) = self.executor.hangs.apply(&judged, own) {
                self.run_longer(&input)?;
            }
        }
        for (kind, major, runs) in self.executor.hangs.take_counts() {
            let main_process = &mut self.executor.heartbeat.main_process;
            main_process.count(kind, major, runs).map_err(fail)?;
        }
        Ok(())
    }

    /// Reports a crash to LibAFL, to be classified. Returns true if nothing new of the crash was
    /// stored; the time for its classification then counts as time of failing runs. Returns false
    /// if something was stored.
    fn process_crash(&mut self, input: &BytesInput, noted: &NotedRun) -> Result<bool, Error> {
        let began = Instant::now();
        let is_new = self.process_run(input, noted)?;
        if !is_new {
            self.executor.failures.classified(began.elapsed());
        }
        Ok(!is_new)
    }

    /// Reports a run to LibAFL if the run did not pass or has reached new coverage; does nothing
    /// for other runs. Returns true if LibAFL keeps the input as a solution, and false if it does
    /// not.
    fn process_run(&mut self, input: &BytesInput, noted: &NotedRun) -> Result<bool, Error> {
        let kind = self.executor.exit_kind(noted.run.ended);
        let counters = match (&noted.counters, kind) {
            (Some(counters), _) => &counters[..],
            (None, ExitKind::Ok) => return Ok(false),
            (None, _) => &[],
        };
        if kind == ExitKind::Ok {
            self.executor.timeouts.see(noted.run.cpu);
        }
        self.executor.observe(noted.run.ended, counters)?;
        self.report(input, kind)
    }

    /// Reports the last run to LibAFL, whose feedbacks and objective evaluate the observers.
    /// Returns true if LibAFL keeps the input as a solution, and false if it does not. Sends a
    /// solution to the linked hosts, too, if the campaign has any.
    fn report(&mut self, input: &BytesInput, kind: ExitKind) -> Result<bool, Error> {
        let mut observers = self.executor.observers_mut();
        observers.post_exec_all(self.state, input, &kind)?;
        let observers = &*self.executor.observers();
        let (result, _) = self.fuzzer.evaluate_execution(
            self.state,
            self.manager,
            input,
            observers,
            &kind,
            true,
        )?;
        let is_solution = result == ExecuteInputResult::Solution;
        if is_solution && self.executor.linked {
            self.share(input, kind)?;
        }
        Ok(is_solution)
    }

    /// Reports a failed run of LibAFL's calibration to the objective, or handles it as a hang,
    /// since LibAFL itself only warns of it; does nothing if no run failed.
    pub(super) fn report_calibration(&mut self) -> Result<(), Error> {
        let Some(ended) = self.executor.unreported() else {
            return Ok(());
        };
        let input = self.state.current_input_cloned()?;
        if ended == Ended::Timeout {
            self.executor.clear_unreported();
            return self.handle_hang(&input);
        }
        self.executor.observe_end(ended)?;
        let kind = self.executor.exit_kind(ended);
        self.report(&input, kind).map(drop)
    }

    /// Sends an input that did not pass to the linked hosts. It is sent as LibAFL's message for a
    /// new test case, since brokers forward no messages for objectives.
    fn share(&mut self, input: &BytesInput, exit_kind: ExitKind) -> Result<(), Error> {
        let config = <Manager as EventFirer<BytesInput, State>>::configuration(self.manager);
        let event = Event::NewTestcase {
            input: input.clone(),
            observers_buf: None,
            exit_kind,
            corpus_size: self.state.corpus().count(),
            client_config: config,
            forward_id: None,
        };
        let event = EventWithStats::with_current_time(event, *self.state.executions());
        self.manager.fire(self.state, event)
    }
}
