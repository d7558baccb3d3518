//! `ddfuzz min`: minimizes one failing input.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::results::{Place, ResultArgs, read_input, shown, text_of};
use super::run::campaign_of;
use super::slips::{find_in_store, keep_slip, slip_on_file};
use super::target::{TargetArgs, install_bundled};
use super::{Exit, Failure, Output, signals};
use crate::campaign::{Finished, Minimizing};
use crate::exec::{Target, Way};
use crate::files::atomic;
use crate::minimize::log::{OsText, StartLine};
use crate::minimize::{Journal, MinRecord, MinimizeError, Options, minimize};
use crate::report::{hexdump, size};
use crate::store::{Kind, Store};
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
    #[command(flatten)]
    results: ResultArgs,
    /// How to minimize
    #[arg(long, value_name = "NAME", default_value = "ddmin")]
    search: String,
    /// Workers, on whose number no result depends; tests run one after another so far
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let input = read_input(&args.input)?;
    let search = crate::minimize::search_by_name(&args.search, &input);
    search.map_err(Failure::usage)?;
    let target = args.target.target()?;
    let place = Place::choose(&args.results, &[&args.input], &[".min"])?;
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
            budget_time: args.results.budget_time,
            budget_tests: args.results.budget_tests,
            log_inputs: args.results.log_inputs,
            no_cache: args.results.no_cache,
            seed: None,
        },
        stop: &stop,
        args: &args,
        crash,
        input,
    };
    if args.results.force {
        place.clear()?;
    }
    let began = Instant::now();
    let done = match &place {
        Place::File { results, log } => job.into_file(&results[0], log),
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

/// The crash of the input before anything is removed.
pub(super) fn baseline(
    path: &Path,
    input: &[u8],
    target: &Target,
    way: Way,
) -> Result<Crash, Failure> {
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

struct Job<'a> {
    minimizing: Minimizing,
    stop: &'a AtomicBool,
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
        let mut oracle = self.minimizing.oracle(&self.crash)?;
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
        let minimized = minimize(&self.input, &mut oracle, &mut journal, &mut options);
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
        find_in_store(&store, &mut record.slips)?;
        Ok((finished, record))
    }
}

fn text(record: &MinRecord, finished: &Finished) -> String {
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
        shown(&record.output),
        shown(&record.log),
    )
}
