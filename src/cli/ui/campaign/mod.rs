//! Full screen of a campaign.
//!
//! Events of the campaign ([`crate::campaign::Screen`]) and keys ([`Key`]) change the model
//! ([`ScreenModel`]); `draw` converts the model to text as a pure function. [`FullScreen`] connects
//! both with a terminal and the files of the output directory.
//!
//! Only this module uses `ratatui-core`, and `ratatui-crossterm`, which handles the terminal.

mod draw;
mod group_page;

mod model;
mod overview;
mod terminal;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use draw::{Palette, draw, plot, size_bar};
pub use group_page::{Detail, Log};

pub use model::{Action, Event, Group, Heading, History, Key, Page, Sample, ScreenModel, Tab};
pub use terminal::{Terminal, owns_terminal, restore_terminal};

use crate::campaign::{Progress, Screen};
use crate::cli::output::{Output, tell};
use crate::report::GroupView;
use crate::store::{Kind, Reader};

/// Minimum interval between checks whether keys were pressed.
const KEY_INTERVAL: Duration = Duration::from_millis(40);
/// Minimum interval between redraws of the full screen, unless a key was pressed.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum interval between reads of crash groups from the output directory.
const READ_INTERVAL: Duration = Duration::from_millis(500);

/// The full screen of a campaign on a terminal, shown until it is dropped. It has no thread: it
/// draws and reads keys when the campaign reports progress.
pub struct FullScreen {
    model: ScreenModel,
    /// The terminal that shows the full screen; `None` once it fails, for example because its
    /// window was closed.
    terminal: Option<Terminal>,
    reader: Reader,
    stop: Arc<AtomicBool>,
    began: Instant,
    looked: Option<Instant>,
    drawn: Option<Instant>,
    read: Option<Instant>,
    /// Number of times that the output directory was read; it determines which crash group is read
    /// next.
    turn: usize,
}

impl FullScreen {
    /// Shows the full screen of a campaign on the terminal of stderr, and returns it; `None` if
    /// there is no terminal, or if `output` is quiet or JSON. The quit key sets `stop` to true.
    /// `known` are the groups that were found before this call of ddfuzz.
    pub fn take(
        output: &Output,
        heading: Heading,
        reader: &Reader,
        stop: &Arc<AtomicBool>,
        known: &[GroupView],
    ) -> Option<FullScreen> {
        if output.quiet || output.json {
            return None;
        }
        // If the terminal cannot be used, the caller prints lines instead.
        let terminal = Terminal::take().ok().flatten()?;
        let mut model = ScreenModel::new(heading, Palette::new(output.colored()));
        known.iter().for_each(|view| model.known(view));
        let mut full = FullScreen {
            model,
            terminal: Some(terminal),
            reader: reader.clone(),
            stop: Arc::clone(stop),
            began: Instant::now(),
            looked: None,
            drawn: None,
            read: None,
            turn: 0,
        };
        full.show(true);
        Some(full)
    }

    /// Handles pressed keys, reads files and redraws the screen, each only if its interval has
    /// passed. `at_once`: redraws in any case. If the terminal fails, the campaign goes on without
    /// it.
    fn show(&mut self, at_once: bool) {
        let now = Instant::now();
        self.model.at(self.began.elapsed());
        if self.stop.load(Ordering::Relaxed) {
            self.model.stop();
        }
        let mut wanted = at_once || is_due(self.drawn, REDRAW_INTERVAL, now);
        if is_due(self.looked, KEY_INTERVAL, now) {
            self.looked = Some(now);
            wanted |= self.listen().unwrap_or_else(|_| {
                self.terminal = None;
                false
            });
        }
        if is_due(self.read, READ_INTERVAL, now) {
            self.read = Some(now);
            self.read_files();
        }
        if wanted && let Some(terminal) = &mut self.terminal {
            self.drawn = Some(now);
            if terminal.draw(&self.model).is_err() {
                self.terminal = None;
            }
        }
    }

    /// Handles all keys that were pressed since the last call. Returns true if there were any, and
    /// false if not.
    fn listen(&mut self) -> io::Result<bool> {
        let mut pressed = false;
        while let Some(terminal) = &mut self.terminal
            && let Some(key) = terminal.key()?
        {
            pressed = true;
            match self.model.press(key) {
                Action::None => {}
                Action::Stop => self.stop.store(true, Ordering::Relaxed),
                Action::Suspend => terminal.suspend()?,
            }
            // The page of another group is read before it is drawn.
            self.read = None;
        }
        Ok(pressed)
    }

    /// Reads new data of one crash group from the output directory; only of one, because the
    /// campaign waits meanwhile. Every second call reads the group whose page is shown, or, if no
    /// page of a group is shown, the next group that is not minimized. The other calls read all
    /// groups in turn.
    fn read_files(&mut self) {
        if let Some(id) = self.model.opened().and_then(|group| group.entry.clone()) {
            self.model.detail().read(&self.reader, &id);
        }
        let groups = self.model.groups();
        let next = |from: usize| (0..groups.len()).map(move |step| (from + step) % groups.len());
        let open = self.model.opened().and_then(|open| {
            let mut all = groups.iter();
            all.position(|one| one.is(open))
        });
        let unended = || next(self.turn).find(|at| groups[*at].claim.is_none());
        // Every other read takes any group, one after the other.
        let any = || next(self.turn).next();
        let chosen = match self.turn % 2 {
            0 => open.or_else(unended).or_else(any),
            _ => any(),
        };
        self.turn = self.turn.wrapping_add(1);
        if let Some(view) = chosen.and_then(|at| self.view(&groups[at])) {
            self.model.known(&view);
        }
    }

    /// Reads the current data of a group from the output directory; `None` if it cannot be read.
    fn view(&self, group: &Group) -> Option<GroupView> {
        let id = group.entry.as_ref()?;
        let record = self.reader.group(id.kind(), id.major()).ok()??;
        let entry = self.reader.entry(id).ok()??;
        GroupView::load(&record, &entry).ok()
    }
}

impl Screen for FullScreen {
    fn seen(&mut self, seen: &BTreeMap<Kind, BTreeMap<String, u64>>) {
        if is_due(self.drawn, REDRAW_INTERVAL, Instant::now()) {
            self.model.seen(seen);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.model.progress(progress);
        self.show(false);
    }

    fn group(&mut self, group: &GroupView) {
        self.model.at(self.began.elapsed());
        self.model.group(group);
        self.show(false);
    }

    fn minimized(&mut self, group: &GroupView) {
        self.model.at(self.began.elapsed());
        self.model.minimized(group);
        self.show(false);
    }

    fn note(&mut self, text: &str) {
        self.model.at(self.began.elapsed());
        self.model.note(text);
        self.show(true);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.terminal = None;
        // Notes for the user stay visible after the screen is closed.
        for event in self.model.events().filter(|event| event.is_note) {
            tell(&event.text);
        }
    }
}

/// Returns true if at the time `now` the interval `every` has passed since the time `last`, or if
/// `last` is `None`; else false.
fn is_due(last: Option<Instant>, every: Duration, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= every)
}
