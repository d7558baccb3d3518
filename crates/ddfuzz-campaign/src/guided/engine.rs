//! The main process of a guided campaign: it owns the output directory, counts, shows, and decides
//! when the campaign ends.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender};
use libafl::Error;

use super::examiner::HangExaminer;
use super::hub::{Hub, Peer, RequestHandler, Role};
use super::link::{self, Link};
use super::wire::{Heartbeat, JudgedHang, Order};
use crate::campaign_state::{CampaignState, lock};
use crate::minimizing::Variants;
use crate::screen::{Phase, Progress, Screen};
use crate::session::CampaignSession;
use crate::settings::Settings;
use crate::stage::{LocalDesk, SharedStore};
use crate::{CampaignError, PauseGate, ProgramWatch, Until, reached};
use ddfuzz_store::report::GroupView;
use ddfuzz_store::{EntryId, Kind, KnownGroups, Store, StoreError};
use ddfuzz_triage::Key;

/// Between two looks at the network while no worker has anything to say.
const ROUND: Duration = Duration::from_millis(5);
/// What each output directory has.
const RECORD: &str = "ddfuzz.json";
/// Between two drawings of the screen.
const DRAW: Duration = Duration::from_millis(200);
/// Between two lines of `stats.jsonl`.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// How long workers may take to end when they are told to: a run may have to time out first.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// The same when the whole time is over.
const SHORT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The same, in runs that time out: a hang is run that often to be named.
const SHUTDOWN_RUNS: u32 = 16;
/// A grant is a part of what is left, so that all workers end at about the same time.
const PARTS: u64 = 4;
/// The smallest and the largest grant, in runs.
const GRANT: (u64, u64) = (64, 1 << 20);

/// The main process's view of a campaign.
pub(super) struct GuidedEngine<'a> {
    pub(super) session: CampaignSession<'a>,
    pub(super) settings: &'a Settings,
    pub(super) registry: GroupRegistry<'a>,
    /// When the workers were started that there are now.
    launched: Instant,
    /// The phase of the campaign.
    pub(super) phase: Phase,
    /// When the fuzzing has ended, if it has.
    pub(super) ended: Option<Instant>,
    /// Time in which no worker was to fuzz, since another build was looked at.
    pub(super) paused: Duration,
    /// The first run of this call.
    pub(super) first: u64,
    saved: Instant,
    drawn: Instant,
    /// Runs granted that no worker has reported.
    pub(super) outstanding: u64,
    pub(super) corpus: u64,
    pub(super) workers: Workers,
    /// How long workers have minimized, in all.
    pub(super) minimized: Duration,
    pub(super) best: Heartbeat,
    /// Groups of crashes, when it was last counted which of them are new.
    pub(super) counted: usize,
    /// What was waited for and is reached.
    pub(super) until: Option<Until>,
    /// Whether the program is still the same.
    pub(super) watch: ProgramWatch,
    /// Whether it is not, so that all workers have to start again.
    pub(super) rebuilt: bool,
    /// Examines runs that may hang; and what it has found with this build.
    pub(super) examiner: HangExaminer,
    pub(super) judged: Vec<JudgedHang>,
    /// Findings for which there was no room until the time was over.
    pub(super) unstored: u64,
    /// Runs over their time limit that were filed without a name.
    pub(super) unnamed: u64,
    /// What ended the campaign before its time.
    pub(super) failed: Option<CampaignError>,
    /// Notes for the user, and where they are sent.
    notes: Receiver<String>,
    pub(super) note: Sender<String>,
}

