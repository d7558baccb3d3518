//! Composes the environment of a target (docs/src/calls.md): the inherited variables without
//! ddfuzz's own, a UTF-8 locale if none is set, a directory for temporary files, the user's
//! variables, and sanitizer options by which reports become crashes.

use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Prefixes of environment variables that targets do not get: they would show ddfuzz to the target,
/// or name shared memory of another fuzzer.
const OWN_PREFIXES: [&[u8]; 2] = [b"DDFUZZ_", b"__AFL_"];
/// Environment variables that select the locale. If all are unset or empty, targets get
/// `LANG=C.UTF-8`.
pub const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Sanitizer options by which a sanitizer's report becomes a crash (docs/src/keys.md). A sanitizer
/// ignores options that it does not know.
const SANITIZER_OPTIONS: &str = "abort_on_error=1:halt_on_error=1:symbolize=0:\
print_stacktrace=1:verify_asan_link_order=0";
/// The sanitizer option for reports without colors. By default a sanitizer asks for each byte of
/// shadow memory that it prints whether its report goes to a terminal: two system calls each.
const PLAIN: &str = ":color=never";
/// Options of AddressSanitizer for short reports: without the legend, and with only those parts of
/// stack frames that ddfuzz parses (address, module and offset). For each piece of a frame, such as
/// a character of this format, the sanitizer makes a call that clears a page of memory: by default
/// a frame has 35 pieces, among them each digit of a build id; with these options it has four.
const BRIEF: &[u8] = b":print_legend=0:stack_trace_format=\"%p %m%o\"";
/// The sanitizer option by which a sanitizer removes the program's own handler of SIGABRT before it
/// aborts. With the option, each abort of the program, too, makes the sanitizer write a report.
const HANDLE_ABORT: &str = ":handle_abort=1";

/// Returns sanitizer options with which a program that runs outside ddfuzz fails as it did under
/// ddfuzz, and prints reports with symbols. `leaks`: whether memory leaks are searched for at exit;
/// `memory`: limit on resident memory in MiB, `None` for no limit.
pub fn sanitizer_options(leaks: bool, memory: Option<u64>) -> String {
    let leaks = u8::from(leaks);
    let memory = memory.map(|limit| format!(":hard_rss_limit_mb={}", limit.max(1)));
    let memory = memory.unwrap_or_default();
    format!("{SANITIZER_OPTIONS}{HANDLE_ABORT}:detect_leaks={leaks}{memory}:symbolize=1")
}

const UNHANDLED: &[u8] = b":handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";

type Variables = Vec<(OsString, OsString)>;

/// Returns the environment variables that a target gets if the user sets `extra`: first those
/// inherited from ddfuzz, then `extra`. An inherited `TMPDIR` is left out, because ddfuzz sets
/// another one for runs.
pub fn inherited(extra: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut all = own();
    all.retain(|(name, _)| name != "TMPDIR");
    for (name, value) in extra {
        set(&mut all, name, value);
    }
    all
}

fn own() -> Variables {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut all: Variables = std::env::vars_os().collect();
    let is_own = |name: &OsStr| (OWN_PREFIXES.iter()).any(|own| name.as_bytes().starts_with(own));
    all.retain(|(name, _)| !is_own(name));
    if !LOCALE.iter().any(is_set) {
        all.retain(|(name, _)| name != "LANG");
        all.push(("LANG".into(), "C.UTF-8".into()));
    }
    all
}

fn set(all: &mut Variables, name: &OsStr, value: &OsStr) {
    all.retain(|(known, _)| known != name);
    all.push((name.to_owned(), value.to_owned()));
}

