//! Whose corpus a directory is, by the names in it, and so which of its entries are inputs.
//!
//! [`store::foreign`](ddfuzz_store::foreign) finds what other fuzzers call crashes; here it is
//! what they call their corpus. What their names say is read there.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use ddfuzz_model::files::atomic;
use ddfuzz_store::foreign::{CrashName, Fuzzer};

/// What a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// An output directory of ddfuzz: only `corpus` in it.
    Ddfuzz,
    /// The directory of one AFL++ instance: `queue`, `crashes*` and `hangs*` in it.
    AflInstance,
    /// The queue, crashes or hangs of AFL++: what it names.
    AflEntries,
    /// A workspace of honggfuzz: all but its report.
    Honggfuzz,
    /// A cargo-fuzz project: only `corpus` in it.
    CargoFuzz,
    /// A package with a cargo-fuzz project: only `fuzz` in it.
    Package,
    /// Anything else: every file, and every directory below that is not hidden.
    Plain,
}

/// The names in a directory by which its layout is recognised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    campaign: bool,
    afl_facts: bool,
    afl_folders: u8,
    afl_state: bool,
    afl_names: bool,
    honggfuzz: bool,
    manifest: bool,
    fuzz_targets: bool,
    fuzz: bool,
}

impl Marks {
    /// Those of a directory.
    pub(super) fn of(directory: &Path) -> io::Result<Marks> {
        let mut marks = Marks::default();
        for entry in std::fs::read_dir(directory)? {
            marks.see(&entry?.file_name());
        }
        Ok(marks)
    }

    /// The directory has an entry of this name.
    pub(super) fn see(&mut self, name: &OsStr) {
        let Some(name) = name.to_str() else {
            return;
        };
        match name {
            "ddfuzz.json" => self.campaign = true,
            "fuzzer_stats" | "fuzzer_setup" => self.afl_facts = true,
            "queue" => self.afl_folders |= 1,
            "crashes" => self.afl_folders |= 2,
            "hangs" => self.afl_folders |= 4,
            ".state" | "README.txt" => self.afl_state = true,
            "HONGGFUZZ.REPORT.TXT" => self.honggfuzz = true,
            "Cargo.toml" => self.manifest = true,
            "fuzz_targets" => self.fuzz_targets = true,
            "fuzz" => self.fuzz = true,
            name if name.starts_with("id") && !self.afl_names => {
                self.afl_names = is_afl(name);
            }
            _ => {}
        }
    }

    /// The layout. `in_instance` says whether the directory is part of an AFL++ instance.
    pub(super) fn layout(self, in_instance: bool) -> Layout {
        if self.campaign {
            Layout::Ddfuzz
        } else if self.afl_facts || self.afl_folders == 7 {
            Layout::AflInstance
        } else if in_instance || self.afl_names && self.afl_state {
            Layout::AflEntries
        } else if self.honggfuzz {
            Layout::Honggfuzz
        } else if self.manifest && self.fuzz_targets {
            Layout::CargoFuzz
        } else if self.manifest && self.fuzz {
            Layout::Package
        } else {
            Layout::Plain
        }
    }
}

impl Layout {
    /// The layout of a directory, without regard to its parent.
    ///
    /// # Errors
    /// When it cannot be listed.
    pub fn of(directory: &Path) -> io::Result<Layout> {
        Ok(Marks::of(directory)?.layout(is_in_instance(directory)))
    }

