//! Model of the full screen: the state of the campaign, its groups, its rates over time, and the
//! page that is shown.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::campaign::Progress;
use crate::cli::ui::campaign::draw::Palette;
use crate::cli::ui::campaign::group_page::Detail;
use crate::report::text::printable;
use crate::report::{GroupView, size};
use crate::store::{EntryId, Kind};
use crate::triage::Severity;

/// Maximum number of events kept for the list of last events.
const MAX_EVENTS: usize = 200;

/// The facts about a campaign that the full screen shows at its top; they do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Name or command line of the target program of the campaign.
    pub target: String,
    /// Way in which the campaign executes its target, such as by a fork server.
    pub way: String,
    /// Name of the campaign's input generator, or of another fuzzer that ddfuzz watches.
    pub engine: String,
    /// Random seed of the input generator; `None` if another fuzzer generates the inputs.
    pub seed: Option<u64>,
    /// Path of the campaign's output directory.
    pub out: String,
}

/// An event of the campaign, shown as a line in the screen's list of last events, such as a new
/// group or a finished minimization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event since the campaign began.
    pub at: Duration,
    /// Text of the event, without control characters.
    pub text: String,
    /// Whether the event is a note for the user, which is also printed after the full screen is
    /// closed.
    pub is_note: bool,
}

/// A tab on the page of a crash group, which selects what of the group is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// Tab with the message, stacks and source lines of the crash.
    Stack,
    /// Tab with a hex dump of the reproducer.
    Input,
    /// Tab with a curve of the input's size over the tests of its minimization.
    Curve,
    /// Tab with the last lines of the minimization log as text.
    Log,
}

impl Tab {
    /// All tabs on the page of a crash group, from left to right.
    pub const ALL: [Tab; 4] = [Tab::Stack, Tab::Input, Tab::Curve, Tab::Log];

    /// Returns the label of the tab on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Tab::Stack => "stack",
            Tab::Input => "input",
            Tab::Curve => "curve",
            Tab::Log => "log",
        }
    }
}

/// A page that the full screen can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Page with an overview of the campaign: counts, charts, table of groups, last events.
    Overview,
    /// Page of the crash group that is selected in the overview.
    Group {
        /// Tab that is shown on the page of the crash group.
        tab: Tab,
        /// Number of lines by which the tab's text is scrolled: down from its first line, or, in
        /// the tab of the minimization log, up from its last line.
        scroll: usize,
    },
}

/// The state of the full screen: the campaign's progress, groups and events, and the page that is
/// shown. It has no clock: callers pass the time.
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
    /// Creates the state of the full screen as a campaign begins: the overview page, without
    /// groups. `heading` says what is fuzzed and how, `palette` has the styles.
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

    /// Sets the time since the campaign began to `elapsed`; ignores a time that is earlier than the
    /// one set last.
    pub fn at(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// Sets the current progress of the campaign (numbers of runs, crashes, covered edges), and
    /// adds it to the plots.
    pub fn progress(&mut self, progress: &Progress) {
        self.at(Duration::from_millis(progress.time_ms));
        self.history.add(progress);
        self.progress = Some(*progress);
    }

    /// Raises the number of runs of each group to the number in `seen`, by kind and major key: the
    /// campaign has counted it, while the number that was read from the group's file may be older.
    pub fn seen(&mut self, seen: &BTreeMap<Kind, BTreeMap<String, u64>>) {
        for group in &mut self.groups {
            let of_kind = seen.get(&group.kind);
            let counted = of_kind.and_then(|groups| groups.get(&group.key));
            group.seen = group.seen.max(counted.copied().unwrap_or(0));
        }
    }

    /// Adds a crash group, or updates it if it was added before, and adds nothing to the list of
    /// events. Used for groups that were found before this call of ddfuzz, or that are read again.
    pub fn known(&mut self, view: &GroupView) {
        self.put(Group::of(view));
    }

    /// Adds or updates a crash group; a new one is added to the list of events.
    pub fn group(&mut self, view: &GroupView) {
        let group = Group::of(view);
        if self.groups.iter().all(|one| !one.is(&group)) {
            let (what, size) = (kind(group.kind), size::bytes(group.size_before));
            let Group { key, class, .. } = &group;
            self.tell(&format!("new {what} {key}: {class}, {size}"), false);
        }
        self.put(group);
    }

    /// Updates a crash group whose minimization has ended, and adds an event about it.
    pub fn minimized(&mut self, view: &GroupView) {
        let group = Group::of(view);
        if view.kind == Kind::Flaky {
            // The group was one of crashes before its crash did not occur again.
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

    /// Adds `text`, a note for the user, to the list of events.
    pub fn note(&mut self, text: &str) {
        self.tell(text, true);
    }

    /// Marks the campaign as ending, and adds an event about it; called when the user has asked to
    /// end the campaign.
    pub fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.tell("stopping: the state is being saved", false);
        }
    }

    /// Returns the data read from the files (such as the log) of the group whose page is shown.
    pub fn detail(&mut self) -> &mut Detail {
        &mut self.detail
    }

    /// Returns all groups, also those of hangs and other failures, in the order in which the screen
    /// got them.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the group whose page is shown; `None` on the overview.
    pub fn opened(&self) -> Option<&Group> {
        match self.page {
            Page::Overview => None,
            Page::Group { .. } => self.groups.get(self.selected),
        }
    }

    /// Returns which page is shown: the overview, or a tab of a group's page.
    pub fn page(&self) -> Page {
        self.page
    }

    /// Returns the last events of the campaign, the oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// Changes the state of the screen as a pressed key requires, such as by scrolling; returns
    /// what the caller has to do in addition.
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
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }
}

