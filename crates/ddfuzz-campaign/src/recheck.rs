//! Checks whether groups still fail: runs their inputs again and compares the crashes with the
//! recorded ones (`check`, and campaigns with a rebuilt program).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::CampaignError;
use ddfuzz_exec::{Ended, ExecError, Target, Way};
use ddfuzz_minimize::Rate;
use ddfuzz_minimize::log::{Line, Log, What};
use ddfuzz_model::files::FileError;
use ddfuzz_model::pool::{TaskPool, Worker};
use ddfuzz_store::report::{CheckedGroup, CurrentFailure, Status, place};
use ddfuzz_store::{Entry, EntryId, Group, Kind, LastBuilds, Reader, StoreError};
use ddfuzz_triage::{Conditions, Crash, Triager, Unobservable, Verdict};

/// How an input behaved when it was run until it crashed, three times at most ([`examined`]): how
/// its run ended, and the record of its crash.
pub struct Examined {
    /// How the run that crashed ended; if no run crashed, how the last run ended.
    pub ended: Ended,
    /// Number of times that the input was run.
    pub tries: u32,
    /// Number of bytes of the input that the last try read, if this try did not crash; `None` if
    /// the number is not known.
    pub read: Option<u64>,
    /// Record of the crash, hang or memory blow-up; `None` if the input passed, or its crash did
    /// not happen again.
    pub crash: Option<Box<Crash>>,
    /// Record of an earlier crash of the input with other keys, which did not happen again; `None`
    /// if there was none.
    pub other: Option<Box<Crash>>,
}

/// A group and its entries (stored inputs), which are run to check the group.
pub struct StoredGroup {
    /// The group: its kind and its record.
    pub group: Group,
    /// All entries of the group, in the order in which their inputs are run: first the entry that
    /// represents the group, then those that represent its minor keys (finer hashes of crashes).
    pub entries: Vec<Entry>,
}

impl StoredGroup {
    /// Reads the entries of `group`, in the order in which their inputs are run to check the group.
    pub fn read(reader: &Reader, group: Group) -> Result<StoredGroup, StoreError> {
        let mut entries = Vec::new();
        entries.extend(reader.best_entry(&group, &LastBuilds::default())?);
        for id in group.representatives() {
            if entries.iter().all(|one: &Entry| one.id != id) {
                entries.extend(reader.entry(&id)?);
            }
        }
        let representatives: HashSet<EntryId> = entries.iter().map(|one| one.id.clone()).collect();
        let all = reader.entries(group.kind, &group.record.major.short())?;
        let others = all.into_iter();
        entries.extend(others.filter(|one| !representatives.contains(&one.id)));
        Ok(StoredGroup { group, entries })
    }
}

/// Checks whether the crashes of stored groups still occur, by running the inputs of their entries
/// again.
pub struct Recheck<'a> {
    /// A function that returns the target and the way of execution with which the inputs of an
    /// entry are run; `None` leaves the entry out.
    pub subject: &'a (dyn Fn(&Entry) -> Option<(Target, Way)> + Sync),
    /// A function that tells why passing runs do not show that a group is fixed, because the
    /// program that is run seems to differ from the program that crashed. Returns `None` if there
    /// is no such doubt.
    pub doubt: &'a (dyn Fn(&Group) -> Option<&'a Unobservable> + Sync),
    /// The stored groups whose crashes are to be checked by running inputs again.
    pub groups: &'a [StoredGroup],
    /// Turns true when the user stops the call of ddfuzz; the remaining groups are then not
    /// checked.
    pub stop: &'a AtomicBool,
}

/// Greatest number of groups that are checked once more, one at a time, because they did not fail
/// as before when groups were checked in parallel. If one of them then fails as before, the limit
/// is dropped: all groups that did not fail as before are checked once more.
const CHECKED_ALONE: u32 = 8;

