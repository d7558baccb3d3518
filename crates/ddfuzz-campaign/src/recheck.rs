//! Runs the inputs of groups again, and compares.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::error::CampaignError;
use ddfuzz_exec::{Ended, ExecError, Target, Way};
use ddfuzz_model::files::FileError;
use ddfuzz_store::report::{CheckedGroup, Now, Status, place};
use ddfuzz_store::{Entry, Group, Kind, Reader, StoreError};
use ddfuzz_triage::{Conditions, Crash, Triager, Unobservable, Verdict};

/// How an input ended.
pub struct Examined {
    /// How the last try did.
    pub ended: Ended,
    /// Tries made.
    pub tries: u32,
    /// The crash, or the record of a run over its limits.
    pub crash: Option<Box<Crash>>,
}

/// What is to be run again.
pub struct Recheck<'a> {
    /// Where the groups are.
    pub reader: &'a Reader,
    /// What is run on the inputs of an entry, and by which way; an entry for which there is nothing
    /// is left out.
    pub subject: &'a (dyn Fn(&Entry) -> Option<(Target, Way)> + Sync),
    /// The groups to look at.
    pub groups: &'a [Group],
    /// Turns true when the user stops.
    pub stop: &'a AtomicBool,
}

impl Recheck<'_> {
    /// Checks all groups by `jobs` workers; the answers in the order of the groups, `None` where
    /// the user stopped before. `told` is called with the number of those that are done.
    ///
    /// # Errors
    /// When the target cannot be run, or an input cannot be read.
    pub fn run(
        &self,
        jobs: usize,
        told: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Option<CheckedGroup>>, CampaignError> {
        let next = AtomicUsize::new(0);
        let answers = Mutex::new(vec![None; self.groups.len()]);
        let work = || {
            let mut bench = LastTriager::default();
            while !self.stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(group) = self.groups.get(at) else {
                    break;
                };
                let checked = self.check(&mut bench, group).inspect_err(|_| {
                    next.store(self.groups.len(), Ordering::Relaxed); // the others may stop, too
                })?;
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers[at] = checked;
                let done = answers.iter().flatten().count() as u64;
                drop(answers);
                told(done);
            }
            Ok::<_, CampaignError>(())
        };
        std::thread::scope(|scope| {
            let jobs = jobs.min(self.groups.len());
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                worker.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            }
            Ok::<_, CampaignError>(())
        })?;
        Ok(answers.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks one group: what the worst of its representatives says, holds for it. `None` where
    /// the user stops in between, or the group has gone.
    fn check(
        &self,
        bench: &mut LastTriager,
        group: &Group,
    ) -> Result<Option<CheckedGroup>, CampaignError> {
        let mut checked: Option<CheckedGroup> = None;
        let mut inputs = 0;
        for entry in Recheck::entries(self.reader, group)? {
            let Some((target, way)) = (self.subject)(&entry) else {
                continue;
            };
            // What the change has moved a little may still fail with the whole input.
            let mut files = vec![entry.reproducer(), entry.original()];
            files.dedup();
            for file in files {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let bytes = std::fs::read(&file)
                    .map_err(FileError::at("read", &file))
                    .map_err(StoreError::from)?;
                let leaks = entry.crash.class.is_leak();
                let triager = bench.triager(&target, way)?;
                let now = examined(triager, &bytes, leaks)?;
                inputs += 1;
                let conditions = triager.conditions(&bytes, &entry.crash)?;
                let (status, doubt) = status(&entry, &now, &conditions);
                let (why, hint) = doubt.map(|doubt| (doubt.why, doubt.hint)).unzip();
                if checked.as_ref().is_none_or(|held| status > held.status) {
                    checked = Some(CheckedGroup {
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
                    });
                }
                if status == Status::Same {
                    break;
                }
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

    /// The entries that speak for a group: the representatives of its minor keys, and where several
    /// programs are in it one of each program that has none of these.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn entries(reader: &Reader, group: &Group) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        for id in group.representatives() {
            entries.extend(reader.entry(&id)?);
        }
        let utility = |entry: &Entry| entry.crash.of.as_ref().map(|of| of.utility.clone());
        if entries.iter().any(|entry| entry.crash.of.is_some()) {
            for entry in reader.entries(group.kind, &group.record.major.short())? {
                if entries.iter().all(|held| utility(held) != utility(&entry)) {
                    entries.push(entry);
                }
            }
        }
        Ok(entries)
    }
}

/// The triager of the program that a worker has started last.
#[derive(Default)]
struct LastTriager {
    held: Option<(Target, Way, Triager)>,
}

impl LastTriager {
    /// A triager of this target; the one at hand where it is of the same.
    fn triager(&mut self, target: &Target, way: Way) -> Result<&mut Triager, ExecError> {
        let held = match self.held.take() {
            Some((last, by, triager)) if last == *target && by == way => triager,
            _ => Triager::of_target(target, way)?,
        };
        let (_, _, triager) = self.held.insert((target.clone(), way, held));
        Ok(triager)
    }
}

/// Runs the input until it crashes, three times at most; and with `leaks`, if it does not, once
/// more to look for leaks.
///
/// # Errors
/// When the target cannot be run.
pub fn examined(triager: &mut Triager, input: &[u8], leaks: bool) -> Result<Examined, ExecError> {
    triager.look_for_leaks(leaks);
    Ok(match triager.examine(input)? {
        Verdict::Crash(crash) => Examined {
            ended: crash.ended,
            tries: crash.tries,
            crash: Some(crash),
        },
        Verdict::Flaky { tries, ended } => Examined {
            ended,
            tries,
            crash: match ended {
                // It is unknown where it was when its time or memory ran out.
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

/// What the runs of an entry's input under these conditions say of its bug; and where they say
/// nothing, why.
fn status(
    entry: &Entry,
    now: &Examined,
    conditions: &Conditions,
) -> (Status, Option<Unobservable>) {
    let before = &entry.crash;
    let Some(crash) = now.crash.as_deref() else {
        // What came once by chance is not fixed because it does not come in three tries.
        if entry.id.kind() == Kind::Flaky {
            return (Status::Flaky, None);
        }
        return match before.unobservable(conditions) {
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

/// Whether both are one bug: by the major key; where the program was rebuilt by the names of
/// functions; or by class and line. Runs of which nothing but the class is known are the same if
/// that is. Panics have words of their own to go by. Where the builds are not `comparable`, the
/// line alone has to be the same: each sanitizer has its own classes.
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

/// Whether a record is of an older version, whose keys may have taken in less, and has names.
fn is_older(before: &Crash, now: &Crash) -> bool {
    before.keys.version < now.keys.version && before.keys.stable.is_some()
}

/// Names of the innermost functions of the user's code.
fn own_names(crash: &Crash) -> impl Iterator<Item = Option<&str>> {
    let own = crash.frames.iter().filter(|frame| frame.own);
    own.take(3).map(|frame| frame.name.as_deref())
}

fn shown(crash: &Crash) -> Now {
    Now {
        class: crash.class.to_string(),
        major: crash.keys.major.short(),
        minor: crash.keys.minor.short(),
        frame: place(crash),
    }
}