    /// The layout in words.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Ddfuzz => "ddfuzz",
            Layout::AflInstance => "an AFL++ instance",
            Layout::AflEntries => "AFL++",
            Layout::Honggfuzz => "honggfuzz",
            Layout::CargoFuzz => "a cargo-fuzz project",
            Layout::Package => "a package with a cargo-fuzz project",
            Layout::Plain => "files",
        }
    }

    /// Why a file of this name is no input here; `None` where it is one.
    pub(super) fn passes_over(self, name: &OsStr) -> Option<&'static str> {
        if atomic::is_temporary(name) {
            return Some("a file that ddfuzz was just writing");
        }
        match self {
            Layout::Plain => None,
            Layout::AflEntries if name.to_str().is_some_and(is_afl) => None,
            Layout::AflEntries => Some("not named like an input of AFL++"),
            Layout::Honggfuzz if name == "HONGGFUZZ.REPORT.TXT" => Some("a report of honggfuzz"),
            Layout::Honggfuzz => None,
            Layout::Ddfuzz | Layout::AflInstance | Layout::CargoFuzz | Layout::Package => {
                Some("not an input")
            }
        }
    }

    /// Why a directory of this name is not looked into; `None` where it is.
    pub(super) fn passes_over_directory(self, name: &OsStr) -> Option<&'static str> {
        let bytes = name.as_encoded_bytes();
        let fits = match self {
            Layout::Ddfuzz | Layout::CargoFuzz => name == "corpus",
            Layout::Package => name == "fuzz",
            Layout::AflInstance => {
                name == "queue" || bytes.starts_with(b"crashes") || bytes.starts_with(b"hangs")
            }
            Layout::AflEntries => return Some("a directory among AFL++'s entries"),
            Layout::Honggfuzz | Layout::Plain if bytes.starts_with(b".") => {
                return Some("a hidden directory");
            }
            Layout::Honggfuzz | Layout::Plain => true,
        };
        (!fits).then_some("not a corpus")
    }
}

/// Whether AFL++ gives such names.
fn is_afl(name: &str) -> bool {
    CrashName::parse(name).is_some_and(|named| named.fuzzer == Fuzzer::Afl)
}

/// Whether the directory is the queue, or the crashes or hangs, of an AFL++ instance.
pub(super) fn is_in_instance(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.as_encoded_bytes());
    let fits = name.is_some_and(|name| {
        name == b"queue" || name.starts_with(b"crashes") || name.starts_with(b"hangs")
    });
    let beside = |name: &str| path.with_file_name(name).exists();
    fits && (beside("fuzzer_stats") || beside("fuzzer_setup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(names: &[&str], in_instance: bool) -> Layout {
        let mut marks = Marks::default();
        names.iter().for_each(|name| marks.see(name.as_ref()));
        marks.layout(in_instance)
    }

    #[test]
    fn directories_are_known_by_the_names_in_them() {
        for (names, expected) in [
            (&["ddfuzz.json", "corpus", "crashes"][..], Layout::Ddfuzz),
            (&["cmdline", "fuzzer_stats", "queue"], Layout::AflInstance),
            (&["queue", "crashes", "hangs"], Layout::AflInstance),
            (
                &[".state", "id:000000,time:0,execs:0,orig:a"],
                Layout::AflEntries,
            ),
            (
                &["HONGGFUZZ.REPORT.TXT", "0123.00000004.honggfuzz.cov"],
                Layout::Honggfuzz,
            ),
            (&["Cargo.toml", "fuzz_targets", "corpus"], Layout::CargoFuzz),
            (&["Cargo.toml", "src", "fuzz"], Layout::Package),
            (&["Cargo.toml", "README.txt", "queue"], Layout::Plain),
            (&[], Layout::Plain),
        ] {
            assert_eq!(layout(names, false), expected, "{names:?}");
        }
        assert_eq!(layout(&["anything"], true), Layout::AflEntries);
    }

    #[test]
    fn what_a_fuzzer_keeps_beside_its_corpus_is_no_input() {
        let entries = Layout::AflEntries;
        assert_eq!(entries.passes_over("id:000001,src:000000".as_ref()), None);
        assert_eq!(entries.passes_over("id_000001,src_000000".as_ref()), None);
        assert!(entries.passes_over("README.txt".as_ref()).is_some());
        assert!(entries.passes_over_directory(".state".as_ref()).is_some());
        let instance = Layout::AflInstance;
        for inside in ["queue", "crashes", "hangs", "crashes.2026-01-01-00:00:00"] {
            assert_eq!(instance.passes_over_directory(inside.as_ref()), None);
        }
        assert!(instance.passes_over_directory(".synced".as_ref()).is_some());
        let temporary = ".ddfuzz-tmp-abc".as_ref();
        assert!(Layout::Plain.passes_over(temporary).is_some());
        assert_eq!(Layout::Plain.passes_over(".hidden".as_ref()), None);
    }
}
