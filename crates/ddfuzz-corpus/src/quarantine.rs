//! Failing inputs of a corpus (crash, hang, out of memory): they are triaged and stored in the
//! groups of the output directory, as by `ddfuzz watch --once`, and each new group is minimized.
//! The cleaned corpus does not contain them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Amount;
use ddfuzz_campaign::watch::{Others, Producing, WatchSettings, watch};
use ddfuzz_campaign::{CampaignError, Deadline, Minimizing, Screen, When, identity, line_of};
use ddfuzz_exec::{Ended, Target};
use ddfuzz_minimize::Slip;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::regular;
use ddfuzz_model::pool::lock;
use ddfuzz_store::{CrashLine, EntryId, Kind, KnownGroups, Store, StoreError, Triaged};
use ddfuzz_triage::{Class, Crash, Found, Key, Triager};

/// Settings for triaging, storing and minimizing the failing inputs of a corpus.
#[derive(Clone, Debug)]
pub struct QuarantineSettings {
    /// When the crash groups are minimized. There is always one separate thread for it, so
    /// [`When::Inline`] and [`When::Worker`] are the same.
    pub when: When,
    /// Number of worker threads that run inputs.
    pub jobs: usize,
    /// The target that inputs are run with, and how new crash groups are minimized.
    pub minimizing: Minimizing,
    /// Crash groups that the user knows already; their inputs are counted and stored, but the
    /// groups are not minimized.
    pub known: KnownGroups,
}

/// A group of failing inputs with the same bug, and the number of its inputs in the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiledGroup {
    /// Kind of failure: crash, hang, out of memory or flaky.
    pub kind: Kind,
    /// Major key of the group: the hash of stack frames that identifies the bug.
    pub major: Key,
    /// Class of the group's crash, such as heap-buffer-overflow.
    pub class: Class,
    /// Source location in the user's code at which the group's first input crashed; `None` if
    /// unknown.
    pub place: Option<String>,
    /// Number and total size of the group's inputs.
    pub amount: Amount,
}

/// What triage found about the failing inputs of a corpus: their number by kind, and their crash
/// groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    /// Number and total size of inputs that crash.
    pub crashes: Amount,
    /// Number and total size of inputs that exceed the time limit.
    pub hangs: Amount,
    /// Number and total size of inputs that exceed the memory limit.
    pub ooms: Amount,
    /// Number and total size of inputs that fail in some of their runs only.
    pub flaky: Amount,
    /// The crash groups of all failing inputs, sorted by kind of failure and major key (the hash
    /// that identifies the bug).
    pub groups: Vec<FiledGroup>,
    /// For each failing content that was stored: its hash, the kind of failure, and the major key
    /// (the hash that identifies its crash group), in the order of examination.
    pub stored: Vec<(ContentHash, Kind, Key)>,
    /// Hashes of the contents of inputs that did not fail when they were triaged; a cleanup may
    /// keep them.
    pub well: Vec<ContentHash>,
    /// Hashes of the contents of failing inputs whose files were removed or changed meanwhile, so
    /// that the inputs could not be stored.
    pub gone: Vec<ContentHash>,
    /// Whether the user stopped the triage of a corpus's failing inputs; inputs that are in none of
    /// `stored`, `well` and `gone` were not examined then.
    pub interrupted: bool,
}

