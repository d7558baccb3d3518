//! `ddfuzz log replay` and `ddfuzz log verify` for logs of `max` and `diff`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{read_logged, write_rebuilt};
use crate::cli::results::{file_or_stdin, is_standard, with_ending};
use crate::cli::{Exit, Failure, Output};
use crate::delta::Outcome;
use crate::minimize::isolate::{Side, replay_sides, verify_sides};
use crate::minimize::log::{DifferenceRecord, Goal, Log, StartLine};
use crate::minimize::{Claim, Counts, Inverted, Oracle, Proved};
use crate::report::size;

/// Option `--passing` of commands that read a log of `ddfuzz diff`.
#[derive(clap::Args)]
pub struct PassingArgs {
    /// The passing input, for a log of `diff`; - is stdin [default: the path in the log]
    #[arg(long, value_name = "FILE", value_parser = file_or_stdin())]
    passing: Option<PathBuf>,
}

impl PassingArgs {
    fn read(&self, record: &DifferenceRecord, log: &Path) -> Result<Vec<u8>, Failure> {
        let Some(logged) = &record.passing else {
            return Ok(Vec::new());
        };
        let recorded = logged.path.as_ref().map(|path| PathBuf::from(&path.0));
        let Some(path) = self.passing.clone().or(recorded) else {
            return Err(
                Failure::usage("the log does not say where its passing input is")
                    .path(log)
                    .hint("give it with --passing FILE"),
            );
        };
        let hint = "give it with --passing FILE";
        read_logged(
            &path,
            self.passing.is_some(),
            "passing input",
            &logged.blake3,
            hint,
        )
    }
}

#[derive(Serialize)]
struct Rebuilt {
    holds: bool,
    size_passing: u64,
    size_failing: u64,
    claim: Option<Claim>,
    proved: Option<Proved>,
    tests: Counts,
}

/// A minimization log of `ddfuzz max` or `ddfuzz diff`, with the passing and the failing input.
pub struct DifferenceLog<'a> {
    pub path: &'a Path,
    pub log: &'a Log,
    /// Record, in the first line of the log, of the search's goal and passing input.
    pub record: &'a DifferenceRecord,
    /// The option `--passing`, with which the user may name the passing input.
    pub passing: &'a PassingArgs,
    /// Content of the failing input at the beginning of the logged search.
    pub failing: &'a [u8],
}

impl<'a> DifferenceLog<'a> {
    /// Returns the given log with its passing and failing input if it is a log of `ddfuzz max` or
    /// `ddfuzz diff`; `None` for a log of `ddfuzz min`.
    pub fn of(
        path: &'a Path,
        log: &'a Log,
        start: &'a StartLine,
        passing: &'a PassingArgs,
        failing: &'a [u8],
    ) -> Option<DifferenceLog<'a>> {
        Some(DifferenceLog {
            record: start.difference.as_ref()?,
            path,
            log,
            passing,
            failing,
        })
    }
}

/// Returns true if the log is of a search with `--invert`, which swaps PASS and FAIL.
pub fn is_inverted(start: &StartLine) -> bool {
    start.difference.as_ref().is_some_and(|one| one.inverted)
}

/// Rebuilds the result of `max` or `diff`, a passing and a failing input, from the log and the
/// original inputs, without running the target (`ddfuzz log replay`). Writes it to `out`: of `max`
/// the passing input; of `diff` the failing one, and the passing one to a file beside it whose name
/// ends with `.pass`. If `out` is stdout, there is no second file. Returns the exit code.
pub fn rebuild(
    asked: &DifferenceLog<'_>,
    out: Option<&Path>,
    output: &Output,
) -> Result<Exit, Failure> {
    let passing = asked.passing.read(asked.record, asked.path)?;
    let replayed = replay_sides(&passing, asked.failing, asked.log)
        .map_err(|error| Failure::from(error).path(asked.path))?;
    if let Some(out) = out {
        let behind = with_ending(out, ".pass");
        let files = match asked.record.goal {
            Goal::Maximize => vec![(out, &replayed.passing)],
            Goal::Isolate if is_standard(out) => vec![(out, &replayed.failing)],
            Goal::Isolate => vec![(out, &replayed.failing), (&*behind, &replayed.passing)],
        };
        for (file, text) in files {
            write_rebuilt(file, text)?;
        }
    }
    let isolated = replayed.isolated.as_ref();
    let rebuilt = Rebuilt {
        holds: true,
        size_passing: replayed.passing.len() as u64,
        size_failing: replayed.failing.len() as u64,
        claim: isolated.map(|isolated| isolated.claim),
        proved: isolated.map(|isolated| isolated.proved),
        tests: replayed.counts,
    };
    let claim = rebuilt.claim.map(|claim| claim.to_string());
    let text = format!(
        "the log is consistent: {}, {} that pass and {} that fail, {}",
        size::counted(rebuilt.tests.executed, "test"),
        size::bytes(rebuilt.size_passing),
        size::bytes(rebuilt.size_failing),
        claim.as_deref().unwrap_or("unfinished"),
    );
    output.result(&text, &rebuilt);
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Proven {
    passing: Outcome,
    failing: Outcome,
    holds: bool,
    claim: Claim,
    proved: Proved,
    cut_off: u64,
}

/// Runs the tests again that prove the log's claim of minimality, prints the verdict, and returns
/// the exit code (`ddfuzz log verify`).
pub fn prove(
    asked: &DifferenceLog<'_>,
    oracle: Box<dyn Oracle>,
    output: &Output,
) -> Result<Exit, Failure> {
    let passing = asked.passing.read(asked.record, asked.path)?;
    let mut oracle: Box<dyn Oracle> = match asked.record.inverted {
        true => Box::new(Inverted(oracle)),
        false => oracle,
    };
    let verified = verify_sides(&passing, asked.failing, asked.log, oracle.as_mut(), |_| ())
        .map_err(|error| Failure::of_verifying(error, asked.path))?;
    let proven = Proven {
        proved: verified.proved,
        cut_off: verified.cut_off,
        passing: verified.passing,
        failing: verified.failing,
        holds: verified.holds(),
        claim: verified.claim,
    };
    let of = format!(
        "{} of {}",
        size::grouped(proven.proved.done),
        size::counted(proven.proved.of, "delta test")
    );
    let ends = format!(
        "the passing input gives {}, the failing input gives {}",
        proven.passing, proven.failing
    );
    let text = match (proven.holds, &verified.refuted) {
        (true, _) if proven.claim == Claim::BestSoFar => {
            "best-so-far is verified: the failing input fails".to_owned()
        }
        (true, _) => format!(
            "{} is verified: {ends}; {of} ended as the log records",
            proven.claim
        ),
        (false, Some(found)) => format!(
            "{} is refuted: {}",
            proven.claim,
            match found.side {
                Side::Passing => "with one more delta the passing input still passes",
                Side::Failing => "with one delta less the failing input still fails",
            }
        ),
        (false, None) => format!(
            "{} is not verified: {ends}; {of} ended as the log records",
            proven.claim
        ),
    };
    output.result(&text, &proven);
    Ok(if proven.holds {
        Exit::Done
    } else {
        Exit::Found
    })
}
