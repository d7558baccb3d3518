//! Directories of other fuzzers (AFL++, honggfuzz, libFuzzer): recognizes them by their file names,
//! lists the inputs in them, and parses the names of crash files.
//!
//! [`CrashName::parse`] is a pure function of a file name; [`find`] lists the inputs below a
//! directory. Both only read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{Reader, StoreError, layout::CAMPAIGN};

/// Maximum depth of nested directories that [`find`] descends into.
const DEPTH: usize = 64;

/// An input file that [`find`] has found at or below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Absolute path of the input file that was found.
    pub path: PathBuf,
    /// The parsed file name, as another fuzzer gives it to a crash file; `None` if no known fuzzer
    /// gave it.
    pub named: Option<CrashName>,
}

/// A directory that [`find`] has searched for inputs: its type, and what was found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Absolute path of the searched directory.
    pub path: PathBuf,
    /// Type of the searched directory (of AFL++, of libFuzzer, …), recognized by the file names in
    /// it.
    pub layout: Layout,
    /// Number of inputs found directly in the searched directory, without its subdirectories.
    pub inputs: u64,
    /// Files and subdirectories that were left out of the search, each with the reason.
    pub skipped: Vec<(PathBuf, &'static str)>,
}

/// The inputs that [`find`] has found at or below the searched paths, and the directories that it
/// has searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The inputs, in the order of the paths given; those of one directory are sorted by name.
    pub inputs: Vec<Input>,
    /// The directories that [`find`] has searched for inputs, each with the number of inputs in it.
    pub directories: Vec<Directory>,
    /// Directories that could not be listed, each with the reason.
    pub unread: Vec<(PathBuf, String)>,
}

impl Inputs {
    /// Removes from the list all inputs and searched directories that are inside the output
    /// directory `out`, and returns the removed directories.
    pub fn exclude_output(&mut self, out: &Path) -> Vec<PathBuf> {
        let Ok(out) = out.canonicalize() else {
            return Vec::new();
        };
        let inside = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(&out));
        let all = std::mem::take(&mut self.directories);
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| inside(&one.path));
        self.directories = others;
        let own: Vec<PathBuf> = own.into_iter().map(|one| one.path).collect();
        let is_own = |input: &Input| own.iter().any(|own| input.path.starts_with(own));
        self.inputs.retain(|input| !is_own(input));
        own
    }
}

/// Adds the inputs below `path` to `found`: the file itself, or the files in a directory, selected
/// by its [`Layout`]; also the directories that were searched, and those that could not be listed.
/// Symbolic links to files are followed; links to directories are not, except `path` itself,
/// because they could form a cycle. Only directories are opened. Fails if an output directory of
/// ddfuzz cannot be read.
pub fn find(path: &Path, found: &mut Inputs) -> Result<(), StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match absolute.is_dir() {
        true => walk(&absolute, false, 0, found),
        false => {
            let named = Layout::Plain.read_name(&absolute);
            found.inputs.push(Input {
                path: absolute,
                named,
            });
            Ok(())
        }
    }
}

fn walk(path: &Path, in_afl: bool, depth: usize, found: &mut Inputs) -> Result<(), StoreError> {
    let names = match listed(path) {
        Ok(names) => names,
        Err(error) => {
            found.unread.push((path.to_owned(), error.to_string()));
            return Ok(());
        }
    };
    let layout = Layout::of(names.iter().filter_map(|name| name.to_str()), in_afl);
    let mut directory = Directory {
        path: path.to_owned(),
        layout,
        inputs: 0,
        skipped: Vec::new(),
    };
    if layout == Layout::Ddfuzz {
        for id in Reader::open(path)?.originals()? {
            let path = id.original(path);
            found.inputs.push(Input { path, named: None });
            directory.inputs += 1;
        }
        found.directories.push(directory);
        return Ok(());
    }
    let at = found.directories.len();
    let mut below = Vec::new();
    for name in names {
        let entry = path.join(&name);
        let name = name.to_str();
        match entry.symlink_metadata() {
            Ok(facts) if facts.is_dir() => match layout.directory_skip_reason(name) {
                Some(why) => directory.skipped.push((entry, why)),
                None => below.push(entry),
            },
            Ok(facts) if facts.is_symlink() && entry.is_dir() => {
                directory.skipped.push((entry, "a link to a directory"));
            }
            // Fifos, dangling links and vanished files are reported when they are read.
            _ => match skip_reason(layout, &entry) {
                Some(why) => directory.skipped.push((entry, why)),
                None => {
                    let named = layout.read_name(&entry);
                    let path = entry;
                    found.inputs.push(Input { path, named });
                    directory.inputs += 1;
                }
            },
        }
    }
    found.directories.insert(at, directory);
    for path in below {
        if depth == DEPTH {
            let why = format!("it is more than {DEPTH} directories deep");
            found.unread.push((path, why));
            continue;
        }
        walk(&path, layout == Layout::AflInstance, depth + 1, found)?;
    }
    Ok(())
}

