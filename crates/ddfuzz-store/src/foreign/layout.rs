//! Whose directory it is, by the names in it.

use std::path::Path;

use super::name::{CrashName, Fuzzer, Promise};
use crate::layout::CAMPAIGN;

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
