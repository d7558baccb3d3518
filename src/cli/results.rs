//! Result files of `min`, `max` and `diff`: where results, logs and slips (other crashes than the
//! minimized one) are written; options for budgets and `--resume`.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};

use super::min::call_script::CallFiles;
use super::output::{print_bytes, tell};
use super::{Exit, Failure, Output, values};
pub use crate::files::folder::absolute;
use crate::files::{FileError, atomic, folder};
use crate::minimize::log::{Line, Log, OsText};
use crate::minimize::{MinimizeError, SlipKeys, SlipRecord};
use crate::store::{Kind, Store, hash_of};

/// Options of `min`, `max` and `diff`: result file, log, budgets, `--resume`.
#[derive(clap::Args, Clone)]
pub struct ResultArgs {
    /// Result file, or - for stdout [default: the input's name with .min, .max or .diff]. An
    /// existing directory, or a name that ends with /, is an output directory
    #[arg(short, long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Log file [default: the result file's name with .log.jsonl]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Maximum time, including that before a --resume; of `max` and `diff` that of the search
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub budget_time: Option<Duration>,
    /// Maximum number of tests, including those before a --resume
    #[arg(long, value_name = "N")]
    pub budget_tests: Option<u64>,
    /// Write the bytes of each tested candidate into the log
    #[arg(hide_short_help = true, long)]
    pub log_inputs: bool,
    /// Run candidates again whose bytes were tested before, as the published algorithms do
    #[arg(hide_short_help = true, long)]
    pub no_cache: bool,
    /// Continue a search that was interrupted, or whose budget was used up
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Overwrite the result file and the log
    #[arg(long)]
    pub force: bool,
}

/// Hint in the error for a result file or minimization log that exists already.
pub const CONTINUE_OR_OVERWRITE: &str =
    "continue it with --resume, overwrite it with --force, or give another file with -o";

/// Where `min`, `max` or `diff` writes its result: into files or an output directory.
pub enum ResultPlace {
    /// The result is written to one or two result files, and the minimization log to another file.
    File {
        /// Paths of the result files that `min`, `max` or `diff` writes; the first is the one that
        /// `-o` names.
        results: Vec<PathBuf>,
        log: PathBuf,
    },
    Directory(PathBuf),
}

impl ResultPlace {
    /// Chooses by the options `args` where the result is written. Without `-o`, the result file is
    /// called `named` with the first of `endings` appended. Further result files are called like
    /// the first, with the other endings appended. Fails if the result would overwrite one of the
    /// files `only_read` (inputs, interestingness test, program), or, without `--force` and
    /// `--resume`, any other file.
    pub fn choose(
        args: &ResultArgs,
        only_read: &[&Path],
        named: &Path,
        endings: &[&str],
    ) -> Result<ResultPlace, Failure> {
        let result = match &args.out {
            Some(out) if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') => {
                return Ok(ResultPlace::Directory(out.clone()));
            }
            _ => args.result_of(&with_ending(named, endings[0])),
        };
        let log = args.log_of(&result);
        // The result stands in a file beside the log until it is printed.
        let first = match args.to_stdout() {
            true => with_ending(&log, PRINTED_ENDING),
            false => result.clone(),
        };
        let more = endings.iter().skip(1);
        let more = more.map(|ending| with_ending(&result, ending));
        let results: Vec<PathBuf> = std::iter::once(first).chain(more).collect();
        for file in results.iter().chain([&log]) {
            if only_read.iter().any(|other| is_same_file(file, other)) {
                let message = format!(
                    "{} is the input, the test or the program, which are only read",
                    file.display()
                );
                return Err(Failure::usage(message)
                    .path(file)
                    .hint("give another file with -o or --log"));
            }
            check_regular(file)?;
            if is_taken(file) && !args.continues() && !args.force {
                return Err(Failure::exists(file, CONTINUE_OR_OVERWRITE));
            }
        }
        // Only a log says that an existing file is an earlier result.
        let has_begun = log.exists() || CallFiles::beside(&log).has_logs();
        let left = results.iter().find(|file| is_taken(file));
        if args.continues()
            && !has_begun
            && let Some(file) = left
        {
            let hint = format!(
                "there is no log {} to continue: overwrite it with --force, or give another file \
                 with -o",
                log.display()
            );
            return Err(Failure::exists(file, &hint));
        }
        let twice = |result: &PathBuf| is_same_path(result, &log);
        if results.iter().any(twice) {
            let message = format!("{} is both the result file and the log", log.display());
            return Err(Failure::usage(message)
                .path(&log)
                .hint("give another file with --log"));
        }
        atomic::remove_abandoned(folder::parent(&result));
        Ok(ResultPlace::File { results, log })
    }

    /// Removes existing result files and the log, for `--force`; does nothing if the result goes
    /// into an output directory. Called after the original input was checked and before the search
    /// begins.
    pub fn clear(&self) -> Result<(), Failure> {
        let ResultPlace::File { results, log } = self else {
            return Ok(());
        };
        for file in results.iter().chain([log]) {
            if is_taken(file) {
                std::fs::remove_file(file).map_err(|e| Failure::file(file, "removing", &e))?;
            }
        }
        Ok(())
    }
}

