//! Directories of other fuzzers: which ones they are, and what the names of their crash files say.
//!
//! [`CrashName::parse`] is a pure function of a file's name; [`find`] lists the inputs below a
//! directory, whoever wrote it. Both only read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::layout::CAMPAIGN;
use crate::{Reader, StoreError};

/// Directories below each other that are looked into: whoever made more of them made a trap.
const DEPTH: usize = 64;

/// One file to be run, or something that should have been one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it stands.
    pub path: PathBuf,
    /// What its name says, where a fuzzer gave it.
    pub named: Option<CrashName>,
}

/// What was recognised about one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which.
    pub path: PathBuf,
    /// What it is.
    pub layout: Layout,
    /// Inputs that stand in it.
    pub inputs: u64,
    /// What was passed over in it, and why.
    pub passed_over: Vec<(PathBuf, &'static str)>,
}

/// All inputs below some paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The inputs, in the order of the paths, and in each in the order of their names.
    pub inputs: Vec<Input>,
    /// The directories that were looked into.
    pub directories: Vec<Directory>,
    /// Directories that could not be looked into, and why.
    pub unread: Vec<(PathBuf, String)>,
}

impl Inputs {
    /// Takes out what stands in the output directory `out`, which may be below a path that was
    /// looked into, and gives the directories that were taken out.
    pub fn pass_over(&mut self, out: &Path) -> Vec<PathBuf> {
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

/// Adds the inputs below `path` to `found`: the file itself, or those in a directory, as its
/// [`Layout`] says. Links to files are followed; links to directories only where they are named,
/// for below they might lead round in a circle. Nothing is opened but directories.
///
/// # Errors
/// When an output directory of ddfuzz cannot be read as one.
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
        passed_over: Vec::new(),
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
            Ok(facts) if facts.is_dir() => match layout.passes_over_directory(name) {
                Some(why) => directory.passed_over.push((entry, why)),
                None => below.push(entry),
            },
            Ok(facts) if facts.is_symlink() && entry.is_dir() => {
                directory.passed_over.push((entry, "a link to a directory"));
            }
            // A fifo, a dangling link or what vanished is told where it should have been read.
            _ => match layout.passes_over(name) {
                Some(why) => directory.passed_over.push((entry, why)),
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

fn listed(path: &Path) -> std::io::Result<Vec<OsString>> {
    let entries = std::fs::read_dir(path)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// What a directory is, and so which of its files are inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// An output directory of ddfuzz: the inputs as found.
    Ddfuzz,
    /// The directory of one AFL++ instance: only `crashes*` and `hangs*` in it.
    AflInstance,
    /// Crashes or hangs of AFL++.
    AflCrashes,
    /// A workspace of honggfuzz.
    Honggfuzz,
    /// Artifacts of libFuzzer, or of one target of cargo-fuzz.
    LibFuzzer,
    /// A cargo-fuzz project: only `artifacts` in it.
    CargoFuzz,
    /// Anything else: every file, and every directory below.
    Plain,
}

impl Layout {
    /// Recognises a directory by the names in it; those that are not UTF-8 are left out.
    /// `afl_instance` says whether it stands in one of AFL++'s.
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
            // One that is just being set up.
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

    /// For people.
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

    /// What an entry of this name would be here; `None` where it is an input, else why not.
    pub fn passes_over(self, name: Option<&str>) -> Option<&'static str> {
        let of = |fuzzer| {
            let parsed = name.and_then(CrashName::parse);
            parsed.is_some_and(|parsed| parsed.fuzzer == fuzzer)
        };
        match self {
            Layout::Plain => None,
            Layout::AflCrashes if of(Fuzzer::Afl) => None,
            Layout::AflCrashes => Some("not named like a crash file of AFL++"),
            Layout::Honggfuzz if of(Fuzzer::Honggfuzz) => None,
            Layout::Honggfuzz => Some("not named like a crash file of honggfuzz"),
            Layout::LibFuzzer if of(Fuzzer::LibFuzzer) => None,
            Layout::LibFuzzer => Some("not named like a crash file of libFuzzer"),
            Layout::Ddfuzz | Layout::AflInstance | Layout::CargoFuzz => Some("not an input"),
        }
    }

    /// Whether a directory of this name in it holds inputs, too; else why not.
    pub fn passes_over_directory(self, name: Option<&str>) -> Option<&'static str> {
        let begins = |begin| name.is_some_and(|name: &str| name.starts_with(begin));
        match self {
            Layout::Plain => None,
            // By default artifacts are written beside whatever stands there, the corpus too.
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

    /// What the name of an input here says. Without a signal, only the directory tells AFL++'s
    /// hangs from crashes that it could not name.
    pub fn read_name(self, path: &Path) -> Option<CrashName> {
        let name = path.file_name()?.to_str()?;
        let parsed = CrashName::parse(name).filter(|parsed| parsed.exact)?;
        let folder = path.parent()?.file_name().and_then(|name| name.to_str());
        let hang = folder.is_some_and(|folder| folder.starts_with("hangs"));
        match (parsed.fuzzer, parsed.promise) {
            (Fuzzer::Afl, Promise::Timeout) if !hang => Some(CrashName {
                promise: Promise::Crash,
                ..parsed
            }),
            _ => Some(parsed),
        }
    }
}

/// The fuzzers whose names are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuzzer {
    /// AFL, AFL++ and what names its files alike (LibAFL's `AflNaming`).
    Afl,
    /// honggfuzz.
    Honggfuzz,
    /// libFuzzer, and so cargo-fuzz.
    LibFuzzer,
}

/// How the input ended for the fuzzer that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It died of this signal (a Linux number).
    Signal(i32),
    /// It crashed; nothing says how.
    Crash,
    /// It ran out of time.
    Timeout,
    /// It ran out of memory.
    OutOfMemory,
    /// It leaked memory.
    Leak,
    /// It was slow, and nothing else.
    Slow,
}

/// What the name of a crash file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashName {
    /// Who named it.
    pub fuzzer: Fuzzer,
    /// How it ended there.
    pub promise: Promise,
    /// Whether the whole name is as the fuzzer makes it. `crash-1` begins like a name of
    /// libFuzzer, whose names end with a hash.
    pub exact: bool,
}

