//! Whether a run can show a crash at all, if another build of the program has shown it, or a run
//! within other limits. If it cannot, a run that passes does not mean that the bug is fixed
//! (`cannot tell`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::module::{build_id, has_plain_lines};
use crate::normalise::minimal_check;
use crate::runtime_modules::is_abort;
use crate::site::is_in_each_harness;
use crate::trap::untrapped;
use crate::{Crash, Frame};
use ddfuzz_exec::facts::{ASSERTIONS, DEBUG_ASSERTIONS};
use ddfuzz_exec::{Limits, Sanitizer, holds_bytes, read_program};

/// The properties of a run (sanitizers, limits, crash exit status) that decide which crashes it can
/// show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Sanitizers and debug assertions that the program was compiled with
    /// ([`TargetFacts::instrumentation`]); `None` where unknown.
    ///
    /// [`TargetFacts::instrumentation`]: ddfuzz_exec::facts::TargetFacts::instrumentation
    pub instrumentation: Option<Vec<String>>,
    /// Time and memory limits under which the target is run.
    pub limits: Limits,
    /// Exit status of the target that counts as a crash in the run; `None` if no exit status does.
    pub crash_exit: Option<i32>,
    /// Path of the program that is run; `None` where unknown.
    pub program: Option<PathBuf>,
}

/// The reason why a run that passes does not show that a known crash is fixed, with advice to the
/// user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unobservable {
    /// The reason why a passing run does not show that the crash is fixed: a sentence for the user
    /// in which "it" stands for the crash.
    pub why: String,
    /// Advice to the user: how to make a run that can show the crash.
    pub hint: String,
}

impl Unobservable {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> Unobservable {
        Unobservable {
            why: why.into(),
            hint: hint.into(),
        }
    }
}

/// Returns the reason why passing runs of the program at `path` do not show that `crashes` are
/// fixed, if that program seems to be a different one than the program that crashed: it contains
/// none of the names of the user functions on the stacks of the crashes (`main` and the entries of
/// fuzzing harnesses do not count). If no such name is known, and the program has debug
/// information, the names of the source files are searched for instead. `None` if the program
/// contains one of the names, or if there are no names to search for.
///
/// # Errors
/// If the program cannot be read.
pub fn another_program<'a>(
    path: &Path,
    crashes: impl Iterator<Item = &'a Crash>,
) -> std::io::Result<Option<Unobservable>> {
    let own = crashes.flat_map(|crash| crash.frames.iter().filter(|frame| frame.own));
    let own: Vec<&Frame> = own.collect();
    let add = |mut all: Vec<String>, name: &str| {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
        all
    };
    let functions = own
        .iter()
        .filter_map(|frame| identifier(frame.name.as_deref()?));
    let functions = functions.filter(|name| *name != "main" && !is_in_each_harness(name));
    let functions = functions.fold(Vec::new(), add);
    let bytes = read_program(path)?;
    let (what, names) = match functions.is_empty() {
        false => ("the functions", functions),
        true if !has_plain_lines(&bytes) => return Ok(None),
        true => {
            let files = own
                .iter()
                .filter_map(|frame| source_file(frame.line.as_deref()?));
            ("the source files", files.fold(Vec::new(), add))
        }
    };
    let is_known = |name: &String| holds_bytes(&bytes, name.as_bytes());
    if names.is_empty() || names.iter().any(is_known) {
        return Ok(None);
    }
    let (path, names) = (path.display(), names[..names.len().min(3)].join(", "));
    Ok(Some(Unobservable::new(
        format!(
            "{path} has none of {what} in which it failed ({names}): it is another program, or has \
             no symbols"
        ),
        "give a build of the program that failed, with symbols or under the same file name",
    )))
}

/// Returns the name of the file, without its folder, of a source line such as `src/main.c:12`;
/// `None` if the name has fewer than three characters.
fn source_file(line: &str) -> Option<&str> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut file = line;
    while let Some((before, number)) = file.rsplit_once(':') {
        if !is_number(number) {
            break;
        }
        file = before;
    }
    let name = file.rsplit('/').next()?;
    (name.len() >= 3).then_some(name)
}

/// Returns the GNU build id of the program at `path`, as hex digits; `None` if it has none.
///
/// # Errors
/// If the program cannot be read.
pub fn program_build_id(path: &Path) -> std::io::Result<Option<Arc<str>>> {
    Ok(build_id(&read_program(path)?))
}

