//! What an input of another fuzzer does: whether it crashes, or runs over a limit, and for which
//! target that holds.

use super::error::CampaignError;
use super::recheck::{Examined, examined};
use ddfuzz_exec::{ExecError, Program, Target, TargetRecord, Way, bundled};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::FileError;
use ddfuzz_store::foreign::{Input, Promise};
use ddfuzz_store::report::place;
use ddfuzz_store::{CrashLine, Kind, StoreError};
use ddfuzz_triage::{Class, Crash, Key, Keys, Quick, Severity, Triager, keys};

/// The result of an input.
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

/// Whether the target crashes with this major key whatever its input is, as far as the empty one
/// and a few that have nothing in common say.
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

/// Whether the fuzzer that named the file has seen a leak.
pub fn may_leak(input: &Input) -> bool {
    (input.named).is_some_and(|named| named.promise == Promise::Leak)
}

/// What is left of a crash that came once, with these keys, and in none of the tries after it: no
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
            ..triager.untraced_record(tried.ended)
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

/// The identity of a target: whatever may change how an input ends or what it is called. The way
/// of execution does neither. Libraries, and files that arguments name, are not looked at.
///
/// # Errors
/// When the program cannot be read.
pub fn identity(target: &Target) -> Result<ContentHash, CampaignError> {
    let program = match &target.program {
        Program::Bundled(name) => ContentHash::of(bundled::program(name).unwrap_or_default()),
        Program::Path(path) => {
            let hash = ContentHash::of_file(path).map_err(FileError::at("read", path));
            hash.map_err(StoreError::from)?
        }
    };
    let record = TargetRecord::new(target, Way::Command);
    let text = serde_json::to_vec(&(record, target.limits, program, keys::VERSION));
    let text = text.map_err(|error| CampaignError::System {
        what: "the target cannot be recorded".to_owned(),
        source: error.into(),
    })?;
    Ok(ContentHash::of(&text))
}
