//! Model of the full screen: the state of the campaign, its groups, its rates over time, and the page
//! that is shown.

use std::collections::VecDeque;
use std::time::Duration;

use crate::campaign::Progress;
use crate::cli::ui::campaign::draw::Palette;
use crate::cli::ui::campaign::group_page::Detail;
use crate::report::text::printable;
use crate::report::{GroupView, size};
use crate::store::{EntryId, Kind};
use crate::triage::Severity;

/// Events that are kept.
const EVENTS: usize = 200;

/// What does not change in a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The target, by name or as a command line.
    pub target: String,
    /// The way of execution.
    pub way: String,
    /// What makes the inputs.
    pub engine: String,
    /// The seed of all inputs; `None` where others make them.
    pub seed: Option<u64>,
    /// The output directory.
    pub out: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, since the campaign began.
    pub at: Duration,
    /// What, cleaned for a terminal.
    pub text: String,
    /// Whether it is a note to the user.
    pub is_note: bool,
}

/// What is looked at of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// The frames of its crash.
    Stack,
    /// The bytes of its reproducer.
    Input,
    /// Its size over the tests.
    Curve,
    /// The last lines of its log.
    Log,
}

impl Tab {
    /// All, in the order of the screen.
    pub const ALL: [Tab; 4] = [Tab::Stack, Tab::Input, Tab::Curve, Tab::Log];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tab::Stack => "stack",
            Tab::Input => "input",
            Tab::Curve => "curve",
            Tab::Log => "log",
        }
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The campaign.
    Overview,
    /// The selected group.
    Group {
        /// Which part of it.
        tab: Tab,
        /// Lines that are scrolled away.
        scroll: usize,
    },
}

/// The events of a campaign, and the page that is shown. It has no clock: callers pass the time.
#[derive(Clone, Debug)]
pub struct ScreenModel {
    pub(super) heading: Heading,
    pub(super) palette: Palette,
    pub(super) elapsed: Duration,
    pub(super) progress: Option<Progress>,
    pub(super) history: History,
    pub(super) groups: Vec<Group>,
    pub(super) events: VecDeque<Event>,
    pub(super) page: Page,
    pub(super) selected: usize,
    pub(super) detail: Detail,
    pub(super) stopping: bool,
}

impl ScreenModel {
    /// A campaign that begins.
    pub fn new(heading: Heading, palette: Palette) -> ScreenModel {
        let clean = |text: &str| printable(text);
        ScreenModel {
            heading: Heading {
                target: clean(&heading.target),
                way: clean(&heading.way),
                engine: clean(&heading.engine),
                out: clean(&heading.out),
                seed: heading.seed,
            },
            palette,
            elapsed: Duration::ZERO,
            progress: None,
            history: History::default(),
            groups: Vec::new(),
            events: VecDeque::new(),
            page: Page::Overview,
            selected: 0,
            detail: Detail::default(),
            stopping: false,
        }
    }