impl<'a> GuidedEngine<'a> {
    pub(super) fn new(
        store: &'a Mutex<Store>,
        settings: &'a Settings,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        registry: GroupRegistry<'a>,
        gate: &'a PauseGate,
    ) -> Result<GuidedEngine<'a>, CampaignError> {
        let (note, notes) = channel::unbounded();
        let now = Instant::now();
        let first = registry.ledger.checkpoint.next;
        let session = CampaignSession::new(store, screen, stop, gate, settings.session());
        Ok(GuidedEngine {
            session,
            settings,
            registry,
            launched: now,
            phase: Phase::Fuzzing,
            ended: None,
            paused: Duration::ZERO,
            first,
            saved: now,
            drawn: now,
            counted: 0,
            until: None,
            watch: ProgramWatch::of(&settings.minimizing.target)?,
            rebuilt: false,
            examiner: HangExaminer::new(&settings.minimizing.target, settings.minimizing.way),
            judged: Vec::new(),
            unstored: 0,
            unnamed: 0,
            outstanding: 0,
            corpus: 0,
            workers: Workers::default(),
            minimized: Duration::ZERO,
            best: Heartbeat::default(),
            failed: None,
            notes,
            note,
        })
    }

    /// Serves `workers` workers until they have ended, or have had the time to. `network` is called
    /// in between.
    pub(super) fn serve(
        &mut self,
        hub: &mut Hub,
        workers: usize,
        mut network: impl FnMut() -> Result<(), Error>,
    ) {
        self.launched = Instant::now();
        self.workers = Workers::default();
        self.corpus = lock(self.session.store)
            .reader()
            .corpus()
            .map_or(0, |all| all.len() as u64);
        loop {
            if let Err(source) = hub.serve(ROUND, self) {
                let what = "listening for workers".to_owned();
                self.fail(CampaignError::System { what, source });
            }
            if let Err(error) = network() {
                self.fail(CampaignError::Network(error.to_string()));
            }
            match self.tick(hub) {
                // Its time is over, and it ends with what is stored.
                Err(error) if self.session.gives_up(&error) => {}
                Err(error) => self.fail(error),
                Ok(()) => {}
            }
            let coming =
                self.workers.begun() < workers && self.launched.elapsed() < SHUTDOWN_TIMEOUT;
            let lives = coming || !hub.peers.is_empty();
            if self.is_over() {
                let ended = *self.ended.get_or_insert_with(Instant::now);
                if !lives {
                    return;
                }
                if ended.elapsed() > self.shutdown_timeout() {
                    return self.give_up(hub);
                }
            } else if !lives {
                let why = "all of them have died".to_owned();
                self.fail(CampaignError::Worker(why));
            }
        }
    }

    fn shutdown_timeout(&self) -> Duration {
        if self.session.settings.deadline.is_over() {
            return SHORT_SHUTDOWN_TIMEOUT;
        }
        let run = self.settings.minimizing.target.limits.wall;
        SHUTDOWN_TIMEOUT.max(run.saturating_mul(SHUTDOWN_RUNS))
    }

    /// Gives up workers that do not end. The launcher kills them.
    fn give_up(&mut self, hub: &mut Hub) {
        let text = "a worker did not stop and was killed; its last runs are not counted";
        self.session.screen.note(text);
        for peer in hub.peers.drain(..) {
            self.lost(peer);
        }
    }

    /// Joins our broker, which listens at `port`, with the one at `other`.
    pub(super) fn join(&mut self, other: SocketAddr, port: u16) -> Option<Link> {
        match link::join(other, port, self.note.clone()) {
            Ok(link) => {
                drop(self.note.send(format!("joined {other}")));
                Some(link)
            }
            Err(error) => {
                let why = match error {
                    Error::OsError(source, ..) => source.to_string(),
                    other => other.to_string(),
                };
                let address = other;
                self.fail(CampaignError::NotJoined { address, why });
                None
            }
        }
    }

    pub(super) fn fail(&mut self, error: CampaignError) {
        if !self.session.stopped() {
            self.failed.get_or_insert(error);
        }
    }

    fn tick(&mut self, hub: &Hub) -> Result<(), CampaignError> {
        self.show_notes();
        if self.drawn.elapsed() >= DRAW {
            self.drawn = Instant::now();
            self.session.screen.progress(&self.progress());
        }
        self.look();
        self.examine()?;
        let due = self.saved.elapsed() >= SAVE_EVERY;
        if due {
            self.has_directory()?;
        }
        if due || self.registry.ledger.is_unsaved() {
            self.session.with_space(|| self.registry.ledger.save())?;
        }
        if due {
            self.saved = Instant::now();
            self.session.append_stats(&self.progress())?;
        }
        let edges = hub.peers.iter().map(|peer| peer.heartbeat);
        if let Some(best) = edges.max_by_key(|heartbeat| heartbeat.edges)
            && best.edges >= self.best.edges
        {
            self.best = best;
        }
        Ok(())
    }

    /// Looks whether the output directory is still there: what is filed would begin another one in
    /// its place, without what was found before.
    pub(super) fn has_directory(&self) -> Result<(), StoreError> {
        let path = lock(self.session.store).reader().root().to_owned();
        match path.join(RECORD).is_file() {
            true => Ok(()),
            false => Err(StoreError::Unwritable {
                path,
                why: "it was removed, or renamed, while the campaign ran".to_owned(),
            }),
        }
    }

    /// Sends a note to the user.
    pub(super) fn tell(&self, text: String) {
        drop(self.note.send(text));
    }

    /// Whether that is a worker that fuzzes, and not one that only minimizes.
    fn fuzzes(&self, role: Role) -> bool {
        matches!(role, Role::Worker(number) if number <= self.settings.jobs.max(1))
    }

    pub(super) fn show_notes(&mut self) {
        for note in self.notes.try_iter() {
            self.session.screen.note(&note);
        }
    }

    /// Compares the program with the one on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        let began = Instant::now();
        self.session.begin_build(&self.watch)?;
        self.paused += began.elapsed();
        Ok(())
    }

    /// Takes the program as it is now, if it is another one: all groups are checked, and the
    /// workers start again. Whether they have to.
    pub(super) fn take_build(&mut self) -> Result<bool, CampaignError> {
        // A worker that could not start may have met the program while it was being written.
        let another = self.rebuilt || self.failed.is_some() && self.watch.is_another();
        if !another || self.session.stopped() {
            return Ok(false);
        }
        self.failed = None;
        // What that build's runs look like says nothing of another one's; and a process that is
        // forked with the workers must be alone.
        if let Some(examined) = self.examiner.reset() {
            self.take_examined(examined)?;
        }
        self.judged.clear();
        let since = self.ended.unwrap_or_else(Instant::now);
        self.session.take_build(&mut self.watch)?;
        self.registry.reopen()?;
        self.rebuilt = false;
        // It has other places.
        self.best = Heartbeat::default();
        self.outstanding = 0;
        self.paused += since.elapsed();
        self.ended = None;
        Ok(!self.is_over())
    }

    pub(super) fn order(&mut self, peer: &mut Peer, heartbeat: Heartbeat) -> Order {
        self.registry.ledger.checkpoint.next += heartbeat.runs;
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        peer.heartbeat = heartbeat;
        let left = match self.left() {
            _ if self.is_over() => 0,
            // Runs that the minimizing worker holds would be missing at the end.
            _ if !self.fuzzes(peer.role) => 0,
            Some(left) => {
                let free = left.saturating_sub(self.outstanding);
                let part = free / (PARTS * self.settings.jobs.max(1) as u64);
                part.clamp(GRANT.0, GRANT.1).min(free)
            }
            None => GRANT.1,
        };
        peer.granted = left;
        self.outstanding += left;
        let judged = self.judged.get(peer.judged..).unwrap_or_default().to_vec();
        peer.judged = self.judged.len();
        Order {
            stop: self.is_over(),
            runs: left,
            judged,
        }
    }

    /// Shows a group as it is now.
    pub(super) fn show(&mut self, id: &EntryId, ended: bool) -> Result<(), StoreError> {
        if let Some(mut view) = GroupView::of(&self.session.reader(), id)? {
            // Counts are written to the group only now and then.
            let seen = self.registry.ledger.checkpoint.seen.get(&id.kind());
            let counted = seen.and_then(|groups| groups.get(id.major()));
            view.runs_seen = view.runs_seen.max(counted.copied().unwrap_or(0));
            match ended {
                true => self.session.screen.minimized(&view),
                false => self.session.screen.group(&view),
            }
        }
        Ok(())
    }
}

