//! What is known of how contents behave, on disk (`clean.classes`).

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::Behaviour;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::{Appender, FileError};
use ddfuzz_store::StoreError;

/// One line: how one target behaves on one content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    /// Version of the line's schema.
    v: u32,
    /// The target: its program's content, arguments, environment and limits.
    target: ContentHash,
    /// The content.
    input: ContentHash,
    /// How the target behaves on it.
    behaviour: Behaviour,
}

const VERSION: u32 = 1;

/// The behaviours that are on record for one target, in a file that grows by a line for each
/// content. A torn last line is dropped; lines of other targets stay, and do not count. In memory
/// stands only where which line is.
pub struct BehaviourJournal {
    appender: Appender,
    reader: File,
    target: ContentHash,
    known: HashMap<ContentHash, (u64, u32)>,
}

impl BehaviourJournal {
    /// The name of the file in an output directory.
    pub const NAME: &'static str = "clean.classes";

    /// Opens the journal at `path`, or makes it. `target` is the target's
    /// [identity](ddfuzz_campaign::identity).
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path, target: ContentHash) -> Result<BehaviourJournal, StoreError> {
        let appender = Appender::open(path)?;
        let reader = File::open(path).map_err(FileError::at("open", path))?;
        let mut known = HashMap::new();
        let (mut lines, mut text, mut at) = (BufReader::new(&reader), Vec::new(), 0);
        loop {
            text.clear();
            let length = lines.read_until(b'\n', &mut text);
            let length = length.map_err(FileError::at("read", path))?;
            if length == 0 {
                break;
            }
            // A damaged line is passed over: its input is run again.
            if let Some(line) = Line::read(&text, target) {
                known.insert(line.input, (at, length as u32));
            }
            at += length as u64;
        }
        Ok(BehaviourJournal {
            appender,
            reader,
            target,
            known,
        })
    }

    /// Whether a content is on record.
    pub fn has(&self, content: ContentHash) -> bool {
        self.known.contains_key(&content)
    }

    /// What is on record of a content.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&self, content: ContentHash) -> Result<Option<Behaviour>, StoreError> {
        let Some((at, length)) = self.known.get(&content) else {
            return Ok(None);
        };
        let mut text = vec![0; *length as usize];
        (self.reader.read_exact_at(&mut text, *at))
            .map_err(FileError::at("read", self.appender.path()))?;
        Ok(Line::read(&text, self.target).map(|line| line.behaviour))
    }

    /// Adds what was found out, which survives the death of the process at once.
    ///
    /// # Errors
    /// When it cannot be written whole.
    pub fn add(&mut self, content: ContentHash, behaviour: &Behaviour) -> Result<(), StoreError> {
        let line = Line {
            v: VERSION,
            target: self.target,
            input: content,
            behaviour: behaviour.clone(),
        };
        let text = serde_json::to_vec(&line).map_err(|error| StoreError::Unwritable {
            path: self.appender.path().to_owned(),
            why: error.to_string(),
        })?;
        let at = self.appender.len();
        self.appender.append(&text)?;
        self.known.insert(content, (at, text.len() as u32 + 1));
        Ok(())
    }

    /// Writes all lines through to the device, so that they survive a power cut, too.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn sync(&self) -> Result<(), StoreError> {
        Ok(self.appender.sync()?)
    }
}

impl Line {
    /// The line that this text is, if it is one of this target.
    fn read(text: &[u8], target: ContentHash) -> Option<Line> {
        let line: Line = serde_json::from_slice(text).ok()?;
        (line.v == VERSION && line.target == target).then_some(line)
    }
}
