//! The dialogue with AFL++, without pointers.

use ddfuzz_delta::Outcome;

use crate::{Settings, entry::Entry, settings::default_steps};

/// Trims one entry after the other: all the state of the library.
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
    /// Steps of the last entry that was begun.
    steps: u32,
    gave_up: bool,
}

impl Trimmer {
    /// A trimmer that knows no entry yet.
    pub fn new(settings: Settings) -> Trimmer {
        Trimmer {
            settings,
            entry: None,
            steps: 0,
            gave_up: false,
        }
    }

    /// Begins with an entry, and gives the number of steps that it may take; 0 where there is
    /// nothing to trim, or where the trimmer [has given up](Trimmer::give_up).
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

    /// The candidate to be run in this step, never empty; after the last one, the best. Empty only
    /// where there is no entry.
    ///
    /// The first one is the entry itself: where that does not have its own coverage, which then is
    /// another in each run, the trimming ends.
    pub fn candidate(&mut self) -> &[u8] {
        let (buffer, len) = self.buffer();
        &buffer[..len]
    }

    /// The buffer that begins with the candidate, and the candidate's length. It has at least the
    /// length of the entry, and stays where it is until the next call of another function.
    pub(crate) fn buffer(&mut self) -> (&mut [u8], usize) {
        match &mut self.entry {
            Some(entry) => entry.candidate(),
            None => (&mut [], 0),
        }
    }

    /// Takes the outcome of the candidate, FAIL where it has the coverage of the entry, and gives
    /// the number of the next step. The number of steps that [`begin`](Trimmer::begin) gave is the
    /// end: nothing more is to be tried, or the steps are used up.
    pub fn tell(&mut self, outcome: Outcome) -> u32 {
        match &mut self.entry {
            Some(entry) => entry.tell(outcome),
            None => self.steps,
        }
    }

    /// Trims nothing from now on, and gives the number of steps of the last entry, by which its
    /// trimming ends: whatever was left behind by a panic is never used again, nor freed, for that
    /// might panic again.
    pub fn give_up(&mut self) -> u32 {
        self.gave_up = true;
        std::mem::forget(self.entry.take());
        self.steps
    }
}