/// Settings from which the sanitizer options in a target's environment are composed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SanitizerSettings {
    /// Path of the files for sanitizer reports, without the process id; `None` for stderr.
    pub(crate) log_path: Option<PathBuf>,
    /// Whether the sanitizer looks for memory leaks when the program exits.
    pub(crate) leaks: bool,
    /// Whether the sanitizer handles signals such as SIGSEGV. If false, the program dies of the
    /// signal at once. A sanitizer's handler may itself fail after a wild call, and then exits.
    pub(crate) signals: bool,
    /// Whether the sanitizer handles SIGABRT in place of the program. If false, a program whose own
    /// handler exits would turn the abort after a report into a plain exit.
    pub(crate) aborts: bool,
    /// Whether the sanitizer prints its options when it starts. The print shows that the program
    /// has a sanitizer.
    pub(crate) introduces: bool,
    /// Limit on one allocation in MiB; a larger allocation ends the program, as under libFuzzer.
    /// `None`: no limit.
    pub(crate) allocation: Option<u64>,
}

/// Name of the sanitizer option that limits the size of one allocation, in MiB.
pub const LARGEST_ALLOCATION: &str = "max_allocation_size_mb";

impl SanitizerSettings {
    fn options(&self) -> Vec<u8> {
        let leaks = u8::from(self.leaks);
        let mut options =
            format!("{SANITIZER_OPTIONS}{PLAIN}:verbosity=0:detect_leaks={leaks}").into_bytes();
        if !self.signals {
            options.extend(UNHANDLED);
        }
        if self.aborts {
            options.extend(HANDLE_ABORT.as_bytes());
        }
        if let Some(limit) = self.allocation {
            options.extend(format!(":{LARGEST_ALLOCATION}={limit}").into_bytes());
        }
        if let Some(path) = &self.log_path {
            options.extend(b":log_path=");
            options.extend(path.as_os_str().as_bytes());
        }
        if self.introduces {
            options.extend(b":help=1");
        }
        options
    }
}

/// Returns the user's environment variables `extra`, with the sanitizer option `symbolize=0` added,
/// for a process whose output nobody reads: looking up the symbols of a report takes longer than
/// the crash itself. The options of a sanitizer stay unchanged if they name the user's
/// suppressions, because suppressions need symbols.
pub fn without_symbols(extra: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut all = extra.to_vec();
    for name in Sanitizer::ALL.map(Sanitizer::variable) {
        let own = extra.iter().rev().find(|(known, _)| known == name);
        let value = own.map(|(_, value)| value.clone());
        let value = value.or_else(|| std::env::var_os(name)).unwrap_or_default();
        if !value.to_string_lossy().contains("suppressions=") {
            let value = with_options(value, b"symbolize=0");
            set(&mut all, name.as_ref(), &value);
        }
    }
    all
}

/// Returns the environment of a target as `NAME=VALUE` strings. It has the variables that ddfuzz
/// passes on from its own environment, unless `only` is set; `TMPDIR`, and `HOME` if `home` is set,
/// with the path `scratch`; and the user's variables `extra`. With `sanitizer_settings`, the
/// options that follow from them are added to the variables of all sanitizers; without, these
/// variables stay as they are.
pub(crate) fn compose(
    extra: &[(OsString, OsString)],
    only: bool,
    scratch: &Path,
    home: bool,
    sanitizer_settings: Option<&SanitizerSettings>,
) -> Vec<CString> {
    let mut all = if only { Variables::new() } else { own() };
    // Crashing programs leave temporary files behind, one for each of a million runs. The target's
    // user may also lack access to the inherited directory.
    let named = |name: &str| (OsString::from(name), scratch.as_os_str().to_owned());
    let here = [named("TMPDIR"), named("HOME")];
    for (name, value) in here[..1 + usize::from(home)].iter().chain(extra) {
        set(&mut all, name, value);
    }
    if let Some(sanitizer_settings) = sanitizer_settings {
        add_sanitizer_options(&mut all, &sanitizer_settings.options());
    }
    all.into_iter()
        .filter_map(|(name, value)| assignment(&name, value))
        .collect()
}

/// Returns the value of PATH in a target's environment. `extra`: the user's variables; `only`: the
/// target inherits none. `None` if neither sets PATH.
pub(crate) fn path(extra: &[(OsString, OsString)], only: bool) -> Option<OsString> {
    let set = extra.iter().rev().find(|(name, _)| name == "PATH");
    match set {
        Some((_, value)) => Some(value.clone()),
        None if only => None,
        None => std::env::var_os("PATH"),
    }
}

