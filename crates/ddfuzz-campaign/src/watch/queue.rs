//! Files that are to be run, until they are handed out.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crossbeam::channel::{Sender, TrySendError};

use super::books::Books;
use super::examiner::Task;
use super::sources::{Settled, Sources};
use crate::error::CampaignError;
use crate::rebuild::Face;
use crate::screen::Screen;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::regular::{self, Unread};
use ddfuzz_store::report::size;

/// The sources, and what was found in them and is not handed out.
pub(super) struct Queue {
    sources: Sources,
    max_len: u64,
    files: VecDeque<Settled>,
    /// A task for which the threads had no room yet.
    held: Option<Task>,
    /// Tasks that were handed out.
    given: u64,
}

impl Queue {
    pub(super) fn new(sources: Sources, max_len: u64) -> Queue {
        Queue {
            sources,
            max_len,
            files: VecDeque::new(),
            held: None,
            given: 0,
        }
    }

    /// These files are sources, too.
    pub(super) fn add(&mut self, files: Vec<PathBuf>) {
        self.sources.add(files);
    }

    /// Whether the sources are to be looked through now.
    pub(super) fn is_due(&self) -> bool {
        self.sources.due_in().is_zero()
    }

    /// Looks through the sources; gives the files that may still be being written.
    pub(super) fn look(&mut self, screen: &mut dyn Screen) -> Vec<PathBuf> {
        let look = self.sources.look();
        for note in look.notes {
            screen.note(&note);
        }
        self.files.extend(look.settled);
        look.moving
    }

    /// All files are to be run again, as the next look finds them.
    pub(super) fn begin_anew(&mut self) {
        self.sources.forget();
        self.files.clear();
        (self.held, self.given) = (None, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.held.is_none()
    }

    /// How many files wait.
    pub(super) fn left(&self) -> u64 {
        self.files.len() as u64 + u64::from(self.held.is_some())
    }

    /// How many tasks were handed out.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// Hands out as many tasks as the threads have room for.
    pub(super) fn hand_out(
        &mut self,
        task: &Sender<Task>,
        books: &mut Books<'_>,
        screen: &mut dyn Screen,
    ) -> Result<(), CampaignError> {
        while let Some(next) = self.held.take().or_else(|| self.read_next(books, screen)) {
            match task.try_send(next) {
                Ok(()) => self.given += 1,
                Err(TrySendError::Full(next)) => {
                    self.held = Some(next);
                    break;
                }
                // A thread that ends says why.
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        Ok(())
    }

    /// Reads the next file whose content is new.
    fn read_next(&mut self, books: &mut Books<'_>, screen: &mut dyn Screen) -> Option<Task> {
        while let Some(Settled { input, face }) = self.files.pop_front() {
            let bytes = regular::read(&input.path, self.max_len);
            // It has waited for its turn, and may have gone or be another by now.
            if Face::at(&input.path) != Some(face) {
                self.sources.put_back(&input.path);
                continue;
            }
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(why) => {
                    screen.note(&unread(&input.path, &why));
                    continue;
                }
            };
            let content = ContentHash::of(&bytes);
            if books.take(content) {
                return Some(Task {
                    at: self.given,
                    file: input,
                    content,
                    bytes,
                });
            }
        }
        None
    }
}

/// What is said of a file that is not run. It is said again when the file has changed.
fn unread(path: &Path, why: &Unread) -> String {
    let why = match why {
        Unread::TooLarge { limit } => {
            let limit = size::limit(*limit);
            format!("it is larger than {limit}; --max-len allows more")
        }
        other => other.to_string(),
    };
    format!("warning: {} is not run: {why}", path.display())
}
