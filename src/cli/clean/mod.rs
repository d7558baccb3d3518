//! `ddfuzz clean`: finds the smallest subset of a corpus with the same coverage. Options, the
//! target recorded by AFL++ in its output directory, and `--explain`.

mod destination;
mod job;
mod libfuzzer;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::campaign_args::{MinimizationArgs, searches};
use super::results::absolute;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals, values};
use crate::corpus::{CleanPaths, Explainer, Fate};
use crate::files::{OsText, regular};
use crate::report::clean::CleanResult;
use crate::report::text::printable;
use destination::check_places;
use job::CleanJob;

/// Default of `--out`, the output directory of a cleanup.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Minimize a corpus: keep a minimal subset with the same coverage
///
/// Leaves out duplicates, unreadable files, crashes, hangs, and files whose coverage others have as
/// well. The corpus is only read: the kept files are written to corpus/ of the output directory,
/// crashes and hangs to their groups there. With --trim each kept file is shortened by delta
/// debugging. The same command continues one that was killed.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz clean corpus -o cleaned -- ./program @@\n  \
                  ddfuzz clean afl-out -o cleaned\n  \
                  ddfuzz clean corpus --in-place --keep-names -- ./program\n  \
                  ddfuzz clean new-inputs --onto corpus -- ./program\n  \
                  ddfuzz clean -o cleaned --explain corpus/some-file"
)]
pub struct CleanArgs {
    /// The corpus: directories, or files; an output directory of AFL++, which names its target
    /// itself, or of ddfuzz
    #[arg(value_name = "CORPUS")]
    pub(in crate::cli) corpus: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    /// Output directory [default: ddfuzz-out; of `cargo ddfuzz clean` ddfuzz-clean-FUZZ_TARGET]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Replace the corpus by the kept files; the old one stays beside it, as CORPUS.old
    #[arg(long, conflicts_with_all = ["onto", "explain"])]
    pub(in crate::cli) in_place: bool,
    /// With --in-place, remove the old corpus once it is replaced
    #[arg(long)]
    pub(in crate::cli) delete_old: bool,
    /// Add to this corpus the files that increase its coverage; nothing in it is changed
    #[arg(long, value_name = "DIR", conflicts_with = "explain")]
    pub(in crate::cli) onto: Option<PathBuf>,
    /// Keep the names of files, instead of naming them by their content
    #[arg(long)]
    pub(in crate::cli) keep_names: bool,
    /// Skip a step of the cleanup
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEP")]
    pub(in crate::cli) skip: Vec<SkipArg>,
    /// Shorten each kept file by delta debugging, which may take minutes; what it must keep
    /// [default: off]
    #[arg(long, value_enum)]
    trim: Option<TrimArg>,
    /// Maximum number of runs to trim one file [default: 1000]. Implies --trim worth, as
    /// --trim-time and --trim-search do
    #[arg(long, value_name = "N")]
    pub(in crate::cli) trim_tests: Option<u64>,
    /// Maximum time to trim one file; the result then depends on the speed of the machine
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(in crate::cli) trim_time: Option<Duration>,
    /// Search algorithm of trimming [default: full for files of known formats and languages, subset
    /// for others]
    #[arg(long, value_name = "NAME", value_parser = searches())]
    pub(in crate::cli) trim_search: Option<String>,
    /// How often each kept file is run, to find out which of its coverage is not flaky
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in crate::cli) repeats: u32,
    /// Maximum size of a file; larger ones are left out [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(in crate::cli) max_len: Option<u64>,
    /// Number of workers [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(in crate::cli) jobs: Option<u32>,
    #[command(flatten)]
    pub(in crate::cli) shrink: MinimizationArgs,
    /// Show why a file was kept or left out by the last cleanup in the output directory; nothing is
    /// run
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(in crate::cli) explain: Vec<PathBuf>,
    /// Accepted and not needed: a cleanup always continues the one in the output directory
    #[arg(long)]
    pub(in crate::cli) resume: bool,
}

impl CleanArgs {
    /// Returns what trimmed files must keep: the value of `--trim` if given. Without it, `Worth` if
    /// a limit or a search algorithm of trimming is given, and else `Off` (no trimming).
    fn trim(&self) -> TrimArg {
        let is_bounded =
            self.trim_tests.is_some() || self.trim_time.is_some() || self.trim_search.is_some();
        match (self.trim, is_bounded) {
            (Some(trim), _) => trim,
            (None, true) => TrimArg::Worth,
            (None, false) => TrimArg::Off,
        }
    }

    pub fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(DEFAULT_OUT))
    }
}

/// Values of `--skip`: a step of a cleanup that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SkipArg {
    /// Skip triage: crashes and hangs are left out, and not filed in groups
    Groups,
    /// Skip the repeated runs: the coverage of one run counts, flaky or not
    Flaky,
    /// Skip the choice of a subset: every different file that neither crashes nor hangs is kept
    Subset,
}

/// Values of `--trim`: what a corpus file must keep when it is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TrimArg {
    /// Keep the coverage for which the file was chosen: what it reaches and no smaller kept file
    /// does
    Worth,
    /// Keep exactly the coverage that the file has
    Signature,
    /// Do not trim files
    Off,
}

/// Checks the options and directories of a cleanup, before its target is built or run.
pub fn check(args: &CleanArgs) -> Result<(), Failure> {
    check_trim(args)?;
    if args.in_place {
        destination::ReplacedCorpus::of(args)?;
    }
    check_places(args)
}

