//! `cargo ddfuzz run`: builds a fuzz target, checks that its harness works, fuzzes it, and copies
//! the results into the project.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::build::{BuildArgs, toolchain_word};
use super::project::{Project, choose_out, copy_to_project};
use super::{libfuzzer, with_check};
use crate::cli::{Exit, Failure, Output, export, run};
use crate::exec::{CoverageReporting, Ended, Executor};
use crate::files::regular;
use crate::report::{size, text};

/// Fuzz a target of the project: find crashes, group them, and minimize each new group
///
/// Builds with cargo-fuzz. Seeds are the files in fuzz/corpus/FUZZ_TARGET. At the end new inputs
/// are copied there, and crashing inputs to fuzz/artifacts/FUZZ_TARGET.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz run parse --time 60s\n  \
                        cargo ddfuzz run parse --engine libfuzzer --time 10m -- -use_value_profile=1")]
pub struct CargoRunArgs {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    /// Fuzzing engine [default: libafl; libfuzzer if flags for it are given]
    #[arg(long, value_enum)]
    engine: Option<FuzzingEngine>,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    run: run::RunArgs,
}

/// Name of the folder for exported regression tests in the output directory.
const TESTS: &str = "fuzz_regressions";

/// Values of `--engine`: ddfuzz's own engine (`libafl`), or the libFuzzer in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FuzzingEngine {
    /// ddfuzz's own engine, on LibAFL
    Libafl,
    /// The libFuzzer in the program, restarted after each crash
    Libfuzzer,
}

pub fn run(args: CargoRunArgs, output: &Output) -> Result<Exit, Failure> {
    let CargoRunArgs {
        name,
        engine,
        build,
        mut run,
    } = args;
    let flags = std::mem::take(&mut run.target.program);
    let engine = match (engine, flags.is_empty()) {
        (Some(FuzzingEngine::Libafl), false) => {
            return Err(Failure::usage("flags after `--` need --engine libfuzzer")
                .hint("omit the flags, or use --engine libfuzzer"));
        }
        (Some(engine), _) => engine,
        (None, true) => FuzzingEngine::Libafl,
        (None, false) => FuzzingEngine::Libfuzzer,
    };
    let project = Project::find(build.fuzz_dir.as_deref())?;
    let triple = run.target.target.take();
    let began = Instant::now();
    let built = build.build(&project, &name, triple.as_deref(), output)?;
    // The whole time is that of the build, too.
    run.total_time = time_left(run.total_time, began)?;
    let program = &built.program;
    let output = &with_check(output, &build, triple.as_deref(), &name);
    run.out = choose_out(&run.out, &name, program);
    let place = run.out.clone();
    let done = match engine {
        FuzzingEngine::Libafl => by_campaign(run, &project, &name, program, output),
        FuzzingEngine::Libfuzzer => libfuzzer::run(run, &project, &name, program, &flags, output),
    };
    // Findings are copied even after an error or Ctrl-C, but not from a directory that was refused.
    let refused = done
        .as_ref()
        .is_err_and(|error| matches!(error.kind(), "usage" | "in-use"));
    let handed = match place.is_dir() && !refused {
        true => copy_to_project(&place, &project, &name, output),
        false => Ok(None),
    };
    let exit = done?;
    if let Some(reproducer) = handed? {
        let tests = place.join(TESTS);
        let (count, left_out) = export::regressions(&place, &tests, &project.fuzz_dir)?;
        if let Some(error) = left_out {
            output.say(&format!("not all groups have a test: {}", error.message()));
        }
        let written = size::counted(count, "test");
        output_tests(&place, &written, output);
        if !output.json {
            output.say(&format!(
                "next: cargo {}fuzz run{} {name} {}",
                toolchain_word(built.toolchain),
                build.shown(triple.as_deref()),
                near(&reproducer),
            ));
        }
    }
    Ok(exit)
}

/// Returns the rest of the time `total`, which a build and a campaign share and which is counted
/// from `began`. `None` if `total` is `None` (no limit).
///
/// # Errors
/// When no time remains.
fn time_left(total: Option<Duration>, began: Instant) -> Result<Option<Duration>, Failure> {
    let left = total.map(|total| total.saturating_sub(began.elapsed()));
    match total.filter(|_| left.is_some_and(|left| left.is_zero())) {
        None => Ok(left),
        Some(total) => {
            let total = size::duration(total);
            let message = format!("the build took all of --total-time {total}: nothing was fuzzed");
            let hint =
                "give more time, or build before: `cargo fuzz build` leaves what this call needs";
            Err(Failure::usage(message).hint(hint))
        }
    }
}