/// Returns the name of a kind of failure as shown to the user: crash, flaky crash, hang,
/// out-of-memory failure.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Crash => "crash",
        Kind::Flaky => "flaky crash",
        Kind::Hang => "hang",
        Kind::Oom => "out-of-memory failure",
    }
}

/// Number of lines by which page up and page down scroll.
const PAGE_LINES: usize = 10;

/// The meaning of a pressed key on the full screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Key that moves the selection or the text one line up.
    Up,
    /// Key that moves the selection or the text one line down.
    Down,
    /// Key that moves the selection or the text ten lines up.
    PageUp,
    /// Key that moves the selection or the text ten lines down.
    PageDown,
    /// Key that moves the selection or the text to the first line.
    First,
    /// Key that moves the selection or the text to the last line.
    Last,
    /// Key that opens the page of the group selected in the overview.
    Enter,
    /// Key that returns from the page of a group to the overview.
    Back,
    /// Key that shows the next tab of a group's page.
    Next,
    /// Key that shows the previous tab of a group's page.
    Previous,
    /// Key that returns from the page of a group to the overview; on the overview, ends the
    /// campaign.
    Quit,
    /// Key that suspends ddfuzz, as Ctrl-Z does in a shell.
    Suspend,
}

impl Key {
    /// Returns the key for the opposite direction (up for down), for text whose scrolling is
    /// counted from its end.
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

    /// Returns the number of the line to which this key moves the selection or the text from line
    /// `line`; at most `last`.
    pub(super) fn moved(self, line: usize, last: usize) -> usize {
        let moved = match self {
            Key::Up => line.saturating_sub(1),
            Key::Down => line.saturating_add(1),
            Key::PageUp => line.saturating_sub(PAGE_LINES),
            Key::PageDown => line.saturating_add(PAGE_LINES),
            Key::First => 0,
            Key::Last => last,
            _ => line,
        };
        moved.min(last)
    }
}

/// What the caller of [`ScreenModel::press`] has to do after a key was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The caller has nothing to do: the key changed only the state of the screen.
    None,
    /// The caller has to stop the campaign, whose state is saved.
    Stop,
    /// The caller has to suspend the process, as Ctrl-Z does in a shell.
    Suspend,
}

/// A crash group as the full screen shows it; its texts contain no control characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub kind: Kind,
    /// First hex digits of the major key, which identifies the crash group.
    pub key: String,
    /// Id of the stored crash that represents the group; `None` if its folder has no valid name.
    pub entry: Option<EntryId>,
    /// Class of the crash, such as a signal or a sanitizer's report.
    pub class: String,
    /// Estimated severity of the group's crash, with the reason for it.
    pub severity: String,
    /// Place of the group's crash in the user's code; `-` if unknown.
    pub place: String,
    /// First line of the message of the group's crash; `None` without a message.
    pub message: Option<String>,
    /// Number of runs that ended with a crash of this group.
    pub seen: u64,
    /// Size in bytes of the original input that showed the group's crash.
    pub size_before: u64,
    /// Size in bytes of the smallest known input that shows the group's crash.
    pub size: u64,
    /// Whether the smallest known input has become smaller since the full screen first showed the
    /// group.
    pub shrinks: bool,
    /// Number of tests that the group's minimization has executed; `None` before the minimization
    /// has finished.
    pub tests: Option<u64>,
    /// What the group's finished minimization claims, in a word such as `1-minimal`; `None` before
    /// the minimization has finished.
    pub claim: Option<String>,
    /// A sentence about the minimization of the group: what its result is claimed to be, or how
    /// small the input has become so far.
    pub sentence: String,
    /// Path of the file with the smallest known input that shows the group's crash.
    pub file: String,
}