/// Triages `failing`, stores them in the groups of the output directory, and minimizes each new
/// group within its budget. If `failing` is empty, minimizes the groups that have no minimized
/// result yet, including those of crashes that trimming caused. Inputs that the triage journal has
/// for `campaign` and the target are not run again, so an interrupted call is continued.
///
/// The order of examination depends on the contents only. An input that crashes with a known minor
/// key (finer hash of crashes in a group) takes only one run. A bundled target must be installed in
/// the store before.
///
/// # Errors
/// When the target cannot be run, or the output directory cannot be written; inputs stored before
/// the error are kept.
pub fn quarantine(
    store: &Mutex<Store>,
    campaign: &str,
    failing: &[FailingInput],
    settings: &QuarantineSettings,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Quarantine, CampaignError> {
    let ordered = in_order(failing);
    let watching = WatchSettings {
        sources: ordered.iter().map(|input| input.path.clone()).collect(),
        max_len: ordered.last().map_or(0, |input| input.size),
        leaks: false,
        time: None,
        deadline: Deadline::default(),
        until: Vec::new(),
        when: settings.when,
        jobs: settings.jobs,
        minimizing: settings.minimizing.clone(),
        known: settings.known.clone(),
        waits_for_room: false,
    };
    let mut nobody = Others(Producing::Ended);
    watch(store, campaign, &watching, &mut nobody, screen, stop)?;
    let lines = lines(store, campaign, &settings.minimizing)?;
    let mut found = Sorting::default();
    for input in ordered {
        match lines.get(&input.content) {
            Some(Some(line)) => found.hold(input, line),
            Some(None) if input.passed_before => {
                let line = file_as_flaky(store, campaign, input, &settings.minimizing)?;
                match line {
                    Some(line) => found.hold(input, &line),
                    None => found.result.gone.push(input.content),
                }
            }
            Some(None) => found.result.well.push(input.content),
            None if stop.load(Ordering::Relaxed) => {}
            None => found.result.gone.push(input.content),
        }
    }
    Ok(found.finish(stop.load(Ordering::Relaxed)))
}

/// What the triage journal says of each input, by the hash of its content: its last recorded crash,
/// or `None` if it did not fail.
type Lines = HashMap<ContentHash, Option<CrashLine>>;

/// Reads from the triage journal which inputs of this campaign were triaged with this target, and
/// the last crash recorded for each of them.
fn lines(
    store: &Mutex<Store>,
    campaign: &str,
    minimizing: &Minimizing,
) -> Result<Lines, CampaignError> {
    let target = identity(&minimizing.target)?;
    let (_, lines) = lock(store).triage_journal()?;
    let ours = |line: &Triaged| {
        line.v == Triaged::VERSION && line.campaign == campaign && line.target == target
    };
    let ours = lines.into_iter().filter(ours);
    Ok(ours.map(|line| (line.input, line.crash)).collect())
}

/// Stores as flaky an input that failed in a run of the cleanup, but not in triage. Its crash
/// record counts only the run that failed, since it is not known how often the input fails. Returns
/// the crash as the triage journal records it; `None` if the input's file has another content by
/// now.
fn file_as_flaky(
    store: &Mutex<Store>,
    campaign: &str,
    input: &FailingInput,
    minimizing: &Minimizing,
) -> Result<Option<CrashLine>, CampaignError> {
    let bytes = regular::read(&input.path, input.size);
    let Some(bytes) = bytes
        .ok()
        .filter(|bytes| ContentHash::of(bytes) == input.content)
    else {
        return Ok(None);
    };
    let Minimizing { target, way, .. } = minimizing;
    let crash = Crash {
        found: Some(Found::File {
            path: input.path.clone(),
            campaign: Some(campaign.to_owned()),
        }),
        ..Triager::of_target(target, *way)?.untraced_record(input.ended)
    };
    let line = CrashLine {
        kind: Kind::Flaky,
        ..line_of(&crash)
    };
    let mut store = lock(store);
    let filed = store.file(Kind::Flaky, &crash, &bytes)?;
    store.write_reproduce(&filed.id, &target.with_main_arguments())?;
    let (mut journal, lines) = store.triage_journal()?;
    journal.add(&Triaged {
        leaks: false,
        v: Triaged::VERSION,
        campaign: campaign.to_owned(),
        target: identity(target)?,
        input: input.content,
        size: input.size,
        ended: input.ended,
        hits: crash.hits,
        tries: crash.tries,
        examined: false,
        crash: Some(line.clone()),
    })?;
    journal.sync()?;
    let same = |other: &Triaged| {
        let crash = other.crash.as_ref();
        let same = |it: &CrashLine| it.kind == Kind::Flaky && it.major == line.major;
        other.campaign == campaign && other.input != input.content && crash.is_some_and(same)
    };
    let runs = 1 + lines.iter().filter(|line| same(line)).count() as u64;
    store.set_seen(Kind::Flaky, line.major, campaign, runs)?;
    Ok(Some(line))
}

/// Builds a [`Quarantine`]: counts failing inputs by kind and by crash group, as they are added one
/// by one.
#[derive(Default)]
struct Sorting {
    result: Quarantine,
    groups: BTreeMap<(Kind, String), FiledGroup>,
}

impl Sorting {
    fn hold(&mut self, input: &FailingInput, line: &CrashLine) {
        let amount = match line.kind {
            Kind::Crash => &mut self.result.crashes,
            Kind::Hang => &mut self.result.hangs,
            Kind::Oom => &mut self.result.ooms,
            Kind::Flaky => &mut self.result.flaky,
        };
        amount.add(input.size);
        self.result
            .stored
            .push((input.content, line.kind, line.major));
        let group = self.groups.entry((line.kind, line.major.short()));
        let group = group.or_insert_with(|| FiledGroup {
            kind: line.kind,
            major: line.major,
            class: line.class.clone(),
            place: line.place.clone(),
            amount: Amount::default(),
        });
        group.amount.add(input.size);
    }

    fn finish(self, interrupted: bool) -> Quarantine {
        Quarantine {
            groups: self.groups.into_values().collect(),
            interrupted,
            ..self.result
        }
    }
}

/// An input of a corpus whose run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingInput {
    /// Path of a file of the corpus with the failing content.
    pub path: PathBuf,
    /// Hash of the failing content.
    pub content: ContentHash,
    /// Length of the failing content, in bytes.
    pub size: u64,
    /// How the failing run of the input ended: by a signal, an exit status, or a limit.
    pub ended: Ended,
    /// Whether an earlier run of the input did not fail. If so, and if triage finds no failure, the
    /// input is stored as flaky; if not, such an input counts as not failing.
    pub passed_before: bool,
}