/// Appends the sanitizer options `options` to the value that each sanitizer's variable (such as
/// `ASAN_OPTIONS`) has in the environment `all`; of repeated options, the last one applies.
fn add_sanitizer_options(all: &mut Variables, options: &[u8]) {
    for sanitizer in Sanitizer::ALL {
        let name = sanitizer.variable();
        let at = all.iter().position(|(known, _)| known == name);
        let own = at.map(|at| all.remove(at).1).unwrap_or_default();
        let mut value = with_options(own, options).into_vec();
        if sanitizer == Sanitizer::Asan {
            value.extend(BRIEF);
        }
        all.push((name.into(), OsString::from_vec(value)));
    }
}

/// Returns `value`, the options that a sanitizer's environment variable has, followed by `options`,
/// with a colon between them unless `value` is empty.
fn with_options(value: OsString, options: &[u8]) -> OsString {
    let mut value = value.into_vec();
    if !value.is_empty() {
        value.push(b':');
    }
    value.extend(options);
    OsString::from_vec(value)
}

fn assignment(name: &OsStr, value: OsString) -> Option<CString> {
    let mut text = name.as_bytes().to_vec();
    text.push(b'=');
    text.extend(value.into_vec());
    CString::new(text).ok()
}

/// A sanitizer of clang or gcc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sanitizer {
    /// AddressSanitizer.
    Asan,
    /// HWAddressSanitizer.
    Hwasan,
    /// LeakSanitizer.
    Lsan,
    /// MemorySanitizer.
    Msan,
    /// ThreadSanitizer.
    Tsan,
    /// UndefinedBehaviorSanitizer.
    Ubsan,
}

impl Sanitizer {
    /// The list of all sanitizers that ddfuzz knows.
    pub const ALL: [Sanitizer; 6] = [
        Sanitizer::Asan,
        Sanitizer::Hwasan,
        Sanitizer::Lsan,
        Sanitizer::Msan,
        Sanitizer::Tsan,
        Sanitizer::Ubsan,
    ];

    /// Returns short name, full name, compiler flag, environment variable and symbol prefix of the
    /// sanitizer.
    fn names(self) -> [&'static str; 5] {
        match self {
            Sanitizer::Asan => [
                "asan",
                "AddressSanitizer",
                "address",
                "ASAN_OPTIONS",
                "__asan_init",
            ],
            Sanitizer::Hwasan => [
                "hwasan",
                "HWAddressSanitizer",
                "hwaddress",
                "HWASAN_OPTIONS",
                "__hwasan_init",
            ],
            Sanitizer::Lsan => [
                "lsan",
                "LeakSanitizer",
                "leak",
                "LSAN_OPTIONS",
                "__lsan_init",
            ],
            Sanitizer::Msan => [
                "msan",
                "MemorySanitizer",
                "memory",
                "MSAN_OPTIONS",
                "__msan_init",
            ],
            Sanitizer::Tsan => [
                "tsan",
                "ThreadSanitizer",
                "thread",
                "TSAN_OPTIONS",
                "__tsan_init",
            ],
            Sanitizer::Ubsan => {
                let title = "UndefinedBehaviorSanitizer";
                [
                    "ubsan",
                    title,
                    "undefined",
                    "UBSAN_OPTIONS",
                    "__ubsan_handle_",
                ]
            }
        }
    }