/// Returns true if a result at `path` would replace something: a file, or a symbolic link, even a
/// dangling one.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The file name that stands for stdin or stdout on the command line.
const STANDARD: &str = "-";
/// Number of hex digits of the content's hash in the name of a file that stores an input from
/// stdin.
const HASH_DIGITS: usize = 8;

/// Returns true if the path is `-`, which stands for stdin or stdout.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

impl ResultArgs {
    /// Returns the output settings of the command: those of `output`, but with `-o -` (result to
    /// stdout) messages go to stderr.
    ///
    /// # Errors
    /// When `-o -` and `--json` are given, which would both write to stdout.
    pub fn output(&self, output: &Output) -> Result<Output, Failure> {
        match self.to_stdout() {
            true => output.beside_bytes(),
            false => Ok(output.clone()),
        }
    }

    /// Returns true if the search continues an earlier, interrupted search from its log: with
    /// `--resume`, and also if the result goes to stdout (`-o -`) and neither `--log` nor `--force`
    /// is given, because in a pipe the same command is called again and again. Else false.
    pub fn continues(&self) -> bool {
        self.resume || (self.to_stdout() && self.log.is_none() && !self.force)
    }

    /// Returns `failure`, with a hint in two cases in which the result goes to stdout and no
    /// `--log` is given. If the log beside the input is that of another search, the hint is to give
    /// another log or to overwrite this one. If no log can be written beside the input, the hint is
    /// to give a log in another place.
    pub fn explain(&self, failure: Failure) -> Failure {
        let is_beside = self.to_stdout() && self.log.is_none();
        match failure.kind() {
            "log" if self.continues() && !self.resume => {
                failure.hint("give another log with --log, or overwrite it with --force")
            }
            "read-only" if is_beside => failure
                .hint("the log is written beside the input: give it another place with --log"),
            _ => failure,
        }
    }

    /// Returns the path of the result file: that of `-o`; without `-o`, or with `-o -` (stdout),
    /// the default name `named`.
    fn result_of(&self, named: &Path) -> PathBuf {
        match &self.out {
            Some(out) if !is_standard(out) => out.clone(),
            _ => named.to_owned(),
        }
    }

    /// Returns the path of the log file: that of `--log`, else the result's name with `.log.jsonl`.
    fn log_of(&self, result: &Path) -> PathBuf {
        let named = self.log.clone();
        named.unwrap_or_else(|| with_ending(result, LOG_ENDING))
    }

    /// Prints the names of the files in which inputs that can be read only once were saved. But if
    /// the command failed before it wrote a log, and the user did not interrupt it, removes these
    /// files, and the log if it is empty. `done`: the result of the command. `result`: the default name of its result file.
    pub fn keep_or_remove_saved<T>(
        &self,
        done: &Result<T, Failure>,
        inputs: &[InputFile],
        result: &Path,
        output: &Output,
    ) {
        let failed = matches!(done, Err(failure) if failure.exit != Exit::Interrupted);
        let log = self.log_of(&self.result_of(result));
        let is_empty =
            std::fs::symlink_metadata(&log).is_ok_and(|it| it.is_file() && it.len() == 0);
        if failed && is_empty {
            // The disk was full when its first line was written: nothing can be continued by it.
            drop(std::fs::remove_file(&log));
        }
        let is_needed = !failed || log.exists() || CallFiles::beside(&log).has_logs();
        for InputFile { path, saved_from } in inputs {
            match saved_from {
                Some(from) if is_needed => {
                    output.say(&format!("the input from {from} is in {}", path.display()));
                }
                // One that cannot be removed does no harm.
                Some(_) => drop(std::fs::remove_file(path)),
                None => {}
            }
        }
    }