/// Returns the reason why a file in a directory of this type is not an input for ddfuzz; `None` if
/// it is an input.
fn skip_reason(layout: Layout, file: &Path) -> Option<&'static str> {
    match is_of_search(file) {
        true => Some("a result or log of a search of ddfuzz"),
        false => layout.skip_reason(file.file_name().and_then(|name| name.to_str())),
    }
}

/// Endings of the names of results that `min`, `max` and `diff` write beside their input.
const RESULTS: [&str; 3] = [".min", ".max", ".diff"];
/// Ending that `min`, `max` and `diff` append to the name of a result to get the name of its log.
const SEARCH_LOG: &str = ".log.jsonl";

/// Returns true if the file was written by a search of ddfuzz, and so is not an input that another
/// fuzzer has found: it is the result of a search (such as `crash.min`) with its log beside it, or
/// the log of a search.
pub fn is_of_search(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let is_result = |name: &str| RESULTS.iter().any(|ending| name.ends_with(ending));
    match name.strip_suffix(SEARCH_LOG) {
        Some(result) => is_result(result) || path.with_file_name(result).exists(),
        None => is_result(name) && path.with_file_name(format!("{name}{SEARCH_LOG}")).exists(),
    }
}

fn listed(path: &Path) -> std::io::Result<Vec<OsString>> {
    let entries = std::fs::read_dir(path)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Type of a directory of a fuzzer (AFL++, libFuzzer, ddfuzz, …), which decides which of its files
/// are inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// An output directory of ddfuzz; its inputs are the files `original`.
    Ddfuzz,
    /// Directory of one AFL++ instance; inputs are only in its folders `crashes*` and `hangs*`.
    AflInstance,
    /// A folder `crashes` or `hangs` of AFL++; its inputs are the files named like crash files of
    /// AFL++.
    AflCrashes,
    /// A workspace of honggfuzz; its inputs are the files named like crash files of honggfuzz.
    Honggfuzz,
    /// An artifact directory of libFuzzer, or of one fuzz target of cargo-fuzz; its inputs are the
    /// files named like artifacts of libFuzzer.
    LibFuzzer,
    /// A cargo-fuzz project; inputs are only in its folder `artifacts`.
    CargoFuzz,
    /// Any directory that is not recognized as a directory of a fuzzer; all files in it and below
    /// are inputs.
    Plain,
}

