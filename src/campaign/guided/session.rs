//! The main process of a campaign: writes, counts, shows, and says when it ends.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::books::Books;
use super::hub::{Hub, Peer};
use super::link;
use super::wire::{Beat, Order};
use crossbeam::channel::{self, Receiver, Sender};
use libafl::Error;

use crate::campaign::CampaignError;
use crate::campaign::ledger::lock;
use crate::campaign::screen::{Progress, Screen};
use crate::campaign::settings::Settings;
use crate::campaign::{Course, Gate, Rebuild, Room, Until, Watch, reached};
use crate::report::GroupView;
use crate::store::{EntryId, Kind, Store, StoreError};

/// Between two looks at the network while no worker has anything to say.
const ROUND: Duration = Duration::from_millis(5);
/// Between two drawings of the screen.
const DRAW: Duration = Duration::from_millis(200);
/// Between two lines of `stats.jsonl`.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// So long workers may take to end when they are told to: a run may have to time out first.
const FAREWELL: Duration = Duration::from_secs(30);
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
    /// When the fuzzing has ended, if it has.
    ended: Option<Instant>,
    /// The first run of this call.
    pub(super) first: u64,
    saved: Instant,
    drawn: Instant,
    /// Runs granted that no worker has told of.
    pub(super) outstanding: u64,
    pub(super) corpus: u64,
    /// How long workers have minimized, in all.
    pub(super) minimized: Duration,
    best: Beat,
    /// Groups that were new in this count, and when the last of them was.
    new_seen: (u64, Option<Duration>),
    /// What was waited for and is reached.
    pub(super) until: Option<Until>,
    /// Whether the program is still the same.
    pub(super) watch: Watch,
    /// Whether it is not, so that all workers have to start again.
    pub(super) rebuilt: bool,
    pub(super) room: Room<'a>,
    gate: &'a Gate,
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
            ended: None,
            first,
            saved: now,
            drawn: now,
            new_seen: (0, None),
            until: None,
            watch: Watch::of(&settings.minimizing.target)?,
            rebuilt: false,
            room: Room::new(stop, gate),
            gate,
            outstanding: 0,
            corpus: 0,
            minimized: Duration::ZERO,
            best: Beat::default(),
            failed: None,
            notes,
            note,
        })
    }

    /// Serves `workers` workers until they have ended. `network` is called in between.
    pub(super) fn serve(
        &mut self,
        hub: &mut Hub,
        workers: usize,
        mut network: impl FnMut() -> Result<(), Error>,
    ) {
        self.corpus = lock(self.store)
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
            if let Err(error) = self.tick(hub) {
                self.fail(error);
            }
            let coming = hub.seen < workers && self.began.elapsed() < FAREWELL;
            let lives = coming || !hub.peers.is_empty();
            if self.is_over() {
                let ended = *self.ended.get_or_insert_with(Instant::now);
                if !lives || ended.elapsed() > FAREWELL {
                    return;
                }
            } else if !lives {
                let why = "all of them die as soon as they are started".to_owned();
                self.fail(CampaignError::Worker(why));
            }
        }
    }

    /// Joins our broker, which listens at `port`, with the one at `other`.
    pub(super) fn join(&mut self, other: SocketAddr, port: u16) {
        match link::join(other, port, self.note.clone()) {
            Ok(()) => drop(self.note.send(format!("joined {other}"))),
            Err(error) => {
                let why = match error {
                    Error::OsError(source, ..) => source.to_string(),
                    other => other.to_string(),
                };
                let address = other;
                self.fail(CampaignError::NotJoined { address, why });
            }
        }
    }

    pub(super) fn fail(&mut self, error: CampaignError) {
        if !self.stopped() {
            self.failed.get_or_insert(error);
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether no more runs are to be made.
    pub(super) fn is_over(&self) -> bool {
        self.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self.until.is_some()
            || self.rebuilt
            || self.settings.time.is_some_and(|time| self.fuzzed() >= time)
            || self.left() == Some(0) && self.outstanding == 0
    }

    /// Runs of this count that nobody has made; `None` where there is no end.
    fn left(&self) -> Option<u64> {
        let checkpoint = &self.books.ledger.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// How long was fuzzed: not while the disk was full.
    pub(super) fn fuzzed(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        let all = until.saturating_duration_since(self.began);
        all.saturating_sub(self.gate.held())
    }

    fn tick(&mut self, hub: &Hub) -> Result<(), CampaignError> {
        self.tell_notes();
        if self.drawn.elapsed() >= DRAW {
            self.drawn = Instant::now();
            self.screen.progress(&self.progress());
        }
        self.look();
        let due = self.saved.elapsed() >= SAVE_EVERY;
        let note = self.note.clone();
        let mut say = |text: &str| drop(note.send(text.to_owned()));
        if due || self.books.ledger.is_unsaved() {
            let ledger = &mut self.books.ledger;
            self.room.made(&mut say, || ledger.save())?;
        }
        if due {
            self.saved = Instant::now();
            let (store, progress) = (self.store, self.progress());
            self.room
                .made(&mut say, || lock(store).append_stats(&progress))?;
        }
        let edges = hub.peers.iter().map(|peer| peer.beat);
        if let Some(best) = edges.max_by_key(|beat| beat.edges)
            && best.edges >= self.best.edges
        {
            self.best = best;
        }
        Ok(())
    }

    pub(super) fn tell_notes(&mut self) {
        for note in self.notes.try_iter() {
            self.screen.note(&note);
        }
    }

    /// Looks whether it is enough, or the program another one.
    fn look(&mut self) {
        let elapsed = self.fuzzed();
        let checkpoint = &self.books.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash).into_iter().flatten();
        let new = seen.filter(|(major, _)| {
            !checkpoint.known_before.contains(*major) && !self.books.is_muted(major)
        });
        let groups = new.count() as u64;
        if groups > self.new_seen.0 {
            self.new_seen = (groups, Some(elapsed));
        }
        let (groups, last) = self.new_seen;
        let course = Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        };
        self.until = self.until.or(reached(&self.settings.until, &course));
        self.rebuilt = self.rebuilt || self.watch.has_changed();
    }

    /// What is done about other builds of the program.
    pub(super) fn rebuild(&self) -> Rebuild<'a> {
        Rebuild {
            store: self.store,
            settings: self.settings,
            stop: self.stop,
        }
    }

    /// Compares the program with the one on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        self.rebuild().begin(&self.watch, self.screen)
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
        if self.watch.settle(self.stop)? {
            self.rebuild().recheck(&self.watch, self.screen)?;
        }
        self.books.reopen()?;
        self.rebuilt = false;
        self.ended = None;
        self.outstanding = 0;
        Ok(!self.is_over())
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

    pub(super) fn order(&mut self, peer: &mut Peer, beat: Beat) -> Order {
        self.books.ledger.checkpoint.next += beat.runs;
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        peer.beat = beat;
        let left = match self.left() {
            _ if self.is_over() => 0,
            Some(left) => {
                let free = left.saturating_sub(self.outstanding);
                let part = free / (PARTS * self.settings.jobs.max(1) as u64);
                part.clamp(GRANT.0, GRANT.1).min(free)
            }
            None => GRANT.1,
        };
        peer.granted = left;
        self.outstanding += left;
        Order {
            stop: self.is_over(),
            runs: left,
        }
    }

    /// Shows a group as it is now.
    pub(super) fn show(&mut self, id: &EntryId, ended: bool) -> Result<(), StoreError> {
        let store = lock(self.store);
        let reader = store.reader();
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(id)?);
        drop(store);
        if let (Some(group), Some(entry)) = (group, entry) {
            let mut view = GroupView::load(&group, &entry)?;
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