    /// Returns true if `-o -` sends the result to stdout.
    pub fn to_stdout(&self) -> bool {
        self.out.as_deref().is_some_and(is_standard)
    }

    /// Takes the path of the temporary result file out of `output`, a field of the JSON record, and
    /// returns it, if the result goes to stdout. Else changes nothing and returns `None`.
    pub fn take_output(&self, output: &mut Option<OsText>) -> Option<OsText> {
        match self.to_stdout() {
            true => output.take(),
            false => None,
        }
    }

    /// Prints the content of the result file `result` to stdout, and removes the file. If the
    /// content cannot be printed as a whole, keeps the file and says where it is. Does nothing for
    /// `None`.
    pub fn print(&self, result: Option<OsText>) -> Result<(), Failure> {
        if let Some(OsText(file)) = &result {
            let file = Path::new(file);
            let bytes = std::fs::read(file).map_err(|e| Failure::file(file, "reading", &e))?;
            if print_bytes(&bytes) {
                std::fs::remove_file(file).map_err(|e| Failure::file(file, "removing", &e))?;
            } else {
                tell(&format!("the result is in {}", file.display()));
            }
        }
        Ok(())
    }
}

/// An input file given on the command line.
#[derive(Clone, Debug)]
pub struct InputFile {
    pub path: PathBuf,
    /// Where the content was read from, if this call of ddfuzz has created the file: `stdin` or a
    /// path, such as that of a pipe. `None` for a file that existed before.
    saved_from: Option<String>,
}

/// Returns the input file at `path`. An input that can be read only once (stdin for `-`, a pipe, or
/// what a file descriptor leads to) is first saved in a file of the working directory, named after
/// the hash of the content, because logs refer to their inputs by path.
pub fn input_file(path: PathBuf) -> Result<InputFile, Failure> {
    let there = |path| InputFile {
        path,
        saved_from: None,
    };
    let (from, bytes) = match is_standard(&path) {
        true => (
            "stdin".to_owned(),
            read_once(Path::new("stdin"), Ok(std::io::stdin().lock()))?,
        ),
        false if is_read_once(&path) => {
            let bytes = read_once(&path, std::fs::File::open(&path))?;
            (path.display().to_string(), bytes)
        }
        false => return Ok(there(path)),
    };
    let file = saved_name(&path, &hash_of(&bytes)[..HASH_DIGITS]);
    if std::fs::read(&file).is_ok_and(|there| there == bytes) {
        return Ok(there(file));
    }
    atomic::create_new(&file, &bytes).map_err(|error| Failure::unwritten(&file, error))?;
    Ok(InputFile {
        path: file,
        saved_from: Some(from),
    })
}

/// Maximum number of bytes that are read from stdin, a pipe or a device.
const MOST_READ: u64 = 1 << 30;

/// Returns a parser of arguments that name a file to be read, where `-` is stdin.
pub fn file_or_stdin() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| match is_standard(&path) {
        true => PathBuf::from("/dev/stdin"),
        false => path,
    })
}

/// Reads the whole file at `path` if it can be read only once: a pipe, a device, or what a file
/// descriptor leads to. Returns `None` for other files.
pub fn read_if_once(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    is_read_once(path)
        .then(|| read_once(path, std::fs::File::open(path)))
        .transpose()
}