    /// Returns the sanitizer's short name, as in crash classes: `asan`.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the sanitizer's full name, as in reports: `AddressSanitizer`.
    pub fn title(self) -> &'static str {
        self.names()[1]
    }

    /// Returns the sanitizer's name in compiler flags: `address` in `-fsanitize=address`.
    pub fn flag(self) -> &'static str {
        self.names()[2]
    }

    /// Returns the environment variable from which the sanitizer reads its options: `ASAN_OPTIONS`.
    pub fn variable(self) -> &'static str {
        self.names()[3]
    }

    /// Returns the prefix of the symbols by which a program with this sanitizer is recognised. The
    /// prefix of UBSan proves nothing, because the runtimes of other sanitizers and libFuzzer have
    /// such symbols, too.
    pub fn symbol(self) -> &'static str {
        self.names()[4]
    }

    /// Whether the sanitizer keeps shadow memory for all of the address space: programs then need
    /// terabytes of it, and have another layout of stack and heap.
    pub fn shadows(self) -> bool {
        !matches!(self, Sanitizer::Lsan | Sanitizer::Ubsan)
    }

    /// Returns the sanitizer whose reports have the crash class `class` (`asan:KIND`); `None` for
    /// other classes.
    pub fn of_class(class: &str) -> Option<Sanitizer> {
        let (tool, _) = class.split_once(':')?;
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| sanitizer.name() == tool)
    }

    /// Returns the sanitizer that a symbol belongs to; `None` for other symbols.
    pub(crate) fn of_symbol(name: &str) -> Option<Sanitizer> {
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| name.starts_with(sanitizer.symbol()))
    }

    /// Returns the sanitizer that a compiler's `-fsanitize=` calls `flag`; `None` for an unknown
    /// flag.
    pub fn of_flag(flag: &str) -> Option<Sanitizer> {
        let mut all = Sanitizer::ALL.into_iter();
        all.find(|sanitizer| sanitizer.flag() == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizer_options_stand_behind_the_users_own() {
        let extra = [("ASAN_OPTIONS".into(), "abort_on_error=0".into())];
        let find = |sanitizer_settings: Option<SanitizerSettings>| {
            compose(
                &extra,
                false,
                Path::new("/scratch"),
                false,
                sanitizer_settings.as_ref(),
            )
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .find(|word| word.starts_with("ASAN_OPTIONS="))
            .unwrap()
        };
        assert_eq!(find(None), "ASAN_OPTIONS=abort_on_error=0");
        let plain = find(Some(SanitizerSettings::default()));
        assert!(plain.starts_with("ASAN_OPTIONS=abort_on_error=0:abort_on_error=1:"));
        // A runtime that logs its start writes a file before any report.
        assert!(plain.contains(":verbosity=0:"), "{plain}");
        assert!(plain.contains(":detect_leaks=0:handle_segv=0:"));
        let told = find(Some(SanitizerSettings {
            log_path: Some("/reports/report".into()),
            leaks: true,
            signals: true,
            introduces: false,
            aborts: false,
            allocation: Some(2048),
        }));
        let end = ":detect_leaks=1:max_allocation_size_mb=2048:log_path=/reports/report";
        assert!(told.contains(end), "{told}");
        let brief = std::str::from_utf8(BRIEF).unwrap();
        assert!(told.ends_with(brief), "{told}");
    }

    #[test]
    fn symbols_are_left_out_unless_suppressions_need_them() {
        let value = |own: &str| {
            let all = without_symbols(&[("LSAN_OPTIONS".into(), own.into())]);
            let mut values = all.into_iter().filter(|(name, _)| name == "LSAN_OPTIONS");
            let found = values.next().unwrap().1.into_string().unwrap();
            assert_eq!(values.next(), None);
            found
        };
        assert_eq!(value("symbolize=1"), "symbolize=1:symbolize=0");
        assert_eq!(value("suppressions=file"), "suppressions=file");
    }

    #[test]
    fn the_home_of_a_sandbox_is_its_scratch_directory_unless_it_is_set() {
        let home = |extra: &[(OsString, OsString)]| {
            let all = compose(extra, true, Path::new("/scratch"), true, None);
            all.into_iter()
                .map(|word| word.into_string().unwrap())
                .find(|word| word.starts_with("HOME="))
        };
        assert_eq!(home(&[]).as_deref(), Some("HOME=/scratch"));
        let set = [("HOME".into(), "/elsewhere".into())];
        assert_eq!(home(&set).as_deref(), Some("HOME=/elsewhere"));
    }
}
