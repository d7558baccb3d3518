//! `ddfuzz max` and `ddfuzz diff`: finds the largest passing part of an input, or the difference
//! between a passing and a failing input that causes the failure. Options and result text.

mod job;

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::interestingness::{Interestingness, no_group};
use super::results::{
    InputFile, ResultArgs, ResultPlace, input_file, is_standard, read_input, shown_path,
    with_ending,
};
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals};
use crate::campaign::Minimizing;
use crate::delta::Dd;
use crate::exec::AbandonWhen;
use crate::minimize::isolate::{DifferenceResult, Differing, Isolated};
use crate::minimize::log::{Goal, OsText, Units};
use crate::report::{size, text};
use job::{FailureCriterion, baseline_crash, check_baseline_test};

/// Heading of the options about interestingness tests in `--help`.
const TEST_HEADING: &str = "Tests";

/// Options that `ddfuzz max` and `ddfuzz diff` share.
#[derive(clap::Args)]
struct SearchArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    results: ResultArgs,
    /// Decide by an interestingness test instead of a crash. SCRIPT gets each candidate as its
    /// first argument (a path), on stdin, and under FAILING's name in its working directory; it
    /// exits with 0 if the candidate fails and with 125 if it cannot tell. --timeout limits the
    /// CPU time of one test [default: 10s]
    #[arg(help_heading = TEST_HEADING, long, value_name = "SCRIPT", conflicts_with_all = ["program", "target", "way", "cwd", "crash_exit", "sandbox", "terminal", "ending", "file_name", "two_files"])]
    test: Option<PathBuf>,
    /// Swap PASS and FAIL: the empty (or first) input crashes and the other one does not. The
    /// result is what in the other input prevents the crash
    #[arg(help_heading = TEST_HEADING, long)]
    invert: bool,
    /// Assume that each part of a passing input passes, and do not run it. Wrong if a smaller input
    /// can crash where a larger one does not
    #[arg(help_heading = TEST_HEADING, long)]
    monotone: bool,
    /// Keep only prefixes: each byte or edit needs all earlier ones, any other candidate counts as
    /// unresolved and is not run
    #[arg(help_heading = TEST_HEADING, long)]
    order: bool,
}

/// An input file given on the command line, with its path and its content.
struct Input {
    path: PathBuf,
    bytes: Vec<u8>,
    file: InputFile,
}

impl Input {
    fn read(path: PathBuf) -> Result<Input, Failure> {
        let file = input_file(path)?;
        let path = file.path.clone();
        let bytes = read_input(&path).map_err(|failure| match path.is_dir() {
            true => {
                failure.hint("give a file, such as `minimized` or `original` of a group's entry")
            }
            false => failure,
        })?;
        Ok(Input { path, bytes, file })
    }
}

/// A search of `ddfuzz max` or `ddfuzz diff`: its goal, the kind of its deltas, and its passing and
/// failing input.
struct SearchTask {
    goal: Goal,
    units: Units,
    /// The passing input that the user gave for the search; `None` stands for the empty input.
    passing: Option<Input>,
    failing: Input,
}

impl SearchTask {
    /// Returns the paths of the inputs of a search: the passing one, if the user gave one, and the
    /// failing one.
    fn paths(&self) -> Vec<&Path> {
        let inputs = self.passing.iter().chain([&self.failing]);
        inputs.map(|input| input.path.as_path()).collect()
    }

    fn passing_bytes(&self) -> &[u8] {
        self.passing.as_ref().map_or(&[], |input| &input.bytes)
    }

    /// Returns the suffixes of the names of the result files: for `max`, `.max`; for `diff`,
    /// `.diff` for the failing and `.pass` for the passing input.
    fn endings(&self) -> &'static [&'static str] {
        match self.goal {
            Goal::Maximize => &[".max"],
            Goal::Isolate => &[".diff", ".pass"],
        }
    }
}

fn search(task: SearchTask, args: SearchArgs, output: &Output) -> Result<Exit, Failure> {
    let output = &args.results.output(output)?;
    let done = search_for(&task, &args, output);
    let inputs = task.passing.iter().chain([&task.failing]);
    let files: Vec<InputFile> = inputs.map(|input| input.file.clone()).collect();
    let result = with_ending(&task.failing.path, task.endings()[0]);
    args.results
        .keep_or_remove_saved(&done, &files, &result, output);
    done
}

