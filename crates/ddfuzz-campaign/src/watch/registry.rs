//! The contents and crashes that a watch knows: which files were run (the journal of triage), and
//! the groups of the campaign.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use crate::{
    CampaignError, CampaignState, Classified, Judged, Stored, identity, kind_of, line_of, lock,
    mark_as_run, watch::ExaminedInput,
};
use ddfuzz_exec::{Ended, Target};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::{CrashLine, Kind, Store, StoreError, TriageJournal, Triaged};
use ddfuzz_triage::{Found, Key};

/// Which file contents a watch has run, and the crashes and groups that they led to.
pub(super) struct ContentRegistry<'a> {
    store: &'a Mutex<Store>,
    name: String,
    target: &'a Target,
    /// Hash of the target: its program, arguments, environment and limits.
    identity: ContentHash,
    pub(super) campaign: CampaignState<'a>,
    journal: TriageJournal,
    /// Hashes of the file contents that were run or are being run. The value is true if a search
    /// for memory leaks would show nothing more, because leaks were looked for or the run crashed.
    contents: HashMap<ContentHash, bool>,
    /// Known crashes that reproduce each time, as the journal of triage (record of the inputs run)
    /// has them, by their major and minor keys (coarse and fine hashes).
    crashes: HashMap<(Key, Key), CrashLine>,
    /// Size in bytes of the smallest input for which earlier calls have made a full crash record,
    /// by the major key (hash that identifies a bug) of its group.
    least: HashMap<Key, u64>,
}

