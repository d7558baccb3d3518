//! Whether a run can show a crash that another build of the program, or a run within other limits,
//! has shown. Where it cannot, that it passes does not mean that the bug is fixed.

use super::Crash;
use ddfuzz_exec::facts::{ASSERTIONS, DEBUG_ASSERTIONS};
use ddfuzz_exec::{Limits, Sanitizer};

/// What of a run decides which crashes it can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// What the program was compiled with ([`TargetFacts::instrumentation`]); `None` where that is
    /// not known.
    ///
    /// [`TargetFacts::instrumentation`]: ddfuzz_exec::facts::TargetFacts::instrumentation
    pub instrumentation: Option<Vec<String>>,
    /// Limits on the run.
    pub limits: Limits,
    /// The exit status that counts as a crash.
    pub crash_exit: Option<i32>,
}

/// Why a run that passes says nothing about a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unobservable {
    /// The reason, a sentence about "it", the crash.
    pub why: String,
    /// What to do, so that something can be said.
    pub hint: String,
}

/// The functions by which programs abort themselves. That they are called does not depend on where
/// things lie in memory, as it does where the C library finds its heap or the stack damaged.
const ABORTING: [&str; 6] = [
    "abort",
    "raise",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "_ZSt9terminatev",
];

impl Crash {
    /// Why a run under these conditions that passes says nothing about this crash; `None` where it
    /// does not crash any more.
    pub fn unobservable(&self, now: &Conditions) -> Option<Unobservable> {
        unreported(self, now)
            .or_else(|| unasserted(self, now))
            .or_else(|| within(self, &now.limits))
            .or_else(|| laid_out_otherwise(self, now))
            .or_else(|| uncounted(self, now))
    }

    /// Whether a build that was compiled with this shows crashes as the one did that this crash is
    /// of: with the same sanitizers. Another sanitizer sees the same bug as something else.
    pub fn is_comparable(&self, instrumentation: Option<&[String]>) -> bool {
        match (self.details.instrumentation.as_deref(), instrumentation) {
            (Some(before), Some(now)) => sanitizers(before) == sanitizers(now),
            _ => true,
        }
    }

    /// Why a crash of a build that is not comparable says nothing about this one.
    pub fn seen_otherwise(&self) -> Unobservable {
        let known = self.details.instrumentation.as_deref().unwrap_or_default();
        Unobservable {
            why: "the program fails differently, but in a build with other sanitizers: it may \
                  be the same bug"
                .to_owned(),
            hint: format!(
                "compile the program {}, as it was",
                build(&sanitizers(known))
            ),
        }
    }

    /// What a program has to be compiled with to show this crash, as `-fsanitize=` names it.
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

