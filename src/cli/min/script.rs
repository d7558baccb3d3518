//! `--test SCRIPT`: minimizes by an interestingness test.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::into_file::IntoFile;
use super::place::Place;
use super::{Args, Shown};
use crate::campaign::Finished;
use crate::cli::{Exit, Failure};
use crate::delta::{Caching, Outcome};
use crate::exec::{Ended, ExecError, Limits, Program, Target, Way, find_program};
use crate::minimize::log::{OsText, StartLine, TargetRecord, TestRecord};
use crate::minimize::{
    BoxedOracle, Kind, MinRecord, Options, Oracle, OracleError, Script, TestOracle, Workers,
    minimize_by_workers,
};

/// CPU time of one run where none is asked for: a test mostly starts several programs.
const CPU: Duration = Duration::from_secs(10);
/// How often the input is run before it counts as not interesting: a test may say so now and then.
const TRIES: u32 = 12;

/// Minimizes by the test at `script`.
pub(super) fn minimize_by(
    script: &Path,
    args: &Args,
    path: &Path,
    input: &[u8],
    shown: &Shown<'_>,
) -> Result<(Finished, MinRecord), Failure> {
    let test = Test::find(script, args, path)?;
    let place = Place::choose(args)?;
    let Place::File { result, log } = &place else {
        let message = "an interestingness test names no crash, and so there is no group of an \
                       output directory to file it in";
        return Err(Failure::usage(message).hint("name a file with -o"));
    };
    let mut oracle = test.oracle()?;
    test.baseline(&mut oracle, input, path)?;
    if args.force {
        place.clear()?;
    }
    let options = Options {
        budget_tests: args.budget_tests,
        budget_time: args.budget_time,
        stop: Some(shown.stop),
        log_inputs: args.log_inputs,
        ..Options::default()
    };
    let into = IntoFile {
        path,
        input,
        result,
        log,
        shown,
    };
    let make = || Ok(Box::new(test.one_more()?) as BoxedOracle<'_>);
    let workers = Workers::new(Box::new(oracle), &make, args.jobs());
    into.minimize(
        test.start_line(args, input),
        options,
        |input, journal, options| minimize_by_workers(input, workers, journal, options),
    )
}

/// An interestingness test that was found.
struct Test {
    script: Script,
    target: Target,
    name: OsString,
    /// Whether the limit on time is learned; not where the user has set one.
    learn_limit: bool,
}

impl Test {
    fn find(script: &Path, args: &Args, input: &Path) -> Result<Test, Failure> {
        let (path, script) = read(script)?;
        let mut target = Target::new(Program::Path(path));
        target.limits = args.target.limits(CPU);
        target.env = args.target.env.clone();
        let name = input.file_name().unwrap_or(OsStr::new("input"));
        Ok(Test {
            script,
            target,
            name: name.to_owned(),
            learn_limit: args.target.timeout.is_none(),
        })
    }

    fn oracle(&self) -> Result<TestOracle, Failure> {
        let oracle = self.one_more();
        oracle.map_err(|error| explain(error, self.script.path()))
    }

    /// An oracle with a directory of its own.
    fn one_more(&self) -> Result<TestOracle, OracleError> {
        let (script, target) = (self.script.clone(), self.target.clone());
        let oracle = TestOracle::new(script, target, self.name.clone())?;
        Ok(match self.learn_limit {
            true => oracle,
            false => oracle.with_fixed_time(),
        })
    }

    fn start_line(&self, args: &Args, input: &[u8]) -> StartLine {
        let target = TargetRecord::new(&self.target, Way::Command);
        let mut start = StartLine::new(input, &args.search, target, None, self.target.limits);
        start.test = Some(TestRecord {
            name: OsText(self.name.clone()),
            blake3: self.script.hash(),
        });
        start.learn_limit = self.learn_limit;
        if args.no_cache {
            start.cache = Caching::Configuration;
        }
        start
    }

    /// Finds out whether the input is interesting, before anything is written.
    fn baseline(&self, oracle: &mut TestOracle, input: &[u8], path: &Path) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = oracle.ask(input, Kind::Deleting);
            let outcome = answer
                .map_err(|error| explain(error, self.script.path()))?
                .outcome;
            if outcome == Outcome::Fail {
                return Ok(());
            }
            let cut_off = matches!(oracle.last_ended(), Some(Ended::Timeout));
            if cut_off || tries == TRIES {
                return Err(self.not_interesting(oracle.last_ended(), tries, path));
            }
        }
    }

    fn not_interesting(&self, last: Option<Ended>, tries: u32, input: &Path) -> Failure {
        let (test, input_name) = (self.script.path().display(), input.display());
        let Limits { cpu, wall, .. } = self.target.limits;
        let (kind, message, hint) = match last {
            Some(Ended::Timeout) => (
                "test-hangs",
                format!(
                    "{test} does not end on {input_name} within {cpu:?} of CPU time, {wall:?} in all"
                ),
                "give it more with --timeout, or see what it waits for",
            ),
            Some(Ended::OutOfMemory) => (
                "not-failing",
                format!("{test} uses more memory on {input_name} than it may"),
                "give it more with --memory",
            ),
            last => (
                "not-failing",
                format!(
                    "{input_name} is not interesting: {tries} runs of {test}, the last of them \
                     ended with {}",
                    last.map_or("nothing".to_owned(), |ended| ended.to_string())
                ),
                "it has to exit with 0 on the input; try it in an empty directory, with the \
                 input's absolute path as its argument",
            ),
        };
        Failure::new(Exit::Baseline, kind, message)
            .path(input)
            .hint(hint)
    }
}

/// The test at this path, absolute, and its content.
pub(in crate::cli) fn read(path: &Path) -> Result<(PathBuf, Script), Failure> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|error| Failure::file(path, "finding", &error))?;
    let found = find_program(&absolute).map_err(|error| explain(OracleError::Exec(error), path))?;
    let script = Script::read(&found).map_err(|error| {
        Failure::new(
            Exit::Baseline,
            "test-unreadable",
            format!("reading the test: {error}"),
        )
        .path(path)
        .hint("allow it to be read: it must not change while it is asked")
    })?;
    Ok((found, script))
}

/// Says of the test what is said of programs.
pub(in crate::cli) fn explain(error: OracleError, script: &Path) -> Failure {
    let failure = |kind, message: String, hint: &str| {
        Failure::new(Exit::Baseline, kind, message)
            .path(script)
            .hint(hint)
    };
    match error {
        OracleError::Exec(ExecError::Missing { path }) => failure(
            "test-missing",
            format!("there is no interestingness test {}", path.display()),
            "check the name behind --test",
        ),
        OracleError::Exec(error @ ExecError::NotExecutable { .. }) => failure(
            "test-not-executable",
            format!("the interestingness test {error}"),
            hint_to_execute(script),
        ),
        other => other.into(),
    }
}

/// What most likely keeps the system from executing a file.
fn hint_to_execute(script: &Path) -> &'static str {
    let mut begin = [0; 4];
    let read = std::fs::File::open(script).and_then(|mut file| file.read(&mut begin));
    match read {
        Ok(_) if begin.starts_with(b"#!") => {
            "make it executable with chmod +x; the program in its first line must exist"
        }
        Ok(_) if begin == *b"\x7fELF" => "make it executable with chmod +x, for this machine",
        Ok(_) => "make it executable with chmod +x, and begin it with a line like #!/bin/sh",
        Err(_) => "name an executable file",
    }
}
