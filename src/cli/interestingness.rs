//! Interestingness tests (`--test SCRIPT`): a script, instead of a crash, decides whether a
//! candidate is kept.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::target::TargetArgs;
use super::{Exit, Failure};
use crate::delta::{Caching, Outcome};
use crate::exec::{AbandonWhen, Ended, ExecError, Limits, Program, Target, Way, find_program};
use crate::minimize::log::{OsText, StartLine, TargetRecord, TestRecord};
use crate::minimize::{Kind, Oracle, OracleError, Script, TestOracle};

/// Default limit on the CPU time of one run of the interestingness test; most tests start several
/// programs.
const CPU: Duration = Duration::from_secs(10);
/// Maximum number of runs of the interestingness test on the original input. If no run accepts the
/// input, it counts as not interesting. One run is not enough, since tests may be flaky.
const TRIES: u32 = 12;

/// An interestingness test script (`--test`), with its limits and the file name under which it gets
/// each candidate.
pub struct Interestingness {
    script: Script,
    target: Target,
    name: OsString,
    /// Whether the time limit of the interestingness test is adapted to the duration of its runs;
    /// false if the user has set a limit.
    learn_limit: bool,
    /// Whether the test is probably flaky: it rejected the original input at least once before it
    /// accepted it.
    doubtful: bool,
}

impl Interestingness {
    /// Reads the script `script` as an interestingness test, which will get each candidate under
    /// the file name of `input`.
    pub fn find(
        script: &Path,
        args: &TargetArgs,
        input: &Path,
    ) -> Result<Interestingness, Failure> {
        let (path, script) = read_script(script)?;
        let mut target = Target::new(Program::Path(path));
        target.limits = args.limits(CPU);
        target.env = args.env.clone();
        let name = input.file_name().unwrap_or(OsStr::new("input"));
        Ok(Interestingness {
            script,
            target,
            name: name.to_owned(),
            learn_limit: args.timeout.is_none(),
            doubtful: false,
        })
    }

    /// Creates an oracle that accepts a candidate if this interestingness test exits with 0.
    pub fn oracle(&self) -> Result<TestOracle, Failure> {
        let oracle = self.one_more();
        oracle.map_err(|error| explain_test_error(error, self.script.path()))
    }

    /// Returns the interestingness test with the conditions `abandon_when`, under which its runs are
    /// abandoned.
    pub fn abandoned_when(mut self, abandon_when: AbandonWhen) -> Interestingness {
        self.target.abandon_when = abandon_when;
        self
    }

    /// Returns the interestingness test with a time limit that stays as it is, instead of being
    /// adapted to the duration of its runs.
    pub fn with_fixed_time(self) -> Interestingness {
        Interestingness {
            learn_limit: false,
            ..self
        }
    }

    /// Creates one more oracle that asks this interestingness test, with a working directory of its
    /// own, for a further worker.
    pub fn one_more(&self) -> Result<TestOracle, OracleError> {
        let (script, target) = (self.script.clone(), self.target.clone());
        let oracle = TestOracle::new(script, target, self.name.clone())?;
        Ok(match self.learn_limit {
            true => oracle,
            false => oracle.with_fixed_time(),
        })
    }

    /// Returns the target that stands for this interestingness test: the script, with the path of a
    /// candidate (`@@`) as its only argument, run in the same way as the test.
    pub fn as_target(&self) -> Target {
        Target {
            args: vec!["@@".into()],
            ..self.target.clone()
        }
    }

    /// Builds the first line of a minimization log, which records the input, the search algorithm,
    /// and the interestingness test.
    pub fn start_line(&self, input: &[u8], search: &str, no_cache: bool) -> StartLine {
        let target = TargetRecord::new(&self.target, Way::Command);
        let mut start = StartLine::new(input, search, target, None, self.target.limits);
        start.test = Some(TestRecord {
            name: OsText(self.name.clone()),
            blake3: self.script.hash(),
        });
        start.learn_limit = self.learn_limit;
        start.doubtful = self.doubtful;
        start.repeat_claims();
        if no_cache {
            start.cache = Caching::Configuration;
        }
        start
    }

    /// Runs the interestingness test on the original input until the test accepts it, at most 12
    /// times. Fails if the test never accepts it, or when a run exceeds the time limit. To be
    /// called before any file is written.
    pub fn baseline(
        &mut self,
        oracle: &mut TestOracle,
        input: &[u8],
        path: &Path,
    ) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = oracle.ask(input, Kind::Deleting);
            let outcome = answer
                .map_err(|error| explain_test_error(error, self.script.path()))?
                .outcome;
            if outcome == Outcome::Fail {
                self.doubtful = tries > 1;
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
                "raise --timeout, or see what the test waits for",
            ),
            Some(Ended::OutOfMemory) => (
                "not-failing",
                format!("{test} exceeds the memory limit on {input_name}"),
                "raise --memory",
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

/// Returns the failure for `--test` together with an output directory: the result of an
/// interestingness test belongs to none of the crash groups there.
pub fn no_group() -> Failure {
    let message = "an interestingness test names no crash, and so there is no group of an output \
                   directory to file it in";
    Failure::usage(message).hint("give a result file with -o")
}

/// Returns the absolute path of an interestingness test's script, and its content. Fails if it is
/// missing, not executable or not readable.
pub fn read_script(path: &Path) -> Result<(PathBuf, Script), Failure> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|error| Failure::file(path, "finding", &error))?;
    let found = find_program(&absolute)
        .map_err(|error| explain_test_error(OracleError::Exec(error), path))?;
    let script = Script::read(&found).map_err(|error| {
        Failure::new(
            Exit::Baseline,
            "test-unreadable",
            format!("reading the test: {error}"),
        )
        .path(path)
        .hint("make it readable: ddfuzz checks that it does not change during the search")
    })?;
    Ok((found, script))
}

/// Converts an oracle's error to a failure whose message speaks of the test script instead of a
/// program.
pub fn explain_test_error(error: OracleError, script: &Path) -> Failure {
    let failure = |kind, message: String, hint: &str| {
        Failure::new(Exit::Baseline, kind, message)
            .path(script)
            .hint(hint)
    };
    match error {
        OracleError::Exec(ExecError::Missing { path }) => failure(
            "test-missing",
            format!("there is no interestingness test {}", path.display()),
            "check the name after --test",
        ),
        OracleError::Exec(error @ ExecError::NotExecutable { .. }) => failure(
            "test-not-executable",
            format!("the interestingness test {error}"),
            hint_to_execute(script),
        ),
        other => other.into(),
    }
}

/// Returns a hint on how to make a script executable, chosen by the script's first bytes (`#!`,
/// ELF, other).
fn hint_to_execute(script: &Path) -> &'static str {
    let mut begin = [0; 4];
    let read = std::fs::File::open(script).and_then(|mut file| file.read(&mut begin));
    match read {
        Ok(_) if begin.starts_with(b"#!") => {
            "make it executable with chmod +x; the program in its first line must exist"
        }
        Ok(_) if begin == *b"\x7fELF" => "make it executable with chmod +x, for this machine",
        Ok(_) => "make it executable with chmod +x, and begin it with a line like #!/bin/sh",
        Err(_) => "give an executable file",
    }
}