impl Layout {
    /// Returns the type of a directory (of AFL++, of libFuzzer, …), recognized by the file names in
    /// it. `afl_instance` says that the directory above it belongs to an AFL++ instance.
    pub fn of<'a>(names: impl Iterator<Item = &'a str> + Clone, afl_instance: bool) -> Layout {
        let has = |name: &str| names.clone().any(|one| one == name);
        let by = |fuzzer| {
            let parsed = names.clone().filter_map(CrashName::parse);
            parsed
                .filter(|name| name.exact)
                .any(|name| name.fuzzer == fuzzer)
        };
        if has(CAMPAIGN) {
            Layout::Ddfuzz
        } else if has("fuzzer_stats")
            || has("fuzzer_setup")
            // An instance that is starting.
            || ["queue", "crashes", "hangs"].into_iter().all(has)
        {
            Layout::AflInstance
        } else if afl_instance || by(Fuzzer::Afl) {
            Layout::AflCrashes
        } else if has("HONGGFUZZ.REPORT.TXT") || by(Fuzzer::Honggfuzz) {
            Layout::Honggfuzz
        } else if by(Fuzzer::LibFuzzer) {
            Layout::LibFuzzer
        } else if has("Cargo.toml") && has("fuzz_targets") && has("artifacts") {
            Layout::CargoFuzz
        } else {
            Layout::Plain
        }
    }

    /// Returns the name of the directory's type for messages, such as `AFL++`.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Ddfuzz => "ddfuzz",
            Layout::AflInstance => "an AFL++ instance",
            Layout::AflCrashes => "AFL++",
            Layout::Honggfuzz => "honggfuzz",
            Layout::LibFuzzer => "libFuzzer",
            Layout::CargoFuzz => "a cargo-fuzz project",
            Layout::Plain => "files",
        }
    }

    /// Returns the reason why a file of this name in a directory of this type is not an input for
    /// ddfuzz; `None` if it is an input.
    pub fn skip_reason(self, name: Option<&str>) -> Option<&'static str> {
        let fuzzer = name.and_then(CrashName::parse).map(|name| name.fuzzer);
        match (self, fuzzer) {
            (Layout::Plain, _)
            | (Layout::AflCrashes, Some(Fuzzer::Afl))
            | (Layout::Honggfuzz, Some(Fuzzer::Honggfuzz))
            | (Layout::LibFuzzer, Some(Fuzzer::LibFuzzer)) => None,
            (Layout::AflCrashes, _) => Some("not named like a crash file of AFL++"),
            (Layout::Honggfuzz, _) => Some("not named like a crash file of honggfuzz"),
            (Layout::LibFuzzer, _) => Some("not named like a crash file of libFuzzer"),
            (Layout::Ddfuzz | Layout::AflInstance | Layout::CargoFuzz, _) => Some("not an input"),
        }
    }

    /// Returns the reason why a subdirectory of this name in a directory of this type is not
    /// searched for inputs; `None` if it is searched.
    pub fn directory_skip_reason(self, name: Option<&str>) -> Option<&'static str> {
        let begins = |begin| name.is_some_and(|name: &str| name.starts_with(begin));
        match self {
            Layout::Plain => None,
            // By default libFuzzer writes artifacts beside the corpus and other folders.
            Layout::LibFuzzer => Some("a directory among artifacts"),
            Layout::AflInstance if begins("crashes") || begins("hangs") => None,
            Layout::AflInstance => Some("neither crashes nor hangs"),
            Layout::CargoFuzz if name == Some("artifacts") => None,
            Layout::CargoFuzz => Some("not the artifacts"),
            Layout::AflCrashes => Some("a directory among crashes"),
            Layout::Honggfuzz => Some("a directory in a workspace"),
            Layout::Ddfuzz => Some("not an input"),
        }
    }

    /// Parses the name of a crash file as known fuzzers give it, and returns what it says; `None`
    /// if no known fuzzer gives exactly such names. AFL++ gives hangs and crashes without a signal
    /// the same names, so the name of the parent folder (`hangs*` or another) decides.
    pub fn read_name(self, path: &Path) -> Option<CrashName> {
        let name = path.file_name()?.to_str()?;
        let parsed = CrashName::parse(name).filter(|parsed| parsed.exact)?;
        let folder = path.parent()?.file_name().and_then(|name| name.to_str());
        let hang = folder.is_some_and(|folder| folder.starts_with("hangs"));
        match (parsed.fuzzer, parsed.reported_end) {
            (Fuzzer::Afl, ReportedEnd::Timeout) if !hang => Some(CrashName {
                reported_end: ReportedEnd::Crash,
                ..parsed
            }),
            _ => Some(parsed),
        }
    }
}

/// A fuzzer whose names of crash files ddfuzz can parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuzzer {
    /// The crash file was written by AFL, by AFL++, or by a fuzzer that names crash files in the
    /// same way (LibAFL's `AflNaming`).
    Afl,
    /// The crash file was written by honggfuzz, whose names of crash files start with a signal.
    Honggfuzz,
    /// The crash file was written by libFuzzer, or by a fuzz target of cargo-fuzz, which is built
    /// with it.
    LibFuzzer,
}

/// How the input failed in the fuzzer that found it, according to the file name: by a signal, a
/// crash, a leak, or too much time or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedEnd {
    /// The other fuzzer reports that the program was killed by this signal (a Linux number).
    Signal(i32),
    /// The other fuzzer reports a crash; the file name does not say by which signal.
    Crash,
    /// The other fuzzer reports that the run exceeded the fuzzer's time limit.
    Timeout,
    /// The other fuzzer reports that the run exceeded the fuzzer's memory limit.
    OutOfMemory,
    /// The other fuzzer reports that the program leaked memory.
    Leak,
    /// The other fuzzer reports that the run was slow, but not over the time limit (libFuzzer's
    /// `slow-unit-`).
    Slow,
}

/// Information parsed from the name of a fuzzer's crash file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashName {
    /// The fuzzer that wrote the crash file, according to the file's name.
    pub fuzzer: Fuzzer,
    /// How the input failed in the fuzzer that found it, according to the file name.
    pub reported_end: ReportedEnd,
    /// Whether the whole name of the crash file follows the fuzzer's scheme. `crash-1`, for
    /// example, only begins like a libFuzzer name, which ends with a hash.
    pub exact: bool,
}