    /// So much time has passed since the campaign began.
    pub fn at(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// The model at one moment.
    pub fn progress(&mut self, progress: &Progress) {
        self.at(Duration::from_millis(progress.time_ms));
        self.history.add(progress);
        self.progress = Some(*progress);
    }

    /// A group that was there before the campaign.
    pub fn known(&mut self, view: &GroupView) {
        self.put(Group::of(view));
    }

    /// A group is new, or there is something new of it.
    pub fn group(&mut self, view: &GroupView) {
        let group = Group::of(view);
        if self.groups.iter().all(|one| !one.is(&group)) {
            let (what, size) = (kind(group.kind), size::bytes(group.size_before));
            let Group { key, class, .. } = &group;
            self.tell(&format!("new {what} {key}: {class}, {size}"), false);
        }
        self.put(group);
    }

    /// The minimization of a group has ended.
    pub fn minimized(&mut self, view: &GroupView) {
        let group = Group::of(view);
        if view.kind == Kind::Flaky {
            // It was a crash, until it did not come again.
            self.tell(&format!("{} did not crash again: flaky", group.key), false);
            let is_crash = |one: &Group| one.kind == Kind::Crash && one.key == group.key;
            self.groups.retain(|one| !is_crash(one));
            return self.put(group);
        }
        let sizes = size::reduction(group.size_before, group.size);
        let text = format!("minimized {}: {sizes}, {}", view.name(), group.standing());
        self.tell(&text, false);
        self.put(group);
    }

    /// Something that the user should know.
    pub fn note(&mut self, text: &str) {
        self.tell(text, true);
    }

    /// The campaign is asked to end.
    pub fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.tell("stopping: the state is being saved", false);
        }
    }

    /// What was read of the group that is looked at.
    pub fn detail(&mut self) -> &mut Detail {
        &mut self.detail
    }

    /// The groups, in the order in which they were told.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group whose page is shown.
    pub fn opened(&self) -> Option<&Group> {
        match self.page {
            Page::Overview => None,
            Page::Group { .. } => self.groups.get(self.selected),
        }
    }

    /// What is looked at.
    pub fn page(&self) -> Page {
        self.page
    }

    /// The times and texts of the events, the oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// Takes a key, and says what is to be done.
    pub fn press(&mut self, key: Key) -> Action {
        match (key, self.page) {
            (Key::Quit, Page::Overview) => {
                self.stop();
                return Action::Stop;
            }
            (Key::Suspend, _) => return Action::Suspend,
            (_, Page::Overview) => self.press_overview(key),
            (_, Page::Group { tab, scroll }) => self.press_group(key, tab, scroll),
        }
        Action::None
    }

    fn press_overview(&mut self, key: Key) {
        let last = self.groups.len().saturating_sub(1);
        match key {
            Key::Enter if !self.groups.is_empty() => {
                self.open(Tab::Stack);
                self.detail = Detail::default();
            }
            _ => self.selected = key.moved(self.selected, last),
        }
    }

    fn press_group(&mut self, key: Key, tab: Tab, scroll: usize) {
        let at = Tab::ALL.iter().position(|one| *one == tab).unwrap_or(0);
        let all = Tab::ALL.len();
        match key {
            Key::Back | Key::Quit => self.page = Page::Overview,
            Key::Next => self.open(Tab::ALL[(at + 1) % all]),
            Key::Previous => self.open(Tab::ALL[(at + all - 1) % all]),
            _ => {
                // The end of a log is what matters.
                let key = match tab {
                    Tab::Log => key.turned(),
                    _ => key,
                };
                let scroll = key.moved(scroll, self.detail.last_line(tab));
                self.page = Page::Group { tab, scroll };
            }
        }
    }

    fn open(&mut self, tab: Tab) {
        self.page = Page::Group { tab, scroll: 0 };
    }

    fn put(&mut self, group: Group) {
        match self.groups.iter_mut().find(|one| one.is(&group)) {
            Some(known) => known.update(group),
            None => self.groups.push(group),
        }
    }

    fn tell(&mut self, text: &str, is_note: bool) {
        self.events.push_back(Event {
            at: self.elapsed,
            text: printable(text),
            is_note,
        });
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }
}

/// A kind of finding by name.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Crash => "crash",
        Kind::Flaky => "flaky crash",
        Kind::Hang => "hang",
        Kind::Oom => "out-of-memory failure",
    }
}

/// Lines of a page that is turned.
const LEAF: usize = 10;

/// A key by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A line up.
    Up,
    /// A line down.
    Down,
    /// Ten lines up.
    PageUp,
    /// Ten lines down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// The page of the selected group.
    Enter,
    /// Back to the campaign.
    Back,
    /// The next part of the page.
    Next,
    /// The part before.
    Previous,
    /// Back to the campaign from a group's page; on the campaign, its end.
    Quit,
    /// Back to the shell for a while.
    Suspend,
}

impl Key {
    /// The key where the last line stands at the bottom, and lines are counted from there.
    pub(super) fn turned(self) -> Key {
        match self {
            Key::Up => Key::Down,
            Key::Down => Key::Up,
            Key::PageUp => Key::PageDown,
            Key::PageDown => Key::PageUp,
            Key::First => Key::Last,
            Key::Last => Key::First,
            other => other,
        }
    }

