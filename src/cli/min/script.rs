//! `--test SCRIPT`: minimizes by an interestingness test.

use std::path::Path;

use super::into_file::IntoFile;
use super::{Args, Shown};
use crate::campaign::Finished;
use crate::cli::Failure;
use crate::cli::results::Place;
use crate::cli::script::{Interestingness, no_group};
use crate::minimize::{BoxedOracle, MinRecord, Options, Workers, minimize_by_workers};

/// Minimizes by the test at `script`.
pub(super) fn minimize_by(
    script: &Path,
    args: &Args,
    path: &Path,
    input: &[u8],
    shown: &Shown<'_>,
) -> Result<(Finished, MinRecord), Failure> {
    let mut test = Interestingness::find(script, &args.target, path)?;
    let place = args.place()?;
    let Place::File { results, log } = &place else {
        return Err(no_group());
    };
    let mut oracle = test.oracle()?;
    test.baseline(&mut oracle, input, path)?;
    if args.results.force {
        place.clear()?;
    }
    let options = Options {
        budget_tests: args.results.budget_tests,
        budget_time: args.results.budget_time,
        stop: Some(shown.stop),
        log_inputs: args.results.log_inputs,
        ..Options::default()
    };
    let into = IntoFile {
        path,
        input,
        result: &results[0],
        log,
        shown,
    };
    let make = || Ok(Box::new(test.one_more()?) as BoxedOracle<'_>);
    let workers = Workers::new(Box::new(oracle), &make, args.jobs());
    into.minimize(
        test.start_line(input, &args.search, args.results.no_cache),
        options,
        |input, journal, options| minimize_by_workers(input, workers, journal, options),
    )
}
