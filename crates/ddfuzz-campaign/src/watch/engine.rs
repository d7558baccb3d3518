//! The loop of a watch: looks for files, hands them out, commits, and decides when it is over.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};

use super::books::Books;
use super::minimize::Shrinking;
use super::sources::{Queue, Sources};
use crate::classifier::What;
use crate::error::CampaignError;
use crate::ledger::{Stored, lock};
use crate::orders::{Word, is_of_target};
use crate::rebuild::{Rebuild, Watch};
use crate::room::{Fullness, Gate, Room};
use crate::run::Summary;
use crate::screen::{Phase, Progress, Screen};
use crate::settings::When;
use crate::until::{Course, Until, reached};
use crate::watch::{Answer, Producer, Producing, Task, Watching};
use ddfuzz_exec::ExecError;
use ddfuzz_store::report::{EndedBy, GroupView, size};
use ddfuzz_store::{EntryId, Group, Kind, Store, StoreError, Triaged};
use ddfuzz_triage::Key;

/// How long answers are waited for, at most.
const TICK: Duration = Duration::from_millis(100);
/// Between two lines of `stats.jsonl`, and two checkpoints without a finding.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// Looks that a file gets to stand still when its producer has ended.
const LAST_LOOKS: u32 = 10;

/// The ends of the channels to the threads.
pub(super) struct Lines {
    pub(super) task: Sender<Task>,
    pub(super) answers: Receiver<Result<Answer, ExecError>>,
    pub(super) order: Sender<EntryId>,
    pub(super) words: Receiver<Word>,
}

/// Why nothing more is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The producer has ended, and what it left is examined.
    Ended,
    /// The time is.
    Time,
    /// What was waited for is reached.
    Until(Until),
    /// The program is another one; all begins again with it.
    Rebuilt,
}

pub(super) struct Engine<'a> {
    pub(super) store: &'a Mutex<Store>,
    pub(super) settings: &'a Watching,
    pub(super) producer: &'a mut dyn Producer,
    pub(super) screen: &'a mut dyn Screen,
    pub(super) stop: &'a AtomicBool,
    pub(super) gate: &'a Gate,
    pub(super) room: Room<'a>,
    pub(super) books: Books<'a>,
    /// Whether the program is still the same.
    pub(super) build: Watch,
    /// Groups that are not found the same with the present build of it.
    pub(super) gone: HashSet<(Kind, String)>,
    pub(super) queue: Queue,
    pub(super) shrinking: Shrinking,
    pub(super) producing: Producing,
    /// Looks since the producer has ended.
    pub(super) last_looks: u32,
    pub(super) over: Option<Over>,
    /// Answers that came before one which is to be committed first.
    pub(super) early: BTreeMap<u64, Answer>,
    /// The next answer to commit.
    pub(super) next: u64,
    /// Groups that were new in this call, and when the last of them was.
    pub(super) new_seen: (u64, Option<Duration>),
    pub(super) began: Instant,
    /// How long was watched, once that is over.
    pub(super) watched: Option<Duration>,
    saved: Instant,
    unsaved: bool,
    /// Inputs that earlier calls have examined.
    pub(super) first: u64,
}