    /// A line, moved by the key between 0 and `last`.
    pub(super) fn moved(self, line: usize, last: usize) -> usize {
        let moved = match self {
            Key::Up => line.saturating_sub(1),
            Key::Down => line.saturating_add(1),
            Key::PageUp => line.saturating_sub(LEAF),
            Key::PageDown => line.saturating_add(LEAF),
            Key::First => 0,
            Key::Last => last,
            _ => line,
        };
        moved.min(last)
    }
}

/// What a key asks for beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// An end, with the state saved.
    Stop,
    /// A rest, as by Ctrl-Z.
    Suspend,
}

/// One group, its texts cleaned for a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The kind of finding.
    pub kind: Kind,
    /// The first digits of its major key.
    pub key: String,
    /// The entry that it is shown through; `None` where its folder does not say which.
    pub entry: Option<EntryId>,
    /// What kind of death.
    pub class: String,
    /// The estimate, with its reason.
    pub severity: String,
    /// Where in the user's code; `-` where nothing is known.
    pub place: String,
    /// The first line of what the crash said.
    pub message: Option<String>,
    /// Runs that ended so.
    pub seen: u64,
    /// Size of the input as found, in bytes.
    pub size_before: u64,
    /// Size of the best input known, in bytes.
    pub size: u64,
    /// Whether it has become smaller since the screen knows it.
    pub shrinks: bool,
    /// Tests that its minimization executed, where that has ended.
    pub tests: Option<u64>,
    /// The claim in short, where the minimization has ended.
    pub claim: Option<String>,
    /// The claim as a sentence.
    pub sentence: String,
    /// The file of the best input.
    pub file: String,
}

impl Group {
    /// What there is to show of `view`.
    pub fn of(view: &GroupView) -> Group {
        let hash = view.file.parent().and_then(|folder| folder.file_name());
        let entry = hash.and_then(|hash| {
            let (major, minor) = (view.major.short(), view.minor.short());
            EntryId::from_names(view.kind, &major, &minor, &hash.to_string_lossy())
        });
        let severity = match view.severity {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        };
        Group {
            kind: view.kind,
            key: view.major.short(),
            entry,
            class: printable(&view.class.to_string()),
            severity: printable(&format!("{severity} ({})", view.severity_reason)),
            place: printable(view.place.as_deref().unwrap_or("-")),
            message: view.trace.headline().map(printable),
            seen: view.runs_seen,
            size_before: view.size_before,
            size: view.size_after(),
            shrinks: false,
            tests: view.tests_executed(),
            claim: (view.minimized.as_ref()).map(|_| printable(&view.standing())),
            sentence: printable(&view.claim()),
            file: printable(&view.file.to_string_lossy()),
        }
    }

    /// Whether both are the same group.
    pub fn is(&self, other: &Group) -> bool {
        self.kind == other.kind && self.key == other.key
    }

    /// Takes over what is newer in `now`. A group is shown through the entry that is worked on; once
    /// that has a result, another one takes its place only with a smaller result.
    pub fn update(&mut self, now: Group) {
        let is_smaller = now.claim.is_some() && now.size < self.size;
        if self.claim.is_some() && now.entry != self.entry && !is_smaller {
            self.seen = now.seen;
            return;
        }
        let shrinks = self.shrinks || now.entry == self.entry && now.size < self.size;
        *self = Group { shrinks, ..now };
    }

    /// The claim, or how far its minimization is.
    pub fn standing(&self) -> &str {
        match &self.claim {
            Some(claim) => claim,
            None if self.shrinks => "minimizing",
            None => "-",
        }
    }
}

/// Samples kept at most: twice the columns of the widest plot.
const KEPT: usize = 480;
/// Milliseconds between two samples at first.
const STEP_MS: u64 = 500;
/// Milliseconds that the rate of now is taken over.
const NOW_MS: u64 = 3000;
/// Most points that the rate of now is taken from.
const NOW_POINTS: usize = 64;

/// What is kept of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the campaign began.
    pub time_ms: u64,
    /// Runs until then.
    pub runs: u64,
    /// Edges reached until then, where coverage is known.
    pub edges: Option<u64>,
    /// Inputs in the corpus then.
    pub corpus: u64,
}

