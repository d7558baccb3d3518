//! The oracle by which a log is verified: that of its start line, or what is asked for instead.

use std::path::{Path, PathBuf};

use super::min::script;
use super::target::TargetArgs;
use super::{Failure, Output};
use crate::campaign::Minimizing;
use crate::exec::Target;
use crate::minimize::log::{StartLine, TestRecord};
use crate::minimize::{Oracle, TestOracle};

/// The oracle of the log at `log`, whose first line is `start`. A target or test that is asked for
/// stands in for the log's own.
pub fn of_log(
    log: &Path,
    start: &StartLine,
    asked: &TargetArgs,
    test: Option<&Path>,
    output: &Output,
) -> Result<Box<dyn Oracle>, Failure> {
    match (&start.test, &start.key) {
        (Some(record), _) if !asked.is_named() => of_test(log, start, record, test, output),
        (Some(_), _) => Err(Failure::usage(
            "the log is of an interestingness test, and a program is named",
        )
        .path(log)
        .hint("name another test with --test")),
        (None, _) if test.is_some() => Err(Failure::usage(
            "the log is of a crash, and an interestingness test is named",
        )
        .path(log)
        .hint("name another program behind `--`")),
        (None, Some(key)) => {
            let target: Target = match (asked.is_named(), start.target.target(start.limits)) {
                (true, _) => asked.target()?,
                (false, Some(target)) => target,
                (false, None) => {
                    return Err(Failure::usage("the log names no program")
                        .path(log)
                        .hint("name it behind `--`"));
                }
            };
            // Keys are equal by every way of execution.
            let way = asked.asked_way().unwrap_or(start.target.way);
            let minimizing = Minimizing::of_target(target, way, &start.search);
            Ok(Box::new(minimizing.oracle(key)?))
        }
        (None, None) => {
            Err(Failure::usage("the log holds neither a crash nor a test to verify").path(log))
        }
    }
}

fn of_test(
    log: &Path,
    start: &StartLine,
    record: &TestRecord,
    asked: Option<&Path>,
    output: &Output,
) -> Result<Box<dyn Oracle>, Failure> {
    let recorded = start.target.program.as_ref();
    let path = match (asked, recorded) {
        (Some(path), _) => path.to_owned(),
        (None, Some(path)) => PathBuf::from(&path.0),
        (None, None) => {
            return Err(Failure::usage("the log does not say where its test is")
                .path(log)
                .hint("name it with --test SCRIPT"));
        }
    };
    let (found, script) = script::read(&path)?;
    if script.hash() != record.blake3 {
        output.say(&format!(
            "warning: {} is not what it was when the log was written",
            found.display()
        ));
    }
    let Some(mut target) = start.target.target(start.limits) else {
        return Err(Failure::usage("the log does not say where its test is").path(log));
    };
    target.program = crate::exec::Program::Path(found);
    let oracle = TestOracle::new(script, target, record.name.0.clone());
    Ok(Box::new(
        oracle.map_err(|error| script::explain(error, &path))?,
    ))
}