impl<'a> ContentRegistry<'a> {
    /// Opens the registry of the contents that were run on `target`, for the campaign with the id
    /// `name`: reads from the journal of triage which contents earlier calls of ddfuzz have run,
    /// and counts the runs of each group. The journal lacks at most one input, whose finding was
    /// stored just before a call was killed. Fails if the output directory belongs to a campaign of
    /// `ddfuzz run`.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        name: &str,
        target: &'a Target,
    ) -> Result<ContentRegistry<'a>, CampaignError> {
        let mut campaign = CampaignState::open(store, name)?;
        // Only campaigns that make inputs record a greatest length, and count runs by number.
        if campaign.checkpoint.max_len.is_some() {
            return Err(CampaignError::NoWatch);
        }
        let (journal, mut lines) = lock(store).triage_journal()?;
        lines.retain(|line| line.v == Triaged::VERSION && line.campaign == name);
        let done = lines.len() as u64;
        let mut counts: HashMap<(Kind, Key), u64> = HashMap::new();
        for crash in lines.iter().filter_map(|line| line.crash.as_ref()) {
            *counts.entry((crash.kind, crash.major)).or_default() += 1;
        }
        for ((kind, major), count) in counts {
            campaign.checkpoint.raise_count(kind, major.short(), count);
        }
        campaign.checkpoint.next = campaign.checkpoint.next.max(done);
        campaign.checkpoint.begin_count(None);
        let mut registry = ContentRegistry {
            store,
            name: name.to_owned(),
            target,
            identity: identity(target)?,
            campaign,
            journal,
            contents: HashMap::new(),
            crashes: HashMap::new(),
            least: HashMap::new(),
        };
        lines.into_iter().for_each(|line| registry.recall(line));
        Ok(registry)
    }

    /// Updates the registry after the program's file was replaced: keeps only what the journal of
    /// triage (record of the inputs run) records for the present build (the contents that were run
    /// with it, and their crashes). A content that was handed out and is not in the journal is run
    /// again.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.identity = identity(self.target)?;
        self.contents.clear();
        self.crashes.clear();
        self.least.clear();
        let reader = lock(self.store).reader().clone();
        for line in reader.triaged()? {
            if line.v == Triaged::VERSION && line.campaign == self.name {
                self.recall(line);
            }
        }
        Ok(self.forget_gone()?)
    }

    /// Forgets the crashes of groups that do not fail any more with the present build. The next
    /// crash in such a group is then examined in full and stored.
    pub(super) fn forget_gone(&mut self) -> Result<(), StoreError> {
        let failures = self.campaign.failures()?;
        self.crashes
            .retain(|_, known| !failures.is_gone(known.kind, &known.major.short()));
        let is_gone = |major: &Key| failures.is_gone(Kind::Crash, &major.short());
        self.least.retain(|major, _| !is_gone(major));
        Ok(())
    }

    /// Adds what `line` of the journal of triage (record of the inputs run) says of a content, if
    /// the line was written for the present build, arguments, environment and limits of the target;
    /// otherwise does nothing.
    fn recall(&mut self, line: Triaged) {
        if line.target != self.identity {
            return;
        }
        let may_leak = line.leaks || line.crash.is_some();
        self.contents.insert(line.input, may_leak);
        let steady = line.crash.filter(|crash| crash.kind != Kind::Flaky);
        if let Some(crash) = steady {
            if crash.kind == Kind::Crash && line.examined {
                let held = self.least.entry(crash.major).or_insert(line.size);
                *held = line.size.min(*held);
            }
            self.crashes.insert((crash.major, crash.minor), crash);
        }
    }

    /// Returns the major and minor keys (coarse and fine hashes) of known crashes that reproduce
    /// each time.
    pub(super) fn steady_keys(&self) -> HashSet<(Key, Key)> {
        self.crashes.keys().copied().collect()
    }

    /// Returns the size in bytes of the smallest input for which earlier calls have made a full
    /// crash record, by the major key (hash that identifies a bug) of its group.
    pub(super) fn least_sizes(&self) -> HashMap<Key, u64> {
        self.least.clone()
    }

    /// Marks a content, given by its hash, as run and, if `leaks` is true, as searched for memory
    /// leaks. Returns true if the caller has to run it: it was not marked before, or not as
    /// searched for leaks although `leaks` is true ([`mark_as_run`]). Otherwise returns false.
    pub(super) fn mark(&mut self, content: ContentHash, leaks: bool) -> bool {
        mark_as_run(&mut self.contents, content, leaks)
    }

    /// Converts the result of an examined input to two things: the classified run, which is to be
    /// counted and stored (`None` if the input passed), and the line for the journal of triage
    /// (record of the inputs run).
    pub(super) fn interpret(&self, answer: &ExaminedInput) -> (Option<Classified>, Triaged) {
        let mut line = Triaged {
            v: Triaged::VERSION,
            campaign: self.name.clone(),
            target: self.identity,
            input: answer.task.content,
            size: answer.task.bytes.len() as u64,
            ended: Ended::Exit(0),
            hits: 1,
            tries: 1,
            examined: false,
            crash: None,
            leaks: answer.leaks,
        };
        let examined = match &answer.judged {
            Judged::Again { variant, ended } => {
                // What the examiner has reported before is committed, so the record is there.
                let what = self.crashes.get(variant).map(|known| {
                    line.crash = Some(known.clone());
                    line.ended = *ended;
                    let (kind, major) = (known.kind, known.major);
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

    /// Counts the finding `what` of an examined input in its group. Stores the input if its minor
    /// key (finer hash of crashes) is new, among the first 16 of the group, or if it is a crash
    /// smaller than all stored inputs of the group. If an earlier run of the input (in `answer`)
    /// has crashed in an unknown group, first stores its crash as a flaky one. Returns the stored
    /// entry of `what`; `None` if the input is not stored. After an error the call may be repeated.
    pub(super) fn file(
        &mut self,
        answer: &ExaminedInput,
        what: &Classified,
    ) -> Result<Option<Stored>, StoreError> {
        let path = answer.task.file.path.clone();
        let campaign = Some(self.name.clone());
        let found = Found::File { path, campaign };
        if let Judged::New(examined) = &answer.judged
            && let Some(other) = &examined.other
            && !self
                .crashes
                .keys()
                .any(|(major, _)| *major == other.keys.major)
        {
            let once = Classified::Flaky(other.clone());
            self.campaign
                .commit_found(&once, &answer.task.bytes, found.clone())?;
        }
        self.campaign.commit_found(what, &answer.task.bytes, found)
    }

    /// Writes the script that reproduces the crash of a stored finding into the directory of its
    /// entry.
    pub(super) fn write_script(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let target = self.target.with_main_arguments();
        lock(self.store)
            .write_reproduce(&stored.id, &target)
            .map(drop)
    }

    /// Appends `line`, about an examined input, to the journal of triage (record of the inputs
    /// run), and counts the input as a run. It is called after the finding is stored: if the call
    /// of ddfuzz is killed in between, the next call runs the input again and stores it in the same
    /// place.
    pub(super) fn note(&mut self, line: &Triaged) -> Result<(), StoreError> {
        self.journal.add(line)?;
        self.campaign.checkpoint.next += 1;
        let steady = line
            .crash
            .as_ref()
            .filter(|crash| crash.kind != Kind::Flaky);
        if let Some(crash) = steady {
            let known = self.crashes.entry((crash.major, crash.minor));
            known.or_insert_with(|| crash.clone());
        }
        Ok(())
    }

    /// Saves the watch's counts of runs and syncs the journal of triage (record of the inputs run).
    /// `ended`: whether also to record that the call of ddfuzz is complete.
    pub(super) fn save(&mut self, ended: bool) -> Result<(), StoreError> {
        self.journal.sync()?;
        match ended {
            true => self.campaign.end_call(),
            false => self.campaign.save(),
        }
    }
}