/// Returns the reason why passing runs of the program at `path` do not show that `crashes` are
/// fixed, if the program is the very build that crashed: its build id is `id`, and each of
/// `crashes` happened in code of the main program of the build `id`. `None` if one of them happened
/// elsewhere or in another build, or if its build is unknown.
pub fn same_build<'a>(
    (path, id): (&Path, &str),
    mut crashes: impl Iterator<Item = &'a Crash>,
) -> Option<Unobservable> {
    let is_own = |crash: &Crash| crash.innermost_own().is_some_and(|it| it.module == "exe");
    let is_of_it = |crash: &Crash| crash.build() == Some(id);
    crashes
        .all(|crash| is_own(crash) && is_of_it(crash))
        .then(|| {
            Unobservable::new(
                format!(
                    "{} is the very build that failed: something else has changed, such as an \
                     environment variable or a file that the program reads",
                    path.display()
                ),
                "run it where and as it failed, or give the new build",
            )
        })
}

/// Returns the last identifier in the demangled name of a function, which its mangled name
/// contains, too: `get` for `<a::Map<K> as b::Lookup>::get::{{closure}}`. Generic arguments,
/// parameters and closures are left out. `None` if it has fewer than three characters.
fn identifier(name: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let (mut last, mut start) = (None, None);
    for (at, letter) in name.char_indices().chain([(name.len(), ' ')]) {
        let is_part = depth == 0 && (letter.is_alphanumeric() || letter == '_');
        match start {
            None if is_part => start = Some(at),
            Some(from) if !is_part => {
                last = Some(&name[from..at]);
                start = None;
            }
            _ => {}
        }
        match letter {
            '(' if depth == 0 && last.is_some() => break,
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    last.filter(|word| word.len() >= 3)
}

impl Crash {
    /// Returns the reason why a passing run under the conditions `now` does not show that this
    /// crash is fixed; `None` if such a run shows that the crash is fixed.
    pub fn unobservable(&self, now: &Conditions) -> Option<Unobservable> {
        unreported(self, now)
            .or_else(|| unasserted(self, now))
            .or_else(|| larger_limit(self, &now.limits))
            .or_else(|| laid_out_otherwise(self, now))
            .or_else(|| uncounted(self, now))
            .or_else(|| untrapped(self, now.program.as_deref()))
    }

    /// Checks whether crashes of a build compiled with the options `instrumentation` can be
    /// compared with this crash: true if the build has the same sanitizers as the one that crashed,
    /// and where the sanitizers of either build are unknown. Different sanitizers report the same
    /// bug as different crashes.
    pub fn is_comparable(&self, instrumentation: Option<&[String]>) -> bool {
        match (self.details.instrumentation.as_deref(), instrumentation) {
            (Some(before), Some(now)) => sanitizers(before) == sanitizers(now),
            _ => true,
        }
    }

    /// Returns the reason why a different crash does not show that this crash is fixed, if it
    /// happens in a build with other sanitizers: different sanitizers may report the same bug.
    /// Includes advice to the user.
    pub fn different_sanitizers(&self) -> Unobservable {
        let known = self.details.instrumentation.as_deref().unwrap_or_default();
        Unobservable::new(
            "the program fails differently, but in a build with other sanitizers: it may \
                  be the same bug",
            format!(
                "compile the program {}, as it was",
                build(&sanitizers(known))
            ),
        )
    }

    /// Returns the sanitizers that a build needs to show this crash, as `-fsanitize=` names them;
    /// empty if it needs none.
    pub fn needed_sanitizers(&self) -> Vec<String> {
        if let Some(sanitizer) = self.class.sanitizer() {
            return vec![flag(self, sanitizer)];
        }
        let known = self.details.instrumentation.as_deref();
        match depends_on_layout(self) {
            true => flags(&shadowing(known.unwrap_or_default())),
            false => Vec::new(),
        }
    }

    /// Checks whether the minimal runtime of UndefinedBehaviorSanitizer has ended the program.
    pub fn is_by_minimal_runtime(&self) -> bool {
        let via = self.details.via.as_deref();
        self.class.sanitizer() == Some(Sanitizer::Ubsan) && via.and_then(minimal_check).is_some()
    }

    /// Checks whether a build needs Rust's overflow checks or debug assertions to show this crash,
    /// a panic.
    pub fn needs_debug_assertions(&self) -> bool {
        let known = self.details.instrumentation.as_deref();
        let had = known.is_some_and(|known| has(known, DEBUG_ASSERTIONS));
        let panic = self.details.panic.as_ref();
        let says = |text: &&str| panic.is_some_and(|panic| panic.message.starts_with(text));
        self.class.0 == "rustpanic" && (had || ASSERTIONS.iter().any(says))
    }
}

fn has(instrumentation: &[String], name: &str) -> bool {
    instrumentation.iter().any(|known| known == name)
}

/// Returns the sanitizers in `instrumentation`, the compiler options of a program; single checks
/// count as UndefinedBehaviorSanitizer.
fn sanitizers(instrumentation: &[String]) -> Vec<Sanitizer> {
    let known = instrumentation
        .iter()
        .filter(|name| *name != DEBUG_ASSERTIONS);
    let found = known.map(|name| Sanitizer::of_flag(name).unwrap_or(Sanitizer::Ubsan));
    let found: Vec<Sanitizer> = found.collect();
    let mut all = Sanitizer::ALL.to_vec();
    all.retain(|one| found.contains(one));
    all
}

/// Returns those sanitizers in `instrumentation`, the compiler options of a program, that change
/// its memory layout.
fn shadowing(instrumentation: &[String]) -> Vec<Sanitizer> {
    let mut found = sanitizers(instrumentation);
    found.retain(|one| one.shadows());
    found
}

fn flags(sanitizers: &[Sanitizer]) -> Vec<String> {
    sanitizers.iter().map(|one| one.flag().to_owned()).collect()
}

fn titles(sanitizers: &[Sanitizer]) -> String {
    let titles: Vec<&str> = sanitizers.iter().map(|one| one.title()).collect();
    titles.join(" and ")
}

/// Checks of UndefinedBehaviorSanitizer that `-fsanitize=undefined` does not include.
const NOT_IN_UNDEFINED: [&str; 4] = [
    "cfi",
    "implicit-conversion",
    "nullability",
    "unsigned-integer-overflow",
];

/// Returns the value of `-fsanitize=` for a build that reports the crash `crash`, which `sanitizer`
/// has reported.
fn flag(crash: &Crash, sanitizer: Sanitizer) -> String {
    let check = crash.class.kind();
    match sanitizer {
        Sanitizer::Ubsan if NOT_IN_UNDEFINED.contains(&check) => check.to_owned(),
        // It is part of AddressSanitizer, too, which more builds have.
        Sanitizer::Lsan => {
            let known = crash.details.instrumentation.as_deref().unwrap_or_default();
            let alone = has(known, "leak") && !has(known, "address");
            if alone { "leak" } else { "address" }.to_owned()
        }
        _ => sanitizer.flag().to_owned(),
    }
}

/// Checks whether a program compiled with the options `now` would report the crash `crash`, which
/// `sanitizer` reported.
fn reports(crash: &Crash, sanitizer: Sanitizer, now: &[String]) -> bool {
    match sanitizer {
        Sanitizer::Lsan => {
            let mut flags = ["leak", "address", "hwaddress"].into_iter();
            flags.any(|flag| has(now, flag))
        }
        Sanitizer::Ubsan => {
            let check = crash.class.kind();
            let family = check.split('-').next().unwrap_or_default();
            let same = crash.details.instrumentation.as_deref() == Some(now);
            let whole = has(now, "undefined") && !NOT_IN_UNDEFINED.contains(&check);
            // `shift-base` and `shift-exponent` are checked by `shift`.
            let single = has(now, check) || family == "shift" && has(now, family);
            whole || single || same && !sanitizers(now).is_empty()
        }
        _ => has(now, sanitizer.flag()),
    }
}

/// For a crash that a sanitizer reported, returns the reason why a passing run does not show that
/// it is fixed: the program lacks the sanitizer, or the sanitizer's check that reported the crash,
/// or ddfuzz cannot see whether the program has them. `None` if there is no such reason, or no
/// sanitizer reported the crash.
fn unreported(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let sanitizer = crash.class.sanitizer()?;
    let flag = flag(crash, sanitizer);
    let title = sanitizer.title();
    let Some(now) = &now.instrumentation else {
        return Some(Unobservable::new(
            format!(
                "{title} reported it, and ddfuzz cannot see whether the program that is run has it"
            ),
            format!("give the program itself, compiled with -fsanitize={flag}"),
        ));
    };
    if reports(crash, sanitizer, now) {
        return None;
    }
    if sanitizers(now).contains(&sanitizer) {
        let check = crash.class.kind();
        return Some(Unobservable::new(
            format!(
                "the program contains no check for {check}: it is compiled without it, or the fix \
                 has removed the checked code"
            ),
            format!("compile the program with -fsanitize={flag} and without optimization"),
        ));
    }
    let goes_on = match sanitizer {
        Sanitizer::Ubsan => ", or so that it goes on after a report (-fsanitize-minimal-runtime)",
        _ => "",
    };
    Some(Unobservable::new(
        format!("{title} reported it, but the program is compiled without it{goes_on}"),
        format!("compile the program with -fsanitize={flag}"),
    ))
}

/// Returns the reason why a passing run does not show that a Rust panic is fixed, if the program is
/// known to lack the overflow check or debug assertion that panicked; else `None`.
fn unasserted(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let now = now.instrumentation.as_deref()?;
    if !crash.needs_debug_assertions() || has(now, DEBUG_ASSERTIONS) {
        return None;
    }
    Some(Unobservable::new(
        "it was found in a build with Rust's overflow checks or debug assertions, which this \
              one lacks",
        "compile the program with -C debug-assertions=on (cargo: the dev profile)",
    ))
}

/// Returns the reason why a passing run does not show that a hang or memory blow-up is fixed, if
/// the limit that the crash exceeded is larger in `now`, the limits of the passing run; else
/// `None`.
fn larger_limit(crash: &Crash, now: &Limits) -> Option<Unobservable> {
    let then = &crash.limits;
    match crash.class.0.as_str() {
        "hang" if now.cpu > then.cpu || now.wall > then.wall => Some(Unobservable::new(
            format!(
                "it exceeded a limit of {} ms, but the limit is larger now",
                then.cpu.as_millis()
            ),
            "omit --timeout, to run it with the limit that it was found with",
        )),
        "oom" if now.memory > then.memory => Some(Unobservable::new(
            format!(
                "it exceeded a limit of {} MiB, but the limit is larger now",
                then.memory >> 20
            ),
            "omit --memory, to run it with the limit that it was found with",
        )),
        _ => None,
    }
}

/// Checks by the class of a crash whether it may disappear when the program's memory layout or
/// speed changes.
fn depends_on_layout(crash: &Crash) -> bool {
    match crash.class.0.as_str() {
        "fpe" | "ill" | "trap" | "sys" | "rustpanic" | "gopanic" => false,
        "abrt" => {
            let via = crash.details.via.as_deref().unwrap_or_default();
            !is_abort(via) && crash.details.exception.is_none()
        }
        class => !class.starts_with("exit:") && crash.class.sanitizer().is_none(),
    }
}

/// Returns the reason why a passing run does not show that a crash is fixed, if two things hold:
/// the program is known to have another memory layout, because of other sanitizers, and the crash
/// may depend on the layout. Else returns `None`.
fn laid_out_otherwise(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let before = shadowing(crash.details.instrumentation.as_deref()?);
    let now = shadowing(now.instrumentation.as_deref()?);
    if before == now || !depends_on_layout(crash) {
        return None;
    }
    let less = |all: &[Sanitizer], others: &[Sanitizer]| {
        let rest = all.iter().filter(|one| !others.contains(one));
        rest.copied().collect::<Vec<Sanitizer>>()
    };
    let (gone, come) = (less(&before, &now), less(&now, &before));
    let (had, lacked) = (titles(&gone), titles(&come));
    let parts = match (gone.is_empty(), come.is_empty()) {
        (false, true) => format!("with {had}, and this one has none"),
        (true, _) => format!("without {lacked}, and this one has it"),
        (false, false) => format!("with {had}, and this one has {lacked}"),
    };
    Some(Unobservable::new(
        format!("it was found in a build {parts}: another layout of memory can hide it"),
        format!("compile the program {}, as it was", build(&before)),
    ))
}

/// Returns a description, for people, of how a build with these sanitizers is compiled: `with
/// -fsanitize=…`, or `without sanitizers`.
fn build(sanitizers: &[Sanitizer]) -> String {
    match flags(sanitizers).join(",") {
        none if none.is_empty() => "without sanitizers".to_owned(),
        flags => format!("with -fsanitize={flags}"),
    }
}

/// Returns the reason why a passing run does not show that a crash by exit status is fixed, if
/// under the conditions `now` of that run, the exit status does not count as a crash; else `None`.
fn uncounted(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let status = crash.class.exit_status()?;
    (now.crash_exit != Some(status)).then(|| {
        Unobservable::new(
            format!("it is an exit with status {status}, which does not count as a crash now"),
            format!("add --crash-exit {status}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_identifier_of_a_name_is_that_of_the_function() {
        let names = [
            ("<a::Map<K> as b::Lookup>::get::{{closure}}", Some("get")),
            (
                "store::Table<int>::look_up(char const*) const",
                Some("look_up"),
            ),
            ("strips::__libfuzzer_sys_run", Some("__libfuzzer_sys_run")),
            ("odd_bug", Some("odd_bug")),
            ("f", None),
        ];
        for (name, expected) in names {
            assert_eq!(identifier(name), expected, "{name}");
        }
        assert_eq!(source_file("/src/a:b/main.c:12:3"), Some("main.c"));
        assert_eq!(source_file("main.c:12"), Some("main.c"));
        assert!(is_in_each_harness("__libfuzzer_sys_run") && !is_in_each_harness("odd_bug"));
    }
}
