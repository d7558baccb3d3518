//! `--engine libfuzzer`: runs the libFuzzer inside a harness, starts it again after each crash, and
//! groups and minimizes the crashing inputs that it writes. Parses libFuzzer's flags.

mod corpus;
mod fuzzers;
mod process;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use corpus::Scratch;
pub use fuzzers::{LibFuzzerPlan, LibFuzzers};
pub use process::{FuzzerOutput, Process, TerminalUse, flag};

use super::project::{Project, libfuzzer_name};
use super::run::check_harness;
use crate::campaign::Deadline;
use crate::campaign::dictionary;
use crate::campaign::watch::WatchSettings;
use crate::cli::campaign_args::{SeedArgs, read_known_and_against};
use crate::cli::run::{RunArgs, StartUp, workers};
use crate::cli::target::WayArg;
use crate::cli::watch::WatchJob;
use crate::cli::{Exit, Failure, Output, signals, values};
use crate::exec::{Target, Way};
use crate::files::regular;
use crate::report::EndedBy;
use process::timeout_flag;

/// Default of `--max-len`, the maximum length of inputs in bytes, in campaigns whose engine is
/// libFuzzer.
pub const MAX_LEN: u64 = 256 << 20;

/// Name of libFuzzer's flag for the one path to which each failing input is written.
pub const EXACT_PATH: &str = "exact_artifact_path";

/// Runs a campaign by the libFuzzer that is linked into `program`, the built fuzz target `name` of
/// the project. The campaign ends when the time or the number of runs is used up, or when the user
/// stops it. `words`: the user's flags for libFuzzer. Fails if an option is given that only
/// ddfuzz's own engine has.
pub fn run(
    mut args: RunArgs,
    project: &Project,
    name: &str,
    program: &Path,
    words: &[OsString],
    output: &Output,
) -> Result<Exit, Failure> {
    if let Some(option) = args.only_own_engine().or_else(|| not_by_libfuzzer(&args)) {
        let message = format!("{option} does not work with --engine libfuzzer");
        return Err(Failure::usage(message).hint("omit it, or use --engine libafl"));
    }
    if Flags::of(words).value(EXACT_PATH).is_some() {
        let message = "-exact_artifact_path does not work with --engine libfuzzer: libFuzzer is \
                       started again after a crash, and the next one would overwrite the file";
        return Err(Failure::usage(message).hint("use -artifact_prefix"));
    }
    let output = &args.reports.check(output)?;
    args.html.check(&args.out, &args.reports, output)?;
    args.target.program = vec![program.into()];
    let target = args.named_target()?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let target = target.abandoned_when(signals::abandon_at(&stop));
    let start_up = StartUp::begin(None, &stop, &deadline);
    let (mut started, way) = start_up.start(&args.target, &target, output)?;
    check_harness(&mut *started.executor, name, &project.corpus(name), output)?;
    let inputs = GivenInputs::of(&args.seeds)?;
    let (plan, corpus) = plan(&args, project, name, program, words, &inputs, output);
    let settings = WatchSettings {
        deadline,
        ..watching(&args, target, way)?
    };
    let watched = WatchJob {
        settings: &settings,
        out: &args.out,
        resume: args.resume,
        seed: args.seed,
        engine: "libFuzzer".to_owned(),
        unit: "run",
        plain: args.plain,
        reports: &args.reports,
        html: &args.html,
        stop: &stop,
    };
    let start = || {
        let mut all = LibFuzzers::start(plan, corpus, stop.clone())
            .map_err(|error| Failure::file(program, "starting libFuzzer of", &error))?;
        if args.resume {
            all.queue_old_artifacts();
        }
        Ok(all)
    };
    watched.run(started, start, output)
}

/// Returns the name of the first option that the user has given and that libFuzzer cannot follow.
/// Such options say how a target is run, but libFuzzer runs the target in its own process. `None`
/// if there is none.
fn not_by_libfuzzer(args: &RunArgs) -> Option<&'static str> {
    values::first_given(&[
        ("--sandbox", args.target.sandbox),
        ("--cwd", args.target.cwd.is_some()),
        ("--freeze-start", args.target.freeze_start),
        ("--exec", args.target.way != WayArg::Auto),
    ])
}

