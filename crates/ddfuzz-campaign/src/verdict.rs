//! How an input of another fuzzer ended, be it by a crash or over a limit.

use super::recheck::{Examined, examined};
use ddfuzz_exec::ExecError;
use ddfuzz_store::foreign::{Input, Promise};
use ddfuzz_store::report::place;
use ddfuzz_store::{CrashLine, Kind};
use ddfuzz_triage::{Class, Crash, Key, Keys, Quick, Severity, Triager, keys};

/// What an input came to.
pub enum Judged {
    /// It crashed with a major and a minor key of which a record is at hand.
    Again(Key, Key),
    /// All is known of it that can be.
    New(Examined),
}

/// Runs an input: for its keys only where they are among those that `is_known`, of which there
/// are `any`; else as often as [`examined`] does, and with `leaks` for leaks, too.
///
/// # Errors
/// When the target cannot be run.
pub fn judged(
    triager: &mut Triager,
    input: &[u8],
    leaks: bool,
    any: bool,
    is_known: impl Fn(Key, Key) -> bool,
) -> Result<Judged, ExecError> {
    let mut quick = None;
    // Before there is anything to be known again, asking would be a run in vain.
    if any
        && let Quick::Crash {
            class,
            major,
            minor,
        } = triager.key(input)?
    {
        if is_known(major, minor) {
            return Ok(Judged::Again(major, minor));
        }
        quick = Some((class, major, minor));
    }
    let mut examined = examined(triager, input, leaks)?;
    if let Some((class, major, minor)) = quick {
        let keys = Keys {
            major,
            minor,
            stable: None,
            version: keys::VERSION,
        };
        examined = came_once(triager, keys, class, examined);
    }
    Ok(Judged::New(examined))
}

/// Whether the target crashes with this major key whatever its input is, as far as the empty one and
/// a few that have nothing in common say.
///
/// # Errors
/// When the target cannot be run.
pub fn fails_on_anything(triager: &mut Triager, major: Key) -> Result<bool, ExecError> {
    let all_bytes: Vec<u8> = (0..=u8::MAX).cycle().take(1024).collect();
    for input in [b"", &b"0\n"[..], &[b'A'; 64], &[0; 16], &all_bytes] {
        match triager.key(input)? {
            Quick::Crash { major: seen, .. } if seen == major => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether who named the file has seen a leak.
pub fn may_leak(input: &Input) -> bool {
    (input.named).is_some_and(|named| named.promise == Promise::Leak)
}

/// What is left of a crash that came once, with these keys, and in none of the tries behind it: no
/// one has looked at more than its keys.
fn came_once(triager: &Triager, keys: Keys, class: Class, tried: Examined) -> Examined {
    if tried.crash.is_some() {
        return tried;
    }
    let tries = tried.tries + 1;
    Examined {
        tries,
        crash: Some(Box::new(Crash {
            keys,
            class,
            hits: 1,
            tries,
            severity: Severity::Low,
            severity_reason: "it occurred once and did not reproduce".to_owned(),
            ..triager.unwatched(tried.ended)
        })),
        ..tried
    }
}

/// The kind of finding that a crash is; one that did not come in each try is flaky.
pub fn kind_of(crash: &Crash) -> Kind {
    match crash.hits < crash.tries {
        true => Kind::Flaky,
        false => Kind::of_class(&crash.class),
    }
}

/// What the journal of triage keeps of a crash.
pub fn line_of(crash: &Crash) -> CrashLine {
    CrashLine {
        kind: kind_of(crash),
        class: crash.class.clone(),
        major: crash.keys.major,
        minor: crash.keys.minor,
        stable: crash.keys.stable,
        confidence: crash.confidence,
        severity: crash.severity,
        severity_reason: crash.severity_reason.clone(),
        way: crash.way,
        place: place(crash),
        message: crash.details.message.clone(),
        source: crash.site().and_then(|site| site.source),
        build: crash.build().map(str::to_owned),
    }
}
