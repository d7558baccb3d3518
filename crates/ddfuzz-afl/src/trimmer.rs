//! The protocol between AFL++ and the library, in safe Rust.

use ddfuzz_delta::Outcome;

use crate::{Settings, entry::Entry, settings::default_steps};

/// The state of the trimming library, which trims one queue entry of AFL++ after another.
///
/// ```
/// use ddfuzz_delta::Outcome;
/// use ddfuzz_afl::{Settings, Trimmer};
///
/// let mut trimmer = Trimmer::new(Settings::default());
/// let steps = trimmer.begin(b"some <b>bold</b> text");
/// let mut step = 0;
/// let mut kept = Vec::new();
/// while step < steps {
///     let candidate = trimmer.candidate().to_vec();
///     step = match candidate.contains(&b'<') && candidate.contains(&b'>') {
///         true => {
///             kept = candidate;
///             trimmer.tell(Outcome::Fail)
///         }
///         false => trimmer.tell(Outcome::Pass),
///     };
/// }
/// assert_eq!(kept, b"<>");
/// ```
pub struct Trimmer {
    settings: Settings,
    entry: Option<Entry>,
    /// Largest number of steps (executions) for the current queue entry; 0 without an entry.
    steps: u32,
    gave_up: bool,
}

impl Trimmer {
    /// Creates a trimmer with these settings, which has no queue entry yet.
    pub fn new(settings: Settings) -> Trimmer {
        Trimmer {
            settings,
            entry: None,
            steps: 0,
            gave_up: false,
        }
    }

    /// Starts to trim a queue entry and returns its largest number of steps (executions); 0 if
    /// there is nothing to trim, or if the trimmer [has given up](Trimmer::give_up).
    pub fn begin(&mut self, entry: &[u8]) -> u32 {
        self.entry = None;
        self.steps = 0;
        if self.gave_up {
            return 0;
        }
        let steps = match self.settings.steps {
            Some(steps) => steps,
            None => default_steps(entry.len()),
        };
        // AFL++ counts them in 32 bits with a sign.
        let steps = steps.min(i32::MAX.unsigned_abs());
        self.entry = Entry::begin(entry, self.settings.search, steps);
        self.steps = self.entry.as_ref().map_or(0, Entry::steps);
        self.steps
    }

    /// Returns the candidate to run in this step; after the last step, the shortest text that kept
    /// the coverage. It is empty only if there is no queue entry.
    ///
    /// The first candidate is the entry itself. If it does not have the same coverage again, the
    /// coverage varies from run to run, and the trimming ends.
    pub fn candidate(&mut self) -> &[u8] {
        let (buffer, len) = self.buffer();
        &buffer[..len]
    }

    /// Returns the buffer that begins with the candidate, and the length of the candidate. The
    /// buffer is at least as long as the queue entry. Its address is valid until the next call of
    /// another function.
    pub(crate) fn buffer(&mut self) -> (&mut [u8], usize) {
        match &mut self.entry {
            Some(entry) => entry.candidate(),
            None => (&mut [], 0),
        }
    }

    /// Receives the outcome of the candidate: FAIL if it has the same coverage as the entry.
    /// Returns the number of outcomes received so far, which is the number of the next step; the
    /// trimming has ended when it is the number that [`begin`](Trimmer::begin) returned.
    pub fn tell(&mut self, outcome: Outcome) -> u32 {
        match &mut self.entry {
            Some(entry) => entry.tell(outcome),
            None => self.steps,
        }
    }

    /// Stops all trimming for good, after a panic, and returns the number of steps of the current
    /// entry, which ends its trimming. The state at the time of the panic is never used or freed,
    /// because this could panic again.
    pub fn give_up(&mut self) -> u32 {
        self.gave_up = true;
        std::mem::forget(self.entry.take());
        self.steps
    }
}