/// Returns the plan for starting libFuzzer processes, and the corpus directory for new inputs: the
/// first that the user names, else the project's. In the plan, the user's own flags in `words`
/// follow the flags made of ddfuzz's options, and so take precedence.
fn plan(
    args: &RunArgs,
    project: &Project,
    name: &str,
    program: &Path,
    words: &[OsString],
    inputs: &GivenInputs,
    output: &Output,
) -> (LibFuzzerPlan, PathBuf) {
    let mut flags = Flags::of(words);
    let corpus = match flags.corpora.is_empty() {
        true => project.corpus(name),
        false => flags.corpora.remove(0),
    };
    let mut own: Vec<OsString> = Vec::new();
    if let Some(max_len) = args.max_len {
        own.push(format!("-max_len={max_len}").into());
    }
    if let Some(seed) = args.seed {
        // libFuzzer's seed has 32 bits, and 0 means a seed from the clock.
        own.push(format!("-seed={}", (seed as u32).max(1)).into());
    }
    own.extend(args.target.timeout.map(timeout_flag));
    let megabytes = args
        .target
        .memory
        .map(|bytes| bytes.div_ceil(1 << 20).max(1));
    own.extend(megabytes.map(|size| format!("-rss_limit_mb={size}").into()));
    own.extend(inputs.dictionary.iter().map(|path| flag("dict", path)));
    flags.each.splice(0..0, own);
    flags.corpora.extend(inputs.corpora.iter().cloned());
    flags.time = Deadline::fuzzing(args.total_time, args.time.or(flags.time));
    flags.runs = args.runs.or(flags.runs);
    let jobs = workers(args.jobs);
    let folder = || project.artifacts(name).join("").into_os_string();
    let plan = LibFuzzerPlan {
        program: program.to_owned(),
        env: args.target.env.clone(),
        artifact_prefix: flags.artifact_prefix.clone().unwrap_or_else(folder),
        jobs: match flags.runs {
            _ if flags.starts_processes() => 1,
            // Each is to make at least one run.
            Some(runs) => jobs.min(usize::try_from(runs).unwrap_or(jobs).max(1)),
            None => jobs,
        },
        terminal: TerminalUse::Detached(output.verbose),
        again: true,
        flags,
    };
    (plan, corpus)
}

/// Seeds and dictionaries that the user gives, as libFuzzer takes them: directories, and one
/// dictionary. Files are copied to temporary directories.
struct GivenInputs {
    corpora: Vec<PathBuf>,
    dictionary: Option<PathBuf>,
    /// The temporary directory of the copies, which is removed on drop; `None` without copies.
    copies: Option<Scratch>,
}

impl GivenInputs {
    /// Makes the seeds and dictionaries of the user ready for libFuzzer: copies seeds that are
    /// single files to a directory, and joins several dictionaries to one. Fails if one cannot be
    /// read.
    fn of(args: &SeedArgs) -> Result<GivenInputs, Failure> {
        let (seeds, dictionaries) = args.given_paths();
        let mut given = GivenInputs {
            corpora: Vec::new(),
            dictionary: None,
            copies: None,
        };
        let is_file = |path: &&PathBuf| !path.is_dir();
        let (files, dirs): (Vec<&PathBuf>, Vec<&PathBuf>) = seeds.iter().partition(is_file);
        given.corpora.extend(dirs.into_iter().cloned());
        if !files.is_empty() {
            let copy = given.copies()?.join("seeds");
            let made = std::fs::create_dir(&copy);
            made.map_err(|error| Failure::file(&copy, "creating a directory for seeds", &error))?;
            for path in files {
                let bytes = regular::read(path, MAX_LEN).map_err(|why| {
                    Failure::usage(format!("the seed cannot be read: {why}"))
                        .path(path)
                        .hint_where_missing(path)
                })?;
                let copied = std::fs::write(copy.join(libfuzzer_name(&bytes)), bytes);
                copied.map_err(|error| Failure::file(&copy, "copying seeds to", &error))?;
            }
            given.corpora.push(copy);
        }
        for path in dictionaries {
            dictionary::read(path)?;
        }
        given.dictionary = match dictionaries {
            [] => None,
            [path] => Some(path.clone()),
            several => Some(given.joined(several)?),
        };
        Ok(given)
    }

