//! Judges inputs of other fuzzers, for `triage` and `watch`: whether they crash or exceed a limit,
//! what the journal of triage records of them, and for which target the result holds.

use std::collections::{HashMap, HashSet, hash_map::Entry};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use crate::{CampaignError, Examined, FileStamp, examined, lock};
use ddfuzz_exec::{Ended, ExecError, Program, Target, TargetRecord, Way, bundled};
use ddfuzz_minimize::{AGREEING_RUNS, log::ContentHash};
use ddfuzz_model::files::FileError;
use ddfuzz_store::foreign::{Input, ReportedEnd};
use ddfuzz_store::{CrashLine, Kind, report::place};
use ddfuzz_triage::{Class, Crash, Key, Keys, Quick, Severity, Triager, keys};

/// The result of running an input of another fuzzer ([`judged`]): either one run with a crash that
/// was known before, or a full examination.
pub enum Judged {
    /// The input crashed with keys (major and minor) that were known before; so it was run only
    /// once, and not examined further.
    Again {
        /// Major and minor key (coarse and fine hash) of the crash.
        variant: (Key, Key),
        /// How the run ended; inputs with the same keys may end by different signals.
        ended: Ended,
    },
    /// The input was examined in full: how its runs ended, and the crash record if it crashed.
    New(Examined),
}

/// Runs an input that another fuzzer has found, to tell what it does; `leaks`: whether memory leaks
/// are looked for. If `any` is true (some crash keys are known), runs the input once, and returns
/// [`Judged::Again`] if it crashes with keys that `is_known` accepts. Otherwise examines the input
/// in full ([`examined_thrice`]).
pub fn judged(
    triager: &mut Triager,
    input: &[u8],
    leaks: bool,
    any: bool,
    is_known: impl Fn(Key, Key) -> bool,
) -> Result<Judged, ExecError> {
    let mut quick = None;
    // Without known keys, the run for the keys alone would be useless.
    if any {
        let run = triager.key_run(input)?;
        if let Quick::Crash {
            class,
            major,
            minor,
        } = run.quick()
        {
            if is_known(major, minor) {
                return Ok(Judged::Again {
                    variant: (major, minor),
                    ended: run.ended(),
                });
            }
            quick = Some((class, major, minor));
        }
    }
    let mut examined = examined_thrice(triager, input, leaks)?;
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

/// Runs an input until it crashes, three times at most. If it crashed, repeats the run until three
/// were made in all, and counts in the crash record how many of the three showed the same crash; if
/// not all did, the crash is filed as flaky. The last run has random addresses, and any crash in it
/// counts as the same. If a repeated run hangs at a different place in the program than the first
/// run, the input is a hang whose place is not known. With `leaks`, an input that does not crash is
/// searched for memory leaks.
///
/// # Errors
/// When the target cannot be started or traced.
pub fn examined_thrice(
    triager: &mut Triager,
    input: &[u8],
    leaks: bool,
) -> Result<Examined, ExecError> {
    let mut examined = examined(triager, input, leaks)?;
    let Some(crash) = &mut examined.crash else {
        return Ok(examined);
    };
    // Leaks are looked for by a run of their own.
    if crash.class.is_leak() {
        return Ok(examined);
    }
    let mut moves = false;
    while crash.tries < AGREEING_RUNS {
        let random_addresses = crash.tries + 1 == AGREEING_RUNS;
        if let Quick::Crash { class, major, .. } = triager.key_at(input, random_addresses)? {
            let is_same = major == crash.keys.major;
            let hangs_elsewhere = !is_same && crash.class.is_hang() && class.is_hang();
            moves |= hangs_elsewhere;
            // At other addresses damaged memory may show as another crash.
            crash.hits += u32::from(is_same || hangs_elsewhere || random_addresses);
        }
        crash.tries += 1;
    }
    if moves {
        **crash = hang_without_place(triager, crash);
    }
    examined.tries = crash.tries;
    Ok(examined)
}

/// Major keys (hashes that identify bugs) of hangs whose second run did not hang at a different
/// place in the program. Only the first input of each group is run twice, since each run takes the
/// whole time limit.
#[derive(Default)]
pub(crate) struct SteadyHangs(HashSet<Key>);

impl SteadyHangs {
    /// Checks whether a hang is at the same place in the program in a second run. `crash` is the
    /// record of the first run of `input`. If it is a hang, and no second run was made for its
    /// group, runs the input once more. If the second run hangs at a different place, replaces
    /// `crash` with the record of a hang whose place is not known. Does nothing for other crashes.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub(crate) fn settle(
        &mut self,
        triager: &mut Triager,
        input: &[u8],
        crash: &mut Crash,
    ) -> Result<(), ExecError> {
        let first = crash.keys.major;
        if !crash.class.is_hang() || self.0.contains(&first) {
            return Ok(());
        }
        match triager.key(input)? {
            Quick::Crash { class, major, .. } if class.is_hang() && major != first => {
                (crash.hits, crash.tries) = (crash.hits + 1, crash.tries + 1);
                *crash = hang_without_place(triager, crash);
            }
            Quick::Crash { .. } | Quick::Ended(_) => drop(self.0.insert(first)),
        }
        Ok(())
    }
}

