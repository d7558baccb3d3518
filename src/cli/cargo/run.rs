//! `cargo ddfuzz run`: fuzz a target of the project, and shrink what crashes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::build::BuildArgs;
use super::project::Project;
use super::{artifacts, harness, libfuzzer, out, toolchain};
use crate::cli::{Exit, Failure, Output, export, run};
use crate::report::{size, text};

/// Fuzz a target of the project: find crashes, group them, and minimize each new group
///
/// Builds with cargo-fuzz. Seeds are the files in fuzz/corpus/FUZZ_TARGET. At the end new inputs
/// are copied there, and crashing inputs to fuzz/artifacts/FUZZ_TARGET.
#[derive(clap::Args)]
#[group(skip)]
#[command(after_help = "Example:\n  cargo ddfuzz run parse --time 60s\n  \
                        cargo ddfuzz run parse --engine libfuzzer --time 10m -- -use_value_profile=1")]
pub struct Args {
    /// Fuzz target; `cargo ddfuzz list` lists them
    #[arg(value_name = "FUZZ_TARGET")]
    name: String,
    /// Fuzzing engine [default: libafl; libfuzzer if flags for it are given]
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    #[command(flatten)]
    build: BuildArgs,
    #[command(flatten)]
    run: run::Args,
}

/// The folder of the tests in the output directory; its name in `tests/` later.
const TESTS: &str = "fuzz_regressions";

/// What fuzzes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// ddfuzz's own, on LibAFL
    Libafl,
    /// The libFuzzer in the program, restarted after each crash
    Libfuzzer,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let Args {
        name,
        engine,
        build,
        mut run,
    } = args;
    let flags = std::mem::take(&mut run.target.program);
    let engine = match (engine, flags.is_empty()) {
        (Some(Engine::Libafl), false) => {
            return Err(Failure::usage("flags after `--` need --engine libfuzzer")
                .hint("omit the flags, or use --engine libfuzzer"));
        }
        (Some(engine), _) => engine,
        (None, true) => Engine::Libafl,
        (None, false) => Engine::Libfuzzer,
    };
    let project = Project::find(build.fuzz_dir.as_deref())?;
    let triple = run.target.target.take();
    let began = Instant::now();
    let built = build.build(&project, &name, triple.as_deref(), output)?;
    // The whole time is that of the build, too.
    let left = |total: Duration| total.saturating_sub(began.elapsed());
    run.total_time = run.total_time.map(left);
    let program = &built.program;
    run.out = out::choose(&run.out, &name, program);
    let place = run.out.clone();
    let done = match engine {
        Engine::Libafl => by_campaign(run, &project, &name, program, output),
        Engine::Libfuzzer => libfuzzer::run(run, &project, &name, program, &flags, output),
    };
    // Also what was found until an error or Ctrl-C.
    let handed = match place.is_dir() {
        true => artifacts::hand_back(&place, &project, &name, output),
        false => Ok(None),
    };
    let exit = done?;
    if let (Some(reproducer), Exit::Found | Exit::Known) = (handed?, exit) {
        let tests = place.join(TESTS);
        let count = export::regressions(&place, &tests, &project.fuzz_dir)?;
        if !output.json {
            let commands = Commands {
                toolchain: toolchain::word(built.toolchain),
                flags: build.shown(triple.as_deref()),
                name: &name,
            };
            commands.say(&reproducer, &tests, count, output);
        }
    }
    Ok(exit)
}

/// What the user may type next.
struct Commands<'a> {
    toolchain: String,
    flags: String,
    name: &'a str,
}

impl Commands<'_> {
    fn say(&self, reproducer: &Path, tests: &Path, count: u64, output: &Output) {
        let here = std::env::current_dir().unwrap_or_default();
        let near = |path: &Path| text::shell_word(path.strip_prefix(&here).unwrap_or(path));
        output.say(&format!(
            "wrote {} to {}; to keep them as regression tests: cp -r {} tests/",
            size::counted(count, "test"),
            near(tests),
            near(tests),
        ));
        output.say(&format!(
            "next: cargo {}fuzz run{} {} {}",
            self.toolchain,
            self.flags,
            self.name,
            near(reproducer),
        ));
    }
}

/// The campaign of ddfuzz, whose seeds are the corpus of the project.
fn by_campaign(
    mut run: run::Args,
    project: &Project,
    name: &str,
    program: &Path,
    output: &Output,
) -> Result<Exit, Failure> {
    run.target.program = vec![program.into()];
    let corpus = project.corpus(name);
    let target = run.target.target()?;
    let mut started = run.target.probe(&target, output)?;
    harness::check(&mut *started.executor, name, &corpus, output)?;
    drop(started);
    // A resumed campaign has its own.
    if !run.resume && has_files(&corpus) {
        run.seeds.add(corpus);
    }
    run::run(run, output)
}

fn has_files(dir: &PathBuf) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
