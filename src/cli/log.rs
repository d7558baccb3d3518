//! `ddfuzz log show|replay|schema|verify`: reads, rebuilds and proves a minimization.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use super::target::TargetArgs;
use super::{Exit, Failure, Output, difference};
use crate::campaign::Minimizing;
use crate::exec::Target;
use crate::files::atomic;
use crate::minimize::log::{ContentHash, Line, Log, LogError, Source, StartLine, schema};
use crate::minimize::{Claim, Counts, Proved, Replayed, replay, verify};
use crate::report::size;

/// Read, rebuild or prove a minimization from its log
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz log verify crash-1.min.log.jsonl")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show how the input shrank
    #[command(after_help = "Example:\n  ddfuzz log show crash-1.min.log.jsonl")]
    Show {
        /// The log
        log: PathBuf,
    },
    /// Rebuild the result from the input and the log, without the target
    #[command(after_help = "Example:\n  ddfuzz log replay crash-1.min.log.jsonl -o rebuilt")]
    Replay {
        #[command(flatten)]
        log: LogArgs,
        /// Write the result here
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print the JSON schema of a log's lines
    #[command(after_help = "Example:\n  ddfuzz log schema > log.schema.json")]
    Schema,
    /// Run again what the claim rests on
    #[command(after_help = "Example:\n  ddfuzz log verify crash-1.min.log.jsonl")]
    Verify {
        #[command(flatten)]
        log: LogArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
}

#[derive(clap::Args)]
struct LogArgs {
    /// The log
    log: PathBuf,
    /// The input that was minimized [default: `original` beside the log, else the path in the log]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    passing: difference::PassingArgs,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    match args.command {
        Command::Schema => {
            let schema = schema();
            let text = serde_json::to_string_pretty(&schema);
            output.result(&text.unwrap_or_default(), &schema);
            Ok(Exit::Done)
        }
        Command::Show { log } => show(&log, output),
        Command::Replay { log, out } => rebuild(&log, out.as_deref(), output),
        Command::Verify { log, target } => prove(&log, &target, output),
    }
}

/// Reads a log; `damaged` is the exit where it is one, but a line of it is not understood.
fn read(path: &Path, damaged: Exit) -> Result<(Log, StartLine), Failure> {
    let log = Log::read(path).map_err(|error| {
        let malformed = matches!(error, LogError::Malformed { .. });
        let mut failure = Failure::from(error).path(path);
        if malformed && names_itself(path) {
            failure.exit = damaged;
        }
        failure
    })?;
    match log.start.clone() {
        Some(start) => Ok((log, start)),
        None => {
            let message = format!(
                "{} is not a minimization log, or an empty one",
                path.display()
            );
            Err(Failure::new(Exit::Usage, "log", message).path(path))
        }
    }
}

/// Whether a file begins like a log, whatever became of it behind that.
fn names_itself(path: &Path) -> bool {
    let mut begins = [0; START.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && begins == *START
}

/// What every log begins with.
const START: &[u8; 21] = br#"{"v":1,"kind":"start""#;

impl LogArgs {
    /// The input that the log is about.
    fn read_input(&self, start: &StartLine) -> Result<Vec<u8>, Failure> {
        let beside = self.log.with_file_name("original");
        let recorded = start.input.as_ref().map(|path| PathBuf::from(&path.0));
        let path = match (&self.input, recorded) {
            (Some(path), _) => path.clone(),
            // Inverted, the original is the other input.
            (None, _) if beside.is_file() && !is_inverted(start) => beside,
            (None, Some(path)) => path,
            (None, None) => {
                return Err(Failure::usage("the log does not say where its input is")
                    .path(&self.log)
                    .hint("name it with --input FILE"));
            }
        };
        let input = std::fs::read(&path).map_err(|e| {
            Failure::file(&path, "reading", &e).hint("name the input with --input FILE")
        })?;
        if ContentHash::of(&input) != start.input_blake3 {
            let message = format!("{} is not the input of this log", path.display());
            return Err(Failure::new(Exit::Found, "input", message)
                .path(&path)
                .hint("name it with --input FILE"));
        }
        Ok(input)
    }
}

fn is_inverted(start: &StartLine) -> bool {
    start.difference.as_ref().is_some_and(|one| one.inverted)
}

impl LogArgs {
    /// What to do with a log of `diff` or `max`; `None` for one of `min`.
    fn of_difference<'a>(
        &'a self,
        log: &'a Log,
        start: &'a StartLine,
        failing: &'a [u8],
    ) -> Option<difference::Subcommand<'a>> {
        Some(difference::Subcommand {
            record: start.difference.as_ref()?,
            path: &self.log,
            passing: &self.passing,
            failing,
            log,
        })
    }
}

#[derive(Serialize)]
struct Step {
    i: u64,
    rule: String,
    size: u64,
}