    /// Returns the temporary directory of the copies, which the first call creates; it is removed
    /// when `self` is dropped.
    fn copies(&mut self) -> Result<&Path, Failure> {
        let copies = match self.copies.take() {
            Some(copies) => copies,
            None => Scratch::new().map_err(|error| {
                Failure::file(&std::env::temp_dir(), "creating a directory in", &error)
            })?,
        };
        Ok(self.copies.insert(copies).path())
    }

    /// Joins several dictionaries: writes all their lines to one temporary file, and returns its
    /// path.
    fn joined(&mut self, dictionaries: &[PathBuf]) -> Result<PathBuf, Failure> {
        let mut text = Vec::new();
        for path in dictionaries {
            let unread = |error| Failure::file(path, "reading the dictionary", &error);
            text.extend(std::fs::read(path).map_err(unread)?);
            text.push(b'\n');
        }
        let path = self.copies()?.join("words.dict");
        let written = std::fs::write(&path, text);
        written.map_err(|error| Failure::file(&path, "writing", &error))?;
        Ok(path)
    }
}

fn watching(args: &RunArgs, target: Target, way: Way) -> Result<WatchSettings, Failure> {
    Ok(WatchSettings {
        // No directory is watched: libFuzzer itself names the files that it writes.
        sources: Vec::new(),
        max_len: args.max_len.unwrap_or(MAX_LEN),
        leaks: false,
        // libFuzzer limits its time itself, and all inputs that it writes until then are examined.
        time: None,
        deadline: Deadline::default(),
        until: args.until.clone(),
        when: args.shrink.when(),
        jobs: 1,
        minimizing: args.minimizing(target, way),
        known: read_known_and_against(args.known.as_deref(), args.against.as_deref())?,
        waits_for_room: true,
    })
}

/// A parsed command line of libFuzzer. Flags that apply to the whole campaign (`-max_total_time`,
/// `-runs`, `-artifact_prefix`) are separated from those that each process gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Flags that each libFuzzer process gets; flags that limit the whole campaign are not among
    /// them.
    pub each: Vec<OsString>,
    /// Corpus directories on the command line of libFuzzer, which writes new inputs to the first.
    pub corpora: Vec<PathBuf>,
    /// Value of libFuzzer's flag `-max_total_time`: how long it fuzzes; `None` if not given or 0.
    pub time: Option<Duration>,
    /// Value of libFuzzer's flag `-runs`: number of inputs that it runs; `None` if not given or
    /// negative.
    pub runs: Option<u64>,
    /// Value of `-artifact_prefix`: what the paths of the failing inputs that libFuzzer writes
    /// begin with; `None` if it is not given.
    pub artifact_prefix: Option<OsString>,
}

impl Flags {
    /// Parses the arguments of a libFuzzer command line.
    pub fn of(words: &[OsString]) -> Flags {
        let mut flags = Flags::default();
        for word in words {
            let text = word.to_string_lossy();
            let number = |name: &str| -> Option<i64> {
                text.strip_prefix(name)?.strip_prefix('=')?.parse().ok()
            };
            if let Some(seconds) = number("-max_total_time") {
                let bounded = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
                flags.time = bounded.map(Duration::from_secs);
            } else if let Some(runs) = number("-runs") {
                flags.runs = u64::try_from(runs).ok();
            } else if let Some(prefix) = word.as_bytes().strip_prefix(b"-artifact_prefix=") {
                flags.artifact_prefix = Some(OsStr::from_bytes(prefix).to_owned());
            } else if text.starts_with('-') {
                flags.each.push(word.clone());
            } else {
                flags.corpora.push(word.into());
            }
        }
        flags
    }