impl<'a> Engine<'a> {
    pub(super) fn begin(
        store: &'a Mutex<Store>,
        campaign: &str,
        settings: &'a Watching,
        producer: &'a mut dyn Producer,
        screen: &'a mut dyn Screen,
        stop: &'a AtomicBool,
        gate: &'a Gate,
    ) -> Result<Engine<'a>, CampaignError> {
        let books = Books::open(store, campaign, &settings.minimizing.target)?;
        let root = lock(store).reader().root().to_owned();
        let (first, began) = (books.ledger.checkpoint.next, Instant::now());
        let mut engine = Engine {
            store,
            settings,
            producer,
            screen,
            stop,
            gate,
            room: Room::new(stop, gate)
                .patient(settings.waits_for_room)
                .until(settings.time.and_then(|time| began.checked_add(time))),
            books,
            build: Watch::of(&settings.minimizing.target)?,
            gone: HashSet::new(),
            queue: Queue::new(Sources::new(&settings.sources, &root), settings.max_len),
            shrinking: Shrinking::default(),
            producing: Producing::Running,
            last_looks: 0,
            over: None,
            early: BTreeMap::new(),
            next: 0,
            new_seen: (0, None),
            began,
            watched: None,
            saved: Instant::now(),
            unsaved: true,
            first,
        };
        engine.save(false)?;
        engine.rebuild().begin(&engine.build, engine.screen)?;
        engine.begin_build()?;
        Ok(engine)
    }

    /// The keys of which a record is at hand.
    pub(super) fn steady_keys(&self) -> HashSet<(Key, Key)> {
        self.books.steady_keys()
    }

    /// Watches to the end, and minimizes what is left to be; or until the program is another one,
    /// and then there is no summary yet.
    pub(super) fn run(&mut self, lines: Lines) -> Result<Option<Summary>, CampaignError> {
        let Lines {
            task,
            answers,
            order,
            words,
        } = lines;
        let watched = self.watch(task, &answers, &order, &words);
        if self.is_rebuilt(&watched) {
            self.hear_out(&words);
            return Ok(None);
        }
        let watched = self.or_stopped(watched, ());
        if self.over.is_none() && self.room.is_given_up() {
            self.over = Some(Over::Time);
        }
        let elapsed = self.elapsed();
        self.watched = Some(elapsed);
        self.shrinking.count_from_here();
        let saved = self.save(false);
        watched?;
        self.or_stopped(saved, ())?;
        let minimized = self.minimize_rest(&order, &words);
        if self.is_rebuilt(&minimized) {
            return Ok(None);
        }
        self.or_stopped(minimized, ())?;
        if !self.interrupted() {
            let ended = self.save(true);
            self.or_stopped(ended, ())?;
        }
        let stats = self.append_stats();
        self.or_stopped(stats, ())?;
        self.screen.progress(&self.progress());
        self.summary(elapsed).map(Some)
    }

    fn watch(
        &mut self,
        task: Sender<Task>,
        answers: &Receiver<Result<Answer, ExecError>>,
        order: &Sender<EntryId>,
        words: &Receiver<Word>,
    ) -> Result<(), CampaignError> {
        self.watched = None;
        while !self.stopped() && self.over.is_none() {
            self.producing = self.producer.poll()?;
            self.queue.add(self.producer.dropped());
            self.look();
            self.hand_out(&task)?;
            self.hear(answers)?;
            self.hear_words(words)?;
            self.give_out(order)?;
            self.tick()?;
            self.look_at_clock();
        }
        drop(task);
        // What is under way when the time is over was begun before.
        while !self.stopped() && self.over == Some(Over::Time) && self.next < self.queue.given() {
            self.hear(answers)?;
            self.hear_words(words)?;
            self.tick()?;
        }
        self.tell_left();
        Ok(())
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether it was the user who has stopped it, and not the end of the whole time.
    pub(super) fn interrupted(&self) -> bool {
        self.stopped() && !self.settings.deadline.is_over()
    }

    /// Looks through the sources where that is due.
    fn look(&mut self) {
        // Before the look: what was dropped before the producer ended is seen by it.
        let ended = self.producing == Producing::Ended;
        if !self.queue.is_due() {
            return;
        }
        let moving = self.queue.look(self.screen);
        self.last_looks += u32::from(ended);
        let patient = self.last_looks < LAST_LOOKS;
        if !ended || !moving.is_empty() && patient || !self.is_idle() {
            return;
        }
        for path in moving {
            let path = path.display();
            self.screen
                .note(&format!("warning: {path} is not run: it is being written"));
        }
        self.over = Some(Over::Ended);
    }

    /// Whether all that was found is examined and committed.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.next == self.queue.given()
    }

    /// Hands out as many tasks as the threads have room for.
    fn hand_out(&mut self, task: &Sender<Task>) -> Result<(), CampaignError> {
        let Engine {
            queue,
            books,
            screen,
            ..
        } = self;
        queue.hand_out(task, books, *screen)
    }

    /// Waits for an answer, and commits those whose turn it is.
    fn hear(&mut self, answers: &Receiver<Result<Answer, ExecError>>) -> Result<(), CampaignError> {
        let mut answer = match answers.recv_timeout(TICK) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) if self.stopped() => None,
            Err(RecvTimeoutError::Disconnected) => return Err(CampaignError::Broken),
        };
        while let Some(heard) = answer {
            // The user's Ctrl-C may have reached the target, too.
            if self.stopped() {
                return Ok(());
            }
            let heard = heard?;
            self.early.insert(heard.task.at, heard);
            answer = answers.try_recv().ok();
        }
        while !matches!(self.over, Some(Over::Until(_)))
            && let Some(answer) = self.early.remove(&self.next)
        {
            self.commit(&answer)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Files what an input came to, counts it, and notes that it is done.
    fn commit(&mut self, answer: &Answer) -> Result<(), CampaignError> {
        let (what, line) = self.books.read(answer);
        let mut stored = None;
        if let Some(what) = &what {
            stored = self.made(|books| books.file(answer, what))?;
        }
        if let Some(stored) = &stored {
            self.made(|books| books.write_script(stored))?;
        }
        self.made(|books| books.note(&line))?;
        self.unsaved = true;
        self.note_return(&line)?;
        if what.is_some_and(|what| !matches!(what, What::Flaky(_))) {
            self.count_new();
        }
        match stored {
            Some(stored) => self.welcome(&stored),
            None => Ok(()),
        }
    }

    /// Shows a new group, and has it minimized.
    fn welcome(&mut self, stored: &Stored) -> Result<(), CampaignError> {
        self.shrinking.look_again();
        if !stored.founds {
            return Ok(());
        }
        if let Some(view) = self.view(&stored.id)? {
            self.screen.group(&view);
        }
        if self.settings.when != When::Off && self.is_minimized(&stored.id) {
            self.shrinking.enqueue(stored.id.clone());
        }
        Ok(())
    }

    /// Does it when there is room on the disk.
    pub(super) fn made<T, E: Fullness>(
        &mut self,
        mut write: impl FnMut(&mut Books<'a>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Engine {
            room,
            screen,
            books,
            ..
        } = self;
        room.made(&mut |text| screen.note(text), || write(books))
    }

    /// What there is to show of an entry.
    pub(super) fn view(&self, id: &EntryId) -> Result<Option<GroupView>, CampaignError> {
        let reader = lock(self.store).reader().clone();
        Ok(GroupView::of(&reader, id)?)
    }

    pub(super) fn is_muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store
            .reader()
            .is_muted(Kind::Crash, major, &self.settings.known)
    }

    /// Whether a group is minimized, once it is its turn. Leaks are not: they are looked for when
    /// a process ends, and searches run many inputs in one.
    pub(super) fn is_minimized(&self, id: &EntryId) -> bool {
        let group = lock(self.store).reader().group(id.kind(), id.major());
        let leak = |group: Group| group.record.class.0.starts_with("lsan:");
        !self.is_muted(id.major()) && !group.ok().flatten().is_some_and(leak)
    }

    /// Shows how it stands, and saves that from time to time.
    pub(super) fn tick(&mut self) -> Result<(), CampaignError> {
        self.screen.progress(&self.progress());
        if self.saved.elapsed() >= SAVE_EVERY {
            self.save(false)?;
            self.append_stats()?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    /// Saves the counts where there are new ones. `ended`: the call has come to its end.
    fn save(&mut self, ended: bool) -> Result<(), CampaignError> {
        if self.unsaved || ended {
            self.made(|books| books.save(ended))?;
            self.unsaved = false;
        }
        Ok(())
    }

    fn append_stats(&mut self) -> Result<(), CampaignError> {
        let (progress, store) = (self.progress(), self.store);
        Ok(self.made(|_| lock(store).append_stats(&progress))?)
    }

    /// Says what was found and not examined.
    fn tell_left(&mut self) {
        let left = self.queue.left() + self.queue.given() - self.next;
        if left > 0 {
            let files = size::counted(left, "file");
            self.screen.note(&format!(
                "{files} not examined; continue with --resume, or run `ddfuzz triage`"
            ));
        }
    }

    /// Whether the user has stopped, or the time was over before there was room.
    fn is_given_up(&self) -> bool {
        self.stopped() || self.room.is_given_up()
    }

    /// The user who stops gets what is stored, and no error of a full disk or of a target that
    /// Ctrl-C has reached, too.
    fn or_stopped<T>(
        &self,
        result: Result<T, CampaignError>,
        otherwise: T,
    ) -> Result<T, CampaignError> {
        match result {
            Err(error) if error.full_at().is_some() && self.is_given_up() => Ok(otherwise),
            Err(CampaignError::Exec(_)) if self.stopped() => Ok(otherwise),
            answer => answer,
        }
    }
}

impl Engine<'_> {
    /// How long was watched: not while the disk was full.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.gate.held())
    }

    /// Counts the groups that are new in this call, and looks whether they are enough.
    pub(super) fn count_new(&mut self) {
        let checkpoint = &self.books.ledger.checkpoint;
        let seen = checkpoint.seen.get(&Kind::Crash).into_iter().flatten();
        let new = seen
            .filter(|(major, _)| !checkpoint.known_before.contains(*major) && !self.is_muted(major))
            .count() as u64;
        if new > self.new_seen.0 {
            self.new_seen = (new, Some(self.elapsed()));
        }
        self.end_with(Until::is_of_runs);
    }

    /// Whether the clock ends it.
    pub(super) fn look_at_clock(&mut self) {
        self.end_with(|until| !until.is_of_runs());
        let is_over = |time| self.began.elapsed() >= time;
        if self.over.is_none() && self.settings.time.is_some_and(is_over) {
            self.over = Some(Over::Time);
        }
        if self.over.is_none() && self.build.has_changed() {
            self.over = Some(Over::Rebuilt);
        }
    }

    fn end_with(&mut self, which: impl Fn(&Until) -> bool) {
        let (groups, last) = self.new_seen;
        let elapsed = self.elapsed();
        let course = Course {
            groups,
            since_new: last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        };
        let ends: Vec<Until> = self.settings.until.iter().copied().filter(which).collect();
        if self.over.is_none()
            && let Some(until) = reached(&ends, &course)
        {
            self.over = Some(Over::Until(until));
        }
    }

    /// Runs of this call.
    fn runs(&self) -> u64 {
        match self.producer.runs() {
            0 => self.books.ledger.checkpoint.next - self.first,
            runs => runs,
        }
    }

    /// What is done: when nothing more is watched, what is left is minimized.
    fn phase(&self) -> Phase {
        let waiting = self.shrinking.waiting();
        match self.watched {
            Some(_) if waiting > 0 => Phase::Minimizing {
                done: self.shrinking.done(),
                of: self.shrinking.done() + waiting,
                each_ms: (self.settings.minimizing.budget_time)
                    .map(|budget| budget.as_millis() as u64),
            },
            _ => Phase::Fuzzing,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let checkpoint = &self.books.ledger.checkpoint;
        let groups = checkpoint.seen.get(&Kind::Crash).map_or(0, BTreeMap::len);
        let elapsed = self.began.elapsed();
        Progress {
            phase: self.phase(),
            time_ms: elapsed.as_millis() as u64,
            runs: self.runs(),
            runs_per_s: Progress::rate(self.runs(), self.watched.unwrap_or(elapsed)),
            groups: groups as u64,
            crashes: checkpoint.total(Kind::Crash),
            hangs: checkpoint.total(Kind::Hang),
            ooms: checkpoint.total(Kind::Oom),
            minimizing: self.shrinking.waiting(),
            minimizer_share: self.shrinking.spent.as_secs_f64()
                / self.settings.jobs.max(1) as f64
                / elapsed.as_secs_f64().max(0.001),
            ..Progress::default()
        }
    }

    /// What the call has come to.
    pub(super) fn summary(&self, watched: Duration) -> Result<Summary, CampaignError> {
        let checkpoint = &self.books.ledger.checkpoint;
        let muted = |major: Key| self.is_muted(&major.short());
        let (ended_by, until) = match self.over {
            _ if self.interrupted() => (EndedBy::Interrupted, None),
            Some(Over::Until(until)) => (EndedBy::Until, Some(until)),
            Some(Over::Time) => (EndedBy::Time, None),
            Some(Over::Ended | Over::Rebuilt) | None => (EndedBy::Fuzzer, None),
        };
        Ok(Summary {
            runs: self.runs(),
            runs_of_call: self.runs(),
            fuzzed: watched,
            new_groups: self.books.ledger.new_groups(muted)?,
            known_crashes: checkpoint.known_crashes(|major| self.is_muted(major)),
            crashes: checkpoint.total(Kind::Crash),
            interrupted: self.interrupted(),
            ended_by,
            until,
            // Who has dropped the files has them still.
            unstored: 0,
            unnamed: 0,
            out_of_room: self.room.is_given_up(),
            rebuilt: self.rebuild().is_on_record(),
        })
    }
}