impl Recheck<'_> {
    /// Checks all groups with `jobs` worker threads, and returns the results in the order of the
    /// groups; `None` for groups that were not checked because the user stopped, or because they
    /// have no entries to check. Calls `progress` after each group with the number of checked
    /// groups.
    pub fn run(
        &self,
        jobs: usize,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Option<CheckedGroup>>, CampaignError> {
        let mut answers = vec![None; self.groups.len()];
        let work = |worker: &Worker<'_, _, _, CampaignError>| {
            let mut triagers = LastTriager::default();
            while let Some((at, group)) = worker.next_task() {
                worker.report((at, self.check_or_leave(&mut triagers, group)?));
            }
            Ok(())
        };
        let goes_on = || !self.stop.load(Ordering::Relaxed);
        let pool = TaskPool::new(jobs.min(self.groups.len()), &goes_on);
        pool.run(self.groups.iter().enumerate(), work, |report| {
            if let Some((at, checked)) = report.transpose()? {
                answers[at] = checked;
                progress(answers.iter().flatten().count() as u64);
            }
            Ok::<_, CampaignError>(())
        })?;
        if jobs > 1 {
            self.check_alone(&mut answers)?;
        }
        Ok(answers)
    }

    /// Checks each group that did not fail as before once more, while no other group is checked. If
    /// the group fails as before this time, replaces its result in `answers`: runs made at the same
    /// time have disturbed the first check. Stops after [`CHECKED_ALONE`] groups if none of them
    /// fails as before.
    fn check_alone(&self, answers: &mut [Option<CheckedGroup>]) -> Result<(), CampaignError> {
        let mut triagers = LastTriager::default();
        let (mut left, mut is_disturbed) = (CHECKED_ALONE, false);
        let passing = |held: &&mut CheckedGroup| {
            held.kind != Kind::Flaky && held.status < Status::Same && held.status != Status::Flaky
        };
        for (group, answer) in self.groups.iter().zip(answers) {
            let Some(held) = answer.as_mut().filter(passing) else {
                continue;
            };
            if left == 0 && !is_disturbed {
                break;
            }
            left = left.saturating_sub(1);
            let alone = self.check_or_leave(&mut triagers, group)?;
            if let Some(alone) = alone.filter(|alone| alone.status == Status::Same) {
                is_disturbed = true;
                *held = CheckedGroup {
                    is_disturbed,
                    ..alone
                };
            }
        }
        Ok(())
    }

    /// Checks one group as [`check`](Self::check) does, but returns `None`, too, if a run of this
    /// check was abandoned because the call of ddfuzz ends.
    fn check_or_leave(
        &self,
        triagers: &mut LastTriager,
        group: &StoredGroup,
    ) -> Result<Option<CheckedGroup>, CampaignError> {
        match self.check(triagers, group) {
            Err(CampaignError::Exec(ExecError::Abandoned)) => Ok(None),
            checked => checked,
        }
    }

    /// Checks one group: runs the reproducer and the original input of each of its
    /// [entries](StoredGroup) until one crashes as before. Returns the result of the input whose
    /// status is worst in the order of [`Status`]; `None` if the user stops, or the group has no
    /// entries to check.
    fn check(
        &self,
        triagers: &mut LastTriager,
        StoredGroup { group, entries }: &StoredGroup,
    ) -> Result<Option<CheckedGroup>, CampaignError> {
        let mut checked: Option<CheckedGroup> = None;
        let mut inputs = 0;
        for entry in entries {
            let Some((target, way)) = (self.subject)(entry) else {
                continue;
            };
            // A crash that a change has moved may still occur with the original input.
            let mut files = vec![entry.reproducer(), entry.original()];
            files.dedup();
            let mut result = None;
            for file in files {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let bytes = std::fs::read(&file).map_err(FileError::at("read", &file))?;
                let leaks = entry.crash.class.is_leak();
                let triager = triagers.triager(&target, way)?;
                let rate = known_rate(entry);
                let now = examined_at_rate(triager, &bytes, leaks, rate)?;
                inputs += 1;
                let conditions = triager.conditions(&bytes, &entry.crash)?;
                let doubt = (self.doubt)(group).cloned();
                let (mut status, mut doubt) = status(entry, &now, &conditions, doubt);
                if status == Status::Fixed
                    && let Some(why) = not_run(entry, &now, &bytes)
                {
                    (status, doubt) = (Status::CannotTell, Some(why));
                }
                if checked.as_ref().is_none_or(|held| status > held.status) {
                    checked = Some(CheckedGroup {
                        has_passing_result: matches!(result, Some(Status::Fixed | Status::Other)),
                        ..checked_group(group, entry, (status, doubt), &now, file)
                    });
                }
                if status == Status::Same {
                    break;
                }
                result = Some(status);
            }
            if checked
                .as_ref()
                .is_some_and(|held| held.status == Status::Same)
            {
                break;
            }
        }
        Ok(checked.map(|checked| CheckedGroup { inputs, ..checked }))
    }
}

/// Makes the result of checking `group` with one of its inputs, the `file` of `entry`. `status`
/// says whether the crash still occurs, `doubt` why this cannot be told (`None` if it can), and
/// `now` what the runs have shown.
fn checked_group(
    group: &Group,
    entry: &Entry,
    (status, doubt): (Status, Option<Unobservable>),
    now: &Examined,
    file: PathBuf,
) -> CheckedGroup {
    let (why, hint) = doubt.map(|doubt| (doubt.why, doubt.hint)).unzip();
    CheckedGroup {
        major: group.record.major.short(),
        kind: group.kind,
        class: group.record.class.to_string(),
        frame: place(&entry.crash),
        status,
        why,
        hint,
        now: now.crash.as_deref().map(shown),
        file: std::path::absolute(&file).unwrap_or(file),
        inputs: 0,
        utility: entry.crash.of.as_ref().map(|of| of.utility.clone()),
        came_back: None,
        has_passing_result: false,
        is_disturbed: false,
    }
}