    /// Returns why libFuzzer processes that were started with these flags have ended, after `runs`
    /// runs together and the time `time`: by their limit on runs or on time if it was reached, else
    /// by themselves.
    pub fn ended_by(&self, runs: u64, time: Duration) -> EndedBy {
        if self.runs.is_some_and(|limit| runs >= limit) {
            EndedBy::Runs
        } else if self.time.is_some_and(|limit| time >= limit) {
            EndedBy::Time
        } else {
            EndedBy::Fuzzer
        }
    }

    /// Returns true if one of libFuzzer's flags `-fork`, `-jobs` and `-workers` is set, which make
    /// it start further processes.
    pub fn starts_processes(&self) -> bool {
        ["fork", "jobs", "workers"]
            .iter()
            .any(|name| self.is_on(name))
    }

    /// Returns true if libFuzzer's flag `name` is set to a value other than 0.
    pub fn is_on(&self, name: &str) -> bool {
        let set = self.value(name);
        set.is_some_and(|value| value != "0")
    }

    /// Returns the flag that sets the random seed of the next libFuzzer process; `starts`: how many
    /// the campaign has started before. `None` if the user sets no seed, and for the first process,
    /// which gets the user's. Later ones get other seeds: with the same seed and corpus, processes
    /// would generate the same inputs, and one started after a crash would crash in the same way.
    pub fn seed_of_start(&self, starts: u32) -> Option<OsString> {
        let seed: i64 = self.value("seed")?.parse().ok()?;
        // libFuzzer's seed has 32 bits, and 0 means a seed from the clock.
        let seed = seed as u32;
        let own = seed.wrapping_add(starts).max(1);
        (seed != 0 && starts > 0).then(|| format!("-seed={own}").into())
    }

    /// Returns the last value of libFuzzer's flag `name` among the flags that each process gets;
    /// `None` if it is not set.
    pub fn value(&self, name: &str) -> Option<String> {
        let mut values = self.each.iter().filter_map(|word| flag_value(word, name));
        values.next_back()
    }
}

fn flag_value(word: &OsStr, name: &str) -> Option<String> {
    let text = word.to_str()?.strip_prefix('-')?;
    let (own, value) = text.split_once('=')?;
    (own == name).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Flags {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        Flags::of(&words)
    }

    #[test]
    fn what_holds_for_the_campaign_is_taken_out() {
        let flags = flags("-max_total_time=9 -runs=-1 -artifact_prefix=a/ -fork=2 corpus more");
        assert_eq!(flags.time, Some(Duration::from_secs(9)));
        assert_eq!(flags.runs, None);
        assert_eq!(flags.artifact_prefix, Some("a/".into()));
        assert_eq!(flags.each, [OsString::from("-fork=2")]);
        assert_eq!(flags.corpora, [PathBuf::from("corpus"), "more".into()]);
        assert!(flags.is_on("fork") && !flags.is_on("merge"));
    }

    #[test]
    fn each_process_has_a_seed_of_its_own() {
        assert_eq!(flags("-seed=7").seed_of_start(0), None);
        assert_eq!(flags("-seed=7").seed_of_start(2), Some("-seed=9".into()));
        assert_eq!(
            flags("-seed=4294967295").seed_of_start(1),
            Some("-seed=1".into())
        );
        // These seeds come from the clock, and so differ for each process.
        assert_eq!(flags("-seed=0").seed_of_start(1), None);
        assert_eq!(flags("").seed_of_start(1), None);
    }

    #[test]
    fn a_limit_that_is_reached_is_why_libfuzzer_ended() {
        let limits = flags("-runs=50 -max_total_time=9");
        let second = Duration::from_secs(1);
        assert_eq!(limits.ended_by(50, second), EndedBy::Runs);
        assert_eq!(limits.ended_by(49, second * 9), EndedBy::Time);
        assert_eq!(limits.ended_by(49, second), EndedBy::Fuzzer);
        assert_eq!(flags("").ended_by(9, second * 99), EndedBy::Fuzzer);
    }

    #[test]
    fn a_flag_that_is_set_to_nothing_is_off() {
        let flags = flags("-merge=1 -merge=0 -runs=5 -max_total_time=0");
        assert!(!flags.is_on("merge"));
        assert_eq!((flags.runs, flags.time), (Some(5), None));
    }
}