impl GuidedEngine<'_> {
    /// Whether no more runs are to be made.
    pub(super) fn is_over(&self) -> bool {
        self.session.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self.until.is_some()
            || self.rebuilt
            || self.settings.time.is_some_and(|time| self.clock() >= time)
            || self.left() == Some(0) && self.outstanding == 0
    }

    /// Runs of this count that are still to be made; `None` where there is no end.
    pub(super) fn left(&self) -> Option<u64> {
        let checkpoint = &self.registry.ledger.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// How long was fuzzed: not while the disk was full, nor while another build was looked at.
    pub(super) fn fuzzed(&self) -> Duration {
        self.clock().saturating_sub(self.session.gate.paused())
    }

    /// What of the time for fuzzing is over, which a full disk does not stop.
    fn clock(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        let all = until.saturating_duration_since(self.session.began);
        all.saturating_sub(self.paused)
    }

    /// Looks whether it is enough, or the program another one.
    pub(super) fn look(&mut self) {
        let elapsed = self.fuzzed();
        self.count_new(elapsed);
        let status = self.session.new_groups.status(elapsed);
        self.until = self.until.or(reached(&self.settings.until, &status));
        self.rebuilt = self.rebuilt || self.watch.has_changed();
    }

    /// Counts the groups that are new, where there are more groups than before: to ask of each
    /// whether it is muted may take a look into its files.
    fn count_new(&mut self, elapsed: Duration) {
        let checkpoint = &self.registry.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash);
        let all = seen.map_or(0, |groups| groups.len());
        if std::mem::replace(&mut self.counted, all) == all {
            return;
        }
        self.session.count_new(&self.registry.ledger, elapsed);
    }

    /// The progress at this moment.
    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.registry.ledger.checkpoint;
        let best = self.best;
        let stable = |edges: u64| 1.0 - best.unstable.min(edges) as f64 / edges as f64;
        let workers = self.fuzzed().as_secs_f64() * self.settings.jobs.max(1) as f64;
        Progress {
            phase: self.phase,
            time_ms: self.session.began.elapsed().as_millis() as u64,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzed()),
            corpus: self.corpus,
            minimizing: self.registry.desk.waiting() as u64,
            edges: Some(best.edges),
            edges_of: Some(best.edges_of),
            stability: (best.edges > 0).then(|| stable(best.edges)),
            minimizer_share: self.minimized.as_secs_f64() / workers.max(0.001),
            ..checkpoint.progress()
        }
    }
}