fn search_for(task: &SearchTask, args: &SearchArgs, output: &Output) -> Result<Exit, Failure> {
    let (program, named) = (args.target.program_file(), &task.failing.path);
    let mut only_read = task.paths();
    only_read.extend(args.test.as_deref().into_iter().chain(program.as_deref()));
    let place = ResultPlace::choose(&args.results, &only_read, named, task.endings())?;
    let stop = signals::stop_flag()?;
    let began = Instant::now();
    let criterion = criterion(task, args, &place, &signals::abandon_at(&stop), output);
    let criterion = signals::unless_stopped(&stop, criterion)?;
    let shown_in = began.elapsed();
    if args.results.force {
        place.clear()?;
    }
    let job = job::DifferenceJob {
        task,
        args,
        criterion: &criterion,
        // With --invert, it is the passing input that has crashed.
        shown_in: (!args.invert).then_some(shown_in),
        stop: &stop,
    };
    let done = match &place {
        ResultPlace::File { results, log } => job.to_files(results, log),
        ResultPlace::Directory(out) => job.to_directory(out),
    };
    let (isolated, mut record) = signals::unless_stopped(&stop, done)?;
    for warning in &isolated.warnings {
        output.say(&format!("warning: {warning}"));
    }
    let printed = args.results.take_output(&mut record.output);
    for side in [&mut record.passing, &mut record.failing] {
        if printed.is_some() && *side == printed {
            *side = Some(OsText("stdout".into()));
        }
    }
    output.result(&result_text(&record, &isolated), &record);
    args.results.print(printed)?;
    Ok(Exit::Done)
}

/// Chooses the criterion that decides whether a candidate fails, a crash or an interestingness
/// test, and checks that the inputs behave as required by this criterion, before any file is
/// written. Runs are abandoned under the conditions `abandon_when`.
fn criterion(
    task: &SearchTask,
    args: &SearchArgs,
    place: &ResultPlace,
    abandon_when: &AbandonWhen,
    output: &Output,
) -> Result<FailureCriterion, Failure> {
    if let Some(script) = &args.test {
        let test = Interestingness::find(script, &args.target, &task.failing.path)?;
        let mut test = test.abandoned_when(abandon_when.clone());
        if matches!(place, ResultPlace::Directory(_)) {
            return Err(no_group());
        }
        check_baseline_test(task, args.invert, &mut test)?;
        return Ok(FailureCriterion::Test(Box::new(test.with_fixed_time())));
    }
    let target = args.target.target()?.abandoned_when(abandon_when.clone());
    let way = args.target.probe(&target, output)?.executor.way();
    let crash = baseline_crash(task, args.invert, &target, way)?;
    let group = crash.keys.major.short();
    output.detail(&format!(
        "{} in group {group}, executed by {way}",
        crash.class
    ));
    let minimizing = Minimizing {
        no_cache: args.results.no_cache,
        learn_limit: false,
        ..Minimizing::of_target(target, way, Dd::NAME)
    };
    Ok(FailureCriterion::Crash {
        minimizing: Box::new(minimizing),
        crash: Box::new(crash),
    })
}

/// Isolate the difference between a passing and a failing input that causes the failure
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz diff [OPTIONS] <PASSING> <FAILING> [-- <PROGRAM>...]\n       \
                      ddfuzz diff [OPTIONS] --empty <FAILING> [-- <PROGRAM>...]",
    after_help = "The result is two inputs that differ as little as possible: FAILING.diff, which \
                  still fails, and FAILING.diff.pass, which passes. The time limit of a run is \
                  that of --timeout; it is not adapted.\n\n\
                  Examples:\n  ddfuzz diff good bad -- ./program @@\n  \
                  ddfuzz diff --empty crash-1 -- ./program\n  \
                  ddfuzz diff good bad --test ./is-bad.sh\n  \
                  ddfuzz diff --invert --empty options -- ./program   # what prevents the crash"
)]
pub struct DiffArgs {
    /// The passing and the failing input; - is stdin. Files are only read
    #[arg(value_names = ["PASSING", "FAILING"], num_args = 1..=2, required = true)]
    inputs: Vec<PathBuf>,
    /// Use the empty input as PASSING. The deltas are then the bytes of FAILING, not edits
    #[arg(long)]
    empty: bool,
    /// Treat each byte that an edit removes or inserts as a separate delta
    #[arg(long, conflicts_with = "empty")]
    bytes: bool,
    #[command(flatten)]
    search: SearchArgs,
}