/// Returns failing inputs in the order in which they are examined, by size and hash of the content,
/// without duplicates.
fn in_order(failing: &[FailingInput]) -> Vec<&FailingInput> {
    let mut ordered: Vec<&FailingInput> = failing.iter().collect();
    ordered.sort_by_cached_key(|input| (input.size, input.content.to_string(), input.path.clone()));
    ordered.dedup_by_key(|input| input.content);
    ordered
}

/// Stores a crash that occurred while the content `of` was trimmed. `test` is the number of the
/// test whose candidate crashed (`None` for a check), and `campaign` the id of the cleanup's
/// campaign. Returns the id of the stored crash; `None`, and stores nothing, if `slip` has no crash
/// record. The crash's group is minimized by the next call of [`quarantine`].
///
/// # Errors
/// When a file cannot be written; another call continues.
pub fn file_slip(
    store: &Mutex<Store>,
    target: &Target,
    campaign: &str,
    of: ContentHash,
    slip: &Slip,
    test: Option<u64>,
) -> Result<Option<EntryId>, StoreError> {
    let Some(crash) = &slip.crash else {
        return Ok(None);
    };
    let found = Found::Slip {
        of: of.short().to_string(),
        test,
        campaign: Some(campaign.to_owned()),
    };
    let crash = Crash {
        found: Some(found),
        ..(**crash).clone()
    };
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let filed = store.file(Kind::of_class(&crash.class), &crash, &slip.input)?;
    store.write_reproduce(&filed.id, &target.with_main_arguments())?;
    Ok(Some(filed.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_hangs_on_contents_alone() {
        let input = |path: &str, text: &[u8]| FailingInput {
            path: path.into(),
            content: ContentHash::of(text),
            size: text.len() as u64,
            ended: Ended::Timeout,
            passed_before: false,
        };
        let mut failing = vec![
            input("z", b"one"),
            input("a", b"three"),
            input("m", b"two"),
            input("b", b"one"),
        ];
        let names = |failing: &[FailingInput]| -> Vec<PathBuf> {
            in_order(failing)
                .iter()
                .map(|input| input.path.clone())
                .collect()
        };
        let before = names(&failing);
        failing.reverse();
        assert_eq!(names(&failing), before);
        assert_eq!(before.len(), 3);
        assert_eq!(before.last(), Some(&PathBuf::from("a")));
        assert!(before.contains(&PathBuf::from("b")), "{before:?}");
    }
}
