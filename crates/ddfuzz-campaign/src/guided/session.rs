//! The main process of a guided campaign: it owns the output directory, counts, shows, and decides
//! when the campaign ends.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, Sender};
use libafl::Error;

use super::examiner::Examiner;
use super::hub::{Answer, Hub, Peer, Role};
use super::link::{self, Link};
use super::wire::{Beat, Judged, Order};
use crate::ledger::{Ledger, lock};
use crate::minimizing::Variants;
use crate::screen::{Phase, Progress, Screen};
use crate::settings::Settings;
use crate::stage::{LocalDesk, SharedStore};
use crate::{CampaignError, Course, Fullness, Gate, Rebuild, Room, Until, Watch, reached};
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
/// So long workers may take to end when they are told to: a run may have to time out first.
const FAREWELL: Duration = Duration::from_secs(30);
/// The same when the whole time is over.
const HURRY: Duration = Duration::from_secs(5);
/// The same, in runs that time out: a hang is run that often to be named.
const FAREWELL_RUNS: u32 = 16;
/// A grant is a part of what is left, so that all workers end at about the same time.
const PARTS: u64 = 4;
/// The smallest and the largest grant, in runs.
const GRANT: (u64, u64) = (64, 1 << 20);

/// The main process's view of a campaign.
pub(super) struct Session<'a> {
    pub(super) store: &'a Mutex<Store>,
    pub(super) settings: &'a Settings,
    pub(super) screen: &'a mut dyn Screen,
    pub(super) stop: &'a AtomicBool,
    pub(super) books: Books<'a>,
    pub(super) began: Instant,
    /// When the workers were started that there are now.
    launched: Instant,
    /// What it does.
    pub(super) phase: Phase,
    /// When the fuzzing has ended, if it has.
    pub(super) ended: Option<Instant>,
    /// Time in which no worker was to fuzz, since another build was looked at.
    pub(super) paused: Duration,
    /// The first run of this call.
    pub(super) first: u64,
    saved: Instant,
    drawn: Instant,
    /// Runs granted that no worker has told of.
    pub(super) outstanding: u64,
    pub(super) corpus: u64,
    pub(super) workers: Workers,
    /// How long workers have minimized, in all.
    pub(super) minimized: Duration,
    pub(super) best: Beat,
    /// Groups of crashes, when it was last counted which of them are new.
    pub(super) counted: usize,
    /// Groups that were new in this count, and when the last of them was.
    pub(super) new_seen: (u64, Option<Duration>),
    /// What was waited for and is reached.
    pub(super) until: Option<Until>,
    /// Whether the program is still the same.
    pub(super) watch: Watch,
    /// Whether it is not, so that all workers have to start again.
    pub(super) rebuilt: bool,
    /// Groups that are not found the same with the present build of it.
    pub(super) gone: HashSet<(Kind, String)>,
    /// Who finds out whether runs hang, and what it has found out with this build.
    pub(super) examiner: Examiner,
    pub(super) judged: Vec<Judged>,
    pub(super) room: Room<'a>,
    /// Findings for which there was no room until the time was over.
    pub(super) unstored: u64,
    /// Runs over their time limit that were filed without a name.
    pub(super) unnamed: u64,
    pub(super) gate: &'a Gate,
    /// What ended the campaign before its time.
    pub(super) failed: Option<CampaignError>,
    /// What the user should know, and where it is said.
    notes: Receiver<String>,
    pub(super) note: Sender<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        store: &'a Mutex<Store>,
        settings: &'a Settings,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        books: Books<'a>,
        gate: &'a Gate,
    ) -> Result<Session<'a>, CampaignError> {
        let (note, notes) = channel::unbounded();
        let now = Instant::now();
        let first = books.ledger.checkpoint.next;
        Ok(Session {
            store,
            settings,
            screen,
            stop,
            books,
            began: now,
            launched: now,
            phase: Phase::Fuzzing,
            ended: None,
            paused: Duration::ZERO,
            first,
            saved: now,
            drawn: now,
            counted: 0,
            new_seen: (0, None),
            until: None,
            watch: Watch::of(&settings.minimizing.target)?,
            rebuilt: false,
            gone: HashSet::new(),
            examiner: Examiner::new(&settings.minimizing.target, settings.minimizing.way),
            judged: Vec::new(),
            room: Room::new(stop, gate).until(settings.end_of(now)),
            unstored: 0,
            unnamed: 0,
            gate,
            outstanding: 0,
            corpus: 0,
            workers: Workers::default(),
            minimized: Duration::ZERO,
            best: Beat::default(),
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
        self.corpus = lock(self.store)
            .reader()
            .corpus()
            .map_or(0, |all| all.len() as u64);
        self.workers = Workers::default();
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
                Err(error) if self.gives_up(&error) => {}
                Err(error) => self.fail(error),
                Ok(()) => {}
            }
            let coming = self.workers.begun() < workers && self.launched.elapsed() < FAREWELL;
            let lives = coming || !hub.peers.is_empty();
            if self.is_over() {
                let ended = *self.ended.get_or_insert_with(Instant::now);
                if !lives {
                    return;
                }
                if ended.elapsed() > self.farewell() {
                    return self.give_up(hub);
                }
            } else if !lives {
                let why = "all of them have died".to_owned();
                self.fail(CampaignError::Worker(why));
            }
        }
    }

    fn farewell(&self) -> Duration {
        if self.settings.deadline.is_over() {
            return HURRY;
        }
        let run = self.settings.minimizing.target.limits.wall;
        FAREWELL.max(run.saturating_mul(FAREWELL_RUNS))
    }

    /// Hears no more of workers that do not end. The launcher kills them.
    fn give_up(&mut self, hub: &mut Hub) {
        let text = "a worker did not stop and was killed; its last runs are not counted";
        self.screen.note(text);
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

    /// Whether this is only that the disk was full until the time was over, or the user has
    /// stopped.
    pub(super) fn gives_up(&self, error: &CampaignError) -> bool {
        error.full_at().is_some() && (self.stopped() || self.room.is_given_up())
    }

    pub(super) fn fail(&mut self, error: CampaignError) {
        if !self.stopped() {
            self.failed.get_or_insert(error);
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether it was the user who has stopped it, and not the end of the whole time.
    pub(super) fn interrupted(&self) -> bool {
        self.stopped() && !self.settings.deadline.is_over()
    }

    fn tick(&mut self, hub: &Hub) -> Result<(), CampaignError> {
        self.tell_notes();
        if self.drawn.elapsed() >= DRAW {
            self.drawn = Instant::now();
            self.screen.progress(&self.progress());
        }
        self.look();
        self.examine()?;
        let due = self.saved.elapsed() >= SAVE_EVERY;
        if due {
            self.has_directory()?;
        }
        if due || self.books.ledger.is_unsaved() {
            let Session {
                room,
                screen,
                books,
                ..
            } = self;
            room.made(&mut |text| screen.note(text), || books.ledger.save())?;
        }
        if due {
            self.saved = Instant::now();
            let progress = self.progress();
            let Session {
                room,
                screen,
                store,
                ..
            } = self;
            let append = || lock(store).append_stats(&progress);
            room.made(&mut |text| screen.note(text), append)?;
        }
        let edges = hub.peers.iter().map(|peer| peer.beat);
        if let Some(best) = edges.max_by_key(|beat| beat.edges)
            && best.edges >= self.best.edges
        {
            self.best = best;
        }
        Ok(())
    }

    /// Looks whether the output directory is still there: what is filed would begin another one in
    /// its place, without what was found before.
    pub(super) fn has_directory(&self) -> Result<(), StoreError> {
        let path = lock(self.store).reader().root().to_owned();
        match path.join(RECORD).is_file() {
            true => Ok(()),
            false => Err(StoreError::Unwritable {
                path,
                why: "it was removed, or renamed, while the campaign ran".to_owned(),
            }),
        }
    }

    /// Has the user told of something.
    pub(super) fn tell(&self, text: String) {
        drop(self.note.send(text));
    }

    /// Whether that is a worker who fuzzes, and not one who only minimizes.
    fn fuzzes(&self, role: Role) -> bool {
        matches!(role, Role::Worker(number) if number <= self.settings.jobs.max(1))
    }

    pub(super) fn tell_notes(&mut self) {
        for note in self.notes.try_iter() {
            self.screen.note(&note);
        }
    }

    /// What is done about other builds of the program.
    pub(super) fn rebuild(&self) -> Rebuild<'a> {
        Rebuild {
            store: self.store,
            minimizing: &self.settings.minimizing,
            jobs: self.settings.jobs,
            stop: self.stop,
        }
    }

    /// Compares the program with the one on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        let began = Instant::now();
        self.rebuild().begin(&self.watch, self.screen)?;
        self.paused += began.elapsed();
        self.gone = self.rebuild().not_the_same();
        Ok(())
    }

    /// A group that was fixed may have come again.
    pub(super) fn note_return(&mut self, kind: Kind, major: &str) -> Result<(), StoreError> {
        if !self.gone.is_empty() && self.gone.remove(&(kind, major.to_owned())) {
            self.rebuild().seen_again(kind, major)?;
        }
        Ok(())
    }

    /// Takes the program as it is now, if it is another one: all groups are checked, and the
    /// workers start again. Whether they have to.
    pub(super) fn take_build(&mut self) -> Result<bool, CampaignError> {
        // A worker that could not start may have met the program while it was being written.
        let another = self.rebuilt || self.failed.is_some() && self.watch.is_another();
        if !another || self.stopped() {
            return Ok(false);
        }
        self.failed = None;
        // What that build's runs look like says nothing of another one's; and who is forked with
        // the workers must be alone.
        if let Some(examined) = self.examiner.reset() {
            self.take_examined(examined)?;
        }
        self.judged.clear();
        let since = self.ended.unwrap_or_else(Instant::now);
        if self.watch.settle(self.stop)? {
            self.rebuild().recheck(&self.watch, self.screen)?;
        }
        self.gone = self.rebuild().not_the_same();
        self.books.reopen()?;
        self.rebuilt = false;
        // It has other places.
        self.best = Beat::default();
        self.outstanding = 0;
        self.paused += since.elapsed();
        self.ended = None;
        Ok(!self.is_over())
    }

    pub(super) fn order(&mut self, peer: &mut Peer, beat: Beat) -> Order {
        self.books.ledger.checkpoint.next += beat.runs;
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        peer.beat = beat;
        let left = match self.left() {
            _ if self.is_over() => 0,
            // Runs that the one who minimizes holds would be missing at the end.
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
        let reader = lock(self.store).reader().clone();
        if let Some(mut view) = GroupView::of(&reader, id)? {
            // Counts are written to the group only now and then.
            let seen = self.books.ledger.checkpoint.seen.get(&id.kind());
            let counted = seen.and_then(|groups| groups.get(id.major()));
            view.runs_seen = view.runs_seen.max(counted.copied().unwrap_or(0));
            match ended {
                true => self.screen.minimized(&view),
                false => self.screen.group(&view),
            }
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Whether no more runs are to be made.
    pub(super) fn is_over(&self) -> bool {
        self.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self.until.is_some()
            || self.rebuilt
            || self.settings.time.is_some_and(|time| self.clock() >= time)
            || self.left() == Some(0) && self.outstanding == 0
    }

    /// Runs of this count that nobody has made; `None` where there is no end.
    pub(super) fn left(&self) -> Option<u64> {
        let checkpoint = &self.books.ledger.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// How long was fuzzed: not while the disk was full, nor while another build was looked at.
    pub(super) fn fuzzed(&self) -> Duration {
        self.clock().saturating_sub(self.gate.held())
    }

    /// What of the time for fuzzing is over, which a full disk does not stop.
    fn clock(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        let all = until.saturating_duration_since(self.began);
        all.saturating_sub(self.paused)
    }

    /// Looks whether it is enough, or the program another one.
    pub(super) fn look(&mut self) {
        let elapsed = self.fuzzed();
        self.count_new(elapsed);
        let (groups, last) = self.new_seen;
        let course = Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        };
        self.until = self.until.or(reached(&self.settings.until, &course));
        self.rebuilt = self.rebuilt || self.watch.has_changed();
    }

    /// Counts the groups that are new, where there are more groups than before: to ask of each
    /// whether it is muted may take a look into its files.
    fn count_new(&mut self, elapsed: Duration) {
        let checkpoint = &self.books.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash);
        let all = seen.map_or(0, |groups| groups.len());
        if std::mem::replace(&mut self.counted, all) == all {
            return;
        }
        let new = seen.into_iter().flatten().filter(|(major, _)| {
            !checkpoint.known_before.contains(*major) && !self.books.is_muted(major)
        });
        let groups = new.count() as u64;
        if groups > self.new_seen.0 {
            self.new_seen = (groups, Some(elapsed));
        }
    }

    /// The course at this moment.
    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.books.ledger.checkpoint;
        let groups = checkpoint
            .seen
            .get(&Kind::Crash)
            .map_or(0, |groups| groups.len());
        let best = self.best;
        let stable = |edges: u64| 1.0 - best.unstable.min(edges) as f64 / edges as f64;
        let workers = self.fuzzed().as_secs_f64() * self.settings.jobs.max(1) as f64;
        Progress {
            phase: self.phase,
            time_ms: self.began.elapsed().as_millis() as u64,
            runs: checkpoint.next - checkpoint.count_start,
            runs_per_s: Progress::rate(checkpoint.next - self.first, self.fuzzed()),
            corpus: self.corpus,
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.books.desk.waiting() as u64,
            edges: Some(best.edges),
            edges_of: Some(best.edges_of),
            stability: (best.edges > 0).then(|| stable(best.edges)),
            minimizer_share: self.minimized.as_secs_f64() / workers.max(0.001),
        }
    }
}

/// The workers of a launch, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Workers {
    /// Those whose process above has called.
    begun: BTreeSet<usize>,
    /// Of these, those whose process above has not ended.
    kept: BTreeSet<usize>,
    /// Those that have called themselves.
    met: BTreeSet<usize>,
}

