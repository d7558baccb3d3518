//! The oracle by which a log is verified: that of its start line, or what is asked for instead.

use std::path::{Path, PathBuf};

use super::min::phase::oracle_of_call;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, script};
use crate::campaign::Minimizing;
use crate::corpus::trim::CoverageOracle;
use crate::exec::Target;
use crate::minimize::log::{ContentHash, CoverageRecord, KeyRecord, StartLine, TestRecord};
use crate::minimize::{Call, Oracle, TestOracle};
use crate::report::size;

/// The oracle of the log at `log`, whose first line is `start`. A target or test that is asked for
/// stands in for the log's own, as does `input` for the input that calls are made with.
pub fn of_log(
    log: &Path,
    start: &StartLine,
    asked: &TargetArgs,
    test: Option<&Path>,
    input: Option<&Path>,
    output: &Output,
) -> Result<Box<dyn Oracle>, Failure> {
    if let Some(coverage) = &start.coverage {
        return of_coverage(log, start, coverage, (asked, test));
    }
    match (&start.test, &start.key) {
        (Some(record), _) if !asked.is_named() => {
            of_test(log, start, record, (asked, test), output)
        }
        (Some(_), _) => Err(Failure::usage(
            "the log is of an interestingness test, but a program is given",
        )
        .path(log)
        .hint("give another test with --test")),
        (None, _) if test.is_some() => Err(Failure::usage(
            "the log is of a crash, but an interestingness test is given",
        )
        .path(log)
        .hint("give another program after `--`")),
        (None, Some(key)) if start.call.is_some() => of_call(log, start, key, asked, input),
        (None, Some(key)) => {
            let target = asked_or_logged(log, start, asked)?;
            // Keys are equal by every way of execution.
            let way = asked.asked_way().unwrap_or(start.target.way);
            let mut minimizing = Minimizing::of_target(target, way, &start.search);
            minimizing.learn_limit = asked.timeout.is_none();
            Ok(Box::new(minimizing.oracle(key)?))
        }
        (None, None) => Err(Failure::usage(
            "the log holds neither a crash, nor a test, nor coverage to verify",
        )
        .path(log)),
    }
}

/// The target that the user names, else that of the log.
fn asked_or_logged(log: &Path, start: &StartLine, asked: &TargetArgs) -> Result<Target, Failure> {
    let logged = start.target.target(asked.limits_over(start.limits));
    match (asked.is_named(), logged) {
        (true, _) => asked.target(),
        (false, Some(target)) => Ok(target),
        (false, None) => Err(
            Failure::usage("the log does not record which program was run")
                .path(log)
                .hint("give the program after `--`"),
        ),
    }
}

/// The numbers of features hold for one build of the target, run by a way that tells coverage.
fn of_coverage(
    log: &Path,
    start: &StartLine,
    coverage: &CoverageRecord,
    (asked, test): (&TargetArgs, Option<&Path>),
) -> Result<Box<dyn Oracle>, Failure> {
    if test.is_some() {
        let message = "the log is of trimming by coverage, but an interestingness test is given";
        return Err(Failure::usage(message)
            .path(log)
            .hint("give a program that reports coverage after `--`"));
    }
    let target = asked_or_logged(log, start, asked)?;
    let way = asked.asked_way().unwrap_or(start.target.way);
    let mut oracle = CoverageOracle::start(&target, way)?;
    if oracle.places() as u64 != coverage.places {
        let message = format!(
            "the target has {}, and had {} when the log was written: it is another build, and its \
             coverage cannot be compared",
            size::counted(oracle.places() as u64, "instrumented place"),
            coverage.places
        );
        return Err(Failure::new(Exit::Found, "target", message)
            .path(log)
            .hint("give the build that the log was written with after `--`"));
    }
    oracle.hold(coverage.into());
    Ok(Box::new(oracle))
}

/// The part of a call that a log is of, where it is not of the input.
pub fn call_of(start: &StartLine) -> Option<Call> {
    let record = start.call.as_ref()?;
    let target = start.target.target(start.limits)?;
    Some(Call::of_record(target, record))
}

fn of_call(
    log: &Path,
    start: &StartLine,
    key: &KeyRecord,
    asked: &TargetArgs,
    input: Option<&Path>,
) -> Result<Box<dyn Oracle>, Failure> {
    let logged = start.target.target(asked.limits_over(start.limits));
    let (Some(record), Some(mut target)) = (&start.call, logged) else {
        return Err(Failure::usage("the log does not record which program was run").path(log));
    };
    if asked.is_named() {
        // Its arguments are those of the log: one of them may be what the log is about.
        target.program = asked.target()?.program;
    }
    let named = input.map(Path::to_owned);
    let path = named.or_else(|| start.input.as_ref().map(|path| PathBuf::from(&path.0)));
    let bytes = match &path {
        Some(path) => std::fs::read(path).map_err(|error| {
            Failure::file(path, "reading the input", &error)
                .hint("give the input with --input FILE")
        })?,
        None => Vec::new(),
    };
    if ContentHash::of(&bytes) != record.input_blake3 {
        let path = path.as_deref().unwrap_or(log);
        let message = format!("{} is not the input of this log", path.display());
        return Err(Failure::new(Exit::Found, "input", message)
            .path(path)
            .hint("give the input with --input FILE"));
    }
    let call = Call::of_record(target, record);
    let learn_limit = asked.timeout.is_none();
    Ok(Box::new(oracle_of_call(
        call,
        bytes,
        key.into(),
        learn_limit,
    )))
}

fn of_test(
    log: &Path,
    start: &StartLine,
    record: &TestRecord,
    (asked, test): (&TargetArgs, Option<&Path>),
    output: &Output,
) -> Result<Box<dyn Oracle>, Failure> {
    let recorded = start.target.program.as_ref();
    let path = match (test, recorded) {
        (Some(path), _) => path.to_owned(),
        (None, Some(path)) => PathBuf::from(&path.0),
        (None, None) => {
            return Err(Failure::usage("the log does not record where its test is")
                .path(log)
                .hint("give it with --test SCRIPT"));
        }
    };
    let (found, script) = script::read(&path)?;
    if script.hash() != record.blake3 {
        output.say(&format!(
            "warning: {} has changed since the log was written",
            found.display()
        ));
    }
    let Some(mut target) = start.target.target(asked.limits_over(start.limits)) else {
        return Err(Failure::usage("the log does not record where its test is").path(log));
    };
    target.program = crate::exec::Program::Path(found);
    let oracle = TestOracle::new(script, target, record.name.0.clone());
    let oracle = oracle.map_err(|error| script::explain(error, &path))?;
    Ok(Box::new(match asked.timeout {
        None => oracle,
        Some(_) => oracle.with_fixed_time(),
    }))
}
