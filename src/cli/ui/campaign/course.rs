//! The model: all that was told of a campaign, and what of it is looked at.

use std::collections::VecDeque;
use std::time::Duration;

use super::detail::Detail;
use super::group::Group;
use super::history::History;
use super::key::{Action, Key};
use super::style::Palette;
use crate::campaign::Progress;
use crate::report::text::printable;
use crate::report::{GroupView, size};
use crate::store::Kind;

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

/// All that was told of a campaign, and what of it is looked at. It has no clock: times are told.
#[derive(Clone, Debug)]
pub struct Course {
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

impl Course {
    /// A campaign that begins.
    pub fn new(heading: Heading, palette: Palette) -> Course {
        let clean = |text: &str| printable(text);
        Course {
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

    /// The course at one moment.
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