/// Prefixes of libFuzzer's artifact names (after `-artifact_prefix`), each with the failure that it
/// means.
const LIBFUZZER: [(&str, ReportedEnd); 6] = [
    ("crash-", ReportedEnd::Crash),
    ("timeout-", ReportedEnd::Timeout),
    ("oom-", ReportedEnd::OutOfMemory),
    ("leak-", ReportedEnd::Leak),
    ("slow-unit-", ReportedEnd::Slow),
    ("minimized-from-", ReportedEnd::Crash),
];

/// Signal names in honggfuzz's file names, with their Linux numbers.
const SIGNALS: [(&str, i32); 11] = [
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGSEGV", 11),
    ("SIGXCPU", 24),
    ("SIGVTALRM", 26),
    ("SIGSYS", 31),
];

impl CrashName {
    /// Parses the name of a crash file of another fuzzer; `None` if no known fuzzer uses such
    /// names.
    pub fn parse(name: &str) -> Option<CrashName> {
        afl(name)
            .or_else(|| honggfuzz(name))
            .or_else(|| libfuzzer(name))
    }

    /// Describes for messages how the input failed in the fuzzer that found it: `SIGSEGV`, `a
    /// timeout`.
    pub fn describe(&self) -> String {
        match self.reported_end {
            ReportedEnd::Signal(number) => match SIGNALS.iter().find(|(_, known)| *known == number)
            {
                Some((name, _)) => (*name).to_owned(),
                None => format!("signal {number}"),
            },
            ReportedEnd::Crash => "a crash".to_owned(),
            ReportedEnd::Timeout => "a timeout".to_owned(),
            ReportedEnd::OutOfMemory => "out of memory".to_owned(),
            ReportedEnd::Leak => "a leak".to_owned(),
            ReportedEnd::Slow => "a slow unit".to_owned(),
        }
    }
}

/// Parses an AFL++ name such as `id:000000,sig:11,src:000002,time:31,execs:87,op:havoc,rep:4`, with
/// `_` for `:` where AFL++ was built without colons in names; `None` for other names. Hangs and
/// queue entries have no `sig`; only their directory tells them apart.
fn afl(name: &str) -> Option<CrashName> {
    let rest = name.strip_prefix("id")?;
    let separator = rest.chars().next().filter(|c| matches!(c, ':' | '_'))?;
    let mut fields = rest[1..].split(',');
    let id = fields.next()?;
    if id.len() < 6 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let signal = fields.find_map(|field| {
        let (key, value) = field.split_once(separator)?;
        (key == "sig").then(|| value.parse::<i32>().ok()).flatten()
    });
    Some(CrashName {
        fuzzer: Fuzzer::Afl,
        reported_end: match signal {
            Some(number @ 1..) => ReportedEnd::Signal(number),
            _ => ReportedEnd::Timeout,
        },
        exact: true,
    })
}

/// Parses a honggfuzz name such as
/// `SIGSEGV.PC.555555555189.STACK.18e5a9d2.CODE.1.ADDR.0x0.INSTR.mov____%eax,(%rdx).fuzz`; `None`
/// for other names. SIGVTALRM, SIGXCPU and SIGKILL mean a timeout.
fn honggfuzz(name: &str) -> Option<CrashName> {
    let (signal, rest) = name.split_once(".PC.")?;
    if !rest.contains(".STACK.") || !rest.contains(".CODE.") {
        return None;
    }
    let known = SIGNALS.iter().find(|(known, _)| *known == signal);
    Some(CrashName {
        fuzzer: Fuzzer::Honggfuzz,
        reported_end: match known {
            Some((_, 9 | 24 | 26)) => ReportedEnd::Timeout,
            Some((_, number)) => ReportedEnd::Signal(*number),
            None => ReportedEnd::Crash,
        },
        exact: known.is_some() || signal.starts_with("SIG"),
    })
    .filter(|named| named.exact)
}

/// Parses a libFuzzer name: a prefix such as `crash-`, then a SHA-1 in 40 hex digits. `None`
/// without such a prefix; if anything but a SHA-1 follows it, the result is marked as not
/// [`exact`](CrashName::exact).
fn libfuzzer(name: &str) -> Option<CrashName> {
    let (begin, reported_end) = LIBFUZZER
        .iter()
        .find(|(begin, _)| name.starts_with(begin))?;
    let hash = &name[begin.len()..];
    Some(CrashName {
        fuzzer: Fuzzer::LibFuzzer,
        reported_end: *reported_end,
        exact: hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
    })
}