impl<'a> Engine<'a> {
    /// What is done about other builds of the program.
    pub(super) fn rebuild(&self) -> Rebuild<'a> {
        Rebuild {
            store: self.store,
            minimizing: &self.settings.minimizing,
            jobs: self.settings.jobs,
            stop: self.stop,
        }
    }

    /// Begins with the build that is on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        self.gone = self.rebuild().not_the_same();
        match self.settings.when {
            When::Inline | When::Worker => self.enqueue_founders(),
            When::After | When::Off => Ok(()),
        }
    }

    /// Whether what was done has ended because the program is another one.
    pub(super) fn is_rebuilt(&mut self, done: &Result<(), CampaignError>) -> bool {
        let failed = done.as_ref().is_err_and(is_of_target);
        if !self.stopped() && failed && self.build.is_another() {
            self.over = Some(Over::Rebuilt);
        }
        !self.stopped() && self.over == Some(Over::Rebuilt)
    }

    /// Takes the program as it is now: all groups are checked, and all files are looked at again,
    /// as they would be by a call that goes on with another build.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.over = None;
        if self.build.settle(self.stop)? {
            self.rebuild().recheck(&self.build, self.screen)?;
        }
        if self.stopped() {
            return Ok(());
        }
        self.books.begin_anew()?;
        self.queue.begin_anew();
        self.shrinking.begin_anew();
        self.early.clear();
        (self.next, self.last_looks) = (0, 0);
        self.begin_build()
    }

    /// A group that was fixed may have come again.
    pub(super) fn note_return(&mut self, line: &Triaged) -> Result<(), StoreError> {
        if let Some(crash) = &line.crash {
            let group = (crash.kind, crash.major.short());
            if self.gone.remove(&group) {
                self.rebuild().seen_again(group.0, &group.1)?;
            }
        }
        Ok(())
    }
}