/// The beginnings of libFuzzer's names (`-artifact_prefix`, then one of these).
const LIBFUZZER: [(&str, Promise); 6] = [
    ("crash-", Promise::Crash),
    ("timeout-", Promise::Timeout),
    ("oom-", Promise::OutOfMemory),
    ("leak-", Promise::Leak),
    ("slow-unit-", Promise::Slow),
    ("minimized-from-", Promise::Crash),
];

/// The signals by which honggfuzz names its files.
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
    /// Reads a name; `None` where none of the fuzzers would have given it. Bytes that are not
    /// UTF-8 occur in none of their names.
    pub fn parse(name: &str) -> Option<CrashName> {
        afl(name)
            .or_else(|| honggfuzz(name))
            .or_else(|| libfuzzer(name))
    }

    /// What it says, for people: `sig:11`, `a timeout`.
    pub fn said(&self) -> String {
        match self.promise {
            Promise::Signal(number) => match SIGNALS.iter().find(|(_, known)| *known == number) {
                Some((name, _)) => (*name).to_owned(),
                None => format!("signal {number}"),
            },
            Promise::Crash => "a crash".to_owned(),
            Promise::Timeout => "a timeout".to_owned(),
            Promise::OutOfMemory => "out of memory".to_owned(),
            Promise::Leak => "a leak".to_owned(),
            Promise::Slow => "a slow unit".to_owned(),
        }
    }
}

/// `id:000000,sig:11,src:000002,time:31,execs:87,op:havoc,rep:4`; with `_` for `:` where AFL++ was
/// built for file systems that have no colons. A hang has no `sig`, and neither has an entry of
/// the queue, which only its directory tells apart.
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
        promise: match signal {
            Some(number @ 1..) => Promise::Signal(number),
            _ => Promise::Timeout,
        },
        exact: true,
    })
}

/// `SIGSEGV.PC.555555555189.STACK.18e5a9d2.CODE.1.ADDR.0x0.INSTR.mov____%eax,(%rdx).fuzz`, with a
/// time and a number before the ending where all crashes are saved. A run out of time is a
/// SIGVTALRM, SIGXCPU or SIGKILL.
fn honggfuzz(name: &str) -> Option<CrashName> {
    let (signal, rest) = name.split_once(".PC.")?;
    if !rest.contains(".STACK.") || !rest.contains(".CODE.") {
        return None;
    }
    let known = SIGNALS.iter().find(|(known, _)| *known == signal);
    Some(CrashName {
        fuzzer: Fuzzer::Honggfuzz,
        promise: match known {
            Some((_, 9 | 24 | 26)) => Promise::Timeout,
            Some((_, number)) => Promise::Signal(*number),
            None => Promise::Crash,
        },
        exact: known.is_some() || signal.starts_with("SIG"),
    })
    .filter(|named| named.exact)
}

/// `crash-` and 40 hex digits of SHA-1.
fn libfuzzer(name: &str) -> Option<CrashName> {
    let (begin, promise) = LIBFUZZER
        .iter()
        .find(|(begin, _)| name.starts_with(begin))?;
    let hash = &name[begin.len()..];
    Some(CrashName {
        fuzzer: Fuzzer::LibFuzzer,
        promise: *promise,
        exact: hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
    })
}