impl Group {
    /// Converts a group of the output directory to texts and numbers for the full screen.
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
            claim: (view.minimized.as_ref()).map(|_| printable(&view.status_text())),
            sentence: printable(&view.claim()),
            file: printable(&view.file.to_string_lossy()),
        }
    }

    /// Returns true if `self` and `other` are the same crash group, by kind and key; their other
    /// data may differ. Else false.
    pub fn is(&self, other: &Group) -> bool {
        self.kind == other.kind && self.key == other.key
    }

    /// Replaces the data of this crash group by the newer data `now`, but keeps the higher number
    /// of runs, because `now` may come from an older file. Takes over only the number of runs if
    /// the minimization of this group has finished, and `now` has another stored crash of the group
    /// without a smaller minimized input.
    pub fn update(&mut self, now: Group) {
        let is_smaller = now.claim.is_some() && now.size < self.size;
        if self.claim.is_some() && now.entry != self.entry && !is_smaller {
            self.seen = self.seen.max(now.seen);
            return;
        }
        let shrinks = self.shrinks || now.entry == self.entry && now.size < self.size;
        let seen = self.seen.max(now.seen);
        *self = Group {
            shrinks,
            seen,
            ..now
        };
    }

    /// Returns how far the group's minimization has come, in a word: its claim (such as
    /// `1-minimal`) if it has finished, `minimizing` if the input has become smaller so far, and
    /// else `-`.
    pub fn standing(&self) -> &str {
        match &self.claim {
            Some(claim) => claim,
            None if self.shrinks => "minimizing",
            None => "-",
        }
    }
}

/// Maximum number of progress samples that are kept for the plots: twice the columns of the widest
/// plot.
const MAX_SAMPLES: usize = 480;
/// Interval between progress samples at the beginning of a campaign, in milliseconds; it doubles
/// whenever there are too many samples.
const STEP_MS: u64 = 500;
/// The current number of runs per second is measured over this many milliseconds.
const NOW_MS: u64 = 3000;
/// Maximum number of samples from which the current number of runs per second is computed.
const NOW_POINTS: usize = 64;

/// A sample of a campaign's progress at one time, for the plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample since the campaign began, in milliseconds.
    pub time_ms: u64,
    /// Number of runs that the campaign had made at the time of the sample.
    pub runs: u64,
    /// Number of covered edges at the time of the sample; `None` if the target reports no coverage.
    pub edges: Option<u64>,
    /// Number of inputs in the campaign's corpus at the time of the sample.
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

/// The progress of a campaign over time, for the plots: samples at equal intervals. When there are
/// too many samples, every second one is dropped and the interval is doubled, so that memory stays
/// bounded.
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
    /// Adds the current progress to the samples of the last seconds, and if the sampling interval
    /// has passed, also to those of the whole campaign. Ignores progress that is earlier than the
    /// last sample, or that follows it too soon.
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
        if self.samples.len() > MAX_SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_ms *= 2;
        }
    }

    /// Returns the number of runs per second over the last three seconds; `None` before there are
    /// two samples.
    pub fn rate_now(&self) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        rate(first, last)
    }

    /// Returns the number of samples of the campaign's progress (time and runs) that are stored at
    /// present; it is less than the number of samples added, if some were dropped.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns true if no sample of the campaign's progress was added yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Divides the time of the campaign into `columns` equal parts, and returns the number of runs
    /// per second in each part. Empty if there are fewer than two samples.
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

    /// Divides the time of the campaign into `columns` equal parts, and returns a value at the end
    /// of each part. `level`: takes that value from a sample, such as the number of covered edges.
    /// An unknown value is 0. Empty if there is no sample.
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

    /// Returns all samples of the campaign's progress, the oldest first, followed by the latest
    /// progress.
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

/// Returns the y at `x` of the line that connects `points` (pairs of x and y, sorted by x) by
/// straight pieces. Before the first point and after the last one, returns the y of that point; 0
/// without points.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let behind = points.partition_point(|(at, _)| *at < x);
    match (points.get(behind.wrapping_sub(1)), points.get(behind)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (None, Some((_, y))) | (Some((_, y)), None) => *y,
        (None, None) => 0.0,
    }
}
