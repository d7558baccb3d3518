//! `ddfuzz min`: minimizes one failing input.

use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::run::{campaign_of, processors};
use super::target::{TargetArgs, install_bundled};
use super::{Exit, Failure, Output, amounts, signals};
use crate::campaign::{Finished, Minimizing};
use crate::exec::{Target, Way};
use crate::files::{FileError, atomic};
use crate::minimize::log::{OsText, StartLine};
use crate::minimize::{Journal, MinRecord, MinimizeError, Options, SlipRecord};
use crate::report::{hexdump, size};
use crate::store::{Kind, Store, hash_of};
use crate::triage::{Crash, Found, Triager, Verdict};

/// Minimize one failing input
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz min crash-1 -- ./program @@\n  \
                        ddfuzz min crash-1 -o smaller --search ddmin --target ul")]
pub struct Args {
    /// The failing input; it is only read
    input: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
    /// The result file [default: INPUT.min]; an output directory, if it exists or ends with /
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// How to minimize
    #[arg(long, value_name = "NAME", default_value = "ddmin")]
    search: String,
    /// The log [default: the result file's name with .log.jsonl]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Longest time
    #[arg(long, value_name = "TIME", value_parser = amounts::time)]
    budget_time: Option<Duration>,
    /// Most tests
    #[arg(long, value_name = "N")]
    budget_tests: Option<u64>,
    /// Write the candidates into the log
    #[arg(long)]
    log_inputs: bool,
    /// Test a text again that another configuration gave before, as the papers count
    #[arg(long)]
    no_cache: bool,
    /// Workers, which run tests ahead; no result depends on their number [default: the number of
    /// processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Go on with a minimization that was cut off
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Overwrite the result file and the log
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let input = read_input(&args.input)?;
    let search = crate::minimize::search_by_name(&args.search, &input);
    search.map_err(Failure::usage)?;
    let target = args.target.target()?;
    let place = Place::choose(&args)?;
    let stop = signals::stop_flag()?;
    let started = signals::unless_stopped(&stop, args.target.probe(&target, output))?;
    let way = started.executor.way();
    drop(started);
    let crash = baseline(&args.input, &input, &target, way);
    let crash = signals::unless_stopped(&stop, crash)?;
    output.detail(&format!(
        "{} in group {}, by {way}",
        crash.class,
        crash.keys.major.short()
    ));
    let job = Job {
        minimizing: Minimizing {
            target,
            way,
            search: args.search.clone(),
            budget_time: args.budget_time,
            budget_tests: args.budget_tests,
            log_inputs: args.log_inputs,
            no_cache: args.no_cache,
            seed: None,
            jobs: args.jobs.map_or_else(processors, |jobs| jobs as usize),
        },
        stop: &stop,
        output,
        args: &args,
        crash,
        input,
    };
    if args.force {
        place.clear()?;
    }
    let began = Instant::now();
    let done = match &place {
        Place::File { result, log } => job.into_file(result, log),
        Place::Directory(out) => job.into_directory(out),
    };
    let (finished, mut record) = signals::unless_stopped(&stop, done)?;
    record.wall_ms = began.elapsed().as_millis() as u64;
    for warning in &finished.minimized.warnings {
        output.say(&format!("warning: {warning}"));
    }
    output.result(&text(&record, &finished), &record);
    Ok(Exit::Done)
}

fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        let message = format!("{} is a directory, not an input", path.display());
        return Err(Failure::usage(message).path(path).hint("name a file"));
    }
    std::fs::read(path).map_err(|error| Failure::file(path, "reading", &error))
}

/// The crash of the input before anything is removed.
fn baseline(path: &Path, input: &[u8], target: &Target, way: Way) -> Result<Crash, Failure> {
    match Triager::of_target(target, way)?.examine(input)? {
        Verdict::Crash(crash) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Ok(Crash {
                found: Some(Found::File { path }),
                ..*crash
            })
        }
        Verdict::Flaky { tries, ended } => {
            let message = format!(
                "{} does not fail: {tries} runs, the last of them ended with {ended}",
                path.display()
            );
            Err(Failure::new(Exit::Baseline, "not-failing", message)
                .path(path)
                .hint("give an input that crashes the target every time; --crash-exit N takes an exit status for a crash"))
        }
    }
}

