//! The options of a failing call, minimized before its input is: the drawn set by the same
//! delta debugging, with "same key" as the oracle.

use std::sync::atomic::AtomicBool;

use crate::error::CampaignError;
use crate::minimizing::Minimizing;
use ddfuzz_delta::Ddmin;
use ddfuzz_exec::{Target, TargetRecord, Way};
use ddfuzz_minimize::log::{CallRecord, ContentHash, OsText, Part};
use ddfuzz_minimize::{
    BoxedOracle, Call, CallOracle, Held, Journal, MinimizeError, Oracle, OracleOfCall, Workers,
    minimize_by_workers,
};
use ddfuzz_store::Entry;
use ddfuzz_triage::Subject;

/// Minimizes the arguments of an entry's call, or goes on with the log of that: gives what is left
/// of them; `None` where there are none that may go.
///
/// # Errors
/// [`MinimizeError::Interrupted`] when `stop` turned true; when the target cannot be run, or the
/// log cannot be written.
pub(super) fn minimize_options(
    minimizing: &Minimizing,
    entry: &Entry,
    log: &std::path::Path,
    stop: &AtomicBool,
) -> Result<Option<Subject>, CampaignError> {
    let Some(subject) = &entry.crash.of else {
        return Ok(None);
    };
    // Keys are equal by every way of execution, and a server would have to be started for each
    // candidate.
    let of_entry = Minimizing {
        way: Way::Command,
        search: Ddmin::NAME.to_owned(),
        ..minimizing.of(&entry.crash)
    };
    let call = Call::new(of_entry.target.clone(), Part::Args, 0);
    if call.text().is_empty() {
        return Ok(None);
    }
    let input = entry.original_bytes()?;
    let mut start = of_entry.start_line(call.text(), &entry.crash);
    start.call = Some(CallRecord {
        part: Part::Args,
        at: 0,
        input_blake3: ContentHash::of(&input),
    });
    let original = std::path::absolute(entry.original()).ok();
    start.input = original.map(|path| OsText(path.into()));
    let mut journal = Journal::resume(log, start).map_err(MinimizeError::from)?;
    let held = Held::from(&entry.crash);
    let oracle = || -> BoxedOracle<'_> {
        let (base, held) = (of_entry.clone(), held.clone());
        let make: OracleOfCall = Box::new(move |target: Target| {
            let of_call = Minimizing {
                target,
                ..base.clone()
            };
            let oracle = of_call.oracle(held.clone())?;
            Ok(Box::new(oracle) as Box<dyn Oracle + Send>)
        });
        Box::new(CallOracle::new(call.clone(), input.clone(), make))
    };
    let make = || Ok(oracle());
    let workers = Workers::new(oracle(), &make, minimizing.jobs);
    let mut options = of_entry.options(stop);
    let minimized = minimize_by_workers(call.text(), workers, &mut journal, &mut options)?;
    let left = call.target(&minimized.text);
    Ok(left.map(|target| Subject {
        target: TargetRecord::new(&target, subject.target.way),
        ..(**subject).clone()
    }))
}