pub fn diff(args: DiffArgs, output: &Output) -> Result<Exit, Failure> {
    if args.inputs.iter().filter(|path| is_standard(path)).count() > 1 {
        return Err(
            Failure::usage("both inputs are -, which is stdin").hint("give a file for one of them")
        );
    }
    let mut inputs = args.inputs.into_iter();
    let (passing, failing) =
        match (args.empty, inputs.next(), inputs.next()) {
            (true, Some(failing), None) => (None, failing),
            (false, Some(passing), Some(failing)) => (Some(passing), failing),
            (true, ..) => {
                return Err(Failure::usage("two inputs are given, and --empty as well")
                    .hint("with --empty give FAILING only"));
            }
            (false, ..) => {
                return Err(Failure::usage("only one input is given, but two are compared").hint(
                "give PASSING and FAILING, or compare with the empty input: --empty FAILING",
            ));
            }
        };
    // The input from stdin is read last, because reading it creates a file.
    let (passing, failing) = match is_standard(&failing) {
        true => (passing.map(Input::read).transpose()?, Input::read(failing)?),
        false => {
            let failing = Input::read(failing)?;
            (passing.map(Input::read).transpose()?, failing)
        }
    };
    let task = SearchTask {
        goal: Goal::Isolate,
        units: match (&passing, args.bytes) {
            (None, _) => Units::Bytes,
            (Some(_), true) => Units::EditBytes,
            (Some(_), false) => Units::Edits,
        },
        passing,
        failing,
    };
    search(task, args.search, output)
}

/// Find the largest part of a failing input that still passes
#[derive(clap::Args)]
#[command(
    override_usage = "ddfuzz max [OPTIONS] <INPUT> [-- <PROGRAM>...]",
    after_help = "The result is written to INPUT.max. Adding any one more byte of the input to it \
                  makes it no longer pass (1-maximal). The time limit of a run is that of \
                  --timeout; it is not adapted.\n\n\
                  Examples:\n  ddfuzz max crash-1 -- ./program @@\n  \
                  ddfuzz max crash-1 -o passes --target ul\n  \
                  ddfuzz max bad --test ./is-bad.sh"
)]
pub struct MaxArgs {
    /// The failing input, or - for stdin; the file is only read
    input: PathBuf,
    #[command(flatten)]
    search: SearchArgs,
}

pub fn max(args: MaxArgs, output: &Output) -> Result<Exit, Failure> {
    let task = SearchTask {
        goal: Goal::Maximize,
        units: Units::Bytes,
        passing: None,
        failing: Input::read(args.input)?,
    };
    search(task, args.search, output)
}

/// Maximum number of positions at which the two inputs of the result differ that are printed.
const PLACES: usize = 8;

fn result_text(record: &DifferenceResult, isolated: &Isolated) -> String {
    let unit = match record.units {
        Some(Units::Edits) => "edit",
        _ => "byte",
    };
    let sizes = size::change(record.size_failing, record.size_passing);
    let deltas = size::counted(record.deltas, unit);
    let mut lines = vec![match record.goal {
        Some(Goal::Maximize) => format!(
            "{sizes} that pass; {deltas} left out; {}",
            tests_text(record)
        ),
        _ => {
            let make = match record.deltas {
                1 => "makes",
                _ => "make",
            };
            format!("{deltas} {make} the difference, {}", tests_text(record))
        }
    }];
    // The bytes of the failing input are what is added to the passing one.
    let is_of_edits = matches!(record.units, Some(Units::Edits | Units::EditBytes));
    let is_of_failing = record.goal != Some(Goal::Maximize) && !is_of_edits;
    for differing in isolated.difference.iter().take(PLACES) {
        lines.push(difference_line(differing, is_of_failing));
    }
    if let Some(more) = isolated.difference.len().checked_sub(PLACES + 1) {
        lines.push(format!(
            "… and {} more",
            size::counted(more as u64 + 1, "place")
        ));
    }
    lines.push(format!("passing  {}", shown_path(&record.passing)));
    lines.push(format!("failing  {}", shown_path(&record.failing)));
    lines.push(format!("log      {}", shown_path(&record.log)));
    lines.join("\n")
}

fn tests_text(record: &DifferenceResult) -> String {
    let tests = size::counted(record.tests.executed, "test");
    let (done, of) = (record.proved.done, record.proved.of);
    match done == of && of > 0 {
        true => format!(
            "in {tests}: {}, proved by {}",
            record.claim,
            size::counted(of, "outcome")
        ),
        false => format!(
            "in {tests}: {}, {} of {} outcomes proved",
            record.claim,
            size::grouped(done),
            size::grouped(of)
        ),
    }
}

/// Formats one position where the two inputs of the result differ: its offset, `-` with the passing
/// input's bytes, and `+` with the failing input's bytes. `differing` has removed and inserted
/// bytes: with `is_of_failing`, the removed ones are those of the failing input, otherwise of the
/// passing one.
fn difference_line(differing: &Differing, is_of_failing: bool) -> String {
    let at = differing.at.start;
    let (passing, failing) = match is_of_failing {
        true => (&differing.inserted, &differing.removed),
        false => (&differing.removed, &differing.inserted),
    };
    let line = |bytes: &[u8]| text::hex_line(bytes, 16);
    match (passing.is_empty(), failing.is_empty()) {
        (false, true) => format!("at {at}  - {}", line(passing)),
        (true, _) => format!("at {at}  + {}", line(failing)),
        (false, false) => format!("at {at}  - {}  + {}", line(passing), line(failing)),
    }
}