/// The workers of a launch, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Those whose supervisor has connected.
    begun: BTreeSet<usize>,
    /// Of these, those whose supervisor has not ended.
    kept: BTreeSet<usize>,
    /// Those that have connected themselves.
    met: BTreeSet<usize>,
}

impl Workers {
    /// The supervisor of a worker has connected.
    pub(super) fn begin(&mut self, worker: usize) {
        self.begun.insert(worker);
        self.kept.insert(worker);
    }

    /// A worker has connected. Whether that number has done so before.
    pub(super) fn is_another(&mut self, worker: usize) -> bool {
        !self.met.insert(worker)
    }

    /// The supervisor of a worker has ended: the worker is not restarted.
    pub(super) fn end(&mut self, worker: usize) {
        self.kept.remove(&worker);
    }

    /// How many have begun.
    pub(super) fn begun(&self) -> usize {
        self.begun.len()
    }

    /// How many live, or are started again.
    pub(super) fn count(&self) -> usize {
        self.kept.len()
    }
}

type SharedDesk<'a> = LocalDesk<SharedStore<&'a Mutex<Store>>>;

/// The groups of a campaign: counts of runs, and what is to be minimized.
pub(super) struct GroupRegistry<'a> {
    store: &'a Mutex<Store>,
    pub(super) ledger: CampaignState<'a>,
    pub(super) desk: SharedDesk<'a>,
    known: &'a KnownGroups,
    variants: Variants,
}

impl<'a> GroupRegistry<'a> {
    /// Opens them.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
        mut ledger: CampaignState<'a>,
        known: &'a KnownGroups,
        variants: Variants,
    ) -> Result<GroupRegistry<'a>, StoreError> {
        let desk = open_desk(store, campaign, known, variants)?;
        // A killed call may have written the counts of groups after its last checkpoint.
        for kind in Kind::ALL {
            for group in lock(store).reader().groups(kind)? {
                let told = group.record.seen.get(campaign).copied().unwrap_or(0);
                ledger
                    .checkpoint
                    .raise_count(kind, group.record.major.short(), told);
            }
        }
        Ok(GroupRegistry {
            store,
            ledger,
            desk,
            known,
            variants,
        })
    }

    /// Reads again what waits to be minimized.
    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        let campaign = self.desk.campaign().to_owned();
        self.desk.flush()?;
        self.desk = open_desk(self.store, &campaign, self.known, self.variants)?;
        Ok(())
    }

    /// Counts runs that ended in a group.
    pub(super) fn count(&mut self, kind: Kind, major: Key, runs: u64) {
        let seen = &mut self.ledger.checkpoint;
        seen.count_runs(kind, major.short(), runs);
    }
}

fn open_desk<'a>(
    store: &'a Mutex<Store>,
    campaign: &str,
    known: &KnownGroups,
    variants: Variants,
) -> Result<SharedDesk<'a>, StoreError> {
    let desk = LocalDesk::new(SharedStore::new(store), campaign)?;
    Ok(desk.muting(known.clone()).varying(variants))
}