/// Returns `path` as a word of a shell command. A path in or below the working directory becomes
/// relative to that directory.
fn near(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    text::shell_word(path.strip_prefix(&here).unwrap_or(path))
}

/// Tells the user that regression tests were written below the output directory `place`, and how to
/// keep them. `written`: how many, in words.
fn output_tests(place: &Path, written: &str, output: &Output) {
    let tests = near(&place.join(TESTS));
    // A copy would replace the list of tests that are there already.
    let kept = Path::new("tests").join(TESTS);
    let keep = match kept.exists() {
        true => format!("ddfuzz export --into {} -o {}", near(&kept), near(place)),
        false => format!("cp -r {tests} tests/"),
    };
    if !output.json {
        output.say(&format!(
            "wrote {written} to {tests}; to keep them as regression tests: {keep}"
        ));
    }
}

/// Tries the harness `name`, built as `program`, on some inputs, and runs a campaign on it with
/// ddfuzz's own engine. The seeds include the corpus of the cargo-fuzz project. Returns the exit
/// code.
fn by_campaign(
    mut run: run::RunArgs,
    project: &Project,
    name: &str,
    program: &Path,
    output: &Output,
) -> Result<Exit, Failure> {
    run.target.program = vec![program.into()];
    let corpus = project.corpus(name);
    let target = run.named_target()?;
    let mut started = run.target.probe(&target, output)?;
    check_harness(&mut *started.executor, name, &corpus, output)?;
    drop(started);
    if has_files(&corpus) {
        run.seeds.add(corpus);
    }
    run::run(run, output)
}

fn has_files(dir: &PathBuf) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Lengths in bytes of the generated inputs on which the harness is tried before fuzzing.
const TRIED_LENGTHS: [usize; 7] = [0, 1, 4, 16, 64, 256, 1024];
/// Maximum number of corpus files on which the harness is tried before fuzzing.
const MAX_CORPUS_FILES: usize = 8;
const LONGEST: u64 = 1 << 20;

/// Runs the harness on some inputs before fuzzing: generated ones, and files of the directory
/// `corpus`. Fails if the harness fails on each of them, except perhaps on the empty one, which it
/// may treat in a special way. Prints a warning if it fails on none and all inputs reach the same
/// coverage: it may not use its input.
pub fn check_harness(
    executor: &mut dyn Executor,
    name: &str,
    corpus: &Path,
    output: &Output,
) -> Result<(), Failure> {
    executor.report_coverage(CoverageReporting::Every);
    let mut deaths = Vec::new();
    let (mut tried, mut reached) = (0_usize, Vec::new());
    for input in harness_inputs(corpus) {
        let run = executor.run(&input)?;
        tried += 1;
        match run.ended {
            // The code around a harness may treat an empty input in a special way.
            Ended::Exit(0) if input.is_empty() => tried -= 1,
            Ended::Exit(0) => reached.extend(executor.coverage().map(<[u8]>::to_vec)),
            ended => deaths.push(ended),
        }
    }
    executor.report_coverage(CoverageReporting::Nothing);
    if let (Some(first), true) = (deaths.first(), deaths.len() == tried) {
        let message = format!(
            "the harness {name} fails on every input (for example by {first}), so no other failure \
             could be found"
        );
        return Err(
            Failure::new(Exit::Baseline, "harness", message).hint(format!(
                "look at its message, and fix it: cargo fuzz run {name} -- -runs=1"
            )),
        );
    }
    let same = reached.windows(2).all(|pair| pair[0] == pair[1]);
    if deaths.is_empty() && reached.len() == tried && same {
        output.say(&format!(
            "warning: the harness {name} does the same on {tried} different inputs; does it use its \
             input? (`cargo fuzz fmt {name} INPUT` shows what it makes of an input; its source is \
             fuzz_targets/{name}.rs)"
        ));
    }
    Ok(())
}

/// Returns inputs to try the harness on: generated ones of several lengths and kinds, and some
/// files of the corpus.
fn harness_inputs(corpus: &Path) -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for length in TRIED_LENGTHS {
        let letters = (0..length).map(|at| b"(a1, \"b\": {2}) <c>\n"[at % 19]);
        inputs.push(letters.collect());
        // Bytes of all values, in no order that a parser expects.
        inputs.push(
            (0..length)
                .map(|at| (at * 167 + at / 256 * 13 + 5) as u8)
                .collect(),
        );
        inputs.push(vec![0; length]);
    }
    inputs.dedup();
    let entries = std::fs::read_dir(corpus).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = paths.iter().take(MAX_CORPUS_FILES);
    inputs.extend(read.filter_map(|path| regular::read(path, LONGEST).ok()));
    inputs
}
