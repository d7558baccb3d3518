//! One turn of a part of the call.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::show_call;
use super::turns::Turns;
use crate::campaign::{Finished, Minimizing};
use crate::cli::Failure;
use crate::cli::results::{forget, text_of, with_ending};
use crate::cli::slips::{keep_slip, slip_on_file, unlisted};
use crate::delta::Ddmin;
use crate::exec::{Target, Way};
use crate::files::atomic;
use crate::minimize::log::{CallRecord, ContentHash, OsText, Part, StartLine};
use crate::minimize::{
    BoxedOracle, Call, CallOracle, CallbackError, Held, Journal, MinRecord, Options, Oracle,
    OracleOfCall, Slip, Workers, minimize_by_workers,
};

impl Turns<'_> {
    /// Minimizes a part of the call, or goes on with its log.
    pub(super) fn shrink_call(
        &mut self,
        part: Part,
        at: usize,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        let call = Call::new(self.target.clone(), part, at);
        let file = self.input_file()?;
        let start = self.start_of_call(&call, part, at, file.as_deref());
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::from(error).path(log))?;
        let start: StartLine = journal.start().clone();
        let held = Held::from(self.crash);
        let learn_limit = self.args.target.timeout.is_none();
        let oracle = || -> BoxedOracle<'_> {
            let (call, input) = (call.clone(), self.input.clone());
            Box::new(oracle_of_call(call, input, held.clone(), learn_limit))
        };
        let make = || Ok(oracle());
        let workers = Workers::new(oracle(), &make, self.args.jobs());
        let slips = RefCell::new(Vec::new());
        let (budget_tests, budget_time) = self.left();
        let options = Options {
            budget_tests,
            budget_time,
            stop: Some(self.shown.stop),
            log_inputs: self.args.results.log_inputs,
            ..Options::default()
        };
        let mut options = Options {
            on_reduce: Box::new(|best| self.keep_best(&call, best, file.as_deref())),
            on_slip: Box::new(|slip, _| {
                slips.borrow_mut().push(self.keep_call_slip(&call, slip)?);
                Ok(())
            }),
            ..self.shown.screen.watch_call(options)
        };
        let minimized = minimize_by_workers(call.text(), workers, &mut journal, &mut options);
        let minimized = minimized.map_err(|error| {
            if !begun {
                forget(log, &error);
            }
            Failure::from(error)
        })?;
        drop(options);
        let mut record = MinRecord::new(&minimized, &start, Duration::ZERO);
        record.log = text_of(log);
        let kept = slips.into_inner();
        let on_file = |slip| slip_on_file(self.result, slip, &kept);
        record.slips = record.slips.iter().map(on_file).collect();
        for path in unlisted(&kept, &record.slips) {
            self.shown.tell_of_stray(path);
        }
        // What the search came to was run, and so it is a call.
        if let Some(target) = call.target(&minimized.text) {
            self.target = target;
        }
        Ok((Finished { start, minimized }, record))
    }

    fn start_of_call(&self, call: &Call, part: Part, at: usize, input: Option<&Path>) -> StartLine {
        let mut minimizing = Minimizing::of_target(self.target.clone(), Way::Command, Ddmin::NAME);
        minimizing.no_cache = self.args.results.no_cache;
        minimizing.learn_limit = self.args.target.timeout.is_none();
        let mut start = minimizing.start_line(call.text(), self.crash);
        start.call = Some(CallRecord {
            part,
            at: at as u64,
            input_blake3: ContentHash::of(&self.input),
        });
        let absolute = input.and_then(|path| std::path::absolute(path).ok());
        start.input = absolute.map(|path| OsText(path.into()));
        start
    }

    /// Writes the script of the best call so far.
    fn keep_best(
        &self,
        call: &Call,
        best: &[u8],
        input: Option<&Path>,
    ) -> Result<(), CallbackError> {
        let target = call.target(best);
        let text = target.and_then(|target| show_call::script(&target, input, self.crash));
        match text {
            Some(text) => Ok(atomic::write_program(&self.files.script(), &text)?),
            None => Ok(()),
        }
    }

    /// Keeps another crash with the call that it takes.
    fn keep_call_slip(&self, call: &Call, slip: &Slip) -> Result<PathBuf, CallbackError> {
        let path = keep_slip(self.result, &self.input, &slip.keys)?;
        let target = call.target(&slip.input);
        if let (Some(target), Some(crash)) = (target, &slip.crash)
            && let Some(text) = show_call::script(&target, Some(&path), crash)
        {
            atomic::write_program(&with_ending(&path, ".sh"), &text)?;
        }
        Ok(path)
    }
}

/// The oracle that runs `input` by the candidates of `call`, each in a process of its own: keys are
/// equal by every way of execution, and a server would have to be started for each.
pub(in crate::cli) fn oracle_of_call(
    call: Call,
    input: Vec<u8>,
    held: Held,
    learn_limit: bool,
) -> CallOracle {
    let make: OracleOfCall = Box::new(move |target: Target| {
        let mut minimizing = Minimizing::of_target(target, Way::Command, Ddmin::NAME);
        minimizing.learn_limit = learn_limit;
        let oracle = minimizing.oracle(held.clone())?;
        Ok(Box::new(oracle) as Box<dyn Oracle + Send>)
    });
    CallOracle::new(call, input, make)
}