/// Where the result goes.
enum Place {
    File { result: PathBuf, log: PathBuf },
    Directory(PathBuf),
}

impl Place {
    fn choose(args: &Args) -> Result<Place, Failure> {
        let result = match &args.out {
            Some(out) if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') => {
                return Ok(Place::Directory(out.clone()));
            }
            Some(out) => out.clone(),
            None => with_ending(&args.input, ".min"),
        };
        let log = args
            .log
            .clone()
            .unwrap_or_else(|| with_ending(&result, ".log.jsonl"));
        for file in [&result, &log] {
            if is_same_file(file, &args.input) {
                let message = format!("{} is the input, which is only read", file.display());
                return Err(Failure::usage(message)
                    .path(file)
                    .hint("name another file with -o or --log"));
            }
            if file.exists() && !args.resume && !args.force {
                let message = format!("{} exists already", file.display());
                return Err(Failure::new(Exit::Usage, "exists", message)
                    .path(file)
                    .hint("--resume goes on with it, --force overwrites it, -o names another"));
            }
        }
        if result == log || is_same_file(&result, &log) {
            let message = format!("{} would be result and log in one", log.display());
            return Err(Failure::usage(message)
                .path(&log)
                .hint("name another file with --log"));
        }
        Ok(Place::File { result, log })
    }

    /// Removes what `--force` allows to overwrite; only once there is something to put there.
    fn clear(&self) -> Result<(), Failure> {
        let Place::File { result, log } = self else {
            return Ok(());
        };
        for file in [result, log] {
            if file.exists() {
                std::fs::remove_file(file).map_err(|e| Failure::file(file, "removing", &e))?;
            }
        }
        Ok(())
    }
}

/// Whether two names lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

struct Job<'a> {
    minimizing: Minimizing,
    stop: &'a AtomicBool,
    output: &'a Output,
    args: &'a Args,
    crash: Crash,
    input: Vec<u8>,
}

impl Job<'_> {
    fn into_file(self, result: &Path, log: &Path) -> Result<(Finished, MinRecord), Failure> {
        let mut start = self.minimizing.start_line(&self.input, &self.crash);
        let absolute = std::path::absolute(&self.args.input);
        start.input = absolute.ok().map(|path| OsText(path.into()));
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::from(error).path(log))?;
        let start: StartLine = journal.start().clone();
        let slips = RefCell::new(Vec::new());
        let mut options = Options {
            on_reduce: Box::new(|best| Ok(atomic::write(result, best)?)),
            on_slip: Box::new(|slip, _| {
                slips
                    .borrow_mut()
                    .push(keep_slip(result, &slip.input, &slip.keys)?);
                Ok(())
            }),
            ..self.minimizing.options(self.stop)
        };
        let minimized =
            self.minimizing
                .minimize(&self.input, &self.crash, &mut journal, &mut options);
        let minimized = minimized.map_err(|error| {
            if !begun && matches!(error, MinimizeError::NotFailing { .. }) {
                // Nothing was tested, and the log would be in the way of the same command. That it
                // cannot be removed is no news beside the error.
                let _ = std::fs::remove_file(log);
            }
            self.failure(error)
        })?;
        drop(options);
        atomic::write(result, &minimized.text)
            .map_err(|error| Failure::new(Exit::Usage, "output", error).path(result))?;
        let mut record = MinRecord::new(&minimized, &start, Duration::ZERO);
        record.output = text_of(result);
        record.log = text_of(log);
        record.slips = record
            .slips
            .iter()
            .map(|slip| slip_on_file(result, slip, &slips.borrow()))
            .collect();
        let listed = |path: &Path| record.slips.iter().any(|slip| is_of(path, slip));
        for path in slips.borrow().iter().filter(|path| !listed(path)) {
            let path = path.display();
            self.output
                .say(&format!("kept {path}: another crash, by a test run ahead"));
        }
        Ok((Finished { start, minimized }, record))
    }

    fn failure(&self, error: MinimizeError) -> Failure {
        let of_input = matches!(error, MinimizeError::NotFailing { .. });
        let failure = Failure::from(error);
        match of_input {
            true => failure.path(&self.args.input),
            false => failure,
        }
    }

    fn into_directory(self, out: &Path) -> Result<(Finished, MinRecord), Failure> {
        let Minimizing { target, way, .. } = &self.minimizing;
        let mut store = Store::create_or_resume(out, campaign_of(target, *way, None))?;
        install_bundled(&mut store, target)?;
        let filed = store.file(Kind::Crash, &self.crash, &self.input)?;
        let store = Mutex::new(store);
        let finished = self.minimizing.entry(&store, &filed.id, self.stop)?;
        let mut record = MinRecord::new(&finished.minimized, &finished.start, Duration::ZERO);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = store.reader().entry(&filed.id)? {
            record.output = text_of(&entry.reproducer());
            record.log = text_of(&entry.log());
        }
        for slip in &mut record.slips {
            let entries = store.reader().entries(Kind::Crash, &slip.major)?;
            let found = entries.iter().find(|entry| entry.id.minor() == slip.minor);
            slip.file = found.and_then(|entry| text_of(&entry.original()));
        }
        Ok((finished, record))
    }
}