/// Reads an input that can be read only once, from stdin, a pipe or a device (`from`). Fails if it
/// has more than 1 GiB.
fn read_once(path: &Path, from: io::Result<impl Read>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = from.and_then(|from| from.take(MOST_READ + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure::file(path, "reading the input", &error))?;
    if bytes.len() as u64 > MOST_READ {
        let message = format!("{} has more than 1 GiB, or no end", path.display());
        return Err(Failure::usage(message)
            .path(path)
            .hint("give the input as a file"));
    }
    Ok(bytes)
}

/// Returns true if the input at `path` cannot be read a second time: it is a pipe or a device, or
/// `path` is that of a file descriptor of this process, such as `/dev/stdin`. Else false.
fn is_read_once(path: &Path) -> bool {
    let Ok(facts) = path.metadata() else {
        return false;
    };
    let is_other = !facts.is_file() && !facts.is_dir();
    is_other || (facts.is_file() && is_descriptor(path))
}

/// Returns true if the path is in the directory of a process's file descriptors, `/proc/PID/fd`, or
/// a symbolic link to such a path.
fn is_descriptor(path: &Path) -> bool {
    let is_in_proc = |path: &Path| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
    };
    let target = std::fs::read_link(path);
    is_in_proc(path) || target.is_ok_and(|target| is_in_proc(&folder::parent(path).join(target)))
}

/// Returns the name of the file in which an input read from `path` is saved: the digits of the
/// input's hash `hash`, and the ending that `path` has.
fn saved_name(path: &Path, hash: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match &*stem {
        _ if is_standard(path) => "stdin",
        // The number of a file descriptor.
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => "input",
        stem => stem,
    };
    let mut file = PathBuf::from(format!("{name}-{hash}"));
    if let Some(ending) = path.extension() {
        file.add_extension(ending);
    }
    file
}

/// Reads an input file; fails with a hint if it is a directory.
pub fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        let message = format!("{} is a directory, not an input", path.display());
        return Err(Failure::usage(message)
            .path(path)
            .hint("give a file, or an output directory of ddfuzz"));
    }
    std::fs::read(path).map_err(|error| Failure::file(path, "reading the input", &error))
}

/// Fails if there is something at `file` that is not a regular file, such as a device.
fn check_regular(file: &Path) -> Result<(), Failure> {
    let is_other = file.metadata().is_ok_and(|facts| !facts.is_file());
    match is_other {
        true => Err(
            Failure::usage(format!("{} is not a regular file", file.display()))
                .path(file)
                .hint("give another file with -o or --log; `-o -` writes the result to stdout"),
        ),
        false => Ok(()),
    }
}

/// Returns true if two paths lead to the same file, or would if both files were created; else
/// false.
pub fn is_same_path(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let path = absolute(path);
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let same = place(one).is_some() && place(one) == place(other);
    one == other || same || is_same_file(one, other)
}

/// Returns true if both paths lead to one existing file, with the same device and inode; else
/// false.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Returns the path with `ending` appended to its file name.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns the absolute path of `path` in the form that JSON records contain; `None` if it cannot
/// be determined.
pub fn recorded_path(path: &Path) -> Option<OsText> {
    let absolute = std::path::absolute(path).ok()?;
    Some(OsText(absolute.into()))
}

/// Formats a path from a JSON record for people; the empty text for `None`.
pub fn shown_path(path: &Option<OsText>) -> String {
    let path = path.as_ref().map(|path| path.0.to_string_lossy());
    path.unwrap_or_default().into_owned()
}

/// Removes a minimization log without any test, if the search failed with `error` on the original
/// input, so that the command can be repeated without `--force`.
pub fn remove_useless_log(log: &Path, error: &MinimizeError) {
    let of_baseline = matches!(
        error,
        MinimizeError::NotFailing { .. }
            | MinimizeError::NotPassing { .. }
            | MinimizeError::Alternating { .. }
            | MinimizeError::Oracle(_)
    );
    if of_baseline && holds_no_test(log) {
        // If the log cannot be removed, the error of the search still says more.
        let _ = std::fs::remove_file(log);
    }
}

/// Returns true if the minimization log can be read and records no test.
fn holds_no_test(log: &Path) -> bool {
    let is_test = |(_, line): &(u64, Line)| matches!(line, Line::Test(_));
    Log::read(log).is_ok_and(|log| !log.lines.iter().any(is_test))
}