/// Makes the record of a hang whose place is not known, for an input that hangs at a different
/// place in the program in each run, as after an overflow that has damaged the stack or the
/// condition of a loop. All of these hangs are one group. `hang`: the record of one of the runs,
/// from which the counts of hits and tries are taken.
fn hang_without_place(triager: &Triager, hang: &Crash) -> Crash {
    let mut crash = triager.untraced_record(hang.ended);
    (crash.hits, crash.tries) = (hang.hits, hang.tries);
    crash.details.message = Some(NO_PLACE_MESSAGE.to_owned());
    crash
}

/// Message in the record of a hang whose place is not known.
const NO_PLACE_MESSAGE: &str = "hangs at another place in each run";

/// Returns true if an input fails in each of `runs` runs, made one after the other. `major`: the
/// key that each crash must have; `None` accepts any crash. Returns false as soon as a run does not
/// crash or crashes with another key, or if `stop` turned true. The caller must make no other runs
/// meanwhile: a program that uses a fixed port, lock or file may fail in another way, or not at
/// all, while another process of it runs.
///
/// # Errors
/// When the target cannot be started or traced.
pub fn fails_alone(
    triager: &mut Triager,
    input: &[u8],
    major: Option<Key>,
    runs: u32,
    stop: &AtomicBool,
) -> Result<bool, ExecError> {
    for _ in 0..runs {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match triager.key(input)? {
            Quick::Crash { major: seen, .. } if major.is_none_or(|major| major == seen) => {}
            Quick::Crash { .. } | Quick::Ended(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns true if the target crashes with this major key (hash that identifies a bug) on the empty
/// input and on four very different others, so that its crash does not depend on the input;
/// otherwise false.
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

/// Returns true if the fuzzer that wrote the input's file has named the file as one that shows a
/// memory leak.
pub fn may_leak(input: &Input) -> bool {
    (input.named).is_some_and(|named| named.reported_end == ReportedEnd::Leak)
}

/// Returns true if the caller has to run the input with the hash `content`, with a search for
/// memory leaks if `leaks` is true, and records the run in `run`. False if the input was run
/// before, unless `leaks` is true and no earlier run searched for leaks. (libFuzzer may write an
/// input to its corpus, and later also to a file whose name says that it leaks.) `run`: the inputs
/// that were run, each with whether leaks were searched for.
pub fn mark_as_run(
    run: &mut HashMap<ContentHash, bool>,
    content: ContentHash,
    leaks: bool,
) -> bool {
    match run.entry(content) {
        Entry::Vacant(new) => {
            new.insert(leaks);
            true
        }
        Entry::Occupied(mut run) => leaks && !run.insert(true),
    }
}

/// Adds an earlier crash of an input, with `keys` and `class`, to `tried`, the result of running
/// the input again, and returns the combined result. Returns `tried` unchanged if it has a crash
/// with the same major key (hash that identifies a bug). If both crashes are hangs, the result is a
/// hang whose place is not known. Otherwise the earlier crash gets a short record: as the crash of
/// the input if no later run has crashed, and in the field `other` if one has.
pub fn came_once(triager: &Triager, keys: Keys, class: Class, mut tried: Examined) -> Examined {
    let later = tried.crash.as_ref().map(|crash| crash.keys.major);
    if later == Some(keys.major) {
        return tried;
    }
    let hang = tried.crash.as_mut().filter(|crash| crash.class.is_hang());
    if let Some(crash) = hang.filter(|_| class.is_hang()) {
        (crash.hits, crash.tries) = (crash.hits + 1, crash.tries + 1);
        **crash = hang_without_place(triager, crash);
        tried.tries = crash.tries;
        return tried;
    }
    let tries = tried.tries + 1;
    let once = Some(Box::new(Crash {
        keys,
        class,
        hits: 1,
        tries,
        severity: Severity::Low,
        severity_reason: "it occurred once and did not reproduce".to_owned(),
        ..triager.untraced_record(tried.ended)
    }));
    match later {
        Some(_) => Examined {
            other: once,
            ..tried
        },
        None => Examined {
            tries,
            crash: once,
            ..tried
        },
    }
}

/// Returns the kind of group to which a crash belongs: flaky if it did not occur in each try, and
/// otherwise the kind of its class.
pub fn kind_of(crash: &Crash) -> Kind {
    match crash.hits < crash.tries {
        true => Kind::Flaky,
        false => Kind::of_class(&crash.class),
    }
}

/// Converts a crash record to the summary of the crash that triage writes into its journal.
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

/// Returns the hash of a program's file. A process reads a file only once, unless its metadata
/// change.
///
/// # Errors
/// If the file cannot be read.
pub fn program_hash(program: &Program) -> Result<ContentHash, FileError> {
    let path = match program {
        Program::Bundled(name) => {
            return Ok(ContentHash::of(bundled::program(name).unwrap_or_default()));
        }
        Program::Path(path) => path,
    };
    let stamp = file_stamp(path);
    let known = lock(&PROGRAM_HASHES).get(path).copied();
    if let Some((_, hash)) = known.filter(|(of, _)| Some(*of) == stamp) {
        return Ok(hash);
    }
    let hash = ContentHash::of_file(path).map_err(FileError::at("read", path))?;
    // A file that has just changed can change again and keep its times, which the kernel rounds.
    let is_settled = |(_, changed): &DatedStamp| {
        (SystemTime::now().duration_since(*changed)).is_ok_and(|age| age >= STAMP_AGE)
    };
    if let Some(stamp) = stamp.filter(is_settled)
        && file_stamp(path) == Some(stamp)
    {
        lock(&PROGRAM_HASHES).insert(path.clone(), (stamp, hash));
    }
    Ok(hash)
}

/// Time without a change of a file's metadata after which the file's hash is stored for later
/// calls. The kernel rounds times, so a file that changes twice within this time may have the same
/// times after both changes.
const STAMP_AGE: Duration = Duration::from_secs(2);

/// The hashes of program files that this process has read, by path. Each comes with the file's
/// metadata (device, inode, size, times of modification and of the last change of metadata), so
/// that a changed file is read again.
static PROGRAM_HASHES: LazyLock<Mutex<HashMap<PathBuf, (DatedStamp, ContentHash)>>> =
    LazyLock::new(Mutex::default);

/// The data that tells whether a file is still the same: its [`FileStamp`] (device, inode, size,
/// time of modification), and the time at which its metadata was changed last.
type DatedStamp = (FileStamp, SystemTime);

/// Returns the stamp of the file at `path` (device, inode, size and modification time), and the
/// time of the last change of its metadata, which programs cannot set freely; `None` if the file
/// cannot be accessed.
fn file_stamp(path: &Path) -> Option<DatedStamp> {
    let stamp = FileStamp::at(path)?;
    let facts = path.metadata().ok()?;
    let changed = Duration::new(facts.ctime().try_into().ok()?, facts.ctime_nsec() as u32);
    Some((stamp, SystemTime::UNIX_EPOCH + changed))
}

/// Returns a hash that identifies a target by its program, arguments, environment and limits, and
/// by the version of the crash keys. The way of execution, libraries, and files named by arguments
/// are not included.
pub fn identity(target: &Target) -> Result<ContentHash, CampaignError> {
    let program = program_hash(&target.program)?;
    let record = TargetRecord::new(target, Way::Command);
    let text = serde_json::to_vec(&(record, target.limits, program, keys::VERSION));
    let text = text.map_err(|error| CampaignError::System {
        what: "the target cannot be recorded".to_owned(),
        source: error.into(),
    })?;
    Ok(ContentHash::of(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_hashed_anew_when_its_file_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let program = Program::Path(path.clone());
        for text in [b"one", b"two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(program_hash(&program).unwrap(), ContentHash::of(text));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(program_hash(&program).is_err());
    }

    #[test]
    fn a_program_that_stays_is_hashed_once() {
        let path = PathBuf::from("/etc/passwd"); // old, and the program of no other test
        let hash = program_hash(&Program::Path(path.clone())).unwrap();
        assert_eq!(hash, ContentHash::of_file(&path).unwrap());
        let known = lock(&PROGRAM_HASHES)[&path];
        assert_eq!(known, (file_stamp(&path).unwrap(), hash));
        // The hash that is kept is the one that is returned.
        let other = ContentHash::of(b"another");
        lock(&PROGRAM_HASHES).insert(path.clone(), (known.0, other));
        assert_eq!(program_hash(&Program::Path(path.clone())).unwrap(), other);
        lock(&PROGRAM_HASHES).remove(&path);
    }
}