/// Fails if files are to be trimmed without a subset: a trimmed file must keep the coverage for
/// which it was chosen, and without a subset no file is chosen.
fn check_trim(args: &CleanArgs) -> Result<(), Failure> {
    match args.trim() != TrimArg::Off && args.skip.contains(&SkipArg::Subset) {
        true => {
            let message = "files cannot be trimmed with --skip subset, which chooses none of them";
            Err(Failure::usage(message).hint("omit --trim and its limits, or --skip subset"))
        }
        false => Ok(()),
    }
}

pub fn run(mut args: CleanArgs, output: &Output) -> Result<Exit, Failure> {
    if !args.explain.is_empty() {
        return explain_files(args.out(), &args.explain, output);
    }
    if args.corpus.is_empty() {
        return Err(Failure::usage("no corpus is given")
            .hint("give its directory: ddfuzz clean CORPUS -o OUT -- PROGRAM"));
    }
    if !args.target.is_named()
        && let [corpus] = &args.corpus[..]
        && let Some(program) = afl_target_of(corpus)
    {
        let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
        output.say(&format!(
            "the target, by its fuzzer_stats: {}",
            words.join(" ")
        ));
        args.target.program = program;
    }
    let stop = signals::stop_flag()?;
    CleanJob { args, stop }.run(output)
}

/// Returns the command line of the target that AFL++ has recorded in `corpus`: if that is the
/// output directory of AFL++, or the directory of one of its instances. `None` if none is recorded.
pub fn afl_target_of(corpus: &Path) -> Option<Vec<OsString>> {
    let own = corpus.join("fuzzer_stats");
    let mut below: Vec<PathBuf> = std::fs::read_dir(corpus)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    below.sort();
    let below = below.into_iter().map(|path| path.join("fuzzer_stats"));
    std::iter::once(own)
        .chain(below)
        .find_map(|stats| afl_target_in(&regular::read(&stats, 1 << 20).ok()?))
}

/// Returns the target's command line in AFL++'s `fuzzer_stats`: the words after `--` of its line
/// `command_line : afl-fuzz -i in -o out -- program @@`; `None` if there are none.
fn afl_target_in(stats: &[u8]) -> Option<Vec<OsString>> {
    let line = stats.split(|byte| *byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(b"command_line")?.trim_ascii_start();
        Some(rest.strip_prefix(b":")?.trim_ascii())
    })?;
    let words = line.split(|byte| *byte == b' ');
    let words = words.filter(|word| !word.is_empty());
    let target: Vec<OsString> = (words.skip_while(|word| *word != b"--").skip(1))
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    (!target.is_empty()).then_some(target)
}

#[derive(Serialize)]
struct Explained {
    file: OsText,
    kept: bool,
    in_corpus: bool,
    why: String,
}

/// Prints for each of `files` why the cleanup in the output directory `out` kept it or left it out.
/// Returns the exit code.
pub fn explain_files(out: &Path, files: &[PathBuf], output: &Output) -> Result<Exit, Failure> {
    let place = CleanPaths::of(out);
    let result = read_result(&place.result())?;
    let explainer = Explainer::new(&place, &result);
    let mut all = Vec::new();
    for file in files {
        let Fate {
            kept,
            in_corpus,
            why,
        } = (explainer.explain(file)).map_err(|error| Failure::from(error).path(file))?;
        let file = absolute(file);
        let file = OsText::from(&file);
        all.push(Explained {
            file,
            kept,
            in_corpus,
            why,
        });
    }
    let corpus = result.corpus.iter().map(|one| one.0.to_string_lossy());
    let corpus: Vec<String> = corpus.map(|one| printable(&one)).collect();
    let not_in = format!("not in the corpus {}", corpus.join(", "));
    let lines: Vec<String> = (all.iter())
        .map(|one| {
            let what = match (one.kept, one.in_corpus) {
                (true, _) => "kept",
                (false, true) => "left out",
                (false, false) => &*not_in,
            };
            let file = printable(&one.file.0.to_string_lossy());
            format!("{file}: {what}: {}", printable(&one.why))
        })
        .collect();
    #[derive(Serialize)]
    struct All {
        explained: Vec<Explained>,
    }
    output.result(&lines.join("\n"), &All { explained: all });
    Ok(Exit::Done)
}

fn read_result(path: &Path) -> Result<CleanResult, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::file(path, "reading", &error)
            .hint("give the output directory of a finished `ddfuzz clean` with -o")
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::usage(format!(
            "{} is not the result of a cleanup: {error}",
            path.display()
        ))
        .path(path)
        .hint("clean the corpus again")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_stands_behind_the_two_dashes() {
        let stats =
            b"start_time        : 1\ncommand_line      : afl-fuzz -i in -o out -- ./tiff -q @@\n";
        let target = afl_target_in(stats).unwrap();
        assert_eq!(target, ["./tiff", "-q", "@@"]);
    }

    #[test]
    fn a_line_without_two_dashes_tells_no_target() {
        assert_eq!(
            afl_target_in(b"command_line : afl-fuzz -i in -o out ./x\n"),
            None
        );
        assert_eq!(afl_target_in(b"run_time : 3\n"), None);
        assert_eq!(afl_target_in(b""), None);
    }

    #[test]
    fn the_first_instance_that_tells_names_it() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("b", "command_line : afl-fuzz -- /bin/cat\n"), ("a", "")] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("fuzzer_stats"), text).unwrap();
        }
        assert_eq!(afl_target_of(dir.path()).unwrap(), ["/bin/cat"]);
        assert_eq!(afl_target_of(&dir.path().join("none")), None);
    }
}