/// The triager (which runs and classifies inputs) that a thread has started last. It is kept for
/// the next input of the same target.
#[derive(Default)]
struct LastTriager {
    held: Option<(Target, Way, Triager)>,
}

impl LastTriager {
    /// Returns a triager for `target`: the last one if it is for the same target and way of
    /// execution, otherwise a new one.
    fn triager(&mut self, target: &Target, way: Way) -> Result<&mut Triager, ExecError> {
        let held = match self.held.take() {
            Some((last, by, triager)) if last == *target && by == way => triager,
            _ => Triager::of_target(target, way)?,
        };
        let (_, _, triager) = self.held.insert((target.clone(), way, held));
        Ok(triager)
    }
}

/// Runs an input until it crashes, three times at most, and returns how it ended and the record of
/// its crash. With `leaks`, an input that does not crash is run once more to look for memory leaks.
pub fn examined(triager: &mut Triager, input: &[u8], leaks: bool) -> Result<Examined, ExecError> {
    triager.look_for_leaks(leaks);
    Ok(match triager.examine(input)? {
        Verdict::Crash(crash) => Examined {
            ended: crash.ended,
            tries: crash.tries,
            read: None,
            crash: Some(crash),
            other: None,
        },
        Verdict::Flaky { tries, ended, read } => Examined {
            ended,
            tries,
            read,
            other: None,
            crash: match ended {
                // The position at which time or memory ran out is unknown.
                Ended::Timeout | Ended::OutOfMemory => Some(Box::new(Crash {
                    hits: tries,
                    tries,
                    ..triager.untraced_record(ended)
                })),
                Ended::Exit(_) | Ended::Signal(_) => None,
            },
        },
    })
}

/// Greatest number of runs of a flaky input that are made to see its crash almost certainly. If
/// more would be needed, runs without a crash do not show that the crash is fixed.
const MAX_TRIES: u32 = 300;

/// Returns how often the input of an entry failed in its recorded runs. `None` if all of them
/// failed, or none of them.
fn known_rate(entry: &Entry) -> Option<Rate> {
    let tried = || Rate {
        hits: entry.crash.hits.into(),
        tries: entry.crash.tries.into(),
    };
    let rate = entry.minimized.as_ref().and_then(|outcome| outcome.flaky);
    let rate = rate.unwrap_or_else(tried);
    (0 < rate.hits && rate.hits < rate.tries).then_some(rate)
}

/// Returns how many runs are needed so that at least one fails with a probability of more than 999
/// in 1000. As the probability that a run fails, takes the lower end of the confidence interval of
/// `rate`. `None` if more than 300 runs are needed.
fn tries_needed(rate: Rate) -> Option<u32> {
    let passes = 1.0 - rate.lower_end();
    let tries = (0.001_f64.ln() / passes.ln()).ceil();
    (tries <= f64::from(MAX_TRIES)).then_some(tries as u32)
}

/// Runs an input until it crashes, three times at most; if its crash is known to occur only at a
/// certain `rate`, up to [`tries_needed`] times. Returns how it ended and the record of its crash.
/// `leaks`: whether memory leaks are looked for, too.
fn examined_at_rate(
    triager: &mut Triager,
    input: &[u8],
    leaks: bool,
    rate: Option<Rate>,
) -> Result<Examined, ExecError> {
    let mut now = examined(triager, input, leaks)?;
    let needed = rate.and_then(tries_needed).unwrap_or_default();
    while now.crash.is_none() && now.tries < needed {
        let more = examined(triager, input, leaks)?;
        now = Examined {
            tries: now.tries + more.tries,
            ..more
        };
    }
    Ok(now)
}

/// Compares the crash of `entry` with `now`, the result of running its input again under
/// `conditions`. Returns the status (fixed, cannot tell, flaky, another crash, or the same one)
/// and, only for "cannot tell", the reason. `doubt`: a reason, known before the run, why a run
/// without a crash says nothing.
fn status(
    entry: &Entry,
    now: &Examined,
    conditions: &Conditions,
    doubt: Option<Unobservable>,
) -> (Status, Option<Unobservable>) {
    let before = &entry.crash;
    let Some(crash) = now.crash.as_deref() else {
        // A flaky crash is not fixed just because a few tries do not show it.
        let needed = known_rate(entry).map(tries_needed);
        let is_certain = needed.map_or(entry.id.kind() != Kind::Flaky, |needed| {
            needed.is_some_and(|needed| now.tries >= needed)
        });
        if !is_certain {
            return (Status::Flaky, None);
        }
        return match before.unobservable(conditions).or(doubt) {
            None => (Status::Fixed, None),
            doubt => (Status::CannotTell, doubt),
        };
    };
    let comparable = before.is_comparable(conditions.instrumentation.as_deref());
    if !is_same(before, crash, comparable) {
        return match comparable {
            true => (Status::Other, None),
            false => (Status::CannotTell, Some(before.different_sanitizers())),
        };
    }
    match crash.hits < crash.tries {
        true => (Status::Flaky, None),
        false => (Status::Same, None),
    }
}