    /// Whether it takes Rust's overflow checks or debug assertions to show this crash.
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

/// The sanitizers among what a program was compiled with; single checks of
/// UndefinedBehaviorSanitizer are that.
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

/// Those by which memory is laid out otherwise.
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

/// Checks that are no part of `-fsanitize=undefined`.
const BESIDE: [&str; 4] = [
    "cfi",
    "implicit-conversion",
    "nullability",
    "unsigned-integer-overflow",
];

/// `-fsanitize=FLAG` of what reports the crash.
fn flag(crash: &Crash, sanitizer: Sanitizer) -> String {
    let check = crash.class.0.split_once(':').map_or("", |(_, check)| check);
    match sanitizer {
        Sanitizer::Ubsan if BESIDE.contains(&check) => check.to_owned(),
        // It is part of AddressSanitizer, too, which more builds have.
        Sanitizer::Lsan => {
            let known = crash.details.instrumentation.as_deref().unwrap_or_default();
            let alone = has(known, "leak") && !has(known, "address");
            let flag = if alone { "leak" } else { "address" };
            flag.to_owned()
        }
        _ => sanitizer.flag().to_owned(),
    }
}

/// Whether a program that was compiled with this reports such crashes.
fn reports(crash: &Crash, sanitizer: Sanitizer, now: &[String]) -> bool {
    match sanitizer {
        Sanitizer::Lsan => ["leak", "address", "hwaddress"]
            .iter()
            .any(|flag| has(now, flag)),
        Sanitizer::Ubsan => {
            let check = crash.class.0.split_once(':').map_or("", |(_, check)| check);
            let family = check.split('-').next().unwrap_or_default();
            let same = crash.details.instrumentation.as_deref() == Some(now);
            let whole = has(now, "undefined") && !BESIDE.contains(&check);
            // `shift-base` and `shift-exponent` are checked by `shift`.
            let single = has(now, check) || family == "shift" && has(now, family);
            whole || single || same && !sanitizers(now).is_empty()
        }
        _ => has(now, sanitizer.flag()),
    }
}

/// The sanitizer that reported it is not there.
fn unreported(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let sanitizer = crash.class.sanitizer()?;
    let flag = flag(crash, sanitizer);
    let title = sanitizer.title();
    let Some(now) = &now.instrumentation else {
        return Some(Unobservable {
            why: format!(
                "{title} reported it, and ddfuzz cannot see whether the program that is run has it"
            ),
            hint: format!("give the program itself, compiled with -fsanitize={flag}"),
        });
    };
    if reports(crash, sanitizer, now) {
        return None;
    }
    if sanitizers(now).contains(&sanitizer) {
        let check = crash.class.0.split_once(':').map_or("", |(_, check)| check);
        return Some(Unobservable {
            why: format!(
                "the program contains no check for {check}: it is compiled without it, or the fix \
                 has removed the checked code"
            ),
            hint: format!("compile the program with -fsanitize={flag} and without optimization"),
        });
    }
    Some(Unobservable {
        why: format!("{title} reported it, but the program is compiled without it"),
        hint: format!("compile the program with -fsanitize={flag}"),
    })
}

/// Its panic was an overflow check or a debug assertion, or may have been one.
fn unasserted(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let now = now.instrumentation.as_deref()?;
    if !crash.needs_debug_assertions() || has(now, DEBUG_ASSERTIONS) {
        return None;
    }
    Some(Unobservable {
        why: "it was found in a build with Rust's overflow checks or debug assertions, which this \
              one lacks"
            .to_owned(),
        hint: "compile the program with -C debug-assertions=on (cargo: the dev profile)".to_owned(),
    })
}

/// It went over a limit that is larger now.
fn within(crash: &Crash, now: &Limits) -> Option<Unobservable> {
    let then = &crash.limits;
    match crash.class.0.as_str() {
        "hang" if now.cpu > then.cpu || now.wall > then.wall => Some(Unobservable {
            why: format!(
                "it exceeded a limit of {} ms, but the limit is larger now",
                then.cpu.as_millis()
            ),
            hint: "omit --timeout, to run it with the limit that it was found with".to_owned(),
        }),
        "oom" if now.memory > then.memory => Some(Unobservable {
            why: format!(
                "it exceeded a limit of {} MiB, but the limit is larger now",
                then.memory >> 20
            ),
            hint: "omit --memory, to run it with the limit that it was found with".to_owned(),
        }),
        _ => None,
    }
}

/// Whether a crash of this kind may vanish where the program's data lie elsewhere, or where its code
/// is slower or faster.
fn depends_on_layout(crash: &Crash) -> bool {
    match crash.class.0.as_str() {
        "fpe" | "ill" | "trap" | "sys" | "rustpanic" | "gopanic" => false,
        "abrt" => {
            let via = crash.details.via.as_deref().unwrap_or_default();
            !ABORTING.contains(&via) && crash.details.exception.is_none()
        }
        class => !class.starts_with("exit:") && crash.class.sanitizer().is_none(),
    }
}

/// One of the two builds has a sanitizer that lays out memory in its own way.
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
    Some(Unobservable {
        why: format!("it was found in a build {parts}: another layout of memory can hide it"),
        hint: format!("compile the program {}, as it was", build(&before)),
    })
}

/// How a build with these sanitizers is made.
fn build(sanitizers: &[Sanitizer]) -> String {
    match flags(sanitizers).join(",") {
        none if none.is_empty() => "without sanitizers".to_owned(),
        flags => format!("with -fsanitize={flags}"),
    }
}

/// The exit status that was the crash is none now.
fn uncounted(crash: &Crash, now: &Conditions) -> Option<Unobservable> {
    let status: i32 = crash.class.0.strip_prefix("exit:")?.parse().ok()?;
    (now.crash_exit != Some(status)).then(|| Unobservable {
        why: format!("it is an exit with status {status}, which does not count as a crash now"),
        hint: format!("add --crash-exit {status}"),
    })
}
