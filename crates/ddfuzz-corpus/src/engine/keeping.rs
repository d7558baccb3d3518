//! The files that are kept, while they are trimmed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cover::{Sets, Slowness};
use crate::{Feature, Features};
use ddfuzz_store::report::clean::{Cover, OwnCount};

/// A file that is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeping {
    /// The file of that content.
    pub from: PathBuf,
    /// The hex digits of that content's blake3.
    pub content: String,
    /// What it holds now, where that is in memory; else it is what the file holds.
    pub bytes: Option<Vec<u8>>,
    /// Its size before trimming, in bytes.
    pub size_before: u64,
    /// What it reaches each time.
    pub features: Features,
    /// The least CPU time of its runs.
    pub time: Duration,
    /// Features that no other content of the corpus reaches.
    pub only_here: u64,
    /// It stays as it is: it is kept for what it does not reach each time, which trimming could
    /// not hold.
    pub whole: bool,
    /// Why it is kept.
    pub why: String,
    /// What trimming claims of it.
    pub claim: Option<String>,
    /// For what nothing more can be trimmed of it.
    pub settled_for: Option<Features>,
}

impl Keeping {
    /// Its size now, in bytes.
    pub fn size(&self) -> u64 {
        let held = self.bytes.as_ref();
        held.map_or(self.size_before, |bytes| bytes.len() as u64)
    }

    /// Whether it is shorter than the file that it was made of.
    pub fn is_trimmed(&self) -> bool {
        self.size() < self.size_before
    }

    /// What it holds; nothing where that is not in memory.
    pub fn text(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}

/// All that is kept, and what it has to reach together.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The files.
    pub files: Vec<Keeping>,
    /// What the corpus reaches each time; `None` where the target tells no coverage.
    pub universe: Option<Features>,
    /// What the corpus reaches that is added to.
    pub covered: Features,
    /// The contents of that corpus.
    pub onto: Vec<PathBuf>,
    /// How many of the files are kept for features that no content reaches each time.
    pub flaky_files: u64,
    /// All that was seen to be reached.
    pub seen: Features,
    /// How good the subset is.
    pub cover: Option<Cover>,
    /// What the target's own fuzzer counts.
    pub own_count: Option<OwnCount>,
    /// The name of the journal that knows what the contents reach.
    pub journal: &'static str,
    /// Runs that trimming took.
    pub trim_runs: u64,
}

/// Kept files to choose from once more.
pub(super) struct AllKept<'a>(pub &'a [Keeping]);

impl Sets for AllKept<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.0[item].text().len() as u64
    }

    fn slowness(&self, _: usize) -> Slowness {
        Slowness::default()
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        into.clear();
        into.extend_from_slice(self.0[item].features.as_slice());
        Ok(())
    }
}