impl Workers {
    /// The process above a worker has called.
    pub(super) fn begin(&mut self, worker: usize) {
        self.begun.insert(worker);
        self.kept.insert(worker);
    }

    /// A worker has called. Whether that number has done so before.
    pub(super) fn is_another(&mut self, worker: usize) -> bool {
        !self.met.insert(worker)
    }

    /// The process above a worker has ended: it is not started any more.
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

/// The books of a campaign.
pub(super) struct Books<'a> {
    store: &'a Mutex<Store>,
    pub(super) ledger: Ledger<'a>,
    pub(super) desk: SharedDesk<'a>,
    known: &'a KnownGroups,
    variants: Variants,
}

impl<'a> Books<'a> {
    /// Opens them.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
        mut ledger: Ledger<'a>,
        known: &'a KnownGroups,
        variants: Variants,
    ) -> Result<Books<'a>, StoreError> {
        let desk = open_desk(store, campaign, known, variants)?;
        // A killed call may have written the counts of groups after its last checkpoint.
        for kind in Kind::ALL {
            for group in lock(store).reader().groups(kind)? {
                let told = group.record.seen.get(campaign).copied().unwrap_or(0);
                ledger
                    .checkpoint
                    .have_counted(kind, group.record.major.short(), told);
            }
        }
        Ok(Books {
            store,
            ledger,
            desk,
            known,
            variants,
        })
    }

    /// Reads anew what waits to be minimized.
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

    /// Whether the user does not want to hear of this group.
    pub(super) fn is_muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store.reader().is_muted(Kind::Crash, major, self.known)
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