fn text_of(path: &Path) -> Option<OsText> {
    std::path::absolute(path)
        .ok()
        .map(|path| OsText(path.into()))
}

/// Keeps a crash with another key beside the result, under the name of its keys and content.
fn keep_slip(
    result: &Path,
    input: &[u8],
    keys: &crate::minimize::SlipKeys,
) -> Result<PathBuf, FileError> {
    let folder = with_ending(result, ".slips");
    crate::files::folder::create_all(&folder)?;
    let name = format!(
        "{}-{}-{}",
        keys.major.short(),
        keys.minor.short(),
        hash_of(input)
    );
    let path = folder.join(name);
    atomic::write(&path, input)?;
    Ok(path)
}

/// Whether a file is named by these keys.
fn is_of(path: &Path, slip: &SlipRecord) -> bool {
    let begins = format!("{}-{}-", slip.major, slip.minor);
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(&begins))
}

/// The slip with its file, also where it was kept before a resume.
fn slip_on_file(result: &Path, slip: &SlipRecord, kept: &[PathBuf]) -> SlipRecord {
    let named = |path: &PathBuf| is_of(path, slip);
    let folder = with_ending(result, ".slips");
    let before = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    // The last of the same keys: that of a test of the log comes behind one that was run ahead.
    let file = kept.iter().rev().cloned().chain(before).find(named);
    SlipRecord {
        file: file.as_deref().and_then(text_of),
        ..slip.clone()
    }
}

fn text(record: &MinRecord, finished: &Finished) -> String {
    let path = |path: &Option<OsText>| {
        path.as_ref()
            .map(|path| path.0.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let claim = match record.proved.done == record.proved.of && record.proved.of > 0 {
        true => format!(
            "{}, proved by {}",
            record.claim,
            size::counted(record.proved.of, "test")
        ),
        false => format!(
            "{}, {} of {} proved",
            record.claim,
            size::grouped(record.proved.done),
            size::grouped(record.proved.of)
        ),
    };
    format!(
        "{} in {}: {claim}\ninput  {}\nfile   {}\nlog    {}",
        size::reduction(record.size_before, record.size_after),
        size::counted(record.tests.executed, "test"),
        hexdump::line(&finished.minimized.text, 16),
        path(&record.output),
        path(&record.log),
    )
}