impl Sample {
    fn of(progress: &Progress) -> Sample {
        Sample {
            time_ms: progress.time_ms,
            runs: progress.runs,
            edges: progress.edges,
            corpus: progress.corpus,
        }
    }
}

/// Samples at even distances. When there are too many of them, every second one goes and the
/// distance doubles, so that a week takes as much memory as a minute.
#[derive(Clone, Debug)]
pub struct History {
    samples: Vec<Sample>,
    step_ms: u64,
    recent: VecDeque<Sample>,
}

impl Default for History {
    fn default() -> Self {
        History {
            samples: Vec::new(),
            step_ms: STEP_MS,
            recent: VecDeque::new(),
        }
    }
}

impl History {
    /// Takes the model at one moment; moments that go back in time are passed over.
    pub fn add(&mut self, progress: &Progress) {
        let sample = Sample::of(progress);
        if self.recent.back().is_some_and(|last| {
            last.time_ms >= sample.time_ms
                || self.recent.len() > 1
                    && sample.time_ms - last.time_ms < NOW_MS / NOW_POINTS as u64
        }) {
            return;
        }
        self.recent.push_back(sample);
        let too_old = |one: &Sample| sample.time_ms - one.time_ms > NOW_MS;
        while self.recent.len() > 2 && (self.recent.len() > NOW_POINTS || too_old(&self.recent[1]))
        {
            self.recent.pop_front();
        }
        let due = |last: &Sample| sample.time_ms >= last.time_ms + self.step_ms;
        if self.samples.last().is_none_or(due) {
            self.samples.push(sample);
        }
        if self.samples.len() > KEPT {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_ms *= 2;
        }
    }

    /// Runs per second of the last seconds; `None` before there are two moments.
    pub fn rate_now(&self) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        rate(first, last)
    }

    /// Samples that are kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether nothing is kept yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Runs per second in `columns` even parts of the time so far.
    pub fn rates(&self, columns: usize) -> Vec<f64> {
        let (Some(first), Some(last)) = (self.samples.first(), self.recent.back()) else {
            return Vec::new();
        };
        let points: Vec<(f64, f64)> = self
            .with_last()
            .map(|one| (one.time_ms as f64, one.runs as f64))
            .collect();
        let (begin, end) = (first.time_ms as f64, last.time_ms as f64);
        if end <= begin {
            return Vec::new();
        }
        let width = (end - begin) / columns as f64;
        let runs = |column: usize| between(&points, begin + width * column as f64);
        (0..columns)
            .map(|column| ((runs(column + 1) - runs(column)) / (width / 1000.0)).max(0.0))
            .collect()
    }

    /// What `level` takes of a sample, at the ends of `columns` even parts of the time so far.
    pub fn levels(&self, columns: usize, level: impl Fn(&Sample) -> Option<u64>) -> Vec<f64> {
        let (Some(first), Some(last)) = (self.samples.first(), self.recent.back()) else {
            return Vec::new();
        };
        let span = (last.time_ms - first.time_ms) as f64;
        let all: Vec<Sample> = self.with_last().copied().collect();
        (1..=columns)
            .map(|column| {
                let time = first.time_ms + (span * column as f64 / columns as f64) as u64;
                let behind = all.partition_point(|one| one.time_ms <= time);
                let at = &all[behind.saturating_sub(1)];
                level(at).unwrap_or_default() as f64
            })
            .collect()
    }

    /// The samples, and the last moment of all.
    fn with_last(&self) -> impl Iterator<Item = &Sample> {
        let newer = self
            .recent
            .back()
            .filter(|last| self.samples.last().is_some_and(|kept| kept != *last));
        self.samples.iter().chain(newer)
    }
}

fn rate(first: &Sample, last: &Sample) -> Option<f64> {
    let time = last.time_ms.checked_sub(first.time_ms)?;
    let runs = last.runs.saturating_sub(first.runs);
    (time > 0).then(|| runs as f64 * 1000.0 / time as f64)
}

/// The value at `x` on the line through the points, which ascend.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let behind = points.partition_point(|(at, _)| *at < x);
    match (points.get(behind.wrapping_sub(1)), points.get(behind)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (None, Some((_, y))) | (Some((_, y)), None) => *y,
        (None, None) => 0.0,
    }
}
