//! The main process of a campaign: writes, counts, shows, and says when it ends.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::books::Books;
use super::hub::{Answer, Hub, Peer};
use super::link;
use super::wire::{Beat, Order, Reply, Request};
use crossbeam::channel::{self, Receiver, Sender};

use crate::campaign::ledger::lock;
use crate::campaign::orders::minimize_entry;
use crate::campaign::screen::{Progress, Screen};
use crate::campaign::settings::{Settings, When};
use crate::campaign::shelf::Shelf;
use crate::campaign::{CampaignError, Desk, Report, Summary};
use crate::minimize::MinimizeError;
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
    store: &'a Mutex<Store>,
    settings: &'a Settings,
    screen: &'a mut dyn Screen,
    stop: &'a AtomicBool,
    pub(super) books: Books<'a>,
    began: Instant,
    /// When the fuzzing has ended, if it has.
    ended: Option<Instant>,
    /// The first run of this call.
    pub(super) first: u64,
    saved: Instant,
    drawn: Instant,
    /// Runs granted that no worker has told of.
    outstanding: u64,
    corpus: u64,
    /// How long workers have minimized, in all.
    minimized: Duration,
    best: Beat,
    /// What ended the campaign before its time.
    pub(super) failed: Option<CampaignError>,
    /// What the user should know, and where it is said.
    notes: Receiver<String>,
    note: Sender<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        store: &'a Mutex<Store>,
        settings: &'a Settings,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        books: Books<'a>,
    ) -> Session<'a> {
        let (note, notes) = channel::unbounded();
        let now = Instant::now();
        let first = books.ledger.checkpoint.next;
        Session {
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
            outstanding: 0,
            corpus: 0,
            minimized: Duration::ZERO,
            best: Beat::default(),
            failed: None,
            notes,
            note,
        }
    }

    /// Serves `workers` workers until they have ended. `network` is called in between.
    pub(super) fn serve(
        &mut self,
        hub: &mut Hub,
        workers: usize,
        mut network: impl FnMut() -> Result<(), libafl::Error>,
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
                self.fail(error.into());
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
                self.fail(CampaignError::Network(format!("joining {other}: {error}")));
            }
        }
    }

    fn fail(&mut self, error: CampaignError) {
        if !self.stopped() {
            self.failed.get_or_insert(error);
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether no more runs are to be made.
    fn is_over(&self) -> bool {
        self.stopped()
            || self.failed.is_some()
            || self.ended.is_some()
            || self
                .settings
                .time
                .is_some_and(|time| self.began.elapsed() >= time)
            || self.left() == Some(0) && self.outstanding == 0
    }

    /// Runs of this count that nobody has made; `None` where there is no end.
    fn left(&self) -> Option<u64> {
        let checkpoint = &self.books.ledger.checkpoint;
        Some(checkpoint.goal?.saturating_sub(checkpoint.next))
    }

    /// How long was fuzzed.
    pub(super) fn fuzzed(&self) -> Duration {
        let until = self.ended.unwrap_or_else(Instant::now);
        until.saturating_duration_since(self.began)
    }

    fn tick(&mut self, hub: &Hub) -> Result<(), StoreError> {
        for note in self.notes.try_iter() {
            self.screen.note(&note);
        }
        if self.drawn.elapsed() >= DRAW {
            self.drawn = Instant::now();
            self.screen.progress(&self.progress());
        }
        if self.saved.elapsed() >= SAVE_EVERY || self.books.ledger.is_unsaved() {
            self.books.ledger.save()?;
        }
        if self.saved.elapsed() >= SAVE_EVERY {
            self.saved = Instant::now();
            lock(self.store).append_stats(&self.progress())?;
        }
        let edges = hub.peers.iter().map(|peer| peer.beat);
        if let Some(best) = edges.max_by_key(|beat| beat.edges) {
            if best.edges >= self.best.edges {
                self.best = best;
            }
        }
        Ok(())
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
            minimizing: self.books.desk.waiting() as u64,
            edges: Some(best.edges),
            edges_of: Some(best.edges_of),
            stability: (best.edges > 0).then(|| stable(best.edges)),
            minimizer_share: self.minimized.as_secs_f64() / workers.max(0.001),
        }
    }

    /// Minimizes what is left to be, and says what the call came to.
    pub(super) fn finish(mut self) -> Result<Summary, CampaignError> {
        let saved = self.books.ledger.save();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        saved?;
        let fuzzed = self.fuzzed();
        if self.settings.when != When::Off {
            self.minimize_rest()?;
        }
        if !self.stopped() {
            self.books.ledger.end_call()?;
        }
        let progress = self.progress();
        lock(self.store).append_stats(&progress)?;
        self.screen.progress(&progress);
        let checkpoint = &self.books.ledger.checkpoint;
        Ok(Summary {
            runs: checkpoint.next - checkpoint.count_start,
            runs_of_call: checkpoint.next - self.first,
            fuzzed,
            new_groups: (self.books.ledger)
                .new_groups(|major| self.books.is_muted(&major.short()))?,
            known_crashes: checkpoint.known_crashes(|major| self.books.is_muted(major)),
            interrupted: self.stopped(),
        })
    }

    /// Minimizes groups one by one, for each may slip into further ones.
    fn minimize_rest(&mut self) -> Result<(), CampaignError> {
        let mut taken = HashSet::new();
        while !self.stopped() {
            let pending = self.books.ledger.pending(true)?;
            let fresh = |id: &EntryId| !self.books.is_muted(id.major()) && !taken.contains(id);
            let Some(id) = pending.into_iter().find(fresh) else {
                return Ok(());
            };
            taken.insert(id.clone());
            self.screen.progress(&self.progress());
            match minimize_entry(self.store, self.settings, self.stop, &id) {
                Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
                Err(_) if self.stopped() => {}
                Err(error) => return Err(error),
                Ok(()) => self.show(&id, true)?,
            }
        }
        Ok(())
    }

    fn order(&mut self, peer: &mut Peer, beat: Beat) -> Order {
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
    fn show(&mut self, id: &EntryId, ended: bool) -> Result<(), StoreError> {
        let store = lock(self.store);
        let reader = store.reader();
        let (group, entry) = (reader.group(id.kind(), id.major())?, reader.entry(id)?);
        drop(store);
        if let (Some(group), Some(entry)) = (group, entry) {
            let view = GroupView::load(&group, &entry)?;
            match ended {
                true => self.screen.minimized(&view),
                false => self.screen.group(&view),
            }
        }
        Ok(())
    }

    fn respond(
        &mut self,
        peer: &mut Peer,
        request: Request,
        body: &[u8],
    ) -> Result<Reply, StoreError> {
        let minimizes = matches!(self.settings.when, When::Inline | When::Worker);
        Ok(match request {
            Request::Hello { .. } | Request::Keep | Request::Note(_) | Request::Failed(_) => {
                Reply::Done
            }
            Request::Known => Reply::Known(self.books.desk.known()?),
            Request::HandIn {
                kind,
                crash,
                run,
                name,
            } => {
                let report = Report {
                    kind,
                    crash: &crash,
                    input: body,
                    run,
                    name: &name,
                };
                let entry = self.books.desk.hand_in(&report)?;
                self.books.count(kind, crash.keys.major, 1);
                if let Some(id) = &entry {
                    self.show(id, false)?;
                }
                Reply::Entry(entry)
            }
            Request::Count { kind, major, runs } => {
                self.books.desk.count(kind, major, runs)?;
                self.books.count(kind, major, runs);
                Reply::Done
            }
            Request::File { kind, crash } => {
                let filed = self.books.desk.file(kind, &crash, body)?;
                Reply::Filed {
                    id: filed.id,
                    new_major: filed.new_major,
                    new_minor: filed.new_minor,
                    already: filed.already,
                }
            }
            Request::Minimized { id } => {
                self.books.desk.write_minimized(&id, body)?;
                self.show(&id, false)?;
                Reply::Done
            }
            Request::Reproduce { id } => {
                let target = self.settings.minimizing.target.by_main();
                self.books.desk.write_reproduce(&id, &target)?;
                Reply::Done
            }
            Request::Outcome { id, outcome } => {
                self.books.desk.write_outcome(&id, &outcome)?;
                self.show(&id, true)?;
                Reply::Done
            }
            Request::Claim if minimizes && !self.is_over() => {
                let id = self.books.desk.claim()?;
                peer.claimed.extend(id.clone());
                Reply::Entry(id)
            }
            Request::Claim => Reply::Entry(None),
            Request::GiveBack {
                id,
                ended,
                spent_us,
            } => {
                peer.claimed.retain(|claimed| *claimed != id);
                let spent = Duration::from_micros(spent_us);
                self.minimized += spent;
                self.books.desk.give_back(&id, ended, spent)?;
                Reply::Done
            }
            Request::Beat(beat) => Reply::Order(self.order(peer, beat)),
        })
    }
}

impl Answer for Session<'_> {
    fn answer(&mut self, peer: &mut Peer, request: Request, body: Vec<u8>) -> Option<Reply> {
        match request {
            Request::Hello { .. } => return None,
            Request::Note(text) => {
                drop(self.note.send(text));
                return None;
            }
            Request::Failed(why) => {
                self.fail(CampaignError::Worker(why));
                return None;
            }
            Request::Keep => {
                if let Err(error) = lock(self.store).add_to_corpus(&body) {
                    self.fail(error.into());
                }
                self.corpus += 1;
                return None;
            }
            _ => {}
        }
        Some(match self.respond(peer, request, &body) {
            Ok(reply) => reply,
            Err(error) => {
                let (path, why) = (error.path().to_owned(), error.to_string());
                self.fail(error.into());
                Reply::Failed { path, why }
            }
        })
    }

    fn lost(&mut self, peer: Peer) {
        self.outstanding = self.outstanding.saturating_sub(peer.granted);
        for id in &peer.claimed {
            // It waits in memory only, where nothing can fail.
            let _ = self.books.desk.give_back(id, false, Duration::ZERO);
        }
    }
}
