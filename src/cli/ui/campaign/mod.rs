//! The screen of a campaign: the whole terminal.
//!
//! What is told ([`crate::campaign::Screen`]) and what is pressed ([`Key`]) change the model
//! ([`ScreenModel`]); `draw` turns the model into characters and is a pure function of it. [`FullScreen`]
//! joins both with a terminal and the files of the output directory.
//!
//! Localized here: `ratatui` (characters, and as `ratatui::crossterm` the terminal); `nix` and
//! `libc` for the modes of the terminal.

mod draw;
mod group_page;

mod model;
mod overview;
mod terminal;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use draw::{Palette, draw, left, plot};
pub use group_page::{Detail, Log};

pub use model::{Action, Event, Group, Heading, History, Key, Page, Sample, ScreenModel, Tab};
pub use terminal::{Terminal, give_back};

use crate::campaign::{Progress, Screen};
use crate::cli::output::{Output, tell};
use crate::report::GroupView;
use crate::store::Reader;

/// Between two looks at the keys.
const KEYS: Duration = Duration::from_millis(40);
/// Between two pictures, unless a key asks for one.
const PICTURES: Duration = Duration::from_millis(200);
/// Between two looks at files: of the group that is open, or of the next one in turn.
const FILES: Duration = Duration::from_millis(500);

/// The screen of a campaign, on the whole terminal until it is dropped. It has no thread: it draws
/// and listens whenever it is told something.
pub struct FullScreen {
    model: ScreenModel,
    /// Gone with the terminal itself.
    terminal: Option<Terminal>,
    reader: Reader,
    stop: Arc<AtomicBool>,
    began: Instant,
    looked: Option<Instant>,
    drawn: Option<Instant>,
    read: Option<Instant>,
    /// The group whose files are read next.
    turn: usize,
}

impl FullScreen {
    /// A screen on the terminal that stderr is; `None` where it is none, or `output` wants
    /// something else. `stop` is raised by the key that ends; `known` are groups from before.
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
        // Where the terminal cannot be had, lines do.
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

    /// Listens and draws, as far as it is time for that, or `at_once`. A terminal that is gone
    /// does not end the campaign.
    fn show(&mut self, at_once: bool) {
        let now = Instant::now();
        self.model.at(self.began.elapsed());
        if self.stop.load(Ordering::Relaxed) {
            self.model.stop();
        }
        let mut wanted = at_once || is_due(self.drawn, PICTURES, now);
        if is_due(self.looked, KEYS, now) {
            self.looked = Some(now);
            wanted |= self.listen().unwrap_or_else(|_| {
                self.terminal = None;
                false
            });
        }
        if is_due(self.read, FILES, now) {
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

    /// Does what the keys say; gives whether there were any.
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

    /// Reads what is new of the open group, or else of the next one in turn whose minimization has
    /// not ended, or of any: runs are still counted. One group at a time, for the campaign waits.
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
        // Every other look goes to the rest.
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

    /// A group as it is now; `None` where it cannot be read, which the campaign will notice.
    fn view(&self, group: &Group) -> Option<GroupView> {
        let id = group.entry.as_ref()?;
        let record = self.reader.group(id.kind(), id.major()).ok()??;
        let entry = self.reader.entry(id).ok()??;
        GroupView::load(&record, &entry).ok()
    }
}

impl Screen for FullScreen {
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
        // What the user should know is not gone with the screen.
        for event in self.model.events().filter(|event| event.is_note) {
            tell(&event.text);
        }
    }
}

/// Whether it is time for something that was done at `last`.
fn is_due(last: Option<Instant>, every: Duration, now: Instant) -> bool {
    last.is_none_or(|last| now.duration_since(last) >= every)
}
