//! `ddfuzz log show|replay|schema|verify`: shows, rebuilds and verifies a minimization from its
//! log. Verification uses the oracle recorded in the log's first line, or the program or test on
//! the command line.

mod difference;
mod show;

use std::path::{Component, Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use super::campaign_args::GrammarArgs;
use super::interestingness::{explain_test_error, read_script};
use super::min::call_script::{call_line, call_list};
use super::min::command_line::oracle_of_call;
use super::output::print_bytes;
use super::results::{file_or_stdin, is_standard, read_if_once};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, changes};
use crate::campaign::{Minimizing, program_hash};
use crate::corpus::trim::CoverageOracle;
use crate::delta::Outcome;
use crate::exec::{self, ExecError, Freshness, Target};
use crate::files::{atomic, regular};
use crate::minimize::log::{
    ContentHash, CoverageRecord, KeyRecord, Log, LogError, Part, StartLine, TestRecord,
};
use crate::minimize::{Call, Claim, Counts, Oracle, Proved, Replayed, TestOracle, replay, verify};
use crate::report::{size, text::printable};

/// Show, rebuild or verify a minimization from its log
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz log verify crash-1.min.log.jsonl")]
pub struct LogArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show how the input was reduced, step by step
    #[command(after_help = "Example:\n  ddfuzz log show crash-1.min.log.jsonl --svg crash-1.svg")]
    Show(show::LogShowArgs),
    /// Rebuild the result from the input and the log, without running the target. For a log of
    /// --args or --env-vars, the result is the arguments or variables, each followed by a NUL
    #[command(after_help = "Example:\n  ddfuzz log replay crash-1.min.log.jsonl -o rebuilt")]
    Replay {
        #[command(flatten)]
        log: LogFileArgs,
        /// Write the rebuilt result to FILE; - is stdout
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print the JSON schema of a log's lines
    #[command(after_help = "Example:\n  ddfuzz log schema > log.schema.json")]
    Schema,
    /// Run the tests again on which the log's claim of minimality rests
    #[command(after_help = "Example:\n  ddfuzz log verify crash-1.min.log.jsonl")]
    Verify {
        #[command(flatten)]
        log: LogFileArgs,
        #[command(flatten)]
        target: TargetArgs,
        /// The interestingness test, if its file is not the one that the log names
        #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["program", "target"])]
        test: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct LogFileArgs {
    /// The minimization log; - is stdin
    #[arg(value_parser = file_or_stdin())]
    log: PathBuf,
    /// The input that was minimized; - is stdin [default: `original` beside the log, else the path
    /// in the log]
    #[arg(long, value_name = "FILE", value_parser = file_or_stdin())]
    input: Option<PathBuf>,
    #[command(flatten)]
    passing: difference::PassingArgs,
    #[command(flatten)]
    _grammar: GrammarArgs,
}

pub fn run(args: LogArgs, output: &Output) -> Result<Exit, Failure> {
    match args.command {
        Command::Schema => {
            output.print(include_str!("../../../docs/log.schema.json").trim_end());
            Ok(Exit::Done)
        }
        Command::Show(args) => show::run(&args, output),
        Command::Replay { log, out } => {
            let output = match out.as_deref().is_some_and(is_standard) {
                true => &output.beside_bytes()?,
                false => output,
            };
            rebuild(&log, out.as_deref(), output)
        }
        Command::Verify { log, target, test } => prove(&log, &target, test.as_deref(), output),
    }
}

/// Reads the minimization log at `path`; returns it and its first line. Fails if the file is empty,
/// if its first line is not that of a minimization log, or if a later line is malformed. In the
/// last case the exit code is `damaged`.
pub(super) fn read(path: &Path, damaged: Exit) -> Result<(Log, StartLine), Failure> {
    let log = Log::read(path).map_err(|error| {
        let is_damaged = matches!(error, LogError::Malformed { line: 2.., .. });
        let mut failure = Failure::from(error).path(path);
        if is_damaged {
            failure.exit = damaged;
        }
        failure
    })?;
    match log.start.clone() {
        Some(start) => Ok((log, start)),
        None => {
            let message = format!("{} is not a minimization log, or is empty", path.display());
            Err(Failure::new(Exit::Usage, "log", message).path(path))
        }
    }
}

impl LogFileArgs {
    /// Returns the content of the input that the log minimizes. It is read from the file of
    /// `--input`; else from the file `original` beside the log (except for a search with
    /// `--invert`); else from the path in the log. Fails if it is not the content that the log
    /// records. For a log that minimizes a command line, returns the recorded text of the minimized
    /// part.
    fn read_input(&self, start: &StartLine) -> Result<Vec<u8>, Failure> {
        if let Some(call) = call_of(start) {
            return Ok(call.text().to_vec());
        }
        let beside = self.log.with_file_name("original");
        let recorded = start.input.as_ref().map(|path| PathBuf::from(&path.0));
        let path = match (&self.input, recorded) {
            (Some(path), _) => path.clone(),
            // Inverted, the original is the other input.
            (None, _) if beside.is_file() && !difference::is_inverted(start) => beside,
            (None, Some(path)) => path,
            (None, None) => {
                return Err(Failure::usage("the log does not record where its input is")
                    .path(&self.log)
                    .hint("give the input with --input FILE"));
            }
        };
        let hint = "give the input with --input FILE";
        read_logged(
            &path,
            self.input.is_some(),
            "input",
            &start.input_blake3,
            hint,
        )
    }
}

/// Reads the input at `path` that a log refers to. Fails, with the advice `hint`, if it cannot be
/// read or its hash is not `hash`, the one in the log. `what`: name of the input in error messages.
/// `is_given`: whether the user named the path on the command line; only then may it be a pipe or a
/// device, which is read to its end.
fn read_logged(
    path: &Path,
    is_given: bool,
    what: &str,
    hash: &ContentHash,
    hint: &str,
) -> Result<Vec<u8>, Failure> {
    let given = is_given.then(|| read_if_once(path)).transpose()?;
    let bytes = match given.flatten() {
        Some(bytes) => bytes,
        None => regular::read(path, u64::MAX).map_err(|error| {
            let error = std::io::Error::other(error.to_string());
            Failure::file(path, &format!("reading the {what}"), &error).hint(hint)
        })?,
    };
    if ContentHash::of(&bytes) == *hash {
        return Ok(bytes);
    }
    let message = format!("{} is not the {what} of this log", path.display());
    Err(Failure::new(Exit::Found, "input", message)
        .path(path)
        .hint(hint))
}

/// Formats a size in a log: in bytes, or in units (arguments, characters or variables) if the log
/// minimizes a command line.
fn amount(start: &StartLine, size: u64) -> String {
    match start.call {
        Some(_) => size::counted(size, "unit"),
        None => size::bytes(size),
    }
}

/// Adds a hint to `failure`, and returns it: if lines of the log do not follow from each other and
/// another version of ddfuzz has written the log, the hint is to use that version.
fn by_version(failure: Failure, start: &StartLine) -> Failure {
    let version = env!("CARGO_PKG_VERSION");
    match failure.kind() == "log" && start.ddfuzz != version {
        false => failure,
        true => failure.hint(format!(
            "ddfuzz {} wrote the log, and this is {version}, whose search may make other candidates: \
             use that version",
            printable(&start.ddfuzz)
        )),
    }
}

#[derive(Serialize)]
struct Rebuilt {
    holds: bool,
    size: u64,
    blake3: ContentHash,
    claim: Option<Claim>,
    proved: Option<Proved>,
    tests: Counts,
}

fn rebuild(args: &LogFileArgs, out: Option<&Path>, output: &Output) -> Result<Exit, Failure> {
    let (log, start) = read(&args.log, Exit::Found)?;
    if let Some(record) = &start.changes {
        return changes::rebuild(&args.log, &log, record, out, output);
    }
    let input = args.read_input(&start)?;
    if let Some(asked) =
        difference::DifferenceLog::of(&args.log, &log, &start, &args.passing, &input)
    {
        return difference::rebuild(&asked, out, output);
    }
    let replayed: Replayed = replay(&input, &log)
        .map_err(|error| by_version(Failure::from(error), &start).path(&args.log))?;
    let target = call_of(&start).and_then(|call| call.target(&replayed.text));
    if let Some(out) = out {
        let bytes = match (&target, &start.call) {
            (Some(target), Some(call)) => call_list(target, call.part),
            _ => replayed.text.clone(),
        };
        write_rebuilt(out, &bytes)?;
    }
    let minimized = replayed.minimized.as_ref();
    let rebuilt = Rebuilt {
        holds: true,
        size: replayed.text.len() as u64,
        blake3: ContentHash::of(&replayed.text),
        claim: minimized.map(|minimized| minimized.claim),
        proved: minimized.map(|minimized| minimized.proved),
        tests: replayed.counts,
    };
    let claim = rebuilt
        .claim
        .map_or("unfinished".to_owned(), |claim| claim.to_string());
    let mut text = format!(
        "the log is consistent: {}, result {}, {claim}",
        size::counted(rebuilt.tests.executed, "test"),
        amount(&start, rebuilt.size),
    );
    if let (Some(mut target), Some(call)) = (target, &start.call) {
        if call.part != Part::Env {
            (target.env, target.env_only) = (Vec::new(), false);
        }
        let input = start.input.as_ref().map(|path| Path::new(&path.0));
        text.push_str(&format!("\ncall   {}", call_line(&target, input)));
    }
    output.result(&text, &rebuilt);
    Ok(Exit::Done)
}

/// Writes the result that was rebuilt from a log to a file, which must not exist, or to stdout if
/// `out` is `-`.
pub(in crate::cli) fn write_rebuilt(out: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_standard(out) {
        print_bytes(bytes);
        return Ok(());
    }
    atomic::create_new(out, bytes)
        .map_err(|error| Failure::unwritten(out, error).or_hint("give another file"))
}

#[derive(Serialize)]
struct Proven {
    holds: bool,
    claim: Claim,
    result: Outcome,
    proved: Proved,
    cut_off: u64,
}

fn prove(
    args: &LogFileArgs,
    asked: &TargetArgs,
    test: Option<&Path>,
    output: &Output,
) -> Result<Exit, Failure> {
    let (log, start) = read(&args.log, Exit::Found)?;
    if let Some(record) = &start.changes {
        return changes::verify(&args.log, &log, &start, record, output);
    }
    let input = args.read_input(&start)?;
    let mut oracle = oracle_of_log(
        &args.log,
        &start,
        asked,
        test,
        args.input.as_deref(),
        output,
    )?;
    if let Some(asked) =
        difference::DifferenceLog::of(&args.log, &log, &start, &args.passing, &input)
    {
        return difference::prove(&asked, oracle, output);
    }
    let verified = verify(&input, &log, &mut *oracle, |_| ())
        .map_err(|error| by_version(Failure::of_verifying(error, &args.log), &start))?;
    let proven = Proven {
        holds: verified.holds(),
        claim: verified.claim,
        result: verified.result,
        proved: verified.proved,
        cut_off: verified.cut_off,
    };
    let unit = if start.call.is_some() { "unit" } else { "byte" };
    let found = verified.counterexample.as_ref();
    let still =
        found.map(|found| format!("without the {unit} at {} it still fails", found.at.start));
    let text = verdict(&proven, still);
    output.result(&text, &proven);
    Ok(match proven.holds {
        true => Exit::Done,
        false => Exit::Found,
    })
}

/// Formats the verdict of `ddfuzz log verify` on the claim of a minimization. `still`: description
/// of a single removal from the result that does not stop it from failing; `None` if none was
/// found.
fn verdict(proven: &Proven, still: Option<String>) -> String {
    let claim = proven.claim;
    let of = format!(
        "{} of {}",
        size::grouped(proven.proved.done),
        size::counted(proven.proved.of, "removal")
    );
    match (proven.holds, still, proven.result) {
        (true, ..) if proven.proved.of == 0 && claim == Claim::BestSoFar => {
            "best-so-far is verified: the result fails".to_owned()
        }
        (true, ..) => format!(
            "{claim} is verified: the result fails, and after any single removal it no longer fails in this way ({of} tested)"
        ),
        (false, Some(still), _) => format!("{claim} is refuted: {still}"),
        (false, None, Outcome::Fail) => {
            format!("{claim} is not verified: the result fails, but only {of} were tested")
        }
        (false, None, Outcome::Pass) => format!(
            "{claim} is refuted: the result no longer fails (is the bug fixed in this program?)"
        ),
        (false, None, Outcome::Unresolved) => format!(
            "{claim} is not verified: the result now fails differently, or a limit ended the run"
        ),
    }
}

/// Creates the oracle with which `ddfuzz log verify` runs tests. It decides by what `start`, the
/// first line of the log, records: a crash, an interestingness test, or coverage. The command line
/// may name another program (`asked`) or another `test`, and, if the log minimizes a command line,
/// another `input`. Fails if a program is given for the log of a test, or a test for the log of a
/// crash or of coverage.
pub fn oracle_of_log(
    log: &Path,
    start: &StartLine,
    asked: &TargetArgs,
    test: Option<&Path>,
    input: Option<&Path>,
    output: &Output,
) -> Result<Box<dyn Oracle>, Failure> {
    if let Some(coverage) = &start.coverage {
        return coverage_oracle(log, start, coverage, (asked, test));
    }
    match (&start.test, &start.key) {
        (Some(record), _) if !asked.is_named() => {
            test_oracle(log, start, record, (asked, test), output)
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
        (None, Some(key)) if start.call.is_some() => call_oracle(log, start, key, asked, input),
        (None, Some(key)) => {
            let target = target_or_logged(log, start, asked)?;
            let by = |way| {
                let mut minimizing = Minimizing::of_target(target.clone(), way, &start.search);
                minimizing.learn_limit = asked.timeout.is_none();
                minimizing.oracle(key)
            };
            let oracle = match by(asked.asked_way().unwrap_or(start.target.way)) {
                // The keys do not depend on the way of execution, and another build may need
                // another way.
                Err(ExecError::WayUnfit { .. }) if asked.asked_way().is_none() => {
                    by(exec::start(&target, None, Freshness::Shared)?
                        .executor
                        .way())
                }
                oracle => oracle,
            };
            Ok(Box::new(oracle?))
        }
        (None, None) => Err(Failure::usage(
            "the log holds neither a crash, nor a test, nor coverage to verify",
        )
        .path(log)),
    }
}

/// Returns the target that the log records, changed by what the command line (`asked`) says. Fails
/// if neither names a program.
fn target_or_logged(log: &Path, start: &StartLine, asked: &TargetArgs) -> Result<Target, Failure> {
    match (asked.is_named(), start.target.target(start.limits)) {
        (_, Some(target)) => asked.over(target),
        (true, None) => asked.target(),
        (false, None) => Err(
            Failure::usage("the log does not record which program was run")
                .path(log)
                .hint("give the program after `--`"),
        ),
    }
}

/// Creates the oracle for a log of trimming a corpus file: a candidate is accepted if it reaches
/// the coverage recorded in `coverage`. Fails if the program is another build, whose coverage
/// cannot be compared, or if the command line names a test.
fn coverage_oracle(
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
    let target = target_or_logged(log, start, asked)?;
    let way = asked.asked_way().unwrap_or(start.target.way);
    let mut oracle = CoverageOracle::start(&target, way)?;
    if oracle.counter_count() as u64 != coverage.places {
        let message = format!(
            "the target has {}, and had {} when the log was written: it is another build, and its \
             coverage cannot be compared",
            size::counted(oracle.counter_count() as u64, "instrumented place"),
            coverage.places
        );
        return Err(other_build(log, message));
    }
    let build = program_hash(&target.program).ok();
    if let Some((logged, now)) = start.build.zip(build)
        && logged != now
    {
        let message = "the program is another build than the one with which the log was written, \
                       and its coverage cannot be compared";
        return Err(other_build(log, message));
    }
    oracle.hold(coverage.into());
    Ok(Box::new(oracle))
}

fn other_build(log: &Path, message: impl ToString) -> Failure {
    Failure::new(Exit::Found, "target", message)
        .path(log)
        .hint("give the build that the log was written with after `--`")
}

/// Returns the target's command line that the log minimizes; `None` if the log minimizes an input,
/// or does not record the program.
pub fn call_of(start: &StartLine) -> Option<Call> {
    let record = start.call.as_ref()?;
    let target = start.target.target(start.limits)?;
    Some(Call::of_record(target, record))
}

fn call_oracle(
    log: &Path,
    start: &StartLine,
    key: &KeyRecord,
    asked: &TargetArgs,
    input: Option<&Path>,
) -> Result<Box<dyn Oracle>, Failure> {
    let logged = start.target.target(start.limits);
    let (Some(record), Some(logged)) = (&start.call, logged) else {
        return Err(Failure::usage("the log does not record which program was run").path(log));
    };
    if record.part == Part::Env && !asked.env.is_empty() {
        let message = "the log is of the environment, whose variables --env would change";
        return Err(Failure::usage(message).path(log).hint("omit --env"));
    }
    // The arguments are those of the log, because the log may minimize one of them.
    let args = logged.args.clone();
    let target = Target {
        args,
        ..asked.over(logged)?
    };
    let named = input.map(Path::to_owned);
    let path = named.or_else(|| start.input.as_ref().map(|path| PathBuf::from(&path.0)));
    let hint = "give the input with --input FILE";
    let bytes = match &path {
        Some(path) => read_logged(path, input.is_some(), "input", &record.input_blake3, hint)?,
        None if ContentHash::of(b"") == record.input_blake3 => Vec::new(),
        None => {
            let message = format!("{} is not the input of this log", log.display());
            let failure = Failure::new(Exit::Found, "input", message);
            return Err(failure.path(log).hint(hint));
        }
    };
    let call = Call::of_record(target, record);
    let learn_limit = asked.timeout.is_none();
    Ok(Box::new(oracle_of_call(
        call,
        bytes,
        key.into(),
        learn_limit,
    )))
}

fn test_oracle(
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
    // The input of each test is put into a directory of its own, under this name.
    let mut name = Path::new(&record.name.0).components();
    if !matches!(
        (name.next(), name.next()),
        (Some(Component::Normal(_)), None)
    ) {
        let message = format!("{:?} in the log is no name of a file", record.name.0);
        return Err(Failure::usage(message).path(log));
    }
    let (found, script) = read_script(&path)?;
    if script.hash() != record.blake3 {
        output.say(&format!(
            "warning: {} has changed since the log was written",
            found.display()
        ));
    }
    let Some(target) = start.target.target(start.limits) else {
        return Err(Failure::usage("the log does not record where its test is").path(log));
    };
    if let Some(option) = asked.not_for_tests() {
        let message = format!("{option} says nothing to an interestingness test");
        return Err(Failure::usage(message).path(log).hint("omit it"));
    }
    let target = Target {
        program: crate::exec::Program::Path(found),
        ..asked.over(target)?
    };
    let oracle = TestOracle::new(script, target, record.name.0.clone());
    let oracle = oracle.map_err(|error| explain_test_error(error, &path))?;
    Ok(Box::new(match asked.timeout {
        None => oracle,
        Some(_) => oracle.with_fixed_time(),
    }))
}
