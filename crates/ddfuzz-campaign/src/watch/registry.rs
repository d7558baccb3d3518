//! What is known of all contents: the ledger of groups, and the journal of what was run.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::campaign_state::{CampaignState, Stored, lock};
use crate::classifier::Classified;
use crate::error::CampaignError;
use crate::verdict::{Judged, identity, kind_of, line_of};
use crate::watch::ExaminedInput;
use ddfuzz_exec::{Ended, Target};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::{CrashLine, Kind, Store, StoreError, TriageJournal, Triaged};
use ddfuzz_triage::{Found, Key};

/// What is known of one way into one bug.
struct KnownCrash {
    line: CrashLine,
    ended: Ended,
}

/// The groups and contents that one call knows.
pub(super) struct ContentRegistry<'a> {
    store: &'a Mutex<Store>,
    campaign: String,
    target: &'a Target,
    identity: ContentHash,
    pub(super) ledger: CampaignState<'a>,
    journal: TriageJournal,
    /// Contents that were run, or are being run.
    contents: HashSet<ContentHash>,
    /// By major and minor key, of what crashes each time.
    routes: HashMap<(Key, Key), KnownCrash>,
}

impl<'a> ContentRegistry<'a> {
    /// Reads what earlier calls of the campaign have done. Their counts are those of the journal,
    /// which is never behind what is filed by more than one input.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
        target: &'a Target,
    ) -> Result<ContentRegistry<'a>, CampaignError> {
        let identity = identity(target)?;
        let mut ledger = CampaignState::open(store, campaign)?;
        // Only campaigns that make inputs record a greatest length, and count runs by number.
        if ledger.checkpoint.max_len.is_some() {
            return Err(CampaignError::NoWatch);
        }
        let (journal, mut lines) = lock(store).triage_journal()?;
        lines.retain(|line| line.v == Triaged::VERSION && line.campaign == campaign);
        let done = lines.len() as u64;
        let mut counts: HashMap<(Kind, Key), u64> = HashMap::new();
        let (mut contents, mut routes) = (HashSet::new(), HashMap::new());
        for line in lines {
            if let Some(crash) = &line.crash {
                *counts.entry((crash.kind, crash.major)).or_default() += 1;
            }
            if line.target != identity {
                // Run by another build, or within other limits.
                continue;
            }
            contents.insert(line.input);
            let steady = line.crash.filter(|crash| crash.kind != Kind::Flaky);
            if let Some(crash) = steady {
                let ended = line.ended;
                let route = KnownCrash { line: crash, ended };
                routes.insert((route.line.major, route.line.minor), route);
            }
        }
        for ((kind, major), count) in counts {
            ledger.checkpoint.raise_count(kind, major.short(), count);
        }
        ledger.checkpoint.next = ledger.checkpoint.next.max(done);
        ledger.checkpoint.begin_count(None);
        Ok(ContentRegistry {
            store,
            campaign: campaign.to_owned(),
            target,
            identity,
            ledger,
            journal,
            contents,
            routes,
        })
    }

    /// The program is another one: what is known of contents was the earlier one's.
    pub(super) fn begin_anew(&mut self) -> Result<(), CampaignError> {
        self.identity = identity(self.target)?;
        self.contents.clear();
        self.routes.clear();
        Ok(())
    }

    /// The keys of which a record is at hand.
    pub(super) fn steady_keys(&self) -> HashSet<(Key, Key)> {
        self.routes.keys().copied().collect()
    }

    /// Whether a content is to be run; it counts as taken then.
    pub(super) fn take(&mut self, content: ContentHash) -> bool {
        self.contents.insert(content)
    }

    /// The result of an input: a finding, where it did not pass, and the line of the journal.
    pub(super) fn read(&self, answer: &ExaminedInput) -> (Option<Classified>, Triaged) {
        let mut line = Triaged {
            v: Triaged::VERSION,
            campaign: self.campaign.clone(),
            target: self.identity,
            input: answer.task.content,
            size: answer.task.bytes.len() as u64,
            ended: Ended::Exit(0),
            hits: 1,
            tries: 1,
            examined: false,
            crash: None,
        };
        let examined = match &answer.judged {
            Judged::Again(major, minor) => {
                // Its examiner has a record, and what that reported before is committed.
                let what = self.routes.get(&(*major, *minor)).map(|route| {
                    line.crash = Some(route.line.clone());
                    line.ended = route.ended;
                    let (kind, major) = (route.line.kind, route.line.major);
                    Classified::Known { kind, major }
                });
                return (what, line);
            }
            Judged::New(examined) => examined,
        };
        let crash = examined.crash.as_ref();
        line.examined = true;
        line.ended = crash.map_or(examined.ended, |crash| crash.ended);
        line.hits = crash.map_or(0, |crash| crash.hits);
        line.tries = examined.tries;
        line.crash = crash.map(|crash| line_of(crash));
        let what = crash.map(|crash| match kind_of(crash) {
            Kind::Flaky => Classified::Flaky(crash.clone()),
            _ => Classified::Crash(crash.clone()),
        });
        (what, line)
    }

    /// Files a finding where it has its own entry, and counts it. It may be done again where
    /// it has failed.
    pub(super) fn file(
        &mut self,
        answer: &ExaminedInput,
        what: &Classified,
    ) -> Result<Option<Stored>, StoreError> {
        let path = answer.task.file.path.clone();
        let found = Found::File { path };
        self.ledger.take(what, &answer.task.bytes, found)
    }

    /// Writes the script that shows a finding.
    pub(super) fn write_script(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let target = self.target.by_main();
        lock(self.store)
            .write_reproduce(&stored.id, &target)
            .map(drop)
    }

    /// Records what is done, after all else: a call that is killed before runs the input again, and
    /// files it in the same place.
    pub(super) fn note(&mut self, line: &Triaged) -> Result<(), StoreError> {
        self.journal.add(line)?;
        self.ledger.checkpoint.next += 1;
        let steady = line
            .crash
            .as_ref()
            .filter(|crash| crash.kind != Kind::Flaky);
        if let Some(crash) = steady {
            let known = self.routes.entry((crash.major, crash.minor));
            known.or_insert_with(|| KnownCrash {
                line: crash.clone(),
                ended: line.ended,
            });
        }
        Ok(())
    }

    /// Saves the counts, and writes the journal through to the device. `ended`: whether the call
    /// is complete.
    pub(super) fn save(&mut self, ended: bool) -> Result<(), StoreError> {
        self.journal.sync()?;
        match ended {
            true => self.ledger.end_call(),
            false => self.ledger.save(),
        }
    }
}