/// Suffix of the name of a log, after that of the result file.
pub const LOG_ENDING: &str = ".log.jsonl";

/// Suffix that is appended to the name of the log for the name of a temporary file: it holds the
/// result until the minimization ends and prints it (`-o -`).
const PRINTED_ENDING: &str = ".ddfuzz-stdout";

/// Returns the folder for the inputs of slips (other crashes than the minimized one) that the
/// minimization with the result file `result` finds: `NAME.slips`, where `NAME` is the result, or
/// the log without `.log.jsonl` if the result is to be printed.
fn slips_folder(result: &Path) -> PathBuf {
    let name = result.as_os_str().as_bytes();
    let named = match name.strip_suffix(PRINTED_ENDING.as_bytes()) {
        Some(log) => log.strip_suffix(LOG_ENDING.as_bytes()).unwrap_or(log),
        None => name,
    };
    with_ending(Path::new(OsStr::from_bytes(named)), ".slips")
}

/// Suffix that is appended to the name of the input of a slip (another crash, found while
/// minimizing) to get the name of its shell script.
pub const SCRIPT_ENDING: &str = ".sh";

/// Stores the input of a slip (another crash than the minimized one) in the folder `.slips` beside
/// the result; the file is named after the crash's keys and the content. Returns its path.
pub fn store_slip(result: &Path, input: &[u8], keys: &SlipKeys) -> Result<PathBuf, FileError> {
    let folder = slips_folder(result);
    folder::create_all(&folder)?;
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

/// Returns true if the file name of `path`, made by [`store_slip`], has the crash keys (hashes of
/// the crash) of `slip`, another crash than the minimized one.
fn is_input_of(path: &Path, slip: &SlipRecord) -> bool {
    let begins = format!("{}-{}-", slip.major, slip.minor);
    path.file_name()
        .map(|name| name.to_string_lossy())
        .is_some_and(|name| name.starts_with(&begins) && !name.ends_with(SCRIPT_ENDING))
}

/// Returns the files of `kept`, the inputs of slips (other crashes, found while minimizing), whose
/// slip is not in `listed`, the slips in the log. The log may lack some, since workers also test
/// candidates that the search has not asked for.
pub fn unlisted_slips<'a>(
    kept: &'a [PathBuf],
    listed: &[SlipRecord],
) -> impl Iterator<Item = &'a Path> {
    let is_listed = |path: &Path| listed.iter().any(|slip| is_input_of(path, slip));
    kept.iter()
        .map(PathBuf::as_path)
        .filter(move |path| !is_listed(path))
}

/// Returns a copy of `slip` (another crash, found while minimizing) with the paths of the file that
/// stores its input and of the script beside this file. The file is one of `kept`, or one that an
/// earlier call of ddfuzz wrote beside `result`. Without such a file, the copy has no path.
pub fn slip_on_file(result: &Path, slip: &SlipRecord, kept: &[PathBuf]) -> SlipRecord {
    let named = |path: &PathBuf| is_input_of(path, slip);
    let folder = slips_folder(result);
    let before = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path());
    // Of several files with the same keys the last one is taken: the one of a test in the log comes
    // after those of tests that workers made ahead.
    let file = kept.iter().rev().cloned().chain(before).find(named);
    let script = file.as_deref().map(|file| with_ending(file, SCRIPT_ENDING));
    let script = script.filter(|script| script.is_file());
    SlipRecord {
        file: file.as_deref().and_then(recorded_path),
        script: script.as_deref().and_then(recorded_path),
        ..slip.clone()
    }
}

/// Sets the path of each slip (another crash, found while minimizing) to that of its input in the
/// output directory, or to `None` if the directory does not store the slip. Fails if the directory
/// cannot be read.
pub fn find_in_store(store: &Store, slips: &mut [SlipRecord]) -> Result<(), Failure> {
    for slip in slips {
        slip.file = None;
        for kind in Kind::ALL {
            let entries = store.reader().entries(kind, &slip.major)?;
            let found = entries.iter().find(|entry| entry.id.minor() == slip.minor);
            let path = found.and_then(|entry| recorded_path(&entry.original()));
            slip.file = slip.file.take().or(path);
        }
    }
    Ok(())
}
