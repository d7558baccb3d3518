//! A log in memory.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ddfuzz::minimize::log::{LogWriter, Medium};

/// What was written, shared with the writer, and how much of it is synced.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

struct State {
    bytes: Vec<u8>,
    writes: Vec<usize>,
    synced: Vec<usize>,
}

impl Memory {
    /// A log that holds these bytes already.
    pub fn new(bytes: &[u8]) -> Memory {
        let state = State {
            bytes: bytes.to_vec(),
            writes: Vec::new(),
            synced: Vec::new(),
        };
        Memory {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// A writer that appends here.
    pub fn writer(&self) -> LogWriter {
        LogWriter::on(Box::new(self.clone()), Path::new("memory.jsonl"))
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.state.lock().expect("no writer panicked").bytes.clone()
    }

    /// Length of the log after each write, and at each sync.
    pub fn lengths(&self) -> (Vec<usize>, Vec<usize>) {
        let state = self.state.lock().expect("no writer panicked");
        (state.writes.clone(), state.synced.clone())
    }
}

impl Medium for Memory {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().expect("no writer panicked");
        state.bytes.extend_from_slice(line);
        let length = state.bytes.len();
        state.writes.push(length);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state.lock().expect("no writer panicked");
        let length = state.bytes.len();
        state.synced.push(length);
        Ok(())
    }
}
