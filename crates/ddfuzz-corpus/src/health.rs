//! Inputs that crash, hang or use too much memory.
//!
//! They are triaged and filed into the groups of the output directory, as `ddfuzz watch --once`
//! does, and each new group is minimized. The cleaned corpus goes without them; the input
//! directory is only read.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Amount;
use crate::lock;
use ddfuzz_campaign::watch::{Others, Producing, Watching, watch};
use ddfuzz_campaign::{CampaignError, Deadline, Minimizing, Screen, When, identity, line_of};
use ddfuzz_exec::{Ended, Target};
use ddfuzz_minimize::Slip;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::regular;
use ddfuzz_store::{CrashLine, EntryId, Kind, KnownGroups, Store, StoreError, Triaged};
use ddfuzz_triage::{Class, Crash, Found, Key, Triager};

/// The fewest runs that are known of an input that fails sometimes: the two that failed, and the
/// tries between them.
const RUNS: u32 = 5;

/// How failing inputs are triaged, filed and minimized.
#[derive(Clone, Debug)]
pub struct Quarantining {
    /// When the groups are minimized. There is always one thread for it beside those that run
    /// inputs: [`When::Inline`] and [`When::Worker`] are the same.
    pub when: When,
    /// Threads that run inputs.
    pub jobs: usize,
    /// What is run, and how groups are minimized.
    pub minimizing: Minimizing,
    /// Groups to mute: they are counted and stored, not minimized.
    pub known: KnownGroups,
}

/// A group that inputs of the corpus belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiledGroup {
    /// Which kind of finding.
    pub kind: Kind,
    /// Which bug.
    pub major: Key,
    /// What kind of death.
    pub class: Class,
    /// Where in the user's code, as the first of them says.
    pub place: Option<String>,
    /// The inputs.
    pub amount: Amount,
}

/// What became of failing inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    /// Those that crash.
    pub crashes: Amount,
    /// Those over their time limit.
    pub hangs: Amount,
    /// Those over their memory limit.
    pub ooms: Amount,
    /// Those that fail sometimes.
    pub flaky: Amount,
    /// The groups that they belong to, by kind and key.
    pub groups: Vec<FiledGroup>,
    /// The group of each content that has one, in the order of examination.
    pub held: Vec<(ContentHash, Kind, Key)>,
    /// Those that did not fail on any try: they may be kept.
    pub well: Vec<ContentHash>,
    /// Those whose files were removed or changed.
    pub gone: Vec<ContentHash>,
    /// Whether the user stopped it; then what is not in any of these was not examined.
    pub interrupted: bool,
}

/// Triages `failing`, files them into the groups of the output directory, and minimizes each new
/// group within its budget; without any, it minimizes the remaining groups, slips included.
/// Inputs that the journal of the output directory has for `campaign` and the target are not run
/// again, so that a killed call is continued.
///
/// The order of examination, and so the first inputs of the groups, depends on the contents alone.
/// Each further input of a known minor key costs a single run.
///
/// A bundled program is to be installed in the store before.
///
/// # Errors
/// When the target cannot be run, or the output directory cannot be written; what was filed until
/// then is kept.
pub fn quarantine(
    store: &Mutex<Store>,
    campaign: &str,
    failing: &[FailingInput],
    settings: &Quarantining,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Quarantine, CampaignError> {
    let ordered = in_order(failing);
    let watching = Watching {
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
            Some(None) if input.again => {
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

/// By content, what the journal says of the crash; of several lines the last.
type Lines = HashMap<ContentHash, Option<CrashLine>>;

/// What the journal of the output directory says of this target.
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

/// Files an input as flaky that has ended badly again after it had ended well on every try: no
/// one has looked at it meanwhile. `None` where its file has another content by now.
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
        }),
        hits: 2,
        tries: RUNS,
        ..Triager::of_target(target, *way)?.untraced_record(input.ended)
    };
    let line = line_of(&crash);
    let mut store = lock(store);
    let filed = store.file(Kind::Flaky, &crash, &bytes)?;
    store.write_reproduce(&filed.id, &target.by_main())?;
    let (mut journal, lines) = store.triage_journal()?;
    journal.add(&Triaged {
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

/// The result, while inputs are sorted into it.
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
            .held
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

/// An input of a corpus that did not end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingInput {
    /// The file that has it; of several the one that reports are to name.
    pub path: PathBuf,
    /// Its content.
    pub content: ContentHash,
    /// Its length, in bytes.
    pub size: u64,
    /// How it ended.
    pub ended: Ended,
    /// Whether it was tried before, and ended well on every try. What ends badly after that now
    /// and then only is flaky, and does not get another chance.
    pub again: bool,
}

/// These in the order in which they are examined, which hangs on the contents alone: the shorter
/// ones first, and those of one length by their hashes. Each content stands once.
fn in_order(failing: &[FailingInput]) -> Vec<&FailingInput> {
    let mut ordered: Vec<&FailingInput> = failing.iter().collect();
    ordered.sort_by_cached_key(|input| (input.size, input.content.to_string(), input.path.clone()));
    ordered.dedup_by_key(|input| input.content);
    ordered
}

/// Files a candidate that crashed while the content `of` was trimmed: `test` is the index of its
/// test, `None` for a check. Gives its entry; `None` where the slip has no record, which stands
/// for another of the same keys, or for a crash that did not come again. The group is minimized by
/// the next [`quarantine`].
///
/// # Errors
/// When something cannot be written. Filing again then goes on where this call stopped.
pub fn file_slip(
    store: &Mutex<Store>,
    target: &Target,
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
    };
    let crash = Crash {
        found: Some(found),
        ..(**crash).clone()
    };
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let filed = store.file(Kind::of_class(&crash.class), &crash, &slip.input)?;
    store.write_reproduce(&filed.id, &target.by_main())?;
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
            again: false,
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