#[derive(Serialize)]
struct Shown {
    start: StartLine,
    steps: Vec<Step>,
    tests: u64,
    executed: u64,
    claim: Option<Claim>,
}

fn show(path: &Path, output: &Output) -> Result<Exit, Failure> {
    let (log, start) = read(path, Exit::Usage)?;
    let mut shown = Shown {
        start,
        steps: Vec::new(),
        tests: 0,
        executed: 0,
        claim: None,
    };
    let mut text = format!(
        "{} with {}, {}\n{:>10}  {:>10}  rule\n",
        path.display(),
        shown.start.search,
        size::bytes(shown.start.size),
        "test",
        "bytes"
    );
    for (_, line) in &log.lines {
        match line {
            Line::Test(test) => {
                shown.tests += 1;
                shown.executed += u64::from(test.source == Source::Run);
            }
            Line::Reduce(step) => {
                text.push_str(&format!(
                    "{:>10}  {:>10}  {}\n",
                    step.i, step.size, step.rule
                ));
                let rule = step.rule.clone();
                shown.steps.push(Step {
                    i: step.i,
                    rule,
                    size: step.size,
                });
            }
            Line::End(end) => shown.claim = Some(end.claim),
            Line::Start(_) | Line::Check(_) => {}
        }
    }
    let tests = format!(
        "{}, {} of them run",
        size::counted(shown.tests, "test"),
        size::grouped(shown.executed)
    );
    text.push_str(&match shown.claim {
        Some(claim) => format!("{tests}: {claim}"),
        None => format!("{tests} so far: not ended"),
    });
    output.result(&text, &shown);
    Ok(Exit::Done)
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

fn rebuild(args: &LogArgs, out: Option<&Path>, output: &Output) -> Result<Exit, Failure> {
    let (log, start) = read(&args.log, Exit::Found)?;
    let input = args.read_input(&start)?;
    if let Some(asked) = args.of_difference(&log, &start, &input) {
        return difference::rebuild(&asked, out, output);
    }
    let replayed: Replayed =
        replay(&input, &log).map_err(|error| Failure::from(error).path(&args.log))?;
    if let Some(out) = out {
        atomic::create_new(out, &replayed.text).map_err(|error| {
            Failure::new(Exit::Usage, "output", &error)
                .path(out)
                .hint("choose another file")
        })?;
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
        .map_or("not ended".to_owned(), |claim| claim.to_string());
    let text = format!(
        "the log holds: {} to {}, {claim}",
        size::counted(rebuilt.tests.executed, "test"),
        size::bytes(rebuilt.size),
    );
    output.result(&text, &rebuilt);
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Proven {
    holds: bool,
    claim: Claim,
    result: crate::delta::Outcome,
    proved: Proved,
    cut_off: u64,
}

fn prove(args: &LogArgs, asked: &TargetArgs, output: &Output) -> Result<Exit, Failure> {
    let (log, start) = read(&args.log, Exit::Found)?;
    let input = args.read_input(&start)?;
    let Some(key) = &start.key else {
        return Err(Failure::usage("the log holds no crash to verify").path(&args.log));
    };
    let target: Target = match (asked.is_named(), start.target.target(start.limits)) {
        (true, _) => asked.target()?,
        (false, Some(target)) => target,
        (false, None) => {
            return Err(Failure::usage("the log names no program")
                .path(&args.log)
                .hint("name it behind `--`"));
        }
    };
    // Keys are equal by every way of execution.
    let way = asked.asked_way().unwrap_or(start.target.way);
    let minimizing = Minimizing::of_target(target, way, &start.search);
    let mut oracle = minimizing.oracle(key)?;
    if let Some(asked) = args.of_difference(&log, &start, &input) {
        return difference::prove(&asked, oracle, output);
    }
    let verified = verify(&input, &log, &mut oracle, |_| ())
        .map_err(|error| Failure::of_verifying(error, &args.log))?;
    let proven = Proven {
        holds: verified.holds(),
        claim: verified.claim,
        result: verified.result,
        proved: verified.proved,
        cut_off: verified.cut_off,
    };
    let of = format!(
        "{} of {}",
        size::grouped(proven.proved.done),
        size::counted(proven.proved.of, "removal")
    );
    let text = match (proven.holds, &verified.counterexample) {
        (true, _) if proven.proved.of == 0 && proven.claim == Claim::BestSoFar => {
            "the result fails; best-so-far claims no more".to_owned()
        }
        (true, _) => format!(
            "{} holds: the result fails, and no longer after any removal ({of})",
            proven.claim
        ),
        (false, Some(found)) => format!(
            "{} does not hold: without the byte at {} it still fails",
            proven.claim, found.at.start
        ),
        (false, None) => format!(
            "{} does not hold: the result gave {}, {of} were proved",
            proven.claim, proven.result
        ),
    };
    output.result(&text, &proven);
    Ok(if proven.holds {
        Exit::Done
    } else {
        Exit::Found
    })
}
