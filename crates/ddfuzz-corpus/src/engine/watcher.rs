//! Who watches a cleanup.

/// What a cleanup is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Files are read, and new contents run.
    Reading {
        /// Files so far.
        files: u64,
        /// Runs so far.
        runs: u64,
    },
    /// What did not end well is triaged, filed and minimized.
    Filing {
        /// So many contents.
        inputs: u64,
    },
    /// The subset is chosen.
    Choosing {
        /// Of so many contents.
        contents: u64,
    },
    /// Contents are run again.
    Repeating {
        /// So many.
        contents: u64,
    },
    /// Kept files are trimmed.
    Trimming {
        /// Which round, from 1.
        round: u32,
        /// Files that are done.
        done: u64,
        /// Of so many.
        of: u64,
    },
    /// The target's own fuzzer counts what the corpus and the kept files reach.
    Counting {
        /// So many files of the corpus.
        files: u64,
    },
    /// What was written is run again.
    Checking {
        /// So many files.
        files: u64,
    },
}

/// Watches a cleanup. Called from one thread.
pub trait Watcher: Send {
    /// What is being done, now and then.
    fn doing(&mut self, doing: Doing);

    /// Something that the user should know.
    fn say(&mut self, text: &str);
}