/// Exit statuses with which shells, `env` and loaders say that they could not execute a program or
/// load one of its libraries.
const NOT_EXECUTED: [i32; 2] = [126, 127];

/// Returns the reason why a passing run of `input`, with the result `now`, does not show that the
/// crash of `entry` is fixed; `None` if there is none. Either the exit status says that a program
/// or library could not be executed; or the run has read nothing of its input, and the crashing run
/// is not known to have read nothing, too.
fn not_run(entry: &Entry, now: &Examined, input: &[u8]) -> Option<Unobservable> {
    let hint = "run the program by hand on the input; a script may name a file that is missing, and \
                a program a configuration";
    let because = |why| Unobservable {
        why,
        hint: hint.to_owned(),
    };
    let ended = now.ended;
    if let Ended::Exit(status) = ended
        && NOT_EXECUTED.contains(&status)
        && ended != entry.crash.ended
    {
        return Some(because(format!(
            "the program ends with exit {status}, which says that a program or a library could not \
             be executed"
        )));
    }
    if input.is_empty() || now.read != Some(0) {
        return None;
    }
    let before = match has_read(entry) {
        Some(false) => return None,
        Some(true) => "it read some when it failed",
        None => "it is not recorded whether it did when it failed",
    };
    Some(because(format!(
        "the program ends with {ended} and reads nothing of its input; {before}"
    )))
}

/// Returns true if the program had read some of its input when it failed, and false if it had read
/// nothing. Taken from the crash record, or if it has no number, from the log of the entry's
/// minimization; `None` if neither tells.
fn has_read(entry: &Entry) -> Option<bool> {
    let logged = || {
        let lines = Log::read(&entry.log()).ok()?.lines;
        lines.into_iter().find_map(|(_, line)| match line {
            Line::Check(check) if check.what == What::Baseline => check.read,
            _ => None,
        })
    };
    let read = entry.crash.details.read.or_else(logged);
    read.map(|bytes| bytes > 0)
}

/// Returns true if two crash records are of the same bug, otherwise false. They are if they have
/// the same major key (hash that identifies a bug). So are two panics if the program was rebuilt
/// between them, they have the same class, and their messages match. So are two other crashes if
/// they have the same class, and one of these holds: the same source line; the same function names
/// (compared only after a rebuild, or if `before` has keys of an older version); or one of the two
/// has no frames. If the builds are not `comparable`, since their sanitizers differ, the same
/// source line is enough, even if the classes differ.
fn is_same(before: &Crash, now: &Crash, comparable: bool) -> bool {
    if before.keys.major == now.keys.major {
        return true;
    }
    let rebuilt = before.build().is_none() || before.build() != now.build();
    if let (Some(then), Some(panic)) = (&before.details.panic, &now.details.panic) {
        return before.class == now.class && rebuilt && then.may_have_moved_to(panic);
    }
    let older = is_older(before, now);
    let by_names = before.keys.stable.is_some() && before.keys.stable == now.keys.stable
        || older && own_names(before).eq(own_names(now));
    let line = |crash: &Crash| crash.innermost_own().and_then(|frame| frame.line.clone());
    let by_line =
        line(before).is_some() && line(before) == line(now) && place(before) == place(now);
    let nameless = before.frames.is_empty() || now.frames.is_empty();
    let same_class = before.class == now.class;
    same_class && ((rebuilt || older) && by_names || by_line || nameless) || by_line && !comparable
}

/// Returns true if the crashes `before` and `now` must be compared by function names, not by their
/// keys: the keys of `before` were made by an older version of the key algorithm, and include a key
/// of function names. Otherwise false.
fn is_older(before: &Crash, now: &Crash) -> bool {
    before.keys.version < now.keys.version && before.keys.stable.is_some()
}

/// Returns the function names of the three innermost stack frames in the user's code, innermost
/// first; `None` for a frame without a name.
fn own_names(crash: &Crash) -> impl Iterator<Item = Option<&str>> {
    let own = crash.frames.iter().filter(|frame| frame.own);
    own.take(3).map(|frame| frame.name.as_deref())
}

fn shown(crash: &Crash) -> CurrentFailure {
    CurrentFailure {
        class: crash.class.to_string(),
        major: crash.keys.major.short(),
        minor: crash.keys.minor.short(),
        frame: place(crash),
    }
}
