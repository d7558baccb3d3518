//! Classifies runs that did not pass, and hands them in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::desk::{Desk, Report};
use crate::error::CampaignError;
use crate::ledger::lock;
use ddfuzz_exec::{Copies, Ended, Target, Way};
use ddfuzz_model::files::Base64;
use ddfuzz_store::{EntryId, Kind};
use ddfuzz_triage::{Class, Crash, Key, Keys, Quick, Triager, Verdict};

/// Between two requests for what was handed in elsewhere.
const ASKED_EVERY: Duration = Duration::from_secs(1);

/// An input whose run did not pass.
pub(super) struct Finding<'a> {
    pub(super) input: &'a [u8],
    /// Which run, from 0.
    pub(super) run: u64,
    /// What the fuzzer calls the input.
    pub(super) name: &'a str,
    /// How it ended then; `None` where that is unknown: then a run that does not crash again has no
    /// class.
    pub(super) ended: Option<Ended>,
    /// What else was seen of it.
    pub(super) seen: Seen,
}

/// A finding that was stored.
pub(super) struct FiledFinding {
    pub(super) id: EntryId,
    pub(super) class: Class,
    pub(super) keys: Keys,
}

/// The result of handing in a finding.
pub(super) enum FindingOutcome {
    /// Filed: the first of its way into a bug, or smaller than what was stored.
    Filed(Box<FiledFinding>),
    /// Counted only.
    Counted,
    /// Nothing: it is no crash, or does not crash again and it is unknown how it had ended.
    Unseen,
}

/// Classifies findings for one desk. Which ways into bugs are known is remembered, so that most
/// findings cost one run, and no question.
pub(super) struct FindingClassifier {
    triager: Triager,
    crash_exit: Option<i32>,
    /// Inputs of at least so many bytes are not kept, by kind, major and minor key.
    known: HashMap<(Kind, Key, Key), u64>,
    asked: Option<Instant>,
}

impl FindingClassifier {
    pub(super) fn new(target: &Target, way: Way) -> Result<FindingClassifier, CampaignError> {
        Ok(FindingClassifier {
            triager: Triager::of_target(target, way)?,
            crash_exit: target.crash_exit,
            known: HashMap::new(),
            asked: None,
        })
    }

    /// Classifies a finding and hands it in. The desk is locked for moments only.
    pub(super) fn take<D: Desk>(
        &mut self,
        desk: &Mutex<D>,
        finding: &Finding<'_>,
    ) -> Result<FindingOutcome, CampaignError> {
        let size = finding.input.len() as u64;
        match self.triager.key(finding.input)? {
            Quick::Crash {
                class,
                major,
                minor,
            } => {
                let kind = Kind::of_class(&class);
                if self.is_known(desk, (kind, major, minor), size)? {
                    lock(desk).count(kind, major, 1)?;
                    return Ok(FindingOutcome::Counted);
                }
            }
            // Only suspected, and no crash by what it said.
            Quick::Ended(_) if finding.ended.is_some_and(|ended| self.is_plain_exit(ended)) => {
                return Ok(FindingOutcome::Unseen);
            }
            Quick::Ended(_) => {}
        }
        let (kind, crash) = match self.triager.examine(finding.input)? {
            Verdict::Crash(crash) => (Kind::of_class(&crash.class), *crash),
            Verdict::Flaky { .. } => match finding.ended {
                Some(ended) => (Kind::Flaky, self.seen_once(ended, &finding.seen)),
                None => return Ok(FindingOutcome::Unseen),
            },
        };
        self.hand_in(desk, kind, crash, finding)
    }

    /// Hands a finding in that cannot be classified now, as one that was seen once.
    pub(super) fn hand_in_unnamed<D: Desk>(
        &mut self,
        desk: &Mutex<D>,
        finding: &Finding<'_>,
    ) -> Result<FindingOutcome, CampaignError> {
        let Some(ended) = finding.ended else {
            return Ok(FindingOutcome::Unseen);
        };
        let crash = self.seen_once(ended, &finding.seen);
        self.hand_in(desk, Kind::Flaky, crash, finding)
    }

    fn hand_in<D: Desk>(
        &mut self,
        desk: &Mutex<D>,
        kind: Kind,
        crash: Crash,
        finding: &Finding<'_>,
    ) -> Result<FindingOutcome, CampaignError> {
        let report = Report {
            kind,
            crash: &crash,
            input: finding.input,
            run: finding.run,
            name: finding.name,
        };
        let filed = lock(desk).hand_in(&report)?;
        // Filed or not, one of this size is not kept again.
        let size = finding.input.len() as u64;
        self.learn((kind, crash.keys.major, crash.keys.minor), size);
        Ok(match filed {
            Some(id) => FindingOutcome::Filed(Box::new(FiledFinding {
                id,
                class: crash.class,
                keys: crash.keys,
            })),
            None => FindingOutcome::Counted,
        })
    }

    /// Whether a run that ended so may be a crash, and is worth being classified.
    pub(super) fn suspects(&self, ended: Ended) -> bool {
        matches!(ended, Ended::Timeout | Ended::OutOfMemory) || self.triager.suspects(ended)
    }

    fn is_plain_exit(&self, ended: Ended) -> bool {
        ended.is_exit() && !ended.is_crash(self.crash_exit)
    }

    /// The record of a crash that did not come again.
    fn seen_once(&mut self, ended: Ended, seen: &Seen) -> Crash {
        Crash {
            // What a shared process remembers of them may be why it died.
            preceding: seen.preceding.clone(),
            ..self
                .triager
                .record_from_copies(ended, seen.copies.as_deref())
        }
    }

    /// Whether an input of this size is not kept; asks the desk now and then. Larger ones are kept
    /// again once a minimization has ended.
    fn is_known<D: Desk>(
        &mut self,
        desk: &Mutex<D>,
        key: (Kind, Key, Key),
        size: u64,
    ) -> Result<bool, CampaignError> {
        if self
            .asked
            .is_none_or(|asked| asked.elapsed() >= ASKED_EVERY)
        {
            for known in lock(desk).known()? {
                let key = (known.kind, known.major, known.minor);
                self.known.insert(key, known.least);
            }
            self.asked = Some(Instant::now());
        }
        let least = self.known.get(&key);
        Ok(least.is_some_and(|least| size >= *least))
    }

    fn learn(&mut self, key: (Kind, Key, Key), size: u64) {
        let least = self.known.entry(key).or_insert(size);
        *least = size.min(*least);
    }
}

/// What was seen of one run.
#[derive(Clone, Default)]
pub struct Seen {
    /// How it ended.
    pub ended: Option<Ended>,
    /// The copies of itself that the dying process has left.
    pub copies: Option<Arc<Copies>>,
    /// The inputs that its process had run before, oldest first.
    pub preceding: Vec<Base64>,
}

/// Where an executor leaves what it has seen of each run that did not pass, for the records of
/// crashes that do not come again: those are seen only once. Clones are the same place.
#[derive(Clone, Default)]
pub struct Sight(Arc<Mutex<Seen>>);

impl Sight {
    /// Leaves what was seen of a run, in place of the one before.
    pub fn leave(&self, seen: Seen) {
        *lock(&self.0) = seen;
    }

    /// How the run ended whose crash snapshots were not taken yet.
    pub(crate) fn ended(&self) -> Option<Ended> {
        lock(&self.0).ended
    }

    /// Takes it away.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *lock(&self.0))
    }
}
